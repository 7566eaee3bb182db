//! Whole switches with their forwarding tables, links that delay, lose and reorder frames, and
//! N_Ports that log in.

mod churn;
mod controllers;
mod hostile;
mod management;
mod reveal;

use sanloom_fc::config::CostRule;
use sanloom_fc::config::{IslChoice, Zone, ZoneDefault, ZoneMember, Zoning};
use sanloom_fc::domain::DomainConfig;
use sanloom_fc::fabric::{Decision, Egress, Fib, PortIdentity, ZoneSet};
use sanloom_fc::fabric_switch::{Event, FabricSwitch, FabricSwitchConfig, Input, IslConfig, IslState, Output};
use sanloom_fc::fspf::FspfConfig;
use sanloom_fc::names::NamesConfig;
use sanloom_fc::switch::{Policy, PortKind, SwitchConfig};
use sanloom_fc::zoning::server::ZoneServerConfig;
use sanloom_fc::zoning::{ZoneDatabase, Zones};
use sanloom_scsi::random::SplitMix64;
use sanloom_scsi::time::{Instant, Span};
use sanloom_wire::els::{Els, LsAcc};
use sanloom_wire::login::Login;
use sanloom_wire::ns::{NsRequest, one_type};
use sanloom_wire::sw_ils::FlowControl;
use sanloom_wire::{FCtl, FcId, FcType, Frame, Header, Message, Payload, RCtl, Wwnn, Wwpn, ct::Ct};
use std::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap};
use std::sync::Arc;

pub const E_D_TOV: Span = Span::from_secs(2);
const PORTS: u16 = 16;
/// Delay of any link.
const DELAY: Span = Span::from_us(50);

pub fn switch_name(number: usize) -> Wwnn {
    Wwnn(0x1000_0000_0000_0100 + number as u64)
}

pub fn config(number: usize, preferred: Option<u8>, zoning: &Zoning) -> FabricSwitchConfig {
    let name = switch_name(number);
    FabricSwitchConfig {
        services: SwitchConfig {
            domain: None,
            name,
            fabric_name: name,
            ports: PORTS,
            e_d_tov: E_D_TOV,
            r_a_tov: Span::from_secs(10),
            rscn_delay: Span::from_ms(5),
            bb_credit: vec![16; usize::from(PORTS)],
            bb_sc_n: Vec::new(),
            receive_size_bytes: 2112,
            zoning: Arc::new(ZoneSet::new(zoning)),
            policy: Policy::default(),
        },
        domain: DomainConfig {
            switch_name: name,
            priority: 128,
            preferred,
            insistent: false,
            allow_rcf: false,
            auto_reconfigure: false,
            f_s_tov: Span::from_secs(7),
        },
        zones: ZoneServerConfig::default(),
        database: Zones::new(ZoneDatabase::of_zoning(zoning, "test")),
        fspf: FspfConfig::default(),
        cost_rule: CostRule::Standard,
        names: NamesConfig::default(),
        flow_control: vec![FlowControl::R_RDY],
        isls: vec![
            IslConfig { bytes_per_s: 1_700_000_000, bb_credit: 16, bb_sc_n: 0, bundle: None };
            usize::from(PORTS)
        ],
    }
}

pub fn open() -> Zoning {
    Zoning { zones: Vec::new(), default: ZoneDefault::Open }
}

pub fn zoned(zones: &[(&str, &[u64])]) -> Zoning {
    let zone = |(name, members): &(&str, &[u64])| Zone {
        name: (*name).to_owned(),
        members: members.iter().map(|name| ZoneMember::PortName(Wwpn(*name))).collect(),
        principals: Vec::new(),
    };
    Zoning { zones: zones.iter().map(zone).collect(), default: ZoneDefault::Closed }
}

/// Seeds of a campaign: `SANLOOM_SEEDS` (default `count`) seeds, starting at `SANLOOM_FIRST_SEED`
/// (0).
pub fn seeds(count: u64) -> std::ops::Range<u64> {
    let number = |name: &str, default: u64| std::env::var(name).map_or(default, |text| text.parse().expect("a number"));
    let first = number("SANLOOM_FIRST_SEED", 0);
    first..first + number("SANLOOM_SEEDS", count)
}

pub struct Node {
    pub machine: FabricSwitch,
    pub fib: Fib,
    pub up: bool,
    /// Zones as they would be stored.
    kept: ZoneDatabase,
    config: FabricSwitchConfig,
}

/// Link between two switches.
#[derive(Clone, Copy, Debug)]
pub struct Cable {
    pub ends: [(usize, u16); 2],
    pub up: bool,
}

pub struct Bed {
    pub now: Instant,
    pub nodes: Vec<Node>,
    pub cables: Vec<Cable>,
    /// Frames received by N_Ports, by switch and port.
    pub received: BTreeMap<(usize, u16), Vec<Frame>>,
    pub events: Vec<(Instant, usize, Event)>,
    /// Percentage of frames between switches that are lost, and of those with a much longer delay.
    pub loss: u64,
    pub lag: u64,
    /// True if later frames may overtake a delayed one.
    pub reorders: bool,
    /// Frames on links, by time of arrival and number.
    flight: BinaryHeap<Reverse<(Instant, u64)>>,
    frames: BTreeMap<u64, (usize, u16, Frame)>,
    sent: u64,
    /// Arrival of the last frame, by receiving switch and port.
    last: BTreeMap<(usize, u16), Instant>,
    dice: SplitMix64,
}

impl Bed {
    pub fn new(seed: u64, configs: Vec<FabricSwitchConfig>) -> Bed {
        let node = |config: FabricSwitchConfig| Node {
            machine: FabricSwitch::new(Instant::ZERO, config.clone()),
            fib: Fib::new(0, PORTS, IslChoice::DevicePair),
            up: true,
            kept: config.database.database().clone(),
            config,
        };
        let mut bed = Bed {
            now: Instant::ZERO,
            nodes: configs.into_iter().map(node).collect(),
            cables: Vec::new(),
            received: BTreeMap::new(),
            events: Vec::new(),
            loss: 0,
            lag: 0,
            reorders: false,
            flight: BinaryHeap::new(),
            frames: BTreeMap::new(),
            sent: 0,
            last: BTreeMap::new(),
            dice: SplitMix64(seed),
        };
        (0..bed.nodes.len()).for_each(|node| bed.drain(node));
        bed
    }

    /// Adds a cable between two switches and plugs it in.
    pub fn connect(&mut self, a: (usize, u16), b: (usize, u16)) -> usize {
        self.cables.push(Cable { ends: [a, b], up: false });
        self.plug(self.cables.len() - 1, true);
        self.cables.len() - 1
    }

    pub fn plug(&mut self, cable: usize, up: bool) {
        self.cables[cable].up = up;
        for (node, port) in self.cables[cable].ends {
            if self.nodes[node].up {
                let up = up && self.light(node, port);
                let input = if up { Input::PortUp { port, kind: PortKind::E } } else { Input::PortDown { port } };
                self.input(node, input);
            }
        }
    }

    /// Stops a switch, or starts it without any state.
    pub fn power(&mut self, node: usize, up: bool) {
        let config = self.nodes[node].config.clone();
        self.nodes[node].up = up;
        self.nodes[node].fib = Fib::new(0, PORTS, IslChoice::DevicePair);
        self.nodes[node].kept = config.database.database().clone();
        self.nodes[node].machine = FabricSwitch::new(self.now, config);
        self.drain(node);
        for cable in 0..self.cables.len() {
            if self.cables[cable].ends.iter().any(|(at, _)| *at == node) && self.cables[cable].up {
                self.plug(cable, true);
            }
        }
    }

    pub fn input(&mut self, node: usize, input: Input) {
        self.nodes[node].machine.handle(self.now, input);
        self.drain(node);
    }

    /// An N_Port comes up, logs in, and registers itself as a target.
    pub fn log_in(&mut self, node: usize, port: u16, name: u64) -> FcId {
        self.attempt_login(node, port, name).expect("FLOGI is accepted")
    }

    /// Like `log_in`; `None` if the switch does not accept the login.
    pub fn attempt_login(&mut self, node: usize, port: u16, name: u64) -> Option<FcId> {
        self.input(node, Input::PortUp { port, kind: PortKind::F });
        self.received.remove(&(node, port));
        self.send(node, port, FcId::ZERO, FcId::F_PORT, Message::Els(Box::new(Els::Flogi(login(name)))));
        let answer = self.received.get_mut(&(node, port)).and_then(Vec::pop);
        let id = answer.filter(is_accept)?.header.d_id;
        self.register(node, port, id, name);
        Some(id)
    }

    /// An NL_Port of the loop at a port logs in and registers itself as a target.
    pub fn log_in_on_loop(&mut self, node: usize, port: u16, al_pa: u8, name: u64) -> FcId {
        self.received.remove(&(node, port));
        let s_id = FcId::from_parts(0, 0, al_pa);
        self.send(node, port, s_id, FcId::F_PORT, Message::Els(Box::new(Els::Flogi(login(name)))));
        let answer = self.received.get_mut(&(node, port)).and_then(Vec::pop);
        let id = answer.filter(is_accept).expect("FLOGI is accepted").header.d_id;
        self.register(node, port, id, name);
        id
    }

    fn register(&mut self, node: usize, port: u16, id: FcId, name: u64) {
        self.send(node, port, id, FcId::NAME_SERVER, Message::Els(Box::new(Els::Plogi(login(name)))));
        let types = NsRequest::RftId { port_id: id, types: one_type(FcType::FCP.0) };
        self.send(node, port, id, FcId::NAME_SERVER, Message::Ct(Box::new(Ct::ns_request(types))));
    }

    /// Logs in a virtual port of an N_Port and registers it; `None` if the switch does not accept
    /// it.
    pub fn try_fdisc(&mut self, node: usize, port: u16, name: u64) -> Option<FcId> {
        self.received.remove(&(node, port));
        self.send(node, port, FcId::ZERO, FcId::F_PORT, Message::Els(Box::new(Els::Fdisc(login(name)))));
        let answer = self.received.get_mut(&(node, port)).and_then(Vec::pop);
        let id = answer.filter(is_accept)?.header.d_id;
        self.register(node, port, id, name);
        Some(id)
    }

    pub fn unplug(&mut self, node: usize, port: u16) {
        self.input(node, Input::PortDown { port });
    }

    /// Sends a message from an N_Port.
    pub fn send(&mut self, node: usize, port: u16, s_id: FcId, d_id: FcId, message: Message) {
        let header = message.header(s_id, d_id, 1, 0xffff);
        self.arrive(node, port, Frame { header, payload: Payload::Typed(message) });
    }

    /// Returns the switch and port where a frame of an N_Port arrives; `None` if it is dropped or
    /// loops.
    pub fn trace(&self, node: usize, port: u16, s_id: FcId, d_id: FcId) -> Option<(usize, u16)> {
        let (mut node, mut port) = (node, port);
        for _ in 0..32 {
            match self.nodes[node].fib.decide(port, s_id, d_id, 7) {
                Decision::Forward(Egress::Port(out)) => match self.other_end(node, out) {
                    Some(_) if !self.light(node, out) => return None,
                    Some((next, inward)) => (node, port) = (next, inward),
                    None => return Some((node, out)),
                },
                _ => return None,
            }
        }
        None
    }

    pub fn run(&mut self, span: Span) {
        let end = self.now + span;
        loop {
            let arrival = self.flight.peek().map(|Reverse((at, _))| *at);
            let timeout = |(number, node): (usize, &Node)| {
                node.up.then(|| node.machine.poll_timeout()).flatten().map(|at| (at, number))
            };
            let timer = self.nodes.iter().enumerate().filter_map(timeout).min();
            let next = [arrival, timer.map(|(at, _)| at)].into_iter().flatten().min();
            let Some(at) = next.filter(|at| *at <= end) else { break };
            self.now = self.now.max(at);
            if arrival == Some(at) {
                let Some(Reverse((_, number))) = self.flight.pop() else { break };
                let Some((node, port, frame)) = self.frames.remove(&number) else { continue };
                if self.nodes[node].up && self.light(node, port) {
                    self.arrive(node, port, frame);
                }
            } else if let Some((_, node)) = timer {
                self.input(node, Input::Timeout);
            }
        }
        self.now = end;
    }

    /// Processes a frame at a port of a switch.
    fn arrive(&mut self, node: usize, port: u16, frame: Frame) {
        let header = frame.header;
        match self.nodes[node].fib.decide(port, header.s_id, header.d_id, header.ox_id) {
            Decision::Local => self.input(node, Input::Frame { port, frame }),
            Decision::Forward(Egress::Port(out)) => self.leave(node, out, frame),
            _ => {}
        }
    }

    fn leave(&mut self, node: usize, port: u16, frame: Frame) {
        let Some((to, inward)) = self.other_end(node, port) else {
            self.received.entry((node, port)).or_default().push(frame);
            return;
        };
        if !self.light(node, port) || self.dice.chance(self.loss) {
            return;
        }
        let lag = if self.dice.chance(self.lag) { Span::from_us(self.dice.bits() % 50_000) } else { Span::ZERO };
        let last = self.last.entry((to, inward)).or_default();
        let arrival = self.now + DELAY + lag;
        let at = if self.reorders { arrival } else { arrival.max(*last) };
        *last = at;
        self.flight.push(Reverse((at, self.sent)));
        self.frames.insert(self.sent, (to, inward, through_bytes(frame)));
        self.sent += 1;
    }

    fn drain(&mut self, node: usize) {
        while let Some(output) = self.nodes[node].machine.poll_output() {
            match output {
                Output::Fib(delta) => self.nodes[node].fib.apply(&delta),
                Output::Send { port, frame } => self.leave(node, port, frame),
                Output::Event(event) => self.events.push((self.now, node, event)),
                Output::Zones { database, .. } => self.nodes[node].kept = database,
                Output::Persist { .. } => {}
            }
        }
        assert_eq!(&self.nodes[node].kept, self.nodes[node].machine.zone_database(), "switch {node}");
        self.assert_permissions(node);
    }

    /// Asserts that the forwarding table permits only pairs that the zones in force permit, among
    /// ports known to the name server.
    fn assert_permissions(&self, node: usize) {
        let Node { machine, fib, .. } = &self.nodes[node];
        let zoning = machine.zone_database().zoning();
        if zoning.default == ZoneDefault::Open {
            return;
        }
        assert_eq!(fib.default_zone(), [], "{:?}: switch {node}", self.now);
        let known: BTreeMap<FcId, PortIdentity> =
            machine.services().name_server().map(|entry| (entry.port_id, entry.identity())).collect();
        for (from, to) in fib.permitted_pairs() {
            let pair = known.get(&from).zip(known.get(&to));
            let permitted = pair.is_some_and(|(from, to)| in_one_zone(&zoning, from, to));
            assert!(permitted, "{:?}: switch {node} permits {from} to {to}: {pair:?}", self.now);
        }
    }

    fn cable(&self, node: usize, port: u16) -> Option<&Cable> {
        self.cables.iter().find(|cable| cable.ends.contains(&(node, port)))
    }

    fn other_end(&self, node: usize, port: u16) -> Option<(usize, u16)> {
        let cable = self.cable(node, port)?;
        Some(if cable.ends[0] == (node, port) { cable.ends[1] } else { cable.ends[0] })
    }

    fn light(&self, node: usize, port: u16) -> bool {
        let both_run = |cable: &Cable| cable.ends.iter().all(|(at, _)| self.nodes[*at].up);
        self.cable(node, port).is_none_or(|cable| cable.up && both_run(cable))
    }

    /// Groups of switches connected by links that carry traffic, each sorted.
    pub fn groups(&self) -> Vec<Vec<usize>> {
        let mut group: Vec<usize> = (0..self.nodes.len()).collect();
        for _ in 0..self.nodes.len() {
            for cable in self.cables.iter().filter(|cable| self.carries(cable)) {
                let lowest = group[cable.ends[0].0].min(group[cable.ends[1].0]);
                cable.ends.iter().for_each(|(node, _)| group[*node] = lowest);
            }
        }
        let all = (0..self.nodes.len()).filter(|first| group[*first] == *first && self.nodes[*first].up);
        all.map(|first| (first..self.nodes.len()).filter(|n| group[*n] == first && self.nodes[*n].up).collect())
            .collect()
    }

    /// Returns whether both ends let traffic pass.
    pub fn carries(&self, cable: &Cable) -> bool {
        self.light(cable.ends[0].0, cable.ends[0].1)
            && cable.ends.iter().all(|(node, port)| self.isl_states(*node).contains(&(*port, IslState::Up)))
    }

    pub fn names_known(&self, node: usize) -> Vec<(FcId, Wwpn, bool)> {
        let known = self.nodes[node].machine.services().name_server();
        known.map(|entry| (entry.port_id, entry.port_name, entry.has_type(FcType::FCP.0))).collect()
    }

    pub fn isl_states(&self, node: usize) -> Vec<(u16, IslState)> {
        self.nodes[node].machine.isls().map(|isl| (isl.port, isl.state)).collect()
    }
}

/// Switches in a line.
pub fn line(count: usize) -> Bed {
    let mut bed = Bed::new(1, (0..count).map(|n| config(n, Some(n as u8 + 1), &open())).collect());
    for n in 1..count {
        bed.connect((n - 1, 1), (n, 0));
    }
    bed
}

/// Returns whether some zone has both ports as members.
pub fn in_one_zone(zoning: &Zoning, one: &PortIdentity, other: &PortIdentity) -> bool {
    zoning.zones.iter().any(|zone| [one, other].iter().all(|port| zone.members.iter().any(|m| port.keys().contains(m))))
}

/// Asserts that the switches of a group have each other's domains, one principal switch and one
/// zone database.
pub fn assert_one_fabric(bed: &Bed, group: &[usize], context: &str) {
    let mut domains: Vec<u8> = group.iter().filter_map(|n| bed.nodes[*n].machine.domain()).collect();
    domains.sort_unstable();
    assert_eq!(domains.len(), group.len(), "{context}: domains of {group:?}");
    let first = &bed.nodes[group[0]].machine;
    for &node in group {
        let machine = &bed.nodes[node].machine;
        let members: Vec<u8> = machine.members().iter().map(|(domain, _)| *domain).collect();
        assert_eq!(members, domains, "{context}: domains that switch {node} knows");
        assert_eq!(machine.principal(), first.principal(), "{context}: principal");
        assert_eq!(machine.zone_database(), first.zone_database(), "{context}: zones of switch {node}");
    }
}

/// Asserts that every switch of a group has every port of the group in its name server and reaches
/// it.
pub fn assert_agree(bed: &Bed, ports: &[(usize, u16, FcId, u64)], context: &str) {
    for group in bed.groups() {
        let mut expected: Vec<(FcId, u64)> =
            ports.iter().filter(|(node, ..)| group.contains(node)).map(|(_, _, id, name)| (*id, *name)).collect();
        expected.sort_unstable();
        assert_one_fabric(bed, &group, context);
        for &node in &group {
            let known: Vec<(FcId, u64)> = bed.names_known(node).iter().map(|(id, name, _)| (*id, name.0)).collect();
            assert_eq!(known, expected, "{context}: names that switch {node} knows");
            for (id, name, fcp) in bed.names_known(node) {
                assert!(fcp, "{context}: switch {node} does not know the types of {id} {name}");
            }
        }
        for &(node, port, id, _) in ports.iter().filter(|(node, ..)| group.contains(node)) {
            for &(to, at, other, _) in ports.iter().filter(|(to, _, other, _)| group.contains(to) && *other != id) {
                assert_eq!(bed.trace(node, port, id, other), Some((to, at)), "{context}: from {id} to {other}");
            }
        }
    }
}

/// Encodes and parses the link services of switches, so that losses in the encoding are detected.
/// Messages of name servers stay values, as in a simulation.
fn through_bytes(frame: Frame) -> Frame {
    match &frame.payload {
        Payload::Typed(Message::SwIls(ils)) if !ils.is_reply() => {
            let mut bytes = Vec::new();
            ils.emit(&mut bytes);
            Frame { header: Header { f_ctl: FCtl::REQUEST, ..frame.header }, payload: Payload::Bytes(bytes.into()) }
        }
        _ => frame,
    }
}

fn login(port_name: u64) -> Login {
    Login::of_linux_host(Wwpn(port_name), Wwnn(1 << 60 | port_name))
}

/// Returns whether the frame accepts an extended link service.
fn is_accept(frame: &Frame) -> bool {
    frame.header.r_ctl == RCtl::ELS_REPLY
        && matches!(&frame.payload, Payload::Typed(Message::Els(els)) if matches!(**els, Els::LsAcc(LsAcc::Login(_))))
}
