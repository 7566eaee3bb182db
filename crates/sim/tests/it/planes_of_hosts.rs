//! Hosts with links of several networks: which network carries their data, and over which bus.

use crate::labs;

fn mb_per_s(text: &str) -> f64 {
    labs::mb_per_s(&labs::run(&labs::lab(text)))
}

#[test]
fn a_host_on_infiniband_does_not_use_an_ethernet_that_the_lab_does_not_have() {
    let found = mb_per_s(
        r#"
[run]
duration = "60ms"
warmup = "20ms"
[infiniband_switch.ib]
[host.h]
[storage.s]
rate = "1000k/s"
srp = {}
iscsi = {}
[[link]]
from = "{h,s}"
to = "ib"
rate = "4xSDR"
[workload.w]
hosts = "h"
targets = "s"
depth = 32
size = "64KiB"
"#,
    );
    // A line of 4xSDR carries 1,000 MB/s with headers.
    assert!((900.0..1000.0).contains(&found), "{found} MB/s");
}

/// A host with a PCI bus of 32 bits at 33 MHz, which moves 132 MB/s, on 10GbE.
fn bus(read_share: &str) -> String {
    format!(
        r#"
[run]
duration = "200ms"
warmup = "50ms"
[ethernet_switch.tor]
[host.h]
bus = {{ bits = 32, clock = "33MHz" }}
[storage.s]
rate = "200k/s"
iscsi = {{}}
[[link]]
from = "{{h,s}}"
to = "tor"
rate = "10GbE"
mtu = 9000
[workload.w]
hosts = "h"
targets = "s"
depth = 32
size = "256KiB"
read_share = {read_share}
"#
    )
}

#[test]
fn the_bus_of_a_host_bounds_iscsi_in_both_directions() {
    for share in ["1.0", "0.0"] {
        let results = labs::run(&labs::lab(&bus(share)));
        let found = labs::mb_per_s(&results);
        assert!((110.0..133.0).contains(&found), "{found} MB/s, reads {share}");
        assert!(results.hosts[0].bus_utilisation > 0.95, "{}", results.hosts[0].bus_utilisation);
    }
}

#[test]
fn frames_lost_in_the_warm_up_because_of_a_small_headroom_are_found() {
    let results = labs::run(&labs::lab(
        r#"
[run]
duration = "200ms"
warmup = "50ms"
[ethernet_switch.tor]
memory = "512KB"
pfc = [3]
headroom = "0B"
[host.h]
queue_depth = 256
iscsi = { priority = 3, queue_depth = 32 }
[storage."s{1..8}"]
rate = "200k/s"
iscsi = {}
[[link]]
from = "s{1..8}"
to = "tor"
rate = "10GbE"
length = "300m"
[workload.w]
hosts = "h"
targets = "s{1..8}"
depth = 16
size = "256KiB"
read_share = 1
[[link]]
from = "h"
to = "tor"
rate = "10GbE"
"#,
    ));
    assert!(results.ethernet_switches[0].headroom_drops > 0);
    let kinds: Vec<_> = results.findings.iter().map(|finding| finding.kind).collect();
    assert!(kinds.contains(&sanloom_api::results::FindingKind::HeadroomLoss), "{kinds:?}");
}

/// An appliance between a front and a back network.
#[test]
fn a_virtualization_switch_reaches_its_back_ends_over_any_of_its_interfaces() {
    let text = |links: [&str; 2]| {
        let links: String =
            links.iter().map(|to| format!("[[link]]\nfrom = \"virtual\"\nto = \"{to}\"\nrate = \"10GbE\"\n")).collect();
        format!(
            r#"
[run]
duration = "60ms"
warmup = "20ms"
[ethernet_switch."{{front,back}}"]
[host."server{{1..2}}"]
[storage.disk]
rate = "100k/s"
lun_size = "64MiB"
iscsi = {{ portals = "192.0.2.1:3260" }}
[storage.virtual]
medium = "volumes"
iscsi = {{}}
{links}
[[link]]
from = "server{{1..2}}"
to = "front"
rate = "10GbE"
[[link]]
from = "disk"
to = "back"
rate = "10GbE"
[pool.disks]
[back_end.disk]
pool = "disks"
target = "iqn.2026-11.example.sanloom:disk"
portals = "192.0.2.1:3260"
[volume.data]
pool = "disks"
size = "16MiB"
storage = "virtual"
lun = 0
[workload.load]
hosts = "server{{1..2}}"
targets = "virtual:lun0"
depth = 8
size = "64KiB"
"#
        )
    };
    let [back_first, front_first] = [["back", "front"], ["front", "back"]].map(|links| mb_per_s(&text(links)));
    assert!(back_first > 1_100.0 && (front_first / back_first - 1.0).abs() < 0.01, "{back_first}, {front_first} MB/s");
}
