//! Name server.

use super::fault::Fault;
use super::room::Room;
use super::tree::Element;
use sanloom_api::view::{NameRow, PortRow};
use std::collections::BTreeMap;

/// GET of `fibrechannel-name-server`: devices of the whole fabric.
pub fn name_server(room: &mut Room<'_>) -> Result<Vec<Element>, Fault> {
    let objects = room.names()?.objects;
    if objects.is_empty() {
        return Err(Fault::empty("No entries in Name Server"));
    }
    let places = places(room)?;
    let ports = room.all_ports()?.ports;
    let by_name: BTreeMap<&str, &PortRow> = ports.iter().map(|row| (&*row.port_name, row)).collect();
    let entries = objects.iter().map(|row| {
        let port = by_name.get(&*row.fabric_port_name).copied();
        let mut leaves = vec![
            Element::text("port-id", format!("0x{}", row.port_id)),
            Element::text("port-name", &row.port_name),
            Element::text("node-name", &row.node_name),
            Element::text("port-symbolic-name", symbol(&row.symbolic_port_name)),
            Element::text("node-symbolic-name", symbol(&row.symbolic_node_name)),
            Element::text("port-type", port_type(row)),
            Element::text("class-of-service", "class-3"),
            Element::text("fc4-type", row.fc4_types.join(" ")),
            Element::text("fc4-features", features(row)),
            Element::text("fabric-port-name", &row.fabric_port_name),
            Element::text("permanent-port-name", &row.port_name),
            Element::text("name-server-device-type", device_type(row)),
            Element::text("share-area", "no"),
            Element::text("partial", "no"),
            Element::text("lsan", "no"),
            Element::text("cascaded-ag", "no"),
            Element::text("connected-through-ag", "no"),
            Element::text("real-device-behind-ag", "no"),
            Element::text("fcoe-device", if port.is_some_and(|row| row.rate == "Ethernet") { "yes" } else { "no" }),
        ];
        if let Some((_, number)) = places.get(&row.port_name) {
            leaves.push(Element::number("port-index", *number));
        }
        if let Some(speed) = port.and_then(super::ports::speed) {
            leaves.push(Element::text("link-speed", format!("{}G", speed / 1_000_000_000)));
        }
        Element::entry("fibrechannel-name-server", leaves)
    });
    Ok(entries.collect())
}

/// Domain and port index of each device of the fabric, by its port name.
pub fn places(room: &mut Room<'_>) -> Result<BTreeMap<String, (u8, u32)>, Fault> {
    let ports = room.zone_status()?.ports;
    Ok(ports.into_iter().map(|port| (port.port_name, (port.domain, u32::from(port.switch_port)))).collect())
}

/// Symbolic name with its length, as a switch shows it.
pub fn symbol(text: &str) -> String {
    if text.is_empty() { String::new() } else { format!("[{}] \"{text}\"", text.len()) }
}

fn port_type(row: &NameRow) -> &'static str {
    if row.port_type.starts_with("NL") { "nl-port" } else { "n-port" }
}

fn has(row: &NameRow, feature: &str) -> bool {
    row.fcp_features.iter().any(|own| own == feature)
}

/// FC-4 features in the words of a switch.
pub fn features(row: &NameRow) -> &'static str {
    match (has(row, "initiator"), has(row, "target")) {
        (true, true) => "FCP-Initiator FCP-Target",
        (true, false) => "FCP-Initiator",
        (false, true) => "FCP-Target",
        (false, false) => "",
    }
}

/// Kind of device.
pub fn device_type(row: &NameRow) -> String {
    // A virtual port has an address with a number behind the area.
    let kind = if row.port_id.ends_with("00") { "Physical" } else { "NPIV" };
    let role = match (has(row, "initiator"), has(row, "target")) {
        (true, false) => "Initiator",
        (false, true) => "Target",
        _ => "Unknown(initiator/target)",
    };
    format!("{kind} {role}")
}
