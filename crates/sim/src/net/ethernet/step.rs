//! Events of the plane: arrivals, attempts to send, and refreshed pauses.

use super::egress::{Next, OWN, Queued};
use super::line::{LineErrors, OnLine, Station};
use super::packet::{PRIORITIES, Packet};
use super::{Ecn, EthernetPlane, Full, ObservedKind, PacketLoss, deadlock};
use crate::net::NetEvent;
use crate::net::events::Events;
use crate::net::fcoe::Handed;
use crate::net::queue::NEVER;
use sanloom_scsi::random::SplitMix64;

impl EthernetPlane {
    /// Appends a frame to the queue of its interface.
    pub(in crate::net) fn send(&mut self, events: &mut Events, packet: Packet) {
        self.send_at(events, packet, events.now);
    }

    /// Appends a frame to the queue of its interface, which may begin at `ready_ps`.
    pub(in crate::net) fn send_at(&mut self, events: &mut Events, packet: Packet, ready_ps: u64) {
        self.fate.sent += 1;
        let line = self.interface_tx[usize::from(packet.from)];
        if !self.lines[line as usize].up {
            return self.lose(events.now, line, packet, PacketLoss::LinkDown);
        }
        self.lines[line as usize].egress.push(Queued { packet, ready_ps, ingress: OWN });
        self.try_send(events, line);
    }

    /// Appends a frame that is for the other end of a line to the queue of its sender.
    pub(in crate::net) fn send_on_line(&mut self, events: &mut Events, line: u32, packet: Packet) {
        self.fate.sent += 1;
        if !self.lines[line as usize].up {
            return self.lose(events.now, line, packet, PacketLoss::LinkDown);
        }
        self.lines[line as usize].egress.push(Queued { packet, ready_ps: events.now, ingress: OWN });
        self.try_send(events, line);
    }

    /// The first frame on a line has arrived.
    pub(in crate::net) fn arrive(&mut self, events: &mut Events, number: u32) -> Option<NetEvent> {
        let line = &mut self.lines[number as usize];
        let on_line = line.flight.pop_front()?;
        if let Some(next) = line.flight.front() {
            events.queue.schedule(events.sources.ethernet_arrival(number), next.at_ps);
        }
        let packet = on_line.packet;
        if let Some((named, stop)) = packet.paused() {
            let named = if packet.pauses_link() == self.lines[number as usize ^ 1].pauses_link { named } else { 0 };
            self.pause(events, number ^ 1, named, stop);
            return None;
        }
        self.fate.packet_hops += 1;
        match line.to {
            Station::Interface(_) if packet.is_corrupt() => self.lose(events.now, number, packet, PacketLoss::Fcs),
            Station::Interface(interface) => {
                self.fate.delivered += 1;
                return Some(NetEvent::Packet { interface, packet });
            }
            Station::Switch { .. } if packet.is_lldp() && !packet.is_corrupt() => {
                self.fate.delivered += 1;
                return Some(NetEvent::Packet { interface: u16::MAX, packet });
            }
            Station::Switch { .. } if packet.is_lldp() => self.lose(events.now, number, packet, PacketLoss::Fcs),
            Station::Switch { switch, port } => {
                if let Err(loss) = self.forward(events, number, (switch, port), on_line) {
                    self.lose(events.now, number, packet, loss);
                }
            }
        }
        None
    }

    /// Applies a pause frame to the sender of a line.
    fn pause(&mut self, events: &mut Events, number: u32, named: u8, stop: u8) {
        let line = &mut self.lines[number as usize];
        let named = named & line.obeys;
        let (reaction_ps, longest_ps) = (line.reaction_ps, line.longest_pause_ps());
        for priority in (0..PRIORITIES).filter(|priority| named & 1 << priority != 0) {
            if stop & 1 << priority != 0 {
                line.pauses.stop(priority, events.now, reaction_ps, longest_ps);
            } else {
                line.pauses.resume(priority, events.now);
            }
        }
        if line.watched {
            self.record_pause(number, events.now, named, stop);
        }
        self.try_send(events, number);
    }

    /// Moves a frame through a switch to the queue of a port.
    fn forward(
        &mut self,
        events: &mut Events,
        ingress: u32,
        (switch, port): (u16, u16),
        on_line: OnLine,
    ) -> Result<(), PacketLoss> {
        let OnLine { tail_ps, mut packet, .. } = on_line;
        let now = events.now;
        let state = &mut self.switches[usize::from(switch)];
        if packet.is_corrupt() && tail_ps <= now {
            return Err(PacketLoss::Fcs);
        }
        if packet.bytes > state.plan.longest_bytes {
            return Err(PacketLoss::TooLong);
        }
        let has_vlan = state.plan.vlans[usize::from(port)] & 1 << packet.vlan() != 0;
        let out = self.routes.port(switch, &packet, state.hash(&packet)).filter(|_| has_vlan);
        let Some(out) = out else { return Err(self.routes.obstacle(switch, packet.to)) };
        let number = state.tx[usize::from(out)];
        let line = &mut self.lines[number as usize];
        let priority = usize::from(packet.priority());
        let queued_bytes = line.egress.bytes(priority);
        let stops = match state.memory.admit(usize::from(port), priority, packet.bytes, queued_bytes) {
            Ok(stops) => stops,
            Err(full) => {
                line.count.refused += 1;
                return Err(match full {
                    Full::Pool => {
                        line.count.refused_fcoe += u64::from(packet.is_fcoe());
                        PacketLoss::Congestion
                    }
                    Full::Headroom => PacketLoss::Headroom,
                });
            }
        };
        if let Some(ecn) = state.plan.ecn[priority]
            && packet.is_ecn_capable()
            && marks(&ecn, queued_bytes, &mut self.dice[number as usize])
        {
            packet = packet.with_congestion();
            line.count.marked += 1;
        }
        let mut ready_ps = now + state.plan.latency_ps;
        if tail_ps > now {
            // The last byte may not leave before it is there.
            let time_ps = line.byte.time_of(packet.wire_bytes());
            ready_ps = ready_ps.max((tail_ps + state.plan.latency_ps).saturating_sub(time_ps));
        }
        line.egress.push(Queued { packet, ready_ps, ingress: port });
        let is_lossless = state.memory.is_lossless(priority);
        if is_lossless && let Some(onward) = self.lines[ingress as usize].onward.get_mut(usize::from(out)) {
            onward.bytes += u64::from(packet.bytes);
            onward.behind += u64::from(packet.bytes) * (queued_bytes >> 10);
        }
        if stops {
            self.announce(events, ingress, 1 << priority);
        }
        self.try_send(events, number);
        Ok(())
    }

    /// Lets the receiver of a line send a pause frame that names `priorities`. A link that comes up
    /// announces its pauses anew.
    pub(super) fn announce(&mut self, events: &mut Events, number: u32, priorities: u8) {
        if !self.lines[number as usize].up {
            return;
        }
        self.lines[(number ^ 1) as usize].egress.name_in_pause(priorities);
        self.try_send(events, number ^ 1);
        let refresh_ps = events.now + self.lines[number as usize].longest_pause_ps() / 2;
        events.queue.schedule_earlier(events.sources.ethernet_refresh(number), refresh_ps);
    }

    /// Returns the priorities that the receiver of a line pauses.
    pub(super) fn pausing(&self, number: u32) -> u8 {
        match self.lines[number as usize].to {
            Station::Switch { switch, port } => self.switches[usize::from(switch)].memory.pausing(usize::from(port)),
            Station::Interface(interface) => self.storms[usize::from(interface)] | self.busy[usize::from(interface)],
        }
    }

    /// Repeats the pauses of the receiver of a line before they end.
    pub(in crate::net) fn refresh(&mut self, events: &mut Events, number: u32) {
        let pausing = self.pausing(number);
        if pausing == 0 {
            return;
        }
        if let Station::Switch { switch, port } = self.lines[number as usize].to {
            let memory = &mut self.switches[usize::from(switch)].memory;
            for priority in (0..PRIORITIES).filter(|priority| pausing & 1 << priority != 0) {
                memory.resumes(usize::from(port), priority);
            }
        }
        let sent = self.lines[number as usize].count.packets;
        if std::mem::replace(&mut self.refreshed[number as usize], sent) == sent {
            deadlock::note(self, events.now);
        }
        self.announce(events, number, pausing);
    }

    /// The sender of a line tries to send, because the line is free or a pause has ended.
    pub(in crate::net) fn wake(&mut self, events: &mut Events, number: u32) {
        self.lines[number as usize].wake_ps = NEVER;
        self.try_send(events, number);
    }

    /// Sends the next frame of a line, if it is free.
    pub(super) fn try_send(&mut self, events: &mut Events, number: u32) {
        let now = events.now;
        let line = &mut self.lines[number as usize];
        if !line.up || !line.egress.has_frames() {
            return;
        }
        if line.busy.free_at_ps > now {
            let free_ps = line.busy.free_at_ps;
            return self.wake_at(events, number, free_ps);
        }
        let named = line.egress.take_pause();
        if named != 0 {
            let pauses_link = line.pauses_link;
            let stop = self.pausing(number ^ 1);
            let packet = if pauses_link { Packet::link_pause(stop != 0) } else { Packet::pause(named, stop) };
            self.put_on_line(events, number, packet);
        } else {
            match line.egress.next(now, &line.pauses) {
                Next::Wait(at_ps) => return self.wake_at(events, number, at_ps),
                Next::Send(priority) => {
                    let (from, Some(queued)) = (line.from, line.egress.pop(priority)) else { return };
                    self.put_on_line(events, number, queued.packet);
                    match from {
                        Station::Switch { switch, .. } => self.free(events, switch, &queued),
                        Station::Interface(_) if queued.packet.is_fcoe() => {
                            self.handed.push_back(Handed::Left(queued.packet.position));
                        }
                        Station::Interface(_) => {}
                    }
                }
            }
        }
        let line = &self.lines[number as usize];
        if line.egress.has_frames() {
            let free_ps = line.busy.free_at_ps;
            self.wake_at(events, number, free_ps);
        }
    }

    /// Frees the memory of a frame.
    pub(super) fn free(&mut self, events: &mut Events, switch: u16, queued: &Queued) {
        // A frame of the switch itself is in none of its memory for forwarding.
        if queued.ingress == OWN {
            return;
        }
        let priority = usize::from(queued.packet.priority());
        let state = &mut self.switches[usize::from(switch)];
        if state.memory.free(usize::from(queued.ingress), priority, queued.packet.bytes) {
            let ingress = state.tx[usize::from(queued.ingress)] ^ 1;
            self.announce(events, ingress, 1 << priority);
        }
    }

    /// Schedules the next attempt of a line; [`NEVER`] cancels it.
    pub(super) fn wake_at(&mut self, events: &mut Events, number: u32, at_ps: u64) {
        let line = &mut self.lines[number as usize];
        if line.wake_ps != at_ps {
            line.wake_ps = at_ps;
            events.queue.schedule(events.sources.ethernet_wake(number), at_ps);
        }
    }

    fn put_on_line(&mut self, events: &mut Events, number: u32, packet: Packet) {
        let line = &mut self.lines[number as usize];
        let mut on_line = line.send(events.now, packet);
        let end_ps = on_line.tail_ps - line.propagation_ps;
        let fails = line.errors != LineErrors::default();
        let arrives = !fails || self.survives(number, &mut on_line);
        let packet = on_line.packet;
        self.record(number, events.now, ObservedKind::Frame { packet, end_ps });
        if !arrives {
            return self.lose_on_line(events, number, packet);
        }
        let at_ps = on_line.at_ps;
        if self.lines[number as usize].fly(on_line) {
            events.queue.schedule(events.sources.ethernet_arrival(number), at_ps);
        }
    }

    /// A fault of a line has taken a frame.
    #[cold]
    fn lose_on_line(&mut self, events: &Events, number: u32, packet: Packet) {
        match packet.paused() {
            Some(_) => {
                self.fate.pauses_lost += 1;
                self.record(number, events.now, ObservedKind::PauseLost);
            }
            None => self.lose(events.now, number, packet, PacketLoss::FrameLoss),
        }
    }

    /// Applies the faults of a line to a frame. Returns whether it arrives.
    #[cold]
    fn survives(&mut self, number: u32, on_line: &mut OnLine) -> bool {
        let LineErrors { loss, damage, lateness, late_ps } = self.lines[number as usize].errors;
        let dice = &mut self.dice[number as usize];
        let [is_lost, is_damaged] = [loss, damage].map(|chance| happens(dice, chance));
        if is_lost || (is_damaged && on_line.packet.paused().is_some()) {
            return false;
        }
        if is_damaged {
            on_line.packet.corrupt();
        }
        if lateness != 0 && happens(dice, lateness) {
            on_line.at_ps += late_ps;
            on_line.tail_ps += late_ps;
        }
        true
    }
}

/// Returns whether an event with a chance in 2^-32 happens.
fn happens(dice: &mut SplitMix64, chance: u32) -> bool {
    (dice.bits() >> 32) < u64::from(chance)
}

/// Returns whether a frame is marked that finds `bytes` in its queue.
fn marks(ecn: &Ecn, bytes: u64, dice: &mut SplitMix64) -> bool {
    if bytes >= ecn.all_bytes {
        return true;
    }
    if bytes < ecn.from_bytes {
        return false;
    }
    let chance = u64::from(ecn.chance) * (bytes - ecn.from_bytes) / (ecn.all_bytes - ecn.from_bytes);
    happens(dice, chance as u32)
}
