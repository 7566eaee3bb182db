//! Sums over the requests and the flash operations of an SSD.

use crate::flash::FlashStatistics;

/// Number of requests of a kind, and their times.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct DriveCount {
    /// Ended requests.
    pub requests: u64,
    /// Blocks of 512 bytes.
    pub blocks: u64,
    /// Sum of their response times in picoseconds.
    pub response_ps: u64,
}

/// Statistics of an SSD.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct DriveStats {
    /// Reads.
    pub reads: DriveCount,
    /// Writes.
    pub writes: DriveCount,
    /// Flushes.
    pub flushes: DriveCount,
    /// Pages read from the cells for hosts.
    pub flash_reads: u64,
    /// Pages that a read found in the write buffer.
    pub buffer_hits: u64,
    /// Pages read from the cells because a write covers only a part of them.
    pub merges: u64,
    /// Writes that waited for room in the write buffer.
    pub stalls: u64,
    /// Time of dies for reads, in picoseconds.
    pub read_ps: u64,
    /// Time of dies for pages of hosts, in picoseconds.
    pub program_ps: u64,
    /// Time of dies for copies and erases, in picoseconds.
    pub collection_ps: u64,
    /// Pages, copies and erases. Garbage collection erases one block each time.
    pub flash: FlashStatistics,
    /// Least and most erases of a block, since the creation of the drive.
    pub wear: (u32, u32),
}

impl DriveStats {
    /// Programmed pages per page of hosts; 1 if nothing was written.
    pub fn write_amplification(&self) -> f64 {
        self.flash.write_amplification()
    }

    /// Fraction of the time of `dies` dies that was used in `elapsed_ps`.
    pub fn utilisation(&self, dies: u32, elapsed_ps: u64) -> f64 {
        let used_ps = self.read_ps + self.program_ps + self.collection_ps;
        used_ps as f64 / (f64::from(dies) * elapsed_ps as f64).max(1.0)
    }
}
