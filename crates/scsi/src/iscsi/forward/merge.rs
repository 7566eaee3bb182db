//! The PDU Duplicating Handler: one command of the host becomes several commands of the switch, and
//! their results become one response.

use super::action::{Action, Conn};
use super::backends::BackEnd;
use super::machine::{Forward, Switch};
use super::table::{Stage, part_number};
use crate::scsi::{IoTag, Response};
use crate::time::Instant;
use sanloom_wire::cdb::status;
use sanloom_wire::iscsi::BHS_BYTES;

/// Maximum number of repetitions of a part because of unit attentions; a back end may report
/// several.
const MAX_RETRIES: u8 = 8;

impl Forward {
    /// Sends the command for a part without data. If the window is closed, queues the part and
    /// returns false. Later parts must not be sent before it, because a command that holds a window
    /// slot must be able to proceed.
    pub(super) fn send_or_queue(&mut self, tag: IoTag, part: usize, actions: &mut Vec<Action>) -> bool {
        let Some(entry) = self.table.get_mut(tag) else { return false };
        let of = &mut entry.parts[part];
        let Some(back) = self.backs.get_mut(of.back) else { return false };
        if back.room() == 0 {
            of.stage = Stage::Queued;
            back.enqueue(tag, part_number(part));
            return false;
        }
        let to = Conn::Back(of.back);
        if let Some(header) = self.number_command(tag, part, 0, false) {
            actions.push(Action::Send { to, header });
        }
        true
    }

    /// Assigns a command number to a part and builds its command, which must leave now.
    /// `immediate_bytes` of its data accompany it; `more` means that unsolicited data follow.
    pub(super) fn number_command(
        &mut self,
        tag: IoTag,
        part: usize,
        immediate_bytes: u32,
        more: bool,
    ) -> Option<[u8; BHS_BYTES]> {
        let entry = self.table.get_mut(tag)?;
        let of = &mut entry.parts[part];
        let back = self.backs.get_mut(of.back)?;
        debug_assert!(immediate_bytes <= of.bytes, "immediate data of another part");
        of.cmd_sn = back.next_cmd_sn();
        of.stage = Stage::Sent;
        of.moved = immediate_bytes;
        of.data_sn = 0;
        of.moved_at_check = None;
        Some(entry.command(part, immediate_bytes, more, back))
    }

    /// Sends the commands that waited for the windows of back ends.
    pub(super) fn send_queued(&mut self, actions: &mut Vec<Action>) {
        for number in self.backs.numbers() {
            while let Some((tag, part)) = self.backs.get_mut(number).and_then(BackEnd::dequeue) {
                let part = usize::from(part);
                // The part may have been stopped while it was queued.
                if self.table.get(tag).is_some_and(|entry| entry.parts[part].stage == Stage::Queued)
                    && let Some(header) = self.number_command(tag, part, 0, false)
                {
                    actions.push(Action::Send { to: Conn::Back(number), header });
                    self.send_later_parts(tag, part, actions);
                }
            }
        }
    }

    /// Sends the commands of later parts of a write, now that this part has its window slot.
    fn send_later_parts(&mut self, tag: IoTag, part: usize, actions: &mut Vec<Action>) {
        let Some(entry) = self.table.get(tag).filter(|entry| !entry.is_read()) else { return };
        for next in part + 1..entry.parts.len() {
            if !self.send_or_queue(tag, next, actions) {
                return;
            }
        }
    }

    /// Ends a part for which its back end is no longer active.
    pub(super) fn end_part(&mut self, tag: IoTag, part: usize, switch: &mut Switch<'_>) {
        let Some(entry) = self.table.get_mut(tag) else { return };
        entry.r2ts.retain(|r2t| usize::from(r2t.part) != part);
        let of = &mut entry.parts[part];
        let before = std::mem::replace(&mut of.stage, Stage::Over);
        if let Some(back) = self.backs.get_mut(of.back) {
            if matches!(before, Stage::Sent | Stage::Aborting) {
                back.end_command();
            }
            if before == Stage::Aborting {
                back.end_abort();
            }
        }
        self.respond_if_over(tag, switch);
    }

    /// Ends a failed part and stops the other parts of its task.
    pub(super) fn fail_part(
        &mut self,
        tag: IoTag,
        part: usize,
        answer: Response,
        switch: &mut Switch<'_>,
        actions: &mut Vec<Action>,
    ) {
        let Some(entry) = self.table.get_mut(tag) else { return };
        if entry.is_lost() {
            return self.end_part(tag, part, switch);
        }
        debug_assert_eq!(entry.parts[part].stage, Stage::Sent, "only a part in flight fails");
        entry.fail(part_number(part), answer);
        entry.parts[part].stage = Stage::Over;
        entry.r2ts.clear();
        let number = entry.parts[part].back;
        let now = self.last_received(number);
        if let Some(back) = self.backs.get_mut(number) {
            back.end_command();
        }
        self.stop_parts(now, tag, actions);
        self.respond_if_over(tag, switch);
    }

    /// Stops all parts of a task that have not ended. Parts that were sent are stopped by ABORT
    /// TASK.
    pub(super) fn stop_parts(&mut self, now: Instant, tag: IoTag, actions: &mut Vec<Action>) {
        let Some(entry) = self.table.get_mut(tag) else { return };
        debug_assert!(entry.is_lost(), "only a failed or aborted task is stopped");
        for number in 0..entry.parts.len() {
            let of = &mut entry.parts[number];
            let to = Conn::Back(of.back);
            match (of.stage, self.backs.get_mut(of.back)) {
                (Stage::Sent, Some(back)) => {
                    of.stage = Stage::Aborting;
                    back.begin_abort(now);
                    self.counters.aborts += 1;
                    actions.push(Action::Send { to, header: entry.abort(number, back) });
                }
                (Stage::Sent, None) | (Stage::Queued | Stage::Unsent, _) => of.stage = Stage::Over,
                (Stage::Reserved, back) => {
                    of.stage = Stage::Over;
                    if let Some(back) = back {
                        back.free_slot();
                    }
                }
                (Stage::Aborting | Stage::Over, _) => {}
            }
        }
    }

    /// Responds to a task once all its parts have ended and the host has sent all data that it
    /// still owes.
    pub(super) fn respond_if_over(&mut self, tag: IoTag, switch: &mut Switch<'_>) {
        let Some(entry) = self.table.get_mut(tag) else { return };
        if !entry.is_over() {
            return;
        }
        if entry.aborted {
            return self.remove_task(tag, switch);
        }
        if switch.session.engine.awaits_data(tag) {
            return;
        }
        let (bytes, moved, failure) = (entry.io.bytes, entry.moved(), entry.failure.take());
        match failure {
            None => {
                debug_assert_eq!(moved, bytes, "a task without failure has moved all its data");
                switch.session.engine.respond_forwarded(tag, &Response::GOOD, bytes);
            }
            Some((_, answer)) => {
                let moved = if answer.sense.is_some() { moved } else { 0 };
                switch.session.engine.respond_forwarded(tag, &answer, moved);
            }
        }
        self.remove_task(tag, switch);
    }

    /// Handles a unit attention of a back end. It concerns only the switch; hosts get theirs from
    /// the device. The part is repeated if none of its data have passed. Otherwise the host gets
    /// BUSY and repeats the command.
    pub(super) fn retry_part(&mut self, tag: IoTag, part: usize, switch: &mut Switch<'_>, actions: &mut Vec<Action>) {
        let solicited = switch.session.engine.awaits_data(tag);
        let Some(entry) = self.table.get_mut(tag) else { return };
        let of = &mut entry.parts[part];
        let back = self.backs.get_mut(of.back).filter(|back| back.has_slot());
        let repeatable = of.moved == 0 && !solicited && of.retries < MAX_RETRIES;
        let Some(back) = back.filter(|_| repeatable) else {
            let answer = entry.for_whole(Response::status(status::BUSY));
            return self.fail_part(tag, part, answer, switch, actions);
        };
        of.retries += 1;
        let to = Conn::Back(of.back);
        back.end_command();
        entry.r2ts.retain(|r2t| usize::from(r2t.part) != part);
        self.counters.retries += 1;
        if let Some(header) = self.number_command(tag, part, 0, false) {
            actions.push(Action::Send { to, header });
        }
    }
}
