//! `sanloom whatif`, as a user meets it.

use crate::tool::Bench;
use insta::assert_snapshot;

#[test]
fn ranks_the_failures_of_a_dual_fabric() {
    assert_snapshot!(Bench::new("whatif-table").run("whatif dual.toml").snapshot());
}

#[test]
fn the_files_do_not_depend_on_the_number_of_threads() {
    let bench = Bench::new("whatif-files");
    for threads in [1, 2] {
        let words = format!("whatif dual.toml --json {threads}.json --html {threads}.html --quiet --threads {threads}");
        assert_eq!(bench.run(&words).code, 0);
    }
    assert_eq!(bench.read("1.json"), bench.read("2.json"));
    assert_eq!(bench.read("1.html"), bench.read("2.html"));
    let ranking: serde_json::Value = serde_json::from_str(&bench.read("1.json")).expect("JSON");
    let rows = ranking.as_array().expect("a list");
    // Five links, two switches, three HBAs.
    assert_eq!(rows.len(), 10);
    assert_eq!(rows[0]["pairs_cut_off"], 1);
    // A failure of a side costs requests the time that commands need to go over to the other one, at least.
    let longest = |row: &serde_json::Value| row["longest_request_us"].as_f64().expect("a number");
    assert!(rows.iter().map(longest).fold(0.0, f64::max) > 3.0 * rows.iter().map(longest).fold(f64::MAX, f64::min));
    let hosts: Vec<_> = rows[0]["hosts"].as_array().expect("hosts").iter().map(|host| &host["name"]).collect();
    assert_eq!(hosts, ["both", "single"]);
}

#[test]
fn faults_of_the_lab_make_no_double_failures() {
    let bench = Bench::new("whatif-faults");
    let dual = bench.read("dual.toml");
    let fault = "\n[[fault]]\nat = \"10ms\"\nkind = \"switch-reset\"\nswitch = \"fabricA\"\nfor = \"5ms\"\n";
    bench.write("faulty.toml", &format!("{dual}{fault}"));
    let run = |lab: &str| {
        let ran = bench.run(&format!("whatif {lab} --json -"));
        let ranking: serde_json::Value = serde_json::from_str(&ran.stdout).expect("JSON");
        ranking.as_array().expect("a list").clone()
    };
    let (mut with, without) = (run("faulty.toml"), run("dual.toml"));
    for row in &mut with {
        assert_eq!(row["lab_faults_left_out"], 1);
        row["lab_faults_left_out"] = 0.into();
    }
    assert_eq!(with, without);
    let text = bench.run("whatif faulty.toml").stdout;
    assert!(text.contains("\nThe lab's own fault is left out of every run.\n"), "{text}");
    assert!(!bench.run("whatif dual.toml").stdout.contains("left out"));
}
