//! Tasks: their order, the steps that they take, and their end (SAM, task set management).

use super::device::Device;
use super::io::{IoOp, IoStatus};
use super::nexus::NexusId;
use super::step::{Attribute, Command, Ends, Notice, Output, Response, Step, TaskId};
use super::unit::check;
use sanloom_wire::cdb::{Cdb, status};
use sanloom_wire::scsi::lba_status::{self, DEALLOCATED, LbaStatus, MAPPED};
use sanloom_wire::scsi::unmap::BlockDescriptor;
use sanloom_wire::sense::{Sense, SenseCode, SenseKey};
use std::collections::VecDeque;

/// What the next step of a task needs to know.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) enum Pending {
    /// Its parameter list is under way.
    List(Cdb),
    /// Ranges that are still to be given back.
    Unmap(VecDeque<BlockDescriptor>),
    /// Where it asks about provisioning, and the allocation length.
    Mapping { lba: u64, allocation_len: u32 },
}

impl Device {
    /// A command that the short path does not take.
    pub(super) fn enter(&mut self, command: &Command, cdb: Cdb) -> Step {
        let Some(number) = command.unit else {
            return self.execute(command, cdb);
        };
        let unit = &mut self.units[usize::from(number)];
        let waits = match command.attribute {
            _ if is_exempt(&cdb) => false,
            Attribute::HeadOfQueue => false,
            Attribute::Simple => unit.ordered.is_some() || !unit.blocked.is_empty(),
            Attribute::Ordered => unit.active > 0 || !unit.blocked.is_empty(),
        };
        if waits {
            unit.blocked.push_back(*command);
            self.quiet = false;
            return Step::Wait;
        }
        self.start(command, cdb)
    }

    /// A command whose turn it is.
    fn start(&mut self, command: &Command, cdb: Cdb) -> Step {
        let step = self.execute(command, cdb);
        if let (Step::Io(_) | Step::Parameters { .. } | Step::Wait, Some(number)) = (&step, command.unit) {
            let unit = &mut self.units[usize::from(number)];
            unit.active += 1;
            let task = TaskId { nexus: command.nexus, tag: command.tag, unit: number };
            if command.attribute == Attribute::Ordered {
                unit.ordered = Some(task);
                self.quiet = false;
            }
            if matches!(step, Step::Parameters { .. }) {
                self.pending.insert(task, Pending::List(cdb));
            }
        }
        self.worded(command.unit, step)
    }

    /// A parameter list that [`Step::Parameters`] asked for has come; shorter, if the initiator sends no more.
    pub fn parameters(&mut self, task: TaskId, list: &[u8]) -> Step {
        let Some(Pending::List(cdb)) = self.pending.remove(&task) else {
            return self.finish(task, Response::status(status::BUSY));
        };
        let step = self.take_list(task, cdb, list);
        self.pass(task, step)
    }

    /// Block I/O of a task has ended.
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
            (IoStatus::Good, Some(Pending::Unmap(rest))) => self.unmap_next(task, rest),
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
        self.pass(task, step)
    }

    /// A step of a task that has begun.
    fn pass(&mut self, task: TaskId, step: Step) -> Step {
        match self.worded(Some(task.unit), step) {
            Step::Done(response) => self.finish(task, response),
            other => other,
        }
    }

    #[inline]
    pub(super) fn finish(&mut self, task: TaskId, response: Response) -> Step {
        let unit = &mut self.units[usize::from(task.unit)];
        unit.active = unit.active.saturating_sub(1);
        if !self.quiet {
            self.gone(task);
        }
        Step::Done(response)
    }

    /// A task that [`begin`](Self::begin) did not end is given up: it was aborted, or its nexus is lost.
    pub fn abandon(&mut self, task: TaskId) {
        self.pending.remove(&task);
        self.waiting.retain(|_, waiting| waiting.task != task);
        let unit = &mut self.units[usize::from(task.unit)];
        let of_task = |command: &Command| (command.nexus, command.tag) == (task.nexus, task.tag);
        match unit.blocked.iter().position(of_task) {
            Some(at) => {
                unit.blocked.remove(at);
            }
            None => unit.active = unit.active.saturating_sub(1),
        }
        if !self.quiet {
            self.gone(task);
        }
    }

    /// A task is over: others may have waited for it.
    fn gone(&mut self, task: TaskId) {
        let unit = &mut self.units[usize::from(task.unit)];
        if unit.ordered == Some(task) {
            unit.ordered = None;
        }
        while let Some(command) = self.next_admitted(task.unit) {
            let step = self.start(&command, Cdb::parse(&command.cdb));
            let next = TaskId { nexus: command.nexus, tag: command.tag, unit: task.unit };
            self.notify(next, step);
        }
        self.settle();
    }

    fn next_admitted(&mut self, number: u16) -> Option<Command> {
        let unit = &mut self.units[usize::from(number)];
        let admitted = match unit.blocked.front()?.attribute {
            Attribute::Ordered => unit.active == 0,
            Attribute::Simple | Attribute::HeadOfQueue => unit.ordered.is_none(),
        };
        if admitted { unit.blocked.pop_front() } else { None }
    }

    /// Tells the transport of a task what to do next.
    pub(super) fn notify(&mut self, task: TaskId, step: Step) {
        if let Some(port) = self.nexuses.get(task.nexus).map(|nexus| nexus.port) {
            self.outputs.push_back(Output::Port { port, notice: Notice::Step { task, step } });
        }
    }

    /// Tells the ports, but for the one that knows already, which tasks end.
    pub(super) fn tell_ports(&mut self, ends: Ends, except: Option<u16>) {
        let one: Option<u16> = ends.nexus.and_then(|nexus| self.nexuses.get(nexus)).map(|nexus| nexus.port);
        for port in 0..self.config.ports.len() as u16 {
            if Some(port) != except && one.is_none_or(|one| one == port) {
                self.outputs.push_back(Output::Port { port, notice: Notice::End(ends) });
            }
        }
    }

    /// Nexuses of an initiator port through a target port; none, one, or (iSCSI) one for each session.
    pub(super) fn nexuses_of(&self, party: &super::reservation::Party) -> Vec<NexusId> {
        let of = self.nexuses.of(&party.initiator);
        of.filter(|&(_, port)| port == party.port).map(|(nexus, _)| nexus).collect()
    }
}

/// Commands that every device answers at once, whatever stands in the task set.
fn is_exempt(cdb: &Cdb) -> bool {
    matches!(cdb, Cdb::Inquiry { .. } | Cdb::ReportLuns { .. } | Cdb::RequestSense { .. })
}
