//! Reachability between nodes, computed from the lab alone with simple searches.

use sanloom_fc::config::{Node, ZoneMember, Zoning};
use sanloom_fc::san::Lab;
use sanloom_wire::Wwpn;

/// Returns whether an HBA and a storage port are linked to the same fabric and permitted by the
/// lab's zones.
pub fn may_talk(lab: &Lab, one: (u16, u16), other: (u16, u16)) -> bool {
    may_talk_under(lab, &lab.zoning, one, other)
}

/// Like [`may_talk`], with other zones.
pub(super) fn may_talk_under(lab: &Lab, zoning: &Zoning, (host, hba): (u16, u16), (storage, port): (u16, u16)) -> bool {
    let one = lab.hosts[usize::from(host)].hbas[usize::from(hba)].wwpn;
    let other = lab.storage[usize::from(storage)].ports[usize::from(port)].wwpn;
    let from = switch_of(lab, Node::Host(host), hba);
    let to = switch_of(lab, Node::Storage(storage), port);
    matches!((from, to), (Some(from), Some(to)) if fabric_of(lab, from).contains(&to)) && zoned(zoning, one, other)
}

/// Returns whether any path leads from a host to a storage system.
pub(super) fn reaches(lab: &Lab, host: u16, storage: u16) -> bool {
    let hbas = lab.hosts[usize::from(host)].hbas.len() as u16;
    let ports = lab.storage[usize::from(storage)].ports.len() as u16;
    (0..hbas).any(|hba| (0..ports).any(|port| may_talk(lab, (host, hba), (storage, port))))
}

/// Returns the switch to which a port, or the HBA that carries it, is linked.
pub(super) fn switch_of(lab: &Lab, node: Node, port: u16) -> Option<u16> {
    if let Node::Host(host) = node
        && let Some(machine) = lab.hosts[usize::from(host)].virtual_machine
    {
        let hbas = lab.hosts[usize::from(machine.on)].hbas.len();
        return switch_of(lab, Node::Host(machine.on), machine.carrier(port, hbas));
    }
    lab.links.iter().find_map(|link| match &link.ends {
        [own, far] | [far, own] if own.node == node && own.port == port => match far.node {
            Node::Switch(switch) => Some(switch),
            _ => None,
        },
        _ => None,
    })
}

/// Returns all switches that can be reached from `switch`.
pub(super) fn fabric_of(lab: &Lab, switch: u16) -> Vec<u16> {
    let mut reached = vec![switch];
    let mut next = 0;
    while let Some(&here) = reached.get(next) {
        next += 1;
        for link in &lab.links {
            if let (Node::Switch(a), Node::Switch(b)) = (link.ends[0].node, link.ends[1].node) {
                for (from, to) in [(a, b), (b, a)] {
                    if from == here && !reached.contains(&to) {
                        reached.push(to);
                    }
                }
            }
        }
    }
    reached
}

/// Returns whether a zone contains both names. Random labs zone by port name only and have no peer
/// zones.
fn zoned(zoning: &Zoning, one: Wwpn, other: Wwpn) -> bool {
    let zones = &zoning.zones;
    let [one, other] = [one, other].map(ZoneMember::PortName);
    let in_some = |name: &ZoneMember| zones.iter().any(|zone| zone.members.contains(name));
    if !in_some(&one) && !in_some(&other) {
        return zoning.default_is_open();
    }
    zones.iter().any(|zone| zone.members.contains(&one) && zone.members.contains(&other))
}
