//! Error handling on the initiator's side: command time-outs, silent targets and rejected PDUs; and
//! the end of a session (RFC 7143, sections 7 and 11.14).

use super::command::Stage;
use super::session::{Broken, Outcome, Output, Session, Tag};
use crate::time::Instant;
use sanloom_wire::iscsi::code::{function, logout};
use sanloom_wire::iscsi::{Head, Header, LogoutRequest, NO_TAG, NopOut, TaskRequest};
use sanloom_wire::lun::LunBytes;

impl Session {
    pub(super) fn manage(
        &mut self,
        now: Instant,
        function: u8,
        lun: LunBytes,
        referenced_tag: u32,
        ref_cmd_sn: u32,
        of: Tag,
    ) {
        let initiator_tag = self.tag(of);
        self.managed.push_back((now + self.config.abort_timeout, initiator_tag));
        let request = TaskRequest {
            function,
            lun,
            initiator_tag,
            referenced_tag,
            cmd_sn: self.cmd_sn,
            exp_stat_sn: self.exp_stat_sn,
            ref_cmd_sn,
            exp_data_sn: 0,
        };
        self.send(Head { immediate: true, ..Head::new(request) });
    }

    /// Handles a reject, in which the target returns the header of a PDU that it discarded.
    pub(super) fn on_reject(&mut self, header: &[u8]) {
        // Without its header, the rejected PDU and so the state of its command are unknown.
        let Some(header) = header.first_chunk() else { return self.end(Broken::Protocol) };
        let tag = match Head::parse(header).header {
            Header::ScsiCommand(command) => command.initiator_tag,
            // The SCSI response to the command reports the result.
            Header::DataOut(_) | Header::NopOut(_) => return,
            _ => return self.end(Broken::Protocol),
        };
        if let Some(Tag::Command(id)) = self.tags.get(&tag).copied() {
            self.fail(id);
        }
    }

    pub(super) fn fail(&mut self, id: u64) {
        if let Some(active) = self.active.remove(&id) {
            self.tags.remove(&active.initiator_tag);
            self.outputs.push_back(Output::Done { id, outcome: Outcome::Failed });
        }
    }

    /// Ends a command that the target has stopped, or that was never sent.
    pub(super) fn on_aborted(&mut self, id: u64) {
        if let Some(active) = self.active.remove(&id) {
            self.tags.remove(&active.initiator_tag);
            self.outputs.push_back(Output::Done { id, outcome: Outcome::TimedOut });
        }
    }

    pub(super) fn on_timeout(&mut self, now: Instant) {
        if self.managed.front().is_some_and(|(at, _)| *at <= now) {
            return self.end(Broken::Silent);
        }
        while let Some((_, id)) = self.deadlines.front().copied().filter(|(at, _)| *at <= now) {
            self.deadlines.pop_front();
            let Some(active) = self.active.get_mut(&id) else { continue };
            if active.stage == Stage::Waiting {
                // The command was never sent, so there is nothing to abort.
                self.on_aborted(id);
                continue;
            }
            active.stage = Stage::Aborting;
            let (lun, referenced, cmd_sn) = (active.command.lun, active.initiator_tag, active.cmd_sn);
            let abort_tag = self.next_tag;
            active.abort_tag = Some(abort_tag);
            self.counters.aborted += 1;
            self.manage(now, function::ABORT_TASK, lun, referenced, cmd_sn, Tag::Abort(id));
        }
        match self.ping_sent_at {
            Some(sent_at) if sent_at + self.config.ping <= now => self.end(Broken::Silent),
            None if self.last_pdu_at + self.config.ping <= now => self.ping(now),
            _ => {}
        }
    }

    /// Pings the target, unless an earlier ping is unanswered.
    pub(super) fn ping(&mut self, now: Instant) {
        if self.ping_sent_at.is_some() {
            return;
        }
        self.ping_sent_at = Some(now);
        let initiator_tag = self.fresh_tag();
        let (cmd_sn, exp_stat_sn) = (self.cmd_sn, self.exp_stat_sn);
        let ping = NopOut { lun: [0; 8], initiator_tag, target_tag: NO_TAG, cmd_sn, exp_stat_sn };
        self.send(Head { immediate: true, ..Head::new(ping) });
    }

    pub(super) fn log_out(&mut self) {
        let initiator_tag = self.tag(Tag::Logout);
        let request = LogoutRequest {
            reason: logout::CLOSE_SESSION,
            initiator_tag,
            cid: 0,
            cmd_sn: self.cmd_sn,
            exp_stat_sn: self.exp_stat_sn,
        };
        self.send(Head { immediate: true, ..Head::new(request) });
    }
}
