//! All objects of the fabric that a switch knows, local and remote: [`Database`].

use super::entry::NsEntry;
use super::name_index::NameIndex;
use super::sorted::SortedMap;
use crate::config::ZoneMember;
use crate::fabric::ZonePlace;
use sanloom_wire::{FcId, Wwnn, Wwpn};
use std::cmp::Ordering;
use std::collections::BTreeMap;
use std::ops::RangeInclusive;
use std::sync::Arc;

/// Objects by id, with indices by port name, node name and FCP target, and by switch port where zones name ports so.
///
/// No index by FC-4 type: nearly every port registers FCP, so it would be a copy of the table. Targets are few among many
/// initiators, and every initiator asks for them after every RSCN. An object takes about 50 bytes beside what it shares
/// with the other switches of the process.
#[derive(Debug, Default)]
pub(super) struct Database {
    entries: SortedMap<FcId, Known>,
    by_name: NameIndex,
    /// The own domain, and an index of its objects alone: most zone-mates of a port elsewhere are elsewhere, too, and a
    /// small table says so faster.
    own: Option<u8>,
    own_by_name: NameIndex,
    /// Node name and id.
    by_node: SortedMap<NodeKey, ()>,
    /// Domain, switch port and id, as bytes, while zones name switch ports.
    by_port: Option<SortedMap<[u8; 6], ()>>,
    targets: SortedMap<FcId, ()>,
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

/// Node name and id in as many bytes as they have, sorted as numbers.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct NodeKey([u8; 11]);

impl NodeKey {
    fn new(node: Wwnn, id: FcId) -> NodeKey {
        let mut key = [0; 11];
        key[..8].copy_from_slice(&node.0.to_be_bytes());
        key[8..].copy_from_slice(&id.to_bytes());
        NodeKey(key)
    }

    fn parts(self) -> (u64, FcId) {
        let [a, b, c, d, e, f, g, h, domain, area, port] = self.0;
        (u64::from_be_bytes([a, b, c, d, e, f, g, h]), FcId::from_parts(domain, area, port))
    }
}

impl PartialOrd for NodeKey {
    #[inline]
    fn partial_cmp(&self, other: &NodeKey) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for NodeKey {
    #[inline]
    fn cmp(&self, other: &NodeKey) -> Ordering {
        self.parts().cmp(&other.parts())
    }
}

impl Database {
    pub(super) fn get(&self, id: FcId) -> Option<&Known> {
        self.entries.get(&id)
    }

    /// Number of objects.
    pub(super) fn len(&self) -> usize {
        self.by_name.len()
    }

    pub(super) fn id_of(&self, name: Wwpn) -> Option<FcId> {
        self.by_name.get(name, |id| self.name_of(id))
    }

    /// Adds an object, or replaces the one with its id. The port name must be free, or be that of the id.
    pub(super) fn insert(&mut self, known: Known) {
        let entry = known.entry.clone();
        let id = entry.port_id;
        if self.name_of(id).is_some_and(|name| name != entry.port_name) {
            self.remove(id);
        }
        match self.entries.insert(id, known) {
            Some(old) => self.remove_indices(&old.entry),
            None => {
                let name_of = |id| self.entries.get(&id).map(|known| known.entry.port_name);
                self.by_name.insert(entry.port_name, id, name_of);
                if Some(id.domain()) == self.own {
                    self.own_by_name.insert(entry.port_name, id, name_of);
                }
            }
        }
        self.by_node.insert(NodeKey::new(entry.node_name, id), ());
        if let Some(by_port) = &mut self.by_port {
            by_port.insert(port_key(entry.identity().port, id), ());
        }
        if entry.is_target() {
            self.targets.insert(id, ());
        }
    }

    pub(super) fn remove(&mut self, id: FcId) -> Option<Known> {
        let name = self.name_of(id)?;
        let name_of = |id| self.entries.get(&id).map(|known| known.entry.port_name);
        self.by_name.remove(name, name_of);
        if Some(id.domain()) == self.own {
            self.own_by_name.remove(name, name_of);
        }
        let known = self.entries.remove(&id)?;
        self.remove_indices(&known.entry);
        Some(known)
    }

    /// Takes an object out of the indices other than that by name.
    fn remove_indices(&mut self, entry: &NsEntry) {
        let id = entry.port_id;
        self.by_node.remove(&NodeKey::new(entry.node_name, id));
        if let Some(by_port) = &mut self.by_port {
            by_port.remove(&port_key(entry.identity().port, id));
        }
        self.targets.remove(&id);
    }

    fn name_of(&self, id: FcId) -> Option<Wwpn> {
        self.entries.get(&id).map(|known| known.entry.port_name)
    }

    /// Finds the place of every object anew.
    pub(super) fn set_places(&mut self, place: impl Fn(&NsEntry) -> ZonePlace) {
        for known in self.entries.values_mut() {
            known.place = place(&known.entry);
        }
    }

    /// The switch has this domain from now on, or none: no object is of the old or of the new one.
    pub(super) fn set_domain(&mut self, own: Option<u8>) {
        self.own = own;
        self.own_by_name = NameIndex::default();
    }

    /// Keeps an index of switch ports from now on, or none.
    pub(super) fn index_ports(&mut self, wanted: bool) {
        if self.by_port.is_some() != wanted {
            self.by_port = wanted.then(SortedMap::default);
            if let Some(by_port) = &mut self.by_port {
                for (id, known) in self.entries.range(scope(0, 0)) {
                    by_port.insert(port_key(known.entry.identity().port, id), ());
                }
            }
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
        self.entries.range(ids)
    }

    /// FCP targets in a range of ids, sorted by id.
    pub(super) fn targets(&self, ids: RangeInclusive<FcId>) -> impl Iterator<Item = (FcId, &Known)> {
        self.targets.range(ids).filter_map(|(id, ())| Some((id, self.get(id)?)))
    }

    /// Objects of a node, sorted by id.
    pub(super) fn of_node(&self, node: Wwnn) -> impl Iterator<Item = (FcId, &Known)> {
        let keys = self.by_node.range(NodeKey::new(node, FcId::ZERO)..=NodeKey::new(node, FcId::BROADCAST));
        keys.filter_map(|(key, ())| {
            let (_, id) = key.parts();
            Some((id, self.get(id)?))
        })
    }

    /// Ids of the ports that the keys of zones mean, sorted, each once.
    pub(super) fn ids_of(&self, keys: &[ZoneMember]) -> Vec<FcId> {
        self.resolve(keys.iter().copied(), |name| self.id_of(name))
    }

    /// Of the ports that the keys of zones mean, the ids of the own domain, sorted, each once.
    pub(super) fn own_ids_of(&self, keys: impl Iterator<Item = ZoneMember>) -> Vec<FcId> {
        let mut ids = self.resolve(keys, |name| self.own_by_name.get(name, |id| self.name_of(id)));
        ids.retain(|id| Some(id.domain()) == self.own);
        ids
    }

    fn resolve(&self, keys: impl Iterator<Item = ZoneMember>, id_of: impl Fn(Wwpn) -> Option<FcId>) -> Vec<FcId> {
        let mut ids = Vec::new();
        for key in keys {
            match key {
                ZoneMember::PortName(name) => ids.extend(id_of(name)),
                ZoneMember::NodeName(name) => ids.extend(self.of_node(name).map(|(id, _)| id)),
                ZoneMember::PortId(id) => ids.extend(self.get(id).map(|_| id)),
                ZoneMember::DomainPort { domain, port } => {
                    let of_port = |id| port_key(port, id);
                    let scope = scope(domain, 0);
                    let keys = of_port(*scope.start())..=of_port(*scope.end());
                    let found = self.by_port.iter().flat_map(|by_port| by_port.range(keys.clone()));
                    ids.extend(found.map(|([.., d, a, p], ())| FcId::from_parts(d, a, p)));
                }
            }
        }
        ids.sort_unstable();
        ids.dedup();
        ids
    }
}

/// The domain is that of the id.
fn port_key(port: u16, id: FcId) -> [u8; 6] {
    let ([high, low], [d, a, p]) = (port.to_be_bytes(), id.to_bytes());
    [d, high, low, d, a, p]
}
