//! Name queries of switches to which there is no path yet.
//!
//! A switch with a path to this one queries the names of its ports at once, and reveals them to its
//! own ports. Link-state records reach the switches one after the other, so this switch may not
//! have a path back yet. A reply of a local port to the first login from there would then be
//! discarded, and the login repeated only after 2 × R_A_TOV. Therefore the query is answered when a
//! path exists, or after [`MAX_WAIT`] times E_D_TOV.

use super::isls::Isls;
use crate::ils::{Peer, Request};
use sanloom_scsi::time::{Instant, Span};
use sanloom_wire::Message;
use std::collections::VecDeque;

/// Maximum waiting time of a query, in units of E_D_TOV.
const MAX_WAIT: u64 = 2;
/// Maximum number of pending queries. A switch sends one at a time, and there are at most 239
/// switches.
const MAX_QUERIES: usize = 512;

/// Pending queries in the order of arrival, each with its deadline.
#[derive(Debug)]
pub(super) struct EarlyQueries {
    timeout: Span,
    queries: VecDeque<(Instant, Request, Message)>,
}

impl EarlyQueries {
    pub(super) fn new(e_d_tov: Span) -> EarlyQueries {
        EarlyQueries { timeout: e_d_tov.times(MAX_WAIT), queries: VecDeque::new() }
    }

    pub(super) fn next_deadline(&self) -> Option<Instant> {
        self.queries.front().map(|(until, ..)| *until)
    }

    /// Queues a query that cannot be answered yet. Returns it if it is to be answered at once.
    pub(super) fn push(
        &mut self,
        now: Instant,
        isls: &Isls,
        request: Request,
        message: Message,
    ) -> Option<(Request, Message)> {
        // A repeated query replaces the earlier copy.
        self.queries.retain(|(_, other, _)| (other.from, other.ox_id) != (request.from, request.ox_id));
        if can_answer(isls, &request) || self.queries.len() >= MAX_QUERIES {
            return Some((request, message));
        }
        self.queries.push_back((now + self.timeout, request, message));
        None
    }

    /// Removes and returns a query that no longer has to wait.
    pub(super) fn pop(&mut self, now: Instant, isls: &Isls) -> Option<(Request, Message)> {
        let is_due = |(until, request, _): &(Instant, Request, Message)| *until <= now || can_answer(isls, request);
        let at = self.queries.iter().position(is_due)?;
        self.queries.remove(at).map(|(_, request, message)| (request, message))
    }
}

fn can_answer(isls: &Isls, request: &Request) -> bool {
    match request.from {
        Peer::Domain(domain) => isls.is_reachable(domain),
        Peer::Link(_) => true,
    }
}
