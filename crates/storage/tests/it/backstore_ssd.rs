//! Backstores of SSDs: the same as an SSD alone, RAID groups, and preconditioning.

use rand::{RngExt, SeedableRng};
use rand_xoshiro::Xoshiro256PlusPlus;
use sanloom_storage::backstore::{Backstore, BackstoreConfig, Command, Outcome, RaidConfig};
use sanloom_storage::disk::{Op, Request};
use sanloom_storage::flash::{Drive, preset};
use sanloom_storage::raid::{Condition, Level, SyncLimits};

const US: u64 = 1_000_000;
const MIB: u64 = 1 << 20;

fn idle() -> Drive {
    Drive::new(&preset::pm883(64 * MIB)).expect("the preset is valid")
}

fn raid5(spares: u32) -> BackstoreConfig {
    let limits = SyncLimits { window_chunks: 16, ..SyncLimits::default() };
    let raid = RaidConfig { level: Level::RAID5, members: 4, chunk_blocks: 128, spares, limits };
    BackstoreConfig { raid: Some(raid), cache: None, loops: None }
}

/// Runs until nothing happens any more. Returns the ends with their times.
fn run(store: &mut Backstore) -> Vec<(u64, u32, Outcome)> {
    let mut ended = Vec::new();
    loop {
        let now_ps = store.next_ps();
        if now_ps == u64::MAX {
            return ended;
        }
        while let Some(end) = store.pop_ended(now_ps) {
            ended.push((now_ps, end.id, end.outcome));
        }
    }
}

#[test]
fn without_raid_a_unit_is_as_fast_as_its_ssd() {
    let mut random = Xoshiro256PlusPlus::seed_from_u64(1);
    let mut store = Backstore::new(&BackstoreConfig::default(), &idle(), &[100_000, 100_000]).expect("fits");
    let mut drive = idle();
    let mut now_ps = 0;
    for id in 0..500 {
        now_ps += random.random_range(0..60) * US;
        let (lba, blocks) = (random.random_range(0..99_000), random.random_range(1..64));
        let op = if random.random_bool(0.5) { Op::Read } else { Op::Write };
        store.submit(now_ps, Command { id, unit: 1, lba, blocks, op });
        drive.submit(now_ps, Request { id: id.into(), lbn: lba, blocks: blocks.into(), op });
    }
    let mut expected = Vec::new();
    while let Some(at_ps) = drive.next_ps() {
        while let Some(end) = drive.pop_ended(at_ps) {
            expected.push((end.ended_ps, end.id as u32, Outcome::Good));
        }
    }
    let mut got = run(&mut store);
    got.sort_unstable_by_key(|(at_ps, id, _)| (*at_ps, *id));
    // Requests that ended before the last arrival are reported at it.
    expected.iter_mut().for_each(|end| end.0 = end.0.max(now_ps));
    got.iter_mut().for_each(|end| end.0 = end.0.max(now_ps));
    expected.sort_unstable_by_key(|(at_ps, id, _)| (*at_ps, *id));
    got.sort_unstable_by_key(|(at_ps, id, _)| (*at_ps, *id));
    assert_eq!(got, expected);
    assert_eq!((store.ssds().count(), store.disks().count(), store.commands()), (2, 0, 0));
    assert_eq!(store.ssds().next().expect("an SSD").2.stats().writes.requests, 0);
}

#[test]
fn a_small_write_of_raid5_on_ssds_is_two_reads_and_two_buffered_writes() {
    let mut prototype = idle();
    prototype.precondition(1, &mut Xoshiro256PlusPlus::seed_from_u64(5));
    let mut store = Backstore::new(&raid5(0), &prototype, &[300_000]).expect("fits");
    store.submit(0, Command { id: 1, unit: 0, lba: 0, blocks: 8, op: Op::Write });
    let ended = run(&mut store);
    // 120 us for the reads and 40 us for the writes, at the same time on both SSDs.
    assert!(matches!(ended[..], [(at_ps, 1, Outcome::Good)] if at_ps.abs_diff(160 * US) < 2 * US), "{ended:?}");
    let stats: Vec<_> = store.ssds().map(|(_, _, ssd)| ssd.stats()).collect();
    assert_eq!(stats.iter().map(|stats| stats.flash_reads).sum::<u64>(), 2);
    assert_eq!(stats.iter().map(|stats| stats.flash.host_pages).sum::<u64>(), 2);
    assert!(stats.iter().all(|stats| stats.wear.1 > 0), "all SSDs are preconditioned");
}

#[test]
fn an_ssd_that_fails_is_rebuilt_onto_a_spare() {
    let mut store = Backstore::new(&raid5(1), &idle(), &[300_000]).expect("fits");
    store.submit(0, Command { id: 1, unit: 0, lba: 0, blocks: 384, op: Op::Write });
    store.fail_disk(0, 0, 1);
    assert_eq!(store.groups().next().expect("a group").condition, Condition::Degraded { members: 1 });
    let ended = run(&mut store);
    assert!(matches!(ended[..], [(_, 1, Outcome::Good)]), "{ended:?}");
    let group = store.groups().next().expect("a group");
    assert_eq!((group.condition, group.spares), (Condition::Optimal, 0));
    let blocks = store.ssds().next().expect("an SSD").2.config().blocks();
    assert_eq!(group.stats.rebuilt_blocks, blocks / 128 * 128);
}

#[test]
fn a_warm_group_of_ssds_allocates_only_for_a_queue_longer_than_any_before() {
    let mut random = Xoshiro256PlusPlus::seed_from_u64(9);
    let mut prototype = idle();
    prototype.precondition(1, &mut random);
    let mut store = Backstore::new(&raid5(0), &prototype, &[300_000]).expect("fits");
    let mut now_ps = 0;
    let mut requests = |store: &mut Backstore, count: u32| {
        for id in 0..count {
            let op = if random.random_bool(0.5) { Op::Read } else { Op::Write };
            store.submit(now_ps, Command { id, unit: 0, lba: random.random_range(0..37_000) * 8, blocks: 8, op });
            while store.commands() > 7 {
                now_ps = store.next_ps().max(now_ps);
                while store.pop_ended(now_ps).is_some() {}
            }
        }
    };
    requests(&mut store, 60_000);
    // 10,000 requests are about 40,000 of SSDs. An allocation for one of them would be counted so
    // often.
    let counted = allocation_counter::measure(|| requests(&mut store, 10_000));
    assert!(counted.count_total < 10, "{counted:?}");
}
