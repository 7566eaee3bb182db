//! Streams that send no faster than a link, and streams whose peer is near.

#![allow(unsafe_code)]

use rustix::net::sockopt;
use std::io;
use std::mem;
use std::os::fd::{AsFd, AsRawFd};

/// Sends so many bytes in a second at most, evenly, from now on (`SO_MAX_PACING_RATE`, socket(7)).
///
/// # Errors
/// When the socket has no such option.
pub fn pace(socket: impl AsFd, bytes_per_second: u32) -> io::Result<()> {
    let len = size_of::<u32>() as libc::socklen_t;
    let descriptor = socket.as_fd().as_raw_fd();
    let value = std::ptr::from_ref(&bytes_per_second).cast();
    // SAFETY: the kernel reads `len` bytes from `value`.
    let outcome = unsafe { libc::setsockopt(descriptor, libc::SOL_SOCKET, libc::SO_MAX_PACING_RATE, value, len) };
    if outcome < 0 { Err(io::Error::last_os_error()) } else { Ok(()) }
}

/// A peer whose answers take no longer than this is near, in microseconds: in the same machine, or behind a switch or two.
const NEAR_US: u32 = 200;
/// So much is on its way from a near peer at most, in bytes: as much as 20 Gb/s need, and little enough to be found in the processor's
/// cache when it is read.
const NEAR_WINDOW_BYTES: libc::c_int = 512 << 10;

/// Bounds what a near peer may send before it is read (`TCP_WINDOW_CLAMP`, tcp(7)) and what waits in the kernel for it (`SO_SNDBUF`, socket(7)),
/// so that both stay in the processor's cache; other peers are left to the kernel. Which it is, is asked of the kernel's own measurement, so this is
/// to be called when something has passed. `send_bytes`: as the kernel has it, which takes half for its own.
///
/// # Errors
/// When it is no TCP socket.
pub fn bound_buffers(socket: impl AsFd, send_bytes: usize) -> io::Result<()> {
    let descriptor = socket.as_fd().as_raw_fd();
    // SAFETY: all of it is numbers.
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

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::{Ipv4Addr, TcpListener, TcpStream};

    #[test]
    fn buffers_of_near_sockets_are_bounded_and_those_of_other_files_are_not() {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
        // On a busy machine a handshake may take longer than a near peer's.
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
