//! Paths of iSCSI over Ethernet and of SRP over InfiniBand in the topology report:
//! [`SessionPaths`].

use super::cut::Reach;
use super::durability;
use super::names::compress_all;
use super::part::{Part, part_name};
use super::report::{Paths, SinglePoint};
use sanloom_fc::config::{EthernetNode, InfinibandNode};
use sanloom_fc::san::{IpPaths, Lab, NetworkPart, SessionReach};
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
    IpPaths::for_each_pair(lab, |_, host, storage, ways| {
        let interfaces: BTreeSet<u16> = ways.iter().map(|way| way.ends[0]).collect();
        let each = lab.hosts.get(usize::from(host)).map_or(1, |host| u64::from(host.iscsi.sessions));
        found.insert((host, storage), (ways.len() as u64 * each, interfaces.len() as u64));
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
/// shares no link with a session, and a channel of SRP none with either. The path behind a gateway
/// is part of each session with it.
pub(super) fn lonely_hosts(lab: &Lab, reach: &Reach<'_>, paths: &[Paths]) -> BTreeSet<u16> {
    let (sessions, channels) = (reach.iscsi(), reach.srp());
    let pairs_of = |row: &Paths| -> Vec<(u16, u16)> {
        let of_host = |host: &u16| row.storage.iter().map(|storage| (*host, *storage)).collect::<Vec<_>>();
        row.hosts.iter().flat_map(of_host).collect()
    };
    let has_path: BTreeSet<(u16, u16)> = paths.iter().filter(|row| row.port_pairs > 0).flat_map(pairs_of).collect();
    let one_path = paths.iter().filter(|row| row.disjoint < 2).flat_map(pairs_of);
    let mut lonely: BTreeSet<u16> =
        one_path.filter(|pair| !sessions.joins(*pair) && !channels.joins(*pair)).map(|(host, _)| host).collect();
    let mut add = |parts: BTreeSet<NetworkPart>, own: &SessionReach<'_>, other: &SessionReach<'_>| {
        for part in parts.into_iter().filter(|part| matches!(part, NetworkPart::Link(_))) {
            let is_last = |pair: &(u16, u16)| !has_path.contains(pair) && !other.joins_alone(*pair);
            lonely.extend(own.cut_off(part).into_iter().filter(is_last).map(|(host, _)| host));
        }
    };
    let parts = candidates(lab, reach);
    add(parts.clone(), sessions, channels);
    add(channels.candidates(), channels, sessions);
    for part in parts.into_iter().filter(|_| reach.has_fcoe()) {
        if let NetworkPart::Link(link) = part {
            lonely.extend(reach.cut_off(Part::EthernetLink(link)).keys().map(|(host, _)| *host));
        }
    }
    for link in reach.behind().links(lab, reach.iscsi()) {
        lonely.extend(reach.cut_off(link).keys().map(|(host, _)| *host));
    }
    lonely
}

/// Returns the parts of Ethernet that are judged: none if the lab does not describe it.
fn candidates(lab: &Lab, reach: &Reach<'_>) -> BTreeSet<NetworkPart> {
    if lab.ethernet_is_implied() {
        return BTreeSet::new();
    }
    if reach.has_fcoe() {
        let links = (0..lab.ethernet_links.len() as u16).map(NetworkPart::Link);
        return links.chain((0..lab.ethernet_switches.len() as u16).map(NetworkPart::Switch)).collect();
    }
    let ends = reach.behind().ethernet_links(lab, reach.iscsi()).into_iter();
    reach.iscsi().candidates().into_iter().chain(ends.map(NetworkPart::Link)).collect()
}

/// Adds the single points of failure of Ethernet and InfiniBand, and counts hosts with a session
/// only where a failure of Fibre Channel cuts them off.
pub(super) fn add_points(lab: &Lab, reach: &Reach<'_>, points: &mut Vec<SinglePoint>) {
    points.retain_mut(|point| {
        point.hosts = reach.hosts_cut_off(point.part);
        point.hosts > 0
    });
    let mut parts = BTreeSet::new();
    for part in candidates(lab, reach) {
        match part {
            NetworkPart::Switch(switch) => _ = parts.insert(Part::EthernetSwitch(switch)),
            NetworkPart::Link(link) => {
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
    for part in reach.srp().candidates() {
        match part {
            NetworkPart::Switch(switch) => _ = parts.insert(Part::InfinibandSwitch(switch)),
            NetworkPart::Link(link) => {
                let ends = (0..).zip(&lab.infiniband.links[usize::from(link)].ends);
                parts.extend(ends.filter_map(|(side, end)| match end.node {
                    InfinibandNode::Host(_) => Some(Part::Hca(link, side)),
                    InfinibandNode::Storage(_) => Some(Part::StorageHca(link, side)),
                    InfinibandNode::Switch(_) => None,
                }));
                parts.insert(Part::InfinibandLink(link));
            }
        }
    }
    parts.extend(reach.behind().candidates(lab));
    for (_, storage) in reach.iscsi().pairs().chain(reach.srp().pairs()) {
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
