//! Data Mover when a connection breaks in the middle of a PDU.

use crate::forward::bed::{Bed, Setup, Shapes};
use crate::forward::cases::{BUSY, ended, read, shapes, write};
use sanloom_scsi::iscsi::Parameters;
use sanloom_scsi::iscsi::forward::{CloseReason, Conn};
use sanloom_scsi::scsi::DataDirection;
use sanloom_wire::cdb::Cdb;

pub fn bed(front: Parameters, seed: u64) -> Bed {
    let shapes = Shapes { cut_through: true, front, back: front, ..shapes() };
    let mut bed = Bed::new(Setup::Forwarding, &shapes, seed);
    for id in 1000..1003 {
        bed.submit(id, Cdb::TestUnitReady, DataDirection::None, Vec::new());
        bed.run_until_idle();
    }
    bed.done.clear();
    bed
}

/// Runs until a PDU is half sent to `to`, and returns its source. The random generator may deliver
/// every PDU whole.
pub fn until_open(bed: &mut Bed, to: Conn) -> Option<Conn> {
    loop {
        let from = bed.streams.as_ref().and_then(|streams| streams.mover.is_open(to));
        if from.is_some() || !bed.step() {
            return from;
        }
    }
}

#[test]
fn a_lost_back_end_with_a_half_sent_pdu_closes_the_host() {
    let mut bed = bed(shapes().front, 3);
    read(&mut bed, 1, 0, 16);
    assert_eq!(until_open(&mut bed, Conn::Host), Some(Conn::Back(0)));
    let streams = bed.streams.as_mut().unwrap();
    assert!(streams.mover.is_half(Conn::Back(0)));
    // The other back end is not affected.
    assert!(!streams.cut(1));
    assert!(streams.cut(0), "the rest of the PDU will never come");
}

#[test]
fn data_for_a_lost_back_end_are_received_and_discarded() {
    let mut half = 0;
    for seed in 0..60 {
        let mut bed = bed(Parameters { header_digest: seed % 2 == 1, ..shapes().front }, seed);
        write(&mut bed, 1, 0, 16);
        write(&mut bed, 2, 56, 4);
        if until_open(&mut bed, Conn::Back(0)).is_none() {
            continue;
        }
        half += 1;
        bed.cut(0);
        bed.run_until_idle();
        assert_eq!(ended(&mut bed, 1), BUSY, "seed {seed}");
        assert_eq!(ended(&mut bed, 2), (0, 0, 0), "seed {seed}");
        bed.connect(0);
        bed.run_until_idle();
        bed.assert_idle();
    }
    assert!(half > 10, "{half}");
}

#[test]
fn a_wrong_header_digest_ends_the_connection() {
    let mut bed = bed(Parameters { header_digest: true, ..shapes().front }, 3);
    read(&mut bed, 1, 0, 16);
    while !bed.streams.as_mut().unwrap().damage(Conn::Back(0)) {
        assert!(bed.step(), "the back end sends nothing");
    }
    while bed.closed.is_empty() {
        assert!(bed.step());
    }
    assert_eq!(bed.closed, [(Conn::Back(0), CloseReason::Protocol)]);
}

/// After a back end fails, its next session starts with a complete PDU, regardless of the PDUs that
/// were half sent. The host reads correct data.
#[test]
fn a_reconnected_back_end_receives_no_rest_of_an_earlier_pdu() {
    let mut half = 0;
    for seed in 0..1000 {
        let front = Parameters { send_bytes: 2048, receive_bytes: 2048, first_burst_bytes: 1024, ..shapes().front };
        let mut bed = bed(front, seed);
        for round in 0..4_u64 {
            let id = 10 * round;
            write(&mut bed, id, 0, 16);
            write(&mut bed, id + 1, 40, 16);
            read(&mut bed, id + 2, 20, 16);
            read(&mut bed, id + 3, 56, 8);
            for _ in 0..(seed * 7 + round * 13) % 120 {
                bed.step();
            }
            let back = (round % 2) as u8;
            let streams = bed.streams.as_ref().unwrap();
            if streams.mover.is_open(Conn::Host) == Some(Conn::Back(back)) {
                // The host's connection has to be closed.
                break;
            }
            half += usize::from(streams.mover.is_open(Conn::Back(back)).is_some());
            bed.cut(back);
            bed.connect(back);
            bed.run_until_idle();
            assert!(bed.closed.is_empty(), "seed {seed}, round {round}: {:?}", bed.closed);
            for number in 0..4 {
                let outcome = ended(&mut bed, id + number);
                assert!([(0, 0, 0), BUSY].contains(&outcome), "seed {seed}, round {round}: {outcome:x?}");
            }
            write(&mut bed, id + 4, 30, 30);
            read(&mut bed, id + 5, 0, 16);
            bed.run_until_idle();
            for id in [id + 4, id + 5] {
                assert_eq!(ended(&mut bed, id), (0, 0, 0), "seed {seed}, round {round}, {id}");
            }
            bed.assert_idle();
        }
    }
    assert!(half > 300, "{half}");
}
