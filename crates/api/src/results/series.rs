//! Values over time: [`Series`].

use serde::{Deserialize, Serialize};

/// Values over time in equal steps, warm-up included. Step `i` covers the time from `i *
/// interval_s` to `(i + 1) * interval_s` after the start of the workloads; the last step may be
/// shorter. All lists have `steps` values.
///
/// A frame on a link counts in every step that its transmission covers. A request counts in the
/// step in which it completes, and the command of a storage system when its controller completes
/// it. Their throughput can therefore exceed the line rate in a step that is not many times as long
/// as the transfer of a request.
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct Series {
    /// Length of a step, in seconds.
    pub interval_s: f64,
    /// Number of steps.
    pub steps: u64,
    /// Totals over all hosts.
    pub total: TotalSeries,
    /// One element for each host.
    pub hosts: Vec<HostSeries>,
    /// One element for each direction of each link.
    pub links: Vec<LinkSeries>,
    /// One element for each direction of each link of Ethernet, then of InfiniBand; absent if the
    /// lab has none.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub plane_links: Vec<PlaneLinkSeries>,
    /// One element for each storage system.
    pub storage: Vec<StorageSeries>,
}

/// Totals over all hosts, per step.
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct TotalSeries {
    /// Data of requests that completed in the step, per second.
    pub throughput_bytes_per_s: Vec<f64>,
    /// Requests that completed in the step, per second.
    pub iops: Vec<f64>,
    /// Mean response time of these requests, in microseconds; 0 if there were none.
    pub latency_mean_us: Vec<f64>,
    /// Frames dropped in the step.
    pub frames_dropped: Vec<u64>,
}

/// One host, per step.
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct HostSeries {
    /// Name of the host.
    pub name: String,
    /// Data of requests that completed in the step, per second.
    pub throughput_bytes_per_s: Vec<f64>,
    /// Requests that completed in the step, per second.
    pub iops: Vec<f64>,
    /// Mean response time of these requests, in microseconds; 0 if there were none.
    pub latency_mean_us: Vec<f64>,
}

/// One direction of a link, per step.
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct LinkSeries {
    /// Link and direction: `isl1.forward` or `isl1.backward`.
    pub name: String,
    /// Sending port.
    pub from: String,
    /// Receiving port.
    pub to: String,
    /// Fraction of the step in which frames occupied the link, 0 to 1.
    pub utilisation: Vec<f64>,
    /// Fraction of the step in which a frame was ready to leave but no credit was available, 0 to
    /// 1.
    pub credit_wait_fraction: Vec<f64>,
}

/// One direction of a link of Ethernet or InfiniBand, per step.
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct PlaneLinkSeries {
    /// Link and direction: `uplink.forward` or `uplink.backward`.
    pub name: String,
    /// Sending port.
    pub from: String,
    /// Receiving port.
    pub to: String,
    /// Fraction of the step that the frames and packets occupy on the line, 0 to 1. Each counts in
    /// the step in which it begins.
    pub utilisation: Vec<f64>,
}

/// One storage system, per step.
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct StorageSeries {
    /// Name of the storage system.
    pub name: String,
    /// Data of commands that completed in the step, per second.
    pub throughput_bytes_per_s: Vec<f64>,
    /// Mean number of commands in the controller.
    pub queue_mean: Vec<f64>,
}
