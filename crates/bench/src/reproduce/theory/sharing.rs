//! Shares of a line: parking lot and slow drain.

use super::bed::{Sample, simulate};
use super::lines::{Generation, read_slots};
use super::row::{Basis, Row};
use sanloom_console::exit::Failure;

const LOT: Basis = Basis {
    section: "Sharing of a line",
    source: "Parking lot: at each switch of a chain the passing frames and the local ones get half of the line each \
             (round-robin), so sources at 1, 2, 3, … hops get 1/2, 1/4, 1/8, … (Dally and Towles 2004, section 15.4.1)",
    tolerance_reason: "1 %, for frames at the ends of the measured time and responses among the data",
};

const DRAIN: Basis = Basis {
    section: "Sharing of a line",
    source: "Slow drain: a receiver that returns one credit per d takes one frame per d. Frames for it and for another \
             receiver alternate on the shared link, so the other one gets as many, whatever the speed of its own link \
             (head-of-line blocking; with VOQs because the slow frames fill the shared buffers)",
    tolerance_reason: "1 %, for frames at the ends of the measured time",
};

/// Size of a read, in bytes, and its frames with the response.
const SIZE: u64 = 64 << 10;
const FRAMES: f64 = 33.0;
/// Sources of the chain.
const SOURCES: usize = 5;
/// Delay of each credit of the slow receiver, in µs.
const DELAY_US: f64 = 50.0;

/// Returns the rows of the parking lot.
pub fn parking_lot(sample: Sample) -> Result<Vec<Row>, Failure> {
    let generation = Generation::named("4GFC");
    let command_us = generation.us(read_slots(SIZE));
    let commands = sample.of(400.0, 8_000.0);
    let text = format!(
        r#"
        [run]
        duration = "{}ns"
        warmup = "{}ns"
        [switch."sw{{1..{SOURCES}}}"]
        buffers = 16
        queueing = "fifo"
        arbitration = "round-robin"
        [host.h]
        queue_depth = 1024
        [storage."s{{1..{SOURCES}}}"]
        rate = "10M/s"
        [[link]]
        from = "h"
        to = "sw1"
        rate = "4GFC"
        length = "1m"
        [[link]]
        from = "s{{1..{SOURCES}}}"
        to = "sw{{1..{SOURCES}}}"
        rate = "4GFC"
        length = "1m"
        [[isl]]
        from = "sw{{1..{}}}"
        to = "sw{{2..{SOURCES}}}"
        rate = "4GFC"
        length = "1m"
        [workload."w{{1..{SOURCES}}}"]
        hosts = "h"
        targets = "s{{1..{SOURCES}}}"
        size = "{SIZE}B"
        depth = 32
        "#,
        ((commands + 200.0) * command_us * 1e3) as u64,
        (200.0 * command_us * 1e3) as u64,
        SOURCES - 1,
    );
    let results = simulate("parking-lot", &text)?;
    let capacity = generation.bytes_per_s() / 1e6 * SIZE as f64 / read_slots(SIZE) as f64;
    let row = |at: usize| {
        // The last two sources are symmetric.
        let halvings = (at + 1).min(SOURCES - 1) as i32;
        let theory = capacity / 2.0_f64.powi(halvings);
        let ours = results.storage.get(at).map(|storage| storage.throughput_bytes_per_s / 1e6);
        let what = format!("parking lot, source at {} of {SOURCES}", at + 1);
        LOT.row(format!("parking-lot-{}", at + 1), what, "MB/s", theory, ours, (0.01 + 20.0 / commands) * theory)
    };
    Ok((0..SOURCES).map(row).collect())
}

/// Returns the rows of slow drain with a queueing order of the switches.
pub fn slow_drain(queueing: &str, sample: Sample) -> Result<Vec<Row>, Failure> {
    let frames = sample.of(2_000.0, 40_000.0);
    let text = format!(
        r#"
        [run]
        duration = "{}ns"
        warmup = "{}ns"
        [switch."sw{{1..2}}"]
        queueing = "{queueing}"
        buffers = 16
        virtual_channels = {{ medium = 0 }}
        [host.slow]
        [host.other]
        [storage."s{{1..2}}"]
        rate = "10M/s"
        [[link]]
        from = "{{slow,other}}"
        to = "sw1"
        rate = "8GFC"
        length = "1m"
        [[link]]
        from = "s{{1..2}}"
        to = "sw2"
        rate = "8GFC"
        length = "1m"
        [[isl]]
        from = "sw1"
        to = "sw2"
        rate = "8GFC"
        length = "1m"
        [workload.a]
        hosts = "slow"
        targets = "s1"
        size = "{SIZE}B"
        depth = 32
        [workload.b]
        hosts = "other"
        targets = "s2"
        size = "{SIZE}B"
        depth = 32
        [[fault]]
        at = "0s"
        kind = "slow-receiver"
        port = "slow"
        delay = "{DELAY_US}us"
        "#,
        ((frames + 1_500.0) * DELAY_US * 1e3) as u64,
        (1_500.0 * DELAY_US * 1e3) as u64,
    );
    let results = simulate("slow-drain", &text)?;
    let theory = SIZE as f64 / FRAMES / DELAY_US;
    let row = |at: usize, who: &str| {
        let host = results.hosts.get(at);
        let link = results.links.get(at).map(|link| link.backward.throughput_bytes_per_s / 1e6);
        let what = format!("slow drain, {queueing}, {who}");
        let ours = host.and(link);
        DRAIN.row(format!("slow-drain-{queueing}-{at}"), what, "MB/s", theory, ours, (0.01 + 33.0 / frames) * theory)
    };
    Ok(vec![row(0, "slow receiver"), row(1, "other receiver")])
}
