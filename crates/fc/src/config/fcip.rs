//! FCIP links (RFC 3821): links between switches over TCP.

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
