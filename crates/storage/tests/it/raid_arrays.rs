//! Arrays: rebuild with limits, second failures, repair, scrub and the write hole.

use crate::raid_layouts::levels;
use proptest::prelude::*;
use sanloom_storage::raid::{
    Array, Condition, Consistency, Geometry, Level, Member, MemberIo, ParityLayout, Pass, Phase, Plan, Recovery,
    SyncLimits, WriteTracker,
};

const SECOND: u64 = 1_000_000_000_000;

/// Members of 1,000 chunks of 128 blocks.
fn array(level: Level, members: u32, spares: u32, limits: SyncLimits) -> Array {
    let geometry = Geometry::new(level, members, 128, 128_000).expect("the geometry is valid");
    Array::new(geometry, spares, limits)
}

/// Rebuilds up to a number of steps, each of which takes no time. Returns the time of the last end.
fn rebuild(array: &mut Array, is_busy: bool, steps: usize) -> u64 {
    let (mut now_ps, mut ios) = (0, Vec::new());
    for _ in 0..steps {
        let Some(next_ps) = array.next_rebuild_ps(is_busy) else { break };
        now_ps = now_ps.max(next_ps);
        ios.clear();
        let step = array.start_rebuild(now_ps, is_busy, &mut ios).expect("the time has come");
        array.end_rebuild(step, true);
    }
    now_ps
}

#[test]
fn an_idle_rebuild_takes_the_bytes_over_the_limit() {
    let limits = SyncLimits { minimum: 2_000, maximum: 64_000, window_chunks: 4 };
    for (is_busy, expected) in [(false, 128_000.0 / 64_000.0), (true, 128_000.0 / 2_000.0)] {
        let mut array = array(Level::RAID5, 4, 1, limits);
        assert_eq!(array.fail(2), Condition::Degraded { members: 1 });
        let seconds = rebuild(&mut array, is_busy, usize::MAX) as f64 / SECOND as f64;
        assert!((seconds / expected - 1.0).abs() < 0.02, "{seconds} s, not {expected} s");
        assert_eq!(array.condition(), Condition::Optimal);
        assert_eq!(array.spares(), 0);
    }
}

#[test]
fn a_rebuild_step_reads_the_survivors_and_writes_the_new_member() {
    let mut array = array(Level::RAID5, 4, 1, SyncLimits { window_chunks: 4, ..SyncLimits::default() });
    array.fail(2);
    let mut ios = Vec::new();
    let step = array.start_rebuild(0, false, &mut ios).expect("a member is in rebuild");
    assert_eq!((step.chunk, step.chunks), (0, 4));
    let found: Vec<(Phase, u32, u64, u32)> = ios.iter().map(|io| (io.phase, io.member, io.lba, io.blocks)).collect();
    let read = |member| (Phase::Read, member, 0, 512);
    assert_eq!(found, [read(0), read(1), read(3), (Phase::Write, 2, 0, 512)]);
    assert_eq!(array.start_rebuild(SECOND, false, &mut ios), None, "one step at a time");
}

#[test]
fn rebuilt_chunks_are_read_from_the_new_member() {
    let mut array = array(Level::RAID5, 4, 1, SyncLimits::default());
    array.fail(0);
    rebuild(&mut array, false, 10);
    assert_eq!(array.members()[0], Member::Rebuilding { chunks: 10 });
    let mut plan = Plan::new();
    // Chunk 0 of the array is on member 0. Chunk 48 is there too, in row 16.
    for (lba, reads) in [(0, 1), (48 * 128, 3)] {
        plan.read(array.geometry(), array.members(), lba, 8, |_, _| 0);
        assert_eq!(plan.ios.len(), reads, "{lba}");
    }
}

#[test]
fn a_second_failure_loses_only_the_part_that_is_not_rebuilt() {
    let mut array = array(Level::RAID5, 4, 1, SyncLimits::default());
    array.fail(0);
    rebuild(&mut array, false, 600);
    // Rows 600 to 999 have two missing chunks; half of the rows' chunks are data of one of them.
    let Condition::Failed { blocks } = array.fail(1) else { panic!("data are lost") };
    let mut found = Vec::new();
    array.lost(|lba, blocks| found.push((lba, blocks)));
    assert_eq!(found.iter().map(|range| range.1).sum::<u64>(), blocks);
    assert_eq!(found[0].0 / (3 * 128), 600, "the first lost stripe");
    // In four rows of left-symmetric, members 0 and 1 hold six data chunks.
    assert_eq!(blocks, 400 / 4 * 6 * 128);
}

#[test]
fn a_rebuild_without_sources_has_no_next_time() {
    let mut array = array(Level::RAID5, 4, 1, SyncLimits::default());
    array.fail(0);
    assert_eq!(array.next_rebuild_ps(false), Some(0));
    array.fail(1);
    assert_eq!(array.next_rebuild_ps(false), None);
    assert_eq!(array.start_rebuild(SECOND, false, &mut Vec::new()), None);
}

#[test]
fn a_rebuild_skips_a_chunk_whose_source_is_unreadable_and_reports_the_loss() {
    let mut array = array(Level::RAID5, 4, 1, SyncLimits { window_chunks: 4, ..SyncLimits::default() });
    array.add_media_error(0, 130);
    array.fail(2);
    let mut ios = Vec::new();
    let step = array.start_rebuild(0, false, &mut ios).expect("a member is in rebuild");
    assert_eq!((step.chunks, step.lost_chunks), (4, 1));
    for member in 0..4 {
        let chunks: Vec<(u64, u32)> =
            ios.iter().filter(|io| io.member == member).map(|io| (io.lba, io.blocks)).collect();
        assert_eq!(chunks, [(0, 128), (256, 256)], "chunk 1 is not touched");
    }
    assert_eq!(array.media_error(2, 0, 512), None, "the step has not ended");
    array.end_rebuild(step, true);
    assert_eq!(array.media_error(2, 0, 512), Some(128));
    assert_eq!(array.media_error(2, 255, 1), Some(255));
    assert_eq!(array.media_error(2, 256, 256), None);
    // The other blocks of the chunk can be computed later, when the member is whole.
    rebuild(&mut array, false, usize::MAX);
    assert_eq!(array.condition(), Condition::Optimal);
    assert!(array.repair(2, 129, 1, &mut ios));
    assert!(!array.repair(2, 130, 1, &mut ios));
}

#[test]
fn a_rebuild_reads_around_media_errors_if_redundancy_is_left() {
    for (level, members) in [(Level::RAID6, 6), (Level::raid1(3), 3)] {
        let mut array = array(level, members, 1, SyncLimits::default());
        array.add_media_error(0, 5);
        array.fail(1);
        let mut ios = Vec::new();
        let step = array.start_rebuild(0, false, &mut ios).expect("a member is in rebuild");
        assert_eq!(step.lost_chunks, 0);
        assert!(ios.iter().all(|io| io.member != 0), "{ios:?}");
        assert_eq!(ios.iter().filter(|io| io.phase == Phase::Write).count(), 1);
    }
}

#[test]
fn a_window_of_any_size_is_cut_to_what_one_io_can_hold() {
    let chunk_blocks = 1 << 20;
    let geometry = Geometry::new(Level::RAID5, 4, chunk_blocks, 1 << 33).expect("the geometry is valid");
    let limits = SyncLimits { window_chunks: u64::MAX, ..SyncLimits::default() };
    let mut array = Array::new(geometry, 1, limits);
    let mut ios = Vec::new();
    array.scrub(Pass::Check);
    let scrub = array.start_scrub(0, false, &mut ios).expect("a scrub starts");
    array.fail(0);
    let first = array.start_rebuild(0, false, &mut ios).expect("a member is in rebuild");
    array.end_rebuild(first, true);
    let second = array.start_rebuild(u64::MAX, false, &mut ios).expect("a member is in rebuild");
    assert_eq!([scrub.chunks, first.chunks, second.chunks], [4_095; 3]);
    assert_eq!(second.chunk, 4_095);
    assert!(ios.iter().all(|io| io.blocks == 4_095 * chunk_blocks));
}

#[test]
fn background_ios_carry_the_parity_stripe_or_the_chunk_of_the_mirror() {
    let raid50 = Level::Parity { layout: ParityLayout::LeftSymmetric, has_q: false, groups: 2 };
    // Row 5 of the second group of RAID 50 is stripe 11. The near copies of RAID 10 on members 2
    // and 3 hold chunk 11 in row 5.
    for (level, members, target) in [(raid50, 6, 4), (Level::RAID10, 4, 2)] {
        let mut array = array(level, members, 1, SyncLimits::default());
        let mut ios = Vec::new();
        assert!(array.repair(target, 5 * 128 + 3, 1, &mut ios));
        array.fail(target);
        rebuild(&mut array, false, 5);
        array.start_rebuild(SECOND, false, &mut ios).expect("a member is in rebuild");
        assert!(ios.iter().all(|io| io.lba / 128 == 5 && io.stripe == 11), "{level:?}: {ios:?}");
        assert_eq!(ios.iter().filter(|io| io.phase == Phase::Write).count(), 2);
    }
}

#[test]
fn raid_6_survives_two_failures_and_rebuilds_both_members_together() {
    let mut array = array(Level::RAID6, 6, 0, SyncLimits::default());
    array.fail(0);
    assert_eq!(array.fail(3), Condition::Degraded { members: 2 });
    array.add_spare();
    array.add_spare();
    let mut ios = Vec::new();
    array.start_rebuild(0, false, &mut ios).expect("members are in rebuild");
    assert_eq!(ios.iter().filter(|io| io.phase == Phase::Write).count(), 2);
    assert_eq!(ios.iter().filter(|io| io.phase == Phase::Read).count(), 4);
    assert!(matches!(array.fail(1), Condition::Failed { .. }), "three members are lost");
}

#[test]
fn a_step_that_a_failure_abandons_has_no_effect() {
    let mut array = array(Level::RAID6, 6, 2, SyncLimits::default());
    array.fail(0);
    let step = array.start_rebuild(0, false, &mut Vec::new()).expect("a member is in rebuild");
    array.fail(0);
    assert_eq!(array.members()[0], Member::Rebuilding { chunks: 0 });
    array.end_rebuild(step, true);
    assert_eq!(array.members()[0], Member::Rebuilding { chunks: 0 });
}

#[test]
fn a_media_error_is_repaired_from_the_other_members_if_they_suffice() {
    let mut array = array(Level::RAID5, 4, 0, SyncLimits::default());
    let mut ios = Vec::new();
    assert!(array.repair(1, 300, 8, &mut ios));
    let found: Vec<(Phase, u32, u64, u32)> = ios.iter().map(|io| (io.phase, io.member, io.lba, io.blocks)).collect();
    let read = |member| (Phase::Read, member, 300, 8);
    assert_eq!(found, [read(0), read(2), read(3), (Phase::Write, 1, 300, 8)]);
    array.fail(0);
    ios.clear();
    assert!(!array.repair(1, 300, 8, &mut ios), "no redundancy is left");
    assert!(!array.repair(0, 300, 8, &mut ios), "the member is missing");
    assert_eq!(ios, []);
}

#[test]
fn a_check_counts_mismatches_and_a_repair_writes_parity_anew() {
    let mut array = array(Level::RAID5, 4, 0, SyncLimits { window_chunks: 100, ..SyncLimits::default() });
    array.set_inconsistent(5);
    array.set_inconsistent(700);
    let mut run = |pass| {
        let (mut reads, mut writes, mut now_ps) = (Vec::new(), Vec::new(), 0);
        array.scrub(pass);
        while let Some(step) = array.start_scrub(now_ps, false, &mut reads) {
            array.end_scrub(step, &mut writes);
            now_ps += SECOND;
        }
        let read: u64 = reads.iter().map(|io: &MemberIo| u64::from(io.blocks)).sum();
        (read, writes.iter().map(|io| (io.member, io.lba)).collect::<Vec<_>>(), array.mismatches())
    };
    assert_eq!(run(Pass::Check), (4 * 128_000, vec![], 2));
    // P of stripe 5 is on member 2, that of stripe 700 on member 3.
    assert_eq!(run(Pass::Repair), (4 * 128_000, vec![(2, 5 * 128), (3, 700 * 128)], 2));
    assert_eq!(run(Pass::Check).2, 0);
}

#[test]
fn a_repair_keeps_stripes_whose_redundancy_or_sources_are_not_there() {
    // P of stripe 5 is on member 2. A missing target, a missing source, two unreadable sources.
    let none: &[u32] = &[];
    let cases = [
        (Level::RAID5, 4, None, none, true),
        (Level::RAID5, 4, Some(2), none, false),
        (Level::RAID5, 4, Some(0), none, false),
        (Level::RAID5, 4, None, &[0, 1], false),
        (Level::raid1(2), 2, Some(0), none, false),
        (Level::raid1(2), 2, Some(1), none, false),
    ];
    for (level, members, missing, unreadable, is_repaired) in cases {
        let mut array = array(level, members, 0, SyncLimits { window_chunks: 1_000, ..SyncLimits::default() });
        array.set_inconsistent(5);
        unreadable.iter().for_each(|member| array.add_media_error(*member, 5 * 128));
        if let Some(member) = missing {
            array.fail(member);
        }
        let mut ios = Vec::new();
        array.scrub(Pass::Repair);
        let step = array.start_scrub(0, false, &mut Vec::new()).expect("a scrub starts");
        array.end_scrub(step, &mut ios);
        assert_eq!(array.inconsistent().is_empty(), is_repaired, "{level:?} {missing:?} {unreadable:?}");
        assert_eq!(ios.len(), usize::from(is_repaired));
    }
}

#[test]
fn a_scrub_repairs_latent_errors_where_redundancy_is_left() {
    let limits = SyncLimits { window_chunks: 100, ..SyncLimits::default() };
    for (missing, left) in [(None, None), (Some(0), Some(300))] {
        let mut array = array(Level::RAID5, 4, 0, limits);
        array.add_media_error(1, 300);
        array.add_media_error(2, 9_000);
        array.add_media_error(2, 127_000);
        array.clear_media_errors(2, 126_990, 16);
        if let Some(member) = missing {
            array.fail(member);
        }
        assert_eq!(array.media_error(1, 290, 10), None);
        assert_eq!(array.media_error(1, 290, 11), Some(300));
        let (mut now_ps, mut ios) = (0, Vec::new());
        array.scrub(Pass::Check);
        while let Some(step) = array.start_scrub(now_ps, false, &mut Vec::new()) {
            array.end_scrub(step, &mut ios);
            now_ps += SECOND;
        }
        let written: Vec<(u32, u64)> =
            ios.iter().filter(|io| io.phase == Phase::Write).map(|io| (io.member, io.lba)).collect();
        assert_eq!(written, if missing.is_none() { vec![(1, 300), (2, 9_000)] } else { vec![] });
        assert_eq!(array.media_error(1, 0, 128_000), left);
    }
}

#[test]
fn two_latent_errors_in_one_row_need_two_parities() {
    for (level, members, is_repaired) in [(Level::RAID5, 4, false), (Level::RAID6, 5, true)] {
        let mut array = array(level, members, 0, SyncLimits::default());
        array.add_media_error(1, 40);
        array.add_media_error(2, 40);
        let mut ios = Vec::new();
        assert_eq!(array.repair(1, 40, 1, &mut ios), is_repaired, "{level:?}");
        assert!(ios.iter().all(|io| io.member != 2));
    }
}

/// Crashes while one small write and one full stripe are in flight.
fn crash(consistency: Consistency, is_degraded: bool) -> (u64, Recovery, usize) {
    let mut array = array(Level::RAID5, 4, 0, SyncLimits::default());
    if is_degraded {
        array.fail(3);
    }
    let mut tracker = WriteTracker::new(consistency);
    let mut plan = Plan::new();
    plan.write(array.geometry(), array.members(), 0, 8);
    let mut logged = tracker.begin(&plan);
    plan.write(array.geometry(), array.members(), 3 * 128 * 500, 3 * 128);
    logged += tracker.begin(&plan);
    plan.write(array.geometry(), array.members(), 3 * 128 * 900, 8);
    tracker.begin(&plan);
    tracker.end(&plan);
    assert_eq!(tracker.in_flight(), 2);
    let recovery = tracker.crash(&mut array);
    (logged, recovery, array.inconsistent().len())
}

#[test]
fn a_crash_leaves_the_work_and_the_damage_of_its_protection() {
    let recovery = |resync_stripes, damaged_stripes, can_start| Recovery { resync_stripes, damaged_stripes, can_start };
    let bitmap = Consistency::Bitmap { region_stripes: 64 };
    assert_eq!(crash(Consistency::None, false), (0, recovery(1_000, 0, true), 2));
    assert_eq!(crash(bitmap, false), (0, recovery(128, 0, true), 2));
    // Data 8 blocks, parity 8 blocks and a header; then 4 chunks and a header.
    assert_eq!(crash(Consistency::Journal, false), (24 + 520, recovery(0, 0, true), 0));
    assert_eq!(crash(Consistency::PartialParityLog, false), (16 + 8, recovery(2, 0, true), 0));
    // Dirty and degraded. The missing member holds P of both stripes, so data are safe.
    assert_eq!(crash(Consistency::None, true).1, recovery(1_000, 0, false));
    assert_eq!(crash(bitmap, true).1, recovery(128, 0, false));
    assert!(crash(Consistency::Journal, true).1.can_start);
    assert!(crash(Consistency::PartialParityLog, true).1.can_start);
}

#[test]
fn a_crash_damages_a_stripe_only_if_an_untouched_chunk_is_missing_and_parity_is_written() {
    // Left-symmetric stripes 0 and 1 of four members: 0 1 2 P, 4 5 P 3; of five with Q: Q 0 1 2 P.
    let none: &[u32] = &[];
    let cases = [
        (Level::RAID5, 4, none, 0, 8, 0),
        (Level::RAID5, 4, &[3], 0, 8, 0),
        (Level::RAID5, 4, &[0], 0, 8, 0),
        (Level::RAID5, 4, &[1], 0, 8, 1),
        (Level::RAID5, 4, &[1], 0, 3 * 128, 0),
        (Level::RAID5, 4, &[1], 0, 3 * 128 + 8, 1),
        (Level::RAID6, 5, &[2, 4], 0, 8, 1),
        (Level::RAID6, 5, &[0, 4], 0, 8, 0),
    ];
    for (level, members, missing, lba, blocks, damaged) in cases {
        let mut array = array(level, members, 0, SyncLimits::default());
        for member in missing {
            array.fail(*member);
        }
        let (mut tracker, mut plan) = (WriteTracker::new(Consistency::None), Plan::new());
        plan.write(array.geometry(), array.members(), lba, blocks);
        tracker.begin(&plan);
        let recovery = tracker.crash(&mut array);
        assert_eq!(recovery.damaged_stripes, damaged, "{level:?} without {missing:?}, {blocks} blocks");
        assert_eq!(recovery.can_start, missing.is_empty());
    }
}

#[test]
fn a_stripe_is_at_risk_only_while_the_write_that_endangers_it_is_in_flight() {
    let mut array = array(Level::RAID5, 4, 0, SyncLimits::default());
    array.fail(1);
    let (mut tracker, mut small, mut full) = (WriteTracker::new(Consistency::None), Plan::new(), Plan::new());
    small.write(array.geometry(), array.members(), 0, 8);
    full.write(array.geometry(), array.members(), 0, 3 * 128);
    tracker.begin(&small);
    tracker.begin(&full);
    assert_eq!(tracker.clone().crash(&mut array).damaged_stripes, 1);
    tracker.end(&small);
    assert_eq!(tracker.in_flight(), 1);
    assert_eq!(tracker.crash(&mut array).damaged_stripes, 0);
}

#[test]
fn a_write_to_a_mirror_is_in_flight_in_each_of_its_chunks() {
    for (level, members) in [(Level::raid1(2), 2), (Level::RAID10, 5)] {
        let mut array = array(level, members, 0, SyncLimits::default());
        let (mut tracker, mut plan) = (WriteTracker::new(Consistency::None), Plan::new());
        plan.read(array.geometry(), array.members(), 0, 1_024, |_, _| 0);
        tracker.begin(&plan);
        assert_eq!(tracker.in_flight(), 0, "reads leave no trace");
        plan.write(array.geometry(), array.members(), 0, 1_024);
        tracker.begin(&plan);
        assert_eq!(tracker.in_flight(), 8);
        tracker.end(&plan);
        assert_eq!(tracker.in_flight(), 0);
        plan.write(array.geometry(), array.members(), 127, 130);
        tracker.begin(&plan);
        tracker.crash(&mut array);
        assert_eq!(array.inconsistent(), [0, 1, 2]);
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]

    #[test]
    fn rebuild_reads_valid_chunks_only_and_lost_ranges_equal_those_of_plans(
        (level, members) in levels(),
        window_chunks in 1u64..4,
        steps in prop::collection::vec((0u8..8, any::<u8>()), 1..60),
    ) {
        let geometry = Geometry::new(level, members, 4, 4 * 10).expect("the geometry is valid");
        let mut array = Array::new(geometry, 1, SyncLimits { window_chunks, ..SyncLimits::default() });
        let (mut plan, mut ios, mut now_ps) = (Plan::new(), Vec::new(), 0);
        for (kind, pick) in steps {
            now_ps += SECOND;
            match kind {
                0 => {
                    array.fail(u32::from(pick) % members);
                }
                1 => {
                    array.add_spare();
                }
                _ => {
                    ios.clear();
                    let states = array.members().to_vec();
                    let next_ps = array.next_rebuild_ps(false);
                    let step = array.start_rebuild(now_ps, false, &mut ios);
                    prop_assert_eq!(step.is_some(), next_ps.is_some_and(|next_ps| next_ps <= now_ps));
                    for io in &ios {
                        for lba in io.lba..io.lba + u64::from(io.blocks) {
                            let is_valid = states[io.member as usize].is_usable(lba / 4);
                            prop_assert_eq!(is_valid, io.phase == Phase::Read, "{:?}", io);
                        }
                    }
                    if let Some(step) = step {
                        array.end_rebuild(step, pick % 4 != 0);
                    }
                }
            }
            plan.read(&geometry, array.members(), 0, geometry.blocks() as u32, |_, _| 0);
            let blocks = plan.lost.iter().flat_map(|p| p.array_lba..p.array_lba + u64::from(p.blocks));
            let mut planned: Vec<u64> = blocks.collect();
            planned.sort_unstable();
            let mut found = Vec::new();
            array.lost(|lba, blocks| found.extend(lba..lba + blocks));
            prop_assert_eq!(&found, &planned);
            let is_failed = matches!(array.condition(), Condition::Failed { .. });
            prop_assert_eq!(is_failed, !planned.is_empty());
        }
    }
}
