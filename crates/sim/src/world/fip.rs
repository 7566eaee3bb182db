//! FIP of a lab: which links it controls, and what their ends do.

use super::World;
use super::faults::update_link_state;
use super::fcoe;
use crate::fip::{Due, EndPlan, Fip, FipPlan};
use crate::net::ethernet::Packet;
use crate::net::{End, Net};
use sanloom_fc::config::{LinkEnd, Node};
use sanloom_fc::san::{Lab, fcoe_paths, forwarder_mismatch};
use sanloom_wire::FcId;

/// Returns whether a lab has virtual links of FCoE over its Ethernet.
pub(super) fn is_used(lab: &Lab) -> bool {
    lab.links.iter().any(|link| link.fcoe.is_some_and(|link| link.fcip.is_none()))
}

/// Returns the virtual links of a lab without light, which use a timer of the network; `None`
/// without any.
pub(super) fn new(lab: &Lab, timer: u32) -> Option<Box<Fip>> {
    let vlans = lab.vlan_numbers();
    let paths = fcoe_paths(lab).into_iter().filter(|path| path.config.fcip.is_none());
    let plans: Vec<FipPlan> = paths
        .map(|path| {
            let ends = &lab.links[usize::from(path.link)].ends;
            let end = |side: usize| EndPlan {
                interface: path.interfaces[side],
                period_ps: match ends[side].node {
                    Node::Switch(switch) => Some(lab.live.fcoe(switch).keep_alive.0),
                    Node::Host(_) | Node::Storage(_) | Node::Loop(_) => None,
                },
            };
            FipPlan {
                link: path.link,
                ends: [end(0), end(1)],
                priority: path.config.priority,
                vlan: vlans.number(path.config.vlan),
                has_tag: path.config.has_tag(),
                is_foreign: forwarder_mismatch(lab, &lab.links[usize::from(path.link)]).is_some(),
            }
        })
        .collect();
    (!plans.is_empty()).then(|| Box::new(Fip::new(plans, lab.links.len(), timer, lab.run.seed)))
}

/// Returns whether FIP decides about a link.
pub(super) fn controls(world: &World, link: u16) -> bool {
    world.fip.as_ref().is_some_and(|fip| fip.plan(link).is_some())
}

/// Returns whether FIP holds a link down.
pub(super) fn holds(world: &World, link: u16) -> bool {
    world.fip.as_ref().and_then(|fip| fip.is_up(link)) == Some(false)
}

/// Returns whether a virtual link is down whose ends the Ethernet joins, so that it will come up.
pub(super) fn is_discovering(world: &World) -> bool {
    let is_down = |fip: &&Fip| fip.plans().any(|plan| fip.is_up(plan.link) == Some(false));
    let Some(fip) = world.fip.as_deref().filter(is_down) else { return false };
    fcoe::paths_without(world, |line| !line.up).into_iter().any(|path| {
        let has_light = |end: usize| has_light(world, path.link, path.interfaces[end], end);
        let is_foreign = fip.plan(path.link).is_some_and(|plan| plan.is_foreign);
        fip.is_up(path.link) == Some(false) && !is_foreign && path.is_joined && has_light(0) && has_light(1)
    })
}

/// Returns whether an end of a virtual link can send and receive.
fn has_light(world: &World, link: u16, interface: u16, end: usize) -> bool {
    let LinkEnd { node, port, .. } = world.lab.links[usize::from(link)].ends[end];
    let runs = match node {
        Node::Switch(switch) => {
            let operator = world.control.operator.as_ref();
            world.control.switches[usize::from(switch)].up && !operator.is_some_and(|own| own.is_disabled(switch, port))
        }
        Node::Host(_) | Node::Storage(_) | Node::Loop(_) => true,
    };
    let is_held = world.link_faults.is_down(link) || world.dark_links.contains(&link);
    runs && !is_held && world.net.ethernet.has_light(interface)
}

/// Passes the light at the ends of a link to FIP. A fault or a change of the link, or of a switch
/// at its end, may have changed it.
pub(super) fn follow(world: &mut World, link: u16) {
    let Some(plan) = world.fip.as_ref().and_then(|fip| fip.plan(link)).copied() else { return };
    let light = [0, 1].map(|end| has_light(world, link, plan.ends[end].interface, end));
    with(world, |fip, net| fip.set_light(net, link, light));
}

/// Follows the light of all interfaces.
pub(super) fn follow_all(world: &mut World) {
    let Some(fip) = &world.fip else { return };
    let links: Vec<u16> = fip.plans().map(|plan| plan.link).collect();
    for link in links {
        follow(world, link);
    }
    apply(world);
}

/// Handles a frame of FIP at its interface.
pub(super) fn packet(world: &mut World, packet: &Packet) {
    with(world, |fip, net| fip.packet(net, packet));
    apply(world);
}

/// Handles the timer of FIP.
#[inline(never)]
pub(super) fn timer(world: &mut World) {
    loop {
        let mut is_done = true;
        with(world, |fip, net| is_done = !fip.run_due(net));
        apply(world);
        if is_done {
            return;
        }
    }
}

/// Applies the results of FIP.
fn apply(world: &mut World) {
    while let Some(due) = world.fip.as_mut().and_then(|fip| fip.take_due()) {
        match due {
            Due::Link(link) => update_link_state(world, link),
            Due::VnPorts { link, end } => send_vn_ports(world, (link, end)),
        }
    }
}

/// Sends the keep-alives of the VN_Ports at an end of a link.
fn send_vn_ports(world: &mut World, (link, end): (u16, u8)) {
    let lane = &world.net.fc.lanes()[2 * usize::from(link) + usize::from(end)];
    let End::NPort(plane) = lane.from else { return };
    for number in 0..world.nports.nodes.len() {
        let node = &world.nports.nodes[number];
        let port_id = node.port_id;
        if node.plane == plane && port_id != FcId::ZERO {
            with(world, |fip, net| fip.send_vn_port(net, (link, end), port_id));
        }
    }
}

fn with(world: &mut World, call: impl FnOnce(&mut Fip, &mut Net)) {
    let World { fip, net, .. } = world;
    if let Some(fip) = fip {
        call(fip, net);
    }
}
