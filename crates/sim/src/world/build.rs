//! From a lab to a world.

use super::control::{SwitchNode, bundles_of};
use super::host::{HostNode, HostPlan};
use super::ledger::{Ledger, WorkloadMeasure};
use super::node::{NodePort, Owner};
use super::path::{PathTable, Paths};
use super::processor::SwitchProcessor;
use super::storage::Controller;
use super::{FramePool, StorageNode, Timers, World};
use crate::host::FrameWindow;
use crate::net::{End, Lane, NPortPlan, Net, NetPlan, SwitchPlan};
use crate::rng::{Purpose, stream_rng};
use crate::stats::Series;
use crate::workload::Stream;
use rand::Rng;
use sanloom_core::config::{FaultKind, IslChoice, Lab, LinkEnd, Lun, Node, StoragePort};
use sanloom_core::fabric::ZoneSet;
use sanloom_core::fabric_switch::{FabricSwitch, FabricSwitchConfig};
use sanloom_core::fcp::initiator::{FcpInitiator, FcpInitiatorConfig};
use sanloom_core::fcp::target::{FcpTarget, FcpTargetConfig};
use sanloom_core::fspf::FspfConfig;
use sanloom_core::names::NamesConfig;
use sanloom_core::nport::{NPort, NPortConfig, VirtualPort};
use sanloom_core::scsi::{Device, DeviceConfig, PortConfig, PortName, UnitConfig};
use sanloom_core::time::{Instant, Span};
use sanloom_core::zoning::Zones;
use sanloom_core::zoning::server::ZoneServerConfig;
use sanloom_wire::FcId;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

/// Exchanges that a port keeps at once, beyond what its queue may have outstanding.
const SPARE_EXCHANGES: u32 = 64;

/// Virtual ports are numbered from 1 to this, then from 1 again: no physical port carries more.
const MAX_VIRTUAL_NUMBER: u16 = 4094;

impl World {
    /// A world in which nothing has happened yet. The lab must have passed `Lab::validate`.
    pub fn new(lab: Arc<Lab>) -> World {
        let owners = owners(&lab);
        let workload_digits = digits(lab.workloads.len());
        let measure = |hosts: &[u16]| WorkloadMeasure::new(hosts, lab.hosts.len(), workload_digits);
        let nports = owners.len() as u32;
        let timers = timers(&lab, nports);
        let physical = owners.len() - virtual_owners(&lab).count();
        let net = Net::new(net_plan(&lab, &owners[..physical], timers.all));
        let mut world = World {
            nodes: Vec::new(),
            switches: Vec::new(),
            hosts: Vec::new(),
            storage: Vec::new(),
            workloads: lab.workloads.iter().map(|workload| measure(&workload.hosts)).collect(),
            books: Default::default(),
            ledger: Ledger::new(lab.links.len()),
            start_ps: 0,
            timers,
            path_table: PathTable::new(&lab.storage),
            faults: Default::default(),
            windows: owners[..physical].iter().map(|&owner| window(&lab, owner)).collect(),
            room: Vec::new(),
            dma: FramePool::default(),
            command_log: None,
            ended: Default::default(),
            follow: Vec::new(),
            control_frames: 0,
            incidents_reported: 0,
            baseline: Default::default(),
            zones: zones(&lab),
            net,
            lab,
        };
        let nodes = owners.iter().zip(0..).map(|(&owner, nport)| {
            let virtual_number = (nport as usize).checked_sub(physical);
            let carrier = virtual_number.and_then(|_| carrier(&world.lab, &owners, owner));
            world.node(owner, nport, carrier.unwrap_or(nport as u16), virtual_number)
        });
        world.nodes = nodes.collect();
        world.switches = (0..world.lab.switches.len() as u16)
            .map(|switch| SwitchNode {
                machine: FabricSwitch::new(Instant::ZERO, world.switch_config(switch)),
                processor: world.lab.switches[usize::from(switch)].processor.map(SwitchProcessor::new),
                up: true,
                forgotten: Default::default(),
            })
            .collect();
        let at_first = world.lab.hosts.iter().filter_map(|host| Some(host.virtual_machine?.on));
        let later = world.lab.faults.iter().filter_map(|fault| match fault.kind {
            FaultKind::VmMove { to, .. } => Some(to),
            _ => None,
        });
        let hypervisors = at_first.chain(later).collect();
        world.hosts = (0..world.lab.hosts.len()).map(|host| world.host(host, &owners, &hypervisors)).collect();
        world.storage = (0..world.lab.storage.len()).map(|storage| world.storage_node(storage, &owners)).collect();
        world
    }

    /// An N_Port that sends through `plane`; `virtual_number` counts the virtual ones.
    fn node(&self, owner: Owner, nport: u32, plane: u16, virtual_number: Option<usize>) -> NodePort {
        let timers = &self.lab.timers;
        let (e_d_tov, r_a_tov) = (timers.e_d_tov.to_span(), timers.r_a_tov.to_span());
        let rx = self.net.lanes().get(self.net.rx_lane(plane) as usize);
        let bb_credit = rx.map_or(1, |lane| lane.bb_credit as u16);
        let seed = stream_rng(self.lab.run.seed, Purpose::Jitter, nport, 0).next_u64();
        let in_order = !self.lab.switches.iter().any(|switch| switch.isl_choice == IslChoice::Spray);
        let mut config = NPortConfig {
            wwpn: Default::default(),
            wwnn: Default::default(),
            receive_size_bytes: 2048,
            bb_credit,
            initiator: false,
            target: false,
            symbolic_name: String::new(),
            e_d_tov,
            r_a_tov,
            seed,
            virtual_port: None,
        };
        let (mut initiator, mut target) = (None, None);
        match owner {
            Owner::Host { host, hba } => {
                let host = &self.lab.hosts[usize::from(host)];
                let hba = &host.hbas[usize::from(hba)];
                config.wwpn = hba.wwpn;
                config.wwnn = host.wwnn;
                config.receive_size_bytes = hba.receive_size_bytes;
                config.initiator = host.discovery;
                config.virtual_port = host.virtual_machine.zip(virtual_number).map(|(vm, number)| VirtualPort {
                    number: (number % usize::from(MAX_VIRTUAL_NUMBER)) as u16 + 1,
                    script: vm.script,
                });
                config.symbolic_name = host.name.clone();
                let max = (host.queue.max_outstanding + SPARE_EXCHANGES).min(0x4000);
                initiator = Some(FcpInitiator::new(FcpInitiatorConfig {
                    e_d_tov,
                    r_a_tov,
                    command_timeout: host.command_timeout.to_span(),
                    max_exchanges: max as u16,
                    in_order,
                }));
            }
            Owner::Storage { storage, port: number } => {
                let storage = &self.lab.storage[usize::from(storage)];
                let port = &storage.ports[usize::from(number)];
                config.wwpn = port.wwpn;
                config.wwnn = storage.wwnn;
                config.receive_size_bytes = port.receive_size_bytes;
                config.target = true;
                config.symbolic_name = storage.name.clone();
                target = Some(FcpTarget::new(FcpTargetConfig {
                    e_d_tov,
                    r_a_tov,
                    max_burst_bytes: storage.max_burst_bytes,
                    max_exchanges: u16::MAX - 1,
                    in_order,
                    port: number,
                    port_name: port.wwpn,
                }));
            }
        }
        let login = NPort::new(config);
        NodePort {
            owner,
            login,
            initiator,
            target,
            port_id: FcId::ZERO,
            plane,
            is_virtual: virtual_number.is_some(),
            carried: Default::default(),
            unexpected_frames: 0,
        }
    }

    /// Configuration of a switch's machines.
    pub(super) fn switch_config(&self, switch: u16) -> FabricSwitchConfig {
        let (zoning, database) = self.zones[&zone_key(&self.lab, switch)].clone();
        let config = FabricSwitchConfig::of_lab(&self.lab, switch, zoning, database);
        FabricSwitchConfig {
            zones: ZoneServerConfig { retry: Span::from_ms(20), ..config.zones },
            fspf: FspfConfig { min_ls_interval: Span::ZERO, ..config.fspf },
            // At once: a host of a simulation is quick, and must not reach a port before hard zoning knows it there.
            names: NamesConfig { delay: Span::ZERO, ..NamesConfig::default() },
            ..config
        }
    }

    fn host(&self, host: usize, owners: &[Owner], hypervisors: &BTreeSet<u16>) -> HostNode {
        let config = &self.lab.hosts[host];
        let of_host = |owner: &Owner| matches!(owner, Owner::Host { host: h, .. } if usize::from(*h) == host);
        let nports: Vec<u16> =
            owners.iter().zip(0..).filter(|(owner, _)| of_host(owner)).map(|(_, nport)| nport).collect();
        let mut streams = Vec::new();
        let mut used = BTreeSet::new();
        for (number, workload) in self.lab.workloads.iter().enumerate() {
            if workload.hosts.iter().any(|&h| usize::from(h) == host) {
                let lun = |t: &sanloom_core::config::Target| {
                    self.lab.storage[usize::from(t.storage)].luns[usize::from(t.lun)]
                };
                let luns: Vec<Lun> = workload.targets.iter().map(lun).collect();
                // The stream of a virtual machine does not begin before it.
                let created = config.virtual_machine.and_then(|vm| vm.start).unwrap_or_default();
                let mut workload = workload.clone();
                workload.start = workload.start.max(created);
                let mut stream = Stream::new(&workload, number as u32, host as u32, &luns, self.lab.run.seed);
                if let Some(stop) = self.lab.run.stop_issuing {
                    stream.stop_at(stop.0);
                }
                used.extend(workload.targets.iter().map(|target| target.storage));
                streams.push((number as u16, stream));
            }
        }
        let systems: Vec<(u16, u16)> =
            used.iter().map(|&s| (s, self.lab.storage[usize::from(s)].ports.len() as u16)).collect();
        let digits = digits(self.lab.hosts.len());
        let plan = HostPlan {
            shares_hbas: config.virtual_machine.is_some() || hypervisors.contains(&(host as u16)),
            nports,
            streams,
            digits,
            paths: Paths::new(&config.multipath, config.hbas.len() as u16, &systems),
            series: Series::new(0, 0, 1, 2),
        };
        HostNode::new(config, plan)
    }

    fn storage_node(&self, storage: usize, owners: &[Owner]) -> StorageNode {
        let of_storage =
            |owner: &Owner| matches!(owner, Owner::Storage { storage: s, .. } if usize::from(*s) == storage);
        let nports = owners.iter().zip(0..).filter(|(owner, _)| of_storage(owner)).map(|(_, nport)| nport);
        let config = &self.lab.storage[storage];
        let port = |port: &StoragePort| PortConfig { name: PortName::Fcp(port.wwpn), group: 0 };
        let device = DeviceConfig {
            wwnn: config.wwnn,
            ports: config.ports.iter().map(port).collect(),
            units: config.luns.iter().map(|lun: &Lun| UnitConfig::new(lun.blocks, lun.block_bytes)).collect(),
            ..DeviceConfig::default()
        };
        StorageNode {
            controller: Controller::new(&config.service, digits(self.lab.storage.len())),
            device: Device::new(device),
            nports: nports.collect(),
            ios: [0; 2],
            bytes: [0; 2],
            all_bytes: 0,
        }
    }
}

/// Significant digits of the histograms of so many nodes: percentiles are right to 0.1 %, 0.8 % or 6 %, and a thousand
/// nodes still fit into a few megabytes.
/// Which zones a switch begins with.
fn zone_key(lab: &Lab, switch: u16) -> Option<u16> {
    lab.vf_id(switch).filter(|_| !lab.zone_fabrics.is_empty())
}

/// The zones that switches begin with, each database once, however many have it.
fn zones(lab: &Lab) -> BTreeMap<Option<u16>, (Arc<ZoneSet>, Zones)> {
    let mut zones = BTreeMap::new();
    for switch in 0..lab.switches.len() as u16 {
        zones.entry(zone_key(lab, switch)).or_insert_with(|| {
            let zones = Zones::new(lab.zone_database_at(switch));
            (zones.index(), zones)
        });
    }
    zones
}

fn digits(nodes: usize) -> u8 {
    match nodes {
        0..=64 => 3,
        65..=256 => 2,
        _ => 1,
    }
}

/// All N_Ports: those with a link, then the virtual ones.
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

/// The HBA that carries a virtual port at first.
/// What may be in flight on an N_Port that is a piece of hardware.
fn window(lab: &Lab, owner: Owner) -> FrameWindow {
    match owner {
        Owner::Host { host, hba } => {
            let hba = &lab.hosts[usize::from(host)].hbas[usize::from(hba)];
            FrameWindow::new(hba.data_frames_in_flight, u32::from(hba.receive_size_bytes))
        }
        Owner::Storage { .. } => FrameWindow::new(None, 1),
    }
}

fn carrier(lab: &Lab, owners: &[Owner], owner: Owner) -> Option<u16> {
    let Owner::Host { host, hba } = owner else { return None };
    let vm = lab.hosts[usize::from(host)].virtual_machine?;
    let carrier = vm.carrier(hba, lab.hosts[usize::from(vm.on)].hbas.len());
    Some(position(owners, Owner::Host { host: vm.on, hba: carrier }))
}

fn timers(lab: &Lab, nports: u32) -> Timers {
    let switch = nports;
    let host = switch + lab.switches.len() as u32;
    let storage = host + lab.hosts.len() as u32;
    let processor = storage + lab.storage.len() as u32;
    let fault = processor + lab.switches.len() as u32;
    Timers { switch, host, storage, processor, fault, sample: fault + 1, all: fault + 2 }
}

fn net_plan(lab: &Lab, owners: &[Owner], timers: u32) -> NetPlan {
    let end = |end: &LinkEnd| match end.node {
        Node::Switch(switch) => End::Switch { switch, port: end.port },
        Node::Host(host) => End::NPort(position(owners, Owner::Host { host, hba: end.port })),
        Node::Storage(storage) => End::NPort(position(owners, Owner::Storage { storage, port: end.port })),
    };
    let mut lanes = Vec::new();
    for link in &lab.links {
        let [a, b] = &link.ends;
        for (from, to) in [(a, b), (b, a)] {
            // Not by the order of the ends: links of one bundle may name them either way.
            let direction = u16::from(from.node > to.node);
            let credit = u32::from(to.bb_credit);
            let mut lane = Lane::new(end(from), end(to), link.rate, link.propagation.0, credit);
            lane.bundle = link.bundle.map(|bundle| 2 * bundle + direction);
            lanes.push(lane);
        }
    }
    let bundles = lab.links.iter().filter_map(|link| link.bundle).max().map_or(0, |most| 2 * (usize::from(most) + 1));
    let nport = |owner: &Owner| match *owner {
        Owner::Host { host, hba } => {
            let hba = &lab.hosts[usize::from(host)].hbas[usize::from(hba)];
            NPortPlan { sequence_overhead_ps: 0, frame_bytes: hba.receive_size_bytes }
        }
        Owner::Storage { storage, port } => {
            let port = &lab.storage[usize::from(storage)].ports[usize::from(port)];
            NPortPlan { sequence_overhead_ps: port.sequence_overhead.0, frame_bytes: port.receive_size_bytes }
        }
    };
    NetPlan {
        switches: lab
            .switches
            .iter()
            .zip(0..)
            .map(|(config, number)| SwitchPlan { config: config.clone(), bundle_of_port: bundles_of(lab, number) })
            .collect(),
        lanes,
        nports: owners.iter().map(nport).collect(),
        timers,
        bundles,
        e_d_tov_ps: lab.timers.e_d_tov.0,
        hold_time_ps: lab.timers.hold_time.0,
    }
}

/// Number of the N_Port; every end of a link in a checked lab has one.
fn position(owners: &[Owner], owner: Owner) -> u16 {
    owners.iter().position(|&o| o == owner).unwrap_or(usize::from(u16::MAX)) as u16
}
