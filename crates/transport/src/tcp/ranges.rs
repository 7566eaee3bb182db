//! Sorted, disjoint ranges of stream positions.

use super::segment::Block;
use std::collections::VecDeque;

/// Maximum number of ranges. A peer that causes more is ignored, so memory stays bounded.
const MAX: usize = 4096;

/// Sorted ranges that neither overlap nor touch.
///
/// A list keeps its memory when it becomes empty, so a warm connection does not allocate.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub(super) struct Ranges {
    list: VecDeque<Block>,
}

impl Ranges {
    pub(super) fn is_empty(&self) -> bool {
        self.list.is_empty()
    }
    pub(super) fn iter(&self) -> impl DoubleEndedIterator<Item = &Block> {
        self.list.iter()
    }
    pub(super) fn clear(&mut self) {
        self.list.clear();
    }

    /// Index of the first range that ends at or behind `position`.
    fn find(&self, position: u64) -> usize {
        // New data extend the last range or follow it, so the search begins there.
        match self.list.back() {
            Some(last) if last.end < position => self.list.len(),
            Some(last) if last.start < position => self.list.len() - 1,
            _ => self.list.partition_point(|range| range.end < position),
        }
    }

    /// Adds a range. Returns the number of new positions in total and below `split`, or `None` if
    /// the list is full.
    pub(super) fn insert(&mut self, start: u64, end: u64, split: u64) -> Option<(u64, u64)> {
        if start >= end {
            return Some((0, 0));
        }
        let first = self.find(start);
        let (mut low, mut high, mut last) = (start, end, first);
        let (mut known, mut known_below) = (0, 0);
        while let Some(range) = self.list.get(last).filter(|range| range.start <= end) {
            known += range.end.min(end).saturating_sub(range.start.max(start));
            let cut = end.min(split);
            known_below += range.end.min(cut).saturating_sub(range.start.max(start));
            low = low.min(range.start);
            high = high.max(range.end);
            last += 1;
        }
        let merged = Block { start: low, end: high };
        if first == last {
            if self.list.len() >= MAX {
                return None;
            }
            self.list.insert(first, merged);
        } else {
            self.list[first] = merged;
            self.list.drain(first + 1..last);
        }
        let below = end.min(split).saturating_sub(start);
        Some((end - start - known, below - known_below))
    }

    /// Removes all positions below `position`. Returns their number.
    pub(super) fn remove_below(&mut self, position: u64) -> u64 {
        let mut removed = 0;
        while let Some(range) = self.list.front_mut().filter(|range| range.start < position) {
            if range.end > position {
                removed += position - range.start;
                range.start = position;
                break;
            }
            removed += range.end - range.start;
            self.list.pop_front();
        }
        removed
    }

    /// Removes the range that holds `position` and everything below it. Returns the end of that
    /// range, or `position` if no range holds it.
    pub(super) fn absorb(&mut self, position: u64) -> u64 {
        self.remove_below(position);
        match self.list.front() {
            Some(range) if range.start <= position => {
                let end = range.end;
                self.list.pop_front();
                end
            }
            _ => position,
        }
    }

    /// Returns the first range of missing positions at or behind `from`, cut at `limit`.
    pub(super) fn gap(&self, from: u64, limit: u64) -> Option<Block> {
        let mut start = from;
        // `find` also returns a range that only touches `from`; such a range is behind us.
        let mut index = self.find(from);
        while let Some(range) = self.list.get(index).filter(|range| range.start <= start) {
            start = start.max(range.end);
            index += 1;
        }
        let end = self.list.get(index).map_or(limit, |range| range.start).min(limit);
        (start < end).then_some(Block { start, end })
    }

    /// Returns the range that holds `position`.
    pub(super) fn containing(&self, position: u64) -> Option<Block> {
        self.list.get(self.find(position + 1)).copied().filter(|range| range.start <= position)
    }

    /// Number of positions at or above `position`.
    pub(super) fn above(&self, position: u64) -> u64 {
        let ranges = self.list.iter().rev().take_while(|range| range.end > position);
        ranges.map(|range| range.end - range.start.max(position)).sum()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::BTreeSet;

    proptest! {
        /// The list agrees with a plain set of positions.
        #[test]
        fn ranges_are_a_set_of_positions(steps in proptest::collection::vec((0u8..4, 0u64..60, 1u64..12), 1..80)) {
            let (mut ranges, mut set) = (Ranges::default(), BTreeSet::new());
            for (kind, at, length) in steps {
                match kind {
                    0 | 1 => {
                        let split = at + length / 2;
                        let new: Vec<u64> = (at..at + length).filter(|p| set.insert(*p)).collect();
                        let below = new.iter().filter(|p| **p < split).count() as u64;
                        prop_assert_eq!(ranges.insert(at, at + length, split), Some((new.len() as u64, below)));
                    }
                    2 => {
                        let gone = set.iter().filter(|p| **p < at).count() as u64;
                        set.retain(|p| *p >= at);
                        prop_assert_eq!(ranges.remove_below(at), gone);
                    }
                    _ => {
                        let start = (at..at + length).find(|p| !set.contains(p));
                        let found = ranges.gap(at, at + length);
                        prop_assert_eq!(found.map(|gap| gap.start), start);
                        let end = start.map(|s| (s..at + length).find(|p| set.contains(p)).unwrap_or(at + length));
                        prop_assert_eq!(found.map(|gap| gap.end), end);
                        prop_assert_eq!(ranges.above(at), set.range(at..).count() as u64);
                        prop_assert_eq!(ranges.containing(at).is_some(), set.contains(&at));
                    }
                }
                let held: Vec<u64> = ranges.iter().flat_map(|range| range.start..range.end).collect();
                prop_assert_eq!(held, set.iter().copied().collect::<Vec<_>>());
                let touching = ranges.list.iter().zip(ranges.list.iter().skip(1)).any(|(a, b)| a.end >= b.start);
                prop_assert!(!touching);
            }
        }
    }
}
