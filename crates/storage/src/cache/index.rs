//! Index from keys to slots: open addressing with a fixed hash, so that runs repeat exactly.

use super::slots::Slots;

/// Fibonacci multiplier: 2^64 divided by the golden ratio.
const MULTIPLIER: u64 = 0x9E37_79B9_7F4A_7C15;

/// Hash index. An entry holds the upper half of the hash and the slot plus one; 0 is empty.
#[derive(Clone, Debug)]
pub(crate) struct Index {
    entries: Vec<u64>,
    len: usize,
}

fn hash(key: u64) -> u64 {
    let mixed = (key ^ (key >> 32)).wrapping_mul(MULTIPLIER);
    mixed ^ (mixed >> 29)
}

impl Index {
    /// Creates an index that holds `keys` keys without growing.
    pub(crate) fn with_capacity(keys: usize) -> Index {
        Index { entries: vec![0; (keys.max(4) * 2).next_power_of_two()], len: 0 }
    }

    #[inline]
    fn home(&self, hash: u64) -> usize {
        (hash as usize) & (self.entries.len() - 1)
    }

    fn position(&self, slots: &Slots, key: u64) -> Option<usize> {
        let hash = hash(key);
        let mut at = self.home(hash);
        loop {
            let entry = self.entries[at];
            if entry == 0 {
                return None;
            }
            if entry >> 32 == hash >> 32 && slots[entry as u32 - 1].key == key {
                return Some(at);
            }
            at = (at + 1) & (self.entries.len() - 1);
        }
    }

    #[inline]
    pub(crate) fn get(&self, slots: &Slots, key: u64) -> Option<u32> {
        self.position(slots, key).map(|at| self.entries[at] as u32 - 1)
    }

    /// Inserts a key that is not present; `slot` already holds it.
    pub(crate) fn insert(&mut self, slots: &Slots, slot: u32) {
        if (self.len + 1) * 2 > self.entries.len() {
            self.grow(slots);
        }
        self.len += 1;
        self.place(slots[slot].key, slot);
    }

    fn place(&mut self, key: u64, slot: u32) {
        let hash = hash(key);
        let mut at = self.home(hash);
        while self.entries[at] != 0 {
            at = (at + 1) & (self.entries.len() - 1);
        }
        self.entries[at] = (hash >> 32 << 32) | u64::from(slot + 1);
    }

    fn grow(&mut self, slots: &Slots) {
        let larger = vec![0; self.entries.len() * 2];
        for entry in std::mem::replace(&mut self.entries, larger) {
            if entry != 0 {
                let slot = entry as u32 - 1;
                self.place(slots[slot].key, slot);
            }
        }
    }

    /// Removes a key, and moves later entries of its cluster back, so that no mark of it remains.
    pub(crate) fn remove(&mut self, slots: &Slots, key: u64) {
        let Some(mut hole) = self.position(slots, key) else { return };
        let mask = self.entries.len() - 1;
        let mut at = hole;
        loop {
            at = (at + 1) & mask;
            let entry = self.entries[at];
            if entry == 0 {
                break;
            }
            let home = self.home(hash(slots[entry as u32 - 1].key));
            if (at.wrapping_sub(home) & mask) >= (at.wrapping_sub(hole) & mask) {
                self.entries[hole] = entry;
                hole = at;
            }
        }
        self.entries[hole] = 0;
        self.len -= 1;
    }
}
