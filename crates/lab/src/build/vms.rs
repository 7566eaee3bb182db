//! Virtual machines: hosts that are `on` another host.

use super::Where;
use super::nodes::Names;
use super::workloads::CONFLICT;
use crate::diagnostic::Sink;
use crate::document::Budget;
use crate::element::Element;
use crate::schema;
use sanloom_fc::config::{AdapterProcessor, Node, Picos, VirtualMachine};
use sanloom_fc::san::Lab;
use std::collections::BTreeMap;

/// Keys that have no effect on a host with links of its own.
const VIRTUAL_ONLY: [&str; 4] = ["start", "interval", "boot", "login"];
/// Keys of hardware that a virtual machine shares with its hypervisor.
const HARDWARE: [&str; 9] = [
    "bus.bits",
    "bus.clock",
    "bus.shared_by",
    "data_frames_in_flight",
    "frame_buffers",
    "bb_sc",
    "hba_processor.per_read",
    "hba_processor.per_write",
    "hba_processor.per_kib",
];

/// Fills `virtual_machine` of the hosts of `lab`. `places` are the locations of the hosts.
pub(super) fn build(lab: &mut Lab, names: &Names, places: &[Where<'_>], budget: &mut Budget, sink: &mut Sink) {
    let mut on_hypervisor: BTreeMap<u16, u16> = BTreeMap::new();
    for (host, place) in lab.hosts.iter_mut().zip(places) {
        let element = &*place.element;
        let Some((text, origin)) = element.patterns("on").first() else {
            if !element.is_given("on") {
                useless_keys(element, &VIRTUAL_ONLY, NO_MACHINE, sink);
            }
            continue;
        };
        useless_keys(element, &HARDWARE, NO_HARDWARE, sink);
        // A preset may have set hardware keys.
        host.bus = None;
        host.processor.hba = AdapterProcessor::default();
        host.hbas.iter_mut().for_each(|hba| hba.data_frames_in_flight = None);
        let Some(hypervisors) = budget.expand(text, origin, sink).filter(|names| !names.is_empty()) else {
            continue;
        };
        let name = &hypervisors[element.offset as usize % hypervisors.len()];
        let accept = |node| matches!(node, Node::Host(_));
        let Some(Node::Host(on)) = names.find(name, "host", accept, origin, sink) else {
            continue;
        };
        let next = on_hypervisor.entry(on).or_insert(0);
        let number = *next;
        *next = next.saturating_add(1);
        let start = element.time("start");
        let interval = element.time("interval").unwrap_or_default();
        let later = Picos(interval.0.saturating_mul(element.offset));
        let is_timed = start.is_some() || interval > Picos::ZERO;
        host.virtual_machine = Some(VirtualMachine {
            on,
            number,
            start: is_timed.then(|| Picos(start.unwrap_or_default().0.saturating_add(later.0))),
            boot: element.times("boot").unwrap_or(Picos::ZERO.into()),
            script: element.choice("login", schema::LOGIN_SCRIPTS).unwrap_or_default(),
        });
    }
}

/// Description of a host on which certain keys have no effect, and the remedy.
type Useless = (&'static str, &'static str);
const NO_MACHINE: Useless =
    ("a host that is not a virtual machine", "add `on` with the name of its hypervisor, or remove it");
const NO_HARDWARE: Useless =
    ("a virtual machine, which uses the hardware of its hypervisor", "give it to the hypervisor");

fn useless_keys(element: &Element<'_>, keys: &[&str], (host, remedy): Useless, sink: &mut Sink) {
    for key in keys.iter().filter(|key| element.is_given(key)) {
        let origin = element.origin(key);
        if !sink.repeats(CONFLICT, &origin) {
            sink.error(CONFLICT, &origin, format!("`{key}` has no effect for {host}"), remedy);
        }
    }
}
