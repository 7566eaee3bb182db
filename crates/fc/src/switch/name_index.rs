//! Index of N_Port_IDs by port name, four bytes per slot: [`NameIndex`].

use crate::fabric::hash::mix;
use crate::fabric::table::Table;
use sanloom_wire::{FcId, Wwpn};

/// Hash table of N_Port_IDs with eight bits of the hash of their names.
///
/// The names are stored with the objects, so each call passes a function that looks up the name of
/// an N_Port_ID. The table is at most four fifths full: probing stays within one or two cache
/// lines, and these tables dominate memory use with many switches and ports.
#[derive(Clone, Debug, Default)]
pub(super) struct NameIndex(Table<u32, 80>);

impl NameIndex {
    pub(super) fn len(&self) -> usize {
        self.0.len()
    }

    pub(super) fn get(&self, name: Wwpn, name_of: impl Fn(FcId) -> Option<Wwpn>) -> Option<FcId> {
        self.0.find(home(name), |slot| is(slot, name, &name_of)).map(FcId::new)
    }

    /// Adds an N_Port_ID; no other one may have its name.
    pub(super) fn insert(&mut self, name: Wwpn, id: FcId, name_of: impl Fn(FcId) -> Option<Wwpn>) {
        self.0.insert(home(name), tag(name) | id.to_u32(), |slot| home_of(slot, &name_of));
    }

    /// Removes the N_Port_ID with this name. All names must still be available through `name_of`.
    pub(super) fn remove(&mut self, name: Wwpn, name_of: impl Fn(FcId) -> Option<Wwpn>) {
        self.0.remove(home(name), |slot| is(slot, name, &name_of), |slot| home_of(slot, &name_of));
    }
}

/// Bits of a slot that hold part of the hash; the N_Port_ID has the rest.
const TAG: u32 = 0xff << 24;

fn tag(name: Wwpn) -> u32 {
    (mix(name.0) as u32) << 24
}

fn home(name: Wwpn) -> u64 {
    mix(name.0) >> 32
}

/// An N_Port_ID without a name is in no index.
fn home_of(slot: u32, name_of: &impl Fn(FcId) -> Option<Wwpn>) -> u64 {
    name_of(FcId::new(slot)).map_or(0, home)
}

fn is(slot: u32, name: Wwpn, name_of: &impl Fn(FcId) -> Option<Wwpn>) -> bool {
    slot & TAG == tag(name) && name_of(FcId::new(slot)) == Some(name)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::BTreeMap;

    proptest! {
        #[test]
        fn lookups_agree_with_those_of_a_map(ops in prop::collection::vec((any::<bool>(), 1u64..80), 0..600)) {
            let mut index = NameIndex::default();
            let mut by_id: BTreeMap<FcId, Wwpn> = BTreeMap::new();
            for (insert, n) in ops {
                // Names of one vendor differ only in the last bits.
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
