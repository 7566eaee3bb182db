//! Failures to try, and the state of the lab in which they happen.

use sanloom_fc::config::{
    EthernetFault, EthernetNode, Fault, FaultKind, InfinibandFault, InfinibandNode, Link, Node, Picos,
};
use sanloom_fc::san::{Lab, ethernet_links_down_at_start, infiniband_links_down_at_start};
use sanloom_lab::topology::{self, Part};

/// Kind of the element that fails.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, clap::ValueEnum)]
pub enum Kind {
    /// Link of a host, of storage, or between switches, also of Ethernet and InfiniBand
    Link,
    /// Whole switch, also of Ethernet and InfiniBand
    Switch,
    /// Chassis with all its switches, if it has several
    Chassis,
    /// Arbitrated loop with all its links
    Loop,
    /// Port of a host
    Hba,
    /// Ethernet interface of a host
    Nic,
    /// InfiniBand interface of a host
    Hca,
    /// Port or interface of a storage system
    Array,
    /// First disk or SSD of each LUN in use
    Disk,
    /// Battery of the cache of a storage system
    Battery,
    /// Controller of a storage system, if it has several
    Controller,
    /// Gateway between hosts and the storage behind it
    Gateway,
    /// Metadata server of virtual disks
    Server,
}

impl Kind {
    /// The kind in the results.
    pub fn word(self) -> &'static str {
        match self {
            Kind::Link => "link",
            Kind::Switch => "switch",
            Kind::Chassis => "chassis",
            Kind::Loop => "loop",
            Kind::Hba => "hba",
            Kind::Nic => "nic",
            Kind::Hca => "hca",
            Kind::Array => "array",
            Kind::Disk => "disk",
            Kind::Battery => "battery",
            Kind::Controller => "controller",
            Kind::Gateway => "gateway",
            Kind::Server => "server",
        }
    }
}

/// Failure of one element.
#[derive(Clone, PartialEq, Debug)]
pub struct Single {
    /// Name of the element.
    pub name: String,
    pub kind: Kind,
    pub cause: Cause,
}

/// Cause of a simulation. A failed port and its failed link have the same effect, so they share
/// one.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Cause {
    /// Index of the failed link.
    Link(u16),
    /// Index of the failed switch.
    Switch(u16),
    /// Index of the first switch of the failed chassis.
    Chassis(u16),
    /// Index of the failed loop.
    Loop(u16),
    /// Storage system and LUN of the failed disk.
    Disk(u16, u16),
    /// Storage system with the failed battery.
    Battery(u16),
    /// Storage system and number of the failed controller.
    Controller(u16, u8),
    /// Index of the failed Ethernet link.
    EthernetLink(u16),
    /// Index of the failed Ethernet switch.
    EthernetSwitch(u16),
    /// Index of the failed InfiniBand link.
    InfinibandLink(u16),
    /// Index of the failed InfiniBand switch.
    InfinibandSwitch(u16),
    /// Index of the storage system that is the failed gateway.
    Gateway(u16),
    /// Index of the storage system that is the failed metadata server.
    Server(u16),
}

impl Cause {
    /// The part of the topology that fails; `None` if no host loses storage or data.
    pub fn part(self, lab: &Lab) -> Option<Part> {
        match self {
            Cause::Link(link) => Some(Part::Link(usize::from(link))),
            Cause::Switch(switch) => Some(Part::Switch(switch)),
            Cause::Chassis(first) => Some(Part::Chassis(first)),
            Cause::Loop(number) => Some(Part::Loop(number)),
            Cause::Disk(storage, lun) => {
                let is_unprotected = lab.storage.get(usize::from(storage)).is_some_and(topology::is_unprotected);
                is_unprotected.then_some(Part::Unprotected(storage, lun))
            }
            Cause::Battery(_) => None,
            Cause::Controller(storage, number) => Some(Part::Controller(storage, number)),
            Cause::EthernetLink(link) => Some(Part::EthernetLink(link)),
            Cause::EthernetSwitch(switch) => Some(Part::EthernetSwitch(switch)),
            Cause::InfinibandLink(link) => Some(Part::InfinibandLink(link)),
            Cause::InfinibandSwitch(switch) => Some(Part::InfinibandSwitch(switch)),
            Cause::Gateway(storage) => Some(Part::Gateway(storage)),
            Cause::Server(storage) => Some(Part::MetadataServer(storage)),
        }
    }
}

/// Time of the failure: after a third of the run that is left when the last workload has started,
/// but not before the end of the warm-up.
pub fn time(lab: &Lab) -> Picos {
    let started = lab.workloads.iter().map(|workload| workload.start.0).max().unwrap_or(0);
    let rest = lab.run.duration.0.saturating_sub(started);
    Picos((started + rest / 3).max(lab.run.warmup.0))
}

/// Time for which the throughput after the recovery is measured: half of the run after the failure.
pub fn window(lab: &Lab) -> Picos {
    Picos((lab.run.duration.0.saturating_sub(time(lab).0) / 2).max(1))
}

/// Returns every single failure of these kinds; no kind means all. Links that are dark already are
/// left out, with their ports.
pub fn all(lab: &Lab, only: &[Kind]) -> Vec<Single> {
    let link =
        |(link, index): (&Link, u16)| Single { name: link.name.clone(), kind: Kind::Link, cause: Cause::Link(index) };
    let mut failures: Vec<Single> = lab.links.iter().zip(0..).map(link).collect();
    failures.extend(lab.switches.iter().zip(0..).map(|(switch, index)| Single {
        name: switch.name.clone(),
        kind: Kind::Switch,
        cause: Cause::Switch(index),
    }));
    failures.extend(topology::chassis(lab).into_iter().filter_map(|chassis| {
        let cause = Cause::Chassis(*chassis.switches.first()?);
        Some(Single { name: chassis.name, kind: Kind::Chassis, cause })
    }));
    failures.extend(lab.loops.iter().zip(0..).map(|(of_lab, index)| Single {
        name: of_lab.name.clone(),
        kind: Kind::Loop,
        cause: Cause::Loop(index),
    }));
    for (link, index) in lab.links.iter().zip(0..) {
        for end in &link.ends {
            let (owner, kind) = match end.node {
                Node::Host(host) => (lab.hosts.get(usize::from(host)).map(|host| &host.name), Kind::Hba),
                Node::Storage(storage) => (lab.storage.get(usize::from(storage)).map(|s| &s.name), Kind::Array),
                Node::Switch(_) | Node::Loop(_) => continue,
            };
            let Some(owner) = owner else { continue };
            failures.push(Single { name: format!("{owner}:{}", end.port), kind, cause: Cause::Link(index) });
        }
    }
    failures.extend(on_ethernet(lab));
    failures.extend(on_infiniband(lab));
    failures.extend(behind_controllers(lab));
    failures.extend(gateways(lab));
    failures.extend(servers(lab));
    // Ports of hosts before those of storage, each in the order of the links.
    failures.sort_by_key(|single| single.kind);
    let (dark, dark_ethernet) = (lab.links_down_at_start(), ethernet_links_down_at_start(lab));
    let dark_infiniband = infiniband_links_down_at_start(lab);
    let is_lit = |single: &Single| match single.cause {
        Cause::Link(link) => !dark.contains(&link),
        Cause::EthernetLink(link) => !dark_ethernet.contains(&link),
        Cause::InfinibandLink(link) => !dark_infiniband.contains(&link),
        _ => true,
    };
    failures.retain(|single| (only.is_empty() || only.contains(&single.kind)) && is_lit(single));
    failures
}

/// Failures of Ethernet, if the lab describes it. A failed interface and its failed link have the
/// same effect.
fn on_ethernet(lab: &Lab) -> Vec<Single> {
    if lab.ethernet_is_implied() {
        return Vec::new();
    }
    let mut failures = Vec::new();
    for (number, link) in (0..).zip(&lab.ethernet_links) {
        let cause = Cause::EthernetLink(number);
        failures.push(Single { name: link.name.clone(), kind: Kind::Link, cause });
        for end in link.ends {
            let kind = match end.node {
                EthernetNode::Host(_) => Kind::Nic,
                EthernetNode::Storage(_) => Kind::Array,
                EthernetNode::Switch(_) | EthernetNode::Forwarder(_) => continue,
            };
            failures.push(Single { name: end.name(lab), kind, cause });
        }
    }
    failures.extend((0..).zip(&lab.ethernet_switches).map(|(number, switch)| Single {
        name: switch.name.clone(),
        kind: Kind::Switch,
        cause: Cause::EthernetSwitch(number),
    }));
    failures
}

/// Failures of InfiniBand. A failed interface and its failed link have the same effect.
fn on_infiniband(lab: &Lab) -> Vec<Single> {
    let mut failures = Vec::new();
    for (number, link) in (0..).zip(&lab.infiniband.links) {
        let cause = Cause::InfinibandLink(number);
        failures.push(Single { name: link.name.clone(), kind: Kind::Link, cause });
        for end in link.ends {
            let kind = match end.node {
                InfinibandNode::Host(_) => Kind::Hca,
                InfinibandNode::Storage(_) => Kind::Array,
                InfinibandNode::Switch(_) => continue,
            };
            failures.push(Single { name: end.name(lab), kind, cause });
        }
    }
    failures.extend((0..).zip(&lab.infiniband.switches).map(|(number, switch)| Single {
        name: switch.name.clone(),
        kind: Kind::Switch,
        cause: Cause::InfinibandSwitch(number),
    }));
    failures
}

/// Failures of gateways, if the lab describes the network of their hosts.
fn gateways(lab: &Lab) -> Vec<Single> {
    if lab.ethernet_is_implied() {
        return Vec::new();
    }
    let single = |storage: u16| Single {
        name: lab.storage[usize::from(storage)].name.clone(),
        kind: Kind::Gateway,
        cause: Cause::Gateway(storage),
    };
    sanloom_fc::san::gateways(lab).map(single).collect()
}

/// Failures of metadata servers. Hosts continue with the maps that they hold then.
fn servers(lab: &Lab) -> impl Iterator<Item = Single> {
    lab.live.out_of_band.keys().map(|server| Single {
        name: lab.storage[usize::from(*server)].name.clone(),
        kind: Kind::Server,
        cause: Cause::Server(*server),
    })
}

/// Failures of controllers, disks and batteries. Disks of a group are alike, so the first one
/// stands for all.
fn behind_controllers(lab: &Lab) -> Vec<Single> {
    let mut failures = Vec::new();
    for (storage, system) in (0..).zip(&lab.storage).filter(|(_, system)| system.controllers.count > 1) {
        failures.extend((0..system.controllers.count).map(|number| Single {
            name: format!("{}:controller{number}", system.name),
            kind: Kind::Controller,
            cause: Cause::Controller(storage, number),
        }));
    }
    for (storage, system) in (0..).zip(&lab.storage).filter(|(_, system)| system.device().is_some()) {
        failures.extend(lab.luns_in_any_use(storage).into_iter().map(|lun| Single {
            name: format!("{}:lun{lun}", system.name),
            kind: Kind::Disk,
            cause: Cause::Disk(storage, lun),
        }));
        if system.backstore.cache.is_some() {
            failures.push(Single { name: system.name.clone(), kind: Kind::Battery, cause: Cause::Battery(storage) });
        }
    }
    failures
}

/// Number of events of a lab that no run has.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct LeftOut {
    pub faults: usize,
    /// Scheduled changes of zones.
    pub changes: usize,
}

/// Puts a lab into the state that `sanloom check` judges, which is that of its start: initial
/// zones, and links that are dark then stay dark. Faults and zone changes of the lab are removed,
/// because a failure beside them would be a double one.
pub fn clear(lab: &mut Lab) -> LeftOut {
    let dark = lab.links_down_at_start();
    let is_state = |fault: &Fault| match fault.kind {
        FaultKind::LinkDown { link } | FaultKind::PortDown { link, .. } => {
            fault.at == Picos::ZERO && dark.contains(&link)
        }
        FaultKind::Ethernet(EthernetFault::LinkDown { .. } | EthernetFault::PortDown { .. })
        | FaultKind::Ethernet(EthernetFault::SwitchReset { .. })
        | FaultKind::Infiniband(
            InfinibandFault::LinkDown { .. } | InfinibandFault::PortDown { .. } | InfinibandFault::SwitchReset { .. },
        )
        | FaultKind::SwitchReset { .. } => fault.at == Picos::ZERO,
        _ => false,
    };
    let left_out = LeftOut {
        faults: lab.faults.iter().filter(|fault| !is_state(fault)).count(),
        changes: std::mem::take(&mut lab.changes).len(),
    };
    let ethernet = ethernet_links_down_at_start(lab).into_iter();
    let ethernet = ethernet.map(|link| FaultKind::Ethernet(EthernetFault::LinkDown { link }));
    let infiniband = infiniband_links_down_at_start(lab).into_iter();
    let infiniband = infiniband.map(|link| FaultKind::Infiniband(InfinibandFault::LinkDown { link }));
    let kinds = dark.into_iter().map(|link| FaultKind::LinkDown { link }).chain(ethernet).chain(infiniband);
    lab.faults = kinds.map(|kind| Fault { at: Picos::ZERO, until: None, kind }).collect();
    left_out
}

/// Adds a permanent failure to a lab that [`clear`] has returned.
pub fn inject(lab: &mut Lab, at: Picos, cause: Cause) {
    let kinds: Vec<FaultKind> = match cause {
        Cause::Link(link) => vec![FaultKind::LinkDown { link }],
        Cause::Switch(switch) => vec![FaultKind::SwitchReset { switch }],
        Cause::Loop(number) => {
            let of_loop = (0..).zip(&lab.links).filter(|(_, link)| link.loop_end() == Some(number));
            of_loop.map(|(link, _)| FaultKind::LinkDown { link }).collect()
        }
        Cause::EthernetLink(link) => vec![FaultKind::Ethernet(EthernetFault::LinkDown { link })],
        Cause::EthernetSwitch(switch) => vec![FaultKind::Ethernet(EthernetFault::SwitchReset { switch })],
        Cause::InfinibandLink(link) => vec![FaultKind::Infiniband(InfinibandFault::LinkDown { link })],
        Cause::InfinibandSwitch(switch) => {
            vec![FaultKind::Infiniband(InfinibandFault::SwitchReset { switch })]
        }
        Cause::Disk(storage, lun) => vec![FaultKind::DiskFailure { storage, lun, member: 0 }],
        Cause::Battery(storage) => vec![FaultKind::CacheBattery { storage }],
        Cause::Gateway(storage) | Cause::Server(storage) => vec![FaultKind::PowerFailure { storage }],
        Cause::Controller(storage, controller) => vec![FaultKind::ControllerFailure { storage, controller }],
        Cause::Chassis(first) => {
            let of_chassis = topology::chassis(lab).into_iter().find(|chassis| chassis.switches.contains(&first));
            let switches = of_chassis.map_or_else(Vec::new, |chassis| chassis.switches);
            switches.into_iter().map(|switch| FaultKind::SwitchReset { switch }).collect()
        }
    };
    lab.faults.extend(kinds.into_iter().map(|kind| Fault { at, until: None, kind }));
}
