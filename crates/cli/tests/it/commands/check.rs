//! `sanloom check`, as a user meets it.

use crate::commands::tool::Bench;
use insta::assert_snapshot;

#[test]
fn shows_every_mistake_of_a_bad_lab_with_its_place() {
    assert_snapshot!(Bench::new("check-bad").run("check bad.toml").snapshot());
}

#[test]
fn reports_the_topology_of_a_good_lab() {
    assert_snapshot!(Bench::new("check-good").run("check dual.toml").snapshot());
}

#[test]
fn points_at_a_mistake_in_set() {
    assert_snapshot!(Bench::new("check-set").run("check tiny.toml --set workload.reads.depht=4").snapshot());
}

#[test]
fn gives_mistakes_and_topology_as_json() {
    let bench = Bench::new("check-json");
    let bad = bench.run("check bad.toml --json");
    assert_eq!(bad.code, 2);
    let value: serde_json::Value = serde_json::from_str(&bad.stdout).expect("JSON");
    assert_eq!(value["ok"], false);
    assert_eq!(value["mistakes"][0]["code"], "unknown-key");
    assert_eq!(value["mistakes"][0]["line"], 3);
    let good = bench.run("check tiny.toml --json");
    assert_eq!(good.code, 0);
    let value: serde_json::Value = serde_json::from_str(&good.stdout).expect("JSON");
    assert_eq!(value["ok"], true);
    assert_eq!(value["topology"]["hosts"], 2);
}

#[test]
fn draws_the_topology() {
    let bench = Bench::new("check-svg");
    assert_eq!(bench.run("check tiny.toml --svg drawing.svg").code, 0);
    let drawing = bench.read("drawing.svg");
    assert!(drawing.starts_with("<svg") && drawing.contains("hub"), "{drawing}");
}

#[test]
fn reads_a_lab_from_standard_input() {
    let bench = Bench::new("check-stdin");
    let file = std::fs::File::open(bench.path("tiny.toml")).expect("the lab");
    let output = bench.command("check -").stdin(file).output().expect("the command runs");
    assert_eq!(bench.ran(output).code, 0);
}
