//! Buses and interrupts of storage systems.

use crate::labs::{check, lab_with, run};
use sanloom_api::results::Results;
use sanloom_sim::run::{Blind, Options, simulate};

/// A host and a storage system behind a switch.
const PAIR: &str = r#"
[run]
duration = "20ms"
warmup = "2ms"
[switch.edge]
[host.server]
hbas = 2
[storage.disk]
ports = 2
rate = "1M/s"
[[link]]
from = "server"
to = "edge"
rate = "16GFC"
count = 2
[[link]]
from = "disk"
to = "edge"
rate = "16GFC"
count = 2
[workload.io]
hosts = "server"
targets = "disk"
size = "8KiB"
depth = 32
"#;

fn with(sets: &[&str]) -> Results {
    run(&lab_with(PAIR, "", sets))
}

const BUS: [&str; 2] = ["storage.disk.bus.bits=64", "storage.disk.bus.clock=66MHz"];

#[test]
fn a_bus_limits_reads_and_writes_to_a_word_per_clock() {
    // 8 KiB are 1,024 words of 8 bytes.
    let of_one_bus = 66e6 / 1024.0;
    for (shared_by, buses) in [(2, 1.0), (1, 2.0)] {
        for read_share in [0, 1] {
            let shared = format!("storage.disk.bus.shared_by={shared_by}");
            let mix = format!("workload.io.read_share={read_share}");
            let results = with(&[BUS[0], BUS[1], &shared, &mix]);
            let (ours, theory) = (results.totals.io.iops, buses * of_one_bus);
            assert!((ours / theory - 1.0).abs() < 0.003, "{shared_by} {read_share}: {ours}, theory {theory}");
            let adapters = results.storage[0].adapters.as_ref().expect("a bus");
            assert!(adapters.bus_utilisation > 0.99, "{adapters:?}");
        }
    }
}

/// Mean latency of one request at a time, in microseconds.
fn latency_us(sets: &[&str]) -> f64 {
    with(&[sets, &["workload.io.depth=1"]].concat()).totals.io.latency.mean_us
}

#[test]
fn a_single_frame_waits_for_its_own_transfer_only() {
    for read_share in ["workload.io.read_share=0", "workload.io.read_share=1"] {
        let size = "workload.io.size=2KiB";
        let added = latency_us(&[BUS[0], BUS[1], size, read_share]) - latency_us(&[size, read_share]);
        // 256 words at 66 MHz.
        assert!((added - 256.0 / 66.0).abs() < 0.001, "{read_share}: {added} us");
    }
}

#[test]
fn frames_of_a_read_cross_the_bus_while_others_are_on_the_line() {
    // The bus of 528 MB/s is slower than the line of 1,600 MB/s. Four transfers on the bus and one
    // frame on the line take the place of four frames on the line.
    let added = latency_us(&BUS) - latency_us(&[]);
    let line_us = 2048.0 / 1600.0;
    let theory = 4.0 * 256.0 / 66.0 - 3.0 * line_us;
    assert!((added - theory).abs() < 0.3, "{added} us, theory {theory} us");
}

#[test]
fn a_command_reaches_the_controller_when_its_interrupt_has_been_handled() {
    let interrupt = |cost: &str, frames: u32, wait: &str| {
        [
            format!("storage.disk.interrupt.cost={cost}"),
            format!("storage.disk.interrupt.max_frames={frames}"),
            format!("storage.disk.interrupt.max_wait={wait}"),
        ]
    };
    let plain = latency_us(&[]);
    for (cost, frames, wait, added) in [("3us", 1, "0s", 3.0), ("3us", 8, "50us", 53.0)] {
        let sets = interrupt(cost, frames, wait);
        let ours = latency_us(&sets.each_ref().map(String::as_str)) - plain;
        assert!((ours - added).abs() < 0.001, "{cost} {frames} {wait}: {ours} us");
    }
    // One interrupt of 20 us for each command, and one for four commands.
    for (frames, theory) in [(1, 50_000.0), (4, 200_000.0)] {
        let sets = interrupt("20us", frames, "1ms");
        let results = with(&sets.each_ref().map(String::as_str));
        let ours = results.totals.io.iops;
        assert!((ours / theory - 1.0).abs() < 0.005, "{frames}: {ours}, theory {theory}");
        let adapters = results.storage[0].adapters.as_ref().expect("interrupts");
        assert!(adapters.cpu_utilisation > 0.99, "{adapters:?}");
        let commands = adapters.interrupts as f64 * f64::from(frames);
        assert!((commands / results.storage[0].ios_completed as f64 - 1.0).abs() < 0.01, "{adapters:?}");
    }
}

#[test]
fn commands_whose_data_wait_for_the_bus_end_exactly_once_when_they_are_aborted_or_the_link_is_lost() {
    const FAULTS: &str = r#"
[[fault]]
at = "4ms"
until = "9ms"
kind = "link-down"
link = "disk:0-edge"
[[fault]]
at = "30ms"
until = "50ms"
kind = "frame-loss"
link = "disk:1-edge"
probability = 0.1
"#;
    for read_share in [0.0, 0.5, 1.0] {
        let mix = format!("workload.io.read_share={read_share}");
        let sets = [
            "storage.disk.bus.bits=32",
            "storage.disk.bus.clock=33MHz",
            "storage.disk.bus.shared_by=2",
            "storage.disk.interrupt.cost=5us",
            "storage.disk.interrupt.max_frames=8",
            // The data of 16 commands take 1 ms on the bus.
            "host.server.command_timeout=2ms",
            "workload.io.depth=16",
            // A port that returns is logged in again after some milliseconds.
            "run.duration=60ms",
            &mix,
        ];
        let lab = lab_with(PAIR, FAULTS, &sets);
        let finished = simulate(&lab, &Options::default(), &mut Blind);
        check(&finished);
        finished.world.check().expect("the books balance");
        let host = &finished.results.hosts[0];
        let ended = (host.commands_aborted, host.commands_retried, host.io.ios_completed);
        assert!(ended.0 > 0 && ended.1 > 0 && ended.2 > 200, "{mix}: {ended:?}");
    }
}

#[test]
fn a_saturated_bus_of_a_target_is_a_finding_with_a_remedy() {
    let results = with(&[BUS[0], BUS[1], "storage.disk.bus.shared_by=2"]);
    let finding = results.findings.iter().find(|finding| finding.title == "The bus of disk is saturated");
    let finding = finding.unwrap_or_else(|| panic!("{:?}", results.findings));
    assert_eq!(finding.candidates[0].set, [("storage.disk.bus.clock".to_owned(), "132000000Hz".to_owned())]);
}

/// A host and a storage system that iSCSI or SRP joins.
fn other_network(srp: bool, sets: &[&str]) -> Results {
    let (switch, target, rate) = match srp {
        true => ("[infiniband_switch.net]", "srp = {}", "4xEDR"),
        false => ("[ethernet_switch.net]", "iscsi = { tcp = { window = \"1MiB\" } }", "100GbE"),
    };
    let text = format!(
        "[run]\nduration = \"20ms\"\nwarmup = \"4ms\"\n{switch}\n[host.server]\n[storage.disk]\nrate = \"1M/s\"\n\
         servers = 64\n{target}\n[[link]]\nfrom = \"{{server,disk}}\"\nto = \"net\"\nrate = \"{rate}\"\n\
         [workload.io]\nhosts = \"server\"\ntargets = \"disk\"\nsize = \"64KiB\"\ndepth = 16\n"
    );
    run(&lab_with(&text, "", sets))
}

#[test]
fn a_bus_limits_iscsi_and_srp_to_a_word_per_clock() {
    // A word of 8 bytes per tick. Headers of TCP, of the PDUs and acknowledgements of the other
    // direction cross the bus as well: 48 bytes for each PDU, and 58 for each arriving frame.
    let bus = 8.0 * 66e6;
    for (srp, share) in [(false, 0.93), (true, 0.999)] {
        for read_share in ["workload.io.read_share=1", "workload.io.read_share=0"] {
            let results = other_network(srp, &[BUS[0], BUS[1], read_share]);
            let bytes_per_s = results.totals.io.throughput_bytes_per_s;
            println!("srp {srp}, {read_share}: {:.4} of the bus", bytes_per_s / bus);
            assert!(bytes_per_s <= bus * 1.001 && bytes_per_s > share * bus, "{srp} {read_share}: {bytes_per_s}");
            let adapters = results.storage[0].adapters.as_ref().expect("a bus");
            assert!(adapters.bus_utilisation > 0.99, "{adapters:?}");
            let free = other_network(srp, &[read_share]).totals.io.throughput_bytes_per_s;
            assert!(free > 2.0 * bus, "{srp} {read_share}: {free} without a bus");
        }
    }
}

#[test]
fn interrupts_delay_commands_of_iscsi_and_srp_and_adapt_to_the_load() {
    const SMALL: [&str; 2] = ["workload.io.size=4KiB", "workload.io.depth=1"];
    let of = |srp, sets: &[&str]| other_network(srp, &[&SMALL, sets].concat());
    for srp in [false, true] {
        let latency_us = |results: &Results| results.totals.io.latency.mean_us;
        let bare = latency_us(&of(srp, &[]));
        let interrupt = ["storage.disk.interrupt.cost=5us", "storage.disk.interrupt.max_wait=0s"];
        let each = of(srp, &interrupt);
        // A command is one unit of SRP, and one frame of TCP. The frame that acknowledges the data
        // before has an interrupt of its own, and the command waits for it.
        let interrupts_us = if srp { 5.0..=5.1 } else { 9.5..=10.1 };
        let later_us = latency_us(&each) - bare;
        assert!(interrupts_us.contains(&later_us), "{srp}: {later_us} later than {bare}");
        let adapters = each.storage[0].adapters.as_ref().expect("interrupts");
        assert!(adapters.interrupts >= each.totals.io.ios_completed, "{adapters:?}");
        let wait = ["storage.disk.interrupt.cost=5us", "storage.disk.interrupt.max_wait=40us"];
        let fixed = of(srp, &[&wait[..], &["storage.disk.interrupt.max_frames=8"]].concat());
        assert!(latency_us(&fixed) > bare + 44.0, "{srp}: {} after {bare}", latency_us(&fixed));
        let adaptive = [&wait[..], &["storage.disk.interrupt.max_frames=8", "storage.disk.interrupt.min_wait=1us"]];
        let adaptive = of(srp, &adaptive.concat());
        // An acknowledgement of TCP and the command behind it share an interrupt: the wait grows.
        let most_us = if srp { bare + 15.0 } else { latency_us(&fixed) };
        assert!(latency_us(&adaptive) <= most_us, "{srp}: {} after {bare}", latency_us(&adaptive));
    }
}

#[test]
fn the_processor_of_a_target_limits_srp_to_an_interrupt_for_each_command() {
    let sets = ["workload.io.size=4KiB", "storage.disk.interrupt.cost=20us", "storage.disk.interrupt.max_wait=0s"];
    let results = other_network(true, &sets);
    let iops = results.totals.io.iops;
    assert!((iops / 50_000.0 - 1.0).abs() < 0.003, "{iops}");
    let adapters = results.storage[0].adapters.as_ref().expect("interrupts");
    assert!(adapters.cpu_utilisation > 0.99, "{adapters:?}");
}
