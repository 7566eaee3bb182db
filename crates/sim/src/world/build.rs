//! Construction of a world from a lab.

use super::adapter::{Adapters, interfaces_of};
use super::arbitrated_loop::Loops;
use super::control::{ControlPlane, bundles_of};
use super::disks::Disks;
use super::downtime::Downtimes;
use super::host::{HostNode, HostPlan, Hosts, HostsPlan, TcpOrders};
use super::iscsi::TcpPlan;
use super::measure::{WorkloadMeasure, digits};
use super::nports::{self, NPorts, NodePort, Owner, described};
use super::partners::Partners;
use super::path::{Paths, Served, SystemPlan};
use super::plane_faults::PlaneFaults;
use super::quality::Quality;
use super::relay::Relay;
use super::schedule::{self, LinkFaults};
use super::srp::SrpPorts;
use super::storage::Controller;
use super::target::{Storage, StorageNode, StoragePort};
use super::volumes::{self, Switches};
use super::{Timers, World, ethernet, fcip, fcoe, fip, infiniband, lldp};
use crate::host::FrameWindow;
use crate::iscsi::Iscsi;
use crate::net::infiniband::network;
use crate::net::{End, Lane, NPortPlan, Net, NetPlan, SwitchPlan};
use crate::rng::{Purpose, stream_rng};
use crate::srp::Srp;
use crate::stats::Series;
use crate::workload::Stream;
use rand::Rng;
use sanloom_fc::config::{
    self, ChannelCredits, ControllerAccess, Fault, FaultKind, LinkEnd, Lun, MAX_FRAME_BYTES, Node, Picos, SsdConfig,
    buffers_to_fill,
};
use sanloom_fc::fcp::initiator::{FcpInitiator, FcpInitiatorConfig, MAX_EXCHANGES, RecoveryLimits};
use sanloom_fc::fcp::target::{FcpTarget, FcpTargetConfig};
use sanloom_fc::nport::{NPort, NPortConfig, VirtualPort};
use sanloom_fc::san::{Lab, LunGroup, MAX_BLOCKS};
use sanloom_scsi::scsi::{Device, DeviceConfig, PortConfig, PortName, UnitConfig};
use sanloom_storage::backstore;
use sanloom_storage::disk::{Disk, DiskConfig, WritePolicy};
use sanloom_storage::flash::Drive;
use std::collections::BTreeSet;
use std::sync::Arc;

/// Exchanges that a port can have open beyond the outstanding commands of its queue.
const SPARE_EXCHANGES: u32 = 64;

/// Highest number of a virtual port; after it, numbering restarts at 1. No physical port carries
/// more virtual ports.
const MAX_VIRTUAL_NUMBER: u16 = 4094;

/// A lab with the numbers of its N_Ports and timers.
struct Plan<'a> {
    lab: &'a Lab,
    /// Owners of all N_Ports: first those with a link, then the virtual ones.
    owners: Vec<Owner>,
    /// Number of N_Ports with a link.
    physical: usize,
    timers: Timers,
    tcp: TcpPlan,
    srp: SrpPorts,
}

impl World {
    /// Returns the initial world of a lab. The lab must have passed `Lab::validate`.
    pub fn new(lab: Arc<Lab>) -> World {
        let plan = Plan::new(&lab);
        let fc = net_plan(&lab, &plan.owners[..plan.physical], plan.timers.all);
        let net = network(fc, ethernet::plane(&lab), infiniband::plane(&lab));
        let nports = NPorts::new((0..plan.owners.len()).map(|nport| plan.node(&net, nport)).collect());
        let mut hosts = plan.hosts();
        let mut storage = plan.storage();
        let switches = plan.has_sessions().then(|| {
            let first = plan.tcp.ports().len() as u32;
            Box::new(Switches::new(&lab, first, plan.timers.gateways(), &|name| {
                nports::of_host(&lab, &plan.owners, name)
            }))
        });
        let iscsi = plan.has_sessions().then(|| {
            storage.tcp.timer = Some(plan.timers.iscsi + 1);
            Box::new(Iscsi::new(plan.tcp.iscsi.clone(), plan.timers.iscsi))
        });
        let channel_timer = plan.timers.srp + 1;
        hosts.tcp = TcpOrders::new(plan.tcp.ports(), plan.timers.iscsi + 1, plan.srp.ports(), channel_timer);
        hosts.relay = Relay::new(&lab, &plan.owners, plan.in_order(), plan.timers.gateways());
        let srp = plan.srp.has_channels().then(|| {
            storage.srp.timer = Some(channel_timer);
            Box::new(Srp::new(plan.srp.srp.clone(), plan.timers.srp))
        });
        World {
            iscsi,
            fcip: fcip::new(&lab, plan.timers.fcip),
            srp,
            switches,
            nports,
            control: ControlPlane::new(&lab, &plan.timers),
            hosts,
            storage,
            notes: Default::default(),
            lane_series: Default::default(),
            downtimes: Downtimes::new(lab.links.len()),
            start_ps: 0,
            timers: plan.timers,
            schedule: Default::default(),
            link_faults: LinkFaults::new(lab.links.len()),
            ethernet_faults: PlaneFaults::new(lab.ethernet_links.len(), lab.ethernet_switches.len()),
            infiniband_faults: PlaneFaults::new(lab.infiniband.links.len(), lab.infiniband.switches.len()),
            fip: fip::new(&lab, plan.timers.fip),
            lldp: lldp::new(&lab, &net.ethernet, plan.timers.lldp),
            dark_links: Default::default(),
            quality: Quality::new(&lab, &net),
            loops: Loops::new(&lab),
            control_frames: 0,
            baseline: Default::default(),
            net,
            lab,
        }
    }
}

impl Plan<'_> {
    fn new(lab: &Lab) -> Plan<'_> {
        let owners = owners(lab);
        let physical = owners.len() - virtual_owners(lab).count();
        let tcp = TcpPlan::new(lab);
        let srp = SrpPorts::new(lab, &tcp);
        let has_sessions = tcp.has_sessions() || volumes::has_gateways(lab);
        let timers = Timers::new(lab, owners.len() as u32, has_sessions, srp.has_channels());
        Plan { lab, owners, physical, timers, tcp, srp }
    }

    /// Returns the index of an N_Port among the virtual ports, or `None` for a physical one.
    fn virtual_number(&self, nport: usize) -> Option<usize> {
        nport.checked_sub(self.physical)
    }

    /// Returns whether the lab has sessions of iSCSI, or a gateway, which uses their timers.
    fn has_sessions(&self) -> bool {
        self.tcp.has_sessions() || volumes::has_gateways(self.lab)
    }

    /// Returns whether frames of an exchange arrive in the order in which they were sent.
    fn in_order(&self) -> bool {
        !self.lab.switches.iter().any(|switch| switch.isl_choice.is_by_frame())
    }

    /// Returns the BB_SC_N that a port announces, that of its link.
    fn bb_sc_n(&self, owner: Owner) -> u8 {
        let is_ours = |end: &&LinkEnd| match (end.node, owner) {
            (Node::Host(own), Owner::Host { host, hba }) => (own, end.port) == (host, hba),
            (Node::Storage(own), Owner::Storage { storage, port }) => (own, end.port) == (storage, port),
            _ => false,
        };
        self.lab.links.iter().flat_map(|link| &link.ends).find(is_ours).map_or(0, |end| end.bb_sc_n)
    }

    fn node(&self, net: &Net, nport: usize) -> NodePort {
        let owner = self.owners[nport];
        let virtual_number = self.virtual_number(nport);
        let carrier = virtual_number.and_then(|_| carrier(self.lab, &self.owners, owner));
        let plane = carrier.unwrap_or(nport as u16);
        let rx = net.fc.lanes().get(net.fc.nport(plane).rx_lane() as usize);
        let (name, port) = match owner {
            Owner::Host { host, hba } => (&self.lab.hosts[usize::from(host)].name, hba),
            Owner::Storage { storage, port } => (&self.lab.storage[usize::from(storage)].name, port),
        };
        let names = [name.as_str(), &port.to_string()];
        let timers = &self.lab.timers;
        let common = NPortConfig {
            wwpn: Default::default(),
            wwnn: Default::default(),
            receive_size_bytes: 2048,
            bb_credit: rx.map_or(1, |lane| lane.bb_credit as u16),
            bb_sc_n: self.bb_sc_n(owner),
            initiator: false,
            target: false,
            symbolic_name: String::new(),
            e_d_tov: timers.e_d_tov.to_span(),
            r_a_tov: timers.r_a_tov.to_span(),
            seed: stream_rng(self.lab.run.seed, Purpose::Jitter, &names).next_u64(),
            virtual_port: None,
        };
        let config = match owner {
            Owner::Host { host, hba } => {
                let host = &self.lab.hosts[usize::from(host)];
                let hba = &host.hbas[usize::from(hba)];
                NPortConfig {
                    wwpn: hba.wwpn,
                    wwnn: host.wwnn,
                    receive_size_bytes: hba.receive_size_bytes,
                    initiator: host.discovery,
                    virtual_port: host.virtual_machine.zip(virtual_number).map(|(vm, number)| VirtualPort {
                        number: (number % usize::from(MAX_VIRTUAL_NUMBER)) as u16 + 1,
                        script: vm.script,
                    }),
                    symbolic_name: host.name.clone(),
                    ..common
                }
            }
            Owner::Storage { storage, port } => {
                let storage = &self.lab.storage[usize::from(storage)];
                let port = &storage.ports[usize::from(port)];
                NPortConfig {
                    wwpn: port.wwpn,
                    wwnn: storage.wwnn,
                    receive_size_bytes: port.receive_size_bytes,
                    target: true,
                    symbolic_name: storage.name.clone(),
                    ..common
                }
            }
        };
        NodePort::new(owner, described(self.lab, owner, NPort::new(config)), plane, virtual_number.is_some())
    }

    fn hosts(&self) -> Hosts {
        let lab = self.lab;
        let at_first = lab.hosts.iter().filter_map(|host| Some(host.virtual_machine?.on));
        let later = lab.faults.iter().filter_map(|fault| match fault.kind {
            FaultKind::VmMove { to, .. } => Some(to),
            _ => None,
        });
        let hypervisors = at_first.chain(later).collect();
        let workload_digits = digits(lab.workloads.len());
        let measure = |hosts: &[u16]| WorkloadMeasure::new(hosts, lab.hosts.len(), workload_digits);
        let plan = HostsPlan {
            nodes: (0..lab.hosts.len()).map(|host| self.host(host, &hypervisors)).collect(),
            workloads: lab.workloads.iter().map(|workload| measure(&workload.hosts)).collect(),
            initiators: self.owners.iter().map(|&owner| self.initiator(owner)).collect(),
            windows: self.owners[..self.physical].iter().map(|&owner| window(lab, owner)).collect(),
        };
        Hosts::new(lab, plan, &self.timers)
    }

    fn initiator(&self, owner: Owner) -> Option<FcpInitiator> {
        let Owner::Host { host, .. } = owner else { return None };
        let host = &self.lab.hosts[usize::from(host)];
        let max = (host.queue.max_outstanding + SPARE_EXCHANGES).min(MAX_EXCHANGES.into());
        Some(FcpInitiator::new(FcpInitiatorConfig {
            e_d_tov: self.lab.timers.e_d_tov.to_span(),
            r_a_tov: self.lab.timers.r_a_tov.to_span(),
            command_timeout: host.command_timeout.to_span(),
            recovery: Some(RecoveryLimits {
                abort_timeout: host.recovery.abort_timeout.to_span(),
                reset_timeout: host.recovery.reset_timeout.to_span(),
            }),
            max_exchanges: max as u16,
            in_order: self.in_order(),
        }))
    }

    fn storage(&self) -> Storage {
        let ports = self.owners.iter().filter_map(|&owner| self.storage_port(owner));
        let is_storage = |owner: &Owner| matches!(owner, Owner::Storage { .. });
        let first_nport = self.owners.iter().position(is_storage).unwrap_or(self.physical) as u16;
        // Systems with equal disks share their tables, which have an entry for each cylinder.
        let mut models: Vec<(&DiskConfig, Disk)> = Vec::new();
        let mut ssds: Vec<(&SsdConfig, Drive)> = Vec::new();
        let systems = (0..self.lab.storage.len()).map(|storage| {
            let config = &self.lab.storage[storage];
            let device = match (&config.ssd, config.disk.as_deref()) {
                (Some(ssd), _) => idle_ssd(&mut ssds, ssd, self.lab.run.seed),
                (None, Some(disk)) => idle_disk(&mut models, disk).map(backstore::Device::from),
                (None, None) => None,
            };
            self.storage_node(storage, device)
        });
        Storage::new(self.lab, (systems.collect(), ports.collect()), first_nport, &self.timers)
    }

    fn storage_port(&self, owner: Owner) -> Option<StoragePort> {
        let Owner::Storage { storage, port } = owner else { return None };
        let config = &self.lab.storage[usize::from(storage)];
        let target = FcpTarget::new(FcpTargetConfig {
            e_d_tov: self.lab.timers.e_d_tov.to_span(),
            r_a_tov: self.lab.timers.r_a_tov.to_span(),
            max_burst_bytes: config.max_burst_bytes,
            max_exchanges: u16::MAX - 1,
            in_order: self.in_order(),
            port,
            port_name: config.ports[usize::from(port)].wwpn,
        });
        Some(StoragePort { storage, target })
    }

    fn host(&self, host: usize, hypervisors: &BTreeSet<u16>) -> HostNode {
        let config = &self.lab.hosts[host];
        let of_host = |owner: &Owner| matches!(owner, Owner::Host { host: h, .. } if usize::from(*h) == host);
        let nports: Vec<u16> =
            self.owners.iter().zip(0..).filter(|(owner, _)| of_host(owner)).map(|(_, nport)| nport).collect();
        let mut streams = Vec::new();
        let mut used = BTreeSet::new();
        for (number, workload) in self.lab.workloads.iter().enumerate() {
            if workload.hosts.iter().any(|&h| usize::from(h) == host) {
                let none = Lun { blocks: 1, block_bytes: 512 };
                let lun = |t: &sanloom_fc::config::Target| self.lab.lun(t.storage, t.lun).unwrap_or(none);
                let luns: Vec<Lun> = workload.named_targets().iter().map(lun).collect();
                // The stream of a virtual machine starts no earlier than the machine.
                let created = Picos(schedule::created_ps(self.lab, host as u16).unwrap_or(0));
                let workload = config::Workload { start: workload.start.max(created), ..workload.clone() };
                let part = workload.hosts.iter().position(|&h| usize::from(h) == host).unwrap_or(0);
                let mut stream = Stream::new(&workload, (&config.name, part as u32), &luns, self.lab.run.seed);
                stream.split_above(largest_request(config, &luns));
                if let Some(stop) = self.lab.run.stop_issuing {
                    stream.stop_at(stop.0);
                }
                used.extend(workload.targets.iter().map(|target| target.storage));
                streams.push((number as u16, stream));
            }
        }
        let systems = used.iter().flat_map(|&storage| self.systems(host as u16, storage)).collect();
        let digits = digits(self.lab.hosts.len());
        let (tcp_ports, srp_ports) = (self.tcp.initiators[host], self.srp.initiators[host]);
        let plan = HostPlan {
            shares_hbas: config.virtual_machine.is_some() || hypervisors.contains(&(host as u16)),
            nports,
            interfaces: interfaces_of(self.lab, Node::Host(host as u16)),
            tcp_ports,
            ethernet_ports: self.tcp.ethernet[host],
            srp_ports,
            streams,
            digits,
            paths: Paths::new(&config.multipath, config.hbas.len() as u16 + tcp_ports + srp_ports, systems),
            series: Series::new(0, 0, 1, 2),
        };
        HostNode::new(config, plan)
    }

    /// Returns the paths of a host to a storage system: one entry for each group of LUNs that masks
    /// and controllers treat alike.
    fn systems(&self, host: u16, storage: u16) -> Vec<SystemPlan> {
        let config = &self.lab.storage[usize::from(storage)];
        let of_sessions = self.tcp.portals[usize::from(storage)] + self.srp.targets[usize::from(storage)];
        let ports = config.ports.len() + usize::from(of_sessions);
        let mut groups = self.lab.lun_groups(host, storage);
        // Masks of Fibre Channel ports do not concern initiators of iSCSI and SRP.
        let hbas = self.lab.hosts[usize::from(host)].hbas.len() as u16;
        let own = self.tcp.initiators[usize::from(host)] + self.srp.initiators[usize::from(host)];
        let initiators = hbas..hbas + own;
        groups.iter_mut().for_each(|group| group.hbas.extend(initiators.clone()));
        let whole = |group| SystemPlan { storage, ports: ports as u16, group, served: None };
        let controllers = &config.controllers;
        if controllers.count < 2 || controllers.access == ControllerAccess::Symmetric {
            return groups.into_iter().map(whole).collect();
        }
        let mut systems = Vec::new();
        for group in groups {
            let luns = group.luns.unwrap_or_else(|| self.lab.luns_in_use(host, storage));
            for home in 0..controllers.count {
                let own: BTreeSet<u16> = luns.iter().copied().filter(|lun| controllers.of_lun(*lun) == home).collect();
                if !own.is_empty() {
                    let group = LunGroup { luns: Some(own), hbas: group.hbas.clone() };
                    let served = Some(Served { home, owner: home, controllers: *controllers });
                    systems.push(SystemPlan { served, ..whole(group) });
                }
            }
        }
        systems
    }

    fn storage_node(&self, storage: usize, behind: Option<backstore::Device>) -> StorageNode {
        let of_storage =
            |owner: &Owner| matches!(owner, Owner::Storage { storage: s, .. } if usize::from(*s) == storage);
        let nports = self.owners.iter().zip(0..).filter(|(owner, _)| of_storage(owner)).map(|(_, nport)| nport);
        let config = &self.lab.storage[storage];
        let port = |port: &config::StoragePort| PortConfig { name: PortName::Fcp(port.wwpn), group: 0 };
        let portal_count = self.tcp.portals[storage];
        let target =
            self.lab.live.iscsi.get(&(storage as u16)).map_or_else(String::new, |target| target.name.clone()).into();
        let name = PortName::Iscsi { target, portal_group: 1 };
        let portals = (0..portal_count).map(|_| PortConfig { name: name.clone(), group: 0 });
        let channel_count = self.srp.targets[storage];
        let guids = infiniband::guids_of(self.lab, storage as u16);
        let channels =
            guids.into_iter().map(|guid| PortConfig { name: PortName::Fcp(sanloom_wire::Wwpn(guid)), group: 0 });
        // A disk that caches writes makes its unit one with a volatile write cache.
        // Behind a cache with a battery, this does not matter to hosts.
        let is_volatile = match (&config.ssd, &config.disk) {
            (Some(ssd), _) => ssd.drive.buffer_pages > 0 && !ssd.drive.has_power_loss_protection,
            (None, Some(disk)) => disk.cache.write != WritePolicy::Through,
            (None, None) => false,
        };
        let write_back = config.backstore.cache.is_none() && is_volatile;
        let unit = |lun: &Lun| UnitConfig { write_back, ..UnitConfig::new(lun.blocks, lun.block_bytes) };
        // The LUN is the number of the unit, so unused LUNs below the last volume are units as
        // well.
        let volumes = self.lab.volumes_of(storage as u16);
        let last = volumes.keys().next_back().map_or(0, |lun| lun + 1);
        let volume = |lun: u16| self.lab.lun(storage as u16, lun).unwrap_or(Lun { blocks: 1, block_bytes: 512 });
        let volumes = (0..last).map(|lun| unit(&volume(lun)));
        let device = DeviceConfig {
            wwnn: config.wwnn,
            ports: config.ports.iter().map(port).chain(portals).chain(channels).collect(),
            units: config.luns.iter().map(unit).chain(volumes).collect(),
            masking: self.lab.masking(storage as u16),
            ..DeviceConfig::default()
        };
        let luns = config.luns.len();
        let mut controller = Controller::new(
            &config.service,
            digits(self.lab.storage.len()),
            stream_rng(self.lab.run.seed, Purpose::Service, &[&config.name]),
        );
        let nports: Vec<u16> = nports.collect();
        let fails = |fault: &Fault| matches!(fault.kind, FaultKind::ControllerFailure { storage: s, .. } if usize::from(s) == storage);
        if config.controllers.count > 1 || self.lab.faults.iter().any(fails) {
            let first = nports.first().copied().unwrap_or(0);
            let of_sessions = [portal_count, channel_count];
            controller =
                controller.with_partners(Partners::new(&config.controllers, (first, nports.len(), of_sessions), luns));
        }
        if let Some(behind) = behind {
            let disks = Disks::new(&config.backstore, behind, &config.luns);
            let seed = stream_rng(self.lab.run.seed, Purpose::LatentErrors, &[&config.name]).next_u64();
            let disks = disks.and_then(|disks| disks.protect(&config.protection, seed));
            debug_assert!(disks.is_ok(), "validation refuses such a lab: {:?}", disks.err());
            if let Ok(disks) = disks {
                controller = controller.with_disks(disks);
            }
        }
        StorageNode {
            controller,
            device: Device::new(device),
            nports,
            adapters: Adapters::new(self.lab, storage as u16, portal_count),
            ios: [0; 2],
            bytes: [0; 2],
            all_bytes: 0,
        }
    }
}

/// Returns an idle SSD with these parameters, which is built and preconditioned once.
fn idle_ssd<'c>(
    models: &mut Vec<(&'c SsdConfig, Drive)>,
    config: &'c SsdConfig,
    seed: u64,
) -> Option<backstore::Device> {
    if let Some((_, drive)) = models.iter().find(|(known, _)| *known == config) {
        return Some(drive.into());
    }
    let built = Drive::new(&config.drive);
    debug_assert!(built.is_ok(), "{built:?}");
    let mut drive = built.ok()?;
    if let Some(turns) = config.preconditioned_turns {
        drive.precondition(turns, &mut stream_rng(seed, Purpose::Precondition, &[&config.drive.name]));
    }
    let device = (&drive).into();
    models.push((config, drive));
    Some(device)
}

/// Returns an idle disk with these parameters, which is built once. A lab whose parameters are
/// wrong is refused before.
fn idle_disk<'m, 'c>(models: &'m mut Vec<(&'c DiskConfig, Disk)>, config: &'c DiskConfig) -> Option<&'m Disk> {
    let at = match models.iter().position(|(known, _)| *known == config) {
        Some(at) => at,
        None => {
            let disk = Disk::new(config);
            debug_assert!(disk.is_ok(), "{disk:?}");
            models.push((config, disk.ok()?));
            models.len() - 1
        }
    };
    Some(&models[at].1)
}

/// Returns the owners of all N_Ports: first those with a link, then the virtual ones.
fn owners(lab: &Lab) -> Vec<Owner> {
    let mut owners = Vec::new();
    for (host, config) in lab.hosts.iter().enumerate().filter(|(_, host)| host.virtual_machine.is_none()) {
        owners.extend((0..config.hbas.len()).map(|hba| Owner::Host { host: host as u16, hba: hba as u16 }));
    }
    for (storage, config) in lab.storage.iter().enumerate() {
        owners
            .extend((0..config.ports.len()).map(|port| Owner::Storage { storage: storage as u16, port: port as u16 }));
    }
    owners.extend(virtual_owners(lab));
    owners
}

fn virtual_owners(lab: &Lab) -> impl Iterator<Item = Owner> + '_ {
    let machines = lab.hosts.iter().zip(0..).filter(|(host, _)| host.virtual_machine.is_some());
    machines.flat_map(|(config, host)| (0..config.hbas.len() as u16).map(move |hba| Owner::Host { host, hba }))
}

/// Returns the frame window of a physical N_Port.
fn window(lab: &Lab, owner: Owner) -> FrameWindow {
    match owner {
        Owner::Host { host, hba } => {
            let hba = &lab.hosts[usize::from(host)].hbas[usize::from(hba)];
            FrameWindow::new(hba.data_frames_in_flight, u32::from(hba.receive_size_bytes))
        }
        Owner::Storage { .. } => FrameWindow::new(None, 1),
    }
}

/// Returns the N_Port of the HBA that carries a virtual port at the start.
fn carrier(lab: &Lab, owners: &[Owner], owner: Owner) -> Option<u16> {
    let Owner::Host { host, hba } = owner else { return None };
    let vm = lab.hosts[usize::from(host)].virtual_machine?;
    let carrier = vm.carrier(hba, lab.hosts[usize::from(vm.on)].hbas.len());
    Some(position(owners, Owner::Host { host: vm.on, hba: carrier }))
}

fn net_plan(lab: &Lab, owners: &[Owner], timers: u32) -> NetPlan {
    let end = |end: &LinkEnd| match end.node {
        Node::Switch(switch) => End::Switch { switch, port: end.port },
        Node::Host(host) => End::NPort(position(owners, Owner::Host { host, hba: end.port })),
        Node::Storage(storage) => End::NPort(position(owners, Owner::Storage { storage, port: end.port })),
        Node::Loop(number) => End::Loop { number, port: end.port },
    };
    let (mut lanes, on_ethernet) = (Vec::new(), fcoe::rates(lab));
    for (number, link) in (0..).zip(&lab.links) {
        let [a, b] = &link.ends;
        for (side, (from, to)) in [(a, b), (b, a)].into_iter().enumerate() {
            // The nodes decide the direction, because links of one bundle may list their ends in
            // either order.
            let direction = u16::from(from.node > to.node);
            let credit = u32::from(to.bb_credit);
            let mut lane = Lane::new(end(from), end(to), link.rate, link.propagation.0, credit);
            if let Some(rates) = on_ethernet.get(&number) {
                lane = fcoe::lane(link, [end(from), end(to)], rates[side]);
            }
            lane.bundle = link.bundle.map(|bundle| 2 * bundle + direction);
            lane.state_changes.n = link.bb_sc_n();
            lanes.push(lane);
        }
    }
    let bundles = lab.links.iter().filter_map(|link| link.bundle).max().map_or(0, |most| 2 * (usize::from(most) + 1));
    let nport = |owner: &Owner| match *owner {
        Owner::Host { host, hba } => {
            let hba = &lab.hosts[usize::from(host)].hbas[usize::from(hba)];
            NPortPlan { sequence_overhead_ps: 0, frame_overhead_ps: 0, frame_bytes: hba.receive_size_bytes }
        }
        Owner::Storage { storage, port } => {
            let port = &lab.storage[usize::from(storage)].ports[usize::from(port)];
            NPortPlan {
                sequence_overhead_ps: port.sequence_overhead.0,
                frame_overhead_ps: port.frame_overhead.0,
                frame_bytes: port.receive_size_bytes,
            }
        }
    };
    NetPlan {
        switches: lab
            .switches
            .iter()
            .zip(0..)
            .map(|(config, number)| SwitchPlan { config: config.clone(), bundle_of_port: bundles_of(lab, number) })
            .collect(),
        channels: virtual_channels(lab, &lanes),
        fcoe: fcoe::plan(lab),
        lanes,
        nports: owners.iter().map(nport).collect(),
        timers,
        bundles,
        loops: lab.loops.len(),
        e_d_tov_ps: lab.timers.e_d_tov.0,
        hold_time_ps: lab.timers.hold_time.0,
    }
}

/// Returns the virtual channels of the lanes between switches that both have them.
fn virtual_channels(lab: &Lab, lanes: &[Lane]) -> Vec<(u32, ChannelCredits)> {
    let divided = |number: usize, lane: &Lane| {
        let (End::Switch { switch: from, .. }, End::Switch { switch: to, .. }) = (lane.from, lane.to) else {
            return None;
        };
        let [from, to] = [from, to].map(|switch| &lab.switches[usize::from(switch)]);
        let has_credits = lab.links[number / 2].fcoe.is_none();
        let wanted = from.virtual_channels.filter(|_| has_credits)?.common(to.virtual_channels?);
        // All lines of a bundle have the channels that the line with the fewest buffers can have.
        let lines = lanes.iter().filter(|other| other.bundle.is_some() && other.bundle == lane.bundle);
        let least = lines.map(|line| line.bb_credit).min().unwrap_or(lane.bb_credit).min(lane.bb_credit);
        let (ps, bytes) = lane.ps_per_byte();
        let crossing_ps =
            lane.time_of(u64::from(MAX_FRAME_BYTES)) * 100 / u64::from(to.crossbar.speedup_percent.max(1));
        let fill = buffers_to_fill((ps, bytes), lane.propagation_ps, to.latency.0, crossing_ps);
        let channels = ChannelCredits::divide(least as u16, wanted, fill)?;
        let credits = channels.with_buffers(lane.bb_credit as u16);
        Some((number as u32, credits))
    };
    lanes.iter().enumerate().filter_map(|(number, lane)| divided(number, lane)).collect()
}

/// Returns the number of the N_Port. Every link end in a validated lab has one.
fn position(owners: &[Owner], owner: Owner) -> u16 {
    owners.iter().position(|&o| o == owner).unwrap_or(usize::from(u16::MAX)) as u16
}

/// Returns the longest request in bytes that the HBAs of a host and SCSI commands can transfer.
fn largest_request(host: &config::Host, luns: &[Lun]) -> u64 {
    let block_bytes = luns.iter().map(|lun| u64::from(lun.block_bytes)).min().unwrap_or(1);
    let window = |hba: &config::Hba| Some(u64::from(hba.data_frames_in_flight?) * u64::from(hba.receive_size_bytes));
    let windows = host.hbas.iter().filter_map(window);
    windows.min().unwrap_or(u64::MAX).min(MAX_BLOCKS * block_bytes)
}
