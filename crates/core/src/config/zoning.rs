//! The effective zones: what is enforced.

use crate::zoning::{MergeControl, MergeRules, ZoneLimits};
use sanloom_wire::{FcId, Wwnn, Wwpn};
use std::fmt;
use std::str::FromStr;

/// Who may talk to whom.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Zoning {
    /// The effective zones; a port may be in several.
    pub zones: Vec<Zone>,
    /// What holds for ports in no zone.
    pub default: ZoneDefault,
}

/// How the switches of a fabric treat their zone database.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct ZonePolicy {
    /// How large it may become.
    pub limits: ZoneLimits,
    /// Which other databases it may join.
    pub merge_control: MergeControl,
    /// What makes two databases one.
    pub merge_rules: MergeRules,
}

/// Ports that may talk to each other.
///
/// Without principals every member may talk to every other. With principals the zone is a *peer zone*: a principal and a
/// member may talk to each other, two principals or two members may not. A port that is both (by one name or by several)
/// has the rights of both.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Zone {
    /// Name.
    pub name: String,
    /// Members; in a peer zone those that are no principals.
    pub members: Vec<ZoneMember>,
    /// Principals; empty in a zone that is no peer zone.
    pub principals: Vec<ZoneMember>,
}

impl Zone {
    /// The zone is a peer zone.
    pub fn is_peer(&self) -> bool {
        !self.principals.is_empty()
    }

    /// Principals and members.
    pub fn all_members(&self) -> impl Iterator<Item = &ZoneMember> {
        self.principals.iter().chain(&self.members)
    }
}

/// What a zone knows a port by (FC-GS, fabric zone server, zone member identifier types 1 to 4).
///
/// As text, which [`FromStr`] reads and [`Display`](fmt::Display) writes: `21:00:00:24:ff:00:00:01`,
/// `wwnn:20:00:00:24:ff:00:00:01`, `3,7` and `0x030700`.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum ZoneMember {
    /// The port with this name.
    PortName(Wwpn),
    /// All ports of the node with this name.
    NodeName(Wwnn),
    /// Whatever is logged in at this port of a switch.
    DomainPort {
        /// Domain of the switch.
        domain: u8,
        /// Port number within the switch.
        port: u16,
    },
    /// The port with this address.
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

/// The text is none of the forms of a zone member.
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

/// What holds for ports in no zone.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum ZoneDefault {
    /// They may talk to each other.
    Open,
    /// They may not.
    Closed,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_text_of_a_member_is_read_back() {
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
