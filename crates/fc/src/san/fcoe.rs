//! Virtual links of FCoE over the Ethernet of a lab: [`FcoePath`].

use super::Lab;
use super::ethernet::ethernet_groups_without;
use crate::config::{EthernetNode, EthernetRate, Link, Node, VirtualLink};
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::fmt;

/// Ethernet below a virtual link.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct FcoePath {
    /// Index into `links`.
    pub link: u16,
    /// Configuration of the virtual link.
    pub config: VirtualLink,
    /// Interfaces at both ends, by index into [`Lab::ethernet_interfaces`].
    pub interfaces: [u16; 2],
    /// True if the frames of the VLAN pass from one interface to the other.
    pub is_joined: bool,
}

/// Node of Ethernet that is also a node of Fibre Channel.
pub fn ethernet_node(node: Node) -> Option<EthernetNode> {
    match node {
        Node::Switch(switch) => Some(EthernetNode::Forwarder(switch)),
        Node::Host(host) => Some(EthernetNode::Host(host)),
        Node::Storage(storage) => Some(EthernetNode::Storage(storage)),
        Node::Loop(_) => None,
    }
}

/// Ethernet below each virtual link. The first virtual link of a node uses its first interface,
/// and so on in turn, but only interfaces between which the frames of its VLAN pass.
pub fn fcoe_paths(lab: &Lab) -> Vec<FcoePath> {
    fcoe_paths_without(lab, &BTreeSet::new())
}

/// As [`fcoe_paths`], with `is_joined` as it is without some Ethernet links, by index into
/// `ethernet_links`.
pub fn fcoe_paths_without(lab: &Lab, broken: &BTreeSet<u16>) -> Vec<FcoePath> {
    let mut paths = Vec::new();
    if lab.links.iter().all(|link| link.fcoe.is_none()) {
        return paths;
    }
    let interfaces = lab.ethernet_interfaces();
    let mut by_node: BTreeMap<EthernetNode, Vec<u16>> = BTreeMap::new();
    for (number, interface) in (0..).zip(&interfaces) {
        by_node.entry(interface.end.node).or_default().push(number);
    }
    let vlans: BTreeSet<Option<u16>> = lab.links.iter().filter_map(|link| Some(link.fcoe?.vlan)).collect();
    let groups_without = |broken: &BTreeSet<u16>| -> BTreeMap<Option<u16>, Vec<Option<u16>>> {
        vlans.iter().map(|&vlan| (vlan, ethernet_groups_without(lab, vlan, broken))).collect()
    };
    let whole = groups_without(&BTreeSet::new());
    let left = if broken.is_empty() { whole.clone() } else { groups_without(broken) };
    let joins = |groups: &[Option<u16>], [a, b]: [u16; 2]| {
        let [a, b] = [a, b].map(|number| groups[interfaces[usize::from(number)].link]);
        a.is_some() && a == b
    };
    let mut turns: BTreeMap<EthernetNode, usize> = BTreeMap::new();
    for (number, link) in (0..).zip(&lab.links) {
        let Some((config, nodes)) = virtual_ends(link) else { continue };
        let candidates = nodes.map(|node| {
            let own = by_node.get(&node).map_or(&[][..], Vec::as_slice);
            let turn = turns.entry(node).or_default();
            let start = *turn % own.len().max(1);
            *turn += 1;
            own.iter().copied().cycle().skip(start).take(own.len()).collect::<Vec<u16>>()
        });
        let pairs = || candidates[0].iter().flat_map(|&a| candidates[1].iter().map(move |&b| [a, b]));
        let groups = &whole[&config.vlan];
        let Some(ends) = pairs().find(|pair| joins(groups, *pair)).or_else(|| pairs().next()) else { continue };
        let is_joined = joins(&left[&config.vlan], ends);
        paths.push(FcoePath { link: number, config, interfaces: ends, is_joined });
    }
    paths
}

/// Difference between the forwarders at the ends of a virtual link (VE_Ports).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum ForwarderMismatch {
    /// Last bytes of their FC-MAPs.
    FcMap([u8; 2]),
    /// Virtual fabrics (VF_ID), 0 without one.
    VirtualFabric([u16; 2]),
}

impl fmt::Display for ForwarderMismatch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            ForwarderMismatch::FcMap([a, b]) => write!(f, "FC-MAPs 0E:FC:{a:02X} and 0E:FC:{b:02X} differ"),
            ForwarderMismatch::VirtualFabric([a, b]) => write!(f, "virtual fabrics {a} and {b} differ"),
        }
    }
}

/// Returns why two forwarders ignore each other's solicitations and advertisements, so that the
/// virtual link between them never comes up: an FCF discards those of another FC-MAP or another
/// virtual fabric (FC-BB-6, FCF discovery). `None` for an FCIP link, and without two forwarders.
pub fn forwarder_mismatch(lab: &Lab, link: &Link) -> Option<ForwarderMismatch> {
    link.fcoe.filter(|config| config.fcip.is_none())?;
    let [Node::Switch(a), Node::Switch(b)] = link.ends.map(|end| end.node) else { return None };
    let maps = [a, b].map(|switch| lab.live.fcoe(switch).fc_map);
    let fabrics = [a, b].map(|switch| lab.vf_id(switch).unwrap_or(0));
    if maps[0] != maps[1] {
        return Some(ForwarderMismatch::FcMap(maps));
    }
    (fabrics[0] != fabrics[1]).then_some(ForwarderMismatch::VirtualFabric(fabrics))
}

/// Rate of each virtual link whose ends are joined, by index into `links`: that of the slowest
/// Ethernet link on its way. Of ways with equally few switches, the one with the highest rate
/// counts, because the frames of a virtual link are one flow, which has one way.
pub fn virtual_rates(lab: &Lab) -> BTreeMap<u16, EthernetRate> {
    let paths = fcoe_paths(lab);
    if paths.is_empty() {
        return BTreeMap::new();
    }
    let interfaces = lab.ethernet_interfaces();
    let mut searches: BTreeMap<(Option<u16>, usize), Search> = BTreeMap::new();
    let mut rates = BTreeMap::new();
    for path in paths.iter().filter(|path| path.is_joined) {
        let [a, b] = path.interfaces.map(|interface| interfaces[usize::from(interface)].link);
        let links = [a, b].map(|link| &lab.ethernet_links[link]);
        let ends = links[0].rate.min(links[1].rate);
        let [near, far] = links.map(|link| link.switches().next().map(|(_, switch)| usize::from(switch)));
        let rate = match (near, far) {
            (Some(near), Some(far)) if a != b => {
                let vlan = path.config.vlan;
                let search = searches.entry((vlan, near)).or_insert_with(|| Search::of(lab, vlan, near));
                search.rates.get(far).copied().flatten().map_or(ends, |between| between.min(ends))
            }
            _ => ends,
        };
        rates.insert(path.link, rate);
    }
    rates
}

/// Ethernet switches on the shortest ways of virtual links, in ascending order. A virtual link over
/// one cable, or without a way in its VLAN, has none.
pub fn switches_below(lab: &Lab, paths: &[FcoePath]) -> BTreeSet<u16> {
    let interfaces = lab.ethernet_interfaces();
    let mut searches: BTreeMap<(Option<u16>, usize), Search> = BTreeMap::new();
    let mut switches = BTreeSet::new();
    for path in paths {
        let links = path.interfaces.map(|interface| interfaces[usize::from(interface)].link);
        let ends = links.map(|link| lab.ethernet_links[link].switches().next().map(|(_, switch)| usize::from(switch)));
        let [Some(near), Some(far)] = ends else { continue };
        let vlan = path.config.vlan;
        for from in [near, far] {
            searches.entry((vlan, from)).or_insert_with(|| Search::of(lab, vlan, from));
        }
        let [from_near, from_far] = [near, far].map(|from| &searches[&(vlan, from)].hops);
        let Some(shortest) = from_near[far] else { continue };
        let ways = from_near.iter().zip(from_far).map(|(near, far)| Some((*near)? + (*far)?));
        switches.extend((0u16..).zip(ways).filter(|(_, way)| *way == Some(shortest)).map(|(switch, _)| switch));
    }
    switches
}

/// Name of the rate of each link, in the order of `links`: of a virtual link, that of the Ethernet
/// below it, see [`virtual_rates`].
pub fn rate_names(lab: &Lab) -> Vec<String> {
    let on_ethernet = virtual_rates(lab);
    let name = |(number, link): (u16, &Link)| match on_ethernet.get(&number) {
        Some(rate) => rate.name().to_owned(),
        None => link.rate.to_string(),
    };
    (0..).zip(&lab.links).map(name).collect()
}

/// Ways from one Ethernet switch to all others.
struct Search {
    /// Number of links on the way to each switch; `None` without a way.
    hops: Vec<Option<u32>>,
    /// Slowest link on the way to each switch. `None` without a way, and for the switch itself.
    rates: Vec<Option<EthernetRate>>,
}

impl Search {
    fn of(lab: &Lab, vlan: Option<u16>, from: usize) -> Search {
        let mut neighbours: Vec<Vec<(usize, EthernetRate)>> = vec![Vec::new(); lab.ethernet_switches.len()];
        for link in lab.ethernet_links.iter().filter(|link| link.accepts(vlan)) {
            if let [EthernetNode::Switch(a), EthernetNode::Switch(b)] = link.ends.map(|end| end.node) {
                let [a, b] = [a, b].map(usize::from);
                neighbours[a].push((b, link.rate));
                neighbours[b].push((a, link.rate));
            }
        }
        let mut rates: Vec<Option<EthernetRate>> = vec![None; neighbours.len()];
        let mut hops = vec![None; neighbours.len()];
        hops[from] = Some(0);
        // All ways to a switch are known before it leaves the queue.
        let mut open = VecDeque::from([from]);
        while let Some(switch) = open.pop_front() {
            let further = hops[switch].map(|hops| hops + 1);
            for &(next, rate) in &neighbours[switch] {
                if hops[next].is_none() {
                    hops[next] = further;
                    open.push_back(next);
                }
                if hops[next] == further {
                    let rate = rates[switch].map_or(rate, |before| before.min(rate));
                    rates[next] = Some(rates[next].map_or(rate, |known| known.max(rate)));
                }
            }
        }
        Search { hops, rates }
    }
}

fn virtual_ends(link: &Link) -> Option<(VirtualLink, [EthernetNode; 2])> {
    let [a, b] = link.ends.map(|end| ethernet_node(end.node));
    Some((link.fcoe?, [a?, b?]))
}
