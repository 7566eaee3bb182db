//! Summary: key numbers and verdicts.

use super::page::escape;
use super::{Cell, Table};
use crate::report::format::{self, grouped, mb_per_s, percent, rate, seconds, us};
use crate::report::terminal::bounds;
use sanloom_api::results::Results;
use std::fmt::Write as _;

/// Renders cards, expectations and confidence intervals.
pub fn render(results: &Results) -> String {
    let totals = &results.totals;
    let io = &totals.io;
    let mut out = String::from("<div class=\"cards\">\n");
    card(&mut out, "Throughput", &mb_per_s(io.throughput_bytes_per_s), &offered(results), "");
    card(&mut out, "Requests per second", &rate(io.iops), &format!("{} completed", grouped(io.ios_completed)), "");
    card(&mut out, "Mean response time", &us(io.latency.mean_us), &format!("median {}", us(io.latency.p50_us)), "");
    card(
        &mut out,
        "99th percentile",
        &us(io.latency.p99_us),
        &format!("99.9 %: {}, longest {}", us(io.latency.p99_9_us), us(io.latency.max_us)),
        "",
    );
    // Of equal links the first in the order of the lab is used.
    let busiest = results.links.iter().reduce(|a, b| if b.utilisation() > a.utilisation() { b } else { a });
    if let Some(link) = busiest {
        card(&mut out, "Busiest link", &percent(link.utilisation()), &link.name, "");
    }
    card(
        &mut out,
        "Failed requests",
        &grouped(io.ios_failed),
        &format!(
            "{} in flight at the end, {} commands tried again",
            grouped(io.ios_unfinished),
            grouped(totals.commands_retried)
        ),
        if io.ios_failed > 0 { "bad" } else { "good" },
    );
    card(
        &mut out,
        "Frames dropped",
        &grouped(totals.frames_dropped),
        &format!("of {} sent", grouped(results.conservation.frames_sent)),
        if totals.frames_dropped > 0 { "warn" } else { "good" },
    );
    card(
        &mut out,
        "Longest stall",
        &seconds(totals.longest_stall_s),
        &format!("{} path failovers, {} link resets", totals.path_failovers, totals.link_resets),
        if totals.longest_stall_s >= 0.1 { "warn" } else { "good" },
    );
    out.push_str("</div>\n");
    if !results.conservation.holds() {
        out.push_str(
            "<p class=\"verdict bad\">The books of frames and requests do not balance. This is a bug of sanloom; do \
             not trust these results.</p>\n",
        );
    }
    expectations(&mut out, results);
    replications(&mut out, results);
    out
}

fn card(out: &mut String, title: &str, value: &str, note: &str, class: &str) {
    let _ = writeln!(
        out,
        "<div class=\"card {class}\"><h3>{}</h3><p class=\"value\">{}</p><p>{}</p></div>",
        escape(title),
        escape(value),
        escape(note)
    );
}

fn offered(results: &Results) -> String {
    let io = &results.totals.io;
    format!(
        "{} read, {} written; {} asked for",
        share(io.read_bytes, io.read_bytes + io.written_bytes),
        share(io.written_bytes, io.read_bytes + io.written_bytes),
        mb_per_s(io.offered_bytes_per_s)
    )
}

fn share(part: u64, whole: u64) -> String {
    format!("{:.0} %", sanloom_api::results::measure::ratio(part, whole) * 100.0)
}

fn expectations(out: &mut String, results: &Results) {
    let verdicts = &results.expectations;
    if verdicts.is_empty() {
        return;
    }
    let held = verdicts.iter().filter(|verdict| verdict.ok).count();
    let class = if held == verdicts.len() { "good" } else { "bad" };
    let _ =
        writeln!(out, "<p class=\"verdict {class}\">{held} of {} expectations of the lab hold.</p>", verdicts.len());
    let mut table = Table::new("expectations").text("Verdict").text("Number").number("Measured").text("Wanted");
    for verdict in verdicts {
        table.row(vec![
            Cell::text(if verdict.ok { "holds" } else { "FAILS" }).class(if verdict.ok { "good" } else { "bad" }),
            Cell::text(&verdict.metric).class("code"),
            match verdict.value {
                Some(value) => Cell::number(value, format::measured(&verdict.metric, value)),
                None => Cell::text("no such number"),
            },
            Cell::text(&match &verdict.reason {
                Some(reason) => format!("{}; {reason}", bounds(verdict)),
                None => bounds(verdict),
            }),
        ]);
    }
    out.push_str(&table.html());
}

fn replications(out: &mut String, results: &Results) {
    let Some(replications) = &results.replications else {
        return;
    };
    let _ = writeln!(out, "<h3>Over {} seeds</h3>", replications.seeds.len());
    let mut table = Table::new("replications")
        .text("Number")
        .number("Mean")
        .number("± 95 %")
        .number("Least")
        .number("Greatest")
        .text("Unit")
        .cap(200, "The JSON results have all.");
    for (metric, interval) in &replications.metrics {
        let (unit, factor) = format::unit_of(metric);
        let cell = |value: f64| Cell::number(value, format::plain(value * factor));
        table.row(vec![
            Cell::text(metric).class("code"),
            cell(interval.mean),
            cell(interval.half_width),
            cell(interval.min),
            cell(interval.max),
            Cell::text(unit),
        ]);
    }
    out.push_str(&table.html());
    out.push_str("<p class=\"note\">Everything else in this report belongs to the first seed.</p>\n");
}
