//! One point of a sweep: [`measure`].

use crate::metric;
use crate::run::{self, Stop, View};
use sanloom_api::results::Metrics;
use sanloom_fc::san::Lab;
use sanloom_sim::replicate::seed_of;
use std::collections::BTreeMap;
use std::sync::Arc;

/// Default columns.
pub const DEFAULT_METRICS: [&str; 7] = [
    "totals.throughput_bytes_per_s",
    "totals.iops",
    "totals.latency.mean_us",
    "totals.latency.p99_us",
    "totals.ios_failed",
    "totals.ios_unfinished",
    "totals.frames_dropped",
];

/// Numbers of a point.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct Measured {
    /// Values by path, one for each replication.
    pub values: BTreeMap<String, Vec<f64>>,
    /// Paths without a number in the first replication, with the remedies.
    pub absent: Vec<(String, String)>,
}

/// Simulates a lab with all seeds, all derived from its own. Returns `None` after Ctrl-C, or when
/// `stop` is true in its place.
pub fn measure(lab: &Lab, replications: u32, metrics: &[String], stop: Option<&Stop<'_>>) -> Option<Measured> {
    let mut measured = Measured::default();
    for replication in 0..replications {
        let mut lab = lab.clone();
        lab.run.seed = seed_of(lab.run.seed, replication);
        let results = run::run(&Arc::new(lab), View { stop, ..View::default() }).results;
        if results.lab.interrupted || stop.map_or_else(crate::interrupt::requested, |stop| stop()) {
            return None;
        }
        let found = Metrics::new(&results);
        for path in metrics {
            match found.get(path) {
                Some(value) => measured.values.entry(path.clone()).or_default().push(value),
                None if replication == 0 => measured.absent.push((path.clone(), metric::remedy(&found, path))),
                None => {}
            }
        }
    }
    Some(measured)
}

/// True for a number that exists only if something happened, such as a drop.
pub fn comes_and_goes(path: &str) -> bool {
    let inner = path.split_once('(').map_or(path, |(_, inner)| inner).trim_start();
    ["drops.", "findings.", "events."].iter().any(|list| inner.starts_with(list))
}
