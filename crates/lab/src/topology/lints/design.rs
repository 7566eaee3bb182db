//! Lints about redundancy: fabrics that are joined, and HBAs that share a switch.

use super::{Design, JOINED_FABRICS, SAME_SWITCH, SUBJECTS};
use crate::topology::names::compress;
use crate::topology::report::Remains;
use petgraph::algo::bridges::bridges;
use sanloom_fc::config::Node;
use sanloom_fc::san::{Place, Section};
use std::collections::BTreeSet;

/// Largest number of pairs of hosts and storage that are examined for all pairs of cables together.
const MOST_EXAMINED: usize = 1_000_000;

/// Finds ISLs whose removal splits a fabric in two, while every host keeps its storage and some
/// host keeps a path in both parts. If no group of parallel ISLs does so alone, two groups between
/// four different switches are tried together.
pub(super) fn joined_fabrics(design: &mut Design<'_>) {
    let graph = &design.network.graph;
    let mut single: Vec<usize> = bridges(graph).map(|edge| *edge.weight()).collect();
    single.sort_unstable();
    let mut found: Vec<(Vec<usize>, Split)> =
        single.iter().filter_map(|group| Some((vec![*group], split(design, &[*group])?))).collect();
    if found.is_empty() {
        let pairs = pairs_of_bridges(design, &single);
        if pairs.len().saturating_mul(design.classes.pairs.len()) <= MOST_EXAMINED {
            found = pairs.into_iter().filter_map(|pair| Some((pair.to_vec(), split(design, &pair)?))).collect();
        }
    }
    let (network, lab) = (design.network, design.lab);
    for (groups, Split { sides: [a, b], hosts }) in found {
        let verb = if groups.len() == 1 { "joins" } else { "together join" };
        let mut links: Vec<usize> = groups.iter().flat_map(|group| &network.groups[*group].links).copied().collect();
        links.sort_unstable();
        let reason = format!(
            "{SUBJECTS} {verb} two fabrics, {a} and {b}, that {hosts} would use separately: one fault or zone change \
             of the joined fabric reaches both paths"
        );
        let subject = compress(links.iter().map(|link| lab.links[*link].name.as_str()));
        let remedy = match groups.len() {
            1 => "leave the link out: no host needs it, and the two fabrics then fail independently",
            _ => "leave the links out: no host needs them, and the two fabrics then fail independently",
        };
        design.add(JOINED_FABRICS, Place::of(Section::Link, links[0]), subject, reason, remedy);
    }
}

/// Pairs of groups of ISLs that together, but not alone, split a fabric, and share no switch. Groups
/// that share a switch are the uplinks of that switch.
fn pairs_of_bridges(design: &Design<'_>, single: &[usize]) -> Vec<[usize; 2]> {
    let network = design.network;
    let mut pairs = Vec::new();
    for first in (0..network.groups.len()).filter(|group| single.binary_search(group).is_err()) {
        let rest = network.graph.filter_map(|_, ()| Some(()), |_, group| (*group != first).then_some(*group));
        let share = |second: usize| {
            let ends = network.groups[second].switches;
            network.groups[first].switches.iter().any(|switch| ends.contains(switch))
        };
        let seconds = bridges(&rest).map(|edge| *edge.weight());
        let mut seconds: Vec<usize> = seconds
            .filter(|second| *second > first && single.binary_search(second).is_err() && !share(*second))
            .collect();
        seconds.sort_unstable();
        pairs.extend(seconds.into_iter().map(|second| [first, second]));
    }
    pairs
}

/// A fabric without some ISLs.
struct Split {
    /// Switches of both parts, in range notation.
    sides: [String; 2],
    /// Hosts with a path in both parts, in range notation.
    hosts: String,
}

/// Splits a fabric by leaving out groups of ISLs. Returns nothing if a host needs them, or if no
/// host has a path in both parts.
fn split(design: &Design<'_>, groups: &[usize]) -> Option<Split> {
    let (network, classes, lab) = (design.network, design.classes, design.lab);
    let remains = Remains::of(network, &[], groups);
    let [a, b] = network.groups[*groups.first()?].switches;
    // Hosts with paths in both parts.
    let mut dual: BTreeSet<u16> = BTreeSet::new();
    for &pair in &classes.pairs {
        let (hosts, storage) = (&classes.hosts[pair.0], &classes.storage[pair.1]);
        // With masks, every group of LUNs must keep its paths.
        let mut stays: Option<BTreeSet<u16>> = None;
        for port_pairs in classes.port_pairs_by_luns(&network.permitted, pair) {
            let switches: BTreeSet<(u16, u16)> =
                port_pairs.into_iter().map(|(i, j)| (hosts.ports[i].switch, storage.ports[j].switch)).collect();
            let left: BTreeSet<u16> =
                switches.iter().filter(|(a, b)| remains.is_joined(*a, *b)).map(|pair| pair.0).collect();
            if left.is_empty() && !switches.is_empty() {
                return None;
            }
            stays = Some(stays.map_or_else(|| left.clone(), |stays| &stays & &left));
        }
        let stays = stays.unwrap_or_default();
        if [a, b].iter().all(|side| stays.iter().any(|switch| remains.is_joined(*switch, *side))) {
            dual.extend(&hosts.members);
        }
    }
    let side = |of: u16| {
        let members = (0..lab.switches.len() as u16).filter(|switch| remains.is_joined(of, *switch));
        compress(members.map(|switch| lab.switches[usize::from(switch)].name.as_str()))
    };
    let hosts = compress(dual.iter().map(|host| lab.hosts[usize::from(*host)].name.as_str()));
    (!dual.is_empty()).then(|| Split { sides: [side(a), side(b)], hosts })
}

/// Hosts with several HBAs that all end at one switch, or at one chassis.
pub(super) fn same_switch(design: &mut Design<'_>) {
    let (lab, permitted) = (design.lab, &design.network.permitted);
    let mut found = Vec::new();
    for (index, host) in lab.hosts.iter().enumerate().filter(|(_, host)| host.virtual_machine.is_none()) {
        let ports = &permitted.hosts[permitted.ports_of_host(index as u16)];
        let switches: BTreeSet<u16> = ports.iter().map(|port| port.switch).collect();
        let chassis = |switch: &u16| {
            let fabric = lab.switches[usize::from(*switch)].virtual_fabric.as_ref();
            fabric.map(|fabric| fabric.chassis.as_str())
        };
        let boxes: BTreeSet<Option<&str>> = switches.iter().map(chassis).collect();
        let (what, name) = match (switches.first(), boxes.first().copied().flatten()) {
            (Some(switch), _) if switches.len() == 1 => ("switch", lab.switches[usize::from(*switch)].name.as_str()),
            (_, Some(chassis)) if boxes.len() == 1 => ("chassis", chassis),
            _ => continue,
        };
        if ports.len() < 2 {
            continue;
        }
        // The link of the second HBA is the one to move.
        let link = ports[1].link;
        let to_node = lab.links[link].ends.iter().any(|end| end.node == Node::Host(index as u16));
        let place = if to_node { Place::of(Section::Link, link) } else { Place::of(Section::Host, index) };
        let count = if ports.len() == 2 { "both".to_owned() } else { format!("all {}", ports.len()) };
        let reason = format!("{count} HBAs end at {what} `{name}`, whose loss cuts off: {SUBJECTS}");
        found.push((place, host.name.clone(), reason));
    }
    for (place, name, reason) in found {
        let remedy = "link one HBA to a switch of another fabric";
        design.add(SAME_SWITCH, place, name, reason, remedy);
    }
}
