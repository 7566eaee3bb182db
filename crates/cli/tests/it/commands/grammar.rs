//! One grammar: options that mean the same in every verb, LAB first, and the old spellings.

use crate::commands::tool::{Bench, without_engine};
use std::fs::OpenOptions;

#[test]
fn json_without_a_file_goes_to_standard_output_and_with_one_leaves_the_text() {
    let bench = Bench::new("grammar-json");
    for verb in
        ["sim tiny.toml --no-report", "check tiny.toml", "show tiny.toml switch", "zone explain tiny.toml h1 d1"]
    {
        let alone = bench.run(&format!("{verb} --json"));
        assert_eq!(alone.code, 0, "{verb}: {}", alone.stderr);
        let printed: serde_json::Value = serde_json::from_str(&alone.stdout).expect(verb);
        let both = bench.run(&format!("{verb} --json=out.json"));
        assert_eq!(both.code, 0, "{verb}: {}", both.stderr);
        assert!(!both.stdout.is_empty() && !both.stdout.starts_with('{'), "{verb}: {}", both.stdout);
        let mut written: serde_json::Value = serde_json::from_str(&bench.read("out.json")).expect(verb);
        let mut printed = printed;
        for value in [&mut written, &mut printed] {
            // The processor time and the command differ.
            value.as_object_mut().expect("an object").remove("engine");
        }
        assert_eq!(written, printed, "{verb}");
    }
}

#[test]
fn old_spellings_give_the_same_as_the_present_ones() {
    let bench = Bench::new("grammar-old");
    let sim = |words: &str| bench.run(&format!("sim tiny.toml --duration 8ms --quiet {words}"));
    assert_eq!(sim("--out new --json=new.json --csv=new.csv --html=new.html").code, 0);
    assert_eq!(sim("--report old --json old.json --series old.csv").code, 0);
    assert_eq!(without_engine(&bench.read("new.json")), without_engine(&bench.read("old.json")));
    assert_eq!(bench.read("new.csv"), bench.read("old.csv"));
    assert!(bench.path("old/report.html").exists() && bench.path("new/report.html").exists());
    assert!(bench.read("new.html").starts_with("<!DOCTYPE html>"));
    let (new, old) = (bench.run("show tiny.toml ns"), bench.run("show ns tiny.toml"));
    assert_eq!((new.code, &new.stdout), (0, &old.stdout));
}

#[test]
fn old_spellings_are_not_shown() {
    let bench = Bench::new("grammar-help");
    let help = bench.run("sim --help").stdout;
    for shown in ["--json[=<FILE>]", "--html[=<FILE>]", "--csv[=<FILE>]", "--out <DIR>", "--set <KEY=VALUE>"] {
        assert!(help.contains(shown), "{shown}: {help}");
    }
    for old in ["--series", "--report "] {
        assert!(!help.contains(old), "{old}: {help}");
    }
}

#[test]
fn a_full_disk_is_code_4_in_every_verb_with_results() {
    let bench = Bench::new("grammar-full");
    assert_eq!(bench.run("sim tiny.toml --no-report --quiet --json=a.json").code, 0);
    for words in [
        "check tiny.toml --json=/dev/full",
        "show tiny.toml ports --json=/dev/full",
        "show tiny.toml ports --json",
        "sim tiny.toml --no-report --quiet --html=/dev/full",
        "sim tiny.toml --no-report --quiet --csv=/dev/full",
        "compare a.json a.json --json=/dev/full",
        "compare a.json a.json --csv",
        "zone explain tiny.toml h1 d1",
        "schema",
        "man",
        "ps",
        "init -",
        "init --list",
        "fmt -",
    ] {
        let full = || OpenOptions::new().write(true).open("/dev/full").expect("a device that is always full");
        let ran = bench.ran(bench.command(words).stdout(full()).output().expect("the command runs"));
        assert_eq!(ran.code, if words == "fmt -" { 0 } else { 4 }, "{words}: {}", ran.stderr);
    }
}
