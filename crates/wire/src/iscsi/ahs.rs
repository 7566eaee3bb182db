//! Additional header segments (section 11.2.2): [`Ahs`].

use crate::bytes::{Put, slice, u16_at, u32_at};
use crate::error::ParseError;

const EXTENDED_CDB: u8 = 1;
const BIDIRECTIONAL_READ: u8 = 2;

/// An additional header segment.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub enum Ahs {
    /// What a CDB has behind its first 16 bytes.
    ExtendedCdb(Box<[u8]>),
    /// Expected length of the read part of a bidirectional command.
    BidirectionalRead {
        /// In bytes.
        expected_bytes: u32,
    },
    /// One that has no value here.
    Other {
        /// Its type.
        kind: u8,
        /// What is behind the type.
        data: Box<[u8]>,
    },
}

impl Ahs {
    /// All segments of a PDU.
    pub fn parse_all(mut bytes: &[u8]) -> Result<Vec<Ahs>, ParseError> {
        let mut all = Vec::new();
        while !bytes.is_empty() {
            let head = slice("AHS", bytes, 0, 3)?;
            let (len, kind) = (usize::from(u16_at(head, 0)), head[2]);
            let data = slice("AHS", bytes, 3, len)?;
            all.push(match kind {
                EXTENDED_CDB if len > 1 => Ahs::ExtendedCdb(data[1..].into()),
                BIDIRECTIONAL_READ if len == 5 => Ahs::BidirectionalRead { expected_bytes: u32_at(data, 1) },
                _ => Ahs::Other { kind, data: data.into() },
            });
            bytes = bytes.get((3 + len).next_multiple_of(4)..).unwrap_or_default();
        }
        Ok(all)
    }

    /// Appends it, padded to four bytes. More than 65535 bytes of data are cut.
    pub fn emit(&self, out: &mut Vec<u8>) {
        let start = out.len();
        let (kind, reserved, data): (u8, bool, &[u8]) = match self {
            Ahs::ExtendedCdb(cdb) => (EXTENDED_CDB, true, cdb),
            Ahs::BidirectionalRead { expected_bytes } => (BIDIRECTIONAL_READ, true, &expected_bytes.to_be_bytes()),
            Ahs::Other { kind, data } => (*kind, false, data),
        };
        let data = &data[..data.len().min(usize::from(u16::MAX) - 1)];
        out.put_u16((data.len() + usize::from(reserved)) as u16);
        out.put_u8(kind);
        out.put_zeros(usize::from(reserved));
        out.extend_from_slice(data);
        out.put_zeros((out.len() - start).wrapping_neg() & 3);
    }
}
