//! Answers of the REST interface, one resource in each file.

use super::trunks::{run, trunks};
use sanloom_lab::import::{Imported, NoteKind};
use std::collections::BTreeSet;

const WWNS: [&str; 2] = ["10:00:02:53:4c:00:00:01", "10:00:02:53:4c:00:00:02"];

fn switch(index: usize) -> String {
    let (wwn, number) = (WWNS[index], index + 1);
    format!(
        "{{\"Response\":{{\"fibrechannel-switch\":[{{\"name\":\"{wwn}\",\"domain-id\":{number},\
         \"user-friendly-name\":\"sw{number}\"}}]}}}}"
    )
}

/// A host at port 0, and a link to the other switch at port 4 + index.
fn ports(index: usize) -> String {
    let (own, far) = (&WWNS[index][6..], WWNS[1 - index]);
    let (link, peer, number) = (4 + index, 5 - index, index + 1);
    format!(
        "{{\"Response\":{{\"fibrechannel\":[{{\"name\":\"0/0\",\"wwn\":\"20:00:{own}\",\"port-type\":15,\
         \"operational-status\":2,\"index\":0,\"speed\":16000000000,\
         \"neighbor\":{{\"wwn\":[\"10:00:02:5a:00:00:0{number}:01\"]}}}},\
         {{\"name\":\"0/{link}\",\"wwn\":\"20:0{link}:{own}\",\"port-type\":7,\"operational-status\":2,\
         \"index\":{link},\"speed\":16000000000,\"neighbor\":{{\"wwn\":[\"20:0{peer}:{}\"]}},\
         \"neighbor-node-wwn\":\"{far}\",\"neighbor-slot-port\":\"0/{peer}\"}},\
         {{\"name\":\"0/7\",\"port-type\":17,\"operational-status\":3,\"index\":7}}]}}}}",
        &far[6..]
    )
}

fn members() -> String {
    let row = |index: usize| {
        let (wwn, number) = (WWNS[index], index + 1);
        format!("{{\"name\":\"{wwn}\",\"switch-user-friendly-name\":\"sw{number}\",\"domain-id\":{number}}}")
    };
    format!("{{\"Response\":{{\"fabric-switch\":[{},{}]}}}}", row(0), row(1))
}

fn names(imported: &Imported) -> BTreeSet<String> {
    let loaded = sanloom_lab::load("lab.toml", &imported.lab, &[]).unwrap_or_else(|e| panic!("{e}\n{}", imported.lab));
    loaded.lab.switches.iter().map(|switch| switch.name.clone()).collect()
}

fn link() -> BTreeSet<BTreeSet<String>> {
    BTreeSet::from([BTreeSet::from(["sw1:4-sw2:5".to_owned()])])
}

#[test]
fn files_of_one_switch_are_joined_by_its_world_wide_name() {
    let files = [
        ("own-1-fibrechannel.json", ports(0)),
        ("own-1-fibrechannel-switch.json", switch(0)),
        ("own-2-fibrechannel-switch.json", switch(1)),
        ("own-2-fibrechannel.json", ports(1)),
        ("own-1-fabric-switch.json", members()),
    ];
    for order in [[0, 1, 2, 3, 4], [4, 3, 2, 1, 0], [1, 0, 3, 2, 4]] {
        let ordered: Vec<(&str, String)> = order.iter().map(|at| files[*at].clone()).collect();
        let imported = run(&ordered);
        assert!(imported.is_valid);
        assert_eq!(names(&imported), BTreeSet::from(["sw1".to_owned(), "sw2".to_owned()]), "{}", imported.lab);
        assert_eq!(trunks(&imported.lab), link(), "{}", imported.lab);
        assert_eq!(imported.lab.matches("\nports = 8\n").count(), 2, "{}", imported.lab);
        let bad: Vec<_> = imported.account.notes.iter().filter(|note| note.kind <= NoteKind::Unplaced).collect();
        assert!(bad.is_empty(), "{bad:?}");
    }
    // The list of a fabric names the switches, too.
    let imported = run(&[files[0].clone(), files[3].clone(), files[4].clone()]);
    assert_eq!(names(&imported), BTreeSet::from(["sw1".to_owned(), "sw2".to_owned()]), "{}", imported.lab);
}

#[test]
fn lists_of_ports_of_two_switches_in_one_file_are_two_switches() {
    let imported = run(&[("all.json", ports(0) + &ports(1))]);
    assert_eq!(names(&imported).len(), 2, "{}", imported.lab);
    assert_eq!(imported.lab.matches("\nports = 8\n").count(), 2, "{}", imported.lab);
    let imported = run(&[("all.json", ports(0) + &switch(0) + &ports(1) + &switch(1))]);
    assert_eq!(names(&imported), BTreeSet::from(["sw1".to_owned(), "sw2".to_owned()]), "{}", imported.lab);
    assert_eq!(imported.lab.matches("\nports = 8\n").count(), 2, "{}", imported.lab);
}

#[test]
fn files_of_the_same_name_in_two_folders_are_two_switches() {
    let imported = run(&[("sw1/fibrechannel.json", ports(0)), ("sw2/fibrechannel.json", ports(1))]);
    let wanted = ["sw1-fibrechannel", "sw2-fibrechannel"].map(str::to_owned);
    assert_eq!(names(&imported), BTreeSet::from(wanted), "{}", imported.lab);
    assert_eq!(trunks(&imported.lab).len(), 1, "{}", imported.lab);
    // Outputs of commands without any name or world-wide name, too.
    let row = |number: u8| {
        format!(
            "Index Port Address Media Speed State Proto\n 0 0 0{number}0000 id N16 Online FC F-Port 10:00:00:10:9b:1c:00:0{number}\n"
        )
    };
    let imported = run(&[("a/out.txt", row(1)), ("b/out.txt", row(2))]);
    assert_eq!(names(&imported).len(), 2, "{}", imported.lab);
}

#[test]
fn a_lab_that_does_not_pass_its_check_is_known() {
    let row = " 0 0 010000 id N16 Online FC F-Port 10:00:00:10:9b:1c:00:01\n";
    let text = format!("switchName: sw1\nswitchDomain: 1\nIndex Port Address Media Speed State Proto\n{row}");
    assert!(run(&[("sw1.txt", text.clone())]).is_valid);
    // The switch has the world-wide name of the host.
    let imported = run(&[("sw1.txt", text.replace("Index", "switchWwn: 10:00:00:10:9b:1c:00:01\nIndex"))]);
    assert!(!imported.is_valid, "{}", imported.lab);
    let notes = imported.account.notes.iter().filter(|note| note.reason.starts_with("is not valid"));
    assert_eq!(notes.count(), 1);
}

#[test]
fn an_answer_without_elements_is_used_input() {
    let ports = ports(0);
    let empty = |name: &str, value: &str| format!("{{\"Response\":{{\"{name}\":{value}}}}}");
    for value in ["{}", "[]", "{\n}", "{\"cfg\":[],\"zone\":[],\"alias\":{}}"] {
        let mut files = vec![("switch.json", switch(0)), ("ports.json", ports.clone())];
        let names = ["defined-configuration", "effective-configuration", "fibrechannel-name-server", "fabric-switch"];
        let names = names.iter().filter(|name| name.ends_with("configuration") || !value.contains("cfg"));
        files.extend(names.map(|name| (*name, empty(name, value))));
        let imported = run(&files);
        let bad: Vec<_> = imported.account.notes.iter().filter(|note| note.kind <= NoteKind::Unplaced).collect();
        // The only unplaced object is the neighbour of the port, which no input shows.
        assert!(bad.iter().all(|note| note.places.iter().all(|place| place.file == "ports.json")), "{value}: {bad:?}");
        for file in &imported.account.files[2..] {
            assert_eq!((file.used, file.contents.len()), (1, 1), "{value}: {file:?}");
            assert_eq!(file.used + file.decoration + file.reported, file.lines, "{value}: {file:?}");
        }
    }
    // An object that the importer does not know is none.
    let imported = run(&[("switch.json", switch(0)), ("other.json", empty("fan", "{}"))]);
    assert!(imported.account.notes.iter().any(|note| note.reason.starts_with("has no line that the importer can use")));
}
