//! A plain engine: the rules of the frame path in the simplest words, without any of the structures that make the real one
//! fast. It looks at everything at every instant.
//!
//! The rules:
//!
//! 1. A frame takes its bytes on the line, then the way; a gap of 24 bytes follows it. Times are bytes since the line
//!    became busy, divided once.
//! 2. A sender needs a credit. The credit comes back when the receiver's buffer is free: at a switch when the frame's last
//!    bit has left, at an N_Port when that has emptied it; four bytes and the way later it is at the sender.
//! 3. At one instant first frames arrive, in the order of lanes, and each one's output tries to send at once. Then lanes
//!    whose line or credit has just become free try, in the order of lanes. Then inputs that have sent a frame show
//!    their next one, in the order of lanes. Then lanes are looked after, in their order: what the receiver has held for the
//!    hold time is discarded, and a sender that has starved for E_D_TOV resets its link. N_Ports empty buffers last.
//! 4. An output takes the next input in turn (or the oldest frame) among those that show it a frame.
//! 5. A sender starves from the moment a frame finds its line free and no credit until it has one.
//!
//! Where a frame goes and who goes first is in [`switch`], what goes wrong in [`faults`].

mod faults;
mod switch;

pub use faults::{Chances, Trouble};
pub use switch::Switch;

use sanloom_core::config::{LineRate, Queueing};
use std::collections::BTreeMap;

/// Fill, SOF, header, CRC and EOF around a data field.
const OVERHEAD: u64 = 36;

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum End {
    Switch(usize, usize),
    NPort(usize),
}

#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct Frame {
    /// Addresses, domain in the highest of three bytes.
    pub s_id: u32,
    pub d_id: u32,
    pub exchange: u16,
    /// Which frame of its sequence.
    pub part: u16,
    pub len: u16,
    /// Not data.
    pub control: bool,
    /// Its CRC is bad.
    pub bad: bool,
}

/// Where a frame ends well.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Goal {
    NPort(usize),
    /// The processor of a switch; through this port.
    Switch(usize, usize),
}

/// Where a frame is lost.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Place {
    Line(usize),
    Receiver(usize),
    Processor(usize),
}

pub struct Lane {
    pub from: End,
    pub to: End,
    rate: LineRate,
    propagation: u64,
    bundle: Option<usize>,
    pub up: bool,
    buffers: usize,
    credits: usize,
    starving: Option<u64>,
    run_began: u64,
    run_bytes: u64,
    free_at: u64,
    /// When R_RDYs will be here.
    returns: Vec<u64>,
    /// When the receiver may deal with it, when its last bit is there, the frame.
    flying: Vec<(u64, u64, Frame)>,
    pub trouble: Trouble,
}

impl Lane {
    pub fn new(from: End, to: End, rate: LineRate, propagation: u64, buffers: usize, bundle: Option<usize>) -> Lane {
        Lane {
            from,
            to,
            rate,
            propagation,
            bundle,
            up: true,
            buffers,
            credits: buffers,
            starving: None,
            run_began: 0,
            run_bytes: 0,
            free_at: 0,
            returns: Vec::new(),
            flying: Vec::new(),
            trouble: Trouble::default(),
        }
    }

    fn time(&self, bytes: u64) -> u64 {
        let (ps, per) = self.rate.ps_per_byte();
        bytes * ps / per
    }
}

pub struct NPort {
    /// How long it takes to empty a buffer, in ps.
    pub empties_after: u64,
    /// What it has to send, the next one first.
    waiting: Vec<Frame>,
    /// When it will have emptied the buffers that hold a frame.
    holds_until: Vec<u64>,
}

impl NPort {
    pub fn new(empties_after: u64) -> NPort {
        NPort { empties_after, waiting: Vec::new(), holds_until: Vec::new() }
    }
}

/// What happens at an instant, in this order.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
enum Kind {
    Arrive,
    Try,
    Show,
    Look,
    Empty,
}

pub struct Engine {
    pub now: u64,
    pub lanes: Vec<Lane>,
    pub switches: Vec<Switch>,
    pub nports: Vec<NPort>,
    hold_time: u64,
    e_d_tov: u64,
    pub sent: u64,
    pub delivered: Vec<(u64, Goal, Frame)>,
    pub lost: BTreeMap<(Place, &'static str), u64>,
    pub hops: u64,
    /// When a link was reset, and the lane whose sender did it.
    pub resets: Vec<(u64, usize)>,
    /// When frames were held too long, where, and how many.
    pub held: Vec<(u64, usize, usize, usize)>,
    /// How often things happened that are not counted above.
    pub happened: BTreeMap<&'static str, u64>,
    bundle_last: Vec<u64>,
    /// When, which lane.
    shows: Vec<(u64, usize)>,
    tries: Vec<(u64, usize)>,
}

impl Engine {
    pub fn new(lanes: Vec<Lane>, switches: Vec<Switch>, nports: Vec<NPort>, hold_time: u64, e_d_tov: u64) -> Engine {
        let bundles = lanes.iter().filter_map(|lane| lane.bundle).max().map_or(0, |most| most + 1);
        Engine {
            now: 0,
            lanes,
            switches,
            nports,
            hold_time,
            e_d_tov,
            sent: 0,
            delivered: Vec::new(),
            lost: BTreeMap::new(),
            hops: 0,
            resets: Vec::new(),
            held: Vec::new(),
            happened: BTreeMap::new(),
            bundle_last: vec![0; bundles],
            shows: Vec::new(),
            tries: Vec::new(),
        }
    }

    /// An N_Port sends frames behind what it already has to send.
    pub fn send(&mut self, nport: usize, frames: impl IntoIterator<Item = Frame>) {
        self.nports[nport].waiting.extend(frames);
        let lane = self.lane_from(End::NPort(nport)).unwrap();
        self.try_lane(lane);
    }

    /// The processor of a switch sends frames through a port.
    pub fn send_from_switch(&mut self, switch: usize, port: usize, frames: impl IntoIterator<Item = Frame>) {
        let Some(lane) = self.lane_from(End::Switch(switch, port)) else { return };
        for frame in frames {
            self.sent += 1;
            if self.lanes[lane].up {
                let output = self.output_of(switch, port);
                self.switches[switch].take_own(self.now, output, frame);
                self.try_output(switch, output);
            } else {
                self.lose(Place::Processor(switch), "link_down");
            }
        }
    }

    pub fn run_until(&mut self, limit: u64) {
        while let Some((at, kind, number)) = self.next().filter(|next| next.0 <= limit) {
            assert!(at >= self.now, "{kind:?} of {number} was due at {at}, it is {}", self.now);
            self.now = at;
            match kind {
                Kind::Arrive => {
                    let first = self.lanes[number].flying.iter().position(|f| f.0 == at).unwrap();
                    let (_, tail, frame) = self.lanes[number].flying.remove(first);
                    self.arrive(number, tail, frame);
                }
                Kind::Try => {
                    self.tries.retain(|&t| t != (at, number));
                    self.try_lane(number);
                }
                Kind::Show => {
                    self.shows.retain(|&r| r != (at, number));
                    self.show_next(number);
                }
                Kind::Look => self.look_after(number),
                Kind::Empty => {
                    let buffer = self.nports[number].holds_until.iter().position(|&until| until == at).unwrap();
                    self.nports[number].holds_until.remove(buffer);
                    let lane = self.lane_to(End::NPort(number));
                    self.credit_back(lane, at);
                }
            }
        }
        self.now = limit;
    }

    /// When something happens next.
    pub fn next_instant(&self) -> Option<u64> {
        self.next().map(|next| next.0)
    }

    fn next(&self) -> Option<(u64, Kind, usize)> {
        let lanes = || self.lanes.iter().enumerate();
        let arrivals = lanes().flat_map(|(n, lane)| lane.flying.iter().map(move |f| (f.0, Kind::Arrive, n)));
        let tries = self.tries.iter().map(|t| (t.0, Kind::Try, t.1));
        let shows = self.shows.iter().map(|s| (s.0, Kind::Show, s.1));
        let looks = (0..self.lanes.len()).flat_map(|n| self.look_at(n).map(|at| (at, Kind::Look, n)));
        let nports = self.nports.iter().enumerate();
        let empties = nports.flat_map(|(n, nport)| nport.holds_until.iter().map(move |&at| (at, Kind::Empty, n)));
        arrivals.chain(tries).chain(shows).chain(looks).chain(empties).min()
    }

    pub fn frames_under_way(&self) -> usize {
        let flying = self.lanes.iter().map(|lane| lane.flying.len());
        flying.chain(self.switches.iter().map(Switch::frames)).sum()
    }

    fn arrive(&mut self, number: usize, tail: u64, frame: Frame) {
        self.hops += 1;
        match self.lanes[number].to {
            End::NPort(_) if frame.bad => {
                self.lose(Place::Receiver(number), "crc_error_at_destination");
                self.credit_back(number, self.now);
            }
            End::NPort(nport) => {
                self.delivered.push((self.now, Goal::NPort(nport), frame));
                match self.nports[nport].empties_after {
                    0 => self.credit_back(number, self.now),
                    time => self.nports[nport].holds_until.push(self.now + time),
                }
            }
            End::Switch(switch, port) => {
                let cut_through = self.switches[switch].cut_through;
                let way = if frame.bad && !cut_through {
                    Err("crc_error")
                } else {
                    self.switches[switch].way(port, &frame, &mut self.happened)
                };
                match way {
                    Ok(Some(output)) => {
                        self.switches[switch].take(self.now, tail, port, output, frame);
                        self.try_output(switch, output);
                        return;
                    }
                    Ok(None) if frame.bad => self.lose(Place::Receiver(number), "crc_error_at_destination"),
                    Ok(None) => self.delivered.push((self.now, Goal::Switch(switch, port), frame)),
                    Err(why) => self.lose(Place::Receiver(number), why),
                }
                self.credit_back(number, self.now.max(tail));
            }
        }
    }

    /// Sends one frame if there is one that may leave, the line is free and a credit is there.
    fn try_lane(&mut self, number: usize) {
        let now = self.now;
        if !self.lanes[number].up {
            return;
        }
        let lane = &mut self.lanes[number];
        lane.credits += lane.returns.iter().filter(|&&at| at <= now).count();
        lane.returns.retain(|&at| at > now);
        if lane.credits > 0 {
            lane.starving = None;
        }
        if !self.has_frame(number) {
            return;
        }
        let lane = &mut self.lanes[number];
        if lane.free_at > now {
            let at = lane.free_at;
            self.try_later(at, number);
            return;
        }
        if lane.credits == 0 {
            lane.starving.get_or_insert(now);
            if let Some(&at) = lane.returns.iter().min() {
                self.try_later(at, number);
            }
            return;
        }
        match self.lanes[number].from {
            End::NPort(nport) => {
                let frame = self.nports[nport].waiting.remove(0);
                self.sent += 1;
                self.put(number, now, frame);
            }
            End::Switch(switch, port) => {
                let output = self.output_of(switch, port);
                let Some(input) = self.switches[switch].choose(now, output) else { return };
                let leaving = self.switches[switch].leave(input, output);
                let end = self.put(number, leaving.tail, leaving.frame);
                if input != self.switches[switch].processor() {
                    let upstream = self.lane_to(End::Switch(switch, input));
                    if self.switches[switch].queueing != Queueing::Any {
                        self.switches[switch].busy(input, end);
                        self.shows.push((end, upstream));
                    }
                    self.credit_back(upstream, end);
                }
            }
        }
        if self.has_frame(number) {
            let at = self.lanes[number].free_at;
            self.try_later(at, number);
        }
    }

    /// Some frame waits for the lane, whether it may leave or not.
    fn has_frame(&self, number: usize) -> bool {
        match self.lanes[number].from {
            End::NPort(nport) => !self.nports[nport].waiting.is_empty(),
            End::Switch(switch, port) => self.switches[switch].waits(self.output_of(switch, port)),
        }
    }

    fn try_output(&mut self, switch: usize, output: usize) {
        for member in self.switches[switch].together[output].clone() {
            if self.switches[switch].waits(output)
                && let Some(lane) = self.lane_from(End::Switch(switch, member))
            {
                self.try_lane(lane);
            }
        }
    }

    /// Frames have left a switch out of turn.
    fn try_all(&mut self, switch: usize) {
        for output in 0..self.switches[switch].ports {
            if self.switches[switch].waits(output) {
                self.try_output(switch, output);
            }
        }
    }

    fn show_next(&mut self, lane: usize) {
        let End::Switch(switch, port) = self.lanes[lane].to else { return };
        for output in self.switches[switch].show_next(port) {
            self.try_output(switch, output);
        }
    }

    fn put(&mut self, number: usize, tail: u64, mut frame: Frame) -> u64 {
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
        if self.loses(number) {
            self.lose(Place::Line(number), "frame_loss");
            self.credit_back(number, arrived);
            return end;
        }
        frame.bad |= self.damages(number);
        self.lanes[number].flying.push((at, tail, frame));
        end
    }

    /// The receive buffer of a lane is free at `at`.
    fn credit_back(&mut self, number: usize, at: u64) {
        if !self.lanes[number].up {
            return;
        }
        let Some(leaves) = self.r_rdy_leaves(number, at) else { return };
        let back = &self.lanes[number ^ 1];
        let at = leaves + back.time(4) + back.propagation;
        self.lanes[number].returns.push(at);
        if self.lanes[number].starving.is_some() {
            let first = *self.lanes[number].returns.iter().min().unwrap();
            self.try_later(first.max(self.now), number);
        }
    }

    fn try_later(&mut self, at: u64, lane: usize) {
        if !self.tries.contains(&(at, lane)) {
            self.tries.push((at, lane));
        }
    }

    fn output_of(&self, switch: usize, port: usize) -> usize {
        self.switches[switch].together[port][0]
    }

    fn lane_from(&self, end: End) -> Option<usize> {
        self.lanes.iter().position(|lane| lane.from == end)
    }

    fn lane_to(&self, end: End) -> usize {
        self.lanes.iter().position(|lane| lane.to == end).unwrap()
    }
}
