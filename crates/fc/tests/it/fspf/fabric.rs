//! Switches that only run FSPF, on links that delay, lose and reorder messages.

use sanloom_fc::fabric::Leg;
use sanloom_fc::fabric::routes::{Isl, IslEnd, routes};
use sanloom_fc::fspf::{Fspf, FspfConfig, Input, Output};
use sanloom_fc::ils::{Peer, Send};
use sanloom_scsi::random::SplitMix64;
use sanloom_scsi::time::{Instant, Span};
use sanloom_wire::Message;
use sanloom_wire::sw_ils::SwIls;
use std::collections::BTreeMap;

pub struct Fabric {
    pub now: Instant,
    pub domains: Vec<u8>,
    pub isls: Vec<Isl>,
    pub switches: Vec<Fspf>,
    /// Routes of each switch: the sum of its outputs.
    pub reported: Vec<BTreeMap<u8, Vec<Leg>>>,
    /// Number of lost messages per thousand.
    pub loss: u64,
    /// Maximum additional delay of a message in microseconds, on top of 1 ms.
    pub jitter_us: u64,
    pub messages: u64,
    random: SplitMix64,
    /// Messages in transit, by time and number.
    in_transit: BTreeMap<(Instant, u64), Delivery>,
    /// Number of times that each link went up.
    up_counts: Vec<u32>,
    ends: BTreeMap<(usize, u16), (usize, usize, u16)>,
}

struct Delivery {
    link: usize,
    /// Number of times that the link had gone up when the message was sent.
    up_count: u32,
    to: usize,
    port: u16,
    message: SwIls,
}

impl Fabric {
    /// Creates all switches with their domains, and raises all links that are marked as up.
    pub fn new(config: FspfConfig, domains: Vec<u8>, isls: Vec<Isl>, seed: u64) -> Fabric {
        let mut ends = BTreeMap::new();
        for (n, isl) in isls.iter().enumerate() {
            ends.insert((isl.a.switch, isl.a.port), (n, isl.b.switch, isl.b.port));
            ends.insert((isl.b.switch, isl.b.port), (n, isl.a.switch, isl.a.port));
        }
        let mut fabric = Fabric {
            now: Instant::ZERO,
            switches: domains.iter().map(|_| Fspf::new(config)).collect(),
            reported: vec![BTreeMap::new(); domains.len()],
            up_counts: vec![0; isls.len()],
            domains,
            isls,
            loss: 0,
            jitter_us: 0,
            messages: 0,
            random: SplitMix64(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1),
            in_transit: BTreeMap::new(),
            ends,
        };
        for switch in 0..fabric.switches.len() {
            fabric.input(switch, Input::Domain(Some(fabric.domains[switch])));
        }
        for link in 0..fabric.isls.len() {
            if fabric.isls[link].up {
                fabric.raise(link);
            }
        }
        fabric
    }

    pub fn input(&mut self, switch: usize, input: Input) {
        self.switches[switch].handle(self.now, input);
        while let Some(output) = self.switches[switch].poll_output() {
            match output {
                Output::Send(Send::Notice { to: Peer::Link(port), message: Message::SwIls(message) }) => {
                    self.send(switch, port, *message);
                }
                Output::Send(other) => panic!("{other:?}"),
                Output::Neighbour { .. } | Output::AdjacencyLost { .. } | Output::AdjacencyRestored { .. } => {}
                Output::Routes(changes) => {
                    assert!(changes.is_sorted_by_key(|(domain, _)| *domain));
                    for (domain, legs) in changes {
                        let old = self.reported[switch].remove(&domain).unwrap_or_default();
                        assert_ne!(old, legs, "only changes are reported");
                        if !legs.is_empty() {
                            self.reported[switch].insert(domain, legs);
                        }
                    }
                }
            }
        }
    }

    fn send(&mut self, from: usize, port: u16, message: SwIls) {
        let (link, to, to_port) = self.ends[&(from, port)];
        self.messages += 1;
        if !self.isls[link].up || self.random.below(1000) < self.loss {
            return;
        }
        let late = if self.jitter_us == 0 { 0 } else { self.random.below(self.jitter_us) };
        let at = self.now + Span::from_us(1000 + late);
        let delivery = Delivery { link, up_count: self.up_counts[link], to, port: to_port, message };
        self.in_transit.insert((at, self.messages), delivery);
    }

    /// Raises a link at both ends.
    pub fn raise(&mut self, link: usize) {
        let Isl { a, b, cost, bundle, .. } = self.isls[link];
        self.isls[link].up = true;
        self.up_counts[link] += 1;
        for end in [a, b] {
            self.input(end.switch, Input::LinkUp { port: end.port, cost, bundle });
        }
    }

    /// Cuts a link; messages on it are lost.
    pub fn cut(&mut self, link: usize) {
        self.isls[link].up = false;
        for end in [self.isls[link].a, self.isls[link].b] {
            self.input(end.switch, Input::LinkDown { port: end.port });
        }
    }

    /// Restarts a switch without any state; its links go down and up at the other ends.
    pub fn restart(&mut self, switch: usize, config: FspfConfig) {
        self.switches[switch] = Fspf::new(config);
        self.reported[switch].clear();
        let touches = |isl: &Isl| isl.up && (isl.a.switch == switch || isl.b.switch == switch);
        let links: Vec<usize> = (0..self.isls.len()).filter(|&link| touches(&self.isls[link])).collect();
        self.input(switch, Input::Domain(Some(self.domains[switch])));
        for link in links {
            self.cut(link);
            self.raise(link);
        }
    }

    pub fn run(&mut self, span: Span) {
        let end = self.now + span;
        loop {
            let message = self.in_transit.first_key_value().map(|((at, _), _)| *at);
            let timeouts = self.switches.iter().enumerate();
            let timeout = timeouts.filter_map(|(n, switch)| Some((switch.poll_timeout()?, n))).min();
            match (message, timeout) {
                (Some(at), other) if at <= end && other.is_none_or(|(timeout, _)| at <= timeout) => {
                    let ((at, _), delivery) = self.in_transit.pop_first().unwrap();
                    let Delivery { link, up_count, to, port, message } = delivery;
                    self.now = at;
                    if self.isls[link].up && self.up_counts[link] == up_count {
                        self.input(to, Input::Message { port, message });
                    }
                }
                (_, Some((at, switch))) if at <= end => {
                    self.now = self.now.max(at);
                    self.input(switch, Input::Timeout);
                }
                _ => break,
            }
        }
        self.now = end;
    }

    /// Asserts that all switches have the same records and the right routes, once nothing happens
    /// any more.
    pub fn assert_converged(&self) {
        let true_routes = routes(&self.domains, &self.isls);
        for (switch, fspf) in self.switches.iter().enumerate() {
            let expected: BTreeMap<u8, Vec<Leg>> =
                true_routes[switch].iter().filter(|(_, legs)| !legs.is_empty()).cloned().collect();
            let found: BTreeMap<u8, Vec<Leg>> = fspf.routes().map(|(domain, legs)| (domain, legs.to_vec())).collect();
            assert_eq!(found, expected, "routes of domain {}", self.domains[switch]);
            assert_eq!(self.reported[switch], expected, "routes that domain {} reported", self.domains[switch]);
            for other in (0..self.switches.len()).filter(|&other| expected.contains_key(&self.domains[other])) {
                assert!(fspf.records().eq(self.switches[other].records()), "records of {switch} and {other}");
                self.walk(switch, self.domains[other]);
            }
        }
    }

    /// Asserts that a walk along any choice of legs passes no more switches than there are.
    fn walk(&self, from: usize, target: u8) {
        for choice in 0..3 {
            let (mut at, mut hops) = (from, 0);
            while self.domains[at] != target {
                let legs = &self.reported[at][&target];
                let port = match legs[(choice * hops) % legs.len()] {
                    Leg::Port(port) => port,
                    Leg::Bundle(number) => self.port_of_bundle(at, number),
                };
                at = self.ends[&(at, port)].1;
                hops += 1;
                assert!(hops < self.domains.len(), "a loop from {from} to domain {target}");
            }
        }
    }

    fn port_of_bundle(&self, switch: usize, number: u16) -> u16 {
        let ends = |isl: &Isl| [isl.a, isl.b];
        let members = self.isls.iter().filter(|isl| isl.up && isl.bundle == Some(number)).flat_map(ends);
        members.into_iter().find(|end: &IslEnd| end.switch == switch).expect("a member").port
    }
}

pub fn isl(a: (usize, u16), b: (usize, u16), cost: u32) -> Isl {
    Isl { a: IslEnd { switch: a.0, port: a.1 }, b: IslEnd { switch: b.0, port: b.1 }, cost, bundle: None, up: true }
}
