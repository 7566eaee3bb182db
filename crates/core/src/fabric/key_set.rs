//! A set of 64-bit keys for the frame path: [`KeySet`].

use super::hash::mix;

/// Keys in an open-addressing table with linear probing, at most two thirds full.
///
/// A membership test is one multiplication-based hash and, nearly always, one cache line. Keys that differ in their last
/// three bits only have their homes in one line: a port that logs in is given permissions to neighbours by address, and
/// these take two or three lines of a large table instead of one each. Removal shifts the following keys back, so that
/// there are no tombstones. An empty set holds no memory, and a set that empties gives its memory back.
#[derive(Clone, Debug, Default)]
pub(super) struct KeySet {
    /// Length zero or a power of two.
    slots: Box<[u64]>,
    len: usize,
}

/// A slot without a key; keys are below 2^48.
const FREE: u64 = u64::MAX;
const SMALLEST: usize = 8;

impl KeySet {
    #[inline]
    pub(super) fn contains(&self, key: u64) -> bool {
        if self.slots.is_empty() {
            return false;
        }
        let mask = self.slots.len() - 1;
        let mut at = home(key, mask);
        loop {
            let found = self.slots[at];
            if found == key {
                return true;
            }
            if found == FREE {
                return false;
            }
            at = (at + 1) & mask;
        }
    }

    /// Adds the key; false if it was there.
    pub(super) fn insert(&mut self, key: u64) -> bool {
        debug_assert!(key != FREE);
        if (self.len + 1) * 3 > self.slots.len() * 2 {
            if self.contains(key) {
                return false;
            }
            self.resize((self.slots.len() * 2).max(SMALLEST));
        }
        let added = self.put(key);
        self.len += usize::from(added);
        added
    }

    /// Removes the key; false if it was not there.
    pub(super) fn remove(&mut self, key: u64) -> bool {
        if !self.contains(key) {
            return false;
        }
        let mask = self.slots.len() - 1;
        let mut hole = home(key, mask);
        while self.slots[hole] != key {
            hole = (hole + 1) & mask;
        }
        let mut at = hole;
        loop {
            at = (at + 1) & mask;
            let next = self.slots[at];
            if next == FREE {
                break;
            }
            // A key may move back into the hole only if that is not before its home.
            if at.wrapping_sub(home(next, mask)) & mask >= at.wrapping_sub(hole) & mask {
                self.slots[hole] = next;
                hole = at;
            }
        }
        self.slots[hole] = FREE;
        self.len -= 1;
        if self.len == 0 {
            self.slots = Box::default();
        } else if self.slots.len() > SMALLEST && self.len * 6 < self.slots.len() {
            self.resize(self.slots.len() / 2);
        }
        true
    }

    pub(super) fn clear(&mut self) {
        *self = KeySet::default();
    }

    pub(super) fn len(&self) -> usize {
        self.len
    }

    /// Memory of the table, in bytes.
    pub(super) fn bytes(&self) -> usize {
        size_of_val(&*self.slots)
    }

    /// The keys, sorted.
    pub(super) fn sorted(&self) -> Vec<u64> {
        let mut keys: Vec<u64> = self.slots.iter().copied().filter(|&k| k != FREE).collect();
        keys.sort_unstable();
        keys
    }

    /// Puts a key where there is room for it; false if it was there.
    fn put(&mut self, key: u64) -> bool {
        let mask = self.slots.len() - 1;
        let mut at = home(key, mask);
        while self.slots[at] != FREE {
            if self.slots[at] == key {
                return false;
            }
            at = (at + 1) & mask;
        }
        self.slots[at] = key;
        true
    }

    fn resize(&mut self, slots: usize) {
        let old = std::mem::replace(&mut self.slots, vec![FREE; slots].into());
        for &key in old.iter().filter(|&&k| k != FREE) {
            self.put(key);
        }
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
        fn holds_exactly_what_an_ordered_set_holds(ops in prop::collection::vec((any::<bool>(), 0u64..64), 0..400)) {
            let mut set = KeySet::default();
            let mut model = BTreeSet::new();
            for (insert, key) in ops {
                if insert {
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
    fn address_pairs_are_found_in_few_probes() {
        // One id per area on 32 switches, all pairs of 512 hosts and 64 targets: the regular keys of a real fabric.
        let ids: Vec<u64> = (0..576u64).map(|n| (n % 32 + 1) << 16 | (n / 32) << 8).collect();
        let mut set = KeySet::default();
        for &s in &ids[..512] {
            for &d in &ids[512..] {
                set.insert(s << 24 | d);
            }
        }
        let mask = set.slots.len() - 1;
        let probes: usize = set
            .slots
            .iter()
            .enumerate()
            .filter(|(_, key)| **key != FREE)
            .map(|(at, key)| (at.wrapping_sub(home(*key, mask)) & mask) + 1)
            .sum();
        let mean = probes as f64 / set.len() as f64;
        assert!(mean < 2.0, "mean of {mean} probes");
    }
}
