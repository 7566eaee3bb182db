//! SSDs with queue, buffer and host interface: response times, rates, contents and conservation.

use proptest::prelude::*;
use rand::{RngExt, SeedableRng};
use rand_xoshiro::Xoshiro256PlusPlus;
use sanloom_storage::disk::{Op, Request};
use sanloom_storage::flash::{
    Drive, DriveConfig, DriveError, FlashGeometry, FlashSettings, FlashTiming, Victim, preset,
};
use std::collections::BTreeSet;

const US: u64 = 1_000_000;
const MIB: u64 = 1 << 20;

/// Four dies on two channels, with 8 blocks of 512 bytes per page and times that are easy to add.
fn small() -> DriveConfig {
    let geometry = FlashGeometry { channels: 2, dies: 2, planes: 1, blocks: 16, pages: 8, page_bytes: 4096 };
    let timing = FlashTiming {
        read_ps: 50 * US,
        program_ps: 200 * US,
        erase_ps: 1_000 * US,
        channel_bytes_per_second: 409_600_000,
        has_copy_back: false,
    };
    let flash =
        FlashSettings { geometry, timing, logical_pages: 4 * 8 * 8, reserved_blocks: 2, victim: Victim::Greedy };
    DriveConfig {
        name: "small".into(),
        flash,
        command_ps: 3 * US,
        read_latency_ps: 7 * US,
        write_latency_ps: 11 * US,
        flush_ps: 500 * US,
        link_bytes_per_second: 4_096_000_000,
        queue_slots: 8,
        buffer_pages: 4,
        has_power_loss_protection: true,
    }
}

fn drive(config: &DriveConfig) -> Drive {
    Drive::new(config).expect("the parameters fit")
}

fn request(id: u64, lbn: u64, blocks: u64, op: Op) -> Request {
    Request { id, lbn, blocks, op }
}

/// Runs until no request is left. Returns identifiers and times of the ends.
fn run(drive: &mut Drive) -> Vec<(u64, u64)> {
    let mut ended = Vec::new();
    while let Some(at_ps) = drive.next_ps() {
        while let Some(end) = drive.pop_ended(at_ps) {
            ended.push((end.id, end.ended_ps));
        }
    }
    ended
}

/// Keeps `depth` requests in the drive. Returns the rate per second over all but the first tenth.
fn rate(drive: &mut Drive, depth: u64, count: u64, mut next: impl FnMut() -> (u64, Op)) -> f64 {
    let mut new = |id| {
        let (page, op) = next();
        request(id, page * 8, 8, op)
    };
    let start_ps = drive.pop_ended(0).map_or(0, |end| end.ended_ps);
    (0..depth).for_each(|id| drive.submit(start_ps, new(id)));
    let (mut done, mut from_ps) = (0, 0);
    loop {
        let at_ps = drive.next_ps().expect("requests are in flight");
        while let Some(end) = drive.pop_ended(at_ps) {
            done += 1;
            if done == count / 10 {
                from_ps = at_ps;
                drive.restart_stats();
            }
            if done == count {
                return (count - count / 10) as f64 / ((at_ps - from_ps) as f64 / 1e12);
            }
            drive.submit(at_ps, new(end.id));
        }
    }
}

fn near(found: f64, expected: f64, tolerance: f64) {
    assert!((found / expected - 1.0).abs() <= tolerance, "{found}, expected {expected}");
}

#[test]
fn a_single_request_takes_the_sum_of_its_stages() {
    let mut drive = drive(&small());
    // Not mapped: command, link (1 us per page) and latency.
    drive.submit(0, request(0, 0, 8, Op::Read));
    assert_eq!(run(&mut drive), [(0, (3 + 1 + 7) * US)]);
    // Buffered.
    drive.submit(100 * US, request(1, 0, 8, Op::Write));
    assert_eq!(run(&mut drive), [(1, (100 + 3 + 1 + 11) * US)]);
    // The page is still in the buffer.
    drive.submit(120 * US, request(2, 0, 8, Op::Read));
    assert_eq!(run(&mut drive), [(2, (120 + 3 + 1 + 7) * US)]);
    // From the cells: 50 us for the cells and 10 us on the channel.
    drive.submit(1_000 * US, request(3, 0, 8, Op::Read));
    assert_eq!(run(&mut drive), [(3, (1_000 + 3 + 50 + 10 + 1 + 7) * US)]);
    let stats = drive.stats();
    assert_eq!((stats.flash_reads, stats.buffer_hits, stats.reads.requests, stats.writes.blocks), (1, 1, 3, 8));
}

#[test]
fn pages_on_different_dies_are_read_at_once_and_share_their_channel() {
    let mut drive = drive(&small());
    drive.submit(0, request(0, 0, 32, Op::Write));
    run(&mut drive);
    drive.submit(10_000 * US, request(1, 0, 32, Op::Read));
    // Two pages on each channel: 50 us, two transfers of 10 us, and 4 us on the link.
    assert_eq!(run(&mut drive), [(1, (10_000 + 3 + 50 + 20 + 4 + 7) * US)]);
}

#[test]
fn without_a_buffer_a_write_ends_when_the_cells_hold_it() {
    let mut drive = drive(&DriveConfig { buffer_pages: 0, ..small() });
    drive.submit(0, request(0, 0, 8, Op::Write));
    assert_eq!(run(&mut drive), [(0, (3 + 1 + 10 + 200 + 11) * US)]);
}

#[test]
fn a_write_that_finds_the_buffer_full_waits_for_a_program() {
    let mut drive = drive(&small());
    drive.submit(0, request(0, 0, 32, Op::Write));
    drive.submit(0, request(1, 32, 8, Op::Write));
    // Programs of the first two dies begin when the data are there, and end 210 us later.
    let ends = run(&mut drive);
    assert_eq!(ends, [(0, (3 + 4 + 11) * US), (1, (3 + 4 + 10 + 200 + 11) * US)]);
    assert_eq!(drive.stats().stalls, 1);
}

#[test]
fn a_write_of_a_part_of_a_page_reads_the_page_first() {
    let mut drive = drive(&small());
    drive.submit(0, request(0, 0, 16, Op::Write));
    run(&mut drive);
    drive.submit(5_000 * US, request(1, 4, 8, Op::Write));
    // Both pages are read on their dies: 50 us and 10 us on channels of their own.
    assert_eq!(run(&mut drive), [(1, (5_000 + 3 + 1 + 60 + 11) * US)]);
    drive.submit(9_000 * US, request(2, 1, 2, Op::Write));
    assert_eq!(run(&mut drive), [(2, 9_000 * US + 3 * US + US / 4 + (60 + 11) * US)]);
    assert_eq!(drive.stats().merges, 3);
}

#[test]
fn a_flush_waits_for_programs_unless_the_buffer_is_protected() {
    let mut protected = drive(&small());
    protected.submit(0, request(0, 0, 8, Op::Write));
    protected.submit(0, request(1, 0, 1, Op::Flush));
    assert_eq!(run(&mut protected), [(1, 6 * US), (0, 15 * US)]);
    let mut volatile = drive(&DriveConfig { has_power_loss_protection: false, ..small() });
    volatile.submit(0, request(0, 0, 8, Op::Write));
    run(&mut volatile);
    assert_eq!(volatile.dirty_blocks(), 8);
    volatile.submit(20 * US, request(1, 0, 1, Op::Flush));
    volatile.submit(20 * US, request(2, 800, 8, Op::Read));
    // The program ends 4 + 210 us after the start. The read waits behind the flush.
    assert_eq!(run(&mut volatile), [(1, (214 + 500) * US), (2, (714 + 3 + 1 + 7) * US)]);
    assert_eq!(volatile.dirty_blocks(), 0);
    volatile.submit(1_000 * US, request(3, 0, 8, Op::WriteThrough));
    assert_eq!(run(&mut volatile), [(3, (1_000 + 3 + 1 + 210 + 11) * US)]);
}

#[test]
fn a_read_precedes_the_programs_that_wait_for_its_die() {
    let mut drive = drive(&DriveConfig { buffer_pages: 64, queue_slots: 64, ..small() });
    drive.submit(0, request(0, 0, 8, Op::Write));
    run(&mut drive);
    // Eight programs on each die.
    drive.submit(10_000 * US, request(1, 1_024, 256, Op::Write));
    run(&mut drive);
    let now_ps = 10_100 * US;
    drive.submit(now_ps, request(2, 0, 8, Op::Read));
    let ended_ps = run(&mut drive)[0].1;
    assert!(ended_ps < now_ps + (3 + 210 + 60 + 10 + 1 + 7) * US, "{ended_ps}");
    drive.advance(20_000 * US);
    assert_eq!(drive.dirty_blocks(), 0);
}

#[test]
fn commands_beyond_the_queue_slots_wait() {
    let mut drive = drive(&DriveConfig { queue_slots: 1, ..small() });
    (0..3).for_each(|id| drive.submit(0, request(id, 0, 8, Op::Read)));
    assert_eq!(drive.waiting(), 2);
    assert_eq!(run(&mut drive), [(0, 11 * US), (1, 22 * US), (2, 33 * US)]);
}

#[test]
fn presets_have_the_measured_times_and_rates() {
    // Read and write at depth 1 in us, reads at depth 32, steady writes, write amplification.
    let measured = [
        ("pm883", 120.0, 40.0, Some(98e3), 25e3, Some(7.3)),
        ("pm9a3", 80.0, 30.0, None, 130e3, Some(4.9)),
        ("870-evo", 77.0, 40.0, Some(98e3), 12e3, None),
    ];
    for (name, read_us, write_us, reads, writes, amplification) in measured {
        let config = preset::find(name, 2_048 * MIB).expect("the preset exists");
        let pages = config.blocks() / 8;
        let mut random = Xoshiro256PlusPlus::seed_from_u64(4);
        let mut fresh = drive(&config);
        fresh.submit(0, request(0, 0, 8, Op::Write));
        near(run(&mut fresh)[0].1 as f64 / US as f64, write_us, 0.01);
        let mut worn = drive(&config);
        worn.precondition(3, &mut random);
        worn.submit(0, request(0, 0, 8, Op::Read));
        near(run(&mut worn)[0].1 as f64 / US as f64, read_us, 0.01);
        let found = rate(&mut worn.clone(), 32, 50_000, || (random.random_range(0..pages), Op::Read));
        println!("{name}: {found:.0} reads/s at depth 32");
        reads.into_iter().for_each(|reads| near(found, reads, 0.02));
        let first = rate(&mut fresh, 32, 100_000, || (random.random_range(0..pages), Op::Write));
        let found = rate(&mut worn, 32, 300_000, || (random.random_range(0..pages), Op::Write));
        let stats = worn.stats();
        println!(
            "{name}: {first:.0} writes/s fresh, {found:.0} preconditioned, write amplification {:.2}, {} collections",
            stats.write_amplification(),
            stats.flash.erases
        );
        near(found, writes, 0.05);
        amplification.into_iter().for_each(|expected| near(stats.write_amplification(), expected, 0.04));
        assert!(first > 2.0 * found, "{name}: {first} {found}");
        let dies = config.flash.geometry.channels * config.flash.geometry.dies;
        let elapsed_ps = (270_000.0 / found * 1e12) as u64;
        assert!(stats.utilisation(dies, elapsed_ps) > 0.9, "{name}: the dies decide");
    }
}

#[test]
fn fresh_and_preconditioned_drives_differ_by_their_garbage_collection() {
    // Neither controller nor host interface limit the rate.
    let config = DriveConfig {
        command_ps: US / 10,
        link_bytes_per_second: 6_500_000_000,
        queue_slots: 1_024,
        ..preset::pm883(256 * MIB)
    };
    let mut random = Xoshiro256PlusPlus::seed_from_u64(8);
    let pages = config.blocks() / 8;
    let mut fresh = drive(&config);
    let mut worn = fresh.clone();
    worn.precondition(2, &mut random);
    assert_eq!(worn.ftl().mapped_pages(), pages);
    assert_eq!(fresh.ftl().mapped_pages(), 0, "the clone has a map of its own");
    let first = rate(&mut fresh, 256, 50_000, || (random.random_range(0..pages), Op::Write));
    let timing = config.flash.timing;
    // 32 dies, each with the transfer (10.24 us) and the program of one page. The buffer of 4,096
    // pages is full after the first tenth.
    near(first, 32.0 / ((timing.program_ps as f64 + 10.24e6) / 1e12), 0.03);
    assert_eq!(fresh.stats().flash.copied_pages, 0);
    rate(&mut worn, 256, 50_000, || (random.random_range(0..pages), Op::Write));
    let stats = worn.stats();
    assert!(stats.flash.copied_pages > 0 && stats.collection_ps > stats.program_ps, "{stats:?}");
    assert!(stats.wear.0 > 0 && stats.wear.1 >= stats.wear.0, "{stats:?}");
}

#[test]
fn a_warm_drive_allocates_nothing() {
    let config = preset::pm883(128 * MIB);
    let pages = config.blocks() / 8;
    let mut random = Xoshiro256PlusPlus::seed_from_u64(3);
    let mut drive = drive(&config);
    drive.precondition(2, &mut random);
    let mut next = move || {
        let op = if random.random_bool(0.3) { Op::Read } else { Op::Write };
        (random.random_range(0..pages), op)
    };
    rate(&mut drive, 32, 300_000, &mut next);
    let mut now_ps = 0;
    while let Some(at_ps) = drive.next_ps() {
        now_ps = at_ps;
        while drive.pop_ended(at_ps).is_some() {}
    }
    let counted = allocation_counter::measure(|| {
        for id in 0..20_000 {
            let (page, op) = next();
            drive.submit(now_ps, request(id, page * 8, 8, op));
            while let Some(at_ps) = drive.next_ps() {
                now_ps = at_ps;
                while drive.pop_ended(at_ps).is_some() {}
            }
        }
    });
    assert_eq!(counted.count_total, 0);
}

#[test]
fn parameters_that_contradict_each_other_are_rejected() {
    let new = |config: DriveConfig| Drive::new(&config).map(|_| ()).unwrap_err();
    assert_eq!(new(DriveConfig { queue_slots: 0, ..small() }), DriveError::Zero);
    let with = |geometry| DriveConfig { flash: FlashSettings { geometry, ..small().flash }, ..small() };
    let geometry = small().flash.geometry;
    assert_eq!(new(with(FlashGeometry { page_bytes: 1_000, ..geometry })), DriveError::Page(1_000));
    let error = new(with(FlashGeometry { blocks: 1 << 24, ..geometry }));
    assert_eq!(error, DriveError::Memory { pages: 1 << 29 });
    assert!(error.to_string().contains("choose a smaller capacity"), "{error}");
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 100, failure_persistence: None, ..ProptestConfig::default() })]

    /// Requests of all kinds and sizes, and TRIM, with and without buffer and protection: each
    /// request ends once and in time order, and exactly the written and not trimmed pages are
    /// valid.
    #[test]
    fn every_request_ends_once_and_valid_pages_are_the_written_ones(
        seed in any::<u64>(), buffer_pages in 0..9_u32, queue_slots in 1..9_u32, is_protected: bool,
    ) {
        let mut random = Xoshiro256PlusPlus::seed_from_u64(seed);
        let config = DriveConfig { buffer_pages, queue_slots, has_power_loss_protection: is_protected, ..small() };
        let mut drive = drive(&config);
        let blocks = config.blocks();
        let mut written = BTreeSet::new();
        let (mut now_ps, mut ended) = (0, Vec::new());
        for id in 0..400_u64 {
            now_ps += random.random_range(0..300) * US;
            while let Some(at_ps) = drive.next_ps().filter(|at_ps| *at_ps <= now_ps) {
                while let Some(end) = drive.pop_ended(at_ps) {
                    ended.push((end.ended_ps, end.id));
                }
            }
            let count = random.random_range(1..100).min(blocks);
            let lba = random.random_range(0..=blocks - count);
            let op = [Op::Read, Op::Write, Op::Write, Op::WriteThrough, Op::Flush][random.random_range(0..5_usize)];
            if matches!(op, Op::Write | Op::WriteThrough) {
                written.extend(lba / 8..(lba + count).div_ceil(8));
            }
            drive.submit(now_ps, request(id, lba, count, op));
        }
        ended.extend(run(&mut drive).into_iter().map(|(id, at_ps)| (at_ps, id)));
        prop_assert!(ended.is_sorted_by_key(|(at_ps, _)| *at_ps));
        let ids: BTreeSet<u64> = ended.iter().map(|(_, id)| *id).collect();
        prop_assert_eq!((ids.len(), ended.len(), drive.waiting()), (400, 400, 0));
        drive.advance(u64::MAX - 1);
        prop_assert_eq!(drive.dirty_blocks(), 0);
        drive.trim(u64::MAX - 1, 4, 84);
        (1..11).for_each(|page| { written.remove(&page); });
        let mapped = (0..blocks / 8).filter(|page| drive.ftl().physical(*page as u32).is_some());
        prop_assert!(mapped.eq(written.iter().copied()));
        prop_assert_eq!(drive.ftl().valid_pages(), written.len() as u64);
        prop_assert_eq!(drive.ftl().mapped_pages(), written.len() as u64);
    }
}
