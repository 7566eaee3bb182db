//! iSCSI of a lab: its sessions and targets, and their place between hosts and storage.

use super::World;
use super::adapter::Adapters;
use super::ethernet::tcp_config;
use super::host::{Hosts, TcpPort, charge_tcp, handle_pdu, tcp_event};
use super::relay;
use super::target::{Storage, notify_session};
use super::volumes::{self, BackSession, Switches, frame_bytes};
use crate::host::{Arrival, Interface, RaisedInterrupt};
use crate::iscsi::{
    AdapterPlan, Around, Direction, Event, Front, Iscsi, IscsiPlan, Load, Machine, SessionPlan, Shared, TargetPlan,
};
use crate::net::Net;
use crate::net::ethernet::Packet;
use crate::srp::CHANNEL;
use sanloom_fc::config::{self, BackEndTarget, EthernetNode, ForwardingGrain};
use sanloom_fc::fcp::target::Input;
use sanloom_fc::san::{IpPaths, IpWay, IscsiPaths, Lab, is_gateway};
use sanloom_scsi::iscsi::initiator::{LoginConfig, SessionConfig};
use sanloom_scsi::iscsi::parameters::Offers;
use sanloom_scsi::iscsi::target::{Access, Limits, Node, Portal, Target};
use sanloom_scsi::scsi::{Device, Io, IoStatus, IoTag, NexusId, Notice};
use sanloom_scsi::time::Span;
use std::sync::Arc;

/// Time limit of a login, with the handshake of TCP (`node.conn[0].timeo.login_timeout` of
/// Open-iSCSI).
const LOGIN_TIME: Span = Span::from_secs(15);
/// Idle time after which the target is pinged, and the time for its reply
/// (`node.conn[0].timeo.noop_out_interval` and `noop_out_timeout` of Open-iSCSI).
const PING: Span = Span::from_secs(5);
/// Time from the loss of a connection to the next one (DefaultTime2Wait, RFC 7143, section 13.15).
const RECONNECT: Span = Span::from_secs(2);

/// Time from the loss of a session that forwards PDUs to the next one, as in a live run.
const LINK_RECONNECT: Span = Span::from_ms(100);

/// Returns the longest time from the failure of a path to the failure of the next login over it.
pub fn recovery() -> Span {
    Span::from_ns(2 * PING.as_ns() + RECONNECT.as_ns() + LOGIN_TIME.as_ns())
}

/// Sessions of a lab, and the numbers of ports that they add to hosts and storage systems.
#[derive(Default)]
pub(super) struct TcpPlan {
    pub iscsi: IscsiPlan,
    /// Initiator ports, indexed by host.
    pub initiators: Vec<u16>,
    /// Initiator ports on Ethernet, which come first.
    pub ethernet: Vec<u16>,
    /// Portals, indexed by storage system.
    pub portals: Vec<u16>,
    /// Number of sessions of hosts, which come first.
    hosts: usize,
}

impl TcpPlan {
    /// Returns the sessions of a lab.
    pub fn new(lab: &Lab) -> TcpPlan {
        let mut plan = TcpPlan {
            iscsi: IscsiPlan::default(),
            initiators: vec![0; lab.hosts.len()],
            ethernet: vec![0; lab.hosts.len()],
            hosts: 0,
            portals: vec![0; lab.storage.len()],
        };
        let Some(paths) = ip_paths(lab) else { return plan };
        plan.portals = (0..lab.storage.len() as u16).map(|storage| paths.portals(storage).len() as u16).collect();
        for (host, config) in (0..).zip(&lab.hosts) {
            let own = paths.interfaces_of_host(host);
            for &storage in lab.live.iscsi.keys().filter(|storage| uses(lab, host, **storage)) {
                for way in paths.ways(host, storage) {
                    let at = own.iter().position(|other| *other == way.ends[0]).unwrap_or(0) as u16;
                    for number in 0..config.iscsi.sessions {
                        let hba = config.hbas.len() as u16 + at * config.iscsi.sessions + number;
                        plan.iscsi.sessions.extend(session(lab, (host, hba), storage, &way));
                    }
                    plan.initiators[usize::from(host)] = own.len() as u16 * config.iscsi.sessions;
                    let on_ethernet = paths.iscsi.interfaces_of(EthernetNode::Host(host)).len() as u16;
                    plan.ethernet[usize::from(host)] = on_ethernet * config.iscsi.sessions;
                }
            }
        }
        plan.hosts = plan.iscsi.sessions.len();
        let backs = volumes::sessions(lab).into_iter();
        plan.iscsi.sessions.extend(backs.filter_map(|back| back_session(lab, &paths.iscsi, back)));
        let links = links(lab, &paths.iscsi, &plan.iscsi.sessions[..plan.hosts]);
        plan.iscsi.sessions.extend(links);
        let target = |(storage, portals): (u16, &u16)| (*portals > 0).then(|| target(lab, storage, *portals)).flatten();
        plan.iscsi.targets = (0..).zip(&plan.portals).map(target).collect();
        let adapter = |end: EthernetNode| match end {
            EthernetNode::Storage(storage) => AdapterPlan::immediate(Machine::Storage(storage)),
            EthernetNode::Host(host) => {
                let processor = &lab.hosts[usize::from(host)].processor;
                let tcp = &processor.tcp;
                AdapterPlan {
                    owner: Machine::Host(host),
                    number: 0,
                    polls: tcp.takes_time_to_receive() && processor.iscsi_hba.is_none(),
                    gap_ps: tcp.interrupt_gap.0,
                    min_gap_ps: tcp.min_interrupt_gap.map(|gap| gap.0),
                    max_frames: tcp.interrupt_frames.into(),
                    batch_bytes: tcp.batch_bytes,
                    router: None,
                }
            }
            EthernetNode::Switch(_) | EthernetNode::Forwarder(_) => AdapterPlan::immediate(Machine::Host(u16::MAX)),
        };
        let on_ethernet = paths.iscsi.interfaces.iter();
        let on_ethernet =
            on_ethernet.map(|interface| AdapterPlan { number: interface.end.port, ..adapter(interface.end.node) });
        plan.iscsi.adapters = on_ethernet.collect();
        super::ipoib::add(lab, &paths, &mut plan.iscsi, adapter);
        plan
    }

    /// Returns whether the lab has sessions.
    pub fn has_sessions(&self) -> bool {
        !self.iscsi.sessions.is_empty()
    }

    /// Returns the ends of all sessions in the order of their numbers.
    pub fn ports(&self) -> Vec<TcpPort> {
        let port = |plan: &SessionPlan| {
            let &SessionPlan { host, hba, storage, port, .. } = plan;
            TcpPort { host, hba, storage, port }
        };
        self.iscsi.sessions[..self.hosts].iter().map(port).collect()
    }
}

/// Returns whether a workload of the host uses the storage system. Without workloads, hosts log in
/// everywhere.
pub(super) fn uses(lab: &Lab, host: u16, storage: u16) -> bool {
    let is_here = |workload: &config::Workload| {
        workload.hosts.contains(&host) && workload.targets.iter().any(|target| target.storage == storage)
    };
    lab.workloads.is_empty() || lab.workloads.iter().any(is_here)
}

/// Returns the number of iSCSI initiator ports of a host, as [`TcpPlan::new`] counts them.
pub fn initiators(lab: &Lab, paths: &IpPaths<'_>, host: u16) -> u16 {
    let has_session = |storage: &u16| uses(lab, host, *storage) && !paths.ways(host, *storage).is_empty();
    match lab.live.iscsi.keys().any(has_session) {
        true => paths.interfaces_of_host(host).len() as u16 * lab.hosts[usize::from(host)].iscsi.sessions,
        false => 0,
    }
}

/// Returns the paths of IP if hosts of the lab can reach an iSCSI target.
pub fn ip_paths(lab: &Lab) -> Option<IpPaths<'_>> {
    let has_ip = !lab.live.iscsi.is_empty() && (!lab.ethernet_links.is_empty() || lab.infiniband.has_ipoib());
    has_ip.then(|| IpPaths::of(lab))
}

/// Returns the address of a portal. A simulated portal without an address in the lab has one that
/// is reserved for documentation.
fn address(target: &config::Iscsi, portal: u16) -> String {
    target.portals.get(usize::from(portal)).map_or_else(|| format!("192.0.2.{portal}:3260"), ToString::to_string)
}

fn session(lab: &Lab, (host, hba): (u16, u16), storage: u16, way: &IpWay) -> Option<SessionPlan> {
    let config = &lab.hosts[usize::from(host)];
    let target = lab.live.iscsi.get(&storage)?;
    let tag = config.iscsi.tag().map(|(priority, vlan)| (priority, lab.vlan_numbers().number(vlan)));
    let &IpWay { ends, portal, router, mtu } = way;
    Some(SessionPlan {
        initiator: Machine::Host(host),
        host,
        hba,
        storage,
        port: lab.storage[usize::from(storage)].ports.len() as u16 + portal,
        interfaces: ends,
        via: router.map(|(_, via)| via),
        tag,
        // A smaller part of the way limits the segments of both ends (RFC 1191).
        tcp: [&config.iscsi.tcp, &target.tcp].map(|tcp| Arc::new(tcp_config(tcp, mtu))),
        login: LoginConfig {
            initiator: config.iscsi.name.clone(),
            target: Some(target.name.clone()),
            // One session for each initiator port and portal (RFC 7143, section 10.1.1).
            isid: [0x80, 0, 0, (hba >> 8) as u8, hba as u8, portal as u8],
            offers: config.iscsi.offers,
            own: None,
            target_proof: None,
            challenge: [0; 16],
            timeout: LOGIN_TIME,
        },
        timeouts: SessionConfig {
            command_timeout: config.command_timeout.to_span(),
            abort_timeout: config.recovery.abort_timeout.to_span(),
            ping: PING,
        },
        depth: config.iscsi.queue_depth.into(),
        address: address(target, portal),
        reconnect: RECONNECT,
        front: None,
    })
}

/// Returns the sessions with which virtualization switches forward PDUs: one for each session of a
/// host and back-end target.
fn links(lab: &Lab, paths: &IscsiPaths<'_>, hosts: &[SessionPlan]) -> Vec<SessionPlan> {
    let mut links = Vec::new();
    let sessions = volumes::sessions(lab);
    for (number, host) in (0..).zip(hosts) {
        let forwards = lab.live.iscsi.get(&host.storage).is_some_and(|own| own.forward);
        let backs = sessions.iter().copied().filter(|back| forwards && back.switch == host.storage);
        for (at, back) in (0..).zip(backs) {
            let Some(plan) = back_session(lab, paths, back) else { continue };
            let (units, elsewhere) = volumes::units_of(lab, back);
            let [high, low] = (number as u16).to_be_bytes();
            links.push(SessionPlan {
                login: LoginConfig { isid: [0x80, 0, 1, high, low, at], ..plan.login },
                reconnect: LINK_RECONNECT,
                front: Some(Front { session: number, back: at, units, elsewhere }),
                ..plan
            });
        }
    }
    links
}

/// Returns the session of a virtualization switch with a back-end target.
fn back_session(lab: &Lab, paths: &IscsiPaths<'_>, back: BackSession) -> Option<SessionPlan> {
    let target = lab.live.iscsi.get(&back.storage)?;
    let names =
        |back_end: &&config::BackEnd| matches!(&back_end.target, BackEndTarget::Iscsi(own) if own.name == target.name);
    let BackEndTarget::Iscsi(own) = &lab.live.back_ends.iter().find(names)?.target else { return None };
    let (interfaces, portal) = paths.ends_of_back_end((back.switch, back.storage, back.portal))?;
    let [interface, peer] = interfaces;
    let mtu = |interface: u16| lab.ethernet_links[paths.interfaces[usize::from(interface)].link].mtu;
    let tcp = lab.live.iscsi.get(&back.switch).map(|own| own.tcp).unwrap_or_default();
    Some(SessionPlan {
        initiator: Machine::Storage(back.switch),
        host: u16::MAX,
        hba: 0,
        storage: back.storage,
        port: lab.storage[usize::from(back.storage)].ports.len() as u16 + portal,
        interfaces,
        via: None,
        tag: None,
        tcp: [Arc::new(tcp_config(&tcp, mtu(interface))), Arc::new(tcp_config(&target.tcp, mtu(peer)))],
        login: LoginConfig {
            initiator: own.initiator.clone(),
            target: Some(target.name.clone()),
            isid: [0x80, 0, 0, 0xff, back.switch as u8, portal as u8],
            offers: Offers { header_digest: own.header_digest, data_digest: own.data_digest, ..Offers::default() },
            own: None,
            target_proof: None,
            challenge: [0; 16],
            timeout: LOGIN_TIME,
        },
        timeouts: SessionConfig { ping: PING, ..SessionConfig::default() },
        depth: u32::from(target.queue_depth),
        address: address(target, portal),
        reconnect: RECONNECT,
        front: None,
    })
}

fn target(lab: &Lab, storage: u16, portals: u16) -> Option<TargetPlan> {
    let config = lab.live.iscsi.get(&storage)?;
    let target = Target {
        alias: config.alias.clone(),
        portals: (0..portals).map(|portal| Portal { address: address(config, portal), group: 1 }).collect(),
        access: match config.initiators.is_empty() {
            true => Access::Everybody,
            false => Access::Listed(config.initiators.iter().cloned().collect()),
        },
        offers: config.offers(),
        depth: config.queue_depth,
        ..Target::new(&config.name)
    };
    Some(TargetPlan {
        node: Arc::new(Node { targets: vec![target], ..Node::default() }),
        fc_ports: lab.storage[usize::from(storage)].ports.len() as u16,
        portals,
        limits: Limits { recalls: is_gateway(lab, storage), streams: streams(lab, storage), ..Limits::default() },
        frame_bytes: lab
            .live
            .gateways
            .get(&storage)
            .filter(|gateway| gateway.grain == ForwardingGrain::Frame && streams(lab, storage))
            .map(|gateway| frame_bytes(lab, gateway).max(1)),
    })
}

/// Returns whether a gateway passes write data on before their command is complete. Sessions with
/// back ends of iSCSI take whole commands.
fn streams(lab: &Lab, storage: u16) -> bool {
    let Some(gateway) = lab.live.gateways.get(&storage) else { return false };
    let is_fabric = |back_end: &config::BackEnd| matches!(back_end.target, BackEndTarget::Fcp(_));
    gateway.grain != ForwardingGrain::Command && (gateway.through.is_some() || lab.live.back_ends.iter().all(is_fabric))
}

/// The parts of the world that sessions use.
pub(super) struct Parts<'a> {
    pub hosts: &'a mut Hosts,
    pub storage: &'a mut Storage,
    pub switches: Option<&'a mut Switches>,
}

impl Parts<'_> {
    /// Returns the adapters of a storage system, if they take time.
    pub(super) fn adapters(&mut self, storage: u16) -> Option<&mut Adapters> {
        self.storage.systems[usize::from(storage)].adapters.as_deref_mut()
    }
}

impl Around for Parts<'_> {
    fn device(&mut self, storage: u16) -> &mut Device {
        &mut self.storage.systems[usize::from(storage)].device
    }

    fn submit(&mut self, net: &mut Net, storage: u16, owner: u16, io: &Io) -> Option<IoStatus> {
        let system = &mut self.storage.systems[usize::from(storage)];
        if let Some(fences) = &self.storage.fences
            && let Some(refused) = fences.refusal(&system.device, storage, io)
        {
            return Some(refused);
        }
        let refused = system.controller.submit(net.now(), owner, io);
        if refused.is_none()
            && let Some(fences) = &mut self.storage.fences
        {
            fences.accepted(&system.device, storage, owner, io);
        }
        self.storage.arm_controller(net, storage);
        if refused.is_none()
            && let Some(switches) = &mut self.switches
        {
            switches.arrive(storage, owner, io);
        }
        refused.map(|ended| ended.status)
    }

    fn cancel(&mut self, net: &mut Net, storage: u16, owner: u16, tag: IoTag) -> bool {
        if let Some(fences) = &mut self.storage.fences {
            fences.cancel(storage, owner, tag);
        }
        let cancelled = self.storage.systems[usize::from(storage)].controller.cancel(net.now(), owner, tag);
        self.storage.arm_controller(net, storage);
        if cancelled && let Some(switches) = &mut self.switches {
            switches.cancel(storage, owner, tag);
        }
        cancelled
    }

    fn recall(&mut self, net: &mut Net, storage: u16, owner: u16, tag: IoTag) {
        if let Some(switches) = &mut self.switches {
            switches.recall(net, storage, owner, tag);
        }
    }

    fn session_began(&mut self, net: &mut Net, storage: u16, host: u16, nexus: NexusId) {
        let device = &self.storage.systems[usize::from(storage)].device;
        if let Some(switches) = &mut self.switches
            && let Some(initiator) = device.initiator(nexus)
        {
            switches.session_began(net, (storage, host), (nexus, initiator));
        }
    }

    fn session_ended(&mut self, net: &mut Net, storage: u16, host: u16, nexus: NexusId) {
        if let Some(switches) = &mut self.switches {
            let initiator = self.storage.systems[usize::from(storage)].device.initiator(nexus).cloned();
            switches.session_ended(net, (storage, host), initiator);
        }
    }

    fn admits(&mut self, net: &mut Net, storage: u16, host: u16) -> bool {
        self.switches.as_mut().is_none_or(|switches| switches.admits(net, storage, host))
    }

    fn handle(&mut self, host: u16, now_ps: u64, interface: u16, storage: u16, bytes: u64) -> u64 {
        handle_pdu(self.hosts.node_mut(host), now_ps, (interface, storage), bytes)
    }

    fn shared(&mut self, storage: u16) -> Option<Shared<'_>> {
        let (volumes, disks) = self.switches.as_mut()?.volumes(storage)?;
        Some(Shared { device: &mut self.storage.systems[usize::from(storage)].device, volumes, disks })
    }

    fn forwarded(&mut self, net: &mut Net, storage: u16, pdus: u64, bytes: u64) {
        if let Some(switches) = &mut self.switches {
            switches.forwarded(net, storage, pdus, bytes);
        }
    }

    fn arrived(&mut self, net: &mut Net, storage: u16, owner: u16, tag: IoTag, bytes: u32) {
        if let Some(switches) = &mut self.switches {
            switches.data_arrived(net, storage, owner, tag, bytes);
        }
    }

    fn notify(&mut self, net: &mut Net, storage: u16, port: u16, notice: Notice) {
        match self.storage.systems[usize::from(storage)].nports.get(usize::from(port)).copied() {
            Some(nport) => self.storage.handle(net, nport, Input::Notice(notice)),
            None => notify_session(self.storage, net, storage, port, notice),
        }
    }

    fn work(&mut self, owner: Machine, now_ps: u64, interface: u16, load: Load) -> u64 {
        match owner {
            Machine::Host(host) => charge_tcp(self.hosts.node_mut(host), now_ps, interface, load),
            Machine::Storage(storage) => {
                let moved_ps = match self.adapters(storage) {
                    Some(adapters) => adapters.transfer(now_ps, load.adapter, load.direction, load.bytes),
                    None => now_ps,
                };
                match &mut self.switches {
                    Some(switches) if load.direction == Direction::Send => switches.work(storage, now_ps).max(moved_ps),
                    _ => moved_ps,
                }
            }
        }
    }

    fn arrive(&mut self, storage: u16, interface: Interface, now_ps: u64) -> Option<Arrival> {
        self.adapters(storage)?.arrive(now_ps, interface)
    }

    fn time_out(&mut self, storage: u16, interface: Interface, now_ps: u64) -> Option<RaisedInterrupt> {
        self.adapters(storage)?.time_out(now_ps, interface)
    }
}

/// Calls the sessions of a world, if it has any, and reports what follows to its hosts.
fn with(world: &mut World, call: impl FnOnce(&mut Iscsi, &mut Net, &mut Parts<'_>)) {
    let World { iscsi, switches, net, hosts, storage, .. } = world;
    let (Some(iscsi), Some(switches)) = (iscsi, switches) else { return };
    call(iscsi, net, &mut Parts { hosts, storage, switches: Some(switches) });
    loop {
        let World { iscsi, switches, net, hosts, storage, .. } = world;
        let (Some(iscsi), Some(switches)) = (iscsi, switches) else { return };
        if let Some(event) = iscsi.poll_event() {
            let (Event::Up(session) | Event::Down(session) | Event::Done { session, .. }) = event;
            if switches.owns(session) {
                switches.event(net, event);
            } else {
                let (hosts, mut env) = world.split_hosts();
                tcp_event(hosts, &mut env, event);
            }
        } else if let Some((session, order)) = switches.orders.pop_front() {
            iscsi.order(net, &mut Parts { hosts, storage, switches: Some(switches) }, session, order);
        } else if let Some((system, owner, tag, status)) = switches.ended.pop_front() {
            if owner & CHANNEL == CHANNEL {
                super::srp::relayed(world, (system, owner), tag, status);
                continue;
            }
            iscsi.io_done(net, &mut Parts { hosts, storage, switches: Some(switches) }, system, owner, tag, status);
        } else if let Some((system, owner, tag, bytes)) = switches.passed.pop_front() {
            if owner & CHANNEL == CHANNEL {
                super::srp::passed(world, (system, owner), (tag, bytes));
                continue;
            }
            let parts = &mut Parts { hosts, storage, switches: Some(switches) };
            iscsi.io_data(net, parts, system, owner, (tag, bytes));
        } else if let Some(report) = hosts.relay.poll() {
            switches.relayed(net, report);
        } else if let Some(order) = switches.gateway_orders.pop_front() {
            volumes::carry_out(world, order);
        } else if let Some(order) = switches.relay_orders.pop_front() {
            let (hosts, mut env) = world.split_hosts();
            relay::order(hosts, &mut env, order);
        } else {
            return;
        }
    }
}

/// Starts the logins.
#[inline(never)]
pub(super) fn start(world: &mut World) {
    with(world, |iscsi, net, _| iscsi.start(net));
}

/// Handles a frame at an Ethernet interface.
#[inline(never)]
pub(super) fn packet(world: &mut World, packet: &Packet) {
    with(world, |iscsi, net, parts| iscsi.packet(net, parts, packet));
}

/// Handles a packet of IPoIB at an InfiniBand interface.
#[inline(never)]
pub(super) fn infiniband_packet(world: &mut World, packet: &crate::net::infiniband::Packet) {
    with(world, |iscsi, net, parts| iscsi.infiniband_packet(net, parts, packet));
}

/// Handles a timer of the sessions.
#[inline(never)]
pub(super) fn timer(world: &mut World, timer: u32) {
    with(world, |iscsi, net, parts| {
        while let Some((storage, ended)) = parts.storage.tcp.ended.pop_front() {
            let peer = iscsi.peer(storage, ended.nport);
            if !parts.switches.as_mut().is_some_and(|switches| switches.begin(net, storage, &ended, peer)) {
                iscsi.io_done(net, parts, storage, ended.nport, ended.tag, ended.status);
            }
        }
        while let Some((storage, port, notice)) = parts.storage.tcp.notices.pop_front() {
            iscsi.notify(net, parts, storage, port, &notice);
        }
        while let Some((session, order)) = parts.hosts.tcp.pop() {
            iscsi.order(net, parts, session, order);
        }
        iscsi.timer_expired(net, parts, timer);
        if let Some(switches) = &mut parts.switches {
            switches.timer_expired(net);
        }
    });
}

/// Ends the sessions of a host with a storage system; `None`: those of all hosts.
pub(super) fn end_sessions(world: &mut World, storage: u16, host: Option<u16>) {
    with(world, |iscsi, net, parts| iscsi.end_sessions(net, parts, storage, host));
}

/// Ends the connections of a storage system that has lost its power.
pub(super) fn power_off(world: &mut World, storage: u16) {
    with(world, |iscsi, net, parts| iscsi.power_off(net, parts, storage));
}

/// Returns whether a session has neither logged in nor failed to.
pub(super) fn is_logging_in(world: &World) -> bool {
    world.iscsi.as_ref().is_some_and(|iscsi| iscsi.is_logging_in())
}
