//! Can every workload's host get to its storage: over links, and through zones?
//!
//! Hosts (and targets) with the same keys are one group, so a thousand alike nodes cost as much as one. A *key* is a
//! pair of fabric and zone; ports in no zone share one more zone per fabric if the default zone is open. Two ports may
//! talk to each other exactly if they have a key in common.

use super::Problems;
use super::fabric::node_name;
use crate::config::{Lab, Node, Place, ProblemKind, Section, Target, Workload, ZoneDefault};
use sanloom_wire::Wwpn;
use std::collections::{BTreeMap, BTreeSet};

pub(super) fn validate(lab: &Lab, problems: &mut Problems) {
    let keys = Keys::of(lab);
    for (index, workload) in lab.workloads.iter().enumerate() {
        check_workload(lab, &keys, workload, Place::of(Section::Workload, index), problems);
    }
}

/// What the ports of one node give access to.
#[derive(Clone, Default, PartialEq, Eq, PartialOrd, Ord)]
struct Access {
    /// Fabrics that the node is linked to.
    fabrics: Vec<u16>,
    /// Pairs of fabric and zone.
    keys: Vec<(u16, u32)>,
}

struct Keys {
    hosts: Vec<Access>,
    storage: Vec<Access>,
}

impl Keys {
    fn of(lab: &Lab) -> Keys {
        let fabric_of_switch = fabrics(lab);
        let zones_of = zones_of(lab);
        let mut keys = Keys {
            hosts: vec![Access::default(); lab.hosts.len()],
            storage: vec![Access::default(); lab.storage.len()],
        };
        for link in &lab.links {
            let [a, b] = &link.ends;
            let (node, switch) = match (a.node, b.node) {
                (Node::Switch(s), Node::Host(_) | Node::Storage(_)) => (b, s),
                (Node::Host(_) | Node::Storage(_), Node::Switch(s)) => (a, s),
                _ => continue,
            };
            let (access, wwpn) = match node.node {
                Node::Host(i) => (
                    keys.hosts.get_mut(usize::from(i)),
                    lab.hosts.get(usize::from(i)).and_then(|h| h.hbas.get(usize::from(node.port))).map(|hba| hba.wwpn),
                ),
                Node::Storage(i) => (
                    keys.storage.get_mut(usize::from(i)),
                    lab.storage
                        .get(usize::from(i))
                        .and_then(|s| s.ports.get(usize::from(node.port)))
                        .map(|port| port.wwpn),
                ),
                Node::Switch(_) => continue,
            };
            let (Some(access), Some(wwpn), Some(&fabric)) = (access, wwpn, fabric_of_switch.get(usize::from(switch)))
            else {
                continue;
            };
            access.fabrics.push(fabric);
            match zones_of.get(&wwpn) {
                Some(zones) => access.keys.extend(zones.iter().map(|&z| (fabric, z))),
                None if lab.zoning.default == ZoneDefault::Open => {
                    access.keys.push((fabric, u32::MAX));
                }
                None => {}
            }
        }
        for access in keys.hosts.iter_mut().chain(&mut keys.storage) {
            access.fabrics.sort_unstable();
            access.fabrics.dedup();
            access.keys.sort_unstable();
            access.keys.dedup();
        }
        keys
    }
}

/// For each switch the number of the fabric it belongs to: the smallest switch index in it.
fn fabrics(lab: &Lab) -> Vec<u16> {
    let mut parent: Vec<u16> = (0..lab.switches.len()).map(|i| i as u16).collect();
    fn root(parent: &mut [u16], mut i: u16) -> u16 {
        while parent[usize::from(i)] != i {
            let above = parent[usize::from(parent[usize::from(i)])];
            parent[usize::from(i)] = above;
            i = above;
        }
        i
    }
    for link in &lab.links {
        if let [Node::Switch(a), Node::Switch(b)] = link.ends.map(|e| e.node) {
            let (a, b) = (root(&mut parent, a), root(&mut parent, b));
            parent[usize::from(a.max(b))] = a.min(b);
        }
    }
    (0..parent.len() as u16).map(|i| root(&mut parent, i)).collect()
}

fn zones_of(lab: &Lab) -> BTreeMap<Wwpn, Vec<u32>> {
    let mut zones: BTreeMap<Wwpn, Vec<u32>> = BTreeMap::new();
    for (index, zone) in lab.zoning.zones.iter().enumerate() {
        for &member in &zone.members {
            zones.entry(member).or_default().push(index as u32);
        }
    }
    zones
}

fn check_workload(lab: &Lab, keys: &Keys, workload: &Workload, place: Place, problems: &mut Problems) {
    // Groups of equal access, each with one example.
    let mut hosts: BTreeMap<&Access, u16> = BTreeMap::new();
    for &host in &workload.hosts {
        if let Some(access) = keys.hosts.get(usize::from(host)) {
            hosts.entry(access).or_insert(host);
        }
    }
    let mut targets: BTreeMap<&Access, Target> = BTreeMap::new();
    for &target in &workload.targets {
        if let Some(access) = keys.storage.get(usize::from(target.storage)) {
            targets.entry(access).or_insert(target);
        }
    }
    let targets: Vec<(&Access, Target)> = targets.into_iter().collect();
    let mut by_key: BTreeMap<(u16, u32), Vec<usize>> = BTreeMap::new();
    for (number, (access, _)) in targets.iter().enumerate() {
        for &key in &access.keys {
            by_key.entry(key).or_default().push(number);
        }
    }
    for (access, host) in hosts {
        let allowed: BTreeSet<usize> =
            (access.keys.iter()).filter_map(|key| by_key.get(key)).flatten().copied().collect();
        if allowed.len() == targets.len() {
            continue;
        }
        for (number, (other, target)) in targets.iter().enumerate() {
            if allowed.contains(&number) {
                continue;
            }
            let host = node_name(lab, Node::Host(host));
            let storage = node_name(lab, Node::Storage(target.storage));
            let name = &workload.name;
            let place = place.key("targets");
            if access.fabrics.iter().any(|f| other.fabrics.contains(f)) {
                problems.add(
                    ProblemKind::NotZoned,
                    place,
                    format!("workload `{name}`: no zone lets host `{host}` talk to storage `{storage}`"),
                    format!("put a port of `{host}` and a port of `{storage}` into one zone, or drop the target"),
                );
            } else {
                problems.add(
                    ProblemKind::Unreachable,
                    place,
                    format!("workload `{name}`: no path of links leads from host `{host}` to storage `{storage}`"),
                    "link both to switches that are joined by ISLs, or drop the target",
                );
            }
            // One example per group of hosts is enough to see what is missing.
            break;
        }
    }
}
