//! FCIP of a lab: its links, and their place between the Fibre Channel and the Ethernet plane.

use super::World;
use super::ethernet::tcp_config;
use super::iscsi;
use crate::fcip::{Fcip, TunnelPlan};
use crate::net::Net;
use crate::net::ethernet::Packet;
use crate::tcp::TUNNEL_FLOWS;
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
        Some(TunnelPlan { link: path.link, interfaces: path.interfaces, tcp: path.interfaces.map(config) })
    };
    paths.filter_map(tunnel).collect()
}

/// Opens the connections of all links.
pub(super) fn start(world: &mut World) {
    with(world, Fcip::start);
}

/// Handles a segment at an Ethernet interface, of an FCIP link or of iSCSI.
#[inline(never)]
pub(super) fn packet_or_iscsi(world: &mut World, packet: &Packet) {
    if packet.flow & TUNNEL_FLOWS == 0 {
        return iscsi::packet(world, packet);
    }
    with(world, |fcip, net| fcip.packet(net, packet));
}

/// Handles the timer of the links.
#[inline(never)]
pub(super) fn timer(world: &mut World) {
    with(world, Fcip::timer_expired);
}

/// Sends frames, and delivers those that have waited for room.
#[inline(never)]
pub(super) fn run(world: &mut World) {
    with(world, Fcip::run);
}

/// Opens another connection of a link whose Ethernet was broken or is whole again.
pub(super) fn reset(world: &mut World, link: u16) {
    with(world, |fcip, net| fcip.reset(net, link));
}

fn with(world: &mut World, call: impl FnOnce(&mut Fcip, &mut Net)) {
    let World { fcip, net, .. } = world;
    if let Some(fcip) = fcip {
        call(fcip, net);
    }
}
