//! Units that are added and removed during I/O.

use super::bench::{BLOCK, BLOCKS, Bench, config, host};
use sanloom_scsi::scsi::{Attribute, DeviceConfig, IoOp, IoStatus, Step, TaskId, UnitConfig};
use sanloom_wire::cdb::{Cdb, status};
use sanloom_wire::scsi::vpd::page;
use sanloom_wire::sense::{SenseCode, SenseKey};

const TUR: Cdb = Cdb::TestUnitReady;
const LUNS: Cdb = Cdb::ReportLuns { allocation_len: 256 };

fn unit(identity: u64) -> UnitConfig {
    UnitConfig { identity: Some(identity), ..UnitConfig::new(BLOCKS, BLOCK as u32) }
}

/// LUNs that a host is shown.
fn listed(bench: &mut Bench, nexus: sanloom_scsi::scsi::NexusId) -> Vec<u8> {
    let data = bench.good(nexus, 0, LUNS, &[]);
    data[8..].chunks(8).map(|lun| lun[1]).collect()
}

#[test]
fn a_removed_unit_is_invisible_and_its_tasks_end() {
    let mut bench = Bench::new(config());
    let nexus = bench.host(1, 0);
    let name = |bench: &mut Bench, unit| {
        let cdb = Cdb::Inquiry { vpd_page: Some(page::IDENTIFICATION), allocation_len: 24 };
        bench.good(nexus, unit, cdb, &[])[8..24].to_vec()
    };
    let read = Cdb::Read { lba: 0, blocks: 1, fua: false }.to_bytes();
    let command = bench.command(nexus, 1, read, Attribute::Simple);
    assert!(matches!(bench.device.begin(&command), Step::Io(_)));
    let task = TaskId { nexus, tag: command.tag, unit: 1 };
    let before = name(&mut bench, 1);
    bench.device.remove_unit(1);
    let attention = bench.sense(nexus, 0, TUR, &[]);
    assert_eq!((attention.key, attention.code), (SenseKey::UNIT_ATTENTION, SenseCode::REPORTED_LUNS_CHANGED));
    assert_eq!(listed(&mut bench, nexus), [0]);
    assert_eq!(bench.sense(nexus, 1, TUR, &[]).code, SenseCode::LUN_NOT_SUPPORTED);
    assert_eq!(bench.device.unit_config(1), None);
    // The number stays in use while a task is active on the old unit.
    assert!(!bench.device.put_unit(1, unit(7)) && !bench.device.put_unit(0, unit(7)));
    let Step::Done(end) = bench.device.io_done(task, IoOp::Read, IoStatus::Good) else { panic!("it has ended") };
    assert_eq!(end.status, status::GOOD);
    assert!(bench.device.put_unit(1, unit(7)));
    assert_eq!(bench.sense(nexus, 0, TUR, &[]).code, SenseCode::REPORTED_LUNS_CHANGED);
    assert_eq!(listed(&mut bench, nexus), [0, 1]);
    // The new unit has another name, which does not contain its number.
    let after = name(&mut bench, 1);
    assert_ne!(after, before);
    assert_eq!(after[8..], 7_u64.to_be_bytes());
}

#[test]
fn a_unit_may_have_any_number_and_gaps_are_no_units() {
    let mut bench = Bench::new(config());
    let nexus = bench.host(1, 0);
    assert!(bench.device.put_unit(5, unit(1)));
    assert_eq!(listed(&mut bench, nexus), [0, 1, 5]);
    assert_eq!(bench.sense(nexus, 3, TUR, &[]).code, SenseCode::LUN_NOT_SUPPORTED);
    assert!(bench.device.put_unit(3, unit(2)));
    assert_eq!(listed(&mut bench, nexus), [0, 1, 3, 5]);
}

#[test]
fn sense_data_of_a_medium_that_is_a_device_reach_the_host() {
    let mut bench = Bench::new(config());
    let nexus = bench.host(1, 0);
    let read = Cdb::Read { lba: 0, blocks: 1, fua: false }.to_bytes();
    let command = bench.command(nexus, 1, read, Attribute::Simple);
    assert!(matches!(bench.device.begin(&command), Step::Io(_)));
    let task = TaskId { nexus, tag: command.tag, unit: 1 };
    let failed = IoStatus::Failed { key: SenseKey::NOT_READY, code: SenseCode::COMMUNICATION_FAILURE };
    let Step::Done(end) = bench.device.io_done(task, IoOp::Read, failed) else { panic!("it has ended") };
    let sense = end.sense.unwrap();
    assert_eq!((sense.key, sense.code), (SenseKey::NOT_READY, SenseCode::COMMUNICATION_FAILURE));
}

#[test]
fn a_change_behind_the_device_is_reported_once_to_each_nexus_that_it_concerns() {
    let mut bench = Bench::new(DeviceConfig { attentions: false, ..config() });
    let [first, second] = [1, 2].map(|number| bench.host(number, 0));
    bench.device.report_change(SenseCode::I_T_NEXUS_LOSS, |_, initiator| *initiator == host(1));
    for unit in [0, 1] {
        bench.good(second, unit, TUR, &[]);
        let attention = bench.sense(first, unit, TUR, &[]);
        assert_eq!((attention.key, attention.code), (SenseKey::UNIT_ATTENTION, SenseCode::I_T_NEXUS_LOSS));
        bench.good(first, unit, TUR, &[]);
    }
    assert_eq!(bench.device.reported_attentions(), 2);
    // A nexus that begins afterwards has not lived through the change.
    bench.device.report_change(SenseCode::REPORTED_LUNS_CHANGED, |_, _| true);
    let third = bench.device.connect(1, host(3));
    bench.good(third, 0, TUR, &[]);
}
