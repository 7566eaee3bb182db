//! Failures of back ends, paths and the switch itself while a host writes and verifies, without
//! loss of data.

use crate::iscsi_switch::bed::{self, Bed, Switch};
use crate::iscsi_switch::forwarding::qemu;
use crate::iscsi_switch::gate::Gate;
use crate::iscsi_switch::gateway::wait_for_path;
use crate::iscsi_switch::host::Host;
use crate::sanloom::SANLOOM;
use sanloom_api::volume::PathRow;
use sanloom_test_support::needs;
use sanloom_test_support::ports::free_port;
use sanloom_test_support::programs::{run, try_run};
use sanloom_test_support::qemu_io::{QemuIo, Writer};
use sanloom_test_support::wait;

/// Rounds of writes across a volume of 96 MiB. Each write is verified at once, and all of them
/// again at the end of a round.
pub fn writer(url: &str) -> Writer {
    Writer::start(url, 2, |round| {
        let pattern = 1 + round % 250;
        // Every 7 MiB, 300 KiB long, at other blocks than in the previous round.
        let places: Vec<String> =
            (0..13).map(|n| format!("-P {} {} 300k", pattern + n % 5, ((n * 7) << 20) + (round % 64) * 512)).collect();
        let both = places.iter().flat_map(|place| [format!("write {place}"), format!("read {place}")]);
        both.chain(places.iter().map(|place| format!("read {place}"))).collect()
    })
}

/// Commands of the writer between two failures.
pub const COMMANDS: u64 = 30;

const VOLUME: &str =
    "[volume.v]\npool = \"disks\"\nsize = \"96MiB\"\nwidth = 2\nstripe = \"64KiB\"\nstorage = \"switch\"\n";

#[needs("qemu-iscsi")]
#[test]
fn a_host_writes_and_verifies_while_back_ends_die_and_their_paths_are_cut() {
    back_ends_die(true);
}

#[needs("qemu-iscsi")]
#[test]
fn a_host_writes_and_verifies_while_back_ends_die_and_their_paths_are_cut_conventionally() {
    back_ends_die(false);
}

fn back_ends_die(forward: bool) {
    let bed = Bed::new(&format!("back-ends-{forward}"));
    let portals = [free_port(), free_port()];
    let mut second = bed::storage(&bed, "second", &portals[1]);
    let _first = bed::storage(&bed, "first", &portals[0]);
    // The first back end has two paths, and the second one is killed.
    let gates = [Gate::to(&portals[0]), Gate::to(&portals[0])];
    let lab = format!(
        "[pool.disks]\nextent = \"1MiB\"\n{}{}{VOLUME}",
        bed::back_end("first", "disks", &[&gates[0].address, &gates[1].address]),
        bed::back_end("second", "disks", &[&portals[1]]),
    );
    let mut switch = Switch::start_on(&bed, forward, &lab);
    switch.wait_for(&["v"]);
    let host = writer(&switch.url(0));
    for round in 0..6 {
        host.wait_for(COMMANDS);
        for name in ["first", "second"] {
            wait_for_path(&bed, name, |row| row.portal.is_some());
        }
        match round % 3 {
            0 => gates.iter().for_each(Gate::cut),
            1 => {
                second.kill();
                wait_for_path(&bed, "second", |row| row.portal.is_none());
                second = bed::storage(&bed, "second", &portals[1]);
            }
            _ => {
                // The path in use, of two, is down until the other one is used.
                let used = |row: &PathRow| row.portals.iter().position(|portal| portal.used);
                let row = wait_for_path(&bed, "first", |row| used(row).is_some());
                let closed = used(&row).unwrap();
                gates[closed].close(true);
                wait_for_path(&bed, "first", |row| used(row).is_some_and(|portal| portal != closed));
                gates[closed].close(false);
            }
        }
    }
    let rounds = host.stop();
    // Each fault has interrupted an existing session.
    let lost = ["first", "second"].map(|back_end| bed.lost_sessions(back_end));
    assert!(lost[0] >= 4 && lost[1] >= 2, "sessions lost: {lost:?}");
    let paths = run(SANLOOM, &["show", "paths", &bed.path("switch.toml"), "--live"]);
    println!("{rounds} rounds, sessions lost: {lost:?}\n{paths}");
    switch.assert_path("v", forward, 4 << 20, 4 << 20);
    switch.stop();
    bed.folder.assert_no_errors();
}

#[needs("qemu-iscsi")]
#[test]
fn requests_fail_with_sense_when_a_back_end_stays_away_and_the_host_stays_logged_in() {
    a_back_end_stays_away(true);
}

#[needs("qemu-iscsi")]
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
    qemu(&switch, &["write -P 0x3c 60M 8M".to_owned()], &url);
    let mut host = Host::ready(&switch, &switch.portals[1], 7);
    second.kill();
    // NOT READY, logical unit communication failure. Before that, a forwarded command returns BUSY.
    let other_than_busy = || {
        host.read((80 << 20) / 512, 8);
        Some(host.verdict()).filter(|(status, _)| !forward || *status != 8)
    };
    let (status, sense) = wait::value(|| "another status than BUSY".to_owned(), other_than_busy);
    assert_eq!((status, sense), (2, [2, 8, 0]));
    host.read((1 << 20) / 512, 8);
    assert_eq!(host.verdict().0, 0, "what lies on the other back end");
    // One session: data on the other back end are accessible, and the disk returns.
    let logins = bed.host_logins();
    let mut disk = QemuIo::open(&url);
    disk.start("read 80M 4k");
    let printed = disk.result();
    assert!(printed.contains("read failed"), "{printed}");
    disk.run("write -P 0x11 1M 1M");
    disk.run("read -P 0x11 1M 1M");
    disk.kill();
    assert_eq!(bed.host_logins() - logins, 1);
    second = bed::storage(&bed, "second", &portals[1]);
    wait::until(
        || "the data can be read again".to_owned(),
        || try_run("qemu-io", &["-f", "raw", "-c", "read -P 0x3c 60M 8M", &url]).1.contains("read 8388608/8388608"),
    );
    assert!(bed.log().contains("logical unit communication failure"));
    switch.assert_path("v", forward, 0, 8 << 20);
    switch.stop();
    second.stop();
}

#[needs("qemu-iscsi")]
#[test]
fn a_switch_that_is_killed_loses_no_write_that_it_has_acknowledged() {
    the_switch_is_killed(true);
}

#[needs("qemu-iscsi")]
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
    for round in 0..5 {
        kill_while_a_host_writes(&bed, &mut switch, round);
        switch.assert_path("v", forward, 50 << 20, 8 << 20);
    }
    switch.stop();
    bed.folder.assert_no_errors();
}

/// A round of 500 writes to a volume of 96 MiB, each at a different position. Meanwhile, the switch
/// is killed and restarted. Afterwards all writes are present.
pub fn kill_while_a_host_writes(bed: &Bed, switch: &mut Switch<'_>, round: u64) {
    let url = switch.url(0);
    // The host writes before, during and after the kill. It logs in again and repeats
    // unacknowledged writes.
    let place = |n: u64| ((n % 75) << 20) + n / 75 * (128 << 10) + round * 4096;
    let places: Vec<String> =
        (0..500).map(|n| format!("-P {} {} 128k", 1 + (round * 60 + n) % 250, place(n))).collect();
    let logins = bed.host_logins();
    let mut host = QemuIo::open(&url);
    let (before, after) = places.split_at(30 * (1 + round as usize));
    before.iter().for_each(|place| _ = host.run(&format!("write {place}")));
    host.start(&format!("write {}", after[0]));
    switch.kill();
    switch.restart();
    let printed = host.result();
    assert!(printed.contains("wrote 131072/131072"), "{printed}");
    after[1..].iter().for_each(|place| _ = host.run(&format!("write {place}")));
    // One before the kill, one after it.
    assert_eq!(bed.host_logins() - logins, 2, "logins of the host");
    places.iter().for_each(|place| _ = host.run(&format!("read {place}")));
    host.close();
}
