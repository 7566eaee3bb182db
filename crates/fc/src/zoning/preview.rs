//! Pairs of ports that gain or lose access to each other: [`Preview`].

use crate::config::{ZoneMember, Zoning};
use crate::fabric::{PortIdentity, ZoneMembership, ZoneSet};
use std::collections::BTreeMap;

/// Effect of new effective zones on the ports of a fabric. Pairs are port indices, the smaller
/// first; lists are sorted.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Preview {
    /// Pairs that are permitted only afterwards.
    pub gains: Vec<(u32, u32)>,
    /// Pairs that are permitted only before.
    pub loses: Vec<(u32, u32)>,
    /// Number of pairs that are permitted before and afterwards.
    pub unchanged: u64,
    /// Number of ports that neither gain nor lose access.
    pub unaffected_ports: usize,
}

impl Preview {
    /// Compares two zonings for these ports.
    ///
    /// The cost is proportional to the number of pairs that zones permit, plus the pairs of the
    /// default zone that change. An unchanged default zone costs nothing.
    pub fn between(before: &Zoning, after: &Zoning, ports: &[PortIdentity]) -> Preview {
        let sides = [Side::new(before, ports), Side::new(after, ports)];
        let [both, only_before, only_after] = groups(&sides);
        let stay = both.len() as u64;
        let mut preview = Preview { unchanged: stay * stay.saturating_sub(1) / 2, ..Preview::default() };
        let mut affected = vec![false; ports.len()];
        for port in 0..ports.len() as u32 {
            let [old, new] = [(&sides[0], &only_before), (&sides[1], &only_after)].map(|(side, only)| {
                let in_both = sides.iter().all(|side| side.in_default_zone(port));
                let mut mates = match (side.in_default_zone(port), in_both) {
                    (true, true) => only.clone(),
                    (true, false) => [only.as_slice(), &both].concat(),
                    (false, _) => side.zone_mates(port),
                };
                mates.retain(|mate| *mate > port);
                mates.sort_unstable();
                mates.dedup();
                mates
            });
            let mut change = |mate: u32, list: fn(&mut Preview) -> &mut Vec<(u32, u32)>| {
                list(&mut preview).push((port, mate));
                affected[port as usize] = true;
                affected[mate as usize] = true;
            };
            new.iter().filter(|mate| old.binary_search(mate).is_err()).for_each(|mate| change(*mate, |p| &mut p.gains));
            old.iter().filter(|mate| new.binary_search(mate).is_err()).for_each(|mate| change(*mate, |p| &mut p.loses));
            preview.unchanged += old.iter().filter(|mate| new.binary_search(mate).is_ok()).count() as u64;
        }
        preview.unaffected_ports = affected.iter().filter(|affected| !**affected).count();
        preview
    }
}

/// Zones of one side and the membership of each port.
struct Side {
    zones: ZoneSet,
    memberships: Vec<ZoneMembership>,
    by_key: BTreeMap<ZoneMember, Vec<u32>>,
}

impl Side {
    fn new(zoning: &Zoning, ports: &[PortIdentity]) -> Side {
        let zones = ZoneSet::new(zoning);
        let memberships = ports.iter().map(|port| zones.membership(port)).collect();
        let mut by_key: BTreeMap<ZoneMember, Vec<u32>> = BTreeMap::new();
        for (number, port) in (0..).zip(ports) {
            for key in port.keys() {
                by_key.entry(key).or_default().push(number);
            }
        }
        Side { zones, memberships, by_key }
    }

    /// Returns true if the port is in the open default zone. All ports for which it holds may
    /// communicate.
    fn in_default_zone(&self, port: u32) -> bool {
        self.zones.open_default() && !self.memberships[port as usize].is_zoned()
    }

    fn zone_mates(&self, port: u32) -> Vec<u32> {
        let (mates, _) = self.zones.mates(&self.memberships[port as usize]);
        mates.iter().filter_map(|mate| self.by_key.get(mate)).flatten().copied().collect()
    }
}

/// Ports in the default zone of both sides, of the first only, and of the second only.
fn groups(sides: &[Side; 2]) -> [Vec<u32>; 3] {
    let mut groups: [Vec<u32>; 3] = Default::default();
    for port in 0..sides[0].memberships.len() as u32 {
        match [0, 1].map(|side| sides[side].in_default_zone(port)) {
            [true, true] => groups[0].push(port),
            [true, false] => groups[1].push(port),
            [false, true] => groups[2].push(port),
            [false, false] => {}
        }
    }
    groups
}
