//! Adapters of hosts and storage systems: their buses and interrupts.

use super::nodes::has_table;
use crate::element::Element;
use crate::value::Value;
use sanloom_fc::config::{Bus, Interrupt};

/// Returns the interrupt coalescing of the ports of a node.
pub(super) fn interrupt(element: &Element<'_>) -> Option<Interrupt> {
    has_table(element, "interrupt").then(|| Interrupt {
        cost: element.time("interrupt.cost").unwrap_or_default(),
        max_frames: element.integer("interrupt.max_frames").unwrap_or(1),
        max_wait: element.time("interrupt.max_wait").unwrap_or_default(),
        min_wait: element.time("interrupt.min_wait"),
    })
}

/// Returns the bus between the memory and the ports of a node.
pub(super) fn bus(element: &Element<'_>) -> Option<Bus> {
    has_table(element, "bus").then(|| Bus {
        bits: element.integer("bus.bits").unwrap_or(64),
        clock_hz: match element.get("bus.clock") {
            Some((Value::Clock(hz), _)) => *hz,
            _ => 66_000_000,
        },
        shared_by: element.integer("bus.shared_by").unwrap_or(1),
    })
}
