//! The page of a running lab and of finished runs, in a browser.

use crate::control::instance::Instance;
use crate::control::zoned::two_disks;
use crate::sanloom::SANLOOM;
use sanloom_test_support::browser::Browser;
use sanloom_test_support::needs;
use sanloom_test_support::started::Folder;
use std::io::{BufRead, BufReader};
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};

/// Folder of the screenshots.
fn shot(name: &str) -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../target/screenshots").join(name)
}

/// Starts the lab with its page, and returns the address of the page.
fn with_page(name: &str, lab: &str) -> (Instance, String) {
    let mut instance = Instance::start(name, lab);
    instance.stop();
    instance.up(&["--web", "127.0.0.1:0", "--web-open"]);
    let url = instance.page_url();
    (instance, url)
}

#[needs("chromium")]
#[test]
fn a_zone_edit_on_the_page_is_previewed_committed_and_undone() {
    let lab = two_disks("[switch.sw1]\n", "sw1")
        + "[storage.disk3]\nlun_size = \"1MiB\"\n[[link]]\nfrom = \"disk3\"\nto = \"sw1\"\n";
    let (instance, url) = with_page("page-zones", &lab);
    instance.wait("three ports", |instance| instance.zones("sw1").ports.len() == 3);
    let ports = instance.zones("sw1").ports;
    let member = &ports.iter().find(|port| port.name.starts_with("disk3")).unwrap().port_name;
    let mut browser = Browser::start("zones");
    browser.open(&format!("{url}?view=zones"));
    browser.wait("document.body.innerText.includes('Configuration in force')");
    browser.eval(&format!(
        "const set = (id, value) => {{ const node = document.getElementById(id); node.value = value; \
         node.dispatchEvent(new Event('change')); }}; set('edit-kind', 'Add members to a zone'); \
         set('edit-name', 'z12'); set('edit-members', '{member}'); document.getElementById('add-edit').click(); 0"
    ));
    browser.wait("document.querySelectorAll('#edits li').length === 1");
    assert_eq!(browser.eval("document.getElementById('commit').disabled"), true, "only a previewed edit is committed");
    browser.eval("document.getElementById('show-preview').click(); 0");
    browser.wait("document.getElementById('also-enable')");
    browser.eval("document.getElementById('also-enable').click(); 0");
    browser.wait("document.querySelectorAll('#preview li.gain').length === 2");
    browser.screenshot(&shot("zone-preview.png"));
    let members = || instance.zones("sw1").committed.zones["z12"].members.len();
    assert_eq!(members(), 2, "a preview changes nothing");
    browser.eval("document.getElementById('commit').click(); 0");
    browser.wait("document.body.innerText.includes('in force in the whole fabric')");
    assert_eq!(members(), 3);
    browser.wait("!document.getElementById('undo').disabled");
    browser.eval("document.getElementById('undo').click(); 0");
    browser.wait("document.body.innerText.includes('before the last change is in force')");
    assert_eq!(members(), 2);
    browser.no_complaints();
}

#[needs("chromium")]
#[test]
fn an_alias_of_the_list_of_edits_is_a_member_of_a_later_edit() {
    let (instance, url) = with_page("page-aliases", &two_disks("[switch.sw1]\n", "sw1"));
    let mut browser = Browser::start("aliases");
    browser.open(&format!("{url}?view=zones"));
    browser.wait("document.body.innerText.includes('Configuration in force')");
    for (kind, name, members) in
        [("Create an alias", "a1", "1,1"), ("Rename an alias", "a1", "a2"), ("Create a zone", "za", "a2, 1,7")]
    {
        browser.eval(&format!(
            "{{ const set = (id, value) => {{ const node = document.getElementById(id); node.value = value; \
             node.dispatchEvent(new Event('change')); }}; set('edit-kind', '{kind}'); set('edit-name', '{name}'); \
             set('edit-members', '{members}'); document.getElementById('add-edit').click(); 0 }}"
        ));
    }
    let offered = "[...document.getElementById('zone-members').children].map((option) => option.value)";
    assert_eq!(browser.eval(&format!("{offered}.includes('a2') && !{offered}.includes('a1')")), true);
    browser.eval("document.getElementById('show-preview').click(); 0");
    browser.wait("document.getElementById('commit').disabled === false");
    browser.eval("document.getElementById('commit').click(); 0");
    browser.wait("document.body.innerText.includes('in force in the whole fabric')");
    let zones = instance.zones("sw1").committed;
    assert_eq!(zones.aliases["a2"], ["1,1"]);
    let members = serde_json::to_value(&zones.zones["za"].members).unwrap();
    assert_eq!(members, serde_json::json!([{ "alias": "a2" }, "1,7"]));
    // Numbers have four digits and a unit at most.
    browser.eval(
        "import('/page/dom.js').then((dom) => { window.shown = [1304.2, 999.7, 3.87, 3_870_400, 9_999.7, 12].map(dom.short) }); 0",
    );
    browser.wait("window.shown");
    assert_eq!(browser.eval("window.shown.join(' ')"), "1304 1000 3.87 3870k 10.0k 12");
    browser.no_complaints();
}

#[needs("chromium")]
#[test]
fn each_fabric_has_its_zones_on_the_page_and_peer_zones_are_created_there() {
    let lab = two_disks("[switch.\"sw{1..2}\"]\n", "sw1")
        + "[storage.disk3]\nlun_size = \"1MiB\"\n[[link]]\nfrom = \"disk3\"\nto = \"sw2\"\n";
    let (instance, url) = with_page("page-fabrics", &lab);
    instance.wait("a port in each fabric", |instance| {
        ["sw1", "sw2"].iter().all(|switch| !instance.zones(switch).ports.is_empty())
    });
    let mut browser = Browser::start("fabrics");
    browser.open(&format!("{url}?view=zones"));
    browser.wait("document.body.innerText.includes('read at sw1')");
    assert_eq!(browser.eval("document.getElementById('zone-fabric').length"), 2);
    browser.eval(
        "const choice = document.getElementById('zone-fabric'); choice.selectedIndex = 1; \
         choice.dispatchEvent(new Event('change')); 0",
    );
    browser.wait("document.body.innerText.includes('read at sw2') && location.search.includes('switch=sw2')");
    browser.eval(
        "const set = (id, value) => { const node = document.getElementById(id); node.value = value; \
         node.dispatchEvent(new Event('change')); }; set('edit-kind', 'Create a peer zone'); \
         set('edit-name', 'peer'); set('edit-members', '2,1'); set('edit-principals', '2,2'); \
         document.getElementById('add-edit').click(); 0",
    );
    browser.wait("document.querySelectorAll('#edits li').length === 1");
    browser.eval("document.getElementById('show-preview').click(); 0");
    browser.wait("!document.getElementById('commit').disabled");
    browser.eval("document.getElementById('commit').click(); 0");
    browser.wait("document.body.innerText.includes('in force in the whole fabric')");
    let zones = |switch| instance.zones(switch).committed.zones;
    assert_eq!(zones("sw2")["peer"].principals.len(), 1);
    assert!(!zones("sw1").contains_key("peer"), "the other fabric has a database of its own");
    browser.no_complaints();
}

#[needs("chromium")]
#[test]
fn a_port_disabled_on_the_page_is_dark_and_its_frames_are_decoded() {
    let (instance, url) = with_page("page-port", &two_disks("[switch.sw1]\n", "sw1"));
    instance.wait("two ports", |instance| instance.zones("sw1").ports.len() == 2);
    let mut browser = Browser::start("port");
    browser.open(&format!("{url}?view=object&name=sw1%3A0"));
    let press = |text: &str| {
        format!("[...document.querySelectorAll('button')].find((button) => button.textContent === '{text}').click(); 0")
    };
    browser.wait("document.querySelector('main p.up')");
    browser.wait("document.querySelector('section[aria-label=Actions]')");
    browser.eval(&press("Disable"));
    browser.wait("document.querySelector('main p.disabled')");
    browser.wait(
        "document.querySelector('table[aria-label=Events] tbody').innerText.includes('Port 0 is disabled via HTTP.')",
    );
    browser.screenshot(&shot("port.png"));
    browser.open(&format!("{url}?view=packets&port=sw1%3A0"));
    browser.wait("document.getElementById('packet-port')?.value === 'sw1:0'");
    browser.eval(&press("Start"));
    browser.wait("document.body.innerText.includes('Capturing sw1:0')");
    instance.run("port enable LAB sw1:0").good();
    browser.wait("document.querySelector('table[aria-label=Packets] tbody')?.innerText.includes('FLOGI')");
    browser.eval("[...document.querySelectorAll('table[aria-label=Packets] button')][0].click(); 0");
    browser.wait("document.body.innerText.includes('OX_ID')");
    browser.screenshot(&shot("packets.png"));
    // The capture ends with the page that reads it.
    browser.open(&format!("{url}?view=events"));
    instance.wait("no capture", |instance| !instance.run("show LAB captures --live").good().contains("sw1:0"));
    browser.no_complaints();
}

#[needs("chromium")]
#[test]
fn the_event_log_on_the_page_is_filtered_by_its_address_paged_and_saved() {
    let lab = two_disks("[switch.\"sw{1..2}\"]\n", "sw1")
        + "[storage.disk3]\nlun_size = \"1MiB\"\n[[link]]\nfrom = \"disk3\"\nto = \"sw2\"\n";
    let (mut instance, url) = with_page("page-events", &lab);
    instance.wait("ports", |instance| ["sw1", "sw2"].iter().all(|switch| !instance.zones(switch).ports.is_empty()));
    for _ in 0..30 {
        instance.run("port disable LAB sw2:0").good();
        instance.run("port enable LAB sw2:0").good();
    }
    let mut browser = Browser::start("events");
    let cells = "[...document.querySelectorAll('table[aria-label=Events] tbody tr')]";
    // Events from before the first page are there, too.
    browser.open(&format!("{url}?view=events&switch=sw1"));
    browser.wait(&format!("{cells}.length > 2"));
    assert_eq!(browser.eval(&format!("{cells}.every((row) => row.cells[2].innerText === 'sw1')")), true);
    assert_eq!(browser.eval(&format!("{cells}.some((row) => row.cells[4].innerText === 'NS-1001')")), true);
    browser.open(&format!("{url}?view=events&switch=sw2&severity=warning"));
    browser.wait(&format!("{cells}.length >= 30"));
    assert_eq!(browser.eval(&format!("{cells}.every((row) => row.cells[1].innerText === 'warning')")), true);
    // A choice of the reader is in the address.
    browser.eval(
        "const choice = document.querySelector('select[name=severity]'); choice.value = ''; \
         choice.dispatchEvent(new Event('change')); 0",
    );
    browser.wait("!location.search.includes('severity') && location.search.includes('switch=sw2')");
    browser.wait("document.body.innerText.includes('page 1 of 2')");
    assert_eq!(browser.eval(&format!("{cells}.length")), 100);
    browser.eval("[...document.querySelectorAll('button')].find((one) => one.textContent === 'Next page').click(); 0");
    browser.wait("location.search.includes('page.events=2') && document.body.innerText.includes('page 2 of 2')");
    // The file has all rows, not those of the page only.
    browser.eval(
        "window.saved = null; URL.createObjectURL = (blob) => { blob.text().then((text) => { window.saved = text; }); \
         return 'blob:none'; }; [...document.querySelectorAll('button')].find((one) => one.textContent === 'CSV').click(); 0",
    );
    browser.wait("window.saved");
    let lines = browser.eval("window.saved.trim().split('\\r\\n').length").as_u64().unwrap();
    assert!(lines > 101, "{lines}");
    browser.screenshot(&shot("events.png"));
    instance.stop();
}

#[needs("chromium")]
#[test]
fn no_two_labels_of_rates_on_the_map_cover_each_other() {
    let text = std::fs::read_to_string(concat!(env!("CARGO_MANIFEST_DIR"), "/../../examples/core-edge.toml")).unwrap();
    let mut instance = Instance::start_under("page-labels", &text, |lab, _| {
        let mut command = Command::new(SANLOOM);
        command.args(["up", lab, "--simulated", "--web", "127.0.0.1:0", "--web-open"]);
        command
    });
    let url = instance.page_url();
    let mut browser = Browser::start("labels");
    browser.open(&format!("{url}?view=overview"));
    browser.wait("document.querySelector('canvas')?.dataset.painted");
    let zoom = |text: &str| {
        format!("[...document.querySelectorAll('button')].find((button) => button.textContent === '{text}').click(); 0")
    };
    let count = "document.querySelector('canvas').labels.length";
    let rates = "document.querySelector('canvas').labels.filter((label) => label.text.endsWith('/s')).length";
    browser.eval(&zoom("Zoom in"));
    browser.wait(&format!("{rates} >= 2"));
    let mut most = 0;
    for step in ["Zoom in", "Zoom out", "Zoom out", "Zoom in", "Zoom in", "Zoom in"] {
        let overlaps = browser.eval(
            "(() => { const all = document.querySelector('canvas').labels; let found = 0; \
             all.forEach((a, i) => all.slice(i + 1).forEach((b) => { \
             if (a.x < b.x + b.width && b.x < a.x + a.width && a.y < b.y + b.height && b.y < a.y + a.height) found += 1; \
             })); return found; })()",
        );
        assert_eq!(overlaps, 0);
        most = most.max(browser.eval(count).as_u64().unwrap());
        browser.eval(&zoom(step));
        browser.eval("new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(() => done(0))))");
    }
    assert!(most >= 2, "{most} labels");
    browser.screenshot(&shot("labels.png"));
    instance.stop();
}

#[needs("chromium")]
#[test]
fn the_page_of_a_simulation_shows_its_storage_disables_a_port_and_captures_frames() {
    let lab = two_disks("[switch.sw1]\n", "sw1")
        + "[host.h1]\n[[zone]]\nname = \"zh\"\nmembers = [\"h1\", \"disk1\"]\n[[link]]\nfrom = \"h1\"\nto = \"sw1\"\nname = \"h1-sw1\"\n[workload.reads]\nhosts = \"h1\"\n\
           targets = \"disk1\"\narrivals = \"constant 50/s\"\n";
    let mut instance = Instance::start("page-simulated", &lab);
    instance.stop();
    instance.up(&["--simulated", "--web", "127.0.0.1:0", "--web-open"]);
    let url = instance.page_url();
    let mut browser = Browser::start("simulated");
    let press = |text: &str| {
        format!("[...document.querySelectorAll('button')].find((button) => button.textContent === '{text}').click(); 0")
    };
    browser.open(&format!("{url}?view=overview"));
    browser.wait("document.querySelector('canvas')?.dataset.painted");
    for (view, label, text) in
        [("storage", "LUNs", "disk1"), ("fabric", "Registered adapters", "simulated HBA"), ("ports", "Ports", "h1-sw1")]
    {
        browser.open(&format!("{url}?view={view}"));
        browser.wait(&format!(
            "document.querySelector('table[aria-label=\"{label}\"] tbody')?.innerText.includes('{text}')"
        ));
    }
    browser.open(&format!("{url}?view=volumes"));
    browser.wait("document.body.innerText.includes('This table is empty.')");
    assert_eq!(browser.eval("document.querySelectorAll('p.error').length"), 0, "no table is refused");
    browser.screenshot(&shot("simulated.png"));

    browser.open(&format!("{url}?view=packets&port=h1-sw1"));
    browser.wait("document.getElementById('packet-port')?.value === 'h1-sw1'");
    browser.eval(&press("Start"));
    browser.wait("document.querySelector('table[aria-label=Packets] tbody')?.innerText.includes('FCP')");
    browser.eval("[...document.querySelectorAll('table[aria-label=Packets] button')][0].click(); 0");
    browser.wait("document.body.innerText.includes('OX_ID')");
    let port = instance.zones("sw1").ports.iter().find(|port| port.name.starts_with("h1")).unwrap().switch_port;
    browser.open(&format!("{url}?view=object&name=sw1%3A{port}"));
    instance.wait("no capture", |instance| !instance.run("show LAB captures --live").good().contains("h1-sw1"));
    browser.wait("document.querySelector('section[aria-label=Actions]')");
    browser.eval(&press("Disable"));
    browser.wait("document.querySelector('main p.disabled')");
    browser.no_complaints();
    instance.stop();
}

#[needs("chromium")]
#[test]
fn a_report_from_a_file_has_the_map_of_the_page() {
    let folder = Folder::new("page-report");
    let lab = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../examples/slow-drain.toml");
    let report = folder.path("report.html");
    let mut sim = Command::new(SANLOOM);
    sim.args(["sim", "--quiet", "--no-report", "--no-remedies", "--duration", "300ms"]);
    let sim = sim.arg(format!("--html={report}")).arg(&lab).stderr(Stdio::null()).status().unwrap();
    // The expectations are those of the whole run.
    assert!(sim.code().is_some_and(|code| code <= 1), "{sim}");
    let mut browser = Browser::start("report");
    browser.open(&format!("file://{report}"));
    browser.wait("document.querySelector('.drawing canvas')?.dataset.painted");
    // A click on the middle of the first switch shows its ports.
    browser.eval("document.querySelector('.drawing canvas').scrollIntoView({ block: 'center' })");
    browser.eval(
        "const data = JSON.parse(document.getElementById('data').textContent).map.graph; \
         const shape = data.shapes.find((shape) => shape.kind === 'switch'); \
         const canvas = document.querySelector('.drawing canvas'), box = canvas.getBoundingClientRect(); \
         const scale = Math.min(box.width / data.width, box.height / data.height, 1.6); \
         const at = { clientX: box.left + box.width / 2 + (shape.x - data.width / 2) * scale, \
         clientY: box.top + box.height / 2 + (shape.y - data.height / 2) * scale, pointerId: 1, bubbles: true }; \
         canvas.setPointerCapture = () => {}; window.clicked = shape.label; \
         for (const kind of ['pointerdown', 'pointerup']) canvas.dispatchEvent(new PointerEvent(kind, at)); 0",
    );
    browser.wait(
        "document.querySelector('[data-chart=ports] .caption')?.textContent.includes('ports of ' + window.clicked)",
    );
    browser.screenshot(&shot("report-map.png"));
    for dark in [false, true] {
        browser.set_dark(dark);
        browser.screenshot(&shot(if dark { "report-dark.png" } else { "report-light.png" }));
    }
    browser.no_complaints();
}

/// A program that serves finished runs, ended when it is dropped.
struct Serving(Child);

impl Drop for Serving {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// Requires that axe-core finds nothing in a view, on a light and on a dark background.
fn is_accessible(browser: &mut Browser, view: &str) {
    for dark in [false, true] {
        browser.set_dark(dark);
        let findings = browser.accessibility_findings();
        assert!(findings.is_empty(), "{view}, dark: {dark}\n{}", findings.join("\n"));
    }
}

#[needs("chromium", "axe")]
#[test]
fn axe_finds_nothing_in_any_view_of_a_running_lab() {
    let lab = two_disks("[switch.\"sw{1..2}\"]\n[[isl]]\nfrom = \"sw1\"\nto = \"sw2\"\n", "sw{1..2}");
    let (instance, url) = with_page("page-axe", &lab);
    instance.wait("two ports", |instance| instance.zones("sw1").ports.len() == 2);
    // A dark port has other colours and an event. Port 0 is that of the ISL.
    instance.run("port disable LAB sw2:0").good();
    let mut browser = Browser::start("axe");
    for view in ["overview", "ports", "zones", "storage", "volumes", "events", "packets", "fabric"] {
        browser.open(&format!("{url}?view={view}"));
        browser.wait("document.querySelector('main section') && document.querySelector('#views a[aria-current]')");
        browser.wait("document.getElementById('status').textContent.startsWith('connected')");
        browser.wait("!document.querySelector('main').innerText.includes('Loading')");
        is_accessible(&mut browser, view);
    }
    for object in ["sw1", "disk1", "sw1:0", "disk2-sw2"] {
        browser.open(&format!("{url}?view=object&name={object}"));
        browser.wait("document.querySelector('main section h2')");
        browser.wait("document.getElementById('status').textContent.startsWith('connected')");
        is_accessible(&mut browser, object);
    }
    // A preview, and a decoded packet.
    instance.run("port enable LAB sw2:0").good();
    browser.open(&format!("{url}?view=packets&port=sw1%3A0"));
    let press = |text: &str| {
        format!("[...document.querySelectorAll('button')].find((button) => button.textContent === '{text}').click(); 0")
    };
    browser.wait("document.getElementById('packet-port')?.value === 'sw1:0'");
    browser.eval(&press("Start"));
    browser.wait("document.body.innerText.includes('Capturing sw1:0')");
    instance.run("port disable LAB sw1:0").good();
    instance.run("port enable LAB sw1:0").good();
    browser.wait("document.querySelector('table[aria-label=Packets] tbody')?.innerText.includes('ELP')");
    browser.eval("[...document.querySelectorAll('table[aria-label=Packets] button')][0].click(); 0");
    browser.wait("document.body.innerText.includes('OX_ID')");
    is_accessible(&mut browser, "decoded packet");
    browser.open(&format!("{url}?view=zones"));
    browser.wait("document.getElementById('edit-kind')");
    browser.eval(
        "const set = (id, value) => { const node = document.getElementById(id); node.value = value; \
         node.dispatchEvent(new Event('change')); }; set('edit-kind', 'Disable zoning'); \
         document.getElementById('add-edit').click(); \
         document.getElementById('show-preview').click(); 0",
    );
    browser.wait("document.getElementById('preview').innerText.length > 0");
    is_accessible(&mut browser, "preview");
    browser.no_complaints();
}

#[needs("chromium", "axe")]
#[test]
fn a_finished_run_has_a_time_line_with_its_faults_and_is_compared_with_another() {
    let folder = Folder::new("page-view");
    let lab = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../examples/isl-failure.toml");
    let results: Vec<String> = ["1", "2"]
        .iter()
        .map(|seed| {
            let json = folder.path(&format!("run{seed}.json"));
            let mut sim = Command::new(SANLOOM);
            sim.args(["sim", "--quiet", "--no-report", "--no-remedies", "--duration", "1500ms", "--seed", seed]);
            let sim = sim.arg(format!("--json={json}")).arg(&lab).stderr(Stdio::null()).status().unwrap();
            // The expectations are those of the whole run.
            assert!(sim.code().is_some_and(|code| code <= 1), "{sim}");
            json
        })
        .collect();
    let mut view = Command::new(SANLOOM);
    view.arg("view").args(&results).args(["--at", "127.0.0.1:0"]).stderr(Stdio::piped());
    let mut view = Serving(view.spawn().unwrap());
    let mut lines = BufReader::new(view.0.stderr.take().unwrap()).lines();
    let url = lines.find_map(|line| Some(line.ok()?.split_once("The page is at ")?.1.split(';').next()?.to_owned()));
    let mut browser = Browser::start("view");
    browser.open(&url.unwrap());
    browser.wait("document.querySelectorAll('.faults button').length > 0");
    browser.wait("document.querySelector('main h2').textContent.startsWith('Two runs')");
    browser.eval("document.querySelector('.faults button').click(); 0");
    browser.wait("document.getElementById('time').textContent.includes('ISL1')");
    browser.wait("location.search.includes('t=1')");
    browser.screenshot(&shot("run.png"));
    is_accessible(&mut browser, "two runs");
    browser.eval(
        "[...document.querySelectorAll('th button')].find((head) => head.textContent === 'waiting for credit').click(); 0",
    );
    browser.wait("location.search.includes('sort.links-at-this-time=waiting_for_credit')");
    browser
        .eval("history.pushState(null, '', '?view=object&name=ISL1'); dispatchEvent(new PopStateEvent('popstate')); 0");
    browser.wait("document.querySelectorAll('.charts figure').length === 1");
    browser.wait("document.querySelector('section[aria-label=\"First run: Links\"]')");
    browser.wait("document.querySelector('section[aria-label=\"Events of the object\"] tbody').rows.length > 0");
    is_accessible(&mut browser, "an object of a run");
    browser.eval(
        "history.pushState(null, '', '?view=object&name=edge1'); dispatchEvent(new PopStateEvent('popstate')); 0",
    );
    browser.wait("document.querySelector('svg.hops .centre')?.textContent === 'edge1'");
    browser.screenshot(&shot("run-object.png"));
    browser.eval("history.pushState(null, '', '?view=results'); dispatchEvent(new PopStateEvent('popstate')); 0");
    browser.wait("document.querySelector('section[aria-label=\"Second run: Hosts\"]')");
    is_accessible(&mut browser, "all results");
    browser.no_complaints();
}

/// A lab of Ethernet and InfiniBand: the map of a finished run over time, and the objects of a
/// simulation that runs.
#[needs("chromium")]
#[test]
fn links_of_ethernet_and_infiniband_have_samples_over_time_and_views_of_their_own() {
    let folder = Folder::new("page-planes");
    let lab = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../examples/ipoib-gateway.toml");
    let json = folder.path("run.json");
    let mut sim = Command::new(SANLOOM);
    // The run ends with the last requests, so its last step is almost idle.
    sim.args(["sim", "--quiet", "--no-report", "--no-remedies", "--set", "run.stop_issuing=500ms"]);
    let sim = sim.arg(format!("--json={json}")).arg(&lab).stderr(Stdio::null()).status().unwrap();
    assert!(sim.code().is_some_and(|code| code <= 1), "{sim}");
    let mut view = Command::new(SANLOOM);
    view.args(["view", &json, &json, "--at", "127.0.0.1:0"]).stderr(Stdio::piped());
    let mut view = Serving(view.spawn().unwrap());
    let mut lines = BufReader::new(view.0.stderr.take().unwrap()).lines();
    let url = lines.find_map(|line| Some(line.ok()?.split_once("The page is at ")?.1.split(';').next()?.to_owned()));
    let url = url.unwrap();
    let mut browser = Browser::start("planes");
    let busy = |link: &str| {
        format!(
            "Number([...document.querySelectorAll('table[aria-label=\"Links at this time\"] tbody tr')]\
             .find((row) => row.cells[0].innerText === '{link}').cells[3].innerText)"
        )
    };
    for link in ["direct-lan.backward", "server-ib1.backward"] {
        browser.open(&format!("{url}?t=0.3"));
        browser.wait(&format!("{} > 0.01", busy(link)));
        browser.open(&format!("{url}?t=0.5"));
        browser.wait(&format!("{} < 0.01", busy(link)));
    }
    browser.open(&format!("{url}?view=object&name=server-ib1"));
    browser.wait("document.querySelectorAll('.charts figure').length === 1");
    browser.no_complaints();

    // Only a simulation can use the addresses of the example.
    let mut instance = Instance::start("page-planes-live", &two_disks("[switch.sw1]\n", "sw1"));
    instance.stop();
    instance.write("lab.toml", &std::fs::read_to_string(&lab).unwrap());
    instance.up(&["--simulated", "--web", "127.0.0.1:0", "--web-open"]);
    let url = instance.page_url();
    for (name, centre, table) in [
        ("lan%3A0", "lan", "Ethernet ports"),
        ("server%3Aib0", "server", "InfiniBand ports"),
        ("lan", "lan", "Ethernet switches"),
        ("ib1", "ib1", "InfiniBand ports"),
        ("direct-lan", "direct", "Ethernet ports"),
    ] {
        browser.open(&format!("{url}?view=object&name={name}"));
        browser.wait(&format!("document.querySelector('svg.hops .centre')?.textContent === '{centre}'"));
        browser.wait(&format!("document.querySelector('table[aria-label=\"{table}\"] tbody')?.rows.length > 0"));
    }
    assert_eq!(browser.eval("document.querySelectorAll('p.error').length"), 0, "no table is refused");
    browser.screenshot(&shot("planes.png"));
    browser.no_complaints();
    // The page would complain of the end of its events.
    browser.open("about:blank");
    instance.stop();

    // A forwarder of FCoE has links of Ethernet, and the views of a switch of Fibre Channel.
    let lab = lab.with_file_name("fcoe-converged.toml");
    instance.write("lab.toml", &std::fs::read_to_string(&lab).unwrap());
    instance.up(&["--simulated", "--web", "127.0.0.1:0", "--web-open"]);
    let url = instance.page_url();
    browser.open(&format!("{url}?view=object&name=fcf"));
    browser.wait("document.querySelectorAll('ul.strip[aria-label=\"Ports\"] li').length === 2");
    for table in ["Logins", "Counters", "Ethernet ports"] {
        browser.wait(&format!("document.querySelector('table[aria-label=\"{table}\"] tbody')?.rows.length > 0"));
    }
    assert_eq!(browser.eval("document.querySelectorAll('table[aria-label=\"Ethernet switches\"]').length"), 0);
    browser.open(&format!("{url}?view=object&name=tor"));
    browser.wait("document.querySelector('table[aria-label=\"Ethernet switches\"] tbody')?.rows.length === 1");
    browser.no_complaints();
    instance.stop();
}
