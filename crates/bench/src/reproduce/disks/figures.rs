//! Both distributions of each disk: as percentiles for a terminal, and as curves for a page.

use super::traces::Compared;
use sanloom_console::report::plot::{Plot, PlotCurve};
use sanloom_console::report::terminal::grid::{Column, Grid};
use sanloom_storage::disk::demerit::Distribution;

/// Percentiles of the table.
const PERCENTILES: [u32; 9] = [5, 10, 25, 50, 75, 90, 95, 99, 100];

/// Width of a bar of the table, in characters.
const BAR: f64 = 24.0;

/// Returns the percentiles of each disk, with bars as long as the times.
pub fn percentiles(compared: &[Compared], width: usize) -> String {
    let mut out = String::new();
    for Compared { row, measured, ours, .. } in compared {
        let mut grid = Grid::new(vec![
            Column::right(&format!("{}: percentile", row.disk)),
            Column::right("Measured ms"),
            Column::right("Ours ms"),
            Column::left("Measured (upper bar) and ours (lower bar)"),
        ]);
        // The longest time would make all other bars short.
        let longest = measured.quantile_us(0.99).max(ours.quantile_us(0.99)).max(1.0);
        for percentile in PERCENTILES {
            let share = f64::from(percentile) / 100.0;
            let (measured_us, ours_us) = (measured.quantile_us(share), ours.quantile_us(share));
            let bar = |us: f64, mark: &str| mark.repeat((BAR * (us / longest).min(1.0)).round() as usize);
            let ms = |us: f64| format!("{:.2}", us / 1e3);
            grid.row(vec![format!("{percentile} %"), ms(measured_us), ms(ours_us), bar(measured_us, "▀")]);
            grid.row(vec![String::new(), String::new(), String::new(), bar(ours_us, "▄")]);
        }
        out.push_str(&grid.render(width));
        out.push('\n');
    }
    out
}

/// Returns a plot of both cumulative distributions for each disk.
pub fn plots(compared: &[Compared]) -> Vec<Plot> {
    let points = |distribution: &Distribution| {
        (0..200).map(|step| (distribution.quantile_us(f64::from(step) / 200.0) / 1e3, f64::from(step) / 2.0)).collect()
    };
    let plot = |compared: &Compared| Plot {
        title: format!("{}: demerit {:.1} % of the mean", compared.row.disk, compared.row.demerit_percent),
        x: "response time, ms".to_owned(),
        y: "requests that take at most this time, %".to_owned(),
        curves: vec![
            PlotCurve { name: "measured".to_owned(), points: points(&compared.measured) },
            PlotCurve { name: "model".to_owned(), points: points(&compared.ours) },
        ],
        levels: Vec::new(),
        is_log: false,
    };
    compared.iter().map(plot).collect()
}
