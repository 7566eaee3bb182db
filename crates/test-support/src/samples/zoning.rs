//! Zoning objects, and the requests and accepts of the zone server: one of every kind, with the
//! command code that an accept needs. Wireshark decodes names correctly in SW_ILS if they are whole
//! words, and in the zone server if they need fill bytes.

use super::{HOST, HOST_PORT, STORAGE_PORT};
use sanloom_wire::Wwnn;
use sanloom_wire::fzs::{FzsAccept, FzsMember, FzsRequest, FzsZone, FzsZoneSet, capability, command};
use sanloom_wire::sw_ils::{ActiveZoneSet, MemberList, ZoneMember, ZoneMemberId, ZoneObject, ZoneObjectType, ZoneSets};

pub fn zone_sets() -> ZoneSets {
    let list = |kind, name: &[u8], ids: Vec<ZoneMemberId>| {
        let members = ids.into_iter().map(ZoneMember::new).collect();
        MemberList { kind, protocol: 0, name: name.into(), members }
    };
    let resolved = list(
        ZoneObjectType::ZONE,
        b"zone_one",
        vec![
            ZoneMemberId::PortName(HOST_PORT),
            ZoneMemberId::DomainPort { domain: 1, port: 0x0102 },
            ZoneMemberId::FcId(HOST),
        ],
    );
    let by_alias = list(ZoneObjectType::ZONE, b"zone_two", vec![ZoneMemberId::Alias((*b"db_array").into())]);
    let alias = list(ZoneObjectType::ALIAS, b"db_array", vec![ZoneMemberId::PortName(STORAGE_PORT)]);
    let active = ActiveZoneSet { name: (*b"nightly1").into(), zones: vec![ZoneObject::List(resolved.clone())] };
    let full = vec![
        ZoneObject::Set { protocol: 0, name: (*b"nightly1").into(), zones: vec![resolved, by_alias] },
        ZoneObject::List(alias),
    ];
    ZoneSets::new(Some(active), Some(full))
}

fn zone_set() -> FzsZoneSet {
    let zones = vec![FzsZone { name: (*b"zone_a").into(), members: members() }];
    FzsZoneSet { name: (*b"nights").into(), zones }
}

fn members() -> Vec<FzsMember> {
    vec![
        FzsMember::PortName(HOST_PORT),
        FzsMember::DomainPort { domain: 1, port: 0x0102 },
        FzsMember::FcId(HOST),
        FzsMember::NodeName(Wwnn(0x2000_0024_ff00_0001)),
        FzsMember::Other { kind: 0x99, id: [1, 2, 3, 4, 5, 6, 7, 8] },
    ]
}

pub fn requests() -> Vec<FzsRequest> {
    let zone_set_name = || Box::from(*b"nights");
    let zone_name = || Box::from(*b"zone_a");
    vec![
        FzsRequest::Gzc,
        FzsRequest::Gest,
        FzsRequest::Gzsn,
        FzsRequest::Gzd { zone_set: zone_set_name() },
        FzsRequest::Gzm { zone: zone_name() },
        FzsRequest::Gazs,
        FzsRequest::Gzs { zone_set: zone_set_name() },
        FzsRequest::Adzs { zone_set: zone_set() },
        FzsRequest::Azsd { zone_set: zone_set() },
        FzsRequest::Azs { zone_set: zone_set_name() },
        FzsRequest::Dzs,
        FzsRequest::Azm { zone: zone_name(), members: members() },
        FzsRequest::Azd { zone_set: zone_set_name(), zone: zone_name() },
        FzsRequest::Rzm { zone: zone_name(), members: members() },
        FzsRequest::Rzd { zone_set: zone_set_name(), zone: zone_name() },
        FzsRequest::Rzs { zone_set: zone_set_name() },
    ]
}

pub fn accepts() -> Vec<(u16, FzsAccept)> {
    let names = || FzsAccept::Names(vec![((*b"nights").into(), 3), ((*b"db_array_1").into(), 0x0102)]);
    vec![
        (command::GZC, FzsAccept::Capabilities { bits: capability::HARD_ZONES | capability::SOFT_ZONES, vendor: 9 }),
        (command::GEST, FzsAccept::State { bits: capability::HARD_ENFORCED, vendor: 8 }),
        (command::GZSN, names()),
        (command::GZD, names()),
        (command::GZM, FzsAccept::Members(members())),
        (command::GAZS, FzsAccept::ZoneSet(zone_set())),
        (command::GZS, FzsAccept::ZoneSet(zone_set())),
        (command::AZSD, FzsAccept::Empty),
        (command::RZS, FzsAccept::Empty),
    ]
}
