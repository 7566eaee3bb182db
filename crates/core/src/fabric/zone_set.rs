//! The effective zones, indexed: [`ZoneSet`].

use crate::config::{ZoneDefault, Zoning};
use sanloom_wire::Wwpn;

/// The effective zones of a fabric, indexed by member.
///
/// Built once and shared between the switches of a process (`Arc<ZoneSet>`): its memory is that of the member lists, and
/// finding the zone-mates of a port costs what its own zones hold, however many others there are.
///
/// # Who may talk to whom
///
/// Two ports with a zone in common may. Two ports that are in no zone may if the default is open. A port in a zone and
/// one in none may not.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ZoneSet {
    open_default: bool,
    /// Every port name in a zone, sorted. Members and zones below are indices.
    names: Vec<Wwpn>,
    zones_of: Lists,
    members_of: Lists,
}

/// A port name that is in a zone, by its place in the [`ZoneSet`]: found once, then compared without a search.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct ZoneMember(u32);

/// Lists of numbers behind each other, sorted within each list.
#[derive(Clone, PartialEq, Eq, Debug)]
struct Lists {
    /// One more than there are lists.
    starts: Vec<u32>,
    items: Vec<u32>,
}

impl Lists {
    /// Of (list, item) pairs, which are sorted and freed of duplicates here.
    fn new(lists: usize, mut pairs: Vec<(u32, u32)>) -> Lists {
        pairs.sort_unstable();
        pairs.dedup();
        let start_of = |list: usize| pairs.partition_point(|(of, _)| (*of as usize) < list) as u32;
        Lists { starts: (0..=lists).map(start_of).collect(), items: pairs.into_iter().map(|(_, item)| item).collect() }
    }

    fn of(&self, list: u32) -> &[u32] {
        let list = list as usize;
        &self.items[self.starts[list] as usize..self.starts[list + 1] as usize]
    }
}

impl ZoneSet {
    /// Indexes the zones. A member that a zone names twice counts once.
    pub fn new(zoning: &Zoning) -> ZoneSet {
        let mut names: Vec<Wwpn> = zoning.zones.iter().flat_map(|zone| zone.members.iter().copied()).collect();
        names.sort_unstable();
        names.dedup();
        let mut pairs = Vec::new();
        for (number, zone) in (0u32..).zip(&zoning.zones) {
            for member in &zone.members {
                if let Ok(index) = names.binary_search(member) {
                    pairs.push((index as u32, number));
                }
            }
        }
        let turned = pairs.iter().map(|(name, zone)| (*zone, *name)).collect();
        ZoneSet {
            open_default: zoning.default == ZoneDefault::Open,
            zones_of: Lists::new(names.len(), pairs),
            members_of: Lists::new(zoning.zones.len(), turned),
            names,
        }
    }

    /// Everybody may talk to everybody: nothing is zoned and the default is open. No table is needed then.
    pub fn permits_all(&self) -> bool {
        self.open_default && self.names.is_empty()
    }

    /// Ports in no zone may talk to each other.
    pub fn open_default(&self) -> bool {
        self.open_default
    }

    /// The port is in a zone.
    pub fn is_zoned(&self, port: Wwpn) -> bool {
        self.index(port).is_some()
    }

    /// The two ports may talk to each other; a port may always talk to itself.
    pub fn permits(&self, a: Wwpn, b: Wwpn) -> bool {
        if a == b || self.permits_all() {
            return true;
        }
        self.members_permitted(self.member(a), self.member(b))
    }

    /// The place of a port name, nothing for one in no zone.
    pub fn member(&self, port: Wwpn) -> Option<ZoneMember> {
        self.index(port).map(ZoneMember)
    }

    /// As [`permits`](ZoneSet::permits), for two different ports of this set.
    pub fn members_permitted(&self, a: Option<ZoneMember>, b: Option<ZoneMember>) -> bool {
        match (a, b) {
            (Some(a), Some(b)) => share(self.zones_of.of(a.0), self.zones_of.of(b.0)),
            (None, None) => self.open_default,
            _ => false,
        }
    }

    /// The other members of all zones of the port, sorted, each once; nothing for a port in no zone. The second value is
    /// the number of members looked at.
    pub fn mates(&self, port: Wwpn) -> (Vec<Wwpn>, usize) {
        let Some(index) = self.index(port) else {
            return (Vec::new(), 0);
        };
        let mut mates = Vec::with_capacity(self.mates_bound(port));
        for &zone in self.zones_of.of(index) {
            mates.extend_from_slice(self.members_of.of(zone));
        }
        let looked_at = mates.len();
        mates.sort_unstable();
        mates.dedup();
        mates.retain(|&mate| mate != index);
        (mates.into_iter().map(|mate| self.names[mate as usize]).collect(), looked_at)
    }

    /// The number of members that [`mates`](ZoneSet::mates) looks at, without looking at them.
    pub fn mates_bound(&self, port: Wwpn) -> usize {
        let zones = self.index(port).map_or(&[][..], |index| self.zones_of.of(index));
        zones.iter().map(|&zone| self.members_of.of(zone).len()).sum()
    }

    fn index(&self, port: Wwpn) -> Option<u32> {
        self.names.binary_search(&port).ok().map(|index| index as u32)
    }
}

/// Two sorted lists have an item in common.
fn share(mut a: &[u32], mut b: &[u32]) -> bool {
    while let ([first_a, rest_a @ ..], [first_b, rest_b @ ..]) = (a, b) {
        match first_a.cmp(first_b) {
            std::cmp::Ordering::Less => a = rest_a,
            std::cmp::Ordering::Greater => b = rest_b,
            std::cmp::Ordering::Equal => return true,
        }
    }
    false
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::Zone;
    use proptest::prelude::*;

    fn zoning(zones: &[Vec<u64>], default: ZoneDefault) -> Zoning {
        let zone = |(n, members): (usize, &Vec<u64>)| Zone {
            name: format!("z{n}"),
            members: members.iter().copied().map(Wwpn).collect(),
        };
        Zoning { zones: zones.iter().enumerate().map(zone).collect(), default }
    }

    /// The rule in words, on the zones as they were written.
    fn permits(zones: &[Vec<u64>], open: bool, a: u64, b: u64) -> bool {
        let zoned = |port| zones.iter().any(|zone| zone.contains(&port));
        let together = zones.iter().any(|zone| zone.contains(&a) && zone.contains(&b));
        a == b || together || (open && !zoned(a) && !zoned(b))
    }

    proptest! {
        #[test]
        fn permits_and_mates_follow_the_rule(
            zones in prop::collection::vec(prop::collection::vec(0u64..8, 0..5), 0..6),
            open in any::<bool>(),
        ) {
            let default = if open { ZoneDefault::Open } else { ZoneDefault::Closed };
            let set = ZoneSet::new(&zoning(&zones, default));
            for a in 0..9 {
                for b in 0..9 {
                    prop_assert_eq!(set.permits(Wwpn(a), Wwpn(b)), permits(&zones, open, a, b));
                }
                let zoned = set.is_zoned(Wwpn(a));
                let expected: Vec<Wwpn> = (0..9)
                    .filter(|b| zoned && *b != a && permits(&zones, open, a, *b))
                    .map(Wwpn)
                    .collect();
                let (mates, looked_at) = set.mates(Wwpn(a));
                prop_assert_eq!(mates, expected);
                prop_assert_eq!(looked_at, set.mates_bound(Wwpn(a)));
            }
        }
    }

    #[test]
    fn no_zones_and_an_open_default_permit_all() {
        assert!(ZoneSet::new(&zoning(&[], ZoneDefault::Open)).permits_all());
        assert!(!ZoneSet::new(&zoning(&[], ZoneDefault::Closed)).permits_all());
        assert!(!ZoneSet::new(&zoning(&[vec![1]], ZoneDefault::Open)).permits_all());
    }
}
