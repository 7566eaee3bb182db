//! Real node ports and real switches: after losses of frames, links and routes between switches,
//! all ports find each other again.

use crate::switch_util;
use crate::switch_util::{config, open, zone_set};
use proptest::prelude::*;
use sanloom_fc::config::{IslChoice, ZoneDefault};
use sanloom_fc::fabric::{Decision, Egress, Fib, Leg, PortIdentity, ZoneSet};
use sanloom_fc::nport::{self, FabricState, NPort, NPortConfig, RemoteState};
use sanloom_fc::switch::{self, PeerUpdate, PortKind, Switch};
use sanloom_scsi::time::{Instant, Span};
use sanloom_wire::{FcId, Frame, Wwpn};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

/// Delay of a frame, or of a message between switches, over one link.
const HOP: Span = Span::from_us(10);
/// ISLs are at port 100 plus the number of the other switch.
const ISL: u16 = 100;

enum Event {
    ToSwitch { switch: usize, port: u16, frame: Frame },
    ToNode { node: usize, frame: Frame },
    Peer { from: usize, to: usize, update: PeerUpdate },
}

struct Node {
    machine: NPort,
    switch: usize,
    port: u16,
    name: Wwpn,
    target: bool,
    link: bool,
}

impl Node {
    fn identity(&self) -> PortIdentity {
        PortIdentity {
            port_id: self.machine.port_id(),
            port_name: self.name,
            node_name: switch_util::node_of(self.name.0),
            domain: self.machine.port_id().domain(),
            port: self.port,
        }
    }
}

/// Full mesh of switches with node ports.
struct World {
    now: Instant,
    events: BTreeMap<(Instant, u64), Event>,
    number: u64,
    switches: Vec<(Switch, Fib)>,
    nodes: Vec<Node>,
    cut: BTreeSet<(usize, usize)>,
    /// Percentage of frames that are lost.
    loss: u64,
    random: u64,
    zones: Arc<ZoneSet>,
}

impl World {
    fn new(switches: usize, nodes: &[(usize, u64, bool)], zones: Arc<ZoneSet>, seed: u64) -> World {
        let machines = (1..=switches as u8).map(|domain| {
            let config = config(domain, zones.clone());
            let fib = Fib::new(domain, config.ports, IslChoice::Exchange);
            (Switch::new(config), fib)
        });
        let node = |(n, (switch, name, target)): (usize, &(usize, u64, bool))| Node {
            machine: NPort::new(NPortConfig {
                wwpn: Wwpn(*name),
                wwnn: switch_util::node_of(*name),
                receive_size_bytes: 2112,
                bb_credit: 4,
                bb_sc_n: 0,
                initiator: !target,
                target: *target,
                symbolic_name: format!("node {n}"),
                e_d_tov: Span::from_secs(2),
                r_a_tov: Span::from_secs(10),
                seed: seed ^ n as u64,
                virtual_port: None,
            }),
            switch: *switch,
            port: n as u16,
            name: Wwpn(*name),
            target: *target,
            link: false,
        };
        let mut world = World {
            now: Instant::ZERO,
            events: BTreeMap::new(),
            number: 0,
            switches: machines.collect(),
            nodes: nodes.iter().enumerate().map(node).collect(),
            cut: BTreeSet::new(),
            loss: 0,
            random: seed,
            zones,
        };
        for here in 0..switches {
            for there in (0..switches).filter(|there| *there != here) {
                let up = switch::Input::PortUp { port: ISL + there as u16, kind: PortKind::E };
                world.switch_input(here, up);
            }
            world.route(here);
        }
        world
    }

    fn route(&mut self, here: usize) {
        let reaches = |there: usize| !self.cut.contains(&(here.min(there), here.max(there)));
        let leg = |there: usize| match reaches(there) {
            true => vec![Leg::Port(ISL + there as u16)],
            false => vec![],
        };
        let others = (0..self.switches.len()).filter(|there| *there != here);
        let routes = others.map(|there| (there as u8 + 1, leg(there))).collect();
        self.switch_input(here, switch::Input::Routes(routes));
    }

    fn set_cut(&mut self, a: usize, b: usize, cut: bool) {
        let pair = (a.min(b), a.max(b));
        if a != b && (if cut { self.cut.insert(pair) } else { self.cut.remove(&pair) }) {
            self.route(a);
            self.route(b);
        }
    }

    fn set_link(&mut self, node: usize, up: bool) {
        let n = &mut self.nodes[node];
        if n.link != up {
            n.link = up;
            let (switch, port) = (n.switch, n.port);
            self.switch_input(
                switch,
                match up {
                    true => switch::Input::PortUp { port, kind: PortKind::F },
                    false => switch::Input::PortDown { port },
                },
            );
            self.node_input(node, if up { nport::Input::LinkUp } else { nport::Input::LinkDown });
        }
    }

    fn post(&mut self, event: Event) {
        self.random = self.random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        let lossy = !matches!(event, Event::Peer { .. });
        if lossy && (self.random >> 33) % 100 < self.loss {
            return;
        }
        self.number += 1;
        self.events.insert((self.now + HOP, self.number), event);
    }

    fn switch_input(&mut self, n: usize, input: switch::Input) {
        self.switches[n].0.handle(self.now, input);
        while let Some(output) = self.switches[n].0.poll_output() {
            match output {
                switch::Output::Fib(delta) => self.switches[n].1.apply(&delta),
                switch::Output::Send { port, frame } => self.leave(n, port, frame),
                switch::Output::Peer(update) => {
                    for to in (0..self.switches.len()).filter(|to| *to != n) {
                        let update = update.clone();
                        self.post(Event::Peer { from: n, to, update });
                    }
                }
                switch::Output::Persist { .. } | switch::Output::ChangeZones { .. } => {}
            }
        }
    }

    fn leave(&mut self, switch: usize, port: u16, frame: Frame) {
        let node = self.nodes.iter().position(|n| (n.switch, n.port) == (switch, port));
        match node {
            Some(node) => self.post(Event::ToNode { node, frame }),
            None if port >= ISL => {
                let there = usize::from(port - ISL);
                self.post(Event::ToSwitch { switch: there, port: ISL + switch as u16, frame });
            }
            None => panic!("a frame through port {port}, which has no station"),
        }
    }

    fn node_input(&mut self, n: usize, input: nport::Input) {
        self.nodes[n].machine.handle(self.now, input);
        while let Some(output) = self.nodes[n].machine.poll_output() {
            if let nport::Output::Send(frame) = output
                && self.nodes[n].link
            {
                let (switch, port) = (self.nodes[n].switch, self.nodes[n].port);
                self.post(Event::ToSwitch { switch, port, frame });
            }
        }
    }

    fn event(&mut self, event: Event) {
        match event {
            Event::ToSwitch { switch, port, frame } => {
                let h = frame.header;
                match self.switches[switch].1.decide(port, h.s_id, h.d_id, h.ox_id) {
                    Decision::Local => self.switch_input(switch, switch::Input::Frame { port, frame }),
                    Decision::Forward(Egress::Port(out)) => self.leave(switch, out, frame),
                    Decision::Forward(other) => panic!("{other:?}"),
                    Decision::Drop(_) => {}
                }
            }
            Event::ToNode { node, frame } if self.nodes[node].link => {
                self.node_input(node, nport::Input::Frame(frame));
            }
            Event::ToNode { .. } => {}
            Event::Peer { from, to, update } => {
                if !self.cut.contains(&(from.min(to), from.max(to))) {
                    self.switch_input(to, switch::Input::Peer(update));
                }
            }
        }
    }

    fn run(&mut self, span: Span) {
        let until = self.now + span;
        let due = |timeout: Option<Instant>, until| timeout.filter(|at| *at <= until);
        loop {
            let event = self.events.keys().next().map(|(at, _)| *at);
            let switches = self.switches.iter().map(|(machine, _)| machine.poll_timeout());
            let nodes = self.nodes.iter().map(|node| node.machine.poll_timeout());
            let next = switches.chain(nodes).chain([event]).flatten().min();
            let Some(at) = due(next, until) else { break };
            self.now = at.max(self.now);
            if event.is_some_and(|event| event <= self.now) {
                let (_, event) = self.events.pop_first().unwrap();
                self.event(event);
                continue;
            }
            for n in 0..self.switches.len() {
                if due(self.switches[n].0.poll_timeout(), self.now).is_some() {
                    self.switch_input(n, switch::Input::Timeout);
                }
            }
            for n in 0..self.nodes.len() {
                if due(self.nodes[n].machine.poll_timeout(), self.now).is_some() {
                    self.node_input(n, nport::Input::Timeout);
                }
            }
        }
        self.now = until;
    }

    fn name_of(&self, id: FcId) -> Wwpn {
        let node = self.nodes.iter().find(|n| n.machine.port_id() == id);
        node.expect("a node has the address").name
    }

    /// Asserts that every initiator has exactly the targets with which it shares a zone, and vice
    /// versa.
    fn assert_all_found(&self) {
        for node in &self.nodes {
            assert_eq!(node.machine.state(), FabricState::Ready, "{}", node.name);
            let up = node.machine.remotes().filter(|(_, state)| state.is_up());
            let found: BTreeSet<Wwpn> = up.map(|(id, _)| self.name_of(id)).collect();
            let mates = self
                .nodes
                .iter()
                .filter(|other| other.target != node.target && self.zones.permits(&node.identity(), &other.identity()));
            assert_eq!(found, mates.map(|n| n.name).collect(), "{}", node.name);
        }
    }
}

/// Two initiators and two targets on each of two switches, and a target on a third.
const NODES: [(usize, u64, bool); 9] = [
    (0, 0x1010, false),
    (0, 0x1020, false),
    (0, 0x2010, true),
    (0, 0x2020, true),
    (1, 0x1110, false),
    (1, 0x1120, false),
    (1, 0x2110, true),
    (1, 0x2120, true),
    (2, 0x2210, true),
];

fn zones() -> Arc<ZoneSet> {
    zone_set(
        &[&[0x1010, 0x2010, 0x2110], &[0x1020, 0x2210], &[0x1110, 0x1120, 0x2020, 0x2110, 0x2210]],
        ZoneDefault::Closed,
    )
}

#[test]
fn without_faults_all_stations_are_found_within_a_few_windows_and_nothing_times_out() {
    for zones in [open(), zones()] {
        let mut world = World::new(3, &NODES, zones, 1);
        (0..NODES.len()).for_each(|node| world.set_link(node, true));
        world.run(Span::from_ms(20));
        world.assert_all_found();
        for node in &world.nodes {
            assert_eq!(node.machine.counters().timeouts, 0, "{}", node.name);
            assert_eq!(node.machine.counters().strange_replies, 0, "{}", node.name);
        }
        for (machine, _) in &world.switches {
            let counters = machine.counters();
            assert_eq!((counters.rscn_repeated, counters.rscn_rejected, counters.frames_discarded), (0, 0, 0));
        }
    }
}

#[test]
fn a_departed_target_is_removed_and_a_returning_one_is_found() {
    let mut world = World::new(3, &NODES, zones(), 2);
    (0..NODES.len()).for_each(|node| world.set_link(node, true));
    world.run(Span::from_ms(20));
    let up = |world: &World, node: usize| {
        let remotes = world.nodes[node].machine.remotes();
        remotes.filter(|(_, state): &(_, RemoteState)| state.is_up()).count()
    };
    assert_eq!((up(&world, 1), up(&world, 4)), (1, 3));
    world.set_link(8, false);
    world.run(Span::from_ms(20));
    assert_eq!((up(&world, 1), up(&world, 4)), (0, 2));
    world.set_link(8, true);
    world.run(Span::from_ms(20));
    world.assert_all_found();
    // The first switch loses its path to the third, and gets it back.
    world.set_cut(0, 2, true);
    world.run(Span::from_ms(20));
    assert_eq!((up(&world, 1), up(&world, 4)), (0, 3));
    world.set_cut(0, 2, false);
    world.run(Span::from_ms(20));
    world.assert_all_found();
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]

    /// Links and routes fail and frames are lost for a while; afterwards all ports find each other.
    #[test]
    fn all_stations_are_found_again_after_any_faults(
        seed in any::<u64>(),
        loss in 0u64..30,
        faults in prop::collection::vec((0usize..12, 0usize..9, any::<bool>(), 0u64..3_000), 0..24),
    ) {
        let mut world = World::new(3, &NODES, zones(), seed);
        world.loss = loss;
        (0..NODES.len()).for_each(|node| world.set_link(node, true));
        for (what, other, up, ms) in faults {
            match what {
                0..9 => world.set_link(what, up),
                _ => world.set_cut(what - 9, other % 3, !up),
            }
            world.run(Span::from_ms(ms));
        }
        world.loss = 0;
        (0..NODES.len()).for_each(|node| world.set_link(node, true));
        for (a, b) in [(0, 1), (0, 2), (1, 2)] {
            world.set_cut(a, b, false);
        }
        world.run(Span::from_secs(120));
        world.assert_all_found();
        for (machine, fib) in &world.switches {
            prop_assert_eq!(machine.logins().collect::<Vec<_>>(), fib.ids().collect::<Vec<_>>());
        }
    }
}
