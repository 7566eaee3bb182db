//! Answers about zoning: why two ports can or cannot communicate, the effect of an edit, and the
//! effect of a merge.
//!
//! `sanloom zone explain`, `sanloom zone preview` and `sanloom fabric merge-preview` print these
//! values with `--json`. World-wide names are text with colons, and addresses six hexadecimal
//! digits. Lists keep the order of the lab.

use crate::control::ZoneClient;
use crate::zone_database::Database;
use sanloom_fc::zoning::ZoneDatabase;
use serde::{Deserialize, Serialize};

/// Version of the schema of this module. It increases when a field changes its meaning or is
/// removed. New fields may appear without a new version.
pub const SCHEMA_VERSION: u32 = 1;

/// A port of a host or storage system with the identifiers that zones can use.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct ZonePort {
    /// Node and number of the port, for example `server1:0`.
    pub name: String,
    /// Port name.
    pub port_name: String,
    /// Node name.
    pub node_name: String,
    /// Address that the port receives at its fabric login; `000000` if it depends on the order of
    /// the logins.
    pub port_id: String,
    /// The switch that the port is linked to.
    pub switch: String,
    /// Domain of that switch.
    pub domain: u8,
    /// Port number on that switch.
    pub switch_port: u16,
}

/// Explanation whether the ports of two nodes may communicate, and why.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct ZoneExplanation {
    /// [`SCHEMA_VERSION`] of the writer.
    pub schema_version: u32,
    /// Name of the lab.
    pub lab: String,
    /// Configuration in force; `None` if zoning is not in force.
    pub effective: Option<String>,
    /// True if ports in no zone may communicate with each other.
    pub default_open: bool,
    /// True if at least one pair may communicate.
    pub allowed: bool,
    /// Every pair of a port of the first node and a port of the second node.
    pub pairs: Vec<PairExplanation>,
}

/// Explanation whether two ports may communicate, and why.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct PairExplanation {
    /// Port of the first node.
    pub first: ZonePort,
    /// Port of the second node.
    pub second: ZonePort,
    /// True if the two may communicate.
    pub allowed: bool,
    /// Switches that do not enforce zones on frames to their ports (`hard_zoning = "off"`). There,
    /// zones only hide ports in the name server.
    pub unenforced_at: Vec<String>,
    /// `same-port`, `common-zone`, `default-open`, `default-closed`, `one-unzoned`,
    /// `no-common-zone`, `peer-roles` or `different-fabrics`.
    pub reason: String,
    /// The reason in one sentence.
    pub text: String,
    /// Decisive zones: those that permit the communication, or the peer zones that do not.
    pub zones: Vec<String>,
    /// The effective zones of the first port.
    pub first_zones: Vec<ZoneMembership>,
    /// The effective zones of the second port.
    pub second_zones: Vec<ZoneMembership>,
}

/// Membership of a port in a zone.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct ZoneMembership {
    /// Name of the zone.
    pub zone: String,
    /// True if the zone has principals.
    pub peer_zone: bool,
    /// Members of the zone that match the port.
    pub as_member: Vec<String>,
    /// Principals of the zone that match the port.
    pub as_principal: Vec<String>,
}

/// Zones of a running switch and its open transaction.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct ZoneStatus {
    /// [`SCHEMA_VERSION`] of the writer.
    pub schema_version: u32,
    /// Name of the switch.
    pub switch: String,
    /// Zoning in force.
    pub state: ZoneState,
    /// The whole committed database.
    pub committed: Database,
    /// The database after a commit; absent if no transaction is open.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub working: Option<Database>,
    /// Fingerprint of the committed database as 32 hexadecimal digits.
    pub checksum: String,
    /// Maximum size of the database in bytes.
    pub database_max_bytes: u64,
    /// The open transaction; absent if none is open.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub transaction: Option<ZoneTransaction>,
    /// Reason for which the last transaction of the client has ended without its request; absent if
    /// the client has lost none. Its next edit or commit fails, once.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub lost: Option<String>,
    /// Reasons for which a commit of the transaction would be rejected.
    pub problems: Vec<String>,
    /// Progress of the change in which the switch takes part: `free`, `waiting`, `locking`,
    /// `staging`, `updating`, `releasing`, `locked`, `staged` or `updated`.
    pub change: String,
    /// Domain of the switch that made the change.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub locked_by: Option<u8>,
    /// True if a previous database can be restored.
    pub can_roll_back: bool,
    /// True if the committed database is in the store, so that it survives a crash.
    pub kept: bool,
    /// True if the fabric has no store, because it is simulated: zones last as long as it runs.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub volatile: bool,
    /// Ports registered in the name server.
    pub ports: Vec<ZonePort>,
}

/// An open transaction of a switch.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct ZoneTransaction {
    /// Number of the transaction, unique for the switch since its start; never 0.
    pub token: u32,
    /// The client that owns it; absent for a transaction of the control socket, which every client
    /// of the socket may use.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub owner: Option<ZoneClient>,
    /// Time in seconds after the owner's last request at which it ends; absent without an owner.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub timeout_s: Option<u32>,
    /// Time in seconds until it ends.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub remaining_s: Option<u32>,
    /// Size in bytes of the database after a commit.
    pub database_bytes: u64,
}

/// Effect of zone edits on the ports of a lab.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct ZonePreview {
    /// [`SCHEMA_VERSION`] of the writer.
    pub schema_version: u32,
    /// Name of the lab.
    pub lab: String,
    /// Zoning in force before the edits.
    pub before: ZoneState,
    /// Zoning in force after the edits.
    pub after: ZoneState,
    /// Pairs that may communicate only after the edits.
    pub gains: Vec<PortPair>,
    /// Pairs that may communicate only before the edits.
    pub loses: Vec<PortPair>,
    /// Number of pairs that may communicate both before and after the edits.
    pub unchanged_pairs: u64,
    /// Number of ports that gain and lose no access.
    pub unaffected_ports: u64,
}

/// Zoning in force.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct ZoneState {
    /// Name of the configuration; `None` if zoning is not in force.
    pub effective: Option<String>,
    /// Names of its zones.
    pub zones: Vec<String>,
    /// True if ports in no zone may communicate with each other.
    pub default_open: bool,
    /// Fingerprint of the database as 16 hexadecimal digits; it differs between different
    /// databases.
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
            default_open: database.default_is_open(),
            generation: format!("{:016x}", database.generation()),
            database_bytes: database.size().database_bytes as u64,
        }
    }
}

/// Two ports by name, for example `server1:0` and `disk1:0`.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug, Default, Serialize, Deserialize)]
pub struct PortPair(pub String, pub String);

/// Effect of joining two fabrics with an ISL.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct MergePreview {
    /// [`SCHEMA_VERSION`] of the writer.
    pub schema_version: u32,
    /// Name of the first lab.
    pub first: String,
    /// Name of the second lab.
    pub second: String,
    /// Switch at the first fabric's end of the ISL.
    pub first_switch: String,
    /// Switch at the second fabric's end of the ISL.
    pub second_switch: String,
    /// True if the fabrics would join; false if the ISL would be isolated.
    pub joins: bool,
    /// All causes of isolation, in the order in which the switches would detect them. Each is
    /// detected as if the causes before it had been removed.
    pub isolation: Vec<IsolationCause>,
    /// Zoning in force in the joined fabric; `None` if the zones cannot be merged.
    pub merged: Option<ZoneState>,
    /// True if the zone database of the first fabric would change.
    pub changes_first: bool,
    /// True if the zone database of the second fabric would change.
    pub changes_second: bool,
    /// Pairs of one port from each fabric that may communicate in the joined fabric.
    pub gains_between: Vec<PortPair>,
    /// Pairs in one fabric that may communicate only after the join.
    pub gains_within: Vec<PortPair>,
    /// Pairs in one fabric that may communicate only before the join.
    pub loses_within: Vec<PortPair>,
    /// Settings that should be equal in one fabric but do not isolate the ISL, one sentence each.
    pub disagreements: Vec<String>,
    /// Port names that both fabrics have. Of two ports with one name, only one can stay logged in.
    pub duplicate_port_names: Vec<String>,
    /// Pairs of switches, one from each lab, that would have the same world-wide name because the
    /// labs leave `wwn` out. The preview gave one of the two another name.
    pub made_up_names: Vec<[String; 2]>,
}

/// One reason for which an ISL would be isolated.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct IsolationCause {
    /// The reason as displayed for isolated ports, for example `timer-mismatch`, `flow-control`,
    /// `domain-overlap` or `zone-merge-failure`.
    pub reason: String,
    /// Class of a `zone-merge-failure`: `configuration mismatch`, `type mismatch`, `content
    /// mismatch`, `default zone mismatch`, `merge control restrict` or `limit exceeded`.
    pub class: Option<String>,
    /// Kind of the conflicting object: `alias`, `zone` or `configuration`.
    pub object: Option<String>,
    /// Name of the conflicting object.
    pub name: Option<String>,
    /// The cause in a sentence, with the values of both sides.
    pub text: String,
    /// Remedy in one sentence.
    pub remedy: String,
}
