//! Virtualization switches at the current time, for tables.

use super::has_volumes;
use super::switch::{Route, Switch};
use crate::world::{World, relay};
use sanloom_scsi::map::{LunId, VolumeId};
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
    let path = |switch: &Switch, number: u16| match switch.luns[usize::from(number)].route? {
        Route::Session(session) => Some(BackPath::Session(session)),
        Route::Fabric => {
            let (nport, target) = switch.paths.first(LunId(number))?;
            Some(BackPath::Fabric(target, relay::logged_in_to(&world.hosts, nport, target)))
        }
        // Its LUNs are no back ends of virtual disks.
        Route::Array => None,
    };
    switches.filter(|(storage, _)| has_volumes(&world.lab, **storage)).map(move |(&storage, switch)| SwitchSeen {
        storage,
        volumes: &switch.volumes,
        units: &switch.units,
        back_ends: (0..)
            .zip(&switch.luns)
            .map(|(number, lun)| BackSeen { path: path(switch, number), lun: lun.lun, block_bytes: lun.block_bytes })
            .collect(),
        waiting: switch.due.len() as u64,
    })
}
