//! Requester of a reliable connection: sends messages, repeats them, completes them in order.

use super::Config;
use super::packet::{Fatal, Operation, Part, Psn, Request, Response, ResponseKind};
use sanloom_scsi::time::Instant;
use std::collections::VecDeque;

/// Work request.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Work {
    /// Name that the completion repeats.
    pub id: u64,
    /// Operation.
    pub operation: Operation,
    /// Bytes.
    pub length: u32,
}

/// Event of the requester.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Input {
    /// A new work request.
    Post(Work),
    /// A packet of the responder.
    Packet(Response),
    /// The time of `poll_timeout` has come.
    Timeout,
}

/// Reason for which a queue pair has failed.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
pub enum Failure {
    /// No progress after all repetitions.
    #[error("no acknowledgement after all repetitions; check the path and the time-out")]
    RetriesExceeded,
    /// The responder had no receive after all repetitions.
    #[error("the responder posted no receive in time; post more receives")]
    NotReadyExceeded,
    /// The responder rejected a request.
    #[error("the responder rejected a request: {0:?}")]
    Rejected(Fatal),
}

/// Effect of an event.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Output {
    /// Send this packet.
    Send(Request),
    /// The work request is complete. Completions are in the order of posting.
    Completed(u64),
    /// The queue pair has failed.
    Failed(Failure),
    /// The work request is not complete, because the queue pair has failed.
    Flushed(u64),
}

/// Message that is not complete.
#[derive(Clone, Copy, Debug)]
struct Message {
    work: Work,
    /// Counter of the first packet, and of the packet after the last.
    first: u64,
    end: u64,
}

/// Requester. Sequence numbers are 64-bit counters here and 24 bits on the wire.
#[derive(Clone, Debug)]
pub struct Requester {
    config: Config,
    messages: VecDeque<Message>,
    outputs: VecDeque<Output>,
    /// Counter after the last posted packet.
    posted: u64,
    /// First counter without acknowledgement.
    unacknowledged: u64,
    /// Next counter to send.
    next: u64,
    /// Counter after the highest sent.
    sent: u64,
    /// Repetitions since the last progress.
    retries: u8,
    rnr_retries: u8,
    /// Times that it has gone back to repeat packets.
    repetitions: u64,
    /// The responder was not ready: nothing leaves before this time.
    paused: Option<Instant>,
    /// Expiry of the acknowledgement time-out.
    deadline: Option<Instant>,
    /// A sequence gap has been answered with a repetition, and no progress followed yet.
    repeated: bool,
    failure: Option<Failure>,
}

impl Requester {
    /// Requester of a new connection.
    pub fn new(config: Config) -> Requester {
        // One turn of the 24-bit space ahead, so that no counter near the start is negative.
        let first = u64::from(config.first_psn % (1 << 24)) + (1 << 24);
        Requester {
            config,
            messages: VecDeque::new(),
            outputs: VecDeque::new(),
            posted: first,
            unacknowledged: first,
            next: first,
            sent: first,
            retries: 0,
            rnr_retries: 0,
            repetitions: 0,
            paused: None,
            deadline: None,
            repeated: false,
            failure: None,
        }
    }

    /// Processes an event.
    pub fn handle(&mut self, now: Instant, input: Input) {
        match input {
            Input::Post(work) if self.failure.is_some() => self.outputs.push_back(Output::Flushed(work.id)),
            Input::Post(work) => {
                let packets = self.config.mtu.packets(work.length);
                self.messages.push_back(Message { work, first: self.posted, end: self.posted + u64::from(packets) });
                self.posted += u64::from(packets);
            }
            Input::Packet(response) => self.receive(now, response),
            Input::Timeout => self.expire(now),
        }
        self.pump(now);
    }

    /// Next effect.
    pub fn poll_output(&mut self) -> Option<Output> {
        self.outputs.pop_front()
    }

    /// Time of the next `Timeout`.
    pub fn poll_timeout(&self) -> Option<Instant> {
        self.paused.or(self.deadline)
    }

    /// Counter of the next packet to be posted: its PSN, plus a multiple of 2^24.
    pub fn posted(&self) -> u64 {
        self.posted
    }

    /// Reason of the failure.
    pub fn failure(&self) -> Option<Failure> {
        self.failure
    }

    /// Times that it has gone back to repeat packets, after a time-out, a gap or "receiver not
    /// ready".
    pub fn repetitions(&self) -> u64 {
        self.repetitions
    }

    fn expire(&mut self, now: Instant) {
        if self.paused.is_some_and(|until| now >= until) {
            self.paused = None;
        } else if self.paused.is_none() && self.deadline.is_some_and(|deadline| now >= deadline) {
            self.deadline = None;
            self.repeat(self.unacknowledged);
        }
    }

    /// Repeats from a counter, unless the repetitions are used up.
    fn repeat(&mut self, from: u64) {
        if self.retries >= self.config.retries {
            self.fail(Failure::RetriesExceeded);
            return;
        }
        self.retries += 1;
        self.repetitions += 1;
        self.repeated = true;
        self.next = from;
        self.deadline = None;
    }

    fn fail(&mut self, failure: Failure) {
        self.failure = Some(failure);
        self.outputs.push_back(Output::Failed(failure));
        let flushed = self.messages.drain(..).map(|message| Output::Flushed(message.work.id));
        self.outputs.extend(flushed);
        self.paused = None;
        self.deadline = None;
    }

    fn receive(&mut self, now: Instant, response: Response) {
        let Some(at) = response.psn.near(self.unacknowledged) else { return };
        // Answers to packets that are complete, or that were never sent.
        if self.failure.is_some() || at < self.unacknowledged || at >= self.sent {
            return;
        }
        match response.kind {
            ResponseKind::Ack => self.acknowledge(now, at + 1),
            ResponseKind::NakSequence => {
                self.acknowledge(now, at);
                if self.failure.is_none() && self.unacknowledged == at && !self.repeated {
                    self.repeat(at);
                }
            }
            ResponseKind::NotReady(timer) => {
                self.acknowledge(now, at);
                if self.unacknowledged != at || self.paused.is_some() {
                    return;
                }
                if self.config.rnr_retries < 7 && self.rnr_retries >= self.config.rnr_retries {
                    self.fail(Failure::NotReadyExceeded);
                    return;
                }
                self.rnr_retries = self.rnr_retries.saturating_add(1);
                self.repetitions += 1;
                self.paused = Some(now + timer);
                self.next = at;
                self.deadline = None;
            }
            ResponseKind::Nak(reason) => {
                self.acknowledge(now, at);
                if self.failure.is_none() {
                    self.fail(Failure::Rejected(reason));
                }
            }
            ResponseKind::Data { length, .. } => self.data(now, at, length),
        }
    }

    /// Data of a READ acknowledge everything before the READ.
    fn data(&mut self, now: Instant, at: u64, length: u32) {
        let Some(message) = self.messages.iter().find(|message| message.end > at).copied() else { return };
        if message.work.operation != Operation::Read || length != self.length_at(&message, at) {
            return;
        }
        self.acknowledge(now, message.first);
        if self.failure.is_some() {
            return;
        }
        if at == self.unacknowledged {
            self.advance(now, at + 1);
        } else if at > self.unacknowledged && !self.repeated {
            self.repeat(self.unacknowledged);
        }
    }

    /// Applies an acknowledgement of all packets before `end`. A READ in the way has lost data.
    fn acknowledge(&mut self, now: Instant, end: u64) {
        let read = self.messages.iter().find(|message| message.work.operation == Operation::Read);
        let bound = read.map_or(end, |read| end.min(read.first.max(self.unacknowledged)));
        if bound > self.unacknowledged {
            self.advance(now, bound);
        }
        if bound < end && self.failure.is_none() && !self.repeated {
            self.repeat(self.unacknowledged);
        }
    }

    /// Moves the first counter without acknowledgement, and completes messages.
    fn advance(&mut self, now: Instant, to: u64) {
        self.unacknowledged = to;
        self.next = self.next.max(to);
        self.retries = 0;
        self.rnr_retries = 0;
        self.repeated = false;
        while let Some(message) = self.messages.front().filter(|message| message.end <= to) {
            self.outputs.push_back(Output::Completed(message.work.id));
            self.messages.pop_front();
        }
        self.deadline = None;
        if self.next > self.unacknowledged {
            self.deadline = self.config.ack_timeout().map(|span| now + span);
        }
    }

    /// Bytes of the packet with a counter in its message.
    fn length_at(&self, message: &Message, at: u64) -> u32 {
        let before = (at - message.first) * u64::from(self.config.mtu.bytes());
        (u64::from(message.work.length).saturating_sub(before)).min(u64::from(self.config.mtu.bytes())) as u32
    }

    /// Sends as much as the window and the responder resources allow.
    fn pump(&mut self, now: Instant) {
        if self.failure.is_some() || self.paused.is_some() {
            return;
        }
        let mut index = self.messages.iter().position(|message| message.end > self.next).unwrap_or(self.messages.len());
        let mut reads = self.messages.iter().take(index).filter(|m| m.work.operation == Operation::Read).count();
        while let Some(message) = self.messages.get(index).copied() {
            if self.next - self.unacknowledged >= u64::from(self.config.window) {
                break;
            }
            let is_read = message.work.operation == Operation::Read;
            if is_read && reads >= self.config.reads as usize {
                break;
            }
            self.outputs.push_back(Output::Send(self.packet(&message)));
            self.next = if is_read { message.end } else { self.next + 1 };
            if self.next >= message.end {
                index += 1;
                reads += usize::from(is_read);
            }
        }
        self.sent = self.sent.max(self.next);
        if self.next > self.unacknowledged && self.deadline.is_none() {
            self.deadline = self.config.ack_timeout().map(|span| now + span);
        }
    }

    /// Packet with the next counter. A READ that is repeated asks for its missing part only.
    fn packet(&self, message: &Message) -> Request {
        let at = self.next;
        let (part, length, ack) = if message.work.operation == Operation::Read {
            let done = ((at - message.first) * u64::from(self.config.mtu.bytes())) as u32;
            (Part::Only, message.work.length - done, true)
        } else {
            let part = Part::new(at == message.first, at + 1 == message.end);
            let every = u64::from(self.config.ack_every.clamp(1, self.config.window.max(1)));
            // The last packet that the window admits asks as well, or the window would never move.
            let full = at + 1 - self.unacknowledged >= u64::from(self.config.window);
            (part, self.length_at(message, at), part.ends() || (at + 1).is_multiple_of(every) || full)
        };
        Request { psn: Psn::of(at), operation: message.work.operation, part, length, ack }
    }
}
