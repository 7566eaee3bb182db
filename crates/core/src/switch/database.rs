//! All objects of the fabric that a switch knows, local and remote: [`Database`].

use super::entry::NsEntry;
use crate::config::ZoneMember;
use crate::fabric::ZonePlace;
use sanloom_wire::{FcId, Wwnn, Wwpn};
use std::collections::{BTreeMap, BTreeSet};
use std::ops::RangeInclusive;
use std::sync::Arc;

/// Objects by id, with indices by port name, node name and FCP target.
///
/// No index by FC-4 type: nearly every port registers FCP, so it would be a copy of the table. Targets are few among many
/// initiators, and every initiator asks for them after every RSCN.
#[derive(Debug, Default)]
pub(super) struct Database {
    entries: BTreeMap<FcId, Known>,
    by_name: BTreeMap<Wwpn, FcId>,
    by_node: BTreeSet<(Wwnn, FcId)>,
    targets: BTreeSet<FcId>,
    /// Remote objects whose name a later login uses. They are as good as absent until that login goes; normally their
    /// own switch takes them away first, because it hears of the later login, too.
    shadows: BTreeMap<FcId, Arc<NsEntry>>,
}

/// An object and its place among the zones.
#[derive(Clone, Debug)]
pub(super) struct Known {
    pub(super) entry: Arc<NsEntry>,
    pub(super) place: ZonePlace,
}

/// Part of the address space, as the domain and area of a query name it: domain 0 is everything, area 0 is the domain.
pub(super) fn scope(domain: u8, area: u8) -> RangeInclusive<FcId> {
    match (domain, area) {
        (0, _) => FcId::ZERO..=FcId::BROADCAST,
        (_, 0) => FcId::from_parts(domain, 0, 0)..=FcId::from_parts(domain, 0xff, 0xff),
        _ => FcId::from_parts(domain, area, 0)..=FcId::from_parts(domain, area, 0xff),
    }
}

impl Database {
    pub(super) fn get(&self, id: FcId) -> Option<&Known> {
        self.entries.get(&id)
    }

    pub(super) fn id_of(&self, name: Wwpn) -> Option<FcId> {
        self.by_name.get(&name).copied()
    }

    /// Adds an object, or replaces the one with its id. The port name must be free, or be that of the id.
    pub(super) fn insert(&mut self, known: Known) {
        let id = known.entry.port_id;
        self.remove(id);
        self.by_name.insert(known.entry.port_name, id);
        self.by_node.insert((known.entry.node_name, id));
        if known.entry.is_target() {
            self.targets.insert(id);
        }
        self.entries.insert(id, known);
    }

    pub(super) fn remove(&mut self, id: FcId) -> Option<Known> {
        let known = self.entries.remove(&id)?;
        self.by_name.remove(&known.entry.port_name);
        self.by_node.remove(&(known.entry.node_name, id));
        self.targets.remove(&id);
        Some(known)
    }

    /// Finds the place of every object anew.
    pub(super) fn set_places(&mut self, place: impl Fn(&NsEntry) -> ZonePlace) {
        for known in self.entries.values_mut() {
            known.place = place(&known.entry);
        }
    }

    /// Puts a remote object aside.
    pub(super) fn shadow(&mut self, entry: Arc<NsEntry>) {
        self.shadows.insert(entry.port_id, entry);
    }

    /// Forgets an object that was put aside. True if there was one.
    pub(super) fn remove_shadow(&mut self, id: FcId) -> bool {
        self.shadows.remove(&id).is_some()
    }

    /// Forgets every object of a range of ids that was put aside.
    pub(super) fn remove_shadows(&mut self, ids: RangeInclusive<FcId>) {
        self.shadows.retain(|id, _| !ids.contains(id));
    }

    /// Takes out the newest or oldest of the objects with this name that were put aside.
    pub(super) fn take_shadow(&mut self, name: Wwpn, newest: bool) -> Option<Arc<NsEntry>> {
        let with_name = self.shadows.values().filter(|entry| entry.port_name == name);
        let first = match newest {
            true => with_name.max_by_key(|entry| entry.precedence()),
            false => with_name.min_by_key(|entry| entry.precedence()),
        };
        let id = first?.port_id;
        self.shadows.remove(&id)
    }

    /// Objects in a range of ids, sorted by id.
    pub(super) fn range(&self, ids: RangeInclusive<FcId>) -> impl Iterator<Item = (FcId, &Known)> {
        self.entries.range(ids).map(|(id, known)| (*id, known))
    }

    /// FCP targets in a range of ids, sorted by id.
    pub(super) fn targets(&self, ids: RangeInclusive<FcId>) -> impl Iterator<Item = (FcId, &Known)> {
        self.targets.range(ids).filter_map(|id| Some((*id, self.get(*id)?)))
    }

    /// Objects of a node, sorted by id.
    pub(super) fn of_node(&self, node: Wwnn) -> impl Iterator<Item = (FcId, &Known)> {
        let ids = self.by_node.range((node, FcId::ZERO)..=(node, FcId::BROADCAST));
        ids.filter_map(|(_, id)| Some((*id, self.get(*id)?)))
    }

    /// Ids of the ports that the keys of zones mean, sorted, each once.
    pub(super) fn ids_of(&self, keys: &[ZoneMember]) -> Vec<FcId> {
        let mut ids = Vec::with_capacity(keys.len());
        for key in keys {
            match *key {
                ZoneMember::PortName(name) => ids.extend(self.id_of(name)),
                ZoneMember::NodeName(name) => ids.extend(self.of_node(name).map(|(id, _)| id)),
                ZoneMember::PortId(id) => ids.extend(self.get(id).map(|_| id)),
                ZoneMember::DomainPort { domain, .. } => {
                    let behind = self.range(scope(domain, 0)).filter(|(_, known)| known.entry.identity().is(key));
                    ids.extend(behind.map(|(id, _)| id));
                }
            }
        }
        ids.sort_unstable();
        ids.dedup();
        ids
    }
}
