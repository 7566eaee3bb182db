//! The receiving half: order, acknowledgements, the offered window, marks.

use super::config::Config;
use super::ranges::Ranges;
use super::segment::{Block, Ecn, Flags, Sack, Segment};
use sanloom_scsi::time::{Instant, Span};

/// Receiving half of a connection.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct Receive {
    /// RCV.NXT: next position in order.
    pub(super) nxt: u64,
    /// Begin of the current measurement of the application's rate.
    tuned_at: Instant,
    /// Missing data; allocated with the first gap, then kept.
    gaps: Option<Box<Reassembly>>,
    /// Bytes in order that the application has not consumed.
    pub(super) unread: u32,
    /// RCV.WND: positions behind `nxt` that the peer may use.
    pub(super) window: u32,
    /// Positions below `nxt` that are not yet acknowledged.
    pub(super) pending: u32,
    /// Size of the receive buffer in bytes.
    buffer: u32,
    /// Bytes that the application has consumed since `tuned_at`.
    consumed: u32,
    /// TS.Recent (RFC 7323, section 4.3).
    pub(super) recent_stamp: u32,
    /// Largest payload of one segment so far.
    full: u16,
    /// Window scale of this end.
    pub(super) scale: u8,
    /// An acknowledgement leaves as soon as possible.
    pub(super) ack_now: bool,
    /// A mark is echoed until the peer reports a reduction; DCTCP: the last segment was marked.
    pub(super) echo: bool,
}

/// Data above a gap.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
struct Reassembly {
    ranges: Ranges,
    /// One position in each of the blocks that were changed last, newest first; zero: none.
    newest: [u64; Sack::MAX],
    /// Position of a FIN that arrived out of order; zero: none.
    fin: u64,
}

impl Receive {
    pub(super) fn new(config: &Config) -> Receive {
        Receive {
            nxt: 0,
            tuned_at: Instant::NEVER,
            gaps: None,
            unread: 0,
            window: 0,
            pending: 0,
            buffer: config.receive_buffer.initial.min(1 << 30),
            consumed: 0,
            recent_stamp: 0,
            full: 0,
            scale: 0,
            ack_now: false,
            echo: false,
        }
    }

    /// Receive buffer in bytes.
    pub(super) fn buffer(&self) -> u32 {
        self.buffer
    }
    /// Returns true if data are missing.
    pub(super) fn has_gap(&self) -> bool {
        self.gaps.as_ref().is_some_and(|gaps| !gaps.ranges.is_empty())
    }

    /// Returns the window scale that the largest buffer needs (RFC 7323, section 2.3).
    pub(super) fn wanted_scale(config: &Config) -> u8 {
        let max = config.receive_buffer.max.max(config.receive_buffer.initial).min(1 << 30);
        (0..14).find(|scale| max >> scale <= 65_535).unwrap_or(14)
    }

    /// Returns true if the segment may contain new data (RFC 9293, section 3.10.7.4, first check).
    pub(super) fn is_acceptable(&self, segment: &Segment) -> bool {
        let (start, end) = (segment.position, segment.end());
        let edge = self.nxt + u64::from(self.window);
        match (start == end, self.window) {
            (true, 0) => start == self.nxt,
            (true, _) => (self.nxt..edge).contains(&start),
            (false, 0) => false,
            (false, _) => start < edge && end > self.nxt,
        }
    }

    /// Takes the payload and the FIN of an acceptable segment. Returns true if the FIN is in order.
    pub(super) fn take(&mut self, segment: &Segment, config: &Config) -> bool {
        let edge = self.nxt + u64::from(self.window);
        let start = segment.position.max(self.nxt);
        let payload_end = segment.position.saturating_add(u64::from(segment.length));
        let end = payload_end.min(edge);
        let size = if segment.unit == 0 { segment.length } else { segment.length.min(u32::from(segment.unit)) };
        self.full = self.full.max(u16::try_from(size).unwrap_or(u16::MAX));
        let has_fin = segment.flags.has(Flags::FIN) && payload_end <= edge;
        if segment.position > self.nxt {
            self.keep(start, end, has_fin.then_some(payload_end));
            return false;
        }
        let mut next = end.max(self.nxt);
        let mut fin = has_fin.then_some(payload_end);
        if let Some(gaps) = self.gaps.as_mut().filter(|gaps| !gaps.ranges.is_empty() || gaps.fin > 0) {
            // A segment that fills a gap is acknowledged at once (RFC 5681, section 4.2).
            self.ack_now |= next > self.nxt;
            next = gaps.ranges.absorb(next);
            fin = fin.or((gaps.fin > 0).then_some(gaps.fin));
        }
        // A segment without new data is a repetition, so the acknowledgement was lost.
        self.ack_now |= next == self.nxt && segment.length > 0;
        let fresh = u32::try_from(next - self.nxt).unwrap_or(u32::MAX);
        self.nxt = next;
        self.window = self.window.saturating_sub(fresh);
        self.unread = self.unread.saturating_add(fresh);
        self.pending = self.pending.saturating_add(fresh);
        let due = u32::from(config.ack_every) * u32::from(self.full);
        self.ack_now |= self.pending > 0 && (config.ack_every <= 1 || self.pending >= due);
        if fin != Some(self.nxt) {
            return false;
        }
        // The FIN occupies a position; everything behind it is nonsense.
        self.nxt += 1;
        self.window = self.window.saturating_sub(1);
        self.ack_now = true;
        if let Some(gaps) = self.gaps.as_mut() {
            gaps.ranges.clear();
            gaps.fin = 0;
        }
        true
    }

    /// Keeps data above a gap.
    #[inline(never)]
    fn keep(&mut self, start: u64, end: u64, fin: Option<u64>) {
        self.ack_now = true;
        let gaps = self.gaps.get_or_insert_default();
        if let Some(fin) = fin {
            gaps.fin = fin;
        }
        if start >= end || gaps.ranges.insert(start, end, 0).is_none() {
            return;
        }
        let Some(block) = gaps.ranges.containing(start) else { return };
        let mut newest = [start, 0, 0, 0];
        let others = gaps.newest.iter().filter(|position| !(block.start..block.end).contains(*position));
        newest.iter_mut().skip(1).zip(others).for_each(|(slot, position)| *slot = *position);
        gaps.newest = newest;
    }

    /// Builds the SACK option with at most `room` blocks.
    pub(super) fn sack(&self, room: usize) -> Sack {
        let mut sack = Sack::default();
        let Some(gaps) = self.gaps.as_ref().filter(|gaps| !gaps.ranges.is_empty()) else { return sack };
        let positions = gaps.newest.iter().filter(|position| **position > self.nxt);
        for block in positions.filter_map(|position| gaps.ranges.containing(*position)).take(room) {
            if !sack.blocks().contains(&block) {
                sack.push(Block { start: block.start, end: block.end });
            }
        }
        sack
    }

    /// Updates the echo of marks with a segment that carries data. Returns true if an
    /// acknowledgement with the old echo must leave first (RFC 8257, section 3.2).
    pub(super) fn see_mark(&mut self, segment: &Segment, is_dctcp: bool) -> bool {
        let is_marked = segment.ecn == Ecn::Ce;
        if is_dctcp {
            let is_change = self.echo != is_marked && self.pending > 0;
            if !is_change {
                self.echo = is_marked;
            }
            return is_change;
        }
        if segment.flags.has(Flags::CWR) {
            self.echo = false;
        }
        self.echo |= is_marked;
        false
    }

    /// Returns the window field of the next segment, and offers that window to the peer.
    ///
    /// The right edge never moves back. It moves only by a full segment or half of the buffer (RFC
    /// 9293, section 3.8.6.2.2).
    pub(super) fn offer(&mut self, is_syn: bool) -> u16 {
        let free = self.buffer.saturating_sub(self.unread);
        let least = (self.buffer / 2).min(u32::from(self.full));
        let wanted = if is_syn || free >= self.window.saturating_add(least) { free } else { self.window };
        let scale = if is_syn { 0 } else { self.scale };
        // Rounding down may show the peer an edge that moves back. The window itself does not.
        let field = u16::try_from(wanted.max(self.window) >> scale).unwrap_or(u16::MAX);
        self.window = self.window.max(u32::from(field) << scale);
        self.pending = 0;
        self.ack_now = false;
        field
    }

    /// Takes `bytes` out of the buffer. Enlarges the buffer if the application consumes more than
    /// half of it in a round trip. Asks for a window update if the window has at least doubled.
    pub(super) fn consume(&mut self, now: Instant, bytes: u32, rtt: Option<Span>, config: &Config) -> u32 {
        let bytes = bytes.min(self.unread);
        self.unread -= bytes;
        if self.buffer < config.receive_buffer.max {
            self.tune(now, bytes, rtt, config.receive_buffer.max);
        }
        let free = self.buffer.saturating_sub(self.unread);
        let least = (self.buffer / 2).min(u32::from(self.full)).max(1);
        if bytes > 0 && free >= self.window.saturating_mul(2) && free >= self.window.saturating_add(least) {
            self.ack_now = true;
        }
        bytes
    }

    /// Dynamic right-sizing: the buffer holds twice the bytes that were consumed in a round trip.
    fn tune(&mut self, now: Instant, bytes: u32, rtt: Option<Span>, max: u32) {
        self.consumed = self.consumed.saturating_add(bytes);
        let Some(rtt) = rtt else { return };
        if self.tuned_at == Instant::NEVER {
            (self.tuned_at, self.consumed) = (now, 0);
        } else if now.since(self.tuned_at) >= rtt {
            self.buffer = self.buffer.max(self.consumed.saturating_mul(2)).min(max.min(1 << 30));
            (self.tuned_at, self.consumed) = (now, 0);
        }
    }
}
