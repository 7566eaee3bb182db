//! C-LOOK: sweeps in one direction.

use sanloom_core::config::Target;
use std::cmp::Reverse;
use std::collections::BinaryHeap;

/// A waiting command at the place where it begins. The order is the order of a sweep.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(super) struct Stop {
    pub(super) lun: Target,
    pub(super) lba: u64,
    pub(super) seq: u64,
    pub(super) command: u32,
}

/// Two sweeps over all LUNs from the lowest place to the highest: the one under way, and the next.
///
/// A command beyond the last place served joins the sweep under way, any other the next one. A command at exactly the
/// last place waits too; otherwise requests for one popular place could hold the sweep there for ever.
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

    /// The stop to serve next, among those that are still `valid`; others are dropped.
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

    /// Serves the stop that [`Elevator::first`] found.
    pub(super) fn serve(&mut self) {
        if let Some(Reverse(stop)) = self.now.pop() {
            self.last_served = Some((stop.lun, stop.lba));
        }
    }
}
