//! Bytes pass through a buffer: [`Copying`].

use super::{BUFFER_BYTES, Habits, Served};
use sanloom_wire::iscsi::{BHS_BYTES, Bhs};
use std::collections::VecDeque;
use std::io::{self, Read, Write};
use std::net::TcpStream;

/// One direction.
#[derive(Debug)]
pub(super) struct Copying {
    pub(super) walk: Walk,
    habits: Habits,
    /// Where PDUs end in the buffer, of those that have not left.
    ends: VecDeque<usize>,
    pub(super) pdus: u64,
}

/// A buffer, and how far it was seen.
#[derive(Debug)]
pub(super) struct Walk {
    pub(super) buffer: Box<[u8]>,
    /// Bytes that were read, whose headers were seen, that have left.
    pub(super) filled: usize,
    pub(super) walked: usize,
    pub(super) sent: usize,
    /// Bytes of the PDU under way that are still to come.
    left: usize,
}

impl Walk {
    pub(super) fn new(bytes: usize) -> Walk {
        Walk { buffer: vec![0; bytes].into(), filled: 0, walked: 0, sent: 0, left: 0 }
    }

    /// Looks at every header that is complete; `end` hears where PDUs end.
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

    /// What has left is forgotten.
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
        // Whole PDUs need room for one, and for what is read behind it.
        let bytes = if habits.whole_pdus { 2 * BUFFER_BYTES } else { BUFFER_BYTES };
        Copying { walk: Walk::new(bytes), habits, ends: VecDeque::new(), pdus: 0 }
    }

    /// How far the next write may go.
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
