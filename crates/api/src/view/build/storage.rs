//! LUNs, virtual disks and iSCSI sessions, from the machines of a storage system.

use super::Shown;
use crate::view::{LunRow, VolumesView};
use crate::volume::{CarriedRow, PoolRow, RunRow, Served, SessionRow, VolumeRow};
use sanloom_fc::config::Mask;
use sanloom_fc::san::Lab;
use sanloom_scsi::iscsi::target::Session;
use sanloom_scsi::map::{LunId, Map, PoolId, Shape, Volume, VolumeId};
use sanloom_scsi::scsi::{Device, InitiatorName};
use sanloom_scsi::volume::{Path, Volumes};
use sanloom_wire::scsi::reservation::kind;

impl Shown<'_> {
    /// Row of a LUN without its medium. `storage` is the index of the storage system in the lab,
    /// `over_fc` is true if it has a port of Fibre Channel.
    pub fn lun(&self, storage: u16, lun: u16, device: &Device, over_fc: bool) -> LunRow {
        let live = &self.lab.live;
        let of_system = |mask: &&Mask| mask.targets.iter().any(|target| target.storage == storage);
        let masks: Vec<&Mask> = live.masks.iter().filter(of_system).collect();
        let here = |mask: &&&Mask| mask.targets.iter().any(|target| (target.storage, target.lun) == (storage, lun));
        let name = |initiator: &InitiatorName| match initiator {
            InitiatorName::Srp(port) => format!("0x{:032x}", u128::from_be_bytes(**port)),
            InitiatorName::Iscsi(name) => name.to_string(),
            InitiatorName::Fcp(port) => match self.owner(*port) {
                name if name.is_empty() => port.to_string(),
                name => name,
            },
        };
        let mut seen_by: Vec<String> = masks.iter().filter(here).flat_map(|mask| &mask.initiators).map(name).collect();
        if !masks.is_empty() {
            let names = || masks.iter().flat_map(|mask| &mask.initiators);
            if over_fc && !names().any(|name| matches!(name, InitiatorName::Fcp(_))) {
                seen_by.push("all over Fibre Channel".to_owned());
            }
            if live.iscsi.contains_key(&storage) && !names().any(|name| matches!(name, InitiatorName::Iscsi(_))) {
                seen_by.push("all over iSCSI".to_owned());
            }
            if live.srp.contains_key(&storage) && !names().any(|name| matches!(name, InitiatorName::Srp(_))) {
                seen_by.push("all over SRP".to_owned());
            }
        }
        let reservations = device.reservations(lun);
        let reservation = reservations.iter().find_map(|one| {
            let kind = kind::name(one.holds?).unwrap_or("unknown type");
            Some(format!("{kind}, key {:#x}", one.key))
        });
        let unit = device.unit_config(lun);
        let (blocks, block_bytes) = unit.map_or((0, 0), |unit| (unit.blocks, unit.block_bytes));
        LunRow {
            storage: self.lab.storage.get(usize::from(storage)).map_or_else(String::new, |system| system.name.clone()),
            lun,
            size_bytes: blocks * u64::from(block_bytes),
            block_bytes,
            write_back: unit.is_some_and(|unit| unit.write_back),
            everybody: masks.is_empty(),
            seen_by,
            registrations: reservations.len() as u32,
            reservation,
            active_tasks: device.active(lun),
            ..LunRow::default()
        }
    }
}

/// The virtual disks of a map, or the one with this name, and the pools of the lab. `served`
/// returns the LUN of a virtual disk.
pub fn volumes(
    lab: &Lab,
    volumes: &Volumes,
    name: Option<&str>,
    served: impl Fn(VolumeId) -> Option<Served>,
) -> VolumesView {
    let map = volumes.map();
    let pools = lab.live.pools.iter().zip((0..).map(PoolId)).map(|(pool, id)| {
        let usage = map.pool_use(id);
        PoolRow { name: pool.name.clone(), extent_bytes: pool.extent_bytes, extents: usage.extents, used: usage.used }
    });
    let selected = map.volumes().filter(|(_, volume)| name.is_none_or(|name| *volume.name == *name));
    let row = |(id, volume)| VolumeRow { served: served(id), ..volume_row(volumes, id, volume, name.is_some()) };
    VolumesView { volumes: selected.map(row).collect(), pools: pools.collect() }
}

fn volume_row(volumes: &Volumes, id: VolumeId, volume: &Volume, with_runs: bool) -> VolumeRow {
    let map = volumes.map();
    let block_bytes = map.block_bytes(id).map_or(0, u64::from);
    let (width, stripe_blocks) = match volume.shape {
        Shape::Linear => (1, 0),
        Shape::Striped { width, stripe_blocks } => (width, stripe_blocks),
    };
    let epoch = map.epoch(id);
    let mut runs = Vec::new();
    let mut at_bytes = 0;
    for segment in volume.layout.segments().iter().filter(|_| with_runs) {
        let bytes = segment.blocks().unwrap_or(0) * block_bytes;
        let places = segment.columns.iter().map(|place| (lun_name(map, place.lun), place.lba * block_bytes)).collect();
        runs.push(RunRow { at_bytes, bytes, places });
        at_bytes += bytes;
    }
    VolumeRow {
        name: volume.name.to_string(),
        pool: map.pool(volume.pool).map_or_else(String::new, |pool| pool.name.to_string()),
        size_bytes: volume.layout.blocks() * block_bytes,
        width,
        stripe_bytes: u64::from(stripe_blocks) * block_bytes,
        served: None,
        epoch: epoch.map_or(0, |epoch| epoch.0),
        tasks: epoch.and_then(|epoch| map.tasks(epoch)).unwrap_or(0),
        conventional: carried(volumes, id, Path::Conventional),
        forwarded: carried(volumes, id, Path::Forwarding),
        runs,
    }
}

/// Name of a LUN of a back end; empty if the map does not have it.
fn lun_name(map: &Map, lun: LunId) -> String {
    let found = map.luns().find(|(id, _)| *id == lun);
    found.map_or_else(String::new, |(_, lun)| lun.config.name.to_string())
}

fn carried(volumes: &Volumes, id: VolumeId, path: Path) -> CarriedRow {
    let carried = volumes.carried(id, path);
    CarriedRow { commands: carried.commands, read_bytes: carried.read_bytes, written_bytes: carried.written_bytes }
}

/// Row of a session of a target, without the addresses, the target, and what is forwarded.
pub fn session(session: &Session) -> SessionRow {
    let (key, counters, parameters) = (session.key(), session.counters(), session.parameters());
    SessionRow {
        initiator: key.initiator.clone(),
        isid: key.isid.iter().map(|byte| format!("{byte:02x}")).collect(),
        tasks: session.tasks() as u64,
        commands: counters.commands,
        read_bytes: counters.read_bytes,
        written_bytes: counters.written_bytes,
        digests: [parameters.header_digest, parameters.data_digest],
        ..SessionRow::default()
    }
}
