//! Unfinished writes of ended sessions at a target: [`StaleWrites`].
//!
//! A session that was left had no command in flight. A session that was lost may have: the target
//! may still execute its writes, which must not overwrite repeated ones. A login at a port of the
//! same portal group ends the old session (RFC 7143, section 6.3.5: initiator port and target port
//! are the same). At another one the units are reset before they are used, which ends commands of
//! every port (SAM-5, section 7.6).

use super::commands::Both;
use super::{Context, Memory, Remote};
use sanloom_scsi::iscsi::initiator::Input;
use sanloom_scsi::time::Instant;
use sanloom_wire::lun::{self, LunBytes};
use std::collections::{BTreeMap, BTreeSet};

/// Location of a session.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(super) enum TargetPort {
    /// A port of this portal group; `None`: the target has not reported it.
    Group(Option<u16>),
    /// Any port.
    Anywhere,
}

/// Units with unfinished writes.
#[derive(Debug)]
pub(super) struct StaleWrites {
    units: BTreeMap<LunBytes, BTreeSet<TargetPort>>,
    /// Units with a reset in flight, and the start of the resets.
    resetting: BTreeSet<LunBytes>,
    began: Option<Instant>,
    /// Units that forwarding sessions use.
    expected: Vec<LunBytes>,
    /// The instance before the restart may have used any port.
    elsewhere: bool,
    /// Time of the last reset of all expected units.
    fenced: Option<Instant>,
}

impl StaleWrites {
    pub(super) fn new(elsewhere: bool) -> StaleWrites {
        let (units, resetting, expected) = (BTreeMap::new(), BTreeSet::new(), Vec::new());
        StaleWrites { units, resetting, began: None, expected, elsewhere, fenced: None }
    }

    pub(super) fn expect(&mut self, lun: LunBytes) {
        self.expected.push(lun);
        if self.elsewhere {
            self.lost(lun, TargetPort::Anywhere);
        }
    }

    pub(super) fn lost(&mut self, lun: LunBytes, port: TargetPort) {
        self.units.entry(lun).or_default().insert(port);
    }

    pub(super) fn is_empty(&self) -> bool {
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
    /// Returns whether all commands of forwarding sessions that were lost before `since`, in
    /// another portal group, have ended. If not, units are reset, and no session is confirmed
    /// meanwhile.
    pub(crate) fn fence(&mut self, since: Instant) -> bool {
        if self.stale.fenced.is_some_and(|at| at >= since) {
            return true;
        }
        let is_requested = !self.stale.is_empty() && self.stale.began.is_none_or(|began| began >= since);
        if !is_requested {
            for lun in self.stale.expected.clone() {
                self.stale.lost(lun, TargetPort::Anywhere);
            }
            self.renew |= self.link.as_ref().is_some_and(|link| link.is_up());
        }
        false
    }

    /// Handles the start of a session. Returns whether units are reset before it is used.
    pub(super) fn reset_stale_units(&mut self, cx: &mut Context<'_, impl Memory>) -> bool {
        let Some(link) = &mut self.link else { return false };
        let here = TargetPort::Group(link.portal_group());
        let stale = &mut self.stale;
        stale.units.retain(|_, ports| {
            ports.remove(&here);
            !ports.is_empty()
        });
        stale.resets_end();
        if stale.is_empty() {
            return false;
        }
        // Include the units of forwarding sessions, so that these need no reset of their own.
        let anywhere: BTreeSet<TargetPort> = [TargetPort::Anywhere].into();
        for lun in &stale.expected {
            stale.units.entry(*lun).or_insert(anywhere.clone());
        }
        stale.began = Some(cx.now);
        stale.resetting = stale.units.keys().copied().collect();
        for lun in stale.resetting.clone() {
            tracing::info!(
                target = self.config.target,
                lun = lun::to_u64(lun) >> 48,
                "the unit is reset, because writes through another portal may be unfinished"
            );
            let id = self.next_command;
            self.next_command += 1;
            self.resets.insert(id, lun);
            link.input(
                cx.now,
                Input::Reset { id, lun },
                &mut Both { commands: &mut self.commands, memory: &mut *cx.memory },
            );
        }
        true
    }

    /// Handles the end of a reset by [`reset_stale_units`](Self::reset_stale_units).
    pub(super) fn reset_ended(&mut self, cx: &mut Context<'_, impl Memory>, lun: LunBytes, success: bool) {
        if !success {
            return self.lose(cx, "the target did not reset a unit with unfinished writes through another portal");
        }
        let stale = &mut self.stale;
        stale.resetting.remove(&lun);
        stale.units.remove(&lun);
        if stale.is_empty() {
            stale.fenced = stale.began.take();
            self.disks.path(cx.now, true);
        }
    }
}
