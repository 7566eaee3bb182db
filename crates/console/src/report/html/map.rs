//! The map of the topology: the layout computed here, drawn by the renderer of the page.

use sanloom_api::graph::Graph;
use sanloom_api::results::Results;
use serde_json::{Value, json};
use std::collections::{BTreeMap, BTreeSet};

/// Modules of the page, links to `crates/surface/src/page`.
const MODULES: [&str; 3] = [
    include_str!("../../../assets/map/dom.js"),
    include_str!("../../../assets/map/status.js"),
    include_str!("../../../assets/map/map.js"),
];

/// Returns the renderer as a classic script, which sets `loom.map`. Browsers load no module from
/// `file://`, and a page must not load anything.
pub fn script() -> String {
    let mut out = String::from("\"use strict\";\nloom.map = (function () {\n");
    for line in MODULES.iter().flat_map(|module| module.lines()).filter(|line| !line.starts_with("import ")) {
        out.push_str(line.strip_prefix("export ").unwrap_or(line));
        out.push('\n');
    }
    out.push_str("return { Map2d: Map2d };\n})();\n");
    out
}

/// Returns the graph, the utilisation of each link, and the classes of the names in faults and
/// findings.
pub fn data(results: &Results, graph: &Graph) -> Value {
    let busy: BTreeMap<&str, f64> = results
        .links
        .iter()
        .map(|link| (link.name.as_str(), (link.utilisation().clamp(0.0, 1.0) * 1e3).round() / 1e3))
        .collect();
    let faults = results.faults.iter().flat_map(|fault| fault.link.iter().chain(&fault.node));
    let culprits = results.findings.iter().flat_map(|finding| finding.culprits.iter().chain(&finding.culprit));
    let victims = results.findings.iter().flat_map(|finding| &finding.victims).map(|victim| &victim.name);
    let mut marks: BTreeMap<&str, BTreeSet<&str>> = BTreeMap::new();
    let all = faults.map(|name| (name, "fault")).chain(culprits.map(|name| (name, "culprit")));
    for (name, class) in all.chain(victims.map(|name| (name, "victim"))) {
        // A port also marks its node.
        let node = name.rsplit_once(':').map(|(node, _)| node);
        for name in [Some(name.as_str()), node].into_iter().flatten() {
            marks.entry(name).or_default().insert(class);
        }
    }
    json!({ "graph": graph, "busy": busy, "marks": marks })
}
