//! Ports of hosts and storage systems.

use super::Shown;
use crate::view::{Attachment, NodeKind, NodeRow, NodesView};
use sanloom_fc::config::{Link, LinkEnd, Node};
use sanloom_wire::{FcId, Wwpn};

/// State of an N_Port that the lab does not determine.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct NodeState {
    /// Address; zero without a login.
    pub port_id: FcId,
    /// The link carries light; `None`: unknown.
    pub light: Option<bool>,
    /// AL_PA of a participating port of a loop.
    pub al_pa: Option<u8>,
    /// Index in the position map of the loop.
    pub position: Option<u32>,
    /// HBA that carries a virtual port.
    pub carrier: Option<LinkEnd>,
}

/// An N_Port whose state is requested.
#[derive(Clone, Copy, Debug)]
pub struct NodePort {
    /// Host or storage system.
    pub node: Node,
    /// Number of the port at its node.
    pub port: u16,
    /// World-wide port name.
    pub wwpn: Wwpn,
    /// Index in the lab of the link, with the index of this end.
    pub link: Option<(usize, usize)>,
}

impl Shown<'_> {
    /// Builds the table of the ports of hosts and storage systems. With [`Shown::on`], it has the
    /// ports that are attached to that switch, directly or by a loop.
    pub fn nodes(&self, state: impl Fn(&NodePort) -> NodeState) -> NodesView {
        let mut nodes = Vec::new();
        for (host, number) in self.lab.hosts.iter().zip(0..) {
            for (hba, port) in host.hbas.iter().zip(0..) {
                let port = self.node_port(Node::Host(number), port, hba.wwpn);
                nodes.extend(self.node_row(&port, (&host.name, NodeKind::Host), &state(&port)));
            }
        }
        for (storage, number) in self.lab.storage.iter().zip(0..) {
            for (config, port) in storage.ports.iter().zip(0..) {
                let port = self.node_port(Node::Storage(number), port, config.wwpn);
                nodes.extend(self.node_row(&port, (&storage.name, NodeKind::Storage), &state(&port)));
            }
        }
        NodesView { nodes }
    }

    fn node_port(&self, node: Node, port: u16, wwpn: Wwpn) -> NodePort {
        let ends = self
            .lab
            .links
            .iter()
            .enumerate()
            .flat_map(|(number, link)| link.ends.iter().enumerate().map(move |(side, end)| (end, (number, side))));
        let link = ends.into_iter().find(|(end, _)| end.node == node && end.port == port).map(|(_, place)| place);
        NodePort { node, port, wwpn, link }
    }

    fn node_row(&self, port: &NodePort, (name, kind): (&str, NodeKind), state: &NodeState) -> Option<NodeRow> {
        let link = port.link.map(|(number, _)| &self.lab.links[number]);
        let far = port.link.map(|(number, side)| self.lab.links[number].ends[1 - side]);
        let neighbour = state.carrier.or(far);
        let is_attached = |end: LinkEnd, on| !self.stays_private(port.node, end) && self.leads_to(end, on);
        if !self.on.is_none_or(|on| neighbour.is_some_and(|end| is_attached(end, on))) {
            return None;
        }
        let attachment = neighbour.map(|end| match end.node {
            _ if state.carrier.is_some() => Attachment::Virtual,
            Node::Switch(_) => Attachment::Switch,
            Node::Loop(_) => Attachment::Loop,
            Node::Host(_) | Node::Storage(_) => Attachment::Direct,
        });
        Some(NodeRow {
            node: name.to_owned(),
            kind,
            port: format!("{name}:{}", port.port),
            port_name: port.wwpn.to_string(),
            attachment,
            attached: neighbour.map(|end| self.port(&end)),
            link: link.map(|link| link.name.clone()),
            rate: port.link.map(|(number, _)| self.rate(number).to_owned()),
            light: state.light.filter(|_| link.is_some()),
            port_id: (state.port_id != FcId::ZERO).then(|| state.port_id.to_string()),
            al_pa: state.al_pa.map(|al_pa| format!("{al_pa:02x}")),
            position: state.position,
        })
    }

    /// Returns whether a port does not use the FL_Port of its loop.
    fn stays_private(&self, node: Node, neighbour: LinkEnd) -> bool {
        let Node::Loop(number) = neighbour.node else { return false };
        self.lab.loops[usize::from(number)].private.contains(&node)
    }

    /// Returns whether the neighbour of an N_Port is a switch, or leads to it: a loop with an
    /// FL_Port there, or an HBA that is attached to it.
    fn leads_to(&self, neighbour: LinkEnd, switch: u16) -> bool {
        let joins = |link: &&Link, node: Node| link.ends.iter().any(|end| end.node == node);
        let is_end =
            |link: &&Link, end: LinkEnd| link.ends.iter().any(|other| (other.node, other.port) == (end.node, end.port));
        let by_link = |of: &dyn Fn(&&Link) -> bool| {
            self.lab.links.iter().filter(of).any(|link| link.ends.iter().any(|end| end.node == Node::Switch(switch)))
        };
        match neighbour.node {
            Node::Switch(number) => number == switch,
            Node::Loop(_) => by_link(&|link| joins(link, neighbour.node)),
            Node::Host(_) => by_link(&|link| is_end(link, neighbour)),
            Node::Storage(_) => false,
        }
    }
}
