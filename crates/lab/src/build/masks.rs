//! `[[mask]]`: LUNs visible to each initiator.

use super::iscsi::check_name;
use super::nodes::Names;
use super::{ports, workloads};
use crate::diagnostic::{Origin, Sink};
use crate::document::{Budget, Document};
use sanloom_fc::config::{EthernetNode, InfinibandNode, Mask, Medium, Node};
use sanloom_fc::san::{Lab, srp_port};
use sanloom_scsi::scsi::InitiatorName;
use sanloom_wire::Wwpn;

/// Prefixes of iSCSI names (RFC 7143, section 4.2.7). Host names contain no full stop, so there is
/// no ambiguity.
const ISCSI: [&str; 3] = ["iqn.", "eui.", "naa."];

/// Returns all masks. `media` are the media of the LUNs of each storage system.
pub(super) fn build(
    document: &Document,
    lab: &Lab,
    media: &[Medium],
    names: &Names,
    budget: &mut Budget,
    sink: &mut Sink,
) -> Vec<Mask> {
    let mut masks = Vec::new();
    for element in document.list("mask") {
        element.require_keys(sink);
        let mut initiators = Vec::new();
        for (text, origin) in element.patterns("hosts") {
            for name in budget.expand(text, origin, sink).unwrap_or_default().iter() {
                initiators.extend(self::names(lab, names, name, origin, sink));
            }
        }
        masks.push(Mask { initiators, targets: workloads::targets(lab, &element, media, names, budget, sink) });
    }
    masks
}

/// Returns the initiator names of a text: an explicit name, the names of all ports of a host, or
/// that of one port. A host that uses iSCSI, or has no link, has its iSCSI name beside them, and a
/// host with InfiniBand interfaces their SRP initiator ports.
fn names(lab: &Lab, names: &Names, text: &str, origin: &Origin, sink: &mut Sink) -> Vec<InitiatorName> {
    let kind = text.get(..4).unwrap_or_default();
    if ISCSI.iter().any(|one| kind.eq_ignore_ascii_case(one)) {
        check_name(text, origin, sink);
        return vec![InitiatorName::Iscsi(text.into())];
    }
    let ports = port_names(lab, names, text, origin, sink).into_iter().map(InitiatorName::Fcp);
    let iscsi = match names.get(text) {
        Some(Node::Host(host)) if uses_iscsi(lab, host) => {
            Some(InitiatorName::Iscsi(lab.hosts[usize::from(host)].iscsi.name.as_str().into()))
        }
        _ => None,
    };
    let srp = match names.get(text) {
        Some(Node::Host(host)) => srp_names(lab, host),
        _ => Vec::new(),
    };
    ports.chain(iscsi).chain(srp).collect()
}

/// Returns the SRP initiator ports of a host.
fn srp_names(lab: &Lab, host: u16) -> Vec<InitiatorName> {
    let own = (0..).zip(lab.infiniband_interfaces());
    let own = own.filter(|(_, interface)| interface.end.node == InfinibandNode::Host(host));
    own.map(|(number, _)| InitiatorName::Srp(Box::new(srp_port(number)))).collect()
}

/// Returns whether a host has links of Ethernet, IPoIB, or no link: the simulation may then add
/// Ethernet.
fn uses_iscsi(lab: &Lab, host: u16) -> bool {
    let ethernet = || lab.ethernet_links.iter().flat_map(|link| &link.ends);
    let fibre = || lab.links.iter().flat_map(|link| &link.ends);
    let infiniband = || lab.infiniband.links.iter().flat_map(|link| &link.ends);
    let node = InfinibandNode::Host(host);
    ethernet().any(|end| end.node == EthernetNode::Host(host))
        || lab.infiniband.ipoib.nodes.contains_key(&node)
        || !fibre().any(|end| end.node == Node::Host(host)) && !infiniband().any(|end| end.node == node)
}

fn port_names(lab: &Lab, names: &Names, text: &str, origin: &Origin, sink: &mut Sink) -> Vec<Wwpn> {
    if let Ok(name) = text.parse::<Wwpn>() {
        return vec![name];
    }
    let accept = |node| matches!(node, Node::Host(_));
    let Some(end) = ports::end(text, names, "host", accept, origin, sink) else { return Vec::new() };
    let Node::Host(host) = end.node else { return Vec::new() };
    let all: Vec<Wwpn> = lab.hosts[usize::from(host)].hbas.iter().map(|hba| hba.wwpn).collect();
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
