//! A link end: [`Tunnel`], the machine of its TCP connections.
//!
//! One end connects, the other one listens. The end that connects sends a special frame, and the
//! other end checks and echoes it (RFC 3821, section 8.1). Then both have a link. At most one
//! connection carries frames; a newer one with the same names replaces it, because a listening end
//! may not notice that the older one is dead.

use sanloom_scsi::random::SplitMix64;
use sanloom_scsi::time::{Instant, Span};
use sanloom_wire::Wwnn;
use sanloom_wire::fcip::{KeepAlive, Special, Stamp};
use std::collections::VecDeque;

/// Time that a connection has for its special frame and the echo (RFC 3821, section 8.1.2).
pub const OPENING_LIMIT: Span = Span::from_secs(90);
/// Time from the end of a connection to the next attempt.
pub const RETRY: Span = Span::from_secs(1);
/// Number of nonces that a listening end remembers.
const NONCES: usize = 64;
/// Limits of a keep-alive time-out that an end accepts.
const K_A_TOV: std::ops::RangeInclusive<Span> = Span::from_ms(100)..=Span::from_secs(3_600);

/// Number of a TCP connection, assigned by the driver.
pub type ConnectionId = u32;

/// Side of a link end that opens the TCP connection.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Role {
    /// This end connects.
    Connects,
    /// The other end connects.
    Listens,
}

/// Configuration of a link end.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct TunnelConfig {
    /// Side that opens the TCP connection.
    pub role: Role,
    /// Name of the switch.
    pub switch_name: Wwnn,
    /// Number of the link at this switch.
    pub entity: u64,
    /// Name of the switch at the other end; `None` accepts any.
    pub peer: Option<Wwnn>,
    /// Maximum age of a frame on arrival (R_A_TOV).
    pub r_a_tov: Span,
    /// Idle time after which the link is checked, and after twice of which it is closed. The end
    /// that listens takes the value of the other end.
    pub k_a_tov: Span,
    /// Seed of nonces.
    pub seed: u64,
}

/// Reason for the end of a connection.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Ending {
    /// The other end or the network has closed it.
    Closed,
    /// The opening took longer than [`OPENING_LIMIT`].
    OpeningTimeout,
    /// A frame arrived before the special frame, or a special frame after it.
    Protocol,
    /// The other end is not the expected switch.
    WrongPeer(Wwnn),
    /// The echo differs from the special frame in more than an open destination.
    WrongEcho,
    /// The nonce was used before: the connection is a replay, or leads to this end itself.
    UsedNonce,
    /// Nothing was received for twice the keep-alive time-out.
    Silent,
    /// The boundaries of frames were lost.
    LostSynchronisation,
    /// A newer connection has taken its place.
    Replaced,
    /// An operator has disabled the link.
    Disabled,
}

impl Ending {
    /// Returns the reason as text that follows "connection closed:".
    pub fn name(self) -> &'static str {
        match self {
            Ending::Closed => "closed by the other end or the network",
            Ending::OpeningTimeout => "no special frame within 90 s",
            Ending::Protocol => "frames before the special frame, or a second special frame",
            Ending::WrongPeer(_) => "the other end is another switch than expected",
            Ending::WrongEcho => "the echo differs from the special frame",
            Ending::UsedNonce => "the nonce was used before",
            Ending::Silent => "nothing received for twice K_A_TOV",
            Ending::LostSynchronisation => "boundaries of frames lost",
            Ending::Replaced => "replaced by a newer connection",
            Ending::Disabled => "disabled",
        }
    }
}

/// Event at a link end.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Input {
    /// Start, or start again after [`Input::Disable`].
    Enable,
    /// Close all connections and open no other.
    Disable,
    /// A TCP connection exists: the requested one, or an accepted one.
    Connected(ConnectionId),
    /// The requested connection could not be opened.
    Refused,
    /// A connection has received a special frame.
    Special(ConnectionId, Special),
    /// A connection has received an LKA or its accept.
    KeepAlive(ConnectionId, KeepAlive),
    /// A connection that is not the link has received a frame.
    Unexpected(ConnectionId),
    /// The framer of a connection has found no frame for too long.
    Lost(ConnectionId),
    /// A connection is closed.
    Closed(ConnectionId),
    /// The time of [`Tunnel::poll_timeout`] has come.
    Timeout,
}

/// Request of a link end to its driver.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Output {
    /// Open a TCP connection to the other end.
    Connect,
    /// Send a special frame.
    Special(ConnectionId, Special),
    /// Send a frame of the keep-alive.
    KeepAlive(ConnectionId, KeepAlive),
    /// Send the rest and close.
    Close(ConnectionId, Ending),
    /// The connection carries frames from now on; the port of the switch is up.
    Up {
        /// The connection.
        connection: ConnectionId,
        /// Name of the switch at the other end.
        peer: Wwnn,
    },
    /// The port of the switch is down.
    Down(Ending),
}

/// State of a link end.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Phase {
    /// Disabled.
    Disabled,
    /// Waits for a connection, or for the time of the next attempt.
    Waiting,
    /// Waits for the TCP connection that it has requested.
    Connecting,
    /// Waits for a special frame or for its echo.
    Opening,
    /// The link is up.
    Up,
}

impl Phase {
    /// Returns the state as a word.
    pub const fn name(self) -> &'static str {
        match self {
            Phase::Disabled => "disabled",
            Phase::Waiting => "waiting",
            Phase::Connecting => "connecting",
            Phase::Opening => "opening",
            Phase::Up => "up",
        }
    }
}

/// Decision about a received frame.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Admission {
    /// The switch receives it.
    Deliver,
    /// It is older than R_A_TOV: drop it.
    Stale,
    /// The connection carries no frames yet, or no longer: drop it, and pass
    /// [`Input::Unexpected`].
    NotUp,
}

/// Counters of a link end.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct TunnelCounters {
    /// Connections that became links.
    pub connections: u64,
    /// Connections closed before or after that, except those that the other end closed.
    pub closed: u64,
    /// Frames dropped because of their age.
    pub stale: u64,
    /// Frames without a time stamp, which are delivered.
    pub unstamped: u64,
    /// LKAs sent.
    pub keep_alives: u64,
    /// Age of the oldest delivered frame, in nanoseconds.
    pub max_age_ns: u64,
}

/// A connection that waits for its special frame or for the echo.
#[derive(Debug)]
struct Opening {
    id: ConnectionId,
    deadline: Instant,
    /// The special frame that was sent; `None` at the end that listens.
    sent: Option<Special>,
}

/// The connection that carries frames.
#[derive(Debug)]
struct Link {
    id: ConnectionId,
    peer: Wwnn,
    entity: u64,
    k_a_tov: Span,
    last_received: Instant,
    /// Time at which the last LKA was sent, if nothing was received since.
    asked: Option<Instant>,
}

/// The machine of a link end.
#[derive(Debug)]
pub struct Tunnel {
    config: TunnelConfig,
    epoch: Stamp,
    enabled: bool,
    connecting: bool,
    /// Time of the next attempt to connect.
    retry: Option<Instant>,
    opening: Option<Opening>,
    link: Option<Link>,
    nonces: VecDeque<u64>,
    random: SplitMix64,
    outputs: VecDeque<Output>,
    counters: TunnelCounters,
}

impl Tunnel {
    /// Returns a link end that is disabled. `epoch`: time stamp at time zero of the machine.
    pub fn new(config: TunnelConfig, epoch: Stamp) -> Tunnel {
        let random = SplitMix64(config.seed);
        Tunnel {
            config,
            epoch,
            enabled: false,
            connecting: false,
            retry: None,
            opening: None,
            link: None,
            nonces: VecDeque::new(),
            random,
            outputs: VecDeque::new(),
            counters: TunnelCounters::default(),
        }
    }

    /// Returns the state.
    pub fn phase(&self) -> Phase {
        match self {
            Tunnel { link: Some(_), .. } => Phase::Up,
            Tunnel { opening: Some(_), .. } => Phase::Opening,
            Tunnel { connecting: true, .. } => Phase::Connecting,
            Tunnel { enabled: true, .. } => Phase::Waiting,
            _ => Phase::Disabled,
        }
    }

    /// Returns the name of the switch at the other end of the link, while it is up.
    pub fn peer(&self) -> Option<Wwnn> {
        self.link.as_ref().map(|link| link.peer)
    }

    /// Returns the connection that carries frames.
    pub fn connection(&self) -> Option<ConnectionId> {
        self.link.as_ref().map(|link| link.id)
    }

    /// Returns the counters.
    pub fn counters(&self) -> TunnelCounters {
        self.counters
    }

    /// Returns the time stamp of a frame that is sent at `now`. It is never [`Stamp::NONE`].
    pub fn stamp(&self, now: Instant) -> Stamp {
        let ns = now.as_ns();
        let fraction = ((ns % 1_000_000_000) << 32) / 1_000_000_000;
        let units = (ns / 1_000_000_000) << 32 | fraction;
        let stamp = self.epoch.0.wrapping_add(units);
        Stamp(stamp.max(1))
    }

    /// Takes note that the peer of the link is not silent.
    pub fn heard(&mut self, now: Instant) {
        if let Some(link) = &mut self.link {
            (link.last_received, link.asked) = (now, None);
        }
    }

    /// Decides about a frame that connection `id` has received. Call it for each frame.
    #[inline]
    pub fn admit(&mut self, now: Instant, id: ConnectionId, stamp: Stamp) -> Admission {
        let own = self.stamp(now);
        let Some(link) = self.link.as_mut().filter(|link| link.id == id) else { return Admission::NotUp };
        (link.last_received, link.asked) = (now, None);
        if stamp == Stamp::NONE {
            self.counters.unstamped += 1;
            return Admission::Deliver;
        }
        let age = own.ns_since(stamp);
        if age > self.config.r_a_tov.as_ns() {
            self.counters.stale += 1;
            return Admission::Stale;
        }
        self.counters.max_age_ns = self.counters.max_age_ns.max(age);
        Admission::Deliver
    }

    /// Processes an event.
    pub fn handle(&mut self, now: Instant, input: Input) {
        match input {
            Input::Enable if !self.enabled => {
                self.enabled = true;
                self.connect(now);
            }
            Input::Enable => {}
            Input::Disable => self.disable(),
            Input::Connected(id) => self.connected(now, id),
            Input::Refused => {
                if std::mem::take(&mut self.connecting) {
                    self.retry = Some(now + RETRY);
                }
            }
            Input::Special(id, special) => self.special(now, id, special),
            Input::KeepAlive(id, kind) => self.keep_alive(now, id, kind),
            Input::Unexpected(id) => self.close(now, id, Ending::Protocol),
            Input::Lost(id) => self.close(now, id, Ending::LostSynchronisation),
            Input::Closed(id) => self.ended(now, id, Ending::Closed),
            Input::Timeout => self.timeout(now),
        }
    }

    /// Returns the next request.
    pub fn poll_output(&mut self) -> Option<Output> {
        self.outputs.pop_front()
    }

    /// Returns the time of the next [`Input::Timeout`].
    pub fn poll_timeout(&self) -> Option<Instant> {
        let link = self.link.as_ref().map(|link| link.asked.unwrap_or(link.last_received) + link.k_a_tov);
        Instant::earliest(&[self.retry, self.opening.as_ref().map(|opening| opening.deadline), link])
    }

    fn connect(&mut self, now: Instant) {
        self.retry = None;
        let idle = self.link.is_none() && self.opening.is_none() && !self.connecting;
        if self.enabled && self.config.role == Role::Connects && idle {
            self.connecting = true;
            self.outputs.push_back(Output::Connect);
        }
        debug_assert!(self.retry.is_none_or(|at| at > now));
    }

    fn disable(&mut self) {
        self.enabled = false;
        self.retry = None;
        self.connecting = false;
        for id in [self.opening.take().map(|opening| opening.id), self.connection()].into_iter().flatten() {
            self.counters.closed += 1;
            self.outputs.push_back(Output::Close(id, Ending::Disabled));
        }
        if self.link.take().is_some() {
            self.outputs.push_back(Output::Down(Ending::Disabled));
        }
    }

    fn connected(&mut self, now: Instant, id: ConnectionId) {
        let requested = std::mem::take(&mut self.connecting);
        let connects = self.config.role == Role::Connects;
        if !self.enabled || connects && !requested {
            self.counters.closed += 1;
            self.outputs.push_back(Output::Close(id, Ending::Disabled));
            return;
        }
        if let Some(older) = self.opening.take() {
            self.counters.closed += 1;
            self.outputs.push_back(Output::Close(older.id, Ending::Replaced));
        }
        let sent = connects.then(|| Special {
            changed: false,
            stamp: self.stamp(now),
            source: self.config.switch_name,
            entity: self.config.entity,
            nonce: self.random.bits(),
            usage_flags: 0,
            usage_code: 0,
            destination: self.config.peer.unwrap_or_default(),
            k_a_tov_ms: u32::try_from(self.config.k_a_tov.as_ms()).unwrap_or(u32::MAX),
        });
        if let Some(special) = sent {
            self.outputs.push_back(Output::Special(id, special));
        }
        self.opening = Some(Opening { id, deadline: now + OPENING_LIMIT, sent });
    }

    fn special(&mut self, now: Instant, id: ConnectionId, special: Special) {
        match self.opening.take_if(|opening| opening.id == id) {
            Some(Opening { sent: Some(sent), .. }) => self.echo(now, id, &sent, special),
            Some(Opening { sent: None, .. }) => self.request(now, id, special),
            None => self.close(now, id, Ending::Protocol),
        }
    }

    /// Checks a request of the other end and echoes it.
    fn request(&mut self, now: Instant, id: ConnectionId, special: Special) {
        let own = self.config.switch_name;
        let ending = if special.changed {
            Some(Ending::Protocol)
        } else if self.nonces.contains(&special.nonce) {
            Some(Ending::UsedNonce)
        } else if self.config.peer.is_some_and(|peer| peer != special.source) || special.source == own {
            Some(Ending::WrongPeer(special.source))
        } else {
            None
        };
        if let Some(ending) = ending {
            self.counters.closed += 1;
            self.outputs.push_back(Output::Close(id, ending));
            return;
        }
        if self.nonces.len() == NONCES {
            self.nonces.pop_front();
        }
        self.nonces.push_back(special.nonce);
        let is_meant = special.destination == own;
        let echo = Special { changed: !is_meant, destination: own, ..special };
        self.outputs.push_back(Output::Special(id, echo));
        if is_meant || special.destination == Wwnn(0) {
            let k_a_tov = Span::from_ms(special.k_a_tov_ms.into()).clamp(*K_A_TOV.start(), *K_A_TOV.end());
            self.up(
                now,
                Link { id, peer: special.source, entity: special.entity, k_a_tov, last_received: now, asked: None },
            );
        } else {
            self.counters.closed += 1;
            self.outputs.push_back(Output::Close(id, Ending::WrongPeer(special.destination)));
        }
    }

    /// Checks the echo of the special frame that was sent.
    fn echo(&mut self, now: Instant, id: ConnectionId, sent: &Special, echo: Special) {
        let peer = echo.destination;
        let as_sent = Special { changed: false, stamp: sent.stamp, destination: sent.destination, ..echo };
        let changed = peer != sent.destination;
        let ending = if as_sent != *sent || echo.changed != changed {
            Some(Ending::WrongEcho)
        } else if changed && sent.destination != Wwnn(0) || peer == Wwnn(0) || peer == self.config.switch_name {
            Some(Ending::WrongPeer(peer))
        } else {
            None
        };
        match ending {
            Some(ending) => {
                self.counters.closed += 1;
                self.outputs.push_back(Output::Close(id, ending));
                self.retry = Some(now + RETRY);
            }
            None => self.up(
                now,
                Link {
                    id,
                    peer,
                    entity: 0,
                    k_a_tov: self.config.k_a_tov.clamp(*K_A_TOV.start(), *K_A_TOV.end()),
                    last_received: now,
                    asked: None,
                },
            ),
        }
    }

    fn up(&mut self, now: Instant, link: Link) {
        let (connection, peer) = (link.id, link.peer);
        if let Some(older) = &self.link
            && (older.peer, older.entity) != (link.peer, link.entity)
        {
            // The link belongs to another end.
            self.counters.closed += 1;
            self.outputs.push_back(Output::Close(connection, Ending::WrongPeer(peer)));
            return;
        }
        if let Some(older) = self.link.replace(link) {
            self.counters.closed += 1;
            self.outputs.push_back(Output::Close(older.id, Ending::Replaced));
            self.outputs.push_back(Output::Down(Ending::Replaced));
        }
        self.counters.connections += 1;
        self.outputs.push_back(Output::Up { connection, peer });
        debug_assert!(self.poll_timeout().is_some_and(|at| at > now), "an idle link is checked later");
    }

    fn keep_alive(&mut self, now: Instant, id: ConnectionId, kind: KeepAlive) {
        let Some(link) = self.link.as_mut().filter(|link| link.id == id) else {
            return self.close(now, id, Ending::Protocol);
        };
        (link.last_received, link.asked) = (now, None);
        if kind == KeepAlive::Request {
            self.outputs.push_back(Output::KeepAlive(id, KeepAlive::Accept));
        }
    }

    /// Closes a connection of either kind.
    fn close(&mut self, now: Instant, id: ConnectionId, ending: Ending) {
        let is_opening = self.opening.as_ref().is_some_and(|opening| opening.id == id);
        if is_opening || self.connection() == Some(id) {
            self.counters.closed += 1;
            self.outputs.push_back(Output::Close(id, ending));
            self.ended(now, id, ending);
        }
    }

    /// Removes a connection that is closed.
    fn ended(&mut self, now: Instant, id: ConnectionId, ending: Ending) {
        let was_opening = self.opening.take_if(|opening| opening.id == id).is_some();
        let was_link = self.link.take_if(|link| link.id == id).is_some();
        if was_link {
            self.outputs.push_back(Output::Down(ending));
        }
        if (was_opening || was_link) && self.config.role == Role::Connects {
            self.retry = Some(now + RETRY);
        }
    }

    fn timeout(&mut self, now: Instant) {
        if self.retry.is_some_and(|at| at <= now) {
            self.connect(now);
        }
        if let Some(id) = self.opening.as_ref().filter(|opening| opening.deadline <= now).map(|opening| opening.id) {
            self.close(now, id, Ending::OpeningTimeout);
        }
        let Some(link) = &mut self.link else { return };
        let id = link.id;
        match link.asked {
            None if link.last_received + link.k_a_tov <= now => {
                link.asked = Some(now);
                self.counters.keep_alives += 1;
                self.outputs.push_back(Output::KeepAlive(id, KeepAlive::Request));
            }
            Some(asked) if asked + link.k_a_tov <= now => self.close(now, id, Ending::Silent),
            _ => {}
        }
    }
}
