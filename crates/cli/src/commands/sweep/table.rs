//! The points of a sweep as text and as CSV.

use sanloom_api::results::SweepRow;
use sanloom_console::report::terminal::grid::{Column, Grid as Table};
use sanloom_console::report::{csv, format};
use std::io::{self, Write};

/// Maximum number of rows of the table; the files have all.
const TABLE_ROWS: usize = 60;

/// A finished sweep.
pub struct Sweep {
    /// Name of the lab.
    pub name: String,
    /// Text of the lab file.
    pub text: String,
    pub rows: Vec<SweepRow>,
    pub metrics: Vec<String>,
    /// Number of points of the grid, or of its part.
    pub total: u64,
}

/// Formats the points for a terminal.
pub fn text(sweep: &Sweep, width: usize) -> String {
    let Sweep { name, rows, metrics, total, .. } = sweep;
    let mut columns = vec![Column::right("Point")];
    let settings = rows.first().map_or(&[][..], |row| &row.settings);
    columns.extend(settings.iter().map(|setting| Column::left(&setting.key)));
    // The metrics named first stay longest when the terminal is narrow.
    columns.extend(metrics.iter().zip(1..=u8::MAX).map(|(path, rank)| Column::right(&head(path)).rank(rank)));
    let mut grid = Table::new(columns);
    for row in rows.iter().take(TABLE_ROWS) {
        let mut cells = vec![row.point.to_string()];
        cells.extend(row.settings.iter().map(|setting| setting.value.clone()));
        cells.extend(metrics.iter().take(usize::from(u8::MAX)).map(|path| cell(row, path)));
        grid.row(cells);
    }
    grid.more(rows.len().saturating_sub(TABLE_ROWS));
    let mut out =
        format!("Sweep of {}: {} of {total} points\n\n{}", format::clean(name), rows.len(), grid.render(width));
    for path in metrics.iter().filter(|path| rows.iter().all(|row| !row.metrics.contains_key(*path))) {
        out.push_str(&format!("\nNo results have a single number {}.\n", format::clean(path)));
    }
    out
}

/// A number of a row, with its confidence interval if there are several seeds.
fn cell(row: &SweepRow, path: &str) -> String {
    let factor = format::unit_of(path).1;
    match (row.metrics.get(path), row.intervals.get(path)) {
        (Some(_), Some(interval)) => {
            format!("{} ± {}", format::plain(interval.mean * factor), format::plain(interval.half_width * factor))
        }
        (Some(value), None) => format::plain(value * factor),
        (None, _) => "–".into(),
    }
}

/// Writes one line per point (RFC 4180), with the keys and the metrics as columns.
///
/// # Errors
/// The output cannot be written.
pub fn write_csv(out: &mut dyn Write, sweep: &Sweep) -> io::Result<()> {
    let with_intervals = sweep.rows.iter().any(|row| !row.intervals.is_empty());
    let mut head = vec!["point".to_owned()];
    let settings = sweep.rows.first().map_or(&[][..], |row| &row.settings);
    head.extend(settings.iter().map(|setting| setting.key.clone()));
    for path in &sweep.metrics {
        head.push(path.clone());
        if with_intervals {
            head.push(format!("{path}.half_width"));
        }
    }
    csv::write_line(out, &head)?;
    let number = |value: Option<f64>| value.map_or_else(String::new, |value| value.to_string());
    for row in &sweep.rows {
        let mut cells = vec![row.point.to_string()];
        cells.extend(row.settings.iter().map(|setting| setting.value.clone()));
        for path in &sweep.metrics {
            cells.push(number(row.metrics.get(path).copied()));
            if with_intervals {
                cells.push(number(row.intervals.get(path).map(|interval| interval.half_width)));
            }
        }
        csv::write_line(out, &cells)?;
    }
    Ok(())
}

/// `throughput, MB/s` for `totals.throughput_bytes_per_s`.
fn head(path: &str) -> String {
    let unit = format::unit_of(path).0;
    let short = path.strip_prefix("totals.").unwrap_or(path);
    let name = ["_bytes_per_s", "_us", "_s"]
        .iter()
        .find_map(|suffix| short.strip_suffix(suffix))
        .filter(|_| !unit.is_empty())
        .unwrap_or(short);
    if unit.is_empty() {
        name.to_owned()
    } else if name.eq_ignore_ascii_case(unit) {
        unit.to_owned()
    } else {
        format!("{name}, {unit}")
    }
}
