//! Zone databases: names, resolution, limits, transactions, rollback.

use crate::zoning_util::*;
use sanloom_fc::config::{ZoneDefault, ZoneMember};
use sanloom_fc::zoning::{Limit, MemberRef, ObjectKind, ZoneDatabase, ZoneDefinition, ZoneEdit, ZoneLimits};
use sanloom_fc::zoning::{Transaction, ZoneProblem, ZoneStore};
use sanloom_wire::Wwpn;

fn create_zone(name: &str, members: &[u64]) -> ZoneEdit {
    let members = members.iter().map(|n| MemberRef::Member(named(*n))).collect();
    ZoneEdit::CreateZone { name: name.into(), zone: ZoneDefinition { members, principals: vec![] } }
}

fn create_config(name: &str, zones: &[&str]) -> ZoneEdit {
    ZoneEdit::CreateConfig { name: name.into(), zones: zones.iter().map(|z| (*z).to_owned()).collect() }
}

#[test]
fn aliases_are_resolved_when_a_configuration_is_enabled_and_not_later() {
    let mut store = ZoneStore::new(ZoneDatabase::default(), ZoneLimits::default());
    let mut change = store.begin();
    let zone = ZoneDefinition {
        members: vec![MemberRef::Alias("hosts".into()), MemberRef::Member(named(2)), MemberRef::Alias("hosts".into())],
        principals: vec![MemberRef::Member(named(9))],
    };
    change.apply(ZoneEdit::CreateAlias { name: "hosts".into(), members: vec![named(1), named(2)] }).unwrap();
    change.apply(ZoneEdit::CreateZone { name: "z".into(), zone }).unwrap();
    change.apply(create_config("day", &["z"])).unwrap();
    change.apply(ZoneEdit::Enable("day".into())).unwrap();
    let zones = store.commit(&change).unwrap().zoning().zones;
    assert_eq!((&zones[0].members, &zones[0].principals), (&vec![named(1), named(2)], &vec![named(9)]));

    let mut change = store.begin();
    change.apply(ZoneEdit::AddToAlias { name: "hosts".into(), members: vec![named(3), named(1)] }).unwrap();
    let committed = store.commit(&change).unwrap();
    assert_eq!(committed.zoning().zones, zones);
    assert_eq!(committed.defined.aliases["hosts"], [named(1), named(2), named(3)]);
    assert_eq!(committed.resolve("day").unwrap()[0].members, [named(1), named(2), named(3)]);

    // Rollback, and rollback of the rollback.
    let generation = store.current().generation();
    let earlier = store.rollback().unwrap();
    assert_eq!(earlier.defined.aliases["hosts"], [named(1), named(2)]);
    assert_ne!(earlier.generation(), generation);
    assert_eq!(store.rollback().unwrap().generation(), generation);
    let mut untouched = ZoneStore::new(ZoneDatabase::default(), ZoneLimits::default());
    assert_eq!(untouched.rollback(), Err(ZoneProblem::NothingToRollBack));
}

#[test]
fn a_member_that_an_edit_names_twice_is_stored_once() {
    let mut store = ZoneStore::new(ZoneDatabase::default(), ZoneLimits::default());
    let mut change = store.begin();
    let twice = || vec![named(2), named(1), named(2)];
    let list = |names: &[&str]| names.iter().map(|name| (*name).to_owned()).collect::<Vec<_>>();
    let refs = |members: Vec<ZoneMember>| members.into_iter().map(MemberRef::Member).collect::<Vec<_>>();
    let zone = || ZoneDefinition { members: refs(twice()), principals: refs(vec![named(9), named(9)]) };
    let once = ZoneDefinition { members: refs(vec![named(2), named(1)]), principals: refs(vec![named(9)]) };
    for name in ["new", "added", "replaced"] {
        let at_first = name == "new";
        let (alias, config) = (format!("a_{name}"), format!("c_{name}"));
        let members = if at_first { twice() } else { vec![] };
        change.apply(ZoneEdit::CreateAlias { name: alias, members }).unwrap();
        let zone = if at_first { zone() } else { ZoneDefinition::default() };
        change.apply(ZoneEdit::CreateZone { name: name.into(), zone }).unwrap();
        let zones = if at_first { list(&["new", "added", "new"]) } else { vec![] };
        change.apply(ZoneEdit::CreateConfig { name: config, zones }).unwrap();
    }
    let zones = list(&["new", "added", "new"]);
    for edit in [
        ZoneEdit::AddToAlias { name: "a_added".into(), members: twice() },
        ZoneEdit::AddToZone { name: "added".into(), zone: zone() },
        ZoneEdit::AddToConfig { name: "c_added".into(), zones: zones.clone() },
        ZoneEdit::ReplaceAlias { name: "a_replaced".into(), members: twice() },
        ZoneEdit::ReplaceZone { name: "replaced".into(), zone: zone() },
        ZoneEdit::ReplaceConfig { name: "c_replaced".into(), zones },
    ] {
        change.apply(edit).unwrap();
    }
    let defined = &store.commit(&change).unwrap().defined;
    for name in ["new", "added", "replaced"] {
        assert_eq!(defined.aliases[&format!("a_{name}")], [named(2), named(1)], "{name}");
        assert_eq!(defined.zones[name], once, "{name}");
        assert_eq!(defined.configs[&format!("c_{name}")], ["new", "added"], "{name}");
    }
}

#[test]
fn a_commit_names_every_problem_at_once_and_changes_nothing() {
    let limits = ZoneLimits { members: 3, zones: 2, ..ZoneLimits::default() };
    let mut store = ZoneStore::new(ZoneDatabase::default(), limits);
    let mut change = store.begin();
    let dangling = ZoneDefinition { members: vec![MemberRef::Alias("nobody".into())], principals: vec![] };
    let headless = ZoneDefinition { members: vec![], principals: vec![MemberRef::Member(named(1))] };
    change.apply(ZoneEdit::CreateZone { name: "a".into(), zone: dangling }).unwrap();
    change.apply(ZoneEdit::CreateZone { name: "b".into(), zone: headless }).unwrap();
    change.apply(create_zone("c", &[1, 2, 3, 4])).unwrap();
    change.apply(create_zone("d", &[])).unwrap();
    change.apply(create_config("cfg", &["a", "gone"])).unwrap();
    change.apply(ZoneEdit::Enable("night".into())).unwrap();
    let problems = store.commit(&change).unwrap_err();
    insta::assert_snapshot!(problems.iter().map(ToString::to_string).collect::<Vec<_>>().join("\n"));
    assert_eq!(store.current(), &ZoneDatabase::default());

    change.abort();
    assert!(!change.is_changed());
    assert_eq!(change.commit(), Ok(ZoneDatabase::default()));
}

#[test]
fn an_edit_is_refused_by_itself_where_it_cannot_be_right() {
    let mut change = Transaction::begin(&ZoneDatabase::default(), ZoneLimits::default());
    change.apply(create_zone("z", &[1, 2])).unwrap();
    let before = change.clone();
    let long = "z".repeat(65);
    let member = |n| ZoneDefinition { members: vec![MemberRef::Member(named(n))], principals: vec![] };
    let refused = [
        create_zone("1z", &[1]),
        create_zone("z z", &[1]),
        create_zone("zön", &[1]),
        create_zone("", &[1]),
        create_zone(&long, &[1]),
        create_zone("z", &[1]),
        create_config("z", &["z"]),
        ZoneEdit::Delete { kind: ObjectKind::Alias, name: "z".into() },
        ZoneEdit::Rename { kind: ObjectKind::Zone, from: "y".into(), to: "x".into() },
        ZoneEdit::Rename { kind: ObjectKind::Zone, from: "z".into(), to: "z".into() },
        ZoneEdit::RemoveFromZone { name: "z".into(), zone: member(7) },
        ZoneEdit::AddToAlias { name: "z".into(), members: vec![named(1)] },
        ZoneEdit::RemoveFromConfig { name: "cfg".into(), zones: vec![] },
    ];
    let text: Vec<String> =
        refused.into_iter().map(|edit| change.apply(edit).expect_err("refused").to_string()).collect();
    insta::assert_snapshot!(text.join("\n"));
    assert_eq!(change, before);
    change.apply(create_zone("Z$-^_9", &[1])).unwrap();
}

#[test]
fn a_new_name_replaces_the_old_one_everywhere() {
    let mut change = Transaction::begin(&ZoneDatabase::default(), ZoneLimits::default());
    let zone = ZoneDefinition {
        members: vec![MemberRef::Alias("hosts".into())],
        principals: vec![MemberRef::Alias("hosts".into())],
    };
    change.apply(ZoneEdit::CreateAlias { name: "hosts".into(), members: vec![named(1)] }).unwrap();
    change.apply(ZoneEdit::CreateZone { name: "z".into(), zone }).unwrap();
    change.apply(create_config("cfg", &["z"])).unwrap();
    let renames =
        [(ObjectKind::Alias, "hosts", "servers"), (ObjectKind::Zone, "z", "y"), (ObjectKind::Config, "cfg", "c")];
    for (kind, from, to) in renames {
        change.apply(ZoneEdit::Rename { kind, from: from.into(), to: to.into() }).unwrap();
    }
    change.apply(ZoneEdit::Enable("c".into())).unwrap();
    let database = change.commit().unwrap();
    assert_eq!(database.zoning().zones[0].name, "y");
    assert_eq!(database.zoning().zones[0].members, [named(1)]);
    let mut change = Transaction::begin(&database, ZoneLimits::default());
    change.apply(ZoneEdit::Delete { kind: ObjectKind::Alias, name: "servers".into() }).unwrap();
    let unknown = ZoneProblem::UnknownAlias { zone: "y".into(), alias: "servers".into() };
    assert_eq!(change.commit(), Err(vec![unknown]));
    change.apply(ZoneEdit::RemoveFromZone { name: "y".into(), zone: database.defined.zones["y"].clone() }).unwrap();
    change.apply(ZoneEdit::Disable).unwrap();
    change.apply(ZoneEdit::SetDefault(ZoneDefault::Open)).unwrap();
    assert_eq!(change.commit(), Err(vec![ZoneProblem::Empty { kind: ObjectKind::Zone, name: "y".into() }]));
    change.apply(ZoneEdit::RemoveFromConfig { name: "c".into(), zones: vec!["y".into()] }).unwrap();
    change.apply(ZoneEdit::Delete { kind: ObjectKind::Zone, name: "y".into() }).unwrap();
    change.apply(ZoneEdit::Delete { kind: ObjectKind::Config, name: "c".into() }).unwrap();
    let empty = ZoneDatabase { default_zone: ZoneDefault::Open, ..ZoneDatabase::default() };
    assert_eq!(change.commit(), Ok(empty));
}

#[test]
fn the_first_commit_of_two_transactions_wins() {
    let mut store = ZoneStore::new(ZoneDatabase::default(), ZoneLimits::default());
    let (mut one, mut other) = (store.begin(), store.begin());
    one.apply(create_zone("a", &[1, 2])).unwrap();
    other.apply(create_zone("b", &[1, 2])).unwrap();
    store.commit(&one).unwrap();
    assert_eq!(store.commit(&other), Err(vec![ZoneProblem::Stale]));
}

#[test]
fn the_size_is_that_of_the_objects_on_the_wire() {
    let mut change = Transaction::begin(&ZoneDatabase::default(), ZoneLimits::default());
    change.apply(ZoneEdit::CreateAlias { name: "alias".into(), members: vec![named(1)] }).unwrap();
    let members = vec![
        MemberRef::Alias("alias".into()),
        MemberRef::Member(ZoneMember::DomainPort { domain: 1, port: 2 }),
        MemberRef::Member(ZoneMember::PortName(Wwpn(7))),
    ];
    change
        .apply(ZoneEdit::CreateZone { name: "zone".into(), zone: ZoneDefinition { members, principals: vec![] } })
        .unwrap();
    change.apply(create_config("cfg", &["zone"])).unwrap();
    let mut database = change.commit().unwrap();
    // Alias: 4 + name 4 + 8 + count 4 + member 12. Zone: 4 + 8 + 4 + members 4 + 12, 8 and 12.
    // Configuration: 4 + 8 + 4 + 8.
    assert_eq!(database.size().database_bytes, 32 + 52 + 24);
    change.apply(ZoneEdit::Enable("cfg".into())).unwrap();
    database = change.commit().unwrap();
    // In force: 4 + 8 + 4, containing 4 + 8 + 4 + 12 + 8 + 12.
    assert_eq!(database.size().database_bytes, 108 + 16 + 48);
    let limits = ZoneLimits { database_bytes: 171, ..ZoneLimits::default() };
    let too_large = ZoneProblem::TooLarge { limit: Limit::DatabaseBytes, size: 172, max: 171 };
    assert_eq!(database.problems(&limits), [too_large]);
    let other = ZoneLimits { database_bytes: 200, zones: 5, ..ZoneLimits::default() };
    let both = ZoneLimits { database_bytes: 171, zones: 5, ..ZoneLimits::default() };
    assert_eq!(limits.smallest(other), both);
}

#[test]
fn databases_that_differ_anywhere_have_different_generations() {
    let mut seen = std::collections::BTreeSet::new();
    let mut change = Transaction::begin(&ZoneDatabase::default(), ZoneLimits::default());
    let edits = [
        create_zone("a", &[1, 2]),
        ZoneEdit::Rename { kind: ObjectKind::Zone, from: "a".into(), to: "b".into() },
        ZoneEdit::AddToZone {
            name: "b".into(),
            zone: ZoneDefinition { members: vec![], principals: vec![MemberRef::Member(named(2))] },
        },
        create_config("cfg", &["b"]),
        ZoneEdit::Enable("cfg".into()),
        ZoneEdit::SetDefault(ZoneDefault::Open),
        ZoneEdit::CreateAlias { name: "c".into(), members: vec![named(1)] },
        ZoneEdit::Disable,
    ];
    assert!(seen.insert(change.outcome().0.generation()));
    for edit in edits {
        change.apply(edit).unwrap();
        assert!(seen.insert(change.outcome().0.generation()));
    }
}

/// A database with an alias, two zones that name it and a configuration of both, in force.
fn with_references() -> ZoneStore {
    let mut store = ZoneStore::new(ZoneDatabase::default(), ZoneLimits::default());
    let mut change = store.begin();
    let zone = |n| ZoneDefinition {
        members: vec![MemberRef::Alias("host".into()), MemberRef::Member(named(n))],
        principals: vec![],
    };
    change.apply(ZoneEdit::CreateAlias { name: "host".into(), members: vec![named(1)] }).unwrap();
    change.apply(ZoneEdit::CreateZone { name: "a".into(), zone: zone(2) }).unwrap();
    change.apply(ZoneEdit::CreateZone { name: "b".into(), zone: zone(3) }).unwrap();
    change.apply(create_config("day", &["a", "b"])).unwrap();
    change.apply(ZoneEdit::Enable("day".into())).unwrap();
    store.commit(&change).unwrap();
    store
}

#[test]
fn an_expunged_object_is_removed_from_all_lists() {
    let mut store = with_references();
    let mut change = store.begin();
    change.apply(ZoneEdit::Expunge { kind: ObjectKind::Alias, name: "host".into() }).unwrap();
    change.apply(ZoneEdit::Expunge { kind: ObjectKind::Zone, name: "b".into() }).unwrap();
    let missing = ZoneEdit::Expunge { kind: ObjectKind::Config, name: "night".into() };
    let problem = ZoneProblem::NotFound { kind: ObjectKind::Config, name: "night".into() };
    assert_eq!(change.apply(missing), Err(problem));
    let defined = store.commit(&change).unwrap().defined.clone();
    assert!(defined.aliases.is_empty());
    assert_eq!(defined.zones["a"].members, [MemberRef::Member(named(2))]);
    assert_eq!((defined.zones.len(), &defined.configs["day"]), (1, &vec!["a".to_owned()]));
}

#[test]
fn a_replacement_changes_the_whole_list_or_nothing() {
    let mut store = with_references();
    let mut change = store.begin();
    let members = vec![named(7), named(8)];
    change.apply(ZoneEdit::ReplaceAlias { name: "host".into(), members: members.clone() }).unwrap();
    change.apply(ZoneEdit::ReplaceConfig { name: "day".into(), zones: vec!["b".into()] }).unwrap();
    let zone = ZoneDefinition {
        members: vec![MemberRef::Member(named(4))],
        principals: vec![MemberRef::Alias("host".into())],
    };
    change.apply(ZoneEdit::ReplaceZone { name: "b".into(), zone: zone.clone() }).unwrap();
    let missing = ZoneEdit::ReplaceZone { name: "c".into(), zone: zone.clone() };
    let before = change.clone();
    assert_eq!(change.apply(missing), Err(ZoneProblem::NotFound { kind: ObjectKind::Zone, name: "c".into() }));
    assert_eq!(change, before);
    let defined = store.commit(&change).unwrap().defined.clone();
    assert_eq!((&defined.aliases["host"], &defined.zones["b"]), (&members, &zone));
    assert_eq!(defined.configs["day"], ["b"]);

    // Definitions with a problem are rejected as a whole.
    let mut wrong = (*with_references().current().defined).clone();
    wrong.configs.insert("night".into(), vec!["nothing".into()]);
    let mut change = store.begin();
    change.apply(ZoneEdit::ReplaceAll(wrong.into())).unwrap();
    let unknown = ZoneProblem::UnknownZone { config: "night".into(), zone: "nothing".into() };
    assert_eq!(store.commit(&change), Err(vec![unknown]));
    let whole = with_references().current().defined.clone();
    change.apply(ZoneEdit::ReplaceAll(whole.clone())).unwrap();
    assert_eq!(store.commit(&change).unwrap().defined, whole);
}

#[test]
fn a_cleared_database_keeps_the_effective_configuration() {
    let mut store = with_references();
    let effective = store.current().effective.clone();
    let mut change = store.begin();
    change.apply(ZoneEdit::Clear).unwrap();
    let cleared = store.commit(&change).unwrap();
    assert_eq!((cleared.defined.kind_of("day"), &cleared.effective), (None, &effective));
    assert!(effective.is_some());
}

#[test]
fn the_checksum_depends_on_definitions_effective_zones_and_default_zone_only() {
    let mut store = with_references();
    assert_eq!(store.current().checksum(), with_references().current().checksum());
    let mut seen = std::collections::BTreeSet::from([store.current().checksum()]);
    let edits = [
        ZoneEdit::SetDefault(ZoneDefault::Open),
        ZoneEdit::AddToAlias { name: "host".into(), members: vec![named(9)] },
        ZoneEdit::Rename { kind: ObjectKind::Zone, from: "a".into(), to: "c".into() },
        ZoneEdit::Enable("day".into()),
        ZoneEdit::Disable,
        ZoneEdit::Clear,
    ];
    for edit in edits {
        let mut change = store.begin();
        change.apply(edit.clone()).unwrap();
        assert!(seen.insert(store.commit(&change).unwrap().checksum()), "{edit:?}");
    }
    // FNV-1a of 128 bits over the one byte 0, the content of an empty database.
    assert_eq!(format!("{:032x}", ZoneDatabase::default().checksum()), "d228cb69101a8caf78912b704e4a147f");
}
