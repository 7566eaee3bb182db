//! Ethernet over unix stream sockets in the format of QEMU's `-netdev stream`: each frame follows
//! its length in four bytes, most significant byte first.

use super::{PortError, Sending, free_path};
use crate::frame::{FrameBuf, MAX_FRAME_BYTES};
use crate::ports::egress::Queued;
use std::collections::VecDeque;
use std::fs;
use std::io::{self, IoSlice, Read, Write};
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};

/// Bytes per read.
const READ_BYTES: usize = 128 << 10;
/// Maximum length of a frame, in bytes. A longer length means that both ends have lost
/// synchronisation.
const MAX_LENGTH: usize = 1 << 20;
/// Maximum number of frames per system call.
const BATCH: usize = 32;

/// A stream with one peer at a time.
#[derive(Debug)]
pub struct Stream {
    end: End,
    connection: Option<Connection>,
}

#[derive(Debug)]
enum End {
    /// Peers connect to us; the latest connection replaces an earlier one.
    Listens(UnixListener, PathBuf),
    /// We connect to the peer and retry until it accepts.
    Connects(PathBuf),
}

#[derive(Debug)]
struct Connection {
    stream: UnixStream,
    buffer: Box<[u8]>,
    /// Range of `buffer` that holds unread bytes.
    start: usize,
    end: usize,
    /// Remaining bytes of an overlong frame, which are skipped.
    skip: usize,
    /// Bytes of the first queued frame that have been sent, including its length.
    sent_of_first: usize,
}

impl Stream {
    /// Listens at `path`.
    ///
    /// # Errors
    /// When the path is in use or cannot be written.
    pub fn listen(path: &Path) -> Result<Stream, PortError> {
        free_path(path, |path| UnixStream::connect(path).map(drop))?;
        let listener = UnixListener::bind(path).and_then(|listener| listener.set_nonblocking(true).map(|()| listener));
        let listener = listener.map_err(|error| PortError::socket(path, error))?;
        Ok(Stream { end: End::Listens(listener, path.to_owned()), connection: None })
    }

    /// Connects to `path` and retries until the peer accepts.
    pub fn connect(path: &Path) -> Stream {
        let mut stream = Stream { end: End::Connects(path.to_owned()), connection: None };
        let _ = stream.check_peer();
        stream
    }

    /// Descriptor of the connection, if a peer is connected.
    pub fn socket(&self) -> Option<BorrowedFd<'_>> {
        self.connection.as_ref().map(|connection| connection.stream.as_fd())
    }

    /// Descriptor on which peers connect, if this end listens.
    pub fn listener(&self) -> Option<BorrowedFd<'_>> {
        match &self.end {
            End::Listens(listener, _) => Some(listener.as_fd()),
            End::Connects(_) => None,
        }
    }

    /// Returns whether a peer is connected.
    pub fn has_peer(&self) -> bool {
        self.connection.is_some()
    }

    /// Accepts a waiting peer or tries to connect.
    ///
    /// # Errors
    /// No peer could be accepted. A peer that does not answer is no error.
    pub fn check_peer(&mut self) -> io::Result<()> {
        let stream = match &self.end {
            End::Listens(listener, _) => listener.accept()?.0,
            End::Connects(path) if self.connection.is_none() => match UnixStream::connect(path) {
                Ok(stream) => stream,
                Err(_) => return Ok(()),
            },
            End::Connects(_) => return Ok(()),
        };
        if stream.set_nonblocking(true).is_ok() {
            let buffer = vec![0; READ_BYTES].into_boxed_slice();
            self.connection = Some(Connection { stream, buffer, start: 0, end: 0, skip: 0, sent_of_first: 0 });
        }
        Ok(())
    }

    /// Receives frames. A peer that hangs up is removed without an error.
    ///
    /// # Errors
    /// `WouldBlock` when no complete frame is available.
    pub fn receive(&mut self, buffers: &mut [FrameBuf]) -> io::Result<(usize, u32)> {
        let nothing = Err(io::ErrorKind::WouldBlock.into());
        let Some(connection) = &mut self.connection else { return nothing };
        match connection.receive(buffers) {
            Ok(got) => Ok(got),
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => nothing,
            Err(_) => {
                self.connection = None;
                nothing
            }
        }
    }

    /// Returns whether the peer has a part of the first frame.
    pub fn has_begun(&self) -> bool {
        self.connection.as_ref().is_some_and(|connection| connection.sent_of_first > 0)
    }

    /// Sends frames from the front of the queue.
    pub fn send(&mut self, frames: &mut VecDeque<Queued>) -> Sending {
        let Some(connection) = &mut self.connection else { return Sending::NoPeer };
        let mut parts = [IoSlice::new(&[]); BATCH];
        let mut lengths = [0; BATCH];
        let mut count = 0;
        for ((part, length), queued) in parts.iter_mut().zip(&mut lengths).zip(frames.iter_mut()) {
            let bytes = queued.frame.with_length();
            *length = bytes.len();
            *part = IoSlice::new(if count == 0 { &bytes[connection.sent_of_first..] } else { bytes });
            count += 1;
        }
        match connection.stream.write_vectored(&parts[..count]) {
            Ok(written) => {
                let mut left = written + connection.sent_of_first;
                let whole = lengths[..count].iter().take_while(|length| {
                    let fits = **length <= left;
                    left -= if fits { **length } else { 0 };
                    fits
                });
                let whole = whole.count();
                connection.sent_of_first = left;
                Sending::Sent(whole)
            }
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => Sending::Blocked,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => Sending::Sent(0),
            Err(_) => {
                self.connection = None;
                Sending::NoPeer
            }
        }
    }
}

impl Connection {
    fn receive(&mut self, buffers: &mut [FrameBuf]) -> io::Result<(usize, u32)> {
        let (mut got, mut cut) = (0, 0);
        while got < buffers.len().min(BATCH) {
            let held = self.end - self.start;
            if self.skip > 0 && held > 0 {
                let skipped = self.skip.min(held);
                self.skip -= skipped;
                self.start += skipped;
                continue;
            }
            let length =
                self.buffer[self.start..self.end].first_chunk().map(|bytes| u32::from_be_bytes(*bytes) as usize);
            match length {
                Some(length) if length > MAX_LENGTH => return Err(io::ErrorKind::InvalidData.into()),
                Some(length) if length > MAX_FRAME_BYTES => {
                    // Reported as an overlong frame; its content is discarded.
                    buffers[got].received(0, None);
                    cut |= 1 << got;
                    got += 1;
                    self.start += 4;
                    self.skip = length;
                }
                Some(length) if held - 4 >= length => {
                    let frame = &self.buffer[self.start + 4..self.start + 4 + length];
                    buffers[got].room()[..length].copy_from_slice(frame);
                    buffers[got].received(length, None);
                    got += 1;
                    self.start += 4 + length;
                }
                _ if got > 0 => break,
                _ => self.read()?,
            }
        }
        Ok((got, cut))
    }

    fn read(&mut self) -> io::Result<()> {
        self.buffer.copy_within(self.start..self.end, 0);
        self.end -= self.start;
        self.start = 0;
        match self.stream.read(&mut self.buffer[self.end..])? {
            0 => Err(io::ErrorKind::UnexpectedEof.into()),
            read => {
                self.end += read;
                Ok(())
            }
        }
    }
}

impl Drop for Stream {
    fn drop(&mut self) {
        if let End::Listens(_, path) = &self.end {
            let _ = fs::remove_file(path);
        }
    }
}
