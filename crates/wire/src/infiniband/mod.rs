//! Packets of InfiniBand (IBA volume 1, chapters 7 to 9 and 13): headers, checksums, management
//! datagrams and messages of the connection manager.
//!
//! ```text
//!   0    LRH 8: lane and version, service level and next header, DLID, length in words, SLID
//!   8    GRH 40, if the next header says so
//!   n    BTH 12, then the headers of its opcode, payload, pad, ICRC 4, VCRC 2
//! ```

pub mod cm;
mod crc;
pub mod mad;
pub mod roce;

pub use crc::{icrc, vcrc};

use crate::bytes::{Put, fixed, len16, slice, u16_at, u32_at, u64_at};
use crate::error::ParseError;

/// Length of the LRH.
pub const LRH_BYTES: usize = 8;
/// Length of the GRH.
pub const GRH_BYTES: usize = 40;
/// Length of the BTH.
pub const BTH_BYTES: usize = 12;
/// Length of the ICRC.
pub const ICRC_BYTES: usize = 4;
/// Length of the VCRC.
pub const VCRC_BYTES: usize = 2;

/// Local route header.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub struct Lrh {
    /// Virtual lane: 4 bits.
    pub lane: u8,
    /// Service level: 4 bits.
    pub level: u8,
    /// Destination LID.
    pub to: u16,
    /// Source LID.
    pub from: u16,
}

/// Global route header. Version and payload length follow from the packet.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub struct Grh {
    /// Traffic class.
    pub class: u8,
    /// Flow label: 20 bits.
    pub flow: u32,
    /// Hop limit.
    pub hops: u8,
    /// Source GID.
    pub from: [u8; 16],
    /// Destination GID.
    pub to: [u8; 16],
}

/// Base transport header.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub struct Bth {
    /// Opcode; see [`opcode`].
    pub opcode: u8,
    /// Solicited event.
    pub solicited: bool,
    /// Migration state.
    pub migrated: bool,
    /// Bytes of padding: 0 to 3.
    pub pad: u8,
    /// Partition key.
    pub key: u16,
    /// Forward and backward notice of congestion.
    pub congestion: [bool; 2],
    /// Destination queue pair: 24 bits.
    pub pair: u32,
    /// Asks for an acknowledgement.
    pub ack: bool,
    /// Packet sequence number: 24 bits.
    pub psn: u32,
}

/// Opcodes of BTH (IBA volume 1, 9.2.1): reliable connections, and datagrams (UD).
pub mod opcode {
    use crate::codes::code_constants;
    code_constants!(u8 {
        SEND_FIRST = 0x00, "SEND First";
        SEND_MIDDLE = 0x01, "SEND Middle";
        SEND_LAST = 0x02, "SEND Last";
        SEND_LAST_IMMEDIATE = 0x03, "SEND Last with Immediate";
        SEND_ONLY = 0x04, "SEND Only";
        SEND_ONLY_IMMEDIATE = 0x05, "SEND Only with Immediate";
        WRITE_FIRST = 0x06, "RDMA WRITE First";
        WRITE_MIDDLE = 0x07, "RDMA WRITE Middle";
        WRITE_LAST = 0x08, "RDMA WRITE Last";
        WRITE_LAST_IMMEDIATE = 0x09, "RDMA WRITE Last with Immediate";
        WRITE_ONLY = 0x0a, "RDMA WRITE Only";
        WRITE_ONLY_IMMEDIATE = 0x0b, "RDMA WRITE Only with Immediate";
        READ = 0x0c, "RDMA READ Request";
        DATA_FIRST = 0x0d, "RDMA READ response First";
        DATA_MIDDLE = 0x0e, "RDMA READ response Middle";
        DATA_LAST = 0x0f, "RDMA READ response Last";
        DATA_ONLY = 0x10, "RDMA READ response Only";
        ACK = 0x11, "Acknowledge";
        SEND_LAST_INVALIDATE = 0x16, "SEND Last with Invalidate";
        SEND_ONLY_INVALIDATE = 0x17, "SEND Only with Invalidate";
        DATAGRAM = 0x64, "UD SEND Only";
        DATAGRAM_IMMEDIATE = 0x65, "UD SEND Only with Immediate";
    });
}

/// Headers behind the BTH.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub struct Extended {
    /// Datagram: Q_Key and source queue pair (24 bits).
    pub deth: Option<(u32, u32)>,
    /// RDMA: address, R_Key and length.
    pub reth: Option<(u64, u32, u32)>,
    /// Acknowledgement: syndrome and message sequence number (24 bits).
    pub aeth: Option<(u8, u32)>,
    /// Immediate data.
    pub immediate: Option<u32>,
    /// R_Key to invalidate.
    pub invalidate: Option<u32>,
}

/// A packet.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Packet<'a> {
    /// Local route header.
    pub lrh: Lrh,
    /// Global route header.
    pub grh: Option<Grh>,
    /// Base transport header. Its padding follows from the payload.
    pub bth: Bth,
    /// Headers of the opcode.
    pub extended: Extended,
    /// Payload without padding.
    pub payload: &'a [u8],
}

impl Bth {
    /// Parses a BTH.
    ///
    /// # Errors
    ///
    /// The bytes are too short, or the version of the transport is not 0.
    pub fn parse(data: &[u8]) -> Result<Bth, ParseError> {
        let data = fixed::<BTH_BYTES>("BTH", data)?;
        if data[1] & 15 != 0 {
            return Err(ParseError::Value { field: "BTH version", got: (data[1] & 15).into(), rule: "0" });
        }
        Ok(Bth {
            opcode: data[0],
            solicited: data[1] & 0x80 != 0,
            migrated: data[1] & 0x40 != 0,
            pad: data[1] >> 4 & 3,
            key: u16_at(data, 2),
            congestion: [data[4] & 0x80 != 0, data[4] & 0x40 != 0],
            pair: u32_at(data, 4) & 0xff_ffff,
            ack: data[8] & 0x80 != 0,
            psn: u32_at(data, 8) & 0xff_ffff,
        })
    }

    /// Appends the header.
    pub fn emit(&self, out: &mut Vec<u8>) {
        let flag = |set: bool, bit: u8| if set { bit } else { 0 };
        let flags = flag(self.solicited, 0x80) | flag(self.migrated, 0x40) | (self.pad & 3) << 4;
        let congestion = flag(self.congestion[0], 0x80) | flag(self.congestion[1], 0x40);
        out.put_slice(&[self.opcode, flags]);
        out.put_u16(self.key);
        out.put_u32(u32::from(congestion) << 24 | self.pair & 0xff_ffff);
        out.put_u32(u32::from(flag(self.ack, 0x80)) << 24 | self.psn & 0xff_ffff);
    }
}

impl Grh {
    fn parse(data: &[u8]) -> Result<Grh, ParseError> {
        let data = fixed::<GRH_BYTES>("GRH", data)?;
        let word = u32_at(data, 0);
        if word >> 28 != 6 || data[6] != 0x1b {
            return Err(ParseError::Value { field: "GRH", got: word >> 28, rule: "version 6 with next header 1B" });
        }
        let gid = |at: usize| -> [u8; 16] {
            let mut gid = [0; 16];
            gid.copy_from_slice(&data[at..at + 16]);
            gid
        };
        let class = (word >> 20).to_be_bytes()[3];
        Ok(Grh { class, flow: word & 0xf_ffff, hops: data[7], from: gid(8), to: gid(24) })
    }

    fn emit(&self, payload_bytes: usize, out: &mut Vec<u8>) {
        out.put_u32(6 << 28 | u32::from(self.class) << 20 | self.flow & 0xf_ffff);
        out.put_u16(len16(payload_bytes));
        out.put_slice(&[0x1b, self.hops]);
        out.put_slice(&self.from);
        out.put_slice(&self.to);
    }
}

impl Extended {
    /// Returns which headers an opcode has, in their order: DETH, RETH, AETH, ImmDt, IETH.
    fn of(code: u8) -> [bool; 5] {
        use opcode::{
            ACK, DATA_FIRST, DATA_LAST, DATA_ONLY, DATAGRAM, DATAGRAM_IMMEDIATE, READ, SEND_LAST_IMMEDIATE,
            SEND_LAST_INVALIDATE, SEND_ONLY_IMMEDIATE, SEND_ONLY_INVALIDATE, WRITE_FIRST, WRITE_LAST_IMMEDIATE,
            WRITE_ONLY, WRITE_ONLY_IMMEDIATE,
        };
        let immediate =
            [SEND_LAST_IMMEDIATE, SEND_ONLY_IMMEDIATE, WRITE_LAST_IMMEDIATE, WRITE_ONLY_IMMEDIATE, DATAGRAM_IMMEDIATE];
        [
            matches!(code, DATAGRAM | DATAGRAM_IMMEDIATE),
            matches!(code, WRITE_FIRST | WRITE_ONLY | WRITE_ONLY_IMMEDIATE | READ),
            matches!(code, DATA_FIRST | DATA_LAST | DATA_ONLY | ACK),
            immediate.contains(&code),
            matches!(code, SEND_LAST_INVALIDATE | SEND_ONLY_INVALIDATE),
        ]
    }

    fn parse(code: u8, data: &[u8], mut at: usize) -> Result<(Extended, usize), ParseError> {
        let [deth, reth, aeth, immediate, invalidate] = Extended::of(code);
        let mut take = |is_there: bool, field: &'static str, bytes: usize| {
            if !is_there {
                return Ok(None);
            }
            let part = slice(field, data, at, bytes)?;
            at += bytes;
            Ok(Some(part))
        };
        let extended = Extended {
            deth: take(deth, "DETH", 8)?.map(|data| (u32_at(data, 0), u32_at(data, 4) & 0xff_ffff)),
            reth: take(reth, "RETH", 16)?.map(|data| (u64_at(data, 0), u32_at(data, 8), u32_at(data, 12))),
            aeth: take(aeth, "AETH", 4)?.map(|data| (data[0], u32_at(data, 0) & 0xff_ffff)),
            immediate: take(immediate, "immediate data", 4)?.map(|data| u32_at(data, 0)),
            invalidate: take(invalidate, "IETH", 4)?.map(|data| u32_at(data, 0)),
        };
        Ok((extended, at))
    }

    /// Appends the headers that the opcode has. A missing one has zeros.
    fn emit(&self, code: u8, out: &mut Vec<u8>) {
        let [deth, reth, aeth, immediate, invalidate] = Extended::of(code);
        if deth {
            let (key, pair) = self.deth.unwrap_or_default();
            out.put_u32(key);
            out.put_u32(pair & 0xff_ffff);
        }
        if reth {
            let (address, key, length) = self.reth.unwrap_or_default();
            out.put_u64(address);
            out.put_u32(key);
            out.put_u32(length);
        }
        if aeth {
            let (syndrome, number) = self.aeth.unwrap_or_default();
            out.put_u32(u32::from(syndrome) << 24 | number & 0xff_ffff);
        }
        if immediate {
            out.put_u32(self.immediate.unwrap_or_default());
        }
        if invalidate {
            out.put_u32(self.invalidate.unwrap_or_default());
        }
    }
}

impl<'a> Packet<'a> {
    /// Parses a packet from the LRH to the VCRC, and checks its length and both checksums.
    ///
    /// # Errors
    ///
    /// The bytes are too short, a length or checksum is wrong, or the packet has no BTH.
    pub fn parse(data: &'a [u8]) -> Result<Packet<'a>, ParseError> {
        let head = fixed::<LRH_BYTES>("LRH", data)?;
        let lrh = Lrh { lane: head[0] >> 4, level: head[1] >> 4, to: u16_at(head, 2), from: u16_at(head, 6) };
        if head[0] & 15 != 0 {
            return Err(ParseError::Value { field: "LRH version", got: (head[0] & 15).into(), rule: "0" });
        }
        // The length counts words from the LRH to the ICRC.
        let length = usize::from(u16_at(head, 4) & 0x7ff) * 4;
        if data.len() != length + VCRC_BYTES {
            let rule = "the words of the LRH and the VCRC";
            return Err(ParseError::Length { field: "InfiniBand packet", got_bytes: data.len(), rule });
        }
        let (grh, mut at) = match head[1] & 3 {
            2 => (None, LRH_BYTES),
            3 => (Some(Grh::parse(&data[LRH_BYTES..])?), LRH_BYTES + GRH_BYTES),
            other => return Err(ParseError::Unsupported { field: "next header of LRH", got: other.into() }),
        };
        let bth = Bth::parse(&data[at..])?;
        at += BTH_BYTES;
        let (extended, at) = Extended::parse(bth.opcode, data, at)?;
        let end = length.saturating_sub(ICRC_BYTES + usize::from(bth.pad));
        let payload = data.get(at..end).ok_or(ParseError::Truncated {
            field: "InfiniBand packet",
            needed_bytes: at + ICRC_BYTES + usize::from(bth.pad),
            got_bytes: length,
        })?;
        let (body, sum) = data.split_at(length);
        if sum != vcrc(body) {
            return Err(ParseError::Value { field: "VCRC", got: u16_at(sum, 0).into(), rule: "that of the packet" });
        }
        let (body, sum) = body.split_at(length - ICRC_BYTES);
        if sum != icrc(body, grh.is_some()) {
            return Err(ParseError::Value { field: "ICRC", got: u32_at(sum, 0), rule: "that of the packet" });
        }
        Ok(Packet { lrh, grh, bth, extended, payload })
    }

    /// Appends the packet with its padding and checksums.
    pub fn emit(&self, out: &mut Vec<u8>) {
        let start = out.len();
        let mut body = Vec::new();
        let pad = self.payload.len().next_multiple_of(4) - self.payload.len();
        Bth { pad: crate::bytes::len8(pad), ..self.bth }.emit(&mut body);
        self.extended.emit(self.bth.opcode, &mut body);
        body.put_slice(self.payload);
        body.put_zeros(pad);
        let global = if self.grh.is_some() { GRH_BYTES } else { 0 };
        let words = (LRH_BYTES + global + body.len() + ICRC_BYTES) / 4;
        let next = if self.grh.is_some() { 3 } else { 2 };
        out.put_slice(&[self.lrh.lane << 4, (self.lrh.level & 15) << 4 | next]);
        out.put_u16(self.lrh.to);
        out.put_u16(len16(words) & 0x7ff);
        out.put_u16(self.lrh.from);
        if let Some(grh) = &self.grh {
            grh.emit(body.len() + ICRC_BYTES, out);
        }
        out.put_slice(&body);
        let sum = icrc(&out[start..], self.grh.is_some());
        out.put_slice(&sum);
        let sum = vcrc(&out[start..]);
        out.put_slice(&sum);
    }
}
