//! IP over InfiniBand of a lab: interfaces and routers.

use super::srp::connection;
use crate::infiniband::Endpoint;
use crate::iscsi::{AdapterPlan, IscsiPlan, RouterPlan};
use crate::tcp::{IpoibInterface, IpoibPlan};
use sanloom_fc::config::{EthernetNode, InfinibandNode, IpoibMode};
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
        adapter(match interface.end.node {
            InfinibandNode::Host(host) => EthernetNode::Host(host),
            InfinibandNode::Storage(storage) => EthernetNode::Storage(storage),
            InfinibandNode::Switch(switch) => EthernetNode::Switch(switch),
        })
    }));
    for (number, (&host, router)) in (0..).zip(&lab.infiniband.ipoib.routers) {
        plan.routers.push(RouterPlan { host, packet_ps: router.per_packet.0, queue: router.queue });
        for interface in paths.interfaces_of_host(host) {
            plan.adapters[usize::from(interface)].router = Some(number);
        }
    }
}
