//! What sessions of a target say to each other, and what has to end before something is answered.

use super::connection::Connection;
use super::{Behind, IscsiServer, Stores};
use crate::poll::Poller;
use sanloom_core::iscsi::target::{ConnectionId, Session};
use sanloom_core::scsi::Notice;
use sanloom_core::time::Instant;

impl IscsiServer {
    /// Carries what devices and sessions say to sessions, until all are silent.
    pub fn settle(&mut self, now: Instant, poller: &mut Poller, stores: &mut Stores<'_>) {
        loop {
            let mut silent = true;
            for id in std::mem::take(&mut self.shared.replaced) {
                silent = false;
                self.drop_connection(now, id.0, poller, stores);
            }
            for (behind, from, ends) in std::mem::take(&mut self.shared.ends) {
                silent = false;
                self.tell_all(now, behind, Some(from), &Notice::End(ends), poller, stores);
                if ends.nexus.is_none() {
                    self.shared.ending.push((behind, from.0));
                }
            }
            for behind in std::mem::take(&mut self.shared.resets) {
                silent = false;
                for id in self.sessions_of(behind) {
                    if let Some(connection) = self.connections.get_mut(&id) {
                        connection.close_when_sent();
                        self.after(now, id, poller, stores);
                    }
                }
            }
            for system in 0..stores.systems.len() {
                for (port, notice) in std::mem::take(&mut stores.systems[system].notices) {
                    silent = false;
                    let plan = self.shared.behind.iter().find(|one| one.system == system && one.has_port(port));
                    if let Some(behind) = plan.map(|plan| Behind { port, ..plan.behind(0) }) {
                        self.notice(now, behind, notice, poller, stores);
                    }
                }
            }
            // Sessions of other ports have heard by now what has to end.
            silent &= !self.others_ended(now, poller, stores);
            self.let_wait_no_more(now, poller, stores);
            if silent {
                return;
            }
        }
    }

    /// Task management is answered when all that it has ended is over. True if something was.
    fn others_ended(&mut self, now: Instant, poller: &mut Poller, stores: &mut Stores<'_>) -> bool {
        let mut any = false;
        for (behind, from) in std::mem::take(&mut self.shared.ending) {
            let ending = |(id, connection): (&u64, &Connection)| {
                let is_other = *id != from && connection.behind.is_some_and(|other| other.system == behind.system);
                is_other && connection.session().is_some_and(Session::is_ending_tasks)
            };
            let of = |key| self.shared.behind(key).is_some_and(|other| other.system == behind.system);
            let writes = self.shared.writing.values().any(|(key, _)| of(key));
            if writes || self.connections.iter().any(ending) {
                self.shared.ending.push((behind, from));
                continue;
            }
            any = true;
            if let Some(connection) = self.connections.get_mut(&from) {
                connection.others_ended(now, &mut self.shared, stores);
                self.after(now, from, poller, stores);
            }
        }
        any
    }

    /// Logins are answered that waited for writes of the session before.
    fn let_wait_no_more(&mut self, now: Instant, poller: &mut Poller, stores: &mut Stores<'_>) {
        for id in std::mem::take(&mut self.shared.waiting) {
            let Some(connection) = self.connections.get_mut(&id) else { continue };
            if connection.session().is_some_and(|session| self.shared.is_writing_for(session.key())) {
                self.shared.waiting.push(id);
                continue;
            }
            connection.waits = false;
            connection.flush(now, &mut self.shared, stores);
            self.after(now, id, poller, stores);
        }
    }

    fn notice(&mut self, now: Instant, behind: Behind, notice: Notice, poller: &mut Poller, stores: &mut Stores<'_>) {
        let Notice::Step { task, .. } = &notice else {
            return self.tell_all(now, behind, None, &notice, poller, stores);
        };
        let of = |connection: &Connection| {
            connection.behind == Some(behind) && connection.session().and_then(Session::nexus) == Some(task.nexus)
        };
        let Some(id) = self.connections.iter().find(|(_, connection)| of(connection)).map(|(id, _)| *id) else {
            return;
        };
        if let Some(connection) = self.connections.get_mut(&id) {
            connection.notice(now, notice, &mut self.shared, stores);
            self.after(now, id, poller, stores);
        }
    }

    fn tell_all(
        &mut self,
        now: Instant,
        behind: Behind,
        except: Option<ConnectionId>,
        notice: &Notice,
        poller: &mut Poller,
        stores: &mut Stores<'_>,
    ) {
        for id in self.sessions_of(behind) {
            if except != Some(ConnectionId(id))
                && let Some(connection) = self.connections.get_mut(&id)
            {
                connection.notice(now, notice.clone(), &mut self.shared, stores);
                self.after(now, id, poller, stores);
            }
        }
    }

    fn sessions_of(&self, behind: Behind) -> Vec<u64> {
        let of = self.connections.iter().filter(|(_, connection)| connection.behind == Some(behind));
        of.map(|(id, _)| *id).collect()
    }
}
