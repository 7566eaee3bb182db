//! Objects of the fabric with the consequences of each change: [`Directory`].
//!
//! ```text
//!   login, logout, registration ---+
//!   update of another switch ------+--> Database --> Enforcement: permissions --> Outbox
//!   new zones, new routes ---------+                 FabricController: RSCNs ---> Outbox
//! ```

use super::SwitchConfig;
use super::context::Context;
use super::controller::FabricController;
use super::database::{Database, Known, scope};
use super::entry::NsEntry;
use super::login_table::LoginTable;
use super::peer::PeerUpdate;
use super::registration::Registered;
use super::rscn::RscnQueue;
use super::zoning::Enforcement;
use crate::config::DuplicateNames;
use crate::fabric::{FibDelta, Leg};
use sanloom_wire::{FcId, Wwpn};

/// Objects of this and the other switches, their permissions, and the notification of their
/// changes.
#[derive(Debug)]
pub(super) struct Directory {
    pub(super) objects: Database,
    pub(super) enforcement: Enforcement,
    pub(super) controller: FabricController,
    /// Other domains with a route.
    reachable: DomainSet,
    duplicate_names: DuplicateNames,
}

impl Directory {
    pub(super) fn new(config: &SwitchConfig) -> Directory {
        Directory {
            objects: Database::new(config.zoning.clone()),
            enforcement: Enforcement::new(config.policy.hard_zoning),
            controller: FabricController { queue: RscnQueue::new(config.rscn_delay, config.e_d_tov, config.r_a_tov) },
            reachable: DomainSet::default(),
            duplicate_names: config.policy.duplicate_names,
        }
    }

    /// Returns true if the forwarding table enforces the effective zones.
    pub(super) fn enforces_zones(&self) -> bool {
        self.enforcement.applies_to(self.objects.zones())
    }

    /// Adds the object of a local login whose port name is not in use.
    pub(super) fn add_local(&mut self, cx: &mut Context<'_>, entry: NsEntry) {
        let id = entry.port_id;
        let membership = self.objects.zones().membership(&entry.identity());
        self.objects.insert(Known { entry: entry.clone(), membership: membership.clone() });
        self.enforcement.permit(cx, &self.objects, id, &membership);
        cx.out.peer(PeerUpdate::Object(entry));
        self.controller.notify(cx, &self.objects, id, &membership, false);
    }

    /// Removes the object of a local login that has ended at `port`.
    pub(super) fn remove_local(&mut self, cx: &mut Context<'_>, id: FcId, port: Option<u16>) {
        self.controller.queue.deregister(id);
        let entry = self.remove(cx, id, port);
        cx.out.peer(PeerUpdate::Removed { port_id: id });
        if let Some(entry) = entry {
            self.release_name(cx, entry.port_name);
        }
    }

    /// Handles a changed registration of a local port. `announce`: the other switches need the
    /// object.
    pub(super) fn registered(&mut self, cx: &mut Context<'_>, change: Registered, announce: bool) {
        let Registered { entry, membership, affects_discovery } = change;
        let id = entry.port_id;
        if announce {
            cx.out.peer(PeerUpdate::Object(entry));
        }
        if affects_discovery {
            self.controller.notify(cx, &self.objects, id, &membership, false);
        }
    }

    /// Returns true if another switch with a route owns the address.
    pub(super) fn accepts_remote(&self, cx: &Context<'_>, id: FcId) -> bool {
        !cx.identity.owns(id) && self.reachable.has(id.domain())
    }

    /// Adds or replaces a remote object whose port name is not in use.
    pub(super) fn add_remote(&mut self, cx: &mut Context<'_>, entry: NsEntry) {
        let id = entry.port_id;
        let membership = self.objects.zones().membership(&entry.identity());
        let old = self.objects.get(id).cloned();
        let changed = |old: &Known| {
            old.entry.differs_for_discovery(&entry)
                || old.entry.logged_in_at != entry.logged_in_at
                || old.membership != membership
        };
        let notify = old.as_ref().is_none_or(changed);
        let is_new = old.is_none();
        let moved = old.filter(|old| old.entry.identity() != entry.identity());
        if let Some(moved) = &moved {
            self.objects.remove(id);
            self.enforcement.revoke(cx, &self.objects, id, &moved.membership, None);
        }
        let permit = moved.is_some() || is_new;
        self.objects.insert(Known { entry, membership: membership.clone() });
        if permit {
            self.enforcement.permit(cx, &self.objects, id, &membership);
        }
        if notify {
            self.controller.notify(cx, &self.objects, id, &membership, false);
        }
    }

    /// Removes a port of another switch. Returns true if it was known.
    pub(super) fn remove_remote(&mut self, cx: &mut Context<'_>, id: FcId) -> bool {
        if self.objects.remove_shadow(id) {
            return true;
        }
        let Some(entry) = self.remove(cx, id, None) else {
            return false;
        };
        self.release_name(cx, entry.port_name);
        true
    }

    /// Treats a remote object as absent while another login uses its port name.
    pub(super) fn shadow(&mut self, cx: &mut Context<'_>, id: FcId) {
        if let Some(entry) = self.remove(cx, id, None) {
            self.objects.shadow(entry);
        }
    }

    /// Removes all ports of another switch. Returns true if there were any.
    pub(super) fn remove_domain(&mut self, cx: &mut Context<'_>, domain: u8) -> bool {
        if Some(domain) == cx.identity.domain {
            return false;
        }
        self.objects.remove_shadows(scope(domain, 0));
        let ids: Vec<FcId> = self.objects.range(scope(domain, 0)).map(|(id, _)| id).collect();
        ids.iter().for_each(|id| {
            self.remove_remote(cx, *id);
        });
        !ids.is_empty()
    }

    /// Applies the route to another domain. Returns true if the domain has become reachable.
    pub(super) fn set_route(&mut self, cx: &mut Context<'_>, domain: u8, legs: Vec<Leg>) -> bool {
        let reachable = !legs.is_empty();
        cx.out.fib(FibDelta::Routes { domain, legs });
        let changed = self.reachable.set(domain, reachable);
        if changed && !reachable {
            self.remove_domain(cx, domain);
        }
        changed && reachable
    }

    /// Removes the route and the ports of a domain that this switch takes over, because no other
    /// switch has it any longer.
    pub(super) fn take_over(&mut self, cx: &mut Context<'_>, domain: u8) {
        if self.reachable.set(domain, false) {
            cx.out.fib(FibDelta::Routes { domain, legs: Vec::new() });
        }
        self.remove_domain(cx, domain);
    }

    /// Objects of all local ports.
    pub(super) fn local_objects(&self, logins: &LoginTable) -> Vec<NsEntry> {
        logins.iter().filter_map(|(id, _)| self.objects.get(id)).map(|known| known.entry.clone()).collect()
    }

    /// Returns true if the known port `id` stays although `entry` has the same port name. The rule
    /// is the same on all switches.
    pub(super) fn keeps_name(&self, id: FcId, entry: &NsEntry) -> bool {
        self.objects.get(id).is_some_and(|known| match self.duplicate_names {
            DuplicateNames::NewWins => known.entry.precedence() > entry.precedence(),
            DuplicateNames::OldWins | DuplicateNames::Block => known.entry.precedence() < entry.precedence(),
        })
    }

    /// Removes an object with its permissions, and notifies its zone-mates.
    fn remove(&mut self, cx: &mut Context<'_>, id: FcId, port: Option<u16>) -> Option<NsEntry> {
        let Known { entry, membership } = self.objects.remove(id)?;
        self.enforcement.revoke(cx, &self.objects, id, &membership, port);
        self.controller.notify(cx, &self.objects, id, &membership, false);
        Some(entry)
    }

    /// Handles the end of a login: the next object with the same port name, if any, replaces it.
    fn release_name(&mut self, cx: &mut Context<'_>, name: Wwpn) {
        let newest = self.duplicate_names == DuplicateNames::NewWins;
        if let Some(entry) = self.objects.take_shadow(name, newest) {
            self.add_remote(cx, entry);
        }
    }
}

/// Bit set of domains.
#[derive(Clone, Copy, Debug, Default)]
struct DomainSet([u64; 4]);

impl DomainSet {
    fn has(&self, domain: u8) -> bool {
        self.0[usize::from(domain) / 64] >> (domain % 64) & 1 != 0
    }

    /// Adds or removes a domain. Returns true if the set changed.
    fn set(&mut self, domain: u8, member: bool) -> bool {
        let changed = self.has(domain) != member;
        self.0[usize::from(domain) / 64] ^= u64::from(changed) << (domain % 64);
        changed
    }
}
