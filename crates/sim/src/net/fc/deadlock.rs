//! Credit deadlocks: lanes that wait for each other's buffers in a circle.
//!
//! The search runs before the watchdog discards frames or resets a link, and at the end of the run.

use super::FcPlane;
use super::channels::LaneChannels;
use super::crossbar::Buffered;
use super::lane::End;
use super::observe::Incident;
use crate::net::GAP_BYTES;
use crate::net::circle::{circle_behind, keep_stuck};
use crate::net::events::Events;
use crate::net::queue::NEVER;
use sanloom_fc::config::MAX_FRAME_BYTES;
use std::collections::{BTreeMap, BTreeSet};

/// A lane, or one of its virtual channels.
type Wait = (u32, Option<u8>);

/// A circle of lanes that holds at the end of a run.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct StandingDeadlock {
    /// Time since which the last of its lanes has waited, in ps.
    pub since_ps: u64,
    /// The lanes of the circle, the lowest number first. Each waits for the next, and the last for
    /// the first.
    pub cycle: Vec<u32>,
}

impl StandingDeadlock {
    /// Returns a credit deadlock that holds at `now` and that only discards and link resets can
    /// end: every buffer behind each of its lanes has a frame for lanes that can never go on.
    pub fn find(net: &FcPlane, now: u64) -> Option<StandingDeadlock> {
        let search = Standing { net, now };
        let mut after: BTreeMap<Wait, Vec<Wait>> = BTreeMap::new();
        for wait in (0..net.lanes.len() as u32).flat_map(|lane| waits_of(net, lane)) {
            after.extend(search.is_blocked(wait).then(|| search.holders(wait)).flatten().map(|next| (wait, next)));
        }
        keep_stuck(&mut after);
        let waits = circle_behind(*after.keys().next()?, &after)?;
        let since_ps = waits.iter().map(|wait| search.waits_since_ps(*wait)).max()?;
        Some(StandingDeadlock { since_ps, cycle: lanes_of(&waits) })
    }
}

/// A search at the end of a run.
struct Standing<'a> {
    net: &'a FcPlane,
    now: u64,
}

impl Standing<'_> {
    /// Returns whether a wait has lasted longer than a frame needs to cross a switch and its credit
    /// to return.
    fn is_blocked(&self, wait: Wait) -> bool {
        let lane = &self.net.lanes[wait.0 as usize];
        let crossing_ps = 2 * (lane.time_of(u64::from(MAX_FRAME_BYTES) + GAP_BYTES) + lane.propagation_ps);
        is_without_credit(self.net, wait) && self.now.saturating_sub(self.waits_since_ps(wait)) > crossing_ps
    }

    fn waits_since_ps(&self, (number, channel): Wait) -> u64 {
        match (channel, self.net.channels(number)) {
            (Some(channel), Some(channels)) => channels.waits_since_of(channel),
            _ => self.net.lanes[number as usize].credit_wait_since_ps,
        }
    }

    /// Returns the waits whose frames occupy the buffers at the end of a lane. `None` if a buffer
    /// is free, or will be: a frame in it leaves over a lane that is down, or to no lane.
    fn holders(&self, (number, channel): Wait) -> Option<Vec<Wait>> {
        let lane = &self.net.lanes[number as usize];
        let End::Switch { switch, port } = lane.to else { return None };
        let plane = &self.net.switches[usize::from(switch)];
        let buffers = match (channel, self.net.channels(number)) {
            (Some(channel), Some(channels)) => channels.granted_to(channel),
            _ => lane.bb_credit,
        };
        let is_of_wait = |held: &&Buffered| channel.is_none_or(|own| held.on_line.frame.channel() == own);
        let held = plane.crossbar.frames_of(port).iter().filter(is_of_wait).count() as u64;
        if held < u64::from(buffers) {
            return None;
        }
        let frames = plane.crossbar.next_frames_of(port);
        let outputs: BTreeSet<u16> = frames.iter().filter(is_of_wait).map(|held| held.output).collect();
        let mut next = Vec::new();
        for output in outputs {
            let members = plane.members[usize::from(output)].iter().filter_map(|member| plane.tx_lane(*member));
            let up: Vec<u32> = members.filter(|lane| self.net.lanes[*lane as usize].up).collect();
            if up.is_empty() {
                return None;
            }
            next.extend(up.into_iter().map(|lane| (lane, plane.channel_of(output))));
        }
        (!next.is_empty()).then_some(next)
    }
}

/// Searches for a credit deadlock and records it.
#[cold]
pub(super) fn note(net: &mut FcPlane, events: &mut Events) {
    let (path, visited) = (Vec::new(), BTreeSet::new());
    let search = DeadlockSearch { net, path, visited };
    let Some(found) = search.find() else { return };
    let now = events.now;
    for incident in &mut net.recorder.incidents {
        if let Incident::Deadlock { until_ps, cycle, .. } = incident
            && *cycle == found
        {
            *until_ps = now;
            return;
        }
    }
    net.recorder.incidents.push(Incident::Deadlock { at_ps: now, until_ps: now, cycle: found });
}

/// Returns the lanes of a circle of waits, the lowest number first.
fn lanes_of(waits: &[Wait]) -> Vec<u32> {
    let mut cycle: Vec<u32> = waits.iter().map(|&(lane, _)| lane).collect();
    let least = cycle.iter().enumerate().min_by_key(|&(_, lane)| lane).map_or(0, |(number, _)| number);
    cycle.rotate_left(least);
    cycle
}

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
            return Some(lanes_of(&self.path[at..]));
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
