//! Ports of hosts and storage with all attributes by which zones can name them:
//! [`Lab::attached_ports`].

use super::Lab;
use crate::config::{Link, LinkEnd, Node};
use crate::fabric::PortIdentity;
use crate::switch::Addressing;
use sanloom_wire::FcId;
use std::collections::{BTreeMap, BTreeSet};

/// Port of a host or storage system that is linked to a switch, or a virtual port on such a port.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct AttachedPort {
    /// Host or storage system that owns the port.
    pub node: Node,
    /// Port number within the node.
    pub port: u16,
    /// True for a virtual port (N_Port_ID virtualisation).
    pub is_virtual: bool,
    /// Host or storage system whose physical port carries it: the hypervisor of a virtual machine,
    /// otherwise `node`.
    pub carrier: Node,
    /// Physical port of `carrier`.
    pub carrier_port: u16,
    /// Index of the link of the port: to the switch or to a loop.
    pub link: usize,
    /// Index of the link from the loop to the switch, for a port on a public loop.
    pub fl_port_link: Option<usize>,
    /// Index of the switch; for a port on a loop or a direct link, see [`Lab::linked_ports`].
    pub switch: u16,
    /// Fabric number of the switch: the smallest index of a switch in the fabric.
    pub fabric: u16,
    /// Names, switch port, and the address that the port gets at its fabric login. The address is
    /// zero if it depends on the order of logins: for virtual ports, and for flat addressing
    /// without a persistent address.
    pub identity: PortIdentity,
}

impl AttachedPort {
    /// A physical port at the end of a link. `junction`: its `switch` and `fabric`.
    pub(super) fn physical(
        end: &LinkEnd,
        link: usize,
        (switch, fabric): (u16, u16),
        identity: PortIdentity,
    ) -> AttachedPort {
        let (node, port) = (end.node, end.port);
        AttachedPort {
            node,
            port,
            is_virtual: false,
            carrier: node,
            carrier_port: port,
            link,
            fl_port_link: None,
            switch,
            fabric,
            identity,
        }
    }
}

impl Lab {
    /// Every linked port of a host or storage system, in the order of the links, then the ports of
    /// virtual machines at their initial hypervisors. Links with invalid indices are ignored.
    pub fn attached_ports(&self) -> Vec<AttachedPort> {
        let fabrics = self.fabrics();
        let attached = |(number, link): (usize, &Link)| {
            let [a, b] = &link.ends;
            let (end, switch, at, fl_port_link) = match (a.node, b.node) {
                (Node::Switch(s), Node::Host(_) | Node::Storage(_)) => (b, s, a.port, None),
                (Node::Host(_) | Node::Storage(_), Node::Switch(s)) => (a, s, b.port, None),
                (Node::Loop(_), _) | (_, Node::Loop(_)) => {
                    let own = if matches!(a.node, Node::Loop(_)) { b } else { a };
                    let up = self.fabric_link(link)?;
                    let to_switch = self.links[up].ends.iter().find_map(|end| match end.node {
                        Node::Switch(switch) => Some((switch, end.port)),
                        _ => None,
                    });
                    let (switch, at) = to_switch?;
                    (own, switch, at, Some(up))
                }
                _ => return None,
            };
            let (node_name, port_name) = self.names_of(end)?;
            let config = self.switches.get(usize::from(switch))?;
            // The area of an F_Port is its port number; without a valid area the switch allocates
            // no address.
            let area = u8::try_from(at).ok().filter(|_| config.policy.addressing == Addressing::AreaPerPort);
            // On a loop, the last byte is the AL_PA.
            let usual = area.filter(|_| fl_port_link.is_none());
            let usual = usual.map_or(FcId::ZERO, |area| FcId::from_parts(config.domain, area, 0));
            let port_id = config.policy.persistent.get(&port_name).copied().unwrap_or(usual);
            let identity = PortIdentity { port_id, port_name, node_name, domain: config.domain, port: at };
            let junction = (switch, *fabrics.get(usize::from(switch))?);
            Some(AttachedPort { fl_port_link, ..AttachedPort::physical(end, number, junction, identity) })
        };
        let mut ports: Vec<AttachedPort> = self.links.iter().enumerate().filter_map(attached).collect();
        self.attach_virtual(&mut ports);
        ports
    }

    /// Adds the ports of virtual machines to those of their hypervisors.
    fn attach_virtual(&self, ports: &mut Vec<AttachedPort>) {
        let of_host = |port: &AttachedPort| match port.node {
            Node::Host(host) => Some(((host, port.port), *port)),
            Node::Storage(_) | Node::Switch(_) | Node::Loop(_) => None,
        };
        let carriers: BTreeMap<(u16, u16), AttachedPort> = ports.iter().filter_map(of_host).collect();
        for (host, number) in self.hosts.iter().zip(0..) {
            let Some(vm) = host.virtual_machine else { continue };
            let hbas = self.hosts.get(usize::from(vm.on)).map_or(0, |hypervisor| hypervisor.hbas.len());
            for (hba, port) in host.hbas.iter().zip(0..) {
                let Some(carrier) = carriers.get(&(vm.on, vm.carrier(port, hbas))) else { continue };
                let switch = self.switches.get(usize::from(carrier.switch));
                let persistent = switch.and_then(|switch| switch.policy.persistent.get(&hba.wwpn));
                let port_id = persistent.copied().unwrap_or(FcId::ZERO);
                let identity = PortIdentity { port_id, port_name: hba.wwpn, node_name: host.wwnn, ..carrier.identity };
                ports.push(AttachedPort { node: Node::Host(number), port, is_virtual: true, identity, ..*carrier });
            }
        }
    }

    /// Fabric number of each switch: the smallest index of a switch in its fabric.
    pub fn fabrics(&self) -> Vec<u16> {
        self.fabrics_without(&BTreeSet::new())
    }

    /// As [`Lab::fabrics`], but without the links in [`Lab::dark_links`].
    pub fn fabrics_at_start(&self) -> Vec<u16> {
        self.fabrics_without(&self.dark_links())
    }

    /// As [`Lab::fabrics`], but without the links in `dark`.
    pub fn fabrics_without(&self, dark: &BTreeSet<u16>) -> Vec<u16> {
        let mut parent: Vec<u16> = (0..self.switches.len()).map(|i| i as u16).collect();
        fn root(parent: &mut [u16], mut i: u16) -> u16 {
            while parent[usize::from(i)] != i {
                let above = parent[usize::from(parent[usize::from(i)])];
                parent[usize::from(i)] = above;
                i = above;
            }
            i
        }
        for (_, link) in (0..).zip(&self.links).filter(|(number, _)| !dark.contains(number)) {
            if let [Node::Switch(a), Node::Switch(b)] = link.ends.map(|e| e.node) {
                let (a, b) = (root(&mut parent, a), root(&mut parent, b));
                parent[usize::from(a.max(b))] = a.min(b);
            }
        }
        (0..parent.len() as u16).map(|i| root(&mut parent, i)).collect()
    }
}
