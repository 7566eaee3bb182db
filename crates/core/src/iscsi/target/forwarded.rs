//! The host's side of tasks that the forwarding path has: they stand in the session's table, so that numbers, windows and task
//! management are the same for both paths. See [`crate::iscsi::forward`].

use super::command::residual;
use super::data::DATA_ERROR;
use super::session::Session;
use super::task::{OpenR2t, State, Task};
use crate::iscsi::sequence::{Order, UNNUMBERED};
use crate::scsi::{BlockIo, Command, Device, IoStatus, IoTag, Response, Step};
use crate::time::Instant;
use sanloom_wire::iscsi::code::{attribute, flag};
use sanloom_wire::iscsi::{DataOut, Head, Header, NO_TAG, R2t, RejectReason, ScsiCommand, emit_sense};
use sanloom_wire::sense::Sense;

/// What a Data-Out is to the forwarding path.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(in crate::iscsi) enum DataOutcome {
    /// Nothing: the task is not forwarded.
    Other,
    /// It is in order.
    Taken(IoTag),
    /// It is not, and was rejected.
    Wrong(IoTag, Sense),
}

impl Session {
    /// What a command would do, if session and device let it begin at once and nothing about it is unusual. Nothing changes.
    pub(in crate::iscsi) fn forwardable(&self, head: &Head, command: &ScsiCommand, device: &Device) -> Option<BlockIo> {
        let ordinary = matches!(command.flags & flag::ATTRIBUTE, attribute::UNTAGGED | attribute::SIMPLE);
        let next = !self.is_over() && self.held.is_empty() && self.seq.order(command.cmd_sn) == Order::Next;
        if head.immediate || !ordinary || !next || self.objection(head, command).is_some() {
            return None;
        }
        let nexus = self.nexus?;
        let command = Command {
            nexus,
            tag: IoTag::default(),
            unit: device.unit(nexus, command.lun),
            cdb: command.cdb,
            attribute: crate::scsi::Attribute::Simple,
        };
        device.would_transfer(&command)
    }

    /// Takes a command of which [`forwardable`](Self::forwardable) knew what it does.
    pub(in crate::iscsi) fn begin_forwarded(
        &mut self,
        now: Instant,
        head: &Head,
        command: ScsiCommand,
        device: &mut Device,
    ) -> Option<IoTag> {
        self.heard(now);
        self.counters.commands += 1;
        let nexus = self.nexus?;
        let slot = self.tasks.allocate(command, false, nexus);
        self.seq.advance();
        self.seq.begin();
        let task = self.tasks.at(slot);
        let tag = task.tag(slot);
        task.counted = true;
        task.unit = device.unit(nexus, command.lun);
        let unit = task.unit;
        let step = device.begin(&Command { nexus, tag, unit, cdb: command.cdb, attribute: task.attribute() });
        let Step::Io(io) = step else {
            self.free(slot);
            return None;
        };
        let task = self.tasks.at(slot);
        (task.begun, task.io, task.wanted, task.received) = (true, io, io.bytes, head.data_bytes);
        task.state = State::Forwarded;
        task.forwarded = true;
        self.counters.written_bytes += u64::from(head.data_bytes);
        Some(tag)
    }

    fn forwarded(&mut self, tag: IoTag) -> Option<&mut Task> {
        self.tasks.of(tag).filter(|task| task.state == State::Forwarded)?;
        Some(self.tasks.at(tag.0 as u16))
    }

    /// A Data-Out has come.
    pub(in crate::iscsi) fn forwarded_data(&mut self, now: Instant, head: &Head, data: &DataOut) -> DataOutcome {
        let slot = match data.target_tag {
            NO_TAG => self.tasks.find(data.initiator_tag),
            tag => Some(tag as u16),
        };
        // Data that nobody awaits are nobody's.
        let of = |task: &Task| {
            let same = task.command.initiator_tag == data.initiator_tag;
            task.state == State::Forwarded && same && task.is_open()
        };
        let Some(slot) = slot.filter(|slot| self.tasks.get(*slot).is_some_and(of)) else { return DataOutcome::Other };
        self.heard(now);
        let tag = self.tasks.at(slot).tag(slot);
        if !self.fits(slot, head, data) {
            self.reject(head, RejectReason::PROTOCOL_ERROR);
            let task = self.tasks.at(slot);
            task.unsolicited = None;
            task.r2ts.clear();
            return DataOutcome::Wrong(tag, DATA_ERROR);
        }
        self.counters.written_bytes += u64::from(head.data_bytes);
        let last = data.flags & flag::FINAL != 0;
        let task = self.tasks.at(slot);
        task.received += head.data_bytes;
        if data.target_tag == NO_TAG {
            task.unsolicited = if last { None } else { task.unsolicited.map(|data_sn| data_sn + 1) };
        } else if last {
            task.r2ts.pop_front();
        } else if let Some(open) = task.r2ts.front_mut() {
            open.data_sn += 1;
        }
        DataOutcome::Taken(tag)
    }

    /// Unsolicited data of a task are still to come.
    pub(in crate::iscsi) fn awaits_unsolicited(&mut self, tag: IoTag) -> bool {
        self.forwarded(tag).is_some_and(|task| task.unsolicited.is_some())
    }

    /// The host still sends data for a task.
    pub(in crate::iscsi) fn awaits_data(&mut self, tag: IoTag) -> bool {
        self.forwarded(tag).is_some_and(|task| task.is_open())
    }

    /// Up to where data of a task came or were asked for.
    pub(in crate::iscsi) fn solicited(&mut self, tag: IoTag) -> u32 {
        self.forwarded(tag).map_or(0, |task| task.solicited.max(task.received))
    }

    /// Asks the host for the next data of a task, up to `end`. False if it has as many R2Ts as were agreed.
    pub(in crate::iscsi) fn solicit_forwarded(&mut self, tag: IoTag, end: u32) -> bool {
        let (most, burst) = (self.parameters.max_outstanding_r2t, self.parameters.max_burst_bytes);
        let slot = tag.0 as u16;
        let next_transfer = self.next_transfer.wrapping_add(1);
        let Some(task) = self.forwarded(tag).filter(|task| task.r2ts.len() < usize::from(most)) else { return false };
        let offset = task.solicited.max(task.received);
        let desired_bytes = end.saturating_sub(offset).min(burst);
        let target_tag = u32::from(next_transfer) << 16 | u32::from(slot);
        task.solicited = offset + desired_bytes;
        task.r2ts.push_back(OpenR2t { target_tag, end: task.solicited, data_sn: 0 });
        let r2t_sn = task.data_sn;
        task.data_sn += 1;
        let (lun, initiator_tag) = (task.command.lun, task.command.initiator_tag);
        self.next_transfer = next_transfer;
        let (exp_cmd_sn, max_cmd_sn) = self.window();
        let stat_sn = UNNUMBERED;
        let r2t =
            R2t { lun, initiator_tag, target_tag, stat_sn, exp_cmd_sn, max_cmd_sn, r2t_sn, offset, desired_bytes };
        self.send(r2t, Box::default());
        true
    }

    /// Initiator task tag of a task, and the number of the Data-In of it that leaves now.
    pub(in crate::iscsi) fn next_data_in(&mut self, tag: IoTag, bytes: u32) -> Option<(u32, u32)> {
        self.counters.read_bytes += u64::from(bytes);
        let task = self.forwarded(tag)?;
        let data_sn = task.data_sn;
        task.data_sn += 1;
        Some((task.command.initiator_tag, data_sn))
    }

    /// The status of a task leaves in its last Data-In.
    pub(in crate::iscsi) fn collapse_forwarded(&mut self, tag: IoTag) {
        self.counters.responses += 1;
        if self.forwarded(tag).is_some() {
            self.close_window_of(tag.0 as u16);
        }
    }

    /// Answers a task of which so many bytes have moved.
    pub(in crate::iscsi) fn respond_forwarded(&mut self, tag: IoTag, response: &Response, moved: u32) {
        let Some(task) = self.forwarded(tag) else { return };
        let expected = task.command.expected_bytes;
        let mut segment = Vec::new();
        self.counters.responses += 1;
        if let Some(sense) = response.sense {
            self.counters.check_conditions += 1;
            emit_sense(&sense.to_bytes(), &mut segment);
        }
        self.send_response(tag.0 as u16, response.status, residual(moved, expected), segment.into());
    }

    /// A back end has found that data of a task, which it had as the host has sent them, do not fit their digest. The host is told with the
    /// header of what it has sent, as far as that is kept (RFC 7143, section 7.8). `at_back`: as the back end has it.
    pub(in crate::iscsi) fn reject_forwarded(&mut self, tag: IoTag, at_back: &Head) {
        let Some(task) = self.forwarded(tag) else { return };
        let command = task.command;
        let header: Header = match at_back.header {
            Header::DataOut(data) => {
                let end = data.offset + at_back.data_bytes;
                let open = task.r2ts.iter().find(|open| data.target_tag != NO_TAG && end <= open.end);
                let target_tag = open.map_or(NO_TAG, |open| open.target_tag);
                let (lun, initiator_tag) = (command.lun, command.initiator_tag);
                DataOut { lun, initiator_tag, target_tag, exp_stat_sn: 0, ..data }.into()
            }
            _ => command.into(),
        };
        self.counters.digest_errors += 1;
        self.reject(&Head::with_data(header, at_back.data_bytes), RejectReason::DATA_DIGEST_ERROR);
    }

    /// No back end works for a task any more, and if it was not aborted, its response has gone. It had no buffer, so there is nothing to
    /// release: an output would stop the Data Mover at every task.
    pub(in crate::iscsi) fn end_forwarded(&mut self, tag: IoTag, device: &mut Device) {
        let slot = tag.0 as u16;
        let Some(task) = self.tasks.of(tag) else { return };
        match task.state {
            State::Forwarded => {
                let (id, op) = (task.id(slot), task.io.op);
                self.tasks.at(slot).begun = false;
                // What it says is known already.
                let _over = device.io_done(id, op, IoStatus::Good);
                self.release(slot, device);
            }
            State::Dying => {
                self.release(slot, device);
                self.answer_held_back();
            }
            _ => {}
        }
    }
}
