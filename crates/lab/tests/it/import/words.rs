//! Names of zone objects that are words of outputs and commands.

use super::trunks::run;
use sanloom_lab::import::{Imported, Note, NoteKind};
use std::collections::BTreeSet;

fn bad(imported: &Imported) -> Vec<&Note> {
    imported.account.notes.iter().filter(|note| note.kind <= NoteKind::Unplaced).collect()
}

/// Members of a zone and its principals.
fn zone(imported: &Imported, name: &str) -> [BTreeSet<String>; 2] {
    let lab = sanloom_lab::load("lab.toml", &imported.lab, &[]).unwrap_or_else(|e| panic!("{e}\n{}", imported.lab)).lab;
    let zone = &lab.zone_database.defined.zones[name];
    [&zone.members, &zone.principals].map(|list| list.iter().map(ToString::to_string).collect())
}

fn set(names: &[&str]) -> BTreeSet<String> {
    names.iter().map(|name| (*name).to_owned()).collect()
}

#[test]
fn a_member_whose_name_begins_with_the_word_member_stays_with_the_rest_of_its_line() {
    let text = "sw1:admin> cfgshow
Defined configuration:
 cfg:\tprod\tz2
 zone:\tz2\tarr_ct0; 
\t\tmember2_hba; h3
 alias:\tarr_ct0
\t\t52:4a:93:70:00:00:aa:00
 alias:\tmember2_hba
\t\t10:00:00:10:9b:40:01:a2
 alias:\th3
\t\t10:00:00:10:9b:40:01:a3
";
    for name in ["member2_hba", "MEMBER2", "Members", "member", "principal", "peer", "Status", "version", "show", "y"] {
        let imported = run(&[("m2.txt", text.replace("member2_hba", name))]);
        assert!(bad(&imported).is_empty(), "{name}: {:?}", bad(&imported));
        assert_eq!(zone(&imported, "z2")[0], set(&["arr_ct0", name, "h3"]), "{name}");
        // Alone on its line.
        let alone = text.replace("arr_ct0; \n\t\tmember2_hba; h3", "arr_ct0; \n\t\tmember2_hba; \n\t\th3");
        let imported = run(&[("m2.txt", alone.replace("member2_hba", name))]);
        assert!(bad(&imported).is_empty(), "{name}: {:?}", bad(&imported));
        assert_eq!(zone(&imported, "z2")[0], set(&["arr_ct0", name, "h3"]), "{name}");
    }
}

#[test]
fn headings_of_members_in_zoneshow_are_no_members() {
    let text = "switchName:\tsw1
sw1:admin> zoneshow --peerzone all
 zone:\tp1
    Property Member: 00:02:00:00:00:03:00:01
    Created by: User
    Principal Member(s):
        52:4a:93:70:00:00:aa:00
    Peer Member(s):
        10:00:00:10:9b:40:01:a2; 10:00:00:10:9b:40:01:a3
";
    let peers = ["10:00:00:10:9b:40:01:a2", "10:00:00:10:9b:40:01:a3"];
    for text in [text.to_owned(), text.replace("(s):\n        ", "(s): ")] {
        let imported = run(&[("p.txt", text)]);
        assert!(bad(&imported).is_empty(), "{:?}", bad(&imported));
        assert_eq!(zone(&imported, "p1"), [set(&peers), set(&["52:4a:93:70:00:00:aa:00"])]);
    }
}

#[test]
fn a_device_alias_whose_name_is_a_word_of_nx_os_is_a_plain_member() {
    for name in ["init", "target", "host", "storage", "lun", "attribute", "member", "initiator"] {
        let text = format!(
            "switchname m1
vsan database
  vsan 10 interface fc1/1
device-alias database
  device-alias name {name} pwwn 10:00:00:10:9b:1c:00:01
zone name {name} vsan 10
  member device-alias {name}
  member pwwn 50:00:09:73:00:18:1c:04
zoneset name s vsan 10
  member {name}
"
        );
        let text = text.replace(&format!("zone name {name} "), &format!("zone name z{name} "));
        let text = text.replace(&format!("  member {name}\n"), &format!("  member z{name}\n"));
        let imported = run(&[("m1.txt", text)]);
        assert!(bad(&imported).is_empty(), "{name}: {:?}", bad(&imported));
        assert_eq!(zone(&imported, &format!("z{name}")), [set(&[name, "50:00:09:73:00:18:1c:04"]), set(&[])]);
    }
    let text = "switchname m1\nvsan database\n  vsan 10 interface fc1/1\nzone name attribute vsan 10\n  \
        member pwwn 50:00:09:73:00:18:1c:04\nzoneset name s vsan 10\n  member attribute\n";
    let imported = run(&[("m1.txt", text.to_owned())]);
    assert!(imported.lab.contains("zones = [\"attribute\"]"), "{}", imported.lab);
}
