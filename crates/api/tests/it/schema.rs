//! Consistency of the results page with the types: its tables are generated from the doc comments,
//! and its fields are compared with the output of serde. `SANLOOM_BLESS=1 cargo test -p
//! sanloom-api` rewrites the page.

use sanloom_api::results::*;
use serde_json::{Value, to_value};
use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::path::Path;

const PAGE: &str = "../../docs/src/reference/results.md";

/// Source files in the order of the page.
const FILES: [&str; 19] = [
    "mod",
    "lab",
    "io",
    "host",
    "link",
    "port",
    "storage",
    "ethernet",
    "iscsi",
    "fcip",
    "infiniband",
    "arbitrated_loop",
    "balance",
    "story",
    "expectation",
    "series",
    "replication",
    "engine",
    "study",
];

#[test]
fn the_page_is_made_from_the_types() {
    let page = page();
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join(PAGE);
    if std::env::var_os("SANLOOM_BLESS").is_some() {
        std::fs::write(&path, &page).unwrap();
    }
    let there = std::fs::read_to_string(&path).unwrap_or_default();
    assert!(
        there == page,
        "docs/src/reference/results.md is out of date: run SANLOOM_BLESS=1 cargo test -p sanloom-api"
    );
}

#[test]
fn documented_fields_are_those_that_serde_writes() {
    let types: BTreeMap<String, Type> = sources().into_iter().map(|t| (t.name.clone(), t)).collect();
    for (name, value) in examples() {
        let documented = field_names(&types, name);
        let mut written: Vec<String> = match value {
            Value::Object(fields) => fields.into_iter().map(|(key, _)| key).collect(),
            other => panic!("{name} is no object: {other}"),
        };
        let mut documented = documented;
        documented.sort();
        written.sort();
        assert_eq!(documented, written, "{name}");
    }
    for (name, t) in &types {
        let known = examples().iter().any(|(example, _)| example == name);
        assert!(known || !t.is_struct || name == "HistogramBucket", "{name} has no example here");
    }
}

#[test]
fn results_survive_json() {
    let mut results = Results { replications: Some(Replications::default()), ..Results::default() };
    results.hosts.push(HostResult {
        name: "server1".into(),
        io: IoStats {
            throughput_bytes_per_s: 81_899_999.300_000_01,
            latency: Latency { count: 3, p99_9_us: 0.1, ..Latency::default() },
            ..IoStats::default()
        },
        latency_histogram: vec![HistogramBucket(12.5, 3)],
        ..HostResult::default()
    });
    let text = serde_json::to_string(&results).unwrap();
    assert!(text.contains("\"latency_histogram\":[[12.5,3]]"));
    let back: Results = serde_json::from_str(&text).unwrap();
    assert_eq!(back, results);
}

#[test]
fn the_reproducible_part_has_no_engine() {
    let mut results = Results::default();
    let before = results.reproducible_json();
    results.engine.cpu_s = 1.0;
    assert_eq!(before, results.reproducible_json());
    assert!(before.get("engine").is_none() && before.get("totals").is_some());
}

#[test]
fn unknown_and_missing_fields_are_read() {
    let read: Results = serde_json::from_str(r#"{"lab":{"name":"x"},"later":1}"#).unwrap();
    assert_eq!(read.lab.name, "x");
}

/// A value of every type with all optional fields present.
fn examples() -> Vec<(&'static str, Value)> {
    let some = || Some("x".to_owned());
    let results = Results {
        replications: Some(Replications::default()),
        loops: vec![LoopResult::default()],
        ethernet_links: vec![EthernetLinkResult::default()],
        ethernet_switches: vec![EthernetSwitchResult::default()],
        iscsi_sessions: vec![IscsiSessionResult::default()],
        fcip_links: vec![FcipLinkResult::default()],
        subnet: Some(SubnetResult::default()),
        infiniband_links: vec![InfinibandLinkResult::default()],
        srp_channels: vec![SrpChannelResult::default()],
        ..Results::default()
    };
    let intervals = BTreeMap::from([("left".to_owned(), Interval::default())]);
    let values = [
        ("Results", to_value(results)),
        (
            "LabInfo",
            to_value(LabInfo {
                settled_s: Some(0.0),
                command: some(),
                source: some(),
                precision: Some(PrecisionResult::default()),
                ..LabInfo::default()
            }),
        ),
        ("PrecisionResult", to_value(PrecisionResult { reached: Some(0.0), ..PrecisionResult::default() })),
        (
            "FaultEvent",
            to_value(FaultEvent { until_s: Some(1.0), link: some(), node: some(), ..FaultEvent::default() }),
        ),
        ("IoStats", to_value(IoStats::default())),
        ("Latency", to_value(Latency::default())),
        ("QueueDepth", to_value(QueueDepth::default())),
        ("Totals", to_value(Totals::default())),
        ("HostResult", to_value(HostResult { ip_router: Some(IpRouterResult::default()), ..HostResult::default() })),
        ("IpRouterResult", to_value(IpRouterResult::default())),
        ("CpuWork", to_value(CpuWork::default())),
        ("PathResult", to_value(PathResult::default())),
        ("StreamResult", to_value(StreamResult { trace: Some(TraceResult::default()), ..StreamResult::default() })),
        ("TraceResult", to_value(TraceResult { error: Some(String::new()), ..TraceResult::default() })),
        ("StreamHostResult", to_value(StreamHostResult::default())),
        ("LinkResult", to_value(LinkResult { bundle: some(), ..LinkResult::default() })),
        (
            "LinkDirection",
            to_value(LinkDirection { channels: vec![ChannelResult::default()], ..LinkDirection::default() }),
        ),
        ("ChannelResult", to_value(ChannelResult::default())),
        ("PortResult", to_value(PortResult { sequence_discards: Some(0), ..PortResult::default() })),
        ("SwitchResult", to_value(SwitchResult::default())),
        (
            "StorageResult",
            to_value(StorageResult {
                disk_loop_utilisation: Some(0.0),
                controllers: vec![ControllerResult::default()],
                gateway: Some(GatewayResult::default()),
                metadata: Some(MetadataResult::default()),
                adapters: Some(AdapterResult::default()),
                cache: Some(CacheResult::default()),
                data_loss: Some(DataLossResult::default()),
                raid: vec![RaidResult::default()],
                disks: vec![DiskResult::default()],
                ssds: vec![SsdResult::default()],
                ..StorageResult::default()
            }),
        ),
        ("DiskResult", to_value(DiskResult::default())),
        ("SsdResult", to_value(SsdResult::default())),
        ("GatewayResult", to_value(GatewayResult::default())),
        ("MetadataResult", to_value(MetadataResult::default())),
        ("ControllerResult", to_value(ControllerResult::default())),
        ("AdapterResult", to_value(AdapterResult::default())),
        ("CacheResult", to_value(CacheResult::default())),
        ("DataLossResult", to_value(DataLossResult::default())),
        ("LostRequest", to_value(LostRequest::default())),
        ("RaidResult", to_value(RaidResult { rebuilt: Some(0.0), scrubbed: Some(0.0), ..RaidResult::default() })),
        ("EthernetLinkResult", to_value(EthernetLinkResult::default())),
        ("EthernetDirection", to_value(EthernetDirection::default())),
        ("EthernetSwitchResult", to_value(EthernetSwitchResult::default())),
        ("IscsiSessionResult", to_value(IscsiSessionResult::default())),
        ("FcipLinkResult", to_value(FcipLinkResult::default())),
        ("SubnetResult", to_value(SubnetResult { refusal: some(), ..SubnetResult::default() })),
        ("InfinibandLinkResult", to_value(InfinibandLinkResult::default())),
        ("InfinibandDirection", to_value(InfinibandDirection::default())),
        ("SrpChannelResult", to_value(SrpChannelResult::default())),
        ("LoopResult", to_value(LoopResult::default())),
        ("LoopPortResult", to_value(LoopPortResult::default())),
        ("Conservation", to_value(Conservation::default())),
        ("Event", to_value(Event { subject: some(), ..Event::default() })),
        ("Finding", to_value(Finding { culprit: some(), from_s: Some(0.0), until_s: Some(1.0), ..Finding::default() })),
        ("Remedy", to_value(Remedy::default())),
        ("Victim", to_value(Victim::default())),
        (
            "ExpectationResult",
            to_value(ExpectationResult {
                min: Some(0.0),
                max: Some(1.0),
                value: Some(0.5),
                reason: Some(String::new()),
                ..ExpectationResult::default()
            }),
        ),
        ("Series", to_value(Series { plane_links: vec![PlaneLinkSeries::default()], ..Series::default() })),
        ("TotalSeries", to_value(TotalSeries::default())),
        ("HostSeries", to_value(HostSeries::default())),
        ("LinkSeries", to_value(LinkSeries::default())),
        ("PlaneLinkSeries", to_value(PlaneLinkSeries::default())),
        ("StorageSeries", to_value(StorageSeries::default())),
        ("Replications", to_value(Replications::default())),
        ("Interval", to_value(Interval::default())),
        ("Engine", to_value(Engine::default())),
        ("SweepRow", to_value(SweepRow { error: some(), intervals: intervals.clone(), ..SweepRow::default() })),
        ("Setting", to_value(Setting::default())),
        ("WhatIfRow", to_value(WhatIfRow { recovery_s: Some(1.0), intervals, ..WhatIfRow::default() })),
        ("CutOff", to_value(CutOff::default())),
    ];
    values.map(|(name, value)| (name, value.unwrap())).to_vec()
}

/// A struct or an enum of the schema, as read from its source.
struct Type {
    name: String,
    is_struct: bool,
    doc: String,
    fields: Vec<Field>,
}

struct Field {
    name: String,
    rust_type: String,
    doc: String,
    flattened: bool,
    optional: bool,
}

fn field_names(types: &BTreeMap<String, Type>, name: &str) -> Vec<String> {
    types[name]
        .fields
        .iter()
        .flat_map(|field| if field.flattened { field_names(types, &field.rust_type) } else { vec![field.name.clone()] })
        .collect()
}

/// Reads the public types from the sources. Supports only code formatted by `rustfmt`.
fn sources() -> Vec<Type> {
    let mut out: Vec<Type> = Vec::new();
    for file in FILES {
        let path = Path::new(env!("CARGO_MANIFEST_DIR")).join(format!("src/results/{file}.rs"));
        let text = std::fs::read_to_string(path).unwrap();
        let (mut doc, mut attributes, mut inside) = (String::new(), String::new(), false);
        for line in text.lines() {
            let trimmed = line.trim();
            if let Some(words) = trimmed.strip_prefix("///") {
                doc.push_str(words);
            } else if trimmed.starts_with("#[") {
                attributes.push_str(trimmed);
            } else if inside && line == "}" {
                inside = false;
            } else if inside && attributes.contains("serde(skip)") {
                doc.clear();
                attributes.clear();
            } else if inside {
                let field = trimmed.trim_end_matches(',');
                let (name, rust_type) = match field.split_once(": ") {
                    Some((name, rust_type)) => (name.trim_start_matches("pub ").to_owned(), rust_type),
                    None => (snake(field), ""),
                };
                out.last_mut().unwrap().fields.push(Field {
                    name,
                    rust_type: rust_type.to_owned(),
                    doc: std::mem::take(&mut doc).trim().to_owned(),
                    flattened: attributes.contains("flatten"),
                    optional: attributes.contains("skip_serializing_if"),
                });
                attributes.clear();
            } else {
                let head = trimmed.trim_end_matches([' ', '{', '(']);
                for (word, is_struct) in [("pub struct ", true), ("pub enum ", false)] {
                    if let Some(name) = head.strip_prefix(word) {
                        out.push(Type {
                            name: name.to_owned(),
                            is_struct,
                            doc: doc.trim().to_owned(),
                            fields: Vec::new(),
                        });
                        inside = trimmed.ends_with('{');
                    }
                }
                doc.clear();
                attributes.clear();
            }
        }
    }
    out
}

/// The serde name of a variant: `link_reset` for `LinkReset`.
fn snake(name: &str) -> String {
    let mut out = String::new();
    for c in name.chars() {
        if c.is_ascii_uppercase() && !out.is_empty() {
            out.push('_');
        }
        out.push(c.to_ascii_lowercase());
    }
    out
}

fn page() -> String {
    let types = sources();
    let names: Vec<&str> = types.iter().map(|t| t.name.as_str()).collect();
    let mut out = String::from(INTRODUCTION);
    for t in &types {
        let _ = write!(out, "\n## {}\n\n{}\n\n", t.name, prose(&t.doc, &names));
        if t.fields.is_empty() {
            continue;
        }
        if t.is_struct {
            out.push_str("| field | type | meaning |\n|---|---|---|\n");
        } else {
            out.push_str("| value | meaning |\n|---|---|\n");
        }
        for field in &t.fields {
            let meaning = prose(&field.doc, &names);
            if !t.is_struct {
                let _ = writeln!(out, "| `\"{}\"` | {meaning} |", field.name);
            } else if field.flattened {
                let inner = link(&field.rust_type);
                let _ = writeln!(out, "| | | All fields of {inner}. {meaning} |");
            } else {
                let kind = json_type(&field.rust_type, &names);
                let optional = if field.optional { ", may be absent" } else { "" };
                let _ = writeln!(out, "| `{}` | {kind}{optional} | {meaning} |", field.name);
            }
        }
    }
    out
}

fn json_type(rust_type: &str, names: &[&str]) -> String {
    let inner = |prefix: &str| rust_type.strip_prefix(prefix).and_then(|rest| rest.strip_suffix('>'));
    if let Some(inner) = inner("Option<") {
        return json_type(inner, names);
    }
    if let Some(inner) = inner("Vec<") {
        return format!("list of {}", json_type(inner, names));
    }
    if let Some(inner) = inner("BTreeMap<String, ") {
        return format!("map of {}", json_type(inner, names));
    }
    match rust_type {
        "u8" | "u32" | "u64" => "integer".into(),
        "f64" => "number".into(),
        "String" => "string".into(),
        "bool" => "boolean".into(),
        other if names.contains(&other) => link(other),
        other => panic!("no JSON type is known for {other}"),
    }
}

fn link(name: &str) -> String {
    format!("[{name}](#{})", name.to_lowercase())
}

/// Converts a doc comment to Markdown. Links to types become links to sections of the page.
fn prose(doc: &str, names: &[&str]) -> String {
    let mut text = doc.replace('|', "\\|");
    for name in names {
        for written in [format!("[`{name}`]"), format!("[`super::{name}`]")] {
            text = text.replace(&written, &link(name));
        }
    }
    text.replace("[`super::Metrics`]", "[Paths](#paths)")
        .replace("[`Metrics`]", "[Paths](#paths)")
        .replace("[`SCHEMA_VERSION`]", "`schema_version`")
        .replace("[`Results::conservation`]", "`conservation`")
}

const INTRODUCTION: &str = r#"# Results

`sanloom sim LAB --json=FILE` writes one JSON object, [Results](#results-1). A test writes this page
from the types of the package `sanloom-api`.

- `schema_version` is 1. It grows when a field changes its meaning or is removed. New fields may be
  added at any time; readers should ignore unknown ones.
- Everything except `engine` depends on the lab and its seed alone: two runs give the same bytes.
- The unit is the last part of a name: `_us` microseconds, `_s` seconds, `_bytes`, `_bytes_per_s`. One
  MB/s in tables is 10^6 bytes per second. Shares (`utilisation`, `…_fraction`) are between 0 and 1.
- Numbers are never NaN or infinite. A latency without values is all zeros with `count` 0.
- Lists keep the order of the lab file. Keys of maps are sorted.

## Files of a run

| file | content |
|---|---|
| `results.json` | this schema |
| `series.csv` | [Series](#series), a row for each step; columns are `at_s` and paths such as `hosts.server1.iops` |
| `series.jsonl` | the same as JSON Lines: `{"at_s":0.1,"total":{…},"hosts":{"server1":{…}},"links":{…},"storage":{…}}` |
| `report.html` | the report, in one file that needs no network |
| `topology.svg`, `lab.toml` | the drawing, and the lab that was run |

`sweep --json` writes a list of [SweepRow](#sweeprow); `rows.jsonl` of `--out` and `--csv=FILE.jsonl`
have one per line. `whatif --json` writes a list of [WhatIfRow](#whatifrow).

## Paths

Expectations of a lab and `sweep` select a number by its path, such as
`hosts.server1.throughput_bytes_per_s`. `whatif --expect` takes the names of its CSV columns. An
element of a list is selected by its `name`, or by its position from 0 if it has none. `*` matches
any characters of one part. A path that matches several numbers needs one of `sum(…)`, `min(…)`,
`max(…)`, `mean(…)`, `count(…)`:

```text
totals.ios_failed
hosts.server1.latency.p99_us
links.isl1.forward.utilisation
drops.hold_time
min(hosts.server*.throughput_bytes_per_s)
max(links.*.*.credit_wait_fraction)
count(findings.*)
```
"#;
