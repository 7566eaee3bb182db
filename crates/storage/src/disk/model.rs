//! The disk: queue, cache and arm on a common time line.

use super::check::ConfigError;
use super::config::{DiskConfig, WritePolicy, ps};
use super::geometry::Place;
use super::mechanism::{Arm, Mechanism, Stream};
use super::request::{Ended, Op, Phases, Request, Source};
use super::schedule::{Decision, Queue, Waiting};
use super::segments::Segments;
use super::stats::DiskStats;
use super::times::{Bus, Times};
use std::cmp::Reverse;
use std::collections::{BinaryHeap, VecDeque};
use std::sync::Arc;

/// A request with its time of arrival.
#[derive(Clone, Copy, Debug)]
pub(super) struct Submitted {
    pub request: Request,
    pub at_ps: u64,
}

/// Written blocks that wait for the medium.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Extent {
    pub lbn: u64,
    pub blocks: u64,
    /// Time at which the arm may move.
    pub start_ps: u64,
    /// Time at which all blocks are in the cache.
    pub ready_ps: u64,
}

/// Read-ahead in progress. The blocks that it has read are computed when they matter.
#[derive(Clone, Copy, Debug)]
pub(super) struct Ahead {
    pub segment: usize,
    pub stream: Stream,
    /// Address at which the read-ahead ends.
    pub limit_lbn: u64,
}

/// Entries with stable numbers; released numbers are used again.
#[derive(Clone, Debug)]
pub(super) struct Slots<T> {
    entries: Vec<T>,
    free: Vec<u32>,
}

impl<T: Copy> Slots<T> {
    pub fn put(&mut self, entry: T) -> u32 {
        if let Some(index) = self.free.pop() {
            self.entries[index as usize] = entry;
            return index;
        }
        self.entries.push(entry);
        (self.entries.len() - 1) as u32
    }

    pub fn take(&mut self, index: u32) -> T {
        self.free.push(index);
        self.entries[index as usize]
    }

    pub fn get_mut(&mut self, index: u32) -> &mut T {
        &mut self.entries[index as usize]
    }
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct ByEnd(Ended);

impl PartialOrd for ByEnd {
    fn partial_cmp(&self, other: &ByEnd) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for ByEnd {
    fn cmp(&self, other: &ByEnd) -> std::cmp::Ordering {
        (self.0.ended_ps, self.0.id).cmp(&(other.0.ended_ps, other.0.id))
    }
}

/// A disk in virtual time.
///
/// A simulator calls [`Disk::submit`] with times that never decrease, asks for [`Disk::next_ps`],
/// and calls [`Disk::pop_ended`] at that time until there is none. Then it asks for the next time
/// again. Only that question selects requests for the arm at the current time, so all requests
/// that arrive at one time are compared with each other. Read-ahead and write-back need no calls.
/// The next call computes their progress; [`Disk::advance`] does nothing else.
///
/// A clone shares the layout and the seek times, so a system of equal disks clones an idle one.
///
/// Simplifications: a flush blocks the requests behind it; the medium has no defects; a read is
/// not compared with written blocks that the cache holds only in part. A read hits written blocks
/// only while a segment holds them, even if more of them wait for the medium. A write replaces no
/// waiting blocks: two writes of one block reach the medium twice.
#[derive(Clone, Debug)]
pub struct Disk {
    pub(super) mechanism: Arc<Mechanism>,
    pub(super) config: Arc<DiskConfig>,
    pub(super) times: Times,
    pub(super) arm: Arm,
    /// End of the last access to the medium.
    pub(super) arm_free_ps: u64,
    /// End of the last access for a request, from which the overhead of the next one counts.
    pub(super) media_free_ps: u64,
    /// End of the overhead of the last command that needed no medium.
    pub(super) command_free_ps: u64,
    pub(super) bus: Bus,
    pub(super) ahead: Option<Ahead>,
    /// Segment that has its last blocks from the medium only when the arm is free.
    pub(super) arriving: Option<usize>,
    pub(super) segments: Segments,
    pub(super) requests: Slots<(Submitted, Place)>,
    pub(super) queue: Queue,
    pub(super) extents: Slots<Extent>,
    pub(super) dirty: Queue,
    /// Number of the youngest extent, if it can be extended.
    pub(super) last_extent: Option<u32>,
    pub(super) dirty_blocks: u64,
    /// Blocks of the extent that the arm writes now.
    pub(super) writing_blocks: u64,
    /// Writes without room in the cache, and requests behind a flush.
    held: VecDeque<Submitted>,
    /// Flush that waits for the write-backs.
    flush: Option<Submitted>,
    was_write_back: bool,
    pub(super) last_op: Op,
    /// Address behind the last read.
    pub(super) last_read_end_lbn: u64,
    /// Address behind the last write.
    pub(super) last_write_end_lbn: u64,
    /// Latest time that the disk has seen.
    clock_ps: u64,
    ended: BinaryHeap<Reverse<ByEnd>>,
    pub(super) stats: DiskStats,
}

impl Disk {
    /// Creates an idle disk whose head is at the first cylinder.
    ///
    /// # Errors
    /// If the parameters contradict each other.
    pub fn new(config: &DiskConfig) -> Result<Disk, ConfigError> {
        let cache = &config.cache;
        let queue = &config.queue;
        let age_limit_ps = queue.age_limit_ms.map(ps);
        let write_back_window = match cache.write {
            WritePolicy::Through => 1,
            WritePolicy::Back { window, .. } => window,
        };
        Ok(Disk {
            mechanism: Arc::new(Mechanism::new(config)?),
            config: Arc::new(config.clone()),
            times: Times::new(config),
            arm: Arm::default(),
            arm_free_ps: 0,
            media_free_ps: 0,
            command_free_ps: 0,
            bus: Bus::default(),
            ahead: None,
            arriving: None,
            segments: Segments::new(
                cache.segments,
                cache.segment_blocks,
                cache.write_segments,
                cache.keeps_read_blocks,
            ),
            requests: Slots { entries: Vec::new(), free: Vec::new() },
            queue: Queue::new(queue.scheduler, queue.window, age_limit_ps),
            extents: Slots { entries: Vec::new(), free: Vec::new() },
            dirty: Queue::new(queue.scheduler, write_back_window, None),
            last_extent: None,
            dirty_blocks: 0,
            writing_blocks: 0,
            held: VecDeque::new(),
            flush: None,
            was_write_back: false,
            last_op: Op::Read,
            last_read_end_lbn: u64::MAX,
            last_write_end_lbn: u64::MAX,
            clock_ps: 0,
            ended: BinaryHeap::new(),
            stats: DiskStats::default(),
        })
    }

    /// Mechanics of the disk.
    pub fn mechanism(&self) -> &Mechanism {
        &self.mechanism
    }

    /// Sums over the requests that [`Disk::pop_ended`] has returned, and over the work of the arm.
    pub fn stats(&self) -> &DiskStats {
        &self.stats
    }

    /// Restarts the sums of [`Disk::stats`].
    pub fn restart_stats(&mut self) {
        self.stats = DiskStats::default();
    }

    /// Becomes a copy of an idle disk of the same model, as after a loss of power. Keeps the sums.
    pub(crate) fn restart_as(&mut self, idle: &Disk) {
        *self = Disk { stats: self.stats, ..idle.clone() };
    }

    /// Blocks that are not on the medium yet. A disk without power loses them.
    pub fn dirty_blocks(&self) -> u64 {
        self.dirty_blocks
    }

    /// Number of requests that wait for the arm, for room in the cache or for a flush.
    pub fn waiting(&self) -> usize {
        self.queue.len() + self.held.len() + usize::from(self.flush.is_some())
    }

    /// Accepts a request at `now_ps`. A range beyond the last block is cut.
    pub fn submit(&mut self, now_ps: u64, request: Request) {
        self.advance_before(now_ps);
        self.clock_ps = self.clock_ps.max(now_ps);
        let last = self.mechanism.geometry.blocks() - 1;
        let lbn = request.lbn.min(last);
        let request = Request { lbn, blocks: request.blocks.clamp(1, last + 1 - lbn), ..request };
        let submitted = Submitted { request, at_ps: now_ps };
        let passes = self.held.is_empty() || matches!(request.op, Op::Read | Op::WriteThrough);
        if self.flush.is_none() && passes {
            self.accept(now_ps, submitted);
        } else {
            self.held.push_back(submitted);
        }
    }

    /// Selects requests for the arm at the current time, and returns the next time at which a
    /// request ends or the arm is free for another one. None if the disk has no request.
    pub fn next_ps(&mut self) -> Option<u64> {
        self.advance_before(self.clock_ps + 1);
        let end_ps = self.ended.peek().map(|Reverse(ended)| ended.0.ended_ps);
        let has_work = !self.queue.is_empty() || !self.held.is_empty() || self.flush.is_some();
        let select_ps = has_work.then_some(self.arm_free_ps);
        [end_ps, select_ps].into_iter().flatten().min()
    }

    /// Returns a request that has ended at `now_ps`, the earliest first.
    pub fn pop_ended(&mut self, now_ps: u64) -> Option<Ended> {
        self.advance_before(now_ps);
        self.clock_ps = self.clock_ps.max(now_ps);
        if self.ended.peek()?.0.0.ended_ps > now_ps {
            return None;
        }
        let ended = self.ended.pop().map(|Reverse(ended)| ended.0)?;
        self.stats.record(&ended);
        Some(ended)
    }

    /// Computes the progress of the disk until `now_ps`, without a decision at this time or later.
    /// Sums and [`Disk::dirty_blocks`] are up to date only after this call.
    pub fn advance(&mut self, now_ps: u64) {
        self.advance_before(now_ps);
        self.clock_ps = self.clock_ps.max(now_ps);
        if self.arm_free_ps <= now_ps {
            self.dirty_blocks -= std::mem::take(&mut self.writing_blocks);
        }
    }

    /// Makes the decisions of the arm before `now_ps`.
    fn advance_before(&mut self, now_ps: u64) {
        loop {
            let at_ps = self.arm_free_ps.max(self.clock_ps);
            if at_ps >= now_ps {
                return;
            }
            self.dirty_blocks -= std::mem::take(&mut self.writing_blocks);
            self.release_held(at_ps);
            let prefers_write = !self.held.is_empty() && !self.was_write_back;
            if !self.queue.is_empty() && (!prefers_write || self.dirty.is_empty()) {
                self.serve_next(at_ps);
            } else if !self.dirty.is_empty() {
                self.write_back_next(at_ps);
            } else {
                break;
            }
        }
    }

    /// Accepts requests that waited for room in the cache or for a flush.
    fn release_held(&mut self, at_ps: u64) {
        while self.is_flushed(at_ps)
            && let Some(first) = self.held.front().copied()
            && (first.request.op != Op::Write || self.has_room(&first.request))
        {
            self.held.pop_front();
            self.accept(at_ps, first);
        }
    }

    /// Ends a flush whose write-backs are complete. Returns true if no flush waits.
    fn is_flushed(&mut self, at_ps: u64) -> bool {
        if self.dirty_blocks > 0 {
            return self.flush.is_none();
        }
        if let Some(flush) = self.flush.take() {
            self.end_flush(flush, at_ps);
        }
        true
    }

    fn end_flush(&mut self, flush: Submitted, at_ps: u64) {
        let overhead_ps = self.times.write[usize::from(self.last_op != Op::Read)];
        let ended_ps = at_ps.max(flush.at_ps + overhead_ps);
        let phases = Phases { queue_ps: ended_ps - flush.at_ps - overhead_ps, overhead_ps, ..Phases::default() };
        self.end(&flush, ended_ps, Source::Medium, phases);
    }

    fn accept(&mut self, now_ps: u64, submitted: Submitted) {
        match submitted.request.op {
            Op::Read if self.read_from_cache(now_ps, &submitted) => {}
            Op::Write if self.caches(&submitted.request) => {
                if self.has_room(&submitted.request) {
                    self.write_to_cache(now_ps, &submitted);
                } else {
                    self.held.push_front(submitted);
                }
            }
            Op::Flush if self.dirty_blocks > 0 => self.flush = Some(submitted),
            Op::Flush => self.end_flush(submitted, now_ps),
            Op::Read | Op::Write | Op::WriteThrough => {
                let place = self.mechanism.geometry.place(submitted.request.lbn);
                let is_write = submitted.request.op != Op::Read;
                let index = self.requests.put((submitted, place));
                self.queue.push(Waiting::new(index, is_write, &place, submitted.at_ps));
            }
        }
    }

    /// True if a write ends in the cache.
    fn caches(&self, request: &Request) -> bool {
        match self.config.cache.write {
            WritePolicy::Through => false,
            WritePolicy::Back { only_appending, .. } => !only_appending || request.lbn == self.last_write_end_lbn,
        }
    }

    fn has_room(&self, request: &Request) -> bool {
        match self.config.cache.write {
            WritePolicy::Through => true,
            WritePolicy::Back { dirty_blocks, dirty_extents, .. } => {
                let extents = self.dirty.len() + usize::from(self.writing_blocks > 0);
                self.dirty_blocks == 0
                    || (self.dirty_blocks + request.blocks <= dirty_blocks
                        && (extents < dirty_extents || self.extends_last(request)))
            }
        }
    }

    /// True if a write continues the youngest extent.
    pub(super) fn extends_last(&self, request: &Request) -> bool {
        self.last_extent.is_some_and(|index| {
            let extent = self.extents.entries[index as usize];
            extent.lbn + extent.blocks == request.lbn
        })
    }

    fn serve_next(&mut self, at_ps: u64) {
        self.was_write_back = false;
        let after = usize::from(self.last_op != Op::Read);
        let decision = Decision {
            now_ps: at_ps,
            read_start_ps: at_ps + self.times.read_miss[after],
            write_start_ps: at_ps + self.times.write[after],
            arm: self.arm_at(at_ps),
        };
        if let Some(waiting) = self.queue.pop(&self.mechanism, &decision) {
            let (submitted, place) = self.requests.take(waiting.index);
            if submitted.request.op == Op::Read {
                if !self.read_from_cache(at_ps, &submitted) {
                    self.read_from_medium(&submitted, place);
                }
            } else {
                self.write_to_medium(&submitted);
            }
        }
    }

    fn write_back_next(&mut self, at_ps: u64) {
        self.was_write_back = true;
        let arm = self.arm_at(at_ps);
        let decision = Decision { now_ps: at_ps, read_start_ps: at_ps, write_start_ps: at_ps, arm };
        if let Some(waiting) = self.dirty.pop(&self.mechanism, &decision) {
            if self.last_extent == Some(waiting.index) {
                self.last_extent = None;
            }
            let extent = self.extents.take(waiting.index);
            self.write_back(at_ps, &extent);
        }
    }

    /// Enters the end of a request, which may lie in the future.
    pub(super) fn end(&mut self, submitted: &Submitted, ended_ps: u64, source: Source, phases: Phases) {
        debug_assert_eq!(ended_ps - submitted.at_ps, phases.total_ps(), "{submitted:?} {source:?}");
        let Submitted { request: Request { id, op, .. }, at_ps: submitted_ps } = *submitted;
        let ended = Ended { id, op, submitted_ps, ended_ps, source, phases };
        self.ended.push(Reverse(ByEnd(ended)));
    }
}
