//! Destaging: which dirty data leave the cache, when, and in what pieces.

use super::super::directory::Directory;
use super::line::DirtyLines;
use super::part::{mask, runs};
use super::settings::DestageOrder;
use super::stream::Streams;
use super::{Action, Controller, Extent, Reason, WriteMode};

/// A position of a sector: line number, and sector in the line.
#[derive(Clone, Copy, Debug)]
struct Sector {
    key: u64,
    index: u32,
}

impl Controller {
    /// Returns the next back-end write that the rules of destaging ask for at this time.
    ///
    /// Call again while the back end has room for more, after each request and each end of an
    /// action, and at [`Controller::next_destage_ps`].
    pub fn next_destage(&mut self, now_ps: u64) -> Option<Action> {
        let reason = self.reason(now_ps)?;
        let slot = match self.settings.destage.order {
            DestageOrder::Address if reason != Reason::Age => self.next_by_address()?,
            DestageOrder::Address | DestageOrder::Age => self.dirty.oldest()?.0,
        };
        let extent = self.begin_destage(now_ps, slot, reason);
        let last = (extent.end() - 1) / u64::from(self.settings.line_blocks);
        let unit = self.unit_of(last);
        self.units[unit].position = last;
        self.turn = (unit + 1) % self.units.len();
        Some(Action::Destage(extent, reason))
    }

    fn unit_of(&self, key: u64) -> usize {
        self.units.partition_point(|unit| unit.first <= key).saturating_sub(1)
    }

    /// Returns the next dirty line of the unit whose turn it is, or of the next one that has any.
    fn next_by_address(&self) -> Option<u32> {
        let mut unit = self.turn;
        for _ in 0..2 {
            let behind = self.dirty.next(self.units[unit].position)?;
            let key = self.directory.key(behind);
            if key >= self.units[unit].position && self.unit_of(key) == unit {
                return Some(behind);
            }
            let first = self.dirty.next(self.units[unit].first)?;
            let found = self.unit_of(self.directory.key(first));
            if found == unit {
                return Some(first);
            }
            unit = found;
        }
        self.dirty.next(self.units[unit].first)
    }

    /// Earliest time at which idle time or age asks for a destage, in picoseconds.
    pub fn next_destage_ps(&self) -> Option<u64> {
        let (_, since_ps) = self.dirty.oldest()?;
        let idle = self.settings.destage.idle_ps.map(|idle| self.last_request_ps.saturating_add(idle));
        let age = self.settings.destage.max_age_ps.map(|age| since_ps.saturating_add(age));
        match (idle, age) {
            (Some(idle), Some(age)) => Some(idle.min(age)),
            (one, other) => one.or(other),
        }
    }

    fn reason(&mut self, now_ps: u64) -> Option<Reason> {
        let Some((_, since_ps)) = self.dirty.oldest() else {
            self.is_draining = false;
            return None;
        };
        let lines = u64::from(self.settings.lines);
        let above = |percent: u8| self.dirty.len * 100 > lines * u64::from(percent);
        self.is_draining =
            above(self.settings.destage.high_percent) || (self.is_draining && above(self.settings.destage.low_percent));
        let rules = self.settings.destage;
        let is_due =
            |since_ps: u64, limit: Option<u64>| limit.is_some_and(|limit| now_ps >= since_ps.saturating_add(limit));
        if self.is_flushing {
            Some(Reason::Flush)
        } else if self.is_draining {
            Some(Reason::Watermark)
        } else if is_due(since_ps, rules.max_age_ps) {
            Some(Reason::Age)
        } else if is_due(self.last_request_ps, rules.idle_ps) {
            Some(Reason::Idle)
        } else {
            None
        }
    }

    /// Asks for the destage of all data that are dirty now or become dirty before it ends. The end
    /// is reached when [`super::Statistics::dirty`] is 0.
    pub fn flush(&mut self) {
        self.is_flushing = self.statistics.dirty > 0;
    }

    /// Sets the state of the battery. Without it, writes go through and dirty data are flushed.
    pub fn set_battery(&mut self, is_charged: bool) {
        self.has_battery = is_charged;
        if !is_charged {
            self.flush();
        }
    }

    /// Sets the state of the partner that holds the mirror copies. Without it, a mirrored cache
    /// writes through and flushes.
    pub fn set_partner(&mut self, is_up: bool) {
        self.has_partner = is_up;
        if !is_up && self.settings.write == (WriteMode::Back { is_mirrored: true }) {
            self.flush();
        }
    }

    /// Marks a run of dirty sectors as in flight: the first one of the line, with its neighbours in
    /// this and adjacent lines up to the maximum size.
    pub(super) fn begin_destage(&mut self, now_ps: u64, slot: u32, reason: Reason) -> Extent {
        let key = self.directory.key(slot);
        let start = Sector { key, index: self.lines[slot as usize].destageable().trailing_zeros() };
        let sector_blocks = self.settings.sector_blocks;
        let maximum = self.settings.destage.max_blocks / sector_blocks;
        let (mut first, mut last, mut sectors) = (start, start, 1);
        let mut line = (key, self.lines[slot as usize].destageable());
        while sectors < maximum
            && let Some(next) = self.after(last).filter(|next| self.is_destageable(*next, &mut line))
        {
            (last, sectors) = (next, sectors + 1);
        }
        while sectors < maximum
            && let Some(next) = self.before(first).filter(|next| self.is_destageable(*next, &mut line))
        {
            (first, sectors) = (next, sectors + 1);
        }
        for key in first.key..=last.key {
            let low = if key == first.key { first.index } else { 0 };
            let end = if key == last.key { last.index + 1 } else { self.sectors_per_line() };
            if let Some(slot) = self.directory.find(key) {
                let line = &mut self.lines[slot as usize];
                line.dirty &= !mask(low, end);
                line.writing |= mask(low, end);
                self.update(now_ps, slot, key);
            }
        }
        self.statistics.destages[reason as usize] += 1;
        let lba = first.key * u64::from(self.settings.line_blocks) + u64::from(first.index * sector_blocks);
        let end = (lba + u64::from(sectors * sector_blocks)).min(self.settings.volume_blocks);
        Extent { lba, blocks: (end - lba) as u32 }
    }

    fn sectors_per_line(&self) -> u32 {
        self.settings.line_blocks / self.settings.sector_blocks
    }

    fn after(&self, sector: Sector) -> Option<Sector> {
        if sector.index + 1 < self.sectors_per_line() {
            return Some(Sector { index: sector.index + 1, ..sector });
        }
        Some(Sector { key: sector.key + 1, index: 0 })
    }

    fn before(&self, sector: Sector) -> Option<Sector> {
        if sector.index > 0 {
            return Some(Sector { index: sector.index - 1, ..sector });
        }
        let key = sector.key.checked_sub(1)?;
        Some(Sector { key, index: self.sectors_per_line() - 1 })
    }

    /// `line` keeps the number and the destageable sectors of the line asked last.
    fn is_destageable(&self, sector: Sector, line: &mut (u64, u64)) -> bool {
        if line.0 != sector.key {
            let slot = self.directory.find(sector.key);
            *line = (sector.key, slot.map_or(0, |slot| self.lines[slot as usize].destageable()));
        }
        line.1 >> sector.index & 1 == 1
    }

    /// Ends a [`Action::Destage`] whose data are on the back end.
    pub fn destaged(&mut self, now_ps: u64, extent: Extent) {
        let mut rest = extent;
        while let Some(part) = self.next_part(&mut rest) {
            let Some(slot) = self.directory.find(part.key) else { continue };
            let line = &mut self.lines[slot as usize];
            let done = line.writing & part.touched;
            line.writing &= !done;
            let blocks = self.blocks_of(part.key, done);
            self.statistics.destaged += blocks;
            self.statistics.dirty -= blocks;
            self.update(now_ps, slot, part.key);
            self.list_cleaned(slot, part.key);
        }
    }

    /// Ends a [`Action::Destage`] that failed. The data become dirty again.
    pub fn destage_failed(&mut self, now_ps: u64, extent: Extent) {
        let mut rest = extent;
        while let Some(part) = self.next_part(&mut rest) {
            let Some(slot) = self.directory.find(part.key) else { continue };
            let line = &mut self.lines[slot as usize];
            let failed = line.writing & part.touched;
            let overwritten = failed & line.dirty;
            line.writing &= !failed;
            line.dirty |= failed;
            let blocks = self.blocks_of(part.key, overwritten);
            self.statistics.coalesced += blocks;
            self.statistics.dirty -= blocks;
            self.update(now_ps, slot, part.key);
        }
    }

    /// Loses the dirty data of the lines from number `first` up to `end`, which are no longer valid
    /// afterwards. Destages in flight and reads are not affected. Returns the number of lost
    /// blocks.
    pub fn lose_dirty(&mut self, now_ps: u64, first: u64, end: u64) -> u64 {
        let before = self.statistics.dirty;
        for slot in 0..self.lines.len() as u32 {
            let key = self.directory.key(slot);
            if key < first || key >= end || self.directory.find(key) != Some(slot) {
                continue;
            }
            let line = &mut self.lines[slot as usize];
            let lost = line.dirty;
            if lost == 0 {
                continue;
            }
            line.dirty = 0;
            line.valid &= !lost;
            self.discard_sectors(key, lost);
            self.update(now_ps, slot, key);
        }
        before - self.statistics.dirty
    }

    /// Empties the cache after a loss of power without battery. `lost` receives the dirty extents,
    /// destages in flight included, in the order of slots. The ends of actions in flight must not
    /// be reported any more. The replacement policy and the detection of streams start anew.
    pub fn lose_contents(&mut self, mut lost: impl FnMut(Extent)) {
        for slot in 0..self.lines.len() as u32 {
            let key = self.directory.key(slot);
            if self.directory.find(key) != Some(slot) {
                continue;
            }
            let line = self.lines[slot as usize];
            self.discard_sectors(key, line.dirty);
            self.discard_sectors(key, line.writing);
            self.statistics.read_ahead_wasted += self.blocks_of(key, line.ahead);
            for run in runs(line.dirty | line.writing) {
                lost(self.extent_of(key, run));
            }
        }
        self.lines.clear();
        self.cleaned.clear();
        self.directory = Directory::new(self.settings.policy, u64::from(self.settings.lines), 1);
        self.dirty = DirtyLines::new(self.settings.destage.order == DestageOrder::Address);
        self.streams = self.settings.read_ahead.map(Streams::new);
        self.is_draining = false;
        self.is_flushing = false;
        self.set_units(self.units.iter().map(|unit| unit.first).collect::<Vec<_>>());
    }
}
