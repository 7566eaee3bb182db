//! A host: streams of requests, its queues, processor, buses and paths (document 001, section 2.2).

mod agenda;
mod commands;
mod paths;

use super::path::Paths;
use crate::host::{Bus, Cpu, Interrupts, IoQueue, Member};
use crate::net::NEVER;
use crate::stats::{LatencyHistogram, Series, Summary};
use crate::workload::Stream;
use sanloom_core::config;
use sanloom_core::fcp::initiator::Outcome;
use std::cmp::Reverse;
use std::collections::{BinaryHeap, VecDeque};

/// Marks the tag of a path's test command.
pub(super) const PROBE: u64 = 1 << 63;
/// Marks the tag of a test command that is counted; see [`super::World::try_path`].
pub(super) const TRIAL: u64 = 1 << 62;

/// One host.
pub struct HostNode {
    /// Its N_Ports, by HBA.
    pub nports: Vec<u16>,
    /// Waiting and outstanding requests.
    pub queue: IoQueue,
    /// Its streams, with the index of their workload.
    pub streams: Vec<(u16, Stream)>,
    /// Processor.
    pub cpu: Cpu,
    /// Interrupt coalescing, by HBA.
    pub interrupts: Vec<Interrupts>,
    /// Buses of its HBAs; empty: infinitely fast. A virtual machine has none: its data crosses that of its hypervisor.
    pub buses: Vec<Bus>,
    /// Paths to each storage system that it uses.
    pub paths: Paths,
    /// What it has measured.
    pub measured: HostMeasure,
    bus_config: Option<config::Bus>,
    cpu_per_io_ps: u64,
    retries: u8,
    commands: Vec<Sent>,
    /// Parked commands that have a path again and go on when there is room among the outstanding ones.
    returning: VecDeque<u32>,
    /// Completions that no interrupt has shown yet, by HBA.
    unseen: Vec<VecDeque<(u64, Outcome)>>,
    agenda: BinaryHeap<Reverse<(u64, u64, Job)>>,
    next_job: u64,
    members: Vec<Member>,
    /// It makes no more requests.
    stopped: bool,
    /// A virtual machine that has logged out for good.
    pub(super) is_gone: bool,
    /// Others have virtual ports on the same HBAs.
    shares_hbas: bool,
    /// A virtual machine on its way to another hypervisor.
    pub(super) is_moving: bool,
}

/// What a host has measured since the end of the warm-up.
pub struct HostMeasure {
    /// Response times of requests.
    pub latency: LatencyHistogram,
    /// The same for reads and writes apart.
    pub by_direction: [Summary; 2],
    /// Times of commands, from their departure to their end.
    pub command_latency: LatencyHistogram,
    /// Requests made, and their bytes.
    pub offered: [u64; 2],
    /// Completed reads and writes.
    pub ios: [u64; 2],
    /// Bytes of completed reads and writes.
    pub bytes: [u64; 2],
    /// Requests that failed.
    pub failed: u64,
    /// Commands aborted.
    pub aborted: u64,
    /// Commands sent again.
    pub retried: u64,
    /// Times that commands moved to another path because theirs failed.
    pub failovers: u64,
    /// When the last request ended.
    pub last_end_ps: u64,
    /// Longest time without an end although something was under way.
    pub longest_stall_ps: u64,
    /// When that began.
    pub stall_began_ps: u64,
    /// Over time.
    pub series: Series,
}

/// A command that was sent, or is about to be.
#[derive(Clone, Copy, Debug)]
struct Sent {
    system: u16,
    path: u16,
    hba: u16,
    /// The N_Port whose frame window has room for it.
    plane: u16,
    attempts: u8,
    generation: u32,
    bytes: u32,
    sent_ps: u64,
    stage: Stage,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Stage {
    /// Not in use.
    Free,
    /// Waits for the processor, or for another try.
    Waiting,
    /// The initiator has it.
    Sent,
    /// The initiator has given it back, because its remote port is away; its path may come back.
    Stuck,
    /// It waits for a path.
    NoPath,
}

#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
enum Job {
    /// The next request of an open stream.
    Arrival(u32),
    /// A request of a closed stream after its think time.
    Follow(u32),
    /// The processor has made a command.
    Submit(u32, u32),
    /// An interrupt has been served: so many completions of an HBA are seen.
    Seen(u16, u32),
    /// The first completion of an HBA has waited long enough.
    Interrupt(u16),
    /// A frame has crossed the bus on its way in.
    DmaIn(u16, u32),
    /// A frame has crossed the bus on its way out.
    DmaOut(u32),
    /// A timeout of the paths to a storage system.
    Paths(u16),
    /// The host is to log out as soon as its last request has ended.
    Stop,
}

/// What of a host does not come out of its configuration.
pub struct HostPlan {
    /// Its N_Ports, by HBA.
    pub nports: Vec<u16>,
    /// Its streams, with the index of their workload.
    pub streams: Vec<(u16, Stream)>,
    /// Others have virtual ports on the same HBAs.
    pub shares_hbas: bool,
    /// Significant digits of its histograms.
    pub digits: u8,
    /// Paths.
    pub paths: Paths,
    /// Time series.
    pub series: Series,
}

impl HostNode {
    /// A host at rest.
    pub fn new(config: &config::Host, plan: HostPlan) -> HostNode {
        let hbas = config.hbas.len();
        let buses = config.bus.map_or(0, |bus| hbas.div_ceil(usize::from(bus.shared_by.max(1))));
        HostNode {
            nports: plan.nports,
            queue: IoQueue::new(&config.queue),
            streams: plan.streams,
            cpu: Cpu::default(),
            interrupts: vec![Interrupts::new(config.interrupt); hbas],
            buses: config.bus.iter().flat_map(|bus| std::iter::repeat_n(Bus::new(bus), buses)).collect(),
            paths: plan.paths,
            measured: HostMeasure {
                latency: LatencyHistogram::with_digits(plan.digits),
                by_direction: Default::default(),
                command_latency: LatencyHistogram::with_digits(plan.digits),
                offered: [0; 2],
                ios: [0; 2],
                bytes: [0; 2],
                failed: 0,
                aborted: 0,
                retried: 0,
                failovers: 0,
                last_end_ps: 0,
                longest_stall_ps: 0,
                stall_began_ps: 0,
                series: plan.series,
            },
            bus_config: config.bus,
            cpu_per_io_ps: config.cpu_per_io.0,
            retries: config.retries,
            commands: Vec::new(),
            returning: VecDeque::new(),
            unseen: vec![Default::default(); hbas],
            agenda: BinaryHeap::new(),
            next_job: 0,
            members: Vec::new(),
            stopped: false,
            shares_hbas: plan.shares_hbas,
            is_moving: false,
            is_gone: false,
        }
    }

    /// Begins to measure anew; the time series goes on unless a new one is given.
    pub fn restart(&mut self, now_ps: u64, series: Option<Series>) {
        self.queue.restart(now_ps);
        self.cpu.restart(now_ps);
        self.buses.iter_mut().for_each(|bus| bus.restart(now_ps));
        self.interrupts.iter_mut().for_each(Interrupts::restart);
        self.paths.restart();
        let measured = &mut self.measured;
        measured.latency.clear();
        measured.command_latency.clear();
        measured.by_direction = Default::default();
        (measured.offered, measured.ios, measured.bytes) = ([0; 2], [0; 2], [0; 2]);
        (measured.failed, measured.aborted, measured.retried, measured.failovers) = (0, 0, 0, 0);
        measured.last_end_ps = now_ps;
        measured.longest_stall_ps = 0;
        if let Some(series) = series {
            measured.series = series;
        }
    }

    /// When the bus will have moved a frame, `None` if there is no bus.
    #[inline]
    pub fn occupy_bus(&mut self, now: u64, hba: u16, bytes: u16) -> Option<u64> {
        let config = self.bus_config.as_ref()?;
        let bus = self.buses.get_mut(usize::from(Bus::index_of(config, hba)))?;
        Some(bus.occupy(now, u64::from(bytes)))
    }

    /// Makes no more requests.
    pub(super) fn stop(&mut self, now: u64) {
        self.stopped = true;
        self.plan(now, Job::Stop);
    }

    /// Requests that are waiting or under way.
    pub fn busy(&self) -> bool {
        self.queue.waiting().level() > 0 || self.commands.iter().any(|command| command.stage != Stage::Free)
    }

    fn plan(&mut self, at: u64, job: Job) {
        self.next_job += 1;
        self.agenda.push(Reverse((at, self.next_job, job)));
    }

    fn next_job_at(&self) -> u64 {
        self.agenda.peek().map_or(NEVER, |Reverse((at, ..))| *at)
    }
}

impl Sent {
    const FREE: Sent = Sent {
        system: 0,
        path: u16::MAX,
        hba: 0,
        plane: 0,
        attempts: 0,
        generation: 0,
        bytes: 0,
        sent_ps: 0,
        stage: Stage::Free,
    };
}
