//! What a session that is over may have left behind at its target: [`Unsettled`].
//!
//! A session that was left had nothing under way. One that was lost may have: its target may still write what came with it, and what
//! is written again must not be overwritten by that. A login at a port of the same portal group ends the old session (RFC 7143,
//! section 6.3.5: initiator port and target port are the same). At another one the units are reset, which ends commands of every port
//! (SAM-5, section 7.6), before anything goes to them.

use super::commands::Both;
use super::{Memory, Remote};
use crate::poll::Poller;
use sanloom_core::iscsi::initiator::Input;
use sanloom_core::time::Instant;
use sanloom_wire::lun::{self, LunBytes};
use std::collections::{BTreeMap, BTreeSet};

/// Where a session was.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(super) enum Place {
    /// At a port of this portal group; `None`: the target has not said which.
    Group(Option<u16>),
    /// Anywhere.
    Anywhere,
}

/// Units at which something may still be written.
#[derive(Debug)]
pub(super) struct Unsettled {
    units: BTreeMap<LunBytes, BTreeSet<Place>>,
    /// Those whose reset is under way, and since when.
    resetting: BTreeSet<LunBytes>,
    began: Option<Instant>,
    /// Units that others use through sessions of their own.
    expected: Vec<LunBytes>,
    /// An instance before us may have been anywhere.
    elsewhere: bool,
    /// When all expected units were last reset.
    fenced: Option<Instant>,
}

impl Unsettled {
    pub(super) fn new(elsewhere: bool) -> Unsettled {
        let (units, resetting, expected) = (BTreeMap::new(), BTreeSet::new(), Vec::new());
        Unsettled { units, resetting, began: None, expected, elsewhere, fenced: None }
    }

    pub(super) fn expect(&mut self, lun: LunBytes) {
        self.expected.push(lun);
        if self.elsewhere {
            self.lost(lun, Place::Anywhere);
        }
    }

    pub(super) fn lost(&mut self, lun: LunBytes, place: Place) {
        self.units.entry(lun).or_default().insert(place);
    }

    pub(super) fn is_settled(&self) -> bool {
        self.units.is_empty()
    }

    pub(super) fn is_resetting(&self, lun: LunBytes) -> bool {
        self.resetting.contains(&lun)
    }

    pub(super) fn resets_end(&mut self) {
        self.resetting.clear();
        self.began = None;
    }
}

impl Remote {
    /// What sessions beside our own have lost at ports of another portal group since then is over. If not, that is seen to, and nobody is
    /// let in meanwhile.
    pub(crate) fn fence(&mut self, since: Instant) -> bool {
        if self.unsettled.fenced.is_some_and(|at| at >= since) {
            return true;
        }
        let asked = !self.unsettled.is_settled() && self.unsettled.began.is_none_or(|began| began >= since);
        if !asked {
            for lun in self.unsettled.expected.clone() {
                self.unsettled.lost(lun, Place::Anywhere);
            }
            self.renew |= self.link.as_ref().is_some_and(|link| link.is_up());
        }
        false
    }

    /// A session has begun. True if units are reset before it is used.
    pub(super) fn settle(&mut self, now: Instant, memory: &mut impl Memory) -> bool {
        let Some(link) = &mut self.link else { return false };
        let here = Place::Group(link.portal_group());
        let unsettled = &mut self.unsettled;
        unsettled.units.retain(|_, places| {
            places.remove(&here);
            !places.is_empty()
        });
        unsettled.resets_end();
        if unsettled.is_settled() {
            return false;
        }
        // Those that others use too, so that these need not ask for it.
        let anywhere: BTreeSet<Place> = [Place::Anywhere].into();
        for lun in &unsettled.expected {
            unsettled.units.entry(*lun).or_insert(anywhere.clone());
        }
        unsettled.began = Some(now);
        unsettled.resetting = unsettled.units.keys().copied().collect();
        for lun in unsettled.resetting.clone() {
            tracing::info!(
                target = self.config.target,
                lun = lun::to_u64(lun) >> 48,
                "reset, so that nothing is written late that came by another portal"
            );
            let id = self.next_command;
            self.next_command += 1;
            self.resets.insert(id, lun);
            link.tell(now, Input::Reset { id, lun }, &mut Both { commands: &mut self.commands, memory });
        }
        true
    }

    /// A reset of [`settle`](Self::settle) has ended.
    pub(super) fn reset_ended(&mut self, now: Instant, lun: LunBytes, success: bool, poller: &mut Poller) {
        if !success {
            return self.lose(now, "it does not reset a unit that may still be written by another portal", poller);
        }
        let unsettled = &mut self.unsettled;
        unsettled.resetting.remove(&lun);
        unsettled.units.remove(&lun);
        if unsettled.is_settled() {
            unsettled.fenced = unsettled.began.take();
            self.disks.path(now, true);
        }
    }
}
