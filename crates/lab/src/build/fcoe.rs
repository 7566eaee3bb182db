//! Links of FCoE: whether a simulation carries them over the Ethernet of the lab.

use crate::element::Element;
use sanloom_fc::config::{EthernetRate, FCIP_BUFFER_BYTES, LineRate, Node, VirtualLink};
use sanloom_fc::san::{Lab, ethernet_node};

/// Returns the virtual link of a link with the table `ethernet`, if both ends have Ethernet
/// interfaces.
pub(super) fn virtual_link(lab: &Lab, element: &Element<'_>, ends: [Node; 2]) -> Option<VirtualLink> {
    let is_fcip = element.has_table("fcip");
    if !is_fcip && !element.has_table("ethernet") || rate_at(lab, ends[0]).is_none() || rate_at(lab, ends[1]).is_none()
    {
        return None;
    }
    if is_fcip {
        let fcip = Some(super::fcip::tunnel(element));
        return Some(VirtualLink { vlan: None, priority: 0, pfc: false, buffer_bytes: Some(FCIP_BUFFER_BYTES), fcip });
    }
    Some(VirtualLink {
        vlan: element.integer("ethernet.vlan"),
        priority: element.integer("ethernet.priority").unwrap_or(3),
        pfc: element.flag("ethernet.pfc"),
        buffer_bytes: element.size("ethernet.buffer"),
        fcip: None,
    })
}

/// Returns the rate of Fibre Channel that is next to that of the slower interface, for drawings and
/// estimates. Frames and results have the rate of Ethernet.
pub(super) fn line_rate(lab: &Lab, ends: [Node; 2]) -> LineRate {
    let rate = ends.iter().filter_map(|end| rate_at(lab, *end)).min();
    match rate {
        Some(EthernetRate::G1) => LineRate::Fc1,
        Some(EthernetRate::G2) => LineRate::Fc2,
        Some(EthernetRate::G5) => LineRate::Fc4,
        Some(EthernetRate::G10) | None => LineRate::Fc10,
        Some(EthernetRate::G25) => LineRate::Fc32,
        Some(EthernetRate::G40 | EthernetRate::G50) => LineRate::Fc64,
        Some(EthernetRate::G100 | EthernetRate::G200 | EthernetRate::G400) => LineRate::Fc128,
    }
}

/// Returns the rate of the slowest Ethernet interface of a node.
fn rate_at(lab: &Lab, node: Node) -> Option<EthernetRate> {
    let node = ethernet_node(node)?;
    let own = lab.ethernet_links.iter().filter(|link| link.ends.iter().any(|end| end.node == node));
    own.map(|link| link.rate).min()
}
