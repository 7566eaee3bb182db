//! Encoder of [`Cdb`].

use super::operation::{self, action};
use super::parse::FUA;
use super::{CDB_BYTES, Cdb};
use crate::bytes::len8;

impl Cdb {
    /// Writes all 16 bytes. A command with a block range gets the 10-byte form if block and count
    /// fit into it; otherwise the 16-byte form.
    pub fn emit(&self, out: &mut [u8; CDB_BYTES]) {
        *out = [0; CDB_BYTES];
        match *self {
            Cdb::TestUnitReady => out[0] = operation::TEST_UNIT_READY,
            Cdb::Inquiry { vpd_page, allocation_len } => {
                out[0] = operation::INQUIRY;
                out[1] = vpd_page.is_some().into();
                out[2] = vpd_page.unwrap_or(0);
                out[3..5].copy_from_slice(&allocation_len.to_be_bytes());
            }
            Cdb::ReadCapacity10 => out[0] = operation::READ_CAPACITY_10,
            Cdb::ReadCapacity16 { allocation_len } => {
                out[..2].copy_from_slice(&[operation::SERVICE_ACTION_IN_16, action::READ_CAPACITY_16]);
                out[10..14].copy_from_slice(&allocation_len.to_be_bytes());
            }
            Cdb::ReportLuns { allocation_len } => {
                out[0] = operation::REPORT_LUNS;
                out[6..10].copy_from_slice(&allocation_len.to_be_bytes());
            }
            Cdb::Read { lba, blocks, fua } => {
                let flags = if fua { FUA } else { 0 };
                emit_range(out, [operation::READ_10, operation::READ_16], lba, blocks, flags);
            }
            Cdb::Write { lba, blocks, fua } => {
                let flags = if fua { FUA } else { 0 };
                emit_range(out, [operation::WRITE_10, operation::WRITE_16], lba, blocks, flags);
            }
            Cdb::Other(bytes) => *out = bytes,
            _ => self.emit_more(out),
        }
    }

    fn emit_more(&self, out: &mut [u8; CDB_BYTES]) {
        let flag = |set: bool, bit: u8| if set { bit } else { 0 };
        match *self {
            Cdb::RequestSense { descriptor, allocation_len } => {
                out[0] = operation::REQUEST_SENSE;
                out[1] = descriptor.into();
                out[4] = allocation_len;
            }
            Cdb::ModeSense { long, no_descriptor, control, page, subpage, allocation_len } => {
                out[0] = if long { operation::MODE_SENSE_10 } else { operation::MODE_SENSE_6 };
                out[1] = flag(no_descriptor, 8);
                out[2] = control << 6 | page & 0x3f;
                out[3] = subpage;
                put_mode_len(out, long, allocation_len);
            }
            Cdb::ModeSelect { long, page_format, save, list_len } => {
                out[0] = if long { operation::MODE_SELECT_10 } else { operation::MODE_SELECT_6 };
                out[1] = flag(page_format, 0x10) | flag(save, 1);
                put_mode_len(out, long, list_len);
            }
            Cdb::StartStopUnit { immediate, power, no_flush, load_eject, start } => {
                out[0] = operation::START_STOP_UNIT;
                out[1] = immediate.into();
                out[4] = power << 4 | flag(no_flush, 4) | flag(load_eject, 2) | flag(start, 1);
            }
            Cdb::Reserve6 => out[0] = operation::RESERVE_6,
            Cdb::Release6 => out[0] = operation::RELEASE_6,
            Cdb::Verify { lba, blocks, byte_check } => {
                emit_range(out, [operation::VERIFY_10, operation::VERIFY_16], lba, blocks, (byte_check & 3) << 1);
            }
            Cdb::WriteAndVerify { lba, blocks, byte_check } => {
                let operations = [operation::WRITE_AND_VERIFY_10, operation::WRITE_AND_VERIFY_16];
                emit_range(out, operations, lba, blocks, (byte_check & 3) << 1);
            }
            Cdb::SynchronizeCache { lba, blocks, immediate } => {
                let operations = [operation::SYNCHRONIZE_CACHE_10, operation::SYNCHRONIZE_CACHE_16];
                emit_range(out, operations, lba, blocks, flag(immediate, 2));
            }
            Cdb::Prefetch { lba, blocks, immediate } => {
                let operations = [operation::PREFETCH_10, operation::PREFETCH_16];
                emit_range(out, operations, lba, blocks, flag(immediate, 2));
            }
            Cdb::WriteSame { lba, blocks, unmap, anchor, no_data } => {
                // Only WRITE SAME(16) has a flag for commands without data-out.
                let short = if no_data { operation::WRITE_SAME_16 } else { operation::WRITE_SAME_10 };
                let flags = flag(anchor, 0x10) | flag(unmap, 8) | flag(no_data, 1);
                emit_range(out, [short, operation::WRITE_SAME_16], lba, blocks, flags);
            }
            Cdb::Unmap { anchor, list_len } => {
                out[0] = operation::UNMAP;
                out[1] = anchor.into();
                out[7..9].copy_from_slice(&list_len.to_be_bytes());
            }
            Cdb::GetLbaStatus { lba, allocation_len } => {
                out[..2].copy_from_slice(&[operation::SERVICE_ACTION_IN_16, action::GET_LBA_STATUS]);
                out[2..10].copy_from_slice(&lba.to_be_bytes());
                out[10..14].copy_from_slice(&allocation_len.to_be_bytes());
            }
            Cdb::CompareAndWrite { lba, blocks, fua } => {
                out[0] = operation::COMPARE_AND_WRITE;
                out[1] = flag(fua, FUA);
                out[2..10].copy_from_slice(&lba.to_be_bytes());
                out[13] = blocks;
            }
            Cdb::PersistentReserveIn { action, allocation_len } => {
                out[0] = operation::PERSISTENT_RESERVE_IN;
                out[1] = action & 0x1f;
                out[7..9].copy_from_slice(&allocation_len.to_be_bytes());
            }
            Cdb::PersistentReserveOut { action, scope, kind, list_len } => {
                out[0] = operation::PERSISTENT_RESERVE_OUT;
                out[1] = action & 0x1f;
                out[2] = scope << 4 | kind & 0x0f;
                out[5..9].copy_from_slice(&list_len.to_be_bytes());
            }
            Cdb::ReportTargetPortGroups { extended, allocation_len } => {
                let format = flag(extended, 0x20);
                maintenance_in(out, format | action::REPORT_TARGET_PORT_GROUPS, allocation_len);
            }
            Cdb::SetTargetPortGroups { list_len } => {
                out[..2].copy_from_slice(&[operation::MAINTENANCE_OUT, action::SET_TARGET_PORT_GROUPS]);
                out[6..10].copy_from_slice(&list_len.to_be_bytes());
            }
            Cdb::ReportSupportedOperations { timeouts, options, operation, action, allocation_len } => {
                maintenance_in(out, action::REPORT_SUPPORTED_OPERATIONS, allocation_len);
                out[2] = flag(timeouts, 0x80) | options & 7;
                out[3] = operation;
                out[4..6].copy_from_slice(&action.to_be_bytes());
            }
            Cdb::ReportSupportedTaskManagement { extended, allocation_len } => {
                maintenance_in(out, action::REPORT_SUPPORTED_TASK_MANAGEMENT, allocation_len);
                out[2] = flag(extended, 0x80);
            }
            // `emit` handles all other commands.
            _ => {}
        }
    }
}

fn put_mode_len(out: &mut [u8; CDB_BYTES], long: bool, len: u16) {
    if long {
        out[7..9].copy_from_slice(&len.to_be_bytes());
    } else {
        out[4] = len8(len.into());
    }
}

fn maintenance_in(out: &mut [u8; CDB_BYTES], service_action: u8, allocation_len: u32) {
    out[..2].copy_from_slice(&[operation::MAINTENANCE_IN, service_action]);
    out[6..10].copy_from_slice(&allocation_len.to_be_bytes());
}

fn emit_range(out: &mut [u8; CDB_BYTES], operations: [u8; 2], lba: u64, blocks: u32, flags: u8) {
    let [short, long] = operations;
    out[1] = flags;
    if let (Ok(lba), Ok(blocks), true) = (u32::try_from(lba), u16::try_from(blocks), short != long) {
        out[0] = short;
        out[2..6].copy_from_slice(&lba.to_be_bytes());
        out[7..9].copy_from_slice(&blocks.to_be_bytes());
    } else {
        out[0] = long;
        out[2..10].copy_from_slice(&lba.to_be_bytes());
        out[10..14].copy_from_slice(&blocks.to_be_bytes());
    }
}
