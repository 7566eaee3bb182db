//! Ports of a lab in zone reports, and the state of its zone database.

use sanloom_api::words::plural;
use sanloom_api::zoning::{ZonePort, ZoneState};
use sanloom_fc::config::Node;
use sanloom_fc::san::{AttachedPort, Lab};

/// Returns the name of a port, such as `server1:0`.
pub fn name(lab: &Lab, port: &AttachedPort) -> String {
    format!("{}:{}", node_name(lab, port.node), port.port)
}

pub fn node_name(lab: &Lab, node: Node) -> &str {
    match node {
        Node::Switch(n) => &lab.switches[usize::from(n)].name,
        Node::Host(n) => &lab.hosts[usize::from(n)].name,
        Node::Storage(n) => &lab.storage[usize::from(n)].name,
        Node::Loop(n) => &lab.loops[usize::from(n)].name,
    }
}

/// Returns a port in the form used in reports.
pub fn view(lab: &Lab, port: &AttachedPort) -> ZonePort {
    let switch = &lab.switches[usize::from(port.switch)];
    ZonePort {
        name: name(lab, port),
        port_name: port.identity.port_name.to_string(),
        node_name: port.identity.node_name.to_string(),
        port_id: port.identity.port_id.to_string(),
        switch: switch.name.clone(),
        domain: switch.domain,
        switch_port: port.identity.port,
    }
}

/// Formats a line such as "configuration `day` (2 zones), default zone closed".
pub fn state_line(state: &ZoneState) -> String {
    let zones = match &state.effective {
        Some(name) => format!("configuration `{name}` ({})", plural(state.zones.len(), "zone")),
        None => "no configuration in force".to_owned(),
    };
    format!("{zones}, default zone {}", if state.default_open { "open" } else { "closed" })
}
