//! Findings about queues of Ethernet that drop frames while their lines have room.

use crate::labs;
use sanloom_api::results::{Finding, FindingKind, Results};

const INCAST: &str = include_str!("../../../../examples/ethernet-incast.toml");

fn run(sets: &[&str]) -> Results {
    labs::run(&labs::lab_with(INCAST, "", sets))
}

fn losses(results: &Results) -> Option<&Finding> {
    results.findings.iter().find(|finding| finding.kind == FindingKind::CongestionLoss)
}

#[test]
fn an_incast_is_named_with_its_queue_its_host_and_changes_that_cure_it() {
    let results = run(&[]);
    let finding = losses(&results).unwrap_or_else(|| panic!("{:?}", results.findings));
    assert_eq!(finding.culprit.as_deref(), Some("tor:0"));
    let victims: Vec<&str> = finding.victims.iter().map(|victim| victim.name.as_str()).collect();
    assert_eq!(victims, ["client"]);
    assert!(finding.remedy.is_empty(), "advice is printed after a trial only: {finding:?}");
    let before = results.totals.io.throughput_bytes_per_s;
    let cures = finding.candidates.iter().filter(|candidate| {
        let sets: Vec<String> = candidate.set.iter().map(|(key, value)| format!("{key}={value}")).collect();
        let changed = run(&sets.iter().map(String::as_str).collect::<Vec<_>>());
        changed.totals.io.throughput_bytes_per_s > 5.0 * before && losses(&changed).is_none()
    });
    let cures: Vec<&str> = cures.map(|candidate| candidate.what.as_str()).collect();
    assert!(cures.iter().any(|cure| cure.contains("DCTCP")), "{cures:?}");
    assert!(cures.len() >= 2, "{cures:?} of {:?}", finding.candidates);
}

#[test]
fn a_full_line_that_drops_a_few_frames_is_a_bottleneck_and_no_loss() {
    // Two senders with large windows fill the line; time-outs take no noticeable time.
    let results = run(&["workload.reads.targets=server{1..2}", "ethernet_switch.tor.memory=4MB"]);
    assert!(losses(&results).is_none(), "{:?}", losses(&results));
    assert!(results.findings.iter().any(|finding| finding.title.contains("runs at its capacity")));
}
