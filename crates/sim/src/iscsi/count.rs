//! Counters of sessions.

use super::Iscsi;

/// Counters of a session since the end of the warm-up.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct SessionCount {
    /// Connections that were opened.
    pub connections: u64,
    /// PDUs that the host has sent.
    pub pdus_sent: u64,
    /// PDUs that the host has received.
    pub pdus_received: u64,
    /// Commands that the host has submitted.
    pub commands: u64,
    /// Commands that waited for the queue depth of the host or for the command window.
    pub command_waits: u64,
    /// R2Ts that the host has received.
    pub r2ts: u64,
    /// Segments that either side has sent again.
    pub retransmissions: u64,
    /// Expired retransmission timers of either side.
    pub timeouts: u64,
    /// Fast recoveries of either side.
    pub recoveries: u64,
}

impl SessionCount {
    fn pairs<'a>(&'a mut self, other: &'a SessionCount) -> [(&'a mut u64, u64); 9] {
        [
            (&mut self.connections, other.connections),
            (&mut self.pdus_sent, other.pdus_sent),
            (&mut self.pdus_received, other.pdus_received),
            (&mut self.commands, other.commands),
            (&mut self.command_waits, other.command_waits),
            (&mut self.r2ts, other.r2ts),
            (&mut self.retransmissions, other.retransmissions),
            (&mut self.timeouts, other.timeouts),
            (&mut self.recoveries, other.recoveries),
        ]
    }

    fn add(&mut self, other: &SessionCount) {
        self.pairs(other).into_iter().for_each(|(own, other)| *own += other);
    }
}

/// Returns the counters of TCP of both ends of the connection of a session.
fn of_tcp(iscsi: &Iscsi, end: u32) -> SessionCount {
    let mut count = SessionCount::default();
    for end in [end, end ^ 1] {
        let tcp = iscsi.stacks.connection(end).counters();
        count.add(&SessionCount {
            retransmissions: tcp.retransmissions,
            timeouts: tcp.timeouts.into(),
            recoveries: tcp.recoveries.into(),
            ..SessionCount::default()
        });
    }
    count
}

/// Adds the counters of a connection that another one will follow.
pub(super) fn keep(iscsi: &mut Iscsi, session: u32, end: u32) {
    let tcp = of_tcp(iscsi, end);
    iscsi.sessions[session as usize].count.add(&tcp);
}

/// Returns the counters of a session since the first login.
pub(super) fn total(iscsi: &Iscsi, session: u32) -> SessionCount {
    let state = &iscsi.sessions[session as usize];
    let mut count = state.count;
    if state.stage != super::connection::Stage::Idle {
        count.add(&of_tcp(iscsi, state.end));
    }
    count
}

pub(super) fn of(iscsi: &Iscsi, session: u32) -> SessionCount {
    let mut count = total(iscsi, session);
    let before = iscsi.sessions[session as usize].before;
    count.pairs(&before).into_iter().for_each(|(own, before)| *own = own.saturating_sub(before));
    count
}

pub(super) fn restart(iscsi: &mut Iscsi) {
    for session in 0..iscsi.sessions.len() as u32 {
        iscsi.sessions[session as usize].before = total(iscsi, session);
    }
}
