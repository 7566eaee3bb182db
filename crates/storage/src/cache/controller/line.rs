//! State of the lines, and the dirty lines in order.

use super::super::slots::NONE;
use super::ordered::Ordered;

/// Sectors of one line, as bit masks with sector 0 in bit 0.
#[derive(Clone, Copy, Default, Debug)]
pub(super) struct Line {
    pub(super) valid: u64,
    /// Dirty sectors without a destage of their newest data in flight.
    pub(super) dirty: u64,
    /// Sectors with a destage in flight.
    pub(super) writing: u64,
    /// Sectors with a fetch in flight whose data they need.
    pub(super) filling: u64,
    /// Sectors with a fetch in flight that were overwritten since its start.
    pub(super) superseded: u64,
    /// Sectors without data because their last fetch failed.
    pub(super) failed: u64,
    /// Sectors read ahead and not read by a host yet.
    pub(super) ahead: u64,
    /// The line is in the list of lines that destages made clean.
    pub(super) is_listed: bool,
}

impl Line {
    /// Sectors that a destage may take.
    pub(super) fn destageable(&self) -> u64 {
        self.dirty & !self.writing & !self.filling
    }

    /// Returns whether the line may be evicted without a destage.
    pub(super) fn is_clean(&self) -> bool {
        self.dirty == 0 && !self.is_in_flight()
    }

    pub(super) fn is_in_flight(&self) -> bool {
        self.writing | self.filling | self.superseded != 0
    }

    /// Records that a host overwrote these sectors.
    pub(super) fn overwrite(&mut self, sectors: u64) {
        self.valid |= sectors;
        self.failed &= !sectors;
        self.superseded |= self.filling & sectors;
        self.filling &= !sectors;
    }
}

/// Neighbours of a line in the order of age.
#[derive(Clone, Copy, Debug)]
struct Link {
    older: u32,
    newer: u32,
    since_ps: u64,
    is_linked: bool,
}

const UNLINKED: Link = Link { older: NONE, newer: NONE, since_ps: 0, is_linked: false };

/// Lines with destageable sectors, in the order of age, and of address if asked for.
#[derive(Clone, Debug)]
pub(super) struct DirtyLines {
    links: Vec<Link>,
    oldest: u32,
    newest: u32,
    /// Numbers of the dirty lines; empty unless destaging is in the order of addresses.
    keys: Ordered,
    has_keys: bool,
    pub(super) len: u64,
}

impl DirtyLines {
    pub(super) fn new(has_keys: bool) -> DirtyLines {
        DirtyLines { links: Vec::new(), oldest: NONE, newest: NONE, keys: Ordered::new(), has_keys, len: 0 }
    }

    pub(super) fn insert(&mut self, slot: u32, key: u64, now_ps: u64) {
        if self.links.len() <= slot as usize {
            self.links.resize(slot as usize + 1, UNLINKED);
        }
        if self.links[slot as usize].is_linked {
            return;
        }
        self.links[slot as usize] = Link { older: self.newest, newer: NONE, since_ps: now_ps, is_linked: true };
        match self.newest {
            NONE => self.oldest = slot,
            newest => self.links[newest as usize].newer = slot,
        }
        self.newest = slot;
        self.len += 1;
        if self.has_keys {
            self.keys.insert(slot, key);
        }
    }

    pub(super) fn remove(&mut self, slot: u32) {
        let Some(&Link { older, newer, is_linked: true, .. }) = self.links.get(slot as usize) else { return };
        match older {
            NONE => self.oldest = newer,
            older => self.links[older as usize].newer = newer,
        }
        match newer {
            NONE => self.newest = older,
            newer => self.links[newer as usize].older = older,
        }
        self.links[slot as usize] = UNLINKED;
        self.len -= 1;
        if self.has_keys {
            self.keys.remove(slot);
        }
    }

    /// Line that has been dirty for the longest time, and the time since when, in picoseconds.
    pub(super) fn oldest(&self) -> Option<(u32, u64)> {
        (self.oldest != NONE).then(|| (self.oldest, self.links[self.oldest as usize].since_ps))
    }

    /// Slot of the first dirty line from line number `key` on, or else of the lowest one.
    pub(super) fn next(&self, key: u64) -> Option<u32> {
        self.keys.next(key)
    }
}
