//! Forwarding through a user-space buffer: [`Copying`].

use super::{BUFFER_BYTES, Habits, Served};
use sanloom_wire::iscsi::{BHS_BYTES, Bhs};
use std::collections::VecDeque;
use std::io::{self, Read, Write};
use std::net::TcpStream;

/// One direction of a connection.
#[derive(Debug)]
pub(super) struct Copying {
    pub(super) walk: Walk,
    habits: Habits,
    /// Buffer offsets at which unsent PDUs end.
    ends: VecDeque<usize>,
    pub(super) pdus: u64,
}

/// A buffer with parse progress.
#[derive(Debug)]
pub(super) struct Walk {
    pub(super) buffer: Box<[u8]>,
    /// Buffer offsets: end of the received bytes, end of the parsed headers, end of the sent bytes.
    pub(super) filled: usize,
    pub(super) walked: usize,
    pub(super) sent: usize,
    /// Remaining bytes of the current PDU.
    left: usize,
}

impl Walk {
    pub(super) fn new(bytes: usize) -> Walk {
        Walk { buffer: vec![0; bytes].into(), filled: 0, walked: 0, sent: 0, left: 0 }
    }

    /// Parses every complete header and passes the end offset of each PDU to `end`.
    pub(super) fn walk(&mut self, mut end: impl FnMut(usize)) {
        loop {
            let step = self.left.min(self.filled - self.walked);
            (self.walked, self.left) = (self.walked + step, self.left - step);
            if step > 0 && self.left == 0 {
                end(self.walked);
            }
            let Some(header) = self.buffer[self.walked..self.filled].first_chunk::<BHS_BYTES>() else { return };
            let bhs = Bhs(*header);
            self.left = BHS_BYTES + bhs.ahs_bytes() + (bhs.data_bytes() + bhs.padding()) as usize;
        }
    }

    /// Moves unsent bytes to the start of the buffer.
    pub(super) fn compact(&mut self) {
        if self.sent == 0 {
            return;
        }
        self.buffer.copy_within(self.sent..self.filled, 0);
        self.filled -= self.sent;
        self.walked -= self.sent;
        self.sent = 0;
    }
}

impl Copying {
    pub(super) fn new(habits: Habits) -> Copying {
        // Forwarding of whole PDUs requires room for one PDU and for the bytes read after it.
        let bytes = if habits.whole_pdus { 2 * BUFFER_BYTES } else { BUFFER_BYTES };
        Copying { walk: Walk::new(bytes), habits, ends: VecDeque::new(), pdus: 0 }
    }

    /// Returns the buffer offset up to which the next write may send.
    fn limit(&self) -> usize {
        let Walk { walked, .. } = self.walk;
        match self.habits {
            Habits { single_pdus: true, whole_pdus, .. } => {
                self.ends.front().copied().unwrap_or(if whole_pdus { self.walk.sent } else { walked })
            }
            Habits { whole_pdus: true, .. } => self.ends.back().copied().unwrap_or(self.walk.sent),
            _ => walked,
        }
    }

    pub(super) fn is_blocked(&self) -> bool {
        self.walk.sent < self.limit()
    }

    pub(super) fn serve(&mut self, from: &mut TcpStream, to: &mut TcpStream) -> io::Result<Served> {
        let mut reads = 0;
        loop {
            while self.is_blocked() {
                match to.write(&self.walk.buffer[self.walk.sent..self.limit()]) {
                    Ok(sent) => self.walk.sent += sent,
                    Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Ok(Served::Waits),
                    Err(error) => return Err(error),
                }
                while self.ends.front().is_some_and(|end| *end <= self.walk.sent) {
                    self.ends.pop_front();
                }
            }
            if self.habits.single_reads && reads > 0 {
                return Ok(Served::More);
            }
            let gone = self.walk.sent;
            self.walk.compact();
            self.ends.iter_mut().for_each(|end| *end -= gone);
            let room = self.walk.filled + BUFFER_BYTES.min(self.walk.buffer.len() - self.walk.filled);
            match from.read(&mut self.walk.buffer[self.walk.filled..room]) {
                Ok(0) => return Ok(Served::Ended),
                Ok(got) => self.walk.filled += got,
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Ok(Served::Waits),
                Err(error) => return Err(error),
            }
            reads += 1;
            let (pdus, ends) = (&mut self.pdus, &mut self.ends);
            let keeps = self.habits.whole_pdus || self.habits.single_pdus;
            self.walk.walk(|end| {
                *pdus += 1;
                ends.extend(keeps.then_some(end));
            });
        }
    }
}
