//! What neighbours say: requests, and EFP of either kind.

use super::rebuild::Kind;
use super::{Claim, DomainManager, FLOOD_DELAY, MAX_DOMAIN, NEVER_PRINCIPAL, Phase};
use crate::ils::{Peer, Request};
use crate::isolation::Isolation;
use crate::time::Instant;
use sanloom_wire::Wwnn;
use sanloom_wire::sw_ils::{Efp, EfpRecord, SwAcc, SwIls, SwRjt, SwRjtExplanation, SwRjtReason};
use std::collections::BTreeMap;

/// What an EFP leads to.
enum Verdict {
    Heard,
    /// It cannot be judged now.
    Later,
    Isolate(Isolation),
}

impl DomainManager {
    pub(super) fn request(&mut self, now: Instant, request: Request, message: SwIls) {
        let port = request.port;
        if request.from != Peer::Link(port) {
            return self.reject(request, SwRjt::new(SwRjtReason::PROTOCOL_ERROR, SwRjtExplanation::NONE));
        }
        if let Some(reason) = self.isolated.get(&port) {
            let reject = reason.reject();
            return self.reject(request, reject);
        }
        let Some(link) = self.links.get(&port) else {
            let early = SwRjtExplanation::LINK_PARAMETERS_NOT_ESTABLISHED;
            return self.reject(request, SwRjt::new(SwRjtReason::UNABLE, early));
        };
        let deaf = link.rebuild.is_some();
        match message {
            SwIls::Bf => self.rebuild_asked(now, request, Kind::Gentle),
            SwIls::Rcf => self.rebuild_asked(now, request, Kind::Disruptive),
            SwIls::Efp(_) | SwIls::Dia { .. } | SwIls::Rdi(_) if deaf => self.busy(request),
            SwIls::Efp(efp) => self.hear_request(now, request, &efp),
            SwIls::Dia { .. } => self.invited(now, request),
            SwIls::Rdi(rdi) => self.domain_asked(now, request, rdi),
            _ => self.reject(request, SwRjt::new(SwRjtReason::NOT_SUPPORTED, SwRjtExplanation::NOT_SUPPORTED)),
        }
    }

    fn hear_request(&mut self, now: Instant, request: Request, efp: &Efp) {
        let Some(records) = domains(efp) else {
            let bad_list = SwRjt::new(SwRjtReason::PROTOCOL_ERROR, SwRjtExplanation::NONE);
            return self.reject(request, bad_list);
        };
        match self.hear(now, request.port, efp, &records) {
            Verdict::Heard => {
                self.answer(request, SwIls::SwAcc(SwAcc::Efp(self.efp())));
                let silent = matches!(self.phase, Phase::Hold(..));
                if let Some(link) = self.links.get_mut(&request.port) {
                    // The accept says it all.
                    link.dirty &= silent;
                }
                self.expect_adoption(now, request.port);
            }
            Verdict::Later => self.busy(request),
            Verdict::Isolate(reason) => {
                self.reject(request, reason.reject());
                self.isolate(now, request.port, reason);
            }
        }
    }

    /// A neighbour with a worse principal, or none yet, adopts ours and says so. If it does not, it is asked, and may say
    /// why: or that it did long ago, and what we heard was a repetition older than its accept. An invitation goes first. Our own
    /// principal that calls itself none has isolated the link, and says why when it is asked.
    pub(super) fn expect_adoption(&mut self, now: Instant, port: u16) {
        let (joined, claim, is_upstream) = (self.phase == Phase::Joined, self.claim, self.upstream == Some(port));
        let again_at = now + self.patience();
        if let Some(link) = self.links.get_mut(&port)
            && let Some(heard) = link.heard.filter(|heard| joined && *heard > claim)
            && if heard.proposed {
                !link.invite || is_upstream
            } else {
                heard.name != claim.name || heard.priority == NEVER_PRINCIPAL
            }
        {
            link.dirty = true;
            link.not_before = again_at;
            self.look_at(again_at);
        }
    }

    pub(super) fn hear_accept(&mut self, now: Instant, port: u16, efp: &Efp) {
        let Some(records) = domains(efp) else { return self.isolate(now, port, Isolation::EfpRejected) };
        if self.links.get(&port).is_none_or(|link| link.rebuild.is_some()) {
            return;
        }
        let verdict = self.hear(now, port, efp, &records);
        if let Verdict::Isolate(reason) = verdict {
            return self.isolate(now, port, reason);
        }
        // What the neighbour did not take over now, being busy, it is told again.
        let misses = efp.principal_name != self.claim.name || self.granted.keys().any(|d| !records.contains_key(d));
        let again_at = now + self.patience();
        if let Some(link) = self.links.get_mut(&port)
            && (misses || matches!(verdict, Verdict::Later))
            && !link.dirty
        {
            link.dirty = true;
            link.not_before = again_at;
            self.look_at(again_at);
        }
    }

    fn hear(&mut self, now: Instant, port: u16, efp: &Efp, records: &BTreeMap<u8, Wwnn>) -> Verdict {
        let claim =
            Claim { proposed: records.is_empty(), priority: efp.principal_priority.max(1), name: efp.principal_name };
        if matches!(self.phase, Phase::Hold(..)) {
            return Verdict::Heard;
        }
        let Some(link) = self.links.get_mut(&port) else { return Verdict::Heard };
        link.heard = Some(claim);
        self.soon(now);
        let us = claim.name == self.config.switch_name;
        let joined = self.phase == Phase::Joined;
        let is_worse = joined && claim > self.claim;
        if us && !claim.proposed && !self.is_principal() && !is_worse {
            // A fabric from before believes that we are its principal, and would not take our principal of now for a
            // better one. (Who adopted us a moment ago, when we were principal, will.)
            self.begin(now, Kind::Gentle, None);
            return Verdict::Heard;
        }
        if claim.proposed {
            if !joined && !us && claim < self.claim {
                self.claim = claim;
                self.upstream = Some(port);
                self.restart_quiet(now);
                self.tell_all(now);
            } else if joined {
                self.invite(port);
            }
            return Verdict::Heard;
        }
        if joined && claim.name == self.claim.name {
            self.take_over(now, port, records);
            return Verdict::Heard;
        }
        if self.overlaps(records) {
            return self.overlap(now, port);
        }
        if !joined || claim < self.claim {
            self.adopt(now, port, claim, records.clone());
        }
        Verdict::Heard
    }

    /// The domains of our own fabric, from a neighbour: what we did not know yet.
    fn take_over(&mut self, now: Instant, port: u16, records: &BTreeMap<u8, Wwnn>) {
        let unknown = records.iter().any(|(domain, _)| !self.granted.contains_key(domain));
        if !unknown {
            return;
        }
        if self.is_principal() {
            // Nobody but us grants domains here, so this is what was, and somebody missed the end of it.
            return self.begin(now, Kind::Gentle, None);
        }
        // A neighbour that heard no domains of us does not know that we belong to its fabric.
        let news = self.granted.is_empty();
        for (&domain, &owner) in records {
            self.granted.entry(domain).or_insert(owner);
        }
        let complete = self.granted.len() == records.len();
        let knew = self.links.get(&port).is_some_and(|link| link.dirty);
        self.tell_all(now);
        if let Some(link) = self.links.get_mut(&port) {
            link.dirty = knew || news || !complete;
        }
        self.find_own_domain(now);
    }

    /// A domain has one owner here and another one there.
    fn overlaps(&self, records: &BTreeMap<u8, Wwnn>) -> bool {
        let own = self.domain.map(|domain| (domain, self.config.switch_name));
        records.iter().any(|(domain, owner)| {
            let here = self.granted.get(domain).or_else(|| self.previous.get(domain));
            here.is_some_and(|here| here != owner) || own.is_some_and(|(own, name)| own == *domain && name != *owner)
        })
    }

    fn overlap(&mut self, now: Instant, port: u16) -> Verdict {
        // While a fabric is built, some of its domains may be those of switches that are gone.
        if self.phase != Phase::Joined || !self.confirmed || self.settle_at.is_some() {
            return Verdict::Later;
        }
        self.overlap_stays(now, port).map_or(Verdict::Later, Verdict::Isolate)
    }

    /// The overlap with the fabric at `port` will not pass by itself: why to isolate the link, or nothing if all domains are
    /// to be given anew.
    pub(super) fn overlap_stays(&mut self, now: Instant, port: u16) -> Option<Isolation> {
        if !self.config.auto_reconfigure || !self.config.allow_rcf {
            return Some(Isolation::DomainOverlap);
        }
        if let Some(link) = self.links.get_mut(&port) {
            link.rebuild = Some(Kind::Disruptive);
            link.proposal = true;
        }
        self.look_at(now);
        None
    }

    /// We belong to the fabric of `claim` from now on, and the way to its principal is `port`.
    pub(super) fn adopt(&mut self, now: Instant, port: u16, claim: Claim, records: BTreeMap<u8, Wwnn>) {
        // Who took part in a selection lets those go first that have a domain to keep.
        let selected = matches!(self.phase, Phase::Selecting { .. }) && self.claim.name == claim.name;
        let wait = if selected && self.domain.is_none() { self.config.f_s_tov } else { FLOOD_DELAY };
        self.forget_relays();
        let before = std::mem::replace(&mut self.granted, records);
        self.previous.extend(before);
        self.claim = Claim { proposed: false, ..claim };
        self.priority = self.config.priority.max(1);
        self.upstream = Some(port);
        self.phase = Phase::Joined;
        self.confirmed = false;
        self.requesting = None;
        self.request_at = Some(now + wait);
        self.give_up_at = Some(now + self.config.f_s_tov.times(4));
        self.settle_at = Some(now + self.config.f_s_tov.times(2));
        // Children of before stay such: requests of theirs may be on their way up, and must not outlive them.
        for link in self.links.values_mut() {
            link.invite = true;
        }
        self.tell_all(now);
    }

    fn invite(&mut self, port: u16) {
        if self.upstream != Some(port)
            && let Some(link) = self.links.get_mut(&port)
        {
            link.invite = true;
        }
    }
}

/// The domains of an EFP, or nothing if one is none.
fn domains(efp: &Efp) -> Option<BTreeMap<u8, Wwnn>> {
    let records = efp.records.iter().filter(|record| record.kind == EfpRecord::DOMAIN);
    records.map(|record| (1..=MAX_DOMAIN).contains(&record.id).then_some((record.id, record.switch_name))).collect()
}
