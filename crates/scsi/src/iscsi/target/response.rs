//! Responses and Data-In (RFC 7143, sections 11.4 and 11.7).

use super::engine::TaskEngine;
use super::event::Output;
use crate::iscsi::framer::len32;
use crate::iscsi::sequence::UNNUMBERED;
use crate::scsi::{DataDirection, Response};
use sanloom_wire::cdb::status;
use sanloom_wire::iscsi::code::{flag, response};
use sanloom_wire::iscsi::{DataIn, Head, NO_TAG, ScsiResponse, emit_sense};
use std::ops::Range;

impl TaskEngine {
    /// Sends a response, with its data if there are any.
    pub(super) fn respond(&mut self, slot: u16, answer: Response) {
        self.out.counters.responses += 1;
        let Response { status, sense, mut data } = answer;
        let task = self.tasks.at(slot);
        let expected = task.command.expected_bytes;
        if let Some(sense) = sense {
            self.out.counters.check_conditions += 1;
            let mut segment = Vec::new();
            emit_sense(&sense.to_bytes(), &mut segment);
            let moved = task.received.min(expected);
            return self.send_response(slot, status, residual(moved, expected), segment.into());
        }
        if data.is_empty() || task.expected(DataDirection::Read) == 0 {
            let moved = match task.io.op.direction() {
                DataDirection::None if !task.is_parameter_list => len32(data.len()),
                DataDirection::Read => len32(data.len()),
                _ => task.io.bytes,
            };
            let moved = if status == status::GOOD { moved } else { 0 };
            return self.send_response(slot, status, residual(moved, expected), Box::default());
        }
        let residual = residual(len32(data.len()), expected);
        data.truncate(expected as usize);
        let tag = task.tag(slot);
        self.send_data(slot, len32(data.len()), status, residual, |head, at| {
            let end = (at + head.data_bytes) as usize;
            Output::Send { head, data: data[at as usize..end].into() }
        });
        self.out.push(Output::Release(tag));
    }

    /// Sends a SCSI Response with this sense segment.
    pub(super) fn send_response(&mut self, slot: u16, status: u8, (flags, residual): (u8, u32), segment: Box<[u8]>) {
        let task = self.tasks.at(slot);
        let (initiator_tag, exp_data_sn, tag) = (task.command.initiator_tag, task.data_sn, task.tag(slot));
        self.close_window_of(slot);
        let (exp_cmd_sn, max_cmd_sn) = self.window.numbers();
        self.out.send(
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
        self.out.push(Output::Release(tag));
    }

    /// Sends the data of a read from its buffer; the last Data-In carries the status.
    pub(super) fn send_read(&mut self, slot: u16, status: u8) {
        self.out.counters.responses += 1;
        let task = self.tasks.at(slot);
        let (bytes, tag) = (task.transfer_bytes, task.tag(slot));
        let moved = if task.declares_only_opposite(DataDirection::Read) { 0 } else { task.io.bytes };
        let residual = residual(moved, task.command.expected_bytes);
        let sent = task.streamed_bytes;
        self.out.counters.read_bytes += u64::from(bytes - sent);
        if bytes == 0 {
            return self.send_response(slot, status, residual, Box::default());
        }
        self.close_window_of(slot);
        self.send_range(slot, sent..bytes, Some((status, residual)), |head, at| Output::Data { tag, head, at });
        self.out.push(Output::Release(tag));
    }

    /// Sends all data with the status.
    fn send_data(
        &mut self,
        slot: u16,
        bytes: u32,
        status: u8,
        residual: (u8, u32),
        output: impl Fn(Head, u32) -> Output,
    ) {
        self.close_window_of(slot);
        self.send_range(slot, 0..bytes, Some((status, residual)), output);
    }

    /// Splits data into Data-In PDUs: each no longer than the initiator accepts, one sequence per
    /// burst. The last one carries the status and the residual, if there are any.
    pub(super) fn send_range(
        &mut self,
        slot: u16,
        range: Range<u32>,
        end: Option<(u8, (u8, u32))>,
        output: impl Fn(Head, u32) -> Output,
    ) {
        let (longest, burst) = (self.parameters.send_bytes, self.parameters.max_burst_bytes);
        debug_assert!(longest > 0 && burst > 0, "segments and bursts have a length");
        let Range { start: mut at, end: bytes } = range;
        let (exp_cmd_sn, max_cmd_sn) = self.window.numbers();
        let task = self.tasks.at(slot);
        debug_assert!(bytes <= task.command.expected_bytes, "Data-In exceeds the expected data transfer length");
        while at < bytes {
            let left_of_burst = burst - at % burst;
            let len = longest.min(left_of_burst).min(bytes - at);
            let last = at + len == bytes;
            let mut data_in = DataIn {
                flags: if (last && end.is_some()) || len == left_of_burst { flag::FINAL } else { 0 },
                status: 0,
                lun: [0; 8],
                initiator_tag: task.command.initiator_tag,
                target_tag: NO_TAG,
                stat_sn: UNNUMBERED,
                exp_cmd_sn,
                max_cmd_sn,
                data_sn: task.next_data_sn(),
                offset: at,
                residual: 0,
            };
            if let Some((status, (residual_flag, residual))) = end.filter(|_| last) {
                data_in.flags |= flag::STATUS | residual_flag;
                (data_in.status, data_in.residual) = (status, residual);
            }
            self.out.push(output(Head::with_data(data_in, len), at));
            at += len;
        }
    }
}

/// Residual flag and count of a command that moves `bytes` if the initiator expects `expected`.
pub(super) fn residual(bytes: u32, expected: u32) -> (u8, u32) {
    if bytes > expected {
        (flag::OVERFLOW, bytes - expected)
    } else if bytes < expected {
        (flag::UNDERFLOW, expected - bytes)
    } else {
        (0, 0)
    }
}
