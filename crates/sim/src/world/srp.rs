//! SRP of a lab: its channels and targets, and their place between hosts and storage.

use super::World;
use super::host::{TcpPort, charge_completion, tcp_event};
use super::iscsi::{Parts, TcpPlan};
use super::volumes::frame_bytes;
use crate::host::Direction;
use crate::infiniband::OF_IPOIB;
use crate::iscsi::{Event, Peer};
use crate::net::Net;
use crate::net::infiniband::Packet;
use crate::srp::{Around, ChannelPlan, Srp, SrpPlan, TargetPlan};
use crate::tcp::subnet_mtu;
use sanloom_fc::config::{self, InfinibandNode, Subnet};
use sanloom_fc::san::{Lab, SrpPaths, srp_port};
use sanloom_scsi::scsi::{IoStatus, IoTag};
use sanloom_scsi::srp::target;
use sanloom_scsi::time::Span;
use sanloom_transport::infiniband::partition::{Membership, PKey};
use sanloom_transport::infiniband::rc;
use sanloom_wire::srp::{DIRECT, INDIRECT, LoginReq};

/// Longest information units to the target and to the initiator (12 descriptors in a CMD of the
/// Linux initiator; RSP of the Linux target).
const UNIT_BYTES: [u32; 2] = [260, 256];
/// Packets in flight without acknowledgement: adapters have no limit but that of sequence numbers.
const WINDOW: u32 = 1 << 22;
/// Packets of which one asks for an acknowledgement, besides the last of each message.
const ACK_EVERY: u32 = 64;
/// READs outstanding (responder resources of channel adapters).
const READS: u32 = 16;
/// Longest RDMA of a target, the largest unit that a gateway collects by PDU.
const RDMA_BYTES: u32 = 65_536;
/// Time for a login, as with iSCSI.
const LOGIN_TIME: Span = Span::from_secs(15);
/// Time from the loss of a connection to the next one.
const RECONNECT: Span = Span::from_secs(2);

/// Channels of a lab, and the numbers of ports that they add to hosts and storage systems.
#[derive(Default)]
pub(super) struct SrpPorts {
    pub srp: SrpPlan,
    /// Initiator ports, indexed by host.
    pub initiators: Vec<u16>,
    /// Target ports, indexed by storage system.
    pub targets: Vec<u16>,
}

impl SrpPorts {
    /// Returns the channels of a lab, whose ports follow those of iSCSI.
    pub fn new(lab: &Lab, tcp: &TcpPlan) -> SrpPorts {
        let mut plan = SrpPorts {
            srp: SrpPlan::default(),
            initiators: vec![0; lab.hosts.len()],
            targets: (0..lab.storage.len() as u16).map(|storage| ports(lab, storage)).collect(),
        };
        if lab.infiniband.links.is_empty() || lab.infiniband.targets.is_empty() {
            return plan;
        }
        let paths = lab.srp_paths();
        for (host, config) in (0..).zip(&lab.hosts) {
            let own = paths.interfaces_of(InfinibandNode::Host(host));
            let used = lab.infiniband.targets.keys().filter(|storage| super::iscsi::uses(lab, host, **storage));
            for &storage in used {
                for (interface, far) in paths.linked_pairs(host, storage) {
                    let at = own.iter().position(|other| *other == interface).unwrap_or(0) as u16;
                    let hba = config.hbas.len() as u16 + tcp.initiators[usize::from(host)] + at;
                    let first_port = first_port(lab, tcp, storage);
                    let port = first_port + far;
                    plan.srp.channels.extend(channel(lab, &paths, (host, hba, interface), (storage, port, far)));
                    plan.initiators[usize::from(host)] = own.len() as u16;
                }
            }
        }
        let target = |storage: u16| {
            let target = lab.infiniband.targets.get(&storage)?;
            let gateway = lab.live.gateways.get(&storage).filter(|gateway| gateway.through.is_some());
            let grain = gateway.and_then(|gateway| gateway.grain.bytes(RDMA_BYTES, frame_bytes(lab, gateway)));
            let streams = grain.is_some();
            let config = target::Config { request_limit: target.request_limit, unit_bytes: UNIT_BYTES, streams };
            let ports = plan.targets[usize::from(storage)];
            (ports > 0).then(|| TargetPlan { config, first_port: first_port(lab, tcp, storage), ports, grain })
        };
        plan.srp.targets = (0..lab.storage.len() as u16).map(target).collect();
        plan
    }

    /// Returns whether the lab has channels.
    pub fn has_channels(&self) -> bool {
        !self.srp.channels.is_empty()
    }

    /// Returns the ends of all channels in the order of their numbers.
    pub fn ports(&self) -> impl Iterator<Item = TcpPort> {
        self.srp.channels.iter().map(|plan| {
            let &ChannelPlan { host, hba, storage, port, .. } = plan;
            TcpPort { host, hba, storage, port }
        })
    }
}

/// Returns the number of target ports of a storage system that hosts can use.
pub fn ports(lab: &Lab, storage: u16) -> u16 {
    match lab.infiniband.targets.contains_key(&storage) {
        true => lab.srp_paths().target_ports(storage).len() as u16,
        false => 0,
    }
}

fn first_port(lab: &Lab, tcp: &TcpPlan, storage: u16) -> u16 {
    lab.storage[usize::from(storage)].ports.len() as u16 + tcp.portals[usize::from(storage)]
}

fn channel(
    lab: &Lab,
    paths: &SrpPaths<'_>,
    (host, hba, interface): (u16, u16, u16),
    (storage, port, far): (u16, u16, u16),
) -> Option<ChannelPlan> {
    let config = &lab.hosts[usize::from(host)];
    let peer = *paths.target_ports(storage).get(usize::from(far))?;
    Some(ChannelPlan {
        host,
        hba,
        storage,
        port,
        interfaces: [interface, peer],
        keys: keys(lab, host, storage),
        level: config.srp.level,
        connection: connection(&lab.infiniband.subnet),
        login: LoginReq {
            request_bytes: UNIT_BYTES[0],
            formats: DIRECT | INDIRECT,
            initiator: srp_port(interface),
            target: srp_port(peer),
            ..LoginReq::default()
        },
        depth: config.srp.queue_depth.into(),
        command_timeout: config.command_timeout.to_span(),
        abort_timeout: config.recovery.abort_timeout.to_span(),
        login_timeout: LOGIN_TIME,
        reconnect: RECONNECT,
    })
}

/// Returns the keys of a channel: that of the host, and the same of the target if it is in the
/// partition of the host, else its first one.
fn keys(lab: &Lab, host: u16, storage: u16) -> [PKey; 2] {
    let initiator = &lab.hosts[usize::from(host)].srp;
    let target = lab.infiniband.targets.get(&storage);
    let partitions = target.map_or(&[][..], |target| &target.partitions);
    let own = initiator.partition;
    let far = partitions.iter().find(|number| **number == own).or(partitions.first()).copied();
    let of_target = target.map(|target| target.membership).unwrap_or_default();
    [(own, initiator.membership), (far.unwrap_or(0), of_target)].map(|(number, membership)| match membership {
        config::Membership::Full => PKey::new(number, Membership::Full),
        config::Membership::Limited => PKey::new(number, Membership::Limited),
    })
}

pub(super) fn connection(subnet: &Subnet) -> rc::Config {
    rc::Config {
        mtu: subnet_mtu(subnet.mtu),
        first_psn: 0,
        timeout: subnet.ack_timeout,
        retries: subnet.retries,
        window: WINDOW,
        ack_every: ACK_EVERY,
        reads: READS,
        ..rc::Config::SOFT_ROCE
    }
}

impl Around for Parts<'_> {
    fn complete(&mut self, host: u16, hba: u16, (direction, bytes): (Direction, u32), now_ps: u64) -> u64 {
        let node = self.hosts.node_mut(host);
        let moved_ps = node.transfer(now_ps, hba.saturating_sub(node.first_srp), direction, bytes.into());
        // The processor is booked now, because it does not keep a core free for a later time.
        charge_completion(node, now_ps, hba).max(moved_ps)
    }

    fn transfer(&mut self, storage: u16, port: u16, (direction, bytes): (Direction, u32), now_ps: u64) -> u64 {
        match self.adapters(storage) {
            Some(adapters) => adapters.transfer(now_ps, adapters.channel_adapter(port), direction, bytes.into()),
            None => now_ps,
        }
    }
}

/// Calls the channels of a world, if it has any, and reports what follows to its hosts.
fn with(world: &mut World, call: impl FnOnce(&mut Srp, &mut Net, &mut Parts<'_>)) {
    let World { srp: Some(srp), switches, net, hosts, storage, .. } = world else { return };
    call(srp, net, &mut Parts { hosts, storage, switches: switches.as_deref_mut() });
    while let Some(event) = world.srp.as_mut().and_then(|srp| srp.poll_event()) {
        let number = |channel| world.hosts.tcp.session_of(channel);
        let event = match event {
            Event::Up(channel) => Event::Up(number(channel)),
            Event::Down(channel) => Event::Down(number(channel)),
            Event::Done { session, tag, outcome } => Event::Done { session: number(session), tag, outcome },
        };
        let (hosts, mut env) = world.split_hosts();
        tcp_event(hosts, &mut env, event);
    }
}

/// Starts the logins.
#[inline(never)]
pub(super) fn start(world: &mut World) {
    with(world, |srp, net, _| srp.start(net));
}

/// Handles a packet at an InfiniBand interface.
#[inline(never)]
pub(super) fn packet(world: &mut World, packet: &Packet) {
    if packet.pair() & OF_IPOIB != 0 {
        return super::iscsi::infiniband_packet(world, packet);
    }
    with(world, |srp, net, parts| srp.packet(net, parts, packet));
}

/// Ends the connections of a storage system without power.
#[inline(never)]
pub(super) fn power_off(world: &mut World, storage: u16) {
    with(world, |srp, net, parts| srp.power_off(net, parts, storage));
}

/// Ends the channels of a host with a storage system; `None`: those of all hosts.
#[inline(never)]
pub(super) fn end_channels(world: &mut World, storage: u16, host: Option<u16>) {
    with(world, |srp, net, parts| srp.end_channels(net, parts, storage, host));
}

/// Handles a timer of the channels.
#[inline(never)]
pub(super) fn timer(world: &mut World, timer: u32) {
    with(world, |srp, net, parts| {
        while let Some((storage, ended)) = parts.storage.srp.ended.pop_front() {
            let host = srp.host_of((storage, ended.nport));
            let peer = host.map(|host| Peer { host, segment_bytes: RDMA_BYTES });
            if let Some(switches) = &mut parts.switches
                && switches.begin(net, storage, &ended, peer)
            {
                // Results leave with the sessions of iSCSI.
                switches.wake(net);
                continue;
            }
            srp.io_done(net, parts, (storage, ended.nport), ended.tag, ended.status);
        }
        while let Some((storage, port, notice)) = parts.storage.srp.notices.pop_front() {
            srp.notify(net, parts, storage, port, &notice);
        }
        while let Some((channel, order)) = parts.hosts.tcp.pop_channel() {
            srp.order(net, parts, channel, order);
        }
        srp.timer_expired(net, parts, timer);
    });
}

/// Reports the end of a command of a gateway to its channel.
#[inline(never)]
pub(super) fn relayed(world: &mut World, at: (u16, u16), tag: IoTag, status: IoStatus) {
    with(world, |srp, net, parts| srp.io_done(net, parts, at, tag, status));
}

/// Passes on data of a read of a gateway whose command continues.
#[inline(never)]
pub(super) fn passed(world: &mut World, at: (u16, u16), data: (IoTag, u32)) {
    with(world, |srp, net, parts| srp.io_data(net, parts, at, data));
}

/// Returns whether a channel has neither logged in nor failed to.
pub(super) fn is_logging_in(world: &World) -> bool {
    world.srp.as_ref().is_some_and(|srp| srp.is_logging_in())
}
