//! Operators create, extend, map and delete volumes while hosts use them, and the switch is killed meanwhile.

use crate::bed::{self, Bed, Switch, free_port};
use crate::peer::{fail, run, try_run};
use crate::{find, find_qemu};
use std::fs;
use std::process::{Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

/// A switch with a pool of two back ends of 64 MiB.
fn start<'b>(bed: &'b Bed, portals: &[String; 2], more: &str) -> Switch<'b> {
    let lab = format!(
        "[pool.disks]\nextent = \"1MiB\"\n{}{}{more}",
        bed::back_end("first", "disks", &[&portals[0]]),
        bed::back_end("second", "disks", &[&portals[1]]),
    );
    Switch::start(bed, &lab)
}

#[test]
fn volumes_are_made_extended_mapped_and_deleted_while_hosts_are_at_work() {
    let bed = Bed::new("operators");
    let portals = [free_port(), free_port()];
    let _first = bed::storage(&bed, "first", &portals[0]);
    let _second = bed::storage(&bed, "second", &portals[1]);
    let volume = "[volume.v]\npool = \"disks\"\nsize = \"32MiB\"\nstorage = \"switch\"\n";
    let mut switch = start(&bed, &portals, volume);
    switch.wait_for(&["v"]);
    let url = switch.url(0);
    let Some(qemu_io) = find_qemu(&url) else { return };
    let (asked, io) = (url.clone(), qemu_io);
    let host = thread::spawn(move || {
        for round in 1..30 {
            let write = format!("write -P {round} {}k 20M", round * 4);
            let read = format!("read -P {round} {}k 20M", round * 4);
            let said = run(io, &["-f", "raw", "-c", &write, "-c", &read, &asked]);
            assert!(!said.contains("failed"), "{said}");
        }
    });
    for size in ["40MiB", "41MiB", "63MiB"] {
        switch.volume(&["extend", "v", "--size", size]);
        thread::sleep(Duration::from_millis(100));
    }
    switch.volume(&[
        "create",
        "w",
        "--pool",
        "disks",
        "--size",
        "16MiB",
        "--width",
        "1",
        "--storage",
        "switch",
        "--lun",
        "5",
    ]);
    run(qemu_io, &["-f", "raw", "-c", "write -P 9 0 16M", "-c", "read -P 9 0 16M", &switch.url(5)]);
    // Without being told, the lowest LUN that is free; each command says in one line what it did.
    let create = ["create", "x", "--pool", "disks", "--size", "2MiB", "--storage", "switch"];
    assert_eq!(switch.volume(&create), "x created: 2 MiB, linear, is LUN 1 of switch\n");
    assert_eq!(switch.volume(&["extend", "x", "--size", "4MiB"]), "x has 4 MiB now\n");
    assert_eq!(switch.volume(&["unmap", "x"]), "x is served by nobody; `sanloom volume map` makes it a LUN\n");
    assert_eq!(switch.volume(&["map", "x", "--storage", "switch"]), "x is LUN 1 of switch\n");
    assert_eq!(switch.volume(&["delete", "x"]), "x deleted; what it had is wiped before it is free\n");
    switch.volume(&["unmap", "w"]);
    fail("qemu-img", &["info", "-f", "raw", &switch.url(5)]);
    switch.volume(&["map", "w", "--storage", "switch", "--lun", "2"]);
    run(qemu_io, &["-f", "raw", "-c", "read -P 9 0 16M", &switch.url(2)]);
    switch.volume(&["delete", "w"]);
    fail("qemu-img", &["info", "-f", "raw", &switch.url(2)]);
    let lab = bed.path("switch.toml");
    loop {
        let shown = run(bed::SANLOOM, &["show", "sessions", &lab, "--live"]);
        if shown.contains("example.sanloom:switch") {
            assert!(shown.contains("a host") && shown.contains("127.0.0.1:"), "{shown}");
            assert!(shown.contains(&switch.portals[0]) && !shown.contains("this instance"), "{shown}");
            break;
        }
        assert!(!host.is_finished(), "no session of the host is shown");
    }
    host.join().unwrap();
    let info = run("qemu-img", &["info", "-f", "raw", &url]);
    assert!(info.contains("63 MiB"), "{info}");
    // What was refused says why, and what helps.
    for (arguments, expected) in [
        (vec!["extend", "v", "--size", "1GiB"], "961MiB are wanted, and 65MiB are free for it: give a smaller size"),
        (vec!["extend", "v", "--size", "150MiB"], "add back ends to the pool in the lab file and apply it"),
        (vec!["extend", "v", "--size", "63MiB"], "the volume has 63MiB already: give a larger size"),
        (vec!["extend", "nobody", "--size", "1GiB"], "no such volume: 'sanloom volume show' lists the volumes"),
        (vec!["create", "v", "--pool", "disks", "--size", "1MiB"], "there is a volume 'v' already"),
        (vec!["create", "x", "--pool", "other", "--size", "1MiB"], "there are disks"),
        (vec!["map", "v", "--storage", "switch"], "`sanloom volume unmap` it first"),
    ] {
        let arguments = switch.volume_arguments(&arguments);
        let said = fail(bed::SANLOOM, &arguments.iter().map(String::as_str).collect::<Vec<_>>());
        assert!(said.contains(expected), "{said}");
    }
    // And that is so: with another back end there is room, for what is split over it, too, after a restart as well.
    let third = free_port();
    let _third = bed::storage(&bed, "third", &third);
    let said = switch.apply(&bed::back_end("third", "disks", &[&third]));
    assert!(said.contains("back end third: its pool grows"), "{said}");
    let larger = switch.volume_arguments(&["extend", "v", "--size", "150MiB"]);
    let larger: Vec<&str> = larger.iter().map(String::as_str).collect();
    let until = Instant::now() + Duration::from_secs(20);
    while !try_run(bed::SANLOOM, &larger).0 {
        assert!(Instant::now() < until, "{:?}\n{}", try_run(bed::SANLOOM, &larger), bed.log());
        thread::sleep(Duration::from_millis(50));
    }
    let over_three = ["-c", "write -P 0x66 40M 100M", "-c", "read -P 0x66 40M 100M"];
    run(qemu_io, &[&["-f", "raw"], &over_three[..], &[&url]].concat());
    switch.kill();
    switch.restart();
    run(qemu_io, &[&["-f", "raw"], &over_three[2..], &[&url]].concat());
    let others = fs::read_to_string(bed.path("switch.toml")).unwrap().replace("[back_end.first]", "[back_end.other]");
    fs::write(bed.path("other.toml"), others).unwrap();
    let said = fail(bed::SANLOOM, &["apply", &bed.path("other.toml")]);
    assert!(said.contains("back ends that are there: volumes have extents of them"), "{said}");
    for what in [["show", "volumes"], ["show", "paths"], ["show", "stats"]] {
        let shown = run(bed::SANLOOM, &[&what[..], &[&bed.path("switch.toml"), "--live"]].concat());
        assert!(shown.lines().count() > 2, "{shown}");
    }
    if let Some(curl) = find("curl") {
        let socket = bed.path("switch/control.sock");
        let told = run(curl, &["-s", "--unix-socket", &socket, "http://localhost/metrics"]);
        for name in
            ["sanloom_volume_jobs_total", "sanloom_back_end_up{back_end=\"first\"} 1", "sanloom_pool_used_extents"]
        {
            assert!(told.contains(name), "{told}");
        }
    }
    switch.stop();
    assert!(!bed.log().contains("ERROR"), "{}", bed.log());
}

#[test]
fn a_new_volume_shows_nothing_of_a_deleted_one_whenever_the_switch_is_killed() {
    let bed = Bed::new("wiped");
    let portals = [free_port(), free_port()];
    let _first = bed::storage(&bed, "first", &portals[0]);
    let _second = bed::storage(&bed, "second", &portals[1]);
    // Too large for what is free beside it.
    let volume = "[volume.v]\npool = \"disks\"\nsize = \"80MiB\"\nwidth = 2\nstorage = \"switch\"\n";
    let mut switch = start(&bed, &portals, volume);
    switch.wait_for(&["v"]);
    let url = switch.url(0);
    let Some(qemu_io) = find_qemu(&url) else { return };
    let create =
        ["create", "v", "--pool", "disks", "--size", "80MiB", "--width", "2", "--storage", "switch", "--lun", "0"];
    let create = switch.volume_arguments(&create);
    let mut refused = 0;
    for wait in [0, 10, 40, 1000] {
        run(qemu_io, &["-f", "raw", "-c", "write -P 0x77 0 80M", &url]);
        let mut host = Command::new(qemu_io);
        host.args(["-f", "raw", "-c", "sleep 300"]);
        host.args((0..400).flat_map(|n| ["-c".to_owned(), format!("write -P 0x78 {}M 4M", n % 20 * 4)]));
        let logins = bed.host_logins();
        let mut host = host.arg(&url).stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
        while bed.host_logins() == logins {
            thread::sleep(Duration::from_millis(5));
        }
        thread::sleep(Duration::from_millis(500));
        // In the middle of what the host writes.
        switch.volume(&["delete", "v"]);
        thread::sleep(Duration::from_millis(wait));
        switch.kill();
        host.kill().unwrap();
        host.wait().unwrap();
        switch.restart();
        let until = Instant::now() + Duration::from_secs(20);
        loop {
            let (good, _, err) = try_run(bed::SANLOOM, &create.iter().map(String::as_str).collect::<Vec<_>>());
            if good {
                break;
            }
            assert!(err.contains("being wiped") || err.contains("not reached yet"), "{err}");
            assert!(Instant::now() < until, "{err}\n{}", bed.log());
            refused += u32::from(err.contains("being wiped"));
            thread::sleep(Duration::from_millis(20));
        }
        let said = run(qemu_io, &["-f", "raw", "-c", "read -P 0 0 80M", &url]);
        assert!(!said.contains("failed"), "after {wait} ms: {said}");
    }
    println!("{refused} times too early");
    switch.stop();
    assert!(!bed.log().contains("ERROR"), "{}", bed.log());
}

/// How often the switch is killed.
const ROUNDS: u32 = 12;

#[test]
fn a_kill_at_any_moment_leaves_the_old_map_or_the_new_one() {
    let bed = Bed::new("maps");
    let portals = [free_port(), free_port()];
    let _first = bed::storage(&bed, "first", &portals[0]);
    let _second = bed::storage(&bed, "second", &portals[1]);
    let mut switch = start(&bed, &portals, "[volume.v]\npool = \"disks\"\nsize = \"2MiB\"\nstorage = \"switch\"\n");
    switch.wait_for(&["v"]);
    // How long the two changes of a round take here.
    let begun = Instant::now();
    switch.volume(&["extend", "v", "--size", "5MiB"]);
    switch.volume(&["create", "w", "--pool", "disks", "--size", "4MiB", "--width", "2"]);
    let whole = begun.elapsed();
    let (mut size, mut made, mut extended) = (5_u64, true, 0);
    for round in 0..ROUNDS {
        // An extension, and a volume that is made or deleted, at the same time as the kill.
        let larger = format!("{}MiB", size + 3);
        let extend = switch.volume_arguments(&["extend", "v", "--size", &larger]);
        let other = match made {
            false => switch.volume_arguments(&["create", "w", "--pool", "disks", "--size", "4MiB", "--width", "2"]),
            true => switch.volume_arguments(&["delete", "w"]),
        };
        let operator = thread::spawn(move || {
            [extend, other]
                .map(|arguments| try_run(bed::SANLOOM, &arguments.iter().map(String::as_str).collect::<Vec<_>>()).0)
        });
        // From before the first change until after the second one.
        thread::sleep(whole * round / 8);
        switch.kill();
        let answered = operator.join().unwrap();
        // A map whose volumes share an extent, or whose extents are not there, is refused at the start.
        switch.restart();
        let now = switch.volumes(&[]).volumes;
        let found = now.iter().find(|row| row.name == "v").unwrap().size_bytes >> 20;
        assert!(found == size + 3 || (found == size && !answered[0]), "{found} MiB, {answered:?}");
        let there = now.iter().any(|row| row.name == "w");
        assert!(there != made || !answered[1], "{now:?} {answered:?}");
        extended += u32::from(found > size);
        (size, made) = (found, there);
        switch.wait_for(&["v"]);
    }
    println!("{extended} of {ROUNDS} extensions were done, v has {size} MiB in the end");
    assert!((1..ROUNDS).contains(&extended), "{extended}");
    switch.stop();
    assert!(!bed.log().contains("ERROR"), "{}", bed.log());
}
