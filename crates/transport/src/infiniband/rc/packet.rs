//! Packets of a reliable connection, as values.

use sanloom_scsi::time::Span;

/// Modulus of packet sequence numbers.
const MODULUS: u32 = 1 << 24;

/// Packet sequence number: 24 bits.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Psn(u32);

impl Psn {
    /// Truncates a counter to 24 bits.
    pub const fn of(counter: u64) -> Psn {
        Psn((counter % MODULUS as u64) as u32)
    }

    /// Wire value.
    pub const fn get(self) -> u32 {
        self.0
    }

    /// Counter nearest to `reference` with this number; `None` if it would be negative.
    pub const fn near(self, reference: u64) -> Option<u64> {
        let ahead = self.0.wrapping_sub(Psn::of(reference).0) % MODULUS;
        if ahead < MODULUS / 2 {
            reference.checked_add(ahead as u64)
        } else {
            reference.checked_sub((MODULUS - ahead) as u64)
        }
    }
}

/// Position of a packet in its message.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Part {
    /// First of several.
    First,
    /// Neither first nor last.
    Middle,
    /// Last of several.
    Last,
    /// Whole message.
    Only,
}

impl Part {
    /// Position from two facts.
    pub const fn new(first: bool, last: bool) -> Part {
        match (first, last) {
            (true, true) => Part::Only,
            (true, false) => Part::First,
            (false, true) => Part::Last,
            (false, false) => Part::Middle,
        }
    }

    /// Starts a message.
    pub const fn begins(self) -> bool {
        matches!(self, Part::First | Part::Only)
    }

    /// Ends a message.
    pub const fn ends(self) -> bool {
        matches!(self, Part::Last | Part::Only)
    }
}

/// Operation of a message.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Operation {
    /// SEND, which consumes a receive.
    Send,
    /// RDMA WRITE.
    Write,
    /// RDMA READ.
    Read,
}

/// Packet from the requester to the responder.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Request {
    /// Sequence number.
    pub psn: Psn,
    /// Operation of the message.
    pub operation: Operation,
    /// Position in the message; a READ request is one packet.
    pub part: Part,
    /// Bytes of payload, and of a READ the bytes that are requested.
    pub length: u32,
    /// Asks for an acknowledgement.
    pub ack: bool,
}

/// Reason of a negative acknowledgement that ends the connection (AETH syndrome 011nnnnn).
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Fatal {
    /// Code 1: invalid request.
    InvalidRequest,
    /// Code 2: remote access error.
    Access,
    /// Code 3: remote operational error.
    Operation,
}

/// Packet from the responder to the requester.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Response {
    /// Sequence number of the request packet that it answers.
    pub psn: Psn,
    /// Meaning.
    pub kind: ResponseKind,
}

/// Meaning of a response.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum ResponseKind {
    /// All packets up to the PSN have arrived.
    Ack,
    /// Sequence error (code 0): the PSN is expected, and all before it have arrived.
    NakSequence,
    /// No receive for the SEND with this PSN; repeat it after this time.
    NotReady(Span),
    /// The connection ends.
    Nak(Fatal),
    /// Bytes of a READ.
    Data {
        /// Position in the response.
        part: Part,
        /// Bytes of payload.
        length: u32,
    },
}
