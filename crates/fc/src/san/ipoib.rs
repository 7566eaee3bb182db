//! Ways of IP packets between hosts and iSCSI portals: over Ethernet, over InfiniBand, and through
//! routers between both.

use super::infiniband::infiniband_groups;
use super::{InfinibandInterface, IscsiPaths, Lab};
use crate::config::{EthernetNode, Infiniband, InfinibandNode, Ipoib, IpoibMode};
use std::collections::{BTreeMap, BTreeSet};

/// Paths of IP in a simulation: [`IpPaths::of`].
///
/// Interfaces of IP have one row of numbers: those of Ethernet as in
/// [`Lab::ethernet_interfaces`], and behind them those of InfiniBand as in
/// [`Lab::infiniband_interfaces`].
pub struct IpPaths<'l> {
    lab: &'l Lab,
    /// Paths over Ethernet alone.
    pub iscsi: IscsiPaths<'l>,
    /// [`Lab::infiniband_interfaces`].
    pub infiniband: Vec<InfinibandInterface>,
    by_node: BTreeMap<InfinibandNode, Vec<u16>>,
    groups: Vec<u16>,
}

/// A way of packets between an interface of a host and a portal.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct IpWay {
    /// Interfaces of IP of the host and of the portal.
    pub ends: [u16; 2],
    /// Number of the portal.
    pub portal: u16,
    /// Router, with its interfaces towards the host and towards the portal.
    pub router: Option<(u16, [u16; 2])>,
    /// Largest packet of IP that passes every part of the way.
    pub mtu: u16,
}

impl<'l> IpPaths<'l> {
    /// Number of Ethernet interfaces, and of the first interface of InfiniBand.
    pub fn first_of_infiniband(&self) -> u16 {
        self.iscsi.interfaces.len() as u16
    }

    /// InfiniBand interface with this number of IP; `None` for one of Ethernet.
    pub fn on_infiniband(&self, interface: u16) -> Option<u16> {
        interface.checked_sub(self.first_of_infiniband())
    }

    /// IPoIB of a node.
    pub fn ipoib(&self, node: InfinibandNode) -> Option<&'l Ipoib> {
        self.lab.infiniband.ipoib.nodes.get(&node)
    }

    /// Interfaces of IPoIB of a node; empty if it has no IPoIB.
    fn ipoib_interfaces(&self, node: InfinibandNode) -> impl Iterator<Item = u16> + '_ {
        let first = self.first_of_infiniband();
        let own = self.by_node.get(&node).filter(|_| self.ipoib(node).is_some());
        own.into_iter().flatten().map(move |interface| first + interface)
    }

    /// Interfaces of IP of a host.
    pub fn interfaces_of_host(&self, host: u16) -> Vec<u16> {
        let mut own = self.iscsi.interfaces_of(EthernetNode::Host(host)).to_vec();
        own.extend(self.ipoib_interfaces(InfinibandNode::Host(host)));
        own
    }

    /// Interfaces of the portals of a storage system. Ethernet comes first. Empty without
    /// an iSCSI target.
    pub fn portals(&self, storage: u16) -> Vec<u16> {
        let Some(target) = self.lab.live.iscsi.get(&storage) else { return Vec::new() };
        let mut portals = self.iscsi.portals(storage);
        let own: Vec<u16> = self.ipoib_interfaces(InfinibandNode::Storage(storage)).collect();
        let more = target.portals.len().saturating_sub(portals.len());
        let count = if own.is_empty() { 0 } else { more.max(own.len()) };
        portals.extend(own.into_iter().cycle().take(count));
        portals
    }

    fn node_of(&self, interface: u16) -> InfinibandNode {
        self.infiniband[usize::from(interface - self.first_of_infiniband())].end.node
    }

    /// MTU of an interface of IP.
    pub fn mtu(&self, interface: u16) -> u16 {
        match self.on_infiniband(interface) {
            None => self.lab.ethernet_links[self.iscsi.interfaces[usize::from(interface)].link].mtu,
            Some(_) => self.ipoib(self.node_of(interface)).map_or(0, |ipoib| ipoib.mtu(self.lab.infiniband.subnet.mtu)),
        }
    }

    /// Returns whether packets between two interfaces of InfiniBand travel over a reliable
    /// connection: if both have the connected mode.
    pub fn is_connected(&self, interfaces: [u16; 2]) -> bool {
        interfaces.iter().all(|interface| {
            self.ipoib(self.node_of(*interface)).is_some_and(|ipoib| ipoib.mode == IpoibMode::Connected)
        })
    }

    /// Largest packet of IP between two interfaces that are joined.
    fn mtu_between(&self, ends: [u16; 2]) -> u16 {
        let smaller = ends.map(|end| self.mtu(end)).into_iter().min().unwrap_or(0);
        match self.on_infiniband(ends[0]).is_some() && !self.is_connected(ends) {
            true => smaller.min(Ipoib::default().largest_mtu(self.lab.infiniband.subnet.mtu)),
            false => smaller,
        }
    }

    /// Subnet of an interface of InfiniBand.
    fn subnet_of(&self, interface: u16) -> u16 {
        self.groups[self.infiniband[usize::from(interface - self.first_of_infiniband())].link]
    }

    /// Subnets of all InfiniBand links of a node, with IPoIB or without.
    pub fn subnets_of(&self, node: InfinibandNode) -> impl Iterator<Item = u16> + '_ {
        let own = self.by_node.get(&node).into_iter().flatten();
        own.map(|interface| self.groups[self.infiniband[usize::from(*interface)].link])
    }

    /// Returns whether two nodes have interfaces of IPoIB in one subnet, in whatever partition.
    pub fn share_subnet(&self, a: InfinibandNode, b: InfinibandNode) -> bool {
        let subnets = |node| self.ipoib_interfaces(node).map(|own| self.subnet_of(own)).collect::<BTreeSet<u16>>();
        !subnets(a).is_disjoint(&subnets(b))
    }

    /// Returns whether packets of a host pass from a router to a portal of a storage system.
    pub fn leads_to(&self, host: u16, router: u16, storage: u16) -> bool {
        let portals = self.portals(storage);
        let own = self.interfaces_of_host(router);
        own.iter().any(|own| portals.iter().any(|portal| self.are_joined(host, *own, *portal)))
    }

    /// Returns whether two interfaces of InfiniBand are in one subnet and one partition.
    pub fn joined_on_infiniband(&self, a: u16, b: u16) -> bool {
        let partition = |interface: u16| self.ipoib(self.node_of(interface)).map(|ipoib| ipoib.partition);
        self.subnet_of(a) == self.subnet_of(b) && partition(a) == partition(b)
    }

    /// Returns whether frames or packets pass between two interfaces of a host's way without a
    /// router.
    fn are_joined(&self, host: u16, a: u16, b: u16) -> bool {
        match (self.on_infiniband(a), self.on_infiniband(b)) {
            (Some(_), Some(_)) => self.joined_on_infiniband(a, b),
            (None, None) => self.iscsi.are_joined(host, a, b),
            _ => false,
        }
    }

    /// Ways from the interfaces of a host to the portals of a storage system. Each carries
    /// `sessions` of the host. A router is used only if no way leads past it. Empty if the target
    /// does not admit the host.
    pub fn ways(&self, host: u16, storage: u16) -> Vec<IpWay> {
        if !self.iscsi.admits(host, storage) {
            return Vec::new();
        }
        let portals = self.portals(storage);
        let own = self.interfaces_of_host(host);
        let mut ways = Vec::new();
        for &interface in &own {
            for (portal, &far) in (0..).zip(&portals) {
                if self.are_joined(host, interface, far) {
                    let ends = [interface, far];
                    ways.push(IpWay { ends, portal, router: None, mtu: self.mtu_between(ends) });
                }
            }
        }
        if !ways.is_empty() || self.lab.infiniband.ipoib.routers.is_empty() {
            return ways;
        }
        for &interface in &own {
            for (portal, &far) in (0..).zip(&portals) {
                let routes = self.routes(host, [interface, far]);
                let chosen = (usize::from(interface) + usize::from(portal)) % routes.len().max(1);
                ways.extend(routes.get(chosen).map(|&(router, [near, beyond])| IpWay {
                    ends: [interface, far],
                    portal,
                    router: Some((router, [near, beyond])),
                    mtu: self.mtu_between([interface, near]).min(self.mtu_between([beyond, far])),
                }));
            }
        }
        ways
    }

    /// Routers between two interfaces, each with its first pair of interfaces that is joined to
    /// them.
    fn routes(&self, host: u16, [from, to]: [u16; 2]) -> Vec<(u16, [u16; 2])> {
        if self.on_infiniband(from).is_some() == self.on_infiniband(to).is_some() {
            return Vec::new();
        }
        let mut routes = Vec::new();
        for &router in self.lab.infiniband.ipoib.routers.keys().filter(|router| **router != host) {
            let own = self.interfaces_of_host(router);
            let near = own.iter().find(|own| self.are_joined(host, from, **own));
            let beyond = own.iter().find(|own| self.are_joined(host, to, **own));
            if let (Some(&near), Some(&beyond)) = (near, beyond) {
                routes.push((router, [near, beyond]));
            }
        }
        routes
    }
}

impl Infiniband {
    /// Returns whether a host or storage system has IPoIB.
    pub fn has_ipoib(&self) -> bool {
        !self.ipoib.nodes.is_empty() && !self.links.is_empty()
    }
}

impl<'l> IpPaths<'l> {
    /// Paths of IP in a simulation.
    pub fn of(lab: &'l Lab) -> IpPaths<'l> {
        let infiniband = lab.infiniband_interfaces();
        let mut by_node: BTreeMap<InfinibandNode, Vec<u16>> = BTreeMap::new();
        for (number, interface) in (0..).zip(&infiniband) {
            by_node.entry(interface.end.node).or_default().push(number);
        }
        IpPaths { lab, iscsi: lab.iscsi_paths(), infiniband, by_node, groups: infiniband_groups(lab) }
    }

    /// Calls a function for each host and iSCSI target that a workload joins, once for each pair
    /// with its ways, until it returns false. Pairs without a way are left out.
    pub fn for_each_pair(lab: &Lab, mut call: impl FnMut(&IpPaths<'_>, u16, u16, &[IpWay]) -> bool) {
        if lab.ethernet_links.is_empty() && !lab.infiniband.has_ipoib() {
            return;
        }
        let paths = IpPaths::of(lab);
        let mut seen = BTreeSet::new();
        for workload in &lab.workloads {
            let targets: BTreeSet<u16> = workload.targets.iter().map(|target| target.storage).collect();
            for &host in workload.hosts.iter().filter(|host| usize::from(**host) < lab.hosts.len()) {
                for &storage in &targets {
                    if !seen.insert((host, storage)) {
                        continue;
                    }
                    let ways = paths.ways(host, storage);
                    if !ways.is_empty() && !call(&paths, host, storage, &ways) {
                        return;
                    }
                }
            }
        }
    }
}
