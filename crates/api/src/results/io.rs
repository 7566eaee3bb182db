//! Measurements common to hosts, streams and the whole lab: [`IoStats`], [`Latency`],
//! [`QueueDepth`], [`Totals`].

use serde::{Deserialize, Serialize};

/// I/O of a host, of a stream, or of all hosts. In JSON, its fields are part of the enclosing
/// element.
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct IoStats {
    /// Requests created by the workload: the offered load.
    pub ios_offered: u64,
    /// Requests completed successfully.
    pub ios_completed: u64,
    /// Requests failed after all retries and paths.
    pub ios_failed: u64,
    /// Requests without an outcome: in flight or waiting when the run ended.
    pub ios_unfinished: u64,
    /// Completed reads.
    pub reads: u64,
    /// Completed writes.
    pub writes: u64,
    /// Data of the created requests, in bytes.
    pub offered_bytes: u64,
    /// Data of completed reads, in bytes.
    pub read_bytes: u64,
    /// Data of completed writes, in bytes.
    pub written_bytes: u64,
    /// Offered load: `offered_bytes` per second of measured time.
    pub offered_bytes_per_s: f64,
    /// Offered requests per second.
    pub offered_iops: f64,
    /// Throughput: data of completed requests per second of measured time.
    pub throughput_bytes_per_s: f64,
    /// Completed requests per second.
    pub iops: f64,
    /// Response time of completed requests seen by the application, waiting in the host included.
    pub latency: Latency,
    /// Part of the response time after the host's queues: from the start of the command to its
    /// completion.
    pub command_latency: Latency,
}

impl IoStats {
    /// Throughput in the unit of the SANSim paper, section 4: "MB/s" of 1000 * 1024 bytes, because
    /// the document equates 22.5 k requests of 2 KB per second with 45 MB/s.
    pub fn throughput_sansim_mb_per_s(&self) -> f64 {
        self.throughput_bytes_per_s / 1_024_000.0
    }
}

/// A distribution of times, from a histogram.
#[derive(Clone, Copy, PartialEq, Debug, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct Latency {
    /// Number of values; if it is 0, all other fields are 0.
    pub count: u64,
    /// Mean, in microseconds.
    pub mean_us: f64,
    /// Median, in microseconds.
    pub p50_us: f64,
    /// 95th percentile, in microseconds.
    pub p95_us: f64,
    /// 99th percentile, in microseconds.
    pub p99_us: f64,
    /// 99.9th percentile, in microseconds.
    pub p99_9_us: f64,
    /// Longest time, in microseconds.
    pub max_us: f64,
}

/// One bucket of a histogram: `[upper_us, count]` in JSON. A list of buckets is sorted and omits
/// empty ones. The resolution of the histogram determines the lower bound of a bucket; it is not
/// above the upper bound of the bucket before it.
#[derive(Clone, Copy, PartialEq, Debug, Default, Serialize, Deserialize)]
pub struct HistogramBucket(
    /// Upper bound, inclusive, in microseconds.
    pub f64,
    /// Values in the bucket.
    pub u64,
);

/// Length of a queue over time, in entries.
#[derive(Clone, Copy, PartialEq, Debug, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct QueueDepth {
    /// Mean over the measured time.
    pub mean: f64,
    /// Maximum over the measured time.
    pub max: u64,
}

/// Totals over all hosts.
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct Totals {
    /// Sums over the hosts; latencies over all requests.
    #[serde(flatten)]
    pub io: IoStats,
    /// Response time of reads.
    pub read_latency: Latency,
    /// Response time of writes.
    pub write_latency: Latency,
    /// Distribution of `latency`.
    pub latency_histogram: Vec<HistogramBucket>,
    /// Longest time without a completed request of any one host while it had requests in flight, in
    /// seconds.
    pub longest_stall_s: f64,
    /// Frames dropped, for any reason.
    pub frames_dropped: u64,
    /// Commands aborted (ABTS).
    pub commands_aborted: u64,
    /// Commands sent again after an abort or a path failure.
    pub commands_retried: u64,
    /// Number of times that the multipath layer moved commands off a failed path.
    pub path_failovers: u64,
    /// Paths between a host and a storage system that were up after login and are not up at the
    /// end.
    pub paths_lost: u64,
    /// Link resets.
    pub link_resets: u64,
    /// Number of detected credit deadlocks.
    pub deadlocks: u64,
}
