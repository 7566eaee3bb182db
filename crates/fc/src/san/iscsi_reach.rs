//! Storage that hosts cannot reach over Ethernet while one part of it is broken: [`IscsiReach`].

use super::Lab;
use super::dark::ethernet_links_down_at_start;
use super::ethernet::ethernet_groups_without;
use crate::config::EthernetNode;
use std::collections::{BTreeMap, BTreeSet};

/// Part of Ethernet that can fail alone. An interface fails with its link.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum EthernetPart {
    /// A link, by index into `ethernet_links`.
    Link(u16),
    /// A switch, by index into `ethernet_switches`.
    Switch(u16),
}

/// A pair of a host and a storage system, by index.
type Pair = (u16, u16);

/// Sessions of iSCSI that workloads need, for the question which storage a failure cuts off.
#[derive(Clone, Debug)]
pub struct IscsiReach<'l> {
    lab: &'l Lab,
    /// Links that are dark from the start.
    dark: BTreeSet<u16>,
    /// For each pair, the VLAN and the links at both ends of each session.
    sessions: BTreeMap<Pair, Vec<[usize; 2]>>,
    /// Pairs of which every session uses the link.
    only: BTreeMap<usize, BTreeSet<Pair>>,
}

impl<'l> IscsiReach<'l> {
    /// Analyses a lab that [`Lab::validate`] accepts. Links that are dark from the start carry no
    /// session.
    pub fn of(lab: &'l Lab) -> IscsiReach<'l> {
        let dark = ethernet_links_down_at_start(lab);
        let mut reach = IscsiReach { lab, dark, sessions: BTreeMap::new(), only: BTreeMap::new() };
        lab.for_each_iscsi_pair(|paths, host, storage| {
            let portals = paths.portals(storage);
            let link = |interface: u16| paths.interfaces[usize::from(interface)].link;
            let pairs = paths.pairs(host, storage).into_iter();
            let ends = pairs.map(|(own, portal)| [link(own), link(portals[usize::from(portal)])]);
            let mut ends: Vec<[usize; 2]> = ends.collect();
            ends.sort_unstable();
            ends.dedup();
            reach.sessions.insert((host, storage), ends);
            true
        });
        let left = reach.joined_without(&reach.dark);
        reach.sessions.retain(|pair, sessions| {
            sessions.retain(|session| left.contains(&(*pair, *session)));
            !sessions.is_empty()
        });
        for (pair, sessions) in &reach.sessions {
            for link in sessions[0] {
                if sessions.iter().all(|session| session.contains(&link)) {
                    reach.only.entry(link).or_default().insert(*pair);
                }
            }
        }
        reach
    }

    /// Pairs with at least one session without a failure.
    pub fn pairs(&self) -> impl Iterator<Item = Pair> {
        self.sessions.keys().copied()
    }

    /// Returns whether a pair has a session without a failure.
    pub fn joins(&self, pair: Pair) -> bool {
        self.sessions.contains_key(&pair)
    }

    /// Parts whose failure may cut off a pair: links that are the only ones of a pair, links
    /// between two switches that have no other one, and switches.
    pub fn candidates(&self) -> BTreeSet<EthernetPart> {
        let mut between: BTreeMap<[EthernetNode; 2], Vec<u16>> = BTreeMap::new();
        for (number, link) in (0..).zip(&self.lab.ethernet_links) {
            if link.switches().count() == 2 {
                let mut ends = link.ends.map(|end| end.node);
                ends.sort_unstable();
                between.entry(ends).or_default().push(number);
            }
        }
        let alone = between.into_values().filter(|links| links.len() == 1).flatten();
        let links = self.only.keys().map(|link| *link as u16).chain(alone).map(EthernetPart::Link);
        links.chain((0..self.lab.ethernet_switches.len() as u16).map(EthernetPart::Switch)).collect()
    }

    /// Returns the pairs that lose their last session when `part` fails.
    pub fn cut_off(&self, part: EthernetPart) -> BTreeSet<Pair> {
        let links = &self.lab.ethernet_links;
        let mut broken = self.dark.clone();
        match part {
            EthernetPart::Link(link) if links[usize::from(link)].switches().count() < 2 => {
                return self.only.get(&usize::from(link)).cloned().unwrap_or_default();
            }
            EthernetPart::Link(link) => {
                broken.insert(link);
            }
            EthernetPart::Switch(switch) => {
                let ends_there = |link: &u16| links[usize::from(*link)].switches().any(|(_, other)| other == switch);
                broken.extend((0..links.len() as u16).filter(ends_there));
            }
        }
        let left: BTreeSet<Pair> = self.joined_without(&broken).into_iter().map(|(pair, _)| pair).collect();
        self.sessions.keys().filter(|pair| !left.contains(pair)).copied().collect()
    }

    /// Returns the sessions whose ends are joined without some links.
    fn joined_without(&self, broken: &BTreeSet<u16>) -> BTreeSet<(Pair, [usize; 2])> {
        let mut by_vlan = BTreeMap::new();
        let mut joined = BTreeSet::new();
        for (pair, sessions) in &self.sessions {
            let vlan = self.lab.hosts.get(usize::from(pair.0)).and_then(|host| host.iscsi.vlan);
            let groups = by_vlan.entry(vlan).or_insert_with(|| ethernet_groups_without(self.lab, vlan, broken));
            let is_joined = |[own, peer]: &&[usize; 2]| groups[*own].is_some() && groups[*own] == groups[*peer];
            joined.extend(sessions.iter().filter(is_joined).map(|session| (*pair, *session)));
        }
        joined
    }
}
