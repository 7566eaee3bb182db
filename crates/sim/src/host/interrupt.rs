//! Interrupt coalescing.

use super::cpu::{Cpu, Work};
use sanloom_fc::config::Interrupt;

/// Interrupt coalescing for one HBA. An interrupt is raised when enough completions are pending or
/// the oldest one has waited long enough. It costs processor time once for all of them, and the
/// host sees the completions when that work is done.
///
/// Completions are handled in order of arrival. The caller keeps them in a queue and takes
/// [`RaisedInterrupt::completions`] from its front.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Interrupts {
    config: Option<Interrupt>,
    pending: u32,
    deadline_ps: u64,
    raised: u64,
}

/// A raised interrupt.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct RaisedInterrupt {
    /// Number of completions the host sees, oldest first.
    pub completions: u32,
    /// Time at which the processor has handled the interrupt.
    pub handled_ps: u64,
}

impl Interrupts {
    /// Returns a state without pending completions. Without `config`, each completion is handled
    /// at once and costs no time.
    pub fn new(config: Option<Interrupt>) -> Interrupts {
        Interrupts { config, pending: 0, deadline_ps: u64::MAX, raised: 0 }
    }

    /// Adds a completion at `now_ps`. Returns the interrupt if one is raised.
    pub fn complete(&mut self, now_ps: u64, cpu: &mut Cpu) -> Option<RaisedInterrupt> {
        let Some(config) = self.config else {
            return Some(RaisedInterrupt { completions: 1, handled_ps: now_ps });
        };
        if self.pending == 0 {
            self.deadline_ps = now_ps.saturating_add(config.max_wait.0);
        }
        self.pending += 1;
        let due = self.pending >= config.max_frames || self.deadline_ps <= now_ps;
        due.then(|| self.raise(now_ps, config.cost.0, cpu))
    }

    /// Raises an interrupt if the time of [`Interrupts::poll_timeout`] has been reached; otherwise
    /// does nothing.
    pub fn timeout(&mut self, now_ps: u64, cpu: &mut Cpu) -> Option<RaisedInterrupt> {
        let cost_ps = self.config?.cost.0;
        let due = self.pending > 0 && self.deadline_ps <= now_ps;
        due.then(|| self.raise(now_ps, cost_ps, cpu))
    }

    /// Returns the time at which the oldest completion has waited long enough.
    pub fn poll_timeout(&self) -> Option<u64> {
        (self.pending > 0).then_some(self.deadline_ps)
    }

    /// Returns the number of interrupts since the start of the measurement.
    pub fn raised(&self) -> u64 {
        self.raised
    }

    /// Restarts the measurement at the end of the warm-up.
    pub fn restart(&mut self) {
        self.raised = 0;
    }

    fn raise(&mut self, now_ps: u64, cost_ps: u64, cpu: &mut Cpu) -> RaisedInterrupt {
        let completions = std::mem::take(&mut self.pending);
        self.deadline_ps = u64::MAX;
        self.raised += 1;
        RaisedInterrupt { completions, handled_ps: cpu.run(now_ps, Work::Interrupt, cost_ps) }
    }
}
