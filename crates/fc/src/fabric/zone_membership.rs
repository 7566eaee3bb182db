//! Identity of a port for zoning, [`PortIdentity`], and its zone membership, [`ZoneMembership`].

use super::zone_set::Items;
use crate::config::ZoneMember;
use sanloom_wire::{FcId, Wwnn, Wwpn};

/// All attributes by which a zone can name a port.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct PortIdentity {
    /// Address; zero while the port has none.
    pub port_id: FcId,
    /// World-wide port name.
    pub port_name: Wwpn,
    /// World-wide node name.
    pub node_name: Wwnn,
    /// Domain of the switch.
    pub domain: u8,
    /// Switch port number within the domain; [`PortIdentity::NO_PORT`] if unknown.
    pub port: u16,
}

impl PortIdentity {
    /// Port number that no zone member can name.
    pub const NO_PORT: u16 = u16::MAX;

    /// All members that match this port.
    pub fn keys(&self) -> [ZoneMember; 4] {
        [
            ZoneMember::PortName(self.port_name),
            ZoneMember::NodeName(self.node_name),
            ZoneMember::DomainPort { domain: self.domain, port: self.port },
            ZoneMember::PortId(self.port_id),
        ]
    }

    /// Returns true if the member matches this port.
    pub fn is(&self, member: &ZoneMember) -> bool {
        self.keys().contains(member)
    }
}

/// Zone membership of a port in one [`super::ZoneSet`]; invalid for any other set.
///
/// For a port that zones name in only one form, as is usual, it is a single index.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ZoneMembership(Repr);

#[derive(Clone, PartialEq, Eq, Debug)]
enum Repr {
    Empty,
    Key(u32),
    Items(Items),
}

/// Zone of a port, and the roles of the port in it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct ZoneRole {
    /// Index in [`crate::config::Zoning::zones`].
    pub zone: u32,
    /// True if the port may communicate with the members.
    pub principal: bool,
    /// True if the port may communicate with the principals. Both are true in a zone that is not a
    /// peer zone.
    pub member: bool,
}

impl ZoneMembership {
    pub(super) const NONE: ZoneMembership = ZoneMembership(Repr::Empty);

    pub(super) fn of_key(key: u32) -> ZoneMembership {
        ZoneMembership(Repr::Key(key))
    }

    pub(super) fn of_items(items: Items) -> ZoneMembership {
        ZoneMembership(Repr::Items(items))
    }

    /// Returns true if the port is in a zone.
    pub fn is_zoned(&self) -> bool {
        self.0 != Repr::Empty
    }

    pub(super) fn key(&self) -> Option<u32> {
        match self.0 {
            Repr::Key(key) => Some(key),
            _ => None,
        }
    }

    pub(super) fn items(&self) -> &[u32] {
        match &self.0 {
            Repr::Items(items) => items,
            _ => &[],
        }
    }
}
