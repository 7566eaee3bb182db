//! The effective zones.

use serde::{Deserialize, Serialize};

/// The effective zones of a fabric, as stored by one switch.
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize)]
pub struct ZoneView {
    /// Name of the effective configuration; absent if it has none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub effective: Option<String>,
    /// Rule for ports in no zone.
    pub default_zone: ZoneDefault,
    /// Zones in the order of their definition.
    pub zones: Vec<ZoneRow>,
}

/// Rule for ports in no zone.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ZoneDefault {
    /// Such ports may communicate with each other.
    Open,
    /// Such ports may not communicate.
    #[default]
    Closed,
}

/// One zone.
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct ZoneRow {
    /// Name of the zone.
    pub zone: String,
    /// True for a peer zone: principals and members may communicate, members with each other may
    /// not.
    pub peer: bool,
    /// Members of the zone, principals first.
    pub members: Vec<ZoneMemberRow>,
}

/// One member of a zone.
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct ZoneMemberRow {
    /// The member as written in the zone.
    pub member: String,
    /// True for a principal of a peer zone.
    pub principal: bool,
    /// Ports that match and are logged in, sorted by address.
    pub online: Vec<OnlineMember>,
}

/// A logged-in port that matches a zone member.
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct OnlineMember {
    /// Address, six hexadecimal digits.
    pub port_id: String,
    /// Port name.
    pub port_name: String,
    /// Host or storage system of the lab; empty for a port that is not in the lab.
    pub owner: String,
}
