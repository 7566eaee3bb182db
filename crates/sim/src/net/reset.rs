//! The watchdog of a lane: hold time of the frames in the receiver's buffers, credit recovery by link reset, and credit
//! deadlocks.

use super::lane::End;
use super::observe::Incident;
use super::queue::NEVER;
use super::{Loss, Net, Place};
use std::collections::BTreeSet;

impl Net {
    /// Looks after a lane. It runs when a frame may have been held for the hold time or a sender may have been without
    /// credit for E_D_TOV; in a healthy network that is once for each hold time and lane.
    pub(super) fn watchdog(&mut self, number: u32) {
        self.lanes[number as usize].guarded = false;
        let next_hold = self.discard_held(number);
        let next_starving = self.recover_credit(number);
        self.queue.schedule(3 * self.lanes.len() as u32 + number, next_hold.min(next_starving));
    }

    /// Discards what the receiver of the lane has held too long; returns when to look again.
    fn discard_held(&mut self, number: u32) -> u64 {
        let End::Switch { switch, port } = self.lanes[number as usize].to else { return NEVER };
        let crossbar = &self.switches[usize::from(switch)].crossbar;
        let (now, hold) = (self.now, self.hold_time_ps);
        let Some(oldest) = crossbar.oldest(port) else { return NEVER };
        if oldest + hold > now {
            return oldest + hold;
        }
        self.note_deadlock();
        let late = |b: &super::crossbar::Buffered| b.input == port && b.on_line.at_ps + hold <= now;
        let frames = self.discard(switch, Loss::HoldTime, late) as u32;
        self.incidents.push(Incident::HoldTime { at_ps: now, switch, port, frames });
        let crossbar = &self.switches[usize::from(switch)].crossbar;
        crossbar.oldest(port).map_or(NEVER, |oldest| oldest + hold)
    }

    /// Resets the link when its sender has had no credit for E_D_TOV; returns when to look again.
    fn recover_credit(&mut self, number: u32) -> u64 {
        let now = self.now;
        let lane = &self.lanes[number as usize];
        if !lane.up || lane.starving_since_ps == NEVER {
            return NEVER;
        }
        let due = lane.starving_since_ps + self.e_d_tov_ps;
        if due > now {
            return due;
        }
        self.note_deadlock();
        if let End::Switch { switch, port } = self.lanes[number as usize].to {
            let mut lost = Vec::new();
            let crossbar = &mut self.switches[usize::from(switch)].crossbar;
            crossbar.discard(now, |b| b.input == port, |b| lost.push(b.on_line.frame));
            for frame in &lost {
                self.lose(frame, Loss::LinkReset, Place::Receiver(number));
            }
            if !lost.is_empty() {
                self.wake_all(switch);
            }
        }
        let in_flight = self.lanes[number as usize].flight.len() as u32 + self.held_by_receiver(number);
        if let Some(fault) = &mut self.faults[number as usize] {
            fault.credits_missing = 0;
        }
        let wake = self.wake_source(number);
        let lane = &mut self.lanes[number as usize];
        lane.receiver.keep(now, 0);
        lane.receiver.last_ps = 0;
        lane.fed(now);
        lane.resets += 1;
        // LR goes out, LRR comes back: two words and twice the way.
        let restart = now + 2 * lane.propagation_ps + lane.time_of(8);
        let credits = lane.bb_credit.saturating_sub(in_flight);
        lane.restart_credits(credits, Some(restart));
        lane.wake_at(&mut self.queue, wake, restart);
        self.observe_reset(number, credits, restart);
        self.incidents.push(Incident::LinkReset { at_ps: now, lane: number });
        NEVER
    }

    /// Looks for lanes that wait for each other's buffers in a circle and notes a new one.
    fn note_deadlock(&mut self) {
        let Some(cycle) = self.find_deadlock() else { return };
        let known = |incident: &Incident| matches!(incident, Incident::Deadlock { cycle: c, .. } if *c == cycle);
        if !self.incidents.iter().any(known) {
            self.incidents.push(Incident::Deadlock { at_ps: self.now, cycle });
        }
    }

    /// A circle of lanes, each without credit because the receiver's buffers hold frames for the next one. Begins with
    /// the lowest number.
    fn find_deadlock(&self) -> Option<Vec<u32>> {
        let mut done = BTreeSet::new();
        for start in 0..self.lanes.len() as u32 {
            let mut path = Vec::new();
            if let Some(cycle) = self.follow(start, &mut path, &mut done) {
                return Some(cycle);
            }
        }
        None
    }

    fn follow(&self, number: u32, path: &mut Vec<u32>, done: &mut BTreeSet<u32>) -> Option<Vec<u32>> {
        if let Some(at) = path.iter().position(|&l| l == number) {
            let mut cycle = path[at..].to_vec();
            let least = cycle.iter().enumerate().min_by_key(|&(_, lane)| lane).map_or(0, |(i, _)| i);
            cycle.rotate_left(least);
            return Some(cycle);
        }
        let lane = &self.lanes[number as usize];
        let End::Switch { switch, port } = lane.to else { return None };
        if lane.starving_since_ps == NEVER || lane.credits_returning() > 0 || !done.insert(number) {
            return None;
        }
        path.push(number);
        let plane = &self.switches[usize::from(switch)];
        let outputs: BTreeSet<u16> = plane.crossbar.frames_of(port).iter().map(|b| b.output).collect();
        for output in outputs {
            for &member in &plane.members[usize::from(output)] {
                if let Some(next) = plane.tx_lane(member)
                    && let Some(cycle) = self.follow(next, path, done)
                {
                    return Some(cycle);
                }
            }
        }
        path.pop();
        None
    }
}
