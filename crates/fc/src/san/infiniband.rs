//! InfiniBand of a lab: interfaces, subnets, and pairs of SRP end points.

use super::Lab;
use crate::config::{InfinibandEnd, InfinibandLink, InfinibandNode, Membership};
use std::collections::{BTreeMap, BTreeSet};

/// InfiniBand interface of a host or storage system.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct InfinibandInterface {
    /// Host or storage system, and the number of the interface there.
    pub end: InfinibandEnd,
    /// Index into the InfiniBand links of its link.
    pub link: usize,
    /// Its end of the link, 0 or 1.
    pub side: u8,
}

/// Paths of SRP channels: [`Lab::srp_paths`]. Interfaces are known by their index in `interfaces`.
pub struct SrpPaths<'l> {
    lab: &'l Lab,
    /// [`Lab::infiniband_interfaces`].
    pub interfaces: Vec<InfinibandInterface>,
    by_node: BTreeMap<InfinibandNode, Vec<u16>>,
    /// [`infiniband_groups`].
    groups: Vec<u16>,
}

impl SrpPaths<'_> {
    /// Interfaces of a host or storage system.
    pub fn interfaces_of(&self, node: InfinibandNode) -> &[u16] {
        self.by_node.get(&node).map_or(&[], Vec::as_slice)
    }

    /// Interfaces of the SRP target of a storage system; empty without a target.
    pub fn target_ports(&self, storage: u16) -> &[u16] {
        match self.lab.infiniband.targets.contains_key(&storage) {
            true => self.interfaces_of(InfinibandNode::Storage(storage)),
            false => &[],
        }
    }

    /// Returns whether the SRP initiator of a host is in a partition of the SRP target of a storage
    /// system, and at least one of them is a full member.
    pub fn share_partition(&self, host: u16, storage: u16) -> bool {
        let host = self.lab.hosts.get(usize::from(host));
        let target = self.lab.infiniband.targets.get(&storage);
        host.zip(target).is_some_and(|(host, target)| {
            let is_full = [host.srp.membership, target.membership].contains(&Membership::Full);
            is_full && target.partitions.contains(&host.srp.partition)
        })
    }

    /// Pairs of an interface of the host and one of the storage system in one subnet and partition:
    /// the interface of the host, and the number of the other in [`SrpPaths::target_ports`]. Each
    /// carries a channel.
    pub fn pairs(&self, host: u16, storage: u16) -> Vec<(u16, u16)> {
        match self.share_partition(host, storage) {
            true => self.linked_pairs(host, storage),
            false => Vec::new(),
        }
    }

    /// As [`SrpPaths::pairs`], in any partition. The target refuses logins from outside its own.
    pub fn linked_pairs(&self, host: u16, storage: u16) -> Vec<(u16, u16)> {
        let group = |interface: u16| self.groups[self.interfaces[usize::from(interface)].link];
        let mut pairs = Vec::new();
        for &own in self.interfaces_of(InfinibandNode::Host(host)) {
            let ports = (0..).zip(self.target_ports(storage));
            pairs.extend(ports.filter(|(_, far)| group(own) == group(**far)).map(|(port, _)| (own, port)));
        }
        pairs
    }
}

impl Lab {
    /// InfiniBand interfaces of hosts and storage systems, in ascending order of their ends. An
    /// interface is known to the simulator by its index in this list.
    pub fn infiniband_interfaces(&self) -> Vec<InfinibandInterface> {
        let mut interfaces: Vec<InfinibandInterface> = Vec::new();
        for (link, config) in self.infiniband.links.iter().enumerate() {
            for (side, end) in (0..).zip(config.ends) {
                if !matches!(end.node, InfinibandNode::Switch(_)) {
                    interfaces.push(InfinibandInterface { end, link, side });
                }
            }
        }
        interfaces.sort_by_key(|interface| interface.end);
        interfaces
    }

    /// Paths of SRP channels in a simulation.
    pub fn srp_paths(&self) -> SrpPaths<'_> {
        let interfaces = self.infiniband_interfaces();
        let mut by_node: BTreeMap<InfinibandNode, Vec<u16>> = BTreeMap::new();
        for (number, interface) in (0..).zip(&interfaces) {
            by_node.entry(interface.end.node).or_default().push(number);
        }
        SrpPaths { lab: self, interfaces, by_node, groups: infiniband_groups(self) }
    }

    /// Calls a function for each host and SRP target that a workload joins and that have InfiniBand
    /// interfaces, once for each pair, until it returns false.
    pub fn for_each_srp_pair(&self, mut call: impl FnMut(&SrpPaths<'_>, u16, u16) -> bool) {
        if self.infiniband.links.is_empty() {
            return;
        }
        let paths = self.srp_paths();
        let mut seen = BTreeSet::new();
        for workload in &self.workloads {
            let targets = workload.targets.iter().map(|target| target.storage);
            let targets: BTreeSet<u16> = targets.filter(|storage| !paths.target_ports(*storage).is_empty()).collect();
            let is_linked = |host: &u16| !paths.interfaces_of(InfinibandNode::Host(*host)).is_empty();
            for host in workload.hosts.iter().copied().filter(is_linked) {
                for &storage in &targets {
                    if seen.insert((host, storage)) && !call(&paths, host, storage) {
                        return;
                    }
                }
            }
        }
    }

    /// Blocks of 64 bytes that one end of an InfiniBand link holds for each lane.
    pub fn infiniband_blocks(&self, link: &InfinibandLink, side: usize) -> u16 {
        let of_node = match link.ends[side].node {
            InfinibandNode::Switch(switch) => self.infiniband.switches.get(usize::from(switch)).map(|own| own.blocks),
            InfinibandNode::Host(host) => self.hosts.get(usize::from(host)).map(|own| own.srp.blocks),
            InfinibandNode::Storage(storage) => self.infiniband.targets.get(&storage).map(|own| own.blocks),
        };
        link.blocks.or(of_node).unwrap_or(256)
    }

    /// Name of the node at an end of an InfiniBand link.
    pub fn infiniband_node_name(&self, node: InfinibandNode) -> &str {
        let name = match node {
            InfinibandNode::Switch(switch) => self.infiniband.switches.get(usize::from(switch)).map(|own| &own.name),
            InfinibandNode::Host(host) => self.hosts.get(usize::from(host)).map(|own| &own.name),
            InfinibandNode::Storage(storage) => self.storage.get(usize::from(storage)).map(|own| &own.name),
        };
        name.map_or("?", String::as_str)
    }
}

/// Service level of the packets that the IPoIB interfaces of a node send; `None` without IPoIB.
pub fn ipoib_level(lab: &Lab, node: InfinibandNode) -> Option<u8> {
    let of_srp = match node {
        InfinibandNode::Host(host) => lab.hosts.get(usize::from(host)).map_or(0, |host| host.srp.level),
        InfinibandNode::Storage(_) | InfinibandNode::Switch(_) => 0,
    };
    Some(lab.infiniband.ipoib.nodes.get(&node)?.level.unwrap_or(of_srp))
}

/// Group of each InfiniBand link: links of one group are joined by switches. Groups are numbered by
/// their first link.
pub(super) fn infiniband_groups(lab: &Lab) -> Vec<u16> {
    infiniband_groups_without(lab, &BTreeSet::new()).into_iter().map(|group| group.unwrap_or(u16::MAX)).collect()
}

/// As [`infiniband_groups`], without some links, which have no group.
pub(super) fn infiniband_groups_without(lab: &Lab, broken: &BTreeSet<u16>) -> Vec<Option<u16>> {
    let links = &lab.infiniband.links;
    let mut groups: Vec<usize> = (0..links.len()).collect();
    fn root(groups: &[usize], mut link: usize) -> usize {
        while groups[link] != link {
            link = groups[link];
        }
        link
    }
    let is_whole = |number: usize| !broken.contains(&(number as u16));
    let mut first: BTreeMap<u16, usize> = BTreeMap::new();
    for (number, link) in links.iter().enumerate().filter(|(number, _)| is_whole(*number)) {
        for (_, switch) in link.switches() {
            let other = *first.entry(switch).or_insert(number);
            let (a, b) = (root(&groups, number), root(&groups, other));
            groups[a.max(b)] = a.min(b);
        }
    }
    (0..links.len()).map(|link| is_whole(link).then(|| root(&groups, link) as u16)).collect()
}

impl InfinibandEnd {
    /// Name of a port or interface: `ib1:4`, `server1:ib0`.
    pub fn name(self, lab: &Lab) -> String {
        let name = lab.infiniband_node_name(self.node);
        match self.node {
            InfinibandNode::Switch(_) => format!("{name}:{}", self.port),
            InfinibandNode::Host(_) | InfinibandNode::Storage(_) => format!("{name}:ib{}", self.port),
        }
    }
}
