//! The topology report against a search that removes one thing after the other.

use proptest::prelude::*;
use sanloom_core::config::{Lab, Link, Node};
use sanloom_lab::topology::{Part, Report};
use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write;

/// A random fabric as a lab file: `isls` joins switches, `hosts` and `disks` name the switch of each port, `machines` the
/// hypervisor and the number of virtual ports.
fn lab(
    switches: usize,
    isls: &[(usize, usize)],
    hosts: &[Vec<usize>],
    disks: &[Vec<usize>],
    machines: &[(usize, usize)],
) -> Lab {
    let mut text = format!("[switch.\"sw{{1..{switches}}}\"]\n");
    for (section, noun, count, nodes) in [("host", "h", "hbas", hosts), ("storage", "d", "ports", disks)] {
        for (i, ports) in nodes.iter().enumerate() {
            let _ = writeln!(text, "[{section}.{noun}{i}]\n{count} = {}", ports.len());
            for switch in ports {
                let _ = writeln!(text, "[[link]]\nfrom = \"{noun}{i}\"\nto = \"sw{}\"", switch % switches + 1);
            }
        }
    }
    for (i, (on, hbas)) in machines.iter().enumerate() {
        let _ = writeln!(text, "[host.vm{i}]\non = \"h{}\"\nhbas = {hbas}", on % hosts.len());
    }
    for (a, b) in isls {
        let (a, b) = (a % switches + 1, b % switches + 1);
        if a != b {
            let _ = writeln!(text, "[[isl]]\nfrom = \"sw{a}\"\nto = \"sw{b}\"");
        }
    }
    sanloom_lab::load("random.toml", &text, &[]).unwrap_or_else(|e| panic!("{e}")).lab
}

/// Pairs of host and storage that are joined without the part that is gone.
fn joined(lab: &Lab, gone: Option<Part>) -> BTreeSet<(u16, u16)> {
    let mut near: BTreeMap<Node, BTreeSet<Node>> = BTreeMap::new();
    for (index, link) in lab.links.iter().enumerate() {
        let [a, b] = link.ends;
        let is_gone = match gone {
            Some(Part::Link(l)) => l == index,
            Some(Part::Switch(s)) => [a.node, b.node].contains(&Node::Switch(s)),
            Some(Part::Hba(h, port)) => link.ends.iter().any(|e| e.node == Node::Host(h) && e.port == port),
            Some(Part::StoragePort(s, port)) => link.ends.iter().any(|e| e.node == Node::Storage(s) && e.port == port),
            None => false,
        };
        if !is_gone {
            near.entry(a.node).or_default().insert(b.node);
            near.entry(b.node).or_default().insert(a.node);
        }
    }
    for (number, host) in (0..).zip(&lab.hosts) {
        let Some(vm) = host.virtual_machine else { continue };
        let hbas = lab.hosts[usize::from(vm.on)].hbas.len();
        for port in (0..host.hbas.len() as u16).map(|port| vm.carrier(port, hbas)) {
            let at = |link: &&Link| link.ends.iter().any(|e| e.node == Node::Host(vm.on) && e.port == port);
            let index = lab.links.iter().position(|link| at(&link)).expect("every HBA of these labs has a link");
            if ![Some(Part::Hba(vm.on, port)), Some(Part::Link(index))].contains(&gone) {
                let switch = lab.links[index].ends.iter().map(|e| e.node).find(|n| matches!(n, Node::Switch(_)));
                near.entry(Node::Host(number)).or_default().extend(switch.filter(|n| !is_switch(gone, *n)));
            }
        }
    }
    let mut pairs = BTreeSet::new();
    for host in 0..lab.hosts.len() as u16 {
        let mut seen = BTreeSet::from([Node::Host(host)]);
        let mut open = vec![Node::Host(host)];
        while let Some(at) = open.pop() {
            // Nodes do not forward.
            if !matches!(at, Node::Switch(_)) && at != Node::Host(host) {
                continue;
            }
            for &next in near.get(&at).into_iter().flatten() {
                if seen.insert(next) {
                    open.push(next);
                }
            }
        }
        pairs.extend(seen.iter().filter_map(|n| match n {
            Node::Storage(s) => Some((host, *s)),
            _ => None,
        }));
    }
    pairs
}

fn is_switch(gone: Option<Part>, node: Node) -> bool {
    matches!((gone, node), (Some(Part::Switch(a)), Node::Switch(b)) if a == b)
}

fn parts(lab: &Lab) -> Vec<Part> {
    let switches = (0..lab.switches.len() as u16).map(Part::Switch);
    let links = (0..lab.links.len()).map(Part::Link);
    let physical = lab.hosts.iter().zip(0..).filter(|(h, _)| h.virtual_machine.is_none());
    let hbas = physical.flat_map(|(h, i)| (0..h.hbas.len() as u16).map(move |p| Part::Hba(i, p)));
    let ports = (lab.storage.iter().zip(0..))
        .flat_map(|(s, i)| (0..s.ports.len() as u16).map(move |p| Part::StoragePort(i, p)));
    switches.chain(links).chain(hbas).chain(ports).collect()
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 300, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn single_points_and_disjoint_paths_are_those_of_a_search(
        switches in 1usize..6,
        isls in prop::collection::vec((0usize..6, 0usize..6), 0..9),
        hosts in prop::collection::vec(prop::collection::vec(0usize..6, 1..3), 1..4),
        disks in prop::collection::vec(prop::collection::vec(0usize..6, 1..3), 1..4),
        machines in prop::collection::vec((0usize..4, 1usize..4), 0..4),
    ) {
        let lab = lab(switches, &isls, &hosts, &disks, &machines);
        let report = Report::of(&lab, &[]);
        let whole = joined(&lab, None);
        let mut expected: BTreeMap<Part, usize> = BTreeMap::new();
        let mut fragile: BTreeSet<(u16, u16)> = BTreeSet::new();
        for part in parts(&lab) {
            let left = joined(&lab, Some(part));
            let lost: BTreeSet<u16> = whole.difference(&left).map(|(h, _)| *h).collect();
            if !lost.is_empty() {
                expected.insert(part, lost.len());
            }
            if matches!(part, Part::Link(_)) {
                fragile.extend(whole.difference(&left));
            }
        }
        let found: BTreeMap<Part, usize> = report.single_points.iter().map(|p| (p.part, p.hosts)).collect();
        prop_assert_eq!(found, expected);
        // Every pair is in one row, and has one disjoint path exactly if one link alone can cut it.
        let mut pairs = 0;
        for row in &report.paths {
            pairs += row.pairs;
            if row.hosts.len() == 1 && row.storage.len() == 1 {
                let pair = (row.hosts[0], row.storage[0]);
                prop_assert_eq!(row.disjoint == 0, !whole.contains(&pair));
                prop_assert_eq!(row.disjoint == 1, fragile.contains(&pair));
            }
        }
        prop_assert_eq!(pairs, (lab.hosts.len() * lab.storage.len()) as u64);
    }
}

#[test]
fn virtual_machines_have_the_paths_and_the_single_points_of_their_hypervisor() {
    let text = "[switch.\"sw{1..2}\"]\n[host.hypervisor]\nhbas = 2\n[host.\"vm{1..4}\"]\non = \"hypervisor\"\n\
        [storage.disk]\nports = 2\n[[link]]\nfrom = \"hypervisor:{0,1}\"\nto = \"sw{1..2}\"\n\
        [[link]]\nfrom = \"disk:{0,1}\"\nto = \"sw{1..2}\"\n[[isl]]\nfrom = \"sw1\"\nto = \"sw2\"\n\
        [workload.w]\nhosts = \"vm{1..4}\"\ntargets = \"disk\"\n";
    let lab = sanloom_lab::load("x.toml", text, &[]).unwrap().lab;
    let report = Report::of(&lab, &[]);
    assert_eq!((report.hosts, report.hbas, report.virtual_machines), (1, 2, 4));
    assert_eq!((report.paths[0].pairs, report.paths[0].port_pairs, report.paths[0].disjoint), (4, 2, 1));
    let points: Vec<(&str, usize)> = report.single_points.iter().map(|p| (p.name.as_str(), p.hosts)).collect();
    let expected = [
        ("sw1", 2),
        ("sw2", 2),
        ("hypervisor:0-sw1", 2),
        ("hypervisor:1-sw2", 2),
        ("hypervisor:0", 2),
        ("hypervisor:1", 2),
    ];
    assert_eq!(points, expected);
    assert_eq!(report.isl_groups[0].behind_bytes_per_s, [3.4e9, 3.4e9], "the machines share the line of their HBA");
}

#[test]
fn traffic_over_two_cores_counts_half_for_each() {
    let text = "[switch.\"edge{1..2}\"]\n[switch.\"core{1..2}\"]\n[host.\"h{1..4}\"]\n[storage.\"d{1..4}\"]\n\
        [[link]]\nfrom = \"h{1..4}\"\nto = \"edge1\"\n[[link]]\nfrom = \"d{1..4}\"\nto = \"edge2\"\n\
        [[isl]]\nfrom = \"edge{1..2}\"\nto = \"core1\"\n[[isl]]\nfrom = \"edge{1..2}\"\nto = \"core2\"\n";
    let lab = sanloom_lab::load("x.toml", text, &[]).unwrap().lab;
    let report = Report::of(&lab, &[]);
    assert_eq!(report.isl_groups.len(), 4);
    for group in &report.isl_groups {
        assert_eq!(group.behind_bytes_per_s, [2.0 * 1.7e9; 2]);
        assert_eq!(group.oversubscription, 2.0);
    }
    assert_eq!((report.paths[0].shortest, report.paths[0].links, report.paths[0].disjoint), (2, 4, 1));
}

#[test]
fn traffic_that_stays_at_its_edge_does_not_load_isls() {
    let text = "[switch.\"sw{1..2}\"]\n[host.\"h{1..2}\"]\n[storage.\"d{1..2}\"]\n\
        [[link]]\nfrom = \"{h,d}{1..2}\"\nto = \"sw{1..2}\"\nspread = \"round-robin\"\n\
        [[isl]]\nfrom = \"sw1\"\nto = \"sw2\"\n\
        [workload.\"own{1..2}\"]\nhosts = \"h{1..2}\"\ntargets = \"d{1..2}\"\n";
    let lab = sanloom_lab::load("x.toml", text, &[]).unwrap().lab;
    let report = Report::of(&lab, &[]);
    assert_eq!(report.isl_groups[0].behind_bytes_per_s, [0.0; 2]);
    assert_eq!(report.paths[0].links, 2);
    // The ISL and the other switch are no single points of failure for anybody.
    assert!(report.single_points.iter().all(|p| p.name != "ISL1"));
}

#[test]
fn the_report_counts_costs_as_the_switches_do() {
    // From edge1 to edge2 straight on over 2GFC, or round by a core over 16GFC; and a trunk that one rule adds up.
    let lab = |cost: &str| {
        let text = format!(
            "[switch.\"*\"]\nfabric = {{ cost = \"{cost}\" }}\n[switch.\"edge{{1..2}}\"]\n[switch.core]\n[host.h]\n[storage.d]\n\
            [[link]]\nfrom = \"h\"\nto = \"edge1\"\n[[link]]\nfrom = \"d\"\nto = \"edge2\"\n\
            [[isl]]\nfrom = \"edge1\"\nto = \"edge2\"\nrate = \"2GFC\"\n\
            [[isl]]\nfrom = \"edge{{1..2}}\"\nto = \"core\"\nrate = \"16GFC\"\n"
        );
        Report::of(&sanloom_lab::load("x.toml", &text, &[]).unwrap().lab, &[])
    };
    // Standard: 500 straight on, 62 + 62 by the core. Brocade: 500 each, so straight on.
    assert_eq!([lab("standard"), lab("brocade")].map(|report| report.paths[0].links), [4, 3]);
}

#[test]
fn a_rule_at_one_end_counts_for_the_way_out_of_it() {
    // Only edge1 counts as Brocade does: its own way is straight on, the way back goes by the core.
    let text = "[switch.edge1]\nfabric = { cost = \"brocade\" }\n[switch.edge2]\n[switch.core]\n[host.h]\n[storage.d]\n\
        [[link]]\nfrom = \"h\"\nto = \"edge1\"\n[[link]]\nfrom = \"d\"\nto = \"edge2\"\n\
        [[isl]]\nfrom = \"edge1\"\nto = \"edge2\"\nrate = \"2GFC\"\n\
        [[isl]]\nfrom = \"edge{1..2}\"\nto = \"core\"\nrate = \"16GFC\"\n";
    let report = Report::of(&sanloom_lab::load("x.toml", text, &[]).unwrap().lab, &[]);
    let loaded: Vec<[bool; 2]> =
        report.isl_groups.iter().map(|group| group.behind_bytes_per_s.map(|b| b > 0.0)).collect();
    assert_eq!(loaded.iter().flatten().filter(|used| **used).count(), 3, "{loaded:?}");
}

#[test]
fn nothing_leads_over_a_link_that_will_be_isolated() {
    let text = "[switch.a]\ndomain = 1\n[switch.b]\ndomain = 2\n[switch.alien]\ndomain = 3\n\
        fabric = { flow_control = \"vendor\" }\n[host.h]\nhbas = 2\n[storage.d]\nports = 2\n\
        [[link]]\nfrom = \"h:{0,1}\"\nto = \"{a,alien}\"\n[[link]]\nfrom = \"d:{0,1}\"\nto = \"b\"\n\
        [[isl]]\nfrom = \"a\"\nto = \"b\"\n[[isl]]\nfrom = \"alien\"\nto = \"b\"\nname = \"refused\"\n\
        [workload.w]\nhosts = \"h\"\ntargets = \"d\"\n";
    let loaded = sanloom_lab::load("x.toml", text, &[]).unwrap();
    let codes: Vec<&str> = loaded.warnings.iter().map(|warning| warning.code).collect();
    assert_eq!((codes, &loaded.isolated[..]), (vec!["isolated-link"], &[5][..]));
    let report = Report::of(&loaded.lab, &loaded.isolated);
    assert_eq!((report.isls, report.isolated.as_deref()), (2, Some("refused")));
    assert_eq!(report.fabrics, ["a, b", "alien"]);
    // Two ports of the array from one HBA; over the other switch there would be two ways.
    assert_eq!((report.paths[0].port_pairs, report.paths[0].disjoint), (2, 1));
    assert_eq!(report.hosts_without_two_paths, ["h"]);
    assert!(report.to_string().contains("2 ISLs, isolated: refused"), "{report}");
}
