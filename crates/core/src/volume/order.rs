//! Who may be at work on which blocks at once: [`RangeOrder`] of one volume, [`Orders`] of all.

use crate::map::{EpochId, VolumeId};
use std::collections::{BTreeMap, VecDeque};

/// Blocks, and whether nobody else may be there.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct Range {
    lba: u64,
    end: u64,
    alone: bool,
}

impl Range {
    fn conflicts(&self, other: &Range) -> bool {
        (self.alone || other.alone) && self.lba < other.end && other.lba < self.end
    }
}

/// Those at work on a volume, and those that wait because one of two wants to be alone on blocks that both have. Who came first goes
/// first.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct RangeOrder {
    active: BTreeMap<u64, Range>,
    waiting: VecDeque<(u64, Range)>,
    /// Those, at work or waiting, that want to be alone: without any, nobody looks at ranges.
    alone: usize,
}

impl RangeOrder {
    /// Somebody wants to begin. False: [`end`](Self::end) of another one will name him.
    pub fn begin(&mut self, id: u64, lba: u64, blocks: u64, alone: bool) -> bool {
        let range = Range { lba, end: lba.saturating_add(blocks), alone };
        self.alone += usize::from(alone);
        let free = self.alone == 0
            || !(self.active.values().any(|other| range.conflicts(other))
                || self.waiting.iter().any(|(_, other)| range.conflicts(other)));
        match free {
            true => _ = self.active.insert(id, range),
            false => self.waiting.push_back((id, range)),
        }
        free
    }

    /// Somebody who was at work has ended; those whose turn it is now.
    pub fn end(&mut self, id: u64) -> Vec<u64> {
        if let Some(range) = self.active.remove(&id) {
            self.alone -= usize::from(range.alone);
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

    /// Somebody who would share his blocks could begin at once.
    pub fn is_open(&self, lba: u64, blocks: u64) -> bool {
        let range = Range { lba, end: lba.saturating_add(blocks), alone: false };
        self.alone == 0
            || !(self.active.values().chain(self.waiting.iter().map(|(_, other)| other)))
                .any(|other| range.conflicts(other))
    }

    /// Somebody who has to be alone could begin at once.
    pub fn is_empty_at(&self, lba: u64, blocks: u64) -> bool {
        let range = Range { lba, end: lba.saturating_add(blocks), alone: true };
        !(self.active.values().chain(self.waiting.iter().map(|(_, other)| other))).any(|other| range.conflicts(other))
    }

    /// Somebody who is at work shares his blocks with nobody who begins from now on.
    pub fn seize(&mut self, id: u64) {
        if let Some(range) = self.active.get_mut(&id) {
            self.alone += usize::from(!std::mem::replace(&mut range.alone, true));
        }
    }

    /// Nobody is at work and nobody waits.
    pub fn is_idle(&self) -> bool {
        self.active.is_empty() && self.waiting.is_empty()
    }
}

/// Work on blocks of a volume that is not done by a job: it holds the map that it began on, and its place in the order. To be given
/// back with [`Volumes::release`](super::Volumes::release).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Claim {
    pub(super) volume: VolumeId,
    pub(super) id: u64,
    pub(super) epoch: EpochId,
}

impl Claim {
    /// The map on which the work began.
    pub fn epoch(&self) -> EpochId {
        self.epoch
    }
}

/// The orders of all volumes, and who may begin because somebody else has ended.
#[derive(Debug, Default)]
pub(super) struct Orders {
    of: BTreeMap<VolumeId, RangeOrder>,
    ready: VecDeque<u64>,
}

impl Orders {
    pub(super) fn begin(&mut self, volume: VolumeId, id: u64, lba: u64, blocks: u64, alone: bool) -> bool {
        self.of.entry(volume).or_default().begin(id, lba, blocks, alone)
    }

    pub(super) fn is_open(&self, volume: VolumeId, lba: u64, blocks: u64) -> bool {
        self.of.get(&volume).is_none_or(|order| order.is_open(lba, blocks))
    }

    /// Nobody is there at all.
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
                self.of.remove(&volume);
            }
        }
    }

    /// The next whose turn it is.
    pub(super) fn next_ready(&mut self) -> Option<u64> {
        self.ready.pop_front()
    }

    /// Nobody is at work on any volume.
    pub(super) fn is_idle(&self) -> bool {
        self.of.values().all(RangeOrder::is_idle)
    }
}
