//! Several simulations side by side: rows of a sweep, [`SweepRow`], and of a what-if study, [`WhatIfRow`].

use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// One finished point of a sweep; one line of its JSON Lines file.
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct SweepRow {
    /// Position in the grid, from 0; the last key changes fastest.
    pub point: u64,
    /// Value of each key, as the command line spells it, in the order of the command line.
    pub settings: Vec<Setting>,
    /// Each column, by its path (see [`super::Metrics`]). A number that the results do not have is left out.
    pub metrics: BTreeMap<String, f64>,
    /// Why this point has no numbers; absent: it has.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
}

/// A key of the lab file and its value at one point of a sweep.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct Setting {
    /// Key.
    pub key: String,
    /// Value, as the command line spells it.
    pub value: String,
}

/// The lab with one thing broken.
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct WhatIfRow {
    /// What fails: name of the link, switch or HBA.
    pub name: String,
    /// What it is: `link`, `switch` or `hba`.
    pub kind: String,
    /// Lowest throughput of a step after the failure, of all hosts together.
    pub worst_bytes_per_s: f64,
    /// Throughput from the failure to the end.
    pub throughput_bytes_per_s: f64,
    /// Throughput of the same lab with nothing broken.
    pub healthy_bytes_per_s: f64,
    /// Longest time in which no request of some host ended although one was under way, in seconds.
    pub longest_stall_s: f64,
    /// Host with the longest stall; empty: there was none.
    pub stalled_host: String,
    /// Longest time from the arrival of a request to its end, in microseconds.
    pub longest_request_us: f64,
    /// Paths between a host and a storage system that are lost.
    pub paths_lost: u64,
    /// Host and storage pairs that have no path left.
    pub pairs_cut_off: u64,
    /// Requests that failed for good.
    pub ios_failed: u64,
}

impl WhatIfRow {
    /// Share of the healthy throughput that is left from the failure on, 0 to 1; 1 if there was none.
    pub fn left(&self) -> f64 {
        if self.healthy_bytes_per_s > 0.0 {
            (self.throughput_bytes_per_s / self.healthy_bytes_per_s).max(0.0)
        } else {
            1.0
        }
    }

    /// Worst first: pairs cut off, then failed requests, then throughput left, then the stall; ties by name.
    pub fn rank(rows: &mut [WhatIfRow]) {
        rows.sort_by(|a, b| {
            b.pairs_cut_off
                .cmp(&a.pairs_cut_off)
                .then(b.ios_failed.cmp(&a.ios_failed))
                .then(a.left().total_cmp(&b.left()))
                .then(b.longest_stall_s.total_cmp(&a.longest_stall_s))
                .then(a.name.cmp(&b.name))
        });
    }
}
