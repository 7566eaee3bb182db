//! FCoE of a lab: virtual links over its Ethernet.

use super::World;
use super::{fcip, fip};
use crate::net::ethernet::{EthernetPlane, Line};
use crate::net::fcoe::{FcoeLanePlan, FcoePlan};
use crate::net::line::ByteTime;
use crate::net::{End, Lane};
use sanloom_fc::config::{
    EthernetRate, FCIP_OVERHEAD_BYTES, FCOE_OVERHEAD_BYTES, FCOE_QUEUE_FRAMES, Link, TAG_BYTES, VirtualLink,
};
use sanloom_fc::san::{FcoePath, Lab, fcoe_paths, fcoe_paths_without};
use std::collections::BTreeMap;

/// Returns the lane of a virtual link at the rate of the Ethernet port of its sender. Its credits
/// are places there.
pub(super) fn lane(link: &Link, [from, to]: [End; 2], sender: EthernetRate) -> Lane {
    let credits = u32::from(FCOE_QUEUE_FRAMES);
    Lane::new(from, to, link.rate, 0, credits).with_byte_time(ByteTime::new(sender.ps_per_byte() as u32, 1))
}

/// Returns the rates of the Ethernet ports at both ends of each virtual link, by its number.
pub fn rates(lab: &Lab) -> BTreeMap<u16, [EthernetRate; 2]> {
    let interfaces = lab.ethernet_interfaces();
    let rate = |number: u16| lab.ethernet_links[interfaces[usize::from(number)].link].rate;
    fcoe_paths(lab).into_iter().map(|path| (path.link, path.interfaces.map(rate))).collect()
}

/// Returns the lanes of all virtual links.
pub(super) fn plan(lab: &Lab) -> FcoePlan {
    let interfaces = lab.ethernet_interfaces();
    let vlans = lab.vlan_numbers();
    let mut plan = FcoePlan::default();
    for path in fcoe_paths(lab) {
        let config = path.config;
        let [a, b] = path.interfaces;
        for (number, ends) in [(2 * u32::from(path.link), [a, b]), (2 * u32::from(path.link) + 1, [b, a])] {
            let below = &lab.ethernet_links[interfaces[usize::from(ends[1])].link];
            plan.lanes.push((
                number,
                FcoeLanePlan {
                    interfaces: ends,
                    priority: config.priority,
                    vlan: vlans.number(config.vlan),
                    has_tag: config.has_tag(),
                    pauses: config.pfc,
                    is_tunnel: config.fcip.is_some(),
                    buffer_bytes: config.buffer_at(below),
                    headroom_bytes: VirtualLink::headroom_bytes(below),
                    overhead_bytes: match config.fcip {
                        Some(_) => FCIP_OVERHEAD_BYTES,
                        None => FCOE_OVERHEAD_BYTES + if config.has_tag() { TAG_BYTES } else { 0 },
                    },
                },
            ));
        }
    }
    plan
}

/// Lets the interfaces of virtual links without PFC ignore the pauses for their priority.
pub(super) fn disable_pauses(lab: &Lab, plane: &mut EthernetPlane) {
    let interfaces = lab.ethernet_interfaces();
    // TCP carries FCIP, and other frames of its interfaces obey pauses.
    let ignores = |path: &FcoePath| !path.config.pfc && path.config.fcip.is_none();
    for path in fcoe_paths(lab).into_iter().filter(ignores) {
        for interface in path.interfaces.map(|number| interfaces[usize::from(number)]) {
            plane.ignore_pauses(2 * interface.link as u32 + u32::from(interface.side), 1 << path.config.priority);
        }
    }
}

/// Returns the paths of the virtual links, which broken lines of Ethernet do not join.
pub(super) fn paths_without(world: &World, is_broken: impl Fn(&Line) -> bool) -> Vec<FcoePath> {
    let links = (0..).zip(world.net.ethernet.lines().chunks(2));
    let broken = links.filter(|(_, lines)| lines.iter().any(&is_broken)).map(|(link, _)| link).collect();
    fcoe_paths_without(&world.lab, &broken)
}

/// Follows a change of Ethernet at the virtual links over it.
pub(super) fn update(world: &mut World) {
    fip::follow_all(world);
    fcip::follow(world);
}

/// Starts to keep the contents of frames of FCoE, for a capture of an Ethernet link.
pub(super) fn watch(world: &mut World) {
    world.net.fc.fcoe.watch();
}
