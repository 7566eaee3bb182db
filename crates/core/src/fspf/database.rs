//! The link-state database: one record for each domain, its age, and how often it may change.

use crate::time::{Instant, Span};
use sanloom_wire::sw_ils::{AgedRecord, Incarnation, LinkStateRecord};
use std::cmp::Ordering;
use std::sync::Arc;

/// Records, indexed by domain.
#[derive(Debug)]
pub(super) struct Database {
    entries: Vec<Option<Entry>>,
    arrivals: Vec<Bucket>,
}

/// A record and when it had which age.
#[derive(Clone, Debug)]
pub(super) struct Entry {
    pub(super) record: Arc<LinkStateRecord>,
    /// It is on its way out of every database and counts for no path.
    pub(super) flushed: bool,
    age_s: u16,
    at: Instant,
}

impl Entry {
    pub(super) fn new(now: Instant, aged: AgedRecord, max_age: Span) -> Entry {
        let flushed = is_end_of_life(aged.age_s, max_age);
        Entry { record: aged.record, flushed, age_s: aged.age_s, at: now }
    }

    /// Puts the record on its way out.
    pub(super) fn flush(&mut self, now: Instant, max_age: Span) {
        *self = Entry { flushed: true, age_s: seconds(max_age) as u16, at: now, record: self.record.clone() };
    }

    /// As it is sent now.
    pub(super) fn aged(&self, now: Instant, max_age: Span) -> AgedRecord {
        let grown = now.since(self.at).as_ms() / 1000 + u64::from(self.age_s);
        // Only a flush makes it as old as can be: until then others must not take it for one.
        let limit = seconds(max_age) - u64::from(!self.flushed);
        AgedRecord { age_s: grown.min(limit) as u16, record: self.record.clone() }
    }

    /// When it is as old as a record may get.
    pub(super) fn expires(&self, max_age: Span) -> Instant {
        self.at + Span::from_secs(seconds(max_age).saturating_sub(self.age_s.into()))
    }

    /// The record with the last incarnation number, being flushed.
    pub(super) fn is_last(&self) -> bool {
        self.flushed && self.record.incarnation == Incarnation::LAST
    }

    /// Which of two records of a domain is newer: by incarnation; if that is the same, by checksum, and then the one that
    /// is being flushed.
    pub(super) fn compare(&self, other: &LinkStateRecord, other_flushed: bool) -> Ordering {
        let key = |record: &LinkStateRecord, flushed| (record.incarnation.0.cast_signed(), record.checksum, flushed);
        key(&self.record, self.flushed).cmp(&key(other, other_flushed))
    }
}

/// Whole seconds of a record's life, at most what its age can count.
fn seconds(max_age: Span) -> u64 {
    (max_age.as_ms() / 1000).clamp(1, u64::from(u16::MAX))
}

/// A record of this age is being flushed.
pub(super) fn is_end_of_life(age_s: u16, max_age: Span) -> bool {
    u64::from(age_s) >= seconds(max_age)
}

impl Database {
    pub(super) fn new() -> Database {
        let mut database = Database { entries: Vec::new(), arrivals: Vec::new() };
        database.clear();
        database
    }

    pub(super) fn clear(&mut self) {
        let domains = usize::from(u8::MAX) + 1;
        self.entries = vec![None; domains];
        self.arrivals = vec![Bucket::full(ARRIVALS); domains];
    }

    pub(super) fn get(&self, domain: u8) -> Option<&Entry> {
        self.entries[usize::from(domain)].as_ref()
    }

    pub(super) fn get_mut(&mut self, domain: u8) -> Option<&mut Entry> {
        self.entries[usize::from(domain)].as_mut()
    }

    /// Returns the record that was there.
    pub(super) fn insert(&mut self, entry: Entry) -> Option<Entry> {
        self.entries[usize::from(entry.record.domain)].replace(entry)
    }

    pub(super) fn remove(&mut self, domain: u8) {
        self.entries[usize::from(domain)] = None;
    }

    /// Sorted by domain.
    pub(super) fn iter(&self) -> impl Iterator<Item = &Entry> {
        self.entries.iter().flatten()
    }

    /// A new record of this domain may be taken now.
    pub(super) fn may_arrive(&mut self, now: Instant, domain: u8, every: Span) -> bool {
        let bucket = &mut self.arrivals[usize::from(domain)];
        bucket.next(now, every) <= now && bucket.take()
    }
}

/// So many new records of a switch are taken at once: more than an honest one sends.
const ARRIVALS: u8 = 16;
/// So many new records a switch sends at once.
pub(super) const ANNOUNCEMENTS: u8 = 12;

/// Permissions that come back one by one.
#[derive(Clone, Debug)]
pub(super) struct Bucket {
    left: u8,
    size: u8,
    /// When the last one came back.
    at: Instant,
}

impl Bucket {
    pub(super) const fn full(size: u8) -> Bucket {
        Bucket { left: size, size, at: Instant::ZERO }
    }

    /// When there is one, if one comes back after each `every`.
    pub(super) fn next(&mut self, now: Instant, every: Span) -> Instant {
        let back = now.since(self.at).as_ns() / every.as_ns().max(1);
        if self.left == self.size || back >= u64::from(self.size - self.left) {
            *self = Bucket { left: self.size, size: self.size, at: now };
        } else {
            self.left += back as u8;
            self.at += every.times(back);
        }
        if self.left > 0 { now } else { self.at + every }
    }

    /// Takes one. False if there was none.
    pub(super) fn take(&mut self) -> bool {
        let had = self.left > 0;
        self.left -= u8::from(had);
        had
    }
}
