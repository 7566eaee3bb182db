//! State change notifications: their recipients, the collection of changes, and missing answers.

use crate::switch_util::*;
use sanloom_fc::config::ZoneDefault;
use sanloom_fc::fabric::ZoneSet;
use sanloom_fc::switch::Counters;
use sanloom_scsi::time::{Instant, Span};
use sanloom_wire::els::{AddressFormat, Els, Logo, LsAcc, LsRjt, LsRjtExplanation, LsRjtReason, Rscn, RscnPage};
use sanloom_wire::ns::NsRequest;
use sanloom_wire::{FcId, Wwpn};
use std::sync::Arc;

const TARGET: u8 = 1;
const INITIATOR: u8 = 2;

fn page(format: AddressFormat, address: FcId) -> RscnPage {
    RscnPage { qualifier: 0, format, address }
}

fn ports(ids: &[FcId]) -> Rscn {
    Rscn { pages: ids.iter().map(|id| page(AddressFormat::Port, *id)).collect() }
}

/// Recipients and contents of all RSCNs sent since the last call.
fn notifications(rig: &mut Rig) -> Vec<(FcId, Rscn)> {
    rig.rscns().into_iter().map(|(id, _, rscn)| (id, rscn)).collect()
}

/// Hosts at ports 1 and 2 and a target at port 3, after all notifications.
fn three(zoning: Arc<ZoneSet>) -> (Rig, [FcId; 3]) {
    let mut rig = Rig::new(config(1, zoning));
    let ids = [rig.join(1, 0x110, INITIATOR), rig.join(2, 0x220, INITIATOR), rig.join(3, 0x330, TARGET)];
    rig.run_until_quiet();
    (rig, ids)
}

#[test]
fn a_login_with_all_its_registrations_is_one_notification() {
    let (mut rig, [a, b, c]) = three(open());
    rig.sent.clear();
    let before = rig.now;
    let d = rig.join(4, 0x440, TARGET);
    rig.sent.clear();
    rig.wait(Span::from_ns(RSCN_DELAY.as_ns() - 1));
    assert_eq!(notifications(&mut rig), []);
    rig.wait(Span::from_ns(1));
    assert_eq!(rig.now, before + RSCN_DELAY);
    assert_eq!(notifications(&mut rig), [a, b, c].map(|to| (to, ports(&[d]))));
}

#[test]
fn only_zone_mates_receive_an_rscn_and_never_the_port_itself() {
    let zones = zone_set(&[&[0x110, 0x330, 0x440], &[0x220, 0x550]], ZoneDefault::Closed);
    let (mut rig, [a, _, c]) = three(zones);
    let d = rig.join(4, 0x440, TARGET);
    rig.sent.clear();
    rig.wait(RSCN_DELAY);
    let all = rig.rscns();
    let notifications: Vec<_> = all.iter().map(|(to, _, rscn)| (*to, rscn.clone())).collect();
    assert_eq!(notifications, [(a, ports(&[d])), (c, ports(&[d]))]);
    for (to, ox_id, _) in all {
        rig.answer(to, ox_id, Els::LsAcc(LsAcc::Empty));
    }
    // No port shares a zone with it.
    rig.join(6, 0x660, TARGET);
    rig.sent.clear();
    rig.wait(RSCN_DELAY);
    assert_eq!(rig.rscns(), []);
}

#[test]
fn ports_in_no_zone_receive_rscns_of_each_other_only_if_the_default_is_open() {
    for (default, expected) in [(ZoneDefault::Open, true), (ZoneDefault::Closed, false)] {
        let (mut rig, [a, b, c]) = three(zone_set(&[&[0x330, 0x990]], default));
        let d = rig.join(4, 0x440, TARGET);
        rig.sent.clear();
        rig.wait(RSCN_DELAY);
        let expected: Vec<_> = [a, b].into_iter().filter(|_| expected).map(|to| (to, ports(&[d]))).collect();
        assert_eq!(notifications(&mut rig), expected, "{default:?}");
        assert_eq!(c, id(3, 0));
    }
}

#[test]
fn every_kind_of_logout_causes_an_rscn() {
    let (_, [a, b, c]) = three(open());
    type Case = (&'static str, fn(&mut Rig));
    let departures: [Case; 3] = [
        ("port down", |rig| rig.down(3)),
        ("logout", |rig| {
            let logo = Els::Logo(Logo { port_id: id(3, 0), port_name: Wwpn(0x330) });
            rig.offer(3, id(3, 0), FcId::F_PORT, els(logo));
        }),
        ("out of the name server", |rig| {
            rig.offer(3, id(3, 0), FcId::NAME_SERVER, ct(NsRequest::DaId { port_id: id(3, 0) }));
        }),
    ];
    for (what, happen) in departures {
        let (mut rig, _) = three(open());
        happen(&mut rig);
        rig.sent.clear();
        rig.wait(RSCN_DELAY);
        assert_eq!(notifications(&mut rig), [a, b].map(|to| (to, ports(&[c]))), "{what}");
    }
}

#[test]
fn a_changed_name_causes_no_rscn_and_a_changed_feature_does() {
    let (mut rig, [a, b, c]) = three(open());
    rig.ns(c, NsRequest::RspnId { port_id: c, symbolic_name: (*b"new").into() }).unwrap();
    rig.ns(c, NsRequest::RffId { port_id: c, features: TARGET, fc4_type: 8 }).unwrap();
    assert_eq!(rig.switch.poll_timeout(), None);
    rig.ns(c, NsRequest::RffId { port_id: c, features: INITIATOR, fc4_type: 8 }).unwrap();
    rig.sent.clear();
    rig.wait(RSCN_DELAY);
    assert_eq!(notifications(&mut rig), [a, b].map(|to| (to, ports(&[c]))));
}

#[test]
fn changes_of_many_ports_share_a_notification_sorted_and_each_once() {
    let (mut rig, [a, ..]) = three(open());
    let d = rig.flogi(9, 0x990);
    let e = rig.flogi(4, 0x440);
    rig.down(9);
    rig.flogi(9, 0x990);
    rig.sent.clear();
    rig.wait(RSCN_DELAY);
    let all = notifications(&mut rig);
    assert_eq!(all[0], (a, ports(&[e, d])));
    assert_eq!(all.len(), 3, "three registered ports, each notified once");
}

#[test]
fn more_than_32_changes_become_the_smallest_scope_that_holds_them() {
    type Case = (&'static str, fn(&mut Rig), RscnPage);
    let scopes: [Case; 3] = [
        (
            "virtual ports of one port",
            |rig| {
                rig.flogi(7, 0x7000);
                (1..=33).for_each(|n| _ = rig.fdisc(7, 0x7000 + n));
            },
            page(AddressFormat::Area, id(7, 0)),
        ),
        (
            "ports of one switch",
            |rig| (10..50).for_each(|n| _ = rig.flogi(n, 0x100 * u64::from(n) + 1)),
            page(AddressFormat::Domain, id(0, 0)),
        ),
        (
            "ports of two switches",
            |rig| {
                rig.reach(&[2]);
                for n in 10..50 {
                    rig.flogi(n, 0x100 * u64::from(n) + 1);
                }
                let mut other = Rig::new(config(2, open()));
                other.flogi(1, 0xabc);
                for update in std::mem::take(&mut other.peers) {
                    rig.handle(sanloom_fc::switch::Input::Peer(update));
                }
            },
            page(AddressFormat::Fabric, FcId::ZERO),
        ),
    ];
    for (what, happen, expected) in scopes {
        let (mut rig, [a, ..]) = three(open());
        happen(&mut rig);
        rig.sent.clear();
        rig.wait(RSCN_DELAY);
        assert_eq!(notifications(&mut rig)[0], (a, Rscn { pages: vec![expected] }), "{what}");
    }
    // Up to 32 changes are reported individually.
    let (mut rig, [a, ..]) = three(open());
    let ids: Vec<FcId> = (10..42).map(|n| rig.flogi(n, 0x100 * u64::from(n) + 1)).collect();
    rig.sent.clear();
    rig.wait(RSCN_DELAY);
    assert_eq!(notifications(&mut rig)[0], (a, ports(&ids)));
}

#[test]
fn at_most_one_notification_is_in_flight() {
    let (mut rig, [a, ..]) = three(open());
    let d = rig.flogi(4, 0x440);
    rig.sent.clear();
    rig.wait(RSCN_DELAY);
    let first = rig.rscns();
    assert_eq!(first[0].0, a);
    let e = rig.flogi(5, 0x550);
    rig.sent.clear();
    rig.wait(Span::from_ms(100));
    assert_eq!(rig.rscns(), [], "the first is not answered yet");
    rig.answer(a, first[0].1, Els::LsAcc(LsAcc::Empty));
    rig.wait(RSCN_DELAY);
    assert_eq!(notifications(&mut rig), [(a, ports(&[e]))]);
    assert_eq!(d, id(4, 0));
}

#[test]
fn a_notification_is_repeated_with_later_changes_until_it_is_answered() {
    let mut rig = Rig::new(config(1, open()));
    let a = rig.join(1, 0x110, INITIATOR);
    let d = rig.flogi(4, 0x440);
    rig.sent.clear();
    let start = rig.now;
    rig.wait(RSCN_DELAY);
    assert_eq!(notifications(&mut rig), [(a, ports(&[d]))]);
    let e = rig.flogi(5, 0x550);
    rig.sent.clear();
    let mut sent = Vec::new();
    for _ in 0..4 {
        let at = rig.switch.poll_timeout().expect("repeated without end");
        rig.wait(at.since(rig.now));
        let all = rig.rscns();
        assert!(all.iter().all(|(to, _, rscn)| *to == a && *rscn == ports(&[d, e])));
        sent.extend(all.into_iter().map(|(_, ox_id, _)| (rig.now.since(start), ox_id)));
    }
    // Two attempts at intervals of E_D_TOV, then one every R_A_TOV; each has its own exchange.
    let times: Vec<u64> = sent.iter().map(|(at, _)| at.as_ms()).collect();
    assert_eq!(times, [2_005, 4_005, 14_005, 24_005]);
    assert!(sent.windows(2).all(|pair| pair[0].1 != pair[1].1));
    let counted = rig.switch.counters();
    assert_eq!((counted.rscn_sent, counted.rscn_repeated), (5, 4));
    // An answer to an old attempt is ignored; one to the last attempt ends it.
    rig.answer(a, sent[2].1, Els::LsAcc(LsAcc::Empty));
    assert_eq!(rig.switch.counters().frames_discarded, 1);
    assert!(rig.switch.poll_timeout().is_some());
    rig.answer(a, sent[3].1, Els::LsAcc(LsAcc::Empty));
    assert_eq!(rig.switch.poll_timeout(), None);
    // The next change is reported as usual.
    let f = rig.flogi(6, 0x660);
    rig.sent.clear();
    rig.wait(RSCN_DELAY);
    assert_eq!(notifications(&mut rig), [(a, ports(&[f]))]);
}

#[test]
fn an_rscn_is_repeated_to_a_busy_port_and_not_to_one_that_rejects_it() {
    for (reason, again) in [(LsRjtReason::LOGICAL_BUSY, true), (LsRjtReason::NOT_SUPPORTED, false)] {
        let mut rig = Rig::new(config(1, open()));
        let a = rig.join(1, 0x110, INITIATOR);
        let d = rig.flogi(4, 0x440);
        rig.sent.clear();
        rig.wait(RSCN_DELAY);
        let (_, ox_id, _) = rig.rscns()[0];
        rig.answer(a, ox_id, Els::LsRjt(LsRjt::new(reason, LsRjtExplanation::NONE)));
        rig.wait(RSCN_DELAY);
        let expected: Vec<_> = [(a, ports(&[d]))].into_iter().filter(|_| again).collect();
        assert_eq!(notifications(&mut rig), expected);
        assert_eq!(rig.switch.counters().rscn_rejected, u64::from(!again));
    }
}

#[test]
fn the_function_of_scr_selects_the_reports_for_a_port() {
    // 1: changes detected by the fabric, 2: changes reported by N_Ports, 3: both, FF: no more
    // reports.
    for (function, fabric, n_port) in [(1, true, false), (2, false, true), (3, true, true), (0xff, false, false)] {
        let (mut rig, [a, b, c]) = three(open());
        for quiet in [b, c] {
            let port = u16::from(quiet.area());
            rig.exchange_els(port, quiet, FcId::FABRIC_CONTROLLER, Els::Scr { function: 0xff }).unwrap();
        }
        rig.exchange_els(1, a, FcId::FABRIC_CONTROLLER, Els::Scr { function }).unwrap();
        let d = rig.flogi(4, 0x440);
        rig.sent.clear();
        rig.wait(RSCN_DELAY);
        let all = rig.rscns();
        assert_eq!(all.len(), usize::from(fabric), "function {function:x}, fabric detected");
        for (to, ox_id, _) in all {
            rig.answer(to, ox_id, Els::LsAcc(LsAcc::Empty));
        }
        // A port reports a change of itself, and attempts to report another port.
        let report = Rscn { pages: vec![page(AddressFormat::Port, d), page(AddressFormat::Port, b)] };
        let answer = rig.exchange_els(4, d, FcId::FABRIC_CONTROLLER, Els::Rscn(report));
        assert_eq!(answer, Ok(LsAcc::Empty));
        rig.sent.clear();
        rig.wait(RSCN_DELAY);
        let expected: Vec<_> = [(a, ports(&[d]))].into_iter().filter(|_| n_port).collect();
        assert_eq!(notifications(&mut rig), expected, "function {function:x}, reported");
    }
}

#[test]
fn a_departed_port_receives_no_rscn() {
    let (mut rig, [a, b, _]) = three(open());
    rig.flogi(4, 0x440);
    rig.down(1);
    rig.sent.clear();
    rig.wait(RSCN_DELAY);
    let recipients: Vec<FcId> = notifications(&mut rig).into_iter().map(|(to, _)| to).collect();
    assert!(recipients.contains(&b) && !recipients.contains(&a), "{recipients:?}");
    // A port that logs in again has to register again.
    rig.flogi(1, 0x110);
    rig.down(4);
    rig.sent.clear();
    rig.wait(Span::from_secs(60));
    assert!(notifications(&mut rig).iter().all(|(to, _)| *to != a));
    // Unanswered notifications are pending only while their receivers are logged in.
    assert!(rig.switch.poll_timeout().is_some());
    (2..4).for_each(|port| rig.down(port));
    assert_eq!(rig.switch.poll_timeout(), None);
}

#[test]
fn an_early_timeout_is_harmless() {
    let (mut rig, _) = three(open());
    rig.flogi(4, 0x440);
    let at = rig.switch.poll_timeout();
    rig.sent.clear();
    for _ in 0..3 {
        rig.handle(sanloom_fc::switch::Input::Timeout);
    }
    assert_eq!(rig.sent, []);
    assert_eq!(rig.switch.poll_timeout(), at);
}

#[test]
fn a_storm_of_changes_costs_each_recipient_a_bounded_number_of_notifications() {
    let mut rig = Rig::new(config(1, open()));
    for n in 0..64 {
        rig.join(n, 0x100 * u64::from(n) + 1, INITIATOR);
    }
    rig.run_until_quiet();
    let before = rig.switch.counters();
    let start = rig.now;
    // 640 logins within 100 windows.
    for round in 0..10 {
        for n in 64..128u16 {
            rig.down(n);
            rig.flogi(n, 0x100 * u64::from(n) + 1);
            rig.wait(Span::from_us(781));
            for (to, ox_id, _) in rig.rscns_among_logins() {
                rig.answer(to, ox_id, Els::LsAcc(LsAcc::Empty));
            }
        }
        assert!(round < 10);
    }
    rig.run_until_quiet();
    let windows = rig.now.since(start).as_ns() / RSCN_DELAY.as_ns() + 2;
    let Counters { rscn_sent, .. } = rig.switch.counters();
    assert!(rscn_sent - before.rscn_sent <= 64 * windows, "{rscn_sent} in {windows} windows");
    assert_eq!(rig.switch.poll_timeout(), None);
    assert!(rig.now > Instant::ZERO);
}
