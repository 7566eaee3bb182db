//! Arbitrated loops and direct links in whole labs.

use crate::labs::{check, lab, lab_with, run, watched};
use sanloom_api::results::{Metrics, Results, stray};
use sanloom_sim::net::ObservedKind;
use sanloom_sim::run::{Blind, Options, simulate};
use std::collections::BTreeSet;

/// A host that reads from a disk, one request at a time, on a loop with `idle` further ports.
fn on_loop(idle: usize, size: &str, delay_words: u32) -> String {
    let more = match idle {
        0 => String::new(),
        _ => format!(
            "[storage.\"idle{{1..{idle}}}\"]\n[[link]]\nfrom = \"idle{{1..{idle}}}\"\nto = \"ring\"\nrate = \"2GFC\"\nlength = \"5m\"\n"
        ),
    };
    format!(
        "[run]\nduration = \"20ms\"\nwarmup = \"2ms\"\n[loop.ring]\ndelay_words = {delay_words}\n[host.server]\n\
         [storage.disk]\nrate = \"1G/s\"\n[[link]]\nfrom = \"{{server,disk}}\"\nto = \"ring\"\nrate = \"2GFC\"\n\
         length = \"5m\"\n{more}[workload.io]\nhosts = \"server\"\ntargets = \"disk\"\nsize = \"{size}\"\ndepth = 1\n"
    )
}

/// Time of a request in microseconds, of which the disk takes 1 ns.
fn request_us(text: &str) -> f64 {
    1e6 / run(&lab(text)).totals.io.iops - 0.001
}

#[test]
fn a_read_on_a_loop_takes_two_tenancies_and_its_frames() {
    // By hand, from the times of words: 2 tenancies of 3 L + 4 w, FCP_CMND of 23 words, data frames
    // of 527, FCP_RSP of 21, where L is a trip without the delay of the owner, w a word of 18.8 ns.
    // The arbitration of the next request overlaps the close of this one: that saves at most L.
    let cases = [
        (0, "2KiB", 6, 0.213, 12.176),
        (0, "8KiB", 6, 0.213, 41.936),
        (0, "8KiB", 12, 0.326, 42.614),
        (14, "8KiB", 6, 2.494, 55.624),
    ];
    for (idle, size, delay_words, trip_us, by_hand_us) in cases {
        let ours_us = request_us(&on_loop(idle, size, delay_words));
        assert!(
            (by_hand_us - trip_us..by_hand_us + 0.001).contains(&ours_us),
            "{idle} {size} {delay_words}: {ours_us}, {by_hand_us}"
        );
    }
}

/// Three disks on a loop with a host that keeps each busy.
const THREE_DISKS: &str = r#"
[run]
duration = "100ms"
warmup = "10ms"
[loop.ring]
[host.server]
queue_depth = 96
[storage."disk{1..3}"]
rate = "50k/s"
[[link]]
from = "server"
to = "ring"
rate = "2GFC"
[[link]]
from = "disk{1..3}"
to = "ring"
rate = "2GFC"
[workload."reads{1..3}"]
hosts = "server"
targets = "disk{1..3}"
size = "8KiB"
depth = 16
"#;

fn shares(results: &Results) -> Vec<f64> {
    let sum: u64 = results.storage.iter().map(|storage| storage.ios_completed).sum();
    results.storage.iter().map(|storage| storage.ios_completed as f64 / sum as f64).collect()
}

#[test]
fn fair_ports_share_the_loop_and_a_port_that_is_not_fair_starves_those_of_lower_priority() {
    let fair = shares(&run(&lab(THREE_DISKS)));
    // The host sends the commands of one disk per tenancy, and that disk may answer in its circuit.
    assert!(fair.iter().all(|share| (0.28..0.4).contains(share)), "{fair:?}");
    let unfair = shares(&run(&lab_with(THREE_DISKS, "", &["loop.ring.unfair=[\"disk1\"]"])));
    assert!(unfair[0] > 0.99, "{unfair:?}");
    // The last disk has the highest AL_PA, and nobody to starve.
    let last = shares(&run(&lab_with(THREE_DISKS, "", &["loop.ring.unfair=[\"disk3\"]"])));
    assert!(last[2] < 0.6, "{last:?}");
}

#[test]
fn a_port_that_is_pulled_interrupts_the_loop_and_all_else_goes_on() {
    let pulled = "[[fault]]\nkind = \"link-down\"\nlink = \"disk2-ring\"\nat = \"30ms\"\nuntil = \"60ms\"\n";
    let lab =
        lab_with(THREE_DISKS, pulled, &["run.stop_issuing=\"80ms\"", "run.duration=\"40s\"", "run.warmup=\"0s\""]);
    let mut finished = simulate(&lab, &Options::default(), &mut Blind);
    check(&finished);
    let results = &mut finished.results;
    let metrics = Metrics::new(results);
    assert_eq!(metrics.get("totals.ios_failed"), Some(0.0));
    assert_eq!(metrics.get("totals.ios_unfinished"), Some(0.0));
    let ring = &results.loops[0];
    // One when the port leaves, one when it returns; each takes at least AL_TIME.
    assert_eq!(ring.initialisations, 2);
    assert!((0.03..0.032).contains(&ring.down_s), "{}", ring.down_s);
    assert_eq!(ring.ports.iter().map(|port| port.al_pa.as_str()).collect::<Vec<_>>(), ["01", "02", "04", "08"]);
    assert!(results.storage.iter().all(|storage| storage.ios_completed > 100), "{:?}", shares(results));
}

#[test]
fn every_number_of_a_loop_can_be_expected() {
    let lab = lab(THREE_DISKS);
    let results = run(&lab);
    let of_loops: Vec<String> = Metrics::new(&results)
        .all()
        .into_iter()
        .map(|(path, _)| path)
        .filter(|path| path.starts_with("loops."))
        .collect();
    assert!(of_loops.len() > 10, "{of_loops:?}");
    for path in of_loops {
        assert!(stray(&path, Some(&lab)).is_none(), "{path}: {:?}", stray(&path, Some(&lab)));
    }
}

#[test]
fn frames_of_a_loop_are_recorded_at_both_ends_of_each_link() {
    let lab = lab(&on_loop(0, "8KiB", 6));
    let mut seen = [0_u64; 4];
    let finished = watched(&lab, &mut |_, observed| {
        for item in observed.iter().filter(|item| matches!(item.kind, ObservedKind::Frame { .. })) {
            seen[item.lane as usize] += 1;
        }
    });
    check(&finished);
    // All that the server sends arrives at the disk, and the reverse.
    assert!(seen[0] > 100 && seen[0].abs_diff(seen[3]) <= 1 && seen[1].abs_diff(seen[2]) <= 1, "{seen:?}");
}

#[test]
fn a_direct_link_carries_what_a_switch_carries_and_saves_its_latency() {
    let lab_of = |direct: bool| {
        let fabric = if direct { "" } else { "[switch.sw]\nlatency = \"1us\"\n" };
        let links = match direct {
            true => "[[link]]\nfrom = \"server\"\nto = \"disk\"\nrate = \"8GFC\"\n",
            false => "[[link]]\nfrom = \"{server,disk}\"\nto = \"sw\"\nrate = \"8GFC\"\n",
        };
        lab(&format!(
            "[run]\nduration = \"20ms\"\n{fabric}[host.server]\n[storage.disk]\nrate = \"1M/s\"\n{links}\
             [workload.io]\nhosts = \"server\"\ntargets = \"disk\"\nsize = \"512B\"\ndepth = 1\n"
        ))
    };
    let [direct, switched] = [true, false].map(|direct| run(&lab_of(direct)).totals.io.latency.mean_us);
    // Command and data cross the switch once each, and are received once more.
    assert!(switched - direct > 2.0 && switched - direct < 4.0, "{direct} {switched}");
}

/// Two disks on a loop behind a switch, and a host at the switch.
const PUBLIC: &str = r#"
[run]
duration = "60ms"
warmup = "10ms"
[switch.edge]
buffers = 4
[loop.ring]
[host.server]
queue_depth = 32
[storage."disk{1..2}"]
rate = "20k/s"
[[link]]
from = "server"
to = "edge"
rate = "8GFC"
[[link]]
from = "edge"
to = "ring"
rate = "2GFC"
name = "up"
[[link]]
from = "disk{1..2}"
to = "ring"
rate = "2GFC"
[workload."io{1..2}"]
hosts = "server"
targets = "disk{1..2}"
size = "8KiB"
depth = 16
read_share = 0.5
"#;

#[test]
fn disks_on_a_public_loop_are_ports_of_the_fabric() {
    let mut seen = Vec::new();
    let finished = watched(&lab(PUBLIC), &mut |world, _| {
        if seen.is_empty() {
            let machine = &world.control.switches[0].machine;
            seen = machine.services().name_server().map(|entry| entry.identity().port_id.to_u32()).collect();
        }
    });
    check(&finished);
    // The area of the FL_Port, with the AL_PA as last byte; 00 is the FL_Port itself.
    seen.sort_unstable();
    assert_eq!(seen, [0x01_0000, 0x01_0101, 0x01_0102]);
    let results = &finished.results;
    assert!(results.storage.iter().all(|storage| storage.ios_completed > 200), "{:?}", shares(results));
    let of_loop = &results.loops[0].ports;
    assert_eq!(of_loop.iter().map(|port| port.al_pa.as_str()).collect::<Vec<_>>(), ["00", "01", "02"]);
    assert!(of_loop.iter().all(|port| port.tenancies > 100), "{of_loop:?}");
}

#[test]
fn a_zone_keeps_a_host_from_a_disk_on_a_public_loop() {
    let zone = "[[zone]]\nname = \"one\"\nmembers = [\"server\", \"disk1\"]\n";
    let only_one = PUBLIC
        .replace("[workload.\"io{1..2}\"]", "[workload.io]")
        .replace("targets = \"disk{1..2}\"", "targets = \"disk1\"");
    let results = run(&lab_with(&only_one, zone, &[]));
    assert!(results.storage[0].ios_completed > 200);
    assert_eq!(results.storage[1].ios_completed, 0);
}

#[test]
fn all_requests_end_when_an_fl_port_or_a_disk_of_its_loop_returns() {
    for link in ["up", "disk2-ring", "server-edge"] {
        let fault = format!("[[fault]]\nkind = \"link-down\"\nlink = \"{link}\"\nat = \"20ms\"\nuntil = \"90ms\"\n");
        let sets = ["run.stop_issuing=\"120ms\"", "run.duration=\"100s\"", "run.warmup=\"0s\""];
        let finished = simulate(&lab_with(PUBLIC, &fault, &sets), &Options::default(), &mut Blind);
        check(&finished);
        let metrics = Metrics::new(&finished.results);
        assert_eq!(metrics.get("totals.ios_unfinished"), Some(0.0), "{link}");
        assert!(
            finished.results.storage.iter().all(|storage| storage.ios_completed > 200),
            "{link} {:?}",
            shares(&finished.results)
        );
    }
}

/// The public loop with a recorder and its disk that stay private.
fn with_private_ports() -> String {
    PUBLIC.replace("[loop.ring]", "[loop.ring]\nprivate = [\"recorder\", \"scratch\"]")
        + r#"
[host.recorder]
queue_depth = 8
[storage.scratch]
rate = "20k/s"
[[link]]
from = "{recorder,scratch}"
to = "ring"
rate = "2GFC"
[workload.recording]
hosts = "recorder"
targets = "scratch"
size = "8KiB"
depth = 4
"#
}

#[test]
fn private_ports_on_a_public_loop_are_reached_from_their_loop_only() {
    let lab = lab(&with_private_ports());
    let up = lab.links.iter().position(|link| link.name == "up").expect("the link of the FL_Port") as u32;
    let mut names = Vec::new();
    let (mut of_private, mut at_switch) = (0, BTreeSet::new());
    let is_private = |id: u32| (id >> 8 == 0) && id != 0;
    let finished = watched(&lab, &mut |world, observed| {
        if names.is_empty() {
            let machine = &world.control.switches[0].machine;
            names = machine.services().name_server().map(|entry| entry.identity().port_id.to_u32()).collect();
        }
        for item in observed {
            let ObservedKind::Frame { frame, .. } = &item.kind else { continue };
            let ids = [frame.s_id().to_u32(), frame.d_id().to_u32()];
            let (from, to) = (is_private(ids[0]), is_private(ids[1]));
            // A fabric login of a public port comes from 0000xx and goes to FFFFFE.
            if from && to {
                of_private += 1;
                assert_ne!(item.lane / 2, up, "{ids:x?}");
            } else if from || to {
                at_switch.extend(ids.into_iter().filter(|id| is_private(*id)));
            }
        }
    });
    check(&finished);
    assert!(of_private > 1000, "{of_private}");
    names.sort_unstable();
    assert_eq!(names, [0x01_0000, 0x01_0101, 0x01_0102]);
    assert!(!at_switch.contains(&0x04) && !at_switch.contains(&0x08), "{at_switch:x?}");
    let results = &finished.results;
    let completed: Vec<u64> = results.storage.iter().map(|storage| storage.ios_completed).collect();
    assert!(completed.len() == 3 && completed.iter().all(|ios| *ios > 200), "{completed:?}");
    assert_eq!(Metrics::new(results).get("totals.ios_failed"), Some(0.0));
}

#[test]
fn private_ports_go_on_while_the_fl_port_of_their_loop_is_away() {
    let fault = "[[fault]]\nkind = \"link-down\"\nlink = \"up\"\nat = \"15ms\"\n";
    let results = run(&lab_with(&with_private_ports(), fault, &["run.duration=\"200ms\""]));
    let completed = |name: &str| {
        let of_storage = results.storage.iter().find(|storage| storage.name == name);
        of_storage.map_or(0, |storage| storage.ios_completed)
    };
    // Without a LIP, or 15 ms after it, the recorder has 4 requests in flight, at most 20,000/s.
    assert!(completed("scratch") > 2000, "{}", completed("scratch"));
    assert!(completed("disk1") < 200, "{}", completed("disk1"));
}
