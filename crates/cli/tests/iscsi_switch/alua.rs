//! Back ends whose portals do not serve equally well (asymmetric logical unit access): the switch uses the best one, and goes with it
//! when that changes, with hosts at work on either path.

use crate::bed::{Bed, SANLOOM, Switch, back_end, free_port};
use crate::gate::Gate;
use crate::host::{BLOCK, Host};
use crate::peer::run;
use crate::started::Process;
use sanloom_api::view::{Table, View};
use sanloom_api::volume::PathRow;
use std::fs;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

/// Storage of our own with two portals, each a target port group.
pub fn array(bed: &Bed, portals: &[String; 2]) -> Process {
    let lab = format!(
        "[live]\nfolder = \"{}\"\n[storage.array]\nlun_size = \"64MiB\"\nmedium = \"file\"\niscsi = {{ portals = {portals:?} }}\n\
         [port_group.one]\nstorage = \"array\"\nports = \"{}\"\n\
         [port_group.two]\nstorage = \"array\"\nports = \"{}\"\nstate = \"active/non-optimized\"\n",
        bed.path("array"),
        portals[0],
        portals[1]
    );
    fs::write(bed.path("array.toml"), lab).unwrap();
    bed.up("array.toml")
}

/// Changes how a group of it serves.
pub fn set(bed: &Bed, group: &str, state: &str) {
    run(SANLOOM, &["port", "group", group, &bed.path("array.toml"), "--state", state]);
}

/// What `sanloom show paths` knows of the only back end.
fn path(bed: &Bed) -> PathRow {
    let shown = run(SANLOOM, &["show", "paths", &bed.path("switch.toml"), "--live", "--json"]);
    let view: View = serde_json::from_str(&shown).unwrap();
    let Table::Paths(table) = view.table else { panic!("{shown}") };
    table.paths.into_iter().next().unwrap()
}

/// Waits until the only back end is shown so.
pub fn until_shown(bed: &Bed, within: Duration, is_so: impl Fn(&PathRow) -> bool) -> PathRow {
    let until = Instant::now() + within;
    loop {
        let row = path(bed);
        if is_so(&row) {
            return row;
        }
        assert!(Instant::now() < until, "{row:#?}\n{}", bed.log());
        thread::sleep(Duration::from_millis(50));
    }
}

/// Waits until the switch uses this portal, and its sessions for hosts do where there are some.
fn until_used(bed: &Bed, portal: usize, sessions: u64, within: Duration) -> PathRow {
    until_shown(bed, within, |row| row.portals[portal].used && row.forwarding >= sessions)
}

/// Hosts that write and read back, each in blocks of its own, and take nothing but GOOD, or BUSY, which says "again".
pub struct Load {
    over: Arc<AtomicBool>,
    rounds: Arc<AtomicU64>,
    hosts: Vec<JoinHandle<(u64, Duration)>>,
}

/// Blocks of a host, and of one of its writes.
const OWN_BLOCKS: u32 = 4096;
const WRITE_BLOCKS: u16 = 16;

impl Load {
    pub fn start(portal: &str, hosts: u16) -> Load {
        let (over, rounds) = (Arc::new(AtomicBool::new(false)), Arc::new(AtomicU64::new(0)));
        let host = |number: u16| {
            let (portal, over, rounds) = (portal.to_owned(), over.clone(), rounds.clone());
            thread::spawn(move || load(&portal, number, &over, &rounds))
        };
        Load { hosts: (0..hosts).map(host).collect(), over, rounds }
    }

    /// Waits until so many more writes were verified.
    pub fn go_on(&self, more: u64) {
        let (wanted, until) = (self.rounds.load(Ordering::Relaxed) + more, Instant::now() + Duration::from_secs(20));
        while self.rounds.load(Ordering::Relaxed) < wanted {
            assert!(Instant::now() < until, "hosts do not go on");
            assert!(self.hosts.iter().all(|host| !host.is_finished()), "a host has given up");
            thread::sleep(Duration::from_millis(10));
        }
    }

    /// The longest time that a write or read took.
    pub fn stop(self) -> Duration {
        self.over.store(true, Ordering::Relaxed);
        let ends: Vec<(u64, Duration)> = self.hosts.into_iter().map(|host| host.join().unwrap()).collect();
        assert!(ends.iter().all(|(rounds, _)| *rounds > 20), "{ends:?}");
        ends.into_iter().map(|(_, longest)| longest).max().unwrap()
    }
}

fn load(portal: &str, number: u16, over: &AtomicBool, all: &AtomicU64) -> (u64, Duration) {
    let mut host = Host::ready(portal, 100 + number);
    let first = u32::from(number) * OWN_BLOCKS;
    // What each place has to have, where it was written.
    let mut written = vec![0_u8; OWN_BLOCKS as usize / usize::from(WRITE_BLOCKS)];
    let (mut rounds, mut longest, mut seed) = (0_u64, Duration::ZERO, u64::from(number) + 1);
    let bytes = usize::from(WRITE_BLOCKS) * BLOCK;
    while !over.load(Ordering::Relaxed) {
        seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        let place = (seed >> 33) as usize % written.len();
        let lba = first + place as u32 * u32::from(WRITE_BLOCKS);
        written[place] = 1 + (rounds % 250) as u8;
        let data = vec![written[place]; bytes];
        let began = Instant::now();
        until_done(&mut host, |host| host.write(lba, &data));
        longest = longest.max(began.elapsed());
        // Another place than the one just written: what was written late would be there.
        let other = (seed >> 13) as usize % written.len();
        let began = Instant::now();
        let lba = first + other as u32 * u32::from(WRITE_BLOCKS);
        let back = until_done(&mut host, |host| host.read(lba, WRITE_BLOCKS));
        longest = longest.max(began.elapsed());
        assert!(back.iter().all(|byte| *byte == written[other]), "host {number}, place {other}, round {rounds}");
        rounds += 1;
        all.fetch_add(1, Ordering::Relaxed);
    }
    for (place, byte) in written.iter().enumerate() {
        let lba = first + place as u32 * u32::from(WRITE_BLOCKS);
        let back = until_done(&mut host, |host| host.read(lba, WRITE_BLOCKS));
        assert!(back.iter().all(|one| one == byte), "host {number}, place {place}");
    }
    (rounds, longest)
}

fn until_done(host: &mut Host, command: impl Fn(&mut Host)) -> Vec<u8> {
    const BUSY: u8 = 0x08;
    let until = Instant::now() + Duration::from_secs(25);
    loop {
        command(host);
        match host.answer() {
            (0, data) => return data,
            (BUSY, _) => {}
            (other, _) => panic!("status {other:#x}"),
        }
        assert!(Instant::now() < until, "busy for ever");
        thread::sleep(Duration::from_millis(10));
    }
}

#[test]
fn the_state_of_an_only_portal_is_shown() {
    let bed = Bed::new("alua-single");
    let portals = [free_port(), free_port()];
    let _array = array(&bed, &portals);
    let lab = format!(
        "[pool.disks]\nextent = \"1MiB\"\n{}{}",
        back_end("array", "disks", &[&portals[1]]),
        "[volume.v]\npool = \"disks\"\nsize = \"16MiB\"\nstorage = \"switch\"\n"
    );
    let mut switch = Switch::start(&bed, &lab);
    switch.wait_for(&["v"]);
    let within = Duration::from_secs(20);
    let row = until_shown(&bed, within, |row| row.portals[0].state == "active/non-optimized");
    assert_eq!((row.portals.len(), row.portals[0].group), (1, Some(2)));
    // The next command is told of a change.
    let mut host = Host::ready(&switch.portals[0], 1);
    until_shown(&bed, within, |row| row.forwarding == 1);
    until_done(&mut host, |host| host.write(0, &[1; BLOCK]));
    set(&bed, "two", "active/optimized");
    until_done(&mut host, |host| host.write(0, &[2; BLOCK]));
    until_shown(&bed, within, |row| row.portals[0].state == "active/optimized");
    switch.stop();
}

/// A switch with one volume on storage with two portals.
fn switch<'b>(bed: &'b Bed, forward: bool, portals: [&str; 2]) -> Switch<'b> {
    let lab = format!(
        "[pool.disks]\nextent = \"1MiB\"\n{}{}",
        back_end("array", "disks", &portals),
        "[volume.v]\npool = \"disks\"\nsize = \"16MiB\"\nstorage = \"switch\"\n"
    );
    let switch = Switch::start_on(bed, forward, &lab);
    switch.wait_for(&["v"]);
    switch
}

/// Such storage, and such a switch that reaches it through gates.
fn through_gates(bed: &Bed, forward: bool) -> (Process, [Gate; 2], Switch<'_>) {
    let portals = [free_port(), free_port()];
    let array = array(bed, &portals);
    let gates = portals.each_ref().map(|portal| Gate::to(portal));
    let switch = switch(bed, forward, gates.each_ref().map(|gate| gate.address.as_str()));
    (array, gates, switch)
}

fn followed(name: &str, forward: bool) {
    let bed = Bed::new(name);
    let (_array, gates, mut switch) = through_gates(&bed, forward);
    let hosts = 3;
    let sessions = if forward { u64::from(hosts) } else { 0 };
    let load = Load::start(&switch.portals[0], hosts);
    let within = Duration::from_secs(15);
    let row = until_used(&bed, 0, sessions, within);
    let known = |row: &PathRow, portal: usize| {
        let seen = &row.portals[portal];
        (seen.group, seen.state.clone())
    };
    assert_eq!(known(&row, 0), (Some(1), "active/optimized".to_owned()));
    load.go_on(100);

    // The states change places.
    set(&bed, "two", "active/optimized");
    set(&bed, "one", "standby");
    let row = until_used(&bed, 1, sessions, within);
    assert_eq!(known(&row, 0), (Some(1), "standby".to_owned()));
    assert_eq!(known(&row, 1), (Some(2), "active/optimized".to_owned()));
    load.go_on(100);
    // Nothing serves for a while.
    set(&bed, "two", "transitioning");
    thread::sleep(Duration::from_millis(1500));
    set(&bed, "two", "active/non-optimized");
    load.go_on(100);
    set(&bed, "one", "active/optimized");
    until_used(&bed, 0, sessions, within);
    load.go_on(100);

    // The way to the better one is lost, and comes back.
    gates[0].close(true);
    until_used(&bed, 1, sessions, within);
    load.go_on(100);
    gates[0].close(false);
    let row = until_used(&bed, 0, sessions, Duration::from_secs(30));
    assert!(row.moves >= 3 && row.lost >= 1, "{row:?}");
    load.go_on(100);
    let longest = load.stop();
    assert!(longest < Duration::from_secs(12), "{longest:?}");
    switch.assert_path("v", forward, 1 << 20, 1 << 20);
    switch.stop();
    assert!(!bed.log().contains("ERROR"), "{}", bed.log());
}

#[test]
fn a_better_port_of_a_back_end_is_followed_while_hosts_are_forwarded() {
    followed("alua", true);
}

#[test]
fn a_better_port_of_a_back_end_is_followed_while_hosts_take_the_conventional_path() {
    followed("alua-conventional", false);
}

#[test]
fn units_are_reset_before_what_was_lost_at_another_portal_group_is_repeated() {
    let bed = Bed::new("alua-lost");
    let (_array, gates, mut switch) = through_gates(&bed, false);
    let mut host = Host::ready(&switch.portals[0], 1);
    until_done(&mut host, |host| host.write(0, &[1; BLOCK]));
    let reset = "reset, so that nothing is written late";
    assert!(!bed.log().contains(reset));
    // The write is on its way when that is cut.
    gates[0].hold();
    host.write(0, &[2; BLOCK]);
    thread::sleep(Duration::from_millis(300));
    gates[0].close(true);
    assert_eq!(host.answer().0, 0);
    until_used(&bed, 1, 0, Duration::from_secs(5));
    assert!(bed.log().contains(reset), "{}", bed.log());
    until_done(&mut host, |host| host.write(0, &[3; BLOCK]));
    gates[0].release();
    thread::sleep(Duration::from_millis(300));
    assert_eq!(until_done(&mut host, |host| host.read(0, 1)), [3; BLOCK]);
    switch.stop();
    assert!(!bed.log().contains("ERROR"), "{}", bed.log());
}

#[test]
fn where_all_ports_stand_by_one_is_made_active() {
    let bed = Bed::new("alua-standby");
    let portals = [free_port(), free_port()];
    let _array = array(&bed, &portals);
    set(&bed, "one", "unavailable");
    set(&bed, "two", "standby");
    let mut switch = switch(&bed, true, portals.each_ref().map(String::as_str));
    let mut host = Host::ready(&switch.portals[0], 1);
    until_done(&mut host, |host| host.write(0, &[1; BLOCK]));
    let shown = run(SANLOOM, &["show", "groups", &bed.path("array.toml"), "--live"]);
    assert_eq!(shown.matches("active/optimized").count(), 1, "{shown}");
    let row = path(&bed);
    assert_eq!(row.portals.iter().filter(|portal| portal.used && portal.state == "active/optimized").count(), 1);
    switch.stop();
    assert!(!bed.log().contains("ERROR"), "{}", bed.log());
}
