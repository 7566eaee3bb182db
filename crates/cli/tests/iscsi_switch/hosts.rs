//! Hosts that do what QEMU does not: log in again with writes under way, fetch nothing, send too much, come in crowds, and fight
//! for a block.

use crate::bed::{self, Bed, Switch, free_port};
use crate::forwarding::through_gates;
use crate::gate::Gate;
use crate::host::{BLOCK, Host, memory, processor};
use crate::raw::{hear, pdu};
use std::io::Write;
use std::thread;
use std::time::{Duration, Instant};

#[test]
fn a_host_that_logs_in_again_finds_nothing_later_of_what_it_wrote_before() {
    let bed = Bed::new("reinstated");
    let portals = [free_port(), free_port()];
    let _first = bed::storage(&bed, "first", &portals[0]);
    let _second = bed::storage(&bed, "second", &portals[1]);
    let (mut switch, gates) = through_gates(&bed, &portals, true);
    for round in 0..3_u8 {
        let mut host = Host::ready(&switch.portals[0], 1);
        host.until_good(|host| host.write(8, &[0x10 + round; 64 << 10]));
        gates.iter().for_each(Gate::hold);
        host.write(8, &[0xaa; 64 << 10]);
        thread::sleep(Duration::from_millis(200));
        // The same initiator port, while the one before is there, and while its write is under way.
        let mut again = Host::log_in(&switch.portals[1], 1);
        again.until_good(|host| host.write(8, &[0xb0 + round; 64 << 10]));
        gates.iter().for_each(Gate::release);
        thread::sleep(Duration::from_millis(300));
        let there = again.until_good(|host| host.read(8, 128));
        assert!(there.iter().all(|byte| *byte == 0xb0 + round), "round {round}: {:#x}", there[0]);
        drop(host);
    }
    let [forwarded, _] = switch.carried("v");
    assert!(forwarded.written_bytes >= 6 * (64 << 10), "{forwarded:?}");
    switch.stop();
    assert!(!bed.log().contains("ERROR"), "{}", bed.log());
}

#[test]
fn a_host_that_fetches_nothing_costs_little_memory_and_nobody_else_anything() {
    let bed = Bed::new("slow-host");
    let portals = [free_port(), free_port()];
    let _first = bed::storage(&bed, "first", &portals[0]);
    let _second = bed::storage(&bed, "second", &portals[1]);
    let (mut switch, _gates) = through_gates(&bed, &portals, true);
    let mut other = Host::ready(&switch.portals[1], 2);
    let mut slow = Host::ready(&switch.portals[0], 1);
    let before = memory(switch.id());
    for number in 0..64 {
        slow.read(number % 16 * 2048, 2048);
    }
    let begun = Instant::now();
    for round in 0..100_u32 {
        let data = vec![round as u8; 64 << 10];
        other.until_good(|host| host.write(round * 128, &data));
        assert_eq!(other.until_good(|host| host.read(round * 128, 128)), data);
    }
    let (took, more) = (begun.elapsed(), memory(switch.id()).saturating_sub(before));
    println!("100 writes and reads of the other host in {took:?}, {more} KiB more");
    assert!(took < Duration::from_secs(5) && more < 32 << 10, "{took:?}, {more} KiB");
    // And then it fetches all of it.
    for _ in 0..64 {
        let (status, data) = slow.answer();
        assert_eq!((status, data.len()), (0, 1 << 20));
    }
    switch.stop();
    assert!(!bed.log().contains("ERROR"), "{}", bed.log());
}

#[test]
fn a_segment_that_is_too_long_ends_its_own_session_and_no_other() {
    let bed = Bed::new("overlong");
    let portals = [free_port(), free_port()];
    let _first = bed::storage(&bed, "first", &portals[0]);
    let _second = bed::storage(&bed, "second", &portals[1]);
    let (mut switch, _gates) = through_gates(&bed, &portals, true);
    let mut other = Host::ready(&switch.portals[1], 2);
    let mut host = Host::ready(&switch.portals[0], 1);
    host.until_good(|host| host.write(0, &[0x31; 64 << 10]));
    let ended = |bed: &Bed| bed.log().matches(" protocol").count();
    let before = ended(&bed);
    // A write of 32 MiB in one segment: more than anybody takes.
    let fields: [(usize, &[u8]); 5] =
        [(0, &[0x01, 0xa1]), (5, &[0xff, 0xff, 0xff]), (19, &[99]), (24, &host.number.to_be_bytes()), (32, &[0x2a])];
    let mut header = vec![0; 48];
    fields.iter().for_each(|(at, bytes)| header[*at..at + bytes.len()].copy_from_slice(bytes));
    host.connection.write_all(&header).unwrap();
    while let Ok(heard) = hear(&mut host.connection) {
        assert_ne!(heard[0], 0x21, "it was answered: {heard:02x?}");
    }
    assert!(ended(&bed) > before, "{}", bed.log());
    let there = other.until_good(|host| host.read(0, 128));
    assert!(there.iter().all(|byte| *byte == 0x31));
    switch.stop();
    assert!(!bed.log().contains("ERROR"), "{}", bed.log());
}

#[test]
fn compare_and_write_of_one_host_is_whole_against_forwarded_writes_of_another() {
    let bed = Bed::new("compare-and-write");
    let portals = [free_port(), free_port()];
    let _first = bed::storage(&bed, "first", &portals[0]);
    let _second = bed::storage(&bed, "second", &portals[1]);
    let (mut switch, _gates) = through_gates(&bed, &portals, true);
    let (mut a, mut b) = (Host::ready(&switch.portals[0], 1), Host::ready(&switch.portals[1], 2));
    let (mut equal, mut there) = (0, 0_u8);
    a.until_good(|host| host.write(5, &[0; BLOCK]));
    for round in 0..600_u32 {
        let (mine, theirs) = (128 + (round % 100) as u8, 1 + (round % 100) as u8);
        // Who is first changes.
        match round % 2 {
            0 => {
                a.compare_and_write(5, there, mine);
                if round % 4 == 0 {
                    // On a busy machine the switch hears of both at once, and then the write is first.
                    thread::sleep(Duration::from_millis(1));
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
        // Before the write, it is written over; behind it, it does not find what it looks for.
        assert!(now.iter().all(|byte| *byte == theirs), "round {round}: {:#x}, not {theirs:#x}", now[0]);
        there = theirs;
    }
    println!("{equal} of 600 were first");
    assert!((1..600).contains(&equal));
    switch.assert_path("v", true, 0, 300 * BLOCK as u64);
    switch.stop();
    assert!(!bed.log().contains("ERROR"), "{}", bed.log());
}

#[test]
fn additional_headers_are_read_over_and_their_commands_take_the_conventional_path() {
    let bed = Bed::new("additional");
    let portals = [free_port(), free_port()];
    let _first = bed::storage(&bed, "first", &portals[0]);
    let _second = bed::storage(&bed, "second", &portals[1]);
    let (mut switch, _gates) = through_gates(&bed, &portals, true);
    let mut host = Host::ready(&switch.portals[0], 1);
    host.until_good(|host| host.write(8, &[0x31; BLOCK]));
    let before = switch.carried("v").map(|row| row.commands);
    // An extended CDB of which nobody needs the rest, between the header and the data.
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
    assert!(!bed.log().contains("ERROR"), "{}", bed.log());
}

/// Sessions at once.
const CROWD: u16 = 1000;

#[test]
fn a_thousand_sessions_are_forwarded_for_and_cost_little() {
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
    // More initiator ports are kept step by step.
    let until = Instant::now() + Duration::from_secs(20);
    for (number, host) in (0..).zip(&mut hosts) {
        let forwarded = |switch: &Switch<'_>| switch.carried("v")[0].commands;
        let had = if number % 100 == 0 { forwarded(&switch) } else { u64::MAX };
        loop {
            host.until_good(|host| host.write(number * 16, &[number as u8; 8 << 10]));
            if had == u64::MAX || forwarded(&switch) > had {
                break;
            }
            assert!(Instant::now() < until, "nothing is forwarded for host {number}");
            thread::sleep(Duration::from_millis(100));
        }
    }
    let each = memory(switch.id()).saturating_sub(before) / u64::from(CROWD);
    // All sleep.
    thread::sleep(Duration::from_secs(1));
    let at = processor(switch.id());
    thread::sleep(Duration::from_secs(2));
    let busy = processor(switch.id()) - at;
    println!("{each} KiB for each session, {busy:?} of two seconds while all sleep");
    assert!(each <= 64 && busy <= Duration::from_millis(50), "{each} KiB, {busy:?}");
    for (number, host) in (0..).zip(&mut hosts) {
        assert_eq!(host.until_good(|host| host.read(number * 16, 16)), [number as u8; 8 << 10]);
    }
    drop(hosts);
    switch.stop();
    assert!(!bed.log().contains("ERROR"), "{}", bed.log());
}
