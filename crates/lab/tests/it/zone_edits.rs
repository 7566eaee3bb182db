//! Files of zone edits: their effect, and the diagnostics of their errors.

use sanloom_fc::config::ZoneDefault;
use sanloom_fc::san::Lab;
use sanloom_fc::zoning::{MemberRef, ZoneDatabase};

const LAB: &str = r#"
[switch.sw]
domain = 1

[host."server{1..4}"]

[storage."disk{1..4}"]

[[link]]
from = "{server,disk}{1..4}"
to = "sw"

[zoning]
default = "closed"

[[alias]]
name = "app"
members = "server1"

[[zone]]
name = "z{1..2}"
members = ["server{1..2}", "disk{1..2}"]
"#;

const CONFIGS: &str = r#"
[[zone_config]]
name = "day"
zones = ["z1"]
"#;

fn lab(text: &str) -> Lab {
    sanloom_lab::load("lab.toml", text, &[]).expect("a good lab").lab
}

fn edited(lab: &Lab, edits: &str) -> ZoneDatabase {
    let transaction = sanloom_lab::edit_zones("edits.toml", edits, lab).unwrap_or_else(|wrong| panic!("{wrong}"));
    transaction.commit().expect("no problem is left")
}

fn in_force(database: &ZoneDatabase) -> Vec<&str> {
    database.effective.iter().flat_map(|effective| &effective.zones).map(|zone| zone.name.as_str()).collect()
}

#[test]
fn edits_are_done_in_order_and_count_at_once_where_a_lab_has_no_configurations() {
    let lab = lab(LAB);
    let edits = r#"
        [[edit]]
        action = "create"
        alias = "new"
        members = ["server3", "1,7"]

        [[edit]]
        action = "create"
        zone = "p{1..2}"
        members = "server{1..4}"
        principals = "disk{3..4}"

        [[edit]]
        action = "add"
        zone = "p1"
        members = "new"

        [[edit]]
        action = "rename"
        alias = "new"
        to = "newer"

        [[edit]]
        action = "remove"
        zone = "z1"
        members = "disk1"

        [[edit]]
        action = "delete"
        zone = "z2"

        [[edit]]
        action = "default"
        default = "open"
    "#;
    let database = edited(&lab, edits);
    assert_eq!(in_force(&database), ["z1", "p1", "p2"]);
    assert_eq!(database.default_zone, ZoneDefault::Open);
    let p1 = &database.defined.zones["p1"];
    assert_eq!((p1.members.len(), p1.principals.len()), (3, 1));
    assert_eq!(p1.members[2], MemberRef::Alias("newer".into()));
    assert_eq!(database.defined.zones["z1"].members.len(), 1);
    let first = &database.effective.as_ref().expect("in force").zones[1];
    assert_eq!((first.members.len(), first.is_peer()), (4, true));
}

#[test]
fn the_effective_configuration_is_enabled_again_unless_an_edit_disables_or_replaces_it() {
    let lab = lab(&format!("{LAB}{CONFIGS}"));
    assert_eq!(in_force(&lab.zone_database), ["z1"]);
    let add = "[[edit]]\naction = \"add\"\nconfig = \"day\"\nzones = \"z2\"\n";
    assert_eq!(in_force(&edited(&lab, add)), ["z1", "z2"]);
    assert_eq!(in_force(&edited(&lab, &format!("{add}[[edit]]\naction = \"disable\"\n"))), [""; 0]);
    let night = "[[edit]]\naction = \"create\"\nconfig = \"night\"\nzones = \"z2\"\n";
    assert_eq!(in_force(&edited(&lab, night)), ["z1"]);
    let every_key = edited(&lab, include_str!("edits/every_key.toml"));
    assert_eq!(in_force(&every_key), ["z1", "p1"]);
    assert_eq!(every_key.defined.zones["p2"].members.last(), Some(&MemberRef::Alias("newer".into())));
    let enable = format!("{night}[[edit]]\naction = \"enable\"\nconfig = \"night\"\n");
    assert_eq!(in_force(&edited(&lab, &enable)), ["z2"]);
}

#[test]
fn mistakes_read_well() {
    let lab = lab(&format!("{LAB}{CONFIGS}"));
    let cases = [
        ("syntax", "[[edit]\n"),
        ("another section", "[zone]\nname = \"z9\"\n"),
        ("no list", "[edit]\naction = \"disable\"\n"),
        ("no action", "[[edit]]\nzone = \"z1\"\n"),
        ("an unknown action", "[[edit]]\naction = \"ad\"\n"),
        ("about nothing", "[[edit]]\naction = \"delete\"\n"),
        ("about two things", "[[edit]]\naction = \"delete\"\nzone = \"z1\"\nalias = \"app\"\n"),
        ("a key too many", "[[edit]]\naction = \"delete\"\nzone = \"z1\"\nmembers = \"disk1\"\n"),
        ("nothing to add", "[[edit]]\naction = \"add\"\nzone = \"z1\"\n"),
        ("principals of an alias", "[[edit]]\naction = \"add\"\nalias = \"app\"\nprincipals = \"disk1\"\n"),
        ("no new name", "[[edit]]\naction = \"rename\"\nzone = \"z1\"\n"),
        ("a bad name", "[[edit]]\naction = \"rename\"\nzone = \"z1\"\nto = \"1z\"\n"),
        ("a name in use", "[[edit]]\naction = \"create\"\nzone = \"app\"\nmembers = \"disk1\"\n"),
        ("an unknown zone", "[[edit]]\naction = \"add\"\nzone = \"z\"\nmembers = \"disk1\"\n"),
        ("an unknown member", "[[edit]]\naction = \"add\"\nzone = \"z1\"\nmembers = \"disk9\"\n"),
        ("no member", "[[edit]]\naction = \"remove\"\nzone = \"z1\"\nmembers = \"disk2\"\n"),
        ("still in use", "[[edit]]\naction = \"delete\"\nzone = \"z1\"\n"),
        ("enabled and unknown", "[[edit]]\naction = \"enable\"\nconfig = \"dya\"\n"),
    ];
    let mut text = String::new();
    for (what, edits) in cases {
        let wrong = sanloom_lab::edit_zones("edits.toml", edits, &lab).expect_err(what);
        text.push_str(&format!("## {what}\n{}\n", wrong.render(false)));
    }
    insta::assert_snapshot!(text);
}
