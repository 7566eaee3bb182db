//! Ports that reach each other without a switch: direct links and arbitrated loops.
//!
//! A *junction* is what joins ports: a switch, a loop or a direct link. Junctions are numbered in
//! this order. Zones have no effect on loops and direct links.

use super::{AttachedPort, Lab};
use crate::arbitrated_loop::{LoopConfig, LoopPort, LoopRate, LoopTime};
use crate::config::{ArbitratedLoop, Link, LinkEnd, Node};
use crate::fabric::PortIdentity;
use sanloom_wire::arbitrated_loop::AlPa;
use sanloom_wire::{FcId, Wwnn, Wwpn};
use std::collections::BTreeSet;

impl Lab {
    /// Number of junctions.
    pub fn junctions(&self) -> usize {
        self.switches.len() + self.loops.len() + self.links.iter().filter(|link| link.is_direct()).count()
    }

    /// Returns whether a junction is a switch.
    pub fn is_switch(&self, junction: u16) -> bool {
        usize::from(junction) < self.switches.len()
    }

    /// Number of the group of joined junctions for each junction: the fabric of a switch as in
    /// [`Lab::fabrics_without`], and the junction itself for loops and direct links.
    pub fn junctions_without(&self, dark: &BTreeSet<u16>) -> Vec<u16> {
        let mut groups = self.fabrics_without(dark);
        groups.extend(groups.len() as u16..self.junctions() as u16);
        groups
    }

    /// Link of the FL_Port of a loop: a link to a switch. `None` for a private loop.
    pub fn fl_port_link(&self, number: u16) -> Option<usize> {
        let to_switch = |link: &Link| {
            let nodes = link.ends.map(|end| end.node);
            nodes.contains(&Node::Loop(number)) && nodes.iter().any(|node| matches!(node, Node::Switch(_)))
        };
        self.links.iter().position(to_switch)
    }

    /// Link of the FL_Port over which a port on a loop reaches the fabric. `None` for a port on a
    /// private loop, and for a private port on a public loop.
    pub fn fabric_link(&self, link: &Link) -> Option<usize> {
        let number = link.on_loop()?;
        let is_public = |of_lab: &ArbitratedLoop| !link.ends.iter().any(|end| of_lab.private.contains(&end.node));
        self.loops.get(usize::from(number)).is_some_and(is_public).then(|| self.fl_port_link(number)).flatten()
    }

    /// Every linked port of a host or storage system: [`Lab::attached_ports`] and the private ports
    /// on loops and direct links. `switch` and `fabric` of the latter are their junction, and
    /// they have no address before they log in.
    pub fn linked_ports(&self) -> Vec<AttachedPort> {
        let mut ports = self.attached_ports();
        let mut direct = (self.switches.len() + self.loops.len()) as u16;
        for (number, link) in self.links.iter().enumerate() {
            let ends: Vec<&LinkEnd> = link.ends.iter().filter(|end| !matches!(end.node, Node::Loop(_))).collect();
            let junction = if link.is_direct() {
                direct += 1;
                direct - 1
            } else if let Some(number) = link.on_loop().filter(|_| self.fabric_link(link).is_none()) {
                (self.switches.len() as u16).saturating_add(number)
            } else {
                continue;
            };
            for end in ends {
                let Some((node_name, port_name)) = self.names_of(end) else { continue };
                let identity = PortIdentity { port_id: FcId::ZERO, port_name, node_name, domain: 0, port: end.port };
                ports.push(AttachedPort::physical(end, number, (junction, junction), identity));
            }
        }
        ports
    }

    /// Times of a loop: its ports in the order of their numbers, without addresses. `None` if it
    /// has no links, or none with the rate of a loop.
    pub fn loop_config(&self, number: u16) -> Option<LoopConfig> {
        let of_lab = self.loops.get(usize::from(number))?;
        let mut links: Vec<(u16, &Link)> = Vec::new();
        for link in self.links.iter().filter(|link| link.loop_end() == Some(number)) {
            let at_loop = link.ends.iter().find(|end| end.node == Node::Loop(number))?;
            links.push((at_loop.port, link));
        }
        links.sort_by_key(|(port, _)| *port);
        let rate = LoopRate::of(links.first()?.1.rate)?;
        let next = links.iter().cycle().skip(1);
        let port = |((_, own), (_, next)): (&(u16, &Link), &(u16, &Link))| LoopPort {
            al_pa: None,
            delay_words: of_lab.delay_words,
            // From the port to the hub, and on to the next port.
            cable: LoopTime::from_ps((own.propagation.0 + next.propagation.0).max(1)),
            login_credit: of_lab.login_credit,
            ..LoopPort::new(AlPa::FL_PORT)
        };
        Some(LoopConfig { rate, ports: links.iter().zip(next).map(port).collect() })
    }

    /// Names of the port of a host or storage system.
    pub(super) fn names_of(&self, end: &LinkEnd) -> Option<(Wwnn, Wwpn)> {
        let port = usize::from(end.port);
        match end.node {
            Node::Host(i) => {
                let host = self.hosts.get(usize::from(i))?;
                Some((host.wwnn, host.hbas.get(port)?.wwpn))
            }
            Node::Storage(i) => {
                let storage = self.storage.get(usize::from(i))?;
                Some((storage.wwnn, storage.ports.get(port)?.wwpn))
            }
            Node::Switch(_) | Node::Loop(_) => None,
        }
    }
}

impl Link {
    /// Returns whether the link joins two ports of hosts and storage systems.
    pub fn is_direct(&self) -> bool {
        self.ends.iter().all(|end| matches!(end.node, Node::Host(_) | Node::Storage(_)))
    }

    /// Number of the loop at an end of the link.
    pub fn loop_end(&self) -> Option<u16> {
        self.ends.iter().find_map(|end| if let Node::Loop(number) = end.node { Some(number) } else { None })
    }

    /// Number of the loop that a port of a host or storage system is linked to.
    pub fn on_loop(&self) -> Option<u16> {
        match self.ends.map(|end| end.node) {
            [Node::Loop(number), Node::Host(_) | Node::Storage(_)]
            | [Node::Host(_) | Node::Storage(_), Node::Loop(number)] => Some(number),
            _ => None,
        }
    }
}
