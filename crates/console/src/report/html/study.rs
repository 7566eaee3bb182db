//! Pages about several simulations: sweeps and what-if studies.

use super::page::{Page, Section, escape};
use super::{Cell, Table};
use crate::report::format::{self, mb_per_s, percent, seconds, us};
use crate::whatif::{NO_FAILURES, NOTE_ON_SERVERS, is_server};
use sanloom_api::results::{SweepRow, WhatIfRow};
use sanloom_api::words::plural;
use serde_json::{Map, Value, json};
use std::collections::BTreeSet;
use std::fmt::Write as _;

const SWEEP_SCRIPT: &str = include_str!("../../../assets/sweep.js");
const ROWS: usize = 5_000;

/// Returns the page of a sweep: a chart with selectable axes, and the table. Points may be missing;
/// `total` is the number of points of the grid, and `command` repeats the sweep.
pub fn sweep(lab: &str, rows: &[SweepRow], total: u64, command: &str) -> String {
    let keys = ordered_keys(rows);
    let columns = ordered_metrics(rows);
    let mut page = Page::new(&format!("Sweep of {lab} – sanloom"));
    let failed = rows.iter().filter(|row| row.error.is_some()).count();
    let mut facts = vec![format!("{} of {total} points", rows.len())];
    if failed > 0 {
        facts.push(format!("{failed} without numbers"));
    }
    facts.push(format!("{}: {}", plural(keys.len(), "key"), keys.join(", ")));
    page.heading(&format!("Sweep of {lab}"), "", &facts);
    page.section(Section::new(
        "plot",
        "Plot",
        "<div class=\"controls\" data-controls=\"sweep\"></div>\n\
         <div class=\"chart\" data-chart=\"sweep\"><noscript>The chart needs scripts; the table does not.</noscript>\
         </div>\n<p class=\"note\">Each line is one combination of the other keys.</p>\n"
            .into(),
    ));
    let mut table = Table::new("points").number("Point");
    for key in &keys {
        table = table.text(key);
    }
    for column in &columns {
        let (unit, _) = format::unit_of(column);
        table = table.number(&with_unit(column, unit));
    }
    let mut table = table.cap(ROWS, "The rows file has all.");
    for row in rows {
        let mut cells = vec![Cell::count(row.point)];
        cells.extend(keys.iter().map(|key| Cell::text(setting(row, key))));
        cells.extend(columns.iter().map(|column| {
            let (_, factor) = format::unit_of(column);
            match (row.metrics.get(*column), &row.error) {
                (Some(value), _) => {
                    let shown = match row.intervals.get(*column) {
                        Some(interval) => format!(
                            "{} ± {}",
                            format::plain(value * factor),
                            format::plain(interval.half_width * factor)
                        ),
                        None => format::plain(value * factor),
                    };
                    Cell::number(*value, shown)
                }
                (None, Some(error)) => Cell::text(error).class("bad"),
                (None, None) => Cell::text("–"),
            }
        }));
        table.row(cells);
    }
    page.section(Section::new("points", "Points", table.html()));
    page.section(Section::new("command", "Command", format!("<pre class=\"command\">{}</pre>\n", escape(command))));
    let metrics: Vec<Value> =
        columns.iter().map(|column| json!({"name": column, "unit": format::unit_of(column).0})).collect();
    let points: Vec<Value> = rows
        .iter()
        .take(ROWS)
        .map(|row| {
            let at: Map<String, Value> = row.settings.iter().map(|s| (s.key.clone(), json!(s.value))).collect();
            let values: Map<String, Value> = row
                .metrics
                .iter()
                .map(|(name, value)| (name.clone(), json!(value * format::unit_of(name).1)))
                .collect();
            json!({"at": at, "values": values})
        })
        .collect();
    page.data(&json!({"keys": keys, "metrics": metrics, "points": points}));
    page.charts();
    page.script(SWEEP_SCRIPT);
    page.finish()
}

fn with_unit(name: &str, unit: &str) -> String {
    if unit.is_empty() { name.to_owned() } else { format!("{name} [{unit}]") }
}

/// Returns the metrics with the one for the first plot at the front: the throughput, or the 99th
/// percentile of the response time if the throughput is nearly the same at all points. The others
/// follow by name.
fn ordered_metrics(rows: &[SweepRow]) -> Vec<&str> {
    /// Relative range of a throughput that is worth a plot.
    const VARIES: f64 = 0.02;
    let names: BTreeSet<&str> = rows.iter().flat_map(|row| row.metrics.keys().map(String::as_str)).collect();
    let mut names: Vec<&str> = names.into_iter().collect();
    let varies = |name: &str| {
        let values = || rows.iter().filter_map(|row| row.metrics.get(name)).copied();
        let (least, most) = (values().fold(f64::INFINITY, f64::min), values().fold(0.0, f64::max));
        most - least > VARIES * most
    };
    let rank = |name: &&str| match () {
        () if name.contains("throughput_bytes_per_s") => u8::from(!varies(name)) * 2,
        () if name.contains("p99_us") => 1,
        () => 3,
    };
    names.sort_by_key(rank);
    names
}

/// Returns the keys in the order of the command line, which is that of their first appearance.
fn ordered_keys(rows: &[SweepRow]) -> Vec<String> {
    let mut keys: Vec<String> = Vec::new();
    for setting in rows.iter().flat_map(|row| &row.settings) {
        if !keys.contains(&setting.key) {
            keys.push(setting.key.clone());
        }
    }
    keys
}

fn setting<'a>(row: &'a SweepRow, key: &str) -> &'a str {
    row.settings.iter().find(|setting| setting.key == key).map_or("", |setting| setting.value.as_str())
}

/// A number of two runs, for [`compare`].
pub struct ComparedRow<'a> {
    /// Its path in the results.
    pub metric: &'a str,
    /// Value in the first run, if it has the number.
    pub first: Option<f64>,
    /// Value in the second run, if it has the number.
    pub second: Option<f64>,
    /// Difference as a share of the first.
    pub change: Option<f64>,
}

/// The numbers of two runs side by side. `runs` are their names, `notes` the differences of their
/// labs.
pub fn compare(runs: [&str; 2], notes: &[String], rows: &[ComparedRow<'_>], command: &str) -> String {
    let mut page = Page::new(&format!("{} and {} – sanloom", runs[0], runs[1]));
    page.heading(&format!("{} and {}", runs[0], runs[1]), "", notes);
    let mut table = Table::new("numbers")
        .text("Number")
        .number("First")
        .number("Second")
        .number("Change")
        .text("Unit")
        .cap(ROWS, "The JSON file has all.");
    for row in rows {
        let (unit, factor) = format::unit_of(row.metric);
        let cell = |value: Option<f64>| match value {
            Some(value) => Cell::number(value, format::plain(value * factor)),
            None => Cell::text("–"),
        };
        let change = match row.change {
            Some(change) => Cell::number(change, format!("{:+.1} %", change * 100.0)),
            None => Cell::text(format::changed(row.first, row.second)),
        };
        table.row(vec![
            Cell::text(row.metric).class("code"),
            cell(row.first),
            cell(row.second),
            change,
            Cell::text(unit),
        ]);
    }
    page.section(Section::new("numbers", "Numbers", table.html()));
    page.section(Section::new("command", "Command", format!("<pre class=\"command\">{}</pre>\n", escape(command))));
    page.finish()
}

/// Returns the page of a what-if study. The rows are ranked here, worst first; `command` repeats
/// the study.
pub fn whatif(lab: &str, rows: &[WhatIfRow], command: &str) -> String {
    let mut rows = rows.to_vec();
    WhatIfRow::rank(&mut rows);
    let mut page = Page::new(&format!("What if: {lab} – sanloom"));
    let cut_off = rows.iter().filter(|row| row.pairs_cut_off > 0).count();
    let mut facts = vec![plural(rows.len(), "failure")];
    if let Some(row) = rows.first() {
        let verb = if cut_off == 1 { "cuts" } else { "cut" };
        facts.push(format!("healthy: {}", mb_per_s(row.healthy_bytes_per_s)));
        facts.push(format!("{cut_off} {verb} a host off from storage"));
    }
    page.heading(
        &format!("What if: {lab}"),
        "One simulation for each single failure of a link, a switch, a chassis or a port, worst first. The lab's own faults and zone \
         changes are left out. Throughput is measured after the recovery and compared with the same interval without a failure.",
        &facts,
    );
    page.section(Section::new("summary", "Summary", whatif_summary(&rows, cut_off)));
    page.section(Section::new("ranking", "Ranking", ranking(&rows)));
    if cut_off > 0 {
        page.section(Section::new("cut-off", "Cut off for good", cut_off_table(&rows)));
    }
    page.section(Section::new("command", "Command", format!("<pre class=\"command\">{}</pre>\n", escape(command))));
    page.finish()
}

fn whatif_summary(rows: &[WhatIfRow], cut_off: usize) -> String {
    if rows.is_empty() {
        return format!("<p class=\"none\">{NO_FAILURES}</p>\n");
    }
    let mut summary = String::new();
    let failing = rows.iter().filter(|row| row.ios_failed > 0).count();
    let unfinished = rows.iter().filter(|row| row.ios_unfinished > 0).count();
    let (class, verdict) = match (cut_off, failing, unfinished) {
        (1, ..) => ("bad", "One single failure cuts a host off from its storage.".into()),
        (n @ 2.., ..) => ("bad", format!("{n} single failures cut a host off from its storage.")),
        (_, 1, _) => ("bad", "No single failure cuts a host off, but 1 makes requests fail.".into()),
        (_, n @ 2.., _) => ("bad", format!("No single failure cuts a host off, but {n} make requests fail.")),
        (.., 1) => ("bad", "No single failure cuts a host off, but 1 leaves requests unfinished.".into()),
        (.., n @ 2..) => ("bad", format!("No single failure cuts a host off, but {n} leave requests unfinished.")),
        _ => ("good", "No single failure cuts a host off or makes a request fail.".into()),
    };
    let _ = writeln!(summary, "<p class=\"verdict {class}\">{}</p>", escape(&verdict));
    let measured = rows.iter().filter_map(|row| Some((row.left()?, row)));
    if let Some((left, worst)) = measured.min_by(|a, b| a.0.total_cmp(&b.0)) {
        let _ = writeln!(
            summary,
            "<p>Least throughput after the recovery: {} of {} ({}) without <strong>{}</strong>.</p>",
            mb_per_s(worst.throughput_bytes_per_s),
            mb_per_s(worst.healthy_bytes_per_s),
            percent(left),
            escape(&worst.name)
        );
    }
    let stalls = rows.iter().filter(|row| row.stall_ended && row.longest_stall_s > 0.0);
    if let Some(worst) = stalls.max_by(|a, b| a.longest_stall_s.total_cmp(&b.longest_stall_s)) {
        let _ = writeln!(
            summary,
            "<p>Longest stall that ended: {} of {} without <strong>{}</strong>.</p>",
            seconds(worst.longest_stall_s),
            escape(&worst.stalled_host),
            escape(&worst.name)
        );
    }
    summary
}

fn ranking(rows: &[WhatIfRow]) -> String {
    let mut table = Table::new("ranking")
        .number("Rank")
        .text("What fails")
        .text("Kind")
        .number("Throughput left")
        .number("MB/s")
        .number("Worst step MB/s")
        .number("Recovery")
        .number("Longest stall")
        .text("Of host")
        .number("Longest request")
        .number("Paths lost")
        .number("Pairs cut off")
        .number("Failed requests")
        .number("Unfinished requests")
        .cap(ROWS, "The JSON file has all.");
    for (i, row) in rows.iter().enumerate() {
        let stall = if row.stall_ended { seconds(row.longest_stall_s) } else { "for good".to_owned() };
        let recovery = match row.recovery_s {
            Some(recovery_s) if row.pairs_cut_off > 0 && !is_server(row) => {
                Cell::number(recovery_s, format!("others {}", seconds(recovery_s)))
            }
            Some(recovery_s) => Cell::number(recovery_s, seconds(recovery_s)),
            None => Cell::number(f64::MAX, "none".to_owned()).class("bad"),
        };
        table.row(vec![
            Cell::count(i as u64 + 1),
            Cell::text(&row.name),
            Cell::text(&row.kind),
            match row.left() {
                Some(left) => Cell::share(left, "load"),
                None => Cell::number(-1.0, "not measured".to_owned()),
            },
            Cell::mb_per_s(row.throughput_bytes_per_s),
            Cell::mb_per_s(row.worst_bytes_per_s),
            recovery,
            Cell::number(row.longest_stall_s, stall),
            Cell::text(&row.stalled_host),
            Cell::number(row.longest_request_us, us(row.longest_request_us)),
            Cell::count(row.paths_lost),
            Cell::bad_count(row.pairs_cut_off),
            Cell::bad_count(row.ios_failed),
            Cell::bad_count(row.ios_unfinished),
        ]);
    }
    table.html()
}

fn cut_off_table(rows: &[WhatIfRow]) -> String {
    let note = match rows.iter().any(|row| is_server(row) && row.pairs_cut_off > 0) {
        true => format!("<p>{NOTE_ON_SERVERS}</p>\n"),
        false => String::new(),
    };
    let mut table = Table::new("cut-off")
        .text("What fails")
        .text("Kind")
        .text("Host")
        .text("Storage")
        .text("LUNs")
        .cap(ROWS, "The JSON file has all.");
    for row in rows {
        for cut in &row.cut_off {
            table.row(vec![
                Cell::text(&row.name),
                Cell::text(&row.kind),
                Cell::text(&cut.host),
                Cell::text(&cut.storage),
                Cell::text(&cut.luns.join(", ")),
            ]);
        }
    }
    table.html() + &note
}
