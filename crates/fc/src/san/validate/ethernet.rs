//! Validation of Ethernet: switches, links, and what hosts and storage send over them.

mod memory;

use super::Problems;
use crate::config::{
    Congestion, EthernetFault, EthernetLink, EthernetNode, EthernetRate, EthernetSwitch, Fault, FaultKind, MAX_VLANS,
    PRIORITIES, Picos,
};
use crate::san::{DcbMismatch, IpPaths, Lab, Place, ProblemKind, Section, dcb_mismatches};
use std::collections::{BTreeMap, BTreeSet};

/// Maximum number of interfaces, because packets carry a 16-bit number.
const MAX_INTERFACES: usize = 65_000;
/// Limit on the iSCSI sessions of a lab.
const MAX_SESSIONS: u64 = 60_000;
/// Limit on the sessions of a storage system times its portals, over Ethernet and InfiniBand. A
/// simulation numbers both with 14 bits.
const MAX_SESSION_PORTALS: u64 = 16_383;

pub(super) fn validate(lab: &Lab, problems: &mut Problems) {
    names(lab, problems);
    for (number, switch) in (0..).zip(&lab.ethernet_switches) {
        validate_switch(lab, number, switch, problems);
    }
    links(lab, problems);
    bundles(lab, problems);
    mtus(lab, problems);
    vlans(lab, problems);
    sessions(lab, problems);
}

/// Advice about settings that lose frames or time.
pub(super) fn advise(lab: &Lab, problems: &mut Problems) {
    unconnected(lab, problems);
    memory::headroom(lab, problems);
    memory::few_frames(lab, problems);
    lossless_ends(lab, problems);
    priorities(lab, problems);
}

/// Checks a fault of Ethernet.
pub(super) fn fault(lab: &Lab, fault: &Fault, kind: EthernetFault, place: Place, problems: &mut Problems) {
    match kind {
        EthernetFault::LinkDown { .. } | EthernetFault::PortDown { .. } | EthernetFault::SwitchReset { .. } => {}
        EthernetFault::LinkUp { link } => {
            let goes_down = |kind: FaultKind| match kind {
                FaultKind::Ethernet(
                    EthernetFault::LinkDown { link: of } | EthernetFault::PortDown { link: of, .. },
                ) => of == link,
                _ => false,
            };
            let name = lab.ethernet_links.get(usize::from(link)).map(|link| link.name.as_str());
            comes_up(lab, fault, name, goes_down, place, problems);
        }
        EthernetFault::FrameLoss { probability, .. } | EthernetFault::FcsErrors { probability, .. } => {
            problems.share(place.key("probability"), probability);
        }
        EthernetFault::Reordering { probability, delay, .. } => {
            problems.share(place.key("probability"), probability);
            problems.time(place.key("delay"), delay, Picos(1), Picos::from_secs(1));
        }
        EthernetFault::PauseStorm { link, end, .. } => {
            let ends = lab.ethernet_links.get(usize::from(link)).map(|link| link.ends);
            let end = ends.and_then(|ends| ends.get(usize::from(end)).copied());
            if let Some(EthernetNode::Switch(switch)) = end.map(|end| end.node) {
                let name = name(lab, EthernetNode::Switch(switch));
                problems.add(
                    ProblemKind::BadLink,
                    place.key("kind"),
                    format!("the Ethernet switch `{name}` pauses by the state of its memory, not by a fault"),
                    "name an interface of a host or a storage system",
                );
            }
        }
    }
}

/// Checks that a link that comes up went down before.
pub(super) fn comes_up(
    lab: &Lab,
    fault: &Fault,
    name: Option<&str>,
    goes_down: impl Fn(FaultKind) -> bool,
    place: Place,
    problems: &mut Problems,
) {
    let is_before = |earlier: &Fault| goes_down(earlier.kind) && earlier.until.is_none() && earlier.at <= fault.at;
    if !lab.faults.iter().any(is_before) {
        let name = name.unwrap_or("(no such link)");
        problems.add(
            ProblemKind::LinkNotDown,
            place,
            format!("the link `{name}` comes up at {} but did not go down before", fault.at),
            "add a fault of the kind \"link-down\" at an earlier time, or leave this one out",
        );
    }
}

pub(super) fn switch_place(number: u16) -> Place {
    Place::of(Section::EthernetSwitch, usize::from(number))
}

pub(super) fn link_place(number: usize) -> Place {
    Place::of(Section::EthernetLink, number)
}

pub(super) fn name(lab: &Lab, node: EthernetNode) -> &str {
    let name = match node {
        EthernetNode::Switch(switch) => lab.ethernet_switches.get(usize::from(switch)).map(|switch| &switch.name),
        EthernetNode::Host(host) => lab.hosts.get(usize::from(host)).map(|host| &host.name),
        EthernetNode::Storage(storage) => lab.storage.get(usize::from(storage)).map(|storage| &storage.name),
        EthernetNode::Forwarder(switch) => lab.switches.get(usize::from(switch)).map(|switch| &switch.name),
    };
    name.map_or("?", String::as_str)
}

fn names(lab: &Lab, problems: &mut Problems) {
    let hosts = lab.hosts.iter().map(|host| host.name.as_str());
    let storage = lab.storage.iter().map(|storage| storage.name.as_str());
    let loops = lab.loops.iter().map(|of_lab| of_lab.name.as_str());
    let switches = lab.switches.iter().map(|switch| switch.name.as_str());
    let mut seen: BTreeSet<&str> = switches.chain(hosts).chain(storage).chain(loops).collect();
    for (number, switch) in (0..).zip(&lab.ethernet_switches) {
        if !seen.insert(&switch.name) && !switch.is_implied {
            problems.add(
                ProblemKind::DuplicateName,
                switch_place(number),
                format!("`{}` is already the name of another node", switch.name),
                "give every switch, host and storage system a name of its own",
            );
        }
    }
    let mut seen: BTreeSet<&str> = lab.links.iter().map(|link| link.name.as_str()).collect();
    for (number, link) in lab.ethernet_links.iter().enumerate() {
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

fn validate_switch(lab: &Lab, number: u16, switch: &EthernetSwitch, problems: &mut Problems) {
    let place = switch_place(number);
    let total: u32 = switch.shares.iter().map(|share| u32::from(*share)).sum();
    if total != 0 && total != 100 {
        problems.add(
            ProblemKind::BadNumber,
            place.key("ets"),
            format!("the shares of the priorities are {total} % together"),
            "change them until their sum is 100; a priority without a share is strict",
        );
    }
    memory::validate(lab, number, switch, problems);
}

fn links(lab: &Lab, problems: &mut Problems) {
    let mut used = BTreeMap::new();
    for (number, link) in lab.ethernet_links.iter().enumerate() {
        for (side, end) in link.ends.into_iter().enumerate() {
            let place = link_place(number).key(if side == 0 { "from" } else { "to" });
            if let Some(first) = used.insert(end, &link.name) {
                problems.add(
                    ProblemKind::PortUsedTwice,
                    place,
                    format!("port {} of `{}` is used by `{first}` and `{}`", end.port, name(lab, end.node), link.name),
                    "give one of them another port number, or none",
                );
            }
            if let EthernetNode::Host(host) = end.node
                && lab.hosts.get(usize::from(host)).is_some_and(|host| host.virtual_machine.is_some())
            {
                problems.add(
                    ProblemKind::BadLink,
                    place,
                    format!("`{}` is a virtual machine and has no Ethernet interface", name(lab, end.node)),
                    "link its hypervisor",
                );
            }
        }
        let nodes = link.ends.map(|end| end.node);
        let reason = match nodes {
            [EthernetNode::Host(_), EthernetNode::Host(_)] => Some("two hosts"),
            [EthernetNode::Storage(_), EthernetNode::Storage(_)] => Some("two storage systems"),
            [a, b] if a == b => Some("a switch to itself"),
            _ => None,
        };
        if let Some(reason) = reason {
            problems.add(
                ProblemKind::BadLink,
                link_place(number).key("to"),
                format!("`{}` joins {reason}", link.name),
                "link a host or storage system to an Ethernet switch, or a host to a storage system",
            );
        }
    }
    if lab.ethernet_interfaces().len() > MAX_INTERFACES {
        problems.add(
            ProblemKind::TooLarge,
            link_place(0),
            format!("the lab has more than {MAX_INTERFACES} Ethernet interfaces"),
            "use fewer hosts and storage systems",
        );
    }
}

/// Links between the same two switches form a bundle, so they have one rate.
fn bundles(lab: &Lab, problems: &mut Problems) {
    let mut rates: BTreeMap<[EthernetNode; 2], (EthernetRate, &str)> = BTreeMap::new();
    for (number, link) in lab.ethernet_links.iter().enumerate() {
        let mut nodes = link.ends.map(|end| end.node);
        nodes.sort_unstable();
        if link.switches().count() < 2 {
            continue;
        }
        let (rate, first) = *rates.entry(nodes).or_insert((link.rate, &link.name));
        if rate != link.rate {
            problems.add(
                ProblemKind::BadBundle,
                link_place(number).key("rate"),
                format!("`{first}` and `{}` form a bundle, but one has {rate} and the other {}", link.name, link.rate),
                "give links between the same two switches one rate",
            );
        }
    }
}

/// Frames of an interface that a switch, or a link between two switches, on their way does not
/// carry because of their length.
fn mtus(lab: &Lab, problems: &mut Problems) {
    let groups = lab.ethernet_groups(None);
    let of_switches = |link: &EthernetLink| {
        let own = link.switches().filter_map(|(_, switch)| {
            let mtu = lab.ethernet_switches.get(usize::from(switch))?.mtu;
            Some((mtu, name(lab, EthernetNode::Switch(switch)).to_owned()))
        });
        own.min()
    };
    let is_trunk = |link: &EthernetLink| link.switches().count() == 2;
    // Part of each group that carries the shortest frames.
    let mut smallest: BTreeMap<u16, (u16, String)> = BTreeMap::new();
    for (link, group) in lab.ethernet_links.iter().zip(&groups) {
        let parts = of_switches(link).into_iter().chain(is_trunk(link).then(|| (link.mtu, link.name.clone())));
        let (Some(group), Some(part)) = (*group, parts.min_by_key(|(mtu, _)| *mtu)) else { continue };
        let entry = smallest.entry(group).or_insert_with(|| part.clone());
        if part.0 < entry.0 {
            *entry = part;
        }
    }
    for (number, (link, group)) in lab.ethernet_links.iter().zip(&groups).enumerate() {
        // A link between two switches carries frames of others.
        let least = match is_trunk(link) {
            true => of_switches(link),
            false => group.and_then(|group| smallest.get(&group).cloned()),
        };
        let Some((mtu, part)) = least.filter(|(mtu, _)| link.mtu > *mtu) else { continue };
        problems.add(
            ProblemKind::BadSize,
            link_place(number).key("mtu"),
            format!(
                "frames with a payload of {} bytes on `{}` are too long for `{part}`, which forwards {mtu} bytes",
                link.mtu, link.name
            ),
            format!("set `mtu = {mtu}` for the link, or `mtu = {}` for `{part}`", link.mtu),
        );
    }
}

fn vlans(lab: &Lab, problems: &mut Problems) {
    let vlans = crate::san::ethernet::vlans(lab);
    if vlans.len() > MAX_VLANS {
        problems.add(
            ProblemKind::TooLarge,
            link_place(0).key("vlans"),
            format!("the lab has {} VLANs, but at most {MAX_VLANS} are supported", vlans.len()),
            "use fewer VLANs",
        );
    }
    let paths = lab.iscsi_paths();
    for (number, host) in (0..).zip(&lab.hosts) {
        let Some(vlan) = host.iscsi.vlan else { continue };
        for &interface in paths.interfaces_of(EthernetNode::Host(number)) {
            let link = paths.interfaces[usize::from(interface)].link;
            let config = &lab.ethernet_links[link];
            if !config.vlans.is_empty() && !config.vlans.contains(&vlan) {
                problems.add(
                    ProblemKind::BadNumber,
                    link_place(link).key("vlans"),
                    format!("`{}` does not accept VLAN {vlan}, which `{}` sends", config.name, host.name),
                    format!("add {vlan} to `vlans`, or change `vlan` in `iscsi` of the host"),
                );
            }
        }
    }
}

/// Sessions of a lab and of a storage system, over Ethernet and InfiniBand, beyond the numbers that
/// a simulation has for them.
fn sessions(lab: &Lab, problems: &mut Problems) {
    let mut all = 0;
    let mut of_storage: BTreeMap<u16, u64> = BTreeMap::new();
    IpPaths::for_each_pair(lab, |paths, host, storage, ways| {
        let portals = paths.portals(storage);
        let each = lab.hosts.get(usize::from(host)).map_or(1, |host| u64::from(host.iscsi.sessions));
        let added = ways.len() as u64 * each;
        let of_this = of_storage.entry(storage).or_insert(0);
        (*of_this, all) = (*of_this + added, all + added);
        let most = MAX_SESSION_PORTALS / (portals.len() as u64).max(1);
        if *of_this <= most && all <= MAX_SESSIONS {
            return true;
        }
        let name = lab.storage.get(usize::from(storage)).map_or("", |storage| &storage.name);
        let reason = match *of_this > most {
            true => format!("`{name}` has more than {most} iSCSI sessions"),
            false => format!("the lab has more than {MAX_SESSIONS} iSCSI sessions"),
        };
        let place = Place::of(Section::Storage, usize::from(storage)).key("iscsi");
        let remedy = "use fewer hosts, interfaces, portals or `sessions` for it";
        problems.add(ProblemKind::TooLarge, place, reason, remedy);
        false
    });
}

fn unconnected(lab: &Lab, problems: &mut Problems) {
    let linked: BTreeSet<u16> = lab.ethernet_links.iter().flat_map(EthernetLink::switches).map(|(_, s)| s).collect();
    for (number, switch) in (0..).zip(&lab.ethernet_switches).filter(|(number, _)| !linked.contains(number)) {
        problems.add(
            ProblemKind::Unconnected,
            switch_place(number),
            format!("no link ends at `{}`", switch.name),
            "add a [[link]] with a rate of Ethernet for it, or leave it out",
        );
    }
}

/// Links whose ends keep different settings.
fn lossless_ends(lab: &Lab, problems: &mut Problems) {
    for DcbMismatch { link, reason, remedy } in dcb_mismatches(lab) {
        problems.add(ProblemKind::PauseMismatch, link_place(link), reason, remedy);
    }
}

/// Text such as "priorities 3 and 4".
pub(in crate::san) fn list(mask: u8) -> String {
    let numbers: Vec<String> = (0..PRIORITIES).filter(|p| mask & 1 << p != 0).map(|p| p.to_string()).collect();
    match &numbers[..] {
        [] => "no priority".to_owned(),
        [one] => format!("priority {one}"),
        [first @ .., last] => format!("priorities {} and {last}", first.join(", ")),
    }
}

/// Lossless priorities without traffic, and DCTCP without marks.
fn priorities(lab: &Lab, problems: &mut Problems) {
    let paths = lab.iscsi_paths();
    let on_ethernet = |number: u16| !paths.interfaces_of(EthernetNode::Host(number)).is_empty();
    let hosts: Vec<_> = (0..).zip(&lab.hosts).filter(|(number, _)| on_ethernet(*number)).collect();
    let of_tcp = hosts.iter().fold(0, |mask, (_, host)| mask | 1_u8 << (host.iscsi.priority.unwrap_or(0) & 7));
    let of_fcoe = lab.links.iter().filter_map(|link| link.fcoe);
    let used = of_fcoe.fold(of_tcp, |mask, link| mask | 1_u8 << (link.priority & 7));
    if hosts.is_empty() {
        return;
    }
    for (number, switch) in (0..).zip(&lab.ethernet_switches) {
        if switch.lossless & used == 0 && switch.lossless != 0 {
            problems.add(
                ProblemKind::UnusedPriority,
                switch_place(number).key("pfc"),
                format!("PFC is on for {} at `{}`, but no host sends with it", list(switch.lossless), switch.name),
                "set `iscsi = { priority = … }` for the hosts, or leave `pfc` out",
            );
        }
    }
    let is_marked = lab.ethernet_switches.iter().any(|switch| switch.ecn.is_some());
    if let Some((number, host)) = hosts.iter().find(|(_, host)| host.iscsi.tcp.congestion == Congestion::Dctcp)
        && !is_marked
        && !lab.ethernet_switches.is_empty()
    {
        problems.add(
            ProblemKind::NoMarks,
            Place::of(Section::Host, usize::from(*number)).key("iscsi.tcp.congestion"),
            format!("`{}` uses DCTCP, but no Ethernet switch marks frames", host.name),
            "set `ecn = { from = \"100KB\" }` for the switches",
        );
    }
}
