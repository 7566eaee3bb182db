//! Timers with equal timeouts as first-in-first-out lists, linked through the exchanges.
//!
//! All exchanges in a list have the same timeout, so the order of insertion is the order of
//! deadlines. Arming, cancelling and finding the next deadline are O(1).

use sanloom_scsi::time::Instant;

/// Marks the end of a list.
pub(super) const NIL: u16 = u16::MAX;

/// List links of an exchange.
#[derive(Clone, Copy, Debug)]
pub(super) struct Timer {
    deadline: Instant,
    prev: u16,
    next: u16,
    /// List that contains the exchange, or [`UNARMED`].
    list: u8,
}

const UNARMED: u8 = u8::MAX;

impl Timer {
    pub(super) const fn unarmed() -> Timer {
        Timer { deadline: Instant::NEVER, prev: NIL, next: NIL, list: UNARMED }
    }
}

/// Element with a timer.
pub(super) trait Timed {
    fn timer(&mut self) -> &mut Timer;
    fn peek(&self) -> &Timer;
}

/// `N` lists over one vector of exchanges.
#[derive(Debug)]
pub(super) struct Timers<const N: usize> {
    ends: [(u16, u16); N],
}

impl<const N: usize> Timers<N> {
    pub(super) const fn new() -> Self {
        Timers { ends: [(NIL, NIL); N] }
    }

    /// Appends exchange `index` to `list` and removes it from any other list. A deadline before
    /// that of the last element (after a timeout was shortened) is raised to it, so that the list
    /// stays ordered.
    pub(super) fn arm<T: Timed>(&mut self, slots: &mut [T], index: u16, list: u8, deadline: Instant) {
        self.cancel(slots, index);
        let (first, last) = self.ends[usize::from(list)];
        let deadline = match slots.get(usize::from(last)) {
            Some(last) => deadline.max(last.peek().deadline),
            None => deadline,
        };
        *slots[usize::from(index)].timer() = Timer { deadline, prev: last, next: NIL, list };
        if last == NIL {
            self.ends[usize::from(list)] = (index, index);
        } else {
            slots[usize::from(last)].timer().next = index;
            self.ends[usize::from(list)] = (first, index);
        }
    }

    /// Removes exchange `index` from its list, if any.
    pub(super) fn cancel<T: Timed>(&mut self, slots: &mut [T], index: u16) {
        let Timer { prev, next, list, .. } = *slots[usize::from(index)].peek();
        if list == UNARMED {
            return;
        }
        let ends = &mut self.ends[usize::from(list)];
        match prev {
            NIL => {
                debug_assert_eq!(ends.0, index, "exchange {index} is the first of list {list}");
                ends.0 = next;
            }
            prev => slots[usize::from(prev)].timer().next = next,
        }
        match next {
            NIL => {
                debug_assert_eq!(ends.1, index, "exchange {index} is the last of list {list}");
                ends.1 = prev;
            }
            next => slots[usize::from(next)].timer().prev = prev,
        }
        *slots[usize::from(index)].timer() = Timer::unarmed();
    }

    /// Removes an exchange with an expired deadline. Returns its list and index.
    pub(super) fn pop_due<T: Timed>(&mut self, slots: &mut [T], now: Instant) -> Option<(u8, u16)> {
        for list in 0..N {
            let first = self.ends[list].0;
            if first != NIL && slots[usize::from(first)].peek().deadline <= now {
                self.cancel(slots, first);
                return Some((list as u8, first));
            }
        }
        None
    }

    /// Earliest deadline of all lists.
    pub(super) fn next<T: Timed>(&self, slots: &[T]) -> Option<Instant> {
        let mut earliest = None;
        for (first, _) in self.ends {
            if first != NIL {
                let deadline = slots[usize::from(first)].peek().deadline;
                earliest = Some(earliest.map_or(deadline, |other: Instant| other.min(deadline)));
            }
        }
        earliest
    }
}
