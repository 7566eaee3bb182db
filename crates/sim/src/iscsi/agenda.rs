//! Jobs of iSCSI at their times: [`Agenda`].

use crate::net::{NEVER, Net};
use std::cmp::Reverse;
use std::collections::BinaryHeap;

/// Work that is due at a time.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(super) enum Job {
    /// Open the connection of a session.
    Connect(u32),
    /// A machine at this end of a connection may have a deadline.
    Machine(u32),
    /// The processor has handled this many frames that arrived at an interface.
    Received(u16, u32),
    /// The moderation of the interrupt of an interface is over.
    Interrupt(u16),
    /// The processor has prepared data of an end up to a position.
    Prepared(u32, u64),
}

/// Jobs in the order of their times. Jobs at the same time run in the order of their planning.
#[derive(Debug)]
pub(super) struct Agenda {
    jobs: BinaryHeap<Reverse<(u64, u64, Job)>>,
    planned: u64,
    /// Number of the timer of the network.
    timer: u32,
}

impl Agenda {
    pub fn new(timer: u32) -> Agenda {
        Agenda { jobs: BinaryHeap::new(), planned: 0, timer }
    }

    /// Plans a job.
    pub fn plan(&mut self, net: &mut Net, at_ps: u64, job: Job) {
        self.planned += 1;
        self.jobs.push(Reverse((at_ps, self.planned, job)));
        net.set_timer_earlier(self.timer, at_ps);
    }

    /// Removes and returns a job that is due.
    pub fn pop_due(&mut self, now_ps: u64) -> Option<Job> {
        let Reverse((at_ps, _, job)) = *self.jobs.peek()?;
        (at_ps <= now_ps).then(|| {
            self.jobs.pop();
            job
        })
    }

    /// Sets the timer to the next job.
    pub fn arm(&self, net: &mut Net) {
        let next = self.jobs.peek().map_or(NEVER, |Reverse((at_ps, ..))| *at_ps);
        net.set_timer_earlier(self.timer, next);
    }
}
