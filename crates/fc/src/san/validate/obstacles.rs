//! Settings that keep sessions of iSCSI from a storage system to which links lead.

use super::fabric::node_name;
use super::reach::names;
use crate::config::{EthernetNode, InfinibandNode, Node};
use crate::san::{IpPaths, Lab};
use std::collections::{BTreeMap, BTreeSet};

/// A setting that keeps sessions of a host from a storage system.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(super) enum Obstacle {
    /// The iSCSI target of the storage system does not list the host in `initiators`.
    Refused(u16),
    /// Links between both do not accept the VLAN of the host: the VLAN and the links by index.
    Vlan(u16, Vec<usize>),
    /// InfiniBand joins both, but the host has no IPoIB: the storage system.
    HostWithoutIpoib(u16),
    /// InfiniBand joins both, but the storage system has no IPoIB.
    StorageWithoutIpoib(u16),
    /// The SRP target is in no partition of the host: the storage system and the partition.
    Partition(u16, u16),
}

impl Obstacle {
    /// Returns what keeps a host from a storage system that it does not reach; `None` if links do
    /// not join them.
    pub(super) fn of(lab: &Lab, paths: &IpPaths<'_>, host: u16, storage: u16) -> Option<Obstacle> {
        let srp = lab.srp_paths();
        if !srp.linked_pairs(host, storage).is_empty() && !srp.share_partition(host, storage) {
            return Some(Obstacle::Partition(storage, lab.hosts.get(usize::from(host))?.srp.partition));
        }
        if !lab.live.iscsi.contains_key(&storage) {
            return None;
        }
        let joined = over_ethernet(lab, host, storage);
        let ends = [InfinibandNode::Host(host), InfinibandNode::Storage(storage)];
        let share_subnet = share_subnet(paths, ends);
        if !paths.iscsi.admits(host, storage) {
            return (joined.is_some() || share_subnet).then_some(Obstacle::Refused(storage));
        }
        if let Some(refusing) = joined.filter(|links| !links.is_empty()) {
            let vlan = lab.hosts[usize::from(host)].iscsi.vlan?;
            return Some(Obstacle::Vlan(vlan, refusing));
        }
        let has_ipoib = ends.map(|node| paths.ipoib(node).is_some());
        match has_ipoib {
            [false, _] if share_subnet => Some(Obstacle::HostWithoutIpoib(storage)),
            [true, false] if share_subnet => Some(Obstacle::StorageWithoutIpoib(storage)),
            _ => None,
        }
    }

    /// Returns the partitions of the SRP target, each with its number.
    fn partitions(&self, lab: &Lab) -> String {
        let Obstacle::Partition(storage, _) = self else { return String::new() };
        let partitions = lab.infiniband.targets.get(storage).map_or(&[][..], |target| &target.partitions);
        let numbers: Vec<String> = partitions.iter().map(u16::to_string).collect();
        format!("partition{} {}", if numbers.len() == 1 { "" } else { "s" }, numbers.join(", "))
    }

    /// Returns whether a partition joins both ends, as limited members.
    fn are_both_limited(&self, lab: &Lab) -> bool {
        let Obstacle::Partition(storage, partition) = self else { return false };
        lab.infiniband.targets.get(storage).is_some_and(|target| target.partitions.contains(partition))
    }

    /// Returns the reason and the remedy, for hosts that meet the same obstacle.
    pub(super) fn describe(&self, lab: &Lab, hosts: &[u16]) -> (String, String) {
        let plural = if hosts.len() == 1 { "" } else { "s" };
        let uses = if hosts.len() == 1 { "uses" } else { "use" };
        let hosts = names(hosts.iter().map(|host| node_name(lab, Node::Host(*host))));
        let name = |storage: &u16| node_name(lab, Node::Storage(*storage));
        match self {
            Obstacle::Refused(storage) => (
                format!("the iSCSI target of `{}` does not list host{plural} {hosts} in `initiators`", name(storage)),
                "add the iSCSI name of the host to `initiators`, or leave `initiators` out".to_owned(),
            ),
            Obstacle::Vlan(vlan, links) => {
                let several = if links.len() == 1 { "" } else { "s" };
                let links = names(links.iter().map(|link| lab.ethernet_links[*link].name.as_str()));
                (
                    format!("VLAN {vlan} of host{plural} {hosts} does not pass link{several} {links}"),
                    format!("add {vlan} to `vlans` of the link{several}, or change `iscsi.vlan` of the host"),
                )
            }
            Obstacle::HostWithoutIpoib(storage) => (
                format!(
                    "InfiniBand leads to the iSCSI target of `{}`, but host{plural} {hosts} without `ipoib` cannot \
                     use it",
                    name(storage)
                ),
                "add `ipoib = {}` to the host, or `srp = {}` to the storage".to_owned(),
            ),
            Obstacle::Partition(storage, partition) if self.are_both_limited(lab) => (
                format!(
                    "the SRP target of `{}` refuses host{plural} {hosts}, because both are limited members of partition \
                     {partition}",
                    name(storage)
                ),
                "set `srp.membership = \"full\"` at the storage".to_owned(),
            ),
            Obstacle::Partition(storage, partition) => (
                format!(
                    "the SRP target of `{}` refuses host{plural} {hosts}, which {uses} partition {partition}: it is in {}",
                    name(storage),
                    self.partitions(lab)
                ),
                format!("add {partition} to `srp.partitions` of the storage, or change `srp.partition` of the host"),
            ),
            Obstacle::StorageWithoutIpoib(storage) => (
                format!(
                    "InfiniBand leads from host{plural} {hosts} to `{}`, whose iSCSI target has no `ipoib`",
                    name(storage)
                ),
                "add `ipoib = {}` or `srp = {}` to the storage".to_owned(),
            ),
        }
    }
}

/// Returns whether two nodes have InfiniBand links in one subnet, with IPoIB or without.
fn share_subnet(paths: &IpPaths<'_>, [a, b]: [InfinibandNode; 2]) -> bool {
    let subnets = |node| paths.subnets_of(node).collect::<BTreeSet<u16>>();
    !subnets(a).is_disjoint(&subnets(b))
}

/// Returns the links that do not accept the VLAN of a host, on the path to a storage system with
/// the fewest of them. `None` if no links lead there.
fn over_ethernet(lab: &Lab, host: u16, storage: u16) -> Option<Vec<usize>> {
    let vlan = lab.hosts.get(usize::from(host))?.iscsi.vlan;
    let (from, to) = (EthernetNode::Host(host), EthernetNode::Storage(storage));
    let mut links: BTreeMap<EthernetNode, Vec<(usize, EthernetNode)>> = BTreeMap::new();
    for (number, link) in lab.ethernet_links.iter().enumerate() {
        let [a, b] = link.ends.map(|end| end.node);
        links.entry(a).or_default().push((number, b));
        links.entry(b).or_default().push((number, a));
    }
    let refuses = |number: usize| {
        let accepted = &lab.ethernet_links[number].vlans;
        vlan.is_some_and(|vlan| !accepted.is_empty() && !accepted.contains(&vlan))
    };
    // Search by the number of refusing links (Dijkstra): node, and the refusing links before it.
    let mut open: BTreeSet<(usize, EthernetNode, Vec<usize>)> = BTreeSet::from([(0, from, Vec::new())]);
    let mut closed = BTreeSet::new();
    while let Some((_, node, refusing)) = open.pop_first() {
        if node == to {
            return Some(refusing);
        }
        if !closed.insert(node) || (node != from && !matches!(node, EthernetNode::Switch(_))) {
            continue;
        }
        for &(number, next) in links.get(&node).into_iter().flatten().filter(|(_, next)| !closed.contains(next)) {
            let mut refusing = refusing.clone();
            refusing.extend(refuses(number).then_some(number));
            open.insert((refusing.len(), next, refusing));
        }
    }
    None
}
