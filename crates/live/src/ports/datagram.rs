//! Ethernet over unix datagram sockets: one datagram is one frame. A full peer blocks the sender,
//! so no frame is lost.

use super::{PortError, Sending, free_path};
use crate::frame::FrameBuf;
use crate::ports::egress::Queued;
use crate::sys::{batch, interface};
use rustix::net::SocketType;
use rustix::net::sockopt::{set_socket_send_buffer_size, socket_type};
use std::collections::VecDeque;
use std::fs;
use std::io;
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::net::UnixDatagram;
use std::path::{Path, PathBuf};

/// Kernel send buffer for the peer, in bytes.
const SEND_BUFFER_BYTES: usize = 1 << 20;

/// A datagram socket and the address of its peer.
#[derive(Debug)]
pub struct Datagram {
    socket: UnixDatagram,
    /// Path of our socket, which is removed on drop.
    path: Option<PathBuf>,
    peer: Peer,
}

#[derive(Debug)]
enum Peer {
    /// The other end of a socket pair, which cannot reconnect.
    Paired { gone: bool },
    /// Path of the peer's socket, and whether we are connected to it.
    Path { path: PathBuf, connected: bool },
}

impl Datagram {
    /// Binds a socket at `path`. The peer's socket at `peer` may appear later.
    ///
    /// # Errors
    /// When the path is in use or cannot be written.
    pub fn bind(path: &Path, peer: &Path) -> Result<Datagram, PortError> {
        free_path(path, |path| UnixDatagram::unbound()?.connect(path))?;
        let socket = UnixDatagram::bind(path).map_err(|error| PortError::socket(path, error))?;
        let peer = Peer::Path { path: peer.to_owned(), connected: false };
        Datagram::new(socket, Some(path.to_owned()), peer)
    }

    /// Takes over one end of a socket pair that the parent process opened.
    ///
    /// # Errors
    /// When the descriptor is not open or is not a datagram socket.
    pub fn inherit(number: i32) -> Result<Datagram, PortError> {
        let failed = |error| PortError::Descriptor { number, error };
        if number <= 2 {
            let why = "0 to 2 are standard input, output and error";
            return Err(failed(io::Error::new(io::ErrorKind::InvalidInput, why)));
        }
        let socket = interface::inherited(number).map_err(failed)?;
        match socket_type(&socket).map_err(|error| failed(error.into()))? {
            SocketType::DGRAM => Datagram::from_pair(socket.into()),
            _ => Err(failed(io::Error::new(io::ErrorKind::InvalidInput, "it is not a datagram socket"))),
        }
    }

    /// Creates a port from one end of a socket pair.
    ///
    /// # Errors
    /// When its options cannot be set.
    pub fn from_pair(socket: UnixDatagram) -> Result<Datagram, PortError> {
        Datagram::new(socket, None, Peer::Paired { gone: false })
    }

    fn new(socket: UnixDatagram, path: Option<PathBuf>, peer: Peer) -> Result<Datagram, PortError> {
        let set = socket
            .set_nonblocking(true)
            .and_then(|()| set_socket_send_buffer_size(&socket, SEND_BUFFER_BYTES).map_err(io::Error::from));
        set.map_err(|error| PortError::socket(path.as_deref().unwrap_or(Path::new("socket pair")), error))?;
        let mut datagram = Datagram { socket, path, peer };
        datagram.check_peer();
        Ok(datagram)
    }

    pub fn socket(&self) -> BorrowedFd<'_> {
        self.socket.as_fd()
    }

    /// Returns whether a peer is connected.
    pub fn has_peer(&self) -> bool {
        match &self.peer {
            Peer::Paired { gone } => !gone,
            Peer::Path { connected, .. } => *connected,
        }
    }

    /// Updates the peer state: connected, gone, or replaced.
    pub fn check_peer(&mut self) {
        let Peer::Path { path, connected } = &mut self.peer else { return };
        // A repeated connect to the same socket has no effect. A comparison of inodes would not do,
        // because a new socket may reuse the inode of a closed one. While we are connected to the
        // old socket, the new one may not send to us.
        *connected = self.socket.connect(&*path).is_ok();
    }

    /// Receives frames, see [`batch::receive`].
    ///
    /// # Errors
    /// Errors of the socket.
    pub fn receive(&mut self, buffers: &mut [FrameBuf]) -> io::Result<(usize, u32)> {
        let got = batch::receive(self.socket.as_fd(), buffers, false);
        if got.is_ok() && !self.has_peer() {
            self.check_peer();
        }
        got
    }

    /// Sends frames from the front of the queue.
    pub fn send(&mut self, frames: &VecDeque<Queued>) -> Sending {
        if !self.has_peer() {
            return Sending::NoPeer;
        }
        match batch::send(self.socket.as_fd(), frames.iter().map(|queued| queued.frame.bytes())) {
            Ok(sent) => Sending::Sent(sent),
            Err(error) => match error.kind() {
                io::ErrorKind::WouldBlock => Sending::Blocked,
                io::ErrorKind::Interrupted => Sending::Sent(0),
                // The kernel is out of socket memory for now.
                _ if error.raw_os_error() == Some(libc::ENOBUFS) => Sending::Blocked,
                _ if error.raw_os_error() == Some(libc::EMSGSIZE) => Sending::Refused,
                _ => {
                    match &mut self.peer {
                        Peer::Paired { gone } => *gone = true,
                        Peer::Path { connected, .. } => *connected = false,
                    }
                    Sending::NoPeer
                }
            },
        }
    }
}

impl Drop for Datagram {
    fn drop(&mut self) {
        if let Some(path) = &self.path {
            let _ = fs::remove_file(path);
        }
    }
}
