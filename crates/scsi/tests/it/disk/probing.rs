//! Probe of a disk before its use.

use crate::disk::target::{BLOCK, BLOCKS, Bed, Target, attention, bare, check, good};
use sanloom_scsi::disk::{DiskConfig, Error, ErrorKind, Input, Op, Output, Properties};
use sanloom_scsi::time::Span;
use sanloom_wire::cdb::{operation as op, status};
use sanloom_wire::sense::{SenseCode, SenseKey};

fn properties(bed: &Bed) -> &Properties {
    bed.disk.properties().expect("the disk was ready")
}

#[test]
fn a_probe_reads_all_properties_of_a_disk() {
    let mut bed = Bed::new(DiskConfig::default(), Target::new());
    bed.handle(Input::PathUp);
    assert_eq!(
        bed.operations(),
        [&[op::TEST_UNIT_READY][..], &[op::INQUIRY; 7], &[op::SERVICE_ACTION_IN_16, op::MODE_SENSE_6]].concat()
    );
    let Output::Ready(found) = &bed.others[0] else { panic!("{:?}", bed.others) };
    assert_eq!((&*found.vendor, &*found.product, &*found.revision), ("MAKER", "TEST DISK", "0042"));
    assert_eq!(found.serial.as_deref(), Some("serial-1"));
    let name = found.designator.as_ref().expect("a designator").to_string();
    assert_eq!(name, "naa.60000000000000010000000000000007");
    assert_eq!((found.blocks, found.block_bytes, found.physical_block_bytes), (BLOCKS, BLOCK as u32, 4096));
    assert_eq!(found.size_bytes(), BLOCKS * BLOCK as u64);
    assert_eq!((found.max_transfer_blocks, found.optimal_transfer_blocks), (64, 8));
    assert!(found.fua && !found.has_port_groups && !found.write_cache && !found.write_protected && !found.rotational);
    let thin = found.provisioning;
    assert!(thin.enabled && thin.unmap && thin.write_same && thin.zeros);
    assert_eq!((thin.max_unmap_blocks, thin.max_write_same_blocks), (100, 1000));
    assert!(bed.disk.is_ready());
    assert_eq!(bed.disk.poll_timeout(), None);
}

#[test]
fn an_old_disk_without_pages_is_used_with_care() {
    let mut target = Target::new();
    target.pages.clear();
    target.long_capacity = false;
    let refused = || check(SenseKey::ILLEGAL_REQUEST, SenseCode::INVALID_FIELD_IN_CDB);
    let inquiry = [&[0, 0, 2, 2, 31, 0, 0, 0][..], &[b' '; 28]].concat();
    // TEST UNIT READY and INQUIRY succeed; the list of VPD pages is refused.
    target.script.extend([good(vec![], 0), good(inquiry.clone(), inquiry.len()), refused()]);
    let mut bed = Bed::new(DiskConfig::default(), target);
    bed.hold = true;
    bed.handle(Input::PathUp);
    for _ in 0..3 {
        bed.answer(0);
    }
    // READ CAPACITY (16) is refused, (10) answered, and both forms of MODE SENSE are refused.
    bed.answer(0);
    bed.answer(0);
    bed.target.script.extend([refused(), refused()]);
    bed.answer(0);
    bed.answer(0);
    assert_eq!(
        bed.operations(),
        [
            op::TEST_UNIT_READY,
            op::INQUIRY,
            op::INQUIRY,
            op::SERVICE_ACTION_IN_16,
            op::READ_CAPACITY_10,
            op::MODE_SENSE_6,
            op::MODE_SENSE_10
        ]
    );
    assert_eq!(properties(&bed).blocks, BLOCKS);
    assert!(properties(&bed).write_cache, "a disk that does not report its cache may have one");
}

#[test]
fn unit_attentions_and_not_ready_are_retried_before_the_disk_is_ready() {
    let mut target = Target::new();
    let becoming = || check(SenseKey::NOT_READY, SenseCode::BECOMING_READY);
    target.script.extend([
        attention(SenseCode::POWER_ON_OR_RESET),
        attention(SenseCode::I_T_NEXUS_LOSS),
        becoming(),
        becoming(),
        bare(status::BUSY),
        bare(status::TASK_SET_FULL),
    ]);
    let mut bed = Bed::new(DiskConfig::default(), target);
    bed.handle(Input::PathUp);
    assert!(!bed.disk.is_ready());
    bed.pass(Span::from_secs(1));
    assert!(bed.disk.is_ready());
    assert_eq!(bed.disk.counters().unit_attentions, 2);
}

#[test]
fn a_disk_that_does_not_answer_is_unusable_and_probed_again() {
    let config = DiskConfig { busy_timeout: Span::from_secs(5), ..DiskConfig::default() };
    let mut bed = Bed::new(config, Target::new());
    bed.target.script.extend((0..100).map(|_| check(SenseKey::NOT_READY, SenseCode::NOT_READY_MANUAL)));
    bed.read(1, 0, 8);
    bed.handle(Input::PathUp);
    bed.pass(Span::from_secs(7));
    let error = Error { kind: ErrorKind::NotReady, sense: Some((SenseKey::NOT_READY, SenseCode::NOT_READY_MANUAL)) };
    assert_eq!(bed.others, [Output::Unusable(error)]);
    assert_eq!(bed.done[&1], Err(error));
    bed.read(2, 0, 8);
    assert_eq!(bed.done[&2], Err(error), "at once");
    bed.target.script.clear();
    bed.pass(Span::from_secs(12));
    assert!(bed.disk.is_ready());
    assert!(matches!(bed.others[1..], [Output::Ready(_)]));
    bed.read(3, 0, 8);
    assert!(bed.done[&3].is_ok());
}

#[test]
fn a_unit_that_is_no_disk_is_not_used() {
    let no_unit = [&[0x7f, 0, 6, 2, 31, 0, 0, 2][..], &[b' '; 28]].concat();
    let tape = [&[0x01, 0, 6, 2, 31, 0, 0, 2][..], &[b' '; 28]].concat();
    for inquiry in [no_unit, tape, vec![]] {
        let mut bed = Bed::new(DiskConfig::default(), Target::new());
        let len = inquiry.len();
        bed.target.script.extend([good(vec![], 0), good(inquiry, len)]);
        bed.handle(Input::PathUp);
        assert_eq!(bed.others, [Output::Unusable(Error { kind: ErrorKind::NotADisk, sense: None })]);
    }
    // An invalid block size.
    let mut bed = Bed::new(DiskConfig::default(), Target::new());
    bed.hold = true;
    bed.handle(Input::PathUp);
    for _ in 0..8 {
        bed.answer(0);
    }
    bed.target.script.push_back(good([&[0; 8][..], &[0, 0, 2, 1]].concat(), 12));
    bed.answer(0);
    assert_eq!(bed.others, [Output::Unusable(Error { kind: ErrorKind::NotADisk, sense: None })]);
}

#[test]
fn a_larger_capacity_is_detected() {
    let mut bed = Bed::ready(Target::new());
    bed.target.medium.resize(2 * BLOCKS as usize * BLOCK, 0);
    bed.target.script.push_back(attention(SenseCode::CAPACITY_CHANGED));
    bed.read(1, BLOCKS - 8, 8);
    assert!(bed.done[&1].is_ok());
    assert_eq!(properties(&bed).blocks, 2 * BLOCKS);
    assert!(matches!(bed.others[..], [Output::Ready(_)]));
    bed.read(2, 2 * BLOCKS - 8, 8);
    assert!(bed.done[&2].is_ok());
    // Nothing has changed, so nothing is reported.
    bed.others.clear();
    bed.handle(Input::Revalidate);
    assert!(bed.disk.is_ready() && bed.others.is_empty());
}

#[test]
fn changed_units_are_reported() {
    let mut bed = Bed::ready(Target::new());
    bed.target.script.push_back(attention(SenseCode::REPORTED_LUNS_CHANGED));
    bed.read(1, 0, 1);
    assert!(bed.done[&1].is_ok());
    assert_eq!(bed.others, [Output::UnitsChanged]);
}

#[test]
fn a_replaced_disk_gets_no_commands() {
    let mut bed = Bed::ready(Target::new());
    bed.handle(Input::PathDown);
    bed.write(1, 0, 8, 0x77);
    bed.target.naa[15] = 8;
    bed.handle(Input::PathUp);
    let error = Error { kind: ErrorKind::OtherDisk, sense: None };
    assert_eq!(bed.others, [Output::Unusable(error)]);
    assert_eq!(bed.done[&1], Err(error));
    assert!(bed.target.medium.iter().all(|byte| *byte == 0x11));
    // The right disk returns.
    bed.target.naa[15] = 7;
    bed.pass(Span::from_secs(11));
    bed.submit(2, Op::Flush, 0, 0, false);
    assert!(bed.done[&2].is_ok());
}

/// Requests arrive before the disk. Requests for the wrong disk are never sent.
#[test]
fn a_disk_with_an_expected_identity_gets_no_commands_before_it_is_verified() {
    let right = properties(&Bed::ready(Target::new())).designator.as_ref().map(ToString::to_string).unwrap();
    for (name, good) in [(right.as_str(), true), ("naa.5000000000000042", false)] {
        let mut bed = Bed::new(DiskConfig::default(), Target::new());
        bed.disk = bed.disk.named(name);
        bed.write(1, 0, 8, 0x77);
        bed.handle(Input::PathUp);
        let error = Error { kind: ErrorKind::OtherDisk, sense: None };
        assert_eq!(bed.done[&1].is_ok(), good, "{name}");
        assert_eq!(bed.disk.unusable(), (!good).then_some(error));
        assert_eq!(bed.target.medium[..8 * BLOCK].iter().all(|byte| *byte == 0x77), good, "{name}");
    }
}
