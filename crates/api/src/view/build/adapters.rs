//! Table of the adapters that have registered with the management service of each switch.

use super::Shown;
use crate::view::{AdapterPortRow, AdapterRow, FdmiView};
use sanloom_fc::switch::RegisteredAdapter;
use sanloom_wire::fdmi::{Attribute, hba_attribute, port_attribute, port_speed};
use sanloom_wire::{Wwnn, Wwpn};
use std::collections::{BTreeMap, BTreeSet};

pub(super) fn adapters(shown: &Shown<'_>) -> FdmiView {
    let mut adapters = Vec::new();
    for seen in shown.switches().filter(|seen| seen.up) {
        let machine = seen.machine;
        let registered: Vec<RegisteredAdapter<'_>> = machine.services().adapters().collect();
        if registered.is_empty() {
            continue;
        }
        let names: BTreeSet<Wwpn> =
            registered.iter().flat_map(|adapter| &adapter.ports).map(|(port, _)| *port).collect();
        let entries = machine.services().name_server().filter(|entry| names.contains(&entry.port_name));
        let ids: BTreeMap<Wwpn, String> = entries.map(|entry| (entry.port_name, entry.port_id.to_string())).collect();
        let switch = &shown.lab.switches[usize::from(seen.number)].name;
        for adapter in &registered {
            let row = row(adapter, &ids);
            let owner = shown.owner(adapter.hba);
            adapters.push(AdapterRow { switch: switch.clone(), domain: machine.domain(), owner, ..row });
        }
    }
    FdmiView { adapters }
}

fn row(adapter: &RegisteredAdapter<'_>, ids: &BTreeMap<Wwpn, String>) -> AdapterRow {
    use hba_attribute::*;
    let of = |kind| value(adapter.attributes, kind);
    let ports = adapter.ports.iter().map(|(port, attributes)| port_row(*port, attributes, ids));
    AdapterRow {
        adapter: adapter.hba.to_string(),
        node_name: world_wide_name(of(NODE_NAME)),
        symbolic_node_name: text(of(SYMBOLIC_NODE_NAME)),
        manufacturer: text(of(MANUFACTURER)),
        serial_number: text(of(SERIAL_NUMBER)),
        model: text(of(MODEL)),
        model_description: text(of(MODEL_DESCRIPTION)),
        hardware_version: text(of(HARDWARE_VERSION)),
        driver_version: text(of(DRIVER_VERSION)),
        option_rom_version: text(of(OPTION_ROM_VERSION)),
        firmware_version: text(of(FIRMWARE_VERSION)),
        os: text(of(OS)),
        max_ct_payload: number(of(MAX_CT_PAYLOAD)),
        number_of_ports: number(of(PORTS)),
        ports: ports.collect(),
        ..AdapterRow::default()
    }
}

fn port_row(port: Wwpn, attributes: &[Attribute], ids: &BTreeMap<Wwpn, String>) -> AdapterPortRow {
    use port_attribute::*;
    let of = |kind| value(attributes, kind);
    let speeds = |bits: u32| port_speed::names(bits).map(str::to_owned);
    AdapterPortRow {
        port_name: port.to_string(),
        port_id: ids.get(&port).cloned().unwrap_or_default(),
        node_name: world_wide_name(of(NODE_NAME)),
        symbolic_port_name: text(of(SYMBOLIC_NAME)),
        supported_speeds: number(of(SUPPORTED_SPEEDS)).into_iter().flat_map(speeds).collect(),
        speed: number(of(SPEED)).and_then(|bits| speeds(bits).last()).unwrap_or_default(),
        max_frame_bytes: number(of(MAX_FRAME_SIZE)),
        os_device_name: text(of(OS_DEVICE_NAME)),
        host_name: text(of(HOST_NAME)),
    }
}

fn value(attributes: &[Attribute], kind: u16) -> Option<&[u8]> {
    attributes.iter().find(|attribute| attribute.attribute == kind).map(|attribute| &*attribute.value)
}

/// A text ends at its first zero byte.
fn text(value: Option<&[u8]>) -> String {
    let bytes = value.unwrap_or_default();
    let end = bytes.iter().position(|byte| *byte == 0).unwrap_or(bytes.len());
    String::from_utf8_lossy(&bytes[..end]).trim().to_owned()
}

fn number(value: Option<&[u8]>) -> Option<u32> {
    Some(u32::from_be_bytes(value?.try_into().ok()?))
}

fn world_wide_name(value: Option<&[u8]>) -> String {
    let bytes = value.and_then(|value| value.try_into().ok());
    bytes.map_or_else(String::new, |bytes| Wwnn(u64::from_be_bytes(bytes)).to_string())
}
