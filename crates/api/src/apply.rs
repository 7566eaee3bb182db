//! Effect of a changed lab file on a running instance: [`ApplyReport`].

use crate::zoning::ZonePreview;
use serde::{Deserialize, Serialize};

/// Version of the schema of this module. It increases when a field changes its meaning or is
/// removed.
pub const SCHEMA_VERSION: u32 = 1;

/// Changes that `sanloom apply` makes, or would make.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct ApplyReport {
    /// [`SCHEMA_VERSION`] of the writer.
    pub schema_version: u32,
    /// Name of the lab.
    pub lab: String,
    /// Changes to the running instance, one sentence each.
    pub changes: Vec<String>,
    /// Changes that are not possible while the instance runs, with reasons, one sentence each. If
    /// there is any, nothing is changed.
    pub refused: Vec<String>,
    /// Changes in the file that do not affect a running instance.
    pub without_effect: Vec<String>,
    /// Pairs that gain or lose access to each other, for each switch on which zones are committed.
    pub zones: Vec<ZonePreview>,
    /// True if the changes were made.
    pub applied: bool,
}
