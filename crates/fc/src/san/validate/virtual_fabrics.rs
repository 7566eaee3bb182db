//! Validation of virtual fabrics: ports shared within a chassis, and links and zones between
//! virtual fabrics.

use super::Problems;
use super::fabric::node_name;
use crate::config::{MAX_VF_ID, Node, VirtualFabric, ZoneMember};
use crate::san::{Lab, Place, ProblemKind, Section};
use sanloom_wire::Wwnn;
use std::collections::{BTreeMap, BTreeSet};

pub(super) fn validate(lab: &Lab, problems: &mut Problems) {
    chassis(lab, problems);
    links(lab, problems);
    zones(lab, problems);
}

/// Checks that the virtual fabrics of a chassis have different IDs and no common port.
fn chassis(lab: &Lab, problems: &mut Problems) {
    let mut ids: BTreeMap<(&str, u16), &str> = BTreeMap::new();
    let mut ports: BTreeMap<(&str, u16), &str> = BTreeMap::new();
    for (index, switch) in lab.switches.iter().enumerate() {
        let Some(VirtualFabric { chassis, id, ports: own }) = &switch.virtual_fabric else { continue };
        let place = Place::of(Section::Switch, index);
        problems.number(place.key("virtual_fabric.id"), u64::from(*id), 1, MAX_VF_ID.into());
        if let Some(first) = ids.insert((chassis, *id), &switch.name) {
            problems.add(
                ProblemKind::DuplicateFabric,
                place.key("virtual_fabric.id"),
                format!("`{}` is virtual fabric {id} of chassis `{chassis}`, the same as `{first}`", switch.name),
                "give every virtual fabric of a chassis an `id` of its own",
            );
        }
        let shared: Vec<(u16, &str)> =
            own.iter().filter_map(|port| Some((*port, ports.insert((chassis, *port), &switch.name)?))).collect();
        if let Some((port, other)) = shared.first() {
            let more = match shared.len() {
                1 => String::new(),
                n => format!(" and {} more", n - 1),
            };
            problems.add(
                ProblemKind::PortInTwoFabrics,
                place.key("virtual_fabric.ports"),
                format!("port {port}{more} of chassis `{chassis}` is in the virtual fabric of `{other}` already"),
                "give each port of a chassis to one virtual fabric",
            );
        }
    }
}

/// Checks that a link ends at ports of its switches and stays within one virtual fabric.
fn links(lab: &Lab, problems: &mut Problems) {
    let fabric = |node: Node| match node {
        Node::Switch(switch) => lab.switches.get(usize::from(switch)).and_then(|s| s.virtual_fabric.as_ref()),
        Node::Host(_) | Node::Storage(_) | Node::Loop(_) => None,
    };
    for (index, link) in lab.links.iter().enumerate() {
        let place = Place::of(Section::Link, index);
        for (end, key) in link.ends.iter().zip(["from", "to"]) {
            let Some(VirtualFabric { chassis, ports, .. }) = fabric(end.node) else { continue };
            if ports.binary_search(&end.port).is_ok() {
                continue;
            }
            let name = node_name(lab, end.node);
            let owner = lab.switches.iter().find(|switch| {
                let of = |fabric: &VirtualFabric| fabric.chassis == *chassis && fabric.ports.contains(&end.port);
                switch.virtual_fabric.as_ref().is_some_and(of)
            });
            let (reason, remedy) = match owner {
                Some(owner) => (
                    format!("port {} of chassis `{chassis}` belongs to `{}`", end.port, owner.name),
                    format!("write {}:{}, or give the port to `{name}`", owner.name, end.port),
                ),
                None => (
                    format!("port {} of chassis `{chassis}` is in no virtual fabric", end.port),
                    format!("add it to `virtual_fabric.ports` of `{name}`"),
                ),
            };
            problems.add(ProblemKind::NoSuchPort, place.key(key), reason, remedy);
        }
        let ids = link.ends.map(|end| fabric(end.node).map(|fabric| fabric.id));
        if let [Some(a), Some(b)] = ids
            && a != b
        {
            problems.add(
                ProblemKind::AcrossFabrics,
                place.key("to"),
                format!("the link `{}` would join virtual fabrics {a} and {b}", link.name),
                "link switches of the same virtual fabric, one ISL for each",
            );
        }
    }
}

/// Virtual fabrics in which ports match each zone member.
fn fabrics_of_members(lab: &Lab) -> BTreeMap<ZoneMember, Vec<u16>> {
    let mut fabrics_of: BTreeMap<ZoneMember, Vec<u16>> = BTreeMap::new();
    for port in lab.attached_ports() {
        let Some(id) = lab.vf_id(port.switch) else { continue };
        for key in port.identity.keys() {
            fabrics_of.entry(key).or_default().push(id);
        }
    }
    fabrics_of
}

/// Advice about zones of a virtual fabric with members that are logged in at others only. A node
/// whose name stands for all its ports may have some of them in other fabrics.
pub(super) fn advise(lab: &Lab, problems: &mut Problems) {
    if lab.zone_fabrics.is_empty() {
        return;
    }
    let fabrics_of = fabrics_of_members(lab);
    let mut nodes_of: BTreeMap<ZoneMember, BTreeSet<(u16, Wwnn)>> = BTreeMap::new();
    for port in lab.attached_ports() {
        let Some(id) = lab.vf_id(port.switch) else { continue };
        for key in port.identity.keys() {
            nodes_of.entry(key).or_default().insert((id, port.identity.node_name));
        }
    }
    for (index, zone) in lab.zoning.zones.iter().enumerate() {
        let Some(id) = lab.zone_fabrics.get(&zone.name) else { continue };
        let own: BTreeSet<(u16, Wwnn)> =
            zone.all_members().filter_map(|member| nodes_of.get(member)).flatten().copied().collect();
        for (members, key) in [(&zone.members, "members"), (&zone.principals, "principals")] {
            let is_here = |node: &Wwnn| own.contains(&(*id, *node));
            let elsewhere = |member: &&ZoneMember| {
                fabrics_of.get(*member).is_some_and(|ids| !ids.contains(id))
                    && nodes_of.get(*member).is_some_and(|nodes| !nodes.iter().any(|(_, node)| is_here(node)))
            };
            let Some(member) = members.iter().find(elsewhere) else { continue };
            let other = fabrics_of[member].first().copied().unwrap_or_default();
            problems.add(
                ProblemKind::IdleZone,
                Place::of(Section::Zone, index).key(key),
                format!(
                    "zone `{}` of virtual fabric {id} names `{member}`, which is in virtual fabric {other}, so it \
                     matches nothing",
                    zone.name
                ),
                format!("remove it from the zone, or link it to a switch of virtual fabric {id}"),
            );
        }
    }
}

/// Checks that a zone belongs to an existing virtual fabric, and that the members of a zone without
/// one can communicate.
fn zones(lab: &Lab, problems: &mut Problems) {
    let ids: BTreeSet<u16> = (0..lab.switches.len() as u16).filter_map(|switch| lab.vf_id(switch)).collect();
    if ids.is_empty() && lab.zone_fabrics.is_empty() {
        return;
    }
    let fabrics_of = fabrics_of_members(lab);
    for (index, zone) in lab.zoning.zones.iter().enumerate() {
        let place = Place::of(Section::Zone, index);
        if let Some(id) = lab.zone_fabrics.get(&zone.name) {
            if !ids.contains(id) {
                problems.add(
                    ProblemKind::UnknownFabric,
                    place.key("virtual_fabric"),
                    format!("zone `{}` belongs to virtual fabric {id}, but no switch does", zone.name),
                    "use the `id` of a `virtual_fabric` of a switch, or leave it out",
                );
            }
            // Members in other virtual fabrics match nothing, for which `advise` warns.
            continue;
        }
        let mut ports: BTreeMap<u16, usize> = BTreeMap::new();
        for id in zone.all_members().filter_map(|member| fabrics_of.get(member)).flatten() {
            *ports.entry(*id).or_insert(0) += 1;
        }
        let with_one_member = ports.iter().find(|(_, count)| **count == 1).map(|(id, _)| *id);
        if let Some(id) = with_one_member
            && let Some(other) = ports.keys().find(|other| **other != id)
        {
            problems.add(
                ProblemKind::AcrossFabrics,
                place.key("members"),
                format!(
                    "zone `{}` has members in virtual fabrics {} and {}, which are separate",
                    zone.name,
                    id.min(*other),
                    id.max(*other)
                ),
                "zone ports of one virtual fabric with each other",
            );
        }
    }
}
