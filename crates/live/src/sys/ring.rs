//! An io_uring(7) that owns the buffers of what is under way: [`Ring`].

#![allow(unsafe_code)]

use io_uring::types::{Fd, SubmitArgs, Timespec};
use io_uring::{IoUring, opcode, squeue};
use std::collections::{BTreeMap, btree_map};
use std::io;
use std::mem;
use std::ops::Range;
use std::os::fd::{AsFd, AsRawFd};
use std::time::Duration;

/// Requests that wait for the kernel.
const ENTRIES: u32 = 1024;

/// A request that has ended.
#[derive(Debug)]
pub struct Ended {
    /// What it was given.
    pub token: u64,
    /// Bytes that were moved.
    pub outcome: io::Result<usize>,
    /// Its buffer; empty for what has none.
    pub buffer: Box<[u8]>,
}

/// Requests to sockets, and those that have ended. A token has one request at a time.
pub struct Ring {
    ring: IoUring,
    /// Buffers that the kernel reads or writes, by the token of their request.
    held: BTreeMap<u64, Box<[u8]>>,
}

impl Ring {
    /// No requests yet.
    ///
    /// # Errors
    /// When the system has no io_uring, or none for us.
    pub fn new() -> io::Result<Ring> {
        Ok(Ring { ring: IoUring::new(ENTRIES)?, held: BTreeMap::new() })
    }

    /// Receives into this part of the buffer.
    ///
    /// # Errors
    /// [`AlreadyExists`](io::ErrorKind::AlreadyExists) when a request of this token is under way, [`InvalidInput`](io::ErrorKind::InvalidInput)
    /// when the buffer has no such part, else when the system takes no requests. The buffer is gone then.
    pub fn receive(&mut self, token: u64, socket: impl AsFd, buffer: Box<[u8]>, room: Range<usize>) -> io::Result<()> {
        let socket = Fd(socket.as_fd().as_raw_fd());
        self.push(token, buffer, room, |part| opcode::Recv::new(socket, part.as_mut_ptr(), length(part)).build())
    }

    /// Sends this part of the buffer, or the first bytes of it.
    ///
    /// # Errors
    /// As [`receive`](Self::receive).
    pub fn send(&mut self, token: u64, socket: impl AsFd, buffer: Box<[u8]>, part: Range<usize>) -> io::Result<()> {
        let socket = Fd(socket.as_fd().as_raw_fd());
        self.push(token, buffer, part, |part| opcode::Send::new(socket, part.as_ptr(), length(part)).build())
    }

    /// Ends when the socket can be read.
    ///
    /// # Errors
    /// As [`receive`](Self::receive).
    pub fn poll(&mut self, token: u64, socket: impl AsFd) -> io::Result<()> {
        let socket = Fd(socket.as_fd().as_raw_fd());
        self.push(token, Box::default(), 0..0, |_| opcode::PollAdd::new(socket, libc::POLLIN as u32).build())
    }

    /// `request` makes the request for a part of the buffer.
    fn push(
        &mut self,
        token: u64,
        buffer: Box<[u8]>,
        part: Range<usize>,
        request: impl FnOnce(&mut [u8]) -> squeue::Entry,
    ) -> io::Result<()> {
        let btree_map::Entry::Vacant(place) = self.held.entry(token) else {
            return Err(io::Error::new(io::ErrorKind::AlreadyExists, format!("request {token} is under way")));
        };
        // The pointer is taken where the buffer stays.
        let request = place.insert(buffer).get_mut(part).map(request);
        let pushed = match request {
            Some(request) => self.hand_over(&request.user_data(token)),
            None => Err(io::Error::new(io::ErrorKind::InvalidInput, "the buffer has no such part")),
        };
        if pushed.is_err() {
            // The kernel has not heard of it.
            self.held.remove(&token);
        }
        pushed
    }

    fn hand_over(&mut self, request: &squeue::Entry) -> io::Result<()> {
        // SAFETY: the buffer of the request is in `held`, where nobody reaches it and nothing takes its place, until the request has ended;
        // what is there when the ring goes stays for ever.
        while unsafe { self.ring.submission().push(request) }.is_err() {
            self.ring.submit()?;
        }
        Ok(())
    }

    /// Hands over all requests, and waits until one has ended, at most so long. Those that have.
    ///
    /// # Errors
    /// What the system says; time that is over is no error.
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
        // The kernel may still be at work on them.
        mem::take(&mut self.held).into_values().for_each(mem::forget);
    }
}

/// More than the kernel moves at once is moved in part.
fn length(part: &[u8]) -> u32 {
    u32::try_from(part.len()).unwrap_or(u32::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Write;
    use std::os::unix::net::UnixStream;

    const LONG: Duration = Duration::from_secs(30);

    /// None where the system has no io_uring.
    fn ring() -> Option<Ring> {
        let ring = Ring::new();
        if let Err(error) = &ring {
            println!("skipped: no io_uring here: {error}");
        }
        ring.ok()
    }

    #[test]
    fn a_token_has_one_request_and_its_buffer_stays_while_it_is_under_way() {
        let Some(mut ring) = ring() else { return };
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

    #[test]
    fn what_the_kernel_never_gets_is_not_held() {
        let Some(mut ring) = ring() else { return };
        let (_near, far) = UnixStream::pair().unwrap();
        let outside = ring.receive(7, &far, vec![0; 8].into(), 4..9);
        assert_eq!(outside.unwrap_err().kind(), io::ErrorKind::InvalidInput);
        assert!(ring.held.is_empty());
        ring.poll(7, &far).unwrap();
    }
}
