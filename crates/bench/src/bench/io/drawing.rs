//! Plots of `sanloom bench io`: one panel for each quantity, over the size of a request.

use super::{Cell, Report, Row};
use sanloom_console::report::html::plain_page;
use sanloom_console::report::plot::{Plot, PlotCurve, drawings};

/// A quantity of a row, with its unit.
type Quantity = (&'static str, &'static str, fn(&Row) -> f64);

const QUANTITIES: [Quantity; 5] = [
    ("Throughput", "MB/s", |row| row.mb_per_s),
    ("Requests", "1/s", |row| row.iops),
    ("Latency, median", "µs", |row| row.latency_us[0]),
    ("Latency, 99 %", "µs", |row| row.latency_us[2]),
    ("Processor time of our threads", "ms/GB", |row| row.own_cpu_ms_per_gb),
];

/// Returns a plot for each quantity and kind of request, with a curve for each path and depth.
pub(super) fn plots(report: &Report) -> Vec<Plot> {
    let mut ops: Vec<_> = report.cells.iter().map(|cell| cell.op).collect();
    ops.dedup();
    let of_op = |op| report.cells.iter().filter(move |cell| cell.op == op);
    let plot = |op, (title, unit, value): Quantity| Plot {
        title: format!("{title}, {}", super::text::word(op)),
        x: "request, KiB".to_owned(),
        y: unit.to_owned(),
        curves: curves(of_op(op), value),
        levels: Vec::new(),
        is_log: false,
    };
    ops.into_iter().flat_map(|op| QUANTITIES.map(|quantity| plot(op, quantity))).collect()
}

fn curves<'r>(cells: impl Iterator<Item = &'r Cell>, value: fn(&Row) -> f64) -> Vec<PlotCurve> {
    let mut curves: Vec<PlotCurve> = Vec::new();
    for cell in cells {
        for row in &cell.paths {
            let name = format!("{}, depth {}", row.name, cell.depth);
            let point = (f64::from(cell.size_bytes) / 1024.0, value(row));
            match curves.iter_mut().find(|curve| curve.name == name) {
                Some(curve) => curve.points.push(point),
                None => curves.push(PlotCurve { name, points: vec![point] }),
            }
        }
    }
    curves.iter_mut().for_each(|curve| curve.points.sort_by(|a, b| a.0.total_cmp(&b.0)));
    curves
}

/// Returns a page with the plots and the table.
pub(super) fn page(report: &Report) -> String {
    let table = format!("<pre>{}</pre>\n", sanloom_console::report::html::escape(&report.text()));
    let facts = report.paths.iter().map(|path| format!("{}: {}", path.name, path.target));
    plain_page(
        "Requests to disks",
        "Throughput, latency and processor time of each path, by size of a request.",
        &facts.collect::<Vec<_>>(),
        vec![("plots", "Plots", drawings(&plots(report))), ("table", "Numbers", table)],
    )
}
