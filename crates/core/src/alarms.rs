//! Timers of machines that have few of many kinds: [`Alarms`].

use crate::time::Instant;
use std::collections::{BTreeMap, BTreeSet};

/// At most one deadline for each key. Those that are due come in order of time, then of key.
#[derive(Debug)]
pub(crate) struct Alarms<K> {
    by_key: BTreeMap<K, Instant>,
    by_time: BTreeSet<(Instant, K)>,
}

impl<K: Copy + Ord> Alarms<K> {
    pub(crate) const fn new() -> Self {
        Alarms { by_key: BTreeMap::new(), by_time: BTreeSet::new() }
    }

    /// Sets the deadline of a key, in place of any other.
    pub(crate) fn set(&mut self, key: K, at: Instant) {
        self.clear(key);
        self.by_key.insert(key, at);
        self.by_time.insert((at, key));
    }

    /// Sets the deadline of a key unless it has an earlier one.
    pub(crate) fn set_earlier(&mut self, key: K, at: Instant) {
        if self.by_key.get(&key).is_none_or(|set| *set > at) {
            self.set(key, at);
        }
    }

    pub(crate) fn clear(&mut self, key: K) {
        if let Some(at) = self.by_key.remove(&key) {
            self.by_time.remove(&(at, key));
        }
    }

    pub(crate) fn is_set(&self, key: K) -> bool {
        self.by_key.contains_key(&key)
    }

    /// Takes out the first key that is due.
    pub(crate) fn due(&mut self, now: Instant) -> Option<K> {
        let &(at, key) = self.by_time.first()?;
        (at <= now).then(|| {
            self.clear(key);
            key
        })
    }

    /// The first deadline.
    pub(crate) fn next(&self) -> Option<Instant> {
        self.by_time.first().map(|(at, _)| *at)
    }
}
