//! The switches and ISLs of a lab as a graph, and the ports that nodes are linked to.

use petgraph::algo::dijkstra;
use petgraph::graph::{NodeIndex, UnGraph};
use petgraph::visit::EdgeRef;
use sanloom_core::config::{Lab, LinkEnd, Node};
use std::collections::BTreeMap;

/// All ISLs between two switches.
pub(super) struct Group {
    /// The two switches, the smaller index first.
    pub switches: [u16; 2],
    /// Indices into the links of the lab.
    pub links: Vec<usize>,
    /// From the first switch to the second, and back: each counts costs by its own rule.
    ways: [Way; 2],
}

/// What routing makes of the links from one switch to another.
#[derive(Clone, Copy)]
struct Way {
    /// Cost of the cheapest of them, as FSPF counts.
    cost: u32,
    /// Legs that routing may choose from: the cheapest links, a bundle counting once.
    legs: u32,
    /// Bytes per second of the links that routing uses.
    bytes_per_s: u64,
}

impl Group {
    /// Bytes per second of the links that routing uses, one way, the slower one.
    pub fn bytes_per_s(&self) -> u64 {
        self.ways[0].bytes_per_s.min(self.ways[1].bytes_per_s)
    }

    /// 0: `switch` is the first of the two.
    fn side(&self, switch: u16) -> usize {
        usize::from(self.switches[0] != switch)
    }

    fn way_from(&self, switch: u16) -> Way {
        self.ways[self.side(switch)]
    }
}

/// A port of a host or storage system and where it is linked to. Those of a virtual machine are the HBAs that carry it.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(super) struct Attachment {
    pub switch: u16,
    pub bytes_per_s: u64,
    /// The node that the link is at, by index: a virtual machine's hypervisor.
    pub owner: u16,
    /// The port of that node.
    pub port: u16,
    pub link: usize,
}

/// The graph of a lab.
pub(super) struct Network {
    pub groups: Vec<Group>,
    /// For each host its linked ports, in their order; for a virtual machine one for each of its virtual ports.
    pub hosts: Vec<Vec<Attachment>>,
    /// For each storage system its linked ports.
    pub storage: Vec<Vec<Attachment>>,
    /// Nodes are switches, weights are indices into `groups`.
    pub graph: UnGraph<(), usize, u32>,
    /// For each switch the number of its fabric: the smallest switch index in it.
    pub fabric: Vec<u16>,
    /// For each switch, the cost of the cheapest path to it from each; `None` between fabrics.
    distance: Vec<Vec<Option<u32>>>,
}

impl Network {
    /// The links in `isolated` join nothing.
    pub fn of(lab: &Lab, isolated: &[usize]) -> Network {
        let groups = groups(lab, isolated);
        let mut graph = UnGraph::default();
        for _ in &lab.switches {
            graph.add_node(());
        }
        for (index, group) in groups.iter().enumerate() {
            let [a, b] = group.switches.map(|s| NodeIndex::new(usize::from(s)));
            graph.add_edge(a, b, index);
        }
        let distance: Vec<Vec<Option<u32>>> = graph
            .node_indices()
            .map(|target| {
                // Backwards from the target: who sends over an edge is at its far end.
                let costs = dijkstra(&graph, target, None, |edge| {
                    groups[*edge.weight()].way_from(edge.target().index() as u16).cost
                });
                graph.node_indices().map(|to| costs.get(&to).copied()).collect()
            })
            .collect();
        let fabric = distance.iter().map(|row| row.iter().position(Option::is_some).unwrap_or(0) as u16).collect();
        let mut network = Network {
            groups,
            hosts: vec![Vec::new(); lab.hosts.len()],
            storage: vec![Vec::new(); lab.storage.len()],
            graph,
            fabric,
            distance,
        };
        network.attach(lab);
        network
    }

    fn attach(&mut self, lab: &Lab) {
        for (index, link) in lab.links.iter().enumerate() {
            for (here, there) in [(0, 1), (1, 0)] {
                let Node::Switch(switch) = link.ends[there].node else {
                    continue;
                };
                let LinkEnd { node, port, .. } = link.ends[here];
                let (list, owner) = match node {
                    Node::Host(i) => (self.hosts.get_mut(usize::from(i)), i),
                    Node::Storage(i) => (self.storage.get_mut(usize::from(i)), i),
                    Node::Switch(_) => continue,
                };
                if let Some(list) = list {
                    list.push(Attachment { switch, bytes_per_s: link.rate.bytes_per_s(), owner, port, link: index });
                }
            }
        }
        for list in self.hosts.iter_mut().chain(&mut self.storage) {
            list.sort_unstable_by_key(|a| a.port);
        }
        for (index, host) in lab.hosts.iter().enumerate() {
            let Some(vm) = host.virtual_machine else { continue };
            let Some(hypervisor) = lab.hosts.get(usize::from(vm.on)) else { continue };
            let carried_by = |port: u16| vm.carrier(port, hypervisor.hbas.len());
            let carriers = &self.hosts[usize::from(vm.on)];
            let of_port = |port| carriers.iter().copied().find(|a| a.port == carried_by(port));
            self.hosts[index] = (0..host.hbas.len() as u16).filter_map(of_port).collect();
        }
    }

    /// True if a path of switches leads from one to the other.
    pub fn is_joined(&self, a: u16, b: u16) -> bool {
        self.fabric[usize::from(a)] == self.fabric[usize::from(b)]
    }

    /// The neighbours of `switch` that are closer to `target` on a cheapest path, with the group that leads there.
    pub fn downhill(&self, switch: u16, target: u16) -> impl Iterator<Item = (u16, usize)> + '_ {
        let to_target = &self.distance[usize::from(target)];
        let here = to_target[usize::from(switch)];
        self.graph.edges(NodeIndex::new(usize::from(switch))).filter_map(move |edge| {
            let group = *edge.weight();
            let next = if edge.source().index() == usize::from(switch) { edge.target() } else { edge.source() };
            let through = to_target[next.index()]?.checked_add(self.groups[group].way_from(switch).cost)?;
            (Some(through) == here).then_some((next.index() as u16, group))
        })
    }

    /// Number of different cheapest ways from every switch to `target`, link by link, and of ISLs on the shortest.
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
                let (ways, next_hops) = routes[usize::from(next)];
                total = total.saturating_add(ways.saturating_mul(self.groups[group].way_from(switch).legs.into()));
                hops = hops.min(next_hops.saturating_add(1));
            }
            routes[usize::from(switch)] = (total, hops);
        }
        routes
    }

    /// Share of the traffic from `source` to `target` that crosses each group, with the side that it enters at (0: the
    /// first switch of the group). At each switch it spreads evenly over the legs.
    pub fn flow(&self, source: u16, target: u16) -> Vec<(usize, usize, f64)> {
        let to_target = &self.distance[usize::from(target)];
        let mut open: BTreeMap<(std::cmp::Reverse<Option<u32>>, u16), f64> = BTreeMap::new();
        open.insert((std::cmp::Reverse(to_target[usize::from(source)]), source), 1.0);
        let mut crossed = Vec::new();
        while let Some(((_, switch), share)) = open.pop_first() {
            if switch == target {
                continue;
            }
            let legs_of = |group: usize| self.groups[group].way_from(switch).legs;
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

fn groups(lab: &Lab, isolated: &[usize]) -> Vec<Group> {
    let mut by_pair: BTreeMap<[u16; 2], Vec<usize>> = BTreeMap::new();
    for (index, link) in lab.links.iter().enumerate() {
        if let [Node::Switch(a), Node::Switch(b)] = link.ends.map(|e| e.node)
            && a != b
            && !isolated.contains(&index)
        {
            by_pair.entry([a.min(b), a.max(b)]).or_default().push(index);
        }
    }
    by_pair.into_iter().map(|(switches, links)| group(lab, switches, links)).collect()
}

fn group(lab: &Lab, switches: [u16; 2], links: Vec<usize>) -> Group {
    let mut legs: BTreeMap<Leg, Vec<u64>> = BTreeMap::new();
    for &link in &links {
        let leg = lab.links[link].bundle.map_or(Leg::Link(link), Leg::Bundle);
        legs.entry(leg).or_default().push(lab.links[link].rate.bytes_per_s());
    }
    let way = |switch: u16| {
        let rule = lab.switches[usize::from(switch)].joining.cost_rule;
        let cost = legs.values().map(|rates| rule.cost(rates)).min().unwrap_or(1);
        let used = || legs.values().filter(|rates| rule.cost(rates) == cost);
        Way { cost, legs: used().count() as u32, bytes_per_s: used().flatten().sum() }
    };
    Group { switches, links, ways: switches.map(way) }
}

/// What FSPF takes for one link.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Leg {
    Link(usize),
    Bundle(u16),
}
