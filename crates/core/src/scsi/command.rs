//! What commands do, but for those with a file of their own: everything that may be in a command's way first, then the
//! command itself (SPC, SBC).

use super::device::Device;
use super::inquiry::{MAX_COMPARE_BLOCKS, MAX_UNMAP_BLOCKS, MAX_UNMAP_DESCRIPTORS, MAX_WRITE_SAME_BLOCKS};
use super::io::IoOp;
use super::step::{Command, Response, Step, TaskId};
use super::tasks::Pending;
use super::unit::{Unit, answer, check, illegal};
use super::{mode, opcodes};
use sanloom_wire::cdb::{Cdb, operation, status};
use sanloom_wire::scsi::capacity::{ReadCapacity10, ReadCapacity16};
use sanloom_wire::scsi::lba_status::{self, LbaStatus, MAPPED};
use sanloom_wire::scsi::luns;
use sanloom_wire::scsi::unmap::{self, BlockDescriptor};
use sanloom_wire::sense::{Sense, SenseCode, SenseKey};
use std::collections::VecDeque;

/// START STOP UNIT has stopped the unit.
const STOPPED: Sense = Sense::new(SenseKey::NOT_READY, SenseCode::NOT_READY_INITIALIZING);
/// Byte 1 of block commands, where the anchor and unmap bits stand.
const FLAGS_BYTE: u16 = 1;
/// More than all numbers of groups.
const MAX_PORT_GROUPS_BYTES: u32 = 4 + (4 << 16);

impl Device {
    /// The command, whose turn it is.
    pub(super) fn execute(&mut self, command: &Command, cdb: Cdb) -> Step {
        let unit = command.unit.map(|number| &self.units[usize::from(number)]);
        match (cdb, unit) {
            (Cdb::Inquiry { vpd_page, allocation_len }, unit) => {
                return self.inquiry(command.nexus, unit, vpd_page, allocation_len);
            }
            (Cdb::ReportLuns { allocation_len }, _) => return self.report_luns(command, allocation_len),
            (Cdb::RequestSense { descriptor, allocation_len }, _) => {
                return self.request_sense(command, descriptor, allocation_len);
            }
            _ => {}
        }
        let Some(number) = command.unit else {
            return check(illegal(SenseCode::LUN_NOT_SUPPORTED));
        };
        if let Some(attention) = self.take_attention(number, command.nexus) {
            return check(attention);
        }
        if !matches!(cdb, Cdb::Other(_))
            && let Some(byte) = opcodes::wants_aca(&command.cdb)
        {
            return check(Sense::invalid_field_in_cdb(byte));
        }
        if let Some(refusal) = self.port_refusal(command.nexus, &cdb) {
            return check(refusal);
        }
        if self.reservation_conflict(number, command.nexus, &cdb) {
            return Step::Done(Response::status(status::RESERVATION_CONFLICT));
        }
        if let Some(step) = self.manage_unit(number, command, cdb) {
            return step;
        }
        let step = self.access(number, command, cdb);
        match step {
            // A length that is too large is pointed at.
            Step::Done(Response { sense: Some(sense), .. })
                if sense.code == SenseCode::INVALID_FIELD_IN_CDB && sense.key_specific == [0; 3] =>
            {
                check(Sense::invalid_field_in_cdb(opcodes::length_byte(command.cdb[0])))
            }
            step => step,
        }
    }

    /// Commands that need no medium.
    fn manage_unit(&mut self, number: u16, command: &Command, cdb: Cdb) -> Option<Step> {
        let unit = &mut self.units[usize::from(number)];
        let thin = unit.config.thin;
        let several = self.groups.are_several();
        let has = opcodes::Has { thin, port_groups: several };
        Some(match cdb {
            Cdb::ModeSense { .. } => mode::sense(unit, cdb),
            Cdb::ModeSelect { page_format, save, list_len, .. } => mode::select(page_format, save, list_len),
            Cdb::StartStopUnit { power, load_eject, start, no_flush, .. } => {
                const FLAGS: u16 = 4;
                if power != 0 || load_eject {
                    return Some(check(Sense::invalid_field_in_cdb(FLAGS)));
                }
                unit.stopped = !start;
                let flush = !start && !no_flush && unit.mode.write_cache;
                let step =
                    if flush { Step::Io(unit.io(IoOp::Flush, 0, 0, 0, true)) } else { Step::Done(Response::GOOD) };
                self.settle();
                step
            }
            Cdb::Reserve6 => {
                unit.reserved = Some(command.nexus);
                self.settle();
                Step::Done(Response::GOOD)
            }
            Cdb::Release6 => {
                if unit.reserved == Some(command.nexus) {
                    unit.reserved = None;
                    self.settle();
                }
                Step::Done(Response::GOOD)
            }
            Cdb::PersistentReserveIn { action, allocation_len } => self.reservation_in(number, action, allocation_len),
            Cdb::PersistentReserveOut { action, scope, kind, list_len } => {
                self.reservation_out(action, scope, kind, list_len)
            }
            Cdb::ReportTargetPortGroups { extended, allocation_len } => {
                self.report_port_groups(extended, allocation_len)
            }
            Cdb::SetTargetPortGroups { .. } if !several => check(illegal(SenseCode::INVALID_OPERATION)),
            Cdb::SetTargetPortGroups { list_len: 0 } => Step::Done(Response::GOOD),
            Cdb::SetTargetPortGroups { list_len } if list_len > MAX_PORT_GROUPS_BYTES => {
                check(Sense::invalid_field_in_cdb(opcodes::length_byte(operation::MAINTENANCE_OUT)))
            }
            Cdb::SetTargetPortGroups { list_len } => Step::Parameters { bytes: list_len },
            Cdb::ReportSupportedOperations { timeouts, options, operation, action, allocation_len } => {
                opcodes::report(options, operation, action, timeouts, has, allocation_len)
            }
            Cdb::ReportSupportedTaskManagement { extended, allocation_len } => {
                opcodes::report_task_management(extended, allocation_len)
            }
            Cdb::Other(bytes) if bytes[0] == operation::REPORT_LUNS && bytes[2] == 1 => {
                let mut data = Vec::new();
                luns::emit(&[], &mut data);
                answer(data, u32::from_be_bytes([bytes[6], bytes[7], bytes[8], bytes[9]]))
            }
            Cdb::Unmap { .. } if !thin => check(illegal(SenseCode::INVALID_OPERATION)),
            Cdb::Other(bytes) => check(opcodes::unsupported(&bytes, has)),
            _ => return None,
        })
    }

    /// Commands that need the medium.
    fn access(&mut self, number: u16, command: &Command, cdb: Cdb) -> Step {
        let unit = &self.units[usize::from(number)];
        if unit.stopped {
            return check(STOPPED);
        }
        if changes_medium(&cdb)
            && let Some(protection) = unit.protection()
        {
            return check(protection);
        }
        let done = Step::Done(Response::GOOD);
        let result = match cdb {
            Cdb::Read { lba, blocks, fua } => Ok(unit.transfer(IoOp::Read, lba, blocks, fua)),
            Cdb::Write { lba, blocks, fua } => Ok(unit.transfer(IoOp::Write, lba, blocks, fua)),
            Cdb::WriteAndVerify { lba, blocks, .. } => Ok(unit.transfer(IoOp::WriteVerify, lba, blocks, true)),
            Cdb::Verify { lba, blocks, byte_check } => verify(unit, lba, blocks, byte_check),
            Cdb::ReadCapacity10 => Ok(read_capacity_10(unit)),
            Cdb::ReadCapacity16 { allocation_len } => Ok(read_capacity_16(unit, allocation_len)),
            Cdb::SynchronizeCache { lba, blocks, .. } => unit.within(lba, blocks.into()).map(|()| {
                if unit.mode.write_cache { Step::Io(unit.io(IoOp::Flush, lba, blocks, 0, true)) } else { done }
            }),
            Cdb::Prefetch { lba, blocks, .. } => unit.within(lba, blocks.into()).map(|()| done),
            Cdb::WriteSame { .. } => write_same(unit, cdb),
            Cdb::CompareAndWrite { lba, blocks, fua } => compare_and_write(unit, lba, blocks, fua),
            Cdb::Unmap { anchor: true, .. } => Err(Sense::invalid_field_in_cdb(FLAGS_BYTE)),
            Cdb::Unmap { list_len: 0, .. } => Ok(done),
            Cdb::Unmap { list_len, .. } => Ok(Step::Parameters { bytes: list_len.into() }),
            Cdb::GetLbaStatus { lba, allocation_len } => {
                let task = TaskId { nexus: command.nexus, tag: command.tag, unit: number };
                return self.lba_status(task, lba, allocation_len);
            }
            // TEST UNIT READY; the others do not come here.
            _ => Ok(done),
        };
        result.unwrap_or_else(check)
    }

    /// REPORT LUNS (SPC).
    fn report_luns(&mut self, command: &Command, allocation_len: u32) -> Step {
        const MIN_BYTES: u32 = 16;
        if allocation_len < MIN_BYTES {
            return check(Sense::invalid_field_in_cdb(opcodes::length_byte(operation::REPORT_LUNS)));
        }
        // What it says is what the condition is about.
        for unit in 0..self.units.len() as u16 {
            self.forget_attention(unit, command.nexus, SenseCode::REPORTED_LUNS_CHANGED);
        }
        let mut data = Vec::new();
        luns::emit(&self.luns(command.nexus), &mut data);
        answer(data, allocation_len)
    }

    /// REQUEST SENSE (SPC): a unit attention, or that there is nothing to say. A sense goes out with the status of its
    /// command, so nothing else is kept.
    fn request_sense(&mut self, command: &Command, descriptor: bool, allocation_len: u8) -> Step {
        let sense = match command.unit {
            None => illegal(SenseCode::LUN_NOT_SUPPORTED),
            Some(number) => {
                let stopped = self.units[usize::from(number)].stopped;
                let nothing = Sense::new(SenseKey::NO_SENSE, SenseCode::NONE);
                let attention = self.take_attention(number, command.nexus);
                attention.unwrap_or(if stopped { STOPPED } else { nothing })
            }
        };
        answer(Sense { descriptor, ..sense }.to_bytes().into(), allocation_len.into())
    }

    /// GET LBA STATUS (SBC).
    fn lba_status(&mut self, task: TaskId, lba: u64, allocation_len: u32) -> Step {
        let unit = &self.units[usize::from(task.unit)];
        if lba >= unit.config.blocks {
            return check(illegal(SenseCode::LBA_OUT_OF_RANGE));
        }
        let blocks = u32::try_from(unit.config.blocks - lba).unwrap_or(u32::MAX);
        if unit.config.thin {
            let io = unit.io(IoOp::Mapping, lba, blocks, 0, false);
            self.pending.insert(task, Pending::Mapping { lba, allocation_len });
            return Step::Io(io);
        }
        let mut data = Vec::new();
        lba_status::emit(&[LbaStatus { lba, blocks, provisioning: MAPPED }], &mut data);
        answer(data, allocation_len)
    }

    /// A parameter list is there.
    pub(super) fn take_list(&mut self, task: TaskId, cdb: Cdb, list: &[u8]) -> Step {
        let wanted = match cdb {
            Cdb::ModeSelect { list_len, .. } | Cdb::Unmap { list_len, .. } => u32::from(list_len),
            Cdb::PersistentReserveOut { list_len, .. } | Cdb::SetTargetPortGroups { list_len } => list_len,
            _ => 0,
        };
        if (list.len() as u64) < u64::from(wanted) {
            return check(illegal(SenseCode::PARAMETER_LIST_LENGTH));
        }
        match cdb {
            Cdb::ModeSelect { long, .. } => self.select_modes(task, list, long),
            Cdb::Unmap { .. } => self.unmap(task, list),
            Cdb::PersistentReserveOut { action, kind, .. } => self.reserve_with(task, action, kind, list),
            Cdb::SetTargetPortGroups { .. } => self.take_port_groups(task.nexus, list),
            _ => Step::Done(Response::GOOD),
        }
    }

    /// UNMAP: all ranges are looked at before any is given back.
    fn unmap(&mut self, task: TaskId, list: &[u8]) -> Step {
        let Ok(ranges) = unmap::parse(list) else {
            return check(illegal(SenseCode::PARAMETER_LIST_LENGTH));
        };
        let unit = &self.units[usize::from(task.unit)];
        let total: u64 = ranges.iter().map(|range| u64::from(range.blocks)).sum();
        if ranges.len() > MAX_UNMAP_DESCRIPTORS as usize || total > MAX_UNMAP_BLOCKS.into() {
            return check(illegal(SenseCode::INVALID_FIELD_IN_LIST));
        }
        if let Some(sense) = ranges.iter().find_map(|range| unit.within(range.lba, range.blocks.into()).err()) {
            return check(sense);
        }
        self.unmap_next(task, ranges.into_iter().filter(|range| range.blocks > 0).collect())
    }

    pub(super) fn unmap_next(&mut self, task: TaskId, mut rest: VecDeque<BlockDescriptor>) -> Step {
        let Some(BlockDescriptor { lba, blocks }) = rest.pop_front() else {
            return Step::Done(Response::GOOD);
        };
        let io = self.units[usize::from(task.unit)].io(IoOp::Unmap, lba, blocks, 0, false);
        self.pending.insert(task, Pending::Unmap(rest));
        Step::Io(io)
    }
}

fn changes_medium(cdb: &Cdb) -> bool {
    matches!(
        cdb,
        Cdb::Write { .. }
            | Cdb::WriteAndVerify { .. }
            | Cdb::WriteSame { .. }
            | Cdb::CompareAndWrite { .. }
            | Cdb::Unmap { .. }
    )
}

/// VERIFY (SBC).
fn verify(unit: &Unit, lba: u64, blocks: u32, byte_check: u8) -> Result<Step, Sense> {
    let bytes = unit.range(lba, blocks)?;
    let (op, bytes) = match byte_check {
        _ if blocks == 0 => return Ok(Step::Done(Response::GOOD)),
        0 => (IoOp::Verify, 0),
        1 => (IoOp::Compare, bytes),
        _ => (IoOp::CompareSame, unit.config.block_bytes),
    };
    Ok(Step::Io(unit.io(op, lba, blocks, bytes, false)))
}

/// WRITE SAME (SBC).
fn write_same(unit: &Unit, cdb: Cdb) -> Result<Step, Sense> {
    let Cdb::WriteSame { lba, blocks, unmap, anchor, no_data } = cdb else {
        return Err(illegal(SenseCode::INVALID_OPERATION));
    };
    if anchor || (unmap && !unit.config.thin) {
        return Err(Sense::invalid_field_in_cdb(FLAGS_BYTE));
    }
    if blocks == 0 || blocks > MAX_WRITE_SAME_BLOCKS {
        return Err(illegal(SenseCode::INVALID_FIELD_IN_CDB));
    }
    unit.within(lba, blocks.into())?;
    let (op, bytes) = match (no_data, unmap) {
        (true, true) => (IoOp::Unmap, 0),
        (true, false) => (IoOp::WriteZeroes, 0),
        (false, _) => (IoOp::WriteSame, unit.config.block_bytes),
    };
    Ok(Step::Io(unit.io(op, lba, blocks, bytes, false)))
}

/// COMPARE AND WRITE (SBC).
fn compare_and_write(unit: &Unit, lba: u64, blocks: u8, fua: bool) -> Result<Step, Sense> {
    debug_assert_eq!(MAX_COMPARE_BLOCKS, u8::MAX, "every count fits");
    unit.within(lba, blocks.into())?;
    if blocks == 0 {
        return Ok(Step::Done(Response::GOOD));
    }
    let bytes = u32::from(blocks).checked_mul(2).and_then(|twice| twice.checked_mul(unit.config.block_bytes));
    let bytes = bytes.ok_or(illegal(SenseCode::INVALID_FIELD_IN_CDB))?;
    Ok(Step::Io(unit.io(IoOp::CompareAndWrite, lba, blocks.into(), bytes, fua)))
}

/// READ CAPACITY (10) (SBC): a LUN that is too large says FFFFFFFF.
fn read_capacity_10(unit: &Unit) -> Step {
    let last_lba = u32::try_from(unit.config.blocks.saturating_sub(1)).unwrap_or(u32::MAX);
    let mut data = Vec::new();
    ReadCapacity10 { last_lba, block_bytes: unit.config.block_bytes }.emit(&mut data);
    Step::Done(Response::data(data))
}

/// READ CAPACITY (16) (SBC).
fn read_capacity_16(unit: &Unit, allocation_len: u32) -> Step {
    let capacity = ReadCapacity16 {
        last_lba: unit.config.blocks.saturating_sub(1),
        block_bytes: unit.config.block_bytes,
        physical_exponent: 0,
        thin: unit.config.thin,
        zeroes: unit.config.thin,
    };
    let mut data = Vec::new();
    capacity.emit(&mut data);
    answer(data, allocation_len)
}
