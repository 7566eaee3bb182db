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
}
