//! Gateways and the storage behind them in the topology report.

use sanloom_lab::topology::Report;
use std::collections::BTreeSet;

/// Returns the report of a lab.
fn report(text: &str) -> Report {
    let loaded = sanloom_lab::load("x.toml", text, &[]).unwrap_or_else(|error| panic!("{}", error.render(false)));
    Report::of(&loaded.lab, &loaded.isolated)
}

/// Returns the names of the single points of failure.
fn points(report: &Report) -> BTreeSet<&str> {
    report.single_points.iter().map(|point| point.name.as_str()).collect()
}

/// A virtualization switch with an interface towards its host and one towards a disk.
const VOLUMES: &str = r#"
[ethernet_switch."{front,back}"]
[host.server]
[storage.virtual]
medium = "volumes"
iscsi = { portals = "192.0.2.1:3260" }
[storage."disk{1..2}"]
iscsi = { portals = "192.0.2.1{1..2}:3260" }
[[link]]
from = "virtual"
to = "back"
rate = "10GbE"
[[link]]
from = "virtual"
to = "front"
rate = "10GbE"
[[link]]
from = "{server,server}"
to = "front"
rate = "10GbE"
[[link]]
from = "disk{1..2}"
to = "back"
rate = "10GbE"
[pool.pool1]
[pool.pool2]
[back_end.disk1]
pool = "pool1"
target = "iqn.2026-11.example.sanloom:disk1"
portals = "192.0.2.11:3260"
[back_end.disk2]
pool = "pool2"
target = "iqn.2026-11.example.sanloom:disk2"
portals = "192.0.2.12:3260"
[volume.volume1]
pool = "pool1"
size = "1MiB"
storage = "virtual"
lun = 0
[volume.volume2]
pool = "pool2"
size = "1MiB"
storage = "virtual"
lun = 1
[workload.w]
hosts = "server"
targets = "virtual:lun0"
"#;

/// The disk of another pool holds no data of the host.
#[test]
fn the_ethernet_between_a_virtualization_switch_and_its_back_ends_is_judged() {
    let report = report(VOLUMES);
    let points = points(&report);
    for name in ["back", "virtual-back", "disk1-back", "disk1:eth0", "virtual:eth0"] {
        assert!(points.contains(name), "{name} is not among {points:?}");
    }
    assert!(!points.iter().any(|name| name.contains("disk2")), "{points:?}");
}

/// The host has two interfaces, and the gateway one port in the fabric.
#[test]
fn a_link_behind_a_gateway_is_a_part_of_all_paths_of_its_hosts() {
    let text = r#"
[switch.sw]
[ethernet_switch."lan{1..2}"]
[host.port]
[host.server]
[storage.array]
[storage.router]
iscsi = { portals = ["192.0.2.1:3260", "198.51.100.1:3260"] }
gateway = { host = "port", target_port = "array" }
[[link]]
from = "{port,array}"
to = "sw"
rate = "8GFC"
[[link]]
from = "server"
to = "lan{1..2}"
rate = "10GbE"
[[link]]
from = "router"
to = "lan{1..2}"
rate = "10GbE"
[workload.w]
hosts = "server"
targets = "router"
"#;
    let report = report(text);
    assert_eq!(report.hosts_without_two_paths, ["server"]);
    let points = points(&report);
    assert!(points.contains("port-sw") && points.contains("router"), "{points:?}");
    assert!(!points.contains("lan1"), "{points:?}");
}

/// The gateway and the array have a port in each of two fabrics.
#[test]
fn two_paths_behind_a_gateway_leave_no_single_point_between_it_and_its_array() {
    let text = |host: &str, target: &str| {
        format!(
            r#"
[switch."sw{{1..2}}"]
[ethernet_switch."lan{{1..2}}"]
[host.port]
hbas = 2
[host.server]
[storage.array]
ports = 2
[storage.router]
iscsi = {{ portals = ["192.0.2.1:3260", "198.51.100.1:3260"] }}
gateway = {{ host = "{host}", target_port = "{target}" }}
[[link]]
from = "port"
to = "sw{{1..2}}"
rate = "8GFC"
[[link]]
from = "array"
to = "sw{{1..2}}"
rate = "8GFC"
[[link]]
from = "server"
to = "lan{{1..2}}"
rate = "10GbE"
[[link]]
from = "router"
to = "lan{{1..2}}"
rate = "10GbE"
[workload.w]
hosts = "server"
targets = "router"
"#
        )
    };
    let both = report(&text("port", "array"));
    let of_array = |points: &BTreeSet<&str>| points.iter().any(|name| name.contains("port") || name.contains("sw"));
    assert!(points(&both).contains("router") && !of_array(&points(&both)), "{:?}", points(&both));
    for (host, target) in [("port:0", "array"), ("port", "array:0"), ("port:0", "array:0")] {
        let one = report(&text(host, target));
        let points = points(&one);
        assert!(points.contains("sw1") && points.contains("array:0-sw1"), "{host} to {target}: {points:?}");
    }
}

/// The gateway and the array are at switches that a virtual link of FCoE joins.
#[test]
fn the_ethernet_below_the_fabric_behind_a_gateway_is_judged() {
    let text = r#"
[switch."fcf{1..2}"]
[ethernet_switch.lossless]
pfc = 3
[ethernet_switch.lan]
[host.port]
[host.server]
[storage.array]
[storage.router]
iscsi = { portals = "192.0.2.1:3260" }
gateway = { host = "port", target_port = "array" }
[[link]]
from = "port"
to = "fcf1"
rate = "8GFC"
[[link]]
from = "array"
to = "fcf2"
rate = "8GFC"
[[link]]
from = "fcf{1..2}"
to = "lossless"
rate = "10GbE"
mtu = 2500
[[isl]]
from = "fcf1"
to = "fcf2"
ethernet = { vlan = 100 }
[[link]]
from = "{server,router}"
to = "lan"
rate = "10GbE"
[workload.w]
hosts = "server"
targets = "router"
"#;
    let report = report(text);
    let points = points(&report);
    for name in ["lossless", "fcf1-lossless", "fcf2-lossless", "lan", "fcf1"] {
        assert!(points.contains(name), "{name} is not among {points:?}");
    }
    assert_eq!(report.hosts_without_two_paths, ["server"]);
}

/// The host also has a path over Fibre Channel, which ends at the switch.
#[test]
fn a_session_with_a_virtualization_switch_without_its_back_end_is_no_path() {
    let text = r#"
[switch.sw]
[ethernet_switch.lan]
[host.server]
[storage.virtual]
medium = "volumes"
iscsi = { portals = "192.0.2.1:3260" }
[storage.disk]
iscsi = { portals = "192.0.2.11:3260" }
[[link]]
from = "{server,virtual}"
to = "sw"
rate = "8GFC"
[[link]]
from = "{server,virtual}"
to = "lan"
rate = "10GbE"
[pool.pool]
[back_end.disk]
pool = "pool"
target = "iqn.2026-11.example.sanloom:disk"
portals = "192.0.2.11:3260"
[volume.volume]
pool = "pool"
size = "1MiB"
storage = "virtual"
lun = 0
[workload.w]
hosts = "server"
targets = "virtual:lun0"
"#;
    let report = report(text);
    let points = points(&report);
    assert!(points.contains("sw"), "{points:?}");
}

/// Each of both logical switches is on a way of its own.
#[test]
fn a_chassis_on_all_ways_behind_a_gateway_is_a_single_point_of_failure() {
    let text = r#"
[switch."{near,far}"]
[switch.a]
virtual_fabric = { chassis = "box", id = 1, ports = "{0..7}" }
[switch.b]
virtual_fabric = { chassis = "box", id = 2, ports = "{8..15}" }
[ethernet_switch.lan]
[host.port]
[host.server]
[storage.array]
[storage.router]
iscsi = { portals = "192.0.2.1:3260" }
gateway = { host = "port", target_port = "array" }
[[link]]
from = "port"
to = "near"
rate = "8GFC"
[[link]]
from = "array"
to = "far"
rate = "8GFC"
[[isl]]
from = "{a,b}"
to = "near"
[[isl]]
from = "{a,b}"
to = "far"
[[link]]
from = "{server,router}"
to = "lan"
rate = "10GbE"
[workload.w]
hosts = "server"
targets = "router"
"#;
    let report = report(text);
    let points = points(&report);
    assert!(points.contains("box"), "{points:?}");
    assert!(!points.contains("a") && !points.contains("b"), "{points:?}");
}

/// The same switch with its links in the other order, and with a target that has a portal in each
/// network.
#[test]
fn the_order_of_links_does_not_decide_how_a_virtualization_switch_reaches_its_back_ends() {
    let [back, front] =
        ["back", "front"].map(|to| format!("[[link]]\nfrom = \"virtual\"\nto = \"{to}\"\nrate = \"10GbE\"\n"));
    let swapped = VOLUMES.replace(&format!("{back}{front}"), &format!("{front}{back}"));
    assert_ne!(swapped, VOLUMES);
    let of = |text: &str| -> Vec<(String, usize)> {
        report(text).single_points.into_iter().map(|point| (point.name, point.hosts)).collect()
    };
    // The interfaces of the switch are numbered in the order of its links.
    let renamed = |points: Vec<(String, usize)>, numbers: [u8; 2]| -> BTreeSet<(String, usize)> {
        let names = numbers.map(|number| format!("virtual:eth{number}"));
        let links = numbers.map(|number| if number == 0 { "virtual-" } else { "virtual:1-" });
        let rename = |name: String| match &name {
            name if *name == names[0] => "to the back".to_owned(),
            name if *name == names[1] => "to the front".to_owned(),
            name if *name == format!("{}back", links[0]) => "link to the back".to_owned(),
            name if *name == format!("{}front", links[1]) => "link to the front".to_owned(),
            _ => name,
        };
        points.into_iter().map(|(name, hosts)| (rename(name), hosts)).collect()
    };
    let expected = renamed(of(VOLUMES), [0, 1]);
    assert!(expected.contains(&("link to the back".to_owned(), 1)), "{expected:?}");
    assert_eq!(renamed(of(&swapped), [1, 0]), expected);

    let two = swapped
        .replace(
            "[storage.\"disk{1..2}\"]\niscsi = { portals = \"192.0.2.1{1..2}:3260\" }",
            "[storage.disk1]\niscsi = { portals = [\"192.0.2.11:3260\", \"198.51.100.11:3260\"] }\n\
             [storage.disk2]\niscsi = { portals = \"192.0.2.12:3260\" }\n[ethernet_switch.alone]\n\
             [[link]]\nfrom = \"disk1\"\nto = \"alone\"\nrate = \"10GbE\"",
        )
        .replace("portals = \"192.0.2.11:3260\"", "portals = [\"192.0.2.11:3260\", \"198.51.100.11:3260\"]");
    let report = report(&two);
    let points = points(&report);
    assert!(points.contains("disk1:eth1") && !points.contains("alone"), "{points:?}");
}

/// Hosts with a metadata server, in a fabric, and over the Ethernet of the lab or none.
#[test]
fn a_metadata_server_is_a_single_point_of_failure_of_the_hosts_of_its_disks() {
    let rest = |portals: &str| {
        format!(
            r#"
[host."server{{1..3}}"]
[storage.meta]
medium = "volumes"
out_of_band = {{}}
[storage.unused]
medium = "volumes"
out_of_band = {{}}
[pool."pool{{1..2}}"]
[volume.data]
pool = "pool1"
size = "16MiB"
storage = "meta"
lun = 0
[volume.other]
pool = "pool2"
size = "16MiB"
storage = "unused"
lun = 0
[storage."array{{1..2}}"]
luns = 2
lun_size = "64MiB"
{portals}
[workload.w]
hosts = "server{{1..2}}"
targets = "meta:lun0"
[workload.plain]
hosts = "server3"
targets = "array2:lun1"
"#
        )
    };
    let back_ends = |keys: &dyn Fn(u32) -> String| -> String {
        (1..=2).map(|n| format!("[back_end.disk{n}]\npool = \"pool{n}\"\n{}\n", keys(n))).collect()
    };
    let ethernet = format!(
        "{}{}",
        rest("iscsi = { portals = \"192.0.2.{1..2}:3260\" }"),
        back_ends(&|n| {
            format!("target = \"iqn.2026-11.example.sanloom:array{n}\"\nportals = \"192.0.2.{n}:3260\"")
        })
    );
    let links = r#"
[ethernet_switch."lan{1..2}"]
[[link]]
from = "{server1,server2,server3,array1,array2}"
to = "lan1"
rate = "10GbE"
[[link]]
from = "{server1,server2,server3,array1,array2}"
to = "lan2"
rate = "10GbE"
"#;
    let fabric = r#"
[switch."sw{1..2}"]
[host.mover]
[[link]]
from = "{mover,server1,server2,server3,array1,array2}"
to = "sw1"
[[link]]
from = "{server1,server2,server3,array1,array2}"
to = "sw2"
"#;
    let fabric = format!(
        "{}{}{fabric}",
        rest("ports = 2").replace("[host.\"server{1..3}\"]", "[host.\"server{1..3}\"]\nhbas = 2"),
        back_ends(&|n| format!("host = \"mover\"\ntarget_port = \"array{n}\""))
    );
    for text in [format!("{ethernet}{links}"), ethernet, fabric] {
        let report = report(&text);
        let found: Vec<(&str, usize)> = report.single_points.iter().map(|p| (p.name.as_str(), p.hosts)).collect();
        assert_eq!(found, [("meta", 2)], "{text}");
        let sentences = report.redundancy();
        let sentence = "Single point of failure: metadata server meta cuts off 2 hosts";
        assert!(sentences.iter().any(|text| text == sentence), "{sentences:?}");
    }
}
