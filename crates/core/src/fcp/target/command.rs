//! From FCP_CMND to FCP_RSP.

use super::task::{List, NewTask, State, Task, residual};
use super::{FcpTarget, IoStatus, IoTag, Output};
use crate::exchange::{Accepted, SeqIds, SeqTx};
use crate::scsi::{Decision, INVALID_COMMAND_IU, IoOp};
use crate::time::Instant;
use sanloom_wire::cdb::status;
use sanloom_wire::fcp::{FcpCmnd, FcpRsp, FcpXferRdy, Residual, response, task_management};
use sanloom_wire::header::RX_ID_UNASSIGNED;
use sanloom_wire::sense::{Sense, SenseCode, SenseKey};
use sanloom_wire::{FcId, Frame, Header, Message, Payload};

/// Where the end of an exchange goes.
#[derive(Clone, Copy)]
struct Reply {
    to: FcId,
    ox_id: u16,
    rx_id: u16,
    seq_id: u8,
}

impl Reply {
    /// For a command that needs no task.
    fn at_once(command: &Header) -> Reply {
        Reply { to: command.s_id, ox_id: command.ox_id, rx_id: RX_ID_UNASSIGNED, seq_id: 1 }
    }
}

impl FcpTarget {
    pub(super) fn on_command(&mut self, now: Instant, header: &Header, frame_size_bytes: u16, command: &FcpCmnd) {
        self.counters.commands += 1;
        if command.task_management != 0 {
            return self.on_task_management(now, header, command);
        }
        let lun = self.server.lun_number(command.lun);
        let reply = Reply::at_once(header);
        match self.server.decide(lun, &command.cdb) {
            Decision::Io { op, lba, blocks, bytes, fua } => {
                let declared = command.flags & (FcpCmnd::READ | FcpCmnd::WRITE);
                let needed = match op {
                    IoOp::Read => FcpCmnd::READ,
                    IoOp::Write => FcpCmnd::WRITE,
                };
                if declared != needed {
                    return self.refuse(reply, command.data_len, response::INVALID_FIELDS);
                }
                // Part of a write would leave blocks half written.
                if op == IoOp::Write && command.data_len < bytes {
                    return self.check(reply, command.data_len, INVALID_COMMAND_IU);
                }
                let task = NewTask {
                    initiator: header.s_id,
                    ox_id: header.ox_id,
                    lun: lun.unwrap_or_default(),
                    op,
                    lba,
                    blocks,
                    wanted_bytes: bytes,
                    data_len: command.data_len,
                    frame_size_bytes,
                    fua,
                    in_order: self.config.in_order,
                };
                self.start(now, reply, &task);
            }
            Decision::Answer(data) => self.answer(reply, frame_size_bytes, command, &data),
            Decision::Good => self.finish(reply, status::GOOD, residual(0, command.data_len)),
            Decision::Check(sense) => self.check(reply, command.data_len, sense),
        }
    }

    fn start(&mut self, now: Instant, reply: Reply, new: &NewTask) {
        let Some(rx_id) = self.allocate(new) else {
            self.counters.task_set_full += 1;
            return self.finish(reply, status::TASK_SET_FULL, residual(0, new.data_len));
        };
        match new.op {
            IoOp::Read => self.start_io(rx_id),
            IoOp::Write => self.ask_for_burst(now, rx_id),
        }
    }

    fn allocate(&mut self, new: &NewTask) -> Option<u16> {
        if let Some(rx_id) = self.free.pop() {
            let slot = &mut self.tasks[usize::from(rx_id)];
            *slot = Task::new(new, slot.generation.wrapping_add(1));
            return Some(rx_id);
        }
        if self.tasks.len() >= usize::from(self.config.max_exchanges) {
            return None;
        }
        self.tasks.push(Task::new(new, 0));
        Some((self.tasks.len() - 1) as u16)
    }

    fn start_io(&mut self, rx_id: u16) {
        let task = &mut self.tasks[usize::from(rx_id)];
        task.state = State::Io;
        let io = task.io(rx_id);
        self.timers.cancel(&mut self.tasks, rx_id);
        self.outputs.push_back(Output::Io(io));
    }

    /// The one way into [`State::Receiving`].
    fn ask_for_burst(&mut self, now: Instant, rx_id: u16) {
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

    pub(super) fn on_data(&mut self, now: Instant, rx_id: u16, accepted: Accepted) {
        let Some(task) = self.tasks.get(usize::from(rx_id)) else {
            return;
        };
        if task.state != State::Receiving {
            return;
        }
        match accepted {
            Accepted::Complete if task.rx.is_complete() => {
                if task.rx.received_bytes() < task.transfer_bytes() {
                    self.ask_for_burst(now, rx_id);
                } else {
                    self.start_io(rx_id);
                }
            }
            Accepted::Gap => self.stall(now, rx_id),
            Accepted::Complete | Accepted::More | Accepted::Stale => {}
        }
    }

    pub(super) fn on_io_done(&mut self, tag: IoTag, status: IoStatus) {
        let rx_id = tag.rx_id();
        let local_id = self.local_id;
        let Some(task) = self.tasks.get_mut(usize::from(rx_id)) else {
            return;
        };
        if task.state != State::Io || task.tag(rx_id) != tag {
            return;
        }
        let (op, data_len, residual_of_all) = (task.op, task.data_len, task.residual());
        let ids = SeqIds {
            s_id: local_id,
            d_id: task.initiator,
            ox_id: task.ox_id,
            rx_id,
            seq_id: task.next_seq_id(),
            from_responder: true,
        };
        let (frame_size_bytes, bytes) = (task.frame_size_bytes, task.transfer_bytes());
        if status == IoStatus::Good && op == IoOp::Read && bytes > 0 {
            let sequence = SeqTx::new(ids, frame_size_bytes, 0, 0, bytes);
            self.outputs.push_back(Output::Transmit(sequence));
        }
        let reply = Reply { to: ids.d_id, ox_id: ids.ox_id, rx_id, seq_id: ids.seq_id.wrapping_add(1) };
        // A write has its data even if the medium does not take it.
        let nothing = match op {
            IoOp::Read => residual(0, data_len),
            IoOp::Write => residual_of_all,
        };
        match (status, op) {
            (IoStatus::Good, _) => self.finish(reply, status::GOOD, residual_of_all),
            (IoStatus::TaskSetFull, _) => {
                self.counters.task_set_full += 1;
                self.finish(reply, status::TASK_SET_FULL, nothing);
            }
            (IoStatus::Busy, _) => self.finish(reply, status::BUSY, nothing),
            (IoStatus::MediumError, IoOp::Read) => {
                self.check(reply, data_len, Sense::new(SenseKey::MEDIUM_ERROR, SenseCode::UNRECOVERED_READ_ERROR));
            }
            (IoStatus::MediumError, IoOp::Write) => {
                self.check(reply, data_len, Sense::new(SenseKey::MEDIUM_ERROR, SenseCode::WRITE_ERROR))
            }
        }
        self.release(rx_id);
    }

    /// A small answer: its data frames at once, with their bytes, then GOOD.
    fn answer(&mut self, reply: Reply, frame_size_bytes: u16, command: &FcpCmnd, data: &[u8]) {
        if command.flags & FcpCmnd::READ == 0 && command.data_len > 0 {
            return self.refuse(reply, command.data_len, response::INVALID_FIELDS);
        }
        let bytes = data.len() as u32;
        let ids = SeqIds {
            s_id: self.local_id,
            d_id: reply.to,
            ox_id: reply.ox_id,
            rx_id: reply.rx_id,
            seq_id: reply.seq_id,
            from_responder: true,
        };
        let mut sequence = SeqTx::new(ids, frame_size_bytes, 0, 0, bytes.min(command.data_len));
        while let Some(frame) = sequence.next_frame() {
            let at = frame.offset as usize;
            let piece = &data[at..at + usize::from(frame.len)];
            let header = sequence.header(&frame);
            self.outputs.push_back(Output::Send(Frame { header, payload: Payload::Bytes(piece.into()) }));
        }
        let reply = Reply { seq_id: reply.seq_id + 1, ..reply };
        self.finish(reply, status::GOOD, residual(bytes, command.data_len));
    }

    fn finish(&mut self, reply: Reply, status: u8, residual: Residual) {
        self.respond(
            reply,
            FcpRsp { status, retry_delay: 0, residual, confirm: false, response_code: None, sense: None },
        );
    }

    fn check(&mut self, reply: Reply, data_len: u32, sense: Sense) {
        self.counters.check_conditions += 1;
        self.respond(
            reply,
            FcpRsp {
                status: status::CHECK_CONDITION,
                retry_delay: 0,
                residual: residual(0, data_len),
                confirm: false,
                response_code: None,
                sense: Some(sense.to_bytes()),
            },
        );
    }

    /// The FCP layer's own no, without a SCSI status.
    fn refuse(&mut self, reply: Reply, data_len: u32, code: u8) {
        self.respond(
            reply,
            FcpRsp {
                status: status::GOOD,
                retry_delay: 0,
                residual: residual(0, data_len),
                confirm: false,
                response_code: Some(code),
                sense: None,
            },
        );
    }

    fn respond(&mut self, reply: Reply, response: FcpRsp) {
        self.counters.responses += 1;
        let Reply { to, ox_id, rx_id, seq_id } = reply;
        self.send(to, ox_id, rx_id, seq_id, Message::FcpRsp(response));
    }

    /// Task management (SAM; FCP, FCP_CMND task management flags). Tasks of other initiators that end by it are answered
    /// TASK ABORTED, so that nobody waits for a timeout.
    fn on_task_management(&mut self, now: Instant, header: &Header, command: &FcpCmnd) {
        let lun = self.server.lun_number(command.lun);
        let requester = header.s_id;
        let of_lun = |task: &Task| Some(task.lun) == lun;
        let code = match command.task_management {
            task_management::TARGET_RESET => {
                self.end_tasks(now, requester, |_| true);
                response::COMPLETE
            }
            _ if lun.is_none() => response::INVALID_LUN,
            task_management::ABORT_TASK_SET => {
                self.end_tasks(now, requester, |task| of_lun(task) && task.initiator == requester);
                response::COMPLETE
            }
            task_management::CLEAR_TASK_SET | task_management::LUN_RESET => {
                self.end_tasks(now, requester, of_lun);
                response::COMPLETE
            }
            task_management::CLEAR_ACA => response::COMPLETE,
            _ => response::TMF_REJECTED,
        };
        let reply = Reply::at_once(header);
        self.refuse(reply, command.data_len, code);
    }

    fn end_tasks(&mut self, now: Instant, requester: FcId, affects: impl Fn(&Task) -> bool) {
        for rx_id in 0..self.tasks.len() as u16 {
            self.work += 1;
            let task = &mut self.tasks[usize::from(rx_id)];
            if !task.is_live() || !affects(task) {
                continue;
            }
            let reply = Reply { to: task.initiator, ox_id: task.ox_id, rx_id, seq_id: task.next_seq_id() };
            let data_len = task.data_len;
            self.rest(now, rx_id);
            if reply.to != requester {
                self.finish(reply, status::TASK_ABORTED, residual(0, data_len));
            }
        }
    }
}
