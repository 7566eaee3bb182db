//! Replies to requests: simple ones, and chunks of structured ones ("Simple reply message", "Structured reply chunk
//! message").

use super::{CHUNK_MAGIC, ChunkType, ErrorNumber, SIMPLE_REPLY_MAGIC, chunk_flag, no_rest, string};
use crate::bytes::{Put, fixed, slice, u16_at, u32_at, u64_at};
use crate::error::ParseError;

/// A simple reply. Behind one to a READ without error come the data.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct SimpleReply {
    /// How the request ended.
    pub error: ErrorNumber,
    /// The request's own number.
    pub cookie: u64,
}

impl SimpleReply {
    /// Bytes on the wire, without data.
    pub const BYTES: usize = 16;

    /// Reads 16 bytes.
    pub fn parse(bytes: &[u8]) -> Result<SimpleReply, ParseError> {
        let b = fixed::<{ Self::BYTES }>("NBD reply", bytes)?;
        reply_magic("NBD reply", u32_at(b, 0), SIMPLE_REPLY_MAGIC)?;
        Ok(SimpleReply { error: ErrorNumber(u32_at(b, 4)), cookie: u64_at(b, 8) })
    }

    /// The 16 bytes of the wire.
    pub fn to_bytes(&self) -> [u8; Self::BYTES] {
        let mut out = [0; Self::BYTES];
        out[..4].copy_from_slice(&SIMPLE_REPLY_MAGIC.to_be_bytes());
        out[4..8].copy_from_slice(&self.error.0.to_be_bytes());
        out[8..].copy_from_slice(&self.cookie.to_be_bytes());
        out
    }
}

/// The head of a chunk.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct ChunkHeader {
    /// [`chunk_flag`]s.
    pub flags: u16,
    /// What the chunk holds.
    pub chunk: ChunkType,
    /// The request's own number.
    pub cookie: u64,
    /// Bytes that follow.
    pub payload_bytes: u32,
}

impl ChunkHeader {
    /// Bytes on the wire.
    pub const BYTES: usize = 20;
    /// Bytes of the offset in front of the data of [`ChunkType::OFFSET_DATA`].
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

    /// The 20 bytes of the wire.
    pub fn to_bytes(&self) -> [u8; Self::BYTES] {
        let mut out = [0; Self::BYTES];
        out[..4].copy_from_slice(&CHUNK_MAGIC.to_be_bytes());
        out[4..6].copy_from_slice(&self.flags.to_be_bytes());
        out[6..8].copy_from_slice(&self.chunk.0.to_be_bytes());
        out[8..16].copy_from_slice(&self.cookie.to_be_bytes());
        out[16..].copy_from_slice(&self.payload_bytes.to_be_bytes());
        out
    }

    /// Head and offset of the one and last chunk of a READ; `len_bytes` of data follow.
    pub fn offset_data(cookie: u64, offset_bytes: u64, len_bytes: u32) -> [u8; Self::BYTES + Self::OFFSET_BYTES] {
        let header = ChunkHeader {
            flags: chunk_flag::DONE,
            chunk: ChunkType::OFFSET_DATA,
            cookie,
            payload_bytes: len_bytes.saturating_add(Self::OFFSET_BYTES as u32),
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
    /// [`chunk_flag`]s.
    pub flags: u16,
    /// The request's own number.
    pub cookie: u64,
    /// What it holds.
    pub body: ChunkBody,
}

/// What a chunk holds.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub enum ChunkBody {
    /// Nothing more.
    None,
    /// Data of a READ.
    OffsetData {
        /// First byte of the export.
        offset_bytes: u64,
        /// At least one byte.
        data: Box<[u8]>,
    },
    /// Zeros of a READ.
    OffsetHole {
        /// First byte of the export.
        offset_bytes: u64,
        /// How many.
        len_bytes: u32,
    },
    /// Extents of a BLOCK_STATUS, one after the other.
    BlockStatus {
        /// Number of the metadata context.
        context: u32,
        /// At least one.
        extents: Vec<StatusExtent>,
    },
    /// The request failed.
    Error {
        /// Why.
        error: ErrorNumber,
        /// For people; may be empty.
        message: Box<str>,
    },
    /// The request failed at a place.
    ErrorOffset {
        /// Why.
        error: ErrorNumber,
        /// For people; may be empty.
        message: Box<str>,
        /// Which byte of the export.
        offset_bytes: u64,
    },
    /// One that has no value here.
    Other {
        /// Its number.
        chunk: ChunkType,
        /// Its payload.
        payload: Box<[u8]>,
    },
}

/// One extent of a BLOCK_STATUS.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct StatusExtent {
    /// In bytes, not zero.
    pub len_bytes: u32,
    /// What the context says of it, as [`super::allocation`].
    pub flags: u32,
}

/// Bytes of an extent.
const EXTENT_BYTES: usize = 8;
/// Bytes of error number and message length.
const ERROR_HEAD_BYTES: usize = 6;

impl Chunk {
    /// Reads a whole chunk, and says how many bytes it had. [`ParseError::Truncated`] says how many it needs.
    pub fn parse(bytes: &[u8]) -> Result<(Chunk, usize), ParseError> {
        let header = ChunkHeader::parse(bytes)?;
        let payload = slice("NBD chunk payload", bytes, ChunkHeader::BYTES, header.payload_bytes as usize)?;
        let body = ChunkBody::parse(header.chunk, payload)?;
        Ok((Chunk { flags: header.flags, cookie: header.cookie, body }, ChunkHeader::BYTES + payload.len()))
    }

    /// Appends head and payload.
    pub fn emit(&self, out: &mut Vec<u8>) {
        let start = out.len();
        let header = ChunkHeader { flags: self.flags, chunk: self.body.code(), cookie: self.cookie, payload_bytes: 0 };
        out.extend_from_slice(&header.to_bytes());
        self.body.emit(out);
        let payload_bytes = (out.len() - start - ChunkHeader::BYTES) as u32;
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

/// Error number, message, and where the message ends.
fn parse_error(payload: &[u8]) -> Result<(ErrorNumber, Box<str>, usize), ParseError> {
    let b = fixed::<ERROR_HEAD_BYTES>("NBD error", payload)?;
    let len = usize::from(u16_at(b, 4));
    let message = string("NBD error message", payload, ERROR_HEAD_BYTES, len)?;
    Ok((ErrorNumber(u32_at(b, 0)), message, ERROR_HEAD_BYTES + len))
}

/// A message that two bytes cannot count is left out.
fn emit_error(error: ErrorNumber, message: &str, out: &mut Vec<u8>) {
    let message = if message.len() > usize::from(u16::MAX) { "" } else { message };
    out.put_u32(error.0);
    out.put_u16(message.len() as u16);
    out.extend_from_slice(message.as_bytes());
}

fn reply_magic(field: &'static str, got: u32, want: u32) -> Result<(), ParseError> {
    if got == want { Ok(()) } else { Err(ParseError::Value { field, got, rule: "its magic number" }) }
}
