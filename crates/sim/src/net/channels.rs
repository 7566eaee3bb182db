//! Virtual channels of the links between switches: credits, waits and the scheduler of a lane, and
//! the outputs of a switch for them.
//!
//! A port with virtual channels has one output of the crossbar for each channel, with places in
//! front of the line of its own. A frame whose channel has no credit therefore blocks no frame of
//! another channel. Only lanes with channels have the state of this module; all other lanes pass it
//! by.

use super::frame_ref::{FrameRef, GAP_BYTES};
use super::lane::{End, Lane};
use super::queue::NEVER;
use super::{Net, NetPlan, SwitchPlane};
use sanloom_fc::config::{ChannelCredits, FABRIC_CHANNEL, MAX_CHANNELS, Priority};
use std::collections::{BTreeMap, BTreeSet, VecDeque};

/// First address of the services and controllers of switches.
const FIRST_SERVICE: u32 = 0xff_fc00;

/// State of the virtual channels of a lane.
#[derive(Clone, Debug)]
pub struct LaneChannels {
    /// Channels of the lane, by number.
    list: Vec<Channel>,
    /// Channels in `list` with a frame that waits for a credit, one bit each.
    waiting: u16,
    scheduler: Scheduler,
}

/// One virtual channel of a lane.
#[derive(Clone, Debug)]
pub struct Channel {
    /// Number, 0 to 15.
    pub number: u8,
    /// Receive buffers at the other end.
    pub granted: u32,
    /// Available credits, without those that have arrived but are not applied yet.
    pub credits: u32,
    /// Sorted arrival times of the returning credits.
    returning: VecDeque<u64>,
    /// Time since which a frame has waited for a credit, [`NEVER`] if none waits.
    waits_since_ps: u64,
    /// Time during which a frame waited for a credit, in ps, without an open wait.
    waited_ps: u64,
    frames: u64,
    bytes: u64,
    /// Withheld credits.
    pub(super) withheld: u32,
    /// Lost credits.
    pub(super) missing: u32,
}

/// Counters of a virtual channel, which never decrease.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct ChannelCount {
    /// Number of the channel, 0 to 15.
    pub number: u8,
    /// Receive buffers at the other end.
    pub granted: u32,
    /// Frames sent.
    pub frames: u64,
    /// Bytes sent, from SOF to EOF.
    pub bytes: u64,
    /// Time during which a frame waited for a credit, in ps, including an open wait.
    pub credit_wait_ps: u64,
}

impl Channel {
    fn new(number: u8, granted: u32) -> Channel {
        Channel {
            number,
            granted,
            credits: granted,
            returning: VecDeque::new(),
            waits_since_ps: NEVER,
            waited_ps: 0,
            frames: 0,
            bytes: 0,
            withheld: 0,
            missing: 0,
        }
    }

    /// Applies the credits that have arrived by `now`. Returns whether a frame may be sent.
    fn has_credit(&mut self, now: u64) -> bool {
        while self.next_credit() <= now {
            self.returning.pop_front();
            self.credits += 1;
        }
        self.credits > 0
    }

    /// Returns the arrival time of the next credit, or [`NEVER`].
    fn next_credit(&self) -> u64 {
        self.returning.front().copied().unwrap_or(NEVER)
    }

    fn expect_credit(&mut self, at_ps: u64) {
        let position = self.returning.partition_point(|&other| other <= at_ps);
        self.returning.insert(position, at_ps);
    }

    /// Returns the number of returning credits.
    pub fn returning(&self) -> u32 {
        self.returning.len() as u32
    }

    /// Starts a wait for a credit. Returns false if it has already begun.
    fn start_wait(&mut self, now: u64) -> bool {
        let starts = self.waits_since_ps == NEVER;
        self.waits_since_ps = self.waits_since_ps.min(now);
        starts
    }

    fn end_wait(&mut self, now: u64) {
        if self.waits_since_ps != NEVER {
            self.waited_ps += now - self.waits_since_ps;
            self.waits_since_ps = NEVER;
        }
    }

    /// Returns the counters at `now`.
    pub fn count(&self, now: u64) -> ChannelCount {
        let present = if self.waits_since_ps == NEVER { 0 } else { now.saturating_sub(self.waits_since_ps) };
        ChannelCount {
            number: self.number,
            granted: self.granted,
            frames: self.frames,
            bytes: self.bytes,
            credit_wait_ps: self.waited_ps + present,
        }
    }
}

impl LaneChannels {
    fn new(credits: &ChannelCredits) -> LaneChannels {
        let channel = |number: u8| Channel::new(number, credits.0[usize::from(number)].into());
        LaneChannels { list: credits.channels().map(channel).collect(), waiting: 0, scheduler: Scheduler::default() }
    }

    /// Returns the channels, by number.
    pub fn list(&self) -> &[Channel] {
        &self.list
    }

    pub(super) fn list_mut(&mut self) -> &mut [Channel] {
        &mut self.list
    }

    /// Returns a channel by its number.
    pub(super) fn get_mut(&mut self, number: u8) -> Option<&mut Channel> {
        self.list.iter_mut().find(|channel| channel.number == number)
    }

    /// Returns the start of the longest present wait for a credit, or [`NEVER`].
    pub(super) fn waits_since_ps(&self) -> u64 {
        self.list.iter().map(|channel| channel.waits_since_ps).min().unwrap_or(NEVER)
    }

    /// Returns whether a frame of a channel waits for a credit and none is returning.
    pub(super) fn is_stuck(&self, number: u8) -> bool {
        let waits = |channel: &Channel| channel.waits_since_ps != NEVER && channel.returning.is_empty();
        self.list.iter().any(|channel| channel.number == number && waits(channel))
    }

    /// Returns the arrival time of the next credit of a waiting channel, or [`NEVER`].
    fn next_awaited(&self) -> u64 {
        let waiting = self.list.iter().filter(|channel| channel.waits_since_ps != NEVER);
        waiting.map(Channel::next_credit).min().unwrap_or(NEVER)
    }

    /// Ends the waits of channels that have a credit at `now`.
    fn end_waits(&mut self, now: u64) {
        for (at, channel) in self.list.iter_mut().enumerate() {
            if self.waiting & 1 << at != 0 && channel.has_credit(now) {
                channel.end_wait(now);
                self.waiting &= !(1 << at);
            }
        }
    }

    /// Discards the returning credits and ends all waits. Each channel restarts with its buffers
    /// minus those in `used`, at once or at `at_ps`.
    pub(super) fn restart(&mut self, now: u64, used: [u32; MAX_CHANNELS], at_ps: Option<u64>) {
        self.clear(now);
        for channel in &mut self.list {
            let credits = channel.granted.saturating_sub(used[usize::from(channel.number)]);
            match at_ps {
                None => channel.credits = credits,
                Some(at_ps) => channel.returning = std::iter::repeat_n(at_ps, credits as usize).collect(),
            }
        }
    }

    /// Removes all credits and ends all waits.
    pub(super) fn clear(&mut self, now: u64) {
        self.waiting = 0;
        for channel in &mut self.list {
            channel.end_wait(now);
            channel.returning.clear();
            (channel.credits, channel.withheld, channel.missing) = (0, 0, 0);
        }
    }
}

/// Order of service among the channels of a line.
///
/// Frames between switches come first. The priorities share the line by weight, counted in bytes
/// (start-time fair queueing), and the channels of a priority take turns.
#[derive(Clone, Copy, Debug, Default)]
struct Scheduler {
    /// Virtual time: start of the last frame.
    virtual_time: u64,
    /// Virtual time at which the last frame of each priority ends.
    finish: [u64; Priority::ALL.len()],
    /// Channel of each priority that was served last.
    last: [u8; Priority::ALL.len()],
}

impl Scheduler {
    /// Returns the index in `list` of the channel whose frame leaves next. `may_leave` has one bit
    /// for each channel of the list.
    fn choose(&self, list: &[Channel], may_leave: u16) -> Option<usize> {
        let candidates = || (0..list.len()).filter(|at| may_leave & 1 << at != 0);
        let first = candidates().next()?;
        if list[first].number == FABRIC_CHANNEL {
            return Some(first);
        }
        let of = |at: usize| Priority::of_channel(list[at].number);
        let start = |priority: Priority| self.finish[priority as usize].max(self.virtual_time);
        let priority = candidates().map(of).min_by_key(|&priority| (start(priority), priority))?;
        let last = self.last[priority as usize];
        let turn = |at: &usize| (list[*at].number <= last, list[*at].number);
        candidates().filter(|&at| of(at) == priority).min_by_key(turn)
    }

    /// Records that a frame of a data channel leaves.
    fn serve(&mut self, channel: u8, bytes: u64) {
        if channel == FABRIC_CHANNEL {
            return;
        }
        let priority = Priority::of_channel(channel);
        let start = self.finish[priority as usize].max(self.virtual_time);
        self.virtual_time = start;
        self.finish[priority as usize] = start + bytes * Priority::High.weight() / priority.weight();
        self.last[priority as usize] = channel;
    }
}

/// Outputs of a switch for virtual channels, numbered after the outputs of the ports.
#[derive(Debug)]
pub(super) struct ChannelOutputs {
    /// Number of ports.
    ports: u16,
    /// For each port that has them: its first channel output and its channels.
    of_port: Vec<Option<(u16, ChannelCredits)>>,
    /// Port and channel of each channel output, from the first one on.
    of_output: Vec<(u16, u8)>,
}

impl ChannelOutputs {
    /// Returns the outputs for the lanes with channels that begin at a switch, or `None` if there
    /// are none. `output_of` has the output of each port, which is the first port of its trunk.
    pub(super) fn of_switch(switch: u16, output_of: &[u16], net: &NetPlan) -> Option<Box<ChannelOutputs>> {
        let ports = output_of.len();
        let mut outputs = ChannelOutputs { ports: ports as u16, of_port: vec![None; ports], of_output: Vec::new() };
        for (lane, credits) in &net.channels {
            let End::Switch { switch: from, port } = net.lanes[*lane as usize].from else { continue };
            let port = output_of.get(usize::from(port)).copied().filter(|_| from == switch);
            let Some(port) = port else { continue };
            let first = outputs.ports + outputs.of_output.len() as u16;
            let of_port = &mut outputs.of_port[usize::from(port)];
            if let Some((_, other)) = of_port {
                debug_assert!(other.has_same_channels(credits), "the lanes of a trunk have the same channels");
            } else {
                *of_port = Some((first, *credits));
                outputs.of_output.extend(credits.channels().map(|channel| (port, channel)));
            }
        }
        (!outputs.of_output.is_empty()).then(|| Box::new(outputs))
    }

    /// Returns the ports of the channel outputs, in the order of the outputs.
    pub(super) fn ports(&self) -> impl Iterator<Item = u16> + '_ {
        self.of_output.iter().map(|&(port, _)| port)
    }

    /// Returns the first channel output of a port and the number of its channels.
    fn range(&self, port: u16) -> Option<(u16, usize)> {
        let (first, credits) = self.of_port.get(usize::from(port))?.as_ref()?;
        Some((*first, credits.channels().count()))
    }

    /// Returns the output of a port for a frame with this priority; `None`: between switches.
    fn output(&self, port: u16, priority: Option<Priority>, d_id: u32) -> u16 {
        let Some(Some((first, credits))) = self.of_port.get(usize::from(port)) else { return port };
        let channel = priority.map_or(FABRIC_CHANNEL, |priority| credits.channel_of(priority, d_id));
        first + credits.channels().take_while(|&other| other != channel).count() as u16
    }
}

impl SwitchPlane {
    /// Returns the port of an output: its own number, or the port of a channel output.
    pub(super) fn port_of(&self, output: u16) -> u16 {
        let of_channel = || {
            let outputs = self.channels.as_ref()?;
            outputs.of_output.get(usize::from(output.checked_sub(outputs.ports)?)).map(|&(port, _)| port)
        };
        of_channel().unwrap_or(output)
    }

    /// Returns the virtual channel of an output.
    pub(super) fn channel_of(&self, output: u16) -> Option<u8> {
        let outputs = self.channels.as_ref()?;
        outputs.of_output.get(usize::from(output.checked_sub(outputs.ports)?)).map(|&(_, channel)| channel)
    }

    /// Returns all outputs of a port: its own and those of its channels.
    pub(super) fn outputs_of(&self, port: u16) -> impl Iterator<Item = u16> + use<> {
        let (first, count) = self.channels.as_ref().and_then(|outputs| outputs.range(port)).unwrap_or_default();
        std::iter::once(port).chain(first..first + count as u16)
    }
}

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
}

impl Priorities {
    /// Sets the priority of the frames from one address to another.
    pub fn set_pair(&mut self, s_id: u32, d_id: u32, priority: Priority) {
        match priority {
            Priority::Medium => self.pairs.remove(&(s_id, d_id)),
            _ => self.pairs.insert((s_id, d_id), priority),
        };
    }

    /// Starts or ends the quarantine of an address.
    pub fn quarantine(&mut self, d_id: u32, starts: bool) {
        let changes = if starts { self.quarantined.insert(d_id) } else { self.quarantined.remove(&d_id) };
        if changes {
            self.changed.insert(d_id);
        }
    }

    /// Returns the addresses in quarantine.
    pub fn quarantined(&self) -> &BTreeSet<u32> {
        &self.quarantined
    }
}

impl Net {
    /// Gives a lane virtual channels. The lane begins and ends at a switch. It has no credit
    /// recovery by state changes, which count R_RDYs without their channel.
    pub(super) fn add_channels(&mut self, number: u32, credits: &ChannelCredits) {
        let lane = &mut self.lanes[number as usize];
        debug_assert_eq!(credits.0.iter().map(|&count| u32::from(count)).sum::<u32>(), lane.bb_credit);
        lane.special = true;
        lane.has_channels = true;
        lane.state_changes.n = 0;
        self.channels[number as usize] = Some(Box::new(LaneChannels::new(credits)));
        self.has_channels = true;
    }

    /// Returns the virtual channels of a lane, if it has them.
    pub fn channels(&self, lane: u32) -> Option<&LaneChannels> {
        self.channels[lane as usize].as_deref()
    }

    /// Chooses the output for a frame that enters a switch through `input`. `output` is the port
    /// that the forwarding table has chosen.
    pub(super) fn choose_channel(&mut self, switch: u16, input: u16, output: u16, frame: &mut FrameRef) -> u16 {
        let (s_id, d_id) = (frame.s_id().to_u32(), frame.d_id().to_u32());
        let plane = &self.switches[usize::from(switch)];
        let Some(outputs) = &plane.channels else {
            self.mark(switch, input, frame);
            return output;
        };
        if d_id >= FIRST_SERVICE {
            return outputs.output(output, None, d_id);
        }
        self.mark(switch, input, frame);
        let plane = &self.switches[usize::from(switch)];
        let Some(outputs) = &plane.channels else { return output };
        let own = Priority::of_channel(frame.channel());
        let held = self.priorities.quarantined.contains(&d_id);
        let wanted = outputs.output(output, Some(if held { Priority::Low } else { own }), d_id);
        if wanted == output || !self.priorities.changed.contains(&d_id) {
            return wanted;
        }
        // A frame follows the earlier frames of its exchange, so that none overtakes another.
        let other = outputs.output(output, Some(if held { own } else { Priority::Low }), d_id);
        let is_same = |other: &FrameRef| {
            (other.s_id().to_u32(), other.d_id().to_u32(), other.ox_id()) == (s_id, d_id, frame.ox_id())
        };
        if plane.crossbar.holds(other, is_same) { other } else { wanted }
    }

    /// Marks a frame that arrives from an N_Port with its priority.
    fn mark(&self, switch: u16, input: u16, frame: &mut FrameRef) {
        let arrives = self.switches[usize::from(switch)].rx_lane(input);
        if arrives.is_some_and(|lane| matches!(self.lanes[lane as usize].from, End::NPort(_))) {
            let pair = (frame.s_id().to_u32(), frame.d_id().to_u32());
            let priority = self.priorities.pairs.get(&pair).copied().unwrap_or_default();
            frame.set_channel(priority.channels().start);
        }
    }

    /// Returns whether an output or its port has virtual channels.
    pub(super) fn has_channel_outputs(&self, switch: u16, output: u16) -> bool {
        let plane = &self.switches[usize::from(switch)];
        plane.channels.as_ref().is_some_and(|outputs| outputs.range(plane.port_of(output)).is_some())
    }

    /// Sends the frames in front of the lines of a port with virtual channels and grants the places
    /// that become free, until neither is possible. `output` is the port or one of its channel
    /// outputs.
    pub(super) fn serve_channels(&mut self, switch: u16, output: u16) {
        let plane = &self.switches[usize::from(switch)];
        let port = plane.port_of(output);
        let Some((first, count)) = plane.channels.as_ref().and_then(|outputs| outputs.range(port)) else { return };
        // Channels whose places may be granted.
        let mut grants: u16 = if output == port { 0 } else { 1 << (output - first) };
        loop {
            for i in 0..self.switches[usize::from(switch)].members[usize::from(port)].len() {
                let plane = &self.switches[usize::from(switch)];
                let lane = plane.tx[usize::from(plane.members[usize::from(port)][i])];
                if lane != super::NO_LANE
                    && let Some(freed) = self.send_on_channel(lane, switch, first)
                {
                    grants |= 1 << freed;
                }
            }
            let mut crosses = false;
            for at in (0..count).filter(|at| grants & 1 << at != 0) {
                crosses |= self.grant_places(switch, first + at as u16);
            }
            grants = 0;
            if !crosses {
                return;
            }
        }
    }

    /// Sends the next frame in front of a lane with virtual channels, if the line and the credits
    /// allow it, and schedules the next attempt. `first` is the output of its first channel.
    /// Returns the index of the channel that has sent a frame.
    fn send_on_channel(&mut self, number: u32, switch: u16, first: u16) -> Option<usize> {
        let now = self.now;
        let channels = self.channels[number as usize].as_mut()?;
        let lane = &mut self.lanes[number as usize];
        if !lane.up {
            return None;
        }
        channels.end_waits(now);
        let crossbar = &mut self.switches[usize::from(switch)].crossbar;
        let mut ready = 0;
        for at in 0..channels.list.len() {
            ready |= u16::from(crossbar.has_crossed(first + at as u16)) << at;
        }
        let mut sent = None;
        if lane.free_at_ps <= now {
            let mut may_leave = ready;
            for (at, channel) in channels.list.iter_mut().enumerate() {
                if ready & 1 << at != 0 && !channel.has_credit(now) {
                    may_leave &= !(1 << at);
                    channels.waiting |= 1 << at;
                    if channel.start_wait(now) {
                        self.queue.schedule_earlier(self.sources.watchdog(number), now + self.e_d_tov_ps);
                    }
                }
            }
            sent = channels.scheduler.choose(&channels.list, may_leave);
        }
        if let Some(at) = sent
            && let Some(mut crossed) = crossbar.take_crossed(first + at as u16)
        {
            let bytes = crossed.slot.frame.wire_bytes();
            let channel = &mut channels.list[at];
            channel.credits -= 1;
            (channel.frames, channel.bytes) = (channel.frames + 1, channel.bytes + bytes);
            channels.scheduler.serve(channel.number, bytes + GAP_BYTES);
            crossed.slot.frame.set_channel(channel.number);
            if !crossbar.has_crossed(first + at as u16) {
                ready &= !(1 << at);
            }
            // The credits of the lane are the sum over the channels, so one is there.
            let has_credit = lane.has_credit(now);
            debug_assert!(has_credit, "lane {number} has a credit");
            let times = lane.send(now, crossed.ready_ps, &crossed.slot.frame);
            crossbar.count_sent(&crossed, times.start_ps);
            self.put_on_line(number, crossed.slot.frame, times);
        }
        self.expect_attempt(number, ready);
        sent
    }

    /// Schedules the next attempt of a lane with virtual channels, and starts or ends the wait of
    /// the lane. `ready` has one bit for each channel with a frame in front of the line.
    fn expect_attempt(&mut self, number: u32, ready: u16) {
        let now = self.now;
        let wake = self.sources.wake(number);
        let Some(channels) = &self.channels[number as usize] else { return };
        let lane = &mut self.lanes[number as usize];
        if channels.waiting == 0 {
            lane.end_credit_wait(now);
        } else {
            lane.credit_wait_since_ps = lane.credit_wait_since_ps.min(now);
        }
        let free = if ready & !channels.waiting != 0 { lane.free_at_ps } else { NEVER };
        lane.wake_at(&mut self.queue, wake, free.min(channels.next_awaited()));
    }

    /// Returns a credit of a lane with virtual channels; its R_RDY leaves at `ready_ps`.
    pub(super) fn return_to_channel(&mut self, number: u32, channel: u8, ready_ps: u64) {
        let wake = self.sources.wake(number);
        let lane = &mut self.lanes[number as usize];
        lane.credit_returns(ready_ps);
        let at_ps = ready_ps + lane.r_rdy_ps;
        let Some(channel) = self.channels[number as usize].as_mut().and_then(|all| all.get_mut(channel)) else {
            return;
        };
        channel.expect_credit(at_ps);
        if channel.waits_since_ps != NEVER {
            let time = channel.next_credit().max(self.now);
            lane.wake_by(&mut self.queue, wake, time);
        }
    }

    /// Returns the credits in use by frames on the line of a lane and in its receiver's buffers, by
    /// channel.
    pub(super) fn used_by_channel(&self, number: u32) -> [u32; MAX_CHANNELS] {
        let lane = &self.lanes[number as usize];
        let mut used = self.held_by_channel(lane);
        for on_line in lane.flight.iter() {
            used[usize::from(on_line.frame.channel())] += 1;
        }
        used
    }

    /// Returns the receive buffers at the end of a lane that hold a frame, by channel.
    pub(super) fn held_by_channel(&self, lane: &Lane) -> [u32; MAX_CHANNELS] {
        let mut held = [0; MAX_CHANNELS];
        if let End::Switch { switch, port } = lane.to {
            for buffered in self.switches[usize::from(switch)].crossbar.frames_of(port) {
                held[usize::from(buffered.on_line.frame.channel())] += 1;
            }
        }
        held
    }

    /// Checks that the credits of every channel of a lane add up to its receive buffers, and those
    /// of the channels to the credits of the lane.
    pub(super) fn check_channels(&self, number: u32) -> bool {
        let Some(channels) = &self.channels[number as usize] else { return true };
        let used = self.used_by_channel(number);
        let lane = &self.lanes[number as usize];
        let adds_up = |channel: &Channel| {
            let used = used[usize::from(channel.number)];
            channel.credits + channel.returning() + used + channel.missing + channel.withheld == channel.granted
        };
        let all: u32 = channels.list.iter().map(|channel| channel.credits + channel.returning()).sum();
        channels.list.iter().all(adds_up) && all == lane.credits + lane.credits_returning()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn list(numbers: &[u8]) -> Vec<Channel> {
        numbers.iter().map(|&number| Channel::new(number, 1)).collect()
    }

    /// Serves persistent demand of the channels and counts their frames.
    fn served(numbers: &[u8], frames: usize) -> Vec<usize> {
        let (list, mut scheduler) = (list(numbers), Scheduler::default());
        let mut counts = vec![0; numbers.len()];
        for _ in 0..frames {
            let at = scheduler.choose(&list, (1 << numbers.len()) - 1).expect("a frame");
            scheduler.serve(list[at].number, 2_172);
            counts[at] += 1;
        }
        counts
    }

    #[test]
    fn priorities_share_the_line_by_weight_and_channels_take_turns() {
        assert_eq!(served(&[2, 3, 4, 5], 400), [100; 4]);
        assert_eq!(served(&[2, 8, 10], 1_000), [300, 100, 600]);
        assert_eq!(served(&[2, 3, 10, 11], 900), [150, 150, 300, 300]);
        assert_eq!(served(&[2, 8], 400), [300, 100]);
    }

    #[test]
    fn a_priority_that_was_idle_gets_no_extra_share() {
        let (list, mut scheduler) = (list(&[2, 10]), Scheduler::default());
        for _ in 0..100 {
            scheduler.serve(2, 2_172);
        }
        let mut high = 0;
        for _ in 0..90 {
            let at = scheduler.choose(&list, 0b11).expect("a frame");
            scheduler.serve(list[at].number, 2_172);
            high += usize::from(list[at].number == 10);
        }
        assert!((59..=61).contains(&high), "{high} of 90");
    }

    #[test]
    fn frames_between_switches_leave_first() {
        let (list, scheduler) = (list(&[0, 2, 10]), Scheduler::default());
        assert_eq!(scheduler.choose(&list, 0b111), Some(0));
        assert_eq!(scheduler.choose(&list, 0b110), Some(2));
        assert_eq!(scheduler.choose(&list, 0), None);
    }
}
