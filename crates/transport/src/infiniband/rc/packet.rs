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

impl Fatal {
    /// Returns the code in the AETH.
    pub const fn code(self) -> u8 {
        match self {
            Fatal::InvalidRequest => 1,
            Fatal::Access => 2,
            Fatal::Operation => 3,
        }
    }
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

/// Times of "receiver not ready" in units of 10 us, by their code of 5 bits (IBA volume 1, table
/// 45).
const NOT_READY: [u32; 32] = [
    65_536, 1, 2, 3, 4, 6, 8, 12, 16, 24, 32, 48, 64, 96, 128, 192, 256, 384, 512, 768, 1_024, 1_536, 2_048, 3_072,
    4_096, 6_144, 8_192, 12_288, 16_384, 24_576, 32_768, 49_152,
];

impl ResponseKind {
    /// Returns the meaning of the syndrome of an AETH (IBA volume 1, 9.7.5.2.2) outside of a READ
    /// response; `None` for a reserved one.
    pub fn of_syndrome(syndrome: u8) -> Option<ResponseKind> {
        let value = syndrome & 0x1f;
        match (syndrome >> 5, value) {
            (0, _) => Some(ResponseKind::Ack),
            (1, code) => Some(ResponseKind::NotReady(Span::from_us(10 * u64::from(NOT_READY[usize::from(code)])))),
            (3, 0) => Some(ResponseKind::NakSequence),
            (3, 1) => Some(ResponseKind::Nak(Fatal::InvalidRequest)),
            (3, 2) => Some(ResponseKind::Nak(Fatal::Access)),
            (3, 3) => Some(ResponseKind::Nak(Fatal::Operation)),
            _ => None,
        }
    }

    /// Returns the syndrome of the AETH. Acknowledgements carry no credit, so the requester is not
    /// limited; a time is rounded up to the next code.
    pub fn syndrome(self) -> u8 {
        const UNLIMITED: u8 = 0x1f;
        match self {
            ResponseKind::Ack | ResponseKind::Data { .. } => UNLIMITED,
            ResponseKind::NotReady(time) => {
                let units = time.as_ns().div_ceil(10_000);
                // Code 0 is the longest time.
                let code = (1..32).find(|code| u64::from(NOT_READY[usize::from(*code)]) >= units).unwrap_or(0);
                0x20 | code
            }
            ResponseKind::NakSequence => 0x60,
            ResponseKind::Nak(reason) => 0x60 | reason.code(),
        }
    }
}
