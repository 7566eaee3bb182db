//! Basic requests of the zone server: answers from the database, refusals with their explanations,
//! and changes.

use sanloom_fc::config::{Zone, ZoneMember};
use sanloom_fc::zoning::requests::{Answer, answer, reject_of};
use sanloom_fc::zoning::server::{ChangeFailure, ZoneChange};
use sanloom_fc::zoning::{EffectiveZones, ObjectKind, ZoneDatabase, ZoneDefinition, ZoneLimits, ZoneProblem};
use sanloom_wire::ct::CtReason;
use sanloom_wire::fzs::{FzsAccept, FzsMember, FzsRequest, FzsZone, FzsZoneSet, capability, explanation};
use sanloom_wire::{FcId, Wwnn, Wwpn};
use std::sync::Arc;

const HOST: Wwpn = Wwpn(0x2100_0024_ff00_0001);
const DISK: Wwpn = Wwpn(0x5000_0972_0800_0001);

fn name(text: &str) -> Box<[u8]> {
    text.as_bytes().into()
}

/// Zone set `day` in force, with the zone `db` of host and disk; the disk is an alias.
fn database() -> ZoneDatabase {
    let mut database = ZoneDatabase::default();
    let defined = Arc::make_mut(&mut database.defined);
    defined.aliases.insert("disks".to_owned(), vec![ZoneMember::PortName(DISK)]);
    let host = sanloom_fc::zoning::MemberRef::Member(ZoneMember::PortName(HOST));
    let disks = sanloom_fc::zoning::MemberRef::Alias("disks".to_owned());
    defined.zones.insert("db".to_owned(), ZoneDefinition { members: vec![host, disks], principals: vec![] });
    defined.configs.insert("day".to_owned(), vec!["db".to_owned()]);
    let members = vec![ZoneMember::PortName(HOST), ZoneMember::PortName(DISK)];
    let zones = vec![Zone { name: "db".to_owned(), members, principals: vec![] }];
    database.effective = Some(Arc::new(EffectiveZones { name: "day".to_owned(), zones }));
    database
}

fn members() -> Vec<FzsMember> {
    vec![FzsMember::PortName(HOST), FzsMember::PortName(DISK)]
}

fn day() -> FzsZoneSet {
    FzsZoneSet { name: name("day"), zones: vec![FzsZone { name: name("db"), members: members() }] }
}

#[test]
fn queries_are_answered_from_the_database() {
    let bits = capability::SOFT_ZONES | capability::HARD_ZONES | capability::ZONE_SET_DATABASE;
    for (request, accept) in [
        (FzsRequest::Gzc, FzsAccept::Capabilities { bits, vendor: 0 }),
        (FzsRequest::Gest, FzsAccept::State { bits: capability::SOFT_ENFORCED | capability::HARD_ENFORCED, vendor: 0 }),
        (FzsRequest::Gzsn, FzsAccept::Names(vec![(name("day"), 1)])),
        (FzsRequest::Gzd { zone_set: name("day") }, FzsAccept::Names(vec![(name("db"), 2)])),
        (FzsRequest::Gzm { zone: name("db") }, FzsAccept::Members(members())),
        (FzsRequest::Gazs, FzsAccept::ZoneSet(day())),
        (FzsRequest::Gzs { zone_set: name("day") }, FzsAccept::ZoneSet(day())),
    ] {
        assert_eq!(answer(&request, &database(), true), Answer::Accept(accept), "{request:?}");
    }
    let soft = FzsAccept::State { bits: capability::SOFT_ENFORCED, vendor: 0 };
    assert_eq!(answer(&FzsRequest::Gest, &database(), false), Answer::Accept(soft));
}

#[test]
fn rejects_name_the_unknown_object() {
    let empty = ZoneDatabase::default();
    let odd = vec![FzsMember::Other { kind: 0xe1, id: [0; 8] }];
    let bad_name = FzsZoneSet { name: name("9"), zones: vec![] };
    let taken = FzsZone { name: name("db"), members: vec![FzsMember::FcId(FcId::new(0x010203))] };
    for (request, database, expected) in [
        (FzsRequest::Gazs, &empty, explanation::NO_ACTIVE_ZONE_SET),
        (FzsRequest::Dzs, &empty, explanation::NO_ACTIVE_ZONE_SET),
        (FzsRequest::Gzd { zone_set: name("day") }, &empty, explanation::UNKNOWN_ZONE_SET),
        (FzsRequest::Gzs { zone_set: Box::new([0xff]) }, &empty, explanation::UNKNOWN_ZONE_SET),
        (FzsRequest::Azs { zone_set: name("night") }, &database(), explanation::UNKNOWN_ZONE_SET),
        (FzsRequest::Rzs { zone_set: name("night") }, &database(), explanation::UNKNOWN_ZONE_SET),
        (FzsRequest::Gzm { zone: name("db") }, &empty, explanation::UNKNOWN_ZONE),
        (FzsRequest::Azd { zone_set: name("day"), zone: name("web") }, &database(), explanation::UNKNOWN_ZONE),
        (FzsRequest::Azm { zone: name("db"), members: odd }, &database(), explanation::UNKNOWN_MEMBER_TYPE),
        (FzsRequest::Azsd { zone_set: bad_name }, &database(), explanation::INVALID_ZONE_SET),
        (
            FzsRequest::Adzs { zone_set: FzsZoneSet { name: name("night"), zones: vec![taken] } },
            &database(),
            explanation::INVALID_ZONE_SET,
        ),
    ] {
        let Answer::Reject(reject) = answer(&request, database, true) else { panic!("{request:?} is refused") };
        assert_eq!((reject.reason, reject.explanation), (CtReason::UNABLE, expected), "{request:?}");
    }
}

/// Applies the change of a request to the database.
fn changed(request: &FzsRequest, before: &ZoneDatabase) -> Result<ZoneDatabase, Vec<ZoneProblem>> {
    let Answer::Change(change) = answer(request, before, true) else { panic!("{request:?} changes something") };
    change.outcome(before, &ZoneLimits::default())
}

#[test]
fn changes_become_edits_of_the_database() {
    let node = FzsMember::NodeName(Wwnn(0x2000_0024_ff00_0001));
    let web = FzsZone { name: name("web"), members: vec![node, FzsMember::DomainPort { domain: 2, port: 7 }] };
    let night = FzsZoneSet { name: name("night"), zones: vec![web.clone()] };

    let direct = changed(&FzsRequest::Azsd { zone_set: night.clone() }, &database()).unwrap();
    let effective = direct.effective.as_ref().unwrap();
    assert_eq!((effective.name.as_str(), effective.zones.len()), ("night", 1));
    assert_eq!(direct.defined, database().defined, "a directly activated zone set is not stored");
    assert_eq!(
        answer(&FzsRequest::Gzm { zone: name("web") }, &direct, true),
        Answer::Accept(FzsAccept::Members(web.members))
    );

    let stored = changed(&FzsRequest::Adzs { zone_set: night.clone() }, &database()).unwrap();
    assert_eq!((stored.defined.configs.len(), stored.defined.zones.len()), (2, 2));
    assert_eq!(stored.effective, database().effective);
    assert_eq!(changed(&FzsRequest::Adzs { zone_set: night }, &stored), Ok(stored.clone()), "the same set once more");
    let active = changed(&FzsRequest::Azs { zone_set: name("night") }, &stored).unwrap();
    assert_eq!(active.effective.as_ref().unwrap().name, "night");
    assert_eq!(changed(&FzsRequest::Dzs, &active).unwrap().effective, None);

    let both = changed(&FzsRequest::Azd { zone_set: name("day"), zone: name("web") }, &stored).unwrap();
    assert_eq!(both.defined.configs["day"], ["db", "web"]);
    assert_eq!(changed(&FzsRequest::Rzd { zone_set: name("day"), zone: name("web") }, &both), Ok(stored.clone()));
    let more = changed(&FzsRequest::Azm { zone: name("web"), members: members() }, &stored).unwrap();
    assert_eq!(more.defined.zones["web"].members.len(), 4);
    assert_eq!(changed(&FzsRequest::Rzm { zone: name("web"), members: members() }, &more), Ok(stored.clone()));
    let gone = changed(&FzsRequest::Rzs { zone_set: name("night") }, &stored).unwrap();
    assert_eq!(gone.defined.configs.len(), 1);
}

#[test]
fn failed_changes_become_rejects() {
    let not_found = |kind| ChangeFailure::Zones(ZoneProblem::NotFound { kind, name: "x".to_owned() });
    for (failure, reason, expected) in [
        (ChangeFailure::Busy { domain: Some(3) }, CtReason::LOGICAL_BUSY, explanation::NONE),
        (ChangeFailure::Zones(ZoneProblem::Stale), CtReason::LOGICAL_BUSY, explanation::NONE),
        (not_found(ObjectKind::Config), CtReason::UNABLE, explanation::UNKNOWN_ZONE_SET),
        (not_found(ObjectKind::Zone), CtReason::UNABLE, explanation::UNKNOWN_ZONE),
        (ChangeFailure::NotSupported, CtReason::UNABLE, explanation::ZONING_NOT_SUPPORTED),
        (ChangeFailure::NoAnswer { domain: 3 }, CtReason::UNABLE, explanation::NONE),
    ] {
        let reject = reject_of(&[failure]);
        assert_eq!((reject.reason, reject.explanation), (reason, expected));
    }
    let replaced = ZoneChange::Replace(database()).outcome(&ZoneDatabase::default(), &ZoneLimits::default());
    assert_eq!(replaced, Ok(database()));
}
