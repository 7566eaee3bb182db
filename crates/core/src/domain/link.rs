//! Links to neighbours: what is under way on them, and floods.

use super::rebuild::Kind;
use super::{Claim, DomainManager, NEVER_PRINCIPAL, Output, Phase};
use crate::ils::{Outcome, Peer, Send};
use crate::isolation::{Isolation, asks_for_patience};
use crate::time::Instant;
use sanloom_wire::sw_ils::{Efp, EfpRecord, SwAcc, SwIls, command};
use sanloom_wire::{Message, Wwnn};
use std::collections::BTreeSet;

/// A link that may carry traffic.
#[derive(Debug)]
pub(super) struct Link {
    pub(super) neighbour: Wwnn,
    /// What the neighbour said last.
    pub(super) heard: Option<Claim>,
    /// It asks for domains over this link: we are its way to the principal.
    pub(super) child: bool,
    /// It was reported as belonging to our fabric.
    pub(super) ready: bool,
    /// It does not know everything.
    pub(super) dirty: bool,
    /// An EFP is under way.
    pub(super) telling: bool,
    /// It is to be told that domains are to be had.
    pub(super) invite: bool,
    /// It is to build the fabric anew, and has not said that it will.
    pub(super) rebuild: Option<Kind>,
    /// The rebuild is only proposed: ours begins when the neighbour agrees.
    pub(super) proposal: bool,
    /// BF or RCF is under way.
    pub(super) rebuilding: bool,
    /// Nothing is sent before.
    pub(super) not_before: Instant,
}

/// A request of ours, by what it is for.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Asked {
    Efp(u16),
    Dia(u16),
    Rebuild(u16, Kind),
    /// RDI for ourselves.
    Rdi(u16),
    /// RDI for another switch.
    Relay(u16, Wwnn),
    /// EFP over a link that we isolated, which tells the other end why.
    Farewell(u16),
}

impl Asked {
    pub(super) fn port(self) -> u16 {
        match self {
            Asked::Efp(port) | Asked::Dia(port) | Asked::Rebuild(port, _) => port,
            Asked::Rdi(port) | Asked::Relay(port, _) | Asked::Farewell(port) => port,
        }
    }
}

impl DomainManager {
    pub(super) fn link_up(&mut self, now: Instant, port: u16, neighbour: Wwnn) {
        self.link_down(now, port);
        let link = Link {
            neighbour,
            heard: None,
            child: false,
            ready: false,
            dirty: true,
            telling: false,
            invite: self.phase == Phase::Joined,
            rebuild: None,
            proposal: false,
            rebuilding: false,
            not_before: now,
        };
        self.links.insert(port, link);
        match self.phase {
            Phase::Alone(_) => self.select(now),
            // Somebody who may be principal may be coming.
            Phase::Selecting { .. } if self.claim.priority == NEVER_PRINCIPAL => self.restart_quiet(now),
            _ => {}
        }
        self.soon(now);
    }

    pub(super) fn link_down(&mut self, now: Instant, port: u16) {
        self.isolated.remove(&port);
        self.farewells.remove(&port);
        self.asked.retain(|_, asked| asked.port() != port);
        self.drop_link(now, port);
    }

    /// The link is gone. If the tree of the fabric loses a branch, the fabric is built anew.
    pub(super) fn drop_link(&mut self, now: Instant, port: u16) {
        let Some(link) = self.links.remove(&port) else { return };
        self.asked.retain(|_, asked| asked.port() != port);
        for relay in self.relays.values_mut() {
            relay.waiting.retain(|request| request.port != port);
        }
        let was_upstream = self.upstream == Some(port);
        if (was_upstream || link.child)
            && !self.replace(now, &link, was_upstream)
            && !matches!(self.phase, Phase::Hold(..))
        {
            self.begin(now, Kind::Gentle, None);
        } else if self.links.is_empty() && self.phase != Phase::Joined {
            self.settle_alone(now);
        }
    }

    /// Puts another link to the same neighbour into the place of a lost one.
    fn replace(&mut self, now: Instant, lost: &Link, was_upstream: bool) -> bool {
        let claim = self.claim;
        let same = |link: &Link| {
            link.neighbour == lost.neighbour
                && link.rebuild.is_none()
                && link.heard.is_some_and(|heard| heard.name == claim.name)
        };
        let Some((&port, link)) = self.links.iter_mut().find(|(_, link)| same(link)) else { return false };
        if self.phase != Phase::Joined {
            return false;
        }
        link.child |= lost.child;
        if was_upstream {
            self.upstream = Some(port);
            self.forget_relays();
            if !self.confirmed {
                self.requesting = None;
                self.request_at = Some(now);
            }
        }
        true
    }

    pub(super) fn isolate(&mut self, now: Instant, port: u16, reason: Isolation) {
        if self.links.contains_key(&port) {
            self.isolated.insert(port, reason.clone());
            self.outputs.push_back(Output::Isolate { port, reason });
            self.drop_link(now, port);
        }
    }

    /// Everybody is to hear the news.
    pub(super) fn tell_all(&mut self, now: Instant) {
        for link in self.links.values_mut() {
            link.dirty = true;
        }
        self.soon(now);
    }

    /// What we know, as EFP.
    pub(super) fn efp(&self) -> Efp {
        let claim = if let Phase::Hold(..) = self.phase { self.own_claim() } else { self.claim };
        let record = |(&domain, &name): (&u8, &Wwnn)| EfpRecord::domain(domain, name);
        Efp {
            principal_priority: claim.priority,
            principal_name: claim.name,
            records: self.granted.iter().map(record).collect(),
        }
    }

    pub(super) fn ask(&mut self, port: u16, message: SwIls, asked: Asked) -> u32 {
        let tag = self.next_tag;
        self.next_tag = self.next_tag.wrapping_add(1);
        self.asked.insert(tag, asked);
        self.outputs.push_back(Output::Send(Send::Request { to: Peer::Link(port), message: message.into(), tag }));
        tag
    }

    /// Sends what waits on all links, and says what has changed.
    pub(super) fn flood(&mut self, now: Instant) {
        self.flood_at = None;
        let silent = matches!(self.phase, Phase::Hold(..) | Phase::Alone(_));
        let (claim, upstream) = (self.claim, self.upstream);
        let mut next = Instant::NEVER;
        let mut todo = Vec::new();
        for (&port, link) in &mut self.links {
            let rebuild = link.rebuild.filter(|_| !link.rebuilding);
            let knows = link.heard.is_some_and(|heard| !heard.proposed && heard.name == claim.name);
            link.invite &= !knows && Some(port) != upstream;
            let foreign = link.heard.is_some_and(|heard| !heard.proposed);
            let invite = link.invite && !foreign && !silent && link.rebuild.is_none();
            let tell = link.dirty && !link.telling && !silent && link.rebuild.is_none();
            if rebuild.is_none() && !invite && !tell {
                continue;
            }
            if link.not_before > now {
                next = next.min(link.not_before);
                continue;
            }
            if let Some(kind) = rebuild {
                link.rebuilding = true;
                todo.push((port, Asked::Rebuild(port, kind)));
            }
            if tell {
                (link.telling, link.dirty) = (true, false);
                todo.push((port, Asked::Efp(port)));
            }
            if invite {
                link.invite = false;
                todo.push((port, Asked::Dia(port)));
            }
        }
        for (&port, at) in &self.farewells {
            match *at > now {
                true => next = next.min(*at),
                false => todo.push((port, Asked::Farewell(port))),
            }
        }
        self.farewells.retain(|_, at| *at > now);
        if next != Instant::NEVER {
            self.look_at(next);
        }
        for (port, asked) in todo {
            let message = match asked {
                Asked::Rebuild(_, kind) => kind.message(),
                Asked::Dia(_) => SwIls::Dia { switch_name: self.config.switch_name },
                // Nobody is to follow us: the request is for its answer only.
                Asked::Farewell(_) => SwIls::Efp(Efp { principal_priority: NEVER_PRINCIPAL, ..self.efp() }),
                _ => SwIls::Efp(self.efp()),
            };
            self.ask(port, message, asked);
        }
        self.report();
    }

    pub(super) fn outcome(&mut self, now: Instant, tag: u32, outcome: Outcome) {
        let Some(asked) = self.asked.remove(&tag) else { return };
        let answer = match outcome {
            Outcome::Answered(Message::SwIls(answer)) => Some(*answer),
            _ => None,
        };
        match asked {
            Asked::Rdi(_) => return self.granted(now, tag, answer),
            Asked::Relay(_, name) => return self.relayed(now, name, answer),
            Asked::Farewell(port) => return self.farewell_ended(now, port, answer),
            _ => {}
        }
        let (port, again_at) = (asked.port(), now + self.patience());
        let Some(link) = self.links.get_mut(&port) else { return };
        match asked {
            Asked::Efp(_) => link.telling = false,
            Asked::Rebuild(..) => link.rebuilding = false,
            _ => {}
        }
        let failed = match answer {
            Some(SwIls::SwRjt(reject)) if !asks_for_patience(reject) => Some(reject),
            Some(SwIls::SwAcc(accept)) => return self.accepted(now, port, asked, accept),
            _ => None,
        };
        if let Some(reject) = failed {
            return match asked {
                Asked::Efp(_) | Asked::Dia(_) => self.isolate(now, port, Isolation::from_reject(command::EFP, reject)),
                Asked::Rebuild(_, kind) if link.rebuild.is_some() => {
                    self.isolate(now, port, Isolation::from_reject(kind.command(), reject));
                }
                _ => {}
            };
        }
        match asked {
            Asked::Efp(_) => link.dirty = true,
            Asked::Dia(_) => link.invite = true,
            _ => {}
        }
        link.not_before = again_at;
        self.look_at(again_at);
    }

    /// The neighbour isolates the link, too, when it rejects; before that it may have to settle.
    fn farewell_ended(&mut self, now: Instant, port: u16, answer: Option<SwIls>) {
        let understood = matches!(answer, Some(SwIls::SwRjt(reject)) if !asks_for_patience(reject));
        if !understood && self.isolated.contains_key(&port) {
            let again_at = now + self.patience();
            self.farewells.insert(port, again_at);
            self.look_at(again_at);
        }
    }

    fn accepted(&mut self, now: Instant, port: u16, asked: Asked, accept: SwAcc) {
        match (asked, accept) {
            (Asked::Efp(_), SwAcc::Efp(efp)) => self.hear_accept(now, port, &efp),
            (Asked::Dia(_), _) => self.expect_adoption(now, port),
            (Asked::Rebuild(_, kind), _) => {
                let Some(link) = self.links.get_mut(&port) else { return };
                link.rebuild = None;
                if std::mem::take(&mut link.proposal) {
                    self.begin(now, kind, Some(port));
                } else {
                    self.soon(now);
                }
            }
            _ => {}
        }
    }

    /// Says what others in the switch do not know yet.
    fn report(&mut self) {
        if self.phase != Phase::Joined || !self.confirmed {
            return;
        }
        let Claim { priority, name, .. } = self.claim;
        if self.told.principal != Some((name, priority)) {
            let renamed = self.told.principal.is_none_or(|(told, _)| told != name);
            self.told.principal = Some((name, priority));
            self.outputs.push_back(Output::Principal { name, priority, ours: name == self.config.switch_name });
            if renamed {
                self.outputs.push_back(Output::FabricName(name));
            }
        }
        let names: BTreeSet<Wwnn> = self.granted.values().copied().collect();
        let mut domains = self.granted.clone();
        for (&domain, &owner) in self.previous.iter().filter(|(_, owner)| !names.contains(owner)) {
            domains.entry(domain).or_insert(owner);
        }
        if self.told.domains != domains {
            self.outputs.push_back(Output::Domains(domains.iter().map(|(&domain, &name)| (domain, name)).collect()));
            self.told.domains = domains;
        }
        for (&port, link) in &mut self.links {
            let ours = link.heard.is_some_and(|heard| !heard.proposed && heard.name == name);
            if !link.ready && ours && link.rebuild.is_none() && names.contains(&link.neighbour) {
                link.ready = true;
                self.outputs.push_back(Output::LinkReady { port });
            }
        }
    }
}
