//! Who can and may reach whom, worked out from the lab alone and by the plainest means.

use sanloom_core::config::{Lab, Node, ZoneDefault, ZoneMember};
use sanloom_wire::Wwpn;

/// An HBA and a storage port are linked to one fabric and no zone stands between them.
pub fn may_talk(lab: &Lab, (host, hba): (u16, u16), (storage, port): (u16, u16)) -> bool {
    let one = lab.hosts[usize::from(host)].hbas[usize::from(hba)].wwpn;
    let other = lab.storage[usize::from(storage)].ports[usize::from(port)].wwpn;
    let from = switch_of(lab, Node::Host(host), hba);
    let to = switch_of(lab, Node::Storage(storage), port);
    matches!((from, to), (Some(from), Some(to)) if fabric_of(lab, from).contains(&to)) && zoned(lab, one, other)
}

/// Some path leads from a host to a storage system.
pub(super) fn reaches(lab: &Lab, host: u16, storage: u16) -> bool {
    let hbas = lab.hosts[usize::from(host)].hbas.len() as u16;
    let ports = lab.storage[usize::from(storage)].ports.len() as u16;
    (0..hbas).any(|hba| (0..ports).any(|port| may_talk(lab, (host, hba), (storage, port))))
}

fn switch_of(lab: &Lab, node: Node, port: u16) -> Option<u16> {
    lab.links.iter().find_map(|link| match &link.ends {
        [own, far] | [far, own] if own.node == node && own.port == port => match far.node {
            Node::Switch(switch) => Some(switch),
            _ => None,
        },
        _ => None,
    })
}

/// All switches that can be reached from one.
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

/// Random labs zone by port name only, and have no peer zones.
fn zoned(lab: &Lab, one: Wwpn, other: Wwpn) -> bool {
    let zones = &lab.zoning.zones;
    let [one, other] = [one, other].map(ZoneMember::PortName);
    let in_some = |name: &ZoneMember| zones.iter().any(|zone| zone.members.contains(name));
    if !in_some(&one) && !in_some(&other) {
        return lab.zoning.default == ZoneDefault::Open;
    }
    zones.iter().any(|zone| zone.members.contains(&one) && zone.members.contains(&other))
}
