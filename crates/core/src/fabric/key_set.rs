//! A set of 64-bit keys for the frame path: [`KeySet`].

use super::hash::mix;

/// Keys in an open-addressing table with linear probing, at most two thirds full.
///
/// A membership test is one multiplication-based hash and, nearly always, one cache line. Keys that differ in their last
/// three bits only have their homes in one line: a port that logs in is given permissions to neighbours by address, and
/// these take two or three lines of a large table instead of one each. Removal shifts the following keys back, so that
/// there are no tombstones. An empty set holds no memory, and a set that empties gives its memory back.
///
/// A table that has become too small or too large is emptied into the next one a few slots at a time, with each change of
/// the set: no login waits until half a million permissions have moved.
#[derive(Clone, Debug, Default)]
pub(super) struct KeySet {
    table: Table,
    len: usize,
    old: Option<Box<Leaving>>,
}

/// Slots with the complements of keys; their number is zero or a power of two.
///
/// So a new table is zeroed memory, which the system hands out page by page.
#[derive(Clone, Debug, Default)]
struct Table(Box<[u64]>);

/// A table whose keys move to another one, a cluster at a time: between two free slots.
#[derive(Clone, Debug)]
struct Leaving {
    table: Table,
    /// A slot behind a free one.
    first: usize,
    /// Slots from `first` on whose keys have moved; the one before the next is free.
    moved: usize,
}

/// A slot without a key; keys are below 2^48.
const FREE: u64 = 0;
const SMALLEST: usize = 8;

/// So many slots are emptied with each change: a table is gone before the next one is too small or too large.
const MOVED_AT_ONCE: usize = 16;

impl KeySet {
    #[inline]
    pub(super) fn contains(&self, key: u64) -> bool {
        self.table.contains(key) || self.old.as_ref().is_some_and(|old| old.contains(key))
    }

    /// Adds the key; false if it was there.
    pub(super) fn insert(&mut self, key: u64) -> bool {
        debug_assert!(key < 1 << 48);
        self.move_some(MOVED_AT_ONCE);
        if self.contains(key) {
            return false;
        }
        if (self.len + 1) * 3 > self.table.0.len() * 2 {
            self.resize((self.table.0.len() * 2).max(SMALLEST));
        }
        self.table.put(key);
        self.len += 1;
        true
    }

    /// Removes the key; false if it was not there.
    pub(super) fn remove(&mut self, key: u64) -> bool {
        self.move_some(MOVED_AT_ONCE);
        let removed = self.table.remove(key) || self.old.as_mut().is_some_and(|old| old.remove(key));
        self.len -= usize::from(removed);
        if self.len == 0 {
            self.clear();
        } else if self.table.0.len() > SMALLEST && self.len * 6 < self.table.0.len() {
            self.resize(self.table.0.len() / 2);
        }
        removed
    }

    pub(super) fn clear(&mut self) {
        *self = KeySet::default();
    }

    pub(super) fn len(&self) -> usize {
        self.len
    }

    /// Memory of the tables, in bytes.
    pub(super) fn bytes(&self) -> usize {
        size_of_val(&*self.table.0) + self.old.as_ref().map_or(0, |old| size_of_val(&*old.table.0))
    }

    /// The keys, sorted.
    pub(super) fn sorted(&self) -> Vec<u64> {
        let old = self.old.iter().flat_map(|old| old.table.keys());
        let mut keys: Vec<u64> = self.table.keys().chain(old).collect();
        keys.sort_unstable();
        keys
    }

    fn resize(&mut self, slots: usize) {
        self.move_some(usize::MAX);
        let table = std::mem::replace(&mut self.table, Table(vec![FREE; slots].into()));
        if let Some(free) = table.0.iter().position(|slot| *slot == FREE) {
            self.old = Some(Box::new(Leaving { table, first: free + 1, moved: 0 }));
        }
    }

    /// Empties at least so many slots of the old table.
    fn move_some(&mut self, slots: usize) {
        let Some(old) = &mut self.old else { return };
        let all = old.table.0.len();
        let enough = old.moved.saturating_add(slots).min(all);
        loop {
            let slot = &mut old.table.0[(old.first + old.moved) % all];
            let stored = std::mem::replace(slot, FREE);
            old.moved += 1;
            if stored != FREE {
                self.table.put(!stored);
            } else if old.moved >= enough {
                break;
            }
        }
        self.old.take_if(|old| old.moved >= all);
    }
}

impl Leaving {
    #[cold]
    fn contains(&self, key: u64) -> bool {
        self.has_home(key) && self.table.contains(key)
    }

    fn remove(&mut self, key: u64) -> bool {
        self.has_home(key) && self.table.remove(key)
    }

    /// The key, if it is in the set, has not moved.
    fn has_home(&self, key: u64) -> bool {
        let mask = self.table.0.len() - 1;
        home(key, mask).wrapping_sub(self.first) & mask >= self.moved
    }
}

impl Table {
    #[inline]
    fn contains(&self, key: u64) -> bool {
        if self.0.is_empty() {
            return false;
        }
        let mask = self.0.len() - 1;
        let mut at = home(key, mask);
        loop {
            let found = self.0[at];
            if found == !key {
                return true;
            }
            if found == FREE {
                return false;
            }
            at = (at + 1) & mask;
        }
    }

    /// Puts a key that is not here where there is room for it.
    fn put(&mut self, key: u64) {
        let mask = self.0.len() - 1;
        let mut at = home(key, mask);
        while self.0[at] != FREE {
            at = (at + 1) & mask;
        }
        self.0[at] = !key;
    }

    fn remove(&mut self, key: u64) -> bool {
        if !self.contains(key) {
            return false;
        }
        let mask = self.0.len() - 1;
        let mut hole = home(key, mask);
        while self.0[hole] != !key {
            hole = (hole + 1) & mask;
        }
        let mut at = hole;
        loop {
            at = (at + 1) & mask;
            let next = self.0[at];
            if next == FREE {
                break;
            }
            // A key may move back into the hole only if that is not before its home.
            if at.wrapping_sub(home(!next, mask)) & mask >= at.wrapping_sub(hole) & mask {
                self.0[hole] = next;
                hole = at;
            }
        }
        self.0[hole] = FREE;
        true
    }

    fn keys(&self) -> impl Iterator<Item = u64> {
        self.0.iter().filter(|slot| **slot != FREE).map(|slot| !slot)
    }
}

/// Keys of a line, by their last bits.
const LINE: u64 = 8;

#[inline]
fn home(key: u64, mask: usize) -> usize {
    // All bits of the hash count, so that keys whose last bits are the same spread over the places of the lines.
    let line = mix(key / LINE) >> 32;
    (line ^ (key % LINE)) as usize & mask
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::BTreeSet;

    proptest! {
        #[test]
        fn holds_exactly_what_an_ordered_set_holds(
            ops in prop::collection::vec((0u8..5, 0u64..300), 0..1500),
            growing in any::<bool>(),
        ) {
            let mut set = KeySet::default();
            let mut model = BTreeSet::new();
            let half = ops.len() / 2;
            for (number, (kind, key)) in ops.into_iter().enumerate() {
                // It grows over several tables first, then shrinks, or the other way round.
                if (kind == 0) == (growing == (number >= half)) {
                    prop_assert_eq!(set.insert(key), model.insert(key));
                } else {
                    prop_assert_eq!(set.remove(key), model.remove(&key));
                }
                prop_assert_eq!(set.len(), model.len());
                prop_assert_eq!(set.contains(key), model.contains(&key));
            }
            prop_assert_eq!(set.sorted(), model.into_iter().collect::<Vec<_>>());
        }
    }

    #[test]
    fn an_emptied_set_holds_no_memory() {
        let mut set = KeySet::default();
        for key in 0..10_000 {
            set.insert(key);
        }
        assert!(set.bytes() <= 10_000 * 8 * 3, "{} bytes", set.bytes());
        for key in 0..10_000 {
            set.remove(key);
        }
        assert_eq!(set.bytes(), 0);
    }

    #[test]
    fn a_change_moves_few_keys_and_a_table_is_gone_before_the_next_one_goes() {
        let mut set = KeySet::default();
        let moved = |set: &KeySet| set.old.as_ref().map(|old| (old.table.0.len(), old.moved));
        let keys = (0..100_000).map(|key| (true, key)).chain((0..99_999).map(|key| (false, key)));
        for (insert, key) in keys {
            let (before, slots) = (moved(&set), set.table.0.len());
            if insert {
                set.insert(key)
            } else {
                set.remove(key)
            };
            match (before, moved(&set)) {
                (Some((old, before)), Some((still, after))) if slots == set.table.0.len() => {
                    assert!(old == still && after <= before + 64 * MOVED_AT_ONCE, "{before} to {after} of {old} slots");
                }
                (before, _) if slots != set.table.0.len() && slots > 4 * MOVED_AT_ONCE => {
                    assert!(before.is_none(), "{slots} slots: {before:?}");
                }
                _ => {}
            }
        }
    }

    #[test]
    fn address_pairs_are_found_in_few_probes() {
        // One id per area on 32 switches, all pairs of 512 hosts and 64 targets: the regular keys of a real fabric.
        let ids: Vec<u64> = (0..576u64).map(|n| (n % 32 + 1) << 16 | (n / 32) << 8).collect();
        let mut set = KeySet::default();
        for &s in &ids[..512] {
            for &d in &ids[512..] {
                set.insert(s << 24 | d);
            }
        }
        let mask = set.table.0.len() - 1;
        let taken = set.table.0.iter().enumerate().filter(|(_, slot)| **slot != FREE);
        let probes: usize = taken.map(|(at, slot)| (at.wrapping_sub(home(!slot, mask)) & mask) + 1).sum();
        let mean = probes as f64 / set.len() as f64;
        assert!(mean < 2.0, "mean of {mean} probes");
    }
}
