//! Search for lanes that wait for each other's buffers in a circle.

use super::InfinibandPlane;
use super::line::Station;
use super::packet::has_credit;
use std::collections::BTreeMap;

/// Most deadlocks that are kept.
const MOST: usize = 16;

/// A circle of lanes, each of which waits for buffers that packets for the next one occupy.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Deadlock {
    /// Time at which it was found, in ps.
    pub at_ps: u64,
    /// Lines and lanes of the circle.
    pub waits: Vec<(u32, u8)>,
}

impl InfinibandPlane {
    /// Returns the deadlocks that were found when lifetimes ended.
    pub fn deadlocks(&self) -> &[Deadlock] {
        &self.deadlocks
    }

    /// Looks for a deadlock that holds a packet whose lifetime has ended, before it is dropped.
    #[cold]
    #[inline(never)]
    pub(super) fn note_deadlock(&mut self, now: u64, line: u32, lane: u8) {
        if self.deadlocks.len() < MOST
            && let Some(waits) = self.circle(now, (line, lane))
        {
            self.deadlocks.push(Deadlock { at_ps: now, waits });
        }
    }

    /// Returns a circle of waits behind a lane. There is one only if no lane that it waits for,
    /// directly or indirectly, can go on.
    fn circle(&self, now: u64, start: (u32, u8)) -> Option<Vec<(u32, u8)>> {
        let mut after: BTreeMap<(u32, u8), Vec<(u32, u8)>> = BTreeMap::new();
        let mut next = vec![start];
        while let Some(at) = next.pop() {
            if after.contains_key(&at) {
                continue;
            }
            if !self.is_stuck(now, at) {
                return None;
            }
            let waits_for = self.holders(at);
            // Buffers of an interface, or of packets that are leaving, will be free.
            if waits_for.is_empty() {
                return None;
            }
            next.extend(&waits_for);
            after.insert(at, waits_for);
        }
        // Everything waits: each way ends in a circle.
        let mut way = vec![start];
        loop {
            let last = *way.last()?;
            let to = *after.get(&last)?.first()?;
            if let Some(begin) = way.iter().position(|other| *other == to) {
                return Some(way.split_off(begin));
            }
            way.push(to);
        }
    }

    /// Returns whether a lane waits for credit that is not under way.
    fn is_stuck(&self, now: u64, (number, lane): (u32, u8)) -> bool {
        let (line, reverse) = (&self.lines[number as usize], &self.lines[(number ^ 1) as usize]);
        let is_blocked = has_credit(lane) && line.blocked & 1 << lane != 0 && line.busy.free_at_ps <= now;
        let credit_comes = reverse.due & 1 << lane != 0 || reverse.updates.iter().any(|update| update.lane == lane);
        is_blocked && !credit_comes
    }

    /// Returns the lanes whose packets occupy the buffers at the end of a lane.
    fn holders(&self, (number, lane): (u32, u8)) -> Vec<(u32, u8)> {
        let Station::Switch { switch, port } = self.lines[number as usize].to else { return Vec::new() };
        let queues = &self.nodes[usize::from(switch)];
        let mut found = Vec::new();
        for &out in &self.switches[usize::from(switch)].tx {
            let Some(line) = self.lines.get(out as usize) else { continue };
            let lanes = (0..line.data_lanes).filter(|own| queues.holds_from(line.queues.1, *own, port, lane));
            found.extend(lanes.map(|own| (out, own)));
        }
        found
    }
}
