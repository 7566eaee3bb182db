//! Replies to requests: simple replies and chunks of structured replies ("Simple reply message",
//! "Structured reply chunk message").

use super::{CHUNK_MAGIC, ChunkType, ErrorNumber, SIMPLE_REPLY_MAGIC, chunk_flag, no_rest, string};
use crate::bytes::{Put, fixed, len32, slice, u16_at, u32_at, u64_at};
use crate::error::ParseError;

/// A simple reply. The data follows it in the reply to a successful READ.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct SimpleReply {
    /// Result of the request.
    pub error: ErrorNumber,
    /// Identifier from the request.
    pub cookie: u64,
}

impl SimpleReply {
    /// Length on the wire in bytes, without data.
    pub const BYTES: usize = 16;

    /// Reads 16 bytes.
    pub fn parse(bytes: &[u8]) -> Result<SimpleReply, ParseError> {
        let b = fixed::<{ Self::BYTES }>("NBD reply", bytes)?;
        reply_magic("NBD reply", u32_at(b, 0), SIMPLE_REPLY_MAGIC)?;
        Ok(SimpleReply { error: ErrorNumber(u32_at(b, 4)), cookie: u64_at(b, 8) })
    }

    /// The 16 bytes in wire order.
    pub fn to_bytes(&self) -> [u8; Self::BYTES] {
        let mut out = [0; Self::BYTES];
        out[..4].copy_from_slice(&SIMPLE_REPLY_MAGIC.to_be_bytes());
        out[4..8].copy_from_slice(&self.error.0.to_be_bytes());
        out[8..].copy_from_slice(&self.cookie.to_be_bytes());
        out
    }
}

/// Header of a chunk.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct ChunkHeader {
    /// Flags of [`chunk_flag`].
    pub flags: u16,
    /// Type of the chunk.
    pub chunk: ChunkType,
    /// Identifier from the request.
    pub cookie: u64,
    /// Length of the payload after the header, in bytes.
    pub payload_bytes: u32,
}

impl ChunkHeader {
    /// Length on the wire, in bytes.
    pub const BYTES: usize = 20;
    /// Length of the offset before the data of [`ChunkType::OFFSET_DATA`], in bytes.
    pub const OFFSET_BYTES: usize = 8;

    /// Reads 20 bytes.
    pub fn parse(bytes: &[u8]) -> Result<ChunkHeader, ParseError> {
        let b = fixed::<{ Self::BYTES }>("NBD chunk", bytes)?;
        reply_magic("NBD chunk", u32_at(b, 0), CHUNK_MAGIC)?;
        Ok(ChunkHeader {
            flags: u16_at(b, 4),
            chunk: ChunkType(u16_at(b, 6)),
            cookie: u64_at(b, 8),
            payload_bytes: u32_at(b, 16),
        })
    }

    /// The 20 bytes in wire order.
    pub fn to_bytes(&self) -> [u8; Self::BYTES] {
        let mut out = [0; Self::BYTES];
        out[..4].copy_from_slice(&CHUNK_MAGIC.to_be_bytes());
        out[4..6].copy_from_slice(&self.flags.to_be_bytes());
        out[6..8].copy_from_slice(&self.chunk.0.to_be_bytes());
        out[8..16].copy_from_slice(&self.cookie.to_be_bytes());
        out[16..].copy_from_slice(&self.payload_bytes.to_be_bytes());
        out
    }

    /// Header and offset of the only chunk of a READ reply. The caller sends `len_bytes` of data
    /// after it.
    pub fn offset_data(cookie: u64, offset_bytes: u64, len_bytes: u32) -> [u8; Self::BYTES + Self::OFFSET_BYTES] {
        let header = ChunkHeader {
            flags: chunk_flag::DONE,
            chunk: ChunkType::OFFSET_DATA,
            cookie,
            payload_bytes: len_bytes.saturating_add(len32(Self::OFFSET_BYTES)),
        };
        let mut out = [0; Self::BYTES + Self::OFFSET_BYTES];
        out[..Self::BYTES].copy_from_slice(&header.to_bytes());
        out[Self::BYTES..].copy_from_slice(&offset_bytes.to_be_bytes());
        out
    }
}

/// A chunk of a structured reply.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct Chunk {
    /// Flags of [`chunk_flag`].
    pub flags: u16,
    /// Identifier from the request.
    pub cookie: u64,
    /// Content of the chunk.
    pub body: ChunkBody,
}

/// Content of a chunk, by its type.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub enum ChunkBody {
    /// No content.
    None,
    /// Data of a READ.
    OffsetData {
        /// Offset of the first byte in the export.
        offset_bytes: u64,
        /// The data, at least one byte.
        data: Box<[u8]>,
    },
    /// Zeros of a READ.
    OffsetHole {
        /// Offset of the first byte in the export.
        offset_bytes: u64,
        /// Number of zero bytes.
        len_bytes: u32,
    },
    /// Consecutive extents in reply to a BLOCK_STATUS.
    BlockStatus {
        /// Identifier of the metadata context.
        context: u32,
        /// Extents, at least one.
        extents: Vec<StatusExtent>,
    },
    /// The request failed.
    Error {
        /// Error code.
        error: ErrorNumber,
        /// Message for users; may be empty.
        message: Box<str>,
    },
    /// The request failed at a known offset.
    ErrorOffset {
        /// Error code.
        error: ErrorNumber,
        /// Message for users; may be empty.
        message: Box<str>,
        /// Offset of the failing byte in the export.
        offset_bytes: u64,
    },
    /// A chunk of an unsupported type.
    Other {
        /// Type of the chunk.
        chunk: ChunkType,
        /// Payload of the chunk.
        payload: Box<[u8]>,
    },
}

/// One extent of a BLOCK_STATUS.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct StatusExtent {
    /// Length in bytes; not zero.
    pub len_bytes: u32,
    /// Status in the metadata context; for "base:allocation", flags of [`super::allocation`].
    pub flags: u32,
}

/// Length of an extent on the wire, in bytes.
const EXTENT_BYTES: usize = 8;
/// Length of error code and message length, in bytes.
const ERROR_HEAD_BYTES: usize = 6;

impl Chunk {
    /// Reads a whole chunk and returns it with its length. [`ParseError::Truncated`] contains the
    /// required length.
    pub fn parse(bytes: &[u8]) -> Result<(Chunk, usize), ParseError> {
        let header = ChunkHeader::parse(bytes)?;
        let payload = slice("NBD chunk payload", bytes, ChunkHeader::BYTES, header.payload_bytes as usize)?;
        let body = ChunkBody::parse(header.chunk, payload)?;
        Ok((Chunk { flags: header.flags, cookie: header.cookie, body }, ChunkHeader::BYTES + payload.len()))
    }

    /// Appends header and payload.
    pub fn emit(&self, out: &mut Vec<u8>) {
        let start = out.len();
        let header = ChunkHeader { flags: self.flags, chunk: self.body.code(), cookie: self.cookie, payload_bytes: 0 };
        out.extend_from_slice(&header.to_bytes());
        self.body.emit(out);
        let payload_bytes = len32(out.len() - start - ChunkHeader::BYTES);
        out[start + 16..start + 20].copy_from_slice(&payload_bytes.to_be_bytes());
    }
}

impl ChunkBody {
    fn parse(chunk: ChunkType, payload: &[u8]) -> Result<ChunkBody, ParseError> {
        Ok(match chunk {
            ChunkType::NONE if payload.is_empty() => ChunkBody::None,
            ChunkType::OFFSET_DATA => {
                let b = fixed::<{ ChunkHeader::OFFSET_BYTES + 1 }>("NBD offset data", payload)?;
                ChunkBody::OffsetData { offset_bytes: u64_at(b, 0), data: payload[ChunkHeader::OFFSET_BYTES..].into() }
            }
            ChunkType::OFFSET_HOLE => {
                let b = fixed::<12>("NBD offset hole", payload)?;
                no_rest("NBD offset hole", payload, b.len())?;
                ChunkBody::OffsetHole { offset_bytes: u64_at(b, 0), len_bytes: u32_at(b, 8) }
            }
            ChunkType::BLOCK_STATUS => {
                let b = fixed::<{ 4 + EXTENT_BYTES }>("NBD block status", payload)?;
                let extents = payload[4..].chunks_exact(EXTENT_BYTES);
                if !extents.remainder().is_empty() {
                    return Err(ParseError::Length {
                        field: "NBD block status",
                        got_bytes: payload.len(),
                        rule: "4 bytes and a whole number of extents of 8",
                    });
                }
                let extents = extents.map(|b| StatusExtent { len_bytes: u32_at(b, 0), flags: u32_at(b, 4) }).collect();
                ChunkBody::BlockStatus { context: u32_at(b, 0), extents }
            }
            ChunkType::ERROR => {
                let (error, message, end) = parse_error(payload)?;
                no_rest("NBD error", payload, end)?;
                ChunkBody::Error { error, message }
            }
            ChunkType::ERROR_OFFSET => {
                let (error, message, end) = parse_error(payload)?;
                let offset_bytes = u64_at(slice("NBD error offset", payload, end, 8)?, 0);
                no_rest("NBD error offset", payload, end + 8)?;
                ChunkBody::ErrorOffset { error, message, offset_bytes }
            }
            _ => ChunkBody::Other { chunk, payload: payload.into() },
        })
    }

    fn emit(&self, out: &mut Vec<u8>) {
        match self {
            ChunkBody::None => {}
            ChunkBody::OffsetData { offset_bytes, data } => {
                out.put_u64(*offset_bytes);
                out.extend_from_slice(data);
            }
            ChunkBody::OffsetHole { offset_bytes, len_bytes } => {
                out.put_u64(*offset_bytes);
                out.put_u32(*len_bytes);
            }
            ChunkBody::BlockStatus { context, extents } => {
                out.put_u32(*context);
                for extent in extents {
                    out.put_u32(extent.len_bytes);
                    out.put_u32(extent.flags);
                }
            }
            ChunkBody::Error { error, message } => emit_error(*error, message, out),
            ChunkBody::ErrorOffset { error, message, offset_bytes } => {
                emit_error(*error, message, out);
                out.put_u64(*offset_bytes);
            }
            ChunkBody::Other { payload, .. } => out.extend_from_slice(payload),
        }
    }

    const fn code(&self) -> ChunkType {
        match self {
            ChunkBody::None => ChunkType::NONE,
            ChunkBody::OffsetData { .. } => ChunkType::OFFSET_DATA,
            ChunkBody::OffsetHole { .. } => ChunkType::OFFSET_HOLE,
            ChunkBody::BlockStatus { .. } => ChunkType::BLOCK_STATUS,
            ChunkBody::Error { .. } => ChunkType::ERROR,
            ChunkBody::ErrorOffset { .. } => ChunkType::ERROR_OFFSET,
            ChunkBody::Other { chunk, .. } => *chunk,
        }
    }
}

/// Reads error code and message. Also returns the offset of the message's end.
fn parse_error(payload: &[u8]) -> Result<(ErrorNumber, Box<str>, usize), ParseError> {
    let b = fixed::<ERROR_HEAD_BYTES>("NBD error", payload)?;
    let len = usize::from(u16_at(b, 4));
    let message = string("NBD error message", payload, ERROR_HEAD_BYTES, len)?;
    Ok((ErrorNumber(u32_at(b, 0)), message, ERROR_HEAD_BYTES + len))
}

/// Appends error code and message. A message that exceeds the 16-bit length is left out.
fn emit_error(error: ErrorNumber, message: &str, out: &mut Vec<u8>) {
    let message = if message.len() > usize::from(u16::MAX) { "" } else { message };
    out.put_u32(error.0);
    out.put_len16(message.len());
    out.extend_from_slice(message.as_bytes());
}

fn reply_magic(field: &'static str, got: u32, want: u32) -> Result<(), ParseError> {
    if got == want { Ok(()) } else { Err(ParseError::Value { field, got, rule: "its magic number" }) }
}
