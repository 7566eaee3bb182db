//! Workloads whose hosts cannot reach their storage, because no link leads there, no zone permits
//! it, or masks hide a LUN.
//!
//! Hosts with equal access are one group, so a thousand equal hosts cost as much as one.

use super::Problems;
use super::fabric::node_name;
use super::gateways::check_gateways;
use super::obstacles::Obstacle;
use crate::config::{InfinibandNode, Node, Target, Workload};
use crate::san::masks::{Masks, is_hidden_over_srp};
use crate::san::{IpPaths, Lab, PermittedPairs, Place, ProblemKind, Section, SrpPaths, ethernet_node};
use std::collections::{BTreeMap, BTreeSet};

/// Maximum number of hosts or storage systems named in one sentence.
const MAX_NAMED: usize = 8;
/// Most searches for the reason why a pair has no path.
const MAX_SEARCHES: usize = 200;

pub(super) fn validate(lab: &Lab, problems: &mut Problems) {
    if lab.workloads.is_empty() {
        return;
    }
    let access = Access::of(lab);
    for (index, workload) in lab.workloads.iter().enumerate() {
        let place = Place::of(Section::Workload, index).key("targets");
        check_workload(lab, &access, workload, place, problems);
        check_gateways(lab, &access.pairs, workload, place, problems);
        if !lab.live.masks.is_empty() {
            check_masks(lab, &access, workload, place, problems);
        }
    }
}

/// Fabrics and permitted storage of every host.
struct Access<'l> {
    /// Fabrics that each host is linked to, sorted.
    hosts: Vec<Vec<u16>>,
    /// The same for storage systems.
    storage: Vec<Vec<u16>>,
    /// For each host the numbers of the sets of its ports in `pairs`, sorted.
    sets: Vec<Vec<u32>>,
    /// Pairs without masks.
    pairs: PermittedPairs,
    masked: PermittedPairs,
    ip: IpPaths<'l>,
    srp: SrpPaths<'l>,
}

impl Access<'_> {
    fn of(lab: &Lab) -> Access<'_> {
        let pairs = lab.pairs_zoned_at_some_time(Masks::default());
        let hosts = (0..lab.hosts.len() as u16).map(|host| pairs.ports_of_host(host));
        let storage = (0..lab.storage.len() as u16).map(|storage| pairs.ports_of_storage(storage));
        Access {
            sets: hosts.clone().map(|ports| sorted(ports.map(|port| pairs.set_of(port)))).collect(),
            hosts: hosts.map(|ports| sorted(ports.map(|port| pairs.hosts[port].fabric))).collect(),
            storage: storage.map(|ports| sorted(ports.map(|port| pairs.storage[port].fabric))).collect(),
            masked: lab.pairs_permitted_at_some_time(),
            ip: IpPaths::of(lab),
            srp: lab.srp_paths(),
            pairs,
        }
    }
}

/// Each number once, in order.
fn sorted<T: Ord>(numbers: impl Iterator<Item = T>) -> Vec<T> {
    numbers.collect::<BTreeSet<T>>().into_iter().collect()
}

fn check_workload(lab: &Lab, access: &Access<'_>, workload: &Workload, place: Place, problems: &mut Problems) {
    let targets: BTreeSet<u16> = (workload.targets.iter())
        .map(|Target { storage, .. }| *storage)
        .filter(|storage| usize::from(*storage) < lab.storage.len())
        .collect();
    // Groups of equal access.
    let mut hosts: BTreeMap<(&[u16], &[u32]), Vec<u16>> = BTreeMap::new();
    for &host in &workload.hosts {
        if let Some(fabrics) = access.hosts.get(usize::from(host)) {
            hosts.entry((fabrics, &access.sets[usize::from(host)])).or_default().push(host);
        }
    }
    // Hosts that cannot reach the same storage, separately for each reason.
    let mut private: BTreeMap<BTreeSet<u16>, Vec<u16>> = BTreeMap::new();
    let mut unlinked: BTreeMap<BTreeSet<u16>, Vec<u16>> = BTreeMap::new();
    let mut unzoned: BTreeMap<BTreeSet<u16>, Vec<u16>> = BTreeMap::new();
    let mut obstacles: BTreeMap<Obstacle, Vec<u16>> = BTreeMap::new();
    let mut searches = 0;
    for ((fabrics, _), hosts) in hosts {
        let permitted = access.pairs.storage_of_host(hosts[0]);
        let refused = targets.difference(&permitted).copied();
        let is_linked = |storage: &u16| access.storage[usize::from(*storage)].iter().any(|f| fabrics.contains(f));
        let (linked, cut_off): (BTreeSet<u16>, BTreeSet<u16>) = refused.partition(is_linked);
        for host in &hosts {
            let lacks_sessions = |storage: &&u16| {
                access.ip.ways(*host, **storage).is_empty()
                    && access.srp.pairs(*host, **storage).is_empty()
                    // That is reported with the partition.
                    && super::ipoib::separated(lab, &access.ip, *host, **storage).is_none()
            };
            let linked: BTreeSet<u16> = linked.iter().filter(lacks_sessions).copied().collect();
            let cut_off: BTreeSet<u16> = cut_off.iter().filter(lacks_sessions).copied().collect();
            let has_setting = |storage: &u16| {
                // Each search takes as long as the lab is large. The first ones show the mistake.
                searches += 1;
                if searches > MAX_SEARCHES {
                    return !obstacles.is_empty();
                }
                let found = Obstacle::of(lab, &access.ip, *host, *storage);
                found.map(|found| obstacles.entry(found).or_default().push(*host)).is_some()
            };
            let (_, cut_off): (BTreeSet<u16>, BTreeSet<u16>) = cut_off.into_iter().partition(has_setting);
            let is_private = |storage: &u16| has_private_end(lab, *host, *storage);
            let (of_private, cut_off): (BTreeSet<u16>, BTreeSet<u16>) =
                cut_off.iter().partition(|storage| is_private(storage));
            for (storage, lacking) in [(&linked, &mut unzoned), (&cut_off, &mut unlinked), (&of_private, &mut private)]
            {
                if !storage.is_empty() {
                    lacking.entry(storage.clone()).or_default().push(*host);
                }
            }
        }
    }
    let name = &workload.name;
    for (obstacle, mut hosts) in obstacles.into_iter().take(MAX_NAMED) {
        // Once for each target.
        hosts.dedup();
        let (reason, remedy) = obstacle.describe(lab, &hosts);
        problems.add(ProblemKind::Unreachable, place, format!("workload `{name}`: {reason}"), remedy);
    }
    if let Some(pairs) = pairs(lab, unzoned, "permits", "to access") {
        problems.add(
            ProblemKind::NotZoned,
            place,
            format!("workload `{name}`: no zone {pairs}"),
            "put a port of the host and a port of the storage into one zone, or drop the target",
        );
    }
    if let Some(pairs) = pairs(lab, private, "from", "to") {
        problems.add(
            ProblemKind::Unreachable,
            place,
            format!("workload `{name}`: a private port of a loop exchanges frames with private ports of that loop only, so no path leads {pairs}"),
            "remove both from `private` of the loop, or add both to it and link both to the loop, or drop the target",
        );
    }
    let apart = on_other_networks(lab, &unlinked);
    if let Some(pairs) = pairs(lab, unlinked, "from", "to") {
        let remedy =
            apart.unwrap_or_else(|| "link both to switches that are joined by ISLs, or drop the target".to_owned());
        let reason = format!("workload `{name}`: no path of links leads {pairs}");
        problems.add(ProblemKind::Unreachable, place, reason, remedy);
    }
}

/// Returns the remedy if a host and its storage have no kind of network in common.
fn on_other_networks(lab: &Lab, unlinked: &BTreeMap<BTreeSet<u16>, Vec<u16>>) -> Option<String> {
    let (storage, hosts) = unlinked.first_key_value()?;
    let ends = [Node::Host(*hosts.first()?), Node::Storage(*storage.first()?)];
    let [near, far] = ends.map(|node| networks(lab, node));
    if near.is_empty() || far.is_empty() || near.iter().any(|network| far.contains(network)) {
        return None;
    }
    let [host, storage] = ends.map(|node| node_name(lab, node));
    let [near, far] = [near, far].map(|networks| networks.join(" and "));
    Some(format!(
        "`{host}` has links of {near} and `{storage}` of {far}: link both to one network, add a virtual link of FCoE \
         (a link with `ethernet`) between Ethernet and Fibre Channel, or put a gateway between both"
    ))
}

/// Kinds of networks of a node.
fn networks(lab: &Lab, node: Node) -> Vec<&'static str> {
    let on_ethernet = ethernet_node(node);
    let on_infiniband = match node {
        Node::Host(host) => Some(InfinibandNode::Host(host)),
        Node::Storage(storage) => Some(InfinibandNode::Storage(storage)),
        Node::Switch(_) | Node::Loop(_) => None,
    };
    let fibre_channel = || lab.links.iter().any(|link| link.ends.iter().any(|end| end.node == node));
    let ethernet = || lab.ethernet_links.iter().any(|link| link.ends.iter().any(|end| Some(end.node) == on_ethernet));
    let infiniband =
        || lab.infiniband.links.iter().any(|link| link.ends.iter().any(|end| Some(end.node) == on_infiniband));
    let all = [("Fibre Channel", fibre_channel()), ("Ethernet", ethernet()), ("InfiniBand", infiniband())];
    all.into_iter().filter(|(_, has)| *has).map(|(name, _)| name).collect()
}

/// Returns whether a host or a storage system has a private port on a loop with an FL_Port.
fn has_private_end(lab: &Lab, host: u16, storage: u16) -> bool {
    let ends = [Node::Host(host), Node::Storage(storage)];
    let mut loops = (0..).zip(&lab.loops);
    loops.any(|(number, of_lab)| {
        of_lab.private.iter().any(|node| ends.contains(node)) && lab.fl_port_link(number).is_some()
    })
}

/// Reports LUNs that links and zones permit, or sessions of iSCSI, and masks hide.
fn check_masks(lab: &Lab, access: &Access<'_>, workload: &Workload, place: Place, problems: &mut Problems) {
    let mut hidden: BTreeMap<BTreeSet<Target>, Vec<u16>> = BTreeMap::new();
    for &host in workload.hosts.iter().filter(|host| usize::from(**host) < lab.hosts.len()) {
        let zoned = access.pairs.storage_of_host(host);
        let ports = access.masked.ports_of_host(host);
        let is_hidden = |target: &&Target| {
            let of_system = access.masked.ports_of_storage(target.storage);
            let is_partner = |port: usize| {
                access.masked.partners(port).iter().any(|partner| of_system.contains(&(*partner as usize)))
            };
            let mut seeing = ports.clone().filter(|port| access.masked.shows(*port, target.storage, target.lun));
            if zoned.contains(&target.storage) {
                return !seeing.any(is_partner);
            }
            let over_iscsi = !access.ip.ways(host, target.storage).is_empty();
            let over_srp = !access.srp.pairs(host, target.storage).is_empty();
            let own = access.srp.interfaces_of(InfinibandNode::Host(host));
            (over_iscsi || over_srp)
                && (!over_iscsi || lab.is_hidden_over_iscsi(host, target))
                && (!over_srp || is_hidden_over_srp(lab, own, target))
        };
        let targets: BTreeSet<Target> = workload.targets.iter().filter(is_hidden).copied().collect();
        if !targets.is_empty() {
            hidden.entry(targets).or_default().push(host);
        }
    }
    let of_group = |hosts: &str, targets: &BTreeSet<Target>| {
        let name = |target: &Target| format!("{}:lun{}", node_name(lab, Node::Storage(target.storage)), target.lun);
        let luns: Vec<String> = targets.iter().map(name).collect();
        format!("{} from {hosts}", names(luns.iter().map(String::as_str)))
    };
    if let Some(text) = groups(lab, hidden, [", and ", "LUNs from"], of_group) {
        problems.add(
            ProblemKind::Masked,
            place,
            format!("workload `{}`: masks hide {text}", workload.name),
            "add the LUN to a [[mask]] of the host, or drop the target",
        );
    }
}

/// Text such as "from hosts `a`, `b` to storage `c`, nor from host `d` to storage `e`"; `None`
/// without hosts.
fn pairs(lab: &Lab, lacking: BTreeMap<BTreeSet<u16>, Vec<u16>>, before: &str, between: &str) -> Option<String> {
    groups(lab, lacking, [", nor ", "for"], |hosts, storage| {
        let storage = names(storage.iter().map(|&i| node_name(lab, Node::Storage(i))));
        format!("{before} {hosts} {between} storage {storage}")
    })
}

/// The texts of the first groups of hosts that lack the same things, and the number of hosts in the
/// other groups behind `rest`; `None` without hosts. `text` receives the names of the hosts.
fn groups<T: Ord>(
    lab: &Lab,
    lacking: BTreeMap<T, Vec<u16>>,
    [separator, rest]: [&str; 2],
    text: impl Fn(&str, &T) -> String,
) -> Option<String> {
    let mut groups: Vec<(Vec<u16>, T)> = lacking.into_iter().map(|(lacks, hosts)| (hosts, lacks)).collect();
    for (hosts, _) in &mut groups {
        hosts.sort_unstable();
    }
    groups.sort();
    let shown = groups.iter().take(MAX_NAMED).map(|(hosts, lacks)| {
        let plural = if hosts.len() == 1 { "" } else { "s" };
        let hosts = names(hosts.iter().map(|&host| node_name(lab, Node::Host(host))));
        text(&format!("host{plural} {hosts}"), lacks)
    });
    let mut texts: Vec<String> = shown.collect();
    let more: usize = groups.iter().skip(MAX_NAMED).map(|(hosts, _)| hosts.len()).sum();
    if more > 0 {
        let plural = if more == 1 { "" } else { "s" };
        texts.push(format!("{rest} {more} more host{plural}"));
    }
    (!texts.is_empty()).then(|| texts.join(separator))
}

/// The first names, and the number of further ones.
pub(super) fn names<'n>(names: impl ExactSizeIterator<Item = &'n str>) -> String {
    let more = names.len().saturating_sub(MAX_NAMED);
    let mut text = names.take(MAX_NAMED).map(|name| format!("`{name}`")).collect::<Vec<_>>().join(", ");
    if more > 0 {
        text.push_str(&format!(" and {more} more"));
    }
    text
}
