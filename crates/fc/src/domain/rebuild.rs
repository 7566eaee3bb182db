//! Rebuild of the fabric, selection of a principal, and operation without links.

use super::domain_list::Owners;
use super::outbox::Purpose;
use super::selection::{Phase, PhaseEnd};
use super::{DomainManager, NEVER_PRINCIPAL};
use crate::ils::Request;
use crate::isolation::Isolation;
use sanloom_scsi::time::Instant;
use sanloom_wire::sw_ils::{SwAcc, SwIls, command};

/// Kind of rebuild.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Kind {
    /// BF: domains are kept.
    Gentle,
    /// RCF: domains are removed.
    Disruptive,
}

impl Kind {
    pub(super) const fn command(self) -> u8 {
        match self {
            Kind::Gentle => command::BF,
            Kind::Disruptive => command::RCF,
        }
    }

    pub(super) const fn message(self) -> SwIls {
        match self {
            Kind::Gentle => SwIls::Bf,
            Kind::Disruptive => SwIls::Rcf,
        }
    }
}

impl DomainManager {
    /// Handles BF or RCF of a neighbour.
    pub(super) fn on_rebuild_request(&mut self, now: Instant, request: Request, kind: Kind) {
        if kind == Kind::Disruptive && !self.config.allow_rcf {
            self.outbox.reject(request, Isolation::RcfDenied.reject());
            return self.isolate(now, request.port, Isolation::RcfDenied);
        }
        self.outbox.answer(request, SwIls::SwAcc(SwAcc::Empty));
        if let Some(link) = self.links.get_mut(request.port) {
            // The neighbour is rebuilding too, so it needs no request.
            link.rebuild = None;
            link.proposal = false;
            link.received = None;
        }
        match self.selection.phase() {
            Phase::Hold(_, held) if held == Kind::Disruptive || kind == Kind::Gentle => {}
            _ => self.start_rebuild(now, kind, Some(request.port)),
        }
    }

    /// Starts a rebuild of the fabric. The neighbour at `except` needs no request.
    pub(super) fn start_rebuild(&mut self, now: Instant, kind: Kind, except: Option<u16>) {
        self.selection.hold(now, kind, self.list.granted().len());
        self.relays.reject_all(&mut self.outbox);
        self.list.replace(Owners::default());
        if kind == Kind::Disruptive {
            self.list.clear_previous();
            self.remove_domain();
        }
        self.own.cancel();
        self.list.reserve_until(None);
        self.outbox.drop_requests(|purpose| !matches!(purpose, Purpose::Notice(_)));
        self.links.start_rebuild(now, kind, except);
        if self.links.is_empty() {
            self.reset_alone(now);
        }
    }

    pub(super) fn on_phase_timeout(&mut self, now: Instant) {
        match self.selection.on_timeout(now) {
            Some(PhaseEnd::BecomePrincipal) => self.become_principal(now),
            Some(PhaseEnd::Select) => self.select(now),
            Some(PhaseEnd::NoCandidate { late }) => self.on_no_candidate(now, late),
            Some(PhaseEnd::Rebuild) => self.start_rebuild(now, Kind::Gentle, None),
            None => {}
        }
    }

    /// Starts a selection with only the own claim.
    pub(super) fn select(&mut self, now: Instant) {
        self.selection.select(now);
        self.links.mark_all_dirty(now);
    }

    /// Handles a selection in which no switch may be principal. A fabric that has a principal but
    /// was not joined has overlapping domains. Without such a fabric, a neighbour may belong to one
    /// that it has not reported yet, so the selection is extended once.
    fn on_no_candidate(&mut self, now: Instant, late: bool) {
        let foreign = self.links.foreign_ports();
        if foreign.is_empty() {
            return match late {
                true => self.isolate_all(now, Isolation::NoPrincipal),
                false => self.selection.extend(now),
            };
        }
        self.selection.restart_quiet(now);
        for port in foreign {
            if let Some(reason) = self.resolve_overlap(now, port) {
                self.isolate(now, port, reason);
            }
        }
    }

    fn become_principal(&mut self, now: Instant) {
        self.selection.lead();
        self.list.reserve_until(Some(now + self.config.f_s_tov.times(2)));
        self.links.invite_all();
        match self.own.domain() {
            Some(domain) => self.confirm_domain(now, domain),
            // Switches with a domain to keep request first.
            None if !self.links.is_empty() => self.own.schedule_request(now + self.config.f_s_tov),
            None => self.request_domain(now),
        }
        self.links.mark_all_dirty(now);
    }

    /// Resets the state after the last link is lost, because information about other switches is no
    /// longer valid.
    pub(super) fn reset_alone(&mut self, now: Instant) {
        self.list.clear();
        self.links.cancel_flood();
        if self.config.priority == NEVER_PRINCIPAL {
            self.selection.leave(Instant::NEVER);
        } else if self.own.domain().is_some() || self.config.preferred.is_some() {
            self.become_principal(now);
            self.list.reserve_until(None);
        } else {
            self.selection.leave(now + self.retry_delay());
        }
    }
}
