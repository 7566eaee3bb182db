//! Forwarding of data through a pipe, without a copy in user space: [`Splicing`].

use super::Served;
use rustix::io::Errno;
use rustix::net::{SendFlags, send};
use rustix::pipe::{PipeFlags, SpliceFlags, fcntl_setpipe_size, pipe_with, splice};
use sanloom_wire::iscsi::{BHS_BYTES, Bhs};
use std::io::{self, Read};
use std::net::TcpStream;
use std::os::fd::OwnedFd;

/// Pipe capacity in bytes; the limit for an unprivileged process.
const PIPE_BYTES: usize = 1 << 20;

/// One direction of a connection.
#[derive(Debug)]
pub(super) struct Splicing {
    out: OwnedFd,
    into: OwnedFd,
    header: [u8; BHS_BYTES],
    /// Header bytes received, and header bytes sent.
    read: usize,
    sent: usize,
    /// Data bytes still to be received, and data bytes in the pipe.
    left: usize,
    held: usize,
    blocked: bool,
    pub(super) pdus: u64,
}

/// Maps "would block" to `None`.
fn now(outcome: rustix::io::Result<usize>) -> io::Result<Option<usize>> {
    match outcome {
        Ok(moved) => Ok(Some(moved)),
        Err(Errno::AGAIN | Errno::INTR) => Ok(None),
        Err(error) => Err(error.into()),
    }
}

impl Splicing {
    pub(super) fn new() -> io::Result<Splicing> {
        let (out, into) = pipe_with(PipeFlags::CLOEXEC | PipeFlags::NONBLOCK)?;
        fcntl_setpipe_size(&into, PIPE_BYTES)?;
        let header = [0; BHS_BYTES];
        Ok(Splicing { out, into, header, read: 0, sent: 0, left: 0, held: 0, blocked: false, pdus: 0 })
    }

    pub(super) fn is_blocked(&self) -> bool {
        self.blocked
    }

    pub(super) fn serve(&mut self, from: &mut TcpStream, to: &mut TcpStream) -> io::Result<Served> {
        let flags = SpliceFlags::NONBLOCK | SpliceFlags::MOVE;
        loop {
            self.blocked = false;
            if self.read < BHS_BYTES {
                match from.read(&mut self.header[self.read..]) {
                    Ok(0) => return Ok(Served::Ended),
                    Ok(got) => self.read += got,
                    Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Ok(Served::Waits),
                    Err(error) => return Err(error),
                }
                if self.read < BHS_BYTES {
                    continue;
                }
                let bhs = Bhs(self.header);
                self.left = bhs.ahs_bytes() + (bhs.data_bytes() + bhs.padding()) as usize;
            }
            if self.sent < BHS_BYTES {
                let more = if self.left > 0 { SendFlags::MORE } else { SendFlags::empty() };
                let Some(sent) = now(send(&*to, &self.header[self.sent..], more))? else {
                    self.blocked = true;
                    return Ok(Served::Waits);
                };
                self.sent += sent;
                continue;
            }
            let mut dry = false;
            if self.left > 0 {
                match now(splice(&*from, None, &self.into, None, self.left.min(PIPE_BYTES), flags))? {
                    Some(0) => return Ok(Served::Ended),
                    Some(got) => (self.left, self.held) = (self.left - got, self.held + got),
                    None => dry = true,
                }
            }
            if self.held > 0 {
                let more = if self.left > 0 { SpliceFlags::MORE } else { SpliceFlags::empty() };
                let Some(sent) = now(splice(&self.out, None, &*to, None, self.held, flags | more))? else {
                    self.blocked = true;
                    return Ok(Served::Waits);
                };
                self.held -= sent;
            } else if dry {
                return Ok(Served::Waits);
            }
            if self.left == 0 && self.held == 0 {
                (self.read, self.sent) = (0, 0);
                self.pdus += 1;
            }
        }
    }
}
