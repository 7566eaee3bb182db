//! Sessions as a table shows them.

use super::connection::{Machine, Stage};
use super::{Iscsi, SessionPlan, count};
use sanloom_scsi::iscsi::target;

/// A session at the current time.
#[derive(Clone, Copy)]
pub struct SessionSeen<'a> {
    /// Its configuration.
    pub plan: &'a SessionPlan,
    /// The target's side; `None` without a login.
    pub target: Option<&'a target::Session>,
    /// Connections since the first login that were opened, and those that have ended.
    pub connections: [u64; 2],
}

impl Iscsi {
    /// Returns the sessions of the lab in the order of their numbers.
    pub fn sessions_seen(&self) -> impl ExactSizeIterator<Item = SessionSeen<'_>> {
        (0..self.sessions.len() as u32).map(|number| {
            let session = &self.sessions[number as usize];
            let end = (session.stage == Stage::Up).then(|| self.ends.get((session.end + 1) as usize)).flatten();
            let target = end.and_then(|end| match &end.machine {
                Machine::Target(target) => Some(&**target),
                _ => None,
            });
            let opened = count::total(self, number).connections;
            let ended = opened.saturating_sub(u64::from(session.stage != Stage::Idle));
            SessionSeen { plan: &session.plan, target, connections: [opened, ended] }
        })
    }
}
