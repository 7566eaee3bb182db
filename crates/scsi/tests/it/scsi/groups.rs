//! Target port groups: accepted commands in each state, unit attentions after a change, and the
//! right to change states.

use super::bench::{Bench, config};
use sanloom_scsi::scsi::{AccessState, Attribute, DeviceConfig, PortGroup};
use sanloom_wire::cdb::{Cdb, status};
use sanloom_wire::scsi::inquiry::StandardInquiry;
use sanloom_wire::scsi::port_groups::{self, PortGroups, SetTargetPortGroup, changed, state};
use sanloom_wire::scsi::vpd::{self, Designator};
use sanloom_wire::sense::{SenseCode, SenseKey};

const REPORT: Cdb = Cdb::ReportTargetPortGroups { extended: true, allocation_len: 256 };
const TUR: Cdb = Cdb::TestUnitReady;

/// Port 0 in group 1, port 1 in group 2.
fn two_groups() -> Bench {
    let mut config: DeviceConfig = config();
    config.ports[1].group = 2;
    Bench::new(config)
}

fn set(bench: &mut Bench, group: u16, state: AccessState) {
    assert!(bench.device.set_port_group(group, PortGroup { state, preferred: false }));
}

fn reported(bench: &mut Bench, nexus: sanloom_scsi::scsi::NexusId) -> Vec<(u16, u8, bool, u8, Vec<u16>)> {
    let groups = PortGroups::parse(&bench.good(nexus, 0, REPORT, &[])).expect("groups");
    assert_eq!(groups.transition_seconds, Some(0));
    let row = |one: port_groups::TargetPortGroup| (one.group, one.state, one.preferred, one.status, one.ports);
    groups.groups.into_iter().map(row).collect()
}

#[test]
fn a_port_reports_its_identifier_and_group() {
    let mut bench = two_groups();
    for (port, group) in [(0, 1_u32), (1, 2)] {
        let nexus = bench.host(1, port);
        let data = bench.good(nexus, 0, Cdb::Inquiry { vpd_page: None, allocation_len: 96 }, &[]);
        assert_eq!(StandardInquiry::parse(&data).expect("inquiry").port_groups, 3);
        let data = bench.good(nexus, 0, Cdb::Inquiry { vpd_page: Some(0x83), allocation_len: 512 }, &[]);
        let list = Designator::parse_list(vpd::parse(&data).expect("page").1).expect("designators");
        let number = |kind| list.iter().find(|one| one.kind == kind).map(|one| one.bytes.clone());
        assert_eq!(number(4), Some(u32::from(port + 1).to_be_bytes().to_vec()));
        assert_eq!(number(5), Some(group.to_be_bytes().to_vec()));
    }
}

#[test]
fn every_access_state_accepts_the_commands_of_the_standard() {
    let data = |cdb: &Cdb| matches!(cdb, Cdb::Write { .. } | Cdb::SetTargetPortGroups { .. });
    let reports = [
        Cdb::Inquiry { vpd_page: None, allocation_len: 96 },
        Cdb::ReportLuns { allocation_len: 256 },
        Cdb::RequestSense { descriptor: false, allocation_len: 18 },
        REPORT,
    ];
    let sets = [Cdb::SetTargetPortGroups { list_len: 4 }];
    let without_medium = [
        Cdb::ModeSense { long: false, no_descriptor: true, control: 0, page: 8, subpage: 0, allocation_len: 192 },
        Cdb::PersistentReserveIn { action: 0, allocation_len: 256 },
        Cdb::ReadCapacity10,
        Cdb::ReadCapacity16 { allocation_len: 32 },
        Cdb::ReportSupportedOperations { timeouts: false, options: 0, operation: 0, action: 0, allocation_len: 4096 },
    ];
    let with_medium = [
        TUR,
        Cdb::Read { lba: 0, blocks: 1, fua: false },
        Cdb::Write { lba: 0, blocks: 1, fua: false },
        Cdb::Verify { lba: 0, blocks: 1, byte_check: 0 },
        Cdb::SynchronizeCache { lba: 0, blocks: 0, immediate: false },
        Cdb::GetLbaStatus { lba: 0, allocation_len: 256 },
        Cdb::StartStopUnit { immediate: false, power: 0, no_flush: false, load_eject: false, start: true },
    ];
    let expected = [
        (AccessState::Optimized, 4, None),
        (AccessState::NonOptimized, 4, None),
        (AccessState::Standby, 3, Some(SenseCode::ALUA_STANDBY)),
        (AccessState::Unavailable, 2, Some(SenseCode::ALUA_UNAVAILABLE)),
        (AccessState::Offline, 2, Some(SenseCode::ALUA_UNAVAILABLE)),
        (AccessState::Transitioning, 1, Some(SenseCode::ALUA_TRANSITION)),
    ];
    for (state, served, refusal) in expected {
        let mut bench = two_groups();
        let nexus = bench.host(1, 1);
        let other = bench.host(2, 0);
        set(&mut bench, 2, state);
        if state != AccessState::Optimized {
            assert_eq!(bench.code(nexus, 0, TUR, &[]), SenseCode::ALUA_STATE_CHANGED);
            assert_eq!(bench.code(other, 0, TUR, &[]), SenseCode::ALUA_STATE_CHANGED);
        }
        for (rank, list) in [&reports[..], &sets, &without_medium, &with_medium].into_iter().enumerate() {
            for cdb in list {
                let out = if data(cdb) { vec![0; 512] } else { Vec::new() };
                bench.good(other, 0, *cdb, &out);
                if rank < served {
                    bench.good(nexus, 0, *cdb, &out);
                    continue;
                }
                let sense = bench.sense(nexus, 0, *cdb, &out);
                assert_eq!((sense.key, Some(sense.code)), (SenseKey::NOT_READY, refusal), "{cdb} {state}");
                // Such a command is not forwarded either.
                let command = bench.command(nexus, 0, cdb.to_bytes(), Attribute::Simple);
                assert_eq!(bench.device.would_transfer(&command), None);
            }
        }
    }
}

#[test]
fn every_nexus_but_the_sender_gets_an_attention_for_a_change() {
    let mut bench = two_groups();
    let [first, second] = [0, 1].map(|port| bench.host(1, port));
    let cdb = Cdb::SetTargetPortGroups { list_len: 12 };
    let mut list = Vec::new();
    let wanted = [(state::STANDBY, 1), (state::ACTIVE_OPTIMIZED, 2)];
    port_groups::emit_set(&wanted.map(|(state, group)| SetTargetPortGroup { state, group }), &mut list);
    bench.good(first, 0, cdb, &list);
    assert_eq!(bench.code(first, 0, TUR, &[]), SenseCode::ALUA_STANDBY);
    for unit in 0..2 {
        assert_eq!(bench.code(second, unit, TUR, &[]), SenseCode::ALUA_STATE_CHANGED);
        bench.good(second, unit, TUR, &[]);
    }
    assert_eq!(
        reported(&mut bench, second),
        [(1, state::STANDBY, false, changed::EXPLICITLY, vec![1]), (2, 0, false, changed::NOT_TOLD, vec![2])]
    );
    // Setting the same state again is no change.
    bench.good(first, 0, cdb, &list);
    bench.good(second, 0, TUR, &[]);
    assert!(bench.device.set_port_group(1, PortGroup { state: AccessState::Optimized, preferred: true }));
    assert_eq!(bench.code(first, 0, TUR, &[]), SenseCode::ALUA_STATE_CHANGED);
    assert_eq!(bench.code(second, 0, TUR, &[]), SenseCode::ALUA_STATE_CHANGED);
    assert_eq!(reported(&mut bench, first)[0], (1, 0, true, changed::IMPLICITLY, vec![1]));
}

#[test]
fn a_list_with_one_error_changes_no_state() {
    let mut bench = two_groups();
    let nexus = bench.host(1, 0);
    let before = reported(&mut bench, nexus);
    for (wrong, at) in [((state::OFFLINE, 2), 8), ((state::TRANSITIONING, 2), 8), ((5, 2), 8), ((0, 3), 10)] {
        let mut list = Vec::new();
        let wanted = [(state::STANDBY, 1), wrong].map(|(state, group)| SetTargetPortGroup { state, group });
        port_groups::emit_set(&wanted, &mut list);
        let sense = bench.sense(nexus, 0, Cdb::SetTargetPortGroups { list_len: 12 }, &list);
        assert_eq!((sense.code, sense.key_specific), (SenseCode::INVALID_FIELD_IN_LIST, [0x80, 0, at]));
    }
    let short = bench.code(nexus, 0, Cdb::SetTargetPortGroups { list_len: 6 }, &[0; 6]);
    assert_eq!(short, SenseCode::PARAMETER_LIST_LENGTH);
    assert_eq!(bench.code(nexus, 0, Cdb::SetTargetPortGroups { list_len: 12 }, &[0; 8]), short);
    bench.good(nexus, 0, Cdb::SetTargetPortGroups { list_len: 0 }, &[]);
    assert_eq!(reported(&mut bench, nexus), before);
    assert!(!bench.device.set_port_group(3, PortGroup::default()));
}

#[test]
fn one_group_has_no_states() {
    let mut bench = Bench::new(config());
    let nexus = bench.host(1, 0);
    let standby = PortGroup { state: AccessState::Standby, preferred: false };
    assert!(!bench.device.set_port_group(1, standby));
    let sets = Cdb::SetTargetPortGroups { list_len: 8 };
    assert_eq!(bench.code(nexus, 0, sets, &[0; 8]), SenseCode::INVALID_OPERATION);
    assert_eq!(bench.run(nexus, 0, TUR, &[]).status, status::GOOD);
}
