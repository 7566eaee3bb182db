//! Search for lanes that wait for each other's buffers in a circle.
//!
//! The search runs when the lifetime of a packet ends, at the end of the warm-up, and at the end of
//! the run. A search at each blocked lane would cost time per packet.

use super::InfinibandPlane;
use super::line::Station;
use super::packet::has_credit;
use crate::net::circle::{circle_behind, keep_stuck};
use sanloom_transport::infiniband::credit::CreditUpdate;
use std::collections::BTreeMap;

/// Most deadlocks that are kept.
const MOST: usize = 16;

/// A line with a lane.
type Wait = (u32, u8);

/// A circle of lanes, each of which waits for buffers that packets for the next one occupy.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Deadlock {
    /// Time at which it was found, in ps. If `stands`, the time at which the last of its packets
    /// began to wait.
    pub at_ps: u64,
    /// True if it was found because it held at the end of the warm-up or of the run; false if the
    /// lifetime of one of its packets ended.
    pub stands: bool,
    /// Lines and lanes of the circle.
    pub waits: Vec<(u32, u8)>,
}

impl InfinibandPlane {
    /// Returns the deadlocks that were found when lifetimes ended, and the one that held when the
    /// counters were last reset.
    pub fn deadlocks(&self) -> &[Deadlock] {
        &self.deadlocks
    }

    /// Returns a deadlock that holds at `now`.
    pub fn standing_deadlock(&self, now: u64) -> Option<Deadlock> {
        let mut after: BTreeMap<Wait, Vec<Wait>> = BTreeMap::new();
        for (number, line) in (0..).zip(&self.lines).filter(|(_, line)| line.blocked != 0) {
            let stuck = (0..line.data_lanes).filter(|lane| self.is_stuck(now, (number, *lane)));
            after.extend(stuck.filter_map(|lane| Some(((number, lane), self.holders((number, lane))?))));
        }
        keep_stuck(&mut after);
        let waits = circle_behind(*after.keys().next()?, &after)?;
        let began = waits.iter().map(|(line, lane)| self.lines[*line as usize].lanes[usize::from(*lane)].since_ps);
        Some(Deadlock { at_ps: began.max()?, stands: true, waits })
    }

    /// Forgets the deadlocks but for one that holds now.
    pub(in crate::net) fn restart_deadlocks(&mut self, now: u64) {
        self.deadlocks.clear();
        let standing = self.standing_deadlock(now);
        self.deadlocks.extend(standing);
    }

    /// Looks for a deadlock that holds a packet whose lifetime has ended, before it is dropped.
    #[cold]
    #[inline(never)]
    pub(super) fn note_deadlock(&mut self, now: u64, line: u32, lane: u8) {
        if self.deadlocks.len() < MOST
            && let Some(waits) = self.circle(now, (line, lane))
        {
            self.deadlocks.push(Deadlock { at_ps: now, stands: false, waits });
        }
    }

    /// Returns a circle of waits behind a lane. There is one only if no lane that it waits for,
    /// directly or indirectly, can go on.
    fn circle(&self, now: u64, start: Wait) -> Option<Vec<Wait>> {
        let mut after: BTreeMap<Wait, Vec<Wait>> = BTreeMap::new();
        let mut next = vec![start];
        while let Some(at) = next.pop() {
            if after.contains_key(&at) {
                continue;
            }
            if !self.is_stuck(now, at) {
                return None;
            }
            let waits_for = self.holders(at)?;
            next.extend(&waits_for);
            after.insert(at, waits_for);
        }
        circle_behind(start, &after)
    }

    /// Returns whether a lane waits for credit that is not under way.
    fn is_stuck(&self, now: u64, (number, lane): Wait) -> bool {
        let (line, reverse) = (&self.lines[number as usize], &self.lines[(number ^ 1) as usize]);
        let is_blocked = has_credit(lane) && line.blocked & 1 << lane != 0 && line.busy.free_at_ps <= now;
        let credit_comes = reverse.due & 1 << lane != 0 || reverse.updates.iter().any(|update| update.lane == lane);
        is_blocked && !credit_comes && !self.is_refreshed((number, lane))
    }

    /// Returns whether the receiver of a lane has free blocks that its sender does not know of,
    /// because flow-control packets were lost. The next refresh brings them.
    fn is_refreshed(&self, (number, lane): Wait) -> bool {
        let state = &self.lines[number as usize].lanes[usize::from(lane)];
        let mut sender = state.sender;
        let before = sender.available();
        sender.receive(CreditUpdate { fctbs: sender.fctbs(), fccl: state.receiver.fccl() });
        sender.available() > before
    }

    /// Returns the lanes whose packets occupy the buffers at the end of a lane. `None` if buffers
    /// will be free: those of an interface, or of packets that arrive or leave.
    fn holders(&self, (number, lane): Wait) -> Option<Vec<Wait>> {
        let input = &self.lines[number as usize];
        let Station::Switch { switch, port } = input.to else { return None };
        if input.flight.iter().any(|on_line| on_line.packet.lane() == lane) {
            return None;
        }
        let queues = &self.nodes[usize::from(switch)];
        let mut found = Vec::new();
        for &out in &self.switches[usize::from(switch)].tx {
            let Some(line) = self.lines.get(out as usize) else { continue };
            if line.leaving.is_some_and(|leaving| (leaving.from, leaving.lane) == (number, lane)) {
                return None;
            }
            let lanes = (0..line.data_lanes).filter(|own| queues.holds_from(line.queues.1, *own, port, lane));
            found.extend(lanes.map(|own| (out, own)));
        }
        (!found.is_empty()).then_some(found)
    }
}
