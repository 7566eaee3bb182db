//! `[[persistent]]`: fixed addresses of ports.

use super::nodes::Names;
use super::ports::{self, BAD_PORT};
use crate::diagnostic::{Origin, Sink};
use crate::document::Document;
use crate::value;
use sanloom_fc::config::{Node, Switch};
use sanloom_fc::san::{AttachedPort, Lab};
use sanloom_fc::switch::Addressing;
use sanloom_wire::FcId;
use std::collections::BTreeMap;

/// Code of an address that is invalid for its port.
pub(crate) const BAD_FC_ID: &str = "bad-fc-id";

/// Fills `policy.persistent` of the switches.
pub(super) fn build(document: &Document, lab: &mut Lab, names: &Names, sink: &mut Sink) {
    let attached = lab.attached_ports();
    let mut owners: BTreeMap<(u16, FcId), String> = BTreeMap::new();
    for element in document.list("persistent") {
        element.require_keys(sink);
        let (Some((text, origin)), Some(address)) = (element.patterns("port").first(), element.text("address")) else {
            continue;
        };
        let Some(port) = port(text, &attached, names, origin, sink) else { continue };
        let place = element.origin("address");
        let Some(id) = address_of(address) else {
            let reason = format!("`{}` is not an address", value::cut(address));
            sink.error(BAD_FC_ID, &place, reason, "write 0x and six hexadecimal digits, such as 0x010500");
            continue;
        };
        let switch = &lab.switches[usize::from(port.switch)];
        if let Some(wanted) = misfit(switch, port, id) {
            let at = port.identity.port;
            let reason = format!("`{text}` is at port {at} of `{}`, which cannot give it 0x{id}", switch.name);
            sink.error(BAD_FC_ID, &place, reason, format!("write {wanted}"));
            continue;
        }
        if let Some(first) = owners.insert((port.switch, id), text.clone()) {
            let reason = format!("0x{id} is already the address of `{first}`");
            sink.error(BAD_FC_ID, &place, reason, "give every port an address of its own");
            continue;
        }
        let name = port.identity.port_name;
        lab.switches[usize::from(port.switch)].policy.persistent.insert(name, id);
    }
}

/// Returns a description of the valid addresses if the switch cannot assign `id` to the port.
fn misfit(switch: &Switch, port: &AttachedPort, id: FcId) -> Option<String> {
    let Switch { domain, .. } = switch;
    if switch.policy.addressing == Addressing::Flat {
        return (id.domain() != *domain).then(|| format!("0x{domain:02x} and four more digits"));
    }
    // FLOGI gets the first address of the port's area, FDISC one of the others.
    let (at, is_first) = (port.identity.port, id.port() == 0);
    let fits = id.domain() == *domain && u16::from(id.area()) == at && is_first != port.is_virtual;
    let digits = if port.is_virtual { "two digits from 01 to FF" } else { "00" };
    (!fits).then(|| format!("0x{domain:02x}{at:02x} and {digits}, or use addressing = \"flat\""))
}

fn address_of(text: &str) -> Option<FcId> {
    let digits = text.trim().strip_prefix("0x")?;
    let hex = digits.len() == 6 && digits.bytes().all(|byte| byte.is_ascii_hexdigit());
    u32::from_str_radix(digits, 16).ok().filter(|_| hex).map(FcId::new)
}

/// Returns the named linked or virtual port.
fn port<'p>(
    text: &str,
    attached: &'p [AttachedPort],
    names: &Names,
    origin: &Origin,
    sink: &mut Sink,
) -> Option<&'p AttachedPort> {
    let accept = |node| matches!(node, Node::Host(_) | Node::Storage(_));
    let end = ports::end(text, names, "host or storage system", accept, origin, sink)?;
    let mut of_node = attached.iter().filter(|port| port.node == end.node && end.port.is_none_or(|n| n == port.port));
    let found = of_node.next();
    if found.is_some() && of_node.next().is_none() {
        return found;
    }
    let (reason, remedy) = match found {
        None => {
            (format!("no link leads from `{}` to a switch", value::cut(text)), "name a port that is linked".to_owned())
        }
        Some(_) => (format!("`{text}` has several ports"), format!("name one of them, for example {text}:0")),
    };
    sink.error(BAD_PORT, origin, reason, remedy);
    None
}
