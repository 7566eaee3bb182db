//! Hard zoning by pairwise comparison of N_Port_IDs, as in the switch of the NPIV paper:
//! [`Comparisons`].
//!
//! Both algorithms store the entries that they wrote, because nothing else records which entries a
//! port had. Pairs at one port are compared as well, because virtual ports behind one link may
//! communicate through the switch. The document does not count these pairs, so they are counted
//! separately, as are pairs with N_Port_IDs of other switches.
//!
//! Two ports of the default zone need no entry of their own ([`FibDelta::JoinDefaultZone`]), but
//! they are still compared.
//!
//! [`FibDelta::JoinDefaultZone`]: crate::fabric::FibDelta::JoinDefaultZone

use super::context::Context;
use super::database::{Database, scope};
use super::login_table::LoginTable;
use super::zoning::{Enforcement, change_pair};
use crate::config::HardZoning;
use crate::fabric::ZoneMembership;
use sanloom_wire::FcId;
use std::collections::BTreeSet;

/// Comparisons made and entries written so far.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub(super) struct Comparisons {
    /// Permitted pairs, each stored in both directions.
    entries: BTreeSet<(FcId, FcId)>,
    with_port: Vec<u64>,
}

impl Comparisons {
    pub(super) fn with(&self, port: u16) -> u64 {
        self.with_port.get(usize::from(port)).copied().unwrap_or(0)
    }

    /// Entries of an N_Port_ID, sorted.
    fn of(&self, id: FcId) -> impl Iterator<Item = (FcId, FcId)> + '_ {
        self.entries.range((id, FcId::ZERO)..=(id, FcId::BROADCAST)).copied()
    }

    fn count(&mut self, port: u16, comparisons: u64) {
        let index = usize::from(port);
        self.with_port.resize(self.with_port.len().max(index + 1), 0);
        self.with_port[index] += comparisons;
    }

    /// Drops all entries, because the table no longer has any.
    pub(super) fn clear(&mut self) {
        self.entries.clear();
    }

    /// Replaces the entries `before` by those in `after`; removals come first. The direction of a
    /// pair in either set does not matter.
    fn replace(&mut self, cx: &mut Context<'_>, before: BTreeSet<(FcId, FcId)>, after: BTreeSet<(FcId, FcId)>) {
        let one_way = |pairs: BTreeSet<(FcId, FcId)>| -> BTreeSet<(FcId, FcId)> {
            pairs.into_iter().map(|(a, b)| (a.min(b), a.max(b))).collect()
        };
        let (before, after) = (one_way(before), one_way(after));
        for &(a, b) in before.difference(&after) {
            self.entries.remove(&(a, b));
            self.entries.remove(&(b, a));
            change_pair(cx, a, b, false);
        }
        for &(a, b) in after.difference(&before) {
            self.entries.extend([(a, b), (b, a)]);
            change_pair(cx, a, b, true);
        }
    }

    /// Compares `ids` of a switch port with all others, and returns the permitted pairs.
    fn compare_all_with(
        &mut self,
        cx: &mut Context<'_>,
        objects: &Database,
        port: u16,
        ids: &[Candidate],
    ) -> BTreeSet<(FcId, FcId)> {
        let mut permitted = BTreeSet::new();
        for other_port in 0..cx.logins.port_count() {
            if cx.logins.at_port(other_port).len() == 0 {
                continue;
            }
            let others = at_port(cx.logins, objects, other_port);
            permitted.append(&mut compare(objects, ids, &others));
            if other_port == port {
                // The code compares pairs among `ids` twice, and each N_Port_ID with itself; a
                // switch would do neither, so they are not counted.
                let (new, all) = (ids.len() as u64, others.len() as u64);
                cx.out.work.own_port_comparisons += new * (all - new) + new * new.saturating_sub(1) / 2;
            } else {
                let comparisons = (ids.len() * others.len()) as u64;
                cx.out.work.comparisons += comparisons;
                self.count(other_port, comparisons);
            }
        }
        let remote = objects.range(scope(0, 0)).filter(|(id, _)| !cx.identity.owns(*id));
        let others: Vec<Candidate> =
            remote.map(|(id, known)| Candidate { id, membership: known.membership.clone() }).collect();
        cx.out.work.remote_comparisons += (ids.len() * others.len()) as u64;
        permitted.append(&mut compare(objects, ids, &others));
        permitted
    }
}

/// N_Port_ID to compare, with its zone membership.
struct Candidate {
    id: FcId,
    membership: ZoneMembership,
}

impl Enforcement {
    /// Compares a new port with all others. With the standard algorithm, all N_Port_IDs of its
    /// switch port are compared.
    pub(super) fn compare_arrived(
        &mut self,
        cx: &mut Context<'_>,
        objects: &Database,
        id: FcId,
        membership: &ZoneMembership,
    ) {
        let new = [Candidate { id, membership: membership.clone() }];
        let Some(port) = cx.logins.port_of(id) else {
            let local: Vec<_> = cx.logins.iter().filter_map(|(id, _)| candidate(objects, id)).collect();
            let permitted = compare(objects, &new, &local);
            cx.out.work.remote_comparisons += local.len() as u64;
            return self.comparisons.replace(cx, self.comparisons.of(id).collect(), permitted);
        };
        if self.method == HardZoning::Standard {
            return self.compare_port(cx, objects, port, id);
        }
        let permitted = self.comparisons.compare_all_with(cx, objects, port, &new);
        self.comparisons.replace(cx, self.comparisons.of(id).collect(), permitted);
    }

    /// Updates the entries after a port left its switch port or another switch.
    pub(super) fn compare_departed(&mut self, cx: &mut Context<'_>, objects: &Database, id: FcId, port: Option<u16>) {
        match (port, self.method) {
            (Some(port), HardZoning::Standard) => self.compare_port(cx, objects, port, id),
            (port, _) => {
                let before: BTreeSet<_> = self.comparisons.of(id).collect();
                cx.out.work.gap_entries += if port.is_some() { before.len() as u64 } else { 0 };
                self.comparisons.replace(cx, before, BTreeSet::new());
            }
        }
    }

    /// Rebuilds all entries of all ports.
    pub(super) fn compare_all(&mut self, cx: &mut Context<'_>, objects: &Database) {
        let mut permitted = BTreeSet::new();
        for port in 0..cx.logins.port_count() {
            let ids = at_port(cx.logins, objects, port);
            permitted.append(&mut self.comparisons.compare_all_with(cx, objects, port, &ids));
        }
        self.comparisons.replace(cx, self.comparisons.entries.clone(), permitted);
    }

    /// Rebuilds the entries of a switch port after `changed` logged in or out.
    fn compare_port(&mut self, cx: &mut Context<'_>, objects: &Database, port: u16, changed: FcId) {
        let ids = at_port(cx.logins, objects, port);
        let mut before: BTreeSet<_> = self.comparisons.of(changed).collect();
        ids.iter().for_each(|of| before.extend(self.comparisons.of(of.id)));
        let permitted = self.comparisons.compare_all_with(cx, objects, port, &ids);
        self.comparisons.replace(cx, before, permitted);
    }
}

/// Checks every pair of `ids` and `others`, and returns the pairs that share a zone.
fn compare(objects: &Database, ids: &[Candidate], others: &[Candidate]) -> BTreeSet<(FcId, FcId)> {
    let zones = objects.zones();
    let pairs = ids.iter().flat_map(|a| others.iter().map(move |b| (a, b)));
    pairs
        .filter(|(a, b)| zones.permitted(&a.membership, &b.membership) && a.membership.is_zoned() && a.id != b.id)
        .map(|(a, b)| (a.id, b.id))
        .collect()
}

fn at_port(logins: &LoginTable, objects: &Database, port: u16) -> Vec<Candidate> {
    logins.at_port(port).filter_map(|id| candidate(objects, id)).collect()
}

fn candidate(objects: &Database, id: FcId) -> Option<Candidate> {
    Some(Candidate { id, membership: objects.get(id)?.membership.clone() })
}
