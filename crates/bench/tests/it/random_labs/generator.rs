//! Generated labs: valid, repeatable, and covering all kinds of labs.

use sanloom_bench::random_lab::{generate, generate_dual};
use sanloom_fc::config::{FaultKind, Node};
use std::collections::BTreeSet;

#[test]
fn every_random_lab_is_valid() {
    for seed in 0..2_000 {
        for trial in [generate(seed), generate_dual(seed)] {
            let problems = trial.lab.validate();
            assert!(problems.is_empty(), "seed {seed}: {problems:#?}\n{:#?}", trial.lab);
            assert!(trial.heal_at <= trial.lab.run.duration);
        }
    }
}

/// Otherwise each attempt of a large read over a long link with few credits loses its last frames.
#[test]
fn a_full_switch_drains_to_any_link_within_the_hold_time() {
    for seed in 0..2_000 {
        let lab = generate(seed).lab;
        for link in &lab.links {
            let round_trip_ps = 2 * (link.propagation.0 + link.rate.time_of(2_200).0);
            for (end, far) in [(0, 1), (1, 0)].map(|(end, far)| (&link.ends[end], &link.ends[far])) {
                let Node::Switch(_) = end.node else { continue };
                let ends = lab.links.iter().flat_map(|link| &link.ends).filter(|other| other.node == end.node);
                let frames: u64 = ends.map(|end| u64::from(end.bb_credit)).sum();
                let drained_ps = frames * (round_trip_ps / u64::from(far.bb_credit));
                let held_ps = lab.timers.hold_time.0;
                assert!(drained_ps <= held_ps, "seed {seed}: {} takes {drained_ps} of {held_ps} ps", link.name);
            }
        }
    }
}

#[test]
fn a_seed_names_one_lab_and_another_seed_another() {
    for seed in 0..100 {
        assert_eq!(generate(seed), generate(seed));
        assert_ne!(generate(seed).lab.run.seed, generate(seed + 1).lab.run.seed);
    }
}

#[test]
fn two_hundred_seeds_contain_every_fault_and_every_kind_of_switch() {
    let mut faults = BTreeSet::new();
    let mut kinds = BTreeSet::new();
    let (mut bundles, mut zones, mut idle, mut dual) = (0, 0, 0, 0);
    let (mut machines, mut changes, mut costs) = (0, 0, 0);
    for seed in 0..200 {
        let lab = generate(seed).lab;
        faults.extend(lab.faults.iter().map(|fault| name_of(&fault.kind)));
        for switch in &lab.switches {
            kinds.insert(format!("{:?} {:?}", switch.forwarding, switch.queueing));
            kinds.insert(format!("{:?} {:?}", switch.arbitration, switch.isl_choice));
        }
        bundles += usize::from(lab.links.iter().any(|link| link.bundle.is_some()));
        zones += usize::from(!lab.zoning.zones.is_empty());
        idle += usize::from(lab.workloads.is_empty());
        machines += lab.hosts.iter().filter(|host| host.virtual_machine.is_some()).count();
        changes += lab.changes.len();
        costs += usize::from(lab.switches.windows(2).any(|s| s[0].joining.cost_rule != s[1].joining.cost_rule));
        dual += usize::from(generate_dual(seed).lab.hosts.iter().all(|host| host.hbas.len() == 2));
    }
    assert_eq!(faults.len(), 11, "{faults:?}");
    assert_eq!(kinds.len(), 2 * 3 + 2 * 4, "{kinds:?}");
    assert!(bundles > 20 && zones > 20 && idle < 40 && dual == 200, "{bundles} {zones} {idle} {dual}");
    assert!(machines > 100 && changes > 30 && costs > 30, "{machines} {changes} {costs}");
}

fn name_of(kind: &FaultKind) -> &'static str {
    match kind {
        FaultKind::LinkDown { .. } => "link-down",
        FaultKind::LinkUp { .. } => "link-up",
        FaultKind::PortDown { .. } => "port-down",
        FaultKind::SwitchReset { .. } => "switch-reset",
        FaultKind::FrameLoss { .. } => "frame-loss",
        FaultKind::CrcErrors { .. } => "crc-errors",
        FaultKind::SlowReceiver { .. } => "slow-receiver",
        FaultKind::WithheldCredits { .. } => "withheld-credits",
        FaultKind::LostRRdy { .. } => "lost-r-rdy",
        FaultKind::VmMove { .. } => "vm-move",
        FaultKind::VmStop { .. } => "vm-stop",
        FaultKind::DuplicateName { .. } => "duplicate-name",
        FaultKind::ForeignAddress { .. } => "foreign-address",
        FaultKind::DiskFailure { .. } => "disk-failure",
        FaultKind::LatentError { .. } => "latent-error",
        FaultKind::PowerFailure { .. } => "power-failure",
        FaultKind::ControllerFailure { .. } => "controller-failure",
        FaultKind::CacheBattery { .. } => "cache-battery",
        FaultKind::OutOfBand(_) => "out-of-band",
        FaultKind::Ethernet(_) => "ethernet",
        FaultKind::Infiniband(_) => "infiniband",
    }
}
