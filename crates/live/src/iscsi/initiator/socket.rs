//! What initiators ask of the system: connections to portals, and random numbers for logins.

use rustix::net::{AddressFamily, SocketFlags, SocketType, connect, socket_with, sockopt};
use std::io;
use std::net::{IpAddr, SocketAddr, TcpStream};
use std::time::Duration;

/// Where targets listen that name no port.
const ISCSI_PORT: u16 = 3260;

/// Where a redirection leads to. The port may be left out, and an IPv6 address stands in brackets (RFC 7143, section 13.8).
pub(in crate::iscsi) fn portal_of(address: &str) -> Option<SocketAddr> {
    let bare = address.strip_prefix('[').and_then(|rest| rest.strip_suffix(']')).unwrap_or(address);
    let without_port = |_| bare.parse::<IpAddr>().map(|ip| SocketAddr::new(ip, ISCSI_PORT));
    address.parse().or_else(without_port).ok()
}

/// A connection that will be open, or not.
pub(in crate::iscsi) fn open(portal: SocketAddr) -> io::Result<TcpStream> {
    let family = if portal.is_ipv4() { AddressFamily::INET } else { AddressFamily::INET6 };
    let socket = socket_with(family, SocketType::STREAM, SocketFlags::NONBLOCK | SocketFlags::CLOEXEC, None)?;
    match connect(&socket, &portal) {
        Ok(()) | Err(rustix::io::Errno::INPROGRESS) => Ok(TcpStream::from(socket)),
        Err(error) => Err(error.into()),
    }
}

/// An initiator session identifier of type "random" (RFC 7143, section 11.12.5): each is an initiator port of its own.
pub(in crate::iscsi) fn random_isid() -> io::Result<[u8; 6]> {
    let mut isid = random()?;
    isid[0] = 0x80;
    Ok(isid)
}

/// A connection that was to be opened is open, and sends at once.
pub(in crate::iscsi) fn opened(stream: &TcpStream) -> io::Result<()> {
    sockopt::socket_error(stream)??;
    stream.peer_addr().map_err(|_| io::Error::new(io::ErrorKind::TimedOut, "no connection in time"))?;
    stream.set_nodelay(true)
}

/// For session identifiers and challenges.
pub(in crate::iscsi) fn random<const N: usize>() -> io::Result<[u8; N]> {
    let mut bytes = [0; N];
    rustix::rand::getrandom(&mut bytes, rustix::rand::GetRandomFlags::empty())?;
    Ok(bytes)
}

/// The kernel sends nothing more of a connection that is lost, and its peer throws away what it has not read.
pub(in crate::iscsi) fn reset_when_closed(stream: &TcpStream) {
    if let Err(error) = sockopt::set_socket_linger(stream, Some(Duration::ZERO)) {
        tracing::debug!(%error, "a lost connection is closed as any other");
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_portal_may_have_an_address_of_either_kind_and_a_port_or_none() {
        for (told, meant) in [
            ("192.0.2.1:3261", "192.0.2.1:3261"),
            ("192.0.2.1", "192.0.2.1:3260"),
            ("[2001:db8::1]:3261", "[2001:db8::1]:3261"),
            ("[2001:db8::1]", "[2001:db8::1]:3260"),
        ] {
            assert_eq!(portal_of(told), Some(meant.parse().unwrap()), "{told}");
        }
        for nowhere in ["", "[", "[]", "[2001:db8::1", "disk.example", "192.0.2.1:", "[192.0.2.1]:70000"] {
            assert_eq!(portal_of(nowhere), None, "{nowhere}");
        }
    }
}
