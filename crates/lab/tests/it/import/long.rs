//! Long lists and many switches in one file. Each is too large for a search of the whole list at
//! each of its parts.

use sanloom_lab::import::{Choices, Imported, Note, NoteKind, Source, draft};
use std::collections::BTreeSet;

fn run(text: String) -> Imported {
    draft(&[Source { name: "long.txt".to_owned(), text }], &Choices::default())
}

fn bad(imported: &Imported) -> Vec<&Note> {
    imported.account.notes.iter().filter(|note| note.kind <= NoteKind::Unplaced).take(3).collect()
}

/// Different port names.
fn names(count: u32) -> Vec<String> {
    let byte = |number: u32, place: u32| number >> (8 * place) & 0xff;
    let name = |n: u32| format!("10:00:00:10:9b:{:02x}:{:02x}:{:02x}", byte(n, 2), byte(n, 1), byte(n, 0));
    (0..count).map(name).collect()
}

const MEMBERS: u32 = 200_000;

#[test]
fn a_command_with_very_many_members_and_no_blanks_is_read() {
    let switch = "switchName:\tsw1\nswitchDomain:\t1\n";
    let all = names(MEMBERS);
    for list in [all.join(";"), format!("\"{}\"", all.join(";"))] {
        let imported = run(format!("{switch}sw1:admin> zonecreate \"z\",{list}\n"));
        assert!(bad(&imported).is_empty(), "{:?}", bad(&imported));
        assert_eq!(imported.lab.matches("10:00:00:10:9b:").count(), all.len());
    }
    // Members that are added and removed, one command for each and one for all.
    let (first, rest) = all.split_at(1);
    let begin = format!("{switch}sw1:admin> zonecreate \"z\", \"{}\"\n", first[0]);
    let each: String = rest.iter().map(|name| format!("zoneadd \"z\", \"{name}\"\n")).collect();
    let imported = run(format!("{begin}{each}{each}"));
    assert!(bad(&imported).is_empty(), "{:?}", bad(&imported));
    assert_eq!(imported.lab.matches("10:00:00:10:9b:").count(), all.len());
    let imported = run(format!("{begin}{each}zoneremove \"z\", \"{}\"\n", rest.join("; ").to_uppercase()));
    assert!(bad(&imported).is_empty(), "{:?}", bad(&imported));
    assert_eq!(imported.lab.matches("10:00:00:10:9b:").count(), 1);
}

#[test]
fn a_zone_of_nx_os_with_very_many_members_is_read() {
    let all = names(MEMBERS);
    let lines: String = all.iter().map(|name| format!("  member pwwn {name}\n")).collect();
    let text = format!("switchname m1\nvsan database\n  vsan 10 interface fc1/1\nzone name z vsan 10\n{lines}{lines}");
    let imported = run(text);
    assert!(bad(&imported).is_empty(), "{:?}", bad(&imported));
    assert_eq!(imported.lab.matches("10:00:00:10:9b:").count(), all.len());
}

#[test]
fn very_many_members_and_device_aliases_of_nx_os_are_removed() {
    let all = names(MEMBERS);
    let (gone, kept) = all.split_at(all.len() - 3);
    let zone = "switchname m1\nvsan database\n  vsan 10 interface fc1/1\nzone name z vsan 10\n";
    let lines = |no: &str, names: &[String]| -> String {
        names.iter().map(|name| format!("  {no}member pwwn {name}\n")).collect()
    };
    let imported = run(format!("{zone}{}{}{}", lines("", &all), lines("no ", gone), lines("", &gone[..2])));
    assert!(bad(&imported).is_empty(), "{:?}", bad(&imported));
    let found = all.iter().filter(|name| imported.lab.contains(*name)).collect::<Vec<_>>();
    assert_eq!(found, gone[..2].iter().chain(kept).collect::<Vec<_>>());
    let aliases = |no: &str, names: &[String]| -> String {
        let port = |name: &String| if no.is_empty() { format!(" pwwn {name}") } else { String::new() };
        names.iter().map(|name| format!("  {no}device-alias name d{}{}\n", name.replace(':', ""), port(name))).collect()
    };
    let text =
        format!("device-alias database\n{}{}{}", aliases("", &all), aliases("no ", gone), aliases("", &gone[..2]));
    let imported = run(format!("switchname m1\nvsan database\n  vsan 10 interface fc1/1\n{text}"));
    assert!(bad(&imported).is_empty(), "{:?}", bad(&imported));
    assert_eq!(imported.lab.matches("[[alias]]").count(), 5, "{}", imported.lab);
    assert!(
        all.iter().filter(|name| imported.lab.contains(*name)).eq(gone[..2].iter().chain(kept)),
        "{}",
        imported.lab
    );
}

const ALIASES: usize = 60_000;
const ZONES: usize = ALIASES / 2;

#[test]
fn very_many_objects_are_renamed_and_expunged() {
    let zones: Vec<String> = (0..ZONES).map(|n| format!("old_z{n}")).collect();
    let mut text = "switchName:\tsw1\nswitchDomain:\t1\nDefined configuration:\n".to_owned();
    text += &format!(" cfg:\tc\t{}\n", zones.join("; "));
    (0..ZONES).for_each(|n| text += &format!(" zone:\told_z{n}\told_a{n}; old_a{}\n", n + ZONES));
    names(ALIASES as u32).iter().enumerate().for_each(|(n, port)| text += &format!(" alias:\told_a{n}\t{port}\n"));
    for (kind, count) in [("a", ALIASES), ("z", ZONES)] {
        (0..count).for_each(|n| text += &format!("zoneobjectrename \"old_{kind}{n}\", \"new_{kind}{n}\"\n"));
    }
    // The second member of each zone.
    (0..ZONES).for_each(|n| text += &format!("zoneobjectexpunge \"new_a{}\"\n", n + ZONES));
    let imported = run(text);
    assert!(bad(&imported).is_empty(), "{:?}", bad(&imported));
    let count = |part: &str| imported.lab.matches(part).count();
    assert_eq!((count("[[alias]]"), count("[[zone]]"), count("old_")), (ZONES, ZONES, 0));
    assert_eq!((count("\"new_a"), count("\"new_z")), (2 * ZONES, 2 * ZONES), "defined, and named once");
    assert!(imported.lab.contains(&format!("members = [\"new_a{}\"]", ZONES - 1)));
}

#[test]
fn very_many_prompts_of_different_switches_are_as_many_switches() {
    let prompts: String = (0..50_000).map(|n| format!("sw{n}:admin> version\n")).collect();
    let last = "sw49999:admin> switchshow\nswitchName:\tsw49999\nswitchDomain:\t7\n";
    let imported = run(format!("{prompts}{prompts}{last}"));
    assert!(bad(&imported).is_empty(), "{:?}", bad(&imported));
    assert_eq!(imported.lab.matches("[switch.").count(), 1);
    assert!(imported.lab.contains("[switch.sw49999]\ndomain = 7\n"), "{}", imported.lab);
    let outputs = |n: u32| format!("sw{n}:admin> switchshow\nswitchWwn:\t{}\n", wwn(n));
    let imported = run((0..20_000).map(outputs).collect());
    assert_eq!(imported.lab.matches("[switch.").count(), 20_000);
}

/// The world-wide name of a switch.
fn wwn(number: u32) -> String {
    format!("10:00:00:05:{:02x}:{:02x}:{:02x}:00", number >> 16, number >> 8 & 0xff, number & 0xff)
}

const ROWS: u32 = 60_000;

/// The port table of a switch whose E-Ports all have the same kind of text behind them.
fn table(row: impl Fn(u32) -> String) -> String {
    let rows: String = (0..ROWS).map(|n| format!(" {n} {n} 010000 id N16 Online FC E-Port {}\n", row(n))).collect();
    format!(
        "switchName:\tsw1\nswitchDomain:\t1\nswitchWwn:\t10:00:00:06:00:00:00:01\n\
         Index Port Address Media Speed State Proto\n{rows}"
    )
}

#[test]
fn very_many_links_of_one_switch_are_read() {
    let different: &dyn Fn(u32) -> String = &|n| format!("{} \"sw{}\"", wwn(n), n + 2);
    let same_name: &dyn Fn(u32) -> String = &|n| format!("{} \"same\"", wwn(n));
    let without_name: &dyn Fn(u32) -> String = &|n| wwn(n);
    for row in [different, same_name, without_name] {
        let imported = run(table(row));
        assert_eq!(imported.lab.matches("[[isl]]").count(), ROWS as usize);
        let switches: BTreeSet<&str> = imported.lab.lines().filter(|line| line.starts_with("[switch.")).collect();
        assert_eq!(switches.len(), 1 + ROWS as usize);
    }
    let one = |n: u32| format!("{} \"sw2\" port {n}", wwn(9));
    assert_eq!(run(table(one)).lab.matches("[[isl]]").count(), ROWS as usize);
}

#[test]
fn very_many_ports_of_one_trunk_are_read() {
    let flat =
        |n: u32| if n == 0 { format!("{} \"sw2\"", wwn(9)) } else { "(Trunk port, master is Port 0)".to_owned() };
    let chain = |n: u32| match n {
        0 => format!("{} \"sw2\"", wwn(9)),
        _ => format!("(Trunk port, master is Port {})", n - 1),
    };
    let flat = run(table(flat));
    assert!(bad(&flat).is_empty(), "{:?}", bad(&flat));
    assert_eq!(flat.lab.matches("[[isl]]").count(), 1);
    assert!(flat.lab.contains("bundle = true"));
    let chained = run(table(chain));
    assert_eq!(chained.lab.matches("[[isl]]").count(), 1);
}
