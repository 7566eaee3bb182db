//! Choice of one port for each LID among the ports with the fewest hops.

use super::ForwardingTable;
use super::hops::{Hops, NONE};
use super::topology::Topology;
use crate::infiniband::lids::{Lid, Lids, Range};

/// Destination of routes: an end port behind a switch.
struct Target {
    /// Switch that is the end port, or to which the adapter is attached.
    switch: usize,
    /// Port of that switch: 0 for the switch itself.
    port: u8,
    lids: Range,
}

/// Targets in the order in which they take ports: adapters of the switches with the most adapters
/// first, then the switches.
fn targets(topology: &Topology) -> Vec<Target> {
    let mut order: Vec<usize> = (0..topology.switches.len()).collect();
    order.sort_by_key(|switch| std::cmp::Reverse(topology.switches[*switch].adapters().count()));
    let adapters = order
        .into_iter()
        .flat_map(|switch| topology.switches[switch].adapters().map(move |(port, lids)| Target { switch, port, lids }));
    let mut switches: Vec<Target> = topology
        .switches
        .iter()
        .enumerate()
        .map(|(switch, data)| Target { switch, port: 0, lids: Range { base: data.lid, count: 1 } })
        .collect();
    switches.sort_by_key(|target| topology.switches[target.switch].guid.sort_key());
    adapters.chain(switches).collect()
}

/// Routes of one target that leave one switch, by the node and system that they enter.
#[derive(Default)]
struct Used {
    switches: Vec<usize>,
    /// Port of the last of them; equal ports are tried from the next one, in a circle.
    port: u8,
}

/// Tables of all switches, in the order of the topology.
pub fn tables(topology: &Topology, hops: &Hops, lids: &Lids) -> Vec<ForwardingTable> {
    let targets = targets(topology);
    let per_port = targets.iter().map(|target| target.lids.count).max().unwrap_or(1);
    (0..topology.switches.len())
        .map(|from| {
            let mut table = ForwardingTable::new(lids.highest());
            let mut routes = vec![0u32; usize::from(topology.switches[from].ports) + 1];
            let mut used: Vec<Used> = targets.iter().map(|_| Used::default()).collect();
            for offset in 0..per_port {
                for (target, used) in targets.iter().zip(&mut used).filter(|(target, _)| offset < target.lids.count) {
                    let lid: Lid = target.lids.base + offset;
                    if target.switch == from {
                        table.set(lid, target.port);
                        routes[usize::from(target.port)] += 1;
                        continue;
                    }
                    let Some(port) = choose(topology, hops, from, target, &routes, used) else { continue };
                    table.set(lid, port);
                    // Traffic to switches is light, so it does not count.
                    routes[usize::from(port)] += u32::from(target.port != 0);
                }
            }
            table
        })
        .collect()
}

/// Port with the fewest routes among those with the fewest hops. Further LIDs of one end port
/// prefer a port to a switch that none of them has entered yet.
fn choose(
    topology: &Topology,
    hops: &Hops,
    from: usize,
    target: &Target,
    routes: &[u32],
    used: &mut Used,
) -> Option<u8> {
    let least = hops.least(from, target.switch);
    if least == NONE {
        return None;
    }
    let row = hops.row(from, target.switch);
    let candidates = topology.switches[from].neighbours().filter(|(port, ..)| row[usize::from(*port)] == least);
    let mut candidates: Vec<(u8, usize, u8)> = candidates.collect();
    candidates.sort_by_key(|(port, ..)| (*port <= used.port, *port));
    let fresh = candidates.iter().filter(|(_, far, _)| !used.switches.contains(far));
    let best = fresh.min_by_key(|(port, ..)| routes[usize::from(*port)]).copied();
    let best = best.or_else(|| {
        // Observed: the bound of equal counts is the smallest over all ports seen so far.
        let mut best: Option<(u8, usize, u8)> = None;
        let (mut least, mut forwarded) = (u32::MAX, usize::MAX);
        for candidate in &candidates {
            let count = routes[usize::from(candidate.0)];
            let entered = used.switches.iter().filter(|switch| **switch == candidate.1).count();
            if count < least || (count == least && entered < forwarded) {
                least = count;
                best = Some(*candidate);
                forwarded = forwarded.min(entered);
            }
        }
        best
    });
    best.map(|(port, far, _)| {
        used.switches.push(far);
        used.port = port;
        port
    })
}
