//! FCIP over TCP (RFC 3821): [`Fcip`], the driver of a VE_Port.
//!
//! Frames are FCoE frames without Ethernet addresses inside the process, and encapsulated on the
//! connection. [`Tunnel`] decides about connections. A frame leaves the egress queue when its last
//! byte is in the socket. So TCP holds back the queue, and the queue the sources of its frames.

use super::egress::Queued;
use super::{PortError, Sending};
use crate::clock::Clock;
use crate::frame::FrameBuf;
use rustix::net::{AddressFamily, SocketFlags, SocketType, sockopt};
use sanloom_api::view::FcipRow;
use sanloom_fc::fcip::{Admission, ConnectionId, Framer, Input, Output, Phase, Step, Tunnel, TunnelConfig};
use sanloom_wire::ether::{ETHER_BYTES, EtherType};
use sanloom_wire::fcip::{self, Encapsulated, KeepAlive, SPECIAL_BYTES, Special, Stamp};
use sanloom_wire::fcoe::{self, Fcoe};
use std::collections::VecDeque;
use std::io::{self, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::os::fd::{AsFd, BorrowedFd};
use std::time::SystemTime;

/// Bytes of the input buffer of a connection.
const READ_BYTES: usize = 256 << 10;
/// Maximum number of frames per system call.
const BATCH: usize = 32;
/// Frames of the machine that wait behind a blocked socket, in bytes. A peer that sends requests
/// and reads nothing is closed.
const CONTROL_LIMIT_BYTES: usize = 16 << 10;
/// Maximum number of units from one connection at once, whether a frame or not, so that a peer
/// occupies only its share of the time.
const MAX_UNITS: usize = 4 * BATCH;

/// Role of the end in the opening of TCP connections.
#[derive(Debug)]
enum Socket {
    Listens(TcpListener),
    Connects(SocketAddr),
}

#[derive(Debug)]
struct Connection {
    id: ConnectionId,
    stream: TcpStream,
    /// The TCP connection is established.
    open: bool,
    framer: Framer,
    buffer: Box<[u8]>,
    /// Range of `buffer` that holds unread bytes.
    start: usize,
    end: usize,
    /// Rest of a unit of which a part has been sent.
    rest: Vec<u8>,
    /// The rest belongs to the first frame of the egress queue.
    rest_is_frame: bool,
    /// Whole units of the machine, which precede the next frame.
    control: Vec<u8>,
}

/// A link end over TCP.
#[derive(Debug)]
pub struct Fcip {
    socket: Socket,
    tunnel: Tunnel,
    clock: Clock,
    /// System time at the start of the clock, in nanoseconds since 1970.
    begun_unix_ns: u64,
    /// Units of a time stamp by which the system time is ahead of start and clock, because it was
    /// set or the machine was suspended.
    correction: u64,
    /// The connection that carries frames, and one that is being opened.
    connections: Vec<Connection>,
    next_id: ConnectionId,
    /// The link was down since the last check, and the switch must learn it.
    was_down: bool,
    next_ox_id: u16,
    /// Received frames that no FC frame is as long as.
    too_long: u64,
    /// Losses of synchronisation, and skipped bytes, of closed connections.
    framing: [u64; 2],
    /// The last read has left data in the buffer of the link.
    unfinished: bool,
    scratch: Vec<u8>,
    name: String,
}

impl Fcip {
    /// Listens at an address.
    ///
    /// # Errors
    /// When the address is in use or does not exist here.
    pub fn listen(name: &str, address: SocketAddr, config: TunnelConfig) -> Result<Fcip, PortError> {
        let failed = |error| PortError::Tunnel { name: name.to_owned(), address, error };
        let listener = TcpListener::bind(address).map_err(failed)?;
        listener.set_nonblocking(true).map_err(failed)?;
        Ok(Fcip::new(name, Socket::Listens(listener), config))
    }

    /// Connects to an address, and retries until the peer accepts.
    pub fn connect(name: &str, address: SocketAddr, config: TunnelConfig) -> Fcip {
        Fcip::new(name, Socket::Connects(address), config)
    }

    fn new(name: &str, socket: Socket, config: TunnelConfig) -> Fcip {
        let begun_unix_ns = unix_ns();
        let epoch = Stamp::from_unix_ns(begun_unix_ns);
        // Nonces must differ after a restart.
        let seed = config.seed ^ begun_unix_ns ^ u64::from(std::process::id()) << 32;
        let mut fcip = Fcip {
            socket,
            tunnel: Tunnel::new(TunnelConfig { seed, ..config }, epoch),
            clock: Clock::start(),
            begun_unix_ns,
            correction: 0,
            too_long: 0,
            connections: Vec::new(),
            next_id: 0,
            was_down: false,
            next_ox_id: 0,
            framing: [0; 2],
            unfinished: false,
            scratch: Vec::new(),
            name: name.to_owned(),
        };
        fcip.input(Input::Enable);
        fcip
    }

    /// Descriptor of the connection that carries frames, or of the one that is being opened.
    pub fn socket(&self) -> Option<BorrowedFd<'_>> {
        let own = self.tunnel.connection();
        let link = self.connections.iter().find(|connection| Some(connection.id) == own);
        link.or(self.connections.last()).map(|connection| connection.stream.as_fd())
    }

    /// Descriptor on which peers connect, if this end listens.
    pub fn listener(&self) -> Option<BorrowedFd<'_>> {
        match &self.socket {
            Socket::Listens(listener) => Some(listener.as_fd()),
            Socket::Connects(_) => None,
        }
    }

    /// Returns whether the link is up. After an interruption it is down until the next check.
    pub fn has_peer(&self) -> bool {
        self.tunnel.phase() == Phase::Up && !self.was_down
    }

    /// Disables or enables the link.
    pub fn enable(&mut self, enabled: bool) {
        self.input(if enabled { Input::Enable } else { Input::Disable });
    }

    /// Frames dropped because they were older than R_A_TOV.
    pub fn stale(&self) -> u64 {
        self.tunnel.counters().stale
    }

    /// Frames dropped because no FC frame is as long.
    pub fn too_long(&self) -> u64 {
        self.too_long
    }

    /// Time stamp of a frame that is sent now.
    fn stamp(&self) -> Stamp {
        Stamp(self.tunnel.stamp(self.clock.now()).0.wrapping_add(self.correction).max(1))
    }

    /// State and counters.
    pub fn row(&self) -> FcipRow {
        let counters = self.tunnel.counters();
        let [losses, skipped_bytes] = self.framing();
        FcipRow {
            state: self.tunnel.phase().name().to_owned(),
            address: match &self.socket {
                Socket::Listens(listener) => listener.local_addr().map_or(String::new(), |at| at.to_string()),
                Socket::Connects(address) => address.to_string(),
            },
            listens: matches!(self.socket, Socket::Listens(_)),
            peer: self.tunnel.peer().map_or(String::new(), |peer| peer.to_string()),
            connections: counters.connections,
            closed: counters.closed,
            stale: counters.stale,
            unstamped: counters.unstamped,
            keep_alives: counters.keep_alives,
            oldest_ms: counters.max_age_ns as f64 / 1e6,
            resynchronised: losses,
            skipped_bytes,
        }
    }

    fn framing(&self) -> [u64; 2] {
        let open = self.connections.iter().map(|one| [one.framer.losses(), one.framer.skipped_bytes()]);
        open.fold(self.framing, |sum, more| [sum[0] + more[0], sum[1] + more[1]])
    }

    /// Returns whether the last [`receive`](Self::receive), or a check after it, has left data of
    /// the link that no event reports.
    pub fn is_unfinished(&self) -> bool {
        self.unfinished
    }

    /// Opens connections, and runs the timers of the machine.
    ///
    /// # Errors
    /// No connection could be accepted.
    pub fn check_peer(&mut self) -> io::Result<()> {
        self.was_down = false;
        let expected = Stamp::from_unix_ns(self.begun_unix_ns + self.clock.now().as_ns());
        self.correction = Stamp::from_unix_ns(unix_ns()).0.wrapping_sub(expected.0);
        let accepted = self.accept();
        for place in (0..self.connections.len()).rev() {
            self.check_connection(place);
        }
        // A connection that is being opened beside the link is not polled.
        if self.tunnel.connection().is_some() {
            self.read_openings();
        }
        let now = self.clock.now();
        if self.tunnel.poll_timeout().is_some_and(|at| at <= now) {
            self.hear();
            self.input(Input::Timeout);
        }
        for connection in &mut self.connections {
            if connection.open && !connection.rest_is_frame {
                let _ = connection.write_control();
            }
        }
        accepted
    }

    /// Tells the machine that the peer is not silent if its data wait, because a full queue holds
    /// the port back.
    fn hear(&mut self) {
        let own = self.tunnel.connection();
        let waits = |connection: &Connection| {
            Some(connection.id) == own
                && (connection.start < connection.end || connection.stream.peek(&mut [0]).is_ok_and(|bytes| bytes > 0))
        };
        if self.connections.iter().any(waits) {
            self.tunnel.heard(self.clock.now());
        }
    }

    fn accept(&mut self) -> io::Result<()> {
        let Socket::Listens(listener) = &self.socket else { return Ok(()) };
        let (stream, from) = listener.accept()?;
        tracing::info!(port = self.name, %from, "FCIP connection accepted");
        if let Some(id) = self.add(stream, true) {
            self.input(Input::Connected(id));
        }
        Ok(())
    }

    fn add(&mut self, stream: TcpStream, open: bool) -> Option<ConnectionId> {
        stream.set_nonblocking(true).ok()?;
        // A frame must not wait for the acknowledgement of the one before it.
        stream.set_nodelay(true).ok()?;
        self.next_id = self.next_id.wrapping_add(1);
        let buffer = vec![0; READ_BYTES].into_boxed_slice();
        self.connections.push(Connection {
            id: self.next_id,
            stream,
            open,
            framer: Framer::new(),
            buffer,
            start: 0,
            end: 0,
            rest: Vec::new(),
            rest_is_frame: false,
            control: Vec::new(),
        });
        Some(self.next_id)
    }

    /// Checks whether a requested connection is established.
    fn check_connection(&mut self, place: usize) {
        let connection = &mut self.connections[place];
        if connection.open {
            return;
        }
        let refused = !matches!(connection.stream.take_error(), Ok(None));
        let id = connection.id;
        if refused {
            self.connections.remove(place);
            self.input(Input::Refused);
        } else if connection.stream.peer_addr().is_ok() {
            connection.open = true;
            self.input(Input::Connected(id));
        }
    }

    fn start_connect(&mut self) {
        let Socket::Connects(address) = self.socket else { return };
        let family = if address.is_ipv4() { AddressFamily::INET } else { AddressFamily::INET6 };
        let flags = SocketFlags::NONBLOCK | SocketFlags::CLOEXEC;
        let opened = rustix::net::socket_with(family, SocketType::STREAM, flags, None).and_then(|socket| {
            // The kernel gives up before the machine would try again much later.
            sockopt::set_tcp_user_timeout(&socket, 20_000)?;
            match rustix::net::connect(&socket, &address) {
                Ok(()) | Err(rustix::io::Errno::INPROGRESS) => Ok(TcpStream::from(socket)),
                Err(error) => Err(error),
            }
        });
        if opened.ok().and_then(|stream| self.add(stream, false)).is_none() {
            self.tunnel.handle(self.clock.now(), Input::Refused);
        }
    }

    fn input(&mut self, input: Input) {
        let now = self.clock.now();
        self.tunnel.handle(now, input);
        while let Some(output) = self.tunnel.poll_output() {
            self.apply(output);
        }
    }

    fn apply(&mut self, output: Output) {
        match output {
            Output::Connect => self.start_connect(),
            Output::Special(id, special) => {
                let special = Special { stamp: self.stamp(), ..special };
                self.control(id, |out| special.emit(out));
            }
            Output::KeepAlive(id, kind) => {
                self.next_ox_id = self.next_ox_id.wrapping_add(1);
                let (stamp, frame) = (self.stamp(), kind.frame(self.next_ox_id));
                self.control(id, |out| fcip::encapsulate(stamp, &frame, out));
            }
            Output::Close(id, ending) => {
                tracing::warn!(port = self.name, "FCIP connection closed: {}", ending.name());
                self.remove(id);
            }
            Output::Up { peer, .. } => tracing::info!(port = self.name, %peer, "FCIP link up"),
            Output::Down(ending) => {
                tracing::warn!(port = self.name, reason = ending.name(), "FCIP link down");
                self.was_down = true;
            }
        }
    }

    fn control(&mut self, id: ConnectionId, write: impl FnOnce(&mut Vec<u8>)) {
        let Some(connection) = self.connections.iter_mut().find(|connection| connection.id == id) else { return };
        write(&mut connection.control);
        if !connection.rest_is_frame {
            // An error is found by the next read.
            let _ = connection.write_control();
        }
        if connection.rest.len() + connection.control.len() > CONTROL_LIMIT_BYTES {
            tracing::warn!(port = self.name, "the peer of FCIP sends requests and reads no answers");
            self.remove(id);
            self.input(Input::Closed(id));
        }
    }

    fn remove(&mut self, id: ConnectionId) {
        let Some(place) = self.connections.iter().position(|connection| connection.id == id) else { return };
        let mut gone = self.connections.remove(place);
        // The echo that explains why the connection ends.
        if gone.open && !gone.rest_is_frame {
            let _ = gone.write_control();
        }
        self.framing[0] += gone.framer.losses();
        self.framing[1] += gone.framer.skipped_bytes();
    }

    /// Receives frames. Special frames and keep-alives are processed here.
    ///
    /// # Errors
    /// `WouldBlock` when no complete frame is available.
    pub fn receive(&mut self, buffers: &mut [FrameBuf]) -> io::Result<(usize, u32)> {
        let mut got = 0;
        self.unfinished = false;
        if let Some(id) = self.tunnel.connection() {
            got = self.read(id, buffers);
        } else {
            self.check_opening();
            self.read_openings();
            if let Some(id) = self.tunnel.connection() {
                got = self.read(id, buffers);
            }
        }
        if got == 0 && !self.unfinished { Err(io::ErrorKind::WouldBlock.into()) } else { Ok((got, 0)) }
    }

    fn check_opening(&mut self) {
        for place in (0..self.connections.len()).rev() {
            self.check_connection(place);
        }
    }

    /// Reads connections that are not the link.
    fn read_openings(&mut self) {
        let own = self.tunnel.connection();
        let others = self.connections.iter().filter(|connection| connection.open && Some(connection.id) != own);
        let ids: Vec<ConnectionId> = others.map(|connection| connection.id).collect();
        for id in ids {
            self.read(id, &mut []);
        }
    }

    /// Reads a connection until it is empty, all buffers are used, or it ends. Without buffers, it
    /// stops before the first frame that needs one. Returns the number of frames.
    fn read(&mut self, id: ConnectionId, buffers: &mut [FrameBuf]) -> usize {
        let now = self.clock.now();
        let mut got = 0;
        for _ in 0..MAX_UNITS {
            let Some(connection) = self.connections.iter_mut().find(|connection| connection.id == id) else {
                return got;
            };
            let unread = &connection.buffer[connection.start..connection.end];
            let input = match connection.framer.next(unread) {
                Step::Need(needed) => match connection.fill(needed) {
                    Ok(()) => continue,
                    Err(error) if error.kind() == io::ErrorKind::WouldBlock => return got,
                    Err(_) => {
                        self.remove(id);
                        self.input(Input::Closed(id));
                        return got;
                    }
                },
                Step::Skip(bytes) => {
                    connection.start += bytes;
                    continue;
                }
                Step::Lost => Input::Lost(id),
                Step::Special(special) => {
                    connection.start += SPECIAL_BYTES;
                    Input::Special(id, special)
                }
                Step::Frame(frame) => {
                    if self.tunnel.connection() == Some(id) && got == buffers.len().min(BATCH) {
                        self.unfinished = true;
                        return got;
                    }
                    let stamp = match frame.stamp {
                        Stamp::NONE => Stamp::NONE,
                        Stamp(units) => Stamp(units.wrapping_sub(self.correction)),
                    };
                    let input = match (self.tunnel.admit(now, id, stamp), KeepAlive::of(frame.frame)) {
                        (Admission::NotUp, _) => Some(Input::Unexpected(id)),
                        (Admission::Stale, _) => None,
                        (Admission::Deliver, Some(kind)) => Some(Input::KeepAlive(id, kind)),
                        (Admission::Deliver, None) => {
                            let fits = fill(&mut buffers[got], &frame).is_some();
                            got += usize::from(fits);
                            self.too_long += u64::from(!fits);
                            None
                        }
                    };
                    connection.start += frame.encoded_len();
                    let Some(input) = input else { continue };
                    input
                }
            };
            self.input(input);
        }
        self.unfinished |= self.tunnel.connection() == Some(id);
        got
    }

    /// Returns whether the peer has a part of the first frame.
    pub fn has_begun(&self) -> bool {
        let own = self.tunnel.connection();
        self.connections.iter().any(|connection| Some(connection.id) == own && connection.rest_is_frame)
    }

    /// Sends frames from the front of the queue.
    pub fn send(&mut self, frames: &mut VecDeque<Queued>) -> Sending {
        let stamp = self.stamp();
        let own = self.tunnel.connection().filter(|_| !self.was_down);
        let Some(connection) = self.connections.iter_mut().find(|connection| Some(connection.id) == own) else {
            return Sending::NoPeer;
        };
        let out = &mut self.scratch;
        out.clear();
        out.append(&mut connection.rest);
        // Ends of the frames in `out`.
        let (mut ends, mut count) = ([0; BATCH], 0);
        if std::mem::take(&mut connection.rest_is_frame) {
            (ends[0], count) = (out.len(), 1);
        }
        let before_control = out.len();
        out.extend_from_slice(&connection.control);
        let after_control = out.len();
        for frame in frames.iter().take(BATCH).skip(count).map_while(|queued| fc_frame(queued.frame.bytes())) {
            encapsulate(stamp, frame, out);
            ends[count] = out.len();
            count += 1;
        }
        if out.is_empty() {
            return Sending::Refused;
        }
        let ends = &ends[..count];
        let written = match connection.stream.write(out) {
            Ok(written) => written,
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => 0,
            Err(_) => {
                let id = connection.id;
                self.remove(id);
                self.input(Input::Closed(id));
                return Sending::NoPeer;
            }
        };
        // The unit that was cut is kept; later ones are composed again.
        if written > before_control {
            connection.control.clear();
        }
        let sent = ends.iter().take_while(|end| **end <= written).count();
        if written < before_control {
            connection.rest.extend_from_slice(&out[written..before_control]);
            connection.rest_is_frame = !ends.is_empty() && ends[0] == before_control;
        } else if written > before_control && written < after_control {
            connection.rest.extend_from_slice(&out[written..after_control]);
        } else if let Some(end) = ends.get(sent).copied() {
            let begin = if sent == 0 { after_control } else { ends[sent - 1].max(after_control) };
            if written > begin {
                connection.rest.extend_from_slice(&out[written..end]);
                connection.rest_is_frame = true;
            }
        }
        if sent == 0 && written == 0 { Sending::Blocked } else { Sending::Sent(sent) }
    }
}

impl Connection {
    /// Reads at least one byte, with room for `needed` unread bytes.
    fn fill(&mut self, needed: usize) -> io::Result<()> {
        if !self.open {
            return Err(io::ErrorKind::WouldBlock.into());
        }
        if self.start + needed > self.buffer.len() || self.start == self.end {
            self.buffer.copy_within(self.start..self.end, 0);
            self.end -= self.start;
            self.start = 0;
        }
        match self.stream.read(&mut self.buffer[self.end..])? {
            0 => Err(io::ErrorKind::UnexpectedEof.into()),
            read => {
                self.end += read;
                Ok(())
            }
        }
    }

    /// Sends the rest of a unit of the machine, and whole ones. No frame is cut off.
    fn write_control(&mut self) -> io::Result<()> {
        self.rest.append(&mut self.control);
        while !self.rest.is_empty() {
            let written = self.stream.write(&self.rest)?;
            self.rest.drain(..written);
        }
        Ok(())
    }
}

/// Returns the system time in nanoseconds since 1970.
fn unix_ns() -> u64 {
    SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default().as_nanos() as u64
}

/// The FC frame of an Ethernet frame of the process; `None` if it is longer than one of Fibre
/// Channel, or is no whole number of words with a header. The other end would lose its
/// synchronisation by such a frame, and search for the next one in data of a host.
fn fc_frame(frame: &[u8]) -> Option<Fcoe<'_>> {
    let pdu = frame.get(ETHER_BYTES..).filter(|pdu| pdu.len() <= fcoe::MAX_PDU_BYTES)?;
    Fcoe::parse(pdu).ok()
}

fn encapsulate(stamp: Stamp, frame: Fcoe<'_>, out: &mut Vec<u8>) {
    let Fcoe { sof_code, frame, crc, eof_code } = frame;
    Encapsulated { flags: 0, stamp, sof_code, frame, crc, eof_code }.emit(out);
}

/// Fills a buffer with the FCoE frame of the process; `None` if the frame is too long.
fn fill(buffer: &mut FrameBuf, frame: &Encapsulated<'_>) -> Option<()> {
    let Encapsulated { sof_code, frame, crc, eof_code, .. } = *frame;
    let pdu = Fcoe { sof_code, frame, crc, eof_code };
    if pdu.encoded_len() > fcoe::MAX_PDU_BYTES {
        return None;
    }
    let (head, rest) = buffer.room().split_at_mut_checked(ETHER_BYTES)?;
    head.fill(0);
    head[ETHER_BYTES - 2..].copy_from_slice(&EtherType::FCOE.0.to_be_bytes());
    let len = pdu.put(rest)?;
    buffer.received(ETHER_BYTES + len, None);
    Some(())
}
