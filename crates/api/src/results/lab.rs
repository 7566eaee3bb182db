//! What was simulated: [`LabInfo`], and the faults that it was told to suffer: [`FaultEvent`].

use serde::{Deserialize, Serialize};

/// Which lab, with which seed, for how long.
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct LabInfo {
    /// Short name of the lab.
    pub name: String,
    /// What the lab shows, in its author's words.
    pub description: String,
    /// Seed of every random number.
    pub seed: u64,
    /// Simulated time from the start of the workloads to the end, warm-up included, in seconds.
    pub duration_s: f64,
    /// The part at the beginning that results leave out, in seconds.
    pub warmup_s: f64,
    /// Whether the run ended before its time because somebody interrupted it; `duration_s` is then what was reached.
    pub interrupted: bool,
    /// Version of the program.
    pub sanloom_version: String,
    /// Command that repeats the run.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub command: Option<String>,
    /// Text of the lab file.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub source: Option<String>,
}

/// A fault of the lab.
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct FaultEvent {
    /// When it begins, in seconds since the start of the workloads.
    pub at_s: f64,
    /// When it ends; absent: it is a single event or stays to the end.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub until_s: Option<f64>,
    /// What happens, as a short phrase: `link isl1 down`.
    pub what: String,
    /// The link that it hits, if it hits one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub link: Option<String>,
    /// The switch, host or storage system that it hits, if it hits one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub node: Option<String>,
}
