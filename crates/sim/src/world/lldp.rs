//! LLDP of a lab: its agents, and their place between the layers.

use super::World;
use crate::capture::ethernet::line_mac;
use crate::lldp::{Lldp, is_used};
use crate::net::Net;
use crate::net::ethernet::{EthernetPlane, Packet};
use sanloom_fc::san::Lab;

/// Returns the agents of a lab, which use a timer of the network; `None` without any.
pub(super) fn new(lab: &Lab, ethernet: &EthernetPlane, timer: u32) -> Option<Box<Lldp>> {
    is_used(lab).then(|| Box::new(Lldp::new(lab, timer, |line| line_mac(ethernet, line))))
}

/// Follows the light of all Ethernet links.
pub(super) fn follow(world: &mut World) {
    with(world, Lldp::follow);
}

/// Handles a frame of LLDP.
pub(super) fn packet(world: &mut World, packet: &Packet) {
    with(world, |lldp, net| lldp.packet(net, packet));
}

/// Handles the timer of the agents.
#[inline(never)]
pub(super) fn timer(world: &mut World) {
    with(world, Lldp::timer);
}

fn with(world: &mut World, call: impl FnOnce(&mut Lldp, &mut Net)) {
    let World { lldp, net, .. } = world;
    if let Some(lldp) = lldp {
        call(lldp, net);
    }
}
