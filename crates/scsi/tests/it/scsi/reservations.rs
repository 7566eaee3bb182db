//! Persistent reservations: the tables of SPC-4 as snapshots, and the unit attentions of other
//! hosts.

use super::bench::{Bench, config};
use sanloom_scsi::scsi::{NexusId, Notice};
use sanloom_wire::cdb::{Cdb, status};
use sanloom_wire::scsi::reservation::{Keys, OutParameters, Reservation, in_action, kind, out_action};
use sanloom_wire::sense::SenseCode;
use std::fmt::Write;

const KINDS: [u8; 6] = [1, 3, 5, 6, 7, 8];

pub fn list(key: u64, action_key: u64) -> OutParameters {
    OutParameters { key, action_key, keep: false, all_ports: false, initiators: None }
}

pub fn out(action: u8, kind: u8, parameters: &OutParameters) -> (Cdb, Vec<u8>) {
    let mut bytes = Vec::new();
    parameters.emit(&mut bytes);
    (Cdb::PersistentReserveOut { action, scope: 0, kind, list_len: bytes.len() as u32 }, bytes)
}

fn reserve_out(bench: &mut Bench, nexus: NexusId, action: u8, kind: u8, key: u64, action_key: u64) -> String {
    let (cdb, bytes) = out(action, kind, &list(key, action_key));
    let response = bench.run(nexus, 0, cdb, &bytes);
    match (response.status, response.sense) {
        (status::GOOD, _) => "good".into(),
        (status::RESERVATION_CONFLICT, _) => "conflict".into(),
        (_, Some(sense)) => sense.to_string(),
        (other, None) => format!("status {other:02x}"),
    }
}

pub fn register(bench: &mut Bench, nexus: NexusId, key: u64, new: u64) {
    assert_eq!(reserve_out(bench, nexus, out_action::REGISTER, 0, key, new), "good");
}

pub fn reserve(bench: &mut Bench, nexus: NexusId, kind: u8, key: u64) {
    assert_eq!(reserve_out(bench, nexus, out_action::RESERVE, kind, key, 0), "good");
}

pub fn clear(bench: &mut Bench, nexus: NexusId, key: u64) {
    assert_eq!(reserve_out(bench, nexus, out_action::CLEAR, 0, key, 0), "good");
}

/// The host with key 1 holds the reservation, if there is one; key 2 is registered; the third host
/// is not.
fn three(kind: Option<u8>) -> (Bench, [NexusId; 3]) {
    let mut bench = Bench::new(config());
    let hosts = [bench.host(1, 0), bench.host(2, 1), bench.host(3, 0)];
    register(&mut bench, hosts[0], 0, 1);
    register(&mut bench, hosts[1], 0, 2);
    if let Some(kind) = kind {
        reserve(&mut bench, hosts[0], kind, 1);
    }
    (bench, hosts)
}

fn commands() -> Vec<Cdb> {
    let (lba, blocks) = (0, 1);
    let start_stop =
        |start| Cdb::StartStopUnit { immediate: false, power: 0, no_flush: true, load_eject: false, start };
    vec![
        Cdb::TestUnitReady,
        Cdb::Inquiry { vpd_page: None, allocation_len: 36 },
        Cdb::ReportLuns { allocation_len: 16 },
        Cdb::RequestSense { descriptor: false, allocation_len: 18 },
        Cdb::ReadCapacity10,
        Cdb::ReadCapacity16 { allocation_len: 32 },
        Cdb::ReportTargetPortGroups { extended: false, allocation_len: 64 },
        Cdb::ReportSupportedOperations { timeouts: false, options: 0, operation: 0, action: 0, allocation_len: 64 },
        Cdb::ReportSupportedTaskManagement { extended: false, allocation_len: 4 },
        Cdb::PersistentReserveIn { action: in_action::READ_KEYS, allocation_len: 8 },
        Cdb::ModeSense { long: false, no_descriptor: true, control: 0, page: 8, subpage: 0, allocation_len: 64 },
        Cdb::ModeSelect { long: false, page_format: true, save: false, list_len: 0 },
        start_stop(true),
        start_stop(false),
        Cdb::Read { lba, blocks, fua: false },
        Cdb::Verify { lba, blocks, byte_check: 0 },
        Cdb::Prefetch { lba, blocks, immediate: false },
        Cdb::GetLbaStatus { lba, allocation_len: 24 },
        Cdb::Write { lba, blocks, fua: false },
        Cdb::WriteAndVerify { lba, blocks, byte_check: 0 },
        Cdb::WriteSame { lba, blocks, unmap: false, anchor: false, no_data: true },
        Cdb::CompareAndWrite { lba, blocks: 1, fua: false },
        Cdb::Unmap { anchor: false, list_len: 0 },
        Cdb::SynchronizeCache { lba, blocks, immediate: false },
        Cdb::Reserve6,
        Cdb::Release6,
    ]
}

/// Command by type of reservation and role; C is a conflict.
#[test]
fn which_commands_conflict() {
    let mut table = String::from("type                                   1   3   5   6   7   8\n");
    table.push_str("H holder, R registered, S stranger    HRS HRS HRS HRS HRS HRS\n");
    for cdb in commands() {
        let name = format!("{cdb:?}");
        let name = name.split_once(' ').map_or(name.as_str(), |(name, _)| name);
        let flag = match cdb {
            Cdb::StartStopUnit { start: true, .. } => " start",
            Cdb::StartStopUnit { .. } => " stop",
            _ => "",
        };
        write!(table, "{:<38}", format!("{name}{flag}")).unwrap();
        for kind in KINDS {
            for role in 0..3_usize {
                let (mut bench, hosts) = three(Some(kind));
                let conflict = bench.run(hosts[role], 0, cdb, &[0; 1024]).status == status::RESERVATION_CONFLICT;
                table.push(if conflict { 'C' } else { '.' });
            }
            table.push(' ');
        }
        table.truncate(table.trim_end().len());
        table.push('\n');
    }
    insta::assert_snapshot!(table);
}

fn state(bench: &mut Bench, nexus: NexusId) -> String {
    let keys =
        bench.good(nexus, 0, Cdb::PersistentReserveIn { action: in_action::READ_KEYS, allocation_len: 256 }, &[]);
    let keys = Keys::parse(&keys).expect("keys");
    let held = Cdb::PersistentReserveIn { action: in_action::READ_RESERVATION, allocation_len: 256 };
    let held = Reservation::parse(&bench.good(nexus, 0, held, &[])).expect("reservation");
    let held = held.held.map_or("free".to_owned(), |(key, kind)| format!("type {kind} key {key}"));
    format!("generation {} keys {:?} {held}", keys.generation, keys.keys)
}

/// Service action by role, key and type of the reservation: outcome, new state, and unit attentions
/// of other hosts.
#[test]
fn what_every_service_action_does() {
    let mut table = String::new();
    let actions: [(&str, u8, u8, u64); 12] = [
        ("REGISTER new key 9", out_action::REGISTER, 0, 9),
        ("REGISTER key 0", out_action::REGISTER, 0, 0),
        ("REGISTER AND IGNORE new key 9", out_action::REGISTER_AND_IGNORE, 0, 9),
        ("REGISTER AND IGNORE key 0", out_action::REGISTER_AND_IGNORE, 0, 0),
        ("RESERVE same type", out_action::RESERVE, 0, 0),
        ("RESERVE type 3", out_action::RESERVE, kind::EXCLUSIVE_ACCESS, 0),
        ("RELEASE same type", out_action::RELEASE, 0, 0),
        ("RELEASE type 3", out_action::RELEASE, kind::EXCLUSIVE_ACCESS, 0),
        ("CLEAR", out_action::CLEAR, 0, 0),
        ("PREEMPT key 1, type 3", out_action::PREEMPT, kind::EXCLUSIVE_ACCESS, 1),
        ("PREEMPT key 2, type 3", out_action::PREEMPT, kind::EXCLUSIVE_ACCESS, 2),
        ("PREEMPT key 0, type 3", out_action::PREEMPT, kind::EXCLUSIVE_ACCESS, 0),
    ];
    for held in [None, Some(kind::WRITE_EXCLUSIVE), Some(5), Some(kind::WRITE_EXCLUSIVE_ALL_REGISTRANTS)] {
        let name = held.and_then(kind::name).unwrap_or("no reservation");
        writeln!(table, "# {name}; keys 1 and 2 are registered, and 1 made the reservation").unwrap();
        for (text, action, requested, action_key) in actions {
            for (by, key, who) in [(0, 1, "1"), (1, 2, "2"), (1, 7, "2 with a wrong key"), (2, 0, "3, not registered")]
            {
                let (mut bench, hosts) = three(held);
                let kind = if requested == 0 { held.unwrap_or(kind::WRITE_EXCLUSIVE) } else { requested };
                let outcome = reserve_out(&mut bench, hosts[by], action, kind, key, action_key);
                let after = state(&mut bench, hosts[by]);
                let mut attentions = String::new();
                for (number, &host) in hosts.iter().enumerate() {
                    let sense_data = bench.run(host, 0, Cdb::TestUnitReady, &[]).sense;
                    if let Some(sense) = sense_data {
                        write!(attentions, "; {} hears \"{}\"", number + 1, sense.code).unwrap();
                    }
                }
                writeln!(table, "{text:<30} by {who:<18} {outcome}: {after}{attentions}").unwrap();
            }
        }
    }
    insta::assert_snapshot!(table);
}

#[test]
fn preempt_and_abort_ends_the_tasks_of_the_preempted() {
    let (mut bench, hosts) = three(Some(kind::WRITE_EXCLUSIVE));
    let (cdb, bytes) = out(out_action::PREEMPT_AND_ABORT, kind::EXCLUSIVE_ACCESS, &list(2, 1));
    assert_eq!(bench.run(hosts[1], 0, cdb, &bytes).status, status::GOOD);
    let notices = bench.listen();
    let [(0, Notice::End(ends))] = notices[..] else { unreachable!("{notices:?}") };
    assert_eq!((ends.unit, ends.nexus, ends.by), (Some(0), Some(hosts[0]), hosts[1]));
    assert_eq!(bench.code(hosts[0], 0, Cdb::TestUnitReady, &[]), SenseCode::REGISTRATIONS_PREEMPTED);
}

#[test]
fn a_reservation_moves_to_another_party() {
    use super::bench::host;
    use sanloom_wire::scsi::reservation::MoveParameters;
    let (mut bench, hosts) = three(Some(kind::WRITE_EXCLUSIVE));
    let moved = MoveParameters { key: 1, action_key: 3, unregister: true, keep: false, port: 1, initiator: host(3) };
    let send = |bench: &mut Bench, nexus, parameters: &MoveParameters| {
        let mut bytes = Vec::new();
        parameters.emit(&mut bytes);
        let action = out_action::REGISTER_AND_MOVE;
        let cdb = Cdb::PersistentReserveOut { action, scope: 0, kind: 0, list_len: bytes.len() as u32 };
        bench.run(nexus, 0, cdb, &bytes)
    };
    let other = MoveParameters { key: 2, ..moved.clone() };
    assert_eq!(send(&mut bench, hosts[1], &other).status, status::RESERVATION_CONFLICT, "only the holder moves it");
    let nowhere = MoveParameters { port: 3, ..moved.clone() };
    let sense = send(&mut bench, hosts[0], &nowhere).sense.expect("sense data");
    assert_eq!((sense.code, sense.key_specific), (SenseCode::INVALID_FIELD_IN_LIST, [0x80, 0, 18]));
    assert_eq!(send(&mut bench, hosts[0], &moved).status, status::GOOD);
    assert_eq!(state(&mut bench, hosts[2]), "generation 3 keys [2, 3] type 1 key 3");
    let write = Cdb::Write { lba: 0, blocks: 1, fua: false };
    bench.good(hosts[2], 0, write, &[0; 512]);
    assert_eq!(bench.run(hosts[0], 0, write, &[0; 512]).status, status::RESERVATION_CONFLICT);
}

#[test]
fn a_registration_may_name_other_initiators_and_all_ports() {
    use super::bench::host;
    let mut bench = Bench::new(config());
    let one = bench.host(1, 0);
    let parameters = OutParameters { all_ports: true, initiators: Some(vec![host(2)]), ..list(0, 5) };
    let (cdb, bytes) = out(out_action::REGISTER, 0, &parameters);
    bench.good(one, 0, cdb, &bytes);
    let parties: Vec<_> = bench.device.reservations(0).into_iter().map(|one| (one.initiator, one.port)).collect();
    assert_eq!(parties, [(host(1), 1), (host(1), 2), (host(2), 1), (host(2), 2)]);
}
