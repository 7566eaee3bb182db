//! Means over several seeds: the most important numbers, and a reference to the others.

use super::grid::{Column, Grid};
use super::{MAX_ROWS, wrap};
use crate::report::format::{self, clean};
use sanloom_api::results::Results;

/// Metrics of all hosts together, in the order of the table.
const TOTALS: [&str; 6] = [
    "totals.throughput_bytes_per_s",
    "totals.iops",
    "totals.latency.mean_us",
    "totals.latency.p50_us",
    "totals.latency.p99_us",
    "totals.ios_failed",
];
/// Metrics of each host.
const HOST: [&str; 3] = ["throughput_bytes_per_s", "latency.mean_us", "latency.p99_us"];

/// Renders the table. Empty text if there was only one run.
pub fn render(out: &mut String, results: &Results, width: usize) {
    let Some(replications) = &results.replications else {
        return;
    };
    let mut grid = Grid::new(vec![
        Column::left(&format!("{} seeds", replications.seeds.len())),
        Column::right("mean"),
        Column::right("95 % interval"),
        Column::right("min").rank(1),
        Column::right("max").rank(1),
        Column::left("unit"),
    ]);
    let totals = TOTALS.map(str::to_owned).into_iter();
    let hosts = results.hosts.iter().flat_map(|host| HOST.map(|number| format!("hosts.{}.{number}", host.name)));
    let mut shown = 0;
    let chosen = totals.chain(hosts).filter_map(|path| Some((replications.metrics.get(&path)?, path)));
    for (interval, path) in chosen.take(MAX_ROWS) {
        let (unit, factor) = format::unit_of(&path);
        let number = |value: f64| format::plain(value * factor);
        grid.row(vec![
            clean(&path),
            number(interval.mean),
            format!("± {}", number(interval.half_width)),
            number(interval.min),
            number(interval.max),
            unit.to_owned(),
        ]);
        shown += 1;
    }
    out.push('\n');
    out.push_str(&grid.render(width));
    let more = replications.metrics.len().saturating_sub(shown);
    if more > 0 {
        let text = format!("The JSON results have the intervals of {} more numbers.", format::grouped(more as u64));
        out.push_str(&wrap(&text, width, 0));
    }
}
