//! Data-Out and R2T: transfer of write data to the target (RFC 7143, sections 4.2.5.2, 11.7 and
//! 11.8).

use super::engine::{CRC_ERROR, TaskEngine};
use super::event::Output;
use super::task::{State, Task, TaskTable};
use crate::scsi::{Device, IoTag, Response};
use sanloom_wire::iscsi::code::flag;
use sanloom_wire::iscsi::{DataOut, Head, Header, NO_TAG, RejectReason};
use sanloom_wire::sense::{Sense, SenseCode, SenseKey};

/// Sense "data phase error": numbers or offsets of Data-Out PDUs are wrong.
pub(super) const DATA_ERROR: Sense = Sense::new(SenseKey::ABORTED_COMMAND, SenseCode(0x4b00));

/// Slot that a Data-Out names, by its target transfer tag or its initiator task tag.
pub(super) fn slot_of(tag: u32) -> u16 {
    (tag & 0xffff) as u16
}

/// Returns the task that still expects the data of a Data-Out.
fn open_task(tasks: &TaskTable, data: &DataOut) -> Option<u16> {
    let slot = if data.target_tag == NO_TAG {
        tasks.find(data.initiator_tag)
    } else {
        let of = |slot: &u16| tasks.get(*slot).is_some_and(|task| task.command.initiator_tag == data.initiator_tag);
        Some(slot_of(data.target_tag)).filter(of)
    };
    slot.filter(|slot| tasks.get(*slot).is_some_and(Task::is_open))
}

impl TaskEngine {
    /// Handles the header of a Data-Out. Returns its task if its data segment is to be received;
    /// [`on_data_complete`](Self::on_data_complete) follows.
    pub(super) fn on_data_out(&mut self, head: &Head, data: DataOut, device: &mut Device) -> Option<IoTag> {
        let Some(slot) = open_task(&self.tasks, &data) else {
            // The task was aborted, has ended or has all its data, so these data are discarded.
            self.out.counters.unknown_data += 1;
            return None;
        };
        let first_burst_bytes = self.parameters.first_burst_bytes;
        let task = self.tasks.at(slot);
        let tag = task.tag(slot);
        if !task.is_in_order(head, &data, first_burst_bytes) {
            self.reject(head, RejectReason::PROTOCOL_ERROR);
            self.fail_data(slot, device);
            return None;
        }
        if head.data_bytes > 0 {
            return Some(tag);
        }
        self.on_data_complete(tag, head, true, device);
        None
    }

    /// Reports the first `bytes` bytes of a Data-Out that has not arrived completely, if they are
    /// the next ones of a write that streams.
    pub(super) fn on_arriving(&mut self, head: &Head, bytes: u32) {
        let Header::DataOut(data) = head.header else { return };
        let Some(slot) = open_task(&self.tasks, &data) else { return };
        let first_burst_bytes = self.parameters.first_burst_bytes;
        let task = self.tasks.at(slot);
        if task.is_streaming && task.is_in_order(head, &data, first_burst_bytes) {
            let (tag, bytes) = (task.tag(slot), task.received + bytes.min(head.data_bytes));
            self.out.push(Output::Arrived { tag, bytes });
        }
    }

    /// Ends or marks a task whose data cannot be used.
    fn fail_data(&mut self, slot: u16, device: &mut Device) {
        self.abandon(slot, device);
        let task = self.tasks.at(slot);
        task.close_data();
        if matches!(task.state, State::Held | State::Arriving) {
            // The command is not the next one in order, so it fails later.
            task.fault = Some(DATA_ERROR);
            return;
        }
        let tag = task.tag(slot);
        let answer = match std::mem::replace(&mut task.state, State::Receiving) {
            State::Ending(answer) => answer,
            _ => Response::check(DATA_ERROR),
        };
        self.respond(slot, answer);
        self.out.push(Output::Cancel(tag));
        self.release(slot, device);
    }

    /// Handles the end of the data segment of a Data-Out.
    pub(super) fn on_data_complete(&mut self, tag: IoTag, head: &Head, intact: bool, device: &mut Device) {
        let slot = tag.slot();
        let Header::DataOut(data) = head.header else { return };
        if self.tasks.find_io(tag).is_none() {
            return;
        }
        if !intact {
            self.reject(head, RejectReason::DATA_DIGEST_ERROR);
        }
        self.out.counters.written_bytes += u64::from(head.data_bytes);
        let task = self.tasks.at(slot);
        if !intact {
            task.fault = Some(CRC_ERROR);
        }
        task.count_data_out(head.data_bytes, data.target_tag != NO_TAG, data.flags & flag::FINAL != 0);
        self.report_arrived(slot);
        self.receive(slot, device);
    }

    /// Continues a task that receives data, after data have arrived or buffer space is free:
    /// solicits more data, or passes the complete data on.
    pub(super) fn receive(&mut self, slot: u16, device: &mut Device) {
        let task = self.tasks.at(slot);
        match &task.state {
            State::Ending(_) if !task.is_open() => {
                if let State::Ending(answer) = std::mem::replace(&mut task.state, State::Receiving) {
                    self.respond(slot, answer);
                    self.release(slot, device);
                }
            }
            State::Receiving if task.unsolicited.is_none() => {
                if task.received < task.transfer_bytes && task.fault.is_none() {
                    self.solicit(slot);
                } else if !task.r2ts.is_empty() {
                    // All solicited data must arrive before the task proceeds.
                } else if let Some(fault) = task.fault {
                    self.fail(slot, fault, device);
                } else if task.is_parameter_list {
                    task.state = State::Fetching;
                    let (tag, bytes) = (task.tag(slot), task.transfer_bytes);
                    self.out.push(Output::Fetch { tag, bytes });
                } else {
                    self.start_io(slot);
                }
            }
            _ => {}
        }
    }

    /// Sends as many R2Ts as may be open.
    fn solicit(&mut self, slot: u16) {
        if !self.reserve_buffer(slot) {
            return;
        }
        let end = self.tasks.at(slot).transfer_bytes;
        while self.tasks.at(slot).solicited_end() < end && self.send_r2t(slot, end) {}
    }

    /// Sends an R2T for the next data of a task, up to offset `end`. Returns false if the agreed
    /// number of R2Ts is already open.
    pub(super) fn send_r2t(&mut self, slot: u16, end: u32) -> bool {
        let task = self.tasks.at(slot);
        if task.r2ts.len() >= usize::from(self.parameters.max_outstanding_r2t) {
            return false;
        }
        let transfer = self.out.next_transfer();
        let r2t = task.open_r2t(slot, transfer, end, self.parameters.max_burst_bytes, self.window.numbers());
        self.out.send(r2t, Box::default());
        true
    }
}
