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

const WITHOUT_PFC: &str = include_str!("../../../../examples/fcoe-without-pfc.toml");

#[test]
fn dropped_frames_of_fcoe_are_named_with_their_queue_their_cost_and_the_pfc_that_cures_them() {
    let run = |sets: &[&str]| labs::run(&labs::lab_with(WITHOUT_PFC, "", sets));
    let results = run(&[]);
    let finding = losses(&results).unwrap_or_else(|| panic!("{:?}", results.findings));
    assert_eq!(finding.culprit.as_deref(), Some("tor:0"));
    let tor = results.ethernet_links.iter().find(|link| link.name == "server-tor").expect("the host's link");
    assert_eq!((tor.forward.fcoe_queue_drops, results.drops["ethernet"]), (0, tor.backward.fcoe_queue_drops));
    assert!(finding.title.contains(&format!("{} frames of FCoE", tor.backward.fcoe_queue_drops)), "{finding:?}");
    let aborted = format!("{} commands of server", results.hosts[0].commands_aborted);
    assert!(finding.detail.contains(&aborted), "{finding:?}");
    assert!(finding.remedy.is_empty(), "advice is printed after a trial only: {finding:?}");
    let [pfc] = &finding.candidates[..] else { panic!("{:?}", finding.candidates) };
    assert_eq!(pfc.set, [("ethernet_switch.tor.pfc".to_owned(), "3".to_owned())]);
    let changed = run(&["ethernet_switch.tor.pfc=3"]);
    assert!(losses(&changed).is_none() && changed.drops.is_empty(), "{:?}", changed.drops);
    assert!(changed.totals.io.throughput_bytes_per_s > 1.15 * results.totals.io.throughput_bytes_per_s);
}

/// `near` has PFC already, `far` is on no way, and `second` is on one of two equal ways.
#[test]
fn pfc_against_lost_frames_of_fcoe_is_tried_at_the_switches_on_their_ways_only() {
    let isl = |from: &str, to: &str| format!("[[isl]]\nfrom = \"{from}\"\nto = \"{to}\"\nrate = \"40GbE\"\n");
    let forwarders = "[[link]]\nfrom = \"fcf{1..2}\"\nto = \"near\"\nrate = \"10GbE\"\nmtu = 2500\n";
    let more = format!(
        "[ethernet_switch.near]\npfc = 3\n[ethernet_switch.\"{{first,second,far}}\"]\n{forwarders}{}{}{}{}{}",
        isl("tor", "first"),
        isl("tor", "second"),
        isl("first", "near"),
        isl("second", "near"),
        isl("far", "tor")
    );
    let text = WITHOUT_PFC.replace("\"{server,fcf1,fcf2}\"", "\"server\"");
    assert_ne!(text, WITHOUT_PFC);
    let results = labs::run(&labs::lab_with(&text, &more, &["run.duration=1s"]));
    let finding = losses(&results).unwrap_or_else(|| panic!("{:?}", results.findings));
    assert_eq!(finding.culprit.as_deref(), Some("tor:0"));
    let [pfc] = &finding.candidates[..] else { panic!("{:?}", finding.candidates) };
    let expected = ["tor", "first", "second"].map(|name| (format!("ethernet_switch.{name}.pfc"), "3".to_owned()));
    assert_eq!(pfc.set, expected);
}

#[test]
fn a_full_line_that_drops_a_few_frames_is_a_bottleneck_and_no_loss() {
    // Two senders with large windows fill the line; time-outs take no noticeable time.
    let results = run(&["workload.reads.targets=server{1..2}", "ethernet_switch.tor.memory=4MB"]);
    assert!(losses(&results).is_none(), "{:?}", losses(&results));
    assert!(results.findings.iter().any(|finding| finding.title.contains("runs at its capacity")));
}
