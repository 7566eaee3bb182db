//! The switches and ISLs of a lab as a graph, and the pairs of ports that may access each other
//! over it.

use petgraph::algo::dijkstra;
use petgraph::graph::{NodeIndex, UnGraph};
use petgraph::unionfind::UnionFind;
use petgraph::visit::EdgeRef;
use sanloom_fc::config::Node;
use sanloom_fc::san::{Lab, PermittedPairs, virtual_rates};
use std::collections::{BTreeMap, BTreeSet};

/// All ISLs between two switches.
pub(super) struct Group {
    /// The two switches, the smaller index first.
    pub switches: [u16; 2],
    /// Indices into the links of the lab.
    pub links: Vec<usize>,
    /// Direction from the first switch to the second, and the reverse. Each switch computes costs
    /// by its own rule.
    directions: [Direction; 2],
}

/// The links from one switch to another, as seen by routing.
#[derive(Clone, Copy)]
struct Direction {
    /// FSPF cost of the cheapest link.
    cost: u32,
    /// Number of legs for routing: the cheapest links, where a bundle counts once.
    legs: u32,
    /// Bytes per second of the links that routing uses.
    bytes_per_s: u64,
}

impl Group {
    /// Returns the bytes per second of the links that routing uses, in the slower direction.
    pub fn bytes_per_s(&self) -> u64 {
        self.directions[0].bytes_per_s.min(self.directions[1].bytes_per_s)
    }

    /// Returns 0 if `switch` is the first of the two switches, 1 otherwise.
    fn side(&self, switch: u16) -> usize {
        usize::from(self.switches[0] != switch)
    }

    fn direction_from(&self, switch: u16) -> Direction {
        self.directions[self.side(switch)]
    }
}

/// The graph of a lab.
pub(super) struct Network {
    pub groups: Vec<Group>,
    /// Bytes per second of each link of the lab: those of the slowest Ethernet link on the way of a
    /// virtual link.
    pub bytes_per_s: Vec<u64>,
    /// Linked ports of hosts and storage systems, and their permitted pairs.
    pub permitted: PermittedPairs,
    /// Nodes are junctions (switches, loops, direct links), weights are indices into `groups`.
    pub graph: UnGraph<(), usize, u32>,
    /// For each junction, the number of its fabric: the smallest index of a junction in it.
    pub fabric: Vec<u16>,
    /// For each target switch, the cost of the cheapest path from each switch; `None` between
    /// fabrics.
    distance: Vec<Vec<Option<u32>>>,
}

impl Network {
    /// The links in `isolated`, and those that are dark when the lab starts, join nothing.
    pub fn of(lab: &Lab, isolated: &[usize]) -> Network {
        let on_ethernet = virtual_rates(lab);
        let rate = |(number, link): (u16, &sanloom_fc::config::Link)| {
            on_ethernet.get(&number).map_or_else(|| link.rate.bytes_per_s(), |rate| rate.bytes_per_s())
        };
        let bytes_per_s: Vec<u64> = (0..).zip(&lab.links).map(rate).collect();
        let groups = groups(lab, &bytes_per_s, &lab.links_apart(isolated));
        let mut graph = UnGraph::default();
        for _ in 0..lab.junctions() {
            graph.add_node(());
        }
        for (index, group) in groups.iter().enumerate() {
            let [a, b] = group.switches.map(|s| NodeIndex::new(usize::from(s)));
            graph.add_edge(a, b, index);
        }
        let distance: Vec<Vec<Option<u32>>> = graph
            .node_indices()
            .map(|target| {
                // The search runs backwards from the target, so the sender on an edge is at its far
                // end.
                let costs = dijkstra(&graph, target, None, |edge| {
                    groups[*edge.weight()].direction_from(edge.target().index() as u16).cost
                });
                graph.node_indices().map(|to| costs.get(&to).copied()).collect()
            })
            .collect();
        let fabric = distance.iter().map(|row| row.iter().position(Option::is_some).unwrap_or(0) as u16).collect();
        Network { groups, bytes_per_s, permitted: lab.permitted_pairs(isolated), graph, fabric, distance }
    }

    /// Returns whether a path leads from one switch to the other.
    pub fn is_joined(&self, a: u16, b: u16) -> bool {
        self.fabric[usize::from(a)] == self.fabric[usize::from(b)]
    }

    /// Iterates over the neighbours of `switch` that are closer to `target` on a cheapest path,
    /// with the group that leads to each.
    pub fn downhill(&self, switch: u16, target: u16) -> impl Iterator<Item = (u16, usize)> + '_ {
        let to_target = &self.distance[usize::from(target)];
        let here = to_target[usize::from(switch)];
        self.graph.edges(NodeIndex::new(usize::from(switch))).filter_map(move |edge| {
            let group = *edge.weight();
            let next = if edge.source().index() == usize::from(switch) { edge.target() } else { edge.source() };
            let through = to_target[next.index()]?.checked_add(self.groups[group].direction_from(switch).cost)?;
            (Some(through) == here).then_some((next.index() as u16, group))
        })
    }

    /// Returns for every switch the number of different cheapest routes to `target`, counted link
    /// by link, and the number of ISLs on the shortest of them.
    pub fn routes_to(&self, target: u16) -> Vec<(u64, u32)> {
        let to_target = &self.distance[usize::from(target)];
        let mut order: Vec<u16> =
            (0..to_target.len() as u16).filter(|&s| to_target[usize::from(s)].is_some()).collect();
        order.sort_by_key(|&s| to_target[usize::from(s)]);
        let mut routes: Vec<(u64, u32)> = vec![(0, 0); to_target.len()];
        routes[usize::from(target)] = (1, 0);
        for switch in order.into_iter().filter(|&s| s != target) {
            let mut total = 0_u64;
            let mut hops = u32::MAX;
            for (next, group) in self.downhill(switch, target) {
                let (count, next_hops) = routes[usize::from(next)];
                let legs = self.groups[group].direction_from(switch).legs;
                total = total.saturating_add(count.saturating_mul(legs.into()));
                hops = hops.min(next_hops.saturating_add(1));
            }
            routes[usize::from(switch)] = (total, hops);
        }
        routes
    }

    /// Returns the share of the traffic from `source` to `target` on each group, with the side on
    /// which it enters (0: the first switch of the group). At each switch, traffic is divided
    /// evenly among the legs.
    pub fn flow(&self, source: u16, target: u16) -> Vec<(usize, usize, f64)> {
        let to_target = &self.distance[usize::from(target)];
        let mut open: BTreeMap<(std::cmp::Reverse<Option<u32>>, u16), f64> = BTreeMap::new();
        open.insert((std::cmp::Reverse(to_target[usize::from(source)]), source), 1.0);
        let mut crossed = Vec::new();
        while let Some(((_, switch), share)) = open.pop_first() {
            if switch == target {
                continue;
            }
            let legs_of = |group: usize| self.groups[group].direction_from(switch).legs;
            let legs: u32 = self.downhill(switch, target).map(|(_, group)| legs_of(group)).sum();
            for (next, group) in self.downhill(switch, target) {
                let part = share * f64::from(legs_of(group)) / f64::from(legs.max(1));
                let side = self.groups[group].side(switch);
                crossed.push((group, side, part));
                let key = (std::cmp::Reverse(to_target[usize::from(next)]), next);
                *open.entry(key).or_insert(0.0) += part;
            }
        }
        crossed
    }
}

fn groups(lab: &Lab, bytes_per_s: &[u64], apart: &BTreeSet<u16>) -> Vec<Group> {
    let mut by_pair: BTreeMap<[u16; 2], Vec<usize>> = BTreeMap::new();
    for (index, link) in lab.links.iter().enumerate() {
        if let [Node::Switch(a), Node::Switch(b)] = link.ends.map(|e| e.node)
            && a != b
            && u16::try_from(index).is_ok_and(|index| !apart.contains(&index))
        {
            by_pair.entry([a.min(b), a.max(b)]).or_default().push(index);
        }
    }
    by_pair.into_iter().map(|(switches, links)| group(lab, bytes_per_s, switches, links)).collect()
}

fn group(lab: &Lab, bytes_per_s: &[u64], switches: [u16; 2], links: Vec<usize>) -> Group {
    // Costs follow from the rates that the links announce.
    let mut legs: BTreeMap<Leg, Vec<u64>> = BTreeMap::new();
    let mut capacity: BTreeMap<Leg, u64> = BTreeMap::new();
    for &link in &links {
        let leg = lab.links[link].bundle.map_or(Leg::Link(link), Leg::Bundle);
        legs.entry(leg).or_default().push(lab.links[link].rate.bytes_per_s());
        *capacity.entry(leg).or_default() += bytes_per_s[link];
    }
    let direction = |switch: u16| {
        let rule = lab.switches[usize::from(switch)].joining.cost_rule;
        let cost = legs.values().map(|rates| rule.cost(rates)).min().unwrap_or(1);
        let used = || legs.iter().filter(|(_, rates)| rule.cost(rates) == cost).map(|(leg, _)| leg);
        Direction { cost, legs: used().count() as u32, bytes_per_s: used().map(|leg| capacity[leg]).sum() }
    };
    Group { switches, links, directions: switches.map(direction) }
}

/// A single link or a bundle, which FSPF treats as one link.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Leg {
    Link(usize),
    Bundle(u16),
}

/// Rest of the fabric without some switches or a group of ISLs.
pub(super) struct Remains {
    component: Vec<u32>,
    gone: Vec<u16>,
}

impl Remains {
    pub(super) fn of(network: &Network, gone: &[u16], group: Option<usize>) -> Remains {
        let mut union: UnionFind<u32> = UnionFind::new(network.graph.node_count());
        for edge in network.graph.edge_references() {
            let ends = [edge.source().index() as u16, edge.target().index() as u16];
            if Some(*edge.weight()) != group && !ends.iter().any(|e| gone.contains(e)) {
                union.union(u32::from(ends[0]), u32::from(ends[1]));
            }
        }
        Remains { component: union.into_labeling(), gone: gone.to_vec() }
    }

    pub(super) fn is_joined(&self, a: u16, b: u16) -> bool {
        let is_left = |switch: u16| !self.gone.contains(&switch);
        is_left(a) && is_left(b) && self.component[usize::from(a)] == self.component[usize::from(b)]
    }
}
