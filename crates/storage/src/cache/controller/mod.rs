//! Controller cache: decides which back-end reads and writes a host request needs.
//!
//! The cache holds no data and does no I/O. A call returns [`Action`]s as values; the caller runs
//! them in the order of return, keeps the order of overlapping ones, and reports the end of each.

mod action;
mod destage;
mod line;
mod ordered;
mod part;
mod settings;
mod statistics;
mod stream;

pub use action::{Action, Extent, Purpose, Readiness, Reason, Response};
pub use settings::{DestageOrder, DestageSettings, MAX_LINES, ReadAheadSettings, Settings, SettingsError, WriteMode};
pub use statistics::Statistics;

use super::directory::{Admission, Directory};
use line::{DirtyLines, Line};
use part::{Part, runs};
use std::collections::VecDeque;
use stream::Streams;

/// Dirty victims to destage before a host request waits. Read-ahead causes no destage.
const DIRTY_VICTIMS: u32 = 4;

/// A cache in front of a volume.
#[derive(Clone, Debug)]
pub struct Controller {
    settings: Settings,
    directory: Directory,
    lines: Vec<Line>,
    dirty: DirtyLines,
    /// Lines that destages made clean, with their numbers, in the order of these ends. Lines that
    /// have changed since are still there.
    cleaned: VecDeque<(u32, u64)>,
    /// The back end has room for destages of victims.
    has_room: bool,
    streams: Option<Streams>,
    has_battery: bool,
    has_partner: bool,
    /// Destaging goes on until the low watermark.
    is_draining: bool,
    is_flushing: bool,
    /// Parts of the volume that are destaged in turn, for the order of addresses.
    units: Vec<Unit>,
    /// Index of the next one of them.
    turn: usize,
    last_request_ps: u64,
    statistics: Statistics,
}

/// Part of the volume, up to the next one.
#[derive(Clone, Copy, Default, Debug)]
struct Unit {
    /// Number of its first line.
    first: u64,
    /// Line number of the last destage.
    position: u64,
}

impl Controller {
    /// Creates an empty cache with a charged battery and a working partner.
    ///
    /// # Errors
    ///
    /// Settings that contradict each other.
    pub fn new(settings: Settings) -> Result<Controller, SettingsError> {
        settings.check()?;
        Ok(Controller {
            directory: Directory::new(settings.policy, u64::from(settings.lines), 1),
            lines: Vec::new(),
            dirty: DirtyLines::new(settings.destage.order == DestageOrder::Address),
            cleaned: VecDeque::new(),
            has_room: true,
            streams: settings.read_ahead.map(Streams::new),
            has_battery: true,
            has_partner: true,
            is_draining: false,
            is_flushing: false,
            units: vec![Unit::default()],
            turn: 0,
            last_request_ps: 0,
            statistics: Statistics::default(),
            settings,
        })
    }

    /// Settings.
    pub fn settings(&self) -> &Settings {
        &self.settings
    }

    /// Counters since the creation.
    pub fn statistics(&self) -> &Statistics {
        &self.statistics
    }

    /// Divides the volume into units, which begin at these line numbers, in ascending order, the
    /// first at 0. Destaging in the order of addresses takes from each unit in turn, because other
    /// devices are behind each.
    pub fn set_units(&mut self, first_lines: impl IntoIterator<Item = u64>) {
        self.units = first_lines.into_iter().map(|first| Unit { first, position: first }).collect();
        if self.units.is_empty() {
            self.units.push(Unit::default());
        }
        self.turn = 0;
    }

    /// Sets whether the back end has room for more destages. Without room, a request that needs the
    /// line of a dirty victim waits.
    pub fn set_room(&mut self, has_room: bool) {
        self.has_room = has_room;
    }

    /// Write mode in force: write-through while the battery or a needed partner is missing.
    pub fn write_mode(&self) -> WriteMode {
        match self.settings.write {
            WriteMode::Back { is_mirrored } if !self.has_battery || (is_mirrored && !self.has_partner) => {
                WriteMode::Through { allocates: true }
            }
            mode => mode,
        }
    }

    /// Starts a host read, which must be inside the volume. [`Controller::readiness`] tells when
    /// the accepted blocks are complete.
    pub fn read(&mut self, now_ps: u64, extent: Extent, actions: &mut Vec<Action>) -> Response {
        debug_assert!(extent.end() <= self.settings.volume_blocks, "{extent:?} is outside the volume");
        self.last_request_ps = now_ps;
        let (mut accepted, mut is_stalled) = (0, false);
        let mut at = extent;
        while let Some(part) = self.next_part(&mut at) {
            if !self.read_part(now_ps, part, actions) {
                is_stalled = true;
                break;
            }
            accepted += part.extent.blocks;
        }
        self.count_stall(is_stalled);
        self.statistics.read_requests += u64::from(!is_stalled);
        let ahead = self.streams.as_mut().and_then(|streams| streams.read(extent.lba, accepted, !is_stalled));
        if let Some(ahead) = ahead {
            let end = self.read_ahead(now_ps, ahead.from, ahead.end, actions);
            if let Some(streams) = &mut self.streams {
                streams.fetched(ahead, end);
            }
        }
        Response { accepted }
    }

    /// Starts a host write, which must be inside the volume. In write-back mode it is complete when
    /// a returned [`Action::Mirror`] has ended, or at once if there is none.
    pub fn write(&mut self, now_ps: u64, extent: Extent, actions: &mut Vec<Action>) -> Response {
        debug_assert!(extent.end() <= self.settings.volume_blocks, "{extent:?} is outside the volume");
        self.last_request_ps = now_ps;
        let mode = self.write_mode();
        let (mut accepted, mut is_stalled) = (0, false);
        let mut at = extent;
        while let Some(part) = self.next_part(&mut at) {
            let is_accepted = match mode {
                WriteMode::Back { .. } => self.write_back(now_ps, part, actions),
                WriteMode::Through { allocates } => self.write_through(now_ps, part, allocates, actions),
            };
            if !is_accepted {
                is_stalled = true;
                break;
            }
            accepted += part.extent.blocks;
        }
        self.count_stall(is_stalled);
        self.statistics.write_requests += u64::from(!is_stalled);
        self.statistics.written += u64::from(accepted);
        if accepted == 0 {
            return Response { accepted };
        }
        let done = Extent { lba: extent.lba, blocks: accepted };
        match mode {
            WriteMode::Through { .. } => {
                self.statistics.written_through += u64::from(accepted);
                actions.push(Action::WriteThrough(done));
            }
            WriteMode::Back { is_mirrored: true } => {
                self.statistics.mirrored += u64::from(accepted);
                actions.push(Action::Mirror(done));
            }
            WriteMode::Back { is_mirrored: false } => {}
        }
        Response { accepted }
    }

    fn count_stall(&mut self, is_stalled: bool) {
        self.statistics.stalls += u64::from(is_stalled);
    }

    /// Returns the state of blocks that a host reads. Ask when the read has been accepted, and
    /// after each end of a fetch: when nothing is in flight any more, other requests may evict the
    /// lines.
    pub fn readiness(&self, extent: Extent) -> Readiness {
        let mut readiness = Readiness::Ready;
        let mut at = extent;
        while let Some(part) = self.next_part(&mut at) {
            let Some(slot) = self.directory.find(part.key) else { continue };
            let line = &self.lines[slot as usize];
            if line.filling & part.touched != 0 {
                return Readiness::Waiting;
            }
            if line.failed & part.touched != 0 {
                readiness = Readiness::Failed;
            }
        }
        readiness
    }

    /// Ends a [`Action::Fetch`] whose data have arrived.
    pub fn filled(&mut self, now_ps: u64, extent: Extent) {
        self.end_fill(now_ps, extent, true);
    }

    /// Ends a [`Action::Fetch`] that failed. A partly written sector that needed the data is lost;
    /// [`Statistics::discarded`] counts it.
    pub fn fill_failed(&mut self, now_ps: u64, extent: Extent) {
        self.end_fill(now_ps, extent, false);
    }

    fn end_fill(&mut self, now_ps: u64, extent: Extent, has_data: bool) {
        let mut at = extent;
        while let Some(part) = self.next_part(&mut at) {
            let Some(slot) = self.directory.find(part.key) else { continue };
            let line = &mut self.lines[slot as usize];
            let filled = line.filling & part.touched;
            line.filling &= !filled;
            line.superseded &= !part.touched;
            if has_data {
                line.valid |= filled;
            } else {
                let lost = line.dirty & filled;
                line.dirty &= !lost;
                line.ahead &= !filled;
                line.failed |= filled;
                self.discard_sectors(part.key, lost);
            }
            self.update(now_ps, slot, part.key);
        }
    }

    fn read_part(&mut self, now_ps: u64, part: Part, actions: &mut Vec<Action>) -> bool {
        let Some(slot) = self.line_for(now_ps, part.key, DIRTY_VICTIMS, actions) else { return false };
        let all = self.all_sectors(part.key);
        let line = &mut self.lines[slot as usize];
        let absent = part.touched & !line.valid & !line.filling;
        let used = line.ahead & part.touched;
        let waits = part.touched & line.filling;
        line.ahead &= !used;
        let fetched = if absent != 0 && self.settings.fills_lines { all & !line.valid & !line.filling } else { absent };
        let (waits, misses) = (self.overlap(part, waits), self.overlap(part, absent));
        self.statistics.read += u64::from(part.extent.blocks);
        self.statistics.read_waits += waits;
        self.statistics.read_misses += misses;
        self.statistics.read_hits += u64::from(part.extent.blocks) - waits - misses;
        self.statistics.read_ahead_used += self.blocks_of(part.key, used);
        self.statistics.fetched += self.blocks_of(part.key, fetched);
        self.fetch(now_ps, slot, part.key, fetched, Purpose::Demand, actions);
        true
    }

    /// Reads ahead as far as clean victims allow, and returns the end of the blocks that are
    /// resident or being fetched.
    fn read_ahead(&mut self, now_ps: u64, from: u64, end: u64, actions: &mut Vec<Action>) -> u64 {
        let end = end.min(self.settings.volume_blocks);
        if from >= end {
            return from;
        }
        let mut rest = Extent { lba: from, blocks: (end - from) as u32 };
        while let Some(part) = self.next_part(&mut rest) {
            let slot = match self.directory.find(part.key) {
                Some(slot) => slot,
                None => match self.line_for(now_ps, part.key, 0, actions) {
                    Some(slot) => slot,
                    None => return part.extent.lba,
                },
            };
            let line = &mut self.lines[slot as usize];
            let fetched = part.touched & !line.valid & !line.filling;
            line.ahead |= fetched;
            self.statistics.read_ahead += self.blocks_of(part.key, fetched);
            self.fetch(now_ps, slot, part.key, fetched, Purpose::ReadAhead, actions);
        }
        end
    }

    fn write_back(&mut self, now_ps: u64, part: Part, actions: &mut Vec<Action>) -> bool {
        let Some(slot) = self.line_for(now_ps, part.key, DIRTY_VICTIMS, actions) else { return false };
        let line = &mut self.lines[slot as usize];
        let installed = part.touched & !part.covered & !line.valid & !line.filling;
        let wasted = line.ahead & part.touched;
        let coalesced = line.dirty & part.touched;
        line.ahead &= !wasted;
        line.overwrite(part.covered);
        line.dirty |= part.touched;
        self.statistics.read_ahead_wasted += self.blocks_of(part.key, wasted);
        self.statistics.installed += self.blocks_of(part.key, installed);
        self.statistics.dirtied += self.blocks_of(part.key, part.touched);
        self.statistics.coalesced += self.blocks_of(part.key, coalesced);
        self.statistics.dirty += self.blocks_of(part.key, part.touched & !coalesced);
        self.fetch(now_ps, slot, part.key, installed, Purpose::Install, actions);
        true
    }

    fn write_through(&mut self, now_ps: u64, part: Part, allocates: bool, actions: &mut Vec<Action>) -> bool {
        let slot = match self.directory.hit(part.key) {
            Some(slot) => slot,
            None if !allocates || part.covered == 0 => return true,
            None => match self.line_for(now_ps, part.key, DIRTY_VICTIMS, actions) {
                Some(slot) => slot,
                None => return false,
            },
        };
        let line = &mut self.lines[slot as usize];
        let wasted = line.ahead & part.touched;
        line.ahead &= !wasted;
        line.overwrite(part.covered);
        // A destage with older data may end after this write, so the sector is destaged again.
        let dirtied = line.writing & part.touched;
        let coalesced = line.dirty & dirtied;
        line.dirty |= dirtied;
        self.statistics.read_ahead_wasted += self.blocks_of(part.key, wasted);
        self.statistics.dirtied += self.blocks_of(part.key, dirtied);
        self.statistics.coalesced += self.blocks_of(part.key, coalesced);
        self.statistics.dirty += self.blocks_of(part.key, dirtied & !coalesced);
        self.update(now_ps, slot, part.key);
        true
    }

    /// Marks sectors as being fetched, and returns the reads. Reads of neighbouring lines merge.
    fn fetch(&mut self, now_ps: u64, slot: u32, key: u64, sectors: u64, purpose: Purpose, actions: &mut Vec<Action>) {
        let line = &mut self.lines[slot as usize];
        line.filling |= sectors;
        line.failed &= !sectors;
        for run in runs(sectors) {
            let extent = self.extent_of(key, run);
            match actions.last_mut() {
                Some(Action::Fetch(last, why)) if *why == purpose && last.end() == extent.lba => {
                    last.blocks += extent.blocks;
                }
                _ => actions.push(Action::Fetch(extent, purpose)),
            }
        }
        self.update(now_ps, slot, key);
    }

    /// Returns the slot of a line and makes it resident. If the victim of the policy is dirty, the
    /// line that a destage made clean first is evicted. `None` if there is none; the destage of up
    /// to `most_dirty` victims is returned instead.
    fn line_for(&mut self, now_ps: u64, key: u64, most_dirty: u32, actions: &mut Vec<Action>) -> Option<u32> {
        if let Some(slot) = self.directory.hit(key) {
            return Some(slot);
        }
        let most_dirty = if self.has_room { most_dirty } else { 0 };
        let mut dirty_victims = 0;
        loop {
            match self.directory.admit(key, 1) {
                Admission::Admitted(slot) => {
                    if self.lines.len() <= slot as usize {
                        self.lines.resize(slot as usize + 1, Line::default());
                    }
                    self.lines[slot as usize] = Line::default();
                    return Some(slot);
                }
                Admission::Evict(slot) if self.lines[slot as usize].dirty == 0 => {
                    self.evict(slot);
                }
                Admission::Evict(slot) => {
                    if let Some(clean) = self.pop_cleaned() {
                        self.evict(clean);
                        continue;
                    }
                    if dirty_victims == most_dirty {
                        return None;
                    }

                    dirty_victims += 1;
                    let extent = self.begin_destage(now_ps, slot, Reason::Demand);
                    actions.push(Action::Destage(extent, Reason::Demand));
                }
                Admission::Refused => return None,
            }
        }
    }

    fn evict(&mut self, slot: u32) {
        let victim = self.directory.evict(slot);
        let wasted = self.blocks_of(victim, self.lines[slot as usize].ahead);
        self.statistics.read_ahead_wasted += wasted;
        self.statistics.evictions += 1;
    }

    /// Removes and returns the line that a destage made clean first.
    fn pop_cleaned(&mut self) -> Option<u32> {
        while let Some((slot, key)) = self.cleaned.pop_front() {
            if self.directory.find(key) == Some(slot) {
                let line = &mut self.lines[slot as usize];
                line.is_listed = false;
                if line.is_clean() {
                    return Some(slot);
                }
            }
        }
        None
    }

    /// Lists a line if a destage has made it clean.
    fn list_cleaned(&mut self, slot: u32, key: u64) {
        let line = &mut self.lines[slot as usize];
        if line.is_clean() && !std::mem::replace(&mut line.is_listed, true) {
            // Lines that were evicted otherwise stay in the list, so it has a limit.
            if self.cleaned.len() >= 2 * self.settings.lines as usize {
                self.cleaned.pop_front();
            }
            self.cleaned.push_back((slot, key));
        }
    }

    /// Counts dirty sectors of a line that will not be destaged.
    fn discard_sectors(&mut self, key: u64, sectors: u64) {
        let blocks = self.blocks_of(key, sectors);
        self.statistics.discarded += blocks;
        self.statistics.dirty -= blocks;
    }

    /// Brings the pin, the lists of dirty lines and a flush up to date after a change of sectors.
    fn update(&mut self, now_ps: u64, slot: u32, key: u64) {
        let line = self.lines[slot as usize];
        self.directory.set_pinned(slot, line.is_in_flight());
        self.is_flushing &= self.statistics.dirty > 0;
        if line.destageable() == 0 {
            self.dirty.remove(slot);
        } else {
            self.dirty.insert(slot, key, now_ps);
        }
    }
}
