//! Throughput of a long link with few credits: credits × distance × frame size.

use super::bed::{Sample, simulate};
use super::latency::LIGHT_US_PER_M;
use super::lines::{Generation, RSP, slot, wire};
use super::row::{Basis, Row};
use sanloom_console::exit::Failure;

const BASIS: Basis = Basis {
    section: "Credits × distance × frame size",
    source: "Read data over the longer of line time and credit time. Line time: the frames of a command with their gaps. \
             Credit time: a credit returns after the frame, the propagation delay there and back, and an R_RDY of 4 bytes; \
             it is divided by the credits (FC-FS-3, buffer-to-buffer flow control)",
    tolerance_reason: "frames at the ends of the measured time, 0.5 %, and one credit time",
};

/// Bytes of an R_RDY.
const R_RDY: u64 = 4;
/// Line rate.
const RATE: &str = "16GFC";
/// Data frames of a command.
const FRAMES: u64 = 32;

/// Credits, kilometres, and bytes of a frame.
pub type Case = (u32, u32, u64);

/// Returns the cases.
pub fn cases() -> Vec<Case> {
    let of_length = |credits, km| [512, 2_048].map(|size| (credits, km, size));
    let of_credits = |credits| [1, 10, 100].into_iter().flat_map(move |km| of_length(credits, km));
    [4, 16, 128].into_iter().flat_map(of_credits).collect()
}

/// Returns the row of a case.
pub fn rows(case: &Case, sample: Sample) -> Result<Vec<Row>, Failure> {
    let &(credits, km, frame) = case;
    let generation = Generation::named(RATE);
    let round_us = 2.0 * f64::from(km) * 1e3 * LIGHT_US_PER_M + generation.us(R_RDY);
    let credit_us = |data: u64| generation.us(wire(data)) + round_us;
    let line_us = generation.us(FRAMES * slot(frame) + slot(RSP));
    let held_us = (FRAMES as f64 * credit_us(frame) + credit_us(RSP)) / f64::from(credits);
    let theory = (FRAMES * frame) as f64 / line_us.max(held_us);
    let cycles = sample.of(40.0, 400.0);
    let cycle_us = credit_us(frame).max(line_us);
    let text = format!(
        r#"
        [run]
        duration = "{}ps"
        warmup = "{}ps"
        [host.h]
        receive_size = "{frame}B"
        queue_depth = 256
        [storage.s]
        rate = "10M/s"
        [switch.sw]
        [[link]]
        from = "s"
        to = "sw"
        rate = "{RATE}"
        length = "1m"
        credits = 1000
        [[link]]
        from = "h"
        to = "sw"
        name = "cable"
        rate = "{RATE}"
        length = "{km}km"
        credits = {credits}
        [workload.w]
        hosts = "h"
        targets = "s"
        size = "{}B"
        depth = 256
        "#,
        ((cycles + 20.0) * cycle_us * 1e6) as u64,
        (20.0 * cycle_us * 1e6) as u64,
        FRAMES * frame,
    );
    let results = simulate("credits", &text)?;
    let ours =
        results.links.iter().find(|link| link.name == "cable").map(|link| link.backward.throughput_bytes_per_s / 1e6);
    let what = format!("{credits} credits, {km} km, frames of {frame} bytes");
    let id = format!("credits-{credits}-{km}km-{frame}");
    Ok(vec![BASIS.row(id, what, "MB/s", theory, ours, (0.005 + 1.0 / cycles) * theory)])
}
