//! Results of several simulations: rows of a sweep, [`SweepRow`], and of a what-if study,
//! [`WhatIfRow`].

use super::Interval;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// One completed point of a sweep; one line of its JSON Lines file.
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct SweepRow {
    /// Position in the grid, from 0; the last key changes fastest.
    pub point: u64,
    /// Values of the swept keys, in the order and spelling of the command line.
    pub settings: Vec<Setting>,
    /// Columns by path (see [`super::Metrics`]). Numbers that the results do not have are left out.
    pub metrics: BTreeMap<String, f64>,
    /// With several seeds: means and confidence intervals of the columns. `metrics` has the means.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub intervals: BTreeMap<String, Interval>,
    /// Error of this point; absent if it has numbers.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
}

/// A key of the lab file and its value at one point of a sweep.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct Setting {
    /// Key of the lab file.
    pub key: String,
    /// Value, spelled as on the command line.
    pub value: String,
}

/// Result of the lab with one broken element.
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct WhatIfRow {
    /// Name of the broken link, switch, chassis, HBA or storage port.
    pub name: String,
    /// Kind of the broken element: `link`, `switch`, `chassis`, `hba`, `array`, `gateway`, `server`
    /// (a metadata server of virtual disks), or another value of `whatif --only`.
    pub kind: String,
    /// True if I/O recovered: every path is usable or lost for good, and the throughput is steady.
    /// False if storage is cut off and no host completes a request after it.
    pub recovered: bool,
    /// Time from the failure to the recovery, in seconds; absent without recovery. Storage in
    /// `cut_off` does not recover.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub recovery_s: Option<f64>,
    /// Throughput after the recovery, over all hosts. Without recovery: from the failure to the
    /// end.
    pub throughput_bytes_per_s: f64,
    /// Throughput of the same lab in the same interval without a failure.
    pub healthy_bytes_per_s: f64,
    /// Start of this interval, in seconds since the start of the workloads.
    pub from_s: f64,
    /// End of this interval, in seconds since the start of the workloads.
    pub until_s: f64,
    /// Lowest throughput of any step of the time series between the failure and the end of this
    /// interval, over all hosts.
    pub worst_bytes_per_s: f64,
    /// Longest time without a completed request of any one host while it had requests in flight, in
    /// seconds, from the failure on. Hosts that complete no request without the failure either do
    /// not count.
    pub longest_stall_s: f64,
    /// Host with the longest stall; empty if there was none.
    pub stalled_host: String,
    /// False if the longest stall lasts to the end of the run.
    pub stall_ended: bool,
    /// Longest time from the arrival of a request to its completion, in microseconds, from the
    /// failure on.
    pub longest_request_us: f64,
    /// Number of lost paths between hosts and storage systems.
    pub paths_lost: u64,
    /// Pairs of host and storage system without a path; the length of `cut_off`.
    pub pairs_cut_off: u64,
    /// Storage that a host cannot reach as long as the element is broken. A host that holds a map
    /// of virtual disks continues without their metadata server, but cannot start without it.
    pub cut_off: Vec<CutOff>,
    /// Requests failed after all retries, from the failure on, less those that fail without the
    /// failure as well.
    pub ios_failed: u64,
    /// Requests that were still in flight at the end of the run: neither completed nor failed.
    pub ios_unfinished: u64,
    /// With several seeds: means and confidence intervals of the numbers of this row, by name, and
    /// of `left`. The other fields are those of the first seed.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub intervals: BTreeMap<String, Interval>,
}

/// Storage that a host cannot reach.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct CutOff {
    /// Name of the host.
    pub host: String,
    /// Name of the storage system.
    pub storage: String,
    /// LUNs of the system that the workloads of the host use, as `array1:lun0`.
    pub luns: Vec<String>,
}

impl WhatIfRow {
    /// Fraction of the healthy throughput that remains after the recovery; `None` if the healthy
    /// throughput is 0, because the interval then measures nothing.
    pub fn left(&self) -> Option<f64> {
        (self.healthy_bytes_per_s > 0.0).then(|| (self.throughput_bytes_per_s / self.healthy_bytes_per_s).max(0.0))
    }

    /// Sorts rows from worst to best: by pairs cut off, failed requests, unfinished requests,
    /// remaining throughput (1 if not measured), stall, then name.
    pub fn rank(rows: &mut [WhatIfRow]) {
        let left = |row: &WhatIfRow| row.left().unwrap_or(1.0);
        rows.sort_by(|a, b| {
            b.pairs_cut_off
                .cmp(&a.pairs_cut_off)
                .then(b.ios_failed.cmp(&a.ios_failed))
                .then(b.ios_unfinished.cmp(&a.ios_unfinished))
                .then(left(a).total_cmp(&left(b)))
                .then(b.longest_stall_s.total_cmp(&a.longest_stall_s))
                .then(a.name.cmp(&b.name))
                .then(a.kind.cmp(&b.kind))
        });
    }
}
