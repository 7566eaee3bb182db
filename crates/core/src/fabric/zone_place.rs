//! A port as zones see it: [`PortIdentity`], and where it stands among them: [`ZonePlace`].

use super::zone_set::Items;
use crate::config::ZoneMember;
use sanloom_wire::{FcId, Wwnn, Wwpn};

/// Everything by which a zone can name a port.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct PortIdentity {
    /// Address, zero while the port has none.
    pub port_id: FcId,
    /// Port name.
    pub port_name: Wwpn,
    /// Node name.
    pub node_name: Wwnn,
    /// Domain of the switch.
    pub domain: u8,
    /// Number of the switch port within its domain, [`PortIdentity::NO_PORT`] where it is not known.
    pub port: u16,
}

impl PortIdentity {
    /// No zone can name the port by domain and port.
    pub const NO_PORT: u16 = u16::MAX;

    /// Every member that means this port.
    pub fn keys(&self) -> [ZoneMember; 4] {
        [
            ZoneMember::PortName(self.port_name),
            ZoneMember::NodeName(self.node_name),
            ZoneMember::DomainPort { domain: self.domain, port: self.port },
            ZoneMember::PortId(self.port_id),
        ]
    }

    /// The member means this port.
    pub fn is(&self, member: &ZoneMember) -> bool {
        self.keys().contains(member)
    }
}

/// The place of a port among the zones of one [`super::ZoneSet`], of no use with another one.
///
/// A port that zones name in one way only, which is the usual case, is one index.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ZonePlace(Place);

#[derive(Clone, PartialEq, Eq, Debug)]
enum Place {
    Nowhere,
    Key(u32),
    Items(Items),
}

/// A zone of a port and what the port is in it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct ZoneRole {
    /// Index in [`crate::config::Zoning::zones`].
    pub zone: u32,
    /// The port may talk to the members.
    pub principal: bool,
    /// The port may talk to the principals. Both hold in a zone that is no peer zone.
    pub member: bool,
}

impl ZonePlace {
    pub(super) const NOWHERE: ZonePlace = ZonePlace(Place::Nowhere);

    pub(super) fn of_key(key: u32) -> ZonePlace {
        ZonePlace(Place::Key(key))
    }

    pub(super) fn of_items(items: Items) -> ZonePlace {
        ZonePlace(Place::Items(items))
    }

    /// The port is in a zone.
    pub fn is_zoned(&self) -> bool {
        self.0 != Place::Nowhere
    }

    pub(super) fn key(&self) -> Option<u32> {
        match self.0 {
            Place::Key(key) => Some(key),
            _ => None,
        }
    }

    pub(super) fn items(&self) -> &[u32] {
        match &self.0 {
            Place::Items(items) => items,
            _ => &[],
        }
    }
}
