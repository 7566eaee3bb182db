//! The watchdog of a lane: hold time in the receiver's buffers, credit recovery by link reset, and
//! detection of credit deadlocks.

use super::channels::LaneChannels;
use super::lane::End;
use super::observe::Incident;
use super::{FcPlane, Loss, LossSite, channels, recovery};
use crate::net::events::Events;
use crate::net::queue::NEVER;
use std::collections::BTreeSet;

impl FcPlane {
    /// Checks the hold time and the credits of a lane. It runs when a frame may have reached the
    /// hold time, or a sender may have had no credit for E_D_TOV. In a healthy network that is once
    /// per lane and hold time.
    pub(super) fn watchdog(&mut self, events: &mut Events, number: u32) {
        self.lanes[number as usize].watchdog_armed = false;
        let next_hold = self.discard_expired(events, number);
        let next_recovery = self.recover_credit(events, number);
        events.queue.schedule(events.sources.watchdog(number), next_hold.min(next_recovery));
    }

    /// Discards the frames that the lane's receiver has held too long. Returns the time of the next
    /// check.
    fn discard_expired(&mut self, events: &mut Events, number: u32) -> u64 {
        let End::Switch { switch, port } = self.lanes[number as usize].to else { return NEVER };
        let crossbar = &self.switches[usize::from(switch)].crossbar;
        let (now, hold) = (events.now, self.hold_time_ps);
        let Some(oldest) = crossbar.oldest(port) else { return NEVER };
        if oldest + hold > now {
            return oldest + hold;
        }
        debug_assert!(!self.parts.is_divided(), "the network is united before frames are discarded");
        note_deadlock(self, events);
        let late = |b: &super::crossbar::Buffered| b.input == port && b.on_line.at_ps + hold <= now;
        let frames = self.discard(events, switch, Loss::HoldTime, late) as u32;
        self.recorder.incidents.push(Incident::HoldTime { at_ps: now, switch, port, frames });
        let crossbar = &self.switches[usize::from(switch)].crossbar;
        crossbar.oldest(port).map_or(NEVER, |oldest| oldest + hold)
    }

    /// Resets the link if its sender has had no credit for E_D_TOV. Returns the time of the next
    /// check.
    fn recover_credit(&mut self, events: &mut Events, number: u32) -> u64 {
        let now = events.now;
        let lane = &self.lanes[number as usize];
        let channels = self.channels[number as usize].as_ref();
        let since = channels.map_or(lane.credit_wait_since_ps, |channels| channels.waits_since_ps());
        // A sender on a virtual link has no credits; it waits for its Ethernet port.
        if !lane.up || since == NEVER || self.fcoe.has(number) {
            return NEVER;
        }
        let due = since + self.e_d_tov_ps;
        if due > now {
            return due;
        }
        debug_assert!(!self.parts.is_divided(), "the network is united before a link is reset");
        note_deadlock(self, events);
        if let End::Switch { switch, port } = self.lanes[number as usize].to {
            let mut lost = Vec::new();
            let crossbar = &mut self.switches[usize::from(switch)].crossbar;
            crossbar.discard(now, |b| b.input == port && !b.crossed, |b| lost.push(b.on_line.frame));
            for frame in &lost {
                self.count_loss(frame, Loss::LinkReset, LossSite::Receiver(number));
            }
            if !lost.is_empty() {
                self.wake_all(events, switch);
            }
        }
        let in_flight = self.lanes[number as usize].flight.len() as u32 + self.held_by_receiver(number);
        let used = channels::used(self, number);
        recovery::restart(self, number);
        let wake = events.sources.wake(number);
        let lane = &mut self.lanes[number as usize];
        lane.receiver.set_withheld(now, 0);
        lane.receiver.last_ps = 0;
        lane.end_credit_wait(now);
        lane.resets += 1;
        // LR travels out and LRR back: two words and twice the propagation delay.
        let restart = now + 2 * lane.propagation_ps + lane.time_of(8);
        let credits = lane.bb_credit.saturating_sub(in_flight);
        lane.restart_credits(credits, Some(restart));
        if let Some(channels) = &mut self.channels[number as usize] {
            channels.restart(now, used, Some(restart));
        }
        lane.wake_at(&mut events.queue, wake, restart);
        self.recorder.reset(number, lane, credits, now, restart);
        self.recorder.incidents.push(Incident::LinkReset { at_ps: now, lane: number });
        NEVER
    }
}

/// Searches for a credit deadlock and records it if it is new.
fn note_deadlock(net: &mut FcPlane, events: &mut Events) {
    let (path, visited) = (Vec::new(), BTreeSet::new());
    let search = DeadlockSearch { net, path, visited };
    let Some(cycle) = search.find() else { return };
    let known = |incident: &Incident| matches!(incident, Incident::Deadlock { cycle: c, .. } if *c == cycle);
    if !net.recorder.incidents.iter().any(known) {
        net.recorder.incidents.push(Incident::Deadlock { at_ps: events.now, cycle });
    }
}

/// A lane, or one of its virtual channels.
type Wait = (u32, Option<u8>);

/// A search for lanes that wait for each other's buffers. The virtual channels of a lane wait
/// separately.
struct DeadlockSearch<'a> {
    net: &'a FcPlane,
    /// Waits from the start of the search to the current one, each for the next.
    path: Vec<Wait>,
    visited: BTreeSet<Wait>,
}

impl DeadlockSearch<'_> {
    /// Returns a cycle of lanes in which each lane has no credit, because its receiver's buffers
    /// hold frames for the next lane. The cycle begins with the lowest lane number.
    fn find(mut self) -> Option<Vec<u32>> {
        (0..self.net.lanes.len() as u32).flat_map(|lane| waits_of(self.net, lane)).find_map(|start| self.visit(start))
    }

    fn visit(&mut self, wait: Wait) -> Option<Vec<u32>> {
        if let Some(at) = self.path.iter().position(|&other| other == wait) {
            let mut cycle: Vec<u32> = self.path[at..].iter().map(|&(lane, _)| lane).collect();
            let least = cycle.iter().enumerate().min_by_key(|&(_, lane)| lane).map_or(0, |(i, _)| i);
            cycle.rotate_left(least);
            return Some(cycle);
        }
        let (number, channel) = wait;
        let lane = &self.net.lanes[number as usize];
        let End::Switch { switch, port } = lane.to else { return None };
        if !is_without_credit(self.net, wait) || !self.visited.insert(wait) {
            return None;
        }
        self.path.push(wait);
        let plane = &self.net.switches[usize::from(switch)];
        let frames = plane.crossbar.frames_of(port);
        let of_wait = frames.iter().filter(|held| channel.is_none_or(|number| held.on_line.frame.channel() == number));
        let outputs: BTreeSet<u16> = of_wait.map(|held| held.output).collect();
        for output in outputs {
            for &member in &plane.members[usize::from(output)] {
                if let Some(next) = plane.tx_lane(member)
                    && let Some(cycle) = self.visit((next, plane.channel_of(output)))
                {
                    return Some(cycle);
                }
            }
        }
        self.path.pop();
        None
    }
}

/// Returns what can wait for credit on a lane: the lane, or each of its virtual channels.
fn waits_of(net: &FcPlane, lane: u32) -> Vec<Wait> {
    let numbers = |channels: &LaneChannels| channels.list().iter().map(|c| (lane, Some(c.number))).collect();
    net.channels(lane).map_or_else(|| vec![(lane, None)], numbers)
}

/// Returns whether a frame waits for a credit and none is returning.
fn is_without_credit(net: &FcPlane, (number, channel): Wait) -> bool {
    let lane = &net.lanes[number as usize];
    match (channel, net.channels(number)) {
        (Some(channel), Some(channels)) => channels.is_stuck(channel),
        _ => lane.credit_wait_since_ps != NEVER && lane.credits_returning() == 0,
    }
}
