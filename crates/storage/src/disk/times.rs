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

/// Occupation of the bus: one reserved transfer, which may lie in the future.
///
/// A short transfer may precede the reserved one, because a disk leaves the bus while it moves its
/// arm. Such a transfer is not recorded, so two short transfers may overlap.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(super) struct Bus {
    from_ps: u64,
    until_ps: u64,
}

impl Bus {
    /// Reserves the bus from `earliest_ps` on, and returns the start of the transfer.
    pub fn reserve(&mut self, earliest_ps: u64, duration_ps: u64) -> u64 {
        if earliest_ps + duration_ps <= self.from_ps {
            return earliest_ps;
        }
        let start_ps = earliest_ps.max(self.until_ps);
        *self = Bus { from_ps: start_ps, until_ps: start_ps + duration_ps };
        start_ps
    }
}
