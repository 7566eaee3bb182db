//! LUNs of a lab, with those that are virtual disks.

use super::Lab;
use crate::config::{BackEnd, BackEndTarget, Iscsi, Live, Lun, Target, VolumeSpec};
use sanloom_wire::Wwpn;
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

/// Returns the storage system of a lab with a port.
pub fn storage_of_port(lab: &Lab, port: Wwpn) -> Option<u16> {
    let owner = lab.storage.iter().position(|storage| storage.ports.iter().any(|own| own.wwpn == port))?;
    Some(owner as u16)
}

/// Returns the storage system with an iSCSI target, and its settings there.
pub fn storage_of_iscsi<'a>(live: &'a Live, name: &str) -> Option<(u16, &'a Iscsi)> {
    live.iscsi.iter().find(|(_, config)| config.name == name).map(|(storage, config)| (*storage, config))
}

/// Returns the LUN of a lab that is a back end; `None` if it is elsewhere. `live` are the settings
/// of the lab.
pub fn lun_of_back_end(lab: &Lab, live: &Live, back_end: &BackEnd) -> Option<Target> {
    let storage = match &back_end.target {
        BackEndTarget::Iscsi(target) => storage_of_iscsi(live, &target.name)?.0,
        BackEndTarget::Fcp(ports) => storage_of_port(lab, ports.target)?,
    };
    // A virtual disk is no back end.
    let luns = &lab.storage.get(usize::from(storage))?.luns;
    (usize::from(back_end.lun) < luns.len()).then_some(Target { storage, lun: back_end.lun })
}

/// Returns the back ends that are LUNs of a lab, each with its index in [`Live::back_ends`]. Their
/// order is that of [`VirtualDisks::luns`](super::VirtualDisks::luns). `live` are the settings of
/// the lab.
pub fn back_end_luns<'a>(lab: &'a Lab, live: &'a Live) -> impl Iterator<Item = (u16, Target, Lun)> + 'a {
    (0..).zip(&live.back_ends).filter_map(|(number, back_end)| {
        let target = lun_of_back_end(lab, live, back_end)?;
        let lun = *lab.storage.get(usize::from(target.storage))?.luns.get(usize::from(target.lun))?;
        live.pools.get(usize::from(back_end.pool))?;
        Some((number, target, lun))
    })
}
