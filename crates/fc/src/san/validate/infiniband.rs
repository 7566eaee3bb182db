//! Validation of InfiniBand: switches, links, the subnet, and SRP.

use super::Problems;
use super::ethernet::comes_up;
use super::lanes;
use crate::config::{
    BLOCK_BYTES, Fault, FaultKind, InfinibandEnd, InfinibandFault, InfinibandNode, MAX_BLOCKS, MAX_DATA_LANES,
    MAX_INFINIBAND_PORTS, MAX_LMC, MediumKind, PACKET_OVERHEAD_BYTES, PacketHold, Picos, SubnetRouting,
};
use crate::san::infiniband::infiniband_groups;
use crate::san::{Lab, Place, ProblemKind, Section, SubnetGraph, SubnetRoutes};
use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};

/// Maximum number of interfaces, because the subnet has 49,151 unicast LIDs (IBA volume 1, 4.1.3),
/// and switches have one each.
const MAX_INTERFACES: usize = 45_000;
/// Limit on the SRP channels of a storage system times its interfaces.
const MAX_CHANNEL_PORTS: u64 = 16_383;
/// Limit on the warnings about credit.
const MAX_FEW_CREDITS: usize = 8;

pub(super) fn validate(lab: &Lab, problems: &mut Problems) {
    let mut targets_here = lab.infiniband.targets.keys();
    let only_live = targets_here.all(|storage| lab.live.srp.contains_key(storage) && !presents_volumes(lab, *storage));
    if lab.infiniband.switches.is_empty() && lab.infiniband.links.is_empty() && only_live {
        return;
    }
    names(lab, problems);
    subnet(lab, problems);
    lanes::validate(lab, problems);
    buffers(lab, problems);
    links(lab, problems);
    groups(lab, problems);
    targets(lab, problems);
}

/// Advice about settings that lose throughput.
pub(super) fn advise(lab: &Lab, problems: &mut Problems) {
    credits(lab, problems);
    unconnected(lab, problems);
    routing(lab, problems);
    lanes::advise(lab, problems);
}

/// Checks a fault of InfiniBand.
pub(super) fn fault(lab: &Lab, fault: &Fault, kind: InfinibandFault, place: Place, problems: &mut Problems) {
    match kind {
        InfinibandFault::LinkDown { .. } | InfinibandFault::PortDown { .. } | InfinibandFault::SwitchReset { .. } => {}
        InfinibandFault::LinkUp { link } => {
            let goes_down = |kind: FaultKind| match kind {
                FaultKind::Infiniband(
                    InfinibandFault::LinkDown { link: of } | InfinibandFault::PortDown { link: of, .. },
                ) => of == link,
                _ => false,
            };
            let name = lab.infiniband.links.get(usize::from(link)).map(|link| link.name.as_str());
            comes_up(lab, fault, name, goes_down, place, problems);
        }
        InfinibandFault::PacketLoss { probability, .. }
        | InfinibandFault::CrcErrors { probability, .. }
        | InfinibandFault::LostCreditUpdates { probability, .. } => {
            problems.share(place.key("probability"), probability);
        }
        InfinibandFault::WithheldCredits { link, end } => {
            let ends = lab.infiniband.links.get(usize::from(link)).map(|link| link.ends);
            let end = ends.and_then(|ends| ends.get(usize::from(end)).copied());
            if let Some(node @ InfinibandNode::Switch(_)) = end.map(|end| end.node) {
                problems.add(
                    ProblemKind::BadLink,
                    place.key("kind"),
                    format!(
                        "the InfiniBand switch `{}` frees the buffer of each packet that leaves",
                        lab.infiniband_node_name(node)
                    ),
                    "name an interface of a host or a storage system",
                );
            }
        }
    }
}

fn switch_place(number: usize) -> Place {
    Place::of(Section::InfinibandSwitch, number)
}

fn link_place(number: usize) -> Place {
    Place::of(Section::InfinibandLink, number)
}

fn names(lab: &Lab, problems: &mut Problems) {
    let hosts = lab.hosts.iter().map(|host| host.name.as_str());
    let storage = lab.storage.iter().map(|storage| storage.name.as_str());
    let loops = lab.loops.iter().map(|of_lab| of_lab.name.as_str());
    let switches = lab.switches.iter().map(|switch| switch.name.as_str());
    let ethernet = lab.ethernet_switches.iter().map(|switch| switch.name.as_str());
    let mut seen: BTreeSet<&str> = switches.chain(hosts).chain(storage).chain(loops).chain(ethernet).collect();
    for (number, switch) in lab.infiniband.switches.iter().enumerate() {
        if !seen.insert(&switch.name) {
            problems.add(
                ProblemKind::DuplicateName,
                switch_place(number),
                format!("`{}` is already the name of another node", switch.name),
                "give every switch, host and storage system a name of its own",
            );
        }
    }
    let links = lab.links.iter().map(|link| link.name.as_str());
    let mut seen: BTreeSet<&str> = links.chain(lab.ethernet_links.iter().map(|link| link.name.as_str())).collect();
    for (number, link) in lab.infiniband.links.iter().enumerate() {
        if !seen.insert(&link.name) {
            problems.add(
                ProblemKind::DuplicateName,
                link_place(number).key("name"),
                format!("`{}` is already the name of another link", link.name),
                "give every link a name of its own",
            );
        }
    }
}

fn subnet(lab: &Lab, problems: &mut Problems) {
    let subnet = &lab.infiniband.subnet;
    let place = Place::of(Section::Subnet, 0);
    if ![256, 512, 1_024, 2_048, 4_096].contains(&subnet.mtu) {
        problems.add(
            ProblemKind::BadNumber,
            place.key("mtu"),
            format!("InfiniBand has no MTU of {} bytes", subnet.mtu),
            "choose 256, 512, 1024, 2048 or 4096",
        );
    }
    if subnet.lmc > MAX_LMC {
        problems.add(
            ProblemKind::BadNumber,
            place.key("lmc"),
            format!("LMC {} is out of range", subnet.lmc),
            format!("choose 0 to {MAX_LMC}"),
        );
    }
    if !(1..=MAX_DATA_LANES).contains(&subnet.lanes) {
        problems.add(
            ProblemKind::BadNumber,
            place.key("lanes"),
            format!("a link has 1 to {MAX_DATA_LANES} data lanes, not {}", subnet.lanes),
            "choose a number of lanes in this range",
        );
    }
}

/// Buffers that hold no full packet: it would never leave.
fn buffers(lab: &Lab, problems: &mut Problems) {
    let packet = (u64::from(lab.infiniband.subnet.mtu) + PACKET_OVERHEAD_BYTES + 16).div_ceil(BLOCK_BYTES);
    let mut reported = BTreeSet::new();
    for (number, link) in lab.infiniband.links.iter().enumerate() {
        for side in [0, 1] {
            let blocks = lab.infiniband_blocks(link, side);
            let node = link.ends[side].node;
            if u64::from(blocks) >= packet && blocks <= MAX_BLOCKS || !reported.insert((node, link.blocks)) {
                continue;
            }
            let place = match (link.blocks, node) {
                (Some(_), _) => link_place(number).key("blocks"),
                (None, InfinibandNode::Switch(switch)) => switch_place(usize::from(switch)).key("blocks"),
                (None, InfinibandNode::Host(host)) => Place::of(Section::Host, usize::from(host)).key("srp.blocks"),
                (None, InfinibandNode::Storage(storage)) => {
                    Place::of(Section::Storage, usize::from(storage)).key("srp.blocks")
                }
            };
            problems.add(
                ProblemKind::BadNumber,
                place,
                format!(
                    "a lane of `{}` holds {blocks} blocks, but a packet with {} bytes of payload needs {packet}, and \
                     no receiver can announce more than {MAX_BLOCKS}",
                    lab.infiniband_node_name(node),
                    lab.infiniband.subnet.mtu,
                ),
                format!("choose {packet} to {MAX_BLOCKS} blocks, or a smaller `mtu` in [subnet]"),
            );
        }
    }
}

fn links(lab: &Lab, problems: &mut Problems) {
    let mut ends: BTreeMap<InfinibandEnd, &str> = BTreeMap::new();
    for (number, link) in lab.infiniband.links.iter().enumerate() {
        for (end, key) in link.ends.into_iter().zip(["from", "to"]) {
            let exists = match end.node {
                InfinibandNode::Switch(switch) => usize::from(switch) < lab.infiniband.switches.len(),
                InfinibandNode::Host(host) => usize::from(host) < lab.hosts.len(),
                InfinibandNode::Storage(storage) => usize::from(storage) < lab.storage.len(),
            };
            let name = lab.infiniband_node_name(end.node);
            if !exists || matches!(end.node, InfinibandNode::Switch(_)) && end.port >= MAX_INFINIBAND_PORTS {
                problems.add(
                    ProblemKind::NoSuchPort,
                    link_place(number).key(key),
                    format!("`{name}` has no port {}", end.port),
                    format!("an InfiniBand switch has ports 0 to {}", MAX_INFINIBAND_PORTS - 1),
                );
            }
            if let Some(first) = ends.insert(end, &link.name) {
                problems.add(
                    ProblemKind::BadLink,
                    link_place(number).key(key),
                    format!("`{first}` and `{}` end at port {} of `{name}`", link.name, end.port),
                    "give each link a port of its own",
                );
            }
        }
        let reason = match link.ends.map(|end| end.node) {
            [InfinibandNode::Host(_), InfinibandNode::Host(_)] => Some("two hosts"),
            [InfinibandNode::Storage(_), InfinibandNode::Storage(_)] => Some("two storage systems"),
            [a, b] if a == b => Some("a switch to itself"),
            _ => None,
        };
        if let Some(reason) = reason {
            problems.add(
                ProblemKind::BadLink,
                link_place(number).key("to"),
                format!("`{}` joins {reason}", link.name),
                "link a host or storage system to an InfiniBand switch, or a host to a storage system",
            );
        }
    }
    let lmc = lab.infiniband.subnet.lmc;
    let most = MAX_INTERFACES >> lmc.min(MAX_LMC);
    if lab.infiniband_interfaces().len() > most {
        let of_lmc = if lmc == 0 { String::new() } else { format!(" with {} LIDs each", 1 << lmc.min(MAX_LMC)) };
        problems.add(
            ProblemKind::TooLarge,
            link_place(0),
            format!("the lab has more than {most} InfiniBand interfaces{of_lmc}"),
            "use fewer hosts and storage systems, or a smaller `lmc` in [subnet]",
        );
    }
}

/// Links that the subnet manager does not reach.
fn groups(lab: &Lab, problems: &mut Problems) {
    let groups = infiniband_groups(lab);
    if let Some(number) = groups.iter().position(|group| *group != 0) {
        problems.add(
            ProblemKind::SplitSubnet,
            link_place(number),
            format!(
                "no InfiniBand link joins `{}` to `{}`, so the lab has two subnets",
                lab.infiniband.links[number].name, lab.infiniband.links[0].name
            ),
            "add an [[isl]] between InfiniBand switches of both; a simulation has one subnet",
        );
    }
    if !lab.infiniband.links.is_empty() && lab.infiniband_interfaces().is_empty() {
        problems.add(
            ProblemKind::SplitSubnet,
            link_place(0),
            "the subnet has no host or storage system, so nothing runs its subnet manager",
            "link a host to an InfiniBand switch",
        );
    }
}

fn presents_volumes(lab: &Lab, storage: u16) -> bool {
    lab.live.medium(storage).kind == MediumKind::Volumes
}

fn targets(lab: &Lab, problems: &mut Problems) {
    let paths = lab.srp_paths();
    for &storage in lab.infiniband.targets.keys() {
        let Some(config) = lab.storage.get(usize::from(storage)) else { continue };
        let place = Place::of(Section::Storage, usize::from(storage)).key("srp");
        if presents_volumes(lab, storage) {
            problems.add(
                ProblemKind::BadLink,
                place,
                format!("`{}` presents virtual disks, which SRP cannot serve", config.name),
                "leave `srp` out, and let hosts reach it over iSCSI",
            );
        } else if paths.target_ports(storage).is_empty() && !lab.live.srp.contains_key(&storage) {
            problems.add(
                ProblemKind::BadLink,
                place,
                format!("`{}` is an SRP target, but has no InfiniBand link", config.name),
                "add a [[link]] with a rate of InfiniBand such as \"4xEDR\", or `portals` for a live run, or leave `srp` out",
            );
        }
    }
    for (interface, end) in paths.interfaces.iter().map(|interface| (interface.link, interface.end)) {
        if let InfinibandNode::Storage(storage) = end.node
            && !lab.infiniband.targets.contains_key(&storage)
            && !lab.infiniband.ipoib.nodes.contains_key(&end.node)
        {
            let name = lab.infiniband_node_name(end.node);
            problems.add(
                ProblemKind::BadLink,
                link_place(interface).key("to"),
                format!("`{name}` has an InfiniBand link, but is no SRP target"),
                "add `srp = {}` to the storage system, or `ipoib = {}` with `iscsi`, or leave the link out",
            );
        }
    }
    let mut channels: BTreeMap<u16, u64> = BTreeMap::new();
    lab.for_each_srp_pair(|paths, host, storage| {
        let of_this = channels.entry(storage).or_insert(0);
        *of_this += paths.pairs(host, storage).len() as u64;
        let ports = paths.target_ports(storage).len() as u64;
        if *of_this * ports.max(1) <= MAX_CHANNEL_PORTS {
            return true;
        }
        let name = lab.infiniband_node_name(InfinibandNode::Storage(storage));
        problems.add(
            ProblemKind::TooLarge,
            Place::of(Section::Storage, usize::from(storage)).key("srp"),
            format!("`{name}` has more than {} SRP channels", MAX_CHANNEL_PORTS / ports.max(1)),
            "use fewer hosts or interfaces for it",
        );
        false
    });
}

/// Links whose buffers hold less than the line carries in a round trip.
fn credits(lab: &Lab, problems: &mut Problems) {
    let mtu = lab.infiniband.subnet.mtu;
    let mut reported = 0;
    for (number, link) in lab.infiniband.links.iter().enumerate() {
        let blocks = [0, 1].map(|side| lab.infiniband_blocks(link, side));
        let share = |side: usize, blocks: u16| lab.infiniband.busy_percent(link, side, blocks);
        let needed = [0, 1].map(|side| lab.infiniband.blocks_needed(link, side));
        // The end whose blocks keep the line busy for a smaller share of the time.
        let order = |side: &usize| (share(*side, blocks[*side]), Reverse(needed[*side]));
        let Some(side) = [0, 1].into_iter().min_by_key(order) else { continue };
        let reached = share(side, blocks[side]);
        if reached >= 100 {
            continue;
        }
        reported += 1;
        if reported > MAX_FEW_CREDITS {
            return;
        }
        let (needed, held) = (needed[side], lab.infiniband.hold(link, side));
        let metres = link.propagation.0 / 5_000;
        let at_switch = match held {
            PacketHold { latency: Picos::ZERO, whole: false } => String::new(),
            PacketHold { latency, whole: false } => format!(", which the switch holds for {latency},"),
            PacketHold { latency, whole: true } => {
                format!(", which the switch stores whole and holds for {latency},")
            }
        };
        let otherwise = "make the link shorter or slower, or use more lanes and service levels";
        let remedy = if needed <= u64::from(MAX_BLOCKS) {
            format!("give the link `blocks = {needed}`, unless this is intended")
        } else if blocks[side] < MAX_BLOCKS {
            let most = [0, 1].map(|side| share(side, MAX_BLOCKS));
            format!(
                "give the link `blocks = {MAX_BLOCKS}`, the most that a lane has, which reaches about {} %; for more, \
                 {otherwise}",
                most[0].min(most[1])
            )
        } else {
            format!("a lane has at most {MAX_BLOCKS} blocks: {otherwise}")
        };
        problems.add(
            ProblemKind::FewCredits,
            link_place(number).key("length"),
            format!(
                "{} blocks of 64 bytes at `{}` cannot keep the link `{}` busy: {} over {metres} m with packets \
                 of {mtu} bytes{at_switch} needs {needed}, so one lane reaches about {reached} % of the line",
                blocks[side],
                lab.infiniband_node_name(link.ends[side].node),
                link.name,
                link.rate,
            ),
            remedy,
        );
    }
}

fn unconnected(lab: &Lab, problems: &mut Problems) {
    let linked: BTreeSet<u16> = lab.infiniband.links.iter().flat_map(|link| link.switches()).map(|(_, s)| s).collect();
    for (number, switch) in (0_u16..).zip(&lab.infiniband.switches).filter(|(number, _)| !linked.contains(number)) {
        problems.add(
            ProblemKind::Unconnected,
            switch_place(usize::from(number)),
            format!("no link ends at `{}`", switch.name),
            "add a [[link]] with a rate of InfiniBand for it, or leave it out",
        );
    }
}

/// A routing engine that refuses the subnet, or that leaves pairs without a path.
fn routing(lab: &Lab, problems: &mut Problems) {
    let engine = lab.infiniband.subnet.routing;
    if lab.infiniband.links.is_empty() {
        return;
    }
    if engine == SubnetRouting::MinHop {
        if !lab.infiniband.subnet.roots.is_empty() {
            problems.add(
                ProblemKind::UnusedRoots,
                Place::of(Section::Subnet, 0).key("roots"),
                "`minhop` has no root switches, so `roots` has no effect".to_owned(),
                "leave `roots` out, or use routing = \"updn\" or \"ftree\"",
            );
        }
        return;
    }
    let routes = SubnetGraph::of(lab).routes(&BTreeSet::new());
    let place = Place::of(Section::Subnet, 0).key("routing");
    if let Some(refusal) = routes.refusal() {
        problems.add(
            ProblemKind::RefusedRouting,
            place,
            format!(
                "`{}` does not route this subnet, so the subnet manager uses minhop: {}",
                engine.name(),
                SubnetRoutes::refusal_text(lab, refusal)
            ),
            "change the links, name other `roots`, or use routing = \"minhop\"",
        );
        return;
    }
    lab.for_each_srp_pair(|paths, host, storage| {
        let ports = paths.target_ports(storage);
        let pairs = paths.pairs(host, storage);
        let lost = pairs.iter().find(|(own, port)| !routes.joins(*own, ports[usize::from(*port)]));
        let Some(&(own, port)) = lost else { return true };
        let name = |interface: u16| paths.interfaces[usize::from(interface)].end.name(lab);
        problems.add(
            ProblemKind::RefusedRouting,
            place,
            format!("`{}` gives no path from `{}` to `{}`", engine.name(), name(own), name(ports[usize::from(port)])),
            "name other `roots`, or use routing = \"minhop\"",
        );
        false
    });
}
