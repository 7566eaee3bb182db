//! Which targets are there: GID_FF, or GPN_FT where the name server does not know that.

use super::NPort;
use super::flight::Flight;
use super::remote::{RemoteState, flag};
use crate::time::{Instant, Span};
use sanloom_wire::ns::{NsAccept, NsRequest, fcp_feature};
use sanloom_wire::{FcId, FcType, Wwpn};

/// At least this long from one answer to the next question: RSCNs that come close together, as when a fabric starts, cost
/// one question.
const SPACING: Span = Span::from_ms(10);

/// So many times R_A_TOV after an answer, the question is asked even without an RSCN: one that got lost on every try must
/// not hide a target for ever.
const AUDIT_R_A_TOVS: u64 = 6;

/// State of the question for all targets.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(super) struct Discovery {
    /// A question is open.
    pub(super) open: bool,
    /// Something changed since the last question was sent.
    dirty: bool,
    not_before: Instant,
    /// When to ask although nothing seems to have changed.
    audit_at: Option<Instant>,
    /// GID_FF was rejected as unknown.
    pub(super) plain: bool,
    /// Failures in a row.
    pub(super) tries: u8,
}

impl Discovery {
    /// When the next question is to be asked.
    pub(super) fn due_at(&self) -> Option<Instant> {
        match self.open {
            true => None,
            false if self.dirty => Some(self.not_before),
            false => self.audit_at,
        }
    }

    /// Something changed.
    pub(super) fn ask(&mut self) {
        self.dirty = true;
    }

    /// Asks, but not before `at`.
    pub(super) fn ask_at(&mut self, at: Instant) {
        self.dirty = true;
        self.not_before = at;
    }

    fn answered(&mut self, now: Instant, r_a_tov: Span) {
        self.open = false;
        self.tries = 0;
        self.audit_at = Some(now + r_a_tov.times(AUDIT_R_A_TOVS));
        self.not_before = now + SPACING;
    }
}

impl NPort {
    pub(super) fn discover(&mut self, now: Instant) {
        self.counters.discoveries += 1;
        self.discovery.dirty = false;
        self.discovery.open = true;
        let fc4_type = FcType::FCP.0;
        let request = if self.discovery.plain {
            NsRequest::GpnFt { domain: 0, area: 0, fc4_type }
        } else {
            NsRequest::GidFf { domain: 0, area: 0, features: fcp_feature::TARGET, fc4_type }
        };
        self.ask_name_server(now, Flight::Discovery, request);
    }

    /// The answer to the question; false if it is none.
    pub(super) fn on_discovered(&mut self, now: Instant, accept: &NsAccept) -> bool {
        match accept {
            NsAccept::PortIds(ids) => self.found(now, ids.iter().map(|&id| (id, None))),
            NsAccept::PortNames(ports) => {
                self.found(now, ports.iter().map(|&(id, name)| (id, Some(name))));
            }
            _ => return false,
        }
        true
    }

    /// The targets that the name server shows us are exactly these.
    pub(super) fn found(&mut self, now: Instant, ports: impl Iterator<Item = (FcId, Option<Wwpn>)>) {
        self.discovery.answered(now, self.config.r_a_tov);
        for (port_id, name) in ports {
            self.work += 1;
            if port_id == self.port_id || port_id == FcId::ZERO || port_id.is_well_known() {
                continue;
            }
            self.found_one(now, port_id, name);
        }
        let gone: Vec<FcId> = self
            .remotes
            .iter()
            .filter(|remote| remote.has(flag::DISCOVERED) && !remote.has(flag::SEEN))
            .map(|remote| remote.port_id)
            .collect();
        self.work += self.remotes.len() as u64;
        for port_id in gone {
            self.forget(port_id);
        }
        for remote in self.remotes.iter_mut() {
            remote.clear(flag::SEEN);
        }
    }

    fn found_one(&mut self, now: Instant, port_id: FcId, name: Option<Wwpn>) {
        let known = self.remotes.get(port_id).map(|remote| remote.wwpn);
        // Another port has the address now.
        if let (Some(known), Some(name)) = (known, name)
            && known.0 != 0
            && known != name
        {
            self.forget(port_id);
        }
        let is_new = self.remotes.get(port_id).is_none();
        let remote = self.remotes.get_or_insert(port_id, RemoteState::Waiting);
        let newly_wanted = !remote.has(flag::DISCOVERED);
        remote.set(flag::DISCOVERED | flag::SEEN);
        let look_now = match remote.state {
            RemoteState::Waiting => is_new || remote.has(flag::AFFECTED),
            RemoteState::LoggedIn => newly_wanted || remote.has(flag::AFFECTED),
            RemoteState::Up => remote.has(flag::AFFECTED),
            RemoteState::Plogi | RemoteState::Prli | RemoteState::Checking => false,
        };
        if !remote.state.is_up() {
            remote.clear(flag::AFFECTED);
        }
        if look_now {
            self.due.insert((now, port_id));
        }
    }
}
