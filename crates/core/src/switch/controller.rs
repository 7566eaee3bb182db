//! The fabric controller: who is told what, and what the other switches tell us.

use super::database::{Known, scope};
use super::entry::NsEntry;
use super::peer::PeerUpdate;
use super::policy::DuplicateNames;
use super::rscn::{Ended, Interest};
use super::{Output, Switch};
use crate::fabric::ZonePlace;
use crate::time::Instant;
use sanloom_wire::els::{Els, LsAcc, LsRjt, LsRjtExplanation, LsRjtReason, Rscn};
use sanloom_wire::{FcId, Header, Message, Wwpn};
use std::sync::Arc;

impl Switch {
    /// SCR (FC-LS, state change registration). Only the fabric login is asked for: hosts register without PLOGI.
    pub(super) fn register_for_changes(&mut self, id: FcId, function: u8) -> Result<LsAcc, LsRjt> {
        if function == CLEAR_REGISTRATION {
            self.rscn.forget(id);
            return Ok(LsAcc::Empty);
        }
        match Interest::of_function(function) {
            Some(interest) => {
                self.rscn.register(id, interest);
                Ok(LsAcc::Empty)
            }
            None => Err(LsRjt::new(LsRjtReason::LOGICAL_ERROR, LsRjtExplanation::NONE)),
        }
    }

    /// An N_Port reports a change of its own: those that asked for such reports hear of it. Pages for other addresses
    /// are not passed on, so nobody can make hosts log out of a third port.
    pub(super) fn reported_change(&mut self, now: Instant, id: FcId, rscn: &Rscn) -> Result<LsAcc, LsRjt> {
        if rscn.pages.iter().any(|page| page.address == id)
            && let Some(known) = self.database.get(id)
        {
            let place = known.place.clone();
            self.notify(now, id, &place, true);
        }
        Ok(LsAcc::Empty)
    }

    /// An N_Port answered an RSCN.
    pub(super) fn notification_answered(&mut self, now: Instant, header: &Header, els: &Els) {
        match self.rscn.answered(now, header.s_id, header.ox_id, Ended::of(els)) {
            Ended::Accepted | Ended::Busy => {}
            Ended::Rejected => self.counters.rscn_rejected += 1,
            Ended::Unknown => self.counters.frames_discarded += 1,
        }
    }

    /// Tells the local ports that may see the port that it changed.
    pub(super) fn notify(&mut self, now: Instant, id: FcId, place: &ZonePlace, by_n_port: bool) {
        for mate in self.audience(id, place) {
            let noted = self.rscn.notify(now, mate, id, by_n_port);
            self.work.notifications += u64::from(noted);
        }
    }

    pub(super) fn notifications_due(&mut self, now: Instant) {
        while let Some(due) = self.rscn.due(now) {
            let Some(login) = self.logins.get(&due.to) else {
                continue;
            };
            self.counters.rscn_sent += 1;
            self.counters.rscn_pages += due.rscn.pages.len() as u64;
            self.counters.rscn_repeated += u64::from(due.repeated);
            let (port, message) = (login.port, Message::Els(Box::new(Els::Rscn(due.rscn))));
            self.request(port, FcId::FABRIC_CONTROLLER, due.to, due.ox_id, message);
        }
    }

    /// Tells the other switches of a local port.
    pub(super) fn publish(&mut self, entry: &Arc<NsEntry>) {
        self.outputs.push_back(Output::Peer(PeerUpdate::Object(entry.clone())));
    }

    /// Tells the other switches of every local port.
    pub(super) fn publish_all(&mut self) {
        let known = |id: &FcId| self.database.get(*id).map(|known| known.entry.clone());
        let entries: Vec<_> = self.logins.keys().filter_map(known).collect();
        entries.iter().for_each(|entry| self.publish(entry));
    }

    /// Another switch tells.
    pub(super) fn peer(&mut self, now: Instant, update: PeerUpdate) {
        self.counters.peer_updates += 1;
        let took_effect = match update {
            PeerUpdate::Object(entry) => self.remote_object(now, entry),
            PeerUpdate::Removed { port_id } => {
                Some(port_id.domain()) != self.domain && self.remove_remote(now, port_id)
            }
            PeerUpdate::Superseded { port_id } => self.superseded(now, port_id),
            PeerUpdate::DomainGone { domain } => self.remove_domain(now, domain),
            PeerUpdate::Supersedes { .. } => false,
        };
        self.counters.peer_updates_ignored += u64::from(!took_effect);
    }

    /// True if the port was logged in.
    fn superseded(&mut self, now: Instant, id: FcId) -> bool {
        let logged_in = self.logins.contains_key(&id);
        if logged_in {
            self.evict(now, id);
            self.addresses.hold(id, now + self.config.r_a_tov);
        }
        logged_in
    }

    /// True if something changed.
    fn remote_object(&mut self, now: Instant, entry: Arc<NsEntry>) -> bool {
        let (id, name) = (entry.port_id, entry.port_name);
        if Some(id.domain()) == self.domain || !self.reachable.has(id.domain()) {
            return false;
        }
        match self.database.get(id) {
            Some(old) if *old.entry == *entry => return false,
            // Another port got the address while we were not looking.
            Some(old) if old.entry.port_name != name => _ = self.remove_remote(now, id),
            _ => {}
        }
        self.database.remove_shadow(id);
        while let Some(other) = self.database.id_of(name).filter(|other| *other != id) {
            if self.database.get(other).is_some_and(|known| self.outranks(&known.entry, &entry)) {
                self.remove_remote(now, id);
                self.database.shadow(entry);
                return true;
            }
            if !self.superseded(now, other) {
                self.evict(now, other);
            }
        }
        self.add_remote(now, entry);
        true
    }

    /// Adds or replaces an object of another switch whose name is free.
    fn add_remote(&mut self, now: Instant, entry: Arc<NsEntry>) {
        let id = entry.port_id;
        let place = self.config.zoning.place(&entry.identity());
        let old = self.database.get(id).cloned();
        let changed = |old: &Known| {
            old.entry.differs_for_discovery(&entry)
                || old.entry.logged_in_at != entry.logged_in_at
                || old.place != place
        };
        let notify = old.as_ref().is_none_or(changed);
        let is_new = old.is_none();
        let moved = old.filter(|old| old.entry.identity() != entry.identity());
        if let Some(moved) = &moved {
            self.database.remove(id);
            self.revoke(id, &moved.place, None);
        }
        let permit = moved.is_some() || is_new;
        self.database.insert(Known { entry, place: place.clone() });
        if permit {
            self.permit(id, &place);
        }
        if notify {
            self.notify(now, id, &place, false);
        }
    }

    /// A port with this name is gone: another one that used it, if any, takes its place.
    pub(super) fn name_free(&mut self, now: Instant, name: Wwpn) {
        let newest = self.config.policy.duplicate_names == DuplicateNames::NewWins;
        if let Some(entry) = self.database.take_shadow(name, newest) {
            self.add_remote(now, entry);
        }
    }

    /// Of two ports with one name, `a` stays. All switches decide alike.
    fn outranks(&self, a: &NsEntry, b: &NsEntry) -> bool {
        match self.config.policy.duplicate_names {
            DuplicateNames::NewWins => a.precedence() > b.precedence(),
            DuplicateNames::OldWins | DuplicateNames::Block => a.precedence() < b.precedence(),
        }
    }

    /// A port with the name of an object here logged in elsewhere, and that one stays.
    pub(super) fn evict(&mut self, now: Instant, old: FcId) {
        self.counters.duplicate_names += 1;
        if self.logins.contains_key(&old) {
            self.counters.implicit_logouts += 1;
            self.log_out(now, old);
        } else if let Some(entry) = self.take_remote(now, old) {
            self.database.shadow(entry);
        }
    }

    /// Forgets a port of another switch. True if it was known.
    pub(super) fn remove_remote(&mut self, now: Instant, id: FcId) -> bool {
        if self.database.remove_shadow(id) {
            return true;
        }
        let Some(entry) = self.take_remote(now, id) else {
            return false;
        };
        self.name_free(now, entry.port_name);
        true
    }

    fn take_remote(&mut self, now: Instant, id: FcId) -> Option<Arc<NsEntry>> {
        let Known { entry, place } = self.database.remove(id)?;
        self.revoke(id, &place, None);
        self.notify(now, id, &place, false);
        Some(entry)
    }

    /// Forgets every port of another switch. True if there were any.
    pub(super) fn remove_domain(&mut self, now: Instant, domain: u8) -> bool {
        if Some(domain) == self.domain {
            return false;
        }
        self.database.remove_shadows(scope(domain, 0));
        let ids: Vec<FcId> = self.database.range(scope(domain, 0)).map(|(id, _)| id).collect();
        ids.iter().for_each(|id| {
            self.remove_remote(now, *id);
        });
        !ids.is_empty()
    }
}

/// Function of SCR.
const CLEAR_REGISTRATION: u8 = 0xff;
