//! The order of the two paths on one unit: [`Gate`].

use crate::iscsi::target::ConnectionId;
use crate::scsi::{Io, IoOp, IoTag};
use std::collections::VecDeque;

/// Lets either path at the medium of a unit, never both: so commands do not pass through each other, whoever sent them.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Gate {
    forwarded: u32,
    conventional: u32,
    waiting: VecDeque<(ConnectionId, Io)>,
}

impl Gate {
    /// The forwarding path may take a command.
    pub fn is_open(&self) -> bool {
        self.conventional == 0 && self.waiting.is_empty()
    }

    pub(super) fn forward(&mut self) {
        self.forwarded += 1;
    }

    pub(super) fn forwarded_over(&mut self) {
        self.forwarded = self.forwarded.saturating_sub(1);
    }

    /// Block I/O of the conventional path wants to begin. False: it waits, and comes out of [`admit`](Self::admit). If true,
    /// [`leave`](Self::leave) is to be called when it has ended.
    pub fn enter(&mut self, connection: ConnectionId, io: Io) -> bool {
        if self.forwarded > 0 || !self.waiting.is_empty() {
            self.waiting.push_back((connection, io));
            return false;
        }
        self.conventional += 1;
        true
    }

    /// Block I/O of the conventional path has ended.
    pub fn leave(&mut self) {
        self.conventional = self.conventional.saturating_sub(1);
    }

    /// The next block I/O that need not wait any longer: it has entered.
    pub fn admit(&mut self) -> Option<(ConnectionId, Io)> {
        let next = if self.forwarded == 0 { self.waiting.pop_front() } else { None };
        self.conventional += u32::from(next.is_some());
        next
    }

    /// Nobody wants a block I/O that waits; of all tasks of a connection without a tag. False if it does not wait (any more).
    pub fn forget(&mut self, connection: ConnectionId, tag: Option<IoTag>) -> bool {
        let before = self.waiting.len();
        self.waiting.retain(|(of, io)| *of != connection || tag.is_some_and(|tag| tag != io.tag));
        self.waiting.len() < before
    }

    /// Whether block I/O has to pass at all. What leaves data as they are and tells nobody of them does not: a flush is about
    /// writes that have ended.
    pub fn concerns(op: IoOp) -> bool {
        !matches!(op, IoOp::Flush | IoOp::Mapping)
    }
}
