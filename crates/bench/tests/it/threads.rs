//! One run on several threads: results, captures and traces do not depend on the number of threads.

use sanloom_bench::random_lab::{self, Trial};
use sanloom_fc::san::Lab;
use sanloom_sim::capture::Capture;
use sanloom_sim::net::Observed;
use sanloom_sim::parallel::{Report, Threads};
use sanloom_sim::run::{Observer, Options, simulate};
use sanloom_sim::trace::Trace;
use sanloom_sim::world::World;
use std::sync::Arc;

/// Everything that a run writes.
#[derive(PartialEq)]
struct Written {
    json: serde_json::Value,
    frame_hops: u64,
    capture: Vec<u8>,
    trace: String,
}

struct Recorder {
    capture: Capture,
    trace: Option<Trace>,
    bytes: Vec<u8>,
    text: String,
}

impl Observer for Recorder {
    fn observed(&mut self, world: &World, observed: &[Observed]) {
        self.capture.add(world, observed, &mut self.bytes);
        self.trace.iter_mut().for_each(|trace| trace.add(world, observed, &mut self.text));
    }
}

fn run(lab: &Arc<Lab>, watch: &[u16], threads: Threads) -> (Written, Report) {
    let (mut bytes, mut text) = (Vec::new(), String::new());
    let capture = Capture::new(lab, watch, &mut bytes);
    let trace = watch.first().map(|&link| Trace::new(lab, link, &mut text));
    let mut recorder = Recorder { capture, trace, bytes, text };
    let options = Options { watch: watch.to_vec(), threads, ..Options::default() };
    let finished = simulate(lab, &options, &mut recorder);
    let Recorder { capture, trace, mut bytes, mut text } = recorder;
    capture.finish(&mut bytes);
    trace.into_iter().for_each(|trace| trace.finish(&mut text));
    let frame_hops = finished.results.engine.frame_hops;
    let json = finished.results.reproducible_json();
    (Written { json, frame_hops, capture: bytes, trace: text }, finished.threads)
}

fn threads(count: usize, in_turn: bool) -> Threads {
    Threads { count, always: true, in_turn, clock: None }
}

/// Requires the same output with each number of threads. Returns the number of divided runs.
fn compare(name: &str, lab: Lab, watch: &[u16], counts: &[usize]) -> u32 {
    let lab = Arc::new(lab);
    let (expected, _) = run(&lab, watch, Threads::default());
    let mut divided = 0;
    // Real threads take turns as the machine likes; two of them must not differ either.
    let all = counts.iter().map(|&count| threads(count, true)).chain([threads(2, false)]);
    for threads in all {
        let count = threads.count;
        let (written, report) = run(&lab, watch, threads);
        divided += u32::from(report.parts > 1);
        let context = format!("{name}, {count} threads: {report:?}");
        assert!(written.frame_hops == expected.frame_hops, "{context}");
        if written.json != expected.json {
            let text = |json: &serde_json::Value| serde_json::to_string_pretty(json).unwrap_or_default();
            let (one, many) = (text(&expected.json), text(&written.json));
            let lines = one.lines().zip(many.lines()).enumerate();
            let differs: Vec<_> = lines.filter(|(_, (one, many))| one != many).take(5).collect();
            panic!("{context}: {differs:#?}");
        }
        assert!(written.trace == expected.trace, "{context}: the traces differ");
        assert!(written.capture == expected.capture, "{context}: the captures differ");
    }
    divided
}

fn compare_trial(kind: &str, Trial { seed, lab, .. }: Trial) -> u32 {
    let watch: Vec<u16> =
        (seed.is_multiple_of(2)).then_some((seed % lab.links.len() as u64) as u16).into_iter().collect();
    let counts = if seed % 4 < 2 { [2, 4] } else { [3, 7] };
    compare(&format!("{kind} {seed}"), lab, &watch, &counts)
}

fn seeds() -> std::ops::Range<u64> {
    let number = |name: &str, default| std::env::var(name).ok().and_then(|text| text.parse().ok()).unwrap_or(default);
    let first = number("SANLOOM_FIRST_SEED", 0);
    first..first + number("SANLOOM_SEEDS", 12)
}

#[test]
fn random_labs_give_the_same_bytes_with_each_number_of_threads() {
    let divided: u32 = seeds().map(|seed| compare_trial("seed", random_lab::generate(seed))).sum();
    // Three runs for each seed.
    assert!(u64::from(divided) > (seeds().end - seeds().start) * 3 / 2, "{divided}");
}

#[test]
fn random_labs_of_two_fabrics_give_the_same_bytes_with_each_number_of_threads() {
    let divided: u32 = seeds().map(|seed| compare_trial("dual seed", random_lab::generate_dual(seed))).sum();
    // Three runs for each seed.
    assert!(u64::from(divided) > (seeds().end - seeds().start) * 3 / 2, "{divided}");
}
