//! Requests of N_Ports to the management server that concern more than their own switch: changes of
//! zones through the zone server, the switches and ports of the fabric, and link incidents.

use super::{Bed, Frame, Header, Message, Payload, RCtl, config, switch_name, zoned};
use sanloom_fc::fabric_switch::{Event, FabricSwitchConfig, Input, Output};
use sanloom_fc::switch::port_name;
use sanloom_fc::zoning::ZoneDatabase;
use sanloom_fc::zoning::server::ZoneChange;
use sanloom_scsi::time::Span;
use sanloom_wire::bls::Bls;
use sanloom_wire::ct::{Ct, CtBody, CtReason, CtReject, Service};
use sanloom_wire::els::link_incident::{code, registration};
use sanloom_wire::els::{Els, LinkIncident, Logo, LsAcc, PortSpeed};
use sanloom_wire::fcs::{FcsAccept, FcsRequest, PortEntry, element_type, port_state};
use sanloom_wire::fzs::{FzsAccept, FzsMember, FzsRequest, FzsZone, FzsZoneSet, capability, explanation};
use sanloom_wire::ns::port_type;
use sanloom_wire::{FcId, Wwpn};

const SERVER: FcId = FcId::MANAGEMENT_SERVER;
const MANAGER: (usize, u16, u64) = (0, 5, 0xa);
const DISK: (usize, u16, u64) = (1, 6, 0xb);

/// Two switches of one fabric with the zone `old` of two N_Ports in force, and a manager with a
/// session.
fn fabric(change: impl Fn(&mut FabricSwitchConfig)) -> (Bed, FcId, FcId) {
    let mut configs: Vec<_> = (0..2).map(|n| config(n, Some(n as u8 + 1), &zoned(&[("old", &[0xa, 0xb])]))).collect();
    configs.iter_mut().for_each(change);
    let mut bed = Bed::new(1, configs);
    bed.connect((0, 1), (1, 0));
    bed.run(Span::from_secs(10));
    let [manager, disk] = [MANAGER, DISK].map(|(node, port, name)| bed.log_in(node, port, name));
    bed.send(0, 5, manager, SERVER, Message::Els(Box::new(Els::Plogi(super::login(0xa)))));
    bed.run(Span::from_secs(1));
    (bed, manager, disk)
}

/// Sends the bytes of a request to the zone server.
fn exchange(bed: &mut Bed, id: FcId, ox_id: u16, request: FzsRequest) {
    let message = Message::Ct(Box::new(Ct::fzs_request(request)));
    let mut bytes = Vec::new();
    message.emit(&mut bytes);
    let header = message.header(id, SERVER, ox_id, 0xffff);
    bed.received.clear();
    bed.input(0, Input::Frame { port: 5, frame: Frame { header, payload: Payload::Bytes(bytes.into()) } });
}

/// Answer in that exchange, parsed from its bytes.
fn answer(bed: &mut Bed, ox_id: u16, command: u16) -> Option<Result<FzsAccept, CtReject>> {
    let frames = bed.received.remove(&(0, 5)).unwrap_or_default();
    let is_answer = |header: &Header| header.r_ctl == RCtl::SOLICITED_CONTROL && header.s_id == SERVER;
    let frame = frames.into_iter().find(|frame| is_answer(&frame.header) && frame.header.ox_id == ox_id)?;
    let Payload::Typed(Message::Ct(typed)) = &frame.payload else { panic!("{frame:?}") };
    let mut bytes = Vec::new();
    typed.emit(&mut bytes);
    let ct = Ct::parse(&bytes, Some((typed.service, command))).unwrap();
    assert_eq!(ct, **typed);
    Some(match ct.body {
        CtBody::FzsAccept(accept) => Ok(accept),
        CtBody::Reject(reject) => Err(reject),
        other => panic!("{other:?}"),
    })
}

/// Sends a request and waits for the answer.
fn conversation(bed: &mut Bed, id: FcId, request: FzsRequest) -> Result<FzsAccept, CtReject> {
    let command = request.command();
    exchange(bed, id, 0x77, request);
    bed.run(Span::from_secs(60));
    answer(bed, 0x77, command).expect("every request is answered")
}

fn unable(explanation: u8) -> Result<FzsAccept, CtReject> {
    Err(CtReject { reason: CtReason::UNABLE, explanation, vendor: 0 })
}

fn name(text: &str) -> Box<[u8]> {
    text.as_bytes().into()
}

/// Zone set with one zone.
fn set(set: &str, zone: &str, members: &[u64]) -> FzsZoneSet {
    let members = members.iter().map(|name| FzsMember::PortName(Wwpn(*name))).collect();
    FzsZoneSet { name: name(set), zones: vec![FzsZone { name: name(zone), members }] }
}

fn databases(bed: &Bed) -> Vec<ZoneDatabase> {
    bed.nodes.iter().map(|node| node.machine.zone_database().clone()).collect()
}

/// Returns whether frames of the manager reach the disk.
fn permitted(bed: &Bed, manager: FcId, disk: FcId) -> bool {
    bed.trace(0, 5, manager, disk) == Some((1, 6))
}

#[test]
fn the_zone_server_lists_defined_and_effective_zones() {
    let (mut bed, id, _) = fabric(|_| {});
    let bits = capability::SOFT_ZONES | capability::HARD_ZONES | capability::ZONE_SET_DATABASE;
    let accept = conversation(&mut bed, id, FzsRequest::Gzc);
    assert_eq!(accept, Ok(FzsAccept::Capabilities { bits, vendor: 0 }));
    let bits = capability::SOFT_ENFORCED | capability::HARD_ENFORCED;
    assert_eq!(conversation(&mut bed, id, FzsRequest::Gest), Ok(FzsAccept::State { bits, vendor: 0 }));
    assert_eq!(conversation(&mut bed, id, FzsRequest::Gzsn), Ok(FzsAccept::Names(vec![(name("test"), 1)])));
    let active = FzsAccept::ZoneSet(set("test", "old", &[0xa, 0xb]));
    assert_eq!(conversation(&mut bed, id, FzsRequest::Gazs), Ok(active));
    let unknown = conversation(&mut bed, id, FzsRequest::Gzm { zone: name("new") });
    assert_eq!(unknown, unable(explanation::UNKNOWN_ZONE));
}

#[test]
fn a_change_is_accepted_when_the_other_switch_has_it_too() {
    let (mut bed, id, disk) = fabric(|_| {});
    assert!(permitted(&bed, id, disk));
    exchange(&mut bed, id, 9, FzsRequest::Azsd { zone_set: set("night", "apart", &[0xa, 0xc]) });
    let before = databases(&bed);
    let mut steps = 0;
    let accept = loop {
        if let Some(answer) = answer(&mut bed, 9, FzsRequest::Dzs.command()) {
            break answer;
        }
        steps += 1;
        bed.run(Span::from_us(10));
    };
    assert_eq!(accept, Ok(FzsAccept::Empty));
    assert!(steps > 20, "not before the other switch was locked, has staged it, and was updated: {steps} steps");
    let after = databases(&bed);
    assert!(after[0] == after[1] && after[0] != before[0], "{after:?}");
    assert_eq!(after[1].effective.as_ref().unwrap().name, "night");
    bed.run(Span::from_secs(1));
    assert!(!permitted(&bed, id, disk), "the host is apart from its disk");
    // Stored, activated and deactivated; each answer arrives when both switches agree.
    for (request, effective) in [
        (FzsRequest::Adzs { zone_set: set("day", "old", &[0xa, 0xb]) }, Some("night")),
        (FzsRequest::Azs { zone_set: name("day") }, Some("day")),
        (FzsRequest::Dzs, None),
    ] {
        assert_eq!(conversation(&mut bed, id, request), Ok(FzsAccept::Empty));
        let all = databases(&bed);
        assert_eq!(all[0], all[1]);
        assert_eq!(all[0].effective.as_ref().map(|zones| zones.name.as_str()), effective);
    }
    assert_eq!(conversation(&mut bed, id, FzsRequest::Gazs), unable(explanation::NO_ACTIVE_ZONE_SET));
}

#[test]
fn a_failed_change_has_a_reason_and_changes_no_switch() {
    let (mut bed, id, _) = fabric(|config| config.zones.limits.members = 2);
    let before = databases(&bed);
    let large = FzsRequest::Adzs { zone_set: set("day", "large", &[1, 2, 3]) };
    assert_eq!(conversation(&mut bed, id, large), unable(explanation::TOO_LARGE));
    assert_eq!(
        conversation(&mut bed, id, FzsRequest::Rzs { zone_set: name("no") }),
        unable(explanation::UNKNOWN_ZONE_SET)
    );
    let odd = FzsMember::Other { kind: 0xe1, id: [0; 8] };
    let odd = FzsRequest::Azm { zone: name("old"), members: vec![odd] };
    assert_eq!(conversation(&mut bed, id, odd), unable(explanation::UNKNOWN_MEMBER_TYPE));
    // The other switch is reachable but no longer answers.
    bed.loss = 100;
    assert_eq!(conversation(&mut bed, id, FzsRequest::Dzs), unable(explanation::NONE));
    assert_eq!(databases(&bed), before);
    bed.loss = 0;
    bed.run(Span::from_secs(120));
    assert_eq!(conversation(&mut bed, id, FzsRequest::Dzs), Ok(FzsAccept::Empty));
}

#[test]
fn a_switch_without_zoning_rejects_zone_requests() {
    let (mut bed, id, _) = fabric(|config| config.zones.supported = false);
    for request in [FzsRequest::Gzc, FzsRequest::Dzs] {
        assert_eq!(conversation(&mut bed, id, request), unable(explanation::ZONING_NOT_SUPPORTED));
    }
}

#[test]
fn a_port_that_stopped_waiting_receives_no_result_and_the_change_continues() {
    let endings: [fn(&mut Bed, FcId); 2] = [
        |bed, id| {
            bed.send(0, 5, id, SERVER, Message::Els(Box::new(Els::Logo(Logo { port_id: id, port_name: Wwpn(0xa) }))))
        },
        |bed, id| {
            let message = Message::Bls(Bls::Abts);
            let header = message.header(id, SERVER, 9, 0xffff);
            bed.input(0, Input::Frame { port: 5, frame: Frame { header, payload: message.into() } });
        },
    ];
    for end in endings {
        let (mut bed, id, _) = fabric(|_| {});
        exchange(&mut bed, id, 9, FzsRequest::Dzs);
        end(&mut bed, id);
        bed.run(Span::from_secs(5));
        assert_eq!(answer(&mut bed, 9, FzsRequest::Dzs.command()), None);
        assert!(databases(&bed).iter().all(|database| database.effective.is_none()));
    }
}

#[test]
fn a_flood_of_changes_is_rejected_as_busy() {
    let (mut bed, id, _) = fabric(|_| {});
    let command = FzsRequest::Dzs.command();
    let answers: Vec<_> = (0..1_000u16)
        .map(|ox_id| {
            exchange(&mut bed, id, ox_id, FzsRequest::Dzs);
            answer(&mut bed, ox_id, command)
        })
        .collect();
    let busy = Err(CtReject { reason: CtReason::LOGICAL_BUSY, explanation: explanation::NONE, vendor: 0 });
    assert_eq!(answers.iter().filter(|answer| answer.is_none()).count(), 16);
    assert!(answers.into_iter().flatten().all(|answer| answer == busy));
    bed.run(Span::from_secs(60));
    assert!(answer(&mut bed, 15, command).is_some(), "those that waited are answered");
}

/// Queries the fabric configuration server, which answers at once.
fn configuration(bed: &mut Bed, id: FcId, request: FcsRequest) -> Result<FcsAccept, CtReject> {
    let service = Service::FABRIC_CONFIGURATION;
    bed.received.clear();
    bed.send(0, 5, id, SERVER, Message::Ct(Box::new(Ct::request(service, CtBody::Fcs(request)))));
    let [frame] = &bed.received[&(0, 5)][..] else { panic!("one answer") };
    let Payload::Typed(Message::Ct(ct)) = &frame.payload else { panic!("{frame:?}") };
    match &ct.body {
        CtBody::FcsAccept(accept) => Ok(accept.clone()),
        CtBody::Reject(reject) => Err(*reject),
        other => panic!("{other:?}"),
    }
}

fn attached(bed: &mut Bed, id: FcId, port: Wwpn) -> Vec<Wwpn> {
    match configuration(bed, id, FcsRequest::Gapnl { port }) {
        Ok(FcsAccept::AttachedPorts(ports)) => ports.into_iter().map(|port| port.name).collect(),
        Err(_) => Vec::new(),
        other => panic!("{other:?}"),
    }
}

#[test]
fn the_fabric_configuration_server_lists_the_other_switch_its_links_and_its_attached_ports() {
    let (mut bed, id, _) = fabric(|_| {});
    let [own, other] = [switch_name(0), switch_name(1)];
    let elements = FcsAccept::Elements(vec![(own, element_type::SWITCH), (other, element_type::SWITCH)]);
    assert_eq!(configuration(&mut bed, id, FcsRequest::Giel {}), Ok(elements));
    assert_eq!(configuration(&mut bed, id, FcsRequest::Gdid { element: other }), Ok(FcsAccept::DomainId(2)));
    let Ok(FcsAccept::Information(texts)) = configuration(&mut bed, id, FcsRequest::Gieil { element: own }) else {
        panic!("a switch reports its own type")
    };
    assert_eq!(texts[0], (*b"sanloom").into());
    assert!(configuration(&mut bed, id, FcsRequest::Gieil { element: other }).is_err(), "not the type of others");
    // Port 0 leads to port 1 of the other switch; port 6 has a disk.
    let entry = |port, port_type| PortEntry { name: port_name(other, port), module: 1, transmitter: 1, port_type };
    let ports = FcsAccept::Ports(vec![entry(0, port_type::E_PORT), entry(6, port_type::F_PORT)]);
    assert_eq!(configuration(&mut bed, id, FcsRequest::Gpl { element: other }), Ok(ports));
    assert_eq!(attached(&mut bed, id, port_name(other, 0)), [port_name(own, 1)]);
    assert_eq!(attached(&mut bed, id, port_name(other, 6)), [Wwpn(0xb)]);
    assert_eq!(attached(&mut bed, id, port_name(own, 1)), [port_name(other, 0)]);
    assert_eq!(attached(&mut bed, id, port_name(own, 5)), [Wwpn(0xa)]);
    let online = FcsAccept::PortState { port_type: port_type::F_PORT, state: port_state::ONLINE };
    assert_eq!(configuration(&mut bed, id, FcsRequest::Gps { port: port_name(other, 6) }), Ok(online));
    // Changes at other switches are visible to the next query.
    bed.log_in(1, 9, 0xc);
    bed.unplug(1, 6);
    bed.run(Span::from_secs(1));
    let ports = FcsAccept::Ports(vec![entry(0, port_type::E_PORT), entry(9, port_type::F_PORT)]);
    assert_eq!(configuration(&mut bed, id, FcsRequest::Gpl { element: other }), Ok(ports));
    // The link fails, and the other switch disappears with it.
    bed.plug(0, false);
    bed.run(Span::from_secs(30));
    let elements = FcsAccept::Elements(vec![(own, element_type::SWITCH)]);
    assert_eq!(configuration(&mut bed, id, FcsRequest::Giel {}), Ok(elements));
    assert_eq!(attached(&mut bed, id, port_name(own, 1)), []);
}

#[test]
fn a_port_reports_its_speeds() {
    let (mut bed, id, _) = fabric(|_| {});
    bed.received.clear();
    bed.send(0, 5, id, FcId::F_PORT, Message::Els(Box::new(Els::Rpsc)));
    let [frame] = &bed.received[&(0, 5)][..] else { panic!("one answer") };
    let Payload::Typed(Message::Els(els)) = &frame.payload else { panic!("{frame:?}") };
    assert_eq!(**els, Els::LsAcc(LsAcc::Rpsc(vec![PortSpeed { capabilities: 0x0400, operating: 0x0400 }])));
}

/// Reports of link incidents received by the manager.
fn reports(bed: &mut Bed) -> Vec<LinkIncident> {
    let frames = bed.received.remove(&(0, 5)).unwrap_or_default();
    let report = |frame: Frame| match frame.payload {
        Payload::Typed(Message::Els(els)) => match *els {
            Els::Rlir(incident) => Some(incident),
            _ => None,
        },
        _ => None,
    };
    frames.into_iter().filter_map(report).collect()
}

#[test]
fn a_registered_port_receives_a_report_when_an_isl_fails() {
    let (mut bed, id, _) = fabric(|_| {});
    let lirr = Els::Lirr { function: registration::ALWAYS, format: 0 };
    bed.send(0, 5, id, SERVER, Message::Els(Box::new(lirr)));
    // The session ends, as in the NPIV paper, figure 6.
    bed.send(0, 5, id, SERVER, Message::Els(Box::new(Els::Logo(Logo { port_id: id, port_name: Wwpn(0xa) }))));
    bed.received.clear();
    bed.input(0, Input::Incident { port: 1, code: code::LOSS_OF_SIGNAL });
    bed.plug(0, false);
    let [report] = reports(&mut bed)[..] else { panic!("one report") };
    assert_eq!((report.code, report.port_type, report.physical_port), (code::LOSS_OF_SIGNAL, port_type::E_PORT, 1));
    assert_eq!((report.node_name, report.port_name), (switch_name(0), port_name(switch_name(0), 1)));
}

/// A store receives the zones before other switches and the requester are informed.
#[test]
fn zones_are_stored_before_they_are_sent_to_other_switches() {
    let mut bed = Bed::new(1, vec![config(0, Some(1), &zoned(&[("old", &[0xa, 0xb])]))]);
    bed.run(Span::from_secs(10));
    let database = ZoneDatabase::of_zoning(&zoned(&[("new", &[0xa, 0xc])]), "test");
    let machine = &mut bed.nodes[0].machine;
    let change = ZoneChange::Replace(database.clone());
    machine.handle(bed.now, Input::ChangeZones { tag: 3, change });
    let outputs: Vec<Output> = std::iter::from_fn(|| machine.poll_output()).collect();
    let kept =
        outputs.iter().position(|output| *output == Output::Zones { database: database.clone(), effective: true });
    let reported =
        outputs.iter().position(|output| *output == Output::Event(Event::ZonesChanged { tag: 3, result: Ok(()) }));
    assert!(kept.is_some() && kept < reported, "{outputs:?}");
    assert!(outputs[..kept.unwrap_or(0)].is_empty(), "{outputs:?}");
}
