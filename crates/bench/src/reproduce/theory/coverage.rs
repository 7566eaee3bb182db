//! Coverage of the confidence intervals.

use super::bed::{Sample, interrupted, parse};
use super::queues::{controller_lab, mdc_wait};
use super::row::{Basis, Row};
use rand::{RngExt, SeedableRng};
use rand_xoshiro::Xoshiro256PlusPlus;
use sanloom_console::exit::Failure;
use sanloom_console::interrupt;
use sanloom_sim::replicate::replicate;
use sanloom_sim::run::Control;
use sanloom_sim::stats::ConfidenceInterval;

const REPLICATIONS: Basis = Basis {
    section: "Coverage of confidence intervals",
    source: "95 % of the 95 % intervals of `--replications` contain the true mean, here the wait in M/D/1 (Law, Simulation \
             modeling and analysis, section 4.5), for 100 seeds",
    tolerance_reason: "10 %, because waits are skewed and few replications are not normal; the 95 % interval of the share \
                       (Wilson 1927) must lie within it",
};

const BATCHES: Basis = Basis {
    section: "Coverage of confidence intervals",
    source: "95 % of the 95 % intervals of batch means contain the true mean, here of the waits of M/D/1 by Lindley's \
             recursion (1952), for 100 seeds",
    tolerance_reason: "10 %, because batches are slightly correlated; the 95 % interval of the share (Wilson 1927) must lie \
                       within it",
};

/// Experiments.
const SEEDS: u64 = 100;
/// Utilisation.
const LOAD: f64 = 0.5;
/// Service time of the storage, in µs.
const SERVICE_US: f64 = 10.0;

/// Returns the centre and half of the width of Wilson's 95 % interval of a share.
fn wilson(hits: u64, trials: u64) -> (f64, f64) {
    let (n, share, z) = (trials as f64, hits as f64 / trials as f64, 1.96_f64);
    let scale = 1.0 + z * z / n;
    let centre = (share + z * z / (2.0 * n)) / scale;
    let half = z * (share * (1.0 - share) / n + z * z / (4.0 * n * n)).sqrt() / scale;
    (centre, half)
}

fn row(basis: &Basis, id: &str, what: &str, hits: u64) -> Row {
    let share = hits as f64 / SEEDS as f64;
    let (centre, half) = wilson(hits, SEEDS);
    // The interval is not symmetric; the row gets the wider side.
    basis.row(id, what, "of 1", 0.95, Some(share), 0.1).interval(half + (centre - share).abs())
}

/// Returns whether the interval of the replications of one seed contains the true wait.
///
/// # Errors
/// If the lab is invalid, or a run was interrupted.
pub fn contains(seed: u64, sample: Sample) -> Result<bool, Failure> {
    let lab = parse("coverage", &controller_lab(1, LOAD, sample.of(400.0, 4_000.0), seed))?;
    let watch = |_| if interrupt::requested() { Control::Stop } else { Control::Continue };
    let results = replicate(&lab, sample.of(4.0, 10.0) as u32, 1, &watch);
    let intervals = results.replications.filter(|_| !results.lab.interrupted).ok_or_else(interrupted)?;
    let truth = mdc_wait(1, LOAD) * SERVICE_US;
    let wait = intervals.metrics.get("storage.s.waiting.mean_us");
    Ok(wait.is_some_and(|wait| (wait.mean - truth).abs() <= wait.half_width))
}

/// Returns the seeds of the experiments.
pub fn seeds() -> std::ops::RangeInclusive<u64> {
    1..=SEEDS
}

/// Returns the row of the replications, from the number of intervals that contain the true wait.
pub fn replications_row(hits: u64) -> Row {
    row(&REPLICATIONS, "coverage-replications", "intervals over replications with the true mean", hits)
}

/// Returns the row of the batch means.
pub fn batches_row(sample: Sample) -> Row {
    let length = sample.of(40_000.0, 400_000.0) as usize;
    let truth = mdc_wait(1, LOAD);
    let covers = |seed| {
        let mut rng = Xoshiro256PlusPlus::seed_from_u64(seed);
        let mut wait = 0.0_f64;
        let mut waits = Vec::with_capacity(length);
        for _ in 0..length + 1_000 {
            waits.push(wait);
            let between = -(1.0 - rng.random::<f64>()).ln() / LOAD;
            wait = (wait + 1.0 - between).max(0.0);
        }
        let interval = ConfidenceInterval::of_batches(&waits[1_000..], 20);
        interval.is_some_and(|interval| (interval.mean - truth).abs() <= interval.half_width)
    };
    let hits = seeds().filter(|seed| covers(*seed)).count() as u64;
    row(&BATCHES, "coverage-batches", "intervals of 20 batches with the true mean", hits)
}
