//! Processing of a command from FCP_CMND to FCP_RSP.

use super::task::{List, NewTask, State, Task, residual};
use super::{FcpTarget, Login, Output};
use crate::exchange::{Accepted, SeqIds, SeqTx};
use sanloom_scsi::scsi::DataDirection;
use sanloom_scsi::scsi::{
    Attribute, BlockIo, Command, Device, Ends, INVALID_COMMAND_IU, IoOp, IoStatus, IoTag, Managed, Response, Step,
    TaskId, TaskManagement,
};
use sanloom_scsi::time::Instant;
use sanloom_wire::cdb::status;
use sanloom_wire::fcp::{FcpCmnd, FcpRsp, FcpXferRdy, Residual, attribute, response, task_management};
use sanloom_wire::header::RX_ID_UNASSIGNED;
use sanloom_wire::sense::Sense;
use sanloom_wire::{FcId, Frame, Header, Message, Payload};

/// Addressing of the final sequences of an exchange.
#[derive(Clone, Copy)]
struct Reply {
    to: FcId,
    ox_id: u16,
    rx_id: u16,
    seq_id: u8,
}

/// Data parameters from the command.
#[derive(Clone, Copy)]
struct Declared {
    flags: u8,
    data_len: u32,
    frame_size_bytes: u16,
}

impl Reply {
    /// Reply to a command that needs no task.
    fn at_once(command: &Header) -> Reply {
        Reply { to: command.s_id, ox_id: command.ox_id, rx_id: RX_ID_UNASSIGNED, seq_id: 1 }
    }
}

impl FcpTarget {
    pub(super) fn on_command(
        &mut self,
        now: Instant,
        header: &Header,
        login: &Login,
        command: &FcpCmnd,
        device: &mut Device,
    ) {
        self.counters.commands += 1;
        if command.task_management != 0 {
            return self.on_task_management(now, header, login, command, device);
        }
        let unit = device.unit(login.nexus, command.lun);
        let next = self.next_tag();
        let task = Command {
            nexus: login.nexus,
            tag: next.unwrap_or_default(),
            unit,
            cdb: command.cdb,
            attribute: task_attribute(command.attribute),
        };
        let step = device.begin(&task);
        let reply = Reply::at_once(header);
        let declared =
            Declared { flags: command.flags, data_len: command.data_len, frame_size_bytes: login.frame_size_bytes };
        if let Step::Done(response) = step {
            return self.end(reply, &declared, response);
        }
        let Some(unit) = unit else {
            return;
        };
        if next.is_none() {
            device.abandon(TaskId { nexus: login.nexus, tag: task.tag, unit });
            self.counters.task_set_full += 1;
            return self.finish(reply, status::TASK_SET_FULL, residual(0, command.data_len));
        }
        let rx_id = self.allocate(&NewTask {
            initiator: header.s_id,
            nexus: login.nexus,
            unit,
            ox_id: header.ox_id,
            data_len: command.data_len,
            flags: command.flags,
            frame_size_bytes: login.frame_size_bytes,
            in_order: self.config.in_order,
        });
        debug_assert_eq!(
            self.tasks[usize::from(rx_id)].tag(rx_id),
            task.tag,
            "the device knows the task by another tag"
        );
        self.continue_task(now, rx_id, step, device);
    }

    /// Tag of the next task; `None` if no task is free.
    fn next_tag(&self) -> Option<IoTag> {
        match self.free.last() {
            Some(&rx_id) => {
                let generation = self.tasks[usize::from(rx_id)].generation.wrapping_add(1);
                Some(IoTag::new(rx_id, generation))
            }
            None if self.tasks.len() >= usize::from(self.config.max_exchanges) => None,
            None => Some(IoTag::new(self.tasks.len() as u16, 0)),
        }
    }

    /// Allocates the task of [`next_tag`](Self::next_tag).
    fn allocate(&mut self, new: &NewTask) -> u16 {
        if let Some(rx_id) = self.free.pop() {
            let slot = &mut self.tasks[usize::from(rx_id)];
            debug_assert_eq!(slot.state, State::Free, "RX_ID {rx_id:#x} belongs to two exchanges");
            *slot = Task::new(new, slot.generation.wrapping_add(1));
            return rx_id;
        }
        self.tasks.push(Task::new(new, 0));
        debug_assert!(self.tasks.len() <= usize::from(self.config.max_exchanges), "{} exchanges", self.tasks.len());
        (self.tasks.len() - 1) as u16
    }

    /// Performs the next step that the device returned for a task.
    fn continue_task(&mut self, now: Instant, rx_id: u16, step: Step, device: &mut Device) {
        match step {
            Step::Io(io) => self.begin_io(now, rx_id, io, device),
            Step::Parameters { bytes } => self.begin_parameters(now, rx_id, bytes, device),
            Step::Wait => self.tasks[usize::from(rx_id)].state = State::Waiting,
            Step::Done(response) => {
                let (reply, declared) = self.ends_of(rx_id);
                self.end(reply, &declared, response);
                self.release(rx_id);
            }
        }
    }

    fn begin_io(&mut self, now: Instant, rx_id: u16, io: BlockIo, device: &mut Device) {
        let task = &mut self.tasks[usize::from(rx_id)];
        task.io = io;
        let declared = task.flags & (FcpCmnd::READ | FcpCmnd::WRITE);
        match io.op.direction() {
            DataDirection::None => self.start_io(rx_id),
            DataDirection::Read if declared == FcpCmnd::READ => self.start_io(rx_id),
            DataDirection::Write if declared == FcpCmnd::WRITE => {
                // A partial write would leave blocks half written.
                if task.data_len < io.bytes {
                    self.reject_task(rx_id, Err(INVALID_COMMAND_IU), device);
                } else {
                    self.request_burst(now, rx_id);
                }
            }
            _ => self.reject_task(rx_id, Ok(response::INVALID_FIELDS), device),
        }
    }

    fn begin_parameters(&mut self, now: Instant, rx_id: u16, bytes: u32, device: &mut Device) {
        let task = &mut self.tasks[usize::from(rx_id)];
        task.io.bytes = bytes;
        if task.flags & (FcpCmnd::READ | FcpCmnd::WRITE) != FcpCmnd::WRITE {
            self.reject_task(rx_id, Ok(response::INVALID_FIELDS), device);
        } else if task.data_len < bytes {
            self.reject_task(rx_id, Err(INVALID_COMMAND_IU), device);
        } else {
            self.request_burst(now, rx_id);
        }
    }

    /// Ends a task whose command contradicts the data parameters of FCP.
    fn reject_task(&mut self, rx_id: u16, why: Result<u8, Sense>, device: &mut Device) {
        let (reply, declared) = self.ends_of(rx_id);
        // For the initiator, this port has not begun its side of the exchange.
        let reply = Reply { rx_id: RX_ID_UNASSIGNED, ..reply };
        let task = &self.tasks[usize::from(rx_id)];
        device.abandon(task.id(rx_id));
        match why {
            Ok(code) => self.refuse(reply, declared.data_len, code),
            Err(sense) => self.end(reply, &declared, Response::check(sense)),
        }
        self.release(rx_id);
    }

    fn start_io(&mut self, rx_id: u16) {
        let task = &mut self.tasks[usize::from(rx_id)];
        debug_assert!(task.is_live(), "I/O begins after the end of the task");
        task.state = State::Io;
        let io = task.block_io(rx_id);
        self.timers.cancel(&mut self.tasks, rx_id);
        self.outputs.push_back(Output::Io(io));
    }

    /// Enters [`State::Receiving`]; no other function does.
    fn request_burst(&mut self, now: Instant, rx_id: u16) {
        let max_burst_bytes = self.config.max_burst_bytes;
        let task = &mut self.tasks[usize::from(rx_id)];
        let frame = u32::from(task.frame_size_bytes);
        let offset = task.rx.received_bytes();
        let remaining = task.transfer_bytes() - offset;
        let burst_len = remaining.min((max_burst_bytes / frame).max(1) * frame);
        task.state = State::Receiving;
        task.rx.next_burst(burst_len);
        task.seen_bytes = offset;
        let (d_id, ox_id, seq_id) = (task.initiator, task.ox_id, task.next_seq_id());
        self.arm(rx_id, List::Data, now + self.config.e_d_tov);
        let ready = FcpXferRdy { offset, burst_len };
        self.send(d_id, ox_id, rx_id, seq_id, Message::FcpXferRdy(ready));
    }

    pub(super) fn on_data(&mut self, now: Instant, rx_id: u16, accepted: Accepted, device: &mut Device) {
        let Some(task) = self.tasks.get(usize::from(rx_id)) else {
            return;
        };
        if task.state != State::Receiving {
            return;
        }
        match accepted {
            Accepted::Complete if task.rx.is_complete() => {
                if task.rx.received_bytes() < task.transfer_bytes() {
                    self.request_burst(now, rx_id);
                } else if task.takes_parameters() {
                    self.fetch(rx_id);
                } else {
                    self.start_io(rx_id);
                }
            }
            Accepted::Gap => self.stall(now, rx_id, device),
            Accepted::Complete | Accepted::More | Accepted::Stale => {}
        }
    }

    fn fetch(&mut self, rx_id: u16) {
        let task = &mut self.tasks[usize::from(rx_id)];
        debug_assert_eq!(task.state, State::Receiving, "a parameter list is read before it has arrived");
        task.state = State::Fetching;
        let (tag, bytes) = (task.tag(rx_id), task.transfer_bytes());
        self.timers.cancel(&mut self.tasks, rx_id);
        self.outputs.push_back(Output::Fetch { tag, bytes });
    }

    /// Task of a tag, if it is in this state.
    fn task_in(&self, tag: IoTag, state: State) -> Option<&Task> {
        let rx_id = tag.rx_id();
        self.tasks.get(usize::from(rx_id)).filter(|task| task.state == state && task.tag(rx_id) == tag)
    }

    pub(super) fn on_parameters(&mut self, now: Instant, tag: IoTag, bytes: &[u8], device: &mut Device) {
        let Some(task) = self.task_in(tag, State::Fetching) else {
            return;
        };
        let step = device.parameters(task.id(tag.rx_id()), bytes);
        self.continue_task(now, tag.rx_id(), step, device);
    }

    pub(super) fn on_step(&mut self, now: Instant, task: TaskId, step: Step, device: &mut Device) {
        if self.task_in(task.tag, State::Waiting).is_some() {
            self.continue_task(now, task.tag.rx_id(), step, device);
        }
    }

    pub(super) fn on_io_done(&mut self, now: Instant, tag: IoTag, status: IoStatus, device: &mut Device) {
        let rx_id = tag.rx_id();
        let Some(task) = self.task_in(tag, State::Io) else {
            return;
        };
        let op = task.io.op;
        match device.io_done(task.id(rx_id), op, status) {
            Step::Done(response) if op == IoOp::Read => self.end_read(rx_id, status, response),
            step => self.continue_task(now, rx_id, step, device),
        }
    }

    /// Ends a read: the driver transmits the data, then the response follows.
    fn end_read(&mut self, rx_id: u16, status: IoStatus, response: Response) {
        let (reply, declared) = self.ends_of(rx_id);
        let task = &self.tasks[usize::from(rx_id)];
        let (bytes, residual_of_all) = (task.transfer_bytes(), task.residual());
        if status != IoStatus::Good {
            self.end(reply, &declared, response);
        } else {
            if bytes > 0 {
                let sequence = SeqTx::new(self.ids(&reply), declared.frame_size_bytes, 0, 0, bytes);
                self.outputs.push_back(Output::Transmit(sequence));
            }
            let reply = Reply { seq_id: reply.seq_id.wrapping_add(1), ..reply };
            self.finish(reply, response.status, residual_of_all);
        }
        self.release(rx_id);
    }

    /// Addressing and data parameters for the end of a task.
    fn ends_of(&mut self, rx_id: u16) -> (Reply, Declared) {
        let task = &mut self.tasks[usize::from(rx_id)];
        let reply = Reply { to: task.initiator, ox_id: task.ox_id, rx_id, seq_id: task.next_seq_id() };
        let Task { flags, data_len, frame_size_bytes, .. } = *task;
        (reply, Declared { flags, data_len, frame_size_bytes })
    }

    fn ids(&self, reply: &Reply) -> SeqIds {
        SeqIds {
            s_id: self.local_id,
            d_id: reply.to,
            ox_id: reply.ox_id,
            rx_id: reply.rx_id,
            seq_id: reply.seq_id,
            from_responder: true,
        }
    }

    /// Ends a command other than a block read. Small data is sent at once with its bytes, then the
    /// status.
    fn end(&mut self, reply: Reply, declared: &Declared, response: Response) {
        let Declared { flags, data_len, frame_size_bytes } = *declared;
        let moved = self.moved(reply.rx_id);
        if let Some(sense) = response.sense {
            self.counters.check_conditions += 1;
            let response = FcpRsp {
                status: response.status,
                residual: residual(moved, data_len),
                sense: Some(sense.to_bytes()),
                ..FcpRsp::GOOD
            };
            return self.respond(reply, response);
        }
        if response.data.is_empty() {
            self.counters.task_set_full += u64::from(response.status == status::TASK_SET_FULL);
            return self.finish(reply, response.status, residual(moved, data_len));
        }
        if flags & FcpCmnd::READ == 0 && data_len > 0 {
            return self.refuse(reply, data_len, response::INVALID_FIELDS);
        }
        let data = response.data;
        let bytes = data.len() as u32;
        let mut sequence = SeqTx::new(self.ids(&reply), frame_size_bytes, 0, 0, bytes.min(data_len));
        while let Some(frame) = sequence.next_frame() {
            let at = frame.offset as usize;
            let piece = &data[at..at + usize::from(frame.len)];
            let header = sequence.header(&frame);
            self.outputs.push_back(Output::Send(Frame { header, payload: Payload::Bytes(piece.into()) }));
        }
        let reply = Reply { seq_id: reply.seq_id.wrapping_add(1), ..reply };
        self.finish(reply, response.status, residual(bytes, data_len));
    }

    /// Data-out bytes that a task received, for the residual. The count includes writes that the
    /// medium rejects.
    fn moved(&self, rx_id: u16) -> u32 {
        let task = self.tasks.get(usize::from(rx_id)).filter(|task| task.is_live());
        task.map_or(0, |task| task.rx.received_bytes())
    }

    fn finish(&mut self, reply: Reply, status: u8, residual: Residual) {
        self.respond(reply, FcpRsp { status, residual, ..FcpRsp::GOOD });
    }

    /// Sends an FCP response code without a SCSI status.
    fn refuse(&mut self, reply: Reply, data_len: u32, code: u8) {
        let residual = residual(0, data_len);
        self.respond(reply, FcpRsp { residual, response_code: Some(code), ..FcpRsp::GOOD });
    }

    fn respond(&mut self, reply: Reply, response: FcpRsp) {
        self.counters.responses += 1;
        let Reply { to, ox_id, rx_id, seq_id } = reply;
        self.send(to, ox_id, rx_id, seq_id, Message::FcpRsp(response));
    }

    /// Handles task management (SAM; FCP, FCP_CMND task management flags). Ended tasks of other
    /// initiators are answered with TASK ABORTED, so that these initiators need not wait for a
    /// timeout.
    fn on_task_management(
        &mut self,
        now: Instant,
        header: &Header,
        login: &Login,
        command: &FcpCmnd,
        device: &mut Device,
    ) {
        let reply = Reply::at_once(header);
        let function = match command.task_management {
            task_management::ABORT_TASK_SET => TaskManagement::AbortTaskSet,
            task_management::CLEAR_TASK_SET => TaskManagement::ClearTaskSet,
            task_management::LUN_RESET => TaskManagement::LunReset,
            task_management::TARGET_RESET => TaskManagement::TargetReset,
            task_management::CLEAR_ACA => TaskManagement::ClearAca,
            _ => return self.refuse(reply, command.data_len, response::TMF_REJECTED),
        };
        let unit = device.unit(login.nexus, command.lun);
        let code = match device.manage(login.nexus, unit, function) {
            Managed::Complete(ends) => {
                if let Some(ends) = ends {
                    self.end_tasks(now, &ends, device);
                }
                response::COMPLETE
            }
            Managed::IncorrectLun => response::INVALID_LUN,
        };
        self.refuse(reply, command.data_len, code);
    }

    pub(super) fn end_tasks(&mut self, now: Instant, ends: &Ends, device: &mut Device) {
        for rx_id in 0..self.tasks.len() as u16 {
            self.work += 1;
            let task = &mut self.tasks[usize::from(rx_id)];
            if !task.is_live() || !ends.affects(task.io.unit, task.nexus) {
                continue;
            }
            let reply = Reply { to: task.initiator, ox_id: task.ox_id, rx_id, seq_id: task.next_seq_id() };
            let (data_len, answered) = (task.data_len, ends.answered(task.nexus));
            self.rest(now, rx_id, device);
            if answered {
                self.finish(reply, status::TASK_ABORTED, residual(0, data_len));
            }
        }
    }
}

/// Task attribute. ACA is treated as SIMPLE, because auto contingent allegiance is not supported.
fn task_attribute(byte: u8) -> Attribute {
    match byte & 7 {
        attribute::HEAD_OF_QUEUE => Attribute::HeadOfQueue,
        attribute::ORDERED => Attribute::Ordered,
        _ => Attribute::Simple,
    }
}
