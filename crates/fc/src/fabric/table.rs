//! Open-addressing hash table that grows and shrinks by a few slots at a time: [`Table`].

/// Slots of type `S`, where the default value marks a free slot, with linear probing. At most
/// `FILL` percent of the slots are used.
///
/// The caller defines the meaning of a slot. Each call passes the hash of its key and, if entries
/// may have to move, a function that computes the hash of any slot. Removal shifts the following
/// slots back, so there are no tombstones. An empty table holds no memory.
///
/// After a resize, the entries move to the new slots a few at a time, with each change, so that no
/// call has to move half a million entries. New slots are zeroed memory, which the operating system
/// allocates page by page.
#[derive(Clone, Debug)]
pub(crate) struct Table<S, const FILL: usize> {
    slots: Slots<S>,
    len: usize,
    old: Option<Box<Leaving<S>>>,
}

/// Slots; their number is zero or a power of two.
#[derive(Clone, Debug)]
struct Slots<S>(Box<[S]>);

/// Old slots during a resize. Their entries move one cluster at a time; a cluster is a run between
/// two free slots.
#[derive(Clone, Debug)]
struct Leaving<S> {
    slots: Slots<S>,
    /// Index after a free slot, at which moving starts.
    first: usize,
    /// Number of slots from `first` on with moved entries; the last of them is free.
    moved: usize,
}

const SMALLEST: usize = 8;

/// Old slots emptied with each change. The old slots are empty before the next resize, which takes
/// at least one removal per twelve slots or one insertion per six.
const MOVED_BY_INSERTION: usize = 8;
const MOVED_BY_REMOVAL: usize = 16;

impl<S, const FILL: usize> Default for Table<S, FILL> {
    fn default() -> Self {
        Table { slots: Slots(Box::default()), len: 0, old: None }
    }
}

impl<S: Copy + Default + Eq, const FILL: usize> Table<S, FILL> {
    /// Returns the entry with this hash for which `is` returns true.
    #[inline]
    pub(crate) fn find(&self, hash: u64, is: impl Fn(S) -> bool) -> Option<S> {
        let found = self.slots.find(hash, &is).map(|at| self.slots.0[at]);
        match &self.old {
            Some(old) if found.is_none() => old.find(hash, is).map(|at| old.slots.0[at]),
            _ => found,
        }
    }

    /// Adds an entry that must not be present.
    pub(crate) fn insert(&mut self, hash: u64, entry: S, hash_of: impl Fn(S) -> u64) {
        self.move_some(MOVED_BY_INSERTION, &hash_of);
        let slots = self.slots.0.len();
        if (self.len + 1) * 100 > slots * FILL {
            self.resize((slots * 2).max(SMALLEST), &hash_of);
        }
        self.slots.put(hash, entry);
        self.len += 1;
    }

    /// Removes an entry. Returns false if there is none.
    pub(crate) fn remove(&mut self, hash: u64, is: impl Fn(S) -> bool, hash_of: impl Fn(S) -> u64) -> bool {
        self.move_some(MOVED_BY_REMOVAL, &hash_of);
        if let Some(at) = self.slots.find(hash, &is) {
            self.slots.free(at, &hash_of);
        } else if let Some(old) = &mut self.old
            && let Some(at) = old.find(hash, &is)
        {
            old.slots.free(at, &hash_of);
        } else {
            return false;
        }
        self.len -= 1;
        let slots = self.slots.0.len();
        if self.len == 0 {
            *self = Table::default();
        } else if slots > SMALLEST && self.len * 6 < slots {
            self.resize(slots / 2, &hash_of);
        }
        true
    }

    pub(crate) fn len(&self) -> usize {
        self.len
    }

    /// Memory of all slots, in bytes.
    pub(crate) fn bytes(&self) -> usize {
        size_of_val(&*self.slots.0) + self.old.as_ref().map_or(0, |old| size_of_val(&*old.slots.0))
    }

    /// All entries in arbitrary order.
    pub(crate) fn iter(&self) -> impl Iterator<Item = S> {
        let old = self.old.iter().flat_map(|old| &old.slots.0);
        self.slots.0.iter().chain(old).copied().filter(|slot| *slot != S::default())
    }

    fn resize(&mut self, slots: usize, hash_of: &impl Fn(S) -> u64) {
        self.move_some(usize::MAX, hash_of);
        let slots = std::mem::replace(&mut self.slots, Slots(vec![S::default(); slots].into()));
        if let Some(free) = slots.0.iter().position(|slot| *slot == S::default()) {
            self.old = Some(Box::new(Leaving { slots, first: free + 1, moved: 0 }));
        }
    }

    /// Empties at least `slots` old slots.
    fn move_some(&mut self, slots: usize, hash_of: &impl Fn(S) -> u64) {
        let Some(old) = &mut self.old else { return };
        let all = old.slots.0.len();
        let enough = old.moved.saturating_add(slots).min(all);
        loop {
            let entry = std::mem::take(&mut old.slots.0[(old.first + old.moved) % all]);
            old.moved += 1;
            if entry != S::default() {
                self.slots.put(hash_of(entry), entry);
            } else if old.moved >= enough {
                break;
            }
        }
        self.old.take_if(|old| old.moved >= all);
    }
}

impl<S: Copy + Default + Eq> Leaving<S> {
    #[cold]
    fn find(&self, hash: u64, is: impl Fn(S) -> bool) -> Option<usize> {
        let mask = self.slots.0.len() - 1;
        let stays = (hash as usize).wrapping_sub(self.first) & mask >= self.moved;
        if stays { self.slots.find(hash, &is) } else { None }
    }
}

impl<S: Copy + Default + Eq> Slots<S> {
    #[inline]
    fn find(&self, hash: u64, is: &impl Fn(S) -> bool) -> Option<usize> {
        let mask = self.0.len().checked_sub(1)?;
        let mut at = hash as usize & mask;
        loop {
            let slot = self.0[at];
            if slot == S::default() {
                return None;
            }
            if is(slot) {
                return Some(at);
            }
            at = (at + 1) & mask;
        }
    }

    fn put(&mut self, hash: u64, entry: S) {
        let mask = self.0.len() - 1;
        let mut at = hash as usize & mask;
        while self.0[at] != S::default() {
            at = (at + 1) & mask;
        }
        self.0[at] = entry;
    }

    fn free(&mut self, mut hole: usize, hash_of: &impl Fn(S) -> u64) {
        let mask = self.0.len() - 1;
        let mut at = hole;
        loop {
            at = (at + 1) & mask;
            let next = self.0[at];
            if next == S::default() {
                break;
            }
            // An entry may move back into the hole only if the hole is not before its home slot.
            if at.wrapping_sub(hash_of(next) as usize) & mask >= at.wrapping_sub(hole) & mask {
                self.0[hole] = next;
                hole = at;
            }
        }
        self.0[hole] = S::default();
    }
}

#[cfg(test)]
mod tests {
    use super::super::hash::mix;
    use super::*;
    use proptest::prelude::*;
    use std::collections::BTreeSet;

    type Keys = Table<u64, 80>;

    fn change(keys: &mut Keys, insert: bool, key: u64) -> bool {
        match insert {
            true if keys.find(mix(key), |slot| slot == key).is_some() => false,
            true => {
                keys.insert(mix(key), key, mix);
                true
            }
            false => keys.remove(mix(key), |slot| slot == key, mix),
        }
    }

    proptest! {
        #[test]
        fn the_content_is_that_of_an_ordered_set(
            ops in prop::collection::vec((0u8..5, 1u64..300), 0..1500),
            growing in any::<bool>(),
        ) {
            let (mut keys, mut model) = (Keys::default(), BTreeSet::new());
            let half = ops.len() / 2;
            for (number, (kind, key)) in ops.into_iter().enumerate() {
                // The table grows over several sizes first and then shrinks, or the reverse.
                let insert = (kind > 0) == (growing == (number < half));
                let changed = if insert { model.insert(key) } else { model.remove(&key) };
                prop_assert_eq!(change(&mut keys, insert, key), changed);
                prop_assert_eq!(keys.len(), model.len());
                let found: Vec<u64> = (1..300).filter(|key| keys.find(mix(*key), |slot| slot == *key).is_some()).collect();
                prop_assert!(found.iter().eq(&model));
                prop_assert_eq!(&keys.iter().collect::<BTreeSet<_>>(), &model);
            }
        }
    }

    #[test]
    fn a_change_moves_few_entries_and_finishes_the_old_slots_before_the_next_growth() {
        let mut keys = Keys::default();
        let moved = |keys: &Keys| keys.old.as_ref().map(|old| (old.slots.0.len(), old.moved));
        let changes = (1..100_000).map(|key| (true, key)).chain((1..99_999).map(|key| (false, key)));
        for (insert, key) in changes {
            let (before, slots) = (moved(&keys), keys.slots.0.len());
            assert!(change(&mut keys, insert, key));
            match (before, moved(&keys)) {
                (Some((_, before)), Some((old, after))) if slots == keys.slots.0.len() => {
                    assert!(after <= before + 16 * MOVED_BY_REMOVAL, "{before} to {after} of {old} slots");
                }
                (before, _) if slots != keys.slots.0.len() && slots > 4 * MOVED_BY_REMOVAL => {
                    assert!(before.is_none(), "{slots} slots: {before:?}");
                }
                _ => {}
            }
        }
    }
}
