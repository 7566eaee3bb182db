//! Set of 64-bit keys for the frame path: [`KeySet`].

use super::hash::mix;
use super::table::Table;

/// Keys in a [`Table`], at most two thirds full.
///
/// A membership test takes one multiplication-based hash and, nearly always, one cache line. Keys
/// that differ only in their last three bits have their home slots in one line. A port that logs in
/// gets permissions to neighbours by address, and these then occupy two or three lines of a large
/// table instead of one each.
#[derive(Clone, Debug, Default)]
pub(super) struct KeySet(Table<u64, 66>);

/// Converts between key and slot by complement. Keys are below 2^48, so no slot equals the free
/// value.
#[inline]
const fn slot_of(key: u64) -> u64 {
    !key
}

impl KeySet {
    #[inline]
    pub(super) fn contains(&self, key: u64) -> bool {
        self.0.find(home(key), |slot| slot == slot_of(key)).is_some()
    }

    /// Adds the key. Returns false if it was present.
    pub(super) fn insert(&mut self, key: u64) -> bool {
        debug_assert!(key < 1 << 48);
        let added = !self.contains(key);
        if added {
            self.0.insert(home(key), slot_of(key), |slot| home(slot_of(slot)));
        }
        added
    }

    /// Removes the key. Returns false if it was absent.
    pub(super) fn remove(&mut self, key: u64) -> bool {
        self.0.remove(home(key), |slot| slot == slot_of(key), |slot| home(slot_of(slot)))
    }

    pub(super) fn clear(&mut self) {
        *self = KeySet::default();
    }

    pub(super) fn len(&self) -> usize {
        self.0.len()
    }

    /// Memory of the table, in bytes.
    pub(super) fn bytes(&self) -> usize {
        self.0.bytes()
    }

    /// All keys, sorted.
    pub(super) fn sorted(&self) -> Vec<u64> {
        let mut keys: Vec<u64> = self.0.iter().map(slot_of).collect();
        keys.sort_unstable();
        keys
    }
}

/// Number of keys per cache line, selected by their last bits.
const LINE: u64 = 8;

#[inline]
fn home(key: u64) -> u64 {
    // All bits of the hash are used, so that keys with equal last bits spread over the slots of the
    // lines.
    let line = mix(key / LINE) >> 32;
    line ^ (key % LINE)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::cell::Cell;

    #[test]
    fn an_emptied_set_holds_no_memory() {
        let mut set = KeySet::default();
        for key in 0..10_000 {
            assert!(set.insert(key) && !set.insert(key));
        }
        assert!(set.bytes() <= 10_000 * 8 * 3, "{} bytes", set.bytes());
        for key in 0..10_000 {
            assert!(set.remove(key) && !set.remove(key));
        }
        assert_eq!(set.bytes(), 0);
    }

    #[test]
    fn address_pairs_are_found_in_few_probes() {
        // One N_Port_ID per area on 32 switches, and all pairs of 512 hosts and 64 targets: the
        // regular keys of a real fabric.
        let ids: Vec<u64> = (0..576u64).map(|n| (n % 32 + 1) << 16 | (n / 32) << 8).collect();
        let mut set = KeySet::default();
        for &s in &ids[..512] {
            for &d in &ids[512..] {
                set.insert(s << 24 | d);
            }
        }
        let probes = Cell::new(0);
        for key in set.sorted() {
            let is = |slot| {
                probes.set(probes.get() + 1);
                slot == slot_of(key)
            };
            assert!(set.0.find(home(key), is).is_some());
        }
        let mean = f64::from(probes.get()) / set.len() as f64;
        assert!(mean < 2.0, "mean of {mean} probes");
    }
}
