//! Questions of switches to which there is no path yet.
//!
//! A switch that has a path to this one asks at once for the names of its ports, and shows them to its own. But records of links
//! come to switches one after the other, so this one may not have a path to them yet: what a port here answers to the first
//! login from there would be discarded, and the login repeated after 2 × R_A_TOV. So the question is answered when there is a path,
//! or after [`PATIENCE`] times E_D_TOV.

use super::FabricSwitch;
use crate::ils::{Peer, Request};
use crate::names;
use crate::time::Instant;
use sanloom_wire::Message;
use std::collections::VecDeque;

/// How long a question waits at most, in E_D_TOV.
const PATIENCE: u64 = 2;
/// So many questions wait at most. A switch asks one at a time, and there are at most 239.
const MOST: usize = 512;

/// Questions in the order in which they came, with the end of their time.
#[derive(Debug, Default)]
pub(super) struct Early(VecDeque<(Instant, Request, Message)>);

impl Early {
    pub(super) fn next_deadline(&self) -> Option<Instant> {
        self.0.front().map(|(until, ..)| *until)
    }
}

impl FabricSwitch {
    /// A question of another switch about names.
    pub(super) fn ask_names(&mut self, now: Instant, request: Request, message: Message) {
        // One that is repeated waits once.
        self.early.0.retain(|(_, other, _)| (other.from, other.ox_id) != (request.from, request.ox_id));
        if self.can_answer(&request) || self.early.0.len() >= MOST {
            return self.names.handle(now, names::Input::Request { request, message });
        }
        let until = now + self.config.services.e_d_tov.times(PATIENCE);
        self.early.0.push_back((until, request, message));
    }

    /// Answers a question that need not wait any more. True if there was one.
    pub(super) fn answer_early(&mut self, now: Instant) -> bool {
        let is_due = |(until, request, _): &(Instant, Request, Message)| *until <= now || self.can_answer(request);
        let Some(at) = self.early.0.iter().position(is_due) else { return false };
        if let Some((_, request, message)) = self.early.0.remove(at) {
            self.names.handle(now, names::Input::Request { request, message });
        }
        true
    }

    fn can_answer(&self, request: &Request) -> bool {
        match request.from {
            Peer::Domain(domain) => self.legs.contains_key(&domain),
            Peer::Link(_) => true,
        }
    }
}
