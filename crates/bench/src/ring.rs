//! An io_uring(7) that owns the buffers of in-flight requests: [`Ring`].

#![allow(unsafe_code)]

use io_uring::types::{Fd, SubmitArgs, Timespec};
use io_uring::{IoUring, opcode, squeue};
use std::collections::{BTreeMap, btree_map};
use std::io;
use std::mem;
use std::ops::Range;
use std::os::fd::{AsFd, AsRawFd};
use std::time::Duration;

/// Size of the submission queue.
const ENTRIES: u32 = 1024;

/// A completed request.
#[derive(Debug)]
pub struct Ended {
    /// Token of the request.
    pub token: u64,
    /// Number of bytes transferred.
    pub outcome: io::Result<usize>,
    /// Buffer of the request; empty for a request without one.
    pub buffer: Box<[u8]>,
}

/// Socket requests and their completions. A token has at most one request in flight.
pub struct Ring {
    ring: IoUring,
    /// Buffers of in-flight requests, by token.
    held: BTreeMap<u64, Box<[u8]>>,
}

impl Ring {
    /// Creates a ring without requests.
    ///
    /// # Errors
    /// When the system does not support io_uring, or does not permit it.
    pub fn new() -> io::Result<Ring> {
        Ok(Ring { ring: IoUring::new(ENTRIES)?, held: BTreeMap::new() })
    }

    /// Receives into a range of the buffer.
    ///
    /// # Errors
    /// - [`AlreadyExists`](io::ErrorKind::AlreadyExists) if a request with this token is in flight.
    /// - [`InvalidInput`](io::ErrorKind::InvalidInput) if the range is outside the buffer.
    /// - Other errors if the system rejects the request.
    ///
    /// The buffer is dropped on an error.
    pub fn receive(&mut self, token: u64, socket: impl AsFd, buffer: Box<[u8]>, room: Range<usize>) -> io::Result<()> {
        let socket = Fd(socket.as_fd().as_raw_fd());
        self.push(token, buffer, room, |part| opcode::Recv::new(socket, part.as_mut_ptr(), length(part)).build())
    }

    /// Sends a range of the buffer, possibly only its first bytes.
    ///
    /// # Errors
    /// As [`receive`](Self::receive).
    pub fn send(&mut self, token: u64, socket: impl AsFd, buffer: Box<[u8]>, part: Range<usize>) -> io::Result<()> {
        let socket = Fd(socket.as_fd().as_raw_fd());
        self.push(token, buffer, part, |part| opcode::Send::new(socket, part.as_ptr(), length(part)).build())
    }

    /// Completes when the socket is readable.
    ///
    /// # Errors
    /// As [`receive`](Self::receive).
    pub fn poll(&mut self, token: u64, socket: impl AsFd) -> io::Result<()> {
        let socket = Fd(socket.as_fd().as_raw_fd());
        self.push(token, Box::default(), 0..0, |_| opcode::PollAdd::new(socket, libc::POLLIN as u32).build())
    }

    /// Submits the request that `request` creates for a range of the buffer.
    fn push(
        &mut self,
        token: u64,
        buffer: Box<[u8]>,
        part: Range<usize>,
        request: impl FnOnce(&mut [u8]) -> squeue::Entry,
    ) -> io::Result<()> {
        let btree_map::Entry::Vacant(place) = self.held.entry(token) else {
            return Err(io::Error::new(io::ErrorKind::AlreadyExists, format!("request {token} is in flight")));
        };
        // The pointer is taken after the buffer has reached its final place.
        let request = place.insert(buffer).get_mut(part).map(request);
        let pushed = match request {
            Some(request) => self.hand_over(&request.user_data(token)),
            None => Err(io::Error::new(io::ErrorKind::InvalidInput, "the buffer has no such part")),
        };
        if pushed.is_err() {
            // The kernel has not received the request.
            self.held.remove(&token);
        }
        pushed
    }

    fn hand_over(&mut self, request: &squeue::Entry) -> io::Result<()> {
        // SAFETY: the buffer of the request stays in `held`, where nothing accesses or replaces it,
        // until the request has completed. Buffers still in flight are leaked on drop.
        while unsafe { self.ring.submission().push(request) }.is_err() {
            self.ring.submit()?;
        }
        Ok(())
    }

    /// Submits all requests and waits at most `most` for a completion. Returns all completed
    /// requests.
    ///
    /// # Errors
    /// Errors of the system, except a time-out.
    pub fn wait(&mut self, most: Duration) -> io::Result<Vec<Ended>> {
        match self.ring.submitter().submit_with_args(1, &SubmitArgs::new().timespec(&Timespec::from(most))) {
            Ok(_) => {}
            Err(error) if matches!(error.raw_os_error(), Some(libc::ETIME | libc::EINTR)) => {}
            Err(error) => return Err(error),
        }
        let held = &mut self.held;
        let ended = self.ring.completion().map(|completion| {
            let token = completion.user_data();
            let outcome =
                usize::try_from(completion.result()).map_err(|_| io::Error::from_raw_os_error(-completion.result()));
            Ended { token, outcome, buffer: held.remove(&token).unwrap_or_default() }
        });
        Ok(ended.collect())
    }
}

impl Drop for Ring {
    fn drop(&mut self) {
        // The kernel may still access the buffers.
        mem::take(&mut self.held).into_values().for_each(mem::forget);
    }
}

/// Length of a request, limited to `u32::MAX`; a longer transfer is partial.
fn length(part: &[u8]) -> u32 {
    u32::try_from(part.len()).unwrap_or(u32::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;
    use sanloom_test_support::needs;
    use std::io::Write;
    use std::os::unix::net::UnixStream;

    const LONG: Duration = Duration::from_secs(30);

    #[needs("io-uring")]
    #[test]
    fn a_token_has_one_request_whose_buffer_is_kept_while_in_flight() {
        let mut ring = Ring::new().unwrap();
        let (mut near, far) = UnixStream::pair().unwrap();
        ring.receive(7, &far, vec![1; 8].into(), 2..6).unwrap();
        let held = ring.held[&7].as_ptr();
        let again = [
            ring.receive(7, &far, vec![2; 8].into(), 0..8),
            ring.send(7, &far, vec![2; 8].into(), 0..8),
            ring.poll(7, &far),
        ];
        assert!(again.iter().all(|one| one.as_ref().is_err_and(|error| error.kind() == io::ErrorKind::AlreadyExists)));
        assert_eq!((ring.held.len(), ring.held[&7].as_ptr()), (1, held));
        near.write_all(b"abcdef").unwrap();
        let ended = ring.wait(LONG).unwrap().pop().unwrap();
        assert_eq!((ended.token, ended.outcome.unwrap(), ended.buffer.as_ptr()), (7, 4, held));
        assert_eq!(ended.buffer[..], *b"\x01\x01abcd\x01\x01");
        ring.receive(7, &far, ended.buffer, 0..8).unwrap();
        assert_eq!(ring.wait(LONG).unwrap().pop().unwrap().outcome.unwrap(), 2);
    }

    #[needs("io-uring")]
    #[test]
    fn a_request_that_is_rejected_is_not_held() {
        let mut ring = Ring::new().unwrap();
        let (_near, far) = UnixStream::pair().unwrap();
        let outside = ring.receive(7, &far, vec![0; 8].into(), 4..9);
        assert_eq!(outside.unwrap_err().kind(), io::ErrorKind::InvalidInput);
        assert!(ring.held.is_empty());
        ring.poll(7, &far).unwrap();
    }
}
