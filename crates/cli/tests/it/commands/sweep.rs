//! `sanloom sweep` as a command.

use crate::commands::tool::Bench;
use insta::assert_snapshot;

const SWEEP: &str = "sweep tiny.toml --set workload.reads.depth=1,2,4 --set workload.reads.size=4KiB,8KiB --quiet";

fn whole(bench: &Bench) -> String {
    assert_eq!(bench.run(&format!("{SWEEP} --out whole.jsonl --threads 1")).code, 0);
    bench.read("whole.jsonl")
}

#[test]
fn shows_the_points_of_the_grid() {
    let bench = Bench::new("sweep-table");
    let words =
        "sweep tiny.toml --set workload.reads.depth=1,2 --set run.seed=3,4 --metric totals.iops --metric drops.crc";
    assert_snapshot!(bench.run(words).snapshot());
}

#[test]
fn one_and_two_threads_give_the_same_bytes() {
    let bench = Bench::new("sweep-threads");
    let one = whole(&bench);
    assert_eq!(one.lines().count(), 6);
    assert_eq!(bench.run(&format!("{SWEEP} --out two.jsonl --threads 2")).code, 0);
    assert_eq!(bench.read("two.jsonl"), one);
    let printed = bench.run(&format!("{SWEEP} --out - --threads 2"));
    assert_eq!((printed.code, printed.stdout), (0, one));
}

#[test]
fn resuming_skips_finished_points_and_repeats_a_torn_one() {
    let bench = Bench::new("sweep-resume");
    let whole = whole(&bench);
    let lines: Vec<&str> = whole.split_inclusive('\n').collect();
    // An impossible result in the row shows that its point is not simulated again.
    let finished = lines[1].replace("\"totals.ios_failed\":0.0", "\"totals.ios_failed\":77.0");
    let torn = &lines[3][..lines[3].len() / 2];
    bench.write("rows.jsonl", &format!("{finished}{}{torn}", lines[0]));
    assert_eq!(bench.run(&format!("{SWEEP} --out rows.jsonl --resume")).code, 0);
    let expected = [lines[0], &finished, lines[2], lines[3], lines[4], lines[5]].concat();
    assert_eq!(bench.read("rows.jsonl"), expected);
}

#[test]
fn an_existing_file_is_never_overwritten_or_mixed() {
    let bench = Bench::new("sweep-other");
    let rows = whole(&bench);
    let mut out = String::new();
    bench.write("notes.jsonl", "{\"sweep\":\"x\"}\nshopping list\n");
    let other = std::fs::read_to_string(bench.path("tiny.toml")).expect("the lab").replace("20k/s", "10k/s");
    bench.write("other.toml", &other);
    for words in [
        format!("{SWEEP} --out whole.jsonl"),
        format!("{SWEEP} --out whole.jsonl --resume --metric totals.iops"),
        "sweep tiny.toml --set workload.reads.depth=1,2 --out whole.jsonl --resume".to_owned(),
        format!("{} --out whole.jsonl --resume", SWEEP.replace("tiny", "other")),
        format!("{SWEEP} --out notes.jsonl --resume"),
    ] {
        out.push_str(&format!("$ sanloom {words}\n{}\n", bench.run(&words).snapshot()));
    }
    assert_snapshot!(out);
    assert_eq!(bench.read("whole.jsonl"), rows);
}

#[test]
fn the_rows_of_all_shards_are_those_of_the_whole() {
    let bench = Bench::new("sweep-shards");
    let whole = whole(&bench);
    let mut rows: Vec<String> = Vec::new();
    for shard in 1..=4 {
        assert_eq!(bench.run(&format!("{SWEEP} --out {shard}.jsonl --shard {shard}/4")).code, 0);
        rows.extend(bench.read(&format!("{shard}.jsonl")).lines().map(str::to_owned));
    }
    let mut expected: Vec<String> = whole.lines().map(str::to_owned).collect();
    rows.sort();
    expected.sort();
    assert_eq!(rows, expected);
}

#[test]
fn the_joined_rows_of_all_shards_are_a_finished_sweep() {
    let bench = Bench::new("sweep-join");
    let whole = whole(&bench);
    let mut joined = String::new();
    for shard in [2, 1] {
        assert_eq!(bench.run(&format!("{SWEEP} --out {shard}.jsonl --shard {shard}/2")).code, 0);
        joined.push_str(&bench.read(&format!("{shard}.jsonl")));
    }
    bench.write("joined.jsonl", &joined);
    assert_eq!(bench.run(&format!("{SWEEP} --out joined.jsonl --resume --html=plot.html")).code, 0);
    assert_eq!(bench.read("joined.jsonl"), whole);
    assert!(bench.read("plot.html").contains("6 of 6 points"));
}

#[test]
fn a_mistake_at_one_point_stops_the_sweep_before_it_begins() {
    let bench = Bench::new("sweep-mistake");
    assert_snapshot!(bench.run("sweep tiny.toml --set run.warmup=1ms,30ms --out rows.jsonl").snapshot());
    assert_eq!(bench.read("rows.jsonl"), "");
}

#[test]
fn a_number_that_no_results_have_ends_the_sweep_at_its_first_point() {
    let bench = Bench::new("sweep-metric");
    let base = "sweep tiny.toml --set run.seed=1,2,3 --threads 1 --metric totals.iops";
    for (metric, hint) in
        [("totals.throughput", "`totals.throughput_bytes_per_s`"), ("hosts.h9.iops", "`hosts.h1.iops`")]
    {
        let ran = bench.run(&format!("{base} --metric {metric} --out {metric}.jsonl"));
        assert_eq!(ran.code, 2, "{}", ran.stderr);
        assert!(ran.stderr.contains("did you mean") && ran.stderr.contains(hint), "{}", ran.stderr);
        assert_eq!((ran.stdout.as_str(), bench.read(&format!("{metric}.jsonl")).as_str()), ("", ""));
    }
    let bound = bench.run("sweep tiny.toml --set run.seed=1 --expect totals.nope>=4");
    assert_eq!(bound.code, 2);
    assert!(bound.stderr.starts_with("error: --expect totals.nope: "), "{}", bound.stderr);
    let several = bench.run(&format!("{base} --metric hosts.*.iops"));
    assert!(several.code == 2 && several.stderr.contains("sum(hosts.*.iops)"), "{}", several.stderr);
}

#[test]
fn a_folder_receives_all_files_and_is_resumed() {
    let bench = Bench::new("sweep-folder");
    assert_eq!(bench.run(&format!("{SWEEP} --out whole --replications 2")).code, 0);
    let rows = bench.read("whole/rows.jsonl");
    assert_eq!(rows.lines().count(), 6);
    assert!(rows.contains("half_width"));
    let csv = bench.read("whole/sweep.csv");
    let head = csv.lines().next().expect("a head");
    assert!(
        head.starts_with("point,workload.reads.depth,workload.reads.size,totals.throughput_bytes_per_s,"),
        "{head}"
    );
    assert_eq!(csv.lines().count(), 7);
    std::fs::create_dir(bench.path("part")).expect("a folder");
    bench.write("part/rows.jsonl", &rows.split_inclusive('\n').take(2).collect::<String>());
    assert_eq!(bench.run(&format!("{SWEEP} --out part --replications 2 --resume")).code, 0);
    for name in ["rows.jsonl", "sweep.csv", "sweep.json", "sweep.html", "lab.toml"] {
        assert_eq!(bench.read(&format!("part/{name}")), bench.read(&format!("whole/{name}")), "{name}");
    }
    let other = bench.run(&format!("{SWEEP} --out part --resume"));
    assert!(other.code == 2 && other.stderr.contains("belongs to another sweep"), "{}", other.stderr);
}

#[test]
fn a_bound_of_the_command_line_applies_to_every_point() {
    let bench = Bench::new("sweep-expect");
    let run = |bound: &str| {
        let output = bench.command(SWEEP).args(["--expect", bound]).output();
        bench.ran(output.expect("it runs"))
    };
    assert_eq!(run("totals.ios_failed = 0").code, 0);
    let failed = run("totals.iops >= 1e9");
    assert_eq!(failed.code, 1);
    assert_eq!(failed.stderr.lines().count(), 6, "{}", failed.stderr);
    assert!(
        failed.stderr.contains("at point 0 (workload.reads.depth=1, workload.reads.size=4KiB)"),
        "{}",
        failed.stderr
    );
}

#[test]
fn the_first_plot_is_the_throughput() {
    let bench = Bench::new("sweep-plot");
    let page = bench.run(&format!("{SWEEP} --html")).stdout;
    let first = page.find("\"metrics\":[{\"name\":\"totals.throughput_bytes_per_s\"");
    assert!(first.is_some(), "{}", &page[page.find("\"metrics\"").unwrap_or(0)..][..200]);
}

#[test]
fn a_fault_after_the_end_of_a_shortened_run_is_a_warning() {
    let bench = Bench::new("sweep-late-fault");
    let lab = bench.read("dual.toml");
    let fault = "\n[[fault]]\nat = \"30ms\"\nkind = \"switch-reset\"\nswitch = \"fabricA\"\n";
    bench.write("late.toml", &format!("{lab}{fault}"));
    let ran =
        bench.run("sweep late.toml --set run.duration=20ms,60ms --metric totals.path_failovers --csv --threads 1");
    assert_eq!(ran.code, 0, "{}", ran.stderr);
    for part in ["warning[fault-outside-run]", "late.toml:", "the fault occurs at 30ms", "help: "] {
        assert!(ran.stderr.contains(part), "{}", ran.stderr);
    }
    let values: Vec<&str> = ran.stdout.lines().skip(1).filter_map(|line| line.rsplit(',').next()).collect();
    assert_eq!(values[0], "0");
    assert_ne!(values[1], "0");
    // The lab itself must not have such a fault.
    bench.write("wrong.toml", &format!("{lab}{}", fault.replace("30ms", "3s")));
    assert_eq!(bench.run("sweep wrong.toml --set run.seed=1,2").code, 2);
}
