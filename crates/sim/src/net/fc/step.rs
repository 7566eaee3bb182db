//! Events of the frame path: arrivals, attempts to send, and inputs that become ready.

use super::crossbar::{Buffered, Departure};
use super::flight::{Entry, InFlight};
use super::frame_ref::FrameRef;
use super::lane::End;
use super::nport::Next;
use super::{FcPlane, Loss, LossSite, channels, crossing, loops, parts};
use crate::net::NetEvent;
use crate::net::events::Events;
use crate::net::fcoe;
use crate::net::queue::NEVER;
use sanloom_fc::exchange::SeqTx;
use sanloom_fc::fabric::{Decision, Egress};
use sanloom_wire::Frame;

impl FcPlane {
    /// Notes that the event of `source` begins, if events are noted.
    #[inline(always)]
    pub(in crate::net) fn begin_event(&mut self, now: u64, time: u64, source: u32) {
        if self.parts.notes_events {
            self.parts.begin(now, time, source);
        }
    }

    /// Runs the watchdog of a lane. Returns an event if it has reset the link or discarded frames.
    pub(in crate::net) fn watch_lane(&mut self, events: &mut Events, lane: u32) -> Option<NetEvent> {
        let known = self.recorder.incidents.len();
        self.watchdog(events, lane);
        (self.recorder.incidents.len() > known).then_some(NetEvent::Incident)
    }

    /// Appends a control message to the send queue of an N_Port.
    pub(in crate::net) fn send_message(&mut self, events: &mut Events, nport: u16, frame: Frame) {
        let plane = &mut self.nports[usize::from(nport)];
        plane.queue.push_message(&mut self.messages, frame);
        let lane = plane.tx;
        self.try_send(events, lane);
    }

    /// Appends a data sequence to the send queue of an N_Port.
    #[inline]
    pub(in crate::net) fn send_data(&mut self, events: &mut Events, nport: u16, seq: SeqTx) {
        let plane = &mut self.nports[usize::from(nport)];
        plane.queue.push_data(seq);
        let lane = plane.tx;
        self.try_send(events, lane);
    }

    /// Appends a single data frame to the send queue of an N_Port.
    pub(in crate::net) fn send_frame(&mut self, events: &mut Events, nport: u16, frame: FrameRef) {
        let plane = &mut self.nports[usize::from(nport)];
        plane.queue.push_frame(frame);
        let lane = plane.tx;
        self.try_send(events, lane);
    }

    /// Sends a control message from a switch's processor through a port.
    pub(in crate::net) fn send_from_switch(&mut self, events: &mut Events, switch: u16, port: u16, frame: Frame) {
        let plane = &self.switches[usize::from(switch)];
        let Some(lane) = plane.tx_lane(port) else { return };
        let part_bytes = match self.lanes[lane as usize].to {
            End::NPort(nport) => self.nports[usize::from(nport)].queue.frame_bytes(),
            End::Switch { .. } | End::Loop { .. } => 2048,
        };
        let mut tx = self.messages.insert(frame, part_bytes);
        while let Some((part, last)) = self.messages.next_part(&mut tx) {
            self.fate.sent += 1;
            if !self.lanes[lane as usize].up {
                self.count_loss(&part, Loss::LinkDown, LossSite::Processor(switch));
            } else {
                let mut part = part;
                let plane = &self.switches[usize::from(switch)];
                let input = plane.crossbar.processor();
                let mut output = plane.output_of[usize::from(port)];
                if self.has_channels {
                    (output, part) = channels::choose(self, switch, super::NO_LANE, output, part);
                }
                let on_line = InFlight::new(part, events.now, events.now);
                let lane = super::NO_LANE;
                let plane = &mut self.switches[usize::from(switch)];
                plane.crossbar.enqueue(events.now, Buffered { on_line, input, output, lane, crossed: false });
                self.wake_output(events, switch, output);
            }
            if last {
                break;
            }
        }
    }

    /// Frees a receive buffer of the N_Port; the R_RDY leaves at `at_ps`.
    #[inline]
    pub(in crate::net) fn release(&mut self, events: &mut Events, nport: u16, at_ps: u64) {
        let plane = &mut self.nports[usize::from(nport)];
        plane.buffers.free(at_ps.max(events.now));
        let lane = plane.rx;
        self.return_credit(events, lane, at_ps);
    }

    #[inline(always)]
    pub(in crate::net) fn arrive(&mut self, events: &mut Events, number: u32) -> Option<NetEvent> {
        if self.lanes[number as usize].entry == Entry::ForOutput && crossing::waits_for_output(self, events, number) {
            return None;
        }
        let lane = &mut self.lanes[number as usize];
        let (on_line, next_ps) = lane.flight.pop();
        if next_ps != NEVER {
            events.queue.add(events.sources.arrival(number), next_ps);
        }
        let frame = on_line.frame;
        self.fate.frame_hops += 1;
        match lane.to {
            End::NPort(nport) => {
                if frame.is_corrupt() {
                    self.count_loss(&frame, Loss::CrcAtDestination, LossSite::Receiver(number));
                    self.return_credit(events, number, events.now);
                    return None;
                }
                self.fate.delivered += 1;
                self.nports[usize::from(nport)].buffers.occupy(events.now);
                Some(NetEvent::Deliver { nport, frame })
            }
            End::Switch { switch, port } => {
                let watchdog_armed = lane.watchdog_armed;
                self.arrive_at_switch(events, number, switch, port, on_line, watchdog_armed)
            }
            End::Loop { .. } => {
                loops::take(self, events, number, frame);
                None
            }
        }
    }

    #[inline]
    fn arrive_at_switch(
        &mut self,
        events: &mut Events,
        lane: u32,
        switch: u16,
        port: u16,
        on_line: InFlight,
        watchdog_armed: bool,
    ) -> Option<NetEvent> {
        let frame = on_line.frame;
        let plane = &mut self.switches[usize::from(switch)];
        if frame.is_corrupt() && plane.checks_crc {
            self.count_loss(&frame, Loss::CrcError, LossSite::Receiver(lane));
            channels::return_credit(self, events, lane, on_line.tail_ps().max(events.now), frame.channel());
            return None;
        }
        let output = match plane.fib.decide(port, frame.s_id(), frame.d_id(), frame.ox_id()) {
            Decision::Forward(Egress::Port(port)) => port,
            Decision::Forward(Egress::Bundle(bundle)) => plane.bundle_output[usize::from(bundle)],
            Decision::Forward(Egress::Spray(group)) => plane.spray(group, port, &self.lanes, events.now),
            Decision::Local => {
                channels::return_credit(self, events, lane, on_line.tail_ps().max(events.now), frame.channel());
                if frame.is_corrupt() {
                    self.count_loss(&frame, Loss::CrcAtDestination, LossSite::Receiver(lane));
                    return None;
                }
                self.fate.delivered += 1;
                return Some(NetEvent::Local { switch, port, frame });
            }
            Decision::Drop(reason) => {
                self.count_loss(&frame, Loss::Fib(reason), LossSite::Receiver(lane));
                channels::return_credit(self, events, lane, on_line.tail_ps().max(events.now), frame.channel());
                return None;
            }
        };
        let buffers_egress = plane.crossbar.buffers_egress();
        let (mut on_line, mut output) = (on_line, output);
        if self.has_channels {
            (output, on_line.frame) = channels::choose(self, switch, lane, output, frame);
        }
        let entering = Buffered { on_line, input: port, output, lane, crossed: false };
        if !watchdog_armed {
            self.lanes[lane as usize].watchdog_armed = true;
            events.queue.schedule_earlier(events.sources.watchdog(lane), events.now + self.hold_time_ps);
        }
        if buffers_egress {
            self.enter_crossbar(events, switch, entering);
            return None;
        }
        let crossbar = &mut self.switches[usize::from(switch)].crossbar;
        crossbar.enqueue(events.now, entering);
        match crossbar.served(output) {
            Some(lane) => self.try_send_buffered(events, lane, switch),
            None => self.wake_output(events, switch, output),
        }
        None
    }

    /// Tries to send on each line of an output that has a queued frame.
    #[inline]
    pub(super) fn wake_output(&mut self, events: &mut Events, switch: u16, output: u16) {
        if self.switches[usize::from(switch)].crossbar.buffers_egress() {
            self.serve_output(events, switch, output);
            return;
        }
        if let Some(lane) = self.switches[usize::from(switch)].crossbar.served(output) {
            self.try_send_buffered(events, lane, switch);
            return;
        }
        for i in 0..self.switches[usize::from(switch)].members[usize::from(output)].len() {
            let plane = &self.switches[usize::from(switch)];
            if !plane.crossbar.waits(output) {
                break;
            }
            let port = plane.members[usize::from(output)][i];
            let lane = plane.tx[usize::from(port)];
            self.try_send(events, lane);
        }
    }

    /// Handles the event of a scheduled attempt to send.
    #[inline]
    pub(in crate::net) fn wake(&mut self, events: &mut Events, number: u32) {
        self.lanes[number as usize].clear_wake();
        self.try_send(events, number);
    }

    /// Sends the next frame on a lane, if one is queued and the line and the credits allow it.
    /// Otherwise schedules the next attempt.
    #[inline]
    pub(super) fn try_send(&mut self, events: &mut Events, number: u32) {
        match self.lanes.get(number as usize).map(|lane| lane.from) {
            Some(End::Switch { switch, .. }) if self.switches[usize::from(switch)].crossbar.buffers_egress() => {
                let lane = &self.lanes[number as usize];
                if lane.special && lane.bundle.is_some() {
                    crossing::try_line_of_bundle(self, events, number, switch);
                } else {
                    self.serve_output(events, switch, lane.output);
                }
            }
            Some(End::Switch { switch, .. }) => self.try_send_buffered(events, number, switch),
            Some(End::NPort(nport)) => self.try_send_own(events, number, nport),
            Some(End::Loop { .. }) => {}
            None => loops::has_frames(self, events, number),
        }
    }

    /// Variant of `try_send` for a lane that begins at a switch without egress buffers.
    fn try_send_buffered(&mut self, events: &mut Events, number: u32, switch: u16) {
        let now = events.now;
        let wake = events.sources.wake(number);
        let lane = &mut self.lanes[number as usize];
        if !lane.up {
            return;
        }
        let output = lane.output;
        let crossbar = &mut self.switches[usize::from(switch)].crossbar;
        if !crossbar.waits(output) {
            self.without_frame(events, number);
            return;
        }
        if lane.free_at_ps > now {
            lane.wake_at(&mut events.queue, wake, lane.free_at_ps);
            return;
        }
        if !lane.has_credit(now) {
            self.wait_for_credit(events, number);
            return;
        }
        let departure = crossbar.depart(output, |slot| lane.send(now, slot.tail_ps(), &slot.frame));
        let Some(Departure { slot, sent, more_at_output }) = departure else { return };
        if more_at_output {
            lane.wake_at(&mut events.queue, wake, lane.free_at_ps);
        }
        self.put_on_line(events, number, slot.frame, sent);
        let upstream = slot.lane;
        if upstream != super::NO_LANE {
            // A lane to a switch without virtual output queues has no virtual channels.
            self.return_credit(events, upstream, sent.end_ps);
        }
    }

    /// Puts a frame on a line.
    #[inline(always)]
    pub(super) fn put_on_line(&mut self, events: &mut Events, number: u32, frame: FrameRef, sent: super::Sent) {
        let lane = &mut self.lanes[number as usize];
        if lane.special {
            self.put_on_special_line(events, number, frame, sent);
        } else if lane.flight.push(InFlight::new(frame, sent.at_ps, sent.tail_ps)) {
            events.queue.add(events.sources.arrival(number), sent.at_ps);
        }
    }

    /// Variant of `try_send` for a lane that begins at the given N_Port.
    #[inline]
    fn try_send_own(&mut self, events: &mut Events, number: u32, nport: u16) {
        let now = events.now;
        let wake = events.sources.wake(number);
        let lane = &mut self.lanes[number as usize];
        if !lane.up {
            return;
        }
        let plane = &self.nports[usize::from(nport)];
        let free = lane.free_at_ps.max(plane.queue.not_before_ps());
        if plane.queue.is_empty() {
            self.without_frame(events, number);
        } else if free > now {
            lane.wake_at(&mut events.queue, wake, free);
        } else if !lane.has_credit(now) {
            self.wait_for_credit(events, number);
        } else {
            self.send_own(events, number, nport);
        }
    }

    /// Handles a lane without queued frames. A wait for credit that has begun continues until a
    /// credit is available.
    pub(super) fn without_frame(&mut self, events: &mut Events, number: u32) {
        let now = events.now;
        let lane = &mut self.lanes[number as usize];
        if !lane.has_credit(now) && lane.credit_wait_since_ps != NEVER {
            self.wait_for_credit(events, number);
        }
    }

    /// Starts or continues the wait for credit of a lane that has a frame to send.
    pub(super) fn wait_for_credit(&mut self, events: &mut Events, number: u32) {
        let now = events.now;
        let wake = events.sources.wake(number);
        let watchdog = events.sources.watchdog(number);
        let lane = &mut self.lanes[number as usize];
        if lane.credit_wait_since_ps == NEVER {
            lane.credit_wait_since_ps = now;
            events.queue.schedule_earlier(watchdog, now + self.e_d_tov_ps);
        }
        let next = lane.next_credit();
        if next != NEVER {
            lane.wake_at(&mut events.queue, wake, next);
        }
    }

    /// Sends the next frame of an N_Port.
    #[inline]
    fn send_own(&mut self, events: &mut Events, number: u32, nport: u16) {
        let now = events.now;
        let wake = events.sources.wake(number);
        let queue = &mut self.nports[usize::from(nport)].queue;
        let frame = match queue.next(now, &self.messages) {
            Next::Frame(frame) => frame,
            Next::Pause(until_ps) => {
                self.lanes[number as usize].wake_at(&mut events.queue, wake, until_ps);
                return;
            }
            Next::Nothing => {
                if !queue.is_empty() {
                    self.lanes[number as usize].wake_at(&mut events.queue, wake, now);
                }
                return;
            }
        };
        let more = !queue.is_empty();
        self.fate.sent += 1;
        let lane = &mut self.lanes[number as usize];
        let sent = lane.send(now, now, &frame);
        if more {
            let free = lane.free_at_ps;
            lane.wake_at(&mut events.queue, wake, free);
        }
        self.put_on_line(events, number, frame, sent);
    }

    /// Puts a frame on a line that is watched, faulty, part of a bundle, or ends in another part of
    /// the network.
    fn put_on_special_line(&mut self, events: &mut Events, number: u32, mut frame: FrameRef, sent: super::Sent) {
        if self.fcoe.has(number) {
            return self.send_over_ethernet(events, number, frame, sent);
        }
        let lane = &mut self.lanes[number as usize];
        let mut at_ps = sent.at_ps;
        if let Some(bundle) = lane.bundle {
            let last = &mut self.bundles[usize::from(bundle)].last_at_ps;
            at_ps = at_ps.max(*last + 1);
            *last = at_ps;
        }
        if lane.faulty && self.apply_frame_faults(events, number, &mut frame, sent.end_ps) {
            return;
        }
        let lane = &self.lanes[number as usize];
        // A frame to an FL_Port is recorded when it leaves on the loop.
        if lane.watched && !matches!(lane.to, End::Loop { .. }) {
            self.recorder.frame(number, lane, &self.messages, frame, sent);
            self.recorder.stamp(self.parts.turn(events.now));
        }
        let on_line = InFlight::new(frame, at_ps, sent.tail_ps);
        if self.parts.is_away(number) {
            parts::send_across(self, number, on_line);
        } else if self.lanes[number as usize].flight.push(on_line) {
            events.queue.add(events.sources.arrival(number), at_ps);
        }
    }

    /// Returns the R_RDY for a receive buffer at the end of a lane without virtual channels. The
    /// buffer becomes free at `at_ps`.
    #[inline]
    pub(super) fn return_credit(&mut self, events: &mut Events, number: u32, at_ps: u64) {
        let wake = events.sources.wake(number);
        let mut ready = at_ps;
        let mut lane = &mut self.lanes[number as usize];
        if !lane.up {
            return fcoe::free(self, events, number);
        }
        if lane.special {
            if lane.on_loop {
                return loops::has_room(self, events, number);
            }
            if self.fcoe.has(number) {
                return fcoe::free(self, events, number);
            }
            match self.apply_r_rdy_faults(events, number, at_ps, 0) {
                Some(time) => ready = time,
                None => return,
            }
            if self.parts.is_away(number) {
                parts::return_across(self, number, ready, 0);
                return;
            }
            lane = &mut self.lanes[number as usize];
        }
        lane.credit_returns(ready);
        if lane.credit_wait_since_ps != NEVER {
            let time = lane.next_credit().max(events.now);
            lane.wake_by(&mut events.queue, wake, time);
        }
    }

    /// Counts a lost frame and releases its message.
    pub(in crate::net) fn count_loss(&mut self, frame: &FrameRef, why: Loss, site: LossSite) {
        self.fate.lost[why.index()] += 1;
        let lost = self.recorder.losses.entry((site, why)).or_default();
        lost.frames += 1;
        lost.bytes += frame.wire_bytes();
        if let Some(message) = frame.message() {
            self.messages.part_ended(message);
        }
    }
}
