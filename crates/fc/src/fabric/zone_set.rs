//! Index of the effective zones: [`ZoneSet`].

use super::zone_membership::{PortIdentity, ZoneMembership, ZoneRole};
use crate::config::{ZoneMember, Zoning};
use sanloom_wire::{FcId, Wwnn, Wwpn};
use std::sync::Arc;

/// Effective zones of a fabric, indexed by member.
///
/// It is built once and shared between the switches of a process (`Arc<ZoneSet>`). Its memory is
/// that of the member lists. The cost to find the zone-mates of a port depends only on the size of
/// its own zones.
///
/// # Permitted communication
///
/// - Two ports that share a zone may communicate; in a peer zone only a principal and a member.
/// - Two ports in no zone may communicate if the default zone is open.
/// - A port in a zone and a port in none may not communicate.
///
/// A port is in a zone that names it in any of the four forms of [`ZoneMember`]. A *key* below is a
/// member as a zone names it. One key can match several ports, and one port can have several keys.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ZoneSet {
    open_default: bool,
    keys: Keys,
    /// Zones and roles by key, see [`item`].
    zones_of: Lists,
    /// Keys of the members by zone.
    members_of: Lists,
    /// Keys of the principals by zone.
    principals_of: Lists,
}

/// All keys of all zones, sorted. Indices run through the four lists in order.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
struct Keys {
    port_names: Vec<Wwpn>,
    node_names: Vec<Wwnn>,
    domain_ports: Vec<(u8, u16)>,
    port_ids: Vec<FcId>,
}

impl Keys {
    fn new(members: impl Iterator<Item = ZoneMember>) -> Keys {
        let mut keys = Keys::default();
        for member in members {
            match member {
                ZoneMember::PortName(name) => keys.port_names.push(name),
                ZoneMember::NodeName(name) => keys.node_names.push(name),
                ZoneMember::DomainPort { domain, port } => keys.domain_ports.push((domain, port)),
                ZoneMember::PortId(id) => keys.port_ids.push(id),
            }
        }
        sort_once(&mut keys.port_names);
        sort_once(&mut keys.node_names);
        sort_once(&mut keys.domain_ports);
        sort_once(&mut keys.port_ids);
        keys
    }

    fn len(&self) -> usize {
        self.port_names.len() + self.node_names.len() + self.domain_ports.len() + self.port_ids.len()
    }

    /// Start indices of the second to fourth list.
    fn starts(&self) -> [usize; 3] {
        let nodes = self.port_names.len();
        let ports = nodes + self.node_names.len();
        [nodes, ports, ports + self.domain_ports.len()]
    }

    fn index(&self, key: ZoneMember) -> Option<u32> {
        let [nodes, ports, ids] = self.starts();
        let index = match key {
            ZoneMember::PortName(name) => self.port_names.binary_search(&name).ok(),
            ZoneMember::NodeName(name) => self.node_names.binary_search(&name).ok().map(|n| nodes + n),
            ZoneMember::DomainPort { domain, port } => {
                self.domain_ports.binary_search(&(domain, port)).ok().map(|n| ports + n)
            }
            ZoneMember::PortId(id) => self.port_ids.binary_search(&id).ok().map(|n| ids + n),
        };
        index.map(|index| index as u32)
    }

    fn get(&self, index: u32) -> ZoneMember {
        let [nodes, ports, ids] = self.starts();
        match index as usize {
            n if n < nodes => ZoneMember::PortName(self.port_names[n]),
            n if n < ports => ZoneMember::NodeName(self.node_names[n - nodes]),
            n if n < ids => {
                let (domain, port) = self.domain_ports[n - ports];
                ZoneMember::DomainPort { domain, port }
            }
            n => ZoneMember::PortId(self.port_ids[n - ids]),
        }
    }
}

fn sort_once<T: Ord>(list: &mut Vec<T>) {
    list.sort_unstable();
    list.dedup();
    list.shrink_to_fit();
}

/// Concatenated lists of numbers, each sorted.
#[derive(Clone, PartialEq, Eq, Debug)]
struct Lists {
    /// Start of each list in `items`, and the end of the last one.
    starts: Vec<u32>,
    items: Vec<u32>,
}

impl Lists {
    /// Builds the lists from (list, item) pairs, which it sorts and deduplicates.
    fn new(lists: usize, mut pairs: Vec<(u32, u32)>) -> Lists {
        pairs.sort_unstable();
        pairs.dedup();
        let start_of = |list: usize| pairs.partition_point(|(of, _)| (*of as usize) < list) as u32;
        Lists { starts: (0..=lists).map(start_of).collect(), items: pairs.into_iter().map(|(_, item)| item).collect() }
    }

    fn of(&self, list: u32) -> &[u32] {
        let list = list as usize;
        &self.items[self.starts[list] as usize..self.starts[list + 1] as usize]
    }
}

impl ZoneSet {
    /// Indexes the zones. A member that a zone contains twice counts once.
    pub fn new(zoning: &Zoning) -> ZoneSet {
        let keys = Keys::new(zoning.zones.iter().flat_map(|zone| zone.all_members().copied()));
        let (mut zones_of, mut members, mut principals) = (Vec::new(), Vec::new(), Vec::new());
        for (number, zone) in (0u32..).zip(&zoning.zones) {
            let member_role = if zone.is_peer() { MEMBER } else { BOTH };
            let lists = [(&zone.members, member_role, &mut members), (&zone.principals, PRINCIPAL, &mut principals)];
            for (list, role, by_zone) in lists {
                for index in list.iter().filter_map(|member| keys.index(*member)) {
                    zones_of.push((index, item(number, role)));
                    by_zone.push((number, index));
                }
            }
        }
        ZoneSet {
            open_default: zoning.default_is_open(),
            zones_of: Lists::new(keys.len(), joined(zones_of)),
            members_of: Lists::new(zoning.zones.len(), members),
            principals_of: Lists::new(zoning.zones.len(), principals),
            keys,
        }
    }

    /// Returns true if all ports may communicate, because there are no zones and the default zone
    /// is open. No table is needed then.
    pub fn permits_all(&self) -> bool {
        self.open_default && self.keys.len() == 0
    }

    /// Returns true if ports in no zone may communicate.
    pub fn open_default(&self) -> bool {
        self.open_default
    }

    /// Returns true if a zone names a port by node name. Ports must not change their node name
    /// after login then.
    pub fn uses_node_names(&self) -> bool {
        !self.keys.node_names.is_empty()
    }

    /// Returns true if a zone names a port by switch port number.
    pub fn uses_switch_ports(&self) -> bool {
        !self.keys.domain_ports.is_empty()
    }

    /// Returns true if the port is in a zone.
    pub fn is_zoned(&self, port: &PortIdentity) -> bool {
        port.keys().into_iter().any(|key| self.keys.index(key).is_some())
    }

    /// Zone membership of a port. It is computed once at login; later comparisons need no search.
    pub fn membership(&self, port: &PortIdentity) -> ZoneMembership {
        let found = port.keys().map(|key| self.keys.index(key));
        let mut indices = found.into_iter().flatten();
        let (Some(first), second) = (indices.next(), indices.next()) else {
            return ZoneMembership::NONE;
        };
        let Some(second) = second else {
            return ZoneMembership::of_key(first);
        };
        let items = [first, second].into_iter().chain(indices).flat_map(|index| self.zones_of.of(index));
        let items = joined(items.map(|item| (0, *item)).collect());
        ZoneMembership::of_items(items.into_iter().map(|(_, item)| item).collect::<Vec<u32>>().into())
    }

    /// Returns true if the two ports may communicate; a port may always communicate with itself.
    pub fn permits(&self, a: &PortIdentity, b: &PortIdentity) -> bool {
        a == b || self.permits_all() || self.permitted(&self.membership(a), &self.membership(b))
    }

    /// As [`permits`](ZoneSet::permits), for two different ports by their membership in this set.
    pub fn permitted(&self, a: &ZoneMembership, b: &ZoneMembership) -> bool {
        match (a.is_zoned(), b.is_zoned()) {
            (true, true) => intersect(self.items(a), self.items(b)),
            (false, false) => self.open_default,
            _ => false,
        }
    }

    /// Zones of a port with its roles, sorted by zone index in [`Zoning::zones`].
    pub fn roles<'s>(&'s self, membership: &'s ZoneMembership) -> impl Iterator<Item = ZoneRole> + 's {
        self.items(membership).iter().map(|item| ZoneRole {
            zone: zone(*item),
            principal: item & PRINCIPAL != 0,
            member: item & MEMBER != 0,
        })
    }

    /// Keys of all ports with which the port may communicate, sorted and without duplicates; empty
    /// for a port in no zone. The second value is the number of keys examined.
    ///
    /// The keys of the port itself are included, because they may match other ports as well. The
    /// caller that resolves the keys must exclude the port itself.
    pub fn mates(&self, membership: &ZoneMembership) -> (Vec<ZoneMember>, usize) {
        let mut mates = Vec::with_capacity(self.mates_bound(membership));
        for list in self.mate_lists(membership) {
            mates.extend_from_slice(list);
        }
        let examined = mates.len();
        mates.sort_unstable();
        mates.dedup();
        (mates.into_iter().map(|mate| self.keys.get(mate)).collect(), examined)
    }

    /// As [`mates`](ZoneSet::mates), but as an iterator, unsorted and possibly with duplicates.
    pub fn mates_of<'s>(&'s self, membership: &'s ZoneMembership) -> impl Iterator<Item = ZoneMember> + 's {
        self.mate_lists(membership).flatten().map(|mate| self.keys.get(*mate))
    }

    /// Number of keys that [`mates`](ZoneSet::mates) examines, computed without examining them.
    pub fn mates_bound(&self, membership: &ZoneMembership) -> usize {
        self.mate_lists(membership).map(<[u32]>::len).sum()
    }

    fn mate_lists<'s>(&'s self, membership: &'s ZoneMembership) -> impl Iterator<Item = &'s [u32]> {
        self.items(membership).iter().flat_map(|item| {
            let zone = zone(*item);
            let members = (item & PRINCIPAL != 0).then(|| self.members_of.of(zone));
            let principals = (item & MEMBER != 0).then(|| self.principals_of.of(zone));
            members.into_iter().chain(principals)
        })
    }

    fn items<'s>(&'s self, membership: &'s ZoneMembership) -> &'s [u32] {
        match (membership.key(), membership.items()) {
            (Some(key), _) => self.zones_of.of(key),
            (None, items) => items,
        }
    }
}

/// Role bits of an item. In a zone without principals each port has both, so that one rule covers
/// both kinds of zones.
const PRINCIPAL: u32 = 1;
const MEMBER: u32 = 2;
const BOTH: u32 = PRINCIPAL | MEMBER;

/// Packs a zone and a role into one number.
fn item(zone: u32, role: u32) -> u32 {
    zone << 2 | role
}

fn zone(item: u32) -> u32 {
    item >> 2
}

/// Sorts items and merges those of the same zone into one with all roles.
fn joined(mut items: Vec<(u32, u32)>) -> Vec<(u32, u32)> {
    items.sort_unstable();
    items.dedup_by(|(key, next), (first_key, first)| {
        let same = key == first_key && zone(*next) == zone(*first);
        if same {
            *first |= *next;
        }
        same
    });
    items
}

/// Returns true if a zone has one port as principal and the other as member. Both lists are sorted.
fn intersect(mut a: &[u32], mut b: &[u32]) -> bool {
    while let ([first_a, rest_a @ ..], [first_b, rest_b @ ..]) = (a, b) {
        match zone(*first_a).cmp(&zone(*first_b)) {
            std::cmp::Ordering::Less => a = rest_a,
            std::cmp::Ordering::Greater => b = rest_b,
            std::cmp::Ordering::Equal => {
                let pair = |p: u32, m: u32| p & PRINCIPAL != 0 && m & MEMBER != 0;
                if pair(*first_a, *first_b) || pair(*first_b, *first_a) {
                    return true;
                }
                (a, b) = (rest_a, rest_b);
            }
        }
    }
    false
}

/// Membership of a port with several keys.
pub(super) type Items = Arc<Vec<u32>>;

#[cfg(test)]
mod tests;
