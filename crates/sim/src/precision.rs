//! The stop rule of a run: it ends when the mean of a number is known precisely enough.

use crate::stats::{BatchMeans, ConfidenceInterval};
use crate::world::World;
use sanloom_api::results::PrecisionResult;
use sanloom_fc::san::{Lab, Precision, Quantity};

/// Batches of the observations, at least. Between this number and twice as many are kept.
const BATCHES: usize = 20;

/// Observer of the number that the stop rule of a lab names.
///
/// Each step of the run gives one observation. Their batch means are treated as independent once
/// the correlation of neighbours is within twice its standard error; otherwise longer batches are
/// needed (A. M. Law, "Simulation Modeling and Analysis", section 9.5.3).
#[derive(Clone, Debug)]
pub struct StopRule {
    rule: Precision,
    host: Option<u16>,
    quantity: Quantity,
    batches: BatchMeans,
    /// Counts at the end of the last step: requests, bytes, and the sum of their latencies in ps.
    last: Option<[u128; 3]>,
}

impl StopRule {
    /// Returns the observer of a lab; `None` if it has no stop rule.
    pub fn new(lab: &Lab) -> Option<StopRule> {
        let rule = lab.run.until.clone()?;
        let (host, quantity) = rule.target(lab)?;
        Some(StopRule { rule, host, quantity, batches: BatchMeans::new(BATCHES), last: None })
    }

    /// Observes a step of the run after the warm-up. All steps have the same length.
    pub fn observe(&mut self, world: &World) {
        let counts = self.counts(world);
        let Some(last) = self.last.replace(counts) else { return };
        let [requests, bytes, latency_ps] = [0, 1, 2].map(|number| (counts[number] - last[number]) as u64);
        match self.quantity {
            Quantity::Iops => self.batches.add(requests),
            Quantity::Throughput => self.batches.add(bytes),
            Quantity::Latency if requests > 0 => self.batches.add(latency_ps / requests),
            Quantity::Latency => {}
        }
    }

    /// Returns whether the interval is narrow enough.
    pub fn is_met(&self) -> bool {
        self.relative().is_some_and(|relative| relative <= self.rule.relative)
    }

    /// Returns the rule and the precision that the run has reached.
    pub fn result(&self) -> PrecisionResult {
        PrecisionResult {
            metric: self.rule.metric.clone(),
            wanted: self.rule.relative,
            reached: self.relative(),
            met: self.is_met(),
        }
    }

    /// Returns the half width of the interval as a share of the mean; `None` while there are too
    /// few batches, or while neighbours are correlated.
    fn relative(&self) -> Option<f64> {
        let means = self.batches.means();
        if means.len() < BATCHES || correlation(&means) > 2.0 / (means.len() as f64).sqrt() {
            return None;
        }
        ConfidenceInterval::of_samples(&means)?.relative()
    }

    fn counts(&self, world: &World) -> [u128; 3] {
        let nodes = (0u16..).zip(&world.hosts.nodes).filter(|(number, _)| self.host.is_none_or(|host| host == *number));
        nodes.fold([0; 3], |[requests, bytes, latency_ps], (_, node)| {
            let measured = &node.measured;
            [
                requests + measured.ios.iter().map(|&ios| u128::from(ios)).sum::<u128>(),
                bytes + measured.bytes.iter().map(|&bytes| u128::from(bytes)).sum::<u128>(),
                latency_ps + measured.latency.exact().sum(),
            ]
        })
    }
}

/// Returns the correlation of neighbours; 0 for constant values.
fn correlation(values: &[f64]) -> f64 {
    let mean = values.iter().sum::<f64>() / values.len() as f64;
    let variance: f64 = values.iter().map(|x| (x - mean) * (x - mean)).sum();
    let covariance: f64 = values.windows(2).map(|pair| (pair[0] - mean) * (pair[1] - mean)).sum();
    if variance > 0.0 { covariance / variance } else { 0.0 }
}
