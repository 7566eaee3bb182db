//! Results of the measurement beside the document and our own bounds.

use super::super::super::bench::io::measure::{Quantity, mean_over_cells, over_cells};
use super::super::super::bench::io::{Cell, Op, Report};
use super::super::super::bench::statistics::{Decision, Estimate, Limit};
use super::{LARGE_BYTES, Measured, TYPICAL_BYTES};
use serde::Serialize;

/// Size of requests that show the latency of the switch.
const SMALL_BYTES: u32 = 4 << 10;

// Indices of the paths in most reports.
pub(super) const DIRECT: usize = 0;
pub(super) const CEILING: usize = 1;
pub(super) const CONVENTIONAL: usize = 2;
pub(super) const FORWARDING: usize = 3;
pub(super) const STOCK: usize = 4;

/// Origin of a limit.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize)]
#[serde(rename_all = "lowercase")]
pub(super) enum Source {
    /// The document's result, which our switch is predicted to reach.
    Prediction,
    /// A bound that this project sets for itself.
    Bound,
}

/// A quantity with its limit and the verdict.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub(super) struct Number {
    /// Description of the quantity.
    pub(super) what: &'static str,
    /// Kind of the requests.
    pub(super) op: Op,
    /// Origin of the limit.
    pub(super) kind: Source,
    /// Median of the paired slices with its interval; absent if the path or the size was not
    /// measured.
    pub(super) ours: Option<Estimate>,
    /// The limit.
    pub(super) wanted: Limit,
    /// Unit of both.
    pub(super) unit: &'static str,
    /// Verdict; absent if nothing was measured.
    pub(super) verdict: Option<Decision>,
}

fn number(
    kind: Source,
    op: Op,
    what: &'static str,
    ours: Option<Estimate>,
    wanted: Limit,
    unit: &'static str,
) -> Number {
    Number { what, op, kind, ours, wanted, unit, verdict: ours.map(|ours| ours.decide(wanted)) }
}

/// Returns all numbers; those of the document's own experiment are first.
pub(super) fn all(measured: &Measured) -> Vec<Number> {
    let each = |numbers: fn(&Report, Op) -> Vec<Number>, report| {
        [Op::Read, Op::Write].into_iter().flat_map(move |op| numbers(report, op))
    };
    each(documented, &measured.links)
        .chain(each(over_links, &measured.links))
        .chain(each(on_loopback, &measured.paths))
        .chain(each(striped, &measured.striped))
        .chain([crowd(&measured.crowd), sessions(&measured.sessions)])
        .chain(each(digests, &measured.digests))
        .collect()
}

fn cells(report: &Report, op: Op, holds: impl Fn(&Cell) -> bool) -> Vec<&Cell> {
    report.cells.iter().filter(|cell| cell.op == op && holds(cell)).collect()
}

fn ratio(cells: &[&Cell], a: usize, b: usize, quantity: Quantity) -> Option<Estimate> {
    over_cells(cells, |cell| cell.ratios(a, b, quantity))
}

fn gain(ratio: Option<Estimate>) -> Option<Estimate> {
    ratio.map(|ratio| ratio.map(|ratio| (ratio - 1.0) * 100.0))
}

/// Estimates the cell whose median is largest.
fn largest(cells: &[&Cell], samples: impl Fn(&Cell) -> Vec<f64>) -> Option<Estimate> {
    cells.iter().filter_map(|cell| Estimate::of(samples(cell))).max_by(|a, b| a.median.total_cmp(&b.median))
}

/// The document's experiment: links of 1 Gb/s, 512 KiB, one request in flight.
///
/// The document's 10 to 15 % less processor use are a share of a processor of 2004. A link takes
/// less than a tenth of a present one, so the processor time per byte is compared instead.
fn documented(links: &Report, op: Op) -> Vec<Number> {
    use Source::Prediction;
    let typical = cells(links, op, |cell| cell.size_bytes == TYPICAL_BYTES && cell.depth == 1);
    let (least, loss) = if op == Op::Read { (30.0, 5.0) } else { (25.0, 3.0) };
    let speed = Quantity::Throughput;
    let lost = mean_over_cells(&typical, |cell| cell.differences(DIRECT, FORWARDING, speed));
    vec![
        number(
            Prediction,
            op,
            "links, 512 KiB: forwarding over conventional, throughput",
            gain(ratio(&typical, FORWARDING, CONVENTIONAL, speed)),
            Limit::AtLeast(least),
            "%",
        ),
        number(Prediction, op, "links, 512 KiB: end to end less forwarding", lost, Limit::AtMost(loss), "MB/s"),
        number(
            Prediction,
            op,
            "links, 512 KiB: forwarding to conventional, processor per byte",
            ratio(&typical, FORWARDING, CONVENTIONAL, Quantity::ProcessorTime),
            Limit::AtMost(0.90),
            "times",
        ),
    ]
}

/// Our own bounds over links.
fn over_links(links: &Report, op: Op) -> Vec<Number> {
    let all = cells(links, op, |_| true);
    let deep = cells(links, op, |cell| cell.depth > 1);
    let lost = |cell: &Cell| cell.differences(DIRECT, FORWARDING, Quantity::Throughput);
    let share = |cell: &Cell| cell.slices(FORWARDING, Quantity::ProcessorShare);
    vec![
        number(
            Source::Bound,
            op,
            "links: forwarding over conventional, throughput",
            gain(ratio(&all, FORWARDING, CONVENTIONAL, Quantity::Throughput)),
            Limit::AtLeast(0.0),
            "%",
        ),
        number(
            Source::Bound,
            op,
            "links: forwarding to conventional, processor per byte",
            ratio(&all, FORWARDING, CONVENTIONAL, Quantity::ProcessorTime),
            Limit::AtMost(0.75),
            "times",
        ),
        number(
            Source::Bound,
            op,
            "links, depth 8: end to end less forwarding, worst size",
            largest(&deep, lost),
            Limit::AtMost(1.0),
            "MB/s",
        ),
        number(
            Source::Bound,
            op,
            "links, depth 8: processor of forwarding, worst size",
            largest(&deep, share),
            Limit::AtMost(6.0),
            "% of a core",
        ),
        number(
            Source::Bound,
            op,
            "links: forwarding to ceiling, processor per byte",
            ratio(&all, FORWARDING, CEILING, Quantity::ProcessorTime),
            Limit::AtMost(1.3),
            "times",
        ),
    ]
}

fn on_loopback(paths: &Report, op: Op) -> Vec<Number> {
    let read = op == Op::Read;
    let large = cells(paths, op, |cell| cell.size_bytes >= LARGE_BYTES);
    let all = cells(paths, op, |_| true);
    let at_64k = cells(paths, op, |cell| cell.size_bytes == LARGE_BYTES);
    let small = cells(paths, op, |cell| cell.size_bytes == SMALL_BYTES && cell.depth == 1);
    let (speed, cost) = (Quantity::Throughput, Quantity::ProcessorTime);
    let worst = large.iter().filter_map(|cell| Estimate::of(cell.ratios(FORWARDING, CONVENTIONAL, speed)));
    let worst = worst.min_by(|a, b| a.median.total_cmp(&b.median));
    let share = mean_over_cells(&large, |cell| cell.differences(CONVENTIONAL, FORWARDING, Quantity::ProcessorShare));
    let later = mean_over_cells(&small, |cell| cell.differences(FORWARDING, DIRECT, Quantity::Latency));
    let bound = |what, ours, wanted, unit| number(Source::Bound, op, what, ours, wanted, unit);
    let at_least = |read_limit, write_limit| Limit::AtLeast(if read { read_limit } else { write_limit });
    let of = |cells: &[&Cell], a, b, quantity| ratio(cells, a, b, quantity);
    vec![
        bound(
            "loopback, from 64 KiB: forwarding over conventional, throughput",
            gain(of(&large, FORWARDING, CONVENTIONAL, speed)),
            at_least(30.0, 25.0),
            "%",
        ),
        bound("the same, worst size and depth", gain(worst), Limit::AtLeast(0.0), "%"),
        bound("conventional less forwarding, processor", share, Limit::AtLeast(10.0), "points"),
        bound(
            "forwarding to conventional, processor per byte",
            of(&large, FORWARDING, CONVENTIONAL, cost),
            Limit::AtMost(0.75),
            "times",
        ),
        bound(
            "forwarding to ceiling, throughput from 64 KiB",
            of(&large, FORWARDING, CEILING, speed),
            Limit::AtLeast(0.95),
            "times",
        ),
        bound(
            "forwarding to ceiling, processor per byte",
            of(&large, FORWARDING, CEILING, cost),
            Limit::AtMost(1.15),
            "times",
        ),
        bound(
            "forwarding to end to end, throughput, all sizes",
            of(&all, FORWARDING, DIRECT, speed),
            at_least(0.72, 0.66),
            "times",
        ),
        bound("forwarding less end to end, p50 of 4 KiB, depth 1", later, Limit::AtMost(20.0), "us"),
        bound(
            "conventional to end to end, throughput, all sizes",
            of(&all, CONVENTIONAL, DIRECT, speed),
            at_least(0.50, 0.45),
            "times",
        ),
        bound(
            "conventional to stock chain, throughput, all sizes",
            of(&all, CONVENTIONAL, STOCK, speed),
            Limit::AtLeast(1.0),
            "times",
        ),
        bound(
            "forwarding to stock chain, throughput, all sizes",
            of(&all, FORWARDING, STOCK, speed),
            Limit::AtLeast(1.8),
            "times",
        ),
        bound(
            "forwarding to stock chain, processor per byte, 64 KiB",
            of(&at_64k, FORWARDING, STOCK, cost),
            Limit::AtMost(0.33),
            "times",
        ),
    ]
}

/// Volumes over two back ends. Paths: conventional, conventional striped, forwarding, forwarding
/// striped.
fn striped(report: &Report, op: Op) -> Vec<Number> {
    let all = cells(report, op, |_| true);
    let bound = |what, ours, least, unit| number(Source::Bound, op, what, ours, Limit::AtLeast(least), unit);
    let speed = |a, b| ratio(&all, a, b, Quantity::Throughput);
    vec![
        bound("two back ends: forwarding over conventional, throughput", gain(speed(3, 1)), 0.0, "%"),
        bound("forwarding, two back ends to one, throughput", speed(3, 2), 0.5, "times"),
    ]
}

fn crowd(report: &Report) -> Number {
    let ours = ratio(&cells(report, Op::Read, |_| true), FORWARDING, DIRECT, Quantity::Throughput);
    let what = "forwarding to end to end, throughput, eight sessions";
    number(Source::Bound, Op::Read, what, ours, Limit::AtLeast(0.88), "times")
}

/// Many sessions beside one; the paths are numbers of sessions in ascending order.
fn sessions(report: &Report) -> Number {
    let last = report.paths.len().saturating_sub(1);
    let ours = ratio(&cells(report, Op::Read, |_| true), last, 0, Quantity::Throughput);
    let what = "forwarding, 256 sessions to one, throughput of 64 KiB";
    number(Source::Bound, Op::Read, what, ours, Limit::AtLeast(1.0), "times")
}

fn digests(report: &Report, op: Op) -> Vec<Number> {
    let ours = ratio(&cells(report, op, |_| true), 1, 0, Quantity::Throughput);
    let what = "end to end with digests to without, throughput";
    vec![number(Source::Bound, op, what, ours, Limit::AtLeast(0.85), "times")]
}

/// Returns a path's throughput in MB/s; 0 if the path was not measured.
pub(super) fn mb_per_s(cell: &Cell, path: usize) -> f64 {
    cell.paths.get(path).map_or(0.0, |row| row.mb_per_s)
}

/// Returns a path's share of a core, in percent: milliseconds per GB times GB per second.
pub(super) fn share(cell: &Cell, path: usize) -> f64 {
    let cost = cell.paths.get(path).and_then(|row| row.process_cpu_ms_per_gb);
    mb_per_s(cell, path) * cost.unwrap_or(0.0) / 1e4
}

/// Returns the summary line.
pub(super) fn summary(numbers: &[Number]) -> String {
    let count = |kind, verdict: Option<Decision>| {
        numbers.iter().filter(|number| number.kind == kind && number.verdict == verdict).count()
    };
    let line = |kind, word: &str| {
        let [ok, missed, undecided, skipped] =
            [Some(Decision::Ok), Some(Decision::Missed), Some(Decision::Undecided), None]
                .map(|verdict| count(kind, verdict));
        let all = ok + missed + undecided + skipped;
        format!("{all} {word}: {ok} ok, {missed} missed, {undecided} undecided, {skipped} not measured")
    };
    format!("{}; {}", line(Source::Prediction, "predictions"), line(Source::Bound, "bounds of our own"))
}

#[cfg(test)]
mod tests {
    use super::super::super::super::bench::io::Row;
    use super::*;

    fn row(mb_per_s: f64, cpu: f64) -> Row {
        Row {
            name: String::new(),
            mb_per_s,
            rounds_mb_per_s: vec![mb_per_s; 6],
            ratio: 1.0,
            ratio_interval: [1.0; 2],
            iops: 0.0,
            latency_us: [0.0; 4],
            rounds_p50_us: vec![100.0; 6],
            own_cpu_ms_per_gb: 0.0,
            process_cpu_ms_per_gb: Some(cpu),
            rounds_process_cpu_ms_per_gb: Some(vec![cpu; 6]),
        }
    }

    fn report(size_bytes: u32, paths: [(f64, f64); 4]) -> Report {
        let paths = paths.map(|(speed, cpu)| row(speed, cpu)).to_vec();
        Report {
            sessions: 1,
            random: true,
            seconds: 0.05,
            rounds: 6,
            paths: Vec::new(),
            cells: vec![Cell { op: Op::Read, size_bytes, depth: 1, paths }],
            means: Vec::new(),
        }
    }

    #[test]
    fn the_documents_experiment_is_judged_at_512_kib() {
        let paths = [(110.0, 0.0), (108.0, 900.0), (80.0, 3000.0), (106.0, 1000.0)];
        let numbers = documented(&report(TYPICAL_BYTES, paths), Op::Read);
        let verdicts: Vec<_> = numbers.iter().map(|number| number.verdict).collect();
        assert_eq!(verdicts, [Some(Decision::Ok); 3], "{numbers:?}");
        assert!(numbers.iter().all(|number| number.kind == Source::Prediction));
        let numbers = documented(&report(LARGE_BYTES, paths), Op::Read);
        assert!(numbers.iter().all(|number| number.verdict.is_none()), "another size decides nothing");
    }

    #[test]
    fn a_path_that_was_not_measured_has_no_verdict() {
        let paths = [(110.0, 0.0), (108.0, 900.0), (80.0, 3000.0), (106.0, 1000.0)];
        let numbers = on_loopback(&report(LARGE_BYTES, paths), Op::Read);
        let chain: Vec<_> = numbers.iter().filter(|number| number.what.contains("stock chain")).collect();
        assert_eq!(chain.len(), 3);
        assert!(chain.iter().all(|number| number.verdict.is_none() && number.ours.is_none()));
        let summary = summary(&numbers);
        assert!(summary.contains("0 predictions: 0 ok") && summary.ends_with("4 not measured"), "{summary}");
    }
}
