//! Objects of the fabric, local and remote: [`Database`].

use super::Work;
use super::entry::NsEntry;
use super::login_table::LoginTable;
use super::name_index::NameIndex;
use super::sorted::SortedMap;
use crate::config::{NameLookup, ZoneMember};
use crate::fabric::{ZoneMembership, ZoneSet};
use sanloom_wire::{FcId, Wwnn, Wwpn};
use std::cmp::Ordering;
use std::collections::BTreeMap;
use std::ops::RangeInclusive;
use std::sync::Arc;

/// Objects by N_Port_ID, with indices by port name, node name and FCP target. An index by switch
/// port exists while zones name switch ports.
///
/// There is no index by FC-4 type: nearly every port registers FCP, so it would be a copy of the
/// table. FCP targets have an index because they are few among many initiators, and every initiator
/// queries them after every RSCN. An object takes about 60 bytes in addition to the part shared
/// with the other switches of the process.
#[derive(Debug)]
pub(super) struct Database {
    /// Effective zones; the objects are stored with their membership in them.
    zones: Arc<ZoneSet>,
    entries: SortedMap<FcId, Known>,
    by_name: NameIndex,
    /// The switch's own domain, and an index of the objects in it. Most zone-mates of a remote port
    /// are remote as well, and a lookup in a small table rules them out faster.
    own: Option<u8>,
    own_by_name: NameIndex,
    /// For each zone, the number of objects in the switch's own domain. Few zones have any.
    own_in_zone: Vec<u32>,
    /// Node name and N_Port_ID.
    by_node: SortedMap<NodeKey, ()>,
    /// Domain, switch port and N_Port_ID as bytes; present while zones name switch ports.
    by_port: Option<SortedMap<[u8; 6], ()>>,
    targets: SortedMap<FcId, ()>,
    /// Remote objects whose port name a later login uses. Such an object is treated as absent until
    /// that login ends. Normally its own switch removes it first, because it also receives the
    /// update about the later login.
    shadows: BTreeMap<FcId, NsEntry>,
}

/// Object with its zone membership.
#[derive(Clone, Debug)]
pub(super) struct Known {
    pub(super) entry: NsEntry,
    pub(super) membership: ZoneMembership,
}

/// Part of the address space that the domain and area of a query select. Domain 0 selects all
/// addresses, area 0 the whole domain.
pub(super) fn scope(domain: u8, area: u8) -> RangeInclusive<FcId> {
    match (domain, area) {
        (0, _) => FcId::ZERO..=FcId::BROADCAST,
        (_, 0) => FcId::from_parts(domain, 0, 0)..=FcId::from_parts(domain, 0xff, 0xff),
        _ => FcId::from_parts(domain, area, 0)..=FcId::from_parts(domain, area, 0xff),
    }
}

/// Node name and N_Port_ID in eleven bytes, ordered as numbers.
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
    /// Returns an empty database of a switch without a domain.
    pub(super) fn new(zones: Arc<ZoneSet>) -> Database {
        let mut database = Database {
            zones,
            entries: SortedMap::default(),
            by_name: NameIndex::default(),
            own: None,
            own_by_name: NameIndex::default(),
            own_in_zone: Vec::new(),
            by_node: SortedMap::default(),
            by_port: None,
            targets: SortedMap::default(),
            shadows: BTreeMap::new(),
        };
        database.index_ports(database.zones.uses_switch_ports());
        database
    }

    /// Effective zones.
    pub(super) fn zones(&self) -> &Arc<ZoneSet> {
        &self.zones
    }

    pub(super) fn get(&self, id: FcId) -> Option<&Known> {
        self.entries.get(&id)
    }

    /// Number of objects, local and remote.
    pub(super) fn len(&self) -> usize {
        self.by_name.len()
    }

    pub(super) fn id_of(&self, name: Wwpn) -> Option<FcId> {
        self.by_name.get(name, |id| self.name_of(id))
    }

    /// Adds an object, or replaces the one with the same N_Port_ID. Its port name must be unused,
    /// or used by that N_Port_ID only.
    pub(super) fn insert(&mut self, known: Known) {
        let entry = known.entry.clone();
        let id = entry.port_id;
        if self.name_of(id).is_some_and(|name| name != entry.port_name) {
            self.remove(id);
        }
        self.count_own(id, &known.membership, true);
        match self.entries.insert(id, known) {
            Some(old) => {
                self.count_own(id, &old.membership, false);
                self.remove_indices(&old.entry);
            }
            None => {
                let name_of = |id| self.entries.get(&id).map(|known| known.entry.port_name);
                self.by_name.insert(entry.port_name, id, name_of);
                if Some(id.domain()) == self.own {
                    self.own_by_name.insert(entry.port_name, id, name_of);
                }
            }
        }
        let other = self.by_node.insert(NodeKey::new(entry.node_name, id), ());
        debug_assert!(other.is_none(), "{id} is twice in the index by node name");
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
        self.count_own(id, &known.membership, false);
        self.remove_indices(&known.entry);
        Some(known)
    }

    /// Counts an object in its zones, or no longer, if it is in the switch's own domain.
    fn count_own(&mut self, id: FcId, membership: &ZoneMembership, present: bool) {
        if Some(id.domain()) != self.own {
            return;
        }
        for role in self.zones.roles(membership) {
            let zone = role.zone as usize;
            if zone >= self.own_in_zone.len() {
                self.own_in_zone.resize(zone + 1, 0);
            }
            match present {
                true => self.own_in_zone[zone] += 1,
                false => self.own_in_zone[zone] -= 1,
            }
        }
    }

    /// Returns false if a port is in zones, and no object of the switch's own domain is in one of
    /// them, so that the port may communicate with none of this domain.
    pub(super) fn may_have_own_mates(&self, membership: &ZoneMembership) -> bool {
        let has_own = |zone: u32| self.own_in_zone.get(zone as usize).is_some_and(|&count| count > 0);
        !membership.is_zoned() || self.zones.roles(membership).any(|role| has_own(role.zone))
    }

    /// Removes an object from all indices except those by port name.
    fn remove_indices(&mut self, entry: &NsEntry) {
        let id = entry.port_id;
        let was_there = self.by_node.remove(&NodeKey::new(entry.node_name, id));
        debug_assert!(was_there.is_some(), "{id} is absent from the index by node name");
        if let Some(by_port) = &mut self.by_port {
            by_port.remove(&port_key(entry.identity().port, id));
        }
        self.targets.remove(&id);
    }

    /// Port name of an object.
    pub(super) fn name_of(&self, id: FcId) -> Option<Wwpn> {
        self.entries.get(&id).map(|known| known.entry.port_name)
    }

    /// Replaces the effective zones by equal ones, so that switches of one process share them.
    pub(super) fn share_zones(&mut self, equal: Arc<ZoneSet>) {
        self.zones = equal;
    }

    /// Replaces the effective zones and recomputes the zone membership of every object.
    pub(super) fn set_zones(&mut self, zones: Arc<ZoneSet>) {
        for known in self.entries.values_mut() {
            known.membership = zones.membership(&known.entry.identity());
        }
        self.zones = zones;
        self.own_in_zone.clear();
        let own = self.own.map(|domain| self.entries.range(scope(domain, 0)));
        let own: Vec<_> = own.into_iter().flatten().map(|(id, known)| (id, known.membership.clone())).collect();
        own.iter().for_each(|(id, membership)| self.count_own(*id, membership, true));
    }

    /// Sets the switch's own domain. The database must contain no object of the old or the new one.
    pub(super) fn set_domain(&mut self, own: Option<u8>) {
        self.own = own;
        self.own_by_name = NameIndex::default();
        self.own_in_zone.clear();
    }

    /// Creates or drops the index by switch port.
    pub(super) fn index_ports(&mut self, enabled: bool) {
        if self.by_port.is_some() != enabled {
            self.by_port = enabled.then(SortedMap::default);
            if let Some(by_port) = &mut self.by_port {
                for (id, known) in self.entries.range(scope(0, 0)) {
                    by_port.insert(port_key(known.entry.identity().port, id), ());
                }
            }
        }
    }

    /// Stores a remote object whose port name a later login uses.
    pub(super) fn shadow(&mut self, entry: NsEntry) {
        self.shadows.insert(entry.port_id, entry);
    }

    /// Removes a shadowed object. Returns true if there was one.
    pub(super) fn remove_shadow(&mut self, id: FcId) -> bool {
        self.shadows.remove(&id).is_some()
    }

    /// Removes all shadowed objects in a range of N_Port_IDs.
    pub(super) fn remove_shadows(&mut self, ids: RangeInclusive<FcId>) {
        self.shadows.retain(|id, _| !ids.contains(id));
    }

    /// Removes and returns the newest or oldest shadowed object with this port name.
    pub(super) fn take_shadow(&mut self, name: Wwpn, newest: bool) -> Option<NsEntry> {
        let with_name = self.shadows.values().filter(|entry| entry.port_name == name);
        let first = match newest {
            true => with_name.max_by_key(|entry| entry.precedence()),
            false => with_name.min_by_key(|entry| entry.precedence()),
        };
        let id = first?.port_id;
        self.shadows.remove(&id)
    }

    /// Objects in a range of N_Port_IDs, sorted by N_Port_ID.
    pub(super) fn range(&self, ids: RangeInclusive<FcId>) -> impl Iterator<Item = (FcId, &Known)> {
        self.entries.range(ids)
    }

    /// FCP targets in a range of N_Port_IDs, sorted by N_Port_ID.
    pub(super) fn targets(&self, ids: RangeInclusive<FcId>) -> impl Iterator<Item = (FcId, &Known)> {
        self.targets.range(ids).filter_map(|(id, ())| Some((id, self.get(id)?)))
    }

    /// Objects of a node, sorted by N_Port_ID.
    pub(super) fn of_node(&self, node: Wwnn) -> impl Iterator<Item = (FcId, &Known)> {
        let keys = self.by_node.range(NodeKey::new(node, FcId::ZERO)..=NodeKey::new(node, FcId::BROADCAST));
        keys.filter_map(|(key, ())| {
            let (_, id) = key.parts();
            Some((id, self.get(id)?))
        })
    }

    /// N_Port_IDs of the ports that match zone members, sorted and without duplicates.
    pub(super) fn ids_of(&self, keys: &[ZoneMember]) -> Vec<FcId> {
        self.resolve(keys.iter().copied(), |name| self.id_of(name))
    }

    /// N_Port_IDs of the switch's own domain that match zone members, sorted and without
    /// duplicates.
    fn own_ids_of(&self, keys: impl Iterator<Item = ZoneMember>) -> Vec<FcId> {
        let mut ids = self.resolve(keys, |name| self.own_by_name.get(name, |id| self.name_of(id)));
        ids.retain(|id| Some(id.domain()) == self.own);
        ids
    }

    /// Finds the port with a name by the method of [`NameLookup`].
    pub(super) fn find_name(&self, name: Wwpn, method: NameLookup, work: &mut Work) -> Option<FcId> {
        match method {
            NameLookup::Indexed => {
                work.names_searched += 1;
                self.id_of(name)
            }
            NameLookup::Linear => {
                let mut all = self.range(scope(0, 0)).inspect(|_| work.names_searched += 1);
                all.find(|(_, known)| known.entry.port_name == name).map(|(id, _)| id)
            }
        }
    }

    /// Local ports that may communicate with `id`, sorted, without `id` itself. The search covers
    /// its zone-mates or all local logins, whichever are fewer.
    pub(super) fn local_mates(
        &self,
        logins: &LoginTable,
        id: FcId,
        membership: &ZoneMembership,
        work: &mut Work,
    ) -> Vec<FcId> {
        let zones = &self.zones;
        let mut found: Vec<FcId> = if zones.permits_all() {
            work.objects += logins.len() as u64;
            logins.iter().map(|(id, _)| id).collect()
        } else if membership.is_zoned() && zones.mates_bound(membership) < logins.len() {
            work.zone_members += zones.mates_bound(membership) as u64;
            if !self.may_have_own_mates(membership) {
                return Vec::new();
            }
            let mut ids = self.own_ids_of(zones.mates_of(membership));
            ids.retain(|mate| logins.contains(*mate));
            ids
        } else {
            work.objects += logins.len() as u64;
            if !self.may_have_own_mates(membership) {
                return Vec::new();
            }
            let local = self.own.map(|domain| self.range(scope(domain, 0)));
            let mates = local.into_iter().flatten().filter(|(_, known)| zones.permitted(membership, &known.membership));
            mates.map(|(mate, _)| mate).collect()
        };
        found.retain(|mate| *mate != id);
        found
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

/// Key of the index by switch port. The domain is taken from `id`.
fn port_key(port: u16, id: FcId) -> [u8; 6] {
    let ([high, low], [d, a, p]) = (port.to_be_bytes(), id.to_bytes());
    [d, high, low, d, a, p]
}
