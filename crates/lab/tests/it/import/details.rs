//! Names, lines with several commands, logical switches, trunks of REST, and empty files.

use super::trunks::{run, trunks};
use sanloom_fc::zoning::ZoneDatabase;
use sanloom_lab::LoadedLab;
use sanloom_lab::export::{Dialect, zone_commands};
use sanloom_lab::import::{Imported, Note, NoteKind};
use std::collections::BTreeSet;

const SWITCH: &str = "switchName:\tsw1\nswitchDomain:\t1\nswitchWwn:\t10:00:50:eb:1a:55:00:01\n\
    Index Port Address  Media  Speed   State         Proto\n\
    0 0 010000 id N16 Online FC F-Port 10:00:00:10:9b:55:00:01\n\
    1 1 010100 id N16 Online FC F-Port 50:06:01:60:00:55:00:01\n";

fn load(imported: &Imported) -> LoadedLab {
    sanloom_lab::load("lab.toml", &imported.lab, &[]).unwrap_or_else(|e| panic!("{e}\n{}", imported.lab))
}

fn bad(imported: &Imported) -> Vec<&Note> {
    imported.account.notes.iter().filter(|note| note.kind <= NoteKind::Unplaced).collect()
}

#[test]
fn a_name_that_begins_with_an_underscore_is_the_same_in_the_lab() {
    let zones = "sw1:admin> zonecreate \"_nightly\", \"10:00:00:10:9b:55:00:01;50:06:01:60:00:55:00:01\"\n\
        sw1:admin> cfgcreate \"_cfg\", \"_nightly\"\nsw1:admin> cfgenable \"_cfg\"\n";
    let imported = run(&[("sw1.txt", format!("{SWITCH}{zones}"))]);
    assert!(bad(&imported).is_empty(), "{:?}", bad(&imported));
    let loaded = load(&imported);
    assert!(loaded.export_names.names.is_empty(), "{:?}", loaded.export_names);
    let defined = &loaded.lab.zone_database.defined;
    assert!(defined.zones.contains_key("_nightly") && defined.configs.contains_key("_cfg"), "{defined:?}");
    // Its own script names it so, and builds the same database.
    let own = &loaded.lab.zone_database;
    let script = zone_commands(Dialect::FabricOs, &ZoneDatabase::default(), own).unwrap().commands;
    let again = load(&run(&[("sw1.txt", format!("{SWITCH}{script}"))]));
    assert_eq!(again.lab.zone_database.defined, loaded.lab.zone_database.defined, "{script}");
}

#[test]
fn several_zoning_commands_on_a_line_are_several_commands() {
    let zones = "sw1:admin> alicreate \"a1\", \"10:00:00:10:9b:55:00:01\"; alicreate \"a2\", \"50:06:01:60:00:55:00:01\"\n\
        zonecreate \"z\", \"a1; 1,5\"; zoneadd \"z\", \"a2\";zoneremove \"z\", \"1,5\"; cfgcreate c, z; cfgsave\n";
    let imported = run(&[("sw1.txt", format!("{SWITCH}{zones}"))]);
    assert!(bad(&imported).is_empty(), "{:?}", bad(&imported));
    let defined = load(&imported).lab.zone_database.defined;
    let members: Vec<String> = defined.zones["z"].members.iter().map(ToString::to_string).collect();
    assert_eq!(members, ["a1", "a2"]);
    assert_eq!(defined.configs["c"], ["z"]);
    // A command that cannot be used is reported, wherever it is.
    let wrong = format!("{SWITCH}sw1:admin> alicreate a1, \"1,1\"; zoneadd ghost, a1; cfgsave\n");
    let imported = run(&[("sw1.txt", wrong)]);
    assert!(bad(&imported).iter().any(|note| note.reason.contains("no input defines")), "{:?}", bad(&imported));
}

#[test]
fn a_node_has_the_name_of_the_alias_that_zones_in_force_use() {
    let zones = "sw1:admin> alicreate \"AA_old\", \"10:00:00:10:9b:55:00:01\"\n\
        sw1:admin> alicreate \"billing\", \"10:00:00:10:9b:55:00:01\"\n\
        sw1:admin> zonecreate \"spare\", \"AA_old; 1,7\"\n\
        sw1:admin> zonecreate \"z\", \"billing; 50:06:01:60:00:55:00:01\"\n\
        sw1:admin> cfgcreate \"c\", \"z\"\nsw1:admin> cfgenable \"c\"\n";
    let imported = run(&[("sw1.txt", format!("{SWITCH}{zones}"))]);
    let hosts: Vec<String> = load(&imported).lab.hosts.iter().map(|host| host.name.clone()).collect();
    assert_eq!(hosts, ["billing-host"], "{}", imported.lab);
    let note = imported.account.notes.iter().find(|note| note.reason.contains("has the aliases")).unwrap();
    assert!(note.kind == NoteKind::Decision && note.reason.contains("billing, AA_old"), "{note:?}");
}

#[test]
fn the_outputs_of_fosexec_are_read_and_a_logical_switch_is_a_virtual_fabric() {
    let logical = SWITCH.replacen(
        "switchDomain",
        "LS Attributes:\t[FID: 10, Base Switch: No, Default Switch: No]\nswitchDomain",
        1,
    );
    let text = format!("---------------------------------------------------\n\"switchshow\" on FID 10:\n\n{logical}");
    let imported = run(&[("sw1.txt", text)]);
    assert!(bad(&imported).is_empty(), "{:?}", bad(&imported));
    let lab = load(&imported).lab;
    assert_eq!(lab.switches.len(), 1);
    assert_eq!(lab.switches[0].virtual_fabric.as_ref().map(|fabric| fabric.id), Some(10), "{}", imported.lab);
    let usual = logical.replace("Default Switch: No", "Default Switch: Yes");
    let imported = run(&[("sw1.txt", usual)]);
    assert!(bad(&imported).is_empty() && !imported.lab.contains("virtual_fabric"), "{}", imported.lab);
}

/// Answers of REST of one of two switches with a trunk of the ports 3 and 4: two of its ports, and
/// the trunk.
fn rest(own: usize) -> [String; 2] {
    let (number, far) = (own + 1, 2 - own);
    let wwn = |number: usize| format!("10:00:50:eb:1a:66:00:0{number}");
    let port = |port: usize| {
        format!(
            "{{\"name\":\"0/{port}\",\"wwn\":\"20:0{port}:50:eb:1a:66:00:0{number}\",\"port-type\":7,\"index\":{port},\
             \"operational-status\":2,\"speed\":16000000000,\"neighbor-slot-port\":\"0/{port}\",\
             \"neighbor\":{{\"wwn\":[\"20:0{port}:50:eb:1a:66:00:0{far}\"]}},\"neighbor-node-wwn\":\"{}\"}}",
            wwn(far)
        )
    };
    let line = |port: usize| {
        format!(
            "{{\"group\":7,\"source-port\":{port},\"destination-port\":{port},\"master\":{},\"neighbor-wwn\":\"{}\",\
             \"neighbor-switch-name\":\"t{far}\",\"neighbor-domain-id\":{far}}}",
            port == 3,
            wwn(far)
        )
    };
    let ports = format!(
        "{{\"Response\":{{\"fibrechannel-switch\":[{{\"name\":\"{}\",\"domain-id\":{number},\
         \"user-friendly-name\":\"t{number}\"}}]}}}}\n{{\"Response\":{{\"fibrechannel\":[{},{}]}}}}",
        wwn(number),
        port(3),
        port(4)
    );
    [ports, format!("{{\"Response\":{{\"trunk\":[{},{}]}}}}", line(3), line(4))]
}

#[test]
fn a_trunk_of_the_rest_interface_is_a_trunk_of_the_lab() {
    let ([a, trunk_a], [b, trunk_b]) = (rest(0), rest(1));
    let wanted = BTreeSet::from([BTreeSet::from(["t1:3-t2:3".to_owned(), "t1:4-t2:4".to_owned()])]);
    // In the file of the switch, and in files of their own in any order.
    let joined = run(&[("a", format!("{a}\n{trunk_a}")), ("b", format!("{b}\n{trunk_b}"))]);
    assert_eq!(trunks(&joined.lab), wanted, "{}", joined.lab);
    let apart = run(&[("ta", trunk_a.clone()), ("a", a), ("b", b), ("tb", trunk_b)]);
    assert_eq!(trunks(&apart.lab), wanted, "{}", apart.lab);
    assert!(bad(&joined).is_empty() && bad(&apart).is_empty(), "{:?} {:?}", bad(&joined), bad(&apart));
    // Without the ports nothing tells the switch.
    let alone = run(&[("ta", trunk_a)]);
    assert!(bad(&alone).iter().any(|note| note.text == "trunks"), "{:?}", alone.account.notes);
}

#[test]
fn a_file_without_any_known_line_has_a_note() {
    for text in ["[\n[\n", "----\n"] {
        let imported = run(&[("sw1.txt", SWITCH.to_owned()), ("other.txt", text.to_owned())]);
        let about = |note: &&&Note| note.places.iter().any(|place| place.file == "other.txt");
        assert!(bad(&imported).iter().filter(about).count() > 0, "{text:?}: {:?}", imported.account.notes);
    }
}
