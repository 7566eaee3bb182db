//! Findings about what limits a run although no line is full: windows of TCP, routers, gateways,
//! metadata servers, single cores and request limits. Each has a change that raises the throughput.

use crate::labs;
use sanloom_api::results::{Candidate, EthernetLinkResult, Finding, Results};

/// Returns the finding with this title.
fn finding<'r>(results: &'r Results, title: &str) -> Option<&'r Finding> {
    results.findings.iter().find(|finding| finding.title == title)
}

/// Runs a lab with a change.
fn changed(text: &str, candidate: &Candidate) -> Results {
    let sets: Vec<String> = candidate.set.iter().map(|(key, value)| format!("{key}={value}")).collect();
    let sets: Vec<&str> = sets.iter().map(String::as_str).collect();
    labs::run(&labs::lab_with(text, "", &sets))
}

/// Runs a lab, and again with the first candidate of its finding with this title. Returns the
/// factor by which the throughput grows.
fn gain(text: &str, title: &str) -> f64 {
    let results = labs::run(&labs::lab(text));
    let found = finding(&results, title).unwrap_or_else(|| panic!("{title}: {:#?}", results.findings));
    let candidate = found.candidates.first().unwrap_or_else(|| panic!("no candidate: {found:?}"));
    let with = changed(text, candidate);
    labs::mb_per_s(&with) / labs::mb_per_s(&results)
}

const FAR: &str = r#"
[run]
duration = "200ms"
warmup = "100ms"
[ethernet_switch."sw{1..2}"]
[host.h]
queue_depth = 128
iscsi = { tcp = { window = "256KiB" } }
[storage.s]
servers = 16
rate = "1M/s"
iscsi = { portals = "192.0.2.1:3260", tcp = { window = "256KiB" } }
[[link]]
from = "h"
to = "sw1"
rate = "10GbE"
[[link]]
from = "s"
to = "sw2"
rate = "10GbE"
[[isl]]
from = "sw1"
to = "sw2"
rate = "10GbE"
length = "100km"
[workload.w]
hosts = "h"
targets = "s"
size = "64KiB"
depth = 128
"#;

#[test]
fn a_full_window_of_iscsi_is_named_with_a_larger_one() {
    let gain = gain(FAR, "The window of TCP limits h > s");
    assert!(gain > 2.0, "{gain}");
}

#[test]
fn a_window_that_is_not_full_has_no_finding() {
    let results = labs::run(&labs::lab(&FAR.replace("\ndepth = 128", "\ndepth = 1")));
    assert!(results.findings.iter().all(|finding| !finding.title.contains("window")), "{:#?}", results.findings);
}

#[test]
fn a_full_window_of_fcip_is_named_with_a_larger_one() {
    let text = r#"
[run]
duration = "1s"
warmup = "400ms"
[ethernet_switch.w]
memory = "64MiB"
[switch."{a,b}"]
[host.h]
queue_depth = 64
[storage.s]
[[link]]
from = "h"
to = "a"
rate = "8GFC"
[[link]]
from = "s"
to = "b"
rate = "8GFC"
[[link]]
from = "a"
to = "w"
rate = "10GbE"
length = "2500km"
[[link]]
from = "b"
to = "w"
rate = "1GbE"
[[isl]]
name = "far"
from = "a"
to = "b"
fcip = { window = "1MiB" }
[workload.r]
hosts = "h"
targets = "s"
size = "64KiB"
depth = 64
"#;
    let gain = gain(text, "The window of TCP limits far");
    assert!(gain > 1.5, "{gain}");
}

#[test]
fn a_request_limit_that_makes_commands_wait_is_named() {
    let text = r#"
[run]
duration = "20ms"
warmup = "5ms"
[infiniband_switch.ib]
[host.h]
[storage.a]
srp = { request_limit = 2 }
[[link]]
from = "{h,a}"
to = "ib"
rate = "4xEDR"
[workload.w]
hosts = "h"
targets = "a"
size = "64KiB"
"#;
    let gain = gain(text, "The request limit of a makes commands wait");
    assert!(gain > 1.2, "{gain}");
}

/// A host with `host` that reads from a storage system with `storage`, both values of its table of
/// iSCSI.
fn sessions(host: &str, storage: &str) -> String {
    format!(
        r#"
[run]
duration = "50ms"
warmup = "10ms"
[ethernet_switch.lan]
[host.h]
iscsi = {{ {host} }}
[storage.a]
iscsi = {{ {storage} }}
servers = 16
[[link]]
from = "{{h,a}}"
to = "lan"
rate = "10GbE"
[workload.w]
hosts = "h"
targets = "a"
size = "4KiB"
depth = 16
"#
    )
}

#[test]
fn a_queue_depth_of_iscsi_that_makes_commands_wait_is_named() {
    for (host, storage) in [("queue_depth = 1", ""), ("", "queue_depth = 1")] {
        let gain = gain(&sessions(host, storage), "The queue depth of iSCSI makes commands for a wait");
        assert!(gain > 2.0, "{host}{storage}: {gain}");
    }
}

/// Another host fills its line to another storage system. Only a full line on the way of the
/// waiting commands explains why they wait.
#[test]
fn a_full_line_of_others_does_not_hide_a_queue_depth_of_iscsi() {
    let neighbour = |host: &str, storage: &str| {
        format!(
            r#"
[host.h2]
[storage.b]
iscsi = {{}}
servers = 16
[[link]]
from = "{{h2,b}}"
to = "lan"
rate = "10GbE"
[workload.full]
hosts = "{host}"
targets = "{storage}"
size = "256KiB"
depth = 32
"#
        )
    };
    let waits = |more: &str| {
        let results = labs::run(&labs::lab(&(sessions("queue_depth = 1", "") + more)));
        let busiest = |way: fn(&EthernetLinkResult) -> f64| results.ethernet_links.iter().map(way).fold(0.0, f64::max);
        assert!(busiest(|link| link.forward.utilisation.max(link.backward.utilisation)) > 0.95);
        results.findings.iter().any(|finding| finding.title == "The queue depth of iSCSI makes commands for a wait")
    };
    assert!(waits(&neighbour("h2", "b")));
    assert!(!waits(&neighbour("h2", "a")), "the line of a is full");
}

#[test]
fn a_full_gateway_is_named() {
    let text = r#"
[run]
duration = "100ms"
[ethernet_switch.lan]
[switch.a]
[host.h]
[host.card]
[storage.far]
[storage.gw]
iscsi = { portals = "192.0.2.9:3260" }
gateway = { host = "card", target_port = "far", per_command = "1ms" }
[[link]]
from = "{h,gw}"
to = "lan"
rate = "10GbE"
[[link]]
from = "{card,far}"
to = "a"
rate = "16GFC"
[workload.w]
hosts = "h"
targets = "gw"
size = "64KiB"
"#;
    let results = labs::run(&labs::lab(text));
    let found = finding(&results, "The processor of the gateway gw is saturated").expect("a finding");
    let with = changed(text, &found.candidates[0]);
    let gain = labs::mb_per_s(&with) / labs::mb_per_s(&results);
    assert!(gain > 1.8, "twice as fast: {gain}");
}

#[test]
fn a_core_that_serves_a_nic_alone_is_named_if_the_others_are_idle() {
    let text = r#"
[run]
duration = "20ms"
warmup = "5ms"
[ethernet_switch.sw]
mtu = 9000
[host.h]
queue_depth = 64
processor = { cores = 8 }
tcp_cost = { copy_received = "150ns", batch = "64KiB", per_segment_received = "1us" }
[storage.s]
servers = 16
rate = "1M/s"
iscsi = { portals = "192.0.2.1:3260" }
[[link]]
from = "{h,s}"
to = "sw"
rate = "100GbE"
mtu = 9000
[workload.w]
hosts = "h"
targets = "s"
size = "256KiB"
depth = 64
"#;
    let gain = gain(text, "One core of h is saturated");
    assert!(gain > 1.2, "{gain}");
}

const NEAR: &str = r#"
[run]
duration = "400ms"
warmup = "60ms"
[ethernet_switch.sw]
[host.h]
[storage.s]
iscsi = { portals = "192.0.2.1:3260" }
[[link]]
from = "{h,s}"
to = "sw"
rate = "10GbE"
[workload.w]
hosts = "h"
targets = "s"
size = "64KiB"
"#;

#[test]
fn a_fault_in_the_warm_up_explains_the_stall_that_lasts_beyond_it() {
    let fault = "[[fault]]\nat = \"30ms\"\nfor = \"20ms\"\nkind = \"switch-reset\"\nswitch = \"sw\"\n";
    let results = labs::run(&labs::lab_with(NEAR, fault, &[]));
    let stall = results.findings.iter().find(|finding| finding.title.starts_with("I/O of h stalled for"));
    let stall = stall.unwrap_or_else(|| panic!("{:#?}", results.findings));
    assert!(stall.detail.contains("switch sw reset"), "{stall:?}");
}

/// A host whose service level uses lane 15, which is that of management.
const NO_LANE: &str = r#"
[run]
duration = "300ms"
[subnet]
levels = ["0:0", "1:15"]
[infiniband_switch.ib]
[host.h]
ipoib = { level = 1 }
[storage.s]
iscsi = { portals = "192.0.2.1:3260" }
ipoib = {}
[[link]]
from = "{h,s}"
to = "ib"
rate = "4xEDR"
[workload.w]
hosts = "h"
targets = "s"
size = "64KiB"
"#;

#[test]
fn a_host_without_a_path_has_the_causes_of_its_network() {
    let results = labs::run(&labs::lab(NO_LANE));
    let pathless = results.findings.iter().find(|finding| finding.title.contains("never had a path"));
    let pathless = pathless.unwrap_or_else(|| panic!("{:#?}", results.findings));
    assert!(pathless.detail.contains("service level") && !pathless.detail.contains("zone"), "{pathless:?}");
}
