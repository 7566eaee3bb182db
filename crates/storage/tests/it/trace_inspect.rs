//! Statistics of traces: exact numbers of small ones, and laws of random ones.

use proptest::prelude::*;
use rand::{RngExt, SeedableRng};
use rand_xoshiro::Xoshiro256PlusPlus;
use sanloom_storage::trace::inspect::{BLOCK_BYTES, Inspector, Limits, Statistics, synthetic};
use sanloom_storage::trace::{Settings, TraceOp, TraceReader, TraceRequest};

const US: u64 = 1_000_000;

fn read(arrival_ps: u64, offset_bytes: u64, length_bytes: u64) -> TraceRequest {
    let (response_ps, think_ps) = (None, None);
    TraceRequest { arrival_ps, device: 0, op: TraceOp::Read, offset_bytes, length_bytes, response_ps, think_ps }
}

fn statistics(requests: &[TraceRequest], blocks: usize) -> Statistics {
    let mut inspector = Inspector::new(Limits { blocks });
    requests.iter().for_each(|request| inspector.add(request));
    inspector.statistics(&["disk".to_owned()])
}

#[test]
fn a_small_trace_has_the_numbers_of_a_hand_count() {
    let text = "fio version 3 iolog\n0 a read 0 4096\n100 a read 4096 4096\n200 b write 0 8192\n300 a read 8192 4096\n\
        400 a write 0 4096\n500 a trim 0 65536\n600 a sync 0 0\n1000 b write 8192 8192\n";
    let mut reader = TraceReader::new(text.as_bytes(), &Settings::default()).expect("the trace is valid");
    let mut inspector = Inspector::new(Limits::default());
    (&mut reader).for_each(|request| inspector.add(&request.expect("the trace is valid")));
    let of = inspector.statistics(reader.devices());
    assert_eq!([of.requests, of.reads, of.writes, of.trims, of.flushes], [8, 3, 3, 1, 1]);
    assert_eq!([of.bytes_read, of.bytes_written, of.bytes_trimmed], [12_288, 20_480, 65_536]);
    assert!((of.read_share - 0.5).abs() < 1e-12 && (of.duration_s - 0.001).abs() < 1e-12);
    assert!((of.iops - 8_000.0).abs() < 1e-6 && (of.throughput_bytes_per_s - 32_768_000.0).abs() < 1e-3);
    assert_eq!((of.write_sizes.p50_bytes, of.write_sizes.max_bytes), (8_192, 8_192));
    let frequent: Vec<(u64, u64)> = of.write_sizes.frequent.iter().map(|size| (size.bytes, size.requests)).collect();
    assert_eq!(frequent, [(8_192, 2), (4_096, 1)]);
    let between = of.arrivals.between.expect("there are gaps");
    assert_eq!((between.p50_us, between.max_us), (100.0, 400.0));
    // a: 0 and 4096 and 8192 in a row, then 0; b: 0 and 8192 in a row.
    assert_eq!((of.sequential.share, of.sequential.runs), (0.5, 3));
    // Blocks of a: 0, 1, 2 and 0 again; of b: 0, 1, 2, 3.
    assert_eq!((of.locality.footprint_bytes, of.locality.accesses), (7 * BLOCK_BYTES, 8));
    assert!((of.locality.reused - 1.0 / 8.0).abs() < 1e-12);
    // Between both accesses to block 0 of a lie blocks 0 and 1 of b, and 1 and 2 of a.
    assert_eq!(of.locality.reuse_p50_bytes, Some(4 * BLOCK_BYTES));
    let devices: Vec<(&str, u64, u64, u64)> = of
        .devices
        .iter()
        .map(|device| (device.name.as_str(), device.requests, device.footprint_bytes, device.end_bytes))
        .collect();
    assert_eq!(devices, [("a", 6, 12_288, 65_536), ("b", 2, 16_384, 16_384)]);
}

#[test]
fn streams_side_by_side_are_found() {
    let requests: Vec<_> =
        (0..100).flat_map(|n| [read(0, n * 4_096, 4_096), read(0, (1 << 30) + n * 512, 512)]).collect();
    let of = statistics(&requests, 1 << 12).sequential;
    assert_eq!(of.share, 0.0);
    assert!((of.stream_share - 198.0 / 200.0).abs() < 1e-12);
}

/// Hits of an LRU cache of `size` blocks, by a list.
fn plain_lru(blocks: &[u64], size: usize) -> usize {
    let mut list: Vec<u64> = Vec::new();
    let mut hits = 0;
    for block in blocks {
        if let Some(at) = list.iter().position(|other| other == block) {
            list.remove(at);
            hits += usize::from(list.len() - at < size);
        }
        list.push(*block);
    }
    hits
}

proptest! {
    #[test]
    fn hit_ratios_are_those_of_an_lru_list(blocks in prop::collection::vec(0..40_u64, 1..300)) {
        let requests: Vec<_> = blocks.iter().map(|block| read(0, block * BLOCK_BYTES, BLOCK_BYTES)).collect();
        // The positions of accesses are renumbered every 200 accesses.
        let of = statistics(&requests, 50).locality;
        prop_assert_eq!(of.sampled, 1.0);
        for point in &of.lru {
            let hits = plain_lru(&blocks, (point.bytes / BLOCK_BYTES) as usize);
            prop_assert!((point.hits - hits as f64 / blocks.len() as f64).abs() < 1e-12, "{:?} {}", point, hits);
        }
    }
}

/// Blocks of a hot set: 80 % of the requests go to 20 % of 20,000 blocks.
fn hot_blocks(requests: usize) -> Vec<TraceRequest> {
    let mut random = Xoshiro256PlusPlus::seed_from_u64(7);
    let mut next = |number: u64| {
        let is_hot = random.random_range(0..10) < 8;
        let block = if is_hot { random.random_range(0..4_000) } else { random.random_range(4_000..20_000) };
        read(number * US, block * BLOCK_BYTES, BLOCK_BYTES)
    };
    (0..requests as u64).map(&mut next).collect()
}

#[test]
fn a_sampled_trace_has_the_locality_of_the_whole() {
    let requests = hot_blocks(300_000);
    let exact = statistics(&requests, 1 << 15).locality;
    let sampled = statistics(&requests, 1 << 12).locality;
    assert!(exact.sampled == 1.0 && sampled.sampled == 0.125, "{}", sampled.sampled);
    let footprint = sampled.footprint_bytes as f64 / exact.footprint_bytes as f64;
    assert!((0.95..1.05).contains(&footprint), "{footprint}");
    for (one, other) in exact.hot.iter().zip(&sampled.hot) {
        assert!((one.accesses - other.accesses).abs() < 0.03, "{one:?} {other:?}");
    }
    assert!((exact.hot[3].accesses - 0.8).abs() < 0.02, "{:?}", exact.hot);
    for (one, other) in exact.lru.iter().zip(&sampled.lru).skip(8) {
        assert!((one.hits - other.hits).abs() < 0.03, "{one:?} {other:?}");
    }
}

/// Arrivals with exponential gaps; `busy_ps` of each `period_ps`: gaps pass only within this time.
fn arrivals(count: usize, mean_ps: f64, busy_ps: u64, period_ps: u64) -> Vec<TraceRequest> {
    let mut random = Xoshiro256PlusPlus::seed_from_u64(3);
    let mut time = 0.0;
    let mut next = || {
        time += -mean_ps * (1.0 - random.random::<f64>()).ln();
        let periods = (time / busy_ps as f64) as u64;
        read(periods * (period_ps - busy_ps) + time as u64, 0, 4_096)
    };
    (0..count).map(|_| next()).collect()
}

#[test]
fn a_poisson_process_has_an_index_of_dispersion_of_one_and_bursts_have_more() {
    let ms = 1_000 * US;
    let poisson = statistics(&arrivals(400_000, ms as f64 / 2.0, ms, ms), 16).arrivals;
    for burst in poisson.bursts.iter().filter(|burst| burst.windows >= 500) {
        assert!((burst.index_of_dispersion - 1.0).abs() < 0.15, "{burst:?}");
    }
    assert!((poisson.variation.expect("there are gaps") - 1.0).abs() < 0.02, "{:?}", poisson.variation);
    let hurst = poisson.hurst.expect("it is long enough");
    assert!((hurst - 0.5).abs() < 0.06, "{hurst}");
    // One second of 20 is busy, at the same rate.
    let bursts = statistics(&arrivals(400_000, ms as f64 / 2.0, 1_000 * ms, 20_000 * ms), 16).arrivals;
    let second = bursts.bursts.iter().find(|burst| burst.window_s > 1.0).expect("it is long enough");
    assert!(second.index_of_dispersion > 100.0, "{second:?}");
}

#[test]
fn phases_with_a_heavy_tail_are_dependent_over_a_long_range() {
    // Phases with a shape of 1.4 give a Hurst parameter of (3 - 1.4) / 2.
    let mut random = Xoshiro256PlusPlus::seed_from_u64(5);
    let mut requests = Vec::new();
    let mut time = 0;
    while time < 2_000_000_000 * US {
        let mut phase = || (4_000.0 * libm::pow(1.0 - random.random::<f64>(), -1.0 / 1.4)) as u64 * US;
        let (busy, idle) = (phase(), phase());
        requests.extend((0..busy / (2_000 * US)).map(|n| read(time + n * 2_000 * US, 0, 4_096)));
        time += busy + idle;
    }
    let hurst = statistics(&requests, 16).arrivals.hurst.expect("it is long enough");
    assert!((0.7..0.9).contains(&hurst), "{hurst}");
}

#[test]
fn a_synthetic_workload_has_the_rate_the_mix_and_the_hot_part() {
    let mut requests = hot_blocks(300_000);
    requests.iter_mut().step_by(4).for_each(|request| request.op = TraceOp::Write);
    let text = synthetic(&statistics(&requests, 1 << 15), "oltp", "oltp.csv");
    for line in [
        "[workload.oltp]",
        "size = \"4KiB\"",
        "read_share = 0.75",
        "location = \"random\"",
        "hot = { requests = 0.7",
        "arrivals = \"constant 1000000/s\"",
        "# - bursts: index of dispersion 0.0 in windows of",
    ] {
        assert!(text.contains(line), "{line}: {text}");
    }
    assert!(!text.contains("sequential\"") && text.lines().all(|line| line.len() <= 100), "{text}");
}

#[test]
fn sequential_and_other_requests_become_sections_of_their_own() {
    let random = hot_blocks(1_000);
    let sequential =
        (0..1_000).map(|n| TraceRequest { op: TraceOp::Write, ..read(n * US, (1 << 40) + n * 65_536, 65_536) });
    let mut requests: Vec<_> =
        random.into_iter().map(|request| TraceRequest { device: 1, ..request }).chain(sequential).collect();
    requests.sort_by_key(|request| request.arrival_ps);
    let text = synthetic(&statistics(&requests, 1 << 15), "mixed", "mixed.csv");
    let (first, second) = text.split_once("[workload.mixed-random]").expect("two sections");
    assert!(first.contains("[workload.mixed-sequential]") && first.contains("\"64KiB\" = 0.999"), "{text}");
    assert!(second.contains("\"4KiB\" = 0.999"), "{text}");
    assert!(text.contains("# - division of the requests among 2 devices"), "{text}");
}

#[test]
fn a_trace_with_think_times_becomes_a_closed_loop() {
    let think =
        |n: u64| TraceRequest { think_ps: Some(1_500 * US), ..read(n * 2_000 * US, (n * 7_919 % 1_000) * 4_096, 512) };
    let requests: Vec<_> = (0..500).map(think).collect();
    let text = synthetic(&statistics(&requests, 1 << 12), "closed", "a");
    assert!(text.contains("depth = 1\nthink_time = \"1500us\"\nsize = \"512B\""), "{text}");
}

#[test]
fn a_trace_without_reads_and_writes_has_no_section() {
    let flush = TraceRequest { op: TraceOp::Flush, ..read(0, 0, 0) };
    assert!(!synthetic(&statistics(&[flush], 16), "a", "b").contains("[workload"));
    assert!(!synthetic(&statistics(&[], 16), "a", "b\nc").contains("\nc"));
}
