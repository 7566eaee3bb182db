//! Sessions with back ends from one instance of a switch to the next: what was under way in one is over before the other begins.

use crate::bed::{self, Bed, Switch, free_port};
use crate::find_qemu;
use crate::forwarding::{qemu, through_gates};
use crate::gate::Gate;
use crate::peer::run;
use std::fs;
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

/// A host that writes 0xaa over the first 8 MiB, and does not come to an end.
fn writer(bed: &Bed, qemu_io: &str, url: &str, gates: &[Gate; 2]) -> Child {
    let logins = bed.host_logins();
    let mut command = Command::new(qemu_io);
    command.args(["-f", "raw", "-c", "sleep 600"]);
    command.args((0..8).flat_map(|n| ["-c".to_owned(), format!("aio_write -P 0xaa {n}M 1M")]));
    command.args(["-c", "aio_flush", url]);
    let host = command.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
    while bed.host_logins() == logins {
        thread::sleep(Duration::from_millis(5));
    }
    thread::sleep(Duration::from_millis(300));
    gates.iter().for_each(Gate::hold);
    // What it writes is in the gates.
    thread::sleep(Duration::from_millis(700));
    host
}

fn what_a_killed_switch_has_sent_is_not_written_later(name: &str, forward: bool) {
    let bed = Bed::new(name);
    let portals = [free_port(), free_port()];
    let _first = bed::storage(&bed, "first", &portals[0]);
    let _second = bed::storage(&bed, "second", &portals[1]);
    let (mut switch, gates) = through_gates(&bed, &portals, forward);
    let url = switch.url(0);
    let Some(qemu_io) = find_qemu(&url) else { return };
    qemu(qemu_io, &["write -P 0x11 0 8M".to_owned()], &url);
    let mut host = writer(&bed, qemu_io, &url, &gates);
    switch.kill();
    host.kill().unwrap();
    host.wait().unwrap();
    switch.restart();
    switch.wait_for(&["v"]);
    let said = qemu(qemu_io, &["write -P 0xbb 0 8M".to_owned(), "read -P 0xbb 0 8M".to_owned()], &url);
    assert!(!said.contains("failed") && !said.contains("rror"), "{said}");
    // Only now does the rest of the old writes come to the targets.
    gates.iter().for_each(Gate::release);
    thread::sleep(Duration::from_millis(500));
    let said = qemu(qemu_io, &["read -P 0xbb 0 8M".to_owned()], &url);
    assert!(!said.contains("failed") && !said.contains("rror"), "{said}");
    assert!(bed.log().contains("nothing is done there any more for the instance before this one"), "{}", bed.log());
    switch.assert_path("v", forward, 16 << 20, 8 << 20);
    switch.stop();
}

#[test]
fn what_a_killed_switch_has_forwarded_is_not_written_later() {
    what_a_killed_switch_has_sent_is_not_written_later("killed-forwarded", true);
}

#[test]
fn what_a_killed_switch_has_sent_conventionally_is_not_written_later() {
    what_a_killed_switch_has_sent_is_not_written_later("killed-conventional", false);
}

/// Logouts that targets and the switch have seen, in the log of all of them.
fn logouts(bed: &Bed) -> usize {
    bed.log().lines().filter(|line| line.contains("session ends") && line.contains("reason=Logout")).count()
}

#[test]
fn sessions_with_back_ends_log_out_when_their_host_goes_and_when_the_switch_ends() {
    let bed = Bed::new("logouts");
    let portals = [free_port(), free_port()];
    let _first = bed::storage(&bed, "first", &portals[0]);
    let _second = bed::storage(&bed, "second", &portals[1]);
    let (mut switch, _gates) = through_gates(&bed, &portals, true);
    let url = switch.url(0);
    let Some(qemu_io) = find_qemu(&url) else { return };
    // Looking for QEMU was a session, too.
    thread::sleep(Duration::from_millis(300));
    let before = logouts(&bed);
    let until = |wanted: usize| {
        let wanted = before + wanted;
        let end = Instant::now() + Duration::from_secs(5);
        while logouts(&bed) < wanted && Instant::now() < end {
            thread::sleep(Duration::from_millis(20));
        }
        assert_eq!(logouts(&bed), wanted, "{}", bed.log());
    };
    // The host's own, and of its sessions behind the switch one for each target.
    for round in 1..=3 {
        qemu(qemu_io, &["write -P 0x11 0 8M".to_owned()], &url);
        until(3 * round);
    }
    let mut host = Command::new(qemu_io);
    host.args(["-f", "raw", "-c", "sleep 60000", &url]).stdout(Stdio::null()).stderr(Stdio::null());
    let logins = bed.host_logins();
    let mut host = host.spawn().unwrap();
    while bed.host_logins() == logins {
        thread::sleep(Duration::from_millis(5));
    }
    thread::sleep(Duration::from_millis(300));
    // It is asked for a logout, its sessions behind the switch log out, and the switch's own.
    switch.stop();
    until(9 + 1 + 2 + 2);
    host.kill().unwrap();
    host.wait().unwrap();
    // Whoever comes back has nothing to end.
    switch.restart();
    switch.wait_for(&["v"]);
    assert!(!bed.log().contains("for the instance before this one"), "{}", bed.log());
    switch.stop();
    assert!(!bed.log().contains("ERROR"), "{}", bed.log());
}

/// Seconds that the first command took of which qemu-io says this.
fn seconds(said: &str, of: &str) -> f64 {
    let mut lines = said.lines().skip_while(|line| !line.contains(of)).skip(1);
    let line = lines.next().unwrap_or_else(|| panic!("{said}"));
    let time = line.split("; ").nth(1).and_then(|rest| rest.split(" sec").next());
    time.and_then(|time| time.parse().ok()).unwrap_or_else(|| panic!("{line}"))
}

#[test]
fn a_back_end_that_takes_nothing_keeps_its_host_from_no_other() {
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
    let Some(qemu_io) = find_qemu(&url) else { return };
    qemu(qemu_io, &["write -P 0x3c 80M 8M".to_owned()], &url);
    let logins = bed.host_logins();
    let host = thread::spawn({
        let url = url.clone();
        move || {
            let writes = (0..40).map(|n| format!("aio_write -P {} {n}M 1M", 1 + n));
            let reads = (0..40).map(|n| format!("read -P {} {n}M 1M", 1 + n));
            let begin = ["-f", "raw", "-c", "sleep 1500"].map(str::to_owned).into_iter();
            let middle = ["-c", "read -P 0x3c 84M 64k", "-c", "aio_flush"].map(str::to_owned);
            let with = |commands: Vec<String>| commands.into_iter().flat_map(|command| ["-c".to_owned(), command]);
            let all: Vec<String> =
                begin.chain(with(writes.collect())).chain(middle).chain(with(reads.collect())).chain([url]).collect();
            run(qemu_io, &all.iter().map(String::as_str).collect::<Vec<_>>())
        }
    });
    while bed.host_logins() == logins {
        thread::sleep(Duration::from_millis(5));
    }
    thread::sleep(Duration::from_millis(700));
    gate.hold();
    thread::sleep(Duration::from_secs(5));
    assert!(!host.is_finished());
    gate.release();
    let said = host.join().unwrap();
    assert!(!said.contains("failed") && !said.contains("rror"), "{said}");
    let took = seconds(&said, &format!("read 65536/65536 bytes at offset {}", 84 << 20));
    assert!(took < 2.0, "the other back end was kept back for {took} s\n{said}");
    switch.stop();
}

#[test]
fn a_back_end_that_has_moved_is_used_where_it_is_on_either_path() {
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
        let Some(qemu_io) = find_qemu(&url) else { return };
        let said = qemu(qemu_io, &["write -P 0x21 1M 8M".to_owned(), "read -P 0x21 1M 8M".to_owned()], &url);
        assert!(!said.contains("failed") && !said.contains("rror"), "{said}");
        switch.assert_path("v", forward, 8 << 20, 8 << 20);
        switch.stop();
        old.stop();
        assert!(!bed.log().contains("ERROR"), "{}", bed.log());
    }
}
