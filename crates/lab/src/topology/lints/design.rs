//! Lints about redundancy: fabrics that are joined, and HBAs that share a switch.

use super::{Design, JOINED_FABRICS, SAME_SWITCH, SUBJECTS};
use crate::topology::names::compress;
use crate::topology::network::Remains;
use petgraph::algo::bridges::bridges;
use sanloom_fc::config::Node;
use sanloom_fc::san::{Lab, Place, Section};
use std::collections::BTreeSet;

/// Finds ISLs whose removal splits a fabric in two, while every host keeps its storage and some
/// host keeps a path in both parts.
pub(super) fn joined_fabrics(design: &mut Design<'_>) {
    let (network, classes, lab) = (design.network, design.classes, design.lab);
    let mut groups: Vec<usize> = bridges(&network.graph).map(|edge| *edge.weight()).collect();
    groups.sort_unstable();
    for group in groups {
        let remains = Remains::of(network, &[], Some(group));
        let [a, b] = network.groups[group].switches;
        // Hosts with paths in both parts.
        let mut dual: BTreeSet<u16> = BTreeSet::new();
        let mut is_needed = false;
        for &pair in &classes.pairs {
            let (hosts, storage) = (&classes.hosts[pair.0], &classes.storage[pair.1]);
            // With masks, every group of LUNs must keep its paths.
            let mut stays: Option<BTreeSet<u16>> = None;
            for port_pairs in classes.port_pairs_by_luns(&network.permitted, pair) {
                let switches: BTreeSet<(u16, u16)> =
                    port_pairs.into_iter().map(|(i, j)| (hosts.ports[i].switch, storage.ports[j].switch)).collect();
                let left: BTreeSet<u16> =
                    switches.iter().filter(|(a, b)| remains.is_joined(*a, *b)).map(|pair| pair.0).collect();
                is_needed |= left.is_empty() && !switches.is_empty();
                stays = Some(stays.map_or_else(|| left.clone(), |stays| &stays & &left));
            }
            let stays = stays.unwrap_or_default();
            if [a, b].iter().all(|side| stays.iter().any(|switch| remains.is_joined(*switch, *side))) {
                dual.extend(&hosts.members);
            }
        }
        if is_needed || dual.is_empty() {
            continue;
        }
        let side = |of: u16| {
            let members = (0..lab.switches.len() as u16).filter(|switch| remains.is_joined(of, *switch));
            compress(members.map(|switch| lab.switches[usize::from(switch)].name.as_str()))
        };
        let hosts = compress(dual.iter().map(|host| lab.hosts[usize::from(*host)].name.as_str()));
        let link = network.groups[group].links[0];
        let reason = format!(
            "{SUBJECTS} joins two fabrics, {} and {}, that {hosts} would use separately: one fault or zone change of \
             the joined fabric reaches both paths",
            side(a),
            side(b)
        );
        let subject = compress(network.groups[group].links.iter().map(|link| lab.links[*link].name.as_str()));
        let remedy = "leave the link out: no host needs it, and the two fabrics then fail independently";
        design.add(JOINED_FABRICS, Place::of(Section::Link, link), subject, reason, remedy);
    }
}

/// Kind and name of a switch or loop, by the number of its junction.
fn junction_name(lab: &Lab, junction: u16) -> Option<(&'static str, &str)> {
    let switch = lab.switches.get(usize::from(junction)).map(|switch| ("switch", switch.name.as_str()));
    let number = usize::from(junction).checked_sub(lab.switches.len());
    switch.or_else(|| number.and_then(|number| lab.loops.get(number)).map(|of_lab| ("loop", of_lab.name.as_str())))
}

/// Hosts with several HBAs that all end at one switch, or at one chassis.
pub(super) fn same_switch(design: &mut Design<'_>) {
    let (lab, permitted) = (design.lab, &design.network.permitted);
    let mut found = Vec::new();
    for (index, host) in lab.hosts.iter().enumerate().filter(|(_, host)| host.virtual_machine.is_none()) {
        let ports = &permitted.hosts[permitted.ports_of_host(index as u16)];
        let switches: BTreeSet<u16> = ports.iter().map(|port| port.switch).collect();
        let chassis = |switch: &u16| {
            let fabric = lab.switches.get(usize::from(*switch))?.virtual_fabric.as_ref();
            fabric.map(|fabric| fabric.chassis.as_str())
        };
        let boxes: BTreeSet<Option<&str>> = switches.iter().map(chassis).collect();
        let (what, name) = match (switches.first(), boxes.first().copied().flatten()) {
            (Some(junction), _) if switches.len() == 1 => match junction_name(lab, *junction) {
                Some(of_junction) => of_junction,
                None => continue,
            },
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
