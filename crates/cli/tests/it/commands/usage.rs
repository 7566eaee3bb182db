//! Wrong usage, as a user meets it.

use crate::commands::tool::Bench;
use insta::assert_snapshot;

fn snapshots(name: &str, commands: &[&str]) -> String {
    let bench = Bench::new(name);
    let mut out = String::new();
    for words in commands {
        out.push_str(&format!("$ sanloom {words}\n{}\n", bench.run(words).snapshot()));
    }
    out
}

#[test]
fn wrong_usage_ends_with_code_2_and_the_remedy() {
    assert_snapshot!(snapshots(
        "usage",
        &[
            "simulate tiny.toml",
            "sim",
            "sim missing.toml",
            "sim .",
            "sim tiny.toml --sed 3",
            "sim tiny.toml --set run.seed",
            "sim tiny.toml --seed -1",
            "sim tiny.toml --duration 5",
            "sim tiny.toml --duration 1ms",
            "sim tiny.toml --replications 0",
            "sim tiny.toml --pcap x.pcapng",
            "sim tiny.toml --no-report --trace hub",
            "sweep tiny.toml",
            "sweep tiny.toml --set run.seed=1,,2",
            "sweep tiny.toml --set run.seed=1,2 --shard 3/2",
            "sweep tiny.toml --set run.seed=1,2 --resume",
            "sweep tiny.toml --set run.seed=1,2 --metric totals..iops",
            "sweep tiny.toml --set run.sed=1,2",
            "reproduce nersc",
            "bench sim --nodes 17",
            "completions tcsh",
            "fcping -h eth0 -F 010203 -i nan",
            "fcping -h eth0 -F 010203 -s 30",
            "initiator --nbd s --iscsi 127.0.0.1:3260/iqn.2026-11.net.example:disk --wwpn 20:00:00:00:00:00:00:01 --vn2vn",
            "initiator --nbd s --iscsi 127.0.0.1:3260/iqn.2026-11.net.example:disk --chap-name server",
            "initiator --nbd s --port eth0 --chap-name server --chap-secret-file secret",
        ]
    ));
}

#[test]
fn asking_without_a_command_shows_the_commands() {
    let bench = Bench::new("usage-none");
    let ran = bench.run("");
    assert_eq!(ran.code, 2);
    for command in ["check", "sim", "sweep", "whatif", "reproduce", "bench", "reference", "completions"] {
        assert!(ran.stderr.contains(&format!("\n  {command} ")), "{command}");
    }
}

#[test]
fn a_file_that_is_no_text_is_a_bad_lab() {
    let bench = Bench::new("usage-binary");
    std::fs::write(bench.path("binary.toml"), [0x5b, 0xff, 0xfe]).expect("a file");
    let ran = bench.run("check binary.toml");
    assert_eq!(ran.code, 2);
    assert!(ran.stderr.contains("not text in UTF-8: byte 1"), "{}", ran.stderr);
}

#[test]
fn reference_and_completions_go_to_standard_output() {
    let bench = Bench::new("usage-print");
    let reference = bench.run("reference");
    assert_eq!(reference.code, 0);
    assert!(reference.stdout.contains("[workload.NAME]"));
    for shell in ["bash", "zsh", "fish", "elvish", "powershell"] {
        let completions = bench.run(&format!("completions {shell}"));
        assert_eq!(completions.code, 0);
        assert!(completions.stdout.contains("replications"), "{shell}");
        assert!(completions.stdout.contains("offloads"), "{shell}");
        assert!(!completions.stdout.contains("pdu-copy"), "{shell} offers a hidden measurement");
    }
}

#[test]
fn a_count_of_zero_is_refused_in_plain_words() {
    let bench = Bench::new("usage-zero");
    for words in ["sweep tiny.toml --set run.seed=1 --threads 0", "port inject tiny.toml hub:0 --clear --count 0"] {
        let ran = bench.run(words);
        assert_eq!(ran.code, 2, "{words}");
        assert!(ran.stderr.contains("write a whole number from 1 on"), "{words}: {}", ran.stderr);
    }
}

#[test]
fn the_version_is_that_of_the_package() {
    let ran = Bench::new("usage-version").run("--version");
    assert_eq!((ran.code, ran.stdout.trim()), (0, concat!("sanloom ", env!("CARGO_PKG_VERSION"))));
}
