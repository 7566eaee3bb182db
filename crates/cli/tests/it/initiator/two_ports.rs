//! A host with two Ethernet ports: two paths to each disk, and the registration of its ports.

use crate::initiator::bed::Bed;
use crate::initiator::netns::{in_namespace, lab, section};
use crate::sanloom::SANLOOM;
use sanloom_test_support::needs;
use sanloom_test_support::programs::{exports, run};
use sanloom_test_support::qemu_io::QemuIo;
use sanloom_test_support::wait;
use std::time::{Duration, Instant};

/// Two fabrics, each with a port of the host and of the array.
const LAB: &str = r#"
[live]
folder = "{folder}"

[switch."sw{1..2}"]
fcoe = { keep_alive = "2s" }

[host.server1]
hbas = 2

[storage.array]
ports = 2
luns = 2
lun_size = "64MiB"

[[link]]
name = "a"
from = "server1"
to = "sw1:0"
ethernet = { carrier = "dgram" }

[[link]]
name = "b"
from = "server1"
to = "sw2:0"
ethernet = { carrier = "dgram" }

[[link]]
from = "array"
to = "sw1:1"

[[link]]
from = "array"
to = "sw2:1"
"#;

/// Time after which requests of a lost path are repeated.
const REPEATED_AFTER: Duration = Duration::from_secs(10);
/// Number of writes of 1 MiB before, during and after each failure.
const WRITES: u32 = 8;

#[needs("nbdinfo", "qemu-io")]
#[test]
fn writes_go_on_over_the_other_port_without_loss() {
    let mut bed = Bed::folder("two-ports", LAB);
    bed.start_fabric();
    std::fs::create_dir_all(bed.path("run")).unwrap();
    bed.start_initiator(&["--hba", "0,1", "--control", &bed.path("run/server1.ctl")]);
    let names = exports(&bed.uri(""));
    assert!(names.len() == 2 && names.iter().all(|name| name.starts_with("naa.")), "{names:?}");

    // One disk has both paths, and one of them is in use.
    let shown = || run(SANLOOM, &["fcoeadm", "--run-folder", &bed.path("run"), "-l"]);
    let states = |name: &str| {
        let text = shown();
        let disk = text.split("    Disk ").find(|disk| disk.starts_with(name)).unwrap_or_default().to_owned();
        let lines = disk.lines().filter(|line| line.contains(" -> "));
        lines.filter_map(|line| line.split_whitespace().last().map(str::to_owned)).collect::<Vec<_>>()
    };
    let wait_for = |expected: [&str; 2]| {
        let is_shown = || (states(&names[0]) == expected).then_some(());
        wait::value(|| format!("{expected:?} for {} in:\n{}", names[0], shown()), is_shown);
    };
    let command = |arguments: &[&str]| run(SANLOOM, &[arguments, &[&bed.path("lab.toml")]].concat());

    let mut disk = QemuIo::open(&bed.uri(&names[0]));
    let place = |number: u32| format!("-P {} {number}M 1M", number + 1);
    let mut number = 0;
    let mut write = |disk: &mut QemuIo, many: u32| {
        for _ in 0..many {
            disk.run(&format!("write {}", place(number)));
            number += 1;
        }
    };
    write(&mut disk, WRITES);
    wait_for(["active", "enabled"]);
    // Each port of the host in turn, and then a port of the array.
    for (port, expected, healed) in [
        ("sw1:0", ["failed", "active"], ["enabled", "active"]),
        ("sw2:0", ["active", "failed"], ["active", "enabled"]),
        ("sw1:1", ["failed", "active"], ["enabled", "active"]),
    ] {
        // Responses are lost, so the requests of a queue are in flight when the port fails.
        let inject = |more: &[&str]| run(SANLOOM, &[&["port", "inject", &bed.path("lab.toml"), port], more].concat());
        inject(&["--match", "fcp==RSP", "--do", "drop"]);
        (0..4).for_each(|at| _ = disk.run(&format!("aio_write -q -P 99 {}M 1M", 56 + at)));
        let began = Instant::now();
        command(&["port", "disable", port]);
        write(&mut disk, WRITES);
        disk.run("aio_flush");
        assert!(began.elapsed() >= REPEATED_AFTER, "requests of the lost path were not in flight, or not repeated");
        wait_for(expected);
        inject(&["--clear"]);
        command(&["port", "enable", port]);
        wait_for(healed);
        write(&mut disk, 2);
    }
    let all = number;
    (0..all).for_each(|number| _ = disk.run(&format!("read {}", place(number))));
    disk.run("read -P 99 56M 4M");
    disk.close();

    // Both ports have registered with the management service of their switch.
    let fdmi = run(SANLOOM, &["show", &bed.path("lab.toml"), "fdmi", "--live"]);
    assert_eq!(fdmi.matches("FCoE host").count(), 2, "{fdmi}");
    bed.stop();
}

/// An interface of 10 Gb/s registers its speed, and the tools report it.
#[needs("namespace")]
#[test]
fn the_speed_of_the_link_is_registered_and_shown() {
    let text = lab(1, &[("sw1", "{ carrier = \"packet\", address = \"veth0\" }")]);
    let bed = Bed::folder("speed", &text);
    let output = in_namespace(
        &bed,
        r#"
pair veth0 veth1
start up $folder/lab.toml
up=$started
mkdir $folder/run
start initiator --port veth1 --mac 52:54:00:00:00:01 --nbd $folder/nbd.sock --control $folder/run/veth1.ctl
echo "== fcoeadm"
fcoeadm -i
echo "== fdmi"
$sanloom show $folder/lab.toml fdmi --live --json
kill $started $up
wait
"#,
    );
    let shown = section(&output, "fcoeadm");
    assert!(shown.contains("        Speed:             10 Gbit\n"), "{output}");
    let fdmi = section(&output, "fdmi");
    assert!(fdmi.contains("\"speed\": \"10GE\""), "{output}");
}
