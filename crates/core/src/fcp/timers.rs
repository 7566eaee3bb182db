//! Equal timeouts as first-in-first-out lists through the exchanges themselves.
//!
//! Every exchange that waits for the same kind of thing waits equally long, so the one that began first ends first: a
//! list in order of arrival is a list in order of deadline. Arming, cancelling and finding the next deadline are O(1).

use crate::time::Instant;

/// No exchange.
pub(super) const NIL: u16 = u16::MAX;

/// The part of an exchange that the lists use.
#[derive(Clone, Copy, Debug)]
pub(super) struct Timer {
    deadline: Instant,
    prev: u16,
    next: u16,
    /// Which list the exchange stands in, or [`UNARMED`].
    list: u8,
}

const UNARMED: u8 = u8::MAX;

impl Timer {
    pub(super) const fn unarmed() -> Timer {
        Timer { deadline: Instant::NEVER, prev: NIL, next: NIL, list: UNARMED }
    }
}

/// Something that stands in a list.
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

    /// Puts exchange `index` at the end of `list`, after taking it out of any other. A deadline before that of the last
    /// one (a timeout that was shortened) is moved there, so that the order holds.
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

    /// Takes exchange `index` out of its list, if it stands in one.
    pub(super) fn cancel<T: Timed>(&mut self, slots: &mut [T], index: u16) {
        let Timer { prev, next, list, .. } = *slots[usize::from(index)].peek();
        if list == UNARMED {
            return;
        }
        let ends = &mut self.ends[usize::from(list)];
        match prev {
            NIL => ends.0 = next,
            prev => slots[usize::from(prev)].timer().next = next,
        }
        match next {
            NIL => ends.1 = prev,
            next => slots[usize::from(next)].timer().prev = prev,
        }
        *slots[usize::from(index)].timer() = Timer::unarmed();
    }

    /// Takes out one exchange whose deadline is over: its list and index.
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

    /// The earliest deadline of all lists.
    pub(super) fn next<T: Timed>(&self, slots: &[T]) -> Option<Instant> {
        self.ends.iter().filter(|ends| ends.0 != NIL).map(|ends| slots[usize::from(ends.0)].peek().deadline).min()
    }
}
