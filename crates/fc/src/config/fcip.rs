//! FCIP links (RFC 3821): links between switches over TCP.

use super::tcp::Tcp;
use super::units::Picos;
use core::net::SocketAddr;

/// Keep-alive time-out (K_A_TOV) of a link, unless the lab sets it.
pub const K_A_TOV: Picos = Picos::from_secs(10);

/// TCP connection of an FCIP link in a live run. The switch that the link names second connects,
/// and the one that it names first listens.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct FcipAddresses {
    /// Address at which the first switch listens.
    pub listen: SocketAddr,
    /// Address to which the second switch connects.
    pub peer: SocketAddr,
    /// Keep-alive time-out (K_A_TOV).
    pub keep_alive: Picos,
}

/// Bytes that the encapsulation of FCIP adds to a frame from SOF to EOF: those of the header.
pub const FCIP_OVERHEAD_BYTES: u16 = sanloom_wire::fcip::HEADER_BYTES as u16;
/// Receive buffer of a gateway towards its switch, in bytes. While it is full, the bytes stay in
/// TCP.
pub const FCIP_BUFFER_BYTES: u64 = 262_144;

/// FCIP link of a simulation, over the Ethernet of the lab.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct FcipTunnel {
    /// Receive window of TCP in bytes; `None`: it grows with the need, as for iSCSI.
    pub window_bytes: Option<u32>,
    /// Bytes that a gateway keeps until the other end has acknowledged them; `None`: they grow with
    /// the need, as for iSCSI.
    pub send_buffer_bytes: Option<u32>,
    /// Keep-alive time-out (K_A_TOV).
    pub keep_alive: Picos,
}

impl FcipTunnel {
    /// Settings of TCP.
    pub fn tcp(&self) -> Tcp {
        Tcp { window_bytes: self.window_bytes, send_buffer_bytes: self.send_buffer_bytes, ..Tcp::default() }
    }
}
