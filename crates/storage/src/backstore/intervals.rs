//! Sets of blocks as ranges.

use std::collections::BTreeMap;

/// A set of blocks. Ranges that touch become one.
#[derive(Clone, Debug, Default)]
pub(super) struct Intervals {
    /// Block behind the last one of each range, by its first block.
    ranges: BTreeMap<u64, u64>,
    blocks: u64,
}

impl Intervals {
    pub fn insert(&mut self, first: u64, blocks: u64) {
        let (mut from, mut to) = (first, first + blocks);
        while let Some((&start, &end)) = self.ranges.range(..=to).next_back().filter(|(_, end)| **end >= from) {
            (from, to) = (from.min(start), to.max(end));
            self.ranges.remove(&start);
            self.blocks -= end - start;
        }
        self.ranges.insert(from, to);
        self.blocks += to - from;
    }

    pub fn remove(&mut self, first: u64, blocks: u64) {
        let (from, to) = (first, first + blocks);
        while let Some((&start, &end)) = self.ranges.range(..to).next_back().filter(|(_, end)| **end > from) {
            self.ranges.remove(&start);
            self.blocks -= end.min(to) - start.max(from);
            if start < from {
                self.ranges.insert(start, from);
            }
            if end > to {
                self.ranges.insert(to, end);
            }
        }
    }

    pub fn overlaps(&self, first: u64, blocks: u64) -> bool {
        self.ranges.range(..first + blocks).next_back().is_some_and(|(_, end)| *end > first)
    }

    /// Returns the first block of the set in a range.
    pub fn first(&self, first: u64, blocks: u64) -> Option<u64> {
        let holds = self.ranges.range(..=first).next_back().is_some_and(|(_, end)| *end > first);
        if holds {
            return Some(first);
        }
        self.ranges.range(first..first + blocks).next().map(|(start, _)| *start)
    }

    /// Number of blocks.
    pub fn blocks(&self) -> u64 {
        self.blocks
    }

    /// First block and number of blocks of each range, in ascending order.
    pub fn iter(&self) -> impl Iterator<Item = (u64, u64)> {
        self.ranges.iter().map(|(start, end)| (*start, end - start))
    }
}

#[cfg(test)]
mod tests {
    use super::Intervals;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn ranges_hold_the_blocks_of_a_plain_set(
            steps in prop::collection::vec((any::<bool>(), 0..60_u64, 1..20_u64), 1..60),
            first in 0..70_u64, count in 1..20_u64,
        ) {
            let (mut set, mut plain) = (Intervals::default(), [false; 100]);
            for (is_insert, from, blocks) in steps {
                if is_insert { set.insert(from, blocks) } else { set.remove(from, blocks) }
                plain[from as usize..(from + blocks) as usize].fill(is_insert);
                let found: Vec<u64> = set.iter().flat_map(|(from, blocks)| from..from + blocks).collect();
                let expected: Vec<u64> = (0..100).filter(|block| plain[*block as usize]).collect();
                prop_assert_eq!(set.blocks(), expected.len() as u64);
                prop_assert_eq!(found, expected);
            }
            let expected = (first..first + count).find(|block| plain[*block as usize]);
            prop_assert_eq!(set.first(first, count), expected);
            prop_assert_eq!(set.overlaps(first, count), expected.is_some());
        }
    }
}
