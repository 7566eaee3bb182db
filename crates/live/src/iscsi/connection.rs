//! One initiator at a portal: [`Connection`].

use super::buffers::Slots;
use super::forward::Forwarding;
use super::output::Egress;
use super::{Behind, Shared, Stores};
use crate::poll::Interest;
use crate::storage::medium::BlockWork;
use crate::storage::workers::Owner;
use crate::sys::stream::bound_buffers;
use rustix::net::sockopt;
use sanloom_core::iscsi::Framer;
use sanloom_core::iscsi::framer::{Taken, Want};
use sanloom_core::iscsi::sequence::Statuses;
use sanloom_core::iscsi::target::{
    CloseReason, ConnectionId, Counters, Established, Input, Limits, Login, Output, Place, Session, login,
};
use sanloom_core::scsi::{Device, Io, IoOp, IoStatus, IoTag, Notice};
use sanloom_core::time::{Instant, Span};
use sanloom_wire::iscsi::{DEFAULT_SEGMENT_BYTES, Head};
use std::collections::VecDeque;
use std::io::{self, IoSliceMut, Read};
use std::net::{SocketAddr, TcpStream};

/// Reads in one turn; then it is the others' turn.
const READS_IN_TURN: usize = 8;
/// So much data that is still to come goes straight to its buffer.
const DIRECT_BYTES: u32 = 8 << 10;
/// Nothing more is read from an initiator that has so much to fetch, and no more reads begin.
const MAX_OUTPUT_BYTES: usize = 16 << 20;
/// So much waits in the kernel for a host that reads and writes are forwarded for: with less the host sleeps in between, with more what it reads
/// is no longer in the processor's cache. At 16 KiB to 1 MiB, depth 8 and 32, reads gave 0.72, 0.76 and 0.74 of end to end with 128, 192 and 256 KiB, and
/// 0.56 with what the kernel takes by itself.
const HOST_SEND_BYTES: usize = 192 << 10;

/// An initiator fetches what is left for it in this time before its connection is closed.
const FAREWELL: Span = Span::from_secs(5);

/// Who speaks for the target.
#[derive(Debug)]
pub(super) enum Machine {
    Login(Box<Login>),
    Full(Box<Session>),
}

/// A connection.
#[derive(Debug)]
pub(super) struct Connection {
    pub(super) id: u64,
    pub(super) stream: TcpStream,
    pub(super) peer: SocketAddr,
    framer: Framer,
    pub(super) machine: Machine,
    pub(super) behind: Option<Behind>,
    /// The beginning of something that is not complete.
    pending: Vec<u8>,
    /// A data segment that is collected.
    text: Vec<u8>,
    /// Bytes of the data segment that have come.
    got: u32,
    slots: Slots,
    pub(super) output: Egress,
    /// Reads that wait until the initiator fetches.
    parked: VecDeque<Io>,
    /// Closed once everything has been sent.
    closing: bool,
    /// Since when it is only left to be sent.
    leaving: Option<Instant>,
    pub(super) broken: bool,
    /// There is something to read.
    pub(super) readable: bool,
    /// What passes by the session.
    pub(super) forwarding: Option<Box<Forwarding>>,
    /// The session took the place of one that is still writing: its login is answered when that is over.
    pub(super) waits: bool,
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
            stream,
            peer,
            framer: Framer::new(DEFAULT_SEGMENT_BYTES),
            machine: Machine::Login(Box::new(Login::new(now, config))),
            behind: None,
            pending: Vec::new(),
            text: Vec::new(),
            got: 0,
            slots: Slots::default(),
            output: Egress::default(),
            parked: VecDeque::new(),
            closing: false,
            leaving: None,
            broken: false,
            readable: true,
            forwarding: None,
            waits: false,
        }
    }

    pub(super) fn session(&self) -> Option<&Session> {
        match &self.machine {
            Machine::Full(session) => Some(session),
            Machine::Login(_) => None,
        }
    }

    /// What to wait for.
    pub(super) fn interest(&self) -> Interest {
        Interest { read: self.wants_input(), write: self.output.blocked && !self.output.is_empty() }
    }

    fn wants_input(&self) -> bool {
        let room = self.forwarding.as_ref().is_none_or(|forwarding| forwarding.has_room());
        // In the middle of a PDU of a back end what the session says waits, and nobody counts it.
        let waits = self.is_open() && self.session().is_some_and(Session::has_output);
        !self.is_leaving() && !self.waits && room && !waits && self.output.bytes < MAX_OUTPUT_BYTES
    }

    /// Nothing more is heard of it.
    pub(super) fn is_leaving(&self) -> bool {
        self.broken || self.closing
    }

    /// Nothing more is to be done for it.
    pub(super) fn is_over(&self) -> bool {
        self.broken || (self.closing && self.output.is_empty())
    }

    /// Ends when everything has been sent.
    pub(super) fn close_when_sent(&mut self) {
        self.closing = true;
    }

    /// What was to be sent before the end is not fetched: it is given up. True if so.
    pub(super) fn lose_patience(&mut self, now: Instant) -> bool {
        if self.closing && now >= *self.leaving.get_or_insert(now) + FAREWELL {
            tracing::warn!(connection = self.id, peer = %self.peer, bytes = self.output.bytes, "not fetched, closed");
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

    /// Reads and does what there is, and sends what it can. True if there may be more.
    pub(super) fn serve(&mut self, now: Instant, shared: &mut Shared, stores: &mut Stores<'_>) -> bool {
        self.flush(now, shared, stores);
        if self.readable && !self.wants_input() {
            // Nothing is read, so nothing else would tell that it is gone, but the poller, again and again.
            self.broken |= !matches!(sockopt::socket_error(&self.stream), Ok(Ok(())));
        }
        let mut more = false;
        for turn in 0..READS_IN_TURN {
            if !self.readable || !self.wants_input() {
                break;
            }
            let read = self.read(now, shared, stores);
            self.flush(now, shared, stores);
            match read {
                Ok(true) => more = turn + 1 == READS_IN_TURN,
                Ok(false) => self.readable = false,
                Err(error) => {
                    tracing::debug!(connection = self.id, peer = %self.peer, %error, "connection lost");
                    self.broken = true;
                }
            }
        }
        more &= self.wants_input();
        match &mut self.forwarding {
            Some(forwarding) if self.broken || self.closing => _ = forwarding.leave(now, &mut shared.buffers),
            Some(_) => {
                more |= self.serve_links(now, shared, stores);
                self.flush(now, shared, stores);
            }
            None => {}
        }
        more
    }

    /// Reads once. False if there was nothing, or not as much as there was room for.
    fn read(&mut self, now: Instant, shared: &mut Shared, stores: &mut Stores<'_>) -> io::Result<bool> {
        let mut input = std::mem::take(&mut shared.input);
        let outcome = self.read_with(&mut input, now, shared, stores);
        shared.input = self.keep_input(input, &mut shared.buffers);
        outcome
    }

    fn read_with(
        &mut self,
        input: &mut [u8],
        now: Instant,
        shared: &mut Shared,
        stores: &mut Stores<'_>,
    ) -> io::Result<bool> {
        let between = self.framer.is_idle() && self.pending.is_empty();
        if self.forwarding.as_deref_mut().is_some_and(|forwarding| forwarding.begins(between)) {
            return self.read_forwarding(input, now, shared, stores);
        }
        let (mut got, room);
        match (self.framer.want(), self.place()) {
            (Want::Data(left), Place::Buffer { tag, at }) if left >= DIRECT_BYTES => {
                let from = (at + self.got) as usize;
                let buffer = self.slots.room(tag, from, left as usize, &mut shared.buffers);
                room = buffer.len() + input.len();
                got = match self.stream.read_vectored(&mut [IoSliceMut::new(buffer), IoSliceMut::new(input)]) {
                    Ok(got) => got,
                    Err(error) => return nothing_yet(error),
                };
                let direct = got.min(left as usize);
                let taken = self.framer.data(&buffer[..direct]);
                self.got += direct as u32;
                self.taken(now, taken, shared, stores);
                if got == 0 {
                    return Err(io::ErrorKind::UnexpectedEof.into());
                }
                got -= direct;
                self.process(now, &input[..got], shared, stores);
                return Ok(got + direct == room);
            }
            _ => {
                let kept = self.pending.len();
                input[..kept].copy_from_slice(&self.pending);
                room = input.len() - kept;
                got = match self.stream.read(&mut input[kept..]) {
                    Ok(0) => return Err(io::ErrorKind::UnexpectedEof.into()),
                    Ok(got) => got,
                    Err(error) => return nothing_yet(error),
                };
                self.pending.clear();
                self.process(now, &input[..kept + got], shared, stores);
            }
        }
        Ok(got == room)
    }

    /// The conventional path has these bytes.
    pub(super) fn hear(&mut self, now: Instant, bytes: &[u8], shared: &mut Shared, stores: &mut Stores<'_>) {
        if self.pending.is_empty() {
            return self.process(now, bytes, shared, stores);
        }
        let mut all = std::mem::take(&mut self.pending);
        all.extend_from_slice(bytes);
        self.process(now, &all, shared, stores);
    }

    /// Follows what has come.
    fn process(&mut self, now: Instant, mut bytes: &[u8], shared: &mut Shared, stores: &mut Stores<'_>) {
        while !self.closing && !self.broken {
            let taken = match self.framer.want() {
                Want::Bytes(needed) => {
                    let Some((piece, rest)) = bytes.split_at_checked(needed) else {
                        self.pending.extend_from_slice(bytes);
                        return;
                    };
                    bytes = rest;
                    self.framer.take(piece)
                }
                Want::Data(left) => {
                    if bytes.is_empty() {
                        return;
                    }
                    let (piece, rest) = bytes.split_at(bytes.len().min(left as usize));
                    bytes = rest;
                    match self.place() {
                        Place::Text => self.text.extend_from_slice(piece),
                        Place::Buffer { tag, at } => {
                            let from = (at + self.got) as usize;
                            self.slots.room(tag, from, piece.len(), &mut shared.buffers).copy_from_slice(piece);
                        }
                        Place::Skip => {}
                    }
                    self.got += piece.len() as u32;
                    self.framer.data(piece)
                }
            };
            self.taken(now, taken, shared, stores);
        }
    }

    /// Where the data segment under way goes.
    fn place(&self) -> Place {
        match &self.machine {
            Machine::Login(_) => Place::Text,
            Machine::Full(session) => session.place(),
        }
    }

    fn taken(&mut self, now: Instant, taken: Taken, shared: &mut Shared, stores: &mut Stores<'_>) {
        match taken {
            Taken::More => {}
            Taken::Broken(why) => {
                tracing::warn!(connection = self.id, peer = %self.peer, %why, "protocol");
                if let (Machine::Login(_), Ok(head)) = (&self.machine, Head::parse(&self.framer.bhs().0)) {
                    self.login(now, login::Input::TooLong(head), shared, stores);
                }
                self.closing = true;
            }
            Taken::Header => {
                self.got = 0;
                self.text.clear();
                let Ok(head) = Head::parse(&self.framer.bhs().0) else { return };
                match &self.machine {
                    Machine::Login(_) if head.data_bytes > 0 => {}
                    Machine::Login(_) => {
                        self.login(now, login::Input::Pdu { head, text: Box::default() }, shared, stores)
                    }
                    Machine::Full(_) => self.tell(now, Input::Header(head), shared, stores),
                }
            }
            Taken::Segment { intact } => match &self.machine {
                Machine::Login(_) => {
                    let Ok(head) = Head::parse(&self.framer.bhs().0) else { return };
                    let text = std::mem::take(&mut self.text).into();
                    self.login(now, login::Input::Pdu { head, text }, shared, stores);
                }
                Machine::Full(session) if session.place() == Place::Text => {
                    let data = std::mem::take(&mut self.text).into();
                    self.tell(now, Input::Text { data, intact }, shared, stores);
                }
                Machine::Full(_) => self.tell(now, Input::Segment { intact }, shared, stores),
            },
        }
    }

    fn login(&mut self, now: Instant, input: login::Input, shared: &mut Shared, stores: &mut Stores<'_>) {
        let Machine::Login(machine) = &mut self.machine else { return };
        machine.handle(now, input, &mut shared.directory);
        let mut established = None;
        while let Some(output) = machine.poll_output() {
            match output {
                login::Output::Send { head, text } => self.output.push(&head, text),
                login::Output::Done(done) => established = Some(done),
                login::Output::Close => {
                    let login::Refusal { initiator, target, status } = machine.refusal();
                    let status = status.map(tracing::field::display);
                    tracing::info!(connection = self.id, peer = %self.peer, initiator, target, status, "login refused");
                    self.closing = true;
                }
            }
        }
        if let Some(established) = established {
            self.begin(now, *established, shared, stores);
        }
    }

    /// The full feature phase.
    fn begin(&mut self, now: Instant, established: Established, shared: &mut Shared, stores: &mut Stores<'_>) {
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
        self.framer.agree(parameters.header_digest, parameters.data_digest, parameters.receive_bytes);
        self.output.agree(parameters.header_digest, parameters.data_digest);
        self.output.number(Statuses::new(established.stat_sn));
        let device = self.behind.map(|behind| (behind.port, &mut stores.systems[behind.system].device));
        let session = Session::new(now, established, shared.node.clone(), Limits::default(), device);
        self.machine = Machine::Full(Box::new(session));
        let forwards = self.behind.is_some_and(|behind| behind.forward);
        if let Some(engine) = stores.volumes.as_deref().filter(|_| forwards) {
            self.forwarding = Some(Box::new(Forwarding::new(self.id, parameters, engine)));
            if let Err(error) = bound_buffers(&self.stream, HOST_SEND_BYTES) {
                tracing::debug!(connection = self.id, %error, "cannot bound buffers");
            }
        }
    }

    fn tell(&mut self, now: Instant, input: Input, shared: &mut Shared, stores: &mut Stores<'_>) {
        let Machine::Full(session) = &mut self.machine else { return };
        session.handle(now, input, device(self.behind, stores));
        self.drain(now, shared, stores);
    }

    /// Carries what the session says. In the middle of a PDU of a back end it has to wait.
    pub(super) fn drain(&mut self, now: Instant, shared: &mut Shared, stores: &mut Stores<'_>) {
        while !self.is_open() {
            let Machine::Full(session) = &mut self.machine else { return };
            let Some(output) = session.poll_output() else { break };
            match output {
                Output::Send { head, data } => self.output.push(&head, data),
                Output::Data { tag, head, at } => {
                    let buffer = self.slots.sending(tag, &mut shared.buffers);
                    self.output.push_data(&head, buffer, at);
                }
                Output::Io(io) if io.op == IoOp::Read && self.output.bytes >= MAX_OUTPUT_BYTES => {
                    self.parked.push_back(io);
                }
                Output::Io(io) => self.io(now, io, shared, stores),
                Output::Fetch { tag, bytes } => {
                    let mut buffer = self.slots.take(tag, &mut shared.buffers);
                    buffer.truncate(bytes as usize);
                    session.handle(now, Input::Parameters { tag, bytes: buffer }, device(self.behind, stores));
                }
                Output::Release(tag) => self.slots.release(tag, &mut shared.buffers),
                Output::Cancel(tag) => {
                    self.parked.retain(|io| io.tag != tag);
                    self.slots.release(tag, &mut shared.buffers);
                }
                Output::Recall(tag) => self.recall(now, tag, stores),
                Output::Ends(ends) => {
                    if let Some(behind) = self.behind {
                        shared.ends.push((behind, ConnectionId(self.id), ends));
                    }
                }
                Output::Reset => shared.resets.extend(self.behind),
                Output::Close(reason) => {
                    // Who does not answer fetches nothing either.
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
        self.settle_device(now, stores);
    }

    /// Carries what the device says.
    pub(super) fn settle_device(&self, now: Instant, stores: &mut Stores<'_>) {
        if let Some(behind) = self.behind {
            stores.systems[behind.system].settle_device(now);
        }
    }

    fn io(&mut self, now: Instant, io: Io, shared: &mut Shared, stores: &mut Stores<'_>) {
        let Io { tag, unit, op, lba, blocks, bytes, fua, .. } = io;
        let Some(behind) = self.behind else { return };
        let data = self.slots.take(tag, &mut shared.buffers);
        let (work, owner) = (BlockWork { op, lba, blocks, bytes, fua }, Owner::Session { connection: self.id });
        let Some((data, status)) = stores.systems[behind.system].perform(unit, owner, tag, work, data) else { return };
        self.slots.put(tag, data, &mut shared.buffers);
        let Machine::Full(session) = &mut self.machine else { return };
        session.handle(now, Input::IoDone { tag, status }, device(self.behind, stores));
    }

    /// I/O has ended; what follows from it leaves with the next [`flush`](Self::flush).
    pub(super) fn io_done(
        &mut self,
        now: Instant,
        tag: IoTag,
        status: IoStatus,
        data: Vec<u8>,
        shared: &mut Shared,
        stores: &mut Stores<'_>,
    ) {
        self.slots.put(tag, data, &mut shared.buffers);
        self.tell(now, Input::IoDone { tag, status }, shared, stores);
    }

    pub(super) fn notice(&mut self, now: Instant, notice: Notice, shared: &mut Shared, stores: &mut Stores<'_>) {
        self.tell(now, Input::Notice(notice), shared, stores);
        self.flush(now, shared, stores);
    }

    pub(super) fn others_ended(&mut self, now: Instant, shared: &mut Shared, stores: &mut Stores<'_>) {
        self.tell(now, Input::OthersEnded, shared, stores);
        self.flush(now, shared, stores);
    }

    pub(super) fn timeout(&mut self, now: Instant, shared: &mut Shared, stores: &mut Stores<'_>) {
        match &self.machine {
            Machine::Login(_) => self.login(now, login::Input::Timeout, shared, stores),
            Machine::Full(_) => {
                self.tell(now, Input::Timeout, shared, stores);
                // Who does not fetch the rest of a PDU does not answer either.
                self.broken |= self.is_open() && self.session().is_some_and(Session::is_over);
                self.forward_timeout(now, shared, stores);
                self.tend_links(now, shared, stores);
            }
        }
        self.flush(now, shared, stores);
    }

    pub(super) fn shut_down(&mut self, now: Instant, shared: &mut Shared, stores: &mut Stores<'_>) {
        match &self.machine {
            Machine::Login(_) => self.closing = true,
            Machine::Full(_) => self.tell(now, Input::Shutdown, shared, stores),
        }
        self.flush(now, shared, stores);
    }

    /// Sends what the socket takes, and lets reads go on that waited for it.
    pub(super) fn flush(&mut self, now: Instant, shared: &mut Shared, stores: &mut Stores<'_>) {
        if self.waits {
            return;
        }
        self.emit(now, &[], shared, stores);
        loop {
            if let Err(error) = self.output.flush(&mut self.stream, &mut shared.buffers) {
                tracing::debug!(connection = self.id, peer = %self.peer, %error, "connection lost");
                self.broken = true;
                return;
            }
            if self.output.bytes >= MAX_OUTPUT_BYTES {
                return;
            }
            let Some(io) = self.parked.pop_front() else { return };
            self.io(now, io, shared, stores);
            self.drain(now, shared, stores);
            self.emit(now, &[], shared, stores);
        }
    }

    /// The last call. What it has left with back ends.
    pub(super) fn end(mut self, now: Instant, shared: &mut Shared, stores: &mut Stores<'_>) -> Option<Box<Forwarding>> {
        if let Some(forwarding) = &mut self.forwarding {
            forwarding.close(now, stores, &mut shared.buffers);
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

/// The device of a session.
fn device<'s>(behind: Option<Behind>, stores: &'s mut Stores<'_>) -> Option<&'s mut Device> {
    behind.and_then(|behind| stores.systems.get_mut(behind.system)).map(|system| &mut system.device)
}

fn nothing_yet(error: io::Error) -> io::Result<bool> {
    match error.kind() {
        io::ErrorKind::WouldBlock | io::ErrorKind::Interrupted => Ok(false),
        _ => Err(error),
    }
}
