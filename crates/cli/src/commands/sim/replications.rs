//! The same lab with several seeds.

use crate::exit::Failure;
use crate::input::Threads;
use crate::pool;
use crate::run::{self, View};
use sanloom_api::results::{Interval, Metrics, Replications, Results};
use sanloom_core::config::Lab;
use std::collections::BTreeMap;
use std::num::NonZeroU32;
use std::sync::Arc;

/// Runs the seeds behind that of `first`, and gives the means over all of them; `None` if Ctrl-C left no second one.
///
/// # Errors
/// When threads cannot be made.
pub fn run(lab: &Lab, first: &Results, count: NonZeroU32, threads: Threads) -> Result<Option<Replications>, Failure> {
    let seeds: Vec<u64> = (1..u64::from(count.get())).map(|n| lab.run.seed.wrapping_add(n)).collect();
    let finished = pool::all(threads, "replications", &seeds, |_, seed| {
        let mut lab = lab.clone();
        lab.run.seed = *seed;
        let results = run::run(&Arc::new(lab), View::default()).results;
        (!results.lab.interrupted).then(|| numbers(&results))
    })?;
    let mut replications = Replications { seeds: vec![lab.run.seed], confidence: 0.95, metrics: BTreeMap::new() };
    let mut values: BTreeMap<String, Vec<f64>> = BTreeMap::new();
    let first = std::iter::once((lab.run.seed, Some(numbers(first))));
    for (seed, numbers) in first.chain(seeds.into_iter().zip(finished)) {
        let Some(numbers) = numbers else {
            continue;
        };
        if seed != lab.run.seed {
            replications.seeds.push(seed);
        }
        for (path, value) in numbers {
            values.entry(path).or_default().push(value);
        }
    }
    if replications.seeds.len() < 2 {
        return Ok(None);
    }
    replications.metrics = values.into_iter().map(|(path, values)| (path, Interval::of(&values))).collect();
    Ok(Some(replications))
}

/// What has a meaning as a mean: no settings, no verdicts, nothing that real time decides.
fn numbers(results: &Results) -> Vec<(String, f64)> {
    const PARTS: [&str; 6] = ["totals.", "hosts.", "streams.", "links.", "storage.", "drops."];
    let mut numbers = Metrics::new(results).all();
    numbers.retain(|(path, _)| PARTS.iter().any(|part| path.starts_with(part)));
    numbers
}
