//! Lints about zones and reachability.

use super::{Design, ONE_SIDED_ZONE, SEVERAL_INITIATORS, SPLIT_ZONE, SUBJECTS, UNREACHED_STORAGE, UNZONED_PORT};
use sanloom_fc::config::{FaultKind, Node, ZoneMember};
use sanloom_fc::fabric::ZoneSet;
use sanloom_fc::san::{AttachedPort, Lab, Place, Section};
use std::collections::{BTreeMap, BTreeSet};

/// Finds linked ports in no zone, where the default zone is closed. Ports that a scheduled change
/// adds to a zone are skipped. HBAs of hypervisors are skipped because these often do no I/O of
/// their own.
pub(super) fn unzoned_ports(design: &mut Design<'_>) {
    let (lab, permitted) = (design.lab, &design.network.permitted);
    let zonings = || [&lab.zoning].into_iter().chain(lab.changes.iter().map(|change| &change.expected));
    let mut sets: BTreeMap<u16, Vec<ZoneSet>> = BTreeMap::new();
    let mut of_fabric: BTreeMap<Option<u16>, u16> = BTreeMap::new();
    let moves = lab.faults.iter().filter_map(|fault| match fault.kind {
        FaultKind::VmMove { to, .. } => Some(Node::Host(to)),
        _ => None,
    });
    let carriers = permitted.hosts.iter().filter(|port| port.is_virtual).map(|port| port.carrier);
    let hypervisors: BTreeSet<Node> = moves.chain(carriers).collect();
    for port in permitted.hosts.iter().chain(&permitted.storage) {
        let is_hypervisor = !port.is_virtual && hypervisors.contains(&port.node);
        // Zones have no effect on loops and direct links.
        if is_hypervisor || !lab.is_switch(port.switch) {
            continue;
        }
        // Switches of one virtual fabric, and all others together, have the same zones.
        let first = *of_fabric.entry(lab.vf_id(port.switch)).or_insert(port.switch);
        let sets = sets
            .entry(first)
            .or_insert_with(|| zonings().map(|zoning| ZoneSet::new(&lab.zoning_at(zoning, first))).collect());
        if sets[0].open_default() || sets.iter().any(|zones| zones.is_zoned(&port.identity)) {
            continue;
        }
        let (place, name) = node(lab, port.node);
        design.found.push(super::Lint {
            code: UNZONED_PORT,
            place,
            subject: format!("{name}:{}", port.port),
            reason: format!("in no zone, so no other port may access it: {SUBJECTS}"),
            remedy: "put the port into a zone with its partner, or write default = \"open\" in [zoning] if ports in \
                     no zone may access each other"
                .to_owned(),
        });
    }
}

/// Finds zones with one kind of ports only, zones whose initiators and targets share no fabric, and
/// zones in which initiators see each other.
pub(super) fn members(design: &mut Design<'_>) {
    let lab = design.lab;
    let permitted = &design.network.permitted;
    let mut known: BTreeMap<ZoneMember, Vec<&AttachedPort>> = BTreeMap::new();
    for port in permitted.hosts.iter().chain(&permitted.storage) {
        for key in port.identity.keys() {
            known.entry(key).or_default().push(port);
        }
    }
    // A dark link may join fabrics later.
    let is_dark = !lab.links_down_at_start().is_empty();
    let mut found = Vec::new();
    for (index, zone) in lab.zoning.zones.iter().enumerate() {
        let place = Place::of(Section::Zone, index).key("members");
        let mut ports: Vec<&AttachedPort> = Vec::new();
        // A stranger may be a host or a storage system that is not in the lab.
        let mut strangers = false;
        for member in zone.all_members() {
            match known.get(member) {
                Some(list) => ports.extend(list),
                None => strangers = true,
            }
        }
        ports.retain(|port| lab.zone_counts_at(&zone.name, port.switch));
        ports.sort_unstable_by_key(|port| (port.node, port.port));
        ports.dedup_by_key(|port| (port.node, port.port));
        let (hosts, storage): (Vec<&AttachedPort>, Vec<&AttachedPort>) =
            ports.iter().partition(|port| matches!(port.node, Node::Host(_)));
        let sides = match (hosts.len(), storage.len()) {
            _ if strangers => None,
            (2.., 0) => Some(("initiators", "add the storage ports that they use, or delete the zone")),
            (0, 2..) => Some((
                "targets",
                "add the host port that uses them, or delete the zone, unless the storage systems replicate to each other",
            )),
            _ => None,
        };
        if let Some((sort, remedy)) = sides {
            let reason = format!("only {sort} in zone {SUBJECTS}, so it carries no I/O");
            found.push((ONE_SIDED_ZONE, place, zone.name.clone(), reason, remedy));
        }
        let meets = |host: &&AttachedPort| storage.iter().any(|port| port.fabric == host.fabric);
        let is_split = !hosts.is_empty() && !storage.is_empty() && !hosts.iter().any(meets);
        if is_split && !strangers && !is_dark {
            let reason =
                format!("initiators and targets of zone {SUBJECTS} are in different fabrics, so it carries no I/O");
            let remedy = "zone each host port with storage ports of its own fabric";
            found.push((SPLIT_ZONE, place, zone.name.clone(), reason, remedy));
        }
        let mut by_fabric: BTreeMap<u16, usize> = BTreeMap::new();
        hosts.iter().for_each(|port| *by_fabric.entry(port.fabric).or_default() += 1);
        let most = by_fabric.into_values().max().unwrap_or(0);
        if most > 1 && !storage.is_empty() && !zone.is_peer() {
            let reason = format!(
                "{most} initiators see each other in zone {SUBJECTS}, so each gets the state changes of the others"
            );
            let remedy =
                "give every initiator a zone of its own, or make it a peer zone: the storage ports as `principals`";
            found.push((SEVERAL_INITIATORS, place, zone.name.clone(), reason, remedy));
        }
    }
    for (code, place, subject, reason, remedy) in found {
        design.add(code, place, subject, reason, remedy);
    }
}

/// Finds linked storage systems that no host may use.
pub(super) fn unreached_storage(design: &mut Design<'_>) {
    let lab = design.lab;
    // Pairs that a scheduled change or a link that comes up later permits count, too.
    let changes = !lab.changes.is_empty() || !lab.links_down_at_start().is_empty();
    let later = changes.then(|| lab.pairs_usable_at_some_time());
    let permitted = later.as_ref().unwrap_or(&design.network.permitted);
    let linked: BTreeSet<Node> = lab.linked_ports().iter().map(|port| port.node).collect();
    if !linked.iter().any(|node| matches!(node, Node::Host(_))) {
        return;
    }
    let reached: BTreeSet<u32> = permitted.sets().iter().flatten().copied().collect();
    let fabrics: BTreeSet<u16> = permitted.hosts.iter().map(|port| port.fabric).collect();
    let mut found = Vec::new();
    for (index, system) in lab.storage.iter().enumerate() {
        let ports = permitted.ports_of_storage(index as u16);
        let is_reached = ports.clone().any(|port| reached.contains(&(port as u32)));
        if is_reached || !linked.contains(&Node::Storage(index as u16)) {
            continue;
        }
        let is_near_hosts = ports.clone().any(|port| fabrics.contains(&permitted.storage[port].fabric));
        let (why, remedy) = match (ports.is_empty(), is_near_hosts) {
            (true, _) => {
                ("its links are down during the whole run", "end the fault of one of its links, or leave it out")
            }
            (_, true) => ("zones or masks permit none", "zone a host port with a port of it, or leave it out"),
            (_, false) => ("its fabric has no host", "link it to a fabric with hosts, or leave it out"),
        };
        found.push((Place::of(Section::Storage, index), system.name.clone(), why, remedy));
    }
    for (place, name, why, remedy) in found {
        let reason = format!("no host can reach storage {SUBJECTS}: {why}");
        design.add(UNREACHED_STORAGE, place, name, reason, remedy);
    }
}

/// Place and name of a node.
pub(super) fn node(lab: &Lab, node: Node) -> (Place, &str) {
    match node {
        Node::Switch(i) => (Place::of(Section::Switch, i.into()), &lab.switches[usize::from(i)].name),
        Node::Host(i) => (Place::of(Section::Host, i.into()), &lab.hosts[usize::from(i)].name),
        Node::Storage(i) => (Place::of(Section::Storage, i.into()), &lab.storage[usize::from(i)].name),
        Node::Loop(i) => (Place::of(Section::Loop, i.into()), &lab.loops[usize::from(i)].name),
    }
}
