//! Figures 9 to 11 of the iSCSI switch paper, drawn from our results.

use super::super::super::bench::io::{Cell, Op, Report};
use super::numbers::{mb_per_s, share};
use super::{Reproduced, text};
use sanloom_console::report::html::{escape, plain_page};
use sanloom_console::report::plot::{Plot, PlotCurve, drawings};

/// Returns a plot of throughput and a plot of processor share over the size of a request, for each
/// kind of requests and each depth.
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
                is_log: false,
            };
            all.push(plot(format!("Figure {figure}: {word} throughput, depth {depth}"), "MB/s", 0, &mb_per_s));
            // End to end has no process in between.
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

/// Returns a page with the figures and all numbers.
pub(super) fn page(reproduced: &Reproduced) -> String {
    plain_page(
        "An iSCSI virtualization switch, reproduced",
        "Chung, Lee and Chen (2007): throughput and processor time of both paths through the switch, end to end, and of a forwarder that \
         only copies.",
        &["all on one machine: only ratios are meaningful".to_owned()],
        vec![
            ("links", "Figures 9 to 11 over links of 1 Gb/s", drawings(&plots(&reproduced.measured.links))),
            ("figures", "Figures 9 to 11 on loopback", drawings(&plots(&reproduced.measured.paths))),
            ("numbers", "Numbers", format!("<pre>{}</pre>\n", escape(&text(reproduced)))),
        ],
    )
}
