//! Fabric login: addresses, rejects, the effects of a lost port, and the order of outputs.

use crate::switch_util::*;
use sanloom_fc::config::ZoneDefault;
use sanloom_fc::fabric::{Decision, DropReason, FibDelta};
use sanloom_fc::switch::{Output, PeerUpdate};
use sanloom_wire::els::{Els, Logo, LsAcc, LsRjt, LsRjtExplanation as Why, LsRjtReason as Reason};
use sanloom_wire::login::Login;
use sanloom_wire::{FcId, Payload, Wwnn, Wwpn};
use std::fmt::Write;

fn rejected(reason: Reason, explanation: Why) -> Result<(FcId, Login), LsRjt> {
    Err(LsRjt::new(reason, explanation))
}

fn logo(port_id: FcId, name: u64) -> Els {
    Els::Logo(Logo { port_id, port_name: Wwpn(name) })
}

#[test]
fn each_port_has_its_area_and_virtual_ports_fill_it_from_below() {
    let mut rig = Rig::new(config(1, open()));
    assert_eq!(rig.flogi(2, 0x20), id(2, 0));
    assert_eq!(rig.flogi(255, 0x30), id(255, 0));
    let ids: Vec<_> = (1..4).map(|n| rig.fdisc(2, 0x20 + n).unwrap()).collect();
    assert_eq!(ids, [id(2, 1), id(2, 2), id(2, 3)]);
    assert_eq!(rig.exchange_els(2, id(2, 2), FcId::F_PORT, logo(id(2, 2), 0x22)), Ok(LsAcc::Empty));
    assert_eq!(rig.fdisc(2, 0x25), Ok(id(2, 2)));
    assert_eq!(rig.fdisc(2, 0x26), Ok(id(2, 4)));
}

#[test]
fn the_256th_virtual_port_is_rejected_for_lack_of_resources() {
    let mut rig = Rig::new(config(1, open()));
    rig.flogi(2, 0x2000);
    for n in 1..=255 {
        assert_eq!(rig.fdisc(2, 0x2000 + n), Ok(id(2, n as u8)));
    }
    let full = LsRjt::new(Reason::UNABLE, Why::INSUFFICIENT_RESOURCES);
    assert_eq!(rig.fdisc(2, 0x3000), Err(full));
    assert_eq!(rig.exchange_els(2, id(2, 77), FcId::F_PORT, logo(id(2, 77), 0x2000 + 77)), Ok(LsAcc::Empty));
    assert_eq!(rig.fdisc(2, 0x3000), Ok(id(2, 77)));
    assert_eq!(rig.switch.counters().virtual_logins, 256);
}

#[test]
fn a_port_without_an_area_rejects_logins() {
    let mut rig = Rig::new(config(1, open()));
    rig.up(256);
    let reply = rig.exchange_login(256, FcId::ZERO, Els::Flogi(login(0x20)));
    assert_eq!(reply, rejected(Reason::UNABLE, Why::INSUFFICIENT_RESOURCES));
    let reply = rig.exchange_login(256, FcId::ZERO, Els::Fdisc(login(0x20)));
    assert_eq!(reply, rejected(Reason::UNABLE, Why::N_PORT_LOGIN_REQUIRED));
}

#[test]
fn wrong_service_parameters_are_rejected_by_name() {
    type Case = (&'static str, fn(&mut Login), Why);
    let wrong: [Case; 4] = [
        ("port name", |l| l.port_name = Wwpn(0), Why::INVALID_PORT_NAME),
        ("node name", |l| l.node_name = Wwnn(0), Why::INVALID_NODE_NAME),
        ("receive size", |l| l.common.receive_size_bytes = 255, Why::RECEIVE_SIZE),
        ("class 3", |l| l.class_3.flags = 0, Why::OPTIONS),
    ];
    let mut rig = Rig::new(config(1, open()));
    rig.flogi(2, 0x20);
    rig.up(3);
    for (what, spoil, why) in wrong {
        let mut login = login(0x30);
        spoil(&mut login);
        let expected = rejected(Reason::LOGICAL_ERROR, why);
        assert_eq!(rig.exchange_login(3, FcId::ZERO, Els::Flogi(login.clone())), expected, "{what}");
        assert_eq!(rig.exchange_login(2, FcId::ZERO, Els::Fdisc(login.clone())), expected, "{what}");
        let plogi = rig.exchange_els(2, id(2, 0), FcId::NAME_SERVER, Els::Plogi(login));
        assert_eq!(plogi, Err(LsRjt::new(Reason::LOGICAL_ERROR, why)), "{what}");
    }
    assert_eq!(rig.switch.counters().logins_rejected, 8);
    assert_eq!(rig.switch.logins().collect::<Vec<_>>(), [(id(2, 0), 2)]);
}

#[test]
fn services_reject_unsupported_requests() {
    let mut rig = Rig::new(config(1, open()));
    let me = rig.flogi(2, 0x20);
    let exchange = sanloom_wire::els::ExchangeRef { originator: me, ox_id: 1, rx_id: 2 };
    let other = Els::Other { command: 0x7e, body: Box::new([0; 3]) };
    let ns = FcId::NAME_SERVER;
    let adisc =
        sanloom_wire::els::Adisc { hard_address: FcId::ZERO, port_name: Wwpn(0x20), node_name: Wwnn(1), port_id: me };
    let time_server = FcId::new(0xff_fffb);
    let no = (Reason::NOT_SUPPORTED, Why::NOT_SUPPORTED);
    let login_first = (Reason::UNABLE, Why::N_PORT_LOGIN_REQUIRED);
    for (to, request, (reason, why)) in [
        (FcId::F_PORT, other.clone(), no),
        (FcId::FABRIC_CONTROLLER, other.clone(), no),
        (ns, other, no),
        (FcId::F_PORT, Els::Plogi(login(0x20)), no),
        (time_server, Els::Plogi(login(0x20)), no),
        (ns, Els::Flogi(login(0x20)), no),
        (ns, Els::Scr { function: 3 }, no),
        (FcId::F_PORT, Els::Scr { function: 3 }, no),
        (FcId::FABRIC_CONTROLLER, Els::Scr { function: 4 }, (Reason::LOGICAL_ERROR, Why::NONE)),
        (FcId::F_PORT, Els::Rec(exchange), (Reason::LOGICAL_ERROR, Why::INVALID_OX_RX_ID)),
        (FcId::F_PORT, Els::Rls { port_id: me }, (Reason::UNABLE, Why::CANNOT_SUPPLY_DATA)),
        (ns, Els::Adisc(adisc), login_first),
        (ns, Els::Pdisc(login(0x20)), login_first),
        (FcId::F_PORT, logo(id(2, 1), 0x21), (Reason::LOGICAL_ERROR, Why::INVALID_N_PORT_ID)),
        (FcId::F_PORT, logo(me, 0x21), (Reason::LOGICAL_ERROR, Why::INVALID_PORT_NAME)),
    ] {
        let answer = rig.exchange_els(2, me, to, request.clone());
        assert_eq!(answer, Err(LsRjt::new(reason, why)), "{request:?} to {to}");
    }
}

#[test]
fn a_port_cannot_log_another_port_out() {
    let mut rig = Rig::new(config(1, open()));
    let (me, other) = (rig.flogi(2, 0x20), rig.flogi(3, 0x30));
    let answer = rig.exchange_els(2, me, FcId::F_PORT, logo(other, 0x30));
    assert_eq!(answer, Err(LsRjt::new(Reason::LOGICAL_ERROR, Why::INVALID_N_PORT_ID)));
    // The other port's address as S_ID does not help, because the port drops such a frame.
    let spoofed = rig.offer(2, other, FcId::F_PORT, els(logo(other, 0x30)));
    assert_eq!(spoofed, Decision::Drop(DropReason::BadSourceId));
    assert_eq!(rig.fib.port_of(other), Some(3));
}

#[test]
fn a_frame_that_a_driver_passes_from_an_unknown_port_is_discarded() {
    use sanloom_fc::switch::Input;
    use sanloom_wire::Frame;
    let mut rig = Rig::new(config(1, open()));
    let me = rig.flogi(2, 0x20);
    rig.up(3);
    rig.handle(Input::PortUp { port: 4, kind: sanloom_fc::switch::PortKind::E });
    for (n, port) in [(1, 3), (2, 4), (3, 5), (4, 9_999)] {
        let message = els(Els::Rtv);
        let frame = Frame { header: header(me, FcId::F_PORT, &message), payload: Payload::Typed(message) };
        rig.sent.clear();
        rig.handle(Input::Frame { port, frame });
        assert_eq!(rig.sent, []);
        assert_eq!(rig.switch.counters().frames_discarded, n);
    }
}

#[test]
fn the_clean_address_bit_marks_the_return_of_the_same_port() {
    const CLEAN: u16 = 0x8000;
    let mut rig = Rig::new(config(1, open()));
    let features = |rig: &mut Rig, name| {
        rig.down(2);
        rig.up(2);
        let (_, accept) = rig.exchange_login(2, FcId::ZERO, Els::Flogi(login(name))).unwrap();
        accept.common.features & CLEAN
    };
    assert_eq!(features(&mut rig, 0x20), 0);
    assert_eq!(features(&mut rig, 0x20), CLEAN);
    assert_eq!(features(&mut rig, 0x30), 0);
    assert_eq!(features(&mut rig, 0x20), 0);
}

#[test]
fn the_later_of_two_ports_with_one_name_stays() {
    let mut rig = Rig::new(config(1, open()));
    let old = rig.flogi(2, 0x20);
    rig.fdisc(2, 0x21).unwrap();
    rig.flogi(3, 0x30);
    // A virtual port takes over the name of a virtual port, and another one the name of a base
    // port.
    assert_eq!(rig.fdisc(3, 0x21), Ok(id(3, 1)));
    assert_eq!(rig.fdisc(3, 0x20), Ok(id(3, 2)));
    assert_eq!(rig.fib.port_of(old), None);
    let here: Vec<_> = rig.switch.logins().collect();
    assert_eq!(here, [(id(3, 0), 3), (id(3, 1), 3), (id(3, 2), 3)]);
    assert_eq!(rig.switch.counters().duplicate_names, 2);
    assert_eq!(rig.switch.counters().implicit_logouts, 2);
    // The old port detects this when it uses its address.
    let decision = rig.fib.decide(2, old, id(3, 0), 0);
    assert_eq!(decision, Decision::Drop(DropReason::BadSourceId));
}

#[test]
fn a_repeated_fdisc_gets_the_same_address_and_one_with_the_base_name_is_rejected() {
    let mut rig = Rig::new(config(1, open()));
    rig.flogi(2, 0x20);
    assert_eq!(rig.fdisc(2, 0x21), Ok(id(2, 1)));
    assert_eq!(rig.fdisc(2, 0x22), Ok(id(2, 2)));
    assert_eq!(rig.fdisc(2, 0x21), Ok(id(2, 1)));
    assert_eq!(rig.switch.counters().duplicate_names, 0);
    let base = LsRjt::new(Reason::LOGICAL_ERROR, Why::INVALID_PORT_NAME);
    assert_eq!(rig.fdisc(2, 0x20), Err(base));
    let with_id = rig.exchange_login(2, id(2, 0), Els::Fdisc(login(0x23)));
    assert_eq!(with_id, rejected(Reason::LOGICAL_ERROR, Why::INVALID_ORIGINATOR_S_ID));
}

fn position(log: &[Output], what: impl Fn(&Output) -> bool) -> usize {
    log.iter().position(what).expect("in the log")
}

fn is_reply(output: &Output) -> bool {
    matches!(output, Output::Send { .. })
}

#[test]
fn permissions_are_granted_before_the_accept_and_revoked_before_the_accepted_logout() {
    let mut rig = Rig::new(config(1, zone_set(&[&[0x20, 0x30]], ZoneDefault::Closed)));
    let (a, b) = (rig.flogi(2, 0x20), FcId::from_parts(1, 3, 0));
    rig.up(3);
    rig.log.clear();
    rig.flogi_again(3, 0x30);
    let reply = position(&rig.log, is_reply);
    let granted =
        [FibDelta::OwnId { port: 3, id: b }, FibDelta::Permit { s: a, d: b }, FibDelta::Permit { s: b, d: a }];
    assert_eq!(deltas(&rig.log[..reply]), granted);
    assert_eq!(deltas(&rig.log[reply..]), []);

    rig.log.clear();
    assert_eq!(rig.exchange_els(3, b, FcId::F_PORT, logo(b, 0x30)), Ok(LsAcc::Empty));
    let reply = position(&rig.log, is_reply);
    let taken = [FibDelta::RemoveId { id: b }, FibDelta::Revoke { s: a, d: b }, FibDelta::Revoke { s: b, d: a }];
    assert_eq!(deltas(&rig.log[..reply]), taken);
    assert_eq!(deltas(&rig.log[reply..]), []);
}

#[test]
fn the_other_switches_receive_a_login_at_once_and_its_names_with_the_types() {
    use sanloom_wire::ns::{NsRequest, one_type};
    let mut rig = Rig::new(config(1, open()));
    let me = rig.flogi(2, 0x20);
    rig.plogi(me);
    let node_name = Wwnn(0x99);
    rig.ns(me, NsRequest::RnnId { port_id: me, node_name }).unwrap();
    rig.ns(me, NsRequest::RspnId { port_id: me, symbolic_name: (*b"port").into() }).unwrap();
    let [PeerUpdate::Object(entry)] = &rig.peers[..] else { panic!("{:?}", rig.peers) };
    assert_eq!((entry.port_id, entry.port_name, entry.types), (me, Wwpn(0x20), [0; 8]));
    rig.peers.clear();
    rig.ns(me, NsRequest::RftId { port_id: me, types: one_type(8) }).unwrap();
    let [PeerUpdate::Object(entry)] = &rig.peers[..] else { panic!("{:?}", rig.peers) };
    assert_eq!((entry.node_name, entry.symbolic_port_name()), (node_name, &b"port"[..]));
    rig.peers.clear();
    // From now on every change is published, but not a registration without a change.
    rig.ns(me, NsRequest::RnnId { port_id: me, node_name }).unwrap();
    assert_eq!(rig.peers, []);
    rig.ns(me, NsRequest::RnnId { port_id: me, node_name: Wwnn(0x98) }).unwrap();
    assert_eq!(rig.peers.len(), 1);
    rig.peers.clear();
    rig.down(2);
    assert_eq!(rig.peers, [PeerUpdate::Removed { port_id: me }]);
}

/// Every state of a port with every event: the answer, and the logins afterwards.
#[test]
fn the_transition_table_of_a_port() {
    type Step = (&'static str, fn(&mut Rig));
    fn offer(rig: &mut Rig, s_id: FcId, request: Els) {
        rig.offer(2, s_id, FcId::F_PORT, els(request));
    }
    let states: [Step; 6] = [
        ("down", |_| {}),
        ("up, no login", |rig| rig.up(2)),
        ("base", |rig| {
            rig.flogi(2, 0x20);
        }),
        ("base, virtual", |rig| {
            rig.flogi(2, 0x20);
            rig.fdisc(2, 0x21).unwrap();
        }),
        ("virtual only", |rig| {
            rig.flogi(2, 0x20);
            rig.fdisc(2, 0x21).unwrap();
            offer(rig, id(2, 0), logo(id(2, 0), 0x20));
        }),
        ("logged out", |rig| {
            rig.flogi(2, 0x20);
            offer(rig, id(2, 0), logo(id(2, 0), 0x20));
        }),
    ];
    let events: [Step; 12] = [
        ("link up", |rig| rig.up(2)),
        ("link down", |rig| rig.down(2)),
        ("FLOGI", |rig| offer(rig, FcId::ZERO, Els::Flogi(login(0x20)))),
        ("FLOGI, other name", |rig| offer(rig, FcId::ZERO, Els::Flogi(login(0x29)))),
        ("FLOGI with its id", |rig| offer(rig, id(2, 0), Els::Flogi(login(0x20)))),
        ("FDISC, new name", |rig| offer(rig, FcId::ZERO, Els::Fdisc(login(0x22)))),
        ("FDISC, virtual's name", |rig| offer(rig, FcId::ZERO, Els::Fdisc(login(0x21)))),
        ("FDISC, base's name", |rig| offer(rig, FcId::ZERO, Els::Fdisc(login(0x20)))),
        ("LOGO base", |rig| offer(rig, id(2, 0), logo(id(2, 0), 0x20))),
        ("LOGO virtual", |rig| offer(rig, id(2, 1), logo(id(2, 1), 0x21))),
        ("LOGO virtual by base", |rig| offer(rig, id(2, 0), logo(id(2, 1), 0x21))),
        ("name elsewhere", |rig| {
            rig.flogi(7, 0x20);
        }),
    ];
    let mut table = String::new();
    for (state, reach) in states {
        for (event, happen) in events {
            let mut rig = Rig::new(config(1, open()));
            reach(&mut rig);
            rig.sent.clear();
            happen(&mut rig);
            let to_port = rig.sent.iter().filter(|(port, _)| *port == 2);
            let replies: Vec<String> = to_port.map(|(_, frame)| summary(frame)).collect();
            let reply = if replies.is_empty() { "-".into() } else { replies.join("; ") };
            let here: Vec<String> = rig
                .switch
                .logins()
                .filter(|(_, port)| *port == 2)
                .map(|(id, _)| format!("{id} {:02x}", rig.name_of(id)))
                .collect();
            let here = if here.is_empty() { "nobody".into() } else { here.join(", ") };
            writeln!(table, "{state:14} | {event:21} | {reply:28} | {here}").unwrap();
        }
    }
    insta::assert_snapshot!(table);
}

fn summary(frame: &sanloom_wire::Frame) -> String {
    match &frame.payload {
        Payload::Typed(sanloom_wire::Message::Els(els)) => match &**els {
            Els::LsAcc(_) => format!("LS_ACC to {}", frame.header.d_id),
            Els::LsRjt(r) => format!("LS_RJT {:02x}/{:02x} to {}", r.reason.0, r.explanation.0, frame.header.d_id),
            other => format!("{other:?}"),
        },
        other => format!("{other:?}"),
    }
}
