//! Findings about congestion that spreads over input buffers.

use crate::labs;
use sanloom_api::results::{Finding, FindingKind};

/// A slow and a fast host that read from one array, each in the service level of its own number.
fn lab(lanes: u8, slow: &str, loads: [&str; 2]) -> String {
    format!(
        r#"
[run]
duration = "50ms"
warmup = "10ms"
[subnet]
lanes = {lanes}
[infiniband_switch."ib{{1..2}}"]
[host.slow]
[host.fast]
srp = {{ level = 1 }}
[storage.array]
rate = "1M/s"
srp = {{}}
[[link]]
from = "slow"
to = "ib1"
rate = "{slow}"
[[link]]
from = "fast"
to = "ib1"
rate = "4xQDR"
[[link]]
from = "array"
to = "ib2"
rate = "4xQDR"
[[isl]]
from = "ib1"
to = "ib2"
rate = "4xQDR"
[workload.slow]
hosts = "slow"
targets = "array"
size = "64KiB"
{}
[workload.fast]
hosts = "fast"
targets = "array"
size = "64KiB"
{}
"#,
        loads[0], loads[1]
    )
}

fn spreading(text: &str) -> Vec<Finding> {
    let findings = labs::run(&labs::lab(text)).findings;
    findings.into_iter().filter(|finding| finding.kind == FindingKind::CongestionSpreading).collect()
}

const MANY: &str = "depth = 16";

#[test]
fn the_finding_names_the_port_where_the_congestion_begins_and_its_victims() {
    let found = spreading(&lab(1, "1xSDR", [MANY, MANY]));
    assert_eq!(found.len(), 1, "{found:?}");
    assert_eq!(found[0].culprit.as_deref(), Some("ib1:0"));
    let victims: Vec<&str> = found[0].victims.iter().map(|victim| victim.name.as_str()).collect();
    assert_eq!(victims, ["fast:ib0"]);
    assert!(found[0].detail.contains("array:ib0") && found[0].remedy.contains("lanes"), "{:?}", found[0]);
}

#[test]
fn a_host_that_keeps_its_buffers_is_the_culprit() {
    let fault = "[[fault]]\nkind = \"withheld-credits\"\nport = \"slow:0\"\nat = \"12ms\"\nuntil = \"40ms\"\n";
    let found = spreading(&format!("{}{fault}", lab(1, "4xQDR", [MANY, MANY])));
    assert_eq!(found.len(), 1, "{found:?}");
    assert_eq!(found[0].culprit.as_deref(), Some("slow:ib0"));
}

/// A lane of its own protects the fast host. Without traffic of others nobody suffers, and hosts
/// whose own lines are full lose nothing to each other.
#[test]
fn healthy_labs_have_no_such_finding() {
    for (lab, why) in [
        (lab(2, "1xSDR", [MANY, MANY]), "two lanes"),
        (lab(1, "1xSDR", [MANY, "arrivals = \"constant 1/s\""]), "one flow"),
        (lab(1, "4xQDR", [MANY, MANY]), "the links between the switches are full"),
        (lab(1, "1xSDR", ["arrivals = \"poisson 500/s\"", MANY]), "the slow host does not fill its line"),
    ] {
        let found = spreading(&lab);
        assert!(found.is_empty(), "{why}: {found:?}");
    }
}
