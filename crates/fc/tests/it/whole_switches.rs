//! Whole switches, from link-up to a name at the other switch. For more seeds set
//! `SANLOOM_SEEDS=5000`, starting at `SANLOOM_FIRST_SEED=1000`.

use crate::whole::{Bed, assert_agree, config, line, open, seeds, switch_name, zoned};
use sanloom_fc::fabric_switch::{Event, Input, IslState};
use sanloom_fc::isolation::Isolation;
use sanloom_scsi::random::SplitMix64;
use sanloom_scsi::time::Span;
use sanloom_wire::arbitrated_loop::AlPa;

#[test]
fn three_switches_in_a_line_become_one_fabric_with_all_names() {
    let mut bed = line(3);
    let ids = [bed.log_in(0, 5, 0xa), bed.log_in(2, 6, 0xb)];
    bed.run(Span::from_secs(3));
    assert_agree(&bed, &[(0, 5, ids[0], 0xa), (2, 6, ids[1], 0xb)], "after three seconds");
    assert!(bed.events.iter().all(|(_, _, event)| !matches!(event, Event::Isolated { .. })));
}

#[test]
fn the_ports_of_a_loop_are_known_at_the_other_switch() {
    let mut bed = line(2);
    let loop_up = |values: &[u8]| Input::LoopUp {
        port: 5,
        al_pas: values.iter().map(|&value| AlPa::new(value).expect("an AL_PA")).collect(),
    };
    bed.input(0, loop_up(&[0x01, 0x02]));
    let first = bed.log_in_on_loop(0, 5, 0x01, 0xa);
    let second = bed.log_in_on_loop(0, 5, 0x02, 0xb);
    let far = bed.log_in(1, 6, 0xc);
    bed.run(Span::from_secs(3));
    let far = (1, 6, far, 0xc);
    assert_agree(&bed, &[(0, 5, first, 0xa), (0, 5, second, 0xb), far], "after three seconds");
    bed.input(0, loop_up(&[0x02]));
    bed.run(Span::from_secs(3));
    assert_agree(&bed, &[(0, 5, second, 0xb), far], "after a port was pulled");
    bed.unplug(0, 5);
    bed.run(Span::from_secs(3));
    assert_agree(&bed, &[far], "after the loop broke");
}

#[test]
fn ports_that_log_in_while_the_fabric_forms_are_known_everywhere() {
    let mut bed = line(3);
    let mut ports = Vec::new();
    for n in 0..4u16 {
        for node in [0, 2] {
            let name = 0x100 * (node as u64 + 1) + u64::from(n);
            ports.push((node, 4 + n, bed.log_in(node, 4 + n, name), name));
            bed.run(Span::from_ms(3));
        }
    }
    bed.run(Span::from_secs(15));
    assert_agree(&bed, &ports, "after fifteen seconds");
}

#[test]
fn zones_that_contradict_each_other_isolate_the_link_with_the_zone_named() {
    let zones = [zoned(&[("payroll", &[1, 2])]), zoned(&[("payroll", &[1, 3])])];
    let mut bed = Bed::new(1, vec![config(0, Some(1), &zones[0]), config(1, Some(2), &zones[1])]);
    bed.connect((0, 0), (1, 0));
    bed.run(Span::from_secs(5));
    for node in 0..2 {
        let states = bed.isl_states(node);
        let [(0, IslState::Isolated(Isolation::ZoneMerge { conflict }))] = &states[..] else { panic!("{states:?}") };
        assert!(conflict.contains("payroll"), "switch {node}: {conflict}");
    }
}

#[test]
fn one_domain_with_two_owners_isolates_the_link() {
    let mut bed = Bed::new(1, (0..2).map(|n| config(n, Some(9), &open())).collect());
    bed.connect((0, 0), (1, 0));
    bed.run(Span::from_secs(5));
    for node in 0..2 {
        assert_eq!(bed.isl_states(node), [(0, IslState::Isolated(Isolation::DomainOverlap))]);
    }
}

#[test]
fn switches_without_a_domain_of_their_own_get_different_ones() {
    let mut bed = Bed::new(1, (0..4).map(|n| config(n, None, &open())).collect());
    for n in 1..4 {
        bed.connect((n - 1, 1), (n, 0));
    }
    bed.run(Span::from_secs(40));
    let mut domains: Vec<_> = bed.nodes.iter().filter_map(|node| node.machine.domain()).collect();
    domains.sort_unstable();
    domains.dedup();
    assert_eq!(domains.len(), 4);
    assert_eq!(bed.nodes[3].machine.principal(), Some(switch_name(0)));
}

#[test]
fn random_fabrics_agree_on_principal_domains_paths_and_names_after_their_faults() {
    seeds(600).for_each(random_fabric);
}

fn random_fabric(seed: u64) {
    let mut dice = SplitMix64(seed);
    let switches = 2 + dice.index(5);
    let mut bed = Bed::new(seed, (0..switches).map(|n| config(n, Some(n as u8 + 1), &open())).collect());
    let mut next_port = vec![0u16; switches];
    let mut link = |bed: &mut Bed, a: usize, b: usize| {
        bed.connect((a, next_port[a]), (b, next_port[b]));
        next_port[a] += 1;
        next_port[b] += 1;
    };
    for n in 1..switches {
        link(&mut bed, dice.index(n), n);
    }
    for _ in 0..dice.index(4) {
        let (a, b) = (dice.index(switches), dice.index(switches));
        if a != b {
            link(&mut bed, a, b);
        }
    }
    (bed.loss, bed.lag) = (dice.bits() % 15, dice.bits() % 20);
    bed.reorders = !seed.is_multiple_of(2);
    let mut down: Option<usize> = None;
    for _ in 0..6 {
        match dice.index(3) {
            0 => {
                let cable = dice.index(bed.cables.len());
                bed.plug(cable, !bed.cables[cable].up);
            }
            1 => match down.take() {
                Some(node) => bed.power(node, true),
                None => {
                    let node = dice.index(switches);
                    bed.power(node, false);
                    down = Some(node);
                }
            },
            _ => {}
        }
        bed.run(Span::from_ms(dice.bits() % 3_000));
    }
    (bed.loss, bed.lag) = (0, 0);
    if let Some(node) = down {
        bed.power(node, true);
    }
    for cable in 0..bed.cables.len() {
        if !bed.cables[cable].up {
            bed.plug(cable, true);
        }
    }
    bed.run(Span::from_secs(20));
    let mut ports = Vec::new();
    for node in 0..switches {
        let name = 0x50 + node as u64;
        ports.push((node, 12, bed.log_in(node, 12, name), name));
    }
    bed.run(Span::from_secs(60));
    for node in 0..switches {
        for (port, state) in bed.isl_states(node) {
            assert_eq!(state, IslState::Up, "seed {seed}: switch {node} port {port}");
        }
    }
    assert_agree(&bed, &ports, &format!("seed {seed}"));
}
