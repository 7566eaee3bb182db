//! Zone sets, zones and members in requests and accepts of the zone server.

use crate::bytes::{Put, Reader, id_at, u16_at, u64_at};
use crate::error::ParseError;
use crate::id::{FcId, Wwnn, Wwpn};
use crate::zone_name;

/// A zone set with all its zones.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct FzsZoneSet {
    /// Name, at most 255 bytes.
    pub name: Box<[u8]>,
    /// Zones of the set.
    pub zones: Vec<FzsZone>,
}

/// A zone with its members.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct FzsZone {
    /// Name, at most 255 bytes.
    pub name: Box<[u8]>,
    /// Members of the zone.
    pub members: Vec<FzsMember>,
}

/// A member of a zone, twelve bytes.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum FzsMember {
    /// 1: a port name.
    PortName(Wwpn),
    /// 2: every port connected to a port of a switch.
    DomainPort {
        /// Domain of the switch.
        domain: u8,
        /// Port number on the switch.
        port: u16,
    },
    /// 3: an address.
    FcId(FcId),
    /// 4: all ports of a node.
    NodeName(Wwnn),
    /// A member of any other type.
    Other {
        /// Member type; never one of the variants above.
        kind: u8,
        /// Identifier of the member.
        id: [u8; 8],
    },
}

impl FzsMember {
    pub(super) const BYTES: usize = 12;

    /// Member type on the wire.
    pub const fn kind(self) -> u8 {
        match self {
            FzsMember::PortName(_) => 1,
            FzsMember::DomainPort { .. } => 2,
            FzsMember::FcId(_) => 3,
            FzsMember::NodeName(_) => 4,
            FzsMember::Other { kind, .. } => kind,
        }
    }

    fn parse(reader: &mut Reader<'_>) -> Result<FzsMember, ParseError> {
        let b = reader.take("zone member", Self::BYTES)?;
        Ok(match b[0] {
            1 => FzsMember::PortName(Wwpn(u64_at(b, 4))),
            2 => FzsMember::DomainPort { domain: b[5], port: u16_at(b, 6) },
            3 => FzsMember::FcId(id_at(b, 4)),
            4 => FzsMember::NodeName(Wwnn(u64_at(b, 4))),
            kind => FzsMember::Other { kind, id: std::array::from_fn(|i| b[4 + i]) },
        })
    }

    fn emit(self, out: &mut dyn Put) {
        out.put_slice(&[self.kind(), 0, 0, 0]);
        match self {
            FzsMember::PortName(name) => out.put_u64(name.0),
            FzsMember::NodeName(name) => out.put_u64(name.0),
            FzsMember::DomainPort { domain, port } => {
                out.put_slice(&[0, domain]);
                out.put_u16(port);
                out.put_zeros(4);
            }
            FzsMember::FcId(id) => {
                out.put_slice(&id.to_bytes());
                out.put_zeros(5);
            }
            FzsMember::Other { id, .. } => out.put_slice(&id),
        }
    }
}

impl FzsZone {
    fn parse(reader: &mut Reader<'_>) -> Result<FzsZone, ParseError> {
        Ok(FzsZone { name: zone_name::parse("zone name", reader)?, members: parse_members(reader)? })
    }
}

impl FzsZoneSet {
    pub(super) fn parse(reader: &mut Reader<'_>) -> Result<FzsZoneSet, ParseError> {
        let name = zone_name::parse("zone set name", reader)?;
        Ok(FzsZoneSet { name, zones: reader.repeat("number of zones", FzsZone::parse)? })
    }

    pub(super) fn emit(&self, out: &mut dyn Put) {
        zone_name::emit(&self.name, out);
        out.put_len32(self.zones.len());
        for zone in &self.zones {
            zone_name::emit(&zone.name, out);
            emit_members(&zone.members, out);
        }
    }
}

pub(super) fn parse_members(reader: &mut Reader<'_>) -> Result<Vec<FzsMember>, ParseError> {
    reader.repeat("number of zone members", FzsMember::parse)
}

pub(super) fn emit_members(members: &[FzsMember], out: &mut dyn Put) {
    out.put_len32(members.len());
    members.iter().for_each(|member| member.emit(out));
}
