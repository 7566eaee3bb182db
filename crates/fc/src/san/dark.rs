//! Links without light at the start of a run: [`Lab::links_down_at_start`].

use super::Lab;
use super::fcoe::fcoe_paths_without;
use crate::config::{
    EthernetFault, EthernetLink, Fault, FaultKind, InfinibandFault, InfinibandLink, Link, Node, Picos,
};
use std::collections::BTreeSet;

impl Lab {
    /// Links that faults keep dark from the start of the workloads on, among them all links of
    /// switches that are reset then.
    pub fn links_down_at_start(&self) -> BTreeSet<u16> {
        let mut links = self.links_cut_at_start();
        links.extend(self.links_of_resets(|fault| fault.at == Picos::ZERO));
        links
    }

    /// Links among [`Lab::links_down_at_start`] that never come up.
    pub fn links_down_for_good(&self) -> BTreeSet<u16> {
        let is_for_good = |fault: &Fault| fault.at == Picos::ZERO && fault.until.is_none();
        let mut links: BTreeSet<u16> = (self.faults.iter().filter(|fault| is_for_good(fault)))
            .filter_map(|fault| match fault.kind {
                FaultKind::LinkDown { link } | FaultKind::PortDown { link, .. } => Some(link),
                _ => None,
            })
            .collect();
        links.extend(self.links_of_resets(is_for_good));
        for fault in &self.faults {
            if let FaultKind::LinkUp { link } = fault.kind {
                links.remove(&link);
            }
        }
        links
    }

    /// Links between switches that faults of links keep dark from the start of the workloads on.
    /// Such links are dark before as well, so the fabrics at their ends form separately. A switch
    /// that is reset at the start has joined its fabric before.
    pub fn dark_links(&self) -> BTreeSet<u16> {
        self.links_cut_at_start().into_iter().filter(|link| self.is_isl(*link)).collect()
    }

    /// Links between switches among [`Lab::links_down_at_start`].
    pub(super) fn isls_down_at_start(&self) -> BTreeSet<u16> {
        self.links_down_at_start().into_iter().filter(|link| self.is_isl(*link)).collect()
    }

    fn is_isl(&self, link: u16) -> bool {
        let link = self.links.get(usize::from(link));
        link.is_some_and(|link| link.ends.iter().all(|end| matches!(end.node, Node::Switch(_))))
    }

    /// Links that faults of their own keep dark from the start of the workloads on.
    fn links_cut_at_start(&self) -> BTreeSet<u16> {
        let from_the_start = self.faults.iter().filter(|fault| fault.at == Picos::ZERO);
        let links = from_the_start.filter_map(|fault| match fault.kind {
            FaultKind::LinkDown { link } | FaultKind::PortDown { link, .. } => Some(link),
            _ => None,
        });
        let mut links: BTreeSet<u16> = links.collect();
        let dark = ethernet_links_down_at_start(self);
        if !dark.is_empty() {
            let virtual_links = fcoe_paths_without(self, &dark).into_iter();
            links.extend(virtual_links.filter(|path| !path.is_joined).map(|path| path.link));
        }
        links
    }

    /// Links at the switches of these resets.
    fn links_of_resets(&self, is_meant: impl Fn(&Fault) -> bool) -> BTreeSet<u16> {
        let resets = self.faults.iter().filter(|fault| is_meant(fault));
        let switches: BTreeSet<Node> = resets
            .filter_map(|fault| match fault.kind {
                FaultKind::SwitchReset { switch } => Some(Node::Switch(switch)),
                _ => None,
            })
            .collect();
        let is_down = |link: &Link| link.ends.iter().any(|end| switches.contains(&end.node));
        (0..).zip(&self.links).filter(|(_, link)| is_down(link)).map(|(number, _)| number).collect()
    }
}

/// Ethernet links that faults keep dark from the start of the workloads on, among them all links
/// of switches that restart then. Indices into `ethernet_links`.
pub fn ethernet_links_down_at_start(lab: &Lab) -> BTreeSet<u16> {
    let mut dark = BTreeSet::new();
    for fault in lab.faults.iter().filter(|fault| fault.at == Picos::ZERO) {
        match fault.kind {
            FaultKind::Ethernet(EthernetFault::LinkDown { link } | EthernetFault::PortDown { link, .. }) => {
                dark.insert(link);
            }
            FaultKind::Ethernet(EthernetFault::SwitchReset { switch }) => {
                let links = (0..).zip(&lab.ethernet_links);
                let is_there = |link: &EthernetLink| link.switches().any(|(_, other)| other == switch);
                dark.extend(links.filter(|(_, link)| is_there(link)).map(|(number, _)| number));
            }
            _ => {}
        }
    }
    dark
}

/// InfiniBand links that faults keep dark from the start of the workloads on, among them all links
/// of switches that restart then. Indices into the links of
/// [`Infiniband`](crate::config::Infiniband).
pub fn infiniband_links_down_at_start(lab: &Lab) -> BTreeSet<u16> {
    let mut dark = BTreeSet::new();
    for fault in lab.faults.iter().filter(|fault| fault.at == Picos::ZERO) {
        match fault.kind {
            FaultKind::Infiniband(InfinibandFault::LinkDown { link } | InfinibandFault::PortDown { link, .. }) => {
                dark.insert(link);
            }
            FaultKind::Infiniband(InfinibandFault::SwitchReset { switch }) => {
                let links = (0..).zip(&lab.infiniband.links);
                let is_there = |link: &InfinibandLink| link.switches().any(|(_, other)| other == switch);
                dark.extend(links.filter(|(_, link)| is_there(link)).map(|(number, _)| number));
            }
            _ => {}
        }
    }
    dark
}
