//! Logical switches of Fabric OS (Virtual Fabrics): each is a virtual fabric of the lab.

use super::trunks::{run, trunks};
use sanloom_fc::san::Lab;
use sanloom_lab::import::{Imported, Note, NoteKind};
use std::collections::{BTreeMap, BTreeSet};

fn load(imported: &Imported) -> Lab {
    sanloom_lab::load("lab.toml", &imported.lab, &[]).unwrap_or_else(|e| panic!("{e}\n{}", imported.lab)).lab
}

fn bad(imported: &Imported) -> Vec<&Note> {
    imported.account.notes.iter().filter(|note| note.kind <= NoteKind::Unplaced).collect()
}

fn with<'i>(imported: &'i Imported, reason: &str) -> Vec<&'i Note> {
    imported.account.notes.iter().filter(|note| note.reason.contains(reason)).collect()
}

/// Chassis, fabric ID and ports of each switch of a lab, by name.
fn fabrics(lab: &Lab) -> BTreeMap<String, (String, u16, Vec<u16>)> {
    let of = |switch: &sanloom_fc::config::Switch| {
        let fabric = switch.virtual_fabric.clone()?;
        Some((switch.name.clone(), (fabric.chassis, fabric.id, fabric.ports)))
    };
    lab.switches.iter().filter_map(of).collect()
}

/// The logical switch of a fabric ID: its ports are `base` to `base + 3`, the first a host's, the
/// second storage's, and the last a link to the other chassis.
struct Logical {
    chassis: u8,
    fid: u16,
    base: u16,
    attributes: &'static str,
}

impl Logical {
    fn name(&self) -> String {
        format!("dir{}_f{}", self.chassis, self.fid)
    }

    fn wwn(&self, chassis: u8) -> String {
        format!("10:00:50:eb:1a:{chassis:02x}:00:{:02x}", 0x20 + self.base / 4)
    }

    fn host(&self) -> String {
        format!("10:00:00:10:9b:{:02x}:00:{:02x}", self.chassis, self.fid)
    }

    fn storage(&self) -> String {
        format!("50:06:01:60:{:02x}:00:00:{:02x}", self.chassis, self.fid)
    }

    fn switchshow(&self) -> String {
        let Logical { chassis, fid, base, attributes } = self;
        let row = |port: u16, state: &str, rest: &str| {
            format!(" {port:3}  {port:3}   {chassis:02x}{port:02x}00   id    N16   {state}   FC  {rest}\n")
        };
        let far = self.wwn(3 - chassis);
        let host = row(*base, "Online", &format!("F-Port  {}", self.host()));
        let storage = row(base + 1, "Online", &format!("F-Port  {}", self.storage()));
        let free = row(base + 2, "No_Light", "");
        let link = row(base + 3, "Online", &format!("E-Port  {far} \"dir{}_f{fid}\" (upstream)", 3 - chassis));
        format!(
            "switchName:\t{}\nswitchDomain:\t{chassis}\nswitchWwn:\t{}\nLS Attributes:\t[FID: {fid}, {attributes}, Address Mode 0]\n\
             Index Port Address Media Speed State     Proto\n===\n{host}{storage}{free}{link}",
            self.name(),
            self.wwn(*chassis)
        )
    }

    fn islshow(&self) -> String {
        let port = self.base + 3;
        let far = 3 - self.chassis;
        let wwn = self.wwn(far);
        format!("  1: {port}-> {port} {wwn}  {far} dir{far}_f{} sp: 16.000G bw: 16.000G\n", self.fid)
    }

    /// The database of the fabric, which both directors show.
    fn cfgshow(&self) -> String {
        let Logical { fid, base, attributes, .. } = *self;
        let both = [1, 2].map(|chassis| Logical { chassis, fid, base, attributes });
        let defined =
            both.iter().map(|own| format!(" zone:\tz_app{}\t{}; {}\n", own.chassis, own.host(), own.storage()));
        let active =
            both.iter().map(|own| format!(" zone:\tz_app{}\t{}\n\t\t{}\n", own.chassis, own.host(), own.storage()));
        format!(
            "Defined configuration:\n cfg:\tcfg_{fid}\tz_app1; z_app2\n{}Effective configuration:\n cfg:\tcfg_{fid}\n{}",
            defined.collect::<String>(),
            active.collect::<String>()
        )
    }
}

const DEFAULT: &str = "Base Switch: No, Default Switch: Yes";
const MADE: &str = "Base Switch: No, Default Switch: No";

fn director(chassis: u8) -> [Logical; 3] {
    [(128, 0, DEFAULT), (10, 4, MADE), (20, 8, MADE)].map(|(fid, base, attributes)| Logical {
        chassis,
        fid,
        base,
        attributes,
    })
}

/// A command and its output.
type Output = (&'static str, fn(&Logical) -> String);

/// Outputs of `fosexec --fid all`, by command.
fn fosexec(chassis: u8) -> String {
    let all = director(chassis);
    let outputs: [Output; 3] =
        [("switchshow", Logical::switchshow), ("islshow", Logical::islshow), ("cfgshow", Logical::cfgshow)];
    let section = |(command, output): &Output, logical: &Logical| {
        format!("-----\n\"{command}\" on FID {}:\n\n{}\n", logical.fid, output(logical))
    };
    outputs.iter().flat_map(|output| all.iter().map(move |logical| section(output, logical))).collect()
}

/// A session with a prompt for each context.
fn session(chassis: u8) -> String {
    let one = |logical: &Logical| {
        let prompt = format!("{}:FID{}:admin>", logical.name(), logical.fid);
        let (switch, links, zones) = (logical.switchshow(), logical.islshow(), logical.cfgshow());
        format!("{prompt} switchshow\n{switch}{prompt} islshow\n{links}{prompt} cfgshow\n{zones}")
    };
    director(chassis).iter().map(one).collect()
}

/// Sections of `supportshow`, by context.
fn supportshow(chassis: u8) -> String {
    let section = |(number, logical): (usize, &Logical)| {
        let (switch, links, zones) = (logical.switchshow(), logical.islshow(), logical.cfgshow());
        format!(
            "CURRENT CONTEXT -- {number} , {}\n/fabos/cliexec/switchshow :\n{switch}/fabos/cliexec/islshow :\n{links}\
             /fabos/cliexec/cfgshow :\n{zones}",
            logical.fid
        )
    };
    director(chassis).iter().enumerate().map(section).collect()
}

#[test]
fn each_logical_switch_is_a_virtual_fabric_with_its_ports_domain_zones_and_links() {
    let wanted: BTreeMap<String, (String, u16, Vec<u16>)> = (1..=2)
        .flat_map(director)
        .map(|logical| {
            let ports = (logical.base..logical.base + 4).collect();
            (logical.name(), (format!("dir{}_f128", logical.chassis), logical.fid, ports))
        })
        .collect();
    let links: BTreeSet<BTreeSet<String>> = [(128, 3), (10, 7), (20, 11)]
        .iter()
        .map(|(fid, port)| BTreeSet::from([format!("dir1_f{fid}:{port}-dir2_f{fid}:{port}")]))
        .collect();
    let each: Vec<(&str, String)> = (1..=2)
        .flat_map(director)
        .map(|logical| ("one.txt", logical.switchshow() + &logical.islshow() + &logical.cfgshow()))
        .collect();
    let files = [
        vec![("one.txt", fosexec(1)), ("two.txt", fosexec(2))],
        vec![("one.txt", session(1)), ("two.txt", session(2))],
        vec![("one.txt", supportshow(1)), ("two.txt", supportshow(2))],
        vec![("all.txt", fosexec(1) + &session(2))],
        each,
    ];
    for files in files {
        let imported = run(&files);
        assert!(imported.is_valid && bad(&imported).is_empty(), "{:?}\n{}", bad(&imported), imported.lab);
        let lab = load(&imported);
        assert_eq!(fabrics(&lab), wanted, "{}", imported.lab);
        assert_eq!(trunks(&imported.lab), links, "{}", imported.lab);
        for switch in &lab.switches {
            assert_eq!(switch.domain.to_string(), switch.name[3..4], "{}", imported.lab);
        }
        // Both directors show one database for each fabric, with the zone `z_app` in each.
        let ids: BTreeSet<u16> = lab.zone_fabrics.values().copied().collect();
        assert_eq!(ids, BTreeSet::from([10, 20, 128]), "{}", imported.lab);
        let names = lab.switches.iter().map(|switch| &switch.name).collect::<BTreeSet<_>>();
        assert_eq!(names.len(), 6);
        // Each host has access to the storage of its own zone only.
        let pairs = lab.pairs_permitted_at_some_time();
        for host in 0..lab.hosts.len() as u16 {
            assert_eq!(pairs.storage_of_host(host).len(), 1, "{}", imported.lab);
        }
        let decisions = with(&imported, "are logical switches of one chassis");
        assert_eq!(decisions.len(), 2, "{decisions:?}");
    }
    insta::assert_snapshot!(run(&[("one.txt", fosexec(1)), ("two.txt", session(2))]).lab);
}

#[test]
fn contexts_of_one_name_are_logical_switches_of_one_chassis() {
    let text = "s:FID10:admin> switchshow\nswitchName: s\nswitchDomain: 1\ns:FID20:admin> switchshow\nswitchName: s\nswitchDomain: 2\n";
    let imported = run(&[("s.txt", text.to_owned())]);
    assert!(bad(&imported).is_empty(), "{:?}", bad(&imported));
    let lab = load(&imported);
    let found: Vec<_> = fabrics(&lab).into_values().map(|(chassis, id, _)| (chassis, id)).collect();
    assert_eq!(found, [("s".to_owned(), 10), ("s".to_owned(), 20)], "{}", imported.lab);
    assert_eq!(lab.switches.iter().map(|switch| switch.domain).collect::<BTreeSet<_>>().len(), 2);
}

#[test]
fn two_switches_with_their_default_logical_switch_only_have_no_virtual_fabrics() {
    let text = director(1)[0].switchshow() + &director(2)[0].switchshow();
    let imported = run(&[("one.txt", text)]);
    assert!(bad(&imported).is_empty(), "{:?}", bad(&imported));
    assert!(fabrics(&load(&imported)).is_empty(), "{}", imported.lab);
}

#[test]
fn a_switch_without_virtual_fabrics_has_the_fabric_id_of_its_neighbours() {
    let plain: String = director(2)[1]
        .switchshow()
        .lines()
        .filter(|line| !line.contains("FID"))
        .fold(String::new(), |text, line| text + line + "\n");
    let imported = run(&[("one.txt", fosexec(1)), ("two.txt", plain)]);
    let found = fabrics(&load(&imported));
    let ports = (4..8).collect::<Vec<u16>>();
    assert_eq!(found["dir2_f10"], ("dir2_f10".to_owned(), 10, ports), "{}", imported.lab);
}

#[test]
fn base_switches_missing_logical_switches_and_links_between_fabric_ids_are_reported() {
    let base = Logical { attributes: "Base Switch: Yes, Default Switch: No", ..director(1)[1] };
    let list = "dir1_f10:FID10:admin> lscfg --show\nCreated switches FIDs(CIDs):\t128(0)(ds)\t10(1)(bs)\t30(2)\n";
    let imported = run(&[("one.txt", base.switchshow() + &director(1)[0].switchshow() + list)]);
    let notes = bad(&imported);
    assert!(with(&imported, "base switch").len() == 1 && notes.iter().any(|note| note.text == "FID 30"), "{notes:?}");
    assert!(!notes.iter().any(|note| note.text == "FID 128" || note.text == "FID 10"), "{notes:?}");
    // The other end is in another fabric.
    let other = director(2)[1].switchshow().replace("FID: 10", "FID: 11");
    let imported = run(&[("one.txt", director(1)[1].switchshow()), ("two.txt", other)]);
    let conflicts = with(&imported, "between fabric IDs 10 and 11");
    assert!(conflicts.len() == 1 && conflicts[0].kind == NoteKind::Conflict, "{:?}", imported.account.notes);
    assert!(imported.is_valid && trunks(&imported.lab).is_empty(), "{}", imported.lab);
}

/// Answers of REST of a chassis, whose ports all have the name of the default switch.
fn rest() -> String {
    let all = director(1);
    let switches: Vec<String> = all
        .iter()
        .map(|own| {
            format!(
                "{{\"name\":\"{}\",\"domain-id\":1,\"user-friendly-name\":\"{}\",\"vf-id\":{}}}",
                own.wwn(1),
                own.name(),
                own.fid
            )
        })
        .collect();
    let rows: Vec<String> = all
        .iter()
        .map(|own| {
            let ports: Vec<String> = (own.base..own.base + 4).map(|port| format!("\"0/{port}\"")).collect();
            format!(
                "{{\"fabric-id\":{},\"switch-wwn\":\"{}\",\"base-switch-enabled\":0,\"port-member-list\":{{\"port-member\":[{}]}}}}",
                own.fid,
                own.wwn(1),
                ports.join(",")
            )
        })
        .collect();
    let ports: Vec<String> = all
        .iter()
        .flat_map(|own| [(own.base, own.host()), (own.base + 1, own.storage()), (own.base + 2, String::new())])
        .map(|(port, name)| {
            let neighbour = if name.is_empty() { String::new() } else { format!(",\"neighbor\":{{\"wwn\":[\"{name}\"]}}") };
            let kind = if name.is_empty() { 17 } else { 15 };
            format!(
                "{{\"name\":\"0/{port}\",\"wwn\":\"20:{port:02x}{}\",\"port-type\":{kind},\"operational-status\":2,\"index\":{port},\
                 \"speed\":16000000000{neighbour}}}",
                &all[0].wwn(1)[5..]
            )
        })
        .collect();
    format!(
        "{{\"Response\":{{\"fibrechannel-switch\":[{}]}}}}\n{{\"Response\":{{\"fibrechannel-logical-switch\":[{}]}}}}\n\
         {{\"Response\":{{\"fibrechannel\":[{}]}}}}\n",
        switches.join(","),
        rows.join(","),
        ports.join(",")
    )
}

#[test]
fn the_list_of_logical_switches_of_rest_tells_the_ports_of_each() {
    let imported = run(&[("chassis.json", rest())]);
    assert!(imported.is_valid && bad(&imported).is_empty(), "{:?}", bad(&imported));
    let wanted: BTreeMap<String, (String, u16, Vec<u16>)> = director(1)
        .iter()
        .map(|own| (own.name(), ("dir1_f128".to_owned(), own.fid, (own.base..own.base + 3).collect())))
        .collect();
    assert_eq!(fabrics(&load(&imported)), wanted, "{}", imported.lab);
    assert!(with(&imported, "are logical switches of one chassis").is_empty());
}

/// A session whose zones are at the prompt of `FID`, where no device of the zones is logged in.
fn zones_at(name: &str, fid: u16) -> (&'static str, String) {
    let prompt = format!("{name}:FID{fid}:admin>");
    let zones = "Defined configuration:\n cfg:\tc1\tz1\n zone:\tz1\t10:00:00:10:9b:00:00:77; 50:06:01:60:00:00:00:77\n\
                 Effective configuration:\n cfg:\tc1\n zone:\tz1\t10:00:00:10:9b:00:00:77\n\t\t50:06:01:60:00:00:00:77\n";
    ("zones.txt", format!("{prompt} zoneshow\n{zones}"))
}

#[test]
fn zones_of_a_switch_that_no_input_shows_have_the_fabric_id_of_their_prompt() {
    let switches = |fids: &[usize]| -> Vec<(&'static str, String)> {
        fids.iter().map(|fid| ("switches.txt", director(1)[*fid].switchshow())).collect()
    };
    let no_fid = "have the fabric ID of no switch of the lab";
    // FIDs 10 and 20, or 20 only, whose fabric is then the only one of the lab.
    for (own, fid, wanted) in [
        (switches(&[1, 2]), 10, Some(10)),
        (switches(&[1, 2]), 30, None),
        (switches(&[2]), 20, Some(20)),
        (switches(&[2]), 10, None),
        (switches(&[0]), 10, None),
    ] {
        // Before or behind the switches, and at a switch of another name or of the same one.
        for name in ["other", "dir1_f20"] {
            let zones = zones_at(name, fid);
            let files = [vec![zones.clone()], own.clone()].concat();
            let back = [own.clone(), vec![zones]].concat();
            for files in [files, back] {
                let imported = run(&files);
                let lab = load(&imported);
                assert!(imported.is_valid, "{:?}", imported.account.notes);
                assert_eq!(lab.zone_fabrics.get("z1").copied(), wanted, "{name} {fid}\n{}", imported.lab);
                let notes = with(&imported, no_fid);
                assert_eq!(notes.len(), usize::from(wanted.is_none()), "{name} {fid}: {notes:?}");
                assert!(notes.iter().all(|note| note.kind == NoteKind::Unplaced && note.text.contains("FID")));
                // Each switch and its neighbour.
                assert_eq!(lab.switches.len(), own.len() * 2, "{}", imported.lab);
            }
        }
    }
    // Without Virtual Fabrics in any switch, the zones are those of the only fabric.
    let plain: String = director(1)[0]
        .switchshow()
        .lines()
        .filter(|line| !line.contains("FID"))
        .map(|line| line.to_owned() + "\n")
        .collect();
    let imported = run(&[("switch.txt", plain), zones_at("other", 128)]);
    assert!(bad(&imported).is_empty(), "{:?}", bad(&imported));
}
