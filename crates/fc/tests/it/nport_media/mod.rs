//! Node ports on a link to another N_Port and on an arbitrated loop. The machines are real, and
//! every message passes through the wire codecs and must be unchanged afterwards.

mod fabric;
mod point_to_point;
mod private_loop;
mod public_loop;

use fabric::Fabric;

use sanloom_fc::nport::{Input, NPort, NPortConfig, Output, Remote};
use sanloom_scsi::time::{Instant, Span};
use sanloom_wire::{FCtl, FcId, Frame, Header, Message, Payload, ReplyTo, Wwnn, Wwpn};
use std::collections::BTreeMap;

const E_D_TOV: Span = Span::from_ms(20);
const R_A_TOV: Span = Span::from_ms(100);
const LATENCY: Span = Span::from_us(5);

/// Functions of a port.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct Functions {
    initiator: bool,
    target: bool,
}

const INITIATOR: Functions = Functions { initiator: true, target: false };
const TARGET: Functions = Functions { initiator: false, target: true };
const BOTH: Functions = Functions { initiator: true, target: true };

impl Functions {
    /// Returns true if two ports have a process login in common.
    fn matches(self, other: Functions) -> bool {
        self.initiator && other.target || self.target && other.initiator
    }
}

fn port_config(wwpn: u64, functions: Functions) -> NPortConfig {
    NPortConfig {
        wwpn: Wwpn(wwpn),
        wwnn: Wwnn(wwpn | 1 << 60),
        receive_size_bytes: 2048,
        bb_credit: 8,
        bb_sc_n: 0,
        initiator: functions.initiator,
        target: functions.target,
        symbolic_name: "node".to_owned(),
        e_d_tov: E_D_TOV,
        r_a_tov: R_A_TOV,
        seed: wwpn,
        virtual_port: None,
    }
}

struct Node {
    nport: NPort,
    functions: Functions,
    /// Address on a loop, 0000xx.
    loop_id: FcId,
    /// The node is on the medium.
    is_present: bool,
    /// The node is not on the loop, but at an F_Port of the switch.
    is_far: bool,
    /// Address of the last `FabricUp`; zero after `FabricDown`.
    address: FcId,
    remotes: BTreeMap<FcId, Remote>,
    /// Keys of the requests, which are needed to parse their replies.
    requests: BTreeMap<u16, ReplyTo>,
}

enum Event {
    ToSwitch { port: u16, frame: Frame },
    Frame { to: usize, frame: Frame },
    Input { to: usize, input: Input },
}

/// Medium with its nodes and a clock.
struct Medium {
    now: Instant,
    nodes: Vec<Node>,
    /// The nodes are on a loop, so that D_ID selects the recipient.
    is_loop: bool,
    /// Switch with the FL_Port of the loop.
    fabric: Option<Fabric>,
    queue: BTreeMap<(Instant, u64), Event>,
    events: u64,
    /// Number of frames sent.
    frames: u64,
    /// Returns true if the frame with this number, from 0, is lost.
    is_lost: Box<dyn FnMut(u64) -> bool>,
    /// Messages as `sender: message S_ID > D_ID`.
    log: Vec<String>,
}

impl Medium {
    fn new(configs: Vec<(NPortConfig, Functions)>, is_loop: bool) -> Medium {
        let node = |(config, functions): (NPortConfig, Functions)| Node {
            nport: NPort::new(config),
            functions,
            loop_id: FcId::ZERO,
            is_present: true,
            is_far: false,
            address: FcId::ZERO,
            remotes: BTreeMap::new(),
            requests: BTreeMap::new(),
        };
        Medium {
            now: Instant::ZERO,
            nodes: configs.into_iter().map(node).collect(),
            is_loop,
            fabric: None,
            queue: BTreeMap::new(),
            events: 0,
            frames: 0,
            is_lost: Box::new(|_| false),
            log: Vec::new(),
        }
    }

    /// Medium whose ports have these names and functions.
    fn of(ports: &[(u64, Functions)], is_loop: bool) -> Medium {
        Medium::new(ports.iter().map(|&(wwpn, functions)| (port_config(wwpn, functions), functions)).collect(), is_loop)
    }

    fn schedule(&mut self, at: Instant, event: Event) {
        self.events += 1;
        self.queue.insert((at, self.events), event);
    }

    /// Passes an input to a node after `delay`.
    fn input_after(&mut self, delay: Span, to: usize, input: Input) {
        self.schedule(self.now + delay, Event::Input { to, input });
    }

    fn input(&mut self, to: usize, input: Input) {
        self.nodes[to].nport.handle(self.now, input);
        self.drain(to);
    }

    fn input_all(&mut self, input: &Input) {
        (0..self.nodes.len()).for_each(|to| self.input(to, input.clone()));
    }

    fn drain(&mut self, at: usize) {
        while let Some(output) = self.nodes[at].nport.poll_output() {
            let node = &mut self.nodes[at];
            match output {
                Output::Send(frame) => self.send(at, frame),
                Output::FabricUp { port_id } => {
                    assert_eq!(node.address, FcId::ZERO, "up twice without a down");
                    node.address = port_id;
                }
                Output::FabricDown => {
                    assert!(node.remotes.is_empty(), "remote ports go down before the address");
                    node.address = FcId::ZERO;
                }
                Output::RemoteUp(remote) => {
                    assert_eq!(node.remotes.insert(remote.port_id, remote), None, "up twice without a down");
                }
                Output::RemoteDown { port_id, wwpn } => {
                    let known = node.remotes.remove(&port_id).map(|remote| remote.wwpn);
                    assert_eq!(known, Some(wwpn), "down without an up");
                }
            }
        }
    }

    fn send(&mut self, from: usize, frame: Frame) {
        let Payload::Typed(message) = &frame.payload else { unreachable!("control messages are typed") };
        self.log.push(format!("{from}: {message} {} > {}", frame.header.s_id, frame.header.d_id));
        let number = self.frames;
        self.frames += 1;
        if let Some(key) = message.reply_key() {
            self.nodes[from].requests.insert(frame.header.ox_id, key);
        }
        if (self.is_lost)(number) || !self.nodes[from].is_present {
            return;
        }
        if let Some(port) = self.switch_port(from, frame.header.d_id) {
            let event = Event::ToSwitch { port, frame };
            return self.schedule(self.now + LATENCY, event);
        }
        let to = match self.is_loop {
            true => self.at_al_pa(frame.header.d_id),
            false => Some(1 - from),
        };
        if let Some(to) = to {
            let frame = self.through_the_codecs(to, &frame.header, message);
            self.schedule(self.now + LATENCY, Event::Frame { to, frame });
        }
    }

    /// Present node of the loop with the AL_PA of this address.
    fn at_al_pa(&self, id: FcId) -> Option<usize> {
        let al_pa = |id: FcId| id.to_u32() & 0xff;
        self.nodes.iter().position(|node| node.is_present && !node.is_far && al_pa(node.loop_id) == al_pa(id))
    }

    fn through_the_codecs(&self, to: usize, header: &Header, message: &Message) -> Frame {
        let is_reply = header.f_ctl.has(FCtl::EXCHANGE_RESPONDER);
        let reply_to = self.nodes[to].requests.get(&header.ox_id).copied().filter(|_| is_reply);
        let mut bytes = Vec::new();
        message.emit(&mut bytes);
        let parsed = Message::parse(header, &bytes, reply_to).expect("an own message parses");
        assert_eq!(&parsed, message, "{header}");
        let header = Header::parse(&header.to_bytes()).expect("an own header parses");
        Frame { header, payload: Payload::Typed(parsed) }
    }

    /// Runs for `span`.
    fn run(&mut self, span: Span) {
        let end = self.now + span;
        loop {
            let event = self.queue.keys().next().map(|&(at, _)| at);
            let timeout = self.next_timeout();
            let next = event.into_iter().chain(timeout).min().filter(|&at| at <= end);
            let Some(next) = next else {
                self.now = end;
                return;
            };
            self.now = self.now.max(next);
            if event == Some(next) {
                match self.queue.pop_first() {
                    Some((_, Event::Frame { to, frame })) if self.nodes[to].is_present => {
                        self.input(to, Input::Frame(frame));
                    }
                    Some((_, Event::Input { to, input })) => self.input(to, input),
                    Some((_, Event::ToSwitch { port, frame })) => self.at_switch(port, frame),
                    _ => {}
                }
            } else {
                self.input_all(&Input::Timeout);
                self.switch_timeout();
                let after = self.next_timeout();
                assert!(after.is_none_or(|after| after > self.now), "a timeout has no effect");
            }
        }
    }

    fn next_timeout(&self) -> Option<Instant> {
        let of_nodes = self.nodes.iter().filter_map(|node| node.nport.poll_timeout()).min();
        Instant::earliest(&[of_nodes, self.fabric.as_ref().and_then(|fabric| fabric.switch.poll_timeout())])
    }

    /// Asserts that both ends of every pair of present nodes have the process login that their
    /// functions permit, and no other one.
    fn assert_agreement(&self) {
        let present = || self.nodes.iter().filter(|node| node.is_present);
        for node in present() {
            assert_eq!(node.address, node.nport.port_id());
            let mut expected: Vec<(FcId, Wwpn)> = present()
                .filter(|other| other.nport.wwpn() != node.nport.wwpn() && node.functions.matches(other.functions))
                .map(|other| (other.address, other.nport.wwpn()))
                .collect();
            expected.sort_unstable();
            let remotes: Vec<(FcId, Wwpn)> =
                node.remotes.values().map(|remote| (remote.port_id, remote.wwpn)).collect();
            let last = self.log.len().saturating_sub(40);
            assert_eq!(remotes, expected, "remote ports of {}: {:#?}", node.nport.wwpn(), &self.log[last..]);
        }
        let mut addresses: Vec<FcId> = present().map(|node| node.address).collect();
        addresses.sort_unstable();
        addresses.dedup();
        assert_eq!(addresses.len(), present().count(), "addresses are unique");
        assert!(!addresses.contains(&FcId::ZERO));
    }
}
