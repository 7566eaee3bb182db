//! The network block device protocol: a disk offered to programs over a stream socket.
//!
//! Source: the protocol document of the NBD project (`doc/proto.md`), sections named in each file. Fixed newstyle
//! negotiation: the server greets ([`Greeting`]), the client answers with four bytes of flags, then sends options
//! ([`ClientOption`]) that the server answers ([`OptionReply`]) until one of them names the export. After that come requests
//! ([`Request`]) and their replies ([`SimpleReply`], [`Chunk`]). The deprecated oldstyle negotiation, TLS and extended
//! headers have no value here; an option or command without a value survives as its number.

pub mod code;
mod option;
mod option_reply;
mod reply;
mod request;

pub use code::{ChunkType, Command, ErrorNumber, InfoType, OptionCode, ReplyType};
pub use option::{ClientOption, InfoRequest, MetaQuery, OptionHeader};
pub use option_reply::{BlockSizes, Info, OptionReply, OptionReplyBody};
pub use reply::{Chunk, ChunkBody, ChunkHeader, SimpleReply, StatusExtent};
pub use request::Request;

use crate::bytes::{Put, fixed, slice, u16_at, u64_at};
use crate::error::ParseError;

/// The first eight bytes of a server ("NBDMAGIC").
pub const INIT_MAGIC: u64 = 0x4e42_444d_4147_4943;
/// In front of every option, and behind [`INIT_MAGIC`] ("IHAVEOPT").
pub const OPTION_MAGIC: u64 = 0x4948_4156_454f_5054;
/// In front of every reply to an option.
pub const OPTION_REPLY_MAGIC: u64 = 0x0003_e889_0455_65a9;
/// In front of every request.
pub const REQUEST_MAGIC: u32 = 0x2560_9513;
/// In front of a simple reply.
pub const SIMPLE_REPLY_MAGIC: u32 = 0x6744_6698;
/// In front of a chunk of a structured reply.
pub const CHUNK_MAGIC: u32 = 0x668e_33ef;

/// Longest string that a peer has to accept (export names, queries, messages), in bytes.
pub const MAX_STRING_BYTES: usize = 4096;
/// Longest payload of a request or reply where nothing else was agreed, in bytes: 32 MiB.
pub const MAX_PAYLOAD_BYTES: u32 = 32 << 20;
/// Zeros behind the answer to [`OptionCode::EXPORT_NAME`], unless both sides said [`handshake::NO_ZEROES`].
pub const EXPORT_ZEROES_BYTES: usize = 124;
/// Name of the metadata context that tells holes and zeros.
pub const BASE_ALLOCATION: &str = "base:allocation";

/// Flags of the greeting, and in the same bits of the client's answer.
pub mod handshake {
    /// Fixed newstyle: options are answered.
    pub const FIXED_NEWSTYLE: u16 = 1 << 0;
    /// No zeros behind the answer to EXPORT_NAME.
    pub const NO_ZEROES: u16 = 1 << 1;
}

/// What an export can do ("transmission flags").
pub mod transmission {
    /// The other bits mean something.
    pub const HAS_FLAGS: u16 = 1 << 0;
    /// No request may write.
    pub const READ_ONLY: u16 = 1 << 1;
    /// FLUSH is answered.
    pub const SEND_FLUSH: u16 = 1 << 2;
    /// The flag FUA is obeyed.
    pub const SEND_FUA: u16 = 1 << 3;
    /// A disk that turns.
    pub const ROTATIONAL: u16 = 1 << 4;
    /// TRIM is answered.
    pub const SEND_TRIM: u16 = 1 << 5;
    /// WRITE_ZEROES is answered.
    pub const SEND_WRITE_ZEROES: u16 = 1 << 6;
    /// The flag DF is obeyed.
    pub const SEND_DF: u16 = 1 << 7;
    /// A flush on one connection holds for what was answered on all.
    pub const CAN_MULTI_CONN: u16 = 1 << 8;
    /// RESIZE is answered (never implemented widely).
    pub const SEND_RESIZE: u16 = 1 << 9;
    /// CACHE is answered.
    pub const SEND_CACHE: u16 = 1 << 10;
    /// The flag FAST_ZERO is obeyed.
    pub const SEND_FAST_ZERO: u16 = 1 << 11;
}

/// Flags of a request ("command flags").
pub mod command_flag {
    /// Durable before the reply.
    pub const FUA: u16 = 1 << 0;
    /// WRITE_ZEROES: the range stays allocated.
    pub const NO_HOLE: u16 = 1 << 1;
    /// READ: one content chunk only.
    pub const DF: u16 = 1 << 2;
    /// BLOCK_STATUS: one extent only.
    pub const REQ_ONE: u16 = 1 << 3;
    /// WRITE_ZEROES: fail rather than write zeros one by one.
    pub const FAST_ZERO: u16 = 1 << 4;
}

/// Flags of a chunk ("structured reply flags").
pub mod chunk_flag {
    /// The last chunk of the reply.
    pub const DONE: u16 = 1 << 0;
}

/// Status flags of [`BASE_ALLOCATION`].
pub mod allocation {
    /// Not allocated.
    pub const HOLE: u32 = 1 << 0;
    /// Reads as zeros.
    pub const ZERO: u32 = 1 << 1;
}

/// The server's first bytes.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Greeting {
    /// [`handshake`] flags.
    pub flags: u16,
}

impl Greeting {
    /// Bytes on the wire.
    pub const BYTES: usize = 18;

    /// Reads 18 bytes.
    pub fn parse(bytes: &[u8]) -> Result<Greeting, ParseError> {
        let b = fixed::<{ Self::BYTES }>("NBD greeting", bytes)?;
        magic("NBD greeting", u64_at(b, 0), INIT_MAGIC)?;
        magic("NBD newstyle greeting", u64_at(b, 8), OPTION_MAGIC)?;
        Ok(Greeting { flags: u16_at(b, 16) })
    }

    /// The 18 bytes of the wire.
    pub fn to_bytes(&self) -> [u8; Self::BYTES] {
        let mut out = [0; Self::BYTES];
        out[..8].copy_from_slice(&INIT_MAGIC.to_be_bytes());
        out[8..16].copy_from_slice(&OPTION_MAGIC.to_be_bytes());
        out[16..].copy_from_slice(&self.flags.to_be_bytes());
        out
    }
}

/// The answer to [`OptionCode::EXPORT_NAME`], which has no head: the export's size in bytes and its
/// [`transmission`] flags.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct ExportAnswer {
    /// In bytes.
    pub size_bytes: u64,
    /// [`transmission`] flags.
    pub flags: u16,
}

impl ExportAnswer {
    /// Bytes on the wire, without the zeros behind.
    pub const BYTES: usize = 10;

    /// Reads 10 bytes.
    pub fn parse(bytes: &[u8]) -> Result<ExportAnswer, ParseError> {
        let b = fixed::<{ Self::BYTES }>("NBD export answer", bytes)?;
        Ok(ExportAnswer { size_bytes: u64_at(b, 0), flags: u16_at(b, 8) })
    }

    /// Appends 10 bytes, and [`EXPORT_ZEROES_BYTES`] zeros if asked to.
    pub fn emit(&self, zeroes: bool, out: &mut Vec<u8>) {
        out.put_u64(self.size_bytes);
        out.put_u16(self.flags);
        if zeroes {
            out.put_zeros(EXPORT_ZEROES_BYTES);
        }
    }
}

/// A magic number of eight bytes; the error shows its low half.
fn magic(field: &'static str, got: u64, want: u64) -> Result<(), ParseError> {
    if got == want { Ok(()) } else { Err(ParseError::Value { field, got: got as u32, rule: "its magic number" }) }
}

/// A string of `len` bytes at `at`.
fn string(field: &'static str, data: &[u8], at: usize, len: usize) -> Result<Box<str>, ParseError> {
    if len > MAX_STRING_BYTES {
        return Err(ParseError::Length { field, got_bytes: len, rule: "at most 4096 bytes" });
    }
    let bytes = slice(field, data, at, len)?;
    let text = std::str::from_utf8(bytes).map_err(|error| ParseError::Value {
        field,
        got: bytes.get(error.valid_up_to()).copied().unwrap_or_default().into(),
        rule: "UTF-8",
    })?;
    Ok(text.into())
}

/// Bytes behind the end of a structure that is complete.
fn no_rest(field: &'static str, data: &[u8], end: usize) -> Result<(), ParseError> {
    if data.len() == end {
        Ok(())
    } else {
        Err(ParseError::Length { field, got_bytes: data.len(), rule: "as long as its parts together" })
    }
}
