//! Sessions that several threads of the switch serve at the same time: reservations, unit
//! attentions, resets, reinstatement, and data through failures.

use crate::iscsi_switch::bed::{self, Bed, Switch};
use crate::iscsi_switch::gateway::wait_for_path;
use crate::iscsi_switch::host::{BLOCK, Host};
use sanloom_test_support::needs;
use sanloom_test_support::ports::free_port;
use sanloom_test_support::qemu_io::{QemuIo, Writer};
use sanloom_test_support::wait;
use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{self, JoinHandle};

const LUN_RESET: u8 = 5;
const CONFLICT: u8 = 0x18;
const CHECK_CONDITION: u8 = 0x02;

/// Blocks of a command of [`Load`].
const BLOCKS: u16 = 16;
/// Commands of a host in flight.
const DEPTH: u32 = 8;

/// Hosts that write and read their own blocks of LUN 1 without a pause, so that threads share the
/// steps of the switch.
struct Load {
    over: Arc<AtomicBool>,
    threads: Vec<JoinHandle<u32>>,
}

impl Load {
    fn start(switch: &Switch<'_>, hosts: u16) -> Load {
        let over = Arc::new(AtomicBool::new(false));
        let start = |number: u16| {
            let mut host = Host::ready(switch, &switch.portals[usize::from(number % 2)], 100 + number);
            host.lun = 1;
            host.until_good(|host| host.send(0x80, 0, &[0; 6], &[]));
            let over = over.clone();
            thread::spawn(move || write_and_verify(&mut host, u32::from(number), &over))
        };
        Load { threads: (0..hosts).map(start).collect(), over }
    }

    /// Ends the load. Every host has verified its data at least once.
    fn stop(self) {
        self.over.store(true, Ordering::Relaxed);
        for thread in self.threads {
            assert!(thread.join().unwrap() > 0);
        }
    }
}

/// Writes [`DEPTH`] ranges at once, then reads all of them at once. Returns the number of rounds.
fn write_and_verify(host: &mut Host, number: u32, over: &AtomicBool) -> u32 {
    let lba = |n: u32| (number * DEPTH + n) * u32::from(BLOCKS);
    let mut round = 0;
    while !over.load(Ordering::Relaxed) || round == 0 {
        let written: Vec<Vec<u8>> = (0..DEPTH).map(|n| pattern(lba(n), round + n * 7)).collect();
        let first = host.number;
        (0..DEPTH).for_each(|n| host.write(lba(n), &written[n as usize]));
        let no_data = answers(host, first).iter().all(Vec::is_empty);
        assert!(no_data, "round {round} of host {number}: a write returned data");
        let first = host.number;
        (0..DEPTH).for_each(|n| host.read(lba(n), BLOCKS));
        for (n, (read, written)) in (0..).zip(answers(host, first).iter().zip(&written)) {
            let begins: Vec<&[u8]> = read.chunks(BLOCK).map(|block| &block[..block.len().min(5)]).collect();
            let lba = lba(n);
            assert!(read == written, "round {round} of host {number}: blocks from {lba:#x} begin with {begins:02x?}");
        }
        round += 1;
    }
    round
}

/// Data for [`BLOCKS`] blocks: each begins with its address, which no other host has, and the rest
/// follows from the seed.
fn pattern(lba: u32, seed: u32) -> Vec<u8> {
    let block = |n: u16| {
        let mut block = [(1 + seed % 255) as u8; BLOCK];
        block[..4].copy_from_slice(&(lba + u32::from(n)).to_be_bytes());
        block
    };
    (0..BLOCKS).flat_map(block).collect()
}

/// Data of good answers to [`DEPTH`] commands from `first` on, in the order of the commands.
/// Answers may arrive in any order.
fn answers(host: &mut Host, first: u32) -> Vec<Vec<u8>> {
    let mut answers = BTreeMap::new();
    for _ in 0..DEPTH {
        let (command, status, data) = host.tagged_answer().unwrap();
        assert_eq!(status, 0, "command {command}");
        assert!(answers.insert(command, data).is_none(), "two answers to command {command}");
    }
    assert!(answers.keys().copied().eq(first..first + DEPTH), "{:?} instead of {first} and later", answers.keys());
    answers.into_values().collect()
}

/// A switch of two threads with three volumes over two back ends.
fn start<'b>(bed: &'b Bed, portals: &[String; 2], forward: bool) -> Switch<'b> {
    let volume = |name: &str, lun: u8| {
        format!(
            "[volume.{name}]\npool = \"disks\"\nsize = \"36MiB\"\nwidth = 2\nstripe = \"64KiB\"\nstorage = \"switch\"\nlun = {lun}\n"
        )
    };
    let lab = format!(
        "[pool.disks]\nextent = \"1MiB\"\n{}{}{}{}{}",
        bed::back_end("first", "disks", &[&portals[0]]),
        bed::back_end("second", "disks", &[&portals[1]]),
        volume("v", 0),
        volume("w", 1),
        volume("x", 2),
    );
    let switch = Switch::start_with_threads(bed, 2, forward, &lab);
    switch.wait_for(&["v", "w", "x"]);
    switch
}

/// Requires that threads have shared steps, unless the environment limits the switch to one thread.
fn assert_shared(bed: &Bed, switch: &Switch<'_>) {
    if switch.threads.as_deref() == Some("1") {
        return;
    }
    let steps = || bed.metric("iscsi_shared_steps_total");
    wait::until(|| "no step was shared".to_owned(), || steps() > 0);
}

fn register(host: &mut Host, old: u8, new: u8) {
    let mut keys = [0; 24];
    (keys[7], keys[15]) = (old, new);
    host.until_good(|host| host.send(0xa0, 24, &[0x5f, 0, 0, 0, 0, 0, 0, 0, 24, 0], &keys));
}

/// PERSISTENT RESERVE OUT with this service action, for a write exclusive reservation.
fn reserve_out(host: &mut Host, action: u8, key: u8) {
    let mut keys = [0; 24];
    keys[7] = key;
    host.send(0xa0, 24, &[0x5f, action, 1, 0, 0, 0, 0, 0, 24, 0], &keys);
    assert_eq!(host.answer().0, 0, "service action {action}");
}

#[test]
fn reservations_and_unit_attentions_reach_sessions_of_other_threads_at_once() {
    for forward in [true, false] {
        let bed = Bed::new(&format!("threads-reserve-{forward}"));
        let portals = [free_port(), free_port()];
        let _first = bed::storage(&bed, "first", &portals[0]);
        let _second = bed::storage(&bed, "second", &portals[1]);
        let mut switch = start(&bed, &portals, forward);
        let load = Load::start(&switch, 2);
        let mut hosts = [1, 2].map(|session| Host::ready(&switch, &switch.portals[usize::from(session) - 1], session));
        let [one, other] = &mut hosts;
        other.until_good(|host| host.write(8, &[0x11; BLOCK]));
        register(one, 0, 9);
        for round in 0..60_u32 {
            // In flight while the reservation is made: either side of it.
            (0..4).for_each(|n| other.write(64 + n, &[0x21; BLOCK]));
            reserve_out(one, 1, 9);
            for _ in 0..4 {
                let (status, _) = other.answer();
                assert!(status == 0 || status == CONFLICT, "{status:#x}");
            }
            // Sent after the response to the reservation.
            (0..4).for_each(|n| other.write(64 + n, &[0x22; BLOCK]));
            (0..4).for_each(|n| one.write(32 + n, &[round as u8; BLOCK]));
            (0..4).for_each(|_| assert_eq!(other.answer().0, CONFLICT, "round {round}"));
            (0..4).for_each(|_| assert_eq!(one.answer().0, 0, "round {round}"));
            reserve_out(one, 2, 9);
            (0..4).for_each(|n| other.write(64 + n, &[0x23; BLOCK]));
            (0..4).for_each(|_| assert_eq!(other.answer().0, 0, "round {round}"));
            if round % 4 == 3 {
                one.ask(LUN_RESET);
                assert_eq!(one.function_response(), Some(0));
                // BUS DEVICE RESET FUNCTION OCCURRED, once.
                other.send(0x80, 0, &[0; 6], &[]);
                let (status, [key, code, _]) = other.verdict();
                assert_eq!((status, key, code), (CHECK_CONDITION, 6, 0x29), "round {round}");
                other.send(0x80, 0, &[0; 6], &[]);
                assert_eq!(other.verdict().0, 0, "round {round}");
                // The reset concerns the host that asked for it as well (SAM-5, 6.2 and 6.3.3).
                one.until_good(|host| host.send(0x80, 0, &[0; 6], &[]));
            }
        }
        load.stop();
        assert_shared(&bed, &switch);
        switch.stop();
        bed.folder.assert_no_errors();
    }
}

#[test]
fn a_login_replaces_a_session_that_another_thread_serves() {
    for forward in [true, false] {
        let bed = Bed::new(&format!("threads-reinstate-{forward}"));
        let portals = [free_port(), free_port()];
        let _first = bed::storage(&bed, "first", &portals[0]);
        let _second = bed::storage(&bed, "second", &portals[1]);
        let mut switch = start(&bed, &portals, forward);
        let load = Load::start(&switch, 3);
        let mut host = Host::ready(&switch, &switch.portals[0], 7);
        for round in 0..12_u8 {
            (0..8).for_each(|n| host.write(8 + n, &[0xaa; BLOCK]));
            let mut again = Host::log_in(&switch.portals[usize::from(round % 2)], 7);
            again.until_good(|host| host.write(8, &[1 + round; 8 * BLOCK]));
            assert!(host.is_closed(), "round {round}");
            again.assert_stays(8, 8, 1 + round);
            host = again;
        }
        load.stop();
        assert_shared(&bed, &switch);
        assert_eq!(bed.sessions().iter().filter(|row| row.isid.ends_with(&Host::isid(7))).count(), 1);
        switch.stop();
        bed.folder.assert_no_errors();
    }
}

/// QEMU at one volume of 36 MiB, which writes and verifies on one login until it is stopped.
fn writer(url: &str) -> Writer {
    Writer::start_on(QemuIo::open(url), 1, |round| {
        let place = |n: u32| format!("-P {} {} 300k", 1 + (round + n) % 250, (n * 3) << 20);
        let commands = ["write", "read"].into_iter();
        commands.flat_map(|verb| (0..11).map(move |n| format!("{verb} {}", place(n)))).collect()
    })
}

#[needs("qemu-iscsi")]
#[test]
fn hosts_on_several_threads_write_and_verify_while_a_back_end_and_the_switch_die() {
    for forward in [true, false] {
        let bed = Bed::new(&format!("threads-die-{forward}"));
        let portals = [free_port(), free_port()];
        let _first = bed::storage(&bed, "first", &portals[0]);
        let mut second = bed::storage(&bed, "second", &portals[1]);
        let mut switch = start(&bed, &portals, forward);
        let hosts = [0, 1, 2].map(|lun| writer(&switch.url(lun)));
        for round in 0..4 {
            hosts.iter().for_each(|host| host.wait_for(20));
            assert_shared(&bed, &switch);
            match round % 2 {
                0 => {
                    second.kill();
                    wait_for_path(&bed, "second", |row| row.portal.is_none());
                    second = bed::storage(&bed, "second", &portals[1]);
                    wait_for_path(&bed, "second", |row| row.portal.is_some());
                }
                _ => {
                    switch.kill();
                    switch.restart();
                }
            }
        }
        hosts.iter().for_each(|host| host.wait_for(20));
        hosts.into_iter().for_each(|host| {
            host.stop();
        });
        switch.stop();
        bed.folder.assert_no_errors();
    }
}
