//! Time series as CSV (one row for each step) and as JSON Lines (one object for each step).

use sanloom_api::results::{Results, SeriesValues};
use serde_json::{Map, Value, json};
use std::borrow::Cow;
use std::io::{self, Write};

/// Writes the time series as CSV (RFC 4180, lines end with a line feed). The first column is
/// `at_s`, the start of the step. The other columns are named like paths of the results:
/// `hosts.server1.throughput_bytes_per_s`.
///
/// # Errors
/// Errors of the writer.
pub fn write_csv(out: &mut dyn Write, results: &Results) -> io::Result<()> {
    let series = &results.series;
    let columns = series.columns();
    write!(out, "at_s")?;
    for column in &columns {
        write!(out, ",{}", quoted(&column.name()))?;
    }
    writeln!(out)?;
    for step in 0..series.steps as usize {
        write!(out, "{}", series.at_s(step))?;
        for column in &columns {
            match value_at(&column.values, step) {
                Some(value) => write!(out, ",{value}")?,
                None => write!(out, ",")?,
            }
        }
        writeln!(out)?;
    }
    Ok(())
}

/// Writes the time series as JSON Lines:
/// `{"at_s":0.1,"total":{…},"hosts":{"server1":{…}},"links":{…},"plane_links":{…},"storage":{…}}`.
///
/// # Errors
/// Errors of the writer.
pub fn write_json_lines(out: &mut dyn Write, results: &Results) -> io::Result<()> {
    let series = &results.series;
    let columns = series.columns();
    for step in 0..series.steps as usize {
        let mut line = Map::new();
        line.insert("at_s".into(), json!(series.at_s(step)));
        for column in &columns {
            let Some(value) = value_at(&column.values, step) else {
                continue;
            };
            let mut place = line.entry(column.part).or_insert_with(|| json!({}));
            if let Some(element) = column.element {
                place = &mut place[element];
                if place.is_null() {
                    *place = Value::Object(Map::new());
                }
            }
            place[column.quantity] = value;
        }
        super::json::write_line(out, &line)?;
    }
    Ok(())
}

fn value_at(values: &SeriesValues<'_>, step: usize) -> Option<Value> {
    match values {
        SeriesValues::Floats(values) => values.get(step).map(|v| json!(v)),
        SeriesValues::Counts(values) => values.get(step).map(|v| json!(v)),
    }
}

/// Writes one line (RFC 4180); fields are quoted where they need it.
///
/// # Errors
/// The output cannot be written.
pub fn write_line(out: &mut dyn Write, cells: &[String]) -> io::Result<()> {
    let cells: Vec<Cow<'_, str>> = cells.iter().map(|cell| quoted(cell)).collect();
    writeln!(out, "{}", cells.join(","))
}

/// A field, in quotes if it needs them.
pub fn quoted(field: &str) -> Cow<'_, str> {
    if field.contains([',', '"', '\n', '\r']) {
        Cow::Owned(format!("\"{}\"", field.replace('"', "\"\"")))
    } else {
        Cow::Borrowed(field)
    }
}
