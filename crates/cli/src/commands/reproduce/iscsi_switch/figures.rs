//! Figures 9 to 11 of document 003, drawn from what was measured.

use super::super::super::bench::io::{Cell, Op, Report};
use super::numbers::{row, share};
use super::{Reproduced, text};
use crate::report::html::{escape, plain_page};
use crate::report::plot::{Plot, PlotCurve, drawings};

/// Throughput of reads and of writes, and the share of a core that what is in between takes, along the size of a request: for each depth.
fn plots(report: &Report) -> Vec<Plot> {
    let mut depths: Vec<u32> = report.cells.iter().map(|cell| cell.depth).collect();
    depths.sort_unstable();
    depths.dedup();
    let mut all = Vec::new();
    for (op, figure, word) in [(Op::Read, 9, "read"), (Op::Write, 10, "write")] {
        for depth in &depths {
            let cells: Vec<&Cell> = report.cells.iter().filter(|cell| cell.op == op && cell.depth == *depth).collect();
            let plot = |title: String, unit: &str, first: usize, value: &dyn Fn(&Cell, usize) -> f64| Plot {
                title,
                x: "request, KiB".to_owned(),
                y: unit.to_owned(),
                curves: (first..report.paths.len()).map(|path| curve(report, &cells, path, value)).collect(),
                levels: Vec::new(),
            };
            let speed = |cell: &Cell, path: usize| row(cell, path).0;
            all.push(plot(format!("Figure {figure}: {word} throughput, depth {depth}"), "MB/s", 0, &speed));
            // Nothing is in between end to end.
            let title = format!("Figure 11: CPU utilization, {word}, depth {depth}");
            all.push(plot(title, "% of a core", 1, &share));
        }
    }
    all
}

fn curve(report: &Report, cells: &[&Cell], path: usize, value: &dyn Fn(&Cell, usize) -> f64) -> PlotCurve {
    let mut points: Vec<(f64, f64)> =
        cells.iter().map(|cell| (f64::from(cell.size_bytes) / 1024.0, value(cell, path))).collect();
    points.sort_by(|a, b| a.0.total_cmp(&b.0));
    PlotCurve { name: report.paths[path].name.clone(), points }
}

/// A page with the figures and all numbers.
pub(super) fn page(reproduced: &Reproduced) -> String {
    plain_page(
        "An iSCSI virtualization switch, reproduced",
        "Document 003: throughput and processor time of both paths through the switch, end to end, and of a forwarder that only copies.",
        &["all on one machine: only ratios mean anything".to_owned()],
        vec![
            ("figures", "Figures 9 to 11", drawings(&plots(&reproduced.measured.paths))),
            ("links", "Over links of 1 Gb/s", drawings(&plots(&reproduced.measured.links))),
            ("numbers", "Numbers", format!("<pre>{}</pre>\n", escape(&text(reproduced)))),
        ],
    )
}
