//! Ports that violate the rules: nothing panics, every request gets at most one answer, and the
//! state of other ports does not change.

use crate::switch_util::*;
use sanloom_fc::fabric::{Decision, DropReason};
use sanloom_fc::switch::{DuplicateNames, Input, NsEntry, Output, Policy};
use sanloom_scsi::random::SplitMix64;
use sanloom_scsi::time::Span;
use sanloom_test_support::samples;
use sanloom_wire::ct::{Ct, CtBody, FS_RJT, Service};
use sanloom_wire::els::link_incident::registration;
use sanloom_wire::els::{Els, Logo, LsAcc, command};
use sanloom_wire::fdmi::{Attribute, FdmiAccept, FdmiRequest};
use sanloom_wire::ns::{NsAccept, NsRequest};
use sanloom_wire::{FCtl, FcId, FcType, Frame, Header, Message, Payload, RCtl, Wwpn};

const SERVICES: [FcId; 4] = [FcId::F_PORT, FcId::FABRIC_CONTROLLER, FcId::NAME_SERVER, FcId::MANAGEMENT_SERVER];
const ATTACKER: u16 = 9;
const TARGET: u8 = 1;

/// Creates a port with every kind of state.
fn victim(rig: &mut Rig, port: u16, name: u64) -> FcId {
    let id = rig.join(port, name, TARGET);
    rig.plogi_to(id, FcId::MANAGEMENT_SERVER);
    let lirr = Els::Lirr { function: registration::ALWAYS, format: 0 };
    assert_eq!(rig.exchange_els(port, id, FcId::MANAGEMENT_SERVER, lirr), Ok(LsAcc::Empty));
    let symbolic_name = (*b"victim").into();
    assert_eq!(rig.ns(id, NsRequest::RspnId { port_id: id, symbolic_name }), Ok(NsAccept::Empty));
    let attributes = vec![Attribute { attribute: 2, value: (*b"maker\0\0\0").into() }];
    let rhba = FdmiRequest::Rhba { hba: Wwpn(name), ports: vec![Wwpn(name)], attributes };
    let accept = rig.management(id, Service::FDMI, CtBody::Fdmi(rhba));
    assert_eq!(accept, Ok(CtBody::FdmiAccept(FdmiAccept::Empty)));
    id
}

/// State that does not belong to the attacker.
fn state_of_others(rig: &Rig) -> (Vec<(FcId, u16)>, Vec<NsEntry>) {
    let logins: Vec<_> = rig.switch.logins().filter(|(_, port)| *port != ATTACKER).collect();
    let of_others = |entry: &&NsEntry| logins.iter().any(|(id, _)| *id == entry.port_id);
    let entries = rig.switch.name_server().filter(of_others).cloned().collect();
    (logins, entries)
}

fn raw(r_ctl: RCtl, fc_type: FcType, s_id: FcId, d_id: FcId, payload: &[u8]) -> Frame {
    let shape = header(s_id, d_id, &els(Els::Rtv));
    Frame { header: Header { r_ctl, fc_type, f_ctl: FCtl::REQUEST, ..shape }, payload: Payload::Bytes(payload.into()) }
}

#[test]
fn no_frame_of_a_port_changes_the_state_of_other_ports() {
    let names = [0x110, 0x220, 0x330];
    let mut rig = Rig::new(config(1, open()));
    let victims = [1u16, 2, 3].map(|port| victim(&mut rig, port, names[usize::from(port) - 1]));
    let seeds: Vec<(Header, Vec<u8>)> = samples::messages()
        .into_iter()
        .map(|(message, _)| {
            let mut bytes = Vec::new();
            message.emit(&mut bytes);
            (message.header(FcId::ZERO, FcId::ZERO, 1, 0xffff), bytes)
        })
        .collect();
    let me = rig.join(ATTACKER, 0x990, 0);
    rig.plogi_to(me, FcId::MANAGEMENT_SERVER);
    rig.run_until_quiet();
    let before = state_of_others(&rig);
    let mut random = SplitMix64(1);
    for number in 0..20_000 {
        let (shape, payload) = &seeds[random.index(seeds.len())];
        let mut payload = payload.clone();
        let is_login = |payload: &[u8]| matches!(payload.first(), Some(&(command::FLOGI | command::FDISC)));
        if !is_login(&payload) {
            // The request contains the attacker's own names or those of a victim.
            let (address, name) = victims.into_iter().zip(names).nth(random.index(6)).unwrap_or((me, 0x990));
            replace(&mut payload, &samples::HOST.to_bytes(), &address.to_bytes());
            replace(&mut payload, &samples::HOST_PORT.0.to_be_bytes(), &name.to_be_bytes());
            replace(&mut payload, &samples::HOST_NODE.0.to_be_bytes(), &node_of(name).0.to_be_bytes());
        }
        for _ in 0..random.index(4) {
            damage(&mut payload, &mut random);
        }
        let (r_ctl, fc_type) = match random.index(6) {
            0 => (RCtl::ELS_REQUEST, FcType::ELS),
            1 => (RCtl::UNSOLICITED_CONTROL, FcType::CT),
            2 => (RCtl(random.bits() as u8), FcType(random.bits() as u8)),
            _ => (shape.r_ctl, shape.fc_type),
        };
        if fc_type == FcType::ELS && is_login(&payload) && names.iter().any(|name| contains(&payload, *name)) {
            // A login with a name in use is legal.
            continue;
        }
        let s_id = match is_login(&payload) {
            true => FcId::ZERO,
            false => [me, me, me, FcId::ZERO, victims[0]][random.index(5)],
        };
        let d_id = match (fc_type, payload.get(4)) {
            _ if random.index(4) == 0 => SERVICES[random.index(SERVICES.len())],
            _ if is_login(&payload) => FcId::F_PORT,
            (FcType::CT, Some(0xfc)) => FcId::NAME_SERVER,
            (FcType::CT, _) => FcId::MANAGEMENT_SERVER,
            _ => SERVICES[random.index(SERVICES.len())],
        };
        rig.sent.clear();
        rig.log.clear();
        let frame = raw(r_ctl, fc_type, s_id, d_id, &payload);
        let decision = rig.offer_frame(ATTACKER, frame);
        assert!(matches!(decision, Decision::Local | Decision::Drop(DropReason::BadSourceId)), "{number}");
        let replies = rig.sent.iter().filter(|(port, _)| *port == ATTACKER).count();
        assert!(replies <= 1 && rig.sent.len() == replies, "{number}: {:?}", rig.sent);
        assert_eq!(state_of_others(&rig), before, "{number}: {fc_type} {payload:02x?}");
        // Many of these inputs end the attacker's sessions.
        if number % 8 == 0 || !rig.switch.logins().any(|(id, _)| id == me) {
            assert_eq!(rig.flogi_again(ATTACKER, 0x990), me);
            rig.plogi(me);
            rig.plogi_to(me, FcId::MANAGEMENT_SERVER);
        }
    }
    // State that is not visible from outside still works: registrations for incidents and changes,
    // and the adapters.
    rig.sent.clear();
    rig.handle(Input::Incident { port: 1, code: 1 });
    for victim in victims {
        let reported =
            |(_, frame): &(u16, Frame)| frame.header.d_id == victim && frame.header.s_id == FcId::MANAGEMENT_SERVER;
        assert!(rig.sent.iter().any(reported), "{victim}");
    }
    for (victim, name) in victims.into_iter().zip(names) {
        let ghat = CtBody::Fdmi(FdmiRequest::Ghat { hba: Wwpn(name) });
        let answer = rig.management(victim, Service::FDMI, ghat);
        let Ok(CtBody::FdmiAccept(FdmiAccept::Hba { ports, attributes })) = answer else { panic!("{answer:?}") };
        assert_eq!((ports, attributes.len()), (vec![Wwpn(name)], 1));
    }
    rig.sent.clear();
    rig.flogi(4, 0x440);
    rig.wait(RSCN_DELAY);
    let reported: Vec<_> = rig.rscns_among_logins().into_iter().map(|(id, ..)| id).collect();
    assert!(victims.iter().all(|victim| reported.contains(victim)), "{reported:?}");
    // Some of the inputs were valid and some were not.
    let counters = rig.switch.counters();
    for count in [
        counters.ct_accepted,
        counters.ct_rejected,
        counters.els_accepted,
        counters.els_rejected,
        counters.frames_discarded,
    ] {
        assert!(count > 100, "{counters:?}");
    }
}

#[test]
fn a_spoofed_address_is_dropped_at_the_port_and_by_the_switch() {
    let mut rig = Rig::new(config(1, open()));
    let victim = victim(&mut rig, 1, 0x110);
    let me = rig.flogi(ATTACKER, 0x990);
    let before = state_of_others(&rig);
    for message in [
        ct(NsRequest::DaId { port_id: victim }),
        els(Els::Logo(Logo { port_id: victim, port_name: Wwpn(0x110) })),
        els(Els::Scr { function: 0xff }),
        Message::Ct(Box::new(Ct::request(Service::FDMI, CtBody::Fdmi(FdmiRequest::Dhba { hba: Wwpn(0x110) })))),
    ] {
        for s_id in [victim, id(77, 0), FcId::NAME_SERVER] {
            for d_id in SERVICES {
                let spoofed = Frame { header: header(s_id, d_id, &message), payload: Payload::Typed(message.clone()) };
                let decision = rig.offer_frame(ATTACKER, spoofed.clone());
                assert_eq!(decision, Decision::Drop(DropReason::BadSourceId));
                // The switch discards the frame even if a driver delivers it.
                rig.sent.clear();
                let discarded = rig.switch.counters().frames_discarded;
                rig.handle(Input::Frame { port: ATTACKER, frame: spoofed });
                assert_eq!((rig.sent.len(), rig.switch.counters().frames_discarded), (0, discarded + 1));
            }
        }
    }
    // With its right address the attacker cannot change objects of others either.
    let logo = Els::Logo(Logo { port_id: victim, port_name: Wwpn(0x110) });
    assert!(rig.exchange_els(ATTACKER, me, FcId::F_PORT, logo).is_err());
    assert_eq!(state_of_others(&rig), before);
    // A port without a login gets no answer either.
    rig.up(5);
    let unassigned = id(5, 0);
    for d_id in [FcId::NAME_SERVER, FcId::MANAGEMENT_SERVER] {
        let request = ct(NsRequest::GpnId { port_id: victim });
        for s_id in [unassigned, FcId::ZERO] {
            assert_eq!(rig.offer(5, s_id, d_id, request.clone()), Decision::Drop(DropReason::BadSourceId));
            rig.sent.clear();
            let frame = Frame { header: header(s_id, d_id, &request), payload: Payload::Typed(request.clone()) };
            rig.handle(Input::Frame { port: 5, frame });
            assert_eq!(rig.sent, []);
        }
    }
}

#[test]
fn every_truncation_of_every_request_is_rejected_in_the_name_of_its_service() {
    let mut rig = Rig::new(config(1, open()));
    let me = rig.join(1, 0x110, TARGET);
    rig.plogi_to(me, FcId::MANAGEMENT_SERVER);
    for (message, _) in samples::messages() {
        let Message::Ct(request) = &message else { continue };
        let d_id = match request.service {
            Service::NAME_SERVER => FcId::NAME_SERVER,
            _ => FcId::MANAGEMENT_SERVER,
        };
        if request.is_reply() || matches!(request.body, CtBody::Other { .. }) {
            continue;
        }
        let mut bytes = Vec::new();
        message.emit(&mut bytes);
        for len in 0..bytes.len() {
            rig.sent.clear();
            rig.offer_frame(1, raw(RCtl::UNSOLICITED_CONTROL, FcType::CT, me, d_id, &bytes[..len]));
            let [(1, reply)] = &rig.sent[..] else { panic!("{message} of {len} bytes: {:?}", rig.sent) };
            let Payload::Typed(Message::Ct(reply)) = &reply.payload else { panic!("{reply:?}") };
            assert_eq!(reply.command(), FS_RJT, "{message} of {len} bytes");
            assert!(len < 16 || reply.service == request.service, "{message} of {len} bytes: {reply:?}");
        }
    }
}

#[test]
fn a_storm_of_logins_leaves_one_login_and_few_notifications() {
    let mut rig = Rig::new(config(1, open()));
    let watcher = rig.join(1, 0x110, TARGET);
    rig.run_until_quiet();
    rig.up(2);
    let (mut most, storm) = (0, 5_000);
    for number in 0..storm {
        rig.log.clear();
        rig.flogi_again(2, 0x1000 + number % 7);
        most = most.max(rig.log.len());
        rig.now += Span::from_ms(1);
        if rig.switch.poll_timeout().is_some_and(|at| at <= rig.now) {
            rig.handle(Input::Timeout);
        }
    }
    assert!(most < 12, "{most} outputs of one FLOGI");
    assert_eq!(rig.switch.logins().map(|(id, _)| id).collect::<Vec<_>>(), [watcher, id(2, 0)]);
    assert_eq!(rig.switch.name_server().count(), 2);
    // The watcher, which does not answer, got one notification per time-out.
    let sent = rig.switch.counters().rscn_sent;
    assert!(sent <= 5, "{sent}");
    rig.down(2);
    assert_eq!(rig.switch.name_server().count(), 1);
    assert_eq!(rig.fib.ids().count(), 1);
}

#[test]
fn a_used_name_has_one_login_under_every_policy() {
    for duplicate_names in [DuplicateNames::NewWins, DuplicateNames::OldWins] {
        let policy = Policy { duplicate_names, ..Policy::default() };
        let mut rig = Rig::new(sanloom_fc::switch::SwitchConfig { policy, ..config(1, open()) });
        rig.join(1, 0x110, TARGET);
        rig.flogi(2, 0x220);
        let stolen = rig.fdisc(2, 0x110);
        let with_name: Vec<_> = rig.switch.name_server().filter(|entry| entry.port_name == Wwpn(0x110)).collect();
        assert_eq!(with_name.len(), 1, "{duplicate_names:?}");
        assert_eq!(stolen.is_ok(), with_name[0].port_id.area() == 2, "{duplicate_names:?}");
        assert_eq!(rig.switch.logins().count(), 2, "{duplicate_names:?}");
        assert_eq!(rig.switch.logins().collect::<Vec<_>>(), rig.fib.ids().collect::<Vec<_>>());
    }
}

#[test]
fn every_reply_parses() {
    let mut rig = Rig::new(config(1, open()));
    let me = rig.join(1, 0x110, TARGET);
    rig.plogi_to(me, FcId::MANAGEMENT_SERVER);
    for (message, _) in samples::messages() {
        let reply_to = message.reply_key();
        for d_id in SERVICES {
            rig.sent.clear();
            rig.log.clear();
            rig.offer(1, me, d_id, message.clone());
            let own = rig.log.iter().filter_map(|output| match output {
                Output::Send { port: 1, frame } => Some(frame),
                _ => None,
            });
            own.for_each(|frame| assert_round_trip(frame, reply_to));
            if !rig.switch.logins().any(|(id, _)| id == me) {
                rig.flogi_again(1, 0x110);
                rig.take_part(me, TARGET);
                rig.plogi_to(me, FcId::MANAGEMENT_SERVER);
            }
        }
    }
}

fn contains(payload: &[u8], name: u64) -> bool {
    payload.windows(8).any(|window| window == name.to_be_bytes())
}

fn replace<const N: usize>(payload: &mut [u8], old: &[u8; N], new: &[u8; N]) {
    for at in 0..payload.len().saturating_sub(N - 1) {
        if payload[at..at + N] == *old {
            payload[at..at + N].copy_from_slice(new);
        }
    }
}

fn damage(payload: &mut Vec<u8>, random: &mut SplitMix64) {
    let at = random.index(payload.len().max(1));
    match random.index(4) {
        _ if payload.is_empty() => payload.push(random.bits() as u8),
        0 => payload[at] = random.bits() as u8,
        1 => payload[at] ^= 1 << random.index(8),
        2 => payload.truncate(at),
        _ => payload.insert(at, random.bits() as u8),
    }
}
