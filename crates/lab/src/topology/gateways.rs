//! Gateways in the topology report: the ports between them and the storage behind them.

use super::part::Part;
use sanloom_fc::config::{BackEndTarget, FcpBackEnd, GatewayMode, MediumKind, Node};
use sanloom_fc::san::{AttachedPort, Lab, PermittedPairs, gateways};
use sanloom_wire::Wwpn;
use std::collections::BTreeSet;

/// Returns the port of a host or storage system with a port name.
fn port_of(lab: &Lab, name: Wwpn) -> Option<(Node, u16)> {
    let of_hosts = (0..).zip(&lab.hosts).find_map(|(number, host)| {
        let port = host.hbas.iter().position(|hba| hba.wwpn == name)?;
        Some((Node::Host(number), port as u16))
    });
    of_hosts.or_else(|| {
        (0..).zip(&lab.storage).find_map(|(number, storage)| {
            let port = storage.ports.iter().position(|port| port.wwpn == name)?;
            Some((Node::Storage(number), port as u16))
        })
    })
}

/// Returns the ports that a gateway needs for a host: its own ones, each with a target port.
fn ports_behind(lab: &Lab, (host, storage): (u16, u16)) -> Vec<FcpBackEnd> {
    let gateway = lab.live.gateways.get(&storage);
    if let Some((gateway, ports)) = gateway.and_then(|gateway| Some((gateway, gateway.through?))) {
        let own = gateway.hosts.iter().find(|own| own.host == host);
        let name = own.and_then(|own| lab.hosts.get(usize::from(own.port))?.hbas.first()).map(|hba| hba.wwpn);
        let initiator = match gateway.mode {
            GatewayMode::Proxy => ports.initiator,
            GatewayMode::Transparent => name.unwrap_or_default(),
        };
        return vec![FcpBackEnd { initiator, ..ports }];
    }
    if lab.live.medium(storage).kind != MediumKind::Volumes {
        return Vec::new();
    }
    let of_fabric = lab.live.back_ends.iter().filter_map(|back_end| match back_end.target {
        BackEndTarget::Fcp(ports) => Some(ports),
        BackEndTarget::Iscsi(_) => None,
    });
    of_fabric.collect()
}

/// Returns whether a host cannot use a gateway, because without some links a port of the gateway
/// has no path to the storage behind it. `apart`: links between switches that carry nothing.
pub(super) fn is_cut_behind(
    lab: &Lab,
    permitted: &PermittedPairs,
    apart: &BTreeSet<u16>,
    pair: (u16, u16),
    broken: &BTreeSet<usize>,
) -> bool {
    let needed = ports_behind(lab, pair);
    if needed.is_empty() {
        return false;
    }
    let dark = apart.iter().copied().chain(broken.iter().map(|link| *link as u16)).collect();
    let fabrics = lab.junctions_without(&dark);
    let fabric = |switch: u16| fabrics.get(usize::from(switch));
    let is_cut = |port: &AttachedPort| {
        broken.contains(&port.link) || port.fl_port_link.is_some_and(|link| broken.contains(&link))
    };
    let is_at = |port: &AttachedPort, place: Option<(Node, u16)>| place == Some((port.node, port.port));
    let has_path = |ports: &FcpBackEnd| {
        let [own, target] = [ports.initiator, ports.target].map(|name| port_of(lab, name));
        let own = permitted.hosts.iter().enumerate().filter(|(_, port)| is_at(port, own) && !is_cut(port));
        own.into_iter().any(|(number, host)| {
            permitted.partners(number).iter().any(|partner| {
                let storage = &permitted.storage[*partner as usize];
                is_at(storage, target) && !is_cut(storage) && fabric(host.switch) == fabric(storage.switch)
            })
        })
    };
    !needed.iter().all(has_path)
}

/// Returns the parts of Fibre Channel, and the gateways, whose loss may cut off hosts of gateways.
pub(super) fn candidates(lab: &Lab) -> BTreeSet<Part> {
    let mut parts = BTreeSet::new();
    for storage in gateways(lab) {
        parts.insert(Part::Gateway(storage));
        for host in 0..lab.hosts.len() as u16 {
            for FcpBackEnd { initiator, target } in ports_behind(lab, (host, storage)) {
                for (node, port) in [initiator, target].into_iter().filter_map(|name| port_of(lab, name)) {
                    parts.insert(match node {
                        Node::Host(host) => match lab.hosts[usize::from(host)].virtual_machine {
                            Some(machine) => Part::Hba(machine.on, machine.carrier(port, 1)),
                            None => Part::Hba(host, port),
                        },
                        Node::Storage(storage) => Part::StoragePort(storage, port),
                        Node::Switch(_) | Node::Loop(_) => continue,
                    });
                }
            }
        }
    }
    if !parts.is_empty() {
        parts.extend((0..lab.links.len()).map(Part::Link));
        parts.extend((0..lab.switches.len() as u16).map(Part::Switch));
    }
    parts
}
