//! Ethernet of a lab: interfaces, VLANs, headroom, pairs of iSCSI end points, and the network that
//! a simulation adds to a lab whose hosts reach iSCSI targets in no other way.

use super::Lab;
use crate::config::{
    EthernetEnd, EthernetLink, EthernetNode, EthernetRate, EthernetSwitch, FRAME_OVERHEAD_BYTES, InfinibandNode, Iscsi,
    MediumKind, Node, PRIORITIES, Picos, VlanNumbers,
};
use std::collections::{BTreeMap, BTreeSet};

/// Ethernet interface of a host, a storage system or an FCoE forwarder.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct EthernetInterface {
    /// Host or storage system, and the number of the interface there.
    pub end: EthernetEnd,
    /// Index into `ethernet_links` of its link.
    pub link: usize,
    /// Its end of the link, 0 or 1.
    pub side: u8,
}

/// Paths of iSCSI sessions in a simulation: [`Lab::iscsi_paths`]. Interfaces are known by their
/// index in `interfaces`.
pub struct IscsiPaths<'l> {
    pub(super) lab: &'l Lab,
    /// [`Lab::ethernet_interfaces`].
    pub interfaces: Vec<EthernetInterface>,
    by_node: BTreeMap<EthernetNode, Vec<u16>>,
    /// Number of IPoIB interfaces of each storage system that has any.
    on_infiniband: BTreeMap<u16, usize>,
    /// [`Lab::ethernet_groups`] of each VLAN of a host, and of no VLAN.
    groups: BTreeMap<Option<u16>, Vec<Option<u16>>>,
}

impl IscsiPaths<'_> {
    /// Interfaces of a host or storage system.
    pub fn interfaces_of(&self, node: EthernetNode) -> &[u16] {
        self.by_node.get(&node).map_or(&[], Vec::as_slice)
    }

    /// Interfaces of the iSCSI portals of a storage system: portal i is at interface i modulo their
    /// number, and each interface has a portal at least. Empty without an iSCSI target or an
    /// interface.
    pub fn portals(&self, storage: u16) -> Vec<u16> {
        let Some(target) = self.lab.live.iscsi.get(&storage) else { return Vec::new() };
        let interfaces = self.interfaces_of(EthernetNode::Storage(storage));
        // Further addresses are those of the IPoIB interfaces.
        let listed = target.portals.len().saturating_sub(self.on_infiniband.get(&storage).copied().unwrap_or(0));
        let portals = if interfaces.is_empty() { 0 } else { listed.max(interfaces.len()) };
        interfaces.iter().copied().cycle().take(portals).collect()
    }

    /// Returns whether the iSCSI target of a storage system admits a host.
    pub fn admits(&self, host: u16, storage: u16) -> bool {
        let name = self.lab.hosts.get(usize::from(host)).map(|host| &host.iscsi.name);
        let admits =
            |target: &Iscsi| target.initiators.is_empty() || name.is_some_and(|name| target.initiators.contains(name));
        self.lab.live.iscsi.get(&storage).is_some_and(admits)
    }

    /// Returns whether frames pass between two interfaces in the VLAN of a host.
    pub fn are_joined(&self, host: u16, a: u16, b: u16) -> bool {
        let vlan = self.lab.hosts.get(usize::from(host)).and_then(|host| host.iscsi.vlan);
        self.are_joined_in(vlan, a, b)
    }

    /// Returns whether frames pass between two interfaces in the VLAN of a host, or without a VLAN.
    pub(super) fn are_joined_in(&self, vlan: Option<u16>, a: u16, b: u16) -> bool {
        let Some(groups) = self.groups.get(&vlan) else { return false };
        let group = |interface: u16| groups[self.interfaces[usize::from(interface)].link];
        group(a).is_some() && group(a) == group(b)
    }

    /// Pairs of an interface of the host and a portal of the storage system between which frames
    /// pass in the VLAN of the host: the interface, and the number of the portal in
    /// [`IscsiPaths::portals`]. Each pair carries `sessions` of the host. Empty if the target does
    /// not admit the host.
    pub fn pairs(&self, host: u16, storage: u16) -> Vec<(u16, u16)> {
        if !self.admits(host, storage) {
            return Vec::new();
        }
        let portals = self.portals(storage);
        let mut pairs = Vec::new();
        for &own in self.interfaces_of(EthernetNode::Host(host)) {
            let joined = (0..).zip(&portals).filter(|(_, far)| self.are_joined(host, own, **far));
            pairs.extend(joined.map(|(portal, _)| (own, portal)));
        }
        pairs
    }
}

impl Lab {
    /// True if the Ethernet of the lab is that of [`Lab::implied_ethernet`].
    pub fn ethernet_is_implied(&self) -> bool {
        self.ethernet_switches.iter().any(|switch| switch.is_implied)
    }

    /// Interfaces of hosts and storage systems, in ascending order of their ends. An interface is
    /// known to the simulator by its index in this list.
    pub fn ethernet_interfaces(&self) -> Vec<EthernetInterface> {
        let mut interfaces: Vec<EthernetInterface> = Vec::new();
        for (link, config) in self.ethernet_links.iter().enumerate() {
            for (side, end) in (0..).zip(config.ends) {
                if !matches!(end.node, EthernetNode::Switch(_)) {
                    interfaces.push(EthernetInterface { end, link, side });
                }
            }
        }
        interfaces.sort_by_key(|interface| interface.end);
        interfaces
    }

    /// VLANs of the lab with their numbers in packets. Further VLANs than
    /// [`crate::config::MAX_VLANS`] have none.
    pub fn vlan_numbers(&self) -> VlanNumbers {
        VlanNumbers(vlans(self).into_iter().zip(1..=31).collect())
    }

    /// Largest payload of a frame that can arrive at a switch, in bytes.
    pub fn largest_mtu(&self, switch: u16) -> u16 {
        let at_interface = |link: &&EthernetLink| link.switches().count() < 2;
        let of_links = self.ethernet_links.iter().filter(at_interface).map(|link| link.mtu).max().unwrap_or(1500);
        self.ethernet_switches.get(usize::from(switch)).map_or(of_links, |switch| switch.mtu.min(of_links))
    }

    /// Headroom of a lossless priority at the port of a switch at one end of a link, in bytes: the
    /// value of the switch, or what [`Lab::headroom_needed`] returns.
    pub fn headroom_bytes(&self, switch: u16, link: &EthernetLink) -> u64 {
        let given = self.ethernet_switches.get(usize::from(switch)).and_then(|switch| switch.headroom_bytes);
        given.unwrap_or_else(|| self.headroom_needed(switch, link))
    }

    /// Headroom with which a port loses no frame of a lossless priority, in bytes: that of
    /// [`EthernetLink::headroom_bytes`], and the frame that passes the threshold, which is in the
    /// headroom itself. With cells, it covers frames of the length that wastes the most of them.
    pub fn headroom_needed(&self, switch: u16, link: &EthernetLink) -> u64 {
        let mtu = self.largest_mtu(switch);
        let bytes = link.headroom_bytes(mtu) + u64::from(mtu) + u64::from(FRAME_OVERHEAD_BYTES);
        let cell = self.ethernet_switches.get(usize::from(switch)).map_or(1, |switch| switch.cell_bytes.max(1));
        // Memory of a frame beside its bytes on the line with preamble and gap.
        let shapes =
            (64..=u64::from(cell) * 2 + 64).map(|frame| (frame.div_ceil(cell.into()) * u64::from(cell), frame + 20));
        let (memory, line) =
            shapes.fold((1, 1), |(memory, line), (m, l)| if m * line > memory * l { (m, l) } else { (memory, line) });
        (u128::from(bytes) * u128::from(memory)).div_ceil(u128::from(line)) as u64
    }

    /// Group of each Ethernet link: links of one group are joined by switches, over links that
    /// accept the VLAN. `None` for links that do not accept it.
    pub fn ethernet_groups(&self, vlan: Option<u16>) -> Vec<Option<u16>> {
        ethernet_groups_without(self, vlan, &BTreeSet::new())
    }

    /// Paths of iSCSI sessions in a simulation.
    pub fn iscsi_paths(&self) -> IscsiPaths<'_> {
        let interfaces = self.ethernet_interfaces();
        let mut by_node: BTreeMap<EthernetNode, Vec<u16>> = BTreeMap::new();
        for (number, interface) in (0..).zip(&interfaces) {
            by_node.entry(interface.end.node).or_default().push(number);
        }
        let mut on_infiniband = BTreeMap::new();
        for end in self.infiniband.links.iter().flat_map(|link| link.ends) {
            if let InfinibandNode::Storage(storage) = end.node
                && self.infiniband.ipoib.nodes.contains_key(&end.node)
            {
                *on_infiniband.entry(storage).or_insert(0) += 1;
            }
        }
        // Virtualization switches log in without a VLAN.
        let vlans: BTreeSet<Option<u16>> = self.hosts.iter().map(|host| host.iscsi.vlan).chain([None]).collect();
        let groups = vlans.into_iter().map(|vlan| (vlan, self.ethernet_groups(vlan))).collect();
        IscsiPaths { lab: self, interfaces, by_node, on_infiniband, groups }
    }

    /// Ethernet that a simulation adds to the lab: one non-blocking switch with a link to each host
    /// and each iSCSI target of a workload that no links of Fibre Channel join. `None` without such
    /// a pair, or if the lab describes Ethernet itself. A host or target with links of InfiniBand
    /// is meant to use them, so no second network may move its data.
    ///
    /// The portals of a lab for the live program are addresses, often of the machine itself. The
    /// added network lets the same lab move data in a simulation.
    pub fn implied_ethernet(&self) -> Option<(EthernetSwitch, Vec<EthernetLink>)> {
        if !self.ethernet_switches.is_empty() || !self.ethernet_links.is_empty() || self.live.iscsi.is_empty() {
            return None;
        }
        let mut ends: BTreeSet<EthernetNode> = BTreeSet::new();
        let fabrics = self.fabrics_of_nodes();
        let on_infiniband = nodes_on_infiniband(self);
        let is_free = |node: EthernetNode| !on_infiniband.contains(&node);
        for workload in &self.workloads {
            for &host in &workload.hosts {
                let Some(config) = self.hosts.get(usize::from(host)) else { continue };
                for target in &workload.targets {
                    let pair = [EthernetNode::Host(host), EthernetNode::Storage(target.storage)];
                    let is_joined = fabrics.iter().any(|nodes| pair.iter().all(|node| nodes.contains(node)));
                    if config.virtual_machine.is_none()
                        && pair.into_iter().all(is_free)
                        && !is_joined
                        && self.live.iscsi.contains_key(&target.storage)
                    {
                        ends.extend(pair);
                    }
                }
            }
        }
        // Virtual disks are served from iSCSI back ends.
        let serves_volumes = |node: &EthernetNode| match node {
            EthernetNode::Storage(storage) => self.live.medium(*storage).kind == MediumKind::Volumes,
            EthernetNode::Host(_) | EthernetNode::Switch(_) | EthernetNode::Forwarder(_) => false,
        };
        if ends.iter().any(serves_volumes) {
            let targets = self.live.iscsi.keys().map(|storage| EthernetNode::Storage(*storage));
            ends.extend(targets.filter(|node| is_free(*node)));
        }
        if ends.is_empty() {
            return None;
        }
        let name = |node: EthernetNode| match node {
            EthernetNode::Host(host) => self.hosts[usize::from(host)].name.as_str(),
            EthernetNode::Storage(storage) => self.storage[usize::from(storage)].name.as_str(),
            EthernetNode::Switch(_) | EthernetNode::Forwarder(_) => "",
        };
        let link = |(port, node): (u16, &EthernetNode)| EthernetLink {
            name: format!("{}-ethernet", name(*node)),
            ends: [EthernetEnd { node: *node, port: 0 }, EthernetEnd { node: EthernetNode::Switch(0), port }],
            rate: EthernetRate::G100,
            propagation: Picos::from_ns(50),
            mtu: 9000,
            pause_reaction: None,
            vlans: Vec::new(),
        };
        let links: Vec<EthernetLink> = (0..).zip(&ends).map(link).collect();
        Some((EthernetSwitch::implied(), links))
    }

    /// Nodes of each group that Fibre Channel links join.
    fn fabrics_of_nodes(&self) -> Vec<BTreeSet<EthernetNode>> {
        let mut groups: BTreeMap<u16, BTreeSet<EthernetNode>> = BTreeMap::new();
        for port in self.linked_ports() {
            let node = match port.node {
                Node::Host(host) => EthernetNode::Host(host),
                Node::Storage(storage) => EthernetNode::Storage(storage),
                Node::Switch(_) | Node::Loop(_) => continue,
            };
            groups.entry(port.fabric).or_default().insert(node);
        }
        groups.into_values().collect()
    }
}

/// Hosts and storage systems with links of InfiniBand.
fn nodes_on_infiniband(lab: &Lab) -> BTreeSet<EthernetNode> {
    let ends = lab.infiniband.links.iter().flat_map(|link| link.ends);
    let nodes = ends.filter_map(|end| match end.node {
        InfinibandNode::Host(host) => Some(EthernetNode::Host(host)),
        InfinibandNode::Storage(storage) => Some(EthernetNode::Storage(storage)),
        InfinibandNode::Switch(_) => None,
    });
    nodes.collect()
}

impl EthernetSwitch {
    /// Switch of [`Lab::implied_ethernet`]: its memory never fills up.
    fn implied() -> EthernetSwitch {
        EthernetSwitch {
            name: "ethernet".to_owned(),
            memory_bytes: 1 << 30,
            cell_bytes: 1,
            reserve_bytes: 0,
            headroom_bytes: None,
            alpha_256: 256,
            lossy_alpha_256: 256,
            resume_bytes: 0,
            lossless: 0,
            pauses_links: false,
            shares: [0; PRIORITIES],
            ecn: None,
            mtu: 9216,
            latency: Picos::from_us(1),
            cut_through: false,
            is_implied: true,
        }
    }

    /// Longest frame that the switch forwards, from the destination address to the FCS, in bytes.
    pub fn longest_bytes(&self) -> u16 {
        self.mtu.saturating_add(FRAME_OVERHEAD_BYTES)
    }
}

/// VLANs of the links of Ethernet, of iSCSI, and of FCoE.
pub(super) fn vlans(lab: &Lab) -> BTreeSet<u16> {
    let of_links = lab.ethernet_links.iter().flat_map(|link| link.vlans.iter().copied());
    let of_hosts = lab.hosts.iter().filter_map(|host| host.iscsi.vlan);
    of_links.chain(of_hosts).chain(lab.links.iter().filter_map(|link| link.fcoe?.vlan)).collect()
}

/// As [`Lab::ethernet_groups`], without some links, which have no group.
pub(super) fn ethernet_groups_without(lab: &Lab, vlan: Option<u16>, broken: &BTreeSet<u16>) -> Vec<Option<u16>> {
    let accepts = |number: usize, link: &EthernetLink| !broken.contains(&(number as u16)) && link.accepts(vlan);
    let mut switches: Vec<usize> = (0..lab.ethernet_switches.len()).collect();
    fn root(parent: &[usize], mut switch: usize) -> usize {
        while parent[switch] != switch {
            switch = parent[switch];
        }
        switch
    }
    let known = |node: EthernetNode| match node {
        EthernetNode::Switch(switch) => Some(usize::from(switch)).filter(|s| *s < lab.ethernet_switches.len()),
        EthernetNode::Host(_) | EthernetNode::Storage(_) | EthernetNode::Forwarder(_) => None,
    };
    let accepted = lab.ethernet_links.iter().enumerate().filter(|(number, link)| accepts(*number, link));
    for (_, link) in accepted {
        if let [Some(a), Some(b)] = link.ends.map(|end| known(end.node)) {
            let (a, b) = (root(&switches, a), root(&switches, b));
            switches[a.max(b)] = a.min(b);
        }
    }
    // Groups of direct cables are numbered behind the switches.
    let group = |(number, link): (usize, &EthernetLink)| {
        let at_switch = link.ends.iter().find_map(|end| known(end.node));
        let group = at_switch.map_or(switches.len() + number, |switch| root(&switches, switch));
        accepts(number, link).then_some(group as u16)
    };
    lab.ethernet_links.iter().enumerate().map(group).collect()
}

impl EthernetEnd {
    /// Name of a port or interface: `tor:4`, `server1:eth0`.
    pub fn name(self, lab: &Lab) -> String {
        match self.node {
            EthernetNode::Switch(switch) => {
                format!("{}:{}", lab.ethernet_switches[usize::from(switch)].name, self.port)
            }
            EthernetNode::Host(host) => format!("{}:eth{}", lab.hosts[usize::from(host)].name, self.port),
            EthernetNode::Storage(storage) => format!("{}:eth{}", lab.storage[usize::from(storage)].name, self.port),
            EthernetNode::Forwarder(switch) => format!("{}:eth{}", lab.switches[usize::from(switch)].name, self.port),
        }
    }
}
