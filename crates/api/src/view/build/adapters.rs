//! Table of the adapters that have registered with the management service of each switch.

use super::Shown;
use crate::view::{AdapterPortRow, AdapterRow, FdmiView};
use sanloom_fc::switch::RegisteredAdapter;
use sanloom_wire::fdmi::{self, Attribute, hba_attribute, port_attribute, port_speed};
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
    let of = |kind| fdmi::find(adapter.attributes, kind);
    let text = |kind| of(kind).map(Attribute::text).unwrap_or_default();
    let number = |kind| of(kind).and_then(Attribute::number);
    let ports = adapter.ports.iter().map(|(port, attributes)| port_row(*port, attributes, ids));
    AdapterRow {
        adapter: adapter.hba.to_string(),
        node_name: of(NODE_NAME).and_then(Attribute::name).map_or_else(String::new, |name| Wwnn(name).to_string()),
        symbolic_node_name: text(SYMBOLIC_NODE_NAME),
        manufacturer: text(MANUFACTURER),
        serial_number: text(SERIAL_NUMBER),
        model: text(MODEL),
        model_description: text(MODEL_DESCRIPTION),
        hardware_version: text(HARDWARE_VERSION),
        driver_version: text(DRIVER_VERSION),
        option_rom_version: text(OPTION_ROM_VERSION),
        firmware_version: text(FIRMWARE_VERSION),
        os: text(OS),
        max_ct_payload: number(MAX_CT_PAYLOAD),
        number_of_ports: number(PORTS),
        ports: ports.collect(),
        ..AdapterRow::default()
    }
}

fn port_row(port: Wwpn, attributes: &[Attribute], ids: &BTreeMap<Wwpn, String>) -> AdapterPortRow {
    use port_attribute::*;
    let of = |kind| fdmi::find(attributes, kind);
    let text = |kind| of(kind).map(Attribute::text).unwrap_or_default();
    let number = |kind| of(kind).and_then(Attribute::number);
    let speeds = |bits: u32| port_speed::names(bits).map(str::to_owned);
    AdapterPortRow {
        port_name: port.to_string(),
        port_id: ids.get(&port).cloned().unwrap_or_default(),
        node_name: of(NODE_NAME).and_then(Attribute::name).map_or_else(String::new, |name| Wwnn(name).to_string()),
        symbolic_port_name: text(SYMBOLIC_NAME),
        supported_speeds: number(SUPPORTED_SPEEDS).into_iter().flat_map(speeds).collect(),
        speed: number(SPEED).and_then(|bits| speeds(bits).last()).unwrap_or_default(),
        max_frame_bytes: number(MAX_FRAME_SIZE),
        os_device_name: text(OS_DEVICE_NAME),
        host_name: text(HOST_NAME),
    }
}
