//! Queue pair of a reliable connection with payload: [`QueuePair`].
//!
//! The requester and the responder of `sanloom_transport` decide which packets leave and which
//! arrive in order. This module adds the bytes: it cuts the payload of work requests into packets,
//! and puts arriving payload together.

use sanloom_scsi::scsi::IoTag;
use sanloom_scsi::time::Instant;
use sanloom_transport::infiniband::rc::Config;
use sanloom_transport::infiniband::rc::packet::{Fatal, Operation, Part, Psn, Request, Response, ResponseKind};
use sanloom_transport::infiniband::rc::requester::{self, Requester};
use sanloom_transport::infiniband::rc::responder::{self, Responder};
use sanloom_wire::infiniband::roce::RocePacket;
use sanloom_wire::infiniband::{Bth, Extended, opcode};
use sanloom_wire::srp::Descriptor;
use std::collections::VecDeque;
use std::sync::Arc;

/// Purpose of an RDMA READ.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Purpose {
    /// Data of a task, at this offset in its buffer.
    Data(IoTag, usize),
    /// Table of memory descriptors for the data to the target, or, if true, to the initiator.
    Table(bool),
}

/// Work request.
#[derive(Debug)]
pub(super) enum Work {
    /// SEND of an information unit.
    Send(Vec<u8>),
    /// RDMA WRITE of a part of a buffer, from this offset.
    Write {
        /// Memory of the peer; its length is that of the part.
        to: Descriptor,
        /// The buffer.
        data: Arc<Vec<u8>>,
        /// Offset of the part.
        at: usize,
    },
    /// RDMA READ.
    Read {
        /// Memory of the peer.
        from: Descriptor,
        /// Purpose, which the event repeats.
        purpose: Purpose,
        /// Data so far.
        data: Vec<u8>,
    },
}

/// Event for the user of a queue pair.
#[derive(PartialEq, Eq, Debug)]
pub(super) enum Event {
    /// A SEND has arrived whole.
    Unit(Vec<u8>),
    /// The data of an RDMA READ have arrived.
    Read {
        /// Purpose for which it was posted.
        purpose: Purpose,
        /// The data.
        data: Vec<u8>,
    },
    /// The queue pair has failed, with the reason.
    Failed(String),
}

/// Numbers of a connection.
#[derive(Clone, Copy, Debug)]
pub(super) struct Numbers {
    /// Queue pair of the peer: 24 bits.
    pub peer: u32,
    /// Partition key.
    pub key: u16,
    /// Longest SEND of the peer in bytes.
    pub unit_bytes: usize,
}

/// A packet to send.
#[derive(Debug)]
pub(super) struct Packet {
    /// Base transport header.
    pub bth: Bth,
    /// Headers of the opcode.
    pub extended: Extended,
    /// Payload.
    pub payload: Vec<u8>,
}

/// Work request in progress.
#[derive(Debug)]
struct Posted {
    /// Counter of the first packet, and of the packet after the last.
    first: u64,
    end: u64,
    work: Work,
}

/// Queue pair of a reliable connection.
#[derive(Debug)]
pub(super) struct QueuePair {
    numbers: Numbers,
    /// Bytes of payload of a full packet.
    mtu: u32,
    requester: Requester,
    responder: Responder,
    posted: VecDeque<Posted>,
    /// SENDs among them, and their maximum.
    sends: usize,
    most_sends: usize,
    /// SEND that has begun to arrive.
    unit: Vec<u8>,
    /// Number of messages that have arrived: 24 bits.
    messages: u32,
    packets: VecDeque<Packet>,
    events: VecDeque<Event>,
    has_failed: bool,
    /// Packets with an invalid or unexpected opcode or syndrome.
    pub unexpected: u64,
}

/// Bytes of a work request.
fn length(work: &Work) -> u32 {
    match work {
        Work::Send(bytes) => u32::try_from(bytes.len()).unwrap_or(u32::MAX),
        Work::Write { to: memory, .. } | Work::Read { from: memory, .. } => memory.length,
    }
}

/// Returns operation and part of a request of a peer.
fn request_of(code: u8) -> Option<(Operation, Part)> {
    Some(match code {
        opcode::SEND_FIRST => (Operation::Send, Part::First),
        opcode::SEND_MIDDLE => (Operation::Send, Part::Middle),
        opcode::SEND_LAST | opcode::SEND_LAST_IMMEDIATE | opcode::SEND_LAST_INVALIDATE => (Operation::Send, Part::Last),
        opcode::SEND_ONLY | opcode::SEND_ONLY_IMMEDIATE | opcode::SEND_ONLY_INVALIDATE => (Operation::Send, Part::Only),
        opcode::WRITE_FIRST => (Operation::Write, Part::First),
        opcode::WRITE_MIDDLE => (Operation::Write, Part::Middle),
        opcode::WRITE_LAST | opcode::WRITE_LAST_IMMEDIATE => (Operation::Write, Part::Last),
        opcode::WRITE_ONLY | opcode::WRITE_ONLY_IMMEDIATE => (Operation::Write, Part::Only),
        opcode::READ => (Operation::Read, Part::Only),
        _ => return None,
    })
}

fn opcode_of(operation: Operation, part: Part) -> u8 {
    let at = match part {
        Part::First => 0,
        Part::Middle => 1,
        Part::Last => 2,
        Part::Only => 3,
    };
    match operation {
        Operation::Send => [opcode::SEND_FIRST, opcode::SEND_MIDDLE, opcode::SEND_LAST, opcode::SEND_ONLY][at],
        Operation::Write => [opcode::WRITE_FIRST, opcode::WRITE_MIDDLE, opcode::WRITE_LAST, opcode::WRITE_ONLY][at],
        Operation::Read => opcode::READ,
    }
}

/// Part of a READ response.
fn response_part(code: u8) -> Option<Part> {
    match code {
        opcode::DATA_FIRST => Some(Part::First),
        opcode::DATA_MIDDLE => Some(Part::Middle),
        opcode::DATA_LAST => Some(Part::Last),
        opcode::DATA_ONLY => Some(Part::Only),
        _ => None,
    }
}

impl QueuePair {
    /// Queue pair of a new connection. `sends` and `receives` are the parameters of this end as
    /// requester and as responder; the peer may send `units` information units.
    pub fn new(numbers: Numbers, sends: Config, receives: Config, units: u32) -> QueuePair {
        let mut responder = Responder::new(receives);
        // A receive is posted again as soon as its message has arrived.
        responder.handle(responder::Input::Receives(1));
        QueuePair {
            numbers,
            mtu: sends.mtu.bytes(),
            sends: 0,
            // Responses to all requests, and others that one acknowledgement covers later.
            most_sends: units as usize + 2 * sends.window as usize,
            requester: Requester::new(sends),
            responder,
            posted: VecDeque::new(),
            unit: Vec::new(),
            messages: 0,
            packets: VecDeque::new(),
            events: VecDeque::new(),
            has_failed: false,
            unexpected: 0,
        }
    }

    /// Posts a work request. Completed ones are silent, apart from those that read.
    pub fn post(&mut self, now: Instant, work: Work) {
        if self.has_failed {
            return;
        }
        if matches!(work, Work::Send(_)) {
            self.sends += 1;
            if self.sends > self.most_sends {
                return self.fail("the initiator acknowledges no responses".to_owned());
            }
        }
        let (operation, length) = match &work {
            Work::Send(_) => (Operation::Send, length(&work)),
            Work::Write { .. } => (Operation::Write, length(&work)),
            Work::Read { .. } => (Operation::Read, length(&work)),
        };
        let first = self.requester.posted();
        self.requester.handle(now, requester::Input::Post(requester::Work { id: first, operation, length }));
        self.posted.push_back(Posted { first, end: self.requester.posted(), work });
        self.drain_requester();
    }

    /// Processes a packet of the peer.
    pub fn receive(&mut self, now: Instant, packet: &RocePacket<'_>) {
        if self.has_failed {
            return;
        }
        let psn = Psn::of(packet.bth.psn.into());
        let length = u32::try_from(packet.payload.len()).unwrap_or(u32::MAX);
        if let Some((operation, part)) = request_of(packet.bth.opcode) {
            let request = Request { psn, operation, part, length, ack: packet.bth.ack };
            return self.request(request, packet.payload);
        }
        if let Some(part) = response_part(packet.bth.opcode) {
            self.place(psn, packet.payload);
            let response = Response { psn, kind: ResponseKind::Data { part, length } };
            return self.respond(now, response);
        }
        let syndrome = packet.extended.aeth.map(|(syndrome, _)| syndrome);
        let kind = syndrome.filter(|_| packet.bth.opcode == opcode::ACK).and_then(ResponseKind::of_syndrome);
        match kind {
            Some(kind) => self.respond(now, Response { psn, kind }),
            None => self.unexpected += 1,
        }
    }

    /// Calls the requester when its deadline is over.
    pub fn timeout(&mut self, now: Instant) {
        if self.poll_timeout().is_some_and(|at| at <= now) {
            self.requester.handle(now, requester::Input::Timeout);
            self.drain_requester();
        }
    }

    /// Time of the next call of [`timeout`](Self::timeout).
    pub fn poll_timeout(&self) -> Option<Instant> {
        self.requester.poll_timeout().filter(|_| !self.has_failed)
    }

    /// Tasks of the RDMA READs of data in progress.
    pub fn reading(&self) -> impl Iterator<Item = IoTag> {
        self.posted.iter().filter_map(|posted| match posted.work {
            Work::Read { purpose: Purpose::Data(tag, _), .. } => Some(tag),
            _ => None,
        })
    }

    /// Next packet to send.
    pub fn poll_packet(&mut self) -> Option<Packet> {
        self.packets.pop_front()
    }

    /// Next event.
    pub fn poll_event(&mut self) -> Option<Event> {
        self.events.pop_front()
    }

    /// Times that packets were repeated.
    pub fn repetitions(&self) -> u64 {
        self.requester.repetitions()
    }

    fn fail(&mut self, reason: String) {
        if !std::mem::replace(&mut self.has_failed, true) {
            self.events.push_back(Event::Failed(reason));
        }
    }

    fn request(&mut self, request: Request, payload: &[u8]) {
        if request.operation != Operation::Send {
            // An SRP target has no memory for its initiators.
            self.answer(Response { psn: request.psn, kind: ResponseKind::Nak(Fatal::Access) });
            return self.fail(format!("the initiator sent an RDMA request ({:?})", request.operation));
        }
        let begun = if request.part.begins() { 0 } else { self.unit.len() };
        // A packet that is repeated is of an earlier information unit.
        let in_sequence = request.psn == Psn::of(self.responder.expected());
        if in_sequence && begun + payload.len() > self.numbers.unit_bytes {
            self.answer(Response { psn: request.psn, kind: ResponseKind::Nak(Fatal::InvalidRequest) });
            return self.fail(format!("an information unit has more than {} bytes", self.numbers.unit_bytes));
        }
        let before = self.responder.expected();
        self.responder.handle(responder::Input::Packet(request));
        if self.responder.expected() != before {
            self.unit.truncate(begun);
            self.unit.extend_from_slice(payload);
        }
        while let Some(output) = self.responder.poll_output() {
            match output {
                responder::Output::Send(response) => self.answer(response),
                responder::Output::Message(..) => {
                    self.messages = (self.messages + 1) & 0xff_ffff;
                    self.events.push_back(Event::Unit(std::mem::take(&mut self.unit)));
                    // The receive is posted again at once; the request limit bounds the tasks.
                    self.responder.handle(responder::Input::Receives(1));
                }
                responder::Output::Failed(reason) => self.fail(format!("a request was invalid: {reason:?}")),
            }
        }
    }

    /// Sends an acknowledgement.
    fn answer(&mut self, response: Response) {
        let bth = self.bth(opcode::ACK, response.psn);
        let aeth = Some((response.kind.syndrome(), self.messages));
        self.packets.push_back(Packet { bth, extended: Extended { aeth, ..Extended::default() }, payload: Vec::new() });
    }

    fn bth(&self, opcode: u8, psn: Psn) -> Bth {
        let Numbers { peer, key, .. } = self.numbers;
        Bth { opcode, migrated: true, key, pair: peer, psn: psn.get(), ..Bth::default() }
    }

    /// Puts data of a READ response into their buffer. Data that are repeated are the same.
    fn place(&mut self, psn: Psn, payload: &[u8]) {
        let Some(at) = self.posted.front().and_then(|front| psn.near(front.first)) else { return };
        let Some(posted) = self.posted.iter_mut().find(|posted| posted.first <= at && at < posted.end) else { return };
        let offset = (at - posted.first) as usize * self.mtu as usize;
        let Work::Read { from, data, .. } = &mut posted.work else { return };
        if data.is_empty() {
            data.resize(from.length as usize, 0);
        }
        if let Some(room) = data.get_mut(offset..offset + payload.len()) {
            room.copy_from_slice(payload);
        }
    }

    fn respond(&mut self, now: Instant, response: Response) {
        self.requester.handle(now, requester::Input::Packet(response));
        self.drain_requester();
    }

    fn drain_requester(&mut self) {
        while let Some(output) = self.requester.poll_output() {
            match output {
                requester::Output::Send(request) => self.transmit(request),
                requester::Output::Completed(_) => match self.posted.pop_front().map(|posted| posted.work) {
                    Some(Work::Read { purpose, data, .. }) => self.events.push_back(Event::Read { purpose, data }),
                    Some(Work::Send(_)) => self.sends -= 1,
                    Some(Work::Write { .. }) | None => {}
                },
                requester::Output::Failed(reason) => self.fail(reason.to_string()),
                requester::Output::Flushed(_) => {}
            }
        }
    }

    /// Composes a packet of a work request.
    fn transmit(&mut self, request: Request) {
        let Some(at) = self.posted.front().and_then(|front| request.psn.near(front.first)) else { return };
        let Some(posted) = self.posted.iter().find(|posted| posted.first <= at && at < posted.end) else { return };
        let offset = (at - posted.first) as usize * self.mtu as usize;
        let part = offset..offset + request.length as usize;
        let bytes =
            |data: &[u8], from: usize| data.get(from + part.start..from + part.end).unwrap_or_default().to_vec();
        let (reth, payload) = match &posted.work {
            Work::Send(unit) => (None, bytes(unit, 0)),
            Work::Write { to, data, at } => (Some((to.address, to.key, to.length)), bytes(data, *at)),
            Work::Read { from, .. } => {
                (Some((from.address.wrapping_add(offset as u64), from.key, request.length)), Vec::new())
            }
        };
        let bth = Bth { ack: request.ack, ..self.bth(opcode_of(request.operation, request.part), request.psn) };
        self.packets.push_back(Packet { bth, extended: Extended { reth, ..Extended::default() }, payload });
    }
}

#[cfg(test)]
mod tests;
