//! Controller cache: random runs against a store with contents.

use super::{controller, extent};
use proptest::prelude::*;
use sanloom_storage::cache::{
    Action, Controller, DestageOrder, DestageSettings, Extent, Policy, ReadAheadSettings, Readiness, Settings,
    WriteMode,
};

/// Content of a block whose data are not in the cache memory.
const ABSENT: u32 = u32::MAX;

/// Work of the back end that has not ended.
struct InFlight {
    action: Action,
    /// Number of the call that returned the action.
    since: u64,
    /// Content at that time, for writes.
    data: Vec<u32>,
}

impl InFlight {
    fn extent(&self) -> Extent {
        match self.action {
            Action::Fetch(extent, _) | Action::Destage(extent, _) => extent,
            Action::WriteThrough(extent) | Action::Mirror(extent) => extent,
        }
    }

    fn overlaps(&self, other: &InFlight) -> bool {
        self.extent().lba < other.extent().end() && other.extent().lba < self.extent().end()
    }
}

fn range(extent: Extent) -> std::ops::Range<usize> {
    extent.lba as usize..extent.end() as usize
}

/// A cache between a host and a store, with the number of the last write as content of a block.
struct Run {
    cache: Controller,
    /// Content that the host expects.
    truth: Vec<u32>,
    /// Blocks whose last content may be lost, because a fetch for a partly written sector failed.
    is_lost: Vec<bool>,
    /// Number of the call that wrote a block last.
    written: Vec<u64>,
    /// Content of the back end.
    store: Vec<u32>,
    /// Content of the cache memory, valid where the controller claims so.
    memory: Vec<u32>,
    /// Blocks that a host waits for, and the oldest content that it may get.
    waiting: Vec<(u64, u32)>,
    in_flight: Vec<InFlight>,
    actions: Vec<Action>,
    calls: u64,
    now_ps: u64,
}

impl Run {
    fn new(settings: Settings) -> Run {
        let blocks = settings.volume_blocks as usize;
        Run {
            cache: controller(settings),
            truth: vec![0; blocks],
            is_lost: vec![false; blocks],
            written: vec![0; blocks],
            store: vec![0; blocks],
            memory: vec![ABSENT; blocks],
            waiting: Vec::new(),
            in_flight: Vec::new(),
            actions: Vec::new(),
            calls: 0,
            now_ps: 0,
        }
    }

    /// Starts the actions of the last call. Written data leave the memory now.
    fn start_actions(&mut self) {
        for action in std::mem::take(&mut self.actions) {
            let data = match action {
                Action::Fetch(extent, _) => {
                    for block in range(extent).filter(|block| self.written[*block] < self.calls) {
                        self.memory[block] = ABSENT;
                    }
                    Vec::new()
                }
                Action::Destage(extent, _) => self.memory[range(extent)].to_vec(),
                Action::WriteThrough(extent) => self.truth[range(extent)].to_vec(),
                Action::Mirror(_) => continue,
            };
            self.in_flight.push(InFlight { action, since: self.calls, data });
        }
    }

    /// Ends an action, or an earlier one that overlaps with it. Contents change now.
    fn end(&mut self, mut at: usize, fails: bool) {
        while let Some(earlier) = (0..at).find(|&other| self.in_flight[other].overlaps(&self.in_flight[at])) {
            at = earlier;
        }
        let InFlight { action, since, data } = self.in_flight.remove(at);
        let mut failed = None;
        match action {
            Action::Fetch(extent, _) if fails => {
                let discarded = self.cache.statistics().discarded;
                self.cache.fill_failed(self.now_ps, extent);
                if self.cache.statistics().discarded > discarded {
                    for block in range(extent).filter(|block| self.written[*block] >= since) {
                        self.is_lost[block] = true;
                    }
                }
                failed = Some(extent);
            }
            Action::Fetch(extent, _) => {
                for block in range(extent).filter(|block| self.written[*block] < since) {
                    self.memory[block] = self.store[block];
                }
                self.cache.filled(self.now_ps, extent);
            }
            Action::Destage(extent, _) if fails => self.cache.destage_failed(self.now_ps, extent),
            Action::Destage(extent, _) => {
                self.store[range(extent)].copy_from_slice(&data);
                self.cache.destaged(self.now_ps, extent);
            }
            Action::WriteThrough(extent) => self.store[range(extent)].copy_from_slice(&data),
            Action::Mirror(_) => {}
        }
        self.check_waiting(failed);
        self.check_sums();
    }

    /// Compares the blocks that became ready. Only those of a failed fetch may fail.
    fn check_waiting(&mut self, failed: Option<Extent>) {
        for (block, oldest) in std::mem::take(&mut self.waiting) {
            let at = block as usize;
            match self.cache.readiness(extent(block, 1)) {
                Readiness::Waiting => self.waiting.push((block, oldest)),
                Readiness::Ready => {
                    let oldest = if self.is_lost[at] { 0 } else { oldest };
                    let found = self.memory[at];
                    assert!((oldest..=self.truth[at]).contains(&found), "block {block}: {found}, not {oldest}");
                }
                Readiness::Failed => {
                    assert!(failed.is_some_and(|failed| range(failed).contains(&at)), "block {block}");
                }
            }
        }
    }

    /// Repeats a request until all of it is accepted. Actions end when it stalls.
    fn request(&mut self, mut extent: Extent, version: Option<u32>) {
        for _ in 0..1_000 {
            self.calls += 1;
            let accepted = match version {
                None => self.cache.read(self.now_ps, extent, &mut self.actions).accepted,
                Some(_) => self.cache.write(self.now_ps, extent, &mut self.actions).accepted,
            };
            let done = Extent { blocks: accepted, ..extent };
            match version {
                Some(version) => {
                    self.truth[range(done)].fill(version);
                    self.memory[range(done)].fill(version);
                    self.is_lost[range(done)].fill(false);
                    self.written[range(done)].fill(self.calls);
                }
                None => {
                    for block in range(done) {
                        let oldest = if self.is_lost[block] { 0 } else { self.truth[block] };
                        self.waiting.push((block as u64, oldest));
                    }
                }
            }
            self.start_actions();
            self.check_waiting(None);
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
                    max_blocks: max_blocks.max(sector_blocks),
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
        let mut run = Run::new(settings);
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
                    run.start_actions();
                }
            }
        }
        for _ in 0..1_000 {
            if run.cache.statistics().dirty == 0 && run.in_flight.is_empty() {
                break;
            }
            run.cache.flush();
            run.actions.extend(run.cache.next_destage(run.now_ps));
            run.start_actions();
            if !run.in_flight.is_empty() {
                run.end(0, false);
            }
        }
        prop_assert_eq!(run.cache.statistics().dirty, 0);
        prop_assert!(run.waiting.is_empty());
        for block in (0..blocks).filter(|block| !run.is_lost[*block]) {
            prop_assert_eq!(run.store[block], run.truth[block], "block {}", block);
        }
    }
}
