//! Adapters of hosts and storage systems: their buses and interrupts.

use super::Where;
use crate::element::Element;
use crate::schema;
use crate::value::Value;
use sanloom_fc::config::{Bus, Interrupt, Node};
use sanloom_fc::san::Lab;
use std::collections::BTreeSet;

/// Removes interrupts of HBAs that hosts without Fibre Channel have from a preset only.
/// `places` are the locations of the hosts.
pub(super) fn drop_unused_presets(lab: &mut Lab, places: &[Where<'_>]) {
    let linked: BTreeSet<Node> = lab.links.iter().flat_map(|link| link.ends).map(|end| end.node).collect();
    for ((number, host), place) in (0..).zip(&mut lab.hosts).zip(places) {
        let has_hba = linked.contains(&Node::Host(number)) || host.virtual_machine.is_some();
        if !has_hba && !place.element.gives_table("interrupt") {
            host.interrupt = None;
        }
    }
}

/// Returns the interrupt coalescing of the ports of a node.
pub(super) fn interrupt(element: &Element<'_>) -> Option<Interrupt> {
    element.has_table("interrupt").then(|| Interrupt {
        cost: element.time("interrupt.cost").unwrap_or_default(),
        max_frames: element.integer("interrupt.max_frames").unwrap_or(1),
        max_wait: element.time("interrupt.max_wait").unwrap_or_default(),
        min_wait: element.time("interrupt.min_wait"),
    })
}

/// Returns the bus between the memory and the ports of a node.
pub(super) fn bus(element: &Element<'_>) -> Option<Bus> {
    element.has_table("bus").then(|| Bus {
        bits: element.integer("bus.bits").unwrap_or(64),
        clock_hz: match element.get("bus.clock") {
            Some((Value::Clock(hz), _)) => *hz,
            _ => 66_000_000,
        },
        shared_by: element.integer("bus.shared_by").unwrap_or(1),
        duplex: element.choice("bus.duplex", schema::DUPLEXES).unwrap_or_default(),
    })
}
