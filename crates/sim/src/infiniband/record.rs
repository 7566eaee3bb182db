//! Messages that queue pairs have sent, for captures, and the packets of each with their bytes.

use super::form::Form;
use crate::net::ethernet::Packet as Frame;
use crate::net::infiniband::Packet;
use sanloom_transport::infiniband::packet::Mtu;
use sanloom_transport::infiniband::rc::packet::{Operation, Psn};
use sanloom_transport::infiniband::rc::requester::Work;
use sanloom_transport::tcp::Segment;
use sanloom_wire::pattern;
use std::collections::VecDeque;

/// Messages that are kept of each end: more than its adapter has in flight.
const MAX_MESSAGES: usize = 65_536;

/// Contents of a message.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Content {
    /// Bytes of a SEND.
    Bytes(Vec<u8>),
    /// Data from this address on, which are filled with the pattern of this seed.
    Data { address: u64, seed: u32 },
    /// A packet of IP with a segment of TCP.
    Ip(Frame, Segment),
}

/// A message of an end.
#[derive(Clone, Debug)]
struct Message {
    /// Counter of its first packet.
    first: u64,
    /// Number of the message, from 1 on.
    number: u32,
    operation: Operation,
    length: u32,
    content: Content,
}

/// Messages of an end, in the order of posting.
#[derive(Clone, Debug)]
pub(super) struct Record {
    mtu: Mtu,
    messages: VecDeque<Message>,
    /// Counter of the next packet, and number of the last message.
    next: u64,
    number: u32,
}

/// A packet of a reliable connection with its message.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Seen {
    pub form: Form,
    /// Queue pairs of the sender and of the receiver.
    pub pairs: [u32; 2],
    /// Operation and length of the message, and the address of its data.
    pub operation: Operation,
    pub length: u32,
    pub address: u64,
    /// Messages that the responder has completed when it sends a response for this packet.
    pub completed: u32,
    /// Bytes of the packet.
    pub payload: Vec<u8>,
    /// Packet of IP of which the payload is the part from this byte on, without it.
    pub ip: Option<(Frame, Segment, u32)>,
}

impl Record {
    pub fn new(mtu: Mtu, first_psn: u32) -> Record {
        Record { mtu, messages: VecDeque::new(), next: u64::from(first_psn), number: 0 }
    }

    /// Adds a work request.
    pub fn add(&mut self, work: &Work, content: Content) {
        self.number += 1;
        let Work { operation, length, .. } = *work;
        self.messages.push_back(Message { first: self.next, number: self.number, operation, length, content });
        self.next += u64::from(self.mtu.packets(length));
        if self.messages.len() > MAX_MESSAGES {
            self.messages.pop_front();
        }
    }

    /// Returns the message of a packet sequence number, and the number of the packet in it.
    fn find(&self, psn: Psn) -> Option<(&Message, u32)> {
        let at = psn.near(self.next)?;
        let after = self.messages.partition_point(|message| message.first <= at);
        let message = self.messages.get(after.checked_sub(1)?)?;
        let number = (at - message.first) as u32;
        (number < self.mtu.packets(message.length)).then_some((message, number))
    }

    /// Returns a packet of the message. `form` is that of the packet.
    pub fn seen(&self, form: Form, pairs: [u32; 2]) -> Option<Seen> {
        let (psn, is_request) = match form {
            Form::Request(request) => (request.psn, true),
            Form::Response(response) => (response.psn, false),
            Form::Datagram(_) => return None,
        };
        let (message, number) = self.find(psn)?;
        let &Message { operation, mut length, .. } = message;
        let mtu = self.mtu.bytes();
        let (start, end) = (number * mtu, ((number + 1) * mtu).min(length));
        // A READ has its data in the responses, other messages in the requests.
        let has_data = (operation == Operation::Read) != is_request && !form.is_acknowledgement();
        let mut payload = Vec::new();
        let (mut address, mut ip) = (0, None);
        match &message.content {
            Content::Bytes(bytes) if has_data => {
                payload.extend(bytes.get(start as usize..end as usize).unwrap_or_default());
            }
            Content::Bytes(_) => {}
            Content::Ip(frame, segment) => ip = has_data.then_some((*frame, *segment, start)),
            Content::Data { address: from, seed } => {
                address = *from;
                if has_data {
                    payload.resize((end - start) as usize, 0);
                    pattern::fill(*seed, from + u64::from(start), &mut payload);
                }
            }
        }
        if let Form::Request(request) = form
            && operation == Operation::Read
        {
            // A READ that is repeated asks for its missing part only.
            address += u64::from(length - request.length.min(length));
            length = request.length;
        }
        let is_last = number + 1 == self.mtu.packets(message.length);
        let completed = if is_last { message.number } else { message.number - 1 };
        Some(Seen { form, pairs, operation, length, address, completed, payload, ip })
    }
}

/// Returns the sending and the receiving end of a packet, and the end whose messages it is about.
pub(super) fn ends(packet: &Packet, form: Form) -> ([u32; 2], u32) {
    let to = packet.pair();
    let ends = [to ^ 1, to];
    (ends, if matches!(form, Form::Request(_)) { ends[0] } else { ends[1] })
}
