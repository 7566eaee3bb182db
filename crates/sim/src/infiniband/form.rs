//! Packets of queue pairs as references of the plane.

use crate::net::infiniband::Packet;
use sanloom_scsi::time::Span;
use sanloom_transport::infiniband::packet::{AETH, DETH, RETH, bytes};
use sanloom_transport::infiniband::rc::packet::{Fatal, Operation, Part, Psn, Request, Response, ResponseKind};

/// Packets between queue pairs, without payload.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Form {
    /// A request of a reliable connection.
    Request(Request),
    /// A response of a reliable connection.
    Response(Response),
    /// A datagram with this many bytes.
    Datagram(u32),
}

/// Codes of the upper 8 bits of a position: BTH opcodes of reliable connections, and the bits
/// below.
const SEND: u8 = 0x00;
const WRITE: u8 = 0x06;
const READ: u8 = 0x0c;
const DATA: u8 = 0x0d;
const ACK: u8 = 0x11;
const DATAGRAM: u8 = 0x64;
/// Asks for an acknowledgement.
const ASKS: u8 = 0x80;
/// Bits of the AETH syndrome (IBA volume 1, 9.7.5.1.1), in the upper 8 bits of the argument.
const RNR: u32 = 1 << 29;
const NAK: u32 = 3 << 29;
/// Unit of the time of "receiver not ready" in an argument: 10 us.
const RNR_NS: u64 = 10_000;

fn part_code(part: Part) -> u8 {
    match part {
        Part::First => 0,
        Part::Middle => 1,
        Part::Last => 2,
        Part::Only => 4,
    }
}

fn part_of(code: u8) -> Option<Part> {
    Some(match code {
        0 => Part::First,
        1 => Part::Middle,
        2 => Part::Last,
        4 => Part::Only,
        _ => return None,
    })
}

impl Form {
    /// Returns the reference, from one LID to another, for a queue pair.
    pub fn packet(self, [from, to]: [u16; 2], pair: u32) -> Packet {
        let (code, psn, argument, extended, payload) = match self {
            Form::Request(Request { psn, operation, part, length, ack }) => {
                let (code, extended) = match operation {
                    Operation::Send => (SEND + part_code(part), 0),
                    // Immediate data have the codes between: LAST is 8, ONLY is 10.
                    Operation::Write => (WRITE + part_code(part), if part.begins() { RETH } else { 0 }),
                    Operation::Read => (READ, RETH),
                };
                let payload = if operation == Operation::Read { 0 } else { length };
                (code | if ack { ASKS } else { 0 }, psn.get(), length, extended, payload)
            }
            Form::Response(Response { psn, kind }) => match kind {
                ResponseKind::Data { part, length } => {
                    let code = DATA + if part == Part::Only { 3 } else { part_code(part) };
                    (code, psn.get(), length, if part == Part::Middle { 0 } else { AETH }, length)
                }
                ResponseKind::Ack => (ACK, psn.get(), 0, AETH, 0),
                ResponseKind::NotReady(span) => (ACK, psn.get(), RNR | (span.as_ns() / RNR_NS) as u32, AETH, 0),
                ResponseKind::NakSequence => (ACK, psn.get(), NAK, AETH, 0),
                ResponseKind::Nak(fatal) => (ACK, psn.get(), NAK | u32::from(fatal.code()) << 24, AETH, 0),
            },
            Form::Datagram(length) => (DATAGRAM, 0, length, DETH, length),
        };
        let position = u32::from(code) << 24 | psn;
        let mut packet = Packet::new(from, to, pair, position, bytes(extended, payload) as u16);
        packet.argument = argument;
        packet
    }

    /// Returns whether the packet is a response without data.
    pub fn is_acknowledgement(self) -> bool {
        matches!(self, Form::Response(Response { kind, .. }) if !matches!(kind, ResponseKind::Data { .. }))
    }

    /// Returns the BTH opcode of a reference.
    pub fn opcode(packet: &Packet) -> u8 {
        (packet.position >> 24) as u8 & !ASKS
    }

    /// Returns the name of a datagram.
    pub fn name(packet: &Packet) -> u32 {
        packet.position & 0xff_ffff
    }

    /// Returns the form of a reference; `None` if it is not from here.
    pub fn of(packet: &Packet) -> Option<Form> {
        let (code, psn, argument) = ((packet.position >> 24) as u8, Psn::of(packet.position.into()), packet.argument);
        let request = |operation, part| {
            let ack = code & ASKS != 0;
            Some(Form::Request(Request { psn, operation, part, length: argument, ack }))
        };
        let response = |kind| Some(Form::Response(Response { psn, kind }));
        match code & !ASKS {
            DATAGRAM => Some(Form::Datagram(argument)),
            READ => request(Operation::Read, Part::Only),
            ACK if argument >> 29 == RNR >> 29 => {
                let span = Span::from_ns(u64::from(argument & 0x1fff_ffff) * RNR_NS);
                response(ResponseKind::NotReady(span))
            }
            ACK if argument >> 29 == NAK >> 29 => response(match argument >> 24 & 31 {
                0 => ResponseKind::NakSequence,
                1 => ResponseKind::Nak(Fatal::InvalidRequest),
                2 => ResponseKind::Nak(Fatal::Access),
                _ => ResponseKind::Nak(Fatal::Operation),
            }),
            ACK => response(ResponseKind::Ack),
            code @ DATA..ACK => {
                let part = if code == DATA + 3 { Part::Only } else { part_of(code - DATA)? };
                response(ResponseKind::Data { part, length: argument })
            }
            code @ WRITE..READ => request(Operation::Write, part_of(code - WRITE)?),
            code @ SEND..WRITE => request(Operation::Send, part_of(code - SEND)?),
            _ => None,
        }
    }
}
