//! Counters of a RAID group.

/// Counters of a RAID group.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct GroupStats {
    /// Reads and writes that ended, of hosts or of the cache.
    pub requests: u64,
    /// Requests that failed, because too few disks hold the blocks.
    pub lost_requests: u64,
    /// Reads that returned wrong data; these are among `requests`.
    pub wrong_requests: u64,
    /// Requests that were planned anew, because a disk failed or a block was unreadable.
    pub repeated: u64,
    /// Requests that waited for a write of the same stripe or for a rebuild, scrub or repair.
    pub waited: u64,
    /// Parts of stripes that were served in each way.
    pub full_stripes: u64,
    /// Parts of stripes written after old data and parity were read.
    pub read_modify_writes: u64,
    /// Parts of stripes written after the data that stay were read.
    pub reconstruct_writes: u64,
    /// Parts of stripes whose data were computed from other disks.
    pub degraded: u64,
    /// Reads of disks, for requests, rebuild, scrub and repair.
    pub disk_reads: u64,
    /// Writes of disks, for requests, rebuild, scrub and repair.
    pub disk_writes: u64,
    /// Blocks of 512 bytes written by the rebuild.
    pub rebuilt_blocks: u64,
    /// Chunks that the rebuild could not compute, because of latent sector errors.
    pub unrebuilt_chunks: u64,
    /// Blocks of 512 bytes read by scrub and resync.
    pub scrubbed_blocks: u64,
    /// Reads of requests that met a latent sector error.
    pub media_errors: u64,
    /// Blocks of 512 bytes with a latent sector error that were written again from redundancy, by
    /// requests and scrub.
    pub repaired_blocks: u64,
    /// Stripes whose redundancy scrub or resync wrote anew.
    pub corrected_stripes: u64,
    /// Blocks of 512 bytes written to a journal or partial parity log.
    pub log_blocks: u64,
}
