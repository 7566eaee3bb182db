//! Sockets and channels of a running lab: [`SrpServer`].

use super::channel::{Channel, Counters, Ends};
use super::login::{self, Refusal, UNIT_BYTES};
use super::pair::{Numbers, Packet, QueuePair};
use super::socket::{self, RoceSocket};
use super::{Context, SOCKETS, TargetPlan};
use crate::poll::Poller;
use crate::ready::Tracked;
use crate::session::socket::random;
use crate::storage::StorageSystem;
use crate::storage::workers::{Done, Owner};
use sanloom_scsi::scsi::{IoTag, Notice};
use sanloom_scsi::srp::target::{self, Input, Target};
use sanloom_scsi::time::{Instant, Span};
use sanloom_transport::infiniband::cm::{self, Passive};
use sanloom_wire::infiniband::cm::ReqPath;
use sanloom_wire::infiniband::mad::{CmMessage, MAD_BYTES, QP1_KEY, RepFields, ReqFields};
use sanloom_wire::infiniband::roce::{Path, RocePacket};
use sanloom_wire::infiniband::{Bth, Extended, opcode};
use sanloom_wire::scsi::transport_id::TransportId;
use sanloom_wire::srp::{Iu, reject};
use std::collections::btree_map::Entry;
use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::net::{Ipv4Addr, SocketAddrV4};

/// Maximum number of channels of an address, open and closing ones.
const MAX_CHANNELS: usize = 512;
/// Maximum number of channels of a host.
const MAX_CHANNELS_OF_HOST: usize = 32;
/// Datagrams that are read from a socket in one step.
const MAX_READS: usize = 512;
/// Longest datagram: an MTU of 4096, headers and padding.
const DATAGRAM_BYTES: usize = 4_096 + 128;
/// Queue pair of the connection manager.
const MANAGER: u32 = 1;
/// Partition of all packets that are no connection's.
const DEFAULT_KEY: u16 = 0xffff;
/// Receives of a channel beyond the request limit, for logouts and responses to requests of the
/// target.
const SPARE_UNITS: u32 = 8;

/// A socket and the connection manager behind it.
#[derive(Debug)]
struct Address {
    socket: RoceSocket,
    manager: Passive,
    /// PSN of the next datagram of the connection manager: 24 bits.
    psn: u32,
}

/// All SRP targets of a running lab.
#[derive(Debug)]
pub struct SrpServer {
    targets: Vec<TargetPlan>,
    addresses: Vec<Address>,
    /// Channels by the number of their queue pair.
    channels: BTreeMap<u32, Channel>,
    next_pair: u32,
    next_number: u64,
    /// GUID of the adapter.
    guid: u64,
    /// Writes at workers of channels that have ended, by the number of the channel.
    left: BTreeMap<u64, (Ends, BTreeSet<IoTag>)>,
    /// Counters of the channels that have ended, by target.
    ended: Vec<Counters>,
    /// Earliest deadline.
    next: Option<Instant>,
    shutting_down: bool,
    input: Vec<u8>,
}

/// Work of a target since the start.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Served<'v> {
    /// Name of the target.
    pub target: &'v str,
    /// Channels that are open.
    pub channels: usize,
    /// Counters of all channels, also of those that have ended.
    pub counters: Counters,
}

impl SrpServer {
    /// Opens the sockets of all portals.
    ///
    /// # Errors
    /// A socket that cannot be opened; the error names its address.
    pub fn listen(targets: Vec<TargetPlan>, guid: u64) -> Result<SrpServer, (SocketAddrV4, io::Error)> {
        let mut addresses: Vec<Address> = Vec::new();
        for portal in targets.iter().flat_map(|target| &target.portals) {
            if addresses.iter().any(|known| known.socket.local.ip() == portal.ip()) {
                continue;
            }
            let opened = RoceSocket::open(*portal.ip()).and_then(|socket| Ok((socket, random::<4>()?)));
            let (socket, first_id) = opened.map_err(|error| (*portal, error))?;
            let manager = Passive::new(cm::Config {
                response_timeout: Span::from_secs(1),
                retries: 15,
                connections: MAX_CHANNELS,
                first_id: u32::from_be_bytes(first_id),
            });
            addresses.push(Address { socket, manager, psn: 0 });
        }
        let next_pair = random::<4>().map_err(|error| (targets[0].portals[0], error))?;
        let ended = vec![Counters::default(); targets.len()];
        Ok(SrpServer {
            targets,
            addresses,
            channels: BTreeMap::new(),
            next_pair: u32::from_be_bytes(next_pair) & 0xff_ffff,
            next_number: 0,
            guid,
            left: BTreeMap::new(),
            ended,
            next: None,
            shutting_down: false,
            input: vec![0; DATAGRAM_BYTES],
        })
    }

    /// Registers the sockets.
    ///
    /// # Errors
    /// A socket that cannot be polled.
    pub fn watch(&self, poller: &mut Poller) -> io::Result<()> {
        for (number, address) in self.addresses.iter().enumerate() {
            poller.set(SOCKETS + number as u64, Some(address.socket.as_fd()), address.socket.interest())?;
        }
        Ok(())
    }

    /// Time of the next call of [`serve`](Self::serve) without an event.
    pub fn poll_timeout(&self) -> Option<Instant> {
        self.next
    }

    /// Records an event of the poller.
    pub fn happened(&mut self, token: u64) {
        if let Some(address) = self.addresses.get_mut((token - SOCKETS) as usize) {
            address.socket.is_ready = true;
        }
    }

    /// Reads and sends as much as one step of the loop allows, and serves deadlines. Returns
    /// whether there may be more.
    pub fn serve(&mut self, now: Instant, systems: &mut Tracked<StorageSystem>) -> bool {
        let is_due = self.next.is_some_and(|at| at <= now)
            || self.addresses.iter().any(|address| address.socket.is_ready)
            || systems.ready().iter().any(|system| !systems[*system].notices.is_empty());
        if !is_due {
            return false;
        }
        let cx = &mut Context { now, systems, ends: Vec::new() };
        let mut more = false;
        let mut input = std::mem::take(&mut self.input);
        for number in 0..self.addresses.len() {
            if !self.addresses[number].socket.is_ready {
                continue;
            }
            let mut left = MAX_READS;
            while left > 0
                && let Some((path, bytes)) = self.addresses[number].socket.receive(&mut input)
            {
                left -= 1;
                self.datagram(cx, number, &path, &input[..bytes]);
            }
            self.addresses[number].socket.is_ready = left == 0;
            more |= left == 0;
        }
        self.input = input;
        for number in 0..self.addresses.len() {
            let manager = &mut self.addresses[number].manager;
            if manager.poll_timeout().is_some_and(|at| at <= now) {
                manager.handle(now, cm::Input::Timeout);
                self.drain_manager(cx, number);
            }
        }
        self.channels.values_mut().for_each(|channel| channel.timeout(cx));
        self.finish(cx);
        more
    }

    /// Passes finished I/O to channels.
    pub fn complete_io(&mut self, now: Instant, systems: &mut Tracked<StorageSystem>, all: Vec<Done>) {
        let cx = &mut Context { now, systems, ends: Vec::new() };
        for Done { owner, tag, data, status } in all {
            let Owner::Channel { channel: number } = owner else { continue };
            if let Some(channel) = self.channels.values_mut().find(|channel| channel.ends.number == number) {
                channel.complete_io(cx, tag, status, data);
            } else if let Entry::Occupied(mut left) = self.left.entry(number) {
                left.get_mut().1.remove(&tag);
                if left.get().1.is_empty() {
                    left.remove();
                }
            }
        }
        self.finish(cx);
    }

    /// Asks all initiators to log out, ends all connections, and accepts no further ones.
    pub fn shut_down(&mut self, now: Instant, systems: &mut Tracked<StorageSystem>) {
        /// Reason of a target logout: none.
        const NO_REASON: u32 = 0;
        self.shutting_down = true;
        let cx = &mut Context { now, systems, ends: Vec::new() };
        for channel in self.channels.values_mut() {
            channel.over.get_or_insert_with(|| "the lab ends".to_owned());
            channel.input(cx, Input::Logout(NO_REASON));
        }
        self.finish(cx);
    }

    /// Number of connections that are open or closing.
    pub fn connections(&self) -> usize {
        self.addresses.iter().map(|address| address.manager.connections()).sum()
    }

    /// Targets, each with its name, portals and port identifier.
    pub fn targets(&self) -> &[TargetPlan] {
        &self.targets
    }

    /// Work of each target.
    pub fn served(&self) -> impl Iterator<Item = Served<'_>> {
        self.targets.iter().zip(&self.ended).enumerate().map(|(number, (target, ended))| {
            let mut counters = *ended;
            let open = self.channels.values().filter(|channel| channel.ends.target == number);
            let channels = open.map(|channel| counters.add(channel.counters())).count();
            Served { target: &target.name, channels, counters }
        })
    }

    /// Counters of the sockets and connection managers, each with its address.
    pub fn sockets(&self) -> impl Iterator<Item = (Ipv4Addr, socket::Counters, cm::Counters)> {
        self.addresses
            .iter()
            .map(|Address { socket, manager, .. }| (*socket.local.ip(), socket.counters, manager.counters))
    }

    /// Processes a datagram.
    fn datagram(&mut self, cx: &mut Context<'_>, number: usize, path: &Path, bytes: &[u8]) {
        let address = &mut self.addresses[number];
        let packet = match RocePacket::parse(path, bytes) {
            Ok(packet) => packet,
            Err(error) => {
                address.socket.counters.damaged += 1;
                tracing::debug!(peer = %path.from, %error, "datagram");
                return;
            }
        };
        let from = *path.from.ip();
        if packet.bth.pair == MANAGER {
            let is_valid = packet.bth.opcode == opcode::DATAGRAM
                && packet.extended.deth.is_some_and(|(key, _)| key == QP1_KEY)
                && packet.payload.len() == MAD_BYTES;
            match CmMessage::parse(packet.payload) {
                Ok(message) if is_valid => {
                    address.manager.handle(cx.now, cm::Input::Message(from, Box::new(message)));
                    self.drain_manager(cx, number);
                }
                _ => address.socket.counters.unknown += 1,
            }
            return;
        }
        let channel = self.channels.get_mut(&packet.bth.pair);
        let Some(channel) = channel.filter(|channel| (channel.ends.socket, channel.ends.peer) == (number, from)) else {
            address.socket.counters.unknown += 1;
            return;
        };
        channel.receive(cx, &packet);
        address.manager.handle(cx.now, cm::Input::Communicating(channel.ends.cm));
        self.drain_manager(cx, number);
    }

    fn drain_manager(&mut self, cx: &mut Context<'_>, number: usize) {
        while let Some(output) = self.addresses[number].manager.poll_output() {
            match output {
                cm::Output::Send(to, message) => self.send_message(number, to, &message),
                cm::Output::Requested { id, from, req, path, private } => {
                    let ends = (number, id, from);
                    let answer = match self.request(cx, ends, (&req, &path), &private) {
                        Ok((rep, private)) => cm::Input::Accept { id, rep, private },
                        Err(Refusal { reason, unit, why }) => {
                            tracing::info!(initiator = %from, why, "SRP login rejected");
                            cm::Input::Reject { id, reason, private: unit.as_deref().map(bytes_of).unwrap_or_default() }
                        }
                    };
                    self.addresses[number].manager.handle(cx.now, answer);
                }
                cm::Output::Established(id) => {
                    if let Some(channel) = self.channel_of(number, id) {
                        tracing::info!(initiator = %channel.ends.peer, channel = channel.ends.number, "SRP channel");
                    }
                }
                cm::Output::Closed(id) => {
                    if let Some(channel) = self.channel_of(number, id) {
                        channel.end(cx, "the connection has ended");
                    }
                }
            }
        }
    }

    fn channel_of(&mut self, socket: usize, cm: u32) -> Option<&mut Channel> {
        self.channels.values_mut().find(|channel| (channel.ends.socket, channel.ends.cm) == (socket, cm))
    }

    fn send_message(&mut self, number: usize, to: Ipv4Addr, message: &CmMessage) {
        let address = &mut self.addresses[number];
        let mut payload = Vec::with_capacity(MAD_BYTES);
        message.emit(&mut payload);
        let bth = Bth { opcode: opcode::DATAGRAM, key: DEFAULT_KEY, pair: MANAGER, psn: address.psn, ..Bth::default() };
        address.psn = (address.psn + 1) & 0xff_ffff;
        let extended = Extended { deth: Some((QP1_KEY, MANAGER)), ..Extended::default() };
        address.socket.send(to, &RocePacket { bth, extended, payload: &payload });
    }

    /// Opens the channel of a REQ. Returns the fields of the REP, and the login response.
    fn request(
        &mut self,
        cx: &mut Context<'_>,
        (socket, cm, peer): (usize, u32, Ipv4Addr),
        (req, path): (&ReqFields, &ReqPath),
        private: &[u8],
    ) -> Result<(RepFields, Vec<u8>), Refusal> {
        let at = *self.addresses[socket].socket.local.ip();
        let request = login::check(&self.targets, at, (req, path), private)?;
        let no_resources = Refusal::of_login(request.login.tag, reject::RESOURCES, "the lab ends");
        let first_psn = random::<4>().map_err(|_| no_resources.clone())?;
        if self.shutting_down {
            return Err(no_resources);
        }
        let plan = &self.targets[request.target];
        let initiator = request.login.initiator;
        let tag = request.login.tag;
        if self.channels.values().filter(|channel| channel.ends.peer == peer).count() >= MAX_CHANNELS_OF_HOST {
            return Err(Refusal::of_login(tag, reject::LIMIT, "the host has too many channels"));
        }
        // A write of the channel before must not follow those of the new one.
        let is_same = |ends: &Ends| (ends.target, ends.initiator) == (request.target, initiator);
        let mut writes = self.left.values().any(|(ends, _)| is_same(ends));
        for channel in self.channels.values_mut().filter(|channel| is_same(&channel.ends)) {
            if !channel.writing().is_empty() {
                channel.end(cx, "the initiator logs in again");
                writes = true;
            }
        }
        if writes {
            return Err(Refusal::of_login(tag, reject::RESOURCES, "writes of the channel before have not ended"));
        }
        let ends = Ends {
            number: self.next_number,
            socket,
            cm,
            peer,
            target: request.target,
            system: plan.system,
            port: plan.port,
            initiator,
        };
        self.next_number += 1;
        let psn = u32::from_be_bytes(first_psn) & 0xff_ffff;
        let config = target::Config { request_limit: plan.request_limit, unit_bytes: UNIT_BYTES, streams: false };
        let pair = self.free_pair();
        let numbers = Numbers { peer: req.pair, key: req.key, unit_bytes: UNIT_BYTES[0] as usize };
        // A PSN is the one that the sender of a message expects first.
        let [sends, receives] = login::parameters(&request, [req.psn, psn]);
        let units = u32::from(config.request_limit) + SPARE_UNITS;
        let device = &mut cx.systems[ends.system].device;
        let nexus = device.connect(ends.port, TransportId::Srp(Box::new(initiator)));
        let machine = Target::new(config, nexus);
        let pair_of = QueuePair::new(numbers, sends, receives, units);
        let mut channel = Channel::new(ends, nexus, pair_of, machine, units as usize);
        match channel.log_in(cx, request.login) {
            Some(unit @ Iu::LoginRsp { .. }) => {
                // A login without multichannel ends other channels of the same ports (SRP, 5.7).
                for old in self.channels.values_mut().filter(|channel| is_same(&channel.ends)) {
                    old.end(cx, "the initiator has logged in again");
                }
                self.channels.insert(pair, channel);
                let rep = RepFields { ids: [0; 2], pair, psn, depths: [0, request.reads], guid: self.guid };
                Ok((rep, bytes_of(&unit)))
            }
            unit => {
                cx.systems[ends.system].device.disconnect(nexus);
                let refusal = Refusal::of_login(request.login.tag, reject::CHANNEL, "the target rejects the login");
                Err(Refusal { unit: unit.map(Box::new).or(refusal.unit.clone()), ..refusal })
            }
        }
    }

    /// Next number of a queue pair that no channel has. 0 and 1 are for management.
    fn free_pair(&mut self) -> u32 {
        loop {
            let pair = self.next_pair;
            self.next_pair = (self.next_pair + 1) & 0xff_ffff;
            if pair > MANAGER && !self.channels.contains_key(&pair) {
                return pair;
            }
        }
    }

    /// Passes on notices, removes channels that have ended, and sends.
    fn finish(&mut self, cx: &mut Context<'_>) {
        self.exchange_notices(cx);
        self.answer_task_management(cx.now);
        let over = |channel: &Channel| channel.over.is_some();
        let ended: Vec<u32> =
            self.channels.iter().filter(|(_, channel)| over(channel)).map(|(pair, _)| *pair).collect();
        self.transmit();
        for pair in ended {
            let Some(channel) = self.channels.remove(&pair) else { continue };
            if !channel.writing().is_empty() {
                self.left.insert(channel.ends.number, (channel.ends, channel.writing().clone()));
            }
            let Ends { socket, cm, system, peer, .. } = channel.ends;
            let counters = channel.counters();
            self.ended[channel.ends.target].add(counters);
            let Counters { requests, moved_bytes: [read_bytes, written_bytes], .. } = counters;
            let reason = channel.over.unwrap_or_default();
            tracing::info!(initiator = %peer, reason, requests, read_bytes, written_bytes, "SRP channel ended");
            cx.systems[system].device.disconnect(channel.nexus);
            cx.systems[system].drain_outside(cx.now);
            self.addresses[socket].manager.handle(cx.now, cm::Input::Close(cm));
            self.drain_manager(cx, socket);
        }
        self.addresses.iter_mut().for_each(|address| address.socket.flush());
        let managers = self.addresses.iter().filter_map(|address| address.manager.poll_timeout());
        self.next = managers.chain(self.channels.values().filter_map(|channel| channel.pair.poll_timeout())).min();
    }

    /// Sends deferred responses in systems where no aborted task can write any more.
    fn answer_task_management(&mut self, now: Instant) {
        let of_left = self.left.values().map(|(ends, _)| ends.system);
        let of_channels = self.channels.values().filter(|channel| channel.writes_aborted());
        let busy: BTreeSet<usize> = of_channels.map(|channel| channel.ends.system).chain(of_left).collect();
        for channel in self.channels.values_mut().filter(|channel| !busy.contains(&channel.ends.system)) {
            channel.send_deferred(now);
        }
    }

    fn transmit(&mut self) {
        for channel in self.channels.values_mut() {
            let socket = &mut self.addresses[channel.ends.socket].socket;
            while let Some(Packet { bth, extended, payload }) = channel.pair.poll_packet() {
                socket.send(channel.ends.peer, &RocePacket { bth, extended, payload: &payload });
            }
        }
    }

    /// Dispatches notices of devices and channels to channels until there are none.
    fn exchange_notices(&mut self, cx: &mut Context<'_>) {
        loop {
            let mut notices: Vec<(usize, u16, Option<u64>, Notice)> = Vec::new();
            for (by, ends) in std::mem::take(&mut cx.ends) {
                notices.push((by.system, by.port, Some(by.number), Notice::End(ends)));
            }
            for at in 0..cx.systems.ready().len() {
                let system = cx.systems.ready()[at];
                let is_here =
                    |port: u16| self.targets.iter().any(|target| (target.system, target.port) == (system, port));
                let all = std::mem::take(&mut cx.systems[system].notices);
                let (own, others): (Vec<_>, Vec<_>) = all.into_iter().partition(|(port, _)| is_here(*port));
                cx.systems[system].notices = others;
                notices.extend(own.into_iter().map(|(port, notice)| (system, port, None, notice)));
            }
            if notices.is_empty() {
                return;
            }
            for (system, port, except, notice) in notices {
                let is_to = |channel: &Channel| {
                    let of_task = match &notice {
                        Notice::Step { task, .. } => task.nexus == channel.nexus,
                        Notice::End(_) => except != Some(channel.ends.number),
                    };
                    (channel.ends.system, channel.ends.port) == (system, port) && of_task
                };
                for channel in self.channels.values_mut().filter(|channel| is_to(channel)) {
                    channel.input(cx, Input::Notice(notice.clone()));
                }
            }
        }
    }
}

fn bytes_of(unit: &Iu) -> Vec<u8> {
    let mut bytes = Vec::new();
    unit.emit(&mut bytes);
    bytes
}
