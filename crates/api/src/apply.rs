//! What a changed lab file means for a running instance: [`ApplyReport`].

use crate::zoning::ZonePreview;
use serde::{Deserialize, Serialize};

/// Version of the schema of this module. It grows when a field changes its meaning or goes away.
pub const SCHEMA_VERSION: u32 = 1;

/// What `sanloom apply` does, or would do.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct ApplyReport {
    /// [`SCHEMA_VERSION`] of the writer.
    pub schema_version: u32,
    /// Name of the lab.
    pub lab: String,
    /// What changes while it runs, in sentences.
    pub changes: Vec<String>,
    /// What cannot, and why, in sentences. One of them, and nothing is changed.
    pub refused: Vec<String>,
    /// What has changed in the file and means nothing to a running instance.
    pub without_effect: Vec<String>,
    /// Who gains and loses sight of whom, at each switch where zones are committed.
    pub zones: Vec<ZonePreview>,
    /// It is done.
    pub applied: bool,
}
