//! Tables that only a running instance has: its LUNs and its counters.

use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// The LUNs that an instance serves, in the lab's order.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
pub struct LunsView {
    /// One row for each.
    pub luns: Vec<LunRow>,
}

/// A LUN.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct LunRow {
    /// Storage system.
    pub storage: String,
    /// Its number.
    pub lun: u16,
    /// Capacity in bytes.
    pub size_bytes: u64,
    /// Bytes of a block.
    pub block_bytes: u32,
    /// What it is made of: `ram`, `file`, `pattern` or `null`.
    pub medium: String,
    /// The file is read and written without the page cache of its machine; absent where it is no file.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub direct: Option<bool>,
    /// Written data may be lost in a crash until it is flushed.
    pub write_back: bool,
    /// Who sees it: hosts of the lab, port names of strangers, iSCSI names; empty with `everybody`.
    pub seen_by: Vec<String>,
    /// It is not masked.
    pub everybody: bool,
    /// Registrations of persistent reservations.
    pub registrations: u32,
    /// Type and key of the persistent reservation that is in force.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reservation: Option<String>,
    /// Tasks that have begun and are not over.
    pub active_tasks: u32,
}

/// The target port groups of storage systems, in the lab's order.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
pub struct GroupsView {
    /// One row for each.
    pub groups: Vec<GroupRow>,
}

/// A target port group.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct GroupRow {
    /// Its name.
    pub group: String,
    /// Storage system.
    pub storage: String,
    /// Its number there.
    pub number: u16,
    /// How its ports serve, as `active/optimized`.
    pub state: String,
    /// It is preferred to others of this state.
    pub preferred: bool,
    /// Its ports in a fabric, as `array:0`, and its portals.
    pub ports: Vec<String>,
    /// Their relative port identifiers.
    pub relative_ports: Vec<u16>,
}

/// Everything that an instance counts, since its start.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
pub struct CountersView {
    /// Switches, their ports, then ports of storage.
    pub counters: Vec<CounterRow>,
}

/// The counters of one thing.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct CounterRow {
    /// Switch, port of a switch as `sw1:0`, or port of storage.
    pub of: String,
    /// By name; dropped frames by `dropped: ` and the reason.
    pub counters: BTreeMap<String, u64>,
}
