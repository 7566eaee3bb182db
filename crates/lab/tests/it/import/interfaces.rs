//! Lists of interfaces of NX-OS, VSANs, and rows of `show interface brief`.

use super::trunks::run;
use sanloom_lab::import::{Imported, Note, NoteKind};
use std::collections::BTreeMap;

fn bad(imported: &Imported) -> Vec<&Note> {
    imported.account.notes.iter().filter(|note| note.kind <= NoteKind::Unplaced).collect()
}

fn names(imported: &Imported, line: u32, kind: NoteKind) -> bool {
    let is_at = |note: &&Note| note.places.iter().any(|place| (place.line..=place.last).contains(&line));
    imported.account.notes.iter().filter(is_at).any(|note| note.kind == kind)
}

/// Rates of links by the name of the interface, which is a comment in the lab.
fn rates(imported: &Imported) -> BTreeMap<String, String> {
    let links = imported.lab.split("[[link]]").skip(1);
    let rate = |link: &str| link.split_once("rate = \"").map(|(_, rest)| rest.split('"').next().unwrap().to_owned());
    links
        .map(|link| (link.lines().next().unwrap().trim_start_matches([' ', '#']).to_owned(), rate(link)))
        .filter_map(|(name, rate)| Some((name, rate?)))
        .collect()
}

const LOGINS: &str = "mds1# show flogi database
fc1/1  10  0x150000  10:00:00:10:9b:50:01:a1 20:00:00:10:9b:50:01:a1
fc1/4  10  0x150400  10:00:00:10:9b:50:01:a4 20:00:00:10:9b:50:01:a4
fc1/5  10  0x150100  10:00:00:10:9b:50:01:a5 20:00:00:10:9b:50:01:a5
fc1/6  10  0x150600  10:00:00:10:9b:50:01:a6 20:00:00:10:9b:50:01:a6
fc1/9  10  0x150200  52:4a:93:70:00:00:aa:09 52:4a:93:70:00:00:aa:01
";

#[test]
fn a_list_of_interfaces_with_blanks_has_the_settings_below_it() {
    let lists = [("fc1/1 - 4", "fc1/5, fc1/6"), ("fc1/1-4", "fc1/5,fc1/6"), ("fc1/1 - fc1/4", "fc1/5 , fc1/6")];
    for (range, list) in lists {
        let text = format!(
            "mds1# show running-config
switchname mds1
vsan database
  vsan 10 interface {range}, {list}
  vsan 10 interface fc1/9
interface fc1/9
  switchport speed 8000
interface {range}
  switchport speed 16000
interface {list}
  switchport speed 64000
{LOGINS}"
        );
        let imported = run(&[("mds1.txt", text)]);
        assert!(bad(&imported).is_empty(), "{:?}", bad(&imported));
        let expected = [("fc1/1", 16), ("fc1/4", 16), ("fc1/5", 64), ("fc1/6", 64), ("fc1/9", 8)];
        let expected = expected.map(|(name, rate)| (name.to_owned(), format!("{rate}GFC")));
        assert_eq!(rates(&imported), BTreeMap::from(expected), "{range}; {list}");
    }
}

#[test]
fn a_list_of_interfaces_that_cannot_be_read_is_reported_with_the_settings_below_it() {
    for list in ["fc1/1 -", "fc1/4 - 1", "fc1/1 4", "fc1/1, 4", "fc1/x", "fc1/1, Ethernet1/1 foo", "fc1/1 - 9999"] {
        let text = format!(
            "mds1# show running-config
switchname mds1
vsan database
  vsan 10 interface {list}
interface fc1/9
  switchport speed 8000
interface {list}
  switchport speed 16000
{LOGINS}"
        );
        let imported = run(&[("mds1.txt", text)]);
        for line in [4, 7, 8] {
            assert!(names(&imported, line, NoteKind::Unplaced), "{list}, line {line}: {:?}", imported.account.notes);
        }
        let expected = BTreeMap::from([("fc1/9".to_owned(), "8GFC".to_owned())]);
        assert_eq!(rates(&imported), expected, "{list}");
    }
}

#[test]
fn settings_of_another_kind_of_interface_are_not_those_of_the_one_before() {
    for other in ["Ethernet1/1", "Ethernet 1/1 - 4", "mgmt0", "Vlan10", "loopback0"] {
        let text = format!(
            "mds1# show running-config\nswitchname mds1\ninterface fc1/9\n  switchport speed 8000\n\
             interface {other}\n  switchport speed 10000\n{LOGINS}"
        );
        let imported = run(&[("mds1.txt", text)]);
        let expected = BTreeMap::from([("fc1/9".to_owned(), "8GFC".to_owned())]);
        assert_eq!(rates(&imported), expected, "{other}");
        assert!(names(&imported, 5, NoteKind::Ignored) && names(&imported, 6, NoteKind::Ignored), "{other}");
    }
}

#[test]
fn the_name_of_a_vsan_is_ignored_and_its_suspension_is_reported() {
    let text = format!(
        "mds1# show running-config\nswitchname mds1\nvsan database\n  vsan 10\n  vsan 10 name \"P\"\n  \
         vsan 10 suspend\n  vsan 10 zz\n{LOGINS}"
    );
    let imported = run(&[("mds1.txt", text)]);
    assert!(names(&imported, 5, NoteKind::Ignored), "{:?}", imported.account.notes);
    for line in [6, 7] {
        assert!(names(&imported, line, NoteKind::Unplaced), "{line}: {:?}", imported.account.notes);
    }
    assert!(bad(&imported).iter().any(|note| note.reason.starts_with("suspends a VSAN")));
}

#[test]
fn every_row_of_an_interface_brief_is_an_interface_or_is_reported() {
    let text = "n5k# show interface brief
-------------------------------------------------------------------------------
Interface  Vsan   Admin  Admin   Status       SFP    Oper  Oper   Port
                  Mode   Trunk                       Mode  Speed  Channel
                         Mode                              (Gbps)
-------------------------------------------------------------------------------
fc2/1      1      auto   on      up           swl    F     8      --
bay3       1      auto   on      up           swl    F     4      --
-------------------------------------------------------------------------------
Interface                 Vsan   Admin  Status          Oper  Oper
                                 Trunk                  Mode  Speed
                                 Mode                         (Gbps)
-------------------------------------------------------------------------------
san-port-channel 11       1      on     trunking        TE    16
vfc-po100                 1      on     trunking        TF    10
ext15                     1      auto   up
-------------------------------------------------------------------------------
Ethernet      VLAN    Type Mode   Status  Reason                   Speed     Port
Interface                                                                    Ch #
-------------------------------------------------------------------------------
Eth1/1        1       eth  access down    Link not connected         10G(D) --
local 1 garbage
Lorem ipsum
n5k# show flogi database
bay3   1  0x150000  52:4a:93:70:00:00:aa:01 52:4a:93:70:00:00:aa:01
fc2/1  1  0x150100  10:00:00:10:9b:50:01:a5 20:00:00:10:9b:50:01:a5
";
    let imported = run(&[("n5k.txt", text.to_owned())]);
    let notes: Vec<(&str, u32, u32)> =
        bad(&imported).iter().map(|note| (&*note.text, note.places[0].line, note.places[0].last)).collect();
    // No input names the other ends of the port-channels.
    let expected = [("n5k:san-port-channel11", 14, 14), ("n5k:vfc-po100", 15, 15), ("local 1 garbage", 22, 23)];
    assert_eq!(notes, expected);
    assert!(names(&imported, 21, NoteKind::Ignored));
    let expected = [("bay3", 4), ("fc2/1", 8)].map(|(name, rate)| (name.to_owned(), format!("{rate}GFC")));
    assert_eq!(rates(&imported), BTreeMap::from(expected), "{}", imported.lab);
}

#[test]
fn a_port_channel_with_a_blank_in_its_name_is_the_one_of_its_members() {
    let side = |name: &str, domain: u32, peer: &str, other: u32| {
        format!(
            "{name}# show running-config
switchname {name}
interface san-port-channel 11
interface fc2/1 - 2
  switchport speed 8000
  channel-group 11 force
fcdomain domain {domain} static vsan 1
{name}# show topology
FC Topology for VSAN 1 :
 san-port-channel 11 0x0{other}({other}) san-port-channel 11 192.0.2.{other}({peer})
"
        )
    };
    let imported = run(&[("a.txt", side("na", 1, "nb", 2)), ("b.txt", side("nb", 2, "na", 1))]);
    assert!(bad(&imported).is_empty(), "{:?}", bad(&imported));
    assert!(imported.lab.contains("bundle = true") && imported.lab.contains("rate = \"8GFC\""), "{}", imported.lab);
}

#[test]
fn an_interface_with_two_speeds_is_a_conflict_and_the_first_is_kept() {
    let config =
        |rate: u32| format!("mds1# show running-config\nswitchname mds1\ninterface fc1/9\n  switchport speed {rate}\n");
    let brief = |rate: &str| {
        let head =
            "mds1# show interface brief\nInterface  Vsan   Admin  Admin   Status       SFP    Oper  Oper   Port\n";
        format!("{head}fc1/9      10     auto   on      up           swl    F     {rate}     --\n")
    };
    let (one, two) = (config(8_000), config(16_000));
    let place = |file: &str, line: u32| (file.to_owned(), line);
    let cases = [
        (vec![("a", one.clone() + &brief("16") + LOGINS)], "8GFC", [place("a", 4), place("a", 7)]),
        (vec![("a", brief("16") + &one + LOGINS)], "16GFC", [place("a", 3), place("a", 7)]),
        (vec![("a", one.clone() + &two + LOGINS)], "8GFC", [place("a", 4), place("a", 8)]),
        (vec![("a", one.clone()), ("b", two.clone() + LOGINS)], "8GFC", [place("a", 4), place("b", 4)]),
        (vec![("a", two + LOGINS), ("b", brief("8"))], "16GFC", [place("a", 4), place("b", 3)]),
    ];
    for (files, kept, places) in cases {
        let imported = run(&files);
        let notes = bad(&imported);
        assert_eq!(notes.len(), 1, "{files:?}: {notes:?}");
        assert_eq!((notes[0].kind, &*notes[0].text), (NoteKind::Conflict, "mds1:fc1/9"), "{files:?}");
        let found: Vec<(String, u32)> = notes[0].places.iter().map(|place| (place.file.clone(), place.line)).collect();
        assert_eq!(found, places, "{files:?}");
        assert_eq!(rates(&imported), BTreeMap::from([("fc1/9".to_owned(), kept.to_owned())]), "{files:?}");
        let (first, other) = if kept == "8GFC" { (8, 16) } else { (16, 8) };
        let reason = format!("has {first} Gbit/s in one input and {other} Gbit/s in another; the first is kept");
        assert_eq!(notes[0].reason, reason);
    }
    // Equal statements, and changes by later lines of a configuration or by commands, are none.
    let script = one.clone() + "interface fc1/9\n  switchport speed 16000\n";
    let session = one.clone() + "mds1(config)# interface fc1/9\nmds1(config-if)# switchport speed 16000\n";
    for (files, kept) in [
        (vec![("a", one.clone() + &brief("8") + LOGINS), ("b", one.clone())], "8GFC"),
        (vec![("a", one + &brief("--") + LOGINS)], "8GFC"),
        (vec![("a", script + &brief("16") + LOGINS)], "16GFC"),
        (vec![("a", session + &brief("16") + LOGINS)], "16GFC"),
    ] {
        let imported = run(&files);
        let conflicts: Vec<_> = bad(&imported).into_iter().filter(|note| note.kind == NoteKind::Conflict).collect();
        assert!(conflicts.is_empty(), "{files:?}: {conflicts:?}");
        assert_eq!(rates(&imported), BTreeMap::from([("fc1/9".to_owned(), kept.to_owned())]), "{files:?}");
    }
}

#[test]
fn the_speed_of_a_port_channel_in_two_files_is_that_of_the_first_and_its_sum_is_no_other_speed() {
    let side = |name: &str, domain: u32, peer: &str, other: u32, rate: u32, extra: &str| {
        format!(
            "{name}# show running-config\nswitchname {name}\nvsan database\n  vsan 10\ninterface port-channel1\n  \
             switchport speed {rate}\ninterface fc1/1 - 2\n  switchport speed {rate}\n  channel-group 1 force\n\
             fcdomain domain {domain} static vsan 10\n{extra}{name}# show topology vsan 10\n\
             FC Topology for VSAN 10 :\n port-channel1 0x0{other}({other}) port-channel1 192.0.2.{other}({peer})\n"
        )
    };
    let sum = "na# show interface brief\nport-channel1  10     on     trunking        TE    32\n";
    let other = "na# show running-config\nswitchname na\ninterface fc1/1 - 2\n  switchport speed 8000\n";
    let (a, b) = (side("na", 1, "nb", 2, 16_000, sum), side("nb", 2, "na", 1, 16_000, ""));
    let imported = run(&[("a", a.clone()), ("b", b.clone())]);
    assert!(bad(&imported).is_empty(), "{:?}", bad(&imported));
    assert!(imported.lab.contains("rate = \"16GFC\""), "{}", imported.lab);
    let imported = run(&[("a", a), ("b", b), ("c", other.to_owned())]);
    let names: Vec<&str> = bad(&imported).iter().map(|note| &*note.text).collect();
    assert_eq!(names, ["na:fc1/1", "na:fc1/2"]);
    assert!(imported.lab.contains("rate = \"16GFC\"") && !imported.lab.contains("8GFC"), "{}", imported.lab);
}

/// Texts and lines of the notes that fail a strict import.
fn open(files: &[(&str, String)]) -> Vec<(String, Vec<u32>)> {
    let imported = run(files);
    let place = |note: &&Note| (note.text.clone(), note.places.iter().map(|place| place.line).collect());
    bad(&imported).iter().map(place).collect()
}

fn noted(text: &str, lines: &[u32]) -> (String, Vec<u32>) {
    (format!("mds1:{text}"), lines.to_vec())
}

/// The logins of `LOGINS`, in lines 1 to 6, and rows of `show interface brief` from line 9 on.
fn brief(rows: &str) -> (&'static str, String) {
    let head = "mds1# show interface brief\nInterface  Vsan   Admin  Admin   Status       SFP    Oper  Oper   Port\n";
    ("mds1", format!("{LOGINS}{head}{rows}"))
}

fn topology(switch: &str, row: &str) -> (&'static str, String) {
    ("topology", format!("{switch}# show topology vsan 10\nFC Topology for VSAN 10 :\n{row}\n"))
}

#[test]
fn a_port_of_nx_os_that_is_up_is_reported_if_no_input_names_its_other_end() {
    let rows = "fc1/1   10  auto  on  up            swl  F   16  --
fc1/10  10  auto  on  down          swl  --  --  --
fc1/11  10  E     on  notConnected  swl  --  --  --
fc1/12  10  E     on  outOfServc    swl  --  --  --
fc1/13  10  SD    --  up            swl  SD  16  --
fc1/14  10  E     on  trunking      swl  TE  16  --
fc1/15  10  auto  on  up            swl  F   16  --
fc1/16  10  E     off up            swl  E   16  --
fc1/17  10  NP    on  trunking      swl  TNP 16  --
fcip1   10  auto  on  trunking      TE   1   GigabitEthernet2/1  --
fcip2   10  auto  on  down          --   1   GigabitEthernet2/1  --
";
    let own = brief(rows);
    let all = [("fc1/14", 14), ("fc1/16", 16), ("fcip1", 18), ("fc1/17", 17), ("fc1/15", 15)];
    let all = all.map(|(port, line)| noted(port, &[line]));
    let mut sorted = all.to_vec();
    sorted.sort_by_key(|(_, lines)| lines[0]);
    assert_eq!(open(std::slice::from_ref(&own)), sorted);
    let imported = run(std::slice::from_ref(&own));
    let reasons: Vec<&str> = bad(&imported).iter().map(|note| &*note.reason).collect();
    let expected = [
        "is an E_Port that is up and names no neighbour",
        "has devices whose port names no input tells",
        "is an E_Port that is up and names no neighbour",
        "is an NP_Port that is up and names no neighbour",
        "is an E_Port that is up and names no neighbour",
    ];
    assert_eq!(reasons, expected);
    // A link that one of its ends names, and a login in another file.
    let near = topology("mds1", "fc1/14 0x42(66) fc1/3 192.0.2.9(mds2)");
    let far = topology("mds3", "fc1/5 0x15(21) fc1/16 192.0.2.8(mds1)");
    let login = "mds1# show flogi database\nfc1/15 10 0x151500 10:00:00:10:9b:50:01:b5 20:00:00:10:9b:50:01:b5\n";
    let found = open(&[own.clone(), near, far, ("logins", login.to_owned())]);
    assert_eq!(found, [noted("fc1/17", &[17]), noted("fcip1", &[18])]);
    // The only device of the name server without a port may be at the port without a login.
    let names = "mds1# show fcns database vsan 10\nVSAN 10:\n0x151500 N 10:00:00:10:9b:50:01:b5 scsi-fcp:init\n";
    let domain = "mds1# show running-config\nfcdomain domain 21 static vsan 10\n";
    let found = open(&[own, ("names", format!("{domain}{names}"))]);
    assert!(!found.contains(&all[4]) && found.contains(&all[0]), "{found:?}");
}

#[test]
fn a_port_channel_that_no_input_names_is_one_note_with_its_members() {
    for kind in ["", "san-"] {
        let rows = format!(
            "fc1/20  10  E     on  trunking  swl  TE  16  7
fc1/21  10  E     on  trunking  swl  TE  16  7
fc1/22  10  auto  on  trunking  swl  TF  16  8
fc1/23  10  E     on  down      swl  --  --  7
{kind}port-channel 7  10  on  trunking  TE  32
{kind}port-channel 8  10  on  trunking  TF  16
"
        );
        let own = brief(&rows);
        let (links, devices) = (noted(&format!("{kind}port-channel7"), &[9, 10, 13]), format!("{kind}port-channel8"));
        assert_eq!(open(std::slice::from_ref(&own)), [links.clone(), noted(&devices, &[11, 14])]);
        let login = format!("{kind}port-channel 8 10 0x150800 10:00:00:10:9b:50:01:b8 20:00:00:10:9b:50:01:b8\n");
        let login = ("logins", format!("mds1# show flogi database\n{login}"));
        assert_eq!(open(&[own.clone(), login.clone()]), [links]);
        for far in [format!("{kind}port-channel 3"), "fc1/3".to_owned()] {
            let row = format!("{kind}port-channel 7 0x42(66) {far} 192.0.2.9(mds2)");
            let found = open(&[own.clone(), login.clone(), topology("mds1", &row)]);
            assert!(found.is_empty(), "{found:?}");
        }
    }
}

#[test]
fn an_isl_that_only_the_configuration_has_is_reported_if_nothing_shows_its_state() {
    let config = |settings: &str| {
        let head = "mds1# show running-config\nswitchname mds1\ninterface fc1/20\n";
        ("config", format!("{head}{settings}"))
    };
    let enabled = config("  switchport mode E\n  no shutdown\n");
    let logins = ("mds1", LOGINS.to_owned());
    assert_eq!(open(&[logins.clone(), enabled.clone()]), [noted("fc1/20", &[4])]);
    let member = config("  switchport mode E\n  channel-group 7 force\n  no shutdown\n");
    assert_eq!(open(&[logins.clone(), member.clone()]), [noted("port-channel7", &[4])]);
    // A table of interfaces or the topology tells that the port has no link.
    let table = |row: &str| brief(row);
    for other in
        [table("fc1/20  10  E  on  down  swl  --  --  --\n"), topology("mds1", "fc1/14 0x42(66) fc1/3 192.0.2.9(mds2)")]
    {
        let found = open(&[enabled.clone(), logins.clone(), other]);
        assert!(found.is_empty(), "{found:?}");
    }
    let found = open(&[logins.clone(), member, topology("mds1", "port-channel7 0x42(66) fc1/3 192.0.2.9(mds2)")]);
    assert!(found.is_empty(), "{found:?}");
    for settings in
        ["  switchport mode E\n", "  switchport mode E\n  shutdown\n", "  switchport mode F\n  no shutdown\n"]
    {
        let found = open(&[logins.clone(), config(settings)]);
        assert!(found.is_empty(), "{settings}: {found:?}");
    }
}

#[test]
fn the_management_interface_of_a_supervisor_is_no_port_of_a_host() {
    let login = "sup-fc0  1  0x150f00  10:00:00:05:30:00:00:00 20:00:00:05:30:00:00:00\n";
    let host = "fc1/17  10  0x151700  10:00:00:10:9b:50:01:b7 20:00:00:10:9b:50:01:b7\n";
    let names = "mds1# show fcns database vsan 1\nVSAN 1:\n0x150f00 N 10:00:00:05:30:00:00:00 (Cisco) ipfc\n";
    let imported = run(&[("mds1", format!("{LOGINS}{login}{host}{names}"))]);
    assert!(bad(&imported).is_empty(), "{:?}", bad(&imported));
    assert!(names_topic(&imported, 7, "sup-fc"), "{:?}", imported.account.notes);
    let lab = sanloom_lab::load("lab.toml", &imported.lab, &[]).unwrap_or_else(|e| panic!("{e}\n{}", imported.lab)).lab;
    let switches: Vec<&str> = lab.switches.iter().map(|switch| &*switch.name).collect();
    let ports: Vec<String> = lab.hosts.iter().flat_map(|host| &host.hbas).map(|hba| hba.wwpn.to_string()).collect();
    assert!(!ports.contains(&"10:00:00:05:30:00:00:00".to_owned()), "{}", imported.lab);
    assert!(ports.contains(&"10:00:00:10:9b:50:01:b7".to_owned()), "{}", imported.lab);
    assert_eq!(switches, ["mds1"], "{}", imported.lab);
}

fn names_topic(imported: &Imported, line: u32, topic: &str) -> bool {
    let notes = &imported.account.notes;
    notes.iter().any(|note| note.kind == NoteKind::Ignored && note.text.contains(topic) && note.places[0].line == line)
}
