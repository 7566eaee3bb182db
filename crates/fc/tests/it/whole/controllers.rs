//! Answers of a switch's domain controller, FFFCxx, to those of other switches.

use super::{Bed, Frame, Message, Payload, config, zoned};
use sanloom_fc::fabric_switch::{FabricSwitch, Input, Output};
use sanloom_fc::switch::HardZoning;
use sanloom_fc::zoning::ZoneDatabase;
use sanloom_fc::zoning::server::ZoneChange;
use sanloom_scsi::time::Span;
use sanloom_wire::ct::{Ct, CtBody, CtReject};
use sanloom_wire::ns::{NsAccept, NsRequest, ZoneName, explanation};
use sanloom_wire::sw_ils::{Ess, SwAcc, SwIls};
use sanloom_wire::{FcId, Wwpn};

const OX_ID: u16 = 0x55;

/// Two switches of one fabric, with the zone `old` of two N_Ports in force.
fn pair(hard_zoning: HardZoning) -> Bed {
    let zones = zoned(&[("old", &[0xa, 0xb])]);
    let configs = (0..2).map(|n| {
        let mut config = config(n, Some(n as u8 + 1), &zones);
        config.services.policy.hard_zoning = hard_zoning;
        config.zones.hard = hard_zoning != HardZoning::Off;
        config
    });
    let mut bed = Bed::new(1, configs.collect());
    bed.connect((0, 1), (1, 0));
    bed.run(Span::from_secs(10));
    bed
}

/// Answer of the first switch to a request of the second one, which arrives as bytes over their
/// link.
fn exchange(bed: &mut Bed, message: &Message) -> Message {
    let (from, to) = (FcId::domain_controller(2), FcId::domain_controller(1));
    let mut bytes = Vec::new();
    message.emit(&mut bytes);
    let header = message.header(from, to, OX_ID, 0xffff);
    let machine = &mut bed.nodes[0].machine;
    machine.handle(bed.now, Input::Frame { port: 1, frame: Frame { header, payload: Payload::Bytes(bytes.into()) } });
    let answer = |output| match output {
        Output::Send { port: 1, frame } if frame.header.ox_id == OX_ID => Some(frame),
        _ => None,
    };
    let frame = std::iter::from_fn(|| machine.poll_output()).find_map(answer).expect("every request is answered");
    assert_eq!((frame.header.s_id, frame.header.d_id), (to, from));
    let Payload::Typed(answer) = frame.payload else { panic!("{frame:?}") };
    let mut bytes = Vec::new();
    answer.emit(&mut bytes);
    Message::parse(&frame.header, &bytes, message.reply_key()).expect("it parses")
}

fn ports(bed: &mut Bed, query: NsRequest) -> Result<Vec<FcId>, CtReject> {
    let Message::Ct(ct) = exchange(bed, &Ct::ns_request(query).into()) else { panic!("CT") };
    match ct.body {
        CtBody::NsAccept(NsAccept::Entries(entries)) => Ok(entries.iter().map(|entry| entry.object.port_id).collect()),
        CtBody::Reject(reject) => Err(reject),
        other => panic!("{other:?}"),
    }
}

fn of_zone(name: &str) -> NsRequest {
    NsRequest::GeZn { name: ZoneName(name.as_bytes().into()) }
}

fn of_port_name(name: u64) -> NsRequest {
    NsRequest::GeZm { kind: 1, flags: 0, id: name.to_be_bytes().into() }
}

#[test]
fn ports_of_a_zone_and_of_a_member_are_those_of_the_zones_in_force() {
    let mut bed = pair(HardZoning::ZoneMates);
    let [host, other] = [(5, 0xa), (6, 0xc)].map(|(port, name)| bed.log_in(0, port, name));
    bed.log_in(1, 5, 0xb);
    bed.run(Span::from_secs(1));
    let no_port = Err(CtReject::unable(explanation::NO_OBJECT_IN_SCOPE));
    assert_eq!(ports(&mut bed, of_zone("old")), Ok(vec![host]), "its own ports, not those of others");
    assert_eq!(ports(&mut bed, of_zone("new")), no_port);
    assert_eq!(ports(&mut bed, of_port_name(0xc)), Ok(vec![other]));
    assert_eq!(ports(&mut bed, of_port_name(0xb)), no_port, "the port is at the other switch");
    let zones = ZoneDatabase::of_zoning(&zoned(&[("new", &[0xb, 0xc])]), "test");
    bed.input(1, Input::ChangeZones { tag: 0, change: ZoneChange::Replace(zones) });
    bed.run(Span::from_secs(1));
    assert_eq!(ports(&mut bed, of_zone("old")), no_port);
    assert_eq!(ports(&mut bed, of_zone("new")), Ok(vec![other]));
    bed.unplug(0, 6);
    assert_eq!(ports(&mut bed, of_zone("new")), no_port, "the port logged out");
    assert_eq!(bed.names_known(0).iter().map(|(_, name, _)| *name).collect::<Vec<_>>(), [Wwpn(0xa), Wwpn(0xb)]);
}

#[test]
fn a_switch_of_the_fabric_receives_the_capabilities_of_the_zone_server() {
    for (hard_zoning, hard) in [(HardZoning::ZoneMates, 0x80), (HardZoning::Off, 0)] {
        let mut bed = pair(hard_zoning);
        let nothing = Ess { revision: 1, info: Vec::new(), capabilities: Vec::new() };
        let Message::SwIls(answer) = exchange(&mut bed, &SwIls::Ess(nothing).into()) else { panic!("SW_ILS") };
        let SwIls::SwAcc(SwAcc::Ess(ess)) = *answer else { panic!("{answer:?}") };
        let emitted: Vec<_> = ess.capabilities.iter().map(|one| (one.service, one.subtype, &one.entries[..])).collect();
        assert_eq!(emitted, [(0xfa, 3, &[[0, 0, 0, 0x70 | hard, 0, 0, 0, 0]][..])]);
        bed.run(Span::from_secs(1));
        assert!(bed.carries(&bed.cables[0]), "capabilities of another switch do not isolate the link");
    }
}

/// Requests of a switch without a path to it wait for a path: each only once, for a limited time,
/// and a limited number of them.
#[test]
fn requests_of_a_switch_without_a_path_to_it_are_held_for_a_while() {
    let mut bed = pair(HardZoning::ZoneMates);
    let (from, to) = (FcId::domain_controller(9), FcId::domain_controller(1));
    let message = Message::from(Ct::ns_request(of_zone("old")));
    let mut bytes = Vec::new();
    message.emit(&mut bytes);
    let machine = &mut bed.nodes[0].machine;
    let mut now = bed.now;
    let answers = |machine: &mut FabricSwitch| {
        let outputs = std::iter::from_fn(|| machine.poll_output());
        let to_it = |output| match output {
            Output::Send { frame, .. } if frame.header.d_id == from => Some(frame.header.ox_id),
            _ => None,
        };
        outputs.filter_map(to_it).collect::<Vec<u16>>()
    };
    let mut at_once = Vec::new();
    for ox_id in (1..=600).chain(1..=100) {
        let (header, payload) = (message.header(from, to, ox_id, 0xffff), Payload::Bytes(bytes.clone().into()));
        machine.handle(now, Input::Frame { port: 1, frame: Frame { header, payload } });
        at_once.extend(answers(machine));
    }
    assert_eq!(at_once, (513..=600).collect::<Vec<u16>>(), "there is room for 512");
    let mut later = Vec::new();
    let until = now + Span::from_secs(60);
    while let Some(at) = machine.poll_timeout().filter(|at| *at <= until) {
        now = at;
        machine.handle(now, Input::Timeout);
        later.extend(answers(machine));
    }
    let mut all = [at_once, later].concat();
    all.sort_unstable();
    assert_eq!(all, (1..=600).collect::<Vec<u16>>());
}
