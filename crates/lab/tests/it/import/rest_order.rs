//! Several answers of the REST interface about zones in one file.

use super::trunks::run;
use sanloom_lab::import::{Imported, Note, NoteKind};
use std::collections::BTreeSet;

fn bad(imported: &Imported) -> Vec<&Note> {
    imported.account.notes.iter().filter(|note| note.kind <= NoteKind::Unplaced).collect()
}

fn zones(imported: &Imported) -> BTreeSet<String> {
    let lab = sanloom_lab::load("lab.toml", &imported.lab, &[]).unwrap_or_else(|e| panic!("{e}\n{}", imported.lab)).lab;
    lab.zone_database.defined.zones.keys().cloned().collect()
}

fn in_force(imported: &Imported) -> BTreeSet<String> {
    let lab = sanloom_lab::load("lab.toml", &imported.lab, &[]).unwrap_or_else(|e| panic!("{e}\n{}", imported.lab)).lab;
    let effective = lab.zone_database.effective;
    effective.iter().flat_map(|effective| &effective.zones).map(|zone| zone.name.clone()).collect()
}

fn set(names: &[&str]) -> BTreeSet<String> {
    names.iter().map(|name| (*name).to_owned()).collect()
}

/// The answers of one switch: the switch, its ports, its zones, and the zones in force.
fn answers(letter: char, byte: &str, domain: u8, fid: i32) -> [String; 4] {
    let lower = letter.to_ascii_lowercase();
    let (host, array) = (format!("10:00:00:10:9b:60:{byte}:a3"), format!("52:4a:93:70:00:00:{byte}:00"));
    let port = |number: u8, peer: &str| {
        format!(
            "{{\"name\":\"0/{number}\",\"wwn\":\"20:0{number}:d8:1f:cc:30:{byte}:00\",\"port-type\":15,\
             \"speed\":32000000000,\"operational-status\":2,\"index\":{number},\"neighbor\":{{\"wwn\":[\"{peer}\"]}}}}"
        )
    };
    let response = |inner: String| format!("{{\"Response\":{{{inner}}}}}\n");
    [
        response(format!(
            "\"fibrechannel-switch\":[{{\"name\":\"10:00:d8:1f:cc:30:{byte}:00\",\"domain-id\":{domain},\
             \"vf-id\":{fid},\"user-friendly-name\":\"san{letter}\"}}]"
        )),
        response(format!("\"fibrechannel\":[{},{}]", port(0, &host), port(1, &array))),
        response(format!(
            "\"defined-configuration\":{{\"alias\":[{{\"alias-name\":\"h{letter}\",\"member-entry\":\
             {{\"alias-entry-name\":[\"{host}\"]}}}}],\"zone\":[{{\"zone-name\":\"z{letter}\",\"zone-type\":0,\
             \"member-entry\":{{\"entry-name\":[\"h{letter}\",\"{array}\"]}}}}],\"cfg\":[{{\"cfg-name\":\
             \"c{lower}\",\"member-zone\":{{\"zone-name\":[\"z{letter}\"]}}}}]}}"
        )),
        response(format!(
            "\"effective-configuration\":{{\"cfg-name\":\"c{lower}\",\"default-zone-access\":0,\"enabled-zone\":\
             [{{\"zone-name\":\"z{letter}\",\"zone-type\":0,\"member-entry\":{{\"entry-name\":\
             [\"{host}\",\"{array}\"]}}}}]}}"
        )),
    ]
}

#[test]
fn two_fabrics_in_one_file_keep_the_zones_of_both() {
    let (c, d) = (answers('C', "0c", 31, -1), answers('D', "0d", 41, -1));
    let two = run(&[("c.json", c.concat()), ("d.json", d.concat())]);
    assert_eq!(zones(&two), set(&["zC", "zD"]));
    // Both switches may be first, too: the ports tell whose zones follow.
    let ports_first = [&c[0], &d[0], &c[1], &c[2], &c[3], &d[1], &d[2], &d[3]].map(String::as_str).concat();
    for text in [c.concat() + &d.concat(), ports_first] {
        let imported = run(&[("two.json", text.clone())]);
        assert!(bad(&imported).is_empty(), "{:?}", bad(&imported));
        assert_eq!(zones(&imported), set(&["zC", "zD"]), "{text}");
        assert_eq!(in_force(&imported), set(&["zC", "zD"]), "{text}");
        let body = |lab: &str| lab.split_once("[lab]").unwrap().1.to_owned();
        assert_eq!(body(&imported.lab), body(&two.lab), "{text}");
    }
    // A switch without an answer of its own is found by its ports.
    let imported = run(&[("two.json", [&c[1..3], &d[1..3]].concat().concat())]);
    assert!(bad(&imported).is_empty(), "{:?}", bad(&imported));
    assert_eq!(zones(&imported), set(&["zC", "zD"]));
}

#[test]
fn two_logical_switches_in_one_file_keep_the_zones_of_both() {
    let (a, b) = (answers('A', "0c", 11, 10), answers('B', "0d", 12, 20));
    // The ports of both have the name of the chassis.
    let b = b
        .map(|text| text.replace("30:0d:00", "30:0c:01").replace("20:00:d8:1f:cc:30:0c:01", "20:00:d8:1f:cc:30:0c:00"));
    for parts in [[0, 2].as_slice(), &[0, 2, 3]] {
        let text: String = [&a, &b].into_iter().flat_map(|all| parts.iter().map(|part| all[*part].as_str())).collect();
        let imported = run(&[("vf2.json", text.clone())]);
        assert_eq!(zones(&imported), set(&["zA", "zB"]), "{text}");
        let lab = sanloom_lab::load("lab.toml", &imported.lab, &[]).unwrap().lab;
        let of: Vec<(String, u16)> = lab.zone_fabrics.iter().map(|(name, id)| (name.clone(), *id)).collect();
        assert_eq!(of, [("zA".to_owned(), 10), ("zB".to_owned(), 20)], "{text}");
    }
}

#[test]
fn an_answer_before_its_switch_is_of_that_switch() {
    let c = answers('C', "0c", 31, -1);
    for order in [[2, 3, 0, 1], [1, 2, 3, 0], [3, 0, 2, 1]] {
        let imported = run(&[("c.json", order.map(|at| c[at].as_str()).concat())]);
        assert!(bad(&imported).is_empty(), "{order:?}: {:?}", bad(&imported));
        assert_eq!((zones(&imported), in_force(&imported)), (set(&["zC"]), set(&["zC"])), "{order:?}");
    }
}

#[test]
fn a_second_answer_of_a_switch_that_differs_is_a_conflict() {
    let c = answers('C', "0c", 31, -1);
    let same = run(&[("c.json", c.concat() + &c[2] + &c[3])]);
    assert!(bad(&same).is_empty(), "{:?}", bad(&same));
    // Other objects are in the lab, too.
    let defined = c[2].replace("zC", "zOther").replace("cc", "cOther");
    let imported = run(&[("c.json", c.concat() + &defined)]);
    let found = bad(&imported);
    assert_eq!(found.len(), 1, "{found:?}");
    assert_eq!(found[0].kind, NoteKind::Conflict);
    assert_eq!(found[0].places.iter().map(|place| place.line).collect::<Vec<_>>(), [3, 5]);
    assert_eq!(zones(&imported), set(&["zC", "zOther"]));
    // Of two that are in force, the first one is kept.
    let effective = c[3].replace("zC", "zOther");
    let imported = run(&[("c.json", c.concat() + &effective)]);
    let found = bad(&imported);
    assert_eq!(found.len(), 1, "{found:?}");
    assert_eq!(found[0].places.iter().map(|place| place.line).collect::<Vec<_>>(), [4, 5]);
    assert_eq!(in_force(&imported), set(&["zC"]));
}

#[test]
fn two_objects_of_one_name_in_an_answer_are_a_conflict_and_the_first_is_kept() {
    let c = answers('C', "0c", 31, -1);
    let alias = "{\"alias-name\":\"hC\",\"member-entry\":{\"alias-entry-name\":[\"10:00:00:10:9b:60:01:ff\"]}}";
    let defined = c[2].replace("\"alias\":[{", &format!("\"alias\":[\n{alias},\n{{"));
    let imported = run(&[("c.json", [&c[0], &c[1], &defined].map(String::as_str).concat())]);
    let found = bad(&imported);
    assert_eq!(found.len(), 1, "{found:?}");
    assert_eq!(found[0].kind, NoteKind::Conflict);
    assert_eq!(found[0].places.iter().map(|place| place.line).collect::<Vec<_>>(), [4, 5]);
    assert!(imported.lab.contains("10:00:00:10:9b:60:01:ff"), "{}", imported.lab);
    // An object without a name is reported.
    let nameless = c[2].replace("\"alias-name\":\"hC\",", "").replace("\"hC\",", "");
    let imported = run(&[("c.json", [&c[0], &c[1], &nameless].map(String::as_str).concat())]);
    assert!(bad(&imported).iter().any(|note| note.reason.contains("without a name")), "{:?}", bad(&imported));
}
