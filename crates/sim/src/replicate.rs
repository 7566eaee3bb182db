//! Parallel runs of one lab with different seeds: [`replicate`].

use crate::rng::{Purpose, stream_rng};
use crate::run::{Control, Observer, Options, Progress, simulate};
use rand::Rng;
use sanloom_api::results::{Interval, Metrics, Replications, Results};
use sanloom_fc::san::Lab;
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::sync::{Arc, Mutex};

/// Confidence level of the intervals.
const CONFIDENCE: f64 = 0.95;

/// Progress callback that receives the number of completed replications. `Stop` ends the active
/// ones and starts no more.
pub type Watch<'w> = dyn Fn(u32) -> Control + Sync + 'w;

/// Bits of a derived seed that are left out: a seed has 53 bits. Lab files and `--seed` accept 63
/// bits, and programs that read JSON numbers as floats keep 53.
const UNUSED_SEED_BITS: u32 = 11;

/// Returns the seed of a replication: the lab's own seed for the first one, derived seeds for the
/// others. A run with this seed repeats the replication.
pub fn seed_of(seed: u64, replication: u32) -> u64 {
    match replication {
        0 => seed,
        _ => stream_rng(seed, Purpose::Replication, &[&replication.to_string()]).next_u64() >> UNUSED_SEED_BITS,
    }
}

/// Runs a lab, which must have passed `Lab::validate`, `count` times (at least once) on at most
/// `workers` threads.
///
/// Returns the results of the first replication, with means and confidence intervals of the main
/// numbers over all. The results depend only on lab, seed and `count`, not on `workers`. Several
/// threads call `watch` at the same time. If it stops the runs, the first replication counts as
/// interrupted, and the intervals include only completed replications.
pub fn replicate(lab: &Arc<Lab>, count: u32, workers: usize, watch: &Watch<'_>) -> Results {
    let count = count.max(1);
    let next = AtomicU32::new(0);
    let done = AtomicU32::new(0);
    let stop = AtomicBool::new(false);
    let finished = Mutex::new(BTreeMap::new());
    let work = || {
        loop {
            let number = next.fetch_add(1, Ordering::Relaxed);
            // The first replication always runs, so that there are results to return.
            if number >= count || number > 0 && stop.load(Ordering::Relaxed) {
                break;
            }
            let mut observer = Stopper { stop: &stop, watch, done: &done };
            let results = simulate(&with_seed(lab, number), &Options::default(), &mut observer).results;
            let whole = !results.lab.interrupted;
            if let Ok(mut finished) = finished.lock() {
                finished.insert(number, results);
            }
            if whole && watch(done.fetch_add(1, Ordering::Relaxed) + 1) == Control::Stop {
                stop.store(true, Ordering::Relaxed);
            }
        }
    };
    std::thread::scope(|scope| {
        for _ in 1..workers.clamp(1, count as usize) {
            scope.spawn(work);
        }
        work();
    });
    combine(lab.run.seed, finished.into_inner().unwrap_or_default())
}

fn with_seed(lab: &Arc<Lab>, replication: u32) -> Arc<Lab> {
    if replication == 0 {
        return lab.clone();
    }
    let mut lab = Lab::clone(lab);
    lab.run.seed = seed_of(lab.run.seed, replication);
    Arc::new(lab)
}

struct Stopper<'s> {
    stop: &'s AtomicBool,
    watch: &'s Watch<'s>,
    done: &'s AtomicU32,
}

impl Observer for Stopper<'_> {
    fn progress(&mut self, _progress: &Progress) -> Control {
        if (self.watch)(self.done.load(Ordering::Relaxed)) == Control::Stop {
            self.stop.store(true, Ordering::Relaxed);
        }
        if self.stop.load(Ordering::Relaxed) { Control::Stop } else { Control::Continue }
    }
}

/// Returns the results of the first replication with the intervals of all completed ones.
fn combine(seed: u64, mut finished: BTreeMap<u32, Results>) -> Results {
    let mut seeds = Vec::new();
    let mut values: BTreeMap<String, Vec<f64>> = BTreeMap::new();
    for (&number, results) in finished.iter().filter(|(_, results)| !results.lab.interrupted) {
        seeds.push(seed_of(seed, number));
        for (path, value) in Metrics::new(results).all() {
            if is_main(&path) {
                values.entry(path).or_default().push(value);
            }
        }
    }
    let metrics = values.iter().map(|(path, values)| (path.clone(), Interval::of(values))).collect();
    // A number that some runs do not have cannot be assigned to the seeds.
    values.retain(|_, values| values.len() == seeds.len());
    let mut first = finished.remove(&0).unwrap_or_default();
    first.replications = Some(Replications { seeds, confidence: CONFIDENCE, metrics, values });
    first
}

/// Returns whether a number gets an interval: those of the totals, hosts, streams and storage
/// systems, and the load, buffers and waiting times of links, ports and switches.
fn is_main(path: &str) -> bool {
    let section = path.split('.').next().unwrap_or_default();
    let ends_with = |names: &[&str]| names.iter().any(|name| path.ends_with(name));
    match section {
        "totals" | "storage" => true,
        "hosts" => !path.contains(".paths."),
        "streams" => !path.contains(".hosts."),
        "links" => ends_with(&[".throughput_bytes_per_s", ".utilisation", ".credit_wait_fraction"]),
        "ports" => ends_with(&[
            ".bytes_sent",
            ".bytes_received",
            ".buffers_used_mean",
            ".zero_credit_fraction",
            ".waiting.mean_us",
            ".waiting.p99_us",
        ]),
        "switches" => ends_with(&[".bytes_forwarded", ".buffers_used_mean", ".waiting.mean_us", ".waiting.p99_us"]),
        _ => false,
    }
}
