//! Command numbers of a session, and PDUs that arrived before lower command numbers:
//! [`CommandWindow`] (RFC 7143, section 4.2.2.1).

use crate::iscsi::sequence::{Order, SessionSeq, before};
use crate::ordered::OrderedMap;
use sanloom_wire::iscsi::Head;

/// PDU held until all lower command numbers have arrived.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) enum Held {
    /// Slot of a SCSI command.
    Task(u16),
    /// Another PDU, with its data segment.
    Pdu(Head, Box<[u8]>),
    /// Number of a command that was aborted before it arrived or began.
    Hole,
}

/// Command window of a session.
#[derive(Debug)]
pub(super) struct CommandWindow {
    seq: SessionSeq,
    /// By CmdSN.
    held: OrderedMap<u32, Held>,
}

impl CommandWindow {
    pub(super) fn new(exp_cmd_sn: u32, depth: u16) -> CommandWindow {
        CommandWindow { seq: SessionSeq::new(exp_cmd_sn, depth), held: OrderedMap::new() }
    }

    /// ExpCmdSN and MaxCmdSN of the next PDU to the initiator.
    #[inline]
    pub(super) fn numbers(&self) -> (u32, u32) {
        (self.seq.exp_cmd_sn(), self.seq.max_cmd_sn())
    }

    /// Classifies the number of a PDU.
    #[inline]
    pub(super) fn order(&self, cmd_sn: u32) -> Order {
        self.seq.order(cmd_sn)
    }

    /// Returns whether a PDU with this number is held, so that another one is a duplicate.
    pub(super) fn is_held(&self, cmd_sn: u32) -> bool {
        self.held.contains_key(&cmd_sn)
    }

    /// Returns whether PDUs are held because lower command numbers are missing.
    #[inline]
    pub(super) fn has_held(&self) -> bool {
        !self.held.is_empty()
    }

    /// Advances ExpCmdSN after the expected PDU has arrived.
    #[inline]
    pub(super) fn advance(&mut self) {
        self.seq.advance();
    }

    /// Holds a PDU until all lower command numbers have arrived.
    pub(super) fn hold(&mut self, cmd_sn: u32, pdu: Held) {
        let (exp_cmd_sn, _) = self.numbers();
        debug_assert!(before(exp_cmd_sn, cmd_sn), "CmdSN {cmd_sn} is held although {exp_cmd_sn} is expected");
        let duplicate = self.held.insert(cmd_sn, pdu);
        debug_assert_eq!(duplicate, None, "CmdSN {cmd_sn} is held twice");
    }

    /// Skips the number of a task that ends before it has begun.
    pub(super) fn skip(&mut self, cmd_sn: u32) {
        let held = self.held.insert(cmd_sn, Held::Hole);
        debug_assert!(matches!(held, None | Some(Held::Task(_))), "CmdSN {cmd_sn} belongs to another PDU");
    }

    /// Skips the number of a command that has not arrived and that precedes `by`. Returns false if
    /// that command has arrived.
    pub(super) fn skip_missing(&mut self, cmd_sn: u32, by: u32) -> bool {
        let missing = self.order(cmd_sn) != Order::Outside && !self.is_held(cmd_sn) && before(cmd_sn, by);
        if missing {
            self.skip(cmd_sn);
        }
        missing
    }

    /// Removes the held PDU whose number is expected, and advances ExpCmdSN.
    pub(super) fn next_held(&mut self) -> Option<Held> {
        let held = self.held.remove(&self.seq.exp_cmd_sn())?;
        self.seq.advance();
        Some(held)
    }

    /// Takes a window slot for a task that begins.
    #[inline]
    pub(super) fn begin_task(&mut self) {
        self.seq.begin();
    }

    /// Frees the window slot of a task.
    #[inline]
    pub(super) fn end_task(&mut self) {
        self.seq.end();
    }
}
