//! Management server: sessions, link incidents, adapters, and the configuration of the fabric.

use crate::switch_util::*;
use sanloom_fc::config::ZoneDefault;
use sanloom_fc::switch::{ElementInfo, FabricInfo, Input, PortInfo, PortKind};
use sanloom_scsi::time::Span;
use sanloom_wire::ct::{Ct, CtBody, Service};
use sanloom_wire::els::link_incident::{code, qualifier, registration};
use sanloom_wire::els::node_id::{SpecificData, TopologyData};
use sanloom_wire::els::{Els, LinkIncident, LsAcc, LsRjt, LsRjtExplanation, LsRjtReason, PortSpeed, Rnid, command};
use sanloom_wire::fcs::{AttachedPort, FcsAccept, FcsRequest, PortEntry};
use sanloom_wire::fdmi::{Attribute, FdmiAccept, FdmiRequest};
use sanloom_wire::ns::{NsAccept, NsRequest, one_type};
use sanloom_wire::{FcId, Frame, Message, Payload, Wwnn, Wwpn};

const SERVER: FcId = FcId::MANAGEMENT_SERVER;

fn lirr(rig: &mut Rig, id: FcId, function: u8) -> Result<LsAcc, LsRjt> {
    let port = rig.fib.port_of(id).unwrap();
    rig.exchange_els(port, id, SERVER, Els::Lirr { function, format: 0 })
}

/// Logs in on a port and registers for link incidents.
fn watcher(rig: &mut Rig, port: u16, name: u64, function: u8) -> FcId {
    let id = rig.flogi(port, name);
    rig.plogi_to(id, SERVER);
    assert_eq!(lirr(rig, id, function), Ok(LsAcc::Empty));
    id
}

/// The NPIV paper, Figure 6: the steps of a virtual machine before it may communicate with
/// its storage.
#[test]
fn a_virtual_port_goes_through_the_sequence_of_a_hypervisor() {
    let zones = zone_set(&[&[0x220, 0x550]], ZoneDefault::Closed);
    let mut rig = Rig::new(config(1, zones));
    let storage = rig.join(5, 0x550, 1);
    rig.flogi(1, 0x110);
    let id = rig.fdisc(1, 0x220).unwrap();
    assert_eq!(rig.exchange_els(1, id, FcId::FABRIC_CONTROLLER, Els::Scr { function: 3 }), Ok(LsAcc::Empty));
    rig.plogi_to(id, SERVER);
    assert_eq!(lirr(&mut rig, id, registration::CONDITIONAL), Ok(LsAcc::Empty));
    let logo = sanloom_wire::els::Logo { port_id: id, port_name: Wwpn(0x220) };
    assert_eq!(rig.exchange_els(1, id, SERVER, Els::Logo(logo)), Ok(LsAcc::Empty));
    rig.plogi(id);
    let rft = NsRequest::RftId { port_id: id, types: one_type(8) };
    assert_eq!(rig.ns(id, rft), Ok(NsAccept::Empty));
    let seen = rig.ns(id, NsRequest::GidFt { domain: 0, area: 0, fc4_type: 8 });
    assert_eq!(seen, Ok(NsAccept::PortIds(vec![id, storage])));
    assert!(rig.fib.permits(id, storage) && rig.fib.permits(storage, id) && !rig.fib.permits(id, FcId::new(0x010100)));
}

/// Reports sent since the last call.
fn reports(rig: &mut Rig) -> Vec<(FcId, u16, LinkIncident)> {
    let frames = std::mem::take(&mut rig.sent);
    let report = |(port, frame): (u16, Frame)| {
        assert_round_trip(&frame, None);
        assert_eq!((frame.header.s_id, rig.fib.port_of(frame.header.d_id)), (SERVER, Some(port)));
        match frame.payload {
            Payload::Typed(Message::Els(els)) => match *els {
                Els::Rlir(incident) => (frame.header.d_id, frame.header.ox_id, incident),
                other => panic!("{other:?}"),
            },
            other => panic!("{other:?}"),
        }
    };
    frames.into_iter().map(report).collect()
}

fn notified(rig: &mut Rig) -> Vec<FcId> {
    reports(rig).into_iter().map(|(id, ..)| id).collect()
}

/// Receivers of these reports, after each was accepted.
fn notified_and_answered(rig: &mut Rig) -> Vec<FcId> {
    let all = reports(rig);
    all.iter().for_each(|(id, ox_id, _)| rig.answer_to(*id, SERVER, *ox_id, Els::LsAcc(LsAcc::Empty)));
    all.into_iter().map(|(id, ..)| id).collect()
}

fn incident(rig: &mut Rig, port: u16, code: u8) {
    rig.sent.clear();
    rig.handle(Input::Incident { port, code });
}

#[test]
fn a_registration_needs_a_session_and_ends_with_the_fabric_login() {
    let mut rig = Rig::new(config(1, open()));
    let me = rig.flogi(1, 0x110);
    let login_required = LsRjt::new(LsRjtReason::UNABLE, LsRjtExplanation::N_PORT_LOGIN_REQUIRED);
    assert_eq!(lirr(&mut rig, me, registration::ALWAYS), Err(login_required));
    rig.plogi_to(me, SERVER);
    let wrong = LsRjt::new(LsRjtReason::LOGICAL_ERROR, LsRjtExplanation::NONE);
    assert_eq!(lirr(&mut rig, me, 3), Err(wrong));
    let unknown_format = rig.exchange_els(1, me, SERVER, Els::Lirr { function: registration::ALWAYS, format: 0x77 });
    assert_eq!(unknown_format, Err(LsRjt::new(LsRjtReason::UNABLE, LsRjtExplanation::NOT_SUPPORTED)));
    let logo = |rig: &mut Rig, me, from| {
        let logo = sanloom_wire::els::Logo { port_id: me, port_name: Wwpn(0x110) };
        assert_eq!(rig.exchange_els(1, me, from, Els::Logo(logo)), Ok(LsAcc::Empty));
    };
    // The end of the session does not end the registration.
    assert_eq!(lirr(&mut rig, me, registration::ALWAYS), Ok(LsAcc::Empty));
    logo(&mut rig, me, SERVER);
    incident(&mut rig, 1, code::BIT_ERROR_RATE);
    assert_eq!(notified_and_answered(&mut rig), [me]);
    let endings: [fn(&mut Rig, FcId); 3] = [
        |rig, me| assert_eq!(lirr(rig, me, registration::CLEAR), Ok(LsAcc::Empty)),
        |rig, _| _ = rig.flogi_again(1, 0x110),
        |rig, _| _ = rig.flogi(1, 0x110),
    ];
    for end in endings {
        rig.plogi_to(me, SERVER);
        assert_eq!(lirr(&mut rig, me, registration::ALWAYS), Ok(LsAcc::Empty));
        incident(&mut rig, 1, code::BIT_ERROR_RATE);
        assert_eq!(notified(&mut rig), [me]);
        end(&mut rig, me);
        incident(&mut rig, 1, code::BIT_ERROR_RATE);
        assert_eq!(notified(&mut rig), []);
        rig.wait(Span::from_secs(10));
        assert_eq!(notified(&mut rig), [], "nothing is repeated");
        assert_eq!(rig.switch.poll_timeout(), None);
    }
}

#[test]
fn a_report_names_both_ends_of_the_link() {
    let mut rig = Rig::new(config(1, open()));
    let me = watcher(&mut rig, 1, 0x110, registration::ALWAYS);
    rig.flogi(2, 0x220);
    incident(&mut rig, 2, code::LOSS_OF_SIGNAL);
    let [(to, ox_id, report)] = reports(&mut rig)[..] else { panic!() };
    let expected = LinkIncident {
        port_name: Wwpn(0x2002_0000_c0ff_ee02),
        node_name: SWITCH_NAME,
        port_type: 0x81,
        attached_port_name: Wwpn(0x220),
        attached_node_name: node_of(0x220),
        fabric_name: FABRIC_NAME,
        physical_port: 2,
        transaction: 1,
        qualifier: qualifier::SWITCH | qualifier::NOT_OPERATIONAL,
        code: code::LOSS_OF_SIGNAL,
        ..LinkIncident::default()
    };
    assert_eq!((to, report), (me, expected));
    rig.answer_to(me, SERVER, ox_id, Els::LsAcc(LsAcc::Empty));
    assert_eq!(rig.switch.poll_timeout(), None);
    rig.handle(Input::PortUp { port: 7, kind: PortKind::E });
    incident(&mut rig, 7, code::BIT_ERROR_RATE);
    let [(_, _, report)] = reports(&mut rig)[..] else { panic!() };
    assert_eq!((report.port_type, report.isl_port, report.attached_port_name), (0x84, 0x0107, Wwpn(0)));
    assert_eq!(report.qualifier, qualifier::SWITCH | qualifier::E_PORT | qualifier::DEGRADED);
    rig.handle(Input::Incident { port: 999, code: 3 });
    assert_eq!(rig.switch.counters().link_incidents, 2);
}

#[test]
fn incidents_stay_within_zones_and_reach_one_conditional_recipient() {
    let zones = zone_set(&[&[0x110, 0x220, 0x440, 0x550], &[0x330, 0x550]], ZoneDefault::Closed);
    let mut rig = Rig::new(config(1, zones));
    let conditional = [watcher(&mut rig, 1, 0x110, 1), watcher(&mut rig, 2, 0x220, 1)];
    let unrelated = watcher(&mut rig, 3, 0x330, 2);
    rig.flogi(4, 0x440);
    incident(&mut rig, 4, code::IMPLICIT);
    assert_eq!(notified_and_answered(&mut rig), [conditional[0]]);
    // A port is notified of its own link, even if no other port may be.
    incident(&mut rig, 3, code::IMPLICIT);
    assert_eq!(notified_and_answered(&mut rig), [unrelated]);
    let always = watcher(&mut rig, 5, 0x550, 2);
    incident(&mut rig, 4, code::IMPLICIT);
    assert_eq!(notified_and_answered(&mut rig), [always]);
    // No port is logged in there, so the incident concerns all registered ports.
    rig.up(9);
    incident(&mut rig, 9, code::NOT_OPERATIONAL);
    assert_eq!(notified_and_answered(&mut rig), [unrelated, always]);
}

#[test]
fn reports_are_repeated_given_up_and_bounded() {
    let mut rig = Rig::new(config(1, open()));
    let me = watcher(&mut rig, 1, 0x110, registration::ALWAYS);
    incident(&mut rig, 1, code::BIT_ERROR_RATE);
    rig.handle(Input::Incident { port: 1, code: code::IMPLICIT });
    let first = reports(&mut rig);
    assert_eq!(first.len(), 1, "one at a time");
    // LOGICAL BUSY does not end the attempt; the second attempt has its own exchange.
    rig.answer_to(me, SERVER, first[0].1, Els::LsRjt(LsRjt::new(LsRjtReason::LOGICAL_BUSY, LsRjtExplanation::NONE)));
    assert_eq!(notified(&mut rig), []);
    rig.wait(E_D_TOV);
    let second = reports(&mut rig);
    assert_eq!((second.len(), second[0].2), (1, first[0].2));
    assert_ne!(second[0].1, first[0].1);
    rig.wait(E_D_TOV);
    assert_eq!(reports(&mut rig)[0].2, first[0].2);
    rig.wait(E_D_TOV);
    let next = reports(&mut rig);
    assert_eq!((next.len(), next[0].2.code), (1, code::IMPLICIT));
    assert_eq!(rig.switch.counters().incident_reports_lost, 1);
    rig.answer_to(me, SERVER, next[0].1, Els::LsRjt(LsRjt::new(LsRjtReason::UNABLE, LsRjtExplanation::NONE)));
    assert_eq!(rig.switch.poll_timeout(), None);
    // A repeated answer is discarded.
    rig.answer_to(me, SERVER, next[0].1, Els::LsAcc(LsAcc::Empty));
    assert_eq!(rig.switch.counters().frames_discarded, 1);
    for _ in 0..1000 {
        rig.handle(Input::Incident { port: 1, code: code::BIT_ERROR_RATE });
    }
    assert_eq!(reports(&mut rig).len(), 1);
    assert_eq!(rig.switch.counters().incident_reports_lost, 1 + 1000 - 17);
    rig.down(1);
    rig.wait(Span::from_secs(10));
    assert_eq!((rig.sent.len(), rig.switch.poll_timeout()), (0, None));
}

#[test]
fn a_switch_reports_its_identity() {
    let mut rig = Rig::new(config(1, open()));
    let me = rig.flogi(3, 0x110);
    let mut exchange = |to, request| rig.exchange_els(3, me, to, request);
    let rnid = |rnid| Ok(LsAcc::Rnid(rnid));
    let specific = SpecificData::Topology(TopologyData {
        associated_type: 4,
        physical_port: 3,
        attached_nodes: 1,
        ..TopologyData::default()
    });
    let common = Some((Wwpn(0x2003_0000_c0ff_ee02), SWITCH_NAME));
    assert_eq!(exchange(FcId::F_PORT, Els::Rnid { format: 0xdf }), rnid(Rnid { format: 0xdf, common, specific }));
    let specific = SpecificData::Other(Box::default());
    let common = Some((Wwpn(0x2ffc_0000_c0ff_ee02), SWITCH_NAME));
    assert_eq!(exchange(FcId::NAME_SERVER, Els::Rnid { format: 0 }), rnid(Rnid { format: 0, common, specific }));
    let unable = |explanation| Err(LsRjt::new(LsRjtReason::UNABLE, explanation));
    assert_eq!(exchange(FcId::F_PORT, Els::Rnid { format: 7 }), unable(LsRjtExplanation::NOT_SUPPORTED));
    let unknown = PortSpeed { capabilities: 2, operating: 2 };
    assert_eq!(exchange(FcId::FABRIC_CONTROLLER, Els::Rpsc), Ok(LsAcc::Rpsc(vec![unknown])));
    let scan = Els::Other { command: command::SRL, body: Box::new([0; 7]) };
    assert_eq!(exchange(FcId::FABRIC_CONTROLLER, scan), unable(LsRjtExplanation::NONE));
    let statistics = Els::Other { command: command::RPS, body: Box::new([0; 15]) };
    let not_supported = LsRjt::new(LsRjtReason::NOT_SUPPORTED, LsRjtExplanation::NOT_SUPPORTED);
    assert_eq!(exchange(FcId::FABRIC_CONTROLLER, statistics), Err(not_supported));
    rig.handle(Input::FabricInfo(fabric_info().into()));
    let speed = PortSpeed { capabilities: 0xe800, operating: 0x0800 };
    assert_eq!(rig.exchange_els(3, me, FcId::F_PORT, Els::Rpsc), Ok(LsAcc::Rpsc(vec![speed])));
}

fn fdmi(rig: &mut Rig, id: FcId, request: FdmiRequest) -> Result<FdmiAccept, (u8, u8)> {
    match rig.management(id, Service::FDMI, CtBody::Fdmi(request))? {
        CtBody::FdmiAccept(accept) => Ok(accept),
        other => panic!("{other:?}"),
    }
}

fn attribute(attribute: u16, text: &[u8]) -> Attribute {
    Attribute { attribute, value: text.into() }
}

/// Registrations of an initiator after its login: the adapter with one port, and that port.
fn registers(rig: &mut Rig, id: FcId, name: u64) {
    let name = Wwpn(name);
    let attributes = vec![attribute(1, &[0; 8]), attribute(2, b"maker\0\0\0")];
    let rhba = FdmiRequest::Rhba { hba: name, ports: vec![name], attributes };
    assert_eq!(fdmi(rig, id, rhba), Ok(FdmiAccept::Empty));
    let rpa = FdmiRequest::Rpa { port: name, attributes: vec![attribute(5, b"sda\0")] };
    assert_eq!(fdmi(rig, id, rpa), Ok(FdmiAccept::Empty));
}

#[test]
fn adapters_are_registered_read_and_removed() {
    let mut rig = Rig::new(config(1, open()));
    let me = rig.flogi(1, 0x110);
    assert_eq!(fdmi(&mut rig, me, FdmiRequest::Grhl {}), Err((9, 0)), "without a session");
    rig.plogi_to(me, SERVER);
    let (hba, port, other) = (Wwpn(0x110), Wwpn(0x110), Wwpn(0x999));
    assert_eq!(fdmi(&mut rig, me, FdmiRequest::Grhl {}), Err((9, 0x10)));
    let rpa = FdmiRequest::Rpa { port, attributes: vec![] };
    assert_eq!(fdmi(&mut rig, me, rpa), Err((9, 0x20)), "of no adapter");
    registers(&mut rig, me, 0x110);
    // Initiators repeat this, because the accepts may have been lost.
    registers(&mut rig, me, 0x110);
    assert_eq!(fdmi(&mut rig, me, FdmiRequest::Grhl {}), Ok(FdmiAccept::Names(vec![hba])));
    assert_eq!(fdmi(&mut rig, me, FdmiRequest::Grpl { hba }), Ok(FdmiAccept::Names(vec![port])));
    let attributes = vec![attribute(1, &[0; 8]), attribute(2, b"maker\0\0\0")];
    let expected = FdmiAccept::Hba { ports: vec![port], attributes };
    assert_eq!(fdmi(&mut rig, me, FdmiRequest::Ghat { hba }), Ok(expected));
    let expected = FdmiAccept::Port(vec![attribute(5, b"sda\0")]);
    assert_eq!(fdmi(&mut rig, me, FdmiRequest::Gpat { port }), Ok(expected));
    for (request, why) in [
        (FdmiRequest::Ghat { hba: other }, 0x10),
        (FdmiRequest::Grpl { hba: other }, 0x10),
        (FdmiRequest::Rhat { hba: other, attributes: vec![] }, 0x10),
        (FdmiRequest::Rprt { hba: other, port, attributes: vec![] }, 0x10),
        (FdmiRequest::Dhba { hba: other }, 0x10),
        (FdmiRequest::Dhat { hba: other }, 0x10),
        (FdmiRequest::Gpat { port: other }, 0x20),
        (FdmiRequest::Dprt { port: other }, 0x20),
        (FdmiRequest::Dpa { port: other }, 0x20),
        (FdmiRequest::Rhat { hba, attributes: vec![attribute(1, b""), attribute(1, b"")] }, 0x11),
        (FdmiRequest::Rpa { port, attributes: vec![attribute(1, b""), attribute(1, b"")] }, 0x21),
    ] {
        assert_eq!(fdmi(&mut rig, me, request.clone()), Err((9, why)), "{request:?}");
    }
    let rprt = FdmiRequest::Rprt { hba, port: other, attributes: vec![attribute(7, b"")] };
    assert_eq!(fdmi(&mut rig, me, rprt), Ok(FdmiAccept::Empty));
    assert_eq!(fdmi(&mut rig, me, FdmiRequest::Grpl { hba }), Ok(FdmiAccept::Names(vec![port, other])));
    assert_eq!(fdmi(&mut rig, me, FdmiRequest::Dpa { port }), Ok(FdmiAccept::Empty));
    assert_eq!(fdmi(&mut rig, me, FdmiRequest::Gpat { port }), Ok(FdmiAccept::Port(vec![])));
    assert_eq!(fdmi(&mut rig, me, FdmiRequest::Dhat { hba }), Ok(FdmiAccept::Empty));
    assert_eq!(fdmi(&mut rig, me, FdmiRequest::Dprt { port }), Ok(FdmiAccept::Empty));
    let expected = FdmiAccept::Hba { ports: vec![other], attributes: vec![] };
    assert_eq!(fdmi(&mut rig, me, FdmiRequest::Ghat { hba }), Ok(expected));
    assert_eq!(fdmi(&mut rig, me, FdmiRequest::Dhba { hba }), Ok(FdmiAccept::Empty));
    assert_eq!(fdmi(&mut rig, me, FdmiRequest::Gpat { port: other }), Err((9, 0x20)));
    assert_eq!(fdmi(&mut rig, me, FdmiRequest::Grhl {}), Err((9, 0x10)));
}

#[test]
fn adapters_are_removed_with_their_port_and_no_other_port_can_change_them() {
    let mut rig = Rig::new(config(1, open()));
    let (me, other) = (rig.flogi(1, 0x110), rig.flogi(2, 0x220));
    let virtual_port = rig.fdisc(1, 0x111).unwrap();
    [me, other, virtual_port].into_iter().for_each(|id| rig.plogi_to(id, SERVER));
    // The other port registers all names of this port first, but they remain this port's.
    let (hba, port) = (Wwpn(0x110), Wwpn(0x110));
    let claim = FdmiRequest::Rhba { hba, ports: vec![port], attributes: vec![] };
    assert_eq!(fdmi(&mut rig, other, claim.clone()), Ok(FdmiAccept::Empty));
    let rpa = FdmiRequest::Rpa { port, attributes: vec![] };
    assert_eq!(fdmi(&mut rig, other, rpa.clone()), Ok(FdmiAccept::Empty));
    registers(&mut rig, me, 0x110);
    for request in [
        claim,
        rpa,
        FdmiRequest::Rhat { hba, attributes: vec![] },
        FdmiRequest::Rprt { hba, port: Wwpn(0x220), attributes: vec![] },
        FdmiRequest::Dhba { hba },
        FdmiRequest::Dhat { hba },
        FdmiRequest::Dprt { port },
        FdmiRequest::Dpa { port },
    ] {
        assert_eq!(fdmi(&mut rig, other, request.clone()), Err((9, 0xf0)), "{request:?}");
    }
    // A virtual port joins the adapter of its F_Port, and leaves it.
    let rprt = FdmiRequest::Rprt { hba, port: Wwpn(0x111), attributes: vec![] };
    assert_eq!(fdmi(&mut rig, virtual_port, rprt), Ok(FdmiAccept::Empty));
    let both = Ok(FdmiAccept::Names(vec![port, Wwpn(0x111)]));
    assert_eq!(fdmi(&mut rig, other, FdmiRequest::Grpl { hba }), both);
    let logo = sanloom_wire::els::Logo { port_id: virtual_port, port_name: Wwpn(0x111) };
    rig.exchange_els(1, virtual_port, FcId::F_PORT, Els::Logo(logo)).unwrap();
    assert_eq!(fdmi(&mut rig, other, FdmiRequest::Grpl { hba }), Ok(FdmiAccept::Names(vec![port])));
    rig.down(1);
    assert_eq!(fdmi(&mut rig, other, FdmiRequest::Grhl {}), Err((9, 0x10)));
    assert_eq!(fdmi(&mut rig, other, FdmiRequest::Gpat { port }), Err((9, 0x20)));
}

#[test]
fn a_port_is_shown_only_with_the_adapter_at_which_it_is_registered() {
    let mut rig = Rig::new(config(1, open()));
    let (me, other) = (rig.flogi(1, 0x110), rig.flogi(2, 0x220));
    [me, other].into_iter().for_each(|id| rig.plogi_to(id, SERVER));
    registers(&mut rig, me, 0x110);
    // The other host lists the port of the first one, and a port that registers nothing.
    let ports = vec![Wwpn(0x110), Wwpn(0x220), Wwpn(0x999)];
    let rhba = FdmiRequest::Rhba { hba: Wwpn(0x220), ports, attributes: vec![] };
    assert_eq!(fdmi(&mut rig, other, rhba), Ok(FdmiAccept::Empty));
    let shown: Vec<(Wwpn, Vec<(Wwpn, usize)>)> = rig
        .switch
        .adapters()
        .map(|adapter| {
            (adapter.hba, adapter.ports.iter().map(|(port, attributes)| (*port, attributes.len())).collect())
        })
        .collect();
    let expected = [(Wwpn(0x110), vec![(Wwpn(0x110), 1)]), (Wwpn(0x220), vec![(Wwpn(0x220), 0), (Wwpn(0x999), 0)])];
    assert_eq!(shown, expected);
}

#[test]
fn the_registrations_of_one_port_are_bounded() {
    let mut rig = Rig::new(config(1, open()));
    let me = rig.flogi(1, 0x110);
    rig.plogi_to(me, SERVER);
    let accepted = (0..20u64).filter(|number| {
        let rhba = FdmiRequest::Rhba { hba: Wwpn(0x110 + number), ports: vec![], attributes: vec![] };
        fdmi(&mut rig, me, rhba).is_ok()
    });
    assert_eq!(accepted.count(), 2);
    let accepted = (0..1000u64).filter(|number| {
        let rprt = FdmiRequest::Rprt { hba: Wwpn(0x110), port: Wwpn(0x1000 + number), attributes: vec![] };
        fdmi(&mut rig, me, rprt).is_ok()
    });
    assert_eq!(accepted.count(), 16);
    let ports = |count: u64| (0..count).map(Wwpn).collect();
    let list = |count| FdmiRequest::Rhba { hba: Wwpn(0x110), ports: ports(count), attributes: vec![] };
    assert_eq!(fdmi(&mut rig, me, list(257)), Err((9, 0xf2)));
    assert_eq!(fdmi(&mut rig, me, list(256)), Ok(FdmiAccept::Empty));
    let attributes = vec![attribute(1, &[0; 5000])];
    assert_eq!(fdmi(&mut rig, me, FdmiRequest::Rhat { hba: Wwpn(0x110), attributes }), Err((9, 0xf2)));
    // An answer longer than the requester accepts.
    let limited = Ct {
        max_or_residual_words: 8,
        ..Ct::request(Service::FDMI, CtBody::Fdmi(FdmiRequest::Grpl { hba: Wwpn(0x110) }))
    };
    let Message::Ct(reply) = rig.exchange(1, me, SERVER, Message::Ct(Box::new(limited))) else { panic!() };
    assert!(matches!(reply.body, CtBody::Reject(reject) if reject.reason.0 == 4), "{reply:?}");
}

#[test]
fn a_block_of_attributes_with_a_wrong_length_is_named_in_the_reject() {
    let mut rig = Rig::new(config(1, open()));
    let me = rig.flogi(1, 0x110);
    rig.plogi_to(me, SERVER);
    let (hba, port) = (Wwpn(0x110), Wwpn(0x110));
    let attributes = || vec![attribute(2, b"maker\0\0\0")];
    for (request, why) in [
        (FdmiRequest::Rhba { hba, ports: vec![port], attributes: attributes() }, 0x12),
        (FdmiRequest::Rhat { hba, attributes: attributes() }, 0x12),
        (FdmiRequest::Rprt { hba, port, attributes: attributes() }, 0x22),
        (FdmiRequest::Rpa { port, attributes: attributes() }, 0x22),
    ] {
        let message = Message::Ct(Box::new(Ct::request(Service::FDMI, CtBody::Fdmi(request))));
        let mut bytes = Vec::new();
        message.emit(&mut bytes);
        // The length of the attribute is less than that of its own header.
        let length = bytes.len() - 10;
        bytes[length..length + 2].copy_from_slice(&[0, 3]);
        rig.sent.clear();
        let frame = Frame { header: header(me, SERVER, &message), payload: Payload::Bytes(bytes.into()) };
        rig.offer_frame(1, frame);
        let [(1, reply)] = &rig.sent[..] else { panic!("{:?}", rig.sent) };
        let Payload::Typed(Message::Ct(reply)) = &reply.payload else { panic!("{reply:?}") };
        let CtBody::Reject(reject) = reply.body else { panic!("{reply:?}") };
        assert_eq!((reply.service, reject.reason.0, reject.explanation), (Service::FDMI, 9, why));
    }
}

fn fabric_info() -> FabricInfo {
    let port = |number: u32, name, port_type, attached| PortInfo {
        number,
        name: Wwpn(name),
        port_type,
        state: 1,
        attached,
        speed: PortSpeed { capabilities: 0xe800, operating: 0x0800 },
    };
    let element = |name, logical_name: &str, ports| ElementInfo {
        name: Wwnn(name),
        logical_name: logical_name.into(),
        vendor: "sanloom".into(),
        model: "switch".into(),
        release: "0.1".into(),
        management: vec!["http://10.0.0.1".into()],
        ports,
    };
    let own = element(0, "edge", vec![port(3, 0, 0x81, vec![]), port(7, 0, 0x84, vec![(Wwpn(0x7777), 0x84)])]);
    let other = element(0x2222, "core", vec![port(5, 0x2005, 0x81, vec![(Wwpn(0x550), 1)])]);
    FabricInfo { elements: [(1, own), (2, other)].into() }
}

fn fcs(rig: &mut Rig, id: FcId, request: FcsRequest) -> Result<FcsAccept, (u8, u8)> {
    match rig.management(id, Service::FABRIC_CONFIGURATION, CtBody::Fcs(request))? {
        CtBody::FcsAccept(accept) => Ok(accept),
        other => panic!("{other:?}"),
    }
}

#[test]
fn the_fabric_describes_itself() {
    let mut rig = Rig::new(config(1, open()));
    let me = rig.flogi(3, 0x110);
    rig.fdisc(3, 0x111).unwrap();
    rig.plogi_to(me, SERVER);
    let (own, other) = (SWITCH_NAME, Wwnn(0x2222));
    let [f_port, e_port, down] = [3, 7, 9].map(|port: u64| Wwpn(0x2000_0000_c0ff_ee02 | port << 48));
    // A switch without neighbours reports itself.
    assert_eq!(fcs(&mut rig, me, FcsRequest::Giel {}), Ok(FcsAccept::Elements(vec![(own, 1)])));
    assert_eq!(fcs(&mut rig, me, FcsRequest::Gieln { element: own }), Err((9, 0x15)));
    assert_eq!(fcs(&mut rig, me, FcsRequest::Gmal { element: own }), Err((9, 0x16)));
    assert_eq!(fcs(&mut rig, me, FcsRequest::Gieil { element: own }), Err((9, 0x17)));
    rig.handle(Input::FabricInfo(fabric_info().into()));
    rig.handle(Input::PortUp { port: 7, kind: PortKind::E });
    let text = |text: &str| Box::<[u8]>::from(text.as_bytes());
    let all = FcsAccept::Elements(vec![(own, 1), (other, 1)]);
    assert_eq!(fcs(&mut rig, me, FcsRequest::Giel {}), Ok(all));
    for (element, domain, name) in [(own, 1, "edge"), (other, 2, "core")] {
        let information = FcsAccept::Information(vec![text("sanloom"), text("switch"), text("0.1")]);
        for (request, accept) in [
            (FcsRequest::Giet { element }, FcsAccept::ElementType(1)),
            (FcsRequest::Gdid { element }, FcsAccept::DomainId(domain)),
            (FcsRequest::Gmid { element }, FcsAccept::ManagementId(FcId::domain_controller(domain))),
            (FcsRequest::Gfn { element }, FcsAccept::FabricName(FABRIC_NAME)),
            (FcsRequest::Gieln { element }, FcsAccept::LogicalName(text(name))),
            (FcsRequest::Gmal { element }, FcsAccept::ManagementAddresses(vec![text("http://10.0.0.1")])),
            (FcsRequest::Gieil { element }, information),
        ] {
            assert_eq!(fcs(&mut rig, me, request), Ok(accept));
        }
    }
    let Ok(FcsAccept::Ports(ports)) = fcs(&mut rig, me, FcsRequest::Gpl { element: own }) else { panic!() };
    let entry = |name, port_type| PortEntry { name, module: 1, transmitter: 1, port_type };
    assert_eq!(ports.len(), 300);
    assert_eq!([ports[3], ports[7], ports[9]], [entry(f_port, 0x81), entry(e_port, 0x84), entry(down, 0)]);
    let ports = FcsAccept::Ports(vec![entry(Wwpn(0x2005), 0x81)]);
    assert_eq!(fcs(&mut rig, me, FcsRequest::Gpl { element: other }), Ok(ports));
    let attached = |names: &[(u64, u8)]| {
        let port = |(name, port_type): &(u64, u8)| AttachedPort { name: Wwpn(*name), flags: 0, port_type: *port_type };
        Ok(FcsAccept::AttachedPorts(names.iter().map(port).collect()))
    };
    for (port, number, port_type, state, at_the_other_end) in [
        (f_port, 3, 0x81, 1, attached(&[(0x110, 1), (0x111, 1)])),
        (e_port, 7, 0x84, 1, attached(&[(0x7777, 0x84)])),
        (down, 9, 0, 2, Err((9, 0x34))),
        (Wwpn(0x2005), 5, 0x81, 1, attached(&[(0x550, 1)])),
    ] {
        assert_eq!(fcs(&mut rig, me, FcsRequest::Gpt { port }), Ok(FcsAccept::PortType(port_type)));
        assert_eq!(fcs(&mut rig, me, FcsRequest::Gppn { port }), Ok(FcsAccept::PhysicalNumber(number)));
        assert_eq!(fcs(&mut rig, me, FcsRequest::Gps { port }), Ok(FcsAccept::PortState { port_type, state }));
        assert_eq!(fcs(&mut rig, me, FcsRequest::Gapnl { port }), at_the_other_end);
    }
    for request in [FcsRequest::Gdid { element: Wwnn(1) }, FcsRequest::Gpl { element: Wwnn(1) }] {
        assert_eq!(fcs(&mut rig, me, request), Err((9, 1)));
    }
    assert_eq!(fcs(&mut rig, me, FcsRequest::Gps { port: Wwpn(1) }), Err((9, 1)));
}

#[test]
fn absent_services_reject_requests() {
    let mut rig = Rig::new(config(1, open()));
    let me = rig.flogi(3, 0x110);
    rig.plogi_to(me, SERVER);
    let request = || CtBody::Other { command: 0x0291, body: Box::new([0; 300]) };
    for service in [
        Service::FABRIC_CONFIGURATION,
        Service::UNZONED_NAME_SERVER,
        Service::FDMI,
        Service::APPLICATION_SERVER,
        Service::new(0xfa, 0x77),
    ] {
        assert_eq!(rig.management(me, service, request()), Err((0x0b, 0)), "{service:?}");
    }
}
