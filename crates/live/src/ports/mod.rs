//! Ethernet ports: drivers that carry frames, and egress queues.
//!
//! | driver | carries a frame as | a full peer | the peer is present when |
//! |---|---|---|---|
//! | [`Datagram`] | one datagram | blocks the sender | its socket accepts a connect |
//! | [`Stream`] | length and bytes | blocks the sender | a connection is open |
//! | [`Tap`] | one read or write | blocks the sender | the interface is up |
//! | [`Fcip`] | one encapsulated frame over TCP | blocks the sender | the FCIP link is up |
//! | [`Packet`] | one packet | loses frames, which are counted | the interface has a carrier |

pub mod datagram;
pub mod egress;
pub mod fcip;
pub mod interface;
pub mod stream;

pub use datagram::Datagram;
pub use egress::Egress;
pub use fcip::Fcip;
pub use interface::{Packet, Tap};
pub use stream::Stream;

use crate::frame::{FrameBuf, Pool};
use crate::poll::{Interest, Poller};
use crate::sys::batch::BATCH;
use sanloom_scsi::time::Instant;
use sanloom_wire::pause::PriorityPause;
use std::collections::BTreeMap;
use std::fs;
use std::io;
use std::net::SocketAddr;
use std::os::fd::{AsRawFd, BorrowedFd};
use std::os::unix::fs::FileTypeExt;
use std::path::{Path, PathBuf};

/// Reason why a port cannot be opened.
#[derive(Debug, thiserror::Error)]
pub enum PortError {
    /// A unix socket cannot be opened.
    #[error("cannot open the socket {}: {error}", path.display())]
    Socket {
        /// The path.
        path: PathBuf,
        /// The error.
        error: io::Error,
    },
    /// Another process answers at the path.
    #[error("the socket {} is in use by another process: end that one, or give this one another folder or path", path.display())]
    InUse {
        /// The path.
        path: PathBuf,
    },
    /// The file at the path is not a socket.
    #[error("{} is not a socket; move it away or choose another path", path.display())]
    NotASocket {
        /// The path.
        path: PathBuf,
    },
    /// A network interface cannot be opened.
    #[error("cannot open the interface {name}: {error}{}", hint(error))]
    Interface {
        /// Its name.
        name: String,
        /// The error.
        error: io::Error,
    },
    /// The metrics address cannot be used.
    #[error("cannot listen at {address}: {error}; write another address or port in `metrics`")]
    Address {
        /// The address.
        address: SocketAddr,
        /// The error.
        error: io::Error,
    },
    /// The TCP port of an FCIP link cannot be opened.
    #[error("cannot listen at {address} for the FCIP link {name}: {error}; write another address in `fcip.listen`")]
    Tunnel {
        /// Name of the link.
        name: String,
        /// The address.
        address: SocketAddr,
        /// The error.
        error: io::Error,
    },
    /// An inherited descriptor cannot be used.
    #[error("cannot use the descriptor {number}: {error}")]
    Descriptor {
        /// Its number.
        number: i32,
        /// The error.
        error: io::Error,
    },
}

fn hint(error: &io::Error) -> &'static str {
    match error.kind() {
        io::ErrorKind::PermissionDenied => "; run as root, or with the capabilities CAP_NET_ADMIN and CAP_NET_RAW",
        _ => "",
    }
}

impl PortError {
    fn socket(path: &Path, error: io::Error) -> PortError {
        PortError::Socket { path: path.to_owned(), error }
    }
}

/// Result of an attempt to send.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Sending {
    /// Number of frames sent.
    Sent(usize),
    /// The peer's buffer is full.
    Blocked,
    /// No peer is connected.
    NoPeer,
    /// The driver can never send the first frame.
    Refused,
}

/// Driver that carries the frames of a port.
#[derive(Debug)]
#[allow(missing_docs)] // each is described where it stands
pub enum Driver {
    Datagram(Datagram),
    Stream(Stream),
    Tap(Tap),
    Packet(Packet),
    Fcip(Box<Fcip>),
    /// The driver has failed and is closed.
    Closed,
}

/// Traffic counters of one direction.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Traffic {
    /// Frames.
    pub frames: u64,
    /// Bytes, Ethernet headers included.
    pub bytes: u64,
}

/// An Ethernet port.
#[derive(Debug)]
pub struct EthernetPort {
    /// Name shown to users.
    pub name: String,
    /// Driver that carries the frames.
    pub driver: Driver,
    /// Frames waiting to be sent.
    pub egress: Egress,
    /// Received traffic.
    pub received: Traffic,
    /// Sent traffic.
    pub sent: Traffic,
    /// Dropped frames, by reason.
    pub drops: BTreeMap<&'static str, u64>,
    /// Frames by which the peer has paused or resumed lossless priorities.
    pub pauses_received: u64,
    /// Frames by which this port has paused or resumed them at its peer.
    pub pauses_sent: u64,
    /// The kernel's receive buffer is filling up, so the peer must pause.
    fills_up: bool,
    /// Time at which the pause of the peer is repeated, while it pauses.
    repeats_pause: Option<Instant>,
    /// The last attempt to accept a peer has failed, because the process or the system has no
    /// descriptors or memory left.
    listener_paused: bool,
}

/// Reasons for which the port itself drops a frame.
pub mod reason {
    /// No peer is connected.
    pub const NO_PEER: &str = "no peer";
    /// The frame was queued for longer than the hold time.
    pub const HOLD_TIME: &str = "hold time over";
    /// The frame is longer than any FCoE frame.
    pub const TOO_LONG: &str = "too long";
    /// The driver cannot send the frame.
    pub const REFUSED: &str = "refused by the carrier";
    /// The frame was older than R_A_TOV on arrival.
    pub const STALE: &str = "older than R_A_TOV";
    /// The kernel's receive buffer was full.
    pub const KERNEL: &str = "dropped by the kernel";
}

impl EthernetPort {
    /// Creates a port on a driver.
    pub fn new(name: &str, driver: Driver) -> EthernetPort {
        EthernetPort {
            name: name.to_owned(),
            driver,
            egress: Egress::default(),
            received: Traffic::default(),
            sent: Traffic::default(),
            drops: BTreeMap::new(),
            pauses_received: 0,
            pauses_sent: 0,
            fills_up: false,
            repeats_pause: None,
            listener_paused: false,
        }
    }

    /// Returns the descriptor for frames, if there is one now.
    pub fn socket(&self) -> Option<BorrowedFd<'_>> {
        match &self.driver {
            Driver::Datagram(driver) => Some(driver.socket()),
            Driver::Stream(driver) => driver.socket(),
            Driver::Tap(driver) => Some(driver.socket()),
            Driver::Packet(driver) => Some(driver.socket()),
            Driver::Fcip(driver) => driver.socket(),
            Driver::Closed => None,
        }
    }

    /// Returns the descriptor on which peers connect, if the driver listens.
    pub fn listener(&self) -> Option<BorrowedFd<'_>> {
        match &self.driver {
            Driver::Stream(driver) => driver.listener(),
            Driver::Fcip(driver) => driver.listener(),
            _ => None,
        }
    }

    /// Returns whether the listener is not polled, because a connection could not be accepted: it
    /// would be reported again and again. The next [`check_peer`](Self::check_peer) tries again.
    pub fn is_listener_paused(&self) -> bool {
        self.listener_paused
    }

    /// Registers the listener, if the driver has one.
    ///
    /// # Errors
    /// A listener that cannot be polled.
    pub fn watch_listener(&self, poller: &mut Poller, token: u64) -> io::Result<()> {
        poller.set(token, self.listener(), Interest { read: !self.listener_paused, write: false })
    }

    /// Pauses the listener if no connection could be accepted, and warns about the first one.
    fn pause_listener_after(&mut self, outcome: io::Result<()>) {
        let failed = outcome.err().filter(|error| {
            // Otherwise no connection waits, or the peer has closed it already.
            use io::ErrorKind::{ConnectionAborted, Interrupted, WouldBlock};
            !matches!(error.kind(), WouldBlock | Interrupted | ConnectionAborted)
        });
        let failed_before = std::mem::replace(&mut self.listener_paused, failed.is_some());
        if let Some(error) = failed.filter(|_| !failed_before) {
            tracing::warn!(port = self.name, %error, "a connection cannot be accepted; further attempts follow");
        }
    }

    /// Returns whether a peer is present.
    pub fn has_peer(&self) -> bool {
        match &self.driver {
            Driver::Datagram(driver) => driver.has_peer(),
            Driver::Stream(driver) => driver.has_peer(),
            Driver::Tap(driver) => driver.has_peer(),
            Driver::Packet(driver) => driver.has_peer(),
            Driver::Fcip(driver) => driver.has_peer(),
            Driver::Closed => false,
        }
    }

    /// Returns the current speed of the interface in Mb/s. `None` for a driver without an
    /// interface, and for an unknown speed.
    pub fn speed_mbit_per_s(&self) -> Option<u32> {
        let name = match &self.driver {
            Driver::Tap(driver) => driver.name(),
            Driver::Packet(driver) => driver.name(),
            Driver::Datagram(_) | Driver::Stream(_) | Driver::Fcip(_) | Driver::Closed => return None,
        };
        crate::sys::interface::speed_of(name).ok().flatten()
    }

    /// Updates the peer state. Call it periodically and when the listener is readable. Returns true
    /// if frames are received through another socket from now on.
    pub fn check_peer(&mut self) -> bool {
        let descriptor = |port: &EthernetPort| port.socket().map(|socket| socket.as_raw_fd());
        let before = descriptor(self);
        match &mut self.driver {
            Driver::Datagram(driver) => driver.check_peer(),
            Driver::Stream(driver) => {
                let outcome = driver.check_peer();
                self.pause_listener_after(outcome);
            }
            Driver::Tap(driver) => driver.check_peer(),
            Driver::Closed => {}
            Driver::Fcip(driver) => {
                let outcome = driver.check_peer();
                if driver.stale() > 0 {
                    self.drops.insert(reason::STALE, driver.stale());
                }
                if driver.too_long() > 0 {
                    self.drops.insert(reason::TOO_LONG, driver.too_long());
                }
                self.pause_listener_after(outcome);
            }
            Driver::Packet(driver) => {
                driver.check_peer();
                if driver.kernel_drops() > 0 {
                    self.drops.insert(reason::KERNEL, driver.kernel_drops());
                }
            }
        }
        self.egress.speed_mbit_per_s = self.speed_mbit_per_s();
        descriptor(self) != before
    }

    /// Receives at most [`BATCH`] frames into `buffers`. Returns their number and a bit mask of
    /// frames that were too long.
    ///
    /// # Errors
    /// `WouldBlock` when no frame is available, and errors of the driver.
    pub fn receive(&mut self, buffers: &mut [FrameBuf]) -> io::Result<(usize, u32)> {
        let received = match &mut self.driver {
            Driver::Datagram(driver) => driver.receive(buffers),
            Driver::Stream(driver) => driver.receive(buffers),
            Driver::Tap(driver) => driver.receive(buffers),
            Driver::Packet(driver) => driver.receive(buffers),
            Driver::Fcip(driver) => driver.receive(buffers),
            Driver::Closed => Err(io::ErrorKind::WouldBlock.into()),
        };
        // A batch that is not full has emptied the buffer.
        let is_full = matches!(received, Ok((BATCH, _)));
        self.fills_up = match &mut self.driver {
            Driver::Packet(driver) if is_full && self.egress.lossless() != 0 => driver.fills_up(self.fills_up),
            _ => false,
        };
        let (got, cut) = received?;
        self.received.frames += got as u64;
        self.received.bytes += buffers[..got].iter().map(|buffer| buffer.bytes().len() as u64).sum::<u64>();
        if cut != 0 {
            self.count(reason::TOO_LONG, u64::from(cut.count_ones()));
        }
        Ok((got, cut))
    }

    /// Returns whether the last [`receive`](Self::receive) has left data that no event reports.
    #[inline]
    pub fn is_unfinished(&self) -> bool {
        matches!(&self.driver, Driver::Fcip(driver) if driver.is_unfinished())
    }

    /// Appends a frame to the egress queue.
    #[inline]
    pub fn push(&mut self, now: Instant, frame: FrameBuf) {
        self.egress.push(now, frame);
    }

    /// Sends queued frames until no more may leave or the peer is full. Without a peer, all of them
    /// are dropped.
    pub fn flush(&mut self, pool: &mut Pool) {
        while let Some(number) = self.egress.choose() {
            let queue = self.egress.queue(number);
            let sending = match &mut self.driver {
                Driver::Datagram(driver) => driver.send(queue),
                Driver::Stream(driver) => driver.send(queue),
                Driver::Tap(driver) => driver.send(queue),
                Driver::Packet(driver) => driver.send(queue),
                Driver::Fcip(driver) => driver.send(queue),
                Driver::Closed => Sending::NoPeer,
            };
            match sending {
                Sending::Sent(sent) => {
                    self.sent.frames += sent as u64;
                    self.sent.bytes += queue.iter().take(sent).map(|q| q.frame.bytes().len() as u64).sum::<u64>();
                    self.egress.blocked = false;
                    let has_begun = match &self.driver {
                        Driver::Stream(driver) => driver.has_begun(),
                        Driver::Fcip(driver) => driver.has_begun(),
                        _ => false,
                    };
                    self.egress.sent(number, sent, has_begun, pool);
                }
                Sending::Blocked => {
                    self.egress.blocked = true;
                    return;
                }
                Sending::Refused => {
                    self.egress.blocked = false;
                    self.egress.sent(number, 1, false, pool);
                    self.count(reason::REFUSED, 1);
                }
                Sending::NoPeer => {
                    let lost = self.egress.clear(pool);
                    self.count(reason::NO_PEER, lost);
                }
            }
        }
    }

    /// Returns whether the peer pauses, or must, so that [`pause`](Self::pause) has work.
    #[inline]
    pub fn may_pause(&self) -> bool {
        self.fills_up || self.repeats_pause.is_some()
    }

    /// Returns whether a pause of the lossless priorities of the peer begins, goes on or ends now,
    /// with the frame that says so; `None` if none is due. `held`: the frames of the peer find a
    /// full egress queue. Another reason is that the receive buffer is filling up.
    pub fn pause(&mut self, now: Instant, held: bool) -> Option<PriorityPause> {
        let priorities = self.egress.lossless();
        let stops = (held || self.fills_up) && priorities != 0 && self.has_peer();
        let is_due = match self.repeats_pause {
            None => stops,
            Some(repeat) => !stops || repeat <= now,
        };
        if !is_due {
            return None;
        }
        self.repeats_pause = stops.then(|| now + self.egress.repeats_pause_after());
        let is_sent = priorities != 0 && self.has_peer();
        self.pauses_sent += u64::from(is_sent);
        is_sent.then(|| PriorityPause::of(priorities, stops))
    }

    /// Time at which a pause of the peer is repeated.
    pub fn repeats_pause(&self) -> Option<Instant> {
        self.repeats_pause
    }

    /// Forgets that the peer pauses: the port is closed.
    pub fn forget_pause(&mut self) {
        (self.fills_up, self.repeats_pause) = (false, None);
    }

    /// Takes a frame of MAC control from the peer. Returns false if it is none that DCBX has agreed
    /// on.
    pub fn paused(&mut self, now: Instant, frame: &FrameBuf) -> bool {
        let Ok(pause) = PriorityPause::parse(frame.bytes()) else { return false };
        let is_agreed = self.egress.pause(now, &pause);
        self.pauses_received += u64::from(is_agreed);
        is_agreed
    }

    /// Adds dropped frames to the counter of a reason.
    pub fn count(&mut self, reason: &'static str, frames: u64) {
        *self.drops.entry(reason).or_default() += frames;
    }
}

/// Removes a socket file at `path` if no process listens on it any more.
pub(crate) fn free_path(path: &Path, connect: impl Fn(&Path) -> io::Result<()>) -> Result<(), PortError> {
    let Ok(meta) = fs::symlink_metadata(path) else { return Ok(()) };
    if !meta.file_type().is_socket() {
        return Err(PortError::NotASocket { path: path.to_owned() });
    }
    // Any other result means that a process uses the socket: it has another type, denies access, or
    // is connected to another peer.
    match connect(path) {
        Err(error) if error.kind() == io::ErrorKind::ConnectionRefused => {}
        _ => return Err(PortError::InUse { path: path.to_owned() }),
    }
    fs::remove_file(path).map_err(|error| PortError::socket(path, error))
}
