//! The table of the ports of hosts and storage systems.

use crate::world::{Owner, World};
use sanloom_api::view::NodesView;
use sanloom_api::view::build::{NodePort, NodeState, Shown};
use sanloom_fc::config::{LinkEnd, Node};

pub(super) fn nodes(world: &World, shown: &Shown<'_>) -> NodesView {
    shown.nodes(|port| state(world, port))
}

fn state(world: &World, port: &NodePort) -> NodeState {
    let owner = match port.node {
        Node::Host(host) => Owner::Host { host, hba: port.port },
        Node::Storage(storage) => Owner::Storage { storage, port: port.port },
        Node::Switch(_) | Node::Loop(_) => return NodeState::default(),
    };
    let Some(nport) = world.nports.nodes.iter().find(|nport| nport.owner == owner) else {
        return NodeState::default();
    };
    let at_loop = port.link.map(|(link, side)| world.lab.links[link].ends[1 - side]);
    let at_loop =
        at_loop.and_then(|end| if let Node::Loop(number) = end.node { Some((number, end.port)) } else { None });
    let carrier = nport.is_virtual.then(|| match world.nports.nodes[usize::from(nport.plane)].owner {
        Owner::Host { host, hba } => LinkEnd { node: Node::Host(host), port: hba, bb_credit: 0, bb_sc_n: 0 },
        Owner::Storage { storage, port } => LinkEnd { node: Node::Storage(storage), port, bb_credit: 0, bb_sc_n: 0 },
    });
    NodeState {
        port_id: nport.port_id,
        light: port.link.map(|(link, _)| world.net.fc.link_is_up(link as u16)),
        al_pa: at_loop.and_then(|(number, port)| world.loops.address(number, port)).map(|al_pa| al_pa.value()),
        position: at_loop.and_then(|(number, port)| world.loops.position(number, port)),
        carrier,
    }
}
