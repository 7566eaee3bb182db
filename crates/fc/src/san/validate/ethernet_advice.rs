//! Advice about settings of Ethernet and TCP that do not fit each other.

use super::Problems;
use super::ethernet::{link_place, name, switch_place};
use crate::config::{Congestion, EthernetFault, EthernetNode, FaultKind, PRIORITIES, Tcp};
use crate::san::{IpPaths, Lab, Place, ProblemKind, Section, fcoe_paths};
use std::collections::{BTreeMap, BTreeSet};

/// Gives advice about priorities, marks, congestion control and MTUs.
pub(super) fn advise(lab: &Lab, problems: &mut Problems) {
    if lab.ethernet_links.is_empty() || lab.ethernet_is_implied() {
        return;
    }
    let traffic = Traffic::of(lab);
    shares(lab, &traffic, problems);
    marks(lab, &traffic, problems);
    shared_priorities(lab, &traffic, problems);
    peers(lab, problems);
    storms(lab, problems);
    shared_addresses(lab, problems);
}

/// Priorities in use.
#[derive(Default)]
struct Traffic {
    /// Hosts with sessions of iSCSI over Ethernet, and the mask of their priorities.
    iscsi: u8,
    /// Mask of the priorities of virtual links without FCIP.
    fcoe: u8,
    /// First host with sessions in each priority.
    hosts: BTreeMap<u8, u16>,
}

impl Traffic {
    fn of(lab: &Lab) -> Traffic {
        let mut traffic = Traffic::default();
        IpPaths::for_each_pair(lab, |paths, host, _, ways| {
            if ways.iter().any(|way| way.ends.iter().any(|end| paths.on_infiniband(*end).is_none())) {
                let priority = lab.hosts[usize::from(host)].iscsi.priority.unwrap_or(0);
                traffic.iscsi |= 1 << priority;
                traffic.hosts.entry(priority).or_insert(host);
            }
            true
        });
        for path in fcoe_paths(lab) {
            match path.config.fcip {
                None => traffic.fcoe |= 1 << path.config.priority,
                Some(_) => traffic.iscsi |= 1,
            }
        }
        traffic
    }
}

/// Priorities in use without a share, beside others with shares: they are strict, so they may take
/// the whole line.
fn shares(lab: &Lab, traffic: &Traffic, problems: &mut Problems) {
    let used = traffic.iscsi | traffic.fcoe;
    for (number, switch) in (0..).zip(&lab.ethernet_switches) {
        let with_share = (0..PRIORITIES).filter(|p| switch.shares[*p] > 0).fold(0_u8, |mask, p| mask | 1 << p);
        let strict = used & !with_share;
        if with_share & used == 0 || strict == 0 {
            continue;
        }
        let [strict, shared] = [strict, with_share & used].map(|mask| mask.trailing_zeros());
        problems.add(
            ProblemKind::MissingShare,
            switch_place(number).key("ets"),
            format!(
                "priority {strict} is in use at `{}` without a share, so it is strict and may leave nothing to priority \
                 {shared}",
                switch.name
            ),
            format!("give both a share, such as `ets = {{ {shared} = 50, {strict} = 50 }}`"),
        );
    }
}

/// Marks that no queue reaches, and marks in priorities without traffic.
fn marks(lab: &Lab, traffic: &Traffic, problems: &mut Problems) {
    for (number, switch) in (0..).zip(&lab.ethernet_switches) {
        let Some(ecn) = switch.ecn else { continue };
        if ecn.from_bytes > switch.memory_bytes {
            problems.add(
                ProblemKind::NoMarks,
                switch_place(number).key("ecn.from"),
                format!(
                    "`{}` marks frames from {} bytes in a queue, but its memory has {} bytes, so it marks none",
                    switch.name, ecn.from_bytes, switch.memory_bytes
                ),
                "make `ecn.from` smaller than `memory`",
            );
        }
        let used = traffic.iscsi & ecn.priorities;
        if traffic.iscsi != 0 && used == 0 {
            let priority = traffic.iscsi.trailing_zeros();
            problems.add(
                ProblemKind::NoMarks,
                switch_place(number).key("ecn.priorities"),
                format!("`{}` marks frames of priorities in which no TCP connection sends", switch.name),
                format!("add priority {priority}, which connections use, or leave `ecn.priorities` out"),
            );
        }
    }
}

/// Sessions of iSCSI in a priority of FCoE.
fn shared_priorities(lab: &Lab, traffic: &Traffic, problems: &mut Problems) {
    for (priority, host) in traffic.hosts.iter().filter(|(priority, _)| traffic.fcoe & 1 << **priority != 0) {
        problems.add(
            ProblemKind::LossyFcoe,
            Place::of(Section::Host, usize::from(*host)).key("iscsi.priority"),
            format!(
                "`{}` sends iSCSI in priority {priority}, which is that of FCoE: both share one lossless queue, and TCP \
                 fills it",
                lab.hosts[usize::from(*host)].name
            ),
            "choose another `iscsi.priority`",
        );
    }
}

/// Settings of TCP and MTUs at both ends of a session that do not fit each other. Each host, and
/// each storage system, is named once.
fn peers(lab: &Lab, problems: &mut Problems) {
    let mut named: BTreeSet<(&'static str, u16)> = BTreeSet::new();
    // Nodes with DCTCP, each with a peer, if no peer has DCTCP.
    let mut dctcp: BTreeMap<EthernetNode, Option<EthernetNode>> = BTreeMap::new();
    IpPaths::for_each_pair(lab, |paths, host, storage, ways| {
        let Some(target) = lab.live.iscsi.get(&storage) else { return true };
        let own = &lab.hosts[usize::from(host)];
        let far = &lab.storage[usize::from(storage)];
        let ends: [(&Tcp, &str); 2] = [(&own.iscsi.tcp, own.name.as_str()), (&target.tcp, far.name.as_str())];
        let host_place = Place::of(Section::Host, usize::from(host));
        let is_dctcp = ends.map(|(tcp, _)| tcp.congestion == Congestion::Dctcp);
        let nodes = [EthernetNode::Host(host), EthernetNode::Storage(storage)];
        for (this, other) in [(0, 1), (1, 0)] {
            if is_dctcp[this] {
                let peer = dctcp.entry(nodes[this]).or_insert(Some(nodes[other]));
                *peer = peer.filter(|_| !is_dctcp[other]);
            }
        }
        for (this, other) in [(0, 1), (1, 0)] {
            let ((tcp, name), (peer, peer_name)) = (ends[this], ends[other]);
            let (key, place) = match this {
                0 => (("rto", host), host_place.key("iscsi.tcp.rto_min")),
                _ => (
                    ("rto of storage", storage),
                    Place::of(Section::Storage, usize::from(storage)).key("iscsi.tcp.rto_min"),
                ),
            };
            if tcp.rto_min < peer.delayed_ack && named.insert(key) {
                problems.add(
                    ProblemKind::EarlyTimeout,
                    place,
                    format!(
                        "`{name}` retransmits after {}, before `{peer_name}` acknowledges a single segment after {}",
                        tcp.rto_min, peer.delayed_ack
                    ),
                    format!("make `rto_min` longer than {}, or `delayed_ack` of the peer shorter", peer.delayed_ack),
                );
            }
        }
        let mtus = ways.iter().filter(|way| way.router.is_none()).map(|way| way.ends.map(|end| (end, paths.mtu(end))));
        let unlike = mtus.filter(|ends| ends.iter().all(|(end, _)| paths.on_infiniband(*end).is_none()));
        if let Some([near, far_end]) = { unlike }.find(|[near, far]| near.1 != far.1)
            && named.insert(("mtu", host))
        {
            let link = paths.iscsi.interfaces[usize::from(near.0)].link;
            problems.add(
                ProblemKind::BadSize,
                link_place(link).key("mtu"),
                format!(
                    "`{}` has an MTU of {} and `{}` of {}, so their segments have the smaller size",
                    name(lab, EthernetNode::Host(host)),
                    near.1,
                    name(lab, EthernetNode::Storage(storage)),
                    far_end.1
                ),
                "give both links one `mtu`",
            );
        }
        true
    });
    for (node, peer) in dctcp {
        let Some(peer) = peer else { continue };
        let place = match node {
            EthernetNode::Host(host) => Place::of(Section::Host, usize::from(host)),
            EthernetNode::Storage(storage) => Place::of(Section::Storage, usize::from(storage)),
            EthernetNode::Switch(_) | EthernetNode::Forwarder(_) => continue,
        };
        problems.add(
            ProblemKind::NoMarks,
            place.key("iscsi.tcp.congestion"),
            format!(
                "`{}` uses DCTCP and `{}` does not, so their queues are not kept short in both directions",
                name(lab, node),
                name(lab, peer)
            ),
            "set `congestion = \"dctcp\"` at both ends",
        );
    }
}

/// Storage systems with one address on one Ethernet. Loopback addresses are those of `sanloom up`.
fn shared_addresses(lab: &Lab, problems: &mut Problems) {
    let groups = lab.ethernet_groups(None);
    let paths = lab.iscsi_paths();
    let mut owners = BTreeMap::new();
    for (&storage, target) in &lab.live.iscsi {
        for (portal, address) in paths.portals(storage).into_iter().zip(&target.portals) {
            if address.ip().is_loopback() {
                continue;
            }
            let group = groups[paths.interfaces[usize::from(portal)].link];
            let owner = *owners.entry((group, address.ip())).or_insert(storage);
            if owner != storage {
                problems.add(
                    ProblemKind::DuplicateAddress,
                    Place::of(Section::Storage, usize::from(storage)).key("iscsi.portals"),
                    format!(
                        "`{}` and `{}` have the address {} on one Ethernet",
                        lab.storage[usize::from(owner)].name,
                        lab.storage[usize::from(storage)].name,
                        address.ip()
                    ),
                    "give each an address of its own",
                );
                break;
            }
        }
    }
}

/// Storms of pauses at switches that ignore them.
fn storms(lab: &Lab, problems: &mut Problems) {
    for (number, fault) in lab.faults.iter().enumerate() {
        let FaultKind::Ethernet(EthernetFault::PauseStorm { link, end, priorities }) = fault.kind else { continue };
        let Some(link) = lab.ethernet_links.get(usize::from(link)) else { continue };
        let Some(EthernetNode::Switch(partner)) = link.ends.get(usize::from(end ^ 1)).map(|end| end.node) else {
            continue;
        };
        let Some(switch) = lab.ethernet_switches.get(usize::from(partner)) else { continue };
        if switch.lossless_priorities() & priorities == 0 {
            problems.add(
                ProblemKind::PauseMismatch,
                Place::of(Section::Fault, number).key("priorities"),
                format!("`{}` has no flow control for these priorities, so it ignores their pauses", switch.name),
                "name a priority of its `pfc`, or give it `pfc` or `pause`",
            );
        }
    }
}
