//! Replay of traces, as a stream of requests and in whole labs.

use crate::labs::{lab, run};
use sanloom_api::results::{FindingKind, Results};
use sanloom_fc::config::{Load, Location, Lun, Picos, SizeDistribution, Target, TraceLoad, TraceSelection, Workload};
use sanloom_sim::workload::{Request, RequestOp, Stream};
use sanloom_storage::trace::Settings;
use sanloom_storage::trace::replay::{AddressMap, Think};
use std::num::NonZeroU64;
use std::path::PathBuf;

const MS: u64 = 1_000_000_000;
const LUN: Lun = Lun { blocks: 1 << 20, block_bytes: 512 };

/// Requests of two devices in 4 ms, with a trim and a flush.
const TEXT: &str = "fio version 3 iolog\n0 a read 0 4096\n1000 b write 8192 4096\n2000 a trim 4096 4096\n\
    3000 b sync 0 0\n4000 a read 1048576 8192\n";

/// Writes a trace and returns its path.
fn file(name: &str, text: &str) -> PathBuf {
    let path = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join(name);
    std::fs::write(&path, text).expect("the folder of the tests can be written");
    path
}

fn load(file: PathBuf) -> TraceLoad {
    TraceLoad {
        file,
        reader: Settings::default(),
        depth: None,
        time_scale: 1.0,
        passes: NonZeroU64::new(1),
        selection: TraceSelection::All,
        map: AddressMap::Wrap,
        think: Think::Keep,
    }
}

fn workload(load: TraceLoad, hosts: u16) -> Workload {
    Workload {
        name: "w".into(),
        hosts: (0..hosts).collect(),
        targets: vec![Target { storage: 3, lun: 0 }, Target { storage: 3, lun: 7 }],
        virtual_targets: Vec::new(),
        load: Load::Trace(Box::new(load)),
        size: SizeDistribution::Fixed(4096),
        read_share: 1.0,
        location: Location::Random,
        hot_set: None,
        span_bytes: None,
        start: Picos(10 * MS),
        stop: None,
    }
}

/// Requests of an open replay with their times.
fn open(stream: &mut Stream) -> Vec<(u64, Request)> {
    let mut requests = Vec::new();
    while let Some(at_ps) = stream.next_arrival_ps() {
        requests.push((at_ps, stream.next_request().expect("a time has its request")));
    }
    requests
}

fn places(requests: &[(u64, Request)]) -> Vec<(u64, RequestOp, u16, u64, u32)> {
    requests.iter().map(|(at_ps, r)| (at_ps / MS, r.op, r.lun.lun, r.lba, r.bytes)).collect()
}

#[test]
fn an_open_replay_issues_each_request_at_its_time_to_the_lun_of_its_device() {
    let load = load(file("open.fio", TEXT));
    let mut stream = Stream::new(&workload(load, 1), ("host", 0), &[LUN; 2], 1);
    let expected = [
        (10, RequestOp::Read, 0, 0, 4_096),
        (11, RequestOp::Write, 7, 16, 4_096),
        (13, RequestOp::Flush, 7, 0, 0),
        (14, RequestOp::Read, 0, 2_048, 8_192),
    ];
    assert_eq!(places(&open(&mut stream)), expected);
    let (counts, error) = stream.replayed().expect("the stream is a replay");
    assert_eq!((counts.requests, counts.trims, counts.passes, error), (4, 1, 1, None));
    assert_eq!(stream.after_end_ps(20 * MS), None);
}

#[test]
fn hosts_share_the_devices_of_a_trace_that_is_split() {
    let load = TraceLoad { selection: TraceSelection::Split, ..load(file("split.fio", TEXT)) };
    let workload = workload(load, 2);
    let [first, second] = [0, 1].map(|part| places(&open(&mut Stream::new(&workload, ("host", part), &[LUN; 2], 1))));
    assert!(first.iter().all(|request| request.2 == 0) && second.iter().all(|request| request.2 == 7));
    assert_eq!((first.len(), second.len()), (2, 2));
}

#[test]
fn a_closed_replay_waits_for_the_think_time_of_the_request_before() {
    // Response times of 5, 6 and 7 ms, and think times of 2, 3 and 4 ms.
    let text = "R Miss 16 8 5000.0 2000.0\nW Miss 32 8 6000.0 3000.0\nR Hit 48 8 7000.0 4000.0\n";
    let load = TraceLoad { depth: Some(1), ..load(file("closed.validate", text)) };
    let mut stream = Stream::new(&workload(load.clone(), 1), ("host", 0), &[LUN; 2], 1);
    assert_eq!(stream.next_arrival_ps(), Some(10 * MS));
    assert_eq!(stream.next_arrival_ps(), None, "the depth is 1");
    assert_eq!(stream.next_request().map(|request| request.lba), Some(16));
    assert_eq!(stream.after_end_ps(11 * MS), Some(13 * MS));
    assert_eq!(stream.next_request().map(|request| (request.lba, request.op)), Some((32, RequestOp::Write)));
    assert_eq!(stream.after_end_ps(20 * MS), Some(23 * MS));
    assert_eq!(stream.next_request().map(|request| request.lba), Some(48));
    assert_eq!(stream.after_end_ps(30 * MS), None, "the trace is over");
    let without = TraceLoad { think: Think::Drop, passes: None, ..load };
    let mut stream = Stream::new(&workload(without, 1), ("host", 0), &[LUN; 2], 1);
    assert_eq!(stream.next_arrival_ps(), Some(10 * MS));
    for now_ps in [11, 12, 13, 14].map(|ms| ms * MS) {
        assert!(stream.next_request().is_some());
        assert_eq!(stream.after_end_ps(now_ps), Some(now_ps), "an endless replay goes on");
    }
    assert_eq!(stream.replayed().map(|(counts, _)| counts.passes), Some(2));
}

#[test]
fn requests_beyond_the_largest_transfer_are_split_and_keep_their_blocks() {
    let text = "fio version 3 iolog\n0 a write 4096 100000\n1000 a read 0 512\n";
    let mut stream = Stream::new(&workload(load(file("split_up.fio", text)), 1), ("host", 0), &[LUN; 2], 1);
    stream.split_above(32_768);
    let requests = open(&mut stream);
    let blocks: Vec<(u64, u64, u32)> = requests.iter().map(|(at_ps, r)| (at_ps / MS, r.lba, r.blocks)).collect();
    assert_eq!(blocks, [(10, 8, 64), (10, 72, 64), (10, 136, 64), (10, 200, 4), (11, 0, 1)]);
    assert_eq!(stream.replayed().map(|(counts, _)| counts.split), Some(1));
}

/// Results of a server with one disk that has a write cache. `workload` are lines of its workload.
fn results(workload: &str) -> Results {
    run(&lab(&format!(
        "[run]\nduration = \"1s\"\nwarmup = \"0s\"\n[switch.sw1]\n[host.server1]\n[storage.disk1]\n\
         disk = \"ultrastar-15k450\"\n[[link]]\nfrom = \"{{server1,disk1}}\"\nto = \"sw1\"\nrate = \"4GFC\"\n\
         [workload.io]\nhosts = \"server1\"\ntargets = \"disk1\"\n{workload}\n"
    )))
}

#[test]
fn a_flush_waits_until_the_write_before_it_is_on_the_medium() {
    let trace = |name, ops: &str| {
        let path = file(name, &format!("fio version 3 iolog\n{ops}"));
        results(&format!("trace = {{ file = \"{}\" }}", path.display()))
    };
    let writes = trace("writes.fio", "0 a write 40960000 4096\n1000 a write 0 4096\n");
    let flushed = trace("flushed.fio", "0 a write 40960000 4096\n1000 a sync 0 0\n");
    for results in [&writes, &flushed] {
        assert_eq!((results.totals.io.ios_completed, results.totals.io.ios_failed), (2, 0));
    }
    assert!(writes.totals.io.latency.max_us < 500.0, "{:?}", writes.totals.io.latency);
    assert!(flushed.totals.io.latency.max_us > 1_000.0, "{:?}", flushed.totals.io.latency);
    let of = flushed.streams[0].trace.as_ref().expect("the stream is a replay");
    assert_eq!((of.requests, of.trims, of.split, of.error.as_deref()), (2, 0, 0, None));
}

#[test]
fn an_error_in_a_trace_ends_its_stream_and_is_a_finding() {
    let mut text = "fio version 3 iolog\n".to_owned();
    (0..2_000).for_each(|i| text.push_str(&format!("{} a read {} 4096\n", i * 100, i * 4_096)));
    text.push_str("200000 a erase 0 4096\n");
    let path = file("broken.fio", &text);
    let results = results(&format!("trace = {{ file = \"{}\" }}", path.display()));
    let trace = results.streams[0].trace.as_ref().expect("the stream is a replay");
    assert_eq!(trace.requests, 2_000);
    let error = trace.error.as_deref().expect("the last line is invalid");
    assert!(error.contains("broken.fio: line 2002: the action is `erase`"), "{error}");
    assert_eq!(results.findings[0].kind, FindingKind::BrokenTrace);
    assert_eq!(results.findings[0].detail, error);
}
