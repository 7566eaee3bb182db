//! Who may reach whom: permissions in the forwarding table follow the ports that come and go.
//!
//! Permissions exist exactly for the pairs of known ports that share a zone, where the destination is logged in here. So
//! what a port had when it leaves is what its zone-mates of that moment give, and nothing has to be remembered.

use super::Switch;
use super::database::scope;
use crate::fabric::FibDelta;
use sanloom_wire::{FcId, Wwpn};

impl Switch {
    /// Lets a port reach and be reached by its zone-mates. It must be in the database.
    pub(super) fn permit(&mut self, id: FcId, name: Wwpn) {
        self.set_permissions(id, name, true);
    }

    /// Takes away everything that [`permit`](Switch::permit) gave and later ports added.
    pub(super) fn revoke(&mut self, id: FcId, name: Wwpn) {
        self.set_permissions(id, name, false);
    }

    fn set_permissions(&mut self, id: FcId, name: Wwpn, permitted: bool) {
        let zones = self.config.zoning.clone();
        if zones.permits_all() {
            return;
        }
        if !zones.is_zoned(name) {
            if zones.open_default() {
                self.permission(match permitted {
                    true => FibDelta::JoinDefaultZone { id },
                    false => FibDelta::LeaveDefaultZone { id },
                });
            }
            return;
        }
        let change = |s, d| match permitted {
            true => FibDelta::Permit { s, d },
            false => FibDelta::Revoke { s, d },
        };
        if Some(id.domain()) != self.domain {
            for mate in self.local_mates(id, name) {
                self.permission(change(id, mate));
            }
            return;
        }
        let (mates, looked_at) = zones.mates(name);
        self.work.zone_members += looked_at as u64;
        for mate in mates {
            let Some(mate) = self.database.id_of(mate) else {
                continue;
            };
            self.permission(change(mate, id));
            if Some(mate.domain()) == self.domain {
                self.permission(change(id, mate));
            }
        }
    }

    /// The ports that are logged in here and may talk to `id`, sorted, without itself. Looks at its zone-mates or at all
    /// local logins, whichever are fewer.
    pub(super) fn local_mates(&mut self, id: FcId, name: Wwpn) -> Vec<FcId> {
        let zones = &self.config.zoning;
        let all_here = self.logins.len();
        let member = zones.member(name);
        let mut found: Vec<FcId> = if zones.permits_all() {
            self.work.objects += all_here as u64;
            self.logins.keys().copied().collect()
        } else if member.is_some() && zones.mates_bound(name) < all_here {
            let (mates, looked_at) = zones.mates(name);
            self.work.zone_members += looked_at as u64;
            let ids = mates.into_iter().filter_map(|mate| self.database.id_of(mate));
            ids.filter(|mate| self.logins.contains_key(mate)).collect()
        } else {
            self.work.objects += all_here as u64;
            let here = self.domain.map(|domain| self.database.range(scope(domain, 0)));
            let mates = here.into_iter().flatten().filter(|(_, known)| zones.members_permitted(member, known.member));
            mates.map(|(mate, _)| mate).collect()
        };
        found.retain(|mate| *mate != id);
        found.sort_unstable();
        found
    }

    /// The ports that asked for changes, are logged in here and may talk to `id`, sorted, without itself. Looks at its
    /// zone-mates or at all that asked, whichever are fewer.
    pub(super) fn audience(&mut self, id: FcId, name: Wwpn) -> Vec<FcId> {
        let zones = &self.config.zoning;
        let member = zones.member(name);
        if member.is_some() && zones.mates_bound(name) < self.rscn.recipients().len() {
            return self.local_mates(id, name);
        }
        let asked = self.rscn.recipients();
        self.work.objects += asked.len() as u64;
        let member_of = |mate: FcId| self.database.get(mate).and_then(|known| known.member);
        let may = |mate: &FcId| zones.permits_all() || zones.members_permitted(member, member_of(*mate));
        asked.filter(|mate| *mate != id && may(mate)).collect()
    }

    fn permission(&mut self, delta: FibDelta) {
        self.work.permissions += 1;
        self.fib(delta);
    }
}
