//! Routing engines: forwarding tables of the switches of a subnet.
//!
//! The rules follow the observed behaviour of OpenSM 3.3.23. Tests compare table by table.

mod balance;
mod ftree;
mod hops;
mod topology;
mod updn;

use super::discovery::Discovered;
use super::fabric::{Fabric, NodeId};
use super::lids::{Lid, Lids};
use super::manager::Config;
use std::collections::BTreeMap;
use std::fmt;
use topology::Topology;

/// Routing engine of the subnet manager.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Engine {
    /// Fewest hops; among equals the port with the fewest routes.
    #[default]
    MinHop,
    /// Fewest hops among the paths that never turn up after a step down.
    UpDown,
    /// Balanced shift patterns in a pure fat tree.
    FatTree,
}

impl fmt::Display for Engine {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Engine::MinHop => "minhop",
            Engine::UpDown => "updn",
            Engine::FatTree => "ftree",
        })
    }
}

/// Reason for which an engine does not route a topology.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
pub enum Refusal {
    /// No switch has almost all adapters at one distance.
    #[error("updn finds no root switch; name the roots")]
    NoRoots,
    /// `ftree` routes one LID per port.
    #[error("ftree requires LMC 0")]
    Lmc,
    /// The tree has one level or more than eight, or fewer than two adapters.
    #[error("{levels} levels of switches and {adapters} adapters are not a fat tree of 2 to 8 levels")]
    Shape {
        /// Levels of switches.
        levels: usize,
        /// Adapters.
        adapters: usize,
    },
    /// A link does not join neighbouring levels.
    #[error("a link joins switches {0} and {1}, whose levels are not neighbours")]
    Level(NodeId, NodeId),
    /// A switch has other groups of links than the switches of its level.
    #[error("switch {0} differs from other switches of its level in its groups of links")]
    Uneven(NodeId),
}

/// Linear forwarding table of a switch.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct ForwardingTable {
    ports: Vec<Option<u8>>,
}

impl ForwardingTable {
    fn new(highest: Lid) -> ForwardingTable {
        ForwardingTable { ports: vec![None; usize::from(highest) + 1] }
    }

    fn set(&mut self, lid: Lid, port: u8) {
        self.ports[usize::from(lid)] = Some(port);
    }

    /// Egress port for a LID; 0 is the switch itself, `None` drops the packet.
    pub fn port(&self, lid: Lid) -> Option<u8> {
        *self.ports.get(usize::from(lid))?
    }

    /// LIDs with a port, in ascending order.
    pub fn iter(&self) -> impl Iterator<Item = (Lid, u8)> + '_ {
        self.ports.iter().enumerate().filter_map(|(lid, port)| Some((lid as Lid, (*port)?)))
    }
}

/// Tables, and the engine that made them.
pub(super) struct Routed {
    pub engine: Engine,
    pub refusal: Option<Refusal>,
    pub tables: BTreeMap<NodeId, ForwardingTable>,
}

/// Computes the tables of all switches.
pub(super) fn route(fabric: &Fabric, found: &[Discovered], lids: &Lids, config: &Config) -> Routed {
    let topology = Topology::new(fabric, found, lids);
    let made = match config.engine {
        Engine::MinHop => Ok(balance::tables(&topology, &hops::shortest(&topology), lids)),
        Engine::UpDown => updn::hops(&topology, &config.roots).map(|hops| balance::tables(&topology, &hops, lids)),
        Engine::FatTree if config.lmc > 0 => Err(Refusal::Lmc),
        Engine::FatTree => ftree::tables(&topology, &config.roots, lids),
    };
    let (engine, refusal, tables) = match made {
        Ok(tables) => (config.engine, None, tables),
        Err(refusal) => (Engine::MinHop, Some(refusal), balance::tables(&topology, &hops::shortest(&topology), lids)),
    };
    let tables = topology.switches.iter().map(|switch| switch.node).zip(tables).collect();
    Routed { engine, refusal, tables }
}
