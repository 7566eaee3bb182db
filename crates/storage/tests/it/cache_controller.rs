//! Controller cache: decisions for single requests, and random runs against a store with contents.

use proptest::prelude::*;
use sanloom_storage::cache::{
    Action, Controller, DestageOrder, DestageSettings, Extent, Policy, Purpose, ReadAheadSettings, Reason, Settings,
    SettingsError, WriteMode,
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
    assert!(!cache.is_ready(extent(24, 8)));
    cache.filled(1, extent(16, 16));
    assert!(cache.is_ready(extent(24, 8)));
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
    assert_eq!(cache.statistics().coalesced, 2);
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
fn settings_that_contradict_each_other_are_rejected() {
    let new = |settings| Controller::new(settings).map(|_| ());
    assert_eq!(new(Settings { lines: 0, ..SMALL }), Err(SettingsError::Zero));
    assert_eq!(new(Settings { sector_blocks: 3, ..SMALL }), Err(SettingsError::Sectors));
    assert_eq!(new(Settings { line_blocks: 130, ..SMALL }), Err(SettingsError::Sectors));
    let destage = DestageSettings { low_percent: 60, ..SMALL.destage };
    assert_eq!(new(Settings { destage, ..SMALL }), Err(SettingsError::Watermarks));
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

/// A cache between a host and a store, with the number of the last write as content of a block.
struct Run {
    cache: Controller,
    /// Content that the host expects.
    truth: Vec<u32>,
    /// Content of the back end.
    store: Vec<u32>,
    /// Content of the cache memory, valid where the controller claims so.
    memory: Vec<u32>,
    in_flight: Vec<Action>,
    actions: Vec<Action>,
    now_ps: u64,
}

impl Run {
    /// Applies returned actions to the contents, in order. Overlapping actions stay in order, so
    /// the contents may change when an action starts.
    fn start_actions(&mut self, written: Option<Extent>) {
        for action in std::mem::take(&mut self.actions) {
            match action {
                Action::Fetch(extent, _) => {
                    for block in extent.lba as usize..extent.end() as usize {
                        let is_new = written.is_some_and(|w| w.lba as usize <= block && block < w.end() as usize);
                        if !is_new {
                            self.memory[block] = self.store[block];
                        }
                    }
                }
                Action::Destage(extent, _) => {
                    let range = extent.lba as usize..extent.end() as usize;
                    self.store[range.clone()].copy_from_slice(&self.memory[range]);
                }
                Action::WriteThrough(extent) => {
                    let range = extent.lba as usize..extent.end() as usize;
                    self.store[range.clone()].copy_from_slice(&self.truth[range]);
                    continue;
                }
                Action::Mirror(_) => continue,
            }
            self.in_flight.push(action);
        }
    }

    fn end(&mut self, at: usize, fails: bool) {
        match self.in_flight.remove(at) {
            Action::Fetch(extent, _) => self.cache.filled(self.now_ps, extent),
            Action::Destage(extent, _) if fails => self.cache.destage_failed(self.now_ps, extent),
            Action::Destage(extent, _) => self.cache.destaged(self.now_ps, extent),
            Action::WriteThrough(_) | Action::Mirror(_) => {}
        }
        self.check_sums();
    }

    /// Repeats a request until all of it is accepted. Actions end when it stalls.
    fn request(&mut self, mut extent: Extent, version: Option<u32>) {
        for _ in 0..1_000 {
            let accepted = match version {
                None => self.cache.read(self.now_ps, extent, &mut self.actions).accepted,
                Some(_) => self.cache.write(self.now_ps, extent, &mut self.actions).accepted,
            };
            let done = Extent { blocks: accepted, ..extent };
            let range = done.lba as usize..done.end() as usize;
            if let Some(version) = version {
                self.truth[range.clone()].fill(version);
                self.memory[range.clone()].fill(version);
            }
            self.start_actions(version.map(|_| done));
            if version.is_none() {
                assert_eq!(self.memory[range.clone()], self.truth[range], "read of {done:?}");
            }
            self.check_sums();
            if accepted == extent.blocks {
                return;
            }
            extent = Extent { lba: done.end(), blocks: extent.blocks - accepted };
            if !self.in_flight.is_empty() {
                self.end(0, false);
            }
        }
        panic!("{extent:?} is never accepted");
    }

    fn check_sums(&self) {
        let counted = self.cache.statistics();
        assert_eq!(counted.read, counted.read_hits + counted.read_waits + counted.read_misses);
        assert_eq!(
            counted.dirtied,
            counted.destaged + counted.coalesced + counted.discarded + counted.dirty,
            "{counted:?}"
        );
    }
}

fn settings() -> impl Strategy<Value = Settings> {
    let write = prop_oneof![
        any::<bool>().prop_map(|allocates| WriteMode::Through { allocates }),
        any::<bool>().prop_map(|is_mirrored| WriteMode::Back { is_mirrored }),
        Just(WriteMode::Back { is_mirrored: false }),
    ];
    let order = prop_oneof![Just(DestageOrder::Address), Just(DestageOrder::Age)];
    let read_ahead = proptest::option::of((1usize..3, 2u32..4, 4u32..40));
    (
        (proptest::sample::select(Policy::ALL.to_vec()), 2u32..12, 1u32..5, 1u32..4, 100u64..140, any::<bool>()),
        (write, order, read_ahead, 0u8..=100, 0u8..=100, 1u32..30),
    )
        .prop_map(|((policy, lines, sectors, sector_blocks, volume_blocks, fills_lines), rules)| {
            let (write, order, read_ahead, one, other, max_blocks) = rules;
            Settings {
                policy,
                lines,
                line_blocks: sectors * sector_blocks,
                sector_blocks,
                volume_blocks,
                fills_lines,
                write,
                destage: DestageSettings {
                    order,
                    high_percent: one.max(other),
                    low_percent: one.min(other),
                    max_blocks,
                    idle_ps: Some(5),
                    max_age_ps: Some(20),
                },
                read_ahead: read_ahead.map(|(streams, trigger, blocks)| ReadAheadSettings { streams, trigger, blocks }),
            }
        })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]

    #[test]
    fn every_read_returns_the_last_write_and_a_flush_brings_all_of_it_to_the_back_end(
        settings in settings(),
        steps in prop::collection::vec((0u8..12, 0u64..100, 1u32..12, any::<bool>()), 1..200),
    ) {
        let blocks = settings.volume_blocks as usize;
        let mut run = Run {
            cache: controller(settings),
            truth: vec![0; blocks],
            store: vec![0; blocks],
            memory: vec![u32::MAX; blocks],
            in_flight: Vec::new(),
            actions: Vec::new(),
            now_ps: 0,
        };
        let mut next = 0;
        for (version, (kind, lba, count, fails)) in steps.into_iter().enumerate() {
            run.now_ps += 1;
            let extent = Extent { lba, blocks: count.min((settings.volume_blocks - lba) as u32) };
            match kind {
                0..3 => run.request(extent, None),
                3..5 if next + 4 <= blocks as u64 => {
                    run.request(Extent { lba: next, blocks: 4 }, None);
                    next += 4;
                }
                5..8 => run.request(extent, Some(version as u32 + 1)),
                8 | 9 if !run.in_flight.is_empty() => run.end(lba as usize % run.in_flight.len(), fails),
                10 => run.cache.set_battery(fails),
                _ => {
                    run.actions.extend(run.cache.next_destage(run.now_ps));
                    run.start_actions(None);
                }
            }
        }
        for _ in 0..1_000 {
            if run.cache.statistics().dirty == 0 && run.in_flight.is_empty() {
                break;
            }
            run.cache.flush();
            run.actions.extend(run.cache.next_destage(run.now_ps));
            run.start_actions(None);
            if !run.in_flight.is_empty() {
                run.end(0, false);
            }
        }
        prop_assert_eq!(run.cache.statistics().dirty, 0);
        prop_assert_eq!(&run.store, &run.truth);
    }
}
