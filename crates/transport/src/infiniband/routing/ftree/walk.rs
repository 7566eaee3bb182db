//! Routes to each destination, laid from its leaf.

use super::tree::{Group, Tree};
use crate::infiniband::lids::Lid;
use crate::infiniband::routing::ForwardingTable;
use crate::infiniband::routing::topology::Topology;

/// Destination of the routes that are laid.
#[derive(Clone, Copy)]
struct Target {
    /// `None` counts routes without setting any: the place of an absent adapter.
    lid: Option<Lid>,
    /// True if the routes carry data and count as load.
    main: bool,
}

/// Tables under construction.
pub struct Walk<'a> {
    topology: &'a Topology,
    tree: Tree,
    tables: Vec<ForwardingTable>,
    /// By switch: hops to the current destination.
    hops: Vec<Option<u32>>,
}

impl<'a> Walk<'a> {
    pub fn new(topology: &'a Topology, tree: Tree, highest: Lid) -> Walk<'a> {
        let count = topology.switches.len();
        Walk { topology, tree, tables: vec![ForwardingTable::new(highest); count], hops: vec![None; count] }
    }

    /// Lays the routes to adapters leaf by leaf, then to switches.
    pub fn run(mut self) -> Vec<ForwardingTable> {
        let leaves = self.tree.leaves.clone();
        let topology = self.topology;
        let fullest = leaves.iter().map(|leaf| topology.switches[*leaf].adapters().count()).max().unwrap_or(0);
        for leaf in leaves {
            let mut attached = 0;
            for (port, lids) in topology.switches[leaf].adapters() {
                self.start(leaf, lids.base, port, 1);
                self.up(leaf, None, Target { lid: Some(lids.base), main: true }, 1);
                attached += 1;
            }
            for _ in attached..fullest {
                self.hops.fill(None);
                self.hops[leaf] = Some(1);
                self.up(leaf, None, Target { lid: None, main: true }, 1);
            }
        }
        for (index, switch) in topology.switches.iter().enumerate() {
            self.start(index, switch.lid, 0, 0);
            self.up(index, None, Target { lid: Some(switch.lid), main: false }, 0);
        }
        self.tables
    }

    fn start(&mut self, switch: usize, lid: Lid, port: u8, hops: u32) {
        self.hops.fill(None);
        self.hops[switch] = Some(hops);
        self.tables[switch].set(lid, port);
    }

    /// Sets the route of a switch.
    fn set(&mut self, switch: usize, target: Target, port: u8, hops: u32) {
        self.hops[switch] = Some(hops);
        if let Some(lid) = target.lid {
            self.tables[switch].set(lid, port);
        }
    }

    /// True if a switch has a route to the destination that is not longer.
    fn has_route(&self, switch: usize, hops: u32) -> bool {
        self.hops[switch].is_some_and(|present| present <= hops)
    }

    /// Lays routes below a switch that reaches the destination, then in the levels above it.
    fn up(&mut self, at: usize, from: Option<usize>, target: Target, hops: u32) {
        self.down(at, from, target, hops);
        self.sort(at, true);
        let mut first = 0;
        if target.main && !self.tree.switches[at].up.is_empty() {
            first = 1;
            let group = &mut self.tree.switches[at].up[0];
            let link = group.least_loaded();
            group.count(link);
            let (far, far_port) = (group.far, group.links[link].far_port);
            self.set(far, target, far_port, hops + 1);
            self.up(far, Some(at), target, hops + 1);
        }
        if target.lid.is_none() {
            return;
        }
        for index in first..self.tree.switches[at].up.len() {
            let group = &self.tree.switches[at].up[index];
            let far = group.far;
            if self.has_route(far, hops + 1) {
                continue;
            }
            let far_port = group.links[group.least_loaded()].far_port;
            self.set(far, target, far_port, hops + 1);
            self.up(far, Some(at), Target { main: false, ..target }, hops + 1);
        }
    }

    /// Lays routes in the levels below a switch that reaches the destination, and returns true if a
    /// leaf got a route. Only a link that leads to such a leaf counts the route.
    fn down(&mut self, at: usize, from: Option<usize>, target: Target, hops: u32) -> bool {
        self.sort(at, false);
        let mut reached = false;
        for index in 0..self.tree.switches[at].down.len() {
            let group = &self.tree.switches[at].down[index];
            let far = group.far;
            if Some(far) == from || self.has_route(far, hops + 1) {
                continue;
            }
            let link = group.least_loaded();
            self.set(far, target, group.links[link].far_port, hops + 1);
            let leaf = self.tree.is_leaf(far);
            if self.down(far, None, target, hops + 1) || leaf {
                self.tree.switches[at].down[index].count(link);
                reached = true;
            }
        }
        reached
    }

    /// Sorts the groups of one direction by load, then by the place of their far ends.
    fn sort(&mut self, at: usize, up: bool) {
        let switch = &mut self.tree.switches[at];
        let mut groups = std::mem::take(if up { &mut switch.up } else { &mut switch.down });
        let place = |group: &Group| self.tree.switches[group.far].place.as_slice();
        groups.sort_by(|a, b| a.load.cmp(&b.load).then_with(|| place(a).cmp(place(b))));
        let switch = &mut self.tree.switches[at];
        *(if up { &mut switch.up } else { &mut switch.down }) = groups;
    }
}
