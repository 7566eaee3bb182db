//! The HTML pages: self-contained, complete, well formed, and safe against hostile names.

use crate::report::fixture;
use sanloom_api::results::{
    CutOff, EthernetSwitchResult, FcipLinkResult, IpRouterResult, IscsiSessionResult, Results, Setting, SweepRow,
    WhatIfRow,
};
use sanloom_console::report::figure9::{self, Curve, Panel, PaperPoint};
use sanloom_console::report::html::{ComparedRow, compare, report, sweep, whatif};
use sanloom_console::report::terminal;
use sanloom_console::whatif::NOTE_ON_SERVERS;
use sanloom_console::whatif::failure::{self, Kind};
use sanloom_console::whatif::trial::Plan;
use sanloom_lab::topology::{Reach, Report};

/// Writes the pages to the folder named by `SANLOOM_PAGES`, for inspection.
#[test]
fn pages_for_a_look() {
    let Some(folder) = std::env::var_os("SANLOOM_PAGES") else {
        return;
    };
    for (name, page) in pages() {
        std::fs::write(std::path::Path::new(&folder).join(name), page).unwrap();
    }
}

fn pages() -> Vec<(&'static str, String)> {
    vec![
        ("report.html", report(&fixture::core_edge(), Some(&fixture::graph()), &[])),
        ("big.html", report(&fixture::fabric(1_000, 64), Some(&fixture::graph()), &[])),
        ("empty.html", report(&Results::default(), None, &[])),
        ("sweep.html", sweep("synthetic", &sweep_rows(), 15, "sanloom sweep synthetic.toml")),
        ("whatif.html", whatif("synthetic", &whatif_rows(), "sanloom whatif synthetic.toml")),
        ("figure9.html", figure9::html(&panels(), "MB/s", "sanloom reproduce sansim")),
    ]
}

fn sweep_rows() -> Vec<SweepRow> {
    let mut rows = Vec::new();
    for (i, size) in ["2KiB", "8KiB", "32KiB", "128KiB", "512KiB"].iter().enumerate() {
        for (k, queueing) in ["fifo", "any", "voq"].iter().enumerate() {
            let point = (i * 3 + k) as u64;
            let setting = |key: &str, value: &str| Setting { key: key.into(), value: value.into() };
            rows.push(SweepRow {
                point,
                settings: vec![setting("workloads.reads.size", size), setting("switches.*.queueing", queueing)],
                metrics: [
                    ("totals.throughput_bytes_per_s".to_owned(), 1e8 * (i + 1) as f64 * (1.0 + 0.1 * k as f64)),
                    ("totals.latency.p99_us".to_owned(), 500.0 * (i + 1) as f64),
                ]
                .into(),
                error: None,
                ..SweepRow::default()
            });
        }
    }
    rows[7].metrics.clear();
    rows[7].error = Some("the lab is not valid at this point".into());
    rows
}

fn whatif_rows() -> Vec<WhatIfRow> {
    (1..=8)
        .map(|i| WhatIfRow {
            name: format!("isl{i}"),
            kind: "link".into(),
            worst_bytes_per_s: 3e8,
            throughput_bytes_per_s: 6.4e8 - 3e7 * f64::from(i),
            healthy_bytes_per_s: 6.4e8,
            longest_stall_s: 0.01 * f64::from(i),
            stalled_host: format!("server{i}"),
            longest_request_us: 12_000.0 * f64::from(i),
            paths_lost: u64::from(i == 3),
            pairs_cut_off: u64::from(i == 3),
            stall_ended: true,
            recovered: true,
            recovery_s: Some(0.02 * f64::from(i)),
            ..WhatIfRow::default()
        })
        .collect()
}

fn panels() -> Vec<Panel> {
    ["Case I: no failure", "Case II: ISL1 down", "Case III: ISL8 down", "Case IV: both down"]
        .iter()
        .enumerate()
        .map(|(i, title)| {
            let limit = 80.0 - 11.0 * i as f64;
            let curve = |name: &str, limit: f64| Curve {
                name: name.into(),
                points: (1..=10).map(|k| f64::from(k) * 10.0).map(|x| (x, x.min(limit))).collect(),
            };
            Panel {
                title: (*title).into(),
                curves: vec![curve("servers 1–4, 32 KB", limit), curve("servers 5–8, 32 KB", limit + 4.0)],
                paper: vec![
                    PaperPoint {
                        name: "paper: servers 1–4".into(), offered: None, throughput: limit - 2.0, curve: 0
                    },
                    PaperPoint { name: "paper: stated point".into(), offered: Some(40.0), throughput: 36.5, curve: 1 },
                ],
            }
        })
        .collect()
}

#[test]
fn a_report_has_every_section() {
    let page = report(&fixture::core_edge(), Some(&fixture::graph()), &[]);
    for id in [
        "summary",
        "findings",
        "topology",
        "throughput",
        "latency",
        "links",
        "hosts",
        "storage",
        "ports",
        "frames",
        "lab",
    ] {
        assert!(page.contains(&format!("<section id=\"{id}\">")), "{id}");
        assert!(page.contains(&format!("<a href=\"#{id}\">")), "{id}");
    }
    for chart in ["total", "response", "hosts", "histogram", "cdf", "heat", "finding"] {
        assert!(page.contains(&format!("data-chart=\"{chart}\"")), "{chart}");
    }
    for text in [
        "storage3 drains slowly and starves 3 neighbours",
        "1 of 3 expectations of the lab hold",
        "storage3 returns each R_RDY 40us late",
        "sanloom sim examples/slow-drain.toml --seed 7",
        "name = &quot;synthetic-core-edge&quot;",
        "hold time",
        "99.9 %",
    ] {
        assert!(page.contains(text), "{text}");
    }
    assert!(page.contains("class Map2d {") && !page.contains("export ") && !page.contains("<svg"));
}

/// Returns the HTML of a table's first row, and the texts of its cells.
fn first_row<'p>(page: &'p str, table: &str) -> (&'p str, Vec<&'p str>) {
    let rows = page.split(&format!("<table id=\"t-{table}\"")).nth(1).and_then(|rest| rest.split("</table>").next());
    let first = rows.and_then(|rows| rows.split("<tbody>").nth(1)?.split("</tr>").next()).unwrap_or_default();
    // The text between the tags.
    let shown = first.split('<').filter_map(|part| part.split_once('>')).map(|(_, text)| text.trim());
    (first, shown.filter(|text| !text.is_empty()).collect())
}

#[test]
fn switches_of_ethernet_sessions_of_iscsi_and_fcip_links_have_tables() {
    let mut results = fixture::core_edge();
    let page = report(&results, None, &[]);
    assert!(!page.contains("Sessions of iSCSI") && !page.contains("FCIP links"));
    let session = |name: &str, segments_retransmitted| IscsiSessionResult {
        name: name.to_owned(),
        state: "up".to_owned(),
        connections: 1,
        commands: 12_000,
        command_waits: 34,
        r2ts: 56,
        segments_retransmitted,
        retransmission_timeouts: 2,
        fast_recoveries: 3,
        host_window_bytes: 65_536,
        storage_window_bytes: 131_072,
        ..IscsiSessionResult::default()
    };
    results.iscsi_sessions = vec![session("server1 eth0>array1:portal0", 0), session("<server2>", 1_234)];
    results.ethernet_switches = vec![EthernetSwitchResult {
        name: "tor".to_owned(),
        memory_bytes: 16_000_000,
        memory_max_bytes: 1_500_000,
        memory_held_bytes: 0,
        pauses: 5,
        marked_frames: 6,
        frames_dropped: 7,
        headroom_drops: 0,
    }];
    results.fcip_links = vec![FcipLinkResult {
        name: "wan".to_owned(),
        state: "down".to_owned(),
        connections: 4,
        frames: 5_000,
        segments_retransmitted: 0,
        retransmission_timeouts: 6,
        fast_recoveries: 7,
        from_window_bytes: 80_000,
        to_window_bytes: 90_000,
        round_trip_us: 10_000.0,
    }];
    let page = report(&results, None, &[]);
    let (html, shown) = first_row(&page, "iscsi");
    // The session that repaired the most is first.
    let counts = ["up", "1", "12,000", "34", "56", "1,234", "2", "3", "65,536", "131,072"];
    assert_eq!(shown, [&["&lt;server2&gt;"][..], &counts].concat(), "{html}");
    assert!(html.contains("class=\"n bad\" data-v=\"1234\""), "{html}");
    let (html, shown) = first_row(&page, "ethernet-switches");
    assert_eq!(shown, ["tor", "16,000,000", "1,500,000", "5", "6", "7", "0"], "{html}");
    let (html, shown) = first_row(&page, "fcip");
    assert_eq!(shown, ["wan", "down", "4", "5,000", "0", "6", "7", "10.0 ms", "80,000", "90,000"], "{html}");
}

/// The values and units are those of the text.
#[test]
fn routers_of_ip_have_a_table_with_their_drops() {
    let mut results = fixture::core_edge();
    assert!(!report(&results, None, &[]).contains("Routers of IP"));
    let name = results.hosts[2].name.clone();
    results.hosts[1].ip_router = Some(IpRouterResult { forwarded: 12, dropped: 0, utilisation: 0.004 });
    results.hosts[2].ip_router = Some(IpRouterResult { forwarded: 90_000, dropped: 4_321, utilisation: 0.512 });
    let page = report(&results, None, &[]);
    let (first, shown) = first_row(&page, "routers");
    assert_eq!(shown, [name.as_str(), "90,000", "4,321", "51.2 %"], "{first}");
    assert!(first.contains("class=\"n bad\" data-v=\"4321\""), "{first}");
    let text = terminal::render(&results, 120);
    let row = text.lines().skip_while(|line| !line.starts_with("Routers of IP")).nth(2).unwrap_or_default();
    assert_eq!(row.split_whitespace().collect::<Vec<_>>(), [name.as_str(), "90,000", "4,321", "51.2", "%"], "{text}");
}

#[test]
fn no_page_loads_anything() {
    for (name, page) in pages() {
        let outside_scripts = without_scripts(&page);
        for attribute in attributes(&outside_scripts, &["src", "href", "xlink:href", "action", "srcset"]) {
            assert!(attribute.starts_with('#') || attribute.starts_with("data:"), "{name}: {attribute}");
        }
        for load in ["<link", "<img", "<iframe", "<object", "<embed", "@import", "url("] {
            assert!(!outside_scripts.contains(load), "{name}: {load}");
        }
        for call in ["fetch(", "XMLHttpRequest", "WebSocket", "sendBeacon", "import("] {
            assert!(!page.contains(call), "{name}: {call}");
        }
        assert!(page.contains("default-src 'none'"), "{name}");
    }
}

#[test]
fn every_page_is_well_formed() {
    for (name, page) in pages() {
        if let Err(what) = balanced(&without_scripts(&page)) {
            panic!("{name}: {what}");
        }
        let ids = attributes(&without_scripts(&page), &["id"]);
        let mut unique = ids.clone();
        unique.sort();
        unique.dedup();
        assert_eq!(unique.len(), ids.len(), "{name}: {ids:?}");
    }
}

#[test]
fn hostile_names_stay_text() {
    let evil = "</script><script>alert(1)</script><b x=\"'&";
    let mut results = fixture::core_edge();
    results.lab.name = evil.into();
    results.lab.description = evil.into();
    results.lab.command = Some(evil.into());
    results.lab.source = Some(evil.into());
    results.lab.sanloom_version = evil.into();
    results.hosts[0].name = evil.into();
    results.hosts[0].ip_router = Some(IpRouterResult::default());
    results.hosts[4].paths[0].name = evil.into();
    results.streams[0].name = evil.into();
    results.storage[0].name = evil.into();
    results.switches[0].name = evil.into();
    results.ports[0].name = evil.into();
    results.ports[0].discards.insert(evil.into(), 2);
    results.links[0].name = evil.into();
    results.links[0].down_s = 1.0;
    results.links[0].forward.from = evil.into();
    results.drops.insert(evil.into(), 1);
    results.faults[0].what = evil.into();
    results.events[0].what = evil.into();
    results.events[0].subject = Some(evil.into());
    results.findings[0].title = evil.into();
    results.findings[0].detail = evil.into();
    results.findings[0].remedy = evil.into();
    results.findings[0].culprit = Some(evil.into());
    results.findings[0].victims[0].name = evil.into();
    results.findings[0].cycle = vec![evil.into()];
    results.expectations[0].metric = evil.into();
    results.series.hosts[0].name = evil.into();
    results.series.links[0].name = evil.into();
    results.series.links[0].from = evil.into();
    let mut rows = sweep_rows();
    rows[0].settings[0].key = evil.into();
    rows[0].settings[1].value = evil.into();
    rows[0].metrics.insert(evil.into(), 1.0);
    rows[7].error = Some(evil.into());
    let mut failures = whatif_rows();
    failures[0].name = evil.into();
    failures[0].stalled_host = evil.into();
    failures[0].kind = evil.into();
    let mut panels = panels();
    panels[0].title = evil.into();
    panels[0].curves[0].name = evil.into();
    panels[0].paper[0].name = evil.into();
    for page in [
        report(&results, Some(&fixture::graph()), &[]),
        sweep(evil, &rows, 15, evil),
        whatif(evil, &failures, evil),
        figure9::html(&panels, evil, evil),
    ] {
        assert!(page.contains("alert(1)"));
        assert!(!page.contains("<script>alert"), "a name became a script");
        assert!(!page.contains("<b x="), "a name became an element");
        balanced(&without_scripts(&page)).unwrap();
    }
}

#[test]
fn a_big_lab_stays_below_5_mb() {
    let mut results = fixture::fabric(1_000, 64);
    let steps = 20_000;
    results.series.steps = steps as u64;
    for host in &mut results.series.hosts {
        host.throughput_bytes_per_s = vec![80_123_456.789; steps];
    }
    let page = report(&results, Some(&fixture::graph()), &[]);
    assert!(page.len() < 5_000_000, "{}", page.len());
    assert!(page.contains("32 of 1000 hosts"));
}

#[test]
fn the_data_in_the_page_is_json() {
    for (name, page) in pages() {
        let Some((_, rest)) = page.split_once("id=\"data\">") else {
            continue;
        };
        let text = rest.split("</script>").next().unwrap();
        let data: serde_json::Value = serde_json::from_str(text).unwrap();
        if name == "report.html" {
            assert_eq!(data["steps"], fixture::STEPS);
            assert_eq!(data["hosts"].as_array().unwrap().len(), 8);
            assert_eq!(data["faults"][0]["until"], 1.4);
            let shares: f64 = data["bins"].as_array().unwrap().iter().map(|bin| bin[2].as_f64().unwrap()).sum();
            assert!((shares - 100.0).abs() < 0.1, "{shares}");
            let cdf = data["cdf"].as_array().unwrap();
            assert_eq!(cdf.last().unwrap()[1], 100.0);
        }
    }
}

#[test]
fn the_licence_of_the_chart_library_is_in_the_page() {
    let page = report(&fixture::core_edge(), Some(&fixture::graph()), &[]);
    assert!(page.contains("Copyright (c) 2022 Leon Sorokin"));
    assert!(page.contains("THE SOFTWARE IS PROVIDED \"AS IS\""));
}

#[test]
fn whatif_shows_the_worst_first() {
    let page = whatif("synthetic", &whatif_rows(), "sanloom whatif synthetic.toml");
    let at = |name: &str| page.find(&format!("<td>{name}</td>")).unwrap();
    assert!(at("isl3") < at("isl8"), "a pair is cut off without isl3");
    assert!(at("isl8") < at("isl7"), "less is left without isl8");
    assert!(page.contains("One single failure cuts a host off"));
}

#[test]
fn a_study_without_failures_has_no_verdict() {
    let page = whatif("synthetic", &[], "sanloom whatif synthetic.toml --only chassis");
    assert!(page.contains("The lab has no element of these kinds, so no failure was simulated."));
    assert!(page.contains("0 failures") && !page.contains("healthy:") && !page.contains("verdict good"), "{page}");
    balanced(&without_scripts(&page)).unwrap();
}

#[test]
fn one_of_something_is_singular() {
    let row = |cut_off, ios_failed, ios_unfinished| WhatIfRow {
        pairs_cut_off: cut_off,
        ios_failed,
        ios_unfinished,
        ..whatif_rows().swap_remove(0)
    };
    let page = |row| whatif("synthetic", &[row], "sanloom whatif synthetic.toml");
    let cut = page(row(1, 0, 0));
    assert!(cut.contains("1 failure<") && cut.contains("1 cuts a host off from storage"), "{cut}");
    assert!(page(row(0, 5, 0)).contains("but 1 makes requests fail."));
    assert!(page(row(0, 0, 5)).contains("but 1 leaves requests unfinished."));
    let single = report(&fixture::fabric(1, 1), Some(&fixture::graph()), &[]);
    for text in ["1 host, ", "1 storage system, "] {
        assert!(single.contains(text), "{text}");
    }
}

#[test]
fn a_change_from_0_is_not_new() {
    let row = |metric, first, second| ComparedRow { metric, first, second, change: None };
    let rows = [row("a", Some(0.0), Some(5.0)), row("b", None, Some(5.0)), row("c", Some(5.0), None)];
    let page = compare(["one", "two"], &[], &rows, "sanloom compare one two");
    for (metric, word) in [("a", "from 0"), ("b", "new"), ("c", "gone")] {
        let (_, rest) = page.split_once(&format!(">{metric}</td>")).unwrap();
        let row = rest.split("</tr>").next().unwrap();
        assert!(row.contains(&format!(">{word}<")), "{metric}: {row}");
    }
}

#[test]
fn figure_9_has_four_panels_with_curves_and_the_papers_numbers() {
    let svg = figure9::svg(&panels(), "MB/s");
    for panel in panels() {
        assert!(svg.contains(&panel.title));
    }
    assert_eq!(svg.matches("<circle").count(), 4 * 2 * 10);
    assert_eq!(svg.matches("opacity=\"0.75\"").count(), 4);
    assert_eq!(svg.matches("l6 6l-6 6l-6 -6z").count(), 4);
    assert!(!svg.contains("NaN") && !svg.contains("inf"));
    balanced(&svg).unwrap();
}

/// The page without the contents of script elements.
fn without_scripts(page: &str) -> String {
    let mut out = String::new();
    let mut rest = page;
    while let Some(start) = rest.find("<script") {
        let open = start + rest[start..].find('>').unwrap() + 1;
        let end = open + rest[open..].find("</script>").unwrap();
        out.push_str(&rest[..open]);
        rest = &rest[end..];
        out.push_str("</script>");
        rest = &rest["</script>".len()..];
    }
    out.push_str(rest);
    out
}

/// Every start tag has its end tag, in order.
fn balanced(page: &str) -> Result<(), String> {
    const VOID: [&str; 4] = ["meta", "br", "hr", "!doctype"];
    let mut open: Vec<&str> = Vec::new();
    let mut rest = page;
    while let Some(start) = rest.find('<') {
        let text = &rest[start + 1..];
        let Some(end) = end_of_tag(text) else {
            return Err(format!("a tag without an end: {}", &text[..text.len().min(60)]));
        };
        let tag = &text[..end];
        rest = &text[end + 1..];
        let name = tag.trim_start_matches('/').split([' ', '\n', '/']).next().unwrap_or("");
        if tag.starts_with('/') {
            match open.pop() {
                Some(last) if last == name => {}
                last => return Err(format!("</{name}> closes {last:?}")),
            }
        } else if !tag.ends_with('/') && !VOID.contains(&name.to_lowercase().as_str()) {
            open.push(name);
        }
    }
    if open.is_empty() { Ok(()) } else { Err(format!("never closed: {open:?}")) }
}

/// The `>` outside quotes.
fn end_of_tag(text: &str) -> Option<usize> {
    let mut quoted = false;
    text.char_indices().find_map(|(at, c)| {
        if c == '"' {
            quoted = !quoted;
        }
        (c == '>' && !quoted).then_some(at)
    })
}

fn attributes(page: &str, names: &[&str]) -> Vec<String> {
    let mut out = Vec::new();
    for name in names {
        for (at, found) in page.match_indices(&format!(" {name}=\"")) {
            let value = &page[at + found.len()..];
            out.push(value[..value.find('"').unwrap()].to_owned());
        }
    }
    out
}

/// The row of a server cuts off the hosts that `check` names.
#[test]
fn a_what_if_study_explains_the_row_of_a_metadata_server() {
    let text = include_str!("../../../../../examples/out-of-band.toml");
    let lab =
        sanloom_lab::load("out-of-band.toml", text, &[]).unwrap_or_else(|bad| panic!("{}", bad.render(false))).lab;
    let failures = failure::all(&lab, &[Kind::Server]);
    let [server] = &failures[..] else { panic!("{failures:?}") };
    assert_eq!((server.name.as_str(), server.kind.word()), ("meta", "server"));
    let part = server.cause.part(&lab).expect("hosts lose storage");
    let cut = Reach::of(&lab, &[]).cut_off(part);
    assert_eq!(cut.len(), 4);
    assert_eq!(Report::of(&lab, &[]).single_points.iter().find(|point| point.part == part).map(|p| p.hosts), Some(4));
    let trial = Plan::new(lab).fail(server.cause, 0).expect("nobody interrupts");
    // Requests to extents that no map holds yet take all places of the queue, and fail after 30 s.
    assert!(trial.hosts.iter().all(|host| host.bytes == 0 && host.failed > 0), "{trial:?}");

    let row = |kind: &str| WhatIfRow {
        kind: kind.to_owned(),
        pairs_cut_off: 1,
        cut_off: vec![CutOff { host: "h".to_owned(), storage: "meta".to_owned(), luns: vec!["meta:lun0".to_owned()] }],
        recovery_s: Some(0.5),
        ..whatif_rows().swap_remove(0)
    };
    let page = |kind| whatif("synthetic", &[row(kind)], "sanloom whatif synthetic.toml");
    let (server, array) = (page("server"), page("array"));
    assert!(server.contains(NOTE_ON_SERVERS) && !server.contains(">others "), "{server}");
    assert!(!array.contains(NOTE_ON_SERVERS) && array.contains(">others "), "{array}");
}
