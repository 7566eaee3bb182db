//! 2Q (Johnson and Shasha 1994, full version).

use super::super::slots::{List, Slots};
use super::{Origin, Replacement};

/// Share of the FIFO for first uses (A1in), in percent of the capacity.
const FIRST_PERCENT: u64 = 25;
/// Share of the ghosts (A1out), in percent of the capacity.
pub(super) const GHOST_PERCENT: u64 = 50;

const FIRST: u8 = 1;
const GHOSTS: u8 = 3;

/// Lists A1in, Am and A1out.
#[derive(Clone, Debug)]
pub(crate) struct TwoQueue {
    first: List,
    main: List,
    ghosts: List,
    first_units: u64,
    ghost_units: u64,
}

impl TwoQueue {
    pub(crate) fn new(capacity: u64) -> TwoQueue {
        TwoQueue {
            first: List::new(FIRST),
            main: List::new(2),
            ghosts: List::new(GHOSTS),
            first_units: capacity * FIRST_PERCENT / 100,
            ghost_units: capacity * GHOST_PERCENT / 100,
        }
    }
}

impl Replacement for TwoQueue {
    fn hit(&mut self, slots: &mut Slots, slot: u32) {
        if slots[slot].list != FIRST {
            self.main.move_to_front(slots, slot);
        }
    }

    fn ghost(&self, slots: &Slots, slot: u32) -> Option<Origin> {
        (slots[slot].list == GHOSTS).then_some(Origin::Recent)
    }

    fn victim(&mut self, slots: &mut Slots, _origin: Origin) -> Option<u32> {
        let (one, other) =
            if self.first.units > self.first_units { (&self.first, &self.main) } else { (&self.main, &self.first) };
        one.back_unpinned(slots).or_else(|| other.back_unpinned(slots))
    }

    fn evict(&mut self, slots: &mut Slots, slot: u32) -> bool {
        let is_first = slots[slot].list == FIRST;
        self.remove(slots, slot);
        if is_first {
            self.ghosts.push_front(slots, slot);
        }
        is_first
    }

    fn insert(&mut self, slots: &mut Slots, slot: u32, origin: Origin) {
        let list = if origin == Origin::New { &mut self.first } else { &mut self.main };
        list.push_front(slots, slot);
    }

    fn remove(&mut self, slots: &mut Slots, slot: u32) {
        let list = match slots[slot].list {
            FIRST => &mut self.first,
            GHOSTS => &mut self.ghosts,
            _ => &mut self.main,
        };
        list.remove(slots, slot);
    }

    fn excess_ghost(&mut self, slots: &mut Slots) -> Option<u32> {
        let slot = self.ghosts.back().filter(|_| self.ghosts.units > self.ghost_units)?;
        self.ghosts.remove(slots, slot);
        Some(slot)
    }
}
