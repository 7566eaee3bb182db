//! Offsets and sizes of zoning messages, byte by byte. The bytes were written by hand from the
//! layouts, so a mistake common to `parse` and `emit` fails here.

use sanloom_wire::ct::{Ct, CtBody, CtReason, CtReject};
use sanloom_wire::fzs::{FzsAccept, FzsMember, FzsRequest, FzsZone, FzsZoneSet, explanation};
use sanloom_wire::sw_ils::{
    ActiveZoneSet, MemberList, Mrra, MrraAcc, MrraResponse, SfcOperation, SwAcc, SwIls, ZoneMember, ZoneMemberId,
    ZoneObject, ZoneObjectType, ZoneReason, ZoneReply, ZoneSets, ZoneStatus, command,
};
use sanloom_wire::{FcId, Message, ParseError, Wwnn, Wwpn};
use std::sync::Arc;

const PORT_NAME: Wwpn = Wwpn(0x2100_0024_ff00_0001);
const NODE_NAME: Wwnn = Wwnn(0x2000_0024_ff00_0001);

#[track_caller]
fn assert_bytes(message: impl Into<Message>, expected: &str) {
    let mut bytes = Vec::new();
    message.into().emit(&mut bytes);
    let hex: String = bytes.iter().map(|byte| format!("{byte:02x}")).collect();
    assert_eq!(hex, expected.replace(' ', ""));
}

fn bytes(digits: &str) -> Vec<u8> {
    let digits = digits.replace(' ', "");
    (0..digits.len()).step_by(2).map(|at| u8::from_str_radix(&digits[at..at + 2], 16).expect("hex")).collect()
}

/// A zone with one member of each kind.
fn zone() -> MemberList {
    let mut members: Vec<ZoneMember> = [
        ZoneMemberId::PortName(PORT_NAME),
        ZoneMemberId::DomainPort { domain: 7, port: 0x0102 },
        ZoneMemberId::FcId(FcId::new(0x010203)),
        ZoneMemberId::Alias((*b"disk1").into()),
        ZoneMemberId::NodeName(NODE_NAME),
        ZoneMemberId::Other { kind: 0xe2, id: [1, 2, 3, 4, 5].into() },
    ]
    .into_iter()
    .map(ZoneMember::new)
    .collect();
    members[0].flags = ZoneMember::PRINCIPAL;
    MemberList { kind: ZoneObjectType::ZONE, protocol: 8, name: (*b"db").into(), members }
}

const ZONE: &str = "02 08 0000 02000000 64620000 00000006 \
    01 00 01 08 21000024ff000001 \
    02 00 00 04 00 07 0102 \
    03 00 00 04 010203 00 \
    04 00 00 0c 05000000 6469736b 31000000 \
    04 00 00 08 20000024ff000001 \
    e2 00 00 05 01020304 05000000";

fn zone_sets() -> Arc<ZoneSets> {
    let set = ZoneObject::Set { protocol: 0, name: (*b"all").into(), zones: vec![zone()] };
    let alias = MemberList { kind: ZoneObjectType::ALIAS, protocol: 0, name: (*b"disk1").into(), members: vec![] };
    let active = ActiveZoneSet { name: (*b"all").into(), zones: vec![ZoneObject::List(zone())] };
    Arc::new(ZoneSets::new(Some(active), Some(vec![set, ZoneObject::List(alias)])))
}

/// Lengths in bytes: 8 name + 4 count + 84 zone; 4 count + 16 set head + 84 zone + 20 alias.
fn zone_sets_behind(head: &str) -> String {
    format!(
        "{head} 0060 03000000 616c6c00 00000001 {ZONE} \
         0000007c 00000002 01 00 0000 03000000 616c6c00 00000001 {ZONE} \
         03 00 0000 05000000 6469736b 31000000 00000000"
    )
}

#[test]
fn merge_and_stage_requests() {
    let zones = zone_sets();
    assert_bytes(SwIls::Mr(zones.clone()), &zone_sets_behind("22 00"));
    assert_bytes(SwIls::Sfc { operation: SfcOperation::ACTIVATE, zones: zones.clone() }, &zone_sets_behind("25 03"));
    let none = Arc::new(ZoneSets::default());
    assert_bytes(SwIls::Mr(none.clone()), "22 00 0000 00000000");
    assert_bytes(SwIls::Sfc { operation: SfcOperation::DEACTIVATE, zones: none }, "25 04 0000 00000000");
    let parsed = SwIls::parse(&bytes(&zone_sets_behind("22 00")), None);
    assert_eq!(parsed, Ok(SwIls::Mr(zones)));
}

#[test]
fn locks_and_replies() {
    assert_bytes(SwIls::Aca(vec![1, 0xef]), "23 00 0008 00000001 000000ef");
    assert_bytes(SwIls::Rca, "24 000000");
    assert_bytes(SwIls::Ufc, "26 000000");
    let busy = ZoneReply { status: ZoneStatus::BUSY, reason: ZoneReason::FABRIC_CHANGING, vendor: 9 };
    assert_bytes(SwIls::from(busy), "02 000000 00 01 06 09");
    for request in [command::MR, command::ACA, command::RCA, command::SFC, command::UFC] {
        let reply = SwIls::parse(&bytes("02 ffffff ff 02 0a 00"), Some(request));
        assert_eq!(reply, Ok(ZoneReply::new(ZoneStatus::FAILED, ZoneReason::CANNOT_MERGE).into()));
    }
}

#[test]
fn merge_resource_requests_have_the_layout_of_the_standard() {
    let mrra = Mrra { revision: 1, size_words: 0x0203, vendor: *b"sanloom ", vendor_info: [9; 8] };
    assert_bytes(SwIls::Mrra(mrra), "34 000000 00000001 00000203 73616e6c6f6f6d20 0909090909090909");
    let accept =
        MrraAcc { vendor: *b"sanloom ", response: MrraResponse::NOT_AVAILABLE, max_words: 0x0104, wait_seconds: 5 };
    let accept = SwIls::SwAcc(SwAcc::Mrra(accept));
    assert_bytes(accept, "02 000000 73616e6c6f6f6d20 00000002 00000104 00000005");
}

#[test]
fn wrong_lengths_are_rejected() {
    let good = zone_sets_behind("22 00");
    for (field, from, to) in [
        ("active zone set length", "0060 0300", "005c 0300"),
        ("active zone set length", "0060 0300", "ffff 0300"),
        ("full zone set length", "0000007c", "00000080"),
    ] {
        let error = SwIls::parse(&bytes(&good.replacen(from, to, 1)), None);
        assert!(matches!(error, Err(ParseError::Length { field: found, .. }) if found == field), "{error:?}");
    }
    let odd = SwIls::parse(&bytes("23 00 0006 00000001 0000"), None);
    assert!(matches!(odd, Err(ParseError::Length { .. })), "{odd:?}");
    // Four thousand million members are announced, but none follows.
    let greedy = SwIls::parse(&bytes("22 00 0018 01000000 61000000 00000001 02000000 00000000 ffffffff"), None);
    assert!(matches!(greedy, Err(ParseError::Truncated { .. })), "{greedy:?}");
}

#[test]
fn a_zone_set_within_a_zone_set_is_rejected() {
    let nested = "01000000 01000000 61000000 00000001".repeat(2);
    let error = SwIls::parse(&bytes(&format!("22 00 0000 00000024 00000001 {nested}")), None);
    assert!(matches!(error, Err(ParseError::Value { .. })), "{error:?}");
}

#[test]
fn an_active_set_may_be_longer_than_its_length_field_allows() {
    let many = vec![ZoneObject::List(zone()); 1000];
    let sets = ZoneSets::new(Some(ActiveZoneSet { name: (*b"all").into(), zones: many }), None);
    let message = SwIls::Mr(Arc::new(sets));
    let mut bytes = Vec::new();
    message.emit(&mut bytes);
    assert_eq!((&bytes[..4], bytes.len()), (&[0x22, 0, 0xff, 0xff][..], message.encoded_len()));
    assert_eq!(SwIls::parse(&bytes, None), Ok(message));
}

fn zone_set() -> FzsZoneSet {
    let members = vec![
        FzsMember::PortName(PORT_NAME),
        FzsMember::DomainPort { domain: 7, port: 0x0102 },
        FzsMember::FcId(FcId::new(0x010203)),
        FzsMember::NodeName(NODE_NAME),
        FzsMember::Other { kind: 0xe1, id: [1, 2, 3, 4, 5, 6, 7, 8] },
    ];
    FzsZoneSet { name: (*b"all").into(), zones: vec![FzsZone { name: (*b"disk1").into(), members }] }
}

const MEMBERS: &str = "00000005 01000000 21000024ff000001 02000000 00 07 0102 00000000 \
    03000000 010203 0000000000 04000000 20000024ff000001 e1000000 0102030405060708";
const ALL: &str = "03000000 616c6c00";
const DISK1: &str = "05000000 6469736b 31000000";

#[test]
fn zone_server_requests() {
    let all = || Box::from(*b"all");
    let disk1 = || Box::from(*b"disk1");
    let members = || zone_set().zones.remove(0).members;
    for (request, code, body) in [
        (FzsRequest::Gzc, "0100", String::new()),
        (FzsRequest::Gest, "0111", String::new()),
        (FzsRequest::Gzsn, "0112", String::new()),
        (FzsRequest::Gzd { zone_set: all() }, "0113", ALL.into()),
        (FzsRequest::Gzm { zone: disk1() }, "0114", DISK1.into()),
        (FzsRequest::Gazs, "0115", String::new()),
        (FzsRequest::Gzs { zone_set: all() }, "0116", ALL.into()),
        (FzsRequest::Adzs { zone_set: zone_set() }, "0200", format!("{ALL} 00000001 {DISK1} {MEMBERS}")),
        (FzsRequest::Azsd { zone_set: zone_set() }, "0201", format!("{ALL} 00000001 {DISK1} {MEMBERS}")),
        (FzsRequest::Azs { zone_set: all() }, "0202", ALL.into()),
        (FzsRequest::Dzs, "0203", String::new()),
        (FzsRequest::Azm { zone: disk1(), members: members() }, "0204", format!("{DISK1} {MEMBERS}")),
        (FzsRequest::Azd { zone_set: all(), zone: disk1() }, "0205", format!("{ALL} {DISK1}")),
        (FzsRequest::Rzm { zone: disk1(), members: members() }, "0300", format!("{DISK1} {MEMBERS}")),
        (FzsRequest::Rzd { zone_set: all(), zone: disk1() }, "0301", format!("{ALL} {DISK1}")),
        (FzsRequest::Rzs { zone_set: all() }, "0302", ALL.into()),
    ] {
        assert_bytes(Ct::fzs_request(request), &format!("01000000 fa030000 {code}0000 00000000 {body}"));
    }
}

#[test]
fn zone_server_replies() {
    let request = Ct::fzs_request(FzsRequest::Gzc);
    let members = zone_set().zones.remove(0).members;
    for (accept, body) in [
        (FzsAccept::Empty, String::new()),
        (FzsAccept::Capabilities { bits: 0xc0, vendor: 9 }, "c0000000 00000009".into()),
        (FzsAccept::State { bits: 0x40, vendor: 9 }, "40000000 00000009".into()),
        (FzsAccept::Names(vec![((*b"all").into(), 1)]), format!("00000001 {ALL} 00000001")),
        (FzsAccept::Members(members), MEMBERS.into()),
        (FzsAccept::ZoneSet(zone_set()), format!("{ALL} 00000001 {DISK1} {MEMBERS}")),
    ] {
        let reply = request.reply(CtBody::FzsAccept(accept));
        assert_bytes(reply, &format!("01000000 fa030000 80020000 00000000 {body}"));
    }
    let reject = CtReject { reason: CtReason::UNABLE, explanation: explanation::UNKNOWN_ZONE_SET, vendor: 0 };
    let reply = request.reply(CtBody::Reject(reject));
    assert_eq!(reply.to_string(), "FS_RJT: unable to perform command request, zone set name unknown");
    assert_bytes(reply, "01000000 fa030000 80010000 00 09 10 00");
}

#[test]
fn unknown_commands_of_the_zone_server_survive() {
    let request = bytes("01000000 fa030000 07770000 00000000 01020304");
    let parsed = Ct::parse(&request, None).expect("a CT unit");
    assert!(matches!(parsed.body, CtBody::Other { command: 0x0777, .. }));
    let mut again = Vec::new();
    parsed.emit(&mut again);
    assert_eq!(again, request);
}
