//! The bare credit program: the least that a simulation of a fabric with credits does.
//!
//! Lines, credits, input buffers and round-robin arbiters of the same cabling and the same reads,
//! without protocols, logins, addresses, zones, faults, counters and results. Every frame of an
//! input buffer may leave, so there is no crossbar. The event queue is that of the simulator; all
//! else is written for this program only. It is a crate of its own because it must be as optimised
//! as the simulator. The loops of [`storage`] are here for the same reason.

pub mod storage;

use sanloom_sim::net::EventQueue;
use std::collections::VecDeque;

/// Frames of data of a read, and bytes of each on the line.
const DATA_BYTES: u32 = 2048 + 36;
/// Bytes of a command and of a response on the line.
const CONTROL_BYTES: u32 = 32 + 36;
/// Bytes of the gap after a frame.
const GAP_BYTES: u32 = 24;
/// Propagation delay of a cable of 10 m, in ps.
const PROPAGATION_PS: u64 = 50_000;
/// Requests in flight of each host.
const DEPTH: u32 = 32;
/// No upstream line.
const NONE: u32 = u32::MAX;

/// Number of targets in the zone of a host.
pub const ZONED_TARGETS: u32 = 16;

/// Cabling of a fabric. Each edge switch has `isls_per_core` links to each core.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Shape {
    pub edges: u32,
    pub nodes_per_edge: u32,
    pub cores: u32,
    pub isls_per_core: u32,
}

impl Shape {
    /// Returns the number of hosts; as many devices follow.
    pub fn hosts(self) -> u32 {
        self.nodes() / 2
    }

    pub fn nodes(self) -> u32 {
        self.edges * self.nodes_per_edge
    }

    /// Returns the edge switch of a node.
    pub fn edge_of(self, node: u32) -> u32 {
        node / self.nodes_per_edge
    }

    /// Returns the node number of one of the devices that a host reads.
    pub fn device(self, host: u32, random: u32) -> u32 {
        let targets = ZONED_TARGETS.min(self.hosts());
        let zones = self.hosts() / targets;
        self.hosts() + host % zones + random % targets * zones
    }

    /// Returns the output of a switch on the way to a node. Cores follow the edge switches; the
    /// links of an edge switch follow its nodes.
    pub fn output(self, switch: u32, to: u32, hash: u32) -> u32 {
        let edge = self.edge_of(to);
        if switch >= self.edges {
            edge * self.isls_per_core + (hash >> 8) % self.isls_per_core
        } else if edge == switch {
            to % self.nodes_per_edge
        } else {
            self.nodes_per_edge + hash % (self.cores * self.isls_per_core)
        }
    }
}

/// Work of a run.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Work {
    pub ios: u64,
    pub frame_hops: u64,
    pub events: u64,
}

/// Settings that depend on the fabric.
#[derive(Clone, Copy, Debug)]
pub struct Rules {
    /// Time of a byte on a line, in ps.
    pub ps_per_byte: u64,
    /// Buffers of a switch port.
    pub buffers: u32,
    /// Bytes after which a switch decides about a frame; `None` for the whole frame.
    pub header_bytes: Option<u32>,
    /// Latency of a switch, in ps.
    pub latency_ps: u64,
    /// Data frames of a read.
    pub frames: u32,
}

/// Buffers of a node.
const NODE_BUFFERS: u32 = 64;

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Kind {
    Command,
    Data,
    Response,
}

#[derive(Clone, Copy, Debug)]
struct Frame {
    from: u32,
    to: u32,
    kind: Kind,
    /// Chooses among equal links.
    hash: u32,
}

impl Frame {
    fn bytes(self) -> u32 {
        if self.kind == Kind::Data { DATA_BYTES } else { CONTROL_BYTES }
    }
}

#[derive(Clone, Copy, Debug)]
enum End {
    Node(u32),
    /// Switch and input.
    Switch(u32, u32),
}

/// One direction of a link.
struct Line {
    free_ps: u64,
    credits: u32,
    waits_for_credit: bool,
    /// Times at which credits return, in order.
    returns: VecDeque<u64>,
    /// Frames on the line with the times at which they may be handled.
    flight: VecDeque<(u64, Frame)>,
    from: End,
    to: End,
}

/// An output of a switch.
struct Output {
    line: u32,
    last: u32,
    frames: u32,
}

struct Switch {
    /// Frames of each input with their outputs.
    inputs: Vec<VecDeque<(u32, Frame)>>,
    /// Incoming line of each input.
    upstream: Vec<u32>,
    outputs: Vec<Output>,
    /// Inputs with a frame for each output, `words` words each.
    masks: Vec<u64>,
    words: usize,
}

struct Node {
    tx: u32,
    /// Frames to send, each with the number of its repetitions.
    unsent: VecDeque<(Frame, u32)>,
    /// Device: requests in service.
    requests: VecDeque<Frame>,
    /// Host: random state.
    state: u64,
}

struct Bare {
    queue: EventQueue,
    now: u64,
    lines: Vec<Line>,
    switches: Vec<Switch>,
    nodes: Vec<Node>,
    shape: Shape,
    rules: Rules,
    done: Work,
}

/// Time that a device takes for a request, in ps.
const SERVICE_PS: u64 = 1_000_000;

/// The program, ready to run.
pub struct Program(Bare);

impl Program {
    /// Returns a fabric whose hosts have issued their first requests.
    pub fn new(shape: Shape, rules: Rules) -> Program {
        let mut bare = Bare::new(shape, rules);
        for host in 0..shape.hosts() {
            bare.nodes[host as usize].state = 88_172_645_463_325_252 ^ u64::from(host) << 20;
            for _ in 0..DEPTH {
                bare.issue(host);
            }
        }
        Program(bare)
    }

    /// Runs until `until_ps`.
    pub fn run(&mut self, until_ps: u64) -> Work {
        let bare = &mut self.0;
        let lines = bare.lines.len() as u32;
        while let Some((time, source)) = bare.queue.pop_until(until_ps) {
            bare.now = time;
            if source < lines {
                bare.arrive(source);
            } else if source < 2 * lines {
                bare.send(source - lines);
            } else {
                bare.answer(source - 2 * lines);
            }
        }
        bare.done.events = bare.queue.popped();
        bare.done
    }
}

impl Bare {
    fn new(shape: Shape, rules: Rules) -> Bare {
        let (hosts, nodes) = (shape.hosts(), shape.nodes());
        let edge_ports = shape.nodes_per_edge + shape.cores * shape.isls_per_core;
        let core_ports = shape.edges * shape.isls_per_core;
        let ports = (0..shape.edges).map(|_| edge_ports).chain((0..shape.cores).map(|_| core_ports));
        let mut lines = Vec::new();
        let mut switches: Vec<Switch> = ports.map(|ports| Switch::new(ports as usize)).collect();
        let mut connect = |a: End, b: End| {
            for (from, to) in [(a, b), (b, a)] {
                let credits = if matches!(to, End::Node(_)) { NODE_BUFFERS } else { rules.buffers };
                let number = lines.len() as u32;
                if let End::Switch(switch, port) = from {
                    switches[switch as usize].outputs[port as usize].line = number;
                }
                if let End::Switch(switch, port) = to {
                    switches[switch as usize].upstream[port as usize] = number;
                }
                let (returns, flight) = (VecDeque::new(), VecDeque::new());
                lines.push(Line { free_ps: 0, credits, waits_for_credit: false, returns, flight, from, to });
            }
        };
        for node in 0..nodes {
            connect(End::Node(node), End::Switch(shape.edge_of(node), node % shape.nodes_per_edge));
        }
        for edge in 0..shape.edges {
            for isl in 0..shape.cores * shape.isls_per_core {
                let (core, number) = (isl % shape.cores, isl / shape.cores);
                let port = edge * shape.isls_per_core + number;
                connect(End::Switch(edge, shape.nodes_per_edge + isl), End::Switch(shape.edges + core, port));
            }
        }
        let node = |number: u32| Node { tx: 2 * number, unsent: VecDeque::new(), requests: VecDeque::new(), state: 0 };
        let frame_ps = u64::from(DATA_BYTES) * rules.ps_per_byte;
        let sources = 2 * lines.len() + (nodes - hosts) as usize;
        Bare {
            queue: EventQueue::new(sources, 0, 2 * frame_ps / lines.len() as u64),
            now: 0,
            nodes: (0..nodes).map(node).collect(),
            lines,
            switches,
            shape,
            rules,
            done: Work { ios: 0, frame_hops: 0, events: 0 },
        }
    }

    /// Issues a request of a host to a random device of its zone.
    fn issue(&mut self, host: u32) {
        let node = &mut self.nodes[host as usize];
        node.state ^= node.state << 13;
        node.state ^= node.state >> 7;
        node.state ^= node.state << 17;
        let random = (node.state >> 32) as u32;
        let to = self.shape.device(host, random);
        node.unsent.push_back((Frame { from: host, to, kind: Kind::Command, hash: random >> 8 }, 1));
        let tx = node.tx;
        self.send(tx);
    }

    /// Sends the data and the response of a request.
    fn answer(&mut self, device: u32) {
        let number = self.shape.hosts() + device;
        let node = &mut self.nodes[number as usize];
        let Some(Frame { from, to, hash, .. }) = node.requests.pop_front() else { return };
        let frame = |kind| Frame { from: to, to: from, kind, hash };
        node.unsent.push_back((frame(Kind::Data), self.rules.frames));
        node.unsent.push_back((frame(Kind::Response), 1));
        let (tx, more) = (node.tx, !node.requests.is_empty());
        if more {
            self.queue.schedule(2 * self.lines.len() as u32 + device, self.now + SERVICE_PS);
        }
        self.send(tx);
    }

    fn arrive(&mut self, number: u32) {
        let line = &mut self.lines[number as usize];
        let Some((_, frame)) = line.flight.pop_front() else { return };
        if let Some(&(next, _)) = line.flight.front() {
            self.queue.schedule(number, next);
        }
        self.done.frame_hops += 1;
        match line.to {
            End::Node(node) => {
                self.return_credit(number, self.now);
                self.receive(node, frame);
            }
            End::Switch(switch, input) => {
                let output = self.shape.output(switch, frame.to, frame.hash);
                let switch = &mut self.switches[switch as usize];
                switch.inputs[input as usize].push_back((output, frame));
                switch.masks[output as usize * switch.words + input as usize / 64] |= 1 << (input % 64);
                let output = &mut switch.outputs[output as usize];
                output.frames += 1;
                let line = output.line;
                self.send(line);
            }
        }
    }

    fn receive(&mut self, node: u32, frame: Frame) {
        match frame.kind {
            Kind::Data => {}
            Kind::Command => {
                let requests = &mut self.nodes[node as usize].requests;
                requests.push_back(frame);
                if requests.len() == 1 {
                    let source = 2 * self.lines.len() as u32 + node - self.shape.hosts();
                    self.queue.schedule(source, self.now + SERVICE_PS);
                }
            }
            Kind::Response => {
                self.done.ios += 1;
                self.issue(node);
            }
        }
    }

    /// Sends the next frame on a line, if its sender has one and the line and the credits allow it.
    fn send(&mut self, number: u32) {
        let now = self.now;
        let wake = self.lines.len() as u32 + number;
        let line = &mut self.lines[number as usize];
        let waits = match line.from {
            End::Node(node) => !self.nodes[node as usize].unsent.is_empty(),
            End::Switch(switch, port) => self.switches[switch as usize].outputs[port as usize].frames > 0,
        };
        if !waits {
            return;
        }
        if line.free_ps > now {
            self.queue.schedule_earlier(wake, line.free_ps);
            return;
        }
        if line.credits == 0 {
            while line.returns.front().is_some_and(|&time| time <= now) {
                line.returns.pop_front();
                line.credits += 1;
            }
        }
        if line.credits == 0 {
            line.waits_for_credit = true;
            if let Some(&time) = line.returns.front() {
                self.queue.schedule_earlier(wake, time);
            }
            return;
        }
        line.waits_for_credit = false;
        line.credits -= 1;
        let (frame, upstream, more) = match line.from {
            End::Node(node) => {
                let unsent = &mut self.nodes[node as usize].unsent;
                let Some((frame, count)) = unsent.front_mut() else { return };
                let frame = *frame;
                *count -= 1;
                if *count == 0 {
                    unsent.pop_front();
                }
                (frame, NONE, !unsent.is_empty())
            }
            End::Switch(switch, output) => self.switches[switch as usize].take(output),
        };
        let Rules { ps_per_byte, header_bytes, latency_ps, .. } = self.rules;
        let end = now + u64::from(frame.bytes()) * ps_per_byte;
        line.free_ps = end + u64::from(GAP_BYTES) * ps_per_byte;
        let at = match (line.to, header_bytes) {
            (End::Switch(..), Some(bytes)) => now + u64::from(bytes) * ps_per_byte + PROPAGATION_PS + latency_ps,
            (End::Switch(..), None) => end + PROPAGATION_PS + latency_ps,
            (End::Node(_), _) => end + PROPAGATION_PS,
        };
        line.flight.push_back((at, frame));
        if line.flight.len() == 1 {
            self.queue.schedule(number, at);
        }
        if more {
            self.queue.schedule_earlier(wake, line.free_ps);
        }
        if upstream != NONE {
            self.return_credit(upstream, end);
        }
    }

    /// Returns the credit of a buffer that becomes free at `free_ps`.
    fn return_credit(&mut self, number: u32, free_ps: u64) {
        let line = &mut self.lines[number as usize];
        let time = free_ps + 4 * self.rules.ps_per_byte + PROPAGATION_PS;
        let at = line.returns.iter().rposition(|&other| other <= time).map_or(0, |at| at + 1);
        line.returns.insert(at, time);
        if line.waits_for_credit {
            self.queue.schedule_earlier(self.lines.len() as u32 + number, time);
        }
    }
}

impl Switch {
    fn new(ports: usize) -> Switch {
        let words = ports.div_ceil(64);
        Switch {
            inputs: (0..ports).map(|_| VecDeque::new()).collect(),
            upstream: vec![NONE; ports],
            outputs: (0..ports).map(|_| Output { line: NONE, last: 0, frames: 0 }).collect(),
            masks: vec![0; ports * words],
            words,
        }
    }

    /// Removes the oldest frame for an output of the input whose turn it is. Returns it with its
    /// incoming line, and whether the output has another one.
    fn take(&mut self, output: u32) -> (Frame, u32, bool) {
        let out = &mut self.outputs[output as usize];
        let mask = &mut self.masks[output as usize * self.words..][..self.words];
        let input = next_bit(mask, out.last as usize + 1);
        let held = &mut self.inputs[input];
        let at = held.iter().position(|&(other, _)| other == output).unwrap_or(0);
        let (_, frame) = held.remove(at).expect("a set bit stands for a frame");
        if !held.iter().skip(at).any(|&(other, _)| other == output) {
            mask[input / 64] &= !(1 << (input % 64));
        }
        out.last = input as u32;
        out.frames -= 1;
        (frame, self.upstream[input], out.frames > 0)
    }
}

/// Returns the first set bit at or after `from`, wrapping around. At least one bit is set.
fn next_bit(words: &[u64], from: usize) -> usize {
    let from = if from < 64 * words.len() { from } else { 0 };
    let start = from / 64;
    let high = words[start] & (!0 << (from % 64));
    if high != 0 {
        return start * 64 + high.trailing_zeros() as usize;
    }
    let at = (start + 1..words.len()).chain(0..=start).find(|&at| words[at] != 0).unwrap_or(start);
    at * 64 + words[at].trailing_zeros() as usize
}
