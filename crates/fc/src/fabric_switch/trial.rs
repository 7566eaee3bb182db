//! Trial run of switches in virtual time: [`Trial`].
//!
//! It determines, without a simulation, which links of a lab would be isolated, and the result when
//! a link joins two fabrics. It runs the same machines as the drivers, so the rules exist only
//! once. There are no N_Ports, no credits and no losses. A message takes the same time over any
//! link.

use super::{FabricSwitch, FabricSwitchConfig, Input, IslState, Output};
use crate::alarms::Alarms;
use crate::config::{self, IslChoice, Link};
use crate::fabric::{Decision, Egress, Fib};
use crate::isolation::Isolation;
use crate::switch::PortKind;
use sanloom_scsi::time::{Instant, Span};
use sanloom_wire::Frame;
use std::collections::{BTreeMap, VecDeque};

/// One-way delay of every link.
const DELAY: Span = Span::from_us(50);
/// Time without open requests after which the switches count as quiet. It exceeds the delay
/// before a request to a busy switch is repeated.
const QUIET: Span = Span::from_ms(600);
/// Maximum duration of a trial.
const MAX_DURATION: Span = Span::from_secs(120);

/// Link between two switches.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Cable {
    /// For each end: the index of the switch in [`Trial::new`] and the port number.
    pub ends: [(usize, u16); 2],
}

impl Cable {
    /// Link of a lab; `None` unless it joins two switches.
    pub fn of(link: &Link) -> Option<Cable> {
        let [a, b] = &link.ends;
        match (a.node, b.node) {
            (config::Node::Switch(one), config::Node::Switch(other)) => {
                Some(Cable { ends: [(one.into(), a.port), (other.into(), b.port)] })
            }
            _ => None,
        }
    }

    /// Same link with all switch indices raised by `others`.
    pub fn behind(self, others: usize) -> Cable {
        Cable { ends: self.ends.map(|(node, port)| (node + others, port)) }
    }
}

#[derive(Debug)]
struct Node {
    machine: FabricSwitch,
    fib: Fib,
    /// Bundle number of each port.
    bundles: Vec<Option<u16>>,
}

#[derive(Debug)]
struct Flight {
    at: Instant,
    node: usize,
    port: u16,
    frame: Frame,
}

/// Switches and links in virtual time.
#[derive(Debug)]
pub struct Trial {
    now: Instant,
    nodes: Vec<Node>,
    cables: Vec<Cable>,
    /// Other end of each cable with light, by switch and port.
    lit: BTreeMap<(usize, u16), (usize, u16)>,
    /// Next deadline of each switch.
    timers: Alarms<usize>,
    flight: VecDeque<Flight>,
}

impl Trial {
    /// Returns newly started switches with dark links.
    pub fn new(configs: Vec<FabricSwitchConfig>, cables: Vec<Cable>) -> Trial {
        let node = |config: FabricSwitchConfig| Node {
            bundles: config.isls.iter().map(|isl| isl.bundle).collect(),
            fib: Fib::new(config.domain.preferred.unwrap_or(0), config.services.ports, IslChoice::DevicePair),
            machine: FabricSwitch::new(Instant::ZERO, config),
        };
        let mut trial = Trial {
            now: Instant::ZERO,
            nodes: configs.into_iter().map(node).collect(),
            cables,
            lit: BTreeMap::new(),
            timers: Alarms::new(),
            flight: VecDeque::new(),
        };
        for node in 0..trial.nodes.len() {
            trial.drain(node);
        }
        trial
    }

    /// Turns on the light of a link.
    pub fn raise(&mut self, cable: usize) {
        let [one, other] = self.cables[cable].ends;
        if self.lit.insert(one, other).is_some() {
            return;
        }
        self.lit.insert(other, one);
        for (node, port) in [one, other] {
            self.input(node, Input::PortUp { port, kind: PortKind::E });
        }
    }

    /// Runs until all links are part of a fabric or isolated, or the maximum duration is reached.
    pub fn run_until_quiet(&mut self) {
        let end = self.now + MAX_DURATION;
        while self.now < end {
            let until = self.now + QUIET;
            let was_open = self.is_open();
            self.run(until);
            if !was_open && !self.is_open() {
                return;
            }
        }
    }

    /// Switch by its index in [`Trial::new`].
    pub fn switch(&self, node: usize) -> &FabricSwitch {
        &self.nodes[node].machine
    }

    /// Reason why a link carries no traffic, and the end (0 or 1) that detected it; `None` if it
    /// carries traffic.
    pub fn isolation(&self, cable: usize) -> Option<(usize, Isolation)> {
        let state = |(node, port): (usize, u16)| {
            self.nodes[node].machine.isls().find(|isl| isl.members.contains(&port)).map(|isl| isl.state)
        };
        let states = self.cables[cable].ends.map(state);
        if states.iter().all(|state| *state == Some(IslState::Up)) {
            return None;
        }
        let reasons = states.into_iter().enumerate().filter_map(|(end, state)| match state {
            Some(IslState::Isolated(reason)) => Some((end, reason)),
            _ => None,
        });
        // The end that detected the reason has more detail than the other.
        Some(reasons.min_by_key(|(_, reason)| *reason == Isolation::OtherSide).unwrap_or((0, Isolation::OtherSide)))
    }

    /// For each switch, the lowest index among the switches of its fabric. A fabric is joined by
    /// links that carry traffic.
    pub fn fabrics(&self) -> Vec<usize> {
        let mut fabric: Vec<usize> = (0..self.nodes.len()).collect();
        let joined: Vec<Cable> =
            (0..self.cables.len()).filter(|n| self.isolation(*n).is_none()).map(|n| self.cables[n]).collect();
        for Cable { ends: [(a, _), (b, _)] } in joined {
            let (first, other) = (fabric[a].min(fabric[b]), fabric[a].max(fabric[b]));
            fabric.iter_mut().filter(|of| **of == other).for_each(|of| *of = first);
        }
        fabric
    }

    /// Returns true if a request is in flight, or a link is neither part of the fabric nor
    /// isolated.
    fn is_open(&self) -> bool {
        self.nodes.iter().any(|node| {
            node.machine.open_requests() > 0 || node.machine.isls().any(|isl| isl.state == IslState::Initialising)
        })
    }

    fn run(&mut self, end: Instant) {
        loop {
            let arrival = self.flight.front().map(|flight| flight.at);
            let next = [arrival, self.timers.next()].into_iter().flatten().min();
            let Some(at) = next.filter(|at| *at <= end) else { break };
            self.now = self.now.max(at);
            if arrival == Some(at) {
                if let Some(flight) = self.flight.pop_front() {
                    self.arrive(flight);
                }
            } else if let Some(node) = self.timers.due(at) {
                self.input(node, Input::Timeout);
            }
        }
        self.now = end;
    }

    fn input(&mut self, node: usize, input: Input) {
        self.nodes[node].machine.handle(self.now, input);
        self.drain(node);
    }

    fn drain(&mut self, node: usize) {
        while let Some(output) = self.nodes[node].machine.poll_output() {
            match output {
                Output::Fib(delta) => self.nodes[node].fib.apply(&delta),
                Output::Send { port, frame } => self.leave(node, port, frame),
                Output::Event(_) | Output::Persist { .. } | Output::Zones { .. } => {}
            }
        }
        match self.nodes[node].machine.poll_timeout() {
            Some(at) => self.timers.set(node, at),
            None => self.timers.clear(node),
        }
    }

    fn leave(&mut self, node: usize, port: u16, frame: Frame) {
        if let Some((node, port)) = self.lit.get(&(node, port)).copied() {
            self.flight.push_back(Flight { at: self.now + DELAY, node, port, frame });
        }
    }

    fn arrive(&mut self, flight: Flight) {
        let Flight { node, port, frame, .. } = flight;
        let header = frame.header;
        match self.nodes[node].fib.decide(port, header.s_id, header.d_id, header.ox_id) {
            Decision::Local => self.input(node, Input::Frame { port, frame }),
            Decision::Forward(Egress::Port(out)) => self.leave(node, out, frame),
            Decision::Forward(Egress::Bundle(bundle)) => {
                let bundles = (0..).zip(&self.nodes[node].bundles);
                let mut members = bundles.filter(|(_, of)| **of == Some(bundle)).map(|(port, _)| port);
                if let Some(out) = members.find(|port| self.lit.contains_key(&(node, *port))) {
                    self.leave(node, out, frame);
                }
            }
            Decision::Forward(Egress::Spray(_)) | Decision::Drop(_) => {}
        }
    }
}
