//! The storage of a runtime: devices, ports, media.

use super::iscsi::{PORTAL_GROUP, portal_groups};
use super::switches::open;
use super::{Builder, LabPaths, mac_of, served};
use crate::ports::EthernetPort;
use crate::runtime::UpError;
use crate::runtime::fabric::Fabric;
use crate::runtime::fabric::station::Station;
use crate::runtime::fabric::switch::Attachment;
use crate::runtime::instance::Instance;
use crate::runtime::ports::LivePort;
use crate::storage::StorageSystem;
use crate::storage::medium::Medium;
use crate::storage::port::{At, StoragePort};
use crate::storage::records::Records;
use crate::storage::store::Store;
use sanloom_block::{FileSpec, Source};
use sanloom_fc::config::{Ethernet, MediumKind, Storage, srp_target_port};
use sanloom_fc::fcp::target::{FcpTarget, FcpTargetConfig};
use sanloom_fc::fip::vn2vn::Vn2vnConfig;
use sanloom_fc::nport::{NPort, NPortConfig};
use sanloom_fc::san::Lab;
use sanloom_scsi::scsi::{Device, DeviceConfig, PortConfig, PortName, UnitConfig};
use std::sync::Arc;

/// Maximum number of exchanges of a storage port.
const MAX_EXCHANGES: u16 = 4_096;
/// Maximum transfer of one command, in bytes; hosts split longer requests. Over TCP it is larger,
/// because data are requested in bursts.
const MAX_TRANSFER_BYTES: u32 = 4 << 20;
const MAX_TRANSFER_OVER_TCP_BYTES: u32 = 32 << 20;

impl Builder<'_> {
    pub(super) fn make_storage(&mut self) -> Result<(), UpError> {
        let instance = &mut self.instance;
        let lab = instance.lab.clone();
        for (number, storage) in served(&lab, &instance.lab_switches).into_iter().enumerate() {
            if let Some(ethernet) = lab.live.stations.get(&storage) {
                make_station(instance, self.lab_paths, (number, storage), ethernet)?;
            }
            let config = &lab.storage[usize::from(storage)];
            let mut media = Vec::new();
            for lun in 0..config.luns.len() {
                media.push(Arc::new(medium(&lab, self.lab_paths, storage, lun)?));
            }
            let ports = (0..config.ports.len() as u16).map(|port| {
                let at = attached_to(&instance.fabric, number, port);
                let name = if config.ports.len() > 1 { format!("{}:{port}", config.name) } else { config.name.clone() };
                storage_port(&lab, config, port, name, at)
            });
            let ports = ports.collect();
            let mut device = Device::new(device(&lab, instance.keeper.state.instance(), storage, config));
            for group in lab.live.port_groups.iter().filter(|group| group.storage == storage) {
                device.set_port_group(group.number, group.access);
            }
            let mut records = Records::default();
            for lun in 0..config.luns.len() {
                if let Some(path) = self.lab_paths.reservations(&lab, storage, lun) {
                    records.restore(lun as u16, path, &mut device);
                }
            }
            let system = StorageSystem::new(number, &config.name, device, ports, media, records);
            instance.services.systems.push(system);
        }
        Ok(())
    }
}

/// Attachment of a storage port.
fn attached_to(fabric: &Fabric, system: usize, port: u16) -> At {
    let here = |station: &Station| (station.system, station.storage_port) == (system, port);
    if let Some(station) = fabric.stations.iter().position(here) {
        return At::Station(station);
    }
    let found = fabric.attached_to(Attachment::Storage { system, port });
    found.map_or(At::Nothing, |(switch, port)| At::Switch { switch, port })
}

/// Puts the first port of a storage system on a segment without a switch.
fn make_station(
    instance: &mut Instance,
    lab_paths: &LabPaths,
    (system, storage): (usize, u16),
    ethernet: &Ethernet,
) -> Result<(), UpError> {
    let config = &instance.lab.storage[usize::from(storage)];
    let driver = open(lab_paths, &config.name, ethernet, false)?;
    let controller = station_config(&instance.lab, config);
    let number = instance.fabric.stations.len();
    let mut port = LivePort::new(EthernetPort::new(&config.name, driver), None);
    port.station = Some(number);
    let at = ((instance.ports.add(port), ethernet.vlan), (system, 0));
    instance.fabric.stations.push(Station::new(number, at.0, at.1, controller, &instance.recording));
    Ok(())
}

/// Configuration of the controller of a station's storage system.
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
        bb_sc_n: 0,
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

/// Returns the number in the identifier of a LUN, from its own number or that of its volume, and
/// from the instance ([`StateStore::instance`]).
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

/// Creates a LUN of the lab that its device does not have.
pub(in crate::runtime) fn new_unit(
    lab: &Lab,
    lab_paths: &LabPaths,
    instance: u32,
    storage: u16,
    number: usize,
) -> Result<(UnitConfig, Medium), UpError> {
    Ok((unit(lab, instance, storage, number), medium(lab, lab_paths, storage, number)?))
}

fn device(lab: &Lab, instance: u32, storage: u16, config: &Storage) -> DeviceConfig {
    let unit = |number| unit(lab, instance, storage, number);
    let groups = || lab.live.port_groups.iter().filter(|group| group.storage == storage);
    let group_of = |port| groups().find(|group| group.ports.contains(&port)).map_or(PORTAL_GROUP, |group| group.number);
    let port = |(port, number): (&sanloom_fc::config::StoragePort, u16)| PortConfig {
        name: PortName::Fcp(port.wwpn),
        group: group_of(number),
    };
    let iscsi = lab.live.iscsi.get(&storage).into_iter().flat_map(|iscsi| {
        portal_groups(lab, storage).into_iter().map(|group| PortConfig {
            name: PortName::Iscsi { target: iscsi.name.as_str().into(), portal_group: group },
            group,
        })
    });
    let srp = lab
        .live
        .srp
        .get(&storage)
        .map(|_| PortConfig { name: PortName::Srp(srp_target_port(config.wwnn.0)), group: PORTAL_GROUP });
    DeviceConfig {
        wwnn: config.wwnn,
        // The port of SRP is the last one.
        ports: config.ports.iter().zip(0..).map(port).chain(iscsi).chain(srp).collect(),
        units: (0..config.luns.len()).map(unit).collect(),
        masking: lab.masking(storage),
        attentions: true,
    }
}

fn medium(lab: &Lab, lab_paths: &LabPaths, storage: u16, number: usize) -> Result<Medium, UpError> {
    let config = &lab.storage[usize::from(storage)];
    let lun = config.luns[number];
    let bytes = lun.blocks * u64::from(lun.block_bytes);
    let path = lab_paths.lun_file(lab, storage, number);
    let source = match lab.live.medium(storage).kind {
        MediumKind::Ram => Source::Ram,
        MediumKind::Pattern => Source::Pattern { seed: u32::from(storage) << 16 | number as u32 },
        // Virtual disks have no medium here.
        MediumKind::Null | MediumKind::Volumes => Source::Null,
        MediumKind::File => {
            let direct = lab.live.medium(storage).direct;
            Source::File(FileSpec { path: path.clone(), size_bytes: bytes, sparse: true, direct })
        }
    };
    let name = format!("{}:lun{number}", config.name);
    let store = Store::open(&source).map_err(|error| UpError::File { lun: name.clone(), path, error })?;
    Ok(Medium::new(store, lun.block_bytes).with_name(name))
}
