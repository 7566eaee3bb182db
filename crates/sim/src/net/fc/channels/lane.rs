//! Credits, waits and the scheduler of the virtual channels of a lane.

use crate::net::queue::NEVER;
use sanloom_fc::config::{ChannelCredits, FABRIC_CHANNEL, MAX_CHANNELS, Priority};
use std::cmp::Reverse;
use std::collections::VecDeque;

/// State of the virtual channels of a lane.
#[derive(Clone, Debug)]
pub struct LaneChannels {
    /// Channels of the lane, by number.
    pub(super) list: Vec<Channel>,
    /// Position in `list` of each channel by its number; a position behind the end if the lane does
    /// not have the channel.
    positions: [u8; MAX_CHANNELS],
    /// Channels in `list` with a frame that waits for a credit, one bit each.
    pub(super) waiting: u16,
    pub(super) scheduler: Scheduler,
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
    pub(super) waits_since_ps: u64,
    /// Time during which a frame waited for a credit, in ps, without an open wait.
    waited_ps: u64,
    pub(super) frames: u64,
    pub(super) bytes: u64,
    /// Withheld credits.
    pub(in crate::net) withheld: u32,
    /// Lost credits.
    pub(in crate::net) missing: u32,
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

    /// Returns whether a frame may be sent. Applies the credits that have arrived by `now` if no
    /// other is left.
    #[inline]
    pub(super) fn has_credit(&mut self, now: u64) -> bool {
        self.credits > 0 || self.take_credits(now)
    }

    fn take_credits(&mut self, now: u64) -> bool {
        while self.next_credit() <= now {
            self.returning.pop_front();
            self.credits += 1;
        }
        self.credits > 0
    }

    /// Returns the arrival time of the next credit, or [`NEVER`].
    pub(super) fn next_credit(&self) -> u64 {
        self.returning.front().copied().unwrap_or(NEVER)
    }

    #[inline]
    pub(super) fn expect_credit(&mut self, at_ps: u64) {
        if self.returning.back().is_none_or(|&last| last <= at_ps) {
            return self.returning.push_back(at_ps);
        }
        let position = self.returning.partition_point(|&other| other <= at_ps);
        self.returning.insert(position, at_ps);
    }

    /// Returns the number of returning credits.
    pub fn returning(&self) -> u32 {
        self.returning.len() as u32
    }

    /// Starts a wait for a credit. Returns false if it has already begun.
    pub(super) fn start_wait(&mut self, now: u64) -> bool {
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
    pub(super) fn new(credits: &ChannelCredits) -> LaneChannels {
        let channel = |number: u8| Channel::new(number, credits.0[usize::from(number)].into());
        let list: Vec<Channel> = credits.channels().map(channel).collect();
        let scheduler = Scheduler::new(&list);
        let mut positions = [u8::MAX; MAX_CHANNELS];
        list.iter().zip(0..).for_each(|(channel, at)| positions[usize::from(channel.number)] = at);
        LaneChannels { list, positions, waiting: 0, scheduler }
    }

    /// Returns the channels, by number.
    pub fn list(&self) -> &[Channel] {
        &self.list
    }

    /// Returns the credits of the channels for data frames.
    pub fn data_credits(&self) -> u32 {
        self.data_channels().map(|channel| channel.granted).sum()
    }

    /// Returns the credits of the data channel that has the fewest.
    pub fn fewest_data_credits(&self) -> Option<u32> {
        self.data_channels().map(|channel| channel.granted).min()
    }

    fn data_channels(&self) -> impl Iterator<Item = &Channel> {
        self.list.iter().filter(|channel| channel.number != FABRIC_CHANNEL)
    }

    pub(in crate::net) fn list_mut(&mut self) -> &mut [Channel] {
        &mut self.list
    }

    /// Returns a channel by its number.
    pub(in crate::net) fn get_mut(&mut self, number: u8) -> Option<&mut Channel> {
        let position = self.positions.get(usize::from(number))?;
        self.list.get_mut(usize::from(*position))
    }

    /// Returns the start of the longest present wait for a credit, or [`NEVER`].
    pub(in crate::net) fn waits_since_ps(&self) -> u64 {
        self.list.iter().map(|channel| channel.waits_since_ps).min().unwrap_or(NEVER)
    }

    /// Returns whether a frame of a channel waits for a credit and none is returning.
    pub(in crate::net) fn is_stuck(&self, number: u8) -> bool {
        let waits = |channel: &Channel| channel.waits_since_ps != NEVER && channel.returning.is_empty();
        self.list.iter().any(|channel| channel.number == number && waits(channel))
    }

    /// Returns the time since which a frame of a channel has waited for a credit, or [`NEVER`].
    pub(in crate::net) fn waits_since_of(&self, number: u8) -> u64 {
        self.list.iter().find(|channel| channel.number == number).map_or(NEVER, |channel| channel.waits_since_ps)
    }

    /// Returns the receive buffers of a channel at the other end.
    pub(in crate::net) fn granted_to(&self, number: u8) -> u32 {
        self.list.iter().find(|channel| channel.number == number).map_or(0, |channel| channel.granted)
    }

    /// Returns the arrival time of the next credit of a waiting channel, or [`NEVER`].
    pub(super) fn next_awaited(&self) -> u64 {
        if self.waiting == 0 {
            return NEVER;
        }
        let waiting = self.list.iter().filter(|channel| channel.waits_since_ps != NEVER);
        waiting.map(Channel::next_credit).min().unwrap_or(NEVER)
    }

    /// Ends the waits of channels that have a credit at `now`.
    #[inline]
    pub(super) fn end_waits(&mut self, now: u64) {
        for at in bits(self.waiting) {
            let channel = &mut self.list[at];
            if channel.has_credit(now) {
                channel.end_wait(now);
                self.waiting &= !(1 << at);
            }
        }
    }

    /// Discards the returning credits and ends all waits. Each channel restarts with its buffers
    /// minus those in `used`, at once or at `at_ps`.
    pub(in crate::net) fn restart(&mut self, now: u64, used: [u32; MAX_CHANNELS], at_ps: Option<u64>) {
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
    pub(in crate::net) fn clear(&mut self, now: u64) {
        self.waiting = 0;
        for channel in &mut self.list {
            channel.end_wait(now);
            channel.returning.clear();
            (channel.credits, channel.withheld, channel.missing) = (0, 0, 0);
        }
    }
}

/// Iterates over the positions of the bits that are set, from the lowest one.
#[inline]
pub(super) fn bits(mut mask: u16) -> impl Iterator<Item = usize> {
    std::iter::from_fn(move || {
        let at = (mask != 0).then(|| mask.trailing_zeros() as usize);
        mask &= mask.wrapping_sub(1);
        at
    })
}

/// Order of service among the channels of a line.
///
/// Frames between switches come first. The priorities share the line by weight, counted in bytes
/// (start-time fair queueing), and the channels of a priority take turns. A mask has one bit for
/// each channel of the lane, in the order of their numbers.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Scheduler {
    /// Virtual time: start of the last frame.
    virtual_time: u64,
    /// Virtual time at which the last frame of each priority ends.
    finish: [u64; Priority::ALL.len()],
    /// Channels of each priority.
    of_priority: [u16; Priority::ALL.len()],
    /// Channels of each priority up to the one that was served last.
    served: [u16; Priority::ALL.len()],
    /// The channel for frames between switches.
    fabric: u16,
}

impl Scheduler {
    fn new(list: &[Channel]) -> Scheduler {
        let mut scheduler = Scheduler::default();
        for (at, channel) in list.iter().enumerate() {
            let mask = match channel.number {
                FABRIC_CHANNEL => &mut scheduler.fabric,
                number => &mut scheduler.of_priority[Priority::of_channel(number) as usize],
            };
            *mask |= 1 << at;
        }
        scheduler
    }

    /// Returns the position of the channel whose frame leaves next, among those of a mask.
    #[inline]
    pub(super) fn choose(&self, may_leave: u16) -> Option<usize> {
        let from_fabric = may_leave & self.fabric;
        let candidates = if from_fabric != 0 { from_fabric } else { may_leave };
        if candidates & candidates.wrapping_sub(1) == 0 {
            return (candidates != 0).then(|| candidates.trailing_zeros() as usize);
        }
        let waiting = Priority::ALL.into_iter().filter(|&priority| candidates & self.of(priority) != 0);
        let start = |priority: Priority| self.finish[priority as usize].max(self.virtual_time);
        let priority = waiting.min_by_key(|&priority| (start(priority), Reverse(priority)))?;
        let candidates = candidates & self.of(priority);
        let behind = candidates & !self.served[priority as usize];
        Some(if behind != 0 { behind } else { candidates }.trailing_zeros() as usize)
    }

    fn of(&self, priority: Priority) -> u16 {
        self.of_priority[priority as usize]
    }

    /// Records that a frame of a channel leaves.
    #[inline]
    pub(super) fn serve(&mut self, at: usize, bytes: u64) {
        let Some(priority) = Priority::ALL.into_iter().find(|&priority| self.of(priority) & 1 << at != 0) else {
            return;
        };
        let start = self.finish[priority as usize].max(self.virtual_time);
        self.virtual_time = start;
        self.finish[priority as usize] = start + bytes * Priority::High.weight() / priority.weight();
        self.served[priority as usize] = u16::MAX >> (15 - at);
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
        let mut scheduler = Scheduler::new(&list(numbers));
        let mut counts = vec![0; numbers.len()];
        for _ in 0..frames {
            let at = scheduler.choose((1 << numbers.len()) - 1).expect("a frame");
            scheduler.serve(at, 2_172);
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
        let mut scheduler = Scheduler::new(&list(&[2, 10]));
        for _ in 0..100 {
            scheduler.serve(0, 2_172);
        }
        let mut high = 0;
        for _ in 0..90 {
            let at = scheduler.choose(0b11).expect("a frame");
            scheduler.serve(at, 2_172);
            high += at;
        }
        assert!((59..=61).contains(&high), "{high} of 90");
    }

    #[test]
    fn frames_between_switches_leave_first() {
        let scheduler = Scheduler::new(&list(&[0, 2, 10]));
        assert_eq!(scheduler.choose(0b111), Some(0));
        assert_eq!(scheduler.choose(0b110), Some(2));
        assert_eq!(scheduler.choose(0), None);
    }
}
