//! Timers of machines with a few timers of many kinds: [`Alarms`].

use sanloom_scsi::time::Instant;
use std::collections::{BTreeMap, BTreeSet};

/// At most one deadline per key. Due keys are returned in the order of time, then of key.
#[derive(Debug)]
pub struct Alarms<K> {
    by_key: BTreeMap<K, Instant>,
    by_time: BTreeSet<(Instant, K)>,
}

impl<K: Copy + Ord> Default for Alarms<K> {
    fn default() -> Self {
        Alarms::new()
    }
}

impl<K: Copy + Ord> Alarms<K> {
    /// No deadlines.
    pub const fn new() -> Self {
        Alarms { by_key: BTreeMap::new(), by_time: BTreeSet::new() }
    }

    /// Sets the deadline of a key and replaces an earlier setting.
    pub fn set(&mut self, key: K, at: Instant) {
        self.clear(key);
        self.by_key.insert(key, at);
        self.by_time.insert((at, key));
        debug_assert_eq!(self.by_key.len(), self.by_time.len(), "a key has one deadline");
    }

    /// Sets the deadline of a key unless it already has an earlier one.
    pub fn set_earlier(&mut self, key: K, at: Instant) {
        if self.by_key.get(&key).is_none_or(|set| *set > at) {
            self.set(key, at);
        }
    }

    /// Removes the deadline of a key, if it has one.
    pub fn clear(&mut self, key: K) {
        if let Some(at) = self.by_key.remove(&key) {
            let was_set = self.by_time.remove(&(at, key));
            debug_assert!(was_set, "a key has no deadline in the order of time");
        }
    }

    /// The deadline of a key, if it has one.
    pub fn at(&self, key: K) -> Option<Instant> {
        self.by_key.get(&key).copied()
    }

    /// Returns whether a key has a deadline.
    pub fn is_set(&self, key: K) -> bool {
        self.by_key.contains_key(&key)
    }

    /// Removes and returns the first key that is due.
    pub fn due(&mut self, now: Instant) -> Option<K> {
        let &(at, key) = self.by_time.first()?;
        (at <= now).then(|| {
            self.clear(key);
            key
        })
    }

    /// Earliest deadline of all keys.
    pub fn next(&self) -> Option<Instant> {
        self.by_time.first().map(|(at, _)| *at)
    }
}
