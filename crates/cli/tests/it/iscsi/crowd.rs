//! Initiators that consume a target's resources: connections when no descriptor is left, and
//! sessions that do not read.

use crate::iscsi::bed::Bed;
use crate::iscsi::raw::{pdu, read_pdu};
use sanloom_test_support::needs;
use sanloom_test_support::process;
use std::io::Write;
use std::net::TcpStream;

fn connect(bed: &Bed) -> TcpStream {
    let connection = TcpStream::connect(&bed.portals[0]).unwrap();
    connection.set_nodelay(true).unwrap();
    connection
}

/// Composes the request of a login to the disks in memory, directly to the full feature phase.
/// `port` makes the ISID.
fn login(port: u8) -> Vec<u8> {
    let text = format!("InitiatorName=iqn.2026-11.net.example:crowd\0TargetName={}\0", Bed::target("ram"));
    let isid = [0x80, 0, 0, 0, 0, port];
    pdu(&[(0, &[0x43, 0x87]), (8, &isid), (19, &[1]), (27, &[1])], text.as_bytes())
}

/// Reads the response to a login that succeeds.
fn read_login_response(connection: &mut TcpStream) {
    let answer = read_pdu(connection).unwrap();
    assert_eq!((answer[0], answer[36]), (0x23, 0), "a login response without a complaint: {answer:02x?}");
}

fn log_in(bed: &Bed) -> TcpStream {
    let mut connection = connect(bed);
    connection.write_all(&login(1)).unwrap();
    read_login_response(&mut connection);
    connection
}

/// Composes a command with this number; `flags` and expected length as in the header.
fn command(number: u8, flags: u8, bytes: u32, cdb: &[u8]) -> Vec<u8> {
    pdu(&[(0, &[0x01, flags]), (19, &[number + 1]), (20, &bytes.to_be_bytes()), (27, &[number]), (32, cdb)], &[])
}

#[test]
fn a_login_does_not_wait_for_earlier_ones_that_are_unfinished() {
    let mut bed = Bed::start("outstanding");
    let mut outstanding = Vec::new();
    for port in 1..=20 {
        let mut connection = connect(&bed);
        let request = login(port);
        let (begin, rest) = request.split_at(request.len() / 2);
        connection.write_all(begin).unwrap();
        outstanding.push((connection, rest.to_owned()));
    }
    // The last one is the first to be completed. If logins were served one after the other, it
    // would wait until the target gives the others up, which then fail.
    let mut sessions = Vec::new();
    while let Some((mut connection, rest)) = outstanding.pop() {
        connection.write_all(&rest).unwrap();
        read_login_response(&mut connection);
        sessions.push(connection);
    }
    for connection in &mut sessions {
        connection.write_all(&command(1, 0x81, 0, &[])).unwrap();
        assert_eq!(read_pdu(connection).unwrap()[0], 0x21, "each session answers a command");
    }
    bed.stop();
}

/// Log line of an attempt to accept a connection that has failed.
const ATTEMPT: &str = "WARN accept ";

#[needs("prlimit")]
#[test]
fn a_target_without_free_descriptors_accepts_again_when_some_are_free() {
    let mut bed = Bed::start("descriptors");
    let limit = process::hold_descriptors(bed.id());
    // A descriptor that was in use for a moment may still serve the first of them.
    let _waiting: Vec<TcpStream> = (0..8).map(|_| TcpStream::connect(&bed.portals[0]).unwrap()).collect();
    // Between two attempts the loop waits; a loop that polls would never give up its processor.
    let (attempts, waits) = (bed.folder.logged(ATTEMPT), process::voluntary_switches(bed.id()));
    bed.folder.wait_for_log(ATTEMPT, attempts + 10);
    let waits = process::voluntary_switches(bed.id()) - waits;
    let attempts = bed.folder.logged(ATTEMPT) - attempts;
    assert!(waits + 1 >= attempts as u64, "{attempts} attempts, {waits} waits");
    limit.lift();
    log_in(&bed);
    bed.stop();
}

#[test]
fn the_connection_of_an_initiator_that_reads_nothing_is_closed() {
    let mut bed = Bed::start("fetches-nothing");
    let mut connection = log_in(&bed);
    // TEST UNIT READY consumes the unit attention.
    connection.write_all(&command(1, 0x81, 0, &[])).unwrap();
    read_pdu(&mut connection).unwrap();
    let read = [0x28, 0, 0, 0, 0, 0, 0, 0x08, 0];
    for number in 2..10 {
        connection.write_all(&command(number, 0xc1, 1 << 20, &read)).unwrap();
    }
    // A data segment exceeds the negotiated length. The session ends, although 8 MiB are still
    // unread.
    let mut nonsense = pdu(&[(0, &[0x40, 0x80])], &[]);
    nonsense[5..8].fill(0xff);
    connection.write_all(&nonsense).unwrap();
    bed.folder.wait_for_log("session ended", 1);
    assert!(bed.log().contains("does not read the last PDUs"));
    bed.stop();
}
