//! The shared input of all parts of the results: [`View`].

use super::names::Names;
use crate::net::{LaneCount, Loss, LossSite, Lost};
use crate::stats::{LatencyHistogram, TimeWeighted};
use crate::world::World;
use sanloom_api::results::measure::{mean_level, mean_us, us_of_ns, us_of_ps};
use sanloom_api::results::{HistogramBucket, Latency, QueueDepth};
use std::collections::BTreeMap;

/// A world at the end of its run, with values that several parts of the results use.
pub(super) struct View<'w> {
    pub world: &'w World,
    pub names: Names<'w>,
    /// Current time, in ps since the first login.
    pub now_ps: u64,
    /// End of the warm-up, in ps since the first login.
    pub from_ps: u64,
    /// Length of the measurement, in ps.
    pub measured_ps: u64,
    /// Counters of all lanes since the end of the warm-up.
    pub lanes: Vec<LaneCount>,
    /// Losses since the end of the warm-up, by location and reason.
    pub losses: BTreeMap<(LossSite, Loss), Lost>,
}

impl<'w> View<'w> {
    pub fn new(world: &'w World) -> View<'w> {
        let now_ps = world.net.now();
        let from_ps = world.measured().from_ps().clamp(world.start_ps.min(now_ps), now_ps);
        View {
            world,
            names: Names::new(&world.lab),
            now_ps,
            from_ps,
            measured_ps: now_ps - from_ps,
            lanes: (0..world.net.fc.lanes().len() as u32).map(|lane| world.measured().lane_count(lane)).collect(),
            losses: world.measured().losses(),
        }
    }

    /// Returns the frames lost at `sites`, by reason.
    pub fn lost_at(&self, sites: &[LossSite]) -> BTreeMap<String, u64> {
        let mut found = BTreeMap::new();
        for &site in sites {
            for (&(_, why), lost) in self.losses.range((site, Loss::ALL[0])..=(site, Loss::LAST)) {
                *found.entry(why.name().to_owned()).or_default() += lost.frames;
            }
        }
        found
    }

    /// Returns mean and maximum of a queue length.
    pub fn depth(&self, level: &TimeWeighted) -> QueueDepth {
        QueueDepth { mean: mean_level(level.area_at(self.now_ps), self.measured_ps), max: level.max() }
    }

    /// Returns the time that frames occupied a lane, each with the minimum gap after it, in ps.
    pub fn busy_ps(&self, lane: u32) -> u64 {
        // The time of each run of frames is rounded down to picoseconds.
        self.lanes[lane as usize].busy_ps.min(self.measured_ps)
    }
}

/// Returns mean and percentiles of a histogram.
pub(super) fn latency(histogram: &LatencyHistogram) -> Latency {
    let exact = histogram.exact();
    let quantile = |q| histogram.quantile_ns(q).map_or(0.0, us_of_ns);
    Latency {
        count: exact.count(),
        mean_us: mean_us(exact.sum(), exact.count()),
        p50_us: quantile(0.5),
        p95_us: quantile(0.95),
        p99_us: quantile(0.99),
        p99_9_us: quantile(0.999),
        max_us: exact.max().map_or(0.0, us_of_ps),
    }
}

/// Returns the buckets of a histogram, merged to 32 buckets per power of two, which is a resolution
/// of 3 %.
pub(super) fn buckets(histogram: &LatencyHistogram) -> Vec<HistogramBucket> {
    const BITS: u32 = 5;
    let mut found: Vec<(u64, u64, u64)> = Vec::new();
    for bucket in histogram.non_empty() {
        let shift = (64 - bucket.to_ns.leading_zeros()).saturating_sub(BITS + 1);
        let upper_ns = bucket.to_ns | ((1 << shift) - 1);
        match found.last_mut() {
            Some((upper, count, to)) if *upper == upper_ns => {
                *count += bucket.count;
                *to = bucket.to_ns;
            }
            _ => found.push((upper_ns, bucket.count, bucket.to_ns)),
        }
    }
    found.into_iter().map(|(_, count, to_ns)| HistogramBucket(us_of_ns(to_ns), count)).collect()
}
