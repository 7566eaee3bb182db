//! Back ends, ways and the switch itself fail while a host writes and verifies: nothing is lost.

use crate::bed::{self, Bed, Switch, free_port};
use crate::find_qemu;
use crate::gate::Gate;
use crate::gateway::wait_for_path;
use crate::host::Host;
use crate::peer::{run, try_run};
use sanloom_api::volume::PathRow;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

/// Rounds of writes all over a volume of 96 MiB, each read back at once and all once more at the end of a round.
pub fn writer(qemu_io: &'static str, url: String, stop: Arc<AtomicBool>) -> JoinHandle<u32> {
    thread::spawn(move || {
        let mut round = 0;
        while !stop.load(Ordering::Relaxed) || round < 2 {
            let pattern = 1 + round % 250;
            // Every 7 MiB, over 300 KiB, at blocks that are not those of the round before.
            let places: Vec<String> = (0..13)
                .map(|n| format!("-P {} {} 300k", pattern + n % 5, ((n * 7) << 20) + (round % 64) * 512))
                .collect();
            let mut commands: Vec<String> =
                places.iter().flat_map(|place| [format!("write {place}"), format!("read {place}")]).collect();
            commands.extend(places.iter().map(|place| format!("read {place}")));
            let mut arguments = vec!["-f", "raw"];
            arguments.extend(commands.iter().flat_map(|command| ["-c", command.as_str()]));
            arguments.push(&url);
            let said = run(qemu_io, &arguments);
            assert!(!said.contains("failed") && !said.contains("rror"), "{said}");
            round += 1;
        }
        round
    })
}

/// The arguments of qemu-io for these commands.
fn commands(commands: impl Iterator<Item = String>, url: &str) -> Vec<String> {
    let raw = ["-f", "raw"].map(str::to_owned).into_iter();
    raw.chain(commands.flat_map(|command| ["-c".to_owned(), command])).chain([url.to_owned()]).collect()
}

const VOLUME: &str =
    "[volume.v]\npool = \"disks\"\nsize = \"96MiB\"\nwidth = 2\nstripe = \"64KiB\"\nstorage = \"switch\"\n";

#[test]
fn a_host_writes_and_verifies_while_back_ends_die_and_their_ways_are_cut() {
    back_ends_die(true);
}

#[test]
fn a_host_writes_and_verifies_while_back_ends_die_and_their_ways_are_cut_conventionally() {
    back_ends_die(false);
}

fn back_ends_die(forward: bool) {
    let bed = Bed::new(&format!("back-ends-{forward}"));
    let portals = [free_port(), free_port()];
    let mut second = bed::storage(&bed, "second", &portals[1]);
    let _first = bed::storage(&bed, "first", &portals[0]);
    // The first back end has two ways to it, the second is killed.
    let gates = [Gate::to(&portals[0]), Gate::to(&portals[0])];
    let lab = format!(
        "[pool.disks]\nextent = \"1MiB\"\n{}{}{VOLUME}",
        bed::back_end("first", "disks", &[&gates[0].address, &gates[1].address]),
        bed::back_end("second", "disks", &[&portals[1]]),
    );
    let mut switch = Switch::start_on(&bed, forward, &lab);
    switch.wait_for(&["v"]);
    let Some(qemu_io) = find_qemu(&switch.url(0)) else { return };
    let stop = Arc::new(AtomicBool::new(false));
    let host = writer(qemu_io, switch.url(0), stop.clone());
    for round in 0..6 {
        thread::sleep(Duration::from_millis(700));
        assert!(!host.is_finished());
        match round % 3 {
            0 => gates.iter().for_each(Gate::cut),
            1 => {
                second.kill();
                thread::sleep(Duration::from_millis(900));
                second = bed::storage(&bed, "second", &portals[1]);
            }
            _ => {
                // Of the two ways that which is in use is not there for a while.
                let is_used = |row: &PathRow| row.portals.iter().position(|portal| portal.used);
                let row = wait_for_path(&bed, "first", |row| is_used(row).is_some());
                let gate = &gates[is_used(&row).expect("it was waited for")];
                gate.close(true);
                thread::sleep(Duration::from_millis(900));
                gate.close(false);
            }
        }
    }
    stop.store(true, Ordering::Relaxed);
    let rounds = host.join().unwrap();
    // Each fault has hit a session that was there.
    let lost = ["first", "second"].map(|back_end| bed.lost_sessions(back_end));
    assert!(lost[0] >= 4 && lost[1] >= 2, "{lost:?}\n{}", bed.log());
    let paths = run(bed::SANLOOM, &["show", "paths", &bed.path("switch.toml"), "--live"]);
    println!("{rounds} rounds, sessions lost: {lost:?}\n{paths}");
    switch.assert_path("v", forward, 4 << 20, 4 << 20);
    switch.stop();
    assert!(!bed.log().contains("ERROR"), "{}", bed.log());
}

#[test]
fn requests_fail_with_sense_when_a_back_end_stays_away_and_the_host_stays_logged_in() {
    a_back_end_stays_away(true);
}

#[test]
fn requests_fail_with_sense_when_a_back_end_stays_away_and_the_host_stays_logged_in_conventionally() {
    a_back_end_stays_away(false);
}

fn a_back_end_stays_away(forward: bool) {
    let bed = Bed::new(&format!("away-{forward}"));
    let portals = [free_port(), free_port()];
    let _first = bed::storage(&bed, "first", &portals[0]);
    let mut second = bed::storage(&bed, "second", &portals[1]);
    let lab = format!(
        "[pool.disks]\nextent = \"1MiB\"\n{}{}retry_for = \"1s\"\n{}",
        bed::back_end("first", "disks", &[&portals[0]]),
        bed::back_end("second", "disks", &[&portals[1]]),
        "[volume.v]\npool = \"disks\"\nsize = \"96MiB\"\nstorage = \"switch\"\n",
    );
    let mut switch = Switch::start_on(&bed, forward, &lab);
    switch.wait_for(&["v"]);
    let url = switch.url(0);
    let Some(qemu_io) = find_qemu(&url) else { return };
    // The switch needs a moment for its own sessions with the back ends.
    run(qemu_io, &["-f", "raw", "-c", "sleep 300", "-c", "write -P 0x3c 60M 8M", &url]);
    let mut host = Host::ready(&switch.portals[1], 7);
    second.kill();
    // NOT READY, logical unit communication failure; before that, a command that was forwarded is BUSY.
    let began = Instant::now();
    let (status, sense) = loop {
        host.read((80 << 20) / 512, 8);
        match host.verdict() {
            (8, _) if forward && began.elapsed() < Duration::from_secs(20) => thread::sleep(Duration::from_millis(20)),
            verdict => break verdict,
        }
    };
    assert_eq!((status, sense), (2, [2, 8, 0]), "after {:?}", began.elapsed());
    host.read((1 << 20) / 512, 8);
    assert_eq!(host.verdict().0, 0, "what lies on the other back end");
    // One session: what lies on the other back end is there, and the disk comes back.
    let (began, logins) = (Instant::now(), bed.host_logins());
    let (_, out, err) = try_run(
        qemu_io,
        &["-f", "raw", "-c", "read 80M 4k", "-c", "write -P 0x11 1M 1M", "-c", "read -P 0x11 1M 1M", &url],
    );
    let said = out + &err;
    assert!(said.contains("read failed") && began.elapsed() < Duration::from_secs(25), "{said}");
    assert!(said.contains("wrote 1048576/1048576") && !said.contains("verification failed"), "{said}");
    assert_eq!(bed.host_logins() - logins, 1, "{}", bed.log());
    second = bed::storage(&bed, "second", &portals[1]);
    let until = Instant::now() + Duration::from_secs(10);
    while !try_run(qemu_io, &["-f", "raw", "-c", "read -P 0x3c 60M 8M", &url]).1.contains("read 8388608/8388608") {
        assert!(Instant::now() < until, "{}", bed.log());
        thread::sleep(Duration::from_millis(100));
    }
    assert!(bed.log().contains("logical unit communication failure"), "{}", bed.log());
    switch.assert_path("v", forward, 0, 8 << 20);
    switch.stop();
    second.stop();
}

#[test]
fn a_switch_that_is_killed_loses_no_write_that_it_has_acknowledged() {
    the_switch_is_killed(true);
}

#[test]
fn a_switch_that_is_killed_loses_no_write_that_it_has_acknowledged_conventionally() {
    the_switch_is_killed(false);
}

fn the_switch_is_killed(forward: bool) {
    let bed = Bed::new(&format!("killed-{forward}"));
    let portals = [free_port(), free_port()];
    let _first = bed::storage(&bed, "first", &portals[0]);
    let _second = bed::storage(&bed, "second", &portals[1]);
    let lab = format!(
        "[pool.disks]\nextent = \"1MiB\"\n{}{}{VOLUME}",
        bed::back_end("first", "disks", &[&portals[0]]),
        bed::back_end("second", "disks", &[&portals[1]]),
    );
    let mut switch = Switch::start_on(&bed, forward, &lab);
    switch.wait_for(&["v"]);
    let url = switch.url(0);
    let Some(qemu_io) = find_qemu(&url) else { return };
    for round in 0..5 {
        kill_while_a_host_writes(&bed, &mut switch, qemu_io, round);
        switch.assert_path("v", forward, 50 << 20, 8 << 20);
    }
    switch.stop();
    assert!(!bed.log().contains("ERROR"), "{}", bed.log());
}

/// A round of writes to a volume of 96 MiB, each in a place of its own. The switch is killed and started again meanwhile, and then all of
/// them are there.
pub fn kill_while_a_host_writes(bed: &Bed, switch: &mut Switch<'_>, qemu_io: &'static str, round: u64) {
    let url = switch.url(0);
    // Each round writes on while the switch is killed; the host logs in again and repeats what was not answered.
    let place = |n: u64| ((n % 75) << 20) + n / 75 * (128 << 10) + round * 4096;
    let places: Vec<String> =
        (0..500).map(|n| format!("-P {} {} 128k", 1 + (round * 60 + n) % 250, place(n))).collect();
    // Four milliseconds after every other write: a second at least.
    let pause = |n: usize| (n % 2 == 1).then(|| "sleep 4".to_owned());
    let writes = places.iter().enumerate().flat_map(|(n, place)| [Some(format!("write {place}")), pause(n)]);
    let arguments = commands(writes.flatten(), &url);
    let logins = bed.host_logins();
    let host = thread::spawn(move || {
        let all: Vec<&str> = arguments.iter().map(String::as_str).collect();
        try_run(qemu_io, &all).1
    });
    while bed.host_logins() == logins {
        assert!(!host.is_finished());
        thread::sleep(Duration::from_millis(5));
    }
    thread::sleep(Duration::from_millis(20 + 60 * round));
    assert!(!host.is_finished());
    switch.kill();
    thread::sleep(Duration::from_millis(200));
    switch.restart();
    let said = host.join().unwrap();
    // One before the kill, one after it.
    assert_eq!(bed.host_logins() - logins, 2, "{}", bed.log());
    assert_eq!(said.matches("wrote 131072/131072").count(), places.len(), "{said}");
    let reads = commands(places.iter().map(|place| format!("read {place}")), &url);
    let said = run(qemu_io, &reads.iter().map(String::as_str).collect::<Vec<_>>());
    assert!(!said.contains("failed"), "{said}");
}
