//! Requests of neighbours, and the content of EFP requests and accepts.

use super::domain_list::Owners;
use super::rebuild::Kind;
use super::selection::{Claim, Phase};
use super::{DomainManager, FLOOD_DELAY, MAX_DOMAIN};
use crate::ils::{Peer, Request};
use crate::isolation::Isolation;
use sanloom_scsi::time::Instant;
use sanloom_wire::sw_ils::{Efp, EfpRecord, SwAcc, SwIls, SwRjt, SwRjtExplanation, SwRjtReason};

/// Consequence of an EFP.
enum Verdict {
    Accept,
    /// The EFP cannot be evaluated yet; the neighbour must repeat it.
    Later,
    Isolate(Isolation),
}

impl DomainManager {
    pub(super) fn on_request(&mut self, now: Instant, request: Request, message: SwIls) {
        let port = request.port;
        if request.from != Peer::Link(port) {
            let wrong_sender = SwRjt::new(SwRjtReason::PROTOCOL_ERROR, SwRjtExplanation::NONE);
            return self.outbox.reject(request, wrong_sender);
        }
        if let Some(reason) = self.links.isolation(port) {
            return self.outbox.reject(request, reason.reject());
        }
        let Some(link) = self.links.get(port) else {
            let early = SwRjtExplanation::LINK_PARAMETERS_NOT_ESTABLISHED;
            return self.outbox.reject(request, SwRjt::new(SwRjtReason::UNABLE, early));
        };
        // The messages of a neighbour that has not replied to BF are ignored.
        let ignored = link.rebuild.is_some();
        match message {
            SwIls::Bf => self.on_rebuild_request(now, request, Kind::Gentle),
            SwIls::Rcf => self.on_rebuild_request(now, request, Kind::Disruptive),
            SwIls::Efp(_) | SwIls::Dia { .. } | SwIls::Rdi(_) if ignored => self.outbox.reject_busy(request),
            SwIls::Efp(efp) => self.on_efp_request(now, request, &efp),
            SwIls::Dia { .. } => self.on_dia(now, request),
            SwIls::Rdi(rdi) => self.on_rdi(now, request, rdi),
            _ => {
                let unsupported = SwRjt::new(SwRjtReason::NOT_SUPPORTED, SwRjtExplanation::NOT_SUPPORTED);
                self.outbox.reject(request, unsupported);
            }
        }
    }

    fn on_efp_request(&mut self, now: Instant, request: Request, efp: &Efp) {
        let Some(records) = domains(efp) else {
            let bad_list = SwRjt::new(SwRjtReason::PROTOCOL_ERROR, SwRjtExplanation::NONE);
            return self.outbox.reject(request, bad_list);
        };
        match self.evaluate_efp(now, request.port, efp, &records) {
            Verdict::Accept => {
                let accept = SwIls::SwAcc(SwAcc::Efp(self.efp()));
                self.outbox.answer(request, accept);
                if let Some(link) = self.links.get_mut(request.port) {
                    // The accept contains the same information as an EFP.
                    link.dirty &= self.selection.is_holding();
                }
                self.expect_adoption(now, request.port);
            }
            Verdict::Later => self.outbox.reject_busy(request),
            Verdict::Isolate(reason) => {
                self.outbox.reject(request, reason.reject());
                self.isolate(now, request.port, reason);
            }
        }
    }

    /// Schedules an EFP to a neighbour that should adopt our principal.
    pub(super) fn expect_adoption(&mut self, now: Instant, port: u16) {
        if self.links.lacks_adoption(port, &self.selection) {
            self.links.send_efp_at(now + self.retry_delay(), port);
        }
    }

    pub(super) fn on_efp_accept(&mut self, now: Instant, port: u16, efp: &Efp) {
        let Some(records) = domains(efp) else { return self.isolate(now, port, Isolation::EfpRejected) };
        if self.links.get(port).is_none_or(|link| link.rebuild.is_some()) {
            return;
        }
        let verdict = self.evaluate_efp(now, port, efp, &records);
        if let Verdict::Isolate(reason) = verdict {
            return self.isolate(now, port, reason);
        }
        // The neighbour may have been busy, so the part that it did not adopt is sent again.
        let granted = self.list.granted();
        let lacks =
            efp.principal_name != self.selection.claim().name || granted.keys().any(|d| !records.contains_key(d));
        if (lacks || matches!(verdict, Verdict::Later)) && self.links.get(port).is_some_and(|link| !link.dirty) {
            self.links.send_efp_at(now + self.retry_delay(), port);
        }
    }

    fn evaluate_efp(&mut self, now: Instant, port: u16, efp: &Efp, records: &Owners) -> Verdict {
        let claim =
            Claim { proposed: records.is_empty(), priority: efp.principal_priority.max(1), name: efp.principal_name };
        if self.selection.is_holding() {
            return Verdict::Accept;
        }
        let Some(link) = self.links.get_mut(port) else { return Verdict::Accept };
        link.received = Some(claim);
        self.links.schedule_flood(now);
        let (joined, best) = (self.selection.is_joined(), self.selection.claim());
        let ours = claim.name == self.config.switch_name;
        let is_worse = joined && claim > best;
        if ours && !claim.proposed && !self.selection.is_principal() && !is_worse {
            // The neighbour belongs to an older fabric that still has this switch as principal and
            // would not consider the current principal better. (A neighbour that adopted this
            // switch while it was principal considers the current one better and needs no rebuild.)
            self.start_rebuild(now, Kind::Gentle, None);
            return Verdict::Accept;
        }
        if claim.proposed {
            if !joined && !ours && claim < best {
                self.selection.prefer(now, claim, port);
                self.links.mark_all_dirty(now);
            } else if joined {
                self.invite(port);
            }
            return Verdict::Accept;
        }
        if joined && claim.name == best.name {
            self.add_domains(now, port, records);
            return Verdict::Accept;
        }
        let own = self.own.domain().map(|domain| (domain, self.config.switch_name));
        if self.list.overlaps(records, own) {
            return self.evaluate_overlap(now, port);
        }
        if !joined || claim < best {
            self.adopt(now, port, claim, records.clone());
        }
        Verdict::Accept
    }

    /// Adds domains of the own fabric that a neighbour reported and this switch did not have.
    fn add_domains(&mut self, now: Instant, port: u16, records: &Owners) {
        if !self.list.lacks_any(records) {
            return;
        }
        if self.selection.is_principal() {
            // Only the principal grants domains. The received ones are therefore outdated, because
            // a switch missed the rebuild.
            return self.start_rebuild(now, Kind::Gentle, None);
        }
        // A neighbour that received no domains from this switch cannot detect that both belong to
        // one fabric.
        let was_empty = self.list.granted().is_empty();
        for (&domain, &owner) in records {
            self.list.add(domain, owner);
        }
        let complete = self.list.granted().len() == records.len();
        let was_dirty = self.links.get(port).is_some_and(|link| link.dirty);
        self.links.mark_all_dirty(now);
        if let Some(link) = self.links.get_mut(port) {
            link.dirty = was_dirty || was_empty || !complete;
        }
        self.adopt_own_domain(now);
    }

    fn evaluate_overlap(&mut self, now: Instant, port: u16) -> Verdict {
        // During a rebuild, some domains may belong to switches that are gone.
        if !self.has_confirmed_domain() || self.list.reserved_until().is_some() {
            return Verdict::Later;
        }
        self.resolve_overlap(now, port).map_or(Verdict::Later, Verdict::Isolate)
    }

    /// Handles an overlap with the fabric at `port` that will not resolve by itself. Returns the
    /// reason for isolation, or `None` if all domains are to be reassigned.
    pub(super) fn resolve_overlap(&mut self, now: Instant, port: u16) -> Option<Isolation> {
        if !self.config.auto_reconfigure || !self.config.allow_rcf {
            return Some(Isolation::DomainOverlap);
        }
        self.links.propose_rebuild(now, port, Kind::Disruptive);
        None
    }

    /// Joins the fabric of `claim`; `port` leads to its principal.
    pub(super) fn adopt(&mut self, now: Instant, port: u16, claim: Claim, records: Owners) {
        let f_s_tov = self.config.f_s_tov;
        // After a selection, a switch without a domain waits, so that switches with a domain to
        // keep request first.
        let selected = self.selection.is_selecting() && self.selection.claim().name == claim.name;
        let wait = if selected && self.own.domain().is_none() { f_s_tov } else { FLOOD_DELAY };
        self.relays.reject_all(&mut self.outbox);
        self.list.replace(records);
        self.selection.join(claim, port);
        self.own.start(now + wait, now + f_s_tov.times(4));
        self.list.reserve_until(Some(now + f_s_tov.times(2)));
        // Child links stay marked, because their requests may be in flight to the principal and
        // must not outlive the link.
        self.links.invite_all();
        self.links.mark_all_dirty(now);
    }

    fn invite(&mut self, port: u16) {
        if self.selection.upstream() != Some(port)
            && let Some(link) = self.links.get_mut(port)
        {
            link.invite = true;
        }
    }

    /// Returns true if the neighbour selected the same principal as this switch, and this switch is
    /// not it.
    pub(super) fn leads_to_principal(&self, port: u16) -> bool {
        let received = self.links.get(port).and_then(|link| link.received);
        self.selection.upstream().is_some()
            && received.is_some_and(|received| received.name == self.selection.claim().name)
    }

    /// Handles DIA: the neighbour belongs to a fabric with a principal, so this switch may request
    /// a domain.
    fn on_dia(&mut self, now: Instant, request: Request) {
        let port = request.port;
        match self.selection.phase() {
            Phase::Joined => {}
            Phase::Selecting { .. } if self.leads_to_principal(port) => {
                self.adopt(now, port, self.selection.claim(), Owners::default());
            }
            _ => return self.outbox.reject_busy(request),
        }
        self.outbox.answer(request, SwIls::SwAcc(SwAcc::Dia { switch_name: self.config.switch_name }));
    }
}

/// Domains in an EFP; `None` if one is out of range.
fn domains(efp: &Efp) -> Option<Owners> {
    let records = efp.records.iter().filter(|record| record.kind == EfpRecord::DOMAIN);
    records.map(|record| (1..=MAX_DOMAIN).contains(&record.id).then_some((record.id, record.switch_name))).collect()
}
