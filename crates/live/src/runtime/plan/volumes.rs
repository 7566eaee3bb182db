//! The virtual disks of a runtime: pools and back ends of the lab, volumes of the store.

use super::iscsi::credentials;
use super::{Places, served};
use crate::iscsi::initiator::RemoteConfig;
use crate::runtime::volumes::unit_of;
use crate::runtime::{Runtime, UpError};
use crate::state::{Agreement, KeptVolume, StateError};
use crate::volumes::{InitiatorPorts, LunPlan, NewBackEnd, Through, VolumeEngine};
use sanloom_core::config::{BackEndTarget, FcpBackEnd, IscsiBackEnd, Lab};
use sanloom_core::disk::DiskConfig;
use sanloom_core::iscsi::initiator::SessionConfig;
use sanloom_core::iscsi::parameters::Wishes;
use sanloom_core::map::{Freed, Layout, LunConfig, LunId, Map, Place, PoolConfig, PoolId, Segment, Volume, VolumeId};
use sanloom_core::time::Span;

/// Commands of one back-end LUN at once.
const QUEUE_DEPTH: u16 = 128;

impl Runtime {
    /// Makes the engine of virtual disks where the lab has pools and serves all of it.
    pub(super) fn make_volumes(&mut self, places: &Places, agreement: Agreement) -> Result<(), UpError> {
        let lab = self.lab.clone();
        let live = &lab.live;
        if live.pools.is_empty() || self.lab_switches.len() != lab.switches.len() {
            return Ok(());
        }
        let mut pools = Vec::new();
        // Also with `--reset`: data are deleted by `sanloom volume delete` and by nothing else.
        let kept = self.state.volumes()?;
        for pool in &live.pools {
            let wanted = (pool.block_bytes, pool.extent_bytes / u64::from(pool.block_bytes.max(1)));
            if !kept.iter().any(|volume| volume.pool == pool.name) {
                self.state.forget_pool(&pool.name)?;
            }
            let agreed = self.state.agree_pool(&pool.name, wanted.0, wanted.1)?;
            if agreed != wanted {
                let was = format!("blocks of {} bytes and extents of {} blocks", agreed.0, agreed.1);
                let line = format!("  pool {}: its volumes are made of {was}, which cannot change", pool.name);
                return Err(UpError::Differs { path: self.state.path().to_owned(), differences: vec![line] });
            }
            let name = pool.name.as_str().into();
            pools.push(PoolConfig { name, block_bytes: wanted.0, extent_blocks: wanted.1 });
        }
        let luns = live.back_ends.iter();
        let luns = luns.map(|lun| LunConfig { name: lun.name.as_str().into(), pool: PoolId(lun.pool) }).collect();
        let mut map = Map::new(pools, luns);
        let damaged = |reason: String| StateError::Volumes { path: self.state.path().to_owned(), reason };
        let volumes = kept.iter().map(|volume| restored(&map, volume)).collect::<Result<Vec<_>, _>>();
        let next = self.state.next_volume()?;
        volumes.and_then(|volumes| map.restore(volumes, next).map_err(|error| error.to_string())).map_err(damaged)?;
        let number = |name: &str| live.back_ends.iter().position(|back_end| back_end.name == name);
        let wipes = self.state.wipes()?.into_iter().filter_map(|(name, lba, blocks)| {
            // What a back end has that is not in the lab is wiped when it is there again.
            Some(Freed { lun: LunId(u16::try_from(number(&name)?).ok()?), lba, blocks })
        });
        map.restore_wiping(&wipes.collect::<Vec<_>>());
        let mut targets: Vec<RemoteConfig> = Vec::new();
        let mut luns = Vec::new();
        for back_end in &live.back_ends {
            let retry_for = back_end.retry_for.to_span();
            let disk = disk_config(retry_for);
            let through = match &back_end.target {
                BackEndTarget::Iscsi(target) => {
                    let config = remote(target, retry_for, places)?;
                    let known = targets.iter().position(|other| other.is_same_way(&config));
                    Through::Session(known.unwrap_or_else(|| {
                        targets.push(config);
                        targets.len() - 1
                    }))
                }
                BackEndTarget::Fcp(FcpBackEnd { initiator, target }) => {
                    let port = live.host_ports().iter().position(|port| port == initiator).unwrap_or_default();
                    Through::Port(port, *target)
                }
            };
            let identity = self.state.identity(&back_end.name)?;
            luns.push(LunPlan { name: back_end.name.clone(), through, lun: back_end.lun, disk, identity });
        }
        let hosts = self.make_hosts(&lab, places)?;
        let now = self.clock.now();
        let ports = InitiatorPorts::new(self.state.instance(), self.state.initiator_ports()?);
        self.volumes = Some(VolumeEngine::new(now, map, targets, hosts, luns, ports));
        self.keep_initiator_ports();
        for volume in kept {
            self.serve_kept(&volume);
        }
        // What the lab wants and nobody has created yet.
        for spec in &live.volumes {
            let there = self.volumes.as_ref().is_some_and(|engine| engine.map().find(&spec.name).is_some());
            let gone = agreement == Agreement::Ask && self.state.was_declared(&spec.name)?;
            if !there && !gone {
                self.wanted_volumes.push(spec.clone());
            }
        }
        Ok(())
    }

    /// Back ends over iSCSI that a lab has and the instance has not. Nothing changes.
    ///
    /// # Errors
    /// When a secret or the store cannot be read.
    pub(in crate::runtime) fn new_back_ends(&self, lab: &Lab) -> Result<Vec<NewBackEnd>, UpError> {
        let (places, wipes) = (Places::of(lab), self.state.wipes()?);
        let known = |name: &str| self.lab.live.back_ends.iter().any(|back_end| back_end.name == name);
        let mut new = Vec::new();
        for back_end in lab.live.back_ends.iter().filter(|back_end| !known(&back_end.name)) {
            let BackEndTarget::Iscsi(target) = &back_end.target else { continue };
            let of_it = wipes.iter().filter(|(name, ..)| *name == back_end.name);
            new.push(NewBackEnd {
                name: back_end.name.clone(),
                pool: PoolId(back_end.pool),
                target: remote(target, back_end.retry_for.to_span(), &places)?,
                lun: back_end.lun,
                identity: self.state.identity(&back_end.name)?,
                wipes: of_it.map(|(_, lba, blocks)| (*lba, *blocks)).collect(),
            });
        }
        Ok(new)
    }

    /// A volume of the store is a unit of its storage system.
    fn serve_kept(&mut self, volume: &KeptVolume) {
        let Some((storage, lun)) = &volume.served else { return };
        let served = served(&self.lab, &self.lab_switches);
        let number = served.iter().position(|number| self.lab.storage[usize::from(*number)].name == *storage);
        let Some(system) = number.and_then(|number| self.systems.get_mut(number)) else {
            return tracing::error!(volume = volume.name, storage, "no such storage system serves volumes here");
        };
        let Some(block_bytes) = self.volumes.as_ref().and_then(|engine| engine.map().block_bytes(volume.id)) else {
            return;
        };
        let reservations = Places::of(&self.lab).volume_reservations(volume.id);
        if !system.put_volume(*lun, unit_of(volume, self.state.instance(), block_bytes), volume.id, reservations) {
            tracing::error!(volume = volume.name, storage, lun, "the LUN is in use");
        }
    }
}

/// A volume of the store in the numbers of this map.
fn restored(map: &Map, kept: &KeptVolume) -> Result<(VolumeId, Volume), String> {
    let unknown = |what: &str, name: &str| format!("volume `{}`: the lab has no {what} `{name}`", kept.name);
    let pool = map.find_pool(&kept.pool).ok_or_else(|| unknown("pool", &kept.pool))?;
    let mut segments = Vec::new();
    for segment in &kept.segments {
        let mut columns = Vec::new();
        for (name, lba) in &segment.columns {
            let lun: Option<LunId> = map.luns().find(|(_, lun)| *lun.config.name == **name).map(|(id, _)| id);
            columns.push(Place { lun: lun.ok_or_else(|| unknown("back end", name))?, lba: *lba });
        }
        let (column_blocks, stripe_blocks) = (segment.column_blocks, segment.stripe_blocks);
        segments.push(Segment { column_blocks, stripe_blocks, columns: columns.into() });
    }
    let layout =
        Layout::new(kept.blocks, segments.into()).map_err(|error| format!("volume `{}`: {error}", kept.name))?;
    Ok((kept.id, Volume { name: kept.name.as_str().into(), pool, shape: kept.shape, layout }))
}

fn disk_config(retry_for: Span) -> DiskConfig {
    DiskConfig { queue_depth: QUEUE_DEPTH, dev_loss: retry_for, patience: retry_for, ..DiskConfig::default() }
}

/// A target, as we use it.
fn remote(target: &IscsiBackEnd, retry_for: Span, places: &Places) -> Result<RemoteConfig, UpError> {
    let [own, target_proof] = credentials(places, &target.chap)?;
    Ok(RemoteConfig {
        portals: target.portals.clone(),
        target: target.name.clone(),
        initiator: target.initiator.clone(),
        own,
        target_proof,
        wishes: Wishes { header_digest: target.header_digest, data_digest: target.data_digest, ..Wishes::default() },
        disk: disk_config(retry_for),
        session: SessionConfig {
            command_timeout: retry_for,
            abort_timeout: Span::from_secs(5),
            ping: Span::from_secs(5),
        },
    })
}
