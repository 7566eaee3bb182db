//! Ctrl-C.

use crate::commands::tool::{Bench, Ran, without_engine};
use sanloom_test_support::process::processor_ticks;
use sanloom_test_support::wait;
use std::cell::OnceCell;
use std::path::PathBuf;
use std::process::{Command, Stdio};

/// Starts a command, waits until `ready` returns true for its process, and interrupts it.
fn interrupted(bench: &Bench, words: &str, ready: impl Fn(u32) -> bool) -> Ran {
    let mut child =
        bench.command(words).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("the command runs");
    let id = child.id();
    wait::until(
        || format!("{words} is ready"),
        || {
            assert!(child.try_wait().expect("its state").is_none(), "{words} has ended");
            ready(id)
        },
    );
    let killed = Command::new("kill").args(["-INT", &child.id().to_string()]).status().expect("kill runs");
    assert!(killed.success());
    bench.ran(child.wait_with_output().expect("it ends"))
}

fn size(path: PathBuf) -> u64 {
    std::fs::metadata(path).map_or(0, |metadata| metadata.len())
}

#[test]
fn an_interrupted_run_keeps_what_it_measured() {
    let bench = Bench::new("interrupt-sim");
    let timeline = bench.path("timeline.txt");
    // The run is too long for any machine to finish; the timeline shows that it has started.
    let words = "sim failing.toml --duration 900s --set host.*.queue_depth=1 --set workload.reads.think_time=5ms \
                 --json results.json --trace h1-hub --trace-file timeline.txt";
    let ran = interrupted(&bench, words, |_| size(timeline.clone()) > 200_000);
    assert_eq!(ran.code, 130, "{}", ran.stderr);
    assert!(ran.stderr.contains("interrupted: the results cover what was simulated"), "{}", ran.stderr);
    assert!(ran.stdout.contains("interrupted, so these are the results so far"), "{}", ran.stdout);
    let results = without_engine(&bench.read("results.json"));
    assert_eq!(results["lab"]["interrupted"], true);
    assert!(results["lab"]["duration_s"].as_f64() < Some(900.0));
    assert!(results["totals"]["ios_completed"].as_u64() > Some(0));
    assert_eq!(results["expectations"].as_array().map(Vec::len), Some(0));
    assert!(bench.read("failing.sanloom-report/report.html").contains("interrupted"));
}

#[test]
fn interrupted_replications_give_the_intervals_of_those_that_finished() {
    let bench = Bench::new("interrupt-replications");
    let timeline = bench.path("timeline.txt");
    let words =
        "sim tiny.toml --replications 100000 --no-report --json results.json --trace h1-hub --trace-file timeline.txt";
    // The timeline of the first run is written at its end; then the other runs follow. Each of them
    // takes about as much processor time as the first one.
    let first_run = OnceCell::new();
    let ready = |id: u32| {
        let used = processor_ticks(id);
        size(timeline.clone()) > 0 && used > 10 * (1 + first_run.get_or_init(|| used))
    };
    let ran = interrupted(&bench, words, ready);
    assert_eq!(ran.code, 130, "{}", ran.stderr);
    assert!(ran.stderr.contains("of 100000 replications finished"), "{}", ran.stderr);
    let results = without_engine(&bench.read("results.json"));
    let seeds = results["replications"]["seeds"].as_array().map_or(0, Vec::len);
    assert!(1 < seeds && seeds < 100_000, "{seeds}");
    assert!(ran.stderr.contains(&format!("interrupted: {seeds} of")), "{}", ran.stderr);
}

#[test]
fn an_interrupted_sweep_can_be_resumed() {
    let bench = Bench::new("interrupt-sweep");
    let rows = bench.path("rows.jsonl");
    let sweep = "sweep tiny.toml --set run.duration=20ms,900s --set workload.reads.think_time=10us,1ms --threads 1 \
                 --out rows.jsonl";
    let ran = interrupted(&bench, sweep, |_| size(rows.clone()) > 0 && bench.read("rows.jsonl").lines().count() == 2);
    assert_eq!(ran.code, 130, "{}", ran.stderr);
    assert!(ran.stderr.contains("2 of 4 points are finished; rows.jsonl has them; --resume"), "{}", ran.stderr);
    let kept = bench.read("rows.jsonl");
    assert_eq!(kept.lines().count(), 2);
    assert!(kept.ends_with('\n'));
}

#[test]
fn a_command_that_waits_for_its_lab_can_be_interrupted() {
    let bench = Bench::new("interrupt-input");
    let mut child = bench.command("check -").stdin(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("it runs");
    // Time in which the command installs its handler and begins to read; nothing reports that.
    let waits = |id: u32| std::fs::read_to_string(format!("/proc/{id}/wchan")).is_ok_and(|text| text.contains("pipe"));
    let begun = std::time::Instant::now();
    while !waits(child.id()) && begun.elapsed().as_millis() < 1_000 {
        std::thread::yield_now();
    }
    let input = child.stdin.take();
    let killed = Command::new("kill").args(["-INT", &child.id().to_string()]).status().expect("kill runs");
    assert!(killed.success());
    let status = child.wait().expect("it ends");
    assert_eq!(status.code(), Some(130));
    drop(input);
}

#[test]
fn an_endless_input_is_not_read_to_its_end() {
    let bench = Bench::new("endless-input");
    let zeros = std::fs::File::open("/dev/zero").expect("the device");
    let ran = bench.ran(bench.command("check -").stdin(zeros).output().expect("it runs"));
    assert_eq!(ran.code, 2);
    assert!(ran.stderr.contains("standard input has more than 8 MiB"), "{}", ran.stderr);
}

/// Returns whether a process has used half a second of a processor, so that it is at work.
fn is_at_work(id: u32) -> bool {
    processor_ticks(id) > 50
}

#[test]
fn the_first_ctrl_c_ends_a_check() {
    let bench = Bench::new("interrupt-check");
    // The check takes several seconds on any machine.
    let nodes = "[switch.\"sw{1..200}\"]\nports = 256\n[host.\"h{1..20000}\"]\n[storage.\"s{1..2000}\"]\n[[link]]\n\
                 from = \"h{1..20000}\"\nto = \"sw{1..200}\"\n[[link]]\nfrom = \"s{1..2000}\"\nto = \"sw{1..200}\"\n\
                 [[isl]]\nfrom = \"sw{1..199}\"\nto = \"sw{2..200}\"\n";
    std::fs::write(bench.path("large.toml"), nodes).expect("the lab is written");
    let ran = interrupted(&bench, "check large.toml", is_at_work);
    assert_eq!((ran.code, ran.stdout.as_str()), (130, ""), "{}", ran.stderr);
}

#[test]
fn the_first_ctrl_c_ends_an_import() {
    let bench = Bench::new("interrupt-import");
    let zones: String = (0..400_000)
        .map(|n| format!(" zone:\tz{n}\t10:00:00:00:c9:{:02x}:{:02x}:{:02x}\n", n >> 16, n >> 8 & 0xff, n & 0xff))
        .collect();
    std::fs::write(bench.path("zones.txt"), format!("Defined configuration:\n{zones}")).expect("the zones are written");
    let ran = interrupted(&bench, "import zones.txt -o lab.toml", is_at_work);
    assert_eq!(ran.code, 130, "{}", ran.stderr);
    assert!(!bench.path("lab.toml").exists());
}
