//! R_RDYs on the line back to the sender of a lane, except the first one.

use crate::net::queue::NEVER;
use std::collections::VecDeque;

/// R_RDYs stored inline. Together with the first, this is enough for a switch with four buffers per
/// port.
const INLINE: usize = 3;

/// Initial capacity of the queue of a long line.
const INITIAL_CAPACITY: usize = 8;

/// Sorted arrival times of R_RDYs. Times may be added out of order, because a short frame can leave
/// an input buffer before a long one that arrived earlier.
#[derive(Clone, Debug)]
pub(super) struct Returning {
    /// Inline times, [`NEVER`] in an empty slot.
    inline: [u64; INLINE],
    /// Later times. Used only if all slots of `inline` are used.
    overflow: Option<Box<Overflow>>,
}

#[derive(Clone, Debug)]
struct Overflow(VecDeque<u64>);

impl Default for Returning {
    fn default() -> Returning {
        Returning { inline: [NEVER; INLINE], overflow: None }
    }
}

impl Returning {
    /// Inserts an arrival time.
    #[inline]
    pub(super) fn add(&mut self, mut time: u64) {
        for slot in &mut self.inline {
            (*slot, time) = ((*slot).min(time), (*slot).max(time));
        }
        if time != NEVER {
            self.add_overflow(time);
        }
    }

    /// Returns whether a further time would need memory of its own.
    #[inline]
    pub(super) fn is_full(&self) -> bool {
        self.inline[INLINE - 1] != NEVER
    }

    #[cold]
    fn add_overflow(&mut self, time: u64) {
        let overflow =
            &mut self.overflow.get_or_insert_with(|| Box::new(Overflow(VecDeque::with_capacity(INITIAL_CAPACITY)))).0;
        overflow.push_back(time);
        let mut i = overflow.len() - 1;
        while i > 0 && overflow[i - 1] > time {
            overflow.swap(i - 1, i);
            i -= 1;
        }
    }

    /// Removes and returns the earliest time, or [`NEVER`] if there is none.
    #[inline]
    pub(super) fn take(&mut self) -> u64 {
        let [first, .., last] = self.inline;
        self.inline.copy_within(1.., 0);
        self.inline[INLINE - 1] = NEVER;
        // With an empty slot there is no overflow, and its memory need not be read.
        if last != NEVER && self.overflow.is_some() {
            self.advance();
        }
        first
    }

    #[cold]
    fn advance(&mut self) {
        if let Some(next) = self.overflow.as_mut().and_then(|overflow| overflow.0.pop_front()) {
            self.inline[INLINE - 1] = next;
        }
    }

    /// Iterates over the times, earliest first.
    pub(super) fn iter(&self) -> impl Iterator<Item = u64> {
        let inline = self.inline.iter().filter(|&&time| time != NEVER);
        inline.chain(self.overflow.iter().flat_map(|overflow| &overflow.0)).copied()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn times_are_returned_earliest_first(steps in prop::collection::vec((any::<bool>(), 0u64..1_000), 1..200)) {
            let (mut returning, mut model) = (Returning::default(), Vec::new());
            for (add, time) in steps {
                if add {
                    returning.add(time);
                    model.push(time);
                    model.sort_unstable();
                } else {
                    let expected = if model.is_empty() { NEVER } else { model.remove(0) };
                    prop_assert_eq!(returning.take(), expected);
                }
                prop_assert_eq!(returning.iter().collect::<Vec<_>>(), model.clone());
            }
        }
    }
}
