//! FCIP links over TCP of the Ethernet plane.
//!
//! ```text
//!   lane -- frames --> FcoePlane -- positions --> Fcip --> Stacks --> segments of the plane
//!   lane <-- land ---- FcoePlane <-- room? ------ Fcip <-- Stacks <-- segments of the plane
//! ```
//!
//! A frame leaves the queue of its gateway when TCP has accepted its last byte, and its credit
//! returns. At the other end it waits in TCP until the receive buffer of the gateway has room, so
//! that the window closes. Each connection begins with a special frame and its echo, after which
//! the port is up. An end that has received nothing for K_A_TOV sends an LKA, and ends the
//! connection after the same time in silence (RFC 3821, section 8.1), as
//! `sanloom_fc::fcip::Tunnel` does. Each segment of the peer ends the silence, also one without
//! data: a receiver that holds its peer back by a closed window answers its probes.
//!
//! A switch that stops sends nothing more, not even the end of its connections, so that its peers
//! learn of it from their keep-alives. When it runs again it opens new ones.
//!
//! # Simplifications
//!
//! - Both ends have the same time.
//! - A link that has ended at one end has ended at the other one as well.

mod count;
mod keep_alive;

pub use count::TunnelCount;

use crate::net::Net;
use crate::net::ethernet::Packet;
use crate::net::fcoe::SeenFrame;
use crate::net::tunnel::{self, Arrival};
use crate::tcp::{Endpoint, Stacks};
use keep_alive::Watch;
use sanloom_transport::tcp::{Config, Connection, Events, Segment};
use sanloom_wire::fcip::{KeepAlive, SPECIAL_BYTES};
use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;

/// Bytes of a stream behind which no segment is on its way any more: more than any window.
const KEPT_BYTES: u64 = 1 << 26;

/// A configured FCIP link.
#[derive(Clone, Debug)]
pub struct TunnelPlan {
    /// Number of the link in the lab.
    pub link: u16,
    /// Interfaces of the end that the link names first, and of the other one.
    pub interfaces: [u16; 2],
    /// Settings of TCP at both ends.
    pub tcp: [Arc<Config>; 2],
    /// Keep-alive time-out (K_A_TOV).
    pub keep_alive_ps: u64,
}

/// A frame in a stream.
#[derive(Clone, Copy, Debug)]
struct InStream {
    /// Stream position after its last byte.
    end: u64,
    /// Position in the plane of virtual links; that of [`keep_alive::position`] for an LKA.
    position: u32,
    sent_ps: u64,
}

/// One direction of a connection.
#[derive(Debug, Default)]
struct Direction {
    /// Frames that have not been delivered.
    frames: VecDeque<InStream>,
    /// Number of them whose last byte TCP has accepted.
    accepted_frames: usize,
    /// Stream position after the last byte, and after the last one that TCP has accepted.
    end: u64,
    accepted: u64,
    /// Stream position up to which the receiver has consumed bytes.
    consumed: u64,
    /// Units that a capture may show, with the position after each.
    kept: Option<VecDeque<(u64, Unit)>>,
}

impl Direction {
    /// The stream of a new connection, which begins with a special frame.
    fn new(special: Option<Unit>) -> Direction {
        let kept = special.map(|unit| VecDeque::from([(1 + SPECIAL_BYTES as u64, unit)]));
        let end = 1 + SPECIAL_BYTES as u64;
        Direction { frames: VecDeque::new(), accepted_frames: 0, end, accepted: 1, consumed: 1, kept }
    }

    fn keep(&mut self, unit: Unit) {
        let Some(kept) = &mut self.kept else { return };
        kept.push_back((self.end, unit));
        while kept.front().is_some_and(|(end, _)| end + KEPT_BYTES < self.end) {
            kept.pop_front();
        }
    }

    /// Returns `length` bytes of the stream from `position` on, and the units that begin there;
    /// `None` if they were not kept.
    fn bytes(
        &self,
        position: u64,
        length: u32,
        render: &dyn Fn(&Unit) -> Option<Vec<u8>>,
    ) -> Option<(Vec<u8>, Vec<&Unit>)> {
        let kept = self.kept.as_ref()?;
        let until = position + u64::from(length);
        let (mut out, mut begun) = (Vec::with_capacity(length as usize), Vec::new());
        let first = kept.partition_point(|(end, _)| *end <= position);
        for (end, unit) in kept.iter().skip(first) {
            let bytes = render(unit)?;
            let start = end - bytes.len() as u64;
            if start >= until {
                break;
            }
            let range = position.max(start) - start..until.min(*end) - start;
            out.extend_from_slice(&bytes[range.start as usize..range.end as usize]);
            if start >= position {
                begun.push(unit);
            }
        }
        (out.len() == length as usize).then_some((out, begun))
    }
}

/// Contents of a stream for a capture.
#[derive(Clone, Debug)]
pub enum Unit {
    /// The special frame at the start of a connection, or its echo.
    Special {
        /// Number of the link.
        link: u16,
        /// Number of the connection.
        connection: u32,
        sent_ps: u64,
    },
    /// A keep-alive of the link, or its answer.
    KeepAlive { kind: KeepAlive, sent_ps: u64 },
    /// A frame in its encapsulation.
    Frame { seen: Box<SeenFrame>, sent_ps: u64 },
}

struct Tunnel {
    plan: TunnelPlan,
    /// First end of the current connection.
    end: u32,
    /// From the end that the link names first, and to it.
    directions: [Direction; 2],
    /// All connections, and the counters of TCP of those before the current one.
    count: TunnelCount,
    /// Counters at the end of the warm-up.
    before: TunnelCount,
    /// The counters of the current connection are not in `count`.
    is_open: bool,
    /// Both ends have the special frame.
    is_up: bool,
    /// The Ethernet joined both ends at its last change.
    is_whole: bool,
    /// By the end that receives.
    watches: [Watch; 2],
    /// True for a side whose switch has stopped.
    is_stopped: [bool; 2],
}

/// A segment of a connection, for a capture.
pub struct Seen<'a> {
    /// Interfaces of the end that the link names first, and of the other one.
    pub interfaces: [u16; 2],
    /// Number of the connection among all that were opened.
    pub connection: u32,
    /// The sender is the end that the link names second, which has opened the connection.
    pub from_opener: bool,
    /// Head of the segment.
    pub segment: &'a Segment,
    /// Its payload.
    pub payload: Vec<u8>,
    /// Units that begin in the payload.
    pub begun: Vec<&'a Unit>,
}

/// All FCIP links of a lab.
pub struct Fcip {
    stacks: Stacks,
    tunnels: Vec<Tunnel>,
    /// Number of the tunnel of each link.
    by_link: BTreeMap<u16, usize>,
    /// Tunnel of each connection.
    by_connection: Vec<usize>,
    r_a_tov_ps: u64,
    is_watched: bool,
    /// Number of the timer of keep-alives.
    keep_alive_timer: u32,
    /// Links that have come up or have ended.
    changed: Vec<u16>,
}

impl Fcip {
    /// Number of timers of the network that the links use.
    pub const TIMERS: u32 = 2;

    /// Returns links without connections.
    pub fn new(plans: Vec<TunnelPlan>, r_a_tov_ps: u64, timer: u32) -> Fcip {
        let by_link = plans.iter().zip(0..).map(|(plan, number)| (plan.link, number)).collect();
        let tunnel = |plan| Tunnel {
            plan,
            end: u32::MAX,
            directions: [Direction::default(), Direction::default()],
            count: TunnelCount::default(),
            before: TunnelCount::default(),
            is_open: false,
            is_up: false,
            is_whole: true,
            watches: [Watch::default(); 2],
            is_stopped: [false; 2],
        };
        let tunnels = plans.into_iter().map(tunnel).collect();
        let stacks = Stacks::new(timer).of_tunnels();
        Fcip {
            stacks,
            tunnels,
            by_link,
            by_connection: Vec::new(),
            r_a_tov_ps,
            is_watched: false,
            keep_alive_timer: timer + 1,
            changed: Vec::new(),
        }
    }

    /// Keeps what is sent from now on, for [`Fcip::seen`].
    pub fn watch(&mut self) {
        if std::mem::replace(&mut self.is_watched, true) {
            return;
        }
        let directions = self.tunnels.iter_mut().flat_map(|tunnel| &mut tunnel.directions);
        directions.for_each(|direction| direction.kept = Some(VecDeque::new()));
        self.stacks.keep_segments();
    }

    /// Ends what [`Fcip::watch`] began.
    pub fn unwatch(&mut self) {
        self.is_watched = false;
        let directions = self.tunnels.iter_mut().flat_map(|tunnel| &mut tunnel.directions);
        directions.for_each(|direction| direction.kept = None);
        self.stacks.keep_none();
    }

    /// Opens the connections of all links.
    pub fn start(&mut self, net: &mut Net) {
        (0..self.tunnels.len()).for_each(|number| self.open(net, number));
    }

    /// Opens a connection: the end that the link names second connects.
    fn open(&mut self, net: &mut Net, number: usize) {
        let unit = Unit::Special {
            link: self.tunnels[number].plan.link,
            connection: self.by_connection.len() as u32,
            sent_ps: net.now(),
        };
        let special = || self.is_watched.then(|| unit.clone());
        let directions = [Direction::new(special()), Direction::new(special())];
        let tunnel = &mut self.tunnels[number];
        let endpoint =
            |side: usize| Endpoint { config: tunnel.plan.tcp[side].clone(), interface: tunnel.plan.interfaces[side] };
        let ends = [endpoint(1), endpoint(0)];
        tunnel.directions = directions;
        tunnel.count.connections += 1;
        self.by_connection.push(number);
        tunnel.end = self.stacks.connect(net, ends, None, None);
        tunnel.is_open = true;
        if tunnel.is_stopped[0] {
            self.stacks.silence(tunnel.end + 1);
        }
    }

    /// Stops or starts the switch at a side of a link. A stopped switch loses its unsent frames,
    /// and receives none. It connects again when it starts.
    pub fn set_running(&mut self, net: &mut Net, link: u16, side: usize, runs: bool) {
        let Some(&number) = self.by_link.get(&link) else { return };
        if std::mem::replace(&mut self.tunnels[number].is_stopped[side], !runs) != runs {
            return;
        }
        if runs {
            return keep_alive::end(self, net, number);
        }
        if self.tunnels[number].end != u32::MAX {
            self.stacks.silence(self.end_at(number, side));
        }
    }

    fn restart(&mut self, net: &mut Net, number: usize) {
        let old = self.tunnels[number].end;
        for direction in &mut self.tunnels[number].directions {
            direction.accepted_frames = 0;
            let frames = direction.frames.drain(..).filter(|frame| keep_alive::kind(frame.position).is_none());
            frames.for_each(|frame| tunnel::lose(net, frame.position));
        }
        count::keep(self, number);
        for end in [old, old + 1] {
            self.stacks.with(net, end, |connection, _| connection.abort());
        }
        // The second side connects, when its switch runs.
        if !self.tunnels[number].is_stopped[1] {
            self.open(net, number);
        }
    }

    /// Sends the frames that lanes have handed over, and delivers those that have waited for room.
    pub fn run(&mut self, net: &mut Net) {
        while let Some(handed) = net.fc.fcoe.take_tunnelled() {
            let (number, side) = self.place(handed.lane);
            let tunnel = &mut self.tunnels[number];
            if tunnel.is_stopped[side] {
                tunnel::lose(net, handed.position);
                continue;
            }
            let direction = &mut tunnel.directions[side];
            direction.end += u64::from(handed.bytes);
            let frame = InStream { end: direction.end, position: handed.position, sent_ps: net.now() };
            direction.frames.push_back(frame);
            if let Some(seen) = handed.seen {
                direction.keep(Unit::Frame { seen, sent_ps: net.now() });
            }
            self.offer(net, number, side);
        }
        while let Some(lane) = net.fc.fcoe.take_resumed() {
            let (number, side) = self.place(lane);
            self.deliver(net, number, side);
        }
    }

    /// Tunnel and direction of a lane.
    fn place(&self, lane: u32) -> (usize, usize) {
        let link = (lane / 2) as u16;
        (self.by_link.get(&link).copied().unwrap_or(0), (lane % 2) as usize)
    }

    /// End of the current connection at a side of a link.
    fn end_at(&self, number: usize, side: usize) -> u32 {
        self.tunnels[number].end + u32::from(side == 0)
    }

    /// Offers bytes to TCP, as far as the send buffer has room. The end that listens sends its echo
    /// when it has the special frame, and frames follow when the other end has sent its own.
    fn offer(&mut self, net: &mut Net, number: usize, side: usize) {
        let end = self.end_at(number, side);
        let is_opened = self.tunnels[number].directions[1 - side].consumed > SPECIAL_BYTES as u64;
        let direction = &mut self.tunnels[number].directions[side];
        let special = 1 + SPECIAL_BYTES as u64;
        let opens = side == 1;
        for limit in [if opens || is_opened { special } else { 1 }, if is_opened { direction.end } else { 1 }] {
            let wanted = limit.saturating_sub(direction.accepted);
            if wanted > 0 {
                direction.accepted += self.stacks.with(net, end, |connection, _| {
                    let accepted = connection.send(wanted);
                    if accepted == wanted {
                        connection.end_record();
                    }
                    accepted
                });
            }
        }
        while let Some(frame) = direction.frames.get(direction.accepted_frames)
            && frame.end <= direction.accepted
        {
            direction.accepted_frames += 1;
            if keep_alive::kind(frame.position).is_none() {
                tunnel::left(net, frame.position);
            }
        }
    }

    /// Delivers frames that have arrived completely, while the receive buffer has room.
    fn deliver(&mut self, net: &mut Net, number: usize, side: usize) {
        if self.tunnels[number].is_stopped[1 - side] {
            return;
        }
        let end = self.end_at(number, 1 - side);
        let connection = self.stacks.connection(end);
        let received = connection.received();
        let direction = &mut self.tunnels[number].directions[side];
        // The special frame is read at once.
        let mut until = (1 + SPECIAL_BYTES as u64).min(received).max(direction.consumed);
        let mut answers = 0;
        while let Some(frame) = direction.frames.front().filter(|frame| frame.end <= received) {
            if let Some(kind) = keep_alive::kind(frame.position) {
                answers += usize::from(kind == KeepAlive::Request);
                until = frame.end;
                direction.frames.pop_front();
                direction.accepted_frames = direction.accepted_frames.saturating_sub(1);
                continue;
            }
            let is_stale = net.now() - frame.sent_ps > self.r_a_tov_ps;
            match tunnel::arrive(net, frame.position, is_stale) {
                Arrival::NoRoom => break,
                Arrival::Landed | Arrival::Lost => {}
            }
            until = frame.end;
            direction.frames.pop_front();
            direction.accepted_frames = direction.accepted_frames.saturating_sub(1);
        }
        let bytes = until - direction.consumed;
        if bytes > 0 {
            let special = SPECIAL_BYTES as u64;
            let is_opening = direction.consumed <= special && until > special;
            direction.consumed = until;
            self.stacks.with(net, end, |connection, now| connection.consume(now, bytes));
            keep_alive::hear(self, net, number, 1 - side);
            if is_opening {
                self.offer(net, number, 1 - side);
            }
            for _ in 0..answers {
                keep_alive::send(self, net, number, 1 - side, KeepAlive::Accept);
            }
        }
    }

    /// Takes a segment that has arrived at an interface.
    pub fn packet(&mut self, net: &mut Net, packet: &Packet) {
        self.stacks.forget_lost(net);
        let end = self.stacks.receive(net, packet);
        let number = self.by_connection[end as usize / 2];
        if self.tunnels[number].end == end & !1 {
            keep_alive::arrived(self, net.now(), number, usize::from(end.is_multiple_of(2)));
        }
        self.changed(net, end);
    }

    /// Handles the timer of TCP.
    pub fn timer_expired(&mut self, net: &mut Net) {
        self.stacks.timer_expired(net);
        while let Some(end) = self.stacks.take_changed() {
            self.changed(net, end);
        }
    }

    /// Handles what TCP reports at an end.
    fn changed(&mut self, net: &mut Net, end: u32) {
        let events = self.stacks.take_events(end);
        let number = self.by_connection[end as usize / 2];
        let side = usize::from(end.is_multiple_of(2));
        let tunnel = &self.tunnels[number];
        // Without its opener, a link that is down has no connection.
        if tunnel.end != end & !1 || tunnel.is_stopped[side] || (tunnel.is_stopped[1] && !tunnel.is_up) {
            return;
        }
        if events.has(Events::READABLE) {
            self.deliver(net, number, 1 - side);
        }
        if events.has(Events::WRITABLE) || events.has(Events::CONNECTED) {
            self.offer(net, number, side);
        }
        let ended = [Events::PEER_CLOSED, Events::CLOSED, Events::RESET, Events::TIMED_OUT];
        if ended.into_iter().any(|event| events.has(event)) {
            keep_alive::end(self, net, number);
        }
    }

    /// Returns the segment of a frame. Valid for frames since the last call of [`Fcip::forget`].
    pub fn seen(&self, packet: &Packet, render: &dyn Fn(&Unit) -> Option<Vec<u8>>) -> Option<Seen<'_>> {
        let end = self.stacks.end_of(packet);
        let number = *self.by_connection.get(end as usize / 2)?;
        let tunnel = &self.tunnels[number];
        let segment = self.stacks.segment(packet)?;
        let from_opener = end.is_multiple_of(2);
        let is_current = tunnel.end == end & !1;
        let (payload, begun) = match segment.length {
            0 => (Vec::new(), Vec::new()),
            length if is_current => {
                tunnel.directions[usize::from(from_opener)].bytes(segment.position, length, render)?
            }
            _ => return None,
        };
        let interfaces = tunnel.plan.interfaces;
        Some(Seen { interfaces, connection: end / 2, from_opener, segment, payload, begun })
    }

    /// Forgets segments that have arrived or were lost.
    pub fn forget(&mut self) {
        self.stacks.forget_kept();
    }

    /// Returns the plans of all links.
    pub fn plans(&self) -> impl Iterator<Item = &TunnelPlan> {
        self.tunnels.iter().map(|tunnel| &tunnel.plan)
    }

    /// Returns whether a link is up; `None` for other links.
    pub fn is_up(&self, link: u16) -> Option<bool> {
        self.by_link.get(&link).map(|number| self.tunnels[*number].is_up)
    }

    /// Takes a link that has come up or has ended.
    pub fn take_changed(&mut self) -> Option<u16> {
        self.changed.pop()
    }

    /// Ends a link whose interface is dark.
    pub fn end(&mut self, net: &mut Net, link: u16) {
        if self.is_up(link) == Some(true) {
            keep_alive::end(self, net, self.by_link[&link]);
        }
    }

    /// Follows a change of Ethernet. A link that is down opens another connection as soon as the
    /// Ethernet joins its ends again.
    pub fn follow(&mut self, net: &mut Net, link: u16, is_whole: bool) {
        let number = self.by_link[&link];
        let was_whole = std::mem::replace(&mut self.tunnels[number].is_whole, is_whole);
        if is_whole && !was_whole && !self.tunnels[number].is_up {
            self.restart(net, number);
        }
    }

    /// Handles the timer of keep-alives.
    pub fn check_keep_alives(&mut self, net: &mut Net) {
        keep_alive::check(self, net);
    }

    /// Returns both ends of the current connection of a link: that of the end that the link names
    /// first, and the other one.
    pub fn connections(&self, link: u16) -> Option<[&Connection; 2]> {
        let end = self.tunnels[*self.by_link.get(&link)?].end;
        Some([self.stacks.connection(end + 1), self.stacks.connection(end)])
    }
}
