//! The links of all networks of a lab, and the nodes at their ends, for the drawing.

use sanloom_api::view::Plane;
use sanloom_fc::config::{EthernetNode, InfinibandNode, Node, Picos};
use sanloom_fc::san::{Lab, virtual_rates};

/// A node of any network.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(super) enum Place {
    /// A node of Fibre Channel, or a host or storage system of any network.
    Node(Node),
    /// An Ethernet switch.
    Ethernet(u16),
    /// An InfiniBand switch.
    Infiniband(u16),
}

/// A link of any network.
pub(super) struct Wire<'l> {
    pub name: &'l str,
    pub plane: Plane,
    pub places: [Place; 2],
    /// Names of the ports at its ends.
    pub ports: [String; 2],
    pub rate: String,
    /// Bytes per second of each direction.
    pub bytes_per_s: u64,
    pub propagation: Picos,
}

/// Returns the links: those of Fibre Channel, then of Ethernet, then of InfiniBand, each in the
/// order of the lab.
pub(super) fn wires(lab: &Lab) -> Vec<Wire<'_>> {
    let on_ethernet = virtual_rates(lab);
    let name = |node: Node| match node {
        Node::Switch(number) => &lab.switches[usize::from(number)].name,
        Node::Host(number) => &lab.hosts[usize::from(number)].name,
        Node::Storage(number) => &lab.storage[usize::from(number)].name,
        Node::Loop(number) => &lab.loops[usize::from(number)].name,
    };
    let fibre = (0..).zip(&lab.links).map(|(number, link)| {
        let (rate, bytes_per_s, plane) = match on_ethernet.get(&number) {
            Some(rate) => (rate.name().to_owned(), rate.bytes_per_s(), Plane::Virtual),
            None => (link.rate.to_string(), link.rate.bytes_per_s(), Plane::FibreChannel),
        };
        Wire {
            name: &link.name,
            plane,
            places: link.ends.map(|end| Place::Node(end.node)),
            ports: link.ends.map(|end| format!("{}:{}", name(end.node), end.port)),
            rate,
            bytes_per_s,
            propagation: link.propagation,
        }
    });
    let place = |node| match node {
        EthernetNode::Switch(number) => Place::Ethernet(number),
        EthernetNode::Host(number) => Place::Node(Node::Host(number)),
        EthernetNode::Storage(number) => Place::Node(Node::Storage(number)),
        EthernetNode::Forwarder(number) => Place::Node(Node::Switch(number)),
    };
    // The network that a lab without Ethernet is given has no place in its file.
    let drawn = lab.ethernet_links.iter().filter(|_| !lab.ethernet_is_implied());
    let ethernet = drawn.map(|link| Wire {
        name: &link.name,
        plane: Plane::Ethernet,
        places: link.ends.map(|end| place(end.node)),
        ports: link.ends.map(|end| end.name(lab)),
        rate: link.rate.name().to_owned(),
        bytes_per_s: link.rate.bytes_per_s(),
        propagation: link.propagation,
    });
    let place = |node| match node {
        InfinibandNode::Switch(number) => Place::Infiniband(number),
        InfinibandNode::Host(number) => Place::Node(Node::Host(number)),
        InfinibandNode::Storage(number) => Place::Node(Node::Storage(number)),
    };
    let infiniband = lab.infiniband.links.iter().map(|link| Wire {
        name: &link.name,
        plane: Plane::Infiniband,
        places: link.ends.map(|end| place(end.node)),
        ports: link.ends.map(|end| end.name(lab)),
        rate: link.rate.to_string(),
        bytes_per_s: link.rate.bytes_per_s(),
        propagation: link.propagation,
    });
    fibre.chain(ethernet).chain(infiniband).collect()
}
