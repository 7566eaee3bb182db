//! How the machines inside a switch talk to those of other switches: [`Send`], [`Request`], [`Outcome`], and the table of
//! open exchanges, [`Exchanges`].
//!
//! The machines of E_Ports, domains, paths, zones and names know neither OX_IDs nor time-outs of exchanges. They say
//! [`Send`] and hear a [`Request`] of a peer or the [`Outcome`] of their own. The switch that holds them owns the
//! exchanges. A request that nobody answers goes out again, so every request must be harmless when it arrives twice.

use crate::time::{Instant, Span};
use sanloom_wire::{FcId, Message};
use std::collections::{BTreeMap, VecDeque};

/// Another switch, as an address of a message.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum Peer {
    /// The fabric controller at the other end of the link of this port: FFFFFD to FFFFFD.
    Link(u16),
    /// The domain controller of a domain, over whatever path leads there: FFFCxx to FFFCyy.
    Domain(u8),
}

/// A request of a peer, to be answered with [`Send::Answer`] exactly once, at once or later.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct Request {
    /// Who asks.
    pub from: Peer,
    /// Port that the request came in through.
    pub port: u16,
    /// Its exchange at the asking side.
    pub ox_id: u16,
}

/// What a machine wants sent to another switch.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Send {
    /// A request. Its [`Outcome`] comes back with `tag`, whose meaning is the machine's own.
    Request {
        /// To whom.
        to: Peer,
        /// SW_ILS or CT request.
        message: Message,
        /// Comes back with the outcome.
        tag: u32,
    },
    /// The outcome of requests is not waited for any more: none comes, and they are not sent again.
    Withdraw {
        /// To whom.
        to: Peer,
        /// Their tag.
        tag: u32,
    },
    /// The answer to a request: an accept or a reject.
    Answer {
        /// What is answered.
        request: Request,
        /// Accept or reject.
        message: Message,
    },
    /// A message that nobody answers: HLO, LSU, LSA.
    Notice {
        /// To whom.
        to: Peer,
        /// The message.
        message: Message,
    },
}

/// How a request of ours ended.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Outcome {
    /// An accept or a reject came.
    Answered(Message),
    /// Nobody answered, however often it was sent.
    Unanswered,
}

/// Requests on their way. `T` says which machine asked, and its tag.
#[derive(Debug)]
pub struct Exchanges<T> {
    patience: Span,
    open: BTreeMap<u16, Open<T>>,
    /// When each sending is given up, all after the same time.
    deadlines: VecDeque<(Instant, u16, u8)>,
    next_ox_id: u16,
}

#[derive(Debug)]
struct Open<T> {
    to: Peer,
    message: Message,
    owner: T,
    /// How often it was sent.
    sent: u8,
}

/// A request whose time is over.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Due<T> {
    /// It is to be sent again, with this OX_ID.
    Again {
        /// To whom.
        to: Peer,
        /// The request.
        message: Message,
        /// Its new exchange.
        ox_id: u16,
    },
    /// It was sent [`ATTEMPTS`] times.
    GivenUp {
        /// To whom.
        to: Peer,
        /// Who asked.
        owner: T,
    },
}

/// So often a request is sent before it counts as unanswered.
pub const ATTEMPTS: u8 = 3;

/// OX_IDs of a switch's own requests to other switches: apart from those of its RSCNs.
const OX_IDS: std::ops::RangeInclusive<u16> = 0x0001..=0x7fff;

impl<T> Exchanges<T> {
    /// An empty table. An answer may take `patience`.
    pub fn new(patience: Span) -> Exchanges<T> {
        Exchanges { patience, open: BTreeMap::new(), deadlines: VecDeque::new(), next_ox_id: *OX_IDS.start() }
    }

    /// Opens an exchange for a request that is sent now. Nothing if all exchanges are open.
    pub fn open(&mut self, now: Instant, to: Peer, message: Message, owner: T) -> Option<u16> {
        self.insert(now, Open { to, message, owner, sent: 1 })
    }

    /// The request that an answer belongs to, without closing it: its code says how the answer reads.
    pub fn request(&self, from: Peer, ox_id: u16) -> Option<&Message> {
        self.open.get(&ox_id).filter(|open| open.to == from).map(|open| &open.message)
    }

    /// An answer came: who asked. Nothing for an exchange that is not open with this peer.
    pub fn close(&mut self, from: Peer, ox_id: u16) -> Option<T> {
        self.request(from, ox_id)?;
        self.open.remove(&ox_id).map(|open| open.owner)
    }

    /// Forgets what was asked of peers that are gone.
    pub fn forget(&mut self, gone: impl Fn(Peer) -> bool) {
        self.open.retain(|_, open| !gone(open.to));
    }

    /// Forgets what somebody asked of a peer and does not wait for any more.
    pub fn withdraw(&mut self, to: Peer, owner: &T)
    where
        T: PartialEq,
    {
        self.open.retain(|_, open| open.to != to || open.owner != *owner);
    }

    /// The next request whose time is over at `now`.
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

    /// When [`due`](Exchanges::due) may have something next; possibly too early.
    pub fn next_deadline(&self) -> Option<Instant> {
        self.deadlines.front().map(|(at, ..)| *at)
    }

    /// Requests on their way.
    pub fn len(&self) -> usize {
        self.open.len()
    }

    /// Nothing is on its way.
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
        self.deadlines.push_back((now + self.patience, ox_id, open.sent));
        self.open.insert(ox_id, open);
        Some(ox_id)
    }

    fn advance(&mut self) {
        self.next_ox_id = if self.next_ox_id == *OX_IDS.end() { *OX_IDS.start() } else { self.next_ox_id + 1 };
    }
}

impl Peer {
    /// Addresses of a message to the peer: S_ID and D_ID. `own` is the domain of the sender.
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

    const PATIENCE: Span = Span::from_secs(2);

    fn at(seconds: u64) -> Instant {
        Instant::ZERO + Span::from_secs(seconds)
    }

    #[test]
    fn a_request_is_sent_three_times_and_then_given_up() {
        let mut table = Exchanges::new(PATIENCE);
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
    fn an_answer_closes_an_exchange_only_from_the_peer_that_was_asked() {
        let mut table = Exchanges::new(PATIENCE);
        let ox_id = table.open(at(0), Peer::Domain(9), SwIls::Rcf.into(), "zones").unwrap();
        assert_eq!(table.close(Peer::Domain(8), ox_id), None);
        assert_eq!(table.request(Peer::Domain(9), ox_id), Some(&SwIls::Rcf.into()));
        assert_eq!(table.close(Peer::Domain(9), ox_id), Some("zones"));
        assert_eq!(table.close(Peer::Domain(9), ox_id), None);
        assert_eq!(table.due(at(10)), None);
    }

    #[test]
    fn requests_to_a_peer_that_is_gone_are_forgotten() {
        let mut table = Exchanges::new(PATIENCE);
        table.open(at(0), Peer::Link(1), SwIls::Bf.into(), 1);
        table.open(at(0), Peer::Link(2), SwIls::Bf.into(), 2);
        table.forget(|peer| peer == Peer::Link(1));
        let Some(Due::Again { to, .. }) = table.due(at(2)) else { panic!("the other is sent again") };
        assert_eq!((to, table.due(at(2))), (Peer::Link(2), None));
    }

    #[test]
    fn an_exchange_that_is_open_is_not_used_twice() {
        let mut table = Exchanges::new(PATIENCE);
        let held = table.open(at(0), Peer::Link(1), SwIls::Bf.into(), 0).unwrap();
        for n in 1..=40_000 {
            let ox_id = table.open(at(0), Peer::Link(1), SwIls::Bf.into(), n).unwrap();
            assert_ne!(ox_id, held);
            table.close(Peer::Link(1), ox_id);
        }
    }
}
