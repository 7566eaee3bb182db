//! Time series as CSV (one row for each step) and as JSON Lines (one object for each step).

use sanloom_api::results::{Results, Series};
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
    let columns = columns(series);
    write!(out, "at_s")?;
    for column in &columns {
        write!(out, ",{}", quoted(&column.name()))?;
    }
    writeln!(out)?;
    for step in 0..series.steps as usize {
        write!(out, "{}", at_s(series, step))?;
        for column in &columns {
            match column.values.get(step) {
                Some(value) => write!(out, ",{value}")?,
                None => write!(out, ",")?,
            }
        }
        writeln!(out)?;
    }
    Ok(())
}

/// Writes the time series as JSON Lines:
/// `{"at_s":0.1,"total":{…},"hosts":{"server1":{…}},"links":{…},"storage":{…}}`.
///
/// # Errors
/// Errors of the writer.
pub fn write_json_lines(out: &mut dyn Write, results: &Results) -> io::Result<()> {
    let series = &results.series;
    let columns = columns(series);
    for step in 0..series.steps as usize {
        let mut line = Map::new();
        line.insert("at_s".into(), json!(at_s(series, step)));
        for column in &columns {
            let Some(value) = column.values.get(step) else {
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

/// One quantity of one element.
struct Column<'a> {
    part: &'static str,
    element: Option<&'a str>,
    quantity: &'static str,
    values: Values<'a>,
}

#[derive(Clone, Copy)]
enum Values<'a> {
    Floats(&'a [f64]),
    Counts(&'a [u64]),
}

impl Values<'_> {
    fn get(&self, step: usize) -> Option<Value> {
        match self {
            Values::Floats(values) => values.get(step).map(|v| json!(v)),
            Values::Counts(values) => values.get(step).map(|v| json!(v)),
        }
    }
}

impl Column<'_> {
    fn name(&self) -> String {
        match self.element {
            Some(element) => format!("{}.{element}.{}", self.part, self.quantity),
            None => format!("{}.{}", self.part, self.quantity),
        }
    }
}

fn columns(series: &Series) -> Vec<Column<'_>> {
    use Values::{Counts, Floats};
    let mut out = Vec::new();
    let total = &series.total;
    let quantities = [
        ("throughput_bytes_per_s", Floats(&total.throughput_bytes_per_s)),
        ("iops", Floats(&total.iops)),
        ("latency_mean_us", Floats(&total.latency_mean_us)),
        ("frames_dropped", Counts(&total.frames_dropped)),
    ];
    add(&mut out, "total", None, quantities);
    for host in &series.hosts {
        let quantities = [
            ("throughput_bytes_per_s", Floats(&host.throughput_bytes_per_s)),
            ("iops", Floats(&host.iops)),
            ("latency_mean_us", Floats(&host.latency_mean_us)),
        ];
        add(&mut out, "hosts", Some(&host.name), quantities);
    }
    for link in &series.links {
        let quantities =
            [("utilisation", Floats(&link.utilisation)), ("credit_wait_fraction", Floats(&link.credit_wait_fraction))];
        add(&mut out, "links", Some(&link.name), quantities);
    }
    for storage in &series.storage {
        let quantities = [
            ("throughput_bytes_per_s", Floats(&storage.throughput_bytes_per_s)),
            ("queue_mean", Floats(&storage.queue_mean)),
        ];
        add(&mut out, "storage", Some(&storage.name), quantities);
    }
    out
}

fn add<'a, const N: usize>(
    out: &mut Vec<Column<'a>>,
    part: &'static str,
    element: Option<&'a str>,
    quantities: [(&'static str, Values<'a>); N],
) {
    out.extend(quantities.map(|(quantity, values)| Column { part, element, quantity, values }));
}

fn at_s(series: &Series, step: usize) -> f64 {
    // Rounded because 0.1 * 3 would print as 0.30000000000000004.
    (step as f64 * series.interval_s * 1e12).round() / 1e12
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
