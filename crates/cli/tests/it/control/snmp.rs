//! SNMP of the switches of a running lab, with Net-SNMP as the client.

use super::fos::Managed;
use sanloom_api::view::{Table, View};
use sanloom_test_support::needs;
use std::collections::BTreeMap;
use std::process::{Command, Output, Stdio};

const PORT: u16 = 18_161;
const COMMUNITY: &str = "secret-word";

fn start(name: &str) -> Managed {
    let listen = format!("ADDRESS:{PORT}");
    Managed::start(name, Some(18_080), &["--snmp", &listen, "--snmp-community", COMMUNITY])
}

fn run(lab: &Managed, program: &str, community: &str, more: &[&str]) -> Output {
    let mut command = Command::new(program);
    // Numbers instead of names, and no file of MIBs.
    command.args(["-v2c", "-c", community, "-On", "-Oe", "-OU", "-m", "", "-t", "2", "-r", "3"]);
    command.arg(format!("{}:{PORT}", lab.address)).args(more).stdin(Stdio::null());
    command.env("HOME", &*lab.instance.folder).output().unwrap()
}

/// Lines `OID = TYPE: VALUE` of a walk.
fn walk(lab: &Managed, program: &str, more: &[&str]) -> Vec<(Vec<u32>, String)> {
    let output = run(lab, program, COMMUNITY, more);
    assert!(output.status.success(), "{output:?}");
    let text = String::from_utf8(output.stdout).unwrap();
    let is_object = |line: &&str| line.starts_with('.') && !line.contains("No more variables left");
    let parsed = text.lines().filter(is_object).map(|line| {
        let (name, value) = line.split_once(" = ").unwrap_or_else(|| panic!("{line}"));
        (name[1..].split('.').map(|part| part.parse().unwrap()).collect(), value.to_owned())
    });
    parsed.collect()
}

#[needs("snmpwalk")]
#[test]
fn walks_visit_the_whole_tree_in_order_and_their_counters_are_those_of_the_views() {
    let mut lab = start("snmp-walk");
    // Neighbours exchange frames now and then, so the views before and after bound the counters.
    let ports = || {
        let view: View = serde_json::from_str(&lab.instance.run("show LAB ports --live --json").good()).unwrap();
        let Table::Ports(ports) = view.table else { panic!("no ports") };
        ports.ports.into_iter().filter(|row| row.port.starts_with("sw1:")).collect::<Vec<_>>()
    };
    let before = ports();
    let bulk = walk(&lab, "snmpbulkwalk", &["-Cr50", ".1"]);
    let single = walk(&lab, "snmpwalk", &[".1"]);
    let after = ports();
    let names = |walk: &[(Vec<u32>, String)]| walk.iter().map(|(name, _)| name.clone()).collect::<Vec<_>>();
    assert_eq!(names(&bulk), names(&single));
    assert!(bulk.len() > 100 && bulk.is_sorted_by(|a, b| a.0 < b.0), "{bulk:?}");
    let values: BTreeMap<Vec<u32>, String> = single.into_iter().collect();
    let of = |name: &[u32]| values.get(name).unwrap_or_else(|| panic!("no {name:?} in {values:?}")).clone();
    let number = |name: &[u32]| of(name).rsplit_once(": ").unwrap().1.parse::<u64>().unwrap();
    assert_eq!(of(&[1, 3, 6, 1, 2, 1, 1, 5, 0]), "STRING: \"sw1\"");
    assert!(of(&[1, 3, 6, 1, 2, 1, 1, 1, 0]).starts_with("STRING: \"sanloom "));
    const SWITCH: [u32; 11] = [1, 3, 6, 1, 4, 1, 1588, 2, 1, 1, 1];
    let switch = |rest: &[u32]| [&SWITCH, rest].concat();
    // Online, domain 1, principal.
    assert_eq!([switch(&[1, 7, 0]), switch(&[2, 1, 0]), switch(&[2, 2, 0])].map(|name| number(&name)), [1, 1, 1]);
    for (first, last) in before.iter().zip(&after) {
        let index = first.number + 1;
        let between = |name: &[u32], kind: &str, (low, high): (u64, u64)| {
            let name = [name, &[index]].concat();
            assert!(of(&name).starts_with(kind), "{}", of(&name));
            assert!((low..=high).contains(&number(&name)), "{name:?}: {} is not in {low}..={high}", of(&name));
        };
        let (sent, received) = ((first.frames_sent, last.frames_sent), (first.frames_received, last.frames_received));
        between(&switch(&[6, 2, 1, 13]), "Counter32: ", sent);
        between(&switch(&[6, 2, 1, 14]), "Counter32: ", received);
        between(&[1, 3, 6, 1, 2, 1, 2, 2, 1, 17], "Counter32: ", sent);
        between(&[1, 3, 6, 1, 2, 1, 31, 1, 1, 1, 7], "Counter64: ", received);
        between(&[1, 3, 6, 1, 2, 1, 10, 56, 1, 4, 1, 18], "Counter64: ", sent);
        let high_speed = number(&[1, 3, 6, 1, 2, 1, 31, 1, 1, 1, 15, index]);
        assert_eq!(high_speed, 16_000);
        let name: String = first.port_name.replace(':', " ").to_uppercase();
        assert_eq!(of(&switch(&[6, 2, 1, 34, index])).trim_end(), format!("Hex-STRING: {name}"));
    }
    lab.instance.run("port disable LAB sw1:0").good();
    lab.instance.wait("the state of the port", |_| {
        let state = walk(&lab, "snmpget", &[".1.3.6.1.2.1.2.2.1.7.1", ".1.3.6.1.4.1.1588.2.1.1.1.6.2.1.4.1"]);
        state.iter().all(|(_, value)| value == "INTEGER: 2")
    });
    lab.instance.stop();
}

#[needs("snmpwalk")]
#[test]
fn changes_other_communities_and_other_versions_are_refused() {
    let mut lab = start("snmp-refused");
    let name = ".1.3.6.1.2.1.1.5.0";
    assert!(run(&lab, "snmpget", COMMUNITY, &[name]).status.success());
    let set = run(&lab, "snmpset", COMMUNITY, &[name, "s", "other"]);
    assert!(String::from_utf8_lossy(&set.stderr).contains("notWritable"), "{set:?}");
    for (community, version) in [("public", "-v2c"), (COMMUNITY, "-v1")] {
        let output = run(&lab, "snmpget", community, &["-t", "0.2", "-r", "0", version, name]);
        assert!(String::from_utf8_lossy(&output.stderr).contains("Timeout"), "{output:?}");
    }
    let missing = run(&lab, "snmpget", COMMUNITY, &[".1.3.6.1.2.1.2.2.1.7.99", ".1.3.6.1.9"]);
    let text = String::from_utf8_lossy(&missing.stdout).into_owned();
    assert!(text.contains("No Such Instance") && text.contains("No Such Object"), "{text}");
    lab.instance.stop();
    let refused = lab.instance.run("up LAB --snmp 127.1.0.1:18161");
    assert!(
        refused.code == 2 && refused.stderr.contains("SNMP has no default community; give one with"),
        "{refused:?}"
    );
    lab.instance.run("up LAB --snmp --snmp-community public").refused("a community has 8 to 64");
}
