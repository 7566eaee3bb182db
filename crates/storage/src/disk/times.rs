//! Overheads and bus times in picoseconds, and the occupation of the bus.

use super::config::{DiskConfig, ps};

/// Overheads and bus times of a disk.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Times {
    /// Reads from the cache, after a read and after a write.
    pub read_hit: [u64; 2],
    /// Reads from the medium, after a read and after a write.
    pub read_miss: [u64; 2],
    /// Writes, after a read and after a write.
    pub write: [u64; 2],
    pub write_transfer_delay: u64,
    pub read_completion: u64,
    pub write_completion: u64,
    pub bus_read_block: u64,
    pub bus_write_block: u64,
}

impl Times {
    pub fn new(config: &DiskConfig) -> Times {
        let o = &config.overheads;
        Times {
            read_hit: [ps(o.read_hit_after_read_ms), ps(o.read_hit_after_write_ms)],
            read_miss: [ps(o.read_miss_after_read_ms), ps(o.read_miss_after_write_ms)],
            write: [ps(o.write_after_read_ms), ps(o.write_after_write_ms)],
            write_transfer_delay: ps(o.write_transfer_delay_ms),
            read_completion: ps(o.read_completion_ms),
            write_completion: ps(o.write_completion_ms),
            bus_read_block: ps(config.bus.read_block_ms),
            bus_write_block: ps(config.bus.write_block_ms),
        }
    }
}

/// Occupation of the bus: transfers without a pause between them, which may lie in the future, and
/// those before.
///
/// A short transfer may precede reserved ones, because a disk leaves the bus while it moves its
/// arm.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(super) struct Bus {
    /// End of the transfers before the reserved ones.
    before_ps: u64,
    from_ps: u64,
    until_ps: u64,
}

impl Bus {
    /// Reserves the bus from `earliest_ps` on, and returns the start of the transfer.
    pub fn reserve(&mut self, earliest_ps: u64, duration_ps: u64) -> u64 {
        let early_ps = earliest_ps.max(self.before_ps);
        if early_ps + duration_ps <= self.from_ps {
            self.before_ps = early_ps + duration_ps;
            return early_ps;
        }
        let start_ps = earliest_ps.max(self.until_ps);
        if start_ps > self.until_ps {
            *self = Bus { before_ps: self.until_ps, from_ps: start_ps, until_ps: start_ps };
        }
        self.until_ps += duration_ps;
        start_ps
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn transfers_never_overlap_and_a_short_one_may_precede_reserved_ones() {
        let mut bus = Bus::default();
        assert_eq!([bus.reserve(0, 10), bus.reserve(0, 10), bus.reserve(5, 10)], [0, 10, 20]);
        assert_eq!(bus.reserve(100, 10), 100);
        assert_eq!([bus.reserve(25, 10), bus.reserve(31, 10)], [30, 40]);
        assert_eq!([bus.reserve(60, 50), bus.reserve(60, 40)], [110, 60]);
        assert_eq!(bus.reserve(60, 1), 160);
    }
}
