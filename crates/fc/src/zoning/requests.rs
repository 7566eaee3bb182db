//! Replies of the fabric zone server to N_Ports that use basic zoning (FC-GS, CT service FA/03):
//! [`answer`].

use super::database::{EffectiveZones, MemberRef, ObjectKind, ZoneDatabase, ZoneDefinition};
use super::problem::ZoneProblem;
use super::server::{ChangeFailure, ZoneChange};
use super::transaction::ZoneEdit;
use crate::config::ZoneLimits;
use crate::config::{Zone, ZoneMember};
use sanloom_wire::ct::{CtReason, CtReject};
use sanloom_wire::fzs::{FzsAccept, FzsMember, FzsRequest, FzsZone, FzsZoneSet, capability, explanation};
use std::sync::Arc;

/// Outcome of a request.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Answer {
    /// Accepted; answered from the database.
    Accept(FzsAccept),
    /// Rejected.
    Reject(CtReject),
    /// The fabric must change first. After success the reply is [`FzsAccept::Empty`], after a
    /// failure [`reject_of`].
    Change(ZoneChange),
}

/// Answers a request from the committed database. `hard`: hard zoning is enforced.
pub fn answer(request: &FzsRequest, database: &ZoneDatabase, hard: bool) -> Answer {
    match work_out(request, database, hard) {
        Ok(answer) => answer,
        Err(explanation) => Answer::Reject(CtReject::unable(explanation)),
    }
}

/// Reject code for a failed change.
pub fn reject_of(failures: &[ChangeFailure]) -> CtReject {
    match failures.first() {
        Some(ChangeFailure::Busy { .. } | ChangeFailure::Zones(ZoneProblem::Stale)) => {
            CtReject::new(CtReason::LOGICAL_BUSY, explanation::NONE)
        }
        Some(ChangeFailure::Zones(ZoneProblem::TooLarge { .. } | ZoneProblem::TooManyMembers { .. })) => {
            CtReject::unable(explanation::TOO_LARGE)
        }
        Some(ChangeFailure::Zones(ZoneProblem::NotFound { kind: ObjectKind::Config, .. })) => {
            CtReject::unable(explanation::UNKNOWN_ZONE_SET)
        }
        Some(ChangeFailure::Zones(ZoneProblem::NotFound { .. })) => CtReject::unable(explanation::UNKNOWN_ZONE),
        Some(ChangeFailure::Zones(_)) => CtReject::unable(explanation::INVALID_ZONE_SET),
        Some(ChangeFailure::NotSupported) => CtReject::unable(explanation::ZONING_NOT_SUPPORTED),
        _ => CtReject::unable(explanation::NONE),
    }
}

/// Computes the answer, or the explanation code of a reject.
fn work_out(request: &FzsRequest, database: &ZoneDatabase, hard: bool) -> Result<Answer, u8> {
    let defined = &database.defined;
    let if_hard = |bit| if hard { bit } else { 0 };
    let edits = |edits| Ok(Answer::Change(ZoneChange::Edits(edits)));
    let accept = |accept| Ok(Answer::Accept(accept));
    match request {
        FzsRequest::Gzc => {
            let bits = capability::SOFT_ZONES | capability::ZONE_SET_DATABASE | if_hard(capability::HARD_ZONES);
            accept(FzsAccept::Capabilities { bits, vendor: 0 })
        }
        FzsRequest::Gest => {
            let enforced = capability::SOFT_ENFORCED | if_hard(capability::HARD_ENFORCED);
            let bits = if database.effective.is_some() { enforced } else { 0 };
            accept(FzsAccept::State { bits, vendor: 0 })
        }
        FzsRequest::Gzsn => {
            let sets = defined.configs.iter().map(|(name, zones)| (name.as_bytes().into(), zones.len() as u32));
            accept(FzsAccept::Names(sets.collect()))
        }
        FzsRequest::Gzd { zone_set } => {
            let zones = resolved(database, zone_set)?;
            let names = zones.iter().map(|zone| (zone.name.as_bytes().into(), zone.all_members().count() as u32));
            accept(FzsAccept::Names(names.collect()))
        }
        FzsRequest::Gzm { zone } => accept(FzsAccept::Members(members_of(database, zone)?)),
        FzsRequest::Gazs => match &database.effective {
            Some(effective) => accept(FzsAccept::ZoneSet(zone_set(&effective.name, &effective.zones))),
            None => Err(explanation::NO_ACTIVE_ZONE_SET),
        },
        FzsRequest::Gzs { zone_set: name } => {
            let zones = resolved(database, name)?;
            accept(FzsAccept::ZoneSet(zone_set(config_name(database, name)?, &zones)))
        }
        FzsRequest::Adzs { zone_set } => edits(add_zone_set(database, zone_set)?),
        FzsRequest::Azsd { zone_set } => {
            let name = new_name(ObjectKind::Config, &zone_set.name)?;
            let zones = zone_set.zones.iter().map(|zone| {
                let name = new_name(ObjectKind::Zone, &zone.name)?;
                Ok(Zone { name, members: zone_members(&zone.members)?, principals: Vec::new() })
            });
            let zones = zones.collect::<Result<_, u8>>()?;
            Ok(Answer::Change(ZoneChange::Activate(Arc::new(EffectiveZones { name, zones }))))
        }
        FzsRequest::Azs { zone_set } => edits(vec![ZoneEdit::Enable(config_name(database, zone_set)?.to_owned())]),
        FzsRequest::Dzs if database.effective.is_none() => Err(explanation::NO_ACTIVE_ZONE_SET),
        FzsRequest::Dzs => edits(vec![ZoneEdit::Disable]),
        FzsRequest::Azm { zone, members } => {
            let (name, zone) = (zone_name(database, zone)?, definition(members)?);
            edits(vec![ZoneEdit::AddToZone { name, zone }])
        }
        FzsRequest::Rzm { zone, members } => {
            let (name, zone) = (zone_name(database, zone)?, definition(members)?);
            edits(vec![ZoneEdit::RemoveFromZone { name, zone }])
        }
        FzsRequest::Azd { zone_set, zone } => {
            let name = config_name(database, zone_set)?.to_owned();
            edits(vec![ZoneEdit::AddToConfig { name, zones: vec![zone_name(database, zone)?] }])
        }
        FzsRequest::Rzd { zone_set, zone } => {
            let name = config_name(database, zone_set)?.to_owned();
            edits(vec![ZoneEdit::RemoveFromConfig { name, zones: vec![zone_name(database, zone)?] }])
        }
        FzsRequest::Rzs { zone_set } => {
            let name = config_name(database, zone_set)?.to_owned();
            edits(vec![ZoneEdit::Delete { kind: ObjectKind::Config, name }])
        }
    }
}

/// Edits that define a zone set and its missing zones. An existing zone set of the same name is
/// replaced. If an existing zone of the same name has other members, the request is rejected,
/// because another zone set may use that zone.
fn add_zone_set(database: &ZoneDatabase, zone_set: &FzsZoneSet) -> Result<Vec<ZoneEdit>, u8> {
    let defined = &database.defined;
    let name = new_name(ObjectKind::Config, &zone_set.name)?;
    let mut edits = Vec::new();
    let mut zones = Vec::with_capacity(zone_set.zones.len());
    for zone in &zone_set.zones {
        let name = new_name(ObjectKind::Zone, &zone.name)?;
        let new = definition(&zone.members)?;
        match defined.zones.get(&name) {
            Some(known) if *known != new => return Err(explanation::INVALID_ZONE_SET),
            Some(_) => {}
            None => edits.push(ZoneEdit::CreateZone { name: name.clone(), zone: new }),
        }
        zones.push(name);
    }
    if defined.configs.contains_key(&name) {
        edits.push(ZoneEdit::Delete { kind: ObjectKind::Config, name: name.clone() });
    }
    edits.push(ZoneEdit::CreateConfig { name, zones });
    Ok(edits)
}

fn config_name<'d>(database: &'d ZoneDatabase, name: &[u8]) -> Result<&'d str, u8> {
    let name = std::str::from_utf8(name).map_err(|_| explanation::UNKNOWN_ZONE_SET)?;
    let known = database.defined.configs.get_key_value(name);
    known.map(|(name, _)| name.as_str()).ok_or(explanation::UNKNOWN_ZONE_SET)
}

fn zone_name(database: &ZoneDatabase, name: &[u8]) -> Result<String, u8> {
    let name = std::str::from_utf8(name).map_err(|_| explanation::UNKNOWN_ZONE)?;
    database.defined.zones.get_key_value(name).map(|(name, _)| name.clone()).ok_or(explanation::UNKNOWN_ZONE)
}

/// Checks the name of an object to be defined.
fn new_name(kind: ObjectKind, name: &[u8]) -> Result<String, u8> {
    let name = std::str::from_utf8(name).map_err(|_| explanation::INVALID_ZONE_SET)?;
    match ZoneLimits::default().check_name(kind, name) {
        Ok(()) => Ok(name.to_owned()),
        Err(_) => Err(explanation::INVALID_ZONE_SET),
    }
}

fn resolved(database: &ZoneDatabase, zone_set: &[u8]) -> Result<Vec<Zone>, u8> {
    let name = config_name(database, zone_set)?;
    database.resolve(name).map_err(|_| explanation::INVALID_ZONE_SET)
}

/// Members of a zone with aliases resolved. A defined zone takes precedence over an effective one.
fn members_of(database: &ZoneDatabase, name: &[u8]) -> Result<Vec<FzsMember>, u8> {
    let name = std::str::from_utf8(name).map_err(|_| explanation::UNKNOWN_ZONE)?;
    if let Some(zone) = database.defined.zones.get(name) {
        let mut members = Vec::new();
        for reference in zone.principals.iter().chain(&zone.members) {
            match reference {
                MemberRef::Member(member) => members.push(fzs_member(member)),
                MemberRef::Alias(alias) => {
                    members.extend(database.defined.aliases.get(alias).into_iter().flatten().map(fzs_member));
                }
            }
        }
        return Ok(members);
    }
    let in_force = database.effective.iter().flat_map(|effective| &effective.zones).find(|zone| zone.name == name);
    in_force.map(|zone| zone.all_members().map(fzs_member).collect()).ok_or(explanation::UNKNOWN_ZONE)
}

fn zone_set(name: &str, zones: &[Zone]) -> FzsZoneSet {
    let zone = |zone: &Zone| FzsZone {
        name: zone.name.as_bytes().into(),
        members: zone.all_members().map(fzs_member).collect(),
    };
    FzsZoneSet { name: name.as_bytes().into(), zones: zones.iter().map(zone).collect() }
}

fn fzs_member(member: &ZoneMember) -> FzsMember {
    match *member {
        ZoneMember::PortName(name) => FzsMember::PortName(name),
        ZoneMember::NodeName(name) => FzsMember::NodeName(name),
        ZoneMember::DomainPort { domain, port } => FzsMember::DomainPort { domain, port },
        ZoneMember::PortId(id) => FzsMember::FcId(id),
    }
}

fn definition(members: &[FzsMember]) -> Result<ZoneDefinition, u8> {
    let members = zone_members(members)?.into_iter().map(MemberRef::Member).collect();
    Ok(ZoneDefinition { members, principals: Vec::new() })
}

fn zone_members(members: &[FzsMember]) -> Result<Vec<ZoneMember>, u8> {
    let member = |member: &FzsMember| match *member {
        FzsMember::PortName(name) => Ok(ZoneMember::PortName(name)),
        FzsMember::NodeName(name) => Ok(ZoneMember::NodeName(name)),
        FzsMember::DomainPort { domain, port } => Ok(ZoneMember::DomainPort { domain, port }),
        FzsMember::FcId(id) => Ok(ZoneMember::PortId(id)),
        FzsMember::Other { .. } => Err(explanation::UNKNOWN_MEMBER_TYPE),
    };
    members.iter().map(member).collect()
}
