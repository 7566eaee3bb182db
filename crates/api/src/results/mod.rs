//! Measurements of a simulation as one value: [`Results`].
//!
//! Everything except [`Results::engine`] depends only on lab and seed, to the last bit. Lists keep
//! the order of the lab; maps are sorted by key. Names end with their unit (`_us`, `_s`, `_bytes`,
//! `_bytes_per_s`). Fractions are named `utilisation` or `…_fraction` and lie between 0 and 1. All
//! floats are finite.
//!
//! The functions of [`measure`] convert integers to floats, so that equal counts give equal floats
//! everywhere.

mod arbitrated_loop;
mod balance;
mod candidate;
mod columns;
pub mod drops;
mod engine;
mod ethernet;
mod expectation;
mod fcip;
mod host;
mod infiniband;
mod io;
mod iscsi;
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

pub use arbitrated_loop::{LoopPortResult, LoopResult};
pub use balance::Conservation;
pub use candidate::Candidate;
pub use columns::{SeriesColumn, SeriesValues};
pub use engine::Engine;
pub use ethernet::{EthernetDirection, EthernetLinkResult, EthernetSwitchResult};
pub use expectation::ExpectationResult;
pub use fcip::FcipLinkResult;
pub use host::{CpuWork, HostResult, IpRouterResult, PathResult, StreamHostResult, StreamResult, TraceResult};
pub use infiniband::{InfinibandDirection, InfinibandLinkResult, SrpChannelResult, SubnetResult};
pub use io::{HistogramBucket, IoStats, Latency, QueueDepth, Totals};
pub use iscsi::IscsiSessionResult;
pub use lab::{FaultEvent, LabInfo, PrecisionResult};
pub use link::{ChannelResult, LinkDirection, LinkKind, LinkResult};
pub use metric::{Metrics, is_metric_path};
pub use outline::{ANY, Stray, example, stray};
pub use port::{PortKind, PortResult, SwitchResult};
pub use replication::{Interval, Replications};
pub use series::{HostSeries, LinkSeries, PlaneLinkSeries, Series, StorageSeries, TotalSeries};
pub use storage::{
    AdapterResult, CacheResult, ControllerResult, DataLossResult, DiskResult, GatewayResult, LostRequest,
    MetadataResult, RaidResult, SsdResult, StorageResult,
};
pub use story::{Event, EventKind, Finding, FindingKind, Measure, Remedy, Victim};
pub use study::{CutOff, Setting, SweepRow, WhatIfRow};

use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// Version of the schema that this crate writes. It increases when a field changes its meaning or
/// is removed. New fields may appear without a new version.
pub const SCHEMA_VERSION: u32 = 1;

/// All measurements of one simulation, or of several replications of it. Counts and rates cover the
/// time from the end of the warm-up to the end of the run, except [`Results::conservation`], which
/// covers the whole run.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
#[serde(default)]
pub struct Results {
    /// [`SCHEMA_VERSION`] of the writer.
    pub schema_version: u32,
    /// Lab, seed and duration of the run.
    pub lab: LabInfo,
    /// Totals over all hosts.
    pub totals: Totals,
    /// One element for each host.
    pub hosts: Vec<HostResult>,
    /// One element for each workload, with its hosts.
    pub streams: Vec<StreamResult>,
    /// One element for each link, with both directions.
    pub links: Vec<LinkResult>,
    /// One element for each port of a switch, host or storage system.
    pub ports: Vec<PortResult>,
    /// One element for each storage system.
    pub storage: Vec<StorageResult>,
    /// One element for each arbitrated loop.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub loops: Vec<LoopResult>,
    /// One element for each Ethernet link, with both directions.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub ethernet_links: Vec<EthernetLinkResult>,
    /// One element for each Ethernet switch.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub ethernet_switches: Vec<EthernetSwitchResult>,
    /// One element for each session of iSCSI of a host.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub iscsi_sessions: Vec<IscsiSessionResult>,
    /// One element for each FCIP link over the Ethernet of the lab.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub fcip_links: Vec<FcipLinkResult>,
    /// The InfiniBand subnet, if there is one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub subnet: Option<SubnetResult>,
    /// One element for each InfiniBand link, with both directions.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub infiniband_links: Vec<InfinibandLinkResult>,
    /// One element for each SRP channel of a host.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub srp_channels: Vec<SrpChannelResult>,
    /// One element for each switch.
    pub switches: Vec<SwitchResult>,
    /// Frames dropped in the measured time, by reason.
    pub drops: BTreeMap<String, u64>,
    /// Balance of frames and commands: none appears or disappears without a reason.
    pub conservation: Conservation,
    /// The faults of the lab.
    pub faults: Vec<FaultEvent>,
    /// Notable events, in order of time.
    pub events: Vec<Event>,
    /// Most important conclusions for an engineer.
    pub findings: Vec<Finding>,
    /// Verdicts on the lab's expectations.
    pub expectations: Vec<ExpectationResult>,
    /// Measurements over time.
    pub series: Series,
    /// Means and confidence intervals, if the run was replicated with several seeds. The other
    /// parts then belong to the first seed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub replications: Option<Replications>,
    /// Cost of the run: the only part that depends on real time and on the machine.
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
            loops: Vec::new(),
            ethernet_links: Vec::new(),
            ethernet_switches: Vec::new(),
            iscsi_sessions: Vec::new(),
            fcip_links: Vec::new(),
            subnet: None,
            infiniband_links: Vec::new(),
            srp_channels: Vec::new(),
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
    /// The results as JSON without `engine`: the part that is identical for identical lab and seed.
    /// Keys are in alphabetical order.
    pub fn reproducible_json(&self) -> serde_json::Value {
        let mut value = serde_json::to_value(self).unwrap_or_default();
        if let Some(object) = value.as_object_mut() {
            object.remove("engine");
        }
        value
    }

    /// Returns one number by its path, for example `hosts.server1.throughput_bytes_per_s`. For
    /// several look-ups, [`Metrics`] is cheaper. `None` if there is no such number.
    pub fn metric(&self, path: &str) -> Option<f64> {
        Metrics::new(self).get(path)
    }

    /// Length of the measured time in seconds: the run without its warm-up.
    pub fn measured_s(&self) -> f64 {
        (self.lab.duration_s - self.lab.warmup_s).max(0.0)
    }
}
