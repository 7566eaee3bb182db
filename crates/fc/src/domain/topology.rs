//! Links up and down, isolation of links, floods, and outcomes of requests.

use super::links::Link;
use super::outbox::Purpose;
use super::rebuild::Kind;
use super::report::report_links;
use super::selection::Phase;
use super::{DomainManager, NEVER_PRINCIPAL, Output};
use crate::ils::Outcome;
use crate::isolation::{Isolation, is_temporary};
use sanloom_scsi::time::Instant;
use sanloom_wire::sw_ils::{Efp, EfpRecord, SwAcc, SwIls, SwRjt, command};
use sanloom_wire::{Message, Wwnn};

impl DomainManager {
    pub(super) fn link_up(&mut self, now: Instant, port: u16, neighbour: Wwnn) {
        self.link_down(now, port);
        self.links.insert(port, Link::new(now, neighbour, self.selection.is_joined()));
        match self.selection.phase() {
            Phase::Alone(_) => self.select(now),
            // The new neighbour may lead to a switch that may be principal.
            Phase::Selecting { .. } if self.selection.has_no_candidate() => self.selection.restart_quiet(now),
            _ => {}
        }
        self.links.schedule_flood(now);
    }

    pub(super) fn link_down(&mut self, now: Instant, port: u16) {
        self.links.clear_isolation(port);
        self.outbox.drop_requests(|purpose| purpose.port() == port);
        self.remove_link(now, port);
    }

    /// Removes a link. If it belongs to the tree of the fabric, the fabric is rebuilt.
    fn remove_link(&mut self, now: Instant, port: u16) {
        let Some(link) = self.links.remove(port) else { return };
        self.outbox.drop_requests(|purpose| purpose.port() == port);
        self.relays.remove_port(port);
        let was_upstream = self.selection.upstream() == Some(port);
        if (was_upstream || link.child) && !self.replace_link(now, &link, was_upstream) && !self.selection.is_holding()
        {
            self.start_rebuild(now, Kind::Gentle, None);
        } else if self.links.is_empty() && !self.selection.is_joined() {
            self.reset_alone(now);
        }
    }

    /// Replaces a lost link by another one to the same neighbour. Returns false if there is none.
    fn replace_link(&mut self, now: Instant, lost: &Link, was_upstream: bool) -> bool {
        if !self.selection.is_joined() {
            return false;
        }
        let Some((port, link)) = self.links.replacement(lost, self.selection.claim().name) else { return false };
        link.child |= lost.child;
        if was_upstream {
            self.selection.reroute(port);
            self.relays.reject_all(&mut self.outbox);
            self.own.restart_unless_confirmed(now);
        }
        true
    }

    pub(super) fn isolate(&mut self, now: Instant, port: u16, reason: Isolation) {
        if self.links.get(port).is_some() {
            self.links.set_isolation(port, reason.clone());
            self.outbox.report(Output::Isolate { port, reason });
            self.remove_link(now, port);
        }
    }

    /// Isolates all links.
    pub(super) fn isolate_all(&mut self, now: Instant, reason: Isolation) {
        self.relays.reject_all(&mut self.outbox);
        let ports = self.links.remove_all();
        self.outbox.drop_requests(|purpose| !matches!(purpose, Purpose::Notice(_)));
        self.own.cancel();
        self.selection.reset_priority();
        for &port in &ports {
            self.links.set_isolation(port, reason.clone());
            self.outbox.report(Output::Isolate { port, reason: reason.clone() });
        }
        self.reset_alone(now);
        self.links.notify(now, ports);
    }

    /// EFP with the state of this switch.
    pub(super) fn efp(&self) -> Efp {
        let claim = self.selection.advertised();
        let record = |(&domain, &name): (&u8, &Wwnn)| EfpRecord::domain(domain, name);
        Efp {
            principal_priority: claim.priority,
            principal_name: claim.name,
            records: self.list.granted().iter().map(record).collect(),
        }
    }

    /// Sends the requests that are due on all links, and reports changes.
    pub(super) fn flood(&mut self, now: Instant) {
        let silent = matches!(self.selection.phase(), Phase::Hold(..) | Phase::Alone(_));
        for purpose in self.links.take_due(now, &self.selection, silent) {
            let message = match purpose {
                Purpose::Rebuild(_, kind) => kind.message(),
                Purpose::Dia(_) => SwIls::Dia { switch_name: self.config.switch_name },
                // The neighbour must not follow this claim; the request serves only to get the
                // reply.
                Purpose::Notice(_) => SwIls::Efp(Efp { principal_priority: NEVER_PRINCIPAL, ..self.efp() }),
                _ => SwIls::Efp(self.efp()),
            };
            self.outbox.request(message, purpose);
        }
        self.report();
    }

    /// Emits the changes that the other machines of the switch have not received yet.
    fn report(&mut self) {
        if !self.has_confirmed_domain() {
            return;
        }
        let claim = self.selection.claim();
        self.reported.report_principal(claim, self.config.switch_name, &mut self.outbox);
        self.reported.report_domains(&self.list, &mut self.outbox);
        report_links(&mut self.links, &self.list, claim.name, &mut self.outbox);
    }

    pub(super) fn on_outcome(&mut self, now: Instant, tag: u32, outcome: Outcome) {
        let Some(purpose) = self.outbox.take(tag) else { return };
        let answer = match outcome {
            Outcome::Answered(Message::SwIls(answer)) => Some(*answer),
            _ => None,
        };
        match purpose {
            Purpose::Rdi(_) => return self.on_rdi_reply(now, tag, answer),
            Purpose::Relay(_, name) => return self.on_relay_reply(now, name, answer),
            Purpose::Notice(port) => return self.on_notice_reply(now, port, answer),
            Purpose::Efp(_) | Purpose::Dia(_) | Purpose::Rebuild(..) => {}
        }
        if self.links.end_request(purpose).is_none() {
            return;
        }
        match answer {
            Some(SwIls::SwAcc(accept)) => self.on_accept(now, purpose, accept),
            Some(SwIls::SwRjt(reject)) if !is_temporary(reject) => self.on_reject(now, purpose, reject),
            _ => self.links.repeat(now + self.retry_delay(), purpose),
        }
    }

    /// Handles the reply over an isolated link. A reject means that the neighbour isolates the link
    /// too. Otherwise the EFP is repeated, because the neighbour may not be ready to judge it.
    fn on_notice_reply(&mut self, now: Instant, port: u16, answer: Option<SwIls>) {
        let understood = matches!(answer, Some(SwIls::SwRjt(reject)) if !is_temporary(reject));
        if !understood && self.links.isolation(port).is_some() {
            self.links.notify(now + self.retry_delay(), [port]);
        }
    }

    fn on_accept(&mut self, now: Instant, purpose: Purpose, accept: SwAcc) {
        match (purpose, accept) {
            (Purpose::Efp(port), SwAcc::Efp(efp)) => self.on_efp_accept(now, port, &efp),
            (Purpose::Dia(port), _) => self.expect_adoption(now, port),
            (Purpose::Rebuild(port, kind), _) => {
                let Some(link) = self.links.get_mut(port) else { return };
                link.rebuild = None;
                if std::mem::take(&mut link.proposal) {
                    self.start_rebuild(now, kind, Some(port));
                } else {
                    self.links.schedule_flood(now);
                }
            }
            _ => {}
        }
    }

    fn on_reject(&mut self, now: Instant, purpose: Purpose, reject: SwRjt) {
        let port = purpose.port();
        let request = match purpose {
            Purpose::Efp(_) | Purpose::Dia(_) => command::EFP,
            Purpose::Rebuild(_, kind) if self.links.get(port).is_some_and(|link| link.rebuild.is_some()) => {
                kind.command()
            }
            _ => return,
        };
        self.isolate(now, port, Isolation::from_reject(request, reject));
    }
}
