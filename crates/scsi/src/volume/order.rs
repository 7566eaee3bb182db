//! Order of overlapping work: [`RangeOrder`] for one volume, [`Orders`] for all.

use crate::map::{EpochId, VolumeId};
use crate::ordered::OrderedMap;
use std::collections::VecDeque;

/// Range of blocks, exclusive or shared.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct Range {
    lba: u64,
    end: u64,
    exclusive: bool,
}

impl Range {
    fn conflicts(&self, other: &Range) -> bool {
        (self.exclusive || other.exclusive) && self.lba < other.end && other.lba < self.end
    }
}

/// Active and waiting work on a volume. Two entries conflict if they overlap and at least one is
/// exclusive. Conflicting entries begin in the order of their arrival.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct RangeOrder {
    active: OrderedMap<u64, Range>,
    waiting: VecDeque<(u64, Range)>,
    /// Number of exclusive entries, active or waiting. If it is 0, ranges are not compared.
    exclusive_entries: usize,
}

impl RangeOrder {
    /// Adds an entry. Returns false if it has to wait; a later [`end`](Self::end) then returns its
    /// number.
    pub fn begin(&mut self, id: u64, lba: u64, blocks: u64, exclusive: bool) -> bool {
        let range = Range { lba, end: lba.saturating_add(blocks), exclusive };
        self.exclusive_entries += usize::from(exclusive);
        let free = self.exclusive_entries == 0
            || !(self.active.values().any(|other| range.conflicts(other))
                || self.waiting.iter().any(|(_, other)| range.conflicts(other)));
        match free {
            true => _ = self.active.insert(id, range),
            false => self.waiting.push_back((id, range)),
        }
        free
    }

    /// Removes an active entry. Returns the entries that begin now.
    pub fn end(&mut self, id: u64) -> Vec<u64> {
        if let Some(range) = self.active.remove(&id) {
            self.exclusive_entries -= usize::from(range.exclusive);
        }
        let mut next = Vec::new();
        let mut at = 0;
        while let Some((id, range)) = self.waiting.get(at).copied() {
            let earlier = self.waiting.iter().take(at).any(|(_, other)| range.conflicts(other));
            if earlier || self.active.values().any(|other| range.conflicts(other)) {
                at += 1;
                continue;
            }
            self.waiting.remove(at);
            self.active.insert(id, range);
            next.push(id);
        }
        next
    }

    /// Returns whether a shared entry could begin at once.
    pub fn is_open(&self, lba: u64, blocks: u64) -> bool {
        let range = Range { lba, end: lba.saturating_add(blocks), exclusive: false };
        self.exclusive_entries == 0
            || !(self.active.values().chain(self.waiting.iter().map(|(_, other)| other)))
                .any(|other| range.conflicts(other))
    }

    /// Returns whether an exclusive entry could begin at once.
    pub fn is_empty_at(&self, lba: u64, blocks: u64) -> bool {
        let range = Range { lba, end: lba.saturating_add(blocks), exclusive: true };
        !(self.active.values().chain(self.waiting.iter().map(|(_, other)| other))).any(|other| range.conflicts(other))
    }

    /// Makes an active entry exclusive for all entries that come later.
    pub fn seize(&mut self, id: u64) {
        if let Some(range) = self.active.get_mut(&id) {
            self.exclusive_entries += usize::from(!std::mem::replace(&mut range.exclusive, true));
        }
    }

    /// Returns whether there is no entry, active or waiting.
    pub fn is_idle(&self) -> bool {
        self.active.is_empty() && self.waiting.is_empty()
    }
}

/// Work on blocks of a volume without a job. A claim holds the epoch on which the work began, and
/// an entry in the order. Return it with [`Volumes::release`](super::Volumes::release).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Claim {
    pub(super) volume: VolumeId,
    pub(super) id: u64,
    pub(super) epoch: EpochId,
}

impl Claim {
    /// Epoch on which the work began.
    pub fn epoch(&self) -> EpochId {
        self.epoch
    }
}

/// Orders of all volumes, and entries that may begin because others have ended.
#[derive(Debug, Default)]
pub(super) struct Orders {
    of: OrderedMap<VolumeId, RangeOrder>,
    /// Orders without entries, whose memory is used again.
    spare: Vec<RangeOrder>,
    ready: VecDeque<u64>,
}

impl Orders {
    pub(super) fn begin(&mut self, volume: VolumeId, id: u64, lba: u64, blocks: u64, exclusive: bool) -> bool {
        if let Some(order) = self.of.get_mut(&volume) {
            return order.begin(id, lba, blocks, exclusive);
        }
        let mut order = self.spare.pop().unwrap_or_default();
        let begun = order.begin(id, lba, blocks, exclusive);
        self.of.insert(volume, order);
        begun
    }

    pub(super) fn is_open(&self, volume: VolumeId, lba: u64, blocks: u64) -> bool {
        self.of.get(&volume).is_none_or(|order| order.is_open(lba, blocks))
    }

    /// Returns whether an exclusive entry could begin at once.
    pub(super) fn is_empty_at(&self, volume: VolumeId, lba: u64, blocks: u64) -> bool {
        self.of.get(&volume).is_none_or(|order| order.is_empty_at(lba, blocks))
    }

    pub(super) fn seize(&mut self, volume: VolumeId, id: u64) {
        if let Some(order) = self.of.get_mut(&volume) {
            order.seize(id);
        }
    }

    pub(super) fn end(&mut self, volume: VolumeId, id: u64) {
        if let Some(order) = self.of.get_mut(&volume) {
            self.ready.extend(order.end(id));
            if order.is_idle() {
                self.spare.extend(self.of.remove(&volume));
            }
        }
    }

    /// Returns the next entry that may begin.
    pub(super) fn next_ready(&mut self) -> Option<u64> {
        self.ready.pop_front()
    }

    /// Returns whether no volume has an entry.
    pub(super) fn is_idle(&self) -> bool {
        self.of.values().all(RangeOrder::is_idle)
    }
}
