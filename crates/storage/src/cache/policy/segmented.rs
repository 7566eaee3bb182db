//! SLRU: LRU lists one above the other.

use super::super::slots::{List, Slots};
use super::{Origin, Replacement};

/// Segments from the lowest, into which objects are inserted, to the highest.
#[derive(Clone, Debug)]
pub(crate) struct Segmented {
    segments: Vec<List>,
    /// Capacity of each segment above the lowest, in units. The lowest takes the remainder.
    segment_units: u64,
}

impl Segmented {
    pub(crate) fn new(capacity: u64, segments: u8) -> Segmented {
        let segments = segments.clamp(1, 16);
        Segmented { segments: (1..=segments).map(List::new).collect(), segment_units: capacity / u64::from(segments) }
    }
}

impl Replacement for Segmented {
    fn hit(&mut self, slots: &mut Slots, slot: u32) {
        let from = usize::from(slots[slot].list) - 1;
        let to = (from + 1).min(self.segments.len() - 1);
        self.segments[from].remove(slots, slot);
        self.segments[to].push_front(slots, slot);
        for above in (1..=to).rev() {
            while self.segments[above].units > self.segment_units {
                let Some(slot) = self.segments[above].back() else { break };
                self.segments[above].remove(slots, slot);
                self.segments[above - 1].push_front(slots, slot);
            }
        }
    }

    fn victim(&mut self, slots: &mut Slots, _origin: Origin) -> Option<u32> {
        self.segments.iter().find_map(|segment| segment.back_unpinned(slots))
    }

    fn evict(&mut self, slots: &mut Slots, slot: u32) -> bool {
        self.remove(slots, slot);
        false
    }

    fn insert(&mut self, slots: &mut Slots, slot: u32, _origin: Origin) {
        self.segments[0].push_front(slots, slot);
    }

    fn remove(&mut self, slots: &mut Slots, slot: u32) {
        let segment = usize::from(slots[slot].list) - 1;
        self.segments[segment].remove(slots, slot);
    }
}
