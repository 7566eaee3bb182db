//! Answers about zoning: why two ports can or cannot talk, what an edit changes, what a merge would do.
//!
//! `sanloom zone explain`, `sanloom zone preview` and `sanloom fabric merge-preview` print these values with `--json`.
//! World-wide names are text with colons, addresses six hex digits; lists keep the order of the lab.

use crate::zone_database::Database;
use sanloom_core::config::ZoneDefault;
use sanloom_core::zoning::ZoneDatabase;
use serde::{Deserialize, Serialize};

/// Version of the schema of this module. It grows when a field changes its meaning or goes away; new fields may appear
/// without a new version.
pub const SCHEMA_VERSION: u32 = 1;

/// A port of a host or storage system, as zones can name it.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct ZonePort {
    /// Node and number of the port, such as `server1:0`.
    pub name: String,
    /// Port name.
    pub port_name: String,
    /// Node name.
    pub node_name: String,
    /// Address that the port gets at its fabric login; `000000` where that depends on the order of the logins.
    pub port_id: String,
    /// The switch that it is linked to.
    pub switch: String,
    /// Domain of that switch.
    pub domain: u8,
    /// Port of that switch.
    pub switch_port: u16,
}

/// Whether and why the ports of two nodes may talk.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct ZoneExplanation {
    /// [`SCHEMA_VERSION`] of the writer.
    pub schema_version: u32,
    /// Name of the lab.
    pub lab: String,
    /// The configuration in force; nothing: no zones.
    pub effective: Option<String>,
    /// Ports in no zone may talk to each other.
    pub default_open: bool,
    /// Some pair may talk.
    pub allowed: bool,
    /// Every pair of a port of the first and a port of the second.
    pub pairs: Vec<PairExplanation>,
}

/// Whether and why two ports may talk.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct PairExplanation {
    /// The first port.
    pub first: ZonePort,
    /// The second port.
    pub second: ZonePort,
    /// They may talk.
    pub allowed: bool,
    /// Switches that let frames to their ports pass whatever the zones say (`hard_zoning = "off"`): zones only hide their
    /// ports.
    pub unenforced_at: Vec<String>,
    /// `same-port`, `common-zone`, `default-open`, `default-closed`, `one-unzoned`, `no-common-zone`, `peer-roles` or
    /// `different-fabrics`.
    pub reason: String,
    /// The reason in a sentence.
    pub text: String,
    /// The zones that decide: those that let the two talk, or the peer zones that do not.
    pub zones: Vec<String>,
    /// The effective zones of the first port.
    pub first_zones: Vec<ZoneMembership>,
    /// The effective zones of the second port.
    pub second_zones: Vec<ZoneMembership>,
}

/// A zone that a port is in, and by what.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct ZoneMembership {
    /// The zone.
    pub zone: String,
    /// It has principals.
    pub peer_zone: bool,
    /// Members that mean the port.
    pub as_member: Vec<String>,
    /// Principals that mean the port.
    pub as_principal: Vec<String>,
}

/// The zones of a running switch, and the transaction that is open there.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct ZoneStatus {
    /// [`SCHEMA_VERSION`] of the writer.
    pub schema_version: u32,
    /// The switch.
    pub switch: String,
    /// What is in force.
    pub state: ZoneState,
    /// Everything that is committed.
    pub committed: Database,
    /// What a commit would make of it; nothing: no transaction is open.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub working: Option<Database>,
    /// What a commit of the transaction would be refused for.
    pub problems: Vec<String>,
    /// How far the change is that the switch has part in: `free`, `waiting`, `locking`, `staging`, `updating`, `releasing`,
    /// `locked`, `staged` or `updated`.
    pub change: String,
    /// Domain of the switch whose change it is.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub locked_by: Option<u8>,
    /// There is a database to go back to.
    pub can_roll_back: bool,
    /// What is committed is in the store: it survives a crash.
    pub kept: bool,
    /// The ports that the name server knows.
    pub ports: Vec<ZonePort>,
}

/// What zone edits change for the ports of a lab.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct ZonePreview {
    /// [`SCHEMA_VERSION`] of the writer.
    pub schema_version: u32,
    /// Name of the lab.
    pub lab: String,
    /// What is in force before.
    pub before: ZoneState,
    /// What is in force afterwards.
    pub after: ZoneState,
    /// Pairs that may talk afterwards and may not before.
    pub gains: Vec<PortPair>,
    /// Pairs that may talk before and may not afterwards.
    pub loses: Vec<PortPair>,
    /// Number of pairs that may talk before and afterwards.
    pub unchanged_pairs: u64,
    /// Number of ports that neither gain nor lose.
    pub unaffected_ports: u64,
}

/// What is in force.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct ZoneState {
    /// Name of the configuration; nothing: no zones.
    pub effective: Option<String>,
    /// Its zones.
    pub zones: Vec<String>,
    /// Ports in no zone may talk to each other.
    pub default_open: bool,
    /// A number that differs between databases that differ, as 16 hex digits.
    pub generation: String,
    /// Size of the database in bytes.
    pub database_bytes: u64,
}

impl From<&ZoneDatabase> for ZoneState {
    fn from(database: &ZoneDatabase) -> ZoneState {
        let effective = database.effective.as_deref();
        let zones = effective.map_or(&[][..], |effective| &effective.zones);
        ZoneState {
            effective: effective.map(|effective| effective.name.clone()),
            zones: zones.iter().map(|zone| zone.name.clone()).collect(),
            default_open: database.default_zone == ZoneDefault::Open,
            generation: format!("{:016x}", database.generation()),
            database_bytes: database.size().database_bytes as u64,
        }
    }
}

/// Two ports by name, such as `server1:0` and `disk1:0`.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug, Default, Serialize, Deserialize)]
pub struct PortPair(pub String, pub String);

/// What would become of two fabrics if an ISL joined them.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct MergePreview {
    /// [`SCHEMA_VERSION`] of the writer.
    pub schema_version: u32,
    /// Name of the first lab.
    pub first: String,
    /// Name of the second lab.
    pub second: String,
    /// Switch of the first fabric at which the ISL ends.
    pub first_switch: String,
    /// Switch of the second fabric at which the ISL ends.
    pub second_switch: String,
    /// The fabrics would join. Otherwise the ISL would be isolated.
    pub joins: bool,
    /// Everything that would isolate the ISL, in the order in which the switches would find it: each cause is found with
    /// those before it out of the way.
    pub isolation: Vec<IsolationCause>,
    /// What would be in force in the joined fabric; nothing if the zones cannot be merged.
    pub merged: Option<ZoneState>,
    /// The zone database of the first fabric would change.
    pub changes_first: bool,
    /// The zone database of the second fabric would change.
    pub changes_second: bool,
    /// Pairs, a port of the first fabric and one of the second, that may talk in the joined fabric.
    pub gains_between: Vec<PortPair>,
    /// Pairs within one fabric that may talk in the joined fabric and may not before.
    pub gains_within: Vec<PortPair>,
    /// Pairs within one fabric that may talk before and may not in the joined fabric.
    pub loses_within: Vec<PortPair>,
    /// What would not isolate the ISL and yet ought to be the same in one fabric, in sentences.
    pub disagreements: Vec<String>,
    /// Port names that both fabrics have: of two ports with one name only one can stay logged in.
    pub duplicate_port_names: Vec<String>,
    /// Switches, one of each lab, that would have one world-wide name because labs leave `wwn` out: the preview gave one of the two
    /// another name.
    pub made_up_names: Vec<[String; 2]>,
}

/// One reason why an ISL would be isolated.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct IsolationCause {
    /// The reason as isolated ports show it, such as `timer-mismatch`, `flow-control`, `domain-overlap` or
    /// `zone-merge-failure`.
    pub reason: String,
    /// With `zone-merge-failure` the class: `configuration mismatch`, `type mismatch`, `content mismatch`,
    /// `default zone mismatch`, `merge control restrict` or `limit exceeded`.
    pub class: Option<String>,
    /// The sort of the object that is in the way: `alias`, `zone` or `configuration`.
    pub object: Option<String>,
    /// Its name.
    pub name: Option<String>,
    /// The cause in a sentence, with the values of both sides.
    pub text: String,
    /// What to do about it.
    pub remedy: String,
}
