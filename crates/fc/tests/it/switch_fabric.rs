//! Several switches, with hard zoning compared to its rule after every kind of event.

use crate::switch_util::*;
use proptest::prelude::*;
use sanloom_fc::config::{Zone, ZoneDefault, ZoneMember, Zoning};
use sanloom_fc::fabric::{Decision, DropReason, Egress, Leg, ZoneSet};
use sanloom_fc::switch::{Input, NsEntry, PeerUpdate, SwitchConfig};
use sanloom_scsi::time::Span;
use sanloom_wire::els::{AddressFormat, Els, Logo, Rscn, RscnPage};
use sanloom_wire::ns::{NsAccept, NsRequest};
use sanloom_wire::{FcId, Wwpn};
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::Arc;

/// Switches that reach each other over one port each, and the messages in transit between them.
struct Fabric {
    switches: Vec<Rig>,
    mail: BTreeMap<(usize, usize), VecDeque<PeerUpdate>>,
    cut: BTreeSet<(usize, usize)>,
}

const ISL: u16 = 299;

impl Fabric {
    fn new(switches: usize, zoning: &Arc<ZoneSet>) -> Fabric {
        let config = |domain| SwitchConfig { bb_credit: vec![], ..config(domain, zoning.clone()) };
        let mut fabric = Fabric {
            switches: (1..=switches as u8).map(|domain| Rig::new(config(domain))).collect(),
            mail: BTreeMap::new(),
            cut: BTreeSet::new(),
        };
        let all: Vec<u8> = (1..=switches as u8).collect();
        for rig in &mut fabric.switches {
            rig.handle(Input::PortUp { port: ISL, kind: sanloom_fc::switch::PortKind::E });
            rig.reach(&all);
        }
        fabric
    }

    /// Collects the messages of the switches for delivery.
    fn collect(&mut self) {
        for from in 0..self.switches.len() {
            for update in std::mem::take(&mut self.switches[from].peers) {
                for to in (0..self.switches.len()).filter(|to| *to != from) {
                    self.mail.entry((from, to)).or_default().push_back(update.clone());
                }
            }
        }
    }

    /// Delivers one message between two switches; a cut link loses it.
    fn deliver_one(&mut self, from: usize, to: usize) -> bool {
        self.collect();
        let Some(update) = self.mail.get_mut(&(from, to)).and_then(VecDeque::pop_front) else {
            return false;
        };
        if !self.cut.contains(&(from.min(to), from.max(to))) {
            self.switches[to].handle(Input::Peer(update));
        }
        true
    }

    fn deliver_all(&mut self) {
        let pairs: Vec<_> =
            (0..self.switches.len()).flat_map(|a| (0..self.switches.len()).map(move |b| (a, b))).collect();
        while pairs.iter().fold(false, |any, (a, b)| self.deliver_one(*a, *b) || any) {}
    }

    fn set_cut(&mut self, a: usize, b: usize, cut: bool) {
        let pair = (a.min(b), a.max(b));
        if a == b || !(if cut { self.cut.insert(pair) } else { self.cut.remove(&pair) }) {
            return;
        }
        let legs = if cut { vec![] } else { vec![Leg::Port(ISL)] };
        for (here, there) in [(a, b), (b, a)] {
            let routes = vec![(there as u8 + 1, legs.clone())];
            self.switches[here].handle(Input::Routes(routes));
        }
    }

    fn pass(&mut self, span: Span) {
        self.switches.iter_mut().for_each(|rig| rig.wait(span));
    }
}

/// Permissions that hard zoning must have for the ports known to a switch, computed pair by pair.
fn expected_permissions(rig: &Rig, zones: &ZoneSet) -> (Vec<(FcId, FcId)>, Vec<FcId>) {
    let known: Vec<&NsEntry> = rig.switch.name_server().collect();
    let zoned = |entry: &NsEntry| zones.is_zoned(&entry.identity());
    let mut pairs = Vec::new();
    for s in &known {
        for d in known.iter().filter(|d| Some(d.port_id.domain()) == rig.switch.domain()) {
            let both_zoned = zoned(s) && zoned(d);
            if s.port_id != d.port_id && both_zoned && zones.permits(&s.identity(), &d.identity()) {
                pairs.push((s.port_id, d.port_id));
            }
        }
    }
    let unzoned = |entry: &&&NsEntry| zones.open_default() && !zones.permits_all() && !zoned(entry);
    (pairs, known.iter().filter(unzoned).map(|entry| entry.port_id).collect())
}

fn assert_permissions(rig: &Rig, zones: &ZoneSet) {
    let (pairs, default_zone) = expected_permissions(rig, zones);
    assert_eq!(rig.fib.permitted_pairs(), pairs);
    assert_eq!(rig.fib.default_zone(), default_zone);
    let ids: Vec<_> = rig.fib.ids().collect();
    assert_eq!(ids, rig.switch.logins().collect::<Vec<_>>());
    // Names are unique among the ports known to one switch.
    let names: BTreeSet<Wwpn> = rig.switch.name_server().map(|entry| entry.port_name).collect();
    assert_eq!(names.len(), rig.switch.name_server().count());
    // The table decides according to the rule for any two known ports.
    for s in rig.switch.name_server() {
        for (d, port) in &ids {
            let to = rig.switch.name_server().find(|entry| entry.port_id == *d).expect("known");
            let decision = rig.fib.decide(ISL, s.port_id, *d, 0);
            let allowed = zones.permits(&s.identity(), &to.identity());
            let itself = s.port_id == *d;
            if !itself {
                let expected = match allowed {
                    true => Decision::Forward(Egress::Port(*port)),
                    false => Decision::Drop(DropReason::ZoneDenied),
                };
                assert_eq!(decision, expected, "{} -> {d}", s.port_id);
            }
        }
    }
}

#[derive(Clone, Debug)]
enum Step {
    Flogi { switch: usize, port: u16, name: u64 },
    Fdisc { switch: usize, port: u16, name: u64 },
    Logo { switch: usize, port: u16, n: u8 },
    Register { switch: usize, port: u16 },
    Down { switch: usize, port: u16 },
    Cut { a: usize, b: usize, cut: bool },
    Deliver { from: usize, to: usize },
    DeliverAll,
    Pass,
}

const SWITCHES: usize = 3;
const PORTS: u16 = 3;
const NAMES: u64 = 10;

fn any_step() -> impl Strategy<Value = Step> {
    let (switch, port, name) = (0..SWITCHES, 0..PORTS, 1..=NAMES);
    let at = || (0..SWITCHES, 0..PORTS);
    prop_oneof![
        6 => (switch.clone(), port.clone(), name.clone())
            .prop_map(|(switch, port, name)| Step::Flogi { switch, port, name }),
        6 => (switch, port, name).prop_map(|(switch, port, name)| Step::Fdisc { switch, port, name }),
        3 => (at(), 0..4u8).prop_map(|((switch, port), n)| Step::Logo { switch, port, n }),
        3 => at().prop_map(|(switch, port)| Step::Register { switch, port }),
        2 => at().prop_map(|(switch, port)| Step::Down { switch, port }),
        2 => (0..SWITCHES, 0..SWITCHES, any::<bool>()).prop_map(|(a, b, cut)| Step::Cut { a, b, cut }),
        4 => (0..SWITCHES, 0..SWITCHES).prop_map(|(from, to)| Step::Deliver { from, to }),
        1 => Just(Step::DeliverAll),
        2 => Just(Step::Pass),
    ]
}

fn take(fabric: &mut Fabric, step: &Step) {
    let address = |switch: usize, port: u16, n: u8| FcId::from_parts(switch as u8 + 1, port as u8, n);
    match *step {
        Step::Flogi { switch, port, name } => {
            fabric.switches[switch].flogi(port, name);
        }
        Step::Fdisc { switch, port, name } => {
            let rig = &mut fabric.switches[switch];
            let base = address(switch, port, 0);
            if rig.fib.port_of(base).is_some() && rig.name_of(base) != name {
                rig.fdisc(port, name).unwrap();
            }
        }
        Step::Logo { switch, port, n } => {
            let (rig, id) = (&mut fabric.switches[switch], address(switch, port, n));
            if rig.fib.port_of(id).is_some() {
                let logo = Logo { port_id: id, port_name: Wwpn(rig.name_of(id)) };
                rig.exchange_els(port, id, FcId::F_PORT, Els::Logo(logo)).unwrap();
            }
        }
        Step::Register { switch, port } => {
            let (rig, id) = (&mut fabric.switches[switch], address(switch, port, 0));
            if rig.fib.port_of(id).is_some() {
                rig.take_part(id, 1);
            }
        }
        Step::Down { switch, port } => fabric.switches[switch].down(port),
        Step::Cut { a, b, cut } => fabric.set_cut(a, b, cut),
        Step::Deliver { from, to } => _ = fabric.deliver_one(from, to),
        Step::DeliverAll => fabric.deliver_all(),
        Step::Pass => fabric.pass(Span::from_ms(3)),
    }
    // Each step takes time, so that of two logins with the same name one is newer.
    fabric.pass(Span::from_us(1));
}

fn any_zones() -> impl Strategy<Value = Arc<ZoneSet>> {
    let members = || prop::collection::vec(any_member(), 0..5);
    let principals = prop_oneof![3 => Just(Vec::new()), 1 => prop::collection::vec(any_member(), 1..3)];
    let zone =
        (members(), principals).prop_map(|(members, principals)| Zone { name: "zone".into(), members, principals });
    (prop::collection::vec(zone, 0..5), any::<bool>()).prop_map(|(zones, open)| {
        let default = if open { ZoneDefault::Open } else { ZoneDefault::Closed };
        Arc::new(ZoneSet::new(&Zoning { zones, default }))
    })
}

fn any_member() -> impl Strategy<Value = ZoneMember> {
    let domain = || 1..=SWITCHES as u8;
    prop_oneof![
        8 => (1..=NAMES).prop_map(|name| ZoneMember::PortName(Wwpn(name))),
        1 => (1..=NAMES).prop_map(|name| ZoneMember::NodeName(node_of(name))),
        2 => (domain(), 0..PORTS).prop_map(|(domain, port)| ZoneMember::DomainPort { domain, port }),
        2 => (domain(), 0..PORTS as u8, 0..4u8)
            .prop_map(|(domain, area, port)| ZoneMember::PortId(FcId::from_parts(domain, area, port))),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(192))]

    /// At every moment each table has exactly the permissions that the zones give to the ports
    /// known to its switch. When the links are up again and all messages are delivered, all
    /// switches know exactly the ports that are logged in. When all ports have logged out, no state
    /// is left.
    #[test]
    fn permissions_follow_the_rule_at_every_moment_and_leave_no_state_behind(
        zones in any_zones(),
        steps in prop::collection::vec(any_step(), 0..60),
    ) {
        let mut fabric = Fabric::new(SWITCHES, &zones);
        for step in &steps {
            take(&mut fabric, step);
            for rig in &fabric.switches {
                assert_permissions(rig, &zones);
            }
        }
        for (a, b) in [(0, 1), (0, 2), (1, 2)] {
            fabric.set_cut(a, b, false);
        }
        fabric.deliver_all();
        let logged_in: Vec<FcId> =
            fabric.switches.iter().flat_map(|rig| rig.switch.logins().map(|(id, _)| id)).collect();
        let first: Vec<NsEntry> = fabric.switches[0].switch.name_server().cloned().collect();
        prop_assert_eq!(first.iter().map(|entry| entry.port_id).collect::<Vec<_>>(), logged_in);
        for rig in &fabric.switches {
            assert_permissions(rig, &zones);
            let known: Vec<NsEntry> = rig.switch.name_server().cloned().collect();
            prop_assert_eq!(&known, &first);
        }
        for rig in &mut fabric.switches {
            (0..PORTS).for_each(|port| rig.down(port));
        }
        fabric.deliver_all();
        fabric.pass(Span::from_secs(60));
        for rig in &fabric.switches {
            prop_assert_eq!(rig.switch.name_server().count(), 0);
            prop_assert_eq!(rig.switch.logins().count(), 0);
            prop_assert_eq!(rig.switch.poll_timeout(), None);
            prop_assert_eq!(rig.fib.permissions(), 0);
            prop_assert_eq!(rig.fib.ids().count(), 0);
        }
    }
}

#[test]
fn a_host_finds_a_target_on_another_switch_and_only_then_frames_pass_both_ways() {
    let zones = zone_set(&[&[0x110, 0x220], &[0x220, 0x330]], ZoneDefault::Closed);
    let mut fabric = Fabric::new(2, &zones);
    let host = fabric.switches[0].join(1, 0x110, 2);
    let target = fabric.switches[1].join(2, 0x220, 1);
    let targets = NsRequest::GidFf { domain: 0, area: 0, features: 1, fc4_type: 8 };
    assert_eq!(fabric.switches[0].ns(host, targets.clone()), Err((0x09, 0x0f)));
    let to_target = |fabric: &Fabric| {
        let out = fabric.switches[0].fib.decide(1, host, target, 7);
        let arrival = fabric.switches[1].fib.decide(ISL, host, target, 7);
        (out, arrival)
    };
    let forward = |port| Decision::Forward(Egress::Port(port));
    let denied = Decision::Drop(DropReason::ZoneDenied);
    assert_eq!(to_target(&fabric), (forward(ISL), denied));

    fabric.deliver_all();
    assert_eq!(fabric.switches[0].ns(host, targets), Ok(NsAccept::PortIds(vec![target])));
    assert_eq!(to_target(&fabric), (forward(ISL), forward(2)));
    assert_eq!(fabric.switches[0].fib.decide(ISL, target, host, 7), forward(1));
    // The host is notified of the target by its own switch.
    fabric.switches[0].sent.clear();
    fabric.pass(RSCN_DELAY);
    let page = |format, address| Rscn { pages: vec![RscnPage { qualifier: 0, format, address }] };
    let reported = fabric.switches[0].rscns();
    assert_eq!((reported.len(), reported[0].0, &reported[0].2), (1, host, &page(AddressFormat::Port, target)));
    fabric.switches[0].answer(host, reported[0].1, Els::LsAcc(sanloom_wire::els::LsAcc::Empty));

    // Another port in a zone of the target does not concern the host.
    fabric.switches[1].flogi(3, 0x330);
    fabric.deliver_all();
    fabric.pass(RSCN_DELAY);
    assert_eq!(fabric.switches[0].rscns(), []);

    // The target logs out: permissions are revoked on both sides, and the host is notified.
    fabric.switches[1].down(2);
    fabric.deliver_all();
    assert_eq!(fabric.switches[0].fib.decide(ISL, target, host, 7), denied);
    assert_eq!(fabric.switches[0].fib.permissions(), 0);
    fabric.pass(RSCN_DELAY);
    let reported = fabric.switches[0].rscns();
    assert_eq!((reported.len(), reported[0].0, &reported[0].2), (1, host, &page(AddressFormat::Port, target)));
}

#[test]
fn ports_of_an_unreachable_domain_are_removed_and_return_with_it() {
    let mut fabric = Fabric::new(3, &open());
    let host = fabric.switches[0].join(1, 0x110, 2);
    let near = fabric.switches[1].join(1, 0x220, 1);
    let far = fabric.switches[2].join(1, 0x330, 1);
    fabric.deliver_all();
    fabric.pass(RSCN_DELAY);
    let [(_, ox_id, _)] = fabric.switches[0].rscns_among_logins()[..] else { panic!() };
    fabric.switches[0].answer(host, ox_id, Els::LsAcc(sanloom_wire::els::LsAcc::Empty));

    fabric.set_cut(0, 2, true);
    let seen = |fabric: &mut Fabric| {
        let all = NsRequest::GidFt { domain: 0, area: 0, fc4_type: 8 };
        fabric.switches[0].ns(host, all)
    };
    assert_eq!(seen(&mut fabric), Ok(NsAccept::PortIds(vec![host, near])));
    let to_far = fabric.switches[0].fib.decide(1, host, far, 0);
    assert_eq!(to_far, Decision::Drop(DropReason::NoRoute));
    fabric.switches[0].sent.clear();
    fabric.pass(RSCN_DELAY);
    let [(to, ox_id, rscn)] = &fabric.switches[0].rscns()[..] else { panic!() };
    assert_eq!((*to, rscn.pages[0].address), (host, far));
    fabric.switches[0].answer(host, *ox_id, Els::LsAcc(sanloom_wire::els::LsAcc::Empty));
    // A message of the far switch that arrives meanwhile is ignored.
    let stray = PeerUpdate::Removed { port_id: far };
    fabric.switches[0].handle(Input::Peer(stray));
    assert_eq!(fabric.switches[0].switch.counters().peer_updates_ignored, 1);

    fabric.set_cut(0, 2, false);
    fabric.deliver_all();
    assert_eq!(seen(&mut fabric), Ok(NsAccept::PortIds(vec![host, near, far])));
    fabric.switches[0].sent.clear();
    fabric.pass(RSCN_DELAY);
    let reported = fabric.switches[0].rscns();
    assert_eq!((reported.len(), reported[0].2.pages[0].address), (1, far));
}

#[test]
fn a_departed_domain_is_removed_and_never_the_own_one() {
    let mut fabric = Fabric::new(2, &open());
    let far = fabric.switches[1].join(1, 0x330, 1);
    fabric.deliver_all();
    let here = &mut fabric.switches[0];
    here.handle(Input::Peer(PeerUpdate::DomainGone { domain: 2 }));
    assert_eq!(here.switch.name_server().count(), 0);
    // A switch's own domain is never reported as gone, and no other switch can report its ports.
    here.flogi(1, 0x110);
    here.handle(Input::Peer(PeerUpdate::DomainGone { domain: 1 }));
    here.handle(Input::Peer(PeerUpdate::Removed { port_id: id(1, 0) }));
    assert_eq!(here.switch.name_server().count(), 1);
    assert_eq!(far, FcId::from_parts(2, 1, 0));
}

#[test]
fn the_later_of_two_ports_with_one_name_on_two_switches_stays_everywhere() {
    let mut fabric = Fabric::new(3, &open());
    fabric.switches[0].flogi(1, 0x110);
    fabric.pass(Span::from_us(1));
    let later = fabric.switches[1].flogi(2, 0x110);
    // The third switch may receive the two messages in either order.
    for (from, to) in [(1, 2), (0, 2)] {
        fabric.deliver_one(from, to);
    }
    fabric.deliver_all();
    for rig in &fabric.switches {
        let known: Vec<FcId> = rig.switch.name_server().map(|entry| entry.port_id).collect();
        assert_eq!(known, [later]);
    }
    assert_eq!(fabric.switches[0].switch.logins().count(), 0);
    assert_eq!(fabric.switches[0].fib.ids().count(), 0);
    assert_eq!(fabric.switches[0].switch.counters().implicit_logouts, 1);
    assert_eq!(fabric.switches[0].switch.counters().duplicate_names, 1);
}

#[test]
fn one_of_two_simultaneous_logins_with_one_name_stays() {
    let mut fabric = Fabric::new(2, &open());
    fabric.switches[0].flogi(1, 0x110);
    fabric.switches[1].flogi(1, 0x110);
    fabric.deliver_all();
    let stays = FcId::from_parts(2, 1, 0);
    for rig in &fabric.switches {
        assert_eq!(rig.switch.name_server().map(|e| e.port_id).collect::<Vec<_>>(), [stays]);
    }
}

#[test]
fn a_name_returns_to_the_earlier_port_when_the_later_one_logs_out_without_notifying_it() {
    let mut fabric = Fabric::new(3, &open());
    fabric.set_cut(0, 1, true);
    let earlier = fabric.switches[1].flogi(1, 0x110);
    fabric.pass(Span::from_us(1));
    let later = fabric.switches[0].flogi(1, 0x110);
    fabric.deliver_all();
    let seen = |fabric: &Fabric| fabric.switches[2].switch.name_server().map(|e| e.port_id).collect::<Vec<_>>();
    assert_eq!(seen(&fabric), [later]);
    fabric.switches[0].down(1);
    fabric.deliver_all();
    assert_eq!(seen(&fabric), [earlier]);

    // An earlier port that has become unreachable does not reappear by itself.
    let later = fabric.switches[0].flogi(1, 0x110);
    fabric.deliver_all();
    assert_eq!(seen(&fabric), [later]);
    fabric.set_cut(1, 2, true);
    fabric.switches[0].down(1);
    fabric.deliver_all();
    assert_eq!(seen(&fabric), []);
}

/// Work of one more login, and of its logout, on a switch with `logins` virtual ports in zones of
/// four.
fn work_of_one_more(logins: u64, zones_of: u64) -> [u64; 2] {
    let zoning = Zoning {
        zones: (0..=logins / zones_of)
            .map(|n| zone((0..zones_of).map(|member| 0x1_0000 + n * zones_of + member)))
            .collect(),
        default: ZoneDefault::Closed,
    };
    let mut rig = Rig::new(config(1, Arc::new(ZoneSet::new(&zoning))));
    for n in 0..logins {
        let port = (n / 256) as u16;
        if n % 256 == 0 {
            rig.flogi(port, 0x1_0000 + n);
        } else {
            rig.fdisc(port, 0x1_0000 + n).unwrap();
        }
    }
    let total = |rig: &Rig| {
        let work = rig.switch.work();
        work.zone_members + work.objects + work.permissions + work.notifications
    };
    let before = total(&rig);
    let one_more = rig.flogi(200, 0x1_0000 + logins - 1);
    let between = total(&rig);
    rig.down(200);
    assert_eq!(one_more, id(200, 0));
    [between - before, total(&rig) - between]
}

#[test]
fn the_work_of_a_login_follows_its_zone_mates_and_not_the_number_of_logins() {
    let few = work_of_one_more(512, 4);
    let many = work_of_one_more(8_192, 4);
    assert_eq!(few, many);
    let larger_zones = work_of_one_more(8_192, 16);
    assert!(larger_zones[0] > 3 * many[0] && larger_zones[0] < 6 * many[0], "{larger_zones:?} {many:?}");
}
