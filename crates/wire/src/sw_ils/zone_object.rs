//! Zoning objects and what MR and SFC carry of them (FC-SW, zone merge and change protocols): [`ZoneObject`], [`ZoneSets`].

use super::zone_member::ZoneMember;
use crate::bytes::{Put, Reader};
use crate::codes::codes;
use crate::error::ParseError;
use crate::zone_name;
use std::any::Any;
use std::fmt;
use std::hash::{Hash, Hasher};
use std::sync::{Arc, OnceLock};

/// A zoning object.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum ZoneObject {
    /// Type 1: a zone set.
    Set {
        /// Protocol.
        protocol: u8,
        /// Name, at most 255 bytes.
        name: Box<[u8]>,
        /// Its zones.
        zones: Vec<MemberList>,
    },
    /// A zone, an alias, or a type that we do not know.
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
    /// Its members.
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
/// A value is never changed. All switches of a process that learn of it share it, and what is worked out of it.
#[derive(Clone, PartialEq, Eq, Hash, Debug, Default)]
pub struct ZoneSets {
    active: Option<ActiveZoneSet>,
    full: Option<Vec<ZoneObject>>,
    derived: Derived,
}

/// What was worked out of a value. It is no part of the value, and a copy does not have it.
///
/// It is kept here because the value is all that switches of one process hand to each other: what one of them has decoded and
/// indexed, the next finds with the message. Hundreds of switches with a database each would need gigabytes otherwise.
#[derive(Default)]
struct Derived {
    encoded_len: OnceLock<usize>,
    made: OnceLock<Arc<dyn Any + Send + Sync>>,
}

impl Clone for Derived {
    fn clone(&self) -> Derived {
        Derived::default()
    }
}

impl PartialEq for Derived {
    fn eq(&self, _: &Derived) -> bool {
        true
    }
}

impl Eq for Derived {}

impl Hash for Derived {
    fn hash<H: Hasher>(&self, _: &mut H) {}
}

impl fmt::Debug for Derived {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("..")
    }
}

/// The active zone set.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct ActiveZoneSet {
    /// Name, at most 255 bytes.
    pub name: Box<[u8]>,
    /// Its zones.
    pub zones: Vec<ZoneObject>,
}

/// Length field of an active set that has more bytes than the field can say; the counts in it tell where it ends.
const LONG: u16 = u16::MAX;

impl ZoneSets {
    /// The active zone set, and all that is defined: sets, zones, aliases.
    pub fn new(active: Option<ActiveZoneSet>, full: Option<Vec<ZoneObject>>) -> ZoneSets {
        ZoneSets { active, full, derived: Derived::default() }
    }

    /// The active zone set.
    pub fn active(&self) -> Option<&ActiveZoneSet> {
        self.active.as_ref()
    }

    /// All that is defined: sets, zones, aliases.
    pub fn full(&self) -> Option<&[ZoneObject]> {
        self.full.as_deref()
    }

    /// What `make` makes of this value: made once, and then shared by all who ask for the same type. A second type is made
    /// anew each time.
    pub fn derived<T: Any + Send + Sync>(&self, make: impl Fn() -> Arc<T>) -> Arc<T> {
        let made = self.derived.made.get_or_init(|| make()).clone();
        made.downcast().unwrap_or_else(|_| make())
    }

    /// Reads a payload whose active set has its length at offset 2 and follows at offset 4.
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

    /// Appends the payload; `command` and `second` are its first two bytes.
    pub(super) fn emit(&self, command: u8, second: u8, out: &mut Vec<u8>) {
        out.extend_from_slice(&[command, second]);
        out.put_u16(u16::try_from(self.active_len()).unwrap_or(LONG));
        if let Some(active) = &self.active {
            zone_name::emit(&active.name, out);
            emit_objects(&active.zones, out);
        }
        out.put_u32(self.full.as_deref().map_or(0, objects_len) as u32);
        if let Some(full) = &self.full {
            emit_objects(full, out);
        }
    }

    /// Bytes of an MR or SFC with these zones.
    pub fn encoded_len(&self) -> usize {
        let len = || 8 + self.active_len() + self.full.as_deref().map_or(0, objects_len);
        *self.derived.encoded_len.get_or_init(len)
    }

    fn active_len(&self) -> usize {
        self.active.as_ref().map_or(0, |active| zone_name::encoded_len(&active.name) + objects_len(&active.zones))
    }
}

fn check_length(field: &'static str, declared: usize, found: usize) -> Result<(), ParseError> {
    if declared == found {
        Ok(())
    } else {
        Err(ParseError::Length { field, got_bytes: declared, rule: "the length of what follows" })
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

fn emit_objects(objects: &[ZoneObject], out: &mut Vec<u8>) {
    out.put_u32(objects.len() as u32);
    objects.iter().for_each(|object| object.emit(out));
}

fn objects_len(objects: &[ZoneObject]) -> usize {
    4 + objects.iter().map(ZoneObject::encoded_len).sum::<usize>()
}

impl ZoneObject {
    fn emit(&self, out: &mut Vec<u8>) {
        match self {
            ZoneObject::Set { protocol, name, zones } => {
                out.extend_from_slice(&[ZoneObjectType::SET.0, *protocol, 0, 0]);
                zone_name::emit(name, out);
                out.put_u32(zones.len() as u32);
                zones.iter().for_each(|zone| zone.emit(out));
            }
            ZoneObject::List(list) => list.emit(out),
        }
    }

    fn encoded_len(&self) -> usize {
        match self {
            ZoneObject::Set { name, zones, .. } => {
                8 + zone_name::encoded_len(name) + zones.iter().map(MemberList::encoded_len).sum::<usize>()
            }
            ZoneObject::List(list) => list.encoded_len(),
        }
    }
}

impl MemberList {
    /// A set is not allowed here: sets do not hold sets, and depth must not grow with the input.
    fn parse(kind: u8, protocol: u8, reader: &mut Reader<'_>) -> Result<MemberList, ParseError> {
        let kind = ZoneObjectType(kind);
        if kind == ZoneObjectType::SET {
            return Err(ParseError::Value { field: "type of an object in a zone set", got: 1, rule: "no zone set" });
        }
        let name = zone_name::parse("zone name", reader)?;
        let members = reader.repeat("number of zone members", ZoneMember::parse)?;
        Ok(MemberList { kind, protocol, name, members })
    }

    fn emit(&self, out: &mut Vec<u8>) {
        out.extend_from_slice(&[self.kind.0, self.protocol, 0, 0]);
        zone_name::emit(&self.name, out);
        out.put_u32(self.members.len() as u32);
        self.members.iter().for_each(|member| member.emit(out));
    }

    fn encoded_len(&self) -> usize {
        8 + zone_name::encoded_len(&self.name) + self.members.iter().map(ZoneMember::encoded_len).sum::<usize>()
    }
}
