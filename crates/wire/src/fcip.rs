//! FCIP (RFC 3821) on the common encapsulation of Fibre Channel frames (RFC 3643): [`Head`],
//! [`Encapsulated`] and the special frame [`Special`] that opens a TCP connection.
//!
//! ```text
//!   word 0     protocol 1, version 1, and their complements
//!   word 1     copy of word 0
//!   word 2     flags of FCIP, reserved, and their complements
//!   word 3     flags 6 bits, length 10 bits in words, and their complements
//!   word 4, 5  time stamp: seconds since 1900, and their fraction
//!   word 6     CRC of the header: unused in FCIP, zero
//! ```
//!
//! A frame follows: SOF word, FC frame with its CRC, EOF word. A special frame has SF set and 12
//! more words instead: reserved, source name, source entity, nonce, usage, destination name,
//! K_A_TOV, reserved. The layout of the first seven words, and of the special frame up to its usage
//! code, agrees with Wireshark. Its dissector of version 4.0 reads the destination name and K_A_TOV
//! two bytes too late.

use crate::bytes::{Put, fixed, u16_at, u32_at, u64_at};
use crate::crc::{CRC_BYTES, crc_bytes};
use crate::delimiter::{Eof, Sof};
use crate::error::ParseError;
use crate::frame::{Frame, Payload};
use crate::header::{FCtl, FcType, HEADER_BYTES as FRAME_HEADER_BYTES, Header, RCtl, RX_ID_UNASSIGNED};
use crate::id::{FcId, Wwnn};

/// TCP port of FCIP.
pub const PORT: u16 = 3225;
/// Length of the encapsulation header, in bytes.
pub const HEADER_BYTES: usize = 28;
/// Length of a special frame, in bytes.
pub const SPECIAL_BYTES: usize = SPECIAL_WORDS as usize * WORD_BYTES;
/// Length of an SOF or EOF word, in bytes.
pub const DELIMITER_BYTES: usize = 4;
/// Bytes that the encapsulation adds to a frame: header, SOF word, EOF word.
pub const OVERHEAD_BYTES: usize = HEADER_BYTES + 2 * DELIMITER_BYTES;
/// Permitted lengths, in words (RFC 3821, section 5.6.2).
pub const WORDS: std::ops::RangeInclusive<u16> = 15..=545;

const WORD_BYTES: usize = 4;
const SPECIAL_WORDS: u16 = 19;
/// Protocol FCIP, version 1, and their complements.
const FCIP_1: u32 = 0x0101_fefe;
/// Length in words: the lower 10 bits of a half word.
const LENGTH_MASK: u16 = 0x03ff;
/// Seconds from 1900, the epoch of time stamps, to 1970.
const SECS_TO_1970: u64 = 2_208_988_800;

/// Flags of FCIP in the encapsulation header (pFlags).
pub mod flag {
    /// An echoed special frame differs from the one that was received.
    pub const CHANGED: u8 = 0x80;
    /// The frame is a special frame.
    pub const SPECIAL: u8 = 0x01;
}

/// Time stamp of the sender in the format of SNTP: seconds since 1900 in the upper half, and their
/// fraction in the lower half. Zero: the sender has no synchronised clock.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Default)]
pub struct Stamp(pub u64);

impl Stamp {
    /// The sender has no synchronised clock.
    pub const NONE: Stamp = Stamp(0);

    /// Time stamp of a time in nanoseconds since 1970. Seconds wrap in 2036 as those of SNTP.
    pub const fn from_unix_ns(ns: u64) -> Stamp {
        let secs = ns / 1_000_000_000 + SECS_TO_1970;
        let fraction = ((ns % 1_000_000_000) << 32) / 1_000_000_000;
        Stamp(secs << 32 | fraction)
    }

    /// Nanoseconds since `earlier`; zero if `earlier` is later by less than 68 years.
    pub const fn ns_since(self, earlier: Stamp) -> u64 {
        let units = self.0.wrapping_sub(earlier.0);
        if units >> 63 != 0 {
            return 0;
        }
        (units >> 32) * 1_000_000_000 + (((units & 0xffff_ffff) * 1_000_000_000) >> 32)
    }
}

/// The encapsulation header.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Head {
    /// Flags of FCIP ([`flag`]).
    pub flags: u8,
    /// Length from this header to the EOF word, in words.
    pub words: u16,
    /// Time at which the sender encapsulated the frame.
    pub stamp: Stamp,
}

impl Head {
    /// Reads a header. Every field that has a complement or a copy must agree with it, and the
    /// length must be one of [`WORDS`].
    pub fn parse(data: &[u8]) -> Result<Head, ParseError> {
        let b = fixed::<HEADER_BYTES>("FCIP header", data)?;
        let value = |field, got, rule| ParseError::Value { field, got, rule };
        for (field, at) in [("FCIP word 0", 0), ("FCIP word 1", 4)] {
            if u32_at(b, at) != FCIP_1 {
                return Err(value(field, u32_at(b, at), "protocol 1, version 1, and their complements"));
            }
        }
        if u16_at(b, 8) != !u16_at(b, 10) || b[9] != 0 {
            return Err(value("FCIP word 2", u32_at(b, 8), "flags and zero, and their complements"));
        }
        let length = u16_at(b, 12);
        if length != !u16_at(b, 14) || length & !LENGTH_MASK != 0 {
            return Err(value("FCIP word 3", u32_at(b, 12), "flags of zero and a length, and their complements"));
        }
        let special = usize::from(length) * WORD_BYTES == SPECIAL_BYTES;
        if !WORDS.contains(&length) || b[8] & flag::SPECIAL != 0 && !special {
            let rule = "15 to 545 words, and 19 words in a special frame";
            return Err(ParseError::Length { field: "FCIP frame", got_bytes: usize::from(length) * WORD_BYTES, rule });
        }
        Ok(Head { flags: b[8], words: length, stamp: Stamp(u64_at(b, 16)) })
    }

    /// Returns the header as bytes. The length is cut to 10 bits.
    pub fn to_bytes(self) -> [u8; HEADER_BYTES] {
        let mut out = [0; HEADER_BYTES];
        out[..4].copy_from_slice(&FCIP_1.to_be_bytes());
        out[4..8].copy_from_slice(&FCIP_1.to_be_bytes());
        out[8..12].copy_from_slice(&[self.flags, 0, !self.flags, 0xff]);
        let length = self.words & LENGTH_MASK;
        out[12..14].copy_from_slice(&length.to_be_bytes());
        out[14..16].copy_from_slice(&(!length).to_be_bytes());
        out[16..24].copy_from_slice(&self.stamp.0.to_be_bytes());
        out
    }

    /// Length from this header to the EOF word, in bytes.
    pub const fn bytes(self) -> usize {
        self.words as usize * WORD_BYTES
    }

    /// True for a special frame.
    pub const fn is_special(self) -> bool {
        self.flags & flag::SPECIAL != 0
    }
}

/// Returns the word of an SOF or EOF code: the code twice, and its complement twice.
pub const fn delimiter_word(code: u8) -> [u8; DELIMITER_BYTES] {
    [code, code, !code, !code]
}

/// Reads the word of a delimiter; `None` if its parts contradict each other.
fn delimiter_code(word: &[u8]) -> Option<u8> {
    let code = *word.first()?;
    (word == delimiter_word(code)).then_some(code)
}

/// An FC frame in its encapsulation.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Encapsulated<'a> {
    /// Flags of FCIP; [`flag::SPECIAL`] is clear.
    pub flags: u8,
    /// Time at which the sender encapsulated the frame.
    pub stamp: Stamp,
    /// Code of the start of frame; [`Sof::from_code`] decodes it.
    pub sof_code: u8,
    /// Header and data field: at least 24 bytes and a multiple of four.
    pub frame: &'a [u8],
    /// CRC as received; it may be wrong.
    pub crc: [u8; CRC_BYTES],
    /// Code of the end of frame; [`Eof::from_code`] decodes it.
    pub eof_code: u8,
}

impl<'a> Encapsulated<'a> {
    /// Reads a whole encapsulated frame from the start of `data`. The CRC is not checked.
    pub fn parse(data: &'a [u8]) -> Result<Encapsulated<'a>, ParseError> {
        Encapsulated::behind(Head::parse(data)?, data)
    }

    /// As [`parse`](Self::parse), with the header that was read from the start of `data`.
    pub fn behind(head: Head, data: &'a [u8]) -> Result<Encapsulated<'a>, ParseError> {
        if head.is_special() {
            return Err(ParseError::Unsupported { field: "FCIP flags of a frame", got: head.flags.into() });
        }
        let got_bytes = data.len();
        let needed_bytes = head.bytes();
        let whole =
            data.get(..needed_bytes).ok_or(ParseError::Truncated { field: "FCIP frame", needed_bytes, got_bytes })?;
        let least = OVERHEAD_BYTES + FRAME_HEADER_BYTES + CRC_BYTES;
        if needed_bytes < least {
            let rule = "long enough for a frame header and a CRC";
            return Err(ParseError::Length { field: "FCIP frame", got_bytes: needed_bytes, rule });
        }
        let (sof, rest) = whole[HEADER_BYTES..].split_at(DELIMITER_BYTES);
        let (content, eof) = rest.split_at(rest.len() - DELIMITER_BYTES);
        let (frame, crc) = content.split_at(content.len() - CRC_BYTES);
        let code = |field, word| {
            let error =
                ParseError::Value { field, got: u32_at(word, 0), rule: "a code twice, and its complement twice" };
            delimiter_code(word).ok_or(error)
        };
        Ok(Encapsulated {
            flags: head.flags,
            stamp: head.stamp,
            sof_code: code("FCIP SOF", sof)?,
            frame,
            crc: [crc[0], crc[1], crc[2], crc[3]],
            eof_code: code("FCIP EOF", eof)?,
        })
    }

    /// Appends the encapsulated frame with the stored CRC. The frame must not exceed the limit of
    /// an FC frame.
    pub fn emit(&self, out: &mut Vec<u8>) {
        out.reserve(self.encoded_len());
        out.extend_from_slice(&head(self.frame.len() + CRC_BYTES, self.flags, self.stamp).to_bytes());
        out.extend_from_slice(&delimiter_word(self.sof_code));
        out.extend_from_slice(self.frame);
        out.extend_from_slice(&self.crc);
        out.extend_from_slice(&delimiter_word(self.eof_code));
    }

    /// Number of bytes that [`emit`](Self::emit) appends.
    pub const fn encoded_len(&self) -> usize {
        OVERHEAD_BYTES + self.frame.len() + CRC_BYTES
    }

    /// True if the CRC matches the frame.
    pub fn crc_is_right(&self) -> bool {
        self.crc == crc_bytes(self.frame)
    }
}

/// Header of a frame with `content` bytes between its delimiters.
fn head(content: usize, flags: u8, stamp: Stamp) -> Head {
    let words = u16::try_from((OVERHEAD_BYTES + content) / WORD_BYTES).unwrap_or(u16::MAX);
    Head { flags, words, stamp }
}

/// Appends a frame in its encapsulation; the CRC is computed, and the delimiters are those of
/// [`Sof::of`] and [`Eof::of`].
pub fn encapsulate(stamp: Stamp, frame: &Frame, out: &mut Vec<u8>) {
    let mut bytes = Vec::with_capacity(frame.encoded_len());
    frame.emit(&mut bytes);
    Encapsulated {
        flags: 0,
        stamp,
        sof_code: Sof::of(&frame.header).code(),
        frame: &bytes,
        crc: crc_bytes(&bytes),
        eof_code: Eof::of(&frame.header).code(),
    }
    .emit(out);
}

/// A special frame: the first frame of a connection in both directions.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Special {
    /// The frame is an echo that differs from the frame that was received.
    pub changed: bool,
    /// Time at which the sender sent the frame.
    pub stamp: Stamp,
    /// Name of the switch or fabric at the end that opened the connection.
    pub source: Wwnn,
    /// Number of that end's FCIP link; unique for `source`.
    pub entity: u64,
    /// Random number of the connection.
    pub nonce: u64,
    /// Use of the connection, by kinds of frames; zero for all.
    pub usage_flags: u8,
    /// Code that FC-BB defines; zero if unused.
    pub usage_code: u16,
    /// Name of the switch or fabric at the other end; zero in a request from an end that accepts
    /// any.
    pub destination: Wwnn,
    /// Keep-alive time-out, in milliseconds.
    pub k_a_tov_ms: u32,
}

impl Special {
    /// Reads a special frame from the start of `data`.
    pub fn parse(data: &[u8]) -> Result<Special, ParseError> {
        let head = Head::parse(data)?;
        if !head.is_special() {
            return Err(ParseError::Unsupported { field: "FCIP flags of a special frame", got: head.flags.into() });
        }
        let b = fixed::<SPECIAL_BYTES>("FCIP special frame", data)?;
        for (field, at) in [("FCIP special frame word 7", 28), ("FCIP special frame word 18", 72)] {
            if u32_at(b, at) != 0xffff {
                return Err(ParseError::Value { field, got: u32_at(b, at), rule: "zero, and its complement" });
            }
        }
        let name = |at| Wwnn(u64_at(b, at));
        Ok(Special {
            changed: head.flags & flag::CHANGED != 0,
            stamp: head.stamp,
            source: name(32),
            entity: u64_at(b, 40),
            nonce: u64_at(b, 48),
            usage_flags: b[56],
            usage_code: u16_at(b, 58),
            destination: name(60),
            k_a_tov_ms: u32_at(b, 68),
        })
    }

    /// Appends the frame.
    pub fn emit(&self, out: &mut Vec<u8>) {
        let flags = flag::SPECIAL | if self.changed { flag::CHANGED } else { 0 };
        let words = SPECIAL_WORDS;
        out.put_slice(&Head { flags, words, stamp: self.stamp }.to_bytes());
        out.put_u32(0xffff);
        for field in [self.source.0, self.entity, self.nonce] {
            out.put_u64(field);
        }
        out.put_slice(&[self.usage_flags, 0]);
        out.put_u16(self.usage_code);
        out.put_u64(self.destination.0);
        out.put_u32(self.k_a_tov_ms);
        out.put_u32(0xffff);
    }
}

/// Link keep-alive (LKA, FC-BB and FC-LS): a request or its accept, between the fabric controllers
/// of both ends.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum KeepAlive {
    /// LKA.
    Request,
    /// LS_ACC.
    Accept,
}

impl KeepAlive {
    /// Returns the kind of a frame that belongs to the keep-alive of the link; `None` for all
    /// other frames. `frame` begins with the frame header.
    pub fn of(frame: &[u8]) -> Option<KeepAlive> {
        let b = frame.first_chunk::<{ FRAME_HEADER_BYTES + 1 }>()?;
        let controller = FcId::FABRIC_CONTROLLER.to_bytes();
        if b[1..4] != controller || b[5..8] != controller || b[8] != FcType::ELS.0 {
            return None;
        }
        match (RCtl(b[0]), b[FRAME_HEADER_BYTES]) {
            (RCtl::ELS_REQUEST, crate::els::command::LKA) => Some(KeepAlive::Request),
            (RCtl::ELS_REPLY, crate::els::command::LS_ACC) => Some(KeepAlive::Accept),
            _ => None,
        }
    }

    /// Returns the frame of a request or an accept with an exchange number.
    pub fn frame(self, ox_id: u16) -> Frame {
        let (r_ctl, f_ctl, command) = match self {
            KeepAlive::Request => (RCtl::ELS_REQUEST, FCtl::REQUEST, crate::els::command::LKA),
            KeepAlive::Accept => (RCtl::ELS_REPLY, FCtl::REPLY, crate::els::command::LS_ACC),
        };
        let header = Header {
            r_ctl,
            d_id: FcId::FABRIC_CONTROLLER,
            cs_ctl: 0,
            s_id: FcId::FABRIC_CONTROLLER,
            fc_type: FcType::ELS,
            f_ctl,
            seq_id: 0,
            df_ctl: 0,
            seq_cnt: 0,
            ox_id,
            rx_id: RX_ID_UNASSIGNED,
            parameter: 0,
        };
        Frame { header, payload: Payload::Bytes([command, 0, 0, 0].into()) }
    }
}
