//! Cache, read-ahead, write-back, flush and queue of a disk, with exact times.

use proptest::prelude::*;
use sanloom_storage::disk::{
    Disk, DiskConfig, Ended, Op, QueueConfig, ReadAhead, Request, Scheduler, Source, WritePolicy, preset,
};

/// Picoseconds in a microsecond.
const US: u64 = 1_000_000;
/// Picoseconds in a millisecond.
const MS: u64 = 1000 * US;

fn disk(config: &DiskConfig) -> Disk {
    Disk::new(config).expect("the preset is valid")
}

fn request(id: u64, op: Op, lbn: u64, blocks: u64) -> Request {
    Request { id, lbn, blocks, op }
}

/// Returns all ends in their order.
fn drain(disk: &mut Disk) -> Vec<Ended> {
    let mut ended = Vec::new();
    while let Some(now_ps) = disk.next_ps() {
        ended.extend(std::iter::from_fn(|| disk.pop_ended(now_ps)));
    }
    ended
}

/// Submits a request and returns its end.
fn serve(disk: &mut Disk, now_ps: u64, op: Op, lbn: u64, blocks: u64) -> Ended {
    disk.submit(now_ps, request(0, op, lbn, blocks));
    drain(disk).pop().expect("the request ends")
}

#[test]
fn a_read_behind_a_read_is_a_hit_of_overhead_and_bus_time() {
    let mut disk = disk(&preset::cheetah_9lp());
    let first = serve(&mut disk, 0, Op::Read, 1000, 8);
    assert_eq!(first.source, Source::Medium);
    let second = serve(&mut disk, first.ended_ps + 20 * MS, Op::Read, 1008, 8);
    assert_eq!((second.source, second.response_ps()), (Source::Cache, 66 * US + 8 * 105 * US));
}

#[test]
fn a_read_that_overtakes_the_read_ahead_waits_for_it() {
    let mut config = preset::cheetah_9lp();
    config.bus.read_block_ms = 0.0;
    let mut disk = disk(&config);
    let first = serve(&mut disk, 0, Op::Read, 0, 8);
    let second = serve(&mut disk, first.ended_ps, Op::Read, 8, 200);
    assert_eq!(second.source, Source::ReadAhead);
    // The head reads without a gap from the first block to the last.
    let block_ps = disk.mechanism().geometry.revolution_ps() / 254;
    let read_ps = 200 * block_ps;
    assert!(second.response_ps().abs_diff(read_ps) < US, "{second:?}, {read_ps}");
}

#[test]
fn sequential_reads_run_at_the_speed_of_the_medium() {
    let mut config = preset::cheetah_9lp();
    config.bus.read_block_ms = 0.0;
    let mut disk = disk(&config);
    let mut now_ps = 0;
    let blocks = 10 * 12 * 254;
    for lbn in (0..blocks).step_by(16) {
        now_ps = serve(&mut disk, now_ps, Op::Read, lbn, 16).ended_ps;
    }
    // Per cylinder: 12 revolutions, 11 track skews of 97 blocks and one cylinder skew of 133.
    let turns = 10.0 * (12.0 + (11.0 * 97.0 + 133.0) / 254.0);
    let expected = turns * disk.mechanism().geometry.revolution_ps() as f64;
    let ratio = now_ps as f64 / expected;
    assert!((0.99..1.02).contains(&ratio), "{ratio}: {}", disk.stats());
}

#[test]
fn blocks_that_the_host_has_read_are_hits_only_if_the_disk_keeps_them() {
    for keeps_read_blocks in [false, true] {
        let mut config = preset::cheetah_9lp();
        config.cache.keeps_read_blocks = keeps_read_blocks;
        let mut disk = disk(&config);
        let first = serve(&mut disk, 0, Op::Read, 1000, 8);
        let again = serve(&mut disk, first.ended_ps + 20 * MS, Op::Read, 1000, 8);
        assert_eq!(again.source == Source::Cache, keeps_read_blocks);
    }
}

#[test]
fn a_write_that_takes_the_segment_of_a_read_ahead_ends_the_read_ahead() {
    let mut config = preset::cheetah_9lp();
    config.cache.segments = 1;
    config.cache.keeps_read_blocks = true;
    let mut disk = disk(&config);
    let first = serve(&mut disk, 0, Op::Read, 1000, 8);
    let write = serve(&mut disk, first.ended_ps + MS, Op::Write, 9_000_000, 8);
    let written = serve(&mut disk, write.ended_ps + 50 * MS, Op::Read, 9_000_000, 8);
    assert_eq!(written.source, Source::Cache);
    let other = serve(&mut disk, written.ended_ps, Op::Read, 5_000_000, 8);
    assert_eq!(other.source, Source::Medium);
    assert!(other.phases.seek_ps > MS, "{other:?}");
}

#[test]
fn blocks_behind_written_ones_stay_in_the_cache() {
    for (keeps_read_blocks, before, behind) in
        [(false, Source::Medium, Source::Cache), (true, Source::Cache, Source::Cache)]
    {
        let source_at = |lbn| {
            let mut config = preset::cheetah_9lp();
            config.cache.keeps_read_blocks = keeps_read_blocks;
            let mut disk = disk(&config);
            let read = serve(&mut disk, 0, Op::Read, 800, 8);
            let write = serve(&mut disk, read.ended_ps + 20 * MS, Op::Write, 900, 8);
            serve(&mut disk, write.ended_ps + 50 * MS, Op::Read, lbn, 8).source
        };
        assert_eq!((source_at(850), source_at(920)), (before, behind));
    }
}

#[test]
fn read_ahead_starts_at_the_second_sequential_read_if_the_disk_waits_for_it() {
    let mut config = preset::cheetah_9lp();
    config.cache.read_ahead_only_if_sequential = true;
    let mut disk = disk(&config);
    let mut sources = Vec::new();
    let mut now_ps = 0;
    for lbn in [1000, 1008, 1016] {
        let ended = serve(&mut disk, now_ps, Op::Read, lbn, 8);
        sources.push(ended.source);
        now_ps = ended.ended_ps + 20 * MS;
    }
    assert_eq!(sources, [Source::Medium, Source::Medium, Source::Cache]);
}

#[test]
fn read_ahead_ends_where_its_mode_ends() {
    let ends = [
        (ReadAhead::None, 1008),
        (ReadAhead::ToEndOfTrack, 1016),
        (ReadAhead::UntilFull, 1008 + 561),
        (ReadAhead::ToEndOfCylinder, 1008 + 561),
    ];
    for (read_ahead, end) in ends {
        let mut config = preset::cheetah_9lp();
        config.cache.read_ahead = read_ahead;
        let source_at = |lbn| {
            let mut disk = disk(&config);
            let first = serve(&mut disk, 0, Op::Read, 1000, 8);
            serve(&mut disk, first.ended_ps + 100 * MS, Op::Read, lbn, 1).source
        };
        assert_eq!(source_at(end - 1) == Source::Cache, end > 1008, "{read_ahead:?}");
        assert_eq!(source_at(end), Source::Medium, "{read_ahead:?}");
    }
}

#[test]
fn a_cached_write_ends_before_its_blocks_are_on_the_medium() {
    let mut disk = disk(&preset::cheetah_9lp());
    disk.submit(0, request(1, Op::Write, 5_000_000, 8));
    let ended = drain(&mut disk).pop().expect("the write ends");
    assert_eq!((ended.source, ended.response_ps()), (Source::Cache, 748 * US + 8 * 105 * US));
    assert_eq!(disk.dirty_blocks(), 8);
    let flush = serve(&mut disk, ended.ended_ps, Op::Flush, 0, 1);
    assert_eq!(disk.dirty_blocks(), 0);
    assert!(flush.response_ps() > MS, "{flush:?}");
    let read = serve(&mut disk, flush.ended_ps, Op::Read, 5_000_000, 8);
    assert_eq!(read.source, Source::Cache);
}

#[test]
fn a_read_behind_a_cached_write_waits_until_the_medium_has_it() {
    let mut disk = disk(&preset::cheetah_9lp());
    let write = serve(&mut disk, 0, Op::Write, 5_000_000, 8);
    let near = serve(&mut disk, write.ended_ps, Op::Read, 10_000_000, 8);
    assert!(near.phases.queue_ps > MS, "{near:?}");
    let mut idle = Disk::new(&preset::cheetah_9lp()).expect("the preset is valid");
    let write = serve(&mut idle, 0, Op::Write, 5_000_000, 8);
    let late = serve(&mut idle, write.ended_ps + 50 * MS, Op::Read, 10_000_000, 8);
    assert_eq!(late.phases.queue_ps, 0);
}

#[test]
fn writes_wait_for_room_in_the_cache() {
    let mut disk = disk(&preset::cheetah_9lp());
    for id in 0..20 {
        disk.submit(0, request(id, Op::Write, id * 700_000, 8));
    }
    let ended = drain(&mut disk);
    let waited = ended.iter().filter(|ended| ended.phases.queue_ps > 4 * MS).count();
    // Three extents wait for the medium at most.
    assert_eq!((ended.len(), waited), (20, 17), "{}", disk.stats());
}

#[test]
fn adjacent_writes_reach_the_medium_as_one_extent() {
    let mut disk = disk(&preset::cheetah_9lp());
    disk.submit(0, request(0, Op::Write, 9_000_000, 8));
    for id in 1..10 {
        disk.submit(0, request(id, Op::Write, 5_000_000 + id * 8, 8));
    }
    disk.submit(0, request(10, Op::Flush, 0, 1));
    assert_eq!(drain(&mut disk).len(), 11);
    assert_eq!(disk.stats().write_backs, 2, "{}", disk.stats());
}

#[test]
fn a_flush_blocks_the_requests_behind_it() {
    let mut disk = disk(&preset::cheetah_9lp());
    disk.submit(0, request(1, Op::Write, 5_000_000, 8));
    disk.submit(0, request(2, Op::Flush, 0, 1));
    disk.submit(0, request(3, Op::Write, 6_000_000, 8));
    disk.submit(0, request(4, Op::Read, 5_000_000, 8));
    let order: Vec<u64> = drain(&mut disk).iter().map(|ended| ended.id).collect();
    assert_eq!(order[..2], [1, 2]);
    assert_eq!(order.len(), 4);
}

#[test]
fn a_write_through_ends_on_the_medium_with_and_without_a_write_cache() {
    let mut without = preset::cheetah_9lp();
    without.cache.write = WritePolicy::Through;
    for (config, op) in [(without, Op::Write), (preset::cheetah_9lp(), Op::WriteThrough)] {
        let mut disk = disk(&config);
        let ended = serve(&mut disk, 0, op, 5_000_000, 8);
        assert_eq!((ended.source, disk.dirty_blocks()), (Source::Medium, 0));
        assert!(ended.phases.seek_ps > MS && ended.response_ps() > 3 * MS, "{ended:?}");
    }
}

#[test]
fn only_appending_writes_end_in_the_cache_if_the_policy_asks_for_it() {
    let mut config = preset::cheetah_9lp();
    config.cache.write =
        WritePolicy::Back { dirty_blocks: 1000, dirty_extents: 3, window: usize::MAX, only_appending: true };
    let mut disk = disk(&config);
    let mut sources = Vec::new();
    let mut now_ps = 0;
    for lbn in [5_000_000, 5_000_008, 5_000_016, 9_000_000] {
        let ended = serve(&mut disk, now_ps, Op::Write, lbn, 8);
        sources.push(ended.source);
        now_ps = ended.ended_ps + 50 * MS;
    }
    assert_eq!(sources, [Source::Medium, Source::Cache, Source::Cache, Source::Medium]);
}

#[test]
fn a_read_of_a_whole_track_takes_one_revolution_with_zero_latency() {
    for zero_latency_reads in [false, true] {
        let mut config = preset::cheetah_9lp();
        config.cache.zero_latency_reads = zero_latency_reads;
        config.bus.read_block_ms = 0.0;
        let disk = disk(&config);
        let turn_ps = disk.mechanism().geometry.revolution_ps();
        let (mut sum_ps, mut longest_ps) = (0, 0);
        for step in 0..100 {
            let mut disk = disk.clone();
            let read = serve(&mut disk, step * turn_ps / 100, Op::Read, 254 * 24, 254);
            let after_seek_ps = read.phases.rotation_ps + read.phases.medium_ps;
            sum_ps += after_seek_ps;
            longest_ps = longest_ps.max(after_seek_ps);
        }
        let mean = sum_ps as f64 / 100.0 / turn_ps as f64;
        // Without it, half a revolution passes before the first block.
        let expected = if zero_latency_reads { 1.0 } else { 1.5 };
        assert!((mean - expected).abs() < 0.02, "{mean} revolutions, longest {longest_ps} ps");
    }
}

#[test]
fn an_age_limit_ends_starvation() {
    let longest = |age_limit_ms| {
        let mut config = preset::cheetah_9lp();
        config.queue = QueueConfig { scheduler: Scheduler::Sstf, window: usize::MAX, age_limit_ms };
        config.cache.segments = 0;
        let mut disk = disk(&config);
        // One request far away, and a stream of requests near the head.
        disk.submit(0, request(0, Op::Read, 17_000_000, 8));
        disk.submit(0, request(1, Op::Read, 10_000, 8));
        disk.submit(0, request(2, Op::Read, 20_000, 8));
        for id in 3..500 {
            let now_ps = disk.next_ps().expect("requests wait");
            while let Some(ended) = disk.pop_ended(now_ps) {
                if ended.id == 0 {
                    return ended.response_ps();
                }
                disk.submit(now_ps, request(id, Op::Read, (id * 7919) % 30_000, 8));
            }
        }
        u64::MAX
    };
    assert_eq!(longest(None), u64::MAX);
    assert!(longest(Some(200.0)) < 250 * MS);
}

#[test]
fn a_second_read_of_blocks_waits_until_the_medium_has_delivered_them() {
    for config in preset::all() {
        for op in [ReadAhead::None, config.cache.read_ahead] {
            let mut config = config.clone();
            config.cache.read_ahead = op;
            let mut disk = disk(&config);
            let lbn = disk.mechanism().geometry.blocks() / 2;
            disk.submit(0, request(1, Op::Read, lbn, 8));
            disk.next_ps();
            disk.submit(MS, request(2, Op::Read, lbn, 8));
            let ended = drain(&mut disk);
            let [first, second] = [1, 2].map(|id| *ended.iter().find(|ended| ended.id == id).expect("each read ends"));
            // The bus may transfer the second one before the end of the first transfer.
            let medium_end_ps = first.ended_ps - first.phases.bus_ps;
            assert!(second.ended_ps > medium_end_ps, "{}: {first:?}, {second:?}", config.name);
        }
    }
}

#[test]
fn a_request_counts_when_it_ends() {
    let mut disk = disk(&preset::cheetah_9lp());
    disk.submit(0, request(1, Op::Read, 5_000_000, 8));
    let end_ps = disk.next_ps().map(|_| disk.next_ps().expect("the read ends")).expect("the read waits");
    disk.restart_stats();
    assert_eq!((disk.stats().read_misses.requests, disk.pop_ended(end_ps - 1)), (0, None));
    assert!(disk.pop_ended(end_ps).is_some());
    assert_eq!(disk.stats().read_misses.requests, 1);
}

#[test]
fn progress_without_requests_is_seen_after_an_advance() {
    let mut idle = disk(&preset::cheetah_9lp());
    for id in 0..3 {
        idle.submit(0, request(id, Op::Write, id * 5_000_000, 8));
    }
    let ended = drain(&mut idle).pop().expect("the writes end");
    assert!(idle.dirty_blocks() > 0 && idle.stats().write_backs < 3, "{}", idle.stats());
    let mut early = idle.clone();
    early.advance(ended.ended_ps + US);
    assert_eq!((early.dirty_blocks(), early.stats()), (idle.dirty_blocks(), idle.stats()));
    idle.advance(ended.ended_ps + 50 * MS);
    assert_eq!((idle.dirty_blocks(), idle.stats().write_backs), (0, 3));
    idle.restart_stats();
    idle.advance(ended.ended_ps + 100 * MS);
    assert_eq!((idle.stats().write_backs, idle.stats().write_back_ps), (0, 0));
}

#[test]
fn a_write_beyond_the_last_block_that_waits_for_room_is_cut_first() {
    let mut config = preset::cheetah_9lp();
    config.cache.write =
        WritePolicy::Back { dirty_blocks: 16, dirty_extents: 10, window: usize::MAX, only_appending: false };
    let mut disk = disk(&config);
    let last = disk.mechanism().geometry.blocks() - 1;
    for (id, lbn) in [1000, 9_000_000].into_iter().enumerate() {
        disk.submit(0, request(id as u64, Op::Write, lbn, 8));
    }
    disk.submit(0, request(2, Op::Write, last, u64::MAX));
    disk.submit(0, request(3, Op::Write, u64::MAX, u64::MAX));
    let ended = drain(&mut disk);
    // One block has room as soon as the first extent is on the medium.
    assert_eq!(ended.len(), 4);
    assert!(disk.dirty_blocks() > 1, "{}", disk.dirty_blocks());
}

#[test]
fn errors_of_parameters_name_the_value_and_the_remedy() {
    let error = |change: fn(&mut DiskConfig)| {
        let mut config = preset::cheetah_9lp();
        change(&mut config);
        Disk::new(&config).expect_err("the disk is invalid").to_string()
    };
    assert_eq!(error(|config| config.rpm = 0.0), "disk cheetah-9lp: rpm is 0; set a number from 60 to 1000000");
    let time = error(|config| config.head_switch_ms = f64::NAN);
    assert_eq!(time, "disk cheetah-9lp: head_switch_ms is NaN; set a number from 0 to 1000000");
    let capacity = error(|config| config.blocks = 100_000_000);
    assert!(capacity.ends_with("reduce the blocks or the spare blocks"), "{capacity}");
    let zone = error(|config| config.zones.to_mut()[1].first_cylinder = 5);
    assert!(zone.contains("zone 1") && zone.contains("list zones by first cylinder"), "{zone}");
}

#[test]
fn a_warm_disk_allocates_nothing() {
    for config in preset::all() {
        let mut disk = disk(&config);
        let blocks = disk.mechanism().geometry.blocks();
        let (mut seed, mut now_ps, mut ended) = (1u64, 0, 0u64);
        let mut run = |requests: u64| {
            let end = ended + requests;
            while ended < end {
                now_ps = disk.next_ps().unwrap_or(now_ps);
                while disk.pop_ended(now_ps).is_some() {
                    ended += 1;
                }
                for _ in 0..2 {
                    seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
                    let op = if seed >> 63 == 0 { Op::Read } else { Op::Write };
                    if disk.waiting() < 32 {
                        disk.submit(now_ps, request(seed, op, (seed >> 20) % blocks, 8));
                    }
                }
            }
        };
        // Long enough to fill the largest write cache.
        run(50_000);
        let counted = allocation_counter::measure(|| run(5_000));
        assert_eq!(counted.count_total, 0, "{}", config.name);
    }
}

proptest! {
    #[test]
    fn each_request_ends_once_and_its_parts_sum_to_its_response_time(
        requests in prop::collection::vec((0u64..18_000_000, 1u64..700, 0u8..8, 0u64..30_000), 1..150),
        preset in 0usize..3,
    ) {
        let config = [preset::cheetah_9lp(), preset::atlas_10k(), preset::c2247a()][preset].clone();
        let mut disk = disk(&config);
        let mut ended = Vec::new();
        let mut arrival_ps = 0;
        for (id, (lbn, blocks, op, gap_us)) in requests.iter().enumerate() {
            let op = match op {
                0 => Op::Flush,
                1 => Op::WriteThrough,
                2..=4 => Op::Write,
                _ => Op::Read,
            };
            arrival_ps += gap_us * US;
            while let Some(now_ps) = disk.next_ps().filter(|now_ps| *now_ps < arrival_ps) {
                ended.extend(std::iter::from_fn(|| disk.pop_ended(now_ps)));
            }
            disk.submit(arrival_ps, request(id as u64, op, *lbn, *blocks));
        }
        ended.extend(drain(&mut disk));
        let mut ids: Vec<u64> = ended.iter().map(|ended| ended.id).collect();
        ids.sort_unstable();
        prop_assert_eq!(ids, (0..requests.len() as u64).collect::<Vec<_>>());
        for ended in &ended {
            prop_assert_eq!(ended.phases.total_ps(), ended.response_ps());
        }
        prop_assert!(ended.windows(2).all(|pair| pair[0].ended_ps <= pair[1].ended_ps));
    }
}
