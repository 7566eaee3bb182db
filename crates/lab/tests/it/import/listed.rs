//! Switches that inputs list, without their ports or links.

use super::trunks::run;
use sanloom_lab::import::{Imported, Note, NoteKind};

fn row(domain: u32, name: &str) -> String {
    format!("  {domain}: fffc0{domain} 10:00:50:eb:1a:77:00:0{domain} 10.7.0.{domain}   0.0.0.0   \"{name}\"\n")
}

/// A switch with one device, and the list of the fabric.
fn member(domain: u32, name: &str, fabric: &str) -> String {
    format!(
        "switchName:\t{name}\nswitchDomain:\t{domain}\nswitchWwn:\t10:00:50:eb:1a:77:00:0{domain}\n\
         Index Port Address  Media  Speed   State         Proto\n\
         0 0 0{domain}0000 id N16 Online FC F-Port 10:00:00:10:9b:77:0{domain}:01\n\
         {name}:admin> fabricshow\n\
         Switch ID   Worldwide Name           Enet IP Addr    FC IP Addr      Name\n{fabric}"
    )
}

fn about<'i>(imported: &'i Imported, name: &str, reason: &str) -> Vec<&'i Note> {
    let is_it = |note: &&Note| note.text == name && note.reason.contains(reason);
    imported.account.notes.iter().filter(is_it).collect()
}

const SKIPPED: &str = "is not in the lab";
const APART: &str = "has no link to other switches of its fabric";

#[test]
fn each_switch_that_is_only_listed_and_each_one_without_a_link_has_a_note() {
    let fabric = [(1, "west"), (2, "east"), (3, "north")].map(|(domain, name)| row(domain, name)).concat();
    let imported = run(&[("west.txt", member(1, "west", &fabric)), ("east.txt", member(2, "east", &fabric))]);
    assert!(!imported.lab.contains("north"), "{}", imported.lab);
    let skipped = about(&imported, "north", SKIPPED);
    assert_eq!(skipped.len(), 1, "{:?}", imported.account.notes);
    assert_eq!((skipped[0].kind, skipped[0].places[0].line), (NoteKind::Unplaced, 10));
    for name in ["west", "east"] {
        let apart = about(&imported, name, APART);
        assert_eq!(apart.len(), 1, "{:?}", imported.account.notes);
        assert!(apart[0].remedy.contains("islshow"), "{:?}", apart[0]);
    }
}

#[test]
fn only_the_switch_that_no_link_joins_with_the_others_has_a_note() {
    let fabric = [(1, "west"), (2, "east"), (3, "north")].map(|(domain, name)| row(domain, name)).concat();
    let isl = "west:admin> islshow\n  1:  8->  8 10:00:50:eb:1a:77:00:02   2 east  sp: 16.000G bw: 16.000G TRUNK QOS\n";
    let files = [
        ("west.txt", format!("{}{isl}", member(1, "west", &fabric))),
        ("east.txt", member(2, "east", &fabric)),
        ("north.txt", member(3, "north", &fabric)),
    ];
    let imported = run(&files);
    let apart = |name: &str| about(&imported, name, APART).len();
    assert_eq!((apart("west"), apart("east"), apart("north")), (0, 0, 1), "{:?}", imported.account.notes);
    assert!(imported.account.notes.iter().all(|note| !note.reason.contains(SKIPPED)));
    // A switch that is alone in its fabric needs no link.
    let alone = run(&[("west.txt", member(1, "west", &row(1, "west")))]);
    assert!(about(&alone, "west", APART).is_empty(), "{:?}", alone.account.notes);
}

#[test]
fn a_domain_of_nx_os_that_is_only_listed_has_a_note() {
    let text = "m1# show fcdomain domain-list vsan 10

Number of domains: 2
Domain ID              WWN
---------    -----------------------
 0x0a(10)    20:0a:00:2a:6a:77:00:01 [Local]
 0x0b(11)    20:0a:00:2a:6a:77:00:41
m1# show flogi database
fc1/1  10  0x0a0000  10:00:00:10:9b:1c:00:01 20:00:00:10:9b:1c:00:01
";
    let imported = run(&[("m1", text.to_owned())]);
    let skipped = about(&imported, "domain11", SKIPPED);
    assert_eq!(skipped.len(), 1, "{:?}", imported.account.notes);
    assert!(skipped[0].places[0].line == 7 && skipped[0].remedy.contains("show topology"), "{:?}", skipped[0]);
}
