//! Connection to a target of back ends for one session of a host: [`BackLink`].
//!
//! The login uses the code of the initiator; after it the data mover processes the bytes. A lost
//! connection is opened again with the same initiator session identifier, so that the new session
//! ends tasks of the old one. At its end the connection logs out.

use crate::iscsi_initiator::RemoteConfig;
use crate::iscsi_initiator::link::{Buffers, Event, Link};
use crate::poll::Interest;
use crate::session::buffers::Spare;
use crate::session::socket::{CONNECT_TIME, open, opened, portal_of, random, reset_when_closed};
use crate::session::{Arrived, Egress, Unread, check};
use crate::sys::stream::bound_buffers;
use crate::volumes::TargetRoute;
use sanloom_scsi::iscsi::forward::mover::Piece;
use sanloom_scsi::iscsi::forward::{BackUnit, back_offers};
use sanloom_scsi::iscsi::initiator::{Established, LoginError};
use sanloom_scsi::iscsi::parameters::{Digests, Offers};
use sanloom_scsi::iscsi::{Layout, Parameters};
use sanloom_scsi::time::{Instant, Span};
use sanloom_wire::iscsi::Head;
use std::io::{self, Read};
use std::net::{Shutdown, SocketAddr, TcpStream};
use std::os::fd::{AsFd, BorrowedFd};
use std::sync::Arc;

/// Delay from a lost connection to the next attempt.
const RETRY: Span = Span::from_ms(100);
/// Delay from a rejected login to the next one.
const REFUSED_RETRY: Span = Span::from_secs(2);
/// A target that accepts no data for this time no longer stops the reads from its host.
const BLOCKED_TIME: Span = Span::from_ms(200);
/// Send buffer of the socket, in bytes: enough to keep the target busy while other connections are
/// served.
const SEND_BYTES: usize = 512 << 10;
/// Bytes of one read after which the socket is assumed to have more.
const BULK_BYTES: usize = 16 << 10;
/// Time in which a target must close the connection after a logout.
const LOGOUT_TIME: Span = Span::from_secs(2);

#[derive(Debug)]
enum State {
    /// Not connected; the time of the next attempt.
    Off(Instant),
    Connecting(TcpStream, Instant),
    Login(Box<Link>),
    Up(TcpStream),
    /// Logging out; the time at which it is closed at the latest.
    Leaving(TcpStream, Instant),
}

/// A completed login, and the units of the target.
pub(super) struct Up {
    pub(super) established: Established,
    pub(super) units: Vec<BackUnit>,
}

/// The connection.
#[derive(Debug)]
pub(in crate::iscsi) struct BackLink {
    state: State,
    /// Target address for this login, after a redirection.
    moved: Option<SocketAddr>,
    /// Output queue.
    pub(super) output: Egress,
    /// Input that is not consumed.
    pub(super) rest: Unread,
    /// The input is complete, but blocked because a PDU of another back end is half sent.
    pub(super) stalled: bool,
    pub(super) readable: bool,
    /// Time of the loss, while it is not up.
    pub(super) lost: Option<Instant>,
    /// Portal of the lab to which it was opened, and portal group of the session.
    portal: Option<SocketAddr>,
    group: Option<u16>,
    /// Portal group at which tasks of an earlier session may still be in progress, and the time of
    /// the loss.
    left: Option<(Option<u16>, Instant)>,
    /// Time since which the target has accepted no data although much is queued.
    full: Option<Instant>,
    /// The target has accepted no data for [`BLOCKED_TIME`].
    pub(super) stuck: bool,
    refused: Option<LoginError>,
}

/// Buffers of a login, which has text only.
struct NoBuffers;

impl Buffers for NoBuffers {
    fn room(&mut self, _: u64, _: usize, _: usize) -> Option<&mut [u8]> {
        None
    }

    fn data(&mut self, _: u64) -> Option<(Arc<Vec<u8>>, u32)> {
        None
    }
}

/// Returns the parameters to request from a target for a host that has agreed to `front`. `None` if
/// the configured digests do not match those of the host.
fn offers(config: &RemoteConfig, front: &Parameters) -> Option<Offers> {
    let unfit = if front.data_digest { Digests::Never } else { Digests::Always };
    let fits = config.offers.data_digest != unfit;
    fits.then(|| Offers { header_digest: config.offers.header_digest, ..back_offers(front) })
}

impl BackLink {
    /// Returns a connection that is not yet open.
    pub(super) fn new() -> BackLink {
        BackLink {
            state: State::Off(Instant::ZERO),
            moved: None,
            output: Egress::default(),
            rest: Unread::default(),
            stalled: false,
            readable: false,
            lost: None,
            portal: None,
            group: None,
            left: None,
            full: None,
            stuck: false,
            refused: None,
        }
    }

    /// Returns whether the full feature phase has begun.
    pub(super) fn is_up(&self) -> bool {
        matches!(self.state, State::Up(_))
    }

    /// Returns whether there is work without an event of the poller.
    pub(super) fn is_due(&self, now: Instant) -> bool {
        match &self.state {
            State::Off(at) | State::Connecting(_, at) => *at <= now,
            State::Login(link) => link.poll_timeout().is_some_and(|at| at <= now),
            State::Up(_) => false,
            State::Leaving(_, until) => *until <= now,
        }
    }

    /// Events to wait for; `reads`: the output queue of the host has room.
    pub(super) fn interest(&self, reads: bool) -> (Option<BorrowedFd<'_>>, Interest) {
        match &self.state {
            State::Off(_) => (None, Interest::default()),
            State::Connecting(stream, _) => (Some(stream.as_fd()), Interest { read: false, write: true }),
            State::Login(link) => (Some(link.stream().as_fd()), link.interest()),
            State::Up(stream) => (Some(stream.as_fd()), Interest { read: reads, write: self.output.wants_write() }),
            State::Leaving(stream, _) => {
                (Some(stream.as_fd()), Interest { read: true, write: self.output.wants_write() })
            }
        }
    }

    pub(super) fn set_ready(&mut self, readable: bool, writable: bool) {
        self.readable |= readable;
        self.full.take_if(|_| writable);
        match &mut self.state {
            State::Off(_) | State::Up(_) | State::Leaving(..) if writable => self.output.set_writable(),
            State::Login(link) if writable => link.set_writable(),
            // The state of the connection is checked in the next step.
            State::Connecting(_, until) if readable || writable => *until = Instant::ZERO,
            _ => {}
        }
    }

    /// Closes the connection; it is opened again later.
    pub(super) fn lose(&mut self, now: Instant) {
        if self.is_up() {
            self.lost = Some(now);
            if let State::Up(stream) = &self.state {
                reset_when_closed(stream);
            }
            self.left.get_or_insert((self.group, now));
        }
        self.off(now + RETRY);
    }

    fn off(&mut self, at: Instant) {
        self.state = State::Off(at);
        (self.output, self.rest) = (Egress::default(), Unread::default());
        (self.stalled, self.readable) = (false, false);
        (self.full, self.stuck) = (None, false);
    }

    /// Checks whether the target accepts data. Returns whether that has changed.
    pub(super) fn update_stuck(&mut self, now: Instant, much_bytes: usize) -> bool {
        match self.output.bytes >= much_bytes {
            true => _ = self.full.get_or_insert(now),
            false => self.full = None,
        }
        let stuck = self.full.is_some_and(|since| since + BLOCKED_TIME <= now);
        std::mem::replace(&mut self.stuck, stuck) != stuck
    }

    /// Logs out with `request`, after the queued output; further input is discarded.
    pub(super) fn log_out(&mut self, now: Instant, request: &Head, header_digest: bool, spare: &mut Spare) {
        self.output.agree(Layout { header_digest, data_digest: false });
        self.output.push(request, Box::default());
        if let State::Up(stream) = std::mem::replace(&mut self.state, State::Off(now + RETRY)) {
            self.state = State::Leaving(stream, now + LOGOUT_TIME);
            self.leave(now, spare);
        }
    }

    /// Returns whether a logout is in progress.
    pub(super) fn is_leaving(&self) -> bool {
        matches!(self.state, State::Leaving(..))
    }

    /// Continues a logout: once the request is sent, waits until the target closes the connection
    /// or [`LOGOUT_TIME`] is over.
    pub(super) fn leave(&mut self, now: Instant, spare: &mut Spare) {
        let State::Leaving(stream, until) = &mut self.state else { return };
        let waiting = !self.output.is_empty();
        let mut over = *until <= now || self.output.flush(stream, spare).is_err();
        if waiting && self.output.is_empty() {
            // The target may wait for the initiator to close the connection (RFC 7143, section
            // 11.15).
            over |= stream.shutdown(Shutdown::Write).is_err();
        }
        let mut nowhere = [0; 16 << 10];
        while !over {
            match stream.read(&mut nowhere) {
                Ok(0) => over = true,
                Ok(_) => {}
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return,
                Err(error) => over = error.kind() != io::ErrorKind::Interrupted,
            }
        }
        self.off(now + RETRY);
    }

    /// Continues to open a connection and to log in. `route`: address of the target, if it can be
    /// used.
    pub(super) fn advance(&mut self, now: Instant, front: &Parameters, route: Option<TargetRoute<'_>>) -> Option<Up> {
        let Some((route, offers)) = route.and_then(|route| offers(route.config, front).map(|offers| (route, offers)))
        else {
            self.off(now + RETRY);
            return None;
        };
        match &mut self.state {
            State::Off(at) if *at <= now => {
                self.portal = Some(route.portal);
                match open(self.moved.take().unwrap_or(route.portal)) {
                    Ok(stream) => self.state = State::Connecting(stream, now + CONNECT_TIME),
                    Err(_) => self.off(now + RETRY),
                }
            }
            State::Connecting(_, until) if *until <= now => self.log_in(now, &route, offers),
            _ => {}
        }
        self.advance_login(now, route)
    }

    /// Starts the login if the connection is open.
    fn log_in(&mut self, now: Instant, route: &TargetRoute<'_>, offers: Offers) {
        let State::Connecting(stream, _) = std::mem::replace(&mut self.state, State::Off(now + RETRY)) else { return };
        let Ok(challenge) = opened(&stream).and_then(|()| random::<16>()) else { return };
        let login = route.config.login(route.isid, offers, challenge);
        let mut link = Link::for_login(now, stream, login);
        link.drain(now, &mut NoBuffers);
        self.state = State::Login(Box::new(link));
        self.readable = true;
    }

    /// Continues a login.
    fn advance_login(&mut self, now: Instant, route: TargetRoute<'_>) -> Option<Up> {
        let State::Login(link) = &mut self.state else { return None };
        if link.poll_timeout().is_some_and(|at| at <= now) {
            link.timeout(now, &mut NoBuffers);
        }
        let mut outcome = link.flush();
        while std::mem::take(&mut self.readable) && outcome.is_ok() {
            outcome = link.read(now, &mut NoBuffers).map(|full| self.readable = full);
            outcome = outcome.and_then(|()| link.flush());
        }
        let mut up = false;
        for event in link.take_events() {
            match event {
                Event::Up => up = true,
                Event::Refused(LoginError::Moved { address, .. }) => {
                    self.moved = portal_of(&address);
                    // Two portals that redirect to each other must not cause a busy loop.
                    self.off(now + RETRY);
                    return None;
                }
                Event::Refused(error) => {
                    if self.refused.as_ref() != Some(&error) {
                        tracing::warn!(target = route.config.target, %error, "reads and writes are not forwarded: the login to the target failed");
                    }
                    self.off(now + REFUSED_RETRY);
                    self.refused = Some(error);
                    return None;
                }
                Event::Broken(_) | Event::Done(..) => outcome = Err(io::ErrorKind::ConnectionAborted.into()),
            }
        }
        if let Err(error) = outcome {
            tracing::debug!(target = route.config.target, %error, "login for forwarding failed; it is repeated");
            self.off(now + RETRY);
            return None;
        }
        if !up {
            return None;
        }
        let State::Login(link) = std::mem::replace(&mut self.state, State::Off(now + RETRY)) else { return None };
        let (mut transport, established) = link.hand_over();
        let established = established?;
        let rest = std::mem::take(transport.reader.unread());
        let stream = transport.stream;
        if let Err(error) = bound_buffers(&stream, SEND_BYTES) {
            tracing::debug!(target = route.config.target, %error, "the socket buffer size cannot be set");
        }
        (self.output, self.state) = (Egress::default(), State::Up(stream));
        (self.stalled, self.readable) = (!rest.is_empty(), true);
        (self.rest, self.refused) = (rest, None);
        self.group = established.portal_group;
        Some(Up { established, units: route.units })
    }

    /// Returns when a session was lost in another portal group than the current one. Its tasks may
    /// still be in progress, because a login ends only those of its own portal group.
    pub(super) fn left_elsewhere(&self) -> Option<Instant> {
        self.left.filter(|(group, _)| *group != self.group).map(|(_, since)| since)
    }

    /// Records that no task of an earlier session is in progress.
    pub(super) fn forget_previous(&mut self) {
        (self.left, self.lost) = (None, None);
    }

    /// Returns whether the connection uses another portal.
    pub(super) fn is_elsewhere(&self, portal: SocketAddr) -> bool {
        self.portal.is_some_and(|at| at != portal)
    }

    /// Sends `pieces` after the queued output.
    pub(super) fn send(&mut self, pieces: &[Piece], input: &[u8], spare: &mut Spare) -> io::Result<()> {
        match &mut self.state {
            State::Up(stream) => self.output.send(stream, pieces, input, spare),
            // Output during a logout is discarded.
            _ => Ok(()),
        }
    }

    /// Returns the error of the socket. Reads are paused, so without this check epoll would report
    /// the hang-up in a loop.
    pub(super) fn check(&self) -> io::Result<()> {
        match &self.state {
            State::Up(stream) => check(stream),
            _ => Ok(()),
        }
    }

    /// Reads once. Returns `None` if there is no input.
    pub(super) fn read(&mut self, input: &mut [u8]) -> io::Result<Option<Arrived>> {
        let State::Up(stream) = &mut self.state else { return Ok(None) };
        let before = self.rest.len();
        let arrived = self.rest.read(stream, input)?;
        // More input has arrived while a large read was forwarded; another read costs less than
        // waiting.
        Ok(arrived.map(|it| Arrived { is_full: it.is_full || it.bytes - before >= BULK_BYTES, ..it }))
    }
}
