//! Hops of paths that never turn up after a step down.

use super::Refusal;
use super::hops::{Hops, NONE, distances};
use super::topology::Topology;
use crate::infiniband::fabric::Guid;
use std::collections::VecDeque;

/// Hop matrix of the permitted paths.
///
/// # Errors
/// No roots are named, and none stand out.
pub fn hops(topology: &Topology, roots: &[Guid]) -> Result<Hops, Refusal> {
    let mut roots: Vec<usize> =
        (0..topology.switches.len()).filter(|switch| roots.contains(&topology.switches[*switch].guid)).collect();
    if roots.is_empty() {
        roots = find_roots(topology);
    }
    if roots.is_empty() {
        return Err(Refusal::NoRoots);
    }
    let ranks = ranks(topology, &roots);
    let mut hops = Hops::new(topology);
    for to in 0..topology.switches.len() {
        search(topology, &ranks, to, &mut hops);
    }
    Ok(hops)
}

/// Switches that have more than 90 % of the adapter ports at one distance, and no more than 5 % at
/// any other.
fn find_roots(topology: &Topology) -> Vec<usize> {
    let attached: Vec<usize> = topology.switches.iter().map(|switch| switch.adapters().count()).collect();
    let all: usize = attached.iter().sum();
    let is_root = |switch: &usize| {
        let mut histogram = [0; NONE as usize + 1];
        for (distance, attached) in distances(topology, *switch).into_iter().zip(&attached) {
            histogram[usize::from(distance)] += attached;
        }
        let above = |percent: usize| histogram.iter().filter(|count| **count * 100 > all * percent).count();
        above(90) == 1 && above(5) == 1
    };
    (0..topology.switches.len()).filter(is_root).collect()
}

/// Distance of each switch from the nearest root.
pub fn ranks(topology: &Topology, roots: &[usize]) -> Vec<u8> {
    let mut ranks = vec![NONE; topology.switches.len()];
    let mut queue: VecDeque<usize> = roots.iter().copied().collect();
    for root in roots {
        ranks[*root] = 0;
    }
    while let Some(at) = queue.pop_front() {
        for (_, far, _) in topology.switches[at].neighbours() {
            if ranks[far] == NONE {
                ranks[far] = ranks[at].saturating_add(1);
                queue.push_back(far);
            }
        }
    }
    ranks
}

/// Direction of a link: towards the roots or away. Between equals the GUIDs decide, and between
/// roots every step is up.
fn is_up(topology: &Topology, ranks: &[u8], from: usize, to: usize) -> bool {
    match (ranks[from], ranks[to]) {
        (0, 0) => true,
        (a, b) if a != b => a > b,
        _ => topology.switches[from].guid > topology.switches[to].guid,
    }
}

/// Fills the column of one destination by a search that starts there and prunes turns.
///
/// A switch remembers the direction of the step by which it was queued, and is queued again after
/// it has left the queue if a port of it gets a shorter path.
fn search(topology: &Topology, ranks: &[u8], to: usize, hops: &mut Hops) {
    let mut up = vec![true; topology.switches.len()];
    let mut queued = vec![false; topology.switches.len()];
    let mut queue = VecDeque::from([to]);
    while let Some(at) = queue.pop_front() {
        queued[at] = false;
        let next = hops.least(at, to).saturating_add(1);
        for (_, far, far_port) in topology.switches[at].neighbours() {
            let step_up = is_up(topology, ranks, at, far);
            if (step_up && !up[at]) || hops.row(far, to)[usize::from(far_port)] <= next {
                continue;
            }
            hops.set(far, to, far_port, next);
            if !std::mem::replace(&mut queued[far], true) {
                up[far] = step_up;
                queue.push_back(far);
            }
        }
    }
}
