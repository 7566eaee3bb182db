//! Ethernet ports: what carries the frames, and what waits to leave.
//!
//! | driver | carries a frame as | a full peer | the other end is there when |
//! |---|---|---|---|
//! | [`Datagram`] | one datagram | holds us back | its socket can be connected to |
//! | [`Stream`] | length and bytes | holds us back | a connection is open |
//! | [`Tap`] | one read or write | holds us back | the interface is up |
//! | [`Packet`] | one packet | loses frames, which are counted | the interface has a carrier |

pub mod datagram;
pub mod egress;
pub mod interface;
pub mod stream;

pub use datagram::Datagram;
pub use egress::Egress;
pub use interface::{Packet, Tap};
pub use stream::Stream;

use crate::frame::{FrameBuf, Pool};
use sanloom_core::time::Instant;
use std::collections::BTreeMap;
use std::fs;
use std::io;
use std::net::SocketAddr;
use std::os::fd::{AsRawFd, BorrowedFd};
use std::os::unix::fs::FileTypeExt;
use std::path::{Path, PathBuf};

/// Why a port cannot be opened.
#[derive(Debug, thiserror::Error)]
pub enum PortError {
    /// A socket with a path.
    #[error("cannot open the socket {}: {error}", path.display())]
    Socket {
        /// The path.
        path: PathBuf,
        /// Why.
        error: io::Error,
    },
    /// Somebody else answers at the path.
    #[error("the socket {} is in use by another process: end that one, or give this one another folder or path", path.display())]
    InUse {
        /// The path.
        path: PathBuf,
    },
    /// The path is something else than a socket.
    #[error("{} is no socket; move it away or choose another path", path.display())]
    NotASocket {
        /// The path.
        path: PathBuf,
    },
    /// An interface.
    #[error("cannot open the interface {name}: {error}{}", hint(error))]
    Interface {
        /// Its name.
        name: String,
        /// Why.
        error: io::Error,
    },
    /// The address where metrics are read.
    #[error("cannot listen at {address}: {error}; write another address or port in `metrics`")]
    Address {
        /// The address.
        address: SocketAddr,
        /// Why.
        error: io::Error,
    },
    /// A descriptor.
    #[error("cannot use the descriptor {number}: {error}")]
    Descriptor {
        /// Its number.
        number: i32,
        /// Why.
        error: io::Error,
    },
}

fn hint(error: &io::Error) -> &'static str {
    match error.kind() {
        io::ErrorKind::PermissionDenied => "; it takes root or the capabilities CAP_NET_ADMIN and CAP_NET_RAW",
        _ => "",
    }
}

impl PortError {
    fn socket(path: &Path, error: io::Error) -> PortError {
        PortError::Socket { path: path.to_owned(), error }
    }
}

/// What became of an attempt to send.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Sending {
    /// So many frames have left.
    Sent(usize),
    /// The peer has no room.
    Blocked,
    /// Nobody is at the other end.
    NoPeer,
    /// The first frame cannot be sent this way, whatever we do.
    Refused,
}

/// What carries the frames of a port.
#[derive(Debug)]
#[allow(missing_docs)] // each is described where it stands
pub enum Driver {
    Datagram(Datagram),
    Stream(Stream),
    Tap(Tap),
    Packet(Packet),
    /// Nothing any more.
    Closed,
}

/// Frames and bytes in one direction.
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
    /// Name that people see.
    pub name: String,
    /// What carries the frames.
    pub driver: Driver,
    /// What waits to leave.
    pub egress: Egress,
    /// Frames that came in.
    pub received: Traffic,
    /// Frames that left.
    pub sent: Traffic,
    /// Frames that were dropped, by reason.
    pub drops: BTreeMap<&'static str, u64>,
}

/// Reasons of a port itself for dropping a frame.
pub mod reason {
    /// Nobody is at the other end.
    pub const NO_PEER: &str = "no peer";
    /// It waited for longer than the hold time.
    pub const HOLD_TIME: &str = "hold time over";
    /// Longer than any FCoE frame.
    pub const TOO_LONG: &str = "too long";
    /// The carrier cannot send it.
    pub const REFUSED: &str = "refused by the carrier";
    /// The kernel had no room for it on the way in.
    pub const KERNEL: &str = "dropped by the kernel";
}

impl EthernetPort {
    /// A port over a driver.
    pub fn new(name: &str, driver: Driver) -> EthernetPort {
        EthernetPort {
            name: name.to_owned(),
            driver,
            egress: Egress::default(),
            received: Traffic::default(),
            sent: Traffic::default(),
            drops: BTreeMap::new(),
        }
    }

    /// Where frames come in and go out.
    pub fn socket(&self) -> Option<BorrowedFd<'_>> {
        match &self.driver {
            Driver::Datagram(driver) => Some(driver.socket()),
            Driver::Stream(driver) => driver.socket(),
            Driver::Tap(driver) => Some(driver.socket()),
            Driver::Packet(driver) => Some(driver.socket()),
            Driver::Closed => None,
        }
    }

    /// Where peers come in.
    pub fn listener(&self) -> Option<BorrowedFd<'_>> {
        match &self.driver {
            Driver::Stream(driver) => driver.listener(),
            _ => None,
        }
    }

    /// Somebody is at the other end.
    pub fn has_peer(&self) -> bool {
        match &self.driver {
            Driver::Datagram(driver) => driver.has_peer(),
            Driver::Stream(driver) => driver.has_peer(),
            Driver::Tap(driver) => driver.has_peer(),
            Driver::Packet(driver) => driver.has_peer(),
            Driver::Closed => false,
        }
    }

    /// Finds out whether the peer has come or gone. To be called now and then, and when the listener is readable. True if frames come
    /// in through another socket from now on.
    pub fn look_for_peer(&mut self) -> bool {
        let descriptor = |port: &EthernetPort| port.socket().map(|socket| socket.as_raw_fd());
        let before = descriptor(self);
        match &mut self.driver {
            Driver::Datagram(driver) => driver.look_for_peer(),
            Driver::Stream(driver) => {
                driver.look_for_peer();
            }
            Driver::Tap(driver) => driver.look_for_peer(),
            Driver::Closed => {}
            Driver::Packet(driver) => {
                driver.look_for_peer();
                if driver.kernel_drops() > 0 {
                    self.drops.insert(reason::KERNEL, driver.kernel_drops());
                }
            }
        }
        descriptor(self) != before
    }

    /// Takes frames into `buffers`, at most [`BATCH`](crate::sys::batch::BATCH), and says how many, and by bit which of them
    /// were too long.
    ///
    /// # Errors
    /// `WouldBlock` when there is none, or what the carrier says.
    pub fn receive(&mut self, buffers: &mut [FrameBuf]) -> io::Result<(usize, u32)> {
        let (got, cut) = match &mut self.driver {
            Driver::Datagram(driver) => driver.receive(buffers),
            Driver::Stream(driver) => driver.receive(buffers),
            Driver::Tap(driver) => driver.receive(buffers),
            Driver::Packet(driver) => driver.receive(buffers),
            Driver::Closed => Err(io::ErrorKind::WouldBlock.into()),
        }?;
        self.received.frames += got as u64;
        self.received.bytes += buffers[..got].iter().map(|buffer| buffer.bytes().len() as u64).sum::<u64>();
        if cut != 0 {
            self.count(reason::TOO_LONG, u64::from(cut.count_ones()));
        }
        Ok((got, cut))
    }

    /// Puts a frame into the egress queue.
    #[inline]
    pub fn push(&mut self, now: Instant, frame: FrameBuf) {
        self.egress.push(now, frame);
    }

    /// Sends what waits, as far as the peer takes it. Without a peer everything is dropped.
    pub fn flush(&mut self, pool: &mut Pool) {
        while !self.egress.queue.is_empty() {
            let queue = &mut self.egress.queue;
            let sending = match &mut self.driver {
                Driver::Datagram(driver) => driver.send(queue),
                Driver::Stream(driver) => driver.send(queue),
                Driver::Tap(driver) => driver.send(queue),
                Driver::Packet(driver) => driver.send(queue),
                Driver::Closed => Sending::NoPeer,
            };
            self.egress.blocked = sending == Sending::Blocked;
            match sending {
                Sending::Sent(sent) => {
                    self.sent.frames += sent as u64;
                    self.sent.bytes += queue.iter().take(sent).map(|q| q.frame.bytes().len() as u64).sum::<u64>();
                    self.egress.pop(sent, pool);
                }
                Sending::Blocked => return,
                Sending::Refused => {
                    self.egress.pop(1, pool);
                    self.count(reason::REFUSED, 1);
                }
                Sending::NoPeer => {
                    let lost = self.egress.clear(pool);
                    self.count(reason::NO_PEER, lost);
                }
            }
        }
    }

    /// Counts dropped frames.
    pub fn count(&mut self, reason: &'static str, frames: u64) {
        *self.drops.entry(reason).or_default() += frames;
    }
}

/// Makes way for a socket: removes one that nobody listens at any more.
pub(crate) fn free_path(path: &Path, connect: impl Fn(&Path) -> io::Result<()>) -> Result<(), PortError> {
    let Ok(meta) = fs::symlink_metadata(path) else { return Ok(()) };
    if !meta.file_type().is_socket() {
        return Err(PortError::NotASocket { path: path.to_owned() });
    }
    // Any other answer comes from a socket that somebody has: of another kind, not for us, or connected to somebody else.
    match connect(path) {
        Err(error) if error.kind() == io::ErrorKind::ConnectionRefused => {}
        _ => return Err(PortError::InUse { path: path.to_owned() }),
    }
    fs::remove_file(path).map_err(|error| PortError::socket(path, error))
}
