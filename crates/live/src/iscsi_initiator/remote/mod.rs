//! An external target, used through one portal at a time: [`Remote`].
//!
//! ```text
//!   socket <-> Link: Framer, Login, Session <-> Disks: Scan, AccessProbe, Disk <-> issuer of requests
//!                ^ portal: Paths <---------- access states ------+
//! ```
//!
//! When the connection is lost, or a better portal is available, requests wait for the next
//! session. The initiator session identifier stays the same, so that a new session ends tasks of
//! the old one before any request is repeated. That holds within a portal group. In another one,
//! units with unfinished writes are reset (`stale.rs`). If the instance before a restart had
//! several sessions, a login with each of their identifiers ends them first.

mod commands;
mod connect;
mod stale;
mod troubles;

use super::config::{RemoteConfig, RemoteCounters};
use super::disks::Disks;
use super::link::Link;
use crate::poll::{Interest, Poller};
use crate::session::socket::random_isid;
use commands::{Active, Both};
use connect::Opening;
use sanloom_scsi::disk::{self, AccessGroup, Done, Error, Paths, Properties, Request, paths};
use sanloom_scsi::iscsi::Parameters;
use sanloom_scsi::iscsi::initiator::Input;
use sanloom_scsi::time::Instant;
use sanloom_wire::lun::LunBytes;
use stale::StaleWrites;
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::io;
use std::net::SocketAddr;
use std::os::fd::AsFd;
use std::sync::Arc;
use troubles::Troubles;

/// Unsent bytes at which no more requests should be submitted.
const MAX_OUTPUT_BYTES: usize = 16 << 20;

/// The buffers of requests, by their tags.
pub(crate) trait Memory {
    /// Returns space for data of a request; it grows as needed.
    fn room(&mut self, tag: u64, at: usize, len: usize) -> Option<&mut [u8]>;
    /// Returns the data of a request, and the offset at which they begin.
    fn data(&mut self, tag: u64) -> Option<(Arc<Vec<u8>>, u32)>;
}

/// Environment of one call.
#[derive(Debug)]
pub(crate) struct Context<'c, M> {
    /// Current time.
    pub(crate) now: Instant,
    /// Poller of the thread.
    pub(crate) poller: &'c mut Poller,
    /// Buffers of requests.
    pub(crate) memory: &'c mut M,
}

/// Event for the owner of a target.
#[derive(Debug)]
pub(crate) enum Event {
    /// A disk was added, changed or removed.
    Changed,
    /// A request ended.
    Done { tag: u64, result: Result<Done, Error> },
}

/// State of a portal for one unit.
#[derive(Debug)]
pub(crate) struct PortalSeen<'r> {
    /// Address.
    pub(crate) portal: SocketAddr,
    /// The session uses it.
    pub(crate) used: bool,
    /// Target port group of the portal, once it is known.
    pub(crate) group: Option<&'r AccessGroup>,
}

/// A target.
#[derive(Debug)]
pub(crate) struct Remote {
    config: RemoteConfig,
    /// Current address of each portal, after permanent redirections.
    portals: Vec<SocketAddr>,
    /// Token in the poller.
    token: u64,
    /// Selection of the portal.
    paths: Paths,
    /// A connection that will carry the session.
    opening: Option<Opening>,
    /// Time and address of the next connection for the login in progress.
    again: Option<(Instant, SocketAddr)>,
    /// Number of redirections of the login in progress; then the redirections logged since the last
    /// session.
    redirections: u8,
    redirected: BTreeSet<(SocketAddr, SocketAddr)>,
    /// A login is in progress, perhaps over several connections.
    logging_in: bool,
    /// The session, or its login.
    link: Option<Box<Link>>,
    /// Address of the session, or of the last one, after redirections.
    address: SocketAddr,
    /// Deadline at which the session ends for another portal, if commands are in flight until then.
    draining: Option<Instant>,
    disks: Disks,
    commands: BTreeMap<u64, Active>,
    next_command: u64,
    /// Units with a reset in flight, by its number.
    resets: BTreeMap<u64, LunBytes>,
    /// Unfinished writes of ended sessions.
    stale: StaleWrites,
    /// Problems of portals.
    troubles: Troubles,
    /// Reason why there is no session.
    why: String,
    isid: [u8; 6],
    /// Initiator session identifiers of the instance before the restart; a login with each ends its
    /// session.
    before: VecDeque<[u8; 6]>,
    /// Time since which the target or its disks may have been replaced.
    doubted: Option<Instant>,
    /// The session must ping the target or log in again.
    ask: bool,
    renew: bool,
    readable: bool,
    writable: bool,
    events: VecDeque<Event>,
    counters: RemoteCounters,
}

impl Remote {
    /// Returns a target that is not connected.
    ///
    /// # Errors
    /// The system provides no random numbers.
    pub(crate) fn new(config: RemoteConfig, token: u64) -> io::Result<Remote> {
        Ok(Remote::at_port(config, token, random_isid()?, VecDeque::new()))
    }

    /// Returns a target with a fixed initiator session identifier, and those of the instance before
    /// the restart.
    pub(crate) fn at_port(config: RemoteConfig, token: u64, isid: [u8; 6], before: VecDeque<[u8; 6]>) -> Remote {
        // Earlier sessions may have used another portal, where a login at this one ends no tasks.
        let elsewhere = !before.is_empty() && config.portals.len() > 1;
        Remote {
            portals: config.portals.clone(),
            paths: Paths::new(config.portals.len()),
            troubles: Troubles::new(config.portals.len()),
            opening: None,
            again: None,
            redirections: 0,
            redirected: BTreeSet::new(),
            logging_in: false,
            link: None,
            address: config.portals[0],
            draining: None,
            disks: Disks::new(config.disk, config.portals.len() > 1),
            token,
            commands: BTreeMap::new(),
            next_command: 0,
            resets: BTreeMap::new(),
            stale: StaleWrites::new(elsewhere),
            why: "no attempt was made yet".to_owned(),
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

    /// Configuration.
    pub(crate) fn config(&self) -> &RemoteConfig {
        &self.config
    }

    /// Returns the counters.
    pub(crate) fn counters(&self) -> RemoteCounters {
        RemoteCounters { moves: self.paths.moves(), ..self.counters }
    }

    /// Adds a disk at this LUN and returns its number. Requests may be submitted before the target
    /// is reached, and wait until the disk is known to have this identity. Call once for each LUN.
    pub(crate) fn expect(&mut self, now: Instant, lun: LunBytes, name: Option<&str>) -> u64 {
        self.stale.expect(lun);
        self.disks.expect(now, lun, name)
    }

    /// Returns why the requests of a disk fail at once.
    pub(crate) fn unusable(&self, disk: u64) -> Option<disk::Error> {
        self.disks.unusable(disk)
    }

    /// The disks that the target lists: number, LUN, properties, and whether they can be used.
    pub(crate) fn disks(&self) -> impl Iterator<Item = (u64, LunBytes, Option<&Properties>, bool)> {
        self.disks.all()
    }

    /// Returns whether the target lists a disk.
    pub(crate) fn lists(&self, disk: u64) -> bool {
        self.disks.all().any(|(number, ..)| number == disk)
    }

    /// Properties of a disk that can be used now.
    pub(crate) fn ready(&self, disk: u64) -> Option<&Properties> {
        self.disks.all().find(|(number, .., ready)| *number == disk && *ready).and_then(|(_, _, found, _)| found)
    }

    /// Counters of the requests for a disk.
    pub(crate) fn disk_counters(&self, disk: u64) -> disk::Counters {
        self.disks.counters(disk)
    }

    /// Submits a request for a disk.
    pub(crate) fn submit(&mut self, now: Instant, disk: u64, request: Request) {
        self.disks.submit(now, disk, request);
    }

    /// Returns the next event.
    pub(crate) fn next_event(&mut self) -> Option<Event> {
        self.events.pop_front()
    }

    /// Agreed parameters, during a session.
    pub(crate) fn parameters(&self) -> Option<Parameters> {
        self.link.as_ref()?.parameters()
    }

    /// Rechecks the target, because it (with `changed`: its disks) may have been replaced.
    /// Forwarding is suspended meanwhile.
    pub(crate) fn doubt(&mut self, now: Instant, changed: bool) {
        self.doubted = Some(now);
        self.ask = true;
        self.renew |= changed;
    }

    /// Handles a notice to another session that access states of portals have changed.
    pub(crate) fn access_changed(&mut self, now: Instant) {
        self.paths.handle(now, paths::Input::Changed);
    }

    /// Returns whether the target has sent a PDU since the last recheck was requested, and no ended
    /// session has unfinished writes.
    pub(crate) fn is_certain(&self) -> bool {
        let last_pdu_at = self.link.as_ref().and_then(|link| link.last_pdu_at());
        let settled = !self.renew && self.stale.is_empty();
        settled && self.doubted.is_none_or(|since| last_pdu_at.is_some_and(|at| at > since))
    }

    /// The portal of the session, or the reason why there is none.
    pub(crate) fn path(&self) -> Result<SocketAddr, &str> {
        match &self.link {
            Some(link) if link.is_up() && self.before.is_empty() => Ok(self.portal()),
            _ => Err(&self.why),
        }
    }

    /// States of the portals for one unit.
    pub(crate) fn portals(&self, lun: LunBytes) -> impl Iterator<Item = PortalSeen<'_>> {
        let used = self.path().is_ok().then(|| self.paths.used()).flatten();
        let all = self.portals.iter().enumerate();
        all.map(move |(at, portal)| PortalSeen {
            portal: *portal,
            used: used == Some(at),
            group: self.paths.group(at, lun),
        })
    }

    /// Address of the session, and the portal of the lab that redirected to it, if it did.
    pub(crate) fn place(&self) -> Result<(SocketAddr, Option<SocketAddr>), &str> {
        self.path().map(|_| (self.address, self.redirected_by(self.paths.last(), self.address)))
    }

    /// The portal of the lab that redirected to this address, if it did.
    fn redirected_by(&self, path: usize, address: SocketAddr) -> Option<SocketAddr> {
        self.config.portals.get(path).copied().filter(|portal| *portal != address)
    }

    /// The portal that is used, or was tried last.
    fn portal(&self) -> SocketAddr {
        self.portals[self.paths.last()]
    }

    /// Returns whether the output queue is too long for more requests.
    pub(crate) fn is_full(&self) -> bool {
        self.link.as_ref().is_some_and(|link| link.transport.egress.bytes >= MAX_OUTPUT_BYTES)
    }

    /// Registers the socket.
    ///
    /// # Errors
    /// A descriptor that cannot be polled.
    pub(crate) fn watch(&self, poller: &mut Poller) -> io::Result<()> {
        let (socket, interest) = match (&self.link, &self.opening) {
            (Some(link), _) => (Some(link.stream().as_fd()), link.interest()),
            (None, Some(opening)) => (Some(opening.stream.as_fd()), Interest { read: false, write: true }),
            (None, None) => (None, Interest::default()),
        };
        poller.set(self.token, socket, interest)
    }

    /// Handles an event of the poller.
    pub(crate) fn set_ready(&mut self, readable: bool, writable: bool) {
        self.readable |= readable;
        self.writable |= writable;
    }

    /// Time of the next step if no event occurs before.
    pub(crate) fn poll_timeout(&self) -> Option<Instant> {
        let link = self.link.as_ref().and_then(|link| link.poll_timeout());
        let opening = self.opening.as_ref().and_then(|opening| opening.poll_timeout(self.link.is_some()));
        let again = self.again.map(|(at, _)| at);
        Instant::earliest(&[link, opening, again, self.draining, self.paths.poll_timeout(), self.disks.poll_timeout()])
    }

    /// Processes events and timers. Returns whether there may be more input.
    pub(crate) fn run(&mut self, cx: &mut Context<'_, impl Memory>) -> bool {
        let (readable, writable) = (std::mem::take(&mut self.readable), std::mem::take(&mut self.writable));
        if std::mem::take(&mut self.renew) {
            self.lose(cx, "its disks are identified again");
        }
        if std::mem::take(&mut self.ask)
            && let Some(link) = self.link.as_mut().filter(|link| link.is_up())
        {
            link.input(cx.now, Input::Ping, &mut Both { commands: &mut self.commands, memory: &mut *cx.memory });
        }
        self.run_path_timers(cx);
        self.check_opening(cx, writable);
        let more = self.receive(cx, readable, writable);
        self.readable |= more;
        if self.disks.poll_timeout().is_some_and(|at| at <= cx.now) {
            self.disks.timeout(cx.now);
        }
        self.execute_requests(cx);
        more
    }

    /// Executes the outputs of the disks until there are none, and flushes the socket.
    pub(crate) fn execute_requests(&mut self, cx: &mut Context<'_, impl Memory>) {
        loop {
            while let Some(output) = self.disks.poll_output() {
                self.execute(cx, output);
                self.link_events(cx);
            }
            self.execute_path_outputs(cx);
            self.leave_if_drained(cx);
            if self.disks.has_outputs() {
                continue;
            }
            let Some(link) = &mut self.link else { return };
            match link.flush() {
                Ok(()) => return,
                Err(error) => self.lose(cx, &error.to_string()),
            }
        }
    }

    /// Logs out.
    pub(crate) fn log_out(&mut self, now: Instant, memory: &mut impl Memory) {
        if let Some(link) = &mut self.link {
            link.input(now, Input::LogOut, &mut Both { commands: &mut self.commands, memory });
            let _ = link.flush();
        }
    }
}
