//! Name-server queries that wait until all switches have registered their sender:
//! [`DeferredQueries`].
//!
//! Hard zoning is checked in the switch that owns the D_ID. That switch permits a port of another
//! switch only after the notification of its login. If a host receives the address of a port too
//! early, its PLOGI is lost, and the host repeats it only after twice R_A_TOV (FC-LS, timeouts of
//! extended link services).
//!
//! Therefore the reply waits until all reachable domains have accepted the notification.
//! Permissions thus precede the reply that reveals them, across switches as within one. The cost is
//! one round trip, which the preceding registrations mostly hide. Without hard zoning no query
//! waits.
//!
//! A zone change takes effect switch by switch. While another switch may lack it (see
//! [`ZoneServer::others_may_differ`]), newly permitted ports are not revealed, and the queries
//! wait.
//!
//! [`ZoneServer::others_may_differ`]: crate::zoning::server::ZoneServer::others_may_differ
//!
//! A domain that does not reply must not separate hosts from the others. After [`MAX_WAIT`] times
//! E_D_TOV, which suffices for a notification that is lost once, the query is answered anyway.

use sanloom_scsi::time::{Instant, Span};
use sanloom_wire::ct::{Ct, CtBody};
use sanloom_wire::{FcId, FcType, Frame, Message, Payload, RCtl};
use std::collections::{BTreeMap, VecDeque};

/// Maximum waiting time of a query, in units of E_D_TOV.
const MAX_WAIT: u64 = 2;
/// Maximum number of waiting queries; further ones are answered at once. A host sends one or two
/// when it logs in.
const MAX_QUERIES: usize = 1 << 16;

/// Position of a query: the login that it waits for, if any (see
/// [`crate::names::NameExchange::unannounced_login`]), then the order of arrival.
type Position = (Option<u64>, u64);

/// Queries in the order of the logins that they wait for.
#[derive(Debug)]
pub(super) struct DeferredQueries {
    timeout: Span,
    /// Ingress port and frame of each query.
    queries: BTreeMap<Position, (u16, Frame)>,
    /// Deadlines of the queries; all have the same timeout.
    deadlines: VecDeque<(Instant, Position)>,
    next: u64,
}

impl DeferredQueries {
    pub(super) fn new(e_d_tov: Span) -> DeferredQueries {
        let timeout = e_d_tov.times(MAX_WAIT);
        DeferredQueries { timeout, queries: BTreeMap::new(), deadlines: VecDeque::new(), next: 0 }
    }

    pub(super) fn len(&self) -> usize {
        self.queries.len()
    }

    /// Returns true if no further query may wait.
    pub(super) fn is_full(&self) -> bool {
        self.queries.len() >= MAX_QUERIES
    }

    pub(super) fn next_deadline(&self) -> Option<Instant> {
        self.deadlines.front().map(|(at, _)| *at)
    }

    /// Drops the queries of a port that went down.
    pub(super) fn drop_port(&mut self, port: u16) {
        self.queries.retain(|_, (of, _)| *of != port);
        self.drop_expired();
    }

    pub(super) fn push(&mut self, now: Instant, login: Option<u64>, port: u16, frame: Frame) {
        let position = (login, self.next);
        self.next += 1;
        self.queries.insert(position, (port, frame));
        self.deadlines.push_back((now + self.timeout, position));
    }

    /// Removes and returns a query that may be answered: it waits for no login, or for one before
    /// `known`, or its deadline has expired. If `known` is `None`, all queries without an expired
    /// deadline must wait.
    pub(super) fn pop(&mut self, now: Instant, known: Option<u64>) -> Option<(u16, Frame)> {
        let expired = self.deadlines.front().filter(|(at, _)| *at <= now).map(|(_, position)| *position);
        let is_known = |(login, _): &Position| known.is_some_and(|known| login.is_none_or(|login| login < known));
        let known = self.queries.first_key_value().map(|(position, _)| *position).filter(is_known);
        let query = self.queries.remove(&expired.or(known)?);
        self.drop_expired();
        query
    }

    /// Drops the deadlines at the front that belong to answered queries.
    fn drop_expired(&mut self) {
        while self.deadlines.front().is_some_and(|(_, position)| !self.queries.contains_key(position)) {
            self.deadlines.pop_front();
        }
    }
}

/// Returns true for a query to the name server. Registrations are excluded, because they reveal
/// nothing.
pub(super) fn is_query(frame: &Frame) -> bool {
    let header = &frame.header;
    if header.d_id != FcId::NAME_SERVER || header.fc_type != FcType::CT || header.r_ctl != RCtl::UNSOLICITED_CONTROL {
        return false;
    }
    let command = match &frame.payload {
        Payload::Typed(Message::Ct(ct)) => match &ct.body {
            CtBody::Ns(request) => request.command(),
            _ => return false,
        },
        Payload::Bytes(bytes) => match Ct::preamble(bytes) {
            Some(ct) => ct.command(),
            None => return false,
        },
        _ => return false,
    };
    command >> 8 == QUERIES
}

/// High byte of the query commands: GA_NXT, G*_ID, G*_PN, G*_NN, G*_FT and the like (FC-GS, name
/// server).
const QUERIES: u16 = 0x01;
