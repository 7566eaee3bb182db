//! Oversubscription of the links between switches of Ethernet and of InfiniBand.
//!
//! Frames and packets take the paths with the fewest links that accept their VLAN, and each switch
//! divides them evenly among the links of these paths.

use super::gateways::sessions_behind;
use super::names::compress_all;
use super::report::IslGroup;
use sanloom_fc::config::{EthernetNode, InfinibandNode};
use sanloom_fc::san::{IpPaths, Lab, fcoe_paths};
use std::collections::{BTreeMap, BTreeSet, VecDeque};

/// An end of a session: the index of its link, of its switch, and the bytes per second of the link.
type End = (usize, u16, u64);

/// Links between switches of one network, and the ends whose sessions cross them.
struct Trunks {
    switches: usize,
    /// Links by index of the network, by pair of switches, the smaller index first, and by the
    /// VLANs that they accept.
    links: BTreeMap<Between, Vec<usize>>,
    /// The switch and the VLAN of the partners of each end.
    partners: BTreeMap<End, BTreeSet<Partner>>,
}

/// Two switches, and the VLANs that links between them accept: all of them if there is none.
type Between = ([u16; 2], BTreeSet<u16>);

/// The switch of the partner of an end, and the VLAN of their frames.
type Partner = (Option<u16>, u16);

/// The links between switches that accept a VLAN: for each switch, its neighbours with the links to
/// them as indices into [`Trunks::links`], and the number of these links.
type Neighbours = Vec<Vec<(u16, usize, u32)>>;

impl Trunks {
    /// Takes the links with the switches at their ends and the VLANs that they accept.
    fn new<'l>(switches: usize, links: impl Iterator<Item = ([Option<u16>; 2], &'l [u16])>) -> Trunks {
        let mut by_pair: BTreeMap<Between, Vec<usize>> = BTreeMap::new();
        for (number, (ends, vlans)) in links.enumerate() {
            if let [Some(a), Some(b)] = ends
                && a != b
            {
                let between = ([a.min(b), a.max(b)], vlans.iter().copied().collect());
                by_pair.entry(between).or_default().push(number);
            }
        }
        Trunks { switches, links: by_pair, partners: BTreeMap::new() }
    }

    /// Adds a session in a VLAN. An end without a switch is that of a direct cable.
    fn add(&mut self, vlan: Option<u16>, ends: [Option<End>; 2]) {
        if let [Some(a), Some(b)] = ends {
            self.partners.entry(a).or_default().insert((vlan, b.1));
            self.partners.entry(b).or_default().insert((vlan, a.1));
        }
    }

    /// Returns the links that accept a VLAN.
    fn neighbours(&self, vlan: Option<u16>) -> Neighbours {
        let mut neighbours = vec![Vec::new(); self.switches];
        for (number, (([a, b], vlans), links)) in self.links.iter().enumerate() {
            if vlan.is_none_or(|vlan| vlans.is_empty() || vlans.contains(&vlan)) {
                neighbours[usize::from(*a)].push((*b, number, links.len() as u32));
                neighbours[usize::from(*b)].push((*a, number, links.len() as u32));
            }
        }
        neighbours
    }

    /// Returns the groups of links with what crosses them.
    fn groups(
        &self,
        bytes_per_s: impl Fn(usize) -> u64,
        name: impl Fn(u16) -> String,
        link: impl Fn(usize) -> String,
    ) -> Vec<IslGroup> {
        // Ends at one switch with equal partners share their flows.
        let mut sources: BTreeMap<(u16, &BTreeSet<Partner>), u64> = BTreeMap::new();
        for ((_, switch, bytes_per_s), targets) in &self.partners {
            *sources.entry((*switch, targets)).or_default() += bytes_per_s;
        }
        let mut neighbours: BTreeMap<Option<u16>, Neighbours> = BTreeMap::new();
        let mut to_targets: BTreeMap<Partner, Vec<u32>> = BTreeMap::new();
        let mut behind: BTreeMap<(usize, u16), f64> = BTreeMap::new();
        for ((source, targets), bytes_per_s) in sources {
            let mut largest: BTreeMap<(usize, u16), f64> = BTreeMap::new();
            for &target in targets {
                let links = neighbours.entry(target.0).or_insert_with(|| self.neighbours(target.0));
                let distance = to_targets.entry(target).or_insert_with(|| distances(links, target.1));
                for (way, share) in flow(links, source, distance) {
                    let entry = largest.entry(way).or_insert(0.0);
                    *entry = entry.max(share);
                }
            }
            for (way, share) in largest {
                *behind.entry(way).or_insert(0.0) += share * bytes_per_s as f64;
            }
        }
        let mut groups_between: BTreeMap<&[u16; 2], u32> = BTreeMap::new();
        for (switches, _) in self.links.keys() {
            *groups_between.entry(switches).or_default() += 1;
        }
        let group = |(number, ((switches, vlans), links)): (usize, (&Between, &Vec<usize>))| {
            let own: u64 = links.iter().map(|link| bytes_per_s(*link)).sum();
            let behind = switches.map(|from| behind.get(&(number, from)).copied().unwrap_or(0.0));
            let names: Vec<String> = links.iter().map(|number| link(*number)).collect();
            let ends = switches.map(&name);
            IslGroup {
                label: match groups_between.get(switches) {
                    Some(2..) => format!("{} ({})", ends.join("-"), vlans_in_words(vlans)),
                    _ => ends.join("-"),
                },
                switches: ends,
                links: links.clone(),
                names: compress_all(names.iter().map(String::as_str)),
                bytes_per_s: own,
                behind_bytes_per_s: behind,
                oversubscription: behind[0].min(behind[1]) / own.max(1) as f64,
            }
        };
        self.links.iter().enumerate().map(group).collect()
    }
}

/// Returns the VLANs that links accept: `VLAN 10`, `VLANs 10/20..30`, or `all VLANs`. Other links
/// between the same switches have other ones. Names are lists with commas, so numbers have none.
fn vlans_in_words(vlans: &BTreeSet<u16>) -> String {
    let mut runs: Vec<[u16; 2]> = Vec::new();
    for &vlan in vlans {
        match runs.last_mut() {
            Some([_, last]) if *last + 1 == vlan => *last = vlan,
            _ => runs.push([vlan; 2]),
        }
    }
    let run = |[first, last]: &[u16; 2]| if first == last { first.to_string() } else { format!("{first}..{last}") };
    match vlans.len() {
        0 => "all VLANs".to_owned(),
        1 => format!("VLAN {}", runs.iter().map(run).collect::<String>()),
        _ => format!("VLANs {}", runs.iter().map(run).collect::<Vec<_>>().join("/")),
    }
}

/// Returns the number of links from each switch to another one; `u32::MAX` without a path.
fn distances(neighbours: &Neighbours, to: u16) -> Vec<u32> {
    let mut distance = vec![u32::MAX; neighbours.len()];
    distance[usize::from(to)] = 0;
    let mut open = VecDeque::from([to]);
    while let Some(switch) = open.pop_front() {
        for &(next, ..) in &neighbours[usize::from(switch)] {
            if distance[usize::from(next)] == u32::MAX {
                distance[usize::from(next)] = distance[usize::from(switch)] + 1;
                open.push_back(next);
            }
        }
    }
    distance
}

/// Returns the share of the traffic from one switch to another on each group of links, with the
/// switch at which it enters.
fn flow(neighbours: &Neighbours, from: u16, distance: &[u32]) -> Vec<((usize, u16), f64)> {
    let mut crossed = Vec::new();
    let mut open = BTreeMap::from([((std::cmp::Reverse(distance[usize::from(from)]), from), 1.0)]);
    while let Some(((std::cmp::Reverse(left), switch), share)) = open.pop_first() {
        if left == 0 || left == u32::MAX {
            continue;
        }
        let all = &neighbours[usize::from(switch)];
        let next = || all.iter().filter(|(next, ..)| distance[usize::from(*next)] == left - 1);
        let links: u32 = next().map(|(.., links)| links).sum();
        for &(next, group, own) in next() {
            let part = share * f64::from(own) / f64::from(links.max(1));
            crossed.push(((group, switch), part));
            *open.entry((std::cmp::Reverse(left - 1), next)).or_insert(0.0) += part;
        }
    }
    crossed
}

/// Returns the links between Ethernet switches, with the sessions of iSCSI of hosts and of
/// virtualization switches, and the virtual links that cross them.
pub(super) fn of_ethernet(lab: &Lab) -> Vec<IslGroup> {
    let switch = |node: EthernetNode| match node {
        EthernetNode::Switch(switch) => Some(switch),
        EthernetNode::Host(_) | EthernetNode::Storage(_) | EthernetNode::Forwarder(_) => None,
    };
    let links = lab.ethernet_links.iter().map(|link| (link.ends.map(|end| switch(end.node)), &link.vlans[..]));
    let mut trunks = Trunks::new(lab.ethernet_switches.len(), links);
    if trunks.links.is_empty() {
        return Vec::new();
    }
    let interfaces = lab.ethernet_interfaces();
    let end = |interface: u16| -> Option<End> {
        let link = interfaces.get(usize::from(interface))?.link;
        let (_, switch) = lab.ethernet_links[link].switches().next()?;
        Some((link, switch, lab.ethernet_links[link].rate.bytes_per_s()))
    };
    for_each_leg(lab, |vlan, ends| trunks.add(vlan, ends.map(end)));
    let (paths, behind) = (lab.iscsi_paths(), sessions_behind(lab));
    for session in paths.back_ends().into_iter().filter(|(switch, storage, _)| behind.contains(&(*switch, *storage))) {
        // Virtualization switches log in without a VLAN.
        if let Some((ends, _)) = paths.ends_of_back_end(session) {
            trunks.add(None, ends.map(end));
        }
    }
    for path in fcoe_paths(lab).iter().filter(|path| path.is_joined) {
        trunks.add(path.config.vlan, path.interfaces.map(end));
    }
    trunks.groups(
        |link| lab.ethernet_links[link].rate.bytes_per_s(),
        |switch| lab.ethernet_switches[usize::from(switch)].name.clone(),
        |link| lab.ethernet_links[link].name.clone(),
    )
}

/// Returns the links between InfiniBand switches, with the channels of SRP and the sessions of
/// iSCSI over IPoIB that cross them.
pub(super) fn of_infiniband(lab: &Lab) -> Vec<IslGroup> {
    let subnet = &lab.infiniband;
    let switch = |node: InfinibandNode| match node {
        InfinibandNode::Switch(switch) => Some(switch),
        InfinibandNode::Host(_) | InfinibandNode::Storage(_) => None,
    };
    let links = subnet.links.iter().map(|link| (link.ends.map(|end| switch(end.node)), &[][..]));
    let mut trunks = Trunks::new(subnet.switches.len(), links);
    if trunks.links.is_empty() {
        return Vec::new();
    }
    let interfaces = lab.infiniband_interfaces();
    let end = |interface: u16| -> Option<End> {
        let link = interfaces.get(usize::from(interface))?.link;
        let (_, switch) = subnet.links[link].switches().next()?;
        Some((link, switch, subnet.links[link].rate.bytes_per_s()))
    };
    let first = lab.ethernet_interfaces().len() as u16;
    for_each_leg(lab, |_, ends| trunks.add(None, ends.map(|interface| end(interface.checked_sub(first)?))));
    lab.for_each_srp_pair(|paths, host, storage| {
        let ports = paths.target_ports(storage);
        for (own, port) in paths.pairs(host, storage) {
            trunks.add(None, [own, ports[usize::from(port)]].map(end));
        }
        true
    });
    trunks.groups(
        |link| subnet.links[link].rate.bytes_per_s(),
        |switch| subnet.switches[usize::from(switch)].name.clone(),
        |link| subnet.links[link].name.clone(),
    )
}

/// Calls a function with the VLAN and the interfaces of IP at both ends of each session, on both
/// sides of a router.
fn for_each_leg(lab: &Lab, mut call: impl FnMut(Option<u16>, [u16; 2])) {
    IpPaths::for_each_pair(lab, |_, host, _, ways| {
        let vlan = lab.hosts[usize::from(host)].iscsi.vlan;
        for way in ways {
            match way.router {
                None => call(vlan, way.ends),
                Some((_, [near, beyond])) => {
                    call(vlan, [way.ends[0], near]);
                    call(vlan, [beyond, way.ends[1]]);
                }
            }
        }
        true
    });
}
