//! Processor time of hosts for frames of TCP that arrive.

use crate::labs;
use sanloom_api::results::Results;
use sanloom_fc::config::StackCost;
use sanloom_fc::san::Lab;
use std::sync::Arc;

/// A host and a storage system without costs at a switch of its own.
fn lab(host: &str, rate: &str, workload: &str) -> Arc<Lab> {
    labs::lab(&format!(
        r#"
[run]
duration = "300ms"
warmup = "100ms"
[ethernet_switch.tor]
[host.server]
{host}
[storage.array]
rate = "1M/s"
iscsi = {{}}
[[link]]
from = "{{server,array}}"
to = "tor"
rate = "{rate}"
[workload.load]
hosts = "server"
targets = "array"
{workload}
"#
    ))
}

/// Size of requests.
const LARGE: &str = "size = \"256KiB\"\n";

/// Payload of a full segment with time stamps at an MTU of 1500, and its time on the line in bytes.
const SEGMENT: (f64, f64) = (1_448.0, 1_538.0);

/// Rate at which one core receives full batches, in MB/s.
fn of_one_core(cost: &StackCost) -> f64 {
    let segments = (f64::from(cost.batch_bytes) / SEGMENT.0).floor().max(1.0);
    let kib = segments * SEGMENT.0 / 1024.0;
    let ps = cost.per_segment_received.0 as f64 + kib * (cost.copy_received.0 + cost.checksum.0) as f64;
    segments * SEGMENT.0 / ps * 1e6
}

#[test]
fn reads_reach_the_line_or_the_law_of_one_core_at_each_depth_for_each_class_of_machines() {
    for (preset, rate, line) in [
        ("server-2003", "1GbE", 125.0),
        ("server-2003", "10GbE", 1_250.0),
        ("server-2011", "1GbE", 125.0),
        ("server-2011", "10GbE", 1_250.0),
        ("server-2021", "10GbE", 1_250.0),
        ("server-2021", "100GbE", 12_500.0),
    ] {
        let host = format!("preset = \"{preset}\"");
        let mut last = 0.0;
        for depth in [1, 4, 16, 64] {
            let lab = lab(&host, rate, &format!("{LARGE}depth = {depth}"));
            let law = (line * SEGMENT.0 / SEGMENT.1).min(of_one_core(&lab.hosts[0].processor.tcp));
            let found = labs::mb_per_s(&labs::run(&lab));
            let case = format!("{preset}, {rate}, depth {depth}: {found:.1} MB/s, law {law:.1}, before {last:.1}");
            // Requests that have begun before the measurement count whole.
            assert!(found < 1.1 * law, "{case}");
            assert!(depth < 16 || found > 0.9 * law, "{case}");
            assert!(found > 0.97 * last, "{case}");
            last = found;
        }
    }
}

fn work(results: &Results, name: &str) -> f64 {
    results.hosts[0].cpu_work.iter().find(|work| work.name == name).map_or(0.0, |work| work.cpu_s)
}

#[test]
fn a_batch_that_receive_offload_joins_is_acknowledged_once() {
    // The data of a request end a batch.
    let segments = ((262_144.0 + 48.0) / SEGMENT.0).ceil();
    for (batch, of_batch) in [("\"0B\"", 2.0), ("\"64KiB\"", 45.0), ("\"16KiB\"", 11.0)] {
        // The core is slower than the line, so batches are full.
        let host = format!("tcp_cost = {{ copy_received = \"4us\", batch = {batch} }}");
        let results = labs::run(&lab(&host, "10GbE", &format!("{LARGE}depth = 16")));
        let of_host = &results.ethernet_links[0];
        let acknowledged = of_host.backward.frames as f64 / of_host.forward.frames as f64;
        // The command is a frame of the host as well.
        let expected = segments / ((segments / of_batch).ceil() + 1.0);
        assert!(
            (acknowledged / expected - 1.0).abs() < 0.03,
            "{batch}: one for {acknowledged} segments, not {expected}"
        );
    }
}

#[test]
fn an_adaptive_gap_between_interrupts_is_short_without_load_and_long_with_load() {
    let cost =
        "per_segment_received = \"100ns\", interrupt = \"1us\", interrupt_gap = \"200us\", interrupt_frames = 4096";
    let [fixed, adaptive] = ["", ", min_interrupt_gap = \"5us\""].map(|more| format!("tcp_cost = {{ {cost}{more} }}"));
    let of = |host: &str, workload: &str| labs::run(&lab(host, "10GbE", workload));
    let one = "depth = 1\nsize = \"512B\"";
    let [slow, fast] = [&fixed, &adaptive].map(|host| of(host, one).totals.io.latency.mean_us);
    assert!(slow > 180.0 && fast < 40.0, "{slow} and {fast} us");
    let many = "depth = 64\nsize = \"4KiB\"";
    let [fixed, adaptive] = [&fixed, &adaptive].map(|host| work(&of(host, many), "interrupt"));
    assert!(adaptive < 1.2 * fixed, "{fixed} and {adaptive} s in interrupts");
}

#[test]
fn copies_cost_payload_only_and_acknowledgements_without_data_cost_nothing() {
    let host = "tcp_cost = { copy_received = \"1us\", per_segment_received = \"1us\", copy_sent = \"1us\", per_segment_sent = \"2us\" }";
    for (read_share, segment_us) in [(1.0, 1.0), (0.0, 2.0)] {
        let results = labs::run(&lab(host, "1GbE", &format!("{LARGE}depth = 4\nread_share = {read_share}")));
        let kib = labs::mb_per_s(&results) * 1e6 * 0.2 / 1024.0;
        let (copy, segments) = (work(&results, "copy") * 1e6 / kib, work(&results, "segments") * 1e6 / kib);
        // Headers of PDUs, and commands or responses, are payload of TCP as well.
        assert!((copy - 1.0).abs() < 0.01, "{read_share}: {copy} us for each KiB");
        let expected = segment_us * 1024.0 / SEGMENT.0;
        assert!((segments / expected - 1.0).abs() < 0.02, "{read_share}: {segments} us for each KiB, not {expected}");
    }
}

#[test]
fn interrupts_end_while_the_processor_polls() {
    // 4 us for a segment are more than its time on a line of 10 Gb/s, so the processor never waits.
    let host = "tcp_cost = { per_segment_received = \"4us\", interrupt = \"2us\", interrupt_gap = \"20us\" }";
    let busy = work(&labs::run(&lab(host, "10GbE", &format!("{LARGE}depth = 16"))), "interrupt");
    let idle = work(&labs::run(&lab(host, "1GbE", "depth = 1\nsize = \"4KiB\"")), "interrupt");
    assert!(busy < 0.001, "{busy} s for interrupts in 200 ms of continuous work");
    assert!(idle > 0.002, "{idle} s for the interrupts of single requests");
}

#[test]
fn interfaces_share_buses_in_their_order_whatever_their_sessions() {
    // The host has two interfaces of 125 MB/s, behind that of another host, and buses of 132 MB/s.
    let run = |shared: u16| {
        labs::run(&labs::lab(&format!(
            r#"
[run]
duration = "300ms"
warmup = "100ms"
[ethernet_switch.tor]
[host.other]
[host.server]
bus = {{ bits = 32, clock = "33MHz", shared_by = {shared} }}
iscsi = {{ sessions = 2 }}
[storage.array]
rate = "1M/s"
iscsi = {{}}
[[link]]
from = "other"
to = "tor"
rate = "1GbE"
[[link]]
from = "server"
to = "tor"
rate = "1GbE"
count = 2
[[link]]
from = "array"
to = "tor"
rate = "10GbE"
[workload.load]
hosts = "server"
targets = "array"
size = "256KiB"
depth = 32
"#
        )))
    };
    // A frame on the bus has 1,518 bytes.
    let of_bus = 132.0 * SEGMENT.0 / 1_518.0;
    let of_line = 125.0 * SEGMENT.0 / SEGMENT.1;
    for (shared, expected) in [(2, of_bus), (1, 2.0 * of_line)] {
        let found = labs::mb_per_s(&run(shared));
        assert!((found / expected - 1.0).abs() < 0.03, "{shared} on a bus: {found} MB/s, not {expected}");
    }
}
