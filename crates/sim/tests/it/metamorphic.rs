//! Metamorphic rules: changes of a lab whose effect on the results is known without a model.
//!
//! All labs use closed loops with constant sizes, so no random number matters.

use crate::labs::{lab, run};
use proptest::prelude::*;
use sanloom_api::results::{LinkResult, Results};
use sanloom_fc::config::{LineRate, Load, Node, Picos};
use sanloom_fc::san::Lab;
use std::sync::Arc;

/// Simulations are long in comparison with other properties.
const CASES: u32 = 12;
/// Accepted difference of rates if ties between frames may be decided otherwise.
const TIES: f64 = 0.02;

/// Three pairs of hosts and disks that share an ISL and a trunk. Lengths and speeds differ.
const PAIRS: &str = r#"
[run]
duration = "12ms"
warmup = "3ms"
[switch."sw{1..3}"]
queueing = "voq"
buffers = 64
[host."host{1..3}"]
cpu_per_io = "1us"
[storage."disk{1..3}"]
rate = "200k/s"
[[link]]
from = "host{1..3}"
to = "sw1"
rate = "8GFC"
length = "31m"
[[link]]
from = "disk{1..3}"
to = "sw3"
rate = "16GFC"
length = "17m"
[[isl]]
from = "sw1"
to = "sw2"
rate = "16GFC"
[[isl]]
from = "sw2"
to = "sw3"
rate = "8GFC"
count = 2
bundle = true
[workload."reads{1..3}"]
hosts = "host{1..3}"
targets = "disk{1..3}"
size = "8KiB"
depth = 16
location = "sequential"
"#;

/// Returns the results of a changed lab, which must be valid.
fn changed(text: &str, change: impl FnOnce(&mut Lab)) -> Results {
    let mut lab = Lab::clone(&lab(text));
    change(&mut lab);
    let problems = lab.validate();
    assert!(problems.is_empty(), "{problems:?}");
    run(&Arc::new(lab))
}

/// Asserts that two numbers differ by at most `tolerance`, relative to the second one.
fn assert_near(what: &str, one: f64, other: f64, tolerance: f64) {
    assert!((one - other).abs() <= tolerance * other.abs(), "{what}: {one} and {other}");
}

fn assert_near_rates(one: &Results, other: &Results) {
    for (one, other) in one.hosts.iter().zip(&other.hosts) {
        assert_near(&one.name, one.io.throughput_bytes_per_s, other.io.throughput_bytes_per_s, TIES);
    }
    assert_near("totals", one.totals.io.throughput_bytes_per_s, other.totals.io.throughput_bytes_per_s, TIES);
}

/// Renumbers the ports of a switch: port p becomes `order[p]`.
fn renumber(lab: &mut Lab, switch: u16, order: &[u16]) {
    for end in lab.links.iter_mut().flat_map(|link| &mut link.ends) {
        if end.node == Node::Switch(switch) {
            end.port = order[usize::from(end.port)];
        }
    }
}

/// Returns the JSON of the elements of a list of the results with these names.
fn named(results: &Results, list: &str, wanted: &[&str]) -> Vec<String> {
    let json = results.reproducible_json();
    let elements = json[list].as_array().unwrap_or_else(|| panic!("no {list}"));
    let ours = elements.iter().filter(|element| wanted.iter().any(|name| element["name"] == *name));
    let found: Vec<String> = ours.map(ToString::to_string).collect();
    assert_eq!(found.len(), wanted.len(), "{wanted:?}");
    found
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(CASES))]

    #[test]
    fn numbers_of_ports_only_decide_ties(
        first in Just((0..4).collect::<Vec<u16>>()).prop_shuffle(),
        last in Just((0..5).collect::<Vec<u16>>()).prop_shuffle(),
    ) {
        let changed = changed(PAIRS, |lab| {
            renumber(lab, 0, &first);
            renumber(lab, 2, &last);
        });
        assert_near_rates(&changed, &run(&lab(PAIRS)));
    }

    #[test]
    fn the_order_of_the_ends_of_a_link_exchanges_its_directions(reversed in prop::collection::vec(any::<bool>(), 9)) {
        let plain = run(&lab(PAIRS));
        let changed = changed(PAIRS, |lab| {
            for (link, _) in lab.links.iter_mut().zip(&reversed).filter(|(_, reversed)| **reversed) {
                link.ends.swap(0, 1);
            }
        });
        assert_near_rates(&changed, &plain);
        for ((link, before), reversed) in changed.links.iter().zip(&plain.links).zip(reversed) {
            let [forward, backward] = match reversed {
                false => [&before.forward, &before.backward],
                true => [&before.backward, &before.forward],
            };
            assert_eq!((&link.forward.from, &link.backward.from), (&forward.from, &backward.from));
            let bytes = |link: &LinkResult| [link.forward.data_bytes as f64, link.backward.data_bytes as f64];
            let ([one, two], expected) = (bytes(link), [forward.data_bytes as f64, backward.data_bytes as f64]);
            // Lines of a trunk share its frames.
            if link.bundle.is_none() {
                assert_near(&link.name, one, expected[0], TIES);
                assert_near(&link.name, two, expected[1], TIES);
            }
        }
    }

    #[test]
    fn twice_the_rates_and_half_the_times_give_twice_the_throughput(depth in 1u32..24, blocks in 1u32..64) {
        let size = format!("size = \"{}B\"\ndepth = {depth}", blocks * 512);
        let text = PAIRS.replace("size = \"8KiB\"\ndepth = 16", &size);
        let plain = run(&lab(&text));
        let twice = changed(&text, |lab| {
            let halve = |time: &mut Picos| time.0 /= 2;
            for link in &mut lab.links {
                halve(&mut link.propagation);
                link.rate = doubled(link.rate);
            }
            lab.switches.iter_mut().for_each(|switch| halve(&mut switch.latency));
            lab.hosts.iter_mut().for_each(|host| halve(&mut host.cpu_per_io));
            for system in &mut lab.storage {
                let mut time = system.service.time.mean();
                halve(&mut time);
                system.service.time = time.into();
            }
            for time in [&mut lab.run.duration, &mut lab.run.warmup, &mut lab.run.sample_interval] {
                halve(time);
            }
        });
        // Times are rounded to picoseconds, so that ties may be decided otherwise.
        for (fast, slow) in twice.hosts.iter().zip(&plain.hosts) {
            assert_near(&fast.name, fast.io.iops, 2.0 * slow.io.iops, TIES);
            assert_near(&fast.name, 2.0 * fast.io.latency.mean_us, slow.io.latency.mean_us, TIES);
        }
    }

    #[test]
    fn hosts_and_disks_of_another_zone_or_fabric_change_no_result(
        count in 1u16..4, apart in any::<bool>(), depth in 1u32..32,
    ) {
        let others = |switch: &str| format!(
            "[host.\"other{{1..{count}}}\"]\n[storage.\"store{{1..{count}}}\"]\n[workload.\"more{{1..{count}}}\"]\n\
             hosts = \"other{{1..{count}}}\"\ntargets = \"store{{1..{count}}}\"\nsize = \"8KiB\"\ndepth = {depth}\n\
             location = \"sequential\"\n[[link]]\nfrom = \"other{{1..{count}}}\"\nto = \"{switch}\"\nrate = \"8GFC\"\n\
             [[link]]\nfrom = \"store{{1..{count}}}\"\nto = \"{switch}\"\nrate = \"8GFC\"\n\
             [[zone]]\nname = \"others\"\nmembers = [\"other{{1..{count}}}\", \"store{{1..{count}}}\"]\n"
        );
        let zone = "[[zone]]\nname = \"pairs\"\nmembers = [\"host{1..3}\", \"disk{1..3}\"]\n";
        let text = format!("{PAIRS}{zone}");
        let more = match apart {
            true => format!("{text}[switch.island]\n{}", others("island")),
            false => format!("{text}{}", others("sw1")),
        };
        let (plain, changed) = (run(&lab(&text)), run(&lab(&more)));
        for (list, names) in [
            ("hosts", ["host1", "host2", "host3"]),
            ("streams", ["reads1", "reads2", "reads3"]),
            ("storage", ["disk1", "disk2", "disk3"]),
        ] {
            prop_assert_eq!(named(&changed, list, &names), named(&plain, list, &names));
        }
        // R_RDYs and IDLEs depend on the time of the start; data do not.
        for (link, before) in changed.links.iter().zip(&plain.links).take(6) {
            prop_assert_eq!(link.backward.data_bytes, before.backward.data_bytes);
            prop_assert_eq!(link.forward.data_bytes, before.forward.data_bytes);
        }
    }

    #[test]
    fn a_host_with_two_hbas_does_the_work_of_two_hosts(depth in 1u32..32, blocks in 1u32..64) {
        let reads = |number: u32, host: &str| format!(
            "[workload.reads{number}]\nhosts = \"{host}\"\ntargets = \"disk{number}\"\nsize = \"{}B\"\n\
             depth = {depth}\nlocation = \"sequential\"\n",
            512 * blocks,
        );
        let text = |hosts: &str, links: &str, ends: [&str; 2], ports: [&str; 2]| format!(
            "[run]\nduration = \"10ms\"\nwarmup = \"2ms\"\n[switch.sw1]\nqueueing = \"voq\"\n{hosts}\n\
             [storage.\"disk{{1..2}}\"]\nrate = \"150k/s\"\n{links}\n\
             [[link]]\nfrom = \"disk{{1..2}}\"\nto = \"sw1\"\nrate = \"16GFC\"\nlength = \"17m\"\n\
             [[zone]]\nname = \"one\"\nmembers = [\"{}\", \"disk1\"]\n\
             [[zone]]\nname = \"two\"\nmembers = [\"{}\", \"disk2\"]\n\
             {}{}",
            ports[0], ports[1], reads(1, ends[0]), reads(2, ends[1]),
        );
        let one = text(
            "[host.host1]\nhbas = 2\nqueue_depth = 64",
            "[[link]]\nfrom = \"host1\"\nto = \"sw1\"\nrate = \"8GFC\"\ncount = 2",
            ["host1", "host1"],
            ["host1:0", "host1:1"],
        );
        let two = text(
            "[host.\"host{1..2}\"]\nqueue_depth = 64",
            "[[link]]\nfrom = \"host{1..2}\"\nto = \"sw1\"\nrate = \"8GFC\"",
            ["host1", "host2"],
            ["host1", "host2"],
        );
        let (one, two) = (run(&lab(&one)), run(&lab(&two)));
        prop_assert_eq!(one.totals.io.ios_completed, two.totals.io.ios_completed);
        prop_assert_eq!(one.totals.io.read_bytes, two.totals.io.read_bytes);
        prop_assert_eq!(one.totals.io.latency.mean_us, two.totals.io.latency.mean_us);
    }
}

#[test]
fn one_flow_does_not_depend_on_numbers_of_ports_or_the_order_of_ends() {
    let alone = |lab: &mut Lab| {
        lab.workloads.truncate(1);
        let Load::Closed { depth, .. } = &mut lab.workloads[0].load else { panic!("a closed loop") };
        *depth = 4;
    };
    let plain = changed(PAIRS, alone);
    let other = changed(PAIRS, |lab| {
        alone(lab);
        renumber(lab, 0, &[3, 1, 0, 2]);
        renumber(lab, 2, &[4, 0, 3, 1, 2]);
        lab.links.iter_mut().for_each(|link| link.ends.swap(0, 1));
    });
    for (list, name) in [("hosts", "host1"), ("storage", "disk1")] {
        assert_eq!(named(&plain, list, &[name]), named(&other, list, &[name]));
    }
}

/// Returns the generation with exactly twice the data rate.
fn doubled(rate: LineRate) -> LineRate {
    match rate {
        LineRate::Fc8 => LineRate::Fc16,
        LineRate::Fc16 => LineRate::Fc32,
        other => panic!("the labs do not use {other}"),
    }
}
