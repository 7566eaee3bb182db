//! Description of the run: [`LabInfo`], and the faults of the lab: [`FaultEvent`].

use serde::{Deserialize, Serialize};

/// Lab, seed and duration of the run.
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct LabInfo {
    /// Short name of the lab.
    pub name: String,
    /// Purpose of the lab, from its author.
    pub description: String,
    /// Seed of all random numbers.
    pub seed: u64,
    /// Simulated time from the start of the workloads to the end, warm-up included, in seconds.
    pub duration_s: f64,
    /// Initial part that the results exclude, in seconds.
    pub warmup_s: f64,
    /// Time from which the requests per second and the mean latency of all hosts are steady, in
    /// seconds since the start of the workloads: the end of the warm-up by MSER-5 over the steps of
    /// `series` before the first fault or change of zones. Absent if one of both is not steady from
    /// the middle of these steps on, or if there are fewer than fifty steps.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub settled_s: Option<f64>,
    /// True if the run was interrupted; `duration_s` is then the simulated time that was reached.
    pub interrupted: bool,
    /// Stop rule of the run, if the lab has one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub precision: Option<PrecisionResult>,
    /// Version of the program.
    pub sanloom_version: String,
    /// Command that repeats the run.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub command: Option<String>,
    /// Text of the lab file.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub source: Option<String>,
}

/// Stop rule of a run (`run.until`) and the precision that the run has reached.
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct PrecisionResult {
    /// Path of the observed number.
    pub metric: String,
    /// Wanted half width of the 95 % confidence interval, as a share of the mean.
    pub wanted: f64,
    /// Half width that was reached; absent if the run was too short to tell.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reached: Option<f64>,
    /// True if the run ended because the interval was narrow enough.
    pub met: bool,
}

/// A fault of the lab.
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct FaultEvent {
    /// Start of the fault, in seconds since the start of the workloads.
    pub at_s: f64,
    /// End of the fault; absent if it is a single event or lasts until the end.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub until_s: Option<f64>,
    /// The fault as a short phrase: `link isl1 down`.
    pub what: String,
    /// Affected link, if any.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub link: Option<String>,
    /// Affected switch, host or storage system, if any.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub node: Option<String>,
}
