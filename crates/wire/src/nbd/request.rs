//! Requests of a client to an export ("Request message").

use super::{Command, REQUEST_MAGIC, command_flag};
use crate::bytes::{fixed, u16_at, u32_at, u64_at};
use crate::error::ParseError;
use std::fmt;

/// Header of a request. [`data_bytes`](Self::data_bytes) of data follow a WRITE.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Request {
    /// Flags of [`command_flag`].
    pub flags: u16,
    /// Command to execute.
    pub command: Command,
    /// Identifier of the request, chosen by the client ("cookie", formerly "handle"). The reply
    /// repeats it.
    pub cookie: u64,
    /// Offset of the first byte in the export.
    pub offset_bytes: u64,
    /// Length of the range in the export, in bytes.
    pub len_bytes: u32,
}

impl Request {
    /// Length on the wire in bytes, without data.
    pub const BYTES: usize = 28;

    /// Reads 28 bytes.
    pub fn parse(bytes: &[u8]) -> Result<Request, ParseError> {
        let b = fixed::<{ Self::BYTES }>("NBD request", bytes)?;
        let magic = u32_at(b, 0);
        if magic != REQUEST_MAGIC {
            return Err(ParseError::Value { field: "NBD request", got: magic, rule: "its magic number" });
        }
        Ok(Request {
            flags: u16_at(b, 4),
            command: Command(u16_at(b, 6)),
            cookie: u64_at(b, 8),
            offset_bytes: u64_at(b, 16),
            len_bytes: u32_at(b, 24),
        })
    }

    /// The 28 bytes in wire order.
    pub fn to_bytes(&self) -> [u8; Self::BYTES] {
        let mut out = [0; Self::BYTES];
        out[..4].copy_from_slice(&REQUEST_MAGIC.to_be_bytes());
        out[4..6].copy_from_slice(&self.flags.to_be_bytes());
        out[6..8].copy_from_slice(&self.command.0.to_be_bytes());
        out[8..16].copy_from_slice(&self.cookie.to_be_bytes());
        out[16..24].copy_from_slice(&self.offset_bytes.to_be_bytes());
        out[24..].copy_from_slice(&self.len_bytes.to_be_bytes());
        out
    }

    /// Length of the data after the header, in bytes.
    pub fn data_bytes(&self) -> u32 {
        if self.command == Command::WRITE { self.len_bytes } else { 0 }
    }
}

impl fmt::Display for Request {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {} bytes at {}", self.command, self.len_bytes, self.offset_bytes)?;
        const NAMES: [(u16, &str); 5] = [
            (command_flag::FUA, "FUA"),
            (command_flag::NO_HOLE, "NO_HOLE"),
            (command_flag::DF, "DF"),
            (command_flag::REQ_ONE, "REQ_ONE"),
            (command_flag::FAST_ZERO, "FAST_ZERO"),
        ];
        for (_, name) in NAMES.iter().filter(|(flag, _)| self.flags & flag != 0) {
            write!(f, " {name}")?;
        }
        Ok(())
    }
}
