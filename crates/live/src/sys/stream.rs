//! Paced streams, and buffer limits for streams with a near peer.

#![allow(unsafe_code)]

use rustix::net::sockopt;
use std::io;
use std::mem;
use std::os::fd::{AsFd, AsRawFd};

/// Limits the sending rate of a socket, evenly paced (`SO_MAX_PACING_RATE`, socket(7)).
///
/// # Errors
/// When the socket does not support the option.
pub fn pace(socket: impl AsFd, bytes_per_second: u32) -> io::Result<()> {
    let len = size_of::<u32>() as libc::socklen_t;
    let descriptor = socket.as_fd().as_raw_fd();
    let value = std::ptr::from_ref(&bytes_per_second).cast();
    // SAFETY: the kernel reads `len` bytes from `value`.
    let outcome = unsafe { libc::setsockopt(descriptor, libc::SOL_SOCKET, libc::SO_MAX_PACING_RATE, value, len) };
    if outcome < 0 { Err(io::Error::last_os_error()) } else { Ok(()) }
}

/// Maximum round-trip time of a near peer, in microseconds: in the same machine, or behind one or
/// two switches.
const NEAR_US: u32 = 200;
/// Receive window for a near peer, in bytes: sufficient for 20 Gb/s, and small enough that the data
/// are still in the processor's cache when they are read.
const NEAR_WINDOW_BYTES: libc::c_int = 512 << 10;

/// Limits the receive window (`TCP_WINDOW_CLAMP`, tcp(7)) and the send buffer (`SO_SNDBUF`,
/// socket(7)) of a stream with a near peer, so that both stay in the processor's cache. Streams
/// with other peers keep the kernel's limits.
///
/// The kernel's measured round-trip time decides, so call this after the first exchange of data.
/// `send_bytes` is the value for `SO_SNDBUF`, of which the kernel uses half for its own overhead.
///
/// # Errors
/// When the socket is not a TCP socket.
pub fn bound_buffers(socket: impl AsFd, send_bytes: usize) -> io::Result<()> {
    let descriptor = socket.as_fd().as_raw_fd();
    // SAFETY: all fields are integers, for which zero is valid.
    let mut info: libc::tcp_info = unsafe { mem::zeroed() };
    let mut len = size_of::<libc::tcp_info>() as libc::socklen_t;
    let room = (&raw mut info).cast();
    // SAFETY: the kernel writes at most `len` bytes into `info`.
    let outcome = unsafe { libc::getsockopt(descriptor, libc::IPPROTO_TCP, libc::TCP_INFO, room, &raw mut len) };
    if outcome < 0 {
        return Err(io::Error::last_os_error());
    }
    if !(1..=NEAR_US).contains(&info.tcpi_rtt) {
        return Ok(());
    }
    sockopt::set_socket_send_buffer_size(&socket, send_bytes)?;
    let value = NEAR_WINDOW_BYTES;
    let len = size_of::<libc::c_int>() as libc::socklen_t;
    // SAFETY: the kernel reads `len` bytes from `value`.
    let outcome = unsafe {
        libc::setsockopt(descriptor, libc::IPPROTO_TCP, libc::TCP_WINDOW_CLAMP, (&raw const value).cast(), len)
    };
    if outcome < 0 { Err(io::Error::last_os_error()) } else { Ok(()) }
}

/// Sets "do not fragment" in the IPv4 datagrams of a socket (`IP_MTU_DISCOVER`, ip(7)). Unless the
/// socket is connected, their identification is zero.
///
/// # Errors
/// When the socket is not one of IPv4.
pub fn never_fragment(socket: impl AsFd) -> io::Result<()> {
    let descriptor = socket.as_fd().as_raw_fd();
    let value: libc::c_int = libc::IP_PMTUDISC_DO;
    let len = size_of::<libc::c_int>() as libc::socklen_t;
    let pointer = (&raw const value).cast();
    // SAFETY: the kernel reads `len` bytes from `value`.
    let outcome = unsafe { libc::setsockopt(descriptor, libc::IPPROTO_IP, libc::IP_MTU_DISCOVER, pointer, len) };
    if outcome < 0 { Err(io::Error::last_os_error()) } else { Ok(()) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::{Ipv4Addr, TcpListener, TcpStream};

    #[test]
    fn buffers_of_near_sockets_are_bounded_and_those_of_other_files_are_not() {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
        // On a busy machine a handshake may take longer than the round-trip limit of a near peer.
        let is_bounded = |_| {
            let stream = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
            bound_buffers(&stream, 64 << 10).unwrap();
            sockopt::socket_send_buffer_size(&stream).unwrap() == 128 << 10
        };
        assert!((0..100).any(is_bounded));
        let (out, _into) = rustix::pipe::pipe().unwrap();
        assert!(bound_buffers(&out, 64 << 10).is_err());
    }
}
