//! A zone server whose zones another switch changes: [`Lock`].

use super::{ZoneServer, change};
use crate::time::Instant;
use crate::zoning::objects::Zones;
use sanloom_wire::sw_ils::{ZoneReason, ZoneReply, ZoneSets, ZoneStatus};
use std::collections::BTreeSet;
use std::sync::Arc;

/// We belong to the change of another switch.
#[derive(Debug)]
pub(super) struct Lock {
    pub manager: u8,
    /// We are free again when nothing comes until then.
    pub expires: Instant,
    /// It has staged a database.
    pub staged: bool,
    /// We have taken over what was staged.
    pub updated: bool,
}

const BUSY: ZoneReply = ZoneReply::new(ZoneStatus::BUSY, ZoneReason::NONE);
const CHANGING: ZoneReply = ZoneReply::new(ZoneStatus::BUSY, ZoneReason::FABRIC_CHANGING);

const fn failed(reason: ZoneReason) -> ZoneReply {
    ZoneReply::new(ZoneStatus::FAILED, reason)
}

impl ZoneServer {
    /// ACA: locks us for `manager`, which knows the domains of `list` and its own.
    pub(super) fn on_acquire(&mut self, now: Instant, manager: u8, list: &[u8]) -> ZoneReply {
        match &mut self.lock {
            Some(lock) if lock.manager == manager && !lock.updated => {
                lock.expires = now + self.config.lock_patience;
                return ZoneReply::DONE;
            }
            // It has decided the change and begins the next; its release is lost.
            Some(lock) if lock.manager == manager => self.lock = None,
            Some(_) => return BUSY,
            None => {}
        }
        let theirs: BTreeSet<u8> = list.iter().copied().chain([manager]).collect();
        let ours: BTreeSet<u8> = self.reachable.keys().copied().chain(self.domain).collect();
        if theirs != ours || !self.links_settled() {
            return CHANGING;
        }
        if self.is_managing() && !self.yield_to(now, manager) {
            return BUSY;
        }
        self.lock = Some(Lock { manager, expires: now + self.config.lock_patience, staged: false, updated: false });
        ZoneReply::DONE
    }

    /// SFC: keeps a database for the time when UFC comes.
    pub(super) fn on_stage(&mut self, now: Instant, manager: u8, sets: &Arc<ZoneSets>) -> ZoneReply {
        let expires = now + self.config.lock_patience;
        match &mut self.lock {
            Some(lock) if lock.manager == manager && !lock.updated => lock.expires = expires,
            _ => return failed(ZoneReason::NOT_AUTHORISED),
        }
        let Ok(zones) = Zones::from_wire(sets, self.zones.database().default_zone) else {
            return failed(ZoneReason::INVALID_DATA);
        };
        if !zones.is_sound(&self.config.limits) {
            return failed(ZoneReason::INVALID_DATA);
        }
        self.staged = Some(zones);
        if let Some(lock) = &mut self.lock {
            lock.staged = true;
        }
        ZoneReply::DONE
    }

    /// UFC: what was staged holds.
    pub(super) fn on_update(&mut self, now: Instant, manager: u8) -> ZoneReply {
        let expires = now + self.config.lock_patience;
        match &mut self.lock {
            Some(lock) if lock.manager == manager && lock.staged => lock.expires = expires,
            _ => return failed(ZoneReason::NOT_STAGED),
        }
        self.commit_staged(None);
        ZoneReply::DONE
    }

    /// RCA: we are free.
    pub(super) fn on_release(&mut self, manager: u8) {
        if self.lock.as_ref().is_some_and(|lock| lock.manager == manager) {
            self.lock = None;
        }
    }

    pub(super) fn expire_lock(&mut self, now: Instant) {
        if self.lock.as_ref().is_some_and(|lock| lock.expires <= now) {
            self.lock = None;
        }
    }

    /// Exactly this was staged here and has not come into force.
    pub(super) fn is_staged(&self, sets: &Arc<ZoneSets>) -> bool {
        self.staged.as_ref().is_some_and(|staged| **staged.wire() == **sets)
    }

    /// Takes over what was staged, if it still waits. The neighbour on `known_at` has it already.
    pub(super) fn commit_staged(&mut self, known_at: Option<u16>) {
        if let Some(zones) = self.staged.take() {
            self.adopt(zones, known_at);
            if let Some(lock) = &mut self.lock {
                lock.updated = true;
            }
        }
    }

    /// Gives up locking the fabric for a switch that goes first. False: we do not.
    fn yield_to(&mut self, now: Instant, manager: u8) -> bool {
        let first = self.domain.is_some_and(|own| own < manager);
        let locking = self.changes.front().is_some_and(change::Change::is_locking);
        if first || !locking {
            return false;
        }
        self.start_again(now);
        true
    }
}
