//! Zoning: the effective zones, and the rules of the zone database.

use sanloom_wire::{FcId, Wwnn, Wwpn};
use std::fmt;
use std::str::FromStr;

/// Effective zoning: the ports that may communicate.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Zoning {
    /// Effective zones; a port may be in several.
    pub zones: Vec<Zone>,
    /// Access between ports in no zone.
    pub default: ZoneDefault,
}

impl Zoning {
    /// Returns true if ports in no zone may communicate with each other.
    pub fn default_is_open(&self) -> bool {
        self.default.is_open(!self.zones.is_empty())
    }
}

/// Size limits and merge settings of the zone database of a fabric.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct ZonePolicy {
    /// Size limits.
    pub limits: ZoneLimits,
    /// Databases that may be merged.
    pub merge_control: MergeControl,
    /// Merge rules of the switch family.
    pub merge_rules: MergeRules,
}

/// Ports that may communicate.
///
/// Without principals every member may communicate with every other. With principals the zone is a
/// *peer zone*: a principal and a member may communicate, but two principals or two members may
/// not. A port that is both (by one name or by several) has the rights of both.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Zone {
    /// Name, unique within the effective zones.
    pub name: String,
    /// Members; in a peer zone the members that are not principals.
    pub members: Vec<ZoneMember>,
    /// Principals; empty unless the zone is a peer zone.
    pub principals: Vec<ZoneMember>,
}

impl Zone {
    /// Returns true for a peer zone.
    pub fn is_peer(&self) -> bool {
        !self.principals.is_empty()
    }

    /// All principals, then all members.
    pub fn all_members(&self) -> impl Iterator<Item = &ZoneMember> {
        self.principals.iter().chain(&self.members)
    }
}

/// Identifier of ports in a zone (FC-GS, fabric zone server, zone member identifier types 1 to 4).
///
/// [`FromStr`] parses and [`Display`](fmt::Display) writes these text forms:
/// `21:00:00:24:ff:00:00:01`, `wwnn:20:00:00:24:ff:00:00:01`, `3,7` and `0x030700`.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum ZoneMember {
    /// Port with this port name.
    PortName(Wwpn),
    /// All ports of the node with this name.
    NodeName(Wwnn),
    /// All ports logged in at this switch port.
    DomainPort {
        /// Domain of the switch.
        domain: u8,
        /// Port number within the switch.
        port: u16,
    },
    /// Port with this address.
    PortId(FcId),
}

impl fmt::Display for ZoneMember {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            ZoneMember::PortName(name) => write!(f, "{name}"),
            ZoneMember::NodeName(name) => write!(f, "wwnn:{name}"),
            ZoneMember::DomainPort { domain, port } => write!(f, "{domain},{port}"),
            ZoneMember::PortId(id) => write!(f, "0x{id}"),
        }
    }
}

/// Error for a text that has none of the forms of a zone member.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
#[error(
    "a zone member is a port name (21:00:00:24:ff:00:00:01), a node name (wwnn:20:00:00:24:ff:00:00:01), \
     domain and port (3,7), or an address (0x030700)"
)]
pub struct BadZoneMember;

impl FromStr for ZoneMember {
    type Err = BadZoneMember;

    fn from_str(text: &str) -> Result<ZoneMember, BadZoneMember> {
        let text = text.trim();
        if let Some(name) = text.strip_prefix("wwnn:") {
            return name.parse().map(ZoneMember::NodeName).map_err(|_| BadZoneMember);
        }
        if let Some(name) = text.strip_prefix("wwpn:") {
            return name.parse().map(ZoneMember::PortName).map_err(|_| BadZoneMember);
        }
        if let Some(digits) = text.strip_prefix("0x") {
            let hex = digits.len() == 6 && digits.bytes().all(|b| b.is_ascii_hexdigit());
            let id = u32::from_str_radix(digits, 16).ok().filter(|_| hex);
            return id.map(|id| ZoneMember::PortId(FcId::new(id))).ok_or(BadZoneMember);
        }
        if let Some((domain, port)) = text.split_once(',') {
            let domain = domain.trim().parse().ok().filter(|domain| (1..=239).contains(domain));
            let port = port.trim().parse().ok();
            return match (domain, port) {
                (Some(domain), Some(port)) => Ok(ZoneMember::DomainPort { domain, port }),
                _ => Err(BadZoneMember),
            };
        }
        text.parse().map(ZoneMember::PortName).map_err(|_| BadZoneMember)
    }
}

/// Permission of ports in no zone, in rising order.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum ZoneDefault {
    /// No traffic among them.
    Closed,
    /// Traffic among them until a zone is in force. Fabric OS calls it *all access*.
    OpenWithoutZones,
    /// Traffic among them. NX-OS calls it *permit*.
    Open,
}

impl ZoneDefault {
    /// Returns true if ports in no zone may communicate with each other. `zoned`: at least one zone
    /// is in force.
    pub const fn is_open(self, zoned: bool) -> bool {
        match self {
            ZoneDefault::Closed => false,
            ZoneDefault::OpenWithoutZones => !zoned,
            ZoneDefault::Open => true,
        }
    }
}

/// As the lab file spells it.
impl fmt::Display for ZoneDefault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            ZoneDefault::Closed => "closed",
            ZoneDefault::OpenWithoutZones => "auto",
            ZoneDefault::Open => "open",
        })
    }
}

/// Merge control: databases that may be merged (RFC 4936).
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub enum MergeControl {
    /// All databases without conflicts.
    #[default]
    Allow,
    /// Only equal databases.
    Restrict,
}

/// Rules that differ between switch families.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct MergeRules {
    /// Different configurations, including effective ones, are joined zone by zone. If false, they
    /// must be equal.
    pub join_configs: bool,
    /// Lists with the same members in a different order count as different.
    pub member_order_matters: bool,
    /// Different default zones prevent the merge. If false, the one that permits less applies.
    pub same_default_zone: bool,
    /// Enhanced mode: the switch joins only switches in the same mode. Switches exchange their mode
    /// with ESS.
    pub enhanced: bool,
}

impl MergeRules {
    /// Basic zoning (FC-SW, merge).
    pub const STANDARD: MergeRules =
        MergeRules { join_configs: true, member_order_matters: false, same_default_zone: false, enhanced: false };
    /// Enhanced zoning: all switches must be in enhanced mode, and the default zone is a setting of
    /// the whole fabric (RFC 4936).
    pub const ENHANCED: MergeRules = MergeRules { same_default_zone: true, enhanced: true, ..MergeRules::STANDARD };
    /// Fabric OS: effective configurations must be equal, and the order of members matters.
    pub const FABRIC_OS: MergeRules =
        MergeRules { join_configs: false, member_order_matters: true, ..MergeRules::STANDARD };
}

impl Default for MergeRules {
    fn default() -> MergeRules {
        MergeRules::STANDARD
    }
}

/// Largest database that a switch accepts. In a fabric the smallest value of each limit applies,
/// see [`ZoneLimits::smallest`].
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct ZoneLimits {
    /// Size of all defined and effective objects as encoded in SFC and MR, in bytes.
    pub database_bytes: usize,
    /// Length of a name, in characters.
    pub name_chars: usize,
    /// Number of defined zones.
    pub zones: usize,
    /// Number of defined aliases.
    pub aliases: usize,
    /// Number of defined configurations.
    pub configs: usize,
    /// Number of members in one zone or alias.
    pub members: usize,
}

impl Default for ZoneLimits {
    /// Names of up to 64 characters (FC-GS, zone object names), no other limit.
    fn default() -> ZoneLimits {
        let any = usize::MAX;
        ZoneLimits {
            database_bytes: any,
            name_chars: MAX_ZONE_NAME_CHARS,
            zones: any,
            aliases: any,
            configs: any,
            members: any,
        }
    }
}

/// Longest name that the standard allows, in characters.
pub const MAX_ZONE_NAME_CHARS: usize = 64;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_member_is_parsed_from_its_own_text() {
        let members = [
            ZoneMember::PortName(Wwpn(0x2100_0024_ff00_0001)),
            ZoneMember::NodeName(Wwnn(0x2000_0024_ff00_0001)),
            ZoneMember::DomainPort { domain: 3, port: 700 },
            ZoneMember::PortId(FcId::new(0x03_0700)),
        ];
        for member in members {
            assert_eq!(member.to_string().parse(), Ok(member));
        }
        assert_eq!("wwpn:21:00:00:24:ff:00:00:01".parse(), Ok(members[0]));
        assert_eq!("3, 700".parse(), Ok(members[2]));
        for wrong in ["", "3", "0,1", "240,1", "1,65536", "0x0307", "0x+30700", "wwnn:1", "21:00", "1,2,3"] {
            assert_eq!(wrong.parse::<ZoneMember>(), Err(BadZoneMember), "{wrong}");
        }
    }
}
