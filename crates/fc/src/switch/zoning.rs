//! Hard zoning: permissions in the forwarding table, kept up to date at login and logout.
//!
//! Permissions exist exactly for the pairs of known ports that share a zone and whose destination
//! is logged in at this switch. Therefore the permissions of a departing port follow from its
//! current zone-mates, and none have to be stored.

use super::context::Context;
use super::database::Database;
use super::zone_compare::Comparisons;
use crate::config::HardZoning;
use crate::fabric::{FibDelta, ZoneMembership, ZoneSet};
use sanloom_wire::FcId;

/// Enforcement of the effective zones by the forwarding table.
#[derive(Debug)]
pub(super) struct Enforcement {
    pub(super) method: HardZoning,
    pub(super) comparisons: Comparisons,
}

impl Enforcement {
    pub(super) fn new(method: HardZoning) -> Enforcement {
        Enforcement { method, comparisons: Comparisons::default() }
    }

    /// Returns true if the forwarding table enforces these zones.
    pub(super) fn applies_to(&self, zones: &ZoneSet) -> bool {
        !zones.permits_all() && self.method != HardZoning::Off
    }

    /// Grants the permissions between a port and its zone-mates. The port must be in the database.
    pub(super) fn permit(&mut self, cx: &mut Context<'_>, objects: &Database, id: FcId, membership: &ZoneMembership) {
        if !self.applies_to(objects.zones()) {
            return;
        }
        if !membership.is_zoned() && objects.zones().open_default() {
            cx.out.permission(FibDelta::JoinDefaultZone { id });
        }
        match self.method {
            HardZoning::Standard | HardZoning::Modified => self.compare_arrived(cx, objects, id, membership),
            HardZoning::ZoneMates => change_pairs(cx, objects, id, membership, true),
            HardZoning::Off => {}
        }
    }

    /// Revokes the permissions that [`permit`](Enforcement::permit) and later logins of zone-mates
    /// granted. `port` is the port of the login, or `None` for a port of another switch.
    pub(super) fn revoke(
        &mut self,
        cx: &mut Context<'_>,
        objects: &Database,
        id: FcId,
        membership: &ZoneMembership,
        port: Option<u16>,
    ) {
        if !self.applies_to(objects.zones()) {
            return;
        }
        if !membership.is_zoned() && objects.zones().open_default() {
            cx.out.permission(FibDelta::LeaveDefaultZone { id });
        }
        match self.method {
            HardZoning::Standard | HardZoning::Modified => self.compare_departed(cx, objects, id, port),
            HardZoning::ZoneMates => change_pairs(cx, objects, id, membership, false),
            HardZoning::Off => {}
        }
    }
}

/// Grants or revokes the permissions between a port and its current zone-mates.
fn change_pairs(cx: &mut Context<'_>, objects: &Database, id: FcId, membership: &ZoneMembership, permitted: bool) {
    if !membership.is_zoned() {
        return;
    }
    if !cx.identity.owns(id) {
        for mate in objects.local_mates(cx.logins, id, membership, &mut cx.out.work) {
            change_pair(cx, mate, id, permitted);
        }
        return;
    }
    let (mates, examined) = objects.zones().mates(membership);
    cx.out.work.zone_members += examined as u64;
    for mate in objects.ids_of(&mates).into_iter().filter(|mate| *mate != id) {
        change_pair(cx, id, mate, permitted);
    }
}

/// Grants or revokes the permissions between two ports, for each destination that is logged in at
/// this switch.
pub(super) fn change_pair(cx: &mut Context<'_>, a: FcId, b: FcId, permitted: bool) {
    for (s, d) in [(b, a), (a, b)] {
        if cx.identity.owns(d) {
            cx.out.permission(match permitted {
                true => FibDelta::Permit { s, d },
                false => FibDelta::Revoke { s, d },
            });
        }
    }
}
