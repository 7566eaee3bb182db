//! The network block device protocol: access to a disk over a stream socket.
//!
//! Source: the protocol document of the NBD project (`doc/proto.md`), sections named in each file.
//! Fixed newstyle negotiation has these steps:
//!
//! - The server sends a [`Greeting`], and the client replies with four bytes of flags.
//! - The client sends options ([`ClientOption`]) and the server replies ([`OptionReply`]), until an
//!   option selects an export.
//! - The client sends requests ([`Request`]) and the server replies ([`SimpleReply`], [`Chunk`]).
//!
//! The deprecated oldstyle negotiation, TLS and extended headers are not supported. Unknown options
//! and commands keep their number.

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

/// First eight bytes that a server sends ("NBDMAGIC").
pub const INIT_MAGIC: u64 = 0x4e42_444d_4147_4943;
/// Magic number before every option, and after [`INIT_MAGIC`] ("IHAVEOPT").
pub const OPTION_MAGIC: u64 = 0x4948_4156_454f_5054;
/// Magic number before every reply to an option.
pub const OPTION_REPLY_MAGIC: u64 = 0x0003_e889_0455_65a9;
/// Magic number before every request.
pub const REQUEST_MAGIC: u32 = 0x2560_9513;
/// Magic number before a simple reply.
pub const SIMPLE_REPLY_MAGIC: u32 = 0x6744_6698;
/// Magic number before a chunk of a structured reply.
pub const CHUNK_MAGIC: u32 = 0x668e_33ef;

/// Longest string that a peer must accept (export names, queries, messages), in bytes.
pub const MAX_STRING_BYTES: usize = 4096;
/// Longest payload of a request or reply in bytes, unless another limit was agreed: 32 MiB.
pub const MAX_PAYLOAD_BYTES: u32 = 32 << 20;
/// Number of zeros after the reply to [`OptionCode::EXPORT_NAME`], unless both sides set
/// [`handshake::NO_ZEROES`].
pub const EXPORT_ZEROES_BYTES: usize = 124;
/// Name of the metadata context that reports holes and zeros.
pub const BASE_ALLOCATION: &str = "base:allocation";

/// Flags of the greeting. The client's flags use the same bits.
pub mod handshake {
    /// Fixed newstyle: the server replies to every option.
    pub const FIXED_NEWSTYLE: u16 = 1 << 0;
    /// No zeros after the reply to EXPORT_NAME.
    pub const NO_ZEROES: u16 = 1 << 1;
}

/// Capabilities of an export ("transmission flags").
pub mod transmission {
    /// The other bits are valid.
    pub const HAS_FLAGS: u16 = 1 << 0;
    /// The export is read-only.
    pub const READ_ONLY: u16 = 1 << 1;
    /// FLUSH is supported.
    pub const SEND_FLUSH: u16 = 1 << 2;
    /// The command flag FUA is supported.
    pub const SEND_FUA: u16 = 1 << 3;
    /// The disk rotates.
    pub const ROTATIONAL: u16 = 1 << 4;
    /// TRIM is supported.
    pub const SEND_TRIM: u16 = 1 << 5;
    /// WRITE_ZEROES is supported.
    pub const SEND_WRITE_ZEROES: u16 = 1 << 6;
    /// The command flag DF is supported.
    pub const SEND_DF: u16 = 1 << 7;
    /// A flush on one connection covers the completed writes of all connections.
    pub const CAN_MULTI_CONN: u16 = 1 << 8;
    /// RESIZE is supported (never implemented widely).
    pub const SEND_RESIZE: u16 = 1 << 9;
    /// CACHE is supported.
    pub const SEND_CACHE: u16 = 1 << 10;
    /// The command flag FAST_ZERO is supported.
    pub const SEND_FAST_ZERO: u16 = 1 << 11;
}

/// Flags of a request ("command flags").
pub mod command_flag {
    /// The data is durable before the reply is sent.
    pub const FUA: u16 = 1 << 0;
    /// WRITE_ZEROES: the range stays allocated.
    pub const NO_HOLE: u16 = 1 << 1;
    /// READ: the reply has a single content chunk.
    pub const DF: u16 = 1 << 2;
    /// BLOCK_STATUS: the reply has a single extent.
    pub const REQ_ONE: u16 = 1 << 3;
    /// WRITE_ZEROES: fail if the device would have to write zeros as data.
    pub const FAST_ZERO: u16 = 1 << 4;
}

/// Flags of a chunk ("structured reply flags").
pub mod chunk_flag {
    /// The last chunk of the reply.
    pub const DONE: u16 = 1 << 0;
}

/// Status flags of [`BASE_ALLOCATION`].
pub mod allocation {
    /// The range is not allocated.
    pub const HOLE: u32 = 1 << 0;
    /// The range reads as zeros.
    pub const ZERO: u32 = 1 << 1;
}

/// The first message of a server.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Greeting {
    /// Flags of [`handshake`].
    pub flags: u16,
}

impl Greeting {
    /// Length on the wire, in bytes.
    pub const BYTES: usize = 18;

    /// Reads 18 bytes.
    pub fn parse(bytes: &[u8]) -> Result<Greeting, ParseError> {
        let b = fixed::<{ Self::BYTES }>("NBD greeting", bytes)?;
        magic("NBD greeting", u64_at(b, 0), INIT_MAGIC)?;
        magic("NBD newstyle greeting", u64_at(b, 8), OPTION_MAGIC)?;
        Ok(Greeting { flags: u16_at(b, 16) })
    }

    /// The 18 bytes in wire order.
    pub fn to_bytes(&self) -> [u8; Self::BYTES] {
        let mut out = [0; Self::BYTES];
        out[..8].copy_from_slice(&INIT_MAGIC.to_be_bytes());
        out[8..16].copy_from_slice(&OPTION_MAGIC.to_be_bytes());
        out[16..].copy_from_slice(&self.flags.to_be_bytes());
        out
    }
}

/// Reply to [`OptionCode::EXPORT_NAME`], which has no header: size of the export in bytes and its
/// [`transmission`] flags.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct ExportAnswer {
    /// Size of the export, in bytes.
    pub size_bytes: u64,
    /// Flags of [`transmission`].
    pub flags: u16,
}

impl ExportAnswer {
    /// Length on the wire, in bytes, without the zeros after it.
    pub const BYTES: usize = 10;

    /// Reads 10 bytes.
    pub fn parse(bytes: &[u8]) -> Result<ExportAnswer, ParseError> {
        let b = fixed::<{ Self::BYTES }>("NBD export answer", bytes)?;
        Ok(ExportAnswer { size_bytes: u64_at(b, 0), flags: u16_at(b, 8) })
    }

    /// Appends 10 bytes, and [`EXPORT_ZEROES_BYTES`] zeros if `zeroes` is set.
    pub fn emit(&self, zeroes: bool, out: &mut Vec<u8>) {
        out.put_u64(self.size_bytes);
        out.put_u16(self.flags);
        if zeroes {
            out.put_zeros(EXPORT_ZEROES_BYTES);
        }
    }
}

/// Checks a magic number of eight bytes. The error contains its low half.
fn magic(field: &'static str, got: u64, want: u64) -> Result<(), ParseError> {
    if got == want {
        Ok(())
    } else {
        Err(ParseError::Value { field, got: (got & 0xffff_ffff) as u32, rule: "its magic number" })
    }
}

/// Reads a string of `len` bytes at offset `at`.
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

/// Returns an error if bytes remain after the end of a complete structure.
fn no_rest(field: &'static str, data: &[u8], end: usize) -> Result<(), ParseError> {
    if data.len() == end {
        Ok(())
    } else {
        Err(ParseError::Length { field, got_bytes: data.len(), rule: "the sum of the lengths of its parts" })
    }
}
