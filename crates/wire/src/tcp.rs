//! TCP segments in IPv4 packets (RFC 9293, section 3.1; RFC 791, section 3.1).
//!
//! ```text
//!   0    IPv4: version and header length, DSCP and ECN, total length, identification, fragment,
//!        TTL, protocol 6, checksum, source, destination; 20 bytes without options
//!   20   TCP: ports, sequence number, acknowledgement number, data offset, flags, window,
//!        checksum, urgent pointer; 20 bytes
//!   40   TCP options, padded with NOPs to a multiple of four
//!   n    payload
//! ```
//!
//! Options leave in the order of Linux. On arrival, other options are skipped.

use crate::bytes::{Put, fixed, len8, slice, u16_at, u32_at};
use crate::error::ParseError;

/// Length of an IPv4 header without options, in bytes.
pub const IP_BYTES: usize = 20;
/// Length of a TCP header without options, in bytes.
pub const TCP_BYTES: usize = 20;
/// Maximum length of the options of a segment, in bytes.
const MAX_OPTION_BYTES: usize = 40;
/// Protocol number of TCP.
const PROTOCOL: u8 = 6;
/// Maximum number of SACK blocks in a segment.
pub const MAX_BLOCKS: usize = 4;

/// A TCP segment in an IPv4 packet.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct TcpPacket<'a> {
    /// Fields of the IPv4 header.
    pub ip: Ipv4Header,
    /// Fields of the TCP header.
    pub tcp: TcpHeader,
    /// Payload of the segment.
    pub payload: &'a [u8],
}

/// Fields of an IPv4 header. Lengths, protocol and checksum follow from the packet.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Ipv4Header {
    /// Address of the sender.
    pub source: [u8; 4],
    /// Address of the receiver.
    pub destination: [u8; 4],
    /// DSCP (6 bits) and ECN (2 bits).
    pub service: u8,
    /// Number of the packet, for reassembly.
    pub identification: u16,
    /// Flags (3 bits; 2: don't fragment) and offset of the fragment.
    pub fragment: u16,
    /// Remaining number of routers.
    pub time_to_live: u8,
}

/// Fields of a TCP header. Data offset and checksum follow from the packet.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct TcpHeader {
    /// Port of the sender.
    pub source_port: u16,
    /// Port of the receiver.
    pub destination_port: u16,
    /// Sequence number of the first byte, or of the SYN.
    pub sequence: u32,
    /// Next expected sequence number; valid with ACK.
    pub acknowledgement: u32,
    /// CWR, ECE, URG, ACK, PSH, RST, SYN and FIN, from bit 7 to bit 0.
    pub flags: u8,
    /// Window, shifted right by the window scale.
    pub window: u16,
    /// Position of the end of urgent data.
    pub urgent: u16,
    /// Options.
    pub options: TcpOptions,
}

/// Options of a segment.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct TcpOptions {
    /// Maximum segment size (kind 2).
    pub mss: Option<u16>,
    /// Window scale (kind 3).
    pub scale: Option<u8>,
    /// SACK permitted (kind 4).
    pub sack_permitted: bool,
    /// SACK (kind 5): sequence numbers of begin and end of each block.
    pub blocks: [Option<(u32, u32)>; MAX_BLOCKS],
    /// Time stamps (kind 8): value and echo.
    pub stamps: Option<(u32, u32)>,
}

impl TcpOptions {
    /// Appends the options, padded to a multiple of four bytes. Blocks beyond 40 bytes of options
    /// are left out.
    fn put(&self, out: &mut Vec<u8>) {
        let start = out.len();
        if let Some(mss) = self.mss {
            out.put_slice(&[2, 4]);
            out.put_u16(mss);
        }
        // SACK permitted takes the place of the padding before time stamps.
        let pad: &[u8] = if self.sack_permitted { &[4, 2] } else { &[1, 1] };
        if self.sack_permitted && self.stamps.is_none() {
            out.put_slice(&[1, 1]);
        }
        if self.sack_permitted || self.stamps.is_some() {
            out.put_slice(pad);
        }
        if let Some((value, echo)) = self.stamps {
            out.put_slice(&[8, 10]);
            out.put_u32(value);
            out.put_u32(echo);
        }
        if let Some(scale) = self.scale {
            out.put_slice(&[1, 3, 3, scale]);
        }
        let room = MAX_OPTION_BYTES.saturating_sub(out.len() - start + 4) / 8;
        let count = self.blocks.iter().flatten().count().min(room);
        if count > 0 {
            out.put_slice(&[1, 1, 5, len8(2 + 8 * count)]);
            for (start, end) in self.blocks.iter().flatten().take(count) {
                out.put_u32(*start);
                out.put_u32(*end);
            }
        }
    }

    /// Reads the options of a header. An option that is longer than the rest is an error.
    fn parse(mut data: &[u8]) -> Result<TcpOptions, ParseError> {
        let mut options = TcpOptions::default();
        while let Some(&kind) = data.first() {
            match kind {
                0 => break,
                1 => data = &data[1..],
                _ => {
                    let length = usize::from(*data.get(1).unwrap_or(&0));
                    if length < 2 {
                        let rule = "at least 2 bytes";
                        return Err(ParseError::Length { field: "TCP option", got_bytes: length, rule });
                    }
                    let option = slice("TCP option", data, 0, length)?;
                    options.take(kind, &option[2..]);
                    data = &data[length..];
                }
            }
        }
        Ok(options)
    }

    fn take(&mut self, kind: u8, value: &[u8]) {
        match (kind, value.len()) {
            (2, 2) => self.mss = Some(u16_at(value, 0)),
            (3, 1) => self.scale = Some(value[0]),
            (4, 0) => self.sack_permitted = true,
            (8, 8) => self.stamps = Some((u32_at(value, 0), u32_at(value, 4))),
            (5, _) => {
                for (slot, block) in self.blocks.iter_mut().zip(value.chunks_exact(8)) {
                    *slot = Some((u32_at(block, 0), u32_at(block, 4)));
                }
            }
            _ => {}
        }
    }
}

impl<'a> TcpPacket<'a> {
    /// Reads a packet. Bytes behind its total length are ignored, such as the padding of a short
    /// Ethernet frame. Checksums are not checked; see [`checksums_are_right`].
    pub fn parse(packet: &'a [u8]) -> Result<TcpPacket<'a>, ParseError> {
        let head = fixed::<IP_BYTES>("IPv4 header", packet)?;
        if head[0] >> 4 != 4 {
            return Err(ParseError::Unsupported { field: "IP version", got: (head[0] >> 4).into() });
        }
        if head[9] != PROTOCOL {
            return Err(ParseError::Unsupported { field: "IP protocol", got: head[9].into() });
        }
        let (start, segment) = segment_of(packet)?;
        let tcp = fixed::<TCP_BYTES>("TCP header", segment)?;
        let offset = usize::from(tcp[12] >> 4) * 4;
        if offset < TCP_BYTES {
            return Err(ParseError::Length { field: "TCP header", got_bytes: offset, rule: "at least 20 bytes" });
        }
        let options = slice("TCP options", segment, TCP_BYTES, offset - TCP_BYTES)?;
        let address = |at: usize| [head[at], head[at + 1], head[at + 2], head[at + 3]];
        debug_assert!(start >= IP_BYTES);
        Ok(TcpPacket {
            ip: Ipv4Header {
                source: address(12),
                destination: address(16),
                service: head[1],
                identification: u16_at(head, 4),
                fragment: u16_at(head, 6),
                time_to_live: head[8],
            },
            tcp: TcpHeader {
                source_port: u16_at(tcp, 0),
                destination_port: u16_at(tcp, 2),
                sequence: u32_at(tcp, 4),
                acknowledgement: u32_at(tcp, 8),
                flags: tcp[13],
                window: u16_at(tcp, 14),
                urgent: u16_at(tcp, 18),
                options: TcpOptions::parse(options)?,
            },
            payload: &segment[offset..],
        })
    }

    /// Appends the packet with its checksums.
    ///
    /// The packet must not exceed 65,535 bytes; the length field of a longer one is that maximum.
    pub fn emit(&self, out: &mut Vec<u8>) {
        let start = out.len();
        out.put_slice(&[0x45, self.ip.service]);
        out.put_zeros(2);
        out.put_u16(self.ip.identification);
        out.put_u16(self.ip.fragment);
        out.put_slice(&[self.ip.time_to_live, PROTOCOL, 0, 0]);
        out.put_slice(&self.ip.source);
        out.put_slice(&self.ip.destination);
        let tcp = out.len();
        out.put_u16(self.tcp.source_port);
        out.put_u16(self.tcp.destination_port);
        out.put_u32(self.tcp.sequence);
        out.put_u32(self.tcp.acknowledgement);
        out.put_slice(&[0, self.tcp.flags]);
        out.put_u16(self.tcp.window);
        out.put_zeros(2);
        out.put_u16(self.tcp.urgent);
        self.tcp.options.put(out);
        out[tcp + 12] = len8((out.len() - tcp) * 4);
        out.put_slice(self.payload);
        let length = crate::bytes::len16(out.len() - start);
        out[start + 2..start + 4].copy_from_slice(&length.to_be_bytes());
        let sum = checksum(0, &out[start..tcp]);
        out[start + 10..start + 12].copy_from_slice(&sum.to_be_bytes());
        let sum = checksum(pseudo_header(&out[start..tcp], out.len() - tcp), &out[tcp..]);
        out[tcp + 16..tcp + 18].copy_from_slice(&sum.to_be_bytes());
    }
}

/// Returns the offset and the bytes of the segment of a packet.
fn segment_of(packet: &[u8]) -> Result<(usize, &[u8]), ParseError> {
    let head = fixed::<IP_BYTES>("IPv4 header", packet)?;
    let start = usize::from(head[0] & 15) * 4;
    let total = usize::from(u16_at(head, 2));
    if start < IP_BYTES || total < start {
        return Err(ParseError::Length {
            field: "IPv4 header",
            got_bytes: start,
            rule: "20 bytes to the total length",
        });
    }
    Ok((start, slice("IPv4 packet", packet, start, total - start)?))
}

/// Returns true if both checksums of an IPv4 packet with TCP are right.
pub fn checksums_are_right(packet: &[u8]) -> bool {
    let Ok((start, segment)) = segment_of(packet) else { return false };
    let head = &packet[..start];
    checksum(0, head) == 0 && checksum(pseudo_header(head, segment.len()), segment) == 0
}

/// Sum of the pseudo header of TCP (RFC 9293, section 3.1): addresses, protocol, length.
fn pseudo_header(ip: &[u8], length: usize) -> u32 {
    let addresses: u32 = (12..20).step_by(2).map(|at| u32::from(u16_at(ip, at))).sum();
    addresses + u32::from(PROTOCOL) + u32::from(crate::bytes::len16(length))
}

/// Internet checksum (RFC 1071): complement of the sum of 16-bit words, carries added.
fn checksum(begin: u32, data: &[u8]) -> u16 {
    let words = data.chunks(2).map(|word| u32::from(word[0]) << 8 | u32::from(*word.get(1).unwrap_or(&0)));
    // 65,535 bytes have 32,768 words, so the sum stays below 2^31.
    let sum = words.fold(begin, |sum, word| sum + word);
    let folded = (sum & 0xffff) + (sum >> 16);
    let folded = (folded & 0xffff) + (folded >> 16);
    !u16::try_from(folded).unwrap_or(u16::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A SYN of Linux 6 to port 3260 with `tcp_ecn=1`, read from a TUN device.
    const SYN: &str = "4500003cfcfa4000400629ad0a0900010a090002\
        d2ac0cbcfc5196e300000000a0c2faf00d890000020405b40402080ae1a7d668000000000103030a";

    fn bytes(hex: &str) -> Vec<u8> {
        (0..hex.len()).step_by(2).map(|at| u8::from_str_radix(&hex[at..at + 2], 16).unwrap()).collect()
    }

    fn emitted(packet: &TcpPacket<'_>) -> Vec<u8> {
        let mut out = Vec::new();
        packet.emit(&mut out);
        out
    }

    #[test]
    fn a_syn_of_linux_is_read_and_written() {
        let syn = bytes(SYN);
        let packet = TcpPacket::parse(&syn).unwrap();
        let options = TcpOptions {
            mss: Some(1460),
            scale: Some(10),
            sack_permitted: true,
            stamps: Some((0xe1a7_d668, 0)),
            ..TcpOptions::default()
        };
        assert_eq!(packet.tcp.options, options);
        assert_eq!((packet.tcp.destination_port, packet.tcp.flags, packet.tcp.window), (3260, 0xc2, 64_240));
        assert_eq!((packet.ip.source, packet.ip.destination), ([10, 9, 0, 1], [10, 9, 0, 2]));
        assert_eq!(emitted(&packet), syn);
        assert!(checksums_are_right(&syn));
    }

    /// The example of RFC 1071, section 3: the sum is ddf2.
    #[test]
    fn the_checksum_is_that_of_rfc_1071() {
        assert_eq!(checksum(0, &[0x00, 0x01, 0xf2, 0x03, 0xf4, 0xf5, 0xf6, 0xf7]), !0xddf2);
    }

    #[test]
    fn data_with_blocks_and_an_odd_length_come_back() {
        let mut tcp = TcpHeader { sequence: 7, acknowledgement: u32::MAX, flags: 0x18, ..TcpHeader::default() };
        tcp.options.stamps = Some((1, 2));
        tcp.options.blocks[..3].copy_from_slice(&[Some((10, 20)), Some((30, 40)), Some((50, 60))]);
        let ip = Ipv4Header { source: [1, 2, 3, 4], time_to_live: 64, service: 2, ..Ipv4Header::default() };
        let packet = TcpPacket { ip, tcp, payload: &[9; 7] };
        let mut out = emitted(&packet);
        // 12 bytes of time stamps, 28 of three blocks.
        assert_eq!(out.len(), 20 + 20 + 40 + 7);
        assert!(checksums_are_right(&out));
        out.extend([0; 5]);
        assert_eq!(TcpPacket::parse(&out), Ok(packet));
        assert!(checksums_are_right(&out));
        for at in 0..87 {
            let mut wrong = out.clone();
            wrong[at] ^= 0x10;
            assert!(!checksums_are_right(&wrong), "bit of byte {at}");
        }
    }

    #[test]
    fn options_that_do_not_fit_leave_blocks_out() {
        let blocks = [Some((1, 2)); MAX_BLOCKS];
        let options = TcpOptions { mss: Some(1), scale: Some(2), sack_permitted: true, blocks, stamps: Some((3, 4)) };
        let tcp = TcpHeader { options, ..TcpHeader::default() };
        let out = emitted(&TcpPacket { ip: Ipv4Header::default(), tcp, payload: &[5] });
        let read = TcpPacket::parse(&out).unwrap();
        assert_eq!((read.payload, read.tcp.options.blocks.iter().flatten().count()), (&[5][..], 2));
    }

    #[test]
    fn every_cut_of_a_packet_is_an_error() {
        let syn = bytes(SYN);
        for length in 0..syn.len() {
            assert!(TcpPacket::parse(&syn[..length]).is_err(), "{length} bytes");
        }
        for at in 0..syn.len() {
            for value in 0..=u8::MAX {
                let mut changed = syn.clone();
                changed[at] = value;
                let _ = TcpPacket::parse(&changed);
                let _ = checksums_are_right(&changed);
            }
        }
    }
}
