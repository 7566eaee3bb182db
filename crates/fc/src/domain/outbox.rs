//! Outputs of domain management, and its requests in flight: [`Outbox`].

use super::Output;
use super::rebuild::Kind;
use crate::ils::{Peer, Request, Send};
use sanloom_wire::Wwnn;
use sanloom_wire::sw_ils::{SwIls, SwRjt, SwRjtExplanation, SwRjtReason};
use std::collections::{BTreeMap, VecDeque};

/// Purpose of a request in flight.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Purpose {
    Efp(u16),
    Dia(u16),
    Rebuild(u16, Kind),
    /// RDI for this switch.
    Rdi(u16),
    /// RDI for another switch.
    Relay(u16, Wwnn),
    /// EFP over an isolated link, which gives the other end the reason.
    Notice(u16),
}

impl Purpose {
    pub(super) fn port(self) -> u16 {
        match self {
            Purpose::Efp(port) | Purpose::Dia(port) | Purpose::Rebuild(port, _) => port,
            Purpose::Rdi(port) | Purpose::Relay(port, _) | Purpose::Notice(port) => port,
        }
    }
}

/// Output queue and requests in flight.
#[derive(Debug, Default)]
pub(super) struct Outbox {
    in_flight: BTreeMap<u32, Purpose>,
    next_tag: u32,
    outputs: VecDeque<Output>,
    rejected: u64,
}

impl Outbox {
    pub(super) fn poll_output(&mut self) -> Option<Output> {
        self.outputs.pop_front()
    }

    /// Number of rejected requests of neighbours.
    pub(super) fn requests_rejected(&self) -> u64 {
        self.rejected
    }

    /// Queues an output that is not a message.
    pub(super) fn report(&mut self, output: Output) {
        self.outputs.push_back(output);
    }

    /// Sends a request and returns its tag.
    pub(super) fn request(&mut self, message: SwIls, purpose: Purpose) -> u32 {
        let tag = self.next_tag;
        self.next_tag = self.next_tag.wrapping_add(1);
        self.in_flight.insert(tag, purpose);
        let to = Peer::Link(purpose.port());
        self.report(Output::Send(Send::Request { to, message: message.into(), tag }));
        tag
    }

    /// Removes the request of an outcome; `None` if it was dropped.
    pub(super) fn take(&mut self, tag: u32) -> Option<Purpose> {
        self.in_flight.remove(&tag)
    }

    /// Drops requests in flight; their outcomes are ignored.
    pub(super) fn drop_requests(&mut self, dropped: impl Fn(Purpose) -> bool) {
        self.in_flight.retain(|_, purpose| !dropped(*purpose));
    }

    pub(super) fn answer(&mut self, request: Request, answer: SwIls) {
        self.report(Output::Send(Send::Answer { request, message: answer.into() }));
    }

    pub(super) fn reject(&mut self, request: Request, reject: SwRjt) {
        self.rejected += 1;
        self.answer(request, reject.into());
    }

    /// Rejects a request as busy, so that its sender repeats it.
    pub(super) fn reject_busy(&mut self, request: Request) {
        self.answer(request, SwRjt::new(SwRjtReason::LOGICAL_BUSY, SwRjtExplanation::NONE).into());
    }
}
