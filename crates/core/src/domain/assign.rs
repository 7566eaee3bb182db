//! Domains: asking for one, granting them, and passing on what others ask.

use super::link::Asked;
use super::{DomainManager, MAX_DOMAIN, Phase};
use crate::ils::Request;
use crate::isolation::{Isolation, asks_for_patience};
use crate::time::Instant;
use sanloom_wire::Wwnn;
use sanloom_wire::sw_ils::{Rdi, SwAcc, SwIls};

/// So many requests of one switch wait for one answer; they come from repetitions.
const MAX_WAITING: usize = 8;

/// An RDI that we passed upwards.
#[derive(Debug)]
pub(super) struct Relay {
    /// What it asks for.
    domains: Vec<u8>,
    /// Those that the answer is for.
    pub(super) waiting: Vec<Request>,
}

impl DomainManager {
    /// DIA: the neighbour belongs to a fabric with a principal, and we may ask for a domain.
    pub(super) fn invited(&mut self, now: Instant, request: Request) {
        let port = request.port;
        match self.phase {
            Phase::Joined => {}
            Phase::Selecting { .. } if self.knows_the_way(port) => {
                self.adopt(now, port, self.claim, Default::default());
            }
            _ => return self.busy(request),
        }
        self.answer(request, SwIls::SwAcc(SwAcc::Dia { switch_name: self.config.switch_name }));
    }

    /// The neighbour seeks the same principal as we, and it is not us.
    fn knows_the_way(&self, port: u16) -> bool {
        let heard = self.links.get(&port).and_then(|link| link.heard);
        self.upstream.is_some() && heard.is_some_and(|heard| heard.name == self.claim.name)
    }

    /// It is time to ask for a domain, or, as principal, to take one.
    pub(super) fn want_domain(&mut self, now: Instant) {
        if self.phase != Phase::Joined || self.confirmed {
            return;
        }
        let wanted = self.domain.or(self.config.preferred).unwrap_or(0);
        match self.upstream {
            Some(port) => {
                let rdi = Rdi { switch_name: self.config.switch_name, domains: vec![wanted] };
                self.requesting = Some(self.ask(port, SwIls::Rdi(rdi), Asked::Rdi(port)));
            }
            None => match self.grant(now, self.config.switch_name, &[wanted]).as_deref() {
                Some([domain, ..]) => self.given(now, *domain),
                _ => self.isolate_all(now, Isolation::DomainUnavailable),
            },
        }
    }

    /// The answer to our own RDI.
    pub(super) fn granted(&mut self, now: Instant, tag: u32, answer: Option<SwIls>) {
        if self.requesting != Some(tag) {
            return;
        }
        self.requesting = None;
        match answer {
            Some(SwIls::SwAcc(SwAcc::Rdi(rdi)))
                if rdi.domains.first().is_some_and(|d| (1..=MAX_DOMAIN).contains(d)) =>
            {
                self.given(now, rdi.domains[0]);
            }
            Some(SwIls::SwRjt(reject)) if !asks_for_patience(reject) => {
                self.isolate_all(now, Isolation::DomainUnavailable);
            }
            _ => self.request_at = Some(now + self.patience()),
        }
    }

    /// The principal gives us a domain: the one that we want or another.
    fn given(&mut self, now: Instant, domain: u8) {
        match self.domain {
            Some(kept) if kept != domain && !self.config.auto_reconfigure => {
                return self.isolate_all(now, Isolation::DomainOverlap);
            }
            None if self.config.insistent && self.config.preferred.is_some_and(|preferred| preferred != domain) => {
                return self.isolate_all(now, Isolation::DomainUnavailable);
            }
            Some(kept) if kept != domain => self.lose_domain(),
            _ => {}
        }
        self.confirm(now, domain);
    }

    /// The domain is ours in the fabric of now.
    pub(super) fn confirm(&mut self, now: Instant, domain: u8) {
        if self.domain != Some(domain) {
            self.domain = Some(domain);
            self.outputs.push_back(super::Output::Domain(Some(domain)));
        }
        self.confirmed = true;
        self.give_up_at = None;
        self.granted.entry(domain).or_insert(self.config.switch_name);
        self.tell_all(now);
    }

    /// RDI of a neighbour, for itself or for a switch behind it.
    pub(super) fn domain_asked(&mut self, now: Instant, request: Request, rdi: Rdi) {
        let port = request.port;
        if self.phase != Phase::Joined || self.upstream == Some(port) || rdi.switch_name == self.config.switch_name {
            return self.busy(request);
        }
        if let Some(link) = self.links.get_mut(&port) {
            link.child = true;
        }
        let held = self.domains_of(rdi.switch_name);
        if held.len() >= rdi.domains.len().max(1) {
            let domains = matched(&rdi.domains, held).into_iter().flatten().collect();
            let granted = Rdi { switch_name: rdi.switch_name, domains };
            return self.answer(request, SwIls::SwAcc(SwAcc::Rdi(granted)));
        }
        let Some(upstream) = self.upstream else {
            return match self.grant(now, rdi.switch_name, &rdi.domains) {
                Some(domains) => {
                    let granted = Rdi { switch_name: rdi.switch_name, domains };
                    self.answer(request, SwIls::SwAcc(SwAcc::Rdi(granted)));
                }
                None => self.reject(request, Isolation::DomainUnavailable.reject()),
            };
        };
        let Some(relay) = self.relays.get_mut(&rdi.switch_name) else {
            let (name, domains) = (rdi.switch_name, rdi.domains.clone());
            self.relays.insert(name, Relay { domains, waiting: vec![request] });
            self.ask(upstream, SwIls::Rdi(rdi), Asked::Relay(upstream, name));
            return;
        };
        if relay.domains != rdi.domains {
            // The answer that is awaited is to another question.
            return self.busy(request);
        }
        relay.waiting.push(request);
        if relay.waiting.len() > MAX_WAITING {
            let oldest = relay.waiting.remove(0);
            self.busy(oldest);
        }
    }

    /// The answer to an RDI that we passed on.
    pub(super) fn relayed(&mut self, now: Instant, name: Wwnn, answer: Option<SwIls>) {
        if let Some(SwIls::SwAcc(SwAcc::Rdi(rdi))) = &answer {
            // Who asks again, because the way is long, is answered from here.
            for domain in rdi.domains.iter().filter(|domain| (1..=MAX_DOMAIN).contains(*domain)) {
                self.granted.entry(*domain).or_insert(name);
            }
            self.tell_all(now);
        }
        for request in self.relays.remove(&name).into_iter().flat_map(|relay| relay.waiting) {
            match &answer {
                Some(answer) => self.answer(request, answer.clone()),
                None => self.busy(request),
            }
        }
    }

    /// The way up has changed: who waits for an answer is to ask again.
    pub(super) fn forget_relays(&mut self) {
        self.asked.retain(|_, asked| !matches!(asked, Asked::Relay(..)));
        for request in std::mem::take(&mut self.relays).into_values().flat_map(|relay| relay.waiting) {
            self.busy(request);
        }
    }

    /// What the principal of now has granted a switch, as far as we know.
    fn domain_of(&self, name: Wwnn) -> Option<u8> {
        self.granted.iter().find(|(_, owner)| **owner == name).map(|(&domain, _)| domain)
    }

    /// The same, where a gateway has several.
    fn domains_of(&self, name: Wwnn) -> Vec<u8> {
        self.granted.iter().filter(|(_, owner)| **owner == name).map(|(&domain, _)| domain).collect()
    }

    /// Takes our own domain out of the list of the fabric: the answer that says so may be late or lost.
    pub(super) fn find_own_domain(&mut self, now: Instant) {
        if let Some(domain) = self.domain_of(self.config.switch_name)
            && !self.confirmed
            && self.domain.is_none_or(|kept| kept == domain)
        {
            self.given(now, domain);
        }
    }

    /// As principal: gives a switch the wanted domains where they are free, else other ones; all of them, or none. Those
    /// that it has already count.
    pub(super) fn grant(&mut self, now: Instant, name: Wwnn, wanted: &[u8]) -> Option<Vec<u8>> {
        let us = name == self.config.switch_name;
        let reserved = |domain: &u8| self.previous.get(domain).is_some_and(|owner| *owner != name);
        let mut domains = matched(wanted, self.domains_of(name));
        let mut granted = self.granted.clone();
        for (domain, wanted) in domains.iter_mut().zip(wanted.iter().chain([&0])) {
            if domain.is_some() {
                continue;
            }
            let free = |domain: &u8| !granted.contains_key(domain) && (us || self.domain != Some(*domain));
            let all = 1..=MAX_DOMAIN;
            let found = Some(*wanted)
                .filter(|wanted| all.contains(wanted) && free(wanted) && !reserved(wanted))
                .or_else(|| all.clone().find(|domain| free(domain) && !reserved(domain)))
                .or_else(|| all.clone().find(free))?;
            granted.insert(found, name);
            *domain = Some(found);
        }
        if granted != self.granted {
            self.granted = granted;
            self.tell_all(now);
        }
        Some(domains.into_iter().flatten().collect())
    }
}

/// By wanted domain: itself if it is held, else another one that is. Who wants none wants any one.
fn matched(wanted: &[u8], mut held: Vec<u8>) -> Vec<Option<u8>> {
    let mut take = |wanted: &u8| held.iter().position(|domain| domain == wanted).map(|at| held.remove(at));
    let mut domains: Vec<Option<u8>> = match wanted {
        [] => vec![None],
        wanted => wanted.iter().map(&mut take).collect(),
    };
    for domain in domains.iter_mut().filter(|domain| domain.is_none()) {
        if !held.is_empty() {
            *domain = Some(held.remove(0));
        }
    }
    domains
}
