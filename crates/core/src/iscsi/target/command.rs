//! SCSI commands, from the header to the response (RFC 7143, sections 4.2.5 and 11.3 to 11.4).

use super::session::{Held, Output, Segment, Session};
use super::task::State;
use crate::fcp::DataDirection;
use crate::iscsi::sequence::{Order, UNNUMBERED};
use crate::scsi::{BlockIo, Command, Device, INVALID_COMMAND_IU, IoOp, IoStatus, IoTag, Response, Step, TaskId};
use sanloom_wire::cdb::status;
use sanloom_wire::iscsi::code::{flag, response};
use sanloom_wire::iscsi::{DataIn, Head, NO_TAG, RejectReason, ScsiCommand, ScsiResponse, emit_sense};
use sanloom_wire::sense::{Sense, SenseCode, SenseKey};

/// "Protocol service CRC error" (section 7.8).
pub(super) const CRC_ERROR: Sense = Sense::new(SenseKey::ABORTED_COMMAND, SenseCode(0x4705));

impl Session {
    pub(super) fn on_command(&mut self, head: &Head, command: ScsiCommand, device: &mut Device) {
        self.counters.commands += 1;
        let Some(nexus) = self.nexus else { return };
        let order = if head.immediate { Order::Next } else { self.seq.order(command.cmd_sn) };
        if order == Order::Outside || (order == Order::Ahead && self.held.contains_key(&command.cmd_sn)) {
            self.counters.outside_window += 1;
            return;
        }
        let refused = if let Some(reason) = self.objection(head, &command) {
            Some(reason)
        } else if head.immediate && self.tasks.immediate() >= self.limits.max_immediate {
            Some(RejectReason::TOO_MANY_IMMEDIATE)
        } else {
            None
        };
        if let Some(reason) = refused {
            // Its number counts as not received: the initiator fills the gap (section 7.3).
            return self.reject(head, reason);
        }
        let slot = self.tasks.allocate(command, head.immediate, nexus);
        if head.data_bytes > 0 {
            self.segment = Segment::Immediate(self.tasks.at(slot).tag(slot));
            self.tasks.at(slot).received = head.data_bytes;
        } else {
            self.arrived(slot, device);
        }
    }

    /// What is wrong with a command, to iSCSI.
    pub(super) fn objection(&self, head: &Head, command: &ScsiCommand) -> Option<RejectReason> {
        let has = |flag| command.flags & flag != 0;
        let first_burst = self.parameters.first_burst_bytes.min(command.expected_bytes);
        if self.tasks.find(command.initiator_tag).is_some() {
            return Some(RejectReason::TASK_IN_PROGRESS);
        }
        let broken = command.initiator_tag == NO_TAG
            || (head.data_bytes > 0 && (!self.parameters.immediate_data || !has(flag::WRITE)))
            || head.data_bytes > first_burst
            || (!has(flag::FINAL) && (!has(flag::WRITE) || self.parameters.initial_r2t));
        broken.then_some(RejectReason::PROTOCOL_ERROR)
    }

    pub(super) fn on_immediate_data(&mut self, tag: IoTag, intact: bool, device: &mut Device) {
        let slot = tag.0 as u16;
        if self.tasks.of(tag).is_none() {
            // It was ended while its data came; its number was not.
            return self.drain_held(Some(device));
        }
        self.counters.written_bytes += u64::from(self.tasks.at(slot).received);
        if !intact {
            self.tasks.at(slot).fault = Some(CRC_ERROR);
            let head = self.head_of(slot);
            self.reject(&head, RejectReason::DATA_DIGEST_ERROR);
        }
        self.arrived(slot, device);
    }

    /// The header of a task's command, as far as it is kept.
    fn head_of(&mut self, slot: u16) -> Head {
        let task = self.tasks.at(slot);
        Head { immediate: task.immediate, ..Head::with_data(task.command, task.received) }
    }

    /// A command is complete: its turn, or not yet.
    fn arrived(&mut self, slot: u16, device: &mut Device) {
        let task = self.tasks.at(slot);
        if task.immediate {
            return self.begin(slot, device);
        }
        let cmd_sn = task.command.cmd_sn;
        if self.seq.order(cmd_sn) == Order::Next {
            self.seq.advance();
            self.begin(slot, device);
            self.drain_held(Some(device));
        } else {
            task.state = State::Held;
            self.held.insert(cmd_sn, Held::Task(slot));
        }
    }

    /// A command whose turn it is goes to the device.
    pub(super) fn begin(&mut self, slot: u16, device: &mut Device) {
        let task = self.tasks.at(slot);
        if !task.immediate {
            task.counted = true;
            self.seq.begin();
        }
        let task = self.tasks.at(slot);
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
        task.begun = !matches!(step, Step::Done(_));
        self.go_on(slot, step, device);
    }

    /// What the device said about a task.
    fn go_on(&mut self, slot: u16, step: Step, device: &mut Device) {
        match step {
            Step::Io(io) => self.begin_io(slot, io, device),
            Step::Parameters { bytes } => {
                let task = self.tasks.at(slot);
                if task.contradicts(DataDirection::Write) {
                    return self.refuse(slot, device);
                }
                task.io.bytes = bytes;
                task.list = true;
                task.wanted = bytes.min(task.expected(DataDirection::Write));
                task.state = State::Receiving;
                self.proceed(slot, device);
            }
            Step::Wait => self.tasks.at(slot).state = State::Waiting,
            Step::Done(response) => {
                self.tasks.at(slot).begun = false;
                self.end(slot, response);
            }
        }
    }

    fn begin_io(&mut self, slot: u16, io: BlockIo, device: &mut Device) {
        let task = self.tasks.at(slot);
        task.io = io;
        let direction = io.op.direction();
        // A read whose data nobody expects moves none; data that nobody sends cannot be written.
        if direction == DataDirection::Write && task.contradicts(direction) {
            return self.refuse(slot, device);
        }
        task.list = false;
        task.wanted = io.bytes.min(task.expected(direction));
        match direction {
            DataDirection::None => self.start_io(slot),
            DataDirection::Read => {
                task.state = State::Hungry;
                if self.admit(slot) {
                    self.start_io(slot);
                }
            }
            DataDirection::Write => {
                // Only of a plain write does a part mean something.
                if task.wanted < io.bytes && !matches!(io.op, IoOp::Write | IoOp::WriteVerify) {
                    return self.refuse(slot, device);
                }
                task.state = State::Receiving;
                self.proceed(slot, device);
            }
        }
    }

    /// A task whose command does not fit what iSCSI says about its data.
    fn refuse(&mut self, slot: u16, device: &mut Device) {
        self.give_up(slot, device);
        self.end(slot, Response::check(INVALID_COMMAND_IU));
    }

    /// Its data cannot be used.
    pub(super) fn fail(&mut self, slot: u16, fault: Sense, device: &mut Device) {
        self.give_up(slot, device);
        self.end(slot, Response::check(fault));
        self.feed(device);
    }

    /// The device forgets a task.
    pub(super) fn give_up(&mut self, slot: u16, device: &mut Device) {
        let task = self.tasks.at(slot);
        if std::mem::replace(&mut task.begun, false) {
            device.abandon(task.id(slot));
        }
    }

    pub(super) fn start_io(&mut self, slot: u16) {
        let task = self.tasks.at(slot);
        task.state = State::Io;
        let io = task.block_io(slot);
        self.outputs.push_back(Output::Io(io));
    }

    /// Reserves room for the data of a task, or lets it wait.
    pub(super) fn admit(&mut self, slot: u16) -> bool {
        let task = self.tasks.at(slot);
        let bytes = u64::from(task.wanted);
        if task.reserved > 0 || bytes == 0 {
            return true;
        }
        let tag = task.tag(slot);
        if self.reserved_bytes > 0 && self.reserved_bytes + bytes > u64::from(self.limits.max_bytes) {
            if !self.hungry.contains(&tag) {
                self.hungry.push_back(tag);
            }
            return false;
        }
        self.tasks.at(slot).reserved = bytes as u32;
        self.reserved_bytes += bytes;
        true
    }

    pub(super) fn on_io_done(&mut self, tag: IoTag, io_status: IoStatus, device: &mut Device) {
        let slot = tag.0 as u16;
        if self.tasks.of(tag).is_some_and(|task| task.state == State::Dying) {
            self.outputs.push_back(Output::Cancel(tag));
            self.release(slot, device);
            return self.answer_held_back();
        }
        let Some(task) = self.tasks.of(tag).filter(|task| task.state == State::Io) else { return };
        let op = task.io.op;
        let step = device.io_done(task.id(slot), op, io_status);
        match step {
            Step::Done(answer) if op == IoOp::Read && io_status == IoStatus::Good => {
                self.tasks.at(slot).begun = false;
                self.send_read(slot, answer.status);
                self.release(slot, device);
            }
            Step::Done(answer) => {
                self.tasks.at(slot).begun = false;
                self.end(slot, answer);
                self.feed(device);
            }
            step => self.go_on(slot, step, device),
        }
    }

    pub(super) fn on_parameters(&mut self, tag: IoTag, bytes: &[u8], device: &mut Device) {
        let Some(task) = self.tasks.of(tag).filter(|task| task.state == State::Fetching) else { return };
        let step = device.parameters(task.id(tag.0 as u16), bytes);
        self.go_on(tag.0 as u16, step, device);
    }

    pub(super) fn on_step(&mut self, task: TaskId, step: Step, device: &mut Device) {
        if self.tasks.of(task.tag).is_some_and(|task| task.state == State::Waiting) {
            self.go_on(task.tag.0 as u16, step, device);
        }
    }

    /// The end of a task is known. The response waits for data that the initiator still sends for it.
    pub(super) fn end(&mut self, slot: u16, answer: Response) {
        let task = self.tasks.at(slot);
        if task.is_open() {
            task.state = State::Ending(answer);
        } else {
            self.respond(slot, answer);
            self.free(slot);
        }
    }

    /// A response, with its data where there are some.
    pub(super) fn respond(&mut self, slot: u16, answer: Response) {
        self.counters.responses += 1;
        let Response { status, sense, mut data } = answer;
        let task = self.tasks.at(slot);
        let expected = task.command.expected_bytes;
        if let Some(sense) = sense {
            self.counters.check_conditions += 1;
            let mut segment = Vec::new();
            emit_sense(&sense.to_bytes(), &mut segment);
            let moved = self.tasks.at(slot).received.min(expected);
            return self.send_response(slot, status, residual(moved, expected), segment.into());
        }
        if data.is_empty() || task.expected(DataDirection::Read) == 0 {
            let moved = match task.io.op.direction() {
                DataDirection::None if !task.list => data.len() as u32,
                DataDirection::Read => data.len() as u32,
                _ => task.io.bytes,
            };
            let moved = if status == status::GOOD { moved } else { 0 };
            return self.send_response(slot, status, residual(moved, expected), Box::default());
        }
        let residual = residual(data.len() as u32, expected);
        data.truncate(expected as usize);
        let tag = task.tag(slot);
        self.send_data(slot, data.len() as u32, status, residual, |head, at| {
            let end = (at + head.data_bytes) as usize;
            Output::Send { head, data: data[at as usize..end].into() }
        });
        self.outputs.push_back(Output::Release(tag));
    }

    pub(super) fn send_response(&mut self, slot: u16, status: u8, (flags, residual): (u8, u32), segment: Box<[u8]>) {
        let task = self.tasks.at(slot);
        let (initiator_tag, exp_data_sn, tag) = (task.command.initiator_tag, task.data_sn, task.tag(slot));
        self.close_window_of(slot);
        let (exp_cmd_sn, max_cmd_sn) = self.window();
        self.send(
            ScsiResponse {
                flags,
                response: response::COMPLETED,
                status,
                initiator_tag,
                snack_tag: 0,
                stat_sn: UNNUMBERED,
                exp_cmd_sn,
                max_cmd_sn,
                exp_data_sn,
                read_residual: 0,
                residual,
            },
            segment,
        );
        self.outputs.push_back(Output::Release(tag));
    }

    /// The data of a read that are in the buffer, and the status with the last of them.
    fn send_read(&mut self, slot: u16, status: u8) {
        self.counters.responses += 1;
        let task = self.tasks.at(slot);
        let (bytes, tag) = (task.wanted, task.tag(slot));
        let moved = if task.contradicts(DataDirection::Read) { 0 } else { task.io.bytes };
        let residual = residual(moved, task.command.expected_bytes);
        self.counters.read_bytes += u64::from(bytes);
        if bytes == 0 {
            return self.send_response(slot, status, residual, Box::default());
        }
        self.send_data(slot, bytes, status, residual, |head, at| Output::Data { tag, head, at });
        self.outputs.push_back(Output::Release(tag));
    }

    /// Cuts data into PDUs: none longer than the initiator takes, a sequence for each burst.
    fn send_data(
        &mut self,
        slot: u16,
        bytes: u32,
        status: u8,
        (residual_flag, residual): (u8, u32),
        output: impl Fn(Head, u32) -> Output,
    ) {
        let (longest, burst) = (self.parameters.send_bytes, self.parameters.max_burst_bytes);
        let initiator_tag = self.tasks.at(slot).command.initiator_tag;
        self.close_window_of(slot);
        let (exp_cmd_sn, max_cmd_sn) = self.window();
        let mut at = 0;
        while at < bytes {
            let left_of_burst = burst - at % burst;
            let len = longest.min(left_of_burst).min(bytes - at);
            let last = at + len == bytes;
            let task = self.tasks.at(slot);
            let data_sn = task.data_sn;
            task.data_sn += 1;
            let mut data_in = DataIn {
                flags: if last || len == left_of_burst { flag::FINAL } else { 0 },
                status: 0,
                lun: [0; 8],
                initiator_tag,
                target_tag: NO_TAG,
                stat_sn: UNNUMBERED,
                exp_cmd_sn,
                max_cmd_sn,
                data_sn,
                offset: at,
                residual: 0,
            };
            if last {
                data_in.flags |= flag::STATUS | residual_flag;
                (data_in.status, data_in.residual) = (status, residual);
            }
            self.outputs.push_back(output(Head::with_data(data_in, len), at));
            at += len;
        }
    }

    /// The place of a task in the window is free, as its response tells.
    pub(super) fn close_window_of(&mut self, slot: u16) {
        if std::mem::replace(&mut self.tasks.at(slot).counted, false) {
            self.seq.end();
        }
    }

    /// A task is over, and others may have waited for its room.
    pub(super) fn release(&mut self, slot: u16, device: &mut Device) {
        self.free(slot);
        self.feed(device);
    }

    pub(super) fn free(&mut self, slot: u16) {
        self.close_window_of(slot);
        let task = self.tasks.at(slot);
        self.reserved_bytes -= u64::from(task.reserved);
        self.tasks.release(slot);
    }

    /// Lets tasks go on that waited for room.
    pub(super) fn feed(&mut self, device: &mut Device) {
        while let Some(tag) = self.hungry.front().copied() {
            let slot = tag.0 as u16;
            let state = self.tasks.of(tag).map(|task| task.state.clone());
            if matches!(state, Some(State::Hungry | State::Receiving)) {
                // It stays where it is in the queue if there is still no room.
                if !self.admit(slot) {
                    return;
                }
            }
            self.hungry.pop_front();
            match state {
                Some(State::Hungry) => self.start_io(slot),
                Some(State::Receiving) => self.proceed(slot, device),
                _ => {}
            }
        }
    }

    /// A task ends without a word.
    pub(super) fn drop_task(&mut self, slot: u16, device: &mut Device) {
        self.give_up(slot, device);
        let task = self.tasks.at(slot);
        let tag = task.tag(slot);
        match task.state {
            State::Held | State::Arriving if !task.immediate => {
                let cmd_sn = task.command.cmd_sn;
                self.held.insert(cmd_sn, Held::Hole);
            }
            State::Dying => return,
            State::Forwarded => {
                self.outputs.push_back(Output::Recall(tag));
                self.close_window_of(slot);
                return self.tasks.bury(slot);
            }
            State::Io if task.io.op.changes_medium() => {
                self.close_window_of(slot);
                return self.tasks.bury(slot);
            }
            _ => {}
        }
        self.outputs.push_back(Output::Cancel(tag));
        self.free(slot);
    }
}

/// Flag and count for a command that moves `bytes` where the initiator expects `expected`.
pub(super) fn residual(bytes: u32, expected: u32) -> (u8, u32) {
    if bytes > expected {
        (flag::OVERFLOW, bytes - expected)
    } else if bytes < expected {
        (flag::UNDERFLOW, expected - bytes)
    } else {
        (0, 0)
    }
}
