//! Controller cache: decisions for single requests.

mod contents;

use sanloom_storage::cache::{
    Action, Controller, DestageOrder, DestageSettings, Extent, Policy, Purpose, ReadAheadSettings, Readiness, Reason,
    Settings, SettingsError, WriteMode,
};

/// 16 lines of 8 sectors of 2 blocks, in front of 1,000 blocks.
const SMALL: Settings = Settings {
    policy: Policy::Lru,
    lines: 16,
    line_blocks: 16,
    sector_blocks: 2,
    volume_blocks: 1_000,
    fills_lines: true,
    write: WriteMode::Back { is_mirrored: false },
    destage: DestageSettings {
        order: DestageOrder::Address,
        high_percent: 50,
        low_percent: 25,
        max_blocks: 64,
        idle_ps: None,
        max_age_ps: None,
    },
    read_ahead: None,
};

fn extent(lba: u64, blocks: u32) -> Extent {
    Extent { lba, blocks }
}

fn controller(settings: Settings) -> Controller {
    Controller::new(settings).expect("the settings are consistent")
}

fn read(cache: &mut Controller, lba: u64, blocks: u32) -> Vec<Action> {
    let mut actions = Vec::new();
    assert_eq!(cache.read(0, extent(lba, blocks), &mut actions).accepted, blocks);
    actions
}

fn write(cache: &mut Controller, now_ps: u64, lba: u64, blocks: u32) -> Vec<Action> {
    let mut actions = Vec::new();
    assert_eq!(cache.write(now_ps, extent(lba, blocks), &mut actions).accepted, blocks);
    actions
}

/// Runs all destages that the rules ask for, each to its end.
fn destage_all(cache: &mut Controller, now_ps: u64) -> Vec<(Extent, Reason)> {
    let mut found = Vec::new();
    while let Some(Action::Destage(extent, reason)) = cache.next_destage(now_ps) {
        cache.destaged(now_ps, extent);
        found.push((extent, reason));
    }
    found
}

#[test]
fn a_miss_fetches_the_line_and_a_second_reader_waits_for_it() {
    let mut cache = controller(SMALL);
    assert_eq!(read(&mut cache, 20, 4), [Action::Fetch(extent(16, 16), Purpose::Demand)]);
    assert_eq!(read(&mut cache, 24, 8), []);
    assert_eq!(cache.readiness(extent(24, 8)), Readiness::Waiting);
    cache.filled(1, extent(16, 16));
    assert_eq!(cache.readiness(extent(24, 8)), Readiness::Ready);
    assert_eq!(read(&mut cache, 16, 16), []);
    let counted = cache.statistics();
    assert_eq!((counted.read_misses, counted.read_waits, counted.read_hits), (4, 8, 16));
}

#[test]
fn a_miss_of_several_lines_is_one_back_end_read() {
    let mut cache = controller(SMALL);
    assert_eq!(read(&mut cache, 8, 40), [Action::Fetch(extent(0, 48), Purpose::Demand)]);
    let mut sectors = controller(Settings { fills_lines: false, ..SMALL });
    assert_eq!(read(&mut sectors, 9, 4), [Action::Fetch(extent(8, 6), Purpose::Demand)]);
}

#[test]
fn a_write_to_a_part_of_a_sector_installs_the_rest() {
    let mut cache = controller(SMALL);
    assert_eq!(write(&mut cache, 0, 32, 4), []);
    assert_eq!(write(&mut cache, 0, 37, 3), [Action::Fetch(extent(36, 2), Purpose::Install)]);
    cache.flush();
    // The sector with the install read in flight is not destaged yet.
    assert_eq!(destage_all(&mut cache, 0), [(extent(32, 4), Reason::Flush), (extent(38, 2), Reason::Flush)]);
    cache.filled(1, extent(36, 2));
    assert_eq!(destage_all(&mut cache, 1), [(extent(36, 2), Reason::Flush)]);
    write(&mut cache, 2, 32, 2);
    assert_eq!(destage_all(&mut cache, 2), [], "the flush has ended");
}

#[test]
fn dirty_neighbours_leave_in_one_write_in_the_order_of_addresses() {
    let mut cache = controller(SMALL);
    for lba in [96, 16, 64, 0, 48, 80] {
        write(&mut cache, 0, lba, 16);
    }
    cache.flush();
    let expected = [extent(0, 32), extent(48, 64)].map(|extent| (extent, Reason::Flush));
    assert_eq!(destage_all(&mut cache, 0), expected);
    assert_eq!(cache.statistics().blocks_per_destage(), 48.0);
}

#[test]
fn destaging_starts_above_the_high_watermark_and_stops_at_the_low_one() {
    let mut cache = controller(SMALL);
    for line in 0..8 {
        write(&mut cache, 0, line * 32, 16);
    }
    assert_eq!(cache.next_destage(0), None, "8 of 16 lines are 50 %");
    write(&mut cache, 0, 8 * 32, 16);
    let found = destage_all(&mut cache, 0);
    assert_eq!(found.len(), 5, "9 lines shrink to 4, which are 25 %");
    assert!(found.iter().all(|(_, reason)| *reason == Reason::Watermark));
}

#[test]
fn the_oldest_line_leaves_first_in_the_order_of_age() {
    let destage = DestageSettings { order: DestageOrder::Age, ..SMALL.destage };
    let mut cache = controller(Settings { destage, ..SMALL });
    for (at, lba) in [160, 32, 96].into_iter().enumerate() {
        write(&mut cache, at as u64, lba, 2);
    }
    write(&mut cache, 9, 160, 2);
    cache.flush();
    let order: Vec<u64> = destage_all(&mut cache, 9).iter().map(|(extent, _)| extent.lba).collect();
    assert_eq!(order, [160, 32, 96]);
    assert_eq!((cache.statistics().coalesced, cache.statistics().coalesced_ratio()), (2, 0.25));
}

#[test]
fn idle_time_and_age_cause_destages() {
    let destage = DestageSettings { idle_ps: Some(100), max_age_ps: Some(250), ..SMALL.destage };
    let mut cache = controller(Settings { destage, ..SMALL });
    write(&mut cache, 0, 64, 2);
    for now_ps in [90, 180, 240] {
        write(&mut cache, now_ps, 128, 2);
    }
    assert_eq!(cache.next_destage(249), None);
    assert_eq!(cache.next_destage_ps(), Some(250));
    assert_eq!(destage_all(&mut cache, 250), [(extent(64, 2), Reason::Age)]);
    assert_eq!(cache.next_destage_ps(), Some(340));
    assert_eq!(destage_all(&mut cache, 340), [(extent(128, 2), Reason::Age)]);
    write(&mut cache, 400, 32, 2);
    assert_eq!(cache.next_destage(499), None);
    assert_eq!(destage_all(&mut cache, 500), [(extent(32, 2), Reason::Idle)]);
}

#[test]
fn a_stream_is_read_ahead_and_a_random_read_is_not() {
    let read_ahead = Some(ReadAheadSettings { streams: 2, trigger: 3, blocks: 64 });
    let mut cache = controller(Settings { read_ahead, fills_lines: false, ..SMALL });
    read(&mut cache, 0, 8);
    read(&mut cache, 500, 8);
    read(&mut cache, 8, 8);
    let third = read(&mut cache, 16, 8);
    assert_eq!(
        third,
        [Action::Fetch(extent(16, 8), Purpose::Demand), Action::Fetch(extent(24, 64), Purpose::ReadAhead)]
    );
    cache.filled(0, extent(16, 8));
    cache.filled(0, extent(24, 64));
    for lba in [24, 32, 40, 48] {
        assert_eq!(read(&mut cache, lba, 8), [], "{lba}");
    }
    assert_eq!(read(&mut cache, 56, 8), [Action::Fetch(extent(88, 40), Purpose::ReadAhead)]);
    let counted = cache.statistics();
    assert_eq!((counted.read_ahead, counted.read_ahead_used, counted.read_hits), (104, 40, 40));
    assert_eq!((counted.read_hit_ratio(), counted.read_ahead_accuracy()), (40.0 / 72.0, 40.0 / 104.0));
}

#[test]
fn loss_of_the_battery_turns_write_back_into_write_through_and_flushes() {
    let mut cache = controller(Settings { write: WriteMode::Back { is_mirrored: true }, ..SMALL });
    assert_eq!(write(&mut cache, 0, 0, 4), [Action::Mirror(extent(0, 4))]);
    assert_eq!(cache.next_destage(0), None);
    cache.set_battery(false);
    assert_eq!(write(&mut cache, 0, 32, 4), [Action::WriteThrough(extent(32, 4))]);
    assert_eq!(destage_all(&mut cache, 0), [(extent(0, 4), Reason::Flush)]);
    cache.set_battery(true);
    assert_eq!(write(&mut cache, 0, 32, 4), [Action::Mirror(extent(32, 4))]);
    cache.set_partner(false);
    assert_eq!(write(&mut cache, 0, 64, 4), [Action::WriteThrough(extent(64, 4))]);
}

#[test]
fn loss_of_power_names_the_dirty_extents() {
    let mut cache = controller(SMALL);
    write(&mut cache, 0, 4, 4);
    write(&mut cache, 0, 34, 2);
    cache.flush();
    assert!(cache.next_destage(0).is_some(), "a destage in flight has not ended");
    let mut lost = Vec::new();
    cache.lose_contents(|extent| lost.push(extent));
    lost.sort();
    assert_eq!(lost, [extent(4, 4), extent(34, 2)]);
    assert_eq!((cache.statistics().dirty, cache.statistics().discarded), (0, 6));
}

#[test]
fn a_failed_controller_loses_the_dirty_blocks_of_its_part_and_no_others() {
    let mut cache = controller(SMALL);
    write(&mut cache, 0, 4, 4);
    write(&mut cache, 0, 34, 2);
    // A destage in flight of the first line has its data.
    cache.flush();
    assert_eq!(cache.next_destage(0), Some(Action::Destage(extent(4, 4), Reason::Flush)));
    assert_eq!(cache.lose_dirty(1, 0, 2), 0);
    assert_eq!(cache.lose_dirty(1, 2, 3), 2);
    assert_eq!((cache.statistics().dirty, cache.statistics().discarded), (4, 2));
    cache.destaged(2, extent(4, 4));
    assert_eq!(cache.statistics().dirty, 0);
    // The lost blocks are read again.
    assert!(!read(&mut cache, 34, 2).is_empty() && read(&mut cache, 4, 4).is_empty());
}

#[test]
fn a_line_stays_until_the_fetch_of_overwritten_data_has_ended() {
    let mut cache = controller(Settings { lines: 1, write: WriteMode::Through { allocates: true }, ..SMALL });
    assert_eq!(read(&mut cache, 0, 16), [Action::Fetch(extent(0, 16), Purpose::Demand)]);
    assert_eq!(write(&mut cache, 0, 0, 16), [Action::WriteThrough(extent(0, 16))]);
    assert_eq!(cache.readiness(extent(0, 16)), Readiness::Ready, "the written data are there");
    let mut actions = Vec::new();
    assert_eq!(cache.read(0, extent(16, 16), &mut actions).accepted, 0);
    cache.filled(1, extent(0, 16));
    assert_eq!(read(&mut cache, 16, 16), [Action::Fetch(extent(16, 16), Purpose::Demand)]);
}

#[test]
fn a_failed_fetch_fails_the_read_until_the_blocks_are_fetched_again_or_written() {
    let mut cache = controller(SMALL);
    read(&mut cache, 0, 4);
    cache.fill_failed(1, extent(0, 16));
    assert_eq!(cache.readiness(extent(0, 4)), Readiness::Failed);
    write(&mut cache, 1, 0, 2);
    assert_eq!(cache.readiness(extent(0, 2)), Readiness::Ready);
    assert_eq!(read(&mut cache, 0, 4), [Action::Fetch(extent(2, 14), Purpose::Demand)]);
    assert_eq!(cache.readiness(extent(0, 4)), Readiness::Waiting);
    cache.filled(2, extent(2, 14));
    assert_eq!(cache.readiness(extent(0, 16)), Readiness::Ready);
}

#[test]
fn a_failed_install_read_loses_the_sector_and_no_other() {
    let mut cache = controller(SMALL);
    write(&mut cache, 0, 37, 3);
    cache.fill_failed(1, extent(36, 2));
    assert_eq!(cache.readiness(extent(36, 2)), Readiness::Failed);
    assert_eq!((cache.statistics().discarded, cache.statistics().dirty), (2, 2));
    cache.flush();
    assert_eq!(destage_all(&mut cache, 1), [(extent(38, 2), Reason::Flush)]);
}

#[test]
#[cfg(debug_assertions)]
#[should_panic(expected = "outside the volume")]
fn a_request_over_the_end_of_the_volume_is_an_error_of_the_caller() {
    controller(SMALL).read(0, extent(996, 8), &mut Vec::new());
}

#[test]
fn the_end_of_an_extent_never_overflows() {
    assert_eq!(extent(u64::MAX - 1, 8).end(), u64::MAX);
}

#[test]
fn unlimited_idle_time_and_age_never_cause_destages() {
    let destage = DestageSettings { idle_ps: Some(u64::MAX), max_age_ps: Some(u64::MAX), ..SMALL.destage };
    let mut cache = controller(Settings { destage, ..SMALL });
    write(&mut cache, 5, 64, 2);
    assert_eq!(cache.next_destage(9), None);
    assert_eq!(cache.next_destage_ps(), Some(u64::MAX));
}

#[test]
fn a_flush_of_a_clean_cache_ends_at_once() {
    let mut cache = controller(SMALL);
    cache.flush();
    write(&mut cache, 0, 0, 2);
    assert_eq!(cache.next_destage(0), None);
    cache.flush();
    let Some(Action::Destage(found, Reason::Flush)) = cache.next_destage(0) else { panic!("nothing is destaged") };
    cache.destaged(1, found);
    write(&mut cache, 1, 0, 2);
    assert_eq!(cache.next_destage(1), None, "the flush ended with the last destage");
}

#[test]
fn loss_of_the_partner_flushes_only_a_mirrored_cache() {
    for (is_mirrored, expected) in [(false, vec![]), (true, vec![(extent(0, 2), Reason::Flush)])] {
        let mut cache = controller(Settings { write: WriteMode::Back { is_mirrored }, ..SMALL });
        write(&mut cache, 0, 0, 2);
        cache.set_partner(false);
        assert_eq!(destage_all(&mut cache, 0), expected);
    }
}

#[test]
fn read_ahead_without_clean_victims_is_repeated_with_the_next_read() {
    let read_ahead = Some(ReadAheadSettings { streams: 2, trigger: 2, blocks: 32 });
    let mut cache = controller(Settings { lines: 3, fills_lines: false, read_ahead, ..SMALL });
    read(&mut cache, 0, 8);
    cache.filled(0, extent(0, 8));
    write(&mut cache, 0, 320, 16);
    write(&mut cache, 0, 352, 16);
    assert_eq!(read(&mut cache, 8, 8), [Action::Fetch(extent(8, 8), Purpose::Demand)]);
    cache.filled(0, extent(8, 8));
    cache.flush();
    destage_all(&mut cache, 0);
    let expected = [Action::Fetch(extent(16, 8), Purpose::Demand), Action::Fetch(extent(24, 32), Purpose::ReadAhead)];
    assert_eq!(read(&mut cache, 16, 8), expected);
}

#[test]
fn a_read_that_stalls_continues_its_stream_and_counts_once() {
    let read_ahead = Some(ReadAheadSettings { streams: 2, trigger: 2, blocks: 32 });
    let mut cache = controller(Settings { lines: 2, read_ahead, ..SMALL });
    assert_eq!(cache.read(0, extent(0, 48), &mut Vec::new()).accepted, 32);
    assert_eq!(cache.read(0, extent(32, 16), &mut Vec::new()).accepted, 0);
    assert_eq!((cache.statistics().read_requests, cache.statistics().stalls), (0, 2));
    cache.filled(1, extent(0, 32));
    assert_eq!(read(&mut cache, 32, 16), [Action::Fetch(extent(32, 16), Purpose::Demand)]);
    assert_eq!((cache.statistics().read_requests, cache.statistics().stalls), (1, 2));
    cache.filled(2, extent(32, 16));
    let expected = [Action::Fetch(extent(48, 16), Purpose::Demand), Action::Fetch(extent(64, 16), Purpose::ReadAhead)];
    assert_eq!(read(&mut cache, 48, 16), expected);
}

#[test]
fn a_cache_behaves_like_a_new_one_after_a_loss_of_power() {
    for policy in Policy::ALL {
        let read_ahead = Some(ReadAheadSettings { streams: 2, trigger: 2, blocks: 32 });
        let settings = Settings { policy, read_ahead, ..SMALL };
        let mut state = 1u64;
        let mut run = |cache: &mut Controller, first: u64| {
            let mut found = Vec::new();
            for at in 0..300 {
                state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
                let lba = if at < 4 { (first + at) * 8 } else { (state >> 40) % 480 };
                let mut actions = Vec::new();
                cache.read(at, extent(lba, 8), &mut actions);
                for action in &actions {
                    if let Action::Fetch(extent, _) = *action {
                        cache.filled(at, extent);
                    }
                }
                found.push(actions);
            }
            state = 9;
            found
        };
        let mut used = controller(settings);
        run(&mut used, 0);
        used.lose_contents(|extent| panic!("{extent:?} is clean"));
        assert_eq!(run(&mut used, 2), run(&mut controller(settings), 2), "{policy:?}");
    }
}

#[test]
fn settings_that_contradict_each_other_are_rejected() {
    let new = |settings| Controller::new(settings).map(|_| ());
    assert_eq!(new(Settings { lines: 0, ..SMALL }), Err(SettingsError::Zero));
    assert_eq!(new(Settings { sector_blocks: 3, ..SMALL }), Err(SettingsError::Sectors));
    assert_eq!(new(Settings { line_blocks: 130, ..SMALL }), Err(SettingsError::Sectors));
    let destage = DestageSettings { low_percent: 60, ..SMALL.destage };
    assert_eq!(new(Settings { destage, ..SMALL }), Err(SettingsError::Watermarks));
    let destage = DestageSettings { max_blocks: 1, ..SMALL.destage };
    assert_eq!(new(Settings { destage, ..SMALL }), Err(SettingsError::Destage));
    for streams in [0, 65_537, usize::MAX] {
        let read_ahead = Some(ReadAheadSettings { streams, trigger: 3, blocks: 64 });
        assert_eq!(new(Settings { read_ahead, ..SMALL }), Err(SettingsError::Streams));
    }
}

#[test]
fn a_warm_cache_allocates_nothing() {
    for order in [DestageOrder::Address, DestageOrder::Age] {
        let destage = DestageSettings { order, ..SMALL.destage };
        let read_ahead = Some(ReadAheadSettings { streams: 4, trigger: 3, blocks: 32 });
        let mut cache = controller(Settings { lines: 200, volume_blocks: 20_000, destage, read_ahead, ..SMALL });
        let mut actions = Vec::with_capacity(64);
        let mut state = 1u64;
        let mut run = || {
            for now_ps in 0..20_000 {
                state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
                let request = extent((state >> 40) % 19_000, 1 + (state >> 33) as u32 % 40);
                actions.clear();
                if state >> 63 == 0 {
                    cache.read(now_ps, request, &mut actions);
                } else {
                    cache.write(now_ps, request, &mut actions);
                }
                actions.extend(cache.next_destage(now_ps));
                for action in &actions {
                    match *action {
                        Action::Fetch(extent, _) => cache.filled(now_ps, extent),
                        Action::Destage(extent, _) => cache.destaged(now_ps, extent),
                        Action::WriteThrough(_) | Action::Mirror(_) => {}
                    }
                }
            }
        };
        run();
        assert_eq!(allocation_counter::measure(run).count_total, 0, "{order:?}");
    }
}

/// Writes to the first blocks of these lines.
fn write_lines(cache: &mut Controller, lines: impl IntoIterator<Item = u64>) {
    for line in lines {
        write(cache, 0, 16 * line, 2);
    }
}

#[test]
fn units_are_destaged_in_turn_each_in_the_order_of_addresses() {
    let mut cache = controller(SMALL);
    cache.set_units([0, 10, 20, 40]);
    write_lines(&mut cache, [21, 3, 9, 0, 11, 25, 23]);
    cache.flush();
    let lines: Vec<u64> = destage_all(&mut cache, 0).iter().map(|(extent, _)| extent.lba / 16).collect();
    assert_eq!(lines, [0, 11, 21, 3, 23, 9, 25]);
}

#[test]
fn a_full_cache_evicts_a_line_that_a_destage_made_clean_before_a_dirty_victim() {
    let mut cache = controller(SMALL);
    write_lines(&mut cache, (0..16).rev());
    // The oldest line is 15; the order of addresses begins at 0.
    let Some(Action::Destage(first, _)) = cache.next_destage(0) else { panic!("nothing is destaged") };
    assert_eq!(first, extent(0, 2));
    cache.destaged(0, first);
    assert_eq!(write(&mut cache, 0, 16 * 30, 2), []);
    assert_eq!(cache.statistics().evictions, 1);
    // Now all lines are dirty, so victims are destaged, the oldest first.
    let mut actions = Vec::new();
    assert_eq!(cache.write(0, extent(16 * 31, 2), &mut actions).accepted, 0);
    assert_eq!(actions[0], Action::Destage(extent(16 * 15, 2), Reason::Demand));
}

#[test]
fn no_victim_is_destaged_while_the_back_end_has_no_room() {
    let mut cache = controller(SMALL);
    write_lines(&mut cache, 0..16);
    cache.set_room(false);
    let mut actions = Vec::new();
    assert_eq!(cache.write(0, extent(16 * 30, 2), &mut actions).accepted, 0);
    assert_eq!(actions, []);
    cache.set_room(true);
    assert_eq!(cache.write(0, extent(16 * 30, 2), &mut actions).accepted, 0);
    assert!(!actions.is_empty());
}
