//! Tests of the set against a direct implementation of the rule.

use super::*;
use crate::config::{Zone, ZoneDefault};
use proptest::prelude::*;

/// Two ports of each of two nodes on each of two switches, two of them behind one switch port, and
/// one unrelated port.
fn ports() -> Vec<PortIdentity> {
    let port = |n: u32| PortIdentity {
        port_id: FcId::from_parts(1 + (n / 4) as u8, (n % 4 / 2) as u8, (n % 2) as u8),
        port_name: Wwpn(0x10 + u64::from(n)),
        node_name: Wwnn(0x20 + u64::from(n / 2 % 3)),
        domain: 1 + (n / 4) as u8,
        port: (n % 4 / 2) as u16,
    };
    (0..9).map(port).collect()
}

fn any_member() -> impl Strategy<Value = ZoneMember> {
    prop_oneof![
        4 => (0x10u64..0x19).prop_map(|name| ZoneMember::PortName(Wwpn(name))),
        1 => (0x20u64..0x24).prop_map(|name| ZoneMember::NodeName(Wwnn(name))),
        1 => (1u8..4, 0u16..3).prop_map(|(domain, port)| ZoneMember::DomainPort { domain, port }),
        1 => (0usize..9).prop_map(|n| ZoneMember::PortId(ports()[n].port_id)),
    ]
}

pub(crate) fn any_zone() -> impl Strategy<Value = Zone> {
    let members = || prop::collection::vec(any_member(), 0..5);
    let principals = prop_oneof![2 => Just(Vec::new()), 1 => prop::collection::vec(any_member(), 1..3)];
    (members(), principals).prop_map(|(members, principals)| Zone { name: "zone".into(), members, principals })
}

fn named(port: &PortIdentity, members: &[ZoneMember]) -> bool {
    members.iter().any(|member| match *member {
        ZoneMember::PortName(name) => name == port.port_name,
        ZoneMember::NodeName(name) => name == port.node_name,
        ZoneMember::DomainPort { domain, port: n } => domain == port.port_id.domain() && n == port.port,
        ZoneMember::PortId(id) => id == port.port_id,
    })
}

/// Direct implementation of the rule on the original zones.
fn permits(zones: &[Zone], open: bool, a: &PortIdentity, b: &PortIdentity) -> bool {
    let zoned = |port| zones.iter().any(|zone| named(port, &zone.members) || named(port, &zone.principals));
    let together = |zone: &Zone| match zone.principals.is_empty() {
        true => named(a, &zone.members) && named(b, &zone.members),
        false => {
            let serves = |one, other| named(one, &zone.principals) && named(other, &zone.members);
            serves(a, b) || serves(b, a)
        }
    };
    a == b || zones.iter().any(together) || (open && !zoned(a) && !zoned(b))
}

proptest! {
    #[test]
    fn permissions_memberships_and_mates_follow_the_rule(
        zones in prop::collection::vec(any_zone(), 0..6),
        default in prop::sample::select(&[ZoneDefault::Open, ZoneDefault::OpenWithoutZones, ZoneDefault::Closed][..]),
    ) {
        let open = default == ZoneDefault::Open || default == ZoneDefault::OpenWithoutZones && zones.is_empty();
        let set = ZoneSet::new(&Zoning { zones: zones.clone(), default });
        let ports = ports();
        for a in &ports {
            let membership = set.membership(a);
            prop_assert_eq!(membership.is_zoned(), set.is_zoned(a));
            let (mates, examined) = set.mates(&membership);
            prop_assert_eq!(examined, set.mates_bound(&membership));
            prop_assert!(mates.is_sorted_by(|one, next| one < next));
            for b in &ports {
                let allowed = permits(&zones, open, a, b);
                prop_assert_eq!(set.permits(a, b), allowed);
                if a != b {
                    prop_assert_eq!(set.permitted(&membership, &set.membership(b)), allowed);
                    // Mates come only from zones; the open default zone has no list.
                    let by_zone = allowed && set.is_zoned(a);
                    prop_assert_eq!(mates.iter().any(|mate| b.is(mate)), by_zone);
                }
            }
            for (index, zone) in (0..).zip(&zones) {
                let role = set.roles(&membership).find(|role| role.zone == index);
                let (principal, member) = (named(a, &zone.principals), named(a, &zone.members));
                let expected = match zone.is_peer() {
                    true => (principal, member),
                    false => (member, member),
                };
                prop_assert_eq!(role.map_or((false, false), |role| (role.principal, role.member)), expected);
            }
        }
    }
}

#[test]
fn no_zones_and_an_open_default_permit_all() {
    let set = |members: &[u64], default| {
        let members: Vec<ZoneMember> = members.iter().map(|name| ZoneMember::PortName(Wwpn(*name))).collect();
        let zones = vec![Zone { name: "zone".into(), members, principals: Vec::new() }];
        ZoneSet::new(&Zoning { zones, default })
    };
    assert!(set(&[], ZoneDefault::Open).permits_all());
    assert!(!set(&[], ZoneDefault::Closed).permits_all());
    assert!(!set(&[1], ZoneDefault::Open).permits_all());
}

#[test]
fn the_first_zone_closes_the_default_zone_and_removing_the_last_zone_opens_it() {
    let ports = ports();
    let member = ZoneMember::PortName(Wwpn(0xffff));
    let zone = Zone { name: "of a stranger".into(), members: vec![member], principals: Vec::new() };
    let set = |zones| ZoneSet::new(&Zoning { zones, default: ZoneDefault::OpenWithoutZones });
    assert!(set(vec![]).permits_all() && set(vec![]).permits(&ports[0], &ports[5]));
    let zoned = set(vec![zone]);
    assert!(!zoned.open_default() && !zoned.permits(&ports[0], &ports[5]));
}

#[test]
fn the_membership_of_a_port_that_zones_name_in_one_form_is_small() {
    assert!(size_of::<ZoneMembership>() <= 16);
    let ports = ports();
    let name = |n: usize| ZoneMember::PortName(ports[n].port_name);
    let zone = Zone { name: "zone".into(), members: vec![name(0), name(1)], principals: Vec::new() };
    let set = ZoneSet::new(&Zoning { zones: vec![zone.clone(), zone], default: ZoneDefault::Closed });
    assert_eq!(set.membership(&ports[0]).key(), Some(0));
    assert_eq!(set.membership(&ports[1]).key(), Some(1));
    assert_eq!(set.membership(&ports[2]), ZoneMembership::NONE);
}
