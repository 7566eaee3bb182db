//! FCFs known to an ENode: [`Candidates`].

use crate::fip::{Advertisement, DEFAULT_PERIOD, Discard, silence_limit};
use sanloom_scsi::time::{Instant, Span};
use sanloom_wire::Wwnn;
use sanloom_wire::ether::{FcMap, MacAddr};

/// Maximum number of FCFs; the limit of libfcoe.
pub(super) const MAX: usize = 20;
/// Shorter advertisement periods are replaced by the default, as in libfcoe.
const SHORTEST_PERIOD: Span = Span::from_ms(500);

/// Identity of an FCF across its advertisements.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(super) struct Key {
    switch_name: Wwnn,
    fabric_name: Wwnn,
    fc_map: FcMap,
    pub(super) mac: MacAddr,
}

/// FCF known from advertisements.
#[derive(Clone, Debug)]
pub(super) struct Candidate {
    pub(super) advertisement: Advertisement,
    last_seen: Instant,
    /// A missed advertisement was counted since `last_seen`.
    missed: bool,
    /// An advertisement had both the S and the A bit. Later advertisements do not revoke this.
    pub(super) usable: bool,
    /// A FLOGI was sent to this FCF.
    pub(super) tried: bool,
}

/// FCFs in the order of their first advertisement.
#[derive(Clone, Debug, Default)]
pub(super) struct Candidates(Vec<Candidate>);

/// Reason why no FCF was selected.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum NoChoice {
    /// No usable FCF.
    NoCandidate,
    /// Usable FCFs belong to different fabrics.
    Conflict,
}

impl Candidate {
    pub(super) fn key(&self) -> Key {
        let Advertisement { switch_name, fabric_name, fc_map, mac, .. } = self.advertisement;
        Key { switch_name, fabric_name, fc_map, mac }
    }

    fn missed_at(&self) -> Instant {
        self.last_seen + Span::from_ns(self.advertisement.period.as_ns().saturating_mul(3) / 2)
    }

    fn gone_at(&self) -> Instant {
        self.last_seen + silence_limit(self.advertisement.period)
    }
}

impl Candidates {
    /// Stores an advertisement. Returns true if the FCF is usable; otherwise it must be solicited.
    pub(super) fn update(&mut self, now: Instant, advertisement: Advertisement) -> Result<bool, Discard> {
        let period = if advertisement.period < SHORTEST_PERIOD { DEFAULT_PERIOD } else { advertisement.period };
        let advertisement = Advertisement { period, ..advertisement };
        let usable = advertisement.solicited && advertisement.available;
        let fresh = Candidate { advertisement, last_seen: now, missed: false, usable, tried: false };
        let key = fresh.key();
        let Some(known) = self.0.iter_mut().find(|known| known.key() == key) else {
            if self.0.len() >= MAX {
                return Err(Discard::NoRoom);
            }
            self.0.push(fresh);
            return Ok(usable);
        };
        known.last_seen = now;
        known.missed = false;
        known.advertisement.period = period;
        known.advertisement.keep_alives = advertisement.keep_alives;
        if !known.usable {
            known.advertisement = advertisement;
            known.usable = usable;
        }
        Ok(known.usable)
    }

    /// Usable, untried FCF with the lowest priority number. Among equals, the earliest known one.
    pub(super) fn choose(&self) -> Result<&Candidate, NoChoice> {
        let usable = || self.0.iter().filter(|candidate| candidate.usable);
        let fabric = |candidate: &Candidate| {
            let Advertisement { fabric_name, vf_id, fc_map, .. } = candidate.advertisement;
            (fabric_name, vf_id, fc_map)
        };
        let first = usable().next().ok_or(NoChoice::NoCandidate)?;
        if usable().any(|other| fabric(other) != fabric(first)) {
            return Err(NoChoice::Conflict);
        }
        let fresh = usable().filter(|candidate| !candidate.tried);
        fresh.min_by_key(|candidate| candidate.advertisement.priority).ok_or(NoChoice::NoCandidate)
    }

    pub(super) fn get(&self, key: Key) -> Option<&Candidate> {
        self.0.iter().find(|candidate| candidate.key() == key)
    }

    pub(super) fn mark_tried(&mut self, key: Key) {
        if let Some(candidate) = self.0.iter_mut().find(|candidate| candidate.key() == key) {
            candidate.tried = true;
        }
    }

    pub(super) fn reset_tried(&mut self) {
        self.0.iter_mut().for_each(|candidate| candidate.tried = false);
    }

    /// Removes FCFs whose advertisements stopped. Returns the number of newly missed
    /// advertisements, and whether an FCF was removed.
    pub(super) fn age(&mut self, now: Instant) -> (u64, bool) {
        let mut missed = 0;
        for candidate in self.0.iter_mut().filter(|candidate| !candidate.missed && candidate.missed_at() <= now) {
            candidate.missed = true;
            missed += 1;
        }
        let before = self.0.len();
        self.0.retain(|candidate| candidate.gone_at() > now);
        (missed, self.0.len() < before)
    }

    pub(super) fn next_deadline(&self) -> Option<Instant> {
        let deadline = |c: &Candidate| if c.missed { c.gone_at() } else { c.missed_at() };
        self.0.iter().map(deadline).min()
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = &Candidate> {
        self.0.iter()
    }

    pub(super) fn clear(&mut self) {
        self.0.clear();
    }
}
