//! Commands that require the medium of a unit (SBC). Each becomes block I/O or an answer; a command
//! of several steps leaves its state in `pending`.

#![cfg_attr(not(test), warn(clippy::cast_possible_truncation))]

use super::command::STOPPED;
use super::inquiry::{MAX_COMPARE_BLOCKS, MAX_UNMAP_BLOCKS, MAX_UNMAP_DESCRIPTORS, MAX_WRITE_SAME_BLOCKS};
use super::io::IoOp;
use super::step::{Response, Step, TaskId};
use super::tasks::Pending;
use super::unit::{Unit, answer, check, illegal};
use sanloom_wire::cdb::Cdb;
use sanloom_wire::scsi::capacity::{ReadCapacity10, ReadCapacity16};
use sanloom_wire::scsi::lba_status::{self, LbaStatus, MAPPED};
use sanloom_wire::scsi::unmap::{self, BlockDescriptor};
use sanloom_wire::sense::{Sense, SenseCode};
use std::collections::{BTreeMap, VecDeque};

/// Byte 1 of a block command, which contains the ANCHOR and UNMAP bits.
const FLAGS_BYTE: u16 = 1;

/// Executes a command that requires the medium.
pub(super) fn execute(unit: &Unit, task: TaskId, cdb: Cdb, pending: &mut BTreeMap<TaskId, Pending>) -> Step {
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
        Cdb::SynchronizeCache { lba, blocks, .. } => unit
            .within(lba, blocks.into())
            .map(|()| if unit.mode.write_cache { Step::Io(unit.io(IoOp::Flush, lba, blocks, 0, true)) } else { done }),
        Cdb::Prefetch { lba, blocks, .. } => unit.within(lba, blocks.into()).map(|()| done),
        Cdb::WriteSame { .. } => write_same(unit, cdb),
        Cdb::CompareAndWrite { lba, blocks, fua } => compare_and_write(unit, lba, blocks, fua),
        Cdb::Unmap { anchor: true, .. } => Err(Sense::invalid_field_in_cdb(FLAGS_BYTE)),
        Cdb::Unmap { list_len: 0, .. } => Ok(done),
        Cdb::Unmap { list_len, .. } => Ok(Step::Parameters { bytes: list_len.into() }),
        Cdb::GetLbaStatus { lba, allocation_len } => return lba_status(unit, task, lba, allocation_len, pending),
        // TEST UNIT READY; all other commands were handled before.
        _ => Ok(done),
    };
    result.unwrap_or_else(check)
}

/// Executes GET LBA STATUS (SBC).
fn lba_status(
    unit: &Unit,
    task: TaskId,
    lba: u64,
    allocation_len: u32,
    pending: &mut BTreeMap<TaskId, Pending>,
) -> Step {
    if lba >= unit.config.blocks {
        return check(illegal(SenseCode::LBA_OUT_OF_RANGE));
    }
    let blocks = u32::try_from(unit.config.blocks - lba).unwrap_or(u32::MAX);
    if unit.config.thin {
        let io = unit.io(IoOp::Mapping, lba, blocks, 0, false);
        pending.insert(task, Pending::Mapping { lba, allocation_len });
        return Step::Io(io);
    }
    let mut data = Vec::new();
    lba_status::emit(&[LbaStatus { lba, blocks, provisioning: MAPPED }], &mut data);
    answer(data, allocation_len)
}

/// Executes UNMAP. All ranges are checked before the first one is unmapped.
pub(super) fn unmap(unit: &Unit, task: TaskId, list: &[u8], pending: &mut BTreeMap<TaskId, Pending>) -> Step {
    let Ok(ranges) = unmap::parse(list) else {
        return check(illegal(SenseCode::PARAMETER_LIST_LENGTH));
    };
    let total: u64 = ranges.iter().map(|range| u64::from(range.blocks)).sum();
    if ranges.len() > MAX_UNMAP_DESCRIPTORS as usize || total > MAX_UNMAP_BLOCKS.into() {
        return check(illegal(SenseCode::INVALID_FIELD_IN_LIST));
    }
    if let Some(sense) = ranges.iter().find_map(|range| unit.within(range.lba, range.blocks.into()).err()) {
        return check(sense);
    }
    unmap_next(unit, task, ranges.into_iter().filter(|range| range.blocks > 0).collect(), pending)
}

/// Unmaps the next of the ranges that remain.
pub(super) fn unmap_next(
    unit: &Unit,
    task: TaskId,
    mut rest: VecDeque<BlockDescriptor>,
    pending: &mut BTreeMap<TaskId, Pending>,
) -> Step {
    let Some(BlockDescriptor { lba, blocks }) = rest.pop_front() else {
        return Step::Done(Response::GOOD);
    };
    let io = unit.io(IoOp::Unmap, lba, blocks, 0, false);
    pending.insert(task, Pending::Unmap(rest));
    Step::Io(io)
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

/// Executes VERIFY (SBC).
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

/// Executes WRITE SAME (SBC).
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

/// Executes COMPARE AND WRITE (SBC).
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

/// Executes READ CAPACITY (10) (SBC). A unit that is too large for it reports FFFFFFFF.
fn read_capacity_10(unit: &Unit) -> Step {
    let last_lba = u32::try_from(unit.config.blocks.saturating_sub(1)).unwrap_or(u32::MAX);
    let mut data = Vec::new();
    ReadCapacity10 { last_lba, block_bytes: unit.config.block_bytes }.emit(&mut data);
    Step::Done(Response::data(data))
}

/// Executes READ CAPACITY (16) (SBC).
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
