//! Connection of one initiator to a portal: [`Connection`].

use super::forward::Forwarding;
use super::shared::Common;
use super::slots::Slots;
use super::{Behind, Context, Stores};
use crate::poll::Interest;
use crate::session::{MAX_READS, Step, Transport};
use crate::storage::medium::BlockWork;
use crate::storage::workers::Owner;
use crate::sys::stream::bound_buffers;
use sanloom_scsi::iscsi::sequence::Statuses;
use sanloom_scsi::iscsi::target::{
    CloseReason, ConnectionId, Counters, Destination, Established, Input, Limits, Login, Output, Session, login,
};
use sanloom_scsi::scsi::{Device, Io, IoOp, IoStatus, IoTag, Notice};
use sanloom_scsi::time::{Instant, Span};
use std::collections::VecDeque;
use std::io;
use std::net::{SocketAddr, TcpStream};

/// Unsent bytes at which nothing more is read from an initiator, and no more reads of media begin.
const MAX_OUTPUT_BYTES: usize = 16 << 20;
/// Send buffer of a host whose reads and writes are forwarded, in bytes. With less the host sleeps
/// in between; with more its data leave the processor's cache before they are sent. Reads of 16 KiB
/// to 1 MiB at depth 8 and 32 took 0.72, 0.76 and 0.74 of the end-to-end time with 128, 192 and
/// 256 KiB, and 0.56 of the end-to-end throughput with the kernel's own choice.
const HOST_SEND_BYTES: usize = 192 << 10;
/// Time that an initiator has to receive the last PDUs before its connection is closed.
const LOGOUT_TIME: Span = Span::from_secs(5);

/// Machine of the current phase.
#[derive(Debug)]
pub(super) enum Machine {
    Login(Box<Login>),
    Full(Box<Session>),
}

/// A connection.
#[derive(Debug)]
pub(super) struct Connection {
    pub(super) id: u64,
    pub(super) transport: Transport,
    pub(super) peer: SocketAddr,
    pub(super) machine: Machine,
    /// Storage of the session; `None` in discovery and before the end of the login.
    pub(super) behind: Option<Behind>,
    slots: Slots,
    /// Reads of media that wait until the initiator has received more.
    parked: VecDeque<Io>,
    /// True if the connection closes once everything has been sent.
    closing: bool,
    /// Time at which `closing` was first seen by [`expire`](Self::expire).
    leaving: Option<Instant>,
    /// True if the connection closes at once.
    pub(super) broken: bool,
    /// True if the socket may have input.
    pub(super) readable: bool,
    /// Forwarding path of the session.
    pub(super) forwarding: Option<Box<Forwarding>>,
    /// True while the login response waits for the last writes of the session that it replaces.
    pub(super) waits: bool,
    /// True if threads may share this connection with others: a session with virtual disks. Media
    /// of this process are accessed in calls of machines.
    pub(super) spreads: bool,
}

impl Connection {
    pub(super) fn new(
        now: Instant,
        id: u64,
        stream: TcpStream,
        peer: SocketAddr,
        config: login::LoginConfig,
    ) -> Connection {
        Connection {
            id,
            transport: Transport::new(stream),
            peer,
            machine: Machine::Login(Box::new(Login::new(now, config))),
            behind: None,
            slots: Slots::default(),
            parked: VecDeque::new(),
            closing: false,
            leaving: None,
            broken: false,
            readable: true,
            forwarding: None,
            waits: false,
            spreads: false,
        }
    }

    pub(super) fn session(&self) -> Option<&Session> {
        match &self.machine {
            Machine::Full(session) => Some(session),
            Machine::Login(_) => None,
        }
    }

    /// Events to wait for.
    pub(super) fn interest(&self) -> Interest {
        self.transport.interest(self.wants_input())
    }

    fn wants_input(&self) -> bool {
        let room = self.forwarding.as_ref().is_none_or(|forwarding| forwarding.has_room());
        // While a PDU of a back end is half sent, outputs of the session wait without a limit, so
        // no input may create more of them.
        let waits = self.waits || (self.is_open() && self.session().is_some_and(Session::has_output));
        !self.is_leaving() && !waits && room && self.unsent_bytes() < MAX_OUTPUT_BYTES
    }

    /// Bytes that wait for the socket.
    pub(super) fn unsent_bytes(&self) -> usize {
        self.transport.egress.bytes
    }

    /// Returns whether input is no longer processed.
    pub(super) fn is_leaving(&self) -> bool {
        self.broken || self.closing
    }

    /// Returns whether the connection is to be dropped.
    pub(super) fn is_over(&self) -> bool {
        self.broken || (self.closing && self.transport.egress.is_empty())
    }

    /// Closes the connection once everything has been sent.
    pub(super) fn close_when_sent(&mut self) {
        self.closing = true;
    }

    /// Drops a closing connection whose initiator does not receive the last PDUs in time. Returns
    /// whether the connection is broken.
    pub(super) fn expire(&mut self, now: Instant) -> bool {
        if self.closing && now >= *self.leaving.get_or_insert(now) + LOGOUT_TIME {
            tracing::warn!(connection = self.id, peer = %self.peer, bytes = self.unsent_bytes(), "the initiator does not read the last PDUs; the connection is closed");
            self.broken = true;
        }
        self.broken
    }

    pub(super) fn poll_timeout(&self) -> Option<Instant> {
        match &self.machine {
            Machine::Login(login) => login.poll_timeout(),
            Machine::Full(session) => {
                let forwarding = self.forwarding.as_ref().and_then(|forwarding| forwarding.poll_timeout());
                Instant::earliest(&[session.poll_timeout(), forwarding])
            }
        }
    }

    /// Reads, processes and sends as much as one step of the loop allows. Returns whether there may
    /// be more.
    pub(super) fn serve(&mut self, cx: &mut Context<'_, '_>) -> bool {
        self.flush(cx);
        if self.readable && !self.wants_input() {
            self.broken |= self.transport.check().is_err();
        }
        let mut more = false;
        for round in 0..MAX_READS {
            if !self.readable || !self.wants_input() {
                break;
            }
            let read = self.read(cx);
            self.flush(cx);
            match read {
                Ok(true) => more = round + 1 == MAX_READS,
                Ok(false) => self.readable = false,
                Err(error) => {
                    tracing::debug!(connection = self.id, peer = %self.peer, %error, "connection lost");
                    self.broken = true;
                }
            }
        }
        more &= self.wants_input();
        match &mut self.forwarding {
            Some(forwarding) if self.broken || self.closing => _ = forwarding.leave(cx.now, &mut cx.local.buffers),
            Some(_) => {
                more |= self.serve_links(cx);
                self.flush(cx);
            }
            None => {}
        }
        more
    }

    /// Reads once. Returns whether the socket may have more.
    fn read(&mut self, cx: &mut Context<'_, '_>) -> io::Result<bool> {
        let mut input = std::mem::take(&mut cx.local.input);
        let between = self.transport.reader.is_between();
        let outcome = match self.forwarding.as_deref_mut().is_some_and(|forwarding| forwarding.begins(between)) {
            true => self.read_forwarding(cx, &mut input),
            false => self.read_conventional(cx, &mut input),
        };
        cx.local.input = self.keep_input(input, &mut cx.local.buffers);
        outcome
    }

    fn read_conventional(&mut self, cx: &mut Context<'_, '_>, input: &mut [u8]) -> io::Result<bool> {
        let destination = self.destination();
        let Transport { stream, reader, .. } = &mut self.transport;
        let arrived = match reader.direct(destination) {
            Some((tag, at, len)) => {
                let room = self.slots.room(tag, at, len, &mut cx.local.buffers);
                reader.read_direct(stream, room, input)
            }
            None => reader.read(stream, input),
        };
        let Some(arrived) = arrived? else { return Ok(false) };
        self.process(cx, &input[..arrived.bytes]);
        Ok(arrived.is_full)
    }

    /// Processes bytes that the forwarding path has left to the conventional path.
    pub(super) fn receive(&mut self, cx: &mut Context<'_, '_>, bytes: &[u8]) {
        let all = self.transport.reader.unread().join(bytes);
        self.process(cx, &all);
    }

    fn process(&mut self, cx: &mut Context<'_, '_>, mut bytes: &[u8]) {
        while !self.is_leaving() {
            let destination = self.destination();
            match self.transport.reader.next(&mut bytes, destination) {
                Step::Starved => return,
                Step::Header(head) => match &self.machine {
                    // The text of the PDU follows.
                    Machine::Login(_) if head.data_bytes > 0 => {}
                    Machine::Login(_) => self.log_in(cx, login::Input::Pdu { head, text: Box::default() }),
                    Machine::Full(_) => self.input(cx, Input::Header(head)),
                },
                Step::Data { id, at, piece } => {
                    self.slots.room(id, at, piece.len(), &mut cx.local.buffers).copy_from_slice(piece);
                }
                Step::Text { head, data, intact } => match &self.machine {
                    Machine::Login(_) => self.log_in(cx, login::Input::Pdu { head, text: data }),
                    Machine::Full(_) => self.input(cx, Input::Text { data, intact }),
                },
                Step::Segment { intact } => self.input(cx, Input::Segment { intact }),
                Step::Broken(why, head) => {
                    tracing::warn!(connection = self.id, peer = %self.peer, %why, "protocol");
                    self.log_in(cx, login::Input::TooLong(head));
                    self.closing = true;
                }
            }
        }
    }

    /// Destination of the current data segment.
    fn destination(&self) -> Destination {
        match &self.machine {
            Machine::Login(_) => Destination::Text,
            Machine::Full(session) => session.destination(),
        }
    }

    /// Passes an input to the login. After the login it is discarded.
    fn log_in(&mut self, cx: &mut Context<'_, '_>, input: login::Input) {
        let Machine::Login(machine) = &mut self.machine else { return };
        machine.handle(cx.now, input, &mut cx.lock().shared.directory);
        let mut established = None;
        while let Some(output) = machine.poll_output() {
            match output {
                login::Output::Send { head, text } => self.transport.egress.push(&head, text),
                login::Output::Done(done) => established = Some(done),
                login::Output::Close => {
                    let login::Refusal { initiator, target, status } = machine.refusal();
                    let status = status.map(tracing::field::display);
                    tracing::info!(connection = self.id, peer = %self.peer, initiator, target, status, "login rejected");
                    self.closing = true;
                }
            }
        }
        if let Some(established) = established {
            self.begin(cx, *established);
        }
    }

    /// Begins the full feature phase.
    fn begin(&mut self, cx: &mut Context<'_, '_>, established: Established) {
        let mut common = cx.lock();
        let Common { shared, stores } = &mut *common;
        if let Some(replaced) = established.replaces {
            shared.replaced.push(replaced);
        }
        if established.replaces.is_some() || shared.is_writing_for(&established.key) {
            self.waits = true;
            shared.waiting.push(self.id);
        }
        let target = established.key.target.map(usize::from);
        self.behind = shared.behind(&established.key);
        let name = target.map_or("discovery", |target| &shared.node.targets[target].name);
        tracing::info!(connection = self.id, peer = %self.peer, initiator = established.key.initiator, target = name, "session");
        let parameters = established.parameters;
        self.transport.agree(&parameters);
        self.transport.egress.number(Statuses::new(established.stat_sn));
        let device = self.behind.map(|behind| (behind.port, &mut stores.systems[behind.system].device));
        let session = Session::new(cx.now, established, shared.node.clone(), Limits::default(), device);
        self.machine = Machine::Full(Box::new(session));
        self.spreads = self.behind.is_some_and(|behind| stores.systems[behind.system].has_only_volumes());
        let forwards = self.behind.is_some_and(|behind| behind.forward);
        if let Some(engine) = stores.volumes.as_deref().filter(|_| forwards) {
            self.forwarding = Some(Box::new(Forwarding::new(self.id, parameters, engine)));
            if let Err(error) = bound_buffers(&self.transport.stream, HOST_SEND_BYTES) {
                tracing::debug!(connection = self.id, %error, "the socket buffer size cannot be set");
            }
        }
    }

    /// Passes an input to the session and executes its outputs. During a login it is discarded.
    fn input(&mut self, cx: &mut Context<'_, '_>, input: Input) {
        let Machine::Full(session) = &mut self.machine else { return };
        session.handle(cx.now, input, device(self.behind, &mut cx.lock().stores));
        self.drain(cx);
    }

    /// Executes the outputs of the session, unless a PDU of a back end is half sent.
    pub(super) fn drain(&mut self, cx: &mut Context<'_, '_>) {
        while !self.is_open() {
            let Machine::Full(session) = &mut self.machine else { return };
            let Some(output) = session.poll_output() else { break };
            let is_full = self.transport.egress.bytes >= MAX_OUTPUT_BYTES;
            let spare = &mut cx.local.buffers;
            match output {
                Output::Send { head, data } => self.transport.egress.push(&head, data),
                Output::Data { tag, head, at } => {
                    let buffer = self.slots.sending(tag, spare);
                    self.transport.egress.push_data(&head, buffer, at);
                }
                Output::Io(io) if io.op == IoOp::Read && is_full => {
                    self.parked.push_back(io);
                }
                Output::Io(io) => self.start_io(cx, io),
                Output::Fetch { tag, bytes } => {
                    let mut buffer = self.slots.take(tag, spare);
                    buffer.truncate(bytes as usize);
                    let input = Input::Parameters { tag, bytes: buffer };
                    session.handle(cx.now, input, device(self.behind, &mut cx.lock().stores));
                }
                Output::Release(tag) => self.slots.release(tag, spare),
                Output::Cancel(tag) => {
                    self.parked.retain(|io| io.tag != tag);
                    self.slots.release(tag, spare);
                }
                Output::Recall(tag) => self.recall(cx, tag),
                // Block I/O begins when all data have arrived.
                Output::Arrived { .. } => {}
                Output::Ends(ends) => {
                    if let Some(behind) = self.behind {
                        cx.lock().shared.ends.push((behind, ConnectionId(self.id), ends));
                    }
                }
                Output::Reset => cx.lock().shared.resets.extend(self.behind),
                Output::Close(reason) => {
                    // A silent initiator does not receive the remaining PDUs either.
                    self.broken |= reason == CloseReason::Silent;
                    match reason {
                        CloseReason::Protocol | CloseReason::Silent => {
                            tracing::warn!(connection = self.id, peer = %self.peer, ?reason, "session ends");
                        }
                        _ => tracing::info!(connection = self.id, peer = %self.peer, ?reason, "session ends"),
                    }
                    self.closing = true;
                }
            }
        }
        self.drain_device(cx);
    }

    /// Executes the outputs of the device.
    pub(super) fn drain_device(&self, cx: &mut Context<'_, '_>) {
        if let Some(behind) = self.behind {
            cx.lock().stores.systems[behind.system].drain_outside(cx.now);
        }
    }

    fn start_io(&mut self, cx: &mut Context<'_, '_>, io: Io) {
        let Io { tag, unit, op, lba, blocks, bytes, fua, .. } = io;
        let Some(behind) = self.behind else { return };
        let data = self.slots.take(tag, &mut cx.local.buffers);
        let (work, owner) = (BlockWork { op, lba, blocks, bytes, fua }, Owner::Session { connection: self.id });
        let outcome = cx.lock().stores.systems[behind.system].perform(unit, owner, tag, work, data);
        let Some((data, status)) = outcome else { return };
        self.slots.put(tag, data, &mut cx.local.buffers);
        let Machine::Full(session) = &mut self.machine else { return };
        session.handle(cx.now, Input::IoDone { tag, status }, device(self.behind, &mut cx.lock().stores));
    }

    /// Passes the end of an I/O to the session. The results leave with the next
    /// [`flush`](Self::flush).
    pub(super) fn complete_io(&mut self, cx: &mut Context<'_, '_>, tag: IoTag, status: IoStatus, data: Vec<u8>) {
        self.slots.put(tag, data, &mut cx.local.buffers);
        self.input(cx, Input::IoDone { tag, status });
    }

    /// Passes a notice of the device or of another session to the session.
    pub(super) fn notice(&mut self, cx: &mut Context<'_, '_>, notice: Notice) {
        self.input(cx, Input::Notice(notice));
        self.flush(cx);
    }

    /// Reports to the session that the tasks of other sessions that it aborted have ended.
    pub(super) fn others_ended(&mut self, cx: &mut Context<'_, '_>) {
        self.input(cx, Input::OthersEnded);
        self.flush(cx);
    }

    pub(super) fn timeout(&mut self, cx: &mut Context<'_, '_>) {
        match &self.machine {
            Machine::Login(_) => self.log_in(cx, login::Input::Timeout),
            Machine::Full(_) => {
                self.input(cx, Input::Timeout);
                // While a PDU is half sent, the close request of a silent session is not drained.
                self.broken |= self.is_open() && self.session().is_some_and(Session::is_over);
                self.forward_timeout(cx);
                self.advance_links(cx);
            }
        }
        self.flush(cx);
    }

    pub(super) fn shut_down(&mut self, cx: &mut Context<'_, '_>) {
        match &self.machine {
            Machine::Login(_) => self.closing = true,
            Machine::Full(_) => self.input(cx, Input::Shutdown),
        }
        self.flush(cx);
    }

    /// Sends as much as the socket accepts, and starts parked reads while there is room.
    pub(super) fn flush(&mut self, cx: &mut Context<'_, '_>) {
        if self.waits {
            return;
        }
        self.emit(cx, &[]);
        loop {
            if let Err(error) = self.transport.flush(&mut cx.local.buffers) {
                tracing::debug!(connection = self.id, peer = %self.peer, %error, "connection lost");
                self.broken = true;
                return;
            }
            if self.unsent_bytes() >= MAX_OUTPUT_BYTES {
                return;
            }
            let Some(io) = self.parked.pop_front() else { return };
            self.start_io(cx, io);
            self.drain(cx);
            self.emit(cx, &[]);
        }
    }

    /// Ends the session. Returns its forwarding path, whose back-end connections may still have to
    /// log out.
    pub(super) fn end(mut self, cx: &mut Context<'_, '_>) -> Option<Box<Forwarding>> {
        let mut common = cx.lock();
        let Common { shared, stores } = &mut *common;
        if let Some(forwarding) = &mut self.forwarding {
            forwarding.close(cx.now, stores, &mut cx.local.buffers);
        }
        if let Machine::Full(session) = &mut self.machine {
            let writes = session.close(device(self.behind, stores));
            if !writes.is_empty() {
                shared.writing.insert(self.id, (session.key().clone(), writes));
            }
            shared.directory.leave(session.key(), ConnectionId(self.id));
            let Counters { commands, read_bytes, written_bytes, rejects, aborted, .. } = *session.counters();
            tracing::info!(connection = self.id, peer = %self.peer, commands, read_bytes, written_bytes, rejects, aborted, "session ended");
        }
        self.forwarding
    }
}

/// Device of a session; `None` in discovery.
fn device<'s>(behind: Option<Behind>, stores: &'s mut Stores<'_>) -> Option<&'s mut Device> {
    behind.and_then(|behind| stores.systems.get_mut(behind.system)).map(|system| &mut system.device)
}
