//! Sessions of iSCSI and channels of SRP as paths of hosts. Initiator ports of iSCSI are numbered
//! after the HBAs of their host, and portals after the Fibre Channel ports of their storage system.
//! The interfaces of SRP follow.

use super::hosts::Completion;
use super::paths::{one_path_down, one_path_up};
use super::{HostNode, Hosts, NO_PLANE, iscsi_hba};
use crate::host::{Device, Work};
use crate::iscsi::{Direction, Event, Load, Order};
use crate::net::Net;
use crate::world::Env;
use crate::world::nports::NPorts;
use sanloom_fc::config::{Picos, per_kib};
use sanloom_fc::fcp::initiator::{self, Input, Manage, Outcome};
use sanloom_scsi::iscsi::initiator::Command;
use sanloom_wire::FcId;
use std::collections::{BTreeMap, VecDeque};

/// Both ends of a session.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(in crate::world) struct TcpPort {
    pub host: u16,
    pub hba: u16,
    pub storage: u16,
    pub port: u16,
}

/// Orders of hosts to their sessions.
#[derive(Default)]
pub(in crate::world) struct TcpOrders {
    /// Sessions in the order of their numbers.
    ports: Vec<TcpPort>,
    numbers: BTreeMap<TcpPort, u32>,
    orders: VecDeque<(u32, Order)>,
    /// Timer of the network that is set to the time of an order.
    timer: u32,
    /// Number of the first channel of SRP, which follow the sessions, orders to channels, and their
    /// timer.
    first_channel: u32,
    channel_orders: VecDeque<(u32, Order)>,
    channel_timer: u32,
}

/// Charges the bus and the processor of a host for frames of TCP at an interface. Returns the end
/// of this work in ps. The processor handles the frames of a batch while the bus moves others.
pub(in crate::world) fn charge(node: &mut HostNode, now_ps: u64, interface: u16, load: Load) -> u64 {
    let moved_ps = node.transfer(now_ps, load.adapter, load.direction, load.bytes);
    charge_processor(node, now_ps, interface, load).max(moved_ps)
}

fn charge_processor(node: &mut HostNode, now_ps: u64, interface: u16, load: Load) -> u64 {
    if let Some(end_ps) = iscsi_hba::charge(node, now_ps, interface, load) {
        return end_ps;
    }
    let cost = node.cpu.config().tcp;
    let (units, received, sent) = units_of(node, load);
    let kib_ps = |time: Picos| per_kib(time, load.payload).0;
    let parts = match load.direction {
        Direction::Receive => [
            (Work::Interrupt, if load.interrupts { cost.interrupt.0 } else { 0 }),
            (Work::Segments, units * received.0),
            (Work::Copy, kib_ps(cost.copy_received)),
            (Work::Checksum, kib_ps(cost.checksum)),
        ],
        Direction::Send => [
            (Work::Interrupt, 0),
            (Work::Segments, units * sent.0),
            (Work::Copy, kib_ps(cost.copy_sent)),
            (Work::Checksum, kib_ps(cost.checksum)),
        ],
    };
    if parts.iter().all(|(_, cost_ps)| *cost_ps == 0) {
        return now_ps;
    }
    // Each NIC has one receive queue and one core for it, so frames stay in order.
    match load.direction {
        Direction::Receive => node.cpu.run_bound(now_ps, interface, &parts),
        Direction::Send => node.cpu.run_all(now_ps, interface, &parts),
    }
}

/// Returns the units of work of frames, and the time of each that arrives or leaves. Adapters join
/// no packets of IPoIB.
fn units_of(node: &HostNode, load: Load) -> (u64, Picos, Picos) {
    let config = node.cpu.config();
    let tcp = (config.tcp.per_segment_received, config.tcp.per_segment_sent);
    if !load.is_ipoib {
        return (config.tcp.units(load.segments, load.payload), tcp.0, tcp.1);
    }
    let (received, sent) = config.ipoib.map_or(tcp, |cost| (cost.per_packet_received, cost.per_packet_sent));
    (load.segments.into(), received, sent)
}

/// Charges the processor of a host for the completion of a response of SRP at an adapter. Returns
/// the end of this work in ps.
pub(in crate::world) fn charge_completion(node: &mut HostNode, now_ps: u64, hba: u16) -> u64 {
    match node.cpu.config().srp.per_completion {
        Picos::ZERO => now_ps,
        cost => node.cpu.run_bound(now_ps, hba, &[(Work::Interrupt, cost.0)]),
    }
}

impl TcpOrders {
    /// Returns no orders for these sessions and channels, which have a timer each.
    pub fn new(
        sessions: Vec<TcpPort>,
        timer: u32,
        channels: impl Iterator<Item = TcpPort>,
        channel_timer: u32,
    ) -> TcpOrders {
        let mut ports = sessions;
        let first_channel = ports.len() as u32;
        ports.extend(channels);
        let numbers = ports.iter().copied().zip(0..).collect();
        let (orders, channel_orders) = (VecDeque::new(), VecDeque::new());
        TcpOrders { ports, numbers, orders, timer, first_channel, channel_orders, channel_timer }
    }

    /// Queues an order to a session or channel.
    fn push(&mut self, net: &mut Net, number: u32, order: Order) {
        let timer = match number.checked_sub(self.first_channel) {
            None => {
                self.orders.push_back((number, order));
                self.timer
            }
            Some(channel) => {
                self.channel_orders.push_back((channel, order));
                self.channel_timer
            }
        };
        net.set_timer_earlier(timer, net.now());
    }

    /// Returns the next order to a channel with its number.
    pub fn pop_channel(&mut self) -> Option<(u32, Order)> {
        self.channel_orders.pop_front()
    }

    /// Returns the number of a channel among all sessions.
    pub fn session_of(&self, channel: u32) -> u32 {
        self.first_channel + channel
    }

    /// Returns the next order with the number of its session.
    pub fn pop(&mut self) -> Option<(u32, Order)> {
        self.orders.pop_front()
    }
}

/// Returns the N_Port of the frame path behind an HBA, or [`NO_PLANE`] for a port of iSCSI.
#[inline]
pub(super) fn plane_of(all: &NPorts, nports: &[u16], hba: u16) -> u16 {
    nports.get(usize::from(hba)).map_or(NO_PLANE, |&nport| all.plane_of(nport))
}

/// Submits a command to the initiator or to the session of its path.
#[inline]
pub(super) fn submit(
    hosts: &mut Hosts,
    env: &mut Env<'_>,
    (host, hba): (u16, u16),
    path: (u16, u16),
    command: initiator::Command,
) {
    match hosts.node(host).nports.get(usize::from(hba)).copied() {
        Some(nport) => hosts.handle(env, nport, Input::Submit(command)),
        None => submit_to_session(hosts, env, (host, hba), path, command),
    }
}

#[inline(never)]
fn submit_to_session(
    hosts: &mut Hosts,
    env: &mut Env<'_>,
    (host, hba): (u16, u16),
    path: (u16, u16),
    command: initiator::Command,
) {
    let initiator::Command { tag, lun, cdb, direction, data_len, .. } = command;
    let order = Order::Submit(Command { id: tag, lun, cdb, direction, bytes: data_len });
    if !give(hosts, env, (host, hba), path, order) {
        hosts.completions.push_back(Completion { host, hba, tag, outcome: Outcome::PortGone });
    }
}

/// Sends a task management function on a path.
pub(super) fn manage(hosts: &mut Hosts, env: &mut Env<'_>, (host, hba): (u16, u16), device: Device, input: Input) {
    match (hosts.node(host).nports.get(usize::from(hba)), input) {
        (Some(&nport), input) => hosts.handle(env, nport, input),
        (None, Input::Manage(Manage { tag, lun, .. })) => {
            give(hosts, env, (host, hba), (device.system, device.path), Order::Reset { tag, lun });
        }
        (None, _) => {}
    }
}

/// Gives an order to the session of a path. Returns false if there is none.
#[inline(never)]
fn give(
    hosts: &mut Hosts,
    env: &mut Env<'_>,
    (host, hba): (u16, u16),
    (system, path): (u16, u16),
    order: Order,
) -> bool {
    let entry = &hosts.node(host).paths.systems()[usize::from(system)];
    let key = TcpPort { host, hba, storage: entry.storage, port: path % entry.ports.max(1) };
    let Some(&session) = hosts.tcp.numbers.get(&key) else { return false };
    hosts.tcp.push(env.net, session, order);
    true
}

/// Lets all sessions of an initiator port log in again.
pub(super) fn restart(hosts: &mut Hosts, env: &mut Env<'_>, host: u16, hba: u16) {
    let numbers = (0..).zip(&hosts.tcp.ports).filter(|(_, port)| (port.host, port.hba) == (host, hba));
    let own: Vec<u32> = numbers.map(|(session, _)| session).collect();
    own.into_iter().for_each(|session| hosts.tcp.push(env.net, session, Order::Restart));
}

/// Handles a change of a session.
pub(in crate::world) fn event(hosts: &mut Hosts, env: &mut Env<'_>, event: Event) {
    let (Event::Up(session) | Event::Down(session) | Event::Done { session, .. }) = event;
    let TcpPort { host, hba, storage, port } = hosts.tcp.ports[session as usize];
    match event {
        Event::Done { tag, outcome, .. } => hosts.completions.push_back(Completion { host, hba, tag, outcome }),
        Event::Up(_) => {
            for path in hosts.paths_to(host, hba, Some((storage, port))) {
                one_path_up(hosts, env, (host, hba), path, (FcId::ZERO, 0));
            }
        }
        Event::Down(_) => {
            for path in hosts.paths_to(host, hba, Some((storage, port))) {
                one_path_down(hosts, env, host, path);
            }
        }
    }
}
