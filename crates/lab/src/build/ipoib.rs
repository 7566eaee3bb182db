//! IP over InfiniBand, and hosts that route between it and Ethernet.

use super::Where;
use crate::element::Element;
use crate::schema;
use sanloom_fc::config::{InfinibandNode, IpRouter, Ipoib, IpoibOfLab, PacketCost, Picos};

/// Returns the nodes with IPoIB and the routers of a lab.
pub(super) fn build(hosts: &[Where<'_>], storage: &[Where<'_>]) -> IpoibOfLab {
    let mut of_lab = IpoibOfLab::default();
    for (number, place) in (0..).zip(hosts) {
        let element = &place.element;
        of_lab.nodes.extend(ipoib(element).map(|ipoib| (InfinibandNode::Host(number), ipoib)));
        if element.has_table("ip_router") {
            let default = IpRouter::default();
            let router = IpRouter {
                per_packet: element.time("ip_router.per_packet").unwrap_or(default.per_packet),
                queue: element.integer("ip_router.queue").unwrap_or(default.queue),
            };
            of_lab.routers.insert(number, router);
        }
    }
    for (number, place) in (0..).zip(storage) {
        of_lab.nodes.extend(ipoib(&place.element).map(|ipoib| (InfinibandNode::Storage(number), ipoib)));
    }
    of_lab
}

fn ipoib(element: &Element<'_>) -> Option<Ipoib> {
    let default = Ipoib::default();
    element.has_table("ipoib").then(|| Ipoib {
        mode: element.choice("ipoib.mode", schema::IPOIB_MODES).unwrap_or(default.mode),
        mtu: element.integer("ipoib.mtu"),
        partition: element.integer("ipoib.partition").unwrap_or(default.partition),
        level: element.integer("ipoib.level"),
    })
}

/// Returns the costs of packets on the processor of a host, if the lab has any.
pub(super) fn cost(element: &Element<'_>) -> Option<PacketCost> {
    let time = |path: &str, fallback: &str| element.time(path).or_else(|| element.time(fallback));
    element.has_table("ipoib_cost").then(|| PacketCost {
        per_packet_received: time("ipoib_cost.per_packet_received", "tcp_cost.per_segment_received")
            .unwrap_or(Picos::ZERO),
        per_packet_sent: time("ipoib_cost.per_packet_sent", "tcp_cost.per_segment_sent").unwrap_or(Picos::ZERO),
    })
}
