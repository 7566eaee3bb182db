//! A host: streams of requests, its queues, processor, buses and paths (document 001, section 2.2).

use super::World;
use super::ledger::NoteKind;
use super::path::Paths;
use crate::host::{
    Bus, Choice, CommandId, Cpu, End, FrameWindow, Input as MultipathInput, Interrupts, IoQueue, Member,
    Output as MultipathOutput, PathState, Pushed, Seen, Work,
};
use crate::net::{FrameRef, NEVER};
use crate::stats::{LatencyHistogram, Series, Summary};
use crate::workload::Stream;
use sanloom_core::config;
use sanloom_core::exchange::SeqTx;
use sanloom_core::fcp::DataDirection;
use sanloom_core::fcp::initiator::{self, Outcome};
use sanloom_core::time::Instant;
use sanloom_wire::cdb::{Cdb, status};
use sanloom_wire::lun;
use sanloom_wire::{FcId, Wwpn};
use std::cmp::Reverse;
use std::collections::BinaryHeap;

/// After TASK SET FULL or BUSY a command is sent again this much later, in ps.
const BUSY_RETRY_PS: u64 = 1_000_000_000;
/// A closed loop goes on this much later at the earliest after a request that failed in the moment it was made, in ps:
/// without a pause time would stand still.
const FAILED_AT_ONCE_PS: u64 = 1_000_000_000;
/// Marks the tag of a path's test command.
pub(super) const PROBE: u64 = 1 << 63;
/// Marks the tag of a test command that is counted; see [`World::try_path`].
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
    /// Buses; empty: infinitely fast.
    pub buses: Vec<Bus>,
    /// Paths to each storage system that it uses.
    pub paths: Paths,
    /// What it has measured.
    pub measured: HostMeasure,
    bus_config: Option<config::Bus>,
    cpu_per_io_ps: u64,
    retries: u8,
    windows: Vec<FrameWindow>,
    commands: Vec<Sent>,
    /// Completions that no interrupt has shown yet, by HBA.
    unseen: Vec<std::collections::VecDeque<(u64, Outcome)>>,
    agenda: BinaryHeap<Reverse<(u64, u64, Job)>>,
    next_job: u64,
    members: Vec<Member>,
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
    DmaOut(u16, u32),
    /// A timeout of the paths to a storage system.
    Paths(u16),
}

/// What of a host does not come out of its configuration.
pub struct HostPlan {
    /// Its N_Ports, by HBA.
    pub nports: Vec<u16>,
    /// Its streams, with the index of their workload.
    pub streams: Vec<(u16, Stream)>,
    /// Largest data field of each HBA.
    pub frame_bytes: Vec<u16>,
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
            windows: config
                .hbas
                .iter()
                .zip(&plan.frame_bytes)
                .map(|(hba, &bytes)| FrameWindow::new(hba.data_frames_in_flight, u32::from(bytes)))
                .collect(),
            commands: Vec::new(),
            unseen: vec![Default::default(); hbas],
            agenda: BinaryHeap::new(),
            next_job: 0,
            members: Vec::new(),
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

impl World {
    /// The streams of all hosts begin; their times count from now.
    pub(super) fn start_streams(&mut self) {
        for host in 0..self.hosts.len() as u16 {
            let now = self.net.now();
            let node = &mut self.hosts[usize::from(host)];
            node.measured.last_end_ps = now;
            for stream in 0..node.streams.len() as u32 {
                while let Some(at) = node.streams[stream as usize].1.next_arrival_ps() {
                    node.plan(now + at, Job::Arrival(stream));
                    if node.streams[stream as usize].1.closed_depth().is_none() {
                        break;
                    }
                }
            }
            self.arm_host(host);
        }
    }

    fn arm_host(&mut self, host: u16) {
        let at = self.hosts[usize::from(host)].next_job_at();
        self.net.set_timer_earlier(self.timers.host + u32::from(host), at);
    }

    /// Something planned by a host is due.
    pub(super) fn host_timeout(&mut self, host: u16) {
        let now = self.net.now();
        while self.hosts[usize::from(host)].next_job_at() <= now {
            let Some(Reverse((_, _, job))) = self.hosts[usize::from(host)].agenda.pop() else { break };
            self.host_job(host, job);
        }
        self.pump(host);
        self.arm_host(host);
    }

    fn host_job(&mut self, host: u16, job: Job) {
        let now = self.net.now();
        let start = self.start_ps;
        let node = &mut self.hosts[usize::from(host)];
        match job {
            Job::Arrival(stream) => {
                let open = node.streams[stream as usize].1.closed_depth().is_none();
                self.request(host, stream);
                let node = &mut self.hosts[usize::from(host)];
                if open && let Some(at) = node.streams[stream as usize].1.next_arrival_ps() {
                    node.plan(start + at, Job::Arrival(stream));
                }
            }
            Job::Follow(stream) => self.request(host, stream),
            Job::Submit(command, generation) => {
                let sent = &node.commands[command as usize];
                if sent.generation == generation && sent.stage == Stage::Waiting {
                    self.submit(host, command);
                }
            }
            Job::Seen(hba, count) => self.see(host, hba, count),
            Job::Interrupt(hba) => {
                if let Some(seen) = node.interrupts[usize::from(hba)].timeout(now, &mut node.cpu) {
                    self.seen(host, hba, seen);
                }
            }
            Job::DmaIn(hba, slot) => {
                let nport = node.nports[usize::from(hba)];
                if let Some(frame) = self.dma.remove(slot) {
                    self.net.release(nport, now);
                    self.accept_data(nport, frame);
                }
            }
            Job::DmaOut(hba, slot) => {
                let nport = node.nports[usize::from(hba)];
                if let Some(frame) = self.dma.remove(slot) {
                    self.net.send_frame(nport, frame);
                }
            }
            Job::Paths(system) => {
                node.paths.armed(system, NEVER);
                node.paths.system(system).multipath.handle(now, MultipathInput::Timeout);
                self.drain_paths(host, system);
            }
        }
    }

    /// A data frame goes over the bus into memory.
    pub(super) fn host_dma_in(&mut self, host: u16, hba: u16, done_ps: u64, frame: FrameRef) {
        let slot = self.dma.insert(frame);
        self.hosts[usize::from(host)].plan(done_ps, Job::DmaIn(hba, slot));
        self.arm_host(host);
    }

    /// Write data goes out, over the bus if there is one.
    pub(super) fn host_transmit(&mut self, host: u16, hba: u16, nport: u16, mut seq: SeqTx) {
        let now = self.net.now();
        if self.hosts[usize::from(host)].buses.is_empty() {
            self.net.send_data(nport, seq);
            return;
        }
        while let Some(frame) = seq.next_frame() {
            let node = &mut self.hosts[usize::from(host)];
            if let Some(done_ps) = node.occupy_bus(now, hba, frame.len) {
                let slot = self.dma.insert(FrameRef::data(&seq, &frame));
                node.plan(done_ps, Job::DmaOut(hba, slot));
            }
        }
        self.arm_host(host);
    }

    /// A stream makes a request.
    fn request(&mut self, host: u16, stream: u32) {
        let now = self.net.now();
        let node = &mut self.hosts[usize::from(host)];
        let (workload, source) = &mut node.streams[stream as usize];
        let workload = *workload;
        let request = source.next_request();
        let measured = &mut self.workloads[usize::from(workload)];
        measured.offer(host, request.bytes);
        node.measured.offered[0] += 1;
        node.measured.offered[1] += u64::from(request.bytes);
        self.books.issued += 1;
        if node.queue.outstanding().level() == 0 && node.queue.waiting().level() == 0 {
            node.measured.last_end_ps = now;
        }
        if node.queue.push(request, now, stream) == Pushed::Refused {
            self.books.failed += 1;
            node.measured.failed += 1;
            self.workloads[usize::from(workload)].fail(host);
            if let Some(at) = node.streams[stream as usize].1.after_end_ps(now - self.start_ps) {
                node.plan((at + self.start_ps).max(now + FAILED_AT_ONCE_PS), Job::Follow(stream));
                self.arm_host(host);
            }
        }
    }

    /// Sends waiting requests while the limits allow it.
    pub(super) fn pump(&mut self, host: u16) {
        let now = self.net.now();
        loop {
            let node = &mut self.hosts[usize::from(host)];
            let Some((id, command)) = node.queue.peek() else { break };
            let Some(system) = node.paths.system_of(command.lun.storage) else { break };
            let windows = &node.windows;
            let entry = node.paths.system(system);
            let per_hba = entry.ports;
            let choice = entry
                .multipath
                .choose(command.bytes, |path| windows[usize::from(path / per_hba)].fits(command.bytes));
            let path = match choice {
                Choice::Busy => break,
                Choice::Path(path) => path,
                Choice::NoPath => u16::MAX,
            };
            node.queue.pop(now);
            let index = id.0 as usize;
            if node.commands.len() <= index {
                node.commands.resize(index + 1, Sent::FREE);
            }
            let generation = node.commands[index].generation.wrapping_add(1) & 0x7fff_ffff;
            node.commands[index] = Sent {
                system,
                path,
                hba: path / per_hba.max(1),
                attempts: 0,
                generation,
                bytes: command.bytes,
                sent_ps: now,
                stage: Stage::NoPath,
            };
            if path == u16::MAX {
                self.wait_for_path(host, id.0);
            } else {
                node.windows[usize::from(path / per_hba)].take(command.bytes);
                self.prepare(host, id.0);
            }
        }
        self.arm_host(host);
    }

    /// Gives the processor the work of a command that has a path.
    fn prepare(&mut self, host: u16, command: u32) {
        let now = self.net.now();
        let node = &mut self.hosts[usize::from(host)];
        let at = if node.cpu_per_io_ps == 0 { now } else { node.cpu.run(now, Work::Request, node.cpu_per_io_ps) };
        let sent = &mut node.commands[command as usize];
        sent.stage = Stage::Waiting;
        let generation = sent.generation;
        if at > now {
            node.plan(at, Job::Submit(command, generation));
            self.arm_host(host);
        } else {
            self.submit(host, command);
        }
    }

    /// Hands a command to the initiator of its path.
    fn submit(&mut self, host: u16, command: u32) {
        let now = self.net.now();
        let node = &mut self.hosts[usize::from(host)];
        let Some(&what) = node.queue.command(CommandId(command)) else { return };
        let sent = &mut node.commands[command as usize];
        sent.stage = Stage::Sent;
        sent.sent_ps = now;
        let (system, path, generation) = (sent.system, sent.path, sent.generation);
        let nport = node.nports[usize::from(sent.hba)];
        let address = node.paths.system(system).address(path);
        let (lba, blocks, fua) = (what.lba, what.blocks, false);
        let cdb = if what.write { Cdb::Write { lba, blocks, fua } } else { Cdb::Read { lba, blocks, fua } };
        let order = initiator::Command {
            tag: u64::from(generation) << 32 | u64::from(command),
            d_id: address.port_id,
            lun: lun::to_bytes(what.lun.lun).unwrap_or_default(),
            cdb: cdb.to_bytes(),
            data_len: what.bytes,
            direction: if what.write { DataDirection::Write } else { DataDirection::Read },
            frame_size_bytes: address.frame_bytes,
        };
        if let Some(initiator) = &mut self.nodes[usize::from(nport)].initiator {
            initiator.handle(Instant::from_ns(now / 1_000), initiator::Input::Submit(order));
        }
        self.drain_initiator(nport);
    }

    /// Handles commands that initiators have ended, until there are none.
    pub(super) fn settle(&mut self) {
        while let Some((host, hba, tag, outcome)) = self.ended.pop_front() {
            let now = self.net.now();
            let node = &mut self.hosts[usize::from(host)];
            let interrupts = &mut node.interrupts[usize::from(hba)];
            node.unseen[usize::from(hba)].push_back((tag, outcome));
            match interrupts.complete(now, &mut node.cpu) {
                Some(seen) => self.seen(host, hba, seen),
                None => {
                    if let Some(at) = node.interrupts[usize::from(hba)].poll_timeout() {
                        node.plan(at, Job::Interrupt(hba));
                        self.arm_host(host);
                    }
                }
            }
        }
    }

    fn seen(&mut self, host: u16, hba: u16, seen: Seen) {
        if seen.at_ps > self.net.now() {
            self.hosts[usize::from(host)].plan(seen.at_ps, Job::Seen(hba, seen.completions));
            self.arm_host(host);
        } else {
            self.see(host, hba, seen.completions);
        }
    }

    fn see(&mut self, host: u16, hba: u16, count: u32) {
        for _ in 0..count {
            let unseen = &mut self.hosts[usize::from(host)].unseen[usize::from(hba)];
            let Some((tag, outcome)) = unseen.pop_front() else { break };
            self.command_ended(host, tag, outcome);
        }
        self.pump(host);
    }

    fn command_ended(&mut self, host: u16, tag: u64, outcome: Outcome) {
        if tag & PROBE != 0 {
            self.probe_ended(host, tag, outcome);
            return;
        }
        let now = self.net.now();
        let (command, generation) = (tag as u32, (tag >> 32) as u32);
        let node = &mut self.hosts[usize::from(host)];
        let Some(sent) = node.commands.get(command as usize).copied() else { return };
        if sent.generation != generation || sent.stage != Stage::Sent {
            return;
        }
        let entry = node.paths.system(sent.system);
        let storage = entry.storage;
        match outcome {
            Outcome::Completed { status: status::GOOD, .. } => {
                let end = End::Done { sent_ps: sent.sent_ps, now_ps: now };
                entry.multipath.release(sent.path, sent.bytes, end);
                if entry.done(sent.path, sent.bytes) {
                    entry.multipath.handle(now, MultipathInput::Done(sent.path));
                    self.drain_paths(host, sent.system);
                }
                let node = &mut self.hosts[usize::from(host)];
                node.windows[usize::from(sent.hba)].give_back(sent.bytes);
                node.measured.command_latency.record_ps(now - sent.sent_ps);
                self.finish(host, command, true);
            }
            Outcome::Completed { status: status::TASK_SET_FULL | status::BUSY, .. } => {
                let node = &mut self.hosts[usize::from(host)];
                node.commands[command as usize].stage = Stage::Waiting;
                node.measured.retried += 1;
                node.plan(now + BUSY_RETRY_PS, Job::Submit(command, generation));
                self.arm_host(host);
            }
            Outcome::Completed { .. } => {
                self.let_go(host, command);
                self.finish(host, command, false);
            }
            Outcome::PortGone if entry.multipath.state(sent.path) == PathState::Blocked => {
                node.commands[command as usize].stage = Stage::Stuck;
            }
            Outcome::PortGone => {
                self.let_go(host, command);
                self.try_again(host, command);
            }
            Outcome::Aborted(_) => {
                entry.failed(sent.path);
                entry.multipath.handle(now, MultipathInput::Failed(sent.path));
                node.measured.aborted += 1;
                self.note(NoteKind::Aborted { host, storage, path: sent.path });
                self.let_go(host, command);
                self.drain_paths(host, sent.system);
                let node = &mut self.hosts[usize::from(host)];
                let sent = &mut node.commands[command as usize];
                sent.attempts = sent.attempts.saturating_add(1);
                if sent.attempts > node.retries {
                    self.finish(host, command, false);
                } else {
                    self.try_again(host, command);
                }
            }
        }
    }

    /// The command is no longer outstanding on its path.
    fn let_go(&mut self, host: u16, command: u32) {
        let node = &mut self.hosts[usize::from(host)];
        let sent = &mut node.commands[command as usize];
        if sent.path == u16::MAX {
            return;
        }
        let (system, path, bytes) = (sent.system, sent.path, sent.bytes);
        let hba = usize::from(sent.hba);
        sent.path = u16::MAX;
        node.windows[hba].give_back(bytes);
        node.paths.system(system).multipath.release(path, bytes, End::NotDone);
    }

    /// Chooses a path for a command that has none and sends it again.
    fn try_again(&mut self, host: u16, command: u32) {
        let node = &mut self.hosts[usize::from(host)];
        let sent = &mut node.commands[command as usize];
        sent.generation = sent.generation.wrapping_add(1) & 0x7fff_ffff;
        let (system, bytes) = (sent.system, sent.bytes);
        let entry = node.paths.system(system);
        let per_hba = entry.ports;
        // A command that was sent before goes on even if its data does not fit the window for a moment.
        match entry.multipath.choose(bytes, |_| true) {
            Choice::Path(path) => {
                let sent = &mut node.commands[command as usize];
                sent.path = path;
                sent.hba = path / per_hba.max(1);
                let hba = usize::from(sent.hba);
                node.windows[hba].take(bytes);
                node.measured.retried += 1;
                self.prepare(host, command);
            }
            Choice::Busy | Choice::NoPath => self.wait_for_path(host, command),
        }
    }

    fn wait_for_path(&mut self, host: u16, command: u32) {
        let now = self.net.now();
        let node = &mut self.hosts[usize::from(host)];
        let sent = &mut node.commands[command as usize];
        sent.stage = Stage::NoPath;
        sent.path = u16::MAX;
        let system = sent.system;
        node.queue.park(CommandId(command), now);
        node.paths.system(system).multipath.handle(now, MultipathInput::Wait(command));
        self.drain_paths(host, system);
    }

    /// A remote port that a host was looking for is logged in.
    pub(super) fn host_path_up(&mut self, host: u16, hba: u16, wwpn: Wwpn, port_id: FcId, frame_bytes: u16) {
        let Some((storage, port)) = self.path_table.storage_port(wwpn) else { return };
        let now = self.net.now();
        let node = &mut self.hosts[usize::from(host)];
        let Some(system) = node.paths.system_of(storage) else { return };
        let entry = node.paths.system(system);
        let path = hba * entry.ports + port;
        entry.set_address(path, port_id, frame_bytes);
        entry.multipath.handle(now, MultipathInput::RemoteUp(path));
        self.drain_paths(host, system);
        self.pump(host);
    }

    /// A remote port is gone.
    pub(super) fn host_path_down(&mut self, host: u16, hba: u16, wwpn: Wwpn) {
        let Some((storage, port)) = self.path_table.storage_port(wwpn) else { return };
        let now = self.net.now();
        let node = &mut self.hosts[usize::from(host)];
        let Some(system) = node.paths.system_of(storage) else { return };
        let entry = node.paths.system(system);
        let path = hba * entry.ports + port;
        entry.multipath.handle(now, MultipathInput::RemoteDown(path));
        self.drain_paths(host, system);
        self.pump(host);
    }

    fn drain_paths(&mut self, host: u16, system: u16) {
        let now = self.net.now();
        while let Some(output) = self.hosts[usize::from(host)].paths.system(system).multipath.poll_output() {
            match output {
                MultipathOutput::Changed { path, from, to } => {
                    self.note_path(host, system, path, from, to);
                    if to == PathState::Active {
                        self.unstick(host, system, path);
                    }
                }
                MultipathOutput::TakeBack(path) => self.take_back(host, system, path),
                MultipathOutput::Probe(path) => self.probe(host, system, path),
                MultipathOutput::Retry(command) => {
                    self.hosts[usize::from(host)].queue.resume(CommandId(command), now);
                    self.try_again(host, command);
                }
                MultipathOutput::Fail(command) => self.finish(host, command, false),
            }
        }
        let node = &mut self.hosts[usize::from(host)];
        if let Some(at) = node.paths.system(system).multipath.poll_timeout()
            && node.paths.wants_alarm(system, at)
        {
            node.plan(at, Job::Paths(system));
            self.arm_host(host);
        }
    }

    /// Sends TEST UNIT READY on a path.
    fn probe(&mut self, host: u16, system: u16, path: u16) {
        let now = self.net.now();
        let node = &mut self.hosts[usize::from(host)];
        let entry = node.paths.system(system);
        let (hba, address) = (path / entry.ports.max(1), entry.address(path));
        let order = initiator::Command {
            tag: PROBE | u64::from(system) << 16 | u64::from(path),
            d_id: address.port_id,
            lun: [0; 8],
            cdb: Cdb::TestUnitReady.to_bytes(),
            data_len: 0,
            direction: DataDirection::None,
            frame_size_bytes: address.frame_bytes,
        };
        let nport = node.nports[usize::from(hba)];
        if let Some(initiator) = &mut self.nodes[usize::from(nport)].initiator {
            initiator.handle(Instant::from_ns(now / 1_000), initiator::Input::Submit(order));
        }
        self.drain_initiator(nport);
    }

    fn probe_ended(&mut self, host: u16, tag: u64, outcome: Outcome) {
        let now = self.net.now();
        let (system, path) = ((tag >> 16) as u16, tag as u16);
        let entry = self.hosts[usize::from(host)].paths.system(system);
        if tag & TRIAL != 0 {
            let good = [status::GOOD, status::TASK_SET_FULL, status::BUSY];
            entry.tried(path, matches!(outcome, Outcome::Completed { status, .. } if good.contains(&status)));
        }
        let input = match outcome {
            Outcome::Completed { .. } => MultipathInput::Done(path),
            Outcome::Aborted(_) | Outcome::PortGone => MultipathInput::Failed(path),
        };
        entry.multipath.handle(now, input);
        self.drain_paths(host, system);
    }

    /// Commands that were stuck on a path that is back are sent again.
    fn unstick(&mut self, host: u16, system: u16, path: u16) {
        for command in self.stuck(host, system, path) {
            let sent = &mut self.hosts[usize::from(host)].commands[command as usize];
            sent.generation = sent.generation.wrapping_add(1) & 0x7fff_ffff;
            self.hosts[usize::from(host)].measured.retried += 1;
            self.prepare(host, command);
        }
    }

    fn take_back(&mut self, host: u16, system: u16, path: u16) {
        let commands = self.stuck(host, system, path);
        if !commands.is_empty() {
            self.hosts[usize::from(host)].measured.failovers += 1;
        }
        for command in commands {
            self.let_go(host, command);
            self.try_again(host, command);
        }
    }

    fn stuck(&self, host: u16, system: u16, path: u16) -> Vec<u32> {
        let commands = self.hosts[usize::from(host)].commands.iter().enumerate();
        let on_path = |sent: &Sent| sent.stage == Stage::Stuck && sent.system == system && sent.path == path;
        commands.filter(|(_, sent)| on_path(sent)).map(|(number, _)| number as u32).collect()
    }

    /// A command ends for good, well or badly, and its requests with it.
    fn finish(&mut self, host: u16, command: u32, good: bool) {
        let now = self.net.now();
        let start = self.start_ps;
        let node = &mut self.hosts[usize::from(host)];
        node.commands[command as usize].stage = Stage::Free;
        let sent_ps = node.commands[command as usize].sent_ps;
        let mut members = std::mem::take(&mut node.members);
        members.clear();
        node.queue.complete(CommandId(command), now, |member| members.push(member));
        let stall = now - node.measured.last_end_ps;
        if stall > node.measured.longest_stall_ps {
            node.measured.longest_stall_ps = stall;
            node.measured.stall_began_ps = node.measured.last_end_ps;
        }
        node.measured.last_end_ps = now;
        for member in &members {
            let latency_ps = now - member.arrival_ps;
            let (bytes, write) = (u64::from(member.request.bytes), usize::from(member.request.write));
            let (workload, stream) = &node.streams[member.stream as usize];
            let workload = &mut self.workloads[usize::from(*workload)];
            if good {
                self.books.completed += 1;
                let measured = &mut node.measured;
                measured.latency.record_ps(latency_ps);
                measured.by_direction[write].add(latency_ps);
                measured.ios[write] += 1;
                measured.bytes[write] += bytes;
                measured.series.record(now, bytes, latency_ps);
                workload.complete(host, bytes, (latency_ps, now - sent_ps), write == 1);
            } else {
                self.books.failed += 1;
                node.measured.failed += 1;
                workload.fail(host);
            }
            if let Some(at) = stream.after_end_ps(now - start) {
                let pause = if !good && latency_ps == 0 { FAILED_AT_ONCE_PS } else { 0 };
                let at = (at + start).max(now + pause);
                self.follow.push((at, member.stream));
            }
        }
        node.members = members;
        for i in 0..self.follow.len() {
            let (at, stream) = self.follow[i];
            if at <= now {
                self.request(host, stream);
            } else {
                self.hosts[usize::from(host)].plan(at, Job::Follow(stream));
            }
        }
        self.follow.clear();
        if !good {
            self.note(NoteKind::Failed { host });
        }
    }
}

impl Sent {
    const FREE: Sent = Sent {
        system: 0,
        path: u16::MAX,
        hba: 0,
        attempts: 0,
        generation: 0,
        bytes: 0,
        sent_ps: 0,
        stage: Stage::Free,
    };
}
