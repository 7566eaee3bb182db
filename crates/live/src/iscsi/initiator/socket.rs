//! What initiators ask of the system: connections to portals, and random numbers for logins.

use rustix::net::{AddressFamily, SocketFlags, SocketType, connect, socket_with};
use std::io;
use std::net::{IpAddr, SocketAddr, TcpStream};

/// Where targets listen that name no port.
const ISCSI_PORT: u16 = 3260;

/// Where a redirection leads to. The port may be left out (RFC 7143, section 13.8).
pub(in crate::iscsi) fn portal_of(address: &str) -> Option<SocketAddr> {
    let without_port = |_| address.parse::<IpAddr>().map(|ip| SocketAddr::new(ip, ISCSI_PORT));
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

/// For session identifiers and challenges.
pub(in crate::iscsi) fn random<const N: usize>() -> io::Result<[u8; N]> {
    let mut bytes = [0; N];
    rustix::rand::getrandom(&mut bytes, rustix::rand::GetRandomFlags::empty())?;
    Ok(bytes)
}
