//! The processor of a host.

use super::server::FifoServer;

/// What the processor does.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Work {
    /// Makes a command out of a request (`cpu_per_io`).
    Request,
    /// Serves an interrupt.
    Interrupt,
}

/// One processor that takes its work in the order it came.
///
/// The model: interrupts do not overtake requests, and the application itself needs no time.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Cpu {
    server: FifoServer,
    request_ps: u128,
    interrupt_ps: u128,
}

impl Cpu {
    /// Gives it `cost_ps` of work at `now_ps`; returns when that is done.
    pub fn run(&mut self, now_ps: u64, work: Work, cost_ps: u64) -> u64 {
        match work {
            Work::Request => self.request_ps += u128::from(cost_ps),
            Work::Interrupt => self.interrupt_ps += u128::from(cost_ps),
        }
        self.server.occupy(now_ps, cost_ps)
    }

    /// Processor time given to one kind of work since the start of the measurement.
    pub fn given_ps(&self, work: Work) -> u128 {
        match work {
            Work::Request => self.request_ps,
            Work::Interrupt => self.interrupt_ps,
        }
    }

    /// Busy share of the time since the start of the measurement, 0 to 1.
    pub fn utilisation(&self, now_ps: u64) -> f64 {
        self.server.utilisation(now_ps)
    }

    /// When all work given so far is done.
    pub fn free_at_ps(&self) -> u64 {
        self.server.free_at_ps()
    }

    /// Starts the measurement anew at `now_ps`: the end of the warm-up.
    pub fn restart(&mut self, now_ps: u64) {
        self.server.restart(now_ps);
        self.request_ps = 0;
        self.interrupt_ps = 0;
    }
}
