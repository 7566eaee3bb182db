//! Who may be at work on which blocks at once: [`RangeOrder`].

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

    /// Nobody is at work and nobody waits.
    pub fn is_idle(&self) -> bool {
        self.active.is_empty() && self.waiting.is_empty()
    }
}
