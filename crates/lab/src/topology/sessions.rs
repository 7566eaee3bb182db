//! Paths of iSCSI over Ethernet and of SRP over InfiniBand in the topology report:
//! [`SessionPaths`].

use super::cut::Reach;
use super::durability;
use super::names::compress_all;
use super::report::{Part, Paths, SinglePoint, part_name};
use sanloom_fc::config::EthernetNode;
use sanloom_fc::san::{EthernetPart, Lab};
use std::collections::{BTreeMap, BTreeSet};

/// Pairs of host and storage with equal numbers of sessions.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct SessionPaths {
    /// The hosts in range notation.
    pub host_names: String,
    /// The storage systems in range notation.
    pub storage_names: String,
    /// Number of pairs of host and storage.
    pub pairs: u64,
    /// Sessions or channels of each pair, which are paths of the multipath layer.
    pub sessions: u64,
    /// Interfaces of the host with a session or channel.
    pub interfaces: u64,
}

/// Hosts and storage systems that workloads join by iSCSI or SRP, with sessions or channels, and
/// interfaces.
pub(super) type Sessions = BTreeMap<(u16, u16), (u64, u64)>;

/// Returns the sessions of iSCSI, the channels of SRP, and both together.
pub(super) fn all(lab: &Lab) -> [Sessions; 3] {
    let (sessions, channels) = (sessions(lab), channels(lab));
    let both = sessions.iter().chain(&channels).map(|(pair, numbers)| (*pair, *numbers)).collect();
    [sessions, channels, both]
}

/// Returns the sessions of each pair of a host and storage that a workload uses.
fn sessions(lab: &Lab) -> Sessions {
    let mut found = Sessions::new();
    lab.for_each_iscsi_pair(|paths, host, storage| {
        let pairs = paths.pairs(host, storage);
        let interfaces: BTreeSet<u16> = pairs.iter().map(|(own, _)| *own).collect();
        let each = lab.hosts.get(usize::from(host)).map_or(1, |host| u64::from(host.iscsi.sessions));
        if !pairs.is_empty() {
            found.insert((host, storage), (pairs.len() as u64 * each, interfaces.len() as u64));
        }
        true
    });
    found
}

/// Returns the channels of SRP of each pair of a host and storage that a workload uses.
fn channels(lab: &Lab) -> Sessions {
    let mut found = Sessions::new();
    lab.for_each_srp_pair(|paths, host, storage| {
        let pairs = paths.pairs(host, storage);
        let interfaces: BTreeSet<u16> = pairs.iter().map(|(own, _)| *own).collect();
        if !pairs.is_empty() {
            found.insert((host, storage), (pairs.len() as u64, interfaces.len() as u64));
        }
        true
    });
    found
}

/// Returns the rows of the report, with those that have the fewest sessions first.
pub(super) fn rows(lab: &Lab, sessions: &Sessions) -> Vec<SessionPaths> {
    let mut alike: BTreeMap<(u64, u64), BTreeSet<(u16, u16)>> = BTreeMap::new();
    for (pair, numbers) in sessions {
        alike.entry(*numbers).or_default().insert(*pair);
    }
    let row = |((sessions, interfaces), pairs): ((u64, u64), BTreeSet<(u16, u16)>)| {
        let hosts: BTreeSet<u16> = pairs.iter().map(|(host, _)| *host).collect();
        let storage: BTreeSet<u16> = pairs.iter().map(|(_, storage)| *storage).collect();
        SessionPaths {
            host_names: compress_all(hosts.iter().map(|&h| lab.hosts[usize::from(h)].name.as_str())),
            storage_names: compress_all(storage.iter().map(|&s| lab.storage[usize::from(s)].name.as_str())),
            pairs: pairs.len() as u64,
            sessions,
            interfaces,
        }
    };
    alike.into_iter().map(row).collect()
}

/// Returns the hosts without two paths that share no link to some storage that they use. By the
/// theorem of Menger, that is a host with a link whose loss cuts it off. A path over Fibre Channel
/// shares no link with a session, and a channel of SRP none with either.
pub(super) fn lonely_hosts(lab: &Lab, reach: &Reach<'_>, paths: &[Paths]) -> BTreeSet<u16> {
    let sessions = reach.iscsi();
    let pairs_of = |row: &Paths| -> Vec<(u16, u16)> {
        let of_host = |host: &u16| row.storage.iter().map(|storage| (*host, *storage)).collect::<Vec<_>>();
        row.hosts.iter().flat_map(of_host).collect()
    };
    let has_path: BTreeSet<(u16, u16)> = paths.iter().filter(|row| row.port_pairs > 0).flat_map(pairs_of).collect();
    let one_path = paths.iter().filter(|row| row.disjoint < 2).flat_map(pairs_of);
    let mut lonely: BTreeSet<u16> =
        one_path.filter(|pair| !sessions.joins(*pair) && !reach.has_channel(*pair)).map(|(host, _)| host).collect();
    for part in candidates(lab, reach) {
        if matches!(part, EthernetPart::Link(_)) {
            if let EthernetPart::Link(link) = part
                && reach.has_fcoe()
            {
                lonely.extend(reach.cut_off(Part::EthernetLink(link)).keys().map(|(host, _)| *host));
            }
            let cut_off = sessions.cut_off(part).into_iter();
            let is_last = |pair: &(u16, u16)| !has_path.contains(pair) && !reach.has_channel(*pair);
            lonely.extend(cut_off.filter(is_last).map(|(host, _)| host));
        }
    }
    lonely
}

/// Returns the parts of Ethernet that are judged: none if the lab does not describe it.
fn candidates(lab: &Lab, reach: &Reach<'_>) -> BTreeSet<EthernetPart> {
    if lab.ethernet_is_implied() {
        return BTreeSet::new();
    }
    if reach.has_fcoe() {
        let links = (0..lab.ethernet_links.len() as u16).map(EthernetPart::Link);
        return links.chain((0..lab.ethernet_switches.len() as u16).map(EthernetPart::Switch)).collect();
    }
    reach.iscsi().candidates()
}

/// Adds the single points of failure of Ethernet, and counts hosts with a session only where a
/// failure of Fibre Channel cuts them off.
pub(super) fn add_points(lab: &Lab, reach: &Reach<'_>, points: &mut Vec<SinglePoint>) {
    points.retain_mut(|point| {
        point.hosts = reach.hosts_cut_off(point.part);
        point.hosts > 0
    });
    let mut parts = BTreeSet::new();
    for part in candidates(lab, reach) {
        match part {
            EthernetPart::Switch(switch) => parts.extend([Part::EthernetSwitch(switch)]),
            EthernetPart::Link(link) => {
                let ends = (0..).zip(&lab.ethernet_links[usize::from(link)].ends);
                parts.extend(ends.filter_map(|(side, end)| match end.node {
                    EthernetNode::Host(_) => Some(Part::Nic(link, side)),
                    EthernetNode::Storage(_) => Some(Part::StorageNic(link, side)),
                    EthernetNode::Switch(_) | EthernetNode::Forwarder(_) => None,
                }));
                parts.insert(Part::EthernetLink(link));
            }
        }
    }
    for (_, storage) in reach.iscsi().pairs() {
        let system = &lab.storage[usize::from(storage)];
        if durability::is_unprotected(system) {
            parts.extend((0..system.luns.len() as u16).map(|lun| Part::Unprotected(storage, lun)));
        }
    }
    let known: BTreeSet<Part> = points.iter().map(|point| point.part).collect();
    for part in parts.difference(&known) {
        let hosts = reach.hosts_cut_off(*part);
        if hosts > 0 {
            points.push(SinglePoint { part: *part, name: part_name(lab, *part), hosts });
        }
    }
}
