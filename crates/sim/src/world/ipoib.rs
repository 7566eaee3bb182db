//! IP over InfiniBand of a lab: interfaces and routers.

use super::srp::connection;
use crate::infiniband::Endpoint;
use crate::iscsi::{AdapterPlan, IscsiPlan, RouterPlan};
use crate::tcp::{IpoibInterface, IpoibPlan};
use sanloom_fc::config::{EthernetNode, InfinibandNode, IpoibMode, Picos};
use sanloom_fc::san::{InfinibandInterface, IpPaths, Lab, ipoib_level};
use sanloom_transport::infiniband::partition::PKey;

/// Adds the interfaces of InfiniBand behind those of Ethernet, and the routers of a lab.
pub(super) fn add(lab: &Lab, paths: &IpPaths<'_>, plan: &mut IscsiPlan, adapter: impl Fn(EthernetNode) -> AdapterPlan) {
    if !lab.infiniband.has_ipoib() {
        return;
    }
    let interface = |(number, interface): (u16, &InfinibandInterface)| {
        let ipoib = paths.ipoib(interface.end.node)?;
        let level = ipoib_level(lab, interface.end.node)?;
        Some(IpoibInterface {
            at: Endpoint { interface: number, key: PKey(0x8000 | ipoib.partition), level },
            is_connected: ipoib.mode == IpoibMode::Connected,
        })
    };
    plan.ipoib = Some(IpoibPlan {
        first: paths.first_of_infiniband(),
        interfaces: (0..).zip(&paths.infiniband).map(interface).collect(),
        connection: connection(&lab.infiniband.subnet),
    });
    plan.adapters.extend(paths.infiniband.iter().map(|interface| {
        let plan = adapter(match interface.end.node {
            InfinibandNode::Host(host) => EthernetNode::Host(host),
            InfinibandNode::Storage(storage) => EthernetNode::Storage(storage),
            InfinibandNode::Switch(switch) => EthernetNode::Switch(switch),
        });
        // Adapters join no packets of IPoIB.
        AdapterPlan { number: interface.end.port, batch_bytes: 0, polls: takes_time(lab, interface.end.node), ..plan }
    }));
    for (number, (&host, router)) in (0..).zip(&lab.infiniband.ipoib.routers) {
        plan.routers.push(RouterPlan { host, packet_ps: router.per_packet.0, queue: router.queue });
        for interface in paths.interfaces_of_host(host) {
            plan.adapters[usize::from(interface)].router = Some(number);
        }
    }
}

/// Returns whether packets of IPoIB that arrive take time of the processor of a host. A host with
/// an iSCSI adapter handles them itself.
fn takes_time(lab: &Lab, node: InfinibandNode) -> bool {
    let InfinibandNode::Host(host) = node else { return false };
    let processor = &lab.hosts[usize::from(host)].processor;
    let own = processor.ipoib.is_some_and(|cost| cost.per_packet_received != Picos::ZERO);
    own || processor.tcp.takes_time_to_receive()
}
