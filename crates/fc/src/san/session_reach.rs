//! Storage that hosts cannot reach over Ethernet or InfiniBand while one part of it is broken:
//! [`SessionReach`].

use super::dark::{ethernet_links_down_at_start, infiniband_links_down_at_start};
use super::ethernet::ethernet_groups_without;
use super::infiniband::infiniband_groups_without;
use super::subnet::SubnetGraph;
use super::{IpPaths, Lab};
use crate::config::SubnetRouting;
use std::collections::{BTreeMap, BTreeSet};

/// Part of Ethernet or InfiniBand that can fail alone. An interface fails with its link.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum NetworkPart {
    /// A link, by index among those of its network.
    Link(u16),
    /// A switch, by index among those of its network.
    Switch(u16),
}

/// Network of sessions.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Network {
    /// Ethernet, with sessions of iSCSI.
    Ethernet,
    /// InfiniBand, with channels of SRP and sessions of iSCSI over IPoIB.
    Infiniband,
}

/// A pair of a host and a storage system, by index.
type Pair = (u16, u16);

/// Both ends of a session or channel.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
struct Session {
    links: [u16; 2],
    interfaces: [u16; 2],
    /// The session continues behind a router over the other network.
    is_leg: bool,
}

/// Sessions of iSCSI or channels of SRP that workloads need, for the question which storage a
/// failure cuts off.
#[derive(Clone, Debug)]
pub struct SessionReach<'l> {
    lab: &'l Lab,
    network: Network,
    /// The subnet, if its routing engine may leave joined interfaces without a path.
    subnet: Option<SubnetGraph<'l>>,
    /// Switches at the ends of each link.
    switches: Vec<[Option<u16>; 2]>,
    number_of_switches: u16,
    /// Links that are dark from the start.
    dark: BTreeSet<u16>,
    sessions: BTreeMap<Pair, Vec<Session>>,
    /// Pairs of which every session uses the link.
    only: BTreeMap<u16, BTreeSet<Pair>>,
    /// Links at both ends of the first session of each virtualization switch with each storage
    /// system behind it.
    back_ends: BTreeMap<Pair, [u16; 2]>,
}

impl<'l> SessionReach<'l> {
    /// Analyses the sessions of iSCSI of a lab that [`Lab::validate`] accepts. Links that are dark
    /// from the start carry none.
    pub fn of_iscsi(lab: &'l Lab) -> SessionReach<'l> {
        let mut sessions: BTreeMap<Pair, Vec<Session>> = BTreeMap::new();
        for (pair, session) in ip_sessions(lab, Network::Ethernet) {
            sessions.entry(pair).or_default().push(session);
        }
        SessionReach {
            lab,
            network: Network::Ethernet,
            subnet: None,
            switches: lab.ethernet_links.iter().map(|link| ends(&mut link.switches())).collect(),
            number_of_switches: lab.ethernet_switches.len() as u16,
            dark: ethernet_links_down_at_start(lab),
            sessions,
            only: BTreeMap::new(),
            back_ends: back_ends(lab),
        }
        .analysed()
    }

    /// As [`SessionReach::of_iscsi`], for channels of SRP and sessions of iSCSI over IPoIB.
    pub fn of_infiniband(lab: &'l Lab) -> SessionReach<'l> {
        let mut sessions: BTreeMap<Pair, Vec<Session>> = BTreeMap::new();
        lab.for_each_srp_pair(|paths, host, storage| {
            let ports = paths.target_ports(storage);
            let link = |interface: u16| paths.interfaces[usize::from(interface)].link as u16;
            let session = |(own, port): (u16, u16)| {
                let interfaces = [own, ports[usize::from(port)]];
                Session { links: interfaces.map(link), interfaces, is_leg: false }
            };
            sessions.insert((host, storage), paths.pairs(host, storage).into_iter().map(session).collect());
            true
        });
        for (pair, session) in ip_sessions(lab, Network::Infiniband) {
            sessions.entry(pair).or_default().push(session);
        }
        SessionReach {
            lab,
            network: Network::Infiniband,
            subnet: (lab.infiniband.subnet.routing != SubnetRouting::MinHop).then(|| SubnetGraph::of(lab)),
            switches: lab.infiniband.links.iter().map(|link| ends(&mut link.switches())).collect(),
            number_of_switches: lab.infiniband.switches.len() as u16,
            dark: infiniband_links_down_at_start(lab),
            sessions,
            only: BTreeMap::new(),
            back_ends: BTreeMap::new(),
        }
        .analysed()
    }

    /// Removes sessions that are not joined without a failure, and finds links without which a pair
    /// has none.
    fn analysed(mut self) -> SessionReach<'l> {
        for sessions in self.sessions.values_mut() {
            sessions.sort_unstable();
            sessions.dedup_by_key(|session| session.links);
        }
        let left = self.joined_without(&self.dark);
        self.sessions.retain(|pair, sessions| {
            sessions.retain(|session| left.contains(&(*pair, *session)));
            !sessions.is_empty()
        });
        for (pair, sessions) in &self.sessions {
            for link in sessions[0].links {
                if sessions.iter().all(|session| session.links.contains(&link)) {
                    self.only.entry(link).or_default().insert(*pair);
                }
            }
        }
        self
    }

    /// Pairs with at least one session without a failure.
    pub fn pairs(&self) -> impl Iterator<Item = Pair> {
        self.sessions.keys().copied()
    }

    /// Returns whether a pair has a session without a failure.
    pub fn joins(&self, pair: Pair) -> bool {
        self.sessions.contains_key(&pair)
    }

    /// Returns whether a pair has a session that needs no other network, without a failure.
    pub fn joins_alone(&self, pair: Pair) -> bool {
        self.sessions.get(&pair).is_some_and(|sessions| sessions.iter().any(|session| !session.is_leg))
    }

    /// Parts whose failure may cut off a pair: links that are the only ones of a pair, links
    /// between two switches that have no other one, and switches. With a routing engine that does
    /// not use every path, all links between switches.
    pub fn candidates(&self) -> BTreeSet<NetworkPart> {
        let mut between: BTreeMap<[u16; 2], Vec<u16>> = BTreeMap::new();
        for (number, ends) in (0..).zip(&self.switches) {
            if let [Some(a), Some(b)] = *ends {
                between.entry([a.min(b), a.max(b)]).or_default().push(number);
            }
        }
        let may_cut = |links: &Vec<u16>| links.len() == 1 || self.subnet.is_some();
        let alone = between.into_values().filter(may_cut).flatten();
        let links = self.only.keys().copied().chain(alone).map(NetworkPart::Link);
        links.chain((0..self.number_of_switches).map(NetworkPart::Switch)).collect()
    }

    /// Returns the pairs that lose their last session when `part` fails.
    pub fn cut_off(&self, part: NetworkPart) -> BTreeSet<Pair> {
        if let NetworkPart::Link(link) = part
            && self.switches.get(usize::from(link)).copied().unwrap_or_default().contains(&None)
        {
            return self.only.get(&link).cloned().unwrap_or_default();
        }
        let left: BTreeSet<Pair> =
            self.joined_without(&self.broken_by(part)).into_iter().map(|(pair, _)| pair).collect();
        self.sessions.keys().filter(|pair| !left.contains(pair)).copied().collect()
    }

    /// Links that carry nothing when `part` fails.
    fn broken_by(&self, part: NetworkPart) -> BTreeSet<u16> {
        let mut broken = self.dark.clone();
        match part {
            NetworkPart::Link(link) => _ = broken.insert(link),
            NetworkPart::Switch(switch) => {
                let links = (0..).zip(&self.switches).filter(|(_, ends)| ends.contains(&Some(switch)));
                broken.extend(links.map(|(number, _)| number));
            }
        }
        broken
    }

    /// Virtualization switches, each with a storage system behind it that it reaches over iSCSI,
    /// with the links at both ends.
    pub fn back_ends(&self) -> &BTreeMap<Pair, [u16; 2]> {
        &self.back_ends
    }

    /// Returns the pairs of [`SessionReach::back_ends`] that have no session when `part` fails, or
    /// without a failure.
    pub fn back_ends_cut(&self, part: Option<NetworkPart>) -> BTreeSet<Pair> {
        if self.back_ends.is_empty() {
            return BTreeSet::new();
        }
        let broken = part.map_or_else(|| self.dark.clone(), |part| self.broken_by(part));
        // Virtualization switches log in without a VLAN.
        let groups = ethernet_groups_without(self.lab, None, &broken);
        let is_cut = |links: &[u16; 2]| {
            let [own, peer] = links.map(|link| groups[usize::from(link)]);
            own.is_none() || own != peer
        };
        self.back_ends.iter().filter(|(_, links)| is_cut(links)).map(|(pair, _)| *pair).collect()
    }

    /// Returns the sessions whose ends are joined without some links.
    fn joined_without(&self, broken: &BTreeSet<u16>) -> BTreeSet<(Pair, Session)> {
        let routes = self.subnet.as_ref().map(|subnet| subnet.routes(broken));
        let mut by_vlan = BTreeMap::new();
        let mut joined = BTreeSet::new();
        for (pair, sessions) in &self.sessions {
            let host = self.lab.hosts.get(usize::from(pair.0));
            let vlan = host.filter(|_| self.network == Network::Ethernet).and_then(|host| host.iscsi.vlan);
            let groups = by_vlan.entry(vlan).or_insert_with(|| match self.network {
                Network::Ethernet => ethernet_groups_without(self.lab, vlan, broken),
                Network::Infiniband => infiniband_groups_without(self.lab, broken),
            });
            let is_joined = |Session { links, interfaces, .. }: &&Session| {
                let [own, peer] = links.map(|link| groups[usize::from(link)]);
                own.is_some()
                    && own == peer
                    && routes.as_ref().is_none_or(|routes| routes.joins(interfaces[0], interfaces[1]))
            };
            joined.extend(sessions.iter().filter(is_joined).map(|session| (*pair, *session)));
        }
        joined
    }
}

fn back_ends(lab: &Lab) -> BTreeMap<Pair, [u16; 2]> {
    let mut found = BTreeMap::new();
    if lab.live.back_ends.is_empty() {
        return found;
    }
    let paths = lab.iscsi_paths();
    for session in paths.back_ends() {
        let (switch, storage, _) = session;
        if let Some((ends, _)) = paths.ends_of_back_end(session) {
            let links = ends.map(|interface| paths.interfaces[usize::from(interface)].link as u16);
            found.entry((switch, storage)).or_insert(links);
        }
    }
    found
}

/// Sessions of iSCSI: the part of each in one network.
fn ip_sessions(lab: &Lab, network: Network) -> Vec<(Pair, Session)> {
    let mut found = Vec::new();
    IpPaths::for_each_pair(lab, |paths, host, storage, ways| {
        for way in ways {
            let [own, far] = way.ends;
            let parts = match way.router {
                None => vec![[own, far]],
                Some((_, [near, beyond])) => vec![[own, near], [beyond, far]],
            };
            let is_leg = parts.len() > 1;
            for ends in parts {
                let session = match (network, ends.map(|end| paths.on_infiniband(end))) {
                    (Network::Infiniband, [Some(a), Some(b)]) => {
                        let link = |interface: u16| paths.infiniband[usize::from(interface)].link as u16;
                        Session { links: [a, b].map(link), interfaces: [a, b], is_leg }
                    }
                    (Network::Ethernet, [None, None]) => {
                        let link = |interface: u16| paths.iscsi.interfaces[usize::from(interface)].link as u16;
                        Session { links: ends.map(link), interfaces: ends, is_leg }
                    }
                    _ => continue,
                };
                found.push(((host, storage), session));
            }
        }
        true
    });
    found
}

fn ends(switches: &mut dyn Iterator<Item = (usize, u16)>) -> [Option<u16>; 2] {
    let mut ends = [None; 2];
    switches.for_each(|(side, switch)| ends[side] = Some(switch));
    ends
}
