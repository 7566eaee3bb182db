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

/// Blocks that a stream asks to read ahead.
#[derive(Clone, Copy, Debug)]
pub(super) struct Ahead {
    stream: usize,
    pub(super) from: u64,
    pub(super) end: u64,
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

    /// Records the accepted blocks of a read. Returns the blocks to read ahead, if any;
    /// [`Streams::fetched`] must follow.
    ///
    /// A read whose rest is repeated later counts when it is complete, and causes no read-ahead
    /// before.
    ///
    /// Read-ahead starts again when less than half of its distance is left, so that its back-end
    /// reads are large.
    pub(super) fn read(&mut self, lba: u64, blocks: u32, is_complete: bool) -> Option<Ahead> {
        if blocks == 0 {
            return None;
        }
        self.reads += 1;
        let end = lba.saturating_add(u64::from(blocks));
        let Some(at) = self.streams.iter().position(|stream| stream.next == lba) else {
            self.begin(end, is_complete);
            return None;
        };
        let stream = &mut self.streams[at];
        stream.next = end;
        stream.reads = stream.reads.saturating_add(u32::from(is_complete));
        stream.used = self.reads;
        let distance = u64::from(self.settings.blocks);
        stream.ahead = stream.ahead.max(end);
        if !is_complete || stream.reads < self.settings.trigger || (stream.ahead - end) * 2 >= distance {
            return None;
        }
        Some(Ahead { stream: at, from: stream.ahead, end: end.saturating_add(distance) })
    }

    /// Records how far blocks were read ahead.
    pub(super) fn fetched(&mut self, ahead: Ahead, end: u64) {
        self.streams[ahead.stream].ahead = end;
    }

    fn begin(&mut self, next: u64, is_complete: bool) {
        let stream = Stream { next, ahead: next, reads: u32::from(is_complete), used: self.reads };
        if self.streams.len() < self.settings.streams {
            self.streams.push(stream);
        } else if let Some(oldest) = self.streams.iter_mut().min_by_key(|stream| stream.used) {
            *oldest = stream;
        }
    }
}
