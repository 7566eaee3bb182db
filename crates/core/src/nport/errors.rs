//! Replies, and what is done when there is none or the wrong one.

use super::NPort;
use super::fabric::FabricState;
use super::flight::Flight;
use super::remote::{RemoteState, flag};
use crate::time::Instant;
use sanloom_wire::ct::{CtBody, CtReason, CtReject};
use sanloom_wire::els::{Els, LsAcc, LsRjt};
use sanloom_wire::ns::{NsAccept, explanation};
use sanloom_wire::{FcId, Header, Message, Payload};

/// Requests to the fabric's services that may fail in a row before the port starts again with FLOGI.
const MAX_TRIES: u8 = 3;

/// Why a request failed.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Failure {
    /// No reply in time.
    Timeout,
    /// LS_RJT.
    LsRjt(LsRjt),
    /// FS_RJT.
    CtReject(CtReject),
    /// A reply that is no answer to the request.
    Strange,
}

impl NPort {
    pub(super) fn on_reply(&mut self, now: Instant, header: &Header, payload: Payload) {
        let Some(flight) = self.flights.close(header) else {
            self.counters.stale_replies += 1;
            return;
        };
        let failure = match payload {
            Payload::Typed(Message::Els(els)) => match *els {
                Els::LsAcc(accept) if self.on_els_accept(now, header, flight, &accept) => return,
                Els::LsRjt(reject) => Failure::LsRjt(reject),
                _ => Failure::Strange,
            },
            Payload::Typed(Message::Ct(ct)) => match ct.body {
                CtBody::NsAccept(accept) if self.on_ns_accept(now, flight, &accept) => return,
                CtBody::Reject(reject) => Failure::CtReject(reject),
                _ => Failure::Strange,
            },
            _ => Failure::Strange,
        };
        match failure {
            Failure::Strange => self.counters.strange_replies += 1,
            _ => self.counters.rejected += 1,
        }
        self.on_error(now, flight, failure);
    }

    /// False if the accept is no answer to the request.
    fn on_els_accept(&mut self, now: Instant, header: &Header, flight: Flight, accept: &LsAcc) -> bool {
        match (flight, accept) {
            (Flight::Fabric, LsAcc::Login(login)) if self.state == FabricState::Flogi => {
                if !self.on_flogi_accept(header, login) {
                    return false;
                }
                self.advance(now);
            }
            (Flight::Fabric, LsAcc::Login(_)) if self.state.is_service_login() => self.advance(now),
            (Flight::Fabric, LsAcc::Empty) if self.state == FabricState::Logo => self.go_offline(),
            (Flight::Fabric, LsAcc::Empty) if self.state.has_empty_accept() => self.advance(now),
            (Flight::Farewell, _) => self.farewell_over(now),
            (Flight::Plogi(port_id), LsAcc::Login(login)) => {
                return self.on_plogi_accept(now, port_id, login);
            }
            (Flight::Prli(port_id), LsAcc::Prli(prli)) => {
                return self.on_prli_accept(port_id, prli);
            }
            (Flight::Adisc(port_id), LsAcc::Adisc(adisc)) => {
                return self.on_adisc_accept(now, port_id, adisc);
            }
            _ => return false,
        }
        true
    }

    /// False if the accept is no answer to the request.
    fn on_ns_accept(&mut self, now: Instant, flight: Flight, accept: &NsAccept) -> bool {
        match (flight, accept) {
            (Flight::Fabric, NsAccept::Empty) if self.state.is_registration() => self.advance(now),
            (Flight::Discovery, accept) => return self.on_discovered(now, accept),
            (Flight::Verify(port_id), NsAccept::PortName(name)) => {
                if !self.confirm(now, port_id, *name) {
                    self.forget(port_id);
                }
            }
            _ => return false,
        }
        true
    }

    /// The one place that decides what the failure of a request means.
    pub(super) fn on_error(&mut self, now: Instant, flight: Flight, failure: Failure) {
        match flight {
            Flight::Fabric => self.on_fabric_error(now, failure),
            Flight::Discovery => self.on_discovery_error(now, failure),
            // The other side does not know us any more: the check has found what it was for.
            Flight::Adisc(port_id) if matches!(failure, Failure::LsRjt(_)) => {
                self.lose(now, port_id);
                self.due.insert((now, port_id));
            }
            // A check that got lost must not end a login.
            Flight::Adisc(port_id) if failure == Failure::Timeout => self.on_check_timeout(now, port_id),
            // An N_Port that says no is asked again later: what forbids the login may pass without an RSCN.
            Flight::Plogi(port_id) | Flight::Prli(port_id) | Flight::Adisc(port_id) => {
                self.lose(now, port_id);
            }
            Flight::Verify(port_id) => self.on_verify_error(now, port_id, failure),
            Flight::Farewell => self.farewell_over(now),
        }
    }

    fn on_fabric_error(&mut self, now: Instant, failure: Failure) {
        if let Failure::CtReject(reject) = failure
            && self.state.is_registration()
            && reject.reason != CtReason::LOGICAL_BUSY
        {
            // A directory that does not keep this object: we can do without.
            self.counters.registrations_refused += 1;
            return self.advance(now);
        }
        if matches!(failure, Failure::LsRjt(_)) && self.state.is_dispensable() {
            self.counters.registrations_refused += 1;
            return self.advance(now);
        }
        self.fabric_tries = self.fabric_tries.saturating_add(1);
        match (self.state, failure) {
            // A fabric that refuses to let us go, or says nothing, has forgotten us.
            (FabricState::Logo, failure) if failure != Failure::Timeout || self.fabric_tries >= MAX_TRIES => {
                self.go_offline();
            }
            // The timeout was the back-off, as long as it is not the rule.
            (_, Failure::Timeout) if self.fabric_tries <= MAX_TRIES => self.enter(now, self.state),
            (FabricState::Flogi, _) => self.retry_later(now),
            (_, Failure::LsRjt(_) | Failure::CtReject(_) | Failure::Strange) if self.fabric_tries <= MAX_TRIES => {
                self.retry_later(now);
            }
            _ => self.start_over(now),
        }
    }

    fn retry_later(&mut self, now: Instant) {
        self.fabric_retry_at = Some(now + self.back_off(self.fabric_tries));
    }

    fn on_discovery_error(&mut self, now: Instant, failure: Failure) {
        self.discovery.open = false;
        if let Failure::CtReject(reject) = failure {
            if nobody_visible(&reject) {
                return self.found(now, std::iter::empty());
            }
            let unknown = matches!(reject.reason, CtReason::INVALID_COMMAND | CtReason::NOT_SUPPORTED);
            if unknown && !self.discovery.plain {
                self.discovery.plain = true;
                return self.discovery.ask_at(now);
            }
        }
        self.discovery.tries = self.discovery.tries.saturating_add(1);
        match failure {
            Failure::Timeout if self.discovery.tries < MAX_TRIES => self.discovery.ask_at(now),
            Failure::Timeout => self.start_over(now),
            _ => {
                let at = now + self.back_off(self.discovery.tries);
                self.discovery.ask_at(at);
            }
        }
    }

    fn on_check_timeout(&mut self, now: Instant, port_id: FcId) {
        let Some(remote) = self.remotes.get_mut(port_id) else {
            return;
        };
        remote.tries = remote.tries.saturating_add(1);
        if remote.tries >= MAX_TRIES {
            return self.lose(now, port_id);
        }
        remote.state = RemoteState::Up;
        remote.set(flag::AFFECTED);
        self.due.insert((now, port_id));
    }

    fn on_verify_error(&mut self, now: Instant, port_id: FcId, failure: Failure) {
        let unknown_port = matches!(failure, Failure::CtReject(reject) if reject.reason == CtReason::UNABLE);
        if unknown_port {
            return self.forget(port_id);
        }
        // The name server could not say; the login stands until it can.
        let Some(remote) = self.remotes.get_mut(port_id) else {
            return;
        };
        remote.state = RemoteState::Up;
        remote.set(flag::AFFECTED);
        remote.tries = remote.tries.saturating_add(1);
        let tries = remote.tries;
        let at = now + self.back_off(tries);
        self.due.insert((at, port_id));
    }
}

/// "Unable to perform" with an explanation that says that there is no such port.
fn nobody_visible(reject: &CtReject) -> bool {
    reject.reason == CtReason::UNABLE
        && matches!(
            reject.explanation,
            explanation::FC4_TYPES_NOT_REGISTERED
                | explanation::FC4_FEATURES_NOT_REGISTERED
                | explanation::DATABASE_EMPTY
                | explanation::NO_OBJECT_IN_SCOPE
        )
}
