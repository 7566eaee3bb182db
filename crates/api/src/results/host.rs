//! Hosts, their paths, and the streams of requests that run on them.

use super::{HistogramBucket, IoStats, Latency, QueueDepth};
use serde::{Deserialize, Serialize};

/// One host.
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct HostResult {
    /// Name of the host.
    pub name: String,
    /// Its I/O.
    #[serde(flatten)]
    pub io: IoStats,
    /// Distribution of `latency`; may be left out (empty) in labs with very many hosts.
    pub latency_histogram: Vec<HistogramBucket>,
    /// Requests that wait for a place in the outstanding queue, or for a path.
    pub waiting: QueueDepth,
    /// Requests that are sent and not yet ended.
    pub outstanding: QueueDepth,
    /// Requests refused because the waiting queue was full.
    pub ios_refused: u64,
    /// Requests that were merged into a contiguous neighbour.
    pub ios_merged: u64,
    /// Commands aborted (ABTS).
    pub commands_aborted: u64,
    /// Commands sent again after an abort or a path failure.
    pub commands_retried: u64,
    /// Times that the multipath layer moved commands off a failed path.
    pub path_failovers: u64,
    /// Longest time in which no request of this host ended although one was under way, in seconds.
    pub longest_stall_s: f64,
    /// Share of the time that the processor was busy with I/O.
    pub cpu_utilisation: f64,
    /// Share of the time that the busiest bus was busy.
    pub bus_utilisation: f64,
    /// Interrupts raised.
    pub interrupts: u64,
    /// Fabric logins of its HBAs (FLOGI, or FDISC of a virtual machine), over the whole run.
    pub logins: u64,
    /// Requests of its HBAs, logins and those to the services of the fabric, that nobody answered in time, over the whole run.
    pub requests_unanswered: u64,
    /// Paths to storage.
    pub paths: Vec<PathResult>,
}

/// A path: an HBA of the host and a port of a storage system.
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct PathResult {
    /// `hba1>array1:2`: HBA, and storage port.
    pub name: String,
    /// State at the end of the run: `active`, `suspect`, `blocked`, `failed` or `gone`.
    pub state: String,
    /// Commands sent.
    pub commands: u64,
    /// Data of completed commands, in bytes.
    pub bytes: u64,
    /// Commands that did not end well on this path.
    pub commands_failed: u64,
}

/// One workload: a stream of requests on each of its hosts.
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct StreamResult {
    /// Name of the workload.
    pub name: String,
    /// Sums over its hosts; latencies over all its requests.
    #[serde(flatten)]
    pub io: IoStats,
    /// Response time of reads.
    pub read_latency: Latency,
    /// Response time of writes.
    pub write_latency: Latency,
    /// Distribution of `latency`.
    pub latency_histogram: Vec<HistogramBucket>,
    /// The stream on each of its hosts.
    pub hosts: Vec<StreamHostResult>,
}

/// A workload on one host.
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct StreamHostResult {
    /// Name of the host.
    pub name: String,
    /// Requests that ended well.
    pub ios_completed: u64,
    /// Requests that failed for good.
    pub ios_failed: u64,
    /// Data of completed requests per second of measured time.
    pub throughput_bytes_per_s: f64,
    /// Completed requests per second.
    pub iops: f64,
    /// Mean response time, in microseconds.
    pub latency_mean_us: f64,
}
