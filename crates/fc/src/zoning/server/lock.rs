//! Lock of this zone server for a change that another switch manages: [`Lock`].

use super::context::Context;
use super::{TransactionState, ZoneServer};
use sanloom_scsi::time::Instant;
use sanloom_wire::sw_ils::{ZoneReason, ZoneReply, ZoneSets, ZoneStatus};
use std::collections::BTreeSet;
use std::sync::Arc;

/// Lock of this switch, free or held by another switch.
#[derive(Debug, Default)]
pub(super) struct Lock(Option<Held>);

/// Lock held by another switch.
#[derive(Debug)]
struct Held {
    manager: u8,
    /// End of the lock unless the manager sends another request before.
    expires: Instant,
    /// The manager has staged a database.
    staged: bool,
    /// The staged database was adopted.
    updated: bool,
}

const BUSY: ZoneReply = ZoneReply::new(ZoneStatus::BUSY, ZoneReason::NONE);
const CHANGING: ZoneReply = ZoneReply::new(ZoneStatus::BUSY, ZoneReason::FABRIC_CHANGING);

const fn failed(reason: ZoneReason) -> ZoneReply {
    ZoneReply::new(ZoneStatus::FAILED, reason)
}

impl Lock {
    /// Domain that holds the lock.
    pub(super) fn manager(&self) -> Option<u8> {
        self.0.as_ref().map(|held| held.manager)
    }

    pub(super) fn expires(&self) -> Option<Instant> {
        self.0.as_ref().map(|held| held.expires)
    }

    /// Progress of the change for which the lock is held.
    pub(super) fn state(&self) -> Option<TransactionState> {
        self.0.as_ref().map(|held| match held {
            Held { updated: true, .. } => TransactionState::Updated,
            Held { staged: true, .. } => TransactionState::Staged,
            _ => TransactionState::Locked,
        })
    }

    /// Handles SFC: stores a database until UFC arrives.
    pub(super) fn stage(&mut self, cx: &mut Context<'_>, manager: u8, sets: &Arc<ZoneSets>) -> ZoneReply {
        let held = match &mut self.0 {
            Some(held) if held.manager == manager && !held.updated => held,
            _ => return failed(ZoneReason::NOT_AUTHORISED),
        };
        held.expires = cx.now + cx.config.lock_timeout;
        match cx.store.zones().decode(sets) {
            Ok(zones) if zones.is_sound(&cx.config.limits) => cx.store.stage(zones),
            _ => return failed(ZoneReason::INVALID_DATA),
        }
        held.staged = true;
        ZoneReply::DONE
    }

    /// Handles UFC: the staged database takes effect.
    pub(super) fn update(&mut self, cx: &mut Context<'_>, manager: u8) -> ZoneReply {
        match &mut self.0 {
            Some(held) if held.manager == manager && held.staged => {
                held.expires = cx.now + cx.config.lock_timeout;
            }
            _ => return failed(ZoneReason::NOT_STAGED),
        }
        self.commit_staged(cx);
        ZoneReply::DONE
    }

    /// Commits the staged database if it is not in force yet.
    pub(super) fn commit_staged(&mut self, cx: &mut Context<'_>) {
        if cx.store.commit_staged(cx.out)
            && let Some(held) = &mut self.0
        {
            held.updated = true;
        }
    }

    /// Handles RCA: releases the lock of `manager`.
    pub(super) fn release(&mut self, manager: u8) {
        self.0.take_if(|held| held.manager == manager);
    }

    /// Releases the lock if its manager is unreachable.
    pub(super) fn release_unreachable(&mut self, is_reachable: impl Fn(u8) -> bool) {
        self.0.take_if(|held| !is_reachable(held.manager));
    }

    pub(super) fn expire(&mut self, now: Instant) {
        self.0.take_if(|held| held.expires <= now);
    }
}

impl ZoneServer {
    /// Handles ACA: locks this switch for `manager`. `list` has the domains that the manager can
    /// reach.
    pub(super) fn acquire(&mut self, now: Instant, manager: u8, list: &[u8]) -> ZoneReply {
        let expires = now + self.config.lock_timeout;
        match &mut self.lock.0 {
            Some(held) if held.manager == manager && !held.updated => {
                held.expires = expires;
                return ZoneReply::DONE;
            }
            // The manager decided its change and starts another one, so its release was lost.
            Some(held) if held.manager == manager => self.lock.release(manager),
            Some(_) => return BUSY,
            None => {}
        }
        let theirs: BTreeSet<u8> = list.iter().copied().chain([manager]).collect();
        if theirs != self.members.domains() || !self.links.are_merged(&self.members, &self.store) {
            return CHANGING;
        }
        if self.changes.holds_the_fabric() {
            let (mut cx, parts) = self.parts(now);
            if !parts.changes.yield_to(&mut cx, manager) {
                return BUSY;
            }
        }
        self.lock = Lock(Some(Held { manager, expires, staged: false, updated: false }));
        ZoneReply::DONE
    }
}
