//! A measured disk beside the model: mean, demerit figure, bars, and the verdict.

use super::super::verdict::{Kind, Ruling};
use sanloom_api::words::plural;
use sanloom_console::report::html::{Cell, Table};
use sanloom_console::report::terminal::grid::{Column, Grid};
use serde::Serialize;

/// Largest accepted difference of the means, in percent of the measured mean.
pub const MEAN_TOLERANCE_PERCENT: f64 = 5.0;

/// One disk; an element of the JSON list.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct Row {
    /// Short fixed name: that of the trace.
    pub id: String,
    /// Name of the disk.
    pub disk: String,
    /// Number of requests.
    pub requests: usize,
    /// Origin of our numbers.
    pub kind: Kind,
    /// Measured mean response time.
    pub measured_mean_ms: f64,
    /// Our mean response time.
    pub mean_ms: f64,
    /// Difference of the means in percent of the measured one.
    pub mean_difference_percent: f64,
    /// Largest accepted amount of this difference.
    pub mean_tolerance_percent: f64,
    /// Demerit figure.
    pub demerit_ms: f64,
    /// Demerit figure in percent of the measured mean.
    pub demerit_percent: f64,
    /// Largest accepted demerit figure in percent.
    pub demerit_bar_percent: f64,
    /// Demerit figure of DiskSim 4.0 for the same trace, in percent, if it is known.
    pub disksim_percent: Option<f64>,
    /// Verdict.
    pub verdict: Ruling,
}

impl Row {
    /// Judges the mean and the demerit figure.
    pub fn judged(mut self) -> Row {
        let is_mean_ok = self.mean_difference_percent.abs() <= self.mean_tolerance_percent;
        let is_ok = is_mean_ok && self.demerit_percent <= self.demerit_bar_percent;
        self.verdict = if is_ok { Ruling::Ok } else { Ruling::Missed };
        self
    }

    /// True if both numbers are within their bars.
    pub fn is_ok(&self) -> bool {
        self.verdict == Ruling::Ok
    }

    fn cells(&self) -> [String; 9] {
        let percent = |value: f64| format!("{value:.1} %");
        [
            self.requests.to_string(),
            format!("{:.3}", self.measured_mean_ms),
            format!("{:.3}", self.mean_ms),
            format!("{:+.1} %", self.mean_difference_percent),
            format!("{:.3}", self.demerit_ms),
            percent(self.demerit_percent),
            percent(self.demerit_bar_percent),
            self.disksim_percent.map_or("–".to_owned(), percent),
            self.verdict.word().to_owned(),
        ]
    }
}

/// Titles of the columns behind the name of the disk.
const TITLES: [&str; 9] = [
    "Requests",
    "Measured mean ms",
    "Our mean ms",
    "Difference",
    "Demerit ms",
    "Demerit of mean",
    "Bar",
    "DiskSim",
    "Verdict",
];

/// Returns the summary line.
pub fn summary(rows: &[&Row]) -> String {
    let ok = rows.iter().filter(|row| row.is_ok()).count();
    let missed = rows.len() - ok;
    let mut demerits: Vec<f64> = rows.iter().map(|row| row.demerit_percent).collect();
    demerits.sort_by(f64::total_cmp);
    let median = demerits.get(demerits.len() / 2).copied().unwrap_or(0.0);
    format!(
        "{}: {ok} within the bars, {missed} missed; median demerit {median:.1} % of the mean",
        plural(rows.len(), "measured disk")
    )
}

/// Returns the disks as a table for a terminal.
pub fn table(rows: &[&Row], width: usize) -> String {
    let columns = TITLES[..8].iter().map(|title| Column::right(title));
    let mut grid =
        Grid::new([Column::left("Disk")].into_iter().chain(columns).chain([Column::left(TITLES[8])]).collect());
    for row in rows {
        grid.row([row.disk.clone()].into_iter().chain(row.cells()).collect());
    }
    grid.render(width)
}

/// Returns the disks as a table of a page.
pub fn html_table(rows: &[&Row]) -> String {
    let mut table = TITLES[..8].iter().fold(Table::new("disks").text("Disk"), |table, title| table.number(title));
    table = table.text(TITLES[8]);
    for row in rows {
        let values = [
            row.requests as f64,
            row.measured_mean_ms,
            row.mean_ms,
            row.mean_difference_percent,
            row.demerit_ms,
            row.demerit_percent,
            row.demerit_bar_percent,
            row.disksim_percent.unwrap_or(f64::MAX),
        ];
        let texts = row.cells();
        let numbers = values.into_iter().zip(&texts).map(|(value, text)| Cell::number(value, text.clone()));
        let verdict = Cell::text(&texts[8]).class(if row.is_ok() { "good" } else { "bad" });
        table.row([Cell::text(&row.disk)].into_iter().chain(numbers).chain([verdict]).collect());
    }
    table.html()
}
