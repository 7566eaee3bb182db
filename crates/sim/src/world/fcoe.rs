//! FCoE of a lab: virtual links over its Ethernet.

use crate::net::ethernet::EthernetPlane;
use crate::net::fcoe::{FcoeLanePlan, FcoePlan};
use crate::net::line::ByteTime;
use crate::net::{End, Lane};
use sanloom_fc::config::{EthernetLink, FCOE_OVERHEAD_BYTES, FCOE_QUEUE_FRAMES, Link, TAG_BYTES, VirtualLink};
use sanloom_fc::san::{Lab, ethernet_node};

/// Returns the lane of a virtual link: its credits are places in the Ethernet port of its sender.
pub(super) fn lane(lab: &Lab, link: &Link, [from, to]: [End; 2]) -> Lane {
    let credits = u32::from(FCOE_QUEUE_FRAMES);
    let lane = Lane::new(from, to, link.rate, 0, credits);
    match link_at(lab, link) {
        Some(below) => lane.with_byte_time(ByteTime::new(below.rate.ps_per_byte() as u32, 1)),
        None => lane,
    }
}

/// Returns the slowest Ethernet link of the nodes at the ends of a virtual link.
fn link_at<'l>(lab: &'l Lab, link: &Link) -> Option<&'l EthernetLink> {
    let nodes = link.ends.map(|end| ethernet_node(end.node));
    let own = lab.ethernet_links.iter().filter(|below| below.ends.iter().any(|end| nodes.contains(&Some(end.node))));
    own.min_by_key(|below| below.rate)
}

/// Returns the lanes of all virtual links.
pub(super) fn plan(lab: &Lab) -> FcoePlan {
    let interfaces = lab.ethernet_interfaces();
    let vlans = lab.vlan_numbers();
    let mut plan = FcoePlan::default();
    for path in lab.fcoe_paths() {
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
                    buffer_bytes: config.buffer_at(below),
                    headroom_bytes: VirtualLink::headroom_bytes(below),
                    overhead_bytes: FCOE_OVERHEAD_BYTES + if config.has_tag() { TAG_BYTES } else { 0 },
                },
            ));
        }
    }
    plan
}

/// Lets the interfaces of virtual links without PFC ignore the pauses for their priority.
pub(super) fn disable_pauses(lab: &Lab, plane: &mut EthernetPlane) {
    let interfaces = lab.ethernet_interfaces();
    for path in lab.fcoe_paths().into_iter().filter(|path| !path.config.pfc) {
        for interface in path.interfaces.map(|number| interfaces[usize::from(number)]) {
            plane.ignore_pauses(2 * interface.link as u32 + u32::from(interface.side), 1 << path.config.priority);
        }
    }
}
