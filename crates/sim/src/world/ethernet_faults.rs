//! Faults of Ethernet links and switches.

use super::World;
use super::faults::lanes;
use super::fcoe;
use super::iscsi;
use super::lldp;
use super::notes::NoteKind;
use super::plane_faults::chance;
use crate::net::ethernet::Station;
use crate::net::parts;
use sanloom_fc::config::{EthernetFault, EthernetNode, Picos};

/// Begins or ends a fault.
pub(super) fn apply(world: &mut World, fault: EthernetFault, ends: bool) {
    match fault {
        EthernetFault::LinkDown { link } | EthernetFault::PortDown { link, .. } => {
            hold(world, link, ends);
            fcoe::update(world);
        }
        EthernetFault::LinkUp { link } => {
            world.ethernet_faults.clear(link);
            update(world, link);
            fcoe::update(world);
        }
        EthernetFault::SwitchReset { switch } => {
            world.ethernet_faults.stop(switch, ends);
            update_all(world, EthernetNode::Switch(switch));
            fcoe::update(world);
        }
        EthernetFault::FrameLoss { link, direction, probability } => {
            for line in lanes(link, direction) {
                world.net.ethernet.errors_mut(line).loss = chance(probability, ends);
            }
            fcoe::update(world);
        }
        EthernetFault::FcsErrors { link, direction, probability } => {
            for line in lanes(link, direction) {
                world.net.ethernet.errors_mut(line).damage = chance(probability, ends);
            }
            fcoe::update(world);
        }
        EthernetFault::Reordering { link, direction, probability, delay: Picos(late_ps) } => {
            for line in lanes(link, direction) {
                let errors = world.net.ethernet.errors_mut(line);
                (errors.lateness, errors.late_ps) = (chance(probability, ends), late_ps);
            }
        }
        EthernetFault::PauseStorm { link, end, priorities } => {
            let line = &world.net.ethernet.lines()[2 * usize::from(link) + usize::from(end != 0)];
            if let Station::Interface(interface) = line.from {
                world.net.set_pause_storm(interface, if ends { 0 } else { priorities });
            }
        }
    }
}

/// Adds a fault that keeps a link down, or removes it.
fn hold(world: &mut World, link: u16, ends: bool) {
    world.ethernet_faults.hold(link, ends);
    update(world, link);
}

/// Ends the faults of all links, as at the end of a test.
pub(super) fn clear(world: &mut World) {
    for link in 0..world.lab.ethernet_links.len() as u16 {
        world.ethernet_faults.clear(link);
        update(world, link);
    }
    fcoe::update(world);
}

/// Begins or ends a power failure of a storage system: its links go down, and its connections are
/// lost without a word to the peers.
pub(super) fn power(world: &mut World, storage: u16, on: bool) {
    let node = EthernetNode::Storage(storage);
    let of_node = |link: &u16| world.lab.ethernet_links[usize::from(*link)].ends.iter().any(|end| end.node == node);
    let links: Vec<u16> = (0..world.lab.ethernet_links.len() as u16).filter(of_node).collect();
    for link in links {
        hold(world, link, on);
    }
    fcoe::update(world);
    if !on {
        iscsi::power_off(world, storage);
    }
}

fn update_all(world: &mut World, node: EthernetNode) {
    let lab = world.lab.clone();
    for (number, link) in (0..).zip(&lab.ethernet_links) {
        if link.ends.iter().any(|end| end.node == node) {
            update(world, number);
        }
    }
}

/// Updates the state of a link. A link is up if no fault keeps it down and the switches at its ends
/// run.
fn update(world: &mut World, link: u16) {
    let up = world.ethernet_faults.is_up(link, world.lab.ethernet_links[usize::from(link)].switches());
    if up == world.net.ethernet.lines()[2 * usize::from(link)].up {
        return;
    }
    world.net.set_ethernet_link(link.into(), up);
    lldp::follow(world);
    world.notes.add(parts::turn(&world.net), NoteKind::EthernetLink { link, up });
    world.ethernet_faults.downtimes.link_changed(link, up, world.net.now());
}
