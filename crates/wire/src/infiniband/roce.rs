//! RoCEv2: packets of InfiniBand as UDP datagrams over IPv4 (IBA volume 1, annex A17).
//!
//! ```text
//!   IPv4 20, UDP 8 (to port 4791), BTH 12, headers of the opcode, payload, pad, ICRC 4
//! ```
//!
//! The ICRC covers the IPv4 header too, also its identification and flags, which a UDP socket does
//! not show. [`RocePacket::parse`] therefore accepts each identification: the checksum proves that
//! one exists with which the packet is intact.

use super::{BTH_BYTES, Bth, Extended, ICRC_BYTES};
use crate::bytes::{Put, len8, len16, u32_at};
use crate::crc::{step, step_back, upper_before_two};
use crate::error::ParseError;
use core::net::SocketAddrV4;
use crc32fast::Hasher;

/// UDP port of RoCEv2.
pub const UDP_PORT: u16 = 4791;
/// Bytes of the headers of IPv4 (without options) and UDP.
const IP_UDP_BYTES: usize = 28;

/// Offset of the identification in the IPv4 header, and of the flags behind it.
const IDENTIFICATION: usize = 4;
/// Flags of a datagram: do not fragment, and none.
const FLAGS: [[u8; 2]; 2] = [[0x40, 0], [0, 0]];
/// Value of bytes that may change on the way.
const ONES: u8 = 0xff;
/// Bytes of ones that stand for the LRH.
const ICRC_PREFIX: [u8; 8] = [ONES; 8];
/// Offset of the notices of congestion in the BTH, which may change on the way.
const NOTICES: usize = 4;

/// Addresses of a datagram, which the ICRC covers.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Path {
    /// Source address and UDP port.
    pub from: SocketAddrV4,
    /// Destination address and UDP port.
    pub to: SocketAddrV4,
}

/// A packet.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct RocePacket<'a> {
    /// Base transport header. Its padding follows from the payload.
    pub bth: Bth,
    /// Headers of the opcode.
    pub extended: Extended,
    /// Payload without padding.
    pub payload: &'a [u8],
}

impl Path {
    /// Returns the masked headers of IPv4 and UDP for a payload of `bytes` bytes, with an
    /// identification of zero and the flag "do not fragment".
    fn masked(&self, bytes: usize) -> [u8; IP_UDP_BYTES] {
        let mut head = [0; IP_UDP_BYTES];
        head[0] = 0x45;
        head[1] = ONES;
        head[2..4].copy_from_slice(&len16(IP_UDP_BYTES + bytes).to_be_bytes());
        head[6..8].copy_from_slice(&FLAGS[0]);
        head[8..12].copy_from_slice(&[ONES, 17, ONES, ONES]);
        head[12..16].copy_from_slice(&self.from.ip().octets());
        head[16..20].copy_from_slice(&self.to.ip().octets());
        head[20..22].copy_from_slice(&self.from.port().to_be_bytes());
        head[22..24].copy_from_slice(&self.to.port().to_be_bytes());
        head[24..26].copy_from_slice(&len16(8 + bytes).to_be_bytes());
        head[26..28].copy_from_slice(&[ONES, ONES]);
        head
    }

    /// Returns the ICRC, in wire order, of a UDP payload without its ICRC. The IPv4 header has an
    /// identification of zero and the flag "do not fragment", as Linux sends datagrams of a socket
    /// that is not connected and never fragments.
    pub fn icrc(&self, body: &[u8]) -> [u8; ICRC_BYTES] {
        let head = self.masked(body.len() + ICRC_BYTES);
        let (before, rest) = body.split_at(NOTICES.min(body.len()));
        let mut sum = Hasher::new();
        for part in [&ICRC_PREFIX[..], &head, before, &[ONES][..rest.len().min(1)], rest.get(1..).unwrap_or_default()] {
            sum.update(part);
        }
        sum.finalize().to_le_bytes()
    }

    /// Returns whether an ICRC is that of a UDP payload, for any identification and with or without
    /// the flag "do not fragment".
    pub fn is_intact(&self, body: &[u8], sum: [u8; ICRC_BYTES]) -> bool {
        let head = self.masked(body.len() + ICRC_BYTES);
        let before = ICRC_PREFIX.iter().chain(&head[..IDENTIFICATION]);
        let before = before.fold(u32::MAX, |register, byte| step(register, *byte));
        let covered = |(at, byte): (usize, &u8)| if at == NOTICES { ONES } else { *byte };
        let behind = body.iter().enumerate().rev().map(covered).fold(!u32::from_le_bytes(sum), step_back);
        let behind = head[IDENTIFICATION + 4..].iter().rev().fold(behind, |register, byte| step_back(register, *byte));
        FLAGS.iter().any(|flags| {
            upper_before_two(flags.iter().rev().fold(behind, |to, byte| step_back(to, *byte))) == before >> 16
        })
    }
}

impl<'a> RocePacket<'a> {
    /// Parses the payload of a datagram, and checks its ICRC.
    ///
    /// # Errors
    ///
    /// The bytes are too short, or the checksum or the version of the transport is wrong.
    pub fn parse(path: &Path, data: &'a [u8]) -> Result<RocePacket<'a>, ParseError> {
        let truncated =
            |needed_bytes| ParseError::Truncated { field: "RoCEv2 packet", needed_bytes, got_bytes: data.len() };
        let (body, sum) = data.split_last_chunk::<ICRC_BYTES>().ok_or(truncated(BTH_BYTES + ICRC_BYTES))?;
        let bth = Bth::parse(body)?;
        let (extended, at) = Extended::parse(bth.opcode, body, BTH_BYTES)?;
        let end = body.len().saturating_sub(usize::from(bth.pad));
        let payload = body.get(at..end).ok_or(truncated(at + usize::from(bth.pad) + ICRC_BYTES))?;
        if !path.is_intact(body, *sum) {
            return Err(ParseError::Value { field: "ICRC", got: u32_at(sum, 0), rule: "that of the packet" });
        }
        Ok(RocePacket { bth, extended, payload })
    }

    /// Appends the payload of the datagram with its padding and ICRC; see [`Path::icrc`] for the
    /// IPv4 header.
    pub fn emit(&self, path: &Path, out: &mut Vec<u8>) {
        let start = out.len();
        let pad = self.payload.len().next_multiple_of(4) - self.payload.len();
        Bth { pad: len8(pad), ..self.bth }.emit(out);
        self.extended.emit(self.bth.opcode, out);
        out.put_slice(self.payload);
        out.put_zeros(pad);
        let sum = path.icrc(&out[start..]);
        out.put_slice(&sum);
    }
}
