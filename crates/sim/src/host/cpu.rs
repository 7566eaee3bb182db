//! The processor of a host.

use super::server::FifoServer;

/// Kinds of work of the processor.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Work {
    /// Preparation of a command from a request (`cpu_per_io`).
    Request,
    /// Handling of an interrupt.
    Interrupt,
}

/// A single processor that executes work in order of arrival.
///
/// In this model, interrupts do not overtake requests, and the application itself takes no time.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Cpu {
    server: FifoServer,
    request_ps: u128,
    interrupt_ps: u128,
}

impl Cpu {
    /// Queues `cost_ps` of work at `now_ps` and returns the time of completion.
    pub fn run(&mut self, now_ps: u64, work: Work, cost_ps: u64) -> u64 {
        match work {
            Work::Request => self.request_ps += u128::from(cost_ps),
            Work::Interrupt => self.interrupt_ps += u128::from(cost_ps),
        }
        self.server.occupy(now_ps, cost_ps)
    }

    /// Returns the processor time assigned to one kind of work since the start of the measurement,
    /// in ps.
    pub fn given_ps(&self, work: Work) -> u128 {
        match work {
            Work::Request => self.request_ps,
            Work::Interrupt => self.interrupt_ps,
        }
    }

    /// Returns the busy share of the time since the start of the measurement, 0 to 1.
    pub fn utilisation(&self, now_ps: u64) -> f64 {
        self.server.utilisation(now_ps)
    }

    /// Returns the time at which all work queued so far is complete.
    pub fn free_at_ps(&self) -> u64 {
        self.server.free_at_ps()
    }

    /// Restarts the measurement at `now_ps`, the end of the warm-up.
    pub fn restart(&mut self, now_ps: u64) {
        self.server.restart(now_ps);
        self.request_ps = 0;
        self.interrupt_ps = 0;
    }
}
