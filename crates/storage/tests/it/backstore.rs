//! Backstores: cache, RAID groups and disks as one machine.

use proptest::prelude::*;
use rand::{RngExt, SeedableRng};
use rand_xoshiro::Xoshiro256PlusPlus;
use sanloom_storage::backstore::{
    Backstore, BackstoreConfig, BackstoreError, CacheConfig, Command, Outcome, RaidConfig,
};
use sanloom_storage::cache::{
    Controller, DestageOrder, DestageSettings, Extent, MAX_LINES, Policy, ReadAheadSettings, Settings, SettingsError,
    WriteMode,
};
use sanloom_storage::disk::{Disk, Op, Request, preset};
use sanloom_storage::raid::{Condition, Level, SyncLimits};
use std::collections::BTreeMap;

const MS: u64 = 1_000_000_000;

fn idle() -> Disk {
    Disk::new(&preset::c2247a()).expect("the preset is valid")
}

fn raid(level: Level, members: u32) -> RaidConfig {
    RaidConfig { level, members, chunk_blocks: 128, spares: 0, limits: SyncLimits::default() }
}

fn cache(lines: u32, write: WriteMode) -> CacheConfig {
    CacheConfig {
        settings: Settings {
            policy: Policy::Lru,
            lines,
            line_blocks: 64,
            sector_blocks: 8,
            volume_blocks: 0,
            fills_lines: false,
            write,
            destage: DestageSettings {
                order: DestageOrder::Address,
                high_percent: 50,
                low_percent: 25,
                max_blocks: 512,
                idle_ps: None,
                max_age_ps: None,
            },
            read_ahead: None,
        },
        mirror_latency_ps: MS / 10,
        mirror_bytes_per_s: 0,
        most_destages: 8,
    }
}

fn backstore(raid: Option<RaidConfig>, cache: Option<CacheConfig>, units: &[u64]) -> Backstore {
    Backstore::new(&BackstoreConfig { raid, cache, loops: None }, &idle(), units).expect("the parameters fit")
}

fn command(id: u32, lba: u64, blocks: u32, op: Op) -> Command {
    Command { id, unit: 0, lba, blocks, op }
}

/// Runs until nothing happens any more, or until a time. Returns the ends with their times.
fn run(store: &mut Backstore, now_ps: u64, until_ps: u64) -> Vec<(u64, u32, Outcome)> {
    let mut ended = Vec::new();
    let mut now_ps = now_ps;
    loop {
        let at_ps = store.next_ps().max(now_ps);
        if at_ps > until_ps || at_ps == u64::MAX {
            return ended;
        }
        now_ps = at_ps;
        while let Some(end) = store.pop_ended(now_ps) {
            ended.push((now_ps, end.id, end.outcome));
        }
    }
}

#[test]
fn without_cache_and_raid_a_unit_is_as_fast_as_its_disk() {
    let mut random = Xoshiro256PlusPlus::seed_from_u64(1);
    let mut store = backstore(None, None, &[1_000_000, 1_000_000]);
    let mut disk = idle();
    let mut now_ps = 0;
    let mut expected = Vec::new();
    let mut got = Vec::new();
    for id in 0..500 {
        now_ps += random.random_range(0..20 * MS);
        let (lba, blocks) = (random.random_range(0..999_000), random.random_range(1..64));
        let op = if random.random_bool(0.5) { Op::Read } else { Op::Write };
        while let Some(at_ps) = disk.next_ps().filter(|&at_ps| at_ps <= now_ps) {
            expected.extend(disk.pop_ended(at_ps).map(|end| (at_ps, end.id as u32)));
        }
        got.extend(run(&mut store, 0, now_ps).into_iter().map(|(at_ps, id, _)| (at_ps, id)));
        store.submit(now_ps, Command { unit: 1, ..command(id, lba, blocks, op) });
        disk.submit(now_ps, Request { id: id.into(), lbn: lba, blocks: blocks.into(), op });
    }
    while let Some(at_ps) = disk.next_ps() {
        expected.extend(disk.pop_ended(at_ps).map(|end| (at_ps, end.id as u32)));
    }
    got.extend(run(&mut store, now_ps, u64::MAX).into_iter().map(|(at_ps, id, _)| (at_ps, id)));
    got.sort_unstable();
    expected.sort_unstable();
    assert_eq!(got, expected);
    assert_eq!(store.commands(), 0);
}

#[test]
fn a_small_write_reads_old_data_and_parity_before_it_writes_both() {
    let mut store = backstore(Some(raid(Level::RAID5, 5)), None, &[1_000_000]);
    store.submit(0, command(1, 0, 8, Op::Write));
    let ended = run(&mut store, 0, u64::MAX);
    assert!(matches!(ended[..], [(_, 1, Outcome::Good)]), "{ended:?}");
    let stats = *store.groups().next().expect("a group").stats;
    assert_eq!((stats.read_modify_writes, stats.disk_reads, stats.disk_writes), (1, 2, 2));
    // The write waits at least a turn of the disk (11.1 ms) after the read of the same blocks.
    assert!(ended[0].0 > 11 * MS, "{ended:?}");
    store.submit(ended[0].0, command(2, 0, 512, Op::Write));
    run(&mut store, ended[0].0, u64::MAX);
    let stats = *store.groups().next().expect("a group").stats;
    assert_eq!((stats.full_stripes, stats.disk_reads, stats.disk_writes), (1, 2, 7));
}

#[test]
fn writes_of_one_stripe_follow_each_other_and_others_do_not_wait_for_them() {
    let mut store = backstore(Some(raid(Level::RAID5, 5)), None, &[1_000_000]);
    // Three writes of stripe 0, and a read and a write of others.
    for (id, lba, op) in
        [(0, 0, Op::Write), (1, 8, Op::Write), (2, 128, Op::Write), (3, 1_024, Op::Write), (4, 512, Op::Read)]
    {
        store.submit(0, command(id, lba, 8, op));
    }
    let ended = run(&mut store, 0, u64::MAX);
    let order: Vec<u32> = ended.iter().map(|(_, id, _)| *id).collect();
    let at = |id: u32| order.iter().position(|other| *other == id).expect("each command ends");
    assert!(at(0) < at(1) && at(1) < at(2) && at(4) < at(1) && at(3) < at(2), "{order:?}");
    assert_eq!(store.groups().next().expect("a group").stats.waited, 2);
}

#[test]
fn reads_survive_one_disk_of_raid5_and_fail_after_the_second() {
    let mut store = backstore(Some(raid(Level::RAID5, 5)), None, &[1_000_000]);
    // In flight when the disk fails, and planned anew.
    (0..40).for_each(|id| store.submit(0, command(id, u64::from(id) * 128, 8, Op::Read)));
    run(&mut store, 0, 5 * MS);
    store.fail_disk(5 * MS, 0, 2);
    let ended = run(&mut store, 5 * MS, u64::MAX);
    assert!(ended.iter().all(|(_, _, outcome)| *outcome == Outcome::Good), "{ended:?}");
    let group = store.groups().next().expect("a group");
    assert_eq!(group.condition, Condition::Degraded { members: 1 });
    assert!(group.stats.repeated > 0 && group.stats.degraded > 0, "{:?}", group.stats);
    let now_ps = ended.last().expect("commands ended").0;
    store.fail_disk(now_ps, 0, 3);
    (0..40).for_each(|id| store.submit(now_ps, command(id, u64::from(id) * 128, 8, Op::Read)));
    let ended = run(&mut store, now_ps, u64::MAX);
    let lost = ended.iter().filter(|(_, _, outcome)| *outcome == Outcome::Lost).count();
    // Of the 40 chunks, each stripe of 4 chunks has lost those on disks 2 and 3.
    assert!((12..=20).contains(&lost), "{lost} of {}", ended.len());
}

#[test]
fn a_rebuild_onto_a_spare_ends_at_the_rate_of_its_limit_and_makes_the_group_whole() {
    let rate = 1_000;
    let limits = SyncLimits { minimum: 100, maximum: rate, window_chunks: 4 };
    let config = RaidConfig { spares: 1, limits, ..raid(Level::RAID5, 4) };
    let mut store = backstore(Some(config), None, &[1_000_000]);
    store.fail_disk(0, 0, 1);
    assert_eq!(store.groups().next().expect("a group").condition, Condition::Degraded { members: 1 });
    run(&mut store, 0, 10_000 * MS);
    let group = store.groups().next().expect("a group");
    let part = group.rebuilt.expect("the rebuild runs");
    let blocks = idle().mechanism().geometry.blocks() as f64;
    assert!((part * blocks - 10.0 * rate as f64).abs() <= 512.0, "{part}");
    run(&mut store, 0, u64::MAX);
    let group = store.groups().next().expect("a group");
    assert_eq!((group.condition, group.spares, group.rebuilt), (Condition::Optimal, 0, None));
    // The last chunk that is not whole is not used.
    assert_eq!(group.stats.rebuilt_blocks, blocks as u64 / 128 * 128);
}

#[test]
fn hosts_keep_their_share_while_a_rebuild_runs_at_its_minimum() {
    let iops = |rebuild_blocks_per_s: Option<u64>| {
        let minimum = rebuild_blocks_per_s.unwrap_or(0);
        let limits = SyncLimits { minimum, maximum: 400_000, window_chunks: 1 };
        let spares = u32::from(rebuild_blocks_per_s.is_some());
        let mut store = backstore(Some(RaidConfig { spares, limits, ..raid(Level::RAID5, 5) }), None, &[1_000_000]);
        store.fail_disk(0, 0, 1);
        let mut random = Xoshiro256PlusPlus::seed_from_u64(2);
        let mut read = |id| command(id, random.random_range(0..124_000) * 8, 8, Op::Read);
        (0..8).for_each(|id| store.submit(0, read(id)));
        let (mut now_ps, mut count) = (0, 0);
        while now_ps < 60_000 * MS {
            now_ps = store.next_ps().max(now_ps);
            while let Some(end) = store.pop_ended(now_ps) {
                count += 1;
                store.submit(now_ps, read(end.id));
            }
        }
        (f64::from(count) / 60.0, store.groups().next().expect("a group").stats.rebuilt_blocks as f64 / 60.0)
    };
    let (alone, _) = iops(None);
    let (slow, slow_rate) = iops(Some(150));
    let (fast, fast_rate) = iops(Some(600));
    assert!(alone > slow && slow > fast, "{alone} {slow} {fast}");
    assert!(
        (slow_rate / 150.0 - 1.0).abs() < 0.03 && (fast_rate / 600.0 - 1.0).abs() < 0.03,
        "{slow_rate} {fast_rate}"
    );
    assert!(slow > 0.85 * alone, "{slow} of {alone}");
}

#[test]
fn a_write_into_a_mirrored_cache_takes_the_copy_and_overwrites_need_one_disk_write() {
    let write = WriteMode::Back { is_mirrored: true };
    let mut store = backstore(None, Some(cache(64, write)), &[1_000_000]);
    for id in 0..10 {
        store.submit(u64::from(id) * MS, command(id, 0, 8, Op::Write));
        assert_eq!(
            run(&mut store, 0, u64::from(id) * MS + MS / 2),
            [(u64::from(id) * MS + MS / 10, id, Outcome::Good)]
        );
    }
    store.set_battery(20 * MS, false);
    run(&mut store, 20 * MS, u64::MAX);
    let cache = store.cache().expect("a cache");
    assert_eq!((cache.coalesced, cache.destaged, cache.dirty), (72, 8, 0));
    let disk_writes: u64 = store.disks().map(|(_, _, disk)| disk.stats().medium_writes.requests).sum();
    assert_eq!(disk_writes, 1);
    // Without battery, a write waits for the disk, and a flush has nothing to wait for.
    store.submit(900 * MS, command(20, 4_096, 8, Op::Write));
    let ended = run(&mut store, 900 * MS, u64::MAX);
    assert!(ended[0].0 > 901 * MS, "{ended:?}");
}

#[test]
fn a_flush_without_battery_waits_until_nothing_is_dirty() {
    let write = WriteMode::Back { is_mirrored: false };
    let mut store = backstore(None, Some(cache(64, write)), &[1_000_000]);
    (0..8).for_each(|id| store.submit(0, command(id, u64::from(id) * 10_000, 8, Op::Write)));
    store.submit(0, command(8, 0, 1, Op::Flush));
    assert!(run(&mut store, 0, 0).iter().all(|(at_ps, _, outcome)| *at_ps == 0 && *outcome == Outcome::Good));
    store.set_battery(0, false);
    store.submit(0, command(9, 0, 1, Op::Flush));
    let ended = run(&mut store, 0, u64::MAX);
    assert!(matches!(ended[..], [(at_ps, 9, Outcome::Good)] if at_ps > 10 * MS), "{ended:?}");
    assert_eq!(store.cache().expect("a cache").dirty, 0);
}

#[test]
fn a_flush_that_waits_ends_when_the_battery_is_charged_again() {
    let write = WriteMode::Back { is_mirrored: false };
    let mut store = backstore(None, Some(cache(64, write)), &[1_000_000]);
    store.set_battery(0, false);
    (0..8).for_each(|id| store.submit(0, command(id, u64::from(id) * 10_000, 8, Op::Write)));
    store.set_battery(0, true);
    (8..16).for_each(|id| store.submit(MS, command(id, u64::from(id) * 10_000, 8, Op::Write)));
    store.set_battery(MS, false);
    store.submit(MS, command(16, 0, 1, Op::Flush));
    assert!(run(&mut store, MS, MS).iter().all(|(_, id, _)| *id != 16));
    store.set_battery(2 * MS, true);
    assert!(run(&mut store, 2 * MS, 2 * MS).iter().any(|(_, id, outcome)| *id == 16 && *outcome == Outcome::Good));
    run(&mut store, 2 * MS, u64::MAX);
    assert_eq!(store.commands(), 0);
}

#[test]
fn more_writes_than_the_cache_holds_wait_for_destages_and_all_of_them_end() {
    let write = WriteMode::Back { is_mirrored: false };
    let mut store = backstore(Some(raid(Level::RAID5, 5)), Some(cache(16, write)), &[1_000_000]);
    (0..200).for_each(|id| store.submit(0, command(id, u64::from(id * 7_919 % 1_000) * 64, 64, Op::Write)));
    let ended = run(&mut store, 0, u64::MAX);
    assert_eq!(ended.len(), 200);
    assert!(ended.iter().filter(|(at_ps, ..)| *at_ps > 0).count() > 150);
    assert!(store.cache().expect("a cache").stalls > 0);
}

#[test]
fn dirty_blocks_of_a_group_that_has_failed_are_lost_and_counted() {
    let write = WriteMode::Back { is_mirrored: false };
    let mut store = backstore(Some(raid(Level::RAID0, 2)), Some(cache(64, write)), &[1_000_000]);
    (0..4).for_each(|id| store.submit(0, command(id, u64::from(id) * 128, 8, Op::Write)));
    assert_eq!(run(&mut store, 0, 0).len(), 4);
    store.fail_disk(0, 0, 0);
    store.set_battery(0, false);
    run(&mut store, 0, u64::MAX);
    assert_eq!((store.lost_dirty_blocks(), store.cache().expect("a cache").dirty), (16, 0));
    store.submit(MS, command(4, 100_096, 8, Op::Read));
    store.submit(MS, command(5, 100_224, 8, Op::Read));
    let outcomes: BTreeMap<u32, Outcome> =
        run(&mut store, MS, u64::MAX).into_iter().map(|(_, id, outcome)| (id, outcome)).collect();
    assert_eq!(outcomes.values().filter(|outcome| **outcome == Outcome::Lost).count(), 1, "{outcomes:?}");
}

#[test]
fn read_ahead_past_the_end_of_a_unit_that_ends_inside_a_line_does_not_hang() {
    let mut config = cache(1, WriteMode::Back { is_mirrored: false });
    config.settings.read_ahead = Some(ReadAheadSettings { streams: 4, trigger: 2, blocks: 8 });
    // The first unit ends in the first sector of a line of 64 blocks.
    let mut store = backstore(None, Some(config), &[966, 1_000]);
    let mut now_ps = 0;
    for pass in 0..3 {
        for id in 0..966_u32 {
            store.submit(now_ps, command(id, id.into(), 1, Op::Read));
            let ended = run(&mut store, now_ps, u64::MAX);
            assert!(matches!(ended[..], [(_, _, Outcome::Good)]), "pass {pass}, block {id}: {ended:?}");
            now_ps = ended[0].0;
        }
    }
    assert!(store.cache().expect("a cache").read_ahead > 0);
}

#[test]
fn a_unit_larger_than_its_group_is_rejected() {
    let blocks = idle().mechanism().geometry.blocks();
    let config = BackstoreConfig { raid: Some(raid(Level::raid1(2), 2)), cache: None, loops: None };
    assert!(matches!(Backstore::new(&config, &idle(), &[blocks + 1]), Err(BackstoreError::Size { .. })));
    assert!(Backstore::new(&config, &idle(), &[blocks / 128 * 128]).is_ok());
}

#[test]
fn a_cache_too_large_for_the_memory_is_rejected_with_its_size_and_the_limit() {
    let with = |lines| BackstoreConfig {
        raid: None,
        cache: Some(cache(lines, WriteMode::Through { allocates: true })),
        loops: None,
    };
    for config in [with(MAX_LINES + 1), with(u32::MAX)] {
        let error = Backstore::new(&config, &idle(), &[1_000_000]).expect_err("too large");
        assert_eq!(config.check(idle().mechanism().geometry.blocks()), Err(error.clone()));
        assert!(matches!(error, BackstoreError::Cache(SettingsError::Lines { .. })), "{error}");
        let text = error.to_string();
        assert!(text.contains("more than 4194304 lines; choose a smaller cache or larger lines"), "{text}");
    }
    let counted = allocation_counter::measure(|| {
        assert!(Backstore::new(&with(MAX_LINES), &idle(), &[1_000_000]).is_ok());
    });
    assert!(counted.bytes_max < 256 << 20, "the largest cache takes memory as it fills: {counted:?}");
}

#[test]
fn a_line_in_use_needs_at_most_the_documented_memory() {
    for policy in [Policy::Lru, Policy::Arc, Policy::TwoQ, Policy::S3Fifo] {
        let mut config = cache(1 << 15, WriteMode::Back { is_mirrored: false });
        config.settings.policy = policy;
        let settings = Settings { volume_blocks: u64::MAX, ..config.settings };
        let counted = allocation_counter::measure(|| {
            let mut cache = Controller::new(settings).expect("the settings are consistent");
            let mut actions = Vec::new();
            for line in 0..200_000_u64 {
                actions.clear();
                cache.read(line, Extent { lba: line * 64, blocks: 64 }, &mut actions);
                cache.filled(line, Extent { lba: line * 64, blocks: 64 });
            }
        });
        let bytes = counted.bytes_max >> 15;
        println!("{policy:?}: {bytes} bytes per line");
        assert!(bytes <= 384, "{policy:?}: {bytes} bytes per line");
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 60, failure_persistence: None, ..ProptestConfig::default() })]

    /// Levels, caches, disks that fail and are replaced, and battery changes at random: each
    /// command ends once, nothing stays behind, and no request fails while the level tolerates the
    /// failed disks.
    #[test]
    fn every_command_ends_once_while_disks_fail_and_return(
        kind in 0..6_usize, cached in 0..4_u32, spares in 0..2_u32, seed in any::<u64>(), count in 1..200_u32,
    ) {
        let mut random = Xoshiro256PlusPlus::seed_from_u64(seed);
        let (level, members, tolerated) = [
            (Level::RAID0, 3, 0), (Level::raid1(3), 3, 2), (Level::RAID5, 4, 1),
            (Level::RAID6, 5, 2), (Level::RAID10, 5, 1), (Level::RAID4, 3, 1),
        ][kind];
        let mode = [WriteMode::Through { allocates: true }, WriteMode::Back { is_mirrored: true },
            WriteMode::Back { is_mirrored: false }];
        let cache = mode.get(cached as usize).map(|mode| cache(8 + count % 32, *mode));
        let limits = SyncLimits { window_chunks: 64, ..SyncLimits::default() };
        let config = RaidConfig { spares, limits, ..raid(level, members) };
        let units = [200_000, 100_000];
        let mut store = backstore(Some(config), cache, &units);
        let mut failed = [0_u32; 2];
        let mut ended = Vec::new();
        let mut now_ps = 0;
        for id in 0..count {
            now_ps += random.random_range(0..30) * MS / 4;
            let before = run(&mut store, 0, now_ps);
            ended.extend(before.into_iter().map(|(_, id, outcome)| (id, outcome)));
            let unit = random.random_range(0..2_u16);
            let blocks = random.random_range(1..700);
            let lba = random.random_range(0..units[usize::from(unit)] - u64::from(blocks));
            let op = [Op::Read, Op::Read, Op::Write, Op::Write, Op::WriteThrough, Op::Flush][random.random_range(0..6_usize)];
            store.submit(now_ps, Command { unit, ..command(id, lba, blocks, op) });
            match random.random_range(0..40) {
                0 if failed[usize::from(unit)] < tolerated => {
                    failed[usize::from(unit)] += 1;
                    store.fail_disk(now_ps, unit, random.random_range(0..members));
                }
                1 => store.add_disk(unit),
                2 => store.set_battery(now_ps, random.random_bool(0.5)),
                _ => {}
            }
        }
        ended.extend(run(&mut store, now_ps, u64::MAX).into_iter().map(|(_, id, outcome)| (id, outcome)));
        ended.sort_by_key(|(id, _)| *id);
        let ids: Vec<u32> = ended.iter().map(|(id, _)| *id).collect();
        prop_assert_eq!(ids, (0..count).collect::<Vec<_>>());
        prop_assert!(ended.iter().all(|(_, outcome)| *outcome == Outcome::Good));
        prop_assert_eq!((store.commands(), store.lost_dirty_blocks()), (0, 0));
    }
}
