//! A member of a zone or alias as switches send it (FC-SW, zoning objects): [`ZoneMember`].

use crate::bytes::{Put, Reader, id_at, u16_at, u64_at};
use crate::error::ParseError;
use crate::id::{FcId, Wwnn, Wwpn};
use crate::zone_name;

/// A member of a zone or alias.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct ZoneMember {
    /// Flags of the member. The standard reserves them; see [`ZoneMember::PRINCIPAL`].
    pub flags: u8,
    /// Who is meant.
    pub id: ZoneMemberId,
}

/// Who is a member.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum ZoneMemberId {
    /// 1: a port name.
    PortName(Wwpn),
    /// 2: whatever is behind a port of a switch.
    DomainPort {
        /// The switch.
        domain: u8,
        /// Its port.
        port: u16,
    },
    /// 3: an address.
    FcId(FcId),
    /// 4: the members of an alias. At most 248 bytes.
    Alias(Box<[u8]>),
    /// 4 of eight bytes: all ports of a node. Basic zoning of FC-SW has the number 4 for aliases only, FC-GS for node names
    /// only; what stands behind it tells them apart, because no name begins with a zero nibble and every name block of
    /// eight bytes does. Must have a naming authority other than 0.
    NodeName(Wwnn),
    /// Any other type or layout. At most 255 bytes.
    Other {
        /// Member type.
        kind: u8,
        /// Its identifier.
        id: Box<[u8]>,
    },
}

/// Longest alias name in a member: the identifier's length is one byte and holds a name block.
const MAX_ALIAS_BYTES: usize = 248;
const MAX_ID_BYTES: usize = 255;

const PORT_NAME: u8 = 1;
const DOMAIN_PORT: u8 = 2;
const FC_ID: u8 = 3;
const ALIAS_OR_NODE_NAME: u8 = 4;

impl ZoneMember {
    /// The member is a principal of its zone: others see it, but not each other. Our own use of a reserved bit; basic zoning
    /// knows no such zones.
    pub const PRINCIPAL: u8 = 0x01;

    /// A member without flags.
    pub const fn new(id: ZoneMemberId) -> ZoneMember {
        ZoneMember { flags: 0, id }
    }

    pub(super) fn parse(reader: &mut Reader<'_>) -> Result<ZoneMember, ParseError> {
        let head = reader.take("zone member", 4)?;
        let len = usize::from(head[3]);
        let id = &reader.take("zone member identifier", len.next_multiple_of(4))?[..len];
        Ok(ZoneMember { flags: head[2], id: ZoneMemberId::parse(head[0], id) })
    }

    pub(super) fn emit(&self, out: &mut Vec<u8>) {
        let len = self.id.len();
        out.extend_from_slice(&[self.id.kind(), 0, self.flags, len as u8]);
        match &self.id {
            ZoneMemberId::PortName(name) => out.put_u64(name.0),
            ZoneMemberId::NodeName(name) => out.put_u64(name.0),
            ZoneMemberId::DomainPort { domain, port } => {
                out.extend_from_slice(&[0, *domain]);
                out.put_u16(*port);
            }
            ZoneMemberId::FcId(id) => {
                out.extend_from_slice(&id.to_bytes());
                out.put_u8(0);
            }
            ZoneMemberId::Alias(name) => zone_name::emit(clip(name, MAX_ALIAS_BYTES), out),
            ZoneMemberId::Other { id, .. } => {
                out.extend_from_slice(clip(id, MAX_ID_BYTES));
                out.put_zeros(len.next_multiple_of(4) - len);
            }
        }
    }

    pub(super) fn encoded_len(&self) -> usize {
        4 + self.id.len().next_multiple_of(4)
    }
}

impl ZoneMemberId {
    /// Member type on the wire.
    pub const fn kind(&self) -> u8 {
        match self {
            ZoneMemberId::PortName(_) => PORT_NAME,
            ZoneMemberId::DomainPort { .. } => DOMAIN_PORT,
            ZoneMemberId::FcId(_) => FC_ID,
            ZoneMemberId::Alias(_) | ZoneMemberId::NodeName(_) => ALIAS_OR_NODE_NAME,
            ZoneMemberId::Other { kind, .. } => *kind,
        }
    }

    /// Reads an identifier of a member type, without fill bytes. Never fails: what is none is [`Other`](ZoneMemberId::Other).
    pub fn parse(kind: u8, id: &[u8]) -> ZoneMemberId {
        let other = || ZoneMemberId::Other { kind, id: id.into() };
        match (kind, id.len()) {
            (PORT_NAME, 8) => ZoneMemberId::PortName(Wwpn(u64_at(id, 0))),
            (DOMAIN_PORT, 4) => ZoneMemberId::DomainPort { domain: id[1], port: u16_at(id, 2) },
            (FC_ID, 4) => ZoneMemberId::FcId(id_at(id, 0)),
            (ALIAS_OR_NODE_NAME, 8) if id[0] >> 4 != 0 => ZoneMemberId::NodeName(Wwnn(u64_at(id, 0))),
            (ALIAS_OR_NODE_NAME, len) => {
                let mut reader = Reader::new(id, 0);
                match zone_name::parse("alias name", &mut reader) {
                    Ok(name) if reader.at() == len => ZoneMemberId::Alias(name),
                    _ => other(),
                }
            }
            _ => other(),
        }
    }

    /// Bytes of the identifier, as its length says.
    fn len(&self) -> usize {
        match self {
            ZoneMemberId::PortName(_) | ZoneMemberId::NodeName(_) => 8,
            ZoneMemberId::DomainPort { .. } | ZoneMemberId::FcId(_) => 4,
            ZoneMemberId::Alias(name) => zone_name::encoded_len(clip(name, MAX_ALIAS_BYTES)),
            ZoneMemberId::Other { id, .. } => clip(id, MAX_ID_BYTES).len(),
        }
    }
}

fn clip(bytes: &[u8], max: usize) -> &[u8] {
    &bytes[..bytes.len().min(max)]
}
