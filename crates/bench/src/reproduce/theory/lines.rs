//! Line codings, frames, and the data rate of a saturated link of each generation.

use super::bed::{Sample, simulate};
use super::row::{Basis, Row};
use sanloom_console::exit::Failure;
use sanloom_fc::config::LineRate;

/// Bytes of a frame besides its data field: SOF 4, header 24, CRC 4, EOF 4 (FC-FS-3, clause 11).
const FRAME_OVERHEAD: u64 = 36;
/// Bytes between two frames of a port: six primitive signals or fill words (FC-FS-3).
const GAP: u64 = 24;
/// Bytes of an FCP_CMND, FCP_XFER_RDY and FCP_RSP without sense data (FCP-4, clause 9).
pub const CMND: u64 = 32;
pub const XFER_RDY: u64 = 12;
pub const RSP: u64 = 24;
/// Data field of the frames, in bytes.
pub const FRAME: u64 = 2048;

/// A generation of Fibre Channel: symbols per second, bits per symbol, and the bits of data in the
/// bits of the line.
pub struct Generation {
    pub name: &'static str,
    /// Symbols per second of all lanes.
    baud: f64,
    bits: f64,
    coding: &'static [(f64, f64)],
}

const fn generation(name: &'static str, baud: f64, bits: f64, coding: &'static [(f64, f64)]) -> Generation {
    Generation { name, baud, bits, coding }
}

/// The generations of FC-PI-2 to FC-PI-8 and 10GFC. Every coding is a product of data bits per line
/// bits: 8b/10b, 64b/66b, 256b/257b, and the Reed-Solomon codes (528,514) and (544,514).
pub const GENERATIONS: [Generation; 11] = [
    generation("1GFC", 1.0625e9, 1.0, &[(8.0, 10.0)]),
    generation("2GFC", 2.125e9, 1.0, &[(8.0, 10.0)]),
    generation("4GFC", 4.25e9, 1.0, &[(8.0, 10.0)]),
    generation("8GFC", 8.5e9, 1.0, &[(8.0, 10.0)]),
    generation("10GFC", 10.51875e9, 1.0, &[(64.0, 66.0)]),
    generation("16GFC", 14.025e9, 1.0, &[(64.0, 66.0)]),
    generation("32GFC", 28.05e9, 1.0, &[(256.0, 257.0), (514.0, 528.0)]),
    generation("64GFC", 28.9e9, 2.0, &[(256.0, 257.0), (514.0, 544.0)]),
    generation("128GFC", 56.1e9, 2.0, &[(256.0, 257.0), (514.0, 544.0)]),
    generation("128GFCp", 4.0 * 28.05e9, 1.0, &[(256.0, 257.0), (514.0, 528.0)]),
    generation("256GFC", 4.0 * 28.9e9, 2.0, &[(256.0, 257.0), (514.0, 544.0)]),
];

impl Generation {
    /// Finds a generation by its name.
    pub fn named(name: &str) -> &'static Generation {
        GENERATIONS.iter().find(|generation| generation.name == name).unwrap_or(&GENERATIONS[0])
    }

    /// Returns the bytes per second after the line coding.
    pub fn bytes_per_s(&self) -> f64 {
        self.coding.iter().fold(self.baud * self.bits, |rate, (data, line)| rate * data / line) / 8.0
    }

    /// Returns the time of `bytes` on the line, in µs.
    pub fn us(&self, bytes: u64) -> f64 {
        bytes as f64 / self.bytes_per_s() * 1e6
    }
}

/// Returns the bytes from SOF to EOF of a frame with a data field of `data` bytes.
pub fn wire(data: u64) -> u64 {
    FRAME_OVERHEAD + data.next_multiple_of(4)
}

/// Returns the bytes that a frame occupies on a saturated line.
pub fn slot(data: u64) -> u64 {
    wire(data) + GAP
}

/// Returns the bytes that the data and the response of a read occupy on a saturated line.
pub fn read_slots(size: u64) -> u64 {
    let full = size / FRAME;
    let rest = size % FRAME;
    full * slot(FRAME) + if rest > 0 { slot(rest) } else { 0 } + slot(RSP)
}

const INPUT: Basis = Basis {
    section: "Line rates",
    source: "Baud rate × bits per symbol × data bits per line bit / 8 (FC-PI-2, FC-PI-5, FC-PI-6, FC-PI-6P, FC-PI-7, FC-PI-7P, \
             FC-PI-8, 10GFC;              8b/10b, 64b/66b, 256b/257b with RS(528,514) or RS(544,514))",
    tolerance_reason: "an input is exact",
};

const SATURATED: Basis = Basis {
    section: "Line rates",
    source: "Read data per command / (its frames with 36 bytes of overhead and 24 bytes of gap each, and one FCP_RSP) × \
             data rate (FC-FS-3, FCP-4)",
    tolerance_reason: "two commands at the ends of the measured time",
};

/// Size of the reads, in bytes.
const SIZE: u64 = 64 * 1024;

/// Returns the rows of one generation.
pub fn rows(generation: &Generation, sample: Sample) -> Result<Vec<Row>, Failure> {
    let name = generation.name;
    let given = LineRate::ALL.iter().find(|rate| rate.name() == name).map(|rate| rate.bytes_per_s() as f64 / 1e6);
    let rate = generation.bytes_per_s() / 1e6;
    let input = INPUT.row(format!("line-{name}"), format!("{name}, data rate"), "MB/s", rate, given, 1e-6).input();
    let commands = sample.of(400.0, 4_000.0);
    let command_us = generation.us(read_slots(SIZE));
    let text = format!(
        r#"
        [run]
        duration = "{}ps"
        warmup = "{}ps"
        [host.h]
        frame_buffers = 1024
        [storage.s]
        rate = "10M/s"
        frame_buffers = 1024
        [switch.sw]
        buffers = 1024
        [[link]]
        from = "{{h,s}}"
        to = "sw"
        rate = "{name}"
        length = "1m"
        [workload.w]
        hosts = "h"
        targets = "s"
        size = "64KiB"
        depth = 32
        "#,
        ((commands + 100.0) * command_us * 1e6) as u64,
        (100.0 * command_us * 1e6) as u64,
    );
    let results = simulate("line", &text)?;
    let ours = results.totals.io.throughput_bytes_per_s / 1e6;
    let theory = rate * SIZE as f64 / read_slots(SIZE) as f64;
    let what = format!("{name}, saturated by reads of 64 KiB");
    let saturated =
        SATURATED.row(format!("saturated-{name}"), what, "MB/s", theory, Some(ours), 2.0 / commands * theory);
    Ok(vec![input, saturated])
}
