//! `sanloom zone` and `sanloom fabric`, as a user meets them.

use crate::commands::tool::Bench;
use insta::assert_snapshot;
use sanloom_api::zoning::{MergePreview, PortPair, ZoneExplanation, ZonePreview};

const EXAMPLES: [(&str, &str); 4] = [
    ("peer.toml", include_str!("../../../../../examples/zoning-peer.toml")),
    ("a.toml", include_str!("../../../../../examples/merge-a.toml")),
    ("b.toml", include_str!("../../../../../examples/merge-b.toml")),
    ("conflict.toml", include_str!("../../../../../examples/merge-conflict.toml")),
];

const EDITS: &str = r#"
[[edit]]
action = "remove"
zone = "storage1"
members = "blade1"

[[edit]]
action = "create"
zone = "pair"
members = ["server1", "server2"]

[[edit]]
action = "add"
config = "production"
zones = "pair"
"#;

fn bench(name: &str) -> Bench {
    let bench = Bench::new(name);
    for (file, text) in EXAMPLES {
        bench.write(file, text);
    }
    bench.write("edits.toml", EDITS);
    bench
}

#[test]
fn explains_why_ports_can_and_cannot_talk() {
    let bench = bench("zone-explain");
    let mut all = String::new();
    for question in ["server1 array1", "server5 server6", "1,7 tape", "server1 0x020400", "server3 server3"] {
        let ran = bench.run(&format!("zone explain peer.toml {question}"));
        assert_eq!(ran.code, 0);
        all.push_str(&format!("$ sanloom zone explain peer.toml {question}\n{}\n", ran.stdout));
    }
    assert_snapshot!(all);
}

#[test]
fn a_port_can_be_named_as_in_logs() {
    let bench = bench("zone-explain-names");
    let answer = |question: &str| {
        let ran = bench.run(&format!("zone explain peer.toml {question} --json"));
        assert_eq!(ran.code, 0, "{question}: {}", ran.stderr);
        serde_json::from_str::<ZoneExplanation>(&ran.stdout).expect("JSON")
    };
    let by_name = answer("server1 array1");
    let (first, second) = (&by_name.pairs[0].first, &by_name.pairs[0].second);
    assert_ne!(first.port_id, "000000");
    for (a, b) in [
        (first.port_id.clone(), second.port_id.clone()),
        (format!("0x{}", first.port_id), second.port_id.to_uppercase()),
        (first.port_name.clone(), second.port_name.replace(':', "")),
        (format!("wwnn:{}", first.node_name), format!("wwpn:{}", second.port_name)),
    ] {
        assert_eq!(answer(&format!("{a} {b}")).pairs, by_name.pairs[..1], "{a} {b}");
    }
    // Addresses assigned at login are not in the lab.
    let ran = bench.run("zone explain peer.toml server1 000000 --set switch.sw1.addressing=flat");
    assert!(ran.code == 2 && ran.stderr.contains("addresses are assigned at login"), "{}", ran.stderr);
}

#[test]
fn a_zone_of_another_virtual_fabric_does_not_count() {
    let bench = bench("zone-virtual-fabrics");
    bench.write("vf.toml", include_str!("../../../../../examples/virtual-fabrics.toml"));
    // Both HBAs of the server are members of the zone `tapes`, which belongs only to the virtual
    // fabric of the second.
    for (question, allowed, reason) in [
        ("server1:0 array", true, "default-open"),
        ("server1:1 tapes", true, "common-zone"),
        ("server1:0 tapes", false, "different-fabrics"),
        ("server2 array", true, "default-open"),
    ] {
        let json = bench.run(&format!("zone explain vf.toml {question} --json"));
        let answer: ZoneExplanation = serde_json::from_str(&json.stdout).expect("JSON");
        assert_eq!((answer.allowed, answer.pairs[0].reason.as_str()), (allowed, reason), "{question}");
        assert_eq!(answer.pairs[0].first_zones.len(), usize::from(question.contains(":1")), "{question}");
    }
}

#[test]
fn a_preview_judges_each_virtual_fabric_by_its_own_zones() {
    let bench = bench("preview-virtual-fabrics");
    bench.write("vf.toml", include_str!("../../../../../examples/virtual-fabrics.toml"));
    bench.write("close.toml", "[[edit]]\naction = \"default\"\ndefault = \"closed\"\n");
    let json = bench.run("zone preview vf.toml --edit close.toml --json");
    let preview: ZonePreview = serde_json::from_str(&json.stdout).unwrap_or_else(|_| panic!("{}", json.stderr));
    let text = |pair: &PortPair| format!("{} {}", pair.0, pair.1);
    let mut loses: Vec<String> = preview.loses.iter().map(text).collect();
    loses.sort();
    // The zone is in the other virtual fabric, so that it permits none of these.
    assert_eq!(loses, ["server1:0 array:0", "server1:0 server2:0", "server2:0 array:0"]);
}

#[test]
fn explains_the_default_zone_and_rejects_unknown_ports() {
    let bench = bench("zone-default");
    assert_snapshot!(bench.run("zone explain tiny.toml h1 d1").snapshot());
    assert_snapshot!("unknown_port", bench.run("zone explain peer.toml server9 tape").snapshot());
    for (question, output) in [
        ("server1 arrray1", "did you mean `array1`?"),
        ("nosuch tape", "write one of `server1`"),
        ("server1 010101", "its ports are those of `server1`"),
        ("server1 10:00:00:00:00:00:00:01", "its ports are those of `server1`"),
    ] {
        let ran = bench.run(&format!("zone explain peer.toml {question}"));
        assert!(ran.code == 2 && ran.stderr.contains(output), "{question}: {}", ran.stderr);
    }
    let json = bench.run("zone explain peer.toml server8 tape --json");
    let answer: ZoneExplanation = serde_json::from_str(&json.stdout).expect("JSON");
    assert!(answer.allowed);
    assert_eq!((answer.pairs[0].reason.as_str(), &answer.pairs[0].zones), ("common-zone", &vec!["backup".to_owned()]));
}

#[test]
fn previews_the_effect_of_edits() {
    let bench = bench("zone-preview");
    assert_snapshot!(bench.run("zone preview peer.toml --edit edits.toml").snapshot());
    let json = bench.run("zone preview peer.toml --edit edits.toml --json");
    let answer: ZonePreview = serde_json::from_str(&json.stdout).expect("JSON");
    assert_eq!((answer.gains.len(), answer.loses.len()), (1, 4));
    assert_ne!(answer.before.generation, answer.after.generation);
    bench.write("bad.toml", "[[edit]]\naction = \"delete\"\nzone = \"storage1\"\n");
    assert_snapshot!("refused_edit", bench.run("zone preview peer.toml --edit bad.toml").snapshot());
}

#[test]
fn previews_a_merge_that_succeeds() {
    let bench = bench("merge-good");
    assert_snapshot!(bench.run("fabric merge-preview a.toml b.toml").snapshot());
    let json = bench.run("fabric merge-preview a.toml b.toml --json");
    let answer: MergePreview = serde_json::from_str(&json.stdout).expect("JSON");
    assert!(answer.joins && json.code == 0);
    assert_eq!(answer.merged.expect("merged").zones, ["a-zone1", "a-zone2", "b-zone1", "b-zone2"]);
}

#[test]
fn names_the_zone_that_prevents_a_merge() {
    let bench = bench("merge-bad");
    assert_snapshot!(bench.run("fabric merge-preview a.toml conflict.toml").snapshot());
    let json = bench.run("fabric merge-preview a.toml conflict.toml --json");
    let answer: MergePreview = serde_json::from_str(&json.stdout).expect("JSON");
    assert!(!answer.joins && json.code == 1);
    assert_eq!(answer.isolation[0].name.as_deref(), Some("a-zone1"));
    let timers = EXAMPLES[1].1.replace("[zoning]", "[timers]\ne_d_tov = \"3s\"\n\n[zoning]");
    bench.write("same.toml", &timers);
    assert_snapshot!("domains_and_timers", bench.run("fabric merge-preview a.toml same.toml").snapshot());
}
