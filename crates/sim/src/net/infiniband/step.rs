//! Events of the plane: arrivals, credit, attempts to send, lifetimes.

use super::line::{FLOW_BYTES, FlowUpdate, Leaving, OnLine, STALL_DROPS, STALL_LIVES, Station};
use super::packet::{Packet, has_credit};
use super::queues::Waiting;
use super::{InfinibandPlane, ObservedKind, PacketLoss};
use crate::net::NetEvent;
use crate::net::events::Events;
use crate::net::queue::NEVER;
use sanloom_scsi::random::SplitMix64;
use sanloom_transport::infiniband::arbitration::MANAGEMENT;
use sanloom_transport::infiniband::credit::CreditUpdate;

/// All data lanes.
const DATA: u16 = (1 << MANAGEMENT) - 1;

impl InfinibandPlane {
    /// Appends a packet to the queue of an interface.
    pub(super) fn send(&mut self, events: &mut Events, interface: u16, mut packet: Packet) {
        self.fate.sent += 1;
        let number = self.interface_tx[usize::from(interface)];
        let line = &self.lines[number as usize];
        if !line.up {
            return self.lose(events.now, number, packet, PacketLoss::LinkDown);
        }
        let lane = if packet.is_management() { Some(MANAGEMENT) } else { self.levels.lane(packet.level()) };
        match lane {
            Some(lane) if lane < line.data_lanes || lane == MANAGEMENT => {
                packet.set_lane(lane);
                let waiting = Waiting { packet, ready_ps: events.now, entry_lane: 0, input: 0 };
                self.enqueue(events, number, waiting);
            }
            _ => self.lose(events.now, number, packet, PacketLoss::NoLane),
        }
    }

    /// The first packet on a line has arrived.
    pub(in crate::net) fn arrive(&mut self, events: &mut Events, number: u32) -> Option<NetEvent> {
        let line = &mut self.lines[number as usize];
        let on_line = line.flight.pop_front()?;
        if let Some(next) = line.flight.front() {
            events.queue.schedule(events.sources.infiniband_arrival(number), next.at_ps);
        }
        self.fate.packet_hops += 1;
        let packet = on_line.packet;
        let (lane, blocks) = (packet.lane(), packet.blocks());
        match line.to {
            Station::Interface(interface) => {
                if has_credit(lane) {
                    self.fate.overruns += u64::from(!line.lanes[usize::from(lane)].receiver.store(blocks));
                    if self.holds[usize::from(interface)] {
                        self.held[usize::from(interface)][usize::from(lane)] += blocks;
                    } else {
                        self.release(events, number, lane, blocks);
                    }
                }
                if packet.is_corrupt() {
                    self.lose(events.now, number, packet, PacketLoss::Crc);
                    return None;
                }
                self.fate.delivered += 1;
                Some(NetEvent::Infiniband { interface, packet })
            }
            Station::Switch { switch, port } => {
                let stored = line.lanes[usize::from(lane)].receiver.store(blocks);
                if !stored && lane == MANAGEMENT {
                    self.lose(events.now, number, packet, PacketLoss::ManagementFull);
                    return None;
                }
                self.fate.overruns += u64::from(!stored);
                if let Err(loss) = self.forward(events, (switch, port), on_line) {
                    self.release(events, number, lane, blocks);
                    self.lose(events.now, number, packet, loss);
                }
                None
            }
        }
    }

    /// Moves a packet through a switch to the queue of a port.
    #[inline]
    fn forward(&mut self, events: &mut Events, (switch, input): (u16, u8), on_line: OnLine) -> Result<(), PacketLoss> {
        let OnLine { tail_ps, mut packet, .. } = on_line;
        let now = events.now;
        if packet.is_corrupt() && tail_ps <= now {
            return Err(PacketLoss::Crc);
        }
        let state = &self.switches[usize::from(switch)];
        let output = state.output(packet.to).ok_or(PacketLoss::NoPath)?;
        let number = state.tx[usize::from(output)];
        let line = &self.lines[number as usize];
        if !line.up {
            return Err(PacketLoss::LinkDown);
        }
        let entry_lane = packet.lane();
        let lane = if packet.is_management() {
            MANAGEMENT
        } else {
            let lane = state.levels(input, output).lane(packet.level()).filter(|&lane| lane < line.data_lanes);
            lane.ok_or(PacketLoss::NoLane)?
        };
        if line.lanes[usize::from(lane)].stalled_ps > now {
            return Err(PacketLoss::Stalled);
        }
        packet.set_lane(lane);
        // The last byte may not leave before it is there.
        let ready_ps =
            if tail_ps > now { tail_ps.saturating_sub(line.byte.time_of(packet.wire_bytes())).max(now) } else { now };
        self.enqueue(events, number, Waiting { packet, ready_ps, entry_lane, input });
        Ok(())
    }

    #[inline]
    fn enqueue(&mut self, events: &mut Events, number: u32, waiting: Waiting) {
        let line = &mut self.lines[number as usize];
        let (node, output) = line.queues;
        let lane = waiting.packet.lane();
        line.used |= 1 << lane;
        if self.nodes[node as usize].push(output, lane, waiting) {
            line.lanes[usize::from(lane)].since_ps = events.now;
        }
        if let Some(at_ps) = line.begin_life(events.now) {
            events.queue.schedule(events.sources.infiniband_expiry(number), at_ps);
        }
        self.try_send(events, number);
    }

    /// Frees blocks of the receiver of a line.
    pub(super) fn release(&mut self, events: &mut Events, number: u32, lane: u8, blocks: u16) {
        self.lines[number as usize].lanes[usize::from(lane)].receiver.release(blocks);
        if has_credit(lane) {
            self.announce(events, number, 1 << lane);
        }
    }

    /// Lets the receiver of a line send flow-control packets for `lanes`.
    pub(super) fn announce(&mut self, events: &mut Events, number: u32, lanes: u16) {
        let reverse = &mut self.lines[(number ^ 1) as usize];
        if reverse.up {
            reverse.due |= lanes;
            self.try_send(events, number ^ 1);
        }
    }

    /// Flow-control packets have arrived on a line, and somebody waits for one of them.
    pub(in crate::net) fn credit(&mut self, events: &mut Events, number: u32) {
        let arrived = self.apply(number, events.now);
        let sender = &self.lines[(number ^ 1) as usize];
        if arrived & sender.blocked != 0 || sender.due != 0 {
            self.try_send(events, number ^ 1);
        }
        self.await_credit(events, number);
    }

    /// Schedules the arrival of the next flow-control packet on a line that somebody waits for.
    fn await_credit(&mut self, events: &mut Events, number: u32) {
        let blocked = self.lines[(number ^ 1) as usize].blocked;
        let is_awaited = |update: &&FlowUpdate| update.lost > 0 || blocked & 1 << update.lane != 0;
        if let Some(update) = self.lines[number as usize].updates.iter().find(is_awaited) {
            events.queue.schedule_earlier(events.sources.infiniband_credit(number), update.at_ps);
        }
    }

    /// Applies the flow-control packets that have arrived on a line. Returns their lanes.
    #[inline]
    pub(super) fn apply(&mut self, number: u32, now: u64) -> u16 {
        let mut lanes = 0;
        while let Some(update) = self.lines[number as usize].updates.front().copied() {
            if update.at_ps > now {
                break;
            }
            self.lines[number as usize].updates.pop_front();
            lanes |= 1 << update.lane;
            let sender = &mut self.lines[(number ^ 1) as usize];
            sender.lanes[usize::from(update.lane)].sender.receive(update.update);
            if update.lost > 0 {
                // The total of the sender shows that packets are missing: their credit returns.
                sender.due |= 1 << update.lane;
                let receiver = &mut self.lines[number as usize].lanes[usize::from(update.lane)].receiver;
                receiver.lost(update.lost);
            }
        }
        lanes
    }

    /// The sender of a line tries to send.
    pub(in crate::net) fn wake(&mut self, events: &mut Events, number: u32) {
        self.lines[number as usize].wake_ps = NEVER;
        self.try_send(events, number);
    }

    /// Sends the flow-control packets that are due and the next packet of a line, if it is free.
    pub(super) fn try_send(&mut self, events: &mut Events, number: u32) {
        let now = events.now;
        let line = &mut self.lines[number as usize];
        if !line.up {
            return;
        }
        if line.busy.free_at_ps > now {
            if line.used | line.due != 0 || line.leaving.is_some() {
                let free_ps = line.busy.free_at_ps;
                self.wake_at(events, number, free_ps);
            }
            return;
        }
        if let Some(Leaving { from, lane, blocks }) = line.leaving.take() {
            self.release(events, from, lane, blocks);
            // The release has perhaps used the line.
            if self.lines[number as usize].busy.free_at_ps > now {
                return self.try_send(events, number);
            }
        }
        if !self.lines[(number ^ 1) as usize].updates.is_empty() {
            self.apply(number ^ 1, now);
        }
        let mut due = std::mem::take(&mut self.lines[number as usize].due);
        while due != 0 {
            self.send_flow(events, number, due.trailing_zeros() as u8);
            due &= due - 1;
        }
        self.send_next(events, number);
    }

    /// Sends the next packet of a line, behind the flow-control packets that begin at this time.
    fn send_next(&mut self, events: &mut Events, number: u32) {
        let now = events.now;
        let line = &mut self.lines[number as usize];
        let (node, output) = line.queues;
        let queues = &mut self.nodes[node as usize];
        let (mut ready, mut wait_ps, mut left) = (0u16, NEVER, line.used);
        let mut inputs = [0; 16];
        line.blocked = 0;
        while left != 0 {
            let lane = left.trailing_zeros() as u8;
            left &= left - 1;
            let (first, soonest_ps) = queues.choose(output, lane, now);
            wait_ps = wait_ps.min(soonest_ps);
            let Some(waiting) = first else { continue };
            let state = &line.lanes[usize::from(lane)];
            if !has_credit(lane) || state.sender.available() >= waiting.packet.blocks() {
                ready |= 1 << lane;
                inputs[usize::from(lane)] = waiting.input;
            } else {
                line.blocked |= 1 << lane;
            }
        }
        let lane = if ready == 0 { None } else { line.arbiter.next(ready) };
        // A lane without weight may be ready and sends nothing.
        let starves = lane.is_none() && line.blocked != 0;
        if starves != (line.starved_ps != NEVER) {
            line.set_starved(now, starves);
        }
        if starves {
            line.starved_lanes |= line.blocked;
        }
        if let Some(lane) = lane
            && let Some(waiting) = queues.pop(output, lane, Some(inputs[usize::from(lane)]))
        {
            let blocks = waiting.packet.blocks();
            if queues.packets(output, lane) == 0 {
                line.used &= !(1 << lane);
            }
            line.arbiter.sent(lane, waiting.packet.bytes.into());
            let state = &mut line.lanes[usize::from(lane)];
            state.since_ps = now;
            state.drops = 0;
            if has_credit(lane) {
                state.sender.send(blocks);
            }
            if let Station::Switch { switch, .. } = line.from {
                let from = self.switches[usize::from(switch)].tx[usize::from(waiting.input)] ^ 1;
                line.leaving = Some(Leaving { from, lane: waiting.entry_lane, blocks });
                let input = &mut self.lines[from as usize];
                let slot = input.onward_slot(output, waiting.entry_lane);
                if let Some(bytes) = input.onward.get_mut(slot).filter(|_| has_credit(waiting.entry_lane)) {
                    *bytes += u64::from(waiting.packet.bytes);
                }
            }
            self.put_on_line(events, number, waiting.packet);
            wait_ps = 0;
        }
        let line = &self.lines[number as usize];
        let goes_on = if wait_ps == 0 { line.used != 0 } else { wait_ps != NEVER };
        if line.leaving.is_some() || goes_on {
            let at_ps = wait_ps.max(line.busy.free_at_ps);
            self.wake_at(events, number, at_ps);
        }
        if self.lines[number as usize].blocked != 0 {
            self.await_credit(events, number ^ 1);
        }
    }

    fn send_flow(&mut self, events: &mut Events, number: u32, lane: u8) {
        let fccl = self.lines[(number ^ 1) as usize].lanes[usize::from(lane)].receiver.fccl();
        let is_awaited = self.lines[(number ^ 1) as usize].blocked & 1 << lane != 0;
        let line = &mut self.lines[number as usize];
        let start_ps = line.busy.free_at_ps.max(events.now);
        let end_ps = line.busy.occupy(&line.byte, start_ps, FLOW_BYTES, 0);
        line.count.flow += 1;
        let is_lost = line.chances[2] != 0 && happens(&mut self.dice[number as usize], line.chances[2]);
        let state = &mut line.lanes[usize::from(lane)];
        let update = CreditUpdate { fctbs: state.sender.fctbs(), fccl };
        self.record(number, start_ps, ObservedKind::Flow { lane, update, end_ps, is_lost });
        if is_lost {
            self.fate.flow_lost += 1;
            return self.refresh_later(events, number);
        }
        let line = &mut self.lines[number as usize];
        let lost = std::mem::take(&mut line.lanes[usize::from(lane)].lost);
        let at_ps = end_ps + line.cable_ps;
        line.updates.push_back(FlowUpdate { at_ps, lane, update, lost });
        if is_awaited || lost > 0 {
            events.queue.schedule_earlier(events.sources.infiniband_credit(number), at_ps);
        }
    }

    fn refresh_later(&mut self, events: &mut Events, number: u32) {
        let at_ps = events.now + self.lines[number as usize].refresh_ps;
        events.queue.schedule_earlier(events.sources.infiniband_refresh(number), at_ps);
    }

    /// Repeats the flow-control packets of all lanes of a line.
    pub(in crate::net) fn refresh(&mut self, events: &mut Events, number: u32) {
        let line = &mut self.lines[number as usize];
        if line.up {
            line.due |= DATA & ((1u32 << line.data_lanes) - 1) as u16;
            self.try_send(events, number);
        }
    }

    /// Schedules the next attempt of a line; [`NEVER`] cancels it.
    pub(super) fn wake_at(&mut self, events: &mut Events, number: u32, at_ps: u64) {
        let line = &mut self.lines[number as usize];
        if line.wake_ps != at_ps {
            line.wake_ps = at_ps;
            events.queue.schedule(events.sources.infiniband_wake(number), at_ps);
        }
    }

    fn put_on_line(&mut self, events: &mut Events, number: u32, packet: Packet) {
        let line = &mut self.lines[number as usize];
        let start_ps = line.busy.free_at_ps.max(events.now);
        let mut on_line = line.send(events.now, packet);
        let [loss, damage, _] = line.chances;
        let fails = loss | damage != 0;
        let dice = &mut self.dice[number as usize];
        let [is_lost, is_damaged] =
            if fails { [loss, damage].map(|chance| happens(dice, chance)) } else { [false, false] };
        if line.watched {
            let mut packet = packet;
            if is_damaged {
                packet.corrupt();
            }
            let lane = packet.lane();
            let credits = if has_credit(lane) { line.lanes[usize::from(lane)].sender.available() } else { 0 };
            let end_ps = on_line.tail_ps - line.cable_ps - line.latency_ps;
            self.record(number, start_ps, ObservedKind::Packet { packet, end_ps, credits });
        }
        let line = &mut self.lines[number as usize];
        if fails {
            if is_lost {
                if has_credit(packet.lane()) {
                    line.lanes[usize::from(packet.lane())].lost += packet.blocks();
                    self.refresh_later(events, number);
                }
                return self.lose(start_ps, number, packet, PacketLoss::PacketLoss);
            }
            if is_damaged {
                on_line.packet.corrupt();
            }
        }
        if line.flight.is_empty() {
            events.queue.schedule(events.sources.infiniband_arrival(number), on_line.at_ps);
        }
        line.flight.push_back(on_line);
    }

    /// The lifetime of a packet has perhaps ended.
    pub(in crate::net) fn expire(&mut self, events: &mut Events, number: u32) {
        let now = events.now;
        let line = &mut self.lines[number as usize];
        line.expiry_ps = NEVER;
        let life_ps = line.life_ps;
        let mut is_dropped = false;
        for lane in 0..line.data_lanes {
            let line = &self.lines[number as usize];
            if line.used & 1 << lane != 0 && line.lanes[usize::from(lane)].since_ps + life_ps <= now {
                self.drop_first(events, number, lane);
                is_dropped = true;
            }
        }
        let line = &mut self.lines[number as usize];
        let waits = (0..line.data_lanes).filter(|lane| line.used & 1 << lane != 0);
        if let Some(since_ps) = waits.map(|lane| line.lanes[usize::from(lane)].since_ps).min() {
            line.expiry_ps = since_ps + life_ps;
            events.queue.schedule(events.sources.infiniband_expiry(number), since_ps + life_ps);
        }
        if is_dropped {
            self.try_send(events, number);
        }
    }

    /// Drops the packet in turn of a lane, and all packets after seven in a row.
    #[cold]
    fn drop_first(&mut self, events: &mut Events, number: u32, lane: u8) {
        self.note_deadlock(events.now, number, lane);
        let line = &mut self.lines[number as usize];
        let state = &mut line.lanes[usize::from(lane)];
        state.since_ps = events.now;
        state.drops += 1;
        let stalls = state.drops >= STALL_DROPS;
        if stalls {
            (state.drops, state.stalled_ps) = (0, events.now + STALL_LIVES * line.life_ps);
            line.count.stalls += 1;
        }
        self.discard(events, number, lane, PacketLoss::Lifetime);
        while stalls && self.discard(events, number, lane, PacketLoss::Stalled) {}
    }

    /// Discards the packet in turn of a lane. Returns false if there is none.
    pub(super) fn discard(&mut self, events: &mut Events, number: u32, lane: u8, loss: PacketLoss) -> bool {
        let line = &mut self.lines[number as usize];
        let (node, output) = line.queues;
        let queues = &mut self.nodes[node as usize];
        let Some(waiting) = queues.pop(output, lane, None) else { return false };
        if queues.packets(output, lane) == 0 {
            line.used &= !(1 << lane);
        }
        let from = line.from;
        self.lose(events.now, number, waiting.packet, loss);
        if let Station::Switch { switch, .. } = from {
            let input = self.switches[usize::from(switch)].tx[usize::from(waiting.input)] ^ 1;
            self.release(events, input, waiting.entry_lane, waiting.packet.blocks());
        }
        true
    }
}

/// Returns whether an event with a chance in 2^-32 happens.
fn happens(dice: &mut SplitMix64, chance: u32) -> bool {
    (dice.bits() >> 32) < u64::from(chance)
}
