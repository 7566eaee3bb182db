//! The effective zones change while ports are logged in: permissions follow, and those who gain or lose sight of a port
//! hear of it.

use super::Switch;
use super::database::scope;
use super::policy::HardZoning;
use crate::fabric::{FibDelta, ZonePlace, ZoneSet};
use crate::time::Instant;
use sanloom_wire::FcId;
use std::borrow::Cow;
use std::sync::Arc;

/// What a set of zones gives to the ports that are known.
struct View {
    zones: Arc<ZoneSet>,
    /// Sorted by id.
    places: Vec<(FcId, ZonePlace)>,
    /// Ports in no zone, sorted.
    unzoned: Vec<FcId>,
}

impl View {
    fn place(&self, id: FcId) -> Option<&ZonePlace> {
        let at = self.places.binary_search_by_key(&id, |(id, _)| *id).ok()?;
        Some(&self.places[at].1)
    }

    /// The port has an entry in the default zone of the table.
    fn in_default_zone(&self, id: FcId) -> bool {
        let unzoned = self.place(id).is_some_and(|place| !place.is_zoned());
        unzoned && self.zones.open_default() && !self.zones.permits_all()
    }
}

impl Switch {
    pub(super) fn set_zoning(&mut self, now: Instant, zones: Arc<ZoneSet>) {
        if zones == self.config.zoning {
            self.config.zoning = zones;
            return;
        }
        let old = self.view();
        // The old zones are still asked below.
        self.database.index_ports(old.zones.uses_switch_ports() || zones.uses_switch_ports());
        let was_hard = self.zones_hard();
        self.config.zoning = zones.clone();
        self.database.set_places(|entry| zones.place(&entry.identity()));
        let new = self.view();
        match (was_hard, self.zones_hard()) {
            (_, true) => {
                if !was_hard {
                    self.fib(FibDelta::ZoningOn);
                }
                self.follow(&old, &new);
            }
            (true, false) => {
                self.fib(FibDelta::ZoningOff);
                self.forget_entries();
            }
            (false, false) => {}
        }
        self.tell_of_sight(now, &old, &new);
        self.database.index_ports(new.zones.uses_switch_ports());
    }

    fn view(&self) -> View {
        let all = self.database.range(scope(0, 0));
        let places: Vec<(FcId, ZonePlace)> = all.map(|(id, known)| (id, known.place.clone())).collect();
        let unzoned = places.iter().filter(|(_, place)| !place.is_zoned()).map(|(id, _)| *id).collect();
        View { zones: self.config.zoning.clone(), places, unzoned }
    }

    /// Takes away what the new zones do not give, then gives what the old ones did not.
    fn follow(&mut self, old: &View, new: &View) {
        let moves = |from: &View, to: &View| -> Vec<FcId> {
            let ids = from.unzoned.iter().copied();
            ids.filter(|id| from.in_default_zone(*id) && !to.in_default_zone(*id)).collect()
        };
        for id in moves(old, new) {
            self.permission(FibDelta::LeaveDefaultZone { id });
        }
        let joining = moves(new, old);
        if self.config.policy.hard_zoning == HardZoning::ZoneMates {
            let here: Vec<FcId> = self.logins.keys().copied().collect();
            let mut gained = Vec::new();
            for id in here {
                let (before, after) = (self.mates_in(old, id), self.mates_in(new, id));
                for s in before.iter().copied().filter(|mate| after.binary_search(mate).is_err()) {
                    self.permission(FibDelta::Revoke { s, d: id });
                }
                gained.extend(after.into_iter().filter(|mate| before.binary_search(mate).is_err()).map(|s| (s, id)));
            }
            for (s, d) in gained {
                self.permission(FibDelta::Permit { s, d });
            }
        } else {
            self.compare_all();
        }
        for id in joining {
            self.permission(FibDelta::JoinDefaultZone { id });
        }
    }

    /// Ports that share a zone with a port, sorted, without itself.
    fn mates_in(&mut self, view: &View, id: FcId) -> Vec<FcId> {
        let Some(place) = view.place(id).filter(|place| place.is_zoned()) else {
            return Vec::new();
        };
        let (mates, looked_at) = view.zones.mates(place);
        self.work.zone_members += looked_at as u64;
        let mut mates = self.database.ids_of(&mates);
        mates.retain(|mate| *mate != id);
        mates
    }

    /// Ports that a port may see, sorted.
    fn seen_in<'v>(&mut self, view: &'v View, id: FcId) -> Cow<'v, [FcId]> {
        match view.place(id) {
            _ if view.zones.permits_all() => Cow::Borrowed(&view.unzoned),
            Some(place) if place.is_zoned() => Cow::Owned(self.mates_in(view, id)),
            Some(_) if view.zones.open_default() => Cow::Borrowed(&view.unzoned),
            _ => Cow::Borrowed(&[]),
        }
    }

    /// An RSCN to everybody who asked for changes and now sees more or fewer ports.
    fn tell_of_sight(&mut self, now: Instant, old: &View, new: &View) {
        // Most ports that are in no zone see the same others before and after.
        let unzoned = Changed::between(&old.unzoned, &new.unzoned);
        let asked: Vec<FcId> = self.rscn.recipients().collect();
        for id in asked {
            let (before, after) = (self.seen_in(old, id), self.seen_in(new, id));
            let own;
            let changed = match (before, after) {
                (Cow::Borrowed(before), Cow::Borrowed(after)) if !before.is_empty() && !after.is_empty() => &unzoned,
                (before, after) => {
                    own = Changed::between(&before, &after);
                    &own
                }
            };
            let noted = match changed {
                Changed::Ports(ports) => {
                    let others = ports.iter().filter(|port| **port != id);
                    others.filter(|port| self.rscn.notify(now, id, **port, false)).count()
                }
                Changed::Many => usize::from(self.rscn.notify_of_all(now, id)),
            };
            self.work.notifications += noted as u64;
        }
    }
}

/// Ports that are in one of two lists only.
enum Changed {
    Ports(Vec<FcId>),
    /// More than an RSCN names one by one.
    Many,
}

impl Changed {
    /// Both lists are sorted.
    fn between(mut a: &[FcId], mut b: &[FcId]) -> Changed {
        let mut ports = Vec::new();
        while ports.len() <= super::rscn::MAX_PAGES {
            match (a, b) {
                ([], []) => return Changed::Ports(ports),
                ([first, rest_a @ ..], [other, rest_b @ ..]) if first == other => (a, b) = (rest_a, rest_b),
                ([first, rest @ ..], _) if b.first().is_none_or(|other| first < other) => {
                    ports.push(*first);
                    a = rest;
                }
                (_, [first, rest @ ..]) => {
                    ports.push(*first);
                    b = rest;
                }
                (_, []) => return Changed::Ports(ports),
            }
        }
        Changed::Many
    }
}
