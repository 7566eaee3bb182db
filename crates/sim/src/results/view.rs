//! What every part of the results looks at: [`View`].

use super::names::Names;
use crate::net::{LaneCount, Loss, Lost, Place};
use crate::stats::{LatencyHistogram, TimeWeighted};
use crate::world::World;
use sanloom_api::results::measure::{mean_level, mean_us, us_of_ns, us_of_ps};
use sanloom_api::results::{HistogramBucket, Latency, QueueDepth};
use std::collections::BTreeMap;

/// A world at the end of its run, with what several parts of the results need.
pub(super) struct View<'w> {
    pub world: &'w World,
    pub names: Names<'w>,
    /// Present time, in ps since the first login.
    pub now_ps: u64,
    /// End of the warm-up, in ps since the first login.
    pub from_ps: u64,
    /// Length of the measured time in ps.
    pub measured_ps: u64,
    /// Counters of all lanes.
    pub lanes: Vec<LaneCount>,
    /// Losses by place and reason.
    pub losses: BTreeMap<(Place, Loss), Lost>,
}

impl<'w> View<'w> {
    pub fn new(world: &'w World) -> View<'w> {
        let now_ps = world.net.now();
        let from_ps = world.ledger.measure_from_ps.clamp(world.start_ps.min(now_ps), now_ps);
        View {
            world,
            names: Names::new(&world.lab),
            now_ps,
            from_ps,
            measured_ps: now_ps - from_ps,
            lanes: (0..world.net.lanes().len() as u32).map(|lane| world.lane_count(lane)).collect(),
            losses: world.losses(),
        }
    }

    /// Frames lost at the places that `at` picks, by reason.
    pub fn lost_at(&self, places: &[Place]) -> BTreeMap<String, u64> {
        let mut found = BTreeMap::new();
        for &place in places {
            for (&(_, why), lost) in self.losses.range((place, Loss::ALL[0])..=(place, Loss::SwitchReset)) {
                *found.entry(why.name().to_owned()).or_default() += lost.frames;
            }
        }
        found
    }

    /// A length over time.
    pub fn depth(&self, level: &TimeWeighted) -> QueueDepth {
        QueueDepth { mean: mean_level(level.area_at(self.now_ps), self.measured_ps), max: level.max() }
    }

    /// Time that frames occupied a lane, each with the shortest gap behind it, in ps.
    pub fn busy_ps(&self, lane: u32) -> u64 {
        let count = &self.lanes[lane as usize];
        let bytes = count.bytes + count.frames * crate::net::GAP_BYTES;
        self.world.net.lanes()[lane as usize].time_of(bytes).min(self.measured_ps)
    }
}

/// A distribution.
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

/// The buckets of a histogram, joined until 32 of them are left for each power of two: 3 % resolution.
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
