//! Outputs of a zone server and its requests in flight: [`Outbox`].

use super::Output;
use crate::ils::{Peer, Request, Send};
use crate::zoning::objects::Zones;
use sanloom_wire::sw_ils::{SwIls, SwRjt, SwRjtExplanation, SwRjtReason};
use std::collections::{BTreeMap, VecDeque};

/// Queue of outputs, and the requests whose outcome is pending.
#[derive(Debug, Default)]
pub(super) struct Outbox {
    queue: VecDeque<Output>,
    pending: BTreeMap<u32, Pending>,
    next_tag: u32,
}

/// Subject of a request in flight.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) enum Pending {
    /// ESS on a link.
    Support { port: u16 },
    /// MRRA on a link.
    Room { port: u16 },
    /// MR on a link, with the database that it carries.
    Merge { port: u16, zones: Zones },
    /// ACA, SFC, UFC or RCA to a domain.
    Domain { domain: u8 },
}

impl Pending {
    /// Port of the link, unless the request is for a domain.
    pub(super) fn port(&self) -> Option<u16> {
        match self {
            Pending::Support { port } | Pending::Room { port } | Pending::Merge { port, .. } => Some(*port),
            Pending::Domain { .. } => None,
        }
    }

    /// Domain to which the request was sent, unless it is for a link.
    pub(super) fn domain(&self) -> Option<u8> {
        match self {
            Pending::Domain { domain } => Some(*domain),
            _ => None,
        }
    }
}

impl Outbox {
    pub(super) fn push(&mut self, output: Output) {
        self.queue.push_back(output);
    }

    pub(super) fn pop(&mut self) -> Option<Output> {
        self.queue.pop_front()
    }

    /// Sends a request on a link or to a domain.
    pub(super) fn request(&mut self, to: Peer, ils: SwIls, pending: Pending) {
        let tag = self.next_tag;
        self.next_tag = self.next_tag.wrapping_add(1);
        self.pending.insert(tag, pending);
        self.push(Output::Send(Send::Request { to, message: ils.into(), tag }));
    }

    /// Sends a request to the domain controller of another switch.
    pub(super) fn request_domain(&mut self, domain: u8, ils: SwIls) {
        self.request(Peer::Domain(domain), ils, Pending::Domain { domain });
    }

    /// Removes and returns the subject of a request that has ended.
    pub(super) fn take(&mut self, tag: u32) -> Option<Pending> {
        self.pending.remove(&tag)
    }

    /// Drops the requests for which the condition does not hold; their outcomes are ignored.
    pub(super) fn retain(&mut self, condition: impl Fn(&Pending) -> bool) {
        self.pending.retain(|_, pending| condition(pending));
    }

    /// Returns true if a request to the domain is in flight.
    pub(super) fn is_pending(&self, domain: u8) -> bool {
        self.pending.values().any(|pending| pending.domain() == Some(domain))
    }

    pub(super) fn answer(&mut self, request: Request, reply: impl Into<SwIls>) {
        let reply: SwIls = reply.into();
        self.push(Output::Send(Send::Answer { request, message: reply.into() }));
    }

    pub(super) fn reject(&mut self, request: Request, reason: SwRjtReason, explanation: SwRjtExplanation) {
        self.answer(request, SwRjt::new(reason, explanation));
    }
}
