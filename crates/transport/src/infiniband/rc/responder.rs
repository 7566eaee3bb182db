//! Responder of a reliable connection: accepts messages in order, acknowledges, answers READs.

use super::Config;
use super::packet::{Fatal, Operation, Part, Psn, Request, Response, ResponseKind};
use std::collections::VecDeque;

/// Event of the responder. It needs no time.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Input {
    /// A packet of the requester.
    Packet(Request),
    /// This many receives were posted.
    Receives(u32),
}

/// Effect of an event.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Output {
    /// Send this packet.
    Send(Response),
    /// A SEND or WRITE of this length has arrived whole, or a READ was accepted. The order is that
    /// of the requester.
    Message(Operation, u32),
    /// A request was invalid, and the queue pair has failed.
    Failed(Fatal),
}

/// Answer that is not sent yet.
#[derive(Clone, Copy, Debug)]
enum Answer {
    One(Response),
    /// Responses of a READ from a counter to an end.
    Data {
        at: u64,
        first: u64,
        end: u64,
        left: u32,
        duplicate: bool,
    },
}

/// Responder.
#[derive(Clone, Debug)]
pub struct Responder {
    config: Config,
    answers: VecDeque<Answer>,
    outputs: VecDeque<Output>,
    /// Counter of the next packet.
    expected: u64,
    /// Operation and bytes of the message that has begun.
    message: Option<(Operation, u32)>,
    receives: u32,
    /// A sequence error was reported, and the expected packet has not come yet.
    reported: bool,
    failed: bool,
}

impl Responder {
    /// Responder of a new connection, with the parameters of the requester.
    pub fn new(config: Config) -> Responder {
        let expected = u64::from(config.first_psn % (1 << 24)) + (1 << 24);
        Responder {
            config,
            answers: VecDeque::new(),
            outputs: VecDeque::new(),
            expected,
            message: None,
            receives: 0,
            reported: false,
            failed: false,
        }
    }

    /// Processes an event.
    pub fn handle(&mut self, input: Input) {
        match input {
            Input::Receives(count) => self.receives = self.receives.saturating_add(count),
            Input::Packet(request) => self.receive(request),
        }
    }

    /// Counter of the next packet in sequence: its PSN, plus a multiple of 2^24. A call of
    /// [`handle`](Self::handle) that moves it has accepted the packet.
    pub fn expected(&self) -> u64 {
        self.expected
    }

    /// Next effect. Responses of a READ are made one by one.
    pub fn poll_output(&mut self) -> Option<Output> {
        if let Some(output) = self.outputs.pop_front() {
            return Some(output);
        }
        let mtu = self.config.mtu.bytes();
        match self.answers.front_mut()? {
            Answer::One(response) => {
                let response = *response;
                self.answers.pop_front();
                Some(Output::Send(response))
            }
            Answer::Data { at, first, end, left, .. } => {
                let length = mtu.min(*left);
                let part = Part::new(at == first, *at + 1 == *end);
                let response = Response { psn: Psn::of(*at), kind: ResponseKind::Data { part, length } };
                *at += 1;
                *left -= length;
                if at == end {
                    self.answers.pop_front();
                }
                Some(Output::Send(response))
            }
        }
    }

    fn answer(&mut self, at: u64, kind: ResponseKind) {
        self.answers.push_back(Answer::One(Response { psn: Psn::of(at), kind }));
    }

    fn receive(&mut self, request: Request) {
        let Some(at) = request.psn.near(self.expected) else { return };
        if self.failed {
            return;
        }
        if at > self.expected {
            // One report per gap; the requester repeats everything from there.
            if !std::mem::replace(&mut self.reported, true) {
                self.answer(self.expected, ResponseKind::NakSequence);
            }
        } else if at < self.expected {
            self.duplicate(at, request);
        } else {
            self.accept(request);
        }
    }

    /// A packet that has been processed: a READ is answered again, all others are acknowledged.
    fn duplicate(&mut self, at: u64, request: Request) {
        if request.operation != Operation::Read {
            self.answer(self.expected - 1, ResponseKind::Ack);
            return;
        }
        let end = at + u64::from(self.config.mtu.packets(request.length));
        if end <= self.expected && self.reads(true) < self.config.reads as usize {
            self.answers.push_back(Answer::Data { at, first: at, end, left: request.length, duplicate: true });
        }
    }

    /// Reads that are not answered to the end.
    fn reads(&self, duplicates: bool) -> usize {
        let is_read = |answer: &&Answer| matches!(answer, Answer::Data { duplicate, .. } if *duplicate == duplicates);
        self.answers.iter().filter(is_read).count()
    }

    /// Packet in sequence.
    fn accept(&mut self, request: Request) {
        let mtu = self.config.mtu.bytes();
        let whole = if request.part.ends() { request.length <= mtu } else { request.length == mtu };
        let valid = match (request.operation, self.message) {
            (Operation::Read, None) => request.part == Part::Only && self.reads(false) < self.config.reads as usize,
            (Operation::Read, Some(_)) => false,
            (_, None) => request.part.begins() && whole,
            (operation, Some((begun, _))) => {
                !request.part.begins() && operation == begun && whole && request.length > 0
            }
        };
        if !valid {
            self.fail(Fatal::InvalidRequest);
            return;
        }
        if request.operation == Operation::Send && request.part.begins() {
            let Some(left) = self.receives.checked_sub(1) else {
                self.answer(self.expected, ResponseKind::NotReady(self.config.rnr_timer));
                // Later packets of the window get no report of a gap, because they are repeated.
                self.reported = true;
                return;
            };
            self.receives = left;
        }
        self.reported = false;
        let at = self.expected;
        if request.operation == Operation::Read {
            let end = at + u64::from(self.config.mtu.packets(request.length));
            self.answers.push_back(Answer::Data { at, first: at, end, left: request.length, duplicate: false });
            self.expected = end;
            self.outputs.push_back(Output::Message(Operation::Read, request.length));
            return;
        }
        self.expected += 1;
        let bytes = self.message.take().map_or(0, |(_, bytes)| bytes);
        let Some(bytes) = bytes.checked_add(request.length) else {
            self.fail(Fatal::InvalidRequest);
            return;
        };
        if request.part.ends() {
            self.outputs.push_back(Output::Message(request.operation, bytes));
        } else {
            self.message = Some((request.operation, bytes));
        }
        if request.ack {
            self.answer(at, ResponseKind::Ack);
        }
    }

    fn fail(&mut self, reason: Fatal) {
        self.failed = true;
        self.answer(self.expected, ResponseKind::Nak(reason));
        self.outputs.push_back(Output::Failed(reason));
    }
}
