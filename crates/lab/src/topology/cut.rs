//! Storage that hosts cannot reach while one part of the lab is broken: [`Reach`].

use super::chassis::chassis;
use super::gateways::BehindGateways;
use super::part::Part;
use sanloom_fc::config::{EthernetLink, EthernetNode, LinkEnd, Node, Target};
use sanloom_fc::san::{
    AttachedPort, EthernetInterface, FcoePath, Lab, NetworkPart, PermittedPairs, SessionReach,
    ethernet_links_down_at_start, fcoe_paths_without, lun_of_back_end, users_of,
};
use sanloom_storage::backstore::CacheConfig;
use sanloom_storage::cache::WriteMode;
use std::collections::{BTreeMap, BTreeSet};

/// Pairs of host and storage system by index, with the LUNs that the host uses.
pub type HostLuns = BTreeMap<(u16, u16), BTreeSet<u16>>;

/// Permitted paths of a lab, for the question which storage a failure cuts off.
pub struct Reach<'l> {
    lab: &'l Lab,
    permitted: PermittedPairs,
    /// Links between switches that carry nothing.
    apart: BTreeSet<u16>,
    /// Sessions of iSCSI.
    iscsi: SessionReach<'l>,
    /// Channels of SRP.
    srp: SessionReach<'l>,
    /// Virtual links of FCoE with the interfaces below them, as at the start of a run.
    fcoe: Vec<FcoePath>,
    interfaces: Vec<EthernetInterface>,
    /// Paths between gateways and the storage behind them.
    behind: BehindGateways,
    /// Storage that is joined over Fibre Channel.
    whole: Left,
    /// LUNs that have a path and are used.
    joined: HostLuns,
}

impl<'l> Reach<'l> {
    /// Analyses a lab that [`Lab::validate`] accepts. Only LUNs count that the workloads of a host
    /// use; without workloads, all LUNs. `isolated` are the indices of the links that will be
    /// isolated.
    pub fn of(lab: &'l Lab, isolated: &[usize]) -> Reach<'l> {
        let permitted = lab.permitted_pairs(isolated);
        let (iscsi, srp) = (SessionReach::of_iscsi(lab), SessionReach::of_infiniband(lab));
        let apart = lab.links_apart(isolated);
        let (whole, joined) = (Left::default(), HostLuns::new());
        let fcoe = fcoe_paths_without(lab, &ethernet_links_down_at_start(lab));
        let interfaces = lab.ethernet_interfaces();
        let behind = BehindGateways::of(lab, &permitted, &iscsi, iscsi.pairs().chain(srp.pairs()));
        let mut reach = Reach { lab, permitted, apart, iscsi, srp, fcoe, interfaces, behind, whole, joined };
        for host in 0..lab.hosts.len() as u16 {
            for storage in reach.permitted.storage_of_host(host) {
                let luns = lab.luns_in_use(host, storage);
                if !luns.is_empty() {
                    reach.joined.insert((host, storage), luns);
                }
            }
        }
        // Masks may hide some of them.
        reach.whole = reach.without(&BTreeSet::new(), None);
        reach.joined.retain(|pair, luns| {
            luns.retain(|lun| reach.whole.has(*pair, *lun));
            !luns.is_empty()
        });
        let cut = reach.cut_behind(&BTreeSet::new(), None);
        for pair in reach.iscsi.pairs().chain(reach.srp.pairs()) {
            let mut luns = lab.luns_in_use(pair.0, pair.1);
            luns.retain(|lun| !has(&cut, pair, *lun));
            if !luns.is_empty() {
                reach.joined.entry(pair).or_default().extend(luns);
            }
        }
        reach
    }

    /// LUNs that hosts use and reach without a failure.
    pub fn joined(&self) -> &HostLuns {
        &self.joined
    }

    /// The sessions of iSCSI.
    pub(super) fn iscsi(&self) -> &SessionReach<'l> {
        &self.iscsi
    }

    /// The channels of SRP.
    pub(super) fn srp(&self) -> &SessionReach<'l> {
        &self.srp
    }

    /// Returns the number of hosts that lose storage or data when `part` fails.
    pub(super) fn hosts_cut_off(&self, part: Part) -> usize {
        self.cut_off(part).keys().map(|(host, _)| *host).collect::<BTreeSet<u16>>().len()
    }

    /// Returns the LUNs that lose their last path, or data, when `part` fails.
    pub fn cut_off(&self, part: Part) -> HostLuns {
        if let Part::Unprotected(storage, lun) = part {
            let of_lun =
                |((_, system), luns): &(&(u16, u16), &BTreeSet<u16>)| *system == storage && luns.contains(&lun);
            return self.joined.iter().filter(of_lun).map(|(pair, _)| (*pair, BTreeSet::from([lun]))).collect();
        }
        if let Part::MetadataServer(server) = part {
            return self.disks_without_map(server);
        }
        let loses_data = |(_, system): (u16, u16), lun: u16| match part {
            Part::Controller(storage, number) => storage == system && self.loses_cache(storage, number, lun),
            _ => false,
        };
        match part {
            Part::EthernetSwitch(switch) => return self.cut_off_on_ethernet(NetworkPart::Switch(switch)),
            Part::EthernetLink(link) | Part::Nic(link, _) | Part::StorageNic(link, _) => {
                return self.cut_off_on_ethernet(NetworkPart::Link(link));
            }
            Part::InfinibandSwitch(switch) => {
                return self.last_paths(self.srp.cut_off(NetworkPart::Switch(switch)), &self.iscsi);
            }
            Part::InfinibandLink(link) | Part::Hca(link, _) | Part::StorageHca(link, _) => {
                return self.last_paths(self.srp.cut_off(NetworkPart::Link(link)), &self.iscsi);
            }
            _ => {}
        }
        let broken = self.links_of(part);
        let left = self.without(&broken, None);
        let cut = self.cut_behind(&broken, None);
        let has_session = |pair: (u16, u16), lun: u16| {
            let is_up = self.srp.joins(pair) || self.iscsi.joins(pair);
            is_up && part != Part::Gateway(pair.1) && !has(&cut, pair, lun)
        };
        let mut lost = HostLuns::new();
        for (pair, luns) in &self.joined {
            let is_gone =
                |lun: &&u16| !(left.has(*pair, **lun) || has_session(*pair, **lun)) || loses_data(*pair, **lun);
            let gone: BTreeSet<u16> = luns.iter().filter(is_gone).copied().collect();
            if !gone.is_empty() {
                lost.insert(*pair, gone);
            }
        }
        lost
    }

    /// Returns the virtual disks of a metadata server that hosts use, and whose back ends they
    /// reach without a failure. Without the server, a host that starts cannot fetch the map of any
    /// of them.
    fn disks_without_map(&self, server: u16) -> HostLuns {
        let live = &self.lab.live;
        let mut lost = HostLuns::new();
        for (lun, volume) in self.lab.volumes_of(server) {
            let of_pool = live.back_ends.iter().filter(|back_end| back_end.pool == volume.pool);
            let behind: BTreeSet<Target> =
                of_pool.filter_map(|back_end| lun_of_back_end(self.lab, live, back_end)).collect();
            let users = users_of(self.lab, Target { storage: server, lun });
            for ((host, storage), luns) in &self.joined {
                let is_behind = luns.iter().any(|lun| behind.contains(&Target { storage: *storage, lun: *lun }));
                if is_behind && users.contains(host) {
                    lost.entry((*host, server)).or_default().insert(lun);
                }
            }
        }
        lost
    }

    /// Returns the LUNs of gateways that cannot reach the storage behind them without some links of
    /// Fibre Channel and a part of Ethernet.
    fn cut_behind(&self, broken: &BTreeSet<usize>, part: Option<NetworkPart>) -> HostLuns {
        if self.behind.is_empty() {
            return HostLuns::new();
        }
        let junctions = self.lab.junctions_without(&self.dark_without(broken));
        self.behind.cut(&self.permitted, (broken, &junctions), &self.iscsi.back_ends_cut(part))
    }

    /// Links between switches that carry nothing without some links.
    fn dark_without(&self, broken: &BTreeSet<usize>) -> BTreeSet<u16> {
        self.apart.iter().copied().chain(broken.iter().map(|link| *link as u16)).collect()
    }

    /// The paths between gateways and the storage behind them.
    pub(super) fn behind(&self) -> &BehindGateways {
        &self.behind
    }

    /// Returns whether parts of Ethernet carry paths of Fibre Channel.
    pub(super) fn has_fcoe(&self) -> bool {
        !self.fcoe.is_empty()
    }

    /// Returns the LUNs that lose their last path when a part of Ethernet below virtual links of
    /// FCoE fails.
    fn cut_off_below(&self, part: NetworkPart) -> HostLuns {
        let lost_sessions = self.iscsi.cut_off(part);
        let (broken, host) = self.broken_below(part);
        let cut = self.cut_behind(&broken, Some(part));
        if broken.is_empty() {
            return self.with_cut(self.last_paths(lost_sessions, &self.srp), cut);
        }
        let left = self.without(&broken, host);
        let has_session =
            |pair: (u16, u16)| self.srp.joins_alone(pair) || (self.iscsi.joins(pair) && !lost_sessions.contains(&pair));
        let mut lost = HostLuns::new();
        // Virtual machines use the ports of their hypervisor.
        let carried = |host: u16| -> BTreeSet<u16> {
            let ports = self.permitted.hosts.iter().filter(|port| port.carrier == Node::Host(host));
            ports.filter_map(|port| if let Node::Host(of) = port.node { Some(of) } else { None }).collect()
        };
        let hosts = host.map(carried);
        let is_meant = |pair: (u16, u16)| hosts.as_ref().is_none_or(|hosts| hosts.contains(&pair.0));
        for (pair, luns) in &self.joined {
            let has_path = |lun: u16| if is_meant(*pair) { left.has(*pair, lun) } else { self.whole.has(*pair, lun) };
            let is_gone = |lun: &&u16| !has_path(**lun) && (!has_session(*pair) || has(&cut, *pair, **lun));
            let gone: BTreeSet<u16> = luns.iter().filter(is_gone).copied().collect();
            if !gone.is_empty() {
                lost.insert(*pair, gone);
            }
        }
        lost
    }

    /// Returns the virtual links that end when a part of Ethernet fails, with those that are broken
    /// anyway, or nothing if none ends. If the part is an interface of a host, returns the host,
    /// because only its paths can break.
    fn broken_below(&self, part: NetworkPart) -> (BTreeSet<usize>, Option<u16>) {
        let links = &self.lab.ethernet_links;
        let mut host = None;
        let mut broken: BTreeSet<usize> =
            self.fcoe.iter().filter(|path| !path.is_joined).map(|path| path.link.into()).collect();
        let before = broken.len();
        match part {
            NetworkPart::Link(link) if links[usize::from(link)].switches().count() < 2 => {
                let is_there = |number: &u16| self.interfaces[usize::from(*number)].link == usize::from(link);
                let own = self.fcoe.iter().filter(|path| path.interfaces.iter().any(is_there));
                broken.extend(own.map(|path| usize::from(path.link)));
                let hosts = links[usize::from(link)].ends.iter().filter_map(|end| match end.node {
                    EthernetNode::Host(host) => Some(host),
                    _ => None,
                });
                host = hosts.into_iter().next().filter(|_| links[usize::from(link)].switches().count() == 1);
            }
            _ => {
                let is_broken = |(number, link): &(u16, &EthernetLink)| match part {
                    NetworkPart::Link(broken) => *number == broken,
                    NetworkPart::Switch(broken) => link.switches().any(|(_, switch)| switch == broken),
                };
                let mut dark = ethernet_links_down_at_start(self.lab);
                dark.extend((0..).zip(links).filter(is_broken).map(|(number, _)| number));
                let paths = fcoe_paths_without(self.lab, &dark).into_iter();
                broken.extend(paths.filter(|path| !path.is_joined).map(|path| usize::from(path.link)));
            }
        }
        if broken.len() == before { (BTreeSet::new(), host) } else { (broken, host) }
    }

    /// Returns the LUNs whose last path is lost with a part of Ethernet.
    fn cut_off_on_ethernet(&self, part: NetworkPart) -> HostLuns {
        match self.has_fcoe() {
            true => self.cut_off_below(part),
            false => {
                let cut = self.cut_behind(&BTreeSet::new(), Some(part));
                self.with_cut(self.last_paths(self.iscsi.cut_off(part), &self.srp), cut)
            }
        }
    }

    /// Adds the LUNs whose gateway is cut from the storage behind, unless Fibre Channel joins them.
    fn with_cut(&self, mut lost: HostLuns, cut: HostLuns) -> HostLuns {
        for (pair, luns) in cut {
            let joined = self.joined.get(&pair);
            let is_gone = |lun: &u16| joined.is_some_and(|joined| joined.contains(lun)) && !self.whole.has(pair, *lun);
            let gone: BTreeSet<u16> = luns.into_iter().filter(is_gone).collect();
            if !gone.is_empty() {
                lost.entry(pair).or_default().extend(gone);
            }
        }
        lost
    }

    /// Returns the LUNs of pairs that have lost their sessions of one network, if neither the other
    /// network nor Fibre Channel joins them.
    fn last_paths(&self, pairs: BTreeSet<(u16, u16)>, other: &SessionReach<'_>) -> HostLuns {
        let mut lost = HostLuns::new();
        for pair in pairs.into_iter().filter(|pair| !other.joins_alone(*pair)) {
            let luns = self.joined.get(&pair).into_iter().flatten().copied();
            let gone: BTreeSet<u16> = luns.filter(|lun| !self.whole.has(pair, *lun)).collect();
            if !gone.is_empty() {
                lost.insert(pair, gone);
            }
        }
        lost
    }

    /// Returns whether the failure of a controller takes written data of a LUN that only its cache
    /// has.
    fn loses_cache(&self, storage: u16, number: u8, lun: u16) -> bool {
        let system = &self.lab.storage[usize::from(storage)];
        let cache = system.backstore.cache.filter(|_| system.device().is_some());
        let has_copy = |cache: CacheConfig| cache.settings.write != WriteMode::Back { is_mirrored: false };
        !cache.is_none_or(has_copy) && system.controllers.of_lun(lun) == number
    }

    /// Links that carry nothing when a part fails.
    fn links_of(&self, part: Part) -> BTreeSet<usize> {
        let ends_at = |node: Node, port: Option<u16>| -> BTreeSet<usize> {
            let is_end = |end: &LinkEnd| end.node == node && port.is_none_or(|port| end.port == port);
            let links = self.lab.links.iter().enumerate().filter(|(_, link)| link.ends.iter().any(is_end));
            links.map(|(number, _)| number).collect()
        };
        match part {
            Part::Link(link) => BTreeSet::from([link]),
            Part::Switch(switch) => ends_at(Node::Switch(switch), None),
            Part::Chassis(first) => {
                let of_chassis = chassis(self.lab).into_iter().find(|chassis| chassis.switches.contains(&first));
                let switches = of_chassis.map_or_else(|| vec![first], |chassis| chassis.switches);
                switches.into_iter().flat_map(|switch| ends_at(Node::Switch(switch), None)).collect()
            }
            Part::Hba(host, port) => ends_at(Node::Host(host), Some(port)),
            Part::StoragePort(storage, port) => ends_at(Node::Storage(storage), Some(port)),
            Part::Loop(number) => ends_at(Node::Loop(number), None),
            Part::Controller(storage, number) => {
                let system = &self.lab.storage[usize::from(storage)];
                let ports = 0..system.ports.len() as u16;
                let own = ports.filter(|port| system.controllers.of_port(*port, system.ports.len()) == number);
                own.flat_map(|port| ends_at(Node::Storage(storage), Some(port))).collect()
            }
            Part::Unprotected(..)
            | Part::EthernetSwitch(_)
            | Part::EthernetLink(_)
            | Part::Nic(..)
            | Part::StorageNic(..)
            | Part::InfinibandSwitch(_)
            | Part::InfinibandLink(_)
            | Part::Hca(..)
            | Part::Gateway(_)
            | Part::MetadataServer(_)
            | Part::StorageHca(..) => BTreeSet::new(),
        }
    }

    /// LUNs among those of [`Reach::joined`] that have a permitted path without some links, over
    /// the ports of one host or of all.
    fn without(&self, broken: &BTreeSet<usize>, only: Option<u16>) -> Left {
        let fabrics = self.lab.junctions_without(&self.dark_without(broken));
        let fabric = |switch: u16| fabrics.get(usize::from(switch));
        let mut left = Left::default();
        let is_cut = |port: &AttachedPort| {
            broken.contains(&port.link) || port.fl_port_link.is_some_and(|link| broken.contains(&link))
        };
        let is_meant = |port: &AttachedPort| only.is_none_or(|host| port.carrier == Node::Host(host));
        let hosts = self.permitted.hosts.iter().enumerate();
        for (number, host) in hosts.filter(|(_, port)| is_meant(port) && !is_cut(port)) {
            for partner in self.permitted.partners(number) {
                let storage = &self.permitted.storage[*partner as usize];
                let (Node::Host(of), Node::Storage(system)) = (host.node, storage.node) else { continue };
                if is_cut(storage) || fabric(host.switch) != fabric(storage.switch) {
                    continue;
                }
                let pair = (of, system);
                if !self.permitted.is_masked(system) {
                    left.whole.insert(pair);
                } else if let Some(luns) = self.joined.get(&pair) {
                    let seen = luns.iter().filter(|lun| self.permitted.shows(number, system, **lun));
                    left.parts.entry(pair).or_default().extend(seen);
                }
            }
        }
        left
    }
}

fn has(luns: &HostLuns, pair: (u16, u16), lun: u16) -> bool {
    luns.get(&pair).is_some_and(|luns| luns.contains(&lun))
}

/// Storage that is left to hosts.
#[derive(Default)]
struct Left {
    /// Pairs of host and storage system without masks.
    whole: BTreeSet<(u16, u16)>,
    /// LUNs of storage systems with masks.
    parts: HostLuns,
}

impl Left {
    fn has(&self, pair: (u16, u16), lun: u16) -> bool {
        self.whole.contains(&pair) || has(&self.parts, pair, lun)
    }
}
