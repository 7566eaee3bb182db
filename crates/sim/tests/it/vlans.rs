//! VLANs on links between Ethernet switches: what `check` permits moves data, and nothing else
//! does.

use crate::ethernet::fabric::Fabric;
use crate::labs;
use sanloom_api::results::Results;
use sanloom_fc::config::EthernetNode;
use sanloom_fc::san::Lab;
use sanloom_scsi::random::SplitMix64;
use sanloom_sim::net::ethernet::Packet;
use std::fmt::Write;
use std::sync::Arc;

/// Three switches in a ring, with a host at `a` and a storage system at `b`. `direct` are cables
/// between both switches.
fn ring(direct: &str, of_nodes: &str) -> Arc<Lab> {
    labs::lab(&format!(
        r#"
[run]
duration = "20ms"
warmup = "0s"
[ethernet_switch."{{a,b,c}}"]
pfc = 3
{direct}
[[isl]]
from = "a"
to = "c"
rate = "10GbE"
[[isl]]
from = "c"
to = "b"
rate = "10GbE"
{of_nodes}
[workload.w]
hosts = "h"
targets = "s"
size = "64KiB"
depth = 4
"#
    ))
}

/// A cable from `a` to `b`.
fn cable(vlans: &str) -> String {
    format!("[[isl]]\nfrom = \"a\"\nto = \"b\"\nrate = \"10GbE\"\nvlans = [{vlans}]\n")
}

const ISCSI: &str = r#"
[host.h]
iscsi = { vlan = 20 }
[storage.s]
iscsi = {}
[[link]]
from = "h"
to = "a"
rate = "10GbE"
[[link]]
from = "s"
to = "b"
rate = "10GbE"
"#;

const FCOE: &str = r#"
[switch.fcf]
[host.h]
[storage.s]
[[link]]
from = "{h,s}"
to = "a"
rate = "10GbE"
mtu = 2500
[[link]]
from = "fcf"
to = "b"
rate = "10GbE"
mtu = 2500
[[link]]
from = "{h,s}"
to = "fcf"
ethernet = { vlan = 100 }
"#;

/// Frames on each link between switches, in the order of the lab.
fn frames(lab: &Lab, results: &Results) -> Vec<u64> {
    let between =
        lab.ethernet_links.iter().zip(&results.ethernet_links).filter(|(link, _)| link.switches().count() == 2);
    between.map(|(_, result)| result.forward.frames + result.backward.frames).collect()
}

#[test]
fn sessions_and_virtual_links_take_the_way_that_their_vlan_may_use() {
    for nodes in [ISCSI, FCOE] {
        let lab = ring(&cable("10"), nodes);
        let results = labs::run(&lab);
        assert!(results.totals.io.ios_completed > 20 && results.totals.io.ios_failed == 0, "{:?}", results.totals.io);
        let frames = frames(&lab, &results);
        assert!(frames[0] < 40 && frames[1] > 500 && frames[2] > 500, "{frames:?}");
    }
}

#[test]
fn of_parallel_cables_only_those_that_accept_the_vlan_carry_its_frames() {
    for order in [["10", "20"], ["20", "10"]] {
        let lab = ring(&order.map(cable).concat(), ISCSI);
        let results = labs::run(&lab);
        assert!(results.totals.io.ios_completed > 20 && results.totals.io.ios_failed == 0, "{:?}", results.totals.io);
        let frames = frames(&lab, &results);
        let [own, other] = if order[0] == "20" { [0, 1] } else { [1, 0] };
        assert!(frames[own] > 500 && frames[other] < 40 && frames[2] < 40, "{frames:?}");
    }
}

/// A random Ethernet with a host and a storage system, and what uses it.
struct Draw {
    ethernet: String,
    load: String,
    /// Ends between which frames have to pass.
    pairs: Vec<[EthernetNode; 2]>,
    vlan: Option<u16>,
}

const ISCSI_LOAD: &str = "[workload.w]\nhosts = \"h\"\ntargets = \"s\"\nsize = \"4KiB\"\n";

fn draw(dice: &mut SplitMix64) -> Draw {
    let is_fcoe = dice.chance(40);
    let switches = 2 + dice.index(4);
    let vlan = [None, Some(10), Some(20), Some(30)][dice.index(4)];
    let tag = vlan.map_or(String::new(), |vlan| format!("vlan = {vlan}"));
    let mut text =
        format!("[run]\nduration = \"20ms\"\nwarmup = \"0s\"\n[ethernet_switch.\"e{{1..{switches}}}\"]\npfc = 3\n");
    let vlans = |dice: &mut SplitMix64| {
        let some: Vec<&str> = ["10", "20", "30"].into_iter().filter(|_| dice.chance(45)).collect();
        if some.is_empty() { String::new() } else { format!("vlans = [{}]\n", some.join(", ")) }
    };
    for a in 1..=switches {
        for b in 1..a {
            for _ in 0..[0, 0, 1, 1, 2][dice.index(5)] {
                let _ = write!(text, "[[isl]]\nfrom = \"e{a}\"\nto = \"e{b}\"\nrate = \"10GbE\"\n{}", vlans(dice));
            }
        }
    }
    let nodes = if is_fcoe { &["h", "s", "fcf"][..] } else { &["h", "s"] };
    for node in nodes {
        let at = 1 + dice.index(switches);
        let _ = write!(text, "[[link]]\nfrom = \"{node}\"\nto = \"e{at}\"\nrate = \"10GbE\"\nmtu = 2500\n");
    }
    let _ = write!(text, "[host.h]\niscsi = {{ {tag} }}\n[storage.s]\n");
    let (host, storage) = (EthernetNode::Host(0), EthernetNode::Storage(0));
    if !is_fcoe {
        text += "iscsi = {}\n";
        return Draw { ethernet: text, load: ISCSI_LOAD.to_owned(), pairs: vec![[host, storage]], vlan };
    }
    text += "[switch.fcf]\n";
    let load = format!("[[link]]\nfrom = \"{{h,s}}\"\nto = \"fcf\"\nethernet = {{ {tag} }}\n{ISCSI_LOAD}");
    let forwarder = EthernetNode::Forwarder(0);
    Draw { ethernet: text, load, pairs: vec![[host, forwarder], [storage, forwarder]], vlan }
}

/// Returns whether the plane delivers a frame of the VLAN in both directions.
fn passes(lab: &Lab, ends: [EthernetNode; 2], vlan: Option<u16>) -> bool {
    let interfaces = lab.ethernet_interfaces();
    let [a, b] = ends.map(|node| interfaces.iter().position(|own| own.end.node == node).expect("a link") as u16);
    let mut fabric = Fabric::new(sanloom_sim::world::ethernet::plan(lab));
    for [from, to] in [[a, b], [b, a]] {
        fabric.send(Packet::new(from, to, 7, 0, 1_518).with_vlan(lab.vlan_numbers().number(vlan)));
    }
    fabric.run_to(1_000_000_000_000);
    fabric.delivered.len() == 2
}

#[test]
fn data_move_in_a_random_lab_if_and_only_if_check_finds_its_storage_reachable() {
    let mut counts = [[0; 2]; 2];
    for seed in 0..200 {
        let Draw { ethernet, load, pairs, vlan } = draw(&mut SplitMix64(seed));
        let bare =
            sanloom_lab::load("bare.toml", &ethernet, &[]).unwrap_or_else(|found| panic!("{}", found.render(false)));
        let moves = pairs.iter().all(|ends| passes(&bare.lab, *ends, vlan));
        let text = format!("{ethernet}{load}");
        let loaded = sanloom_lab::load("test.toml", &text, &[]);
        counts[usize::from(pairs.len() > 1)][usize::from(moves)] += 1;
        match loaded {
            Ok(loaded) => {
                assert!(moves, "seed {seed}: frames are lost\n{text}");
                let io = labs::run(&Arc::new(loaded.lab)).totals.io;
                assert!(io.ios_completed > 0 && io.ios_failed == 0, "seed {seed}: {io:?}\n{text}");
            }
            Err(found) => assert!(!moves, "seed {seed}: {}\n{text}", found.render(false)),
        }
    }
    assert!(counts.iter().flatten().all(|count| *count > 15), "{counts:?}");
}
