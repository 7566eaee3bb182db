//! Set of extents of a LUN: [`Extents`].

use std::collections::BTreeMap;

/// Set of extents of one LUN, stored as runs that neither touch nor overlap.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub(super) struct Extents {
    /// First extent of each run, and number of extents.
    runs: BTreeMap<u64, u64>,
}

impl Extents {
    /// Number of extents in the set.
    pub(super) fn count(&self) -> u64 {
        self.runs.values().sum()
    }

    /// One more than the last extent, or 0.
    pub(super) fn end(&self) -> u64 {
        self.runs.last_key_value().map_or(0, |(first, count)| first + count)
    }

    /// Inserts extents. Returns false without a change if one of them is in the set already.
    pub(super) fn insert(&mut self, mut first: u64, mut count: u64) -> bool {
        let end = first + count;
        let (before, behind) = (self.runs.range(..end).next_back(), self.runs.get(&end).copied());
        if let Some((&of, &has)) = before {
            if of + has > first {
                return false;
            }
            if of + has == first {
                (first, count) = (of, has + count);
            }
        }
        if let Some(has) = behind {
            self.runs.remove(&end);
            count += has;
        }
        self.runs.insert(first, count);
        true
    }

    /// Inserts those extents that are not in the set yet.
    pub(super) fn insert_missing(&mut self, first: u64, count: u64) {
        for extent in first..first + count {
            self.insert(extent, 1);
        }
    }

    /// Returns the first run, limited to `most` extents.
    pub(super) fn first_run(&self, most: u64) -> Option<(u64, u64)> {
        self.runs.first_key_value().map(|(first, count)| (*first, most.min(*count)))
    }

    /// Removes extents, all of which are in the set.
    pub(super) fn remove(&mut self, first: u64, count: u64) {
        let Some((&of, &has)) = self.runs.range(..=first).next_back() else { return };
        self.runs.remove(&of);
        if of < first {
            self.runs.insert(of, first - of);
        }
        if of + has > first + count {
            self.runs.insert(first + count, of + has - (first + count));
        }
    }

    /// Returns the first run of missing extents below `limit`.
    pub(super) fn first_gap(&self, limit: u64) -> Option<(u64, u64)> {
        let mut next = 0;
        for (&first, &count) in &self.runs {
            if first > next {
                return Some((next, first.min(limit) - next)).filter(|_| next < limit);
            }
            next = first + count;
        }
        (next < limit).then(|| (next, limit - next))
    }
}
