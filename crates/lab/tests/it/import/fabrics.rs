//! Fabrics whose zone objects have the same names, imported into one lab and exported again.

use crate::import::models::{Fos, Model};
use crate::import::round_trip::{fos_database, imported_lab, objects};
use proptest::prelude::*;
use sanloom_fc::zoning::{EffectiveZones, ObjectKind, ZoneDatabase};
use sanloom_lab::LoadedLab;
use sanloom_lab::export::{Dialect, in_force, on_switches, only_config, zone_commands};
use sanloom_lab::import::{ALL_FABRICS, Choices, NoteKind, Source, import};
use std::sync::Arc;

/// The outputs of a switch: a port with a device, and the script that builds the zones.
fn switch(number: u32, database: &ZoneDatabase) -> Source {
    let script = zone_commands(Dialect::FabricOs, &ZoneDatabase::default(), database).unwrap().commands;
    let text = format!(
        "switchName:\tsw{number}\nswitchDomain:\t{number}\nswitchWwn:\t10:00:88:94:71:61:a3:0{number}\n\
         Index Port Address  Media  Speed   State         Proto\n\
         0 0 0{number}0000 id N16 Online FC F-Port 10:00:00:10:9b:1c:0{number}:01\n{script}"
    );
    Source { name: format!("sw{number}.txt"), text }
}

fn load(lab: &str) -> LoadedLab {
    sanloom_lab::load("lab.toml", lab, &[]).unwrap_or_else(|error| panic!("{error}\n{lab}"))
}

/// The name that the configuration `own` of a fabric has in the lab: the one whose zones it has.
fn in_lab(lab: &LoadedLab, own: &str, fabric: &ZoneDatabase) -> Option<String> {
    let configs = &lab.lab.zone_database.defined.configs;
    configs.keys().find(|name| part(lab, name).is_ok_and(|part| objects(&part) == needed(fabric, own))).cloned()
}

/// The part of a lab that a configuration needs, with the names on the switches.
fn part(lab: &LoadedLab, config: &str) -> Result<ZoneDatabase, String> {
    let part = only_config(&lab.lab.zone_database, config, Some(config));
    let zones = on_switches(Dialect::FabricOs, &part, &lab.export_names);
    zones.map(|zones| zones.database).map_err(|problems| problems[0].to_string())
}

fn needed(database: &ZoneDatabase, config: &str) -> std::collections::BTreeMap<String, ObjectSets> {
    objects(&only_config(database, config, Some(config)))
}

type ObjectSets = (std::collections::BTreeSet<String>, std::collections::BTreeSet<String>);

proptest! {
    /// Two fabrics that use the same names export the names of their texts, and the undo of a
    /// change leaves each configuration in force.
    #[test]
    fn two_fabrics_with_the_same_names_export_what_their_texts_had(a in fos_database(), b in fos_database()) {
        let sources = [switch(1, &a), switch(2, &b)];
        let before = imported_lab(&sources);
        for fabric in [&a, &b] {
            let Some(own) = fabric.effective.as_ref().map(|effective| effective.name.clone()) else { continue };
            let name = in_lab(&before, &own, fabric);
            prop_assert!(name.is_some(), "no configuration of the lab is {own}");
            let name = name.unwrap();
            let part = part(&before, &name).unwrap();
            // The script from nothing makes the configuration of the fabric, under its own names.
            let script = zone_commands(Dialect::FabricOs, &Dialect::FabricOs.fresh(&part), &part).unwrap();
            let mut model = Fos::of(&Dialect::FabricOs.fresh(&part));
            model.run(&script.commands);
            let mut wanted = only_config(fabric, &own, Some(&own));
            wanted.default_zone = part.default_zone;
            prop_assert_eq!(model, Fos::of(&wanted));
        }
    }
}

const A: &str = "sana1:FID128:admin> switchshow\nswitchName:\tsana1\nswitchDomain:\t1\nswitchWwn:\t10:00:88:94:71:61:a3:01\n\
    Index Port Address  Media  Speed   State         Proto\n\
    0   0   010000   id    N16\tOnline      FC  F-Port  10:00:00:10:9b:1c:01:01\n\
    1   1   010100   id    N16\tOnline      FC  F-Port  50:00:09:73:00:18:1c:01\n\
    sana1:FID128:admin> cfgshow\nDefined configuration:\n cfg:\tPROD\tz_esx1\n zone:\tz_esx1\tesx1; arr\n\
    \x20alias:\tarr\t50:00:09:73:00:18:1c:01\n alias:\tesx1\t10:00:00:10:9b:1c:01:01\nEffective configuration:\n\
    \x20cfg:\tPROD\n zone:\tz_esx1\t10:00:00:10:9b:1c:01:01\n\t\t50:00:09:73:00:18:1c:01\n";

/// Fabrics A and B, with the same names of all objects.
fn two_fabrics() -> [Source; 2] {
    let b = A.replace("sana1", "sanb1").replace("a3:01", "a3:02").replace(":1c:01", ":1c:02");
    let b = b.replace("9b:1c:01", "9b:1c:02");
    [Source { name: "a.txt".to_owned(), text: A.to_owned() }, Source { name: "b.txt".to_owned(), text: b }]
}

#[test]
fn the_undo_of_a_change_in_one_of_two_fabrics_leaves_zoning_on() {
    let imported = import(&two_fabrics(), &Choices::default());
    let before = load(&imported.lab);
    assert_eq!(before.lab.zone_database.effective.as_ref().unwrap().name, ALL_FABRICS);
    for (config, zone, port) in
        [("PROD", "z_esx1", "10:00:00:10:9b:1c:01:09"), ("PROD-2", "z_esx1-2", "10:00:00:10:9b:1c:02:09")]
    {
        let mut after = before.lab.zone_database.clone();
        let mut defined = (*after.defined).clone();
        let members = &mut defined.zones.get_mut(zone).unwrap().members;
        members.push(sanloom_fc::zoning::MemberRef::Member(port.parse().unwrap()));
        after.defined = Arc::new(defined);
        let enabled = in_force(&before.lab, &before.lab.zone_database, config, &[zone.to_owned()]).unwrap();
        assert_eq!(enabled.as_deref(), Some(config));
        let names = &before.export_names;
        let on = |database: &ZoneDatabase| on_switches(Dialect::FabricOs, database, names).unwrap().database;
        let old = on(&only_config(&before.lab.zone_database, config, enabled.as_deref()));
        let new = on(&only_config(&after, config, Some(config)));
        let script = zone_commands(Dialect::FabricOs, &old, &new).unwrap();
        assert_eq!(script.commands, format!("zoneadd \"z_esx1\", \"{port}\"\ncfgenable \"PROD\"\ny\n"));
        assert_eq!(script.undo, format!("zoneremove \"z_esx1\", \"{port}\"\ncfgenable \"PROD\"\ny\n"));
    }
    // Both at once would give two zones one name.
    let problems = on_switches(Dialect::FabricOs, &before.lab.zone_database, &before.export_names).unwrap_err();
    assert!(problems.iter().any(|problem| problem.object == "zone z_esx1-2"), "{problems:?}");
    assert!(problems.iter().all(|problem| problem.remedy.contains("--config")));
}

#[test]
fn a_configuration_of_a_fabric_whose_zoning_is_unknown_is_refused() {
    let lab = load(&import(&two_fabrics(), &Choices::default()).lab).lab;
    let mut database = lab.zone_database.clone();
    let zones = ["z_other".to_owned()];
    let problem = in_force(&lab, &database, "TEST", &zones).unwrap_err();
    assert!(problem.remedy.contains("effective"), "{problem}");
    // With zones of fabric B it is in the fabric of PROD-2.
    assert_eq!(in_force(&lab, &database, "TEST", &["z_esx1-2".to_owned()]).unwrap().as_deref(), Some("PROD-2"));
    let zones = database.resolve("PROD").unwrap();
    database.effective = Some(Arc::new(EffectiveZones { name: "PROD".to_owned(), zones }));
    assert_eq!(in_force(&lab, &database, "TEST", &["z_other".to_owned()]).unwrap().as_deref(), Some("PROD"));
    database.effective = None;
    assert_eq!(in_force(&lab, &database, "TEST", &["z_other".to_owned()]), Ok(None));
}

#[test]
fn renamed_objects_keep_their_names_on_the_switches() {
    let imported = import(&two_fabrics(), &Choices::default());
    assert!(imported.account.notes.iter().any(|note| note.kind == NoteKind::Decision && note.text == "PROD"));
    let lab = load(&imported.lab);
    let of = |kind, name: &str| lab.export_names.names.get(&(kind, name.to_owned())).map(String::as_str);
    assert_eq!(of(ObjectKind::Zone, "z_esx1-2"), Some("z_esx1"));
    assert_eq!(of(ObjectKind::Alias, "esx1-2"), Some("esx1"));
    assert_eq!(of(ObjectKind::Config, "PROD-2"), Some("PROD"));
    assert_eq!(of(ObjectKind::Zone, "z_esx1"), None);
}
