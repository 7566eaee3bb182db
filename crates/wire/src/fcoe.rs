//! FCoE (FC-BB, FCoE PDU): a Fibre Channel frame with its CRC and delimiters after an Ethernet
//! header.
//!
//! ```text
//!   0    version (high nibble), reserved
//!   1    reserved, 12 bytes
//!   13   SOF
//!   14   FC frame: header 24, data field 0 to 2112, fill included
//!   n    CRC, least-significant byte first
//!   n+4  EOF, and 3 reserved bytes
//! ```
//!
//! The length of the PDU determines the length of the frame. Ethernet adds no padding, because the
//! shortest FCoE PDU already fills the shortest Ethernet frame. A forwarder reads the PDU in place
//! and leaves frame and CRC unchanged.

use crate::bytes::{Put, fixed};
use crate::crc::{CRC_BYTES, crc_bytes};
use crate::delimiter::{Eof, Sof};
use crate::error::ParseError;
use crate::ether::{EtherHeader, EtherType, MacAddr, VlanTag};
use crate::frame::Frame;
use crate::header::{HEADER_BYTES, Header};
use crate::id::FcId;

/// An FCoE PDU: the payload of an Ethernet frame of type [`EtherType::FCOE`].
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Fcoe<'a> {
    /// Code of the start of frame; [`Fcoe::sof`] decodes it.
    pub sof_code: u8,
    /// Header and data field: at least 24 bytes and a multiple of four.
    pub frame: &'a [u8],
    /// CRC as received; it may be wrong.
    pub crc: [u8; CRC_BYTES],
    /// Code of the end of frame; [`Fcoe::eof`] decodes it.
    pub eof_code: u8,
}

/// Length of the part before the frame, in bytes.
pub const HEAD_BYTES: usize = 14;
/// Length of the part after the frame, in bytes: CRC, EOF, reserved.
pub const TAIL_BYTES: usize = 8;
/// Length of the shortest PDU, in bytes: a frame without a data field.
pub const MIN_PDU_BYTES: usize = HEAD_BYTES + HEADER_BYTES + TAIL_BYTES;
/// Length of the longest PDU, in bytes: a frame with the longest data field. FIP calls it the
/// maximum FCoE size.
pub const MAX_PDU_BYTES: usize = HEAD_BYTES + HEADER_BYTES + MAX_DATA_BYTES + TAIL_BYTES;
/// Longest data field of a frame, in bytes.
const MAX_DATA_BYTES: usize = 2112;
/// Length of the extended headers that may precede a frame header, in bytes (virtual fabric
/// tagging, inter-fabric routing).
const MAX_EXTENDED_BYTES: usize = 16;

impl<'a> Fcoe<'a> {
    /// Reads a PDU. Unknown delimiter codes are accepted and the CRC is not checked; see
    /// [`Fcoe::crc_is_right`].
    pub fn parse(pdu: &'a [u8]) -> Result<Fcoe<'a>, ParseError> {
        let head = fixed::<MIN_PDU_BYTES>("FCoE PDU", pdu)?;
        let version = head[0] >> 4;
        if version != 0 {
            return Err(ParseError::Unsupported { field: "FCoE version", got: version.into() });
        }
        let length = |rule| ParseError::Length { field: "FCoE PDU", got_bytes: pdu.len(), rule };
        if pdu.len() > MAX_PDU_BYTES + MAX_EXTENDED_BYTES {
            return Err(length("no longer than the longest frame"));
        }
        if !(pdu.len() - MIN_PDU_BYTES).is_multiple_of(4) {
            return Err(length("a frame with a whole number of words"));
        }
        let (frame, tail) = pdu[HEAD_BYTES..].split_at(pdu.len() - HEAD_BYTES - TAIL_BYTES);
        Ok(Fcoe {
            sof_code: head[HEAD_BYTES - 1],
            frame,
            crc: [tail[0], tail[1], tail[2], tail[3]],
            eof_code: tail[CRC_BYTES],
        })
    }

    /// Appends the PDU with the stored CRC.
    pub fn emit(&self, out: &mut Vec<u8>) {
        let start = out.len();
        out.put_zeros(self.encoded_len());
        let _ = self.put(&mut out[start..]);
    }

    /// Writes the PDU with the stored CRC to the start of `out`. Returns its length; `None` if
    /// `out` is shorter.
    #[must_use]
    pub fn put(&self, out: &mut [u8]) -> Option<usize> {
        let len = self.encoded_len();
        let (head, rest) = out.get_mut(..len)?.split_at_mut(HEAD_BYTES);
        let (frame, tail) = rest.split_at_mut(self.frame.len());
        head.fill(0);
        head[HEAD_BYTES - 1] = self.sof_code;
        frame.copy_from_slice(self.frame);
        tail.fill(0);
        tail[..CRC_BYTES].copy_from_slice(&self.crc);
        tail[CRC_BYTES] = self.eof_code;
        Some(len)
    }

    /// Number of bytes that [`emit`](Self::emit) appends.
    pub const fn encoded_len(&self) -> usize {
        HEAD_BYTES + self.frame.len() + TAIL_BYTES
    }

    /// Start of frame; `None` if its code is unknown.
    pub const fn sof(&self) -> Option<Sof> {
        Sof::from_code(self.sof_code)
    }

    /// End of frame; `None` if its code is unknown.
    pub const fn eof(&self) -> Option<Eof> {
        Eof::from_code(self.eof_code)
    }

    /// True if the CRC matches the frame.
    pub fn crc_is_right(&self) -> bool {
        self.crc == crc_bytes(self.frame)
    }

    /// The frame header.
    pub fn header(&self) -> Result<Header, ParseError> {
        Header::parse(self.frame)
    }
}

/// Offsets of D_ID, S_ID and exchange number in a PDU, for forwarders.
pub mod offset {
    use super::HEAD_BYTES;

    /// D_ID, three bytes.
    pub const D_ID: usize = HEAD_BYTES + 1;
    /// S_ID, three bytes.
    pub const S_ID: usize = HEAD_BYTES + 5;
    /// OX_ID, two bytes.
    pub const OX_ID: usize = HEAD_BYTES + 16;
}

/// Returns D_ID, S_ID and OX_ID of a PDU; `None` if it is shorter than [`MIN_PDU_BYTES`].
pub fn addresses(pdu: &[u8]) -> Option<(FcId, FcId, u16)> {
    let b = pdu.first_chunk::<MIN_PDU_BYTES>()?;
    let id = |at: usize| FcId::from_bytes([b[at], b[at + 1], b[at + 2]]);
    let ox_id = u16::from_be_bytes([b[offset::OX_ID], b[offset::OX_ID + 1]]);
    Some((id(offset::D_ID), id(offset::S_ID), ox_id))
}

/// Appends an Ethernet frame that carries a Fibre Channel frame; the CRC is computed, and the
/// delimiters are those of [`Sof::of`] and [`Eof::of`]. The data field must not exceed the limit of
/// a frame.
pub fn encapsulate(to: MacAddr, from: MacAddr, tag: Option<VlanTag>, frame: &Frame, out: &mut Vec<u8>) {
    EtherHeader { to, from, tag, ether_type: EtherType::FCOE }.emit(out);
    out.put_zeros(HEAD_BYTES - 1);
    out.put_u8(Sof::of(&frame.header).code());
    let start = out.len();
    frame.emit(out);
    let crc = crc_bytes(&out[start..]);
    out.extend_from_slice(&crc);
    out.put_u8(Eof::of(&frame.header).code());
    out.put_zeros(TAIL_BYTES - CRC_BYTES - 1);
}
