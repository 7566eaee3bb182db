//! Validation of FCoE in a simulation: the Ethernet below virtual links.

use super::Problems;
use super::ethernet::{link_place, list, name, switch_place};
use super::windows::Ways;
use crate::config::{EthernetNode, FCOE_MTU, FaultKind, Link, VirtualLink};
use crate::san::{
    EthernetInterface, FcoePath, ForwarderMismatch, Lab, Place, ProblemKind, Section, ethernet_node, fcoe_paths,
    forwarder_mismatch,
};
use std::collections::BTreeSet;

pub(super) fn validate(lab: &Lab, problems: &mut Problems) {
    let interfaces = lab.ethernet_interfaces();
    let mut ways = Ways::new(lab);
    let mut short = BTreeSet::new();
    for path in fcoe_paths(lab) {
        let link = &lab.links[usize::from(path.link)];
        let place = Place::of(Section::Link, usize::from(path.link));
        if !path.is_joined {
            not_joined(lab, link, &path, &interfaces, place, problems);
        }
        if path.config.fcip.is_some() {
            continue;
        }
        if link.bundle.is_some() {
            problems.add(
                ProblemKind::BadBundle,
                place.key("bundle"),
                format!("`{}` is a virtual link of FCoE, which cannot be part of a trunk", link.name),
                "remove `bundle`; Ethernet links between the same two switches form a bundle by themselves",
            );
        }
        mtus(lab, link, &way(&mut ways, &path, &interfaces), &mut short, problems);
    }
    for (number, fault) in lab.faults.iter().enumerate() {
        let (FaultKind::FrameLoss { link, .. }
        | FaultKind::CrcErrors { link, .. }
        | FaultKind::SlowReceiver { link, .. }
        | FaultKind::LostRRdy { link, .. }
        | FaultKind::WithheldCredits { link, .. }) = fault.kind
        else {
            continue;
        };
        if let Some(link) = lab.links.get(usize::from(link)).filter(|link| link.fcoe.is_some()) {
            problems.add(
                ProblemKind::BadLink,
                Place::of(Section::Fault, number).key("kind"),
                format!(
                    "`{}` is a virtual link of {}, which has no credits and no line of its own",
                    link.name,
                    if link.fcoe.is_some_and(|link| link.fcip.is_some()) { "FCIP" } else { "FCoE" }
                ),
                "name a link with a rate of Ethernet, and `frame-loss`, `crc-errors` or `pause-storm`",
            );
        }
    }
}

fn not_joined(
    lab: &Lab,
    link: &Link,
    path: &FcoePath,
    interfaces: &[EthernetInterface],
    place: Place,
    problems: &mut Problems,
) {
    let [from, to] = path.interfaces.map(|number| interfaces[usize::from(number)].end.name(lab));
    let (what, remedy) = match path.config.vlan {
        Some(vlan) => (
            format!("frames of VLAN {vlan} do not pass"),
            format!("add {vlan} to `vlans` of the Ethernet links between them, or add such links"),
        ),
        None => ("no Ethernet links lead".to_owned(), "add links with a rate of Ethernet between them".to_owned()),
    };
    let (key, effect) = match path.config.fcip {
        Some(_) => ("fcip", "does not reach the other end of the FCIP link"),
        None => ("ethernet", "reaches no FCoE forwarder"),
    };
    let reason = format!("{what} from `{from}` to `{to}`, so `{}` {effect}", link.name);
    problems.add(ProblemKind::BadLink, place.key(key), reason, remedy);
}

/// Ethernet links below a virtual link: a shortest way in its VLAN.
fn way(ways: &mut Ways<'_>, path: &FcoePath, interfaces: &[EthernetInterface]) -> Vec<usize> {
    let ends = path.interfaces.map(|number| interfaces[usize::from(number)].link);
    ways.between(path.config.vlan, ends).unwrap_or_default()
}

/// Ethernet switches at the ends of links, in ascending order.
fn switches_of(lab: &Lab, way: &[usize]) -> BTreeSet<u16> {
    way.iter().flat_map(|link| lab.ethernet_links[*link].switches()).map(|(_, switch)| switch).collect()
}

/// Links and switches that cannot carry every frame of Fibre Channel. `known` are those that were
/// reported before.
fn mtus(lab: &Lab, link: &Link, way: &[usize], known: &mut BTreeSet<(Section, usize)>, problems: &mut Problems) {
    let links = way.iter().filter(|number| lab.ethernet_links[**number].switches().count() < 2);
    let links =
        links.map(|&number| (link_place(number), &lab.ethernet_links[number].name, lab.ethernet_links[number].mtu));
    let switches = switches_of(lab, way).into_iter().map(|number| {
        let switch = &lab.ethernet_switches[usize::from(number)];
        (switch_place(number), &switch.name, switch.mtu)
    });
    for (place, name, mtu) in links.chain(switches) {
        if mtu < FCOE_MTU && known.insert((place.section, place.index)) {
            problems.add(
                ProblemKind::BadSize,
                place.key("mtu"),
                format!("`{name}` carries a payload of {mtu} bytes, but FCoE of `{}` needs {FCOE_MTU}", link.name),
                "set `mtu = 2500`, or more",
            );
        }
    }
}

/// Advice about settings that lose frames.
pub(super) fn advise(lab: &Lab, problems: &mut Problems) {
    half_ethernet(lab, problems);
    let interfaces = lab.ethernet_interfaces();
    let mut ways = Ways::new(lab);
    let mut known = BTreeSet::new();
    for path in fcoe_paths(lab) {
        let link = &lab.links[usize::from(path.link)];
        if path.config.fcip.is_some() {
            super::fcip::advise(lab, &mut ways, &path, &interfaces, problems);
            continue;
        }
        if let Some(mismatch) = forwarder_mismatch(lab, link) {
            let remedy = match mismatch {
                ForwarderMismatch::FcMap(_) => "give both switches the same `fcoe.fc_map`",
                ForwarderMismatch::VirtualFabric(_) => "join switches of the same virtual fabric",
            };
            problems.add(
                ProblemKind::IsolatedLink,
                Place::of(Section::Link, usize::from(path.link)).key("ethernet"),
                format!(
                    "`{}` never comes up, because forwarders ignore those of another fabric: the {mismatch}",
                    link.name
                ),
                remedy,
            );
        }
        let VirtualLink { priority, pfc, .. } = path.config;
        for number in switches_of(lab, &way(&mut ways, &path, &interfaces)) {
            let switch = &lab.ethernet_switches[usize::from(number)];
            let is_lossless = switch.lossless_priorities() & 1 << priority != 0;
            if !is_lossless && known.insert((number, priority, "pfc")) {
                problems.add(
                    ProblemKind::LossyFcoe,
                    switch_place(number).key("pfc"),
                    format!(
                        "FCoE of `{}` uses priority {priority}, but PFC is on for {} at `{}`, which drops its frames when queues are full",
                        link.name,
                        list(switch.lossless),
                        switch.name
                    ),
                    format!("add {priority} to `pfc` of the switch"),
                );
            }
            let shares = switch.shares;
            if shares.iter().any(|share| *share > 0)
                && shares[usize::from(priority)] == 0
                && known.insert((number, priority, "ets"))
            {
                problems.add(
                    ProblemKind::LossyFcoe,
                    switch_place(number).key("ets"),
                    format!(
                        "FCoE of `{}` uses priority {priority}, which has no share at `{}` and is therefore sent before those with one",
                        link.name, switch.name
                    ),
                    format!("give priority {priority} a share, such as `ets = {{ {priority} = 50, 0 = 50 }}`"),
                );
            }
        }
        let place = Place::of(Section::Link, usize::from(path.link));
        if !pfc {
            problems.add(
                ProblemKind::LossyFcoe,
                place.key("ethernet.pfc"),
                format!("the adapters at the ends of `{}` do not use PFC, so frames of FCoE are lost", link.name),
                "remove `pfc = false`",
            );
        }
        for below in path.interfaces.map(|number| &lab.ethernet_links[interfaces[usize::from(number)].link]) {
            let needed = VirtualLink::headroom_bytes(below) + u64::from(below.mtu);
            let buffer = path.config.buffer_at(below);
            if buffer < needed {
                problems.add(
                    ProblemKind::SmallHeadroom,
                    place.key("ethernet.buffer"),
                    format!(
                        "a buffer of {buffer} bytes is too small for `{}`: {} over {} m needs {needed}",
                        below.name,
                        below.rate,
                        below.propagation.0 / 5_000
                    ),
                    format!(
                        "set `buffer = \"{needed}B\"` at least, or leave it out; frames of FCoE are lost otherwise"
                    ),
                );
                break;
            }
        }
    }
}

/// Links of FCoE with Ethernet at one end only.
fn half_ethernet(lab: &Lab, problems: &mut Problems) {
    let linked: BTreeSet<EthernetNode> =
        lab.ethernet_links.iter().flat_map(|link| link.ends).map(|end| end.node).collect();
    for (number, link) in lab.links.iter().enumerate() {
        if link.fcoe.is_some() || !lab.live.ethernet.contains_key(&number) || lab.ethernet_is_implied() {
            continue;
        }
        let nodes = link.ends.map(|end| ethernet_node(end.node));
        let has_ethernet = nodes.map(|node| node.is_some_and(|node| linked.contains(&node)));
        if let ([true, false], [_, Some(node)]) | ([false, true], [Some(node), _]) = (has_ethernet, nodes) {
            problems.add(
                ProblemKind::Unconnected,
                Place::of(Section::Link, number).key("ethernet"),
                format!(
                    "`{}` has no Ethernet link, so a simulation treats `{}` as a link of Fibre Channel",
                    name(lab, node),
                    link.name
                ),
                format!("add a [[link]] of `{}` with a rate of Ethernet", name(lab, node)),
            );
        }
    }
}
