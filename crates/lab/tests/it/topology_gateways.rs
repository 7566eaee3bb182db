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
