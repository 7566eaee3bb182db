//! Blocks of the flash memory: valid pages, and lists by state.

use super::settings::Victim;

/// Index that stands for no block.
pub(super) const NONE: u32 = u32::MAX;

/// One erase block.
#[derive(Clone, Copy, Debug)]
struct Block {
    valid: u32,
    erases: u32,
    previous: u32,
    next: u32,
    is_full: bool,
}

/// Blocks of one unit. Full blocks are in lists: one in the order of filling, or one for each
/// number of valid pages.
#[derive(Clone, Debug)]
pub(super) struct Blocks {
    blocks: Vec<Block>,
    /// First and last block of each list.
    lists: Vec<(u32, u32)>,
    /// Erased blocks; the one erased first is used first, which spreads the wear.
    free: std::collections::VecDeque<u32>,
    /// No list below this number of valid pages has a block.
    fewest: usize,
    victim: Victim,
    pages: u32,
    /// Invalid pages of all full blocks.
    garbage: u64,
}

impl Blocks {
    pub(super) fn new(blocks: u32, pages: u32, victim: Victim) -> Blocks {
        let block = Block { valid: 0, erases: 0, previous: NONE, next: NONE, is_full: false };
        let lists = if victim == Victim::Greedy { pages as usize + 1 } else { 1 };
        Blocks {
            blocks: vec![block; blocks as usize],
            lists: vec![(NONE, NONE); lists],
            free: (0..blocks).collect(),
            fewest: lists,
            victim,
            pages,
            garbage: 0,
        }
    }

    pub(super) fn free(&self) -> usize {
        self.free.len()
    }

    pub(super) fn take_free(&mut self) -> Option<u32> {
        self.free.pop_front()
    }

    pub(super) fn valid(&self, block: u32) -> u32 {
        self.blocks[block as usize].valid
    }

    /// Valid pages of all blocks.
    pub(super) fn all_valid(&self) -> u64 {
        self.blocks.iter().map(|block| u64::from(block.valid)).sum()
    }

    /// Returns whether garbage collection can gain a page.
    pub(super) fn has_garbage(&self) -> bool {
        self.garbage > 0
    }

    /// Numbers of erases of all blocks.
    pub(super) fn erases(&self) -> impl Iterator<Item = u32> {
        self.blocks.iter().map(|block| block.erases)
    }

    fn list_of(&self, block: u32) -> usize {
        if self.victim == Victim::Greedy { self.blocks[block as usize].valid as usize } else { 0 }
    }

    fn link(&mut self, block: u32) {
        let list = self.list_of(block);
        let (first, last) = &mut self.lists[list];
        let previous = std::mem::replace(last, block);
        if previous == NONE {
            *first = block;
        } else {
            self.blocks[previous as usize].next = block;
        }
        let entry = &mut self.blocks[block as usize];
        (entry.previous, entry.next) = (previous, NONE);
        self.fewest = self.fewest.min(list);
    }

    fn unlink(&mut self, block: u32) {
        let list = self.list_of(block);
        let Block { previous, next, .. } = self.blocks[block as usize];
        if previous == NONE {
            self.lists[list].0 = next;
        } else {
            self.blocks[previous as usize].next = next;
        }
        if next == NONE {
            self.lists[list].1 = previous;
        } else {
            self.blocks[next as usize].previous = previous;
        }
    }

    pub(super) fn add_valid(&mut self, block: u32) {
        self.blocks[block as usize].valid += 1;
    }

    pub(super) fn remove_valid(&mut self, block: u32) {
        let is_full = self.blocks[block as usize].is_full;
        self.garbage += u64::from(is_full);
        if is_full && self.victim == Victim::Greedy {
            self.unlink(block);
            self.blocks[block as usize].valid -= 1;
            self.link(block);
        } else {
            self.blocks[block as usize].valid -= 1;
        }
    }

    /// Makes a block whose last page was programmed a candidate of garbage collection.
    pub(super) fn set_full(&mut self, block: u32) {
        self.blocks[block as usize].is_full = true;
        self.garbage += u64::from(self.pages - self.valid(block));
        self.link(block);
    }

    /// Block to collect next.
    pub(super) fn victim(&mut self) -> Option<u32> {
        while self.fewest < self.lists.len() {
            let (first, last) = self.lists[self.fewest];
            let block = if self.victim == Victim::Greedy { last } else { first };
            if block != NONE {
                return Some(block);
            }
            self.fewest += 1;
        }
        None
    }

    /// Takes a block out of the candidates. The caller moves its pages, which no longer count here.
    pub(super) fn begin_collection(&mut self, block: u32) {
        self.unlink(block);
        self.blocks[block as usize].is_full = false;
        self.garbage -= u64::from(self.pages - self.valid(block));
        self.blocks[block as usize].valid = 0;
    }

    pub(super) fn erase(&mut self, block: u32) {
        self.blocks[block as usize].erases += 1;
        self.free.push_back(block);
    }
}
