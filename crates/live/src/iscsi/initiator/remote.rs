//! A target of somebody's, through one of its portals at a time: [`Remote`].
//!
//! ```text
//!   socket <-> Link: Framer, Login, Session <-> Disks: Scan, Disk <-> whoever has requests
//! ```
//!
//! When the connection is lost, requests wait for another one, through the same portal or the next. The initiator session
//! identifier stays the same, so that a new session ends what the target still does for the old one before anything is repeated. Where an
//! instance before us had sessions, too, a login with each of their identifiers ends those first.

use super::config::{RemoteConfig, RemoteCounters};
use super::disks::{Disks, Want, Who};
use super::link::{Buffers, Event as LinkEvent, Link};
use super::socket::{open, opened, portal_of, random, random_isid};
use crate::poll::{Interest, Poller};
use sanloom_core::disk::{self, Command as DiskCommand, Data, Done, End, Error, Properties, Reply, Request};
use sanloom_core::fcp::DataDirection;
use sanloom_core::iscsi::Parameters;
use sanloom_core::iscsi::initiator::{Command, Input, LoginError, Outcome};
use sanloom_core::time::{Instant, Span};
use sanloom_wire::lun::LunBytes;
use std::collections::{BTreeMap, VecDeque};
use std::io;
use std::net::{SocketAddr, TcpStream};
use std::os::fd::AsFd;
use std::sync::Arc;

/// From a lost connection to the next attempt, when every portal was tried.
const RETRY: Span = Span::from_ms(500);
/// A connection that is not open after this time is given up.
pub(in crate::iscsi) const CONNECT_TIME: Span = Span::from_secs(3);
/// Reads in one turn.
const READS_IN_TURN: usize = 8;
/// No more requests should be given while so much has to leave.
const MAX_OUTPUT_BYTES: usize = 16 << 20;

/// The buffers of requests, by their tags.
pub(crate) trait Memory {
    /// Room for data of a request; it grows to what is needed.
    fn room(&mut self, tag: u64, at: usize, len: usize) -> Option<&mut [u8]>;
    /// Data of a request, and where in them they begin.
    fn data(&mut self, tag: u64) -> Option<(Arc<Vec<u8>>, u32)>;
}

/// What a target tells its owner.
#[derive(Debug)]
pub(crate) enum Event {
    /// A disk has come, changed, or gone.
    Changed,
    /// A request ended.
    Done { tag: u64, result: Result<Done, Error> },
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

/// The buffers of commands: their own, or those of their requests.
struct Both<'m, M: Memory> {
    commands: &'m mut BTreeMap<u64, Active>,
    memory: &'m mut M,
}

impl<M: Memory> Buffers for Both<'_, M> {
    fn room(&mut self, id: u64, at: usize, len: usize) -> Option<&mut [u8]> {
        let active = self.commands.get_mut(&id)?;
        match (&active.command.data, &mut active.own) {
            (Data::Buffer { tag, at: begin, .. }, _) => self.memory.room(*tag, *begin as usize + at, len),
            (_, Own::In(buffer)) => buffer.get_mut(at..)?.get_mut(..len),
            _ => None,
        }
    }

    fn data(&mut self, id: u64) -> Option<(Arc<Vec<u8>>, u32)> {
        let active = self.commands.get(&id)?;
        match (&active.command.data, &active.own) {
            (Data::Buffer { tag, at, .. }, _) => {
                let (buffer, begin) = self.memory.data(*tag)?;
                Some((buffer, begin + at))
            }
            (_, Own::Out(buffer)) => Some((buffer.clone(), 0)),
            _ => None,
        }
    }
}

/// A target.
#[derive(Debug)]
pub(crate) struct Remote {
    config: RemoteConfig,
    /// Its place in the poller.
    token: u64,
    state: State,
    disks: Disks,
    commands: BTreeMap<u64, Active>,
    next_command: u64,
    /// Units whose reset is under way, by its number.
    resets: BTreeMap<u64, LunBytes>,
    /// Which portal is used, or tried.
    portal: usize,
    /// Portals that were tried since a session was there.
    tried: usize,
    /// Where logins are sent, for this time.
    moved: Option<SocketAddr>,
    /// Why the last login failed; the same is not said twice.
    refused: Option<LoginError>,
    /// Why there is no session.
    why: String,
    isid: [u8; 6],
    /// Sessions of an instance before us that may be there: each is ended by a login in its place.
    before: VecDeque<[u8; 6]>,
    /// Since when it may be another target than it was, or its disks other ones.
    doubted: Option<Instant>,
    /// The target is to be asked whether it is there, or logged in to anew.
    ask: bool,
    renew: bool,
    readable: bool,
    writable: bool,
    events: VecDeque<Event>,
    counters: RemoteCounters,
}

impl Remote {
    /// A target that is not connected yet.
    ///
    /// # Errors
    /// When the system gives no random numbers.
    pub(crate) fn new(config: RemoteConfig, token: u64) -> io::Result<Remote> {
        Ok(Remote::at_port(config, token, random_isid()?, VecDeque::new()))
    }

    /// The same, with an initiator session identifier that is ours, and those of an instance before us.
    pub(crate) fn at_port(config: RemoteConfig, token: u64, isid: [u8; 6], before: VecDeque<[u8; 6]>) -> Remote {
        Remote {
            state: State::Idle(Instant::ZERO),
            disks: Disks::new(config.disk),
            token,
            commands: BTreeMap::new(),
            next_command: 0,
            resets: BTreeMap::new(),
            portal: 0,
            tried: 0,
            moved: None,
            refused: None,
            why: "not tried yet".to_owned(),
            isid,
            before,
            doubted: None,
            ask: false,
            renew: false,
            readable: false,
            writable: false,
            events: VecDeque::new(),
            counters: RemoteCounters::default(),
            config,
        }
    }

    /// Its name and portals.
    pub(crate) fn config(&self) -> &RemoteConfig {
        &self.config
    }

    /// What was counted so far.
    pub(crate) fn counters(&self) -> RemoteCounters {
        self.counters
    }

    /// There will be a disk at this LUN: requests for it may come before the target is reached, and wait until it is known to be the
    /// one with this name. Its number. Once for each LUN.
    pub(crate) fn expect(&mut self, now: Instant, lun: LunBytes, name: Option<&str>) -> u64 {
        self.disks.expect(now, lun, name)
    }

    /// Why the requests of a disk fail at once, by its number.
    pub(crate) fn unusable(&self, disk: u64) -> Option<disk::Error> {
        self.disks.unusable(disk)
    }

    /// The disks that the target lists: number, LUN, what they are, and whether they can be used.
    pub(crate) fn disks(&self) -> impl Iterator<Item = (u64, LunBytes, Option<&Properties>, bool)> {
        self.disks.all()
    }

    /// The target has a disk of this number.
    pub(crate) fn lists(&self, disk: u64) -> bool {
        self.disks.all().any(|(number, ..)| number == disk)
    }

    /// What a disk is that can be used now, by its number.
    pub(crate) fn ready(&self, disk: u64) -> Option<&Properties> {
        self.disks.all().find(|(number, .., ready)| *number == disk && *ready).and_then(|(_, _, found, _)| found)
    }

    /// What was counted of the requests for a disk, by its number.
    pub(crate) fn disk_counters(&self, disk: u64) -> disk::Counters {
        self.disks.counters(disk)
    }

    /// A request for a disk, by its number.
    pub(crate) fn submit(&mut self, now: Instant, disk: u64, request: Request) {
        self.disks.submit(now, disk, request);
    }

    /// What has happened.
    pub(crate) fn next_event(&mut self) -> Option<Event> {
        self.events.pop_front()
    }

    /// What was agreed with the target, while there is a session.
    pub(crate) fn parameters(&self) -> Option<Parameters> {
        match &self.state {
            State::Linked(link) => link.parameters(),
            State::Idle(_) | State::Connecting(..) => None,
        }
    }

    /// Something says that the target may be another one than it was, or, with `changed`, that its disks may: our session looks at them
    /// before anybody passes it by again.
    pub(crate) fn doubt(&mut self, now: Instant, changed: bool) {
        self.doubted = Some(now);
        self.ask = true;
        self.renew |= changed;
    }

    /// Our session has heard of the target since there was any doubt.
    pub(crate) fn is_certain(&self) -> bool {
        let heard = match &self.state {
            State::Linked(link) => link.heard(),
            State::Idle(_) | State::Connecting(..) => None,
        };
        !self.renew && self.doubted.is_none_or(|since| heard.is_some_and(|heard| heard > since))
    }

    /// The portal of the session, or why there is none.
    pub(crate) fn path(&self) -> Result<SocketAddr, &str> {
        match &self.state {
            State::Linked(link) if link.is_up() && self.before.is_empty() => Ok(self.portal()),
            _ => Err(&self.why),
        }
    }

    fn portal(&self) -> SocketAddr {
        self.config.portals[self.portal % self.config.portals.len()]
    }

    /// So much has to leave that no more requests should come.
    pub(crate) fn is_full(&self) -> bool {
        matches!(&self.state, State::Linked(link) if link.output.bytes >= MAX_OUTPUT_BYTES)
    }

    /// Waits for what there is to wait for.
    ///
    /// # Errors
    /// When the descriptor cannot be waited for.
    pub(crate) fn watch(&self, poller: &mut Poller) -> io::Result<()> {
        let (socket, interest) = match &self.state {
            State::Idle(_) => (None, Interest::default()),
            State::Connecting(stream, _) => (Some(stream.as_fd()), Interest { read: false, write: true }),
            State::Linked(link) => {
                let write = link.output.blocked && !link.output.is_empty();
                (Some(link.stream.as_fd()), Interest { read: true, write })
            }
        };
        poller.set(self.token, socket, interest)
    }

    /// The poller has seen something.
    pub(crate) fn happened(&mut self, readable: bool, writable: bool) {
        self.readable |= readable;
        self.writable |= writable;
    }

    /// When to take a turn at the latest.
    pub(crate) fn poll_timeout(&self) -> Option<Instant> {
        let state = match &self.state {
            State::Idle(at) | State::Connecting(_, at) => Some(*at),
            State::Linked(link) => link.poll_timeout(),
        };
        [state, self.disks.poll_timeout()].into_iter().flatten().min()
    }

    /// Does what there is to do. True if there may be more to read.
    pub(crate) fn turn(&mut self, now: Instant, poller: &mut Poller, memory: &mut impl Memory) -> bool {
        let (readable, writable) = (std::mem::take(&mut self.readable), std::mem::take(&mut self.writable));
        if std::mem::take(&mut self.renew) {
            self.lose(now, "its disks are looked at anew", poller);
        }
        if std::mem::take(&mut self.ask)
            && let State::Linked(link) = &mut self.state
            && link.is_up()
        {
            link.tell(now, Input::Ping, &mut Both { commands: &mut self.commands, memory });
        }
        self.connect(now, writable, poller, memory);
        let more = self.receive(now, readable, writable, poller, memory);
        self.readable |= more;
        if self.disks.poll_timeout().is_some_and(|at| at <= now) {
            self.disks.timeout(now);
        }
        self.serve(now, poller, memory);
        more
    }

    /// Carries what the disks want, until they want nothing, and sends what the socket takes.
    pub(crate) fn serve(&mut self, now: Instant, poller: &mut Poller, memory: &mut impl Memory) {
        loop {
            while let Some(want) = self.disks.next_want() {
                self.want(now, want, poller, memory);
                self.link_events(now, poller, memory);
            }
            let State::Linked(link) = &mut self.state else { return };
            match link.flush() {
                Ok(()) => return,
                Err(error) => self.lose(now, &error.to_string(), poller),
            }
        }
    }

    /// Logs out.
    pub(crate) fn log_out(&mut self, now: Instant, memory: &mut impl Memory) {
        if let State::Linked(link) = &mut self.state {
            link.tell(now, Input::LogOut, &mut Both { commands: &mut self.commands, memory });
            let _ = link.flush();
        }
    }

    /// Opens a connection, or looks whether it is open.
    fn connect(&mut self, now: Instant, writable: bool, poller: &mut Poller, memory: &mut impl Memory) {
        match &self.state {
            State::Idle(at) if *at <= now => {
                let portal = self.moved.take().unwrap_or(self.portal());
                match open(portal) {
                    Ok(stream) => self.state = State::Connecting(stream, now + CONNECT_TIME),
                    Err(error) => self.try_next(now, &error.to_string()),
                }
            }
            State::Connecting(_, until) if writable || *until <= now => {
                let State::Connecting(stream, _) = std::mem::replace(&mut self.state, State::Idle(now + RETRY)) else {
                    return;
                };
                poller.remove(self.token, stream.as_fd());
                match opened(&stream).and_then(|()| random::<16>()) {
                    Ok(challenge) => {
                        let isid = self.before.front().copied().unwrap_or(self.isid);
                        let login = self.config.login(isid, self.config.wishes, challenge);
                        let mut link = Link::new(now, stream, login, self.config.session);
                        link.drain(now, &mut Both { commands: &mut self.commands, memory });
                        self.state = State::Linked(Box::new(link));
                        // What comes at once is not waited for.
                        self.readable = true;
                    }
                    Err(error) => self.try_next(now, &error.to_string()),
                }
            }
            _ => {}
        }
    }

    /// A portal does not answer: the next one, at once unless all were tried.
    fn try_next(&mut self, now: Instant, why: &str) {
        tracing::debug!(target = self.config.target, portal = %self.portal(), why, "no connection");
        why.clone_into(&mut self.why);
        self.portal = (self.portal + 1) % self.config.portals.len();
        self.tried += 1;
        let again = !self.tried.is_multiple_of(self.config.portals.len());
        self.state = State::Idle(if again { now } else { now + RETRY });
    }

    /// Takes what the target has sent. True if there may be more.
    fn receive(
        &mut self,
        now: Instant,
        readable: bool,
        writable: bool,
        poller: &mut Poller,
        memory: &mut impl Memory,
    ) -> bool {
        let mut more = false;
        let mut lost = None;
        if let State::Linked(link) = &mut self.state {
            let buffers = &mut Both { commands: &mut self.commands, memory };
            link.output.blocked &= !writable;
            if link.poll_timeout().is_some_and(|at| at <= now) {
                link.timeout(now, buffers);
            }
            for turn in 0..READS_IN_TURN {
                if !readable {
                    break;
                }
                match link.read(now, buffers) {
                    Ok(true) => more = turn + 1 == READS_IN_TURN,
                    Ok(false) => break,
                    Err(error) => {
                        lost = Some(error.to_string());
                        break;
                    }
                }
            }
        }
        self.link_events(now, poller, memory);
        if let Some(why) = lost {
            self.lose(now, &why, poller);
        }
        more
    }

    fn link_events(&mut self, now: Instant, poller: &mut Poller, memory: &mut impl Memory) {
        let events = match &mut self.state {
            State::Linked(link) => link.take_events(),
            State::Idle(_) | State::Connecting(..) => return,
        };
        for event in events {
            match event {
                LinkEvent::Up if !self.before.is_empty() => return self.ended_before(now, poller, memory),
                LinkEvent::Up => {
                    tracing::info!(target = self.config.target, portal = %self.portal(), "logged in");
                    self.refused = None;
                    self.counters.logins += 1;
                    self.disks.path(now, true);
                }
                LinkEvent::Refused(LoginError::Moved { address, permanent }) => {
                    tracing::info!(address, permanent, "the target has moved");
                    match portal_of(&address) {
                        Some(portal) if permanent => (self.config.portals, self.portal) = (vec![portal], 0),
                        Some(portal) => self.moved = Some(portal),
                        None => {}
                    }
                    self.lose(now, "moved", poller);
                }
                LinkEvent::Refused(error) => {
                    if self.refused.as_ref() != Some(&error) {
                        tracing::warn!(target = self.config.target, %error, "login");
                    }
                    self.lose(now, &error.to_string(), poller);
                    self.refused = Some(error);
                }
                LinkEvent::Done(id, outcome) => self.ended(now, id, outcome),
                LinkEvent::Broken(why) => self.lose(now, &why.to_string(), poller),
            }
        }
    }

    /// A session of the instance before us is over, and what it had to do: it was ours for a moment.
    fn ended_before(&mut self, now: Instant, poller: &mut Poller, memory: &mut impl Memory) {
        self.before.pop_front();
        self.log_out(now, memory);
        if let State::Linked(link) = std::mem::replace(&mut self.state, State::Idle(now)) {
            poller.remove(self.token, link.stream.as_fd());
        }
        if self.before.is_empty() {
            let target = &self.config.target;
            tracing::info!(target, "nothing is done there any more for the instance before this one");
        }
    }

    /// The connection is gone, and with it all its commands.
    fn lose(&mut self, now: Instant, why: &str, poller: &mut Poller) {
        if !matches!(self.state, State::Linked(_)) {
            return;
        }
        let State::Linked(link) = std::mem::replace(&mut self.state, State::Idle(now + RETRY)) else { return };
        poller.remove(self.token, link.stream.as_fd());
        tracing::info!(target = self.config.target, portal = %self.portal(), why, "the session is gone");
        why.clone_into(&mut self.why);
        if link.is_up() {
            self.counters.lost += 1;
        }
        if self.moved.is_none() && self.config.portals.len() > 1 {
            self.try_next(now, why);
        }
        // Those that listen hear of the path first, and do not count the ends of their commands.
        self.disks.path(now, false);
        for (_, active) in std::mem::take(&mut self.commands) {
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
        let Some(active) = self.commands.remove(&id) else { return };
        let end = match outcome {
            Outcome::Completed { status, sense, transferred } => {
                // A target that lets us in and does nothing is not better than one that does not answer.
                self.tried = 0;
                let mut data = if let Own::In(data) = active.own { data } else { Vec::new() };
                data.truncate(transferred as usize);
                End::Status { status, sense, transferred, data: data.into() }
            }
            Outcome::TimedOut => End::TimedOut { aborted: true },
            Outcome::Failed | Outcome::Reset { .. } => End::Transport,
        };
        self.disks.ended(now, active.who, Reply { id: active.command.id, end });
    }

    fn want(&mut self, now: Instant, want: Want, poller: &mut Poller, memory: &mut impl Memory) {
        match want {
            Want::Command(who, command) => self.start(now, who, command, memory),
            Want::Reset(lun) => {
                let id = self.next_command;
                self.next_command += 1;
                let State::Linked(link) = &mut self.state else { return self.disks.reset_done(now, lun, false) };
                self.resets.insert(id, lun);
                link.tell(now, Input::Reset { id, lun }, &mut Both { commands: &mut self.commands, memory });
            }
            Want::DropPath => self.lose(now, "the target does not answer", poller),
            Want::Changed => self.events.push_back(Event::Changed),
            Want::Done { tag, result } => self.events.push_back(Event::Done { tag, result }),
        }
    }

    fn start(&mut self, now: Instant, who: Who, command: DiskCommand, memory: &mut impl Memory) {
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
        self.commands.insert(id, Active { who, command, own });
        link.tell(now, Input::Submit(submitted), &mut Both { commands: &mut self.commands, memory });
    }
}
