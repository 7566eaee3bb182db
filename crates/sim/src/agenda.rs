//! Jobs of a protocol at their times: [`Agenda`].

use crate::net::{NEVER, Net};
use std::cmp::Reverse;
use std::collections::BinaryHeap;

/// Jobs in the order of their times. Jobs at the same time run in the order of their planning.
#[derive(Debug)]
pub(crate) struct Agenda<J> {
    jobs: BinaryHeap<Reverse<(u64, u64, J)>>,
    planned: u64,
    /// Number of the timer of the network.
    timer: u32,
}

impl<J: Copy + Ord> Agenda<J> {
    pub fn new(timer: u32) -> Agenda<J> {
        Agenda { jobs: BinaryHeap::new(), planned: 0, timer }
    }

    /// Plans a job.
    pub fn plan(&mut self, net: &mut Net, at_ps: u64, job: J) {
        self.planned += 1;
        self.jobs.push(Reverse((at_ps, self.planned, job)));
        net.set_timer_earlier(self.timer, at_ps);
    }

    /// Removes and returns a job that is due.
    pub fn pop_due(&mut self, now_ps: u64) -> Option<J> {
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
