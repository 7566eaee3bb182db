//! Paths through the switches: equal-cost paths and bundles.

use super::line::Station;
use std::collections::{BTreeMap, VecDeque};

/// Next hops of one switch towards one interface. Each hop is a bundle of ports to one neighbour.
pub(super) type Hops = Vec<Vec<u16>>;

/// The next hops of all switches, by switch and interface.
#[derive(Clone, Debug, Default)]
pub(super) struct Routes {
    hops: Vec<Vec<Hops>>,
}

impl Routes {
    /// Finds the shortest paths over links that are up. Ports of links to the same neighbour form a
    /// bundle (IEEE 802.1AX), different neighbours at the same distance share by hash.
    pub fn new(switches: usize, interfaces: usize, links: impl Iterator<Item = [Station; 2]>) -> Routes {
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
        Routes { hops }
    }

    /// Returns the port of a switch for a flow towards an interface.
    #[inline]
    pub fn port(&self, switch: u16, to: u16, hash: u64) -> Option<u16> {
        let hops = self.hops.get(usize::from(switch))?.get(usize::from(to))?;
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
