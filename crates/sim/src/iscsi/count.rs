//! Counters of sessions.

use super::Iscsi;
use crate::tcp::Repairs;

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
    pub repairs: Repairs,
}

impl SessionCount {
    fn pairs<'a>(&'a mut self, other: &'a SessionCount) -> [(&'a mut u64, u64); 6] {
        [
            (&mut self.connections, other.connections),
            (&mut self.pdus_sent, other.pdus_sent),
            (&mut self.pdus_received, other.pdus_received),
            (&mut self.commands, other.commands),
            (&mut self.command_waits, other.command_waits),
            (&mut self.r2ts, other.r2ts),
        ]
    }
}

/// Repairs of the connection of a session.
fn of_tcp(iscsi: &Iscsi, end: u32) -> Repairs {
    Repairs::of(&iscsi.stacks, [end, end ^ 1])
}

/// Adds the counters of a connection that another one will follow.
pub(super) fn keep(iscsi: &mut Iscsi, session: u32, end: u32) {
    let tcp = of_tcp(iscsi, end);
    let count = &mut iscsi.sessions[session as usize].count;
    count.repairs = count.repairs.and(&tcp);
}

/// Returns the counters of a session since the first login.
pub(super) fn total(iscsi: &Iscsi, session: u32) -> SessionCount {
    let state = &iscsi.sessions[session as usize];
    let mut count = state.count;
    if state.stage != super::connection::Stage::Idle {
        count.repairs = count.repairs.and(&of_tcp(iscsi, state.end));
    }
    count
}

pub(super) fn of(iscsi: &Iscsi, session: u32) -> SessionCount {
    let mut count = total(iscsi, session);
    let before = iscsi.sessions[session as usize].before;
    count.pairs(&before).into_iter().for_each(|(own, before)| *own = own.saturating_sub(before));
    count.repairs = count.repairs.since(&before.repairs);
    count
}

pub(super) fn restart(iscsi: &mut Iscsi) {
    for session in 0..iscsi.sessions.len() as u32 {
        iscsi.sessions[session as usize].before = total(iscsi, session);
    }
}
