//! Virtual channels of the links between switches: credits, waits and the scheduler of a lane, and
//! the outputs of a switch for them.
//!
//! A port with virtual channels has one output of the crossbar for each channel, with places in
//! front of the line of its own. A frame whose channel has no credit therefore blocks no frame of
//! another channel. Only lanes with channels have the state of this module; all other lanes pass it
//! by.

mod lane;
mod outputs;

use lane::bits;
pub use lane::{Channel, ChannelCount, LaneChannels};
pub(super) use outputs::ChannelOutputs;

use super::frame_ref::{FrameRef, GAP_BYTES};
use super::lane::{End, Lane};
use super::{FcPlane, NO_LANE, parts};
use crate::net::events::Events;
use crate::net::queue::NEVER;
use sanloom_fc::config::{ChannelCredits, MAX_CHANNELS, Priority};
use std::collections::{BTreeMap, BTreeSet};

/// First address of the services and controllers of switches.
const FIRST_SERVICE: u32 = 0xff_fc00;

/// Priorities of addresses and pairs of addresses.
#[derive(Debug, Default)]
pub struct Priorities {
    /// Priority of the frames from S_ID to D_ID; medium if absent.
    pairs: BTreeMap<(u32, u32), Priority>,
    /// Addresses in quarantine.
    quarantined: BTreeSet<u32>,
    /// Addresses whose frames may still be on channels of another priority because their quarantine
    /// has begun or ended.
    changed: BTreeSet<u32>,
    /// True once a pair or an address has had a priority of its own.
    any: bool,
}

impl Priorities {
    /// Sets the priority of the frames from one address to another.
    pub fn set_pair(&mut self, s_id: u32, d_id: u32, priority: Priority) {
        self.any = true;
        match priority {
            Priority::Medium => self.pairs.remove(&(s_id, d_id)),
            _ => self.pairs.insert((s_id, d_id), priority),
        };
    }

    /// Starts or ends the quarantine of an address.
    pub fn quarantine(&mut self, d_id: u32, starts: bool) {
        let changes = if starts { self.quarantined.insert(d_id) } else { self.quarantined.remove(&d_id) };
        if changes {
            self.any = true;
            self.changed.insert(d_id);
        }
    }

    /// Returns the addresses in quarantine.
    pub fn quarantined(&self) -> &BTreeSet<u32> {
        &self.quarantined
    }
}

impl FcPlane {
    /// Returns the virtual channels of a lane, if it has them.
    pub fn channels(&self, lane: u32) -> Option<&LaneChannels> {
        self.channels[lane as usize].as_deref()
    }
}

/// Gives a lane virtual channels. The lane begins and ends at a switch.
pub(super) fn add(net: &mut FcPlane, number: u32, credits: &ChannelCredits) {
    let lane = &mut net.lanes[number as usize];
    debug_assert_eq!(credits.0.iter().map(|&count| u32::from(count)).sum::<u32>(), lane.bb_credit);
    lane.has_channels = true;
    net.channels[number as usize] = Some(Box::new(LaneChannels::new(credits)));
    net.has_channels = true;
}

/// Chooses the output for a frame that arrives on a lane, or with [`NO_LANE`] from the processor of
/// the switch, and marks the frame with its priority. `output` is the port that the forwarding
/// table has chosen.
pub(super) fn choose(net: &FcPlane, switch: u16, arrives: u32, output: u16, mut frame: FrameRef) -> (u16, FrameRef) {
    let output = choose_output(net, switch, arrives, output, &mut frame);
    (output, frame)
}

fn choose_output(net: &FcPlane, switch: u16, arrives: u32, output: u16, frame: &mut FrameRef) -> u16 {
    let (s_id, d_id) = (frame.s_id().to_u32(), frame.d_id().to_u32());
    let plane = &net.switches[usize::from(switch)];
    let Some(outputs) = &plane.channels else {
        mark(net, arrives, frame);
        return output;
    };
    if d_id >= FIRST_SERVICE {
        return outputs.output(output, None, d_id);
    }
    mark(net, arrives, frame);
    let own = Priority::of_channel(frame.channel());
    if !net.priorities.any {
        return outputs.output(output, Some(own), d_id);
    }
    let held = net.priorities.quarantined.contains(&d_id);
    let wanted = outputs.output(output, Some(if held { Priority::Low } else { own }), d_id);
    if wanted == output || !net.priorities.changed.contains(&d_id) {
        return wanted;
    }
    // A frame follows the earlier frames of its exchange, so that none overtakes another.
    let other = outputs.output(output, Some(if held { own } else { Priority::Low }), d_id);
    let is_same =
        |other: &FrameRef| (other.s_id().to_u32(), other.d_id().to_u32(), other.ox_id()) == (s_id, d_id, frame.ox_id());
    if plane.crossbar.holds(other, is_same) { other } else { wanted }
}

/// Marks a frame that arrives from an N_Port with its priority.
#[inline]
fn mark(net: &FcPlane, arrives: u32, frame: &mut FrameRef) {
    if arrives == NO_LANE || !matches!(net.lanes[arrives as usize].from, End::NPort(_) | End::Loop { .. }) {
        return;
    }
    let mut priority = Priority::Medium;
    if net.priorities.any {
        let pair = (frame.s_id().to_u32(), frame.d_id().to_u32());
        priority = net.priorities.pairs.get(&pair).copied().unwrap_or_default();
    }
    frame.set_channel(priority.channels().start);
}

/// Sends the frames in front of the lines of a port with virtual channels and grants the places
/// that become free, until neither is possible. `output` is the port or one of its channel
/// outputs. Returns false if the port has no virtual channels.
pub(super) fn serve(net: &mut FcPlane, events: &mut Events, switch: u16, output: u16) -> bool {
    let plane = &net.switches[usize::from(switch)];
    let Some((port, first, count)) = plane.channels.as_ref().and_then(|outputs| outputs.of(output)) else {
        return false;
    };
    // Channels whose places may be granted.
    let mut grants: u16 = if output == port { 0 } else { 1 << (output - first) };
    loop {
        for i in 0..net.switches[usize::from(switch)].members[usize::from(port)].len() {
            let plane = &net.switches[usize::from(switch)];
            let lane = plane.tx[usize::from(plane.members[usize::from(port)][i])];
            if lane != NO_LANE
                && let Some(freed) = send(net, events, lane, switch, first, count)
            {
                grants |= 1 << freed;
            }
        }
        let mut crosses = false;
        for at in bits(grants) {
            crosses |= net.grant_places(events, switch, first + at as u16);
        }
        grants = 0;
        if !crosses {
            return true;
        }
    }
}

/// Returns whether a frame in front of a lane with virtual channels can leave now. `first` is the
/// output of its first channel, `count` the number of channels.
pub(super) fn may_send(
    net: &mut FcPlane,
    events: &mut Events,
    number: u32,
    switch: u16,
    first: u16,
    count: u16,
) -> bool {
    let now = events.now;
    let lane = &net.lanes[number as usize];
    let Some(channels) = &mut net.channels[number as usize] else { return false };
    let crossbar = &net.switches[usize::from(switch)].crossbar;
    let mut may_leave = |at: usize| {
        channels.list[at].has_credit(now)
            && (!crossbar.has_fast_lines || crossbar.may_start(first + at as u16, now, lane).is_ok())
    };
    lane.up && lane.free_at_ps <= now && bits(crossbar.crossed(first, count)).any(&mut may_leave)
}

/// Sends the next frame in front of a lane with virtual channels, if the line and the credits
/// allow it, and schedules the next attempt. `first` is the output of its first channel, `count`
/// the number of channels. Returns the position of the channel that has sent a frame.
pub(super) fn send(
    net: &mut FcPlane,
    events: &mut Events,
    number: u32,
    switch: u16,
    first: u16,
    count: u16,
) -> Option<usize> {
    let now = events.now;
    let channels = net.channels[number as usize].as_mut()?;
    let lane = &mut net.lanes[number as usize];
    let is_expected = lane.free_at_ps > now && lane.wake_ps() == lane.free_at_ps;
    if !lane.up || is_expected && channels.waiting == 0 && lane.credit_wait_since_ps == NEVER {
        return None;
    }
    channels.end_waits(now);
    let crossbar = &mut net.switches[usize::from(switch)].crossbar;
    let mut ready = crossbar.crossed(first, count);
    let mut sent = None;
    // Time at which the first of the frames can start that have not yet arrived far enough.
    let mut start_ps = NEVER;
    if lane.free_at_ps <= now {
        let mut may_leave = ready & !channels.waiting;
        for at in bits(may_leave) {
            if crossbar.has_fast_lines
                && let Err(later_ps) = crossbar.may_start(first + at as u16, now, lane)
            {
                may_leave &= !(1 << at);
                start_ps = start_ps.min(later_ps);
            } else if !channels.list[at].has_credit(now) {
                may_leave &= !(1 << at);
                channels.waiting |= 1 << at;
                if channels.list[at].start_wait(now) {
                    events.queue.schedule_earlier(events.sources.watchdog(number), now + net.e_d_tov_ps);
                }
            }
        }
        sent = channels.scheduler.choose(may_leave);
    }
    if let Some(at) = sent
        && let Ok(mut crossed) = crossbar.take_startable(first + at as u16, now, lane)
    {
        let bytes = crossed.slot.frame.wire_bytes();
        channels.scheduler.serve(at, bytes + GAP_BYTES);
        let channel = &mut channels.list[at];
        channel.credits -= 1;
        (channel.frames, channel.bytes) = (channel.frames + 1, channel.bytes + bytes);
        crossed.slot.frame.set_channel(channel.number);
        if !crossbar.has_crossed(first + at as u16) {
            ready &= !(1 << at);
        }
        // The credits of the lane are the sum over the channels, so one is there.
        let has_credit = lane.has_credit(now);
        debug_assert!(has_credit, "lane {number} has a credit");
        let times = lane.send(now, crossed.ready_ps, &crossed.slot.frame);
        crossbar.count_sent(&crossed, times.start_ps);
        net.put_on_line(events, number, crossed.slot.frame, times);
    }
    expect_attempt(net, events, number, ready, start_ps);
    sent
}

/// Schedules the next attempt of a lane with virtual channels, and starts or ends the wait of
/// the lane. `ready` has one bit for each channel with a frame in front of the line. If the line is
/// free, the first of them can start at `start_ps`.
fn expect_attempt(net: &mut FcPlane, events: &mut Events, number: u32, ready: u16, start_ps: u64) {
    let now = events.now;
    let wake = events.sources.wake(number);
    let Some(channels) = &net.channels[number as usize] else { return };
    let lane = &mut net.lanes[number as usize];
    if channels.waiting == 0 {
        lane.end_credit_wait(now);
    } else {
        lane.credit_wait_since_ps = lane.credit_wait_since_ps.min(now);
    }
    let next_ps = if lane.free_at_ps > now { lane.free_at_ps } else { start_ps };
    let free = if ready & !channels.waiting != 0 { next_ps } else { NEVER };
    lane.wake_at(&mut events.queue, wake, free.min(channels.next_awaited()));
}

/// Returns the R_RDY for a receive buffer at the end of a lane that becomes free at `at_ps`.
/// `channel` is the virtual channel of the frame, if the lane has virtual channels.
#[inline]
pub(super) fn return_credit(net: &mut FcPlane, events: &mut Events, number: u32, at_ps: u64, channel: u8) {
    let lane = &net.lanes[number as usize];
    if !lane.has_channels {
        net.return_credit(events, number, at_ps);
    } else if lane.up {
        return_to_channel(net, events, number, at_ps, channel);
    }
}

/// Returns a credit of a lane with virtual channels; the buffer becomes free at `at_ps`.
fn return_to_channel(net: &mut FcPlane, events: &mut Events, number: u32, at_ps: u64, channel: u8) {
    let mut ready_ps = at_ps;
    if net.lanes[number as usize].special {
        match net.apply_r_rdy_faults(events, number, at_ps, channel) {
            Some(time) => ready_ps = time,
            None => return,
        }
        if net.parts.is_away(number) {
            return parts::return_across(net, number, ready_ps, channel);
        }
    }
    let lane = &mut net.lanes[number as usize];
    lane.credit_returns(ready_ps);
    let at_ps = ready_ps + lane.r_rdy_ps;
    channel_expects(net, events, number, channel, at_ps);
}

/// Adds a credit that arrives at the sender of a lane at `at_ps`. `channel` is ignored if the lane
/// has no virtual channels.
pub(super) fn expect_credit(net: &mut FcPlane, events: &mut Events, number: u32, channel: u8, at_ps: u64) {
    let lane = &mut net.lanes[number as usize];
    lane.expect_credit(at_ps);
    if lane.has_channels {
        channel_expects(net, events, number, channel, at_ps);
    } else if lane.credit_wait_since_ps != NEVER {
        let time = lane.next_credit().max(events.now);
        lane.wake_by(&mut events.queue, events.sources.wake(number), time);
    }
}

/// Adds a credit of a channel, which arrives at `at_ps`.
fn channel_expects(net: &mut FcPlane, events: &mut Events, number: u32, channel: u8, at_ps: u64) {
    let Some(channel) = net.channels[number as usize].as_mut().and_then(|all| all.get_mut(channel)) else {
        return;
    };
    channel.expect_credit(at_ps);
    if channel.waits_since_ps != NEVER {
        let time = channel.next_credit().max(events.now);
        net.lanes[number as usize].wake_by(&mut events.queue, events.sources.wake(number), time);
    }
}

/// Returns the credits in use by frames on the line of a lane and in its receiver's buffers, by
/// channel.
pub(super) fn used(net: &FcPlane, number: u32) -> [u32; MAX_CHANNELS] {
    let lane = &net.lanes[number as usize];
    let mut used = held(net, lane);
    for on_line in lane.flight.iter() {
        used[usize::from(on_line.frame.channel())] += 1;
    }
    used
}

/// Returns the receive buffers at the end of a lane that hold a frame, by channel.
pub(super) fn held(net: &FcPlane, lane: &Lane) -> [u32; MAX_CHANNELS] {
    let mut held = [0; MAX_CHANNELS];
    if let End::Switch { switch, port } = lane.to {
        for buffered in net.switches[usize::from(switch)].crossbar.frames_of(port) {
            held[usize::from(buffered.on_line.frame.channel())] += 1;
        }
    }
    held
}

/// Checks that the credits of every channel of a lane add up to its receive buffers, and those
/// of the channels to the credits of the lane.
pub(super) fn adds_up(net: &FcPlane, number: u32) -> bool {
    let Some(channels) = &net.channels[number as usize] else { return true };
    let used = used(net, number);
    let lane = &net.lanes[number as usize];
    let adds_up = |channel: &Channel| {
        let used = used[usize::from(channel.number)];
        channel.credits + channel.returning() + used + channel.missing + channel.withheld == channel.granted
    };
    let all: u32 = channels.list.iter().map(|channel| channel.credits + channel.returning()).sum();
    channels.list.iter().all(adds_up) && all == lane.credits + lane.credits_returning()
}
