//! Graph of a subnet: switches and channel adapters with numbered ports, and their links.

use std::collections::BTreeSet;
use std::fmt;

/// EUI-64 of a node or of an end port.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Default)]
pub struct Guid(pub u64);

impl Guid {
    /// Key by which OpenSM on a little-endian machine sorts GUIDs.
    ///
    /// Observed: OpenSM 3.3.23 orders GUIDs as numbers whose least significant byte counts most.
    /// LIDs and the order in which switches are visited follow.
    pub const fn sort_key(self) -> u64 {
        self.0.swap_bytes()
    }
}

impl fmt::Display for Guid {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:#018x}", self.0)
    }
}

/// Index of a node in its fabric.
pub type NodeId = usize;

/// Port of a node. Port 0 of a switch is its management port, which has no cable.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct PortId {
    /// Node that has the port.
    pub node: NodeId,
    /// Number of the port.
    pub port: u8,
}

/// Kind of a node.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Kind {
    /// Forwards packets; its one end port is port 0.
    Switch,
    /// Host or target channel adapter; each of its ports is an end port.
    Adapter,
}

/// Switch or channel adapter.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Node {
    /// Kind of the node.
    pub kind: Kind,
    /// Node GUID.
    pub guid: Guid,
    /// Far end of each port, from port 1.
    peers: Vec<Option<PortId>>,
}

/// Mistake in the description of a fabric.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
pub enum FabricError {
    /// Two nodes or end ports have one GUID.
    #[error("{0} is the GUID of two ports; give each its own")]
    DuplicateGuid(Guid),
    /// The port does not exist.
    #[error("node {} has no port {}", .0.node, .0.port)]
    NoSuchPort(PortId),
    /// The port has a cable already.
    #[error("port {} of node {} has two cables", .0.port, .0.node)]
    PortInUse(PortId),
    /// A cable joins two ports of one node.
    #[error("a cable joins node {0} to itself")]
    SelfLoop(NodeId),
    /// A node has no port, or more than 254.
    #[error("{0} ports; a node has 1 to 254")]
    PortCount(usize),
}

/// Nodes and links of a subnet.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Fabric {
    nodes: Vec<Node>,
    guids: BTreeSet<Guid>,
}

impl Node {
    /// Number of ports with a connector: 1 to this number.
    pub fn ports(&self) -> u8 {
        self.peers.len() as u8
    }

    /// Far end of the cable in a port.
    pub fn peer(&self, port: u8) -> Option<PortId> {
        *self.peers.get(usize::from(port).checked_sub(1)?)?
    }

    /// Ports with a cable, in ascending order, with their far ends.
    pub fn links(&self) -> impl Iterator<Item = (u8, PortId)> + '_ {
        (1..=self.ports()).filter_map(|port| Some((port, self.peer(port)?)))
    }

    /// GUID of an end port: that of the node for a switch, and the GUID of the node plus the port
    /// number for an adapter.
    pub fn port_guid(&self, port: u8) -> Guid {
        match self.kind {
            Kind::Switch => self.guid,
            Kind::Adapter => Guid(self.guid.0.wrapping_add(u64::from(port))),
        }
    }

    /// True for a switch.
    pub fn is_switch(&self) -> bool {
        self.kind == Kind::Switch
    }
}

impl Fabric {
    /// Adds a switch with ports 1 to `ports`.
    ///
    /// # Errors
    /// The GUID is in use, or the number of ports is out of range.
    pub fn switch(&mut self, guid: Guid, ports: usize) -> Result<NodeId, FabricError> {
        self.add(Kind::Switch, guid, ports)
    }

    /// Adds a channel adapter with ports 1 to `ports`.
    ///
    /// # Errors
    /// A GUID is in use, or the number of ports is out of range.
    pub fn adapter(&mut self, guid: Guid, ports: usize) -> Result<NodeId, FabricError> {
        self.add(Kind::Adapter, guid, ports)
    }

    fn add(&mut self, kind: Kind, guid: Guid, ports: usize) -> Result<NodeId, FabricError> {
        if !(1..=254).contains(&ports) {
            return Err(FabricError::PortCount(ports));
        }
        let node = Node { kind, guid, peers: vec![None; ports] };
        let end_ports = if kind == Kind::Adapter { ports as u8 } else { 0 };
        let guids = (0..=end_ports).map(|port| if port == 0 { guid } else { node.port_guid(port) });
        let guids: Vec<Guid> = guids.collect();
        if let Some(used) = guids.iter().find(|guid| self.guids.contains(guid)) {
            return Err(FabricError::DuplicateGuid(*used));
        }
        self.guids.extend(guids);
        self.nodes.push(node);
        Ok(self.nodes.len() - 1)
    }

    /// Joins two ports with a cable.
    ///
    /// # Errors
    /// A port does not exist or has a cable, or both ports belong to one node.
    pub fn connect(&mut self, a: PortId, b: PortId) -> Result<(), FabricError> {
        if a.node == b.node {
            return Err(FabricError::SelfLoop(a.node));
        }
        for port in [a, b] {
            let slot = self.nodes.get(port.node).filter(|node| (1..=node.ports()).contains(&port.port));
            let node = slot.ok_or(FabricError::NoSuchPort(port))?;
            if node.peer(port.port).is_some() {
                return Err(FabricError::PortInUse(port));
            }
        }
        self.nodes[a.node].peers[usize::from(a.port) - 1] = Some(b);
        self.nodes[b.node].peers[usize::from(b.port) - 1] = Some(a);
        Ok(())
    }

    /// Nodes in the order in which they were added; the index is the [`NodeId`].
    pub fn nodes(&self) -> &[Node] {
        &self.nodes
    }

    /// Returns a node.
    ///
    /// # Panics
    /// The fabric has no such node.
    pub fn node(&self, node: NodeId) -> &Node {
        &self.nodes[node]
    }

    /// Far end of the cable in a port.
    pub fn peer(&self, port: PortId) -> Option<PortId> {
        self.nodes.get(port.node)?.peer(port.port)
    }
}
