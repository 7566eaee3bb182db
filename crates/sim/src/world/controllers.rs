//! Failures of the controllers of storage systems, and the moves of LUNs that follow.

use super::World;
use super::host;
use super::notes::NoteKind;
use super::schedule::Step;
use crate::net::parts;
use sanloom_fc::config::Node;

/// Begins or ends a fault of a controller.
pub(super) fn fault(world: &mut World, storage: u16, number: u8, ends: bool) {
    let now_ps = world.net.now();
    if !ends {
        let partners = world.storage.systems[usize::from(storage)].controller.partners();
        if partners.is_some_and(|partners| partners.works(number)) {
            set_links(world, storage, number, false);
        }
        let mut lost = Vec::new();
        world.storage.systems[usize::from(storage)].controller.controller_down(now_ps, number, &mut lost);
        world.storage.end_commands(&mut world.net, storage, lost);
    } else if world.storage.systems[usize::from(storage)].controller.controller_up(now_ps, number) {
        set_links(world, storage, number, true);
        let failback = world.lab.storage[usize::from(storage)].controllers.failback;
        if let Some(failback) = failback {
            world.schedule.add(now_ps.saturating_add(failback.0), Step::FailBack(storage, number));
        }
    }
    world.storage.arm_controller(&mut world.net, storage);
    plan_moves(world, storage);
    world.process_completions();
}

/// Takes the links of a controller down or up.
fn set_links(world: &mut World, storage: u16, number: u8, up: bool) {
    let lab = world.lab.clone();
    let config = &lab.storage[usize::from(storage)];
    let of_controller = |port: u16| config.controllers.of_port(port, config.ports.len()) == number;
    for (link, at) in lab.links.iter().zip(0..) {
        if link.ends.iter().any(|end| end.node == Node::Storage(storage) && of_controller(end.port)) {
            match up {
                true => world.link_faults.end(at),
                false => world.link_faults.begin(at),
            }
            world.update_link(at);
        }
    }
}

/// The LUNs of a controller begin to move back to it, if it works.
pub(super) fn fail_back(world: &mut World, storage: u16, number: u8) {
    let now_ps = world.net.now();
    if world.storage.systems[usize::from(storage)].controller.fail_back(now_ps, number) {
        plan_moves(world, storage);
    }
}

/// Schedules the end of the next move of LUNs.
fn plan_moves(world: &mut World, storage: u16) {
    let partners = world.storage.systems[usize::from(storage)].controller.partners();
    if let Some(at_ps) = partners.map(|partners| partners.next_move_ps()).filter(|at_ps| *at_ps < u64::MAX) {
        world.schedule.add(at_ps, Step::EndMoves(storage));
    }
}

/// Ends the moves that are due by `until_ps`. Hosts learn of it when they check their paths.
pub(super) fn end_moves(world: &mut World, storage: u16, until_ps: u64) {
    let now_ps = world.net.now();
    let moved = world.storage.systems[usize::from(storage)].controller.end_moves(now_ps, until_ps);
    for home in moved {
        let partners = world.storage.systems[usize::from(storage)].controller.partners();
        let Some(owner) = partners.and_then(|partners| partners.owner_of_home(home)) else { continue };
        world.notes.add(parts::turn(&world.net), NoteKind::Takeover { storage, home, owner });
        let (hosts, mut env) = world.split_hosts();
        host::lun_owner_changed(hosts, &mut env, storage, home, owner);
    }
    world.storage.arm_controller(&mut world.net, storage);
    plan_moves(world, storage);
}

/// Ends all moves of LUNs at once, and moves all back to their own controllers.
pub(super) fn settle(world: &mut World) {
    for storage in 0..world.storage.systems.len() as u16 {
        let count = world.lab.storage[usize::from(storage)].controllers.count;
        if count < 2 {
            continue;
        }
        end_moves(world, storage, u64::MAX);
        (0..count).for_each(|number| fail_back(world, storage, number));
        end_moves(world, storage, u64::MAX);
    }
}
