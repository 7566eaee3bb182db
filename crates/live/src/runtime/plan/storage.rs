//! The storage of a runtime: devices, ports, media.

use super::iscsi::{PORTAL_GROUP, portal_groups};
use super::switches::open;
use super::{Places, mac_of, served};
use crate::ports::EthernetPort;
use crate::runtime::{Attachment, LivePort, Runtime, Station, UpError};
use crate::storage::StorageSystem;
use crate::storage::medium::Medium;
use crate::storage::port::{At, StoragePort};
use crate::storage::records::Records;
use crate::storage::store::Store;
use sanloom_block::{FileSpec, Source};
use sanloom_core::config::{Ethernet, Lab, MediumKind, Storage};
use sanloom_core::fcp::target::{FcpTarget, FcpTargetConfig};
use sanloom_core::fip::vn2vn::Vn2vnConfig;
use sanloom_core::nport::{NPort, NPortConfig};
use sanloom_core::scsi::{Device, DeviceConfig, InitiatorName, LunMap, Masking, PortConfig, PortName, UnitConfig};
use std::collections::BTreeMap;
use std::sync::Arc;

/// Exchanges of a storage port at once.
const MAX_EXCHANGES: u16 = 4_096;
/// Largest transfer of one command, in bytes: hosts split what is longer. Data that come over TCP are asked for in bursts.
const MAX_TRANSFER_BYTES: u32 = 4 << 20;
const MAX_TRANSFER_OVER_TCP_BYTES: u32 = 32 << 20;

impl Runtime {
    pub(super) fn make_storage(&mut self, places: &Places) -> Result<(), UpError> {
        let lab = self.lab.clone();
        for (number, storage) in served(&lab, &self.lab_switches).into_iter().enumerate() {
            if let Some(ethernet) = lab.live.stations.get(&storage) {
                self.make_station(&lab, places, (number, storage), ethernet)?;
            }
            let config = &lab.storage[usize::from(storage)];
            let mut media = Vec::new();
            for lun in 0..config.luns.len() {
                media.push(Arc::new(medium(&lab, places, storage, lun)?));
            }
            let ports = (0..config.ports.len() as u16).map(|port| {
                let at = self.attached_to(number, port);
                let name = if config.ports.len() > 1 { format!("{}:{port}", config.name) } else { config.name.clone() };
                storage_port(&lab, config, port, name, at)
            });
            let ports = ports.collect();
            let mut device = Device::new(device(&lab, self.state.instance(), storage, config));
            for group in lab.live.port_groups.iter().filter(|group| group.storage == storage) {
                device.set_port_group(group.number, group.access);
            }
            let mut records = Records::default();
            for lun in 0..config.luns.len() {
                if let Some(path) = places.reservations(&lab, storage, lun) {
                    records.restore(lun as u16, path, &mut device);
                }
            }
            self.systems.push(StorageSystem::new(number, &config.name, device, ports, media, records));
        }
        Ok(())
    }

    /// What a storage port is attached to.
    fn attached_to(&self, system: usize, port: u16) -> At {
        let here = |station: &Station| (station.system, station.storage_port) == (system, port);
        if let Some(station) = self.stations.iter().position(here) {
            return At::Station(station);
        }
        let wanted = Attachment::Storage { system, port };
        let found = self.switches.iter().enumerate().find_map(|(switch, live)| {
            let at = live.attachments.iter().position(|attachment| *attachment == wanted)?;
            Some(At::Switch { switch, port: at as u16 })
        });
        found.unwrap_or(At::Nothing)
    }

    /// The first port of a storage system, on a segment without a switch.
    fn make_station(
        &mut self,
        lab: &Lab,
        places: &Places,
        (system, storage): (usize, u16),
        ethernet: &Ethernet,
    ) -> Result<(), UpError> {
        let config = &lab.storage[usize::from(storage)];
        let driver = open(places, &config.name, ethernet, false)?;
        let port = EthernetPort::new(&config.name, driver);
        let controller = station_config(lab, config);
        let number = self.stations.len();
        let mut port = LivePort::new(port, None);
        port.station = Some(number);
        self.stations.push(Station::new(self.ports.len(), ethernet.vlan, (system, 0), controller));
        self.ports.push(port);
        Ok(())
    }
}

/// The controller of a storage system that is a station.
pub(crate) fn station_config(lab: &Lab, config: &Storage) -> Vn2vnConfig {
    let values = &config.ports[0];
    let mut controller = Vn2vnConfig::new(mac_of(values.wwpn), values.wwpn, config.wwnn, false, true);
    controller.receive_size_bytes = values.receive_size_bytes;
    controller.e_d_tov = lab.timers.e_d_tov.to_span();
    controller
}

fn storage_port(lab: &Lab, config: &Storage, port: u16, name: String, at: At) -> StoragePort {
    let values = &config.ports[usize::from(port)];
    let (e_d_tov, r_a_tov) = (lab.timers.e_d_tov.to_span(), lab.timers.r_a_tov.to_span());
    let login = NPort::new(NPortConfig {
        wwpn: values.wwpn,
        wwnn: config.wwnn,
        receive_size_bytes: values.receive_size_bytes,
        bb_credit: 16,
        initiator: false,
        target: true,
        symbolic_name: config.name.clone(),
        e_d_tov,
        r_a_tov,
        seed: values.wwpn.0,
        virtual_port: None,
    });
    let target = FcpTarget::new(FcpTargetConfig {
        e_d_tov,
        r_a_tov,
        max_burst_bytes: config.max_burst_bytes,
        max_exchanges: MAX_EXCHANGES,
        in_order: true,
        port,
        port_name: values.wwpn,
    });
    StoragePort::new(name, at, login, target)
}

/// What stands in the name of a LUN: its number, or that of its volume, in an instance ([`StateStore::instance`]).
///
/// [`StateStore::instance`]: crate::state::StateStore::instance
pub(in crate::runtime) fn unit_identity(instance: u32, volume: bool, number: u32) -> u64 {
    u64::from(instance) << 33 | u64::from(volume) << 32 | u64::from(number)
}

fn unit(lab: &Lab, instance: u32, storage: u16, number: usize) -> UnitConfig {
    let lun = &lab.storage[usize::from(storage)].luns[number];
    let medium = lab.live.medium(storage);
    let over_tcp = lab.live.iscsi.contains_key(&storage);
    let max_transfer_bytes = if over_tcp { MAX_TRANSFER_OVER_TCP_BYTES } else { MAX_TRANSFER_BYTES };
    UnitConfig {
        write_back: medium.write_back,
        thin: matches!(medium.kind, MediumKind::Ram | MediumKind::File),
        max_transfer_blocks: max_transfer_bytes / lun.block_bytes,
        identity: Some(unit_identity(instance, false, number as u32)),
        ..UnitConfig::new(lun.blocks, lun.block_bytes)
    }
}

/// A LUN that the lab has and its device has not.
pub(in crate::runtime) fn new_unit(
    lab: &Lab,
    places: &Places,
    instance: u32,
    storage: u16,
    number: usize,
) -> Result<(UnitConfig, Medium), UpError> {
    Ok((unit(lab, instance, storage, number), medium(lab, places, storage, number)?))
}

fn device(lab: &Lab, instance: u32, storage: u16, config: &Storage) -> DeviceConfig {
    let unit = |number| unit(lab, instance, storage, number);
    let groups = || lab.live.port_groups.iter().filter(|group| group.storage == storage);
    let group_of = |port| groups().find(|group| group.ports.contains(&port)).map_or(PORTAL_GROUP, |group| group.number);
    let port = |(port, number): (&sanloom_core::config::StoragePort, u16)| PortConfig {
        name: PortName::Fcp(port.wwpn),
        group: group_of(number),
    };
    let iscsi = lab.live.iscsi.get(&storage).into_iter().flat_map(|iscsi| {
        portal_groups(lab, storage).into_iter().map(|group| PortConfig {
            name: PortName::Iscsi { target: iscsi.name.as_str().into(), portal_group: group },
            group,
        })
    });
    DeviceConfig {
        wwnn: config.wwnn,
        ports: config.ports.iter().zip(0..).map(port).chain(iscsi).collect(),
        units: (0..config.luns.len()).map(unit).collect(),
        masking: masking(lab, storage),
        attentions: true,
    }
}

/// A unit has the same number for everybody who sees it.
pub(in crate::runtime) fn masking(lab: &Lab, storage: u16) -> Masking {
    let mut listed: BTreeMap<InitiatorName, Vec<LunMap>> = BTreeMap::new();
    let masks = lab.live.masks.iter().filter(|mask| mask.targets.iter().any(|target| target.storage == storage));
    let mut masked = false;
    for mask in masks {
        masked = true;
        for initiator in &mask.initiators {
            let luns = listed.entry(initiator.clone()).or_default();
            let own = mask.targets.iter().filter(|target| target.storage == storage);
            luns.extend(own.map(|target| LunMap { lun: target.lun, unit: target.lun }));
            luns.sort_unstable();
            luns.dedup();
        }
    }
    if masked { Masking::Listed(listed) } else { Masking::Open }
}

fn medium(lab: &Lab, places: &Places, storage: u16, number: usize) -> Result<Medium, UpError> {
    let config = &lab.storage[usize::from(storage)];
    let lun = config.luns[number];
    let bytes = lun.blocks * u64::from(lun.block_bytes);
    let path = places.lun_file(lab, storage, number);
    let source = match lab.live.medium(storage).kind {
        MediumKind::Ram => Source::Ram,
        MediumKind::Pattern => Source::Pattern { seed: u32::from(storage) << 16 | number as u32 },
        // Virtual disks have no medium of their own.
        MediumKind::Null | MediumKind::Volumes => Source::Null,
        MediumKind::File => {
            let direct = lab.live.medium(storage).direct;
            Source::File(FileSpec { path: path.clone(), size_bytes: bytes, sparse: true, direct })
        }
    };
    let name = format!("{}:lun{number}", config.name);
    let store = Store::open(&source).map_err(|error| UpError::File { lun: name, path, error })?;
    Ok(Medium::new(store, lun.block_bytes))
}
