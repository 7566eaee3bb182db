//! Zone database of one switch, committed and staged: [`Store`].

use super::Output;
use super::outbox::Outbox;
use crate::zoning::objects::Zones;
use sanloom_wire::sw_ils::ZoneSets;
use std::sync::Arc;

/// Committed database, and the one that may replace it.
#[derive(Debug)]
pub(super) struct Store {
    zones: Zones,
    /// Number of changes of the committed database.
    revision: u64,
    /// Last staged database. It outlives the lock, because the manager may have decided before the
    /// lock expired.
    staged: Option<Zones>,
}

impl Store {
    pub(super) fn new(zones: Zones) -> Store {
        Store { zones, revision: 0, staged: None }
    }

    /// Committed database.
    pub(super) fn zones(&self) -> &Zones {
        &self.zones
    }

    pub(super) fn revision(&self) -> u64 {
        self.revision
    }

    /// Commits a database.
    pub(super) fn adopt(&mut self, zones: Zones, out: &mut Outbox) {
        let before = std::mem::replace(&mut self.zones, zones);
        let (old, new) = (before.database(), self.zones.database());
        if old == new {
            return;
        }
        self.staged = None;
        self.revision += 1;
        let effective = old.effective != new.effective || old.default_zone != new.default_zone;
        out.push(Output::Changed { zones: self.zones.clone(), effective });
    }

    /// Stages a database.
    pub(super) fn stage(&mut self, zones: Zones) {
        self.staged = Some(zones);
    }

    /// Returns true if exactly these zones are staged here and not yet in force.
    pub(super) fn is_staged(&self, sets: &Arc<ZoneSets>) -> bool {
        self.staged.as_ref().is_some_and(|staged| **staged.wire() == **sets)
    }

    /// Commits the staged database. Returns false if there is none, because it is already in force.
    pub(super) fn commit_staged(&mut self, out: &mut Outbox) -> bool {
        let staged = self.staged.take();
        let is_staged = staged.is_some();
        if let Some(zones) = staged {
            self.adopt(zones, out);
        }
        is_staged
    }
}
