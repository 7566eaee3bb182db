//! Labs of the samples, and the account of their lines.

use sanloom_lab::import::{Choices, Imported, Note, NoteKind, Source, draft, import};
use sanloom_wire::Wwpn;

const SAMPLES: [&str; 5] = ["fos_session.txt", "fos_supportshow.txt", "nxos_core.txt", "nxos_edge.txt", "rest.json"];

pub fn source(name: &str) -> Source {
    let path = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/it/import").join(name);
    Source { name: name.to_owned(), text: std::fs::read_to_string(path).unwrap() }
}

pub fn files(names: &[&str]) -> Imported {
    let sources: Vec<Source> = names.iter().map(|name| source(name)).collect();
    import(&sources, &Choices::default())
}

fn text(name: &str, text: &str) -> Source {
    Source { name: name.to_owned(), text: text.to_owned() }
}

fn shown(imported: &Imported) -> String {
    let notes: Vec<String> = imported.account.notes.iter().map(ToString::to_string).collect();
    format!("{}\n{}\n", imported.lab, notes.join("\n"))
}

fn notes(imported: &Imported, kind: NoteKind) -> Vec<&Note> {
    imported.account.notes.iter().filter(|note| note.kind == kind).collect()
}

#[test]
fn three_fabrics_of_three_kinds_become_one_lab() {
    insta::assert_snapshot!(shown(&files(&SAMPLES)));
}

#[test]
fn the_lab_of_each_sample_passes_the_check() {
    for names in [&SAMPLES[..], &SAMPLES[..2], &SAMPLES[2..4], &SAMPLES[..1], &SAMPLES[2..3], &SAMPLES[4..]] {
        let imported = files(names);
        assert!(sanloom_lab::check("lab.toml", &imported.lab, &[]).is_ok(), "{names:?}\n{}", imported.lab);
        assert!(imported.account.notes.iter().all(|note| !note.text.starts_with("the lab")), "{names:?}");
    }
}

fn accounted(imported: &Imported) {
    for file in &imported.account.files {
        assert_eq!(file.lines, file.used + file.decoration + file.reported, "{file:?}");
    }
}

#[test]
fn every_line_is_used_or_decoration_or_reported() {
    for name in SAMPLES {
        let whole = source(name);
        let imported = files(&[name]);
        assert_eq!(imported.account.files[0].lines as usize, whole.text.lines().count());
        accounted(&imported);
    }
}

/// Lines that no section has: words, a row, and a key with a value.
const FOREIGN: [&str; 5] = [
    "Lorem ipsum dolor sit amet, zonally",
    "bay_ 1 garbage on up swl F 16 --",
    "zzz9",
    "Weather: fine today",
    "%Error: buffer 1 was cut",
];

/// A foreign line at any place of a sample, also behind its end, is in a note that names its place.
#[test]
fn a_foreign_line_is_reported_with_its_place() {
    // Sections that the samples lack, too.
    let defzone = "Default Zone Access Mode\n        committed - No Access\n        transaction - No Transaction\n";
    let others = [("fos", super::unread::FOS), ("nx", super::unread::NX), ("zones", super::nxos::NESTED)];
    let others = others.into_iter().chain([("defzone", defzone)]).map(|(name, whole)| text(name, whole));
    for whole in SAMPLES.map(source).into_iter().chain(others) {
        let name = &whole.name;
        let lines: Vec<&str> = whole.text.lines().collect();
        for (at, foreign) in (0..=lines.len()).flat_map(|at| FOREIGN.map(|foreign| (at, foreign))) {
            let mut changed = lines.clone();
            changed.insert(at, foreign);
            let imported = draft(&[text(name, &changed.join("\n"))], &Choices::default());
            let line = at as u32 + 1;
            let found = imported.account.notes.iter().flat_map(|note| &note.places);
            let mut found = found.filter(|place| (place.line..=place.last).contains(&line));
            assert!(found.next().is_some(), "{name}:{line}: {foreign}");
            accounted(&imported);
        }
    }
}

#[test]
fn every_truncation_of_each_sample_is_survived() {
    for name in SAMPLES {
        let whole = source(name).text;
        for end in (0..whole.len()).filter(|end| whole.is_char_boundary(*end)) {
            accounted(&draft(&[text(name, &whole[..end])], &Choices::default()));
        }
    }
}

#[test]
fn a_port_at_two_switches_is_reported_with_both_places() {
    let first = text(
        "a.txt",
        "switchName: a\nIndex Port Address Media Speed State Proto\n\
        0 0 010000 id N16 Online FC F-Port 10:00:00:10:9b:40:01:a1\n",
    );
    let second = text(
        "b.txt",
        "switchName: b\nIndex Port Address Media Speed State Proto\n\
        3 3 020300 id N16 Online FC F-Port 10:00:00:10:9b:40:01:a1\n",
    );
    let imported = import(&[first, second], &Choices::default());
    let conflicts = notes(&imported, NoteKind::Conflict);
    assert_eq!(conflicts.len(), 1, "{conflicts:?}");
    assert_eq!(
        conflicts[0].to_string(),
        "a.txt:3, b.txt:3: conflict: `10:00:00:10:9b:40:01:a1` is at a:0 and at b:3; the first place is kept; \
         import outputs of one point in time, or find the duplicate name"
    );
}

#[test]
fn zones_that_differ_between_outputs_of_one_fabric_are_reported_with_both_places() {
    let zones = |member: &str| format!("Defined configuration:\n zone:\tz1\t10:00:00:10:9b:40:01:a1; {member}\n");
    let switch = text("s.txt", "switchName: s\nswitchDomain: 3\n");
    let sources = [switch, text("a.txt", &zones("3,1")), text("b.txt", &zones("3,2"))];
    let imported = import(&sources, &Choices::default());
    let conflicts = notes(&imported, NoteKind::Conflict);
    assert_eq!(conflicts.len(), 1, "{conflicts:?}");
    let places: Vec<String> = conflicts[0].places.iter().map(ToString::to_string).collect();
    assert_eq!(places, ["a.txt:2", "b.txt:2"]);
    assert!(imported.lab.contains("\"3,1\"") && !imported.lab.contains("\"3,2\""));
}

#[test]
fn zones_in_force_that_differ_from_their_definitions_are_those_of_the_lab() {
    let sample = source("fos_session.txt");
    let (defined, effective) = sample.text.split_once("Effective configuration:").unwrap();
    let effective = effective.replacen(
        "\t\t52:4a:93:70:00:00:aa:00\n zone:\tmail2",
        "\t\t52:4a:93:70:00:00:aa:10\n zone:\tmail2",
        1,
    );
    let changed = text("fos_session.txt", &format!("{defined}Effective configuration:{effective}"));
    let imported = import(&[changed], &Choices::default());
    let conflicts = notes(&imported, NoteKind::Conflict);
    let mut conflicts: Vec<&str> = conflicts.iter().map(|note| note.text.as_str()).collect();
    conflicts.sort_unstable();
    assert_eq!(conflicts, ["mail1_arr", "prod_a"]);
    let loaded = sanloom_lab::load("lab.toml", &imported.lab, &[]).unwrap_or_else(|e| panic!("{e}"));
    let effective = loaded.lab.zone_database.effective.unwrap();
    assert_eq!(effective.name, "prod_a_effective");
    let zone = effective.zones.iter().find(|zone| zone.name == "mail1_arr_effective").unwrap();
    let members: Vec<String> = zone.members.iter().map(ToString::to_string).collect();
    assert_eq!(members, ["10:00:00:10:9b:40:01:a1", "52:4a:93:70:00:00:aa:10"]);
}

#[test]
fn the_user_decides_roles_and_nodes() {
    let port = |text: &str| text.parse::<Wwpn>().unwrap();
    let mut choices = Choices::default();
    choices.storage.insert(port("10:00:00:10:9b:40:02:b7"));
    let arrays = ["52:4a:93:70:00:00:aa:00", "52:4a:93:70:00:00:aa:10"].map(port);
    choices.nodes.push(("array9".to_owned(), arrays.to_vec()));
    let imported = import(&[source("fos_session.txt"), source("fos_supportshow.txt")], &choices);
    assert!(imported.lab.contains("# chosen with --storage"), "{}", imported.lab);
    let loaded = sanloom_lab::load("lab.toml", &imported.lab, &[]).unwrap_or_else(|e| panic!("{e}"));
    let array = loaded.lab.storage.iter().find(|storage| storage.name == "array9").unwrap();
    assert_eq!(array.ports.iter().map(|port| port.wwpn).collect::<Vec<_>>(), arrays);
}

#[test]
fn vsans_of_one_chassis_become_virtual_fabrics() {
    let show = "sw1# show flogi database\n\
        fc1/1  10  0x0a0000  10:00:00:10:9b:40:01:a1 20:00:00:10:9b:40:01:a1\n\
        fc1/2  20  0x140000  10:00:00:10:9b:40:02:a1 20:00:00:10:9b:40:02:a1\n\
        sw1# show zoneset active\n\
        zoneset name red vsan 10\n  zone name one vsan 10\n  * fcid 0x0a0000 [pwwn 10:00:00:10:9b:40:01:a1]\n\
        zoneset name blue vsan 20\n  zone name one vsan 20\n  * fcid 0x140000 [pwwn 10:00:00:10:9b:40:02:a1]\n";
    let imported = import(&[text("sw1.txt", show)], &Choices::default());
    let loaded = sanloom_lab::load("lab.toml", &imported.lab, &[]).unwrap_or_else(|e| panic!("{e}\n{}", imported.lab));
    let of = |switch: &sanloom_fc::config::Switch| switch.virtual_fabric.as_ref().map(|fabric| fabric.id);
    assert_eq!(loaded.lab.switches.iter().map(of).collect::<Vec<_>>(), [Some(10), Some(20)]);
    // Both VSANs have a zone of this name, so one of them has another name in the lab.
    let zones = &loaded.lab.zone_fabrics;
    assert_eq!(zones.values().copied().collect::<Vec<_>>(), [10, 20], "{zones:?}");
}

#[test]
fn an_access_gateway_is_no_switch_of_the_lab() {
    let gateway = "switchName: ag1\nswitchMode: Access Gateway Mode\n\
        Index Port Address Media Speed State Proto\n\
        0 0 0b0001 id N16 Online FC F-Port 10:00:00:10:9b:40:01:a1\n";
    let imported = import(&[source("fos_session.txt"), text("ag1.txt", gateway)], &Choices::default());
    assert!(!imported.lab.contains("[switch.ag1]"));
    let found = notes(&imported, NoteKind::Unplaced);
    assert!(found.iter().any(|note| note.to_string().starts_with("ag1.txt:2: ")), "{found:?}");
    assert!(notes(&imported, NoteKind::Conflict).is_empty());
}

#[test]
fn a_lab_file_of_hostile_names_is_still_toml() {
    let sample = source("fos_session.txt").text;
    let hostile = sample.replace("sanA1", "a]\"'#{1..9}").replace("mailhost1", "\u{7}\"]\n[x");
    let imported = draft(&[text("a\n\"b.txt", &hostile)], &Choices::default());
    assert!(sanloom_lab::format("lab.toml", &imported.lab).is_ok(), "{}", imported.lab);
}
