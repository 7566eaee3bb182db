//! Policies with one list: FIFO, LRU and CLOCK.

use super::super::slots::{List, Slots};
use super::{Origin, Replacement};

/// Effect of a hit.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum OnHit {
    Nothing,
    MoveToFront,
    SetBit,
}

/// One list of residents.
#[derive(Clone, Debug)]
pub(crate) struct Queue {
    list: List,
    on_hit: OnHit,
}

impl Queue {
    pub(crate) fn fifo() -> Queue {
        Queue { list: List::new(1), on_hit: OnHit::Nothing }
    }

    pub(crate) fn lru() -> Queue {
        Queue { list: List::new(1), on_hit: OnHit::MoveToFront }
    }

    pub(crate) fn clock() -> Queue {
        Queue { list: List::new(1), on_hit: OnHit::SetBit }
    }
}

impl Replacement for Queue {
    #[inline]
    fn hit(&mut self, slots: &mut Slots, slot: u32) {
        match self.on_hit {
            OnHit::Nothing => {}
            OnHit::MoveToFront => self.list.move_to_front(slots, slot),
            OnHit::SetBit => slots[slot].count = 1,
        }
    }

    fn victim(&mut self, slots: &mut Slots, _origin: Origin) -> Option<u32> {
        loop {
            let slot = self.list.back_unpinned(slots)?;
            if slots[slot].count == 0 {
                return Some(slot);
            }
            slots[slot].count = 0;
            self.list.move_to_front(slots, slot);
        }
    }

    fn evict(&mut self, slots: &mut Slots, slot: u32) -> bool {
        self.list.remove(slots, slot);
        false
    }

    fn insert(&mut self, slots: &mut Slots, slot: u32, _origin: Origin) {
        slots[slot].count = 0;
        self.list.push_front(slots, slot);
    }

    fn remove(&mut self, slots: &mut Slots, slot: u32) {
        self.list.remove(slots, slot);
    }
}
