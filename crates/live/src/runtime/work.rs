//! Pending work of an instance: [`WorkQueue`] with its [`Work`] items, and [`Timer`], the keys of
//! its deadlines.

use crate::frame::FrameBuf;
use sanloom_fc::alarms::Alarms;
use sanloom_fc::fabric_switch;
use sanloom_fc::fip::fcf;
use sanloom_scsi::time::Instant;
use std::collections::VecDeque;

/// Maximum work items per step, after which sockets are read, timers are served and the clock is
/// read again. A forwarded frame takes about 100 ns, so this is less than a millisecond.
const DISPATCHES_PER_STEP: usize = 4_096;
/// Queue length from which on no more frames are accepted.
const BACKLOG: usize = 1_024;

/// Source of a frame in a switch, which is held back when the egress queue is full.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Source {
    /// An Ethernet port, by index.
    Ethernet(usize),
    /// A port of a storage system, by indices.
    Storage(usize, u16),
    /// A host port of the instance, by index.
    Host(usize),
    /// A machine, which is never held back because it sends little.
    Machine,
}

/// Source and time of a frame that entered the process.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Origin {
    /// Source of the frame.
    pub source: Source,
    /// Time of reception. A frame older than the hold time is dropped.
    pub since: Instant,
}

/// A frame that enters a switch through an inner port.
#[derive(Debug)]
pub struct Entering {
    /// Index of the switch.
    pub switch: usize,
    /// Its port.
    pub port: u16,
    /// Source and time of the frame.
    pub origin: Origin,
    /// The frame, in FCoE without Ethernet addresses.
    pub frame: FrameBuf,
}

/// A work item. Inputs of machines are boxed to keep items small.
#[derive(Debug)]
pub enum Work {
    /// A frame that enters a switch through an inner port.
    Frame(Entering),
    /// An input of a switch, by index.
    Switch(usize, Box<fabric_switch::Input>),
    /// An input of the FCF of a segment, by index.
    Fcf(usize, Box<fcf::Input>),
}

/// Work items in order.
///
/// A machine never calls another one. Outputs that are inputs of other machines are queued here, so
/// that the stack depth does not depend on the fabric, and circulating frames do not block the
/// loop.
#[derive(Debug)]
pub struct WorkQueue {
    items: VecDeque<Work>,
    /// Dispatches left in this step.
    budget: usize,
}

impl Default for WorkQueue {
    fn default() -> WorkQueue {
        WorkQueue { items: VecDeque::new(), budget: DISPATCHES_PER_STEP }
    }
}

impl WorkQueue {
    /// Restores the full budget at the start of a step.
    pub fn refill(&mut self) {
        self.budget = DISPATCHES_PER_STEP;
    }

    /// Appends a frame.
    #[inline]
    pub fn push_frame(&mut self, entering: Entering) {
        self.items.push_back(Work::Frame(entering));
    }

    /// Appends an input of a switch.
    pub fn push_switch(&mut self, switch: usize, input: fabric_switch::Input) {
        self.items.push_back(Work::Switch(switch, Box::new(input)));
    }

    /// Appends an input of an FCF.
    pub fn push_fcf(&mut self, segment: usize, input: fcf::Input) {
        self.items.push_back(Work::Fcf(segment, Box::new(input)));
    }

    /// Removes the first item; `None` if there is none, or the budget of the step is spent.
    #[inline]
    pub fn pop(&mut self) -> Option<Work> {
        let left = self.budget.checked_sub(1)?;
        let item = self.items.pop_front()?;
        self.budget = left;
        Some(item)
    }

    /// Returns whether all work is done.
    pub fn is_empty(&self) -> bool {
        self.items.is_empty()
    }

    /// Returns whether no more frames should be accepted.
    #[inline]
    pub fn is_full(&self) -> bool {
        self.items.len() >= BACKLOG
    }
}

/// Owner of a deadline, by index.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Timer {
    /// A switch.
    Switch(usize),
    /// The FCF of a segment.
    Fcf(usize),
    /// The controller of a station.
    Station(usize),
    /// The LLDP agent of an Ethernet port.
    Agent(usize),
    /// A port of a storage system, by indices.
    StoragePort(usize, u16),
    /// A host port of the instance.
    Host(usize),
    /// The egress queue of an Ethernet port; its first frame reaches the hold time.
    Egress(usize),
    /// The pause of the peer of an Ethernet port is repeated.
    Pause(usize),
}

/// The deadlines of an instance in order of time.
#[derive(Debug, Default)]
pub struct Deadlines {
    alarms: Alarms<Timer>,
    due: Vec<Timer>,
}

impl Deadlines {
    /// Replaces the deadline of a timer; `None` stops it.
    pub fn update(&mut self, timer: Timer, at: Option<Instant>) {
        match at {
            Some(at) => self.alarms.set(timer, at),
            None => self.alarms.clear(timer),
        }
    }

    /// The deadline of a timer, if it runs.
    pub fn at(&self, timer: Timer) -> Option<Instant> {
        self.alarms.at(timer)
    }

    /// The earliest deadline.
    pub fn next(&self) -> Option<Instant> {
        self.alarms.next()
    }

    /// Stops all timers that are due and returns them in order of time. Return the list with
    /// [`reuse`](Self::reuse).
    pub fn take_due(&mut self, now: Instant) -> Vec<Timer> {
        let mut due = std::mem::take(&mut self.due);
        debug_assert!(due.is_empty(), "{} timers are served twice", due.len());
        due.extend(std::iter::from_fn(|| self.alarms.due(now)));
        debug_assert!(self.next().is_none_or(|at| at > now), "a timer that is due was not taken");
        due
    }

    /// Keeps the memory of a list for the next call of [`take_due`](Self::take_due).
    pub fn reuse(&mut self, mut list: Vec<Timer>) {
        list.clear();
        self.due = list;
    }
}
