//! Management datagrams: the common header, subnet management packets, and messages of the
//! connection manager (IBA volume 1, 13.4, 14.2 and 12.6).

use crate::bytes::{Put, fixed, u16_at, u32_at, u64_at};
use crate::error::ParseError;

/// Length of a management datagram.
pub const MAD_BYTES: usize = 256;
/// Length of the common header.
pub const HEADER_BYTES: usize = 24;
/// Length of the data of a message of the connection manager.
pub const CM_BYTES: usize = MAD_BYTES - HEADER_BYTES;
/// Q_Key of the queue pair for general management.
pub const QP1_KEY: u32 = 0x8001_0000;

/// Classes of management.
pub mod class {
    /// Subnet management, routed by LID.
    pub const SUBNET_LID: u8 = 0x01;
    /// Connection manager.
    pub const CONNECTION: u8 = 0x07;
    /// Subnet management, on a directed route.
    pub const SUBNET_DIRECTED: u8 = 0x81;
}

/// Common header of a management datagram. The base version is 1.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub struct MadHeader {
    /// Class; see [`class`].
    pub class: u8,
    /// Version of the class.
    pub version: u8,
    /// Method: 1 Get, 2 Set, 3 Send, 0x81 GetResp.
    pub method: u8,
    /// Status; on a directed route the upper bit is the direction.
    pub status: u16,
    /// For the class; on a directed route the hop pointer and the hop count.
    pub specific: u16,
    /// Transaction.
    pub transaction: u64,
    /// Attribute.
    pub attribute: u16,
    /// Modifier of the attribute.
    pub modifier: u32,
}

/// Subnet management packet.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Smp {
    /// Common header.
    pub header: MadHeader,
    /// Key of management.
    pub key: u64,
    /// LIDs at both ends of the directed route.
    pub lids: [u16; 2],
    /// Attribute.
    pub data: [u8; 64],
    /// Ports of the directed route, from entry 1 on.
    pub initial_path: [u8; 64],
    /// Ports of the way back.
    pub return_path: [u8; 64],
}

/// Kind of a message of the connection manager.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum CmKind {
    /// Request for a connection.
    Req,
    /// Message receipt acknowledgement.
    Mra,
    /// Reject.
    Rej,
    /// Reply to a request.
    Rep,
    /// Ready to use.
    Rtu,
    /// Request to disconnect.
    Dreq,
    /// Reply to a disconnect.
    Drep,
}

/// Message of the connection manager.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct CmMessage {
    /// Transaction.
    pub transaction: u64,
    /// Kind.
    pub kind: CmKind,
    /// Data behind the common header. Every message begins with the local communication ID.
    pub data: [u8; CM_BYTES],
}

/// Fields of a REQ that an end point needs.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub struct ReqFields {
    /// Local communication ID.
    pub local_id: u32,
    /// Service.
    pub service: u64,
    /// GUID of the adapter.
    pub guid: u64,
    /// Queue pair: 24 bits.
    pub pair: u32,
    /// Responder resources and initiator depth.
    pub depths: [u8; 2],
    /// First PSN that the sender of the message expects: 24 bits.
    pub psn: u32,
    /// Partition key.
    pub key: u16,
}

/// Fields of a REP that an end point needs.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub struct RepFields {
    /// Local and remote communication ID.
    pub ids: [u32; 2],
    /// Queue pair: 24 bits.
    pub pair: u32,
    /// First PSN that the sender of the message expects: 24 bits.
    pub psn: u32,
    /// Responder resources and initiator depth.
    pub depths: [u8; 2],
    /// GUID of the adapter.
    pub guid: u64,
}

impl MadHeader {
    /// Parses a header.
    ///
    /// # Errors
    ///
    /// The bytes are too short, or the base version is not 1.
    pub fn parse(data: &[u8]) -> Result<MadHeader, ParseError> {
        let data = fixed::<HEADER_BYTES>("management datagram header", data)?;
        if data[0] != 1 {
            return Err(ParseError::Value { field: "base version", got: data[0].into(), rule: "1" });
        }
        Ok(MadHeader {
            class: data[1],
            version: data[2],
            method: data[3],
            status: u16_at(data, 4),
            specific: u16_at(data, 6),
            transaction: u64_at(data, 8),
            attribute: u16_at(data, 16),
            modifier: u32_at(data, 20),
        })
    }

    /// Appends the header.
    pub fn emit(&self, out: &mut Vec<u8>) {
        out.put_slice(&[1, self.class, self.version, self.method]);
        out.put_u16(self.status);
        out.put_u16(self.specific);
        out.put_u64(self.transaction);
        out.put_u16(self.attribute);
        out.put_zeros(2);
        out.put_u32(self.modifier);
    }
}

fn part<const N: usize>(data: &[u8], at: usize) -> [u8; N] {
    let mut part = [0; N];
    part.copy_from_slice(&data[at..at + N]);
    part
}

impl Smp {
    /// Parses a packet of 256 bytes.
    ///
    /// # Errors
    ///
    /// The bytes are too short, or the class is not that of subnet management.
    pub fn parse(data: &[u8]) -> Result<Smp, ParseError> {
        let data = fixed::<MAD_BYTES>("subnet management packet", data)?;
        let header = MadHeader::parse(data)?;
        if !matches!(header.class, class::SUBNET_LID | class::SUBNET_DIRECTED) {
            return Err(ParseError::Unsupported { field: "class of management", got: header.class.into() });
        }
        Ok(Smp {
            header,
            key: u64_at(data, 24),
            lids: [u16_at(data, 32), u16_at(data, 34)],
            data: part(data, 64),
            initial_path: part(data, 128),
            return_path: part(data, 192),
        })
    }

    /// Appends the packet.
    pub fn emit(&self, out: &mut Vec<u8>) {
        self.header.emit(out);
        out.put_u64(self.key);
        out.put_u16(self.lids[0]);
        out.put_u16(self.lids[1]);
        out.put_zeros(28);
        out.put_slice(&self.data);
        out.put_slice(&self.initial_path);
        out.put_slice(&self.return_path);
    }
}

impl CmKind {
    /// All kinds.
    pub const ALL: [CmKind; 7] =
        [CmKind::Req, CmKind::Mra, CmKind::Rej, CmKind::Rep, CmKind::Rtu, CmKind::Dreq, CmKind::Drep];

    /// Returns the attribute.
    pub const fn attribute(self) -> u16 {
        match self {
            CmKind::Req => 0x10,
            CmKind::Mra => 0x11,
            CmKind::Rej => 0x12,
            CmKind::Rep => 0x13,
            CmKind::Rtu => 0x14,
            CmKind::Dreq => 0x15,
            CmKind::Drep => 0x16,
        }
    }

    /// Returns the offset of private data behind the common header; they reach to the end.
    pub const fn private_offset(self) -> usize {
        match self {
            CmKind::Req => 140,
            CmKind::Mra => 10,
            CmKind::Rej => 84,
            CmKind::Rep => 36,
            CmKind::Rtu | CmKind::Drep => 8,
            CmKind::Dreq => 12,
        }
    }
}

impl CmMessage {
    /// Returns a message of zeros.
    pub fn new(kind: CmKind, transaction: u64) -> CmMessage {
        CmMessage { transaction, kind, data: [0; CM_BYTES] }
    }

    /// Parses a message of 256 bytes.
    ///
    /// # Errors
    ///
    /// The bytes are too short, or the class or attribute is another one.
    pub fn parse(data: &[u8]) -> Result<CmMessage, ParseError> {
        let data = fixed::<MAD_BYTES>("message of the connection manager", data)?;
        let header = MadHeader::parse(data)?;
        if header.class != class::CONNECTION {
            return Err(ParseError::Unsupported { field: "class of management", got: header.class.into() });
        }
        let kind = CmKind::ALL.into_iter().find(|kind| kind.attribute() == header.attribute);
        let unknown = ParseError::Unsupported { field: "attribute", got: header.attribute.into() };
        Ok(CmMessage { transaction: header.transaction, kind: kind.ok_or(unknown)?, data: part(data, HEADER_BYTES) })
    }

    /// Appends the message.
    pub fn emit(&self, out: &mut Vec<u8>) {
        let header = MadHeader {
            class: class::CONNECTION,
            version: 2,
            method: 3,
            transaction: self.transaction,
            attribute: self.kind.attribute(),
            ..MadHeader::default()
        };
        header.emit(out);
        out.put_slice(&self.data);
    }

    /// Returns the private data.
    pub fn private(&self) -> &[u8] {
        &self.data[self.kind.private_offset()..]
    }

    /// Sets the private data; the rest is zero. Returns false if they are too long.
    pub fn set_private(&mut self, data: &[u8]) -> bool {
        let place = &mut self.data[self.kind.private_offset()..];
        place.fill(0);
        let fits = data.len() <= place.len();
        if fits {
            place[..data.len()].copy_from_slice(data);
        }
        fits
    }

    /// Returns the fields of a REQ.
    pub fn req(&self) -> ReqFields {
        let data = &self.data;
        ReqFields {
            local_id: u32_at(data, 0),
            service: u64_at(data, 8),
            guid: u64_at(data, 16),
            pair: u32_at(data, 32) >> 8,
            depths: [data[35], data[39]],
            psn: u32_at(data, 44) >> 8,
            key: u16_at(data, 48),
        }
    }

    /// Sets the fields of a REQ and keeps all others.
    pub fn set_req(&mut self, fields: &ReqFields) {
        let mut set = |at: usize, bytes: &[u8]| self.data[at..at + bytes.len()].copy_from_slice(bytes);
        set(0, &fields.local_id.to_be_bytes());
        set(8, &fields.service.to_be_bytes());
        set(16, &fields.guid.to_be_bytes());
        set(32, &fields.pair.to_be_bytes()[1..]);
        set(35, &fields.depths[..1]);
        set(39, &fields.depths[1..]);
        set(44, &fields.psn.to_be_bytes()[1..]);
        set(48, &fields.key.to_be_bytes());
    }

    /// Returns the fields of a REP.
    pub fn rep(&self) -> RepFields {
        let data = &self.data;
        RepFields {
            ids: [u32_at(data, 0), u32_at(data, 4)],
            pair: u32_at(data, 12) >> 8,
            psn: u32_at(data, 20) >> 8,
            depths: [data[24], data[25]],
            guid: u64_at(data, 28),
        }
    }

    /// Sets the fields of a REP and keeps all others.
    pub fn set_rep(&mut self, fields: &RepFields) {
        let mut set = |at: usize, bytes: &[u8]| self.data[at..at + bytes.len()].copy_from_slice(bytes);
        set(0, &fields.ids[0].to_be_bytes());
        set(4, &fields.ids[1].to_be_bytes());
        set(12, &fields.pair.to_be_bytes()[1..]);
        set(20, &fields.psn.to_be_bytes()[1..]);
        set(24, &fields.depths);
        set(28, &fields.guid.to_be_bytes());
    }
}
