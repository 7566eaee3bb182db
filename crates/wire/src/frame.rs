//! A frame as the machines exchange it: [`Frame`] and [`Payload`].

pub use crate::message::{Message, ReplyTo};

use crate::error::ParseError;
use crate::header::{FCtl, HEADER_BYTES, Header};
use crate::pattern;

/// One frame without its delimiters: at most 64 bytes in memory, no heap for data.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Frame {
    /// The header.
    pub header: Header,
    /// What follows it.
    pub payload: Payload,
}

const _: () = assert!(size_of::<Frame>() <= 64);

/// The data field of a frame.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Payload {
    /// A value that is encoded when somebody needs the bytes. A message longer than one frame is cut by the driver.
    Typed(Message),
    /// Bytes as they came, for what we cannot or need not understand.
    Bytes(Box<[u8]>),
    /// `len` bytes that follow from a seed and an offset (see [`crate::pattern`]).
    Pattern {
        /// Names the stream of bytes.
        seed: u32,
        /// First byte within the stream.
        offset: u64,
        /// Number of bytes, at most 2112.
        len: u16,
    },
}

impl Frame {
    /// Reads header and data field, without delimiters and CRC. `reply_to` is the request that this frame answers, where it
    /// answers one. What has no value here stays bytes; so does data, and a frame that is only a part of its sequence.
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

    /// Appends header, data field and the zeros that fill it up to a word. The fill count in F_CTL is that of the payload,
    /// whatever the header says.
    pub fn emit(&self, out: &mut Vec<u8>) {
        let len = self.payload.len();
        let f_ctl = self.header.f_ctl.with_fill_for(len);
        out.reserve(self.encoded_len());
        out.extend_from_slice(&Header { f_ctl, ..self.header }.to_bytes());
        self.payload.write_to(out);
        out.resize(out.len() + f_ctl.fill_bytes(), 0);
    }

    /// Bytes that [`emit`](Self::emit) appends: a multiple of four.
    pub fn encoded_len(&self) -> usize {
        HEADER_BYTES + self.payload.len().next_multiple_of(4)
    }
}

impl Payload {
    /// Reads a data field from which the fill bytes are removed.
    fn parse(header: &Header, bytes: &[u8], reply_to: Option<ReplyTo>) -> Result<Payload, ParseError> {
        // Link control has no END_SEQUENCE of its own: its F_CTL mirrors the frame that it answers.
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

    /// Bytes of the data field, fill bytes not counted.
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
