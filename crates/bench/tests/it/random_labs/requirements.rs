//! The required state of a world in special moments.

use sanloom_bench::random_lab::{expected_paths, generate};
use sanloom_fc::config::Picos;
use sanloom_fc::san::Lab;
use sanloom_sim::world::World;
use std::sync::Arc;

/// Returns a random lab without faults and zones whose machine `host` is created at once and boots
/// for a second.
fn lab_with_a_late_machine() -> (Lab, u16) {
    let is_late = |lab: &Lab, host: &u16| {
        let is_created_late = lab.hosts[usize::from(*host)].virtual_machine.is_some_and(|vm| vm.start.is_some());
        is_created_late && lab.workloads.iter().any(|workload| workload.hosts.contains(host))
    };
    let labs = (0..1_000).map(|seed| generate(seed).lab).filter(|lab| lab.zoning.zones.is_empty());
    let mut found = labs.filter_map(|lab| (0..lab.hosts.len() as u16).find(|host| is_late(&lab, host)).zip(Some(lab)));
    let (host, mut lab) = found.next().expect("some random lab creates a machine while it runs");
    lab.faults.clear();
    if let Some(machine) = &mut lab.hosts[usize::from(host)].virtual_machine {
        (machine.start, machine.boot) = (Some(Picos::ZERO), Picos::SECOND.into());
    }
    (lab, host)
}

#[test]
fn a_machine_needs_paths_only_once_it_has_booted() {
    let (lab, host) = lab_with_a_late_machine();
    let needs_paths = |world: &World| expected_paths(world).iter().any(|&(of, _, _, usable)| of == host && usable);
    for (heal_at_ms, expected) in [(999, false), (1_001, true)] {
        let mut world = World::new(Arc::new(lab.clone()));
        world.log_in();
        world.start();
        world.run_until(world.start_ps + Picos::from_ms(heal_at_ms).0);
        world.heal();
        world.run_until(world.start_ps + Picos::from_secs(2).0);
        assert_eq!(needs_paths(&world), expected, "all steps after {heal_at_ms} ms are cancelled");
    }
}
