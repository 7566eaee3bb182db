//! The processor of a host.

use super::server::FifoServer;
use sanloom_fc::config::{Affinity, HostProcessor, Picos};

/// Kinds of work of the processor.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Work {
    /// Preparation of a command from a request (`cpu_per_io`).
    Request,
    /// The hypervisor's part of a command of its virtual machines (`guest_cpu_per_io`).
    Hypervisor,
    /// The driver's part of a command.
    Command,
    /// The driver's part for each KiB.
    Data,
    /// Handling of an interrupt.
    Interrupt,
    /// Segments of TCP.
    Segments,
    /// Copies between buffers.
    Copy,
    /// Checksums and digests.
    Checksum,
}

impl Work {
    /// All kinds, in the order of the results.
    pub const ALL: [Work; 8] = [
        Work::Request,
        Work::Hypervisor,
        Work::Command,
        Work::Data,
        Work::Interrupt,
        Work::Segments,
        Work::Copy,
        Work::Checksum,
    ];

    /// Returns the name in results.
    pub fn name(self) -> &'static str {
        match self {
            Work::Request => "request",
            Work::Hypervisor => "hypervisor",
            Work::Command => "command",
            Work::Data => "data",
            Work::Interrupt => "interrupt",
            Work::Segments => "segments",
            Work::Copy => "copy",
            Work::Checksum => "checksum",
        }
    }
}

/// A processor. Each core executes its work in order of arrival.
///
/// In this model, interrupts do not overtake requests, and the application itself takes no time.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Cpu {
    config: HostProcessor,
    cores: Vec<FifoServer>,
    given_ps: [u128; Work::ALL.len()],
}

impl Default for Cpu {
    fn default() -> Cpu {
        Cpu::new(&HostProcessor::default())
    }
}

impl Cpu {
    /// Returns an idle processor.
    pub fn new(config: &HostProcessor) -> Cpu {
        let cores = vec![FifoServer::default(); usize::from(config.cores.max(1))];
        Cpu { config: *config, cores, given_ps: [0; Work::ALL.len()] }
    }

    /// Returns the configuration.
    pub fn config(&self) -> &HostProcessor {
        &self.config
    }

    /// Queues `cost_ps` of work for an adapter at `now_ps` and returns the time of completion.
    pub fn run(&mut self, now_ps: u64, adapter: u16, work: Work, cost_ps: u64) -> u64 {
        self.run_all(now_ps, adapter, &[(work, cost_ps)])
    }

    /// Queues several kinds of work as one piece.
    pub fn run_all(&mut self, now_ps: u64, adapter: u16, parts: &[(Work, u64)]) -> u64 {
        let core = self.core_for(now_ps, adapter);
        self.run_on(now_ps, core, parts)
    }

    /// Queues several kinds of work as one piece, on the core of the adapter even if other work is
    /// spread.
    pub fn run_bound(&mut self, now_ps: u64, adapter: u16, parts: &[(Work, u64)]) -> u64 {
        self.run_on(now_ps, usize::from(adapter) % self.cores.len(), parts)
    }

    fn run_on(&mut self, now_ps: u64, core: usize, parts: &[(Work, u64)]) -> u64 {
        let mut total_ps: u64 = 0;
        // Costs are those of an otherwise idle processor; more busy cores make the work longer.
        let busy = if self.cores.len() > 1 { self.busy_beside(now_ps, core) + 1 } else { 1 };
        for &(work, cost_ps) in parts {
            let cost_ps = self.config.scaled(Picos(cost_ps), busy).0;
            self.given_ps[work as usize] += u128::from(cost_ps);
            total_ps = total_ps.saturating_add(cost_ps);
        }
        self.cores[core].occupy(now_ps, total_ps)
    }

    fn core_for(&self, now_ps: u64, adapter: u16) -> usize {
        match self.config.affinity {
            _ if self.cores.len() == 1 => 0,
            Affinity::Adapter => usize::from(adapter) % self.cores.len(),
            Affinity::Spread => {
                let frees = self.cores.iter().map(|core| core.free_at_ps().max(now_ps));
                frees.enumerate().min_by_key(|(_, free_ps)| *free_ps).map_or(0, |(core, _)| core)
            }
        }
    }

    fn busy_beside(&self, now_ps: u64, core: usize) -> u16 {
        let others = self.cores.iter().enumerate().filter(|(other, _)| *other != core);
        others.filter(|(_, other)| other.free_at_ps() > now_ps).count() as u16
    }

    /// Returns the processor time assigned to one kind of work since the start of the measurement,
    /// in ps.
    pub fn given_ps(&self, work: Work) -> u128 {
        self.given_ps[work as usize]
    }

    /// Returns the busy share of all cores in the time since the start of the measurement, 0 to 1.
    pub fn utilisation(&self, now_ps: u64) -> f64 {
        self.cores.iter().map(|core| core.utilisation(now_ps)).sum::<f64>() / self.cores.len() as f64
    }

    /// Returns the busy share of the busiest core in that time.
    pub fn busiest(&self, now_ps: u64) -> f64 {
        self.cores.iter().map(|core| core.utilisation(now_ps)).fold(0.0, f64::max)
    }

    /// Returns the busy time of all cores since the start of the measurement, in ps.
    pub fn busy_ps(&self, now_ps: u64) -> u128 {
        self.cores.iter().map(|core| core.busy_ps(now_ps)).sum()
    }

    /// Restarts the measurement at `now_ps`, the end of the warm-up.
    pub fn restart(&mut self, now_ps: u64) {
        self.cores.iter_mut().for_each(|core| core.restart(now_ps));
        self.given_ps = Default::default();
    }
}
