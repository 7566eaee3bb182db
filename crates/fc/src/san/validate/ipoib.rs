//! Validation of IP over InfiniBand and of routers to Ethernet.

use super::Problems;
use super::ethernet::link_place;
use crate::config::{EthernetNode, InfinibandNode, IpoibMode, MIN_IP_MTU};
use crate::san::masks::Masks;
use crate::san::{IpPaths, IpWay, Lab, Place, ProblemKind, Section};
use std::cell::OnceCell;
use std::collections::BTreeSet;

pub(super) fn validate(lab: &Lab, problems: &mut Problems) {
    if lab.infiniband.ipoib.nodes.is_empty() && lab.infiniband.ipoib.routers.is_empty() {
        return;
    }
    nodes(lab, problems);
    routers(lab, problems);
    if lab.infiniband.has_ipoib() {
        partitions(lab, problems);
    }
}

/// Advice about MTUs on the ways of sessions that cross InfiniBand. Each host is named once.
pub(super) fn advise(lab: &Lab, problems: &mut Problems) {
    if !lab.infiniband.has_ipoib() {
        return;
    }
    let mut named = BTreeSet::new();
    IpPaths::for_each_pair(lab, |paths, host, _, ways| {
        let on_infiniband =
            |way: &&IpWay| way.router.is_some() || way.ends.iter().any(|end| paths.on_infiniband(*end).is_some());
        let unlike = ways.iter().filter(on_infiniband).find_map(|way| unlike_mtus(lab, paths, way));
        if let Some((place, reason, remedy)) = unlike.filter(|_| named.insert(host)) {
            problems.add(ProblemKind::BadSize, place, reason, remedy);
        }
        true
    });
}

/// Place, reason and remedy of MTUs on a way that do not fit each other. The simulator gives
/// segments the size of the smallest one from the first segment on. Without a router, the ends
/// agree on that size (MSS option, RFC 9293, section 3.7.1). An interface of a router that is
/// smaller than both ends is known to them by path MTU discovery only (RFC 1191).
fn unlike_mtus(lab: &Lab, paths: &IpPaths<'_>, way: &IpWay) -> Option<(Place, String, String)> {
    let [near, far] = way.ends.map(|end| paths.mtu(end));
    let name = |interface: u16| match paths.on_infiniband(interface) {
        None => paths.iscsi.interfaces[usize::from(interface)].end.name(lab),
        Some(number) => paths.infiniband[usize::from(number)].end.name(lab),
    };
    let place_of = |interface: u16| match paths.on_infiniband(interface) {
        None => (link_place(paths.iscsi.interfaces[usize::from(interface)].link), "mtu"),
        Some(number) => {
            let node = paths.infiniband[usize::from(number)].end.node;
            let is_given = paths.ipoib(node).is_some_and(|ipoib| ipoib.mtu.is_some());
            (place(node), if is_given { "ipoib.mtu" } else { "ipoib" })
        }
    };
    let key_of = |interface: u16| match paths.on_infiniband(interface) {
        None => format!("`mtu` of the link of `{}`", name(interface)),
        Some(_) => format!("`ipoib.mtu` of `{}`", name(interface)),
    };
    let [from, to] = way.ends;
    let of_router = way.router.map_or([from, to], |(_, interfaces)| interfaces);
    let narrow = of_router.into_iter().min_by_key(|interface| paths.mtu(*interface))?;
    let least = paths.mtu(narrow);
    if least < near.min(far) {
        let (place, key) = place_of(narrow);
        return Some((
            place.key(key),
            format!(
                "`{}` and `{}` agree on packets of {} bytes, but `{}` between them passes {least}: the simulator \
                 sends segments of that size, and a network without path MTU discovery loses longer ones",
                name(from),
                name(to),
                near.min(far),
                name(narrow)
            ),
            format!("raise {} to {}, or lower those of the ends to {least}", key_of(narrow), near.min(far)),
        ));
    }
    if near == far {
        return None;
    }
    let (small, large) = if near < far { (from, to) } else { (to, from) };
    let (place, key) = place_of(large);
    Some((
        place.key(key),
        format!(
            "`{}` has an MTU of {} and `{}` of {}, so their segments have the smaller size",
            name(from),
            near,
            name(to),
            far
        ),
        format!("set {} to {}, or raise {}", key_of(large), near.min(far), key_of(small)),
    ))
}

fn place(node: InfinibandNode) -> Place {
    match node {
        InfinibandNode::Host(host) => Place::of(Section::Host, usize::from(host)),
        InfinibandNode::Storage(storage) => Place::of(Section::Storage, usize::from(storage)),
        InfinibandNode::Switch(switch) => Place::of(Section::InfinibandSwitch, usize::from(switch)),
    }
}

fn nodes(lab: &Lab, problems: &mut Problems) {
    let subnet_mtu = lab.infiniband.subnet.mtu;
    let linked: BTreeSet<InfinibandNode> =
        lab.infiniband.links.iter().flat_map(|link| link.ends).map(|end| end.node).collect();
    for (&node, ipoib) in &lab.infiniband.ipoib.nodes {
        let name = lab.infiniband_node_name(node);
        if !linked.contains(&node) {
            problems.add(
                ProblemKind::BadLink,
                place(node).key("ipoib"),
                format!("`{name}` has IPoIB, but no InfiniBand link"),
                "add a [[link]] with a rate of InfiniBand such as \"4xEDR\", or leave `ipoib` out",
            );
        }
        if let InfinibandNode::Storage(storage) = node
            && !lab.live.iscsi.contains_key(&storage)
        {
            problems.add(
                ProblemKind::BadLink,
                place(node).key("ipoib"),
                format!("`{name}` has IPoIB, but no iSCSI target that hosts could reach with it"),
                "add `iscsi = { portals = \"192.0.2.1:3260\" }`, or leave `ipoib` out",
            );
        }
        let (mtu, largest) = (ipoib.mtu(subnet_mtu), ipoib.largest_mtu(subnet_mtu));
        if (MIN_IP_MTU..=largest).contains(&mtu) {
            continue;
        }
        let (limit, remedy) = match ipoib.mode {
            IpoibMode::Datagram => (
                format!("a datagram of this subnet carries {MIN_IP_MTU} to {largest} bytes behind the header of 4"),
                format!(
                    "choose up to {largest}, a larger `mtu` in [subnet] (now {subnet_mtu}), or mode = \"connected\""
                ),
            ),
            IpoibMode::Connected => (
                format!("a connection carries packets of {MIN_IP_MTU} to {largest} bytes"),
                format!("choose up to {largest}"),
            ),
        };
        let key = if ipoib.mtu.is_some() { "ipoib.mtu" } else { "ipoib" };
        problems.add(
            ProblemKind::BadNumber,
            place(node).key(key),
            format!("`{name}` has an IPoIB MTU of {mtu} bytes, but {limit}"),
            remedy,
        );
    }
}

fn routers(lab: &Lab, problems: &mut Problems) {
    let ethernet: BTreeSet<EthernetNode> =
        lab.ethernet_links.iter().flat_map(|link| link.ends).map(|end| end.node).collect();
    for &host in lab.infiniband.ipoib.routers.keys() {
        let name = lab.infiniband_node_name(InfinibandNode::Host(host));
        let lacks = match (
            lab.infiniband.ipoib.nodes.contains_key(&InfinibandNode::Host(host)),
            ethernet.contains(&EthernetNode::Host(host)),
        ) {
            (true, true) => continue,
            (false, _) => ("no IPoIB", "add `ipoib = {}` and a [[link]] with a rate of InfiniBand"),
            (true, false) => ("no Ethernet link", "add a [[link]] with a rate of Ethernet such as \"10GbE\""),
        };
        problems.add(
            ProblemKind::BadLink,
            place(InfinibandNode::Host(host)).key("ip_router"),
            format!("`{name}` routes between InfiniBand and Ethernet, but has {}", lacks.0),
            format!("{}, or leave `ip_router` out", lacks.1),
        );
    }
}

/// Pairs of a workload that one subnet joins, that have no other way, and whose partitions differ.
fn partitions(lab: &Lab, problems: &mut Problems) {
    let paths = IpPaths::of(lab);
    let srp = lab.srp_paths();
    let fabric = OnceCell::new();
    let has_other_way = |host: u16, storage: u16| {
        let pairs = fabric.get_or_init(|| lab.pairs_zoned_at_some_time(Masks::default()));
        !srp.pairs(host, storage).is_empty() || pairs.storage_of_host(host).contains(&storage)
    };
    let mut reported = BTreeSet::new();
    for workload in &lab.workloads {
        let targets: BTreeSet<u16> = workload.targets.iter().map(|target| target.storage).collect();
        for &host in workload.hosts.iter().filter(|host| usize::from(**host) < lab.hosts.len()) {
            let separated = targets
                .iter()
                .find_map(|storage| separated(lab, &paths, host, *storage).filter(|_| !has_other_way(host, *storage)));
            let Some((own, other, node)) = separated.filter(|_| reported.insert(host)) else { continue };
            problems.add(
                ProblemKind::Unreachable,
                place(InfinibandNode::Host(host)).key("ipoib.partition"),
                format!(
                    "`{}` is in partition {own:#06x} and `{}` in {other:#06x}, so they exchange no packets",
                    lab.infiniband_node_name(InfinibandNode::Host(host)),
                    lab.infiniband_node_name(node),
                ),
                "give both the same `partition` in `ipoib`",
            );
        }
    }
}

/// Partition of a host, and that of the storage system or router behind which it is, with this
/// node, if a partition is all that separates them.
pub(super) fn separated(lab: &Lab, paths: &IpPaths<'_>, host: u16, storage: u16) -> Option<(u16, u16, InfinibandNode)> {
    let own = paths.ipoib(InfinibandNode::Host(host))?;
    if !paths.iscsi.admits(host, storage) || !paths.ways(host, storage).is_empty() {
        return None;
    }
    let routers = lab.infiniband.ipoib.routers.keys().filter(|router| paths.leads_to(host, **router, storage));
    let routers = routers.map(|router| InfinibandNode::Host(*router));
    let mut others = std::iter::once(InfinibandNode::Storage(storage)).chain(routers);
    others.find_map(|node| {
        let other = paths.ipoib(node).filter(|_| paths.share_subnet(InfinibandNode::Host(host), node))?;
        (other.partition != own.partition).then_some((own.partition, other.partition, node))
    })
}
