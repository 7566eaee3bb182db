//! UDP socket of RoCEv2 at one address: [`RoceSocket`].

use crate::poll::Interest;
use crate::sys::stream::never_fragment;
use sanloom_wire::infiniband::roce::{Path, RocePacket, UDP_PORT};
use std::collections::VecDeque;
use std::io;
use std::net::{Ipv4Addr, SocketAddr, SocketAddrV4, UdpSocket};
use std::os::fd::{AsFd, BorrowedFd};

/// Unsent datagrams at which further ones are dropped, as a network drops them.
const MAX_UNSENT: usize = 16_384;
/// Buffers of the socket in bytes, for the packets of several initiators.
const BUFFER_BYTES: usize = 4 << 20;

/// Counters of a socket.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Counters {
    /// Datagrams received.
    pub received: u64,
    /// Datagrams sent.
    pub sent: u64,
    /// Datagrams that are no packet, or whose checksum is wrong.
    pub damaged: u64,
    /// Packets for no queue pair.
    pub unknown: u64,
    /// Datagrams that could not be sent.
    pub dropped: u64,
}

/// UDP socket of RoCEv2.
#[derive(Debug)]
pub(super) struct RoceSocket {
    socket: UdpSocket,
    /// Its address.
    pub local: SocketAddrV4,
    unsent: VecDeque<(SocketAddrV4, Vec<u8>)>,
    /// True if there may be datagrams, or room for them.
    pub is_ready: bool,
    /// Counters.
    pub counters: Counters,
}

impl RoceSocket {
    /// Opens the socket of an address.
    pub fn open(address: Ipv4Addr) -> io::Result<RoceSocket> {
        let local = SocketAddrV4::new(address, UDP_PORT);
        let socket = UdpSocket::bind(local)?;
        socket.set_nonblocking(true)?;
        // The ICRC covers the identification of IPv4, which Linux sets to zero under this option.
        never_fragment(&socket)?;
        for outcome in [
            rustix::net::sockopt::set_socket_recv_buffer_size(&socket, BUFFER_BYTES),
            rustix::net::sockopt::set_socket_send_buffer_size(&socket, BUFFER_BYTES),
        ] {
            if let Err(error) = outcome {
                tracing::debug!(%local, %error, "the socket buffer size cannot be set");
            }
        }
        Ok(RoceSocket { socket, local, unsent: VecDeque::new(), is_ready: true, counters: Counters::default() })
    }

    pub fn as_fd(&self) -> BorrowedFd<'_> {
        self.socket.as_fd()
    }

    pub fn interest(&self) -> Interest {
        Interest { read: true, write: !self.unsent.is_empty() }
    }

    /// Receives a datagram into `buffer`. Returns its path and length; `None` if there is none.
    pub fn receive(&mut self, buffer: &mut [u8]) -> Option<(Path, usize)> {
        loop {
            match self.socket.recv_from(buffer) {
                Ok((bytes, SocketAddr::V4(from))) => {
                    self.counters.received += 1;
                    return Some((Path { from, to: self.local }, bytes));
                }
                Ok((_, SocketAddr::V6(_))) => {}
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                // Errors of datagrams that were sent, such as "port unreachable", end here too.
                Err(_) => return None,
            }
        }
    }

    /// Queues a packet for a peer.
    pub fn send(&mut self, to: Ipv4Addr, packet: &RocePacket<'_>) {
        if self.unsent.len() >= MAX_UNSENT {
            self.counters.dropped += 1;
            return;
        }
        let to = SocketAddrV4::new(to, UDP_PORT);
        let mut bytes = Vec::new();
        packet.emit(&Path { from: self.local, to }, &mut bytes);
        self.unsent.push_back((to, bytes));
    }

    /// Sends as much as the socket accepts.
    pub fn flush(&mut self) {
        while let Some((to, bytes)) = self.unsent.front() {
            match self.socket.send_to(bytes, to) {
                Ok(_) => self.counters.sent += 1,
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
                Err(error) => {
                    self.counters.dropped += 1;
                    tracing::debug!(peer = %to, bytes = bytes.len(), %error, "a datagram cannot be sent");
                }
            }
            self.unsent.pop_front();
        }
    }
}
