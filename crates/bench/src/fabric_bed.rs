//! A bed for measurements of the control side of large fabrics: [`FabricBed`]. It has whole
//! switches with their forwarding tables, and N_Ports that only log in and register.
//!
//! There are no credits and no serialisation. A message takes the same time over any link, so the
//! in-flight messages form a queue. Messages are passed as values.
//!
//! The switches form a core and an edge, with one core switch per thirty switches. Each core switch
//! is linked to every other core switch, and every edge switch to two core switches. N_Port n is
//! attached to switch n modulo the number of switches.

mod check;
mod n_ports;
mod plan;

pub use check::Disagreement;
pub use plan::FabricPlan;

use n_ports::NPort;
use sanloom_fc::config::IslChoice;
use sanloom_fc::fabric::{Decision, Egress, Fib};
use sanloom_fc::fabric_switch::{FabricSwitch, Input, Output};
use sanloom_fc::switch::PortKind;
use sanloom_scsi::time::{Instant, Span};
use sanloom_wire::sw_ils::command;
use sanloom_wire::{Frame, Message, Payload, RCtl};
use std::cmp::Reverse;
use std::collections::{BinaryHeap, VecDeque};

/// One-way delay of every link.
const DELAY: Span = Span::from_us(50);

/// Message counters.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Traffic {
    /// Link parameters: ELP, ESC.
    pub links: u64,
    /// Principal selection and domains: EFP, DIA, RDI, BF, RCF.
    pub domains: u64,
    /// Path selection: HLO, LSU, LSA.
    pub paths: u64,
    /// Zones: MRRA, MR, ACA, SFC, UFC, RCA.
    pub zones: u64,
    /// Notifications of name servers: SW_RSCN.
    pub notifications: u64,
    /// Queries between name servers: GE_PT, GE_ID.
    pub questions: u64,
    /// Accepts and rejects of the messages above.
    pub answers: u64,
    /// Link crossings of all messages between switches.
    pub hops: u64,
    /// Messages from N_Ports to their switch.
    pub from_n_ports: u64,
    /// RSCNs to N_Ports.
    pub rscns: u64,
    /// Ports in the name server's responses to queries of N_Ports.
    pub ports_found: u64,
}

/// Counters with their names.
type Counts = [(&'static str, fn(&mut Traffic) -> &mut u64); 11];

const COUNTS: Counts = [
    ("links", |t| &mut t.links),
    ("domains", |t| &mut t.domains),
    ("paths", |t| &mut t.paths),
    ("zones", |t| &mut t.zones),
    ("notifications", |t| &mut t.notifications),
    ("questions", |t| &mut t.questions),
    ("answers", |t| &mut t.answers),
    ("hops", |t| &mut t.hops),
    ("from_n_ports", |t| &mut t.from_n_ports),
    ("rscns", |t| &mut t.rscns),
    ("ports_found", |t| &mut t.ports_found),
];

impl Traffic {
    /// Returns the difference to the earlier reading `before`.
    pub fn since(mut self, mut before: Traffic) -> Traffic {
        for (_, count) in COUNTS {
            *count(&mut self) -= *count(&mut before);
        }
        self
    }

    /// Iterates over all counters with their names.
    pub fn counts(mut self) -> impl Iterator<Item = (&'static str, u64)> {
        COUNTS.into_iter().map(move |(name, count)| (name, *count(&mut self)))
    }

    /// Returns the number of messages from switches to other switches.
    pub fn between_switches(&self) -> u64 {
        self.links + self.domains + self.paths + self.zones + self.notifications + self.questions + self.answers
    }

    /// Counts a message from a switch to another one.
    fn count(&mut self, frame: &Frame) {
        let counter = match &frame.payload {
            _ if frame.header.r_ctl == RCtl::SOLICITED_CONTROL => &mut self.answers,
            Payload::Typed(Message::SwIls(ils)) => match ils.command() {
                command::ELP | command::ESC => &mut self.links,
                command::EFP | command::DIA | command::RDI | command::BF | command::RCF => &mut self.domains,
                command::HLO | command::LSU | command::LSA => &mut self.paths,
                command::SW_RSCN => &mut self.notifications,
                _ => &mut self.zones,
            },
            _ => &mut self.questions,
        };
        *counter += 1;
    }
}

/// A switch of the bed.
#[derive(Debug)]
struct Node {
    machine: FabricSwitch,
    fib: Fib,
    /// The valid timer; other timers of this switch in the queue are stale.
    timer: Option<Instant>,
    /// Other ends of the links to switches, from the first port after those of N_Ports.
    cables: Vec<(usize, u16)>,
}

/// A message on a link to a port of a switch, or to the N_Port at that port.
#[derive(Debug)]
struct Flight {
    at: Instant,
    node: usize,
    port: u16,
    to_n_port: bool,
    frame: Frame,
}

/// A fabric that starts cold. See the [module](self).
#[derive(Debug)]
pub struct FabricBed {
    plan: FabricPlan,
    now: Instant,
    nodes: Vec<Node>,
    n_ports: Vec<NPort>,
    /// True if N_Ports register for state changes at login, and query all ports when notified of
    /// one.
    discovery: bool,
    flight: VecDeque<Flight>,
    timers: BinaryHeap<Reverse<(Instant, usize)>>,
    traffic: Traffic,
}

impl FabricBed {
    /// Returns a fabric in which all switches start and all links come up at time zero.
    pub fn new(plan: FabricPlan) -> FabricBed {
        let cables = plan.cables();
        let node = |cables: Vec<(usize, u16)>, number: usize| {
            let ports = plan.n_port_ports() + cables.len() as u16;
            Node {
                machine: FabricSwitch::new(Instant::ZERO, plan.config(number, ports)),
                fib: Fib::new(0, ports, IslChoice::DevicePair),
                timer: None,
                cables,
            }
        };
        let nodes = cables.into_iter().zip(0..).map(|(cables, number)| node(cables, number)).collect();
        let mut bed = FabricBed {
            now: Instant::ZERO,
            nodes,
            n_ports: (0..plan.names()).map(|number| NPort::new(&plan, number)).collect(),
            discovery: false,
            flight: VecDeque::new(),
            timers: BinaryHeap::new(),
            traffic: Traffic::default(),
            plan,
        };
        for node in 0..bed.nodes.len() {
            bed.drain(node);
            let ports = bed.plan.n_port_ports();
            for port in (ports..).take(bed.nodes[node].cables.len()) {
                bed.input(node, Input::PortUp { port, kind: PortKind::E });
            }
        }
        bed
    }

    /// Returns the virtual time since the start.
    pub fn now(&self) -> Instant {
        self.now
    }

    /// Returns the message counters so far.
    pub fn traffic(&self) -> Traffic {
        self.traffic
    }

    /// Advances the virtual time by `span`.
    pub fn run(&mut self, span: Span) {
        let end = self.now + span;
        loop {
            let arrival = self.flight.front().map(|flight| flight.at);
            let timer = self.timers.peek().map(|Reverse((at, _))| *at);
            let Some(at) = arrival.into_iter().chain(timer).min().filter(|at| *at <= end) else { break };
            self.now = at;
            if arrival == Some(at) {
                if let Some(flight) = self.flight.pop_front() {
                    self.arrive(flight);
                }
            } else if let Some(Reverse((at, node))) = self.timers.pop()
                && self.nodes[node].timer == Some(at)
            {
                self.nodes[node].timer = None;
                self.input(node, Input::Timeout);
            }
        }
        self.now = end;
    }

    fn input(&mut self, node: usize, input: Input) {
        self.nodes[node].machine.handle(self.now, input);
        self.drain(node);
    }

    fn drain(&mut self, number: usize) {
        while let Some(output) = self.nodes[number].machine.poll_output() {
            match output {
                Output::Fib(delta) => self.nodes[number].fib.apply(&delta),
                Output::Send { port, frame } => {
                    if port >= self.plan.n_port_ports() {
                        self.traffic.count(&frame);
                    }
                    self.leave(number, port, frame);
                }
                Output::Event(_) | Output::Persist { .. } | Output::Zones { .. } => {}
            }
        }
        let node = &mut self.nodes[number];
        let timer = node.machine.poll_timeout();
        if timer != node.timer {
            node.timer = timer;
            self.timers.extend(timer.map(|at| Reverse((at, number))));
        }
    }

    /// Handles a frame that leaves a switch.
    fn leave(&mut self, node: usize, port: u16, frame: Frame) {
        let at = self.now + DELAY;
        let flight = match port.checked_sub(self.plan.n_port_ports()) {
            None => Flight { at, node, port, to_n_port: true, frame },
            Some(cable) => {
                self.traffic.hops += 1;
                let (node, port) = self.nodes[node].cables[usize::from(cable)];
                Flight { at, node, port, to_n_port: false, frame }
            }
        };
        self.flight.push_back(flight);
    }

    fn arrive(&mut self, flight: Flight) {
        let Flight { node, port, frame, .. } = flight;
        if flight.to_n_port {
            return self.receive_at_n_port(self.plan.n_port_at(node, port), &frame);
        }
        let header = frame.header;
        match self.nodes[node].fib.decide(port, header.s_id, header.d_id, header.ox_id) {
            Decision::Local => self.input(node, Input::Frame { port, frame }),
            Decision::Forward(Egress::Port(out)) => self.leave(node, out, frame),
            _ => {}
        }
    }
}
