//! Counters of a controller cache.

use super::Reason;

/// Counters since the creation of the cache, in blocks of 512 bytes unless the name says otherwise.
///
/// Two sums hold at any time:
/// - `read = read_hits + read_waits + read_misses`
/// - `dirtied = destaged + coalesced + discarded + dirty`, with whole sectors counted
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct Statistics {
    /// Read requests accepted to their end. A request repeated after a stall counts once.
    pub read_requests: u64,
    /// Write requests accepted to their end. A request repeated after a stall counts once.
    pub write_requests: u64,
    /// Blocks that hosts read.
    pub read: u64,
    /// Read blocks whose sector was valid.
    pub read_hits: u64,
    /// Read blocks whose sector was being fetched already.
    pub read_waits: u64,
    /// Read blocks that caused a back-end read.
    pub read_misses: u64,
    /// Blocks that hosts wrote.
    pub written: u64,
    /// Written blocks that went to the back end at once.
    pub written_through: u64,
    /// Written blocks copied to the partner controller.
    pub mirrored: u64,
    /// Blocks fetched because a host asked for them, or for other blocks of their line.
    pub fetched: u64,
    /// Blocks fetched because a write covered a part of their sector.
    pub installed: u64,
    /// Blocks fetched by read-ahead.
    pub read_ahead: u64,
    /// Read-ahead blocks that a host read later.
    pub read_ahead_used: u64,
    /// Read-ahead blocks that were evicted or overwritten before a host read them.
    pub read_ahead_wasted: u64,
    /// Blocks made dirty by writes, repeated writes included.
    pub dirtied: u64,
    /// Dirtied blocks that were dirty already, so one destage serves several writes.
    pub coalesced: u64,
    /// Blocks whose destage has ended.
    pub destaged: u64,
    /// Dirty blocks that were discarded or lost.
    pub discarded: u64,
    /// Dirty blocks now, destages in flight included.
    pub dirty: u64,
    /// Back-end writes of dirty data, by [`Reason`].
    pub destages: [u64; Reason::COUNT],
    /// Lines evicted.
    pub evictions: u64,
    /// Calls that found no line to evict and accepted only a part of their request, or nothing.
    pub stalls: u64,
}

impl Statistics {
    /// Counts since an earlier state. [`Statistics::dirty`] stays the number of blocks now.
    pub fn since(&self, before: &Statistics) -> Statistics {
        Statistics {
            read_requests: self.read_requests - before.read_requests,
            write_requests: self.write_requests - before.write_requests,
            read: self.read - before.read,
            read_hits: self.read_hits - before.read_hits,
            read_waits: self.read_waits - before.read_waits,
            read_misses: self.read_misses - before.read_misses,
            written: self.written - before.written,
            written_through: self.written_through - before.written_through,
            mirrored: self.mirrored - before.mirrored,
            fetched: self.fetched - before.fetched,
            installed: self.installed - before.installed,
            read_ahead: self.read_ahead - before.read_ahead,
            read_ahead_used: self.read_ahead_used - before.read_ahead_used,
            read_ahead_wasted: self.read_ahead_wasted - before.read_ahead_wasted,
            dirtied: self.dirtied - before.dirtied,
            coalesced: self.coalesced - before.coalesced,
            destaged: self.destaged - before.destaged,
            discarded: self.discarded - before.discarded,
            evictions: self.evictions - before.evictions,
            stalls: self.stalls - before.stalls,
            dirty: self.dirty,
            destages: std::array::from_fn(|reason| self.destages[reason] - before.destages[reason]),
        }
    }

    /// Share of read blocks that needed no new back-end read, from 0 to 1.
    pub fn read_hit_ratio(&self) -> f64 {
        ratio(self.read_hits + self.read_waits, self.read)
    }

    /// Share of dirtied blocks that caused no back-end write, from 0 to 1.
    pub fn coalesced_ratio(&self) -> f64 {
        ratio(self.coalesced, self.dirtied)
    }

    /// Mean size of a destage in blocks. A large value shows that clustering works.
    pub fn blocks_per_destage(&self) -> f64 {
        ratio(self.destaged, self.destages.iter().sum())
    }

    /// Share of read-ahead blocks that a host read, from 0 to 1.
    pub fn read_ahead_accuracy(&self) -> f64 {
        ratio(self.read_ahead_used, self.read_ahead)
    }
}

fn ratio(part: u64, whole: u64) -> f64 {
    if whole == 0 { 0.0 } else { part as f64 / whole as f64 }
}
