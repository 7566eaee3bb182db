//! NX-OS: names of neighbours, aliases of aliases, inter-VSAN routing, and settings with a place.

use super::trunks::{run, trunks};
use sanloom_lab::export::{Dialect, SwitchZones, of_virtual_fabric, on_switches, script};
use sanloom_lab::import::{Imported, Note, NoteKind};
use std::collections::BTreeSet;

/// Configuration, topology and logins of a switch. `shown` is the neighbour as the topology has it.
fn switch(name: &str, domain: u8, shown: &str, far: u8, fixed: bool, ip: &str) -> String {
    let fixed = if fixed { format!("fcdomain domain {domain} static vsan 10\n") } else { String::new() };
    format!(
        "{name}# show running-config\nversion 9.3(2)\nswitchname {name}\nvsan database\n  vsan 10 name \"A\"\n{fixed}\
         interface mgmt0\n  ip address {ip} 255.255.255.0\ninterface fc1/48\n  switchport mode E\n\
         {name}# show topology vsan 10\n\nFC Topology for VSAN 10 :\n-----\n \
         Interface  Peer Domain Peer Interface     Peer IP Address(Switch Name)\n-----\n\
         fc1/48 0x{far:x}({far})   fc1/48  {shown}\n\
         {name}# show flogi database\n\
         fc1/1  10  0x{domain:02x}0000  10:00:00:00:c9:11:22:{domain:02x} 20:00:00:00:c9:11:22:{domain:02x}\n"
    )
}

fn names(imported: &Imported) -> Vec<String> {
    let loaded = sanloom_lab::load("lab.toml", &imported.lab, &[]).unwrap_or_else(|e| panic!("{e}\n{}", imported.lab));
    loaded.lab.switches.iter().map(|switch| switch.name.clone()).collect()
}

fn bad(imported: &Imported) -> Vec<&Note> {
    imported.account.notes.iter().filter(|note| note.kind <= NoteKind::Unplaced).collect()
}

fn one(pair: &str) -> BTreeSet<BTreeSet<String>> {
    BTreeSet::from([BTreeSet::from([pair.to_owned()])])
}

#[test]
fn a_neighbour_is_found_by_its_name_its_domain_or_its_address() {
    for (a, b, fixed) in [
        ("10.2.2.11(mds-b)", "10.2.2.10(mds-a)", true),
        // With the DNS domain, and no domain in the configurations.
        ("10.2.2.11(mds-b.example.com)", "10.2.2.10(mds-a.example.com)", false),
        ("10.2.2.11(MDS-B.example.com)", "10.2.2.10(mds-a.example.com)", false),
        // Without a name: by the static domain, or by the address.
        ("0.0.0.0", "0.0.0.0", true),
        ("10.2.2.11", "10.2.2.10", false),
        // Names that no configuration has: by domains that fit on both sides.
        ("10.9.9.1(old-b)", "10.9.9.2(old-a)", true),
    ] {
        let files = [
            ("a", switch("mds-a", 33, a, 42, fixed, "10.2.2.10")),
            ("b", switch("mds-b", 42, b, 33, fixed, "10.2.2.11")),
        ];
        let imported = run(&files);
        assert_eq!(names(&imported), ["mds-a", "mds-b"], "{a}\n{}", imported.lab);
        assert_eq!(trunks(&imported.lab), one("mds-a:47-mds-b:47"), "{a}\n{}", imported.lab);
        assert!(bad(&imported).is_empty(), "{a}: {:?}", bad(&imported));
    }
}

#[test]
fn a_neighbour_that_only_the_topology_shows_becomes_a_switch() {
    let a = switch("mds-a", 33, "10.2.2.11(mds-b.example.com)", 42, true, "10.2.2.10");
    let imported = run(&[("a", a)]);
    assert_eq!(names(&imported), ["mds-a", "mds-b"], "{}", imported.lab);
    assert_eq!(trunks(&imported.lab), one("mds-a:47-mds-b:47"), "{}", imported.lab);
    assert!(imported.lab.contains("[switch.mds-b]\ndomain = 42\n"), "{}", imported.lab);
    assert!(bad(&imported).is_empty(), "{:?}", bad(&imported));
}

#[test]
fn neighbours_with_one_name_in_two_dns_domains_are_two_switches() {
    let a = switch("mds-a", 33, "10.2.2.11(mds-b.east.example)", 42, true, "10.2.2.10");
    let more = "   fc1/47 0x2b(43)   fc1/47  10.3.2.11(mds-b.west.example)\n";
    let a = a.replace("mds-a# show flogi", &format!("{more}mds-a# show flogi"));
    assert_eq!(names(&run(&[("a", a)])).len(), 3);
}

#[test]
fn another_fabric_with_the_same_domain_is_no_neighbour() {
    let a = switch("mds-a", 33, "10.2.2.11(mds-b)", 42, true, "10.2.2.10");
    let other = switch("mds-d", 42, "10.5.5.1(mds-c)", 7, true, "10.5.5.2");
    let found = names(&run(&[("a", a), ("d", other)]));
    assert_eq!(found.iter().map(String::as_str).collect::<BTreeSet<_>>(), ["mds-a", "mds-b", "mds-c", "mds-d"].into());
}

const CONFIG: &str = "switchname m1
vsan database
  vsan 10 name \"A\"
fcdomain priority 1 vsan 10
device-alias database
  device-alias name h1 pwwn 10:00:00:10:9b:1c:00:01
  device-alias name s1 pwwn 50:00:09:73:00:18:1c:04
device-alias commit
fcalias name FA vsan 10
    member device-alias h1
    member pwwn 50:00:09:73:00:18:1c:05
zone name z1 vsan 10
    member fcalias FA
    member device-alias s1
zoneset name s vsan 10
    member z1
zoneset activate name s vsan 10
";

#[test]
fn an_fcalias_has_the_port_names_of_its_device_aliases() {
    let imported = run(&[("m1", CONFIG.to_owned())]);
    let lab = sanloom_lab::load("lab.toml", &imported.lab, &[]).unwrap_or_else(|e| panic!("{e}")).lab;
    let members: Vec<String> = lab.zone_database.defined.aliases["FA"].iter().map(ToString::to_string).collect();
    assert_eq!(members, ["10:00:00:10:9b:1c:00:01", "50:00:09:73:00:18:1c:05"]);
    assert!(bad(&imported).is_empty(), "{:?}", bad(&imported));
    let note = imported.account.notes.iter().find(|note| note.text == "alias FA").unwrap();
    assert!(note.kind == NoteKind::Decision && note.reason.contains("device alias h1"), "{note:?}");
}

#[test]
fn the_priority_of_a_switch_is_that_of_its_vsan() {
    let imported = run(&[("m1", CONFIG.to_owned())]);
    assert!(imported.lab.contains("fabric = { cost = \"cisco\", priority = 1 }"), "{}", imported.lab);
}

#[test]
fn inter_vsan_routing_is_one_note() {
    let ivr = "ivr nat
ivr zone name ivr1
    member pwwn 10:00:00:00:c9:11:22:33 vsan 10
    member pwwn 50:00:09:73:00:1a:2b:01 vsan 20
ivr zoneset name ivrzs
    member ivr1
ivr zoneset activate name ivrzs
ivr vsan-topology auto
";
    let imported = run(&[("m1", format!("{CONFIG}{ivr}"))]);
    let notes = bad(&imported);
    assert_eq!(notes.len(), 1, "{notes:?}");
    assert_eq!(notes[0].text, "inter-VSAN routing (IVR)");
    assert_eq!((notes[0].places[0].line, notes[0].places[0].last), (18, 25));
    assert!(notes[0].reason.starts_with("(8 lines)"), "{:?}", notes[0]);
    assert_eq!(imported.account.files[0].lines, 25);
}

#[test]
fn a_member_with_one_lun_is_the_whole_port_and_a_note_says_so() {
    let text = CONFIG.replace("    member device-alias s1\n", "    member device-alias s1 lun 0x1\n");
    let imported = run(&[("m1", text)]);
    let notes = bad(&imported);
    assert_eq!(notes.len(), 1, "{notes:?}");
    assert!(notes[0].reason.contains("one LUN") && notes[0].places[0].line == 14, "{:?}", notes[0]);
    assert!(imported.lab.contains("members = [\"FA\", \"s1\"]"), "{}", imported.lab);
}

#[test]
fn the_switchname_of_a_configuration_renames_its_switch() {
    let config = "switch# show running-config
vsan database
  vsan 10 interface fc1/1
switchname MDS62
zone name z_1 vsan 10
    member pwwn 21:00:00:e0:8b:00:00:01
MDS62# show flogi database
fc1/1            10    0x650000  21:00:00:e0:8b:00:00:01 20:00:00:e0:8b:00:00:01
";
    assert_eq!(names(&run(&[("x", config.to_owned())])), ["MDS62"]);
    // Two configurations in one file are two switches.
    let two = format!("{CONFIG}{}", CONFIG.replace("m1", "m2").replace("1c:00:01", "1c:00:09"));
    assert_eq!(names(&run(&[("x", two)])), ["m1", "m2"]);
}

/// `show zoneset` of a switch. The alias `arrays` is listed within its zones, with its members, and
/// members of the zone follow it.
pub const NESTED: &str = "m1# show zoneset vsan 10
zoneset name night vsan 10
  zone name copy vsan 10
    device-alias tape1 [pwwn 50:05:07:63:00:00:00:a1]
    fcalias name arrays vsan 10
      pwwn 50:00:09:73:00:18:1c:04
      pwwn 50:00:09:73:00:18:1c:05
    pwwn 10:00:00:10:9b:1c:00:01

  zone name scan vsan 10
    fcalias name arrays vsan 10
      pwwn 50:00:09:73:00:18:1c:04
      pwwn 50:00:09:73:00:18:1c:05

    pwwn 10:00:00:10:9b:1c:00:02
m1# show fcalias
fcalias name arrays vsan 10
  pwwn 50:00:09:73:00:18:1c:04
  pwwn 50:00:09:73:00:18:1c:05

m1# show device-alias database
device-alias name tape1 pwwn 50:05:07:63:00:00:00:a1

m1# show flogi database
fc1/1  10  0x0a0000  10:00:00:10:9b:1c:00:01 20:00:00:10:9b:1c:00:01
fc1/2  10  0x0a0020  10:00:00:10:9b:1c:00:02 20:00:00:10:9b:1c:00:02
";

#[test]
fn an_alias_listed_within_a_zone_is_a_member_and_the_lines_behind_it_belong_to_the_zone() {
    // The same with a smart zone, pasted with tabs or deeper as a whole, and without a prompt.
    let bare = NESTED.lines().skip(1).take(15).map(|line| format!("   {line}\n")).collect::<String>();
    let bare = format!("{bare}{}", &NESTED[NESTED.find("m1# show fcalias").unwrap()..]);
    for text in [NESTED.to_owned(), NESTED.replace("  ", "\t"), bare] {
        let imported = run(&[("m1", text.clone())]);
        assert!(bad(&imported).is_empty(), "{text}\n{:?}", bad(&imported));
        let lab = sanloom_lab::load("lab.toml", &imported.lab, &[]).unwrap_or_else(|e| panic!("{e}\n{text}")).lab;
        let defined = &lab.zone_database.defined;
        let members = |zone: &str| defined.zones[zone].members.iter().map(ToString::to_string).collect::<BTreeSet<_>>();
        let set = |members: &[&str]| members.iter().map(|member| (*member).to_owned()).collect::<BTreeSet<_>>();
        assert_eq!(members("copy"), set(&["tape1", "arrays", "10:00:00:10:9b:1c:00:01"]), "{text}");
        assert_eq!(members("scan"), set(&["arrays", "10:00:00:10:9b:1c:00:02"]), "{text}");
        let ports: Vec<String> = defined.aliases["arrays"].iter().map(ToString::to_string).collect();
        assert_eq!(ports, ["50:00:09:73:00:18:1c:04", "50:00:09:73:00:18:1c:05"], "{text}");
    }
}

#[test]
fn an_alias_listed_within_a_zone_keeps_its_role() {
    let text = NESTED.replacen("arrays vsan 10\n", "arrays vsan 10 target\n", 1);
    let text = text.replace("    pwwn 10:00:00:10:9b:1c:00:01\n", "    pwwn 10:00:00:10:9b:1c:00:01 init\n");
    let imported = run(&[("m1", text)]);
    let lab = sanloom_lab::load("lab.toml", &imported.lab, &[]).unwrap_or_else(|e| panic!("{e}")).lab;
    let principals = &lab.zone_database.defined.zones["copy"].principals;
    assert!(principals.iter().any(|member| member.to_string() == "arrays"), "{principals:?}");
}

#[test]
fn a_conflict_of_two_aliases_has_the_right_article() {
    let other = "m1# show fcalias\nfcalias name arrays vsan 10\n  pwwn 50:00:09:73:00:18:1c:06\n";
    let imported = run(&[("m1", NESTED.to_owned()), ("later", other.to_owned())]);
    let notes = bad(&imported);
    assert!(notes.iter().any(|note| note.reason.starts_with("is an alias with other members")), "{notes:?}");
}

#[test]
fn a_zone_with_a_port_of_another_vsan_gives_a_lab_that_grants_no_access_to_it() {
    let text = "m1# show running-config
switchname m1
vsan database
  vsan 10 name \"A\"
  vsan 30 name \"B\"
zone name moved vsan 10
    member pwwn 10:00:00:10:9b:1c:00:01
    member pwwn 50:06:01:60:00:00:00:01
    member pwwn 50:06:01:60:00:00:00:03
zoneset name s vsan 10
    member moved
zoneset activate name s vsan 10
m1# show flogi database
fc1/1  10  0x0a0000  10:00:00:10:9b:1c:00:01 20:00:00:10:9b:1c:00:01
fc1/2  10  0x0a0020  50:06:01:60:00:00:00:01 50:06:01:60:80:00:00:01
fc1/3  30  0x1e0000  50:06:01:60:00:00:00:03 50:06:01:60:80:00:00:03
";
    let imported = run(&[("m1", text.to_owned())]);
    assert!(imported.is_valid, "{:?}", imported.account.notes);
    let loaded = sanloom_lab::load("lab.toml", &imported.lab, &[]).unwrap_or_else(|e| panic!("{e}\n{}", imported.lab));
    let pairs = loaded.lab.pairs_permitted_at_some_time();
    let storage: Vec<String> =
        pairs.storage_of_host(0).into_iter().map(|index| loaded.lab.storage[usize::from(index)].name.clone()).collect();
    let own = loaded.lab.storage.iter().find(|storage| storage.ports[0].wwpn.0 == 0x5006_0160_0000_0001).unwrap();
    assert_eq!(storage, std::slice::from_ref(&own.name), "{}", imported.lab);
    let warnings: Vec<&str> = loaded.warnings.iter().map(|warning| &*warning.reason).collect();
    let expected = "zone `moved` of virtual fabric 10 names `50:06:01:60:00:00:00:03`, which is in virtual fabric 30";
    assert!(warnings.iter().any(|warning| warning.starts_with(expected)), "{warnings:?}");
}

#[test]
fn the_speed_of_a_port_channel_is_that_of_its_configuration() {
    let own = switch("mds-a", 33, "10.2.2.11(mds-b)", 42, true, "10.2.2.10");
    let own = own.replace("fc1/48 0x", "port-channel15 0x").replace("   fc1/48  10", "   port-channel15  10");
    let own =
        own.replace("interface fc1/48\n  switchport mode E\n", "interface port-channel15\n  switchport speed 32000\n");
    let imported = run(&[("a", own)]);
    let isl = imported.lab.split("[[isl]]").nth(1).unwrap_or_else(|| panic!("no link: {}", imported.lab));
    assert!(isl.contains("rate = \"32GFC\""), "{}", imported.lab);
}

#[test]
fn a_device_alias_with_another_name_in_the_lab_is_one_alias_of_all_vsans() {
    let text = "m1# show running-config
switchname m1
vsan database
  vsan 10 name \"A\"
  vsan 20 name \"B\"
  vsan 30 name \"C\"
device-alias database
  device-alias name 3PAR_0_1_1 pwwn 20:11:00:02:ac:00:aa:bb
  device-alias name m1 pwwn 21:00:00:24:ff:00:11:02
  device-alias name ESX01 pwwn 21:00:00:24:ff:00:11:01
device-alias commit
zone name Z1 vsan 10
    member device-alias ESX01
    member device-alias 3PAR_0_1_1
zone name m1 vsan 20
    member device-alias m1
    member device-alias 3PAR_0_1_1
zoneset name ZS1 vsan 10
    member Z1
zoneset activate name ZS1 vsan 10
m1# show flogi database
fc1/1  10  0x1e0000  21:00:00:24:ff:00:11:01 20:00:00:24:ff:00:11:01
fc1/2  10  0x1e0020  20:11:00:02:ac:00:aa:bb 2f:f7:00:02:ac:00:aa:bb
fc1/3  20  0x140000  21:00:00:24:ff:00:11:02 20:00:00:24:ff:00:11:02
fc1/4  30  0x150000  21:00:00:24:ff:00:11:03 20:00:00:24:ff:00:11:03
";
    let imported = run(&[("m1", text.to_owned())]);
    assert!(imported.is_valid && bad(&imported).is_empty(), "{:?}", bad(&imported));
    let loaded = sanloom_lab::load("lab.toml", &imported.lab, &[]).unwrap_or_else(|e| panic!("{e}\n{}", imported.lab));
    let aliases = &loaded.lab.zone_database.defined.aliases;
    assert_eq!(aliases.len(), 3, "{}", imported.lab);
    // The commands name it as the switches do.
    let dialect = Dialect::NxOs { vsan: 10, is_enhanced: false };
    let zones = of_virtual_fabric(&loaded.lab.zone_database, &loaded.lab.zone_fabrics, 10);
    let zones = on_switches(dialect, &zones, &loaded.export_names).unwrap();
    let script = script(dialect, &SwitchZones::default(), &zones).unwrap().commands;
    assert_eq!(script.matches("device-alias name 3PAR_0_1_1 pwwn 20:11:00:02:ac:00:aa:bb").count(), 1, "{script}");
}

#[test]
fn a_zone_in_force_is_the_same_by_its_aliases_and_by_its_ports() {
    let head = "m1# show running-config
switchname m1
device-alias database
  device-alias name H1 pwwn 10:00:00:00:c9:11:11:11
  device-alias name A1 pwwn 50:06:01:60:3b:a0:11:22
device-alias commit
fcalias name FA vsan 100
    member device-alias A1
!Active Zone Database Section for vsan 100
zone name Z1 vsan 100
    member device-alias H1
";
    let tail = "zoneset name ZS vsan 100\n    member Z1\nzoneset activate name ZS vsan 100\n";
    let show = |port: &str| {
        format!(
            "m1# show zoneset active vsan 100\nzoneset name ZS vsan 100\n  zone name Z1 vsan 100\n  \
             * fcid 0x650000 [pwwn 10:00:00:00:c9:11:11:11] [H1]\n  * fcid 0x650020 [pwwn {port}] [A1]\n"
        )
    };
    for array in ["device-alias A1", "fcalias FA", "pwwn 50:06:01:60:3B:A0:11:22"] {
        let config = format!("{head}    member {array}\n{tail}");
        for files in [
            vec![("m1", config.clone() + &show("50:06:01:60:3b:a0:11:22"))],
            vec![("active", show("50:06:01:60:3b:a0:11:22")), ("m1", config.clone())],
        ] {
            let imported = run(&files);
            assert!(bad(&imported).is_empty(), "{array}: {:?}", bad(&imported));
        }
        // Another port is another zone.
        let imported = run(&[("m1", config + &show("50:06:01:60:3b:a0:11:23"))]);
        let conflicts = bad(&imported);
        assert!(conflicts.iter().any(|note| note.reason.contains("other members in another output")), "{conflicts:?}");
    }
}
