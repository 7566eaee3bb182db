//! Streams that send no faster than a link.

#![allow(unsafe_code)]

use std::io;
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
