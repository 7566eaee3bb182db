//! Domain identifiers: requests of this switch, grants, and requests of other switches.

use super::outbox::Purpose;
use super::{DomainManager, MAX_DOMAIN, Output};
use crate::ils::Request;
use crate::isolation::{Isolation, is_temporary};
use sanloom_scsi::time::Instant;
use sanloom_wire::Wwnn;
use sanloom_wire::sw_ils::{Rdi, SwAcc, SwIls};

impl DomainManager {
    /// Requests a domain, or grants itself one if this switch is the principal.
    pub(super) fn request_domain(&mut self, now: Instant) {
        if !self.selection.is_joined() || self.own.is_confirmed() {
            return;
        }
        let switch_name = self.config.switch_name;
        let requested = self.own.domain().or(self.config.preferred).unwrap_or(0);
        match self.selection.upstream() {
            Some(port) => {
                let rdi = Rdi { switch_name, domains: vec![requested] };
                let tag = self.outbox.request(SwIls::Rdi(rdi), Purpose::Rdi(port));
                self.own.set_requesting(tag);
            }
            None => match self.grant(now, switch_name, &[requested]).as_deref() {
                Some([domain, ..]) => self.accept_domain(now, *domain),
                _ => self.isolate_all(now, Isolation::DomainUnavailable),
            },
        }
    }

    /// Handles the reply to this switch's own RDI.
    pub(super) fn on_rdi_reply(&mut self, now: Instant, tag: u32, answer: Option<SwIls>) {
        if !self.own.take_reply(tag) {
            return;
        }
        match answer {
            Some(SwIls::SwAcc(SwAcc::Rdi(rdi)))
                if rdi.domains.first().is_some_and(|d| (1..=MAX_DOMAIN).contains(d)) =>
            {
                self.accept_domain(now, rdi.domains[0]);
            }
            Some(SwIls::SwRjt(reject)) if !is_temporary(reject) => {
                self.isolate_all(now, Isolation::DomainUnavailable);
            }
            _ => self.own.schedule_request(now + self.retry_delay()),
        }
    }

    /// Accepts a domain granted by the principal, which may differ from the requested one.
    fn accept_domain(&mut self, now: Instant, domain: u8) {
        match self.own.domain() {
            Some(kept) if kept != domain && !self.config.auto_reconfigure => {
                return self.isolate_all(now, Isolation::DomainOverlap);
            }
            None if self.config.insistent && self.config.preferred.is_some_and(|preferred| preferred != domain) => {
                return self.isolate_all(now, Isolation::DomainUnavailable);
            }
            Some(kept) if kept != domain => self.remove_domain(),
            _ => {}
        }
        self.confirm_domain(now, domain);
    }

    /// Records a domain as valid in the current fabric.
    pub(super) fn confirm_domain(&mut self, now: Instant, domain: u8) {
        if self.own.confirm(domain) {
            self.outbox.report(Output::Domain(Some(domain)));
        }
        self.list.add(domain, self.config.switch_name);
        self.links.mark_all_dirty(now);
    }

    /// Removes the domain of this switch.
    pub(super) fn remove_domain(&mut self) {
        if self.own.remove() {
            self.outbox.report(Output::Domain(None));
            self.links.clear_ready();
        }
    }

    /// Takes the own domain from the fabric's domain list, because the reply with it may be late or
    /// lost.
    pub(super) fn adopt_own_domain(&mut self, now: Instant) {
        if let Some(domain) = self.list.domain_of(self.config.switch_name)
            && !self.own.is_confirmed()
            && self.own.domain().is_none_or(|kept| kept == domain)
        {
            self.accept_domain(now, domain);
        }
    }

    /// Handles an RDI of a neighbour, for itself or for a switch behind it.
    pub(super) fn on_rdi(&mut self, now: Instant, request: Request, rdi: Rdi) {
        let (port, switch_name) = (request.port, rdi.switch_name);
        let upstream = self.selection.upstream();
        if !self.selection.is_joined() || upstream == Some(port) || switch_name == self.config.switch_name {
            return self.outbox.reject_busy(request);
        }
        if let Some(link) = self.links.get_mut(port) {
            link.child = true;
        }
        let granted = match (self.list.held(switch_name, &rdi.domains), upstream) {
            (Some(held), _) => Some(held),
            (None, Some(upstream)) => return self.relays.forward(request, rdi, upstream, &mut self.outbox),
            (None, None) => self.grant(now, switch_name, &rdi.domains),
        };
        match granted {
            Some(domains) => {
                self.outbox.answer(request, SwIls::SwAcc(SwAcc::Rdi(Rdi { switch_name, domains })));
            }
            None => self.outbox.reject(request, Isolation::DomainUnavailable.reject()),
        }
    }

    /// Handles the reply to a forwarded RDI.
    pub(super) fn on_relay_reply(&mut self, now: Instant, name: Wwnn, answer: Option<SwIls>) {
        if let Some(SwIls::SwAcc(SwAcc::Rdi(rdi))) = &answer {
            // A switch that repeats its request because of the long path is answered from this
            // record.
            for domain in rdi.domains.iter().filter(|domain| (1..=MAX_DOMAIN).contains(*domain)) {
                self.list.add(*domain, name);
            }
            self.links.mark_all_dirty(now);
        }
        self.relays.answer(name, answer.as_ref(), &mut self.outbox);
    }

    /// Grants domains as principal; all of them or none.
    fn grant(&mut self, now: Instant, name: Wwnn, requested: &[u8]) -> Option<Vec<u8>> {
        let kept = self.own.domain().filter(|_| name != self.config.switch_name);
        let grant = self.list.grant(name, requested, kept)?;
        if grant.changed {
            self.links.mark_all_dirty(now);
        }
        Some(grant.domains)
    }
}
