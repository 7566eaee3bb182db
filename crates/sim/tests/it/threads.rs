//! One run on several threads. Random labs are compared in `sanloom-bench`.

use crate::labs::{FABRIC, lab_with};
use sanloom_fc::san::Lab;
use sanloom_lab::Override;
use sanloom_sim::parallel::{Engine, Report, Threads};
use sanloom_sim::run::{Blind, Control, MAX_STEP_PS, Observer, Options, Progress, simulate};
use sanloom_sim::world::World;
use serde_json::Value;
use std::cell::Cell;
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
fn replayed_traces_give_the_same_results() {
    let path = std::path::Path::new(env!("CARGO_TARGET_TMPDIR")).join("threads.fio");
    std::fs::write(&path, "fio version 3 iolog\n0 a read 0 4096\n100 b write 8192 4096\n300 b sync 0 0\n").unwrap();
    let text = format!(
        "[run]\nduration = \"20ms\"\nwarmup = \"0s\"\n[switch.\"sw{{1..2}}\"]\n[host.\"server{{1..2}}\"]\n\
         [storage.\"disk{{1..2}}\"]\nluns = 2\n[[link]]\nfrom = \"{{server1,disk1}}\"\nto = \"sw1\"\n[[link]]\n\
         from = \"{{server2,disk2}}\"\nto = \"sw2\"\n[workload.\"io{{1..2}}\"]\nhosts = \"server{{1..2}}\"\n\
         targets = \"disk{{1..2}}\"\ntrace = {{ file = \"{}\", passes = \"endless\" }}\n",
        path.display()
    );
    let lab = lab_with(&text, "", &[]);
    let (json, _) = run(&lab, Threads::default(), &mut Blind);
    assert!(json["streams"][0]["trace"]["passes"].as_u64() > Some(10), "{json}");
    compare(&lab, &[IN_TURN]);
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

/// Two switches 1,000 km apart, and a third one at the end of a link of 1 km. A request starts to
/// cross the long link every 4 ms; the third switch has its own traffic, every 8 ms.
const FAR_AND_NEAR: &str = r#"
[run]
duration = "500ms"
warmup = "0s"
sample_interval = "10ms"
[switch."s{1..3}"]
[host."server{1..2}"]
[storage."disk{1..2}"]
[[link]]
from = "server1"
to = "s1"
rate = "8GFC"
length = "0m"
[[link]]
from = "disk1"
to = "s2"
rate = "8GFC"
length = "0m"
[[link]]
from = "server2"
to = "s3"
rate = "8GFC"
length = "0m"
[[link]]
from = "disk2"
to = "s3"
rate = "8GFC"
length = "0m"
[[isl]]
from = "s1"
to = "s2"
rate = "8GFC"
length = "1000km"
[[isl]]
from = "s1"
to = "s3"
rate = "8GFC"
length = "1km"
[workload.far]
hosts = "server1"
targets = "disk1"
size = "2KiB"
arrivals = "constant 250/s"
[workload.near]
hosts = "server2"
targets = "disk2"
size = "2KiB"
arrivals = "constant 125/s"
"#;

#[test]
fn clocks_advance_over_quiet_time_while_another_part_is_idle_or_has_finished() {
    let lab = lab_with(FAR_AND_NEAR, "", &[]);
    let (expected, _) = run(&lab, Threads::default(), &mut Blind);
    let options =
        Options { threads: Threads { count: 3, ..IN_TURN }, step_ps: Some(MAX_STEP_PS), ..Options::default() };
    let finished = simulate(&lab, &options, &mut Blind);
    let report = finished.threads;
    assert!(finished.results.reproducible_json() == expected && report.parts == 3, "{report:?}");
    // The parts run apart for 5 us at most, so that a stretch of 10 ms needs 2,000 rounds.
    assert!(report.divisions >= 10 && report.rounds < 50 * report.divisions, "{report:?}");
}

#[test]
fn a_stretch_of_fewer_than_a_hundred_lookaheads_is_not_divided() {
    // The shortest links are 1 km long, so a hundred lookaheads take a little more than 500 us.
    let lab = lab_with(CORE_EDGE, "", &["run.duration=26ms", "run.sample_interval=4ms"]);
    let divisions = |step_us: u64| {
        let threads = Threads { always: false, ..IN_TURN };
        let options = Options { threads, step_ps: Some(step_us * 1_000_000), ..Options::default() };
        let report = simulate(&lab, &options, &mut Blind).threads;
        assert_eq!((report.parts, &report.undivided), (2, &None), "{report:?}");
        report.divisions
    };
    assert_eq!(divisions(400), 0);
    assert!(divisions(800) > 2);
}

thread_local! {
    /// Processor time of the thread of a test in ns, and its increase with each reading.
    static PROCESSOR: Cell<(u64, u64)> = const { Cell::new((0, 0)) };
}

/// Processor time of the thread of a test; the threads that it starts use none.
fn processor_ns() -> u64 {
    let (now_ns, step_ns) = PROCESSOR.get();
    PROCESSOR.set((now_ns + step_ns, step_ns));
    now_ns
}

#[test]
fn a_run_with_a_lull_is_divided_again_when_the_load_returns() {
    const MORE: &str = r#"
        [workload.more]
        hosts = "server{1..6}"
        targets = "disk{1..6}"
        size = "8KiB"
        depth = 4
        start = "1s"
        [workload.always]
        hosts = "server1"
        targets = "disk1"
        size = "8KiB"
        depth = 1
    "#;
    let sets = ["run.duration=2s", "run.sample_interval=10ms", "workload.mixed.stop=20ms"];
    let mut world = World::new(lab_with(CORE_EDGE, MORE, &sets));
    world.log_in();
    world.start();
    let threads = Threads { count: 2, clock: Some(processor_ns), ..Threads::default() };
    let mut engine = Engine::new(&mut world, threads);
    let mut run_until = |ms: u64| {
        let until_ps = world.start_ps + ms * 1_000_000_000;
        engine.run_until(&mut world, until_ps);
        (engine.report().divisions, world.net.events())
    };
    let (busy, _) = run_until(20);
    assert!(busy > 0, "the load is divided");
    // The first part now works much longer than the second one, so the division is not good.
    PROCESSOR.set((0, 1_000_000_000));
    let (lull, before) = run_until(40);
    PROCESSOR.set((0, 0));
    let (recorded, after) = run_until(1_000);
    assert!(after - before > 250_000, "the lull is long enough for a record: {}", after - before);
    assert_eq!(recorded, lull, "a lull is not divided");
    // The first of these steps ends the record of the lull.
    let (again, _) = (1..=3).map(|step| run_until(1_000 + 20 * step)).last().expect("three steps");
    assert!(again > recorded, "the load is divided again");
}
