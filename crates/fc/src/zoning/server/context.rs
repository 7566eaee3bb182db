//! Part of a zone server that merges, locks and changes share: [`Context`].

use super::ZoneServerConfig;
use super::outbox::Outbox;
use super::store::Store;
use sanloom_scsi::time::Instant;
use sanloom_wire::Wwnn;
use std::collections::{BTreeMap, BTreeSet};

/// Time of the input, configuration, members of the fabric, database and outputs.
pub(super) struct Context<'s> {
    pub(super) now: Instant,
    pub(super) config: &'s ZoneServerConfig,
    pub(super) members: &'s Members,
    pub(super) store: &'s mut Store,
    pub(super) out: &'s mut Outbox,
}

/// Switches that take part in changes.
#[derive(Debug, Default)]
pub(super) struct Members {
    /// Own domain.
    pub(super) domain: Option<u8>,
    /// Domains that receive changes, with their switch names.
    pub(super) reachable: BTreeMap<u8, Wwnn>,
}

impl Members {
    /// Own domain and all others, sorted.
    pub(super) fn domains(&self) -> BTreeSet<u8> {
        self.reachable.keys().copied().chain(self.domain).collect()
    }

    /// All other domains, sorted.
    pub(super) fn others(&self) -> Vec<u8> {
        self.reachable.keys().copied().collect()
    }
}
