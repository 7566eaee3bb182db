//! What was measured, beside the document and our own bars.

use super::super::super::bench::io::{Cell, Op, Report};
use super::super::super::bench::statistics::geometric_mean;
use super::{LARGE_BYTES, Measured};
use serde::Serialize;

/// Requests whose latency is that of the switch.
const SMALL_BYTES: u32 = 4 << 10;

/// A number of the document, and ours.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub(super) struct Number {
    /// What it is.
    pub(super) what: &'static str,
    /// Of reads or writes.
    pub(super) op: Op,
    /// Ours; not where there were no such requests.
    pub(super) ours: Option<f64>,
    /// What the document, or our own bar, says.
    pub(super) wanted: &'static str,
}

/// All of them.
pub(super) fn all(measured: &Measured) -> Vec<Number> {
    let paths = [Op::Read, Op::Write].into_iter().flat_map(|op| numbers(&measured.paths, op));
    let rest = [crowd_number(&measured.crowd), session_number(&measured.sessions)];
    paths.chain(rest).chain(link_numbers(&measured.links)).chain(digest_numbers(&measured.digests)).collect()
}

/// Many sessions against one.
fn session_number(sessions: &[Report]) -> Number {
    let speed = |report: &Report| report.cells.first().map(|cell| row(cell, 0).0);
    let (one, many) = (sessions.first().and_then(speed), sessions.last().and_then(speed));
    Number {
        what: "forwarding, 256 sessions to one, throughput of 64 KiB",
        op: Op::Read,
        ours: one.zip(many).map(|(one, many)| many / one),
        wanted: "at least 1.00",
    }
}

/// What digests cost our own initiator and target.
fn digest_numbers(digests: &Report) -> Vec<Number> {
    let of = |op| {
        let ratios = digests.cells.iter().filter(|cell| cell.op == op).map(|cell| row(cell, 1).0 / row(cell, 0).0);
        let ratios: Vec<f64> = ratios.collect();
        Number {
            what: "end to end with digests to without, throughput",
            op,
            ours: Some(geometric_mean(&ratios)),
            wanted: "at least 0.85",
        }
    };
    [Op::Read, Op::Write].into_iter().map(of).collect()
}

/// How a path does, in a cell.
pub(super) fn row(cell: &Cell, path: usize) -> (f64, f64) {
    // Without the chain nothing is compared with it: no ratio to zero counts.
    cell.paths.get(path).map_or((0.0, 0.0), |row| (row.mb_per_s, row.process_cpu_ms_per_gb.unwrap_or(0.0)))
}

/// Share of a core, in percent: milliseconds for each GB, times GB for each second.
pub(super) fn share(cell: &Cell, path: usize) -> f64 {
    let (mb_per_s, ms_per_gb) = row(cell, path);
    mb_per_s * ms_per_gb / 1e4
}

/// Many sessions at once.
fn crowd_number(crowd: &Report) -> Number {
    let ratios: Vec<f64> = crowd.cells.iter().map(|cell| row(cell, 3).0 / row(cell, 0).0).collect();
    Number {
        what: "forwarding to end to end, throughput, eight sessions",
        op: Op::Read,
        ours: Some(geometric_mean(&ratios)),
        wanted: "at least 0.88",
    }
}

/// What a switch costs where links are what is slow.
fn link_numbers(links: &Report) -> Vec<Number> {
    let of = |op, what, value: &dyn Fn(&Cell) -> f64, wanted| {
        let worst = links.cells.iter().filter(|cell| cell.op == op).map(value).reduce(f64::max);
        Number { what, op, ours: worst, wanted }
    };
    let loss = |cell: &Cell| row(cell, 0).0 - row(cell, 2).0;
    let document = |op| if op == Op::Read { "at most 1 (document: 5)" } else { "at most 1 (document: 3)" };
    let ops = [Op::Read, Op::Write].into_iter();
    ops.flat_map(|op| {
        [
            of(op, "links of 1 Gb/s: end to end less forwarding, MB/s, at worst", &loss, document(op)),
            of(op, "links of 1 Gb/s: processor, % of a core, at worst", &|cell| share(cell, 2), "at most 6"),
            of(op, "links of 1 Gb/s: processor of the ceiling, % of a core, at worst", &|cell| share(cell, 1), "none"),
        ]
    })
    .collect()
}

fn numbers(measured: &Report, op: Op) -> Vec<Number> {
    let cells = |least: u32| measured.cells.iter().filter(move |cell| cell.op == op && cell.size_bytes >= least);
    let mean = |least: u32, value: &dyn Fn(&Cell) -> f64| {
        let all: Vec<f64> = cells(least).map(value).filter(|value| value.is_finite() && *value > 0.0).collect();
        (!all.is_empty()).then(|| geometric_mean(&all))
    };
    let at_64k = |value: &dyn Fn(&Cell) -> f64| {
        let all = cells(LARGE_BYTES).filter(|cell| cell.size_bytes == LARGE_BYTES).map(value);
        let all: Vec<f64> = all.filter(|value| value.is_finite() && *value > 0.0).collect();
        (!all.is_empty()).then(|| geometric_mean(&all))
    };
    let speed = |a: usize, b: usize| move |cell: &Cell| row(cell, a).0 / row(cell, b).0;
    let cost = |a: usize, b: usize| move |cell: &Cell| row(cell, a).1 / row(cell, b).1;
    let points: Vec<f64> = cells(LARGE_BYTES).map(|cell| share(cell, 3) - share(cell, 2)).collect();
    let points = (!points.is_empty()).then(|| points.iter().sum::<f64>() / points.len() as f64);
    let worst = cells(LARGE_BYTES).map(|cell| speed(3, 2)(cell)).reduce(f64::min);
    let small = cells(0).find(|cell| cell.size_bytes == SMALL_BYTES && cell.depth == 1);
    let later = small.and_then(|cell| Some(cell.paths.get(3)?.latency_us[0] - cell.paths.first()?.latency_us[0]));
    let gain = |ratio: Option<f64>| ratio.map(|ratio| (ratio - 1.0) * 100.0);
    let document = if op == Op::Read { "+30 (document)" } else { "+25 (document)" };
    let end_to_end = if op == Op::Read { "at least 0.72" } else { "at least 0.66" };
    let conventional = if op == Op::Read { "at least 0.50" } else { "at least 0.45" };
    let number = |what, ours, wanted| Number { what, op, ours, wanted };
    vec![
        number(
            "forwarding over conventional, throughput from 64 KiB, %",
            gain(mean(LARGE_BYTES, &speed(3, 2))),
            document,
        ),
        number("forwarding over conventional, throughput from 64 KiB, % at worst", gain(worst), "at least 0"),
        number("forwarding less conventional, processor, points of a core", points, "-10 to -15 (document)"),
        number("forwarding to conventional, processor for each byte", mean(LARGE_BYTES, &cost(3, 2)), "at most 0.75"),
        number("forwarding to ceiling, throughput from 64 KiB", mean(LARGE_BYTES, &speed(3, 1)), "at least 0.95"),
        number("forwarding to ceiling, processor for each byte", mean(LARGE_BYTES, &cost(3, 1)), "at most 1.15"),
        number("forwarding to end to end, throughput, all sizes", mean(0, &speed(3, 0)), end_to_end),
        number("forwarding less end to end, p50 of 4 KiB, depth 1, us", later, "at most 20"),
        number("conventional to end to end, throughput, all sizes", mean(0, &speed(2, 0)), conventional),
        number("conventional to stock chain, throughput, all sizes", mean(0, &speed(2, 4)), "at least 1.00"),
        number("forwarding to stock chain, throughput, all sizes", mean(0, &speed(3, 4)), "at least 1.80"),
        number("forwarding to stock chain, processor for each byte, 64 KiB", at_64k(&cost(3, 4)), "at most 0.33"),
    ]
}
