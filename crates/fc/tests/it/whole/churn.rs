//! Fabrics with N_Ports that log in and out and zones that change, while links and switches fail.

use super::{Bed, assert_one_fabric, config, in_one_zone, login, seeds, zoned};
use sanloom_fc::config::{Zone, ZoneDefault, ZoneMember, Zoning};
use sanloom_fc::fabric::PortIdentity;
use sanloom_fc::fabric_switch::{Input, IslState};
use sanloom_fc::isolation::Isolation;
use sanloom_fc::zoning::ZoneDatabase;
use sanloom_fc::zoning::server::ZoneChange;
use sanloom_scsi::random::SplitMix64;
use sanloom_scsi::time::Span;
use sanloom_wire::{FcId, Wwpn};

/// Place of an N_Port: switch, port, and a name that is always the same.
#[derive(Clone, Copy, Debug)]
pub struct Slot {
    pub node: usize,
    pub port: u16,
    pub name: u64,
}

/// N_Port that is logged in at a switch.
pub type Login = (Slot, FcId);

pub fn slots(switches: usize) -> Vec<Slot> {
    let of = |node| (0..2).map(move |n| Slot { node, port: 12 + n, name: 0x10 * (node as u64 + 1) + u64::from(n) });
    (0..switches).flat_map(of).collect()
}

pub fn logins(bed: &Bed, slots: &[Slot]) -> Vec<Login> {
    let of = |slot: &Slot| {
        let node = &bed.nodes[slot.node];
        let (id, _) = node.machine.logins().find(|(_, port)| *port == slot.port).filter(|_| node.up)?;
        Some((*slot, id))
    };
    slots.iter().filter_map(of).collect()
}

/// Identity of a port for zone members.
fn identity((slot, id): &Login) -> PortIdentity {
    let (port_name, node_name) = (Wwpn(slot.name), login(slot.name).node_name);
    PortIdentity { port_id: *id, port_name, node_name, domain: id.domain(), port: slot.port }
}

/// Returns whether both ports are in one zone in force at a switch.
fn zoned_at(bed: &Bed, node: usize, one: &Login, other: &Login) -> bool {
    in_one_zone(&bed.nodes[node].machine.zone_database().zoning(), &identity(one), &identity(other))
}

/// Asserts that no frame arrives that the zones of the receiving switch do not permit.
pub fn assert_hard_zoning(bed: &Bed, slots: &[Slot], context: &str) {
    let logins = logins(bed, slots);
    for one @ &(from, id) in &logins {
        for &(_, other) in logins.iter().filter(|(to, _)| to.name != from.name) {
            // Two separate fabrics may have assigned the same address.
            let end = bed.trace(from.node, from.port, id, other);
            let Some(end) = end.filter(|end| *end != (from.node, from.port)) else { continue };
            let at_end = logins.iter().find(|(to, at)| (to.node, to.port) == end && *at == other);
            let another = at_end.unwrap_or_else(|| panic!("{context}: from {id} to {other} leads to {end:?}"));
            assert!(zoned_at(bed, end.0, one, another), "{context}: from {id} to {other}, not in a zone");
        }
    }
}

/// Asserts that connected switches have the same zones and the same ports in their name servers,
/// and that a link that connects none is isolated at both ends.
pub fn assert_joined_or_isolated(bed: &Bed, slots: &[Slot], context: &str) {
    for cable in bed.cables.iter().filter(|cable| !bed.carries(cable)) {
        for (node, port) in cable.ends {
            let state = bed.isl_states(node).into_iter().find(|(at, _)| *at == port).map(|(_, state)| state);
            let isolated =
                matches!(&state, Some(IslState::Isolated(Isolation::ZoneMerge { .. } | Isolation::OtherSide)));
            assert!(isolated, "{context}: port {port} of switch {node} is {state:?}");
        }
    }
    for group in bed.groups() {
        let logins: Vec<Login> =
            logins(bed, slots).into_iter().filter(|(slot, _)| group.contains(&slot.node)).collect();
        let mut expected: Vec<(FcId, u64)> = logins.iter().map(|(slot, id)| (*id, slot.name)).collect();
        expected.sort_unstable();
        assert_one_fabric(bed, &group, context);
        for &node in &group {
            let known: Vec<(FcId, u64)> = bed.names_known(node).iter().map(|(id, name, _)| (*id, name.0)).collect();
            assert_eq!(known, expected, "{context}: names that switch {node} of {group:?} knows");
        }
        for one @ &(from, id) in &logins {
            for another @ &(to, other) in logins.iter().filter(|(to, _)| to.name != from.name) {
                let end = zoned_at(bed, to.node, one, another).then_some((to.node, to.port));
                assert_eq!(bed.trace(from.node, from.port, id, other), end, "{context}: from {id} to {other}");
            }
        }
    }
}

/// A few zones of random ports, by any of their names.
pub fn random_zones(dice: &mut SplitMix64, slots: &[Slot]) -> ZoneDatabase {
    let zone = |name: &str, dice: &mut SplitMix64| {
        let mut members = vec![ZoneMember::PortName(Wwpn(0x999))];
        for slot in slots {
            if dice.chance(50) {
                continue;
            }
            // Address that the port has if its switch gets its preferred domain.
            let id = FcId::from_parts(slot.node as u8 + 1, slot.port as u8, 0);
            let kinds = identity(&(*slot, id)).keys();
            members.push(if dice.chance(50) { kinds[0] } else { kinds[dice.index(kinds.len())] });
        }
        Zone { name: name.to_owned(), members, principals: Vec::new() }
    };
    let zones = ["red", "green", "blue"][..1 + dice.index(3)].iter().map(|name| zone(name, dice)).collect();
    ZoneDatabase::of_zoning(&Zoning { zones, default: ZoneDefault::Closed }, "test")
}

/// Tree of switches with a few more links. With an odd seed, frames overtake each other. With every
/// third seed, the switches accept any domain and may be reconfigured.
fn random_bed(seed: u64, dice: &mut SplitMix64, switches: usize) -> Bed {
    let all = zoned(&[("red", &[0x10, 0x20, 0x30, 0x40])]);
    let any_domain = seed.is_multiple_of(3);
    let configs = (0..switches).map(|n| {
        let mut config = config(n, (!any_domain).then_some(n as u8 + 1), &all);
        (config.domain.allow_rcf, config.domain.auto_reconfigure) = (any_domain, any_domain);
        config
    });
    let mut bed = Bed::new(seed, configs.collect());
    bed.reorders = !seed.is_multiple_of(2);
    let mut next_port = vec![0u16; switches];
    let tree = (1..switches).map(|n| (dice.index(n), n)).collect::<Vec<_>>();
    let more = (0..dice.index(3)).map(|_| (dice.index(switches), dice.index(switches))).collect::<Vec<_>>();
    for (a, b) in tree.into_iter().chain(more).filter(|(a, b)| a != b) {
        bed.connect((a, next_port[a]), (b, next_port[b]));
        next_port[a] += 1;
        next_port[b] += 1;
    }
    bed
}

/// Applies a random event to the fabric.
fn disturb(bed: &mut Bed, dice: &mut SplitMix64, slots: &[Slot]) {
    let slot = slots[dice.index(slots.len())];
    match dice.index(8) {
        0 => {
            let cable = dice.index(bed.cables.len());
            bed.plug(cable, !bed.cables[cable].up);
        }
        1 => match bed.nodes.iter().position(|node| !node.up) {
            Some(down) => bed.power(down, true),
            None => bed.power(slot.node, false),
        },
        2 | 3 if bed.nodes[slot.node].up => {
            let change = ZoneChange::Replace(random_zones(dice, slots));
            bed.input(slot.node, Input::ChangeZones { tag: 0, change });
        }
        4 if bed.nodes[slot.node].up => bed.unplug(slot.node, slot.port),
        _ if bed.nodes[slot.node].up => {
            bed.attempt_login(slot.node, slot.port, slot.name);
        }
        _ => {}
    }
}

pub fn heal(bed: &mut Bed) {
    (bed.loss, bed.lag) = (0, 0);
    for node in 0..bed.nodes.len() {
        if !bed.nodes[node].up {
            bed.power(node, true);
        }
    }
    for cable in 0..bed.cables.len() {
        if !bed.cables[cable].up {
            bed.plug(cable, true);
        }
    }
}

fn churn(seed: u64) {
    let context = format!("seed {seed}");
    let mut dice = SplitMix64(seed);
    let switches = 2 + dice.index(3);
    let slots = slots(switches);
    let mut bed = random_bed(seed, &mut dice, switches);
    bed.run(Span::from_secs(dice.bits() % 20));
    (bed.loss, bed.lag) = (dice.bits() % 10, dice.bits() % 20);
    for _ in 0..24 {
        disturb(&mut bed, &mut dice, &slots);
        let step = Span::from_ms(dice.bits() % 300);
        for _ in 0..1 + dice.index(8) {
            assert_hard_zoning(&bed, &slots, &context);
            bed.run(step);
        }
    }
    heal(&mut bed);
    // A switch that was locked for a change that never completes is unlocked after 90 s.
    bed.run(Span::from_secs(120));
    assert_hard_zoning(&bed, &slots, &context);
    for slot in &slots {
        bed.log_in(slot.node, slot.port, slot.name);
    }
    bed.run(Span::from_secs(60));
    assert_joined_or_isolated(&bed, &slots, &context);
    agree_again(&mut bed, &mut dice, &slots);
    let parted = bed.cables.iter().find(|cable| !bed.carries(cable));
    assert!(parted.is_none(), "{context}: {parted:?} carries nothing although all zones are the same again");
    assert_joined_or_isolated(&bed, &slots, &context);
    for slot in &slots {
        bed.unplug(slot.node, slot.port);
    }
    bed.run(Span::from_secs(30));
    assert_nothing_left(&bed, &context);
}

/// Sets the same zones in every part of the fabric, and re-enables isolated ports.
pub fn agree_again(bed: &mut Bed, dice: &mut SplitMix64, slots: &[Slot]) {
    let zones = random_zones(dice, slots);
    for group in bed.groups() {
        bed.input(group[0], Input::ChangeZones { tag: 1, change: ZoneChange::Replace(zones.clone()) });
    }
    bed.run(Span::from_secs(30));
    for node in 0..bed.nodes.len() {
        for (port, _) in bed.isl_states(node) {
            bed.input(node, Input::Retry { port });
        }
    }
    bed.run(Span::from_secs(90));
}

/// Asserts that no port is logged in, and that no state of former logins is left.
pub fn assert_nothing_left(bed: &Bed, context: &str) {
    for (n, node) in bed.nodes.iter().enumerate() {
        let context = format!("{context}: switch {n}");
        assert_eq!(bed.names_known(n), [], "{context}: names");
        assert_eq!(node.machine.logins().count(), 0, "{context}: logins");
        assert_eq!((node.fib.ids().count(), node.fib.permissions()), (0, 0), "{context}: addresses and permissions");
        assert_eq!(node.machine.open_requests(), 0, "{context}: open requests");
        for domain in 1..=239 {
            assert_eq!(node.machine.names().objects(domain).count(), 0, "{context}: objects of domain {domain}");
        }
    }
}

#[test]
fn hard_zoning_holds_during_all_changes_and_leaves_no_state_behind() {
    seeds(200).for_each(churn);
}

fn one_name_twice(seed: u64) {
    let mut dice = SplitMix64(seed);
    let switches = 2 + dice.index(4);
    let mut bed = random_bed(seed, &mut dice, switches);
    bed.run(Span::from_secs(30));
    let first = dice.index(switches);
    let second = (first + 1 + dice.index(switches - 1)) % switches;
    (bed.loss, bed.lag) = (dice.bits() % 15, dice.bits() % 20);
    for node in [first, second] {
        bed.log_in(node, 12, 0x10);
        bed.run(Span::from_us(dice.bits() % 20_000));
    }
    bed.run(Span::from_secs(1));
    (bed.loss, bed.lag) = (0, 0);
    bed.run(Span::from_secs(60));
    let all = bed.nodes.iter().flat_map(|node| node.machine.logins().collect::<Vec<_>>());
    let left: Vec<FcId> = all.map(|(id, _)| id).collect();
    assert_eq!(left.len(), 1, "seed {seed}: {left:?}");
    for node in 0..switches {
        let known: Vec<FcId> = bed.names_known(node).into_iter().map(|(id, ..)| id).collect();
        assert_eq!(known, left, "seed {seed}: switch {node}");
    }
}

#[test]
fn exactly_one_of_two_ports_with_one_name_stays() {
    seeds(400).for_each(one_name_twice);
}
