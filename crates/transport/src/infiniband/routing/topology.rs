//! Switches of a subnet in the order in which OpenSM visits them.

use crate::infiniband::discovery::Discovered;
use crate::infiniband::fabric::{Fabric, Guid, NodeId, PortId};
use crate::infiniband::lids::{Lids, Range};

/// Far end of a port of a switch.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Far {
    /// Another switch (index in [`Topology::switches`]) and its port.
    Switch(usize, u8),
    /// End port of an adapter, and its LIDs.
    Adapter(PortId, Range),
}

/// Switch with the ports that have a cable.
pub struct Switch {
    pub node: NodeId,
    pub guid: Guid,
    /// LID of port 0.
    pub lid: u16,
    /// Number of ports.
    pub ports: u8,
    /// Ports in ascending order.
    pub links: Vec<(u8, Far)>,
}

/// Switches in ascending order of the sort keys of their GUIDs.
pub struct Topology {
    pub switches: Vec<Switch>,
    /// Number of discovered adapters.
    pub adapters: usize,
}

impl Topology {
    pub fn new(fabric: &Fabric, found: &[Discovered], lids: &Lids) -> Topology {
        let mut nodes: Vec<NodeId> = found.iter().map(|found| found.node).collect();
        let adapters = nodes.iter().filter(|node| !fabric.node(**node).is_switch()).count();
        nodes.retain(|node| fabric.node(*node).is_switch());
        nodes.sort_by_key(|node| fabric.node(*node).guid.sort_key());
        let mut index = vec![usize::MAX; fabric.nodes().len()];
        for (place, node) in nodes.iter().enumerate() {
            index[*node] = place;
        }
        let switch = |node: &NodeId| {
            let node = *node;
            let far = |peer: PortId| {
                if fabric.node(peer.node).is_switch() {
                    return Some(Far::Switch(index[peer.node], peer.port));
                }
                Some(Far::Adapter(peer, lids.of(peer)?))
            };
            let links = fabric.node(node).links().filter_map(|(port, peer)| Some((port, far(peer)?))).collect();
            let lid = lids.of(PortId { node, port: 0 }).map_or(0, |range| range.base);
            let Some(data) = fabric.nodes().get(node) else { unreachable!() };
            Switch { node, guid: data.guid, lid, ports: data.ports(), links }
        };
        Topology { switches: nodes.iter().map(switch).collect(), adapters }
    }
}

impl Switch {
    /// Links to other switches: port, index of the switch, port of that switch.
    pub fn neighbours(&self) -> impl Iterator<Item = (u8, usize, u8)> + '_ {
        self.links.iter().filter_map(|(port, far)| match far {
            Far::Switch(switch, far_port) => Some((*port, *switch, *far_port)),
            Far::Adapter(..) => None,
        })
    }

    /// Links to adapters: port and LIDs of the end port.
    pub fn adapters(&self) -> impl Iterator<Item = (u8, Range)> + '_ {
        self.links.iter().filter_map(|(port, far)| match far {
            Far::Adapter(_, range) => Some((*port, *range)),
            Far::Switch(..) => None,
        })
    }
}
