//! A host: request streams, queues, processor, buses and paths (the SANSim paper, section 2.2).

mod agenda;
mod commands;
mod completions;
pub(super) mod divide;
mod dma;
mod hosts;
mod iscsi_hba;
mod paths;
mod recovery;
mod tcp;
mod windows;

pub(super) use agenda::Due;
pub(super) use commands::{CommandEnd, fail_request};
pub use hosts::{Hosts, LoggedRequest, RequestLog};
pub(super) use hosts::{HostsPlan, transmit_frame};
pub(super) use iscsi_hba::handle_pdu;
pub(super) use paths::{PathTest, lun_owner_changed};
pub(super) use tcp::{TcpOrders, TcpPort, charge as charge_tcp, charge_completion, event as tcp_event};

use super::path::Paths;
use crate::host::{Bus, CommandId, Cpu, Device, Direction, FifoServer, Interrupts, IoQueue, Member, Work};
use crate::net::NEVER;
use crate::stats::{LatencyHistogram, Series, Summary};
use crate::workload::{RequestOp, Stream};
use sanloom_fc::config::{self, Picos};
use sanloom_fc::fcp::initiator::Outcome;
use std::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap, VecDeque};

/// Tag bit of a test command on a path.
const PROBE: u64 = 1 << 63;
/// Tag bit of a test command whose outcome is counted; see [`super::World::try_path`].
const TRIAL: u64 = 1 << 62;

/// Tag bit of a task management function, which has the bit [`PROBE`] as well.
const RESET: u64 = 1 << 61;

/// Path number of a command without a path.
const NO_PATH: u16 = u16::MAX;

/// N_Port of a command that does not use Fibre Channel.
const NO_PLANE: u16 = u16::MAX;

/// One host.
pub struct HostNode {
    /// N_Port numbers, indexed by HBA.
    pub nports: Vec<u16>,
    /// Waiting and outstanding requests.
    pub queue: IoQueue,
    /// Streams, each with the index of its workload.
    pub streams: Vec<(u16, Stream)>,
    pub cpu: Cpu,
    /// Interrupt coalescing, indexed by HBA.
    pub interrupts: Vec<Interrupts>,
    /// Own processors of the HBAs.
    pub hba_processors: Vec<FifoServer>,
    /// Processors of iSCSI adapters, one for each pair of an interface and a storage system.
    pub iscsi_hbas: BTreeMap<(u16, u16), FifoServer>,
    /// Buses of the HBAs; empty if transfers take no time. A virtual machine has none, because its
    /// data uses the buses of its hypervisor.
    pub buses: Vec<Bus>,
    /// Paths to each storage system that the host uses.
    pub paths: Paths,
    pub measured: HostMeasure,
    bus_config: Option<config::Bus>,
    cpu_per_io_ps: u64,
    /// True if commands and their data cost the processor nothing but interrupts.
    is_free: bool,
    /// Number of the first adapter of SRP; those of iSCSI are between it and the HBAs.
    pub first_srp: u16,
    /// True if the data of a completed command take time of a driver.
    has_data_cost: bool,
    /// Number of the first adapter of iSCSI over InfiniBand; those on Ethernet are before it.
    first_ipoib: u16,
    /// Time of the processor for a command of a virtual machine, in ps.
    guest_cpu_per_io_ps: u64,
    limits: recovery::Limits,
    /// `None` before the first error.
    recovery: Option<Box<recovery::Recovery>>,
    commands: Vec<SentCommand>,
    /// Pieces of requests that wait for the map of a virtual disk.
    pub(in crate::world) held: u32,
    /// Parked commands that have a path again and continue when the limit on outstanding commands
    /// allows it.
    unparked: VecDeque<u32>,
    /// Completions that the host has not processed yet, indexed by HBA.
    completions: Vec<VecDeque<(u64, Outcome)>>,
    agenda: BinaryHeap<Reverse<(u64, u64, Job)>>,
    next_job: u64,
    members: Vec<Member>,
    /// Frames on the buses for this host.
    dma: dma::FramePool,
    /// True if the host has stopped issuing requests.
    stopped: bool,
    /// True if this virtual machine has logged out permanently.
    is_logged_out: bool,
    /// True if other hosts have virtual ports on the same HBAs.
    shares_hbas: bool,
    /// True if this virtual machine is moving to another hypervisor.
    is_moving: bool,
}

/// Measurements of a host since the end of the warm-up.
pub struct HostMeasure {
    /// Response times of requests.
    pub latency: LatencyHistogram,
    /// Response times of reads and of writes.
    pub by_direction: [Summary; 2],
    /// Times of commands from submission to completion.
    pub command_latency: LatencyHistogram,
    /// Number of requests issued, and their bytes.
    pub offered: [u64; 2],
    /// Completed reads and writes.
    pub ios: [u64; 2],
    /// Bytes of completed reads and writes.
    pub bytes: [u64; 2],
    pub failed: u64,
    pub aborted: u64,
    /// Commands sent again.
    pub retried: u64,
    /// Failovers: moves of commands from a failed path to another one.
    pub failovers: u64,
    /// Time at which the last request ended.
    pub last_end_ps: u64,
    /// Longest time in which no request ended although one was in flight.
    pub longest_stall_ps: u64,
    /// Start of the longest stall.
    pub stall_began_ps: u64,
    /// Times without a completed request.
    pub outage: Outage,
    /// Time series of completions.
    pub series: Series,
}

/// Times in which a host with requests in flight completes none. Failed requests do not end them.
#[derive(Clone, Copy, Default, PartialEq, Eq, Debug)]
pub struct Outage {
    /// Time of the last completion, or of the first request after an idle time.
    began_ps: u64,
    /// Longest time that a completion has ended.
    longest_ps: u64,
    /// A request failed after the last completion, so no idle time ends the outage.
    failed: bool,
}

impl Outage {
    /// Restarts the measurement; a time that has begun counts from now on.
    fn restart(&mut self, now_ps: u64) {
        *self = Outage { began_ps: now_ps, longest_ps: 0, failed: false };
    }

    /// An idle host gets a request.
    pub(super) fn request(&mut self, now_ps: u64) {
        if !self.failed {
            self.began_ps = now_ps;
        }
    }

    /// A request completes (`good`) or fails.
    pub(super) fn end(&mut self, now_ps: u64, good: bool) {
        if good {
            self.longest_ps = self.longest_ps.max(now_ps - self.began_ps);
            self.began_ps = now_ps;
        }
        self.failed = !good;
    }

    /// Returns the longest time without a completion in ps, and whether a completion ended it.
    pub fn longest(&self, busy: bool, now_ps: u64) -> (u64, bool) {
        let open_ps = if busy || self.failed { now_ps.saturating_sub(self.began_ps) } else { 0 };
        (self.longest_ps.max(open_ps), open_ps <= self.longest_ps)
    }
}

/// A command that has been sent or is about to be sent.
#[derive(Clone, Copy, Debug)]
struct SentCommand {
    system: u16,
    path: u16,
    hba: u16,
    /// N_Port of the frame path whose window holds the command's data.
    plane: u16,
    /// Attempts on the path that failed.
    attempts: u8,
    generation: u32,
    bytes: u32,
    sent_ps: u64,
    /// Time since which the command has this path.
    since_ps: u64,
    stage: Stage,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Stage {
    /// Unused entry.
    Free,
    /// Waiting for the processor or for a retry.
    Waiting,
    /// Submitted to the initiator.
    Sent,
    /// Waiting for room in the queue of its LUN.
    Held,
    /// Waiting for the end of error handling at its HBA.
    Stopped,
    /// Its ABTS was not answered; the error handler of its HBA decides.
    Failed,
    /// Returned by the initiator because its remote port is gone; the path may recover.
    PortLost,
    /// Waiting for a path.
    Parked,
}

#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
enum Job {
    /// Next request of an open stream.
    Arrival(u32),
    /// Request of a closed stream after its think time.
    AfterThinkTime(u32),
    /// The processor has prepared a command.
    Carry(u32, u32),
    /// The processor of the hypervisor, if any, has passed the command on.
    ThroughHba(u32, u32),
    /// The processor of the HBA has passed the command on.
    Submit(u32, u32),
    /// An interrupt has been handled: the host processes this many completions of an HBA.
    InterruptHandled(u16, u32),
    /// The coalescing delay of the oldest completion of an HBA has expired.
    Interrupt(u16),
    /// The bus has moved an incoming frame.
    DmaIn(u16, u32),
    /// The bus has moved an outgoing frame.
    DmaOut(u32),
    /// A timeout of the paths to a storage system has expired.
    Paths(u16),
    /// The paths to a storage system are checked after its LUNs have moved.
    PathCheck(u16),
    /// Log out once the last request has ended.
    Stop,
    /// The pause of a LUN that refused a command is over.
    Unblock(Device),
    /// The next command of a LUN whose commands are held may be sent.
    Release(Device),
    /// A time limit of the error handler of an HBA has expired.
    ErrorHandler(u16),
    /// Reset an HBA.
    ResetHba(u16),
}

/// Host state that is not derived from its configuration.
pub struct HostPlan {
    /// N_Port numbers, indexed by HBA.
    pub nports: Vec<u16>,
    /// Number of Ethernet interfaces, or of those of InfiniBand if there are more.
    pub interfaces: u16,
    /// Number of iSCSI initiator ports, which are numbered after the HBAs.
    pub tcp_ports: u16,
    /// Number of those on Ethernet, which come first.
    pub ethernet_ports: u16,
    /// Number of SRP initiator ports, which follow.
    pub srp_ports: u16,
    /// Streams, each with the index of its workload.
    pub streams: Vec<(u16, Stream)>,
    /// True if other hosts have virtual ports on the same HBAs.
    pub shares_hbas: bool,
    /// Significant digits of the histograms.
    pub digits: u8,
    pub paths: Paths,
    pub series: Series,
}

impl HostNode {
    /// Returns whether a command still waits for the processor.
    fn waits(&self, command: u32, generation: u32) -> bool {
        let sent = &self.commands[command as usize];
        sent.generation == generation && sent.stage == Stage::Waiting
    }

    /// Marks a virtual machine as moving to another hypervisor.
    pub(in crate::world) fn begin_move(&mut self) {
        self.is_moving = true;
    }

    /// Ends the move of a virtual machine. Returns false if it was not moving.
    pub(in crate::world) fn end_move(&mut self) -> bool {
        std::mem::take(&mut self.is_moving)
    }

    /// Charges the processor for a command of a virtual machine that leaves through an HBA, and
    /// returns the end of this work.
    fn carry_guest(&mut self, now: u64, hba: u16) -> u64 {
        match self.guest_cpu_per_io_ps {
            0 => now,
            cost => self.cpu.run(now, hba, Work::Hypervisor, cost),
        }
    }

    /// Charges the processor for a command that leaves, and returns the end of this work.
    #[inline(never)]
    fn charge_command(&mut self, now: u64, command: u32) -> u64 {
        let SentCommand { hba, bytes, .. } = self.commands[command as usize];
        let op = self.queue.command(CommandId(command)).map_or(RequestOp::Flush, |queued| queued.op);
        if usize::from(hba) >= self.nports.len() {
            let config = self.cpu.config();
            let driver = match config.iscsi_hba.filter(|_| hba < self.first_ipoib) {
                Some(adapter) => adapter.driver_per_command,
                None if hba < self.first_srp => config.tcp.per_command,
                None => config.srp.per_command,
            };
            let parts = [(Work::Request, self.cpu_per_io_ps), (Work::Command, driver.0)];
            let is_free = parts.iter().all(|(_, cost_ps)| *cost_ps == 0);
            return if is_free { now } else { self.cpu.run_all(now, hba, &parts) };
        }
        let fc = self.cpu.config().fc;
        let data_ps = if op.is_write() { config::per_kib(fc.per_kib_written, bytes.into()).0 } else { 0 };
        if self.cpu_per_io_ps + fc.per_command.0 + data_ps == 0 {
            return now;
        }
        let parts = [(Work::Request, self.cpu_per_io_ps), (Work::Command, fc.per_command.0), (Work::Data, data_ps)];
        self.cpu.run_all(now, hba, &parts)
    }

    /// Returns the time that the driver of an HBA takes for the data of a completed command, in ps.
    fn data_cost_ps(&self, hba: u16, tag: u64) -> u64 {
        if !self.has_data_cost || tag & PROBE != 0 {
            return 0;
        }
        self.paid_data_cost_ps(hba, tag)
    }

    #[inline(never)]
    fn paid_data_cost_ps(&self, hba: u16, tag: u64) -> u64 {
        if usize::from(hba) >= self.nports.len() {
            return iscsi_hba::data_cost_ps(self, hba, tag);
        }
        let cost = self.cpu.config().fc.per_kib_read;
        let command = self.queue.command(CommandId(tag as u32)).filter(|command| command.op == RequestOp::Read);
        command.map_or(0, |command| config::per_kib(cost, command.bytes.into()).0)
    }

    /// Reserves the processor of an HBA for a command, and returns the end of this work.
    fn occupy_hba(&mut self, now: u64, hba: u16, is_write: bool, bytes: u32) -> u64 {
        match self.cpu.config().hba.time_of(is_write, bytes).0 {
            0 => now,
            time => self.hba_processors[usize::from(hba)].occupy(now, time),
        }
    }

    /// Returns an idle host.
    pub fn new(config: &config::Host, plan: HostPlan) -> HostNode {
        let hbas = config.hbas.len();
        // Interfaces of Ethernet and InfiniBand have interrupts of their own.
        let own = hbas as u16..(hbas as u16).saturating_add(plan.tcp_ports).saturating_add(plan.srp_ports);
        let interrupts = (0..hbas as u16)
            .map(|hba| Interrupts::new(config.interrupt, hba))
            .chain(own.map(|port| Interrupts::new(None, port)));
        HostNode {
            nports: plan.nports,
            queue: IoQueue::new(&config.queue),
            streams: plan.streams,
            cpu: Cpu::new(&config.processor),
            interrupts: interrupts.collect(),
            hba_processors: vec![FifoServer::default(); hbas],
            iscsi_hbas: BTreeMap::new(),
            buses: Bus::of_node(config.bus.as_ref(), plan.interfaces.max(hbas as u16)),
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
                outage: Outage::default(),
                series: plan.series,
            },
            bus_config: config.bus,
            cpu_per_io_ps: config.cpu_per_io.0,
            is_free: config.cpu_per_io == Picos::ZERO
                && config.processor.fc == config::DriverCost::default()
                && config.processor.tcp.per_command == Picos::ZERO
                && config.processor.iscsi_hba.is_none()
                && config.processor.srp.per_command == Picos::ZERO,
            first_srp: hbas as u16 + plan.tcp_ports,
            has_data_cost: config.processor.fc.per_kib_read != Picos::ZERO || config.processor.iscsi_hba.is_some(),
            first_ipoib: hbas as u16 + plan.ethernet_ports,
            guest_cpu_per_io_ps: config.guest_cpu_per_io.0,
            limits: recovery::Limits::new(config, plan.shares_hbas),
            recovery: None,
            commands: Vec::new(),
            held: 0,
            unparked: VecDeque::new(),
            completions: vec![Default::default(); hbas + usize::from(plan.tcp_ports + plan.srp_ports)],
            agenda: BinaryHeap::new(),
            next_job: 0,
            members: Vec::new(),
            dma: dma::FramePool::default(),
            stopped: false,
            shares_hbas: plan.shares_hbas,
            is_moving: false,
            is_logged_out: false,
        }
    }

    /// Restarts the measurements. The time series continues unless a new one is given.
    pub fn restart(&mut self, now_ps: u64, series: Option<Series>) {
        self.queue.restart(now_ps);
        self.cpu.restart(now_ps);
        self.hba_processors.iter_mut().for_each(|hba| hba.restart(now_ps));
        self.iscsi_hbas.values_mut().for_each(|hba| hba.restart(now_ps));
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
        measured.outage.restart(now_ps);
        if let Some(series) = series {
            measured.series = series;
        }
    }

    /// Returns the entry of a command, with a new generation: completions of earlier attempts no
    /// longer match its tag.
    fn renew(&mut self, command: u32) -> &mut SentCommand {
        let sent = &mut self.commands[command as usize];
        sent.generation = sent.generation.wrapping_add(1) & 0x7fff_ffff;
        sent
    }

    /// Returns the commands on a path in one of these stages.
    fn commands_on(&self, system: u16, path: u16, stages: &[Stage]) -> Vec<u32> {
        let matches = |sent: &SentCommand| stages.contains(&sent.stage) && (sent.system, sent.path) == (system, path);
        let commands = self.commands.iter().zip(0..);
        commands.filter(|(sent, _)| matches(sent)).map(|(_, number)| number).collect()
    }

    /// Reserves the bus for a frame. Returns the end of the transfer, or `None` if there is no bus.
    #[inline]
    pub fn occupy_bus(&mut self, now: u64, hba: u16, direction: Direction, bytes: u16) -> Option<u64> {
        let config = self.bus_config.as_ref()?;
        let bus = self.buses.get_mut(usize::from(Bus::index_of(config, hba)))?;
        Some(bus.occupy(now, direction, u64::from(bytes)))
    }

    /// Moves bytes between the memory and an Ethernet interface or a channel adapter, counted from
    /// 0. Returns the end of the transfer in ps; without a bus, now.
    pub fn transfer(&mut self, now_ps: u64, adapter: u16, direction: Direction, bytes: u64) -> u64 {
        let bus = self.bus_config.and_then(|config| self.buses.get_mut(usize::from(Bus::index_of(&config, adapter))));
        bus.map_or(now_ps, |bus| bus.occupy(now_ps, direction, bytes))
    }

    /// Returns whether this virtual machine has logged out permanently.
    pub(super) fn is_logged_out(&self) -> bool {
        self.is_logged_out
    }

    /// Returns whether a request is waiting or in flight.
    pub fn is_busy(&self) -> bool {
        self.held > 0
            || self.queue.waiting().level() > 0
            || self.commands.iter().any(|command| command.stage != Stage::Free)
    }

    /// Returns the longest time without a completed request in ps, and whether a completion ended
    /// it.
    pub fn longest_outage(&self, now_ps: u64) -> (u64, bool) {
        self.measured.outage.longest(self.is_busy(), now_ps)
    }

    /// Returns the time of submission of the oldest command in flight that has a path.
    pub fn oldest_command_ps(&self) -> Option<u64> {
        let has_path = |command: &&SentCommand| !matches!(command.stage, Stage::Free | Stage::Parked);
        self.commands.iter().filter(has_path).map(|command| command.sent_ps).min()
    }

    /// Returns the number of requests that wait for a path.
    pub fn parked(&self) -> u64 {
        let parked = (0..).zip(&self.commands).filter(|(_, command)| command.stage == Stage::Parked);
        let commands = parked.filter_map(|(id, _)| self.queue.command(CommandId(id)));
        commands.map(|command| u64::from(command.requests)).sum()
    }

    /// Stops issuing requests. Requests that wait or are in flight continue.
    pub fn pause(&mut self) {
        self.stopped = true;
    }

    /// Plans a job. Jobs at the same time run in the order in which they were planned.
    fn plan(&mut self, at: u64, job: Job) {
        self.next_job += 1;
        self.agenda.push(Reverse((at, self.next_job, job)));
    }

    /// Returns the time of the next job, or [`NEVER`] if none is planned.
    fn next_job_ps(&self) -> u64 {
        self.agenda.peek().map_or(NEVER, |Reverse((at, ..))| *at)
    }
}

impl SentCommand {
    const FREE: SentCommand = SentCommand {
        system: 0,
        path: NO_PATH,
        hba: 0,
        plane: 0,
        attempts: 0,
        generation: 0,
        bytes: 0,
        sent_ps: 0,
        since_ps: 0,
        stage: Stage::Free,
    };
}
