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

/// Cells of one kind of requests, in which paths are compared.
struct Cells<'r> {
    op: Op,
    kind: Source,
    cells: Vec<&'r Cell>,
}

impl<'r> Cells<'r> {
    fn new(kind: Source, report: &'r Report, op: Op, holds: impl Fn(&Cell) -> bool) -> Cells<'r> {
        let cells = report.cells.iter().filter(|cell| cell.op == op && holds(cell)).collect();
        Cells { op, kind, cells }
    }

    /// Cells that hold a bound of our own.
    fn bound(report: &'r Report, op: Op, holds: impl Fn(&Cell) -> bool) -> Cells<'r> {
        Cells::new(Source::Bound, report, op, holds)
    }

    fn number(&self, what: &'static str, ours: Option<Estimate>, wanted: Limit, unit: &'static str) -> Number {
        let verdict = ours.map(|ours| ours.decide(wanted));
        Number { what, op: self.op, kind: self.kind, ours, wanted, unit, verdict }
    }

    /// Ratio of a quantity of two paths.
    fn times(&self, what: &'static str, [a, b]: [usize; 2], quantity: Quantity, wanted: Limit) -> Number {
        let ours = over_cells(&self.cells, |cell| cell.ratios(a, b, quantity));
        self.number(what, ours, wanted, "times")
    }

    /// Lowest ratio of the throughput of two paths.
    fn least_speed(&self, what: &'static str, paths: [usize; 2], least: f64) -> Number {
        self.times(what, paths, Quantity::Throughput, Limit::AtLeast(least))
    }

    /// Highest ratio of the processor time per byte of two paths.
    fn most_cost(&self, what: &'static str, paths: [usize; 2], most: f64) -> Number {
        self.times(what, paths, Quantity::ProcessorTime, Limit::AtMost(most))
    }

    /// Lowest gain in throughput of a path over another, in percent.
    fn least_gain(&self, what: &'static str, [a, b]: [usize; 2], least: f64) -> Number {
        let ratio = over_cells(&self.cells, |cell| cell.ratios(a, b, Quantity::Throughput));
        self.number(what, gain(ratio), Limit::AtLeast(least), "%")
    }

    fn estimates(&self, samples: impl Fn(&Cell) -> Vec<f64>) -> impl Iterator<Item = Estimate> {
        self.cells.iter().filter_map(move |cell| Estimate::of(samples(cell)))
    }

    /// Estimates the cell whose median is largest.
    fn largest(&self, samples: impl Fn(&Cell) -> Vec<f64>) -> Option<Estimate> {
        self.estimates(samples).max_by(|a, b| a.median.total_cmp(&b.median))
    }

    /// Estimates the cell whose median is smallest.
    fn smallest(&self, samples: impl Fn(&Cell) -> Vec<f64>) -> Option<Estimate> {
        self.estimates(samples).min_by(|a, b| a.median.total_cmp(&b.median))
    }

    /// Estimates the mean over the cells.
    fn mean(&self, samples: impl Fn(&Cell) -> Vec<f64>) -> Option<Estimate> {
        mean_over_cells(&self.cells, samples)
    }
}

fn gain(ratio: Option<Estimate>) -> Option<Estimate> {
    ratio.map(|ratio| ratio.map(|ratio| (ratio - 1.0) * 100.0))
}

/// The document's experiment: links of 1 Gb/s, 512 KiB, one request in flight.
///
/// The document's 10 to 15 % less processor use are a share of a processor of 2004. A link takes
/// less than a tenth of a present one, so the processor time per byte is compared instead.
fn documented(links: &Report, op: Op) -> Vec<Number> {
    let typical = Cells::new(Source::Prediction, links, op, |cell| cell.size_bytes == TYPICAL_BYTES && cell.depth == 1);
    let (least, loss) = if op == Op::Read { (30.0, 5.0) } else { (25.0, 3.0) };
    let lost = typical.mean(|cell| cell.differences(DIRECT, FORWARDING, Quantity::Throughput));
    let to_conventional = [FORWARDING, CONVENTIONAL];
    vec![
        typical.least_gain("links, 512 KiB: forwarding over conventional, throughput", to_conventional, least),
        typical.number("links, 512 KiB: end to end less forwarding", lost, Limit::AtMost(loss), "MB/s"),
        typical.most_cost("links, 512 KiB: forwarding to conventional, processor per byte", to_conventional, 0.90),
    ]
}

/// Our own bounds over links.
fn over_links(links: &Report, op: Op) -> Vec<Number> {
    let all = Cells::bound(links, op, |_| true);
    let deep = Cells::bound(links, op, |cell| cell.depth > 1);
    let lost = deep.largest(|cell| cell.differences(DIRECT, FORWARDING, Quantity::Throughput));
    let share = deep.largest(|cell| cell.slices(FORWARDING, Quantity::ProcessorShare));
    let to_conventional = [FORWARDING, CONVENTIONAL];
    vec![
        all.least_gain("links: forwarding over conventional, throughput", to_conventional, 0.0),
        all.most_cost("links: forwarding to conventional, processor per byte", to_conventional, 0.75),
        deep.number("links, depth 8: end to end less forwarding, worst size", lost, Limit::AtMost(1.0), "MB/s"),
        deep.number("links, depth 8: processor of forwarding, worst size", share, Limit::AtMost(6.0), "% of a core"),
        all.most_cost("links: forwarding to ceiling, processor per byte", [FORWARDING, CEILING], 1.3),
    ]
}

fn on_loopback(paths: &Report, op: Op) -> Vec<Number> {
    let large = Cells::bound(paths, op, |cell| cell.size_bytes >= LARGE_BYTES);
    let all = Cells::bound(paths, op, |_| true);
    let at_64k = Cells::bound(paths, op, |cell| cell.size_bytes == LARGE_BYTES);
    let small = Cells::bound(paths, op, |cell| cell.size_bytes == SMALL_BYTES && cell.depth == 1);
    let worst = large.smallest(|cell| cell.ratios(FORWARDING, CONVENTIONAL, Quantity::Throughput));
    let share = large.mean(|cell| cell.differences(CONVENTIONAL, FORWARDING, Quantity::ProcessorShare));
    let later = small.mean(|cell| cell.differences(FORWARDING, DIRECT, Quantity::Latency));
    let of_op = |read, write| if op == Op::Read { read } else { write };
    let (to_conventional, to_ceiling) = ([FORWARDING, CONVENTIONAL], [FORWARDING, CEILING]);
    let gained = "loopback, from 64 KiB: forwarding over conventional, throughput";
    vec![
        large.least_gain(gained, to_conventional, of_op(30.0, 25.0)),
        large.number("the same, worst size and depth", gain(worst), Limit::AtLeast(0.0), "%"),
        large.number("conventional less forwarding, processor", share, Limit::AtLeast(10.0), "points"),
        large.most_cost("forwarding to conventional, processor per byte", to_conventional, 0.75),
        large.least_speed("forwarding to ceiling, throughput from 64 KiB", to_ceiling, 0.95),
        large.most_cost("forwarding to ceiling, processor per byte", to_ceiling, 1.15),
        all.least_speed("forwarding to end to end, throughput, all sizes", [FORWARDING, DIRECT], of_op(0.72, 0.66)),
        small.number("forwarding less end to end, p50 of 4 KiB, depth 1", later, Limit::AtMost(20.0), "us"),
        all.least_speed("conventional to end to end, throughput, all sizes", [CONVENTIONAL, DIRECT], of_op(0.50, 0.45)),
        all.least_speed("conventional to stock chain, throughput, all sizes", [CONVENTIONAL, STOCK], 1.0),
        all.least_speed("forwarding to stock chain, throughput, all sizes", [FORWARDING, STOCK], 1.8),
        at_64k.most_cost("forwarding to stock chain, processor per byte, 64 KiB", [FORWARDING, STOCK], 0.33),
    ]
}

/// Volumes over two back ends. Paths: conventional, conventional striped, forwarding, forwarding
/// striped.
fn striped(report: &Report, op: Op) -> Vec<Number> {
    let all = Cells::bound(report, op, |_| true);
    vec![
        all.least_gain("two back ends: forwarding over conventional, throughput", [3, 1], 0.0),
        all.least_speed("forwarding, two back ends to one, throughput", [3, 2], 0.5),
    ]
}

fn crowd(report: &Report) -> Number {
    let what = "forwarding to end to end, throughput, eight sessions";
    Cells::bound(report, Op::Read, |_| true).least_speed(what, [FORWARDING, DIRECT], 0.88)
}

/// Many sessions beside one; the paths are numbers of sessions in ascending order.
fn sessions(report: &Report) -> Number {
    let last = report.paths.len().saturating_sub(1);
    let what = "forwarding, 256 sessions to one, throughput of 64 KiB";
    Cells::bound(report, Op::Read, |_| true).least_speed(what, [last, 0], 1.0)
}

fn digests(report: &Report, op: Op) -> Vec<Number> {
    let what = "end to end with digests to without, throughput";
    vec![Cells::bound(report, op, |_| true).least_speed(what, [1, 0], 0.85)]
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
