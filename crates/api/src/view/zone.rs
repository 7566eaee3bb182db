//! The effective zones.

use serde::{Deserialize, Serialize};

/// The effective zones of a fabric, as one switch holds them.
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize)]
pub struct ZoneView {
    /// Name of the effective configuration, if it has one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub effective: Option<String>,
    /// What holds for ports in no zone.
    pub default_zone: ZoneDefault,
    /// Zones in the order of their definition.
    pub zones: Vec<ZoneRow>,
}

/// What holds for ports in no zone.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ZoneDefault {
    /// They may talk to each other.
    Open,
    /// They may not.
    #[default]
    Closed,
}

/// One zone.
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct ZoneRow {
    /// Name.
    pub zone: String,
    /// A peer zone: principals and members talk to each other, members do not.
    pub peer: bool,
    /// Its members, principals first.
    pub members: Vec<ZoneMemberRow>,
}

/// One member of a zone.
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct ZoneMemberRow {
    /// How the zone names it.
    pub member: String,
    /// It is a principal of a peer zone.
    pub principal: bool,
    /// Ports that match and are logged in, sorted by address.
    pub online: Vec<OnlineMember>,
}

/// A port that a member of a zone stands for.
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct OnlineMember {
    /// Address, six hexadecimal digits.
    pub port_id: String,
    /// Port name.
    pub port_name: String,
    /// Host or storage system of the lab, empty for a stranger.
    pub owner: String,
}
