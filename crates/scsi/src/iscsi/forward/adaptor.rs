//! The Header Adaptor: conversion of headers between host and back ends. Tags, LUN, offsets and
//! sequence numbers are local to one side and are replaced (RFC 7143, section 11).

use super::backends::{BackEnd, LOGOUT_TAG};
use super::table::{BackR2t, BackTag, Entry, Part, part_number};
use sanloom_wire::cdb::Cdb;
use sanloom_wire::iscsi::code::{attribute, flag, function, logout};
use sanloom_wire::iscsi::{
    BHS_BYTES, Bhs, DataOut, Head, LogoutRequest, NO_TAG, NopIn, NopOut, ScsiCommand, TaskRequest, at,
};
use sanloom_wire::lun::LunBytes;

impl Entry {
    /// Builds the SCSI Command for a part. `immediate_bytes` of data follow in the same PDU; `more`
    /// means that unsolicited Data-Out PDUs follow.
    pub(super) fn command(&self, part: usize, immediate_bytes: u32, more: bool, back: &BackEnd) -> [u8; BHS_BYTES] {
        let Part { lun, lba, blocks, bytes, fua, cmd_sn, .. } = self.parts[part];
        let (direction_flag, cdb) = match self.is_read() {
            true => (flag::READ, Cdb::Read { lba, blocks, fua }),
            false => (flag::WRITE, Cdb::Write { lba, blocks, fua }),
        };
        let command = ScsiCommand {
            flags: direction_flag | attribute::SIMPLE | if more { 0 } else { flag::FINAL },
            lun,
            initiator_tag: self.back_tag(part, false),
            expected_bytes: bytes,
            cmd_sn,
            exp_stat_sn: back.exp_stat_sn,
            cdb: cdb.to_bytes(),
        };
        Head::with_data(command, immediate_bytes).to_bytes()
    }

    /// Builds a Data-Out for a part; `from` is an offset in the data of the host's command.
    pub(super) fn data_out(
        &self,
        part: usize,
        (from, bytes): (u32, u32),
        r2t: Option<&BackR2t>,
        last: bool,
        back: &BackEnd,
    ) -> [u8; BHS_BYTES] {
        let of = &self.parts[part];
        let data = DataOut {
            flags: if last { flag::FINAL } else { 0 },
            lun: if r2t.is_some() { of.lun } else { [0; 8] },
            initiator_tag: self.back_tag(part, false),
            target_tag: r2t.map_or(NO_TAG, |r2t| r2t.target_tag),
            exp_stat_sn: back.exp_stat_sn,
            data_sn: r2t.map_or(of.data_sn, |r2t| r2t.data_sn),
            offset: from - of.at,
        };
        Head::with_data(data, bytes).to_bytes()
    }

    /// Builds an ABORT TASK for a part.
    pub(super) fn abort(&self, part: usize, back: &BackEnd) -> [u8; BHS_BYTES] {
        let request = TaskRequest {
            function: function::ABORT_TASK,
            lun: self.parts[part].lun,
            initiator_tag: self.back_tag(part, true),
            referenced_tag: self.back_tag(part, false),
            cmd_sn: back.cmd_sn,
            exp_stat_sn: back.exp_stat_sn,
            ref_cmd_sn: self.parts[part].cmd_sn,
            exp_data_sn: 0,
        };
        Head { immediate: true, ..Head::new(request) }.to_bytes()
    }

    fn back_tag(&self, part: usize, abort: bool) -> u32 {
        BackTag::new(self.tag, part_number(part), abort).to_tag()
    }
}

impl BackEnd {
    /// Builds a TEST UNIT READY with the next command number.
    pub(super) fn test_unit_ready(&mut self, lun: LunBytes, initiator_tag: u32) -> [u8; BHS_BYTES] {
        let command = ScsiCommand {
            flags: flag::FINAL | attribute::SIMPLE,
            lun,
            initiator_tag,
            expected_bytes: 0,
            cmd_sn: self.next_cmd_sn(),
            exp_stat_sn: self.exp_stat_sn,
            cdb: Cdb::TestUnitReady.to_bytes(),
        };
        Head::new(command).to_bytes()
    }

    /// Builds the reply to a NOP-In with which the target pings this session.
    pub(super) fn pong(&self, nop: &NopIn) -> [u8; BHS_BYTES] {
        let (target_tag, lun) = (nop.target_tag, nop.lun);
        self.nop(NopOut { lun, initiator_tag: NO_TAG, target_tag, cmd_sn: self.cmd_sn, exp_stat_sn: self.exp_stat_sn })
    }

    /// Builds a NOP-Out that pings the target.
    pub(super) fn ping(&self, initiator_tag: u32) -> [u8; BHS_BYTES] {
        let (cmd_sn, exp_stat_sn) = (self.cmd_sn, self.exp_stat_sn);
        self.nop(NopOut { lun: [0; 8], initiator_tag, target_tag: NO_TAG, cmd_sn, exp_stat_sn })
    }

    fn nop(&self, nop: NopOut) -> [u8; BHS_BYTES] {
        Head { immediate: true, ..Head::new(nop) }.to_bytes()
    }
}

/// Builds the request that ends a session with a back end and all commands in flight in it (RFC
/// 7143, section 11.14). `cmd_sn` is the number of the next command, `exp_stat_sn` that of the next
/// status.
pub fn logout(cmd_sn: u32, exp_stat_sn: u32) -> Head {
    let request =
        LogoutRequest { reason: logout::CLOSE_SESSION, initiator_tag: LOGOUT_TAG, cid: 0, cmd_sn, exp_stat_sn };
    Head { immediate: true, ..Head::new(request) }
}

/// Fields of a Data-In on the host's side.
pub(super) struct DataInOf {
    pub(super) initiator_tag: u32,
    pub(super) data_sn: u32,
    pub(super) offset: u32,
    pub(super) bytes: u32,
    /// True at the end of a sequence.
    pub(super) last: bool,
    /// True if the PDU carries status GOOD.
    pub(super) status: bool,
    pub(super) window: (u32, u32),
}

/// Rewrites a Data-In of a back end, in place, for the host. The driver sets StatSN.
#[inline]
pub(super) fn data_in(header: &mut Bhs, of: &DataInOf) {
    let status = if of.status { flag::STATUS } else { 0 };
    header.0[at::FLAGS] = status | if of.last || of.status { flag::FINAL } else { 0 };
    header.set_data_bytes(of.bytes);
    header.0[at::LUN..at::LUN + 8].fill(0);
    header.set_word(at::INITIATOR_TAG, of.initiator_tag);
    header.set_word(at::TARGET_TAG, NO_TAG);
    header.set_word(at::CMD_SN, 0);
    header.set_word(at::EXP_SN, of.window.0);
    header.set_word(at::MAX_CMD_SN, of.window.1);
    header.set_word(at::DATA_SN, of.data_sn);
    header.set_word(at::OFFSET, of.offset);
    header.set_word(at::LENGTH, 0);
}
