//! Options: messages of a client before it uses an export ("Option types").

use super::{OPTION_MAGIC, OptionCode, magic, no_rest, string};
use crate::bytes::{Put, Reader, fixed, len32, slice, u16_at, u32_at, u64_at};
use crate::error::ParseError;
use crate::nbd::InfoType;

/// Header of every option.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct OptionHeader {
    /// Code of the option.
    pub option: OptionCode,
    /// Length of the data after the header, in bytes.
    pub data_bytes: u32,
}

/// An option with its data.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub enum ClientOption {
    /// Selects an export. The reply is [`super::ExportAnswer`], or the server closes the
    /// connection.
    ExportName(Box<str>),
    /// Ends the negotiation without an export.
    Abort,
    /// Requests the list of exports.
    List,
    /// Requests information about an export.
    Info(InfoRequest),
    /// Requests information about an export and selects it.
    Go(InfoRequest),
    /// Requests structured replies from now on.
    StructuredReply,
    /// Requests the list of available metadata contexts.
    ListMetaContext(MetaQuery),
    /// Selects metadata contexts.
    SetMetaContext(MetaQuery),
    /// An unsupported option, or one whose data must be empty but is not.
    Other {
        /// Code of the option.
        option: OptionCode,
        /// Data of the option.
        data: Box<[u8]>,
    },
}

/// Data of INFO and GO.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct InfoRequest {
    /// Name of the export; empty for the server's default.
    pub export: Box<str>,
    /// Information that the client requests in addition to [`InfoType::EXPORT`].
    pub wanted: Vec<InfoType>,
}

/// Data of LIST_META_CONTEXT and SET_META_CONTEXT.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct MetaQuery {
    /// Name of the export; empty for the server's default.
    pub export: Box<str>,
    /// Names of contexts, or prefixes that end with a colon.
    pub queries: Vec<Box<str>>,
}

impl OptionHeader {
    /// Length on the wire, in bytes.
    pub const BYTES: usize = 16;

    /// Reads 16 bytes.
    pub fn parse(bytes: &[u8]) -> Result<OptionHeader, ParseError> {
        let b = fixed::<{ Self::BYTES }>("NBD option", bytes)?;
        magic("NBD option", u64_at(b, 0), OPTION_MAGIC)?;
        Ok(OptionHeader { option: OptionCode(u32_at(b, 8)), data_bytes: u32_at(b, 12) })
    }

    /// Appends 16 bytes.
    pub fn emit(&self, out: &mut Vec<u8>) {
        out.put_u64(OPTION_MAGIC);
        out.put_u32(self.option.0);
        out.put_u32(self.data_bytes);
    }
}

impl ClientOption {
    /// Reads the data after an [`OptionHeader`].
    pub fn parse(option: OptionCode, data: &[u8]) -> Result<ClientOption, ParseError> {
        Ok(match option {
            OptionCode::EXPORT_NAME => ClientOption::ExportName(string("NBD export name", data, 0, data.len())?),
            OptionCode::ABORT if data.is_empty() => ClientOption::Abort,
            OptionCode::LIST if data.is_empty() => ClientOption::List,
            OptionCode::INFO => ClientOption::Info(InfoRequest::parse(data)?),
            OptionCode::GO => ClientOption::Go(InfoRequest::parse(data)?),
            OptionCode::STRUCTURED_REPLY if data.is_empty() => ClientOption::StructuredReply,
            OptionCode::LIST_META_CONTEXT => ClientOption::ListMetaContext(MetaQuery::parse(data)?),
            OptionCode::SET_META_CONTEXT => ClientOption::SetMetaContext(MetaQuery::parse(data)?),
            _ => ClientOption::Other { option, data: data.into() },
        })
    }

    /// Appends header and data.
    pub fn emit(&self, out: &mut Vec<u8>) {
        let start = out.len();
        OptionHeader { option: self.code(), data_bytes: 0 }.emit(out);
        match self {
            ClientOption::ExportName(name) => out.extend_from_slice(name.as_bytes()),
            ClientOption::Abort | ClientOption::List | ClientOption::StructuredReply => {}
            ClientOption::Info(request) | ClientOption::Go(request) => request.emit(out),
            ClientOption::ListMetaContext(query) | ClientOption::SetMetaContext(query) => query.emit(out),
            ClientOption::Other { data, .. } => out.extend_from_slice(data),
        }
        let data_bytes = len32(out.len() - start - OptionHeader::BYTES);
        out[start + 12..start + 16].copy_from_slice(&data_bytes.to_be_bytes());
    }

    /// Code of the option.
    pub const fn code(&self) -> OptionCode {
        match self {
            ClientOption::ExportName(_) => OptionCode::EXPORT_NAME,
            ClientOption::Abort => OptionCode::ABORT,
            ClientOption::List => OptionCode::LIST,
            ClientOption::Info(_) => OptionCode::INFO,
            ClientOption::Go(_) => OptionCode::GO,
            ClientOption::StructuredReply => OptionCode::STRUCTURED_REPLY,
            ClientOption::ListMetaContext(_) => OptionCode::LIST_META_CONTEXT,
            ClientOption::SetMetaContext(_) => OptionCode::SET_META_CONTEXT,
            ClientOption::Other { option, .. } => *option,
        }
    }
}

impl InfoRequest {
    fn parse(data: &[u8]) -> Result<InfoRequest, ParseError> {
        let (export, at) = counted_string("NBD export name", data, 0)?;
        let count = usize::from(u16_at(slice("NBD information count", data, at, 2)?, 0));
        let list = slice("NBD information requests", data, at + 2, 2 * count)?;
        no_rest("NBD information request", data, at + 2 + 2 * count)?;
        Ok(InfoRequest { export, wanted: list.chunks_exact(2).map(|code| InfoType(u16_at(code, 0))).collect() })
    }

    /// Information types that exceed the 16-bit count are left out.
    fn emit(&self, out: &mut Vec<u8>) {
        put_string(&self.export, out);
        let count = self.wanted.len().min(usize::from(u16::MAX));
        out.put_len16(count);
        for wanted in &self.wanted[..count] {
            out.put_u16(wanted.0);
        }
    }
}

impl MetaQuery {
    fn parse(data: &[u8]) -> Result<MetaQuery, ParseError> {
        let (export, at) = counted_string("NBD export name", data, 0)?;
        let mut reader = Reader::new(data, at);
        let queries = reader.repeat("NBD query count", |reader| {
            let (query, end) = counted_string("NBD metadata query", data, reader.at())?;
            reader.take("NBD metadata query", end - reader.at())?;
            Ok(query)
        })?;
        no_rest("NBD metadata query", data, reader.at())?;
        Ok(MetaQuery { export, queries })
    }

    fn emit(&self, out: &mut Vec<u8>) {
        put_string(&self.export, out);
        out.put_len32(self.queries.len());
        for query in &self.queries {
            put_string(query, out);
        }
    }
}

/// Reads a 32-bit length and the string after it. Also returns the offset of its end.
fn counted_string(field: &'static str, data: &[u8], at: usize) -> Result<(Box<str>, usize), ParseError> {
    let len = u32_at(slice(field, data, at, 4)?, 0) as usize;
    Ok((string(field, data, at + 4, len)?, at + 4 + len))
}

fn put_string(text: &str, out: &mut Vec<u8>) {
    out.put_len32(text.len());
    out.extend_from_slice(text.as_bytes());
}
