//! Sessions: outputs and the commands behind them; forms of outputs that are rare.

use crate::import::round_trip::objects;
use sanloom_fc::config::ZoneDefault;
use sanloom_fc::zoning::ZoneDatabase;
use sanloom_lab::import::{Choices, Imported, Note, NoteKind, Source, import};

fn run(text: &str) -> Imported {
    import(&[Source { name: "in.txt".to_owned(), text: text.to_owned() }], &Choices::default())
}

fn database(imported: &Imported) -> ZoneDatabase {
    let loaded = sanloom_lab::load("lab.toml", &imported.lab, &[]);
    loaded.unwrap_or_else(|error| panic!("{error}\n{}", imported.lab)).lab.zone_database
}

fn of_kind(imported: &Imported, kind: NoteKind) -> Vec<&Note> {
    imported.account.notes.iter().filter(|note| note.kind == kind).collect()
}

const BEGIN: &str = "sw1:admin> switchshow
switchName:\tsw1
switchDomain:\t1
sw1:admin> cfgshow
Defined configuration:
 cfg:\tc1\tz1
 zone:\tz1\ta1; a2
 alias:\ta1\t10:00:00:10:9b:1c:00:01
 alias:\ta2\t50:00:09:73:00:18:1c:04
Effective configuration:
 cfg:\tc1\t
 zone:\tz1\t10:00:00:10:9b:1c:00:01
\t\t50:00:09:73:00:18:1c:04
sw1:admin> alishow a1
 alias:\ta1\t10:00:00:10:9b:1c:00:01
";

#[test]
fn features_of_newer_releases_tell_initiators_and_targets() {
    let entry = |id: &str, name: &str, lines: &str| {
        format!(" N    {id};      3;{name};{name}; na\n    FC4s: FCP FC-NVMe\n{lines}    Port Index: {}\n", &id[3..4])
    };
    let text = [
        "sw1:admin> switchshow\nswitchName:\tsw1\nswitchDomain:\t1\nsw1:admin> nsshow -t\n{\n".to_owned(),
        entry(
            "010000",
            "52:4a:93:71:00:00:00:01",
            "    FC4 Features [FCP]: Target\n    FC4 Features [FC-NVMe]: NVM Subsystem Discovery Service\n",
        ),
        entry("010100", "c0:50:76:0a:00:00:00:01", "    FC4 Features [FCP]: Initiator\n"),
        entry("010200", "52:4a:93:71:00:00:00:02", "    FC4 Features [FC-NVMe]: NVM Subsystem\n"),
    ];
    let imported = run(&text.concat());
    let unknown = of_kind(&imported, NoteKind::Unplaced);
    assert!(!unknown.iter().any(|note| note.text.contains("FC4")), "{unknown:?}");
    for name in ["52:4a:93:71:00:00:00:01", "52:4a:93:71:00:00:00:02"] {
        let storage =
            imported.lab.split("[storage.").skip(1).any(|part| part.split("\n\n").next().unwrap().contains(name));
        assert!(storage, "{}", imported.lab);
    }
    assert!(!imported.lab.contains("NAA 5"), "the features decide: {}", imported.lab);
}

#[test]
fn commands_change_what_outputs_before_them_show() {
    let commands = "sw1:admin> alicreate \"a3\",\"50:00:09:73:00:18:1c:05\"
sw1:admin> zoneadd \"z1\",\"a3\"
sw1:admin> cfgenable \"c1\"
You are about to enable a new zoning configuration.
Do you want to enable 'c1' configuration  (yes, y, no, n): [no] y
zone config \"c1\" is in effect
Updating flash ...
sw1:admin> zonerename \"z1\",\"z9\"
sw1:admin> zoneobjectrename \"a2\",\"b2\"
sw1:admin> zoneobjectexpunge \"a1\"
";
    let imported = run(&format!("{BEGIN}{commands}"));
    let bad: Vec<&Note> = imported.account.notes.iter().filter(|note| note.kind < NoteKind::Decision).collect();
    assert!(bad.is_empty(), "{bad:?}");
    let found = objects(&database(&imported));
    let names: Vec<&String> = found.keys().collect();
    assert_eq!(names, ["alias a3", "alias b2", "config c1", "zone z9"]);
    let set = |names: &[&str]| names.iter().map(|name| (*name).to_owned()).collect::<std::collections::BTreeSet<_>>();
    assert_eq!(found["zone z9"].0, set(&["b2", "a3"]));
    assert_eq!(found["config c1"].0, set(&["z9"]));
    assert_eq!(database(&imported).effective.unwrap().zones[0].members.len(), 2);
}

const QUESTION: &str = "Do you want to enable 'c1' configuration  (yes, y, no, n): [no] ";

/// Zone `z1` of `BEGIN` behind commands, and the configuration in force.
fn after(commands: &str) -> (Vec<String>, Option<String>) {
    let imported = run(&format!("{BEGIN}{commands}"));
    let bad: Vec<&Note> = imported.account.notes.iter().filter(|note| note.kind < NoteKind::Conflict).collect();
    assert!(bad.is_empty(), "{commands}: {bad:?}");
    let database = database(&imported);
    let members = objects(&database).get("zone z1").map(|zone| zone.0.iter().cloned().collect());
    (members.unwrap_or_default(), database.effective.map(|effective| effective.name.clone()))
}

#[test]
fn an_aborted_transaction_changes_nothing_and_a_saved_one_stays() {
    let prompt = "sw1:admin> ";
    let edit = format!("{prompt}alicreate \"a3\",\"50:00:09:73:00:18:1c:05\"\n{prompt}zoneadd \"z1\",\"a3\"\n");
    let second = format!("{prompt}zoneremove \"z1\",\"a1\"\n");
    let (abort, save) = (format!("{prompt}cfgtransabort\n"), format!("{prompt}cfgsave -f\n"));
    let shown = format!("{prompt}cfgshow\nDefined configuration:\n cfg:\tc1\tz1\n zone:\tz1\ta1; a2; a3\n");
    for (commands, members) in [
        (edit.clone(), "a1 a2 a3"),
        (format!("{edit}{abort}"), "a1 a2"),
        (format!("{edit}{save}{second}{abort}"), "a1 a2 a3"),
        (format!("{edit}{abort}{second}{save}"), "a2"),
        // An output within the transaction shows its edits.
        (format!("{edit}{shown}{abort}"), "a1 a2"),
        (format!("{abort}{edit}"), "a1 a2 a3"),
        (format!("{edit}{prompt}cfgenable \"c1\"\n{QUESTION}y\nzone config is in effect\n{abort}"), "a1 a2 a3"),
    ] {
        assert_eq!(after(&commands).0.join(" "), members, "{commands}");
        let script = commands.replace(prompt, "").replace("cfgshow\n", "");
        assert_eq!(after(&script).0.join(" "), members, "{script}");
    }
}

/// The first output of the switch is within the transaction.
#[test]
fn an_aborted_transaction_takes_back_its_own_edits_only() {
    let (begin, rest) = BEGIN.split_once("sw1:admin> cfgshow\n").unwrap();
    let edit = "sw1:admin> alicreate \"a3\",\"50:00:09:73:00:18:1c:05\"\n";
    let shown = rest.replace(" alias:\ta2", " alias:\ta3\t50:00:09:73:00:18:1c:05\n alias:\ta2");
    let log = format!("{begin}{edit}sw1:admin> cfgshow\n{shown}sw1:admin> cfgtransabort\n");
    let found = objects(&database(&run(&log)));
    let names: Vec<&String> = found.keys().collect();
    assert_eq!(names, ["alias a1", "alias a2", "config c1", "zone z1"], "{log}");
}

#[test]
fn an_aborted_transaction_leaves_the_default_zone() {
    let deny = "sw1:admin> defzone --noaccess\n";
    let shown =
        "sw1:admin> defzone --show\nDefault Zone Access Mode\n committed - No Access\n transaction - No Transaction\n";
    let abort = "sw1:admin> cfgtransabort\n";
    let edit = "sw1:admin> zoneremove \"z1\",\"a1\"\n";
    for (commands, default) in [
        (format!("{deny}sw1:admin> cfgsave -f\n{abort}"), ZoneDefault::Closed),
        (format!("{deny}{abort}"), ZoneDefault::OpenWithoutZones),
        (format!("{edit}{shown}{abort}"), ZoneDefault::Closed),
    ] {
        assert_eq!(database(&run(&format!("{BEGIN}{commands}"))).default_zone, default, "{commands}");
    }
}

#[test]
fn the_answer_no_takes_a_command_back_and_leaves_the_transaction_open() {
    let prompt = "sw1:admin> ";
    let edit = format!("{prompt}zoneremove \"z1\",\"a1\"\n");
    let disable = format!("{prompt}cfgdisable\n{}", QUESTION.trim_end());
    let clear =
        format!("{prompt}cfgclear\nThe Clear All action will clear all Aliases, Zones and configurations\n{QUESTION}");
    let abort = format!("{prompt}cfgtransabort\n");
    let in_force = Some("c1".to_owned());
    for (commands, members, enabled) in [
        (format!("{disable} y\nUpdating flash ...\n"), "a1 a2", None),
        (format!("{disable} no\n{prompt}\n"), "a1 a2", in_force.clone()),
        // Enter is the default, and a command that did something was not refused.
        (format!("{disable}\n{prompt}\n"), "a1 a2", in_force.clone()),
        (format!("{disable}\nUpdating flash ...\n{prompt}\n"), "a1 a2", None),
        (format!("{disable} Updating flash ...\n{prompt}\n"), "a1 a2", None),
        (format!("{disable}\nOperation cancelled.\n{prompt}\n"), "a1 a2", in_force.clone()),
        (format!("{disable} q\nOperation cancelled.\n{prompt}\n"), "a1 a2", in_force.clone()),
        (format!("{disable} Operation cancelled.\n{prompt}\n"), "a1 a2", in_force.clone()),
        (format!("{clear}n\n"), "a1 a2", in_force.clone()),
        (format!("{clear}y\n{abort}"), "a1 a2", in_force.clone()),
        (format!("{edit}{disable} n\n{abort}"), "a1 a2", in_force.clone()),
        // Edits that are not saved are not in force.
        (format!("{edit}{disable} n\n"), "a2", Some("c1_effective".to_owned())),
        // In a script the answer has a line of its own.
        ("cfgdisable\nn\n".to_owned(), "a1 a2", in_force.clone()),
        ("cfgdisable\ny\n".to_owned(), "a1 a2", None),
    ] {
        let found = after(&commands);
        assert_eq!((found.0.join(" ").as_str(), found.1), (members, enabled), "{commands}");
    }
}

#[test]
fn a_name_that_no_switch_accepts_leaves_the_lab_valid() {
    let imported = run(&BEGIN.replace("a1", "a`1").replace("alishow a`1", "alishow"));
    assert_eq!(objects(&database(&imported)).len(), 4, "{}", imported.lab);
    let decisions = of_kind(&imported, NoteKind::Decision);
    assert!(decisions.iter().any(|note| note.reason.contains("is no name that switches accept")), "{decisions:?}");
}

#[test]
fn the_name_of_a_configuration_may_end_like_an_option() {
    let names = "sw1:admin> cfgcreate \"prod-f\",\"z1\"\n";
    for command in ["cfgenable \"prod-f\"", "cfgenable prod-f", "cfgenable -f \"prod-f\"", "cfgenable \"prod-f\" -f"] {
        let found = after(&format!("{names}sw1:admin> {command}\n"));
        assert_eq!(found.1.as_deref(), Some("prod-f"), "{command}");
    }
}

#[test]
fn words_about_zones_that_are_not_known_count_as_unplaced() {
    let unknown = ["zoneobjectreplace 1 2", "zonefrobnicate \"z1\"", "alifoo x", "cfgmcdtmode 1"];
    for command in unknown {
        let imported = run(&format!("{BEGIN}sw1:admin> {command}\n"));
        let unplaced = of_kind(&imported, NoteKind::Unplaced);
        assert_eq!(unplaced.len(), 1, "{command}: {unplaced:?}");
        assert_eq!(unplaced[0].places[0].line, BEGIN.lines().count() as u32 + 1);
    }
    // Outputs about zones without use are known.
    assert!(of_kind(&run(&format!("{BEGIN}sw1:admin> cfgsize\n x: 1\n")), NoteKind::Unplaced).is_empty());
}

#[test]
fn the_output_of_defzone_sets_the_default_zone() {
    for (word, default) in [("No Access", ZoneDefault::Closed), ("All Access", ZoneDefault::OpenWithoutZones)] {
        let output =
            format!("Default Zone Access Mode\n        committed - {word}\n        transaction - No Transaction\n");
        for command in ["sw1:admin> defzone --show\n", "defzone --show\n", ""] {
            let imported = run(&format!("{BEGIN}{command}{output}"));
            assert!(of_kind(&imported, NoteKind::Unplaced).is_empty(), "{:?}", imported.account.notes);
            assert_eq!(database(&imported).default_zone, default, "{command}{output}");
        }
    }
}

#[test]
fn principals_of_peer_zones_are_counted_by_their_names() {
    let text = |count: u8| {
        format!(
            "switchName: s\nswitchDomain: 1\nDefined configuration:\n cfg:\tc\tp\n zone:\tp\n\t\t00:02:00:00:00:03:01:{count:02x}; two; one; host\n\
             \x20alias:\thost\t10:00:00:10:9b:1c:00:01\n alias:\tone\t50:00:09:73:00:18:1c:04\n\
             \x20alias:\ttwo\t50:00:09:73:00:18:1c:05; 50:00:09:73:00:18:1c:06\n"
        )
    };
    let principals = |count| {
        let found = objects(&database(&run(&text(count))));
        found["zone p"].1.iter().cloned().collect::<Vec<_>>()
    };
    assert_eq!(principals(2), ["two"]);
    assert_eq!(principals(3), ["one", "two"]);
}

#[test]
fn a_running_configuration_alone_has_the_zones_of_device_aliases() {
    let text = "switchname m1
vsan database
  vsan 10
device-alias database
  device-alias name h pwwn 10:00:00:10:9b:1c:00:01
  device-alias name t pwwn 50:00:09:73:00:18:1c:04
zone name z1 vsan 10
  member device-alias h
  member device-alias t
zone name z2 vsan 20
  member device-alias h
  member device-alias t
zoneset name s vsan 10
  member z1
zoneset activate name s vsan 10
interface fc1/1
vsan database
  vsan 10 interface fc1/1
";
    let imported = run(text);
    let unplaced = of_kind(&imported, NoteKind::Unplaced);
    assert!(unplaced.is_empty(), "{unplaced:?}");
    let found = objects(&database(&imported));
    assert_eq!(found["zone z1"].0.len(), 2);
    assert_eq!(found["zone z2"].0.len(), 2);
    // Without the zones, a remedy names commands of NX-OS.
    let imported = run("m1# show running-config\nvsan database\n  vsan 10\nzoneset activate name s vsan 10\n");
    let remedy = &of_kind(&imported, NoteKind::Unplaced)[0].remedy;
    assert!(remedy.contains("show ") && !remedy.contains("cfgshow"), "{remedy}");
}

#[test]
fn a_document_on_one_line_is_accounted_by_its_values() {
    let pretty = r#"{
  "fibrechannel-switch": [{
    "name": "10:00:88:94:71:61:a3:01",
    "user-friendly-name": "s1",
    "domain-id": 1,
    "odd": 1,
    "model": "x"
  }],
  "unknown": {"a": 1}
}"#;
    let line = pretty.lines().map(str::trim).collect::<String>();
    for text in [pretty, &line] {
        let imported = run(text);
        let ignored = of_kind(&imported, NoteKind::Ignored);
        assert_eq!(ignored.len(), 1, "{text}: {ignored:?}");
        assert!(ignored[0].reason.starts_with("(3 lines)") || ignored[0].reason.starts_with("(3 "), "{ignored:?}");
    }
}

#[test]
fn xml_is_named_with_its_remedy() {
    let imported = run("<?xml version=\"1.0\"?>\n<Response>\n</Response>\n");
    let unplaced = of_kind(&imported, NoteKind::Unplaced);
    assert_eq!(unplaced.len(), 1);
    assert!(unplaced[0].reason.contains("XML") && unplaced[0].remedy.contains("json"), "{unplaced:?}");
    let account = &imported.account.files[0];
    assert_eq!(account.lines, account.used + account.decoration + account.reported);
}

#[test]
fn two_switches_of_one_name_without_fabric_ids_are_a_conflict() {
    let text =
        "s:admin> switchshow\nswitchName: s\nswitchDomain: 1\ns:admin> switchshow\nswitchName: s\nswitchDomain: 2\n";
    let imported = run(text);
    let conflicts = of_kind(&imported, NoteKind::Conflict);
    assert_eq!(conflicts.len(), 1, "{conflicts:?}");
    assert_eq!(conflicts[0].places.iter().map(|place| place.line).collect::<Vec<_>>(), [3, 6]);
    assert!(imported.lab.contains("domain = 1"));
}

#[test]
fn a_node_that_cannot_have_its_chosen_name_leaves_a_note() {
    let text = "switchName: sw1\nswitchDomain: 1\nIndex Port Address  Media  Speed   State         Proto\n\
        0   0   010000   id    N16\tOnline      FC  F-Port  10:00:00:10:9b:1c:01:01\n\
        alicreate \"esx1\", \"10:00:00:10:9b:1c:01:01\"\n";
    let ports = vec!["10:00:00:10:9b:1c:01:01".parse().unwrap()];
    let choices = Choices { nodes: vec![("esx1".to_owned(), ports)], ..Choices::default() };
    let imported = import(&[Source { name: "in.txt".to_owned(), text: text.to_owned() }], &choices);
    let notes = of_kind(&imported, NoteKind::Decision);
    assert!(notes.iter().any(|note| note.text == "esx1" && note.reason.contains("esx1-2")), "{notes:?}");
}

#[test]
fn the_end_of_a_session_of_fabric_os_is_no_configuration_of_nx_os() {
    for end in ["exit", "logout"] {
        let imported = run(&format!("{BEGIN}sw1:admin> {end}\nConnection to sw1 closed.\n"));
        let notes: Vec<&Note> = imported.account.notes.iter().filter(|note| note.kind <= NoteKind::Unplaced).collect();
        assert!(notes.is_empty(), "{notes:?}");
        assert_eq!(imported.account.files[0].contents, ["switchshow", "cfgshow"], "{end}");
    }
}
