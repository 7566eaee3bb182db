//! Virtualization switches at the current time, for tables.

use super::has_volumes;
use super::switch::{BackLun, Route};
use crate::world::{World, relay};
use sanloom_scsi::map::VolumeId;
use sanloom_scsi::volume::Volumes;
use sanloom_wire::{FcId, Wwpn};

/// A virtualization switch.
pub(crate) struct SwitchSeen<'a> {
    /// Index among the storage systems.
    pub storage: u16,
    pub volumes: &'a Volumes,
    /// Volume of each LUN.
    pub units: &'a [Option<VolumeId>],
    /// LUNs of back ends in the order of the map.
    pub back_ends: Vec<BackSeen>,
    /// Requests that wait to be sent again.
    pub waiting: u64,
}

/// A LUN of a back end.
#[derive(Clone, Copy)]
pub(crate) struct BackSeen {
    pub path: Option<BackPath>,
    pub lun: u16,
    pub block_bytes: u32,
}

/// Way to a back end.
#[derive(Clone, Copy)]
pub(crate) enum BackPath {
    /// Session with this number among all sessions of the lab.
    Session(u32),
    /// Target port, and its N_Port_ID while the gateway is logged in to it.
    Fabric(Wwpn, Option<FcId>),
}

/// Returns the virtualization switches of a world, in the order of the storage systems.
pub(crate) fn virtualization(world: &World) -> impl Iterator<Item = SwitchSeen<'_>> {
    let switches = world.switches.iter().flat_map(|switches| &switches.switches);
    let path = |lun: &BackLun| match lun.route? {
        Route::Session(session) => Some(BackPath::Session(session)),
        Route::Fabric(nport, target) => {
            Some(BackPath::Fabric(target, relay::logged_in_to(&world.hosts, nport, target)))
        }
        // Its LUNs are no back ends of virtual disks.
        Route::Array => None,
    };
    switches.filter(|(storage, _)| has_volumes(&world.lab, **storage)).map(move |(&storage, switch)| SwitchSeen {
        storage,
        volumes: &switch.volumes,
        units: &switch.units,
        back_ends: switch
            .luns
            .iter()
            .map(|lun| BackSeen { path: path(lun), lun: lun.lun, block_bytes: lun.block_bytes })
            .collect(),
        waiting: switch.due.len() as u64,
    })
}
