//! Results as text for a terminal: no colour, no control characters, limited to a given width.

mod backstore;
pub mod design;
mod ethernet;
mod events;
mod fdmi;
pub mod grid;
mod group;
mod infiniband;
mod live;
mod loops;
mod metadata;
mod plane;
mod replications;
mod routers;
pub mod view;
mod volume;

use super::format::{self, clean, grouped, mb_per_s, percent, rate, seconds, us};
use crate::{metric, remedy};
use grid::{Column, Grid, wrap};
use group::{Group, groups};
use sanloom_api::results::{
    ExpectationResult, Finding, FindingKind, HostResult, IoStats, LinkDirection, LinkResult, Metrics, Results, Victim,
};
use sanloom_api::words::plural;
use std::collections::BTreeMap;
use std::fmt::Write as _;

/// Maximum number of hosts, streams or storage systems shown individually; more are grouped.
const SINGLE_ROWS: usize = 12;
/// Maximum number of groups.
const MAX_GROUPS: usize = 8;
/// Maximum number of rows of a table; the rest is counted.
const MAX_ROWS: usize = 24;
/// Maximum number of links shown: the busiest, and those that wait for credit.
const LINK_ROWS: usize = 10;

/// Renders the whole result for a terminal of `width` columns (at least 60).
pub fn render(results: &Results, width: usize) -> String {
    let width = width.max(60);
    let mut out = String::new();
    headline(&mut out, results, width);
    hosts(&mut out, results, width);
    streams(&mut out, results, width);
    traces(&mut out, results, width);
    storage(&mut out, results, width);
    backstore::tables(&mut out, results, width);
    metadata::table(&mut out, results, width);
    links(&mut out, results, width);
    loops::table(&mut out, results, width);
    ethernet::tables(&mut out, results, width);
    infiniband::tables(&mut out, results, width);
    routers::table(&mut out, results, width);
    drops(&mut out, results, width);
    events::render(&mut out, &results.events, width);
    replications::render(&mut out, results, width);
    findings(&mut out, &results.findings, width);
    expectations(&mut out, results, width);
    ending(&mut out, results, width);
    out
}

fn headline(out: &mut String, results: &Results, width: usize) {
    let lab = &results.lab;
    let _ = writeln!(out, "{}", clean(&lab.name));
    if !lab.description.is_empty() {
        out.push_str(&wrap(&clean(&lab.description.replace('\n', " ")), width, 0));
    }
    let line = format!(
        "{} simulated, {} of it measured, seed {}{}{}",
        seconds(lab.duration_s),
        seconds(results.measured_s()),
        lab.seed,
        if results.replications.is_some() { "; all but the table of several seeds is of this one" } else { "" },
        if lab.interrupted { "; interrupted, so these are the results so far" } else { "" }
    );
    out.push_str(&wrap(&line, width, 2));
    if let Some(settled_s) = settled_late(results) {
        let line = format!(
            "steady from {0} on (MSER-5), but the results count from {1} on: `--set run.warmup={0}` excludes the rest",
            seconds(settled_s).replace(' ', "").replace('µ', "u"),
            seconds(lab.warmup_s)
        );
        out.push_str(&wrap(&line, width, 2));
    }
    if let Some(precision) = &lab.precision {
        let percent = |share: f64| format!("± {:.2} %", 100.0 * share);
        let line = match precision.reached {
            Some(reached) if precision.met => {
                format!("ended when {} was known within {}", clean(&precision.metric), percent(reached))
            }
            Some(reached) => format!(
                "{} is known within {}, not within {}: a longer `duration` is needed",
                clean(&precision.metric),
                percent(reached),
                percent(precision.wanted)
            ),
            None => format!(
                "too short to tell the precision of {}: a longer `duration` is needed",
                clean(&precision.metric)
            ),
        };
        out.push_str(&wrap(&line, width, 2));
    }
}

/// Returns the end of the warm-up, if the results include a part of it that changes the mean of the
/// requests per second or of the latency by more than one percent. That part is compared with the
/// steps behind it, which are steady.
fn settled_late(results: &Results) -> Option<f64> {
    const MATTERS: f64 = 0.01;
    let (lab, series) = (&results.lab, &results.series);
    let settled_s = lab.settled_s.filter(|&settled_s| settled_s > lab.warmup_s)?;
    let [from, settled] = [lab.warmup_s, settled_s].map(|at_s| (at_s / series.interval_s).round() as usize);
    if series.total.iops.len() < 2 * settled || from >= settled {
        return None;
    }
    let mean = |values: &[f64]| values.iter().sum::<f64>() / values.len().max(1) as f64;
    let changes = |values: &[f64]| {
        let [part, steady] = [from..settled, settled..2 * settled].map(|steps| values.get(steps).map_or(0.0, mean));
        let share = (settled - from) as f64 / (values.len() - from) as f64;
        (part - steady).abs() * share > MATTERS * steady.abs()
    };
    (changes(&series.total.iops) || changes(&series.total.latency_mean_us)).then_some(settled_s)
}

/// MB/s without the unit, which is in the column heading.
fn megabytes(bytes_per_s: f64) -> String {
    let shown = mb_per_s(bytes_per_s);
    shown.trim_end_matches(" MB/s").to_owned()
}

fn io_columns(name: &str) -> Vec<Column> {
    vec![
        Column::left(name),
        Column::right("MB/s"),
        Column::right("least").rank(1),
        Column::right("IOPS"),
        Column::right("mean"),
        Column::right("p50").rank(3),
        Column::right("p95").rank(2),
        Column::right("p99"),
        Column::right("p99.9").rank(1),
        Column::right("max").rank(1),
        Column::right("offered MB/s").rank(4),
        Column::right("failed"),
        Column::right("in flight").rank(2),
    ]
}

fn io_cells(name: String, group: &[&IoStats]) -> Vec<String> {
    let n = group.len().max(1) as f64;
    let mean = |value: fn(&IoStats) -> f64| group.iter().map(|io| value(io)).sum::<f64>() / n;
    let worst = |value: fn(&IoStats) -> f64| group.iter().map(|io| value(io)).fold(0.0, f64::max);
    vec![
        name,
        megabytes(mean(|io| io.throughput_bytes_per_s)),
        match group {
            [_] => String::new(),
            _ => megabytes(group.iter().map(|io| io.throughput_bytes_per_s).fold(f64::INFINITY, f64::min)),
        },
        rate(mean(|io| io.iops)),
        us(mean(|io| io.latency.mean_us)),
        us(worst(|io| io.latency.p50_us)),
        us(worst(|io| io.latency.p95_us)),
        us(worst(|io| io.latency.p99_us)),
        us(worst(|io| io.latency.p99_9_us)),
        us(worst(|io| io.latency.max_us)),
        megabytes(mean(|io| io.offered_bytes_per_s)),
        grouped(group.iter().map(|io| io.ios_failed).sum()),
        match group.iter().map(|io| io.ios_unfinished).sum() {
            0 => String::new(),
            unfinished => grouped(unfinished),
        },
    ]
}

fn hosts(out: &mut String, results: &Results, width: usize) {
    let rows =
        groups(&results.hosts, SINGLE_ROWS, MAX_GROUPS, |host| &host.name, |host| host.io.throughput_bytes_per_s);
    let mut grid = Grid::new(io_columns("Hosts"));
    for Group { name, members } in rows.iter().take(MAX_ROWS) {
        let members: Vec<&IoStats> = members.iter().map(|host| &host.io).collect();
        grid.row(io_cells(name.clone(), &members));
    }
    grid.more(rows.len().saturating_sub(MAX_ROWS));
    grid.last_row(io_cells("all".into(), &[&results.totals.io]));
    out.push('\n');
    out.push_str(&grid.render(width));
    say_what_groups_show(out, "hosts", &rows, width);
}

/// Explains the numbers of a row that combines several elements.
fn say_what_groups_show<T>(out: &mut String, what: &str, rows: &[Group<'_, T>], width: usize) {
    if rows.iter().any(|group| group.members.len() > 1) {
        let text = format!(
            "A row with several {what} shows the mean of each, the throughput of the slowest, and the worst percentiles."
        );
        out.push_str(&wrap(&text, width, 0));
    }
}

fn streams(out: &mut String, results: &Results, width: usize) {
    if results.streams.len() < 2 {
        return;
    }
    let mut grid = Grid::new(io_columns("Streams"));
    let rows =
        groups(&results.streams, SINGLE_ROWS, MAX_GROUPS, |stream| &stream.name, |s| s.io.throughput_bytes_per_s);
    for Group { name, members } in rows.iter().take(MAX_ROWS) {
        let members: Vec<&IoStats> = members.iter().map(|stream| &stream.io).collect();
        grid.row(io_cells(name.clone(), &members));
    }
    grid.more(rows.len().saturating_sub(MAX_ROWS));
    out.push('\n');
    out.push_str(&grid.render(width));
    say_what_groups_show(out, "streams", &rows, width);
}

fn traces(out: &mut String, results: &Results, width: usize) {
    let rows: Vec<_> =
        results.streams.iter().filter_map(|stream| Some((&stream.name, stream.trace.as_ref()?))).collect();
    if rows.is_empty() {
        return;
    }
    let mut grid = Grid::new(vec![
        Column::left("Traces"),
        Column::left("file"),
        Column::right("requests"),
        Column::right("passes"),
        Column::right("split").rank(2),
        Column::right("trims left out").rank(1),
    ]);
    for (name, trace) in rows.iter().take(MAX_ROWS) {
        let counts = [trace.requests, trace.passes, trace.split, trace.trims].map(grouped);
        grid.row([(*name).clone(), trace.file.clone()].into_iter().chain(counts).collect());
    }
    grid.more(rows.len().saturating_sub(MAX_ROWS));
    out.push('\n');
    out.push_str(&grid.render(width));
}

fn storage(out: &mut String, results: &Results, width: usize) {
    if results.storage.is_empty() {
        return;
    }
    let rows = groups(
        &results.storage,
        SINGLE_ROWS,
        MAX_GROUPS,
        |storage| &storage.name,
        |storage| storage.throughput_bytes_per_s,
    );
    let mut grid = Grid::new(vec![
        Column::left("Storage"),
        Column::right("MB/s"),
        Column::right("IOPS"),
        Column::right("busy"),
        Column::right("queue"),
        Column::right("max").rank(1),
        Column::right("mean"),
        Column::right("p99").rank(1),
        Column::right("set full").rank(2),
    ]);
    for Group { name, members } in rows.iter().take(MAX_ROWS) {
        let n = members.len().max(1) as f64;
        let mean =
            |value: fn(&sanloom_api::results::StorageResult) -> f64| members.iter().map(|s| value(s)).sum::<f64>() / n;
        grid.row(vec![
            name.clone(),
            megabytes(mean(|s| s.throughput_bytes_per_s)),
            rate(mean(|s| s.iops)),
            percent(mean(|s| s.utilisation)),
            format!("{:.1}", mean(|s| s.queue.mean)),
            grouped(members.iter().map(|s| s.queue.max).max().unwrap_or(0)),
            us(mean(|s| s.latency.mean_us)),
            us(members.iter().map(|s| s.latency.p99_us).fold(0.0, f64::max)),
            grouped(members.iter().map(|s| s.task_set_full).sum()),
        ]);
    }
    grid.more(rows.len().saturating_sub(MAX_ROWS));
    out.push('\n');
    out.push_str(&grid.render(width));
}

fn links(out: &mut String, results: &Results, width: usize) {
    let worst = worst(
        &results.links,
        |link: &LinkResult| [&link.forward, &link.backward],
        |way: &LinkDirection| way.utilisation.max(way.credit_wait_fraction),
    );
    if worst.is_empty() {
        return;
    }
    let mut grid = Grid::new(vec![
        Column::left("Links, worst first"),
        Column::left("direction").rank(1),
        Column::right("busy"),
        Column::right("MB/s"),
        Column::right("no credit"),
        Column::right("frames").rank(2),
        Column::right("min credit").rank(3),
        Column::right("lost credit").rank(2),
        Column::right("resets"),
    ]);
    for (link, direction) in worst.iter().take(LINK_ROWS) {
        grid.row(vec![
            clean(&link.name),
            clean(&format!("{} > {}", direction.from, direction.to)),
            percent(direction.utilisation),
            megabytes(direction.throughput_bytes_per_s),
            percent(direction.credit_wait_fraction),
            grouped(direction.frames),
            format!("{}/{}", direction.credits_min, direction.bb_credit),
            grouped(direction.credits_lost),
            grouped(link.link_resets),
        ]);
    }
    grid.more(worst.len().saturating_sub(LINK_ROWS));
    out.push('\n');
    out.push_str(&grid.render(width));
}

/// Returns the host with the greatest value in brackets: the first of equals, or nothing if the
/// value is 0.
fn whose(results: &Results, greatest: f64, value: fn(&HostResult) -> f64) -> String {
    let host = results.hosts.iter().find(|host| greatest > 0.0 && value(host) >= greatest);
    host.map_or(String::new(), |host| format!(" ({})", clean(&host.name)))
}

/// Returns each link with the direction of the larger weight, the largest first. Equal links stay
/// in the order of the lab.
fn worst<'r, L, W>(
    links: &'r [L],
    ways: impl Fn(&'r L) -> [&'r W; 2],
    weight: impl Fn(&W) -> f64,
) -> Vec<(&'r L, &'r W)> {
    let busier = |[forward, backward]: [&'r W; 2]| if weight(backward) > weight(forward) { backward } else { forward };
    let mut worst: Vec<(&L, &W)> = links.iter().map(|link| (link, busier(ways(link)))).collect();
    worst.sort_by(|(_, x), (_, y)| weight(y).total_cmp(&weight(x)));
    worst
}

/// Returns the number of lost frames with the reasons; `None` without any.
fn lost(what: &str, drops: &BTreeMap<String, u64>) -> Option<String> {
    let total: u64 = drops.values().sum();
    let reason = |(reason, count): (&String, &u64)| format!("{} {}", grouped(*count), format::words(reason));
    let reasons: Vec<String> = drops.iter().filter(|(_, count)| **count > 0).map(reason).collect();
    (total > 0).then(|| format!("{what}: {} ({})", grouped(total), reasons.join(", ")))
}

/// Returns the number of data frames that N_Ports have discarded after a gap, with the ports;
/// `None` without any.
fn sequence_discards(results: &Results) -> Option<String> {
    let mut ports: Vec<(u64, &str)> =
        results.ports.iter().map(|port| (port.sequence_discards.unwrap_or(0), port.name.as_str())).collect();
    ports.retain(|(frames, _)| *frames > 0);
    ports.sort_by_key(|(frames, _)| std::cmp::Reverse(*frames));
    let total: u64 = ports.iter().map(|(frames, _)| frames).sum();
    let of = |(frames, name): &(u64, &str)| format!("{} {}", grouped(*frames), clean(name));
    let shown: Vec<String> = ports.iter().take(MAX_ROWS).map(of).collect();
    let more = match ports.len().saturating_sub(MAX_ROWS) {
        0 => String::new(),
        more => format!(", and {more} more"),
    };
    (total > 0).then(|| {
        let (total, shown) = (grouped(total), shown.join(", "));
        format!("Data frames discarded behind a late or lost one of their sequence: {total} ({shown}{more})")
    })
}

fn drops(out: &mut String, results: &Results, width: usize) {
    out.push('\n');
    let mut on_ethernet: BTreeMap<String, u64> = BTreeMap::new();
    for way in results.ethernet_links.iter().flat_map(|link| [&link.forward, &link.backward]) {
        for (reason, count) in &way.drops {
            *on_ethernet.entry(reason.clone()).or_default() += count;
        }
    }
    let mut on_infiniband: BTreeMap<String, u64> = BTreeMap::new();
    for way in results.infiniband_links.iter().flat_map(|link| [&link.forward, &link.backward]) {
        for (reason, count) in &way.drops {
            *on_infiniband.entry(reason.clone()).or_default() += count;
        }
    }
    let planes = [
        ("Frames dropped", &results.drops),
        ("Ethernet frames lost", &on_ethernet),
        ("InfiniBand packets lost", &on_infiniband),
    ];
    let lines = planes.into_iter().filter_map(|(what, drops)| lost(what, drops));
    let lines: Vec<String> = lines.chain(sequence_discards(results)).chain(routers::drops(results)).collect();
    if lines.is_empty() {
        out.push_str("No frame was dropped.\n");
    }
    lines.iter().for_each(|line| out.push_str(&wrap(line, width, 2)));
    let totals = &results.totals;
    let _ = writeln!(
        out,
        "Longest stall: {}{}",
        if totals.longest_stall_s > 0.0 { seconds(totals.longest_stall_s) } else { "0 s".into() },
        whose(results, totals.longest_stall_s, |host| host.longest_stall_s)
    );
    let longest_us = totals.io.latency.max_us;
    if longest_us > 0.0 {
        let whose = whose(results, longest_us, |host| host.io.latency.max_us);
        let _ = writeln!(out, "Longest request: {}{whose}", us(longest_us));
    }
    match totals.io.ios_unfinished {
        0 => {}
        1 => out.push_str("1 request was still in flight at the end; it has neither completed nor failed.\n"),
        unfinished => {
            let unfinished = grouped(unfinished);
            let line = format!(
                "{unfinished} requests were still in flight at the end; they have neither completed nor failed."
            );
            out.push_str(&wrap(&line, width, 2));
        }
    }
    let recovered = [
        (totals.commands_aborted, "commands aborted"),
        (totals.commands_retried, "retried"),
        (totals.path_failovers, "path failovers"),
        (totals.paths_lost, "paths lost"),
        (totals.link_resets, "link resets"),
        (totals.deadlocks, "deadlocks"),
    ];
    let recovered: Vec<String> = recovered
        .iter()
        .filter(|(count, _)| *count > 0)
        .map(|(count, what)| format!("{what} {}", grouped(*count)))
        .collect();
    if !recovered.is_empty() {
        out.push_str(&wrap(&format!("Recovery: {}", recovered.join(", ")), width, 2));
    }
}

/// Renders findings as numbered paragraphs, also for other commands. Empty text if there are none.
pub fn findings(out: &mut String, findings: &[Finding], width: usize) {
    for (i, finding) in findings.iter().enumerate() {
        let title = format!("{}. {}: {}", i + 1, finding.kind.words(), clean(&finding.title));
        out.push('\n');
        out.push_str(&wrap(&title, width, 3));
        for text in [&finding.detail, &finding.remedy] {
            if !text.is_empty() {
                out.push_str(&wrap(&format!("   {}", clean(text)), width, 3));
            }
        }
        for (number, remedy) in (0..).zip(&finding.remedies) {
            if number > 0 {
                out.push_str(&wrap(&format!("   {}", clean(&remedy::text(remedy))), width, 3));
            }
            out.push_str(&format!("   Repeat it: {}\n", clean(&remedy.command)));
        }
        if !finding.cycle.is_empty() {
            let cycle = finding.cycle.iter().chain(finding.cycle.first());
            let cycle: Vec<String> = cycle.map(|port| clean(port)).collect();
            out.push_str(&wrap(&format!("   Cycle: {}", cycle.join(" > ")), width, 3));
        }
        let victims: Vec<String> = finding.victims.iter().take(8).map(|of| victim(finding.kind, of)).collect();
        if !victims.is_empty() {
            let more = finding.victims.len() - victims.len();
            let more = if more > 0 { format!(", and {more} more") } else { String::new() };
            out.push_str(&wrap(&format!("   Victims: {}{more}", victims.join(", ")), width, 5));
        }
    }
}

/// Describes the effect on a victim: the loss of throughput where it is known, otherwise the wait
/// for credit. Victims of congestion that spreads are receivers: their frames wait, they do not.
fn victim(kind: FindingKind, victim: &Victim) -> String {
    let name = clean(&victim.name);
    if victim.before_bytes_per_s > 0.0 {
        let (during, before) = (mb_per_s(victim.during_bytes_per_s), mb_per_s(victim.before_bytes_per_s));
        format!("{name} {during} instead of {before} (-{})", percent(victim.loss()))
    } else if victim.credit_wait_s > 0.0 {
        let subject = match kind {
            FindingKind::CongestionSpreading => format!("packets for {name}"),
            _ => name,
        };
        format!("{subject} waited {} for credit", seconds(victim.credit_wait_s))
    } else {
        name
    }
}

/// Renders verdicts on expectations, one line each. Empty text if there are none.
pub fn expectations(out: &mut String, results: &Results, width: usize) {
    let verdicts = &results.expectations;
    if verdicts.is_empty() {
        return;
    }
    let held = verdicts.iter().filter(|verdict| verdict.ok).count();
    let of_one = match &results.replications {
        Some(_) => format!(" with seed {}", results.lab.seed),
        None => String::new(),
    };
    let _ = writeln!(out, "\nExpectations: {held} of {} hold{of_one}", verdicts.len());
    for verdict in verdicts {
        let value = match verdict.value {
            Some(value) => format::measured(&verdict.metric, value),
            None => "no such number".into(),
        };
        let remedy = match (&verdict.reason, verdict.value) {
            (Some(reason), _) => format!("; {}", clean(reason)),
            (None, Some(_)) => String::new(),
            (None, None) => format!("; {}", metric::remedy(&Metrics::new(results), &verdict.metric)),
        };
        let line = format!(
            "{}  {} = {value}, wanted {}{remedy}",
            if verdict.ok { "  ok  " } else { "  FAIL" },
            clean(&verdict.metric),
            bounds(verdict)
        );
        out.push_str(&wrap(&line, width, 8));
    }
}

/// Describes the bounds of an expectation.
pub fn bounds(verdict: &ExpectationResult) -> String {
    let shown = |value: f64| format::measured(&verdict.metric, value);
    match (verdict.min, verdict.max) {
        (Some(min), Some(max)) if min == max => format!("exactly {}", shown(min)),
        (Some(min), Some(max)) => format!("{} to {}", shown(min), shown(max)),
        (Some(min), None) => format!("at least {}", shown(min)),
        (None, Some(max)) => format!("at most {}", shown(max)),
        (None, None) => "a number".into(),
    }
}

fn ending(out: &mut String, results: &Results, width: usize) {
    let books = &results.conservation;
    if !books.holds() {
        let text = format!(
            "THE BOOKS DO NOT BALANCE, which is a bug of sanloom: {} frames sent, {} delivered, {} dropped, {} in \
             flight; {} requests issued, {} completed, {} failed, {} in flight",
            books.frames_sent,
            books.frames_delivered,
            books.frames_dropped,
            books.frames_in_flight,
            books.commands_issued,
            books.commands_completed,
            books.commands_failed,
            books.commands_in_flight
        );
        out.push('\n');
        out.push_str(&wrap(&text, width, 0));
    }
    let engine = &results.engine;
    if engine.cpu_s > 0.0 {
        let text = format!(
            "{} frame-hops in {} of CPU time: {:.1} M/s; {} resident",
            grouped(engine.frame_hops),
            seconds(engine.cpu_s),
            engine.frame_hops_per_cpu_s / 1e6,
            format::bytes(engine.rss_bytes)
        );
        out.push('\n');
        out.push_str(&wrap(&text, width, 2));
    }
}
