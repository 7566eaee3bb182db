//! A storage system with files, frame by frame: reservations are confirmed only after they are
//! stored.

use sanloom_fc::fcp::target::{FcpTarget, FcpTargetConfig, Input};
use sanloom_fc::nport::{NPort, NPortConfig};
use sanloom_live::storage::StorageSystem;
use sanloom_live::storage::port::{At, Leaving, StoragePort};
use sanloom_live::storage::records::Records;
use sanloom_scsi::scsi::{Device, DeviceConfig, PortConfig, PortName, UnitConfig};
use sanloom_scsi::time::{Instant, Span};
use sanloom_wire::cdb::{Cdb, status};
use sanloom_wire::fcp::{FcpCmnd, FcpRsp};
use sanloom_wire::scsi::reservation::{OutParameters, out_action};
use sanloom_wire::sense::{Sense, SenseCode};
use sanloom_wire::{FCtl, FcId, Frame, Header, Message, Payload, RCtl, Wwnn, Wwpn};
use std::fs;
use std::path::{Path, PathBuf};

const TARGET: FcId = FcId::new(0x010100);
const HOST: FcId = FcId::new(0x010200);
const NAME: Wwpn = Wwpn(0x5000_0000_0000_0001);
const NOW: Instant = Instant::ZERO;

/// A system with one LUN, whose reservations are stored at `record`, and a host that is logged in.
fn system(record: &Path) -> StorageSystem {
    let (e_d_tov, r_a_tov) = (Span::from_secs(2), Span::from_secs(10));
    let wwnn = Wwnn(0x5000_0000_0000_0000);
    let login = NPort::new(NPortConfig {
        wwpn: NAME,
        wwnn,
        receive_size_bytes: 2_048,
        bb_credit: 16,
        bb_sc_n: 0,
        initiator: false,
        target: true,
        symbolic_name: String::new(),
        e_d_tov,
        r_a_tov,
        seed: 1,
        virtual_port: None,
    });
    let (max_burst_bytes, max_exchanges) = (65_536, 8);
    let config =
        FcpTargetConfig { e_d_tov, r_a_tov, max_burst_bytes, max_exchanges, in_order: true, port: 0, port_name: NAME };
    let port = StoragePort::new("disk".to_owned(), At::Switch { switch: 0, port: 0 }, login, FcpTarget::new(config));
    let mut device = Device::new(DeviceConfig {
        wwnn,
        ports: vec![PortConfig { name: PortName::Fcp(NAME), group: 1 }],
        units: vec![UnitConfig::new(1_000, 512)],
        ..DeviceConfig::default()
    });
    let mut records = Records::default();
    records.restore(0, record.to_owned(), &mut device);
    let mut system = StorageSystem::new(0, "disk", device, vec![port], Vec::new(), records);
    let node = &mut system.ports[0];
    node.port_id = TARGET;
    node.target.handle(NOW, Input::LocalId(TARGET), &mut system.device);
    let login = Input::LoginUp { port_id: HOST, port_name: Wwpn(0x2000_0000_0000_0001), frame_size_bytes: 2_048 };
    node.target.handle(NOW, login, &mut system.device);
    system
}

/// Returns the next message of the system.
fn next(system: &mut StorageSystem) -> (Header, Message) {
    match system.ports[0].next_leaving() {
        Some(Leaving::Message(Frame { header, payload: Payload::Typed(message) })) => (header, message),
        other => panic!("{other:?}"),
    }
}

/// PERSISTENT RESERVE OUT, REGISTER AND IGNORE EXISTING KEY with APTPL.
fn register(system: &mut StorageSystem, key: u64) -> FcpRsp {
    let mut list = Vec::new();
    OutParameters { key: 0, action_key: key, keep: true, all_ports: false, initiators: None }.emit(&mut list);
    let list_len = list.len() as u32;
    let cdb =
        Cdb::PersistentReserveOut { action: out_action::REGISTER_AND_IGNORE, scope: 0, kind: 0, list_len }.to_bytes();
    let lun = [0; 8];
    let command =
        FcpCmnd { lun, crn: 0, attribute: 0, task_management: 0, flags: FcpCmnd::WRITE, cdb, data_len: list_len };
    let command = Message::FcpCmnd(command);
    let header = command.header(HOST, TARGET, 0x77, 0xffff);
    system.message_in(NOW, 0, Frame { header, payload: Payload::Typed(command) });
    let (transfer_ready, Message::FcpXferRdy(_)) = next(system) else { panic!("the list is asked for") };
    let f_ctl = FCtl::new(FCtl::END_SEQUENCE | FCtl::RELATIVE_OFFSET);
    let rx_id = transfer_ready.rx_id;
    let data = Header { r_ctl: RCtl::SOLICITED_DATA, f_ctl, rx_id, parameter: 0, seq_cnt: 0, ..header };
    system.frame_in(NOW, 0, data, &list);
    match next(system) {
        (_, Message::FcpRsp(response)) => response,
        other => panic!("{other:?}"),
    }
}

fn folder(name: &str) -> PathBuf {
    let folder = std::env::temp_dir().join(format!("sanloom-records-{}-{name}", std::process::id()));
    let _ = fs::remove_dir_all(&folder);
    fs::create_dir_all(&folder).unwrap();
    folder
}

/// Registrations that cannot be stored are rejected and have no effect; the previous record
/// remains.
fn is_refused(system: &mut StorageSystem, record: &Path) {
    let before = (system.device.reservations(0), fs::read(record).ok());
    let response = register(system, 0x22);
    assert_eq!(response.status, status::CHECK_CONDITION);
    let sense = Sense::parse(&response.sense.unwrap()).unwrap();
    assert_eq!(sense.code, SenseCode::INSUFFICIENT_REGISTRATIONS);
    assert_eq!((system.device.reservations(0), fs::read(record).ok()), before);
}

#[test]
fn a_registration_that_a_full_file_system_cannot_store_is_rejected() {
    let folder = folder("full");
    let record = folder.join("lun.reservations");
    let mut system = system(&record);
    // A device on which all writes fail with "no space left".
    std::os::unix::fs::symlink("/dev/full", folder.join("lun.reservations.new")).unwrap();
    is_refused(&mut system, &record);
    assert!(!folder.join("lun.reservations.new").exists());
    // Space is available again.
    assert_eq!(register(&mut system, 0x11).status, status::GOOD);
    assert_eq!(self::system(&record).device.reservations(0), system.device.reservations(0));
    std::os::unix::fs::symlink("/dev/full", folder.join("lun.reservations.new")).unwrap();
    is_refused(&mut system, &record);
    fs::remove_dir_all(folder).unwrap();
}

#[test]
fn a_registration_in_a_folder_that_cannot_be_written_is_rejected() {
    let folder = folder("gone");
    let record = folder.join("lun.reservations");
    let mut system = system(&record);
    fs::remove_dir(&folder).unwrap();
    is_refused(&mut system, &record);
    fs::create_dir(&folder).unwrap();
    assert_eq!(register(&mut system, 0x11).status, status::GOOD);
    fs::remove_dir_all(folder).unwrap();
}
