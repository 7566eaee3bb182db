//! Replies to options ("Option reply types").

use super::{InfoType, OPTION_REPLY_MAGIC, OptionCode, ReplyType, magic, no_rest, string};
use crate::bytes::{Put, fixed, len32, slice, u16_at, u32_at, u64_at};
use crate::error::ParseError;

/// A reply to an option. Some options have several replies; the last one is ACK or an error.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct OptionReply {
    /// Code of the option.
    pub option: OptionCode,
    /// Content of the reply.
    pub body: OptionReplyBody,
}

/// Content of a reply, by its type.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub enum OptionReplyBody {
    /// The option succeeded; no further reply follows.
    Ack,
    /// An export in the list of the server.
    Server {
        /// Name of the export.
        name: Box<str>,
        /// Description for users.
        description: Box<str>,
    },
    /// Information about an export.
    Info(Info),
    /// A metadata context.
    MetaContext {
        /// Identifier of the context in [`super::ChunkBody::BlockStatus`].
        id: u32,
        /// Name of the context.
        name: Box<str>,
    },
    /// The option failed.
    Error {
        /// Kind of error.
        code: ReplyType,
        /// Message for users; may be empty.
        message: Box<str>,
    },
    /// A reply of an unsupported type.
    Other {
        /// Type of the reply.
        reply: ReplyType,
        /// Data of the reply.
        data: Box<[u8]>,
    },
}

/// Information about an export.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub enum Info {
    /// Size and capabilities.
    Export {
        /// Size in bytes.
        size_bytes: u64,
        /// Flags of [`super::transmission`].
        flags: u16,
    },
    /// Name of the export.
    Name(Box<str>),
    /// Description for users.
    Description(Box<str>),
    /// Block size constraints for requests.
    BlockSize(BlockSizes),
    /// Information of an unsupported type.
    Other {
        /// Type of the information.
        info: InfoType,
        /// Data of the information.
        data: Box<[u8]>,
    },
}

/// Block size constraints of an export, in bytes.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct BlockSizes {
    /// Offset and length of every request must be multiples of this size; a power of two, at most
    /// 64 KiB.
    pub minimum: u32,
    /// Requests of this size are efficient; a power of two.
    pub preferred: u32,
    /// Longest payload of a request or reply; a multiple of `minimum`.
    pub maximum: u32,
}

impl OptionReply {
    /// Length of the part before the data, in bytes.
    pub const HEAD_BYTES: usize = 20;

    /// Reads a whole reply and returns it with its length. [`ParseError::Truncated`] contains the
    /// required length.
    pub fn parse(bytes: &[u8]) -> Result<(OptionReply, usize), ParseError> {
        let b = fixed::<{ Self::HEAD_BYTES }>("NBD option reply", bytes)?;
        magic("NBD option reply", u64_at(b, 0), OPTION_REPLY_MAGIC)?;
        let option = OptionCode(u32_at(b, 8));
        let data = slice("NBD option reply data", bytes, Self::HEAD_BYTES, u32_at(b, 16) as usize)?;
        let body = OptionReplyBody::parse(ReplyType(u32_at(b, 12)), data)?;
        Ok((OptionReply { option, body }, Self::HEAD_BYTES + data.len()))
    }

    /// Appends header and data.
    pub fn emit(&self, out: &mut Vec<u8>) {
        let start = out.len();
        out.put_u64(OPTION_REPLY_MAGIC);
        out.put_u32(self.option.0);
        out.put_u32(self.body.code().0);
        out.put_u32(0);
        self.body.emit(out);
        let data_bytes = len32(out.len() - start - Self::HEAD_BYTES);
        out[start + 16..start + 20].copy_from_slice(&data_bytes.to_be_bytes());
    }
}

impl OptionReplyBody {
    fn parse(reply: ReplyType, data: &[u8]) -> Result<OptionReplyBody, ParseError> {
        Ok(match reply {
            ReplyType::ACK if data.is_empty() => OptionReplyBody::Ack,
            ReplyType::SERVER => {
                let name_bytes = u32_at(fixed::<4>("NBD export name", data)?, 0) as usize;
                let name = string("NBD export name", data, 4, name_bytes)?;
                let at = 4 + name_bytes;
                OptionReplyBody::Server { name, description: string("NBD description", data, at, data.len() - at)? }
            }
            ReplyType::INFO => OptionReplyBody::Info(Info::parse(data)?),
            ReplyType::META_CONTEXT => {
                let id = u32_at(fixed::<4>("NBD metadata context", data)?, 0);
                OptionReplyBody::MetaContext { id, name: string("NBD metadata context", data, 4, data.len() - 4)? }
            }
            code if code.is_error() => {
                OptionReplyBody::Error { code, message: string("NBD error message", data, 0, data.len())? }
            }
            _ => OptionReplyBody::Other { reply, data: data.into() },
        })
    }

    fn emit(&self, out: &mut Vec<u8>) {
        match self {
            OptionReplyBody::Ack => {}
            OptionReplyBody::Server { name, description } => {
                out.put_len32(name.len());
                out.extend_from_slice(name.as_bytes());
                out.extend_from_slice(description.as_bytes());
            }
            OptionReplyBody::Info(info) => info.emit(out),
            OptionReplyBody::MetaContext { id, name } => {
                out.put_u32(*id);
                out.extend_from_slice(name.as_bytes());
            }
            OptionReplyBody::Error { message, .. } => out.extend_from_slice(message.as_bytes()),
            OptionReplyBody::Other { data, .. } => out.extend_from_slice(data),
        }
    }

    const fn code(&self) -> ReplyType {
        match self {
            OptionReplyBody::Ack => ReplyType::ACK,
            OptionReplyBody::Server { .. } => ReplyType::SERVER,
            OptionReplyBody::Info(_) => ReplyType::INFO,
            OptionReplyBody::MetaContext { .. } => ReplyType::META_CONTEXT,
            OptionReplyBody::Error { code, .. } => *code,
            OptionReplyBody::Other { reply, .. } => *reply,
        }
    }
}

impl Info {
    fn parse(data: &[u8]) -> Result<Info, ParseError> {
        let info = InfoType(u16_at(fixed::<2>("NBD information", data)?, 0));
        Ok(match info {
            InfoType::EXPORT => {
                let b = fixed::<12>("NBD export information", data)?;
                no_rest("NBD export information", data, b.len())?;
                Info::Export { size_bytes: u64_at(b, 2), flags: u16_at(b, 10) }
            }
            InfoType::NAME => Info::Name(string("NBD export name", data, 2, data.len() - 2)?),
            InfoType::DESCRIPTION => Info::Description(string("NBD description", data, 2, data.len() - 2)?),
            InfoType::BLOCK_SIZE => {
                let b = fixed::<14>("NBD block sizes", data)?;
                no_rest("NBD block sizes", data, b.len())?;
                Info::BlockSize(BlockSizes { minimum: u32_at(b, 2), preferred: u32_at(b, 6), maximum: u32_at(b, 10) })
            }
            _ => Info::Other { info, data: data[2..].into() },
        })
    }

    fn emit(&self, out: &mut Vec<u8>) {
        out.put_u16(self.code().0);
        match self {
            Info::Export { size_bytes, flags } => {
                out.put_u64(*size_bytes);
                out.put_u16(*flags);
            }
            Info::Name(text) | Info::Description(text) => out.extend_from_slice(text.as_bytes()),
            Info::BlockSize(sizes) => {
                out.put_u32(sizes.minimum);
                out.put_u32(sizes.preferred);
                out.put_u32(sizes.maximum);
            }
            Info::Other { data, .. } => out.extend_from_slice(data),
        }
    }

    const fn code(&self) -> InfoType {
        match self {
            Info::Export { .. } => InfoType::EXPORT,
            Info::Name(_) => InfoType::NAME,
            Info::Description(_) => InfoType::DESCRIPTION,
            Info::BlockSize(_) => InfoType::BLOCK_SIZE,
            Info::Other { info, .. } => *info,
        }
    }
}
