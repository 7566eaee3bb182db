//! Segments of the on-board cache, each with adjacent blocks.

/// Cached blocks `start_lbn..end_lbn`; empty if both are equal.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Segment {
    /// First cached block.
    pub start_lbn: u64,
    /// Address behind the last cached block.
    pub end_lbn: u64,
    /// Sequence number of the last use.
    used: u64,
    /// True if a write filled the segment.
    is_written: bool,
}

/// All segments; the least recently used one is replaced.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Segments {
    segments: Vec<Segment>,
    blocks: u64,
    written: usize,
    keeps_read: bool,
    uses: u64,
}

impl Segments {
    /// Creates empty segments of `blocks` each, of which writes may fill `written`.
    pub fn new(segments: usize, blocks: u64, written: usize, keeps_read: bool) -> Segments {
        let written = written.min(segments);
        let keeps_read = keeps_read && written > 0;
        Segments { segments: vec![Segment::default(); segments], blocks, written, keeps_read, uses: 0 }
    }

    /// Returns the segment.
    pub fn get(&self, index: usize) -> Segment {
        self.segments[index]
    }

    /// Returns the segment that holds `lbn`, or that ends just before it.
    pub fn find(&self, lbn: u64) -> Option<usize> {
        let mut ending = None;
        for (index, segment) in self.segments.iter().enumerate() {
            if lbn <= segment.end_lbn && segment.start_lbn <= lbn && segment.used > 0 {
                if lbn < segment.end_lbn {
                    return Some(index);
                }
                ending = ending.or(Some(index));
            }
        }
        ending
    }

    /// Marks the segment as the most recently used one.
    pub fn touch(&mut self, index: usize) {
        self.uses += 1;
        self.segments[index].used = self.uses;
    }

    /// Empties the least recently used segment for a read that starts at `lbn`.
    pub fn take(&mut self, lbn: u64) -> Option<usize> {
        let index = self.oldest(|_| true)?;
        self.segments[index] = Segment { start_lbn: lbn, end_lbn: lbn, used: 0, is_written: false };
        self.touch(index);
        Some(index)
    }

    /// Extends a segment to `end_lbn`, and discards its oldest blocks if it is full.
    pub fn extend(&mut self, index: usize, end_lbn: u64) {
        let segment = &mut self.segments[index];
        segment.end_lbn = segment.end_lbn.max(end_lbn);
        segment.start_lbn = segment.start_lbn.max(segment.end_lbn.saturating_sub(self.blocks));
    }

    /// Discards blocks below `end_lbn`, because the host has read them.
    pub fn discard_read(&mut self, index: usize, end_lbn: u64) {
        let segment = &mut self.segments[index];
        segment.start_lbn = segment.start_lbn.max(end_lbn.min(segment.end_lbn));
    }

    /// Stores written blocks in a segment for writes, if there is one.
    ///
    /// A segment that holds some of them keeps only the blocks behind them. If the disk keeps
    /// blocks that the host has read, and holds written blocks, it changes them in place instead.
    pub fn write(&mut self, lbn: u64, blocks: u64) {
        let end_lbn = lbn + blocks;
        let appended = self.segments.iter().position(|segment| segment.is_written && segment.end_lbn == lbn);
        for segment in &mut self.segments {
            let overlaps = segment.start_lbn < end_lbn && lbn < segment.end_lbn;
            if overlaps && !self.keeps_read {
                segment.start_lbn = end_lbn.min(segment.end_lbn);
            }
        }
        let written = self.segments.iter().filter(|segment| segment.is_written).count();
        let at_limit = written >= self.written;
        let index = match appended {
            Some(index) => Some(index),
            None if self.written == 0 => None,
            None => self.oldest(|segment| !at_limit || segment.is_written).inspect(|&index| {
                self.segments[index] = Segment { start_lbn: lbn, end_lbn: lbn, used: 0, is_written: true };
            }),
        };
        if let Some(index) = index {
            self.extend(index, end_lbn);
            self.touch(index);
        }
    }

    fn oldest(&self, is_allowed: impl Fn(&Segment) -> bool) -> Option<usize> {
        let allowed = self.segments.iter().enumerate().filter(|(_, segment)| is_allowed(segment));
        allowed.min_by_key(|(_, segment)| segment.used).map(|(index, _)| index)
    }
}
