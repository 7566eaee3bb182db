//! Closed pipes and full disks.

use crate::commands::tool::Bench;
use std::fs::OpenOptions;
use std::io::Read;
use std::process::Stdio;

/// The JSON is then larger than any buffer in between.
const LARGE: &str = "sim tiny.toml --no-report --set run.sample_interval=20us";

#[test]
fn a_closed_pipe_is_not_an_error() {
    for words in [
        format!("{LARGE} --json -"),
        format!("{LARGE} --series -"),
        format!("{LARGE} --pcap - --capture all"),
        format!("{LARGE} --trace h1-hub"),
        "reference".to_owned(),
    ] {
        let bench = Bench::new("closed-pipe");
        let mut child =
            bench.command(&words).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("the command runs");
        let mut first = [0; 16];
        let mut stdout = child.stdout.take().expect("a pipe");
        stdout.read_exact(&mut first).expect("some output");
        drop(stdout);
        let ran = bench.ran(child.wait_with_output().expect("it ends"));
        assert_eq!((ran.code, ran.stderr.as_str()), (0, ""), "{words}");
    }
}

#[test]
fn a_full_disk_is_a_message() {
    for words in [
        "sim tiny.toml --no-report",
        "sim tiny.toml --no-report --json -",
        "sim tiny.toml --no-report --pcap - --capture all",
        "sim tiny.toml --no-report --trace h1-hub",
        "sim tiny.toml --no-report --quiet --json /dev/full",
        "sim tiny.toml --no-report --quiet --series /dev/full",
        "sim tiny.toml --no-report --quiet --pcap /dev/full --capture h1-hub",
        "check tiny.toml",
        "check tiny.toml --svg /dev/full",
        "sweep tiny.toml --set run.seed=1,2 --out /dev/full",
        "sweep tiny.toml --set run.seed=1,2 --out -",
        "whatif tiny.toml --json",
        "reference",
        "completions bash",
        "--help",
    ] {
        let bench = Bench::new("full");
        let full = OpenOptions::new().write(true).open("/dev/full").expect("a device that is always full");
        let output = bench.command(words).stdout(full).output().expect("the command runs");
        let ran = bench.ran(output);
        assert_eq!(ran.code, 4, "{words}: {}", ran.stderr);
        assert!(ran.stderr.contains("No space left on device"), "{words}: {}", ran.stderr);
        assert!(!ran.stderr.contains("panicked"), "{words}: {}", ran.stderr);
    }
}

#[test]
fn a_folder_that_cannot_be_made_is_found_before_the_run() {
    let bench = Bench::new("no-folder");
    let ran = bench.run("sim tiny.toml --duration 1000s --report tiny.toml/report");
    assert_eq!(ran.code, 4);
    assert!(ran.stderr.contains("cannot create the folder tiny.toml/report"), "{}", ran.stderr);
}

#[test]
fn a_closed_standard_error_is_no_panic() {
    let bench = Bench::new("closed-stderr");
    let full = OpenOptions::new().write(true).open("/dev/full").expect("a device that is always full");
    let output = bench.command("sim missing.toml").stderr(full).output().expect("the command runs");
    assert_eq!(bench.ran(output).code, 2);
}

#[test]
fn two_outputs_do_not_mix_on_standard_output() {
    let bench = Bench::new("two-stdout");
    for (words, options) in [
        ("sim tiny.toml --no-report --json - --series -", "--json and --csv"),
        ("sim tiny.toml --no-report --series - --pcap - --capture all", "--csv and --pcap"),
        ("sim tiny.toml --no-report --json - --trace h1-hub", "--json and --trace-file"),
        ("sim tiny.toml --json - --series - --trace h1-hub --trace-file -", "--json, --csv and --trace-file"),
        ("sweep tiny.toml --set run.seed=1,2 --out - --html", "--html and --out"),
        ("whatif dual.toml --json --html", "--json and --html"),
        ("reproduce sansim --json --html", "--json and --html"),
        ("check tiny.toml --json --svg -", "--json and --svg"),
    ] {
        let ran = bench.run(words);
        assert_eq!((ran.code, ran.stdout.as_str()), (2, ""), "{words}: {}", ran.stderr);
        assert!(ran.stderr.contains(options) && ran.stderr.contains("name a file"), "{words}: {}", ran.stderr);
    }
    let drawing = bench.run("check tiny.toml --svg -");
    assert!(drawing.code == 0 && drawing.stdout.starts_with('<'), "{}", drawing.stdout);
    assert!(!bench.path("tiny.sanloom-report").exists());
}

#[test]
fn an_output_never_replaces_the_lab() {
    let bench = Bench::new("output-is-lab");
    let before = bench.read("tiny.toml");
    std::os::unix::fs::symlink("tiny.toml", bench.path("link.toml")).expect("a link");
    for words in [
        "sim tiny.toml --no-report --json=tiny.toml",
        "sim tiny.toml --no-report --html=./tiny.toml",
        "sim tiny.toml --no-report --csv=link.toml",
        "sim link.toml --no-report --capture all --pcap tiny.toml",
        "sim tiny.toml --no-report --trace h1-hub --trace-file tiny.toml",
        "sweep tiny.toml --set run.seed=1,2 --out tiny.toml",
        "check tiny.toml --svg tiny.toml",
        "whatif tiny.toml --csv=tiny.toml",
        "show tiny.toml ports --json=tiny.toml",
        "up tiny.toml --record tiny.toml",
        "up tiny.toml --capture h1-hub=tiny.toml",
        "capture tiny.toml h1-hub --to tiny.toml",
    ] {
        let ran = bench.run(words);
        assert_eq!(ran.code, 2, "{words}: {}", ran.stderr);
        assert!(ran.stderr.contains("which this command reads; name another file"), "{words}: {}", ran.stderr);
        assert!(bench.read("tiny.toml") == before, "{words}");
    }
}
