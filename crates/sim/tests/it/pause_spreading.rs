//! Findings about congestion that spreads on lossless Ethernet.

use crate::labs;
use sanloom_api::results::{Finding, FindingKind, Results};

/// Two storage systems at the same switch as their hosts: `db` in a lossy priority, and `da`, whose
/// line is faster than that of its hosts, in a lossless one.
fn run(receivers: &str, more: &str) -> Results {
    labs::run(&labs::lab(&format!(
        r#"
[run]
duration = "50ms"
warmup = "10ms"
[ethernet_switch.s1]
pfc = 3
[host.hb]
[host."{receivers}"]
iscsi = {{ priority = 3 }}
[storage."{{db,da}}"]
rate = "1M/s"
iscsi = {{}}
[[link]]
from = "{{hb,db}}"
to = "s1"
rate = "10GbE"
[[link]]
from = "{receivers}"
to = "s1"
rate = "10GbE"
[[link]]
from = "da"
to = "s1"
rate = "40GbE"
[workload.rb]
hosts = "hb"
targets = "db"
depth = 64
size = "1MiB"
[workload.ra]
hosts = "ha"
targets = "da"
depth = 64
size = "1MiB"
{more}
"#
    )))
}

fn spreading(results: &Results) -> Vec<&Finding> {
    results.findings.iter().filter(|finding| finding.kind == FindingKind::CongestionSpreading).collect()
}

#[test]
fn a_sender_that_fills_its_only_receiver_spreads_nothing() {
    let results = run("ha", "");
    let paused = results.ethernet_links.iter().find(|link| link.forward.from.starts_with("da")).expect("a link");
    assert!(paused.forward.paused_fraction > 0.2, "{:?}", paused.forward);
    assert!(spreading(&results).is_empty(), "{:?}", results.findings);
}

#[test]
fn the_port_that_holds_the_frames_of_a_paused_sender_is_named_with_the_receivers_behind_it() {
    let slow = "[workload.rc]\nhosts = \"hc\"\ntargets = \"da\"\narrivals = \"constant 2k/s\"\nsize = \"64KiB\"";
    let results = run("{ha,hc}", slow);
    let found = spreading(&results);
    let [finding] = &found[..] else { panic!("{:?}", results.findings) };
    let port = |host: &str| {
        let link = results.ethernet_links.iter().find(|link| link.forward.from.starts_with(host)).expect("a link");
        (link.backward.from.clone(), link.backward.to.clone())
    };
    assert_eq!(finding.culprit, Some(port("ha").0), "{finding:?}");
    let victims: Vec<&str> = finding.victims.iter().map(|victim| victim.name.as_str()).collect();
    assert_eq!(victims, [port("hc").1], "{finding:?}");
}

/// Three switches in a ring, each with a host and a storage system that serves the hosts of the
/// others. Pauses starve the ports of the hosts, so none of them is busy all the time.
fn ring(memory: &str) -> Results {
    labs::run(&labs::lab(&format!(
        r#"
[run]
duration = "40ms"
warmup = "10ms"
[ethernet_switch."s{{1..3}}"]
pfc = 3
memory = "{memory}"
mtu = 2500
[host."h{{1..3}}"]
queue_depth = 64
iscsi = {{ priority = 3 }}
[storage."t{{1..3}}"]
rate = "200k/s"
iscsi = {{ portals = "192.0.2.{{1..3}}:3260" }}
[[link]]
from = "h{{1..3}}"
to = "s{{1..3}}"
rate = "10GbE"
[[link]]
from = "t{{1..3}}"
to = "s{{1..3}}"
rate = "10GbE"
[[isl]]
from = "s1"
to = "s2"
rate = "10GbE"
[[isl]]
from = "s2"
to = "s3"
rate = "10GbE"
[[isl]]
from = "s3"
to = "s1"
rate = "10GbE"
[workload.a]
hosts = "h1"
targets = "{{t2,t3}}"
size = "256KiB"
[workload.b]
hosts = "h2"
targets = "{{t1,t3}}"
size = "256KiB"
[workload.c]
hosts = "h3"
targets = "{{t1,t2}}"
size = "256KiB"
"#
    )))
}

#[test]
fn congestion_that_starves_the_ports_of_each_other_is_found_with_more_memory() {
    let results = ring("300KB");
    let found = spreading(&results);
    assert!(!found.is_empty(), "{:?}", results.findings);
    let finding = found[0];
    assert!(!finding.victims.is_empty() && finding.detail.contains("idle while"), "{finding:?}");
    let keys: Vec<&str> = finding.candidates[0].set.iter().map(|(key, _)| key.as_str()).collect();
    assert!(keys.iter().all(|key| key.ends_with(".memory")), "{keys:?}");
    let large = ring("16MiB");
    assert!(labs::mb_per_s(&large) > 1.1 * labs::mb_per_s(&results));
    let starves = |finding: &&Finding| finding.detail.contains("idle while");
    assert_eq!(large.findings.iter().find(starves), None);
}

#[test]
fn frames_without_room_count_at_the_port_for_which_they_were() {
    let results = run("ha", "");
    let to = |host: &str| {
        let link = results.ethernet_links.iter().find(|link| link.forward.from.starts_with(host)).expect("a link");
        (link.forward.clone(), link.backward.clone())
    };
    assert_eq!(to("ha").1.queue_drops, 0, "a lossless priority drops nothing");
    let lost: u64 =
        results.ethernet_links.iter().map(|link| link.forward.frames_lost + link.backward.frames_lost).sum();
    let drops: u64 =
        results.ethernet_links.iter().map(|link| link.forward.queue_drops + link.backward.queue_drops).sum();
    assert_eq!(lost, drops, "no line loses a frame, so all were dropped for a queue");
}

/// Two hosts that write over FCoE: `a1` to both storage systems, `a2` to the fast one. The port of
/// the slow one has 1GFC.
const FORWARDER: &str = r#"
[run]
duration = "100ms"
warmup = "20ms"
[ethernet_switch.t]
pfc = 3
[switch.fcf]
[host."a{1..2}"]
[storage.slow]
[storage.fast]
rate = "200k/s"
[[link]]
from = "a{1..2}"
to = "t"
rate = "10GbE"
mtu = 2500
[[link]]
from = "fcf"
to = "t"
rate = "10GbE"
mtu = 2500
count = 2
[[link]]
from = "a{1..2}"
to = "fcf"
ethernet = {}
[[link]]
from = "slow"
to = "fcf"
rate = "1GFC"
[[link]]
from = "fast"
to = "fcf"
rate = "16GFC"
[workload.w1]
hosts = "a1"
targets = "slow"
depth = 32
size = "256KiB"
read_share = 0
[workload.w2]
hosts = "a{1..2}"
targets = "fast"
depth = 16
size = "256KiB"
read_share = 0
"#;

#[test]
fn congestion_at_a_forwarder_is_followed_to_its_fibre_channel_port() {
    let results = labs::run(&labs::lab(FORWARDER));
    let found = spreading(&results);
    let [finding] = &found[..] else { panic!("{:?}", results.findings) };
    assert_eq!(finding.culprit.as_deref(), Some("fcf:2"), "{finding:?}");
    let victims: Vec<&str> = finding.victims.iter().map(|victim| victim.name.as_str()).collect();
    assert_eq!(victims, ["fast:0"], "{finding:?}");
    assert!(!finding.remedy.contains("DCTCP"), "FCoE has no marks: {}", finding.remedy);
}

#[test]
fn a_pause_storm_is_named_as_the_cause_and_no_finding_counts_zero_ports() {
    let text = r#"
[run]
duration = "100ms"
warmup = "10ms"
[ethernet_switch."t{1..2}"]
pause = true
memory = "1MB"
[host."h{1..3}"]
iscsi = {}
[storage."s{1..3}"]
rate = "1M/s"
iscsi = {}
[[link]]
from = "h{1..3}"
to = "t1"
rate = "10GbE"
[[link]]
from = "s{1..3}"
to = "t2"
rate = "10GbE"
[[link]]
from = "t1"
to = "t2"
rate = "40GbE"
[workload.w]
hosts = "h{1..3}"
targets = "s{1..3}"
depth = 32
size = "256KiB"
[[fault]]
kind = "pause-storm"
port = "h1:0"
at = "20ms"
for = "60ms"
"#;
    for memory in ["64MB", "1MB"] {
        let sets = [format!("ethernet_switch.*.memory={memory}")];
        let results = labs::run(&labs::lab_with(text, "", &[&sets[0]]));
        assert!(results.findings.iter().all(|finding| !finding.title.contains(" 0 other")), "{:?}", results.findings);
        let of_storm = results.findings.iter().find(|finding| finding.culprit.as_deref() == Some("h1:eth0"));
        let of_storm = of_storm.unwrap_or_else(|| panic!("{memory}: {:?}", results.findings));
        assert!(of_storm.detail.contains("fault \"h1:eth0 pauses all priorities"), "{of_storm:?}");
    }
}

/// A storm at one host of a leaf and spine fabric. Without it, all ports are nearly full, so while
/// it lasts, each is busy for about half of the time.
#[test]
fn no_port_is_blamed_for_the_pauses_of_a_storm_elsewhere() {
    let text = r#"
[run]
duration = "300ms"
warmup = "50ms"
[ethernet_switch."{leaf,spine}{1..2}"]
pfc = 3
memory = "2MiB"
[host."h{1..4}"]
iscsi = { priority = 3 }
[storage."d{1..4}"]
rate = "200k/s"
iscsi = {}
[[link]]
from = "{h,d}{1..4}"
to = "leaf{1..2}"
rate = "10GbE"
mtu = 9000
[[isl]]
from = "leaf{1..2}"
to = "spine1"
rate = "10GbE"
[[isl]]
from = "leaf{1..2}"
to = "spine2"
rate = "10GbE"
[workload.w]
hosts = "h{1..4}"
targets = "d{1..4}"
depth = 16
size = "64KiB"
"#;
    let storm = r#"
[[fault]]
at = "100ms"
kind = "pause-storm"
port = "h1:eth0"
priorities = 3
for = "100ms"
"#;
    assert!(spreading(&labs::run(&labs::lab(text))).is_empty());
    let results = labs::run(&labs::lab(&format!("{text}{storm}")));
    let found = spreading(&results);
    let [finding] = &found[..] else { panic!("{:#?}", results.findings) };
    assert_eq!(finding.culprit.as_deref(), Some("h1:eth0"), "{finding:?}");
    assert!(finding.detail.contains("because of the fault"), "{finding:?}");
    assert!(finding.victims.iter().any(|victim| victim.name == "h3:eth0"), "{finding:?}");
}
