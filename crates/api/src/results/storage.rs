//! Results of storage systems.

use super::{Latency, QueueDepth};
use serde::{Deserialize, Serialize};

/// One storage system.
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct StorageResult {
    /// Name of the storage system.
    pub name: String,
    /// Commands completed successfully.
    pub ios_completed: u64,
    /// Completed reads.
    pub reads: u64,
    /// Completed writes.
    pub writes: u64,
    /// Data read, in bytes.
    pub read_bytes: u64,
    /// Data written, in bytes.
    pub written_bytes: u64,
    /// Data of completed commands per second of measured time.
    pub throughput_bytes_per_s: f64,
    /// Completed commands per second.
    pub iops: f64,
    /// Fraction of the time in which the controller was busy, 0 to 1 (mean over its servers).
    pub utilisation: f64,
    /// Commands in the controller, waiting or in service.
    pub queue: QueueDepth,
    /// Commands rejected with TASK SET FULL.
    pub task_set_full: u64,
    /// Time from the arrival of a command at the controller (a write: with all its data) to its
    /// completion there.
    pub latency: Latency,
    /// Part of that time before the controller starts the command.
    pub waiting: Latency,
    /// Disks behind the controller, one for each LUN; empty without `disk`.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub disks: Vec<DiskResult>,
}

/// One disk behind a controller. Times are means over its completed commands; their sum is the
/// response time of the disk.
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct DiskResult {
    /// Number of the LUN on the disk.
    pub lun: u32,
    /// Model of the disk.
    pub model: String,
    /// Completed commands.
    pub commands: u64,
    /// Reads whose blocks were in the cache of the disk, or about to be read ahead.
    pub read_hits: u64,
    /// Reads from the medium.
    pub read_misses: u64,
    /// Writes that ended in the cache.
    pub cached_writes: u64,
    /// Writes that ended on the medium.
    pub medium_writes: u64,
    /// Fraction of the time in which the arm worked for commands or write-back, 0 to 1.
    pub utilisation: f64,
    /// Response time in ms.
    pub response_ms: f64,
    /// Wait for other commands, for the arm, and for room in the cache, in ms.
    pub queue_ms: f64,
    /// Command overhead in ms.
    pub overhead_ms: f64,
    /// Seek in ms.
    pub seek_ms: f64,
    /// Rotational wait in ms.
    pub rotation_ms: f64,
    /// Transfer from or to the medium in ms.
    pub medium_ms: f64,
    /// Transfer over the bus that does not overlap with the medium, in ms.
    pub bus_ms: f64,
    /// Mean seek distance of accesses to the medium, in cylinders.
    pub seek_cylinders: f64,
    /// Written blocks of 512 bytes that are not on the medium at the end.
    pub dirty_blocks: u64,
}
