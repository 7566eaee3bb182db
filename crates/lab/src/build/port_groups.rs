//! Target port groups of a lab: `[port_group.NAME]`.

use super::iscsi::expanded;
use super::nodes::Names;
use super::ports;
use super::workloads::CONFLICT;
use crate::diagnostic::{Origin, Sink};
use crate::document::{Budget, Document};
use crate::element::Element;
use crate::schema;
use crate::value;
use sanloom_fc::config::{Iscsi, Node, PortGroupSpec};
use sanloom_fc::san::Lab;
use sanloom_scsi::scsi::PortGroup;
use std::collections::BTreeMap;
use std::net::SocketAddr;

/// Code of an address that is not a portal of the storage system.
pub(crate) const UNKNOWN_PORTAL: &str = "unknown-portal";

/// Returns all target port groups.
pub(super) fn build(
    document: &Document,
    lab: &Lab,
    iscsi: &BTreeMap<u16, Iscsi>,
    names: &Names,
    budget: &mut Budget,
    sink: &mut Sink,
) -> Vec<PortGroupSpec> {
    let mut groups: Vec<PortGroupSpec> = Vec::new();
    let mut first: BTreeMap<u16, Origin> = BTreeMap::new();
    for element in document.named("port_group", budget, sink) {
        element.require_keys(sink);
        let Some(storage) = storage(&element, names, sink) else { continue };
        let number = 1 + groups.iter().filter(|other| other.storage == storage).count() as u16;
        let mut group = PortGroupSpec {
            name: element.name.clone(),
            storage,
            number,
            portals: Vec::new(),
            ports: Vec::new(),
            access: PortGroup {
                state: element.choice("state", schema::ACCESS_STATES).unwrap_or_default(),
                preferred: element.flag("preferred"),
            },
        };
        for (text, origin) in expanded(&element, "ports", budget, sink) {
            let taken = add(&mut group, &groups, &text, (lab, iscsi.get(&storage), names), &origin, sink);
            if let Some(other) = taken {
                let reason = format!("`{}` is in `{other}` already", value::cut(&text));
                sink.error(CONFLICT, &origin, reason, "name each port in one group");
            }
        }
        first.entry(storage).or_insert_with(|| element.origin("ports"));
        groups.push(group);
    }
    for (storage, origin) in first {
        let left = left_over(&groups, lab, iscsi, storage);
        if !left.is_empty() && !sink.has_errors() {
            let reason = format!("no group of `{}` has {}", lab.storage[usize::from(storage)].name, left.join(", "));
            sink.error(CONFLICT, &origin, reason, "name every port and portal of the storage system in one group");
        }
    }
    groups
}

fn is_storage(node: Node) -> bool {
    matches!(node, Node::Storage(_))
}

fn storage(element: &Element<'_>, names: &Names, sink: &mut Sink) -> Option<u16> {
    let text = element.text("storage")?;
    match names.find(text, "storage system", is_storage, &element.origin("storage"), sink)? {
        Node::Storage(number) => Some(number),
        _ => None,
    }
}

/// Adds a portal or port. Returns the name of the group that already contains it.
fn add(
    group: &mut PortGroupSpec,
    groups: &[PortGroupSpec],
    text: &str,
    (lab, iscsi, names): (&Lab, Option<&Iscsi>, &Names),
    origin: &Origin,
    sink: &mut Sink,
) -> Option<String> {
    let storage = group.storage;
    let config = &lab.storage[usize::from(storage)];
    let others = || groups.iter().filter(|other| other.storage == storage);
    if let Ok(portal) = text.parse::<SocketAddr>() {
        let portals = iscsi.map_or(&[][..], |iscsi| &iscsi.portals);
        if !portals.contains(&portal) {
            let reason = format!("`{}` does not listen at `{portal}`", config.name);
            let help = match portals {
                [] => "add iscsi = { portals = … } to it".to_owned(),
                _ => format!(
                    "its portals are {}",
                    portals.iter().map(SocketAddr::to_string).collect::<Vec<_>>().join(", ")
                ),
            };
            sink.error(UNKNOWN_PORTAL, origin, reason, help);
            return None;
        }
        let taken = others().find(|other| other.portals.contains(&portal)).map(|other| other.name.clone());
        let again = group.portals.contains(&portal).then(|| group.name.clone());
        group.portals.push(portal);
        return taken.or(again);
    }
    let end = ports::end(text, names, "port of storage or portal", is_storage, origin, sink)?;
    if end.node != Node::Storage(storage) {
        let reason = format!("`{}` is not a port of `{}`", value::cut(text), config.name);
        sink.error(CONFLICT, origin, reason, format!("write {}:0 for its first port", config.name));
        return None;
    }
    let port = end.port.unwrap_or(0);
    if usize::from(port) >= config.ports.len() {
        ports::no_such_port(text, config.ports.len(), origin, sink);
        return None;
    }
    let taken = others().find(|other| other.ports.contains(&port)).map(|other| other.name.clone());
    let again = group.ports.contains(&port).then(|| group.name.clone());
    group.ports.push(port);
    taken.or(again)
}

/// Returns the ports and portals that are in no group.
fn left_over(groups: &[PortGroupSpec], lab: &Lab, iscsi: &BTreeMap<u16, Iscsi>, storage: u16) -> Vec<String> {
    let config = &lab.storage[usize::from(storage)];
    let of = || groups.iter().filter(move |group| group.storage == storage);
    let attached = |port: &u16| {
        let end = |end: &sanloom_fc::config::LinkEnd| (end.node, end.port) == (Node::Storage(storage), *port);
        lab.links.iter().any(|link| link.ends.iter().any(end))
    };
    let ports = (0..config.ports.len() as u16).filter(attached);
    let ports = ports.filter(|port| !of().any(|group| group.ports.contains(port)));
    let portals = iscsi.get(&storage).map_or(&[][..], |iscsi| &iscsi.portals).iter();
    let portals = portals.filter(|portal| !of().any(|group| group.portals.contains(portal)));
    let named = ports.map(|port| format!("{}:{port}", config.name));
    named.chain(portals.map(SocketAddr::to_string)).collect()
}
