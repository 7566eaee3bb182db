//! A frame as the machines exchange it: [`Frame`], [`Payload`], [`Message`].

use crate::bls::Bls;
use crate::ct::Ct;
use crate::els::Els;
use crate::fcp::{FcpCmnd, FcpRsp, FcpXferRdy};
use crate::header::Header;
use crate::link_control::LinkControl;

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
    /// `len` bytes that follow from a seed and an offset (see [`crate::frame`]).
    Pattern {
        /// Names the stream of bytes.
        seed: u32,
        /// First byte within the stream.
        offset: u64,
        /// Number of bytes, at most 2112.
        len: u16,
    },
}

/// A control message: everything but data.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Message {
    /// Extended link service, request or reply.
    Els(Box<Els>),
    /// Common transport: name server and other generic services.
    Ct(Box<Ct>),
    /// Basic link service.
    Bls(Bls),
    /// ACK, reject, busy.
    LinkControl(LinkControl),
    /// FCP command.
    FcpCmnd(FcpCmnd),
    /// FCP transfer ready.
    FcpXferRdy(FcpXferRdy),
    /// FCP response.
    FcpRsp(FcpRsp),
    /// FCP confirmation.
    FcpConf,
}
