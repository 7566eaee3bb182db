//! Paths of iSCSI over Ethernet and of SRP over InfiniBand in the topology report:
//! [`SessionPaths`].

use super::names::compress_all;
use sanloom_fc::san::Lab;
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
