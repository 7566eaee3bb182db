//! Virtual channels of the plain engine.
//!
//! A port with channels has several doors, one for each channel, with seats of its own. The line
//! lets the frames between switches go first. The priorities share it by weight, and the channels
//! of a priority take turns. A frame goes on the channel of its priority and destination, except if
//! an earlier frame of its exchange is still at another door because a quarantine has begun or
//! ended.

use super::switch::{Buffered, Switch};
use super::{End, Engine, Frame, OVERHEAD};
use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};

/// First numbers of the channels of low, medium and high priority.
const FIRST: [u8; 3] = [8, 2, 10];
const WEIGHT: [u64; 3] = [10, 30, 60];

/// Class of a data channel: 0 low, 1 medium, 2 high.
pub fn class_of(channel: u8) -> usize {
    match channel {
        8 | 9 => 0,
        10..=14 => 2,
        _ => 1,
    }
}

/// A virtual channel of a lane.
#[derive(Default)]
pub struct Channel {
    pub buffers: usize,
    pub credits: usize,
    pub returns: Vec<u64>,
    pub waits_since: Option<u64>,
    pub withheld: usize,
}

/// The channels of a lane and the order in which they use it.
#[derive(Default)]
pub struct Channels {
    pub list: BTreeMap<u8, Channel>,
    clock: u64,
    ends: [u64; 3],
    last: [u8; 3],
}

impl Channels {
    pub fn new(buffers: &BTreeMap<u8, usize>) -> Channels {
        let channel = |&buffers: &usize| Channel { buffers, credits: buffers, ..Channel::default() };
        let list = buffers.iter().map(|(&number, buffers)| (number, channel(buffers))).collect();
        Channels { list, ..Channels::default() }
    }

    fn begins(&self, class: usize) -> u64 {
        self.ends[class].max(self.clock)
    }

    /// Returns the channel that uses the line next, among those that could.
    fn next(&self, could: &BTreeSet<u8>) -> Option<u8> {
        if could.contains(&0) {
            return Some(0);
        }
        let class =
            could.iter().map(|&channel| class_of(channel)).min_by_key(|&class| (self.begins(class), Reverse(class)))?;
        let of_class: Vec<u8> = could.iter().copied().filter(|&channel| class_of(channel) == class).collect();
        let after = of_class.iter().find(|&&channel| channel > self.last[class]);
        after.or(of_class.first()).copied()
    }

    fn used(&mut self, channel: u8, bytes: u64) {
        if channel > 0 {
            let class = class_of(channel);
            self.clock = self.begins(class);
            self.ends[class] = self.clock + bytes * WEIGHT[2] / WEIGHT[class];
            self.last[class] = channel;
        }
    }
}

/// Priorities of pairs of addresses, and quarantined addresses.
#[derive(Default)]
pub struct Priorities {
    /// True if a lane of the network has channels.
    pub matter: bool,
    pub pairs: BTreeMap<(u32, u32), usize>,
    pub quarantined: BTreeSet<u32>,
    /// Addresses that have ever been quarantined.
    pub changed: BTreeSet<u32>,
}

impl Switch {
    /// Adds a door for each channel of a port.
    pub fn add_doors(&mut self, port: usize, channels: impl Iterator<Item = u8>) {
        for channel in channels {
            self.doors.push((port, channel));
            self.seats.push(Vec::new());
            self.served_last.push(self.ports);
        }
    }

    /// Returns the port of an output or door.
    pub fn port_of(&self, output: usize) -> usize {
        output.checked_sub(self.ports).map_or(output, |door| self.doors[door].0)
    }

    /// Returns the doors of a port with their channels.
    pub fn doors_of(&self, port: usize) -> Vec<(u8, usize)> {
        let doors = self.doors.iter().enumerate().filter(|(_, door)| door.0 == port);
        doors.map(|(number, door)| (door.1, self.ports + number)).collect()
    }

    pub fn has_doors(&self, output: usize) -> bool {
        !self.doors_of(self.port_of(output)).is_empty()
    }

    /// Returns the door of a port for frames of a class to an address.
    fn door(&self, port: usize, class: usize, d_id: u32) -> usize {
        let of_class = |class: usize| -> Vec<usize> {
            let doors = self.doors_of(port).into_iter();
            doors.filter(|&(channel, _)| channel > 0 && class_of(channel) == class).map(|(_, door)| door).collect()
        };
        let doors = Some(of_class(class)).filter(|doors| !doors.is_empty()).unwrap_or_else(|| of_class(1));
        doors[((d_id >> 8) % 256 + d_id % 256) as usize % doors.len()]
    }

    /// Returns whether a frame of this exchange is at a door.
    fn has_earlier(&self, door: usize, frame: &Frame) -> bool {
        let exchange = |frame: &Frame| (frame.s_id, frame.d_id, frame.exchange);
        let is_same = |b: &Buffered| b.output == door && exchange(&b.frame) == exchange(frame);
        let crossed = self.seats[door].iter().filter_map(|seat| seat.crossed).map(|(b, _)| b);
        self.inputs.iter().chain(&self.granted).flatten().copied().chain(crossed).any(|b| is_same(&b))
    }
}

impl Engine {
    /// Chooses the door for a frame that leaves through `port`, and marks it with its priority.
    pub fn choose_door(&mut self, switch: usize, input: usize, port: usize, frame: &mut Frame) -> usize {
        let priorities = &self.priorities;
        if !priorities.matter {
            return port;
        }
        let machine = &self.switches[switch];
        let doors = machine.doors_of(port);
        let is_service = frame.d_id >= 0xff_fc00;
        if is_service && !machine.doors.is_empty() {
            return doors.first().map_or(port, |&(_, door)| door);
        }
        let from = self.lanes.iter().find(|lane| lane.to == End::Switch(switch, input)).map(|lane| lane.from);
        if matches!(from, Some(End::NPort(_))) {
            let class = priorities.pairs.get(&(frame.s_id, frame.d_id)).copied().unwrap_or(1);
            frame.channel = FIRST[class];
        }
        if doors.is_empty() {
            return port;
        }
        let quarantined = priorities.quarantined.contains(&frame.d_id);
        let own = machine.door(port, class_of(frame.channel), frame.d_id);
        let low = machine.door(port, 0, frame.d_id);
        let (wanted, other) = if quarantined { (low, own) } else { (own, low) };
        let follows = priorities.changed.contains(&frame.d_id) && machine.has_earlier(other, frame);
        if follows && other != wanted {
            *self.occurred.entry("follows its exchange").or_default() += 1;
        }
        if follows { other } else { wanted }
    }

    /// Sends what is in front of the lines of a port with channels, and grants the seats that
    /// become free, as long as something happens.
    pub fn serve_doors(&mut self, switch: usize, output: usize) {
        let port = self.switches[switch].port_of(output);
        let mut free: BTreeSet<usize> = Some(output).filter(|&output| output != port).into_iter().collect();
        loop {
            for member in self.switches[switch].together[port].clone() {
                if let Some(lane) = self.lane_from(End::Switch(switch, member)) {
                    free.extend(self.send_on_channel(lane, switch, port));
                }
            }
            let mut crosses = false;
            for door in std::mem::take(&mut free) {
                crosses |= self.grant(switch, door);
            }
            if !crosses {
                return;
            }
        }
    }

    /// Sends a frame if one may leave. Returns its door.
    pub fn send_on_channel(&mut self, number: usize, switch: usize, port: usize) -> Option<usize> {
        let now = self.now;
        if !self.lanes[number].up {
            return None;
        }
        self.collect_channels(number);
        let doors = self.switches[switch].doors_of(port);
        let ready = |engine: &Engine| -> BTreeMap<u8, usize> {
            doors.iter().copied().filter(|&(_, door)| engine.switches[switch].next_seat(door).is_some()).collect()
        };
        let mut sent = None;
        let mut starts = Vec::new();
        if self.lanes[number].free_at <= now {
            let mut waiting = ready(self);
            waiting.retain(|_, door| {
                let lane = &self.lanes[number];
                let seat = self.switches[switch].seat_to_start(*door, now, |bytes| lane.time(bytes));
                starts.extend(seat.err().flatten());
                seat.is_ok()
            });
            let channels = self.lanes[number].channels.as_mut().unwrap();
            let mut could = BTreeSet::new();
            for &channel in waiting.keys() {
                let state = channels.list.get_mut(&channel).unwrap();
                if state.credits > 0 {
                    could.insert(channel);
                } else {
                    state.waits_since.get_or_insert(now);
                }
            }
            let next = channels.next(&could);
            if let Some(channel) = next {
                let door = waiting[&channel];
                let lane = &self.lanes[number];
                let at = self.switches[switch].seat_to_start(door, now, |bytes| lane.time(bytes)).unwrap();
                let (buffered, ready_at) = self.switches[switch].seats[door].remove(at).crossed.unwrap();
                let bytes = u64::from(buffered.frame.len).next_multiple_of(4) + OVERHEAD + 24;
                let channels = self.lanes[number].channels.as_mut().unwrap();
                channels.used(channel, bytes);
                self.count(["low", "medium", "high"][class_of(channel)]);
                self.put(number, ready_at, Frame { channel, ..buffered.frame });
                sent = Some(door);
            }
        }
        let ready = ready(self);
        let channels = self.lanes[number].channels.as_ref().unwrap();
        let mut attempts: Vec<u64> = starts;
        for (channel, state) in &channels.list {
            match state.waits_since {
                Some(_) => attempts.extend(state.returns.iter().min()),
                None if ready.contains_key(channel) && self.lanes[number].free_at > now => {
                    attempts.push(self.lanes[number].free_at);
                }
                None => {}
            }
        }
        attempts.into_iter().for_each(|at| self.schedule_try(at, number));
        sent
    }

    /// Adds the credits that have arrived, and ends the waits for them.
    fn collect_channels(&mut self, number: usize) {
        let now = self.now;
        for channel in self.lanes[number].channels.as_mut().unwrap().list.values_mut() {
            channel.credits += channel.returns.iter().filter(|&&at| at <= now).count();
            channel.returns.retain(|&at| at > now);
            if channel.credits > 0 {
                channel.waits_since = None;
            }
        }
    }

    /// Starts the channels of a lane anew, with all buffers that no frame uses, now or at a time.
    pub(super) fn restart_channels(&mut self, number: usize, at: Option<u64>) {
        let lane = &self.lanes[number];
        let mut used: BTreeMap<u8, usize> = BTreeMap::new();
        if let End::Switch(switch, port) = lane.to {
            let machine = &self.switches[switch];
            for b in machine.inputs[port].iter().chain(&machine.granted[port]) {
                *used.entry(b.frame.channel).or_default() += 1;
            }
        }
        lane.flying.iter().for_each(|(_, _, frame)| *used.entry(frame.channel).or_default() += 1);
        let Some(channels) = &mut self.lanes[number].channels else { return };
        for (number, channel) in &mut channels.list {
            let free = channel.buffers - used.get(number).copied().unwrap_or(0);
            match at {
                None => channel.credits = free,
                Some(at) => channel.returns = vec![at; free],
            }
        }
    }
}
