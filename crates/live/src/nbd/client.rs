//! One program at an NBD socket: [`Client`].

use super::Work;
use crate::poll::Interest;
use sanloom_scsi::nbd::{CloseReason, Connection, Done, Export, Failure, Head, Input, IoOp, Limits, Output, Wanted};
use sanloom_scsi::time::Instant;
use std::collections::VecDeque;
use std::io::{self, IoSlice, Read, Write};
use std::os::unix::net::UnixStream;
use std::sync::Arc;

/// Size of the input buffer for heads, so that one system call reads many.
const INPUT_BYTES: usize = 64 << 10;
/// Unsent output of a client above which its requests are not read.
const MAX_OUTPUT_BYTES: usize = 64 << 20;
/// Reads from one client before the next client is served.
const MAX_READS: usize = 16;
/// Maximum number of pieces in one write.
const PIECES: usize = 64;
/// Buffers kept for later requests, and the largest of them in bytes.
const KEPT_BUFFERS: usize = 32;
const KEPT_BUFFER_BYTES: usize = 1 << 20;

/// Bytes queued for a client.
#[derive(Debug)]
enum Piece {
    Head(Head),
    Message(Box<[u8]>),
    /// A buffer, and how many of its bytes are sent.
    Data(Vec<u8>, usize),
}

impl Piece {
    fn bytes(&self) -> &[u8] {
        match self {
            Piece::Head(head) => head.bytes(),
            Piece::Message(bytes) => bytes,
            Piece::Data(buffer, len) => buffer.get(..*len).unwrap_or(buffer),
        }
    }
}

/// A connection.
#[derive(Debug)]
pub(super) struct Client {
    id: u64,
    pub(super) stream: UnixStream,
    pub(super) machine: Connection,
    /// Bytes that were read and not yet consumed.
    input: Box<[u8; INPUT_BYTES]>,
    input_range: std::ops::Range<usize>,
    /// A head or option that is longer than the input buffer.
    long: Vec<u8>,
    /// Bytes received of the current data, or of the bytes that are skipped.
    got: usize,
    /// Received data of writes, by tag.
    buffers: Vec<Vec<u8>>,
    spare: Vec<Vec<u8>>,
    output: VecDeque<Piece>,
    output_bytes: usize,
    /// Bytes of the first piece that are sent.
    sent: usize,
    /// The last write would have blocked.
    pub(super) blocked: bool,
    disk: u64,
    pub(super) closing: Option<CloseReason>,
    broken: bool,
}

impl Client {
    pub(super) fn new(now: Instant, id: u64, stream: UnixStream, exports: Arc<[Export]>, limits: Limits) -> Client {
        Client {
            id,
            stream,
            machine: Connection::new(now, exports, limits),
            input: Box::new([0; INPUT_BYTES]),
            input_range: 0..0,
            long: Vec::new(),
            got: 0,
            buffers: Vec::new(),
            spare: Vec::new(),
            output: VecDeque::new(),
            output_bytes: 0,
            sent: 0,
            blocked: false,
            disk: 0,
            closing: None,
            broken: false,
        }
    }

    /// Returns the socket events to wait for.
    pub(super) fn interest(&self) -> Interest {
        let read = self.wants_input() && !self.is_full();
        Interest { read, write: self.blocked && !self.output.is_empty() }
    }

    fn wants_input(&self) -> bool {
        !self.broken && self.closing.is_none() && self.machine.wanted() != Wanted::Nothing
    }

    /// Returns whether the connection can be removed.
    pub(super) fn is_over(&self) -> bool {
        self.closing.is_some() && (self.broken || self.output.is_empty())
    }

    pub(super) fn handle_input(&mut self, now: Instant, input: Input, work: &mut VecDeque<Work>) {
        self.machine.handle(now, input);
        self.drain(work);
        self.flush(now, work);
    }

    pub(super) fn done(
        &mut self,
        now: Instant,
        tag: u16,
        result: Result<Done, Failure>,
        data: Vec<u8>,
        work: &mut VecDeque<Work>,
    ) {
        *self.buffer(tag) = data;
        self.handle_input(now, Input::IoDone { tag, result }, work);
        // A finished request may make room for requests that were received already.
        self.serve(now, work);
    }

    /// Reads requests, carries them out and flushes replies until the socket blocks.
    pub(super) fn serve(&mut self, now: Instant, work: &mut VecDeque<Work>) {
        loop {
            self.take(now, work);
            let full = self.is_full();
            self.flush(now, work);
            // The input that is buffered already can be processed once there is room.
            if !full || self.is_full() {
                return;
            }
        }
    }

    fn is_full(&self) -> bool {
        self.output_bytes >= MAX_OUTPUT_BYTES
    }

    /// Reads and carries out requests while the client reads its replies.
    fn take(&mut self, now: Instant, work: &mut VecDeque<Work>) {
        self.drain(work);
        let mut reads = 0;
        while self.wants_input() && !self.is_full() {
            if self.take_input(now) {
                self.drain(work);
                continue;
            }
            if reads == MAX_READS {
                break;
            }
            reads += 1;
            match self.read() {
                Ok(0) => self.machine.handle(now, Input::Ended),
                Ok(_) => continue,
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => break,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
                Err(_) => self.break_off(now),
            }
            self.drain(work);
        }
    }

    /// Consumes the buffered input that is complete. Returns whether there was any.
    fn take_input(&mut self, now: Instant) -> bool {
        match self.machine.wanted() {
            Wanted::Nothing => false,
            Wanted::Bytes(needed) => {
                let have = self.input_range.len();
                let input = if needed > INPUT_BYTES {
                    let take = have.min(needed - self.long.len());
                    let from = self.input_range.start;
                    self.long.extend_from_slice(&self.input[from..from + take]);
                    self.input_range.start += take;
                    if self.long.len() < needed {
                        return false;
                    }
                    self.machine.parse(&std::mem::take(&mut self.long))
                } else {
                    if have < needed {
                        return false;
                    }
                    let from = self.input_range.start;
                    self.input_range.start += needed;
                    self.machine.parse(&self.input[from..from + needed])
                };
                self.machine.handle(now, input);
                true
            }
            Wanted::Skip(needed) => {
                let take = self.input_range.len().min(needed as usize - self.got);
                self.input_range.start += take;
                self.got += take;
                self.complete(now, needed, Input::Skipped)
            }
            Wanted::Data { tag, len_bytes } => {
                let take = self.input_range.len().min(len_bytes as usize - self.got);
                let (from, got) = (self.input_range.start, self.got);
                self.prepare(tag, len_bytes);
                let Client { buffers, input, .. } = self;
                buffers[usize::from(tag)][got..got + take].copy_from_slice(&input[from..from + take]);
                self.input_range.start += take;
                self.got += take;
                self.complete(now, len_bytes, Input::Data { tag })
            }
        }
    }

    fn complete(&mut self, now: Instant, needed: u32, input: Input) -> bool {
        if self.got < needed as usize {
            return false;
        }
        self.got = 0;
        self.machine.handle(now, input);
        true
    }

    /// Reads once: data straight into their buffer if no other input precedes them, everything else
    /// into the input buffer.
    fn read(&mut self) -> io::Result<usize> {
        if let Wanted::Data { tag, len_bytes } = self.machine.wanted()
            && len_bytes as usize - self.got >= INPUT_BYTES / 2
        {
            self.prepare(tag, len_bytes);
            let got = self.stream.read(&mut self.buffers[usize::from(tag)][self.got..])?;
            self.got += got;
            return Ok(got);
        }
        let left = self.input_range.len();
        self.input.copy_within(self.input_range.clone(), 0);
        self.input_range = 0..left;
        let got = self.stream.read(&mut self.input[left..])?;
        self.input_range.end += got;
        Ok(got)
    }

    /// Resizes the buffer of a write to its length.
    fn prepare(&mut self, tag: u16, len_bytes: u32) {
        if self.got > 0 && self.buffer(tag).len() == len_bytes as usize {
            return;
        }
        let mut buffer = self.spare.pop().unwrap_or_default();
        buffer.resize(len_bytes as usize, 0);
        *self.buffer(tag) = buffer;
    }

    fn buffer(&mut self, tag: u16) -> &mut Vec<u8> {
        let number = usize::from(tag);
        if self.buffers.len() <= number {
            self.buffers.resize_with(number + 1, Vec::new);
        }
        &mut self.buffers[number]
    }

    /// Applies the outputs of the protocol machine.
    fn drain(&mut self, work: &mut VecDeque<Work>) {
        while let Some(output) = self.machine.poll_output() {
            match output {
                Output::Send(bytes) => self.push(Piece::Message(bytes)),
                Output::Opened { .. } => self.disk = self.machine.export().map_or(0, |export| export.disk),
                Output::Io(io) => {
                    let data = match io.op {
                        IoOp::Write => std::mem::take(self.buffer(io.tag)),
                        IoOp::Read => self.spare.pop().unwrap_or_default(),
                        _ => Vec::new(),
                    };
                    work.push_back(Work { client: self.id, disk: self.disk, io, data });
                }
                Output::Reply { tag, head, data_bytes } => {
                    let buffer = std::mem::take(self.buffer(tag));
                    self.push(Piece::Head(head));
                    if data_bytes > 0 {
                        self.push(Piece::Data(buffer, data_bytes as usize));
                    } else {
                        self.keep(buffer);
                    }
                }
                Output::Close(reason) => self.closing = Some(reason),
            }
        }
    }

    fn push(&mut self, piece: Piece) {
        self.output_bytes += piece.bytes().len();
        self.output.push_back(piece);
    }

    fn keep(&mut self, mut buffer: Vec<u8>) {
        if buffer.capacity() > 0 && buffer.capacity() <= KEPT_BUFFER_BYTES && self.spare.len() < KEPT_BUFFERS {
            buffer.clear();
            self.spare.push(buffer);
        }
    }

    fn flush(&mut self, now: Instant, work: &mut VecDeque<Work>) {
        while !self.output.is_empty() && !self.blocked && !self.broken {
            let mut slices = [IoSlice::new(&[]); PIECES];
            let mut count = 0;
            for (slice, piece) in slices.iter_mut().zip(&self.output) {
                let skip = if count == 0 { self.sent } else { 0 };
                *slice = IoSlice::new(&piece.bytes()[skip..]);
                count += 1;
            }
            match self.stream.write_vectored(&slices[..count]) {
                Ok(sent) => self.left(sent),
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => self.blocked = true,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(_) => {
                    self.break_off(now);
                    self.drain(work);
                }
            }
        }
    }

    /// Removes `sent` bytes from the queue.
    fn left(&mut self, sent: usize) {
        self.output_bytes -= sent;
        self.sent += sent;
        while let Some(first) = self.output.front() {
            let len = first.bytes().len();
            if self.sent < len {
                return;
            }
            self.sent -= len;
            if let Some(Piece::Data(buffer, _)) = self.output.pop_front() {
                self.keep(buffer);
            }
        }
    }

    /// Closes the connection after a socket error.
    fn break_off(&mut self, now: Instant) {
        self.broken = true;
        self.output.clear();
        self.output_bytes = 0;
        self.machine.handle(now, Input::Ended);
    }
}
