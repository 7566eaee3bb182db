//! Interrupt coalescing.

use super::cpu::{Cpu, Work};
use sanloom_core::config::Interrupt;

/// Collects completions of an HBA until there are enough of them or the first has waited long enough, then takes
/// processor time once for all of them. The host sees a completion when that work is done.
///
/// Completions are seen in the order they came, so the caller keeps them in a queue and takes [`Seen::completions`]
/// from its front.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Interrupts {
    config: Option<Interrupt>,
    pending: u32,
    deadline_ps: u64,
    raised: u64,
}

/// An interrupt was raised.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Seen {
    /// So many of the oldest completions not yet seen are seen.
    pub completions: u32,
    /// When: the processor has done its work.
    pub at_ps: u64,
}

impl Interrupts {
    /// No completion pending. Without `config` each completion is seen at once and costs nothing.
    pub fn new(config: Option<Interrupt>) -> Interrupts {
        Interrupts { config, pending: 0, deadline_ps: u64::MAX, raised: 0 }
    }

    /// The HBA completed a command at `now_ps`.
    pub fn complete(&mut self, now_ps: u64, cpu: &mut Cpu) -> Option<Seen> {
        let Some(config) = self.config else {
            return Some(Seen { completions: 1, at_ps: now_ps });
        };
        if self.pending == 0 {
            self.deadline_ps = now_ps.saturating_add(config.max_wait.0);
        }
        self.pending += 1;
        let due = self.pending >= config.max_frames || self.deadline_ps <= now_ps;
        due.then(|| self.raise(now_ps, config.cost.0, cpu))
    }

    /// The time of [`Interrupts::poll_timeout`] has come; harmless if it has not.
    pub fn timeout(&mut self, now_ps: u64, cpu: &mut Cpu) -> Option<Seen> {
        let cost_ps = self.config?.cost.0;
        let due = self.pending > 0 && self.deadline_ps <= now_ps;
        due.then(|| self.raise(now_ps, cost_ps, cpu))
    }

    /// When the first completion has waited long enough.
    pub fn poll_timeout(&self) -> Option<u64> {
        (self.pending > 0).then_some(self.deadline_ps)
    }

    /// Interrupts raised since the start of the measurement.
    pub fn raised(&self) -> u64 {
        self.raised
    }

    /// Starts the measurement anew: the end of the warm-up.
    pub fn restart(&mut self) {
        self.raised = 0;
    }

    fn raise(&mut self, now_ps: u64, cost_ps: u64, cpu: &mut Cpu) -> Seen {
        let completions = std::mem::take(&mut self.pending);
        self.deadline_ps = u64::MAX;
        self.raised += 1;
        Seen { completions, at_ps: cpu.run(now_ps, Work::Interrupt, cost_ps) }
    }
}
