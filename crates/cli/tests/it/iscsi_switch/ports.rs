//! Back-end sessions across restarts of a switch: commands in flight of one instance end before the
//! next instance starts its own.

use crate::iscsi_switch::bed::{self, Bed, Switch};
use crate::iscsi_switch::forwarding::{qemu, through_gates};
use crate::iscsi_switch::gate::Gate;
use sanloom_test_support::needs;
use sanloom_test_support::ports::free_port;
use sanloom_test_support::qemu_io::QemuIo;
use sanloom_test_support::wait;
use std::fs;

/// Starts a host that writes 0xaa over the first 8 MiB. It does not complete, because the gates
/// hold its data.
fn writer(switch: &Switch<'_>, url: &str, gates: &[Gate; 2]) -> QemuIo {
    let mut host = QemuIo::open(url);
    switch.wait_for_forwarding();
    gates.iter().for_each(Gate::hold);
    (0..8).for_each(|n| _ = host.run(&format!("aio_write -P 0xaa {n}M 1M")));
    gates.iter().for_each(Gate::wait_until_held);
    host
}

fn what_a_killed_switch_has_sent_is_not_written_later(name: &str, forward: bool) {
    let bed = Bed::new(name);
    let portals = [free_port(), free_port()];
    let _first = bed::storage(&bed, "first", &portals[0]);
    let _second = bed::storage(&bed, "second", &portals[1]);
    let (mut switch, gates) = through_gates(&bed, &portals, forward);
    let url = switch.url(0);
    qemu(&switch, &["write -P 0x11 0 8M".to_owned()], &url);
    let host = writer(&switch, &url, &gates);
    switch.kill();
    host.kill();
    switch.restart();
    switch.wait_for(&["v"]);
    qemu(&switch, &["write -P 0xbb 0 8M".to_owned(), "read -P 0xbb 0 8M".to_owned()], &url);
    // Only now the rest of the old writes reaches the targets.
    gates.iter().for_each(Gate::release);
    gates.iter().for_each(Gate::wait_until_passed);
    qemu(&switch, &vec!["read -P 0xbb 0 8M".to_owned(); 3], &url);
    assert!(bed.log().contains("the tasks of the instance before the restart have ended"));
    switch.assert_path("v", forward, 16 << 20, 8 << 20);
    switch.stop();
}

#[needs("qemu-iscsi")]
#[test]
fn writes_forwarded_by_a_killed_switch_do_not_land_later() {
    what_a_killed_switch_has_sent_is_not_written_later("killed-forwarded", true);
}

#[needs("qemu-iscsi")]
#[test]
fn writes_of_a_killed_switch_on_the_conventional_path_do_not_land_later() {
    what_a_killed_switch_has_sent_is_not_written_later("killed-conventional", false);
}

/// Number of logouts in the logs of the targets and the switch.
fn logouts(bed: &Bed) -> usize {
    bed.log().lines().filter(|line| line.contains("session ends") && line.contains("reason=Logout")).count()
}

#[needs("qemu-iscsi")]
#[test]
fn sessions_with_back_ends_log_out_when_their_host_goes_and_when_the_switch_ends() {
    let bed = Bed::new("logouts");
    let portals = [free_port(), free_port()];
    let _first = bed::storage(&bed, "first", &portals[0]);
    let _second = bed::storage(&bed, "second", &portals[1]);
    let (mut switch, _gates) = through_gates(&bed, &portals, true);
    let url = switch.url(0);
    let wait_for_logouts = |expected: usize| {
        wait::until(|| format!("{} of {expected} logouts", logouts(&bed)), || logouts(&bed) >= expected);
        assert_eq!(logouts(&bed), expected, "logouts");
    };
    // The host's own session, and its sessions behind the switch, one per target.
    for round in 1..=3 {
        qemu(&switch, &["write -P 0x11 0 8M".to_owned()], &url);
        wait_for_logouts(3 * round);
    }
    let host = QemuIo::open(&url);
    switch.wait_for_forwarding();
    // The host is asked to log out. Its sessions behind the switch and the switch's own log out,
    // too.
    switch.stop();
    wait_for_logouts(9 + 1 + 2 + 2);
    host.kill();
    // After a restart no old session must be ended.
    switch.restart();
    switch.wait_for(&["v"]);
    assert!(!bed.log().contains("the instance before the restart"));
    switch.stop();
    bed.folder.assert_no_errors();
}

#[needs("qemu-iscsi")]
#[test]
fn a_blocked_back_end_does_not_stop_io_of_its_host_to_others() {
    let bed = Bed::new("stuck");
    let portals = [free_port(), free_port()];
    let _first = bed::storage(&bed, "first", &portals[0]);
    let _second = bed::storage(&bed, "second", &portals[1]);
    let gate = Gate::to(&portals[0]);
    let lab = format!(
        "[pool.disks]\nextent = \"1MiB\"\n{}{}{}",
        bed::back_end("first", "disks", &[&gate.address]),
        bed::back_end("second", "disks", &[&portals[1]]),
        "[volume.v]\npool = \"disks\"\nsize = \"96MiB\"\nstorage = \"switch\"\n",
    );
    let mut switch = Switch::start(&bed, &lab);
    switch.wait_for(&["v"]);
    let url = switch.url(0);
    qemu(&switch, &["write -P 0x3c 80M 8M".to_owned()], &url);
    let mut host = QemuIo::open(&url);
    switch.wait_for_forwarding();
    gate.hold();
    (0..40).for_each(|n| _ = host.run(&format!("aio_write -P {} {n}M 1M", 1 + n)));
    gate.wait_until_held();
    // This read of the other back end ends while the gate holds the writes.
    host.run("read -P 0x3c 84M 64k");
    // A switch that holds its host back serves this read only after it has given the back end up.
    assert_eq!(bed.lost_sessions("first"), 0, "the read waited for the end of a session");
    gate.release();
    host.run("aio_flush");
    (0..40).for_each(|n| _ = host.run(&format!("read -P {} {n}M 1M", 1 + n)));
    host.close();
    switch.stop();
}

#[needs("qemu-iscsi")]
#[test]
fn a_redirected_back_end_is_used_at_its_new_portal_on_either_path() {
    for (forward, permanent) in [(true, false), (true, true), (false, false)] {
        let bed = Bed::new(&format!("moved-{forward}-{permanent}"));
        let [here, there] = [free_port(), free_port()];
        let _first = bed::storage(&bed, "first", &there);
        let lab = format!(
            "[live]\nfolder = \"{}\"\n[storage.first]\nlun_size = \"1MiB\"\n\
             iscsi = {{ portals = \"{here}\", redirect = \"{there}\", redirect_permanent = {permanent} }}\n",
            bed.path("old")
        );
        fs::write(bed.path("old.toml"), lab).unwrap();
        let mut old = bed.up("old.toml");
        let lab = format!(
            "[pool.disks]\nextent = \"1MiB\"\n{}{}",
            bed::back_end("first", "disks", &[&here]),
            "[volume.v]\npool = \"disks\"\nsize = \"48MiB\"\nstorage = \"switch\"\n",
        );
        let mut switch = Switch::start_on(&bed, forward, &lab);
        switch.wait_for(&["v"]);
        let url = switch.url(0);
        qemu(&switch, &["write -P 0x21 1M 8M".to_owned(), "read -P 0x21 1M 8M".to_owned()], &url);
        switch.assert_path("v", forward, 8 << 20, 8 << 20);
        switch.stop();
        old.stop();
        bed.folder.assert_no_errors();
    }
}
