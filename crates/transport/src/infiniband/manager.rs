//! Subnet manager: from the graph of a fabric to LIDs and forwarding tables.

use super::discovery::{Discovered, discover};
use super::fabric::{Fabric, Guid, NodeId, PortId};
use super::lids::{Lid, Lids, OutOfLids};
use super::routing::{self, Engine, ForwardingTable, Refusal};
use std::collections::{BTreeMap, BTreeSet};

/// Configuration of a subnet manager.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Config {
    /// Routing engine. If the engine refuses the topology, [`Engine::MinHop`] replaces it.
    pub engine: Engine,
    /// Each port of an adapter has 2 to the power of this number of LIDs: 0 to 7.
    pub lmc: u8,
    /// Node GUIDs of the root switches of `updn` and `ftree`. Empty: the engine finds the roots.
    pub roots: Vec<Guid>,
}

/// Subnet as the manager has configured it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Subnet {
    /// Nodes in the order of their discovery.
    pub discovered: Vec<Discovered>,
    /// LIDs of the end ports.
    pub lids: Lids,
    /// Engine that made the tables.
    pub engine: Engine,
    /// Reason for which the configured engine was replaced.
    pub refusal: Option<Refusal>,
    /// Forwarding tables of the switches.
    pub tables: BTreeMap<NodeId, ForwardingTable>,
}

/// Brings up the subnet of a manager at `manager`, a port of an adapter or port 0 of a switch.
///
/// # Errors
/// The subnet has more end ports than LIDs.
pub fn bring_up(fabric: &Fabric, manager: PortId, config: &Config) -> Result<Subnet, OutOfLids> {
    Ok(sweep(fabric, manager, config, &assign(fabric, manager, config)?))
}

/// Gives LIDs to the end ports that the manager of a new subnet reaches.
///
/// # Errors
/// The subnet has more end ports than LIDs.
pub fn assign(fabric: &Fabric, manager: PortId, config: &Config) -> Result<Lids, OutOfLids> {
    Lids::assign(fabric, &discover(fabric, manager), manager, config.lmc)
}

/// Sweeps a subnet whose links have changed, and computes its tables anew. End ports keep the LIDs
/// in `known`. Switches that the manager does not reach are not in the result.
pub fn sweep(fabric: &Fabric, manager: PortId, config: &Config, known: &Lids) -> Subnet {
    let discovered = discover(fabric, manager);
    let lids = known.only(&discovered);
    let routed = routing::route(fabric, &discovered, &lids, config);
    Subnet { discovered, lids, engine: routed.engine, refusal: routed.refusal, tables: routed.tables }
}

/// As [`sweep`], for every part of a subnet that has split: the manager of a part is the first of
/// `managers` there, and the others are in standby. `None` if no manager has a LID. The routing
/// engine is that of the first part.
pub fn sweep_parts(
    fabric: &Fabric,
    managers: impl IntoIterator<Item = PortId>,
    config: &Config,
    known: &Lids,
) -> Option<Subnet> {
    let mut seen = BTreeSet::new();
    let mut whole: Option<Subnet> = None;
    for manager in managers {
        if seen.contains(&manager.node) || known.of(manager).is_none() {
            continue;
        }
        let part = sweep(fabric, manager, config, known);
        seen.extend(part.discovered.iter().map(|found| found.node));
        match &mut whole {
            None => whole = Some(part),
            Some(whole) => {
                whole.tables.extend(part.tables);
                whole.discovered.extend(part.discovered);
            }
        }
    }
    let mut whole = whole?;
    whole.lids = known.only(&whole.discovered);
    Some(whole)
}

/// Failure of a path between two LIDs.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum PathError {
    /// No end port has the LID.
    UnknownLid(Lid),
    /// The table of a switch has no port for the destination.
    NoRoute(NodeId),
    /// The tables forward the packet in a loop.
    Loop(NodeId),
}

impl Subnet {
    /// Egress ports of the nodes on the path of a packet from an end port to a LID.
    ///
    /// # Errors
    /// The LID is unknown, or the tables do not lead to it.
    pub fn path(&self, fabric: &Fabric, from: PortId, to: Lid) -> Result<Vec<PortId>, PathError> {
        let target = self.lids.port(to).ok_or(PathError::UnknownLid(to))?;
        let mut path = Vec::new();
        let mut at = from;
        if !fabric.node(at.node).is_switch() {
            if at == target {
                return Ok(path);
            }
            path.push(at);
            at = fabric.peer(at).ok_or(PathError::NoRoute(at.node))?;
        }
        while at.node != target.node {
            let table = self.tables.get(&at.node).ok_or(PathError::NoRoute(at.node))?;
            let port = table.port(to).ok_or(PathError::NoRoute(at.node))?;
            let out = PortId { node: at.node, port };
            if path.contains(&out) {
                return Err(PathError::Loop(at.node));
            }
            path.push(out);
            at = fabric.peer(out).ok_or(PathError::NoRoute(at.node))?;
        }
        Ok(path)
    }
}
