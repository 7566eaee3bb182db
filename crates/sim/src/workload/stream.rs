//! The request stream of one workload on one host.

use super::replay::{ReplayCounts, TraceStream};
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
    pub op: RequestOp,
}

/// Operation of a request.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum RequestOp {
    Read,
    Write,
    /// SYNCHRONIZE CACHE of a whole LUN. Results count it as a write of 0 bytes.
    Flush,
}

impl RequestOp {
    /// Returns whether results count the request as a write.
    pub fn is_write(self) -> bool {
        self != RequestOp::Read
    }
}

/// The requests of one workload on one host, with their arrival times.
///
/// The calls are the same for open and closed loops. Schedule the time that
/// [`Stream::next_arrival_ps`] returns. At that time, take one [`Stream::next_request`] and
/// schedule the following time. When a request ends, call [`Stream::after_end_ps`]. If it returns a
/// time, take one more request then, without scheduling a following time.
#[derive(Debug)]
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

#[derive(Debug)]
enum Source {
    Closed { depth: u32, start_ps: u64, not_yet_started: u32, think_time: TimeDistribution },
    Open(Arrivals),
    Trace(Box<TraceStream>),
}

impl Stream {
    /// Returns the stream of `workload` on the host with the name `host`, number `part` of its
    /// hosts. `luns` are the sizes of the targets that it names, in the same order. All random
    /// numbers depend only on `seed`, the name of the workload and `host`.
    ///
    /// # Panics
    ///
    /// If the workload has no target, which `Lab::validate` excludes, or if `luns` and the list of
    /// targets differ in length.
    pub fn new(workload: &Workload, (host, part): (&str, u32), luns: &[Lun], seed: u64) -> Stream {
        assert!(!luns.is_empty(), "a workload has at least one target");
        assert_eq!(workload.named_targets().len(), luns.len(), "one size per target");
        let rng = |purpose| stream_rng(seed, purpose, &[&workload.name, host]);
        let start_ps = workload.start.0;
        let load = match &workload.load {
            Load::Closed { depth, think_time } => {
                Source::Closed { depth: *depth, start_ps, not_yet_started: *depth, think_time: *think_time }
            }
            Load::Open(kinds) => {
                Source::Open(Arrivals::new(kinds, start_ps, |process| rng(Purpose::Arrival { process })))
            }
            Load::Trace(load) => {
                let parts = (workload.hosts.len() as u32).max(1);
                let place = (part % parts, parts);
                let mut trace = TraceStream::new(load, place, workload.named_targets(), luns, workload.span_bytes);
                trace.start_at(start_ps);
                Source::Trace(Box::new(trace))
            }
        };
        let block_bytes = luns.iter().map(|lun| lun.block_bytes.max(1));
        Stream {
            load,
            stop_ps: workload.stop.map_or(u64::MAX, |stop| stop.0),
            targets: workload.named_targets().iter().copied().zip(block_bytes).collect(),
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
            Source::Trace(trace) => trace.next_arrival_ps()?,
        };
        (at_ps <= self.stop_ps && at_ps < u64::MAX).then_some(at_ps)
    }

    /// Returns the time of the request that follows one that ended at `now_ps`: in a closed loop,
    /// after the think time. Returns `None` if none follows.
    pub fn after_end_ps(&mut self, now_ps: u64) -> Option<u64> {
        let at_ps = match &mut self.load {
            Source::Closed { think_time, .. } => now_ps.saturating_add(sample_ps(think_time, &mut self.think_rng)),
            Source::Open(_) => return None,
            Source::Trace(_) if now_ps > self.stop_ps => return None,
            Source::Trace(trace) => trace.after_end_ps(now_ps)?,
        };
        (at_ps <= self.stop_ps).then_some(at_ps)
    }

    /// Returns the number of requests that a closed loop keeps in flight; `None` for an open one.
    pub fn closed_depth(&self) -> Option<u32> {
        match &self.load {
            Source::Closed { depth, .. } => Some(*depth),
            Source::Open(_) => None,
            Source::Trace(trace) => trace.depth(),
        }
    }

    /// Splits requests of a trace that are longer than `largest_bytes`.
    pub fn split_above(&mut self, largest_bytes: u64) {
        if let Source::Trace(trace) = &mut self.load {
            trace.split_above(largest_bytes);
        }
    }

    /// Returns the counts of a trace, and the error that ended it.
    pub fn replayed(&self) -> Option<(ReplayCounts, Option<&str>)> {
        match &self.load {
            Source::Trace(trace) => Some((trace.counts(), trace.error())),
            Source::Closed { .. } | Source::Open(_) => None,
        }
    }

    /// Returns the next request. Only a trace has an end; requests whose times were returned
    /// exist.
    pub fn next_request(&mut self) -> Option<Request> {
        if let Source::Trace(trace) = &mut self.load {
            return trace.take();
        }
        let index = below(&mut self.target_rng, self.targets.len() as u64) as usize;
        let (lun, block_bytes) = self.targets[index];
        let limit_blocks = self.locations.usable_blocks(index);
        let blocks = self.sizes.next_blocks(&mut self.size_rng, block_bytes, limit_blocks);
        let lba = self.locations.next_lba(index, blocks, &mut self.location_rng);
        let is_write = uniform(&mut self.direction_rng) >= self.read_share;
        Some(Request {
            lba,
            blocks,
            bytes: blocks * block_bytes,
            lun,
            target: index as u16,
            op: if is_write { RequestOp::Write } else { RequestOp::Read },
        })
    }
}
