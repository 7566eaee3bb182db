//! The link-state database: one record per domain, with its age and its update rate limit.

use sanloom_scsi::time::{Instant, Span};
use sanloom_wire::sw_ils::{AgedRecord, Incarnation, LinkStateRecord};
use std::cmp::Ordering;
use std::sync::Arc;

/// Records, indexed by domain.
#[derive(Debug)]
pub(super) struct Database {
    entries: Vec<Option<Entry>>,
    arrivals: Vec<Bucket>,
}

/// Record with its age at a reference time.
#[derive(Clone, Debug)]
pub(super) struct Entry {
    pub(super) record: Arc<LinkStateRecord>,
    /// True while the record is being flushed from all databases; it counts for no path.
    pub(super) flushed: bool,
    age_s: u16,
    at: Instant,
}

impl Entry {
    pub(super) fn new(now: Instant, aged: AgedRecord, max_age: Span) -> Entry {
        let flushed = is_end_of_life(aged.age_s, max_age);
        Entry { record: aged.record, flushed, age_s: aged.age_s, at: now }
    }

    /// Starts to flush the record.
    pub(super) fn flush(&mut self, now: Instant, max_age: Span) {
        *self = Entry { flushed: true, age_s: seconds(max_age) as u16, at: now, record: self.record.clone() };
    }

    /// Record with its current age, for sending.
    pub(super) fn aged(&self, now: Instant, max_age: Span) -> AgedRecord {
        let grown = now.since(self.at).as_ms() / 1000 + u64::from(self.age_s);
        // Only a flush may set the maximum age, because neighbours would otherwise treat the record
        // as flushed.
        let limit = seconds(max_age) - u64::from(!self.flushed);
        AgedRecord { age_s: grown.min(limit) as u16, record: self.record.clone() }
    }

    /// Time at which the record reaches the maximum age.
    pub(super) fn expires(&self, max_age: Span) -> Instant {
        self.at + Span::from_secs(seconds(max_age).saturating_sub(self.age_s.into()))
    }

    /// Returns true for the record with the last incarnation number while it is being flushed.
    pub(super) fn is_last(&self) -> bool {
        self.flushed && self.record.incarnation == Incarnation::LAST
    }

    /// Compares the age of two records of a domain: by incarnation, then by checksum, then the
    /// flushed one is newer.
    pub(super) fn compare(&self, other: &LinkStateRecord, other_flushed: bool) -> Ordering {
        let key = |record: &LinkStateRecord, flushed| (record.incarnation.0.cast_signed(), record.checksum, flushed);
        key(&self.record, self.flushed).cmp(&key(other, other_flushed))
    }
}

/// Maximum age in whole seconds, limited to the range of the age field.
fn seconds(max_age: Span) -> u64 {
    (max_age.as_ms() / 1000).clamp(1, u64::from(u16::MAX))
}

/// Returns true if a record of this age is being flushed.
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

    /// Inserts a record and returns the one that it replaces.
    pub(super) fn insert(&mut self, entry: Entry) -> Option<Entry> {
        self.entries[usize::from(entry.record.domain)].replace(entry)
    }

    pub(super) fn remove(&mut self, domain: u8) {
        self.entries[usize::from(domain)] = None;
    }

    /// Records sorted by domain.
    pub(super) fn iter(&self) -> impl Iterator<Item = &Entry> {
        self.entries.iter().flatten()
    }

    /// Returns true if the rate limit permits a new record of this domain now.
    pub(super) fn may_arrive(&mut self, now: Instant, domain: u8, every: Span) -> bool {
        let bucket = &mut self.arrivals[usize::from(domain)];
        bucket.next(now, every) <= now && bucket.take()
    }
}

/// Burst of new records accepted from one switch, larger than a conforming switch sends.
const ARRIVALS: u8 = 16;
/// Burst of new records that a switch sends.
pub(super) const ANNOUNCEMENTS: u8 = 12;

/// Token bucket; tokens return one by one.
#[derive(Clone, Debug)]
pub(super) struct Bucket {
    left: u8,
    size: u8,
    /// Time at which the last token returned.
    at: Instant,
}

impl Bucket {
    pub(super) const fn full(size: u8) -> Bucket {
        Bucket { left: size, size, at: Instant::ZERO }
    }

    /// Time of the next available token, if one returns after each `every`.
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

    /// Takes a token. Returns false if there is none.
    pub(super) fn take(&mut self) -> bool {
        debug_assert!(self.left <= self.size, "{} tokens in a bucket of {}", self.left, self.size);
        let had = self.left > 0;
        self.left -= u8::from(had);
        had
    }
}
