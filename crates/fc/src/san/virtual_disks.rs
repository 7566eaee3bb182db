//! Virtual disks on the back ends of a lab: [`VirtualDisks`].

use super::Lab;
use super::volumes::{back_end_luns, volumes_of};
use crate::config::{Live, Pool, Target};
use sanloom_scsi::map::{LunConfig, LunId, Map, PoolConfig, PoolId, Refusal, VolumeId};
use std::collections::BTreeMap;

/// A back end that is a LUN of the lab.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct LunOfLab {
    /// The LUN.
    pub target: Target,
    /// Index of the back end in [`Live::back_ends`].
    pub back_end: u16,
    /// Index of its pool in [`Live::pools`].
    pub pool: u16,
    /// Size of the LUN in blocks.
    pub blocks: u64,
    /// Bytes of a block of the LUN.
    pub block_bytes: u32,
    /// Blocks of an extent of the pool.
    pub extent_blocks: u64,
}

/// Virtual disks of a storage system, on those back ends that the lab has.
#[derive(Debug)]
pub struct VirtualDisks {
    /// Map of all virtual disks of the lab, created in the order of the lab, so that each
    /// takes extents that are left.
    pub map: Map,
    /// LUNs of the map, by [`LunId`].
    pub luns: Vec<LunOfLab>,
    /// Virtual disks of the storage system, by its LUN.
    pub volumes: BTreeMap<u16, VolumeId>,
    /// Virtual disks of the lab without room, by index into [`Live::volumes`].
    pub refused: Vec<(u16, Refusal)>,
}

impl VirtualDisks {
    /// Creates the virtual disks of a lab. `live` are the settings of the lab. Back ends that
    /// `is_reached` refuses have a number in the map, but no extents.
    pub fn new(lab: &Lab, live: &Live, storage: u16, is_reached: impl Fn(&LunOfLab) -> bool) -> VirtualDisks {
        let extent_blocks = |pool: &Pool| (pool.extent_bytes / u64::from(pool.block_bytes.max(1))).max(1);
        let mut luns = Vec::new();
        let mut configs = Vec::new();
        for (number, target, lun) in back_end_luns(lab, live) {
            let back_end = &live.back_ends[usize::from(number)];
            luns.push(LunOfLab {
                target,
                back_end: number,
                pool: back_end.pool,
                blocks: lun.blocks,
                block_bytes: lun.block_bytes,
                extent_blocks: extent_blocks(&live.pools[usize::from(back_end.pool)]),
            });
            configs.push(LunConfig { name: back_end.name.as_str().into(), pool: PoolId(back_end.pool) });
        }
        let pool = |pool: &Pool| PoolConfig {
            name: pool.name.as_str().into(),
            block_bytes: pool.block_bytes,
            extent_blocks: extent_blocks(pool),
        };
        let mut map = Map::new(live.pools.iter().map(pool).collect(), configs);
        for (lun, number) in luns.iter().zip(0..).filter(|(lun, _)| is_reached(lun)) {
            map.reached(LunId(number), lun.blocks);
        }
        let mut refused = Vec::new();
        for (number, volume) in (0..).zip(&live.volumes) {
            let block_bytes = live.pools.get(usize::from(volume.pool)).map_or(512, |pool| pool.block_bytes);
            let blocks = volume.size_bytes / u64::from(block_bytes.max(1));
            match map.plan_create(&volume.name, PoolId(volume.pool), volume.shape, blocks) {
                Ok(change) => _ = map.apply(change),
                Err(refusal) => refused.push((number, refusal)),
            }
        }
        let own = volumes_of(live, storage).into_iter();
        let volumes = own.filter_map(|(lun, volume)| Some((lun, map.find(&volume.name)?))).collect();
        VirtualDisks { map, luns, volumes, refused }
    }
}
