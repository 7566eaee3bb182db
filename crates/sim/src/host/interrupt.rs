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
    /// Number of the adapter.
    adapter: u16,
    pending: u32,
    /// Work of the driver for the data of the pending completions, in ps.
    pending_data_ps: u64,
    deadline_ps: u64,
    /// Present delay.
    wait_ps: u64,
    /// Time at which the last interrupt is handled; several cores keep the order.
    handled_ps: u64,
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

/// An interface of iSCSI or SRP of a storage system.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Interface {
    /// Interface of IP, by its number in the lab.
    Ip(u16),
    /// Port of SRP, by its number among the ports of the storage system.
    Srp(u16),
}

/// An arrival at an interface with interrupts.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Arrival {
    /// The interrupt that it has raised.
    pub raised: Option<RaisedInterrupt>,
    /// Time at which a wait that begins with it is over, in ps.
    pub timeout_ps: Option<u64>,
}

impl Interrupts {
    /// Returns a state without pending completions. Without `config`, each completion is handled
    /// at once and costs no time.
    pub fn new(config: Option<Interrupt>, adapter: u16) -> Interrupts {
        Interrupts {
            config,
            adapter,
            pending: 0,
            pending_data_ps: 0,
            deadline_ps: u64::MAX,
            wait_ps: config.map_or(0, |config| config.min_wait.unwrap_or(config.max_wait).0),
            handled_ps: 0,
            raised: 0,
        }
    }

    /// Adds a completion at `now_ps`, whose data cost the driver `data_ps`. Returns the interrupt
    /// if one is raised.
    #[inline]
    pub fn complete(&mut self, now_ps: u64, data_ps: u64, cpu: &mut Cpu) -> Option<RaisedInterrupt> {
        if self.config.is_none() && data_ps == 0 && self.handled_ps <= now_ps {
            return Some(RaisedInterrupt { completions: 1, handled_ps: now_ps });
        }
        self.complete_with_work(now_ps, data_ps, cpu)
    }

    #[inline(never)]
    fn complete_with_work(&mut self, now_ps: u64, data_ps: u64, cpu: &mut Cpu) -> Option<RaisedInterrupt> {
        let Some(config) = self.config else {
            let handled_ps = match data_ps {
                0 => now_ps.max(self.handled_ps),
                _ => cpu.run(now_ps, self.adapter, Work::Data, data_ps).max(self.handled_ps),
            };
            self.handled_ps = handled_ps;
            return Some(RaisedInterrupt { completions: 1, handled_ps });
        };
        if self.pending == 0 {
            self.deadline_ps = now_ps.saturating_add(self.wait_ps);
        }
        self.pending += 1;
        self.pending_data_ps += data_ps;
        let due = self.pending >= config.max_frames || self.deadline_ps <= now_ps;
        due.then(|| self.raise(now_ps, &config, cpu))
    }

    /// Raises an interrupt if the time of [`Interrupts::poll_timeout`] has been reached; otherwise
    /// does nothing.
    pub fn timeout(&mut self, now_ps: u64, cpu: &mut Cpu) -> Option<RaisedInterrupt> {
        let config = self.config?;
        let due = self.pending > 0 && self.deadline_ps <= now_ps;
        due.then(|| self.raise(now_ps, &config, cpu))
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

    fn raise(&mut self, now_ps: u64, config: &Interrupt, cpu: &mut Cpu) -> RaisedInterrupt {
        let completions = std::mem::take(&mut self.pending);
        let data_ps = std::mem::take(&mut self.pending_data_ps);
        if let Some(shortest) = config.min_wait {
            self.wait_ps = match completions {
                1 => (self.wait_ps / 2).max(shortest.0),
                _ => self.wait_ps.saturating_mul(2).max(1_000).min(config.max_wait.0),
            };
        }
        self.deadline_ps = u64::MAX;
        self.raised += 1;
        let parts = [(Work::Interrupt, config.cost.0), (Work::Data, data_ps)];
        self.handled_ps = cpu.run_all(now_ps, self.adapter, &parts).max(self.handled_ps);
        RaisedInterrupt { completions, handled_ps: self.handled_ps }
    }
}
