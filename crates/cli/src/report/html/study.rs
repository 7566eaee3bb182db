//! Pages about several simulations: a sweep, and what-if rankings.

use super::page::{Page, Section, escape};
use super::{Cell, Table};
use crate::report::format::{self, mb_per_s, percent, seconds, us};
use sanloom_api::results::{SweepRow, WhatIfRow};
use serde_json::{Map, Value, json};
use std::collections::BTreeSet;
use std::fmt::Write as _;

const SWEEP_SCRIPT: &str = include_str!("../../../assets/sweep.js");
const ROWS: usize = 5_000;

/// The points of a sweep: a chart whose axes the reader chooses, and the table. Points may be missing; `total` is the
/// number of points of the grid, and `command` repeats the sweep.
pub fn sweep(lab: &str, rows: &[SweepRow], total: u64, command: &str) -> String {
    let keys = ordered_keys(rows);
    let columns: BTreeSet<&str> = rows.iter().flat_map(|row| row.metrics.keys().map(String::as_str)).collect();
    let mut page = Page::new(&format!("Sweep of {lab} – sanloom"));
    let failed = rows.iter().filter(|row| row.error.is_some()).count();
    let mut facts = vec![format!("{} of {total} points", rows.len())];
    if failed > 0 {
        facts.push(format!("{failed} without numbers"));
    }
    facts.push(format!("{} keys: {}", keys.len(), keys.join(", ")));
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
                (Some(value), _) => Cell::number(*value, format::plain(value * factor)),
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

/// Keys in the order of the command line: as they first appear.
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

/// What-if rankings, worst first; `rows` are ranked here.
pub fn whatif(lab: &str, rows: &[WhatIfRow], command: &str) -> String {
    let mut rows = rows.to_vec();
    WhatIfRow::rank(&mut rows);
    let mut page = Page::new(&format!("What if: {lab} – sanloom"));
    let healthy = rows.first().map_or(0.0, |row| row.healthy_bytes_per_s);
    let cut_off = rows.iter().filter(|row| row.pairs_cut_off > 0).count();
    page.heading(
        &format!("What if: {lab}"),
        "One simulation for each single failure of a link, a switch or an HBA, worst first. The lab's own faults are left \
         out.",
        &[
            format!("{} failures", rows.len()),
            format!("healthy: {}", mb_per_s(healthy)),
            format!("{cut_off} cut a host off from storage"),
        ],
    );
    let mut summary = String::new();
    let failing = rows.iter().filter(|row| row.ios_failed > 0).count();
    let (class, verdict) = if cut_off > 0 {
        (
            "bad",
            if cut_off == 1 {
                "One single failure cuts a host off from its storage.".into()
            } else {
                format!("{cut_off} single failures cut a host off from its storage.")
            },
        )
    } else if failing > 0 {
        ("bad", format!("No single failure cuts a host off, but {failing} make requests fail."))
    } else {
        ("good", "No single failure cuts a host off or makes a request fail.".into())
    };
    let _ = writeln!(summary, "<p class=\"verdict {class}\">{}</p>", escape(&verdict));
    if let Some(worst) = rows.iter().min_by(|a, b| a.left().total_cmp(&b.left())) {
        let _ = writeln!(
            summary,
            "<p>Least throughput: {} of {} ({}) without <strong>{}</strong>.</p>",
            mb_per_s(worst.throughput_bytes_per_s),
            mb_per_s(worst.healthy_bytes_per_s),
            percent(worst.left()),
            escape(&worst.name)
        );
    }
    if let Some(worst) = rows
        .iter()
        .max_by(|a, b| a.longest_stall_s.total_cmp(&b.longest_stall_s))
        .filter(|worst| worst.longest_stall_s > 0.0)
    {
        let _ = writeln!(
            summary,
            "<p>Longest stall: {} of {} without <strong>{}</strong>.</p>",
            seconds(worst.longest_stall_s),
            escape(&worst.stalled_host),
            escape(&worst.name)
        );
    }
    page.section(Section::new("summary", "Summary", summary));
    let mut table = Table::new("ranking")
        .number("Rank")
        .text("What fails")
        .text("Kind")
        .number("Throughput left")
        .number("MB/s")
        .number("Worst step MB/s")
        .number("Longest stall")
        .text("Of host")
        .number("Longest request")
        .number("Paths lost")
        .number("Pairs cut off")
        .number("Failed requests")
        .cap(ROWS, "The JSON file has all.");
    for (i, row) in rows.iter().enumerate() {
        table.row(vec![
            Cell::count(i as u64 + 1),
            Cell::text(&row.name),
            Cell::text(&row.kind),
            Cell::share(row.left(), "load"),
            Cell::mb_per_s(row.throughput_bytes_per_s),
            Cell::mb_per_s(row.worst_bytes_per_s),
            Cell::number(row.longest_stall_s, seconds(row.longest_stall_s)),
            Cell::text(&row.stalled_host),
            Cell::number(row.longest_request_us, us(row.longest_request_us)),
            Cell::count(row.paths_lost),
            Cell::bad_count(row.pairs_cut_off),
            Cell::bad_count(row.ios_failed),
        ]);
    }
    page.section(Section::new("ranking", "Ranking", table.html()));
    page.section(Section::new("command", "Command", format!("<pre class=\"command\">{}</pre>\n", escape(command))));
    page.finish()
}
