//! Faults of Ethernet links, switches and storage systems, in labs of iSCSI.

use crate::labs;
use sanloom_api::results::{EventKind, Results};

/// A host and a storage system with two switches between them, and faults.
fn run(faults: &str) -> Results {
    let text = format!(
        r#"
[run]
duration = "60s"
warmup = "0s"
stop_issuing = "40s"
[ethernet_switch."tor{{1..2}}"]
pfc = 3
[host.server]
iscsi = {{ priority = 3 }}
[host.server.multipath]
fast_io_fail = "5s"
[storage.array]
rate = "20k/s"
iscsi = {{ portals = ["192.0.2.1:3260", "198.51.100.1:3260"] }}
[[link]]
name = "server-{{1..2}}"
from = "server"
to = "tor{{1..2}}"
rate = "1GbE"
[[link]]
name = "array-{{1..2}}"
from = "array"
to = "tor{{1..2}}"
rate = "1GbE"
[workload.load]
hosts = "server"
targets = "array"
size = "64KiB"
read_share = 0.5
arrivals = "constant 400/s"
{faults}
"#
    );
    let results = labs::run(&labs::lab(&text));
    let io = &results.totals.io;
    assert!(io.ios_failed == 0 && io.ios_completed > 15_990, "{} requests, {} failed", io.ios_completed, io.ios_failed);
    results
}

fn count(results: &Results, kind: EventKind) -> usize {
    results.events.iter().filter(|event| event.kind == kind).count()
}

/// Returns the drops on a link in both directions for a reason.
fn drops(results: &Results, link: &str, why: &str) -> [u64; 2] {
    let link = results.ethernet_links.iter().find(|own| own.name == link).expect("the link");
    [&link.forward, &link.backward].map(|direction| direction.drops.get(why).copied().unwrap_or(0))
}

#[test]
fn without_a_fault_nothing_is_lost() {
    let results = run("");
    assert!(results.ethernet_links.iter().all(|link| link.forward.frames_lost + link.backward.frames_lost == 0));
    assert_eq!((results.hosts[0].path_failovers, results.faults.len()), (0, 0));
}

#[test]
fn a_link_that_goes_down_comes_up_at_the_end_of_the_fault() {
    for place in ["kind = \"link-down\"\nlink = \"server-1\"", "kind = \"port-down\"\nport = \"server:0\""] {
        // The host notices a dead path by pings 10 s later.
        let results = run(&format!("[[fault]]\nat = \"5s\"\nfor = \"15s\"\n{place}"));
        assert_eq!(results.ethernet_links[0].downtime_s, 15.0);
        assert_eq!([EventKind::LinkDown, EventKind::LinkUp].map(|kind| count(&results, kind)), [1, 1]);
        assert!(results.hosts[0].path_failovers > 0, "{place}");
        assert_eq!(results.faults[0].link.as_deref(), Some("server-1"));
    }
}

#[test]
fn a_link_comes_up_by_a_fault_of_its_own() {
    let down = "[[fault]]\nat = \"5s\"\nkind = \"link-down\"\nlink = \"array-2\"";
    let results = run(&format!("{down}\n[[fault]]\nat = \"9s\"\nkind = \"link-up\"\nlink = \"array-2\""));
    assert_eq!(results.ethernet_links[3].downtime_s, 4.0);
}

#[test]
fn a_switch_that_restarts_takes_its_links_down() {
    let results = run("[[fault]]\nat = \"5s\"\nfor = \"10s\"\nkind = \"switch-reset\"\nswitch = \"tor2\"");
    let down: Vec<_> = results.ethernet_links.iter().map(|link| link.downtime_s).collect();
    assert_eq!(down, [0.0, 10.0, 0.0, 10.0]);
    assert_eq!(results.faults[0].what, "switch tor2 reset");
}

/// A link that two faults keep down is up after the second one.
#[test]
fn a_link_is_up_when_no_fault_keeps_it_down() {
    let reset = "[[fault]]\nat = \"5s\"\nfor = \"10s\"\nkind = \"switch-reset\"\nswitch = \"tor2\"";
    let link = "[[fault]]\nat = \"10s\"\nfor = \"10s\"\nkind = \"link-down\"\nlink = \"server-2\"";
    assert_eq!(run(&format!("{reset}\n{link}")).ethernet_links[1].downtime_s, 15.0);
}

/// 1 % of the frames in one direction: of about 9,600 writes with 45 frames each.
#[test]
fn frames_are_lost_in_the_direction_of_the_fault() {
    let fault = "[[fault]]\nkind = \"frame-loss\"\nlink = \"server-1\"\nprobability = 0.01\ndirection = \"forward\"";
    let results = run(fault);
    let [forward, backward] = drops(&results, "server-1", "frame_loss");
    let frames = results.ethernet_links[0].forward.frames as f64;
    assert!((forward as f64 / frames / 0.01 - 1.0).abs() < 0.1, "{forward} of {frames}");
    assert_eq!(backward, 0);
}

#[test]
fn frames_with_a_bad_fcs_are_dropped_where_they_arrive() {
    let fault = "[[fault]]\nkind = \"crc-errors\"\nlink = \"array-1\"\nprobability = 0.001\nuntil = \"30s\"";
    let results = run(fault);
    assert!(drops(&results, "array-1", "fcs").iter().all(|lost| *lost > 50), "{:?}", results.ethernet_links[2]);
}

/// Late frames are not lost, but the receiver asks for them again.
#[test]
fn late_frames_are_sent_again_although_none_is_lost() {
    let fault = "[[fault]]\nkind = \"reordering\"\nlink = \"server-1\"\nprobability = 0.02\ndelay = \"500us\"";
    let (calm, late) = (run(""), run(fault));
    assert_eq!(late.ethernet_links[0].forward.frames_lost, 0);
    let frames = |results: &Results| results.ethernet_links[0].forward.frames;
    let bytes = |results: &Results| results.totals.io.read_bytes + results.totals.io.written_bytes;
    assert_eq!(bytes(&calm), bytes(&late));
    assert!(frames(&late) > frames(&calm), "{} and {}", frames(&late), frames(&calm));
    let again = |results: &Results| -> Vec<u64> {
        results.iscsi_sessions.iter().map(|session| session.segments_retransmitted).collect()
    };
    assert_eq!((again(&calm), again(&late)[1]), (vec![0, 0], 0));
    assert_eq!(late.iscsi_sessions[0].name, "server nic0>array:portal0");
    assert!(again(&late)[0] > 0, "{:?}", again(&late));
}

/// A pause lasts for 65,535 quanta of 512 bits, and the interface repeats it after half of them.
#[test]
fn a_pause_storm_stops_the_link_partner() {
    let fault = "[[fault]]\nat = \"5s\"\nfor = \"2s\"\nkind = \"pause-storm\"\nport = \"server:0\"\npriorities = [3]";
    let results = run(fault);
    let link = &results.ethernet_links[0];
    let paused = link.backward.paused_s.get("3").copied().unwrap_or(0.0);
    assert!((1.99..2.01).contains(&paused), "{paused}");
    assert!(!link.backward.paused_s.contains_key("2") && (119..=122).contains(&link.forward.pauses), "{link:?}");
    assert_eq!(results.faults[0].what, "server:eth0 pauses priority 3 of tor1:0");
}

/// The connections of the storage system are lost with its power; hosts log in again when it is
/// back, and every request ends.
#[test]
fn hosts_log_in_again_after_a_power_failure() {
    let results = run("[[fault]]\nat = \"5s\"\nfor = \"10s\"\nkind = \"power-failure\"\nstorage = \"array\"");
    let down: Vec<_> = results.ethernet_links.iter().map(|link| link.downtime_s).collect();
    assert_eq!(down, [0.0, 0.0, 10.0, 10.0]);
    let logins: Vec<_> = results.iscsi_sessions.iter().map(|session| (&*session.state, session.connections)).collect();
    assert!(logins.iter().all(|(state, connections)| *state == "up" && *connections > 0), "{logins:?}");
    let paths = &results.hosts[0].paths;
    assert!(paths.iter().all(|path| path.commands > 1_000), "{paths:?}");
}
