//! Numbers of commands and statuses (RFC 7143, section 4.2.2): [`SessionSeq`] is the target's side of them.

/// `a` comes before `b`, in serial number arithmetic (RFC 1982).
pub const fn before(a: u32, b: u32) -> bool {
    (b.wrapping_sub(a) as i32) > 0
}

/// Where a command number stands.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Order {
    /// It is the one that is expected.
    Next,
    /// Others have to come before it.
    Ahead,
    /// It was there before, or must not be sent yet: such a command is not looked at.
    Outside,
}

/// The numbers of a session with one connection.
///
/// The window closes while tasks are at work and opens as they end, so that a session holds at most as many as its depth;
/// MaxCmdSN never goes back.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct SessionSeq {
    exp_cmd_sn: u32,
    stat_sn: u32,
    depth: u32,
    /// Numbered commands that have not ended.
    active: u32,
}

impl SessionSeq {
    /// After a login whose last response left these numbers next.
    pub fn new(exp_cmd_sn: u32, stat_sn: u32, depth: u16) -> SessionSeq {
        SessionSeq { exp_cmd_sn, stat_sn, depth: u32::from(depth.max(1)), active: 0 }
    }

    /// The next command.
    pub fn exp_cmd_sn(&self) -> u32 {
        self.exp_cmd_sn
    }

    /// The last command that may be sent.
    pub fn max_cmd_sn(&self) -> u32 {
        let open = self.depth - self.active.min(self.depth);
        self.exp_cmd_sn.wrapping_add(open).wrapping_sub(1)
    }

    /// Where a number stands.
    pub fn order(&self, cmd_sn: u32) -> Order {
        if cmd_sn == self.exp_cmd_sn {
            // With a closed window no command may come, not even the next one.
            return if self.active < self.depth { Order::Next } else { Order::Outside };
        }
        let ahead = before(self.exp_cmd_sn, cmd_sn) && !before(self.max_cmd_sn(), cmd_sn);
        if ahead { Order::Ahead } else { Order::Outside }
    }

    /// The next command has come.
    pub fn advance(&mut self) {
        self.exp_cmd_sn = self.exp_cmd_sn.wrapping_add(1);
    }

    /// A numbered task begins.
    pub fn begin(&mut self) {
        self.active += 1;
    }

    /// A numbered task has ended.
    pub fn end(&mut self) {
        self.active = self.active.saturating_sub(1);
    }

    /// The number of the next status.
    pub fn stat_sn(&self) -> u32 {
        self.stat_sn
    }

    /// A number for a status.
    pub fn next_stat_sn(&mut self) -> u32 {
        let stat_sn = self.stat_sn;
        self.stat_sn = stat_sn.wrapping_add(1);
        stat_sn
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_window_closes_with_tasks_and_never_goes_back() {
        let mut seq = SessionSeq::new(u32::MAX, 5, 3);
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
        // A command that is no task takes no room.
        seq.advance();
        assert!(before(max, seq.max_cmd_sn()));
    }

    #[test]
    fn numbers_are_compared_across_zero() {
        let seq = SessionSeq::new(u32::MAX - 1, 0, 8);
        assert_eq!(seq.order(u32::MAX - 1), Order::Next);
        assert_eq!(seq.order(u32::MAX), Order::Ahead);
        assert_eq!(seq.order(3), Order::Ahead);
        assert_eq!(seq.order(6), Order::Outside);
        assert_eq!(seq.order(u32::MAX - 2), Order::Outside);
        assert!(before(u32::MAX, 0) && !before(0, u32::MAX) && !before(7, 7));
    }
}
