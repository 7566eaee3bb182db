//! Deadlocks of pauses and of InfiniBand credit in the results: when they are named, and how.

use crate::labs;
use sanloom_api::results::{Finding, FindingKind, Results};

/// A ring of five Ethernet switches, whose links all carry the data of two storage systems.
const PAUSES: &str = include_str!("../../../../examples/ethernet-deadlock.toml");

/// Results of a ring of five InfiniBand switches with the same traffic.
fn credits(routing: &str, lifetime: u8, sets: &[&str]) -> Results {
    labs::run(&labs::credit_ring(routing, lifetime, sets))
}

fn pauses(sets: &[&str]) -> Results {
    labs::run(&labs::lab_with(PAUSES, "", sets))
}

fn of_kind(results: &Results, kind: FindingKind) -> Vec<&Finding> {
    results.findings.iter().filter(|finding| finding.kind == kind).collect()
}

/// Returns the switches of a cycle, in its order.
fn switches(finding: &Finding) -> Vec<&str> {
    finding.cycle.iter().map(|port| port.split(':').next().unwrap_or("")).collect()
}

/// Asserts that a cycle visits every switch of a ring of five once, each after its neighbour.
fn assert_goes_round(finding: &Finding, first: u32) {
    let numbers: Vec<u32> = switches(finding)
        .iter()
        .map(|name| name.strip_prefix("ring").and_then(|number| number.parse().ok()).expect("a switch"))
        .collect();
    assert_eq!(numbers.len(), 5, "{:?}", finding.cycle);
    let steps: Vec<u32> = numbers
        .iter()
        .zip(numbers.iter().cycle().skip(1))
        .map(|(from, to)| (5 + (to - first + 5 - (from - first))) % 5)
        .collect();
    assert!(steps.iter().all(|step| *step == steps[0] && [1, 4].contains(step)), "{:?}", finding.cycle);
}

#[test]
fn a_pause_deadlock_that_began_in_the_warm_up_and_still_holds_is_counted_and_named() {
    let results = pauses(&["run.warmup=40ms", "run.duration=60ms"]);
    assert_eq!(results.totals.deadlocks, 1);
    let found = of_kind(&results, FindingKind::Deadlock);
    let [finding] = &found[..] else { panic!("{:?}", results.findings) };
    assert!(finding.from_s.is_some_and(|from_s| from_s < 0.04), "{finding:?}");
}

#[test]
fn the_cycle_of_a_pause_deadlock_is_a_circle_and_the_ports_behind_it_are_victims() {
    let results = pauses(&["run.duration=60ms"]);
    let found = of_kind(&results, FindingKind::Deadlock);
    let [finding] = &found[..] else { panic!("{:?}", results.findings) };
    assert_goes_round(finding, 0);
    let victims: Vec<&str> = finding.victims.iter().map(|victim| victim.name.as_str()).collect();
    assert!(victims.iter().any(|name| name.starts_with("disk")), "{victims:?}");
    assert!(victims.iter().all(|name| !name.starts_with("ring")), "{victims:?}");
}

#[test]
fn ports_that_are_idle_because_of_a_deadlock_spread_no_congestion() {
    let results = pauses(&["run.duration=60ms", "run.warmup=40ms"]);
    let spreading = of_kind(&results, FindingKind::CongestionSpreading);
    assert!(spreading.is_empty(), "{spreading:?}");
}

#[test]
fn a_credit_deadlock_that_holds_at_the_end_is_named_before_any_lifetime_ends() {
    for lifetime in [18, 20] {
        let results = credits("minhop", lifetime, &[]);
        assert_eq!(results.totals.deadlocks, 1, "lifetime {lifetime}");
        let found = of_kind(&results, FindingKind::Deadlock);
        let [finding] = &found[..] else { panic!("{:?}", results.findings) };
        assert_goes_round(finding, 1);
        assert!(finding.from_s.is_some_and(|from_s| from_s < 0.02), "{finding:?}");
    }
}

#[test]
fn a_credit_deadlock_that_began_in_the_warm_up_and_still_holds_is_counted_and_named() {
    let results = credits("minhop", 20, &["run.warmup=15ms"]);
    assert_eq!((results.totals.deadlocks, of_kind(&results, FindingKind::Deadlock).len()), (1, 1));
    assert!(of_kind(&results, FindingKind::Deadlock)[0].from_s.is_some_and(|from_s| from_s < 0.015));
}

#[test]
fn a_ring_whose_paths_form_no_circle_has_no_deadlock_at_any_end() {
    for end in ["3ms", "7ms", "13ms", "20ms"] {
        let results = credits("updn", 20, &[&format!("run.duration={end}")]);
        assert_eq!(results.totals.deadlocks, 0, "{end}");
    }
}

/// A ring of six Fibre Channel switches, whose links all carry writes in one direction.
const FRAMES: &str = include_str!("../../../../examples/credit-deadlock.toml");

fn frames(sets: &[&str]) -> Results {
    labs::run(&labs::lab_with(FRAMES, "", sets))
}

#[test]
fn a_frame_credit_deadlock_that_holds_at_the_end_is_named_before_the_hold_time() {
    for queueing in ["fifo", "voq"] {
        let sets = [
            "run.stop_issuing=99ms",
            "run.duration=100ms",
            "timers.hold_time=500ms",
            &format!("switch.*.queueing={queueing}"),
        ];
        let results = frames(&sets);
        assert_eq!(results.totals.deadlocks, 1, "{queueing}");
        let found = of_kind(&results, FindingKind::Deadlock);
        let [finding] = &found[..] else { panic!("{:?}", results.findings) };
        assert_eq!(switches(finding).len(), 6, "{finding:?}");
        assert!(finding.from_s.is_some_and(|from_s| from_s < 0.1) && finding.detail.contains("will end it"));
    }
}

#[test]
fn a_frame_credit_deadlock_of_the_warm_up_that_comes_again_is_counted_and_named() {
    let results = frames(&["run.warmup=300ms", "run.duration=500ms"]);
    assert_eq!((results.totals.deadlocks, of_kind(&results, FindingKind::Deadlock).len()), (1, 1));
}

#[test]
fn a_full_ring_of_frames_without_a_circle_of_waits_has_no_deadlock_at_any_end() {
    for end in ["11ms", "37ms", "50ms", "73ms", "100ms"] {
        // All write to one disk, so that one link of the ring stays empty.
        let near = "workload.*.targets=disk2";
        let results = frames(&[&format!("run.duration={end}"), "run.stop_issuing=10ms", near]);
        assert_eq!(results.totals.deadlocks, 0, "{end}: {:?}", results.findings);
    }
}

#[test]
fn a_stall_for_which_a_deadlock_is_the_reason_says_so() {
    for results in [frames(&[]), pauses(&["run.duration=400ms"]), credits("minhop", 20, &["run.duration=400ms"])] {
        let stalls = of_kind(&results, FindingKind::Stall);
        let stall = stalls.iter().find(|stall| stall.title.starts_with("I/O of")).expect("a stall");
        assert!(stall.detail.contains("deadlock"), "{stall:?}");
    }
}
