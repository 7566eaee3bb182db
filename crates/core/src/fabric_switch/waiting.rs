//! Questions to the name server that wait until the fabric knows who asks: [`Waiting`].
//!
//! Hard zoning is checked where the D_ID is owned, and that switch permits a port of another one from the notification of
//! its login on. A host that is told of a port whose switch has not heard of the host sends a PLOGI in vain, and tries again
//! no sooner than twice R_A_TOV later (FC-LS, timeouts of extended link services). So the answer waits until all reachable
//! domains have accepted the notification: permissions come before the answer that reveals them, across switches as within
//! one. It costs the way there and back, which the registrations that come first mostly hide. Without hard zoning nobody
//! waits.
//!
//! A change of zones is put in force switch by switch. While others may not have it yet (see [`ZoneServer::others_may_differ`]), what
//! it permits is revealed to nobody: the question waits until they do.
//!
//! [`ZoneServer::others_may_differ`]: crate::zoning::server::ZoneServer::others_may_differ
//!
//! A domain that does not answer must not keep hosts from the others: after [`PATIENCE`] times E_D_TOV, enough for a
//! notification that is lost once, the question is answered all the same.

use super::FabricSwitch;
use crate::switch;
use crate::time::Instant;
use sanloom_wire::ct::{Ct, CtBody};
use sanloom_wire::{FcId, FcType, Frame, Message, Payload, RCtl};
use std::collections::{BTreeMap, VecDeque};

/// So many times E_D_TOV a question waits at most.
const PATIENCE: u64 = 2;
/// So many questions wait at most; who asks more gets its answer at once. A host asks one or two when it logs in.
const MOST: usize = 1 << 16;

/// Where a question stands: behind which login (see [`crate::names::NameExchange::login_to_tell`]), if it waits for one, and in which
/// order they came.
type Place = (Option<u64>, u64);

/// Questions in the order of the logins that they wait for.
#[derive(Debug, Default)]
pub(super) struct Waiting {
    questions: BTreeMap<Place, (u16, Frame)>,
    /// When each is answered at last; all wait equally long.
    deadlines: VecDeque<(Instant, Place)>,
    next: u64,
}

impl Waiting {
    pub(super) fn len(&self) -> usize {
        self.questions.len()
    }

    pub(super) fn next_deadline(&self) -> Option<Instant> {
        self.deadlines.front().map(|(at, _)| *at)
    }

    /// The port went down: its questions will not be answered.
    pub(super) fn forget(&mut self, port: u16) {
        self.questions.retain(|_, (of, _)| *of != port);
        self.tidy();
    }

    fn push(&mut self, login: Option<u64>, until: Instant, port: u16, frame: Frame) {
        let place = (login, self.next);
        self.next += 1;
        self.questions.insert(place, (port, frame));
        self.deadlines.push_back((until, place));
    }

    /// A question that waits for no login, or for one before `known`, or whose time is over. `known` is nothing while all others
    /// have to wait.
    fn pop(&mut self, now: Instant, known: Option<u64>) -> Option<(u16, Frame)> {
        let over = self.deadlines.front().filter(|(at, _)| *at <= now).map(|(_, place)| *place);
        let is_told = |(login, _): &Place| known.is_some_and(|known| login.is_none_or(|login| login < known));
        let told = self.questions.first_key_value().map(|(place, _)| *place).filter(is_told);
        let question = self.questions.remove(&over.or(told)?);
        self.tidy();
        question
    }

    /// Drops deadlines in front whose questions are answered.
    fn tidy(&mut self) {
        while self.deadlines.front().is_some_and(|(_, place)| !self.questions.contains_key(place)) {
            self.deadlines.pop_front();
        }
    }
}

impl FabricSwitch {
    /// A frame for the services comes from an F_Port.
    pub(super) fn serve(&mut self, now: Instant, port: u16, frame: Frame) {
        let may_wait = self.waiting.len() < MOST;
        let reveals = may_wait && self.services.zones_hard() && is_question(&frame);
        let login = if reveals { self.names.login_to_tell(frame.header.s_id) } else { None };
        if login.is_some() || (reveals && self.zones.others_may_differ()) {
            let until = now + self.config.services.e_d_tov.times(PATIENCE);
            return self.waiting.push(login, until, port, frame);
        }
        self.services.handle(now, switch::Input::Frame { port, frame });
    }

    /// Answers the questions that need not wait any more. True if there was one.
    pub(super) fn answer_waiting(&mut self, now: Instant) -> bool {
        if self.waiting.questions.is_empty() {
            return false;
        }
        let known = if self.zones.others_may_differ() { None } else { Some(self.names.known_everywhere()) };
        let question = self.waiting.pop(now, known);
        let moved = question.is_some();
        if let Some((port, frame)) = question {
            self.services.handle(now, switch::Input::Frame { port, frame });
        }
        moved
    }
}

/// The frame asks the name server for something: a registration reveals nothing.
fn is_question(frame: &Frame) -> bool {
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

/// High byte of the commands that ask: GA_NXT, G*_ID, G*_PN, G*_NN, G*_FT and the like (FC-GS, name server).
const QUERIES: u16 = 0x01;
