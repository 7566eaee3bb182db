//! The request stream of one workload on one host.

use super::{Arrivals, Locations, Sizes, sample_ps};
use crate::rng::{Purpose, StreamRng, below, stream_rng, uniform};
use sanloom_fc::config::{Load, Lun, Target, TimeDistribution, Workload};

/// A request of an application.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Request {
    /// First block.
    pub lba: u64,
    pub blocks: u32,
    pub bytes: u32,
    pub lun: Target,
    /// Index of the LUN in the workload's list of targets.
    pub target: u16,
    /// True for a write, false for a read.
    pub write: bool,
}

/// The requests of one workload on one host, with their arrival times.
///
/// The calls are the same for open and closed loops. Schedule the time that
/// [`Stream::next_arrival_ps`] returns. At that time, take one [`Stream::next_request`] and
/// schedule the following time. When a request ends, call [`Stream::after_end_ps`]. If it returns a
/// time, take one more request then, without scheduling a following time.
#[derive(Clone, Debug)]
pub struct Stream {
    load: Source,
    stop_ps: u64,
    targets: Vec<(Target, u32)>,
    sizes: Sizes,
    locations: Locations,
    read_share: f64,
    target_rng: StreamRng,
    size_rng: StreamRng,
    direction_rng: StreamRng,
    location_rng: StreamRng,
    think_rng: StreamRng,
}

#[derive(Clone, Debug)]
enum Source {
    Closed { depth: u32, start_ps: u64, not_yet_started: u32, think_time: TimeDistribution },
    Open(Arrivals),
}

impl Stream {
    /// Returns the stream of `workload` on one host. `luns` are the sizes of `workload.targets`, in
    /// the same order. All random numbers depend only on `seed`, the name of the workload and
    /// `host`, the name of the host.
    ///
    /// # Panics
    ///
    /// If the workload has no target, which `Lab::validate` excludes, or if `luns` and the list of
    /// targets differ in length.
    pub fn new(workload: &Workload, host: &str, luns: &[Lun], seed: u64) -> Stream {
        assert!(!luns.is_empty(), "a workload has at least one target");
        assert_eq!(workload.targets.len(), luns.len(), "one size per target");
        let rng = |purpose| stream_rng(seed, purpose, &[&workload.name, host]);
        let start_ps = workload.start.0;
        let load = match &workload.load {
            Load::Closed { depth, think_time } => {
                Source::Closed { depth: *depth, start_ps, not_yet_started: *depth, think_time: *think_time }
            }
            Load::Open(kinds) => {
                Source::Open(Arrivals::new(kinds, start_ps, |process| rng(Purpose::Arrival { process })))
            }
        };
        let block_bytes = luns.iter().map(|lun| lun.block_bytes.max(1));
        Stream {
            load,
            stop_ps: workload.stop.map_or(u64::MAX, |stop| stop.0),
            targets: workload.targets.iter().copied().zip(block_bytes).collect(),
            sizes: Sizes::new(&workload.size),
            locations: Locations::new(workload.location, workload.hot_set.as_ref(), workload.span_bytes, luns),
            read_share: workload.read_share,
            target_rng: rng(Purpose::Target),
            size_rng: rng(Purpose::Size),
            direction_rng: rng(Purpose::Direction),
            location_rng: rng(Purpose::Location),
            think_rng: rng(Purpose::ThinkTime),
        }
    }

    /// Ends the stream after `stop_ps`, unless the workload stops earlier (`run.stop_issuing`).
    pub fn stop_at(&mut self, stop_ps: u64) {
        self.stop_ps = self.stop_ps.min(stop_ps);
    }

    /// Returns the absolute time of the next scheduled request in ps, never earlier than the one
    /// before, and advances past it. A closed loop has `depth` scheduled requests, all at its
    /// start. Returns `None` if there are no more.
    pub fn next_arrival_ps(&mut self) -> Option<u64> {
        let at_ps = match &mut self.load {
            Source::Closed { start_ps, not_yet_started, .. } => {
                *not_yet_started = not_yet_started.checked_sub(1)?;
                *start_ps
            }
            Source::Open(arrivals) => arrivals.next_ps(),
        };
        (at_ps <= self.stop_ps && at_ps < u64::MAX).then_some(at_ps)
    }

    /// Returns the time of the request that follows one that ended at `now_ps`: in a closed loop,
    /// after the think time. Returns `None` if none follows.
    pub fn after_end_ps(&mut self, now_ps: u64) -> Option<u64> {
        match &self.load {
            Source::Closed { think_time, .. } => {
                let at_ps = now_ps.saturating_add(sample_ps(think_time, &mut self.think_rng));
                (at_ps <= self.stop_ps).then_some(at_ps)
            }
            Source::Open(_) => None,
        }
    }

    /// Returns the number of requests that a closed loop keeps in flight; `None` for an open one.
    pub fn closed_depth(&self) -> Option<u32> {
        match &self.load {
            Source::Closed { depth, .. } => Some(*depth),
            Source::Open(_) => None,
        }
    }

    /// Returns the next request.
    pub fn next_request(&mut self) -> Request {
        let index = below(&mut self.target_rng, self.targets.len() as u64) as usize;
        let (lun, block_bytes) = self.targets[index];
        let limit_blocks = self.locations.usable_blocks(index);
        let blocks = self.sizes.next_blocks(&mut self.size_rng, block_bytes, limit_blocks);
        Request {
            lba: self.locations.next_lba(index, blocks, &mut self.location_rng),
            blocks,
            bytes: blocks * block_bytes,
            lun,
            target: index as u16,
            write: uniform(&mut self.direction_rng) >= self.read_share,
        }
    }
}
