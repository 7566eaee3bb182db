//! Name server: every query, every reject code, zoning, sizes.

use crate::switch_util::*;
use sanloom_fc::config::ZoneDefault;
use sanloom_fc::switch::MAX_DESCRIPTORS;
use sanloom_wire::ct::{Ct, CtBody};
use sanloom_wire::ns::{NsAccept, NsObject, NsRequest, feature, one_type};
use sanloom_wire::{FcId, Message, Wwnn, Wwpn};
use std::fmt::Write;

const NO_PORT_OF_TYPE: (u8, u8) = (0x09, 0x07);
const NODE_IP: [u8; 16] = [1; 16];
const PORT_IP: [u8; 16] = [2; 16];
const TARGET: u8 = 1;
const INITIATOR: u8 = 2;

fn gpn_ft() -> NsRequest {
    NsRequest::GpnFt { domain: 0, area: 0, fc4_type: 8 }
}

fn gid_ff(features: u8) -> NsRequest {
    NsRequest::GidFf { domain: 0, area: 0, features, fc4_type: 8 }
}

/// All requests that refer to the port `of`, its names, or its registrations.
fn requests(of: FcId, name: u64) -> Vec<(&'static str, NsRequest)> {
    let (domain, area, fc4_type) = (0, 0, 8);
    let node_name = node_of(name);
    vec![
        ("GA_NXT", NsRequest::GaNxt { port_id: FcId::new(of.to_u32() - 1) }),
        ("GPN_ID", NsRequest::GpnId { port_id: of }),
        ("GNN_ID", NsRequest::GnnId { port_id: of }),
        ("GCS_ID", NsRequest::GcsId { port_id: of }),
        ("GFT_ID", NsRequest::GftId { port_id: of }),
        ("GSPN_ID", NsRequest::GspnId { port_id: of }),
        ("GPT_ID", NsRequest::GptId { port_id: of }),
        ("GFPN_ID", NsRequest::GfpnId { port_id: of }),
        ("GIPP_ID", NsRequest::GippId { port_id: of }),
        ("GHA_ID", NsRequest::GhaId { port_id: of }),
        ("GFD_ID", NsRequest::GfdId { port_id: of, types: one_type(8) }),
        ("GFF_ID", NsRequest::GffId { port_id: of }),
        ("GID_PN", NsRequest::GidPn { port_name: Wwpn(name) }),
        ("GIPP_PN", NsRequest::GippPn { port_name: Wwpn(name) }),
        ("GID_NN", NsRequest::GidNn { node_name }),
        ("GPN_NN", NsRequest::GpnNn { node_name }),
        ("GIP_NN", NsRequest::GipNn { node_name }),
        ("GIPA_NN", NsRequest::GipaNn { node_name }),
        ("GSNN_NN", NsRequest::GsnnNn { node_name }),
        ("GNN_IP", NsRequest::GnnIp { ip: NODE_IP }),
        ("GIPA_IP", NsRequest::GipaIp { ip: NODE_IP }),
        ("GID_IPP", NsRequest::GidIpp { ip: PORT_IP }),
        ("GPN_IPP", NsRequest::GpnIpp { ip: PORT_IP }),
        ("GID_A", NsRequest::GidA { domain }),
        ("GID_A, domain 1", NsRequest::GidA { domain: 1 }),
        ("GID_A, domain 9", NsRequest::GidA { domain: 9 }),
        ("GID_FT", NsRequest::GidFt { domain, area, fc4_type }),
        ("GPN_FT", NsRequest::GpnFt { domain, area, fc4_type }),
        ("GNN_FT", NsRequest::GnnFt { domain, area, fc4_type }),
        ("GID_FT, domain 9", NsRequest::GidFt { domain: 9, area, fc4_type }),
        ("GID_PT N_Port", NsRequest::GidPt { port_type: 1, domain, area }),
        ("GID_PT Nx_Port", NsRequest::GidPt { port_type: 0x7f, domain, area }),
        ("GID_PT NL_Port", NsRequest::GidPt { port_type: 2, domain, area }),
        ("GID_FF target", gid_ff(TARGET)),
        ("GID_FF initiator", gid_ff(INITIATOR)),
        ("GID_FF both", gid_ff(TARGET | INITIATOR)),
    ]
}

/// Registrations that only hosts with loops or IP over Fibre Channel send.
fn rare_registrations(port_id: FcId, node_name: Wwnn) -> [NsRequest; 5] {
    [
        NsRequest::RippId { port_id, ip: PORT_IP },
        NsRequest::RhaId { port_id, hard_address: FcId::new(0xef) },
        NsRequest::RfdId { port_id, descriptors: vec![(8, (*b"fcp").into())] },
        NsRequest::RipNn { node_name, ip: NODE_IP },
        NsRequest::RipaNn { node_name, process_associator: *b"ipa-node" },
    ]
}

fn summary(answer: Result<NsAccept, (u8, u8)>) -> String {
    let ids = |ids: &[FcId]| ids.iter().map(FcId::to_string).collect::<Vec<_>>().join(" ");
    match answer {
        Err((reason, explanation)) => format!("reject {reason:02x}/{explanation:02x}"),
        Ok(NsAccept::PortIds(list)) => ids(&list),
        Ok(NsAccept::PortNames(list)) => {
            list.iter().map(|(id, name)| format!("{id} {:x}", name.0)).collect::<Vec<_>>().join(", ")
        }
        Ok(NsAccept::NodeNames(list)) => {
            list.iter().map(|(id, name)| format!("{id} {:x}", name.0)).collect::<Vec<_>>().join(", ")
        }
        Ok(NsAccept::SymbolicName(name)) => format!("\"{}\"", String::from_utf8_lossy(&name)),
        Ok(NsAccept::Types(types)) => format!("types {types:x?}"),
        Ok(NsAccept::Features(map)) => format!("features {:x} of FCP", feature(&map, 8)),
        Ok(NsAccept::Object(o)) => format!("object {} {:x}", o.port_id, o.port_name.0),
        Ok(other) => format!("{other:?}"),
    }
}

/// Snapshot table of the answers to a port in each situation about another port.
#[test]
fn every_query_in_every_situation() {
    let zones = zone_set(&[&[0x110, 0x220], &[0x330, 0x440]], ZoneDefault::Closed);
    let mut table = String::new();
    type Situation = (&'static str, fn(&mut Rig) -> (FcId, FcId, u64));
    let situations: [Situation; 4] = [
        ("a zone-mate that registered everything", |rig| {
            let (me, other) = (rig.join(1, 0x110, INITIATOR), rig.join(2, 0x220, TARGET));
            let node_name = node_of(0x220);
            rig.ns(other, NsRequest::RspnId { port_id: other, symbolic_name: (*b"port").into() }).unwrap();
            rig.ns(other, NsRequest::RsnnNn { node_name, symbolic_name: (*b"node").into() }).unwrap();
            rare_registrations(other, node_name).into_iter().for_each(|request| _ = rig.ns(other, request).unwrap());
            (me, other, 0x220)
        }),
        ("a zone-mate that only logged in", |rig| {
            let (me, other) = (rig.flogi(1, 0x110), rig.flogi(2, 0x220));
            rig.plogi(me);
            (me, other, 0x220)
        }),
        ("a port of another zone", |rig| {
            let (me, other) = (rig.flogi(1, 0x110), rig.join(3, 0x330, TARGET));
            rig.plogi(me);
            (me, other, 0x330)
        }),
        ("a zone-mate that is not there", |rig| {
            let me = rig.join(1, 0x110, INITIATOR);
            (me, id(2, 0), 0x220)
        }),
    ];
    for (situation, prepare) in situations {
        let mut rig = Rig::new(config(1, zones.clone()));
        let (me, other, name) = prepare(&mut rig);
        writeln!(table, "{me} asks about {other}, {situation}:").unwrap();
        for (what, request) in requests(other, name) {
            writeln!(table, "  {what:17} {}", summary(rig.ns(me, request))).unwrap();
        }
    }
    insta::assert_snapshot!(table);
}

#[test]
fn a_query_returns_an_object_as_it_was_registered() {
    let mut rig = Rig::new(config(1, open()));
    let me = rig.flogi(2, 0x110);
    rig.plogi(me);
    let mut types = [0; 8];
    (types[0], types[1], types[7]) = (0x100, 1, 0x8000_0000);
    let (node_name, port_name, text): (_, _, Box<[u8]>) = (Wwnn(0x77), Wwpn(0x110), [b'x'; 255].into());
    for request in [
        NsRequest::RpnId { port_id: me, port_name },
        NsRequest::RnnId { port_id: me, node_name },
        NsRequest::RcsId { port_id: me, classes: 0x0c },
        NsRequest::RftId { port_id: me, types },
        NsRequest::RspnId { port_id: me, symbolic_name: text.clone() },
        NsRequest::RptId { port_id: me, port_type: 2 },
        NsRequest::RffId { port_id: me, features: 0xf3, fc4_type: 8 },
        NsRequest::RffId { port_id: me, features: 0x02, fc4_type: 0x28 },
        NsRequest::RffId { port_id: me, features: 0x01, fc4_type: 0x20 },
        NsRequest::RsnnNn { node_name, symbolic_name: (*b"node").into() },
    ]
    .into_iter()
    .chain(rare_registrations(me, node_name))
    {
        assert_eq!(rig.ns(me, request), Ok(NsAccept::Empty));
    }
    let object = NsObject {
        port_type: 2,
        port_id: me,
        port_name,
        symbolic_port_name: text,
        node_name,
        symbolic_node_name: (*b"node").into(),
        process_associator: *b"ipa-node",
        node_ip: NODE_IP,
        classes: 0x0c,
        types,
        port_ip: PORT_IP,
        fabric_port_name: Wwpn(0x2002_0000_c0ff_ee02),
        hard_address: FcId::new(0xef),
    };
    let all = rig.ns(me, NsRequest::GaNxt { port_id: FcId::ZERO });
    assert_eq!(all, Ok(NsAccept::Object(Box::new(object))));
    let Ok(NsAccept::Features(map)) = rig.ns(me, NsRequest::GffId { port_id: me }) else { panic!() };
    let of = |fc4_type| feature(&map, fc4_type);
    assert_eq!((of(8), of(0x28), of(0x20), of(9)), (3, 2, 1, 0));
    // A feature of another type is found by it, and disappears when it is registered as empty.
    let nvme = NsRequest::GidFf { domain: 0, area: 0, features: 2, fc4_type: 0x28 };
    assert_eq!(rig.ns(me, nvme.clone()), Ok(NsAccept::PortIds(vec![me])));
    rig.ns(me, NsRequest::RffId { port_id: me, features: 0, fc4_type: 0x28 }).unwrap();
    assert_eq!(rig.ns(me, nvme), Err((0x09, 0x0f)));
}

#[test]
fn an_empty_registration_is_not_stored_and_takes_no_memory() {
    let mut rig = Rig::new(config(1, open()));
    let me = rig.flogi(2, 0x110);
    rig.plogi(me);
    let node_name = node_of(0x110);
    rare_registrations(me, node_name).into_iter().for_each(|request| _ = rig.ns(me, request).unwrap());
    let types = one_type(8).map(|word| word | 1);
    let descriptors = rig.ns(me, NsRequest::GfdId { port_id: me, types });
    let Ok(NsAccept::Descriptors(found)) = descriptors else { panic!("{descriptors:?}") };
    assert_eq!(found.iter().map(|text| text.len()).collect::<Vec<_>>(), [0, 3, 0, 0, 0, 0, 0, 0, 0]);
    for request in [
        NsRequest::RippId { port_id: me, ip: [0; 16] },
        NsRequest::RhaId { port_id: me, hard_address: FcId::ZERO },
        NsRequest::RfdId { port_id: me, descriptors: vec![] },
        NsRequest::RipNn { node_name, ip: [0; 16] },
        NsRequest::RipaNn { node_name, process_associator: [0; 8] },
    ] {
        assert_eq!(rig.ns(me, request), Ok(NsAccept::Empty));
    }
    assert!(rig.switch.name_server().all(|entry| entry.extra.is_none()));
    for (request, why) in [
        (NsRequest::GippId { port_id: me }, 0x0b),
        (NsRequest::GidIpp { ip: [0; 16] }, 0x0b),
        (NsRequest::GhaId { port_id: me }, 0x0d),
        (NsRequest::GfdId { port_id: me, types: one_type(8) }, 0x0e),
        (NsRequest::GipNn { node_name }, 0x05),
        (NsRequest::GnnIp { ip: [0; 16] }, 0x05),
        (NsRequest::GipaNn { node_name }, 0x06),
    ] {
        assert_eq!(rig.ns(me, request.clone()), Err((0x09, why)), "{request:?}");
    }
    // A port may have a bounded number of descriptors.
    let all = (0..=MAX_DESCRIPTORS as u8).map(|fc4_type| (fc4_type, (*b"x").into())).collect();
    assert_eq!(rig.ns(me, NsRequest::RfdId { port_id: me, descriptors: all }), Err((0x09, 0xf2)));
}

#[test]
fn only_the_owner_of_an_address_registers_for_it() {
    let mut rig = Rig::new(config(1, open()));
    let (me, other) = (rig.join(1, 0x110, INITIATOR), rig.join(2, 0x220, TARGET));
    let unrelated = id(9, 0);
    for (port_id, why) in [(other, 0x10), (unrelated, 0x11)] {
        for request in [
            NsRequest::RpnId { port_id, port_name: Wwpn(0x110) },
            NsRequest::RnnId { port_id, node_name: Wwnn(1) },
            NsRequest::RcsId { port_id, classes: 8 },
            NsRequest::RftId { port_id, types: [0; 8] },
            NsRequest::RspnId { port_id, symbolic_name: (*b"x").into() },
            NsRequest::RptId { port_id, port_type: 1 },
            NsRequest::RffId { port_id, features: 0, fc4_type: 8 },
            NsRequest::RippId { port_id, ip: PORT_IP },
            NsRequest::RhaId { port_id, hard_address: FcId::ZERO },
            NsRequest::RfdId { port_id, descriptors: vec![] },
            NsRequest::DaId { port_id },
        ] {
            assert_eq!(rig.ns(me, request.clone()), Err((0x09, why)), "{request:?}");
        }
    }
    let node_name = node_of(0x220);
    for request in [
        NsRequest::RsnnNn { node_name, symbolic_name: (*b"x").into() },
        NsRequest::RipNn { node_name, ip: NODE_IP },
        NsRequest::RipaNn { node_name, process_associator: [1; 8] },
    ] {
        assert_eq!(rig.ns(me, request), Err((0x09, 0x03)));
    }
    let rpn = NsRequest::RpnId { port_id: me, port_name: Wwpn(0x111) };
    assert_eq!(rig.ns(me, rpn), Err((0x09, 0x10)));
    assert_eq!(rig.ns(me, gid_ff(TARGET)), Ok(NsAccept::PortIds(vec![other])));
}

#[test]
fn a_port_that_deregisters_itself_is_not_listed_but_still_logged_in() {
    let mut rig = Rig::new(config(1, open()));
    let (me, other) = (rig.join(1, 0x110, INITIATOR), rig.join(2, 0x220, TARGET));
    assert_eq!(rig.ns(other, NsRequest::DaId { port_id: other }), Ok(NsAccept::Empty));
    assert_eq!(rig.ns(me, NsRequest::GpnId { port_id: other }), Err((0x09, 0x01)));
    assert_eq!(rig.ns(me, NsRequest::GidPn { port_name: Wwpn(0x220) }), Err((0x09, 0x02)));
    assert_eq!(rig.ns(me, gid_ff(TARGET)), Err((0x09, 0x0f)));
    assert_eq!(rig.fib.port_of(other), Some(2));
    // A new registration restores it.
    rig.ns(other, NsRequest::RftId { port_id: other, types: one_type(8) }).unwrap();
    assert_eq!(rig.ns(me, NsRequest::GpnId { port_id: other }), Ok(NsAccept::PortName(Wwpn(0x220))));
    // The only port of the fabric removes itself from the name server: the database is empty.
    let mut rig = Rig::new(config(1, open()));
    let me = rig.flogi(1, 0x110);
    rig.plogi(me);
    rig.ns(me, NsRequest::DaId { port_id: me }).unwrap();
    assert_eq!(rig.ns(me, NsRequest::GaNxt { port_id: me }), Err((0x09, 0x12)));
}

#[test]
fn get_all_next_visits_every_visible_port_once_and_wraps() {
    let zones = zone_set(&[&[0x110, 0x220, 0x440]], ZoneDefault::Closed);
    let mut rig = Rig::new(config(1, zones));
    let ids = [rig.flogi(1, 0x110), rig.flogi(2, 0x220), rig.flogi(3, 0x330), rig.flogi(4, 0x440)];
    rig.plogi(ids[0]);
    let mut at = FcId::ZERO;
    let mut seen = Vec::new();
    for _ in 0..4 {
        let Ok(NsAccept::Object(object)) = rig.ns(ids[0], NsRequest::GaNxt { port_id: at }) else { panic!() };
        at = object.port_id;
        seen.push(at);
    }
    assert_eq!(seen, [ids[0], ids[1], ids[3], ids[0]]);
    let last = NsRequest::GaNxt { port_id: FcId::BROADCAST };
    let Ok(NsAccept::Object(object)) = rig.ns(ids[0], last) else { panic!() };
    assert_eq!(object.port_id, ids[0]);
}

#[test]
fn ports_in_no_zone_see_each_other_only_if_the_default_is_open() {
    for (default, expected) in
        [(ZoneDefault::Open, Ok(vec![id(3, 0), id(4, 0)])), (ZoneDefault::Closed, Ok(vec![id(3, 0)]))]
    {
        let mut rig = Rig::new(config(1, zone_set(&[&[0x110, 0x220]], default)));
        rig.join(1, 0x110, TARGET);
        rig.join(2, 0x220, INITIATOR);
        let me = rig.join(3, 0x330, TARGET);
        rig.join(4, 0x440, TARGET);
        let seen = rig.ns(me, gid_ff(TARGET));
        assert_eq!(seen, expected.map(NsAccept::PortIds), "{default:?}");
        let zoned = rig.ns(id(2, 0), gid_ff(TARGET));
        assert_eq!(zoned, Ok(NsAccept::PortIds(vec![id(1, 0)])), "{default:?}");
    }
}

#[test]
fn scopes_are_domains_and_areas() {
    let mut rig = Rig::new(config(1, open()));
    let me = rig.join(1, 0x110, TARGET);
    let virtual_port = rig.fdisc(1, 0x111).unwrap();
    rig.take_part(virtual_port, TARGET);
    let other = rig.join(2, 0x220, TARGET);
    let all = [me, virtual_port, other];
    for (domain, area, expected) in [(0, 0, &all[..]), (1, 0, &all), (1, 1, &all[..2]), (1, 2, &all[2..])] {
        let expected = Ok(NsAccept::PortIds(expected.to_vec()));
        assert_eq!(rig.ns(me, NsRequest::GidFt { domain, area, fc4_type: 8 }), expected);
        assert_eq!(rig.ns(me, NsRequest::GidFf { domain, area, features: 1, fc4_type: 8 }), expected);
        assert_eq!(rig.ns(me, NsRequest::GidPt { port_type: 1, domain, area }), expected);
    }
    for request in [
        NsRequest::GpnFt { domain: 1, area: 3, fc4_type: 8 },
        NsRequest::GidFf { domain: 2, area: 0, features: 1, fc4_type: 8 },
        NsRequest::GidPt { port_type: 1, domain: 2, area: 1 },
    ] {
        assert_eq!(rig.ns(me, request), Err((0x09, 0x13)));
    }
}

/// Accept to a request with a limit of `max` words: the records, and the number of omitted words.
fn limited(rig: &mut Rig, me: FcId, request: NsRequest, max: u16) -> (CtBody, u16) {
    let ct = Ct { max_or_residual_words: max, ..Ct::ns_request(request) };
    let port = rig.fib.port_of(me).unwrap();
    match rig.exchange(port, me, FcId::NAME_SERVER, Message::Ct(Box::new(ct))) {
        Message::Ct(ct) => (ct.body, ct.max_or_residual_words),
        other => panic!("{other:?}"),
    }
}

#[test]
fn a_reply_is_cut_at_a_record_and_contains_the_residual() {
    let mut rig = Rig::new(config(1, open()));
    let ids: Vec<FcId> = (1..=5).map(|n| rig.join(n, 0x100 + 16 * u64::from(n), TARGET)).collect();
    for (max, records) in [(0, 5), (20, 5), (19, 4), (16, 4), (4, 1)] {
        let (body, residual) = limited(&mut rig, ids[0], gpn_ft(), max);
        let CtBody::NsAccept(NsAccept::PortNames(names)) = body else { panic!("{body:?}") };
        assert_eq!((names.len(), residual), (records, 20 - 4 * records as u16), "{max} words");
    }
    for (max, records) in [(5, 5), (2, 2)] {
        let (body, residual) = limited(&mut rig, ids[0], gid_ff(TARGET), max);
        let expected = NsAccept::PortIds(ids[..records].to_vec());
        assert_eq!((body, residual), (CtBody::NsAccept(expected), 5 - records as u16));
    }
    // Not even one record fits; and an answer that has no records.
    for (request, max) in [(gpn_ft(), 3), (NsRequest::GaNxt { port_id: FcId::ZERO }, 154)] {
        let (body, _) = limited(&mut rig, ids[0], request, max);
        let CtBody::Reject(reject) = body else { panic!("{body:?}") };
        assert_eq!((reject.reason.0, reject.explanation), (0x04, 0));
    }
    let (body, _) = limited(&mut rig, ids[0], NsRequest::GaNxt { port_id: FcId::ZERO }, 155);
    assert!(matches!(body, CtBody::NsAccept(NsAccept::Object(_))));
}

#[test]
fn a_request_needs_a_login_with_the_name_server() {
    let mut rig = Rig::new(config(1, open()));
    let me = rig.flogi(1, 0x110);
    let mut types = [0; 8];
    types[0] = 0x100;
    for request in [gpn_ft(), NsRequest::RftId { port_id: me, types }] {
        assert_eq!(rig.ns(me, request), Err((0x09, 0x10)));
    }
    rig.plogi(me);
    assert_eq!(rig.ns(me, gpn_ft()), Err(NO_PORT_OF_TYPE));
    // A new fabric login ends the session.
    rig.flogi_again(1, 0x110);
    assert_eq!(rig.ns(me, gpn_ft()), Err((0x09, 0x10)));
}

#[test]
fn an_answer_of_many_frames_is_one_message() {
    let mut rig = Rig::new(config(1, open()));
    let me = rig.join(1, 0x10_0000, TARGET);
    for n in 1..=255 {
        let id = rig.fdisc(1, 0x10_0000 + n).unwrap();
        rig.take_part(id, TARGET);
    }
    // `ask` encodes and parses it.
    let Ok(NsAccept::PortNames(names)) = rig.ns(me, gpn_ft()) else { panic!() };
    assert_eq!(names.len(), 256);
    assert!(names.is_sorted());
}
