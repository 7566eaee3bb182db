//! FCIP of a lab: its links, and their place between the Fibre Channel and the Ethernet plane.

use super::World;
use super::ethernet::tcp_config;
use super::faults::update_link_state;
use super::{fcoe, iscsi};
use crate::fcip::{Fcip, TunnelPlan};
use crate::net::Net;
use crate::net::ethernet::Packet;
use crate::tcp::TUNNEL_FLOWS;
use sanloom_fc::config::Node;
use sanloom_fc::san::{Lab, fcoe_paths};
use std::sync::Arc;

/// Returns the FCIP links of a lab, which use a timer of the network; `None` without any.
pub(super) fn new(lab: &Lab, timer: u32) -> Option<Box<Fcip>> {
    if !lab.links.iter().any(|link| link.fcoe.is_some_and(|link| link.fcip.is_some())) {
        return None;
    }
    let plans = plan(lab);
    (!plans.is_empty()).then(|| Box::new(Fcip::new(plans, lab.timers.r_a_tov.0, timer)))
}

/// Returns the plans of the FCIP links of a lab.
fn plan(lab: &Lab) -> Vec<TunnelPlan> {
    let interfaces = lab.ethernet_interfaces();
    let mtu = |number: u16| lab.ethernet_links[interfaces[usize::from(number)].link].mtu;
    let paths = fcoe_paths(lab).into_iter();
    let tunnel = |path: sanloom_fc::san::FcoePath| {
        let tcp = path.config.fcip?.tcp();
        let config = |number: u16| Arc::new(tcp_config(&tcp, mtu(number)));
        let keep_alive_ps = path.config.fcip?.keep_alive.0;
        Some(TunnelPlan {
            link: path.link,
            interfaces: path.interfaces,
            tcp: path.interfaces.map(config),
            keep_alive_ps,
        })
    };
    paths.filter_map(tunnel).collect()
}

/// Returns whether a link is one of FCIP over the Ethernet.
pub(super) fn controls(world: &World, link: u16) -> bool {
    world.fcip.as_ref().is_some_and(|fcip| fcip.is_up(link).is_some())
}

/// Returns whether a link has no connection.
pub(super) fn holds(world: &World, link: u16) -> bool {
    world.fcip.as_ref().and_then(|fcip| fcip.is_up(link)) == Some(false)
}

/// Opens the connections of all links.
pub(super) fn start(world: &mut World) {
    with(world, Fcip::start);
    follow(world);
}

/// Returns whether a connection is not open yet that the Ethernet can carry.
pub(super) fn is_opening(world: &World) -> bool {
    let Some(fcip) = world.fcip.as_ref().filter(|fcip| fcip.plans().any(|plan| fcip.is_up(plan.link) == Some(false)))
    else {
        return false;
    };
    let paths = fcoe::paths_without(world, |line| !line.up);
    paths.iter().any(|path| path.is_joined && fcip.is_up(path.link) == Some(false))
}

/// Follows a change of Ethernet: a link ends at once when an interface at its end goes dark. When
/// its Ethernet is whole again, its gateways connect at once. A cable that loses every frame of a
/// direction is broken as well.
pub(super) fn follow(world: &mut World) {
    if world.fcip.is_none() {
        return;
    }
    for path in fcoe::paths_without(world, |line| !line.up || line.errors.loses_all()) {
        if path.config.fcip.is_none() {
            continue;
        }
        let has_light = path.interfaces.into_iter().all(|interface| world.net.ethernet.has_light(interface));
        with(world, |fcip, net| {
            if !has_light {
                fcip.end(net, path.link);
            }
            fcip.follow(net, path.link, path.is_joined);
        });
    }
}

/// Follows the switches at the ends of a link. A stopped one is silent, so that the link stays up
/// until its peer has waited for keep-alives long enough, or until it runs again.
pub(super) fn follow_switches(world: &mut World, link: u16) {
    if !controls(world, link) {
        return;
    }
    let runs = world.lab.links[usize::from(link)].ends.map(|end| match end.node {
        Node::Switch(switch) => world.control.switches[usize::from(switch)].up,
        Node::Host(_) | Node::Storage(_) | Node::Loop(_) => true,
    });
    for (side, runs) in runs.into_iter().enumerate() {
        with(world, |fcip, net| fcip.set_running(net, link, side, runs));
    }
}

/// Handles a segment at an Ethernet interface, of an FCIP link or of iSCSI.
#[inline(never)]
pub(super) fn packet_or_iscsi(world: &mut World, packet: &Packet) {
    if packet.flow & TUNNEL_FLOWS == 0 {
        return iscsi::packet(world, packet);
    }
    with(world, |fcip, net| fcip.packet(net, packet));
}

/// Handles a timer of the links: that of TCP, or that of keep-alives.
#[inline(never)]
pub(super) fn timer(world: &mut World, timer: u32) {
    match timer == world.timers.fcip {
        true => with(world, Fcip::timer_expired),
        false => with(world, Fcip::check_keep_alives),
    }
}

/// Sends frames, and delivers those that have waited for room.
#[inline(never)]
pub(super) fn run(world: &mut World) {
    with(world, Fcip::run);
}

fn with(world: &mut World, call: impl FnOnce(&mut Fcip, &mut Net)) {
    let World { fcip, net, .. } = world;
    let Some(fcip) = fcip else { return };
    call(fcip, net);
    while let Some(link) = world.fcip.as_mut().and_then(|fcip| fcip.take_changed()) {
        update_link_state(world, link);
    }
}
