//! `sanloom trace`: statistics, other formats, the guide, and fio as a peer in both directions.

use super::tool::Bench;
use crate::sanloom::SANLOOM;
use sanloom_test_support::needs;
use serde_json::Value;
use std::fs;
use std::path::Path;
use std::process::Command;

/// Trace of a real disk in the format validate, from the folder of `reproduce disks`.
const TRACE: &str = "cheetah-9lp.trace.gz";

fn bench(name: &str) -> Bench {
    let bench = Bench::new(name);
    let data = Path::new(env!("CARGO_MANIFEST_DIR")).join("../bench/data/disk-traces").join(TRACE);
    fs::copy(data, bench.path(TRACE)).expect("a copy of the trace");
    bench.write("core-edge.toml", include_str!("../../../../../examples/core-edge.toml"));
    bench
}

fn json(bench: &Bench, words: &str) -> Value {
    let ran = bench.run(words);
    assert_eq!(ran.code, 0, "{words}: {}", ran.stderr);
    serde_json::from_str(&ran.stdout).expect("JSON")
}

#[test]
fn the_guide_shows_what_its_commands_print() {
    let bench = bench("trace-guide");
    let page = include_str!("../../../../../docs/src/guides/traces.md");
    let mut commands = 0;
    for block in page.split("```console\n").skip(1).filter_map(|rest| rest.split("```").next()) {
        let mut output = String::new();
        for line in block.lines().filter(|line| !line.is_empty() && *line != "…") {
            if let Some(command) = line.strip_prefix("$ ") {
                let mut shell = Command::new("sh");
                shell.args(["-c", &command.replacen("sanloom", SANLOOM, 1)]).current_dir(bench.path(""));
                let ran = bench.ran(shell.output().expect("a shell"));
                assert_eq!(ran.code, 0, "{line}: {}", ran.stderr);
                output = format!("{}{}", ran.stdout, ran.stderr);
                commands += 1;
            } else {
                assert!(output.lines().any(|printed| printed.trim_end() == line), "`{line}` is not in:\n{output}");
            }
        }
    }
    assert!(commands >= 5, "{commands} commands");
}

/// A server with two LUNs whose requests are `workload`.
fn lab(workload: &str) -> String {
    format!(
        "[run]\nduration = \"200ms\"\nwarmup = \"0s\"\n[switch.sw1]\n[host.server1]\n[storage.disk1]\nluns = 2\n\
         [[link]]\nfrom = \"{{server1,disk1}}\"\nto = \"sw1\"\n[workload.io]\nhosts = \"server1\"\n\
         targets = \"disk1\"\n{workload}\n"
    )
}

#[test]
fn a_recorded_trace_replays_the_same_requests() {
    let bench = bench("trace-record");
    bench.write("drawn.toml", &lab("arrivals = \"poisson 2000/s\"\nread_share = 0.6\nsize = \"8KiB\""));
    let ran = bench.run("trace record drawn.toml drawn.fio");
    assert_eq!(ran.code, 0, "{}", ran.stderr);
    assert!(ran.stderr.contains("requests recorded"), "{}", ran.stderr);
    bench.write("replayed.toml", &lab("trace = { file = \"drawn.fio\" }"));
    let again = bench.run("trace record replayed.toml replayed.fio --host server1");
    assert_eq!(again.code, 0, "{}", again.stderr);
    let (drawn, replayed) = (bench.read("drawn.fio"), bench.read("replayed.fio"));
    assert!(drawn.lines().count() > 300 && drawn.contains(" disk1:lun1 write "), "{drawn}");
    // The first request goes to LUN 1, so this device is replayed on the first LUN.
    let names = [("lun0", "lun#"), ("lun1", "lun0"), ("lun#", "lun1")];
    let expected = names.iter().fold(drawn, |text, (from, to)| text.replace(from, to));
    let requests = |text: &str| -> Vec<String> {
        text.lines().filter(|line| !line.ends_with(" close")).map(str::to_owned).collect()
    };
    assert_eq!(requests(&expected), requests(&replayed));
    let ran = bench.run("trace record replayed.toml --host server2");
    assert!(ran.code == 2 && ran.stderr.contains("no host `server2`"), "{}", ran.stderr);
}

#[test]
fn a_mistake_in_a_replayed_trace_is_reported_after_the_results() {
    let bench = bench("trace-broken");
    let mut text = "fio version 3 iolog\n".to_owned();
    (0..1_500).for_each(|i| text.push_str(&format!("{} a read {} 4096\n", i * 50, i * 4_096)));
    bench.write("broken.fio", &format!("{text}80000 a erase 0 4096\n"));
    bench.write("lab.toml", &lab("trace = { file = \"broken.fio\" }"));
    let ran = bench.run("sim lab.toml --no-report --no-remedies");
    assert_eq!(ran.code, 2, "{}", ran.stdout);
    assert!(ran.stdout.contains("the trace of `io` ended after 1500 requests"), "{}", ran.stdout);
    assert!(ran.stderr.contains("broken.fio: line 1502: the action is `erase`"), "{}", ran.stderr);
}

#[test]
fn a_section_of_a_trace_is_valid_in_a_lab() {
    let bench = bench("trace-workload");
    let ran = bench.run(&format!("trace inspect {TRACE} --workload=section.toml --name oltp"));
    assert!(ran.code == 0 && ran.stdout.contains("Sequential: "), "{}", ran.stderr);
    let lab = "[switch.sw1]\n[host.server1]\n[storage.disk1]\nlun_size = \"100GiB\"\n\
        [[link]]\nfrom = \"server1\"\nto = \"sw1\"\n[[link]]\nfrom = \"disk1\"\nto = \"sw1\"\n";
    bench.write("lab.toml", &format!("{lab}\n{}", bench.read("section.toml")));
    let checked = bench.run("check lab.toml");
    assert_eq!(checked.code, 0, "{}{}", bench.read("lab.toml"), checked.stderr);
    let ran = bench.run("sim lab.toml --duration 2s --no-report --json");
    assert_eq!(ran.code, 0, "{}", ran.stderr);
}

#[test]
fn a_converted_trace_has_the_same_statistics() {
    let bench = bench("trace-convert");
    let first = json(&bench, &format!("trace inspect {TRACE} --json"));
    for format in ["disksim", "spc", "msr", "fio-3", "blkparse"] {
        let ran = bench.run(&format!("trace convert {TRACE} {format}.out --to {format}"));
        assert_eq!(ran.code, 0, "{}", ran.stderr);
        let second = json(&bench, &format!("trace inspect {format}.out --json"));
        assert_eq!(second["format"], format);
        for key in
            ["requests", "reads", "writes", "bytes_read", "bytes_written", "read_sizes", "sequential", "locality"]
        {
            assert_eq!(first[key], second[key], "{format}: {key}");
        }
        let difference = first["duration_s"].as_f64().unwrap_or(0.0) - second["duration_s"].as_f64().unwrap_or(1.0);
        assert!(difference.abs() < 2e-6, "{format}: {difference}");
    }
    let on_stdout = bench.run("trace convert spc.out --to disksim");
    assert_eq!(on_stdout.stdout, bench.read("disksim.out"));
}

#[test]
fn mistakes_name_the_file_the_line_and_the_remedy() {
    let bench = Bench::new("trace-mistakes");
    bench.write("bad.spc", "0,1,512,r,0.5\n0,1,512,x,0.6\n");
    let ran = bench.run("trace inspect bad.spc --format spc");
    assert_eq!((ran.code, ran.stdout.as_str()), (2, ""));
    assert_eq!(ran.stderr, "error: bad.spc: line 2: the operation is `x`; write R or W\n");
    let ran = bench.run("trace convert bad.spc good.txt --to disksim --format spc");
    assert!(ran.code == 2 && ran.stderr.contains("line 2: ") && !bench.path("good.txt").exists(), "{}", ran.stderr);
    bench.write("good.spc", "0,1,512,r,0.5\n");
    let ran = bench.run("trace convert good.spc good.spc --to disksim");
    assert!(ran.code == 2 && ran.stderr.contains("would replace good.spc"), "{}", ran.stderr);
    let ran = bench.run("trace inspect good.spc --time-unit ms");
    assert!(ran.code == 2 && ran.stderr.contains("--time-unit has no effect"), "{}", ran.stderr);
    let ran = bench.run("trace inspect none.spc");
    assert!(ran.code == 2 && ran.stderr.starts_with("error: cannot read the trace none.spc: "), "{}", ran.stderr);
    let ran = bench.run("trace inspect good.spc --regex (");
    assert!(
        ran.code == 2 && ran.stderr.starts_with("error: --regex: the regular expression is invalid"),
        "{}",
        ran.stderr
    );
}

/// Runs fio in the folder and returns its JSON of the first job.
fn fio(bench: &Bench, arguments: &[&str]) -> Value {
    let common = ["--name=job", "--ioengine=psync", "--output-format=json"];
    let output = Command::new("fio").args(common).args(arguments).current_dir(bench.path("")).output();
    let output = output.expect("fio runs");
    let text = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success(), "{text}{}", String::from_utf8_lossy(&output.stderr));
    // fio prints notes in front of the JSON.
    let json = text.find("\n{").map_or(&*text, |at| &text[at..]);
    serde_json::from_str::<Value>(json).unwrap_or_else(|error| panic!("{error}: {text}"))["jobs"][0].clone()
}

#[needs("fio")]
#[test]
fn a_log_of_fio_is_read_and_fio_replays_ours() {
    let bench = Bench::new("trace-fio");
    let job = [
        "--filename=disk.img",
        "--size=4m",
        "--rw=randrw",
        "--rwmixread=70",
        "--bssplit=4k/50:16k/50",
        "--fsync=40",
        "--rate_iops=2000,2000",
        "--write_iolog=job.log",
    ];
    let ran = fio(&bench, &job);
    let of = json(&bench, "trace inspect job.log --json");
    assert_eq!(of["format"], "fio-3");
    for (ours, theirs) in [
        (&of["reads"], &ran["read"]["total_ios"]),
        (&of["writes"], &ran["write"]["total_ios"]),
        (&of["bytes_read"], &ran["read"]["io_bytes"]),
        (&of["bytes_written"], &ran["write"]["io_bytes"]),
    ] {
        assert!(ours.as_u64().is_some_and(|number| number > 0) && ours == theirs, "{ours} {theirs}");
    }
    assert!(of["flushes"].as_u64().is_some_and(|number| number > 0), "{}", of["flushes"]);
    // The log in units of fio, through another format, and back to fio.
    let ran = bench.run("trace convert job.log ours.log --to fio-3");
    assert_eq!(ran.code, 0, "{}", ran.stderr);
    let replayed = fio(&bench, &["--read_iolog=ours.log", "--replay_no_stall=1"]);
    for (direction, requests, moved) in [("read", "reads", "bytes_read"), ("write", "writes", "bytes_written")] {
        assert_eq!(replayed[direction]["total_ios"], of[requests], "{direction}");
        assert_eq!(replayed[direction]["io_bytes"], of[moved], "{direction}");
    }
}
