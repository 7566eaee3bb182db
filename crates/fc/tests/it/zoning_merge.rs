//! Merges, previews and explanations, compared with the permission relation itself.

use crate::zoning_util::*;
use proptest::prelude::*;
use sanloom_fc::config::{Zone, ZoneDefault, ZoneMember, Zoning};
use sanloom_fc::fabric::{PortIdentity, ZoneSet};
use sanloom_fc::zoning::{
    DefinedZones, EffectiveZones, MemberRef, MergedZones, Transaction, ZoneDatabase, ZoneDefinition, ZoneEdit, Zones,
};
use sanloom_fc::zoning::{MergeControl, MergeRules, Merged, Preview, Verdict, ZoneLimits, explain, merge};
use sanloom_wire::{FcId, Wwnn, Wwpn};
use std::sync::Arc;

const RULES: [MergeRules; 3] = [MergeRules::STANDARD, MergeRules::ENHANCED, MergeRules::FABRIC_OS];

fn any_terms() -> impl Strategy<Value = (MergeControl, MergeRules)> {
    let control = prop_oneof![3 => Just(MergeControl::Allow), 1 => Just(MergeControl::Restrict)];
    (control, prop::sample::select(&RULES[..]))
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(1024))]

    #[test]
    fn merging_is_commutative_and_idempotent_and_permits_nothing_new(
        a in any_database(),
        b in any_database(),
        (control, rules) in any_terms(),
    ) {
        let limits = ZoneLimits::default();
        let merge = |a: &ZoneDatabase, b: &ZoneDatabase| merge(a, b, control, &limits, rules);
        prop_assert_eq!(merge(&a, &a).unwrap().database, a.clone());
        let (one, other) = (merge(&a, &b), merge(&b, &a));
        prop_assert_eq!(one.is_ok(), other.is_ok());
        match (one, other) {
            (Ok(one), Ok(other)) => {
                prop_assert_eq!(&one.database, &other.database);
                prop_assert_eq!((one.changes_ours, one.changes_theirs), (other.changes_theirs, other.changes_ours));
                prop_assert_eq!(one.changes_ours, one.database != a);
                prop_assert_eq!(merge(&one.database, &b).unwrap().database, one.database.clone());
                prop_assert_eq!(one.database.problems(&limits), vec![]);
                let ports = ports();
                let [ours, theirs, joined] =
                    [&a, &b, &one.database].map(|side| relation(&side.zoning(), &ports));
                for pair in joined {
                    prop_assert!(ours.contains(&pair) || theirs.contains(&pair), "{pair:?}");
                }
            }
            (Err(one), Err(other)) => {
                prop_assert!(!one.is_empty());
                prop_assert_eq!(one.len(), other.len());
            }
            _ => unreachable!(),
        }
    }

    #[test]
    fn shared_databases_merge_to_the_same_result(
        a in any_database(),
        b in any_database(),
        nothing in prop::sample::select(&[ZoneDefault::Open, ZoneDefault::OpenWithoutZones, ZoneDefault::Closed][..]),
        (control, rules) in any_terms(),
    ) {
        let limits = ZoneLimits::default();
        let nothing = ZoneDatabase { default_zone: nothing, ..ZoneDatabase::default() };
        for (ours, theirs) in [(&a, &b), (&a, &nothing), (&nothing, &a), (&nothing, &nothing)] {
            let shared = Zones::new(ours.clone()).merge(&Zones::new(theirs.clone()), control, &limits, rules);
            let of_shared = |merged: MergedZones| {
                let MergedZones { zones, changes_ours, changes_theirs } = merged;
                (zones.database().clone(), changes_ours, changes_theirs)
            };
            let plain = |Merged { database, changes_ours, changes_theirs }| (database, changes_ours, changes_theirs);
            prop_assert_eq!(shared.map(of_shared), merge(ours, theirs, control, &limits, rules).map(plain));
        }
    }

    #[test]
    fn a_preview_is_the_difference_of_the_permissions(before in any_zoning(), after in any_zoning()) {
        let ports = ports();
        let (old, new) = (relation(&before, &ports), relation(&after, &ports));
        let minus = |a: &[(u32, u32)], b: &[(u32, u32)]| {
            a.iter().filter(|pair| !b.contains(pair)).copied().collect::<Vec<_>>()
        };
        let preview = Preview::between(&before, &after, &ports);
        prop_assert_eq!(&preview.gains, &minus(&new, &old));
        prop_assert_eq!(&preview.loses, &minus(&old, &new));
        prop_assert_eq!(preview.unchanged as usize, old.len() - preview.loses.len());
        let changed = |port: u32| preview.gains.iter().chain(&preview.loses).any(|(a, b)| *a == port || *b == port);
        prop_assert_eq!(preview.unaffected_ports, (0..8).filter(|port| !changed(*port)).count());
    }

    #[test]
    fn an_explanation_agrees_with_the_enforced_zones(zoning in any_zoning()) {
        let set = ZoneSet::new(&zoning);
        let ports = ports();
        for a in &ports {
            for b in &ports {
                let why = explain(&zoning, a, b);
                prop_assert_eq!(why.verdict.permits(), set.permits(a, b), "{:?}", why);
                prop_assert_eq!(why.first.is_empty(), !set.is_zoned(a));
                prop_assert_eq!(explain(&zoning, b, a).verdict.permits(), why.verdict.permits());
            }
        }
    }
}

fn zone(name: &str, members: &[u64]) -> Zone {
    Zone { name: name.into(), members: members.iter().map(|n| named(*n)).collect(), principals: vec![] }
}

/// Defines all zones and, if the configuration has a name, puts them in force.
fn database(config: &str, zones: &[&Zone], default_zone: ZoneDefault) -> ZoneDatabase {
    let mut defined = DefinedZones::default();
    for zone in zones {
        let members = zone.members.iter().copied().map(MemberRef::Member).collect();
        defined.zones.insert(zone.name.clone(), ZoneDefinition { members, principals: vec![] });
    }
    let names = zones.iter().map(|zone| zone.name.clone()).collect();
    let effective = (!config.is_empty()).then(|| {
        defined.configs.insert(config.into(), names);
        Arc::new(EffectiveZones { name: config.into(), zones: zones.iter().copied().cloned().collect() })
    });
    ZoneDatabase { defined: Arc::new(defined), effective, default_zone }
}

/// Every outcome of the merge table, under each family of rules and with merge control *restrict*.
#[test]
fn every_outcome_of_a_merge() {
    use ZoneDefault::{Closed, Open, OpenWithoutZones};
    let (a, b) = (zone("a", &[1, 2]), zone("b", &[3, 4]));
    let alias = |name: &str, side: ZoneDatabase| {
        let mut change = Transaction::begin(&side, ZoneLimits::default());
        change.apply(ZoneEdit::CreateAlias { name: name.into(), members: vec![named(7)] }).unwrap();
        change.commit().unwrap()
    };
    let nothing = ZoneDatabase::default();
    let cases = [
        ("none, none", nothing.clone(), nothing.clone()),
        ("none, some", nothing.clone(), database("cfg", &[&a], Closed)),
        ("same name, same zones", database("cfg", &[&a, &b], Closed), database("cfg", &[&b, &a], Closed)),
        ("same name, other zones", database("cfg", &[&a], Closed), database("cfg", &[&b], Closed)),
        ("other names", database("day", &[&a], Closed), database("night", &[&b], Closed)),
        ("a zone that differs", database("day", &[&a], Closed), database("night", &[&zone("a", &[1, 3])], Closed)),
        ("members in another order", database("cfg", &[&a], Closed), database("cfg", &[&zone("a", &[2, 1])], Closed)),
        ("a zone and an alias", database("cfg", &[&a], Closed), alias("a", nothing.clone())),
        ("an alias more", alias("x", database("cfg", &[&a], Closed)), database("cfg", &[&a], Closed)),
        ("default zones", database("cfg", &[&a], Open), database("cfg", &[&a], Closed)),
        ("open without zones, open", database("cfg", &[&a], OpenWithoutZones), database("cfg", &[&a], Open)),
        ("open without zones, closed", database("cfg", &[&a], OpenWithoutZones), nothing.clone()),
        ("too much together", database("cfg", &[&a], Closed), database("cfg", &[&b, &zone("c", &[5, 6])], Closed)),
    ];
    let limits = ZoneLimits { zones: 2, ..ZoneLimits::default() };
    let mut text = String::new();
    for (what, ours, theirs) in &cases {
        text.push_str(&format!("{what}\n"));
        let terms = [
            ("standard", MergeControl::Allow, MergeRules::STANDARD),
            ("enhanced", MergeControl::Allow, MergeRules::ENHANCED),
            ("restrict", MergeControl::Restrict, MergeRules::ENHANCED),
            ("Fabric OS", MergeControl::Allow, MergeRules::FABRIC_OS),
        ];
        for (terms, control, rules) in terms {
            match merge(ours, theirs, control, &limits, rules) {
                Ok(Merged { database, .. }) => {
                    let effective = database.effective.as_ref().map_or("nothing".to_owned(), |effective| {
                        let zones: Vec<&str> = effective.zones.iter().map(|zone| zone.name.as_str()).collect();
                        format!("{} [{}]", effective.name, zones.join(" "))
                    });
                    text.push_str(&format!("  {terms}: {effective}, default {:?}\n", database.default_zone));
                }
                Err(conflicts) => {
                    for conflict in conflicts {
                        text.push_str(&format!("  {terms}: {}: {conflict}\n", conflict.class()));
                    }
                }
            }
        }
    }
    insta::assert_snapshot!(text);
}

#[test]
fn an_explanation_names_the_zones_the_members_and_the_roles() {
    let port = |n: u32| PortIdentity {
        port_id: FcId::new(0x01_0000 + (n << 8)),
        port_name: Wwpn(u64::from(n)),
        node_name: Wwnn(u64::from(0x20 + n)),
        domain: 1,
        port: n as u16,
    };
    let peer = Zone { principals: vec![named(1)], ..zone("peer", &[2, 3]) };
    let mixed = Zone {
        members: vec![ZoneMember::NodeName(Wwnn(0x24)), ZoneMember::DomainPort { domain: 1, port: 3 }, named(3)],
        ..zone("mixed", &[])
    };
    let mut zoning = Zoning { zones: vec![peer, mixed], default: ZoneDefault::Closed };
    let why = |zoning: &Zoning, a, b| explain(zoning, &port(a), &port(b));
    assert_eq!(why(&zoning, 1, 2).verdict, Verdict::Zones(vec![0]));
    assert_eq!(why(&zoning, 1, 2).first[0].as_principal, [named(1)]);
    assert_eq!(why(&zoning, 2, 3).verdict, Verdict::PeerRoles(vec![0]));
    let by_two = why(&zoning, 3, 4);
    assert_eq!(by_two.verdict, Verdict::Zones(vec![1]));
    assert_eq!(by_two.first[1].as_member, [ZoneMember::DomainPort { domain: 1, port: 3 }, named(3)]);
    assert_eq!(by_two.second[0].as_member, [ZoneMember::NodeName(Wwnn(0x24))]);
    assert_eq!(why(&zoning, 1, 4).verdict, Verdict::NoCommonZone);
    assert_eq!(why(&zoning, 5, 4).verdict, Verdict::OneUnzoned { first: true });
    assert_eq!(why(&zoning, 5, 6).verdict, Verdict::DefaultClosed);
    zoning.default = ZoneDefault::Open;
    assert_eq!(why(&zoning, 5, 6).verdict, Verdict::DefaultOpen);
    assert_eq!(why(&zoning, 5, 5).verdict, Verdict::SamePort);
}
