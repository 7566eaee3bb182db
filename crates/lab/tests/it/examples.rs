//! The labs of `examples/`, and the reference page.

use sanloom_lab::{LoadedLab, Override};
use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::PathBuf;

/// Labs that demonstrate the configuration about which they are warned, with the warning.
const MEANT: [(&str, &str); 15] = [
    ("domain-overlap.toml", "isolated-link"),
    ("ethernet-pause.toml", "pause-mismatch"),
    ("fcip-distance.toml", "small-window"),
    ("infiniband-credits.toml", "few-credits"),
    ("ipoib-gateway.toml", "bad-size"),
    ("ipoib-modes.toml", "bad-size"),
    ("long-distance.toml", "few-credits"),
    ("merge-refused.toml", "isolated-link"),
    ("vendor-flow-control.toml", "isolated-link"),
    ("vendor-no-zoning.toml", "isolated-link"),
    ("vendor-three-switches.toml", "isolated-link"),
    ("vendor-three-switches.toml", "trunk-of-two-vendors"),
    ("fcoe-without-pfc.toml", "lossy-fcoe"),
    ("tcp-pacing.toml", "small-window"),
    ("tcp-window-scaling.toml", "small-window"),
];

fn root() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../..")
}

fn examples() -> Vec<(String, String)> {
    let mut found: Vec<(String, String)> = fs::read_dir(root().join("examples"))
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .filter(|path| path.extension().is_some_and(|e| e == "toml"))
        .map(|path| (path.file_name().unwrap().to_string_lossy().into_owned(), fs::read_to_string(path).unwrap()))
        .collect();
    found.sort();
    assert!(found.len() >= 20);
    found
}

fn load(name: &str, text: &str) -> LoadedLab {
    sanloom_lab::load(&label(name), text, &[]).unwrap_or_else(|e| panic!("{e}"))
}

/// Path of an example, beside which its files are.
fn label(name: &str) -> String {
    root().join("examples").join(name).display().to_string()
}

#[test]
fn every_example_loads_and_describes_its_purpose() {
    for (name, text) in examples() {
        let loaded = load(&name, &text);
        let (schema, text) = text.split_once('\n').unwrap();
        assert!(schema.starts_with("#:schema "), "{name} does not name its schema");
        assert!(text.starts_with("# "), "{name} does not begin with a comment");
        assert!(!loaded.lab.expectations.is_empty(), "{name} expects nothing");
        for warning in loaded.warnings {
            let meant = MEANT.contains(&(name.as_str(), warning.code));
            assert!(meant, "{}", warning.render(false));
        }
    }
}

#[test]
fn every_example_is_as_fmt_writes_it() {
    for (name, text) in examples() {
        let formatted = sanloom_lab::format(&name, &text).unwrap_or_else(|e| panic!("{e}"));
        assert!(formatted == text, "run `sanloom fmt examples/{name}`");
    }
}

#[test]
fn every_key_is_used_by_an_example_or_a_bad_file() {
    let tests = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/it");
    let mut texts: Vec<String> = examples().into_iter().map(|(_, text)| text).collect();
    for entry in ["bad", "edits"].iter().flat_map(|folder| fs::read_dir(tests.join(folder)).unwrap()) {
        texts.push(fs::read_to_string(entry.unwrap().path()).unwrap());
    }
    let mut used: BTreeSet<String> = BTreeSet::new();
    for table in texts.iter().filter_map(|text| text.parse::<toml::Table>().ok()) {
        for (section, value) in &table {
            for element in elements(value) {
                collect_paths(section, element, &mut used);
            }
        }
    }
    let mut section = String::new();
    let mut count = 0;
    let mut unused: Vec<String> = Vec::new();
    for line in sanloom_lab::reference().lines() {
        if let Some(heading) = line.strip_prefix("## `") {
            section = heading.trim_matches(['[', ']', '`']).replace(".NAME", "");
        }
        if let Some(key) = line.strip_prefix("| `").and_then(|rest| rest.split('`').next()) {
            count += 1;
            if !used.contains(&format!("{section}.{key}")) {
                unused.push(format!("{section}.{key}"));
            }
        }
    }
    assert!(count > 90, "{count}");
    assert_eq!(unused, [""; 0]);
}

/// Returns the tables of a section: the section itself, its named tables, or its list.
fn elements(value: &toml::Value) -> Vec<&toml::Value> {
    match value {
        toml::Value::Array(list) => list.iter().collect(),
        toml::Value::Table(table) if table.values().all(toml::Value::is_table) => table.values().collect(),
        other => vec![other],
    }
}

fn collect_paths(path: &str, value: &toml::Value, used: &mut BTreeSet<String>) {
    used.insert(path.to_owned());
    if let toml::Value::Table(table) = value {
        for (key, value) in table {
            collect_paths(&format!("{path}.{key}"), value, used);
        }
    }
}

/// `SANLOOM_BLESS=1 cargo test -p sanloom-lab` writes the page.
#[test]
fn the_reference_page_matches_the_definitions_of_the_parser() {
    let path = root().join("docs/src/reference/lab-file.md");
    let page = sanloom_lab::reference();
    if std::env::var_os("SANLOOM_BLESS").is_some() {
        fs::write(&path, &page).unwrap();
    }
    assert_eq!(fs::read_to_string(path).unwrap_or_default(), page, "set SANLOOM_BLESS=1 to print the page again");
}

#[test]
fn the_isls_of_core_edge_stand_where_the_paper_has_them() {
    let (_, text) = examples().into_iter().find(|(name, _)| name == "core-edge.toml").unwrap();
    let lab = load("core-edge.toml", &text).lab;
    let ends = |name: &str| {
        let link = lab.links.iter().find(|l| l.name == name).unwrap();
        link.ends.map(|e| match e.node {
            sanloom_fc::config::Node::Switch(i) => lab.switches[usize::from(i)].name.clone(),
            _ => String::new(),
        })
    };
    for (isl, edge) in [
        ("ISL1", "edge1"),
        ("ISL2", "edge1"),
        ("ISL3", "edge2"),
        ("ISL6", "edge3"),
        ("ISL7", "edge4"),
        ("ISL8", "edge4"),
    ] {
        assert_eq!(ends(isl), [edge, "core"]);
    }
    let disk1 = lab.links.iter().find(|l| l.name == "disk1-edge4");
    assert!(disk1.is_some_and(|l| l.propagation == sanloom_fc::config::Picos::from_ns(250)));
    assert_eq!(lab.hosts[0].hbas[0].data_frames_in_flight, Some(32));
}

#[test]
fn fabric_1024_has_1024_nodes_and_16_zoned_targets_behind_16_switches() {
    let (_, text) = examples().into_iter().find(|(name, _)| name == "fabric-1024.toml").unwrap();
    let lab = load("fabric-1024.toml", &text).lab;
    assert_eq!((lab.hosts.len(), lab.storage.len(), lab.switches.len()), (512, 512, 65));
    assert_eq!(lab.zoning.zones.len(), 32);
    for workload in &lab.workloads {
        assert_eq!((workload.hosts.len(), workload.targets.len()), (16, 16));
        let mut switches: Vec<_> = workload
            .targets
            .iter()
            .map(|t| {
                lab.links.iter().find(|l| l.ends[0].node == sanloom_fc::config::Node::Storage(t.storage)).unwrap().ends
                    [1]
                .node
            })
            .collect();
        switches.sort();
        switches.dedup();
        assert_eq!(switches.len(), 16);
    }
}

#[test]
fn overrides_change_the_lab_and_the_last_value_applies() {
    let cases = [
        ("core-edge.toml", "run.seed=42"),
        ("core-edge.toml", "run.duration=500ms"),
        ("core-edge.toml", "workload.reads.size=2KiB"),
        ("core-edge.toml", "workload.*.depth=4"),
        ("core-edge.toml", "switch.*.queueing=fifo"),
        ("core-edge.toml", "switch.edge{1..2}.buffers=8"),
        ("core-edge.toml", "host.\"server{1..4}\".queue_depth=16"),
        ("core-edge.toml", "host.server8.multipath.policy=failover"),
        ("core-edge.toml", "isl.ISL8.length=10km"),
        ("core-edge.toml", "isl.1.rate=\"4GFC\""),
        ("core-edge.toml", "link.disk3-edge4.credits=5"),
        ("core-edge.toml", "lab.preset=default"),
        ("core-edge.toml", "expect.1.max=7"),
        ("isl-failure.toml", "fault.*.at=0.5s"),
        ("zoning.toml", "zoning.default=open"),
        ("workload-mix.toml", "workload.poisson.arrivals=constant 1k/s"),
        ("workload-mix.toml", "workload.poisson.depth=4"),
        ("core-edge.toml", "workload.*.arrivals=poisson 1k/s"),
    ];
    let all = examples();
    for (file, set) in cases {
        let (_, text) = all.iter().find(|(name, _)| name == file).unwrap();
        let plain = load(file, text).lab;
        let change = Override::parse(set).unwrap();
        let changed =
            sanloom_lab::load(file, text, std::slice::from_ref(&change)).unwrap_or_else(|e| panic!("{e}")).lab;
        assert_ne!(changed, plain, "{set} changes nothing");
        // If a key is given twice, the last value applies.
        let mut first = change.clone();
        first.value = match set {
            "run.seed=42" => "43".to_owned(),
            _ => first.value,
        };
        let again = sanloom_lab::load(file, text, &[first, change]).unwrap_or_else(|e| panic!("{e}")).lab;
        assert_eq!(again, changed, "{set}");
    }
}

#[test]
fn graphs_have_a_cable_for_every_link_of_every_network() {
    let mut planes = BTreeMap::<String, usize>::new();
    for (name, text) in examples() {
        let loaded = load(&name, &text);
        let graph = sanloom_lab::topology::graph(&loaded.lab, &loaded.isolated);
        let of_shape = |shape: u32| {
            let shape = &graph.shapes[shape as usize];
            let own = [shape.label.clone()];
            let nodes = if shape.members.is_empty() { &own[..] } else { &shape.members };
            nodes.iter().map(|node| format!("{node}:")).collect::<Vec<_>>()
        };
        let mut drawn = BTreeSet::new();
        for cable in &graph.cables {
            let nodes = cable.shapes.map(of_shape);
            for &number in &cable.links {
                let link = &graph.links[number as usize];
                let is_at = |end: &str, nodes: &[String]| nodes.iter().any(|node| end.starts_with(node.as_str()));
                let [a, b] =
                    [0, 1].map(|side| is_at(&link.ends[0], &nodes[side]) && is_at(&link.ends[1], &nodes[1 - side]));
                assert!(a || b, "{name}: {link:?} between {nodes:?}");
                assert!(drawn.insert(number), "{name}: {link:?} is drawn twice");
                *planes.entry(format!("{:?}", link.plane)).or_default() += 1;
            }
        }
        assert_eq!(drawn.len(), graph.links.len(), "{name}");
        // The network that is added for a simulation is not drawn.
        let ethernet = if loaded.lab.ethernet_is_implied() { 0 } else { loaded.lab.ethernet_links.len() };
        let all = loaded.lab.links.len() + ethernet + loaded.lab.infiniband.links.len();
        assert_eq!(graph.links.len(), all, "{name}");
    }
    let names: Vec<&str> = planes.keys().map(String::as_str).collect();
    assert_eq!(names, ["Ethernet", "FibreChannel", "Infiniband"]);
}

#[test]
fn drawings_are_well_formed_and_name_every_link() {
    for (name, text) in examples() {
        let lab = load(&name, &text).lab;
        let links = lab.links.len() as f64;
        let plain = sanloom_lab::topology::svg(&lab, &[], None);
        let coloured = sanloom_lab::topology::svg(&lab, &[], Some(&|link| link as f64 / links));
        for drawing in [&plain, &coloured] {
            assert!(drawing.starts_with("<svg ") && drawing.ends_with("</svg>\n"));
            for tag in ["g", "text", "title", "svg", "style"] {
                let opened =
                    drawing.matches(&format!("<{tag}>")).count() + drawing.matches(&format!("<{tag} ")).count();
                assert_eq!(opened, drawing.matches(&format!("</{tag}>")).count(), "{name}: {tag}");
            }
        }
        if links <= 40.0 {
            let ethernet = lab.ethernet_links.iter().filter(|_| !lab.ethernet_is_implied()).map(|link| &link.name);
            let infiniband = lab.infiniband.links.iter().map(|link| &link.name);
            for link in lab.links.iter().map(|link| &link.name).chain(ethernet).chain(infiniband) {
                assert!(plain.contains(link), "{name}: {link}");
            }
        }
        assert!(plain.len() < 400_000, "{name}: {}", plain.len());
    }
}

/// Every warning about the design of an example is right, and the comments of the example explain
/// it.
#[test]
fn warnings_about_the_design_of_examples_are_intended() {
    let mut text = String::new();
    for (name, lab) in examples() {
        let (loaded, _) = sanloom_lab::check(&label(&name), &lab, &[]).unwrap_or_else(|e| panic!("{e}"));
        for warning in &loaded.warnings {
            // Both warnings come from rules of the protocol that are the subject of their examples.
            let explained = ["few-credits", "isolated-link"].contains(&warning.code)
                || lab.contains(&format!("`{}`", warning.code));
            assert!(explained, "{name} does not explain the warning {} of `sanloom check`", warning.code);
            text.push_str(&format!("{name}:{} {}: {}\n", warning.line, warning.code, warning.reason));
        }
    }
    insta::assert_snapshot!(text);
}
