//! Validation of links and zones.

use super::{MAX_LINKS, Problems};
use crate::arbitrated_loop::LoopRate;
use crate::config::{ArbitratedLoop, Link, LinkEnd, Node, Picos, ZoneMember};
use crate::san::{Lab, Place, ProblemKind, Section};
use sanloom_wire::arbitrated_loop::AL_PA_COUNT;
use std::collections::{BTreeMap, BTreeSet};

/// Maximum propagation delay: half a second, about 100,000 km of fibre.
const MAX_PROPAGATION: Picos = Picos::from_ms(500);

/// Largest BB_SC_N, a field of four bits (FC-LS, FLOGI).
const MAX_BB_SC_N: u64 = 15;

pub(super) fn validate(lab: &Lab, problems: &mut Problems) {
    if lab.links.len() > MAX_LINKS {
        problems.add(
            ProblemKind::TooLarge,
            Place::of(Section::Link, MAX_LINKS),
            format!("{} links are more than sanloom supports", lab.links.len()),
            format!("stay at or below {MAX_LINKS} links"),
        );
    }
    let mut names: BTreeSet<&str> = BTreeSet::new();
    let mut used: BTreeMap<(Node, u16), &str> = BTreeMap::new();
    for (index, link) in lab.links.iter().enumerate() {
        let place = Place::of(Section::Link, index);
        if !names.insert(&link.name) {
            problems.add(
                ProblemKind::DuplicateName,
                place.key("name"),
                format!("two links have the name `{}`", link.name),
                "give every link a name of its own, or leave the name out",
            );
        }
        validate_link(lab, link, place, problems);
        validate_rate(lab, link, place.key("rate"), problems);
        for (end, key) in link.ends.iter().zip(["from", "to"]) {
            validate_end(lab, end, place.key(key), problems);
            if let Some(first) = used.insert((end.node, end.port), &link.name) {
                problems.add(
                    ProblemKind::PortUsedTwice,
                    place.key(key),
                    format!("port {} of `{}` already carries the link `{first}`", end.port, node_name(lab, end.node)),
                    "choose a free port, or leave the port number out",
                );
            }
        }
    }
    bundles(lab, problems);
    loops(lab, problems);
    zones(lab, problems);
}

/// Advice about zones that permit nothing or less than they seem to.
pub(super) fn advise(lab: &Lab, problems: &mut Problems) {
    let known = known_members(lab);
    let has_channels = lab.links.iter().any(|link| lab.has_channels(link));
    for (index, zone) in lab.zoning.zones.iter().enumerate() {
        let place = Place::of(Section::Zone, index);
        if !has_channels && lab.zone_priorities.contains_key(&zone.name) {
            problems.add(
                ProblemKind::UnusedPriority,
                place.key("priority"),
                format!("the priority of zone `{}` has no effect: no link has virtual channels", zone.name),
                "leave it out, or link switches with `queueing = \"voq\"` and `virtual_channels`",
            );
        }
        let ports = |member: &ZoneMember| known.get(member).copied().unwrap_or(0);
        for (members, key) in [(&zone.members, "members"), (&zone.principals, "principals")] {
            let (reason, remedy) = match members.iter().find(|member| ports(member) == 0) {
                None => continue,
                Some(ZoneMember::PortName(_)) => {
                    (format!("zone `{}` names a port that no node of the lab has", zone.name), "check the port name")
                }
                Some(unknown) => (
                    format!("zone `{}` names `{unknown}`, which matches no port of the lab", zone.name),
                    "check the node name, the domain and port, or the address",
                ),
            };
            problems.add(ProblemKind::IdleZone, place.key(key), reason, remedy);
        }
        if !zone.is_peer() && zone.members.len() == 1 && ports(&zone.members[0]) == 1 {
            problems.add(
                ProblemKind::IdleZone,
                place.key("members"),
                format!("zone `{}` has one member, so it permits nothing", zone.name),
                "add the port that it may communicate with",
            );
        }
    }
}

/// Number of ports of the lab that match each zone member. Port names count even without a link.
fn known_members(lab: &Lab) -> BTreeMap<ZoneMember, usize> {
    let mut known = BTreeMap::new();
    let mut count = |member| *known.entry(member).or_insert(0) += 1;
    for host in &lab.hosts {
        for hba in &host.hbas {
            count(ZoneMember::PortName(hba.wwpn));
            count(ZoneMember::NodeName(host.wwnn));
        }
    }
    for storage in &lab.storage {
        for port in &storage.ports {
            count(ZoneMember::PortName(port.wwpn));
            count(ZoneMember::NodeName(storage.wwnn));
        }
    }
    for attached in lab.attached_ports() {
        let [_, _, port, id] = attached.identity.keys();
        count(port);
        count(id);
    }
    known
}

/// Name of a node; "(no such node)" for an invalid index.
pub(super) fn node_name(lab: &Lab, node: Node) -> &str {
    match node {
        Node::Switch(i) => lab.switches.get(usize::from(i)).map(|s| s.name.as_str()),
        Node::Host(i) => lab.hosts.get(usize::from(i)).map(|h| h.name.as_str()),
        Node::Storage(i) => lab.storage.get(usize::from(i)).map(|s| s.name.as_str()),
        Node::Loop(i) => lab.loops.get(usize::from(i)).map(|l| l.name.as_str()),
    }
    .unwrap_or("(no such node)")
}

fn is_virtual(lab: &Lab, node: Node) -> bool {
    match node {
        Node::Host(i) => lab.hosts.get(usize::from(i)).is_some_and(|host| host.virtual_machine.is_some()),
        Node::Switch(_) | Node::Storage(_) | Node::Loop(_) => false,
    }
}

fn validate_link(lab: &Lab, link: &Link, place: Place, problems: &mut Problems) {
    let [a, b] = [link.ends[0].node, link.ends[1].node];
    let joins = |one: fn(Node) -> bool, other: fn(Node) -> bool| (one(a) && other(b)) || (one(b) && other(a));
    let is_loop: fn(Node) -> bool = |node| matches!(node, Node::Loop(_));
    let bad = if a == b {
        Some((format!("the link `{}` joins `{}` to itself", link.name, node_name(lab, a)), "link two different nodes"))
    } else if let Some(vm) = [a, b].into_iter().find(|&node| is_virtual(lab, node)) {
        Some((
            format!("`{}` is a virtual machine: the link `{}` cannot end at it", node_name(lab, vm), link.name),
            "link its hypervisor, or leave `on` out",
        ))
    } else if joins(is_loop, is_loop) {
        Some((
            format!(
                "the link `{}` joins the loop `{}` and `{}`",
                link.name,
                node_name(lab, if is_loop(a) { a } else { b }),
                node_name(lab, if is_loop(a) { b } else { a })
            ),
            "link hosts, storage and one switch to a loop",
        ))
    } else if link.is_direct() && !joins(|node| matches!(node, Node::Host(_)), |node| matches!(node, Node::Storage(_)))
    {
        Some((
            format!("the link `{}` joins `{}` and `{}` directly", link.name, node_name(lab, a), node_name(lab, b)),
            "link a host to a storage system, or each of them to a switch",
        ))
    } else {
        None
    };
    if let Some((reason, remedy)) = bad {
        problems.add(ProblemKind::BadLink, place.key("to"), reason, remedy);
    }
    if link.propagation > MAX_PROPAGATION {
        problems.add(
            ProblemKind::BadNumber,
            place.key("length"),
            format!("the propagation delay of the link `{}` is {}", link.name, link.propagation),
            "choose a length up to 100000km",
        );
    }
    for end in &link.ends {
        problems.number(place.key("bb_sc"), end.bb_sc_n.into(), 0, MAX_BB_SC_N);
        if end.bb_credit == 0 {
            problems.add(
                ProblemKind::BadNumber,
                place.key("credits"),
                format!(
                    "`{}` has no receive buffer on the link `{}`, so no frame could be sent to it",
                    node_name(lab, end.node),
                    link.name
                ),
                "choose at least 1",
            );
        }
    }
}

/// Requires a rate that the switches at both ends support.
fn validate_rate(lab: &Lab, link: &Link, place: Place, problems: &mut Problems) {
    for end in &link.ends {
        let Node::Switch(i) = end.node else { continue };
        let Some(switch) = lab.switches.get(usize::from(i)) else { continue };
        let [lowest, highest] = switch.rates;
        let supported = match (lowest, highest) {
            (Some(lowest), _) if link.rate < lowest => format!("at least {lowest}"),
            (_, Some(highest)) if link.rate > highest => format!("at most {highest}"),
            _ => continue,
        };
        problems.add(
            ProblemKind::RateNotSupported,
            place,
            format!("the link `{}` has {}, but `{}` supports {supported}", link.name, link.rate, switch.name),
            format!("choose {supported}, or another `preset`, `min_rate` or `max_rate` of `{}`", switch.name),
        );
    }
}

fn validate_end(lab: &Lab, end: &LinkEnd, place: Place, problems: &mut Problems) {
    if let Node::Switch(i) = end.node
        && lab.vf_id(i).is_some()
    {
        // The ports of a virtual fabric are validated against its chassis.
        return;
    }
    let ports = match end.node {
        Node::Switch(i) => lab.switches.get(usize::from(i)).map(|s| usize::from(s.ports)),
        Node::Host(i) => lab.hosts.get(usize::from(i)).map(|h| h.hbas.len()),
        Node::Storage(i) => lab.storage.get(usize::from(i)).map(|s| s.ports.len()),
        // A loop has as many ports as it has links.
        Node::Loop(i) => lab.loops.get(usize::from(i)).map(|_| usize::from(u16::MAX)),
    };
    let name = node_name(lab, end.node);
    match ports {
        Some(ports) if usize::from(end.port) < ports => {}
        Some(ports) => problems.add(
            ProblemKind::NoSuchPort,
            place,
            format!("`{name}` has no port {}: it has {ports}, numbered from 0", end.port),
            match end.node {
                Node::Switch(_) => format!("raise `ports` of switch `{name}`"),
                Node::Host(_) => format!("raise `hbas` of host `{name}`"),
                Node::Storage(_) => format!("raise `ports` of storage `{name}`"),
                Node::Loop(_) => format!("choose a lower number for the port of loop `{name}`"),
            },
        ),
        None => problems.add(
            ProblemKind::NoSuchPort,
            place,
            "the link ends at a node that does not exist",
            "name a switch, a host, a storage system or a loop",
        ),
    }
}

/// A loop has one rate, and as many ports as it has addresses.
fn loops(lab: &Lab, problems: &mut Problems) {
    let mut links: BTreeMap<u16, Vec<(usize, &Link)>> = BTreeMap::new();
    for (index, link) in lab.links.iter().enumerate() {
        if let Some(number) = link.loop_end() {
            links.entry(number).or_default().push((index, link));
        }
    }
    for (number, of_lab) in lab.loops.iter().enumerate() {
        let place = Place::of(Section::Loop, number);
        problems.number(place.key("delay_words"), of_lab.delay_words.into(), 1, 1000);
        problems.number(place.key("login_credit"), of_lab.login_credit.into(), 0, 255);
        problems.time(place.key("firmware"), of_lab.firmware, Picos::ZERO, Picos::SECOND);
        let name = &of_lab.name;
        let links = links.get(&(number as u16)).map_or(&[][..], Vec::as_slice);
        let participants = links.len();
        if !(2..AL_PA_COUNT).contains(&participants) {
            problems.add(
                ProblemKind::BadLoop,
                place,
                format!("the loop `{name}` has {participants} port{}", if participants == 1 { "" } else { "s" }),
                format!("link 2 to {} ports of hosts and storage to it", AL_PA_COUNT - 1),
            );
        }
        let mut to_switches = links.iter().filter(|(_, link)| link.on_loop().is_none());
        if let Some((index, link)) = to_switches.nth(1) {
            problems.add(
                ProblemKind::BadLoop,
                Place::of(Section::Link, *index).key("to"),
                format!("the link `{}` is the second one of the loop `{name}` to a switch", link.name),
                "a loop has one FL_Port; remove the link",
            );
        }
        private_ports(lab, of_lab, place.key("private"), links, problems);
        for (index, link) in links {
            let place = Place::of(Section::Link, *index).key("rate");
            let first = links[0].1;
            let (reason, remedy) = if LoopRate::of(link.rate).is_none() {
                (format!("the loop `{name}` cannot run at {}", link.rate), "choose 1GFC, 2GFC, 4GFC or 8GFC")
            } else if link.rate != first.rate {
                let reason = format!(
                    "the links `{}` and `{}` of the loop `{name}` have the rates {} and {}",
                    first.name, link.name, first.rate, link.rate
                );
                (reason, "give all links of a loop the same rate")
            } else {
                continue;
            };
            problems.add(ProblemKind::BadLoop, place, reason, remedy);
        }
    }
}

/// Private ports differ from others only on a loop with an FL_Port.
fn private_ports(lab: &Lab, of_lab: &ArbitratedLoop, place: Place, links: &[(usize, &Link)], problems: &mut Problems) {
    let name = &of_lab.name;
    if !of_lab.private.is_empty() && links.iter().all(|(_, link)| link.on_loop().is_some()) {
        problems.add(
            ProblemKind::BadLoop,
            place,
            format!("the loop `{name}` has no link to a switch, so all its ports are private"),
            "remove `private`, or link the loop to a switch",
        );
        return;
    }
    for node in &of_lab.private {
        if !links.iter().any(|(_, link)| link.ends.iter().any(|end| end.node == *node)) {
            problems.add(
                ProblemKind::BadLoop,
                place,
                format!("`{}` has no port on the loop `{name}`", node_name(lab, *node)),
                "link it to the loop, or remove it from `private`",
            );
        }
    }
}

/// A trunk delivers in order only if its links are alike and join the same two switches.
fn bundles(lab: &Lab, problems: &mut Problems) {
    let mut first: BTreeMap<u16, &Link> = BTreeMap::new();
    for (index, link) in lab.links.iter().enumerate() {
        let Some(bundle) = link.bundle else { continue };
        let place = Place::of(Section::Link, index).key("bundle");
        if !link.ends.iter().all(|e| matches!(e.node, Node::Switch(_))) {
            problems.add(
                ProblemKind::BadBundle,
                place,
                format!("the link `{}` in a bundle does not join two switches", link.name),
                "bundle ISLs only",
            );
            continue;
        }
        let head = first.entry(bundle).or_insert(link);
        let nodes = |l: &Link| {
            let mut nodes = l.ends.map(|e| e.node);
            nodes.sort_unstable();
            nodes
        };
        if nodes(head) != nodes(link) || head.rate != link.rate || head.propagation != link.propagation {
            problems.add(
                ProblemKind::BadBundle,
                place,
                format!("the links `{}` and `{}` of one bundle differ", head.name, link.name),
                "give all links of a bundle the same switches, rate and length",
            );
        }
    }
}

fn zones(lab: &Lab, problems: &mut Problems) {
    let mut names: BTreeSet<&str> = BTreeSet::new();
    for (index, zone) in lab.zoning.zones.iter().enumerate() {
        let place = Place::of(Section::Zone, index);
        if !names.insert(&zone.name) {
            problems.add(
                ProblemKind::DuplicateName,
                place.key("name"),
                format!("two zones have the name `{}`", zone.name),
                "give every zone a name of its own",
            );
        }
        if zone.members.is_empty() {
            problems.add(
                ProblemKind::EmptyZone,
                place.key("members"),
                format!("zone `{}` has no members", zone.name),
                "name the ports that may communicate",
            );
        }
    }
}
