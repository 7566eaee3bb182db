//! Task management on the target's side (RFC 7143, sections 4.2.3, 11.5 and 11.6). The snapshots of
//! the iSCSI tests list the effect on a task in each state.

use super::engine::TaskEngine;
use super::event::Output;
use super::task::State;
use crate::iscsi::sequence::UNNUMBERED;
use crate::scsi::{Device, Ends, Managed, NexusId, Response, TaskManagement};
use sanloom_wire::cdb::status;
use sanloom_wire::iscsi::code::{function, task_response};
use sanloom_wire::iscsi::{TaskRequest, TaskResponse};
use std::collections::VecDeque;

/// Task management responses that wait until aborted tasks no longer access the medium.
#[derive(Debug, Default)]
pub(super) struct DeferredResponses {
    /// Initiator task tags and response codes, the oldest first.
    queue: VecDeque<(u32, u8)>,
    /// Number of requests that wait for tasks of other sessions.
    others: u32,
}

impl DeferredResponses {
    /// Returns whether a response has to wait. `aborted` is the number of aborted tasks that are
    /// still active. Responses leave in the order of their requests.
    fn must_wait(&self, aborted: u16) -> bool {
        aborted > 0 || self.others > 0 || !self.queue.is_empty()
    }

    /// Waits for the end of tasks of other sessions.
    fn wait_for_others(&mut self) {
        self.others += 1;
    }

    /// Records that tasks of other sessions have ended.
    fn others_ended(&mut self) {
        self.others = self.others.saturating_sub(1);
    }

    /// Next response, once nothing is left to wait for.
    fn next(&mut self, aborted: u16) -> Option<(u32, u8)> {
        if aborted > 0 || self.others > 0 { None } else { self.queue.pop_front() }
    }
}

impl TaskEngine {
    /// Executes ABORT TASK for a task that has arrived; `None` if there is no such task.
    pub(super) fn abort(&mut self, request: &TaskRequest, device: &mut Device) -> Option<u8> {
        let slot = self.tasks.find(request.referenced_tag)?;
        if self.tasks.at(slot).command.lun != request.lun {
            return Some(task_response::NO_TASK);
        }
        self.out.counters.aborted += 1;
        self.drop_task(slot, device);
        self.start_waiting_for_buffer(device);
        Some(task_response::COMPLETE)
    }

    /// Executes a task management function other than ABORT TASK and responds to it. Returns
    /// whether the target was reset, so that the session ends.
    pub(super) fn manage(&mut self, request: &TaskRequest, nexus: NexusId, device: &mut Device) -> bool {
        let manage = match request.function {
            function::ABORT_TASK_SET => TaskManagement::AbortTaskSet,
            function::CLEAR_ACA => TaskManagement::ClearAca,
            function::CLEAR_TASK_SET => TaskManagement::ClearTaskSet,
            function::LUN_RESET => TaskManagement::LunReset,
            function::WARM_RESET | function::COLD_RESET => TaskManagement::TargetReset,
            function::TASK_REASSIGN => {
                self.respond_to(request, task_response::NO_REASSIGNMENT);
                return false;
            }
            _ => {
                self.respond_to(request, task_response::NOT_SUPPORTED);
                return false;
            }
        };
        let unit = device.unit(nexus, request.lun);
        match device.manage(nexus, unit, manage) {
            Managed::IncorrectLun => {
                self.respond_to(request, task_response::NO_LUN);
                false
            }
            Managed::Complete(ends) => {
                let cold = request.function == function::COLD_RESET;
                if let Some(ends) = ends {
                    self.end_tasks(&ends, device);
                    self.out.push(Output::Ends(ends));
                    // The sender of a reset is about to write to the unit, so the answer waits
                    // until the tasks of other sessions have ended. Otherwise one of their writes
                    // could arrive later.
                    if ends.nexus.is_none() && !cold {
                        self.deferred.wait_for_others();
                    }
                }
                self.respond_to(request, task_response::COMPLETE);
                if cold {
                    self.out.push(Output::Reset);
                }
                cold
            }
        }
    }

    /// Responds to a request after all aborted tasks have stopped accessing the medium.
    pub(super) fn respond_to(&mut self, request: &TaskRequest, response: u8) {
        if self.deferred.must_wait(self.tasks.aborted()) {
            return self.deferred.queue.push_back((request.initiator_tag, response));
        }
        self.send_task_response(request.initiator_tag, response);
    }

    /// Records that tasks of other sessions have ended.
    pub(super) fn others_ended(&mut self) {
        self.deferred.others_ended();
        self.send_deferred();
    }

    /// Sends the responses that waited for aborted tasks.
    pub(super) fn send_deferred(&mut self) {
        while let Some((initiator_tag, response)) = self.deferred.next(self.tasks.aborted()) {
            self.send_task_response(initiator_tag, response);
        }
    }

    fn send_task_response(&mut self, initiator_tag: u32, response: u8) {
        let (exp_cmd_sn, max_cmd_sn) = self.window.numbers();
        let stat_sn = UNNUMBERED;
        self.out.send(TaskResponse { response, initiator_tag, stat_sn, exp_cmd_sn, max_cmd_sn }, Box::default());
    }

    /// Ends tasks because of task management or a preempted reservation. Tasks of other nexuses are
    /// answered with TASK ABORTED.
    pub(super) fn end_tasks(&mut self, ends: &Ends, device: &mut Device) {
        for slot in self.tasks.live() {
            let task = self.tasks.at(slot);
            // A task that has not begun is assigned to a unit by its LUN.
            let unit = task.unit.or_else(|| device.unit(task.nexus, task.command.lun));
            let affected = match unit {
                Some(unit) => ends.affects(unit, task.nexus),
                None => ends.unit.is_none() && ends.nexus.is_none_or(|nexus| nexus == task.nexus),
            };
            if !affected || task.state == State::Aborted {
                continue;
            }
            let answered = ends.answered(task.nexus);
            self.out.counters.aborted += 1;
            if answered {
                self.abandon(slot, device);
                self.respond(slot, Response::status(status::TASK_ABORTED));
            }
            self.drop_task(slot, device);
        }
        self.start_waiting_for_buffer(device);
    }
}
