//! Tables of a running instance only: its LUNs and its counters.

use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// The LUNs that an instance serves, in the order of the lab.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
pub struct LunsView {
    /// One row for each LUN.
    pub luns: Vec<LunRow>,
}

/// A LUN.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct LunRow {
    /// Name of the storage system.
    pub storage: String,
    /// LUN in the storage system.
    pub lun: u16,
    /// Capacity in bytes.
    pub size_bytes: u64,
    /// Block size in bytes.
    pub block_bytes: u32,
    /// Kind of medium: `ram`, `file`, `pattern` or `null`.
    pub medium: String,
    /// True if the file is accessed without the page cache of its machine; absent if the medium is
    /// not a file.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub direct: Option<bool>,
    /// True if the last write was refused because the disk behind the LUN is full.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub disk_full: bool,
    /// True if a crash may lose written data that was not flushed.
    pub write_back: bool,
    /// Hosts of the lab, port names of other initiators, and iSCSI names with access; empty if
    /// `everybody` is set.
    pub seen_by: Vec<String>,
    /// True if the LUN is not masked.
    pub everybody: bool,
    /// Number of registrations for persistent reservations.
    pub registrations: u32,
    /// Type and key of the persistent reservation in force.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reservation: Option<String>,
    /// Number of in-flight tasks.
    pub active_tasks: u32,
}

/// The captures of an instance: those that run, then those that a write error has ended.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
pub struct CapturesView {
    /// One row for each capture.
    pub captures: Vec<CaptureRow>,
}

/// A capture.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct CaptureRow {
    /// Port or link, as named when the capture was started.
    pub port: String,
    /// Capture file.
    pub file: String,
    /// Number of captured frames. If the capture has failed, the last of them are not in the file.
    pub frames: u64,
    /// Write error that has ended the capture; absent if it runs.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
}

/// The target port groups of storage systems, in the order of the lab.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
pub struct GroupsView {
    /// One row for each group.
    pub groups: Vec<GroupRow>,
}

/// A target port group.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct GroupRow {
    /// Name of the group.
    pub group: String,
    /// Name of the storage system.
    pub storage: String,
    /// Number of the group in the storage system.
    pub number: u16,
    /// Access state of its ports, for example `active/optimized`.
    pub state: String,
    /// The group is preferred to others in the same state.
    pub preferred: bool,
    /// Ports of the group in a fabric, for example `array:0`, and its portals.
    pub ports: Vec<String>,
    /// Relative port identifiers of its ports.
    pub relative_ports: Vec<u16>,
}

/// All counters of an instance since its start.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
pub struct CountersView {
    /// One row for each switch, then switch ports, then storage ports.
    pub counters: Vec<CounterRow>,
}

/// Counters of one element.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct CounterRow {
    /// Name of the element: a switch, a switch port such as `sw1:0`, or a storage port.
    pub of: String,
    /// Values by counter name. Names for dropped frames are `dropped: ` and the reason.
    pub counters: BTreeMap<String, u64>,
}
