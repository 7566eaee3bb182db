//! A connection to a target of back ends that belongs to one session of a host: [`BackLink`].
//!
//! It logs in with the initiator's code. After that its bytes are the Data Mover's. When it is lost, it comes back with the same
//! initiator session identifier, so that the new session ends what the target still does for the old one. At its end it logs out.

use crate::iscsi::buffers::Spare;
use crate::iscsi::initiator::link::{Buffers, Event, Link};
use crate::iscsi::initiator::{CONNECT_TIME, RemoteConfig, open, opened, portal_of, random, reset_when_closed};
use crate::iscsi::output::Egress;
use crate::poll::Interest;
use crate::sys::stream::bound_buffers;
use crate::volumes::Way;
use rustix::net::sockopt;
use sanloom_core::iscsi::Parameters;
use sanloom_core::iscsi::forward::mover::Piece;
use sanloom_core::iscsi::forward::{BackUnit, back_wishes};
use sanloom_core::iscsi::initiator::{Established, LoginError};
use sanloom_core::iscsi::parameters::{Digests, Wishes};
use sanloom_core::time::{Instant, Span};
use sanloom_wire::iscsi::Head;
use std::io::{self, Read};
use std::net::{Shutdown, SocketAddr, TcpStream};
use std::os::fd::{AsFd, BorrowedFd};
use std::sync::Arc;

/// From a lost connection to the next attempt.
const RETRY: Span = Span::from_ms(100);
/// From a refused login to the next one.
const REFUSED_RETRY: Span = Span::from_secs(2);
/// A target that takes nothing for so long keeps its host from nobody else any more.
const STUCK: Span = Span::from_ms(200);
/// So much waits in the kernel for a target: what it needs to go on while others run.
const SEND_BYTES: usize = 512 << 10;
/// A target has so long to close the connection of a session that has logged out.
const FAREWELL: Span = Span::from_secs(2);

#[derive(Debug)]
enum State {
    /// The next attempt is then.
    Off(Instant),
    Connecting(TcpStream, Instant),
    Login(Box<Link>),
    Up(TcpStream),
    /// Logged out, or about to be; closed then.
    Leaving(TcpStream, Instant),
}

/// A login that is complete, and the units behind it.
pub(super) struct Up {
    pub(super) established: Established,
    pub(super) units: Vec<BackUnit>,
}

/// The connection.
#[derive(Debug)]
pub(in crate::iscsi) struct BackLink {
    state: State,
    /// Where the target sent the last login, for this time.
    moved: Option<SocketAddr>,
    /// What leaves.
    pub(super) output: Egress,
    /// What has come and was not used.
    pub(super) rest: Vec<u8>,
    /// Nothing is missing of that: the host's connection was not free.
    pub(super) stalled: bool,
    pub(super) readable: bool,
    /// Since when it is lost.
    pub(super) lost: Option<Instant>,
    /// The portal that it was opened to, as the lab has it, and the portal group of the session.
    portal: Option<SocketAddr>,
    group: Option<u16>,
    /// The portal group at which something may still be done for it, and since when.
    left: Option<(Option<u16>, Instant)>,
    /// Since when it has taken nothing, with much on its way.
    full: Option<Instant>,
    /// For so long that it may stay so.
    pub(super) stuck: bool,
    refused: Option<LoginError>,
}

/// A login has text only.
struct NoBuffers;

impl Buffers for NoBuffers {
    fn room(&mut self, _: u64, _: usize, _: usize) -> Option<&mut [u8]> {
        None
    }

    fn data(&mut self, _: u64) -> Option<(Arc<Vec<u8>>, u32)> {
        None
    }
}

/// What is wished for at a target, for a host that has agreed to `front`. None: the lab wants digests that do not fit it.
fn wishes(config: &RemoteConfig, front: &Parameters) -> Option<Wishes> {
    let unfit = if front.data_digest { Digests::Never } else { Digests::Always };
    let fits = config.wishes.data_digest != unfit;
    fits.then(|| Wishes { header_digest: config.wishes.header_digest, ..back_wishes(front) })
}

impl BackLink {
    /// A connection that is to be opened.
    pub(super) fn new() -> BackLink {
        BackLink {
            state: State::Off(Instant::ZERO),
            moved: None,
            output: Egress::default(),
            rest: Vec::new(),
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

    /// The full feature phase.
    pub(super) fn is_up(&self) -> bool {
        matches!(self.state, State::Up(_))
    }

    /// It has something to do without being heard of.
    pub(super) fn is_due(&self, now: Instant) -> bool {
        match &self.state {
            State::Off(at) | State::Connecting(_, at) => *at <= now,
            State::Login(link) => link.poll_timeout().is_some_and(|at| at <= now),
            State::Up(_) => false,
            State::Leaving(_, until) => *until <= now,
        }
    }

    /// What to wait for; `reads`: data for the host have room.
    pub(super) fn interest(&self, reads: bool) -> (Option<BorrowedFd<'_>>, Interest) {
        match &self.state {
            State::Off(_) => (None, Interest::default()),
            State::Connecting(stream, _) => (Some(stream.as_fd()), Interest { read: false, write: true }),
            State::Login(link) => {
                let write = link.output.blocked && !link.output.is_empty();
                (Some(link.stream.as_fd()), Interest { read: true, write })
            }
            State::Up(stream) => {
                let write = self.output.blocked && !self.output.is_empty();
                (Some(stream.as_fd()), Interest { read: reads, write })
            }
            State::Leaving(stream, _) => {
                let write = self.output.blocked && !self.output.is_empty();
                (Some(stream.as_fd()), Interest { read: true, write })
            }
        }
    }

    pub(super) fn happened(&mut self, readable: bool, writable: bool) {
        self.readable |= readable;
        self.full.take_if(|_| writable);
        match &mut self.state {
            State::Off(_) | State::Up(_) | State::Leaving(..) => self.output.blocked &= !writable,
            State::Login(link) => link.output.blocked &= !writable,
            // Open, or not: looked at in the next turn.
            State::Connecting(_, until) if readable || writable => *until = Instant::ZERO,
            State::Connecting(..) => {}
        }
    }

    /// Closed. It is opened again.
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
        (self.output, self.rest) = (Egress::default(), Vec::new());
        (self.stalled, self.readable) = (false, false);
        (self.full, self.stuck) = (None, false);
    }

    /// Looks whether the target takes anything. True if that is not as it was.
    pub(super) fn look_whether_stuck(&mut self, now: Instant, much_bytes: usize) -> bool {
        match self.output.bytes >= much_bytes {
            true => _ = self.full.get_or_insert(now),
            false => self.full = None,
        }
        let stuck = self.full.is_some_and(|since| since + STUCK <= now);
        std::mem::replace(&mut self.stuck, stuck) != stuck
    }

    /// Logs out with this PDU, behind what waits; what the target still sends is for nobody.
    pub(super) fn log_out(&mut self, now: Instant, request: &Head, header_digest: bool, spare: &mut Spare) {
        self.output.agree(header_digest, false);
        self.output.push(request, Box::default());
        if let State::Up(stream) = std::mem::replace(&mut self.state, State::Off(now + RETRY)) {
            self.state = State::Leaving(stream, now + FAREWELL);
            self.leave(now, spare);
        }
    }

    /// It has not been left yet.
    pub(super) fn is_leaving(&self) -> bool {
        matches!(self.state, State::Leaving(..))
    }

    /// Goes on with a logout: when the request has left the target closes the connection, or has no more time for that.
    pub(super) fn leave(&mut self, now: Instant, spare: &mut Spare) {
        let State::Leaving(stream, until) = &mut self.state else { return };
        let waiting = !self.output.is_empty();
        let mut over = *until <= now || self.output.flush(stream, spare).is_err();
        if waiting && self.output.is_empty() {
            // It may wait for us to close the connection (RFC 7143, section 11.15).
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

    /// Goes on with a connection that is not up. `way`: where the target is, if it can be used.
    pub(super) fn tend(&mut self, now: Instant, front: &Parameters, way: Option<Way<'_>>) -> Option<Up> {
        let Some((way, wishes)) = way.and_then(|way| wishes(way.config, front).map(|wishes| (way, wishes))) else {
            self.off(now + RETRY);
            return None;
        };
        match &mut self.state {
            State::Off(at) if *at <= now => {
                self.portal = Some(way.portal);
                match open(self.moved.take().unwrap_or(way.portal)) {
                    Ok(stream) => self.state = State::Connecting(stream, now + CONNECT_TIME),
                    Err(_) => self.off(now + RETRY),
                }
            }
            State::Connecting(_, until) if *until <= now => self.log_in(now, &way, wishes),
            _ => {}
        }
        self.go_on(now, way)
    }

    /// The connection is open, or failed.
    fn log_in(&mut self, now: Instant, way: &Way<'_>, wishes: Wishes) {
        let State::Connecting(stream, _) = std::mem::replace(&mut self.state, State::Off(now + RETRY)) else { return };
        let Ok(challenge) = opened(&stream).and_then(|()| random::<16>()) else { return };
        let login = way.config.login(way.isid, wishes, challenge);
        let mut link = Link::for_login(now, stream, login);
        link.drain(now, &mut NoBuffers);
        self.state = State::Login(Box::new(link));
        self.readable = true;
    }

    /// Follows a login.
    fn go_on(&mut self, now: Instant, way: Way<'_>) -> Option<Up> {
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
                    // Two that send us to each other keep nobody busy.
                    self.off(now + RETRY);
                    return None;
                }
                Event::Refused(error) => {
                    if self.refused.as_ref() != Some(&error) {
                        tracing::warn!(target = way.config.target, %error, "nothing is forwarded there: login");
                    }
                    self.off(now + REFUSED_RETRY);
                    self.refused = Some(error);
                    return None;
                }
                Event::Broken(_) | Event::Done(..) => outcome = Err(io::ErrorKind::ConnectionAborted.into()),
            }
        }
        if let Err(error) = outcome {
            tracing::debug!(target = way.config.target, %error, "no login for what is forwarded");
            self.off(now + RETRY);
            return None;
        }
        if !up {
            return None;
        }
        let State::Login(link) = std::mem::replace(&mut self.state, State::Off(now + RETRY)) else { return None };
        let (stream, established, rest) = link.hand_over();
        let established = established?;
        if let Err(error) = bound_buffers(&stream, SEND_BYTES) {
            tracing::debug!(target = way.config.target, %error, "cannot bound buffers");
        }
        (self.output, self.state) = (Egress::default(), State::Up(stream));
        (self.stalled, self.readable) = (!rest.is_empty(), true);
        (self.rest, self.refused) = (rest, None);
        self.group = established.portal_group;
        Some(Up { established, units: way.units })
    }

    /// A login has come to another portal group than that where something may still be done for it: since when. It ends only what
    /// was at its own.
    pub(super) fn left_elsewhere(&self) -> Option<Instant> {
        self.left.filter(|(group, _)| *group != self.group).map(|(_, since)| since)
    }

    /// Nothing is done any more for the session before.
    pub(super) fn settled(&mut self) {
        (self.left, self.lost) = (None, None);
    }

    /// It is at another portal than this one.
    pub(super) fn is_elsewhere(&self, portal: SocketAddr) -> bool {
        self.portal.is_some_and(|at| at != portal)
    }

    /// Sends these, behind what waits.
    pub(super) fn send(&mut self, pieces: &[Piece], input: &[u8], spare: &mut Spare) -> io::Result<()> {
        match &mut self.state {
            State::Up(stream) => self.output.send(stream, pieces, input, spare),
            // It is for nobody.
            _ => Ok(()),
        }
    }

    /// Whether it is broken, though nothing is read: otherwise the poller would tell so again and again.
    pub(super) fn look(&self) -> io::Result<()> {
        match &self.state {
            State::Up(stream) => Ok(sockopt::socket_error(stream)??),
            _ => Ok(()),
        }
    }

    /// Reads behind what is there. None: nothing has come.
    pub(super) fn read(&mut self, room: &mut [u8]) -> io::Result<Option<usize>> {
        let State::Up(stream) = &mut self.state else { return Ok(None) };
        match stream.read(room) {
            Ok(0) => Err(io::ErrorKind::UnexpectedEof.into()),
            Ok(got) => Ok(Some(got)),
            Err(error) if matches!(error.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::Interrupted) => Ok(None),
            Err(error) => Err(error),
        }
    }
}
