//! Ids by port name in four bytes a slot: [`NameIndex`].

use crate::fabric::hash::mix;
use sanloom_wire::{FcId, Wwpn};

/// An open-addressing table of ids with eight bits of the hash of their names. The names themselves are where the ids lead
/// to: each call is told how to look them up. At most four fifths full: probing stays within a cache
/// line or two, and the tables of many switches with many ports are what memory goes to. Removal leaves no tombstones.
#[derive(Clone, Debug, Default)]
pub(super) struct NameIndex {
    /// Length zero or a power of two; 0 is free, for id 0 is nobody's.
    slots: Vec<u32>,
    len: usize,
}

const FREE: u32 = 0;
const SMALLEST: usize = 8;

impl NameIndex {
    pub(super) fn len(&self) -> usize {
        self.len
    }

    pub(super) fn get(&self, name: Wwpn, name_of: impl Fn(FcId) -> Option<Wwpn>) -> Option<FcId> {
        let at = self.find(name, &name_of)?;
        Some(FcId::new(self.slots[at]))
    }

    /// Adds an id; no other may have its name.
    pub(super) fn insert(&mut self, name: Wwpn, id: FcId, name_of: impl Fn(FcId) -> Option<Wwpn>) {
        if (self.len + 1) * 5 > self.slots.len() * 4 {
            let slots = (self.slots.len() * 2).max(SMALLEST);
            let old = std::mem::replace(&mut self.slots, vec![FREE; slots]);
            for slot in old.into_iter().filter(|slot| *slot != FREE) {
                if let Some(name) = name_of(FcId::new(slot)) {
                    self.put(mix(name.0), slot);
                }
            }
        }
        let hash = mix(name.0);
        self.put(hash, tag(hash) | id.to_u32());
        self.len += 1;
    }

    /// Takes the id with this name out, while all names can still be looked up.
    pub(super) fn remove(&mut self, name: Wwpn, name_of: impl Fn(FcId) -> Option<Wwpn>) {
        let Some(mut hole) = self.find(name, &name_of) else { return };
        let mask = self.slots.len() - 1;
        let mut at = hole;
        loop {
            at = (at + 1) & mask;
            if self.slots[at] == FREE {
                break;
            }
            let home = name_of(FcId::new(self.slots[at])).map_or(at, |name| home(mix(name.0), mask));
            // An id may move back into the hole only if that is not before its home.
            if at.wrapping_sub(home) & mask >= at.wrapping_sub(hole) & mask {
                self.slots[hole] = self.slots[at];
                hole = at;
            }
        }
        self.slots[hole] = FREE;
        self.len -= 1;
        if self.len == 0 {
            *self = NameIndex::default();
        }
    }

    fn find(&self, name: Wwpn, name_of: &impl Fn(FcId) -> Option<Wwpn>) -> Option<usize> {
        let mask = self.slots.len().checked_sub(1)?;
        let hash = mix(name.0);
        let mut at = home(hash, mask);
        loop {
            let slot = self.slots[at];
            if slot == FREE {
                return None;
            }
            if slot & TAG == tag(hash) && name_of(FcId::new(slot)) == Some(name) {
                return Some(at);
            }
            at = (at + 1) & mask;
        }
    }

    fn put(&mut self, hash: u64, slot: u32) {
        let mask = self.slots.len() - 1;
        let mut at = home(hash, mask);
        while self.slots[at] != FREE {
            at = (at + 1) & mask;
        }
        self.slots[at] = slot;
    }
}

/// Bits of a slot beside the id.
const TAG: u32 = 0xff << 24;

fn tag(hash: u64) -> u32 {
    (hash as u32) << 24
}

fn home(hash: u64, mask: usize) -> usize {
    (hash >> 32) as usize & mask
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::BTreeMap;

    proptest! {
        #[test]
        fn finds_what_a_map_finds(ops in prop::collection::vec((any::<bool>(), 1u64..80), 0..600)) {
            let mut index = NameIndex::default();
            let mut by_id: BTreeMap<FcId, Wwpn> = BTreeMap::new();
            for (insert, n) in ops {
                // Names of one vendor: only the last bits differ.
                let (id, name) = (FcId::new(n as u32), Wwpn(0x2100_0024_ff00_0000 + n * 3));
                if insert && !by_id.contains_key(&id) {
                    by_id.insert(id, name);
                    index.insert(name, id, |id| by_id.get(&id).copied());
                } else if !insert && by_id.contains_key(&id) {
                    index.remove(name, |id| by_id.get(&id).copied());
                    by_id.remove(&id);
                }
                for n in 1..80 {
                    let (id, name) = (FcId::new(n as u32), Wwpn(0x2100_0024_ff00_0000 + n * 3));
                    let found = index.get(name, |id| by_id.get(&id).copied());
                    prop_assert_eq!(found, by_id.contains_key(&id).then_some(id));
                }
            }
        }
    }
}
