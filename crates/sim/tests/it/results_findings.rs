//! Findings appear where they apply, and nowhere else.

use crate::labs::{FABRIC, TINY, lab, lab_with, run};
use sanloom_api::results::{EventKind, Finding, FindingKind, Results};
use sanloom_fc::san::ProblemKind;

fn find(results: &Results, kind: FindingKind) -> Option<&Finding> {
    results.findings.iter().find(|finding| finding.kind == kind)
}

fn example(name: &str, sets: &[&str]) -> Results {
    let path = format!("{}/../../examples/{name}.toml", env!("CARGO_MANIFEST_DIR"));
    run(&lab_with(&std::fs::read_to_string(path).unwrap(), "", sets))
}

#[test]
fn a_slow_receiver_is_the_culprit_and_its_neighbours_are_the_victims() {
    let results = example("slow-drain", &["run.duration=1s"]);
    let slow: Vec<&Finding> = results.findings.iter().filter(|f| f.kind == FindingKind::SlowDrain).collect();
    let [finding] = slow[..] else { panic!("{:?}", results.findings) };
    assert_eq!(finding.culprit.as_deref(), Some("server1:0"));
    let victims: Vec<&str> = finding.victims.iter().map(|victim| victim.name.as_str()).collect();
    for victim in ["server2", "server3", "server4"] {
        assert!(victims.contains(&victim), "{victims:?}");
    }
    assert!(!victims.contains(&"server1"), "{victims:?}");
    assert!(finding.victims.iter().filter(|v| v.name.starts_with("server")).all(|v| v.credit_wait_s > 0.0));
    assert!(finding.victims[0].loss() > 0.5, "{:?}", finding.victims[0]);
    assert!(finding.from_s.is_some_and(|s| (0.49..0.53).contains(&s)), "{:?}", finding.from_s);
    assert_eq!(finding.until_s, None);
}

#[test]
fn a_slow_receiver_without_neighbours_has_no_victims() {
    let more =
        "[[fault]]\nat = \"2ms\"\nuntil = \"8ms\"\nkind = \"slow-receiver\"\nport = \"server\"\ndelay = \"100us\"";
    let sets = ["workload.reads.depth=32", "link.*.credits=2", "storage.disk.rate=\"100k/s\""];
    let results = run(&lab_with(TINY, more, &sets));
    let finding = find(&results, FindingKind::SlowDrain).unwrap_or_else(|| panic!("{:?}", results.findings));
    assert_eq!(finding.culprit.as_deref(), Some("server:0"));
    assert!(finding.victims.iter().all(|victim| victim.name != "server"), "{finding:?}");
    assert!(finding.until_s.is_some(), "{finding:?}");
}

#[test]
fn a_healthy_fabric_has_no_slow_receiver_although_it_is_full() {
    let results = run(&lab_with(FABRIC, "", &["workload.mixed.depth=32"]));
    for kind in [
        FindingKind::SlowDrain,
        FindingKind::CreditLoss,
        FindingKind::Deadlock,
        FindingKind::Stall,
        FindingKind::IoFailures,
    ] {
        assert!(find(&results, kind).is_none(), "{:?}", results.findings);
    }
}

#[test]
fn a_full_isl_is_the_bottleneck() {
    let results = run(&lab_with(FABRIC, "", &["workload.mixed.read_share=1", "workload.mixed.depth=16"]));
    let finding = find(&results, FindingKind::Bottleneck).unwrap_or_else(|| panic!("{:?}", results.findings));
    assert_eq!(finding.culprit.as_deref(), Some("ISL"), "{finding:?}");
    let idle = run(&lab_with(FABRIC, "", &["workload.mixed.depth=1", "storage.*.rate=\"1k/s\""]));
    assert!(find(&idle, FindingKind::Bottleneck).is_none(), "{:?}", idle.findings);
}

#[test]
fn a_busy_controller_is_named() {
    let results = run(&lab_with(TINY, "", &["workload.reads.depth=8"]));
    let finding = find(&results, FindingKind::StorageBound).unwrap_or_else(|| panic!("{:?}", results.findings));
    assert_eq!(finding.culprit.as_deref(), Some("disk"));
    assert!(find(&run(&lab(TINY)), FindingKind::StorageBound).is_none());
}

#[test]
fn a_busy_port_is_named_when_its_line_is_not_full() {
    let sets = ["workload.reads.depth=8", "storage.disk.rate=\"1000k/s\"", "storage.disk.sequence_overhead=100us"];
    let results = run(&lab_with(TINY, "", &sets));
    let finding = find(&results, FindingKind::StorageBound).unwrap_or_else(|| panic!("{:?}", results.findings));
    assert!(finding.title.contains("ports of disk"), "{finding:?}");
}

#[test]
fn a_busy_processor_is_named() {
    let sets = ["workload.reads.depth=8", "storage.disk.rate=\"1000k/s\"", "host.server.cpu_per_io=100us"];
    let results = run(&lab_with(TINY, "", &sets));
    let finding = find(&results, FindingKind::Bottleneck).unwrap_or_else(|| panic!("{:?}", results.findings));
    assert_eq!(finding.culprit.as_deref(), Some("server"));
}

#[test]
fn data_that_crosses_several_full_links_is_counted_once() {
    let full = ["storage.disk.rate=\"1000k/s\"", "workload.reads.size=64KiB", "workload.reads.depth=32"];
    let results = run(&lab_with(TINY, "", &full));
    let finding = find(&results, FindingKind::Bottleneck).unwrap_or_else(|| panic!("{:?}", results.findings));
    let in_all = format!("the hosts move {:.1} MB/s in all", results.totals.io.throughput_bytes_per_s / 1e6);
    assert!(finding.title.starts_with("2 links"), "{finding:?}");
    assert_eq!(finding.culprits.len(), 2, "each of them is marked in the drawing: {finding:?}");
    assert!(finding.detail.ends_with(&in_all) && !finding.detail.contains("towards"), "{finding:?}");
    let sets = ["run.duration=20ms", "workload.mixed.depth=16", "workload.mixed.read_share=1"];
    let results = run(&lab_with(FABRIC, "", &sets));
    let finding = find(&results, FindingKind::Bottleneck).unwrap_or_else(|| panic!("{:?}", results.findings));
    let isl = results.links.iter().find(|link| link.name == "ISL").expect("the ISL");
    let suffix = format!("towards edge1:4, with {:.1} MB/s of data", isl.backward.throughput_bytes_per_s / 1e6);
    assert!(finding.detail.ends_with(&suffix), "{finding:?}");
}

#[test]
fn a_link_with_the_recommended_credits_has_no_finding() {
    for (size, reads) in [("4KiB", "1"), ("8KiB", "0.7"), ("32KiB", "1"), ("1MiB", "0")] {
        let sets = |credits: &str| {
            let set = |set: &str| set.to_owned();
            vec![
                set("isl.ISL.length=25km"),
                format!("isl.ISL.credits={credits}"),
                format!("workload.mixed.size={size}"),
                format!("workload.mixed.read_share={reads}"),
                set("workload.mixed.depth=64"),
                set("host.*.queue_depth=64"),
            ]
        };
        let lab = |credits: &str| {
            let sets = sets(credits);
            lab_with(FABRIC, "", &sets.iter().map(String::as_str).collect::<Vec<_>>())
        };
        let advice = lab("8").advice();
        let advice = advice.iter().find(|advice| advice.kind == ProblemKind::FewCredits).expect("an advice");
        let credits: String = advice.remedy.chars().filter(char::is_ascii_digit).collect();
        for (credits, is_reported) in [("8", true), (credits.as_str(), false)] {
            let results = run(&lab(credits));
            let few = results.findings.iter().find(|finding| finding.title.contains("too few credits"));
            assert_eq!(few.is_some(), is_reported, "{size} with {credits} credits: {few:?}");
        }
    }
}

#[test]
fn too_few_credits_for_the_distance_are_found() {
    let results = example("long-distance", &["run.duration=100ms", "run.warmup=50ms"]);
    let short: Vec<&str> = results
        .findings
        .iter()
        .filter(|f| f.title.contains("too few credits"))
        .filter_map(|f| f.culprit.as_deref())
        .collect();
    let credits = |name: &str| results.links.iter().find(|link| link.name == name).map(|link| link.forward.bb_credit);
    let mut given: Vec<u64> = short.iter().filter_map(|name| credits(name)).collect();
    given.sort_unstable();
    assert_eq!(given, [4, 16, 64, 128], "{:?}", results.findings);
}

#[test]
fn lost_credits_are_found_where_they_are_lost() {
    let results = example("credit-loss", &[]);
    let finding = find(&results, FindingKind::CreditLoss).unwrap_or_else(|| panic!("{:?}", results.findings));
    assert_eq!(finding.culprit.as_deref(), Some("ISL1"));
    assert!(results.totals.link_resets > 0);
    assert!(results.events.iter().any(|event| event.kind == EventKind::LinkReset));
    let stall = find(&results, FindingKind::Stall).unwrap_or_else(|| panic!("{:?}", results.findings));
    assert_eq!(stall.culprit.as_deref(), Some("ISL1"), "{stall:?}");
}

#[test]
fn restored_credits_are_counted_and_reset_no_link() {
    let results = example("credit-recovery", &[]);
    let finding = find(&results, FindingKind::CreditLoss).unwrap_or_else(|| panic!("{:?}", results.findings));
    assert!(finding.detail.contains("restored"), "{finding:?}");
    assert_eq!(results.totals.link_resets, 0);
    let isl = results.links.iter().find(|link| link.name == "ISL1").expect("ISL1");
    let (lost, recovered) = (isl.forward.credits_lost, isl.forward.credits_recovered);
    assert!(lost > 1_000 && recovered <= lost && lost - recovered < 8, "{recovered} of {lost}");
}

#[test]
fn a_deadlock_names_its_circle() {
    let results = example("credit-deadlock", &["run.duration=600ms"]);
    assert!(results.totals.deadlocks > 0, "{:?}", results.events);
    let finding = &results.findings[0];
    assert_eq!(finding.kind, FindingKind::Deadlock);
    assert_eq!(finding.cycle.len(), 6, "{:?}", finding.cycle);
    assert!(finding.cycle.iter().all(|port| port.starts_with("ring")), "{:?}", finding.cycle);
    assert!(results.events.iter().any(|event| event.kind == EventKind::Deadlock));
    assert!(results.events.iter().any(|event| event.kind == EventKind::FramesDiscarded));
}

#[test]
fn a_deadlock_is_no_lack_of_credits_for_the_length() {
    for buffers in ["1", "2"] {
        let results = example("credit-deadlock", &["run.duration=600ms", &format!("switch.*.buffers={buffers}")]);
        assert!(find(&results, FindingKind::Deadlock).is_some(), "{:?}", results.findings);
        let few: Vec<&Finding> = results.findings.iter().filter(|f| f.title.contains("too few credits")).collect();
        assert!(few.is_empty(), "{buffers}: {few:?}");
    }
}

#[test]
fn a_failed_side_shows_its_paths_and_no_failed_request() {
    let results = example("dual-fabric", &["run.duration=2s"]);
    assert_eq!(results.totals.io.ios_failed, 0);
    assert!(find(&results, FindingKind::IoFailures).is_none());
    let kinds: Vec<EventKind> = results.events.iter().map(|event| event.kind).collect();
    for kind in [
        EventKind::FaultBegins,
        EventKind::SwitchDown,
        EventKind::LinkDown,
        EventKind::PathFailover,
        EventKind::SwitchUp,
        EventKind::PathRestored,
    ] {
        assert!(kinds.contains(&kind), "no {kind:?} in {kinds:?}");
    }
    assert!(!kinds.contains(&EventKind::PathsLost), "{:?}", results.events);
}

#[test]
fn a_host_without_a_path_fails_its_requests() {
    let more = "[[fault]]\nat = \"2ms\"\nkind = \"link-down\"\nlink = \"disk-edge\"";
    let sets = [
        "run.duration=400ms",
        "host.server.multipath.fast_io_fail=20ms",
        "host.server.multipath.dev_loss=1s",
        "host.server.multipath.polling_interval=50ms",
        "host.server.multipath.no_path_retry=1",
        "host.server.command_timeout=\"50ms\"",
    ];
    let results = run(&lab_with(TINY, more, &sets));
    let finding = find(&results, FindingKind::IoFailures)
        .unwrap_or_else(|| panic!("{:?} {:?}", results.findings, results.events));
    assert_eq!(finding.victims[0].name, "server");
    assert!(results.events.iter().any(|event| event.kind == EventKind::PathsLost), "{:?}", results.events);
    assert_eq!(results.totals.paths_lost, 1);
    assert!(results.links[1].down_s > 0.39);
}

/// A host that loses its only path at 100 ms while requests keep arriving.
const NO_PATH: &str = r#"
[run]
duration = "1s"
warmup = "0s"
[switch.edge]
[host.server]
multipath = { no_path_retry = 2 }
[storage.disk]
[[link]]
from = "server"
to = "edge"
[[link]]
from = "disk"
to = "edge"
[workload.reads]
hosts = "server"
targets = "disk"
arrivals = "poisson 1k/s"
[[fault]]
kind = "link-down"
link = "disk-edge"
at = "100ms"
"#;

#[test]
fn requests_without_a_path_wait_and_the_stall_lasts_from_the_last_end() {
    let results = run(&lab(NO_PATH));
    let host = &results.hosts[0];
    let held = host.io.ios_offered - host.io.ios_completed - host.io.ios_failed;
    assert!(held > 700, "{held}");
    assert!((host.waiting.mean - 400.0).abs() < 60.0, "{:?}", host.waiting);
    assert!(host.waiting.max + host.outstanding.max >= held, "{:?}", host.waiting);
    assert!(host.longest_stall_s > 0.89, "{}", host.longest_stall_s);
}

#[test]
fn requests_without_a_path_count_against_the_limit_on_waiting_requests() {
    let results = run(&lab_with(NO_PATH, "", &["host.server.max_waiting=10"]));
    let host = &results.hosts[0];
    let held = host.io.ios_offered - host.io.ios_completed - host.io.ios_failed;
    assert_eq!(host.waiting.max, 10);
    assert!((10..=10 + host.outstanding.max).contains(&held), "{held}");
    assert!(host.ios_refused > 700, "{}", host.ios_refused);
}

#[test]
fn a_stall_of_seconds_is_found_although_its_requests_raise_the_mean_response_time() {
    let results = crate::labs::run(&crate::labs::lab(
        r#"
[run]
duration = "5s"
warmup = "0s"
[ethernet_switch.lan]
[host.a]
[storage.s]
iscsi = {}
[[link]]
from = "{a,s}"
to = "lan"
rate = "10GbE"
[workload.w]
hosts = "a"
targets = "s"
arrivals = "constant 300/s"
size = "32KiB"
[[fault]]
at = "1s"
for = "2s"
kind = "link-down"
link = "a-lan"
"#,
    ));
    let host = &results.hosts[0];
    assert!(host.longest_stall_s > 2.0, "{}", host.longest_stall_s);
    let twenty_means_s = 20.0 * host.io.latency.mean_us / 1e6;
    assert!(twenty_means_s > host.longest_stall_s, "the requests of the stall are the reason: {twenty_means_s}");
    let stall = find(&results, FindingKind::Stall).unwrap_or_else(|| panic!("{:?}", results.findings));
    assert_eq!(stall.culprit.as_deref(), Some("a-lan"));
}
