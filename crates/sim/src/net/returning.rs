//! The R_RDYs on their way back to the sender of a lane, behind the first.

use super::queue::NEVER;
use std::collections::VecDeque;

/// R_RDYs that need no queue: with the first, the four of a switch with four buffers for each port.
const NEAR: usize = 3;

/// Places that the queue of a longer line begins with.
const PLACES: usize = 8;

/// When R_RDYs will be there, in order. They need not be announced in order: a short frame can leave an input buffer before
/// a long one that came earlier.
#[derive(Clone, Debug)]
pub(super) struct Returning {
    /// [`NEVER`] where there is none.
    near: [u64; NEAR],
    /// Those behind; there are some only if all places of `near` are used.
    behind: Option<Box<Behind>>,
}

#[derive(Clone, Debug)]
struct Behind(VecDeque<u64>);

impl Default for Returning {
    fn default() -> Returning {
        Returning { near: [NEVER; NEAR], behind: None }
    }
}

impl Returning {
    /// One more.
    #[inline]
    pub(super) fn add(&mut self, mut time: u64) {
        for place in &mut self.near {
            (*place, time) = ((*place).min(time), (*place).max(time));
        }
        if time != NEVER {
            self.add_behind(time);
        }
    }

    #[cold]
    fn add_behind(&mut self, time: u64) {
        let behind = &mut self.behind.get_or_insert_with(|| Box::new(Behind(VecDeque::with_capacity(PLACES)))).0;
        behind.push_back(time);
        let mut i = behind.len() - 1;
        while i > 0 && behind[i - 1] > time {
            behind.swap(i - 1, i);
            i -= 1;
        }
    }

    /// Takes the first, [`NEVER`] if there is none.
    #[inline]
    pub(super) fn take(&mut self) -> u64 {
        let first = self.near[0];
        self.near.copy_within(1.., 0);
        self.near[NEAR - 1] = NEVER;
        if self.behind.is_some() {
            self.advance();
        }
        first
    }

    #[cold]
    fn advance(&mut self) {
        if let Some(next) = self.behind.as_mut().and_then(|behind| behind.0.pop_front()) {
            self.near[NEAR - 1] = next;
        }
    }

    /// All, in order.
    pub(super) fn iter(&self) -> impl Iterator<Item = u64> {
        let near = self.near.iter().filter(|&&time| time != NEVER);
        near.chain(self.behind.iter().flat_map(|behind| &behind.0)).copied()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn the_earliest_comes_first(steps in prop::collection::vec((any::<bool>(), 0u64..1_000), 1..200)) {
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
