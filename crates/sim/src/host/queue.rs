//! The waiting queue and the outstanding queue of a host (document 001, section 2.2).

use super::edges::{Edge, EdgeIndex};
use super::elevator::{Elevator, Stop};
use super::pool::{Command, CommandId, Member, Pool, Stage};
use crate::stats::TimeWeighted;
use crate::workload::Request;
use sanloom_core::config::{self, IoScheduler};
use std::collections::VecDeque;

/// The requests of a host from the moment they come until they end.
///
/// ```text
///           push            pop               complete
///  request ------> waiting -----> outstanding ---------> ended
///           |      (merged,            | ^
///           v       ordered)      park v | resume
///        refused                      parked
/// ```
///
/// A parked command has no path: its requests wait, and count so, until there is one.
///
/// A waiting request may be merged with others that are contiguous, on the same LUN and of the same direction; then
/// they travel as one command and each ends with it, by its own arrival time. The newest command that ends where the
/// request begins is tried first, then the newest that begins where the request ends. A request that closes the gap
/// between two commands joins them. The newest is the one that was made or grew last.
#[derive(Clone, Debug)]
pub struct IoQueue {
    config: config::IoQueue,
    pool: Pool,
    next_seq: u64,
    /// Waiting commands as they came, with their number. Commands that were joined to others stay until they are
    /// reached.
    fifo: VecDeque<(CommandId, u64)>,
    elevator: Elevator,
    begins: EdgeIndex,
    ends: EdgeIndex,
    waiting: TimeWeighted,
    outstanding: TimeWeighted,
    counters: QueueCounters,
}

/// What became of a request.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Pushed {
    /// It waits as a new command.
    Queued(CommandId),
    /// It became part of a waiting command.
    Merged(CommandId),
    /// As many requests wait as may; it is gone.
    Refused,
}

/// What happened in a queue, counted in requests.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct QueueCounters {
    /// Requests that were taken.
    pub accepted: u64,
    /// Those of them that were merged into a command.
    pub merged: u64,
    /// Requests that were refused.
    pub refused: u64,
    /// Requests that ended.
    pub ended: u64,
}

impl IoQueue {
    /// An empty queue.
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

    /// A request of `stream` comes at `arrival_ps`.
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

    /// The command that leaves next, if one waits and `max_outstanding` allows it: look whether a path and its HBA can
    /// take it, then [`IoQueue::pop`] it. The answer stays the same until something is pushed, popped or ends.
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
                    // A command that grew at its front has a second, lower stop.
                    pool.is_waiting(id, stop.seq) && pool.get(id).is_some_and(|command| command.lba == stop.lba)
                })?;
                CommandId(stop.command)
            }
        };
        Some((id, *self.pool.get(id)?))
    }

    /// Takes the command that [`IoQueue::peek`] shows; it is outstanding from now on.
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

    /// A command that was popped or parked ended, well or badly: gives each of its requests to `each`, in the order in
    /// which they were merged, and forgets it. `false`, and nothing happens, if there is no such command.
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

    /// An outstanding command has no path: its requests wait again, for one. `false`, and nothing happens, if it is not
    /// outstanding.
    pub fn park(&mut self, id: CommandId, now_ps: u64) -> bool {
        let outstanding = self.pool.stage(id) == Stage::Outstanding;
        if outstanding {
            self.pool.set_stage(id, Stage::Parked);
            self.outstanding.lower(now_ps, 1);
            self.waiting.raise(now_ps, self.requests_of(id));
        }
        outstanding
    }

    /// `max_outstanding` allows one more outstanding command.
    pub fn has_room(&self) -> bool {
        self.outstanding.level() < u64::from(self.config.max_outstanding)
    }

    /// A parked command goes on: it is outstanding again. `false`, and nothing happens, if it is not parked. Ask
    /// [`IoQueue::has_room`] before.
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

    /// A command that has not ended.
    pub fn command(&self, id: CommandId) -> Option<&Command> {
        self.pool.get(id)
    }

    /// Requests waiting, for a slot or for a path, over time.
    pub fn waiting(&self) -> &TimeWeighted {
        &self.waiting
    }

    /// Commands outstanding, over time.
    pub fn outstanding(&self) -> &TimeWeighted {
        &self.outstanding
    }

    /// Requests that have not ended: waiting, outstanding or parked. Counts them one by one.
    pub fn requests(&self) -> u64 {
        self.pool.requests()
    }

    /// What happened since the start of the measurement.
    pub fn counters(&self) -> &QueueCounters {
        &self.counters
    }

    /// Starts the measurement anew at `now_ps`: the end of the warm-up.
    pub fn restart(&mut self, now_ps: u64) {
        self.waiting.restart(now_ps);
        self.outstanding.restart(now_ps);
        self.counters = QueueCounters::default();
    }

    fn merge(&mut self, member: Member) -> Option<CommandId> {
        if self.config.merge_up_to_bytes == 0 {
            return None;
        }
        let request = member.request;
        let edge = |lba: u64| Edge { lun: request.lun, write: request.write, lba };
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

    /// Joins two commands of which one ends where the other begins, if both together are not too large; the older one
    /// stays and is returned.
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

    /// Changes the extent of a waiting command and keeps the indices right.
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

    /// Begin and end of a command; `None` if nothing is ever merged, so that nothing is kept.
    fn edges_of(&self, id: CommandId) -> Option<(Edge, Edge)> {
        if self.config.merge_up_to_bytes == 0 {
            return None;
        }
        let command = self.pool.get(id)?;
        let edge = |lba: u64| Edge { lun: command.lun, write: command.write, lba };
        Some((edge(command.lba), edge(command.end_lba())))
    }
}
