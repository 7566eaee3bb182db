//! Communication between the machines of different switches: [`Send`], [`Request`], [`Outcome`],
//! and the table of open exchanges, [`Exchanges`].
//!
//! The machines for E_Ports, domains, paths, zones and names do not handle OX_IDs or timeouts of
//! exchanges. A machine emits [`Send`], and receives a [`Request`] of a peer or the [`Outcome`] of
//! its own request. The switch that contains them owns the exchanges. A request without a reply is
//! sent again, so every request must be harmless when it arrives twice.

use sanloom_scsi::time::{Instant, Span};
use sanloom_wire::{FcId, Message};
use std::collections::{BTreeMap, VecDeque};

/// Another switch, as the destination or source of a message.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum Peer {
    /// Fabric controller at the other end of the link of this port: FFFFFD to FFFFFD.
    Link(u16),
    /// Domain controller of a domain, over any path: FFFCxx to FFFCyy.
    Domain(u8),
}

/// Request of a peer. It must be answered with [`Send::Answer`] exactly once, at once or later.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct Request {
    /// Sender of the request.
    pub from: Peer,
    /// Port on which the request arrived.
    pub port: u16,
    /// OX_ID of the exchange, chosen by the sender.
    pub ox_id: u16,
}

/// Message to another switch, emitted by a machine.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Send {
    /// Request. Its [`Outcome`] is returned with `tag`, which only the machine interprets.
    Request {
        /// Destination of the request.
        to: Peer,
        /// SW_ILS or CT request.
        message: Message,
        /// Tag returned with the outcome.
        tag: u32,
    },
    /// Withdrawal of requests: no outcome is returned and they are not repeated.
    Withdraw {
        /// Destination of the requests.
        to: Peer,
        /// Tag of the requests.
        tag: u32,
    },
    /// Reply to a request: an accept or a reject.
    Answer {
        /// Request that is answered.
        request: Request,
        /// Accept or reject.
        message: Message,
    },
    /// Message without a reply: HLO, LSU, LSA.
    Notice {
        /// Destination of the message.
        to: Peer,
        /// Message to send.
        message: Message,
    },
}

/// Outcome of a request.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Outcome {
    /// Accept or reject of the peer.
    Answered(Message),
    /// No reply after all attempts.
    Unanswered,
}

/// Requests in flight. `T` identifies the requesting machine and its tag.
#[derive(Debug)]
pub struct Exchanges<T> {
    timeout: Span,
    open: BTreeMap<u16, Open<T>>,
    /// Deadlines of all transmissions. All have the same timeout, so they are in order.
    deadlines: VecDeque<(Instant, u16, u8)>,
    next_ox_id: u16,
}

#[derive(Debug)]
struct Open<T> {
    to: Peer,
    message: Message,
    owner: T,
    /// Number of transmissions.
    sent: u8,
}

/// Request with an expired deadline.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Due<T> {
    /// The request must be sent again with this OX_ID.
    Again {
        /// Destination of the request.
        to: Peer,
        /// Request to send.
        message: Message,
        /// OX_ID of the new exchange.
        ox_id: u16,
    },
    /// The request was sent [`ATTEMPTS`] times without a reply.
    GivenUp {
        /// Destination of the request.
        to: Peer,
        /// Requesting machine.
        owner: T,
    },
}

/// Number of transmissions before a request counts as unanswered.
pub const ATTEMPTS: u8 = 3;

/// OX_IDs of a switch's requests to other switches, separate from those of its RSCNs.
const OX_IDS: std::ops::RangeInclusive<u16> = 0x0001..=0x7fff;

impl<T> Exchanges<T> {
    /// Returns an empty table. `timeout` is the timeout of each transmission.
    pub fn new(timeout: Span) -> Exchanges<T> {
        Exchanges { timeout, open: BTreeMap::new(), deadlines: VecDeque::new(), next_ox_id: *OX_IDS.start() }
    }

    /// Opens an exchange for a request sent now. Returns `None` if all exchanges are open.
    pub fn open(&mut self, now: Instant, to: Peer, message: Message, owner: T) -> Option<u16> {
        self.insert(now, Open { to, message, owner, sent: 1 })
    }

    /// Request that a reply belongs to; the exchange stays open. The command code of the request
    /// determines how to parse the reply.
    pub fn request(&self, from: Peer, ox_id: u16) -> Option<&Message> {
        self.open.get(&ox_id).filter(|open| open.to == from).map(|open| &open.message)
    }

    /// Closes the exchange of a reply and returns its owner. Returns `None` if no exchange with
    /// this peer is open under the OX_ID.
    pub fn close(&mut self, from: Peer, ox_id: u16) -> Option<T> {
        self.request(from, ox_id)?;
        self.open.remove(&ox_id).map(|open| open.owner)
    }

    /// Drops all requests to peers that are gone.
    pub fn forget(&mut self, gone: impl Fn(Peer) -> bool) {
        self.open.retain(|_, open| !gone(open.to));
    }

    /// Drops the requests of `owner` to a peer.
    pub fn withdraw(&mut self, to: Peer, owner: &T)
    where
        T: PartialEq,
    {
        self.open.retain(|_, open| open.to != to || open.owner != *owner);
    }

    /// Next request with a deadline not after `now`.
    pub fn due(&mut self, now: Instant) -> Option<Due<T>> {
        while let Some(&(at, ox_id, sent)) = self.deadlines.front() {
            let waits = self.open.get(&ox_id).is_some_and(|open| open.sent == sent);
            if waits && at > now {
                return None;
            }
            self.deadlines.pop_front();
            if !waits {
                continue;
            }
            let open = self.open.remove(&ox_id)?;
            if open.sent >= ATTEMPTS {
                return Some(Due::GivenUp { to: open.to, owner: open.owner });
            }
            let (to, message) = (open.to, open.message.clone());
            let ox_id = self.insert(now, Open { sent: open.sent + 1, ..open })?;
            return Some(Due::Again { to, message, ox_id });
        }
        None
    }

    /// Earliest time at which [`due`](Exchanges::due) may have a result; it may be too early.
    pub fn next_deadline(&self) -> Option<Instant> {
        self.deadlines.front().map(|(at, ..)| *at)
    }

    /// Number of requests in flight.
    pub fn len(&self) -> usize {
        self.open.len()
    }

    /// Returns true if no request is in flight.
    pub fn is_empty(&self) -> bool {
        self.open.is_empty()
    }

    fn insert(&mut self, now: Instant, open: Open<T>) -> Option<u16> {
        if self.open.len() >= OX_IDS.len() {
            return None;
        }
        while self.open.contains_key(&self.next_ox_id) {
            self.advance();
        }
        let ox_id = self.next_ox_id;
        self.advance();
        self.deadlines.push_back((now + self.timeout, ox_id, open.sent));
        self.open.insert(ox_id, open);
        Some(ox_id)
    }

    fn advance(&mut self) {
        self.next_ox_id = if self.next_ox_id == *OX_IDS.end() { *OX_IDS.start() } else { self.next_ox_id + 1 };
    }
}

impl Peer {
    /// S_ID and D_ID of a message to the peer. `own` is the domain of the sender.
    pub fn addresses(self, own: u8) -> (FcId, FcId) {
        match self {
            Peer::Link(_) => (FcId::FABRIC_CONTROLLER, FcId::FABRIC_CONTROLLER),
            Peer::Domain(domain) => (FcId::domain_controller(own), FcId::domain_controller(domain)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use sanloom_wire::sw_ils::SwIls;

    const TIMEOUT: Span = Span::from_secs(2);

    fn at(seconds: u64) -> Instant {
        Instant::ZERO + Span::from_secs(seconds)
    }

    #[test]
    fn a_request_is_sent_three_times_and_then_abandoned() {
        let mut table = Exchanges::new(TIMEOUT);
        let first = table.open(at(0), Peer::Link(3), SwIls::Bf.into(), 7).unwrap();
        assert_eq!(table.due(at(1)), None);
        let Some(Due::Again { to: Peer::Link(3), ox_id: second, .. }) = table.due(at(2)) else { panic!("sent again") };
        assert_ne!(first, second);
        assert_eq!(table.close(Peer::Link(3), first), None, "an answer to the first sending is too late");
        assert!(matches!(table.due(at(4)), Some(Due::Again { .. })));
        assert_eq!(table.due(at(6)), Some(Due::GivenUp { to: Peer::Link(3), owner: 7 }));
        assert_eq!((table.due(at(100)), table.len(), table.next_deadline()), (None, 0, None));
    }

    #[test]
    fn a_reply_closes_an_exchange_only_if_it_is_from_the_peer_of_the_request() {
        let mut table = Exchanges::new(TIMEOUT);
        let ox_id = table.open(at(0), Peer::Domain(9), SwIls::Rcf.into(), "zones").unwrap();
        assert_eq!(table.close(Peer::Domain(8), ox_id), None);
        assert_eq!(table.request(Peer::Domain(9), ox_id), Some(&SwIls::Rcf.into()));
        assert_eq!(table.close(Peer::Domain(9), ox_id), Some("zones"));
        assert_eq!(table.close(Peer::Domain(9), ox_id), None);
        assert_eq!(table.due(at(10)), None);
    }

    #[test]
    fn requests_to_a_removed_peer_are_dropped() {
        let mut table = Exchanges::new(TIMEOUT);
        table.open(at(0), Peer::Link(1), SwIls::Bf.into(), 1);
        table.open(at(0), Peer::Link(2), SwIls::Bf.into(), 2);
        table.forget(|peer| peer == Peer::Link(1));
        let Some(Due::Again { to, .. }) = table.due(at(2)) else { panic!("the other is sent again") };
        assert_eq!((to, table.due(at(2))), (Peer::Link(2), None));
    }

    #[test]
    fn an_exchange_that_is_open_is_not_used_twice() {
        let mut table = Exchanges::new(TIMEOUT);
        let held = table.open(at(0), Peer::Link(1), SwIls::Bf.into(), 0).unwrap();
        for n in 1..=40_000 {
            let ox_id = table.open(at(0), Peer::Link(1), SwIls::Bf.into(), n).unwrap();
            assert_ne!(ox_id, held);
            table.close(Peer::Link(1), ox_id);
        }
    }
}
