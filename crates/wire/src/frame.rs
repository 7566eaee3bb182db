//! A frame as the machines exchange it: [`Frame`] and [`Payload`].

pub use crate::message::{Message, ReplyTo};

use crate::error::ParseError;
use crate::header::{FCtl, HEADER_BYTES, Header};
use crate::pattern;

/// One frame without its delimiters. It takes at most 64 bytes in memory, and pattern data needs no
/// heap.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Frame {
    /// Frame header. [`Frame::emit`] replaces its fill count.
    pub header: Header,
    /// Data field without fill bytes.
    pub payload: Payload,
}

const _: () = assert!(size_of::<Frame>() <= 64);

/// The data field of a frame.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Payload {
    /// A value that is encoded only when its bytes are needed. The driver splits a message that is
    /// longer than one frame.
    Typed(Message),
    /// Bytes as received, for payloads that cannot or need not be decoded.
    Bytes(Box<[u8]>),
    /// `len` bytes computed from a seed and an offset (see [`crate::pattern`]).
    Pattern {
        /// Seed that identifies the byte stream.
        seed: u32,
        /// Offset of the first byte in the stream.
        offset: u64,
        /// Number of bytes, at most 2112.
        len: u16,
    },
}

impl Frame {
    /// Reads header and data field, without delimiters and CRC. If the frame is a reply, `reply_to`
    /// is its request. Data, unsupported payloads and frames that are only part of their sequence
    /// become [`Payload::Bytes`].
    pub fn parse(bytes: &[u8], reply_to: Option<ReplyTo>) -> Result<Frame, ParseError> {
        let header = Header::parse(bytes)?;
        let field = &bytes[HEADER_BYTES..];
        let fill = header.f_ctl.fill_bytes();
        let len = field.len().checked_sub(fill).ok_or(ParseError::Truncated {
            field: "fill bytes",
            needed_bytes: fill,
            got_bytes: field.len(),
        })?;
        Ok(Frame { header, payload: Payload::parse(&header, &field[..len], reply_to)? })
    }

    /// Appends header, data field and zeros up to the next word boundary. The fill count in F_CTL
    /// is computed from the payload; the one in the header is ignored.
    pub fn emit(&self, out: &mut Vec<u8>) {
        let len = self.payload.len();
        let f_ctl = self.header.f_ctl.with_fill_for(len);
        out.reserve(self.encoded_len());
        out.extend_from_slice(&Header { f_ctl, ..self.header }.to_bytes());
        self.payload.write_to(out);
        out.resize(out.len() + f_ctl.fill_bytes(), 0);
    }

    /// Number of bytes that [`emit`](Self::emit) appends: a multiple of four.
    pub fn encoded_len(&self) -> usize {
        HEADER_BYTES + self.payload.len().next_multiple_of(4)
    }
}

impl Payload {
    /// Reads a data field from which the fill bytes are removed.
    fn parse(header: &Header, bytes: &[u8], reply_to: Option<ReplyTo>) -> Result<Payload, ParseError> {
        // Link control has no END_SEQUENCE of its own: its F_CTL mirrors the frame that it
        // acknowledges.
        let whole = header.seq_cnt == 0 && header.f_ctl.has(FCtl::END_SEQUENCE);
        if !whole && !header.r_ctl.is_link_control() {
            return Ok(Payload::Bytes(bytes.into()));
        }
        match Message::parse(header, bytes, reply_to) {
            Ok(message) => Ok(Payload::Typed(message)),
            Err(ParseError::Unsupported { .. }) => Ok(Payload::Bytes(bytes.into())),
            Err(error) => Err(error),
        }
    }

    /// Length of the data field in bytes, without fill bytes.
    pub fn len(&self) -> usize {
        match self {
            Payload::Typed(message) => message.encoded_len(),
            Payload::Bytes(bytes) => bytes.len(),
            Payload::Pattern { len, .. } => usize::from(*len),
        }
    }

    /// True when there is no data field.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Appends the bytes of the data field.
    pub fn write_to(&self, out: &mut Vec<u8>) {
        match self {
            Payload::Typed(message) => message.emit(out),
            Payload::Bytes(bytes) => out.extend_from_slice(bytes),
            Payload::Pattern { seed, offset, len } => {
                let start = out.len();
                out.resize(start + usize::from(*len), 0);
                pattern::fill(*seed, *offset, &mut out[start..]);
            }
        }
    }
}

impl From<Message> for Payload {
    fn from(message: Message) -> Payload {
        Payload::Typed(message)
    }
}
