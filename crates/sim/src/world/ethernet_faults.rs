//! Faults of Ethernet links and switches.

use super::World;
use super::downtime::Downtimes;
use super::fcoe;
use super::iscsi;
use super::notes::NoteKind;
use super::schedule::LinkFaults;
use crate::net::ethernet::Station;
use crate::net::parts;
use sanloom_fc::config::{Direction, EthernetFault, EthernetNode, Picos};
use std::collections::BTreeMap;

/// State of the faults of Ethernet.
#[derive(Default)]
pub struct EthernetFaults {
    links: LinkFaults,
    /// Faults that stop each switch.
    switches: LinkFaults,
    pub downtimes: Downtimes,
    /// Time since which the Ethernet below a virtual link is broken, and whether the link has ended
    /// because of it, by number of the link.
    pub(super) broken: BTreeMap<u16, (u64, bool)>,
}

impl EthernetFaults {
    /// Returns the state of a number of links and switches without faults.
    pub fn new(links: usize, switches: usize) -> EthernetFaults {
        EthernetFaults {
            links: LinkFaults::new(links),
            switches: LinkFaults::new(switches),
            downtimes: Downtimes::new(links),
            broken: BTreeMap::new(),
        }
    }
}

/// Begins or ends a fault.
pub(super) fn apply(world: &mut World, fault: EthernetFault, ends: bool) {
    match fault {
        EthernetFault::LinkDown { link } | EthernetFault::PortDown { link, .. } => hold(world, link, ends),
        EthernetFault::LinkUp { link } => {
            world.ethernet_faults.links.clear(link);
            update(world, link);
        }
        EthernetFault::SwitchReset { switch } => {
            match ends {
                true => world.ethernet_faults.switches.end(switch),
                false => world.ethernet_faults.switches.begin(switch),
            }
            update_all(world, EthernetNode::Switch(switch));
        }
        EthernetFault::FrameLoss { link, direction, probability } => {
            for line in lines(link, direction) {
                world.net.ethernet.errors_mut(line).loss = chance(probability, ends);
            }
        }
        EthernetFault::FcsErrors { link, direction, probability } => {
            for line in lines(link, direction) {
                world.net.ethernet.errors_mut(line).damage = chance(probability, ends);
            }
        }
        EthernetFault::Reordering { link, direction, probability, delay: Picos(late_ps) } => {
            for line in lines(link, direction) {
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
    match ends {
        true => world.ethernet_faults.links.end(link),
        false => world.ethernet_faults.links.begin(link),
    }
    update(world, link);
}

/// Ends the faults of all links, as at the end of a test.
pub(super) fn clear(world: &mut World) {
    for link in 0..world.lab.ethernet_links.len() as u16 {
        world.ethernet_faults.links.clear(link);
        update(world, link);
    }
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
    let faults = &world.ethernet_faults;
    let is_off = |(_, switch)| faults.switches.is_down(switch);
    let up = !faults.links.is_down(link) && !world.lab.ethernet_links[usize::from(link)].switches().any(is_off);
    if up == world.net.ethernet.lines()[2 * usize::from(link)].up {
        return;
    }
    world.net.set_ethernet_link(link.into(), up);
    world.notes.add(parts::turn(&world.net), NoteKind::EthernetLink { link, up });
    world.ethernet_faults.downtimes.link_changed(link, up, world.net.now());
    fcoe::update(world);
}

/// Returns a probability in 2^-32; 0 after the end of the fault.
fn chance(probability: f64, ends: bool) -> u32 {
    if ends { 0 } else { (probability * 4_294_967_296.0).min(f64::from(u32::MAX)) as u32 }
}

fn lines(link: u16, direction: Direction) -> impl Iterator<Item = u32> {
    let first = 2 * u32::from(link);
    let chosen = match direction {
        Direction::Forward => first..first + 1,
        Direction::Backward => first + 1..first + 2,
        Direction::Both => first..first + 2,
    };
    chosen.into_iter()
}
