//! Fabric of zone servers for tests, with links and paths that delay, lose and reorder messages,
//! fail and recover. Every message is encoded and parsed.

use sanloom_fc::ils::{Due, Exchanges, Outcome, Peer, Request, Send};
use sanloom_fc::zoning::server::{
    ChangeFailure, Input, MergeFailure, Output, ZoneChange, ZoneServer, ZoneServerConfig,
};
use sanloom_fc::zoning::{ZoneDatabase, Zones};
use sanloom_scsi::random::SplitMix64;
use sanloom_scsi::time::{Instant, Span};
use sanloom_wire::{FcId, Message, Wwnn};
use std::collections::{BTreeMap, BTreeSet};

/// Time after which a request is repeated.
const PATIENCE: Span = Span::from_secs(2);

/// Fabric of switches 0, 1, 2, … with domains 1, 2, 3, …
pub struct Fabric {
    pub now: Instant,
    pub switches: Vec<Node>,
    pub links: Vec<Link>,
    /// Number of lost messages per thousand.
    pub loss: u64,
    /// Maximum delay of a message.
    pub delay: Span,
    pub random: SplitMix64,
    events: BTreeMap<(Instant, u64), Event>,
    next_event: u64,
}

pub struct Node {
    pub server: ZoneServer,
    pub config: ZoneServerConfig,
    pub merged: BTreeSet<u16>,
    pub isolated: BTreeMap<u16, MergeFailure>,
    /// Results of changes, by tag.
    pub done: BTreeMap<u32, Result<(), Vec<ChangeFailure>>>,
    /// Databases in the order in which they were in force.
    pub history: Vec<ZoneDatabase>,
    exchanges: Exchanges<u32>,
    /// Number of crashes, so that messages sent before a crash do not arrive after it.
    life: u32,
    reported: BTreeSet<u8>,
}

/// Link, by its two ends; it is port number `index` at both.
pub struct Link {
    pub ends: [usize; 2],
    pub up: bool,
    generation: u32,
}

enum Event {
    Up { switch: usize, link: u16, generation: u32 },
    Domains { switch: usize, life: u32 },
    Message { from: usize, to: usize, peer: Peer, life: u32, generation: Option<(u16, u32)>, carried: Carried },
    Wake { switch: usize },
    Restart { switch: usize },
    Repair { link: usize },
    Change { switch: usize, tag: u32, change: ZoneChange },
}

struct Carried {
    ox_id: u16,
    request: bool,
    bytes: Vec<u8>,
}

impl Fabric {
    pub fn new(seed: u64, switches: Vec<(ZoneServerConfig, Zones)>, links: &[[usize; 2]]) -> Fabric {
        let node = |(config, zones): (ZoneServerConfig, Zones)| Node {
            history: vec![zones.database().clone()],
            server: ZoneServer::new(config, zones),
            config,
            merged: BTreeSet::new(),
            isolated: BTreeMap::new(),
            done: BTreeMap::new(),
            exchanges: Exchanges::new(PATIENCE),
            life: 0,
            reported: BTreeSet::new(),
        };
        let mut fabric = Fabric {
            now: Instant::ZERO,
            switches: switches.into_iter().map(node).collect(),
            links: links.iter().map(|ends| Link { ends: *ends, up: false, generation: 0 }).collect(),
            loss: 0,
            delay: Span::from_ms(20),
            random: SplitMix64(seed),
            events: BTreeMap::new(),
            next_event: 0,
        };
        for switch in 0..fabric.switches.len() {
            fabric.input(switch, Input::Domain(Some(domain(switch))));
        }
        for link in 0..fabric.links.len() {
            fabric.link_up(link);
        }
        fabric
    }

    pub fn link_up(&mut self, link: usize) {
        let Link { ends, up, generation } = &mut self.links[link];
        *up = true;
        *generation += 1;
        let (ends, generation) = (*ends, *generation);
        for switch in ends {
            let at = self.soon();
            self.schedule(at, Event::Up { switch, link: link as u16, generation });
        }
    }

    pub fn link_down(&mut self, link: usize) {
        let Link { ends, up, generation } = &mut self.links[link];
        *up = false;
        *generation += 1;
        for switch in *ends {
            let port = link as u16;
            let node = &mut self.switches[switch];
            node.merged.remove(&port);
            node.isolated.remove(&port);
            node.exchanges.forget(|peer| peer == Peer::Link(port));
            self.input(switch, Input::LinkDown { port });
        }
        self.tell_domains();
    }

    pub fn repair(&mut self, link: usize, after: Span) {
        self.schedule(self.now + after, Event::Repair { link });
    }

    /// Crashes a switch: it loses everything except its committed database, and its links for a
    /// while.
    pub fn crash(&mut self, switch: usize, for_time: Span) {
        for link in 0..self.links.len() {
            if self.links[link].up && self.links[link].ends.contains(&switch) {
                self.link_down(link);
                self.repair(link, for_time + Span::from_ms(10));
            }
        }
        let node = &mut self.switches[switch];
        node.life += 1;
        node.exchanges = Exchanges::new(PATIENCE);
        node.server = ZoneServer::new(node.config, Zones::new(node.server.database().clone()));
        node.reported = BTreeSet::new();
        self.schedule(self.now + for_time, Event::Restart { switch });
    }

    pub fn change(&mut self, switch: usize, tag: u32, change: ZoneChange, after: Span) {
        self.schedule(self.now + after, Event::Change { switch, tag, change });
    }

    /// Advances the clock.
    pub fn run(&mut self, span: Span) {
        let end = self.now + span;
        while let Some(entry) = self.events.first_entry() {
            if entry.key().0 > end {
                break;
            }
            let ((at, _), event) = entry.remove_entry();
            self.now = at;
            self.happen(event);
        }
        self.now = end;
    }

    /// Returns whether both ends have merged and neither isolates the link.
    pub fn carries(&self, link: usize) -> bool {
        let port = link as u16;
        self.links[link].up
            && self.links[link].ends.iter().all(|end| {
                let node = &self.switches[*end];
                node.merged.contains(&port) && !node.isolated.contains_key(&port)
            })
    }

    fn happen(&mut self, event: Event) {
        match event {
            Event::Up { switch, link, generation } => {
                if self.links[usize::from(link)].generation == generation {
                    let [a, b] = self.links[usize::from(link)].ends;
                    let (_, neighbour) = identity(if a == switch { b } else { a });
                    self.input(switch, Input::LinkUp { port: link, neighbour });
                }
            }
            Event::Domains { switch, life } => {
                if self.switches[switch].life == life {
                    let domains: Vec<(u8, Wwnn)> =
                        self.component(switch).into_iter().filter(|other| *other != switch).map(identity).collect();
                    let known = |domain| domains.iter().any(|(other, _)| *other == domain);
                    let gone = |peer| matches!(peer, Peer::Domain(domain) if !known(domain));
                    self.switches[switch].exchanges.forget(gone);
                    self.input(switch, Input::Domains(domains));
                }
            }
            Event::Message { from, to, peer, life, generation, carried } => {
                let there = match generation {
                    Some((link, generation)) => self.links[usize::from(link)].generation == generation,
                    None => self.component(from).contains(&to),
                };
                if there && self.switches[to].life == life {
                    self.arrive(to, peer, carried);
                }
            }
            Event::Wake { switch } => {
                while let Some(due) = self.switches[switch].exchanges.due(self.now) {
                    match due {
                        Due::Again { to, message, ox_id } => self.send(switch, to, ox_id, true, &message),
                        Due::GivenUp { owner, .. } => {
                            self.input(switch, Input::Outcome { tag: owner, outcome: Outcome::Unanswered });
                        }
                    }
                }
                if self.switches[switch].server.poll_timeout().is_some_and(|at| at <= self.now) {
                    self.input(switch, Input::Timeout);
                }
            }
            Event::Restart { switch } => self.input(switch, Input::Domain(Some(domain(switch)))),
            Event::Repair { link } => {
                if !self.links[link].up {
                    self.link_up(link);
                }
            }
            Event::Change { switch, tag, change } => self.input(switch, Input::Change { tag, change }),
        }
    }

    fn input(&mut self, switch: usize, input: Input) {
        self.switches[switch].server.handle(self.now, input);
        let mut links_changed = false;
        while let Some(output) = self.switches[switch].server.poll_output() {
            let node = &mut self.switches[switch];
            match output {
                Output::Send(Send::Request { to, message, tag }) => {
                    let ox_id = node.exchanges.open(self.now, to, message.clone(), tag).expect("an exchange is free");
                    self.send(switch, to, ox_id, true, &message);
                    self.wake(switch, self.now + PATIENCE);
                }
                Output::Send(Send::Answer { request, message }) => {
                    self.send(switch, request.from, request.ox_id, false, &message);
                }
                Output::Send(Send::Notice { .. } | Send::Withdraw { .. }) => panic!("the zone server has no notices"),
                Output::Changed { zones, effective } => {
                    let database = zones.database().clone();
                    let before = node.history.last().expect("the first database");
                    let differs =
                        before.effective != database.effective || before.default_zone != database.default_zone;
                    assert_eq!(differs, effective);
                    node.history.push(database);
                }
                Output::LinkMerged { port } => {
                    node.merged.insert(port);
                    links_changed = true;
                }
                Output::Isolate { port, failure } => {
                    node.isolated.insert(port, failure);
                    links_changed = true;
                }
                Output::ChangeDone { tag, result } => {
                    assert!(node.done.insert(tag, result).is_none(), "a change ends once");
                }
            }
        }
        assert_eq!(self.switches[switch].history.last(), Some(self.switches[switch].server.database()));
        if let Some(at) = self.switches[switch].server.poll_timeout() {
            self.wake(switch, at.max(self.now));
        }
        if links_changed {
            self.tell_domains();
        }
    }

    /// Updates the reachable domains of all switches, each after a delay.
    fn tell_domains(&mut self) {
        for switch in 0..self.switches.len() {
            let others: BTreeSet<u8> =
                self.component(switch).into_iter().filter(|other| *other != switch).map(domain).collect();
            if self.switches[switch].reported != others {
                self.switches[switch].reported = others.clone();
                let (at, life) = (self.soon(), self.switches[switch].life);
                self.schedule(at, Event::Domains { switch, life });
            }
        }
    }

    /// Switches with a path to this one, including itself.
    pub fn component(&self, switch: usize) -> BTreeSet<usize> {
        let mut found = BTreeSet::from([switch]);
        let mut open = vec![switch];
        while let Some(here) = open.pop() {
            for (index, link) in self.links.iter().enumerate().filter(|(_, link)| link.ends.contains(&here)) {
                let there = if link.ends[0] == here { link.ends[1] } else { link.ends[0] };
                if self.carries(index) && found.insert(there) {
                    open.push(there);
                }
            }
        }
        found
    }

    fn send(&mut self, from: usize, to: Peer, ox_id: u16, request: bool, message: &Message) {
        if request {
            self.wake(from, self.now + PATIENCE);
        }
        let mut bytes = Vec::new();
        message.emit(&mut bytes);
        let carried = Carried { ox_id, request, bytes };
        let (receiver, peer, generation) = match to {
            Peer::Link(port) => {
                let link = &self.links[usize::from(port)];
                let other = if link.ends[0] == from { link.ends[1] } else { link.ends[0] };
                (other, Peer::Link(port), Some((port, link.generation)))
            }
            Peer::Domain(to) => (usize::from(to) - 1, Peer::Domain(domain(from)), None),
        };
        if self.random.below(1000) < self.loss {
            return;
        }
        let (at, life) = (self.soon(), self.switches[receiver].life);
        self.schedule(at, Event::Message { from, to: receiver, peer, life, generation, carried });
    }

    fn arrive(&mut self, switch: usize, from: Peer, carried: Carried) {
        let Carried { ox_id, request, bytes } = carried;
        let header = |message: Message| message.header(FcId::ZERO, FcId::ZERO, ox_id, 0xffff);
        let any_request = header(sanloom_wire::sw_ils::SwIls::Rca.into());
        if request {
            let message = Message::parse(&any_request, &bytes, None).expect("a request");
            let request = Request { from, port: 0, ox_id };
            self.input(switch, Input::Request { request, message });
            return;
        }
        let node = &mut self.switches[switch];
        let Some(reply_to) = node.exchanges.request(from, ox_id).map(Message::reply_key) else { return };
        let message = Message::parse(&any_request, &bytes, reply_to).expect("an answer");
        let tag = node.exchanges.close(from, ox_id).expect("it is open");
        self.input(switch, Input::Outcome { tag, outcome: Outcome::Answered(message) });
    }

    fn soon(&mut self) -> Instant {
        self.now + Span::from_ns(1_000 + self.random.below(self.delay.as_ns()))
    }

    fn wake(&mut self, switch: usize, at: Instant) {
        self.schedule(at, Event::Wake { switch });
    }

    fn schedule(&mut self, at: Instant, event: Event) {
        self.next_event += 1;
        self.events.insert((at, self.next_event), event);
    }
}

pub fn domain(switch: usize) -> u8 {
    switch as u8 + 1
}

fn identity(switch: usize) -> (u8, Wwnn) {
    (domain(switch), Wwnn(0x1000_0000_0000_0000 + switch as u64))
}
