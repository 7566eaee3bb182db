//! Losses and stalls while switches converge to new paths.

use crate::labs::{lab_with, run};
use sanloom_api::results::{EventKind, Results};

/// A ring of four switches, each with a host and a disk.
const RING: &str = r#"
[run]
duration = "7s"
warmup = "100ms"
[switch."s{1..4}"]
[host."h{1..4}"]
command_timeout = "300ms"
[storage."d{1..4}"]
[[link]]
from = "h{1..4}"
to = "s{1..4}"
[[link]]
from = "d{1..4}"
to = "s{1..4}"
[[isl]]
from = "s{1..3}"
to = "s{2..4}"
[[isl]]
from = "s4"
to = "s1"
[workload.w]
hosts = "h{1..4}"
targets = "d{1..4}"
size = "16KiB"
"#;

fn times(results: &Results, of: EventKind) -> Vec<f64> {
    results.events.iter().filter(|event| event.kind == of).map(|event| event.at_s).collect()
}

#[test]
fn a_failed_link_of_a_ring_stalls_no_host() {
    let fault = "depth = 16\n[[fault]]\nat = \"500ms\"\nkind = \"link-down\"\nlink = \"ISL1\"";
    for choice in ["ingress", "exchange", "pair", "spray", "least-loaded"] {
        let choice = format!("switch.*.isl_choice={choice}");
        let results = run(&lab_with(RING, fault, &["run.duration=1s", &choice]));
        let io = &results.totals.io;
        assert_eq!((results.totals.deadlocks, io.ios_failed), (0, 0), "{choice}");
        assert!(results.totals.longest_stall_s < 0.01, "{choice}: {}", results.totals.longest_stall_s);
    }
}

#[test]
fn paths_are_back_as_soon_as_switches_have_routes() {
    let fault = "arrivals = \"poisson 200/s\"\n[[fault]]\nat = \"500ms\"\nfor = \"200ms\"\nkind = \"switch-reset\"\nswitch = \"s2\"";
    let results = run(&lab_with(RING, fault, &[]));
    let (gone, back) = (times(&results, EventKind::PathFailover), times(&results, EventKind::PathRestored));
    // The host at the reset switch regains its own disk at once. The other hosts wait for the
    // links.
    assert!(gone.len() > 6 && back.len() > 6, "{gone:?} {back:?}");
    let routes = times(&results, EventKind::Reroute).into_iter().fold(0.0, f64::max);
    let last = back.into_iter().fold(0.0, f64::max);
    assert!(routes > 0.7 && last < routes + 0.1, "routes at {routes} s, the last path at {last} s");
    assert_eq!(results.totals.io.ios_failed, 0);
}

/// Two switches with two links between them; the first one loses frames for a time.
#[test]
fn an_adjacency_lost_by_the_dead_interval_is_a_reroute() {
    let lab = lab_with(
        r#"
        [run]
        duration = "12s"
        [timers]
        e_d_tov = "100ms"
        r_a_tov = "200ms"
        hold_time = "50ms"
        fspf_hello = "1s"
        fspf_dead = "3s"
        [switch."s{1..2}"]
        [host.h]
        command_timeout = "100ms"
        retries = 100
        [storage.d]
        [[link]]
        from = "h"
        to = "s1"
        [[link]]
        from = "d"
        to = "s2"
        [[isl]]
        from = "s1"
        to = "s2"
        count = 2
        [workload.w]
        hosts = "h"
        targets = "d"
        size = "4KiB"
        arrivals = "poisson 100/s"
        [[fault]]
        at = "2s"
        for = "5s"
        kind = "frame-loss"
        link = "ISL1"
        probability = 1.0
        "#,
        "",
        &[],
    );
    let reroutes = times(&run(&lab), EventKind::Reroute);
    let [lost, .., back] = reroutes[..] else { panic!("{reroutes:?}") };
    assert!((4.0..=5.0).contains(&lost), "{reroutes:?}");
    assert!((7.0..=8.1).contains(&back), "{reroutes:?}");
}
