//! One run on several threads. Random labs are compared in `sanloom-bench`.

use crate::labs::{FABRIC, lab_with};
use sanloom_fc::san::Lab;
use sanloom_lab::Override;
use sanloom_sim::parallel::{Report, Threads};
use sanloom_sim::run::{Blind, Control, Observer, Options, Progress, simulate};
use serde_json::Value;
use std::sync::Arc;

/// Two core switches, six edge switches with two hosts or disks each, and links of 1 km.
const CORE_EDGE: &str = r#"
[run]
duration = "8ms"
warmup = "2ms"
sample_interval = "1ms"
[switch."core{1..2}"]
[switch."edge{1..6}"]
[host."server{1..6}"]
[storage."disk{1..6}"]
[[link]]
from = "server{1..6}"
to = "edge{1..6}"
rate = "8GFC"
[[link]]
from = "disk{1..6}"
to = "edge{1..6}"
rate = "8GFC"
[[isl]]
from = "edge{1..6}"
to = "core1"
name = "A{1..6}"
rate = "8GFC"
length = "1km"
[[isl]]
from = "edge{1..6}"
to = "core2"
name = "B{1..6}"
rate = "8GFC"
length = "1km"
[workload.mixed]
hosts = "server{1..6}"
targets = "disk{1..6}"
size = "8KiB"
read_share = 0.6
depth = 4
"#;

const IN_TURN: Threads = Threads { count: 2, always: true, in_turn: true, clock: None };

struct StopAt(u64);

impl Observer for StopAt {
    fn progress(&mut self, progress: &Progress) -> Control {
        if progress.run_ps >= self.0 { Control::Stop } else { Control::Continue }
    }
}

fn run(lab: &Arc<Lab>, threads: Threads, observer: &mut dyn Observer) -> (Value, Report) {
    let finished = simulate(lab, &Options { threads, ..Options::default() }, observer);
    (finished.results.reproducible_json(), finished.threads)
}

fn compare(lab: &Arc<Lab>, all: &[Threads]) {
    let (expected, _) = run(lab, Threads::default(), &mut Blind);
    for &threads in all {
        let (json, report) = run(lab, threads, &mut Blind);
        assert!(report.parts == threads.count.min(8), "{report:?}");
        assert!(json == expected, "{threads:?}");
    }
}

#[test]
fn a_fabric_gives_the_same_results_with_each_number_of_threads() {
    compare(&lab_with(CORE_EDGE, "", &[]), &[2, 3, 5].map(|count| Threads { count, ..IN_TURN }));
}

#[test]
fn real_threads_give_the_same_results_as_one() {
    let lab = lab_with(CORE_EDGE, "", &["run.duration=3ms"]);
    compare(&lab, &[2, 3].map(|count| Threads { count, in_turn: false, ..IN_TURN }));
}

#[test]
fn links_and_switches_that_fail_give_the_same_results() {
    const MORE: &str = r#"
        [[fault]]
        kind = "link-down"
        link = "A2"
        at = "3ms"
        until = "5ms"
        [[fault]]
        kind = "switch-reset"
        switch = "core2"
        at = "4ms"
        until = "6ms"
    "#;
    compare(&lab_with(CORE_EDGE, MORE, &[]), &[2, 4].map(|count| Threads { count, ..IN_TURN }));
}

#[test]
fn every_example_gives_the_same_results_on_three_threads() {
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/../../examples");
    let mut names: Vec<_> = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect();
    names.retain(|path| path.extension().is_some_and(|extension| extension == "toml"));
    names.sort();
    let mut divided = Vec::new();
    for path in names {
        let label = path.display().to_string();
        let text = std::fs::read_to_string(&path).unwrap();
        let loaded = sanloom_lab::load(&label, &text, &[] as &[Override]);
        let lab = Arc::new(loaded.unwrap_or_else(|mistakes| panic!("{}", mistakes.render(false))).lab);
        let stop_ps = if lab.hosts.len() > 100 { 500_000_000 } else { 10_000_000_000 };
        let (expected, _) = run(&lab, Threads::default(), &mut StopAt(stop_ps));
        let (json, report) = run(&lab, Threads { count: 3, ..IN_TURN }, &mut StopAt(stop_ps));
        assert!(json == expected, "{label}: {report:?}");
        if report.parts > 1 {
            divided.push(label);
        }
    }
    assert!(divided.len() > 5, "{divided:?}");
}

#[test]
fn a_lab_whose_links_have_no_length_is_not_divided_and_says_why() {
    let short = FABRIC.replace("rate = \"4GFC\"", "rate = \"4GFC\"\nlength = \"0m\"");
    let (_, report) = run(&lab_with(&short, "", &[]), IN_TURN, &mut Blind);
    assert!(
        report.parts == 1 && report.undivided.as_ref().is_some_and(|why| why.contains("links are too short")),
        "{report:?}"
    );
}
