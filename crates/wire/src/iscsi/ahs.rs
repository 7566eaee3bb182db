//! Additional header segments (section 11.2.2): [`Ahs`].

use crate::bytes::{Put, counted, slice, u16_at, u32_at};
use crate::error::ParseError;

const EXTENDED_CDB: u8 = 1;
const BIDIRECTIONAL_READ: u8 = 2;

/// An additional header segment.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub enum Ahs {
    /// Bytes of a CDB after its first 16.
    ExtendedCdb(Box<[u8]>),
    /// Expected length of the read part of a bidirectional command.
    BidirectionalRead {
        /// Expected length in bytes.
        expected_bytes: u32,
    },
    /// A segment of an unsupported type.
    Other {
        /// Type of the segment.
        kind: u8,
        /// Bytes after the type.
        data: Box<[u8]>,
    },
}

impl Ahs {
    /// Reads all additional header segments of a PDU.
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

    /// Appends the segment, padded to four bytes. Data beyond 65535 bytes is cut.
    pub fn emit(&self, out: &mut Vec<u8>) {
        let start = out.len();
        let (kind, reserved, data): (u8, bool, &[u8]) = match self {
            Ahs::ExtendedCdb(cdb) => (EXTENDED_CDB, true, cdb),
            Ahs::BidirectionalRead { expected_bytes } => (BIDIRECTIONAL_READ, true, &expected_bytes.to_be_bytes()),
            Ahs::Other { kind, data } => (*kind, false, data),
        };
        let data = &data[..data.len().min(usize::from(u16::MAX) - 1)];
        let put_specific = |out: &mut dyn Put| {
            out.put_zeros(usize::from(reserved));
            out.put_slice(data);
        };
        out.put_len16(counted(|_, out| put_specific(out)));
        out.put_u8(kind);
        put_specific(out);
        out.put_zeros((out.len() - start).wrapping_neg() & 3);
    }
}
