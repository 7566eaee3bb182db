//! Notices between the sessions of a target, and answers that wait for tasks of other sessions.

use super::connection::Connection;
use super::{Behind, IscsiServer, ServerContext};
use sanloom_scsi::iscsi::target::{ConnectionId, Session};
use sanloom_scsi::scsi::Notice;

impl IscsiServer {
    /// Dispatches notices of devices and sessions to sessions until there are none.
    pub fn exchange_notices(&mut self, cx: &mut ServerContext<'_, '_>) {
        // Notices for ports of SRP.
        let mut for_others = Vec::new();
        loop {
            let mut silent = true;
            for id in std::mem::take(&mut self.shared.replaced) {
                silent = false;
                self.drop_connection(cx, id.0);
            }
            for (behind, from, ends) in std::mem::take(&mut self.shared.ends) {
                silent = false;
                self.notify_all(cx, behind, Some(from), &Notice::End(ends));
                if ends.nexus.is_none() {
                    self.shared.ending.push((behind, from.0));
                }
            }
            for behind in std::mem::take(&mut self.shared.resets) {
                silent = false;
                for id in self.sessions_of(behind) {
                    if let Some(connection) = self.connections.get_mut(&id) {
                        connection.close_when_sent();
                        self.finish_service(cx, id);
                    }
                }
            }
            // Systems that were not called have no notices.
            let mut at = 0;
            while let Some(system) = cx.stores.systems.ready().get(at).copied() {
                at += 1;
                for (port, notice) in std::mem::take(&mut cx.stores.systems.visit(system).notices) {
                    let plan = self.shared.behind.iter().find(|one| one.system == system && one.has_port(port));
                    match plan.map(|plan| Behind { port, ..plan.behind(0) }) {
                        Some(behind) => {
                            silent = false;
                            self.dispatch_notice(cx, behind, notice);
                        }
                        None => for_others.push((system, (port, notice))),
                    }
                }
            }
            // By now, all notices about tasks to end have been delivered.
            silent &= !self.report_ended_tasks(cx);
            self.answer_waiting_logins(cx);
            if silent {
                break;
            }
        }
        for (system, notice) in for_others {
            cx.stores.systems.visit(system).notices.push(notice);
        }
    }

    /// Answers task management whose tasks have all ended. Returns whether there was any.
    fn report_ended_tasks(&mut self, cx: &mut ServerContext<'_, '_>) -> bool {
        let mut any = false;
        for (behind, from) in std::mem::take(&mut self.shared.ending) {
            let ending = |id: &u64, connection: &Connection| {
                let is_other = *id != from && connection.behind.is_some_and(|other| other.system == behind.system);
                is_other && connection.session().is_some_and(Session::is_ending_tasks)
            };
            let of = |key| self.shared.behind(key).is_some_and(|other| other.system == behind.system);
            let writes = self.shared.writing.values().any(|(key, _)| of(key));
            if writes || self.connections.iter().any(|(id, connection)| ending(id, connection)) {
                self.shared.ending.push((behind, from));
                continue;
            }
            any = true;
            if self.call(cx, from, Connection::others_ended).is_some() {
                self.finish_service(cx, from);
            }
        }
        any
    }

    /// Answers logins that waited for writes of the session before.
    fn answer_waiting_logins(&mut self, cx: &mut ServerContext<'_, '_>) {
        for id in std::mem::take(&mut self.shared.waiting) {
            let Some(connection) = self.connections.get_mut(&id) else { continue };
            if connection.session().is_some_and(|session| self.shared.is_writing_for(session.key())) {
                self.shared.waiting.push(id);
                continue;
            }
            connection.waits = false;
            self.call(cx, id, Connection::flush);
            self.finish_service(cx, id);
        }
    }

    fn dispatch_notice(&mut self, cx: &mut ServerContext<'_, '_>, behind: Behind, notice: Notice) {
        let Notice::Step { task, .. } = &notice else {
            return self.notify_all(cx, behind, None, &notice);
        };
        let of = |connection: &Connection| {
            connection.behind == Some(behind) && connection.session().and_then(Session::nexus) == Some(task.nexus)
        };
        let Some(id) = self.connections.iter().find(|(_, connection)| of(connection)).map(|(id, _)| *id) else {
            return;
        };
        if self.call(cx, id, |connection, cx| connection.notice(cx, notice)).is_some() {
            self.finish_service(cx, id);
        }
    }

    fn notify_all(
        &mut self,
        cx: &mut ServerContext<'_, '_>,
        behind: Behind,
        except: Option<ConnectionId>,
        notice: &Notice,
    ) {
        for id in self.sessions_of(behind) {
            if except != Some(ConnectionId(id))
                && self.call(cx, id, |connection, cx| connection.notice(cx, notice.clone())).is_some()
            {
                self.finish_service(cx, id);
            }
        }
    }

    fn sessions_of(&self, behind: Behind) -> Vec<u64> {
        let of = self.connections.iter().filter(|(_, connection)| connection.behind == Some(behind));
        of.map(|(id, _)| *id).collect()
    }
}
