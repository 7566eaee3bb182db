//! Gateways in the topology report: the paths between them and the storage behind them.

use super::chassis::chassis;
use super::cut::HostLuns;
use super::part::Part;
use sanloom_fc::san::{AttachedPort, Behind, Lab, PermittedPairs, SessionReach, behind, gateways};
use sanloom_wire::Wwpn;
use std::collections::{BTreeMap, BTreeSet};

type Pair = (u16, u16);

/// Paths behind gateways that hosts need.
#[derive(Default)]
pub(super) struct BehindGateways {
    /// Connections over Fibre Channel and to targets of iSCSI, without duplicates.
    needs: Vec<Need>,
    /// For each host and gateway that sessions join, the LUNs with indices into `needs`.
    luns: BTreeMap<Pair, BTreeMap<u16, Vec<usize>>>,
    /// Parts of Fibre Channel at the ends of the paths.
    ports: BTreeSet<Part>,
}

enum Need {
    /// Indices of both ports in [`PermittedPairs`] of each permitted path. One is enough.
    Fcp(Vec<[usize; 2]>),
    /// Virtualization switch and storage system of a session of iSCSI.
    Iscsi(Pair),
    /// The switch or the storage system has no Ethernet interface.
    WithoutInterface,
}

impl BehindGateways {
    /// Collects the paths for pairs of a host and storage that have sessions.
    pub fn of(
        lab: &Lab,
        permitted: &PermittedPairs,
        iscsi: &SessionReach<'_>,
        pairs: impl Iterator<Item = Pair>,
    ) -> BehindGateways {
        let own: BTreeSet<u16> = gateways(lab).collect();
        let mut found = BehindGateways::default();
        if own.is_empty() {
            return found;
        }
        let names = Names::of(permitted);
        let all: BTreeMap<Wwpn, Part> = parts_by_name(lab);
        let mut numbers: BTreeMap<(u16, Behind), usize> = BTreeMap::new();
        for pair in pairs.filter(|(_, storage)| own.contains(storage)) {
            for lun in lab.luns_in_use(pair.0, pair.1) {
                let mut of_lun = Vec::new();
                for path in behind(lab, pair, lun) {
                    let need = match &path {
                        Behind::Fcp(paths) => {
                            found.ports.extend(paths.iter().flatten().filter_map(|name| all.get(name)));
                            Need::Fcp(names.permitted(paths).collect())
                        }
                        &Behind::Iscsi(system) if iscsi.back_ends().contains_key(&(pair.1, system)) => {
                            Need::Iscsi((pair.1, system))
                        }
                        Behind::Iscsi(_) => Need::WithoutInterface,
                    };
                    let number = *numbers.entry((pair.1, path)).or_insert_with(|| {
                        found.needs.push(need);
                        found.needs.len() - 1
                    });
                    of_lun.push(number);
                }
                found.luns.entry(pair).or_default().insert(lun, of_lun);
            }
        }
        found
    }

    /// Returns the LUNs of gateways whose path behind is cut, with the number of the group of each
    /// switch, without some links of Fibre Channel and without sessions with back ends.
    pub fn cut(
        &self,
        permitted: &PermittedPairs,
        (broken, junctions): (&BTreeSet<usize>, &[u16]),
        back_ends: &BTreeSet<Pair>,
    ) -> HostLuns {
        let is_dark = |port: &AttachedPort| {
            broken.contains(&port.link) || port.fl_port_link.is_some_and(|link| broken.contains(&link))
        };
        let junction = |port: &AttachedPort| junctions.get(usize::from(port.switch));
        let is_broken = |[own, far]: &[usize; 2]| {
            let (own, far) = (&permitted.hosts[*own], &permitted.storage[*far]);
            is_dark(own) || is_dark(far) || junction(own) != junction(far)
        };
        let is_cut = |need: &Need| match need {
            Need::WithoutInterface => true,
            Need::Fcp(paths) => paths.iter().all(is_broken),
            Need::Iscsi(pair) => back_ends.contains(pair),
        };
        let cut: Vec<bool> = self.needs.iter().map(is_cut).collect();
        let mut lost = HostLuns::new();
        for (pair, luns) in self.luns.iter().filter(|_| cut.contains(&true)) {
            let gone = luns.iter().filter(|(_, needs)| needs.iter().any(|need| cut[*need])).map(|(lun, _)| *lun);
            let gone: BTreeSet<u16> = gone.collect();
            if !gone.is_empty() {
                lost.insert(*pair, gone);
            }
        }
        lost
    }

    /// Returns whether no host needs a path behind a gateway.
    pub fn is_empty(&self) -> bool {
        self.needs.is_empty()
    }

    /// Links whose loss may cut a path: all of Fibre Channel, and those at the ends of sessions
    /// with back ends, unless the Ethernet is implied.
    pub fn links(&self, lab: &Lab, iscsi: &SessionReach<'_>) -> BTreeSet<Part> {
        let mut links = BTreeSet::new();
        if self.needs.iter().any(|need| matches!(need, Need::Fcp(_))) {
            links.extend((0..lab.links.len()).map(Part::Link));
        }
        let ends = self.ethernet_links(lab, iscsi).into_iter();
        links.extend(ends.map(Part::EthernetLink));
        links
    }

    /// Links at the ends of sessions with back ends, unless the Ethernet is implied.
    pub fn ethernet_links(&self, lab: &Lab, iscsi: &SessionReach<'_>) -> BTreeSet<u16> {
        let sessions = self.needs.iter().filter_map(|need| match need {
            Need::Iscsi(pair) => iscsi.back_ends().get(pair),
            Need::Fcp(_) | Need::WithoutInterface => None,
        });
        sessions.filter(|_| !lab.ethernet_is_implied()).flatten().copied().collect()
    }

    /// Returns the parts of Fibre Channel, and the gateways, whose loss may cut off hosts of
    /// gateways.
    pub fn candidates(&self, lab: &Lab) -> BTreeSet<Part> {
        let mut parts: BTreeSet<Part> = gateways(lab).map(Part::Gateway).collect();
        if !self.ports.is_empty() {
            parts.extend(&self.ports);
            parts.extend((0..lab.links.len()).map(Part::Link));
            parts.extend((0..lab.switches.len() as u16).map(Part::Switch));
            parts.extend(chassis(lab).iter().map(|chassis| Part::Chassis(chassis.switches[0])));
        }
        parts
    }
}

/// Linked ports of Fibre Channel by their names.
struct Names<'p> {
    permitted: &'p PermittedPairs,
    hosts: BTreeMap<Wwpn, usize>,
    storage: BTreeMap<Wwpn, usize>,
}

impl<'p> Names<'p> {
    fn of(permitted: &'p PermittedPairs) -> Names<'p> {
        let by_name = |ports: &[AttachedPort]| ports.iter().map(|port| port.identity.port_name).zip(0..).collect();
        Names { permitted, hosts: by_name(&permitted.hosts), storage: by_name(&permitted.storage) }
    }

    /// Returns the indices of both ports of the paths that zones permit.
    fn permitted<'a>(&'a self, paths: &'a [[Wwpn; 2]]) -> impl Iterator<Item = [usize; 2]> + 'a {
        let ports = |[a, b]: &[Wwpn; 2]| Some([*self.hosts.get(a)?, *self.storage.get(b)?]);
        let is_permitted = |ports: &[usize; 2]| self.permitted.partners(ports[0]).contains(&(ports[1] as u32));
        paths.iter().filter_map(ports).filter(is_permitted)
    }
}

/// Returns the connections behind gateways that the workloads need, with the gateway.
fn behind_workloads(lab: &Lab) -> BTreeSet<(u16, Behind)> {
    let own: BTreeSet<u16> = gateways(lab).collect();
    let mut pairs: BTreeSet<Pair> = BTreeSet::new();
    for workload in &lab.workloads {
        let targets: BTreeSet<u16> = workload.targets.iter().map(|target| target.storage).collect();
        for storage in targets.intersection(&own) {
            pairs.extend(workload.hosts.iter().map(|host| (*host, *storage)));
        }
    }
    let mut found = BTreeSet::new();
    for pair in pairs {
        for lun in lab.luns_in_use(pair.0, pair.1) {
            found.extend(behind(lab, pair, lun).into_iter().map(|path| (pair.1, path)));
        }
    }
    found
}

/// Returns the pairs of ports in [`PermittedPairs`] between which gateways pass on the data of
/// workloads.
pub(super) fn port_pairs_behind(lab: &Lab, permitted: &PermittedPairs) -> BTreeSet<[usize; 2]> {
    let names = Names::of(permitted);
    let mut pairs = BTreeSet::new();
    for (_, path) in behind_workloads(lab) {
        if let Behind::Fcp(paths) = path {
            pairs.extend(names.permitted(&paths));
        }
    }
    pairs
}

/// Returns the virtualization switches with the storage systems to which they pass on the data of
/// workloads over iSCSI.
pub(super) fn sessions_behind(lab: &Lab) -> BTreeSet<Pair> {
    let sessions = behind_workloads(lab).into_iter().filter_map(|(switch, path)| match path {
        Behind::Iscsi(storage) => Some((switch, storage)),
        Behind::Fcp(_) => None,
    });
    sessions.collect()
}

/// The parts with the ports of hosts and storage, by port name. A virtual port fails with the HBA
/// below it.
fn parts_by_name(lab: &Lab) -> BTreeMap<Wwpn, Part> {
    let mut parts = BTreeMap::new();
    for (number, host) in (0..).zip(&lab.hosts) {
        for (port, hba) in (0..).zip(&host.hbas) {
            let part = match host.virtual_machine {
                Some(machine) => {
                    let hbas = lab.hosts.get(usize::from(machine.on)).map_or(1, |host| host.hbas.len());
                    Part::Hba(machine.on, machine.carrier(port, hbas))
                }
                None => Part::Hba(number, port),
            };
            parts.insert(hba.wwpn, part);
        }
    }
    for (number, storage) in (0..).zip(&lab.storage) {
        parts.extend((0..).zip(&storage.ports).map(|(port, own)| (own.wwpn, Part::StoragePort(number, port))));
    }
    parts
}
