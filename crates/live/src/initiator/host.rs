//! A Fibre Channel host independent of the transport: login, discovery, FCP and disks.
//!
//! The machines of `sanloom-fc` and `sanloom-scsi` match the parts of libfc: local port, discovery
//! and remote ports ([`NPort`]), exchanges and FCP ([`FcpInitiator`]), and the SCSI layer
//! ([`Scan`], [`Disk`]). This module connects their inputs and outputs, and moves data between
//! frames and the buffers of requests.

mod ask;
mod counted;
mod data;
pub mod description;
mod expected;

pub use counted::Counted;
pub use expected::TargetSeen;

use super::commands::{Active, Commands, Who};
use crate::offload::Placement;
use crate::sequence::Reassembly;
use ask::Questions;
use sanloom_fc::exchange::{Route, SeqTx, route};
use sanloom_fc::fcp::initiator::{self as fcp, FcpInitiator, FcpInitiatorConfig, Outcome};
use sanloom_fc::nport::{self, NPort, NPortConfig, Remote};
use sanloom_scsi::disk::{
    Data, Disk, DiskConfig, Done, End, Error, ErrorKind, Input as DiskInput, Output as DiskOutput, Properties, Reply,
    Request, Scan, ScanInput, ScanOutput,
};
use sanloom_scsi::time::Instant;
use sanloom_wire::fcp::task_management;
use sanloom_wire::lun::LunBytes;
use sanloom_wire::message::ReplyTo;
use sanloom_wire::{FCtl, FcId, FcType, Frame, Header, Message, Payload, RCtl, Wwpn};
use std::collections::{BTreeMap, VecDeque};

/// Maximum number of concurrent exchanges.
const MAX_EXCHANGES: u16 = 1_024;

/// Pending output, in order.
#[derive(Debug)]
enum Outgoing {
    Message(Frame),
    Data(SeqTx),
}

/// The next frame or message to send.
#[derive(Debug)]
pub enum Leaving<'b> {
    /// A message that is not yet split into frames.
    Message(Frame),
    /// A data frame.
    Data(Header, &'b [u8]),
}

/// Event for the owner of a host.
#[derive(Debug)]
pub enum Event {
    /// A disk was added, changed or removed; see [`Host::disks`].
    Disks,
    /// A request of [`Host::submit`] has completed.
    Done {
        /// Tag chosen by the caller.
        tag: u64,
        /// Result of the request.
        result: Result<Done, Error>,
        /// Buffer of the request, which is returned to the caller.
        data: Vec<u8>,
    },
    /// The reply to a request of [`Host::ask`]; `None` after a time-out or an invalid reply.
    Answer {
        /// Number that [`Host::ask`] returned.
        number: u16,
        /// The decoded reply.
        message: Option<Message>,
    },
}

/// A disk as its owner sees it.
#[derive(Debug)]
pub struct DiskView<'h> {
    /// Number in this host.
    pub number: u64,
    /// Port name of the target.
    pub target: Wwpn,
    /// Its logical unit number.
    pub lun: LunBytes,
    /// Properties, once the disk has reported them.
    pub properties: Option<&'h Properties>,
    /// True if the disk is usable now.
    pub ready: bool,
}

/// A discovered target port.
#[derive(Debug)]
struct Target {
    /// Current login; `None` while there is none.
    remote: Option<Remote>,
    scan: Scan,
    units: BTreeMap<LunBytes, Unit>,
    /// Number of logins, and number of lost logins.
    logins: [u64; 2],
}

impl Target {
    fn new() -> Target {
        Target { remote: None, scan: Scan::new(), units: BTreeMap::new(), logins: [0; 2] }
    }
}

#[derive(Debug)]
struct Unit {
    disk: Disk,
    number: u64,
    /// True if the last REPORT LUNS of the target listed the unit.
    listed: bool,
    /// True if the unit reported an unusable type; a target's controller may have a number, too.
    useless: bool,
}

/// An in-flight request.
#[derive(Debug)]
struct Pending {
    tag: u64,
    data: Vec<u8>,
}

/// A Fibre Channel host.
#[derive(Debug)]
pub struct Host {
    /// Login and discovery machine.
    pub login: NPort,
    /// True if a disk whose port group changes its state is tried before it gets requests again,
    /// because other ports may be better.
    pub follows_access: bool,
    fcp: FcpInitiator,
    disk_config: DiskConfig,
    port_id: FcId,
    reassembly: Reassembly,
    /// Requests by OX_ID, needed to decode the replies.
    requests_by_ox_id: BTreeMap<u16, ReplyTo>,
    targets: BTreeMap<Wwpn, Target>,
    /// Target port and LUN of each disk, by number.
    disk_addresses: Vec<(Wwpn, LunBytes)>,
    commands: Commands,
    requests: BTreeMap<u64, Pending>,
    next_request: u64,
    out: VecDeque<Outgoing>,
    fcp_outputs: VecDeque<fcp::Output>,
    touched: VecDeque<(Wwpn, Option<LunBytes>)>,
    events: VecDeque<Event>,
    /// A target does not respond, so all logins must be repeated.
    start_over: bool,
    questions: Questions,
    /// Placement of read data.
    placement: Placement,
    /// Frames of read data that were placed directly.
    pub placed_frames: u64,
    /// Frames of read data that were assembled in a buffer first.
    pub staged_frames: u64,
    /// Completed commands.
    pub counted: Counted,
    /// Frames that no machine accepted.
    pub unexpected: u64,
}

impl Host {
    /// Creates a host without a link.
    pub fn new(login: NPortConfig, fcp: FcpInitiatorConfig, disk_config: DiskConfig) -> Host {
        let fcp = FcpInitiatorConfig { max_exchanges: fcp.max_exchanges.min(MAX_EXCHANGES), ..fcp };
        Host {
            login: NPort::new(login),
            follows_access: false,
            fcp: FcpInitiator::new(fcp),
            disk_config,
            port_id: FcId::ZERO,
            reassembly: Reassembly::default(),
            requests_by_ox_id: BTreeMap::new(),
            targets: BTreeMap::new(),
            disk_addresses: Vec::new(),
            commands: Commands::default(),
            requests: BTreeMap::new(),
            next_request: 0,
            out: VecDeque::new(),
            fcp_outputs: VecDeque::new(),
            touched: VecDeque::new(),
            events: VecDeque::new(),
            start_over: false,
            questions: Questions::default(),
            placement: Placement::Unlimited,
            placed_frames: 0,
            staged_frames: 0,
            counted: Counted::default(),
            unexpected: 0,
        }
    }

    /// Sets the placement of read data.
    pub fn place(&mut self, placement: Placement) {
        self.placement = placement;
    }

    /// Returns the host's address; zero without a login.
    pub fn port_id(&self) -> FcId {
        self.port_id
    }

    /// Sets the link state.
    pub fn link(&mut self, now: Instant, up: bool) {
        self.login_input(now, if up { nport::Input::LinkUp } else { nport::Input::LinkDown });
    }

    /// Passes an input to the login machine.
    pub fn login_input(&mut self, now: Instant, input: nport::Input) {
        self.login.handle(now, input);
        self.drain_machines(now);
    }

    /// Logs out from all ports.
    pub fn log_out(&mut self, now: Instant) {
        self.login.handle(now, nport::Input::LogOut);
        self.drain_machines(now);
    }

    /// Returns the discovered target ports, each with its current login.
    pub fn targets(&self) -> impl Iterator<Item = (Wwpn, Option<&Remote>)> {
        self.targets.iter().map(|(wwpn, target)| (*wwpn, target.remote.as_ref()))
    }

    /// Returns the next event for the owner.
    pub fn poll_event(&mut self) -> Option<Event> {
        self.events.pop_front()
    }

    /// Submits a request to a disk. `data` is the data of a write, or a buffer of the size of a
    /// read.
    pub fn submit(&mut self, now: Instant, disk: u64, request: Request, data: Vec<u8>) {
        let id = self.next_request;
        self.next_request += 1;
        let other = self.requests.insert(id, Pending { tag: request.tag, data });
        debug_assert!(other.is_none(), "two requests have the number {id}");
        if let Some((wwpn, lun)) = self.disk_addresses.get(disk as usize).copied() {
            self.disk_input(now, wwpn, lun, DiskInput::Submit(Request { tag: id, ..request }));
        }
        self.drain_machines(now);
    }

    /// Processes a received frame: header and data field, with a valid CRC.
    pub fn frame_in(&mut self, now: Instant, header: Header, field: &[u8]) {
        if header.fc_type == FcType::FCP && header.r_ctl == RCtl::SOLICITED_DATA {
            if let Some(accepted) = self.data_in(&header, field) {
                self.fcp.handle(now, fcp::Input::Data { ox_id: header.ox_id, accepted });
                self.drain_machines(now);
            }
        } else if let Some(frame) = self.reassembly.accept(now, header, field) {
            self.message_in(now, frame);
        }
    }

    /// Processes a received complete message.
    pub fn message_in(&mut self, now: Instant, frame: Frame) {
        let frame = self.read(frame);
        let Some(frame) = self.answered(frame) else { return };
        match route(&frame.header) {
            Some(Route::NPort) => self.login.handle(now, nport::Input::Frame(frame)),
            Some(Route::Initiator) => {
                if let Payload::Typed(Message::FcpRsp(response)) = &frame.payload
                    && let Some(active) = self.commands.of_exchange(frame.header.ox_id)
                {
                    active.sense = response.sense.clone().unwrap_or_default();
                }
                self.fcp.handle(now, fcp::Input::Frame(frame));
            }
            // A host is never a target.
            Some(Route::Target) | None => self.unexpected += 1,
        }
        self.drain_machines(now);
    }

    /// Time of the next call of [`timeout`](Self::timeout).
    pub fn poll_timeout(&self) -> Option<Instant> {
        let targets = self.targets.values().flat_map(|target| {
            target.units.values().map(|unit| unit.disk.poll_timeout()).chain([target.scan.poll_timeout()])
        });
        let own = [self.login.poll_timeout(), self.fcp.poll_timeout(), self.questions.deadline()];
        own.into_iter().chain(targets).flatten().min()
    }

    /// Runs expired timers.
    pub fn timeout(&mut self, now: Instant) {
        let due = |at: Option<Instant>| at.is_some_and(|at| at <= now);
        if due(self.login.poll_timeout()) {
            self.login.handle(now, nport::Input::Timeout);
        }
        if due(self.fcp.poll_timeout()) {
            self.fcp.handle(now, fcp::Input::Timeout);
        }
        if due(self.questions.deadline()) {
            self.give_up_questions(now);
        }
        for (&wwpn, target) in &mut self.targets {
            if due(target.scan.poll_timeout()) {
                target.scan.handle(now, ScanInput::Timeout);
                self.touched.push_back((wwpn, None));
            }
            for (&lun, unit) in &mut target.units {
                if due(unit.disk.poll_timeout()) {
                    unit.disk.handle(now, DiskInput::Timeout);
                    self.touched.push_back((wwpn, Some(lun)));
                }
            }
        }
        self.drain_machines(now);
    }

    /// Returns whether output is pending.
    pub fn has_output(&self) -> bool {
        !self.out.is_empty()
    }

    /// Decodes a message that arrived as bytes, as far as possible.
    fn read(&mut self, frame: Frame) -> Frame {
        let Payload::Bytes(bytes) = &frame.payload else { return frame };
        let from_responder = frame.header.f_ctl.has(FCtl::EXCHANGE_RESPONDER);
        let request = if from_responder { self.requests_by_ox_id.remove(&frame.header.ox_id) } else { None };
        match Message::parse(&frame.header, bytes, request) {
            Ok(message) => Frame { header: frame.header, payload: Payload::Typed(message) },
            Err(_) => frame,
        }
    }

    fn push_message(&mut self, frame: Frame) {
        if let Payload::Typed(message) = &frame.payload
            && let Some(key) = message.reply_key()
        {
            self.requests_by_ox_id.insert(frame.header.ox_id, key);
        }
        self.out.push_back(Outgoing::Message(frame));
    }

    /// Passes outputs between the machines until none has further output.
    fn drain_machines(&mut self, now: Instant) {
        loop {
            if let Some(output) = self.login.poll_output() {
                self.login_output(now, output);
            } else if let Some(output) = self.fcp_outputs.pop_front().or_else(|| self.fcp.poll_output()) {
                self.fcp_output(now, output);
            } else if let Some((wwpn, lun)) = self.touched.pop_front() {
                match lun {
                    Some(lun) => self.disk_outputs(now, wwpn, lun),
                    None => self.scan_outputs(now, wwpn),
                }
            } else if std::mem::take(&mut self.start_over) {
                self.login.handle(now, nport::Input::LinkDown);
                self.login.handle(now, nport::Input::LinkUp);
            } else if !self.start_backlog(now) {
                return;
            }
        }
    }

    fn login_output(&mut self, now: Instant, output: nport::Output) {
        match output {
            nport::Output::Send(frame) => self.push_message(frame),
            nport::Output::FabricUp { port_id } => {
                tracing::info!(%port_id, "logged in to the fabric");
                self.fcp.raise_timeouts(self.login.e_d_tov(), self.login.r_a_tov());
                self.local_id(now, port_id);
            }
            nport::Output::FabricDown => {
                tracing::info!("the fabric login was lost");
                self.local_id(now, FcId::ZERO);
            }
            nport::Output::RemoteUp(remote) if remote.target => self.target_up(now, remote),
            nport::Output::RemoteUp(_) => {}
            nport::Output::RemoteDown { port_id, wwpn } => {
                self.fcp.handle(now, fcp::Input::RemoteDown { port_id });
                self.target_down(now, wwpn);
            }
        }
    }

    fn local_id(&mut self, now: Instant, port_id: FcId) {
        self.port_id = port_id;
        self.fcp.handle(now, fcp::Input::LocalId(port_id));
    }

    fn target_up(&mut self, now: Instant, remote: Remote) {
        tracing::info!(target_port = %remote.wwpn, port_id = %remote.port_id, "logged in to a target");
        let wwpn = remote.wwpn;
        let target = self.targets.entry(wwpn).or_insert_with(Target::new);
        target.remote = Some(remote);
        target.logins[0] += 1;
        target.scan.handle(now, ScanInput::PathUp);
        self.touched.push_back((wwpn, None));
        for (&lun, unit) in target.units.iter_mut().filter(|(_, unit)| unit.listed) {
            unit.disk.handle(now, DiskInput::PathUp);
            self.touched.push_back((wwpn, Some(lun)));
        }
    }

    fn target_down(&mut self, now: Instant, wwpn: Wwpn) {
        let Some(target) = self.targets.get_mut(&wwpn) else { return };
        tracing::info!(target_port = %wwpn, "the login with a target was lost");
        target.logins[1] += u64::from(target.remote.take().is_some());
        target.scan.handle(now, ScanInput::PathDown);
        for (&lun, unit) in &mut target.units {
            unit.disk.handle(now, DiskInput::PathDown);
            self.touched.push_back((wwpn, Some(lun)));
        }
        self.events.push_back(Event::Disks);
    }

    fn scan_outputs(&mut self, now: Instant, wwpn: Wwpn) {
        while let Some(output) = self.targets.get_mut(&wwpn).and_then(|target| target.scan.poll_output()) {
            match output {
                ScanOutput::Command(command) => {
                    self.start(now, Active::new(wwpn, Who::Scan, [0; 8], command.id, command.cdb, command.data));
                }
                ScanOutput::Units(units) => self.units(now, wwpn, &units),
            }
        }
    }

    /// Updates the units after a target's REPORT LUNS.
    fn units(&mut self, now: Instant, wwpn: Wwpn, listed: &[LunBytes]) {
        let Some(target) = self.targets.get_mut(&wwpn) else { return };
        let up = target.remote.is_some();
        for (lun, unit) in &mut target.units {
            let here = listed.contains(lun);
            let input = if here { DiskInput::PathUp } else { DiskInput::PathDown };
            if up && here != unit.listed {
                unit.listed = here;
                unit.disk.handle(now, input);
                self.touched.push_back((wwpn, Some(*lun)));
            }
        }
        for &lun in listed {
            if target.units.contains_key(&lun) {
                continue;
            }
            let mut disk = Disk::new(now, self.disk_config);
            disk.handle(now, DiskInput::PathUp);
            let number = self.disk_addresses.len() as u64;
            target.units.insert(lun, Unit { disk, number, listed: true, useless: false });
            self.disk_addresses.push((wwpn, lun));
            self.touched.push_back((wwpn, Some(lun)));
        }
        self.events.push_back(Event::Disks);
    }

    fn disk_input(&mut self, now: Instant, wwpn: Wwpn, lun: LunBytes, input: DiskInput) {
        if let Some(unit) = self.targets.get_mut(&wwpn).and_then(|target| target.units.get_mut(&lun)) {
            unit.disk.handle(now, input);
            self.touched.push_back((wwpn, Some(lun)));
        }
    }

    fn disk_outputs(&mut self, now: Instant, wwpn: Wwpn, lun: LunBytes) {
        loop {
            let unit = self.targets.get_mut(&wwpn).and_then(|target| target.units.get_mut(&lun));
            let Some(unit) = unit else { return };
            let Some(output) = unit.disk.poll_output() else { return };
            match output {
                DiskOutput::Command(command) => {
                    self.start(now, Active::new(wwpn, Who::Disk, lun, command.id, command.cdb, command.data));
                }
                DiskOutput::ResetUnit => {
                    tracing::warn!(target_port = %wwpn, lun = lun_name(lun), "logical unit reset");
                    self.start(now, Active::new(wwpn, Who::Reset, lun, 0, [0; 16], Data::None));
                }
                DiskOutput::DropPath => self.start_over = true,
                DiskOutput::Ready(found) => {
                    tracing::info!(target_port = %wwpn, lun = lun_name(lun), blocks = found.blocks, "disk ready");
                    unit.useless = false;
                    self.events.push_back(Event::Disks);
                }
                DiskOutput::Unusable(error) => {
                    tracing::warn!(target_port = %wwpn, lun = lun_name(lun), %error, "disk cannot be used");
                    unit.useless = error.kind == ErrorKind::NotADisk;
                    self.events.push_back(Event::Disks);
                }
                // Otherwise each port of a target is offered separately; the user of the disks
                // selects.
                DiskOutput::AccessChanged if self.follows_access => unit.disk.handle(now, DiskInput::Revalidate),
                DiskOutput::AccessChanged => {}
                DiskOutput::UnitsChanged => {
                    if let Some(target) = self.targets.get_mut(&wwpn) {
                        target.scan.handle(now, ScanInput::Rescan);
                        self.touched.push_back((wwpn, None));
                    }
                }
                DiskOutput::Done { tag, result } => {
                    if let Some(Pending { tag, data }) = self.requests.remove(&tag) {
                        self.events.push_back(Event::Done { tag, result, data });
                    }
                }
            }
        }
    }

    /// Passes a command to FCP, or queues it until an exchange is free.
    fn start(&mut self, now: Instant, active: Active) {
        let tag = self.commands.insert(active);
        if self.fcp.has_free_exchange() {
            self.submit_command(now, tag);
        } else {
            self.commands.backlog.push_back(tag);
        }
    }

    /// Starts one queued command if an exchange is free. Returns true if one was started.
    fn start_backlog(&mut self, now: Instant) -> bool {
        let next = if self.fcp.has_free_exchange() { self.commands.backlog.pop_front() } else { None };
        let Some(tag) = next else { return false };
        self.submit_command(now, tag);
        true
    }

    fn submit_command(&mut self, now: Instant, tag: u64) {
        let Some(active) = self.commands.get_mut(tag) else { return };
        let remote = self.targets.get(&active.target).and_then(|target| target.remote);
        let Some(remote) = remote else {
            return self.command_ended(now, tag, End::PathGone);
        };
        active.d_id = remote.port_id;
        let input = match active.who {
            Who::Reset => fcp::Input::Manage(fcp::Manage {
                tag,
                d_id: remote.port_id,
                lun: active.lun,
                function: task_management::LUN_RESET,
            }),
            Who::Scan | Who::Disk => fcp::Input::Submit(active.command(tag, remote.receive_size_bytes)),
        };
        self.fcp.handle(now, input);
        // The first output for the command contains its exchange.
        while let Some(output) = self.fcp.poll_output() {
            if let fcp::Output::Send(frame) = &output
                && matches!(frame.payload, Payload::Typed(Message::FcpCmnd(_)))
            {
                self.commands.exchange_of(tag, frame.header.ox_id);
            }
            self.fcp_outputs.push_back(output);
        }
    }

    fn fcp_output(&mut self, now: Instant, output: fcp::Output) {
        match output {
            fcp::Output::Send(frame) => self.push_message(frame),
            fcp::Output::Transmit(sequence) => self.out.push_back(Outgoing::Data(sequence)),
            fcp::Output::Done { tag, ox_id, outcome } => {
                if !matches!(outcome, Outcome::Completed { .. }) {
                    let of_it = |outgoing: &Outgoing| matches!(outgoing, Outgoing::Data(data) if data.ox_id == ox_id);
                    self.out.retain(|outgoing| !of_it(outgoing));
                }
                let end = match self.commands.get_mut(tag) {
                    Some(active) => active.end(outcome),
                    None => return,
                };
                if let End::Status { transferred, .. } = &end {
                    self.count(tag, u64::from(*transferred));
                }
                self.command_ended(now, tag, end);
            }
        }
    }

    fn command_ended(&mut self, now: Instant, tag: u64, end: End) {
        let Some(Active { target, who, lun, id, .. }) = self.commands.remove(tag) else { return };
        match who {
            Who::Scan => {
                if let Some(entry) = self.targets.get_mut(&target) {
                    entry.scan.handle(now, ScanInput::Reply(Reply { id, end }));
                    self.touched.push_back((target, None));
                }
            }
            Who::Disk => self.disk_input(now, target, lun, DiskInput::Reply(Reply { id, end })),
            Who::Reset => {
                let success = matches!(end, End::Status { .. });
                self.disk_input(now, target, lun, DiskInput::ResetDone { success });
            }
        }
    }
}

/// Returns the LUN as a decimal number if possible, otherwise as eight bytes.
pub fn lun_name(lun: LunBytes) -> String {
    match sanloom_wire::lun::from_bytes(lun) {
        Some(number) => number.to_string(),
        None => format!("0x{:016x}", sanloom_wire::lun::to_u64(lun)),
    }
}
