//! Random zoning messages: MR, SFC and related messages, and requests to the zone server.

use super::{bytes, id, symbolic_name as name, wwnn, wwpn};
use proptest::collection::vec;
use proptest::option;
use proptest::prelude::*;
use sanloom_wire::Wwnn;
use sanloom_wire::fzs::{self, FzsAccept, FzsMember, FzsRequest, FzsZone, FzsZoneSet};
use sanloom_wire::sw_ils::{
    ActiveZoneSet, MemberList, Mrra, MrraAcc, MrraResponse, SfcOperation, SwAcc, SwIls, ZoneMember, ZoneMemberId,
    ZoneObject, ZoneObjectType, ZoneReason, ZoneReply, ZoneSets, ZoneStatus, command,
};
use std::sync::Arc;

pub fn link_services() -> impl Strategy<Value = (SwIls, Option<u8>)> {
    let answered =
        prop_oneof![Just(command::MR), Just(command::ACA), Just(command::RCA), Just(command::SFC), Just(command::UFC)];
    prop_oneof![
        4 => zone_sets().prop_map(|zones| (SwIls::Mr(zones), None)),
        4 => (any::<u8>(), zone_sets())
            .prop_map(|(code, zones)| (SwIls::Sfc { operation: SfcOperation(code), zones }, None)),
        1 => vec(any::<u8>(), 0..239).prop_map(|domains| (SwIls::Aca(domains), None)),
        1 => prop_oneof![Just(SwIls::Rca), Just(SwIls::Ufc)].prop_map(|ils| (ils, None)),
        1 => any::<(u32, u32, [u8; 8], [u8; 8])>().prop_map(|(revision, size_words, vendor, vendor_info)| {
            (SwIls::Mrra(Mrra { revision, size_words, vendor, vendor_info }), None)
        }),
        1 => any::<([u8; 8], u32, u32, u32)>().prop_map(|(vendor, response, max_words, wait_seconds)| {
            let accept = MrraAcc { vendor, response: MrraResponse(response), max_words, wait_seconds };
            (SwIls::SwAcc(SwAcc::Mrra(accept)), Some(command::MRRA))
        }),
        1 => (answered, any::<(u8, u8, u8)>()).prop_map(|(request, (status, reason, vendor))| {
            let reply = ZoneReply { status: ZoneStatus(status), reason: ZoneReason(reason), vendor };
            (reply.into(), Some(request))
        }),
    ]
}

fn zone_sets() -> impl Strategy<Value = Arc<ZoneSets>> {
    let active = (name(), vec(object(), 0..4)).prop_map(|(name, zones)| ActiveZoneSet { name, zones });
    (option::of(active), option::of(vec(object(), 0..4)))
        .prop_map(|(active, full)| Arc::new(ZoneSets::new(active, full)))
}

fn object() -> impl Strategy<Value = ZoneObject> {
    prop_oneof![
        list().prop_map(ZoneObject::List),
        (any::<u8>(), name(), vec(list(), 0..4)).prop_map(|(protocol, name, zones)| ZoneObject::Set {
            protocol,
            name,
            zones
        }),
    ]
}

fn list() -> impl Strategy<Value = MemberList> {
    let kind = (2..=255_u8).prop_map(ZoneObjectType);
    (kind, any::<u8>(), name(), vec(member(), 0..6)).prop_map(|(kind, protocol, name, members)| MemberList {
        kind,
        protocol,
        name,
        members,
    })
}

fn member() -> impl Strategy<Value = ZoneMember> {
    let node_name = any::<u64>().prop_map(|name| Wwnn(name | 1 << 60));
    let id = prop_oneof![
        wwpn().prop_map(ZoneMemberId::PortName),
        any::<(u8, u16)>().prop_map(|(domain, port)| ZoneMemberId::DomainPort { domain, port }),
        id().prop_map(ZoneMemberId::FcId),
        bytes(0..249).prop_map(ZoneMemberId::Alias),
        node_name.prop_map(ZoneMemberId::NodeName),
        (5..=255_u8, bytes(0..256)).prop_map(|(kind, id)| ZoneMemberId::Other { kind, id }),
        // Known types with invalid lengths.
        (0..=3_u8, bytes(9..20)).prop_map(|(kind, id)| ZoneMemberId::Other { kind, id }),
    ];
    (any::<u8>(), id).prop_map(|(flags, id)| ZoneMember { flags, id })
}

fn fzs_members() -> impl Strategy<Value = Vec<FzsMember>> {
    let member = prop_oneof![
        wwpn().prop_map(FzsMember::PortName),
        any::<(u8, u16)>().prop_map(|(domain, port)| FzsMember::DomainPort { domain, port }),
        id().prop_map(FzsMember::FcId),
        wwnn().prop_map(FzsMember::NodeName),
        (5..=255_u8, any::<[u8; 8]>()).prop_map(|(kind, id)| FzsMember::Other { kind, id }),
    ];
    vec(member, 0..6)
}

fn fzs_zone_set() -> impl Strategy<Value = FzsZoneSet> {
    let zone = (name(), fzs_members()).prop_map(|(name, members)| FzsZone { name, members });
    (name(), vec(zone, 0..4)).prop_map(|(name, zones)| FzsZoneSet { name, zones })
}

pub fn requests() -> impl Strategy<Value = FzsRequest> {
    prop_oneof![
        Just(FzsRequest::Gzc),
        Just(FzsRequest::Gest),
        Just(FzsRequest::Gzsn),
        Just(FzsRequest::Gazs),
        Just(FzsRequest::Dzs),
        name().prop_map(|zone_set| FzsRequest::Gzd { zone_set }),
        name().prop_map(|zone| FzsRequest::Gzm { zone }),
        name().prop_map(|zone_set| FzsRequest::Gzs { zone_set }),
        name().prop_map(|zone_set| FzsRequest::Azs { zone_set }),
        name().prop_map(|zone_set| FzsRequest::Rzs { zone_set }),
        fzs_zone_set().prop_map(|zone_set| FzsRequest::Adzs { zone_set }),
        fzs_zone_set().prop_map(|zone_set| FzsRequest::Azsd { zone_set }),
        (name(), fzs_members()).prop_map(|(zone, members)| FzsRequest::Azm { zone, members }),
        (name(), fzs_members()).prop_map(|(zone, members)| FzsRequest::Rzm { zone, members }),
        (name(), name()).prop_map(|(zone_set, zone)| FzsRequest::Azd { zone_set, zone }),
        (name(), name()).prop_map(|(zone_set, zone)| FzsRequest::Rzd { zone_set, zone }),
    ]
}

pub fn accepts() -> impl Strategy<Value = (u16, FzsAccept)> {
    use fzs::command::{ADZS, AZD, GAZS, GEST, GZC, GZD, GZM, GZS, GZSN, RZM, RZS};
    let names = vec((name(), any::<u32>()), 0..6).prop_map(FzsAccept::Names);
    prop_oneof![
        any::<(u8, u32)>().prop_map(|(bits, vendor)| (GZC, FzsAccept::Capabilities { bits, vendor })),
        any::<(u8, u32)>().prop_map(|(bits, vendor)| (GEST, FzsAccept::State { bits, vendor })),
        (prop_oneof![Just(GZSN), Just(GZD)], names),
        (Just(GZM), fzs_members().prop_map(FzsAccept::Members)),
        (prop_oneof![Just(GAZS), Just(GZS)], fzs_zone_set().prop_map(FzsAccept::ZoneSet)),
        (prop_oneof![Just(ADZS), Just(AZD), Just(RZM), Just(RZS)], Just(FzsAccept::Empty)),
    ]
}
