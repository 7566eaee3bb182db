//! Frames that cross a switch, from the input buffers into small buffers in front of the lines.
//!
//! Each output grants its free places to the inputs with frames for it, in the order of its
//! arbiter, whether or not another frame crosses from the input at that time. An input serves its
//! grants in their order, one frame at a time, at the rate of the crossbar. Its buffer is free when
//! the last bit has crossed, however slow the line is. Grants to a busy input keep the order of
//! service fair: an input cannot lose its turn because it was busy when a place became free.

use super::crossbar::{Buffered, Crossbar, Pace};
use super::egress::Crossed;
use super::flight::{Entry, InFlight};
use super::frame_ref::FrameRef;
use super::input::Slot;
use super::lane::{End, Lane};
use super::{FcPlane, NO_LANE, SwitchPlane, channels};
use crate::net::events::Events;
use crate::net::queue::NEVER;
use sanloom_fc::config::{CrossbarLimits, Queueing, Switch};
use sanloom_fc::fabric::{Decision, Egress};

/// A frame that crosses.
struct Crossing {
    /// Lane on which the frame arrived, or [`NO_LANE`].
    upstream: u32,
    /// Virtual channel on which the frame arrived.
    channel: u8,
    /// Time at which the last bit has crossed.
    end_ps: u64,
    /// True if the input has another frame that waits for the end of this one.
    more: bool,
}

impl Pace {
    /// Returns the rates of a switch. `fastest` is the time of a byte on its fastest line: ps and
    /// the bytes they belong to.
    pub fn new(limits: &CrossbarLimits, (ps, bytes): (u64, u64)) -> Pace {
        let in_units = |ps: u64, bytes: u64| ((u128::from(ps) << 32) / u128::from(bytes.max(1))) as u64;
        Pace {
            byte: in_units(ps * 100, bytes * u64::from(limits.speedup_percent)),
            byte_in_total: limits.bandwidth_bit_per_s.map_or(0, |rate| in_units(8_000_000_000_000, rate)),
            total_free_ps: 0,
        }
    }

    /// Returns the time in ps of `bytes` at `byte` units of 2^-32 ps, rounded down.
    #[inline]
    fn time(byte: u64, bytes: u64) -> u64 {
        ((u128::from(byte) * u128::from(bytes)) >> 32) as u64
    }

    /// Starts to move `bytes` at `now`. Returns the time at which the last byte has crossed. An
    /// input is busy for at least 1 ps.
    #[inline]
    fn cross(&mut self, now: u64, bytes: u64) -> u64 {
        let end = now + Self::time(self.byte, bytes).max(1);
        if self.byte_in_total == 0 {
            return end;
        }
        self.total_free_ps = self.total_free_ps.max(now) + Self::time(self.byte_in_total, bytes);
        end.max(self.total_free_ps)
    }
}

impl Crossbar {
    /// Grants a place in front of the lines of `output` to the next input with a frame for it.
    #[inline]
    fn grant(&mut self, output: u16) -> Option<u16> {
        if !self.egress[usize::from(output)].has_place() {
            return None;
        }
        let (turn, input) = self.choose(output)?;
        let another = self.inputs[usize::from(input)].grant(output)?;
        if !another || (self.queueing == Queueing::Fifo && input != self.processor()) {
            self.clear(output, input);
        }
        self.out[usize::from(output)].last = turn;
        let trunk = self.trunk_of(input);
        self.egress[usize::from(output)].reserve(input, trunk);
        Some(input)
    }

    /// Starts to move the first granted frame of an input, if no other frame crosses from it.
    #[inline]
    fn cross(&mut self, now: u64, input: u16) -> Option<Crossing> {
        let is_processor = input == self.processor();
        let buffer = &mut self.inputs[usize::from(input)];
        if buffer.busy_until_ps > now {
            return None;
        }
        let (output, slot) = buffer.take_granted()?;
        let end_ps = if is_processor { now } else { self.pace.cross(now, slot.frame.wire_bytes()).max(slot.tail_ps()) };
        buffer.busy_until_ps = end_ps;
        buffer.count_held(&slot, end_ps);
        let more = buffer.has_grants() || (self.queueing == Queueing::Fifo && !is_processor && buffer.frames() > 0);
        self.egress[usize::from(output)].fill(input, slot, end_ps);
        Some(Crossing { upstream: slot.lane, channel: slot.frame.channel(), end_ps, more })
    }

    /// Lets a frame cross at once if no other frame is at its input or in the switch for its
    /// output. Returns the time at which its last bit has crossed. The result is that of
    /// [`enqueue`], [`grant`] and [`cross`], without the queues in between.
    ///
    /// [`enqueue`]: Crossbar::enqueue
    /// [`grant`]: Crossbar::grant
    /// [`cross`]: Crossbar::cross
    #[inline]
    fn pass(&mut self, now: u64, entering: &Buffered) -> Option<u64> {
        let &Buffered { on_line, input, output, .. } = entering;
        let buffer = &mut self.inputs[usize::from(input)];
        let out = &mut self.out[usize::from(output)];
        if out.frames > 0 || buffer.frames() > 0 || buffer.busy_until_ps > now {
            return None;
        }
        let end_ps = self.pace.cross(now, on_line.frame.wire_bytes()).max(on_line.tail_ps());
        buffer.pass(on_line.at_ps, end_ps);
        out.last = input;
        Some(end_ps)
    }

    /// Puts a frame that has crossed in front of the lines of its output.
    fn put_crossed(&mut self, crossed: Crossed, output: u16) {
        let trunk = self.trunk_of(crossed.input);
        self.out[usize::from(output)].frames += 1;
        self.egress[usize::from(output)].put(crossed, trunk);
    }

    /// Makes the head of a FIFO input eligible after the previous frame has crossed. Returns its
    /// output.
    fn show_head(&mut self, input: u16) -> Option<u16> {
        if self.queueing != Queueing::Fifo {
            return None;
        }
        let output = self.inputs[usize::from(input)].head()?;
        self.set(output, input);
        Some(output)
    }

    /// Returns whether several granted frames wait for an input.
    fn has_several_grants(&self, input: u16) -> bool {
        self.inputs[usize::from(input)].grants() > 1
    }

    /// Returns the output of the first granted frame of an input.
    fn granted_output(&self, input: u16) -> Option<u16> {
        self.inputs[usize::from(input)]
            .held()
            .next()
            .map(|(output, _)| output)
            .filter(|_| self.inputs[usize::from(input)].has_grants())
    }

    /// Returns whether a frame in front of the lines of `output` may leave.
    #[inline]
    pub(super) fn has_crossed(&self, output: u16) -> bool {
        self.egress[usize::from(output)].has_frame()
    }

    /// Returns which of `count` outputs have a frame in front of their lines that may leave: one
    /// bit for each output, the lowest for `first`.
    #[inline]
    pub(super) fn crossed(&self, first: u16, count: u16) -> u16 {
        let outputs = &self.egress[usize::from(first)..][..usize::from(count)];
        outputs.iter().enumerate().fold(0, |mask, (at, egress)| mask | u16::from(egress.has_frame()) << at)
    }

    /// Removes the next frame in front of the lines of `output`.
    #[inline]
    pub(super) fn take_crossed(&mut self, output: u16) -> Option<Crossed> {
        let crossed = self.egress[usize::from(output)].take()?;
        self.out[usize::from(output)].frames -= 1;
        Some(crossed)
    }

    /// Returns whether a frame in front of the lines of `output` may start now on a lane.
    ///
    /// # Errors
    ///
    /// The time at which the first frame may start, or [`NEVER`].
    #[inline]
    pub(super) fn may_start(&self, output: u16, now: u64, lane: &Lane) -> Result<usize, u64> {
        let start = |slot: &Slot, ready_ps| lane.start_of(ready_ps, &slot.frame);
        self.egress[usize::from(output)].next_to_start(now, start)
    }

    /// Removes the next frame in front of the lines of `output` that may start now on a lane.
    ///
    /// # Errors
    ///
    /// The time at which the first frame may start, or [`NEVER`].
    #[inline]
    pub(super) fn take_startable(&mut self, output: u16, now: u64, lane: &Lane) -> Result<Crossed, u64> {
        if !self.has_fast_lines {
            return self.take_crossed(output).ok_or(NEVER);
        }
        let at = self.may_start(output, now, lane)?;
        let crossed = self.egress[usize::from(output)].take_at(at).ok_or(NEVER)?;
        self.out[usize::from(output)].frames -= 1;
        Ok(crossed)
    }

    /// Counts a frame whose first bit leaves at `start_ps`.
    #[inline]
    pub(super) fn count_sent(&mut self, crossed: &Crossed, start_ps: u64) {
        self.inputs[usize::from(crossed.input)].count_sent(&crossed.slot, start_ps);
    }
}

impl FcPlane {
    /// Sends the frames in front of the lines of an output and grants the places that become free,
    /// until neither is possible.
    pub(super) fn serve_output(&mut self, events: &mut Events, switch: u16, output: u16) {
        loop {
            if let Some(lane) = self.switches[usize::from(switch)].crossbar.served(output) {
                self.send_crossed(events, lane, switch);
            } else if channels::serve(self, events, switch, output) {
                return;
            } else {
                for i in 0..self.switches[usize::from(switch)].members[usize::from(output)].len() {
                    let plane = &self.switches[usize::from(switch)];
                    let lane = plane.tx[usize::from(plane.members[usize::from(output)][i])];
                    if lane != NO_LANE {
                        self.send_crossed(events, lane, switch);
                    }
                }
            }
            if !self.grant_places(events, switch, output) {
                return;
            }
        }
    }

    /// Handles a frame that has arrived for an output.
    #[inline]
    pub(super) fn enter_crossbar(&mut self, events: &mut Events, switch: u16, entering: Buffered) {
        let now = events.now;
        let Buffered { on_line, input, output, lane: upstream, .. } = entering;
        let crossbar = &mut self.switches[usize::from(switch)].crossbar;
        if let Some(ready_ps) = crossbar.pass(now, &entering) {
            let crossed = Crossed { slot: Slot::new(on_line, upstream), input, ready_ps };
            let line = crossbar.served(output);
            channels::return_credit(self, events, upstream, ready_ps, on_line.frame.channel());
            match line {
                Some(line) if may_send_at_once(self, events, line, switch, &crossed) => {
                    self.send(events, line, switch, &crossed)
                }
                _ => {
                    self.switches[usize::from(switch)].crossbar.put_crossed(crossed, output);
                    self.serve_output(events, switch, output);
                }
            }
            return;
        }
        crossbar.enqueue(now, entering);
        let crossbar = &self.switches[usize::from(switch)].crossbar;
        if crossbar.queueing == Queueing::Fifo && crossbar.input_busy_until(input) > events.now {
            self.expect_input(events, switch, input);
        } else if self.grant_places(events, switch, output) {
            self.serve_output(events, switch, output);
        }
    }

    /// Grants the free places in front of the lines of an output. Returns whether a frame crosses
    /// at once.
    pub(super) fn grant_places(&mut self, events: &mut Events, switch: u16, output: u16) -> bool {
        let mut crosses = false;
        while let Some(input) = self.switches[usize::from(switch)].crossbar.grant(output) {
            // An input that was busy until now serves its earlier grants first, with its own event.
            let waits = self.switches[usize::from(switch)].crossbar.has_several_grants(input);
            if waits || !self.cross(events, switch, input) {
                self.expect_input(events, switch, input);
            } else {
                crosses = true;
            }
        }
        crosses
    }

    /// Schedules the event at which an input has finished the current frame.
    pub(super) fn expect_input(&mut self, events: &mut Events, switch: u16, input: u16) {
        let plane = &self.switches[usize::from(switch)];
        if let Some(lane) = plane.rx_lane(input) {
            let at_ps = plane.crossbar.input_busy_until(input).max(events.now);
            events.queue.schedule(events.sources.input_ready(lane), at_ps);
        }
    }

    /// Starts to move the first granted frame of an input. Returns whether it was possible.
    fn cross(&mut self, events: &mut Events, switch: u16, input: u16) -> bool {
        let Some(crossing) = self.switches[usize::from(switch)].crossbar.cross(events.now, input) else { return false };
        if crossing.upstream != NO_LANE {
            channels::return_credit(self, events, crossing.upstream, crossing.end_ps, crossing.channel);
        }
        if crossing.more {
            self.expect_input(events, switch, input);
        }
        true
    }

    /// Handles the end of a frame that crossed from the input at the end of a lane.
    pub(in crate::net) fn input_ready(&mut self, events: &mut Events, lane: u32) {
        let End::Switch { switch, port } = self.lanes[lane as usize].to else { return };
        let crossbar = &mut self.switches[usize::from(switch)].crossbar;
        if let Some(output) = crossbar.granted_output(port) {
            if self.cross(events, switch, port) {
                self.serve_output(events, switch, output);
            }
        } else if crossbar.input_busy_until(port) <= events.now
            && let Some(output) = crossbar.show_head(port)
        {
            self.serve_output(events, switch, output);
        }
    }

    /// Sends the next frame in front of a lane, if the line and the credits allow it. Otherwise
    /// schedules the next attempt.
    #[inline]
    fn send_crossed(&mut self, events: &mut Events, number: u32, switch: u16) {
        let now = events.now;
        let wake = events.sources.wake(number);
        let lane = &mut self.lanes[number as usize];
        if !lane.up {
            return;
        }
        let output = lane.output;
        let crossbar = &mut self.switches[usize::from(switch)].crossbar;
        if !crossbar.has_crossed(output) {
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
        let crossed = match crossbar.take_startable(output, now, lane) {
            Ok(crossed) => crossed,
            Err(NEVER) => return,
            Err(start_ps) => return lane.wake_at(&mut events.queue, wake, start_ps),
        };
        let more = crossbar.has_crossed(output);
        self.send(events, number, switch, &crossed);
        let lane = &mut self.lanes[number as usize];
        if more {
            lane.wake_at(&mut events.queue, wake, lane.free_at_ps);
        }
    }

    /// Sends a frame that has crossed on a free line with a credit.
    #[inline]
    fn send(&mut self, events: &mut Events, number: u32, switch: u16, crossed: &Crossed) {
        let lane = &mut self.lanes[number as usize];
        let sent = lane.send(events.now, crossed.ready_ps, &crossed.slot.frame);
        self.switches[usize::from(switch)].crossbar.count_sent(crossed, sent.start_ps);
        self.put_on_line(events, number, crossed.slot.frame, sent);
    }
}

/// Tries to send on a line of a bundle. The other lines try only if this one can send.
///
/// After a link reset a line is refused a credit again, and thus starts a new wait for it, when a
/// frame comes in front of it or when LRR has arrived, not when another line of its bundle tries.
pub(super) fn try_line_of_bundle(net: &mut FcPlane, events: &mut Events, number: u32, switch: u16) {
    let output = net.lanes[number as usize].output;
    let plane = &net.switches[usize::from(switch)];
    match plane.channels.as_ref().and_then(|outputs| outputs.of(output)) {
        Some((_, first, count)) if !channels::may_send(net, events, number, switch, first, count) => {
            channels::send(net, events, number, switch, first, count);
        }
        None if !may_send(net, events, number, switch) => net.send_crossed(events, number, switch),
        _ => net.serve_output(events, switch, output),
    }
}

/// Returns whether a frame in front of a line without virtual channels can leave now.
fn may_send(net: &mut FcPlane, events: &mut Events, number: u32, switch: u16) -> bool {
    let now = events.now;
    let lane = &mut net.lanes[number as usize];
    let crossbar = &net.switches[usize::from(switch)].crossbar;
    lane.up
        && lane.free_at_ps <= now
        && crossbar.has_crossed(lane.output)
        && lane.has_credit(now)
        && (!crossbar.has_fast_lines || crossbar.may_start(lane.output, now, lane).is_ok())
}

/// Returns whether a line is free, has a credit, and can start the frame now.
#[inline]
fn may_send_at_once(net: &mut FcPlane, events: &mut Events, line: u32, switch: u16, crossed: &Crossed) -> bool {
    let now = events.now;
    let lane = &mut net.lanes[line as usize];
    lane.up
        && lane.free_at_ps <= now
        && lane.has_credit(now)
        && (!net.switches[usize::from(switch)].crossbar.has_fast_lines
            || lane.start_of(crossed.ready_ps, &crossed.slot.frame) <= now)
}

/// Lets the first frame on a slow line wait until enough of it has arrived for its output. Returns
/// whether it waits.
///
/// A faster line that has started to send the frame would stand still for its last bits. Of several
/// links that the switch may choose for the frame, the fastest counts. The choice follows when the
/// frame enters the switch, because it depends on the load and the turn at that time.
#[cold]
pub(super) fn waits_for_output(net: &mut FcPlane, events: &mut Events, number: u32) -> bool {
    let lane = &net.lanes[number as usize];
    let End::Switch { switch, port } = lane.to else { return false };
    let first = lane.flight.first();
    // Includes the latency of the switch.
    let tail_ps = first.tail_ps();
    let time_ps = time_on_fastest_output(net, switch, port, &first.frame);
    let enough_ps = time_ps.map_or(0, |time_ps| tail_ps.saturating_sub(time_ps));
    let waits = enough_ps > events.now;
    let (at_ps, tail_ps) = if waits { (enough_ps, tail_ps) } else { (events.now, tail_ps - lane.latency_ps) };
    net.lanes[number as usize].flight.set_first(InFlight::new(first.frame, at_ps, tail_ps));
    if waits {
        events.queue.add(events.sources.arrival(number), at_ps);
    }
    waits
}

/// Returns the time in ps of a frame on the fastest line through which a switch may forward it, or
/// `None` if the switch does not forward it.
fn time_on_fastest_output(net: &FcPlane, switch: u16, ingress: u16, frame: &FrameRef) -> Option<u64> {
    let plane = &net.switches[usize::from(switch)];
    let on_line = |&port: &u16| Some(net.lanes[plane.tx_lane(port)? as usize].time_of(frame.wire_bytes()));
    let on_output = |output: u16| plane.members[usize::from(output)].iter().filter_map(on_line).min();
    match plane.fib.decide(ingress, frame.s_id(), frame.d_id(), frame.ox_id()) {
        Decision::Forward(Egress::Port(port)) => on_output(port),
        Decision::Forward(Egress::Bundle(bundle)) => on_output(plane.bundle_output[usize::from(bundle)]),
        Decision::Forward(Egress::Spray(group)) => {
            let legs = plane.fib.spray_members(group).iter();
            legs.filter_map(|&leg| on_output(plane.output_of_leg(leg))).min()
        }
        Decision::Local | Decision::Drop(_) => None,
    }
}

/// Prepares the crossbar of a switch and its incoming lanes for lines that are faster than frames
/// arrive for them.
///
/// A cut-through switch forwards a frame of a slower line so late that its output can send it
/// without a pause. Otherwise the frame would occupy places and lines that stand still. For a frame
/// of a trunk the fastest line of the switch counts, so that no frame overtakes an earlier one of
/// its trunk.
pub(super) fn mark_fast_lines(lanes: &mut [Lane], plane: &mut SwitchPlane, number: u16, config: &Switch) {
    let at_switch = |end| matches!(end, End::Switch { switch, .. } if switch == number);
    let is_slower = |a: (u64, u64), b: (u64, u64)| a.0 * b.1 > b.0 * a.1;
    let sends = lanes.iter().filter(|lane| at_switch(lane.from)).map(Lane::ps_per_byte);
    if let Some(fastest) = sends.reduce(|best, rate| if is_slower(best, rate) { rate } else { best }) {
        for lane in lanes.iter_mut().filter(|lane| at_switch(lane.to) && lane.entry == Entry::Header) {
            if is_slower(lane.ps_per_byte(), fastest) {
                lane.entry = if lane.bundle.is_some() { Entry::ForFastest } else { Entry::ForOutput };
                lane.faster = Some((fastest.0 as u32, fastest.1 as u16));
            }
        }
    }
    let limits = &config.crossbar;
    plane.crossbar.has_fast_lines = limits.speedup_percent < 100 || limits.bandwidth_bit_per_s.is_some();
}
