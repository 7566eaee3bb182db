//! Objects of another domain, as known here: [`Remote`].

use super::snapshot::Snapshot;
use sanloom_scsi::time::{Instant, Span};
use sanloom_wire::FcId;
use sanloom_wire::ns::NsRecord;
use sanloom_wire::sw_ils::SwRscn;
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::Arc;

/// Reachable domain. Its objects are the last complete reply, which all switches of the process
/// share, and the changes since.
#[derive(Debug, Default)]
pub(super) struct Remote {
    base: Snapshot,
    /// Objects that differ from `base`; `None` for a removed one.
    changes: BTreeMap<FcId, Option<Arc<NsRecord>>>,
    /// Objects with outstanding queries for details.
    pub(super) to_query: BTreeSet<FcId>,
    /// Objects with a query in flight, each with a flag whether it changed since.
    pub(super) in_flight: BTreeMap<FcId, bool>,
    /// A query for the whole domain is outstanding.
    pub(super) query_all: bool,
    /// `Some` while a query for the whole domain is in flight; contains the objects notified since.
    pub(super) all_in_flight: Option<BTreeSet<FcId>>,
    /// Repetitions of that query since the first, or since the domain sent a query itself.
    pub(super) repeats: u8,
    /// The domain has sent a query.
    pub(super) has_queried: bool,
    /// Notifications arrived that may have been sent before the domain became reachable.
    pub(super) doubtful: bool,
    /// Distinguishes replies to queries from before the domain was unreachable.
    pub(super) epoch: u8,
    notifications: VecDeque<(Instant, u64)>,
}

/// Maximum number of notifications stored per domain to detect repetitions.
const MAX_NOTIFICATIONS: usize = 64;

impl Remote {
    /// Returns the state of a domain that became reachable, with a query for the whole domain
    /// outstanding.
    pub(super) fn new(epoch: u8) -> Remote {
        Remote { epoch, query_all: true, ..Remote::default() }
    }

    /// Returns true if no query is outstanding or in flight.
    pub(super) fn is_complete(&self) -> bool {
        !self.query_all && self.all_in_flight.is_none() && self.to_query.is_empty() && self.in_flight.is_empty()
    }

    pub(super) fn get(&self, id: FcId) -> Option<&Arc<NsRecord>> {
        self.changes.get(&id).map_or_else(|| self.base.get(id), Option::as_ref)
    }

    /// Objects sorted by N_Port_ID.
    pub(super) fn iter(&self) -> impl Iterator<Item = &Arc<NsRecord>> {
        let unchanged = self.base.iter().filter(|entry| !self.changes.contains_key(&entry.port_id));
        let mut all: Vec<_> = unchanged.chain(self.changes.values().flatten()).collect();
        all.sort_by_key(|entry| entry.port_id);
        all.into_iter()
    }

    pub(super) fn set(&mut self, id: FcId, entry: Option<Arc<NsRecord>>) {
        if entry.as_ref() == self.base.get(id) {
            self.changes.remove(&id);
        } else {
            self.changes.insert(id, entry);
        }
    }

    /// Applies a complete reply, except to the objects in `keep`. Returns the differences from the
    /// previous objects.
    pub(super) fn replace(&mut self, base: Snapshot, keep: &BTreeSet<FcId>) -> Vec<Difference> {
        let old: Vec<Arc<NsRecord>> = self.iter().cloned().collect();
        self.base = base;
        self.changes.clear();
        let kept = |id: &FcId| old.binary_search_by_key(id, |entry| entry.port_id).ok().map(|at| old[at].clone());
        for &id in keep {
            self.set(id, kept(&id));
        }
        let mut differences = Vec::new();
        let (mut old, mut new) = (old.into_iter().peekable(), self.iter().cloned().peekable());
        loop {
            let id = match (old.peek(), new.peek()) {
                (Some(a), Some(b)) => a.port_id.min(b.port_id),
                (Some(one), None) | (None, Some(one)) => one.port_id,
                (None, None) => return differences,
            };
            let before = old.next_if(|entry| entry.port_id == id);
            let after = new.next_if(|entry| entry.port_id == id);
            if before != after {
                differences.push((id, before, after));
            }
        }
    }

    /// Returns true if the same notification arrived recently, so that this one may be a late copy.
    pub(super) fn repeated(&mut self, now: Instant, notification: &SwRscn, memory: Span) -> bool {
        let mut hasher = DefaultHasher::new();
        notification.hash(&mut hasher);
        let hash = hasher.finish();
        while self.notifications.len() >= MAX_NOTIFICATIONS
            || self.notifications.front().is_some_and(|(at, _)| *at + memory <= now)
        {
            self.notifications.pop_front();
        }
        let repeated = self.notifications.iter().any(|(_, known)| *known == hash);
        self.notifications.push_back((now, hash));
        repeated
    }
}

/// Object before and after a change.
pub(super) type Difference = (FcId, Option<Arc<NsRecord>>, Option<Arc<NsRecord>>);
