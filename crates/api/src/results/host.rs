//! Hosts, their paths, and the request streams of workloads.

use super::{HistogramBucket, IoStats, Latency, QueueDepth};
use serde::{Deserialize, Serialize};

/// One host.
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct HostResult {
    /// Name of the host.
    pub name: String,
    /// I/O of the host.
    #[serde(flatten)]
    pub io: IoStats,
    /// Distribution of `latency`; may be empty in labs with very many hosts.
    pub latency_histogram: Vec<HistogramBucket>,
    /// Requests waiting for a slot in the outstanding queue, or for a path.
    pub waiting: QueueDepth,
    /// Requests in flight.
    pub outstanding: QueueDepth,
    /// Requests rejected because the waiting queue was full.
    pub ios_refused: u64,
    /// Requests that were merged into a contiguous neighbour.
    pub ios_merged: u64,
    /// Commands aborted (ABTS).
    pub commands_aborted: u64,
    /// Commands sent again after an abort or a path failure.
    pub commands_retried: u64,
    /// Times that the multipath layer moved commands off a failed path.
    pub path_failovers: u64,
    /// Longest time without a completed request of this host while requests were in flight, in
    /// seconds.
    pub longest_stall_s: f64,
    /// Fraction of the time in which the processor was busy with I/O, as a mean over its cores.
    pub cpu_utilisation: f64,
    /// Time for which cores were busy with I/O, in seconds.
    pub cpu_s: f64,
    /// Processor time per 10^9 bytes of completed requests, in seconds; 0 without data. The GUPFS
    /// report normalises processor load in this way.
    pub cpu_s_per_gb: f64,
    /// Parts of the processor time by kind of work; kinds without work are left out.
    pub cpu_work: Vec<CpuWork>,
    /// Fraction of the time in which the own processor of the busiest HBA or iSCSI adapter was
    /// busy.
    pub hba_utilisation: f64,
    /// Fraction of the time in which the busiest bus was busy.
    pub bus_utilisation: f64,
    /// Interrupts raised.
    pub interrupts: u64,
    /// Fabric logins of its HBAs (FLOGI, or FDISC of a virtual machine), over the whole run.
    pub logins: u64,
    /// Requests of its HBAs (logins and requests to fabric services) without a reply in time, over
    /// the whole run.
    pub requests_unanswered: u64,
    /// Paths to storage.
    pub paths: Vec<PathResult>,
    /// Work of the host as a router of IP; absent without `ip_router`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ip_router: Option<IpRouterResult>,
}

/// Work of a router of IP between Ethernet and InfiniBand.
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct IpRouterResult {
    /// Packets that it has passed on.
    pub forwarded: u64,
    /// Packets that it has dropped, because the queue of their interface was full.
    pub dropped: u64,
    /// Fraction of the time in which packets occupied it, 0 to 1.
    pub utilisation: f64,
}

/// Processor time of one kind of work.
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct CpuWork {
    /// `request` (`cpu_per_io`), `hypervisor` (`guest_cpu_per_io`), `command` and `data` (driver),
    /// `interrupt`, `segments`, `copy` or `checksum` (TCP).
    pub name: String,
    /// Work given to the processor, in seconds.
    pub cpu_s: f64,
}

/// A path: an HBA of the host and a port of a storage system.
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct PathResult {
    /// HBA and storage port: `hba1>array1:2`.
    pub name: String,
    /// State at the end of the run: `active`, `suspect`, `blocked`, `failed` or `gone`.
    pub state: String,
    /// Commands sent.
    pub commands: u64,
    /// Data of completed commands, in bytes.
    pub bytes: u64,
    /// Commands that failed on this path.
    pub commands_failed: u64,
}

/// One workload: a request stream on each of its hosts.
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
    /// Replay of a trace, if the stream is one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub trace: Option<TraceResult>,
}

/// Replay of a trace, summed over the hosts of a stream, from the start of the stream.
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct TraceResult {
    /// The file.
    pub file: String,
    /// Requests issued, with the parts of those that were split.
    pub requests: u64,
    /// Requests that were split, because the HBA or a SCSI command cannot transfer as much.
    pub split: u64,
    /// Trims of the trace, which are left out.
    pub trims: u64,
    /// Passes over the trace that have begun, on the host with the most.
    pub passes: u64,
    /// Error that ended the replay early.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
}

/// A workload on one host.
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct StreamHostResult {
    /// Name of the host.
    pub name: String,
    /// Requests completed successfully.
    pub ios_completed: u64,
    /// Requests failed after all retries.
    pub ios_failed: u64,
    /// Data of completed requests per second of measured time.
    pub throughput_bytes_per_s: f64,
    /// Completed requests per second.
    pub iops: f64,
    /// Mean response time, in microseconds.
    pub latency_mean_us: f64,
}
