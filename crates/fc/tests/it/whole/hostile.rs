//! Unfavourable moments: links that flap during a commit of zones, a principal switch that stops
//! while it assigns domains, and names that log in again while two fabrics merge.

use super::churn::{
    Slot, agree_again, assert_hard_zoning, assert_joined_or_isolated, assert_nothing_left, heal, logins, random_zones,
    slots,
};
use super::reveal::{ask_for_targets, may_meet, shown};
use super::{Bed, assert_one_fabric, config, seeds, zoned};
use sanloom_fc::fabric_switch::{Event, Input};
use sanloom_fc::switch::DuplicateNames;
use sanloom_fc::zoning::server::ZoneChange;
use sanloom_scsi::random::SplitMix64;
use sanloom_scsi::time::Span;
use sanloom_wire::FcId;

/// Initial zones of all switches.
fn first_zones() -> sanloom_fc::config::Zoning {
    zoned(&[("red", &[0x10, 0x20, 0x30, 0x40])])
}

fn log_all_in(bed: &mut Bed, slots: &[Slot], context: &str) {
    for slot in slots {
        let id = bed.attempt_login(slot.node, slot.port, slot.name);
        assert!(id.is_some(), "{context}: {slot:?} is not let in");
    }
}

/// Ends the faults and asserts that the fabric is whole and has no state of former ports.
fn ends_well(bed: &mut Bed, dice: &mut SplitMix64, slots: &[Slot], context: &str) {
    heal(bed);
    bed.run(Span::from_secs(120));
    log_all_in(bed, slots, context);
    bed.run(Span::from_secs(60));
    assert_joined_or_isolated(bed, slots, context);
    agree_again(bed, dice, slots);
    let parted = bed.cables.iter().find(|cable| !bed.carries(cable));
    assert!(parted.is_none(), "{context}: {parted:?} carries nothing although all zones are the same again");
    assert_joined_or_isolated(bed, slots, context);
    for slot in slots {
        bed.unplug(slot.node, slot.port);
    }
    bed.run(Span::from_secs(30));
    assert_nothing_left(bed, context);
}

/// Two parallel links between two switches go down and up while zones are committed.
fn flapping_twins(seed: u64, seen: &mut [u64; 2]) {
    let context = format!("seed {seed}");
    let mut dice = SplitMix64(seed);
    let switches = 2 + dice.index(2);
    let slots = slots(switches);
    let all = first_zones();
    let mut bed = Bed::new(seed, (0..switches).map(|n| config(n, Some(n as u8 + 1), &all)).collect());
    bed.reorders = !seed.is_multiple_of(2);
    bed.connect((0, 0), (1, 0));
    bed.connect((0, 1), (1, 1));
    if switches == 3 {
        bed.connect((1, 2), (2, 0));
    }
    bed.run(Span::from_secs(30));
    log_all_in(&mut bed, &slots, &context);
    bed.run(Span::from_secs(2));
    (bed.loss, bed.lag) = (dice.bits() % 5, dice.bits() % 20);
    let changes = 4;
    for tag in 0..changes {
        let change = ZoneChange::Replace(random_zones(&mut dice, &slots));
        bed.input(dice.index(switches), Input::ChangeZones { tag, change });
        for _ in 0..1 + dice.index(12) {
            // Mostly within the duration of a commit, sometimes as long as the merge of a link
            // takes.
            let pause = if dice.chance(80) { dice.bits() % 500 } else { dice.bits() % 3_000_000 };
            bed.run(Span::from_us(pause));
            let cable = dice.index(2);
            bed.plug(cable, !bed.cables[cable].up);
            assert_hard_zoning(&bed, &slots, &context);
        }
        bed.run(Span::from_ms(dice.bits() % 5_000));
    }
    for (_, _, event) in &bed.events {
        if let Event::ZonesChanged { result, .. } = event {
            seen[usize::from(result.is_ok())] += 1;
        }
    }
    ends_well(&mut bed, &mut dice, &slots, &context);
    for tag in 0..changes {
        let ends = |(_, _, event): &&_| matches!(event, Event::ZonesChanged { tag: ended, .. } if *ended == tag);
        let ended = bed.events.iter().filter(ends).count();
        // The final commits that make all zones equal have tag 1.
        assert!(if tag == 1 { ended > 1 } else { ended == 1 }, "{context}: change {tag} ended {ended} times");
    }
}

#[test]
fn links_between_two_switches_flap_while_zones_are_committed() {
    let mut seen = [0; 2];
    seeds(150).for_each(|seed| flapping_twins(seed, &mut seen));
    println!("{seen:?} changes failed and were committed before all was whole again");
    assert!(seen[1] > 0, "{seen:?}");
}

/// The principal switch stops right after its selection, or while it assigns domains, as hosts log
/// in. It may return.
fn principal_dies(seed: u64) {
    let context = format!("seed {seed}");
    let mut dice = SplitMix64(seed);
    let switches = 3 + dice.index(3);
    let slots = slots(switches);
    let all = first_zones();
    let any_domain = dice.chance(50);
    let configs = (0..switches).map(|n| {
        let mut config = config(n, (!any_domain).then_some(n as u8 + 1), &all);
        (config.domain.allow_rcf, config.domain.auto_reconfigure) = (any_domain, any_domain);
        config
    });
    let mut bed = Bed::new(seed, configs.collect());
    bed.reorders = !seed.is_multiple_of(2);
    let ring = dice.chance(50);
    for n in 1..switches {
        bed.connect((n - 1, 1), (n, 0));
    }
    if ring {
        bed.connect((switches - 1, 1), (0, 0));
    }
    (bed.loss, bed.lag) = (dice.bits() % 5, dice.bits() % 20);
    for _ in 0..1 + dice.index(3) {
        // Wait until a principal switch is selected or, in half of the cases, until a domain is
        // assigned.
        let seen = bed.events.len();
        let expected = dice.chance(50);
        for _ in 0..4_000 {
            let happened = |(_, _, event): &(_, usize, Event)| match event {
                Event::Principal(_) => !expected,
                Event::Domain(domain) => expected && domain.is_some(),
                _ => false,
            };
            if bed.events[seen..].iter().any(happened) {
                break;
            }
            bed.run(Span::from_ms(5));
        }
        bed.run(Span::from_us(dice.bits() % 400));
        let slot = slots[dice.index(slots.len())];
        if bed.nodes[slot.node].up {
            bed.attempt_login(slot.node, slot.port, slot.name);
        }
        let name = (0..switches).find_map(|n| bed.nodes[n].machine.principal().filter(|_| bed.nodes[n].up));
        let principal = (0..switches).find(|n| bed.nodes[*n].up && Some(super::switch_name(*n)) == name).unwrap_or(0);
        bed.power(principal, false);
        for _ in 0..dice.index(6) {
            bed.run(Span::from_us(dice.bits() % 300));
            let slot = slots[dice.index(slots.len())];
            if bed.nodes[slot.node].up {
                bed.attempt_login(slot.node, slot.port, slot.name);
            }
            assert_hard_zoning(&bed, &slots, &context);
        }
        bed.run(Span::from_us(dice.bits() % 20_000_000));
        bed.power(principal, true);
    }
    (bed.loss, bed.lag) = (0, 0);
    bed.run(Span::from_secs(120));
    let everyone: Vec<usize> = (0..switches).collect();
    assert_eq!(bed.groups(), std::slice::from_ref(&everyone), "{context}");
    assert_one_fabric(&bed, &everyone, &context);
    for (slot, id) in logins(&bed, &slots) {
        assert_eq!(Some(id.domain()), bed.nodes[slot.node].machine.domain(), "{context}: {slot:?}");
    }
    ends_well(&mut bed, &mut dice, &slots, &context);
}

#[test]
fn a_principal_switch_fails_while_it_grants_domains_and_hosts_log_in() {
    seeds(150).for_each(principal_dies);
}

/// Virtual ports log in with names that are in use in the other fabric, while the two fabrics
/// merge.
fn names_meet(seed: u64, seen: &mut [u64; 2]) {
    const NAMES: [u64; 3] = [0x10, 0x20, 0x30];
    let context = format!("seed {seed}");
    let mut dice = SplitMix64(seed);
    let all = first_zones();
    let rule = [DuplicateNames::NewWins, DuplicateNames::OldWins, DuplicateNames::Block][dice.index(3)];
    let configs = (0..4).map(|n| {
        let mut config = config(n, Some(n as u8 + 1), &all);
        config.services.policy.duplicate_names = rule;
        config
    });
    let mut bed = Bed::new(seed, configs.collect());
    bed.reorders = !seed.is_multiple_of(2);
    bed.connect((0, 0), (1, 0));
    bed.connect((2, 0), (3, 0));
    // Each switch has a hypervisor with a unique name.
    for node in 0..4 {
        bed.log_in(node, 12, 0x100 + node as u64);
    }
    bed.run(Span::from_secs(30));
    for name in NAMES {
        if dice.chance(70) {
            bed.try_fdisc(dice.index(4), 12, name);
        }
    }
    bed.run(Span::from_secs(1));
    (bed.loss, bed.lag) = (dice.bits() % 8, dice.bits() % 20);
    let bridge = bed.connect((1, 1), (2, 1));
    let joined = |bed: &Bed| bed.carries(&bed.cables[bridge]);
    // Up to the moment when the link carries traffic, or well before.
    let early = dice.chance(30);
    let mut steps = 0;
    while !joined(&bed) && steps < 4_000 && !(early && dice.chance(2)) {
        bed.run(Span::from_ms(5));
        steps += 1;
    }
    for _ in 0..2 + dice.index(6) {
        let name = NAMES[dice.index(NAMES.len())];
        let admitted = bed.try_fdisc(dice.index(4), 12, name).is_some();
        let with_name =
            |node: usize| bed.names_known(node).into_iter().filter(|(_, of, _)| of.0 == name).map(|(id, ..)| id);
        let ids: std::collections::BTreeSet<FcId> = (0..4).flat_map(with_name).collect();
        seen[0] += u64::from(!admitted);
        seen[1] += u64::from(admitted && ids.len() > 1);
        if dice.chance(10) {
            bed.plug(bridge, !bed.cables[bridge].up);
        }
        bed.run(Span::from_us(dice.bits() % 20_000));
    }
    (bed.loss, bed.lag) = (0, 0);
    if !bed.cables[bridge].up {
        bed.plug(bridge, true);
    }
    bed.run(Span::from_secs(120));
    assert!(joined(&bed), "{context}: {:?}", bed.isl_states(1));
    let everyone = [0, 1, 2, 3];
    assert_one_fabric(&bed, &everyone, &context);
    let mut there: Vec<FcId> = Vec::new();
    for node in everyone {
        there.extend(bed.nodes[node].machine.logins().map(|(id, _)| id));
    }
    there.sort_unstable();
    for node in everyone {
        let known = bed.names_known(node);
        let ids: Vec<FcId> = known.iter().map(|(id, ..)| *id).collect();
        assert_eq!(ids, there, "{context}: {rule:?}: objects at switch {node}, and logged-in ports");
        for name in NAMES {
            let ports = known.iter().filter(|(_, of, _)| of.0 == name).count();
            assert!(ports <= 1, "{context}: {rule:?}: {name:x} is there {ports} times");
        }
    }
    for node in everyone {
        bed.unplug(node, 12);
    }
    bed.run(Span::from_secs(30));
    assert_nothing_left(&bed, &context);
}

#[test]
fn names_in_use_log_in_while_two_fabrics_become_one() {
    let mut seen = [0; 2];
    seeds(300).for_each(|seed| names_meet(seed, &mut seen));
    println!("{seen:?} logins were refused, and let in while another port had the name");
    assert!(seen.iter().all(|count| *count > 100), "{seen:?}");
}

/// Ports log in and out and zones change while hosts query the name server. A host may communicate
/// at once with every port in an answer, unless its permission has just been revoked.
fn reported_in_time(seed: u64, seen: &mut [u64; 2]) {
    let context = format!("seed {seed}");
    let mut dice = SplitMix64(seed);
    let switches = 2 + dice.index(3);
    let slots = slots(switches);
    let all = first_zones();
    let mut bed = Bed::new(seed, (0..switches).map(|n| config(n, Some(n as u8 + 1), &all)).collect());
    for n in 1..switches {
        bed.connect((dice.index(n), n as u16), (n, 0));
    }
    bed.run(Span::from_secs(30));
    for _ in 0..12 {
        match dice.index(3) {
            0 => {
                let slot = slots[dice.index(slots.len())];
                bed.unplug(slot.node, slot.port);
            }
            1 => {
                let slot = slots[dice.index(slots.len())];
                bed.attempt_login(slot.node, slot.port, slot.name);
            }
            _ => {
                let change = ZoneChange::Replace(random_zones(&mut dice, &slots));
                bed.input(dice.index(switches), Input::ChangeZones { tag: 0, change });
            }
        }
        let there = logins(&bed, &slots);
        bed.received.clear();
        let mut too_early = Vec::new();
        for _ in 0..60 {
            for (slot, id) in &there {
                ask_for_targets(&mut bed, slot.node, slot.port, *id);
            }
            bed.run(Span::from_us(dice.bits() % 40));
            for (slot, id) in &there {
                for other in shown(&mut bed, slot.node, slot.port) {
                    let Some((to, _)) = there.iter().find(|(_, at)| *at == other && at != id) else { continue };
                    let pair = [(slot.node, slot.port, *id), (to.node, to.port, other)];
                    let meet = may_meet(&bed, pair[0], pair[1]);
                    seen[usize::from(meet)] += 1;
                    if !meet {
                        too_early.push((bed.now, pair));
                    }
                }
            }
        }
        bed.run(Span::from_secs(1));
        let later = too_early.iter().find(|(_, [host, other])| may_meet(&bed, *host, *other));
        assert!(later.is_none(), "{context}: {later:?} was notified of a port before access was permitted");
        assert!((0..switches).all(|n| bed.nodes[n].machine.deferred_queries() == 0), "{context}");
    }
}

#[test]
fn no_rscn_reveals_a_port_before_access_is_permitted() {
    let mut seen = [0; 2];
    seeds(150).for_each(|seed| reported_in_time(seed, &mut seen));
    println!("{seen:?} revealed ports without and with permission");
    assert!(seen[1] > 1_000, "{seen:?}");
}
