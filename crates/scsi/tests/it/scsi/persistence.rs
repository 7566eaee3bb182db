//! Registrations that survive a restart, and tasks that wait until their record is stored.

use super::bench::{Bench, config, host};
use super::reservations::{clear, list, out, register, reserve};
use sanloom_scsi::scsi::{Attribute, NexusId, Output, Step};
use sanloom_wire::cdb::{Cdb, status};
use sanloom_wire::scsi::reservation::{OutParameters, kind};
use sanloom_wire::scsi::transport_id::TransportId;

fn keep(bench: &mut Bench, nexus: NexusId, key: u64) {
    let parameters = OutParameters { keep: true, ..list(0, key) };
    let (cdb, bytes) = out(0, 0, &parameters);
    bench.good(nexus, 0, cdb, &bytes);
}

#[test]
fn registrations_survive_a_power_cycle() {
    let mut bench = Bench::new(config());
    let (one, two) = (bench.host(1, 0), bench.host(2, 1));
    keep(&mut bench, one, 0x11);
    keep(&mut bench, two, 0x22);
    reserve(&mut bench, one, kind::WRITE_EXCLUSIVE_REGISTRANTS_ONLY, 0x11);
    let record = bench.records[0].clone();
    let mut again = Bench::new(config());
    again.device.restore(0, &record).expect("our own record");
    let (stranger, one) = (again.host(3, 0), again.host(1, 0));
    let write = Cdb::Write { lba: 0, blocks: 1, fua: false };
    assert_eq!(again.run(stranger, 0, write, &[0; 512]).status, status::RESERVATION_CONFLICT);
    again.good(one, 0, write, &[0; 512]);
    assert_eq!(again.device.reservations(0), bench.device.reservations(0));
    clear(&mut again, one, 0x11);
    assert!(!again.records[0].is_empty(), "the generation is kept");
    let other_port = again.host(2, 0);
    again.good(other_port, 0, write, &[0; 512]);
}

#[test]
fn registrations_without_aptpl_are_not_stored() {
    let mut bench = Bench::new(config());
    let one = bench.host(1, 0);
    keep(&mut bench, one, 0x11);
    assert!(!bench.records[0].is_empty());
    register(&mut bench, one, 0x11, 0x12);
    assert!(bench.records[0].is_empty(), "the last registration requests no persistence");
    bench.records[0] = Box::new([1]);
    register(&mut bench, one, 0x12, 0x13);
    assert_eq!(*bench.records[0], [1], "no record is written for it");
}

#[test]
fn a_registration_completes_when_its_record_is_stored() {
    let mut bench = Bench::new(config());
    let nexus = bench.host(1, 0);
    let parameters = OutParameters { keep: true, ..list(0, 1) };
    for kept in [true, false] {
        let (cdb, bytes) = out(6, 0, &parameters);
        let command = bench.command(nexus, 0, cdb.to_bytes(), Attribute::Simple);
        let before = bench.device.reservations(0);
        let task = sanloom_scsi::scsi::TaskId { nexus, tag: command.tag, unit: 0 };
        assert_eq!(bench.device.begin(&command), Step::Parameters { bytes: 24 });
        assert_eq!(bench.device.parameters(task, &bytes), Step::Wait);
        let Some(Output::Persist { seq, .. }) = bench.device.poll_output() else { unreachable!("a record") };
        assert_eq!(bench.device.poll_output(), None);
        if kept {
            bench.device.persisted(seq);
        } else {
            bench.device.not_persisted(seq);
        }
        let Some(Output::Port { port: 0, notice }) = bench.device.poll_output() else { unreachable!("an end") };
        let sanloom_scsi::scsi::Notice::Step { step: Step::Done(response), .. } = notice else { unreachable!() };
        assert_eq!(response.status, if kept { status::GOOD } else { status::CHECK_CONDITION });
        assert_eq!(bench.device.active(0), 0);
        let keys: Vec<u64> = bench.device.reservations(0).iter().map(|one| one.key).collect();
        match kept {
            true => assert_eq!(keys, [1]),
            false => assert_eq!(bench.device.reservations(0), before, "what was refused is not in force"),
        }
    }
}

#[test]
fn the_later_of_two_pending_records_decides() {
    for later_kept in [true, false] {
        let mut bench = Bench::new(config());
        let hosts = [bench.host(1, 0), bench.host(2, 1)];
        let mut seqs = Vec::new();
        for (nexus, key) in hosts.into_iter().zip(1..) {
            let (cdb, bytes) = out(6, 0, &OutParameters { keep: true, ..list(0, key) });
            let command = bench.command(nexus, 0, cdb.to_bytes(), Attribute::Simple);
            let task = sanloom_scsi::scsi::TaskId { nexus, tag: command.tag, unit: 0 };
            bench.device.begin(&command);
            assert_eq!(bench.device.parameters(task, &bytes), Step::Wait);
            let Some(Output::Persist { seq, .. }) = bench.device.poll_output() else { unreachable!("a record") };
            seqs.push(seq);
        }
        bench.device.not_persisted(seqs[0]);
        assert_eq!(bench.device.reservations(0).len(), 2, "the later record has both");
        if later_kept {
            bench.device.persisted(seqs[1]);
        } else {
            bench.device.not_persisted(seqs[1]);
        }
        assert_eq!(bench.device.reservations(0).len(), if later_kept { 2 } else { 0 });
    }
}

#[test]
fn any_record_is_read_or_refused() {
    let mut bench = Bench::new(config());
    let one = bench.device.connect(0, TransportId::iscsi("iqn.2026-11.net.example:host", Some([1; 6])));
    bench.run(one, 0, Cdb::TestUnitReady, &[]);
    keep(&mut bench, one, 5);
    let record = bench.records[0].clone();
    for len in 1..record.len() {
        assert!(bench.device.restore(0, &record[..len]).is_err(), "{len} bytes of {}", record.len());
    }
    assert_eq!(bench.device.restore(0, &record), Ok(()));
    let nexus = bench.device.connect(1, host(9));
    assert_ne!(nexus, one);
}
