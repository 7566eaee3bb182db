//! A host over TCP: the disks of an iSCSI target, offered to programs through NBD ([`IscsiInitiator`]).
//!
//! ```text
//!   target <-> Link: Framer, Login, Session <-> Disks: Scan, Disk <-> nbd::Connection <-> program
//! ```
//!
//! When the connection is lost, requests wait for another one, as those of a Fibre Channel host wait for its path.

mod disks;
mod link;
pub mod load;

use crate::clock::{Clock, until};
use crate::exports::{Asked, DiskWork, disk_work, export_of};
use crate::nbd::{NbdServer, Work};
use crate::poll::{Interest, Poller};
use crate::ports::PortError;
use disks::{Disks, Want, Who};
use link::{Buffers, Event, Link};
use rustix::net::{AddressFamily, SocketFlags, SocketType, connect, socket_with, sockopt};
use sanloom_core::disk::{Command as DiskCommand, Data, DiskConfig, End, Op, Reply};
use sanloom_core::fcp::DataDirection;
use sanloom_core::iscsi::chap::Credentials;
use sanloom_core::iscsi::initiator::{Command, Input, LoginConfig, LoginError, Outcome, SessionConfig};
use sanloom_core::iscsi::parameters::Wishes;
use sanloom_core::nbd::Limits;
use sanloom_core::time::{Instant, Span};
use sanloom_wire::lun::LunBytes;
use std::collections::BTreeMap;
use std::io;
use std::net::{SocketAddr, TcpStream};
use std::os::fd::AsFd;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

/// Tokens of the poller.
const TARGET: u64 = 0;
const NBD: u64 = 1;
/// How often the caller is asked whether to go on.
const LOOK: Span = Span::from_ms(100);
/// From a lost connection to the next attempt.
const RETRY: Span = Span::from_ms(500);
/// A login that takes longer is given up.
const LOGIN_TIME: Span = Span::from_secs(10);
/// Reads in one turn.
const READS_IN_TURN: usize = 8;
/// No more requests are taken while so much has to leave.
const MAX_OUTPUT_BYTES: usize = 16 << 20;

/// What an initiator is.
#[derive(Clone, Debug)]
pub struct IscsiInitiatorConfig {
    /// Where the target is.
    pub portal: SocketAddr,
    /// Its iSCSI name.
    pub target: String,
    /// Ours.
    pub initiator: String,
    /// What we prove.
    pub own: Option<Credentials>,
    /// What the target has to prove.
    pub target_proof: Option<Credentials>,
    /// What is wanted of the session.
    pub wishes: Wishes,
    /// How disks are used.
    pub disk: DiskConfig,
    /// Socket of the NBD server.
    pub nbd: PathBuf,
    /// What an NBD client may ask at once.
    pub limits: Limits,
}

/// Where the connection stands.
#[derive(Debug)]
enum State {
    /// The next attempt is then.
    Idle(Instant),
    Connecting(TcpStream, Instant),
    Linked(Box<Link>),
}

/// A command under way.
#[derive(Debug)]
struct Active {
    who: Who,
    command: DiskCommand,
    own: Own,
}

/// Data of a command that are none of a request.
#[derive(Debug)]
enum Own {
    None,
    In(Vec<u8>),
    Out(Arc<Vec<u8>>),
}

/// The buffer of a request.
#[derive(Debug)]
enum Buffer {
    In(Vec<u8>),
    Out(Arc<Vec<u8>>),
}

/// A request of an NBD client.
#[derive(Debug)]
struct Pending {
    asked: Asked,
    buffer: Buffer,
}

/// Commands and requests by number.
#[derive(Debug, Default)]
struct Store {
    commands: BTreeMap<u64, Active>,
    requests: BTreeMap<u64, Pending>,
}

impl Buffers for Store {
    fn room(&mut self, id: u64, at: usize, len: usize) -> Option<&mut [u8]> {
        let active = self.commands.get_mut(&id)?;
        match (&active.command.data, &mut active.own) {
            (Data::Buffer { tag, at: begin, .. }, _) => {
                let Buffer::In(buffer) = &mut self.requests.get_mut(tag)?.buffer else { return None };
                buffer.get_mut(*begin as usize + at..)?.get_mut(..len)
            }
            (_, Own::In(buffer)) => buffer.get_mut(at..)?.get_mut(..len),
            _ => None,
        }
    }

    fn data(&self, id: u64) -> Option<(Arc<Vec<u8>>, u32)> {
        let active = self.commands.get(&id)?;
        match (&active.command.data, &active.own) {
            (Data::Buffer { tag, at, .. }, _) => match &self.requests.get(tag)?.buffer {
                Buffer::Out(buffer) => Some((buffer.clone(), *at)),
                Buffer::In(_) => None,
            },
            (_, Own::Out(buffer)) => Some((buffer.clone(), 0)),
            _ => None,
        }
    }
}

/// An initiator that runs.
#[derive(Debug)]
pub struct IscsiInitiator {
    config: IscsiInitiatorConfig,
    state: State,
    disks: Disks,
    store: Store,
    /// The server of its disks.
    pub nbd: NbdServer,
    /// Time since the start.
    pub clock: Clock,
    poller: Poller,
    next_command: u64,
    next_request: u64,
    /// Units whose reset is under way, by its number.
    resets: BTreeMap<u64, LunBytes>,
    /// Where logins are sent, for this time.
    moved: Option<SocketAddr>,
    /// Why the last login failed; the same is not said twice.
    refused: Option<LoginError>,
    isid: [u8; 6],
}

impl IscsiInitiator {
    /// An initiator that has not connected yet.
    ///
    /// # Errors
    /// When the NBD socket cannot be opened, or the system gives us no descriptor.
    pub fn new(config: IscsiInitiatorConfig) -> Result<IscsiInitiator, PortError> {
        let failed = |error| PortError::Socket { path: config.nbd.clone(), error };
        let poller = Poller::new().map_err(failed)?;
        let nbd = NbdServer::listen(&config.nbd, Vec::new(), config.limits)?;
        // Type "random" (RFC 7143, section 11.12.5), so that two of us are two initiator ports.
        let mut isid = random::<6>().map_err(failed)?;
        isid[0] = 0x80;
        Ok(IscsiInitiator {
            state: State::Idle(Instant::ZERO),
            disks: Disks::new(config.disk),
            store: Store::default(),
            nbd,
            clock: Clock::start(),
            poller,
            next_command: 0,
            next_request: 0,
            resets: BTreeMap::new(),
            moved: None,
            refused: None,
            isid,
            config,
        })
    }

    /// Every disk that the target has listed can be used, and there is at least one.
    pub fn is_ready(&self) -> bool {
        let mut disks = self.disks.all().peekable();
        disks.peek().is_some() && disks.all(|(.., ready)| ready)
    }

    /// Runs until `go_on` says no. It is asked every 100 ms.
    ///
    /// # Errors
    /// When the system does not let us wait.
    pub fn run(&mut self, mut go_on: impl FnMut(&mut IscsiInitiator) -> bool) -> io::Result<()> {
        let mut busy = false;
        while go_on(self) {
            busy = self.turn(busy)?;
        }
        Ok(())
    }

    /// Logs out, and lets clients go as soon as what they have asked is done.
    pub fn shut_down(&mut self) {
        let now = self.clock.now();
        self.nbd.shut_down(now);
        if let State::Linked(link) = &mut self.state {
            link.tell(now, Input::LogOut, &mut self.store);
            let _ = link.flush();
        }
    }

    /// Waits until there is something to do, at most 100 ms, and does it. True if there is more that need not be waited for.
    ///
    /// # Errors
    /// When the system does not let us wait.
    pub fn turn(&mut self, busy: bool) -> io::Result<bool> {
        let (socket, interest, full) = match &self.state {
            State::Idle(_) => (None, Interest::default(), false),
            State::Connecting(stream, _) => (Some(stream.as_fd()), Interest { read: false, write: true }, false),
            State::Linked(link) => {
                let write = link.output.blocked && !link.output.is_empty();
                (Some(link.stream.as_fd()), Interest { read: true, write }, link.output.bytes >= MAX_OUTPUT_BYTES)
            }
        };
        self.poller.set(TARGET, socket, interest)?;
        self.poller.set(NBD, Some(self.nbd.descriptor()), Interest { read: !full, write: false })?;
        let now = self.clock.now();
        let wait = if busy { Duration::ZERO } else { until(now, self.next_timer(now)) };
        let (mut readable, mut writable, mut clients) = (busy, false, false);
        for event in self.poller.wait(wait)? {
            match event.token {
                TARGET => (readable, writable) = (readable | event.readable, event.writable),
                _ => clients = true,
            }
        }
        let now = self.clock.now();
        let nbd_due = self.nbd.poll_timeout().is_some_and(|at| at <= now);
        if clients || nbd_due {
            self.nbd.turn(now, Duration::ZERO)?;
        }
        self.connect(now, writable);
        let more = self.receive(now, readable, writable);
        if self.disks.poll_timeout().is_some_and(|at| at <= now) {
            self.disks.timeout(now);
        }
        self.serve(now);
        Ok(more)
    }

    fn next_timer(&self, now: Instant) -> Instant {
        let state = match &self.state {
            State::Idle(at) | State::Connecting(_, at) => Some(*at),
            State::Linked(link) => link.poll_timeout(),
        };
        let all = [state, self.disks.poll_timeout(), self.nbd.poll_timeout()];
        all.into_iter().flatten().fold(now + LOOK, Instant::min)
    }

    /// Opens a connection, or looks whether it is open.
    fn connect(&mut self, now: Instant, writable: bool) {
        match &self.state {
            State::Idle(at) if *at <= now => {
                let portal = self.moved.take().unwrap_or(self.config.portal);
                self.state = match open(portal) {
                    Ok(stream) => State::Connecting(stream, now + LOGIN_TIME),
                    Err(error) => {
                        tracing::debug!(%portal, %error, "no connection");
                        State::Idle(now + RETRY)
                    }
                };
            }
            State::Connecting(_, until) if writable || *until <= now => {
                let State::Connecting(stream, _) = std::mem::replace(&mut self.state, State::Idle(now + RETRY)) else {
                    return;
                };
                self.poller.remove(TARGET, stream.as_fd());
                let opened = sockopt::socket_error(&stream).map_err(io::Error::from).and_then(|outcome| Ok(outcome?));
                let prepared = opened.and_then(|()| stream.set_nodelay(true)).and_then(|()| random::<16>());
                match prepared {
                    Ok(challenge) if writable => {
                        let login = self.login(challenge);
                        let mut link = Link::new(now, stream, login, SessionConfig::default());
                        link.drain(now, &mut self.store);
                        self.state = State::Linked(Box::new(link));
                    }
                    Ok(_) => tracing::debug!("no connection in time"),
                    Err(error) => tracing::debug!(%error, "no connection"),
                }
            }
            _ => {}
        }
    }

    fn login(&self, challenge: [u8; 16]) -> LoginConfig {
        LoginConfig {
            initiator: self.config.initiator.clone(),
            target: Some(self.config.target.clone()),
            isid: self.isid,
            wishes: self.config.wishes,
            own: self.config.own.clone(),
            target_proof: self.config.target_proof.clone(),
            challenge,
            timeout: LOGIN_TIME,
        }
    }

    /// Takes what the target has sent. True if there may be more.
    fn receive(&mut self, now: Instant, readable: bool, writable: bool) -> bool {
        let mut more = false;
        let mut lost = None;
        if let State::Linked(link) = &mut self.state {
            link.output.blocked &= !writable;
            if link.poll_timeout().is_some_and(|at| at <= now) {
                link.timeout(now, &mut self.store);
            }
            for turn in 0..READS_IN_TURN {
                if !readable {
                    break;
                }
                match link.read(now, &mut self.store) {
                    Ok(true) => more = turn + 1 == READS_IN_TURN,
                    Ok(false) => break,
                    Err(error) => {
                        lost = Some(error.to_string());
                        break;
                    }
                }
            }
        }
        self.link_events(now);
        if let Some(why) = lost {
            self.lose(now, &why);
        }
        more
    }

    fn link_events(&mut self, now: Instant) {
        let events = match &mut self.state {
            State::Linked(link) => link.take_events(),
            State::Idle(_) | State::Connecting(..) => return,
        };
        for event in events {
            match event {
                Event::Up => {
                    tracing::info!(target = self.config.target, "logged in");
                    self.refused = None;
                    self.disks.path(now, true);
                }
                Event::Refused(LoginError::Moved { address, permanent }) => {
                    tracing::info!(address, permanent, "the target has moved");
                    match address.parse() {
                        Ok(portal) if permanent => self.config.portal = portal,
                        Ok(portal) => self.moved = Some(portal),
                        Err(_) => {}
                    }
                    self.lose(now, "moved");
                }
                Event::Refused(error) => {
                    if self.refused.as_ref() != Some(&error) {
                        tracing::warn!(target = self.config.target, %error, "login");
                    }
                    self.lose(now, &error.to_string());
                    self.refused = Some(error);
                }
                Event::Done(id, outcome) => self.ended(now, id, outcome),
                Event::Broken(why) => self.lose(now, &why.to_string()),
            }
        }
    }

    /// The connection is gone, and with it all its commands.
    fn lose(&mut self, now: Instant, why: &str) {
        let State::Linked(link) = std::mem::replace(&mut self.state, State::Idle(now + RETRY)) else { return };
        self.poller.remove(TARGET, link.stream.as_fd());
        tracing::info!(target = self.config.target, why, "the session is gone");
        // Those that listen hear of the path first, and do not count the ends of their commands.
        self.disks.path(now, false);
        for (_, active) in std::mem::take(&mut self.store.commands) {
            let id = active.command.id;
            self.disks.ended(now, active.who, Reply { id, end: End::PathGone });
        }
        for (_, lun) in std::mem::take(&mut self.resets) {
            self.disks.reset_done(now, lun, false);
        }
    }

    fn ended(&mut self, now: Instant, id: u64, outcome: Outcome) {
        if let Outcome::Reset { success } = outcome {
            if let Some(lun) = self.resets.remove(&id) {
                self.disks.reset_done(now, lun, success);
            }
            return;
        }
        let Some(active) = self.store.commands.remove(&id) else { return };
        let end = match outcome {
            Outcome::Completed { status, sense, transferred } => {
                let mut data = if let Own::In(data) = active.own { data } else { Vec::new() };
                data.truncate(transferred as usize);
                End::Status { status, sense, transferred, data: data.into() }
            }
            Outcome::TimedOut => End::TimedOut { aborted: true },
            Outcome::Failed | Outcome::Reset { .. } => End::Transport,
        };
        self.disks.ended(now, active.who, Reply { id: active.command.id, end });
    }

    /// Carries requests to the disks and commands to the target, until there are none.
    fn serve(&mut self, now: Instant) {
        loop {
            if let Some(work) = self.nbd.next_work() {
                self.work(now, work);
            } else if let Some(want) = self.disks.next_want() {
                self.want(now, want);
            } else {
                break;
            }
            self.link_events(now);
        }
        if let State::Linked(link) = &mut self.state
            && let Err(error) = link.flush()
        {
            self.lose(now, &error.to_string());
        }
    }

    fn want(&mut self, now: Instant, want: Want) {
        match want {
            Want::Command(who, command) => self.start(now, who, command),
            Want::Reset(lun) => {
                let id = self.next_command;
                self.next_command += 1;
                let State::Linked(link) = &mut self.state else { return self.disks.reset_done(now, lun, false) };
                self.resets.insert(id, lun);
                link.tell(now, Input::Reset { id, lun }, &mut self.store);
            }
            Want::DropPath => self.lose(now, "the target does not answer"),
            Want::Changed => {
                let target = &self.config.target;
                let export = |(number, lun, found, _): (u64, LunBytes, Option<&_>, bool)| {
                    let lun = crate::initiator::host::lun_name(lun);
                    found.map(|found| export_of(number, &format!("{target}-lun-{lun}"), found))
                };
                let exports: Vec<_> = self.disks.all().filter_map(export).collect();
                if exports != self.nbd.exports() {
                    self.nbd.set_exports(exports);
                }
            }
            Want::Done { tag, result } => {
                if let Some(Pending { asked, buffer }) = self.store.requests.remove(&tag) {
                    let data = match buffer {
                        Buffer::In(data) => data,
                        Buffer::Out(data) => Arc::try_unwrap(data).unwrap_or_default(),
                    };
                    asked.answer(now, &mut self.nbd, result, data);
                }
            }
        }
    }

    fn start(&mut self, now: Instant, who: Who, command: DiskCommand) {
        let State::Linked(link) = &mut self.state else {
            return self.disks.ended(now, who, Reply { id: command.id, end: End::PathGone });
        };
        let id = self.next_command;
        self.next_command += 1;
        let lun = match who {
            Who::Scan => [0; 8],
            Who::Disk(lun) => lun,
        };
        let (direction, own) = match &command.data {
            Data::None => (DataDirection::None, Own::None),
            Data::In { max_bytes } => (DataDirection::Read, Own::In(vec![0; *max_bytes as usize])),
            Data::Out(data) => (DataDirection::Write, Own::Out(Arc::new(data.to_vec()))),
            Data::Zeroes { bytes } => (DataDirection::Write, Own::Out(Arc::new(vec![0; *bytes as usize]))),
            Data::Buffer { write: true, .. } => (DataDirection::Write, Own::None),
            Data::Buffer { write: false, .. } => (DataDirection::Read, Own::None),
        };
        let submitted = Command { id, lun, cdb: command.cdb, direction, bytes: command.data.bytes() };
        self.store.commands.insert(id, Active { who, command, own });
        link.tell(now, Input::Submit(submitted), &mut self.store);
    }

    fn work(&mut self, now: Instant, work: Work) {
        let tag = self.next_request;
        self.next_request += 1;
        let Some(DiskWork { disk, asked, request, data }) = disk_work(now, &mut self.nbd, tag, work) else { return };
        let buffer = match request.op {
            Op::Write => Buffer::Out(Arc::new(data)),
            _ => Buffer::In(data),
        };
        self.store.requests.insert(tag, Pending { asked, buffer });
        self.disks.submit(now, disk, request);
    }
}

/// A connection that will be open, or not.
fn open(portal: SocketAddr) -> io::Result<TcpStream> {
    let family = if portal.is_ipv4() { AddressFamily::INET } else { AddressFamily::INET6 };
    let socket = socket_with(family, SocketType::STREAM, SocketFlags::NONBLOCK | SocketFlags::CLOEXEC, None)?;
    match connect(&socket, &portal) {
        Ok(()) | Err(rustix::io::Errno::INPROGRESS) => Ok(TcpStream::from(socket)),
        Err(error) => Err(error.into()),
    }
}

fn random<const N: usize>() -> io::Result<[u8; N]> {
    let mut bytes = [0; N];
    rustix::rand::getrandom(&mut bytes, rustix::rand::GetRandomFlags::empty())?;
    Ok(bytes)
}
