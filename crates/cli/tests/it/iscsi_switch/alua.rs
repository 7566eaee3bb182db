//! Back ends with portals in different states of asymmetric logical unit access: the switch uses
//! the best portal and follows state changes, with hosts active on either path.

use crate::iscsi_switch::bed::{Bed, Switch, back_end};
use crate::iscsi_switch::gate::{Gate, Inside};
use crate::iscsi_switch::host::{BLOCK, Host};
use crate::sanloom::SANLOOM;
use sanloom_api::volume::PathRow;
use sanloom_test_support::ports::free_port;
use sanloom_test_support::programs::run;
use sanloom_test_support::started::Process;
use sanloom_test_support::wait;
use std::fs;
use std::io::ErrorKind::{TimedOut, WouldBlock};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread::{self, JoinHandle};

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

/// Changes the state of a target port group.
pub fn set(bed: &Bed, group: &str, state: &str) {
    run(SANLOOM, &["port", "group", group, &bed.path("array.toml"), "--state", state]);
}

/// Row of the only back end in `sanloom show paths`.
fn path(bed: &Bed) -> PathRow {
    bed.paths().into_iter().next().unwrap()
}

/// Waits until the row of the only back end matches.
pub fn until_shown(bed: &Bed, is_so: impl Fn(&PathRow) -> bool) -> PathRow {
    wait::value(|| format!("another row than {:#?}", path(bed)), || Some(path(bed)).filter(|row| is_so(row)))
}

/// Waits until the switch uses this portal, and its sessions for hosts as well, if there are any.
fn until_used(bed: &Bed, portal: usize, sessions: u64) -> PathRow {
    until_shown(bed, |row| row.portals[portal].used && row.forwarding >= sessions)
}

/// Hosts that write and verify, each in its own blocks. Only GOOD is accepted, BUSY as a request to
/// retry, and the end of the session, which follows when a back end is lost in the middle of a PDU
/// for the host.
pub struct Load {
    over: Arc<AtomicBool>,
    rounds: Arc<AtomicU64>,
    hosts: Vec<JoinHandle<u64>>,
}

/// Blocks per host, and blocks per write.
const OWN_BLOCKS: u32 = 4096;
const WRITE_BLOCKS: u16 = 16;

impl Load {
    pub fn start(switch: &Switch<'_>, hosts: u16) -> Load {
        let (over, rounds) = (Arc::new(AtomicBool::new(false)), Arc::new(AtomicU64::new(0)));
        let host = |number: u16| {
            let (portal, session) = (switch.portals[0].clone(), 100 + number);
            let host = Host::ready(switch, &portal, session);
            let (over, rounds) = (over.clone(), rounds.clone());
            thread::spawn(move || load(Lasting { host, portal, session }, number, &over, &rounds))
        };
        Load { hosts: (0..hosts).map(host).collect(), over, rounds }
    }

    /// Waits until this number of further writes has been verified.
    #[track_caller]
    pub fn go_on(&self, more: u64) {
        let end = self.rounds.load(Ordering::Relaxed) + more;
        wait::until(
            || format!("{more} further writes"),
            || {
                assert!(self.hosts.iter().all(|host| !host.is_finished()), "a host has given up");
                self.rounds.load(Ordering::Relaxed) >= end
            },
        );
    }

    /// Stops the hosts after they have verified all of their blocks.
    pub fn stop(self) {
        self.over.store(true, Ordering::Relaxed);
        let rounds: Vec<u64> = self.hosts.into_iter().map(|host| host.join().unwrap()).collect();
        assert!(rounds.iter().all(|rounds| *rounds > 20), "{rounds:?}");
    }
}

/// A host that logs in again after the end of its session.
struct Lasting {
    host: Host,
    portal: String,
    session: u16,
}

impl Lasting {
    /// Repeats a command until its status is GOOD. Returns its data.
    fn until_done(&mut self, command: impl Fn(&mut Host)) -> Vec<u8> {
        wait::value(
            || "another status than BUSY".to_owned(),
            || {
                command(&mut self.host);
                let answer = self.host.try_answer();
                if answer.as_ref().is_err_and(|error| !matches!(error.kind(), WouldBlock | TimedOut)) {
                    self.host = Host::log_in(&self.portal, self.session);
                    // The first response reports the new session.
                    self.host.until_good(|host| host.send(0x80, 0, &[0; 6], &[]));
                    return None;
                }
                done(answer.unwrap())
            },
        )
    }
}

/// Returns the number of verified writes of a host.
fn load(mut host: Lasting, number: u16, over: &AtomicBool, all: &AtomicU64) -> u64 {
    let first = u32::from(number) * OWN_BLOCKS;
    // Expected content of each written position.
    let mut written = vec![0_u8; OWN_BLOCKS as usize / usize::from(WRITE_BLOCKS)];
    let (mut rounds, mut seed) = (0_u64, u64::from(number) + 1);
    let bytes = usize::from(WRITE_BLOCKS) * BLOCK;
    while !over.load(Ordering::Relaxed) {
        seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        let place = (seed >> 33) as usize % written.len();
        let lba = first + place as u32 * u32::from(WRITE_BLOCKS);
        written[place] = 1 + (rounds % 250) as u8;
        let data = vec![written[place]; bytes];
        host.until_done(|host| host.write(lba, &data));
        // Another position than the last one, where a late write would be visible.
        let other = (seed >> 13) as usize % written.len();
        let lba = first + other as u32 * u32::from(WRITE_BLOCKS);
        let back = host.until_done(|host| host.read(lba, WRITE_BLOCKS));
        assert!(back.iter().all(|byte| *byte == written[other]), "host {number}, place {other}, round {rounds}");
        rounds += 1;
        all.fetch_add(1, Ordering::Relaxed);
    }
    for (place, byte) in written.iter().enumerate() {
        let lba = first + place as u32 * u32::from(WRITE_BLOCKS);
        let back = host.until_done(|host| host.read(lba, WRITE_BLOCKS));
        assert!(back.iter().all(|one| one == byte), "host {number}, place {place}");
    }
    rounds
}

fn until_done(host: &mut Host, command: impl Fn(&mut Host)) -> Vec<u8> {
    wait::value(
        || "another status than BUSY".to_owned(),
        || {
            command(host);
            done(host.answer())
        },
    )
}

/// Data of a command that is done; `None` to repeat it.
fn done((status, data): (u8, Vec<u8>)) -> Option<Vec<u8>> {
    const BUSY: u8 = 0x08;
    match status {
        0 => Some(data),
        BUSY => None,
        other => panic!("status {other:#x}"),
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
    let row = until_shown(&bed, |row| row.portals[0].state == "active/non-optimized");
    assert_eq!((row.portals.len(), row.portals[0].group), (1, Some(2)));
    // The next command reports the change.
    let mut host = Host::ready(&switch, &switch.portals[0], 1);
    until_shown(&bed, |row| row.forwarding == 1);
    until_done(&mut host, |host| host.write(0, &[1; BLOCK]));
    set(&bed, "two", "active/optimized");
    until_done(&mut host, |host| host.write(0, &[2; BLOCK]));
    until_shown(&bed, |row| row.portals[0].state == "active/optimized");
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
    let load = Load::start(&switch, hosts);
    until_used(&bed, 0, sessions);
    let known = |row: &PathRow, portal: usize| {
        let seen = &row.portals[portal];
        (seen.group, seen.state.clone())
    };
    // The state is read with a command of its own.
    let row = until_shown(&bed, |row| row.portals[0].group.is_some());
    assert_eq!(known(&row, 0), (Some(1), "active/optimized".to_owned()));
    load.go_on(100);

    // The groups exchange their states.
    set(&bed, "two", "active/optimized");
    set(&bed, "one", "standby");
    until_used(&bed, 1, sessions);
    let exchanged = [(Some(1), "standby".to_owned()), (Some(2), "active/optimized".to_owned())];
    until_shown(&bed, |row| [known(row, 0), known(row, 1)] == exchanged);
    load.go_on(100);
    // No group serves for a while.
    set(&bed, "two", "transitioning");
    until_shown(&bed, |row| row.portals[1].state == "transitioning");
    set(&bed, "two", "active/non-optimized");
    load.go_on(100);
    set(&bed, "one", "active/optimized");
    until_used(&bed, 0, sessions);
    load.go_on(100);

    // The path is lost in the middle of a PDU with data for a host.
    gates[0].cut_inside(Some(Inside::Read));
    load.go_on(100);
    assert_eq!(gates[0].cuts(Inside::Read), 1);
    until_used(&bed, 0, sessions);
    // The path to the better portal is lost, and returns.
    gates[0].close(true);
    until_used(&bed, 1, sessions);
    load.go_on(100);
    gates[0].close(false);
    let row = until_used(&bed, 0, sessions);
    assert!(row.moves >= 3 && row.lost >= 1, "{row:?}");
    load.go_on(100);
    load.stop();
    switch.assert_path("v", forward, 1 << 20, 1 << 20);
    switch.stop();
    bed.folder.assert_no_errors();
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
    let mut host = Host::ready(&switch, &switch.portals[0], 1);
    until_done(&mut host, |host| host.write(0, &[1; BLOCK]));
    let reset = "the unit is reset, because writes through another portal";
    assert!(!bed.log().contains(reset));
    // The write is in flight when the path is cut.
    gates[0].hold();
    host.write(0, &[2; BLOCK]);
    gates[0].wait_until_held();
    gates[0].close(true);
    assert_eq!(host.answer().0, 0);
    until_used(&bed, 1, 0);
    assert!(bed.log().contains(reset));
    until_done(&mut host, |host| host.write(0, &[3; BLOCK]));
    gates[0].release();
    gates[0].wait_until_passed();
    assert_eq!(until_done(&mut host, |host| host.read(0, 1)), [3; BLOCK]);
    switch.stop();
    bed.folder.assert_no_errors();
}

#[test]
fn one_port_is_activated_if_all_are_in_standby() {
    let bed = Bed::new("alua-standby");
    let portals = [free_port(), free_port()];
    let _array = array(&bed, &portals);
    set(&bed, "one", "unavailable");
    set(&bed, "two", "standby");
    let mut switch = switch(&bed, true, portals.each_ref().map(String::as_str));
    let mut host = Host::ready(&switch, &switch.portals[0], 1);
    until_done(&mut host, |host| host.write(0, &[1; BLOCK]));
    let shown = run(SANLOOM, &["show", "groups", &bed.path("array.toml"), "--live"]);
    assert_eq!(shown.matches("active/optimized").count(), 1, "{shown}");
    let row = path(&bed);
    assert_eq!(row.portals.iter().filter(|portal| portal.used && portal.state == "active/optimized").count(), 1);
    switch.stop();
    bed.folder.assert_no_errors();
}
