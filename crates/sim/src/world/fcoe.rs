//! FCoE of a lab: virtual links over its Ethernet.

use super::World;
use super::schedule::Step;
use super::{fcip, fip};
use crate::net::ethernet::{EthernetPlane, Line};
use crate::net::fcoe::{FcoeLanePlan, FcoePlan};
use crate::net::line::ByteTime;
use crate::net::{End, Lane};
use sanloom_fc::config::{
    EthernetRate, FCIP_OVERHEAD_BYTES, FCOE_OVERHEAD_BYTES, FCOE_QUEUE_FRAMES, Link, TAG_BYTES, VirtualLink,
};
use sanloom_fc::san::{FcoePath, Lab, fcoe_paths, fcoe_paths_without};
use std::collections::btree_map::Entry;
use std::collections::{BTreeMap, BTreeSet};

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

/// Follows a change of Ethernet: FIP learns which interfaces have light, and FCIP links end whose
/// Ethernet is broken. If an interface has no light, its link ends at once; otherwise the
/// keep-alives must be missing for long enough. A cable that loses every frame of a direction
/// carries no keep-alives either.
pub(super) fn update(world: &mut World) {
    fip::follow_all(world);
    if world.fcip.is_none() {
        return;
    }
    let lab = world.lab.clone();
    let now = world.net.now();
    let lines = world.net.ethernet.lines();
    let links_with = |is: fn(&Line) -> bool| -> BTreeSet<u16> {
        (0..).zip(lines.chunks(2)).filter(|(_, pair)| pair.iter().any(is)).map(|(number, _)| number).collect()
    };
    let dark = links_with(|line| !line.up);
    let silent = links_with(|line| !line.up || line.errors.loses_all());
    let interfaces = lab.ethernet_interfaces();
    for path in fcoe_paths_without(&lab, &silent) {
        let (link, Some(tunnel)) = (path.link, path.config.fcip) else { continue };
        if path.is_joined {
            if let Some((_, true)) = world.broken_links.remove(&link) {
                fcip::reset(world, link);
                world.update_link(link);
            }
            continue;
        }
        let (is_new, (since_ps, has_ended)) = match world.broken_links.entry(link) {
            Entry::Vacant(place) => (true, *place.insert((now, false))),
            Entry::Occupied(place) => (false, *place.get()),
        };
        let is_dark = |number: u16| dark.contains(&(interfaces[usize::from(number)].link as u16));
        let end_ps = since_ps + 2 * tunnel.keep_alive.0;
        if has_ended {
            continue;
        }
        if end_ps <= now || path.interfaces.into_iter().any(is_dark) {
            world.broken_links.insert(link, (since_ps, true));
            world.update_link(link);
            fcip::reset(world, link);
        } else if is_new {
            world.schedule.add(end_ps, Step::EndVirtualLinks);
            world.arm_schedule();
        }
    }
}

/// Starts to keep the contents of frames of FCoE, for a capture of an Ethernet link.
pub(super) fn watch(world: &mut World) {
    world.net.fc.fcoe.watch();
}
