//! Nodes that are alike: the same links, the same workloads, and the same partners.

use super::network::Network;
use sanloom_fc::san::{AttachedPort, Lab, PermittedPairs};
use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;

/// A linked port of a node.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Port {
    pub switch: u16,
    pub bytes_per_s: u64,
    /// Position of the first port of the node on the same HBA: of several virtual ports, or the
    /// port itself.
    pub hba: usize,
    /// Equal for ports with equal permitted partners.
    access: u32,
}

/// Hosts, or storage systems, with the same links, workloads and permitted partners.
pub(super) struct Class {
    /// Node indices.
    pub members: Vec<u16>,
    /// Linked ports, in the order of the ports.
    pub ports: Vec<Port>,
    /// Ports of the first member, as indices into the list of [`PermittedPairs`].
    pub first: Range<usize>,
    /// Workloads that use the class.
    workloads: Vec<u32>,
}

/// Classes of hosts and storage, and the pairs that use each other.
pub(super) struct Classes {
    pub hosts: Vec<Class>,
    pub storage: Vec<Class>,
    /// Pairs of indices into `hosts` and `storage`, sorted.
    pub pairs: Vec<(usize, usize)>,
    /// Number of pairs beyond the limit.
    pub left_out: usize,
    /// For each pair with masks: the positions of the host ports that see the same LUNs in use, one
    /// set for each group of LUNs.
    groups: BTreeMap<(usize, usize), BTreeSet<BTreeSet<usize>>>,
}

/// Limit on pairs: enough for all pairs of 400 classes. A longer report would not be readable.
const MAX_PAIRS: usize = 160_000;

impl Classes {
    pub fn of(lab: &Lab, network: &Network) -> Classes {
        let mut of_host: Vec<Vec<u32>> = vec![Vec::new(); lab.hosts.len()];
        let mut of_storage: Vec<Vec<u32>> = vec![Vec::new(); lab.storage.len()];
        for (number, workload) in lab.workloads.iter().enumerate() {
            for &host in &workload.hosts {
                if let Some(list) = of_host.get_mut(usize::from(host)) {
                    list.push(number as u32);
                }
            }
            for target in &workload.targets {
                if let Some(list) = of_storage.get_mut(usize::from(target.storage))
                    && list.last() != Some(&(number as u32))
                {
                    list.push(number as u32);
                }
            }
        }
        if lab.workloads.is_empty() {
            of_host.iter_mut().chain(&mut of_storage).for_each(|list| list.push(0));
        }
        let permitted = &network.permitted;
        let access: Vec<u32> = (0..permitted.hosts.len()).map(|port| permitted.set_of(port)).collect();
        let no_mask = |_| false;
        let hosts = group(
            &network.bytes_per_s,
            &permitted.hosts,
            &access,
            |host| permitted.ports_of_host(host),
            no_mask,
            of_host,
        );
        let access = containing_sets(permitted);
        let ports_of = |system| permitted.ports_of_storage(system);
        let is_masked = |system| permitted.is_masked(system);
        let storage = group(&network.bytes_per_s, &permitted.storage, &access, ports_of, is_masked, of_storage);
        let mut of_workload: BTreeMap<u32, Vec<usize>> = BTreeMap::new();
        for (index, class) in storage.iter().enumerate() {
            for &workload in &class.workloads {
                of_workload.entry(workload).or_default().push(index);
            }
        }
        let mut classes = Classes { hosts, storage, pairs: Vec::new(), left_out: 0, groups: BTreeMap::new() };
        // Without workloads, zones and masks alone determine the pairs.
        let is_restricted =
            |storage: usize| !lab.zoning.zones.is_empty() || permitted.is_masked(classes.storage[storage].members[0]);
        let mut pairs: Vec<(usize, usize)> = Vec::new();
        let mut left_out = 0;
        for (index, class) in classes.hosts.iter().enumerate() {
            let used: BTreeSet<usize> =
                class.workloads.iter().filter_map(|w| of_workload.get(w)).flatten().copied().collect();
            let is_meant = |storage: &usize| {
                let has_path = || classes.port_pairs(permitted, (index, *storage)).next().is_some();
                !lab.workloads.is_empty() || !is_restricted(*storage) || has_path()
            };
            let room = MAX_PAIRS - pairs.len();
            let mut used = used.into_iter().filter(is_meant);
            pairs.extend(used.by_ref().take(room).map(|storage| (index, storage)));
            left_out += used.count();
        }
        (classes.pairs, classes.left_out) = (pairs, left_out);
        for pair in classes.pairs.clone() {
            let (host, storage) = (classes.hosts[pair.0].members[0], classes.storage[pair.1].members[0]);
            if permitted.is_masked(storage) {
                let ports = permitted.ports_of_host(host);
                let seeing = |lun: u16| -> BTreeSet<usize> {
                    (0..ports.len()).filter(|i| permitted.shows(ports.start + i, storage, lun)).collect()
                };
                let groups = lab.luns_in_use(host, storage).into_iter().map(seeing).filter(|ports| !ports.is_empty());
                classes.groups.insert(pair, groups.collect());
            }
        }
        classes
    }

    /// Permitted pairs of ports of two classes, as positions in their `ports`. With masks there is
    /// one list for each group of LUNs in use that the same host ports see, otherwise one list.
    pub fn port_pairs_by_luns(&self, permitted: &PermittedPairs, pair: (usize, usize)) -> Vec<Vec<(usize, usize)>> {
        let all: Vec<(usize, usize)> = self.port_pairs(permitted, pair).collect();
        let Some(groups) = self.groups.get(&pair) else { return vec![all] };
        let of_group = |ports: &BTreeSet<usize>| all.iter().filter(|(i, _)| ports.contains(i)).copied().collect();
        groups.iter().map(of_group).collect()
    }

    /// Permitted pairs of ports of two classes, as positions in their `ports`.
    pub fn port_pairs(
        &self,
        permitted: &PermittedPairs,
        (hosts, storage): (usize, usize),
    ) -> impl Iterator<Item = (usize, usize)> {
        let (host_ports, other) = (self.hosts[hosts].first.clone(), self.storage[storage].first.clone());
        host_ports.enumerate().flat_map(move |(i, port)| {
            let partners = permitted.partners(port);
            let begin = partners.partition_point(|partner| (*partner as usize) < other.start);
            let (start, end) = (other.start, other.end);
            let of_system = partners[begin..].iter().map(|partner| *partner as usize).take_while(move |p| *p < end);
            of_system.map(move |partner| (i, partner - start))
        })
    }
}

/// Returns a number for each storage port, which is equal for ports in the same sets of partners.
fn containing_sets(permitted: &PermittedPairs) -> Vec<u32> {
    let mut containing: Vec<Vec<u32>> = vec![Vec::new(); permitted.storage.len()];
    for (number, set) in (0..).zip(permitted.sets()) {
        for port in set {
            containing[*port as usize].push(number);
        }
    }
    let mut numbers: BTreeMap<Vec<u32>, u32> = BTreeMap::new();
    let number = |sets| {
        let next = numbers.len() as u32;
        *numbers.entry(sets).or_insert(next)
    };
    containing.into_iter().map(number).collect()
}

/// Groups nodes into classes. `access` belongs to `ports`; `of_node` returns the ports of a node.
/// If `is_single` is true, the node forms its own class, because its LUNs differ from others.
fn group(
    bytes_per_s: &[u64],
    ports: &[AttachedPort],
    access: &[u32],
    of_node: impl Fn(u16) -> Range<usize>,
    is_single: impl Fn(u16) -> bool,
    workloads: Vec<Vec<u32>>,
) -> Vec<Class> {
    let mut classes = BTreeMap::new();
    for (node, mut workloads) in (0..).zip(workloads) {
        workloads.sort_unstable();
        workloads.dedup();
        let range = of_node(node);
        let port = |index: usize| Port {
            switch: ports[index].switch,
            bytes_per_s: bytes_per_s[ports[index].link],
            hba: range.clone().take_while(|earlier| ports[*earlier].link != ports[index].link).count(),
            access: access[index],
        };
        let ports: Vec<Port> = range.clone().map(port).collect();
        let members: &mut Vec<u16> = classes.entry((ports, workloads, is_single(node).then_some(node))).or_default();
        members.push(node);
    }
    let classes = classes.into_iter().map(|((ports, workloads, _), members)| Class {
        first: of_node(members[0]),
        members,
        ports,
        workloads,
    });
    let mut classes: Vec<Class> = classes.collect();
    classes.sort_by_key(|c| c.members[0]);
    classes
}
