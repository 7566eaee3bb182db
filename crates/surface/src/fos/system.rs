//! State of the switch as a machine: its control processor, its resources, on and off.

use super::fault::Fault;
use super::ports;
use super::room::Room;
use super::tree::Element;
use crate::server::process::Usage;
use sanloom_api::control::Request;
use sanloom_api::view::Dark;

/// GET of `ha-status`. A switch has one control processor.
pub fn ha_status(_: &mut Room<'_>) -> Result<Vec<Element>, Fault> {
    let leaves = vec![Element::number("active-cp", 0), Element::bool("ha-enabled", false)];
    Ok(vec![Element::container("ha-status", leaves)])
}

/// GET of `system-resources`: those of the process that serves the switch.
pub fn resources(_: &mut Room<'_>) -> Result<Vec<Element>, Fault> {
    let Some(Usage { processor_percent, memory_bytes, total_bytes }) = Usage::read() else {
        return Err(Fault::empty("No entries found"));
    };
    let leaves = vec![
        Element::number("cpu-usage", processor_percent),
        Element::number("memory-usage", memory_bytes.saturating_mul(100) / total_bytes.max(1)),
        Element::number("total-memory", total_bytes / 1_024),
    ];
    Ok(vec![Element::container("system-resources", leaves)])
}

/// True if a client has disabled the switch.
pub fn is_disabled(room: &Room<'_>) -> bool {
    room.shared.lock().disabled.contains_key(&room.switch)
}

/// Disables all ports of the switch, or enables those that were disabled so. Ports that an operator
/// has disabled before stay disabled.
///
/// # Errors
/// The fabric refuses to change a port. Ports before it have changed.
pub fn set_enabled(room: &mut Room<'_>, enabled: bool) -> Result<(), Fault> {
    let switch = room.switch.clone();
    let (_, all) = ports::all(room)?;
    let before = room.shared.lock().disabled.remove(&switch);
    if enabled {
        let before = before.unwrap_or_default();
        for port in all.iter().filter(|port| before.contains(&port.number)) {
            ports::set_enabled(room, port, true)?;
        }
        return Ok(());
    }
    let mut done = before.unwrap_or_default();
    let mut outcome = Ok(());
    for port in &all {
        let has_line = port.row.as_ref().is_some_and(|row| !matches!(row.dark, Some(Dark::Disabled | Dark::Unplugged)));
        if !has_line {
            continue;
        }
        outcome = room.ask(Request::Port { port: port.lab_name(&switch), enabled: false }).map(drop);
        if outcome.is_err() {
            break;
        }
        done.insert(port.number);
    }
    room.shared.lock().disabled.insert(switch, done);
    outcome
}
