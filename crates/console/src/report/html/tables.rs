//! Tables of the report, with an empty element for each chart beside them.

use super::table::ALL_IN_JSON;
use super::{Cell, Table};
use crate::report::format::{self, grouped, seconds};
use sanloom_api::results::{HostResult, IoStats, Latency, LinkDirection, LinkKind, PortKind, Results};
use std::collections::BTreeMap;
use std::fmt::Write as _;

const HOST_ROWS: usize = 1_000;
const LINK_ROWS: usize = 1_000;
const PORT_ROWS: usize = 500;
const EVENT_ROWS: usize = 500;

/// Distribution of response times, and the percentiles.
pub fn latency(results: &Results) -> String {
    let totals = &results.totals;
    let mut out = String::new();
    if totals.latency_histogram.is_empty() {
        out.push_str("<p class=\"none\">No request ended in the measured time.</p>\n");
    } else {
        out.push_str(
            "<div class=\"pair\"><div class=\"chart\" data-chart=\"histogram\"></div>\
             <div class=\"chart\" data-chart=\"cdf\"></div></div>\n",
        );
    }
    let mut table = Table::new("latency")
        .text("Of")
        .number("Requests")
        .number("Mean")
        .number("Median")
        .number("95 %")
        .number("99 %")
        .number("99.9 %")
        .number("Longest");
    let mut row = |name: &str, l: &Latency| {
        if l.count > 0 {
            table.row(vec![
                Cell::text(name),
                Cell::count(l.count),
                Cell::us(l.mean_us),
                Cell::us(l.p50_us),
                Cell::us(l.p95_us),
                Cell::us(l.p99_us),
                Cell::us(l.p99_9_us),
                Cell::us(l.max_us),
            ]);
        }
    };
    row("all requests", &totals.io.latency);
    row("reads", &totals.read_latency);
    row("writes", &totals.write_latency);
    row("all, without the host's queues", &totals.io.command_latency);
    for stream in &results.streams {
        row(&format!("stream {}", stream.name), &stream.io.latency);
    }
    out.push_str(&table.html());
    out
}

/// Heat map and table of links.
pub fn links(results: &Results) -> String {
    let mut out = String::from(
        "<div class=\"bar\"><h3>Over time</h3><span class=\"tabs\" data-tabs=\"heat\"></span></div>\n\
         <div class=\"heat\" data-chart=\"heat\"></div>\n",
    );
    let (shown, all) = (super::data::links_shown(results), results.series.links.len());
    if shown < all {
        let _ = writeln!(
            out,
            "<p class=\"note\">The {shown} busiest or most starved of {all} directions. The series files have all.\
             </p>"
        );
    }
    let mut rows: Vec<(&str, LinkKind, &str, &LinkDirection, u64, f64)> = Vec::new();
    for link in &results.links {
        for direction in [&link.forward, &link.backward] {
            rows.push((&link.name, link.kind, &link.rate, direction, link.link_resets, link.down_s));
        }
    }
    rows.sort_by(|a, b| {
        let weight = |d: &LinkDirection| d.utilisation.max(d.credit_wait_fraction);
        weight(b.3).total_cmp(&weight(a.3))
    });
    let mut table = Table::new("links")
        .text("Link")
        .text("From")
        .text("To")
        .text("Kind")
        .text("Rate")
        .number("Utilisation")
        .number("Waited for credit")
        .number("MB/s")
        .number("Frames")
        .number("R_RDY")
        .number("Idle words")
        .number("Credit left")
        .number("Credit lost")
        .number("Resets")
        .number("Lost frames")
        .number("Down")
        .cap(LINK_ROWS, ALL_IN_JSON);
    for (name, kind, rate, d, resets, down_s) in rows {
        table.row(vec![
            Cell::text(name),
            Cell::text(&d.from),
            Cell::text(&d.to),
            Cell::text(match kind {
                LinkKind::Isl => "ISL",
                LinkKind::Host => "host",
                LinkKind::Storage => "storage",
                LinkKind::Direct => "direct",
                LinkKind::Loop => "loop",
            }),
            Cell::text(rate),
            Cell::share(d.utilisation, "load"),
            Cell::share(d.credit_wait_fraction, "wait"),
            Cell::mb_per_s(d.throughput_bytes_per_s),
            Cell::count(d.frames),
            Cell::count(d.r_rdys),
            Cell::count(d.idle_words),
            Cell::number(d.credits_min as f64, format!("{}/{}", d.credits_min, d.bb_credit)),
            Cell::bad_count(d.credits_lost),
            Cell::bad_count(resets),
            Cell::bad_count(d.frames_lost.values().sum()),
            Cell::number(down_s, if down_s > 0.0 { seconds(down_s) } else { "–".into() }),
        ]);
    }
    out.push_str("<h3>Each direction</h3>\n");
    out.push_str(&table.html());
    out.push_str(
        "<p class=\"note\">“Credit left” is the fewest buffer-to-buffer credits that the sender ever had, of those \
         granted. “Waited for credit” is the share of the time that a frame was ready to leave and no credit was \
         there.</p>\n",
    );
    out
}

fn io_table(id: &'static str, first: &str) -> Table {
    Table::new(id)
        .text(first)
        .number("MB/s")
        .number("IOPS")
        .number("Offered MB/s")
        .number("Mean")
        .number("99 %")
        .number("99.9 %")
        .number("Longest")
        .number("Failed")
        .number("In flight at the end")
        .cap(HOST_ROWS, ALL_IN_JSON)
}

fn io_cells(name: &str, io: &IoStats) -> Vec<Cell> {
    vec![
        Cell::text(name),
        Cell::mb_per_s(io.throughput_bytes_per_s),
        Cell::number(io.iops, format::rate(io.iops)),
        Cell::mb_per_s(io.offered_bytes_per_s),
        Cell::us(io.latency.mean_us),
        Cell::us(io.latency.p99_us),
        Cell::us(io.latency.p99_9_us),
        Cell::us(io.latency.max_us),
        Cell::bad_count(io.ios_failed),
        Cell::count(io.ios_unfinished),
    ]
}

/// Hosts, their queues, streams, and degraded paths.
pub fn hosts(results: &Results) -> String {
    let mut table = io_table("hosts", "Host")
        .number("Waiting")
        .number("Outstanding")
        .number("CPU")
        .number("Bus")
        .number("Tried again")
        .number("Failovers")
        .number("Longest stall");
    for host in &results.hosts {
        let mut cells = io_cells(&host.name, &host.io);
        cells.extend([
            Cell::number(host.waiting.mean, format!("{:.1}", host.waiting.mean)),
            Cell::number(host.outstanding.mean, format!("{:.1}", host.outstanding.mean)),
            Cell::share(host.cpu_utilisation, "load"),
            Cell::share(host.bus_utilisation, "load"),
            Cell::bad_count(host.commands_retried),
            Cell::count(host.path_failovers),
            Cell::number(host.longest_stall_s, seconds(host.longest_stall_s)),
        ]);
        table.row(cells);
    }
    let mut out = table.html();
    if !results.streams.is_empty() {
        let mut table = io_table("streams", "Stream");
        for stream in &results.streams {
            table.row(io_cells(&stream.name, &stream.io));
        }
        out.push_str("<h3>Streams</h3>\n");
        out.push_str(&table.html());
    }
    out.push_str(&paths(&results.hosts));
    out
}

fn paths(hosts: &[HostResult]) -> String {
    let total: usize = hosts.iter().map(|host| host.paths.len()).sum();
    let ill: Vec<_> = hosts
        .iter()
        .flat_map(|host| host.paths.iter().map(move |path| (host, path)))
        .filter(|(_, path)| path.state != "active" || path.commands_failed > 0)
        .collect();
    if total == 0 {
        return String::new();
    }
    if ill.is_empty() {
        return format!(
            "<p class=\"note\">All {} paths are active, and no command failed on one.</p>\n",
            grouped(total as u64)
        );
    }
    let mut table = Table::new("paths")
        .text("Host")
        .text("Path")
        .text("State at the end")
        .number("Commands")
        .number("Failed on it")
        .cap(HOST_ROWS, ALL_IN_JSON);
    for (host, path) in ill {
        table.row(vec![
            Cell::text(&host.name),
            Cell::text(&path.name),
            Cell::text(&path.state),
            Cell::count(path.commands),
            Cell::bad_count(path.commands_failed),
        ]);
    }
    format!("<h3>Paths in trouble (of {})</h3>\n{}", grouped(total as u64), table.html())
}

/// Storage systems.
pub fn storage(results: &Results) -> String {
    let mut table = Table::new("storage")
        .text("Storage")
        .number("MB/s")
        .number("IOPS")
        .number("Busy")
        .number("Queue")
        .number("Most queued")
        .number("Mean")
        .number("99 %")
        .number("Longest")
        .number("Waiting")
        .number("TASK SET FULL")
        .cap(HOST_ROWS, ALL_IN_JSON);
    for s in &results.storage {
        table.row(vec![
            Cell::text(&s.name),
            Cell::mb_per_s(s.throughput_bytes_per_s),
            Cell::number(s.iops, format::rate(s.iops)),
            Cell::share(s.utilisation, "load"),
            Cell::number(s.queue.mean, format!("{:.1}", s.queue.mean)),
            Cell::count(s.queue.max),
            Cell::us(s.latency.mean_us),
            Cell::us(s.latency.p99_us),
            Cell::us(s.latency.max_us),
            Cell::us(s.waiting.mean_us),
            Cell::bad_count(s.task_set_full),
        ]);
    }
    table.html()
}

/// Ports of arbitrated loops; empty without loops.
pub fn loops(results: &Results) -> String {
    if results.loops.is_empty() {
        return String::new();
    }
    let mut table = Table::new("loops")
        .text("Loop")
        .text("Port")
        .text("AL_PA")
        .number("Tenancies")
        .number("Holds it")
        .number("Arbitration: mean")
        .number("Longest")
        .cap(HOST_ROWS, ALL_IN_JSON);
    for (of, port) in results.loops.iter().flat_map(|of| of.ports.iter().map(move |port| (of, port))) {
        table.row(vec![
            Cell::text(&of.name),
            Cell::text(&port.name),
            Cell::text(&port.al_pa),
            Cell::count(port.tenancies),
            Cell::share(port.held_fraction, "load"),
            Cell::us(port.arbitration_mean_us),
            Cell::us(port.arbitration_max_us),
        ]);
    }
    format!("<h3>Arbitrated loops</h3>\n{}", table.html())
}

/// Switches and ports.
pub fn ports(results: &Results) -> String {
    let mut switches = Table::new("switches")
        .text("Switch")
        .number("Domain")
        .number("Frames")
        .number("Buffers used")
        .number("Frames wait: mean")
        .number("99 %")
        .number("Longest")
        .number("Logins")
        .number("Name server")
        .number("RSCN")
        .number("Discards")
        .cap(HOST_ROWS, ALL_IN_JSON);
    for s in &results.switches {
        switches.row(vec![
            Cell::text(&s.name),
            Cell::count(u64::from(s.domain)),
            Cell::count(s.frames_forwarded),
            Cell::number(s.buffers_used_mean, format!("{:.2}", s.buffers_used_mean)),
            Cell::us(s.waiting.mean_us),
            Cell::us(s.waiting.p99_us),
            Cell::us(s.waiting.max_us),
            Cell::count(s.logins),
            Cell::count(s.name_server_requests),
            Cell::count(s.rscns_sent),
            discards(&s.discards),
        ]);
    }
    let mut sorted: Vec<_> = results.ports.iter().collect();
    sorted.sort_by(|a, b| {
        b.zero_credit_fraction
            .total_cmp(&a.zero_credit_fraction)
            .then_with(|| b.waiting.mean_us.total_cmp(&a.waiting.mean_us))
    });
    let mut ports = Table::new("ports")
        .text("Port")
        .text("Type")
        .text("Link")
        .number("Zero credit")
        .number("Frames sent")
        .number("Received")
        .number("Buffers used")
        .number("Most")
        .number("Frames wait: mean")
        .number("99 %")
        .number("Longest")
        .number("Discards")
        .cap(PORT_ROWS, "The ports with the least credit. The JSON results have all.");
    for p in sorted {
        let mut of_port = p.discards.clone();
        of_port.extend(p.sequence_discards.map(|frames| ("behind_a_gap".to_owned(), frames)));
        ports.row(vec![
            Cell::text(&p.name),
            Cell::text(match p.kind {
                PortKind::NPort => "N_Port",
                PortKind::FPort => "F_Port",
                PortKind::EPort => "E_Port",
                PortKind::NlPort => "NL_Port",
                PortKind::FlPort => "FL_Port",
            }),
            Cell::text(&p.link),
            Cell::share(p.zero_credit_fraction, "wait"),
            Cell::count(p.frames_sent),
            Cell::count(p.frames_received),
            Cell::number(p.buffers_used_mean, format!("{:.2}", p.buffers_used_mean)),
            Cell::number(p.buffers_used_max as f64, format!("{}/{}", p.buffers_used_max, p.buffers)),
            Cell::us(p.waiting.mean_us),
            Cell::us(p.waiting.p99_us),
            Cell::us(p.waiting.max_us),
            discards(&of_port),
        ]);
    }
    format!("{}<h3>Ports</h3>\n{}", switches.html(), ports.html())
}

fn discards(by_reason: &BTreeMap<String, u64>) -> Cell {
    let total: u64 = by_reason.values().sum();
    let reasons: Vec<String> = by_reason
        .iter()
        .filter(|(_, count)| **count > 0)
        .map(|(reason, count)| format!("{} {}", grouped(*count), format::words(reason)))
        .collect();
    if total == 0 { Cell::count(0) } else { Cell::number(total as f64, reasons.join(", ")).class("bad") }
}

/// Drops by reason, frame accounting, and events.
pub fn frames(results: &Results) -> String {
    let mut drops = Table::new("drops").text("Reason").number("Frames dropped");
    for (reason, count) in &results.drops {
        drops.row(vec![Cell::text(&format::words(reason)), Cell::bad_count(*count)]);
    }
    let books = &results.conservation;
    let mut table = Table::new("books")
        .text("The whole run")
        .number("Made")
        .number("Arrived, completed")
        .number("Dropped, failed")
        .number("On the way at the end");
    table.row(vec![
        Cell::text("frames"),
        Cell::count(books.frames_sent),
        Cell::count(books.frames_delivered),
        Cell::bad_count(books.frames_dropped),
        Cell::count(books.frames_in_flight),
    ]);
    table.row(vec![
        Cell::text("requests"),
        Cell::count(books.commands_issued),
        Cell::count(books.commands_completed),
        Cell::bad_count(books.commands_failed),
        Cell::count(books.commands_in_flight),
    ]);
    let mut events = Table::new("events")
        .number("At")
        .text("Event")
        .text("What happened")
        .text("Subject")
        .cap(EVENT_ROWS, ALL_IN_JSON);
    for event in &results.events {
        events.row(vec![
            Cell::number(event.at_s, format!("{:.6} s", event.at_s)),
            Cell::text(event.kind.words()),
            Cell::text(&event.what),
            Cell::text(event.subject.as_deref().unwrap_or("")),
        ]);
    }
    let verdict = if books.holds() {
        "<p class=\"note\">The books balance: everything that was sent has arrived, was dropped for a reason, or was \
         on its way at the end.</p>\n"
    } else {
        "<p class=\"verdict bad\">The books do not balance.</p>\n"
    };
    format!(
        "<h3>Dropped in the measured time</h3>\n{}<h3>Books</h3>\n{}{verdict}<h3>Events</h3>\n{}",
        drops.html(),
        table.html(),
        events.html()
    )
}
