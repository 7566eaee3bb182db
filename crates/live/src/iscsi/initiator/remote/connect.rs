//! How a session comes and goes: the connections that [`Paths`](sanloom_core::disk::Paths) asks for.

use super::commands::Both;
use super::settle::Place;
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
        if let Some((_, portal)) = self.again.take_if(|(at, _)| *at <= now) {
            self.open_at(now, portal, poller);
        }
        self.carry_paths(now, poller, memory);
    }

    /// Does what the choice of paths wants.
    pub(super) fn carry_paths(&mut self, now: Instant, poller: &mut Poller, memory: &mut impl Memory) {
        while let Some(output) = self.paths.poll_output() {
            match output {
                PathsOutput::Open(path) => self.open_at(now, self.config.portals[path], poller),
                PathsOutput::Abandon => self.close_opening(poller),
                PathsOutput::Drain => {
                    tracing::info!(target = self.config.target, portal = %self.portal(), "another portal is better");
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

    fn open_at(&mut self, now: Instant, portal: SocketAddr, poller: &mut Poller) {
        self.close_opening(poller);
        match open(portal) {
            Ok(stream) => {
                let (until, look_at) = (now + CONNECT_TIME, now + LOOK);
                self.opening = Some(Opening { stream, until, look_at, open: false });
            }
            Err(error) => self.failed(now, &error.to_string()),
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
                self.close_opening(poller);
                self.failed(now, &error.to_string());
            }
        }
        self.carry_paths(now, poller, memory);
    }

    /// A login was begun, and its connection has to be another one.
    fn is_logging_in(&self) -> bool {
        self.logging_in && self.link.is_none()
    }

    fn log_in(&mut self, now: Instant, poller: &mut Poller, memory: &mut impl Memory) {
        let Some(opening) = self.opening.take() else { return self.failed(now, "the connection is gone") };
        poller.remove(self.token, opening.stream.as_fd());
        self.logging_in = true;
        let challenge = match random::<16>() {
            Ok(challenge) => challenge,
            Err(error) => return self.failed(now, &error.to_string()),
        };
        let isid = self.before.front().copied().unwrap_or(self.isid);
        let login = self.config.login(isid, self.config.wishes, challenge);
        let mut link = Link::new(now, opening.stream, login, self.config.session);
        link.drain(now, &mut Both { commands: &mut self.commands, memory });
        self.link = Some(Box::new(link));
        // What comes at once is not waited for.
        self.readable = true;
    }

    /// A portal does not answer, or does not let us in.
    fn failed(&mut self, now: Instant, why: &str) {
        tracing::debug!(target = self.config.target, portal = %self.portal(), why, "no connection");
        if self.link.is_none() {
            why.clone_into(&mut self.why);
            self.logging_in = false;
        }
        self.paths.handle(now, PathsInput::Failed);
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
                    tracing::info!(target = self.config.target, portal = %self.portal(), "logged in");
                    (self.refused, self.logging_in) = (None, false);
                    self.counters.logins += 1;
                    self.paths.handle(now, PathsInput::LoggedIn);
                    if !self.settle(now, memory) {
                        self.disks.path(now, true);
                    }
                }
                LinkEvent::Refused(LoginError::Moved { address, permanent }) => {
                    tracing::info!(address, permanent, "the target has moved");
                    self.drop_link(poller);
                    match portal_of(&address) {
                        Some(portal) => {
                            if permanent {
                                let path = self.paths.last() % self.config.portals.len();
                                self.config.portals[path] = portal;
                            }
                            "moved".clone_into(&mut self.why);
                            self.again = Some((now + RETRY, portal));
                        }
                        None => self.failed(now, "moved to nowhere"),
                    }
                }
                LinkEvent::Refused(error) => {
                    if self.refused.as_ref() != Some(&error) {
                        tracing::warn!(target = self.config.target, %error, "login");
                    }
                    self.lose(now, &error.to_string(), poller);
                    self.refused = Some(error);
                }
                LinkEvent::Done(id, outcome) => self.ended(now, id, outcome, poller),
                LinkEvent::Broken(why) => self.lose(now, &why.to_string(), poller),
            }
        }
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
        let Some(link) = self.link.take() else { return };
        poller.remove(self.token, link.stream.as_fd());
        tracing::info!(target = self.config.target, portal = %self.portal(), why, "the session is gone");
        why.clone_into(&mut self.why);
        (self.draining, self.logging_in) = (None, false);
        if link.is_up() {
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
        self.paths.handle(now, PathsInput::Lost);
    }
}
