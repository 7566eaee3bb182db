//! Commands of gateways at the initiators of their hosts: [`Relay`].
//!
//! A gateway is a storage system for its hosts, and a host of the lab in the Fibre Channel fabric.
//! The commands enter the [`FcpInitiator`] of an N_Port of that host; queues, path selection and
//! the frame window of the host are for its own workloads. A port has at most the queue depth of
//! its host in flight; further commands wait here.
//!
//! Where the gateway passes data on before a command is complete, write data leave frame by frame
//! as far as they have arrived from the host ([`RelayOrder::Arrived`]), and read data are reported
//! in steps of the grain ([`Relayed::Data`]).

use super::Env;
use super::host::{Hosts, transmit_frame};
use super::nports::Owner;
use crate::net::{FrameRef, Net};
use sanloom_fc::config::ForwardingGrain;
use sanloom_fc::exchange::SeqTx;
use sanloom_fc::fcp::initiator::{Command, FcpInitiator, Input, Outcome};
use sanloom_fc::san::Lab;
use sanloom_scsi::ordered::OrderedMap;
use sanloom_scsi::scsi::DataDirection;
use sanloom_wire::{FcId, Wwpn};
use std::collections::{BTreeMap, BTreeSet, VecDeque};

/// Tag bits of a command of a gateway. Hosts use no tag with both of them.
pub(super) const RELAYED: u64 = 1 << 63 | 1 << 60;

/// Returns whether a tag is that of a command of a gateway.
#[inline]
pub(super) fn is_relayed(tag: u64) -> bool {
    tag & RELAYED == RELAYED
}

/// A command for a target port.
#[derive(Clone, Copy, Debug)]
pub(super) struct RelayCommand {
    /// Number of the command, below 2^60.
    pub number: u64,
    /// N_Port with which it is sent.
    pub nport: u16,
    pub target: Wwpn,
    pub lun: [u8; 8],
    pub cdb: [u8; 16],
    pub direction: DataDirection,
    pub bytes: u32,
    /// Read data that are reported together, in bytes; `None`: none before the end.
    pub grain: Option<u32>,
    /// Write data that have arrived, in bytes.
    pub arrived: u32,
}

/// An order of a gateway.
#[derive(Clone, Copy, Debug)]
pub(super) enum RelayOrder {
    Submit(RelayCommand),
    /// Write data of a command up to this offset have arrived.
    Arrived {
        nport: u16,
        number: u64,
        bytes: u32,
    },
    /// End a command early.
    Abort {
        nport: u16,
        number: u64,
    },
}

/// A report to a gateway.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Relayed {
    /// The first `bytes` bytes of the data of a read have arrived.
    Data {
        number: u64,
        bytes: u32,
    },
    Done {
        number: u64,
        outcome: Outcome,
    },
    /// A target port can be reached again.
    Up {
        nport: u16,
        target: Wwpn,
    },
    /// A target port cannot be reached any more. Its commands end afterwards.
    Down {
        nport: u16,
        target: Wwpn,
    },
}

/// A command in flight.
struct InFlight {
    grain: Option<u32>,
    /// Read data that were reported, in bytes.
    reported: u32,
    bytes: u32,
    /// Write data that have arrived, and those that were passed to the frame path, in bytes.
    arrived: u32,
    sent: u32,
    /// Sequences that wait for their data.
    held: VecDeque<SeqTx>,
}

/// An N_Port of a gateway.
struct Port {
    remotes: BTreeMap<Wwpn, (FcId, u16)>,
    commands: OrderedMap<u64, InFlight>,
    waiting: VecDeque<RelayCommand>,
    /// Empty lists of sequences, whose memory is used again.
    spare: Vec<VecDeque<SeqTx>>,
    limit: usize,
}

/// N_Ports of gateways.
#[derive(Default)]
pub struct Relay {
    ports: BTreeMap<u16, Port>,
    reports: VecDeque<Relayed>,
    /// Timer of the network that is set to the time of a report.
    timer: u32,
    /// True if frames of an exchange arrive in the order in which they were sent. Otherwise no
    /// data are reported before the end of a command.
    in_order: bool,
    /// True if a gateway passes data on before a command is complete.
    streams: bool,
}

impl Relay {
    /// Returns the N_Ports of the gateways of a lab, given by the owners of all N_Ports.
    pub(super) fn new(lab: &Lab, owners: &[Owner], in_order: bool, timer: u32) -> Relay {
        let mut ports = BTreeMap::new();
        let gateways = || lab.live.gateways.values();
        let through = gateways().filter_map(|gateway| gateway.through.as_ref()).flat_map(|ports| &ports.initiators);
        // Hosts of a metadata server reach its back ends themselves.
        let of_back_ends = sanloom_fc::san::gateways(lab).next().map(|_| lab.live.host_ports()).unwrap_or_default();
        let names: BTreeSet<Wwpn> = of_back_ends.into_iter().chain(through.copied()).collect();
        let hosts: BTreeSet<u16> = gateways().flat_map(|gateway| &gateway.hosts).map(|own| own.port).collect();
        for (nport, owner) in (0..).zip(owners) {
            let Owner::Host { host, hba } = *owner else { continue };
            let config = &lab.hosts[usize::from(host)];
            if names.contains(&config.hbas[usize::from(hba)].wwpn) || hosts.contains(&host) {
                let limit = config.queue.max_outstanding.max(1) as usize;
                let (remotes, commands) = (BTreeMap::new(), OrderedMap::new());
                let (waiting, spare) = (VecDeque::new(), Vec::new());
                ports.insert(nport, Port { remotes, commands, waiting, spare, limit });
            }
        }
        let streams = streams(lab);
        Relay { ports, reports: VecDeque::new(), timer, in_order, streams }
    }

    /// Returns whether an N_Port is that of a gateway.
    #[inline]
    pub(super) fn owns(&self, nport: u16) -> bool {
        !self.ports.is_empty() && self.ports.contains_key(&nport)
    }

    /// Returns the next report.
    pub(super) fn poll(&mut self) -> Option<Relayed> {
        self.reports.pop_front()
    }

    fn report(&mut self, net: &mut Net, report: Relayed) {
        self.reports.push_back(report);
        net.set_timer_earlier(self.timer, net.now());
    }

    fn command(&mut self, nport: u16, number: u64) -> Option<&mut InFlight> {
        self.ports.get_mut(&nport)?.commands.get_mut(&number)
    }
}

/// Returns whether a gateway of a lab passes data on before a command is complete.
pub(super) fn streams(lab: &Lab) -> bool {
    lab.live.gateways.values().any(|gateway| gateway.grain != ForwardingGrain::Command)
}

/// Carries out an order of a gateway.
pub(super) fn order(hosts: &mut Hosts, env: &mut Env<'_>, order: RelayOrder) {
    match order {
        RelayOrder::Submit(command) => submit(hosts, env, command),
        RelayOrder::Arrived { nport, number, bytes } => {
            if let Some(waiting) = hosts
                .relay
                .ports
                .get_mut(&nport)
                .and_then(|port| port.waiting.iter_mut().find(|command| command.number == number))
            {
                waiting.arrived = bytes;
            }
            if let Some(command) = hosts.relay.command(nport, number) {
                command.arrived = command.arrived.max(bytes);
                pump(hosts, env, nport, number);
            }
        }
        RelayOrder::Abort { nport, number } => {
            let Some(port) = hosts.relay.ports.get_mut(&nport) else { return };
            let before = port.waiting.len();
            port.waiting.retain(|command| command.number != number);
            if port.waiting.len() < before {
                let outcome = Outcome::PortGone;
                return hosts.relay.report(env.net, Relayed::Done { number, outcome });
            }
            hosts.handle(env, nport, Input::Abort { tag: RELAYED | number });
        }
    }
}

fn submit(hosts: &mut Hosts, env: &mut Env<'_>, command: RelayCommand) {
    let RelayCommand { number, nport, target, lun, cdb, direction, bytes, grain, arrived } = command;
    let port = hosts.relay.ports.get_mut(&nport);
    let remote = port.as_ref().and_then(|port| port.remotes.get(&target).copied());
    let (Some(port), Some((d_id, frame_size_bytes))) = (port, remote) else {
        return hosts.relay.report(env.net, Relayed::Done { number, outcome: Outcome::PortGone });
    };
    if port.commands.len() >= port.limit {
        return port.waiting.push_back(command);
    }
    let (reported, sent, held) = (0, 0, port.spare.pop().unwrap_or_default());
    port.commands.insert(number, InFlight { grain, reported, bytes, arrived, sent, held });
    let tag = RELAYED | number;
    let order = Command { tag, d_id, lun, cdb, data_len: bytes, direction, frame_size_bytes };
    hosts.handle(env, nport, Input::Submit(order));
}

/// Takes note of the login with a target port.
#[inline(never)]
pub(super) fn remote_up(hosts: &mut Hosts, env: &mut Env<'_>, nport: u16, target: Wwpn, address: (FcId, u16)) {
    if let Some(port) = hosts.relay.ports.get_mut(&nport) {
        port.remotes.insert(target, address);
        hosts.relay.report(env.net, Relayed::Up { nport, target });
    }
}

/// Takes note of the end of a login with a target port. Its commands end afterwards.
#[inline(never)]
pub(super) fn remote_down(hosts: &mut Hosts, env: &mut Env<'_>, nport: u16, target: Wwpn) {
    let Some(port) = hosts.relay.ports.get_mut(&nport) else { return };
    port.remotes.remove(&target);
    let (lost, kept) = std::mem::take(&mut port.waiting).into_iter().partition(|command| command.target == target);
    port.waiting = kept;
    let lost: VecDeque<RelayCommand> = lost;
    hosts.relay.report(env.net, Relayed::Down { nport, target });
    for RelayCommand { number, .. } in lost {
        hosts.relay.report(env.net, Relayed::Done { number, outcome: Outcome::PortGone });
    }
}

/// Returns the N_Port_ID of a target port to which an N_Port of a gateway is logged in.
pub(super) fn logged_in_to(hosts: &Hosts, nport: u16, target: Wwpn) -> Option<FcId> {
    hosts.relay.ports.get(&nport)?.remotes.get(&target).map(|(port_id, _)| *port_id)
}

/// Reports the end of a command, and sends one that waits.
#[inline(never)]
pub(super) fn done(hosts: &mut Hosts, env: &mut Env<'_>, nport: u16, tag: u64, outcome: Outcome) {
    let number = tag & !RELAYED;
    let Some(port) = hosts.relay.ports.get_mut(&nport) else { return };
    if let Some(InFlight { mut held, .. }) = port.commands.remove(&number) {
        held.clear();
        port.spare.push(held);
    }
    let next = if port.commands.len() < port.limit { port.waiting.pop_front() } else { None };
    hosts.relay.report(env.net, Relayed::Done { number, outcome });
    if let Some(next) = next {
        submit(hosts, env, next);
    }
}

/// Returns whether read data of an N_Port are reported as they arrive.
pub(super) fn is_streaming(hosts: &Hosts, nport: u16) -> bool {
    let relay = &hosts.relay;
    relay.streams && relay.in_order && relay.owns(nport)
}

/// Returns the initiator of an N_Port of a host.
fn initiator(hosts: &mut Hosts, nport: u16) -> Option<&mut FcpInitiator> {
    hosts.initiators.get_mut(usize::from(nport))?.as_mut()
}

/// Reports read data of an exchange, after a frame has arrived.
pub(super) fn data_arrived(hosts: &mut Hosts, net: &mut Net, nport: u16, ox_id: u16) {
    let Some(initiator) = initiator(hosts, nport) else { return };
    let Some(tag) = initiator.tag_of(ox_id).filter(|tag| is_relayed(*tag)) else { return };
    let Some(received) = initiator.data(ox_id).map(|data| data.received_bytes()) else { return };
    let number = tag & !RELAYED;
    let Some(command) = hosts.relay.command(nport, number) else { return };
    let Some(grain) = command.grain else { return };
    let bytes = received / grain * grain;
    if bytes > command.reported && bytes < command.bytes {
        command.reported = bytes;
        hosts.relay.report(net, Relayed::Data { number, bytes });
    }
}

/// Sends a sequence of write data, as far as its data have arrived. Returns the sequence if no
/// gateway holds it back.
#[inline(never)]
pub(super) fn hold(hosts: &mut Hosts, env: &mut Env<'_>, nport: u16, seq: SeqTx) -> Option<SeqTx> {
    let tag = initiator(hosts, nport).and_then(|initiator| initiator.tag_of(seq.ox_id));
    let number = tag.filter(|tag| is_relayed(*tag))? & !RELAYED;
    let command = hosts.relay.command(nport, number)?;
    if command.held.is_empty() && command.arrived >= command.sent + seq.remaining_bytes() {
        command.sent += seq.remaining_bytes();
        return Some(seq);
    }
    command.held.push_back(seq);
    pump(hosts, env, nport, number);
    None
}

/// Sends the frames of held sequences whose data have arrived.
fn pump(hosts: &mut Hosts, env: &mut Env<'_>, nport: u16, number: u64) {
    let plane = env.nports.plane_of(nport);
    let Owner::Host { host, .. } = env.nports.node(nport).owner else { return };
    while let Some(command) = hosts.relay.command(nport, number)
        && let Some(seq) = command.held.front_mut()
    {
        let next = seq.remaining_bytes().min(seq.frame_size_bytes().into());
        if next == 0 {
            command.held.pop_front();
            continue;
        }
        if command.sent + next > command.arrived {
            break;
        }
        command.sent += next;
        if let Some(frame) = seq.next_frame() {
            let frame = FrameRef::data(seq, &frame);
            transmit_frame(hosts, env, host, plane, frame);
        }
    }
    hosts.arm(env, host);
}
