//! Hop matrix: the length of the path from each switch, through each of its ports, to each switch.

use super::topology::Topology;
use std::collections::VecDeque;

/// Hops of a port that leads nowhere.
pub const NONE: u8 = u8::MAX;

/// Hops from a switch to a switch, for each port of the first.
pub struct Hops {
    switches: usize,
    /// By switch and destination: hops by port, from port 0.
    rows: Vec<Vec<u8>>,
}

impl Hops {
    pub fn new(topology: &Topology) -> Hops {
        let switches = topology.switches.len();
        let row = |index: usize| vec![NONE; usize::from(topology.switches[index / switches].ports) + 1];
        Hops { switches, rows: (0..switches * switches).map(row).collect() }
    }

    /// Hops by port, from port 0.
    pub fn row(&self, from: usize, to: usize) -> &[u8] {
        &self.rows[from * self.switches + to]
    }

    pub fn set(&mut self, from: usize, to: usize, port: u8, hops: u8) {
        self.rows[from * self.switches + to][usize::from(port)] = hops;
    }

    /// Least hops over all ports; 0 from a switch to itself.
    pub fn least(&self, from: usize, to: usize) -> u8 {
        if from == to { 0 } else { self.row(from, to).iter().copied().min().unwrap_or(NONE) }
    }
}

/// Hops without any restriction of the paths.
pub fn shortest(topology: &Topology) -> Hops {
    let mut hops = Hops::new(topology);
    for to in 0..topology.switches.len() {
        let distances = distances(topology, to);
        for (from, switch) in topology.switches.iter().enumerate().filter(|(from, _)| *from != to) {
            for (port, far, _) in switch.neighbours() {
                hops.set(from, to, port, distances[far].saturating_add(1));
            }
        }
    }
    hops
}

/// Least hops from each switch to `to`.
pub fn distances(topology: &Topology, to: usize) -> Vec<u8> {
    let mut distances = vec![NONE; topology.switches.len()];
    distances[to] = 0;
    let mut queue = VecDeque::from([to]);
    while let Some(at) = queue.pop_front() {
        for (_, far, _) in topology.switches[at].neighbours() {
            if distances[far] == NONE {
                distances[far] = distances[at].saturating_add(1);
                queue.push_back(far);
            }
        }
    }
    distances
}
