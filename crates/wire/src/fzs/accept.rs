//! Accepts of the zone server (FC-GS, fabric zone server, basic zoning). The layout depends on the
//! request.

use super::command;
use super::object::{FzsMember, FzsZoneSet, emit_members, parse_members};
use crate::bytes::{Put, Reader};
use crate::error::ParseError;
use crate::zone_name;

/// An accept of the zone server. Names have at most 255 bytes.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub enum FzsAccept {
    /// Accept of all requests that change the configuration.
    Empty,
    /// GZC: bits of [`capability`](super::capability), and a vendor-specific word.
    Capabilities {
        /// Capabilities of the server.
        bits: u8,
        /// Vendor specific.
        vendor: u32,
    },
    /// GEST: bits of [`capability`](super::capability), and a vendor-specific word.
    State {
        /// Enforcement state.
        bits: u8,
        /// Vendor specific.
        vendor: u32,
    },
    /// GZSN: the zone sets and the number of zones of each. GZD: the zones and the number of
    /// members of each.
    Names(Vec<(Box<[u8]>, u32)>),
    /// GZM: the members of a zone.
    Members(Vec<FzsMember>),
    /// GAZS, GZS: a zone set with its zones and members.
    ZoneSet(FzsZoneSet),
}

impl FzsAccept {
    /// Reads the bytes after the CT preamble of the accept of `request`. An unsupported request is
    /// [`ParseError::Unsupported`].
    pub fn parse(request: u16, body: &[u8]) -> Result<FzsAccept, ParseError> {
        let mut reader = Reader::new(body, 0);
        let reader = &mut reader;
        Ok(match request {
            command::GZC => {
                let (bits, vendor) = bits_and_vendor(reader)?;
                FzsAccept::Capabilities { bits, vendor }
            }
            command::GEST => {
                let (bits, vendor) = bits_and_vendor(reader)?;
                FzsAccept::State { bits, vendor }
            }
            command::GZSN | command::GZD => FzsAccept::Names(reader.repeat("number of names", |reader| {
                Ok((zone_name::parse("zone or zone set name", reader)?, reader.u32("count of a name")?))
            })?),
            command::GZM => FzsAccept::Members(parse_members(reader)?),
            command::GAZS | command::GZS => FzsAccept::ZoneSet(FzsZoneSet::parse(reader)?),
            command::ADZS..=command::AZD | command::RZM..=command::RZS => FzsAccept::Empty,
            other => return Err(ParseError::Unsupported { field: "zone server command", got: other.into() }),
        })
    }

    /// Appends the bytes after the CT preamble.
    pub fn emit(&self, out: &mut dyn Put) {
        match self {
            FzsAccept::Empty => {}
            FzsAccept::Capabilities { bits, vendor } | FzsAccept::State { bits, vendor } => {
                out.put_slice(&[*bits, 0, 0, 0]);
                out.put_u32(*vendor);
            }
            FzsAccept::Names(names) => {
                out.put_len32(names.len());
                for (name, count) in names {
                    zone_name::emit(name, out);
                    out.put_u32(*count);
                }
            }
            FzsAccept::Members(members) => emit_members(members, out),
            FzsAccept::ZoneSet(zone_set) => zone_set.emit(out),
        }
    }
}

/// Reads a byte of bits, three reserved bytes, and a word.
fn bits_and_vendor(reader: &mut Reader<'_>) -> Result<(u8, u32), ParseError> {
    let bits = reader.take("zone server capabilities", 4)?[0];
    Ok((bits, reader.u32("vendor word of the zone server")?))
}
