//! Pairs of host port and storage port that may exchange commands: [`PermittedPairs`].
//!
//! No other code determines the paths that a lab permits. Validation, the topology report and its
//! lints, and the commands that compare a run with the design all use it.

use super::masks::Masks;
use super::{AttachedPort, Lab};
use crate::config::{Node, Zone, Zoning};
use crate::fabric::ZoneSet;
use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;

/// Host ports, storage ports, and the pairs that may communicate.
///
/// A pair is permitted if both ports are linked to one fabric, a zone of that fabric (or its
/// default zone) permits the pair, and masks show the host port at least one LUN of the storage
/// system. Loops and direct links have no zones. [`PermittedPairs::shows`] names the LUNs. Host
/// ports that may reach the same storage ports and see the same masked LUNs share one set, so the
/// memory follows the number of different sets.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct PermittedPairs {
    /// Linked ports of hosts, sorted by host and port; virtual ports included.
    pub hosts: Vec<AttachedPort>,
    /// Linked ports of storage systems, sorted by storage system and port.
    pub storage: Vec<AttachedPort>,
    /// For each of `hosts` an index into `sets`.
    set_of: Vec<u32>,
    /// Sets of indices into `storage`, each sorted.
    sets: Vec<Vec<u32>>,
    masks: Masks,
}

impl Lab {
    /// Pairs that the lab permits when it starts: effective zones and masks, without links that are
    /// dark then or that the switches isolate. `isolated` are indices of links.
    pub fn permitted_pairs(&self, isolated: &[usize]) -> PermittedPairs {
        let (apart, dark) = (self.links_apart(isolated), self.links_down_at_start());
        PermittedPairs::new(self, &self.junctions_without(&apart), &dark, &[&self.zoning], Masks::of(self))
    }

    /// Pairs that the lab permits at some time: with links that come up later, and with the zones
    /// of each scheduled change.
    pub fn pairs_permitted_at_some_time(&self) -> PermittedPairs {
        self.pairs_zoned_at_some_time(Masks::of(self))
    }

    /// As [`Lab::pairs_permitted_at_some_time`], without the links that never come up.
    pub fn pairs_usable_at_some_time(&self) -> PermittedPairs {
        self.pairs_without(&self.links_down_for_good(), Masks::of(self))
    }

    /// As [`Lab::pairs_permitted_at_some_time`], with other masks.
    pub(super) fn pairs_zoned_at_some_time(&self, masks: Masks) -> PermittedPairs {
        self.pairs_without(&BTreeSet::new(), masks)
    }

    /// Pairs that the zones of some time permit, without some links.
    fn pairs_without(&self, dark: &BTreeSet<u16>, masks: Masks) -> PermittedPairs {
        let zonings: Vec<&Zoning> =
            [&self.zoning].into_iter().chain(self.changes.iter().map(|change| &change.expected)).collect();
        PermittedPairs::new(self, &self.junctions_without(dark), dark, &zonings, masks)
    }

    /// Links between switches that carry nothing when the lab starts: `isolated` ones and dark
    /// ones.
    pub fn links_apart(&self, isolated: &[usize]) -> BTreeSet<u16> {
        self.isls_down_at_start().into_iter().chain(isolated.iter().map(|link| *link as u16)).collect()
    }

    /// Effective zones that count at a switch, and the default zone.
    pub fn zoning_at(&self, zoning: &Zoning, switch: u16) -> Zoning {
        let counts = |zone: &&Zone| self.zone_counts_at(&zone.name, switch);
        Zoning { zones: zoning.zones.iter().filter(counts).cloned().collect(), default: zoning.default }
    }
}

impl PermittedPairs {
    /// `fabrics`: the group of each junction. Ports on links in `dark` are left out.
    fn new(lab: &Lab, fabrics: &[u16], dark: &BTreeSet<u16>, zonings: &[&Zoning], masks: Masks) -> PermittedPairs {
        let (mut hosts, mut storage) = (Vec::new(), Vec::new());
        let is_dark = |link: usize| u16::try_from(link).is_ok_and(|link| dark.contains(&link));
        let is_lit = |port: &AttachedPort| !is_dark(port.link) && !port.fl_port_link.is_some_and(is_dark);
        for mut port in lab.linked_ports().into_iter().filter(is_lit) {
            port.fabric = fabrics.get(usize::from(port.switch)).copied().unwrap_or(port.switch);
            match port.node {
                Node::Host(_) => hosts.push(port),
                Node::Storage(_) => storage.push(port),
                Node::Switch(_) | Node::Loop(_) => {}
            }
        }
        let order = |port: &AttachedPort| (port.node, port.port);
        hosts.sort_by_key(order);
        storage.sort_by_key(order);
        let zones: Vec<Zones> = zonings.iter().map(|zoning| Zones::new(lab, zoning, &storage)).collect();
        let mut numbers: BTreeMap<SetKey<'_>, u32> = BTreeMap::new();
        let mut known = BTreeMap::new();
        let mut set_of = Vec::with_capacity(hosts.len());
        for port in &hosts {
            let signatures: Vec<Signature> = zones.iter().map(|zones| zones.signature(lab, port)).collect();
            let key = (signatures, masks.seen(port.identity.port_name));
            let number = known.entry(key).or_insert_with_key(|(signatures, seen)| {
                let partners = zones.iter().zip(signatures).flat_map(|(zones, signature)| zones.partners(signature));
                let shows = |port: &AttachedPort| storage_number(port).is_none_or(|s| masks.shows_any(*seen, s));
                let mut set: Vec<u32> = partners.filter(|partner| shows(&storage[*partner as usize])).collect();
                set.sort_unstable();
                set.dedup();
                let number = numbers.len() as u32;
                *numbers.entry((set, *seen)).or_insert(number)
            });
            set_of.push(*number);
        }
        let mut sets = vec![Vec::new(); numbers.len()];
        for ((set, _), number) in numbers {
            sets[number as usize] = set;
        }
        PermittedPairs { hosts, storage, set_of, sets, masks }
    }

    /// Storage ports that a host port may access, as sorted indices into `storage`. `host_port` is
    /// an index into `hosts`.
    pub fn partners(&self, host_port: usize) -> &[u32] {
        &self.sets[self.set_of[host_port] as usize]
    }

    /// Number of the set of [`partners`](PermittedPairs::partners): equal for host ports with equal
    /// partners that see the same masked LUNs.
    pub fn set_of(&self, host_port: usize) -> u32 {
        self.set_of[host_port]
    }

    /// The sets of partners, by their number.
    pub fn sets(&self) -> &[Vec<u32>] {
        &self.sets
    }

    /// Returns whether masks restrict the LUNs of a storage system.
    pub fn is_masked(&self, storage: u16) -> bool {
        self.masks.is_masked(storage)
    }

    /// Returns whether masks show a LUN of a storage system to a host port, an index into `hosts`.
    pub fn shows(&self, host_port: usize, storage: u16, lun: u16) -> bool {
        self.masks.shows(self.hosts[host_port].identity.port_name, storage, lun)
    }

    /// Numbers of linked ports in no zone, with an open and with a closed default zone. Both are 0
    /// in a lab without effective zones.
    pub fn unzoned(&self, lab: &Lab) -> (usize, usize) {
        if lab.zoning.zones.is_empty() {
            return (0, 0);
        }
        let zones = Zones::new(lab, &lab.zoning, &[]);
        let ports = self.hosts.iter().chain(&self.storage).filter(|port| lab.is_switch(port.switch));
        let in_none = ports.filter(|port| zones.signature(lab, port).1.is_empty());
        in_none.fold((0, 0), |(open, closed), port| match zones.is_open(lab, port) {
            true => (open + 1, closed),
            false => (open, closed + 1),
        })
    }

    /// Indices of the ports of a host in `hosts`.
    pub fn ports_of_host(&self, host: u16) -> Range<usize> {
        range(&self.hosts, Node::Host(host))
    }

    /// Indices of the ports of a storage system in `storage`.
    pub fn ports_of_storage(&self, storage: u16) -> Range<usize> {
        range(&self.storage, Node::Storage(storage))
    }

    /// Storage systems that at least one port of a host may access.
    pub fn storage_of_host(&self, host: u16) -> BTreeSet<u16> {
        let ports = self.ports_of_host(host).flat_map(|port| self.partners(port));
        ports.filter_map(|port| storage_number(&self.storage[*port as usize])).collect()
    }
}

fn range(ports: &[AttachedPort], node: Node) -> Range<usize> {
    ports.partition_point(|port| port.node < node)..ports.partition_point(|port| port.node <= node)
}

fn storage_number(port: &AttachedPort) -> Option<u16> {
    match port.node {
        Node::Storage(number) => Some(number),
        Node::Host(_) | Node::Switch(_) | Node::Loop(_) => None,
    }
}

/// A set of partners, with the masked LUNs that its host ports see.
type SetKey<'m> = (Vec<u32>, Option<&'m BTreeSet<(u16, u16)>>);

/// Fabric of a host port, and its zones with its role in each; without zones the default zone
/// applies. Host ports with equal signatures have equal partners.
type Signature = (u16, Vec<(u32, bool, bool)>);

/// One zoning, indexed for the storage ports.
struct Zones {
    /// By virtual fabric; switches outside of any have `None`.
    sets: BTreeMap<Option<u16>, ZoneSet>,
    /// Storage ports that are members of a zone, and those that are principals, by fabric and zone.
    members: BTreeMap<(u16, u32), Vec<u32>>,
    principals: BTreeMap<(u16, u32), Vec<u32>>,
    /// Storage ports in no zone, by fabric; only where the default zone is open.
    unzoned: BTreeMap<u16, Vec<u32>>,
}

impl Zones {
    fn new(lab: &Lab, zoning: &Zoning, storage: &[AttachedPort]) -> Zones {
        let mut sets: BTreeMap<Option<u16>, ZoneSet> = BTreeMap::new();
        for switch in 0..lab.switches.len() as u16 {
            let set = || ZoneSet::new(&lab.zoning_at(zoning, switch));
            // Without zones of single virtual fabrics, one set serves all.
            sets.entry(virtual_fabric(lab, switch)).or_insert_with(set);
        }
        let (members, principals, unzoned) = Default::default();
        let mut zones = Zones { sets, members, principals, unzoned };
        for (number, port) in (0..).zip(storage) {
            let (fabric, roles) = zones.signature(lab, port);
            if roles.is_empty() {
                zones.unzoned.entry(fabric).or_default().push(number);
            }
            for (zone, principal, member) in roles {
                if principal {
                    zones.principals.entry((fabric, zone)).or_default().push(number);
                }
                if member {
                    zones.members.entry((fabric, zone)).or_default().push(number);
                }
            }
        }
        let closed = storage.iter().filter(|port| !zones.is_open(lab, port)).map(|port| port.fabric);
        let closed: BTreeSet<u16> = closed.collect();
        zones.unzoned.retain(|fabric, _| !closed.contains(fabric));
        zones
    }

    /// Zones at a switch; `None` for loops and direct links.
    fn set(&self, lab: &Lab, port: &AttachedPort) -> Option<&ZoneSet> {
        if !lab.is_switch(port.switch) {
            return None;
        }
        self.sets.get(&virtual_fabric(lab, port.switch))
    }

    /// Returns whether ports in no zone of the port's fabric may access each other.
    fn is_open(&self, lab: &Lab, port: &AttachedPort) -> bool {
        !lab.is_switch(port.switch) || self.set(lab, port).is_some_and(ZoneSet::open_default)
    }

    fn signature(&self, lab: &Lab, port: &AttachedPort) -> Signature {
        let Some(set) = self.set(lab, port) else { return (port.fabric, Vec::new()) };
        let membership = set.membership(&port.identity);
        (port.fabric, set.roles(&membership).map(|role| (role.zone, role.principal, role.member)).collect())
    }

    fn partners<'z>(&'z self, (fabric, roles): &'z Signature) -> impl Iterator<Item = u32> + 'z {
        let unzoned = roles.is_empty().then(|| self.unzoned.get(fabric)).flatten();
        let zoned = roles.iter().flat_map(|(zone, principal, member)| {
            let members = principal.then(|| self.members.get(&(*fabric, *zone))).flatten();
            let principals = member.then(|| self.principals.get(&(*fabric, *zone))).flatten();
            members.into_iter().chain(principals)
        });
        unzoned.into_iter().chain(zoned).flatten().copied()
    }
}

/// Key of the zone set of a switch. If every zone counts everywhere, all switches share one.
fn virtual_fabric(lab: &Lab, switch: u16) -> Option<u16> {
    lab.vf_id(switch).filter(|_| !lab.zone_fabrics.is_empty())
}
