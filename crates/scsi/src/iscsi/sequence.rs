//! Command and status numbers on the target's side (RFC 7143, section 4.2.2): [`SessionSeq`],
//! [`Statuses`].

use sanloom_wire::iscsi::code::flag;
use sanloom_wire::iscsi::{Bhs, NO_TAG, Opcode, at};

/// Returns whether `a` precedes `b` in serial number arithmetic (RFC 1982).
pub const fn before(a: u32, b: u32) -> bool {
    b.wrapping_sub(a).cast_signed() > 0
}

/// Position of a command number relative to the window.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Order {
    /// The number is ExpCmdSN.
    Next,
    /// The number is in the window, but lower numbers are missing.
    Ahead,
    /// The number is a duplicate or beyond MaxCmdSN. The command is ignored.
    Outside,
}

/// Command numbers of a session with one connection.
///
/// The window shrinks while tasks are active and widens as they end. So a session never holds more
/// tasks than its depth. MaxCmdSN never decreases.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct SessionSeq {
    exp_cmd_sn: u32,
    depth: u32,
    /// Numbered tasks that have not ended.
    active: u32,
}

impl SessionSeq {
    /// Starts with the ExpCmdSN of the last login response.
    pub fn new(exp_cmd_sn: u32, depth: u16) -> SessionSeq {
        SessionSeq { exp_cmd_sn, depth: u32::from(depth.max(1)), active: 0 }
    }

    /// ExpCmdSN: number of the next command.
    pub fn exp_cmd_sn(&self) -> u32 {
        self.exp_cmd_sn
    }

    /// MaxCmdSN: the highest command number that the initiator may send.
    pub fn max_cmd_sn(&self) -> u32 {
        let open = self.depth - self.active.min(self.depth);
        self.exp_cmd_sn.wrapping_add(open).wrapping_sub(1)
    }

    /// Classifies a command number.
    pub fn order(&self, cmd_sn: u32) -> Order {
        if cmd_sn == self.exp_cmd_sn {
            // While the window is closed no command may arrive, not even the expected one.
            return if self.active < self.depth { Order::Next } else { Order::Outside };
        }
        let ahead = before(self.exp_cmd_sn, cmd_sn) && !before(self.max_cmd_sn(), cmd_sn);
        if ahead { Order::Ahead } else { Order::Outside }
    }

    /// Advances ExpCmdSN after the expected command has arrived.
    pub fn advance(&mut self) {
        self.exp_cmd_sn = self.exp_cmd_sn.wrapping_add(1);
    }

    /// Counts a numbered task that begins.
    pub fn begin(&mut self) {
        debug_assert!(self.active < self.depth, "a task begins although the window is closed");
        self.active += 1;
    }

    /// Counts a numbered task that has ended.
    pub fn end(&mut self) {
        debug_assert!(self.active > 0, "more numbered tasks end than began");
        self.active = self.active.saturating_sub(1);
    }
}

/// StatSN of a PDU that has not left yet; [`Statuses`] assigns the number.
pub const UNNUMBERED: u32 = 0;

/// Status numbers of one connection. A number is assigned when its PDU leaves, so none is missing
/// or used twice, regardless of which component sends.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Statuses {
    next: u32,
}

impl Statuses {
    /// Starts with the StatSN that follows the last login response.
    pub fn new(next: u32) -> Statuses {
        Statuses { next }
    }

    /// Assigns a StatSN to a PDU of the full feature phase. Call it in the order in which PDUs
    /// leave.
    #[inline]
    pub fn number(&mut self, header: &mut Bhs) {
        let stat_sn = match header.opcode() {
            Opcode::DATA_IN if header.flags() & flag::STATUS == 0 => return,
            // An R2T is not a status, so it carries the next number without consuming it.
            Opcode::R2T => self.next,
            Opcode::NOP_IN if header.initiator_tag() == NO_TAG => self.next,
            _ => {
                let stat_sn = self.next;
                self.next = stat_sn.wrapping_add(1);
                stat_sn
            }
        };
        header.set_word(at::CMD_SN, stat_sn);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use sanloom_wire::iscsi::{DataIn, Head, Header, NopIn, R2t};

    #[test]
    fn the_window_closes_with_tasks_and_never_goes_back() {
        let mut seq = SessionSeq::new(u32::MAX, 3);
        let mut max = seq.max_cmd_sn();
        assert_eq!(max, 1);
        for _ in 0..3 {
            assert_eq!(seq.order(seq.exp_cmd_sn()), Order::Next);
            seq.advance();
            seq.begin();
            assert_eq!(seq.max_cmd_sn(), max);
        }
        assert_eq!((seq.exp_cmd_sn(), seq.max_cmd_sn()), (2, 1));
        assert_eq!(seq.order(2), Order::Outside);
        seq.end();
        assert!(before(max, seq.max_cmd_sn()));
        max = seq.max_cmd_sn();
        assert_eq!(seq.order(2), Order::Next);
        // A command that creates no task takes no window slot.
        seq.advance();
        assert!(before(max, seq.max_cmd_sn()));
    }

    #[test]
    fn numbers_are_compared_across_zero() {
        let seq = SessionSeq::new(u32::MAX - 1, 8);
        assert_eq!(seq.order(u32::MAX - 1), Order::Next);
        assert_eq!(seq.order(u32::MAX), Order::Ahead);
        assert_eq!(seq.order(3), Order::Ahead);
        assert_eq!(seq.order(6), Order::Outside);
        assert_eq!(seq.order(u32::MAX - 2), Order::Outside);
        assert!(before(u32::MAX, 0) && !before(0, u32::MAX) && !before(7, 7));
    }

    #[test]
    fn only_a_status_takes_a_number() {
        let (exp_cmd_sn, max_cmd_sn, stat_sn) = (1, 2, UNNUMBERED);
        let r2t = R2t {
            lun: [0; 8],
            initiator_tag: 1,
            target_tag: 1,
            stat_sn,
            exp_cmd_sn,
            max_cmd_sn,
            r2t_sn: 0,
            offset: 0,
            desired_bytes: 1,
        };
        let nop = |initiator_tag| NopIn { lun: [0; 8], initiator_tag, target_tag: 1, stat_sn, exp_cmd_sn, max_cmd_sn };
        let data = |flags| DataIn {
            flags,
            status: 0,
            lun: [0; 8],
            initiator_tag: 1,
            target_tag: NO_TAG,
            stat_sn,
            exp_cmd_sn,
            max_cmd_sn,
            data_sn: 0,
            offset: 0,
            residual: 0,
        };
        let mut statuses = Statuses::new(u32::MAX);
        let mut number = |header: Header| {
            let mut bhs = Bhs(Head::new(header).to_bytes());
            statuses.number(&mut bhs);
            bhs.word(at::CMD_SN)
        };
        assert_eq!(number(r2t.into()), u32::MAX);
        assert_eq!(number(data(flag::FINAL).into()), 0);
        assert_eq!(number(nop(NO_TAG).into()), u32::MAX);
        assert_eq!(number(data(flag::FINAL | flag::STATUS).into()), u32::MAX);
        assert_eq!(number(nop(7).into()), 0);
        assert_eq!(number(r2t.into()), 1);
    }
}
