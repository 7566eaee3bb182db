//! An io_uring(7) that owns the buffers of what is under way: [`Ring`].

#![allow(unsafe_code)]

use io_uring::types::{Fd, SubmitArgs, Timespec};
use io_uring::{IoUring, opcode, squeue};
use std::collections::BTreeMap;
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

/// Requests to sockets, and those that have ended.
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

    /// Receives into this part of the buffer. A token has one request at a time.
    ///
    /// # Errors
    /// When the system takes no requests.
    pub fn receive(
        &mut self,
        token: u64,
        socket: impl AsFd,
        mut buffer: Box<[u8]>,
        room: Range<usize>,
    ) -> io::Result<()> {
        let part = &mut buffer[room];
        let request = opcode::Recv::new(Fd(socket.as_fd().as_raw_fd()), part.as_mut_ptr(), part.len() as u32);
        self.push(token, request.build(), buffer)
    }

    /// Sends this part of the buffer, or the first bytes of it.
    ///
    /// # Errors
    /// When the system takes no requests.
    pub fn send(&mut self, token: u64, socket: impl AsFd, buffer: Box<[u8]>, part: Range<usize>) -> io::Result<()> {
        let part = &buffer[part];
        let request = opcode::Send::new(Fd(socket.as_fd().as_raw_fd()), part.as_ptr(), part.len() as u32);
        self.push(token, request.build(), buffer)
    }

    /// Ends when the socket can be read.
    ///
    /// # Errors
    /// When the system takes no requests.
    pub fn poll(&mut self, token: u64, socket: impl AsFd) -> io::Result<()> {
        let request = opcode::PollAdd::new(Fd(socket.as_fd().as_raw_fd()), libc::POLLIN as u32);
        self.push(token, request.build(), Box::default())
    }

    fn push(&mut self, token: u64, request: squeue::Entry, buffer: Box<[u8]>) -> io::Result<()> {
        let request = request.user_data(token);
        self.held.insert(token, buffer);
        // SAFETY: the buffer stays in `held`, where nobody reaches it, until its request has ended; what is there when the ring goes
        // stays for ever.
        while unsafe { self.ring.submission().push(&request) }.is_err() {
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
