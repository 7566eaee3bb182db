//! A port of a storage system: login, target, and the data moved between frames and buffers.

use crate::sequence::{Reassembly, cut};
use sanloom_fc::exchange::{Accepted, DataFrame, SeqTx};
use sanloom_fc::fcp::target::FcpTarget;
use sanloom_fc::nport::NPort;
use sanloom_scsi::scsi::IoTag;
use sanloom_scsi::time::Instant;
use sanloom_wire::message::ReplyTo;
use sanloom_wire::{FCtl, FcId, Frame, Header, Message, Payload};
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::Arc;

/// Free buffers above this size release their memory.
const KEPT_BUFFER_BYTES: usize = 1 << 20;

/// An item of the output queue.
#[derive(Debug)]
pub enum Outgoing {
    /// A message that fits into a frame.
    Message(Frame),
    /// Data of a buffer, sent frame by frame. Without the second field the buffer is still that of
    /// the exchange; the RX_ID may be reused once the response is queued after the data.
    Data(SeqTx, Option<Arc<Vec<u8>>>),
}

/// The next frame to send.
#[derive(Debug)]
pub enum Leaving<'b> {
    /// A message.
    Message(Frame),
    /// Data.
    Data(Header, &'b [u8]),
}

/// Attachment of a storage port.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum At {
    /// No link.
    Nothing,
    /// A port of a switch of this process.
    Switch {
        /// Index of the switch.
        switch: usize,
        /// Its port.
        port: u16,
    },
    /// A segment without a switch; the index of the station.
    Station(usize),
}

/// A port.
#[derive(Debug)]
pub struct StoragePort {
    /// Name in the lab and in messages.
    pub name: String,
    /// Attachment of the port.
    pub at: At,
    /// Login, discovery and state changes.
    pub login: NPort,
    /// FCP commands.
    pub target: FcpTarget,
    /// N_Port ID; zero before login.
    pub port_id: FcId,
    /// Messages of several frames, in reassembly.
    pub reassembly: Reassembly,
    /// Number of full egress queues that stop this port.
    pub held: u16,
    /// Frames that no machine accepted.
    pub unexpected: u64,
    /// Output queue.
    out: VecDeque<Outgoing>,
    /// Data of each exchange, by RX_ID.
    buffers: Vec<Vec<u8>>,
    /// Exchanges with queued data in their own buffer, by RX_ID.
    sending: BTreeSet<u16>,
    /// Buffer of the frame that is sent, if its exchange no longer has it.
    leaving: Option<Arc<Vec<u8>>>,
    /// Requests in flight by OX_ID, because answers do not name their request.
    requests_by_ox_id: BTreeMap<u16, ReplyTo>,
}

impl StoragePort {
    /// Returns a port without a link.
    pub fn new(name: String, at: At, login: NPort, target: FcpTarget) -> StoragePort {
        StoragePort {
            name,
            at,
            login,
            target,
            port_id: FcId::ZERO,
            reassembly: Reassembly::default(),
            held: 0,
            unexpected: 0,
            out: VecDeque::new(),
            buffers: Vec::new(),
            sending: BTreeSet::new(),
            leaving: None,
            requests_by_ox_id: BTreeMap::new(),
        }
    }

    /// Queues a message. A response ends its exchange and frees the buffer.
    pub fn push_message(&mut self, frame: Frame) {
        if matches!(&frame.payload, Payload::Typed(Message::FcpRsp(_))) {
            self.end(frame.header.rx_id);
        }
        if let Payload::Typed(message) = &frame.payload
            && let Some(key) = message.reply_key()
        {
            self.requests_by_ox_id.insert(frame.header.ox_id, key);
        }
        self.out.extend(cut(frame, 2_048).into_iter().map(Outgoing::Message));
    }

    /// Queues data of an exchange.
    pub fn push_data(&mut self, sequence: SeqTx) {
        debug_assert!(sequence.from_responder, "{} sends write data", self.name);
        self.sending.insert(sequence.rx_id);
        self.out.push_back(Outgoing::Data(sequence, None));
    }

    /// Returns whether the output queue has an item that may be sent: the port has a link and is
    /// not held back.
    pub fn may_send(&self) -> bool {
        self.held == 0 && self.at != At::Nothing && !self.out.is_empty()
    }

    /// Time of the next call of [`StorageSystem::timeout`](super::StorageSystem::timeout).
    pub fn poll_timeout(&self) -> Option<Instant> {
        Instant::earliest(&[self.login.poll_timeout(), self.target.poll_timeout()])
    }

    /// Returns the next frame to send.
    pub fn next_leaving(&mut self) -> Option<Leaving<'_>> {
        loop {
            let Outgoing::Data(sequence, kept) = self.out.front_mut()? else {
                let Some(Outgoing::Message(frame)) = self.out.pop_front() else { return None };
                return Some(Leaving::Message(frame));
            };
            let Some(frame) = sequence.next_frame() else {
                self.out.pop_front();
                continue;
            };
            let (header, DataFrame { offset, len, last, .. }) = (sequence.header(&frame), frame);
            self.leaving.clone_from(kept);
            if last {
                self.out.pop_front();
            }
            let (from, to) = (offset as usize, offset as usize + usize::from(len));
            let own = self.buffers.get(usize::from(header.rx_id));
            let buffer = self.leaving.as_deref().or(own);
            return Some(Leaving::Data(header, buffer.and_then(|buffer| buffer.get(from..to)).unwrap_or_default()));
        }
    }

    /// Ends an exchange. Queued data keep the buffer; otherwise it is free.
    fn end(&mut self, rx_id: u16) {
        if self.sending.remove(&rx_id) {
            let buffer = Arc::new(std::mem::take(self.slot(rx_id)));
            for outgoing in &mut self.out {
                if let Outgoing::Data(sequence, kept @ None) = outgoing
                    && sequence.rx_id == rx_id
                {
                    *kept = Some(buffer.clone());
                }
            }
            if let Ok(buffer) = Arc::try_unwrap(buffer) {
                *self.slot(rx_id) = buffer;
            }
        }
        self.free(rx_id);
    }

    /// Aborts an exchange and discards its queued output.
    pub fn forget(&mut self, rx_id: u16) {
        if self.sending.remove(&rx_id) {
            self.out.retain(|outgoing| match outgoing {
                Outgoing::Data(sequence, None) => sequence.rx_id != rx_id,
                Outgoing::Data(..) | Outgoing::Message(_) => true,
            });
        }
        self.free(rx_id);
    }

    /// Takes the buffer of an exchange, to fill or read it elsewhere.
    pub fn take_buffer(&mut self, tag: IoTag) -> Vec<u8> {
        self.buffers.get_mut(usize::from(tag.rx_id())).map(std::mem::take).unwrap_or_default()
    }

    /// Returns the buffer of an exchange.
    pub fn put_buffer(&mut self, tag: IoTag, buffer: Vec<u8>) {
        *self.slot(tag.rx_id()) = buffer;
    }

    fn slot(&mut self, rx_id: u16) -> &mut Vec<u8> {
        let number = usize::from(rx_id);
        if self.buffers.len() <= number {
            self.buffers.resize_with(number + 1, Vec::new);
        }
        &mut self.buffers[number]
    }

    fn free(&mut self, rx_id: u16) {
        if let Some(buffer) = self.buffers.get_mut(usize::from(rx_id)) {
            buffer.clear();
            buffer.shrink_to(KEPT_BUFFER_BYTES);
        }
    }

    /// Copies a frame of write data into the buffer of its exchange. Returns the state of the
    /// sequence when it is complete or broken.
    pub fn data_in(&mut self, header: &Header, field: &[u8]) -> Option<Accepted> {
        let fill = if header.f_ctl.has(FCtl::END_SEQUENCE) { header.f_ctl.fill_bytes() } else { 0 };
        let data = &field[..field.len().saturating_sub(fill)];
        let rx_id = header.rx_id;
        let expected = self.target.expected_bytes(rx_id).filter(|_| header.d_id == self.port_id);
        let Some((expected, sequence)) = expected.and_then(|expected| Some((expected, self.target.data(rx_id)?)))
        else {
            self.unexpected += 1;
            return None;
        };
        // Frames arrive in order, so each begins at the end of the one before. The offset that the
        // peer states is not used.
        let offset = sequence.received_bytes();
        if header.f_ctl.has(FCtl::RELATIVE_OFFSET) && header.parameter != offset {
            self.unexpected += 1;
            return Some(Accepted::Gap);
        }
        let accepted = self.target.accept_data(rx_id, header.seq_cnt, data.len() as u16);
        if matches!(accepted, Accepted::More | Accepted::Complete) {
            let buffer = self.slot(rx_id);
            buffer.resize(buffer.len().max(expected as usize), 0);
            match buffer.get_mut(offset as usize..offset as usize + data.len()) {
                Some(room) => room.copy_from_slice(data),
                None => return Some(Accepted::Gap),
            }
        }
        matches!(accepted, Accepted::Complete | Accepted::Gap).then_some(accepted)
    }

    /// Parses a message as far as possible.
    pub fn read(&mut self, frame: Frame) -> Frame {
        let Payload::Bytes(bytes) = &frame.payload else { return frame };
        let from_responder = frame.header.f_ctl.has(FCtl::EXCHANGE_RESPONDER);
        let request = if from_responder { self.requests_by_ox_id.remove(&frame.header.ox_id) } else { None };
        match Message::parse(&frame.header, bytes, request) {
            Ok(message) => Frame { header: frame.header, payload: Payload::Typed(message) },
            Err(_) => frame,
        }
    }
}
