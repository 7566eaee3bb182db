//! Zones in force that differ from their definitions: scripts name only what the switches have, or
//! what they create.

use super::models::{Fos, Model, Nx};
use super::round_trip::{fos_database, objects};
use proptest::prelude::*;
use sanloom_fc::config::ZoneMember;
use sanloom_fc::zoning::{MemberRef, ZoneDatabase, ZoneDefinition};
use sanloom_lab::export::{Dialect, Script, SwitchZones, on_switches, script};
use sanloom_lab::import::{Choices, Source, import};
use std::collections::BTreeSet;
use std::fmt::Write;
use std::sync::Arc;

type Zones = BTreeSet<BTreeSet<String>>;

fn zones(dialect: Dialect, lab: &str, effective: Option<&str>) -> SwitchZones {
    let set = effective.and_then(|name| sanloom_lab::Override::parse(&format!("zoning.effective=\"{name}\"")));
    let loaded = sanloom_lab::load_to_explain("lab.toml", lab, set.as_slice()).unwrap_or_else(|e| panic!("{e}\n{lab}"));
    on_switches(dialect, &loaded.lab.zone_database, &loaded.export_names).unwrap()
}

fn imported(text: &str) -> String {
    import(&[Source { name: "sw.txt".to_owned(), text: text.to_owned() }], &Choices::default()).lab
}

/// A database without peer zones.
fn plain(database: &ZoneDatabase) -> ZoneDatabase {
    let mut defined = (*database.defined).clone();
    for zone in defined.zones.values_mut() {
        let members = zone.members.iter().chain(&zone.principals).cloned().collect();
        *zone = ZoneDefinition { members, principals: Vec::new() };
    }
    ZoneDatabase { defined: Arc::new(defined), effective: None, ..database.clone() }
}

/// Output of `cfgshow`: the definitions of one database, and zones of another one in force.
fn cfgshow(defined: &ZoneDatabase, active: &ZoneDatabase, name: &str, config: &str) -> String {
    let mut text = "switchName: lone\nswitchDomain: 9\nDefined configuration:\n".to_owned();
    let reference = |member: &MemberRef| match member {
        MemberRef::Alias(alias) => alias.clone(),
        MemberRef::Member(member) => member.to_string(),
    };
    let objects = &defined.defined;
    for (name, zones) in &objects.configs {
        let _ = writeln!(text, " cfg:\t{name}\t{}", zones.join("; "));
    }
    for (name, zone) in &objects.zones {
        let members: Vec<String> = zone.members.iter().map(reference).collect();
        let _ = writeln!(text, " zone:\t{name}\t{}", members.join("; "));
    }
    for (name, members) in &objects.aliases {
        let members: Vec<String> = members.iter().map(ZoneMember::to_string).collect();
        let _ = writeln!(text, " alias:\t{name}\t{}", members.join("; "));
    }
    let _ = writeln!(text, "\nEffective configuration:\n cfg:\t{name}");
    for zone in active.resolve(config).unwrap() {
        let members: Vec<String> = zone.members.iter().map(ZoneMember::to_string).collect();
        let _ = writeln!(text, " zone:\t{}\t{}", zone.name, members.join("\n\t\t"));
    }
    text
}

fn in_force(zones: &ZoneDatabase) -> Zones {
    let zones = zones.effective.iter().flat_map(|effective| &effective.zones);
    zones.map(|zone| zone.members.iter().map(ZoneMember::to_string).collect()).collect()
}

/// Runs the change and its undo. The model refuses commands for objects that it does not have.
fn runs(before: &SwitchZones, after: &SwitchZones, script: &Script) {
    let mut model = Fos::of(&before.database);
    let mut active = in_force(&before.database);
    for (commands, wanted) in [(&script.commands, &after.database), (&script.undo, &before.database)] {
        model.run(commands);
        if commands.contains("cfgenable") {
            active = model.in_force();
        }
        assert_eq!(active, in_force(wanted), "{commands}");
    }
}

proptest! {
    #[test]
    fn scripts_name_only_objects_of_the_switches(a in fos_database(), b in fos_database(), pick in any::<u32>()) {
        let (defined, active) = (plain(&a), plain(&b));
        let nth = |database: &ZoneDatabase, n: u32| -> Option<String> {
            let configs: Vec<String> = database.defined.configs.keys().cloned().collect();
            configs.get(n as usize % configs.len().max(1)).cloned()
        };
        let (Some(config), Some(other)) = (nth(&active, pick), nth(&defined, pick / 7)) else { return Ok(()) };
        // The name in force is one of the definitions, or another one.
        let name = if pick % 3 == 0 { config.clone() } else { other.clone() };
        let is_other_kind = |name: &String| {
            defined.defined.zones.contains_key(name) || defined.defined.aliases.contains_key(name)
        };
        let zones_in_force = active.resolve(&config).unwrap();
        let clash = |name: &String| defined.defined.aliases.contains_key(name) || defined.defined.configs.contains_key(name);
        prop_assume!(!is_other_kind(&name) && !zones_in_force.iter().any(|zone| clash(&zone.name) || zone.name == name));
        let lab = imported(&cfgshow(&defined, &active, &name, &config));
        let before = zones(Dialect::FabricOs, &lab, None);
        // The state of the switch is that of the text.
        prop_assert_eq!(objects(&before.database), objects(&defined), "{}", lab);
        prop_assert_eq!(&before.database.effective.as_ref().unwrap().name, &name);
        prop_assert_eq!(in_force(&before.database), in_force(&ZoneDatabase {
            effective: Some(Arc::new(sanloom_fc::zoning::EffectiveZones { name: name.clone(), zones: zones_in_force })),
            ..active.clone()
        }));
        // Each configuration of the switch can be enabled, and the undo brings back the zones that
        // were in force.
        for config in defined.defined.configs.keys() {
            let after = zones(Dialect::FabricOs, &lab, Some(config));
            runs(&before, &after, &script(Dialect::FabricOs, &before, &after).unwrap());
        }
        // A change of definitions alone is saved.
        let more = format!("{lab}\n[[zone]]\nname = \"brand_new\"\nmembers = [\"1,7\"]\n");
        let after = zones(Dialect::FabricOs, &more, None);
        let script = script(Dialect::FabricOs, &before, &after).unwrap();
        prop_assert!(script.commands.starts_with("zonecreate \"brand_new\", \"1,7\"\n"));
        runs(&before, &after, &script);
    }
}

const DRIFTED: &str = "switchName: lone
switchDomain: 9
Defined configuration:
 cfg:\tCFG_A\tz1; z2
 zone:\tz1\th1; 1,1
 zone:\tz2\t1,2; 1,3; 1,4
 alias:\th1\t10:00:00:10:9b:1c:00:01
Effective configuration:
 cfg:\tCFG_A
 zone:\tz1\t10:00:00:10:9b:1c:00:01
\t\t1,1
 zone:\tz2\t1,2
\t\t1,3
";

#[test]
fn a_change_beside_drifted_zones_saves_or_enables_the_definition() {
    let lab = imported(DRIFTED);
    let before = zones(Dialect::FabricOs, &lab, None);
    // A zone in force gets a member: enabling CFG_A would change z2, too.
    let planned = lab.replace("[\"h1\", \"1,1\"]", "[\"h1\", \"1,1\", \"1,9\"]");
    assert_ne!(planned, lab);
    let problems = script(Dialect::FabricOs, &before, &zones(Dialect::FabricOs, &planned, None)).unwrap_err();
    assert_eq!(problems[0].object, "configuration CFG_A");
    let after = zones(Dialect::FabricOs, &planned, Some("CFG_A"));
    let enabling = script(Dialect::FabricOs, &before, &after).unwrap();
    assert_eq!(enabling.commands, "zoneadd \"z1\", \"1,9\"\ncfgenable \"CFG_A\"\ny\n");
    assert_eq!(
        enabling.undo,
        "zonecreate \"z2_effective\", \"1,2; 1,3\"\ncfgcreate \"CFG_A_effective\", \"z1; z2_effective\"\n\
         zoneremove \"z1\", \"1,9\"\ncfgenable \"CFG_A_effective\"\ny\n"
    );
    assert_eq!(enabling.notes.len(), 1, "{:?}", enabling.notes);
    runs(&before, &after, &enabling);
    // A zone that is not in force as defined changes: the zones in force stay.
    let planned = lab.replace("\"1,4\"]", "\"1,4\", \"1,9\"]");
    assert_ne!(planned, lab);
    let saved = script(Dialect::FabricOs, &before, &zones(Dialect::FabricOs, &planned, None)).unwrap();
    assert_eq!(saved.commands, "zoneadd \"z2\", \"1,9\"\ncfgsave\ny\n");
    assert_eq!(saved.undo, "zoneremove \"z2\", \"1,9\"\ncfgsave\ny\n");
    assert!(saved.notes[0].contains("leaves the zones in force"), "{:?}", saved.notes);
}

#[test]
fn a_zone_that_is_only_in_force_cannot_be_used_elsewhere() {
    let lab = imported(DRIFTED);
    let wrong = format!("{lab}\n[[zone_config]]\nname = \"other\"\nzones = [\"z2_effective\"]\n");
    let loaded = sanloom_lab::load_to_explain("lab.toml", &wrong, &[]).unwrap_or_else(|e| panic!("{e}"));
    let problems = on_switches(Dialect::FabricOs, &loaded.lab.zone_database, &loaded.export_names).unwrap_err();
    assert_eq!(problems[0].object, "configuration other");
}

const DRIFTED_NX: &str = "switchname m1
vsan database
  vsan 20 name \"A\"
device-alias database
  device-alias name h1 pwwn 10:00:00:10:9b:1c:00:01
device-alias commit
!Active Zone Database Section for vsan 20
zone name z1 vsan 20
    member pwwn 10:00:00:10:9b:1c:00:01
    member domain-id 9 port-number 1
zone name gone vsan 20
    member domain-id 9 port-number 7
zoneset name ZS vsan 20
    member z1
    member gone
zoneset activate name ZS vsan 20
do clear zone database vsan 20
!Full Zone Database Section for vsan 20
zone name z1 vsan 20
    member device-alias h1
    member domain-id 9 port-number 1
zone name z2 vsan 20
    member domain-id 9 port-number 2
zoneset name ZS vsan 20
    member z1
    member z2
";

#[test]
fn zone_sets_of_nx_os_are_activated_under_their_own_names() {
    let dialect = Dialect::NxOs { vsan: 20, is_enhanced: true };
    let lab = imported(DRIFTED_NX);
    let before = zones(dialect, &lab, None);
    assert_eq!(before.database.effective.as_ref().unwrap().name, "ZS");
    let zones_of: Vec<&str> = before.database.defined.zones.keys().map(String::as_str).collect();
    assert_eq!(zones_of, ["z1", "z2"], "{lab}");
    let planned = lab.replace("members = [\"9,2\"]", "members = [\"9,2\", \"9,5\"]");
    assert_ne!(planned, lab);
    let saved = script(dialect, &before, &zones(dialect, &planned, None)).unwrap();
    assert!(!saved.commands.contains("activate") && !saved.undo.contains("activate"), "{}", saved.commands);
    let enabling = script(dialect, &before, &zones(dialect, &planned, Some("ZS"))).unwrap();
    assert!(enabling.commands.contains("zoneset activate name ZS vsan 20\n"), "{}", enabling.commands);
    assert!(enabling.undo.contains("zoneset activate name ZS_effective vsan 20\n"), "{}", enabling.undo);
    let mut model = Nx::of(&before.database);
    model.run(&enabling.commands);
    model.run(&enabling.undo);
}
