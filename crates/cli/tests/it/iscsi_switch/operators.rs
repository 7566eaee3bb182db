//! Operators create, extend, map and delete volumes while hosts use them, and the switch is killed
//! meanwhile.

use crate::iscsi_switch::bed::{self, Bed, Switch};
use crate::sanloom::SANLOOM;
use sanloom_test_support::needs;
use sanloom_test_support::ports::free_port;
use sanloom_test_support::programs::{fail, run, try_run};
use sanloom_test_support::qemu_io::QemuIo;
use sanloom_test_support::wait;
use std::fs;
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

#[needs("curl", "qemu-iscsi")]
#[test]
fn volumes_are_created_extended_mapped_and_deleted_under_io() {
    let bed = Bed::new("operators");
    let portals = [free_port(), free_port()];
    let _first = bed::storage(&bed, "first", &portals[0]);
    let _second = bed::storage(&bed, "second", &portals[1]);
    let volume = "[volume.v]\npool = \"disks\"\nsize = \"32MiB\"\nstorage = \"switch\"\n";
    let mut switch = start(&bed, &portals, volume);
    switch.wait_for(&["v"]);
    let url = switch.url(0);
    let (asked, io) = (url.clone(), "qemu-io");
    let host = thread::spawn(move || {
        for round in 1..30 {
            let write = format!("write -P {round} {}k 20M", round * 4);
            let read = format!("read -P {round} {}k 20M", round * 4);
            let output = run(io, &["-f", "raw", "-c", &write, "-c", &read, &asked]);
            assert!(!output.contains("failed"), "{output}");
        }
    });
    for size in ["40MiB", "41MiB", "63MiB"] {
        switch.volume(&["extend", "v", "--size", size]);
        switch.wait_for_commands("v", 1);
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
    run("qemu-io", &["-f", "raw", "-c", "write -P 9 0 16M", "-c", "read -P 9 0 16M", &switch.url(5)]);
    // By default the lowest free LUN is used; each command reports its effect in one line.
    let create = ["create", "x", "--pool", "disks", "--size", "2MiB", "--storage", "switch"];
    assert_eq!(switch.volume(&create), "x created: 2 MiB, linear, is LUN 1 of switch\n");
    assert_eq!(switch.volume(&["extend", "x", "--size", "4MiB"]), "x extended to 4 MiB\n");
    assert_eq!(switch.volume(&["unmap", "x"]), "x is not served; `sanloom volume map` makes it a LUN\n");
    assert_eq!(switch.volume(&["map", "x", "--storage", "switch"]), "x is LUN 1 of switch\n");
    assert_eq!(switch.volume(&["delete", "x"]), "x deleted; its extents are wiped before they are used again\n");
    switch.volume(&["unmap", "w"]);
    fail("qemu-img", &["info", "-f", "raw", &switch.url(5)]);
    switch.volume(&["map", "w", "--storage", "switch", "--lun", "2"]);
    run("qemu-io", &["-f", "raw", "-c", "read -P 9 0 16M", &switch.url(2)]);
    switch.volume(&["delete", "w"]);
    fail("qemu-img", &["info", "-f", "raw", &switch.url(2)]);
    let lab = bed.path("switch.toml");
    loop {
        let shown = run(SANLOOM, &["show", "sessions", &lab, "--live"]);
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
    // A rejection contains the reason and the remedy.
    for (arguments, expected) in [
        (vec!["extend", "v", "--size", "1GiB"], "961MiB are needed, but only 65MiB are free: give a smaller size"),
        (vec!["extend", "v", "--size", "150MiB"], "add back ends to the pool in the lab file and apply it"),
        (vec!["extend", "v", "--size", "63MiB"], "the volume has 63MiB already: give a larger size"),
        (vec!["extend", "nobody", "--size", "1GiB"], "there is no volume `nobody`; `sanloom volume show` lists them"),
        (vec!["create", "v", "--pool", "disks", "--size", "1MiB"], "there is a volume 'v' already"),
        (vec!["create", "x", "--pool", "other", "--size", "1MiB"], "the pools are disks"),
        (vec!["map", "v", "--storage", "switch"], "unmap it first with `sanloom volume unmap`"),
    ] {
        let arguments = switch.volume_arguments(&arguments);
        let output = fail(SANLOOM, &arguments.iter().map(String::as_str).collect::<Vec<_>>());
        assert!(output.contains(expected), "{output}");
    }
    // The remedy works: another back end provides space, also for striped volumes, and also after a
    // restart.
    let third = free_port();
    let _third = bed::storage(&bed, "third", &third);
    let output = switch.apply(&bed::back_end("third", "disks", &[&third]));
    assert!(output.contains("back end third: its pool grows"), "{output}");
    let larger = switch.volume_arguments(&["extend", "v", "--size", "150MiB"]);
    let larger: Vec<&str> = larger.iter().map(String::as_str).collect();
    wait::until(|| format!("{:?}", try_run(SANLOOM, &larger)), || try_run(SANLOOM, &larger).0);
    let over_three = ["-c", "write -P 0x66 40M 100M", "-c", "read -P 0x66 40M 100M"];
    run("qemu-io", &[&["-f", "raw"], &over_three[..], &[&url]].concat());
    switch.kill();
    switch.restart();
    run("qemu-io", &[&["-f", "raw"], &over_three[2..], &[&url]].concat());
    let others = fs::read_to_string(bed.path("switch.toml")).unwrap().replace("[back_end.first]", "[back_end.other]");
    fs::write(bed.path("other.toml"), others).unwrap();
    let output = fail(SANLOOM, &["apply", &bed.path("other.toml")]);
    assert!(output.contains("existing back ends: volumes use their extents"), "{output}");
    for what in [["show", "volumes"], ["show", "paths"], ["show", "stats"]] {
        let shown = run(SANLOOM, &[&what[..], &[&bed.path("switch.toml"), "--live"]].concat());
        assert!(shown.lines().count() > 2, "{shown}");
    }
    let socket = bed.path("switch/control.sock");
    let metrics = run("curl", &["-s", "--unix-socket", &socket, "http://localhost/metrics"]);
    for name in ["sanloom_volume_jobs_total", "sanloom_back_end_up{back_end=\"first\"} 1", "sanloom_pool_used_extents"]
    {
        assert!(metrics.contains(name), "{metrics}");
    }
    switch.stop();
    bed.folder.assert_no_errors();
}

/// Time at which the switch is killed.
#[derive(Debug)]
enum Killed {
    AfterDelete,
    /// This number of milliseconds later, which is within the wipe on most machines.
    Wiping(u64),
    /// After the extents were wiped.
    Wiped,
}

#[needs("qemu-iscsi")]
#[test]
fn a_new_volume_contains_no_data_of_a_deleted_one_whenever_the_switch_is_killed() {
    let bed = Bed::new("wiped");
    let portals = [free_port(), free_port()];
    let _first = bed::storage(&bed, "first", &portals[0]);
    let _second = bed::storage(&bed, "second", &portals[1]);
    // Larger than the free space.
    let volume = "[volume.v]\npool = \"disks\"\nsize = \"80MiB\"\nwidth = 2\nstorage = \"switch\"\n";
    let mut switch = start(&bed, &portals, volume);
    switch.wait_for(&["v"]);
    let url = switch.url(0);
    let create =
        ["create", "v", "--pool", "disks", "--size", "80MiB", "--width", "2", "--storage", "switch", "--lun", "0"];
    let create = switch.volume_arguments(&create);
    let mut refused = 0;
    for killed in [Killed::AfterDelete, Killed::Wiping(10), Killed::Wiping(40), Killed::Wiped] {
        run("qemu-io", &["-f", "raw", "-c", "write -P 0x77 0 80M", &url]);
        let mut host = QemuIo::open(&url);
        switch.wait_for_forwarding();
        // The host is writing while the volume is deleted, and then it gets errors.
        (0..20).for_each(|n| _ = host.run(&format!("aio_write -P 0x78 {}M 4M", n % 20 * 4)));
        switch.wait_for_commands("v", 1);
        switch.volume(&["delete", "v"]);
        match killed {
            Killed::AfterDelete => {}
            Killed::Wiping(ms) => thread::sleep(Duration::from_millis(ms)),
            Killed::Wiped => {
                wait::until(|| "the wipe ends".to_owned(), || switch.volumes(&[]).pools[0].used == 0);
            }
        }
        switch.kill();
        host.kill();
        switch.restart();
        let is_created = || {
            let (good, _, err) = try_run(SANLOOM, &create.iter().map(String::as_str).collect::<Vec<_>>());
            assert!(good || err.contains("being wiped") || err.contains("not reached yet"), "{err}");
            refused += u32::from(err.contains("being wiped"));
            good
        };
        wait::until(|| "the extents are free again".to_owned(), is_created);
        let output = run("qemu-io", &["-f", "raw", "-c", "read -P 0 0 80M", &url]);
        assert!(!output.contains("failed"), "{killed:?}: {output}");
    }
    println!("{refused} times too early");
    switch.stop();
    bed.folder.assert_no_errors();
}

/// Number of kills.
const ROUNDS: u32 = 12;

#[test]
fn a_kill_at_any_moment_leaves_the_old_map_or_the_new_one() {
    let bed = Bed::new("maps");
    let portals = [free_port(), free_port()];
    let _first = bed::storage(&bed, "first", &portals[0]);
    let _second = bed::storage(&bed, "second", &portals[1]);
    let mut switch = start(&bed, &portals, "[volume.v]\npool = \"disks\"\nsize = \"2MiB\"\nstorage = \"switch\"\n");
    switch.wait_for(&["v"]);
    // Duration of the two changes of a round on this machine.
    let begun = Instant::now();
    switch.volume(&["extend", "v", "--size", "5MiB"]);
    switch.volume(&["create", "w", "--pool", "disks", "--size", "4MiB", "--width", "2"]);
    let whole = begun.elapsed();
    let (mut size, mut made, mut extended) = (5_u64, true, 0);
    for round in 0..ROUNDS {
        // An extension, and the creation or deletion of a volume, at the time of the kill.
        let larger = format!("{}MiB", size + 3);
        let extend = switch.volume_arguments(&["extend", "v", "--size", &larger]);
        let other = match made {
            false => switch.volume_arguments(&["create", "w", "--pool", "disks", "--size", "4MiB", "--width", "2"]),
            true => switch.volume_arguments(&["delete", "w"]),
        };
        let operator = thread::spawn(move || {
            [extend, other]
                .map(|arguments| try_run(SANLOOM, &arguments.iter().map(String::as_str).collect::<Vec<_>>()).0)
        });
        // From before the first change until after the second one: the first kill precedes both,
        // and the last one follows both.
        match round {
            0 => {}
            _ if round == ROUNDS - 1 => wait::until(|| "both changes".to_owned(), || operator.is_finished()),
            _ => thread::sleep(whole * round / 8),
        }
        switch.kill();
        let answered = operator.join().unwrap();
        // The switch refuses to start with a map whose volumes share an extent, or whose extents do
        // not exist.
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
    bed.folder.assert_no_errors();
}
