//! The sender's knowledge of lost segments (RFC 6675).
//!
//! A byte is lost if three SACKed ranges, or more than two segments of SACKed bytes, lie above it.
//! All bytes below a lost byte are lost or SACKed, so one position, `lost_edge`, divides both. The
//! scoreboard keeps sums, so an acknowledgement costs a search and not a walk over the window.

use super::ranges::Ranges;
use super::segment::Block;

/// Number of SACKed ranges, or of duplicate acknowledgements, above a lost segment.
pub(super) const DUPLICATES: u16 = 3;

/// SACKed ranges, lost and retransmitted positions. Allocated with the first loss, then kept.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub(super) struct Scoreboard {
    sacked: Ranges,
    /// SACKed bytes below `high_rxt`.
    below: u64,
    /// HighRxt: lost bytes below this position were sent again.
    pub(super) high_rxt: u64,
    /// Bytes below this position are lost, unless SACKed.
    pub(super) lost_edge: u64,
    /// RecoveryPoint: fast recovery ends when this position is acknowledged.
    pub(super) recover: u64,
    /// The rescue retransmission of this recovery was sent.
    pub(super) rescued: bool,
    pub(super) retransmissions: u64,
    pub(super) timeouts: u32,
    pub(super) recoveries: u32,
    pub(super) marks: u32,
}

impl Scoreboard {
    /// Takes SACK blocks. Returns new SACKed bytes and the number of blocks outside of the data in
    /// flight.
    pub(super) fn update(&mut self, blocks: &[Block], una: u64, nxt: u64) -> (u64, u32) {
        let (mut bytes, mut ignored) = (0, 0);
        for block in blocks {
            if block.start < una || block.end > nxt || block.start >= block.end {
                // A block below `una` reports a duplicate (RFC 2883) or is late.
                ignored += u32::from(block.end > nxt || block.start >= block.end);
                continue;
            }
            match self.sacked.insert(block.start, block.end, self.high_rxt) {
                Some((new, new_below)) => {
                    bytes += new;
                    self.below += new_below;
                }
                None => ignored += 1,
            }
        }
        (bytes, ignored)
    }

    /// Removes acknowledged positions. Returns the SACKed bytes among them.
    pub(super) fn advance(&mut self, una: u64) -> u64 {
        let removed = self.sacked.remove_below(una);
        if una >= self.high_rxt {
            (self.high_rxt, self.below) = (una, 0);
        } else {
            self.below -= removed;
        }
        self.lost_edge = self.lost_edge.max(una);
        removed
    }

    /// Moves `lost_edge` up to the first byte that is not yet known to be lost.
    pub(super) fn find_lost(&mut self, unit: u32) {
        let (mut bytes, mut ranges) = (0, 0);
        for range in self.sacked.iter().rev() {
            bytes += range.end - range.start;
            ranges += 1;
            if ranges >= DUPLICATES || bytes > u64::from(DUPLICATES - 1) * u64::from(unit) {
                self.lost_edge = self.lost_edge.max(range.start);
                return;
            }
        }
    }

    /// Pipe: bytes that are probably in the network.
    pub(super) fn in_flight(&self, una: u64, nxt: u64) -> u64 {
        let edge = self.lost_edge.max(una);
        let fresh = nxt.saturating_sub(edge).saturating_sub(self.sacked.above(edge));
        let again = self.high_rxt.saturating_sub(una).saturating_sub(self.below);
        fresh + again
    }

    /// Returns the next lost bytes that were not sent again (NextSeg, rule 1).
    pub(super) fn next_lost(&self, una: u64) -> Option<Block> {
        let from = self.high_rxt.max(una);
        if from >= self.lost_edge { None } else { self.sacked.gap(from, self.lost_edge) }
    }

    /// Returns bytes below the highest SACKed position that were not sent again (rule 3).
    pub(super) fn next_doubtful(&self, una: u64) -> Option<Block> {
        let highest = self.sacked.iter().next_back().map(|range| range.start)?;
        let from = self.high_rxt.max(una);
        if from >= highest { None } else { self.sacked.gap(from, highest) }
    }

    /// Returns the last bytes in flight, at most `unit` (rule 4).
    pub(super) fn tail(&self, una: u64, nxt: u64, unit: u32) -> Option<Block> {
        let start = nxt.saturating_sub(u64::from(unit)).max(una);
        self.sacked.gap(start, nxt)
    }

    /// Records that `block`, which the scoreboard returned, was sent again.
    pub(super) fn sent_again(&mut self, block: Block) {
        self.below += block.start.saturating_sub(self.high_rxt);
        self.high_rxt = block.end;
    }

    /// Begins fast recovery.
    pub(super) fn begin(&mut self, una: u64, nxt: u64) {
        self.forget_retransmissions(una);
        (self.recover, self.rescued) = (nxt, false);
    }

    /// Marks everything in flight as lost and not sent again, except SACKed bytes.
    pub(super) fn lose_all(&mut self, una: u64, nxt: u64) {
        self.forget_retransmissions(una);
        (self.lost_edge, self.recover, self.rescued) = (nxt, nxt, true);
    }

    /// Marks the oldest segment as lost after a partial acknowledgement without SACK.
    pub(super) fn begin_next_hole(&mut self, una: u64, unit: u32) {
        self.forget_retransmissions(una);
        self.lost_edge = (una + u64::from(unit)).min(self.recover);
    }

    /// Ends a recovery.
    pub(super) fn end(&mut self, una: u64) {
        self.forget_retransmissions(una);
        self.lost_edge = una;
    }

    fn forget_retransmissions(&mut self, una: u64) {
        (self.high_rxt, self.below) = (una, 0);
    }

    /// Returns true if the peer has SACKed anything above its ACK position.
    pub(super) fn has_sacked(&self) -> bool {
        !self.sacked.is_empty()
    }
}
