//! Host bus adapters that have registered with the management service of a switch (FDMI).

use super::fault::Fault;
use super::room::Room;
use super::switches;
use super::tree::Element;
use sanloom_api::view::{AdapterPortRow, AdapterRow};
use std::collections::BTreeSet;

/// Adapters that have registered with a switch of the same fabric.
fn adapters(room: &mut Room<'_>) -> Result<Vec<AdapterRow>, Fault> {
    let mut adapters = room.adapters()?.adapters;
    if !adapters.is_empty() {
        let members: BTreeSet<String> = switches::members(room)?.into_iter().map(|(row, _)| row.switch).collect();
        adapters.retain(|row| members.contains(&row.switch));
    }
    if adapters.is_empty() { Err(Fault::failed("No entries in the FDMI database")) } else { Ok(adapters) }
}

/// Leaves of texts that are not empty.
fn texts<const N: usize>(leaves: [(&'static str, &str); N]) -> impl Iterator<Item = Element> {
    leaves.into_iter().filter(|(_, text)| !text.is_empty()).map(|(name, text)| Element::text(name, text))
}

/// GET of `hba`: the adapters of the fabric.
pub fn hba(room: &mut Room<'_>) -> Result<Vec<Element>, Fault> {
    let entry = |row: &AdapterRow| {
        let mut leaves = vec![Element::text("hba-id", &row.adapter)];
        leaves.extend(row.domain.map(|domain| Element::number("domain-id", domain)));
        leaves.extend(texts([
            ("manufacturer", &row.manufacturer),
            ("serial-number", &row.serial_number),
            ("model", &row.model),
            ("model-description", &row.model_description),
            ("node-name", &row.node_name),
            ("node-symbolic-name", &row.symbolic_node_name),
            ("hardware-version", &row.hardware_version),
            ("driver-version", &row.driver_version),
            ("option-rom-version", &row.option_rom_version),
            ("firmware-version", &row.firmware_version),
            ("os-name-and-version", &row.os),
        ]));
        leaves.extend(row.max_ct_payload.map(|words| Element::number("max-ct-payload", words)));
        leaves.extend(row.number_of_ports.map(|ports| Element::number("number-of-ports", ports)));
        let ports = row.ports.iter().map(|port| port.port_name.clone());
        leaves.push(Element::texts("hba-port-list", "wwn", ports));
        Element::entry("hba", leaves)
    };
    Ok(adapters(room)?.iter().map(entry).collect())
}

/// False for a port that an adapter lists and that has registered nothing itself.
fn is_registered(port: &AdapterPortRow) -> bool {
    let names =
        AdapterPortRow { port_name: port.port_name.clone(), port_id: port.port_id.clone(), ..Default::default() };
    *port != names
}

/// GET of `port`: the registered ports of the adapters.
pub fn port(room: &mut Room<'_>) -> Result<Vec<Element>, Fault> {
    let mut entries = Vec::new();
    for row in adapters(room)? {
        for port in row.ports.iter().filter(|port| is_registered(port)) {
            let mut leaves = vec![Element::text("port-name", &port.port_name), Element::text("hba-id", &row.adapter)];
            leaves.extend(row.domain.map(|domain| Element::number("domain-id", domain)));
            if !port.port_id.is_empty() {
                leaves.push(Element::text("port-id", format!("0x{}", port.port_id)));
            }
            leaves.extend(texts([
                ("port-symbolic-name", &port.symbolic_port_name),
                ("supported-speed", &port.supported_speeds.join(" ")),
                ("current-port-speed", &port.speed),
                ("os-device-name", &port.os_device_name),
                ("host-name", &port.host_name),
                ("node-name", &port.node_name),
            ]));
            leaves.extend(port.max_frame_bytes.map(|bytes| Element::number("maximum-frame-size", bytes)));
            entries.push(Element::entry("port", leaves));
        }
    }
    Ok(entries)
}
