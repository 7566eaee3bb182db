//! Addresses, limits, names already in use, and a domain that is assigned late and removed.

use crate::switch_util::*;
use sanloom_fc::config::ZoneDefault;
use sanloom_fc::fabric::FibDelta;
use sanloom_fc::switch::{
    Addressing, DuplicateNames, Input, LoginLimits, NameLookup, Output, PeerUpdate, Policy, PortKind, SwitchConfig,
    port_name,
};
use sanloom_scsi::time::Span;
use sanloom_wire::els::{Els, Logo, LsAcc, LsRjt, LsRjtExplanation as Why, LsRjtReason as Reason};
use sanloom_wire::{FcId, Message, Payload, Wwpn};

const FULL: LsRjt = LsRjt { reason: Reason::UNABLE, explanation: Why::INSUFFICIENT_RESOURCES, vendor: 0 };
const IN_USE: LsRjt = LsRjt { reason: Reason::LOGICAL_ERROR, explanation: Why::INVALID_PORT_NAME, vendor: 0 };

fn rig(policy: Policy) -> Rig {
    Rig::new(SwitchConfig { policy, ..config(1, open()) })
}

fn flat() -> Policy {
    Policy { addressing: Addressing::Flat, ..Policy::default() }
}

fn logo(rig: &mut Rig, port: u16, id: FcId) {
    let logo = Logo { port_id: id, port_name: Wwpn(rig.name_of(id)) };
    assert_eq!(rig.exchange_els(port, id, FcId::F_PORT, Els::Logo(logo)), Ok(LsAcc::Empty));
}

#[test]
fn flat_addresses_come_from_one_pool_for_all_ports() {
    let mut rig = rig(flat());
    assert_eq!(rig.flogi(2, 0x20), id(0, 0));
    assert_eq!(rig.flogi(298, 0x30), id(0, 1));
    for n in 1..=300 {
        let given = rig.fdisc(298, 0x3000 + n).unwrap();
        assert_eq!(given.to_u32(), 0x01_0001 + n as u32);
    }
    assert_eq!(rig.fdisc(2, 0x21), Ok(id(1, 0x2e)));
    logo(&mut rig, 298, id(0, 7));
    assert_eq!(rig.fdisc(2, 0x22), Ok(id(0, 7)));
    // All logins of a port end with it, also those with addresses in another area.
    rig.down(298);
    assert_eq!(rig.switch.logins().map(|(id, _)| id).collect::<Vec<_>>(), [id(0, 0), id(0, 7), id(1, 0x2e)]);
    assert_eq!(rig.fib.ids().count(), 3);
    // A port gets its previous address if it is still free.
    rig.down(2);
    assert_eq!(rig.flogi(3, 0x33), id(0, 0));
    assert_eq!(rig.flogi(298, 0x30), id(0, 1));
}

#[test]
fn one_domain_holds_65536_logins_and_no_more() {
    let mut rig = rig(flat());
    for n in 0..0x1_0000u64 {
        let port = (n % 290) as u16;
        let given = if n < 290 { Ok(rig.flogi(port, 0x100_0000 + n)) } else { rig.fdisc(port, 0x100_0000 + n) };
        assert_eq!(given.map(FcId::to_u32), Ok(0x01_0000 + n as u32));
        rig.log.clear();
    }
    assert_eq!(rig.fdisc(1, 0x20), Err(FULL));
    assert_eq!(rig.switch.counters().login_limits, 1);
    // A name that moves to another port uses the slot that it vacates.
    assert_eq!(rig.fdisc(1, 0x100_0000 + 0x4321), Ok(FcId::new(0x01_4321)));
    (0..290).for_each(|port| rig.down(port));
    assert_eq!((rig.switch.logins().count(), rig.fib.ids().count()), (0, 0));
}

#[test]
fn limits_of_a_port_and_of_the_switch_hold_and_a_logout_makes_room() {
    let limits = LoginLimits { per_port: 3, per_switch: 5 };
    let mut rig = rig(Policy { limits, ..Policy::default() });
    rig.flogi(1, 0x10);
    rig.fdisc(1, 0x11).unwrap();
    rig.fdisc(1, 0x12).unwrap();
    assert_eq!(rig.fdisc(1, 0x13), Err(FULL));
    // A repeated login does not count twice.
    assert_eq!(rig.fdisc(1, 0x12), Ok(id(1, 2)));
    rig.flogi(2, 0x20);
    rig.fdisc(2, 0x21).unwrap();
    assert_eq!(rig.fdisc(2, 0x22), Err(FULL));
    rig.up(3);
    assert_eq!(rig.exchange_login(3, FcId::ZERO, Els::Flogi(login(0x30))), Err(FULL));
    // A name that moves from one port to another does not count twice either.
    assert_eq!(rig.fdisc(2, 0x12), Ok(id(2, 2)));
    logo(&mut rig, 1, id(1, 1));
    assert_eq!(rig.fdisc(1, 0x14), Ok(id(1, 1)));
    assert_eq!(rig.switch.counters().login_limits, 3);
}

#[test]
fn persistent_addresses_are_assigned_to_their_names_and_new_ones_reported() {
    let persistent = [(Wwpn(0x22), id(2, 9)), (Wwpn(0x33), id(3, 1)), (Wwpn(0x44), id(9, 9))].into();
    let mut rig = rig(Policy { persistent, learn_addresses: true, ..Policy::default() });
    rig.flogi(2, 0x20);
    rig.flogi(3, 0x30);
    assert_eq!(rig.fdisc(3, 0x31), Ok(id(3, 2)), "3/1 is kept");
    assert_eq!(rig.fdisc(2, 0x22), Ok(id(2, 9)));
    assert_eq!(rig.fdisc(3, 0x33), Ok(id(3, 1)));
    // A persistent address in another port's area cannot be used here.
    assert_eq!(rig.fdisc(3, 0x44), Ok(id(3, 3)));
    let learned = [(Wwpn(0x20), id(2, 0)), (Wwpn(0x30), id(3, 0)), (Wwpn(0x31), id(3, 2))];
    assert_eq!(rig.persisted, learned);
    logo(&mut rig, 3, id(3, 2));
    assert_eq!(rig.fdisc(3, 0x35), Ok(id(3, 4)), "3/2 is kept from now on");
    assert_eq!(rig.fdisc(3, 0x31), Ok(id(3, 2)));
    let kept = rig.switch.persistent_addresses().clone();
    assert_eq!(kept.len(), 7);

    // A restart with the learned addresses gives the same result.
    let mut again = self::rig(Policy { persistent: kept, ..Policy::default() });
    again.flogi(3, 0x30);
    assert_eq!(again.fdisc(3, 0x99), Ok(id(3, 3)), "everything below is kept");
    assert_eq!(again.fdisc(3, 0x35), Ok(id(3, 4)));
    assert_eq!(again.persisted, []);
}

#[test]
fn a_repeated_removal_does_not_affect_the_new_login_of_a_returning_port() {
    let mut rig = rig(Policy::default());
    rig.flogi(2, 0x20);
    assert_eq!(rig.fdisc(2, 0x21), Ok(id(2, 1)));
    let elsewhere = || Input::Peer(PeerUpdate::Superseded { port_id: id(2, 1) });
    rig.handle(elsewhere());
    assert_eq!(rig.fdisc(2, 0x21), Ok(id(2, 2)));
    // The other switch missed the answer and repeats its message.
    rig.handle(elsewhere());
    assert!(rig.switch.logins().any(|(id, _)| id == self::id(2, 2)));
    assert_eq!(rig.fdisc(2, 0x22), Ok(id(2, 3)));
    rig.now += Span::from_secs(10);
    assert_eq!(rig.fdisc(2, 0x23), Ok(id(2, 1)), "R_A_TOV is over");
}

/// The name of a port here logs in at another switch, and that login is reported before the end of
/// the local login.
#[test]
fn the_address_of_a_departed_port_is_reserved_in_either_order_of_the_notifications() {
    for (rule, elsewhere_is_later) in [(DuplicateNames::NewWins, true), (DuplicateNames::OldWins, false)] {
        let policy = Policy { duplicate_names: rule, ..Policy::default() };
        let (mut here, mut far) = (rig(policy.clone()), Rig::new(SwitchConfig { policy, ..config(2, open()) }));
        here.reach(&[2]);
        let later = if elsewhere_is_later { &mut far } else { &mut here };
        later.now += Span::from_ms(1);
        here.flogi(2, 0x20);
        assert_eq!(here.fdisc(2, 0x21), Ok(id(2, 1)));
        far.flogi(1, 0x21);
        let Some(PeerUpdate::Object(entry)) = far.peers.pop() else { panic!() };
        here.handle(Input::Peer(PeerUpdate::Object(entry)));
        assert_eq!(here.switch.logins().map(|(id, _)| id).collect::<Vec<_>>(), [id(2, 0)], "{rule:?}");
        assert_eq!(here.fdisc(2, 0x22), Ok(id(2, 2)), "{rule:?}");
        here.handle(Input::Peer(PeerUpdate::Superseded { port_id: id(2, 1) }));
        assert_eq!(here.switch.logins().count(), 2);
        here.now += Span::from_secs(10);
        assert_eq!(here.fdisc(2, 0x23), Ok(id(2, 1)), "R_A_TOV is over");
    }
}

#[test]
fn the_old_port_keeps_its_name_under_the_rules_old_wins_and_block() {
    for rule in [DuplicateNames::OldWins, DuplicateNames::Block] {
        let mut rig = rig(Policy { duplicate_names: rule, ..Policy::default() });
        rig.flogi(2, 0x20);
        rig.fdisc(2, 0x21).unwrap();
        rig.flogi(3, 0x30);
        assert_eq!(rig.fdisc(3, 0x21), Err(IN_USE), "{rule:?}");
        assert_eq!(rig.fdisc(2, 0x21), Ok(id(2, 1)), "its own login again");
        let blocks = rule == DuplicateNames::Block;
        assert_eq!(rig.switch.blocked_ports().collect::<Vec<_>>(), if blocks { vec![3] } else { vec![] });
        assert_eq!(rig.fdisc(3, 0x31).is_err(), blocks);
        assert_eq!(rig.exchange_login(3, FcId::ZERO, Els::Flogi(login(0x32))).is_err(), blocks);
        assert!(rig.switch.logins().any(|login| login == (id(3, 0), 3)));
        // After a new link the port may try again, but not with that name.
        rig.up(3);
        assert_eq!(rig.switch.blocked_ports().count(), 0);
        assert_eq!(rig.exchange_login(3, FcId::ZERO, Els::Flogi(login(0x20))), Err(IN_USE));
        rig.down(2);
        assert_eq!(rig.flogi(3, 0x20), id(3, 0));
    }
}

#[test]
fn a_name_at_another_switch_is_in_use() {
    let mut far = Rig::new(config(2, open()));
    far.flogi(1, 0x20);
    let Some(PeerUpdate::Object(entry)) = far.peers.pop() else { panic!() };
    for (rule, stays) in [(DuplicateNames::OldWins, false), (DuplicateNames::NewWins, true)] {
        let mut rig = rig(Policy { duplicate_names: rule, ..Policy::default() });
        rig.reach(&[2]);
        rig.handle(Input::Peer(PeerUpdate::Object(entry.clone())));
        rig.flogi(3, 0x30);
        assert_eq!(rig.fdisc(3, 0x20).is_ok(), stays, "{rule:?}");
        let known: Vec<FcId> = rig.switch.name_server().map(|known| known.port_id).collect();
        assert_eq!(known, [id(3, 0), if stays { id(3, 1) } else { entry.port_id }]);
        rig.unreach(2);
        assert_eq!(rig.fdisc(3, 0x20), Ok(id(3, 1)));
    }
}

#[test]
fn two_switches_that_both_admitted_a_name_agree_on_the_earlier_login_when_the_old_one_wins() {
    let policy = Policy { duplicate_names: DuplicateNames::OldWins, ..Policy::default() };
    let switch = |domain| Rig::new(SwitchConfig { policy: policy.clone(), ..config(domain, open()) });
    let (mut early, mut late) = (switch(1), switch(2));
    early.reach(&[2]);
    late.reach(&[1]);
    early.flogi(1, 0x20);
    late.wait(RSCN_DELAY);
    late.flogi(1, 0x20);
    let (of_early, of_late) = (std::mem::take(&mut early.peers), std::mem::take(&mut late.peers));
    of_late.into_iter().for_each(|update| early.handle(Input::Peer(update)));
    of_early.into_iter().for_each(|update| late.handle(Input::Peer(update)));
    std::mem::take(&mut late.peers).into_iter().for_each(|update| early.handle(Input::Peer(update)));
    for rig in [&early, &late] {
        assert_eq!(rig.switch.name_server().map(|known| known.port_id).collect::<Vec<_>>(), [id(1, 0)]);
    }
    assert_eq!(late.switch.logins().count(), 0);
}

#[test]
fn a_linear_search_examines_every_entry_before_the_name() {
    let mut rig = rig(Policy { name_lookup: NameLookup::Linear, ..Policy::default() });
    rig.flogi(1, 0x10);
    for k in 1..=255u64 {
        let before = rig.switch.work().names_searched;
        rig.fdisc(1, 0x1000 + k).unwrap();
        assert_eq!(rig.switch.work().names_searched - before, k);
    }
    rig.flogi(2, 0x20);
    let before = rig.switch.work().names_searched;
    rig.fdisc(2, 0x1000 + 9).unwrap();
    assert_eq!(rig.switch.work().names_searched - before, 10);
}

fn no_domain() -> Rig {
    Rig::new(SwitchConfig { domain: None, ..config(1, open()) })
}

fn flogis(rig: &mut Rig, port: u16, ox_id: u16, name: u64) {
    let message = els(Els::Flogi(login(name)));
    let mut header = header(FcId::ZERO, FcId::F_PORT, &message);
    header.ox_id = ox_id;
    rig.offer_frame(port, sanloom_wire::Frame { header, payload: Payload::Typed(message) });
}

#[test]
fn one_login_of_each_port_waits_for_the_domain() {
    let mut rig = no_domain();
    assert_eq!(rig.switch.domain(), None);
    (1..4).for_each(|port| rig.up(port));
    flogis(&mut rig, 1, 0x11, 0x10);
    flogis(&mut rig, 1, 0x12, 0x10);
    flogis(&mut rig, 2, 0x21, 0x20);
    flogis(&mut rig, 3, 0x31, 0x30);
    rig.down(3);
    assert_eq!(rig.sent, []);
    assert_eq!(rig.switch.counters().logins_held, 4);
    let too_early = LsRjt::new(Reason::UNABLE, Why::N_PORT_LOGIN_REQUIRED);
    assert_eq!(rig.fdisc(1, 0x15), Err(too_early));
    rig.sent.clear();

    rig.handle(Input::Domain(Some(7)));
    let accepts: Vec<_> = rig.sent.iter().map(|(p, f)| (*p, f.header.d_id.to_u32(), f.header.ox_id)).collect();
    assert_eq!(accepts, [(1, 0x07_0100, 0x12), (2, 0x07_0200, 0x21)]);
    assert_eq!(rig.fib.ids().count(), 2);
    assert_eq!(rig.switch.domain(), Some(7));
    assert_eq!(rig.fdisc(1, 0x15), Ok(FcId::new(0x07_0101)));
}

#[test]
fn a_lost_domain_logs_out_all_ports_and_is_reported() {
    let zones = zone_set(&[&[0x10, 0x11, 0x20]], ZoneDefault::Closed);
    let mut rig = Rig::new(config(1, zones));
    rig.join(1, 0x10, 2);
    rig.fdisc(1, 0x11).unwrap();
    rig.join(2, 0x20, 1);
    rig.run_until_quiet();
    rig.peers.clear();
    rig.log.clear();
    rig.handle(Input::Domain(Some(1)));
    assert_eq!(rig.log, []);

    rig.handle(Input::Domain(Some(9)));
    let reported: Vec<_> = rig.sent.drain(..).map(|(port, frame)| (port, frame.header.d_id, frame.payload)).collect();
    assert_eq!(reported.iter().map(|(port, id, _)| (*port, *id)).collect::<Vec<_>>(), [(1, id(1, 0)), (2, id(2, 0))]);
    assert!(
        reported.iter().all(
            |(_, _, payload)| matches!(payload, Payload::Typed(Message::Els(els)) if matches!(**els, Els::Logo(_)))
        )
    );
    assert_eq!(rig.peers.len(), 3);
    assert_eq!((rig.fib.permissions(), rig.fib.ids().count()), (0, 0));
    assert_eq!((rig.switch.logins().count(), rig.switch.name_server().count()), (0, 0));
    // The table loses its permissions and ids before it gets the new domain.
    assert_eq!(deltas(&rig.log).last(), Some(&FibDelta::Domain { domain: Some(9) }));
    assert!(matches!(rig.log.last(), Some(Output::Fib(_))));

    assert_eq!(rig.flogi_again(1, 0x10), FcId::new(0x09_0100));
    rig.handle(Input::Domain(None));
    assert_eq!(rig.switch.logins().count(), 0);
    flogis(&mut rig, 1, 0x11, 0x10);
    rig.handle(Input::Domain(Some(240)));
    assert_eq!(rig.switch.domain(), None);
    rig.handle(Input::Domain(Some(239)));
    assert_eq!(rig.switch.logins().collect::<Vec<_>>(), [(FcId::new(0xef_0100), 1)]);
}

#[test]
fn a_switch_that_gets_the_domain_of_another_removes_the_ports_of_that_switch() {
    let mut far = Rig::new(config(2, open()));
    far.flogi(1, 0x20);
    let update = far.peers.pop().unwrap();
    let mut rig = no_domain();
    rig.handle(Input::PortUp { port: 299, kind: PortKind::E });
    rig.reach(&[2]);
    rig.handle(Input::Peer(update.clone()));
    assert_eq!(rig.switch.name_server().count(), 1);
    rig.handle(Input::Domain(Some(2)));
    assert_eq!(rig.switch.name_server().count(), 0);
    assert_eq!(rig.fib.legs(2), []);
    rig.handle(Input::Peer(update));
    assert_eq!(rig.switch.counters().peer_updates_ignored, 1);
}

#[test]
fn a_zone_names_a_port_beyond_4095_and_no_two_ports_have_one_name() {
    let ports = [404u16, 4_500, 65_534];
    let member = |port| sanloom_fc::config::ZoneMember::DomainPort { domain: 1, port };
    let zone = |members: [u16; 2]| sanloom_fc::config::Zone {
        name: format!("z{}", members[0]),
        members: members.map(member).to_vec(),
        principals: vec![],
    };
    let zoning = sanloom_fc::config::Zoning { zones: vec![zone([4_500, 65_534])], default: ZoneDefault::Closed };
    let zones = std::sync::Arc::new(sanloom_fc::fabric::ZoneSet::new(&zoning));
    let mut rig = Rig::new(SwitchConfig { ports: u16::MAX, bb_credit: vec![], policy: flat(), ..config(1, zones) });
    let ids = ports.map(|port| rig.flogi(port, 0x1000 + u64::from(port)));
    // 404 is 4,500 truncated to twelve bits.
    let permitted = |s: usize, d: usize| rig.fib.permits(ids[s], ids[d]);
    assert!(permitted(1, 2) && permitted(2, 1) && !permitted(0, 2) && !permitted(2, 0) && !permitted(0, 1));
    let numbers: Vec<u16> = rig.switch.name_server().map(|entry| entry.identity().port).collect();
    assert_eq!(numbers, ports);

    let names: std::collections::BTreeSet<Wwpn> = (0..=u16::MAX)
        .flat_map(|port| [SWITCH_NAME, sanloom_wire::Wwnn(SWITCH_NAME.0 + 1)].map(|of| port_name(of, port)))
        .collect();
    assert_eq!(names.len(), 2 * 65_536);
    // The services of the switch (name server, fabric controller, management server) have names of
    // their own.
    for service in [0xffau64, 0xffc, 0xffd] {
        assert!(!names.contains(&Wwpn(0x2 << 60 | service << 48 | SWITCH_NAME.0 & 0xffff_ffff_ffff)));
    }
}
