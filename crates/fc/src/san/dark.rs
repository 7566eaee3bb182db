//! Links without light at the start of a run: [`Lab::links_down_at_start`].

use super::Lab;
use crate::config::{FaultKind, Node, Picos};
use std::collections::BTreeSet;

impl Lab {
    /// Links that faults keep dark from the start of the workloads on.
    pub fn links_down_at_start(&self) -> BTreeSet<u16> {
        let from_the_start = self.faults.iter().filter(|fault| fault.at == Picos::ZERO);
        let links = from_the_start.filter_map(|fault| match fault.kind {
            FaultKind::LinkDown { link } | FaultKind::PortDown { link, .. } => Some(link),
            _ => None,
        });
        links.collect()
    }

    /// Links between switches among [`Lab::links_down_at_start`]. Such links are dark before as
    /// well, so the fabrics at their ends form separately.
    pub fn dark_links(&self) -> BTreeSet<u16> {
        let is_isl = |link: &u16| {
            let link = self.links.get(usize::from(*link));
            link.is_some_and(|link| link.ends.iter().all(|end| matches!(end.node, Node::Switch(_))))
        };
        self.links_down_at_start().into_iter().filter(is_isl).collect()
    }
}
