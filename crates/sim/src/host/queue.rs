//! The waiting queue and the outstanding queue of a host (the SANSim paper, section 2.2).

use super::edges::{Edge, EdgeIndex};
use super::elevator::{Elevator, Stop};
use super::pool::{Command, CommandId, Member, Pool, Stage};
use crate::stats::TimeWeighted;
use crate::workload::{Request, RequestOp};
use sanloom_fc::config::{self, IoScheduler};
use std::collections::VecDeque;

/// The requests of a host from arrival to end.
///
/// ```text
///           push            pop               complete
///  request ------> waiting -----> outstanding ---------> ended
///           |      (merged,            | ^
///           v       ordered)      park v | resume
///        refused                      parked
/// ```
///
/// A parked command has no path. Its requests wait for one and count as waiting.
///
/// A waiting read or write may be merged with contiguous requests on the same LUN and in the same
/// direction. Merged requests are sent as one command and end together, but each has its own
/// arrival time. The newest command that ends where the request begins is tried first, then the
/// newest one that begins where the request ends. A request that closes the gap between two
/// commands joins them. The newest command is the one that was created or extended last.
#[derive(Clone, Debug)]
pub struct IoQueue {
    config: config::IoQueue,
    pool: Pool,
    next_seq: u64,
    /// Waiting commands in order of arrival, with their sequence numbers. Commands that were joined
    /// to others stay until they reach the front.
    fifo: VecDeque<(CommandId, u64)>,
    elevator: Elevator,
    begins: EdgeIndex,
    ends: EdgeIndex,
    waiting: TimeWeighted,
    outstanding: TimeWeighted,
    counters: QueueCounters,
}

/// Result of adding a request.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Pushed {
    /// Queued as a new command.
    Queued(CommandId),
    /// Merged into a waiting command.
    Merged(CommandId),
    /// Rejected because the waiting queue is full.
    Refused,
}

/// Counters of a queue, in requests.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct QueueCounters {
    /// Accepted requests.
    pub accepted: u64,
    /// Accepted requests that were merged into a command.
    pub merged: u64,
    /// Rejected requests.
    pub refused: u64,
    pub ended: u64,
}

impl IoQueue {
    /// Returns an empty queue.
    pub fn new(config: &config::IoQueue) -> IoQueue {
        IoQueue {
            config: config.clone(),
            pool: Pool::default(),
            next_seq: 0,
            fifo: VecDeque::new(),
            elevator: Elevator::default(),
            begins: EdgeIndex::default(),
            ends: EdgeIndex::default(),
            waiting: TimeWeighted::default(),
            outstanding: TimeWeighted::default(),
            counters: QueueCounters::default(),
        }
    }

    /// Adds a request of `stream` that arrived at `arrival_ps`.
    #[inline]
    pub fn push(&mut self, request: Request, arrival_ps: u64, stream: u32) -> Pushed {
        let full = |limit: u32| self.waiting.level() >= u64::from(limit);
        if self.config.max_waiting.is_some_and(full) {
            self.counters.refused += 1;
            return Pushed::Refused;
        }
        self.counters.accepted += 1;
        self.waiting.raise(arrival_ps, 1);
        let member = Member { request, arrival_ps, stream };
        if let Some(id) = self.merge(member) {
            self.counters.merged += 1;
            return Pushed::Merged(id);
        }
        let id = self.pool.insert(member, self.next_seq);
        self.next_seq += 1;
        self.add_edges(id);
        match self.config.scheduler {
            IoScheduler::Fifo => self.fifo.push_back((id, self.pool.seq(id))),
            IoScheduler::Elevator => self.add_stop(id),
        }
        Pushed::Queued(id)
    }

    /// Counts a request as refused if the queue is full with `more` requests that wait elsewhere.
    pub fn refuse_if_full(&mut self, more: u64) -> bool {
        let full = |limit: u32| self.waiting.level() + more >= u64::from(limit);
        let is_full = self.config.max_waiting.is_some_and(full);
        self.counters.refused += u64::from(is_full);
        is_full
    }

    /// Returns the next command to send, if one waits and `max_outstanding` allows it. Check that a
    /// path and its HBA can accept it, then [`IoQueue::pop`] it. The result stays the same until
    /// the next push, pop or completion.
    #[inline]
    pub fn peek(&mut self) -> Option<(CommandId, Command)> {
        if !self.has_room() {
            return None;
        }
        let pool = &self.pool;
        let id = match self.config.scheduler {
            IoScheduler::Fifo => loop {
                let &(id, seq) = self.fifo.front()?;
                if pool.is_waiting(id, seq) {
                    break id;
                }
                self.fifo.pop_front();
            },
            IoScheduler::Elevator => {
                let stop = self.elevator.first(|stop| {
                    let id = CommandId(stop.command);
                    // A command that grew at its front has a second, lower stop; only that one is
                    // valid.
                    pool.is_waiting(id, stop.seq) && pool.get(id).is_some_and(|command| command.lba == stop.lba)
                })?;
                CommandId(stop.command)
            }
        };
        Some((id, *self.pool.get(id)?))
    }

    /// Removes the command that [`IoQueue::peek`] returned; it now counts as outstanding.
    #[inline]
    pub fn pop(&mut self, now_ps: u64) -> Option<(CommandId, Command)> {
        let (id, command) = self.peek()?;
        match self.config.scheduler {
            IoScheduler::Fifo => {
                self.fifo.pop_front();
            }
            IoScheduler::Elevator => self.elevator.serve(),
        }
        self.remove_edges(id);
        self.pool.set_stage(id, Stage::Outstanding);
        self.waiting.lower(now_ps, u64::from(command.requests));
        self.outstanding.raise(now_ps, 1);
        Some((id, command))
    }

    /// Ends a popped or parked command, as completed or failed. Passes each of its requests to
    /// `each` in the order in which they were merged. Returns `false` without effect if there is no
    /// such command.
    pub fn complete(&mut self, id: CommandId, now_ps: u64, mut each: impl FnMut(Member)) -> bool {
        match self.pool.stage(id) {
            Stage::Outstanding => self.outstanding.lower(now_ps, 1),
            Stage::Parked => self.waiting.lower(now_ps, self.requests_of(id)),
            Stage::Free | Stage::Waiting => return false,
        }
        let ended = &mut self.counters.ended;
        self.pool.remove(id, |member| {
            *ended += 1;
            each(member);
        });
        true
    }

    /// Parks an outstanding command that has no path; its requests count as waiting. Returns
    /// `false` without effect if the command is not outstanding.
    pub fn park(&mut self, id: CommandId, now_ps: u64) -> bool {
        let outstanding = self.pool.stage(id) == Stage::Outstanding;
        if outstanding {
            self.pool.set_stage(id, Stage::Parked);
            self.outstanding.lower(now_ps, 1);
            self.waiting.raise(now_ps, self.requests_of(id));
        }
        outstanding
    }

    /// Returns whether `max_outstanding` allows one more outstanding command.
    pub fn has_room(&self) -> bool {
        self.outstanding.level() < u64::from(self.config.max_outstanding)
    }

    /// Returns the limit on outstanding commands.
    pub fn most_outstanding(&self) -> u32 {
        self.config.max_outstanding
    }

    /// Makes a parked command outstanding again. Returns `false` without effect if it is not
    /// parked. Call [`IoQueue::has_room`] first.
    pub fn resume(&mut self, id: CommandId, now_ps: u64) -> bool {
        let parked = self.pool.stage(id) == Stage::Parked;
        if parked {
            self.pool.set_stage(id, Stage::Outstanding);
            self.waiting.lower(now_ps, self.requests_of(id));
            self.outstanding.raise(now_ps, 1);
        }
        parked
    }

    fn requests_of(&self, id: CommandId) -> u64 {
        self.pool.get(id).map_or(0, |command| u64::from(command.requests))
    }

    /// Returns a command that has not ended.
    pub fn command(&self, id: CommandId) -> Option<&Command> {
        self.pool.get(id)
    }

    /// Returns the number of requests that wait for a slot or a path, over time.
    pub fn waiting(&self) -> &TimeWeighted {
        &self.waiting
    }

    /// Returns the number of outstanding commands over time.
    pub fn outstanding(&self) -> &TimeWeighted {
        &self.outstanding
    }

    /// Returns the number of requests that have not ended: waiting, outstanding or parked. Counts
    /// them one by one.
    pub fn requests(&self) -> u64 {
        self.pool.requests()
    }

    /// Returns the number of requests of certain streams that have not ended. Counts them one by
    /// one.
    pub fn requests_of_streams(&self, is_of: impl Fn(u32) -> bool) -> u64 {
        self.pool.members().filter(|member| is_of(member.stream)).count() as u64
    }

    /// Returns the counters since the start of the measurement.
    pub fn counters(&self) -> &QueueCounters {
        &self.counters
    }

    /// Restarts the measurement at `now_ps`, the end of the warm-up.
    pub fn restart(&mut self, now_ps: u64) {
        self.waiting.restart(now_ps);
        self.outstanding.restart(now_ps);
        self.counters = QueueCounters::default();
    }

    fn merge(&mut self, member: Member) -> Option<CommandId> {
        let request = member.request;
        if self.config.merge_up_to_bytes == 0 || request.op == RequestOp::Flush {
            return None;
        }
        let edge = |lba: u64| Edge { lun: request.lun, write: request.op.is_write(), lba };
        let end_lba = request.lba.saturating_add(u64::from(request.blocks));
        let may_take = |id: &CommandId| self.may_grow(*id, request.bytes);
        let left = self.ends.newest(&edge(request.lba)).map(CommandId);
        let right = self.begins.newest(&edge(end_lba)).map(CommandId);
        if let Some(left) = left.filter(may_take) {
            self.regrow(left, |pool| pool.extend(left, member));
            return right.and_then(|right| self.join(left, right)).or(Some(left));
        }
        let right = right.filter(may_take)?;
        self.regrow(right, |pool| pool.extend(right, member));
        Some(right)
    }

    fn may_grow(&self, id: CommandId, bytes: u32) -> bool {
        let fits = |command: &Command| {
            let grown = command.bytes.checked_add(bytes);
            grown.is_some_and(|grown| grown <= self.config.merge_up_to_bytes)
        };
        self.pool.get(id).is_some_and(fits)
    }

    /// Joins two commands of which one ends where the other begins, unless the result would be too
    /// large. Keeps and returns the older one.
    fn join(&mut self, left: CommandId, right: CommandId) -> Option<CommandId> {
        let right_bytes = self.pool.get(right)?.bytes;
        if left == right || !self.may_grow(left, right_bytes) {
            return None;
        }
        let (stays, goes) = if self.pool.seq(left) < self.pool.seq(right) { (left, right) } else { (right, left) };
        self.remove_edges(goes);
        self.regrow(stays, |pool| pool.join(stays, goes));
        Some(stays)
    }

    /// Changes the extent of a waiting command and updates the indices.
    fn regrow(&mut self, id: CommandId, change: impl FnOnce(&mut Pool)) {
        let lba_of = |pool: &Pool| pool.get(id).map(|command| command.lba);
        let before = lba_of(&self.pool);
        self.remove_edges(id);
        change(&mut self.pool);
        self.add_edges(id);
        if self.config.scheduler == IoScheduler::Elevator && lba_of(&self.pool) != before {
            self.add_stop(id);
        }
    }

    fn add_stop(&mut self, id: CommandId) {
        if let Some(command) = self.pool.get(id) {
            self.elevator.add(Stop { lun: command.lun, lba: command.lba, seq: self.pool.seq(id), command: id.0 });
        }
    }

    fn add_edges(&mut self, id: CommandId) {
        if let Some((begin, end)) = self.edges_of(id) {
            self.begins.add(begin, id.0);
            self.ends.add(end, id.0);
        }
    }

    fn remove_edges(&mut self, id: CommandId) {
        if let Some((begin, end)) = self.edges_of(id) {
            self.begins.remove(&begin, id.0);
            self.ends.remove(&end, id.0);
        }
    }

    /// Returns begin and end of a command, or `None` if merging is disabled and no index is kept.
    /// A flush has neither.
    fn edges_of(&self, id: CommandId) -> Option<(Edge, Edge)> {
        if self.config.merge_up_to_bytes == 0 {
            return None;
        }
        let command = self.pool.get(id).filter(|command| command.op != RequestOp::Flush)?;
        let edge = |lba: u64| Edge { lun: command.lun, write: command.op.is_write(), lba };
        Some((edge(command.lba), edge(command.end_lba())))
    }
}
