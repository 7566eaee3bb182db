//! Host side of forwarded tasks, kept in the session's task table, so that command numbers, windows
//! and task management are the same for both paths. See [`crate::iscsi::forward`].

use super::data::{DATA_ERROR, slot_of};
use super::engine::TaskEngine;
use super::response::residual;
use super::session::Session;
use super::task::{State, Task};
use crate::iscsi::sequence::Order;
use crate::scsi::{BlockIo, Command, Device, IoStatus, IoTag, NexusId, Response, Step};
use crate::time::Instant;
use sanloom_wire::iscsi::code::{attribute, flag};
use sanloom_wire::iscsi::{DataOut, Head, Header, NO_TAG, RejectReason, ScsiCommand, emit_sense};
use sanloom_wire::sense::Sense;

/// Result of checking a Data-Out for the forwarding path.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(in crate::iscsi) enum DataOutcome {
    /// The task is not forwarded.
    Other,
    /// The data are in order and belong to this task.
    Taken(IoTag),
    /// The data are out of order; the PDU was rejected and the task fails with this sense.
    Wrong(IoTag, Sense),
}

impl Session {
    /// Returns the block I/O of a command if it may be forwarded: session and device would start it
    /// at once, and nothing about it is unusual. Changes no state.
    pub(in crate::iscsi) fn forwardable(&self, head: &Head, command: &ScsiCommand, device: &Device) -> Option<BlockIo> {
        let ordinary = matches!(command.flags & flag::ATTRIBUTE, attribute::UNTAGGED | attribute::SIMPLE);
        let next = !self.is_over() && self.engine.is_next(command.cmd_sn);
        if head.immediate || !ordinary || !next || self.engine.reject_reason(head, command).is_some() {
            return None;
        }
        let nexus = self.nexus()?;
        let command = Command {
            nexus,
            tag: IoTag::default(),
            unit: device.unit(nexus, command.lun),
            cdb: command.cdb,
            attribute: crate::scsi::Attribute::Simple,
        };
        device.would_transfer(&command)
    }

    /// Begins a command for which [`forwardable`](Self::forwardable) has returned its block I/O.
    pub(in crate::iscsi) fn begin_forwarded(
        &mut self,
        now: Instant,
        head: &Head,
        command: ScsiCommand,
        device: &mut Device,
    ) -> Option<IoTag> {
        self.keepalive.received(now);
        let nexus = self.nexus()?;
        self.engine.begin_forwarded(head, command, nexus, device)
    }

    /// Checks a Data-Out against the forwarded tasks.
    pub(in crate::iscsi) fn forwarded_data(&mut self, now: Instant, head: &Head, data: &DataOut) -> DataOutcome {
        let outcome = self.engine.forwarded_data(head, data);
        if outcome != DataOutcome::Other {
            self.keepalive.received(now);
        }
        outcome
    }
}

impl TaskEngine {
    /// Returns whether a command number is the expected one, and no PDU is held.
    fn is_next(&self, cmd_sn: u32) -> bool {
        !self.window.has_held() && self.window.order(cmd_sn) == Order::Next
    }

    fn begin_forwarded(
        &mut self,
        head: &Head,
        command: ScsiCommand,
        nexus: NexusId,
        device: &mut Device,
    ) -> Option<IoTag> {
        debug_assert!(self.is_next(command.cmd_sn), "a forwarded command is the next one in order");
        self.out.counters.commands += 1;
        let slot = self.create(head, command, nexus);
        self.window.advance();
        self.window.begin_task();
        let task = self.tasks.at(slot);
        let tag = task.tag(slot);
        task.in_window = true;
        task.unit = device.unit(nexus, command.lun);
        let unit = task.unit;
        let step = device.begin(&Command { nexus, tag, unit, cdb: command.cdb, attribute: task.attribute() });
        let Step::Io(io) = step else {
            self.free(slot);
            return None;
        };
        (task.in_device, task.io, task.transfer_bytes) = (true, io, io.bytes);
        task.state = State::Forwarded;
        task.forwarded = true;
        self.out.counters.written_bytes += u64::from(head.data_bytes);
        Some(tag)
    }

    fn forwarded(&mut self, tag: IoTag) -> Option<&mut Task> {
        self.tasks.find_io(tag).filter(|task| task.state == State::Forwarded)?;
        Some(self.tasks.at(tag.slot()))
    }

    fn forwarded_data(&mut self, head: &Head, data: &DataOut) -> DataOutcome {
        let slot = match data.target_tag {
            NO_TAG => self.tasks.find(data.initiator_tag),
            tag => Some(slot_of(tag)),
        };
        // Data count for a forwarded task only while it expects data.
        let of = |task: &Task| {
            let same = task.command.initiator_tag == data.initiator_tag;
            task.state == State::Forwarded && same && task.is_open()
        };
        let Some(slot) = slot.filter(|slot| self.tasks.get(*slot).is_some_and(of)) else { return DataOutcome::Other };
        let first_burst_bytes = self.parameters.first_burst_bytes;
        let task = self.tasks.at(slot);
        let tag = task.tag(slot);
        if !task.is_in_order(head, data, first_burst_bytes) {
            task.close_data();
            self.reject(head, RejectReason::PROTOCOL_ERROR);
            return DataOutcome::Wrong(tag, DATA_ERROR);
        }
        task.count_data_out(head.data_bytes, data.target_tag != NO_TAG, data.flags & flag::FINAL != 0);
        self.out.counters.written_bytes += u64::from(head.data_bytes);
        DataOutcome::Taken(tag)
    }

    /// Returns whether unsolicited data of a task are still to come.
    pub(in crate::iscsi) fn awaits_unsolicited(&mut self, tag: IoTag) -> bool {
        self.forwarded(tag).is_some_and(|task| task.unsolicited.is_some())
    }

    /// Returns whether the host still owes data for a task.
    pub(in crate::iscsi) fn awaits_data(&mut self, tag: IoTag) -> bool {
        self.forwarded(tag).is_some_and(|task| task.is_open())
    }

    /// Offset up to which data of a task have arrived or were solicited, in bytes.
    pub(in crate::iscsi) fn solicited(&mut self, tag: IoTag) -> u32 {
        self.forwarded(tag).map_or(0, |task| task.solicited_end())
    }

    /// Solicits the next data of a task from the host, up to offset `end`. Returns false if the
    /// agreed number of R2Ts is already open.
    pub(in crate::iscsi) fn solicit_forwarded(&mut self, tag: IoTag, end: u32) -> bool {
        self.forwarded(tag).is_some() && self.send_r2t(tag.slot(), end)
    }

    /// Returns the host's initiator task tag and the DataSN of the next Data-In of a task.
    pub(in crate::iscsi) fn next_data_in(&mut self, tag: IoTag, bytes: u32) -> Option<(u32, u32)> {
        self.out.counters.read_bytes += u64::from(bytes);
        let task = self.forwarded(tag)?;
        Some((task.command.initiator_tag, task.next_data_sn()))
    }

    /// Records that the status of a task is sent in its last Data-In.
    pub(in crate::iscsi) fn collapse_forwarded(&mut self, tag: IoTag) {
        self.out.counters.responses += 1;
        if self.forwarded(tag).is_some() {
            self.close_window_of(tag.slot());
        }
    }

    /// Sends the response of a task of which `moved` bytes were transferred.
    pub(in crate::iscsi) fn respond_forwarded(&mut self, tag: IoTag, response: &Response, moved: u32) {
        let Some(task) = self.forwarded(tag) else { return };
        let expected = task.command.expected_bytes;
        let mut segment = Vec::new();
        self.out.counters.responses += 1;
        if let Some(sense) = response.sense {
            self.out.counters.check_conditions += 1;
            emit_sense(&sense.to_bytes(), &mut segment);
        }
        self.send_response(tag.slot(), response.status, residual(moved, expected), segment.into());
    }

    /// Sends a reject because a back end found a wrong data digest in data that were passed on
    /// unchanged. The reject carries the header that the host sent, as far as it is kept (RFC 7143,
    /// section 7.8). `at_back` is the header in the form sent to the back end.
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
        self.out.counters.digest_errors += 1;
        self.reject(&Head::with_data(header, at_back.data_bytes), RejectReason::DATA_DIGEST_ERROR);
    }

    /// Ends a task for which no back end works any more. Unless the task was aborted, its response
    /// has been sent. The task had no buffer, so no output releases one; such an output would stop
    /// the Data Mover at every task.
    pub(in crate::iscsi) fn end_forwarded(&mut self, tag: IoTag, device: &mut Device) {
        let slot = tag.slot();
        let Some(task) = self.tasks.find_io(tag) else { return };
        match task.state {
            State::Forwarded => {
                let (id, op) = (task.id(slot), task.io.op);
                self.tasks.at(slot).in_device = false;
                // The response was sent already, so the device's result is not used.
                let _over = device.io_done(id, op, IoStatus::Good);
                self.release(slot, device);
            }
            State::Aborted => {
                self.release(slot, device);
                self.send_deferred();
            }
            _ => {}
        }
    }
}
