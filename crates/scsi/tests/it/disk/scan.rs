//! REPORT LUNS.

use crate::disk::target::{attention, bare, check, good};
use sanloom_scsi::disk::{Command, Data, End, Reply, Scan, ScanInput, ScanOutput};
use sanloom_scsi::time::{Instant, Span};
use sanloom_wire::cdb::{Cdb, status};
use sanloom_wire::lun::{self, LunBytes};
use sanloom_wire::sense::{SenseCode, SenseKey};

fn command(scan: &mut Scan) -> Command {
    match scan.poll_output() {
        Some(ScanOutput::Command(command)) => command,
        other => panic!("{other:?}"),
    }
}

fn units(scan: &mut Scan) -> Vec<LunBytes> {
    match scan.poll_output() {
        Some(ScanOutput::Units(units)) => units,
        other => panic!("{other:?}"),
    }
}

fn list(luns: impl Iterator<Item = u16>) -> Vec<u8> {
    let list: Vec<u8> = luns.filter_map(lun::to_bytes).flatten().collect();
    [&(list.len() as u32).to_be_bytes()[..], &[0; 4], &list].concat()
}

fn answer(scan: &mut Scan, command: &Command, mut data: Vec<u8>) {
    data.truncate(command.data.bytes() as usize);
    let len = data.len();
    scan.handle(Instant::ZERO, ScanInput::Reply(Reply { id: command.id, end: good(data, len) }));
}

fn fail(scan: &mut Scan, command: &Command, end: End) {
    scan.handle(Instant::ZERO, ScanInput::Reply(Reply { id: command.id, end }));
}

fn up() -> (Scan, Command) {
    let mut scan = Scan::new();
    scan.handle(Instant::ZERO, ScanInput::PathUp);
    let command = command(&mut scan);
    assert_eq!(Cdb::parse(&command.cdb), Cdb::ReportLuns { allocation_len: 16 << 10 });
    assert_eq!(command.data, Data::In { max_bytes: 16 << 10 });
    (scan, command)
}

#[test]
fn units_come_in_order_and_once() {
    let (mut scan, command) = up();
    answer(&mut scan, &command, list([7, 0, 300, 0].into_iter()));
    let expected: Vec<LunBytes> = [0, 7, 300].into_iter().filter_map(lun::to_bytes).collect();
    assert_eq!(units(&mut scan), expected);
    assert_eq!(scan.poll_output(), None);
}

#[test]
fn a_truncated_list_is_requested_again_with_a_larger_buffer() {
    let (mut scan, first) = up();
    answer(&mut scan, &first, list(0..5000));
    let second = command(&mut scan);
    assert_eq!(second.data.bytes(), 40_008);
    answer(&mut scan, &second, list(0..5000));
    assert_eq!(units(&mut scan).len(), 5000);
}

#[test]
fn unit_attentions_are_retried_at_once_and_other_failures_after_a_delay() {
    let (mut scan, mut open) = up();
    for code in [SenseCode::POWER_ON_OR_RESET, SenseCode::REPORTED_LUNS_CHANGED] {
        fail(&mut scan, &open, attention(code));
        open = command(&mut scan);
    }
    fail(&mut scan, &open, bare(status::BUSY));
    assert_eq!(scan.poll_output(), None);
    let retry = Instant::ZERO + Span::from_secs(1);
    assert_eq!(scan.poll_timeout(), Some(retry));
    scan.handle(retry, ScanInput::Timeout);
    open = command(&mut scan);
    fail(&mut scan, &open, check(SenseKey::ILLEGAL_REQUEST, SenseCode::INVALID_OPERATION));
    assert_eq!(units(&mut scan), [[0; 8]], "a target without the command has a unit 0 at least");
}

#[test]
fn a_scan_requested_during_a_scan_follows_it() {
    let (mut scan, first) = up();
    scan.handle(Instant::ZERO, ScanInput::Rescan);
    assert_eq!(scan.poll_output(), None);
    answer(&mut scan, &first, list(0..1));
    assert_eq!(units(&mut scan).len(), 1);
    let second = command(&mut scan);
    answer(&mut scan, &second, list(0..2));
    assert_eq!(units(&mut scan).len(), 2);
    // Without a path no command is sent, and late replies are ignored.
    scan.handle(Instant::ZERO, ScanInput::Rescan);
    let third = command(&mut scan);
    scan.handle(Instant::ZERO, ScanInput::PathDown);
    answer(&mut scan, &third, list(0..3));
    scan.handle(Instant::ZERO, ScanInput::Rescan);
    assert_eq!(scan.poll_output(), None);
    assert_eq!(scan.poll_timeout(), None);
}
