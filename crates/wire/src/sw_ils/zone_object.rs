//! Zoning objects and their encoding in MR and SFC (FC-SW, zone merge and change protocols):
//! [`ZoneObject`], [`ZoneSets`].

use super::zone_member::ZoneMember;
use crate::bytes::{Put, Reader, counted, put_with_len32};
use crate::codes::codes;
use crate::error::ParseError;
use crate::zone_name;
use std::fmt;
use std::hash::{Hash, Hasher};
use std::sync::OnceLock;

/// A zoning object.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum ZoneObject {
    /// Type 1: a zone set.
    Set {
        /// Protocol of the object.
        protocol: u8,
        /// Name, at most 255 bytes.
        name: Box<[u8]>,
        /// Zones of the set.
        zones: Vec<MemberList>,
    },
    /// A zone, an alias, or an object of an unknown type.
    List(MemberList),
}

/// A zoning object that holds members: a zone or an alias.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct MemberList {
    /// Object type; any but [`ZoneObjectType::SET`].
    pub kind: ZoneObjectType,
    /// Protocol.
    pub protocol: u8,
    /// Name, at most 255 bytes.
    pub name: Box<[u8]>,
    /// Members of the zone or alias.
    pub members: Vec<ZoneMember>,
}

/// Type of a zoning object.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct ZoneObjectType(pub u8);

codes!(ZoneObjectType, u8, "zoning object type" {
    SET = 0x01, "zone set";
    ZONE = 0x02, "zone";
    ALIAS = 0x03, "alias";
});

/// The active zone set and the full database, each of which may be missing.
///
/// A value never changes, so its length is computed once.
#[derive(Clone, PartialEq, Eq, Hash, Debug, Default)]
pub struct ZoneSets {
    active: Option<ActiveZoneSet>,
    full: Option<Vec<ZoneObject>>,
    encoded_len: EncodedLen,
}

/// Length on the wire, in bytes, after its first use. It is not part of the value.
#[derive(Clone, Default)]
struct EncodedLen(OnceLock<usize>);

impl PartialEq for EncodedLen {
    fn eq(&self, _: &EncodedLen) -> bool {
        true
    }
}

impl Eq for EncodedLen {}

impl Hash for EncodedLen {
    fn hash<H: Hasher>(&self, _: &mut H) {}
}

impl fmt::Debug for EncodedLen {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("..")
    }
}

/// The active zone set.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct ActiveZoneSet {
    /// Name, at most 255 bytes.
    pub name: Box<[u8]>,
    /// Zones of the set.
    pub zones: Vec<ZoneObject>,
}

/// Length field of an active set that is longer than the field can express. The counts in the set
/// then give its end.
const LONG: u16 = u16::MAX;

impl ZoneSets {
    /// Creates zone sets from the active zone set and the full database of sets, zones and aliases.
    pub fn new(active: Option<ActiveZoneSet>, full: Option<Vec<ZoneObject>>) -> ZoneSets {
        ZoneSets { active, full, encoded_len: EncodedLen::default() }
    }

    /// The active zone set.
    pub fn active(&self) -> Option<&ActiveZoneSet> {
        self.active.as_ref()
    }

    /// The full database: sets, zones, aliases.
    pub fn full(&self) -> Option<&[ZoneObject]> {
        self.full.as_deref()
    }

    /// Reads a payload with the length of the active set at offset 2 and the active set at offset
    /// 4.
    pub(super) fn parse(payload: &[u8]) -> Result<ZoneSets, ParseError> {
        let mut reader = Reader::new(payload, 0);
        let head = reader.take("zone set length", 4)?;
        let declared = u16::from_be_bytes([head[2], head[3]]);
        let active = match declared {
            0 => None,
            _ => {
                let start = reader.at();
                let name = zone_name::parse("active zone set name", &mut reader)?;
                let zones = parse_objects(&mut reader)?;
                let long = declared == LONG && reader.at() - start >= LONG.into();
                if !long {
                    check_length("active zone set length", declared.into(), reader.at() - start)?;
                }
                Some(ActiveZoneSet { name, zones })
            }
        };
        let full = match reader.u32("full zone set length")? {
            0 => None,
            declared => {
                let start = reader.at();
                let objects = parse_objects(&mut reader)?;
                check_length("full zone set length", declared as usize, reader.at() - start)?;
                Some(objects)
            }
        };
        Ok(ZoneSets::new(active, full))
    }

    /// Appends the payload, which starts with the bytes `command` and `second`.
    pub(super) fn emit(&self, command: u8, second: u8, out: &mut dyn Put) {
        out.put_slice(&[command, second]);
        out.put_u16(u16::try_from(counted(|_, out| self.put_active(out))).unwrap_or(LONG));
        self.put_active(out);
        put_with_len32(out, |out| self.put_full(out));
    }

    fn put_active(&self, out: &mut dyn Put) {
        if let Some(active) = &self.active {
            zone_name::emit(&active.name, out);
            emit_objects(&active.zones, out);
        }
    }

    fn put_full(&self, out: &mut dyn Put) {
        if let Some(full) = &self.full {
            emit_objects(full, out);
        }
    }

    /// Length of an MR or SFC with these zones, in bytes.
    pub fn encoded_len(&self) -> usize {
        *self.encoded_len.0.get_or_init(|| counted(|_, out| self.emit(0, 0, out)))
    }
}

fn check_length(field: &'static str, declared: usize, found: usize) -> Result<(), ParseError> {
    if declared == found {
        Ok(())
    } else {
        Err(ParseError::Length { field, got_bytes: declared, rule: "the number of bytes that follow" })
    }
}

fn parse_objects(reader: &mut Reader<'_>) -> Result<Vec<ZoneObject>, ParseError> {
    reader.repeat("number of zoning objects", |reader| {
        let [kind, protocol] = object_head(reader)?;
        if ZoneObjectType(kind) != ZoneObjectType::SET {
            return MemberList::parse(kind, protocol, reader).map(ZoneObject::List);
        }
        let name = zone_name::parse("zone set name", reader)?;
        let zones = reader.repeat("number of zones", |reader| {
            let [kind, protocol] = object_head(reader)?;
            MemberList::parse(kind, protocol, reader)
        })?;
        Ok(ZoneObject::Set { protocol, name, zones })
    })
}

fn object_head(reader: &mut Reader<'_>) -> Result<[u8; 2], ParseError> {
    let head = reader.take("zoning object", 4)?;
    Ok([head[0], head[1]])
}

fn emit_objects(objects: &[ZoneObject], out: &mut dyn Put) {
    out.put_len32(objects.len());
    objects.iter().for_each(|object| object.emit(out));
}

impl ZoneObject {
    fn emit(&self, out: &mut dyn Put) {
        match self {
            ZoneObject::Set { protocol, name, zones } => {
                out.put_slice(&[ZoneObjectType::SET.0, *protocol, 0, 0]);
                zone_name::emit(name, out);
                out.put_len32(zones.len());
                zones.iter().for_each(|zone| zone.emit(out));
            }
            ZoneObject::List(list) => list.emit(out),
        }
    }
}

impl MemberList {
    /// A zone set is rejected here: sets do not contain sets, and the recursion depth must not grow
    /// with the input.
    fn parse(kind: u8, protocol: u8, reader: &mut Reader<'_>) -> Result<MemberList, ParseError> {
        let kind = ZoneObjectType(kind);
        if kind == ZoneObjectType::SET {
            let rule = "a type other than zone set";
            return Err(ParseError::Value { field: "type of an object in a zone set", got: 1, rule });
        }
        let name = zone_name::parse("zone name", reader)?;
        let members = reader.repeat("number of zone members", ZoneMember::parse)?;
        Ok(MemberList { kind, protocol, name, members })
    }

    fn emit(&self, out: &mut dyn Put) {
        out.put_slice(&[self.kind.0, self.protocol, 0, 0]);
        zone_name::emit(&self.name, out);
        out.put_len32(self.members.len());
        self.members.iter().for_each(|member| member.emit(out));
    }
}
