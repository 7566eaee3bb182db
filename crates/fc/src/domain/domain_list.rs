//! Domains of the fabric and their owners: [`DomainList`].

use super::MAX_DOMAIN;
use sanloom_scsi::time::Instant;
use sanloom_wire::Wwnn;
use std::collections::{BTreeMap, BTreeSet};

/// Domains with their owners.
pub(super) type Owners = BTreeMap<u8, Wwnn>;

/// Domains granted by the principal, and those of the fabric before.
#[derive(Debug, Default)]
pub(super) struct DomainList {
    /// Domains known to be granted by the current principal.
    granted: Owners,
    /// Domains from before the last rebuild or merge, reserved for their owners.
    previous: Owners,
    /// End of the reservation.
    reserved_until: Option<Instant>,
}

impl DomainList {
    pub(super) fn granted(&self) -> &Owners {
        &self.granted
    }

    pub(super) fn reserved_until(&self) -> Option<Instant> {
        self.reserved_until
    }

    /// Sets the end of the reservation of previous domains; `None` keeps it open.
    pub(super) fn reserve_until(&mut self, at: Option<Instant>) {
        self.reserved_until = at;
    }

    /// Ends the reservation if its time is over. Returns true if it did.
    pub(super) fn end_reservation(&mut self, now: Instant) -> bool {
        let over = self.reserved_until.take_if(|at| *at <= now).is_some();
        if over {
            self.previous.clear();
        }
        over
    }

    /// Adds a granted domain, unless it has an owner.
    pub(super) fn add(&mut self, domain: u8, owner: Wwnn) {
        self.granted.entry(domain).or_insert(owner);
    }

    /// Replaces the granted domains; the former ones are reserved for their owners.
    pub(super) fn replace(&mut self, granted: Owners) {
        let before = std::mem::replace(&mut self.granted, granted);
        self.previous.extend(before);
    }

    /// Removes the domains from before the last rebuild or merge.
    pub(super) fn clear_previous(&mut self) {
        self.previous.clear();
    }

    pub(super) fn clear(&mut self) {
        self.granted.clear();
        self.previous.clear();
    }

    /// Returns true if a domain in `records` is not known to be granted.
    pub(super) fn lacks_any(&self, records: &Owners) -> bool {
        records.keys().any(|domain| !self.granted.contains_key(domain))
    }

    /// Domain that the current principal granted a switch, if known here.
    pub(super) fn domain_of(&self, name: Wwnn) -> Option<u8> {
        self.granted.iter().find(|(_, owner)| **owner == name).map(|(&domain, _)| domain)
    }

    /// All domains granted to a switch; a gateway may have several.
    fn domains_of(&self, name: Wwnn) -> Vec<u8> {
        self.granted.iter().filter(|(_, owner)| **owner == name).map(|(&domain, _)| domain).collect()
    }

    /// Reply to a request for domains, if the switch already has as many.
    pub(super) fn held(&self, name: Wwnn, requested: &[u8]) -> Option<Vec<u8>> {
        let held = self.domains_of(name);
        (held.len() >= requested.len().max(1)).then(|| matched(requested, held).into_iter().flatten().collect())
    }

    /// Returns true if a domain has one owner here and another one in `records`. `own` is the
    /// domain of this switch with its name.
    pub(super) fn overlaps(&self, records: &Owners, own: Option<(u8, Wwnn)>) -> bool {
        records.iter().any(|(domain, owner)| {
            let here = self.granted.get(domain).or_else(|| self.previous.get(domain));
            here.is_some_and(|here| here != owner) || own.is_some_and(|(own, name)| own == *domain && name != *owner)
        })
    }

    /// Grants domains to a switch: the requested ones if they are free, otherwise others; all of
    /// them or none. Domains that the switch already has count. `kept` is a domain that no switch
    /// may receive.
    pub(super) fn grant(&mut self, name: Wwnn, requested: &[u8], kept: Option<u8>) -> Option<Grant> {
        let reserved = |domain: &u8| self.previous.get(domain).is_some_and(|owner| *owner != name);
        let mut domains = matched(requested, self.domains_of(name));
        let mut granted = self.granted.clone();
        for (domain, requested) in domains.iter_mut().zip(requested.iter().chain([&0])) {
            if domain.is_some() {
                continue;
            }
            let free = |domain: &u8| !granted.contains_key(domain) && kept != Some(*domain);
            let all = 1..=MAX_DOMAIN;
            let found = Some(*requested)
                .filter(|requested| all.contains(requested) && free(requested) && !reserved(requested))
                .or_else(|| all.clone().find(|domain| free(domain) && !reserved(domain)))
                .or_else(|| all.clone().find(free))?;
            granted.insert(found, name);
            *domain = Some(found);
        }
        debug_assert!(
            domains.iter().flatten().all(|domain| granted.get(domain) == Some(&name)),
            "a granted domain has another owner than {name}"
        );
        let changed = granted != self.granted;
        self.granted = granted;
        Some(Grant { domains: domains.into_iter().flatten().collect(), changed })
    }

    /// All domains for the other machines of the switch: the granted ones, and those reserved for
    /// switches that have not requested one yet.
    pub(super) fn published(&self) -> Owners {
        let names: BTreeSet<Wwnn> = self.granted.values().copied().collect();
        let mut domains = self.granted.clone();
        for (&domain, &owner) in self.previous.iter().filter(|(_, owner)| !names.contains(owner)) {
            domains.entry(domain).or_insert(owner);
        }
        domains
    }
}

/// Domains granted to a switch.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct Grant {
    pub(super) domains: Vec<u8>,
    /// The list of the fabric has changed.
    pub(super) changed: bool,
}

/// Assigns held domains to requested ones: the same domain if it is held, otherwise another held
/// one. An empty request matches any domain.
fn matched(requested: &[u8], mut held: Vec<u8>) -> Vec<Option<u8>> {
    let mut take = |requested: &u8| held.iter().position(|domain| domain == requested).map(|at| held.remove(at));
    let mut domains: Vec<Option<u8>> = match requested {
        [] => vec![None],
        requested => requested.iter().map(&mut take).collect(),
    };
    for domain in domains.iter_mut().filter(|domain| domain.is_none()) {
        if !held.is_empty() {
            *domain = Some(held.remove(0));
        }
    }
    domains
}
