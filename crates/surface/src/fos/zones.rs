//! Zones: the resources that a client reads.

use super::fault::Fault;
use super::room::Room;
use super::switches::{ADMIN, USER};
use super::tree::Element;
use crate::server::users::Role;
use sanloom_api::control::ZoneAction;
use sanloom_api::zone_database::{Database, Definition, Member};
use sanloom_api::zoning::ZoneStatus;

/// Text of a member as a switch shows it: a node name has no mark.
pub fn shown(member: &str) -> &str {
    member.strip_prefix("wwnn:").unwrap_or(member)
}

/// Text of a member of a definition.
pub fn text(member: &Member) -> &str {
    match member {
        Member::Port(text) => shown(text),
        Member::Alias { alias } => alias,
    }
}

/// Zones of the switch, and the database that the client sees: with its own pending edits, or the
/// committed one. It renews the client's transaction.
pub fn seen(room: &mut Room<'_>) -> Result<(ZoneStatus, Database), Fault> {
    let status = room.zone(None, ZoneAction::Show)?;
    let owner = status.transaction.as_ref().and_then(|open| open.owner.as_ref());
    let own = owner.is_some_and(|owner| owner.session == room.who.session);
    let database = status.working.clone().filter(|_| own).unwrap_or_else(|| status.committed.clone());
    Ok((status, database))
}

fn zone_type(leaves: &mut Vec<Element>, peer: bool) {
    leaves.push(Element::number("zone-type", u32::from(peer)));
    leaves.push(Element::text("zone-type-string", if peer { "user-created-peer-zone" } else { "zone" }));
}

/// Members and principals of a zone as one container.
pub fn entries(members: impl Iterator<Item = String>, principals: impl Iterator<Item = String>) -> Element {
    let leaf = |name: &str, text: String| Element { in_list: true, ..Element::text(name, text) };
    let members = members.map(|text| leaf("entry-name", text));
    let principals = principals.map(|text| leaf("principal-entry-name", text));
    Element::container("member-entry", members.chain(principals).collect())
}

fn zone(name: &str, zone: &Definition) -> Element {
    let mut leaves = vec![Element::text("zone-name", name)];
    zone_type(&mut leaves, !zone.principals.is_empty());
    let list = |members: &'_ [Member]| members.iter().map(|member| text(member).to_owned()).collect::<Vec<_>>();
    leaves.push(entries(list(&zone.members).into_iter(), list(&zone.principals).into_iter()));
    Element::entry("zone", leaves)
}

/// GET of `defined-configuration`.
pub fn defined(room: &mut Room<'_>) -> Result<Vec<Element>, Fault> {
    let (_, database) = seen(room)?;
    let mut children = Vec::new();
    for (name, zones) in &database.configs {
        let leaves = vec![Element::text("cfg-name", name), Element::texts("member-zone", "zone-name", zones)];
        children.push(Element::entry("cfg", leaves));
    }
    children.extend(database.zones.iter().map(|(name, definition)| zone(name, definition)));
    for (name, members) in &database.aliases {
        let members = members.iter().map(|member| shown(member));
        let leaves =
            vec![Element::text("alias-name", name), Element::texts("member-entry", "alias-entry-name", members)];
        children.push(Element::entry("alias", leaves));
    }
    Ok(vec![Element::container("defined-configuration", children)])
}

/// Limit of the zone database in bytes, as all interfaces of a switch show it. Clients read numbers
/// of 32 bits; a larger limit is none.
pub fn size_limit(status: &ZoneStatus) -> u64 {
    status.database_max_bytes.min(u32::MAX.into())
}

/// GET of `effective-configuration`.
pub fn effective(room: &mut Room<'_>) -> Result<Vec<Element>, Fault> {
    let (status, database) = seen(room)?;
    let committed = &status.committed;
    let mut children = Vec::new();
    if let Some(effective) = &committed.effective {
        children.push(Element::text("cfg-name", &effective.config));
    }
    let open = status.transaction.as_ref();
    let bytes = status.state.database_bytes;
    let limit = size_limit(&status);
    children.extend([
        Element::text("checksum", &status.checksum),
        Element::number("default-zone-access", u32::from(database.default_open)),
        Element::number("db-max", limit),
        Element::number("db-avail", limit.saturating_sub(bytes)),
        Element::number("db-committed", bytes),
        Element::number("db-transaction", open.map_or(0, |open| open.database_bytes)),
        Element::number("transaction-token", open.map_or(0, |open| open.token)),
        Element::number("db-chassis-wide-committed", bytes),
    ]);
    for zone in committed.effective.iter().flat_map(|effective| &effective.zones) {
        let mut leaves = vec![Element::text("zone-name", &zone.zone)];
        zone_type(&mut leaves, !zone.principals.is_empty());
        let list = |members: &[String]| members.iter().map(|member| shown(member).to_owned()).collect::<Vec<_>>();
        leaves.push(entries(list(&zone.members).into_iter(), list(&zone.principals).into_iter()));
        children.push(Element::entry("enabled-zone", leaves));
    }
    Ok(vec![Element::container("effective-configuration", children)])
}

/// GET of `fabric-lock`.
pub fn fabric_lock(room: &mut Room<'_>) -> Result<Vec<Element>, Fault> {
    let status = room.zone_status()?;
    let own = room.own()?.domain.unwrap_or_default();
    let domain = match (&status.transaction, status.locked_by) {
        (Some(_), _) => own,
        (None, Some(domain)) => domain,
        (None, None) => 0,
    };
    let open = status.transaction.as_ref();
    let mut children = vec![
        Element::number("lock-principal-domain-id", domain),
        Element::number("lock-principal-transaction-token", open.map_or(0, |open| open.token)),
        Element::number("timeout", open.and_then(|open| open.timeout_s).unwrap_or_default()),
        Element::number("remaining-time", open.and_then(|open| open.remaining_s).unwrap_or_default()),
    ];
    if let Some(owner) = open.and_then(|open| open.owner.as_ref()) {
        // A switch has other words for roles than the instance.
        let role = if owner.role == Role::View.word() { USER } else { ADMIN };
        children.extend([
            Element::text("client-role", role),
            Element::text("client-user-name", &owner.user),
            Element::text("client-ip-address", &owner.address),
            Element::text("client-interface", &owner.interface),
            Element::text("client-application-name", &owner.application),
        ]);
    }
    Ok(vec![Element::container("fabric-lock", children)])
}

/// Kinds of objects with their key leaves.
const KEYS: [(&str, &str); 4] =
    [("alias", "alias-name"), ("zone", "zone-name"), ("cfg", "cfg-name"), ("enabled-zone", "zone-name")];

/// Objects that a body names, of those that a client reads; everything if it names none. `rest`:
/// segments of the address after the object.
pub fn filter(found: Vec<Element>, rest: &[String], body: &[Element]) -> Vec<Element> {
    let inside: Vec<&Element> = (body.iter())
        .flat_map(|element| match element.name.ends_with("-configuration") {
            true => element.children().iter().collect(),
            false => vec![element],
        })
        .collect();
    let name = |element: &Element| {
        let (kind, key) = KEYS.iter().find(|(kind, _)| *kind == element.name)?;
        Some((*kind, element.leaf(key)?))
    };
    let wanted: Vec<(&str, String)> = inside.into_iter().filter_map(name).collect();
    let keep = |element: &Element| name(element).is_some_and(|own| wanted.contains(&own));
    match rest.len() {
        _ if wanted.is_empty() => found,
        0 => {
            let cut = |container: Element| {
                let children: Vec<Element> = container.children().iter().filter(|child| keep(child)).cloned().collect();
                (!children.is_empty()).then(|| Element::container(&container.name, children))
            };
            found.into_iter().filter_map(cut).collect()
        }
        1 => found.into_iter().filter(keep).collect(),
        _ => found,
    }
}
