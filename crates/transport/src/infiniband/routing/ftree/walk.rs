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
        if let Some(lid) = target.lid {
            self.tables[switch].set(lid, port);
            self.hops[switch] = Some(hops);
        }
    }

    /// True if a switch has a route to the destination that is not longer.
    fn has_route(&self, switch: usize, hops: u32) -> bool {
        self.hops[switch].is_some_and(|present| present <= hops)
    }

    /// Lays routes below a switch that reaches the destination, then in the levels above it.
    fn up(&mut self, at: usize, from: Option<usize>, target: Target, hops: u32) {
        self.down(at, from, target, hops);
        self.sort_up(at);
        let fars: Vec<usize> = self.tree.switches[at].up.iter().map(|group| group.far).collect();
        let mut others = fars.as_slice();
        if target.main {
            let Some((first, rest)) = fars.split_first() else { return };
            others = rest;
            let link = least_loaded(&mut self.tree.switches[at].up, *first);
            if let Some(far_port) = link {
                self.set(*first, target, far_port, hops + 1);
                self.up(*first, Some(at), target, hops + 1);
            }
        }
        if target.lid.is_none() {
            return;
        }
        for far in others {
            if self.has_route(*far, hops + 1) {
                continue;
            }
            let Some(far_port) = idle(&self.tree.switches[at].up, *far) else { continue };
            self.set(*far, target, far_port, hops + 1);
            self.up(*far, Some(at), Target { main: false, ..target }, hops + 1);
        }
    }

    /// Lays routes in the levels below a switch that reaches the destination.
    fn down(&mut self, at: usize, from: Option<usize>, target: Target, hops: u32) {
        self.tree.switches[at].down.sort_by_key(|group| group.load);
        let fars: Vec<usize> = self.tree.switches[at].down.iter().map(|group| group.far).collect();
        for far in fars {
            if Some(far) == from || self.has_route(far, hops + 1) {
                continue;
            }
            let groups = &mut self.tree.switches[at].down;
            let Some(far_port) = least_loaded(groups, far) else { continue };
            self.set(far, target, far_port, hops + 1);
            self.down(far, None, target, hops + 1);
        }
    }

    /// Sorts the groups towards the roots by load, then by the least load above their far ends.
    fn sort_up(&mut self, at: usize) {
        let above: Vec<u32> = self.tree.switches.iter().map(|switch| least(&switch.up)).collect();
        let mut groups = std::mem::take(&mut self.tree.switches[at].up);
        groups.sort_by_key(|group| (group.load, above[group.far], self.tree.switches[group.far].place.clone()));
        self.tree.switches[at].up = groups;
    }
}

/// Least load of the groups, or the maximum if there are none.
fn least(groups: &[Group]) -> u32 {
    groups.iter().map(|group| group.load).min().unwrap_or(u32::MAX)
}

/// Adds a route to the link with the fewest routes, and returns the far port.
fn least_loaded(groups: &mut [Group], far: usize) -> Option<u8> {
    let group = groups.iter_mut().find(|group| group.far == far)?;
    let link = group.links.iter_mut().min_by_key(|link| link.load)?;
    link.load += 1;
    group.load += 1;
    Some(link.far_port)
}

/// Far port of the link with the fewest routes.
fn idle(groups: &[Group], far: usize) -> Option<u8> {
    let group = groups.iter().find(|group| group.far == far)?;
    group.links.iter().min_by_key(|link| link.load).map(|link| link.far_port)
}
