//! A member of a zone or alias in messages between switches (FC-SW, zoning objects):
//! [`ZoneMember`].

use crate::bytes::{Put, Reader, counted, id_at, len8, u16_at, u64_at};
use crate::error::ParseError;
use crate::id::{FcId, Wwnn, Wwpn};
use crate::zone_name;

/// A member of a zone or alias.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct ZoneMember {
    /// Flags of the member. The standard reserves them; see [`ZoneMember::PRINCIPAL`].
    pub flags: u8,
    /// Type and identifier of the member.
    pub id: ZoneMemberId,
}

/// Type and identifier of a zone member. The documentation of each variant starts with the type on
/// the wire.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum ZoneMemberId {
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
    /// 4: the members of an alias, whose name has at most 248 bytes.
    Alias(Box<[u8]>),
    /// 4 with eight bytes: all ports of a node. Type 4 stands only for aliases in basic zoning of
    /// FC-SW, and only for node names in FC-GS. The identifier distinguishes them: every name block
    /// of eight bytes starts with a zero nibble, and no node name does. The naming authority of the
    /// name must not be 0.
    NodeName(Wwnn),
    /// Any other type or layout, at most 255 bytes.
    Other {
        /// Member type.
        kind: u8,
        /// Identifier of the member.
        id: Box<[u8]>,
    },
}

/// Longest alias name in a member, in bytes, because the one-byte length of the identifier covers a
/// name block.
const MAX_ALIAS_BYTES: usize = 248;
const MAX_ID_BYTES: usize = 255;

const PORT_NAME: u8 = 1;
const DOMAIN_PORT: u8 = 2;
const FC_ID: u8 = 3;
const ALIAS_OR_NODE_NAME: u8 = 4;

impl ZoneMember {
    /// The member is a principal of its zone: every other member can access it, but the others
    /// cannot access each other. This is a private use of a reserved bit; basic zoning has no such
    /// zones.
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

    pub(super) fn emit(&self, out: &mut dyn Put) {
        let len = counted(|_, out| self.id.put(out));
        out.put_slice(&[self.id.kind(), 0, self.flags, len8(len)]);
        self.id.put(out);
        out.put_zeros(len.next_multiple_of(4) - len);
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

    /// Reads the identifier of a member of type `kind`, without fill bytes. It never fails: an
    /// invalid identifier is [`Other`](ZoneMemberId::Other).
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

    /// Appends the identifier without fill bytes.
    fn put(&self, out: &mut dyn Put) {
        match self {
            ZoneMemberId::PortName(name) => out.put_u64(name.0),
            ZoneMemberId::NodeName(name) => out.put_u64(name.0),
            ZoneMemberId::DomainPort { domain, port } => {
                out.put_slice(&[0, *domain]);
                out.put_u16(*port);
            }
            ZoneMemberId::FcId(id) => {
                out.put_slice(&id.to_bytes());
                out.put_u8(0);
            }
            ZoneMemberId::Alias(name) => zone_name::emit(clip(name, MAX_ALIAS_BYTES), out),
            ZoneMemberId::Other { id, .. } => out.put_slice(clip(id, MAX_ID_BYTES)),
        }
    }
}

fn clip(bytes: &[u8], max: usize) -> &[u8] {
    &bytes[..bytes.len().min(max)]
}
