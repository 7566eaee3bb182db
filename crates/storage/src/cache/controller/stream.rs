//! Detection of sequential streams.

use super::settings::ReadAheadSettings;

/// One sequential stream.
#[derive(Clone, Copy, Debug)]
struct Stream {
    /// Block after the last read.
    next: u64,
    /// Block after the last one read ahead.
    ahead: u64,
    /// Consecutive reads, the first included.
    reads: u32,
    /// Number of the last read, for the choice of the stream to replace.
    used: u64,
}

/// Table of streams. A read that continues no stream replaces the one used least recently.
#[derive(Clone, Debug)]
pub(super) struct Streams {
    settings: ReadAheadSettings,
    streams: Vec<Stream>,
    reads: u64,
}

impl Streams {
    pub(super) fn new(settings: ReadAheadSettings) -> Streams {
        Streams { settings, streams: Vec::with_capacity(settings.streams), reads: 0 }
    }

    /// Records a read. Returns the blocks to read ahead as first block and end, if any.
    ///
    /// Read-ahead starts again when less than half of its distance is left, so that its back-end
    /// reads are large.
    pub(super) fn read(&mut self, lba: u64, blocks: u32) -> Option<(u64, u64)> {
        self.reads += 1;
        let end = lba + u64::from(blocks);
        let Some(stream) = self.streams.iter_mut().find(|stream| stream.next == lba) else {
            self.begin(end);
            return None;
        };
        stream.next = end;
        stream.reads += 1;
        stream.used = self.reads;
        let distance = u64::from(self.settings.blocks);
        stream.ahead = stream.ahead.max(end);
        if stream.reads < self.settings.trigger || (stream.ahead - end) * 2 >= distance {
            return None;
        }
        let from = std::mem::replace(&mut stream.ahead, end + distance);
        Some((from, end + distance))
    }

    fn begin(&mut self, next: u64) {
        let stream = Stream { next, ahead: next, reads: 1, used: self.reads };
        if self.streams.len() < self.settings.streams {
            self.streams.push(stream);
        } else if let Some(oldest) = self.streams.iter_mut().min_by_key(|stream| stream.used) {
            *oldest = stream;
        }
    }
}
