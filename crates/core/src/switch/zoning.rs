//! Who may reach whom: permissions in the forwarding table follow the ports that come and go.
//!
//! Permissions exist exactly for the pairs of known ports that share a zone, where the destination is logged in here. So
//! what a port had when it leaves is what its zone-mates of that moment give, and nothing has to be remembered.

use super::Switch;
use super::database::scope;
use super::policy::HardZoning;
use crate::fabric::{FibDelta, ZonePlace};
use sanloom_wire::FcId;

impl Switch {
    /// The forwarding table checks zones.
    pub(crate) fn zones_hard(&self) -> bool {
        !self.config.zoning.permits_all() && self.config.policy.hard_zoning != HardZoning::Off
    }

    /// Lets a port reach and be reached by its zone-mates. It must be in the database.
    pub(super) fn permit(&mut self, id: FcId, place: &ZonePlace) {
        if !self.zones_hard() {
            return;
        }
        if !place.is_zoned() && self.config.zoning.open_default() {
            self.permission(FibDelta::JoinDefaultZone { id });
        }
        match self.config.policy.hard_zoning {
            HardZoning::Standard | HardZoning::Modified => self.compare_arrived(id, place),
            HardZoning::ZoneMates => self.change_pairs(id, place, true),
            HardZoning::Off => {}
        }
    }

    /// Takes away everything that [`permit`](Switch::permit) gave and later ports added. `port` is where it was logged in,
    /// nothing for a port of another switch.
    pub(super) fn revoke(&mut self, id: FcId, place: &ZonePlace, port: Option<u16>) {
        if !self.zones_hard() {
            return;
        }
        if !place.is_zoned() && self.config.zoning.open_default() {
            self.permission(FibDelta::LeaveDefaultZone { id });
        }
        match self.config.policy.hard_zoning {
            HardZoning::Standard | HardZoning::Modified => self.compare_departed(id, port),
            HardZoning::ZoneMates => self.change_pairs(id, place, false),
            HardZoning::Off => {}
        }
    }

    /// Gives or takes what the zone-mates of this moment say.
    fn change_pairs(&mut self, id: FcId, place: &ZonePlace, permitted: bool) {
        if !place.is_zoned() {
            return;
        }
        if Some(id.domain()) != self.domain {
            for mate in self.local_mates(id, place) {
                self.change_pair(mate, id, permitted);
            }
            return;
        }
        let (mates, looked_at) = self.config.zoning.mates(place);
        self.work.zone_members += looked_at as u64;
        for mate in self.database.ids_of(&mates).into_iter().filter(|mate| *mate != id) {
            self.change_pair(id, mate, permitted);
        }
    }

    /// Gives or takes the permissions between two ports, where they are logged in here.
    pub(super) fn change_pair(&mut self, a: FcId, b: FcId, permitted: bool) {
        for (s, d) in [(b, a), (a, b)] {
            if Some(d.domain()) == self.domain {
                self.permission(match permitted {
                    true => FibDelta::Permit { s, d },
                    false => FibDelta::Revoke { s, d },
                });
            }
        }
    }

    /// The ports that are logged in here and may talk to `id`, sorted, without itself. Looks at its zone-mates or at all
    /// local logins, whichever are fewer.
    pub(super) fn local_mates(&mut self, id: FcId, place: &ZonePlace) -> Vec<FcId> {
        let zones = &self.config.zoning;
        let all_here = self.logins.len();
        let mut found: Vec<FcId> = if zones.permits_all() {
            self.work.objects += all_here as u64;
            self.logins.keys().copied().collect()
        } else if place.is_zoned() && zones.mates_bound(place) < all_here {
            self.work.zone_members += zones.mates_bound(place) as u64;
            let mut ids = self.database.own_ids_of(zones.mates_of(place));
            ids.retain(|mate| self.logins.contains_key(mate));
            ids
        } else {
            self.work.objects += all_here as u64;
            let here = self.domain.map(|domain| self.database.range(scope(domain, 0)));
            let mates = here.into_iter().flatten().filter(|(_, known)| zones.permitted(place, &known.place));
            mates.map(|(mate, _)| mate).collect()
        };
        found.retain(|mate| *mate != id);
        found
    }

    /// The ports that asked for changes, are logged in here and may talk to `id`, sorted, without itself. Looks at its
    /// zone-mates or at all that asked, whichever are fewer.
    pub(super) fn audience(&mut self, id: FcId, place: &ZonePlace) -> Vec<FcId> {
        let zones = &self.config.zoning;
        if place.is_zoned() && zones.mates_bound(place) < self.rscn.recipients().len() {
            return self.local_mates(id, place);
        }
        let asked = self.rscn.recipients();
        self.work.objects += asked.len() as u64;
        let may = |mate: &FcId| {
            zones.permits_all() || self.database.get(*mate).is_some_and(|known| zones.permitted(place, &known.place))
        };
        asked.filter(|mate| *mate != id && may(mate)).collect()
    }

    pub(super) fn permission(&mut self, delta: FibDelta) {
        self.work.permissions += 1;
        self.fib(delta);
    }
}
