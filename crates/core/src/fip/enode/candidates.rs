//! The FCFs that an ENode has heard of: [`Candidates`].

use crate::fip::{Advertisement, DEFAULT_PERIOD, Discard, patience};
use crate::time::{Instant, Span};
use sanloom_wire::Wwnn;
use sanloom_wire::ether::{FcMap, MacAddr};

/// As many as libfcoe remembers.
pub(super) const MOST: usize = 20;
/// Periods below this are not taken seriously (libfcoe); the default is taken for them.
const SHORTEST_PERIOD: Span = Span::from_ms(500);

/// What makes two advertisements those of one FCF.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(super) struct Key {
    switch_name: Wwnn,
    fabric_name: Wwnn,
    fc_map: FcMap,
    pub(super) mac: MacAddr,
}

/// An FCF.
#[derive(Clone, Debug)]
pub(super) struct Candidate {
    pub(super) said: Advertisement,
    heard_at: Instant,
    /// A miss was counted since then.
    missed: bool,
    /// It said S and A once: whatever it says later, it can be used.
    pub(super) usable: bool,
    /// FLOGI was sent to it.
    pub(super) tried: bool,
}

/// FCFs in the order in which they were heard of.
#[derive(Clone, Debug, Default)]
pub(super) struct Candidates(Vec<Candidate>);

/// Why none was chosen.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum NoChoice {
    /// There is none.
    Nobody,
    /// Some are of different fabrics.
    Conflict,
}

impl Candidate {
    pub(super) fn key(&self) -> Key {
        let Advertisement { switch_name, fabric_name, fc_map, mac, .. } = self.said;
        Key { switch_name, fabric_name, fc_map, mac }
    }

    fn missed_at(&self) -> Instant {
        self.heard_at + Span::from_ns(self.said.period.as_ns().saturating_mul(3) / 2)
    }

    fn gone_at(&self) -> Instant {
        self.heard_at + patience(self.said.period)
    }
}

impl Candidates {
    /// Notes an advertisement. True if the FCF can be used; else it has to be asked.
    pub(super) fn hear(&mut self, now: Instant, said: Advertisement) -> Result<bool, Discard> {
        let period = if said.period < SHORTEST_PERIOD { DEFAULT_PERIOD } else { said.period };
        let said = Advertisement { period, ..said };
        let usable = said.solicited && said.available;
        let fresh = Candidate { said, heard_at: now, missed: false, usable, tried: false };
        let key = fresh.key();
        let Some(known) = self.0.iter_mut().find(|known| known.key() == key) else {
            if self.0.len() >= MOST {
                return Err(Discard::NoRoom);
            }
            self.0.push(fresh);
            return Ok(usable);
        };
        known.heard_at = now;
        known.missed = false;
        known.said.period = period;
        known.said.keep_alives = said.keep_alives;
        if !known.usable {
            known.said = said;
            known.usable = usable;
        }
        Ok(known.usable)
    }

    /// The one with the lowest priority number that can be used and has not been tried; of equal ones the first heard.
    pub(super) fn choose(&self) -> Result<&Candidate, NoChoice> {
        let usable = || self.0.iter().filter(|candidate| candidate.usable);
        let fabric = |candidate: &Candidate| {
            let Advertisement { fabric_name, vf_id, fc_map, .. } = candidate.said;
            (fabric_name, vf_id, fc_map)
        };
        let first = usable().next().ok_or(NoChoice::Nobody)?;
        if usable().any(|other| fabric(other) != fabric(first)) {
            return Err(NoChoice::Conflict);
        }
        let fresh = usable().filter(|candidate| !candidate.tried);
        fresh.min_by_key(|candidate| candidate.said.priority).ok_or(NoChoice::Nobody)
    }

    pub(super) fn get(&self, key: Key) -> Option<&Candidate> {
        self.0.iter().find(|candidate| candidate.key() == key)
    }

    pub(super) fn mark_tried(&mut self, key: Key) {
        if let Some(candidate) = self.0.iter_mut().find(|candidate| candidate.key() == key) {
            candidate.tried = true;
        }
    }

    pub(super) fn forget_tries(&mut self) {
        self.0.iter_mut().for_each(|candidate| candidate.tried = false);
    }

    /// Drops those that fell silent; how many have missed one advertisement, and whether any was dropped.
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
