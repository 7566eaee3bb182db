//! Change of the effective zones while ports are logged in: permissions are updated, and ports that
//! gain or lose sight of others receive RSCNs.

use super::context::Context;
use super::controller::FabricController;
use super::database::{Database, scope};
use super::directory::Directory;
use super::zoning::Enforcement;
use super::{Work, rscn};
use crate::config::HardZoning;
use crate::fabric::{FibDelta, ZoneMembership, ZoneSet};
use sanloom_wire::FcId;
use std::borrow::Cow;
use std::sync::Arc;

/// Zone memberships of the known ports under one zone set.
struct Memberships {
    zones: Arc<ZoneSet>,
    /// Sorted by id.
    by_id: Vec<(FcId, ZoneMembership)>,
    /// Ports in no zone, sorted.
    unzoned: Vec<FcId>,
}

impl Memberships {
    fn of(objects: &Database) -> Memberships {
        let all = objects.range(scope(0, 0));
        let by_id: Vec<(FcId, ZoneMembership)> = all.map(|(id, known)| (id, known.membership.clone())).collect();
        let unzoned = by_id.iter().filter(|(_, membership)| !membership.is_zoned()).map(|(id, _)| *id).collect();
        Memberships { zones: objects.zones().clone(), by_id, unzoned }
    }

    fn get(&self, id: FcId) -> Option<&ZoneMembership> {
        let at = self.by_id.binary_search_by_key(&id, |(id, _)| *id).ok()?;
        Some(&self.by_id[at].1)
    }

    /// Returns true if the port has an entry in the default zone of the table.
    fn in_default_zone(&self, id: FcId) -> bool {
        let unzoned = self.get(id).is_some_and(|membership| !membership.is_zoned());
        unzoned && self.zones.open_default() && !self.zones.permits_all()
    }

    /// Ports that share a zone with a port, sorted, without the port itself.
    fn mates(&self, objects: &Database, id: FcId, work: &mut Work) -> Vec<FcId> {
        let Some(membership) = self.get(id).filter(|membership| membership.is_zoned()) else {
            return Vec::new();
        };
        let (mates, examined) = self.zones.mates(membership);
        work.zone_members += examined as u64;
        let mut mates = objects.ids_of(&mates);
        mates.retain(|mate| *mate != id);
        mates
    }

    /// Ports that a port may see, sorted.
    fn visible_to(&self, objects: &Database, id: FcId, work: &mut Work) -> Cow<'_, [FcId]> {
        match self.get(id) {
            _ if self.zones.permits_all() => Cow::Borrowed(&self.unzoned),
            Some(membership) if membership.is_zoned() => Cow::Owned(self.mates(objects, id, work)),
            Some(_) if self.zones.open_default() => Cow::Borrowed(&self.unzoned),
            _ => Cow::Borrowed(&[]),
        }
    }
}

impl Directory {
    /// Replaces the effective zones.
    pub(super) fn set_zones(&mut self, cx: &mut Context<'_>, zones: Arc<ZoneSet>) {
        if zones == *self.objects.zones() {
            self.objects.share_zones(zones);
            return;
        }
        let old = Memberships::of(&self.objects);
        // The index must serve both zone sets, because the mates under the old zones are searched
        // below.
        self.objects.index_ports(old.zones.uses_switch_ports() || zones.uses_switch_ports());
        let was_enforced = self.enforces_zones();
        self.objects.set_zones(zones);
        let new = Memberships::of(&self.objects);
        match (was_enforced, self.enforces_zones()) {
            (_, true) => {
                if !was_enforced {
                    cx.out.fib(FibDelta::ZoningOn);
                }
                self.enforcement.change_zones(cx, &self.objects, &old, &new);
            }
            (true, false) => {
                cx.out.fib(FibDelta::ZoningOff);
                self.enforcement.comparisons.clear();
            }
            (false, false) => {}
        }
        self.controller.notify_visibility(cx, &self.objects, &old, &new);
        self.objects.index_ports(new.zones.uses_switch_ports());
    }
}

impl Enforcement {
    /// Revokes the permissions that the new zones do not grant, then grants the missing ones.
    fn change_zones(&mut self, cx: &mut Context<'_>, objects: &Database, old: &Memberships, new: &Memberships) {
        let moves = |from: &Memberships, to: &Memberships| -> Vec<FcId> {
            let ids = from.unzoned.iter().copied();
            ids.filter(|id| from.in_default_zone(*id) && !to.in_default_zone(*id)).collect()
        };
        for id in moves(old, new) {
            cx.out.permission(FibDelta::LeaveDefaultZone { id });
        }
        let joining = moves(new, old);
        if self.method == HardZoning::ZoneMates {
            let mut gained = Vec::new();
            for (d, _) in cx.logins.iter() {
                let work = &mut cx.out.work;
                let (before, after) = (old.mates(objects, d, work), new.mates(objects, d, work));
                for s in before.iter().copied().filter(|mate| after.binary_search(mate).is_err()) {
                    cx.out.permission(FibDelta::Revoke { s, d });
                }
                gained.extend(after.into_iter().filter(|mate| before.binary_search(mate).is_err()).map(|s| (s, d)));
            }
            for (s, d) in gained {
                cx.out.permission(FibDelta::Permit { s, d });
            }
        } else {
            self.compare_all(cx, objects);
        }
        for id in joining {
            cx.out.permission(FibDelta::JoinDefaultZone { id });
        }
    }
}

impl FabricController {
    /// Queues RSCNs for every registered port that now sees more or fewer ports.
    fn notify_visibility(&mut self, cx: &mut Context<'_>, objects: &Database, old: &Memberships, new: &Memberships) {
        // Most unzoned ports see the same ports before and after.
        let unzoned = Changed::between(&old.unzoned, &new.unzoned);
        let registered: Vec<FcId> = self.queue.recipients().collect();
        for id in registered {
            let work = &mut cx.out.work;
            let (before, after) = (old.visible_to(objects, id, work), new.visible_to(objects, id, work));
            let own;
            let changed = match (before, after) {
                (Cow::Borrowed(before), Cow::Borrowed(after)) if !before.is_empty() && !after.is_empty() => &unzoned,
                (before, after) => {
                    own = Changed::between(&before, &after);
                    &own
                }
            };
            let pages = match changed {
                Changed::Ports(ports) => {
                    let others = ports.iter().filter(|port| **port != id);
                    others.filter(|port| self.queue.notify(cx.now, id, **port, false)).count()
                }
                Changed::Many => usize::from(self.queue.notify_of_all(cx.now, id)),
            };
            cx.out.work.notifications += pages as u64;
        }
    }
}

/// Ports that are in only one of two lists.
enum Changed {
    Ports(Vec<FcId>),
    /// More ports than one RSCN lists individually.
    Many,
}

impl Changed {
    /// Compares two sorted lists.
    fn between(mut a: &[FcId], mut b: &[FcId]) -> Changed {
        let mut ports = Vec::new();
        while ports.len() <= rscn::MAX_PAGES {
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
