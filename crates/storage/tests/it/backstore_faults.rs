//! Latent sector errors, scrubs, power failures and the write hole of a backstore.

use proptest::prelude::*;
use rand::{RngExt, SeedableRng};
use rand_xoshiro::Xoshiro256PlusPlus;
use sanloom_storage::backstore::{
    Backstore, BackstoreConfig, BackstoreError, CacheConfig, Command, Device, GroupView, LoopConfig, Outcome,
    PowerLoss, RaidConfig,
};
use sanloom_storage::cache::{DestageOrder, DestageSettings, Policy, Settings, WriteMode};
use sanloom_storage::disk::{Disk, Op, Request, preset as disk_preset};
use sanloom_storage::flash::{Drive, preset};
use sanloom_storage::raid::{Condition, Consistency, Level, Pass, SyncLimits};
use std::collections::BTreeSet;

const US: u64 = 1_000_000;
const S: u64 = 1_000_000_000_000;
const CHUNK: u64 = 128;

fn ssd() -> Drive {
    Drive::new(&preset::pm883(32 << 20)).expect("the preset is valid")
}

fn raid(level: Level, members: u32) -> RaidConfig {
    let limits = SyncLimits { minimum: 2_000, maximum: 400_000, window_chunks: 8 };
    RaidConfig { level, members, chunk_blocks: CHUNK as u32, spares: 0, limits }
}

fn store(raid: RaidConfig) -> Backstore {
    Backstore::new(&BackstoreConfig { raid: Some(raid), cache: None, loops: None }, &ssd(), &[60_000])
        .expect("the parameters fit")
}

fn command(id: u32, lba: u64, blocks: u32, op: Op) -> Command {
    Command { id, unit: 0, lba, blocks, op }
}

fn group(store: &Backstore) -> GroupView<'_> {
    store.groups().next().expect("a group")
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

/// Runs one command, and returns its outcome and its response time.
fn one(store: &mut Backstore, now_ps: u64, lba: u64, blocks: u32, op: Op) -> (Outcome, u64) {
    store.submit(now_ps, command(7, lba, blocks, op));
    let mut at_ps = now_ps;
    loop {
        at_ps = store.next_ps().max(at_ps);
        if let Some(end) = store.pop_ended(at_ps) {
            return (end.outcome, at_ps - now_ps);
        }
    }
}

#[test]
fn a_read_that_meets_a_latent_error_repairs_it_from_redundancy() {
    for (level, members) in
        [(Level::RAID5, 4), (Level::RAID6, 5), (Level::RAID4, 3), (Level::raid1(2), 2), (Level::RAID10, 4)]
    {
        let mut store = store(raid(level, members));
        one(&mut store, 0, 0, 8, Op::Write);
        // Chunk 0 is behind Q in RAID 6.
        store.add_latent_error(0, u32::from(level == Level::RAID6), 3);
        assert_eq!(group(&store).unreadable_blocks, 1);
        let (outcome, slow_ps) = one(&mut store, S, 0, 8, Op::Read);
        let stats = *group(&store).stats;
        assert_eq!((outcome, stats.media_errors, stats.repaired_blocks, stats.repeated), (Outcome::Good, 1, 1, 1));
        assert_eq!(group(&store).unreadable_blocks, 0);
        let (_, fast_ps) = one(&mut store, 2 * S, 0, 8, Op::Read);
        // Read, read of the others, write, and read again.
        assert!(slow_ps > 2 * fast_ps, "{level:?}: {slow_ps} {fast_ps}");
    }
}

#[test]
fn a_latent_error_of_a_degraded_group_loses_the_blocks_that_need_it() {
    let mut store = store(raid(Level::RAID5, 4));
    store.add_latent_error(0, 0, 3);
    store.fail_disk(0, 0, 1);
    // Chunks 0, 1 and 2 are on members 0, 1 and 2. Chunk 1 needs all others.
    let outcomes = [0, 1, 2].map(|chunk| one(&mut store, S * (chunk + 1), chunk * CHUNK, 8, Op::Read).0);
    assert_eq!(outcomes, [Outcome::Lost, Outcome::Lost, Outcome::Good]);
    assert_eq!(one(&mut store, 4 * S, 8, 8, Op::Read).0, Outcome::Good, "other blocks of the chunk");
    assert_eq!(group(&store).stats.lost_requests, 2);
    assert_eq!(one(&mut store, 5 * S, 0, 384, Op::Write).0, Outcome::Good);
    let outcomes = [0, 1, 2].map(|chunk| one(&mut store, S * (chunk + 6), chunk * CHUNK, 8, Op::Read).0);
    assert_eq!(outcomes, [Outcome::Good; 3], "a write makes the block readable");
    assert_eq!(group(&store).unreadable_blocks, 0);
}

#[test]
fn a_latent_error_of_a_disk_without_raid_fails_reads_until_it_is_written() {
    let mut store = Backstore::new(&BackstoreConfig::default(), &ssd(), &[60_000]).expect("fits");
    store.add_latent_error(0, 0, 100);
    assert_eq!(one(&mut store, 0, 96, 8, Op::Read).0, Outcome::Lost);
    assert_eq!(one(&mut store, S, 101, 8, Op::Read).0, Outcome::Good);
    assert_eq!(one(&mut store, 2 * S, 96, 8, Op::Write).0, Outcome::Good);
    assert_eq!(one(&mut store, 3 * S, 96, 8, Op::Read).0, Outcome::Good);
}

#[test]
fn a_rebuild_that_meets_a_latent_error_loses_its_chunk_unless_redundancy_is_left() {
    for (level, members, lost) in [(Level::RAID5, 4, 1), (Level::RAID6, 5, 0)] {
        let mut store = store(RaidConfig { spares: 1, ..raid(level, members) });
        // In stripe 1, where members 0 and 1 hold data in both layouts.
        store.add_latent_error(0, 0, CHUNK + 5);
        store.fail_disk(0, 0, 1);
        run(&mut store, 0, u64::MAX);
        let group = group(&store);
        assert_eq!((group.condition, group.stats.unrebuilt_chunks), (Condition::Optimal, lost), "{level:?}");
        let data = u64::from(members) - if lost == 1 { 1 } else { 2 };
        let now_ps = 1_000 * S;
        let outcomes: Vec<Outcome> = (data..2 * data)
            .map(|chunk| one(&mut store, now_ps + chunk * S, chunk * CHUNK + 5, 1, Op::Read).0)
            .collect();
        let found = outcomes.iter().filter(|outcome| **outcome == Outcome::Lost).count() as u64;
        assert_eq!(found, 2 * lost, "the unreadable block and the one that it should have computed: {outcomes:?}");
        // Other blocks of the skipped chunk are computed by the first read of them, all at once.
        let stats = *self::group(&store).stats;
        let (outcome, _) = one(&mut store, now_ps * 2, (data + 2) * CHUNK + 6, 122, Op::Read);
        let after = *self::group(&store).stats;
        assert_eq!(outcome, Outcome::Good);
        assert_eq!(after.repaired_blocks - stats.repaired_blocks, 122 * lost);
        assert_eq!(after.repeated - stats.repeated, lost);
    }
}

#[test]
fn a_scrub_finds_and_repairs_latent_errors_at_its_rate() {
    let limits = SyncLimits { minimum: 2_000, maximum: 40_000, window_chunks: 4 };
    let mut store = store(RaidConfig { limits, ..raid(Level::RAID5, 4) });
    for at in 0..20_u64 {
        store.add_latent_error(0, (at % 4) as u32, at * 3_000 + at);
    }
    store.start_scrub(0, 0, Pass::Check);
    assert_eq!(group(&store).scrubbed, Some(0.0));
    run(&mut store, 0, S);
    let part = group(&store).scrubbed.expect("the scrub runs");
    let blocks = ssd().config().blocks() as f64;
    assert!((part * blocks / 40_000.0 - 1.0).abs() < 0.02, "{part}");
    run(&mut store, S, u64::MAX);
    let group = group(&store);
    let whole = (blocks as u64 / CHUNK) * CHUNK;
    assert_eq!((group.scrubbed, group.unreadable_blocks, group.stats.repaired_blocks), (None, 0, 20));
    assert_eq!(group.stats.scrubbed_blocks, 4 * whole);
}

#[test]
fn hosts_slow_a_scrub_down_to_its_minimum() {
    let limits = SyncLimits { minimum: 2_000, maximum: 400_000, window_chunks: 1 };
    let mut store = store(RaidConfig { limits, ..raid(Level::RAID5, 4) });
    store.start_scrub(0, 0, Pass::Check);
    for at in 0..200 {
        run(&mut store, 0, at * S / 20);
        assert_eq!(one(&mut store, at * S / 20, at * 512 % 50_000, 8, Op::Read).0, Outcome::Good);
    }
    let rate = group(&store).stats.scrubbed_blocks as f64 / 4.0 / 10.0;
    assert!((rate / 2_000.0 - 1.0).abs() < 0.05, "{rate}");
}

#[test]
fn latent_errors_arrive_at_their_rate_and_depend_on_the_seed_alone() {
    let found = |seed, hours: u64| {
        let mut store = store(raid(Level::RAID6, 5));
        store.set_latent_errors(0, 1e-6, seed).expect("the rate is possible");
        store.start_scrub(hours * 3_600 * S, 0, Pass::Check);
        run(&mut store, hours * 3_600 * S, u64::MAX);
        group(&store).stats.repaired_blocks
    };
    let blocks = ssd().config().blocks() as f64;
    let expected = 1e-6 * 5.0 * blocks * 2_000.0;
    let counts: Vec<u64> = (0..20).map(|seed| found(seed, 2_000)).collect();
    let mean = counts.iter().sum::<u64>() as f64 / 20.0;
    let deviation = (expected / 20.0).sqrt();
    assert!((mean - expected).abs() < 4.0 * deviation, "{mean}, expected {expected} ± {deviation}");
    assert_eq!(found(3, 2_000), counts[3]);
    assert!(counts.iter().collect::<BTreeSet<_>>().len() > 10, "{counts:?}");
    let error = store(raid(Level::RAID5, 4)).set_latent_errors(0, 1e3, 0).unwrap_err();
    assert!(matches!(error, BackstoreError::LatentErrors { .. }), "{error}");
}

/// Small writes of different stripes until the power fails in the middle of them.
fn crash(consistency: Consistency) -> (Backstore, PowerLoss, BTreeSet<u32>) {
    let mut store = store(raid(Level::RAID5, 4));
    store.set_consistency(consistency).expect("RAID 5 has all of them");
    let mut good = BTreeSet::new();
    for id in 0..60 {
        store.submit(u64::from(id) * 20 * US, command(id, u64::from(id) * 3 * CHUNK, 8, Op::Write));
        good.extend(run(&mut store, 0, u64::from(id) * 20 * US).into_iter().map(|(_, id, _)| id));
    }
    let loss = store.power_loss(60 * 20 * US);
    assert!(loss.aborted.len() > 1 && good.len() > 10, "{} of {}", loss.aborted.len(), good.len());
    assert_eq!((store.commands(), loss.aborted.len() + good.len()), (0, 60), "{loss:?}");
    assert!(loss.aborted.iter().all(|id| !good.contains(id)), "{loss:?}");
    (store, loss, good)
}

#[test]
fn a_power_failure_leaves_wrong_blocks_behind_a_disk_that_fails_before_the_resync() {
    let (mut store, loss, good) = crash(Consistency::None);
    let inconsistent = group(&store).inconsistent_stripes;
    // Writes that were still reading have changed nothing.
    assert!((1..=loss.aborted.len() as u64).contains(&inconsistent), "{inconsistent} {loss:?}");
    assert!(loss.groups[0].1.can_start && loss.groups[0].1.resync_stripes > 200, "{loss:?}");
    assert_eq!(store.wrong_blocks(0, None), []);
    let now_ps = 2 * 60 * 20 * US;
    for lba in (0..60).map(|stripe| stripe * 3 * CHUNK) {
        let mut store = store.clone();
        assert_eq!(one(&mut store, now_ps, lba, 384, Op::Read).0, Outcome::Good, "data are not computed");
    }
    let wrong = store.wrong_blocks(0, Some(1));
    assert!(!wrong.is_empty() && wrong.iter().all(|(lba, blocks)| (lba % CHUNK, *blocks) == (0, 8)), "{wrong:?}");
    let written = |lba: u64| good.contains(&((lba / (3 * CHUNK)) as u32));
    assert!(wrong.iter().all(|(lba, _)| !written(*lba)), "stripes whose writes ended are right: {wrong:?}");
    store.fail_disk(now_ps, 0, 1);
    assert_eq!(store.wrong_blocks(0, None), wrong);
    let is_wrong =
        |lba: u64, wrong: &[(u64, u64)]| wrong.iter().any(|range| (range.0..range.0 + range.1).contains(&lba));
    for chunk in 0..200 {
        let expected = if is_wrong(chunk * CHUNK, &wrong) { Outcome::Wrong } else { Outcome::Good };
        let outcome = one(&mut store.clone(), now_ps, chunk * CHUNK, 8, Op::Read).0;
        assert_eq!(outcome, expected, "chunk {chunk}");
    }
    // A rebuild stores the wrong data, and a write replaces them.
    store.add_disk(0);
    run(&mut store, now_ps, u64::MAX);
    assert_eq!((group(&store).condition, group(&store).inconsistent_stripes), (Condition::Optimal, 0));
    assert_eq!(store.wrong_blocks(0, None), wrong);
    let (lba, later_ps) = (wrong[0].0, 10_000 * S);
    assert_eq!(one(&mut store, later_ps, lba, 4, Op::Read).0, Outcome::Wrong);
    assert_eq!(one(&mut store, later_ps + S, lba, 4, Op::Write).0, Outcome::Good);
    assert_eq!(one(&mut store, later_ps + 2 * S, lba, 4, Op::Read).0, Outcome::Good);
    assert_eq!(one(&mut store, later_ps + 3 * S, lba, 5, Op::Read).0, Outcome::Wrong);
    assert_eq!(group(&store).stats.wrong_requests, 2);
}

#[test]
fn a_resync_before_the_next_failure_closes_the_write_hole_and_a_bitmap_shortens_it() {
    let mut work = Vec::new();
    for consistency in [Consistency::None, Consistency::Bitmap { region_stripes: 64 }] {
        let (mut store, loss, _) = crash(consistency);
        let before = group(&store).inconsistent_stripes;
        run(&mut store, 60 * 20 * US, u64::MAX);
        let group = group(&store);
        assert_eq!((group.inconsistent_stripes, group.stats.corrected_stripes, group.scrubbed), (0, before, None));
        assert_eq!(group.stats.scrubbed_blocks, 4 * CHUNK * loss.groups[0].1.resync_stripes);
        work.push(group.stats.scrubbed_blocks);
        assert_eq!(store.wrong_blocks(0, Some(1)), []);
    }
    assert_eq!(work[1], 4 * CHUNK * 64, "60 stripes are in one region");
    assert!(work[0] > 5 * work[1], "{work:?}");
}

#[test]
fn a_log_leaves_no_stripe_inconsistent_and_costs_a_write_before_the_others() {
    let quick = one(&mut store(raid(Level::RAID5, 4)), 0, 0, 8, Op::Write).1;
    for consistency in [Consistency::Journal, Consistency::PartialParityLog] {
        let (mut store, loss, _) = crash(consistency);
        assert_eq!(group(&store).inconsistent_stripes, 0, "{loss:?}");
        assert_eq!((0..4).map(|member| store.wrong_blocks(0, Some(member)).len()).sum::<usize>(), 0);
        store.fail_disk(60 * 20 * US, 0, 1);
        for chunk in 0..180 {
            assert_eq!(one(&mut store.clone(), S, chunk * CHUNK, 8, Op::Read).0, Outcome::Good);
        }
        assert_eq!(store.devices().count(), 4, "a journal is not a member");
        let mut fresh = self::store(raid(Level::RAID5, 4));
        fresh.set_consistency(consistency).expect("RAID 5 has both");
        let logged = one(&mut fresh, 0, 0, 8, Op::Write).1;
        assert!(logged > quick + 30 * US, "{consistency:?}: {logged} {quick}");
        // Header of 8 blocks, and data with parity or the parity of the untouched data.
        let blocks = if consistency == Consistency::Journal { 24 } else { 16 };
        assert_eq!(group(&fresh).stats.log_blocks, blocks);
    }
    let mut mirror = store(raid(Level::raid1(2), 2));
    assert!(matches!(mirror.set_consistency(Consistency::Journal), Err(BackstoreError::Consistency(_))));
    let mut double = store(raid(Level::RAID6, 5));
    assert!(matches!(double.set_consistency(Consistency::PartialParityLog), Err(BackstoreError::Consistency(_))));
}

#[test]
fn a_power_failure_of_a_degraded_group_damages_untouched_data_at_once() {
    let mut store = store(raid(Level::RAID5, 4));
    store.fail_disk(0, 0, 1);
    // Chunk 0 is written while chunk 1 exists only as parity.
    store.submit(0, command(1, 0, 8, Op::Write));
    // The reads take 35 us, and the writes 40 us.
    run(&mut store, 0, 50 * US);
    let loss = store.power_loss(50 * US);
    let recovery = loss.groups[0].1;
    assert_eq!((loss.aborted, recovery.damaged_stripes, recovery.can_start), (vec![1], 1, false));
    assert_eq!(store.wrong_blocks(0, None), [(CHUNK, 8)]);
    assert_eq!(one(&mut store, S, CHUNK + 8, 8, Op::Read).0, Outcome::Good, "other rows agree");
    assert_eq!(one(&mut store, S, CHUNK, 8, Op::Read).0, Outcome::Wrong);
    assert_eq!(one(&mut store, 2 * S, 0, 8, Op::Read).0, Outcome::Good);
}

fn cache(is_mirrored: bool) -> CacheConfig {
    CacheConfig {
        settings: Settings {
            policy: Policy::Lru,
            lines: 64,
            line_blocks: 64,
            sector_blocks: 8,
            volume_blocks: 0,
            fills_lines: false,
            write: WriteMode::Back { is_mirrored },
            destage: DestageSettings {
                order: DestageOrder::Address,
                high_percent: 10,
                low_percent: 5,
                max_blocks: 512,
                idle_ps: None,
                max_age_ps: None,
            },
            read_ahead: None,
        },
        mirror_latency_ps: 5 * US,
        mirror_bytes_per_s: 0,
        most_destages: 8,
    }
}

#[test]
fn a_cache_with_a_battery_repeats_its_destages_after_a_power_failure_and_one_without_loses_dirty_data() {
    for has_battery in [true, false] {
        let config = BackstoreConfig { raid: Some(raid(Level::RAID5, 4)), cache: Some(cache(true)), loops: None };
        let mut store = Backstore::new(&config, &ssd(), &[100_000]).expect("fits");
        (0..40).for_each(|id| store.submit(0, command(id, u64::from(id) * 640, 8, Op::Write)));
        let written = run(&mut store, 0, 100 * US).len();
        store.submit(100 * US, command(90, 50_000, 8, Op::Read));
        store.submit(100 * US, command(91, 60_000, 8, Op::Write));
        let dirty = store.cache().expect("a cache").dirty;
        if !has_battery {
            store.set_battery(100 * US, false);
        }
        let loss = store.power_loss(100 * US);
        assert_eq!((written, store.commands()), (40, 0));
        assert_eq!(loss.aborted, [90, 91]);
        if has_battery {
            assert_eq!((loss.lost_blocks, store.lost_dirty_blocks()), (0, 0));
            store.set_battery(S, false);
        } else {
            assert!(loss.lost_blocks >= dirty - 8 && dirty > 100, "{loss:?} {dirty}");
        }
        let ended = run(&mut store, S, u64::MAX);
        assert_eq!((ended, store.cache().expect("a cache").dirty), (vec![], 0));
        assert_eq!(one(&mut store, 100 * S, 0, 8, Op::Read).0, Outcome::Good);
        assert_eq!(one(&mut store, 101 * S, 0, 8, Op::Write).0, Outcome::Good);
    }
}

#[test]
fn wrong_data_stay_wrong_in_the_cache_until_they_are_written() {
    let config = BackstoreConfig { raid: Some(raid(Level::RAID5, 4)), cache: Some(cache(false)), loops: None };
    let mut store = Backstore::new(&config, &ssd(), &[100_000]).expect("fits");
    store.set_battery(0, false);
    store.fail_disk(0, 0, 1);
    store.submit(0, command(1, 0, 8, Op::Write));
    run(&mut store, 0, 50 * US);
    store.power_loss(50 * US);
    let outcomes = [1, 2].map(|at| one(&mut store, at * S, CHUNK, 8, Op::Read).0);
    assert_eq!(outcomes, [Outcome::Wrong; 2], "from the group, and from the cache");
    assert_eq!(store.cache().expect("a cache").read_hits, 8);
    assert_eq!(one(&mut store, 3 * S, CHUNK, 8, Op::Write).0, Outcome::Good);
    assert_eq!(one(&mut store, 4 * S, CHUNK, 8, Op::Read).0, Outcome::Good);
}

#[test]
fn disks_lose_their_volatile_caches_and_keep_their_sums_in_a_power_failure() {
    let disk = Disk::new(&disk_preset::ultrastar_15k450()).expect("the preset is valid");
    let mut store = Backstore::new(&BackstoreConfig::default(), &disk, &[100_000]).expect("fits");
    (0..20).for_each(|id| store.submit(0, command(id, u64::from(id) * 4_000, 8, Op::Write)));
    let good = run(&mut store, 0, 3_000 * US).len();
    let loss = store.power_loss(3_000 * US);
    assert_eq!(loss.aborted.len() + good, 20);
    assert!(loss.lost_blocks > 0 && loss.lost_blocks <= 8 * good as u64, "{loss:?} {good}");
    let stats = *store.disks().next().expect("a disk").2.stats();
    assert_eq!(stats.cached_writes.requests as usize, good);
    assert_eq!(run(&mut store, S, u64::MAX), []);
}

/// Blocks per second of sequential transfers of a window, one after the other.
fn sequential(disk: &Disk, op: Op, blocks: u64, count: u64) -> f64 {
    let mut disk = disk.clone();
    let mut now_ps = 0;
    for at in 0..count {
        disk.submit(now_ps, Request { id: at, lbn: at * blocks, blocks, op });
        while let Some(at_ps) = disk.next_ps() {
            now_ps = at_ps;
            if disk.pop_ended(at_ps).is_some() {
                break;
            }
        }
    }
    (blocks * count) as f64 / (now_ps as f64 / 1e12)
}

#[test]
fn a_rebuild_of_an_idle_group_reads_the_next_window_while_it_writes_one() {
    for config in [disk_preset::cheetah_9lp(), disk_preset::ultrastar_15k450()] {
        let disk = Disk::new(&config).expect("the preset is valid");
        let window_chunks = 16;
        let limits = SyncLimits { minimum: 2_000, maximum: u64::MAX / 2, window_chunks };
        let raid = RaidConfig { spares: 1, limits, ..raid(Level::RAID5, 4) };
        let mut store =
            Backstore::new(&BackstoreConfig { raid: Some(raid), cache: None, loops: None }, &disk, &[100_000])
                .expect("fits");
        store.fail_disk(0, 0, 1);
        run(&mut store, 0, 30 * S);
        let rate = group(&store).stats.rebuilt_blocks as f64 / 30.0;
        let window = window_chunks * CHUNK;
        let (reads, writes) = (sequential(&disk, Op::Read, window, 500), sequential(&disk, Op::Write, window, 500));
        let bound = reads.min(writes);
        let in_turn = 1.0 / (1.0 / reads + 1.0 / writes);
        println!("{}: {rate:.0} blocks/s, reads {reads:.0}, writes {writes:.0}, in turn {in_turn:.0}", config.name);
        assert!(rate <= 1.02 * bound, "{rate} {bound}");
        assert!(rate >= 0.9 * bound && rate > 1.5 * in_turn, "{rate} {bound} {in_turn}");
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 80, failure_persistence: None, ..ProptestConfig::default() })]

    /// Commands, latent errors, failing disks, scrubs and power failures at random: each command
    /// ends once or is aborted. With a journal, no read returns wrong data. While all disks work,
    /// nothing is lost, and without a power failure, nothing is wrong.
    #[test]
    fn every_command_ends_or_is_aborted_while_power_and_blocks_fail(
        kind in 0..6_usize, protection in 0..4_usize, cached: bool, has_failures: bool, has_crashes: bool,
        seed in any::<u64>(), count in 1..150_u32,
    ) {
        let mut random = Xoshiro256PlusPlus::seed_from_u64(seed);
        let (level, members) = [
            (Level::raid1(3), 3), (Level::RAID5, 4), (Level::RAID6, 5), (Level::RAID10, 5), (Level::RAID4, 3),
            (Level::Parity { layout: sanloom_storage::raid::ParityLayout::LeftSymmetric, has_q: false, groups: 2 }, 6),
        ][kind];
        let consistency = [
            Consistency::None, Consistency::Bitmap { region_stripes: 4 }, Consistency::Journal,
            Consistency::PartialParityLog,
        ][protection];
        let config = BackstoreConfig {
            raid: Some(RaidConfig { spares: 1, ..raid(level, members) }),
            cache: cached.then(|| cache(true)),
            loops: (count % 3 == 0).then_some(LoopConfig { word_ps: 9_412, tenancy_ps: 600_000, devices: 3 }),
        };
        let mut store = Backstore::new(&config, Device::from(&ssd()), &[60_000]).expect("fits");
        let is_protected = store.set_consistency(consistency).is_ok() && protection >= 2;
        let (mut ended, mut aborted, mut failures) = (Vec::new(), Vec::new(), 0);
        let mut now_ps = 0;
        for id in 0..count {
            now_ps += random.random_range(0..400) * US;
            ended.extend(run(&mut store, 0, now_ps).into_iter().map(|(_, id, outcome)| (id, outcome)));
            let blocks = random.random_range(1..700);
            let lba = random.random_range(0..60_000 - u64::from(blocks));
            let op = [Op::Read, Op::Read, Op::Write, Op::Write, Op::WriteThrough, Op::Flush][random.random_range(0..6_usize)];
            store.submit(now_ps, command(id, lba, blocks, op));
            match random.random_range(0..30) {
                0 if has_failures && failures == 0 => {
                    failures += 1;
                    store.fail_disk(now_ps, 0, random.random_range(0..members));
                }
                1 | 2 => store.start_scrub(now_ps, 0, if random.random_bool(0.5) { Pass::Check } else { Pass::Repair }),
                3 | 4 if has_crashes => aborted.extend(store.power_loss(now_ps).aborted),
                5..9 => store.add_latent_error(0, random.random_range(0..members), u64::from(id) * 131),
                9 => store.set_battery(now_ps, random.random_bool(0.5)),
                _ => {}
            }
        }
        ended.extend(run(&mut store, now_ps, u64::MAX).into_iter().map(|(_, id, outcome)| (id, outcome)));
        let mut ids: Vec<u32> = ended.iter().map(|(id, _)| *id).chain(aborted.iter().copied()).collect();
        ids.sort_unstable();
        prop_assert_eq!(ids, (0..count).collect::<Vec<_>>());
        let of = |kind| ended.iter().filter(|(_, outcome)| *outcome == kind).count();
        prop_assert!(failures > 0 || of(Outcome::Lost) == 0);
        prop_assert!((has_crashes && !is_protected) || of(Outcome::Wrong) == 0);
        prop_assert_eq!(store.commands(), 0);
        let group = group(&store);
        prop_assert_eq!((group.rebuilt, group.scrubbed), (None, None));
    }
}
