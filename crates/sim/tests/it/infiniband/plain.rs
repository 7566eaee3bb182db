//! A plain engine of InfiniBand: no event queue, no masks, no lists. At each instant it looks at
//! every line. It shares no code with the plane but the plan, the packet, the subnet manager and
//! the random numbers; credit and arbitration are written anew.

mod build;

use sanloom_scsi::random::SplitMix64;
use sanloom_sim::net::infiniband::{InfinibandPlan, Packet, Station};
use sanloom_transport::infiniband::arbitration::SlToVl;
use sanloom_transport::infiniband::lids::Lids;
use std::collections::BTreeMap;

const NEVER: u64 = u64::MAX;
/// Lane of management.
const MANAGEMENT: u8 = 15;

#[derive(Clone, Copy)]
struct Flying {
    acts_ps: u64,
    /// The last byte has crossed the cable.
    tail_ps: u64,
    lane: u8,
    packet: Packet,
    is_bad: bool,
    is_counted: bool,
}

/// A flow-control packet on a line.
#[derive(Clone, Copy)]
struct Flow {
    at_ps: u64,
    lane: u8,
    fctbs: u32,
    fccl: u32,
    /// Only to know whether the receiver acts on its own.
    shows_loss: bool,
}

/// A packet inside a node, in the order of arrival.
#[derive(Clone, Copy)]
struct Waiting {
    packet: Packet,
    is_bad: bool,
    lane: u8,
    entry_lane: u8,
    input: u8,
    ready_ps: u64,
}

#[derive(Clone, Copy, Default)]
struct PlainLane {
    /// Totals of the sender, all modulo 4,096.
    sent: u32,
    limit: u32,
    /// Total and free blocks of the receiver.
    received: u32,
    free: u32,
    has_lost: bool,
    since_ps: u64,
    drops: u32,
    stalled_ps: u64,
    last_input: usize,
}

/// A table of arbitration: the entry in turn and the units that it may still send.
struct Table {
    entries: Vec<(u8, u32)>,
    turn: usize,
    left: u32,
}

pub struct PlainLine {
    from: Station,
    to: Station,
    ps_per_byte: u64,
    cable_ps: u64,
    latency_ps: u64,
    early: bool,
    data_lanes: u8,
    life_ps: u64,
    refresh_every_ps: u64,
    up: bool,
    free_ps: u64,
    lanes: [PlainLane; 16],
    waiting: Vec<Waiting>,
    flying: Vec<Flying>,
    flows: Vec<Flow>,
    due: Vec<u8>,
    blocked: Vec<u8>,
    leaving: Option<(usize, u8, u32)>,
    high: Table,
    low: Table,
    limit: u32,
    high_units: u32,
    refresh_ps: u64,
    pub chances: [u32; 3],
    dice: SplitMix64,
    pub packets: u64,
    pub bytes: u64,
    pub flow_packets: u64,
    pub stalls: u64,
}

struct PlainSwitch {
    levels: Vec<SlToVl>,
    ports: usize,
    outputs: BTreeMap<u16, u8>,
}

pub struct Engine {
    pub now: u64,
    plan: InfinibandPlan,
    pub lines: Vec<PlainLine>,
    switches: Vec<PlainSwitch>,
    lids: Lids,
    holds: Vec<bool>,
    held: Vec<[u32; 16]>,
    sweep_ps: u64,
    pub delivered: Vec<(u64, u16, u32)>,
    pub lost: BTreeMap<(u32, &'static str), u64>,
}

fn blocks(packet: &Packet) -> u32 {
    u32::from(packet.bytes).div_ceil(64)
}

impl Table {
    fn new(entries: &[sanloom_transport::infiniband::arbitration::Entry]) -> Table {
        let entries: Vec<(u8, u32)> = entries.iter().map(|entry| (entry.lane, u32::from(entry.weight))).collect();
        Table { left: entries.first().map_or(0, |entry| entry.1), entries, turn: 0 }
    }

    fn next(&mut self, ready: &[u8]) -> Option<u8> {
        for _ in 0..=self.entries.len() {
            let &(lane, _) = self.entries.get(self.turn)?;
            if self.left > 0 && ready.contains(&lane) {
                return Some(lane);
            }
            self.turn = (self.turn + 1) % self.entries.len();
            self.left = self.entries[self.turn].1;
        }
        None
    }
}

impl PlainLine {
    fn of(&self, lane: u8) -> Vec<Waiting> {
        self.waiting.iter().filter(|waiting| waiting.lane == lane).copied().collect()
    }

    /// Returns the first packet of each input, in turn.
    fn heads(&self, lane: u8) -> Vec<Waiting> {
        let mut heads: Vec<Waiting> = Vec::new();
        for waiting in self.of(lane) {
            if heads.iter().all(|head| head.input != waiting.input) {
                heads.push(waiting);
            }
        }
        let last = self.lanes[usize::from(lane)].last_input;
        heads.sort_by_key(|head| (usize::from(head.input) + 255 - last) % 256);
        heads
    }

    fn take(&mut self, lane: u8, input: u8) -> Waiting {
        let is_it = |waiting: &Waiting| waiting.lane == lane && waiting.input == input;
        let at = self.waiting.iter().position(is_it).expect("a packet of the input");
        self.lanes[usize::from(lane)].last_input = input.into();
        self.waiting.remove(at)
    }

    /// Returns the blocks that may be sent.
    pub fn available(&self, lane: u8) -> u32 {
        let state = &self.lanes[usize::from(lane)];
        let left = (state.limit + 4_096 - state.sent) % 4_096;
        if left > 2_048 { 0 } else { left }
    }

    pub fn queued(&self, lane: u8) -> usize {
        self.of(lane).len()
    }

    fn arbitrate(&mut self, ready: &[u8]) -> Option<(u8, bool)> {
        if ready.is_empty() {
            return None;
        }
        if ready.contains(&MANAGEMENT) {
            return Some((MANAGEMENT, false));
        }
        let low_waits = self.low.entries.iter().any(|entry| entry.1 > 0 && ready.contains(&entry.0));
        let may_high = match self.limit {
            255 => true,
            0 => self.high_units == 0,
            limit => self.high_units < limit * 64,
        };
        let high = if may_high || !low_waits { self.high.next(ready) } else { None };
        match high {
            Some(lane) => Some((lane, true)),
            None => self.low.next(ready).map(|lane| (lane, false)),
        }
    }
}

impl Engine {
    /// Returns the time of the next instant at which something may happen.
    pub fn next_ps(&self) -> u64 {
        let mut next = NEVER;
        let mut at = |ps: u64| {
            if ps > self.now {
                next = next.min(ps);
            }
        };
        at(self.sweep_ps);
        for line in &self.lines {
            line.flying.iter().for_each(|flying| {
                at(flying.acts_ps);
                at(flying.tail_ps);
            });
            line.flows.iter().for_each(|flow| at(flow.at_ps));
            line.waiting.iter().for_each(|waiting| at(waiting.ready_ps));
            at(line.free_ps);
            at(line.refresh_ps);
            for lane in 0..line.data_lanes {
                if line.life_ps != NEVER && line.queued(lane) > 0 {
                    at(line.lanes[usize::from(lane)].since_ps + line.life_ps);
                }
            }
        }
        next
    }

    /// Goes to the instant `now` and does all that happens then.
    pub fn go(&mut self, now: u64) {
        self.now = now;
        self.count_received();
        let mut woken = Vec::new();
        for number in 0..self.lines.len() {
            while let Some(flow) = self.lines[number].flows.first().copied().filter(|flow| flow.at_ps == now) {
                self.lines[number].flows.remove(0);
                let lane = usize::from(flow.lane);
                let sender = &mut self.lines[number ^ 1];
                sender.lanes[lane].limit = flow.fccl;
                if sender.blocked.contains(&flow.lane) {
                    woken.push(number ^ 1);
                }
                if flow.shows_loss {
                    self.lines[number].lanes[lane].received = flow.fctbs;
                    self.lines[number ^ 1].due.push(flow.lane);
                    woken.push(number ^ 1);
                }
            }
        }
        for number in (0..self.lines.len()).filter(|number| woken.contains(&(number ^ 1))) {
            self.try_send(number ^ 1);
        }
        for number in 0..self.lines.len() {
            let line = &mut self.lines[number];
            if line.flying.first().is_some_and(|flying| flying.acts_ps == now) {
                let flying = line.flying.remove(0);
                self.arrive(number, flying);
            }
        }
        (0..self.lines.len()).for_each(|number| self.try_send(number));
        (0..self.lines.len()).for_each(|number| self.expire(number));
        for number in 0..self.lines.len() {
            if self.lines[number].refresh_ps == now {
                self.lines[number].refresh_ps = NEVER;
                self.refresh(number);
            }
        }
        if self.sweep_ps == now {
            self.sweep_ps = NEVER;
            self.sweep();
        }
    }

    /// Counts the packets whose last byte has arrived, before a total of the sender arrives.
    fn count_received(&mut self) {
        for line in &mut self.lines {
            for at in 0..line.flying.len() {
                let flying = line.flying[at];
                if flying.tail_ps <= self.now && !flying.is_counted {
                    line.flying[at].is_counted = true;
                    line.store(&flying);
                }
            }
        }
    }

    fn lose(&mut self, line: usize, why: &'static str) {
        *self.lost.entry((line as u32, why)).or_default() += 1;
    }

    fn line_of(&self, station: Station) -> usize {
        self.lines.iter().position(|line| line.from == station).expect("a line at each port")
    }

    pub fn send(&mut self, interface: u16, packet: Packet) {
        let number = self.line_of(Station::Interface(interface));
        if !self.lines[number].up {
            return self.lose(number, "link down");
        }
        let lane = if packet.is_management() { 15 } else { self.plan.levels.0[usize::from(packet.level())] };
        if !packet.is_management() && lane >= self.lines[number].data_lanes {
            return self.lose(number, "no lane");
        }
        let waiting = Waiting { packet, is_bad: false, lane, entry_lane: 0, input: 0, ready_ps: self.now };
        self.enqueue(number, waiting);
    }

    fn arrive(&mut self, number: usize, flying: Flying) {
        let Flying { lane, packet, is_bad, .. } = flying;
        match self.lines[number].to {
            Station::Interface(interface) => {
                if lane != MANAGEMENT {
                    if self.holds[usize::from(interface)] {
                        self.held[usize::from(interface)][usize::from(lane)] += blocks(&packet);
                    } else {
                        self.release(number, lane, blocks(&packet));
                    }
                }
                if is_bad {
                    self.lose(number, "bad CRC");
                } else {
                    self.delivered.push((self.now, interface, packet.position));
                }
            }
            Station::Switch { switch, port } => {
                if lane == MANAGEMENT {
                    let state = &mut self.lines[number].lanes[15];
                    if state.free < blocks(&packet) {
                        return self.lose(number, "management full");
                    }
                    state.free -= blocks(&packet);
                } else if !flying.is_counted {
                    // Cut-through: the rest of the packet comes in time.
                    self.lines[number].store(&flying);
                }
                if let Err(why) = self.forward(number, (switch, port), flying) {
                    self.release(number, lane, blocks(&packet));
                    self.lose(number, why);
                }
            }
        }
    }

    fn forward(&mut self, number: usize, (switch, port): (u16, u8), flying: Flying) -> Result<(), &'static str> {
        let Flying { packet, lane: entry_lane, is_bad, .. } = flying;
        let tail_ps = flying.tail_ps + self.lines[number].latency_ps;
        if is_bad && tail_ps <= self.now {
            return Err("bad CRC");
        }
        let state = &self.switches[usize::from(switch)];
        let &output = state.outputs.get(&packet.to).ok_or("no path")?;
        let pair = if state.levels.len() == 1 { 0 } else { usize::from(port) * state.ports + usize::from(output) };
        let mut lane = state.levels[pair].0[usize::from(packet.level())];
        let out = self.line_of(Station::Switch { switch, port: output });
        let line = &self.lines[out];
        if !line.up {
            return Err("link down");
        }
        if packet.is_management() {
            lane = MANAGEMENT;
        } else if lane >= line.data_lanes {
            return Err("no lane");
        }
        if line.lanes[usize::from(lane)].stalled_ps > self.now {
            return Err("stalled");
        }
        let last_start_ps = tail_ps.saturating_sub((u64::from(packet.bytes) + 2) * line.ps_per_byte);
        let ready_ps = if tail_ps > self.now { last_start_ps.max(self.now) } else { self.now };
        self.enqueue(out, Waiting { packet, is_bad, lane, entry_lane, input: port, ready_ps });
        Ok(())
    }

    fn enqueue(&mut self, number: usize, waiting: Waiting) {
        let now = self.now;
        let line = &mut self.lines[number];
        if line.queued(waiting.lane) == 0 {
            line.lanes[usize::from(waiting.lane)].since_ps = now;
        }
        line.waiting.push(waiting);
        self.try_send(number);
    }

    fn release(&mut self, number: usize, lane: u8, blocks: u32) {
        self.lines[number].lanes[usize::from(lane)].free += blocks;
        if lane != MANAGEMENT && self.lines[number].up {
            self.lines[number ^ 1].due.push(lane);
            self.try_send(number ^ 1);
        }
    }

    fn refresh(&mut self, number: usize) {
        if self.lines[number].up {
            let lanes = 0..self.lines[number].data_lanes;
            self.lines[number].due.extend(lanes);
            self.try_send(number);
        }
    }

    fn try_send(&mut self, number: usize) {
        let now = self.now;
        let line = &mut self.lines[number];
        if !line.up || line.free_ps > now {
            return;
        }
        if let Some((from, lane, blocks)) = line.leaving.take() {
            self.release(from, lane, blocks);
            if self.lines[number].free_ps > now {
                return;
            }
        }
        let mut due = std::mem::take(&mut self.lines[number].due);
        due.sort_unstable();
        due.dedup();
        due.into_iter().for_each(|lane| self.send_flow(number, lane));
        let line = &mut self.lines[number];
        let mut ready = Vec::new();
        let mut heads = BTreeMap::new();
        line.blocked.clear();
        for lane in 0..16 {
            let Some(head) = line.heads(lane).into_iter().find(|head| head.ready_ps <= now) else { continue };
            if lane == MANAGEMENT || line.available(lane) >= blocks(&head.packet) {
                ready.push(lane);
                heads.insert(lane, head.input);
            } else {
                line.blocked.push(lane);
            }
        }
        let Some((lane, is_high)) = line.arbitrate(&ready) else { return };
        let waiting = line.take(lane, heads[&lane]);
        let units = blocks(&waiting.packet);
        if lane != MANAGEMENT {
            let table = if is_high { &mut line.high } else { &mut line.low };
            table.left = table.left.saturating_sub(units);
            line.high_units = if is_high { line.high_units + u32::from(waiting.packet.bytes).div_ceil(64) } else { 0 };
            line.lanes[usize::from(lane)].sent = (line.lanes[usize::from(lane)].sent + units) % 4_096;
        }
        line.lanes[usize::from(lane)].since_ps = now;
        line.lanes[usize::from(lane)].drops = 0;
        let start_ps = line.free_ps.max(now);
        let wire_bytes = u64::from(waiting.packet.bytes) + 2;
        line.free_ps = start_ps + wire_bytes * line.ps_per_byte;
        let tail_ps = line.free_ps + line.cable_ps;
        let mut acts_ps = tail_ps + line.latency_ps;
        if line.early && wire_bytes > 9 {
            acts_ps = start_ps + 9 * line.ps_per_byte + line.cable_ps + line.latency_ps;
        }
        line.packets += 1;
        line.bytes += u64::from(waiting.packet.bytes);
        let mut is_bad = waiting.is_bad;
        let mut is_lost = false;
        if line.chances[0] | line.chances[1] != 0 {
            let dice = [0, 1].map(|_| (line.dice.bits() >> 32) as u32);
            is_lost = dice[0] < line.chances[0];
            is_bad |= dice[1] < line.chances[1];
        }
        let refresh_ps = now + line.refresh_every_ps;
        let from = line.from;
        if is_lost {
            if lane != MANAGEMENT {
                line.lanes[usize::from(lane)].has_lost = true;
                line.refresh_ps = line.refresh_ps.min(refresh_ps);
            }
            self.lose(number, "lost");
        } else {
            let packet = waiting.packet;
            line.flying.push(Flying { acts_ps, tail_ps, lane, packet, is_bad, is_counted: false });
        }
        if let Station::Switch { switch, .. } = from {
            let input = self.line_of(Station::Switch { switch, port: waiting.input }) ^ 1;
            self.lines[number].leaving = Some((input, waiting.entry_lane, units));
        }
    }

    fn send_flow(&mut self, number: usize, lane: u8) {
        let receiver = self.lines[number ^ 1].lanes[usize::from(lane)];
        let now = self.now;
        let line = &mut self.lines[number];
        line.free_ps = line.free_ps.max(now) + 8 * line.ps_per_byte;
        line.flow_packets += 1;
        if line.chances[2] != 0 && ((line.dice.bits() >> 32) as u32) < line.chances[2] {
            line.refresh_ps = line.refresh_ps.min(now + line.refresh_every_ps);
            return;
        }
        let state = &mut line.lanes[usize::from(lane)];
        let flow = Flow {
            at_ps: line.free_ps + line.cable_ps,
            lane,
            fctbs: state.sent,
            fccl: (receiver.received + receiver.free) % 4_096,
            shows_loss: std::mem::take(&mut state.has_lost),
        };
        line.flows.push(flow);
    }

    fn expire(&mut self, number: usize) {
        let now = self.now;
        let mut dropped = false;
        for lane in 0..self.lines[number].data_lanes {
            let line = &mut self.lines[number];
            let heads = line.heads(lane);
            let Some(first) = heads.first() else { continue };
            let life_ps = line.life_ps;
            let state = &mut line.lanes[usize::from(lane)];
            if life_ps == NEVER || state.since_ps + life_ps > now {
                continue;
            }
            dropped = true;
            state.since_ps = now;
            state.drops += 1;
            let stalls = state.drops == 7;
            if stalls {
                state.drops = 0;
                state.stalled_ps = now + 8 * life_ps;
                line.stalls += 1;
            }
            let input = first.input;
            self.discard(number, lane, input, "lifetime");
            while stalls && let Some(input) = self.lines[number].heads(lane).first().map(|head| head.input) {
                self.discard(number, lane, input, "stalled");
            }
        }
        if dropped {
            self.try_send(number);
        }
    }

    fn discard(&mut self, number: usize, lane: u8, input: u8, why: &'static str) {
        let waiting = self.lines[number].take(lane, input);
        self.lose(number, why);
        if let Station::Switch { switch, .. } = self.lines[number].from {
            let input = self.line_of(Station::Switch { switch, port: waiting.input }) ^ 1;
            self.release(input, waiting.entry_lane, blocks(&waiting.packet));
        }
    }

    pub fn set_link(&mut self, link: usize, up: bool) {
        let both = [2 * link, 2 * link + 1];
        if self.lines[both[0]].up == up {
            return;
        }
        both.iter().for_each(|&number| self.lines[number].up = up);
        if up {
            for number in both {
                for lane in &mut self.lines[number].lanes {
                    (lane.sent, lane.limit, lane.received, lane.has_lost) = (0, 0, 0, false);
                }
            }
            both.iter().for_each(|&number| self.refresh(number));
        } else {
            for number in both {
                let line = &mut self.lines[number];
                line.flows.clear();
                line.due.clear();
                line.blocked.clear();
                line.refresh_ps = NEVER;
                let flying = std::mem::take(&mut line.flying);
                for flying in &flying {
                    if flying.is_counted && flying.lane != MANAGEMENT {
                        // The buffer had room for it, and is free again.
                        line.lanes[usize::from(flying.lane)].free += blocks(&flying.packet);
                    }
                }
                let leaving = line.leaving.take();
                flying.iter().for_each(|_| self.lose(number, "link down"));
                if let Some((from, lane, blocks)) = leaving {
                    self.release(from, lane, blocks);
                }
                for lane in 0..16 {
                    while let Some(input) = self.lines[number].heads(lane).first().map(|head| head.input) {
                        self.discard(number, lane, input, "link down");
                    }
                }
            }
        }
        self.sweep_ps = self.sweep_ps.min(self.now + self.plan.sweep_ps);
    }
}

impl PlainLine {
    /// Stores a packet of a data lane.
    fn store(&mut self, flying: &Flying) {
        if flying.lane != MANAGEMENT {
            let state = &mut self.lanes[usize::from(flying.lane)];
            state.received = (state.received + blocks(&flying.packet)) % 4_096;
            state.free = state.free.checked_sub(blocks(&flying.packet)).expect("credit for the packet");
        }
    }
}
