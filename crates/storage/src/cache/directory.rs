//! Directory of a cache: which keys are resident, and in which slots.

use super::index::Index;
use super::policy::{Order, Origin, Policy, Replacement};
use super::slots::Slots;

/// Slots reserved when a directory is created, at most. Larger directories grow while they fill.
const MAX_RESERVED: u64 = 1 << 20;

/// Result of [`Directory::access`].
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Access {
    /// The key was resident in this slot.
    Hit(u32),
    /// The key was inserted into this slot.
    Miss(u32),
    /// The object is larger than the cache, or every resident object is pinned.
    Bypass,
}

/// Result of [`Directory::admit`].
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Admission {
    /// The key is resident in this slot from now on.
    Admitted(u32),
    /// This slot must be evicted first; call [`Directory::evict`] and admit again.
    Evict(u32),
    /// The object is larger than the cache, or every resident object is pinned.
    Refused,
}

/// Resident keys of a cache and their order of replacement.
///
/// Slots are dense indices from 0, so that a user keeps its own state in a table. A slot keeps its
/// key until the eviction. Some policies remember evicted keys as ghosts, which also use slots.
///
/// Capacity and sizes have one unit that the user chooses: lines, or bytes. Results depend on the
/// order of the calls alone, never on a hash seed.
#[derive(Clone, Debug)]
pub struct Directory {
    order: Order,
    slots: Slots,
    index: Index,
    capacity: u64,
    used: u64,
    len: usize,
    /// Key of the admission that waits for evictions. A policy adapts once per admission.
    admitting: Option<u64>,
}

impl Directory {
    /// Creates an empty directory with a capacity of `capacity` units for objects that are
    /// expected to have `typical_size` units.
    pub fn new(policy: Policy, capacity: u64, typical_size: u32) -> Directory {
        let objects = capacity / u64::from(typical_size.max(1));
        let nodes = (objects + objects * policy.ghost_percent() / 100 + 2).min(MAX_RESERVED) as usize;
        Directory {
            order: Order::new(policy, capacity),
            slots: Slots::with_capacity(nodes),
            index: Index::with_capacity(nodes),
            capacity,
            used: 0,
            len: 0,
            admitting: None,
        }
    }

    /// Returns the slot of a resident key, and leaves the order as it is.
    pub fn find(&self, key: u64) -> Option<u32> {
        self.index.get(&self.slots, key).filter(|&slot| self.order.ghost(&self.slots, slot).is_none())
    }

    /// Returns the slot of a resident key, and records the hit.
    #[inline]
    pub fn hit(&mut self, key: u64) -> Option<u32> {
        let slot = self.find(key)?;
        self.order.hit(&mut self.slots, slot);
        Some(slot)
    }

    /// Looks up a key and inserts it if it is absent. `evicted` receives the slot and key of each
    /// object that leaves; a slot may be reused at once, also for this key.
    pub fn access(&mut self, key: u64, size: u32, mut evicted: impl FnMut(u32, u64)) -> Access {
        if let Some(slot) = self.hit(key) {
            return Access::Hit(slot);
        }
        loop {
            match self.admit(key, size) {
                Admission::Admitted(slot) => return Access::Miss(slot),
                Admission::Refused => return Access::Bypass,
                Admission::Evict(slot) => evicted(slot, self.evict(slot)),
            }
        }
    }

    /// Inserts an absent key, or names the victim that must leave first.
    ///
    /// A caller that gets [`Admission::Evict`] may pin that slot and admit again, which names the
    /// next victim.
    pub fn admit(&mut self, key: u64, size: u32) -> Admission {
        if u64::from(size) > self.capacity {
            return Admission::Refused;
        }
        let ghost = self.index.get(&self.slots, key);
        let origin = ghost.and_then(|slot| self.order.ghost(&self.slots, slot)).unwrap_or(Origin::New);
        if self.admitting != Some(key) {
            self.admitting = Some(key);
            self.order.begin(origin, size);
        }
        if self.used + u64::from(size) > self.capacity {
            let victim = self.order.victim(&mut self.slots, origin);
            return victim.map_or(Admission::Refused, Admission::Evict);
        }
        self.admitting = None;
        let slot = match ghost {
            Some(slot) => {
                self.order.remove(&mut self.slots, slot);
                self.slots[slot].size = size;
                slot
            }
            None => {
                let slot = self.slots.allocate(key, size);
                self.index.insert(&self.slots, slot);
                slot
            }
        };
        self.used += u64::from(size);
        self.len += 1;
        self.order.insert(&mut self.slots, slot, origin);
        while let Some(ghost) = self.order.excess_ghost(&mut self.slots) {
            self.forget(ghost);
        }
        Admission::Admitted(slot)
    }

    /// Evicts a resident slot and returns its key. The policy may keep the key as a ghost.
    pub fn evict(&mut self, slot: u32) -> u64 {
        let node = self.slots[slot];
        self.used -= u64::from(node.size);
        self.len -= 1;
        self.slots[slot].is_pinned = false;
        if !self.order.evict(&mut self.slots, slot) {
            self.forget(slot);
        }
        node.key
    }

    /// Removes a key without a trace: no ghost remains. Returns the slot if the key was resident.
    pub fn remove(&mut self, key: u64) -> Option<u32> {
        let slot = self.index.get(&self.slots, key)?;
        let is_ghost = self.order.ghost(&self.slots, slot).is_some();
        self.order.remove(&mut self.slots, slot);
        if !is_ghost {
            self.used -= u64::from(self.slots[slot].size);
            self.len -= 1;
        }
        self.forget(slot);
        (!is_ghost).then_some(slot)
    }

    /// Protects a resident slot from eviction, or ends the protection. A search for a victim passes
    /// over pinned slots one by one, so only slots with I/O in flight should be pinned.
    pub fn set_pinned(&mut self, slot: u32, is_pinned: bool) {
        self.slots[slot].is_pinned = is_pinned;
    }

    /// Returns the key of a resident slot.
    pub fn key(&self, slot: u32) -> u64 {
        self.slots[slot].key
    }

    /// Number of resident objects.
    pub fn len(&self) -> usize {
        self.len
    }

    /// Returns whether no object is resident.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Sum of the sizes of all resident objects, in units.
    pub fn used(&self) -> u64 {
        self.used
    }

    /// Number of slots ever in use at once, ghosts included. Slot indices are below this number.
    pub fn slots(&self) -> usize {
        self.slots.len()
    }

    fn forget(&mut self, slot: u32) {
        let key = self.slots[slot].key;
        self.index.remove(&self.slots, key);
        self.slots.release(slot);
    }
}
