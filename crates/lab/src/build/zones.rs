//! `[[zone]]`: names of nodes and ports to port names.

use super::Where;
use super::links::{RANGE_MISMATCH, share};
use super::nodes::Names;
use super::ports;
use crate::diagnostic::{Origin, Sink};
use crate::document::{self, Budget, Document};
use crate::schema::{self, Spread};
use sanloom_core::config::{Lab, Node, Zone, ZoneMember};
use sanloom_wire::Wwpn;
use std::rc::Rc;

/// Fills `lab.zoning.zones`.
pub(super) fn build<'d>(
    document: &'d Document,
    lab: &mut Lab,
    names: &Names,
    budget: &mut Budget,
    sink: &mut Sink,
) -> Vec<Where<'d>> {
    let mut places = Vec::new();
    for element in document.list("zone") {
        element.require_keys(sink);
        let Some((text, origin)) = element.patterns("name").first() else {
            continue;
        };
        let Some(zone_names) = budget.expand(text, origin, sink) else {
            continue;
        };
        if let Some(name) = zone_names.iter().find(|n| !document::good_name(n)) {
            document::bad_name(name, origin, sink);
            continue;
        }
        let spread = element.choice("spread", schema::SPREADS).unwrap_or(Spread::Blocks);
        let mut zones: Vec<Zone> = zone_names
            .iter()
            .map(|name| Zone { name: name.clone(), members: Vec::new(), principals: Vec::new() })
            .collect();
        for (text, origin) in element.patterns("members") {
            let Some(members) = budget.expand(text, origin, sink) else {
                continue;
            };
            let ports: Vec<Vec<Wwpn>> = members.iter().map(|name| member(lab, names, name, origin, sink)).collect();
            let count = zones.len();
            for (i, zone) in zones.iter_mut().enumerate() {
                let Some(chosen) = share(members.len(), count, i, spread) else {
                    sink.error(
                        RANGE_MISMATCH,
                        origin,
                        format!("{} names cannot be handed to {count} zones", members.len()),
                        "use as many names as zones, or a multiple of them",
                    );
                    break;
                };
                zone.members
                    .extend(chosen.into_iter().flat_map(|m| ports[m].iter().copied().map(ZoneMember::PortName)));
            }
        }
        let element = Rc::new(element);
        for mut zone in zones {
            zone.members.sort_unstable();
            zone.members.dedup();
            lab.zoning.zones.push(zone);
            places.push(Where { element: element.clone(), exact: Vec::new() });
        }
    }
    places
}

/// The port names that one member stands for.
fn member(lab: &Lab, names: &Names, text: &str, origin: &Origin, sink: &mut Sink) -> Vec<Wwpn> {
    if let Ok(name) = text.parse::<Wwpn>() {
        return vec![name];
    }
    let accept = |node| !matches!(node, Node::Switch(_));
    let Some(end) = ports::end(text, names, "host or storage system", accept, origin, sink) else {
        return Vec::new();
    };
    let all: Vec<Wwpn> = match end.node {
        Node::Host(i) => lab.hosts[usize::from(i)].hbas.iter().map(|h| h.wwpn).collect(),
        Node::Storage(i) => lab.storage[usize::from(i)].ports.iter().map(|p| p.wwpn).collect(),
        Node::Switch(_) => Vec::new(),
    };
    match end.port {
        None => all,
        Some(port) => match all.get(usize::from(port)) {
            Some(&name) => vec![name],
            None => {
                ports::no_such_port(text, all.len(), origin, sink);
                Vec::new()
            }
        },
    }
}
