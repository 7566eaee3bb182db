//! Tasks: order, steps and end (SAM, task set management).

use super::device::Device;
use super::io::{IoOp, IoStatus};
use super::step::{Attribute, Command, Response, Step, TaskId};
use super::unit::check;
use sanloom_wire::cdb::{Cdb, status};
use sanloom_wire::scsi::lba_status::{self, DEALLOCATED, LbaStatus, MAPPED};
use sanloom_wire::scsi::unmap::BlockDescriptor;
use sanloom_wire::sense::{Sense, SenseCode, SenseKey};
use std::collections::VecDeque;

/// State for the next step of a task.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) enum Pending {
    /// Waiting for the parameter list of this command.
    List(Cdb),
    /// Ranges that remain to be unmapped.
    Unmap(VecDeque<BlockDescriptor>),
    /// First block of a GET LBA STATUS, and its allocation length.
    Mapping { lba: u64, allocation_len: u32 },
}

/// Task set of a unit: its active tasks, and the commands that wait for them.
#[derive(Clone, Debug, Default)]
pub(super) struct TaskSet {
    /// Number of tasks that have begun and not ended.
    active: u32,
    /// Active ordered task, before whose end no other task begins.
    ordered: Option<TaskId>,
    /// Commands that wait for earlier tasks, in order of arrival.
    blocked: VecDeque<Command>,
}

impl TaskSet {
    pub(super) fn active(&self) -> u32 {
        self.active
    }

    pub(super) fn is_empty(&self) -> bool {
        self.active == 0 && self.blocked.is_empty()
    }

    /// Returns whether a SIMPLE task begins at once.
    pub(super) fn is_unordered(&self) -> bool {
        self.ordered.is_none() && self.blocked.is_empty()
    }

    /// Returns whether a command with this attribute waits for earlier tasks.
    fn must_wait(&self, attribute: Attribute) -> bool {
        match attribute {
            Attribute::HeadOfQueue => false,
            Attribute::Simple => !self.is_unordered(),
            Attribute::Ordered => !self.is_empty(),
        }
    }

    /// Queues a command until earlier tasks have ended.
    fn block(&mut self, command: Command) {
        debug_assert!(!self.is_empty(), "a command waits for an earlier one");
        self.blocked.push_back(command);
    }

    /// Counts a task that begins.
    #[inline]
    pub(super) fn begin(&mut self) {
        self.active += 1;
    }

    /// Makes later tasks wait for an ordered task that has begun.
    fn set_ordered(&mut self, task: TaskId) {
        debug_assert_eq!((self.active, self.ordered), (1, None), "an ordered task is active alone");
        self.ordered = Some(task);
    }

    /// Counts a task that has ended.
    #[inline]
    fn end(&mut self) {
        debug_assert!(self.active > 0, "more tasks end than began");
        self.active = self.active.saturating_sub(1);
    }

    /// Removes a task, active or waiting.
    fn remove(&mut self, task: TaskId) {
        let of_task = |command: &Command| (command.nexus, command.tag) == (task.nexus, task.tag);
        match self.blocked.iter().position(of_task) {
            Some(at) => _ = self.blocked.remove(at),
            None => self.end(),
        }
    }

    /// Ends the order that a task has imposed.
    fn clear_ordered(&mut self, task: TaskId) {
        self.ordered.take_if(|ordered| *ordered == task);
    }

    /// Removes the next waiting command that may begin.
    fn next_admitted(&mut self) -> Option<Command> {
        let admitted = match self.blocked.front()?.attribute {
            Attribute::Ordered => self.active == 0,
            Attribute::Simple | Attribute::HeadOfQueue => self.ordered.is_none(),
        };
        if admitted { self.blocked.pop_front() } else { None }
    }
}

impl Device {
    /// Starts or defers a command that does not take the short path.
    pub(super) fn start_or_defer(&mut self, command: &Command, cdb: Cdb) -> Step {
        let Some(number) = command.unit else {
            return self.execute(command, cdb);
        };
        let tasks = &mut self.units[usize::from(number)].tasks;
        if !is_exempt(&cdb) && tasks.must_wait(command.attribute) {
            tasks.block(*command);
            self.plain = false;
            return Step::Wait;
        }
        self.start(command, cdb)
    }

    /// Starts a command for which no earlier task has to end.
    fn start(&mut self, command: &Command, cdb: Cdb) -> Step {
        let step = self.execute(command, cdb);
        self.log(command.nexus, &step);
        if let (Step::Io(_) | Step::Parameters { .. } | Step::Wait, Some(number)) = (&step, command.unit) {
            let tasks = &mut self.units[usize::from(number)].tasks;
            tasks.begin();
            let task = TaskId { nexus: command.nexus, tag: command.tag, unit: number };
            if command.attribute == Attribute::Ordered {
                tasks.set_ordered(task);
                self.plain = false;
            }
            if matches!(step, Step::Parameters { .. }) {
                self.pending.insert(task, Pending::List(cdb));
            }
        }
        self.with_sense_format(command.unit, step)
    }

    /// Continues a task with the list requested by [`Step::Parameters`]. The list is shorter if the
    /// initiator sends less.
    pub fn parameters(&mut self, task: TaskId, list: &[u8]) -> Step {
        let Some(Pending::List(cdb)) = self.pending.remove(&task) else {
            return self.finish(task, Response::status(status::BUSY));
        };
        let step = self.execute_with_list(task, cdb, list);
        self.continue_or_finish(task, step)
    }

    /// Continues a task whose block I/O has ended.
    #[inline]
    pub fn io_done(&mut self, task: TaskId, op: IoOp, io: IoStatus) -> Step {
        if io == IoStatus::Good && self.pending.is_empty() {
            return self.finish(task, Response::GOOD);
        }
        self.io_ended(task, op, io)
    }

    fn io_ended(&mut self, task: TaskId, op: IoOp, io: IoStatus) -> Step {
        let failed = |key, code| check(Sense::new(key, code));
        let pending = self.pending.remove(&task);
        let step = match (io, pending) {
            (IoStatus::Good, Some(Pending::Unmap(rest))) => {
                super::medium::unmap_next(&self.units[usize::from(task.unit)], task, rest, &mut self.pending)
            }
            (IoStatus::Mapping { mapped, blocks }, Some(Pending::Mapping { lba, allocation_len })) => {
                let blocks = u32::try_from(blocks).unwrap_or(u32::MAX);
                let provisioning = if mapped { MAPPED } else { DEALLOCATED };
                let mut data = Vec::new();
                lba_status::emit(&[LbaStatus { lba, blocks, provisioning }], &mut data);
                super::unit::answer(data, allocation_len)
            }
            (IoStatus::Good | IoStatus::Mapping { .. }, _) => Step::Done(Response::GOOD),
            (IoStatus::TaskSetFull, _) => Step::Done(Response::status(status::TASK_SET_FULL)),
            (IoStatus::Busy, _) => Step::Done(Response::status(status::BUSY)),
            (IoStatus::MediumError, _) if op.changes_medium() => failed(SenseKey::MEDIUM_ERROR, SenseCode::WRITE_ERROR),
            (IoStatus::MediumError, _) => failed(SenseKey::MEDIUM_ERROR, SenseCode::UNRECOVERED_READ_ERROR),
            (IoStatus::Miscompare { offset }, _) => check(Sense {
                information: Some(offset.into()),
                ..Sense::new(SenseKey::MISCOMPARE, SenseCode::MISCOMPARE)
            }),
            (IoStatus::Failed { key, code }, _) => failed(key, code),
            (IoStatus::NoSpace, _) => failed(SenseKey::DATA_PROTECT, SenseCode::SPACE_EXHAUSTED),
        };
        self.continue_or_finish(task, step)
    }

    /// Returns the next step of a task that has begun, or ends it.
    fn continue_or_finish(&mut self, task: TaskId, step: Step) -> Step {
        self.log(task.nexus, &step);
        match self.with_sense_format(Some(task.unit), step) {
            Step::Done(response) => self.finish(task, response),
            other => other,
        }
    }

    #[inline]
    pub(super) fn finish(&mut self, task: TaskId, response: Response) -> Step {
        self.units[usize::from(task.unit)].tasks.end();
        if !self.plain {
            self.start_blocked(task);
        }
        Step::Done(response)
    }

    /// Ends a task for which [`begin`](Self::begin) returned another step than `Done`, because it
    /// was aborted or its nexus is lost.
    pub fn abandon(&mut self, task: TaskId) {
        // The device has ended the task, but the transport has not confirmed the notice of its
        // result.
        if self.unconfirmed.remove(&task) {
            return;
        }
        self.pending.remove(&task);
        self.records.abandon(task);
        self.units[usize::from(task.unit)].tasks.remove(task);
        if !self.plain {
            self.start_blocked(task);
        }
    }

    /// Starts the tasks that waited for an ended task.
    fn start_blocked(&mut self, task: TaskId) {
        let number = usize::from(task.unit);
        self.units[number].tasks.clear_ordered(task);
        while let Some(command) = self.units[number].tasks.next_admitted() {
            let step = self.start(&command, Cdb::parse(&command.cdb));
            let next = TaskId { nexus: command.nexus, tag: command.tag, unit: task.unit };
            self.notify(next, step);
        }
        self.update_plain();
    }

    /// Sends the next step of a task to its transport.
    pub(super) fn notify(&mut self, task: TaskId, step: Step) {
        if let Some(port) = self.nexuses.port_of(task.nexus) {
            if matches!(step, Step::Done(_)) {
                self.unconfirmed.insert(task);
            }
            self.notices.step(port, task, step);
        }
    }

    /// Records that the transport has received [`Notice::Step`](super::Notice::Step). Until then it
    /// may [`abandon`](Self::abandon) a task that has ended.
    pub fn confirm(&mut self, task: TaskId, step: &Step) {
        if matches!(step, Step::Done(_)) {
            self.unconfirmed.remove(&task);
        }
    }
}

/// Returns whether a command is executed at once, regardless of the task set.
fn is_exempt(cdb: &Cdb) -> bool {
    matches!(cdb, Cdb::Inquiry { .. } | Cdb::ReportLuns { .. } | Cdb::RequestSense { .. })
}
