//! Outgoing side of a session: [`Outbound`].

use super::event::{Counters, Output};
use crate::iscsi::framer::len32;
use crate::iscsi::sequence::UNNUMBERED;
use sanloom_wire::iscsi::{Head, Header, NO_TAG, Reject, RejectReason};
use std::collections::VecDeque;

/// Output queue of a session, and the target transfer tags that it assigns. Every part of a session
/// counts here, because every part has access to its output.
#[derive(Debug, Default)]
pub(super) struct Outbound {
    queue: VecDeque<Output>,
    last_transfer: u16,
    pub(super) counters: Counters,
}

impl Outbound {
    #[inline]
    pub(super) fn push(&mut self, output: Output) {
        self.queue.push_back(output);
    }

    #[inline]
    pub(super) fn pop(&mut self) -> Option<Output> {
        self.queue.pop_front()
    }

    #[inline]
    pub(super) fn is_empty(&self) -> bool {
        self.queue.is_empty()
    }

    /// Queues a PDU with this data segment.
    pub(super) fn send(&mut self, header: impl Into<Header>, data: Box<[u8]>) {
        let head = Head::with_data(header, len32(data.len()));
        self.queue.push_back(Output::Send { head, data });
    }

    /// Number of the next transfer. It has 16 bits, so as a tag it is never [`NO_TAG`].
    #[inline]
    pub(super) fn next_transfer(&mut self) -> u16 {
        self.last_transfer = self.last_transfer.wrapping_add(1);
        self.last_transfer
    }

    /// Rejects a PDU and returns its header to the initiator. `window` is ExpCmdSN and MaxCmdSN.
    pub(super) fn reject(&mut self, head: &Head, reason: RejectReason, window: (u32, u32)) {
        self.counters.rejects += 1;
        let (exp_cmd_sn, max_cmd_sn) = window;
        let answer = Reject { reason, initiator_tag: NO_TAG, stat_sn: UNNUMBERED, exp_cmd_sn, max_cmd_sn, data_sn: 0 };
        self.send(answer, head.to_bytes().into());
    }
}
