//! Setup and end of sessions, as [`Paths`](sanloom_scsi::disk::Paths) requests.

use super::commands::Both;
use super::stale::TargetPort;
use super::troubles::Trouble;
use super::{Context, Memory, Remote};
use crate::iscsi_initiator::disks::Owner;
use crate::iscsi_initiator::link::{Event as LinkEvent, Link};
use crate::poll::Poller;
use crate::session::socket::{CONNECT_TIME, open, opened, portal_of, random, reset_when_closed};
use sanloom_scsi::disk::paths::{Input as PathsInput, Output as PathsOutput};
use sanloom_scsi::disk::{End, Reply};
use sanloom_scsi::iscsi::initiator::LoginError;
use sanloom_scsi::time::{Instant, Span};
use std::io;
use std::net::{SocketAddr, TcpStream};
use std::os::fd::AsFd;

/// Delay from a redirected login to the next one.
const RETRY: Span = Span::from_ms(500);
/// Maximum number of redirections of a login; more of them are a loop.
const MOST_REDIRECTIONS: u8 = 8;
/// Maximum number of redirections that are logged between two sessions.
const LOGGED_REDIRECTIONS: usize = 64;
/// Maximum reads per step.
const MAX_READS: usize = 8;
/// Interval of checks of a connection that is opened beside a session.
const CHECK_INTERVAL: Span = Span::from_ms(10);
/// Time in which a session that is left for another portal must end its commands; then it counts as
/// lost.
const DRAIN_TIME: Span = Span::from_secs(5);

/// A connection that is being opened, or is open but not yet in use.
#[derive(Debug)]
pub(super) struct Opening {
    pub(super) stream: TcpStream,
    /// The portal for which it is opened, and the address after redirections.
    path: usize,
    address: SocketAddr,
    until: Instant,
    check_at: Instant,
    open: bool,
}

impl Opening {
    /// `beside`: the poller watches the current session instead.
    pub(super) fn poll_timeout(&self, beside: bool) -> Option<Instant> {
        match (self.open, beside) {
            (true, _) => None,
            (false, true) => Some(self.check_at.min(self.until)),
            (false, false) => Some(self.until),
        }
    }
}

impl Remote {
    /// Runs the timers of the session and of the connection that is being opened.
    pub(super) fn run_path_timers(&mut self, cx: &mut Context<'_, impl Memory>) {
        if self.draining.is_some_and(|until| until <= cx.now) {
            self.lose(cx, "a command did not end in time for the change to a better portal");
        }
        if self.paths.poll_timeout().is_some_and(|at| at <= cx.now) {
            self.paths.handle(cx.now, PathsInput::Timeout);
        }
        if let Some((_, address)) = self.again.take_if(|(at, _)| *at <= cx.now) {
            self.open_at(cx, self.paths.last(), address);
        }
        self.execute_path_outputs(cx);
    }

    /// Executes the outputs of the path selection.
    pub(super) fn execute_path_outputs(&mut self, cx: &mut Context<'_, impl Memory>) {
        while let Some(output) = self.paths.poll_output() {
            match output {
                PathsOutput::Open(path) => self.open_at(cx, path, self.portals[path]),
                PathsOutput::Abandon => self.close_opening(cx.poller),
                PathsOutput::Drain => {
                    tracing::info!(target = self.config.target, portal = %self.address, "another portal is better");
                    self.draining = Some(cx.now + DRAIN_TIME);
                }
                PathsOutput::LogIn(_) => self.log_in(cx),
                PathsOutput::Probe => self.disks.ask(cx.now),
                PathsOutput::Set { lun, group } => {
                    tracing::info!(target = self.config.target, group, "no portal is active; this one is activated");
                    self.disks.set_group(cx.now, lun, group);
                }
            }
        }
    }

    /// Ends a session that is left for another portal once no command is in flight.
    pub(super) fn leave_if_drained(&mut self, cx: &mut Context<'_, impl Memory>) {
        if self.draining.is_none() || !self.commands.is_empty() || !self.resets.is_empty() {
            return;
        }
        self.draining = None;
        self.log_out(cx.now, cx.memory);
        if let Some(link) = self.link.take() {
            cx.poller.remove(self.token, link.stream().as_fd());
        }
        "changing to another portal".clone_into(&mut self.why);
        self.disks.path(cx.now, false);
        self.paths.handle(cx.now, PathsInput::Drained);
        self.execute_path_outputs(cx);
    }

    fn open_at(&mut self, cx: &mut Context<'_, impl Memory>, path: usize, address: SocketAddr) {
        self.close_opening(cx.poller);
        match open(address) {
            Ok(stream) => {
                let (until, check_at) = (cx.now + CONNECT_TIME, cx.now + CHECK_INTERVAL);
                self.opening = Some(Opening { stream, path, address, until, check_at, open: false });
            }
            Err(error) => self.failed(cx.now, path, address, Trouble::Unreachable, &error.to_string()),
        }
    }

    fn close_opening(&mut self, poller: &mut Poller) {
        if let Some(opening) = self.opening.take()
            && self.link.is_none()
        {
            poller.remove(self.token, opening.stream.as_fd());
        }
    }

    /// Checks whether a connection is open.
    pub(super) fn check_opening(&mut self, cx: &mut Context<'_, impl Memory>, writable: bool) {
        let beside = self.link.is_some();
        let Some(opening) = self.opening.as_mut().filter(|opening| !opening.open) else { return };
        let late = opening.until <= cx.now;
        let checks = if beside { opening.check_at <= cx.now } else { writable };
        if !checks && !late {
            return;
        }
        match opened(&opening.stream) {
            Ok(()) => {
                opening.open = true;
                match self.is_logging_in() {
                    // A login is in progress: redirected, or for the instance before the restart.
                    true => self.log_in(cx),
                    false => self.paths.handle(cx.now, PathsInput::Opened),
                }
            }
            Err(error) if !late && error.kind() == io::ErrorKind::TimedOut => {
                opening.check_at = cx.now + CHECK_INTERVAL;
            }
            Err(error) => {
                let (path, address) = (opening.path, opening.address);
                self.close_opening(cx.poller);
                self.failed(cx.now, path, address, Trouble::Unreachable, &error.to_string());
            }
        }
        self.execute_path_outputs(cx);
    }

    /// Returns whether a login is in progress that needs another connection.
    fn is_logging_in(&self) -> bool {
        self.logging_in && self.link.is_none()
    }

    fn log_in(&mut self, cx: &mut Context<'_, impl Memory>) {
        let Some(opening) = self.opening.take() else {
            let why = "the connection was closed";
            return self.failed(cx.now, self.paths.last(), self.portal(), Trouble::Unreachable, why);
        };
        cx.poller.remove(self.token, opening.stream.as_fd());
        (self.logging_in, self.address) = (true, opening.address);
        let challenge = match random::<16>() {
            Ok(challenge) => challenge,
            Err(error) => {
                let why = error.to_string();
                return self.failed(cx.now, opening.path, opening.address, Trouble::Unreachable, &why);
            }
        };
        let isid = self.before.front().copied().unwrap_or(self.isid);
        let login = self.config.login(isid, self.config.offers, challenge);
        let mut link = Link::new(cx.now, opening.stream, login, self.config.session);
        link.drain(cx.now, &mut Both { commands: &mut self.commands, memory: &mut *cx.memory });
        self.link = Some(Box::new(link));
        // Read without waiting for the poller.
        self.readable = true;
    }

    /// Handles a portal that does not answer or rejects the login. `address`: the portal, or the
    /// address to which it redirected.
    fn failed(&mut self, now: Instant, path: usize, address: SocketAddr, trouble: Trouble, why: &str) {
        let redirected_by = self.redirected_by(path, address);
        if self.link.is_none() {
            self.why = match redirected_by {
                Some(portal) => format!("{address} (redirected by {portal}): {why}"),
                None => why.to_owned(),
            };
            (self.logging_in, self.redirections) = (false, 0);
        }
        let lasting = matches!(&trouble, Trouble::Refused(error) if error.is_lasting());
        self.paths.handle(now, if lasting { PathsInput::Refused } else { PathsInput::Failed });
        let next = match (self.paths.used(), self.paths.tried(), self.paths.poll_timeout()) {
            (Some(_), ..) => format!("the session stays at {}", self.address),
            (None, Some(path), _) => self.portals[path].to_string(),
            (None, None, at) => format!("next attempt after {} ms", at.map_or(0, |at| at.since(now).as_ms())),
        };
        let (target, by) = (&self.config.target, redirected_by.map(tracing::field::display));
        if self.troubles.is_new(now, path, trouble) {
            tracing::warn!(target, portal = %address, redirected_by = by, why, next, "no session through a portal");
        } else {
            tracing::debug!(target, portal = %address, redirected_by = by, why, next, "still no session through a portal");
        }
    }

    /// Reads and processes input. Returns whether there may be more.
    pub(super) fn receive(&mut self, cx: &mut Context<'_, impl Memory>, readable: bool, writable: bool) -> bool {
        let mut more = false;
        let mut lost = None;
        if let Some(link) = &mut self.link {
            let buffers = &mut Both { commands: &mut self.commands, memory: &mut *cx.memory };
            if writable {
                link.set_writable();
            }
            if link.poll_timeout().is_some_and(|at| at <= cx.now) {
                link.timeout(cx.now, buffers);
            }
            for round in 0..MAX_READS {
                if !readable {
                    break;
                }
                match link.read(cx.now, buffers) {
                    Ok(true) => more = round + 1 == MAX_READS,
                    Ok(false) => break,
                    Err(error) => {
                        lost = Some(error.to_string());
                        break;
                    }
                }
            }
        }
        self.link_events(cx);
        if let Some(why) = lost {
            self.lose(cx, &why);
        }
        more
    }

    pub(super) fn link_events(&mut self, cx: &mut Context<'_, impl Memory>) {
        let Some(link) = &mut self.link else { return };
        for event in link.take_events() {
            match event {
                LinkEvent::Up if !self.before.is_empty() => return self.ended_before(cx),
                LinkEvent::Up => {
                    let (path, address) = (self.paths.last(), self.address);
                    let by = self.redirected_by(path, address).map(tracing::field::display);
                    let target = &self.config.target;
                    if let Some(since) = self.troubles.is_over(path) {
                        let after_s = cx.now.since(since).as_ms() / 1000;
                        tracing::info!(target, portal = %address, redirected_by = by, after_s, "a portal is available again");
                    }
                    tracing::info!(target, portal = %address, redirected_by = by, "logged in");
                    (self.logging_in, self.redirections) = (false, 0);
                    self.redirected.clear();
                    self.counters.logins += 1;
                    self.paths.handle(cx.now, PathsInput::LoggedIn);
                    if !self.reset_stale_units(cx) {
                        self.disks.path(cx.now, true);
                    }
                }
                LinkEvent::Refused(LoginError::Moved { address, permanent }) => {
                    self.moved(cx, &address, permanent);
                }
                LinkEvent::Refused(error) => {
                    let why = error.to_string();
                    self.end(cx, &why, Trouble::Refused(error));
                }
                LinkEvent::Done(id, outcome) => self.complete(cx, id, outcome),
                LinkEvent::Broken(why) => self.lose(cx, &why.to_string()),
            }
        }
    }

    /// Handles a redirection by the portal.
    fn moved(&mut self, cx: &mut Context<'_, impl Memory>, to: &str, permanent: bool) {
        let (path, from) = (self.paths.last(), self.address);
        self.drop_link(cx.poller);
        self.redirections += 1;
        let why = match portal_of(to) {
            Some(_) if self.redirections > MOST_REDIRECTIONS => "the portals redirect to each other",
            Some(address) => {
                if self.redirected.len() < LOGGED_REDIRECTIONS && self.redirected.insert((from, address)) {
                    let target = &self.config.target;
                    tracing::info!(target, portal = %from, %address, permanent, "the target has moved");
                }
                if permanent {
                    self.portals[path] = address;
                }
                self.why = format!("redirected from {from} to {address}");
                self.again = Some((cx.now + RETRY, address));
                return;
            }
            None => "it redirects to an invalid address",
        };
        self.failed(cx.now, path, from, Trouble::Unreachable, why);
    }

    /// Ends a session that was opened only to end the tasks of the instance before the restart.
    fn ended_before(&mut self, cx: &mut Context<'_, impl Memory>) {
        self.before.pop_front();
        self.log_out(cx.now, cx.memory);
        self.drop_link(cx.poller);
        self.again = Some((cx.now, self.portal()));
        if self.before.is_empty() {
            let target = &self.config.target;
            tracing::info!(target, "the tasks of the instance before the restart have ended");
        }
    }

    fn drop_link(&mut self, poller: &mut Poller) {
        if let Some(link) = self.link.take() {
            poller.remove(self.token, link.stream().as_fd());
        }
    }

    /// Ends a lost session, and all its commands.
    pub(super) fn lose(&mut self, cx: &mut Context<'_, impl Memory>, why: &str) {
        self.end(cx, why, Trouble::Unreachable);
    }

    /// Ends a session; `trouble`: problem of the portal, if the login was not complete.
    fn end(&mut self, cx: &mut Context<'_, impl Memory>, why: &str, trouble: Trouble) {
        let Some(link) = self.link.take() else { return };
        cx.poller.remove(self.token, link.stream().as_fd());
        (self.draining, self.logging_in) = (None, false);
        if link.is_up() {
            let redirected_by = self.redirected_by(self.paths.last(), self.address).map(tracing::field::display);
            tracing::info!(target = self.config.target, portal = %self.address, redirected_by, why, "the session ended");
            why.clone_into(&mut self.why);
            self.counters.lost += 1;
            // Unsent output must not be sent later.
            reset_when_closed(link.stream());
            for active in self.commands.values().filter(|active| active.changes_medium()) {
                if let Owner::Disk(lun) = active.owner {
                    self.stale.lost(lun, TargetPort::Group(link.portal_group()));
                }
            }
        }
        self.stale.resets_end();
        // Disks receive the loss of the path first, and then ignore the ends of their commands.
        self.disks.path(cx.now, false);
        for (_, active) in std::mem::take(&mut self.commands) {
            let id = active.command.id;
            self.disks.ended(cx.now, active.owner, Reply { id, end: End::PathGone });
        }
        for (_, lun) in std::mem::take(&mut self.resets) {
            self.disks.reset_done(cx.now, lun, false);
        }
        match link.is_up() {
            true => self.paths.handle(cx.now, PathsInput::Lost),
            false => self.failed(cx.now, self.paths.last(), self.address, trouble, why),
        }
    }
}
