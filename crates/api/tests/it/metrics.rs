//! Paths of numbers, as used by expectations and sweeps.

use sanloom_api::results::{
    EthernetDirection, EthernetLinkResult, EthernetSwitchResult, ExpectationResult, HostResult, IoStats,
    IscsiSessionResult, LinkDirection, LinkResult, Metrics, Results, SubnetResult, SwitchResult, is_metric_path, stray,
};
use std::collections::BTreeMap;

fn host(name: &str, throughput_bytes_per_s: f64) -> HostResult {
    HostResult {
        name: name.into(),
        io: IoStats { throughput_bytes_per_s, ..IoStats::default() },
        ..HostResult::default()
    }
}

fn direction(utilisation: f64) -> LinkDirection {
    LinkDirection { utilisation, ..LinkDirection::default() }
}

fn results() -> Results {
    let mut results = Results {
        hosts: vec![host("server1", 10.0), host("server2", 30.0), host("db.example", 50.0)],
        links: vec![LinkResult {
            name: "isl1".into(),
            forward: direction(0.25),
            backward: direction(0.75),
            ..LinkResult::default()
        }],
        ..Results::default()
    };
    results.totals.io.ios_failed = 3;
    results.drops.insert("crc_error".into(), 7);
    results
}

#[test]
fn an_element_of_a_list_is_found_by_its_name() {
    let results = results();
    assert_eq!(results.metric("hosts.server2.throughput_bytes_per_s"), Some(30.0));
    assert_eq!(results.metric("totals.ios_failed"), Some(3.0));
    assert_eq!(results.metric("drops.crc_error"), Some(7.0));
    assert_eq!(results.metric("links.isl1.backward.utilisation"), Some(0.75));
}

#[test]
fn a_reason_for_drops_that_did_not_occur_is_zero() {
    let mut results = results();
    let direction = EthernetDirection { drops: BTreeMap::from([("fcs".into(), 4)]), ..EthernetDirection::default() };
    let link = |name: &str, forward| EthernetLinkResult { name: name.into(), forward, ..EthernetLinkResult::default() };
    results.ethernet_links = vec![link("a", direction), link("b", EthernetDirection::default())];
    assert_eq!(results.metric("drops.hold_time"), Some(0.0));
    assert_eq!(results.metric("ethernet_links.a.forward.drops.fcs"), Some(4.0));
    assert_eq!(results.metric("ethernet_links.a.forward.drops.headroom"), Some(0.0));
    assert_eq!(results.metric("ethernet_links.b.backward.drops.fcs"), Some(0.0));
    assert_eq!(results.metric("mean(ethernet_links.*.*.drops.fcs)"), Some(1.0));
    assert_eq!(results.metric("ethernet_links.z.forward.drops.fcs"), None, "there is no such link");
    assert_eq!(results.metric("links.isl1.forward.frames_lost.hold_time"), Some(0.0));
    assert_eq!(results.metric("drops.rust"), None, "that is no reason");
    assert!(stray("drops.rust", None).is_some() && stray("drops.hold_time", None).is_none());
    results.totals.io = IoStats { ios_offered: 4, ios_completed: 4, ..IoStats::default() };
    let verdict = ExpectationResult::check(&Metrics::new(&results), "drops.hold_time", None, Some(0.0));
    assert!(verdict.ok, "{verdict:?}");
}

#[test]
fn a_name_with_dots_is_found() {
    assert_eq!(results().metric("hosts.db.example.throughput_bytes_per_s"), Some(50.0));
}

#[test]
fn a_path_of_several_numbers_needs_a_function() {
    let metrics = Metrics::new(&results());
    let path = "hosts.server*.throughput_bytes_per_s";
    assert_eq!(metrics.get(path), None);
    assert_eq!(metrics.get(&format!("sum({path})")), Some(40.0));
    assert_eq!(metrics.get(&format!("min( {path} )")), Some(10.0));
    assert_eq!(metrics.get(&format!("max({path})")), Some(30.0));
    assert_eq!(metrics.get(&format!("mean({path})")), Some(20.0));
    assert_eq!(metrics.get("count(hosts.*.iops)"), Some(3.0));
    assert_eq!(metrics.get("count(hosts.*)"), Some(3.0));
    assert_eq!(metrics.get("max(links.*.*.utilisation)"), Some(0.75));
}

#[test]
fn a_missing_number_is_none_and_not_zero() {
    let metrics = Metrics::new(&results());
    for path in [
        "hosts.server9.iops",
        "hosts.server1",
        "hosts.server1.name",
        "min(hosts.nobody*.iops)",
        "median(hosts.*.iops)",
        "",
        "..",
    ] {
        assert_eq!(metrics.get(path), None, "{path}");
    }
    assert_eq!(metrics.get("count(hosts.nobody*.iops)"), Some(0.0));
}

#[test]
fn every_listed_path_finds_its_number() {
    let metrics = Metrics::new(&results());
    let all = metrics.all();
    assert!(all.len() > 100);
    for (path, value) in all {
        assert_eq!(metrics.get(&path), Some(value), "{path}");
    }
}

#[test]
fn an_expectation_without_a_number_fails() {
    let metrics = Metrics::new(&results());
    let check = |metric, min, max| ExpectationResult::check(&metrics, metric, min, max).ok;
    assert!(check("totals.ios_failed", Some(3.0), Some(3.0)));
    assert!(!check("totals.ios_failed", None, Some(2.0)));
    assert!(!check("totals.ios_failed", Some(4.0), None));
    assert!(!check("totals.no_such_number", None, Some(1e9)));
}

#[test]
fn a_bound_on_the_totals_of_a_run_without_requests_fails() {
    let mut results = sanloom_api::results::Results::default();
    let check = |results: &_| ExpectationResult::check(&Metrics::new(results), "totals.ios_failed", None, Some(0.0));
    let verdict = check(&results);
    assert!(!verdict.ok && verdict.reason.is_some() && verdict.value == Some(0.0));
    results.totals.io.ios_offered = 1;
    results.totals.io.ios_completed = 1;
    assert!(check(&results).ok && check(&results).reason.is_none());
    results.totals.io.ios_failed = 1;
    assert!(!check(&results).ok && check(&results).reason.is_none());
}

/// One host whose requests wait until the end of the run, and one without requests.
fn nothing_completed() -> Results {
    let io = IoStats { ios_offered: 4, ios_unfinished: 4, ..IoStats::default() };
    let host = |name: &str, io| HostResult { name: name.into(), io, ..HostResult::default() };
    let mut results = Results { hosts: vec![host("h.1", io.clone()), host("idle", IoStats::default())], ..results() };
    results.totals.io = io;
    results
}

#[test]
fn a_bound_on_a_part_that_completed_nothing_fails() {
    let metrics = Metrics::new(&nothing_completed());
    let check = |metric, min, max| ExpectationResult::check(&metrics, metric, min, max);
    for metric in [
        "totals.ios_failed",
        "totals.latency.p99_us",
        "hosts.h.1.ios_failed",
        "hosts.h.1.latency.p99_us",
        "max(hosts.*.latency.p99_us)",
        "hosts.h.1.throughput_bytes_per_s",
        "hosts.idle.ios_failed",
    ] {
        let verdict = check(metric, None, Some(1000.0));
        let reason = verdict.reason.clone().unwrap_or_default();
        assert!(!verdict.ok && reason.contains("completed in the measured time"), "{verdict:?}");
        assert_eq!(verdict.value.is_none(), metric.contains("latency"), "{verdict:?}");
    }
    // Bounds that state that nothing completes, and lower bounds that hold.
    assert!(check("hosts.h.1.ios_completed", None, Some(0.0)).ok);
    assert!(check("hosts.h.1.ios_unfinished", Some(4.0), None).ok);
    // A name that is wrong is not a statistic without samples.
    assert_eq!(check("hosts.h.1.nonsense", None, Some(1.0)).reason, None);
}

#[test]
fn a_bound_is_judged_by_the_host_with_the_longest_name_and_logins_are_no_requests() {
    let mut results = nothing_completed();
    let io = IoStats { ios_offered: 5, ios_completed: 5, ..IoStats::default() };
    results.hosts.push(HostResult { name: "h".into(), io, ..HostResult::default() });
    let metrics = Metrics::new(&results);
    let check = |metric| ExpectationResult::check(&metrics, metric, None, Some(1000.0)).ok;
    assert!(check("hosts.h.ios_failed") && !check("hosts.h.1.ios_failed"));
    assert!(check("hosts.idle.logins") && check("sum(hosts.*.requests_unanswered)"));
}

/// A lab in which one of two elements of each type carried data.
fn half_idle() -> Results {
    let io = IoStats { ios_offered: 4, ios_completed: 4, ..IoStats::default() };
    let way = |to: &str, frames| EthernetDirection { to: to.into(), frames, ..EthernetDirection::default() };
    let link = |name: &str, to: &str, frames| EthernetLinkResult {
        name: name.into(),
        forward: way(to, frames),
        ..EthernetLinkResult::default()
    };
    let switch = |name: &str| EthernetSwitchResult { name: name.into(), ..EthernetSwitchResult::default() };
    let session = |name: &str, pdus_received| IscsiSessionResult {
        name: name.into(),
        pdus_received,
        ..IscsiSessionResult::default()
    };
    let fc_link = |name: &str, data_bytes| LinkResult {
        name: name.into(),
        backward: LinkDirection { data_bytes, frames: 3, ..LinkDirection::default() },
        ..LinkResult::default()
    };
    let mut results = Results {
        ethernet_links: vec![link("h-sw.1", "sw.1:0", 9), link("idle-sw", "sw:0", 0)],
        ethernet_switches: vec![switch("sw.1"), switch("sw")],
        iscsi_sessions: vec![session("h nic0>s:portal0", 7), session("idle nic0>s:portal0", 0)],
        links: vec![fc_link("busy", 2_048), fc_link("idle", 0)],
        switches: vec![SwitchResult { name: "fc".into(), ..SwitchResult::default() }],
        subnet: Some(SubnetResult::default()),
        ..Results::default()
    };
    results.totals.io = io;
    results
}

#[test]
fn an_upper_bound_on_an_element_that_carried_nothing_fails() {
    let metrics = Metrics::new(&half_idle());
    let check = |metric, max| ExpectationResult::check(&metrics, metric, None, Some(max));
    for metric in [
        "ethernet_switches.sw.frames_dropped",
        "ethernet_links.idle-sw.forward.frames_lost",
        "max(ethernet_links.idle*.*.paused_fraction)",
        "iscsi_sessions.idle nic0>s:portal0.retransmission_timeouts",
        "links.idle.backward.credit_wait_fraction",
        "links.idle.link_resets",
        "switches.fc.buffers_used_mean",
    ] {
        let verdict = check(metric, 0.0);
        let reason = verdict.reason.clone().unwrap_or_default();
        assert!(!verdict.ok && reason.contains("carried no data"), "{verdict:?}");
    }
    // Elements that carried data, several of which some did, and numbers without traffic.
    for metric in [
        "ethernet_switches.sw.1.frames_dropped",
        "max(ethernet_switches.*.frames_dropped)",
        "max(ethernet_links.*.*.frames_lost)",
        "max(iscsi_sessions.*.retransmission_timeouts)",
        "links.busy.forward.credit_wait_fraction",
        "subnet.deadlocks",
        "links.idle.down_s",
        "switches.fc.isolated_ports",
        // The bound states that nothing is carried.
        "links.idle.backward.data_bytes",
        "ethernet_links.idle-sw.forward.utilisation",
        "count(links.idle)",
    ] {
        let verdict = check(metric, if metric.starts_with("count") { 1.0 } else { 0.0 });
        assert!(verdict.ok && verdict.reason.is_none(), "{verdict:?}");
    }
    // A bound that the value exceeds fails for that reason alone.
    assert_eq!(check("links.idle.backward.frames", 1.0).reason, None);
}

#[test]
fn an_upper_bound_on_the_network_of_a_run_that_completed_nothing_fails() {
    let mut results = half_idle();
    results.totals.io = IoStats { ios_offered: 4, ios_unfinished: 4, ..IoStats::default() };
    results.drops.insert("crc_error".into(), 0);
    let metrics = Metrics::new(&results);
    let check = |metric, min| ExpectationResult::check(&metrics, metric, min, Some(1000.0));
    for metric in [
        "max(iscsi_sessions.*.retransmission_timeouts)",
        "max(ethernet_switches.*.frames_dropped)",
        "links.busy.forward.credit_wait_fraction",
        "drops.crc_error",
        "subnet.deadlocks",
    ] {
        let verdict = check(metric, None);
        let reason = verdict.reason.clone().unwrap_or_default();
        assert!(!verdict.ok && reason.contains("no request of the run completed"), "{verdict:?}");
    }
    assert!(check("links.busy.backward.frames", Some(1.0)).ok);
    assert!(check("switches.fc.isolated_ports", None).ok && check("links.busy.down_s", None).ok);
}

#[test]
fn a_malformed_path_is_found_without_results() {
    assert!(is_metric_path("sum(hosts.*.iops)"));
    assert!(is_metric_path("totals.ios_failed"));
    for bad in ["", "sum()", "sum(hosts", "hosts..iops", "nonsense(a.b)", "a.b."] {
        assert!(!is_metric_path(bad), "{bad}");
    }
}
