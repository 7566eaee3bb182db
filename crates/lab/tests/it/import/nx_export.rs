//! Scripts for NX-OS: roles of members, and aliases of one port.

use super::models::{Model, Nx};
use sanloom_fc::zoning::{DefinedZones, MemberRef, ZoneDatabase, ZoneDefinition};
use sanloom_lab::export::{Dialect, Script, zone_commands};
use std::collections::BTreeMap;
use std::sync::Arc;

const NX: Dialect = Dialect::NxOs { vsan: 20, is_enhanced: false };

const PORTS: [&str; 3] = ["10:00:00:10:9b:40:00:01", "50:00:09:73:00:18:1c:04", "10:00:00:10:9b:40:00:02"];

fn alias(name: &str) -> MemberRef {
    MemberRef::Alias(name.to_owned())
}

fn database(aliases: &[(&str, &str)], members: Vec<MemberRef>, principals: Vec<MemberRef>) -> ZoneDatabase {
    let mut defined = DefinedZones::default();
    for (name, port) in aliases {
        defined.aliases.insert((*name).to_owned(), vec![port.parse().unwrap()]);
    }
    defined.zones = BTreeMap::from([("z".to_owned(), ZoneDefinition { members, principals })]);
    defined.configs = BTreeMap::from([("s".to_owned(), vec!["z".to_owned()])]);
    ZoneDatabase { defined: Arc::new(defined), ..ZoneDatabase::default() }
}

/// Runs the script line by line; the zone `z` has at least `least` members after each.
fn runs(before: &ZoneDatabase, after: &ZoneDatabase, script: &Script, least: usize) {
    let mut model = Nx::of(before);
    for (commands, wanted) in [(&script.commands, after), (&script.undo, before)] {
        let mut object = String::new();
        for line in commands.lines() {
            let words: Vec<&str> = line.split_whitespace().collect();
            if let ["zone" | "zoneset" | "fcalias", "name", ..] = words[..] {
                line.clone_into(&mut object);
            }
            // A member belongs to the object before it.
            let is_member = matches!(words[..], ["member", ..] | ["no", "member", ..]);
            model.run(&if is_member { format!("{object}\n{line}") } else { line.to_owned() });
            let size = model.members("zone", "z").map_or(usize::MAX, std::collections::BTreeSet::len);
            // A zone that the script creates begins empty.
            assert!(size >= least || line.starts_with("zone name z"), "{size} members after {line}\n{commands}");
        }
        assert_eq!(model, Nx::of(wanted), "{commands}");
    }
}

#[test]
fn a_zone_that_becomes_a_smart_zone_keeps_members_all_the_time() {
    let aliases = [("h1", PORTS[0]), ("s1", PORTS[1])];
    let plain: MemberRef = PORTS[2].parse::<sanloom_fc::config::ZoneMember>().map(MemberRef::Member).unwrap();
    let before = database(&aliases, vec![alias("h1"), alias("s1")], Vec::new());
    let after = database(&aliases, vec![alias("h1"), plain], vec![alias("s1")]);
    let script = zone_commands(NX, &before, &after).unwrap();
    let lines: Vec<&str> = script.commands.lines().collect();
    let at =
        |text: &str| lines.iter().position(|line| line.trim() == text).unwrap_or_else(|| panic!("{text}: {lines:?}"));
    // The new member first, then one member after the other.
    assert!(at(&format!("member pwwn {} init", PORTS[2])) < at("no member device-alias s1"));
    assert_eq!(at("member device-alias s1 target"), at("no member device-alias s1") + 1);
    assert_eq!(at("member device-alias h1 init"), at("no member device-alias h1") + 1);
    assert!(lines.iter().any(|line| line.starts_with("! Roles change")));
    runs(&before, &after, &script, 1);
}

#[test]
fn a_port_with_two_aliases_gets_one_device_alias() {
    let aliases = [("h7", PORTS[0]), ("h8", PORTS[0]), ("s1", PORTS[1])];
    let after = database(&aliases, vec![alias("h7"), alias("h8"), alias("s1")], Vec::new());
    let one = database(&[aliases[0], aliases[2]], vec![alias("h7"), alias("s1")], Vec::new());
    let script = zone_commands(NX, &ZoneDatabase::default(), &after).unwrap();
    assert_eq!(script.commands.matches("device-alias name").count(), 2, "{}", script.commands);
    assert!(!script.commands.contains("h8"), "{}", script.commands);
    assert_eq!(script.notes.len(), 1);
    assert!(script.notes[0].starts_with("alias h8 is another name for the port of h7"), "{:?}", script.notes);
    let mut model = Nx::of(&ZoneDatabase::default());
    model.run(&script.commands);
    assert_eq!(model.members("zone", "z"), Nx::of(&one).members("zone", "z"));
    // The switches have the later name already: it stays.
    let before = database(&aliases[1..], vec![alias("h8"), alias("s1")], Vec::new());
    let script = zone_commands(NX, &before, &after).unwrap();
    assert_eq!(script.commands, "", "{}", script.commands);
    assert_eq!(script.undo, "");
}

#[test]
fn an_alias_that_gets_a_second_member_has_never_both_kinds_of_name() {
    let mut before = database(&[("grp", PORTS[0]), ("s1", PORTS[1])], vec![alias("grp"), alias("s1")], Vec::new());
    before.effective = None;
    let mut after = before.clone();
    let members = [PORTS[0], PORTS[2]].map(|port| port.parse().unwrap());
    Arc::make_mut(&mut after.defined).aliases.insert("grp".to_owned(), members.to_vec());
    for is_enhanced in [false, true] {
        let script = zone_commands(Dialect::NxOs { vsan: 20, is_enhanced }, &before, &after).unwrap();
        // The model has one name space.
        runs(&before, &after, &script, 2);
        runs(&after, &before, &Script { commands: script.undo.clone(), undo: script.commands.clone(), ..script }, 2);
    }
    // The alias keeps its role in a smart zone.
    let mut peers = before.clone();
    let zones = &mut Arc::make_mut(&mut peers.defined).zones;
    *zones.get_mut("z").unwrap() = ZoneDefinition { members: vec![alias("grp")], principals: vec![alias("s1")] };
    let mut more = peers.clone();
    Arc::make_mut(&mut more.defined).aliases.insert("grp".to_owned(), members.to_vec());
    runs(&peers, &more, &zone_commands(NX, &peers, &more).unwrap(), 2);
}

#[test]
fn ports_are_released_before_other_aliases_get_them() {
    let zone = || vec![alias("h1"), alias("s1")];
    let before = database(&[("h1", PORTS[0]), ("s1", PORTS[1])], zone(), Vec::new());
    let other = database(&[("h1", PORTS[2]), ("s1", PORTS[1])], zone(), Vec::new());
    let swapped = database(&[("h1", PORTS[1]), ("s1", PORTS[0])], zone(), Vec::new());
    let taken = database(&[("h1", PORTS[1])], vec![alias("h1")], Vec::new());
    let is_line = |script: &Script, text: &str| {
        let at = script.commands.lines().position(|line| line.trim() == text);
        at.unwrap_or_else(|| panic!("{text}: {}", script.commands))
    };
    for is_enhanced in [false, true] {
        for after in [&other, &swapped, &taken] {
            let script = zone_commands(Dialect::NxOs { vsan: 20, is_enhanced }, &before, after).unwrap();
            // The model refuses a second alias of a port, and the removal of an alias of a zone.
            runs(&before, after, &script, 0);
            let gone = is_line(&script, "no device-alias name h1");
            assert!(is_line(&script, "no member device-alias h1") < gone, "{}", script.commands);
            assert!(gone < is_line(&script, "member device-alias h1"), "{}", script.commands);
        }
    }
}

#[test]
fn pending_zones_are_committed_before_device_aliases_in_the_enhanced_mode() {
    let before = database(&[("h1", PORTS[0]), ("s1", PORTS[1])], vec![alias("h1"), alias("s1")], Vec::new());
    let after = database(&[("s1", PORTS[1])], vec![alias("s1")], Vec::new());
    let script = zone_commands(Dialect::NxOs { vsan: 20, is_enhanced: true }, &before, &after).unwrap();
    let lines: Vec<&str> = script.commands.lines().map(str::trim).collect();
    let at = lines.iter().position(|line| *line == "no device-alias name h1").unwrap();
    assert_eq!(lines[at - 2..=at - 1], ["zone commit vsan 20", "device-alias database"], "{}", script.commands);
}
