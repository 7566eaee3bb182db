//! S3-FIFO (Yang et al. 2023).

use super::super::slots::{List, Slots};
use super::{Origin, Replacement};

/// Share of the main queue, in percent of the capacity; the small queue has the rest.
pub(super) const MAIN_PERCENT: u64 = 90;
/// Hits in the small queue from which an object moves to the main queue.
const PROMOTION_HITS: u32 = 2;
/// Maximum of the hit counter: two bits.
const MAX_HITS: u32 = 3;

const SMALL: u8 = 1;
const MAIN: u8 = 2;
const GHOSTS: u8 = 3;

/// Small, main and ghost queues.
#[derive(Clone, Debug)]
pub(crate) struct S3Fifo {
    small: List,
    main: List,
    ghosts: List,
    main_units: u64,
}

impl S3Fifo {
    pub(crate) fn new(capacity: u64) -> S3Fifo {
        S3Fifo {
            small: List::new(SMALL),
            main: List::new(MAIN),
            ghosts: List::new(GHOSTS),
            main_units: capacity * MAIN_PERCENT / 100,
        }
    }

    /// Returns the victim of the small queue. Objects with enough hits move to the main queue.
    fn victim_of_small(&mut self, slots: &mut Slots) -> Option<u32> {
        loop {
            let slot = self.small.back_unpinned(slots)?;
            if slots[slot].count < PROMOTION_HITS {
                return Some(slot);
            }
            slots[slot].count = 0;
            self.small.remove(slots, slot);
            self.main.push_front(slots, slot);
        }
    }

    /// Returns the victim of the main queue. Objects with hits are reinserted with one hit less.
    fn victim_of_main(&mut self, slots: &mut Slots) -> Option<u32> {
        loop {
            let slot = self.main.back_unpinned(slots)?;
            if slots[slot].count == 0 {
                return Some(slot);
            }
            slots[slot].count -= 1;
            self.main.move_to_front(slots, slot);
        }
    }
}

impl Replacement for S3Fifo {
    #[inline]
    fn hit(&mut self, slots: &mut Slots, slot: u32) {
        let node = &mut slots[slot];
        node.count = (node.count + 1).min(MAX_HITS);
    }

    fn ghost(&self, slots: &Slots, slot: u32) -> Option<Origin> {
        (slots[slot].list == GHOSTS).then_some(Origin::Recent)
    }

    fn victim(&mut self, slots: &mut Slots, _origin: Origin) -> Option<u32> {
        if self.main.units > self.main_units || self.small.is_empty() {
            self.victim_of_main(slots).or_else(|| self.victim_of_small(slots))
        } else {
            self.victim_of_small(slots).or_else(|| self.victim_of_main(slots))
        }
    }

    fn evict(&mut self, slots: &mut Slots, slot: u32) -> bool {
        let is_small = slots[slot].list == SMALL;
        self.remove(slots, slot);
        if is_small {
            self.ghosts.push_front(slots, slot);
        }
        is_small
    }

    fn insert(&mut self, slots: &mut Slots, slot: u32, origin: Origin) {
        slots[slot].count = 0;
        let list = if origin == Origin::New { &mut self.small } else { &mut self.main };
        list.push_front(slots, slot);
    }

    fn remove(&mut self, slots: &mut Slots, slot: u32) {
        let list = match slots[slot].list {
            SMALL => &mut self.small,
            MAIN => &mut self.main,
            _ => &mut self.ghosts,
        };
        list.remove(slots, slot);
    }

    fn excess_ghost(&mut self, slots: &mut Slots) -> Option<u32> {
        let slot = self.ghosts.back().filter(|_| self.ghosts.units > self.main_units)?;
        self.ghosts.remove(slots, slot);
        Some(slot)
    }
}
