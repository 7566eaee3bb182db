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
    let hosts: Vec<_> = rows[0]["hosts"].as_array().expect("hosts").iter().map(|host| &host["name"]).collect();
    assert_eq!(hosts, ["both", "single"]);
}
