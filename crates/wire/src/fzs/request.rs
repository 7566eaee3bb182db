//! Requests to the zone server (FC-GS, fabric zone server, basic zoning).

use super::command;
use super::object::{FzsMember, FzsZoneSet, emit_members, parse_members};
use crate::bytes::{Put, Reader};
use crate::error::ParseError;
use crate::zone_name;

/// A request to the zone server. Names have at most 255 bytes.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
#[allow(missing_docs)] // each field is named after the object that the standard names
pub enum FzsRequest {
    /// 0100: get capabilities.
    Gzc,
    /// 0111: get enforcement state.
    Gest,
    /// 0112: get zone set list.
    Gzsn,
    /// 0113: get the zones of a zone set.
    Gzd { zone_set: Box<[u8]> },
    /// 0114: get the members of a zone.
    Gzm { zone: Box<[u8]> },
    /// 0115: get the active zone set.
    Gazs,
    /// 0116: get a zone set.
    Gzs { zone_set: Box<[u8]> },
    /// 0200: add a zone set to the database.
    Adzs { zone_set: FzsZoneSet },
    /// 0201: activate this zone set, which need not be stored in the database.
    Azsd { zone_set: FzsZoneSet },
    /// 0202: activate a stored zone set.
    Azs { zone_set: Box<[u8]> },
    /// 0203: deactivate the active zone set.
    Dzs,
    /// 0204: add members to a zone.
    Azm { zone: Box<[u8]>, members: Vec<FzsMember> },
    /// 0205: add a zone to a zone set.
    Azd { zone_set: Box<[u8]>, zone: Box<[u8]> },
    /// 0300: remove members from a zone.
    Rzm { zone: Box<[u8]>, members: Vec<FzsMember> },
    /// 0301: remove a zone from a zone set.
    Rzd { zone_set: Box<[u8]>, zone: Box<[u8]> },
    /// 0302: remove a zone set from the database.
    Rzs { zone_set: Box<[u8]> },
}

impl FzsRequest {
    /// Reads the bytes after the CT preamble. An unsupported command is
    /// [`ParseError::Unsupported`].
    pub fn parse(command: u16, body: &[u8]) -> Result<FzsRequest, ParseError> {
        let mut reader = Reader::new(body, 0);
        let reader = &mut reader;
        let name = |reader: &mut Reader<'_>| zone_name::parse("zone or zone set name", reader);
        Ok(match command {
            command::GZC => FzsRequest::Gzc,
            command::GEST => FzsRequest::Gest,
            command::GZSN => FzsRequest::Gzsn,
            command::GZD => FzsRequest::Gzd { zone_set: name(reader)? },
            command::GZM => FzsRequest::Gzm { zone: name(reader)? },
            command::GAZS => FzsRequest::Gazs,
            command::GZS => FzsRequest::Gzs { zone_set: name(reader)? },
            command::ADZS => FzsRequest::Adzs { zone_set: FzsZoneSet::parse(reader)? },
            command::AZSD => FzsRequest::Azsd { zone_set: FzsZoneSet::parse(reader)? },
            command::AZS => FzsRequest::Azs { zone_set: name(reader)? },
            command::DZS => FzsRequest::Dzs,
            command::AZM => FzsRequest::Azm { zone: name(reader)?, members: parse_members(reader)? },
            command::AZD => FzsRequest::Azd { zone_set: name(reader)?, zone: name(reader)? },
            command::RZM => FzsRequest::Rzm { zone: name(reader)?, members: parse_members(reader)? },
            command::RZD => FzsRequest::Rzd { zone_set: name(reader)?, zone: name(reader)? },
            command::RZS => FzsRequest::Rzs { zone_set: name(reader)? },
            other => return Err(ParseError::Unsupported { field: "zone server command", got: other.into() }),
        })
    }

    /// Appends the bytes after the CT preamble.
    pub fn emit(&self, out: &mut dyn Put) {
        match self {
            FzsRequest::Gzc | FzsRequest::Gest | FzsRequest::Gzsn | FzsRequest::Gazs | FzsRequest::Dzs => {}
            FzsRequest::Gzd { zone_set: name }
            | FzsRequest::Gzm { zone: name }
            | FzsRequest::Gzs { zone_set: name }
            | FzsRequest::Azs { zone_set: name }
            | FzsRequest::Rzs { zone_set: name } => zone_name::emit(name, out),
            FzsRequest::Adzs { zone_set } | FzsRequest::Azsd { zone_set } => zone_set.emit(out),
            FzsRequest::Azm { zone, members } | FzsRequest::Rzm { zone, members } => {
                zone_name::emit(zone, out);
                emit_members(members, out);
            }
            FzsRequest::Azd { zone_set, zone } | FzsRequest::Rzd { zone_set, zone } => {
                zone_name::emit(zone_set, out);
                zone_name::emit(zone, out);
            }
        }
    }

    /// The command code.
    pub const fn command(&self) -> u16 {
        match self {
            FzsRequest::Gzc => command::GZC,
            FzsRequest::Gest => command::GEST,
            FzsRequest::Gzsn => command::GZSN,
            FzsRequest::Gzd { .. } => command::GZD,
            FzsRequest::Gzm { .. } => command::GZM,
            FzsRequest::Gazs => command::GAZS,
            FzsRequest::Gzs { .. } => command::GZS,
            FzsRequest::Adzs { .. } => command::ADZS,
            FzsRequest::Azsd { .. } => command::AZSD,
            FzsRequest::Azs { .. } => command::AZS,
            FzsRequest::Dzs => command::DZS,
            FzsRequest::Azm { .. } => command::AZM,
            FzsRequest::Azd { .. } => command::AZD,
            FzsRequest::Rzm { .. } => command::RZM,
            FzsRequest::Rzd { .. } => command::RZD,
            FzsRequest::Rzs { .. } => command::RZS,
        }
    }
}
