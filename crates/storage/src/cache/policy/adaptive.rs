//! ARC (Megiddo and Modha 2003).

use super::super::slots::{List, Slots};
use super::{Origin, Replacement};

const RECENT: u8 = 1;
const FREQUENT: u8 = 2;
const RECENT_GHOSTS: u8 = 3;
const FREQUENT_GHOSTS: u8 = 4;

/// Lists T1, T2, B1 and B2, and the target size of T1.
#[derive(Clone, Debug)]
pub(crate) struct Adaptive {
    recent: List,
    frequent: List,
    recent_ghosts: List,
    frequent_ghosts: List,
    capacity: u64,
    /// Target size of T1, in units.
    target: u64,
}

impl Adaptive {
    pub(crate) fn new(capacity: u64) -> Adaptive {
        Adaptive {
            recent: List::new(RECENT),
            frequent: List::new(FREQUENT),
            recent_ghosts: List::new(RECENT_GHOSTS),
            frequent_ghosts: List::new(FREQUENT_GHOSTS),
            capacity,
            target: 0,
        }
    }

    fn list(&mut self, id: u8) -> &mut List {
        match id {
            RECENT => &mut self.recent,
            FREQUENT => &mut self.frequent,
            RECENT_GHOSTS => &mut self.recent_ghosts,
            _ => &mut self.frequent_ghosts,
        }
    }
}

impl Replacement for Adaptive {
    fn hit(&mut self, slots: &mut Slots, slot: u32) {
        if slots[slot].list == FREQUENT {
            self.frequent.move_to_front(slots, slot);
        } else {
            self.recent.remove(slots, slot);
            self.frequent.push_front(slots, slot);
        }
    }

    fn ghost(&self, slots: &Slots, slot: u32) -> Option<Origin> {
        match slots[slot].list {
            RECENT_GHOSTS => Some(Origin::Recent),
            FREQUENT_GHOSTS => Some(Origin::Frequent),
            _ => None,
        }
    }

    fn begin(&mut self, origin: Origin, size: u32) {
        let step = |other: u64, own: u64| u64::from(size) * (other / own.max(1)).max(1);
        let (recent, frequent) = (self.recent_ghosts.units, self.frequent_ghosts.units);
        match origin {
            Origin::New => {}
            Origin::Recent => self.target = (self.target + step(frequent, recent)).min(self.capacity),
            Origin::Frequent => self.target = self.target.saturating_sub(step(recent, frequent)),
        }
    }

    fn victim(&mut self, slots: &mut Slots, origin: Origin) -> Option<u32> {
        let units = self.recent.units;
        let takes_recent = units > self.target || (origin == Origin::Frequent && units == self.target);
        let (one, other) = if takes_recent { (&self.recent, &self.frequent) } else { (&self.frequent, &self.recent) };
        one.back_unpinned(slots).or_else(|| other.back_unpinned(slots))
    }

    fn evict(&mut self, slots: &mut Slots, slot: u32) -> bool {
        let (from, to) = if slots[slot].list == RECENT { (RECENT, RECENT_GHOSTS) } else { (FREQUENT, FREQUENT_GHOSTS) };
        self.list(from).remove(slots, slot);
        self.list(to).push_front(slots, slot);
        true
    }

    fn insert(&mut self, slots: &mut Slots, slot: u32, origin: Origin) {
        let list = if origin == Origin::New { &mut self.recent } else { &mut self.frequent };
        list.push_front(slots, slot);
    }

    fn remove(&mut self, slots: &mut Slots, slot: u32) {
        let id = slots[slot].list;
        self.list(id).remove(slots, slot);
    }

    fn excess_ghost(&mut self, slots: &mut Slots) -> Option<u32> {
        let recent = self.recent.units + self.recent_ghosts.units;
        let all = recent + self.frequent.units + self.frequent_ghosts.units;
        let list = if recent > self.capacity && !self.recent_ghosts.is_empty() {
            &mut self.recent_ghosts
        } else if all > 2 * self.capacity {
            &mut self.frequent_ghosts
        } else {
            return None;
        };
        let slot = list.back()?;
        list.remove(slots, slot);
        Some(slot)
    }
}
