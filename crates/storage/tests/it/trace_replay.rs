//! Replay of a trace: times, passes, devices and addresses.

use sanloom_storage::trace::replay::{AddressMap, Destination, Replay, ReplaySettings, Selection, Think};
use sanloom_storage::trace::{Settings, TraceError, TraceOp, TraceReader, TraceRequest};
use std::num::NonZeroU64;

const S: u64 = 1_000_000_000_000;

/// Four requests in three seconds to devices a, b, c and a; 2,000 blocks of 512 bytes.
const TEXT: &str = "fio version 3 iolog\n0 a read 0 4096\n1000000 b write 512000 4096\n2000000 c trim 1019904 4096\n\
    3000000 a sync 0 0\n";

fn replay(settings: ReplaySettings) -> Result<Vec<TraceRequest>, TraceError> {
    replay_of(TEXT, settings)
}

fn replay_of(text: &str, settings: ReplaySettings) -> Result<Vec<TraceRequest>, TraceError> {
    Replay::new(|| TraceReader::new(text.as_bytes(), &Settings::default()), settings)?.collect()
}

fn arrivals(settings: ReplaySettings) -> Vec<u64> {
    replay(settings).expect("the trace is valid").iter().map(|request| request.arrival_ps).collect()
}

fn offsets(settings: ReplaySettings) -> Vec<(u64, u64)> {
    let requests = replay(settings).expect("the trace is valid");
    requests.iter().map(|request| (request.offset_bytes, request.length_bytes)).collect()
}

#[test]
fn without_changes_a_replay_is_the_trace() {
    let settings = ReplaySettings { map: AddressMap::Keep, ..ReplaySettings::new(1_024_000) };
    let trace: Result<Vec<_>, _> = TraceReader::new(TEXT.as_bytes(), &Settings::default()).expect("open").collect();
    assert_eq!(replay(settings).expect("the trace is valid"), trace.expect("the trace is valid"));
}

#[test]
fn times_are_scaled() {
    let settings = ReplaySettings { time_scale: 0.25, ..ReplaySettings::new(1 << 20) };
    assert_eq!(arrivals(settings), [0, S / 4, S / 2, 3 * S / 4]);
}

#[test]
fn a_pass_follows_after_the_mean_distance_of_two_arrivals() {
    let settings = ReplaySettings { passes: NonZeroU64::new(2), ..ReplaySettings::new(1 << 20) };
    assert_eq!(arrivals(settings), [0, S, 2 * S, 3 * S, 4 * S, 5 * S, 6 * S, 7 * S]);
    let settings =
        ReplaySettings { passes: None, selection: Selection::Device("b".to_owned()), ..ReplaySettings::new(1 << 20) };
    let open = || TraceReader::new(TEXT.as_bytes(), &Settings::default());
    let endless = Replay::new(open, settings).expect("the trace is valid");
    let third = endless.flatten().nth(2).map(|request| request.arrival_ps);
    assert_eq!(third, Some(9 * S), "the passes of a device stay with those of the others");
}

#[test]
fn an_endless_replay_without_requests_ends() {
    let settings =
        ReplaySettings { passes: None, selection: Selection::Device("d".to_owned()), ..ReplaySettings::new(1 << 20) };
    assert_eq!(arrivals(settings), [0_u64; 0]);
}

#[test]
fn hosts_that_split_a_trace_replay_each_request_once() {
    let all: Vec<Vec<u64>> = (0..2)
        .map(|part| {
            arrivals(ReplaySettings { selection: Selection::Split { part, parts: 2 }, ..ReplaySettings::new(1 << 20) })
        })
        .collect();
    assert_eq!(all, [vec![0, 2 * S, 3 * S], vec![S]]);
}

/// Settings of a destination with blocks of 4,096 bytes.
fn in_pages(capacity_bytes: u64) -> ReplaySettings {
    ReplaySettings {
        destinations: vec![Destination { capacity_bytes, block_bytes: 4_096 }],
        ..ReplaySettings::new(capacity_bytes)
    }
}

#[test]
fn devices_go_to_the_destinations_in_turn() {
    let to = |capacity_bytes| Destination { capacity_bytes, block_bytes: 512 };
    let settings = ReplaySettings { destinations: vec![to(1 << 20), to(256_000)], ..ReplaySettings::new(1) };
    // Device b goes to the second destination, which ends at byte 256,000; device c to the first.
    assert_eq!(offsets(settings), [(0, 4_096), (0, 4_096), (1_019_904, 4_096), (0, 0)]);
}

#[test]
fn addresses_wrap_and_stay_inside() {
    let settings = ReplaySettings::new;
    // 1,019,904 modulo 512,000 is 507,904, and 4,096 bytes fit behind it.
    assert_eq!(offsets(settings(512_000)), [(0, 4_096), (0, 4_096), (507_904, 4_096), (0, 0)]);
    // A request that would cross the end is moved in front of it.
    assert_eq!(offsets(settings(511_500))[2], (511_488 - 4_096, 4_096));
    assert_eq!(offsets(settings(1_000)), [(0, 512), (0, 512), (0, 512), (0, 0)], "cut to the capacity");
}

#[test]
fn addresses_keep_their_proportion() {
    let map = AddressMap::Linear { source_bytes: NonZeroU64::new(1_024_000).expect("above 0") };
    let settings = ReplaySettings { map, ..in_pages(10_240_000) };
    let expected = [(0, 4_096), (5_120_000 / 4_096 * 4_096, 4_096), (10_199_040 / 4_096 * 4_096, 4_096), (0, 0)];
    assert_eq!(offsets(settings), expected);
}

#[test]
fn requests_are_enlarged_to_whole_blocks() {
    let text = "fio version 3 iolog\n0 a read 4095 2\n1 a write 4096 1\n2 a read 100 0\n";
    let settings = ReplaySettings { map: AddressMap::Keep, ..in_pages(1 << 20) };
    let requests = replay_of(text, settings).expect("the trace is valid");
    let places: Vec<(u64, u64)> = requests.iter().map(|request| (request.offset_bytes, request.length_bytes)).collect();
    assert_eq!(places, [(0, 8_192), (4_096, 4_096)], "an empty read is left out");
}

#[test]
fn a_request_beyond_the_capacity_is_an_error_without_a_map() {
    let settings = ReplaySettings { map: AddressMap::Keep, ..ReplaySettings::new(1_000_000) };
    let error = replay(settings).expect_err("the third request is beyond the end").to_string();
    assert_eq!(
        error,
        "request 3 ends at byte 1024000, but the capacity is 999936 bytes; map the addresses with `wrap` or `linear`"
    );
}

#[test]
fn think_times_are_scaled_or_dropped() {
    let text = "R Hit 0 8 10.0 20.0\nW Hit 8 8 10.0 30.0\n";
    let think = |think| {
        let settings = ReplaySettings { think, time_scale: 2.0, ..ReplaySettings::new(1 << 20) };
        let requests = replay_of(text, settings).expect("the trace is valid");
        requests.iter().map(|request| (request.op, request.think_ps)).collect::<Vec<_>>()
    };
    let (read, write) = (TraceOp::Read, TraceOp::Write);
    assert_eq!(think(Think::Keep), [(read, Some(40_000_000)), (write, Some(60_000_000))]);
    assert_eq!(think(Think::Drop), [(read, None), (write, None)]);
}

#[test]
fn settings_are_checked() {
    for (settings, expected) in [
        (ReplaySettings { time_scale: 0.0, ..ReplaySettings::new(1 << 20) }, "time scale"),
        (ReplaySettings { time_scale: f64::NAN, ..ReplaySettings::new(1 << 20) }, "time scale"),
        (ReplaySettings::new(511), "no block"),
        (ReplaySettings { selection: Selection::Split { part: 2, parts: 2 }, ..ReplaySettings::new(512) }, "hosts"),
    ] {
        let error = replay(settings).expect_err("the settings are wrong").to_string();
        assert!(error.contains(expected), "{error}");
    }
}
