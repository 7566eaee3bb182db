//! Hosts with behaviour that QEMU does not have: repeated login with writes in flight, no reading,
//! excessive data, large numbers, and competition for a block.

use crate::iscsi::raw::{pdu, read_pdu};
use crate::iscsi_switch::bed::{self, Bed, Switch};
use crate::iscsi_switch::forwarding::through_gates;
use crate::iscsi_switch::gate::Gate;
use crate::iscsi_switch::host::{BLOCK, Host, memory};
use sanloom_test_support::ports::{free_port, unread_bytes};
use sanloom_test_support::process::{processor_ticks, voluntary_switches};
use sanloom_test_support::wait;
use std::io::Write;

#[test]
fn earlier_writes_of_a_host_do_not_land_after_it_logs_in_again() {
    let bed = Bed::new("reinstated");
    let portals = [free_port(), free_port()];
    let _first = bed::storage(&bed, "first", &portals[0]);
    let _second = bed::storage(&bed, "second", &portals[1]);
    let (mut switch, gates) = through_gates(&bed, &portals, true);
    for round in 0..3_u8 {
        // Another session in each round, so that the wait is not for the one of the round before.
        let session = 1 + u16::from(round);
        let mut host = Host::ready(&switch, &switch.portals[0], session);
        host.until_good(|host| host.write(8, &[0x10 + round; 64 << 10]));
        gates.iter().for_each(Gate::hold);
        host.write(8, &[0xaa; 64 << 10]);
        // The blocks are in the first stripe.
        gates[0].wait_until_held();
        // The same initiator port logs in again while its earlier session exists and has a write in
        // flight.
        let mut again = Host::log_in(&switch.portals[1], session);
        again.until_good(|host| host.write(8, &[0xb0 + round; 64 << 10]));
        gates.iter().for_each(Gate::release);
        gates.iter().for_each(Gate::wait_until_passed);
        again.assert_stays(8, 128, 0xb0 + round);
        drop(host);
    }
    let [forwarded, _] = switch.carried("v");
    assert!(forwarded.written_bytes >= 6 * (64 << 10), "{forwarded:?}");
    switch.stop();
    bed.folder.assert_no_errors();
}

#[test]
fn a_host_that_reads_nothing_uses_little_memory_and_delays_no_other() {
    let bed = Bed::new("slow-host");
    let portals = [free_port(), free_port()];
    let _first = bed::storage(&bed, "first", &portals[0]);
    let _second = bed::storage(&bed, "second", &portals[1]);
    let (mut switch, _gates) = through_gates(&bed, &portals, true);
    let mut other = Host::ready(&switch, &switch.portals[1], 2);
    let mut slow = Host::ready(&switch, &switch.portals[0], 1);
    let before = memory(switch.id());
    for number in 0..64 {
        slow.read(number % 16 * 2048, 2048);
    }
    // The other host completes all of its commands before the slow host reads anything.
    for round in 0..100_u32 {
        let data = vec![round as u8; 64 << 10];
        other.until_good(|host| host.write(round * 128, &data));
        assert_eq!(other.until_good(|host| host.read(round * 128, 128)), data);
    }
    let more = memory(switch.id()).saturating_sub(before);
    assert!(more < 32 << 10, "{more} KiB");
    // Afterwards it reads all data.
    for _ in 0..64 {
        let (status, data) = slow.answer();
        assert_eq!((status, data.len()), (0, 1 << 20));
    }
    switch.stop();
    bed.folder.assert_no_errors();
}

#[test]
fn a_segment_that_is_too_long_ends_its_own_session_and_no_other() {
    let bed = Bed::new("overlong");
    let portals = [free_port(), free_port()];
    let _first = bed::storage(&bed, "first", &portals[0]);
    let _second = bed::storage(&bed, "second", &portals[1]);
    let (mut switch, _gates) = through_gates(&bed, &portals, true);
    let mut other = Host::ready(&switch, &switch.portals[1], 2);
    let mut host = Host::ready(&switch, &switch.portals[0], 1);
    host.until_good(|host| host.write(0, &[0x31; 64 << 10]));
    let ended = |bed: &Bed| bed.log().matches(" protocol").count();
    let before = ended(&bed);
    // A write of 32 MiB in one segment, which exceeds every limit.
    let fields: [(usize, &[u8]); 5] =
        [(0, &[0x01, 0xa1]), (5, &[0xff, 0xff, 0xff]), (19, &[99]), (24, &host.number.to_be_bytes()), (32, &[0x2a])];
    let mut header = vec![0; 48];
    fields.iter().for_each(|(at, bytes)| header[*at..at + bytes.len()].copy_from_slice(bytes));
    host.connection.write_all(&header).unwrap();
    while let Ok(received) = read_pdu(&mut host.connection) {
        assert_ne!(received[0], 0x21, "it was answered: {received:02x?}");
    }
    assert!(ended(&bed) > before);
    let there = other.until_good(|host| host.read(0, 128));
    assert!(there.iter().all(|byte| *byte == 0x31));
    switch.stop();
    bed.folder.assert_no_errors();
}

#[test]
fn compare_and_write_of_one_host_is_atomic_against_forwarded_writes_of_another() {
    let bed = Bed::new("compare-and-write");
    let portals = [free_port(), free_port()];
    let _first = bed::storage(&bed, "first", &portals[0]);
    let _second = bed::storage(&bed, "second", &portals[1]);
    let (mut switch, _gates) = through_gates(&bed, &portals, true);
    let (mut a, mut b) = (Host::ready(&switch, &switch.portals[0], 1), Host::ready(&switch, &switch.portals[1], 2));
    let (mut equal, mut there) = (0, 0_u8);
    a.until_good(|host| host.write(5, &[0; BLOCK]));
    for round in 0..600_u32 {
        let (mine, theirs) = (128 + (round % 100) as u8, 1 + (round % 100) as u8);
        // The order changes.
        match round % 2 {
            0 => {
                a.compare_and_write(5, there, mine);
                if round % 4 == 0 {
                    // If the switch receives both at once, the write is first.
                    wait::until(|| "it is received".to_owned(), || unread_bytes(&switch.portals[0]) == 0);
                }
                b.write(5, &[theirs; BLOCK]);
            }
            _ => {
                b.write(5, &[theirs; BLOCK]);
                a.compare_and_write(5, there, mine);
            }
        }
        let ((compared, _), (written, _)) = (a.answer(), b.answer());
        assert!(written == 0 && [0, 2].contains(&compared), "{written:#x} {compared:#x}");
        equal += u32::from(compared == 0);
        let now = b.until_good(|host| host.read(5, 1));
        // If the comparison ran first, the write has overwritten its block; otherwise it failed.
        assert!(now.iter().all(|byte| *byte == theirs), "round {round}: {:#x}, not {theirs:#x}", now[0]);
        there = theirs;
    }
    println!("{equal} of 600 were first");
    assert!((1..600).contains(&equal));
    switch.assert_path("v", true, 0, 300 * BLOCK as u64);
    switch.stop();
    bed.folder.assert_no_errors();
}

#[test]
fn additional_headers_are_skipped_and_their_commands_take_the_conventional_path() {
    let bed = Bed::new("additional");
    let portals = [free_port(), free_port()];
    let _first = bed::storage(&bed, "first", &portals[0]);
    let _second = bed::storage(&bed, "second", &portals[1]);
    let (mut switch, _gates) = through_gates(&bed, &portals, true);
    let mut host = Host::ready(&switch, &switch.portals[0], 1);
    host.until_good(|host| host.write(8, &[0x31; BLOCK]));
    let before = switch.carried("v").map(|row| row.commands);
    // An extended CDB, whose remaining bytes are ignored, between the header and the data.
    let additional = [0, 5, 1, 0, 9, 9, 9, 9];
    let number = host.number.to_be_bytes();
    host.number += 1;
    let cdb = [0x2a, 0, 0, 0, 0, 8, 0, 0, 1, 0];
    let fields: [(usize, &[u8]); 6] =
        [(0, &[0x01, 0xa1]), (4, &[2]), (16, &number), (20, &[0, 0, 2, 0]), (24, &number), (32, &cdb)];
    let mut sent = pdu(&fields, &[0x32; BLOCK]);
    sent.splice(48..48, additional);
    host.connection.write_all(&sent).unwrap();
    assert_eq!(host.answer().0, 0);
    let now = switch.carried("v").map(|row| row.commands);
    assert_eq!([now[0] - before[0], now[1] - before[1]], [0, 1]);
    assert_eq!(host.until_good(|host| host.read(8, 1)), [0x32; BLOCK]);
    assert_eq!(switch.carried("v")[0].commands, now[0] + 1);
    switch.stop();
    bed.folder.assert_no_errors();
}

/// Number of concurrent sessions.
const CROWD: u16 = 1000;
/// Number of times that the loop wakes up, while no host sends anything.
const TIMERS: u64 = 20;

#[test]
fn a_thousand_sessions_are_forwarded_at_low_cost() {
    let bed = Bed::new("thousand");
    let portal = free_port();
    let _first = bed::storage(&bed, "first", &portal);
    let lab = format!(
        "[pool.disks]\nextent = \"1MiB\"\n{}[volume.v]\npool = \"disks\"\nsize = \"48MiB\"\nstorage = \"switch\"\n",
        bed::back_end("first", "disks", &[&portal])
    );
    let mut switch = Switch::start(&bed, &lab);
    switch.wait_for(&["v"]);
    let before = memory(switch.id());
    let mut hosts: Vec<Host> = (1..=CROWD).map(|session| Host::log_in(&switch.portals[0], session)).collect();
    for host in &mut hosts {
        host.until_good(|host| host.send(0x80, 0, &[0; 6], &[]));
    }
    // Further initiator ports are stored stepwise.
    switch.wait_for_forwarding();
    let forwarded = switch.carried("v")[0].commands;
    let ticks = processor_ticks(switch.id());
    for (number, host) in (0..).zip(&mut hosts) {
        host.until_good(|host| host.write(number * 16, &[number as u8; 8 << 10]));
    }
    let work = processor_ticks(switch.id()) - ticks;
    assert_eq!(switch.carried("v")[0].commands - forwarded, u64::from(CROWD), "writes that were forwarded");
    let each = memory(switch.id()).saturating_sub(before) / u64::from(CROWD);
    // While no host sends anything, the loop wakes up for its timers only. That costs less than
    // the writes have cost.
    let (ticks, wakeups) = (processor_ticks(switch.id()), voluntary_switches(switch.id()));
    wait::until(|| "timers of the loop".to_owned(), || voluntary_switches(switch.id()) >= wakeups + TIMERS);
    let idle = processor_ticks(switch.id()) - ticks;
    println!("{each} KiB for each session; {work} ticks for a write of each, {idle} for {TIMERS} timers");
    assert!(each <= 64 && idle <= work / 2, "{each} KiB, {work} ticks, {idle} ticks while all sleep");
    for (number, host) in (0..).zip(&mut hosts) {
        assert_eq!(host.until_good(|host| host.read(number * 16, 16)), [number as u8; 8 << 10]);
    }
    drop(hosts);
    switch.stop();
    bed.folder.assert_no_errors();
}
