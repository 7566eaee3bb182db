//! Routes of a fat tree that share the links evenly for shift patterns.
//!
//! [`tree`] turns the topology into levels with groups of parallel links and numbers the switches.
//! [`walk`] then lays the routes to one destination after the other, from its leaf up and down.

mod tree;
mod walk;

use super::topology::Topology;
use super::{ForwardingTable, Refusal};
use crate::infiniband::fabric::Guid;
use crate::infiniband::lids::Lids;

/// Tables of all switches, in the order of the topology.
///
/// # Errors
/// The topology is not a fat tree.
pub fn tables(topology: &Topology, roots: &[Guid], lids: &Lids) -> Result<Vec<ForwardingTable>, Refusal> {
    let tree = tree::Tree::new(topology, roots)?;
    Ok(walk::Walk::new(topology, tree, lids.highest()).run())
}
