//! fio as a peer: its log is read, and it replays a log of ours.

use sanloom_storage::trace::{Format, Settings, TraceOp, TraceReader, TraceRequest, TraceWriter};
use sanloom_test_support::needs;
use std::fs;
use std::path::Path;
use std::process::Command;

/// Runs fio in a folder, and returns its report.
fn fio(folder: &Path, arguments: &[&str]) -> String {
    let common = ["--name=job", "--ioengine=psync", "--output-format=terse", "--terse-version=3"];
    let output = Command::new("fio").args(common).args(arguments).current_dir(folder).output().expect("fio runs");
    assert!(output.status.success(), "{output:?}");
    String::from_utf8_lossy(&output.stdout).into_owned()
}

/// KiB read and written: fields 6 and 47 of a terse report (`--terse-version=3`).
fn kib(report: &str) -> [u64; 2] {
    let line = report.lines().find(|line| line.starts_with("3;")).expect("a terse report");
    let fields: Vec<&str> = line.split(';').collect();
    [fields[5], fields[46]].map(|field| field.parse().expect("a number"))
}

fn moved(requests: &[TraceRequest], op: TraceOp) -> u64 {
    requests.iter().filter(|request| request.op == op).map(|request| request.length_bytes).sum::<u64>() / 1_024
}

#[needs("fio")]
#[test]
fn a_log_of_fio_is_read_and_fio_replays_ours() {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("trace-fio-{}", std::process::id()));
    fs::create_dir_all(&folder).expect("a folder for the test");
    let job = ["--filename=disk.img", "--size=2m", "--rw=randrw", "--bssplit=4k/50:16k/50", "--fsync=40"];
    let report = fio(&folder, &[&job[..], &["--write_iolog=job.log"]].concat());
    let log = fs::File::open(folder.join("job.log")).expect("the log");
    let mut reader = TraceReader::new(log, &Settings::default()).expect("the format is recognised");
    assert_eq!(reader.format(), Format::Fio3);
    let requests: Vec<TraceRequest> = (&mut reader).map(|request| request.expect("the log is valid")).collect();
    let [read, written] = [TraceOp::Read, TraceOp::Write].map(|op| moved(&requests, op));
    assert_eq!([read, written], kib(&report));
    assert!(read > 0 && written > 0 && requests.iter().any(|request| request.op == TraceOp::Flush));

    let mut ours = Vec::new();
    let mut writer = TraceWriter::new(&mut ours, Format::Fio3).expect("the format can be written");
    for request in &requests {
        writer.write(request, &reader.devices()[request.device as usize]).expect("memory can be written");
    }
    writer.finish().expect("memory can be written");
    fs::write(folder.join("ours.log"), ours).expect("the folder can be written");
    let report = fio(&folder, &["--read_iolog=ours.log", "--replay_no_stall=1"]);
    assert_eq!([read, written], kib(&report));
    fs::remove_dir_all(&folder).expect("the folder can be removed");
}
