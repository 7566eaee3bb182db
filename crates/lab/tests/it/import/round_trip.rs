//! Export and import of zones agree, and scripts have the effect that they promise.

use super::models::{Fos, Model, Nx};
use super::samples::source;
use proptest::prelude::*;
use sanloom_fc::config::{ZoneDefault, ZoneMember};
use sanloom_fc::zoning::{DefinedZones, EffectiveZones, MemberRef, ZoneDatabase, ZoneDefinition};
use sanloom_lab::LoadedLab;
use sanloom_lab::export::{Dialect, zone_commands};
use sanloom_lab::import::{Choices, NoteKind, Source, import};
use sanloom_wire::{FcId, Wwnn, Wwpn};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

const NX: Dialect = Dialect::NxOs { vsan: 20, is_enhanced: true };

/// Members of every kind that Fabric OS has.
fn fos_member() -> impl Strategy<Value = ZoneMember> {
    prop_oneof![
        (0_u64..12).prop_map(|n| ZoneMember::PortName(Wwpn(0x1000_0010_9b40_0000 + n))),
        (1_u8..4, 0_u16..6).prop_map(|(domain, port)| ZoneMember::DomainPort { domain, port }),
    ]
}

/// Members of every kind that NX-OS has.
fn nx_member() -> impl Strategy<Value = ZoneMember> {
    prop_oneof![
        3 => fos_member(),
        1 => (0_u64..4).prop_map(|n| ZoneMember::NodeName(Wwnn(0x2000_0010_9b40_0000 + n))),
        1 => (0x01_0000_u32..0x01_0010).prop_map(|id| ZoneMember::PortId(FcId::new(id))),
    ]
}

fn unique<T: Ord + Clone>(list: Vec<T>) -> Vec<T> {
    let mut seen = BTreeSet::new();
    list.into_iter().filter(|item| seen.insert(item.clone())).collect()
}

/// Names that are words of outputs and commands, or begin like them.
const WORDS: [&str; 52] = [
    "member",
    "Members",
    "MEMBER1",
    "Member_h1",
    "principal",
    "peer",
    "property",
    "created",
    "Status",
    "status",
    "ti",
    "version",
    "uptime",
    "show",
    "sh",
    "cfg",
    "zone",
    "alias",
    "ali",
    "zoneset",
    "fcalias",
    "switchshow",
    "nsshow",
    "cfgsave",
    "cfgenable",
    "zonecreate",
    "defzone",
    "defined",
    "Effective",
    "conf",
    "end",
    "exit",
    "fcdomain",
    "ivr",
    "Index",
    "VSAN1",
    "INTERFACE",
    "y",
    "no",
    "N",
    "attribute",
    "init",
    "target",
    "host",
    "storage",
    "lun",
    "interface",
    "pwwn",
    "name",
    "vsan",
    "_",
    "__",
];

/// Names of objects: words, their beginnings, and any others. Only `None` of a configuration and
/// names of the lab itself have a meaning of their own.
fn names() -> BoxedStrategy<Vec<String>> {
    let word = || proptest::sample::select(&WORDS[..]);
    let name = prop_oneof![
        word().prop_map(str::to_owned),
        (word(), "[A-Za-z0-9_$^-]{0,4}").prop_map(|(word, end)| format!("{word}{end}")),
        "[A-Za-z_][A-Za-z0-9_$^-]{0,12}",
    ];
    let names = proptest::collection::btree_set(name, 0..=10);
    names.prop_map(|names| names.into_iter().collect::<Vec<_>>()).prop_shuffle().boxed()
}

/// Names of a pool for all kinds, so that objects change their kinds between two databases.
fn pool() -> BoxedStrategy<Vec<String>> {
    let pool = ["object0", "object1", "object2", "object3", "object4", "object5", "object6", "object7"];
    let pool = pool.into_iter().chain(["member8", "Status", "version", "zone"]).map(str::to_owned).collect::<Vec<_>>();
    proptest::sample::subsequence(pool, 0..=10).prop_shuffle().boxed()
}

/// A valid database.
fn database(
    member: BoxedStrategy<ZoneMember>,
    defaults: [ZoneDefault; 2],
    names: BoxedStrategy<Vec<String>>,
) -> impl Strategy<Value = ZoneDatabase> {
    let lists = proptest::collection::vec((proptest::collection::vec(member, 1..5), any::<u32>(), any::<bool>()), 12);
    (names, lists, 0_usize..4, any::<bool>(), 0_usize..2).prop_map(move |(names, lists, aliases, enable, default)| {
        let mut defined = DefinedZones::default();
        for (index, (name, (members, bits, peer))) in names.iter().zip(lists).enumerate() {
            let name = name.clone();
            if index < aliases {
                defined.aliases.insert(name, unique(members));
                continue;
            }
            let known: Vec<String> = defined.aliases.keys().cloned().collect();
            let zones: Vec<String> = defined.zones.keys().cloned().collect();
            if index % 3 == 2 && !zones.is_empty() {
                let some = zones.iter().enumerate().filter(|(i, _)| bits >> i & 1 == 1).map(|(_, zone)| zone.clone());
                let mut some: Vec<String> = some.collect();
                if some.is_empty() {
                    some.push(zones[0].clone());
                }
                defined.configs.insert(name, some);
                continue;
            }
            let mut all: Vec<MemberRef> = members.into_iter().map(MemberRef::Member).collect();
            let aliases = known.into_iter().enumerate().filter(|(i, _)| bits >> i & 1 == 1);
            all.extend(aliases.map(|(_, alias)| MemberRef::Alias(alias)));
            let mut members = unique(all);
            let split = if peer && members.len() > 1 { 1 + bits as usize % (members.len() - 1) } else { 0 };
            let principals = members.drain(..split).collect();
            defined.zones.insert(name, ZoneDefinition { members, principals });
        }
        let mut database =
            ZoneDatabase { defined: Arc::new(defined), effective: None, default_zone: defaults[default] };
        let config = database.defined.configs.keys().next().cloned();
        if let Some(name) = config.filter(|_| enable) {
            let zones = database.resolve(&name).unwrap();
            database.effective = Some(Arc::new(EffectiveZones { name, zones }));
        }
        database
    })
}

pub fn fos_database() -> impl Strategy<Value = ZoneDatabase> {
    database(fos_member().boxed(), [ZoneDefault::OpenWithoutZones, ZoneDefault::Closed], pool())
}

fn fos_database_of_any_names() -> impl Strategy<Value = ZoneDatabase> {
    database(fos_member().boxed(), [ZoneDefault::OpenWithoutZones, ZoneDefault::Closed], names())
}

fn nx_database(names: BoxedStrategy<Vec<String>>) -> impl Strategy<Value = ZoneDatabase> {
    let all = database(nx_member().boxed(), [ZoneDefault::Open, ZoneDefault::Closed], names);
    // A port has one device alias; see `nx_export` for more.
    all.prop_filter("two aliases of one port", |database| {
        let mut seen = BTreeSet::new();
        let aliases = database.defined.aliases.values();
        aliases
            .filter(|members| matches!(members[..], [ZoneMember::PortName(_)]))
            .all(|members| seen.insert(members[0]))
    })
}

/// The objects of a database without the order of members.
pub fn objects(database: &ZoneDatabase) -> BTreeMap<String, (BTreeSet<String>, BTreeSet<String>)> {
    let set = |list: &[MemberRef]| list.iter().map(ToString::to_string).collect::<BTreeSet<_>>();
    let mut all = BTreeMap::new();
    for (name, members) in &database.defined.aliases {
        let members = members.iter().map(ToString::to_string).collect();
        all.insert(format!("alias {name}"), (members, BTreeSet::new()));
    }
    for (name, zone) in &database.defined.zones {
        all.insert(format!("zone {name}"), (set(&zone.members), set(&zone.principals)));
    }
    // A lab without configurations has one of all zones.
    for (name, zones) in database.defined.configs.iter().filter(|(name, _)| *name != "all-zones") {
        all.insert(format!("config {name}"), (zones.iter().cloned().collect(), BTreeSet::new()));
    }
    all
}

fn effective(database: &ZoneDatabase) -> Option<String> {
    database.effective.as_ref().map(|effective| effective.name.clone())
}

/// Imports sources without a conflict or an unplaced line, and loads the lab.
pub fn imported_lab(sources: &[Source]) -> LoadedLab {
    let imported = import(sources, &Choices::default());
    let unplaced: Vec<_> = imported.account.notes.iter().filter(|note| note.kind < NoteKind::Decision).collect();
    assert!(unplaced.is_empty(), "{unplaced:?}\n{}", imported.lab);
    sanloom_lab::load("lab.toml", &imported.lab, &[]).unwrap_or_else(|e| panic!("{e}\n{}", imported.lab))
}

/// Exports a database from nothing, imports the script beside a switch, and loads the lab.
fn imported(dialect: Dialect, database: &ZoneDatabase, switch: &str) -> ZoneDatabase {
    let default_zone = if dialect == NX { ZoneDefault::Closed } else { ZoneDefault::OpenWithoutZones };
    let empty = ZoneDatabase { default_zone, ..ZoneDatabase::default() };
    let script = zone_commands(dialect, &empty, database).unwrap();
    let script = Source { name: "script.txt".to_owned(), text: script.commands };
    let switch = Source { name: "switch.txt".to_owned(), text: switch.to_owned() };
    imported_lab(&[script, switch]).lab.zone_database
}

const FOS_SWITCH: &str = "switchName:     lone\nswitchDomain:   9\n";
const NX_SWITCH: &str =
    "lone# show flogi database\nfc1/1  20  0x090000  10:00:00:10:9b:7f:00:01 20:00:00:10:9b:7f:00:01\n";

fn check<M: Model>(dialect: Dialect, before: &ZoneDatabase, after: &ZoneDatabase) {
    let script = zone_commands(dialect, before, after).unwrap();
    let mut model = M::of(before);
    model.run(&script.commands);
    assert_eq!(model, M::of(after), "after\n{}", script.commands);
    model.run(&script.undo);
    assert_eq!(model, M::of(before), "undo\n{}\nof\n{}", script.undo, script.commands);
}

/// Members in lines of `width`, as `cfgshow` breaks them.
fn broken(members: &[String], width: usize) -> String {
    members.chunks(width).map(|line| line.join("; ")).collect::<Vec<_>>().join("; \n\t\t")
}

/// The output of `cfgshow` for a database.
fn cfgshow(database: &ZoneDatabase, width: usize) -> String {
    let defined = &database.defined;
    let mut text = "lone:admin> cfgshow\nDefined configuration:\n".to_owned();
    for (name, zones) in &defined.configs {
        text += &format!(" cfg:\t{name}\t{}\n", broken(zones, width));
    }
    // A peer zone has the number of its principals in a member of its own.
    let peer = |count: usize| format!("00:02:00:00:00:03:01:{count:02x}");
    for (name, zone) in &defined.zones {
        let names = |member: &MemberRef| match member {
            MemberRef::Alias(alias) => defined.aliases[alias].len(),
            MemberRef::Member(_) => 1,
        };
        let property = (!zone.principals.is_empty()).then(|| peer(zone.principals.iter().map(names).sum()));
        let members = zone.principals.iter().chain(&zone.members).map(ToString::to_string);
        let members: Vec<String> = property.into_iter().chain(members).collect();
        text += &format!(" zone:\t{name}\n\t\t{}\n", broken(&members, width));
    }
    for (name, members) in &defined.aliases {
        let members: Vec<String> = members.iter().map(ToString::to_string).collect();
        text += &format!(" alias:\t{name}\n\t\t{}\n", broken(&members, width));
    }
    text += "\nEffective configuration:\n";
    let Some(effective) = &database.effective else { return text + " No Effective configuration: (No Access) \n\n" };
    text += &format!(" cfg:\t{}\n", effective.name);
    for zone in &effective.zones {
        let property = (!zone.principals.is_empty()).then(|| peer(zone.principals.len()));
        let members = zone.principals.iter().chain(&zone.members).map(ToString::to_string);
        let members: Vec<String> = property.into_iter().chain(members).collect();
        text += &format!(" zone:\t{}\n\t\t{}\n", zone.name, members.join("\n\t\t"));
    }
    text + "\n"
}

proptest! {
    #[test]
    fn a_database_of_any_names_survives_the_text_of_cfgshow(
        database in fos_database_of_any_names(),
        width in 1_usize..5,
    ) {
        let text = format!("{FOS_SWITCH}{}lone:admin> \n", cfgshow(&database, width));
        let again = imported_lab(&[Source { name: "lone.txt".to_owned(), text }]).lab.zone_database;
        prop_assert_eq!(objects(&again), objects(&database));
        prop_assert_eq!(effective(&again), effective(&database));
    }

    #[test]
    fn a_database_of_fabric_os_survives_export_and_import(database in fos_database_of_any_names()) {
        let again = imported(Dialect::FabricOs, &database, FOS_SWITCH);
        prop_assert_eq!(objects(&again), objects(&database));
        prop_assert_eq!(effective(&again), effective(&database));
    }

    #[test]
    fn a_database_of_nx_os_survives_export_and_import(database in nx_database(names())) {
        let again = imported(NX, &database, NX_SWITCH);
        prop_assert_eq!(objects(&again), objects(&database));
        prop_assert_eq!(effective(&again), effective(&database));
        // Without any zone, the script is empty and tells nothing of the default zone.
        if !objects(&database).is_empty() || database.default_zone == ZoneDefault::Open {
            prop_assert_eq!(again.default_zone, database.default_zone);
        }
    }

    #[test]
    fn commands_of_fabric_os_make_the_change_and_undo_it(before in fos_database(), after in fos_database()) {
        check::<Fos>(Dialect::FabricOs, &before, &after);
    }

    #[test]
    fn commands_of_nx_os_make_the_change_and_undo_it(before in nx_database(pool()), after in nx_database(pool())) {
        check::<Nx>(NX, &before, &after);
    }

    #[test]
    fn equal_databases_need_no_command(database in fos_database()) {
        let script = zone_commands(Dialect::FabricOs, &database, &database).unwrap();
        prop_assert_eq!(script.commands, "");
        prop_assert_eq!(script.undo, "");
    }
}

#[test]
fn members_that_a_dialect_lacks_are_refused_with_their_object() {
    let zone = ZoneDefinition { members: vec![MemberRef::Member("0x030700".parse().unwrap())], principals: Vec::new() };
    let zones = BTreeMap::from([("backup".to_owned(), zone)]);
    let defined = Arc::new(DefinedZones { zones, ..DefinedZones::default() });
    let database = ZoneDatabase { defined, ..ZoneDatabase::default() };
    let problems = zone_commands(Dialect::FabricOs, &ZoneDatabase::default(), &database).unwrap_err();
    assert_eq!(problems.len(), 1);
    assert_eq!(problems[0].object, "zone backup");
    assert!(zone_commands(NX, &ZoneDatabase::default(), &database).is_ok());
}

#[test]
fn a_changed_sample_exports_the_change_only() {
    let choices = Choices::default();
    let before = import(&[source("fos_session.txt"), source("fos_supportshow.txt")], &choices);
    let edits = "sanA1:admin> zoneadd \"mail1_arr\", \"arr_ct1\"\nsanA1:admin> zonedelete \"old_tape\"\n\
                 sanA1:admin> cfgremove \"prod_a\", \"old_tape\"\n";
    let mut session = source("fos_session.txt");
    session.text = session.text.replace(
        "sanA1:admin> porterrshow",
        &format!("{edits}sanA1:admin> cfgenable \"prod_a\"\nsanA1:admin> porterrshow"),
    );
    session.text = session.text.split("Effective configuration:").next().unwrap().to_owned() + "\n" + edits;
    let after = import(&[session, source("fos_supportshow.txt")], &choices);
    let database =
        |lab: &str| sanloom_lab::load("lab.toml", lab, &[]).unwrap_or_else(|e| panic!("{e}")).lab.zone_database;
    let mut after = database(&after.lab);
    let zones = after.resolve("prod_a").unwrap();
    after.effective = Some(Arc::new(EffectiveZones { name: "prod_a".to_owned(), zones }));
    let script = zone_commands(Dialect::FabricOs, &database(&before.lab), &after).unwrap();
    assert_eq!(
        script.commands,
        "zoneadd \"mail1_arr\", \"arr_ct1\"\ncfgremove \"prod_a\", \"old_tape\"\nzonedelete \"old_tape\"\ncfgenable \"prod_a\"\ny\n"
    );
    assert_eq!(
        script.undo,
        "zonecreate \"old_tape\", \"11,6; mail1_hba0\"\ncfgadd \"prod_a\", \"old_tape\"\n\
         zoneremove \"mail1_arr\", \"arr_ct1\"\ncfgenable \"prod_a\"\ny\n"
    );
}
