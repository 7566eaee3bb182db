//! Captures as pcapng blocks (IETF draft-ietf-opsawg-pcapng, sections 3 and 4). This module builds
//! the bytes; the caller writes them to a file.
//!
//! sanloom has its own encoder because three block types suffice. The one crate with pcapng,
//! `pcap-file`, offers its current version only as a release candidate. Blocks are little-endian on
//! every machine, so that captures compare equal.

use crate::bytes::{Put, len16, len32};
use crate::crc::crc_bytes;
use crate::delimiter::{Disparity, Eof, Sof};

/// FC-2 frames with SOF, CRC and EOF (LINKTYPE_FC_2_WITH_FRAME_DELIMS of the tcpdump link-layer
/// list).
pub const LINKTYPE_FC_2_WITH_FRAME_DELIMS: u16 = 225;
/// Ethernet frames without preamble and FCS (LINKTYPE_ETHERNET of the same list).
pub const LINKTYPE_ETHERNET: u16 = 1;
/// Link type of ERF records, which Wireshark reads for InfiniBand; it does not know the link type
/// 247.
pub const LINKTYPE_ERF: u16 = 197;

/// Section header: the program that wrote the capture, and a note.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Section<'a> {
    /// Program and version.
    pub application: &'a str,
    /// A note about the whole capture, for example lab and seed.
    pub comment: Option<&'a str>,
}

/// A captured link or port.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Interface<'a> {
    /// Interface name that analysers display.
    pub name: &'a str,
    /// Longer description of the interface.
    pub description: Option<&'a str>,
    /// Link type of its packets, for example [`LINKTYPE_ETHERNET`].
    pub link_type: u16,
    /// Unit of its time stamps.
    pub resolution: Resolution,
}

/// Unit of time stamps.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Resolution {
    /// 10^-9 s.
    Nanoseconds,
    /// 10^-12 s. A 64-bit time stamp then covers 213 days.
    Picoseconds,
}

/// A captured frame.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Packet<'a> {
    /// Index of the interface: the position of its description block in the section, from 0.
    pub interface: u32,
    /// Time since the start of the run, in the unit of the interface.
    pub time: u64,
    /// Direction of the frame as seen from the interface.
    pub direction: Option<Direction>,
    /// The receiver detected a wrong CRC.
    pub crc_error: bool,
    /// Note, for example why the frame was dropped.
    pub comment: Option<&'a str>,
    /// Bytes of the frame, for example from [`fc_with_delimiters`].
    pub data: &'a [u8],
}

/// Direction of a frame.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Direction {
    /// Received.
    Inbound,
    /// Sent.
    Outbound,
}

/// Returns the ERF record of an InfiniBand packet from the LRH to the VCRC, at `time_ns` since
/// 1970.
pub fn erf_infiniband(time_ns: u64, packet: &[u8]) -> Vec<u8> {
    const HEADER_BYTES: usize = 16;
    const TYPE: u8 = 21;
    /// Records differ in length.
    const VARYING: u8 = 4;
    const NS_PER_S: u64 = 1_000_000_000;
    // Seconds in 32 bits, and a binary fraction of a second in 32 bits, least significant first.
    let stamp = ((time_ns / NS_PER_S) << 32) | (((time_ns % NS_PER_S) << 32) / NS_PER_S);
    let length = |bytes: usize| u16::try_from(bytes).unwrap_or(u16::MAX).to_be_bytes();
    let mut record = stamp.to_le_bytes().to_vec();
    record.extend([TYPE, VARYING]);
    for field in [length(HEADER_BYTES + packet.len()), [0; 2], length(packet.len())] {
        record.extend(field);
    }
    record.extend_from_slice(packet);
    record
}

/// Returns the bytes of a frame on a link: SOF, frame, CRC, EOF. The length of `frame` must be a
/// multiple of four, as [`Frame::emit`](crate::Frame::emit) produces it. The EOF is the one for
/// negative running disparity.
pub fn fc_with_delimiters(frame: &[u8], sof: Sof, eof: Eof) -> Vec<u8> {
    let end = eof.ordered_set(Disparity::Negative);
    [&sof.ordered_set()[..], frame, &crc_bytes(frame), &end].concat()
}

impl Section<'_> {
    /// Appends the section header block, the first of a file.
    pub fn emit(&self, out: &mut Vec<u8>) {
        const BYTE_ORDER_MAGIC: u32 = 0x1a2b_3c4d;
        const LENGTH_UNKNOWN: u64 = u64::MAX;
        block(0x0a0d_0d0a, out, |out| {
            out.extend_from_slice(&BYTE_ORDER_MAGIC.to_le_bytes());
            out.extend_from_slice(&1_u16.to_le_bytes());
            out.extend_from_slice(&0_u16.to_le_bytes());
            out.extend_from_slice(&LENGTH_UNKNOWN.to_le_bytes());
            text_option(option::COMMENT, self.comment, out);
            text_option(option::SECTION_APPLICATION, Some(self.application), out);
            end_of_options(out);
        });
    }
}

impl Interface<'_> {
    /// Appends the interface description block. Interfaces are numbered from 0 in the order of
    /// these blocks.
    pub fn emit(&self, out: &mut Vec<u8>) {
        const NO_SNAP_LENGTH: u32 = 0;
        let exponent = match self.resolution {
            Resolution::Nanoseconds => 9,
            Resolution::Picoseconds => 12,
        };
        block(1, out, |out| {
            out.extend_from_slice(&self.link_type.to_le_bytes());
            out.extend_from_slice(&0_u16.to_le_bytes());
            out.extend_from_slice(&NO_SNAP_LENGTH.to_le_bytes());
            text_option(option::INTERFACE_NAME, Some(self.name), out);
            text_option(option::INTERFACE_DESCRIPTION, self.description, out);
            put_option(option::INTERFACE_RESOLUTION, &[exponent], out);
            end_of_options(out);
        });
    }
}

impl Packet<'_> {
    /// Appends the enhanced packet block.
    pub fn emit(&self, out: &mut Vec<u8>) {
        const CRC_ERROR: u32 = 1 << 24;
        let mut flags = match self.direction {
            None => 0,
            Some(Direction::Inbound) => 1,
            Some(Direction::Outbound) => 2,
        };
        if self.crc_error {
            flags |= CRC_ERROR;
        }
        block(6, out, |out| {
            out.extend_from_slice(&self.interface.to_le_bytes());
            out.extend_from_slice(&((self.time >> 32) as u32).to_le_bytes());
            out.extend_from_slice(&((self.time & 0xffff_ffff) as u32).to_le_bytes());
            let len = len32(self.data.len());
            out.extend_from_slice(&len.to_le_bytes());
            out.extend_from_slice(&len.to_le_bytes());
            out.extend_from_slice(self.data);
            pad(out, self.data.len());
            if flags != 0 || self.comment.is_some() {
                text_option(option::COMMENT, self.comment, out);
                put_option(option::PACKET_FLAGS, &flags.to_le_bytes(), out);
                end_of_options(out);
            }
        });
    }
}

/// Option codes.
mod option {
    pub const END: u16 = 0;
    pub const COMMENT: u16 = 1;
    pub const SECTION_APPLICATION: u16 = 4;
    pub const INTERFACE_NAME: u16 = 2;
    pub const INTERFACE_DESCRIPTION: u16 = 3;
    pub const INTERFACE_RESOLUTION: u16 = 9;
    pub const PACKET_FLAGS: u16 = 2;
}

/// Appends a block: type, total length, body, and total length again. Both lengths count the whole
/// block.
fn block(block_type: u32, out: &mut Vec<u8>, body: impl FnOnce(&mut Vec<u8>)) {
    let start = out.len();
    out.extend_from_slice(&block_type.to_le_bytes());
    out.put_zeros(4);
    body(out);
    let total = len32(out.len() - start + 4).to_le_bytes();
    out[start + 4..start + 8].copy_from_slice(&total);
    out.extend_from_slice(&total);
}

fn put_option(code: u16, value: &[u8], out: &mut Vec<u8>) {
    out.extend_from_slice(&code.to_le_bytes());
    out.extend_from_slice(&len16(value.len()).to_le_bytes());
    out.extend_from_slice(value);
    pad(out, value.len());
}

/// Appends a text option, cut at the last character that fits into the 16-bit length.
fn text_option(code: u16, text: Option<&str>, out: &mut Vec<u8>) {
    if let Some(text) = text {
        let mut end = text.len().min(u16::MAX.into());
        while !text.is_char_boundary(end) {
            end -= 1;
        }
        put_option(code, &text.as_bytes()[..end], out);
    }
}

fn end_of_options(out: &mut Vec<u8>) {
    put_option(option::END, &[], out);
}

/// Appends zeros up to the next 32-bit boundary.
fn pad(out: &mut Vec<u8>, len: usize) {
    out.put_zeros(len.next_multiple_of(4) - len);
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Splits `bytes` into blocks. Asserts that both lengths of a block agree and are multiples of
    /// four.
    fn blocks(mut bytes: &[u8]) -> Vec<(u32, Vec<u8>)> {
        let word = |b: &[u8]| u32::from_le_bytes(b.try_into().unwrap());
        let mut found = Vec::new();
        while !bytes.is_empty() {
            let total = word(&bytes[4..8]) as usize;
            assert_eq!(total % 4, 0);
            assert_eq!(word(&bytes[total - 4..total]) as usize, total);
            found.push((word(&bytes[..4]), bytes[8..total - 4].to_vec()));
            bytes = &bytes[total..];
        }
        found
    }

    #[test]
    fn writes_blocks_whose_lengths_agree() {
        let mut out = Vec::new();
        Section { application: "sanloom", comment: Some("é") }.emit(&mut out);
        Interface {
            name: "edge1-p1",
            description: None,
            link_type: LINKTYPE_FC_2_WITH_FRAME_DELIMS,
            resolution: Resolution::Picoseconds,
        }
        .emit(&mut out);
        for len in 0..5 {
            Packet {
                interface: 0,
                time: 0x0001_0203_0405_0607,
                direction: Some(Direction::Outbound),
                crc_error: true,
                comment: (len == 3).then_some("lost"),
                data: &[0xa5; 5][..len],
            }
            .emit(&mut out);
        }
        let blocks = blocks(&out);
        assert_eq!(blocks.iter().map(|(kind, _)| *kind).collect::<Vec<_>>(), [0x0a0d_0d0a, 1, 6, 6, 6, 6, 6]);
        let (_, packet) = &blocks[3];
        assert_eq!(packet[4..12], [0x03, 0x02, 0x01, 0x00, 0x07, 0x06, 0x05, 0x04]);
        assert_eq!(packet[12..], [1, 0, 0, 0, 1, 0, 0, 0, 0xa5, 0, 0, 0, 2, 0, 4, 0, 2, 0, 0, 1, 0, 0, 0, 0]);
    }

    #[test]
    fn cuts_long_texts_between_characters() {
        let mut out = Vec::new();
        let comment = "é".repeat(40_000);
        Section { application: "sanloom", comment: Some(&comment) }.emit(&mut out);
        let (_, section) = &blocks(&out)[0];
        assert_eq!(section[16..20], [1, 0, 0xfe, 0xff]);
    }

    #[test]
    fn puts_delimiters_and_crc_around_a_frame() {
        let bytes = fc_with_delimiters(b"12345678", Sof::I3, Eof::T);
        assert_eq!(bytes[..4], [0xbc, 0xb5, 0x56, 0x56]);
        assert_eq!(bytes[12..16], crate::crc::frame_crc(b"12345678").to_le_bytes());
        assert_eq!(bytes[16..], [0xbc, 0x95, 0x75, 0x75]);
    }
}
