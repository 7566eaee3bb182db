//! Shortest paths between switches with the result of FSPF: [`routes`].
//!
//! The function is pure. The driver that owns the topology calls it after each change and passes
//! each switch its part.

use super::delta::Leg;
pub use crate::config::standard_cost as cost_of;
use std::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap};

/// Link between two switches.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Isl {
    /// First end; the order of the ends has no meaning.
    pub a: IslEnd,
    /// Second end.
    pub b: IslEnd,
    /// Cost of the link, equal in both directions; 0 counts as 1. Links of one bundle have the same
    /// cost.
    pub cost: u32,
    /// Number of its bundle, if any. Links of one bundle join the same two switches.
    pub bundle: Option<u16>,
    /// True if the link carries frames.
    pub up: bool,
}

/// One end of an [`Isl`].
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct IslEnd {
    /// Index of the switch in the list given to [`routes`].
    pub switch: usize,
    /// Port number at that switch.
    pub port: u16,
}

/// Routes of one switch. For each other domain, sorted by domain: all legs of the cheapest paths,
/// sorted by port number (a bundle by its lowest port). An unreachable domain has no legs.
pub type SwitchRoutes = Vec<(u8, Vec<Leg>)>;

/// Routes of every switch, in the order of `domains`, which has the domain of each switch.
///
/// All links of a bundle form one leg, which exists while one of them is up. Links with an end
/// outside `domains`, and links with both ends at the same switch, are ignored.
pub fn routes(domains: &[u8], isls: &[Isl]) -> Vec<SwitchRoutes> {
    let neighbours = neighbours(domains.len(), isls);
    let mut by_domain: Vec<usize> = (0..domains.len()).collect();
    by_domain.sort_by_key(|&switch| domains[switch]);

    let mut all: Vec<SwitchRoutes> = vec![Vec::with_capacity(domains.len()); domains.len()];
    for &target in &by_domain {
        let distance = distances(target, &neighbours);
        for (switch, routes) in all.iter_mut().enumerate().filter(|(s, _)| *s != target) {
            let cheapest = distance[switch];
            let on_path = |hop: &&Hop| distance[hop.to].saturating_add(hop.cost) == cheapest;
            let legs = match cheapest {
                UNREACHABLE => Vec::new(),
                _ => neighbours[switch].iter().filter(on_path).map(|hop| hop.leg).collect(),
            };
            routes.push((domains[target], legs));
        }
    }
    all
}

const UNREACHABLE: u64 = u64::MAX;

#[derive(Clone, Copy)]
struct Hop {
    to: usize,
    cost: u64,
    leg: Leg,
}

/// First hops of each switch, sorted by lowest port.
fn neighbours(switches: usize, isls: &[Isl]) -> Vec<Vec<Hop>> {
    let mut found: Vec<Vec<(u16, Hop)>> = vec![Vec::new(); switches];
    // Index in `found` of the leg of a bundle, by switch, neighbour and bundle number.
    let mut bundles: BTreeMap<(usize, usize, u16), usize> = BTreeMap::new();
    for isl in isls.iter().filter(|isl| isl.up && isl.a.switch != isl.b.switch) {
        if isl.a.switch.max(isl.b.switch) >= switches {
            continue;
        }
        for (from, to) in [(isl.a, isl.b), (isl.b, isl.a)] {
            let here = &mut found[from.switch];
            let cost = u64::from(isl.cost.max(1));
            let leg = match isl.bundle {
                None => Leg::Port(from.port),
                Some(bundle) => {
                    let at = *bundles.entry((from.switch, to.switch, bundle)).or_insert(here.len());
                    if let Some((lowest, hop)) = here.get_mut(at) {
                        *lowest = from.port.min(*lowest);
                        hop.cost = cost.min(hop.cost);
                        continue;
                    }
                    Leg::Bundle(bundle)
                }
            };
            here.push((from.port, Hop { to: to.switch, cost, leg }));
        }
    }
    let by_port = |mut hops: Vec<(u16, Hop)>| {
        hops.sort_by_key(|(port, hop)| (*port, hop.leg));
        hops.into_iter().map(|(_, hop)| hop).collect()
    };
    found.into_iter().map(by_port).collect()
}

/// Dijkstra's algorithm from `target`. Costs are symmetric, so the result is also the distance to
/// `target`.
///
/// The library's version is not used because it keeps distances in a hash map, which for 65
/// switches costs more than the search.
fn distances(target: usize, neighbours: &[Vec<Hop>]) -> Vec<u64> {
    let mut distance = vec![UNREACHABLE; neighbours.len()];
    distance[target] = 0;
    let mut open = BinaryHeap::from([Reverse((0u64, target))]);
    while let Some(Reverse((so_far, at))) = open.pop() {
        if so_far > distance[at] {
            continue;
        }
        for hop in &neighbours[at] {
            let through = so_far + hop.cost;
            if through < distance[hop.to] {
                distance[hop.to] = through;
                open.push(Reverse((through, hop.to)));
            }
        }
    }
    distance
}
