//! Shortest paths from one switch: [`paths`].

use super::database::Database;
use crate::fabric::Leg;
use sanloom_wire::sw_ils::LinkDescriptor;
use std::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap};

/// Usable link of this switch, as in its own record.
#[derive(Clone, Copy, Debug)]
pub(super) struct OwnLink {
    pub(super) port: u16,
    pub(super) bundle: Option<u16>,
    pub(super) link: LinkDescriptor,
}

/// Computes the legs of all cheapest paths, by domain, each list sorted by lowest port. A link
/// counts only if the records of both ends contain it.
pub(super) fn paths(own: u8, links: &[OwnLink], database: &Database) -> Vec<Vec<Leg>> {
    let edges = Edges::new(database);
    let hops = hops(own, links, &edges);
    let words = hops.len().div_ceil(64);
    let mut search =
        Search { distance: vec![u64::MAX; DOMAINS], hops: vec![0; DOMAINS * words], words, open: BinaryHeap::new() };
    search.distance[usize::from(own)] = 0;
    let mut first = vec![0; words];
    for (n, hop) in hops.iter().enumerate() {
        first.fill(0);
        first[n / 64] = 1 << (n % 64);
        search.reach(hop.to, hop.cost, &first);
    }
    while let Some(Reverse((so_far, at))) = search.open.pop() {
        if so_far > search.distance[usize::from(at)] {
            continue;
        }
        first.copy_from_slice(search.hops_to(at));
        for &(to, cost) in edges.from(at) {
            search.reach(to, so_far + u64::from(cost), &first);
        }
    }
    let legs = |domain: u8| {
        let set = search.hops_to(domain);
        let chosen = |n: &usize| set[n / 64] >> (n % 64) & 1 != 0;
        let mut legs: Vec<Leg> = (0..hops.len()).filter(chosen).map(|n| hops[n].leg).collect();
        legs.dedup();
        legs
    };
    (0..=u8::MAX).map(legs).collect()
}

const DOMAINS: usize = u8::MAX as usize + 1;

/// State of Dijkstra's algorithm. The first hops to a domain are complete when it leaves `open`,
/// because every link has a positive cost.
struct Search {
    distance: Vec<u64>,
    /// Bit sets of first hops, `words` for each domain.
    hops: Vec<u64>,
    words: usize,
    open: BinaryHeap<Reverse<(u64, u8)>>,
}

impl Search {
    fn hops_to(&self, domain: u8) -> &[u64] {
        &self.hops[usize::from(domain) * self.words..][..self.words]
    }

    fn reach(&mut self, to: u8, distance: u64, through: &[u64]) {
        let known = &mut self.distance[usize::from(to)];
        if distance > *known {
            return;
        }
        let hops = &mut self.hops[usize::from(to) * self.words..][..self.words];
        if distance == *known {
            hops.iter_mut().zip(through).for_each(|(hops, through)| *hops |= through);
            return;
        }
        *known = distance;
        hops.copy_from_slice(through);
        self.open.push(Reverse((distance, to)));
    }
}

/// First hop from this switch: a link or a bundle.
struct Hop {
    to: u8,
    cost: u64,
    leg: Leg,
}

/// First hops from this switch, sorted by lowest port; the links of a bundle form one hop.
fn hops(own: u8, links: &[OwnLink], edges: &Edges) -> Vec<Hop> {
    let mut bundles: BTreeMap<(u8, u16), usize> = BTreeMap::new();
    let mut hops: Vec<(u16, Hop)> = Vec::new();
    let two_way = |own_link: &&OwnLink| edges.both_describe(own, &own_link.link);
    for &OwnLink { port, bundle, link } in links.iter().filter(two_way) {
        let cost = u64::from(link.cost.max(1));
        if let Some(number) = bundle {
            let at = *bundles.entry((link.neighbour, number)).or_insert(hops.len());
            if let Some((lowest, hop)) = hops.get_mut(at) {
                *lowest = port.min(*lowest);
                hop.cost = cost.min(hop.cost);
                continue;
            }
        }
        let leg = bundle.map_or(Leg::Port(port), Leg::Bundle);
        hops.push((port, Hop { to: link.neighbour, cost, leg }));
    }
    hops.sort_by_key(|(port, hop)| (*port, hop.leg));
    hops.into_iter().map(|(_, hop)| hop).collect()
}

/// Links in the records, and the subset that both ends describe.
struct Edges {
    /// Links as source domain, destination domain, port index at the source, port index at the
    /// destination, cost; sorted.
    described: Vec<(u8, u8, u32, u32, u16)>,
    /// Cheapest link between two switches that both describe; sorted by source domain, then
    /// destination.
    cheapest: Vec<(u8, u16)>,
    /// Start index in `cheapest` for each domain, and the end.
    begin: Vec<usize>,
}

impl Edges {
    fn new(database: &Database) -> Edges {
        let mut described = Vec::new();
        for entry in database.iter().filter(|entry| !entry.flushed) {
            let from = entry.record.domain;
            let of_link = |l: &LinkDescriptor| (from, l.neighbour, l.port, l.neighbour_port, l.cost.max(1));
            described.extend(entry.record.links().iter().map(of_link));
        }
        described.sort_unstable();
        let mut edges = Edges { described, cheapest: Vec::new(), begin: Vec::with_capacity(DOMAINS + 1) };
        let (mut cheapest, mut at): (Vec<(u8, u16)>, usize) = (Vec::with_capacity(edges.described.len()), 0);
        for domain in 0..=u8::MAX {
            let begin = cheapest.len();
            edges.begin.push(begin);
            while let Some(&(from, to, port, other, cost)) = edges.described.get(at).filter(|edge| edge.0 == domain) {
                at += 1;
                if from == to || !edges.has(to, from, other, port) {
                    continue;
                }
                match cheapest[begin..].last_mut() {
                    Some((last, least)) if *last == to => *least = cost.min(*least),
                    _ => cheapest.push((to, cost)),
                }
            }
        }
        edges.begin.push(cheapest.len());
        Edges { cheapest, ..edges }
    }

    fn has(&self, from: u8, to: u8, port: u32, other: u32) -> bool {
        let at = self.described.partition_point(|edge| *edge < (from, to, port, other, 0));
        self.described.get(at).is_some_and(|edge| (edge.0, edge.1, edge.2, edge.3) == (from, to, port, other))
    }

    fn both_describe(&self, own: u8, link: &LinkDescriptor) -> bool {
        let (far, port, other) = (link.neighbour, link.port, link.neighbour_port);
        self.has(own, far, port, other) && self.has(far, own, other, port)
    }

    fn from(&self, domain: u8) -> &[(u8, u16)] {
        let domain = usize::from(domain);
        &self.cheapest[self.begin[domain]..self.begin[domain + 1]]
    }
}
