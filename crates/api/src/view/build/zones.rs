//! Table of the effective zones and of their logged-in members.

use super::Shown;
use crate::view::{OnlineMember, ZoneDefault, ZoneMemberRow, ZoneRow, ZoneView};
use sanloom_fc::config::{Zone, ZoneMember};
use sanloom_fc::switch::NsEntry;
use std::collections::BTreeMap;

pub(super) fn zones(shown: &Shown<'_>) -> ZoneView {
    let Some(seen) = shown.database() else { return ZoneView::default() };
    let database = seen.machine.zone_database();
    let zoning = database.zoning();
    let mut online: BTreeMap<ZoneMember, Vec<&NsEntry>> = BTreeMap::new();
    for entry in seen.machine.services().name_server() {
        for key in entry.identity().keys() {
            online.entry(key).or_default().push(entry);
        }
    }
    ZoneView {
        effective: database.effective.as_ref().map(|effective| effective.name.clone()),
        default_zone: if zoning.default_is_open() { ZoneDefault::Open } else { ZoneDefault::Closed },
        zones: zoning.zones.iter().map(|zone| row(shown, zone, &online)).collect(),
    }
}

fn row(shown: &Shown<'_>, zone: &Zone, online: &BTreeMap<ZoneMember, Vec<&NsEntry>>) -> ZoneRow {
    let member = |member: &ZoneMember, principal| ZoneMemberRow {
        member: member.to_string(),
        principal,
        online: (online.get(member).into_iter().flatten())
            .map(|entry| OnlineMember {
                port_id: entry.port_id.to_string(),
                port_name: entry.port_name.to_string(),
                owner: shown.owner(entry.port_name),
            })
            .collect(),
    };
    let principals = zone.principals.iter().map(|name| member(name, true));
    let members = zone.members.iter().map(|name| member(name, false));
    ZoneRow { zone: zone.name.clone(), peer: zone.is_peer(), members: principals.chain(members).collect() }
}
