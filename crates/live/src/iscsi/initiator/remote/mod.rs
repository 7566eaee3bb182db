//! A target of somebody's, through one of its portals at a time: [`Remote`].
//!
//! ```text
//!   socket <-> Link: Framer, Login, Session <-> Disks: Scan, AccessProbe, Disk <-> whoever has requests
//!                ^ which portal: Paths <----- how each is reached -----+
//! ```
//!
//! When the connection is lost, or a better portal is there, requests wait for another one. The initiator session identifier stays the
//! same, so that a new session ends what the target still does for the old one before anything is repeated. That holds within a portal
//! group; in another one, units are reset where a write may have been under way (`settle.rs`). Where an instance before us had sessions,
//! too, a login with each of their identifiers ends those first.

mod commands;
mod connect;
mod settle;
mod troubles;

use super::config::{RemoteConfig, RemoteCounters};
use super::disks::Disks;
use super::link::Link;
use super::socket::random_isid;
use crate::poll::{Interest, Poller};
use commands::{Active, Both};
use connect::Opening;
use sanloom_core::disk::{self, AccessGroup, Done, Error, Paths, Properties, Request, paths};
use sanloom_core::iscsi::Parameters;
use sanloom_core::iscsi::initiator::Input;
use sanloom_core::time::{Instant, Span};
use sanloom_wire::lun::LunBytes;
use settle::Unsettled;
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::io;
use std::net::SocketAddr;
use std::os::fd::AsFd;
use std::sync::Arc;
use troubles::Troubles;

/// A connection that is not open after this time is given up.
pub(in crate::iscsi) const CONNECT_TIME: Span = Span::from_secs(3);
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

/// A portal, as it serves a unit.
#[derive(Debug)]
pub(crate) struct PortalSeen<'r> {
    /// Where it is.
    pub(crate) portal: SocketAddr,
    /// It is the one in use.
    pub(crate) used: bool,
    /// The target port group behind it, once it has been asked.
    pub(crate) group: Option<&'r AccessGroup>,
}

/// A target.
#[derive(Debug)]
pub(crate) struct Remote {
    config: RemoteConfig,
    /// Where each portal is now: one that has moved for good is asked no more.
    portals: Vec<SocketAddr>,
    /// Its place in the poller.
    token: u64,
    /// Which portal.
    paths: Paths,
    /// A connection that is to become the session.
    opening: Option<Opening>,
    /// A connection for the login under way is to be opened there, then.
    again: Option<(Instant, SocketAddr)>,
    /// How often the login under way was sent elsewhere, and from where to where logins were since the last session.
    redirections: u8,
    redirected: BTreeSet<(SocketAddr, SocketAddr)>,
    /// A login was begun; its connection may have to be another one.
    logging_in: bool,
    /// The session, or its login.
    link: Option<Box<Link>>,
    /// Where that really goes, or went.
    address: SocketAddr,
    /// The session is left for another portal when nothing is under way, and at the latest then.
    draining: Option<Instant>,
    disks: Disks,
    commands: BTreeMap<u64, Active>,
    next_command: u64,
    /// Units whose reset is under way, by its number.
    resets: BTreeMap<u64, LunBytes>,
    /// Where something of a session that is over may still be written.
    unsettled: Unsettled,
    /// What is wrong with portals.
    troubles: Troubles,
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
        // It may have been at another portal, where a login at this one ends nothing.
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
            unsettled: Unsettled::new(elsewhere),
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
        RemoteCounters { moves: self.paths.moves(), ..self.counters }
    }

    /// There will be a disk at this LUN: requests for it may come before the target is reached, and wait until it is known to be the
    /// one with this name. Its number. Once for each LUN.
    pub(crate) fn expect(&mut self, now: Instant, lun: LunBytes, name: Option<&str>) -> u64 {
        self.unsettled.expect(lun);
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
        self.link.as_ref()?.parameters()
    }

    /// Something says that the target may be another one than it was, or, with `changed`, that its disks may: our session looks at them
    /// before anybody passes it by again.
    pub(crate) fn doubt(&mut self, now: Instant, changed: bool) {
        self.doubted = Some(now);
        self.ask = true;
        self.renew |= changed;
    }

    /// Another session was told that portals serve otherwise than before.
    pub(crate) fn access_changed(&mut self, now: Instant) {
        self.paths.handle(now, paths::Input::Changed);
    }

    /// Our session has heard of the target since there was any doubt, and nothing of others is under way there that would not end.
    pub(crate) fn is_certain(&self) -> bool {
        let heard = self.link.as_ref().and_then(|link| link.heard());
        let settled = !self.renew && self.unsettled.is_settled();
        settled && self.doubted.is_none_or(|since| heard.is_some_and(|heard| heard > since))
    }

    /// The portal of the session, or why there is none.
    pub(crate) fn path(&self) -> Result<SocketAddr, &str> {
        match &self.link {
            Some(link) if link.is_up() && self.before.is_empty() => Ok(self.portal()),
            _ => Err(&self.why),
        }
    }

    /// The portals, as they serve a unit.
    pub(crate) fn portals(&self, lun: LunBytes) -> impl Iterator<Item = PortalSeen<'_>> {
        let used = self.path().is_ok().then(|| self.paths.used()).flatten();
        let all = self.portals.iter().enumerate();
        all.map(move |(at, portal)| PortalSeen {
            portal: *portal,
            used: used == Some(at),
            group: self.paths.group(at, lun),
        })
    }

    /// Where the session really goes, and the portal of the lab that has sent it there, if that is another one.
    pub(crate) fn place(&self) -> Result<(SocketAddr, Option<SocketAddr>), &str> {
        self.path().map(|_| (self.address, self.redirected_by(self.paths.last(), self.address)))
    }

    /// The portal of the lab through which one has come to this address, if that is another one.
    fn redirected_by(&self, path: usize, address: SocketAddr) -> Option<SocketAddr> {
        self.config.portals.get(path).copied().filter(|portal| *portal != address)
    }

    /// The portal that is used, or was tried last.
    fn portal(&self) -> SocketAddr {
        self.portals[self.paths.last()]
    }

    /// So much has to leave that no more requests should come.
    pub(crate) fn is_full(&self) -> bool {
        self.link.as_ref().is_some_and(|link| link.output.bytes >= MAX_OUTPUT_BYTES)
    }

    /// Waits for what there is to wait for.
    ///
    /// # Errors
    /// When the descriptor cannot be waited for.
    pub(crate) fn watch(&self, poller: &mut Poller) -> io::Result<()> {
        let (socket, interest) = match (&self.link, &self.opening) {
            (Some(link), _) => {
                let write = link.output.blocked && !link.output.is_empty();
                (Some(link.stream.as_fd()), Interest { read: true, write })
            }
            (None, Some(opening)) => (Some(opening.stream.as_fd()), Interest { read: false, write: true }),
            (None, None) => (None, Interest::default()),
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
        let link = self.link.as_ref().and_then(|link| link.poll_timeout());
        let opening = self.opening.as_ref().and_then(|opening| opening.poll_timeout(self.link.is_some()));
        let again = self.again.map(|(at, _)| at);
        Instant::earliest(&[link, opening, again, self.draining, self.paths.poll_timeout(), self.disks.poll_timeout()])
    }

    /// Does what there is to do. True if there may be more to read.
    pub(crate) fn turn(&mut self, now: Instant, poller: &mut Poller, memory: &mut impl Memory) -> bool {
        let (readable, writable) = (std::mem::take(&mut self.readable), std::mem::take(&mut self.writable));
        if std::mem::take(&mut self.renew) {
            self.lose(now, "its disks are looked at anew", poller);
        }
        if std::mem::take(&mut self.ask)
            && let Some(link) = self.link.as_mut().filter(|link| link.is_up())
        {
            link.tell(now, Input::Ping, &mut Both { commands: &mut self.commands, memory });
        }
        self.look_at_paths(now, poller, memory);
        self.look_at_opening(now, writable, poller, memory);
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
            self.carry_paths(now, poller, memory);
            self.leave_if_drained(now, poller, memory);
            if self.disks.has_wants() {
                continue;
            }
            let Some(link) = &mut self.link else { return };
            match link.flush() {
                Ok(()) => return,
                Err(error) => self.lose(now, &error.to_string(), poller),
            }
        }
    }

    /// Logs out.
    pub(crate) fn log_out(&mut self, now: Instant, memory: &mut impl Memory) {
        if let Some(link) = &mut self.link {
            link.tell(now, Input::LogOut, &mut Both { commands: &mut self.commands, memory });
            let _ = link.flush();
        }
    }
}
