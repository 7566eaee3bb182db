//! A plain engine: the rules of the frame path in their simplest form, without the data structures
//! that make the real engine fast. It examines the whole network at every instant.
//!
//! The rules:
//!
//! 1. A frame occupies the line for its bytes and then propagates. A gap of 24 bytes follows it.
//!    Times are computed from the bytes since the line became busy, with a single division. A
//!    cut-through switch receives a frame with its header, or later if a faster line could not send
//!    it without a pause otherwise.
//! 2. A sender needs a credit for each frame. The receiver frees the buffer when the last bit has
//!    left (switch) or when it has emptied the buffer (N_Port). The credit reaches the sender four
//!    bytes and one propagation delay later.
//! 3. The order of events at one instant is fixed:
//!    - Frames arrive, in the order of lanes. The output of each frame attempts to send at once.
//!    - Lanes whose line or credit has just become free try to send, in the order of lanes. The
//!      other lanes of a bundle try then only if the lane can send.
//!    - Inputs that have finished sending a frame show their next one, in the order of lanes.
//!    - Lanes are checked, in their order. Frames that the receiver has held for the hold time are
//!      discarded. A sender that has starved for E_D_TOV resets its link.
//!    - N_Ports empty their buffers.
//! 4. An output selects the next input in round-robin order (or the oldest frame) among the
//!    inputs that show a frame for it. With `any` queueing the frame leaves on the line at
//!    once. Otherwise the output has some seats in front of its lines and grants a free seat to
//!    the next input; the frames with a seat cross one after the other from their input at the
//!    rate of the crossbar, and free their buffer when the last bit has crossed.
//!    A port with virtual channels has an output of its own for each channel.
//! 5. With credit recovery, the credit of a lost frame returns after the next full count of 2^n
//!    frames, and that of a lost R_RDY after the next full count of 2^n R_RDYs, unless that state
//!    change is lost, too. Losses are counted modulo 2^n.
//! 6. A sender starves from the moment a frame finds its line free but no credit, until it has a
//!    credit. A link reset ends this time; it starts again when a frame comes in front of the lane
//!    or when LRR has arrived.
//!
//! Routing and arbitration are in [`switch`], virtual channels in [`channels`], faults in
//! [`faults`], and lanes whose frames cross an Ethernet in [`over_ethernet`].

mod channels;
mod crossing;
mod faults;
mod over_ethernet;
mod switch;

pub use channels::{Channels, Priorities};
pub use crossing::Speed;
use faults::Counted;
pub use faults::{Chances, Fault};
pub use over_ethernet::Seam;
pub use switch::Switch;

use sanloom_fc::config::{LineRate, Queueing};
use std::collections::BTreeMap;

/// Bytes around a data field: SOF, header, CRC and EOF.
const OVERHEAD: u64 = 36;

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum End {
    Switch(usize, usize),
    NPort(usize),
}

#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct Frame {
    /// Address with the domain in the highest of its three bytes.
    pub s_id: u32,
    pub d_id: u32,
    pub exchange: u16,
    /// Index of the frame in its sequence.
    pub part: u16,
    pub len: u16,
    /// True for a control frame, false for data.
    pub control: bool,
    /// True if the CRC is bad.
    pub bad: bool,
    /// Virtual channel of the last link that has them.
    pub channel: u8,
}

/// Destination at which a frame is delivered.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Goal {
    NPort(usize),
    /// The processor of a switch, with the ingress port.
    Switch(usize, usize),
}

/// Location of a frame loss.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Place {
    Line(usize),
    Receiver(usize),
    Processor(usize),
}

pub struct Lane {
    pub from: End,
    pub to: End,
    /// Time of a byte: ps and the bytes they belong to.
    byte: (u64, u64),
    propagation: u64,
    bundle: Option<usize>,
    pub up: bool,
    /// True for a lane of a virtual link, whose credits are places in an Ethernet port.
    over_ethernet: bool,
    buffers: usize,
    credits: usize,
    credit_wait_since: Option<u64>,
    run_began: u64,
    run_bytes: u64,
    free_at: u64,
    /// Bytes of all frames sent.
    bytes: u64,
    /// Arrival times of the returning R_RDYs.
    returns: Vec<u64>,
    /// Frames on the line: time at which the receiver may process them, arrival of the last bit,
    /// frame.
    flying: Vec<(u64, u64, Frame)>,
    pub fault: Fault,
    /// Virtual channels; their credits replace those of the lane.
    pub channels: Option<Channels>,
    /// Exponent of the state changes of credit recovery; 0: none.
    pub state_changes: u8,
    /// Frames and R_RDYs since the last state change, and the lost ones among them.
    counted: Counted,
}

impl Lane {
    pub fn new(from: End, to: End, rate: LineRate, propagation: u64, buffers: usize, bundle: Option<usize>) -> Lane {
        Lane {
            from,
            to,
            byte: rate.ps_per_byte(),
            propagation,
            bundle,
            up: true,
            over_ethernet: false,
            buffers,
            credits: buffers,
            credit_wait_since: None,
            run_began: 0,
            run_bytes: 0,
            free_at: 0,
            bytes: 0,
            returns: Vec::new(),
            flying: Vec::new(),
            fault: Fault::default(),
            channels: None,
            state_changes: 0,
            counted: Counted::default(),
        }
    }

    fn time(&self, bytes: u64) -> u64 {
        bytes * self.byte.0 / self.byte.1
    }
}

pub struct NPort {
    /// Time to empty a buffer, in ps.
    pub empties_after: u64,
    /// Queued frames, the next one first.
    waiting: Vec<Frame>,
    /// Times at which the occupied buffers will be empty.
    holds_until: Vec<u64>,
}

impl NPort {
    pub fn new(empties_after: u64) -> NPort {
        NPort { empties_after, waiting: Vec::new(), holds_until: Vec::new() }
    }
}

/// Kinds of events, in their order within one instant.
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
    pub priorities: Priorities,
    hold_time: u64,
    e_d_tov: u64,
    pub sent: u64,
    pub delivered: Vec<(u64, Goal, Frame)>,
    pub lost: BTreeMap<(Place, &'static str), u64>,
    pub hops: u64,
    /// Link resets: time, and lane whose sender reset it.
    pub resets: Vec<(u64, usize)>,
    /// Hold-time discards: time, switch, port, number of frames.
    pub held: Vec<(u64, usize, usize, usize)>,
    /// Counts of events that are not counted above.
    pub occurred: BTreeMap<&'static str, u64>,
    bundle_last: Vec<u64>,
    /// Times at which inputs show their next frame, with the lane.
    shows: Vec<(u64, usize)>,
    attempts: Vec<(u64, usize)>,
    /// Events of virtual links for the Ethernet below, in order.
    pub seam: Vec<Seam>,
    /// Frames of virtual links on Ethernet that are not lost.
    pub on_ethernet: usize,
}

impl Engine {
    pub fn new(lanes: Vec<Lane>, switches: Vec<Switch>, nports: Vec<NPort>, hold_time: u64, e_d_tov: u64) -> Engine {
        let bundles = lanes.iter().filter_map(|lane| lane.bundle).max().map_or(0, |most| most + 1);
        Engine {
            now: 0,
            lanes,
            switches,
            nports,
            priorities: Priorities::default(),
            hold_time,
            e_d_tov,
            sent: 0,
            delivered: Vec::new(),
            lost: BTreeMap::new(),
            hops: 0,
            resets: Vec::new(),
            held: Vec::new(),
            occurred: BTreeMap::new(),
            bundle_last: vec![0; bundles],
            shows: Vec::new(),
            attempts: Vec::new(),
            seam: Vec::new(),
            on_ethernet: 0,
        }
    }

    /// Appends frames to the send queue of an N_Port.
    pub fn send(&mut self, nport: usize, frames: impl IntoIterator<Item = Frame>) {
        self.nports[nport].waiting.extend(frames);
        let lane = self.lane_from(End::NPort(nport)).unwrap();
        self.try_lane(lane);
    }

    /// Sends frames from the processor of a switch through a port.
    pub fn send_from_switch(&mut self, switch: usize, port: usize, frames: impl IntoIterator<Item = Frame>) {
        let Some(lane) = self.lane_from(End::Switch(switch, port)) else { return };
        for mut frame in frames {
            self.sent += 1;
            if self.lanes[lane].up {
                let output = self.output_of(switch, port);
                let input = self.switches[switch].processor();
                let output = self.choose_door(switch, input, output, &mut frame);
                self.switches[switch].enqueue_own(self.now, output, frame);
                self.try_output(switch, output);
            } else {
                self.lose(Place::Processor(switch), "link_down");
            }
        }
    }

    pub fn run_until(&mut self, limit: u64) {
        while self.step(limit, true) {}
        self.now = limit;
    }

    /// Handles the next event up to `limit`, if there is one. Without `empties`, N_Ports do not
    /// empty their buffers yet.
    pub fn step(&mut self, limit: u64, empties: bool) -> bool {
        let wanted = |next: &(u64, Kind, usize)| next.0 <= limit && (empties || next.1 != Kind::Empty);
        let Some((at, kind, number)) = self.events().filter(wanted).min() else { return false };
        assert!(at >= self.now, "{kind:?} of {number} was due at {at}, it is {}", self.now);
        self.now = at;
        match kind {
            Kind::Arrive => {
                let first = self.lanes[number].flying.iter().position(|f| f.0 == at).unwrap();
                let (_, tail, frame) = self.lanes[number].flying.remove(first);
                let enters = self.enters_at(number, tail, &frame);
                if enters > at {
                    self.count("waits for a faster line");
                    self.lanes[number].flying.push((enters, tail, frame));
                } else {
                    self.arrive(number, tail, frame);
                }
            }
            Kind::Try => {
                self.attempts.retain(|&t| t != (at, number));
                self.try_lane(number);
            }
            Kind::Show => {
                self.shows.retain(|&r| r != (at, number));
                self.input_ready(number);
            }
            Kind::Look => self.run_watchdog(number),
            Kind::Empty => {
                let buffer = self.nports[number].holds_until.iter().position(|&until| until == at).unwrap();
                self.nports[number].holds_until.remove(buffer);
                let lane = self.lane_to(End::NPort(number));
                self.credit_back(lane, at, 0);
            }
        }
        true
    }

    /// Returns the time of the next event.
    pub fn next_instant(&self) -> Option<u64> {
        self.events().map(|event| event.0).min()
    }

    fn events(&self) -> impl Iterator<Item = (u64, Kind, usize)> {
        let lanes = || self.lanes.iter().enumerate();
        let arrivals = lanes().flat_map(|(n, lane)| lane.flying.iter().map(move |f| (f.0, Kind::Arrive, n)));
        let attempts = self.attempts.iter().map(|t| (t.0, Kind::Try, t.1));
        let shows = self.shows.iter().map(|s| (s.0, Kind::Show, s.1));
        let looks = (0..self.lanes.len()).flat_map(|n| self.watchdog_ps(n).map(|at| (at, Kind::Look, n)));
        let nports = self.nports.iter().enumerate();
        let empties = nports.flat_map(|(n, nport)| nport.holds_until.iter().map(move |&at| (at, Kind::Empty, n)));
        arrivals.chain(attempts).chain(shows).chain(looks).chain(empties)
    }

    pub fn frames_in_flight(&self) -> usize {
        let flying = self.lanes.iter().map(|lane| lane.flying.len());
        flying.chain(self.switches.iter().map(Switch::frames)).sum::<usize>() + self.on_ethernet
    }

    /// Returns the time at which a frame whose header has arrived enters the switch: now, or when
    /// the fastest line through which it may leave could send it without a pause.
    fn enters_at(&self, number: usize, tail: u64, frame: &Frame) -> u64 {
        let lane = &self.lanes[number];
        let End::Switch(switch, port) = lane.to else { return self.now };
        let machine = &self.switches[switch];
        if !machine.cut_through || lane.bundle.is_some() {
            return self.now;
        }
        let bytes = u64::from(frame.len).next_multiple_of(4) + OVERHEAD;
        let outputs = machine.possible_outputs(port, frame).into_iter();
        let lines = outputs.filter_map(|output| self.lane_from(End::Switch(switch, output)));
        let enough = lines.map(|line| (tail + machine.latency).saturating_sub(self.lanes[line].time(bytes))).max();
        enough.map_or(self.now, |enough| enough.max(self.now))
    }

    fn arrive(&mut self, number: usize, tail: u64, frame: Frame) {
        self.hops += 1;
        match self.lanes[number].to {
            End::NPort(_) if frame.bad => {
                self.lose(Place::Receiver(number), "crc_error_at_destination");
                self.credit_back(number, self.now, frame.channel);
            }
            End::NPort(nport) => {
                self.delivered.push((self.now, Goal::NPort(nport), frame));
                match self.nports[nport].empties_after {
                    0 => self.credit_back(number, self.now, frame.channel),
                    time => self.nports[nport].holds_until.push(self.now + time),
                }
            }
            End::Switch(switch, port) => {
                let cut_through = self.switches[switch].cut_through;
                let route = if frame.bad && !cut_through {
                    Err("crc_error")
                } else {
                    let (lanes, now) = (&self.lanes, self.now);
                    let line = |port: usize| {
                        let lane = lanes.iter().find(|lane| lane.from == End::Switch(switch, port)).unwrap();
                        (lane.up.then_some(lane.free_at.max(now)), lane.bytes)
                    };
                    self.switches[switch].route(port, &frame, line, &mut self.occurred)
                };
                match route {
                    Ok(Some(output)) => {
                        let mut frame = frame;
                        let output = self.choose_door(switch, port, output, &mut frame);
                        self.switches[switch].take(self.now, tail, port, output, frame);
                        match self.switches[switch].queueing {
                            Queueing::Any => self.try_output(switch, output),
                            Queueing::Fifo | Queueing::Voq => self.enter(switch, port, output),
                        }
                        return;
                    }
                    Ok(None) if frame.bad => self.lose(Place::Receiver(number), "crc_error_at_destination"),
                    Ok(None) => self.delivered.push((self.now, Goal::Switch(switch, port), frame)),
                    Err(why) => self.lose(Place::Receiver(number), why),
                }
                self.credit_back(number, self.now.max(tail), frame.channel);
            }
        }
    }

    /// Sends one frame if one is eligible, the line is free and a credit is available.
    fn try_lane(&mut self, number: usize) {
        let now = self.now;
        if !self.lanes[number].up {
            return;
        }
        if let End::Switch(switch, port) = self.lanes[number].from
            && self.switches[switch].queueing != Queueing::Any
        {
            let output = self.output_of(switch, port);
            return self.serve_line(number, switch, output);
        }
        self.collect_credits(number);
        if !self.has_frame(number) || !self.may_send(number) {
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
                let Some((turn, input)) = self.switches[switch].choose(output) else { return };
                let leaving = self.switches[switch].leave(turn, input, output);
                let channel = leaving.frame.channel;
                let end = self.put(number, leaving.tail, leaving.frame);
                if input != self.switches[switch].processor() {
                    let upstream = self.lane_to(End::Switch(switch, input));
                    self.credit_back(upstream, end, channel);
                }
            }
        }
        if self.has_frame(number) {
            let at = self.lanes[number].free_at;
            self.schedule_try(at, number);
        }
    }

    /// Adds the R_RDYs that have arrived to the credits of a lane.
    fn collect_credits(&mut self, number: usize) {
        let now = self.now;
        let lane = &mut self.lanes[number];
        lane.credits += lane.returns.iter().filter(|&&at| at <= now).count();
        lane.returns.retain(|&at| at > now);
        if lane.credits > 0 {
            lane.credit_wait_since = None;
        }
    }

    /// Returns whether the line is free and has a credit for a frame that wants to leave. If not,
    /// plans the next attempt.
    fn may_send(&mut self, number: usize) -> bool {
        let now = self.now;
        let lane = &mut self.lanes[number];
        if lane.free_at > now {
            let at = lane.free_at;
            self.schedule_try(at, number);
            return false;
        }
        if lane.credits == 0 {
            lane.credit_wait_since.get_or_insert(now);
            if let Some(&at) = lane.returns.iter().min() {
                self.schedule_try(at, number);
            }
            return false;
        }
        true
    }

    /// Returns whether a frame is queued for the lane, eligible or not.
    fn has_frame(&self, number: usize) -> bool {
        match self.lanes[number].from {
            End::NPort(nport) => !self.nports[nport].waiting.is_empty(),
            End::Switch(switch, port) => self.switches[switch].waits(self.output_of(switch, port)),
        }
    }

    fn try_output(&mut self, switch: usize, output: usize) {
        if self.switches[switch].queueing != Queueing::Any {
            return self.serve(switch, output);
        }
        for member in self.switches[switch].together[output].clone() {
            if self.switches[switch].waits(output)
                && let Some(lane) = self.lane_from(End::Switch(switch, member))
            {
                self.try_lane(lane);
            }
        }
    }

    /// Retries all lanes of a switch after frames were removed out of order.
    fn try_all(&mut self, switch: usize) {
        for output in 0..self.switches[switch].seats.len() {
            if self.switches[switch].waits(output) {
                self.try_output(switch, output);
            }
        }
    }

    fn put(&mut self, number: usize, tail: u64, mut frame: Frame) -> u64 {
        let now = self.now;
        let bytes = u64::from(frame.len).next_multiple_of(4) + OVERHEAD;
        let lane = &mut self.lanes[number];
        // The last bit must have arrived by the time it is sent.
        let start = now.max(tail.saturating_sub(lane.time(bytes)));
        if start != lane.free_at {
            (lane.run_began, lane.run_bytes) = (start, 0);
        }
        let end = lane.run_began + lane.time(lane.run_bytes + bytes);
        lane.run_bytes += bytes + 24;
        lane.bytes += bytes;
        lane.free_at = lane.run_began + lane.time(lane.run_bytes);
        match &mut lane.channels {
            Some(channels) => channels.list.get_mut(&frame.channel).unwrap().credits -= 1,
            None => lane.credits -= 1,
        }
        if lane.over_ethernet {
            self.hand_over(number, start, frame);
            return end;
        }
        let arrived = end + lane.propagation;
        let (mut at, tail) = match lane.to {
            End::NPort(_) => (arrived, arrived),
            End::Switch(switch, _) => {
                let switch = &self.switches[switch];
                // A frame of a slower trunk comes in when the fastest line could send it without a
                // pause.
                let header = start + lane.time(28) + lane.propagation;
                let could_leave = arrived - lane.time(bytes).min(bytes * switch.fastest.0 / switch.fastest.1);
                let first = match (switch.cut_through, lane.bundle) {
                    (false, _) => arrived,
                    (true, None) => header,
                    (true, Some(_)) => header.max(could_leave),
                };
                (first + switch.latency, arrived)
            }
        };
        if let Some(bundle) = lane.bundle {
            at = at.max(self.bundle_last[bundle] + 1);
            self.bundle_last[bundle] = at;
        }
        if self.loses(number) {
            self.lose(Place::Line(number), "frame_loss");
            if self.lanes[number].state_changes > 0 {
                self.lanes[number].count_lost_frame(frame.channel);
            } else {
                self.credit_back(number, arrived, frame.channel);
            }
            self.count_frame(number, arrived);
            return end;
        }
        frame.bad |= self.damages(number);
        self.count_frame(number, arrived);
        self.lanes[number].flying.push((at, tail, frame));
        end
    }

    /// Returns the credit of a receive buffer that becomes free at `at`.
    fn credit_back(&mut self, number: usize, at: u64, channel: u8) {
        if self.lanes[number].over_ethernet {
            return self.seam.push(Seam::Freed { lane: number });
        }
        if !self.lanes[number].up {
            return;
        }
        let Some(leaves) = self.r_rdy_leaves(number, at, channel) else { return };
        let back = &self.lanes[number ^ 1];
        let at = leaves + back.time(4) + back.propagation;
        if let Some(channels) = &mut self.lanes[number].channels {
            let channel = channels.list.get_mut(&channel).unwrap();
            channel.returns.push(at);
            if channel.waits_since.is_some() {
                let first = *channel.returns.iter().min().unwrap();
                self.schedule_try(first.max(self.now), number);
            }
            return;
        }
        self.lanes[number].returns.push(at);
        if self.lanes[number].credit_wait_since.is_some() {
            let first = *self.lanes[number].returns.iter().min().unwrap();
            self.schedule_try(first.max(self.now), number);
        }
    }

    fn schedule_try(&mut self, at: u64, lane: usize) {
        if !self.attempts.contains(&(at, lane)) {
            self.attempts.push((at, lane));
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
