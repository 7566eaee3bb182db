//! Links to neighbours, and the information that each neighbour lacks: [`Links`].

use super::outbox::Purpose;
use super::rebuild::Kind;
use super::selection::{Claim, Selection};
use super::{FLOOD_DELAY, NEVER_PRINCIPAL};
use crate::isolation::Isolation;
use sanloom_scsi::time::Instant;
use sanloom_wire::Wwnn;
use std::collections::BTreeMap;

/// Link that may carry traffic.
#[derive(Debug)]
pub(super) struct Link {
    pub(super) neighbour: Wwnn,
    /// Last claim received from the neighbour.
    pub(super) received: Option<Claim>,
    /// The neighbour requests domains over this link, so this switch is its path to the principal.
    pub(super) child: bool,
    /// The link was reported as part of the own fabric.
    pub(super) ready: bool,
    /// The neighbour lacks information; an EFP is due.
    pub(super) dirty: bool,
    /// An EFP is in flight.
    efp_in_flight: bool,
    /// A DIA is due, which invites the neighbour to request a domain.
    pub(super) invite: bool,
    /// BF or RCF is due; the neighbour has not accepted it yet.
    pub(super) rebuild: Option<Kind>,
    /// The rebuild is only proposed; this switch starts it when the neighbour accepts.
    pub(super) proposal: bool,
    /// BF or RCF is in flight.
    rebuild_in_flight: bool,
    /// Earliest time of the next request on this link.
    not_before: Instant,
}

impl Link {
    /// Returns a new link. With `invite`, a DIA is due.
    pub(super) fn new(now: Instant, neighbour: Wwnn, invite: bool) -> Link {
        Link {
            neighbour,
            received: None,
            child: false,
            ready: false,
            dirty: true,
            efp_in_flight: false,
            invite,
            rebuild: None,
            proposal: false,
            rebuild_in_flight: false,
            not_before: now,
        }
    }

    /// Returns true if the neighbour belongs to a fabric with a principal.
    fn has_principal(&self) -> bool {
        self.received.is_some_and(|received| !received.proposed)
    }

    /// Returns true if the neighbour belongs to the fabric of this principal.
    pub(super) fn belongs_to(&self, principal: Wwnn) -> bool {
        self.received.is_some_and(|received| !received.proposed && received.name == principal)
    }
}

/// Links, isolated ports, and the time of the next flood.
#[derive(Debug, Default)]
pub(super) struct Links {
    by_port: BTreeMap<u16, Link>,
    isolated: BTreeMap<u16, Isolation>,
    /// Isolated ports whose neighbours have not received the reason yet, with the time of the next
    /// EFP.
    notices: BTreeMap<u16, Instant>,
    flood_at: Option<Instant>,
}

impl Links {
    pub(super) fn get(&self, port: u16) -> Option<&Link> {
        self.by_port.get(&port)
    }

    pub(super) fn get_mut(&mut self, port: u16) -> Option<&mut Link> {
        self.by_port.get_mut(&port)
    }

    pub(super) fn iter_mut(&mut self) -> impl Iterator<Item = (u16, &mut Link)> {
        self.by_port.iter_mut().map(|(&port, link)| (port, link))
    }

    pub(super) fn is_empty(&self) -> bool {
        self.by_port.is_empty()
    }

    pub(super) fn insert(&mut self, port: u16, link: Link) {
        self.by_port.insert(port, link);
    }

    pub(super) fn remove(&mut self, port: u16) -> Option<Link> {
        self.by_port.remove(&port)
    }

    /// Removes all links and returns their ports.
    pub(super) fn remove_all(&mut self) -> Vec<u16> {
        std::mem::take(&mut self.by_port).into_keys().collect()
    }

    /// Ports to fabrics that have a principal.
    pub(super) fn foreign_ports(&self) -> Vec<u16> {
        self.by_port.iter().filter(|(_, link)| link.has_principal()).map(|(&port, _)| port).collect()
    }

    /// Link to the same neighbour as a lost one, in the fabric of `principal`.
    pub(super) fn replacement(&mut self, lost: &Link, principal: Wwnn) -> Option<(u16, &mut Link)> {
        self.iter_mut().find(|(_, link)| {
            link.neighbour == lost.neighbour
                && link.rebuild.is_none()
                && link.received.is_some_and(|received| received.name == principal)
        })
    }

    /// Reason why a port is isolated.
    pub(super) fn isolation(&self, port: u16) -> Option<&Isolation> {
        self.isolated.get(&port)
    }

    pub(super) fn set_isolation(&mut self, port: u16, reason: Isolation) {
        self.isolated.insert(port, reason);
    }

    pub(super) fn clear_isolation(&mut self, port: u16) {
        self.isolated.remove(&port);
        self.notices.remove(&port);
    }

    /// Schedules an EFP over isolated links; the neighbours receive the reason in the reply.
    pub(super) fn notify(&mut self, at: Instant, ports: impl IntoIterator<Item = u16>) {
        self.notices.extend(ports.into_iter().map(|port| (port, at)));
        self.flood_by(at);
    }

    pub(super) fn flood_at(&self) -> Option<Instant> {
        self.flood_at
    }

    /// Schedules a flood after a change.
    pub(super) fn schedule_flood(&mut self, now: Instant) {
        self.flood_by(now + FLOOD_DELAY);
    }

    /// Schedules a flood not later than `at`.
    pub(super) fn flood_by(&mut self, at: Instant) {
        self.flood_at = Some(self.flood_at.map_or(at, |before| before.min(at)));
    }

    pub(super) fn cancel_flood(&mut self) {
        self.flood_at = None;
    }

    /// Schedules an EFP to all neighbours.
    pub(super) fn mark_all_dirty(&mut self, now: Instant) {
        for link in self.by_port.values_mut() {
            link.dirty = true;
        }
        self.schedule_flood(now);
    }

    /// Schedules an EFP to one neighbour.
    pub(super) fn send_efp_at(&mut self, at: Instant, port: u16) {
        if let Some(link) = self.by_port.get_mut(&port) {
            link.dirty = true;
            link.not_before = at;
            self.flood_by(at);
        }
    }

    /// Schedules an invitation (DIA) to all neighbours.
    pub(super) fn invite_all(&mut self) {
        for link in self.by_port.values_mut() {
            link.invite = true;
        }
    }

    /// Requests that are due on all links. With `silent`, only rebuilds and notices are.
    pub(super) fn take_due(&mut self, now: Instant, selection: &Selection, silent: bool) -> Vec<Purpose> {
        self.flood_at = None;
        let (principal, upstream) = (selection.claim().name, selection.upstream());
        let mut next = Instant::NEVER;
        let mut due = Vec::new();
        for (&port, link) in &mut self.by_port {
            let rebuild = link.rebuild.filter(|_| !link.rebuild_in_flight);
            link.invite &= !link.belongs_to(principal) && Some(port) != upstream;
            let quiet = silent || link.rebuild.is_some();
            let invite = link.invite && !link.has_principal() && !quiet;
            let efp = link.dirty && !link.efp_in_flight && !quiet;
            if rebuild.is_none() && !invite && !efp {
                continue;
            }
            if link.not_before > now {
                next = next.min(link.not_before);
                continue;
            }
            if let Some(kind) = rebuild {
                link.rebuild_in_flight = true;
                due.push(Purpose::Rebuild(port, kind));
            }
            if efp {
                (link.efp_in_flight, link.dirty) = (true, false);
                due.push(Purpose::Efp(port));
            }
            if invite {
                link.invite = false;
                due.push(Purpose::Dia(port));
            }
        }
        for (&port, at) in &self.notices {
            match *at > now {
                true => next = next.min(*at),
                false => due.push(Purpose::Notice(port)),
            }
        }
        self.notices.retain(|_, at| *at > now);
        if next != Instant::NEVER {
            self.flood_by(next);
        }
        due
    }

    /// Records the end of a request. Returns the link, if it still exists.
    pub(super) fn end_request(&mut self, purpose: Purpose) -> Option<&mut Link> {
        let link = self.by_port.get_mut(&purpose.port())?;
        match purpose {
            Purpose::Efp(_) => link.efp_in_flight = false,
            Purpose::Rebuild(..) => link.rebuild_in_flight = false,
            _ => {}
        }
        Some(link)
    }

    /// Repeats a request that had no effect, not before `at`.
    pub(super) fn repeat(&mut self, at: Instant, purpose: Purpose) {
        let Some(link) = self.by_port.get_mut(&purpose.port()) else { return };
        match purpose {
            Purpose::Efp(_) => link.dirty = true,
            Purpose::Dia(_) => link.invite = true,
            _ => {}
        }
        link.not_before = at;
        self.flood_by(at);
    }

    /// Resets all links for a rebuild. The neighbour at `except` needs no request.
    pub(super) fn start_rebuild(&mut self, now: Instant, kind: Kind, except: Option<u16>) {
        for (&port, link) in &mut self.by_port {
            *link = Link {
                ready: link.ready,
                rebuild: (Some(port) != except).then_some(kind),
                ..Link::new(now, link.neighbour, false)
            };
        }
        self.flood_by(now);
    }

    /// Proposes a rebuild to one neighbour; it starts when the neighbour accepts.
    pub(super) fn propose_rebuild(&mut self, now: Instant, port: u16, kind: Kind) {
        if let Some(link) = self.by_port.get_mut(&port) {
            link.rebuild = Some(kind);
            link.proposal = true;
        }
        self.flood_by(now);
    }

    /// Marks all links as not part of the own fabric.
    pub(super) fn clear_ready(&mut self) {
        for link in self.by_port.values_mut() {
            link.ready = false;
        }
    }

    /// Returns true if a joined switch with `claim` should send its neighbour another EFP.
    ///
    /// A neighbour with a worse principal, or with none yet, adopts ours and confirms that by EFP.
    /// Without that confirmation it receives another EFP, after an invitation (DIA) if it has no
    /// principal. Its reply may contain the reason, or show that its last EFP was outdated and that
    /// it adopted our principal before. If our own principal reports that it has none, it has
    /// isolated the link, and the reply contains the reason.
    pub(super) fn lacks_adoption(&self, port: u16, selection: &Selection) -> bool {
        let claim = selection.claim();
        let Some(link) = self.by_port.get(&port) else { return false };
        match link.received.filter(|received| selection.is_joined() && *received > claim) {
            Some(received) if received.proposed => !link.invite || selection.upstream() == Some(port),
            Some(received) => received.name != claim.name || received.priority == NEVER_PRINCIPAL,
            None => false,
        }
    }
}
