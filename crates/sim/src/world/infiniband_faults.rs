//! Faults of InfiniBand links, switches and interfaces.

use super::World;
use super::faults::lanes;
use super::notes::NoteKind;
use super::plane_faults::chance;
use super::srp;
use crate::net::infiniband::{self, Station};
use crate::net::parts;
use sanloom_fc::config::{InfinibandFault, InfinibandNode};

/// Errors of a line by number: lost packets, damaged packets, lost flow-control packets.
const LOSS: usize = 0;
const DAMAGE: usize = 1;
const FLOW_LOSS: usize = 2;

/// Begins or ends a fault.
pub(super) fn apply(world: &mut World, fault: InfinibandFault, ends: bool) {
    match fault {
        InfinibandFault::LinkDown { link } | InfinibandFault::PortDown { link, .. } => hold(world, link, ends),
        InfinibandFault::LinkUp { link } => {
            world.infiniband_faults.clear(link);
            update(world, link);
        }
        InfinibandFault::SwitchReset { switch } => {
            world.infiniband_faults.stop(switch, ends);
            for link in links_of(world, InfinibandNode::Switch(switch)) {
                update(world, link);
            }
        }
        InfinibandFault::PacketLoss { link, direction, probability } => {
            for line in lanes(link, direction) {
                world.net.infiniband.errors_mut(line)[LOSS] = chance(probability, ends);
            }
        }
        InfinibandFault::CrcErrors { link, direction, probability } => {
            for line in lanes(link, direction) {
                world.net.infiniband.errors_mut(line)[DAMAGE] = chance(probability, ends);
            }
        }
        InfinibandFault::LostCreditUpdates { link, end, probability } => {
            world.net.infiniband.errors_mut(line_from(link, end))[FLOW_LOSS] = chance(probability, ends);
        }
        InfinibandFault::WithheldCredits { link, end } => {
            let line = &world.net.infiniband.lines()[line_from(link, end) as usize];
            if let Station::Interface(interface) = line.from {
                infiniband::hold(&mut world.net, interface, !ends);
            }
        }
    }
}

/// Returns the line on which one end of a link sends.
fn line_from(link: u16, end: u8) -> u32 {
    2 * u32::from(link) + u32::from(end != 0)
}

/// Adds a fault that keeps a link down, or removes it.
fn hold(world: &mut World, link: u16, ends: bool) {
    world.infiniband_faults.hold(link, ends);
    update(world, link);
}

/// Ends the faults of all links, as at the end of a test.
pub(super) fn clear(world: &mut World) {
    for link in 0..world.lab.infiniband.links.len() as u16 {
        world.infiniband_faults.clear(link);
        update(world, link);
    }
}

/// Begins or ends a power failure of a storage system: its links go down, and its connections are
/// lost without a word to the peers.
pub(super) fn power(world: &mut World, storage: u16, on: bool) {
    for link in links_of(world, InfinibandNode::Storage(storage)) {
        hold(world, link, on);
    }
    if !on {
        srp::power_off(world, storage);
    }
}

fn links_of(world: &World, node: InfinibandNode) -> Vec<u16> {
    let links = (0..).zip(&world.lab.infiniband.links);
    links.filter(|(_, link)| link.ends.iter().any(|end| end.node == node)).map(|(number, _)| number).collect()
}

/// Updates the state of a link. It is up if no fault keeps it down and the switches at its ends
/// run.
fn update(world: &mut World, link: u16) {
    let up = world.infiniband_faults.is_up(link, world.lab.infiniband.links[usize::from(link)].switches());
    if up == world.net.infiniband.lines()[2 * usize::from(link)].up {
        return;
    }
    infiniband::set_link(&mut world.net, link.into(), up);
    world.notes.add(parts::turn(&world.net), NoteKind::InfinibandLink { link, up });
    world.infiniband_faults.downtimes.link_changed(link, up, world.net.now());
}
