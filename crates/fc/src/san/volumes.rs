//! LUNs of a lab, with those that are virtual disks.

use super::Lab;
use crate::config::{BackEnd, BackEndTarget, Live, Lun, Storage, Target, VolumeSpec};
use std::collections::BTreeMap;

impl Lab {
    /// Virtual disks that a storage system presents, by LUN. A volume without a LUN in the lab gets
    /// the lowest free one.
    pub fn volumes_of(&self, storage: u16) -> BTreeMap<u16, &VolumeSpec> {
        volumes_of(&self.live, storage)
    }

    /// LUN of a storage system, which may be a virtual disk.
    pub fn lun(&self, storage: u16, lun: u16) -> Option<Lun> {
        let own = self.storage.get(usize::from(storage))?.luns.get(usize::from(lun)).copied();
        own.or_else(|| {
            let volume = *self.volumes_of(storage).get(&lun)?;
            let block_bytes = self.live.pools.get(usize::from(volume.pool))?.block_bytes;
            Some(Lun { blocks: volume.size_bytes / u64::from(block_bytes), block_bytes })
        })
    }
}

/// Returns the virtual disks of a storage system as [`Lab::volumes_of`] does, of the settings of a
/// lab that is not complete.
pub(super) fn volumes_of(live: &Live, storage: u16) -> BTreeMap<u16, &VolumeSpec> {
    let own = |volume: &&VolumeSpec| volume.storage.is_some_and(|(of, _)| of == storage);
    let volumes: Vec<&VolumeSpec> = live.volumes.iter().filter(own).collect();
    let given = volumes.iter().filter_map(|volume| Some((volume.storage?.1?, *volume)));
    let mut by_lun: BTreeMap<u16, &VolumeSpec> = given.collect();
    for volume in volumes.iter().filter(|volume| volume.storage.is_some_and(|(_, lun)| lun.is_none())) {
        if let Some(free) = (0..=u16::MAX).find(|lun| !by_lun.contains_key(lun)) {
            by_lun.insert(free, volume);
        }
    }
    by_lun
}

/// Returns the LUN of a lab that is a back end; `None` if it is elsewhere. `live` are the settings
/// of the lab.
pub fn lun_of_back_end(lab: &Lab, live: &Live, back_end: &BackEnd) -> Option<Target> {
    let storage = match &back_end.target {
        BackEndTarget::Iscsi(target) => {
            let own = live.iscsi.iter().find(|(_, config)| config.name == target.name);
            own.map(|(storage, _)| *storage)
        }
        BackEndTarget::Fcp(ports) => {
            let is_own = |storage: &Storage| storage.ports.iter().any(|own| own.wwpn == ports.target);
            lab.storage.iter().position(is_own).map(|storage| storage as u16)
        }
    };
    let (storage, lun) = (storage?, back_end.lun);
    // A virtual disk is no back end.
    let luns = &lab.storage.get(usize::from(storage))?.luns;
    (usize::from(lun) < luns.len()).then_some(Target { storage, lun })
}
