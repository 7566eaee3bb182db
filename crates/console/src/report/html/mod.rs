//! One self-contained HTML file: charts, tables, the drawing of the topology, and the lab file.
//!
//! Tables, findings and numbers are plain HTML and readable without scripts. uPlot (in
//! `assets/uplot`) draws the charts from JSON inside the page. A content security policy in the
//! page forbids every load.

mod backstore;
mod data;
mod findings;
mod map;
mod page;
mod planes;
mod study;
mod summary;
mod table;
mod tables;

pub use page::escape;
pub use study::{ComparedRow, compare, sweep, whatif};

use super::format::{self, grouped, seconds};
use page::{Page, Section};
use sanloom_api::graph::Graph;
use sanloom_api::results::Results;
use sanloom_api::words::plural;
use std::fmt::Write as _;

pub use page::plain_page;
pub use table::{Cell, Table};

const REPORT_SCRIPT: &str = include_str!("../../../assets/report.js");
const TOPOLOGY_SCRIPT: &str = include_str!("../../../assets/topology.js");

/// Renders the report of one simulation. `graph` is the layout of the lab; without it, the section
/// states that there is no drawing. `redundancy` are the sentences of
/// [`Report::redundancy`](sanloom_lab::topology::Report::redundancy).
pub fn report(results: &Results, graph: Option<&Graph>, redundancy: &[String]) -> String {
    let lab = &results.lab;
    let mut page = Page::new(&format!("{} – sanloom", lab.name));
    page.heading(&lab.name, &lab.description, &facts(results));
    page.section(Section::new("summary", "Summary", summary::render(results)));
    page.section(Section::new("findings", "Findings", findings::render(results)));
    page.section(Section::new("topology", "Topology", topology(results, graph, redundancy)));
    page.section(Section::new("throughput", "Throughput over time", throughput(results)));
    page.section(Section::new("latency", "Response time", tables::latency(results)));
    page.section(Section::new(
        "links",
        "Links: utilisation and credit starvation",
        [tables::links(results), planes::tables(results)].concat(),
    ));
    page.section(Section::new("hosts", "Hosts and streams", tables::hosts(results)));
    let storage = [tables::storage(results), backstore::tables(results), tables::loops(results)].concat();
    page.section(Section::new("storage", "Storage", storage));
    page.section(Section::new("ports", "Switches and ports", tables::ports(results)));
    page.section(Section::new("frames", "Frames, drops and events", tables::frames(results)));
    page.section(Section::new("lab", "Lab file", lab_file(results)));
    let mut data = data::of(results);
    if let Some(graph) = graph {
        data["map"] = map::data(results, graph);
    }
    page.data(&data);
    page.charts();
    page.script(REPORT_SCRIPT);
    page.script(map::script());
    page.script(TOPOLOGY_SCRIPT);
    page.footer(&cost(results));
    page.finish()
}

fn facts(results: &Results) -> Vec<String> {
    let lab = &results.lab;
    let mut out = vec![
        format!("{} simulated, {} warm-up", seconds(lab.duration_s), seconds(lab.warmup_s)),
        format!("seed {}", lab.seed),
        format!(
            "{}, {}, {} switch{}, {}",
            plural(results.hosts.len(), "host"),
            plural(results.storage.len(), "storage system"),
            results.switches.len(),
            if results.switches.len() == 1 { "" } else { "es" },
            plural(results.links.len(), "link")
        ),
    ];
    if !lab.sanloom_version.is_empty() {
        out.push(format!("sanloom {}", lab.sanloom_version));
    }
    if lab.interrupted {
        out.push("interrupted: results so far".into());
    }
    out
}

fn topology(results: &Results, graph: Option<&Graph>, redundancy: &[String]) -> String {
    if graph.is_none() {
        return "<p class=\"none\">No drawing was made.</p>\n".into();
    }
    let mut out = String::from(
        "<div class=\"drawing\"><noscript>The drawing needs scripts; topology.svg beside this page does not.</noscript>\
         </div>\n<p class=\"note\">Drag to move, Ctrl and the wheel to zoom; a click on a node or cable shows \
         its ports over time. Many hosts share a box; zoom in to see each. Lines are coloured by utilisation.\
         <i class=\"key k-fault\"></i>fault of the lab<i class=\"key k-culprit\"></i>cause of a finding\
         <i class=\"key k-victim\"></i>affected by a finding</p>\n\
         <div class=\"bar\" data-bar=\"ports\" hidden><h3>Ports over time</h3><span class=\"tabs\" data-tabs=\"ports\"></span></div>\n\
         <div data-chart=\"ports\" hidden></div>\n",
    );
    let down: Vec<&str> =
        results.links.iter().filter(|link| link.down_s > 0.0).map(|link| link.name.as_str()).collect();
    if !down.is_empty() {
        let _ = writeln!(out, "<p class=\"note\">Down for some time: {}.</p>", escape(&down.join(", ")));
    }
    if !redundancy.is_empty() {
        out.push_str("<h3>Redundancy at the start, as zones and masks permit</h3>\n<ul class=\"redundancy\">\n");
        for sentence in redundancy {
            let _ = writeln!(out, "<li>{}</li>", escape(sentence));
        }
        out.push_str("</ul>\n");
    }
    out
}

fn throughput(results: &Results) -> String {
    let mut out = String::from(
        "<div class=\"chart\" data-chart=\"total\"><noscript>The chart needs scripts; the tables below do not.\
         </noscript></div>\n<div class=\"chart\" data-chart=\"response\"></div>\n\
         <div class=\"bar\"><h3>Each host</h3><span class=\"tabs\" data-tabs=\"host\"></span></div>\n\
         <div class=\"chart\" data-chart=\"hosts\"></div>\n",
    );
    let shown = data::hosts_shown(results);
    if shown < results.series.hosts.len() {
        let _ = writeln!(
            out,
            "<p class=\"note\">{shown} of {} hosts: those that the findings name, then the slowest and the fastest. \
             The series files have all.</p>",
            results.series.hosts.len()
        );
    }
    if results.faults.is_empty() {
        out.push_str("<p class=\"note\">The lab has no faults. Drag to zoom, double-click to see all.</p>\n");
    } else {
        out.push_str("<p class=\"note\">Drag to zoom, double-click to see all. Faults are marked:</p>\n");
        let mut faults = Table::new("faults").text("Fault").number("From").number("Until");
        for fault in &results.faults {
            faults.row(vec![
                Cell::text(&fault.what),
                Cell::number(fault.at_s, format!("{} s", format::trimmed(fault.at_s, 6))),
                match fault.until_s {
                    Some(until) => Cell::number(until, format!("{} s", format::trimmed(until, 6))),
                    None => Cell::text("stays, or is over at once"),
                },
            ]);
        }
        out.push_str(&faults.html());
    }
    out
}

fn lab_file(results: &Results) -> String {
    let mut out = String::new();
    if let Some(command) = &results.lab.command {
        let _ = writeln!(out, "<p>This command repeats the run:</p>\n<pre class=\"command\">{}</pre>", escape(command));
    }
    match &results.lab.source {
        Some(source) => {
            let _ = writeln!(
                out,
                "<pre class=\"source\" tabindex=\"0\" aria-label=\"Lab file\" role=\"region\">{}</pre>",
                escape(source)
            );
        }
        None => out.push_str("<p class=\"none\">The results do not carry the text of the lab.</p>\n"),
    }
    out
}

fn cost(results: &Results) -> String {
    let engine = &results.engine;
    if engine.cpu_s <= 0.0 {
        return String::new();
    }
    format!(
        "{} frame-hops in {} of processor time ({:.1} million per second).",
        grouped(engine.frame_hops),
        seconds(engine.cpu_s),
        engine.frame_hops_per_cpu_s / 1e6
    )
}
