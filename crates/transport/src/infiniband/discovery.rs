//! Discovery of a subnet by directed routes, breadth first from the port of the manager.

use super::fabric::{Fabric, NodeId, PortId};

/// Longest directed route: the initial path of a directed-route SMP has entries 1 to 63 (IBA volume
/// 1, 14.2.1.2).
pub const MAX_HOPS: usize = 63;

/// Node that the manager has reached.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Discovered {
    /// Node in the fabric.
    pub node: NodeId,
    /// Port through which the first probe arrived; of the manager's own node, its port.
    pub arrival: u8,
    /// Egress port of each node on the directed route. Empty for the manager's own node.
    pub route: Vec<u8>,
}

/// Returns the nodes that directed routes from `manager` reach, in the order of their discovery.
///
/// An adapter answers but forwards no directed route, so only switches are searched further, port
/// by port in ascending order.
pub fn discover(fabric: &Fabric, manager: PortId) -> Vec<Discovered> {
    let mut seen = vec![false; fabric.nodes().len()];
    let Some(own) = fabric.nodes().get(manager.node) else { return Vec::new() };
    seen[manager.node] = true;
    let mut found = vec![Discovered { node: manager.node, arrival: manager.port, route: Vec::new() }];
    let first = if own.is_switch() { 0..0 } else { manager.port..manager.port.saturating_add(1) };
    let mut next = 0;
    while let Some(at) = found.get(next) {
        let node = fabric.node(at.node);
        let ports = match (node.is_switch(), next) {
            (true, _) => 1..node.ports() + 1,
            (false, 0) => first.clone(),
            (false, _) => 0..0,
        };
        let route = at.route.clone();
        next += 1;
        if route.len() == MAX_HOPS {
            continue;
        }
        for port in ports {
            let Some(peer) = node.peer(port) else { continue };
            if !std::mem::replace(&mut seen[peer.node], true) {
                let route = route.iter().copied().chain([port]).collect();
                found.push(Discovered { node: peer.node, arrival: peer.port, route });
            }
        }
    }
    found
}
