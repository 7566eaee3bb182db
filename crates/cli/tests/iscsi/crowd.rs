//! Initiators that cost a target something: those that come when it has no descriptor left, and those that fetch nothing.

use crate::bed::Bed;
use crate::process;
use crate::raw::{hear, pdu};
use std::io::Write;
use std::net::TcpStream;
use std::time::{Duration, Instant};

/// Logs in to the disks in memory; straight to the full feature phase.
fn log_in(bed: &Bed) -> TcpStream {
    let mut connection = TcpStream::connect(&bed.portals[0]).unwrap();
    connection.set_nodelay(true).unwrap();
    let text = format!("InitiatorName=iqn.2026-11.net.example:crowd\0TargetName={}\0", Bed::target("ram"));
    let isid = [0x80, 0, 0, 0, 0, 1];
    let login = pdu(&[(0, &[0x43, 0x87]), (8, &isid), (19, &[1]), (27, &[1])], text.as_bytes());
    connection.write_all(&login).unwrap();
    let answer = hear(&mut connection).unwrap();
    assert_eq!((answer[0], answer[36]), (0x23, 0), "a login response without a complaint: {answer:02x?}");
    connection
}

/// A command with this number; `flags` and expected length as the header has them.
fn command(number: u8, flags: u8, bytes: u32, cdb: &[u8]) -> Vec<u8> {
    pdu(&[(0, &[0x01, flags]), (19, &[number + 1]), (20, &bytes.to_be_bytes()), (27, &[number]), (32, cdb)], &[])
}

#[test]
fn a_login_is_answered_at_once() {
    let mut bed = Bed::start("at-once");
    let begun = Instant::now();
    for _ in 0..20 {
        log_in(&bed);
    }
    // The loop looks around ten times a second: a login that waited for that would take 100 ms.
    assert!(begun.elapsed() < Duration::from_secs(1), "{:?} for 20 logins", begun.elapsed());
    bed.stop();
}

#[test]
fn a_target_without_descriptors_waits_for_some() {
    let mut bed = Bed::start("descriptors");
    let limit = process::hold_descriptors(bed.id());
    let _waiting = TcpStream::connect(&bed.portals[0]).unwrap();
    let busy = process::busy(bed.id(), Duration::from_secs(1));
    assert!(busy < Duration::from_millis(300), "{busy:?} of processor time in a second");
    limit.lift();
    log_in(&bed);
    bed.stop();
}

#[test]
fn an_initiator_that_fetches_nothing_is_closed() {
    let mut bed = Bed::start("fetches-nothing");
    let mut connection = log_in(&bed);
    // TEST UNIT READY takes the unit attention away.
    connection.write_all(&command(1, 0x81, 0, &[])).unwrap();
    hear(&mut connection).unwrap();
    let read = [0x28, 0, 0, 0, 0, 0, 0, 0x08, 0];
    for number in 2..10 {
        connection.write_all(&command(number, 0xc1, 1 << 20, &read)).unwrap();
    }
    // A data segment that is longer than was agreed on: the session is over, but 8 MiB are to be fetched.
    let mut nonsense = pdu(&[(0, &[0x40, 0x80])], &[]);
    nonsense[5..8].fill(0xff);
    connection.write_all(&nonsense).unwrap();
    let begun = Instant::now();
    while !bed.log().contains("session ended") {
        assert!(begun.elapsed() < Duration::from_secs(20), "{}", bed.log());
        std::thread::sleep(Duration::from_millis(100));
    }
    assert!(bed.log().contains("not fetched"), "{}", bed.log());
    bed.stop();
}
