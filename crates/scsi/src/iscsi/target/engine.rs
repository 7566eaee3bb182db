//! Execution of SCSI tasks on the target's side, from the command to its result: [`TaskEngine`].
//! [`super::data`] receives write data, [`super::response`] sends results, [`super::management`]
//! ends tasks, and [`super::forwarded`] has the host's side of the forwarding path.

use super::buffers::BufferSpace;
use super::event::{Limits, Output};
use super::management::DeferredResponses;
use super::outbound::Outbound;
use super::task::{State, TaskTable};
use super::window::{CommandWindow, Held};
use crate::iscsi::parameters::Parameters;
use crate::iscsi::sequence::Order;
use crate::scsi::{
    BlockIo, Command, DataDirection, Device, INVALID_COMMAND_IU, IoOp, IoStatus, IoTag, NexusId, Response, Step, TaskId,
};
use sanloom_wire::iscsi::code::flag;
use sanloom_wire::iscsi::{Head, NO_TAG, RejectReason, ScsiCommand};
use sanloom_wire::sense::{Sense, SenseCode, SenseKey};

/// Sense "protocol service CRC error" (section 7.8).
pub(super) const CRC_ERROR: Sense = Sense::new(SenseKey::ABORTED_COMMAND, SenseCode(0x4705));

/// Tasks of a session, with the resources that they share: command window, buffer space, output.
#[derive(Debug)]
pub(in crate::iscsi) struct TaskEngine {
    pub(super) parameters: Parameters,
    /// Maximum number of immediate tasks.
    max_immediate: u16,
    /// As [`Limits::recalls`].
    recalls: bool,
    /// As [`Limits::streams`].
    pub(super) streams: bool,
    pub(super) tasks: TaskTable,
    pub(super) window: CommandWindow,
    pub(super) buffers: BufferSpace,
    pub(super) deferred: DeferredResponses,
    pub(super) out: Outbound,
}

impl TaskEngine {
    pub(super) fn new(parameters: Parameters, limits: Limits, exp_cmd_sn: u32, depth: u16) -> TaskEngine {
        TaskEngine {
            parameters,
            max_immediate: limits.max_immediate,
            recalls: limits.recalls,
            streams: limits.streams,
            tasks: TaskTable::default(),
            window: CommandWindow::new(exp_cmd_sn, depth),
            buffers: BufferSpace::new(limits.max_bytes),
            deferred: DeferredResponses::default(),
            out: Outbound::default(),
        }
    }

    /// ExpCmdSN and MaxCmdSN of the next PDU to the initiator.
    pub(in crate::iscsi) fn window_numbers(&self) -> (u32, u32) {
        self.window.numbers()
    }

    /// Rejects a PDU and returns its header to the initiator.
    pub(super) fn reject(&mut self, head: &Head, reason: RejectReason) {
        self.out.reject(head, reason, self.window.numbers());
    }

    /// Returns the reason to reject a command at the iSCSI level, if there is one.
    pub(super) fn reject_reason(&self, head: &Head, command: &ScsiCommand) -> Option<RejectReason> {
        let has = |flag| command.flags & flag != 0;
        let first_burst = self.parameters.first_burst_bytes.min(command.expected_bytes);
        if self.tasks.find(command.initiator_tag).is_some() {
            return Some(RejectReason::TASK_IN_PROGRESS);
        }
        let invalid = command.initiator_tag == NO_TAG
            || (head.data_bytes > 0 && (!self.parameters.immediate_data || !has(flag::WRITE)))
            || head.data_bytes > first_burst
            || (!has(flag::FINAL) && (!has(flag::WRITE) || self.parameters.initial_r2t));
        if invalid {
            return Some(RejectReason::PROTOCOL_ERROR);
        }
        let too_many = head.immediate && self.tasks.immediate() >= self.max_immediate;
        too_many.then_some(RejectReason::TOO_MANY_IMMEDIATE)
    }

    /// Creates the task of a command that was not rejected.
    pub(super) fn create(&mut self, head: &Head, command: ScsiCommand, nexus: NexusId) -> u16 {
        debug_assert_eq!(self.reject_reason(head, &command), None, "a command that must be rejected");
        let slot = self.tasks.allocate(command, head.immediate, nexus);
        self.tasks.at(slot).received = head.data_bytes;
        slot
    }

    /// Handles the end of the immediate data of a task. Returns its slot, unless it has ended.
    pub(super) fn on_immediate_data(&mut self, tag: IoTag, intact: bool) -> Option<u16> {
        let slot = tag.slot();
        let task = self.tasks.find_io(tag)?;
        self.out.counters.written_bytes += u64::from(task.received);
        if !intact {
            let head = task.head();
            self.tasks.at(slot).fault = Some(CRC_ERROR);
            self.reject(&head, RejectReason::DATA_DIGEST_ERROR);
        }
        Some(slot)
    }

    /// Returns whether a complete command is the next one in order, and counts its number. Any
    /// other command is held until the lower command numbers have arrived.
    pub(super) fn admit(&mut self, slot: u16) -> bool {
        let task = self.tasks.at(slot);
        if task.immediate {
            return true;
        }
        let cmd_sn = task.command.cmd_sn;
        let is_next = self.window.order(cmd_sn) == Order::Next;
        if is_next {
            self.window.advance();
        } else {
            task.state = State::Held;
            self.window.hold(cmd_sn, Held::Task(slot));
        }
        is_next
    }

    /// Passes a command to the device, in command number order.
    pub(super) fn begin(&mut self, slot: u16, device: &mut Device) {
        let task = self.tasks.at(slot);
        debug_assert!(matches!(task.state, State::Arriving | State::Held), "a task begins once");
        if !task.immediate {
            task.in_window = true;
            self.window.begin_task();
        }
        task.unit = device.unit(task.nexus, task.command.lun);
        if let Some(fault) = task.fault {
            return self.end(slot, Response::check(fault));
        }
        let command = Command {
            nexus: task.nexus,
            tag: task.tag(slot),
            unit: task.unit,
            cdb: task.command.cdb,
            attribute: task.attribute(),
        };
        let step = device.begin(&command);
        task.in_device = !matches!(step, Step::Done(_));
        self.execute(slot, step, device);
    }

    /// Executes the next step that the device returned for a task.
    fn execute(&mut self, slot: u16, step: Step, device: &mut Device) {
        match step {
            Step::Io(io) => self.begin_io(slot, io, device),
            Step::Parameters { bytes } => {
                let task = self.tasks.at(slot);
                if task.declares_only_opposite(DataDirection::Write) {
                    return self.fail_direction(slot, device);
                }
                task.io.bytes = bytes;
                task.is_parameter_list = true;
                task.transfer_bytes = bytes.min(task.expected(DataDirection::Write));
                task.state = State::Receiving;
                self.receive(slot, device);
            }
            Step::Wait => self.tasks.at(slot).state = State::Waiting,
            Step::Done(response) => {
                self.tasks.at(slot).in_device = false;
                self.end(slot, response);
            }
        }
    }

    fn begin_io(&mut self, slot: u16, io: BlockIo, device: &mut Device) {
        let task = self.tasks.at(slot);
        task.io = io;
        let direction = io.op.direction();
        // A read for which the initiator expects no data moves none. A write without data from the
        // initiator is refused.
        if direction == DataDirection::Write && task.declares_only_opposite(direction) {
            return self.fail_direction(slot, device);
        }
        task.is_parameter_list = false;
        task.transfer_bytes = io.bytes.min(task.expected(direction));
        match direction {
            DataDirection::None => self.start_io(slot),
            DataDirection::Read => {
                task.state = State::AwaitingBuffer;
                if self.reserve_buffer(slot) {
                    self.start_io(slot);
                }
            }
            DataDirection::Write => {
                // Only a plain WRITE may be carried out in part.
                if task.transfer_bytes < io.bytes && !matches!(io.op, IoOp::Write | IoOp::WriteVerify) {
                    return self.fail_direction(slot, device);
                }
                task.state = State::Receiving;
                self.begin_streaming(slot);
                self.receive(slot, device);
            }
        }
    }

    /// Ends a task whose CDB contradicts the data direction or length in its iSCSI header.
    fn fail_direction(&mut self, slot: u16, device: &mut Device) {
        self.abandon(slot, device);
        self.end(slot, Response::check(INVALID_COMMAND_IU));
    }

    /// Ends a task whose data cannot be used.
    pub(super) fn fail(&mut self, slot: u16, fault: Sense, device: &mut Device) {
        self.abandon(slot, device);
        let task = self.tasks.at(slot);
        if task.is_streaming {
            let tag = task.tag(slot);
            self.out.push(Output::Cancel(tag));
        }
        self.end(slot, Response::check(fault));
        self.start_waiting_for_buffer(device);
    }

    /// Removes a task from the device.
    pub(super) fn abandon(&mut self, slot: u16, device: &mut Device) {
        let task = self.tasks.at(slot);
        if std::mem::replace(&mut task.in_device, false) {
            device.abandon(task.id(slot));
        }
    }

    pub(super) fn start_io(&mut self, slot: u16) {
        let task = self.tasks.at(slot);
        task.state = State::Io;
        if task.is_streaming {
            return;
        }
        let io = task.block_io(slot);
        self.out.push(Output::Io(io));
    }

    /// Reserves buffer space for the data of a task. Without space the task is queued, and the
    /// result is false.
    pub(super) fn reserve_buffer(&mut self, slot: u16) -> bool {
        let task = self.tasks.at(slot);
        if task.reserved > 0 || task.transfer_bytes == 0 {
            return true;
        }
        if !self.buffers.reserve(task.tag(slot), task.transfer_bytes) {
            return false;
        }
        task.reserved = task.transfer_bytes;
        true
    }

    pub(super) fn on_io_done(&mut self, tag: IoTag, io_status: IoStatus, device: &mut Device) {
        let slot = tag.slot();
        let Some(task) = self.tasks.find_io(tag) else { return };
        if task.state == State::Aborted {
            self.out.push(Output::Cancel(tag));
            self.release(slot, device);
            return self.send_deferred();
        }
        if task.state != State::Io && !(task.is_streaming && task.state == State::Receiving) {
            return;
        }
        let op = task.io.op;
        let step = device.io_done(task.id(slot), op, io_status);
        match step {
            Step::Done(answer) if op == IoOp::Read && io_status == IoStatus::Good => {
                self.tasks.at(slot).in_device = false;
                self.send_read(slot, answer.status);
                self.release(slot, device);
            }
            Step::Done(answer) => {
                self.tasks.at(slot).in_device = false;
                self.end(slot, answer);
                self.start_waiting_for_buffer(device);
            }
            step => self.execute(slot, step, device),
        }
    }

    pub(super) fn on_parameters(&mut self, tag: IoTag, bytes: &[u8], device: &mut Device) {
        let Some(task) = self.tasks.find_io(tag).filter(|task| task.state == State::Fetching) else { return };
        let step = device.parameters(task.id(tag.slot()), bytes);
        self.execute(tag.slot(), step, device);
    }

    pub(super) fn on_step(&mut self, task: TaskId, step: Step, device: &mut Device) {
        device.confirm(task, &step);
        if self.tasks.find_io(task.tag).is_some_and(|task| task.state == State::Waiting) {
            self.execute(task.tag.slot(), step, device);
        }
    }

    /// Records the result of a task. The response is deferred while the initiator still owes data
    /// for it.
    fn end(&mut self, slot: u16, answer: Response) {
        let task = self.tasks.at(slot);
        debug_assert!(!task.in_device, "a task that the device still counts has no result");
        if task.is_open() {
            task.state = State::Ending(answer);
        } else {
            self.respond(slot, answer);
            self.free(slot);
        }
    }

    /// Frees the window slot of a task, so that its response already reports the larger window.
    pub(super) fn close_window_of(&mut self, slot: u16) {
        if std::mem::replace(&mut self.tasks.at(slot).in_window, false) {
            self.window.end_task();
        }
    }

    /// Frees an ended task and starts tasks that waited for its buffer space.
    pub(super) fn release(&mut self, slot: u16, device: &mut Device) {
        self.free(slot);
        self.start_waiting_for_buffer(device);
    }

    pub(super) fn free(&mut self, slot: u16) {
        self.close_window_of(slot);
        self.buffers.release(self.tasks.at(slot).reserved);
        self.tasks.release(slot);
    }

    /// Starts tasks that waited for buffer space.
    pub(super) fn start_waiting_for_buffer(&mut self, device: &mut Device) {
        while let Some(tag) = self.buffers.first_waiting() {
            let slot = tag.slot();
            let (is_read, is_write) = match self.tasks.find_io(tag).map(|task| &task.state) {
                Some(State::AwaitingBuffer) => (true, false),
                Some(State::Receiving) => (false, true),
                _ => (false, false),
            };
            // The task keeps its position in the queue if there is still no space.
            if (is_read || is_write) && !self.reserve_buffer(slot) {
                return;
            }
            self.buffers.remove_first();
            if is_read {
                self.start_io(slot);
            } else if is_write {
                self.receive(slot, device);
            }
        }
    }

    /// Ends a task without a response.
    pub(super) fn drop_task(&mut self, slot: u16, device: &mut Device) {
        self.abandon(slot, device);
        let task = self.tasks.at(slot);
        let tag = task.tag(slot);
        match task.state {
            State::Held | State::Arriving if !task.immediate => self.window.skip(task.command.cmd_sn),
            State::Aborted => return,
            State::Forwarded => {
                self.out.push(Output::Recall(tag));
                self.close_window_of(slot);
                return self.tasks.mark_aborted(slot);
            }
            State::Io | State::Receiving
                if task.io.op.changes_medium() && (task.state == State::Io || task.is_streaming) =>
            {
                if self.recalls {
                    self.out.push(Output::Recall(tag));
                }
                self.close_window_of(slot);
                return self.tasks.mark_aborted(slot);
            }
            _ => {}
        }
        self.out.push(Output::Cancel(tag));
        self.free(slot);
    }

    /// Ends all tasks without a response. Returns the tags of block I/O for which the medium is
    /// still writing.
    pub(super) fn drop_all(&mut self, device: &mut Device) -> Vec<IoTag> {
        for slot in self.tasks.live() {
            self.drop_task(slot, device);
        }
        self.tasks.writing()
    }
}
