//! Forwarding decisions, compared with a direct implementation of the rules.

use proptest::prelude::*;
use sanloom_fc::config::{IslChoice, Switch};
use sanloom_fc::fabric::{Decision, DropReason, Egress, Fib, FibDelta, Leg, PortMode};
use sanloom_wire::FcId;
use std::collections::{BTreeMap, BTreeSet};

const DOMAIN: u8 = 1;
const PORTS: u16 = 4;

fn id(value: u32) -> FcId {
    FcId::new(value)
}

fn forward(port: u16) -> Decision {
    Decision::Forward(Egress::Port(port))
}

fn drop(reason: DropReason) -> Decision {
    Decision::Drop(reason)
}

fn fib(choice: IslChoice, deltas: &[FibDelta]) -> Fib {
    let mut fib = Fib::new(DOMAIN, PORTS, choice);
    for delta in deltas {
        fib.apply(delta);
    }
    fib
}

fn mode(port: u16, mode: PortMode) -> FibDelta {
    FibDelta::PortMode { port, mode }
}

fn own(port: u16, value: u32) -> FibDelta {
    FibDelta::OwnId { port, id: id(value) }
}

/// The table as plain maps, for a direct implementation of the rules.
#[derive(Default)]
struct Model {
    domain: u8,
    modes: BTreeMap<u16, PortMode>,
    loops: BTreeSet<u16>,
    owners: BTreeMap<FcId, u16>,
    pairs: BTreeSet<(FcId, FcId)>,
    default_zone: BTreeSet<FcId>,
    zoning: bool,
    legs: BTreeMap<u8, Vec<Leg>>,
}

impl Model {
    fn apply(&mut self, delta: &FibDelta) {
        match delta.clone() {
            FibDelta::PortMode { port, mode } => {
                if port < PORTS {
                    self.modes.insert(port, mode);
                }
            }
            FibDelta::LoopPort { port, is_loop: true } => {
                if port < PORTS {
                    self.loops.insert(port);
                }
            }
            FibDelta::LoopPort { port, is_loop: false } => {
                self.loops.remove(&port);
            }
            FibDelta::OwnId { port, id } => {
                if port < PORTS && id.domain() == self.domain && self.domain != 0 {
                    self.owners.insert(id, port);
                }
            }
            FibDelta::RemoveId { id } => {
                self.owners.remove(&id);
            }
            FibDelta::Permit { s, d } => {
                self.pairs.insert((s, d));
            }
            FibDelta::Revoke { s, d } => {
                self.pairs.remove(&(s, d));
            }
            FibDelta::JoinDefaultZone { id } => {
                self.default_zone.insert(id);
            }
            FibDelta::LeaveDefaultZone { id } => {
                self.default_zone.remove(&id);
            }
            FibDelta::Domain { domain } => {
                let domain = domain.unwrap_or(0);
                if domain != self.domain {
                    self.domain = domain;
                    self.owners.clear();
                }
            }
            FibDelta::ZoningOn => self.zoning = true,
            FibDelta::ZoningOff => {
                self.zoning = false;
                self.pairs.clear();
                self.default_zone.clear();
            }
            FibDelta::Routes { domain, legs } => {
                self.legs.insert(domain, legs);
            }
        }
    }

    /// Decision with the leg chosen by ingress port, which requires no hash.
    fn decide(&self, ingress: u16, s: FcId, d: FcId) -> Decision {
        let mode = self.modes.get(&ingress).copied().unwrap_or(PortMode::Down);
        if mode == PortMode::Isolated && d == FcId::FABRIC_CONTROLLER {
            return Decision::Local;
        }
        if matches!(mode, PortMode::Down | PortMode::Isolated) {
            return drop(DropReason::PortDown);
        }
        if mode == PortMode::F && self.owners.get(&s) != Some(&ingress) {
            let of_loop = (s.domain(), s.area()) == (0, 0) && self.loops.contains(&ingress);
            let login = (s == FcId::ZERO || of_loop) && d == FcId::F_PORT;
            return if login { Decision::Local } else { drop(DropReason::BadSourceId) };
        }
        let controller = d.domain() == 0xff && d.area() == 0xfc;
        if d.is_well_known() && (!controller || d.port() == self.domain) {
            return Decision::Local;
        }
        if d.domain() != self.domain {
            let domain = if controller { d.port() } else { d.domain() };
            let legs = self.legs.get(&domain).map_or(&[][..], |legs| legs);
            let first = usize::from(ingress) % legs.len().max(1);
            // A frame never leaves through its ingress port.
            let leg = legs.iter().cycle().skip(first).take(legs.len()).find(|leg| **leg != Leg::Port(ingress));
            return match leg {
                None => drop(DropReason::NoRoute),
                Some(Leg::Port(port)) => forward(*port),
                Some(Leg::Bundle(bundle)) => Decision::Forward(Egress::Bundle(*bundle)),
            };
        }
        let Some(&owner) = self.owners.get(&d) else {
            return drop(DropReason::UnknownDestination);
        };
        let in_default = self.default_zone.contains(&s) && self.default_zone.contains(&d);
        if self.zoning && !self.pairs.contains(&(s, d)) && !in_default {
            return drop(DropReason::ZoneDenied);
        }
        forward(owner)
    }
}

/// Addresses of which any two differ in one part.
const IDS: [u32; 16] = [
    0x00_0000, 0x00_0001, 0x00_0100, 0x01_0000, 0x01_0001, 0x01_0100, 0x01_01ff, 0x01_ff00, 0x02_0000, 0x02_0001,
    0xff_fffe, 0xff_fffc, 0xff_fc01, 0xff_fc02, 0xff_fc03, 0xff_ffff,
];

fn any_id() -> impl Strategy<Value = FcId> {
    prop::sample::select(IDS.to_vec()).prop_map(FcId::new)
}

fn any_leg() -> impl Strategy<Value = Leg> {
    prop_oneof![(0..PORTS).prop_map(Leg::Port), (0..2u16).prop_map(Leg::Bundle)]
}

fn any_delta() -> impl Strategy<Value = FibDelta> {
    let modes = prop::sample::select(vec![PortMode::F, PortMode::E, PortMode::Isolated, PortMode::Down]);
    prop_oneof![
        4 => (0..PORTS + 1, modes).prop_map(|(port, mode)| FibDelta::PortMode { port, mode }),
        2 => (0..PORTS + 1, any::<bool>()).prop_map(|(port, is_loop)| FibDelta::LoopPort { port, is_loop }),
        8 => (0..PORTS + 1, any_id()).prop_map(|(port, id)| FibDelta::OwnId { port, id }),
        3 => any_id().prop_map(|id| FibDelta::RemoveId { id }),
        8 => (any_id(), any_id()).prop_map(|(s, d)| FibDelta::Permit { s, d }),
        3 => (any_id(), any_id()).prop_map(|(s, d)| FibDelta::Revoke { s, d }),
        4 => any_id().prop_map(|id| FibDelta::JoinDefaultZone { id }),
        2 => any_id().prop_map(|id| FibDelta::LeaveDefaultZone { id }),
        2 => Just(FibDelta::ZoningOn),
        1 => Just(FibDelta::ZoningOff),
        1 => prop::sample::select(vec![None, Some(DOMAIN), Some(2)]).prop_map(|domain| FibDelta::Domain { domain }),
        4 => (0..4u8, prop::collection::btree_set(any_leg(), 0..4))
            .prop_map(|(domain, legs)| FibDelta::Routes { domain, legs: legs.into_iter().collect() }),
    ]
}

proptest! {
    /// Compares all ports and addresses after every sequence of changes.
    #[test]
    fn every_decision_follows_the_rules(deltas in prop::collection::vec(any_delta(), 0..60)) {
        let mut model = Model { domain: DOMAIN, ..Model::default() };
        let mut fib = Fib::new(DOMAIN, PORTS, IslChoice::Ingress);
        for delta in &deltas {
            model.apply(delta);
            fib.apply(delta);
        }
        for ingress in 0..=PORTS {
            for s in IDS.map(FcId::new) {
                for d in IDS.map(FcId::new) {
                    prop_assert_eq!(
                        fib.decide(ingress, s, d, 0),
                        model.decide(ingress, s, d),
                        "port {} {} -> {}", ingress, s, d
                    );
                }
            }
        }
        prop_assert_eq!(fib.permitted_pairs(), model.pairs.iter().copied().collect::<Vec<_>>());
        prop_assert_eq!(fib.default_zone(), model.default_zone.iter().copied().collect::<Vec<_>>());
        prop_assert_eq!(fib.ids().collect::<Vec<_>>(), model.owners.into_iter().collect::<Vec<_>>());
    }

    /// A driver may cache decisions by epoch, because equal epochs imply equal answers.
    #[test]
    fn an_unchanged_epoch_means_unchanged_answers(
        before in prop::collection::vec(any_delta(), 0..30),
        delta in any_delta(),
    ) {
        let old = fib(IslChoice::Exchange, &before);
        let mut new = old.clone();
        new.apply(&delta);
        prop_assume!(new.epoch() == old.epoch());
        for ingress in 0..=PORTS {
            for s in IDS.map(FcId::new) {
                for d in IDS.map(FcId::new) {
                    prop_assert_eq!(new.decide(ingress, s, d, 7), old.decide(ingress, s, d, 7));
                }
            }
        }
    }
}

#[test]
fn every_change_moves_the_epoch_and_repeating_it_does_not() {
    let mut fib = Fib::new(DOMAIN, PORTS, IslChoice::Ingress);
    let legs = vec![Leg::Port(3)];
    let (s, d) = (id(0x02_0000), id(0x01_0000));
    let changes = [
        mode(0, PortMode::F),
        FibDelta::LoopPort { port: 0, is_loop: true },
        own(0, 0x01_0000),
        FibDelta::ZoningOn,
        FibDelta::Permit { s, d },
        FibDelta::JoinDefaultZone { id: s },
        FibDelta::Routes { domain: 2, legs },
        FibDelta::LeaveDefaultZone { id: s },
        FibDelta::Revoke { s, d },
        FibDelta::ZoningOff,
        FibDelta::RemoveId { id: d },
        FibDelta::Domain { domain: Some(3) },
        FibDelta::Domain { domain: None },
        FibDelta::Routes { domain: 2, legs: vec![] },
        mode(0, PortMode::Down),
    ];
    for (n, change) in (1..).zip(&changes) {
        fib.apply(change);
        assert_eq!(fib.epoch(), n, "{change:?}");
        fib.apply(change);
        assert_eq!(fib.epoch(), n, "{change:?} again");
    }
    assert_eq!(fib.work().deltas, 2 * changes.len() as u64);
    assert_eq!(fib.work().permissions, 4);
}

#[test]
fn a_login_without_an_address_is_local_and_any_other_frame_without_one_is_not() {
    let fib = fib(IslChoice::Ingress, &[mode(0, PortMode::F), own(0, 0x01_0000)]);
    assert_eq!(fib.decide(0, FcId::ZERO, FcId::F_PORT, 0), Decision::Local);
    for d in [FcId::NAME_SERVER, FcId::FABRIC_CONTROLLER, id(0x01_0000)] {
        assert_eq!(fib.decide(0, FcId::ZERO, d, 0), drop(DropReason::BadSourceId));
    }
}

#[test]
fn a_port_may_not_use_the_address_of_another_port() {
    let fib =
        fib(IslChoice::Ingress, &[mode(0, PortMode::F), mode(1, PortMode::F), own(0, 0x01_0000), own(1, 0x01_0100)]);
    assert_eq!(fib.decide(0, id(0x01_0000), id(0x01_0100), 0), forward(1));
    for spoofed in [0x01_0100, 0x01_0001, 0x02_0000, 0xff_fffc] {
        let decision = fib.decide(0, id(spoofed), id(0x01_0100), 0);
        assert_eq!(decision, drop(DropReason::BadSourceId), "{spoofed:06x}");
    }
}

#[test]
fn unzoned_and_open_needs_no_table() {
    let mut fib = fib(IslChoice::Ingress, &[mode(0, PortMode::F), mode(1, PortMode::F)]);
    for port in 0..2 {
        fib.apply(&own(port, 0x01_0000 + u32::from(port)));
    }
    assert_eq!(fib.decide(0, id(0x01_0000), id(0x01_0001), 0), forward(1));
    assert_eq!(fib.permissions(), 0);
    // The empty page, and the page of area 0, which has two ids.
    assert_eq!(fib.table_bytes(), 2 * 512);
}

#[test]
fn an_area_with_one_address_needs_no_page() {
    let mut fib = Fib::new(DOMAIN, 256, IslChoice::Ingress);
    for area in 0..200 {
        fib.apply(&own(area, 0x01_0000 + (u32::from(area) << 8)));
    }
    assert_eq!(fib.table_bytes(), 512);
    fib.apply(&own(7, 0x01_0700));
    fib.apply(&own(8, 0x01_0700));
    assert_eq!((fib.port_of(id(0x01_0700)), fib.port_of(id(0x01_0701))), (Some(8), None));
}

#[test]
fn a_page_is_reused_after_its_last_address_is_removed() {
    let mut fib = Fib::new(DOMAIN, 256, IslChoice::Ingress);
    for area in 0..200 {
        let ids = [0, 1].map(|port| 0x01_0000 + (u32::from(area) << 8) + port);
        ids.iter().for_each(|&id| fib.apply(&own(area, id)));
        assert_eq!(fib.ids().collect::<Vec<_>>(), ids.map(|number| (id(number), area)));
        ids.iter().for_each(|&number| fib.apply(&FibDelta::RemoveId { id: id(number) }));
    }
    assert_eq!(fib.table_bytes(), 2 * 512);
    assert_eq!(fib.ids().count(), 0);
}

#[test]
fn spraying_uses_a_group_and_a_single_leg_does_not() {
    let legs = vec![Leg::Port(2), Leg::Bundle(9)];
    for choice in [IslChoice::Spray, IslChoice::LeastLoaded] {
        let fib = fib(
            choice,
            &[
                mode(0, PortMode::E),
                FibDelta::Routes { domain: 2, legs: legs.clone() },
                FibDelta::Routes { domain: 3, legs: vec![Leg::Port(2)] },
                FibDelta::Routes { domain: 4, legs: vec![Leg::Bundle(9)] },
            ],
        );
        let to = |domain| fib.decide(0, id(0x05_0000), FcId::from_parts(domain, 0, 0), 0);
        let Decision::Forward(Egress::Spray(group)) = to(2) else { panic!("{:?}", to(2)) };
        assert_eq!(fib.spray_members(group), legs);
        assert_eq!(to(3), forward(2));
        assert_eq!(to(4), Decision::Forward(Egress::Bundle(9)));
        assert_eq!(to(5), drop(DropReason::NoRoute));
    }
}

#[test]
fn no_frame_goes_back_over_the_leg_that_it_came_from() {
    let legs = [Leg::Port(1), Leg::Port(2), Leg::Bundle(9)];
    let routes = |domain, legs: &[Leg]| FibDelta::Routes { domain, legs: legs.to_vec() };
    for choice in [IslChoice::Ingress, IslChoice::DevicePair, IslChoice::Exchange, IslChoice::Spray] {
        let modes = (0..=3).map(|port| mode(port, PortMode::E));
        let deltas: Vec<FibDelta> =
            modes.chain([routes(2, &legs), routes(3, &legs[..1]), routes(4, &legs[2..])]).collect();
        let mut fib = fib(choice, &deltas);
        fib.join_bundle(0, 0, 9);
        fib.join_bundle(3, 0, 9);
        let decide = |ingress, domain, n: u32| {
            let s_id = FcId::from_parts(7, 0, (n % 251) as u8);
            fib.decide(ingress, s_id, FcId::from_parts(domain, 0, 0), n as u16)
        };
        for (ingress, back) in [(1, forward(1)), (2, forward(2)), (3, Decision::Forward(Egress::Bundle(9)))] {
            assert!((0..500).all(|n| decide(ingress, 2, n) != back), "{choice:?} {ingress}");
        }
        assert_eq!([1, 2].map(|ingress| decide(ingress, 3, 0)), [drop(DropReason::NoRoute), forward(1)]);
        assert_eq!([0, 3].map(|ingress| decide(ingress, 4, 0)), [drop(DropReason::NoRoute); 2]);
        assert!(fib.leads_back(3, Leg::Bundle(9)) && !fib.leads_back(3, Leg::Port(3)));
    }
}

/// Counts the choices of `frames` over `legs` ports and compares them with an even spread: the sum
/// of squared deviations over the expectation must stay below a bound that a fair die misses about
/// once in 10^5 (chi-square).
fn assert_even(what: &str, legs: u16, frames: impl Iterator<Item = (u32, u32, u16)>, choice: IslChoice) {
    let deltas = [mode(0, PortMode::E), FibDelta::Routes { domain: 9, legs: (1..=legs).map(Leg::Port).collect() }];
    let fib = fib(choice, &deltas);
    let mut counts = vec![0u32; usize::from(legs)];
    for (s, d, ox_id) in frames {
        match fib.decide(0, id(s), id(d), ox_id) {
            Decision::Forward(Egress::Port(port)) => counts[usize::from(port) - 1] += 1,
            other => panic!("{other:?}"),
        }
    }
    let total: u32 = counts.iter().sum();
    let expected = f64::from(total) / f64::from(legs);
    let chi: f64 = counts.iter().map(|&n| (f64::from(n) - expected).powi(2) / expected).sum();
    let freedom = f64::from(legs - 1);
    let bound = freedom + 4.5 * (2.0 * freedom).sqrt() + 12.0;
    assert!(chi < bound, "{what}, {legs} legs: {chi:.1} above {bound:.1}: {counts:?}");
}

#[test]
fn exchanges_of_one_pair_spread_evenly() {
    for legs in [2, 3, 4, 5, 7, 8, 16] {
        for (s, d) in [(0x01_0000, 0x09_0000), (0x01_0300, 0x09_1f00), (0x02_0005, 0x09_00ff)] {
            // Consecutive OX_IDs, as most initiators assign them, and strides of initiators with
            // one number range per queue.
            for stride in [1u16, 2, 16, 256] {
                let frames = (0..2_000u16).map(|n| (s, d, n.wrapping_mul(stride)));
                // A stride of 256 repeats after 256 numbers.
                let frames = frames.take(65_536 / usize::from(stride));
                assert_even("exchanges", legs, frames, IslChoice::Exchange);
            }
        }
    }
}

#[test]
fn device_pairs_spread_evenly() {
    for legs in [2, 3, 4, 8] {
        let pairs = (0..64u32).flat_map(|s| (0..64u32).map(move |d| (0x01_0000 + (s << 8), 0x09_0000 + (d << 8), 0)));
        assert_even("one id per area", legs, pairs, IslChoice::DevicePair);
        let pairs = (0..64u32).flat_map(|s| (0..64u32).map(move |d| (0x01_0000 + s, 0x09_0000 + d, 0)));
        assert_even("virtual ports", legs, pairs, IslChoice::DevicePair);
    }
}

#[test]
fn an_exchange_keeps_its_path_and_a_pair_keeps_its_path() {
    let routes = FibDelta::Routes { domain: 9, legs: (4..8).map(Leg::Port).collect() };
    let exchange = fib(IslChoice::Exchange, &[mode(0, PortMode::E), mode(1, PortMode::E), routes.clone()]);
    let pair = fib(IslChoice::DevicePair, &[mode(0, PortMode::E), mode(1, PortMode::E), routes]);
    let (s, d) = (id(0x01_0000), id(0x09_0000));
    for ox_id in 0..100 {
        assert_eq!(exchange.decide(0, s, d, ox_id), exchange.decide(1, s, d, ox_id));
        assert_eq!(pair.decide(0, s, d, ox_id), pair.decide(1, s, d, 0));
    }
}

/// Number of frames that each pair of switches with these salts sends over each pair of legs, for
/// 2,000 exchanges of one pair of ports.
fn joint_choices(salts: [u64; 2], legs: u16) -> Vec<u32> {
    let deltas = [mode(0, PortMode::E), FibDelta::Routes { domain: 9, legs: (1..=legs).map(Leg::Port).collect() }];
    let fibs = salts.map(|salt| fib(IslChoice::Exchange, &deltas).with_salt(salt));
    let mut counts = vec![0; usize::from(legs * legs)];
    for ox_id in 0..2_000 {
        let ports = fibs.each_ref().map(|fib| match fib.decide(0, id(0x02_0300), id(0x09_1f00), ox_id) {
            Decision::Forward(Egress::Port(port)) => port - 1,
            other => panic!("{other:?}"),
        });
        counts[usize::from(ports[0] * legs + ports[1])] += 1;
    }
    counts
}

#[test]
fn salted_choices_of_two_switches_are_independent() {
    let name = |index| Switch::made_up_wwn(index).0;
    for legs in [2u16, 3, 4, 8] {
        for (a, b) in [(0, 1), (0, 2), (1, 2), (3, 4), (0, 255), (7, 8)] {
            let counts = joint_choices([name(a), name(b)], legs);
            let expected = 2_000.0 / f64::from(legs * legs);
            let chi: f64 = counts.iter().map(|&n| (f64::from(n) - expected).powi(2) / expected).sum();
            let freedom = f64::from(legs * legs - 1);
            let bound = freedom + 4.5 * (2.0 * freedom).sqrt() + 12.0;
            assert!(chi < bound, "switches {a} and {b}, {legs} legs: {chi:.1} above {bound:.1}: {counts:?}");
        }
    }
}

#[test]
fn without_salt_all_switches_choose_alike() {
    let counts = joint_choices([0, 0], 4);
    assert!((0..16).all(|at| (counts[at] > 0) == (at / 4 == at % 4)), "{counts:?}");
}
