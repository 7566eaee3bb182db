//! Task management (RFC 7143, sections 4.2.3, 11.5 and 11.6). What becomes of a task in each state is a table for review:
//! `core/tests/iscsi/snapshots`.

use super::session::{CloseReason, Held, Output, Session};
use super::task::State;
use crate::iscsi::sequence::{Order, UNNUMBERED, before};
use crate::scsi::{Device, Ends, Managed, Response, TaskManagement};
use sanloom_wire::cdb::status;
use sanloom_wire::iscsi::code::{function, task_response};
use sanloom_wire::iscsi::{Head, TaskRequest, TaskResponse};

impl Session {
    pub(super) fn on_task_request(&mut self, head: &Head, request: &TaskRequest, device: &mut Device) {
        let Some(nexus) = self.nexus else { return };
        let manage = match request.function {
            function::ABORT_TASK => {
                let response = self.abort_task(head, request, device);
                return self.answer(request, response);
            }
            function::ABORT_TASK_SET => TaskManagement::AbortTaskSet,
            function::CLEAR_ACA => TaskManagement::ClearAca,
            function::CLEAR_TASK_SET => TaskManagement::ClearTaskSet,
            function::LUN_RESET => TaskManagement::LunReset,
            function::WARM_RESET | function::COLD_RESET => TaskManagement::TargetReset,
            function::TASK_REASSIGN => return self.answer(request, task_response::NO_REASSIGNMENT),
            _ => return self.answer(request, task_response::NOT_SUPPORTED),
        };
        let unit = device.unit(nexus, request.lun);
        match device.manage(nexus, unit, manage) {
            Managed::IncorrectLun => self.answer(request, task_response::NO_LUN),
            Managed::Complete(ends) => {
                if let Some(ends) = ends {
                    self.end_tasks(&ends, device);
                    self.outputs.push_back(Output::Ends(ends));
                    // Whoever resets a unit wants to write there next: nothing of others may come behind that.
                    let waits = ends.nexus.is_none() && request.function != function::COLD_RESET;
                    self.ending_others += u32::from(waits);
                }
                self.answer(request, task_response::COMPLETE);
                if request.function == function::COLD_RESET {
                    self.outputs.push_back(Output::Reset);
                    self.shut(CloseReason::Reset);
                }
            }
        }
    }

    /// ABORT TASK: also of a task that has not come yet, which then never will.
    fn abort_task(&mut self, head: &Head, request: &TaskRequest, device: &mut Device) -> u8 {
        let found = self.tasks.find(request.referenced_tag);
        let is_it = |slot: &u16| self.tasks.get(*slot).is_some_and(|task| task.command.lun == request.lun);
        if let Some(slot) = found {
            if !is_it(&slot) {
                return task_response::NO_TASK;
            }
            self.counters.aborted += 1;
            self.drop_task(slot, device);
            self.feed(device);
            return task_response::COMPLETE;
        }
        // The task must be older than the request that aborts it.
        let missing =
            self.seq.order(request.ref_cmd_sn) != Order::Outside && !self.held.contains_key(&request.ref_cmd_sn);
        if missing && head.immediate && before(request.ref_cmd_sn, request.cmd_sn) {
            self.held.insert(request.ref_cmd_sn, Held::Hole);
            self.drain_held(Some(device));
            return task_response::COMPLETE;
        }
        task_response::NO_TASK
    }

    /// Answers, but not before everything that was aborted has left the medium alone.
    fn answer(&mut self, request: &TaskRequest, response: u8) {
        if self.tasks.dying() > 0 || self.ending_others > 0 || !self.held_back.is_empty() {
            return self.held_back.push_back((request.initiator_tag, response));
        }
        self.send_answer(request.initiator_tag, response);
    }

    /// Answers what waited for the medium.
    pub(super) fn answer_held_back(&mut self) {
        if self.tasks.dying() == 0 && self.ending_others == 0 {
            for (initiator_tag, response) in std::mem::take(&mut self.held_back) {
                self.send_answer(initiator_tag, response);
            }
        }
    }

    fn send_answer(&mut self, initiator_tag: u32, response: u8) {
        let (exp_cmd_sn, max_cmd_sn) = self.window();
        let stat_sn = UNNUMBERED;
        self.send(TaskResponse { response, initiator_tag, stat_sn, exp_cmd_sn, max_cmd_sn }, Box::default());
    }

    /// Tasks that end because of task management or a preempted reservation; others' are answered TASK ABORTED.
    pub(super) fn end_tasks(&mut self, ends: &Ends, device: &mut Device) {
        for slot in self.tasks.live() {
            let task = self.tasks.at(slot);
            // One that has not begun has a unit all the same.
            let unit = task.unit.or_else(|| device.unit(task.nexus, task.command.lun));
            let affected = match unit {
                Some(unit) => ends.affects(unit, task.nexus),
                None => ends.unit.is_none() && ends.nexus.is_none_or(|nexus| nexus == task.nexus),
            };
            if !affected || task.state == State::Dying {
                continue;
            }
            self.counters.aborted += 1;
            if ends.answered(task.nexus) {
                self.give_up(slot, device);
                self.respond(slot, Response::status(status::TASK_ABORTED));
            }
            self.drop_task(slot, device);
        }
        self.feed(device);
    }
}
