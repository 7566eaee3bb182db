//! What a simulation measured, as one value: [`Results`].
//!
//! Everything except [`Results::engine`] is a function of lab and seed alone, to the last bit. Lists keep the order of
//! the lab; maps are sorted by key. Units stand last in every name (`_us`, `_s`, `_bytes`, `_bytes_per_s`); shares are
//! named `utilisation` or `…_fraction` and lie between 0 and 1. All floats are finite.
//!
//! Floats are made from integers with [`measure`], so that the same counts give the same float everywhere.

mod balance;
mod engine;
mod expectation;
mod host;
mod io;
mod lab;
mod link;
pub mod measure;
mod metric;
mod outline;
mod port;
mod replication;
mod series;
mod storage;
mod story;
mod study;

pub use balance::Conservation;
pub use engine::Engine;
pub use expectation::ExpectationResult;
pub use host::{HostResult, PathResult, StreamHostResult, StreamResult};
pub use io::{HistogramBucket, IoStats, Latency, QueueDepth, Totals};
pub use lab::{FaultEvent, LabInfo};
pub use link::{LinkDirection, LinkKind, LinkResult};
pub use metric::{Metrics, is_metric_path};
pub use outline::{Stray, stray};
pub use port::{PortKind, PortResult, SwitchResult};
pub use replication::{Interval, Replications};
pub use series::{HostSeries, LinkSeries, Series, StorageSeries, TotalSeries};
pub use storage::StorageResult;
pub use story::{Event, EventKind, Finding, FindingKind, Victim};
pub use study::{Setting, SweepRow, WhatIfRow};

use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// Version of the schema that this crate writes. It grows when a field changes its meaning or goes away; new fields
/// may appear without a new version.
pub const SCHEMA_VERSION: u32 = 1;

/// Everything that one simulation (or several replications of it) measured. Counts and rates are taken between the end
/// of the warm-up and the end of the run, except [`Results::conservation`], which covers the whole run.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
#[serde(default)]
pub struct Results {
    /// [`SCHEMA_VERSION`] of the writer.
    pub schema_version: u32,
    /// Which lab, with which seed, for how long.
    pub lab: LabInfo,
    /// All hosts together.
    pub totals: Totals,
    /// Each host.
    pub hosts: Vec<HostResult>,
    /// Each workload, over its hosts and for each of them.
    pub streams: Vec<StreamResult>,
    /// Each link, in both directions.
    pub links: Vec<LinkResult>,
    /// Each port of a switch, host or storage system.
    pub ports: Vec<PortResult>,
    /// Each storage system.
    pub storage: Vec<StorageResult>,
    /// Each switch.
    pub switches: Vec<SwitchResult>,
    /// Frames dropped in the measured time, by reason.
    pub drops: BTreeMap<String, u64>,
    /// The books: nothing appears from nowhere or vanishes without a reason.
    pub conservation: Conservation,
    /// The faults of the lab.
    pub faults: Vec<FaultEvent>,
    /// What happened and is worth a line, by time.
    pub events: Vec<Event>,
    /// What an engineer would want to be told first.
    pub findings: Vec<Finding>,
    /// Verdicts on the lab's expectations.
    pub expectations: Vec<ExpectationResult>,
    /// Values over time.
    pub series: Series,
    /// Means and confidence intervals, if the run was replicated with several seeds. The other parts then belong to
    /// the first seed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub replications: Option<Replications>,
    /// What the run cost: the only part that depends on real time and on the machine.
    pub engine: Engine,
}

impl Default for Results {
    fn default() -> Results {
        Results {
            schema_version: SCHEMA_VERSION,
            lab: LabInfo::default(),
            totals: Totals::default(),
            hosts: Vec::new(),
            streams: Vec::new(),
            links: Vec::new(),
            ports: Vec::new(),
            storage: Vec::new(),
            switches: Vec::new(),
            drops: BTreeMap::new(),
            conservation: Conservation::default(),
            faults: Vec::new(),
            events: Vec::new(),
            findings: Vec::new(),
            expectations: Vec::new(),
            series: Series::default(),
            replications: None,
            engine: Engine::default(),
        }
    }
}

impl Results {
    /// The results as JSON without `engine`: the part that must be identical when lab and seed are. Keys are in
    /// alphabetical order.
    pub fn reproducible_json(&self) -> serde_json::Value {
        let mut value = serde_json::to_value(self).unwrap_or_default();
        if let Some(object) = value.as_object_mut() {
            object.remove("engine");
        }
        value
    }

    /// One number by its path, for example `hosts.server1.throughput_bytes_per_s`; see [`Metrics`], which is cheaper
    /// for several look-ups. `None`: no such value.
    pub fn metric(&self, path: &str) -> Option<f64> {
        Metrics::new(self).get(path)
    }

    /// Length of the measured time in seconds: the run without its warm-up.
    pub fn measured_s(&self) -> f64 {
        (self.lab.duration_s - self.lab.warmup_s).max(0.0)
    }
}
