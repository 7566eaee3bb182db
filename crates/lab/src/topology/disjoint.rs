//! Number of paths of a pair that share no link.

use super::network::Network;
use petgraph::algo::maximum_flow::dinics;
use petgraph::graph::{DiGraph, NodeIndex};
use std::collections::{BTreeMap, BTreeSet, VecDeque};

/// One permitted pair of ports: link position and switch at the host, link position and switch at
/// the storage system. Virtual ports on one HBA have the same position.
pub(super) type PortPair = ((usize, u16), (usize, u16));

/// The largest number of paths without a common link, where every path joins a permitted pair of
/// ports.
///
/// Fabrics share no links, so their numbers add up. In a fabric where every host port may access
/// every storage port, the number is the largest flow (Menger). Where zones permit some pairs only,
/// no fast method is exact: the number is that of paths found one after the other, shortest first,
/// and never below two if no single link cuts the pair.
pub(super) fn disjoint(network: &Network, pairs: &[PortPair]) -> u32 {
    let mut fabrics: BTreeMap<u16, Vec<PortPair>> = BTreeMap::new();
    for pair in pairs {
        fabrics.entry(network.fabric[usize::from(pair.0.1)]).or_default().push(*pair);
    }
    let found = fabrics.values().map(|pairs| match is_complete(pairs) {
        true => largest_flow(network, pairs),
        false => one_after_the_other(network, pairs),
    });
    let found = found.sum();
    if found == 1 && !one_link_cuts(network, pairs) { 2 } else { found }
}

fn is_complete(pairs: &[PortPair]) -> bool {
    let of = |pairs: &[PortPair]| -> BTreeSet<PortPair> { pairs.iter().copied().collect() };
    let hosts: BTreeSet<_> = pairs.iter().map(|pair| pair.0).collect();
    let storage: BTreeSet<_> = pairs.iter().map(|pair| pair.1).collect();
    of(pairs).len() == hosts.len() * storage.len()
}

fn largest_flow(network: &Network, pairs: &[PortPair]) -> u32 {
    let mut graph: DiGraph<(), u32, u32> = DiGraph::default();
    for _ in network.graph.node_indices() {
        graph.add_node(());
    }
    let [source, sink] = [graph.add_node(()), graph.add_node(())];
    let node = |switch: u16| NodeIndex::new(usize::from(switch));
    for (_, switch) in pairs.iter().map(|pair| pair.0).collect::<BTreeSet<_>>() {
        graph.add_edge(source, node(switch), 1);
    }
    for (_, switch) in pairs.iter().map(|pair| pair.1).collect::<BTreeSet<_>>() {
        graph.add_edge(node(switch), sink, 1);
    }
    for group in &network.groups {
        let [a, b] = group.switches.map(node);
        graph.add_edge(a, b, group.links.len() as u32);
        graph.add_edge(b, a, group.links.len() as u32);
    }
    dinics(&graph, source, sink).0
}

fn one_after_the_other(network: &Network, pairs: &[PortPair]) -> u32 {
    let mut left: Vec<usize> = network.groups.iter().map(|group| group.links.len()).collect();
    let mut pairs: Vec<PortPair> = pairs.to_vec();
    let mut found = 0;
    loop {
        let paths = pairs.iter().filter_map(|pair| Some((shortest(network, &left, pair.0.1, pair.1.1)?, *pair)));
        let Some((path, used)) = paths.min_by_key(|(path, pair)| (path.len(), *pair)) else { return found };
        found += 1;
        path.into_iter().for_each(|group| left[group] -= 1);
        pairs.retain(|pair| pair.0.0 != used.0.0 && pair.1.0 != used.1.0);
    }
}

/// Returns the groups of ISLs on a shortest route over the links that are left.
fn shortest(network: &Network, left: &[usize], from: u16, to: u16) -> Option<Vec<usize>> {
    let node = |switch: u16| NodeIndex::new(usize::from(switch));
    let mut came_by: BTreeMap<NodeIndex, (NodeIndex, usize)> = BTreeMap::new();
    let mut open = VecDeque::from([node(from)]);
    while let Some(at) = open.pop_front() {
        if at == node(to) {
            let mut route = Vec::new();
            let mut at = at;
            while at != node(from) {
                let (before, group) = came_by[&at];
                route.push(group);
                at = before;
            }
            return Some(route);
        }
        use petgraph::visit::EdgeRef;
        for edge in network.graph.edges(at) {
            let next = if edge.source() == at { edge.target() } else { edge.source() };
            if left[*edge.weight()] > 0 && next != node(from) && !came_by.contains_key(&next) {
                came_by.insert(next, (at, *edge.weight()));
                open.push_back(next);
            }
        }
    }
    None
}

fn one_link_cuts(network: &Network, pairs: &[PortPair]) -> bool {
    let one_side = |side: fn(&PortPair) -> usize| pairs.iter().map(side).collect::<BTreeSet<_>>().len() < 2;
    if one_side(|pair| pair.0.0) || one_side(|pair| pair.1.0) {
        return true;
    }
    let links: Vec<usize> = network.groups.iter().map(|group| group.links.len()).collect();
    let single = links.iter().enumerate().filter(|(_, count)| **count == 1).map(|(group, _)| group);
    single.into_iter().any(|group| {
        let mut left = links.clone();
        left[group] = 0;
        pairs.iter().all(|pair| shortest(network, &left, pair.0.1, pair.1.1).is_none())
    })
}
