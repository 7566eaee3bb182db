//! Labs whose hosts reach their storage over SRP.

use crate::labs;
use sanloom_api::results::{Finding, FindingKind, Results};
use sanloom_sim::net::infiniband as plane;
use sanloom_sim::world::World;
use std::collections::BTreeSet;

/// Hosts and one storage system at a switch of its own.
fn lab(hosts: usize, rate: &str, mtu: u32, more: &str, workload: &str) -> String {
    format!(
        r#"
[run]
duration = "60ms"
warmup = "10ms"
[subnet]
mtu = {mtu}
[infiniband_switch.ib]
[host."server{{1..{hosts}}}"]
queue_depth = 64
{more}
[storage.array]
rate = "1M/s"
srp = {{ request_limit = 128 }}
[[link]]
from = "server{{1..{hosts}}}"
to = "ib"
rate = "{rate}"
[[link]]
from = "array"
to = "ib"
rate = "{rate}"
[workload.load]
hosts = "server{{1..{hosts}}}"
targets = "array"
{workload}
"#
    )
}

fn requests(kib: u32, read_share: f64) -> String {
    format!("size = \"{kib}KiB\"\ndepth = 16\nread_share = {read_share:.1}")
}

/// The share of middle packets with headers of 28 bytes at each MTU: 225.4 to 248.3 MB/s at 1x SDR,
/// 901.4 to 993.2 MB/s at 4x SDR.
#[test]
fn srp_of_64_kib_reaches_the_share_of_the_line_within_1_percent() {
    for (line, bytes_per_s) in [("1xSDR", 250e6), ("4xSDR", 1e9), ("4xEDR", 12.5e9)] {
        for mtu in [256_u32, 512, 1_024, 2_048, 4_096] {
            for read_share in [1.0, 0.0] {
                let results = labs::run(&labs::lab(&lab(1, line, mtu, "", &requests(64, read_share))));
                let expected = bytes_per_s / 1e6 * f64::from(mtu) / f64::from(mtu + 28);
                let found = labs::mb_per_s(&results);
                assert!(
                    (found / expected - 1.0).abs() < 0.01,
                    "{line}, MTU {mtu}, reads {read_share}: {found:.2}, not {expected:.2}"
                );
                assert_eq!(results.totals.io.ios_failed, 0);
            }
        }
    }
}

/// The same lab and seed give the same results to the last byte.
#[test]
fn two_runs_of_srp_are_the_same() {
    let text = lab(2, "4xQDR", 2_048, "", &requests(16, 0.5));
    let run = || format!("{:?}", labs::run(&labs::lab(&text)));
    assert_eq!(run(), run());
}

/// A command takes longer by the work of the driver and of its completion, and no longer.
#[test]
fn the_work_of_the_driver_is_part_of_the_response_time() {
    let one = "size = \"8KiB\"\ndepth = 1\nread_share = 1.0";
    let mean = |more: &str| {
        let results = labs::run(&labs::lab(&lab(1, "4xQDR", 2_048, more, one)));
        (results.totals.io.latency.mean_us, results.hosts[0].cpu_utilisation)
    };
    let (free, idle) = mean("");
    let (worked, busy) = mean("srp_cost = { per_command = \"5us\", per_completion = \"3us\" }");
    assert!((7.9..8.1).contains(&(worked - free)), "{free} and {worked} us");
    assert!(idle == 0.0 && busy > 0.2, "{idle} and {busy}");
}

fn run_with(text: &str, change: impl Fn(&mut World, u64)) -> World {
    let lab = labs::lab(text);
    let duration_ps = lab.run.duration.0;
    let mut world = World::new(lab);
    world.log_in();
    world.start();
    let start_ps = world.start_ps;
    for step in 1..=100 {
        world.run_until(start_ps + duration_ps / 100 * step);
        change(&mut world, step);
    }
    world.check().expect("the world");
    world
}

const ENDS: &str = r#"
[run]
duration = "60s"
warmup = "0s"
stop_issuing = "30s"
[infiniband_switch."ib{1..2}"]
[host.server]
[host.server.multipath]
fast_io_fail = "5s"
[storage.array]
rate = "20k/s"
srp = {}
[[link]]
from = "server"
to = "ib{1..2}"
rate = "1xSDR"
[[link]]
from = "array"
to = "ib{1..2}"
rate = "1xSDR"
[[isl]]
from = "ib1"
to = "ib2"
rate = "1xSDR"
[workload.load]
hosts = "server"
targets = "array"
size = "64KiB"
arrivals = "constant 500/s"
"#;

/// A link of the host fails and comes back: the connection over it fails after its repetitions, and
/// all requests end well on the channels over the other link.
#[test]
fn a_failed_link_moves_the_commands_to_the_other_channel() {
    let world = run_with(ENDS, |world, step| match step {
        10 => plane::set_link(&mut world.net, 0, false),
        40 => plane::set_link(&mut world.net, 0, true),
        _ => {}
    });
    let measure = &world.hosts.nodes[0].measured;
    assert_eq!(measure.failed, 0);
    assert_eq!(measure.ios.iter().sum::<u64>(), 15_000, "500 requests in each of 30 s");
    let srp = world.srp.as_ref().expect("channels");
    let connections: u64 = (0..4).map(|channel| srp.count(channel).connections).sum();
    assert!(connections > 4, "{connections} connections: some were opened again");
    assert!((0..4).all(|channel| srp.is_up(channel)), "all channels are up again");
}

/// Packets and credit are lost at random, links fail and return: every request ends, and no packet
/// is lost from the books.
#[test]
fn lost_packets_and_links_end_every_request() {
    for seed in 1..=4_u32 {
        let world = run_with(ENDS, |world, step| {
            let lines = world.net.infiniband.lines().len() as u32;
            let loss = if step < 50 { seed * 4_000_000 } else { 0 };
            (0..lines).for_each(|line| *world.net.infiniband.errors_mut(line) = [loss, loss / 2, loss]);
            let link = (step as u32 + seed) % (lines / 2);
            if step < 50 && (step as u32 + seed).is_multiple_of(7) {
                plane::set_link(&mut world.net, link, false);
            }
            if step.is_multiple_of(3) || step == 50 {
                (0..lines / 2).for_each(|link| plane::set_link(&mut world.net, link, true));
            }
        });
        let measure = &world.hosts.nodes[0].measured;
        let ended = measure.ios.iter().sum::<u64>() + measure.failed;
        assert_eq!(ended, 15_000, "seed {seed}: {} failed", measure.failed);
        let fate = world.net.infiniband.fate;
        assert!(fate.lost > 0, "seed {seed}: {fate:?}");
    }
}

/// A switch that drops packets after a short lifetime: connections repeat them, and every request
/// ends.
#[test]
fn expired_lifetimes_end_every_request() {
    let text = ENDS.replace("[infiniband_switch.\"ib{1..2}\"]", "[infiniband_switch.\"ib{1..2}\"]\nlast_lifetime = 3");
    let world = run_with(&text, |world, step| {
        // The host holds its buffers for a while.
        plane::hold(&mut world.net, 0, step % 10 < 2 && step < 50);
    });
    let measure = &world.hosts.nodes[0].measured;
    assert_eq!(measure.ios.iter().sum::<u64>() + measure.failed, 15_000, "{} failed", measure.failed);
    let expired = world.net.infiniband.losses().filter(|(_, why, _)| *why == plane::PacketLoss::Lifetime);
    assert!(expired.map(|(_, _, packets)| packets).sum::<u64>() > 0);
}

/// A ring of switches with few blocks: `minhop` leads to a deadlock that names its five ports, and
/// `updn` with a root to none.
#[test]
fn a_ring_deadlocks_with_minhop_and_not_with_updn() {
    let stuck = labs::run(&labs::credit_ring("minhop", 8, &["run.duration=40ms"]));
    let finding = stuck.findings.iter().find(|finding| finding.kind == FindingKind::Deadlock).expect("a finding");
    let ports: BTreeSet<&str> = finding.cycle.iter().map(|port| port.split(':').next().unwrap_or("")).collect();
    assert_eq!((finding.cycle.len(), ports.len()), (5, 5), "{:?}", finding.cycle);
    let moving = labs::run(&labs::credit_ring("updn", 8, &["run.duration=40ms"]));
    assert_eq!((stuck.totals.deadlocks, moving.totals.deadlocks), (1, 0));
    assert!(labs::mb_per_s(&moving) > 1_000.0, "{} MB/s", labs::mb_per_s(&moving));
    let dropped = |results: &Results| {
        let links = results.infiniband_links.iter();
        links.map(|link| link.forward.lifetime_drops + link.backward.lifetime_drops).sum::<u64>()
    };
    assert!(dropped(&stuck) > 0 && dropped(&moving) == 0);
}

/// A cable of 2 km with the blocks of a fifth of its round trip stands idle for the rest. With the
/// blocks that `check` advises, it is full.
#[test]
fn the_advised_blocks_fill_a_long_cable_and_fewer_do_not() {
    let run = |blocks: u32| {
        let text = lab(1, "4xQDR", 2_048, "", &requests(64, 1.0));
        let link = format!("to = \"ib\"\nrate = \"4xQDR\"\nlength = \"2km\"\nblocks = {blocks}\n");
        labs::run(&labs::lab(&text.replacen("to = \"ib\"\nrate = \"4xQDR\"\n", &link, 1)))
    };
    let (few, advised) = (run(256), run(1_328));
    let share = 4_000.0 * 2_048.0 / 2_076.0;
    assert!((labs::mb_per_s(&advised) / share - 1.0).abs() < 0.01, "{} MB/s", labs::mb_per_s(&advised));
    // 7 packets in each round trip of 20 us and the times of a packet and of its credit.
    let expected = 7.0 * 2_048.0 / (20.0 + 0.519 + 0.002);
    assert!((labs::mb_per_s(&few) / expected - 1.0).abs() < 0.01, "{} MB/s, not {expected:.1}", labs::mb_per_s(&few));
    let titles: Vec<&str> = few.findings.iter().map(|finding| finding.title.as_str()).collect();
    let finding = few.findings.iter().find(|finding| finding.title.contains("too few blocks for its length"));
    let finding = finding.unwrap_or_else(|| panic!("{titles:?}"));
    let [(key, value)] = &finding.candidates[0].set[..] else { panic!("{finding:?}") };
    assert!(key.ends_with(".blocks") && value == "1328", "{finding:?}");
    assert!(advised.findings.iter().all(|finding| !finding.title.contains("too few blocks")));
}

/// No lane has the blocks for 10 km: those that one may have are tried, and `check` says how far
/// they reach.
#[test]
fn the_most_blocks_of_a_lane_are_advised_for_a_cable_that_needs_more() {
    let text = lab(1, "4xQDR", 2_048, "", &requests(64, 1.0));
    let link = "to = \"ib\"\nrate = \"4xQDR\"\nlength = \"10km\"\n";
    let text = text.replacen("to = \"ib\"\nrate = \"4xQDR\"\n", link, 1);
    let few = labs::run(&labs::lab(&text));
    let finding = few.findings.iter().find(|finding| finding.title.contains("too few blocks for its length"));
    let finding = finding.unwrap_or_else(|| panic!("{:?}", few.findings));
    assert_eq!(finding.remedy, "", "a remedy without a trial");
    let [(key, value)] = &finding.candidates[0].set[..] else { panic!("{finding:?}") };
    assert!(key.ends_with(".blocks") && value == "2048", "{finding:?}");
    let most = labs::lab_with(&text, "", &[&format!("{key}={value}")]);
    let results = labs::run(&most);
    assert!(labs::mb_per_s(&results) > 8.0 * labs::mb_per_s(&few), "{} MB/s", labs::mb_per_s(&results));
    let finding = results.findings.iter().find(|finding| finding.title.contains("too few blocks for its length"));
    let finding = finding.unwrap_or_else(|| panic!("{:?}", results.findings));
    assert!(finding.candidates.is_empty() && finding.remedy.contains("shorter or slower"), "{finding:?}");
}

/// Round trips with one, two and three packets, at a switch and at an adapter.
#[test]
fn blocks_keep_a_line_busy_for_the_share_that_check_states() {
    let text = |switch: u16, storage: u16| {
        format!(
            r#"
[run]
duration = "4ms"
warmup = "1ms"
[subnet]
mtu = 4096
[infiniband_switch.s]
blocks = {switch}
[host.a]
srp = {{ blocks = 2048 }}
[storage.x]
rate = "5M/s"
servers = 64
srp = {{ blocks = {storage} }}
[[link]]
from = "a"
to = "s"
rate = "4xNDR"
[[link]]
from = "x"
to = "s"
rate = "4xEDR"
[workload.wx]
hosts = "a"
targets = "x"
depth = 64
size = "64KiB"
read_share = {}
"#,
            if switch == 2_048 { "0" } else { "1" }
        )
    };
    for (switch, storage, stated) in [(128, 2_048, 62), (2_048, 70, 76), (2_048, 137, 100)] {
        let lab = labs::lab(&text(switch, storage));
        let link = &lab.infiniband.links[1];
        let side = usize::from(storage == 2_048);
        let percent = lab.infiniband.busy_percent(link, side, if side == 1 { switch } else { storage });
        let results = labs::run(&lab);
        let busy = &results.infiniband_links[1];
        let reached = 100.0 * if side == 1 { busy.forward.utilisation } else { busy.backward.utilisation };
        assert_eq!(percent, stated);
        assert!((reached - percent as f64).abs() < 2.0, "{switch}, {storage}: {reached}, not {percent}");
    }
}

/// Four hosts with deep queues at one line: packets wait for milliseconds. A time-out of 1 ms
/// repeats them although none is lost.
#[test]
fn an_ack_timeout_shorter_than_the_queues_is_a_finding() {
    let text = r#"
[run]
duration = "1s"
warmup = "1ms"
[infiniband_switch.i]
[host."h{1..4}"]
[storage.s]
rate = "500k/s"
srp = {}
[[link]]
from = "{h1,h2,h3,h4,s}"
to = "i"
rate = "4xSDR"
[workload.w]
hosts = "h{1..4}"
targets = "s"
depth = 32
size = "256KiB"
read_share = 0.5
"#;
    let of = |sets: &[&str]| {
        let results = labs::run(&labs::lab_with(text, "[subnet]\nack_timeout = 8\n", sets));
        let is_early = |finding: &&Finding| finding.title.ends_with("repeated packets although none was lost");
        let early = results.findings.iter().find(is_early).cloned();
        (results.totals.io.throughput_bytes_per_s, early)
    };
    let (slow, early) = of(&[]);
    let early = early.expect("the finding");
    assert!(early.remedy.is_empty(), "advice is printed after a trial only: {early:?}");
    let [candidate] = &early.candidates[..] else { panic!("{early:?}") };
    let sets: Vec<String> = candidate.set.iter().map(|(key, value)| format!("{key}={value}")).collect();
    let (fast, cured) = of(&sets.iter().map(String::as_str).collect::<Vec<_>>());
    assert!(fast > 1.5 * slow && cured.is_none(), "{slow} and {fast} bytes/s, {cured:?}");
}
