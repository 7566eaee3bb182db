//! LFU with one bucket for each number of hits.

use super::super::slots::{List, NONE, Slots};
use super::{Origin, Replacement};

/// Objects with equal numbers of hits. Buckets are linked from few hits to many.
#[derive(Clone, Debug)]
struct Bucket {
    hits: u64,
    members: List,
    fewer: u32,
    more: u32,
}

/// Buckets by number of hits. `Node::count` is the index of the bucket.
#[derive(Clone, Debug)]
pub(crate) struct Frequency {
    buckets: Vec<Bucket>,
    free: Vec<u32>,
    fewest: u32,
}

impl Frequency {
    pub(crate) fn new() -> Frequency {
        Frequency { buckets: Vec::new(), free: Vec::new(), fewest: NONE }
    }

    /// Returns the bucket with `hits` hits, which belongs directly behind `before`.
    fn bucket(&mut self, hits: u64, before: u32) -> u32 {
        let more = if before == NONE { self.fewest } else { self.buckets[before as usize].more };
        if more != NONE && self.buckets[more as usize].hits == hits {
            return more;
        }
        let bucket = Bucket { hits, members: List::new(1), fewer: before, more };
        let at = if let Some(at) = self.free.pop() {
            self.buckets[at as usize] = bucket;
            at
        } else {
            self.buckets.push(bucket);
            (self.buckets.len() - 1) as u32
        };
        if before == NONE {
            self.fewest = at;
        } else {
            self.buckets[before as usize].more = at;
        }
        if more != NONE {
            self.buckets[more as usize].fewer = at;
        }
        at
    }

    fn drop_if_empty(&mut self, at: u32) {
        let Bucket { members, fewer, more, .. } = self.buckets[at as usize];
        if !members.is_empty() {
            return;
        }
        if fewer == NONE {
            self.fewest = more;
        } else {
            self.buckets[fewer as usize].more = more;
        }
        if more != NONE {
            self.buckets[more as usize].fewer = fewer;
        }
        self.free.push(at);
    }
}

impl Replacement for Frequency {
    fn hit(&mut self, slots: &mut Slots, slot: u32) {
        let from = slots[slot].count;
        let hits = self.buckets[from as usize].hits + 1;
        let to = self.bucket(hits, from);
        self.buckets[from as usize].members.remove(slots, slot);
        self.buckets[to as usize].members.push_front(slots, slot);
        slots[slot].count = to;
        self.drop_if_empty(from);
    }

    fn victim(&mut self, slots: &mut Slots, _origin: Origin) -> Option<u32> {
        let mut at = self.fewest;
        while at != NONE {
            let bucket = &self.buckets[at as usize];
            if let Some(slot) = bucket.members.back_unpinned(slots) {
                return Some(slot);
            }
            at = bucket.more;
        }
        None
    }

    fn evict(&mut self, slots: &mut Slots, slot: u32) -> bool {
        self.remove(slots, slot);
        false
    }

    fn insert(&mut self, slots: &mut Slots, slot: u32, _origin: Origin) {
        let at = self.bucket(0, NONE);
        self.buckets[at as usize].members.push_front(slots, slot);
        slots[slot].count = at;
    }

    fn remove(&mut self, slots: &mut Slots, slot: u32) {
        let at = slots[slot].count;
        self.buckets[at as usize].members.remove(slots, slot);
        self.drop_if_empty(at);
    }
}
