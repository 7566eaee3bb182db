//! Switches with E_Ports and domain managers on a scripted network with delays, loss, reordering
//! and failures of links and switches.
#![allow(dead_code)] // each test file uses its part

use sanloom_fc::domain::{DEFAULT_PRIORITY, DomainConfig, DomainManager, Input, Output};
use sanloom_fc::eport::{self, EPort, EPortConfig, State};
use sanloom_fc::ils::{Due, Exchanges, Outcome, Peer, Request, Send};
use sanloom_fc::isolation::Isolation;
use sanloom_scsi::random::SplitMix64;
use sanloom_scsi::time::{Instant, Span};
use sanloom_wire::sw_ils::{FlowControl, SwIls};
use sanloom_wire::{Message, Wwnn, Wwpn};
use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet, BinaryHeap};
use std::iter;

pub const F_S_TOV: Span = Span::from_secs(5);
const PATIENCE: Span = Span::from_ms(1500);

pub fn name(switch: usize) -> Wwnn {
    Wwnn(0x1000_0000_0000_0000 + switch as u64)
}

pub fn config(switch: usize) -> DomainConfig {
    DomainConfig {
        switch_name: name(switch),
        priority: DEFAULT_PRIORITY,
        preferred: None,
        insistent: false,
        allow_rcf: true,
        auto_reconfigure: false,
        f_s_tov: F_S_TOV,
    }
}

#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
enum Owner {
    EPort(u16, u32),
    Domain(u32),
}

pub struct Node {
    pub config: DomainConfig,
    pub domain: DomainManager,
    pub eports: BTreeMap<u16, EPort>,
    exchanges: Exchanges<Owner>,
    /// Ports whose neighbours were reported as members of the fabric.
    pub ready: BTreeSet<u16>,
    /// All reports of the switch's own domain.
    pub domains_reported: Vec<Option<u8>>,
    pub principals_reported: Vec<Wwnn>,
    pub isolations: Vec<(u16, Isolation)>,
}

/// Link between two ports; port numbers are link numbers.
pub struct Link {
    pub ends: [usize; 2],
    pub up: bool,
    /// Generation of the link; frames of earlier generations are lost.
    age: u64,
}

#[derive(PartialEq, Eq)]
struct Flight {
    to: usize,
    port: u16,
    age: u64,
    ox_id: u16,
    answer: bool,
    message: SwIls,
}

pub struct Net {
    pub now: Instant,
    pub nodes: Vec<Node>,
    pub links: Vec<Link>,
    flights: BTreeMap<(Instant, u64), Flight>,
    timers: BinaryHeap<Reverse<(Instant, usize)>>,
    sequence: u64,
    pub random: SplitMix64,
    /// Percentage of messages that are lost.
    pub loss: u64,
    pub delay: Span,
    pub messages: u64,
}

impl Net {
    pub fn new(configs: Vec<DomainConfig>, links: &[[usize; 2]], seed: u64) -> Net {
        let now = Instant::ZERO;
        let mut net = Net {
            now,
            nodes: Vec::new(),
            links: links.iter().map(|&ends| Link { ends, up: false, age: 0 }).collect(),
            flights: BTreeMap::new(),
            timers: BinaryHeap::new(),
            sequence: 0,
            random: SplitMix64(seed),
            loss: 0,
            delay: Span::from_ms(2),
            messages: 0,
        };
        for config in configs {
            net.nodes.push(net.made(config));
        }
        for switch in 0..net.nodes.len() {
            net.drain(switch);
        }
        net
    }

    fn made(&self, config: DomainConfig) -> Node {
        Node {
            domain: DomainManager::new(self.now, config.clone()),
            config,
            eports: BTreeMap::new(),
            exchanges: Exchanges::new(PATIENCE),
            ready: BTreeSet::new(),
            domains_reported: Vec::new(),
            principals_reported: Vec::new(),
            isolations: Vec::new(),
        }
    }

    /// Brings a link up or takes it down.
    pub fn set_link(&mut self, link: usize, up: bool) {
        if self.links[link].up == up {
            return;
        }
        self.links[link].up = up;
        self.links[link].age += 1;
        for end in self.links[link].ends {
            let port = link as u16;
            let node = &mut self.nodes[end];
            let config = EPortConfig {
                port,
                port_name: Wwpn(node.config.switch_name.0 + (u64::from(port) << 32)),
                switch_name: node.config.switch_name,
                r_a_tov: Span::from_secs(10),
                e_d_tov: Span::from_secs(2),
                bb_credit: 8,
                bb_sc_n: 0,
                receive_size_bytes: 2112,
                classes: [false, true, true],
                flow_control: vec![FlowControl::R_RDY],
                retry: Span::from_secs(2),
                vendor: *b"SANLOOM ",
            };
            let eport = node.eports.entry(port).or_insert_with(|| EPort::new(config));
            node.exchanges.forget(|peer| peer == Peer::Link(port));
            eport.handle(self.now, if up { eport::Input::LinkUp } else { eport::Input::LinkDown });
            if !up {
                // An isolation ends with the link.
                node.domain.handle(self.now, Input::LinkDown { port });
            }
            self.drain(end);
        }
    }

    /// Restarts a switch without any state; its links go down and stay down.
    pub fn restart(&mut self, switch: usize) {
        for link in 0..self.links.len() {
            if self.links[link].ends.contains(&switch) {
                self.set_link(link, false);
            }
        }
        let config = self.nodes[switch].config.clone();
        let emitted = std::mem::take(&mut self.nodes[switch].principals_reported);
        self.nodes[switch] = self.made(config);
        self.nodes[switch].principals_reported = emitted;
        self.drain(switch);
    }

    pub fn input(&mut self, switch: usize, input: Input) {
        self.nodes[switch].domain.handle(self.now, input);
        self.drain(switch);
    }

    /// Runs the network for this time.
    pub fn run(&mut self, span: Span) {
        let end = self.now + span;
        loop {
            let flight = self.flights.first_key_value().map(|((at, _), _)| *at);
            let timer = self.timers.peek().map(|Reverse((at, _))| *at);
            let Some(at) = [flight, timer].into_iter().flatten().min().filter(|at| *at <= end) else { break };
            self.now = self.now.max(at);
            if flight == Some(at) {
                let (_, flight) = self.flights.pop_first().expect("it was there");
                self.arrive(flight);
            } else if let Some(Reverse((_, switch))) = self.timers.pop() {
                self.timeout(switch);
            }
        }
        self.now = end;
    }

    fn arrive(&mut self, flight: Flight) {
        let link = &self.links[usize::from(flight.port)];
        if !link.up || link.age != flight.age {
            return;
        }
        let (switch, port, ox_id) = (flight.to, flight.port, flight.ox_id);
        let node = &mut self.nodes[switch];
        if flight.answer {
            if let Some(owner) = node.exchanges.close(Peer::Link(port), ox_id) {
                self.ended(switch, owner, Outcome::Answered(flight.message.into()));
            }
        } else {
            let request = Request { from: Peer::Link(port), port, ox_id };
            match flight.message {
                SwIls::Elp(_) | SwIls::Esc(_) => {
                    let input = eport::Input::Request { request, message: flight.message };
                    if let Some(eport) = node.eports.get_mut(&port) {
                        eport.handle(self.now, input);
                    }
                }
                message => node.domain.handle(self.now, Input::Request { request, message }),
            }
        }
        self.drain(switch);
    }

    fn ended(&mut self, switch: usize, owner: Owner, outcome: Outcome) {
        let node = &mut self.nodes[switch];
        match owner {
            Owner::EPort(port, tag) => {
                if let Some(eport) = node.eports.get_mut(&port) {
                    eport.handle(self.now, eport::Input::Outcome { tag, outcome });
                }
            }
            Owner::Domain(tag) => node.domain.handle(self.now, Input::Outcome { tag, outcome }),
        }
    }

    fn timeout(&mut self, switch: usize) {
        let now = self.now;
        while let Some(due) = self.nodes[switch].exchanges.due(now) {
            match due {
                Due::Again { to: Peer::Link(port), message, ox_id } => self.fly(switch, port, ox_id, false, message),
                Due::GivenUp { owner, .. } => {
                    self.ended(switch, owner, Outcome::Unanswered);
                    self.drain(switch);
                }
                Due::Again { .. } => unreachable!("requests go to neighbours only"),
            }
        }
        let node = &mut self.nodes[switch];
        node.domain.handle(now, Input::Timeout);
        for eport in node.eports.values_mut() {
            eport.handle(now, eport::Input::Timeout);
        }
        self.drain(switch);
    }

    fn drain(&mut self, switch: usize) {
        loop {
            let eports = self.nodes[switch].eports.iter_mut();
            let outputs: Vec<(u16, eport::Output)> = eports
                .flat_map(|(port, eport)| iter::from_fn(|| eport.poll_output()).map(|output| (*port, output)))
                .collect();
            let mut idle = outputs.is_empty();
            for (port, output) in outputs {
                self.eport_emitted(switch, port, output);
            }
            while let Some(output) = self.nodes[switch].domain.poll_output() {
                idle = false;
                self.domain_emitted(switch, output);
            }
            if idle {
                break;
            }
        }
        let node = &self.nodes[switch];
        let eports = node.eports.values().filter_map(EPort::poll_timeout).min();
        let times = [node.domain.poll_timeout(), node.exchanges.next_deadline(), eports];
        if let Some(at) = times.into_iter().flatten().min() {
            self.timers.push(Reverse((at.max(self.now), switch)));
        }
    }

    fn eport_emitted(&mut self, switch: usize, port: u16, output: eport::Output) {
        match output {
            eport::Output::Send(send) => self.send(switch, send, |tag| Owner::EPort(port, tag)),
            eport::Output::Up(neighbour) => {
                let input = Input::LinkUp { port, neighbour: neighbour.switch_name };
                self.nodes[switch].domain.handle(self.now, input);
            }
            eport::Output::Down => {
                self.nodes[switch].ready.remove(&port);
                if self.nodes[switch].domain.isolated(port).is_none() {
                    self.nodes[switch].domain.handle(self.now, Input::LinkDown { port });
                }
            }
            eport::Output::Isolated(reason) => self.nodes[switch].isolations.push((port, reason)),
        }
    }

    fn domain_emitted(&mut self, switch: usize, output: Output) {
        let node = &mut self.nodes[switch];
        match output {
            Output::Send(send) => self.send(switch, send, Owner::Domain),
            Output::Domain(domain) => {
                node.domains_reported.push(domain);
                if domain.is_none() {
                    node.ready.clear();
                }
            }
            Output::Principal { name, .. } => node.principals_reported.push(name),
            Output::LinkReady { port } => {
                node.ready.insert(port);
            }
            Output::Isolate { port, reason } => {
                if let Some(eport) = node.eports.get_mut(&port) {
                    eport.handle(self.now, eport::Input::Isolate(reason));
                }
            }
            Output::Domains(_) | Output::FabricName(_) => {}
        }
    }

    fn send(&mut self, switch: usize, send: Send, owner: impl Fn(u32) -> Owner) {
        match send {
            Send::Request { to: Peer::Link(port), message, tag } => {
                let exchanges = &mut self.nodes[switch].exchanges;
                let ox_id = exchanges.open(self.now, Peer::Link(port), message.clone(), owner(tag));
                self.fly(switch, port, ox_id.expect("few are open"), false, message);
            }
            Send::Answer { request, message } => self.fly(switch, request.port, request.ox_id, true, message),
            other => panic!("{other:?}"),
        }
    }

    fn fly(&mut self, from: usize, port: u16, ox_id: u16, answer: bool, message: Message) {
        let Message::SwIls(message) = message else { panic!("a switch sends {message}") };
        self.messages += 1;
        let link = &self.links[usize::from(port)];
        if !link.up || self.random.below(100) < self.loss {
            return;
        }
        let to = link.ends[usize::from(link.ends[0] == from)];
        self.sequence += 1;
        let delay = Span::from_ns(1 + self.random.below(self.delay.as_ns()));
        let flight = Flight { to, port, age: link.age, ox_id, answer, message: *message };
        self.flights.insert((self.now + delay, self.sequence), flight);
    }

    pub fn is_up(&self, link: usize) -> bool {
        self.links[link].ends.iter().all(|end| {
            let eport = self.nodes[*end].eports.get(&(link as u16));
            eport.is_some_and(|eport| matches!(eport.state(), State::Up(_)))
        })
    }

    /// Groups of switches connected by links that carry traffic.
    pub fn components(&self) -> Vec<BTreeSet<usize>> {
        let mut root: Vec<usize> = (0..self.nodes.len()).collect();
        let up = (0..self.links.len()).filter(|link| self.is_up(*link));
        for [a, b] in up.map(|link| self.links[link].ends) {
            let (from, to) = (root[a], root[b]);
            root.iter_mut().filter(|r| **r == from).for_each(|r| *r = to);
        }
        let mut sets: BTreeMap<usize, BTreeSet<usize>> = BTreeMap::new();
        for (switch, root) in root.into_iter().enumerate() {
            sets.entry(root).or_default().insert(switch);
        }
        sets.into_values().collect()
    }

    /// Checks that all switches of a group agree, and that their lists contain no other switches.
    pub fn check(&self) -> Result<(), String> {
        for component in self.components() {
            let one = *component.first().expect("a component has a switch");
            let principal = self.nodes[one].domain.principal();
            let list = self.nodes[one].domain.domains();
            let owners: BTreeSet<Wwnn> = list.values().copied().collect();
            let members: BTreeSet<Wwnn> = component.iter().map(|switch| name(*switch)).collect();
            if owners != members || list.len() != members.len() {
                return Err(format!("{component:?}: domains {list:?}"));
            }
            if principal.is_none_or(|principal| !members.contains(&principal)) {
                return Err(format!("{component:?}: principal {principal:?}"));
            }
            for switch in component {
                let domain = &self.nodes[switch].domain;
                if domain.principal() != principal || domain.domains() != list {
                    return Err(format!("{switch}: {:?} {:?}, not {list:?}", domain.principal(), domain.domains()));
                }
                if domain.domain().and_then(|domain| list.get(&domain)) != Some(&name(switch)) {
                    return Err(format!("{switch} has {:?}, not as in {list:?}", domain.domain()));
                }
            }
        }
        for (link, Link { ends, .. }) in self.links.iter().enumerate().filter(|(link, _)| self.is_up(*link)) {
            if let Some(end) = ends.iter().find(|end| !self.nodes[**end].ready.contains(&(link as u16))) {
                return Err(format!("link {link} is not ready at {end}"));
            }
        }
        Ok(())
    }

    /// Names of all reasons for isolated links.
    pub fn isolation_names(&self) -> BTreeSet<&'static str> {
        let eports = self.nodes.iter().flat_map(|node| node.eports.values());
        eports
            .filter_map(|eport| match eport.state() {
                State::Isolated(reason) => Some(reason.name()),
                _ => None,
            })
            .collect()
    }
}

/// Connected graph: a random tree and `more` random links.
pub fn graph(random: &mut SplitMix64, switches: usize, more: usize) -> Vec<[usize; 2]> {
    let mut links: Vec<_> = (1..switches).map(|to| [random.below(to as u64) as usize, to]).collect();
    while links.len() < switches - 1 + more {
        let [a, b] = [random.below(switches as u64) as usize, random.below(switches as u64) as usize];
        if a != b {
            links.push([a, b]);
        }
    }
    links
}
