//! Command in flight, and transmission of its write data (RFC 7143, sections 4.2.5 and 11.3 to
//! 11.8).

use super::session::{Command, Output, Session};
use crate::scsi::DataDirection;
use sanloom_wire::iscsi::code::{attribute, flag};
use sanloom_wire::iscsi::{DataOut, Head, NO_TAG, R2t, ScsiCommand};

/// Progress of a command.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Stage {
    /// Waiting for the command window.
    Waiting,
    Sent,
    /// ABORT TASK was sent and is not answered.
    Aborting,
}

#[derive(Clone, Debug)]
pub(super) struct Active {
    pub(super) command: Command,
    pub(super) initiator_tag: u32,
    pub(super) cmd_sn: u32,
    pub(super) stage: Stage,
    pub(super) abort_tag: Option<u32>,
    /// Read data received so far in bytes; they arrive in order.
    pub(super) moved: u32,
    /// Offset up to which write data were sent or solicited, in bytes.
    solicited_end: u32,
    /// True if a data segment had a wrong digest.
    pub(super) damaged: bool,
}

impl Active {
    pub(super) fn new(command: Command, initiator_tag: u32) -> Active {
        let (cmd_sn, stage) = (0, Stage::Waiting);
        Active { command, initiator_tag, cmd_sn, stage, abort_tag: None, moved: 0, solicited_end: 0, damaged: false }
    }
}

impl Session {
    pub(super) fn send_command(&mut self, id: u64) {
        let (cmd_sn, exp_stat_sn, p) = (self.cmd_sn, self.exp_stat_sn, self.parameters);
        let Some(active) = self.active.get_mut(&id) else { return };
        self.cmd_sn = cmd_sn.wrapping_add(1);
        active.stage = Stage::Sent;
        active.cmd_sn = cmd_sn;
        let Command { lun, cdb, direction, bytes, .. } = active.command;
        let initiator_tag = active.initiator_tag;
        let write = direction == DataDirection::Write && bytes > 0;
        let first = p.first_burst_bytes.min(bytes);
        let immediate = if write && p.immediate_data { first.min(p.send_bytes) } else { 0 };
        let unsolicited = if write && !p.initial_r2t { first } else { immediate };
        active.solicited_end = unsolicited;
        let direction_flag = match direction {
            DataDirection::None => 0,
            DataDirection::Read => flag::READ,
            DataDirection::Write => flag::WRITE,
        };
        let last = if unsolicited > immediate { 0 } else { flag::FINAL };
        let head = Head::with_data(
            ScsiCommand {
                flags: last | direction_flag | attribute::SIMPLE,
                lun,
                initiator_tag,
                expected_bytes: if direction == DataDirection::None { 0 } else { bytes },
                cmd_sn,
                exp_stat_sn,
                cdb,
            },
            immediate,
        );
        self.outputs.push_back(Output::Data { id, head, at: 0 });
        self.send_data(id, NO_TAG, immediate, unsolicited);
    }

    /// Sends the data that an R2T solicits. Returns false if the R2T violates the protocol.
    pub(super) fn on_r2t(&mut self, id: u64, r2t: &R2t) -> bool {
        let Some(active) = self.active.get_mut(&id) else { return true };
        let end = r2t.offset.checked_add(r2t.desired_bytes);
        let Some(end) = end.filter(|end| *end <= active.command.bytes) else { return false };
        // At error recovery level 0 the target may not solicit data a second time.
        let is_repeated = r2t.offset < active.solicited_end;
        if active.command.direction != DataDirection::Write || r2t.desired_bytes == 0 || is_repeated {
            return false;
        }
        active.solicited_end = end;
        if active.stage == Stage::Sent {
            self.send_data(id, r2t.target_tag, r2t.offset, end);
        }
        true
    }

    /// Sends one sequence of data, in PDUs no longer than the target accepts.
    fn send_data(&mut self, id: u64, target_tag: u32, from: u32, end: u32) {
        let Some(active) = self.active.get(&id) else { return };
        let (lun, initiator_tag) = (active.command.lun, active.initiator_tag);
        let lun = if target_tag == NO_TAG { [0; 8] } else { lun };
        let (mut at, mut data_sn) = (from, 0);
        while at < end {
            let len = self.parameters.send_bytes.min(end - at);
            let flags = if at + len == end { flag::FINAL } else { 0 };
            let exp_stat_sn = self.exp_stat_sn;
            let data = DataOut { flags, lun, initiator_tag, target_tag, exp_stat_sn, data_sn, offset: at };
            self.outputs.push_back(Output::Data { id, head: Head::with_data(data, len), at });
            at += len;
            data_sn += 1;
        }
    }
}
