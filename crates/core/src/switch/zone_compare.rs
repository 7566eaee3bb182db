//! Hard zoning by comparing N_Port_IDs with each other, as the switch of document 000 does: [`Comparisons`].
//!
//! Both ways remember the entries that they wrote, because nothing else says which ones a port had. Pairs of one port are
//! compared, too: virtual ports behind one link may talk to each other through the switch. The document does not count
//! them, and they are counted apart; so are N_Port_IDs of other switches.
//!
//! Two ports of the default zone need no entry of their own ([`FibDelta::JoinDefaultZone`]); they are compared all the same.
//!
//! [`FibDelta::JoinDefaultZone`]: crate::fabric::FibDelta::JoinDefaultZone

use super::Switch;
use super::database::scope;
use super::policy::HardZoning;
use crate::fabric::ZonePlace;
use sanloom_wire::FcId;
use std::collections::BTreeSet;

/// What was compared and written so far.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub(super) struct Comparisons {
    /// Permitted pairs, each both ways round.
    entries: BTreeSet<(FcId, FcId)>,
    with_port: Vec<u64>,
}

impl Comparisons {
    pub(super) fn with(&self, port: u16) -> u64 {
        self.with_port.get(usize::from(port)).copied().unwrap_or(0)
    }

    /// The other ends of the entries of an id, sorted.
    fn of(&self, id: FcId) -> impl Iterator<Item = (FcId, FcId)> + '_ {
        self.entries.range((id, FcId::ZERO)..=(id, FcId::BROADCAST)).copied()
    }

    fn count(&mut self, port: u16, comparisons: u64) {
        let place = usize::from(port);
        self.with_port.resize(self.with_port.len().max(place + 1), 0);
        self.with_port[place] += comparisons;
    }
}

/// An N_Port_ID to compare with.
struct Other {
    id: FcId,
    place: ZonePlace,
}

impl Switch {
    /// A port is there: it, or with the standard algorithm everything at its switch port, is compared with all others.
    pub(super) fn compare_arrived(&mut self, id: FcId, place: &ZonePlace) {
        let Some(port) = self.logins.get(&id).map(|login| login.port) else {
            let here: Vec<Other> = self.logins.keys().filter_map(|id| self.other(*id)).collect();
            let wanted = self.compare(&[Other { id, place: place.clone() }], &here);
            self.work.remote_comparisons += here.len() as u64;
            return self.write(self.comparisons.of(id).collect(), wanted);
        };
        if self.config.policy.hard_zoning == HardZoning::Standard {
            return self.compare_port(port, id);
        }
        let wanted = self.wanted(port, &[Other { id, place: place.clone() }]);
        self.write(self.comparisons.of(id).collect(), wanted);
    }

    /// A port is gone from its switch port, or from another switch.
    pub(super) fn compare_departed(&mut self, id: FcId, port: Option<u16>) {
        match (port, self.config.policy.hard_zoning) {
            (Some(port), HardZoning::Standard) => self.compare_port(port, id),
            (port, _) => {
                let had: BTreeSet<_> = self.comparisons.of(id).collect();
                self.work.gap_entries += if port.is_some() { had.len() as u64 } else { 0 };
                self.write(had, BTreeSet::new());
            }
        }
    }

    /// All entries of all ports anew.
    pub(super) fn compare_all(&mut self) {
        let mut wanted = BTreeSet::new();
        for port in 0..self.config.ports {
            let ids = self.at_port(port);
            wanted.append(&mut self.wanted(port, &ids));
        }
        self.write(self.comparisons.entries.clone(), wanted);
    }

    /// Forgets all entries: the table has none.
    pub(super) fn forget_entries(&mut self) {
        self.comparisons.entries.clear();
    }

    /// The entries of a switch port anew, after `changed` came or went.
    fn compare_port(&mut self, port: u16, changed: FcId) {
        let ids = self.at_port(port);
        let mut had: BTreeSet<_> = self.comparisons.of(changed).collect();
        ids.iter().for_each(|of| had.extend(self.comparisons.of(of.id)));
        let wanted = self.wanted(port, &ids);
        self.write(had, wanted);
    }

    /// The pairs that `ids` of a switch port should be in.
    fn wanted(&mut self, port: u16, ids: &[Other]) -> BTreeSet<(FcId, FcId)> {
        let mut wanted = BTreeSet::new();
        for other_port in 0..self.config.ports {
            if self.ports[usize::from(other_port)].ids.is_empty() {
                continue;
            }
            let others = self.at_port(other_port);
            wanted.append(&mut self.compare(ids, &others));
            if other_port == port {
                // Pairs among `ids` were compared twice, and each with itself; a switch would do neither.
                let (new, all) = (ids.len() as u64, others.len() as u64);
                self.work.own_port_comparisons += new * (all - new) + new * new.saturating_sub(1) / 2;
            } else {
                let comparisons = (ids.len() * others.len()) as u64;
                self.work.comparisons += comparisons;
                self.comparisons.count(other_port, comparisons);
            }
        }
        let others = self.remote_others();
        self.work.remote_comparisons += (ids.len() * others.len()) as u64;
        wanted.append(&mut self.compare(ids, &others));
        wanted
    }

    /// One zone check for each of `ids` and each of `others`: the pairs that pass.
    fn compare(&self, ids: &[Other], others: &[Other]) -> BTreeSet<(FcId, FcId)> {
        let zones = &self.config.zoning;
        let pairs = ids.iter().flat_map(|a| others.iter().map(move |b| (a, b)));
        pairs
            .filter(|(a, b)| zones.permitted(&a.place, &b.place) && a.place.is_zoned() && a.id != b.id)
            .map(|(a, b)| (a.id, b.id))
            .collect()
    }

    /// Makes the entries `had` those that are wanted: first away with what is not. Which way round a pair is in a set does
    /// not matter.
    fn write(&mut self, had: BTreeSet<(FcId, FcId)>, wanted: BTreeSet<(FcId, FcId)>) {
        let one_way = |pairs: BTreeSet<(FcId, FcId)>| -> BTreeSet<(FcId, FcId)> {
            pairs.into_iter().map(|(a, b)| (a.min(b), a.max(b))).collect()
        };
        let (had, wanted) = (one_way(had), one_way(wanted));
        for &(a, b) in had.difference(&wanted) {
            self.comparisons.entries.remove(&(a, b));
            self.comparisons.entries.remove(&(b, a));
            self.change_pair(a, b, false);
        }
        for &(a, b) in wanted.difference(&had) {
            self.comparisons.entries.extend([(a, b), (b, a)]);
            self.change_pair(a, b, true);
        }
    }

    fn at_port(&self, port: u16) -> Vec<Other> {
        let ids = &self.ports[usize::from(port)].ids;
        ids.iter().filter_map(|id| self.other(*id)).collect()
    }

    fn remote_others(&self) -> Vec<Other> {
        let all = self.database.range(scope(0, 0)).filter(|(id, _)| Some(id.domain()) != self.domain);
        all.map(|(id, known)| Other { id, place: known.place.clone() }).collect()
    }

    fn other(&self, id: FcId) -> Option<Other> {
        Some(Other { id, place: self.database.get(id)?.place.clone() })
    }
}
