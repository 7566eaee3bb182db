//! How a session comes and goes: the connections that [`Paths`](sanloom_core::disk::Paths) asks for.

use super::commands::Both;
use super::settle::Place;
use super::troubles::Trouble;
use super::{CONNECT_TIME, Memory, Remote};
use crate::iscsi::initiator::disks::Who;
use crate::iscsi::initiator::link::{Event as LinkEvent, Link};
use crate::iscsi::initiator::socket::{open, opened, portal_of, random, reset_when_closed};
use crate::poll::Poller;
use sanloom_core::disk::paths::{Input as PathsInput, Output as PathsOutput};
use sanloom_core::disk::{End, Reply};
use sanloom_core::iscsi::initiator::LoginError;
use sanloom_core::time::{Instant, Span};
use std::io;
use std::net::{SocketAddr, TcpStream};
use std::os::fd::AsFd;

/// From a login that was sent elsewhere to the next one.
const RETRY: Span = Span::from_ms(500);
/// Portals that send a login to each other for longer go round in a circle.
const MOST_REDIRECTIONS: u8 = 8;
/// So many redirections are told of between two sessions.
const TOLD_REDIRECTIONS: usize = 64;
/// Reads in one turn.
const READS_IN_TURN: usize = 8;
/// How often a connection is looked at that is opened beside a session.
const LOOK: Span = Span::from_ms(10);
/// A session that is left has so long to end its commands; then it counts as lost.
const DRAIN_TIME: Span = Span::from_secs(5);

/// A connection that is being opened, or is open and waits.
#[derive(Debug)]
pub(super) struct Opening {
    pub(super) stream: TcpStream,
    /// The portal that it is for, and where it really goes.
    path: usize,
    address: SocketAddr,
    until: Instant,
    look_at: Instant,
    open: bool,
}

impl Opening {
    /// `beside`: the poller looks at the session.
    pub(super) fn poll_timeout(&self, beside: bool) -> Option<Instant> {
        match (self.open, beside) {
            (true, _) => None,
            (false, true) => Some(self.look_at.min(self.until)),
            (false, false) => Some(self.until),
        }
    }
}

impl Remote {
    /// What has to be done because of the time.
    pub(super) fn look_at_paths(&mut self, now: Instant, poller: &mut Poller, memory: &mut impl Memory) {
        if self.draining.is_some_and(|until| until <= now) {
            self.lose(now, "a command does not end, and another portal is better", poller);
        }
        if self.paths.poll_timeout().is_some_and(|at| at <= now) {
            self.paths.handle(now, PathsInput::Timeout);
        }
        if let Some((_, address)) = self.again.take_if(|(at, _)| *at <= now) {
            self.open_at(now, self.paths.last(), address, poller);
        }
        self.carry_paths(now, poller, memory);
    }

    /// Does what the choice of paths wants.
    pub(super) fn carry_paths(&mut self, now: Instant, poller: &mut Poller, memory: &mut impl Memory) {
        while let Some(output) = self.paths.poll_output() {
            match output {
                PathsOutput::Open(path) => self.open_at(now, path, self.portals[path], poller),
                PathsOutput::Abandon => self.close_opening(poller),
                PathsOutput::Drain => {
                    tracing::info!(target = self.config.target, portal = %self.address, "another portal is better");
                    self.draining = Some(now + DRAIN_TIME);
                }
                PathsOutput::LogIn(_) => self.log_in(now, poller, memory),
                PathsOutput::Ask => self.disks.ask(now),
                PathsOutput::Set { lun, group } => {
                    tracing::info!(target = self.config.target, group, "no portal is active: this one shall be");
                    self.disks.set_group(now, lun, group);
                }
            }
        }
    }

    /// A session is left when nothing is under way.
    pub(super) fn leave_if_drained(&mut self, now: Instant, poller: &mut Poller, memory: &mut impl Memory) {
        if self.draining.is_none() || !self.commands.is_empty() || !self.resets.is_empty() {
            return;
        }
        self.draining = None;
        self.log_out(now, memory);
        if let Some(link) = self.link.take() {
            poller.remove(self.token, link.stream.as_fd());
        }
        "on the way to another portal".clone_into(&mut self.why);
        self.disks.path(now, false);
        self.paths.handle(now, PathsInput::Drained);
        self.carry_paths(now, poller, memory);
    }

    fn open_at(&mut self, now: Instant, path: usize, address: SocketAddr, poller: &mut Poller) {
        self.close_opening(poller);
        match open(address) {
            Ok(stream) => {
                let (until, look_at) = (now + CONNECT_TIME, now + LOOK);
                self.opening = Some(Opening { stream, path, address, until, look_at, open: false });
            }
            Err(error) => self.failed(now, path, address, Trouble::Unreachable, &error.to_string()),
        }
    }

    fn close_opening(&mut self, poller: &mut Poller) {
        if let Some(opening) = self.opening.take()
            && self.link.is_none()
        {
            poller.remove(self.token, opening.stream.as_fd());
        }
    }

    /// Looks whether a connection is open.
    pub(super) fn look_at_opening(
        &mut self,
        now: Instant,
        writable: bool,
        poller: &mut Poller,
        memory: &mut impl Memory,
    ) {
        let beside = self.link.is_some();
        let Some(opening) = self.opening.as_mut().filter(|opening| !opening.open) else { return };
        let late = opening.until <= now;
        let looks = if beside { opening.look_at <= now } else { writable };
        if !looks && !late {
            return;
        }
        match opened(&opening.stream) {
            Ok(()) => {
                opening.open = true;
                match self.is_logging_in() {
                    // For a login that is under way: sent elsewhere, or for the instance before this one.
                    true => self.log_in(now, poller, memory),
                    false => self.paths.handle(now, PathsInput::Opened),
                }
            }
            Err(error) if !late && error.kind() == io::ErrorKind::TimedOut => {
                opening.look_at = now + LOOK;
            }
            Err(error) => {
                let (path, address) = (opening.path, opening.address);
                self.close_opening(poller);
                self.failed(now, path, address, Trouble::Unreachable, &error.to_string());
            }
        }
        self.carry_paths(now, poller, memory);
    }

    /// A login was begun, and its connection has to be another one.
    fn is_logging_in(&self) -> bool {
        self.logging_in && self.link.is_none()
    }

    fn log_in(&mut self, now: Instant, poller: &mut Poller, memory: &mut impl Memory) {
        let Some(opening) = self.opening.take() else {
            let why = "the connection is gone";
            return self.failed(now, self.paths.last(), self.portal(), Trouble::Unreachable, why);
        };
        poller.remove(self.token, opening.stream.as_fd());
        (self.logging_in, self.address) = (true, opening.address);
        let challenge = match random::<16>() {
            Ok(challenge) => challenge,
            Err(error) => {
                let why = error.to_string();
                return self.failed(now, opening.path, opening.address, Trouble::Unreachable, &why);
            }
        };
        let isid = self.before.front().copied().unwrap_or(self.isid);
        let login = self.config.login(isid, self.config.wishes, challenge);
        let mut link = Link::new(now, opening.stream, login, self.config.session);
        link.drain(now, &mut Both { commands: &mut self.commands, memory });
        self.link = Some(Box::new(link));
        // What comes at once is not waited for.
        self.readable = true;
    }

    /// A portal does not answer, or does not let us in. `address`: where it has sent us, or itself.
    fn failed(&mut self, now: Instant, path: usize, address: SocketAddr, trouble: Trouble, why: &str) {
        let redirected_by = self.redirected_by(path, address);
        if self.link.is_none() {
            self.why = match redirected_by {
                Some(portal) => format!("{address}, where {portal} sends us: {why}"),
                None => why.to_owned(),
            };
            (self.logging_in, self.redirections) = (false, 0);
        }
        let lasting = matches!(&trouble, Trouble::Refused(error) if error.is_lasting());
        self.paths.handle(now, if lasting { PathsInput::Refused } else { PathsInput::Failed });
        let next = match (self.paths.used(), self.paths.tried(), self.paths.poll_timeout()) {
            (Some(_), ..) => format!("the session stays at {}", self.address),
            (None, Some(path), _) => self.portals[path].to_string(),
            (None, None, at) => format!("again after {} ms", at.map_or(0, |at| at.since(now).as_ms())),
        };
        let (target, by) = (&self.config.target, redirected_by.map(tracing::field::display));
        if self.troubles.is_new(now, path, trouble) {
            tracing::warn!(target, portal = %address, redirected_by = by, why, next, "no session through a portal");
        } else {
            tracing::debug!(target, portal = %address, redirected_by = by, why, next, "still no session through a portal");
        }
    }

    /// Takes what the target has sent. True if there may be more.
    pub(super) fn receive(
        &mut self,
        now: Instant,
        readable: bool,
        writable: bool,
        poller: &mut Poller,
        memory: &mut impl Memory,
    ) -> bool {
        let mut more = false;
        let mut lost = None;
        if let Some(link) = &mut self.link {
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

    pub(super) fn link_events(&mut self, now: Instant, poller: &mut Poller, memory: &mut impl Memory) {
        let Some(link) = &mut self.link else { return };
        for event in link.take_events() {
            match event {
                LinkEvent::Up if !self.before.is_empty() => return self.ended_before(now, poller, memory),
                LinkEvent::Up => {
                    let (path, address) = (self.paths.last(), self.address);
                    let by = self.redirected_by(path, address).map(tracing::field::display);
                    let target = &self.config.target;
                    if let Some(since) = self.troubles.is_over(path) {
                        let after_s = now.since(since).as_ms() / 1000;
                        tracing::info!(target, portal = %address, redirected_by = by, after_s, "a portal is back");
                    }
                    tracing::info!(target, portal = %address, redirected_by = by, "logged in");
                    (self.logging_in, self.redirections) = (false, 0);
                    self.redirected.clear();
                    self.counters.logins += 1;
                    self.paths.handle(now, PathsInput::LoggedIn);
                    if !self.settle(now, memory) {
                        self.disks.path(now, true);
                    }
                }
                LinkEvent::Refused(LoginError::Moved { address, permanent }) => {
                    self.moved(now, &address, permanent, poller);
                }
                LinkEvent::Refused(error) => {
                    let why = error.to_string();
                    self.end(now, &why, Trouble::Refused(error), poller);
                }
                LinkEvent::Done(id, outcome) => self.ended(now, id, outcome, poller),
                LinkEvent::Broken(why) => self.lose(now, &why.to_string(), poller),
            }
        }
    }

    /// The portal sends us elsewhere.
    fn moved(&mut self, now: Instant, to: &str, permanent: bool, poller: &mut Poller) {
        let (path, from) = (self.paths.last(), self.address);
        self.drop_link(poller);
        self.redirections += 1;
        let why = match portal_of(to) {
            Some(_) if self.redirections > MOST_REDIRECTIONS => "portals send us to each other",
            Some(address) => {
                if self.redirected.len() < TOLD_REDIRECTIONS && self.redirected.insert((from, address)) {
                    let target = &self.config.target;
                    tracing::info!(target, portal = %from, %address, permanent, "the target has moved");
                }
                if permanent {
                    self.portals[path] = address;
                }
                self.why = format!("sent from {from} to {address}");
                self.again = Some((now + RETRY, address));
                return;
            }
            None => "it sends us to what is no address",
        };
        self.failed(now, path, from, Trouble::Unreachable, why);
    }

    /// A session of the instance before us is over, and what it had to do: it was ours for a moment.
    fn ended_before(&mut self, now: Instant, poller: &mut Poller, memory: &mut impl Memory) {
        self.before.pop_front();
        self.log_out(now, memory);
        self.drop_link(poller);
        self.again = Some((now, self.portal()));
        if self.before.is_empty() {
            let target = &self.config.target;
            tracing::info!(target, "nothing is done there any more for the instance before this one");
        }
    }

    fn drop_link(&mut self, poller: &mut Poller) {
        if let Some(link) = self.link.take() {
            poller.remove(self.token, link.stream.as_fd());
        }
    }

    /// The connection is gone, and with it all its commands.
    pub(super) fn lose(&mut self, now: Instant, why: &str, poller: &mut Poller) {
        self.end(now, why, Trouble::Unreachable, poller);
    }

    /// The same; `trouble`: of the portal, if the login was not complete.
    fn end(&mut self, now: Instant, why: &str, trouble: Trouble, poller: &mut Poller) {
        let Some(link) = self.link.take() else { return };
        poller.remove(self.token, link.stream.as_fd());
        (self.draining, self.logging_in) = (None, false);
        if link.is_up() {
            let redirected_by = self.redirected_by(self.paths.last(), self.address).map(tracing::field::display);
            tracing::info!(target = self.config.target, portal = %self.address, redirected_by, why, "the session is gone");
            why.clone_into(&mut self.why);
            self.counters.lost += 1;
            // What has not left yet shall never leave.
            reset_when_closed(&link.stream);
            for active in self.commands.values().filter(|active| active.changes_medium()) {
                if let Who::Disk(lun) = active.who {
                    self.unsettled.lost(lun, Place::Group(link.portal_group()));
                }
            }
        }
        self.unsettled.resets_end();
        // Those that listen hear of the path first, and do not count the ends of their commands.
        self.disks.path(now, false);
        for (_, active) in std::mem::take(&mut self.commands) {
            let id = active.command.id;
            self.disks.ended(now, active.who, Reply { id, end: End::PathGone });
        }
        for (_, lun) in std::mem::take(&mut self.resets) {
            self.disks.reset_done(now, lun, false);
        }
        match link.is_up() {
            true => self.paths.handle(now, PathsInput::Lost),
            false => self.failed(now, self.paths.last(), self.address, trouble, why),
        }
    }
}
