//! Response times of single requests, in closed form.

use super::bed::simulate;
use super::lines::{CMND, FRAME, Generation, RSP, XFER_RDY, slot, wire};
use super::row::{Basis, Row};
use sanloom_console::exit::Failure;

/// Propagation delay of a fibre, in µs per metre.
pub const LIGHT_US_PER_M: f64 = 0.005;
/// Bytes that a cut-through switch needs before it forwards: SOF and header.
const HEAD: u64 = 28;
/// Latency of a switch, in µs.
const SWITCH_US: f64 = 0.7;
/// Service time of the storage, in µs.
const SERVICE_US: f64 = 20.0;

const BASIS: Basis = Basis {
    section: "Latency of a single request",
    source: "Transmission, propagation (5 ns/m), switch latency and service, summed over FCP_CMND, FCP_XFER_RDY, data and \
             FCP_RSP. Store-and-forward adds a frame time per hop, cut-through the time of 28 bytes (Kermani and \
             Kleinrock 1979)",
    tolerance_reason: "each transmission is rounded to picoseconds",
};

/// Returns the time of a command of a read, in µs: over a fast line of 1 m, a cut-through switch,
/// and a slow line of 1 m.
pub fn command_us(fast: &Generation, slow: &Generation) -> f64 {
    fast.us(HEAD) + SWITCH_US + slow.us(wire(CMND)) + 2.0 * LIGHT_US_PER_M
}

/// Returns the time from the end of the gap behind a response on a slow line of 1 m until the
/// response has passed a cut-through switch and a fast line of 1 m, in µs.
pub fn behind_line_us(fast: &Generation, slow: &Generation) -> f64 {
    let through = slow.us(HEAD) + SWITCH_US + fast.us(wire(RSP)) + 2.0 * LIGHT_US_PER_M;
    through - slow.us(slot(RSP))
}

/// A path between a host and a storage system.
#[derive(Clone, Copy)]
pub struct Path {
    rate: &'static str,
    /// Lengths of the links, in metres.
    lengths: &'static [u32],
    cut_through: bool,
}

impl Path {
    fn us(&self, bytes: u64) -> f64 {
        Generation::named(self.rate).us(bytes)
    }

    fn light_us(&self) -> f64 {
        self.lengths.iter().map(|metres| f64::from(*metres) * LIGHT_US_PER_M).sum()
    }

    fn switches(&self) -> f64 {
        self.lengths.len() as f64 - 1.0
    }

    /// Returns the time that each switch adds to a frame of `bytes`.
    fn switch_us(&self, bytes: u64) -> f64 {
        self.us(if self.cut_through { HEAD } else { bytes }) + SWITCH_US
    }

    /// Returns the time of a single frame, from its first bit at the sender to its last bit at the
    /// receiver.
    fn single_us(&self, data: u64) -> f64 {
        self.us(wire(data)) + self.light_us() + self.switches() * self.switch_us(wire(data))
    }

    /// Returns the time of `size` bytes of data in full frames.
    fn data_us(&self, size: u64) -> f64 {
        let before = (size / FRAME - 1) as f64 * self.us(slot(FRAME));
        before + self.single_us(FRAME)
    }

    /// Returns the time of the data of a read and of the response behind them. The response waits
    /// behind the last data frame at each store-and-forward switch.
    fn answer_us(&self, size: u64) -> f64 {
        let before = (size / FRAME) as f64 * self.us(slot(FRAME));
        before + self.us(wire(RSP)) + self.light_us() + self.switches() * self.switch_us(wire(FRAME))
    }

    fn read_us(&self, size: u64) -> f64 {
        self.single_us(CMND) + SERVICE_US + self.answer_us(size)
    }

    fn write_us(&self, size: u64) -> f64 {
        self.single_us(CMND) + self.single_us(XFER_RDY) + self.data_us(size) + SERVICE_US + self.single_us(RSP)
    }

    fn lab(&self, size: u64, write: bool) -> String {
        let mut text = format!(
            r#"
            [run]
            duration = "10ms"
            warmup = "1ms"
            [host.h]
            [storage.s]
            rate = "{}/s"
            [workload.w]
            hosts = "h"
            targets = "s"
            size = "{size}B"
            depth = 1
            read_share = {}
            "#,
            1e6 / SERVICE_US,
            if write { "0.0" } else { "1.0" },
        );
        let forwarding = if self.cut_through { "cut-through" } else { "store-and-forward" };
        let node = |at: usize| match at {
            0 => "h".to_owned(),
            at if at == self.lengths.len() => "s".to_owned(),
            at => format!("sw{at}"),
        };
        for (at, metres) in self.lengths.iter().enumerate() {
            let section = if at == 0 || at + 1 == self.lengths.len() { "link" } else { "isl" };
            text.push_str(&format!(
                "[[{section}]]\nfrom = \"{}\"\nto = \"{}\"\nrate = \"{}\"\nlength = \"{metres}m\"\ncredits = 1000\n",
                node(at),
                node(at + 1),
                self.rate
            ));
            if at > 0 {
                text.push_str(&format!(
                    "[switch.sw{at}]\nforwarding = \"{forwarding}\"\nlatency = \"{}ns\"\n",
                    SWITCH_US * 1e3
                ));
            }
        }
        text
    }
}

/// The cases: name, path, size in bytes, and whether it is a write.
pub const CASES: [(&str, Path, u64, bool); 8] = [
    ("read of 2 KiB, 1GFC, 1 switch, store-and-forward", path("1GFC", &[10, 10], false), 2_048, false),
    ("read of 64 KiB, 32GFC, 1 switch over 10 km, cut-through", path("32GFC", &[5, 10_000], true), 65_536, false),
    ("read of 64 KiB, 8GFC, 1 switch, store-and-forward", path("8GFC", &[50, 50], false), 65_536, false),
    ("read of 64 KiB, 8GFC, 1 switch, cut-through", path("8GFC", &[50, 50], true), 65_536, false),
    ("read of 4 KiB, 16GFC, 3 switches, store-and-forward", path("16GFC", &[5, 1_000, 1_000, 5], false), 4_096, false),
    ("read of 4 KiB, 16GFC, 3 switches, cut-through", path("16GFC", &[5, 1_000, 1_000, 5], true), 4_096, false),
    ("write of 64 KiB, 16GFC, 1 switch, store-and-forward", path("16GFC", &[10, 10], false), 65_536, true),
    ("write of 8 KiB, 64GFC, 2 switches over 50 km, cut-through", path("64GFC", &[5, 50_000, 5], true), 8_192, true),
];

const fn path(rate: &'static str, lengths: &'static [u32], cut_through: bool) -> Path {
    Path { rate, lengths, cut_through }
}

/// Returns the row of a case.
pub fn rows(number: usize, case: &(&'static str, Path, u64, bool)) -> Result<Vec<Row>, Failure> {
    let (what, path, size, write) = case;
    let theory = if *write { path.write_us(*size) } else { path.read_us(*size) };
    let results = simulate("latency", &path.lab(*size, *write))?;
    let latency = &results.totals.io.latency;
    let ours = (latency.count > 0).then_some(latency.mean_us);
    Ok(vec![BASIS.row(format!("latency-{}", number + 1), *what, "µs", theory, ours, 0.001)])
}
