//! Buses and interrupts of nodes whose traffic does not use them.

use super::Problems;
use crate::config::{EthernetNode, InfinibandNode, Node};
use crate::san::{Lab, Place, ProblemKind, Section};
use std::collections::BTreeSet;

/// Refuses buses and interrupts of nodes whose traffic does not use them: the results would be
/// those of an infinitely fast bus.
pub(super) fn validate(lab: &Lab, problems: &mut Problems) {
    let fabric: BTreeSet<Node> = lab.links.iter().flat_map(|link| link.ends).map(|end| end.node).collect();
    let of_lab = lab.ethernet_links.iter().filter(|_| !lab.ethernet_is_implied());
    let ethernet: BTreeSet<EthernetNode> = of_lab.flat_map(|link| link.ends).map(|end| end.node).collect();
    let subnet: BTreeSet<InfinibandNode> =
        lab.infiniband.links.iter().flat_map(|link| link.ends).map(|end| end.node).collect();
    for (number, host) in (0..).zip(&lab.hosts) {
        let has_sessions =
            ethernet.contains(&EthernetNode::Host(number)) || subnet.contains(&InfinibandNode::Host(number));
        if host.interrupt.is_some() && has_sessions && !fabric.contains(&Node::Host(number)) {
            problems.add(
                ProblemKind::BadLink,
                Place::of(Section::Host, usize::from(number)).key("interrupt"),
                format!(
                    "`interrupt` is that of Fibre Channel HBAs, and no link of Fibre Channel ends at `{}`, so it would \
                     have no effect",
                    host.name
                ),
                "leave `interrupt` out, and use `tcp_cost.interrupt` for iSCSI or `srp_cost.per_completion` for SRP",
            );
        }
    }
    for (number, storage) in (0..).zip(&lab.storage) {
        let over_ethernet = ethernet.contains(&EthernetNode::Storage(number)) && lab.live.iscsi.contains_key(&number);
        let node = InfinibandNode::Storage(number);
        let over_infiniband = subnet.contains(&node)
            && (lab.infiniband.targets.contains_key(&number) || lab.infiniband.ipoib.nodes.contains_key(&node));
        // Ports of Fibre Channel use them, whatever the other networks do.
        if fabric.contains(&Node::Storage(number)) || !(over_ethernet || over_infiniband) {
            continue;
        }
        for (key, is_given) in [("bus", storage.bus.is_some()), ("interrupt", storage.interrupt.is_some())] {
            if is_given {
                problems.add(
                    ProblemKind::BadLink,
                    Place::of(Section::Storage, usize::from(number)).key(key),
                    format!(
                        "`{key}` of a storage system is that of its Fibre Channel ports, and hosts reach `{}` by iSCSI or \
                         SRP, which do not use it",
                        storage.name
                    ),
                    format!("leave `{key}` out, and choose a smaller `rate` or a slower link, or use Fibre Channel only"),
                );
            }
        }
    }
}
