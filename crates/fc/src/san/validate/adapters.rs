//! Interrupts of hosts whose traffic does not use them.

use super::Problems;
use crate::config::{EthernetNode, InfinibandNode, Node};
use crate::san::{Lab, Place, ProblemKind, Section};
use std::collections::BTreeSet;

/// Refuses interrupts of hosts without Fibre Channel: the results would be those without
/// interrupts.
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
}
