//! The page in a browser: names from the wire, keys, many nodes, a restart of the server.

use crate::client::page;
use sanloom_api::control::{Answer, Request, ShowTable};
use sanloom_api::graph::{Graph, GraphLink, GraphShape, ShapeKind};
use sanloom_api::view::build::Which;
use sanloom_api::view::{Dark, EventRow, EventsView, PortMode, PortRow, PortsView, Severity, Table, View};
use sanloom_surface::server::users::Users;
use sanloom_surface::web::Access;
use sanloom_surface::{Busy, Fabric};
use sanloom_test_support::browser::Browser;
use sanloom_test_support::needs;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

/// A fabric with a drawing whose ports all carry frames. A disabled port is dark.
#[derive(Default)]
struct Drawn {
    graph: Arc<Graph>,
    dark: Mutex<Option<String>>,
    is_down: AtomicBool,
    frames: AtomicU64,
}

struct Handle(Arc<Drawn>);

impl Fabric for Handle {
    fn ask(&mut self, request: Request) -> Result<Answer, Busy> {
        let drawn = &self.0;
        if drawn.is_down.load(Ordering::Relaxed) {
            return Err(Busy);
        }
        let mut dark = drawn.dark.lock().unwrap_or_else(PoisonError::into_inner);
        Ok(match request {
            Request::Show { table: ShowTable::Fabric(Which::Ports), .. } => {
                let frames = drawn.frames.fetch_add(1000, Ordering::Relaxed);
                let ends = drawn.graph.links.iter().flat_map(|link| [(link, 0), (link, 1)]);
                let ends =
                    ends.filter(|(link, end)| link.ends[*end].starts_with("sw") || link.ends[*end].starts_with('<'));
                let row = |(link, end): (&GraphLink, usize)| {
                    let is_dark = dark.as_ref().is_some_and(|port| link.ends.contains(port));
                    PortRow {
                        port: link.ends[end].clone(),
                        mode: if is_dark { PortMode::Down } else { PortMode::F },
                        light: !is_dark,
                        dark: is_dark.then_some(Dark::NoPeer),
                        link: link.name.clone(),
                        attached: link.ends[1 - end].clone(),
                        frames_sent: frames,
                        frames_received: frames / 2,
                        ..PortRow::default()
                    }
                };
                let ports = ends.map(row).collect();
                Answer::View(View::new("lab", 1.0, Table::Ports(PortsView { ports })))
            }
            Request::Port { port, enabled, .. } => {
                *dark = (!enabled).then_some(port);
                Answer::Done
            }
            Request::Events { after } => {
                let down = |port: &String| EventRow {
                    sequence: 1,
                    severity: Severity::Warning,
                    switch: port.split(':').next().unwrap_or_default().to_owned(),
                    port: port.clone(),
                    text: "The link is down.".to_owned(),
                    ..EventRow::default()
                };
                let events = dark.iter().filter(|_| after == 0).map(down).collect();
                Answer::View(View::new("lab", 1.0, Table::Events(EventsView { events, ..EventsView::default() })))
            }
            Request::Show { table, .. } => Answer::View(View::new("lab", 1.0, empty(table))),
            _ => Answer::failed("not in this test"),
        })
    }

    fn graph(&mut self) -> Result<Arc<Graph>, Busy> {
        Ok(self.0.graph.clone())
    }
}

/// A table without rows.
fn empty(table: ShowTable) -> Table {
    match table {
        ShowTable::Fabric(Which::Switch) => Table::Switch(Default::default()),
        ShowTable::Fabric(Which::Zone) => Table::Zone(Default::default()),
        ShowTable::Fabric(Which::Fabric) => Table::Fabric(Default::default()),
        ShowTable::Fabric(Which::Nodes) => Table::Nodes(Default::default()),
        ShowTable::Fabric(_) => Table::Flogi(Default::default()),
        ShowTable::Live(_) | ShowTable::Plane(_) => Table::Counters(Default::default()),
    }
}

fn small(switch: &str) -> Arc<Drawn> {
    let shape = |label: &str, kind, y| GraphShape {
        label: label.to_owned(),
        kind,
        x: 100.0,
        y,
        width: 90.0,
        height: 34.0,
        ..GraphShape::default()
    };
    let link = |name: &str, one: &str, other: &str| GraphLink {
        name: name.to_owned(),
        ends: [one.to_owned(), other.to_owned()],
        ..GraphLink::default()
    };
    let graph = Graph {
        of: "lab".to_owned(),
        width: 200.0,
        height: 300.0,
        shapes: vec![
            shape("server1", ShapeKind::Host, 40.0),
            shape(switch, ShapeKind::Switch, 150.0),
            shape("disk1", ShapeKind::Storage, 260.0),
        ],
        cables: vec![
            sanloom_api::graph::GraphCable { shapes: [0, 1], links: vec![0] },
            sanloom_api::graph::GraphCable { shapes: [1, 2], links: vec![1] },
        ],
        links: vec![
            link("uplink", "server1:0", &format!("{switch}:0")),
            link("down", &format!("{switch}:1"), "disk1:0"),
        ],
        ..Graph::default()
    };
    Arc::new(Drawn { graph: Arc::new(graph), ..Drawn::default() })
}

/// Folder of the screenshots.
fn shot(name: &str) -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../target/screenshots").join(name)
}

#[needs("chromium")]
#[test]
fn a_pulled_link_turns_red_and_makes_an_event() {
    let drawn = small("sw1");
    let fabric = drawn.clone();
    let (_server, address) = page(Access::Open, move || Box::new(Handle(fabric.clone())));
    let mut browser = Browser::start("pulled");
    browser.open(&format!("http://{address}/?view=object&name=sw1"));
    browser.wait("document.querySelectorAll('.strip a.up').length === 2");
    *drawn.dark.lock().unwrap() = Some("sw1:0".to_owned());
    browser.wait("document.querySelector('.strip a.down')?.textContent === '0'");
    browser.wait("document.querySelector('.hops path.down')");
    browser.wait("document.querySelector('table[aria-label=Events] tbody')?.innerText.includes('The link is down.')");
    browser.screenshot(&shot("pulled-link.png"));
    browser.open(&format!("http://{address}/"));
    browser.wait("document.querySelector('canvas')?.dataset.painted");
    browser.wait("document.querySelector('table[aria-label=\"Nodes of the map\"] td.down')");
    browser.screenshot(&shot("overview.png"));
    browser.no_complaints();
}

#[needs("chromium")]
#[test]
fn a_name_from_the_wire_is_a_text() {
    let name = "<script>window.stolen=1</script><img src=x onerror=window.stolen=1>";
    let drawn = small(name);
    let (_server, address) = page(Access::Open, move || Box::new(Handle(drawn.clone())));
    let mut browser = Browser::start("script");
    for view in ["", "?view=object&name=server1", "?view=ports", "?view=events", "?view=packets", "?view=zones"] {
        browser.open(&format!("http://{address}/{view}"));
        browser.wait("document.querySelector('main section')");
        browser.wait("document.getElementById('status').textContent.includes('connected')");
    }
    browser.open(&format!("http://{address}/"));
    browser.wait("document.querySelector('main').innerText.includes('<script>window.stolen=1</script><img')");
    assert_eq!(browser.eval("window.stolen ?? null"), serde_json::Value::Null);
    assert_eq!(browser.eval("document.querySelectorAll('main script, main img').length"), 0);
}

#[needs("chromium")]
#[test]
fn a_port_is_found_and_disabled_by_keys_alone() {
    let drawn = small("sw1");
    let fabric = drawn.clone();
    let (_server, address) = page(Access::Open, move || Box::new(Handle(fabric.clone())));
    let mut browser = Browser::start("keys");
    browser.open(&format!("http://{address}/"));
    browser.wait("document.getElementById('status').textContent.includes('connected')");
    browser.wait("document.querySelector('table[aria-label=\"Worst and busiest ports\"] tbody td')");
    browser.key("/");
    assert_eq!(browser.eval("document.activeElement.id"), "find-name");
    for key in "sw1:0".chars() {
        browser.key(&key.to_string());
    }
    browser.key("Enter");
    browser.wait("document.querySelector('main h2')?.textContent === 'Port sw1:0'");
    // Every control is reached by Tab, and the focus is visible.
    let mut steps = 0;
    while browser.eval("document.activeElement.textContent") != "Disable" {
        browser.key("Tab");
        steps += 1;
        assert!(steps < 60, "{}", browser.eval("document.activeElement.outerHTML"));
    }
    assert_ne!(browser.eval("getComputedStyle(document.activeElement).outlineStyle"), "none");
    browser.key("Enter");
    browser.wait("document.body.innerText.includes('sw1:0 is disabled.')");
    assert_eq!(drawn.dark.lock().unwrap().as_deref(), Some("sw1:0"));
    // Arrow keys move in a table.
    browser.open(&format!("http://{address}/?view=overview"));
    browser.wait("document.querySelectorAll('table[aria-label=\"Nodes of the map\"] tbody tr').length === 3");
    browser.eval("document.querySelector('table[aria-label=\"Nodes of the map\"] td[tabindex=\"0\"]').focus()");
    browser.key("ArrowDown");
    browser.key("Enter");
    browser.wait("document.querySelector('main h2')?.textContent === 'switch sw1'");
    browser.no_complaints();
}

#[needs("chromium")]
#[test]
fn the_page_says_that_the_server_is_gone_and_connects_again() {
    let drawn = small("sw1");
    let fabric = drawn.clone();
    let (server, address) = page(Access::Open, move || Box::new(Handle(fabric.clone())));
    let mut browser = Browser::start("restart");
    browser.open(&format!("http://{address}/"));
    browser.wait("document.getElementById('status').textContent.startsWith('connected')");
    drop(server);
    browser.wait("document.getElementById('status').textContent.startsWith('disconnected')");
    let connect: sanloom_surface::web::Connect = Arc::new(move || Box::new(Handle(drawn.clone())));
    let settings = sanloom_surface::web::Settings {
        access: Access::Open,
        names: Vec::new(),
        assets: None,
        kind: "live",
        results: Vec::new(),
    };
    let handler = Arc::new(sanloom_surface::web::Web::start(settings, &connect).unwrap());
    let listen = sanloom_surface::server::Listen { address, tls: None, handler };
    let _server = sanloom_surface::server::Server::start(vec![listen], move || connect()).unwrap();
    browser.wait("document.getElementById('status').textContent.startsWith('connected')");
}

/// Returns whether times are judged: on a quiet machine only, as in `cargo xtask soak`.
fn is_timed() -> bool {
    std::env::var_os("SANLOOM_TIMED").is_some()
}

#[needs("chromium")]
#[test]
fn a_lab_of_10000_nodes_is_drawn_and_follows_rates() {
    let mut text =
        String::from("[switch.coreA]\n[switch.coreB]\n[switch.\"edgeA{1..40}\"]\n[switch.\"edgeB{1..40}\"]\n");
    text += "[host.\"esx{00001..10000}\"]\nhbas = 2\n[storage.\"array{1..80}\"]\nports = 2\n";
    for (port, side) in [(0, 'A'), (1, 'B')] {
        text += &format!(
            "[[link]]\nfrom = \"esx{{00001..10000}}:{port}\"\nto = \"edge{side}{{1..40}}\"\n\
             [[link]]\nfrom = \"array{{1..80}}:{port}\"\nto = \"core{side}\"\n\
             [[isl]]\nfrom = \"edge{side}{{1..40}}\"\nto = \"core{side}\"\ncount = 2\n"
        );
    }
    // The names of the test's ports begin with sw.
    let text = text.replace("edge", "swe").replace("core", "swc");
    let loaded = sanloom_lab::load("big", &text, &[]).unwrap_or_else(|wrong| panic!("{wrong}"));
    let graph = Arc::new(sanloom_lab::topology::graph(&loaded.lab, &[]));
    assert!(graph.shapes.iter().map(|shape| shape.members.len().max(1)).sum::<usize>() >= 10_000);
    let drawn = Arc::new(Drawn { graph, ..Drawn::default() });
    let (_server, address) = page(Access::Open, move || Box::new(Handle(drawn.clone())));
    let mut browser = Browser::start("big");
    browser.open(&format!("http://{address}/"));
    browser.wait("document.querySelector('canvas')?.dataset.painted");
    let painted = browser.eval("Number(document.querySelector('canvas').dataset.painted)").as_f64().unwrap();
    assert!(painted < 3000.0 || !is_timed(), "first paint after {painted} ms");
    browser.screenshot(&shot("10000-nodes.png"));
    // The first rates follow the state of all ports.
    browser.wait(
        "document.querySelector('table[aria-label=\"Worst and busiest ports\"] tbody')?.innerText.match(/[1-9]\\d+/)",
    );
    browser.eval(
        "window.long = []; new PerformanceObserver((list) => window.long.push(...list.getEntries().map((entry) => \
         entry.duration))).observe({ type: 'longtask' }); new Promise((done) => setTimeout(done, 5000))",
    );
    let long = browser.eval("Math.max(0, ...window.long)").as_f64().unwrap();
    println!("first paint after {painted} ms, longest task {long} ms");
    assert!(long < 200.0 || !is_timed(), "a task of {long} ms");
    browser.screenshot(&shot("10000-nodes.png"));
    browser.no_complaints();
}

#[needs("chromium")]
#[test]
fn the_heap_does_not_grow_with_the_updates() {
    let drawn = small("sw1");
    let (_server, address) = page(Access::Open, move || Box::new(Handle(drawn.clone())));
    let mut browser = Browser::start("heap");
    // Keeps the stream of events and the last rates, so that the test can send them again.
    let source = "window.EventSource = class extends EventSource { constructor(url) { super(url); window.stream = this; \
                  this.addEventListener('rates', (message) => { window.rates = message.data; }); } };";
    browser.call("Page.addScriptToEvaluateOnNewDocument", serde_json::json!({ "source": source }));
    browser.open(&format!("http://{address}/"));
    browser.wait("document.querySelector('canvas')?.dataset.painted && window.rates");
    // One update is sent per second; the page keeps the rates of two minutes.
    let updates = |browser: &mut Browser, count: u32| {
        browser.eval(&format!(
            "(async () => {{ for (let i = 1; i <= {count}; i += 1) {{ \
             window.stream.dispatchEvent(new MessageEvent('rates', {{ data: window.rates }})); \
             if (i % 60 === 0) await new Promise((done) => requestAnimationFrame(done)); }} }})()"
        ));
        browser.heap()
    };
    updates(&mut browser, 600);
    let before = updates(&mut browser, 600);
    let after = updates(&mut browser, 3600);
    println!("heap {before} bytes, {after} bytes an hour later");
    assert!(after < before + 200e3, "from {before} to {after} bytes");
    // In a campaign, the page stays open in real time, too.
    let minutes: u64 = std::env::var("SANLOOM_MINUTES").map_or(0, |text| text.parse().unwrap());
    if minutes > 0 {
        let before = browser.heap();
        std::thread::sleep(std::time::Duration::from_secs(60 * minutes));
        let after = browser.heap();
        println!("heap {before} bytes, {after} bytes after {minutes} min");
        assert!(after < before + 1e6, "from {before} to {after} bytes");
    }
    browser.no_complaints();
}

#[needs("chromium", "axe")]
#[test]
fn a_user_logs_in_and_out() {
    let (users, password) = Users::with_random_password().unwrap();
    let drawn = small("sw1");
    let (_server, address) = page(Access::Users(Arc::new(users)), move || Box::new(Handle(drawn.clone())));
    let mut browser = Browser::start("login");
    browser.open(&format!("http://{address}/"));
    browser.wait("document.activeElement.name === 'user'");
    assert_eq!(browser.accessibility_findings(), [""; 0]);
    "admin".chars().for_each(|key| browser.key(&key.to_string()));
    browser.key("Tab");
    password.chars().for_each(|key| browser.key(&key.to_string()));
    browser.key("Enter");
    browser.wait("document.getElementById('status').textContent === 'connected as admin'");
    assert_eq!(browser.eval("document.cookie"), "", "scripts cannot read the session");
    browser.eval("document.getElementById('logout').click()");
    browser.wait("document.activeElement.name === 'user'");
}
