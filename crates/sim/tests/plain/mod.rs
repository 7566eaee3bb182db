//! A plain engine: the rules of the frame path in the simplest words, without any of the structures that make the real one
//! fast. It looks at everything at every instant.
//!
//! The rules:
//!
//! 1. A frame takes its bytes on the line, then the way; a gap of 24 bytes follows it. Times are bytes since the line
//!    became busy, divided once.
//! 2. A sender needs a credit. The credit comes back when the receiver's buffer is free: at a switch when the frame's last
//!    bit has left, at an N_Port at once; four bytes and the way later it is at the sender.
//! 3. At one instant first frames arrive, in the order of lanes, and each one's output tries to send at once. Then lanes
//!    whose line or credit has just become free try, in the order of lanes. Then inputs that have sent a frame show
//!    their next one, in the order of lanes.
//! 4. An output takes the next input in turn (or the oldest frame) among those that show it a frame.

use sanloom_core::config::{Arbitration, IslChoice, LineRate, Queueing};

/// Fill, SOF, header, CRC and EOF around a data field.
const OVERHEAD: u64 = 36;

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum End {
    Switch(usize, usize),
    NPort(usize),
}

#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct Frame {
    pub source: usize,
    pub destination: usize,
    pub exchange: u16,
    pub seq_cnt: u16,
    pub len: u16,
}

pub struct Lane {
    pub from: End,
    pub to: End,
    pub rate: LineRate,
    pub propagation: u64,
    pub credits: usize,
    pub bundle: Option<usize>,
    run_began: u64,
    run_bytes: u64,
    free_at: u64,
    returns: Vec<u64>,
    flying: Vec<(u64, u64, Frame)>,
}

impl Lane {
    pub fn new(from: End, to: End, rate: LineRate, propagation: u64, credits: usize, bundle: Option<usize>) -> Lane {
        let (run_began, run_bytes, free_at) = (0, 0, 0);
        let (returns, flying) = (Vec::new(), Vec::new());
        Lane { from, to, rate, propagation, credits, bundle, run_began, run_bytes, free_at, returns, flying }
    }
    fn time(&self, bytes: u64) -> u64 {
        let (ps, per) = self.rate.ps_per_byte();
        bytes * ps / per
    }
}

pub struct Switch {
    pub queueing: Queueing,
    pub arbitration: Arbitration,
    pub cut_through: bool,
    pub latency: u64,
    pub isl_choice: IslChoice,
    pub ports: usize,
    /// For each destination N_Port: its switch, and the ports that lead there, lowest first; a bundle counts once, by its
    /// lowest port.
    pub legs: Vec<(usize, Vec<usize>)>,
    /// Ports that leave together with a port.
    pub together: Vec<Vec<usize>>,
    /// Frames in the buffer of each input: since when, last bit, output, frame.
    inputs: Vec<Vec<(u64, u64, usize, Frame)>>,
    busy_until: Vec<u64>,
    shown: Vec<bool>,
    served_last: Vec<usize>,
    turn: Vec<usize>,
}

impl Switch {
    pub fn new(
        (queueing, arbitration, isl_choice): (Queueing, Arbitration, IslChoice),
        cut_through: bool,
        latency: u64,
        ports: usize,
        legs: Vec<(usize, Vec<usize>)>,
        together: Vec<Vec<usize>>,
    ) -> Switch {
        Switch {
            queueing,
            arbitration,
            cut_through,
            latency,
            isl_choice,
            ports,
            legs,
            together,
            inputs: vec![Vec::new(); ports],
            busy_until: vec![0; ports],
            shown: vec![true; ports],
            served_last: vec![ports; ports],
            turn: vec![0; 64],
        }
    }
}

pub struct Engine {
    pub now: u64,
    pub lanes: Vec<Lane>,
    pub switches: Vec<Switch>,
    /// What each N_Port has to send, the next one first.
    pub waiting: Vec<Vec<Frame>>,
    pub delivered: Vec<(u64, usize, Frame)>,
    pub hops: u64,
    bundle_last: Vec<u64>,
    input_ready: Vec<(u64, usize)>,
    tries: Vec<(u64, usize)>,
}

impl Engine {
    pub fn new(lanes: Vec<Lane>, switches: Vec<Switch>, nports: usize) -> Engine {
        let bundles = lanes.iter().filter_map(|lane| lane.bundle).max().map_or(0, |most| most + 1);
        Engine {
            now: 0,
            lanes,
            switches,
            waiting: vec![Vec::new(); nports],
            delivered: Vec::new(),
            hops: 0,
            bundle_last: vec![0; bundles],
            input_ready: Vec::new(),
            tries: Vec::new(),
        }
    }

    pub fn send(&mut self, nport: usize, frames: impl IntoIterator<Item = Frame>) {
        self.waiting[nport].extend(frames);
        let lane = self.lanes.iter().position(|lane| lane.from == End::NPort(nport)).unwrap();
        self.try_lane(lane);
    }

    pub fn run_until(&mut self, limit: u64) {
        while let Some(next) = self.next_instant().filter(|&next| next <= limit) {
            self.now = next;
            for lane in 0..self.lanes.len() {
                while let Some(at) = self.lanes[lane].flying.iter().position(|f| f.0 == self.now) {
                    let (_, tail, frame) = self.lanes[lane].flying.remove(at);
                    self.arrive(lane, tail, frame);
                }
            }
            for lane in 0..self.lanes.len() {
                if self.tries.contains(&(self.now, lane)) {
                    self.tries.retain(|&t| t != (self.now, lane));
                    self.try_lane(lane);
                }
            }
            for lane in 0..self.lanes.len() {
                if self.input_ready.contains(&(self.now, lane)) {
                    self.input_ready.retain(|&r| r != (self.now, lane));
                    self.show_next(lane);
                }
            }
        }
        self.now = limit;
    }

    fn next_instant(&self) -> Option<u64> {
        let arrivals = self.lanes.iter().flat_map(|lane| lane.flying.iter().map(|f| f.0));
        let tries = self.tries.iter().chain(&self.input_ready).map(|t| t.0);
        arrivals.chain(tries).min()
    }

    fn arrive(&mut self, number: usize, tail: u64, frame: Frame) {
        self.hops += 1;
        match self.lanes[number].to {
            End::NPort(nport) => {
                self.delivered.push((self.now, nport, frame));
                self.credit_back(number, self.now);
            }
            End::Switch(switch, port) => {
                let output = self.route(switch, port, &frame);
                let plane = &mut self.switches[switch];
                if plane.inputs[port].is_empty() && plane.busy_until[port] <= self.now {
                    plane.shown[port] = true;
                }
                plane.inputs[port].push((self.now, tail, output, frame));
                for member in self.switches[switch].together[output].clone() {
                    self.try_port(switch, member);
                }
            }
        }
    }

    fn route(&mut self, switch: usize, port: usize, frame: &Frame) -> usize {
        let switch = &mut self.switches[switch];
        let (group, legs) = switch.legs[frame.destination].clone();
        if let [only] = legs[..] {
            return only;
        }
        match switch.isl_choice {
            IslChoice::Ingress => legs[switch.together[port][0] % legs.len()],
            IslChoice::Spray => {
                let leg = legs[switch.turn[group] % legs.len()];
                switch.turn[group] += 1;
                leg
            }
            other => unreachable!("{other:?} depends on the hash of the real engine"),
        }
    }

    fn try_port(&mut self, switch: usize, port: usize) {
        if let Some(lane) = self.lanes.iter().position(|lane| lane.from == End::Switch(switch, port)) {
            self.try_lane(lane);
        }
    }

    /// Sends one frame if there is one that may leave, the line is free and a credit is there.
    fn try_lane(&mut self, number: usize) {
        let now = self.now;
        let waits = match self.lanes[number].from {
            End::NPort(nport) => !self.waiting[nport].is_empty(),
            End::Switch(switch, port) => {
                let output = self.output_of(switch, port);
                self.switches[switch].inputs.iter().flatten().any(|buffered| buffered.2 == output)
            }
        };
        if !waits {
            return;
        }
        if self.lanes[number].free_at > now {
            let at = self.lanes[number].free_at;
            self.try_later(at, number);
            return;
        }
        let back = self.lanes[number].returns.iter().filter(|&&at| at <= now).count();
        self.lanes[number].returns.retain(|&at| at > now);
        self.lanes[number].credits += back;
        if self.lanes[number].credits == 0 {
            if let Some(&at) = self.lanes[number].returns.iter().min() {
                self.try_later(at, number);
            }
            return;
        }
        match self.lanes[number].from {
            End::NPort(nport) => {
                let frame = self.waiting[nport].remove(0);
                self.put(number, now, frame);
                if !self.waiting[nport].is_empty() {
                    let at = self.lanes[number].free_at;
                    self.try_later(at, number);
                }
            }
            End::Switch(switch, port) => {
                let output = self.output_of(switch, port);
                let Some(input) = self.choose(switch, output) else { return };
                let plane = &mut self.switches[switch];
                let at = plane.inputs[input].iter().position(|b| b.2 == output).unwrap();
                let (_, tail, _, frame) = plane.inputs[input].remove(at);
                plane.served_last[output] = input;
                let end = self.put(number, tail, frame);
                let plane = &mut self.switches[switch];
                let upstream = self.lanes.iter().position(|lane| lane.to == End::Switch(switch, input)).unwrap();
                if plane.queueing != Queueing::Any {
                    plane.busy_until[input] = end;
                    plane.shown[input] = false;
                    self.input_ready.push((end, upstream));
                }
                if self.switches[switch].inputs.iter().flatten().any(|b| b.2 == output) {
                    let at = self.lanes[number].free_at;
                    self.try_later(at, number);
                }
                self.credit_back(upstream, end);
            }
        }
    }

    fn output_of(&self, switch: usize, port: usize) -> usize {
        self.switches[switch].together[port][0]
    }

    fn choose(&self, switch: usize, output: usize) -> Option<usize> {
        let plane = &self.switches[switch];
        let shows = |input: usize| {
            let buffer = &plane.inputs[input];
            match plane.queueing {
                Queueing::Any => buffer.iter().any(|b| b.2 == output),
                Queueing::Voq => plane.busy_until[input] <= self.now && buffer.iter().any(|b| b.2 == output),
                Queueing::Fifo => {
                    let free = plane.busy_until[input] <= self.now;
                    free && plane.shown[input] && buffer.first().is_some_and(|b| b.2 == output)
                }
            }
        };
        let first_for_output = |input: usize| plane.inputs[input].iter().find(|b| b.2 == output);
        let since = |input: usize| first_for_output(input).unwrap().0;
        // What came over a bundle leaves in the order in which it came.
        let shows = |input: usize| {
            let bundle = plane.together[input].iter().filter(|&&other| other != input);
            shows(input) && bundle.flat_map(|&other| first_for_output(other)).all(|b| b.0 > since(input))
        };
        match plane.arbitration {
            Arbitration::RoundRobin => {
                let last = plane.served_last[output];
                let places = plane.ports + 1;
                (1..=places).map(|step| (last + step) % places).filter(|&i| i < plane.ports).find(|&i| shows(i))
            }
            Arbitration::OldestFirst => (0..plane.ports).filter(|&i| shows(i)).min_by_key(|&i| (since(i), i)),
        }
    }

    fn show_next(&mut self, lane: usize) {
        let End::Switch(switch, port) = self.lanes[lane].to else { return };
        self.switches[switch].shown[port] = true;
        let outputs: Vec<usize> = match self.switches[switch].queueing {
            Queueing::Any => Vec::new(),
            Queueing::Fifo => self.switches[switch].inputs[port].first().map(|b| b.2).into_iter().collect(),
            Queueing::Voq => {
                let buffer = &self.switches[switch].inputs[port];
                (0..self.switches[switch].ports).filter(|&o| buffer.iter().any(|b| b.2 == o)).collect()
            }
        };
        for output in outputs {
            for member in self.switches[switch].together[output].clone() {
                self.try_port(switch, member);
            }
        }
    }

    fn put(&mut self, number: usize, tail: u64, frame: Frame) -> u64 {
        let now = self.now;
        let bytes = u64::from(frame.len).next_multiple_of(4) + OVERHEAD;
        let lane = &mut self.lanes[number];
        // The last bit must be there when its turn comes.
        let start = now.max(tail.saturating_sub(lane.time(bytes)));
        if start != lane.free_at {
            (lane.run_began, lane.run_bytes) = (start, 0);
        }
        let end = lane.run_began + lane.time(lane.run_bytes + bytes);
        lane.run_bytes += bytes + 24;
        lane.free_at = lane.run_began + lane.time(lane.run_bytes);
        lane.credits -= 1;
        let arrived = end + lane.propagation;
        let (mut at, tail) = match lane.to {
            End::NPort(_) => (arrived, arrived),
            End::Switch(switch, _) => {
                let switch = &self.switches[switch];
                let first = if switch.cut_through { start + lane.time(28) + lane.propagation } else { arrived };
                (first + switch.latency, arrived)
            }
        };
        if let Some(bundle) = lane.bundle {
            at = at.max(self.bundle_last[bundle] + 1);
            self.bundle_last[bundle] = at;
        }
        self.lanes[number].flying.push((at, tail, frame));
        end
    }

    fn credit_back(&mut self, number: usize, at: u64) {
        let back = &self.lanes[number ^ 1];
        let at = at + back.time(4) + back.propagation;
        let lane = &mut self.lanes[number];
        lane.returns.push(at);
        // A sender that waits for a credit and for nothing else tries when the first one comes.
        if self.starves(number) {
            let first = *self.lanes[number].returns.iter().min().unwrap();
            self.try_later(first.max(self.now), number);
        }
    }

    fn starves(&self, number: usize) -> bool {
        let lane = &self.lanes[number];
        let waits = match lane.from {
            End::NPort(nport) => !self.waiting[nport].is_empty(),
            End::Switch(switch, port) => {
                let output = self.output_of(switch, port);
                self.switches[switch].inputs.iter().flatten().any(|b| b.2 == output)
            }
        };
        waits && lane.credits == 0 && lane.free_at <= self.now
    }

    fn try_later(&mut self, at: u64, lane: usize) {
        if !self.tries.contains(&(at, lane)) {
            self.tries.push((at, lane));
        }
    }
}
