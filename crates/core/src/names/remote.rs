//! What is known of the objects of another domain: [`Remote`].

use super::snapshot::Snapshot;
use crate::switch::NsEntry;
use crate::time::{Instant, Span};
use sanloom_wire::FcId;
use sanloom_wire::sw_ils::SwRscn;
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::Arc;

/// A reachable domain. Its objects are the last whole answer, which all switches of the process share, and what changed
/// since.
#[derive(Debug, Default)]
pub(super) struct Remote {
    base: Arc<Snapshot>,
    /// Objects that differ from `base`; nothing: gone.
    changes: BTreeMap<FcId, Option<Arc<NsEntry>>>,
    /// Objects whose details are to be asked for.
    pub(super) wanted: BTreeSet<FcId>,
    /// Objects that are asked for, and whether they changed since.
    pub(super) asked: BTreeMap<FcId, bool>,
    /// Everything is to be asked for.
    pub(super) want_all: bool,
    /// Everything is asked for; what was notified since.
    pub(super) asked_all: Option<BTreeSet<FcId>>,
    /// How often everything was asked for since the first time, or since the domain asked.
    pub(super) repeats: u8,
    /// The domain has asked.
    pub(super) heard: bool,
    /// Notifications came that may be older than the reachability of the domain.
    pub(super) doubtful: bool,
    /// Tells answers to what was asked before the domain was away from later ones.
    pub(super) epoch: u8,
    notifications: VecDeque<(Instant, u64)>,
}

/// So many notifications of a domain are remembered at most.
const HEARD: usize = 64;

impl Remote {
    /// A domain that became reachable: everything is to be asked for.
    pub(super) fn new(epoch: u8) -> Remote {
        Remote { epoch, want_all: true, ..Remote::default() }
    }

    /// Nothing of the domain is asked for or to be asked for.
    pub(super) fn is_complete(&self) -> bool {
        !self.want_all && self.asked_all.is_none() && self.wanted.is_empty() && self.asked.is_empty()
    }

    pub(super) fn get(&self, id: FcId) -> Option<&Arc<NsEntry>> {
        self.changes.get(&id).map_or_else(|| self.base.get(id), Option::as_ref)
    }

    /// Sorted by id.
    pub(super) fn iter(&self) -> impl Iterator<Item = &Arc<NsEntry>> {
        let unchanged = self.base.0.iter().filter(|entry| !self.changes.contains_key(&entry.port_id));
        let mut all: Vec<_> = unchanged.chain(self.changes.values().flatten()).collect();
        all.sort_by_key(|entry| entry.port_id);
        all.into_iter()
    }

    pub(super) fn set(&mut self, id: FcId, entry: Option<Arc<NsEntry>>) {
        if entry.as_ref() == self.base.get(id) {
            self.changes.remove(&id);
        } else {
            self.changes.insert(id, entry);
        }
    }

    /// Takes a whole answer, but for the objects in `keep`. Returns what was known before and differs: id, old and new.
    pub(super) fn replace(&mut self, base: Arc<Snapshot>, keep: &BTreeSet<FcId>) -> Vec<Difference> {
        let old: Vec<Arc<NsEntry>> = self.iter().cloned().collect();
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

    /// The same notification came a short while ago: it may be an old one that was late.
    pub(super) fn repeated(&mut self, now: Instant, notification: &SwRscn, memory: Span) -> bool {
        let mut hasher = DefaultHasher::new();
        notification.hash(&mut hasher);
        let hash = hasher.finish();
        while self.notifications.len() >= HEARD || self.notifications.front().is_some_and(|(at, _)| *at + memory <= now)
        {
            self.notifications.pop_front();
        }
        let repeated = self.notifications.iter().any(|(_, known)| *known == hash);
        self.notifications.push_back((now, hash));
        repeated
    }
}

/// An object before and after.
pub(super) type Difference = (FcId, Option<Arc<NsEntry>>, Option<Arc<NsEntry>>);
