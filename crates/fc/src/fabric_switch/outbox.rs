//! Outputs of a whole switch, and its exchanges with other switches: [`Outbox`].

use super::isls::Isls;
use super::{Event, Output};
use crate::ils::{Due, Exchanges, Peer, Request, Send};
use sanloom_scsi::time::{Instant, Span};
use sanloom_wire::header::RX_ID_UNASSIGNED;
use sanloom_wire::sw_ils::{SwIls, SwRjt};
use sanloom_wire::{Frame, Message, Payload};
use std::collections::VecDeque;

/// OX_IDs of messages without a reply, separate from those of [`Exchanges`].
const NOTICES: u16 = 0x8000;

/// Machine that sent a request to another switch.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Owner {
    EPort(u16),
    Domain,
    Zones,
    /// FSPF, which sends no requests that have a reply.
    Paths,
    Names,
}

/// Own domain and links, which determine the addresses and the egress port of a message.
#[derive(Clone, Copy)]
pub(super) struct Route<'s> {
    pub(super) domain: Option<u8>,
    pub(super) isls: &'s Isls,
}

/// Queue of outputs, and the requests to other switches whose reply is pending.
#[derive(Debug)]
pub(super) struct Outbox {
    queue: VecDeque<Output>,
    exchanges: Exchanges<(Owner, u32)>,
    next_notice: u16,
    /// Number of messages of other switches that were discarded.
    discarded: u64,
}

impl Outbox {
    pub(super) fn new(e_d_tov: Span) -> Outbox {
        Outbox { queue: VecDeque::new(), exchanges: Exchanges::new(e_d_tov), next_notice: 0, discarded: 0 }
    }

    pub(super) fn push(&mut self, output: Output) {
        self.queue.push_back(output);
    }

    pub(super) fn pop(&mut self) -> Option<Output> {
        self.queue.pop_front()
    }

    pub(super) fn event(&mut self, event: Event) {
        self.push(Output::Event(event));
    }

    /// Counts a message of another switch that is discarded.
    pub(super) fn discard(&mut self) {
        self.discarded += 1;
    }

    /// Number of discarded messages.
    pub(super) fn discarded(&self) -> u64 {
        self.discarded
    }

    /// Number of requests in flight.
    pub(super) fn open_requests(&self) -> usize {
        self.exchanges.len()
    }

    pub(super) fn next_deadline(&self) -> Option<Instant> {
        self.exchanges.next_deadline()
    }

    /// Request to which a reply of the peer belongs.
    pub(super) fn request_of(&self, from: Peer, ox_id: u16) -> Option<&Message> {
        self.exchanges.request(from, ox_id)
    }

    /// Closes the exchange of a reply. Returns the machine and the tag of its request.
    pub(super) fn close(&mut self, from: Peer, ox_id: u16) -> Option<(Owner, u32)> {
        self.exchanges.close(from, ox_id)
    }

    /// Drops all requests to a peer that is gone.
    pub(super) fn drop_requests(&mut self, to: Peer) {
        self.exchanges.forget(|peer| peer == to);
    }

    /// Repeats the requests whose reply is overdue. Returns the next one that got no reply after
    /// all attempts.
    pub(super) fn repeat_due(&mut self, now: Instant, route: Route<'_>) -> Option<(Owner, u32)> {
        loop {
            match self.exchanges.due(now)? {
                Due::Again { to, message, ox_id } => self.transmit(route, to, ox_id, message),
                Due::GivenUp { owner, .. } => return Some(owner),
            }
        }
    }

    /// Sends a message of a machine. Returns the request if no exchange is free for it, so that it
    /// remains unanswered.
    pub(super) fn send(&mut self, now: Instant, route: Route<'_>, owner: Owner, send: Send) -> Option<(Owner, u32)> {
        match send {
            Send::Request { to, message, tag } => {
                let Some(ox_id) = self.exchanges.open(now, to, message.clone(), (owner, tag)) else {
                    return Some((owner, tag));
                };
                self.transmit(route, to, ox_id, message);
            }
            Send::Withdraw { to, tag } => self.exchanges.withdraw(to, &(owner, tag)),
            Send::Answer { request, message } => self.answer(route, request, message),
            Send::Notice { to, message } => {
                self.next_notice = self.next_notice.wrapping_add(1) | NOTICES;
                self.transmit(route, to, self.next_notice, message);
            }
        }
        None
    }

    /// Rejects a request that no machine processes.
    pub(super) fn reject(&mut self, route: Route<'_>, request: Request, reject: SwRjt) {
        self.discard();
        self.answer(route, request, SwIls::from(reject).into());
    }

    /// Sends the first message of an exchange originated here.
    fn transmit(&mut self, route: Route<'_>, to: Peer, ox_id: u16, message: Message) {
        let egress = route.isls.egress(to);
        self.send_frame(route, egress, to, ox_id, message);
    }

    /// Sends a reply. The requesting switch may have a path earlier than this one; the reply then
    /// returns through the ingress port.
    fn answer(&mut self, route: Route<'_>, request: Request, message: Message) {
        let egress = route.isls.egress(request.from).or_else(|| route.isls.egress(Peer::Link(request.port)));
        self.send_frame(route, egress, request.from, request.ox_id, message);
    }

    fn send_frame(&mut self, route: Route<'_>, egress: Option<u16>, to: Peer, ox_id: u16, message: Message) {
        let Some(port) = egress else { return };
        let (s_id, d_id) = to.addresses(route.domain.unwrap_or(0));
        let header = message.header(s_id, d_id, ox_id, RX_ID_UNASSIGNED);
        self.push(Output::Send { port, frame: Frame { header, payload: Payload::Typed(message) } });
    }
}
