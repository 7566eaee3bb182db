//! Paths through the switches: equal-cost paths and bundles.

use super::PacketLoss;
use super::line::Station;
use super::packet::{Packet, VLANS};
use std::collections::{BTreeMap, VecDeque};

/// Next hops of one switch towards one interface. Each hop is a bundle of ports to one neighbour.
pub(super) type Hops = Vec<Vec<u16>>;

/// The next hops of all switches, by switch and interface. VLANs that may use the same links share
/// one table (forwarding per VLAN, IEEE 802.1Q-2022 section 8.8.9).
#[derive(Clone, Debug, Default)]
pub(super) struct Routes {
    /// Rows of all tables, one behind the other; each has a row for each switch. The first table is
    /// that of all links.
    hops: Vec<Vec<Hops>>,
    /// First row of the table of each VLAN, by its number in the lab.
    first_row: [u32; VLANS],
}

impl Routes {
    /// Finds the shortest paths over links that are up. Ports of links to the same neighbour form a
    /// bundle (IEEE 802.1AX), different neighbours at the same distance share by hash. The mask of
    /// a link has the VLANs that may use it.
    pub fn new(switches: usize, interfaces: usize, links: &[([Station; 2], u32)]) -> Routes {
        let mut routes =
            Routes { hops: table(switches, interfaces, links.iter().map(|link| link.0)), first_row: [0; VLANS] };
        if links.iter().all(|link| link.1 == u32::MAX) {
            return routes;
        }
        // By the links of a VLAN: the first row of its table.
        let mut known = BTreeMap::from([(vec![true; links.len()], 0)]);
        for vlan in 0..VLANS {
            let usable: Vec<bool> = links.iter().map(|link| link.1 & 1 << vlan != 0).collect();
            routes.first_row[vlan] = *known.entry(usable).or_insert_with_key(|usable| {
                let own = links.iter().zip(usable).filter(|(_, is_usable)| **is_usable).map(|(link, _)| link.0);
                let first = routes.hops.len() as u32;
                routes.hops.extend(table(switches, interfaces, own));
                first
            });
        }
        routes
    }

    /// Returns why a switch has no port for a frame: only its VLAN has no path, or there is none at
    /// all.
    #[cold]
    pub fn obstacle(&self, switch: u16, to: u16) -> PacketLoss {
        let hops = self.hops.get(usize::from(switch)).and_then(|row| row.get(usize::from(to)));
        if hops.is_some_and(|hops| !hops.is_empty()) { PacketLoss::Vlan } else { PacketLoss::NoPath }
    }

    /// Returns the port of a switch for a frame. Links at the port accept its VLAN.
    #[inline]
    pub fn port(&self, switch: u16, packet: &Packet, hash: u64) -> Option<u16> {
        let row = self.first_row[usize::from(packet.vlan())] as usize + usize::from(switch);
        let hops = self.hops.get(row)?.get(usize::from(packet.to))?;
        let bundle = match hops.len() {
            0 => return None,
            1 => &hops[0],
            many => &hops[(hash >> 32) as usize % many],
        };
        match bundle.len() {
            1 => bundle.first().copied(),
            many => bundle.get(hash as u32 as usize % many.max(1)).copied(),
        }
    }
}

/// Returns a row for each switch, with the next hops of the shortest paths over some links.
fn table(switches: usize, interfaces: usize, links: impl Iterator<Item = [Station; 2]>) -> Vec<Vec<Hops>> {
    // For each switch, its neighbours with the ports to them.
    let mut neighbours: Vec<BTreeMap<u16, Vec<u16>>> = vec![BTreeMap::new(); switches];
    let mut attached: Vec<Option<(u16, u16)>> = vec![None; interfaces];
    for ends in links {
        for [here, there] in [ends, [ends[1], ends[0]]] {
            match (here, there) {
                (Station::Switch { switch, port }, Station::Switch { switch: other, .. }) => {
                    neighbours[usize::from(switch)].entry(other).or_default().push(port);
                }
                (Station::Switch { switch, port }, Station::Interface(interface)) => {
                    attached[usize::from(interface)] = Some((switch, port));
                }
                (Station::Interface(_), _) => {}
            }
        }
    }
    let mut hops = vec![vec![Hops::new(); interfaces]; switches];
    for (interface, place) in attached.iter().enumerate() {
        let &Some((last, port)) = place else { continue };
        let mut distance = vec![u32::MAX; switches];
        distance[usize::from(last)] = 0;
        let mut next = VecDeque::from([last]);
        while let Some(switch) = next.pop_front() {
            for &other in neighbours[usize::from(switch)].keys() {
                if distance[usize::from(other)] == u32::MAX {
                    distance[usize::from(other)] = distance[usize::from(switch)] + 1;
                    next.push_back(other);
                }
            }
        }
        for switch in 0..switches {
            hops[switch][interface] = match distance[switch] {
                0 => vec![vec![port]],
                u32::MAX => Hops::new(),
                own => {
                    let nearer = |other: &u16| distance[usize::from(*other)] + 1 == own;
                    neighbours[switch]
                        .iter()
                        .filter(|(other, _)| nearer(other))
                        .map(|(_, ports)| ports.clone())
                        .collect()
                }
            };
        }
    }
    hops
}
