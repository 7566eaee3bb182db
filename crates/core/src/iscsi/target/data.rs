//! Data-Out and R2T: how the data of a write come (RFC 7143, sections 4.2.5.2, 11.7 and 11.8).

use super::command::CRC_ERROR;
use super::session::{Output, Segment, Session};
use super::task::{OpenR2t, State, Task};
use crate::iscsi::sequence::UNNUMBERED;
use crate::scsi::{Device, IoTag, Response};
use sanloom_wire::iscsi::code::flag;
use sanloom_wire::iscsi::{DataOut, Head, Header, NO_TAG, R2t, RejectReason};
use sanloom_wire::sense::{Sense, SenseCode, SenseKey};

/// "Data phase error": numbers or offsets of the data are wrong.
pub(super) const DATA_ERROR: Sense = Sense::new(SenseKey::ABORTED_COMMAND, SenseCode(0x4b00));

impl Session {
    pub(super) fn on_data_out(&mut self, head: &Head, data: DataOut, device: &mut Device) {
        let slot = if data.target_tag == NO_TAG {
            self.tasks.find(data.initiator_tag)
        } else {
            let of =
                |slot: &u16| self.tasks.get(*slot).is_some_and(|task| task.command.initiator_tag == data.initiator_tag);
            Some(data.target_tag as u16).filter(of)
        };
        let Some(slot) = slot.filter(|slot| self.tasks.get(*slot).is_some_and(Task::is_open)) else {
            // Of a task that was aborted, has ended, or has all its data: nobody needs it.
            self.counters.unknown_data += 1;
            return;
        };
        if !self.fits(slot, head, &data) {
            self.reject(head, RejectReason::PROTOCOL_ERROR);
            self.fail_data(slot, device);
            return;
        }
        let last = data.flags & flag::FINAL != 0;
        let tag = self.tasks.at(slot).tag(slot);
        if head.data_bytes > 0 {
            self.segment = Segment::Data { tag, at: data.offset, last, head: *head };
        } else {
            self.on_data_complete(tag, last, head, true, device);
        }
    }

    /// Number, offset and length are those that are expected: data come in order.
    pub(super) fn fits(&mut self, slot: u16, head: &Head, data: &DataOut) -> bool {
        let (immediate_limit, last) = (self.parameters.first_burst_bytes, data.flags & flag::FINAL != 0);
        let task = self.tasks.at(slot);
        let Some(end) = data.offset.checked_add(head.data_bytes) else { return false };
        if data.offset != task.received || end > task.command.expected_bytes {
            return false;
        }
        if data.target_tag == NO_TAG {
            return task.unsolicited == Some(data.data_sn) && end <= immediate_limit;
        }
        let Some(open) = task.r2ts.front() else { return false };
        // The last PDU of a sequence completes it, and no other does.
        open.target_tag == data.target_tag
            && open.data_sn == data.data_sn
            && end <= open.end
            && (end == open.end) == last
    }

    /// A task whose data cannot be used.
    fn fail_data(&mut self, slot: u16, device: &mut Device) {
        self.give_up(slot, device);
        let task = self.tasks.at(slot);
        task.unsolicited = None;
        task.r2ts.clear();
        if matches!(task.state, State::Held | State::Arriving) {
            // It has no turn of its own any more.
            task.fault = Some(DATA_ERROR);
            return;
        }
        let tag = task.tag(slot);
        let answer = match std::mem::replace(&mut task.state, State::Receiving) {
            State::Ending(answer) => answer,
            _ => Response::check(DATA_ERROR),
        };
        self.respond(slot, answer);
        self.outputs.push_back(Output::Cancel(tag));
        self.release(slot, device);
    }

    pub(super) fn on_data_complete(&mut self, tag: IoTag, last: bool, head: &Head, intact: bool, device: &mut Device) {
        let slot = tag.0 as u16;
        if self.tasks.of(tag).is_none() {
            return;
        }
        if !intact {
            self.reject(head, RejectReason::DATA_DIGEST_ERROR);
        }
        self.counters.written_bytes += u64::from(head.data_bytes);
        let task = self.tasks.at(slot);
        if !intact {
            task.fault = Some(CRC_ERROR);
        }
        task.received += head.data_bytes;
        let solicited = matches!(head.header, Header::DataOut(DataOut { target_tag, .. }) if target_tag != NO_TAG);
        if solicited {
            match (last, task.r2ts.front_mut()) {
                (true, _) => {
                    task.r2ts.pop_front();
                }
                (false, Some(open)) => open.data_sn += 1,
                (false, None) => {}
            }
        } else {
            task.unsolicited = if last { None } else { task.unsolicited.map(|data_sn| data_sn + 1) };
        }
        self.proceed(slot, device);
    }

    /// Data have come, or room for them is there: asks for more, or goes on.
    pub(super) fn proceed(&mut self, slot: u16, device: &mut Device) {
        let task = self.tasks.at(slot);
        match &task.state {
            State::Ending(_) if !task.is_open() => {
                if let State::Ending(answer) = std::mem::replace(&mut task.state, State::Receiving) {
                    self.respond(slot, answer);
                    self.release(slot, device);
                }
            }
            State::Receiving if task.unsolicited.is_none() => {
                if task.received < task.wanted && task.fault.is_none() {
                    self.solicit(slot);
                } else if !task.r2ts.is_empty() {
                    // All of what was asked for is awaited.
                } else if let Some(fault) = task.fault {
                    self.fail(slot, fault, device);
                } else if task.list {
                    task.state = State::Fetching;
                    let (tag, bytes) = (task.tag(slot), task.wanted);
                    self.outputs.push_back(Output::Fetch { tag, bytes });
                } else {
                    self.start_io(slot);
                }
            }
            _ => {}
        }
    }

    /// Sends as many R2Ts as may be open.
    fn solicit(&mut self, slot: u16) {
        if !self.admit(slot) {
            return;
        }
        let task = self.tasks.at(slot);
        task.solicited = task.solicited.max(task.received);
        loop {
            let task = self.tasks.at(slot);
            let left = task.wanted - task.solicited.min(task.wanted);
            if left == 0 || task.r2ts.len() >= usize::from(self.parameters.max_outstanding_r2t) {
                return;
            }
            let desired_bytes = left.min(self.parameters.max_burst_bytes);
            self.next_transfer = self.next_transfer.wrapping_add(1);
            // The number of the task is never FFFF, so neither is the tag.
            let target_tag = u32::from(self.next_transfer) << 16 | u32::from(slot);
            let offset = task.solicited;
            task.solicited += desired_bytes;
            task.r2ts.push_back(OpenR2t { target_tag, end: task.solicited, data_sn: 0 });
            let r2t_sn = task.data_sn;
            task.data_sn += 1;
            let (lun, initiator_tag) = (task.command.lun, task.command.initiator_tag);
            let (exp_cmd_sn, max_cmd_sn) = self.window();
            let stat_sn = UNNUMBERED;
            let r2t =
                R2t { lun, initiator_tag, target_tag, stat_sn, exp_cmd_sn, max_cmd_sn, r2t_sn, offset, desired_bytes };
            self.send(r2t, Box::default());
        }
    }
}
