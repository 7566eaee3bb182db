//! Sizes, locations, targets and directions of requests.
//!
//! The count of a share p of n requests may be off by 4 standard deviations of a binomial count,
//! sqrt(n p (1 - p)). For the distribution over eight targets that is 4 % of the count, for one
//! slot of 64 in the hot set 18 %.

use sanloom_fc::config::{Arrival, HotSet, Load, Location, Lun, Picos, Rate, SizeDistribution, Target, Workload};
use sanloom_sim::rng::{Purpose, StreamRng, stream_rng};
use sanloom_sim::workload::{Request, Sizes, Stream, Zipf};

const BLOCK_BYTES: u32 = 512;
const LUN: Lun = Lun { blocks: 1 << 20, block_bytes: BLOCK_BYTES };

fn workload(targets: u16) -> Workload {
    Workload {
        name: "w".into(),
        hosts: vec![0],
        targets: (0..targets).map(|index| Target { storage: index / 2, lun: index % 2 }).collect(),
        virtual_targets: Vec::new(),
        load: Load::Closed { depth: 4, think_time: Picos::from_us(10).into() },
        size: SizeDistribution::Fixed(8192),
        read_share: 0.7,
        location: Location::Random,
        hot_set: None,
        span_bytes: None,
        start: Picos::ZERO,
        stop: None,
    }
}

fn stream(workload: &Workload) -> Stream {
    Stream::new(workload, ("host", 0), &vec![LUN; workload.targets.len()], 1)
}

fn requests(workload: &Workload, count: usize) -> Vec<Request> {
    let mut stream = stream(workload);
    (0..count).map(|_| stream.next_request().expect("requests are drawn")).collect()
}

fn share_is(hits: usize, of: usize, expected: f64) -> bool {
    let n = of as f64;
    let deviation = (n * expected * (1.0 - expected)).sqrt();
    (hits as f64 - n * expected).abs() <= 4.0 * deviation
}

fn rng() -> StreamRng {
    stream_rng(3, Purpose::Size, &["a"])
}

#[test]
fn targets_are_chosen_evenly() {
    let requests = requests(&workload(8), 80_000);
    for target in 0..8u16 {
        let hits = requests.iter().filter(|r| r.target == target).count();
        assert!(share_is(hits, requests.len(), 1.0 / 8.0), "{target}: {hits}");
    }
    let named = |r: &Request| r.lun.storage == r.target / 2 && r.lun.lun == r.target % 2;
    assert!(requests.iter().all(named));
}

#[test]
fn the_choice_of_a_target_does_not_depend_on_the_one_before() {
    let requests = requests(&workload(4), 40_000);
    let repeats = requests.windows(2).filter(|pair| pair[0].target == pair[1].target).count();
    assert!(share_is(repeats, requests.len() - 1, 0.25));
}

#[test]
fn the_read_share_is_kept_and_its_ends_are_exact() {
    for (share, count) in [(0.7, 40_000), (1.0, 5_000), (0.0, 5_000)] {
        let workload = Workload { read_share: share, ..workload(1) };
        let requests = requests(&workload, count);
        let reads = requests.iter().filter(|r| !r.op.is_write()).count();
        assert!(share_is(reads, count, share), "{share}: {reads}");
    }
}

#[test]
fn random_addresses_are_aligned_uniform_and_within_the_lun() {
    let requests = requests(&workload(1), 64_000);
    let blocks = u64::from(8192 / BLOCK_BYTES);
    assert!(requests.iter().all(|r| r.lba % blocks == 0 && r.lba + blocks <= LUN.blocks));
    for sixteenth in 0..16 {
        let here = |r: &&Request| r.lba / (LUN.blocks / 16) == sixteenth;
        let hits = requests.iter().filter(here).count();
        assert!(share_is(hits, requests.len(), 1.0 / 16.0));
    }
    let tiny = Workload { span_bytes: Some(4 * 8192), ..workload(1) };
    let mut seen: Vec<u64> = self::requests(&tiny, 200).iter().map(|r| r.lba).collect();
    seen.sort_unstable();
    seen.dedup();
    assert_eq!(seen, [0, blocks, 2 * blocks, 3 * blocks]);
}

#[test]
fn sequential_requests_are_contiguous_on_each_lun_and_wrap() {
    let workload = Workload {
        location: Location::Sequential,
        size: SizeDistribution::Uniform { min: 512, max: 8192, step: 512 },
        span_bytes: Some(100_000),
        ..workload(3)
    };
    let usable_blocks = 100_000 / u64::from(BLOCK_BYTES);
    let mut next = [0u64; 3];
    let mut wraps = 0;
    for request in requests(&workload, 3_000) {
        let next = &mut next[usize::from(request.target)];
        let blocks = u64::from(request.blocks);
        if *next + blocks > usable_blocks {
            *next = 0;
            wraps += 1;
        }
        assert_eq!(request.lba, *next);
        *next += blocks;
    }
    assert!(wraps > 10);
}

#[test]
fn strided_requests_keep_their_distance_and_wrap() {
    let workload =
        Workload { location: Location::Strided { stride_bytes: 65_536 }, span_bytes: Some(300_000), ..workload(1) };
    let places: Vec<u64> = requests(&workload, 7).iter().map(|r| r.lba).collect();
    assert_eq!(places, [0, 128, 256, 384, 512, 0, 128]);
}

#[test]
fn a_stride_is_rounded_up_to_blocks() {
    let workload = Workload { location: Location::Strided { stride_bytes: 1_025 }, ..workload(1) };
    let places: Vec<u64> = requests(&workload, 3).iter().map(|r| r.lba).collect();
    assert_eq!(places, [0, 3, 6]);
}

#[test]
fn a_hot_set_gets_its_share_of_the_requests() {
    let workload = Workload {
        hot_set: Some(HotSet { share_of_requests: 0.8, share_of_space: 0.125, zipf_exponent: 0.0, items: 64 }),
        ..workload(1)
    };
    let hot_blocks = LUN.blocks / 8;
    let requests = requests(&workload, 40_000);
    let hot = requests.iter().filter(|r| r.lba < hot_blocks).count();
    assert!(share_is(hot, requests.len(), 0.8));
    for item in 0..64 {
        let here = |r: &&Request| r.lba / (hot_blocks / 64) == item;
        let hits = requests.iter().filter(here).count();
        assert!(share_is(hits, requests.len(), 0.8 / 64.0));
    }
}

#[test]
fn requests_to_the_rest_of_the_space_avoid_the_hot_set() {
    // The hot part has 1,001 blocks, which is not a multiple of a request's 64.
    let workload = Workload {
        size: SizeDistribution::Fixed(64 * BLOCK_BYTES),
        hot_set: Some(HotSet { share_of_requests: 0.0, share_of_space: 0.1, zipf_exponent: 1.0, items: 10 }),
        span_bytes: Some(10_010 * u64::from(BLOCK_BYTES)),
        ..workload(1)
    };
    let requests = requests(&workload, 2_000);
    assert!(requests.iter().all(|r| r.lba >= 1_001 && r.lba % 64 == 0));
    assert!(requests.iter().any(|r| r.lba == 1_024));
}

#[test]
fn a_skewed_hot_set_prefers_its_first_blocks_by_zipfs_law() {
    let workload = Workload {
        hot_set: Some(HotSet { share_of_requests: 1.0, share_of_space: 0.5, zipf_exponent: 1.2, items: 32 }),
        ..workload(1)
    };
    let requests = requests(&workload, 50_000);
    let weights: Vec<f64> = (1..=32).map(|k| f64::from(k).powf(-1.2)).collect();
    let total: f64 = weights.iter().sum();
    let item_blocks = LUN.blocks / 2 / 32;
    for (item, weight) in weights.iter().enumerate() {
        let here = |r: &&Request| r.lba / item_blocks == item as u64;
        let hits = requests.iter().filter(here).count();
        assert!(share_is(hits, requests.len(), weight / total), "{item}");
    }
}

#[test]
fn sequential_requests_besides_a_hot_set_stay_in_the_rest() {
    let workload = Workload {
        location: Location::Sequential,
        hot_set: Some(HotSet { share_of_requests: 0.5, share_of_space: 0.25, zipf_exponent: 0.9, items: 10 }),
        ..workload(1)
    };
    let cold_begin = LUN.blocks / 4;
    let requests = requests(&workload, 2_000);
    let cold: Vec<u64> = requests.iter().map(|r| r.lba).filter(|&lba| lba >= cold_begin).collect();
    assert!(share_is(cold.len(), requests.len(), 0.5));
    let expected: Vec<u64> = (0..cold.len() as u64).map(|index| cold_begin + 16 * index).collect();
    assert_eq!(cold, expected);
}

#[test]
fn zipfs_law_holds_for_every_exponent() {
    const DRAWS: usize = 40_000;
    for (exponent, items) in [(0.0, 7), (0.5, 100), (1.0, 50), (1.000_000_01, 50), (2.5, 9)] {
        let zipf = Zipf::new(items, exponent);
        let mut rng = rng();
        let mut hits = vec![0; items as usize];
        for _ in 0..DRAWS {
            hits[zipf.next(&mut rng) as usize] += 1;
        }
        let weight = |place: u32| f64::from(place + 1).powf(-exponent);
        let total: f64 = (0..items).map(weight).sum();
        for place in 0..items {
            let hits = hits[place as usize];
            assert!(share_is(hits, DRAWS, weight(place) / total), "exponent {exponent}, place {place}: {hits}");
        }
    }
}

#[test]
fn zipfs_law_over_very_many_ranks_needs_no_table() {
    let zipf = Zipf::new(u32::MAX, 1.1);
    let mut rng = rng();
    let draws: Vec<u32> = (0..10_000).map(|_| zipf.next(&mut rng)).collect();
    // The sum of k^-1.1 over 2^32 items is 9.4963 (Euler-Maclaurin).
    let firsts = draws.iter().filter(|&&place| place == 0).count();
    assert!(share_is(firsts, draws.len(), 1.0 / 9.4963));
    assert!(draws.iter().any(|&place| place > 1_000_000));
}

#[test]
fn weighted_sizes_keep_their_weights() {
    let sizes = Sizes::new(&SizeDistribution::Weighted(vec![(2048, 3.0), (4096, 0.0), (32_768, 1.0)]));
    let mut rng = rng();
    let drawn: Vec<u32> = (0..40_000).map(|_| sizes.next_bytes(&mut rng)).collect();
    let count = |bytes: u32| drawn.iter().filter(|&&b| b == bytes).count();
    assert!(share_is(count(2048), drawn.len(), 0.75));
    assert_eq!(count(4096), 0);
    assert_eq!(count(2048) + count(32_768), drawn.len());
}

#[test]
fn uniform_sizes_reach_every_step_evenly() {
    let sizes = Sizes::new(&SizeDistribution::Uniform { min: 1024, max: 5000, step: 1024 });
    let mut rng = rng();
    let drawn: Vec<u32> = (0..20_000).map(|_| sizes.next_bytes(&mut rng)).collect();
    for bytes in [1024, 2048, 3072, 4096] {
        let hits = drawn.iter().filter(|&&b| b == bytes).count();
        assert!(share_is(hits, drawn.len(), 0.25));
    }
}

#[test]
fn exponential_sizes_are_rounded_up_to_sectors_and_cut() {
    let (mean, max) = (16_384.0, 65_536);
    let sizes = Sizes::new(&SizeDistribution::Exponential { mean: mean as u32, max });
    let mut rng = rng();
    let drawn: Vec<u32> = (0..40_000).map(|_| sizes.next_bytes(&mut rng)).collect();
    assert!(drawn.iter().all(|b| b % 512 == 0 && (512..=max).contains(b)));
    // P(size > x) = exp(-x / mean) for every multiple x of 512 below the cut.
    for x in [512, 4096, 16_384, 49_152, 65_024] {
        let larger = drawn.iter().filter(|&&b| b > x).count();
        let expected = (-f64::from(x) / mean).exp();
        assert!(share_is(larger, drawn.len(), expected), "{x}: {larger}");
    }
}

#[test]
fn lengths_are_whole_blocks_and_never_longer_than_the_lun() {
    let workload =
        Workload { size: SizeDistribution::Weighted(vec![(100, 1.0), (5000, 1.0), (1 << 30, 1.0)]), ..workload(1) };
    for (blocks, block_bytes) in [(1, 4096), (3, 4096), (1000, 520)] {
        let lun = Lun { blocks, block_bytes };
        let mut stream = Stream::new(&workload, ("host", 0), &[lun], 9);
        for _ in 0..300 {
            let request = stream.next_request().expect("requests are drawn");
            assert!(request.blocks > 0);
            assert_eq!(request.bytes, request.blocks * block_bytes);
            assert!(request.lba + u64::from(request.blocks) <= blocks);
        }
    }
}

#[test]
fn a_closed_loop_starts_its_depth_and_follows_each_end() {
    let workload = Workload { start: Picos(500), stop: Some(Picos::from_us(20)), ..workload(1) };
    let mut stream = stream(&workload);
    assert_eq!(stream.closed_depth(), Some(4));
    let first: Vec<Option<u64>> = (0..5).map(|_| stream.next_arrival_ps()).collect();
    assert_eq!(first, [Some(500), Some(500), Some(500), Some(500), None]);
    assert_eq!(stream.after_end_ps(7_000_000), Some(17_000_000));
    assert_eq!(stream.after_end_ps(10_000_000), Some(20_000_000));
    assert_eq!(stream.after_end_ps(10_000_001), None);
}

#[test]
fn an_open_loop_runs_from_start_to_stop() {
    let workload = Workload {
        load: Load::Open(vec![Arrival::Constant { rate: Rate(1e6) }]),
        start: Picos::from_us(100),
        stop: Some(Picos::from_us(103)),
        ..workload(1)
    };
    let mut stream = stream(&workload);
    assert_eq!(stream.closed_depth(), None);
    let times: Vec<u64> = std::iter::from_fn(|| stream.next_arrival_ps()).collect();
    assert_eq!(times, [101_000_000, 102_000_000, 103_000_000]);
    assert_eq!(stream.next_arrival_ps(), None);
    assert_eq!(stream.after_end_ps(0), None);
    let mut stopped = self::stream(&workload);
    stopped.stop_at(101_500_000);
    assert_eq!(stopped.next_arrival_ps(), Some(101_000_000));
    assert_eq!(stopped.next_arrival_ps(), None);
}
