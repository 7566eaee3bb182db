//! Nodes, one switch and a clock. Every machine is the real one; only the links are simulated, with
//! delay, loss and optional reordering. Every message passes through the wire codecs and must be
//! unchanged afterwards.

mod links;

use sanloom_fc::config::{IslChoice, ZoneDefault, Zoning};
use sanloom_fc::exchange::{Accepted, Route, route};
use sanloom_fc::fabric::{Decision, Egress, Fib, ZoneSet};
use sanloom_fc::fcp::initiator::{self, Command, FcpInitiator, FcpInitiatorConfig, Outcome};
use sanloom_fc::fcp::target::{self, FcpTarget, FcpTargetConfig};
use sanloom_fc::nport::{self, NPort, NPortConfig, Remote};
use sanloom_fc::switch::{self, Policy, PortKind, Switch, SwitchConfig};
use sanloom_scsi::random::SplitMix64;
use sanloom_scsi::scsi::DataDirection;
use sanloom_scsi::scsi::{Device, DeviceConfig, IoOp, IoStatus, IoTag, PortConfig, PortName, UnitConfig};
use sanloom_scsi::time::{Instant, Span};
use sanloom_wire::cdb::{Cdb, status};
use sanloom_wire::{FcId, Frame, Header, Message, Payload, ReplyTo, Wwnn, Wwpn};
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::Arc;

pub const E_D_TOV: Span = Span::from_ms(20);
pub const R_A_TOV: Span = Span::from_ms(100);
pub const COMMAND_TIMEOUT: Span = Span::from_ms(150);
pub const BLOCK: u32 = 512;
/// First tag of task management functions, far above the tags of commands.
pub const MANAGEMENT: u64 = 1 << 32;
const LATENCY: Span = Span::from_us(5);

/// Faults of the links.
#[derive(Clone, Copy, Debug)]
pub struct Links {
    /// Number of lost frames per 1,000.
    pub lost_per_mille: u32,
    /// Maximum additional delay of a frame, which lets frames overtake each other.
    pub jitter: Span,
    /// Start of the frame loss.
    pub broken_at: Instant,
    /// End of the frame loss.
    pub healed_at: Instant,
}

impl Links {
    pub const PERFECT: Links =
        Links { lost_per_mille: 0, jitter: Span::ZERO, broken_at: Instant::ZERO, healed_at: Instant::ZERO };
}

/// Work for an initiator, which is done when a command for it completes with GOOD.
#[derive(Clone, Copy, Debug)]
pub struct Job {
    pub initiator: usize,
    pub target: usize,
    pub op: IoOp,
    pub lba: u64,
    pub blocks: u32,
    pub at: Instant,
}

#[derive(Clone, Debug)]
enum Packet {
    /// Message. For an FCP_CMND, the tag of the command that it starts.
    Message(Frame, Option<u64>),
    /// Data frame, and the tag of the command that it was sent for.
    Data { header: Header, len: u16, tag: u64 },
}

impl Packet {
    fn header(&self) -> &Header {
        match self {
            Packet::Message(frame, _) => &frame.header,
            Packet::Data { header, .. } => header,
        }
    }
}

enum Event {
    ToSwitch(usize, Packet),
    ToNode(usize, Packet),
    IoDone(usize, IoTag),
    Link { node: usize, up: bool },
}

pub struct Node {
    pub nport: NPort,
    pub initiator: Option<FcpInitiator>,
    pub target: Option<FcpTarget>,
    /// Device of the target, with one LUN.
    pub device: Device,
    pub remotes: BTreeMap<FcId, Remote>,
    link_up: bool,
    /// Initiator: command of each OX_ID.
    sent: BTreeMap<u16, u64>,
    /// Target: command of each (S_ID, OX_ID), as it arrived.
    received: BTreeMap<(FcId, u16), u64>,
}

pub struct World {
    pub now: Instant,
    pub nodes: Vec<Node>,
    pub switch: Switch,
    fib: Fib,
    links: Links,
    random: SplitMix64,
    queue: BTreeMap<(Instant, u64), Event>,
    events: u64,
    /// Requests, which are needed to parse their replies.
    requests: BTreeMap<(FcId, u16), ReplyTo>,
    jobs: Vec<Job>,
    waiting: VecDeque<(usize, Job)>,
    /// Commands in flight, with job and number of the job.
    open: BTreeMap<u64, (usize, Job)>,
    next_tag: u64,
    pub done: BTreeSet<usize>,
    /// Outcomes of the attempts that did not complete their job.
    pub failures: Vec<Outcome>,
    /// Outcomes of task management functions, with their tags.
    pub managed: Vec<(u64, Outcome)>,
    pub lost: u64,
    /// Duration of an I/O of the medium.
    pub io_time: Span,
    pub log: Option<Vec<String>>,
}

impl World {
    pub fn new(links: Links, seed: u64) -> World {
        let zoning = Zoning { zones: Vec::new(), default: ZoneDefault::Open };
        let switch = Switch::new(SwitchConfig {
            domain: Some(1),
            name: Wwnn(0x1000_0000_0000_0001),
            fabric_name: Wwnn(0x1000_0000_0000_0001),
            ports: 64,
            e_d_tov: E_D_TOV,
            r_a_tov: R_A_TOV,
            rscn_delay: Span::from_ms(1),
            bb_credit: vec![4; 64],
            bb_sc_n: Vec::new(),
            receive_size_bytes: 2112,
            zoning: Arc::new(ZoneSet::new(&zoning)),
            policy: Policy::default(),
        });
        let mut world = World {
            now: Instant::ZERO,
            nodes: Vec::new(),
            switch,
            fib: Fib::new(1, 64, IslChoice::Exchange),
            links,
            random: SplitMix64(seed),
            queue: BTreeMap::new(),
            events: 0,
            requests: BTreeMap::new(),
            jobs: Vec::new(),
            waiting: VecDeque::new(),
            open: BTreeMap::new(),
            next_tag: 0,
            done: BTreeSet::new(),
            failures: Vec::new(),
            managed: Vec::new(),
            lost: 0,
            io_time: Span::from_us(50),
            log: None,
        };
        world.drain_switch();
        world
    }

    /// Adds a host with one port.
    pub fn add_initiator(&mut self) -> usize {
        let initiator = self.initiator();
        self.add(self.now, Some(initiator), None)
    }

    /// Adds a port that is initiator and target for all other such ports.
    pub fn add_both(&mut self) -> usize {
        let (initiator, target) = (self.initiator(), self.target());
        self.add(self.now, Some(initiator), Some(target))
    }

    fn initiator(&self) -> FcpInitiator {
        let in_order = self.links.jitter == Span::ZERO;
        FcpInitiator::new(FcpInitiatorConfig {
            e_d_tov: E_D_TOV,
            r_a_tov: R_A_TOV,
            command_timeout: COMMAND_TIMEOUT,
            recovery: None,
            max_exchanges: 64,
            in_order,
        })
    }

    /// Adds a storage port with one LUN.
    pub fn add_target(&mut self) -> usize {
        self.add_target_at(self.now)
    }

    /// Adds a storage port whose link comes up at `up_at`.
    pub fn add_target_at(&mut self, up_at: Instant) -> usize {
        let target = self.target();
        self.add(up_at, None, Some(target))
    }

    fn target(&self) -> FcpTarget {
        let at = self.nodes.len();
        FcpTarget::new(FcpTargetConfig {
            e_d_tov: E_D_TOV,
            r_a_tov: R_A_TOV,
            max_burst_bytes: 16 * 1024,
            max_exchanges: 128,
            in_order: self.links.jitter == Span::ZERO,
            port: 0,
            port_name: wwpn(at),
        })
    }

    fn add(&mut self, up_at: Instant, initiator: Option<FcpInitiator>, target: Option<FcpTarget>) -> usize {
        let at = self.nodes.len();
        let nport = NPort::new(NPortConfig {
            wwpn: wwpn(at),
            wwnn: wwnn(at),
            receive_size_bytes: 2048,
            bb_credit: 8,
            bb_sc_n: 0,
            initiator: initiator.is_some(),
            target: target.is_some(),
            symbolic_name: format!("node {at}"),
            e_d_tov: E_D_TOV,
            r_a_tov: R_A_TOV,
            seed: at as u64,
            virtual_port: None,
        });
        self.nodes.push(Node {
            nport,
            initiator,
            target,
            device: Device::new(DeviceConfig {
                wwnn: wwnn(at),
                ports: vec![PortConfig { name: PortName::Fcp(wwpn(at)), group: 0 }],
                units: vec![UnitConfig::new(1 << 20, BLOCK)],
                ..DeviceConfig::default()
            }),
            remotes: BTreeMap::new(),
            link_up: false,
            sent: BTreeMap::new(),
            received: BTreeMap::new(),
        });
        self.set_link(up_at, at, true);
        at
    }

    /// Schedules a link change of a node at `at`.
    pub fn set_link(&mut self, at: Instant, node: usize, up: bool) {
        self.schedule(at, Event::Link { node, up });
    }

    pub fn add_job(&mut self, job: Job) {
        let number = self.jobs.len();
        self.jobs.push(job);
        self.waiting.push_back((number, job));
    }

    /// Runs until `end`, or until `enough` is true after an event.
    pub fn run(&mut self, end: Instant, enough: impl Fn(&World) -> bool) -> bool {
        loop {
            self.submit_jobs();
            if enough(self) {
                return true;
            }
            let event = self.queue.keys().next().map(|&(at, _)| at);
            let timeout = self.next_timeout();
            let job = self.waiting.iter().map(|(_, job)| job.at).filter(|&at| at > self.now).min();
            let next = event.into_iter().chain(timeout).chain(job).min();
            let Some(next) = next.filter(|&next| next <= end) else {
                self.now = end;
                return false;
            };
            self.now = self.now.max(next);
            if event == Some(next) {
                if let Some((_, event)) = self.queue.pop_first() {
                    self.on_event(event);
                }
            } else if timeout == Some(next) {
                self.on_timeouts();
            }
        }
    }

    fn next_timeout(&self) -> Option<Instant> {
        let of_nodes = self.nodes.iter().flat_map(|node| {
            let initiator = node.initiator.as_ref().and_then(FcpInitiator::poll_timeout);
            let target = node.target.as_ref().and_then(FcpTarget::poll_timeout);
            [node.nport.poll_timeout(), initiator, target]
        });
        of_nodes.chain([self.switch.poll_timeout()]).flatten().min()
    }

    fn on_timeouts(&mut self) {
        let before = self.next_timeout();
        for at in 0..self.nodes.len() {
            let now = self.now;
            let node = &mut self.nodes[at];
            node.nport.handle(now, nport::Input::Timeout);
            if let Some(initiator) = &mut node.initiator {
                initiator.handle(now, initiator::Input::Timeout);
            }
            if let Some(target) = &mut node.target {
                target.handle(now, target::Input::Timeout, &mut node.device);
            }
            self.drain(at);
        }
        self.switch.handle(self.now, switch::Input::Timeout);
        self.drain_switch();
        assert_ne!(self.next_timeout().filter(|&at| at <= self.now), before, "a timeout has no effect");
    }

    fn on_event(&mut self, event: Event) {
        match event {
            Event::ToSwitch(port, packet) => self.at_switch(port, packet),
            Event::ToNode(node, packet) => self.at_node(node, packet),
            Event::IoDone(node, tag) => {
                let input = target::Input::IoDone { tag, status: IoStatus::Good };
                let its = &mut self.nodes[node];
                if let Some(target) = &mut its.target {
                    target.handle(self.now, input, &mut its.device);
                }
                self.drain(node);
            }
            Event::Link { node, up } => self.on_link(node, up),
        }
    }

    fn on_link(&mut self, at: usize, up: bool) {
        let port = at as u16;
        if std::mem::replace(&mut self.nodes[at].link_up, up) == up {
            return;
        }
        if up {
            self.switch.handle(self.now, switch::Input::PortUp { port, kind: PortKind::F });
        } else {
            self.switch.handle(self.now, switch::Input::PortDown { port });
        }
        self.drain_switch();
        let input = if up { nport::Input::LinkUp } else { nport::Input::LinkDown };
        self.nodes[at].nport.handle(self.now, input);
        self.drain(at);
    }

    fn at_switch(&mut self, port: usize, packet: Packet) {
        let header = *packet.header();
        match self.fib.decide(port as u16, header.s_id, header.d_id, header.ox_id) {
            Decision::Forward(Egress::Port(egress)) => self.send_to_node(usize::from(egress), packet),
            Decision::Local => {
                if let Packet::Message(frame, _) = packet {
                    let input = switch::Input::Frame { port: port as u16, frame };
                    self.switch.handle(self.now, input);
                    self.drain_switch();
                }
            }
            Decision::Forward(_) | Decision::Drop(_) => self.lost += 1,
        }
    }

    fn drain_switch(&mut self) {
        while let Some(output) = self.switch.poll_output() {
            match output {
                switch::Output::Send { port, frame } => {
                    let frame = self.through_the_codecs(frame);
                    self.send_to_node(usize::from(port), Packet::Message(frame, None));
                }
                switch::Output::Fib(delta) => self.fib.apply(&delta),
                switch::Output::Peer(_) | switch::Output::Persist { .. } | switch::Output::ChangeZones { .. } => {}
            }
        }
    }

    fn at_node(&mut self, at: usize, packet: Packet) {
        let now = self.now;
        let node = &mut self.nodes[at];
        match packet {
            Packet::Message(frame, tag) => match route(&frame.header) {
                Some(Route::NPort) => node.nport.handle(now, nport::Input::Frame(frame)),
                Some(Route::Initiator) => {
                    if let Some(initiator) = &mut node.initiator {
                        initiator.handle(now, initiator::Input::Frame(frame));
                    }
                }
                Some(Route::Target) => {
                    if let Some(tag) = tag {
                        node.received.insert((frame.header.s_id, frame.header.ox_id), tag);
                    }
                    if let Some(target) = &mut node.target {
                        target.handle(now, target::Input::Frame(frame), &mut node.device);
                    }
                }
                None => unreachable!("no machine for {}", frame.header),
            },
            Packet::Data { header, len, tag } => node.on_data(now, &header, len, tag),
        }
        self.drain(at);
    }

    pub fn drain(&mut self, at: usize) {
        loop {
            if let Some(output) = self.nodes[at].nport.poll_output() {
                self.on_nport_output(at, output);
            } else if let Some(output) = self.nodes[at].initiator.as_mut().and_then(FcpInitiator::poll_output) {
                self.on_initiator_output(at, output);
            } else if let Some(output) = self.nodes[at].target.as_mut().and_then(FcpTarget::poll_output) {
                self.on_target_output(at, output);
            } else {
                return;
            }
        }
    }

    fn on_nport_output(&mut self, at: usize, output: nport::Output) {
        let now = self.now;
        let node = &mut self.nodes[at];
        let local_id = match output {
            nport::Output::Send(frame) => return self.send(at, frame),
            nport::Output::FabricUp { port_id } => port_id,
            nport::Output::FabricDown => FcId::ZERO,
            nport::Output::RemoteUp(remote) => {
                let twice = node.remotes.insert(remote.port_id, remote);
                assert_eq!(twice, None, "up twice without a down");
                if let Some(target) = &mut node.target {
                    let frame_size_bytes = remote.receive_size_bytes;
                    let (port_id, port_name) = (remote.port_id, remote.wwpn);
                    let up = target::Input::LoginUp { port_id, port_name, frame_size_bytes };
                    target.handle(now, up, &mut node.device);
                }
                return;
            }
            nport::Output::RemoteDown { port_id, wwpn } => {
                let known = node.remotes.remove(&port_id).map(|remote| remote.wwpn);
                assert_eq!(known, Some(wwpn), "down without an up");
                if let Some(initiator) = &mut node.initiator {
                    initiator.handle(now, initiator::Input::RemoteDown { port_id });
                }
                if let Some(target) = &mut node.target {
                    target.handle(now, target::Input::LoginDown { port_id }, &mut node.device);
                }
                return;
            }
        };
        if let Some(initiator) = &mut node.initiator {
            initiator.handle(now, initiator::Input::LocalId(local_id));
        }
        if let Some(target) = &mut node.target {
            target.handle(now, target::Input::LocalId(local_id), &mut node.device);
        }
    }

    fn on_initiator_output(&mut self, at: usize, output: initiator::Output) {
        match output {
            initiator::Output::Send(frame) => self.send(at, frame),
            initiator::Output::Transmit(sequence) => {
                let tag = self.nodes[at].sent[&sequence.ox_id];
                self.transmit(at, sequence, tag);
            }
            initiator::Output::Done { tag, outcome, .. } => self.on_done(at, tag, outcome),
        }
    }

    fn on_done(&mut self, at: usize, tag: u64, outcome: Outcome) {
        if tag >= MANAGEMENT {
            return self.managed.push((tag, outcome));
        }
        let (number, job) = self.open.remove(&tag).expect("a command ends once");
        assert_eq!(job.initiator, at);
        match outcome {
            Outcome::Completed { status: status::GOOD, transferred, .. } => {
                assert_eq!(transferred, job.blocks * BLOCK, "command {tag}: {job:?}");
                self.done.insert(number);
            }
            _ => {
                self.failures.push(outcome);
                self.waiting.push_back((number, job));
            }
        }
    }

    fn on_target_output(&mut self, at: usize, output: target::Output) {
        match output {
            target::Output::Send(frame) => self.send(at, frame),
            target::Output::Transmit(sequence) => {
                let tag = self.nodes[at].received[&(sequence.d_id, sequence.ox_id)];
                self.transmit(at, sequence, tag);
            }
            target::Output::Io(io) => {
                let requested = |job: &Job| (job.target, job.op, job.lba, job.blocks) == (at, io.op, io.lba, io.blocks);
                assert!(self.jobs.iter().any(requested), "no command requested {io:?}");
                self.schedule(self.now + self.io_time, Event::IoDone(at, io.tag));
            }
            target::Output::Cancel(_) => {}
            target::Output::Fetch { .. } => unreachable!("no command has a parameter list"),
        }
    }

    fn submit_jobs(&mut self) {
        for _ in 0..self.waiting.len() {
            let Some((number, job)) = self.waiting.pop_front() else {
                return;
            };
            let target = wwpn(job.target);
            let node = &mut self.nodes[job.initiator];
            let remote = node.remotes.values().find(|remote| remote.wwpn == target).copied();
            let ready = node.initiator.as_ref().is_some_and(FcpInitiator::has_free_exchange);
            let (Some(remote), true, true) = (remote, ready, job.at <= self.now) else {
                self.waiting.push_back((number, job));
                continue;
            };
            let tag = self.next_tag;
            self.next_tag += 1;
            self.open.insert(tag, (number, job));
            self.submit(job.initiator, tag, &remote, job.op, job.lba, job.blocks);
        }
    }

    fn submit(&mut self, at: usize, tag: u64, remote: &Remote, op: IoOp, lba: u64, blocks: u32) {
        let (cdb, direction) = match op {
            IoOp::Read => (Cdb::Read { lba, blocks, fua: false }, DataDirection::Read),
            IoOp::Write => (Cdb::Write { lba, blocks, fua: false }, DataDirection::Write),
            other => unreachable!("jobs read and write, not {other:?}"),
        };
        let command = Command {
            tag,
            d_id: remote.port_id,
            lun: [0; 8],
            cdb: cdb.to_bytes(),
            data_len: blocks * BLOCK,
            direction,
            frame_size_bytes: remote.receive_size_bytes,
        };
        if let Some(initiator) = &mut self.nodes[at].initiator {
            initiator.handle(self.now, initiator::Input::Submit(command));
        }
        // The frame of the command is the only output of Submit with its OX_ID.
        while let Some(output) = self.nodes[at].initiator.as_mut().and_then(FcpInitiator::poll_output) {
            if let initiator::Output::Send(frame) = &output
                && matches!(frame.payload, Payload::Typed(Message::FcpCmnd(_)))
            {
                self.nodes[at].sent.insert(frame.header.ox_id, tag);
            }
            self.on_initiator_output(at, output);
        }
    }

    fn schedule(&mut self, at: Instant, event: Event) {
        self.events += 1;
        self.queue.insert((at, self.events), event);
    }
}

impl Node {
    fn on_data(&mut self, now: Instant, header: &Header, len: u16, tag: u64) {
        let from_responder = header.f_ctl.has(sanloom_wire::FCtl::EXCHANGE_RESPONDER);
        if from_responder {
            let Some(initiator) = &mut self.initiator else {
                return;
            };
            let Some(rx) = initiator.data(header.ox_id) else {
                return;
            };
            let accepted = rx.accept(header.seq_cnt, len);
            if accepted != Accepted::Stale {
                assert_eq!(self.sent[&header.ox_id], tag, "data of another command was taken");
            }
            if matches!(accepted, Accepted::Complete | Accepted::Gap) {
                initiator.handle(now, initiator::Input::Data { ox_id: header.ox_id, accepted });
            }
        } else {
            let Some(target) = &mut self.target else {
                return;
            };
            let Some(rx) = target.data(header.rx_id) else {
                return;
            };
            let accepted = rx.accept(header.seq_cnt, len);
            if accepted != Accepted::Stale {
                let current = self.received[&(header.s_id, header.ox_id)];
                assert_eq!(current, tag, "data of another command was taken");
            }
            if matches!(accepted, Accepted::Complete | Accepted::Gap) {
                target.handle(now, target::Input::Data { rx_id: header.rx_id, accepted }, &mut self.device);
            }
        }
    }
}

pub fn wwpn(node: usize) -> Wwpn {
    Wwpn(0x2100_0000_0000_0000 + node as u64 + 1)
}

pub fn wwnn(node: usize) -> Wwnn {
    Wwnn(0x2000_0000_0000_0000 + node as u64 + 1)
}
