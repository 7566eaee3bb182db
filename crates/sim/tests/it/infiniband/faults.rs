//! Faults of InfiniBand in a lab.

use crate::labs;
use sanloom_api::results::{InfinibandDirection, InfinibandLinkResult, Results};

/// A host and an array, each with a link to two switches.
fn two_paths(faults: &str) -> String {
    format!(
        r#"
[run]
duration = "20s"
warmup = "0s"
stop_issuing = "15s"
[infiniband_switch."ib{{1..2}}"]
[host.server]
multipath = {{ fast_io_fail = "5s" }}
[storage.array]
rate = "20k/s"
srp = {{}}
[[link]]
from = "server"
to = "ib{{1..2}}"
rate = "1xSDR"
name = "server-{{1..2}}"
[[link]]
from = "array"
to = "ib{{1..2}}"
rate = "1xSDR"
name = "array-{{1..2}}"
[[isl]]
from = "ib1"
to = "ib2"
rate = "1xSDR"
name = "trunk"
[workload.load]
hosts = "server"
targets = "array"
size = "64KiB"
read_share = 0.5
arrivals = "constant 300/s"
{faults}
"#
    )
}

/// Each of the 300 requests in a second for 15 s.
const REQUESTS: u64 = 4_500;

fn run(faults: &str) -> Results {
    let results = labs::run(&labs::lab(&two_paths(faults)));
    let io = &results.totals.io;
    assert_eq!((io.ios_completed, io.ios_failed), (REQUESTS, 0), "every request ends well: {faults}");
    results
}

fn link<'r>(results: &'r Results, name: &str) -> &'r InfinibandLinkResult {
    results.infiniband_links.iter().find(|link| link.name == name).expect(name)
}

fn drops(direction: &InfinibandDirection, reason: &str) -> u64 {
    direction.drops.iter().filter(|(why, _)| why.as_str() == reason).map(|(_, packets)| *packets).sum()
}

#[test]
fn lost_and_damaged_packets_are_repeated_and_counted_by_direction() {
    let results = run(r#"
[[fault]]
at = "1s"
for = "5s"
kind = "frame-loss"
link = "server-1"
direction = "forward"
probability = 0.001
[[fault]]
at = "7s"
for = "5s"
kind = "crc-errors"
link = "array-2"
probability = 0.001
"#);
    let [server, array] = ["server-1", "array-2"].map(|name| link(&results, name));
    assert!(drops(&server.forward, "packet_loss") > 0 && drops(&server.backward, "packet_loss") == 0, "{server:?}");
    assert_eq!(drops(&array.forward, "packet_loss"), 0);
    // A switch with cut-through has sent the beginning of a damaged packet when its CRC arrives.
    let at_all = |reason| -> u64 {
        let links = results.infiniband_links.iter().flat_map(|link| [&link.forward, &link.backward]);
        links.map(|direction| drops(direction, reason)).sum()
    };
    assert!(at_all("crc_error") > 0 && at_all("packet_loss") == drops(&server.forward, "packet_loss"), "{array:?}");
    assert!(results.srp_channels.iter().map(|channel| channel.repetitions).sum::<u64>() > 0);
}

#[test]
fn a_link_that_goes_down_and_comes_back_is_down_for_that_time() {
    let results = run(r#"
[[fault]]
at = "2s"
for = "4s"
kind = "link-down"
link = "server-1"
[[fault]]
at = "9s"
kind = "port-down"
port = "array:1"
[[fault]]
at = "10s"
kind = "link-up"
link = "array-2"
"#);
    assert_eq!((link(&results, "server-1").downtime_s, link(&results, "array-2").downtime_s), (4.0, 1.0));
    assert_eq!(link(&results, "trunk").downtime_s, 0.0);
    let texts: Vec<&str> = results.events.iter().map(|event| event.what.as_str()).collect();
    for text in ["link server-1 went down", "link server-1 went up", "link array-2 went down"] {
        assert!(texts.contains(&text), "{texts:?}");
    }
    assert!(results.srp_channels.iter().all(|channel| channel.is_up), "all channels are up again");
    assert!(results.srp_channels.iter().any(|channel| channel.connections > 0), "some were opened again");
}

#[test]
fn a_switch_that_restarts_takes_its_links_down() {
    let results = run("[[fault]]\nat = \"3s\"\nfor = \"2s\"\nkind = \"switch-reset\"\nswitch = \"ib2\"\n");
    for (name, seconds) in [("server-1", 0.0), ("array-1", 0.0), ("server-2", 2.0), ("array-2", 2.0), ("trunk", 2.0)] {
        assert_eq!(link(&results, name).downtime_s, seconds, "{name}");
    }
}

/// The first interface runs the subnet manager. When its link fails, another interface takes over,
/// and the rest of the subnet finds its paths around the next failure.
#[test]
fn a_manager_in_standby_sweeps_the_part_that_lost_its_manager() {
    let text = two_paths(
        r#"
[[fault]]
at = "1s"
kind = "link-down"
link = "server-1"
[[fault]]
at = "4s"
kind = "link-down"
link = "array-2"
"#,
    );
    let results = labs::run(&labs::lab(&text));
    assert_eq!(results.totals.io.ios_failed, 0, "server-2, trunk and array-1 are left");
    assert!(results.subnet.as_ref().is_some_and(|subnet| subnet.sweeps == 2));
    assert!(link(&results, "trunk").forward.packets + link(&results, "trunk").backward.packets > 0);
}

#[test]
fn an_interface_that_frees_no_buffer_stops_its_link_until_it_does() {
    let results = run(r#"
[[fault]]
at = "2s"
for = "100ms"
kind = "withheld-credits"
port = "server:0"
"#);
    let server = link(&results, "server-1");
    assert!((0.05..0.11).contains(&server.backward.credit_wait_s), "{}", server.backward.credit_wait_s);
    assert_eq!(server.backward.packets_lost, 0);
}

/// Totals in flow-control packets heal: what the lost ones announced is in the next one. R_RDYs of
/// Fibre Channel do not: see `examples/credit-loss.toml`.
#[test]
fn credit_of_lost_flow_control_packets_is_in_the_next_one() {
    let loss = |probability: f64| {
        run(&format!(
            "[[fault]]\nat = \"1s\"\nfor = \"5s\"\nkind = \"lost-credit-updates\"\nport = \"array:0\"\n\
             probability = {probability:.1}\n"
        ))
    };
    let (few, none) = (loss(0.9), loss(0.0));
    assert!(few.totals.io.latency.mean_us > none.totals.io.latency.mean_us, "credit comes later");
    let stalls = |results: &Results| {
        link(results, "array-1").forward.credit_wait_s + link(results, "array-1").backward.credit_wait_s
    };
    assert!(stalls(&few) > stalls(&none));
    assert!(few.infiniband_links.iter().all(|link| link.forward.packets_lost + link.backward.packets_lost == 0));
}

#[test]
fn a_storage_system_without_power_loses_its_channels_and_gets_them_back() {
    let results = run("[[fault]]\nat = \"3s\"\nfor = \"2s\"\nkind = \"power-failure\"\nstorage = \"array\"\n");
    for name in ["array-1", "array-2"] {
        assert_eq!(link(&results, name).downtime_s, 2.0, "{name}");
    }
    let channels = &results.srp_channels;
    assert!(channels.iter().all(|channel| channel.is_up && channel.connections > 0), "{channels:?}");
}

#[test]
fn masks_of_fibre_channel_hide_nothing_from_srp_initiators() {
    let masked = two_paths("[[mask]]\nhosts = \"20:00:00:00:00:00:00:01\"\ntargets = \"array\"\n");
    assert_eq!(labs::run(&labs::lab(&masked)).totals.io.ios_completed, REQUESTS);
}
