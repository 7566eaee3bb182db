//! The events of the frame path: arrival, sending, and an input that is ready again.

use super::crossbar::{Buffered, Departure};
use super::flight::InFlight;
use super::frame_ref::FrameRef;
use super::lane::End;
use super::queue::NEVER;
use super::{Loss, Net, NetEvent, Place, Tx};
use sanloom_core::exchange::SeqTx;
use sanloom_core::fabric::{Decision, Egress, Leg};
use sanloom_wire::Frame;

impl Net {
    /// Handles events up to `limit_ps` until one concerns the layers above. `None`: nothing more happens before the limit.
    #[inline]
    pub fn step(&mut self, limit_ps: u64) -> Option<NetEvent> {
        let lanes = self.lanes.len() as u32;
        while let Some((time, source)) = self.queue.pop_until(limit_ps) {
            debug_assert!(time >= self.now, "source {source} was due at {time}, it is {}", self.now);
            self.now = time;
            if source < lanes {
                if let Some(event) = self.arrive(source) {
                    return Some(event);
                }
            } else if source < 2 * lanes {
                self.wake(source - lanes);
            } else if source < 3 * lanes {
                self.input_ready(source - 2 * lanes);
            } else if source < 4 * lanes {
                self.watchdog(source - 3 * lanes);
            } else {
                return Some(NetEvent::Timer(source - 4 * lanes));
            }
        }
        self.now = self.now.max(limit_ps);
        None
    }

    /// Sends a control message from an N_Port, behind what it already has to send.
    pub fn send_message(&mut self, nport: u16, frame: Frame) {
        let plane = &mut self.nports[usize::from(nport)];
        let tx = self.messages.insert(frame, plane.frame_bytes);
        plane.waiting.push_back(Tx::Message(tx));
        let lane = plane.tx;
        self.try_send(lane);
    }

    /// Sends a data sequence from an N_Port, behind what it already has to send.
    #[inline]
    pub fn send_data(&mut self, nport: u16, seq: SeqTx) {
        let plane = &mut self.nports[usize::from(nport)];
        plane.waiting.push_back(Tx::Data(seq));
        let lane = plane.tx;
        self.try_send(lane);
    }

    /// Sends a single data frame from an N_Port, behind what it already has to send.
    pub fn send_frame(&mut self, nport: u16, frame: FrameRef) {
        let plane = &mut self.nports[usize::from(nport)];
        plane.waiting.push_back(Tx::Frame(frame));
        let lane = plane.tx;
        self.try_send(lane);
    }

    /// Sends a control message from a switch's processor through a port.
    pub fn send_from_switch(&mut self, switch: u16, port: u16, frame: Frame) {
        let plane = &self.switches[usize::from(switch)];
        let Some(lane) = plane.tx_lane(port) else { return };
        let part_bytes = match self.lanes[lane as usize].to {
            End::NPort(nport) => self.nports[usize::from(nport)].frame_bytes,
            End::Switch { .. } => 2048,
        };
        let mut tx = self.messages.insert(frame, part_bytes);
        while let Some((part, last)) = self.messages.next_part(&mut tx) {
            self.fate.sent += 1;
            if !self.lanes[lane as usize].up {
                self.lose(&part, Loss::LinkDown, Place::Processor(switch));
            } else {
                let plane = &mut self.switches[usize::from(switch)];
                let output = plane.output_of[usize::from(port)];
                let input = plane.crossbar.processor();
                let on_line = InFlight::new(part, self.now, self.now);
                plane.crossbar.enqueue(self.now, Buffered { on_line, input, output, lane: super::NO_LANE });
                self.wake_output(switch, output);
            }
            if last {
                break;
            }
        }
    }

    /// The N_Port has emptied a receive buffer: the R_RDY leaves at `at_ps`.
    #[inline]
    pub fn release(&mut self, nport: u16, at_ps: u64) {
        let plane = &mut self.nports[usize::from(nport)];
        plane.let_go(at_ps.max(self.now));
        let lane = plane.rx;
        self.return_credit(lane, at_ps);
    }

    #[inline(always)]
    fn arrive(&mut self, number: u32) -> Option<NetEvent> {
        let lane = &mut self.lanes[number as usize];
        let (on_line, next_ps) = lane.flight.pop();
        if next_ps != NEVER {
            self.queue.add(number, next_ps);
        }
        let frame = on_line.frame;
        self.fate.frame_hops += 1;
        match lane.to {
            End::NPort(nport) => {
                if frame.is_corrupt() {
                    self.lose(&frame, Loss::CrcAtDestination, Place::Receiver(number));
                    self.return_credit(number, self.now);
                    return None;
                }
                self.fate.delivered += 1;
                self.nports[usize::from(nport)].hold(self.now);
                Some(NetEvent::Deliver { nport, frame })
            }
            End::Switch { switch, port } => {
                let guarded = lane.guarded;
                self.arrive_at_switch(number, switch, port, on_line, guarded)
            }
        }
    }

    #[inline]
    fn arrive_at_switch(
        &mut self,
        lane: u32,
        switch: u16,
        port: u16,
        on_line: InFlight,
        guarded: bool,
    ) -> Option<NetEvent> {
        let frame = on_line.frame;
        let plane = &mut self.switches[usize::from(switch)];
        if frame.is_corrupt() && plane.checks_crc {
            self.lose(&frame, Loss::CrcError, Place::Receiver(lane));
            self.return_credit(lane, on_line.tail_ps().max(self.now));
            return None;
        }
        let output = match plane.fib.decide(port, frame.s_id(), frame.d_id(), frame.ox_id()) {
            Decision::Forward(Egress::Port(port)) => port,
            Decision::Forward(Egress::Bundle(bundle)) => plane.bundle_output[usize::from(bundle)],
            Decision::Forward(Egress::Spray(group)) => {
                let legs = plane.fib.spray_members(group);
                let turn = &mut plane.turn[usize::from(group)];
                let mut number = if (*turn as usize) < legs.len() { *turn as usize } else { 0 };
                if plane.fib.leads_back(port, legs[number]) {
                    number = (number + 1) % legs.len();
                }
                let leg = legs[number];
                *turn = number as u16 + 1;
                match leg {
                    Leg::Port(port) => port,
                    Leg::Bundle(bundle) => plane.bundle_output[usize::from(bundle)],
                }
            }
            Decision::Local => {
                self.return_credit(lane, on_line.tail_ps().max(self.now));
                if frame.is_corrupt() {
                    self.lose(&frame, Loss::CrcAtDestination, Place::Receiver(lane));
                    return None;
                }
                self.fate.delivered += 1;
                return Some(NetEvent::Local { switch, port, frame });
            }
            Decision::Drop(reason) => {
                self.lose(&frame, Loss::Fib(reason), Place::Receiver(lane));
                self.return_credit(lane, on_line.tail_ps().max(self.now));
                return None;
            }
        };
        plane.crossbar.enqueue(self.now, Buffered { on_line, input: port, output, lane });
        let served = plane.crossbar.served(output);
        let lanes = self.lanes.len() as u32;
        if plane.crossbar.serial_inputs() {
            let busy_until = plane.crossbar.input_busy_until(port);
            if busy_until > self.now {
                self.queue.schedule(2 * lanes + lane, busy_until);
            }
        }
        if !guarded {
            self.lanes[lane as usize].guarded = true;
            self.queue.schedule_earlier(3 * lanes + lane, self.now + self.hold_time_ps);
        }
        match served {
            Some(lane) => self.try_send_buffered(lane, switch),
            None => self.wake_output(switch, output),
        }
        None
    }

    /// A frame waits for the output: each of its lines tries.
    #[inline]
    pub(super) fn wake_output(&mut self, switch: u16, output: u16) {
        if let Some(lane) = self.switches[usize::from(switch)].crossbar.served(output) {
            self.try_send_buffered(lane, switch);
            return;
        }
        for i in 0..self.switches[usize::from(switch)].members[usize::from(output)].len() {
            let plane = &self.switches[usize::from(switch)];
            if !plane.crossbar.waits(output) {
                break;
            }
            let port = plane.members[usize::from(output)][i];
            let lane = plane.tx[usize::from(port)];
            self.try_send(lane);
        }
    }

    /// The source of a lane's chance to send.
    #[inline]
    pub(super) fn wake_source(&self, number: u32) -> u32 {
        self.lanes.len() as u32 + number
    }

    /// A lane tries again to send.
    #[inline]
    fn wake(&mut self, number: u32) {
        self.lanes[number as usize].woken();
        self.try_send(number);
    }

    /// Sends the next frame on a lane, if there is one and the line and the credits allow it; otherwise sees to it that
    /// the lane is woken when they do.
    #[inline]
    pub(super) fn try_send(&mut self, number: u32) {
        match self.lanes.get(number as usize).map(|lane| lane.from) {
            Some(End::Switch { switch, .. }) => self.try_send_buffered(number, switch),
            Some(End::NPort(nport)) => self.try_send_own(number, nport),
            None => {}
        }
    }

    /// The same for a lane that begins at a switch, which is named.
    fn try_send_buffered(&mut self, number: u32, switch: u16) {
        let now = self.now;
        let wake = self.wake_source(number);
        let lane = &mut self.lanes[number as usize];
        if !lane.up {
            return;
        }
        let output = lane.output;
        let crossbar = &mut self.switches[usize::from(switch)].crossbar;
        if !crossbar.waits(output) {
            self.rest(number);
            return;
        }
        if lane.free_at_ps > now {
            lane.wake_at(&mut self.queue, wake, lane.free_at_ps);
            return;
        }
        if !lane.has_credit(now) {
            self.starve(number);
            return;
        }
        // There is a credit, whether an input shows a frame now or not.
        lane.fed(now);
        let departure = crossbar.depart(now, output, |slot| lane.send(now, slot.tail_ps(), &slot.frame));
        let Some(Departure { slot, sent, more_at_input, more_at_output }) = departure else { return };
        if more_at_output {
            lane.wake_at(&mut self.queue, wake, lane.free_at_ps);
        }
        if lane.special {
            self.put_on_special_line(number, slot.frame, sent);
        } else if lane.flight.push(InFlight::new(slot.frame, sent.at_ps, sent.tail_ps)) {
            self.queue.add(number, sent.at_ps);
        }
        let upstream = slot.lane;
        if upstream != super::NO_LANE {
            self.return_credit(upstream, sent.end_ps);
            if more_at_input {
                self.queue.schedule(2 * self.lanes.len() as u32 + upstream, sent.end_ps);
            }
        }
    }

    /// The same for a lane that begins at an N_Port, which is named.
    #[inline]
    fn try_send_own(&mut self, number: u32, nport: u16) {
        let now = self.now;
        let wake = self.wake_source(number);
        let lane = &mut self.lanes[number as usize];
        if !lane.up {
            return;
        }
        let plane = &self.nports[usize::from(nport)];
        let free = lane.free_at_ps.max(plane.not_before_ps);
        if plane.waiting.is_empty() {
            self.rest(number);
        } else if free > now {
            lane.wake_at(&mut self.queue, wake, free);
        } else if !lane.has_credit(now) {
            self.starve(number);
        } else {
            self.send_own(number, nport);
        }
    }

    /// Nothing waits for a lane: a wait for credit goes on until there is one.
    fn rest(&mut self, number: u32) {
        let now = self.now;
        let lane = &mut self.lanes[number as usize];
        if lane.has_credit(now) {
            lane.fed(now);
        } else if lane.starving_since_ps != NEVER {
            self.starve(number);
        }
    }

    /// A lane has a frame to send and no credit.
    fn starve(&mut self, number: u32) {
        let now = self.now;
        let wake = self.wake_source(number);
        let watchdog = 3 * self.lanes.len() as u32 + number;
        let lane = &mut self.lanes[number as usize];
        if lane.starving_since_ps == NEVER {
            lane.starving_since_ps = now;
            self.queue.schedule_earlier(watchdog, now + self.e_d_tov_ps);
        }
        let next = lane.next_credit();
        if next != NEVER {
            lane.wake_at(&mut self.queue, wake, next);
        }
    }

    /// Sends a frame of an N_Port.
    #[inline]
    fn send_own(&mut self, number: u32, nport: u16) {
        let now = self.now;
        let wake = self.wake_source(number);
        let plane = &mut self.nports[usize::from(nport)];
        let overhead = plane.sequence_overhead_ps;
        let Some(front) = plane.waiting.front_mut() else { return };
        let (frame, last) = match front {
            Tx::Data(_) if overhead > 0 && !plane.paused => {
                plane.paused = true;
                plane.not_before_ps = now + overhead;
                self.lanes[number as usize].wake_at(&mut self.queue, wake, now + overhead);
                return;
            }
            Tx::Data(seq) => match seq.next_frame() {
                Some(data) => (Some(FrameRef::data(seq, &data)), seq.remaining_bytes() == 0),
                None => (None, true),
            },
            Tx::Frame(frame) => (Some(*frame), true),
            Tx::Message(tx) => match self.messages.next_part(tx) {
                Some((part, last)) => (Some(part), last),
                None => (None, true),
            },
        };
        if last {
            plane.waiting.pop_front();
            plane.paused = false;
        }
        let more = !plane.waiting.is_empty();
        let Some(frame) = frame else {
            if more {
                self.lanes[number as usize].wake_at(&mut self.queue, wake, now);
            }
            return;
        };
        self.fate.sent += 1;
        let lane = &mut self.lanes[number as usize];
        lane.fed(now);
        let sent = lane.send(now, now, &frame);
        if more {
            let free = lane.free_at_ps;
            lane.wake_at(&mut self.queue, wake, free);
        }
        if lane.special {
            self.put_on_special_line(number, frame, sent);
        } else if lane.flight.push(InFlight::new(frame, sent.at_ps, sent.tail_ps)) {
            self.queue.add(number, sent.at_ps);
        }
    }

    /// Puts a frame on a line that is watched, faulty or part of a bundle.
    fn put_on_special_line(&mut self, number: u32, mut frame: FrameRef, sent: super::Sent) {
        let lane = &mut self.lanes[number as usize];
        let mut at_ps = sent.at_ps;
        if let Some(bundle) = lane.bundle {
            let last = &mut self.bundles[usize::from(bundle)].last_at_ps;
            at_ps = at_ps.max(*last + 1);
            *last = at_ps;
        }
        if lane.faulty && self.disturb(number, &mut frame, sent.end_ps) {
            return;
        }
        if self.lanes[number as usize].watched {
            self.observe_frame(number, frame, sent);
        }
        if self.lanes[number as usize].flight.push(InFlight::new(frame, at_ps, sent.tail_ps)) {
            self.queue.add(number, at_ps);
        }
    }

    /// A receive buffer at the end of a lane is free at `at_ps`; its R_RDY goes back.
    #[inline]
    pub(super) fn return_credit(&mut self, number: u32, at_ps: u64) {
        let wake = self.wake_source(number);
        let mut ready = at_ps;
        let mut lane = &mut self.lanes[number as usize];
        if !lane.up {
            return;
        }
        if lane.special {
            match self.delay_credit(number, at_ps) {
                Some(time) => ready = time,
                None => return,
            }
            lane = &mut self.lanes[number as usize];
        }
        lane.credit_returns(ready);
        if lane.starving_since_ps != NEVER {
            let time = lane.next_credit().max(self.now);
            lane.wake_by(&mut self.queue, wake, time);
        }
    }

    fn input_ready(&mut self, lane: u32) {
        let End::Switch { switch, port } = self.lanes[lane as usize].to else { return };
        let mut outputs = [0u16; 8];
        let mut count = 0;
        let mut rest = Vec::new();
        self.switches[usize::from(switch)].crossbar.input_ready(port, |output| {
            if count < outputs.len() {
                outputs[count] = output;
                count += 1;
            } else {
                rest.push(output);
            }
        });
        for &output in outputs[..count].iter().chain(&rest) {
            self.wake_output(switch, output);
        }
    }

    /// Counts a lost frame and forgets it.
    pub(super) fn lose(&mut self, frame: &FrameRef, why: Loss, place: Place) {
        self.fate.lost[why.index()] += 1;
        let lost = self.losses.entry((place, why)).or_default();
        lost.frames += 1;
        lost.bytes += frame.wire_bytes();
        if let Some(message) = frame.message() {
            self.messages.part_gone(message);
        }
    }
}
