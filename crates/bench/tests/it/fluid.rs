//! The simulator against the fluid model: random labs in steady state, flow by flow.
//!
//! ```text
//! cargo test -p sanloom-bench --test it fluid                          500 labs
//! SANLOOM_SEED=17 cargo test -p sanloom-bench --test it fluid          one lab
//! SANLOOM_FIRST_SEED=5000 SANLOOM_FLUID_LABS=400 cargo test …          other labs
//! ```

use sanloom_bench::fluid::{Compared, Model, labs, report, shrink};
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};

const LABS: u64 = 500;
const THREADS: usize = 2;

#[test]
fn random_labs_reach_the_rates_of_the_fluid_model() {
    let number = |name: &str| std::env::var(name).ok().map(|text| text.parse::<u64>().expect(name));
    let one = number("SANLOOM_SEED");
    let first = one.or(number("SANLOOM_FIRST_SEED")).unwrap_or(0);
    let many = one.map_or(number("SANLOOM_FLUID_LABS").unwrap_or(LABS), |_| 1);
    let (next, totals) = (AtomicU64::new(first), Mutex::new((Compared::default(), Vec::new())));
    std::thread::scope(|scope| {
        let work = || {
            loop {
                let seed = next.fetch_add(1, Ordering::Relaxed);
                if seed >= first + many {
                    return;
                }
                let text = labs::draw(seed);
                let outcome = report(&text).map_err(|what| (what, report(&shrink(&text)).err().unwrap_or_default()));
                let mut totals = totals.lock().expect("no panic holds it");
                match outcome {
                    Ok(compared) => totals.0 += compared,
                    Err((what, small)) => {
                        totals.1.push(format!("seed {seed}: {what}\nwith fewer workloads:\n{small}"));
                    }
                }
            }
        };
        (0..THREADS).for_each(|_| drop(scope.spawn(work)));
    });
    let (compared, wrong) = totals.into_inner().expect("no panic holds it");
    println!("{many} labs: {compared:?}");
    assert!(wrong.is_empty(), "{} of {many} labs deviate:\n{}", wrong.len(), wrong.join("\n"));
    let Compared { flows, one_by_one, .. } = compared;
    assert!(many < LABS || one_by_one * 8 > flows * 3, "only {one_by_one} of {flows} rates are determined");
}

/// Four disks and four hosts at 8GFC, joined by one ISL at 32GFC.
const FAN: &str = r#"
[switch."sw{1..2}"]
queueing = "QUEUEING"
[host."host{1..4}"]
[storage."disk{1..4}"]
rate = "10M/s"
[[link]]
from = "host{1..4}"
to = "sw1"
rate = "8GFC"
[[link]]
from = "disk{1..4}"
to = "sw2"
rate = "8GFC"
[[isl]]
from = "sw1"
to = "sw2"
rate = "32GFC"
[workload."reads{1..4}"]
hosts = "host{1..4}"
targets = "disk{1..4}"
size = "32KiB"
"#;

/// One disk at 32GFC for four hosts at 8GFC, with short reads.
const ONE_DISK: &str = r#"
[switch.sw1]
queueing = "voq"
[host."host{1..4}"]
[storage.disk1]
rate = "10M/s"
[[link]]
from = "host{1..4}"
to = "sw1"
rate = "8GFC"
[[link]]
from = "disk1"
to = "sw1"
rate = "32GFC"
[workload."reads{1..4}"]
hosts = "host{1..4}"
targets = "disk1"
size = "2KiB"
"#;

/// Two levels of equal paths: two cores, and two links from each core to each edge.
const TWO_LEVELS: &str = r#"
[switch."sw{1..4}"]
queueing = "voq"
[host."host{1..4}"]
[storage."disk{1..4}"]
rate = "10M/s"
[[link]]
from = "host{1..4}"
to = "sw1"
rate = "32GFC"
[[link]]
from = "disk{1..4}"
to = "sw4"
rate = "32GFC"
[[isl]]
from = "sw1"
to = "sw{2..3}"
rate = "32GFC"
count = 2
[[isl]]
from = "sw4"
to = "sw{2..3}"
rate = "32GFC"
count = 2
[workload."reads{1..4}"]
hosts = "host{1..4}"
targets = "disk{1..4}"
size = "32KiB"
"#;

/// Eight pairs at 16GFC over a trunk whose lines are their only bottleneck.
const TRUNK: &str = r#"
[switch."sw{1..2}"]
queueing = "voq"
[host."host{1..8}"]
[storage."disk{1..8}"]
rate = "10M/s"
[[link]]
from = "host{1..8}"
to = "sw1"
rate = "16GFC"
[[link]]
from = "disk{1..8}"
to = "sw2"
rate = "16GFC"
[[isl]]
from = "sw1"
to = "sw2"
rate = "8GFC"
count = COUNT
bundle = true
[workload."reads{1..8}"]
hosts = "host{1..8}"
targets = "disk{1..8}"
size = "32KiB"
"#;

/// Writes of a host at 4GFC and of one at 64GFC to the same storage port at 64GFC. A line that
/// waits for the last bits of each slow frame leaves less than half to the fast host.
const SLOW_SENDER: &str = r#"
[switch.sw1]
queueing = "QUEUEING"
[host."host{1..2}"]
[storage.disk1]
rate = "10M/s"
[[link]]
from = "host1"
to = "sw1"
rate = "4GFC"
credits = 300
[[link]]
from = "host2"
to = "sw1"
rate = "64GFC"
credits = 300
[[link]]
from = "disk1"
to = "sw1"
rate = "64GFC"
credits = 900
[workload."writes{1..2}"]
hosts = "host{1..2}"
targets = "disk1"
size = "32KiB"
depth = 16
read_share = 0.0
"#;

/// Reads of a host with a slow bus and few buffers from three disks, two of them behind one ISL.
const BUS: &str = r#"
[switch."sw{1..2}"]
queueing = "voq"
[host.host1]
bus = { bits = 64, clock = "50MHz" }
queue_depth = 400
[storage."disk{1..3}"]
rate = "10M/s"
[[link]]
from = "host1"
to = "sw1"
rate = "16GFC"
credits = 16
[[link]]
from = "disk1"
to = "sw1"
rate = "16GFC"
credits = 16
[[link]]
from = "disk{2..3}"
to = "sw2"
rate = "16GFC"
credits = 16
[[isl]]
from = "sw1"
to = "sw2"
rate = "16GFC"
credits = 16
[workload."reads{1..3}"]
hosts = "host1"
targets = "disk{1..3}"
size = "4KiB"
depth = 100
"#;

/// Reads of two hosts at 8GFC from disks at 64GFC over one ISL. Sequences of 32 frames block each
/// other in the FIFO queue at the end of the ISL.
const RUNS: &str = r#"
[switch."sw{1..2}"]
queueing = "fifo"
[host."host{1..2}"]
[storage."disk{1..2}"]
rate = "10M/s"
[[link]]
from = "host{1..2}"
to = "sw1"
rate = "8GFC"
[[link]]
from = "disk{1..2}"
to = "sw2"
rate = "RATE"
[[isl]]
from = "sw1"
to = "sw2"
rate = "32GFC"
[workload."reads{1..2}"]
hosts = "host{1..2}"
targets = "disk{1..2}"
size = "64KiB"
"#;

/// Writes of two hosts over one ISL. The second ISL slows the first flow down, so its data fill the
/// queue of the first ISL for a part of the time. Commands of the second flow wait there.
const WINDOWS: &str = r#"
[switch."sw{1..3}"]
queueing = "voq"
arbitration = "ARBITRATION"
virtual_channels = { medium = 0 }
[host."host{1..2}"]
[storage.disk1]
rate = "10M/s"
[storage.disk2]
rate = "15k/s"
servers = 2
[[link]]
from = "host1"
to = "sw1"
rate = "32GFC"
credits = 2000
[[link]]
from = "host2"
to = "sw1"
rate = "16GFC"
credits = 2000
[[link]]
from = "disk1"
to = "sw3"
rate = "16GFC"
credits = 2000
[[link]]
from = "disk2"
to = "sw2"
rate = "32GFC"
credits = 2000
[[isl]]
from = "sw1"
to = "sw2"
rate = "32GFC"
credits = 4000
[[isl]]
from = "sw2"
to = "sw3"
rate = "16GFC"
credits = 4000
[workload."writes{1..2}"]
hosts = "host{1..2}"
targets = "disk{1..2}"
size = "64KiB"
depth = 32
read_share = 0.0
"#;

/// Returns the fluid model of a lab file.
fn model(text: &str) -> Model {
    let loaded = sanloom_lab::load("fluid.toml", text, &[]).unwrap_or_else(|bad| panic!("{}", bad.render(false)));
    Model::new(&loaded.lab).expect("the model describes the lab")
}

/// Asserts that the model rejects the throughputs that a defective simulator once had, in MB/s.
fn assert_rejected(text: &str, mb_per_s: &[f64]) {
    let model = model(text);
    let measured: Vec<f64> =
        model.network.flows.iter().zip(mb_per_s).map(|(flow, mb)| mb * 1e6 / f64::from(flow.bytes)).collect();
    assert_eq!(measured.len(), model.network.flows.len());
    let what = model.judge(&measured, 1.0).expect_err("throughputs far below the capacity");
    println!("{what}");
    assert!(model.judge(&model.filled.rates, 1.0).is_ok(), "the model rejects its own rates");
}

#[test]
fn an_input_that_waits_for_slow_output_lines_is_rejected() {
    for queueing in ["voq", "fifo"] {
        assert_rejected(&FAN.replace("QUEUEING", queueing), &[836.0 / 4.0; 4]);
    }
}

#[test]
fn an_unfair_division_of_a_disk_is_rejected() {
    assert_rejected(ONE_DISK, &[382.0, 382.0, 48.0, 0.0]);
}

#[test]
fn a_fast_line_that_waits_for_the_frames_of_a_slow_one_is_rejected() {
    assert_rejected(&SLOW_SENDER.replace("QUEUEING", "voq"), &[411.7, 2_777.0]);
    assert_rejected(&SLOW_SENDER.replace("QUEUEING", "any"), &[411.7, 1_243.0]);
}

#[test]
fn a_hash_that_leaves_most_equal_paths_unused_is_rejected() {
    let rates = model(TWO_LEVELS).filled.rates;
    let total: f64 = rates.iter().sum::<f64>() * f64::from(32 << 10) / 1e6;
    assert!((total / 13_161.0 - 1.0).abs() < 0.01, "{total}");
    assert_rejected(TWO_LEVELS, &[3_256.0 / 4.0; 4]);
}

#[test]
fn a_trunk_whose_lines_wait_for_each_other_is_rejected() {
    for (lines, part) in [(2, 0.71), (4, 0.60), (8, 0.55)] {
        let text = TRUNK.replace("COUNT", &lines.to_string());
        let rates = model(&text).filled.rates;
        let part: Vec<f64> = rates.iter().map(|rate| part * rate * f64::from(32 << 10) / 1e6).collect();
        assert_rejected(&text, &part);
    }
}

/// Returns the throughputs of the model, in MB/s.
fn mb_per_s(model: &Model) -> Vec<f64> {
    let flows = model.network.flows.iter().zip(&model.filled.rates);
    flows.map(|(flow, rate)| (rate * f64::from(flow.bytes) / 1e6).round()).collect()
}

#[test]
fn a_bus_gets_data_in_the_proportions_of_the_switch_before_it() {
    // The bus carries 400 MB/s. The switch serves the disk and the ISL in turn.
    assert_eq!(mb_per_s(&model(BUS)), [200.0, 100.0, 100.0]);
    assert_rejected(BUS, &[400.0 / 3.0; 3]);
    // Ample buffers hold all requests in one queue, so that each flow has a third of it.
    assert_eq!(mb_per_s(&model(&BUS.replace("credits = 16", "credits = 4000"))), [133.0; 3]);
}

#[test]
fn runs_of_frames_get_a_lower_bound_behind_fifo_queues_than_independent_frames() {
    let judge = |rate: &str, part: f64| {
        let model = model(&RUNS.replace("RATE", rate));
        let measured: Vec<f64> = model.filled.rates.iter().map(|rate| part * rate).collect();
        model.judge(&measured, 1.0)
    };
    judge("8GFC", 0.58).expect("within 3 % of 0.586");
    judge("8GFC", 0.52).expect_err("less than 0.586");
    let behind_runs = judge("64GFC", 0.52).expect("more than a half");
    assert_eq!((behind_runs.behind_fifo, behind_runs.behind_runs), (0, 2));
    judge("64GFC", 0.45).expect_err("less than a half");
}

#[test]
fn a_window_of_writes_that_waits_behind_the_data_of_another_flow_is_accepted() {
    let run = "[run]\nduration = \"24ms\"\nwarmup = \"8ms\"\n";
    for arbitration in ["round-robin", "oldest-first"] {
        let text = WINDOWS.replace("ARBITRATION", arbitration);
        report(&format!("{run}{text}")).unwrap_or_else(|what| panic!("{what}"));
        // With one queue for all inputs, the second flow gets 1,389 of 1,649 MB/s.
        let model = model(&text);
        let measured = [1_645.0, 1_389.0].map(|mb| mb * 1e6 / f64::from(64 << 10));
        assert_eq!(model.judge(&measured, 1.0).is_ok(), arbitration == "oldest-first");
        // One of the two flows uses its bottleneck in any case.
        let measured = [1_389.0; 2].map(|mb| mb * 1e6 / f64::from(64 << 10));
        model.judge(&measured, 1.0).expect_err("no station is full");
    }
}

#[test]
fn the_labs_of_past_defects_reach_the_rates_of_the_fluid_model() {
    let run = "[run]\nduration = \"12ms\"\nwarmup = \"4ms\"\n";
    let fan = ["voq", "fifo", "any"].map(|queueing| FAN.replace("QUEUEING", queueing));
    let slow_sender = ["voq", "fifo", "any"].map(|queueing| SLOW_SENDER.replace("QUEUEING", queueing));
    let trunks = ["2", "4", "8"].map(|lines| TRUNK.replace("COUNT", lines));
    for text in fan.into_iter().chain(slow_sender).chain(trunks).chain([
        ONE_DISK.to_owned(),
        TWO_LEVELS.to_owned(),
        BUS.to_owned(),
    ]) {
        report(&format!("{run}{text}")).unwrap_or_else(|what| panic!("{what}"));
    }
}
