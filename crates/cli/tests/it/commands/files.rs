//! `sanloom init`, `fmt`, `schema`, `man` and `compare`.

use crate::commands::tool::Bench;
use insta::assert_snapshot;

#[test]
fn init_writes_a_lab_that_check_accepts() {
    let bench = Bench::new("init");
    for template in ["minimal", "dual-fabric", "core-edge", "fcoe", "iscsi", "virtual-disks"] {
        let ran = bench.run(&format!("init {template}.toml --template {template}"));
        assert_eq!((ran.code, ran.stderr.as_str()), (0, ""), "{template}");
        assert!(ran.stdout.starts_with(&format!("{template}.toml written from the template")), "{}", ran.stdout);
        let checked = bench.run(&format!("check {template}.toml"));
        assert_eq!(checked.code, 0, "{template}: {}", checked.stderr);
        assert!(checked.stdout.starts_with(&format!("{template}: no mistakes")), "{}", checked.stdout);
        assert_eq!(bench.run(&format!("fmt --check {template}.toml")).code, 0, "{template}");
    }
}

#[test]
fn init_replaces_a_file_only_with_force() {
    let bench = Bench::new("init-twice");
    let before = bench.read("tiny.toml");
    let ran = bench.run("init tiny.toml");
    assert_eq!((ran.code, ran.stdout.as_str()), (2, ""));
    assert!(ran.stderr.contains("tiny.toml exists") && ran.stderr.contains("--force"), "{}", ran.stderr);
    assert_eq!(bench.read("tiny.toml"), before);
    assert_eq!(bench.run("init tiny.toml --force").code, 0);
    assert_ne!(bench.read("tiny.toml"), before);
    for (words, code, output) in [
        ("init", 2, "<LAB>"),
        ("init x.toml --template nothing", 2, "dual-fabric"),
        ("init missing/x.toml", 4, "missing/x.toml"),
    ] {
        let ran = bench.run(words);
        assert_eq!(ran.code, code, "{words}");
        assert!(ran.stderr.contains(output), "{words}: {}", ran.stderr);
    }
}

#[test]
fn fmt_changes_a_file_once_and_keeps_its_comments() {
    let bench = Bench::new("fmt");
    bench.write("a.toml", "[run]\n# how long\nseed=3   # a seed\n\n\n\nduration   = \"1s\"\n[switch.a]\n");
    assert_eq!(bench.run("fmt --check a.toml").code, 1);
    let ran = bench.run("fmt a.toml");
    assert_eq!((ran.code, ran.stdout.as_str(), ran.stderr.as_str()), (0, "a.toml formatted\n", ""));
    assert_eq!(bench.read("a.toml"), "[run]\n# how long\nseed = 3 # a seed\n\nduration = \"1s\"\n\n[switch.a]\n");
    let again = bench.run("fmt a.toml");
    assert_eq!((again.code, again.stdout.as_str()), (0, ""));
    assert_eq!(bench.run("fmt --check a.toml").code, 0);
    bench.write("bad.toml", "[run\n");
    let bad = bench.run("fmt bad.toml");
    assert_eq!(bad.code, 2);
    assert_eq!(bench.read("bad.toml"), "[run\n", "a file with errors stays as it is");
}

#[test]
fn man_writes_a_page_for_every_command_and_completions_for_every_shell() {
    let bench = Bench::new("man");
    let ran = bench.run("man pages");
    assert_eq!((ran.code, ran.stderr.as_str()), (0, ""));
    for page in ["sanloom.1", "sanloom-sim.1", "sanloom-volume-create.1", "sanloom-port-disable.1"] {
        let text = bench.read(&format!("pages/man1/{page}"));
        assert!(text.contains(".TH") && text.contains("SYNOPSIS"), "{page}: {text}");
    }
    for shell in ["bash", "zsh", "fish"] {
        assert!(bench.read(&format!("pages/completions/sanloom.{shell}")).contains("whatif"), "{shell}");
    }
    assert_eq!(bench.run("man tiny.toml/pages").code, 4);
}

#[test]
fn compare_shows_both_runs_and_their_differences() {
    let bench = Bench::new("compare");
    for (file, depth) in [("one.json", 1), ("two.json", 2)] {
        let words = format!(
            "sim tiny.toml --duration 8ms --no-report --quiet --set workload.reads.depth={depth} --json={file}"
        );
        let ran = bench.run(&words);
        assert_eq!(ran.code, 0, "{}", ran.stderr);
    }
    let same = bench.run("compare one.json one.json --metric totals.iops");
    assert_eq!(same.code, 0);
    assert!(same.stdout.lines().last().is_some_and(|row| row.ends_with('=')), "{}", same.stdout);
    let ran = bench
        .run("compare one.json two.json --metric totals.iops --metric totals.ios_failed --html=c.html --out folder");
    assert_eq!((ran.code, ran.stderr.as_str()), (0, ""));
    assert_snapshot!("compare", ran.stdout);
    assert!(bench.read("c.html").contains("totals.iops"));
    for file in ["compare.json", "compare.html", "compare.csv"] {
        assert!(!bench.read(&format!("folder/{file}")).is_empty());
    }
    let csv = bench.run("compare one.json two.json --csv --metric totals.ios_failed").stdout;
    assert_eq!(csv, "metric,first,second,change\ntotals.ios_failed,0,0,0\n");
    let failing = bench.read("one.json").replacen("\"ios_failed\": 0", "\"ios_failed\": 5", 1);
    bench.write("failing.json", &failing);
    let from_0 = bench.run("compare one.json failing.json --metric totals.ios_failed").stdout;
    assert!(from_0.lines().last().is_some_and(|row| row.ends_with("from 0")), "{from_0}");
}

#[test]
fn compare_notes_other_values_and_other_replications() {
    let bench = Bench::new("compare-notes");
    for (file, options) in [("one.json", ""), ("two.json", "--set workload.reads.depth=2 --replications 2")] {
        let ran = bench.run(&format!("sim tiny.toml --duration 8ms --no-report --quiet {options} --json={file}"));
        assert_eq!(ran.code, 0, "{}", ran.stderr);
    }
    let shown = bench.run("compare one.json two.json").stdout;
    for note in
        ["values of --set: none and workload.reads.depth=2\n", "replications: 1 and 2\n", "first seed of each run"]
    {
        assert!(shown.contains(note), "{note}: {shown}");
    }
}

#[test]
fn compare_rejects_results_of_another_schema() {
    let bench = Bench::new("compare-schema");
    assert_eq!(bench.run("sim tiny.toml --duration 8ms --no-report --quiet --json=one.json").code, 0);
    let later = bench.read("one.json").replacen("\"schema_version\": 1", "\"schema_version\": 99", 1);
    bench.write("later.json", &later);
    let ran = bench.run("compare one.json later.json");
    assert_eq!((ran.code, ran.stdout.as_str()), (2, ""));
    assert!(ran.stderr.contains("later.json has schema_version 99"), "{}", ran.stderr);
}

#[test]
fn compare_rejects_files_that_are_not_results_of_a_run() {
    let bench = Bench::new("compare-bad");
    bench.write("list.json", "[]");
    assert_eq!(bench.run("sim tiny.toml --duration 8ms --no-report --quiet --json=one.json").code, 0);
    for (words, output) in [
        ("compare one.json missing.json", "cannot read the results missing.json"),
        ("compare tiny.toml one.json", "is not JSON"),
        ("compare one.json list.json", "not the results of a run"),
        ("compare one.json one.json --metric totals.iopss", "did you mean `totals.iops`"),
        ("compare one.json one.json --min-change x", "percent"),
        ("compare one.json", "<RUN2>"),
    ] {
        let ran = bench.run(words);
        assert_eq!((ran.code, ran.stdout.as_str()), (2, ""), "{words}: {}", ran.stderr);
        assert!(ran.stderr.contains(output), "{words}: {}", ran.stderr);
    }
}
