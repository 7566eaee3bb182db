//! System calls of initiators: connections to portals, and random numbers for logins.

use rustix::net::{AddressFamily, SocketFlags, SocketType, connect, socket_with, sockopt};
use sanloom_scsi::time::Span;
use sanloom_wire::iscsi::PORT;
use std::io;
use std::net::{IpAddr, SocketAddr, TcpStream};
use std::time::Duration;

/// Time after which a connection that is still not open is abandoned.
pub const CONNECT_TIME: Span = Span::from_secs(3);

/// Parses the address of a redirection. The port is optional, and an IPv6 address has brackets (RFC
/// 7143, section 13.8).
pub fn portal_of(address: &str) -> Option<SocketAddr> {
    let bare = address.strip_prefix('[').and_then(|rest| rest.strip_suffix(']')).unwrap_or(address);
    let without_port = |_| bare.parse::<IpAddr>().map(|ip| SocketAddr::new(ip, PORT));
    address.parse().or_else(without_port).ok()
}

/// Starts to open a connection; [`opened`] reports the result.
///
/// # Errors
/// When the system refuses at once.
pub fn open(portal: SocketAddr) -> io::Result<TcpStream> {
    let family = if portal.is_ipv4() { AddressFamily::INET } else { AddressFamily::INET6 };
    let socket = socket_with(family, SocketType::STREAM, SocketFlags::NONBLOCK | SocketFlags::CLOEXEC, None)?;
    match connect(&socket, &portal) {
        Ok(()) | Err(rustix::io::Errno::INPROGRESS) => Ok(TcpStream::from(socket)),
        Err(error) => Err(error.into()),
    }
}

/// Draws an initiator session identifier of type "random" (RFC 7143, section 11.12.5). Each value
/// is an initiator port of its own.
///
/// # Errors
/// When the system has no random numbers.
pub fn random_isid() -> io::Result<[u8; 6]> {
    let mut isid = random()?;
    isid[0] = 0x80;
    Ok(isid)
}

/// Checks that a connection of [`open`] is open, and disables the delay of small segments.
///
/// # Errors
/// The reason if it is not open; `TimedOut` while it may still open.
pub fn opened(stream: &TcpStream) -> io::Result<()> {
    sockopt::socket_error(stream)??;
    stream.peer_addr().map_err(|_| io::Error::new(io::ErrorKind::TimedOut, "no connection in time"))?;
    stream.set_nodelay(true)
}

/// Draws random bytes for session identifiers and challenges.
///
/// # Errors
/// When the system has no random numbers.
pub fn random<const N: usize>() -> io::Result<[u8; N]> {
    let mut bytes = [0; N];
    rustix::rand::getrandom(&mut bytes, rustix::rand::GetRandomFlags::empty())?;
    Ok(bytes)
}

/// Lets the socket be reset when it is closed. The kernel then discards unsent bytes, and the peer
/// discards unread ones.
pub fn reset_when_closed(stream: &TcpStream) {
    if let Err(error) = sockopt::set_socket_linger(stream, Some(Duration::ZERO)) {
        tracing::debug!(%error, "a lost connection cannot be reset and is closed instead");
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_portal_has_an_ipv4_or_ipv6_address_and_an_optional_port() {
        for (text, address) in [
            ("192.0.2.1:3261", "192.0.2.1:3261"),
            ("192.0.2.1", "192.0.2.1:3260"),
            ("[2001:db8::1]:3261", "[2001:db8::1]:3261"),
            ("[2001:db8::1]", "[2001:db8::1]:3260"),
        ] {
            assert_eq!(portal_of(text), Some(address.parse().unwrap()), "{text}");
        }
        for nowhere in ["", "[", "[]", "[2001:db8::1", "disk.example", "192.0.2.1:", "[192.0.2.1]:70000"] {
            assert_eq!(portal_of(nowhere), None, "{nowhere}");
        }
    }
}
