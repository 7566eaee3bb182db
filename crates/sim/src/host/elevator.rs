//! C-LOOK scheduling: sweeps in one direction.

use sanloom_fc::config::Target;
use std::cmp::Reverse;
use std::collections::BinaryHeap;

/// A waiting command with its first block. The order of stops is the order of a sweep.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(super) struct Stop {
    pub(super) lun: Target,
    pub(super) lba: u64,
    pub(super) seq: u64,
    pub(super) command: u32,
}

/// The current and the next sweep over all LUNs, from the lowest block to the highest.
///
/// A command beyond the last served block joins the current sweep, any other command the next one.
/// A command at exactly that block also waits for the next sweep; otherwise requests for one
/// popular block could hold the sweep there forever.
#[derive(Clone, Debug, Default)]
pub(super) struct Elevator {
    now: BinaryHeap<Reverse<Stop>>,
    next: BinaryHeap<Reverse<Stop>>,
    last_served: Option<(Target, u64)>,
}

impl Elevator {
    pub(super) fn add(&mut self, stop: Stop) {
        let joins_now = self.last_served.is_none_or(|last| (stop.lun, stop.lba) > last);
        if joins_now {
            self.now.push(Reverse(stop));
        } else {
            self.next.push(Reverse(stop));
        }
    }

    /// Returns the next stop for which `valid` returns true; drops the stops before it.
    pub(super) fn first(&mut self, valid: impl Fn(&Stop) -> bool) -> Option<Stop> {
        loop {
            while let Some(Reverse(stop)) = self.now.peek() {
                if valid(stop) {
                    return Some(*stop);
                }
                self.now.pop();
            }
            if self.next.is_empty() {
                return None;
            }
            std::mem::swap(&mut self.now, &mut self.next);
            self.last_served = None;
        }
    }

    /// Removes the stop that [`Elevator::first`] returned and advances the sweep.
    pub(super) fn serve(&mut self) {
        if let Some(Reverse(stop)) = self.now.pop() {
            self.last_served = Some((stop.lun, stop.lba));
        }
    }
}
