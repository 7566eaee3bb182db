//! The cache in front of all units of a storage system.
//!
//! Units follow each other in the address space of the cache, each from the start of a line.

use super::intervals::Intervals;
use super::settings::{BackstoreError, CacheConfig};
use super::{Command, Ended, NEVER, Origin, Outcome, Request};
use crate::cache::{Action, Controller, Extent, Readiness, Settings, Statistics};
use crate::disk::Op;
use std::cmp::Reverse;
use std::collections::{BinaryHeap, VecDeque};

/// A command of a host in the cache.
#[derive(Clone, Copy, Debug)]
struct Held {
    id: u32,
    op: Op,
    /// Blocks of the command.
    extent: Extent,
    /// Blocks that the cache has not accepted yet.
    rest: Extent,
    /// Copies and writes through that have not ended.
    pending: u32,
    is_lost: bool,
    /// Accepted, and not ended.
    is_open: bool,
    /// The power failed meanwhile, so the end is not reported.
    is_aborted: bool,
}

/// Work of the cache that groups do.
#[derive(Clone, Copy, Debug)]
struct Work {
    kind: Kind,
    extent: Extent,
    /// Requests to groups that have not ended.
    pending: u32,
    is_lost: bool,
    is_wrong: bool,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Kind {
    Fetch,
    Destage,
    /// Write of a command, by its number.
    Through(u32),
}

#[derive(Clone, Debug)]
pub(super) struct Front {
    cache: Controller,
    config: CacheConfig,
    /// First block of each unit in the address space of the cache, and its blocks.
    units: Vec<(u64, u64)>,
    held: Vec<Held>,
    free_held: Vec<u32>,
    works: Vec<Work>,
    free_works: Vec<u32>,
    /// Reads that wait for fetches.
    reading: Vec<u32>,
    /// Commands that wait for a line, the oldest first.
    stalled: VecDeque<u32>,
    /// Flushes that wait until nothing is dirty.
    flushing: Vec<u32>,
    /// Ends of copies to the partner.
    copies: BinaryHeap<Reverse<(u64, u32)>>,
    /// Time from which the line to the partner is free.
    partner_free_ps: u64,
    destages: u32,
    has_battery: bool,
    lost_blocks: u64,
    /// Blocks that the cache has read from wrong data of a group.
    wrong: Intervals,
    actions: Vec<Action>,
    /// Time of the last call of [`Front::advance`].
    advanced_ps: u64,
}

impl Front {
    pub fn new(config: &CacheConfig, unit_blocks: &[u64]) -> Result<Front, BackstoreError> {
        let line = u64::from(config.settings.line_blocks.max(1));
        let mut units = Vec::with_capacity(unit_blocks.len());
        let mut end = 0_u64;
        for &blocks in unit_blocks {
            units.push((end, blocks));
            end = (end + blocks).next_multiple_of(line);
        }
        let mut cache = Controller::new(Settings { volume_blocks: end, ..config.settings })?;
        cache.set_units(units.iter().map(|(first, _)| first / line));
        Ok(Front {
            cache,
            config: *config,
            units,
            held: Vec::new(),
            free_held: Vec::new(),
            works: Vec::new(),
            free_works: Vec::new(),
            reading: Vec::new(),
            stalled: VecDeque::new(),
            flushing: Vec::new(),
            copies: BinaryHeap::new(),
            partner_free_ps: 0,
            destages: 0,
            has_battery: true,
            lost_blocks: 0,
            wrong: Intervals::default(),
            actions: Vec::new(),
            advanced_ps: 0,
        })
    }

    pub fn statistics(&self) -> &Statistics {
        self.cache.statistics()
    }

    pub fn lost_blocks(&self) -> u64 {
        self.lost_blocks
    }

    pub fn settings(&self) -> &Settings {
        self.cache.settings()
    }

    pub fn set_battery(&mut self, is_charged: bool) {
        self.has_battery = is_charged;
        self.cache.set_battery(is_charged);
    }

    /// Sets whether the partner works that holds copies of written data.
    pub fn set_partner(&mut self, is_up: bool) {
        self.cache.set_partner(is_up);
    }

    /// Loses the written data of a unit that only the cache has. Returns the lost blocks.
    pub fn lose_dirty(&mut self, now_ps: u64, unit: u16) -> u64 {
        let line = u64::from(self.config.settings.line_blocks.max(1));
        let (first, blocks) = self.units[usize::from(unit)];
        let lost = self.cache.lose_dirty(now_ps, first / line, (first + blocks).div_ceil(line));
        self.lost_blocks += lost;
        lost
    }

    pub fn submit(&mut self, now_ps: u64, command: Command, requests: &mut Vec<Request>, ended: &mut VecDeque<Ended>) {
        let Command { id, unit, lba, blocks, op } = command;
        let extent = Extent { lba: self.units[usize::from(unit)].0 + lba, blocks };
        let held = Held { id, op, extent, rest: extent, pending: 0, is_lost: false, is_open: true, is_aborted: false };
        let slot = match self.free_held.pop() {
            Some(slot) => {
                self.held[slot as usize] = held;
                slot
            }
            None => {
                self.held.push(held);
                self.held.len() as u32 - 1
            }
        };
        if op == Op::Flush {
            // A cache with a battery keeps its data, so there is nothing to wait for.
            if !self.has_battery && self.cache.statistics().dirty > 0 {
                self.cache.flush();
                self.flushing.push(slot);
            } else {
                self.end(slot, ended);
            }
            return;
        }
        // Writes keep their order. Reads of blocks in the cache do not wait for writes.
        let must_wait = op != Op::Read && !self.stalled.is_empty();
        if must_wait || !self.offer(now_ps, slot, requests, ended) {
            self.stalled.push_back(slot);
        }
    }

    /// Offers the rest of a command to the cache. Returns `false` if it did not accept everything.
    fn offer(&mut self, now_ps: u64, slot: u32, requests: &mut Vec<Request>, ended: &mut VecDeque<Ended>) -> bool {
        let Held { op, rest, .. } = self.held[slot as usize];
        let mut actions = std::mem::take(&mut self.actions);
        self.cache.set_room(self.destages < self.config.most_destages);
        let accepted = match op {
            Op::Read => self.cache.read(now_ps, rest, &mut actions).accepted,
            _ => self.cache.write(now_ps, rest, &mut actions).accepted,
        };
        if op != Op::Read {
            self.wrong.remove(rest.lba, accepted.into());
        }
        let held = &mut self.held[slot as usize];
        held.rest = Extent { lba: rest.lba + u64::from(accepted), blocks: rest.blocks - accepted };
        for action in actions.drain(..) {
            self.perform(now_ps, action, slot, requests);
        }
        self.actions = actions;
        if accepted < rest.blocks {
            return false;
        }
        if op == Op::Read {
            self.end_read(slot, true, ended);
        } else {
            self.end_write(slot, ended);
        }
        true
    }

    /// Ends a read whose blocks are in the cache. A new one is put to those that wait otherwise.
    fn end_read(&mut self, slot: u32, is_new: bool, ended: &mut VecDeque<Ended>) -> bool {
        match self.cache.readiness(self.held[slot as usize].extent) {
            Readiness::Waiting => {
                if is_new {
                    self.reading.push(slot);
                }
                return false;
            }
            Readiness::Failed => self.held[slot as usize].is_lost = true,
            Readiness::Ready => {}
        }
        self.end(slot, ended);
        true
    }

    fn end_write(&mut self, slot: u32, ended: &mut VecDeque<Ended>) {
        let held = &self.held[slot as usize];
        if held.pending == 0 && held.rest.blocks == 0 {
            self.end(slot, ended);
        }
    }

    fn end(&mut self, slot: u32, ended: &mut VecDeque<Ended>) {
        let held = &mut self.held[slot as usize];
        held.is_open = false;
        let Held { id, op, extent, is_lost, is_aborted, .. } = *held;
        self.free_held.push(slot);
        let is_wrong = op == Op::Read && self.wrong.overlaps(extent.lba, extent.blocks.into());
        let outcome = match (is_lost, is_wrong) {
            (true, _) => Outcome::Lost,
            (false, true) => Outcome::Wrong,
            (false, false) => Outcome::Good,
        };
        if !is_aborted {
            ended.push_back(Ended { id, outcome });
        }
    }

    /// The power fails. With a battery, the cache keeps its data and repeats the requests to groups
    /// that were lost; otherwise it is empty afterwards. `aborted` receives the commands in flight.
    /// Returns the lost blocks.
    pub fn power_loss(&mut self, lost: &[Request], requests: &mut Vec<Request>, aborted: &mut Vec<u32>) -> u64 {
        aborted.extend(self.held.iter().filter(|held| held.is_open && !held.is_aborted).map(|held| held.id));
        self.reading.clear();
        self.stalled.clear();
        self.flushing.clear();
        self.partner_free_ps = 0;
        if !self.has_battery {
            let dirty = self.cache.statistics().dirty;
            self.cache.lose_contents(|_| {});
            self.held.clear();
            self.free_held.clear();
            self.works.clear();
            self.free_works.clear();
            self.copies.clear();
            self.wrong = Intervals::default();
            self.destages = 0;
            self.lost_blocks += dirty;
            return dirty;
        }
        while let Some(Reverse((_, slot))) = self.copies.pop() {
            self.held[slot as usize].pending -= 1;
        }
        for (slot, held) in (0..).zip(&mut self.held).filter(|(_, held)| held.is_open) {
            held.rest.blocks = 0;
            held.is_aborted = true;
            if held.pending == 0 {
                held.is_open = false;
                self.free_held.push(slot);
            }
        }
        requests.extend(lost.iter().filter(|request| matches!(request.origin, Origin::Action(_))));
        0
    }

    /// Does an action of the cache for the command `slot`.
    fn perform(&mut self, now_ps: u64, action: Action, slot: u32, requests: &mut Vec<Request>) {
        let (kind, extent, op) = match action {
            Action::Fetch(extent, _) => (Kind::Fetch, extent, Op::Read),
            Action::Destage(extent, _) => {
                self.destages += 1;
                (Kind::Destage, extent, Op::WriteThrough)
            }
            Action::WriteThrough(extent) => {
                self.held[slot as usize].pending += 1;
                (Kind::Through(slot), extent, Op::WriteThrough)
            }
            Action::Mirror(extent) => {
                self.held[slot as usize].pending += 1;
                let bytes = u128::from(extent.blocks) * 512;
                let rate = u128::from(self.config.mirror_bytes_per_s);
                let copy_ps = (bytes * 1_000_000_000_000).checked_div(rate).unwrap_or(0) as u64;
                self.partner_free_ps = self.partner_free_ps.max(now_ps) + copy_ps;
                self.copies.push(Reverse((self.partner_free_ps + self.config.mirror_latency_ps, slot)));
                return;
            }
        };
        let work = Work { kind, extent, pending: 0, is_lost: false, is_wrong: false };
        let number = match self.free_works.pop() {
            Some(number) => {
                self.works[number as usize] = work;
                number
            }
            None => {
                self.works.push(work);
                self.works.len() as u32 - 1
            }
        };
        // An extent can go across the end of a unit, because neighbours are put together.
        let first = self.units.partition_point(|(base, _)| *base <= extent.lba).saturating_sub(1);
        for (unit, &(base, blocks)) in self.units.iter().enumerate().skip(first) {
            let (from, to) = (extent.lba.max(base), extent.end().min(base + blocks));
            if base >= extent.end() {
                break;
            }
            if from < to {
                self.works[number as usize].pending += 1;
                let origin = Origin::Action(number);
                requests.push(Request { origin, unit: unit as u16, lba: from - base, blocks: (to - from) as u32, op });
            }
        }
        // Read-ahead can ask for blocks between the end of a unit and the next line only.
        if self.works[number as usize].pending == 0 {
            debug_assert_eq!(kind, Kind::Fetch, "{extent:?} is in no unit");
            self.free_works.push(number);
            self.cache.filled(now_ps, extent);
        }
    }

    /// A request of the cache to a group has ended.
    pub fn action_ended(
        &mut self,
        now_ps: u64,
        number: u32,
        outcome: Outcome,
        requests: &mut Vec<Request>,
        ended: &mut VecDeque<Ended>,
    ) {
        let work = &mut self.works[number as usize];
        work.pending -= 1;
        work.is_lost |= outcome == Outcome::Lost;
        work.is_wrong |= outcome == Outcome::Wrong;
        if work.pending > 0 {
            return;
        }
        let Work { kind, extent, is_lost, is_wrong, .. } = *work;
        self.free_works.push(number);
        if kind == Kind::Fetch && is_wrong {
            self.wrong.insert(extent.lba, extent.blocks.into());
        } else if kind == Kind::Fetch {
            self.wrong.remove(extent.lba, extent.blocks.into());
        }
        match kind {
            Kind::Fetch if is_lost => self.cache.fill_failed(now_ps, extent),
            Kind::Fetch => self.cache.filled(now_ps, extent),
            Kind::Destage => {
                self.destages -= 1;
                if is_lost {
                    self.lost_blocks += u64::from(extent.blocks);
                }
                // Dirty data that no group can take would be tried for ever.
                self.cache.destaged(now_ps, extent);
            }
            Kind::Through(slot) => {
                let held = &mut self.held[slot as usize];
                held.pending -= 1;
                held.is_lost |= is_lost;
                self.end_write(slot, ended);
            }
        }
        if kind == Kind::Fetch {
            let mut at = 0;
            while let Some(&slot) = self.reading.get(at) {
                let other = self.held[slot as usize].extent;
                let is_touched = other.lba < extent.end() && extent.lba < other.end();
                if is_touched && self.end_read(slot, false, ended) {
                    self.reading.remove(at);
                } else {
                    at += 1;
                }
            }
        }
        while let Some(&slot) = self.stalled.front() {
            if !self.offer(now_ps, slot, requests, ended) {
                break;
            }
            self.stalled.pop_front();
        }
    }

    /// Ends copies to the partner, flushes, and starts destages that are due.
    pub fn advance(&mut self, now_ps: u64, requests: &mut Vec<Request>, ended: &mut VecDeque<Ended>) {
        while self.copies.peek().is_some_and(|Reverse((end_ps, _))| *end_ps <= now_ps) {
            if let Some(Reverse((_, slot))) = self.copies.pop() {
                self.held[slot as usize].pending -= 1;
                self.end_write(slot, ended);
            }
        }
        // With a battery again, the cache keeps its data, as for a new flush.
        if self.has_battery || self.cache.statistics().dirty == 0 {
            while let Some(slot) = self.flushing.pop() {
                self.end(slot, ended);
            }
        }
        while self.destages < self.config.most_destages
            && let Some(action) = self.cache.next_destage(now_ps)
        {
            self.perform(now_ps, action, 0, requests);
        }
        self.advanced_ps = now_ps;
    }

    /// Returns the next time at which anything happens without a request or an end of one.
    pub fn next_ps(&self) -> u64 {
        let copy_ps = self.copies.peek().map_or(NEVER, |Reverse((end_ps, _))| *end_ps);
        let has_room = self.destages < self.config.most_destages;
        let destage_ps = self.cache.next_destage_ps().filter(|&at_ps| has_room && at_ps > self.advanced_ps);
        copy_ps.min(destage_ps.unwrap_or(NEVER))
    }
}
