//! Nodes that are alike: the same links, the same workloads.

use super::network::{Attachment, Network};
use sanloom_core::config::Lab;
use std::collections::{BTreeMap, BTreeSet};

/// A linked port of a node.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Port {
    pub switch: u16,
    pub bytes_per_s: u64,
    /// An earlier port of the node is on the same HBA: both are virtual ones.
    pub shares_hba: bool,
}

/// Hosts, or storage systems, that cannot be told apart by what they are linked to and work with.
pub(super) struct Class {
    /// Indices of its nodes.
    pub members: Vec<u16>,
    /// Each linked port, in the order of the ports.
    pub ports: Vec<Port>,
    /// The workloads that use it.
    workloads: Vec<u32>,
}

/// Hosts and storage in classes, and which of them use each other.
pub(super) struct Classes {
    pub hosts: Vec<Class>,
    pub storage: Vec<Class>,
    /// Pairs of indices into `hosts` and `storage`, sorted.
    pub pairs: Vec<(usize, usize)>,
    /// Pairs that were left out because there are too many.
    pub left_out: usize,
}

/// Enough for every pair of 400 classes; beyond that nobody reads the report.
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
        let hosts = group(&network.hosts, of_host);
        let storage = group(&network.storage, of_storage);
        let mut of_workload: BTreeMap<u32, Vec<usize>> = BTreeMap::new();
        for (index, class) in storage.iter().enumerate() {
            for &workload in &class.workloads {
                of_workload.entry(workload).or_default().push(index);
            }
        }
        let mut pairs = Vec::new();
        let mut left_out = 0;
        for (index, class) in hosts.iter().enumerate() {
            let used: BTreeSet<usize> =
                class.workloads.iter().filter_map(|w| of_workload.get(w)).flatten().copied().collect();
            let room = MAX_PAIRS - pairs.len();
            left_out += used.len().saturating_sub(room);
            pairs.extend(used.into_iter().take(room).map(|storage| (index, storage)));
        }
        Classes { hosts, storage, pairs, left_out }
    }
}

fn group(ports: &[Vec<Attachment>], workloads: Vec<Vec<u32>>) -> Vec<Class> {
    let mut classes: BTreeMap<(Vec<Port>, Vec<u32>), Vec<u16>> = BTreeMap::new();
    for (index, (ports, mut workloads)) in ports.iter().zip(workloads).enumerate() {
        workloads.sort_unstable();
        workloads.dedup();
        let port = |(i, a): (usize, &Attachment)| Port {
            switch: a.switch,
            bytes_per_s: a.bytes_per_s,
            shares_hba: ports[..i].iter().any(|earlier| earlier.link == a.link),
        };
        let ports = ports.iter().enumerate().map(port).collect();
        classes.entry((ports, workloads)).or_default().push(index as u16);
    }
    let mut classes: Vec<Class> =
        classes.into_iter().map(|((ports, workloads), members)| Class { members, ports, workloads }).collect();
    classes.sort_by_key(|c| c.members[0]);
    classes
}
