//! Building the fabric anew, the selection of a principal, and being alone.

use super::link::{Asked, Link};
use super::{DomainManager, NEVER_PRINCIPAL, Output, Phase, WAS_PRINCIPAL};
use crate::ils::Request;
use crate::isolation::Isolation;
use crate::time::Instant;
use sanloom_wire::sw_ils::{SwAcc, SwIls, command};

/// How a fabric is built anew.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Kind {
    /// BF: domains stay.
    Gentle,
    /// RCF: domains go.
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
    /// BF or RCF of a neighbour.
    pub(super) fn rebuild_asked(&mut self, now: Instant, request: Request, kind: Kind) {
        if kind == Kind::Disruptive && !self.config.allow_rcf {
            self.reject(request, Isolation::RcfDenied.reject());
            return self.isolate(now, request.port, Isolation::RcfDenied);
        }
        self.answer(request, SwIls::SwAcc(SwAcc::Empty));
        if let Some(link) = self.links.get_mut(&request.port) {
            // It has begun anew, too: no need to ask for it.
            link.rebuild = None;
            link.proposal = false;
            link.heard = None;
        }
        match self.phase {
            Phase::Hold(_, held) if held == Kind::Disruptive || kind == Kind::Gentle => {}
            _ => self.begin(now, kind, Some(request.port)),
        }
    }

    /// Builds the fabric anew. The neighbour at `except` knows already.
    pub(super) fn begin(&mut self, now: Instant, kind: Kind, except: Option<u16>) {
        if self.phase == Phase::Joined {
            let was_principal = self.is_principal() && self.granted.len() > 1;
            let priority = self.config.priority.max(1);
            self.priority = if was_principal { priority.min(WAS_PRINCIPAL) } else { priority };
        }
        self.forget_relays();
        let granted = std::mem::take(&mut self.granted);
        self.previous.extend(granted);
        if kind == Kind::Disruptive {
            self.previous.clear();
            self.lose_domain();
        }
        self.claim = self.own_claim();
        self.upstream = None;
        self.confirmed = false;
        self.requesting = None;
        self.request_at = None;
        self.give_up_at = None;
        self.settle_at = None;
        self.asked.retain(|_, asked| matches!(asked, Asked::Farewell(_)));
        for (&port, link) in &mut self.links {
            link.heard = None;
            link.child = false;
            link.dirty = true;
            link.telling = false;
            link.invite = false;
            link.rebuild = (Some(port) != except).then_some(kind);
            link.proposal = false;
            link.rebuilding = false;
            link.not_before = now;
        }
        self.phase = Phase::Hold(now + self.config.f_s_tov, kind);
        self.look_at(now);
        if self.links.is_empty() {
            self.settle_alone(now);
        }
    }

    pub(super) fn lose_domain(&mut self) {
        if self.domain.take().is_some() {
            self.outputs.push_back(Output::Domain(None));
            for link in self.links.values_mut() {
                link.ready = false;
            }
        }
    }

    pub(super) fn phase_timeout(&mut self, now: Instant) {
        match self.phase {
            Phase::Alone(at) if at <= now => self.become_principal(now),
            Phase::Hold(until, _) if until <= now => self.select(now),
            Phase::Selecting { until, late } if until <= now => self.selected(now, late),
            _ => {}
        }
    }

    /// Begins a selection, knowing nobody.
    pub(super) fn select(&mut self, now: Instant) {
        self.claim = self.own_claim();
        self.upstream = None;
        self.restart_quiet(now);
        self.tell_all(now);
    }

    pub(super) fn restart_quiet(&mut self, now: Instant) {
        self.phase = Phase::Selecting { until: now + self.config.f_s_tov.times(2), late: false };
    }

    /// The quiet time is over.
    fn selected(&mut self, now: Instant, late: bool) {
        if self.claim.priority == NEVER_PRINCIPAL {
            self.nobody_found(now, late);
        } else if self.upstream.is_none() {
            self.become_principal(now);
        } else if late {
            self.begin(now, Kind::Gentle, None);
        } else {
            self.wait_longer(now);
        }
    }

    /// A little more than anybody's quiet time: an invitation has to come through all the switches between.
    fn wait_longer(&mut self, now: Instant) {
        self.phase = Phase::Selecting { until: now + self.config.f_s_tov.times(3), late: true };
    }

    /// Nobody may be principal here. A fabric that has one and was not joined has a domain of ours. Without such a fabric a
    /// neighbour may have one, and is about to find out.
    fn nobody_found(&mut self, now: Instant, late: bool) {
        let foreign = |link: &Link| link.heard.is_some_and(|heard| !heard.proposed);
        let foreign: Vec<u16> = self.links.iter().filter(|(_, link)| foreign(link)).map(|(&port, _)| port).collect();
        if foreign.is_empty() {
            return match late {
                true => self.isolate_all(now, Isolation::NoPrincipal),
                false => self.wait_longer(now),
            };
        }
        self.restart_quiet(now);
        for port in foreign {
            if let Some(reason) = self.overlap_stays(now, port) {
                self.isolate(now, port, reason);
            }
        }
    }

    pub(super) fn become_principal(&mut self, now: Instant) {
        self.phase = Phase::Joined;
        self.claim = super::Claim { proposed: false, ..self.own_claim() };
        self.upstream = None;
        self.settle_at = Some(now + self.config.f_s_tov.times(2));
        for link in self.links.values_mut() {
            link.invite = true;
        }
        match self.domain {
            Some(domain) => self.confirm(now, domain),
            // Those who have a domain to keep ask for it first.
            None if !self.links.is_empty() => self.request_at = Some(now + self.config.f_s_tov),
            None => self.want_domain(now),
        }
        self.tell_all(now);
    }

    /// There is no link. What we know of others is worth nothing any more.
    pub(super) fn settle_alone(&mut self, now: Instant) {
        self.granted.clear();
        self.previous.clear();
        self.claim = self.own_claim();
        self.upstream = None;
        self.flood_at = None;
        if self.config.priority == NEVER_PRINCIPAL {
            self.phase = Phase::Alone(Instant::NEVER);
        } else if self.domain.is_some() || self.config.preferred.is_some() {
            self.become_principal(now);
            self.settle_at = None;
        } else {
            self.phase = Phase::Alone(now + self.patience());
        }
    }

    /// We cannot live with our neighbours.
    pub(super) fn isolate_all(&mut self, now: Instant, reason: Isolation) {
        self.forget_relays();
        let ports: Vec<u16> = std::mem::take(&mut self.links).into_keys().collect();
        self.asked.retain(|_, asked| matches!(asked, Asked::Farewell(_)));
        self.confirmed = false;
        self.requesting = None;
        self.request_at = None;
        self.give_up_at = None;
        self.priority = self.config.priority.max(1);
        for &port in &ports {
            self.isolated.insert(port, reason.clone());
            self.outputs.push_back(Output::Isolate { port, reason: reason.clone() });
        }
        self.settle_alone(now);
        // They find out what is wrong when they hear what we have.
        self.farewells.extend(ports.into_iter().map(|port| (port, now)));
        self.look_at(now);
    }
}
