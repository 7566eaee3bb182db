//! Ports, and random databases over few names, so that names coincide.
#![allow(dead_code)] // each test file uses its part

use proptest::prelude::*;
use sanloom_fc::config::{Zone, ZoneDefault, ZoneMember, Zoning};
use sanloom_fc::fabric::PortIdentity;
use sanloom_fc::zoning::{DefinedZones, EffectiveZones, MemberRef, ZoneDatabase, ZoneDefinition};
use sanloom_wire::{FcId, Wwnn, Wwpn};
use std::collections::BTreeMap;
use std::sync::Arc;

pub fn named(n: u64) -> ZoneMember {
    ZoneMember::PortName(Wwpn(n))
}

/// Eight ports on two switches: two per node, and two per switch port.
pub fn ports() -> Vec<PortIdentity> {
    let port = |n: u32| PortIdentity {
        port_id: FcId::from_parts(1 + (n / 4) as u8, (n % 4 / 2) as u8, (n % 2) as u8),
        port_name: Wwpn(1 + u64::from(n)),
        node_name: Wwnn(0x20 + u64::from(n / 2 % 3)),
        domain: 1 + (n / 4) as u8,
        port: (n % 4 / 2) as u16,
    };
    (0..8).map(port).collect()
}

pub fn any_member() -> impl Strategy<Value = ZoneMember> {
    prop_oneof![
        4 => (1u64..9).prop_map(named),
        1 => (0x20u64..0x23).prop_map(|name| ZoneMember::NodeName(Wwnn(name))),
        1 => (1u8..3, 0u16..2).prop_map(|(domain, port)| ZoneMember::DomainPort { domain, port }),
        1 => (0usize..8).prop_map(|n| ZoneMember::PortId(ports()[n].port_id)),
    ]
}

fn lists(
    member: impl Strategy<Value = ZoneMember> + Clone,
) -> impl Strategy<Value = (Vec<ZoneMember>, Vec<ZoneMember>)> {
    let principals = prop_oneof![3 => Just(vec![]), 1 => prop::collection::vec(member.clone(), 1..3)];
    (prop::collection::vec(member, 1..4), principals)
}

pub fn any_zone(name: String) -> impl Strategy<Value = Zone> {
    let member = any_member().boxed();
    lists(member).prop_map(move |(members, principals)| Zone { name: name.clone(), members, principals })
}

pub fn any_zoning() -> impl Strategy<Value = Zoning> {
    let zones = prop::collection::vec(any_zone("zone".into()), 0..5);
    (zones, any_default()).prop_map(|(zones, default)| Zoning { zones, default })
}

pub fn any_default() -> impl Strategy<Value = ZoneDefault> {
    prop_oneof![Just(ZoneDefault::Open), Just(ZoneDefault::OpenWithoutZones), Just(ZoneDefault::Closed)]
}

/// Database without unresolved names. Zone `a` is the same in most of them.
pub fn any_database() -> impl Strategy<Value = ZoneDatabase> {
    let usual = Zone { name: "a".into(), members: vec![named(1), named(2)], principals: vec![] };
    let turned = Zone { members: vec![named(2), named(1)], ..usual.clone() };
    let a = prop_oneof![10 => Just(usual), 4 => Just(turned), 1 => any_zone("a".into())];
    let b = any_zone("b".into());
    let aliases = prop::collection::btree_map("[bc]", prop::collection::vec(any_member(), 1..3), 0..2);
    let rest = (any_default(), "cfg|set", any::<bool>(), 0u8..8);
    (a, b, aliases, rest).prop_map(|(a, b, aliases, (default_zone, config, enabled, which))| {
        let zones: Vec<Zone> = match which {
            0 => vec![],
            1 => vec![b, a],
            2 => vec![b],
            _ => vec![a],
        };
        let members = |list: &[ZoneMember]| list.iter().copied().map(MemberRef::Member).collect();
        let definition =
            |zone: &Zone| ZoneDefinition { members: members(&zone.members), principals: members(&zone.principals) };
        let names: Vec<String> = zones.iter().map(|zone| zone.name.clone()).collect();
        let mut aliases = aliases;
        aliases.retain(|name, _| !names.contains(name));
        let mut configs = BTreeMap::new();
        if !names.is_empty() {
            configs.insert(config.clone(), names);
        }
        let effective =
            (enabled && !zones.is_empty()).then(|| Arc::new(EffectiveZones { name: config, zones: zones.clone() }));
        let zones = zones.iter().map(|zone| (zone.name.clone(), definition(zone))).collect();
        ZoneDatabase { defined: Arc::new(DefinedZones { aliases, zones, configs }), effective, default_zone }
    })
}

/// Pairs that may communicate, found by a check of every pair.
pub fn relation(zoning: &Zoning, ports: &[PortIdentity]) -> Vec<(u32, u32)> {
    let set = sanloom_fc::fabric::ZoneSet::new(zoning);
    let mut pairs = Vec::new();
    for (a, first) in (0..).zip(ports) {
        for (b, second) in (0..).zip(ports).skip(a as usize + 1) {
            if set.permits(first, second) {
                pairs.push((a, b));
            }
        }
    }
    pairs
}
